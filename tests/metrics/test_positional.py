"""Positional metrics against enumeration of tie-breakings, scikit-learn, and values worked out by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import dcg_score, ndcg_score

import calirank as cr
from calirank.names import METRICS

LISTS = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
        st.lists(st.sampled_from([-1.5, -0.0, 0.0, 2.0]), min_size=n, max_size=n),
    )
)
CHECKED = settings(max_examples=60, deadline=None)


def every_metric() -> list[Any]:
    """DCG and NDCG, with and without a cut-off."""
    entries: list[Any] = [METRICS["dcg"], METRICS["ndcg"]]
    return [entry(**arguments) for entry in entries for arguments in ({}, {"k": 2}, {"gain": "linear"}, {"k": 1})]


def naive_dcg(labels: Any, order: Any, k: int | None, gain: str) -> float:
    total = 0.0
    for place, item in enumerate(order):
        if k is None or place < k:
            total += (2 ** labels[item] - 1 if gain == "exponential" else labels[item]) / math.log2(place + 2)
    return total


@CHECKED
@given(LISTS, st.sampled_from([None, 1, 2, 5]), st.sampled_from(["exponential", "linear"]))
def test_value_at_scores_is_the_mean_over_all_tie_breakings(lists: Any, k: int | None, gain: Any) -> None:
    labels, scores = lists
    orders = [
        order
        for order in itertools.permutations(range(len(labels)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    best = max(naive_dcg(labels, order, k, gain) for order in itertools.permutations(range(len(labels))))
    mean = np.mean([naive_dcg(labels, order, k, gain) for order in orders])
    assert cr.metrics.DCG(k=k, gain=gain)(labels, scores=scores) == pytest.approx(mean, abs=1e-12)
    assert cr.metrics.DCG(k=k, gain=gain).ideal(labels) == pytest.approx(best, abs=1e-12)
    expected = mean / best if best else 0.0
    assert cr.metrics.NDCG(k=k, gain=gain)(labels, scores=scores) == pytest.approx(expected, abs=1e-12)


@CHECKED
@given(LISTS, st.sampled_from([None, 1, 3]))
def test_scikit_learn_agrees_with_linear_gains_ties_included(lists: Any, k: int | None) -> None:
    labels, scores = lists
    if len(labels) < 2:
        return  # scikit-learn refuses a list of one
    ours = cr.metrics.DCG(k=k, gain="linear")(labels, scores=scores)
    assert ours == pytest.approx(dcg_score([labels], [scores], k=k), abs=1e-12)
    ours = cr.metrics.NDCG(k=k, gain="linear")(labels, scores=scores)
    assert ours == pytest.approx(ndcg_score([labels], [scores], k=k), abs=1e-12)


@pytest.mark.parametrize("metric", every_metric(), ids=str)
@CHECKED
@given(lists=LISTS)
def test_utility_discount_and_offset_reproduce_the_value(metric: Any, lists: Any) -> None:
    labels, _ = lists
    for order in itertools.islice(itertools.permutations(range(len(labels))), 24):
        rebuilt = metric.offset(labels) + metric.utility(labels)[list(order)] @ metric.discount(len(labels))
        assert metric(labels, order=order) == pytest.approx(rebuilt, abs=1e-12)
        assert metric(labels, order=order) <= metric.ideal(labels) + 1e-12


def test_published_values() -> None:
    """Labels (0, 2, 1) in that order, and all tied with labels (0, 1, 2)."""
    assert cr.metric("ndcg")([0, 2, 1], scores=[3, 2, 1]) == pytest.approx(0.6590, abs=5e-5)
    assert cr.metric("ndcg(gain=linear)")([0, 2, 1], scores=[3, 2, 1]) == pytest.approx(0.6697, abs=5e-5)
    assert cr.metric("ndcg")([0, 1, 2], scores=[0, 0, 0]) == pytest.approx(0.783, abs=5e-4)
    assert cr.metric("ndcg(gain=linear)")([0, 1, 2], scores=[0, 0, 0]) == pytest.approx(0.810, abs=5e-4)


def test_a_list_with_nothing_to_gain_has_the_value_that_was_asked_for() -> None:
    assert cr.metric("ndcg@10")([0, 0], scores=[1, 2]) == 0
    assert cr.metric("ndcg(empty=1)@10")([0, 0], scores=[1, 2]) == 1
    assert cr.metric("ndcg(empty=1)@10").utility([0, 0]).tolist() == [0, 0]
    assert cr.metric("ndcg(empty=1)@10")([1, 0], order=[0, 1]) == 1  # and a list with something to gain is not raised
    assert cr.metric("ndcg(empty=1)@1")([1, 0], order=[1, 0]) == 0


@CHECKED
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_the_order_of_rows_changes_no_bit(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    labels, scores = rng.random(n) * 4, rng.integers(0, 3, n)
    moved = rng.permutation(n)
    for metric in (cr.metrics.DCG(), cr.metrics.NDCG(k=5)):
        assert metric(labels, scores=scores) == metric(labels[moved], scores=scores[moved])


def test_names_are_values() -> None:
    assert cr.metric("ndcg@10") == cr.metrics.NDCG(k=10)
    assert cr.metric(cr.metrics.DCG()) == cr.metric("dcg")
    for metric in every_metric():
        assert cr.metric(str(metric)) == metric
    assert cr.metric("dcg(gain=[0, 1, 5])")([2, 1], order=[1, 0]) == pytest.approx(1 + 5 / math.log2(3))
    with pytest.raises(ValueError, match="Did you mean 'ndcg'"):
        cr.metric("ncdg@10")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m([1, -1], scores=[1, 2]), "expected labels >= 0; got -1 for document 1"),
        (lambda m: m([1, np.nan], scores=[1, 2]), "got nan for document 1"),
        (lambda m: m([[1]], scores=[1]), "one label a document"),
        (lambda m: m.offset(np.ma.masked_array([1, np.nan], [False, False])), "got nan for document 1"),
        (lambda m: m([1, 0], scores=np.ma.masked_array([1, 2], [False, True])), "masked"),
        (lambda m: m([2000, 1], scores=[1, 2]), "above 1000 is beyond all numbers; got 2000 for document 0"),
        (lambda m: m([1, 0], scores=[1]), "2 labels and 1 scores"),
        (lambda m: m([1, 0], scores=[1, np.nan]), "nan"),
        (lambda m: m([1, 0]), "scores or an order"),
        (lambda m: m([1, 0], scores=[1, 2], order=[0, 1]), "and not both"),
        (lambda m: m([1, 0], order=[0, 0]), "0 stands twice"),
        (lambda m: type(m)(k=0), "cut-off k is a whole number from 1"),
        (lambda m: type(m)(gain="cubic")([2], order=[0]), "needs the column 'cubic'"),
        (lambda m: type(m)(gain=3), 'gain is "exponential"'),
        (lambda m: type(m)(gain=(0, -1)), "gains >= 0 by grade"),
        (lambda m: type(m)(gain=(0, 1))([2], order=[0]), "grades 0 to 1; got 2 for document 0"),
        (lambda m: type(m)(base=1), "base is a finite number > 1"),
    ],
)
def test_wrong_input_is_refused(call: Any, message: str) -> None:
    for metric in (cr.metrics.DCG(), cr.metrics.NDCG()):
        with pytest.raises((ValueError, TypeError)) as caught:
            call(metric)
        assert message in str(caught.value).lower() or message in str(caught.value)
    with pytest.raises(ValueError, match="finite number"):
        cr.metrics.NDCG(empty=np.nan)
