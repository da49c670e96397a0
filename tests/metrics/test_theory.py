"""Facts about values of metrics that the papers, or the definitions worked out by hand, give."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import calirank as cr

HALF = Fraction(1, 2)


def mean_value(metric: Any, q: list[tuple[Fraction, list[int]]], order: tuple[int, ...]) -> Fraction:
    """The expectation of the metric of one order, when the labels are distributed as q."""
    value = sum((share * metric.exact(labels, order) for share, labels in q), Fraction(0))
    assert isinstance(value, Fraction)
    return value


def best_orders(metric: Any, q: list[tuple[Fraction, list[int]]]) -> list[tuple[int, ...]]:
    values = {order: mean_value(metric, q, order) for order in itertools.permutations(range(len(q[0][1])))}
    return [order for order, value in values.items() if value == max(values.values())]


WITNESS = [(HALF, [1, 1, 0, 0]), (HALF, [0, 0, 1, 1])]


@pytest.mark.parametrize(
    ("metric", "difference"), [(cr.metrics.ERR(max_grade=1), Fraction(1, 48)), (cr.metrics.AP(), Fraction(-1, 24))]
)
def test_constant_utilities_do_not_make_all_orders_alike(metric: Any, difference: Fraction) -> None:
    """The two witnesses of Theorem 3 [ICML11]: by symmetry no item is better, and yet 1>3>2>4 and 1>2>3>4 differ."""
    assert mean_value(metric, WITNESS, (0, 2, 1, 3)) - mean_value(metric, WITNESS, (0, 1, 2, 3)) == difference


@pytest.mark.parametrize(
    ("metric", "labels", "items"),
    [
        (cr.metrics.ERR(max_grade=1), [0, 0, 1, 1], 16),  # one component of 16
        (cr.metrics.AP(), [0, 0, 1, 1], 8),
    ],
)
def test_argmin_sets_of_the_witnesses(metric: Any, labels: list[int], items: int) -> None:
    """That of AP falls into two components of four orders, that of ERR is one of sixteen."""
    best = best_orders(metric, WITNESS)
    components = cr.orders.connected_components(best)
    assert len(best) == items
    assert np.bincount(components).tolist() == ([16] if items == 16 else [4, 4])


@pytest.mark.parametrize("share", [Fraction(51, 100), Fraction(11, 20), Fraction(7, 12), Fraction(3, 5)])
def test_unequal_shares_leave_four_isolated_orders_for_err(share: Fraction) -> None:
    best = best_orders(cr.metrics.ERR(max_grade=1), [(share, [1, 1, 0, 0]), (1 - share, [0, 0, 1, 1])])
    assert cr.orders.connected_components(best).tolist() == [0, 1, 2, 3]


def test_two_components_of_err_with_three_items() -> None:
    """7/12 (1,1,0) + 5/12 (0,0,1): the best orders are 1>3>2 and 2>3>1, no adjacent swap apart."""
    q = [(Fraction(7, 12), [1, 1, 0]), (Fraction(5, 12), [0, 0, 1])]
    best = best_orders(cr.metrics.ERR(max_grade=1), q)
    assert best == [(0, 2, 1), (1, 2, 0)]
    assert cr.orders.connected_components(best).tolist() == [0, 1]
    connected = best_orders(cr.metrics.ERR(max_grade=2), q)
    assert set(cr.orders.connected_components(connected).tolist()) == {0}


@pytest.mark.parametrize("labels", list(itertools.product([0, 1], repeat=4)), ids=str)
def test_ap_at_1_is_the_first_label_over_the_number_of_relevant_ones(labels: tuple[int, ...]) -> None:
    """So it is a sum of discounted utilities, and sorting by the expected utility is optimal."""
    for order in itertools.permutations(range(4)):
        expected = Fraction(labels[order[0]], sum(labels)) if any(labels) else 0
        assert cr.metrics.AP(k=1).exact(labels, order) == expected


@pytest.mark.parametrize("labels", list(itertools.product([0, 1, 2], repeat=3)), ids=str)
def test_preferences_weighted_by_differences_are_a_sum_over_ranks(labels: tuple[int, ...]) -> None:
    """The lost weight is a constant plus Σ rank · grade for binary labels, and for differences of grades."""
    graded = cr.metrics.PD(normalise=False, pairs="difference")
    binary = [min(label, 1) for label in labels]
    for metric, y in ((graded, labels), (cr.metrics.PD(normalise=False), binary)):
        sums = {
            metric.exact(y, order) + sum(rank * y[item] for rank, item in enumerate(order))
            for order in itertools.permutations(range(3))
        }
        assert len(sums) == 1


@pytest.mark.parametrize(("gain", "ranked", "tied"), [("exponential", 0.6590, 0.783), ("linear", 0.6697, 0.810)])
def test_ndcg_that_is_published(gain: Any, ranked: float, tied: float) -> None:
    """Labels (0, 2, 1) ranked in that order; and labels 0, 1, 2 with equal scores."""
    metric = cr.metrics.NDCG(gain=gain)
    assert metric([0, 2, 1], order=[0, 1, 2]) == pytest.approx(ranked, abs=5e-5)
    assert metric([0, 2, 1], scores=[3, 2, 1]) == pytest.approx(ranked, abs=5e-5)
    assert metric([0, 1, 2], scores=[0.0, -0.0, 0.0]) == pytest.approx(tied, abs=5e-4)


def test_values_worked_out_by_hand() -> None:
    """One list, relevant documents at ranks 2 and 4 of 5."""
    labels, order = [0, 1, 0, 1, 0], [0, 1, 2, 3, 4]
    expected = {
        "precision@3": Fraction(1, 3),
        "precision@10": Fraction(2, 10),
        "precision(divisor=min)@10": Fraction(2, 5),
        "recall@3": Fraction(1, 2),
        "auc": Fraction(3, 6),
        "ap": Fraction(1, 2),
        "ap@2": Fraction(1, 4),
        "ap(divisor=min)@1": Fraction(0),
        "ap(divisor=min)@2": Fraction(1, 4),
        "rr": Fraction(1, 2),
        "rr@1": Fraction(0),
        "rbp(p=0.5)": Fraction(1, 4) + Fraction(1, 16),
        "err(max_grade=1)": Fraction(1, 4) + Fraction(1, 16),
        "pd": HALF,
        "wta": Fraction(0),
    }
    for name, value in expected.items():
        assert cr.metric(name).exact(labels, order) == value, name
        assert cr.metric(name)(labels, order=order) == pytest.approx(float(value), abs=1e-15), name


def test_rankings_worked_out_by_hand() -> None:
    """The ranking 0>1>2, and the order 1>0>2: one adjacent swap."""
    for name, value in {"spearman": HALF, "kendall": Fraction(1, 3), "zero_one": 0}.items():
        assert cr.metric(name).exact([0, 1, 2], [1, 0, 2]) == value, name
        assert cr.metric(name).exact([1, 0, 2], [1, 0, 2]) == 1, name
    for name in ("spearman", "kendall"):
        assert cr.metric(name).exact([0, 1, 2], [2, 1, 0]) == -1, name
    assert cr.metric("zero_one")([0, 1, 2], scores=[1, 1, 0]) == HALF
    assert cr.metric("zero_one")([0, 1, 2], scores=[0, 0, 0]) == pytest.approx(1 / 6, abs=1e-15)


def test_a_user_s_function_is_a_metric() -> None:
    def first(labels: Any, order: Any) -> Fraction:
        assert type(labels) is tuple
        assert type(order) is tuple
        assert all(type(item) is int for item in (*labels, *order))
        return Fraction(labels[order[0]], 3)

    metric = cr.metric(first)
    assert metric([3, 0, 1], order=[0, 1, 2]) == 1
    assert metric([3, 0, 1], scores=[1.0, 1.0, 0.0]) == HALF
