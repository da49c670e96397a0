"""Judgements, Rankings and Preferences: what they hold, how they are aligned, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calirank as cr
from calirank.data.ragged import as_ids, encode_ids, take_lists
from calirank.data.supervision.preferences import find_cycle

MANY = settings(max_examples=80, deadline=None)


@MANY
@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.data())
def test_lists_are_taken_as_python_takes_them(sizes: list[int], data: Any) -> None:
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    flat = np.arange(offsets[-1]) * 10
    chosen = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=6))
    elements, new = take_lists(offsets, np.array(chosen, dtype=np.int64))
    for place, number in enumerate(chosen):
        np.testing.assert_array_equal(
            flat[elements][new[place] : new[place + 1]], flat[offsets[number] : offsets[number + 1]]
        )


@MANY
@given(
    st.lists(
        st.one_of(
            st.integers(-5, 5),
            st.text(max_size=2).filter(lambda text: not text.endswith(chr(0))),
            st.tuples(st.integers(0, 2), st.booleans()),
        ),
        max_size=8,
    )
)
def test_ids_are_coded_by_first_appearance(values: list[Any]) -> None:
    distinct, codes = encode_ids(as_ids(values, "ids"))
    assert distinct.tolist() == list(dict.fromkeys(values))
    assert [distinct.tolist()[code] for code in codes] == values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("abc", "single text"),
        ([[1, 2]], "hashable"),
        (np.zeros((2, 2)), "one-dimensional"),
        ([1.5, np.inf], "must not be infinite"),
        ([None, "a"], "missing at position 0"),
        (np.ma.masked_array([1, 2], [False, True]), "missing at position 1"),
        ([1, np.nan], "missing at position 1"),
        (np.array(["2020", "NaT"], "M8[D]"), "missing at position 1"),
        (["a", pd.NA], "missing at position 1"),
        ([pd.NaT], "missing at position 0"),
        ([True, 1], "got True at 0"),
        (["a\0"], "must not end with a NUL"),
        ([b"\xff"], "UTF-8 text at position 0"),
    ],
)
def test_wrong_ids_are_refused(values: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        as_ids(values, "ids")


def test_ids_are_never_rounded_cut_or_merged() -> None:
    for values in ([2**53, 2**53 + 1, 0.5], [2**63, 1], [-1, 2**64], [1e300], [1, "1"], [(1, 2), (1, 3)]):
        assert as_ids(values, "ids").tolist() == values
        assert encode_ids(as_ids(values, "ids"))[1].tolist() == list(range(len(values)))
    assert as_ids([1.0, 2], "ids").dtype == np.int64
    assert as_ids(["NaT", "<NA>", "nan"], "ids").tolist() == ["NaT", "<NA>", "nan"]


def test_ids_of_other_types() -> None:
    assert as_ids(np.array([2**64 - 1], np.uint64), "ids").tolist() == [2**64 - 1]
    assert as_ids(np.array([3.0, 4.0]), "ids").dtype == np.int64
    assert as_ids([1.5, 2.0], "ids").tolist() == [1.5, 2.0]
    assert as_ids(np.array(["2020-01-01"], "M8[D]"), "ids").tolist() == ["2020-01-01"]
    unhashable = np.empty(1, object)
    unhashable[0] = [1]
    with pytest.raises(TypeError, match="hashable"):
        as_ids(unhashable, "ids")


# --- judgements ------------------------------------------------------------------------------------------------------


@MANY
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3))
def test_a_column_of_judges_is_a_joint_label_vector(seed: int, lists: int, judges: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, lists)
    table = np.ma.masked_array(rng.integers(0, 3, (sizes.sum(), judges)), rng.random((sizes.sum(), judges)) < 0.4)
    data = cr.RankingData(sizes=sizes, judges=table)
    for query in range(lists):
        columns = table[data.rows(query)].astype(float).filled(np.nan).T
        spoke = columns[~np.isnan(columns).all(axis=1)]
        np.testing.assert_array_equal(data.judges.matrix(query), spoke)


def test_judgements_of_different_numbers_and_weights() -> None:
    held = cr.Judgements([[[0, 1], [1, 1]], [[2, 2, 0]]], weight=[1, 3, 5], query_ids=["a", "b"])
    assert held.counts.tolist() == [2, 1]
    assert held.probabilities(0).tolist() == [0.25, 0.75]
    data = cr.RankingData(sizes=[3, 2, 1], query_ids=["b", "a", "c"], judges=held)
    assert data.judges.matrix(0).tolist() == [[2, 2, 0]]
    assert data.judges.counts.tolist() == [1, 2, 0]
    assert data.judges.matrix(2).shape[0] == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cr.Judgements([[1, 2]]), "a row a judge and a column a document"),
        (lambda: cr.Judgements([[[1, np.inf]]]), "finite"),
        (lambda: cr.Judgements([[[1]]], weight=[1, 2]), "one number for each judgement, that is 1"),
        (lambda: cr.Judgements([[[1], [2]]], weight=[0, 0]), "all judgements of query 0 have weight 0"),
        (lambda: cr.Judgements([[[1]]], weight=[-1]), "finite numbers >= 0"),
        (lambda: cr.Judgements([[[1]]], query_ids=["a", "b"]), "one query id for each of 1 matrices, got 2"),
        (
            lambda: cr.RankingData(sizes=[3], judges=cr.Judgements([[[1, 2]]])),
            "query 0 has 3 documents; got a label vector of 2",
        ),
        (lambda: cr.RankingData(sizes=[2], judges=[[1], [np.nan]]), "masked where|masked: numpy"),
        (lambda: cr.RankingData(sizes=[2], judges=[1, 0]), "a row for each of 2 documents and a column a judge"),
        (
            lambda: cr.RankingData(
                sizes=[1], query_ids=["jaguar"], judges=cr.Judgements([[[1]]], query_ids=["jagaur"])
            ),
            "query 'jagaur' is not among the 1 queries of the data. Did you mean 'jaguar'",
        ),
        (
            lambda: cr.RankingData(sizes=[1, 1], query_ids=["q", "q"], judges=cr.Judgements([[[1]]], query_ids=["q"])),
            "same query id",
        ),
    ],
)
def test_wrong_judgements_are_refused(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


# --- rankings --------------------------------------------------------------------------------------------------------


@MANY
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5))
def test_ranks_and_orders_say_the_same(seed: int, items: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    ranks = rng.integers(1, 4, (count, items)).astype(float)
    ranks[rng.random(ranks.shape) < 0.3] = np.nan
    held = cr.Rankings.from_ranks(ranks)
    for row, order in zip(ranks, held.orders(0), strict=True):
        levels = sorted(set(row[~np.isnan(row)]))
        groups = [tuple(np.flatnonzero(row == level).tolist()) for level in levels]
        assert order == tuple(group[0] if len(group) == 1 else group for group in groups)
    again = cr.Rankings(held.orders(0))
    assert again.equals(held)
    found = held.ranks(0)
    for row, back in zip(ranks, found, strict=True):
        shown = row[: found.shape[1]]
        np.testing.assert_array_equal(np.isnan(shown), np.isnan(back))
        kept = ~np.isnan(shown)
        assert np.array_equal(
            np.sign(np.subtract.outer(shown[kept], shown[kept])), np.sign(np.subtract.outer(back[kept], back[kept]))
        )


def test_equal_rankings_are_equal_however_they_are_written() -> None:
    assert cr.Rankings([[(1, 0), 2]]).equals(cr.Rankings([[(0, 1), 2]]))
    assert cr.Rankings.from_flat([1, 0, 2, 3], [4, 4, 9, 5], [0, 3, 4]).equals(cr.Rankings([[(0, 1), 2], [3]]))
    assert not cr.Rankings([[0, 1]]).equals(cr.Rankings([[1, 0]]))


def test_a_query_that_a_supervision_holds_twice_has_the_judgements_of_both() -> None:
    both = cr.Rankings.concatenate([cr.Rankings([[0, 1]], query=["q"]), cr.Rankings([[1, 0]], query=["q"])])
    data = cr.RankingData(sizes=[1, 2], query_ids=["p", "q"], rankings=both)
    assert data.rankings.orders(1) == [(0, 1), (1, 0)]
    judged = cr.Judgements([[[1, 0]], [[0, 1], [1, 1]]], query_ids=["q", "q"])
    held = cr.RankingData(sizes=[2], query_ids=["q"], judges=judged).judges
    assert held.matrix(0).tolist() == [[1, 0], [0, 1], [1, 1]]


def test_queries_are_numbered_as_in_a_list_of_python() -> None:
    held = cr.Rankings([[0, 1], [1, 0]], query=["a", "b"])
    assert held.orders(-1) == [(1, 0)]
    data = cr.RankingData(y=[1, 2, 3], sizes=[1, 2])
    assert data.y[data.rows(-1)].tolist() == [2, 3]
    for call in (held.orders, held.ranks, held.probabilities, held.items_of, data.rows):
        with pytest.raises(IndexError, match="query number 2: there are 2 queries"):
            call(2)
    assert held.select(np.array([False, True])).orders(0) == [(1, 0)]
    assert held.select(slice(1, 2)).equals(held.select([1]))


def test_rankings_of_several_queries_are_aligned_by_id() -> None:
    held = cr.Rankings([[0, 1], [2, 0, 1], [1, 0]], weight=[1, 2, 3], query=["b", "a", "b"])
    data = cr.RankingData(sizes=[3, 1, 2], query_ids=["a", "c", "b"], rankings=held)
    assert data.rankings.orders(0) == [(2, 0, 1)]
    assert data.rankings.orders(1) == []
    assert data.rankings.orders(2) == [(0, 1), (1, 0)]
    assert data.rankings.probabilities(2).tolist() == [0.25, 0.75]
    assert data[[2, 0]].rankings.orders(1) == [(2, 0, 1)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cr.Rankings([[0, 1, 0]]), "entry 0 ranks document 0 twice"),
        (lambda: cr.Rankings([[0], [(1, 2), 1]]), "entry 1 ranks document 1 twice"),
        (lambda: cr.Rankings([[0, -1]]), "whole numbers from 0; got -1"),
        (lambda: cr.Rankings([[0.5]]), "got 0.5"),
        (lambda: cr.Rankings(["abc"]), "document positions, best first"),
        (lambda: cr.Rankings([[0]], query=["a", "b"]), "one query id for each ranking, that is 1; got 2"),
        (lambda: cr.Rankings([[0]], weight=[np.nan]), "finite numbers"),
        (lambda: cr.Rankings.from_ranks([1, 2]), "a row a judgement"),
        (lambda: cr.Rankings.from_flat([0, 1], [1, 0], [0, 2]), "levels that decrease"),
        (lambda: cr.Rankings.from_flat([0.7, 1], [0, 1], [0, 2]), "items: expected whole numbers"),
        (lambda: cr.Rankings.from_flat([0, 1], [0, 1], [0, 3]), "starts must rise from 0 to the number of items, 2"),
        (lambda: cr.Rankings.from_flat([0, 1], [0], [0, 2]), "2 items and 1 levels"),
        (
            lambda: cr.RankingData(sizes=[2], rankings=cr.Rankings([[0, 2]])),
            "query 0 has 2 documents, numbered from 0; got document 2",
        ),
    ],
)
def test_wrong_rankings_are_refused(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


# --- preferences -----------------------------------------------------------------------------------------------------


@MANY
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(0, 12))
def test_the_matrix_adds_repeated_pairs_and_averages_judges(seed: int, items: int, edges: int) -> None:
    rng = np.random.default_rng(seed)
    better = rng.integers(0, items, edges)
    worse = (better + rng.integers(1, items, edges)) % items
    weight, judge = rng.random(edges), rng.integers(0, 3, edges)
    held = cr.RankingData(sizes=[items], preferences=cr.Preferences(better, worse, weight, judge=judge)).preferences
    tables = []
    for name in np.unique(judge):
        table = np.zeros((items, items))
        for a, b, w in zip(better[judge == name], worse[judge == name], weight[judge == name], strict=True):
            table[a, b] += w
        tables.append(table)
    expected = np.mean(tables, axis=0) if tables else np.zeros((items, items))
    np.testing.assert_allclose(held.matrix(0), expected, atol=1e-15)


@MANY
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(0, 10))
def test_cycles_are_found_exactly_when_the_adjacency_matrix_is_not_nilpotent(seed: int, items: int, edges: int) -> None:
    rng = np.random.default_rng(seed)
    better = rng.integers(0, items, edges)
    worse = (better + rng.integers(1, items, edges)) % items
    pairs = set(zip(better.tolist(), worse.tolist(), strict=True))
    cycle = find_cycle(better.tolist(), worse.tolist())
    adjacency = np.zeros((items, items), dtype=np.int64)
    adjacency[better, worse] = 1
    assert bool(cycle) == np.linalg.matrix_power(adjacency, items).any()
    assert all((a, b) in pairs for a, b in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
    assert len(set(cycle)) == len(cycle)


def test_preferences_of_several_queries_and_a_promised_dag() -> None:
    held = cr.Preferences([0, 1, 0], [1, 0, 1], query=["a", "a", "b"])
    data = cr.RankingData(sizes=[2, 2], query_ids=["b", "a"], preferences=held)
    assert data.preferences.matrix(1).tolist() == [[0, 1], [1, 0]]
    assert data.preferences.matrix(0).tolist() == [[0, 1], [0, 0]]
    with pytest.raises(ValueError, match=r"query a was promised to have no cycle, but prefers 0 > 1 > 0"):
        cr.Preferences([0, 1, 0], [1, 0, 1], query=["a", "a", "b"], dag=True)
    # Two judges who contradict each other are two acyclic graphs, and a weight of 0 is no preference.
    cr.Preferences([0, 1], [1, 0], judge=[0, 1], dag=True)
    cr.Preferences([0, 1], [1, 0], [1, 0], dag=True)


def test_judges_may_have_weights() -> None:
    held = cr.Preferences([0, 1, 0], [1, 0, 1], judge=["ann", "bob", "cid"], judge_weight={"bob": 3})
    assert held.probabilities(0).tolist() == [0.2, 0.6, 0.2]
    np.testing.assert_allclose(held.matrix(0), [[0, 0.4], [0.6, 0]])
    for wrong, message in (
        ({"bop": 3}, "names judge 'bop', who prefers nothing. Did you mean 'bob'"),
        ({"bob": -1}, "finite numbers >= 0"),
        ({"ann": 0, "bob": 0, "cid": 0}, "all judgements of query 0 have weight 0"),
    ):
        with pytest.raises(ValueError, match=message):
            cr.Preferences([0, 1, 0], [1, 0, 1], judge=["ann", "bob", "cid"], judge_weight=wrong)


def test_preferences_from_matrices() -> None:
    first_empty = cr.Preferences.from_matrices([np.zeros((2, 2)), [[0, 1], [0, 0]]])
    assert first_empty.query_ids.tolist() == [0, 1]
    assert first_empty.edges(0) == []
    assert first_empty.matrix(1).tolist() == [[0, 1], [0, 0]]
    with pytest.raises(ValueError, match="one query id for each of 1 matrices, got 2"):
        cr.Preferences.from_matrices([np.zeros((2, 2))], query_ids=["a", "b"])
    held = cr.Preferences.from_matrices([[[0, 2], [0.5, 0]], np.zeros((1, 1))], query_ids=["a", "b"])
    data = cr.RankingData(sizes=[2, 1], query_ids=["a", "b"], preferences=held)
    assert data.preferences.matrix(0).tolist() == [[0, 2], [0.5, 0]]
    assert data.preferences.matrix(1).tolist() == [[0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cr.Preferences([0, 1], [1]), "better has 2 entries, worse has 1"),
        (lambda: cr.Preferences([0], [0]), "query 0: document 0 is preferred to itself"),
        (lambda: cr.Preferences([0], [1], [-1]), "finite numbers >= 0; got -1.0 for pair number 0"),
        (lambda: cr.Preferences([0], [1], [np.nan]), "got nan for pair number 0"),
        (lambda: cr.Preferences([0.5], [1]), "positions in the list.: expected whole numbers"),
        (lambda: cr.Preferences([-1], [1]), "numbered from 0; got -1 in better"),
        (lambda: cr.Preferences([0], [1], query=[1, 2]), "one query id for each pair, that is 1; got 2"),
        (lambda: cr.Preferences([0], [1], judge=[1, 2]), "judge has 2 entries for 1 pairs"),
        (lambda: cr.Preferences.from_matrices([[[1]]]), "diagonal must be 0"),
        (lambda: cr.Preferences.from_matrices([[[0, 1]]]), "square matrix"),
        (
            lambda: cr.RankingData(sizes=[2], preferences=cr.Preferences([0], [2])),
            "query 0 has 2 documents, numbered from 0; got document 2",
        ),
    ],
)
def test_wrong_preferences_are_refused(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_supervisions_are_put_together_and_taken_apart() -> None:
    a = cr.RankingData(sizes=[2], preferences=cr.Preferences([0], [1])).preferences
    b = cr.RankingData(sizes=[3], query_ids=[7], preferences=cr.Preferences([2], [1], query=[7])).preferences
    both = cr.Preferences.concatenate([a, b])
    assert both.query_ids.tolist() == [0, 7]
    assert both.select([1]).equals(b)
    assert not a.equals(b)
    assert repr(both) == "Preferences(2 queries, 2 judgements)"
