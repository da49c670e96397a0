"""RankingData: what it accepts, what it refuses and where, selection, merging, and folders."""

from __future__ import annotations

import json
import pickle
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import calirank as cr

MANY = settings(max_examples=60, deadline=None)


@st.composite
def any_data(draw: Any, *, supervisions: tuple[str, ...] = ("y", "masked", "judges", "preferences", "rankings")) -> Any:
    """Ranking data of any kind: dense or sparse or without features, every sort of supervision, ids and extras."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    rows, seed = sum(sizes), draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    kind = draw(st.sampled_from(["none", "float32", "float64", "csr"]))
    X: Any = None
    if kind != "none":
        X = rng.integers(-2, 3, (rows, 3)) / 3.0
        X = {"float32": X.astype(np.float32), "float64": X, "csr": sparse.csr_array(X.astype(np.float32))}[kind]
    arguments: dict[str, Any] = {"sizes": sizes}
    if draw(st.booleans()):
        arguments["query_ids"] = [f"q{number}" for number in range(len(sizes))]
    if draw(st.booleans()):
        arguments["doc_ids"] = [f"d{number}" for number in range(rows)]
    if X is not None and draw(st.booleans()):
        arguments["feature_names"] = ["a", "b", "c"]
    if draw(st.booleans()):
        arguments["columns"] = {"price": rng.random(rows), "site": rng.choice(["x", "yy"], rows)}
    if draw(st.booleans()):
        arguments["query_weight"] = rng.random(len(sizes)) + 0.5
        arguments["doc_weight"] = rng.random(rows)
    supervision = draw(st.sampled_from(supervisions))
    labels = rng.integers(0, 3, rows).astype(float)
    ids = arguments.get("query_ids", range(len(sizes)))
    if supervision == "y":
        arguments["y"] = labels
    elif supervision == "masked":
        arguments["y"] = np.ma.masked_array(labels, rng.random(rows) < 0.4)
    elif supervision == "judges":
        arguments["judges"] = np.ma.masked_array(rng.integers(0, 3, (rows, 2)), rng.random((rows, 2)) < 0.2)
    elif supervision == "preferences":
        pairs = [(q, a, b) for q, n in zip(ids, sizes, strict=True) for a in range(n) for b in range(n) if a != b]
        chosen = [pair for pair in pairs if rng.random() < 0.5]
        query, better, worse = zip(*chosen, strict=True) if chosen else ([], [], [])
        arguments["preferences"] = cr.Preferences(
            np.array(better, int), np.array(worse, int), rng.random(len(query)), query=list(query) or None
        )
    else:
        arguments["rankings"] = cr.Rankings([rng.permutation(n) for n in sizes], query=list(ids))
    return cr.RankingData(X, **arguments)


# --- construction ----------------------------------------------------------------------------------------------------


def test_lists_can_be_given_by_offsets_sizes_or_qid() -> None:
    by_offsets = cr.RankingData(y=[1, 0, 2], offsets=[0, 2, 3])
    by_sizes = cr.RankingData(y=[1, 0, 2], sizes=[2, 1])
    by_qid = cr.RankingData(y=[1, 0, 2], qid=[0, 0, 1])
    assert by_offsets.equals(by_sizes)
    assert by_offsets.equals(by_qid)
    assert by_offsets.offsets.dtype == np.int64
    assert len(by_offsets) == 2
    assert by_offsets.n_docs == 3
    assert by_offsets.query_ids.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one of offsets, sizes and qid; got none"),
        ({"sizes": [3], "qid": [0, 0, 0]}, "got sizes and qid"),
        ({"offsets": [0, 1, 2, 3, 4]}, "4 queries for 3 documents"),
        ({"offsets": [0, 2]}, "offsets end with 2; there are 3 documents"),
        ({"offsets": [1, 3]}, "begin with 0"),
        ({"offsets": [0, 2, 2, 3]}, "query number 1 goes from 2 to 2"),
        ({"offsets": [0, 3, 2, 3]}, "query number 1 goes from 3 to 2"),
        ({"sizes": [4, -1]}, "query number 1 has -1"),
        ({"sizes": [3, 0]}, "query number 1 has 0"),
        ({"sizes": [1, 1]}, "sizes add up to 2; there are 3 documents"),
        (
            {"qid": ["a", "b", "a"]},
            "query a do not lie together: it ends at row 0 and comes back at row 2; group_rows=True",
        ),
        ({"qid": [0, 0]}, "qid has 2 entries; there are 3 documents"),
        ({"sizes": [3], "query_ids": [1, 2]}, "one for each of 1 queries, got 2"),
        ({"sizes": [3], "doc_ids": ["a"]}, "different numbers of documents: y has 3, doc_ids has 1"),
        ({"sizes": [3], "query_weight": [1, 2]}, "one number for each query, that is 1; got shape (2,)"),
        ({"sizes": [3], "doc_weight": [1, -1, 1]}, "expected finite numbers >= 0; got -1.0 for document number 1"),
        (
            {"sizes": [2**62, 2**62, 2**62, 2**62 - 1], "y": None},
            "more documents than a whole number of 64 bits counts",
        ),
        ({"sizes": [3], "columns": {1: [1, 2, 3], "1": [1, 2, 3]}}, "are the same text"),
        ({"sizes": [3], "doc_weight": [1, np.nan, 1]}, "got nan for document number 1"),
        ({"sizes": [3], "feature_base": 2}, "expected 0 or 1, got 2"),
        ({"sizes": [3], "columns": {"price": [1, 2]}}, "y has 3, column price has 2"),
        ({"sizes": [3], "judges": [[1], [0], [1]]}, "one kind of supervision, got y and judges"),
        ({"sizes": [3], "group_rows": True}, "group_rows groups the rows by qid"),
        ({"qid": [0, 0, 0], "query_ids": [1]}, "qid already names the queries"),
        ({"qid": [None, "a", "a"]}, "an identifier is missing at position 0"),
        ({"qid": [0.0, np.nan, 1.0]}, "an identifier is missing at position 1"),
    ],
)
def test_wrong_lists_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        cr.RankingData(**{"y": [1, 0, 2], **arguments})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"offsets": [0.0, 3.0]}, "offsets: expected whole numbers"),
        ({"sizes": ["3"]}, "sizes: expected whole numbers"),
        ({"sizes": [3], "columns": {"thing": [object()] * 3}}, "column thing: expected numbers"),
        ({"sizes": [3], "preferences": [(0, 1)]}, "preferences: expected Preferences, got list"),
        ({"sizes": [3], "rankings": [[0, 1, 2]]}, "rankings: expected Rankings, got list"),
        ({"qid": "abc"}, "one identifier an entry"),
        ({"qid": [["a"], ["b"], ["b"]]}, "an identifier must be hashable"),
        ({"qid": np.array([["a"], ["b"], ["b"]])}, "one-dimensional"),
    ],
)
def test_wrong_types_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        cr.RankingData(
            **{"y": None if "preferences" in arguments or "rankings" in arguments else [1, 0, 2], **arguments}
        )
    assert message in str(caught.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_x_keeps_its_precision_and_other_types_become_floats(dtype: Any) -> None:
    assert cr.RankingData(np.zeros((2, 1), dtype), sizes=[2]).X.dtype == dtype
    assert cr.RankingData(np.zeros((2, 1), np.int64), sizes=[2]).X.dtype == np.float64
    assert cr.RankingData(np.zeros((2, 1), np.uint8), sizes=[2]).X.dtype == np.float32
    assert cr.RankingData(sparse.csr_array(np.eye(2, dtype=dtype)), sizes=[2]).X.dtype == dtype


def test_x_may_miss_values_but_not_be_infinite() -> None:
    assert np.isnan(cr.RankingData([[np.nan], [1.0]], sizes=[2]).X[0, 0])
    masked = np.ma.masked_array([[1, 2], [3, 4]], [[0, 1], [0, 0]])
    assert np.isnan(cr.RankingData(masked, sizes=[2]).X[0, 1])
    X = np.zeros((20_000, 2))
    X[17_000, 1] = -np.inf
    expected = r"infinite value -inf in feature b of query q, document 16000"
    with pytest.raises(ValueError, match=expected):
        cr.RankingData(X, sizes=[1000, 19_000], query_ids=["p", "q"], feature_names=["a", "b"])
    with pytest.raises(ValueError, match=expected):
        cr.RankingData(sparse.csr_array(X), sizes=[1000, 19_000], query_ids=["p", "q"], feature_names=["a", "b"])


@pytest.mark.parametrize("X", [[1.0, 2.0], [["a"], ["b"]], np.array([[1j], [2j]]), np.zeros((2, 1, 1))])
def test_x_must_be_a_numeric_table(X: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="X: expected"):
        cr.RankingData(X, sizes=[2])


def test_a_frame_as_x_names_the_function_for_frames() -> None:
    with pytest.raises(TypeError, match=r"cr\.from_frame"):
        cr.RankingData(pd.DataFrame({"a": [1.0]}), sizes=[1])


def test_sparse_rows_are_brought_to_canonical_form_without_touching_the_callers() -> None:
    theirs = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    data = cr.RankingData(theirs, sizes=[1])
    assert data.X.toarray().tolist() == [[2.0, 5.0]]
    assert theirs.indices.tolist() == [1, 0, 1]


def test_labels_are_floats_and_unjudged_documents_are_masked() -> None:
    data = cr.RankingData(y=np.ma.masked_array([1.5, 9, 0], [0, 1, 0]), sizes=[2, 1], query_ids=["a", "b"])
    assert data.judged is not None
    assert data.judged.tolist() == [True, False, True]
    assert np.isnan(data.y[1])
    assert data[1].judged is None
    for bad in (np.nan, np.inf):
        with pytest.raises(
            ValueError, match=rf"got {bad} in query b, document 0 \(z\); a document without a label is masked"
        ):
            cr.RankingData(y=[1, 0, bad], sizes=[2, 1], query_ids=["a", "b"], doc_ids=["x", "y", "z"])
    with pytest.raises(TypeError, match="one number a document"):
        cr.RankingData(y=["high", "low"], sizes=[2])


def test_the_callers_arrays_are_neither_changed_nor_changeable_through_the_data() -> None:
    y = np.ma.masked_array([1.0, 2.0], [False, True])
    X = np.ones((2, 1))
    data = cr.RankingData(X, y, sizes=[2])
    assert y.data.tolist() == [1.0, 2.0]
    for array in (data.X, data.y, data.offsets, data.query_ids):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    X[0] = 5  # the caller's own array stays writable


def test_what_the_caller_changes_later_does_not_reach_the_data() -> None:
    arrays: dict[str, Any] = {
        "y": np.array([1.0, 2.0]),
        "query_ids": np.array([7]),
        "doc_ids": np.array(["a", "b"]),
        "query_weight": np.array([1.0]),
        "doc_weight": np.array([1.0, 1.0]),
        "columns": {"c": np.array([1, 2])},
    }
    data = cr.RankingData(sizes=[2], **arrays)
    before = data.replace()
    for array in (*(value for name, value in arrays.items() if name != "columns"), arrays["columns"]["c"]):
        array[0] = 0 if array.dtype.kind != "U" else "z"
    assert data.equals(before)
    weight = np.array([1.0, 3.0])
    judged = cr.Judgements([[[0], [1]]], weight)
    weight[0] = -1
    assert judged.probabilities(0).tolist() == [0.25, 0.75]


@MANY
@given(any_data())
def test_a_pickle_is_the_same_data_and_as_read_only(data: Any) -> None:
    again = pickle.loads(pickle.dumps(data))
    assert again.equals(data)
    assert not again.offsets.flags.writeable
    assert again.y is None or not again.y.flags.writeable
    for part in (again.X, getattr(again.X, "data", None)):
        if isinstance(part, np.ndarray):
            assert not part.flags.writeable
    for held in (again.judges, again.preferences, again.rankings):
        assert held is None or not any(array.flags.writeable for array in held.payload)


@pytest.mark.parametrize(
    ("ids", "dtype"),
    [([3, 1], "i"), (["b", "a"], "U"), (np.array([b"b", b"a"]), "U"), ([(1, 2), (3, 4)], "O"), ([1, "a"], "O")],
)
def test_query_ids_of_any_type(ids: Any, dtype: str) -> None:
    data = cr.RankingData(y=[0, 1], sizes=[1, 1], query_ids=cr.data.ragged.as_ids(ids, "ids") if dtype != "O" else None)
    if dtype == "O":
        array = np.empty(2, dtype=object)
        array[:] = ids
        data = cr.RankingData(y=[0, 1], sizes=[1, 1], query_ids=array)
        assert data.query_ids.tolist() == list(ids)
    assert data.query_ids.dtype.kind == dtype


def test_numbers_and_text_are_never_the_same_identifier() -> None:
    data = cr.RankingData(y=[0, 1], qid=[1, "1"])
    assert len(data) == 2
    assert data.query_ids.tolist() == [1, "1"]


def test_rows_can_be_grouped_and_scores_come_back_in_the_callers_order() -> None:
    data = cr.RankingData([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3], qid=["b", "a", "b", "a"], group_rows=True)
    assert data.query_ids.tolist() == ["b", "a"]
    assert data.y.tolist() == [0, 2, 1, 3]
    assert data.X[:, 0].tolist() == [0, 2, 1, 3]
    assert data.in_caller_order(data.y).tolist() == [0, 1, 2, 3]
    assert data[1].in_caller_order(data[1].y).tolist() == [1, 3]
    assert data[[1, 0]].in_caller_order(data[[1, 0]].y).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="one value for each of 4 documents, got 3"):
        data.in_caller_order(np.zeros(3))


def test_grouping_refuses_supervision_that_names_positions() -> None:
    with pytest.raises(ValueError, match="group the rows first"):
        cr.RankingData(
            np.zeros((3, 1)), qid=[0, 1, 0], group_rows=True, preferences=cr.Preferences([0], [1], query=[0])
        )


def test_grouping_refuses_a_known_distribution_too() -> None:
    for supervision in ({"y": [0, 1, 2]}, {"judges": [[0], [1], [2]]}):
        with pytest.raises(ValueError, match="group the rows first"):
            cr.RankingData(
                qid=[0, 1, 0],
                group_rows=True,
                posterior=cr.Judgements([[[0, 2]], [[1]]]),
                **supervision,
            )


def test_grouping_moves_everything_that_belongs_to_a_document() -> None:
    data = cr.RankingData(
        sparse.csr_array(np.arange(4.0)[:, None]),
        qid=[5, 6, 5, 6],
        doc_ids=["0", "1", "2", "3"],
        columns={"c": [0, 1, 2, 3]},
        doc_weight=[0, 1, 2, 3],
        judges=np.ma.masked_array([[0], [1], [2], [3]], [[0], [0], [0], [1]]),
        group_rows=True,
    )
    assert data.doc_ids.tolist() == ["0", "2", "1", "3"]
    assert data.columns["c"].tolist() == data.doc_weight.tolist() == data.X.toarray()[:, 0].tolist() == [0, 2, 1, 3]
    assert data.judges.matrix(0).tolist() == [[0, 2]]
    np.testing.assert_array_equal(data.judges.matrix(1), [[1, np.nan]])


def test_categorical_features_are_codes_with_their_categories() -> None:
    X = [[0, 1.5], [1, np.nan]]
    data = cr.RankingData(X, sizes=[2], feature_names=["colour", "size"], categorical={"colour": ("red", "blue")})
    assert data.categorical == (0,)
    assert data.categories == {0: ("red", "blue")}
    assert cr.RankingData(X, sizes=[2], categorical=[0]).categories == {0: ()}
    with pytest.raises(ValueError, match=r"feature size is categorical: expected codes 0, 1, …"):
        cr.RankingData(X, sizes=[2], feature_names=["colour", "size"], categorical=["size"])
    with pytest.raises(ValueError, match="below 1 or NaN"):
        cr.RankingData(X, sizes=[2], categorical={0: ("red",)})
    with pytest.raises(ValueError, match="Did you mean 'colour'"):
        cr.RankingData(X, sizes=[2], feature_names=["colour", "size"], categorical=["color"])
    with pytest.raises(ValueError, match="has 2 features"):
        cr.RankingData(X, sizes=[2], categorical=[2])


def test_feature_names_are_checked() -> None:
    with pytest.raises(ValueError, match="expected 2, got 1"):
        cr.RankingData(np.zeros((1, 2)), sizes=[1], feature_names=["a"])
    with pytest.raises(ValueError, match="'a' stands twice"):
        cr.RankingData(np.zeros((1, 2)), sizes=[1], feature_names=["a", "a"])


def test_documents_without_features_or_labels_are_counted_by_the_lists() -> None:
    data = cr.RankingData(sizes=[2, 3], rankings=cr.Rankings([[1, 0], [2, 0, 1]], query=[0, 1]))
    assert (data.n_docs, data.n_features, data.supervision) == (5, 0, "rankings")
    assert repr(data) == "RankingData(2 queries, 5 documents, rankings)"
    empty = data[0:0]
    assert len(empty) == empty.n_docs == 0


# --- selection, replacement, concatenation ---------------------------------------------------------------------------


@MANY
@given(any_data(), st.data())
def test_chosen_queries_are_the_same_lists(data: Any, choice: Any) -> None:
    numbers = choice.draw(st.lists(st.integers(0, len(data) - 1), max_size=5))
    chosen = data[np.array(numbers, dtype=int)]
    assert len(chosen) == len(numbers)
    for place, number in enumerate(numbers):
        assert chosen[place].equals(data[number])
        assert data[number].query_ids[0] == data.query_ids[number]


@MANY
@given(any_data(), st.integers(-7, 7), st.integers(-7, 7), st.sampled_from([1, 1, 2, -1, None]))
def test_a_slice_equals_the_numbers_it_stands_for(data: Any, first: int, last: int, step: int | None) -> None:
    numbers = list(range(len(data)))[first:last:step]
    assert data[first:last:step].equals(data[np.array(numbers, dtype=int)])
    mask = np.isin(np.arange(len(data)), numbers)
    assert data[mask].equals(data[np.flatnonzero(mask)])


def test_a_slice_copies_no_features_and_bad_choices_are_refused() -> None:
    data = cr.RankingData(np.zeros((4, 2)), sizes=[1, 2, 1])
    assert np.shares_memory(data[1:3].X, data.X)
    assert data[-1].equals(data[2])
    for bad in (3, -4, [0, 3]):
        with pytest.raises(IndexError, match="there are 3 queries"):
            data[bad]
    with pytest.raises(IndexError, match="mask has 2 entries"):
        data[[True, False]]
    with pytest.raises(TypeError, match="choose queries by"):
        data["q1"]


@MANY
@given(any_data())
def test_parts_put_together_again_are_the_whole(data: Any) -> None:
    whole = cr.concatenate([data[number] for number in range(len(data))])
    assert whole.equals(data)
    assert cr.concatenate([data]).equals(data)


@MANY
@given(any_data())
def test_equals_sees_every_difference(data: Any) -> None:
    assert data.equals(data.replace())
    other_ids = [f"other{number}" for number in range(len(data))]
    assert data.supervision in ("preferences", "rankings") or not data.equals(data.replace(query_ids=other_ids))
    assert not data.equals(data.replace(doc_weight=np.full(data.n_docs, 7.0)))
    assert not data.equals(data.replace(columns={"new": np.zeros(data.n_docs)}))
    if data.X is not None:
        assert not data.equals(data.replace(X=data.X + data.X))
    if data.supervision == "grades" and data.judged is None:
        assert not data.equals(data.replace(y=data.y + 1))
    zeros = cr.RankingData(np.zeros((1, 1)), sizes=[1])
    assert not zeros.equals(cr.RankingData(-np.zeros((1, 1)), sizes=[1]))
    assert not data.equals(None)


def test_replace_takes_one_supervision_for_another_and_knows_its_arguments() -> None:
    data = cr.RankingData(y=[1, 0], sizes=[2])
    changed = data.replace(preferences=cr.Preferences([0], [1]))
    assert changed.supervision == "preferences"
    assert changed.y is None
    with pytest.raises(TypeError, match="Did you mean 'doc_weight'"):
        data.replace(doc_weigth=[1, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((1, 3))}, "features: 2 and 3"),
        ({"X": None}, "features: 2 and 0"),
        ({"feature_names": ["a", "c"]}, "feature names: b and c"),
        ({"feature_names": None}, "feature names"),
        ({"y": None, "rankings": cr.Rankings([[0]])}, "supervision: grades and rankings"),
        ({"doc_ids": None}, "doc_ids: given and missing"),
        ({"columns": {"d": [0]}}, "columns: ['c'] and ['d']"),
        ({"feature_base": 0}, "first feature: 1 and 0"),
        ({"categorical": {0: ("x",)}}, "categories"),
    ],
)
def test_unlike_data_cannot_be_put_together(change: dict[str, Any], message: str) -> None:
    common: dict[str, Any] = {
        "X": np.zeros((1, 2)),
        "y": [0],
        "sizes": [1],
        "doc_ids": ["d"],
        "feature_names": ["a", "b"],
        "columns": {"c": [0]},
    }
    other = {**common, **change}
    if other["X"] is not None and other["X"].shape[1] == 3:
        other["feature_names"] = None
    if other["X"] is None:
        other["feature_names"] = None
    with pytest.raises(ValueError) as caught:
        cr.concatenate([cr.RankingData(**common), cr.RankingData(**other)])
    assert message in str(caught.value)
    with pytest.raises(ValueError, match="at least one"):
        cr.concatenate([])


def test_numbers_and_text_as_ids_stay_apart_when_put_together() -> None:
    both = cr.concatenate(
        [cr.RankingData(y=[0], sizes=[1], query_ids=[1]), cr.RankingData(y=[0], sizes=[1], query_ids=["1"])]
    )
    assert both.query_ids.tolist() == [1, "1"]


def test_parts_that_were_grouped_give_back_the_callers_rows_one_after_the_other() -> None:
    a = cr.RankingData(y=[0, 1, 2], qid=["a", "b", "a"], group_rows=True)
    b = cr.RankingData(y=[3, 4], qid=["c", "c"])
    whole = cr.concatenate([a, b, a[1]])
    assert whole.in_caller_order(whole.y).tolist() == [0, 1, 2, 3, 4, 1]
    assert a.replace(y=[1, 1, 1]).source_rows.tolist() == [0, 2, 1]


def test_text_and_numbers_of_one_column_are_not_put_together() -> None:
    one, two = (cr.RankingData(y=[0], sizes=[1], columns={"c": values}) for values in ([1], ["1"]))
    with pytest.raises(ValueError, match="column c"):
        cr.concatenate([one, two])
    known = cr.RankingData(y=[0], sizes=[1], posterior=cr.Judgements([[[0]]]))
    with pytest.raises(ValueError, match="known distribution"):
        cr.concatenate([known, known.replace(posterior=None)])


def test_an_empty_part_changes_no_ids() -> None:
    text = cr.RankingData(y=[0], sizes=[1], query_ids=["q"])
    number = cr.RankingData(y=[0], sizes=[1], query_ids=[7])
    assert cr.concatenate([text[:0], number]).query_ids.tolist() == [7]


def test_weights_that_one_part_lacks_are_one() -> None:
    a = cr.RankingData(y=[0], sizes=[1], query_weight=[3])
    b = cr.RankingData(y=np.ma.masked_array([1], [True]), sizes=[1])
    both = cr.concatenate([a, b])
    assert both.query_weight.tolist() == [3, 1]
    assert both.judged.tolist() == [True, False]


# --- the same query seen many times ----------------------------------------------------------------------------------


def naive_merge(data: Any) -> dict[Any, tuple[list[Any], dict[tuple[Any, ...], float]]]:
    """For each query: its documents in order of appearance, and the weight of each judgement {document: label}."""
    found: dict[Any, tuple[list[Any], dict[tuple[Any, ...], float]]] = {}
    for number in range(len(data)):
        part = data[number]
        documents, judgements = found.setdefault(part.query_ids[0], ([], {}))
        for name in part.doc_ids.tolist():
            if name not in documents:
                documents.append(name)
        key = (number, *zip(part.doc_ids.tolist(), part.y.tolist(), strict=True))
        judgements[key] = 1.0 if part.query_weight is None else float(part.query_weight[0])
    return found


@MANY
@given(st.integers(0, 10**6), st.integers(1, 7), st.booleans())
def test_merged_judgements_are_those_of_the_single_lists(seed: int, lists: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, lists)
    names = np.concatenate([rng.choice(5, n, replace=False) for n in sizes])
    data = cr.RankingData(
        names[:, None] * 1.0,
        rng.integers(0, 3, sizes.sum()),
        sizes=sizes,
        query_ids=rng.choice(["a", "b", "c"], lists),
        doc_ids=names,
        query_weight=rng.random(lists) + 0.1 if weighted else None,
    )
    merged = data.merge_queries()
    expected = naive_merge(data)
    if len(expected) == lists:
        assert merged is data
        return
    assert merged.query_ids.tolist() == list(expected)
    for number, (documents, judgements) in enumerate(expected.values()):
        part = merged[number]
        assert part.doc_ids.tolist() == documents
        assert part.X[:, 0].tolist() == documents
        weights = list(judgements.values())
        assert part.query_weight[0] == pytest.approx(sum(weights), rel=1e-12)
        np.testing.assert_allclose(merged.judges.probabilities(number), np.array(weights) / sum(weights), rtol=1e-12)
        table = [[dict(labels).get(name, np.nan) for name in documents] for _, *labels in judgements]
        np.testing.assert_array_equal(merged.judges.matrix(number), table)


def test_training_on_the_mean_utility_is_training_on_all_lists() -> None:
    rng = np.random.default_rng(0)
    sessions = cr.RankingData(
        y=rng.integers(0, 3, 40), sizes=[4] * 10, query_ids=rng.choice(["a", "b"], 10), query_weight=rng.random(10)
    )
    merged = sessions.merge_queries()
    weight = dict(zip(merged.query_ids.tolist(), merged.query_weight, strict=True))
    mean = {
        q: merged.judges.probabilities(i) @ merged.judges.matrix(i) for i, q in enumerate(merged.query_ids.tolist())
    }

    def squared_loss(scores: dict[str, np.ndarray]) -> tuple[float, float]:
        single = sum(
            w * ((sessions.y[sessions.rows(i)] - scores[q]) ** 2).sum()
            for i, (q, w) in enumerate(zip(sessions.query_ids.tolist(), sessions.query_weight, strict=True))
        )
        return single, sum(weight[q] * ((mean[q] - scores[q]) ** 2).sum() for q in mean)

    (one, one_merged), (two, two_merged) = (squared_loss({q: rng.normal(size=4) for q in ("a", "b")}) for _ in range(2))
    assert one - two == pytest.approx(one_merged - two_merged, rel=1e-12)
    assert one != pytest.approx(one_merged, rel=1e-3)


def test_merging_keeps_preferences_and_rankings_apart_as_judgements() -> None:
    data = cr.RankingData(
        sizes=[3, 2, 2],
        query_ids=["q", "q", "r"],
        doc_ids=["x", "y", "z", "z", "w", "x", "y"],
        query_weight=[1, 3, 1],
    )
    with_ids = [
        cr.RankingData(sizes=[n], query_ids=[q], doc_ids=d)
        for n, q, d in ((3, "q", ["x", "y", "z"]), (2, "q", ["z", "w"]), (2, "r", ["x", "y"]))
    ]
    ranked = (
        cr.concatenate(
            [
                part.replace(rankings=cr.Rankings([order], query=part.query_ids))
                for part, order in zip(with_ids, ([2, 0, 1], [1, 0], [0, 1]), strict=True)
            ]
        )
        .replace(query_weight=data.query_weight)
        .merge_queries()
    )
    assert ranked.doc_ids.tolist() == ["x", "y", "z", "w", "x", "y"]
    assert ranked.rankings.orders(0) == [(2, 0, 1), (3, 2)]
    assert ranked.rankings.probabilities(0).tolist() == [0.25, 0.75]
    preferred = cr.concatenate(
        [part.replace(preferences=cr.Preferences([0], [1], query=part.query_ids)) for part in with_ids]
    ).merge_queries()
    assert preferred.preferences.matrix(0)[0, 1] == 0.5
    assert preferred.preferences.matrix(0)[2, 3] == 0.5
    assert preferred.preferences.matrix(1)[0, 1] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": [2, 1]}, "query q is seen with 1 and with 2 documents: without doc_ids"),
        ({"sizes": [1, 2], "doc_ids": ["x", "x", "x"]}, "query q: document x occurs twice"),
        ({"sizes": [1, 2], "doc_ids": ["x", "x", "y"], "X": [[1.0], [2.0], [0.0]]}, "feature 1 differs"),
        ({"sizes": [1, 2], "doc_ids": ["x", "x", "y"], "doc_weight": [1, 2, 3]}, "doc_weight differs"),
        ({"sizes": [1, 2], "doc_ids": ["x", "x", "y"], "columns": {"c": ["a", "b", "c"]}}, "c differs"),
    ],
)
def test_documents_that_cannot_be_matched_are_refused(arguments: dict[str, Any], message: str) -> None:
    data = cr.RankingData(y=[0, 1, 1], query_ids=["q", "q"], **arguments)
    with pytest.raises(ValueError, match=message):
        data.merge_queries()
    if "differs" in message:
        assert data.merge_queries(features="first").n_docs == 2
    with pytest.raises(ValueError, match='"equal" or "first"'):
        data.merge_queries(features="mean")


def test_equal_missing_columns_are_no_difference_and_no_weight_keeps_the_judgements() -> None:
    data = cr.RankingData(
        y=[0, 1], sizes=[1, 1], query_ids=["q", "q"], columns={"price": [np.nan, np.nan]}, query_weight=[0, 0]
    )
    merged = data.merge_queries()
    assert merged.judges.probabilities(0).tolist() == [0.5, 0.5]
    assert merged.query_weight.tolist() == [0]


def test_merged_rankings_have_the_form_of_rankings_made_by_hand() -> None:
    parts = [
        cr.RankingData(sizes=[2], query_ids=["q"], doc_ids=ids, rankings=cr.Rankings([[(0, 1)]], query=["q"]))
        for ids in (["x", "y"], ["y", "x"])
    ]
    merged = cr.concatenate(parts).merge_queries()
    assert merged.rankings.orders(0) == [((0, 1),), ((0, 1),)]


def test_equal_missing_features_are_no_difference() -> None:
    X = np.array([[np.nan], [np.nan]])
    for features in (X, sparse.csr_array(X)):
        data = cr.RankingData(features, [0, 1], sizes=[1, 1], query_ids=["q", "q"])
        assert data.merge_queries().judges.matrix(0).tolist() == [[0], [1]]


# --- folders ---------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(any_data(), st.booleans())
def test_a_saved_folder_opens_as_the_same_data(tmp_path_factory: Any, data: Any, memory_map: bool) -> None:
    folder = tmp_path_factory.mktemp("saved") / "data"
    data.save(folder)
    again = cr.RankingData.open(folder, memory_map=memory_map)
    assert again.equals(data)
    assert again[0].equals(data[0])
    again.save(folder)  # onto itself, while its arrays are mapped
    assert cr.RankingData.open(folder).equals(data)
    assert [path.name for path in folder.parent.iterdir()] == ["data"]


def test_a_folder_keeps_the_callers_order_categories_and_odd_ids(tmp_path: Path) -> None:
    data = cr.RankingData(
        np.array([[0.0], [1.0], [0.0]]), [0, 1, 2], qid=[1, "a", 1], group_rows=True, categorical={0: ("x", "y")}
    )
    data.save(tmp_path / "d")
    again = cr.RankingData.open(tmp_path / "d")
    assert again.in_caller_order(again.y).tolist() == [0, 1, 2]
    assert again.categories == {0: ("x", "y")}
    assert again.query_ids.tolist() == [1, "a"]
    odd = np.empty(1, object)
    odd[0] = (1, 2)
    with pytest.raises(ValueError, match="identifiers of type tuple cannot be saved"):
        cr.RankingData(y=[0], sizes=[1], query_ids=odd).save(tmp_path / "e")
    assert not (tmp_path / "e").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


def test_other_folders_and_files_are_never_overwritten(tmp_path: Path) -> None:
    data = cr.RankingData(y=[0], sizes=[1])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("x")
    for name in ("mine", "file"):
        with pytest.raises(ValueError, match="left as it is"):
            data.save(tmp_path / name)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    data.save(tmp_path / "empty")
    assert cr.RankingData.open(tmp_path / "empty").equals(data)


def test_a_damaged_folder_is_refused_by_the_name_of_its_file(tmp_path: Path) -> None:
    data = cr.RankingData(np.ones((3, 2), np.float32), [0, 1, 0], sizes=[1, 2], rankings=None)
    data.save(tmp_path / "good")

    def damaged(change: Any) -> str:
        shutil.rmtree(tmp_path / "bad", ignore_errors=True)
        shutil.copytree(tmp_path / "good", tmp_path / "bad")
        change(tmp_path / "bad")
        with pytest.raises(ValueError) as caught:
            cr.RankingData.open(tmp_path / "bad")
        return str(caught.value)

    def edit(place: Path, **changes: Any) -> None:
        index = json.loads((place / "calirank-data.json").read_text())
        (place / "calirank-data.json").write_text(json.dumps({**index, **changes}))

    assert "has no calirank-data.json" in damaged(lambda folder: (folder / "calirank-data.json").unlink())
    assert "damaged" in damaged(lambda folder: (folder / "calirank-data.json").write_text("{"))
    assert "format version 99" in damaged(lambda folder: edit(folder, version=99))
    assert "does not describe" in damaged(lambda folder: edit(folder, format="other"))
    assert "calirank-data.json is damaged" in damaged(lambda folder: edit(folder, arrays={}))
    assert "names no folder of arrays" in damaged(lambda folder: edit(folder, folder="../good"))

    def file(folder: Path, name: str) -> Path:
        (found,) = folder.glob(f"arrays-*/{name}.npy")
        return found

    assert "y.npy is missing" in damaged(lambda folder: file(folder, "y").unlink())
    assert "X.npy is damaged" in damaged(lambda folder: file(folder, "X").write_bytes(b"\x93NUMPY"))
    assert "y.npy: expected" in damaged(lambda folder: np.save(file(folder, "y"), np.zeros(5)))
    assert "offsets is damaged" in damaged(lambda folder: np.save(file(folder, "offsets"), np.array([0, 5, 3])))
    with pytest.raises(FileNotFoundError, match="no such data folder"):
        cr.RankingData.open(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="expected a calirank data folder, got a file"):
        cr.RankingData.open(tmp_path / "file")


def test_a_folder_saved_again_and_again_is_never_a_mixture(tmp_path: Path) -> None:
    versions = [cr.RankingData(np.full((50, 2), float(n)), np.full(50, float(n)), sizes=[50]) for n in range(2)]
    versions[0].save(tmp_path / "d")
    done = threading.Event()
    seen: set[float] = set()

    def read() -> None:
        while not done.is_set():
            data = cr.RankingData.open(tmp_path / "d")
            seen.add(float(data.y[0]))
            assert (data.y[0] == data.X).all()

    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            read()
        except BaseException as error:  # shown below, in the thread of the test
            errors.append(error)

    reader = threading.Thread(target=guarded)
    reader.start()
    for turn in range(100):
        versions[turn % 2].save(tmp_path / "d")
    done.set()
    reader.join()
    assert errors == []
    assert seen == {0.0, 1.0}
    assert len(list((tmp_path / "d").iterdir())) == 2  # the index and the arrays that it names


def test_a_save_that_fails_leaves_the_old_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = cr.RankingData(y=[1, 0], sizes=[2])
    old.save(tmp_path / "d")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    for name in ("d", "new"):
        with pytest.raises(OSError, match="No space left"):
            cr.RankingData(y=[0, 1], sizes=[2]).save(tmp_path / name)
    monkeypatch.undo()
    assert cr.RankingData.open(tmp_path / "d").equals(old)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]
    assert len(list((tmp_path / "d").iterdir())) == 2


def test_no_attribute_can_be_set() -> None:
    data = cr.RankingData([[1.0]], [0], sizes=[1])
    for held in (data, data[0], data.replace(y=[1]), pickle.loads(pickle.dumps(data))):
        with pytest.raises(AttributeError, match=r"read-only; data\.replace\(y=\.\.\.\)"):
            held.y = np.array([2.0])
        with pytest.raises(TypeError, match="does not support item assignment"):
            held.columns["c"] = np.array([2.0])


def test_what_is_no_ranking_data_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected RankingData, got str 'train.txt'; cr\.read\(path\) reads a file"):
        cr.describe("train.txt")
    with pytest.raises(TypeError, match="expected RankingData, got int '5'"):
        cr.concatenate([cr.RankingData(y=[0], sizes=[1]), 5])


def test_posterior_is_only_for_data_of_known_truth() -> None:
    data = cr.RankingData(y=[0, 1], sizes=[2])
    with pytest.raises(ValueError, match="not known"):
        data.posterior(0)
    truth = cr.Judgements([[[0, 1], [1, 0]]], weight=[3, 1])
    outcomes, probabilities = cr.RankingData(y=[0, 1], sizes=[2], posterior=truth).posterior(0)
    assert outcomes.tolist() == [[0, 1], [1, 0]]
    assert probabilities.tolist() == [0.75, 0.25]
