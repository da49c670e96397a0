"""Bounds are the lowest and highest value over all assignments of the missing labels."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from calirank.metrics import AP, AUC, DCG, ERR, ERU, NDCG, RBP, RR, LabelMetric, Precision, Recall
from calirank.metrics.bounds import bounds_of_lists
from calirank.metrics.lists import Labels, Lists, Scores, each_block

EMPTY = (0.0, 1, 0.5, "skip")
CUTOFFS = (None, 1, 2, 4)

BINARY: list[LabelMetric] = [
    *(Precision(k=k, divisor=divisor) for k in CUTOFFS for divisor in ("k", "min")),
    *(Precision(k=k, relevant=2) for k in (None, 3)),
    *(RBP(p=0.7, k=k) for k in (None, 2)),
    *(Recall(k=k, empty=empty) for k in CUTOFFS for empty in EMPTY),
    *(AUC(empty=empty) for empty in EMPTY),
    *(AP(k=k, divisor=divisor, empty=empty) for k in CUTOFFS for divisor in ("relevant", "min") for empty in EMPTY),
    *(RR(k=k, empty=empty) for k in (None, 2) for empty in EMPTY),
    AP(k=3, relevant=2, empty=-1),
    AUC(relevant=2, empty=0.9),
]
GRADED: list[LabelMetric] = [
    *(DCG(k=k, max_grade=2) for k in CUTOFFS),
    DCG(gain="linear", weight="worth", max_grade=2),
    *(DCG(gain=gain, k=3) for gain in ((0, 3, 1), (1, 0, 5), (2, 2), (1,))),
    DCG(gain=(1, 4, 0, 2), max_grade=2, weight="worth"),
    *(ERU(v=v, w=2, k=k, max_grade=2) for v in (0, 1, 3) for k in (None, 2)),
    ERU(weight="worth", max_grade=2),
    *(ERR(k=k, max_grade=2, empty=empty) for k in (None, 2) for empty in EMPTY),
]
IDEALS: list[LabelMetric] = [
    *(
        NDCG(k=k, gain=gain, max_grade=2, ideal_over=over, empty=empty)
        for k in CUTOFFS
        for gain, empty in (("exponential", 0.0), ("linear", "skip"), ("linear", 0.5))
        for over in ("judged", "list")
    ),
    *(NDCG(k=3, gain=gain, empty=empty) for gain in ((0, 3, 1), (1, 0, 5), (2, 1, 4)) for empty in ("skip", 1)),
    NDCG(gain=(0, 1, 5, 9), max_grade=2, ideal_over="list"),
    NDCG(gain=(0, 0), empty=0.25),
    NDCG(max_grade=0, empty=0.25),
]


# --- the naive twin ---------------------------------------------------------------------------------------------------


def grid_of(metric: Any) -> list[float]:
    """Labels that a document may have."""
    if hasattr(metric, "relevant"):
        return [0, metric.relevant]
    if isinstance(getattr(metric, "gain", None), tuple):
        return list(range(int(min(len(metric.gain) - 1.0, metric.top_label())) + 1))
    step = 1 if isinstance(metric, ERR) else 0.5
    return np.arange(0, metric.top_label() + step / 2, step).tolist()


Row = tuple[float | None, float | None, float]  # label or None, score or None, the column


def arrays(metric: Any, lists: Sequence[Sequence[Row]]) -> dict[str, Any]:
    """Many lists as the arguments of ``bounds_of_lists``; documents whose score is None are not ranked."""
    rows = [row for one in lists for row in one]
    offsets = np.cumsum([0, *map(len, lists)])
    # columns that a metric does not use are left out, so that whole labels are codes
    columns = {"worth": np.array([row[2] for row in rows])} if metric.columns else {}
    labels = Labels(np.array([row[0] or 0.0 for row in rows]), offsets, columns)
    if labels.rows is None:  # scores in any order, such as the reversed one of each list
        order = np.concatenate([np.arange(a, b)[::-1] for a, b in itertools.pairwise(offsets)])
    else:  # scores in the order of places
        order = labels.rows
    ranked = np.array([row for row in order if rows[row][1] is not None], np.int64)
    scores = np.array([rows[row][1] for row in ranked], np.float64)
    counts = [sum(row[1] is not None for row in one) for one in lists]
    return {
        "labels": labels,
        "missing": np.array([row[0] is None for row in rows], np.bool_),
        "scores": Scores(scores, labels.places[ranked], np.cumsum([0, *counts])),
        "ranked_rows": ranked,
    }


def values_of(metric: Any, lists: Sequence[Sequence[Row]]) -> NDArray[np.float64]:
    """The values of lists without missing labels."""
    given = arrays(metric, lists)
    return metric.values(Lists(given["labels"], given["scores"], 0, len(lists)))


def enumerated(metric: Any, one: Sequence[Row], grid: Sequence[float]) -> tuple[float, float]:
    """The lowest and highest value over all assignments."""
    places = [place for place, row in enumerate(one) if row[0] is None]
    filled = []
    for chosen in itertools.product(grid, repeat=len(places)):
        given = dict(zip(places, chosen, strict=True))
        filled.append([(given.get(place, row[0]), *row[1:]) for place, row in enumerate(one)])
    values = values_of(metric, filled)
    values = values[~np.isnan(values)]
    return (float(values.min()), float(values.max())) if len(values) else (math.nan, math.nan)


def check(metric: Any, lists: Sequence[Sequence[Row]], grid: Sequence[float] | None = None) -> None:
    """The bounds of many lists at once are those of the enumeration."""
    low, high = bounds_of_lists(metric, **arrays(metric, lists), start=0, stop=len(lists))
    for number, one in enumerate(lists):
        expected = enumerated(metric, one, grid or grid_of(metric))
        found = float(low[number]), float(high[number])
        assert found == pytest.approx(expected, rel=1e-13, abs=1e-13, nan_ok=True), (str(metric), one)


@st.composite
def lists_for(draw: Any, metric: Any, ranked: bool = False) -> list[list[Row]]:
    """One to three lists with many ties, of at most 6 documents, at most 4 of them without a label."""
    grid = grid_of(metric)
    label = st.sampled_from([None, None, 0.0, 0.0, *grid])
    score = st.sampled_from([0.0, 1.0, 2.0, 3.0] if ranked else [None, 0.0, 1.0, 2.0, 3.0])
    worth = st.sampled_from([0.0, 0.5, 1.0, 3.0])
    lists = draw(st.lists(st.lists(st.tuples(label, score, worth), max_size=6), min_size=1, max_size=3))
    most = 3 if len(grid) > 4 else 4
    cut = []
    for one in lists:
        lacking = [place for place, row in enumerate(one) if row[0] is None]
        cut.append([row if place not in lacking[most:] else (0.0, *row[1:]) for place, row in enumerate(one)])
    return cut


# --- small lists ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [*BINARY, *GRADED, *IDEALS], ids=str)
def test_bounds_are_those_of_all_assignments(metric: Any) -> None:
    """With ties, cut-offs, unranked documents, and lists where the metric is not defined."""

    @settings(max_examples=25, deadline=None)
    @given(lists_for(metric))
    def run(lists: list[list[Row]]) -> None:
        check(metric, lists)

    run()


@pytest.mark.parametrize("metric", [*BINARY[::4], *GRADED[::3], *IDEALS[::4]], ids=str)
def test_bounds_of_one_list_are_those_of_all_assignments(metric: Any) -> None:
    """The method of a metric takes masked labels, scores and columns; the value is the lower bound."""
    bounded = dataclasses.replace(metric, unjudged="bounds")

    @settings(max_examples=10, deadline=None)
    @given(lists_for(metric, ranked=True))
    def run(lists: list[list[Row]]) -> None:
        for one in lists:
            labels = np.ma.masked_array([row[0] or 0.0 for row in one], [row[0] is None for row in one])
            scores, worth = np.array([row[1] for row in one], np.float32), [row[2] for row in one]
            found = bounded.bounds(labels, scores=scores, columns={"worth": worth})
            expected = enumerated(metric, one, grid_of(metric))
            assert found == pytest.approx(expected, rel=1e-13, abs=1e-13, nan_ok=True)
            value = bounded(labels, scores=scores, columns={"worth": worth})
            assert value == pytest.approx(found[0], nan_ok=True)

    run()


def random_list(rng: np.random.Generator, n: int, lacking: int, labels: Any, ties: int) -> list[Row]:
    """A list of n documents of which ``lacking`` have no label and some are not ranked."""
    known = labels(n).tolist()
    for place in rng.choice(n, lacking, replace=False):
        known[place] = None
    scores: list[Any] = rng.integers(0, ties, n).astype(float).tolist()
    scores = [None if rng.random() < 0.15 else score for score in scores]
    return list(zip(known, scores, [1.0] * n, strict=True))


LONGER = [Recall(k=5), AUC(), AP(), AP(k=4), AP(k=4, divisor="min", empty="skip"), RR(k=3), AUC(empty="skip")]


@pytest.mark.parametrize("metric", LONGER, ids=str)
@pytest.mark.parametrize("ties", [3, 1000])
def test_bounds_of_lists_of_many_missing_binary_labels(metric: Any, ties: int) -> None:
    """Twelve documents, up to nine without a label."""
    rng = np.random.default_rng(ties)
    lists = [
        random_list(rng, 12, int(rng.integers(5, 10)), lambda n: (rng.random(n) < 0.3).astype(float), ties)
        for _ in range(25)
    ]
    check(metric, lists)


@pytest.mark.parametrize("k", [None, 3, 8])
@pytest.mark.parametrize("over", ["judged", "list"])
@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("ties", [4, 1000])
def test_bounds_of_ndcg_with_many_levels(k: int | None, over: Any, gain: str, ties: int) -> None:
    """Eleven different real labels: the best labels are judged ones, 0 or the highest."""
    rng = np.random.default_rng(ties)
    metric = NDCG(k=k, ideal_over=over, gain=gain, max_grade=3)
    for _ in range(6):
        one = random_list(rng, 14, 3, lambda n: rng.uniform(0, 3, n) ** 2 / 3, ties)
        check(metric, [one], sorted({0.0, 3.0, *(row[0] for row in one if row[0] is not None)}))


@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_no_real_labels_lead_beyond_the_bounds_of_ndcg(gain: str) -> None:
    """Random labels from 0 to the highest, whole or not, stay within the bounds."""
    rng = np.random.default_rng(5)
    for k in (None, 2, 5):
        metric = NDCG(k=k, gain=gain, max_grade=2, empty="skip")
        for _ in range(20):
            one = random_list(rng, 7, 4, lambda n: rng.integers(0, 3, n).astype(float), 5)
            filled = [
                [(2 * rng.beta(0.3, 0.3) if row[0] is None else row[0], *row[1:]) for row in one] for _ in range(300)
            ]
            values = values_of(metric, filled)
            low, high = bounds_of_lists(metric, **arrays(metric, [one]), start=0, stop=1)
            if not np.isnan(values).all():
                assert low[0] - 1e-13 <= np.nanmin(values)
                assert np.nanmax(values) <= high[0] + 1e-13


def test_a_label_between_those_of_the_ends_can_be_the_best_one() -> None:
    """Raising the last document to the judged label 1/2 adds more than it costs, raising it to 1 does not."""
    labels, scores = np.ma.masked_invalid([0.5, 0, 1, np.nan]), [4, 3, 2, 1]
    metric = NDCG(gain="linear", max_grade=1)
    high = metric.bounds(labels, scores=scores)[1]
    assert high == metric([0.5, 0, 1, 0.5], scores=scores)
    assert high > max(metric([0.5, 0, 1, end], scores=scores) for end in (0, 1)) + 1e-3


# --- long lists -------------------------------------------------------------------------------------------------------

LONG: list[Any] = [
    *(Recall(k=30), AUC(), AP(), AP(k=30, divisor="min"), RR(), Precision(k=10), RBP()),
    *(NDCG(max_grade=4), NDCG(k=10, max_grade=4), NDCG(gain=(0, 1, 3, 7, 15), ideal_over="list")),
    *(DCG(max_grade=4), ERR(), ERU(v=1, max_grade=4)),
]


@pytest.mark.parametrize("metric", LONG, ids=str)
@pytest.mark.parametrize("whole", [True, False])
def test_bounds_of_long_lists_hold_for_random_labels_and_for_one_change_of_the_best(metric: Any, whole: bool) -> None:
    """Neither random labels nor the first (or last) unjudged documents being at the top lead beyond the bounds."""
    rng = np.random.default_rng(11)

    def labels(n: int) -> NDArray[np.float64]:
        if hasattr(metric, "relevant"):
            return (rng.random(n) < 0.2).astype(float)
        if whole or isinstance(getattr(metric, "gain", None), tuple):
            return rng.integers(0, 5, n) * (rng.random(n) < 0.4)
        return 4 * rng.beta(0.5, 1.5, n)

    for ties in (20, 10**6):
        one = random_list(rng, 200, 60, labels, ties)
        low, high = bounds_of_lists(metric, **arrays(metric, [one]), start=0, stop=1)
        places = [place for place, row in enumerate(one) if row[0] is None]
        places.sort(key=lambda place: -math.inf if one[place][1] is None else one[place][1], reverse=True)
        top = grid_of(metric)[-1]
        tried = [labels(60).tolist() for _ in range(100)]
        tried += [[top] * t + [0] * (60 - t) for t in range(61)]
        tried += [[0] * (60 - t) + [top] * t for t in range(61)]
        filled = []
        for chosen in tried:
            given = dict(zip(places, chosen, strict=True))
            filled.append([(given.get(place, row[0]), *row[1:]) for place, row in enumerate(one)])
        values = values_of(metric, filled)
        assert low[0] - 1e-13 <= values.min() <= values.max() <= high[0] + 1e-13
        if metric.monotone or hasattr(metric, "relevant"):
            assert (low[0], high[0]) == pytest.approx((values.min(), values.max()), abs=1e-13)
        else:
            assert low[0] == pytest.approx(values.min(), abs=1e-13)


# --- ranges of lists --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [NDCG(max_grade=2), NDCG(k=2, max_grade=2), AP(), AUC(), Recall(k=2), RR(), ERR()])
def test_ranges_of_lists_have_the_bounds_of_each_list(metric: Any) -> None:
    """Whatever range a list is judged in, by however many threads, its bounds are the same bits."""
    rng = np.random.default_rng(2)
    sizes = rng.integers(0, 12, 9000)
    top = 1 if hasattr(metric, "relevant") else 2
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = rng.integers(0, top + 1, offsets[-1]).astype(float)
    missing = (rng.random(len(values)) < 0.3) & np.repeat(rng.random(len(sizes)) < 0.7, sizes)
    values[missing] = 0
    raw = rng.integers(0, 6, len(values)) / 7
    labels = Labels(values, offsets)
    scores = Scores(raw, labels.places, offsets)
    low, high = np.empty((2, len(sizes)))

    def task(start: int, stop: int) -> None:
        low[start:stop], high[start:stop] = bounds_of_lists(metric, labels, missing, scores, start, stop)

    each_block(task, offsets)
    assert (low <= high).all()
    at_zero = metric.values(Lists(labels, scores, 0, len(sizes)))
    assert ((low <= at_zero) & (at_zero <= high)).all()
    for number in range(0, len(sizes), 150):
        a, b = offsets[number], offsets[number + 1]
        masked = np.ma.masked_array(values[a:b], missing[a:b])
        assert metric.bounds(masked, scores=raw[a:b]) == (low[number], high[number])
        if not missing[a:b].any():
            assert low[number] == high[number] == metric(values[a:b], scores=raw[a:b])


# --- what is said about one list --------------------------------------------------------------------------------------


def test_bounds_without_missing_labels_are_the_value() -> None:
    """No highest label is needed for them, and weights do no harm."""
    for metric in (DCG(), NDCG(), NDCG(weight="worth"), ERU(), AP(), ERR()):
        columns = {"worth": [1, 2, 3]} if metric.columns else None
        value = metric([0, 1, 1], scores=[3, 2, 1], columns=columns)
        assert metric.bounds([0, 1, 1], scores=[3, 2, 1], columns=columns) == (value, value)


def test_an_order_is_judged_as_the_scores_that_sort_so() -> None:
    labels = np.ma.masked_array([1, 0, 0, 1], [0, 1, 1, 0])
    for metric in (AP(), AUC(), NDCG(max_grade=1)):
        assert metric.bounds(labels, order=[2, 0, 1, 3]) == metric.bounds(labels, scores=[3, 2, 4, 1])


def test_the_bounds_do_not_depend_on_what_a_metric_does_with_missing_labels_otherwise() -> None:
    labels = np.ma.masked_array([0, 1, 0], [1, 0, 1])
    expected = RR().bounds(labels, scores=[3, 2, 1])
    assert expected == (0.5, 1.0)
    for unjudged in ("skip", "bounds"):
        assert RR(unjudged=unjudged).bounds(labels, scores=[3, 2, 1]) == expected


def test_gains_of_a_column_need_no_labels() -> None:
    """The label of a document has no part in its gain, so there is nothing to bound."""
    labels, columns = np.ma.masked_array([0, 0, 1], [1, 1, 0]), {"price": [1, 5, 2], "worth": [1, 2, 1]}
    for metric in (DCG(gain="price"), NDCG(gain="price"), NDCG(gain="price", weight="worth")):
        value = metric([0, 0, 1], scores=[3, 2, 1], columns=columns)
        assert metric.bounds(labels, scores=[3, 2, 1], columns=columns) == (value, value)


def test_the_residual_of_rbp_is_the_width_of_the_bounds_and_the_ranks_below_the_list() -> None:
    """It does not depend on what the metric does with missing labels otherwise."""
    labels = np.ma.masked_array([1, 0, 0, 1], [0, 1, 0, 1])
    for k, last in ((None, 4), (3, 3)):
        metric = RBP(p=0.5, k=k)
        low, high = metric.bounds(labels, scores=[4, 3, 2, 1])
        assert metric.residual(labels, scores=[4, 3, 2, 1]) == high - low + 0.5**last
        assert low == 0.5
        assert high == 0.5 + 0.25 + (0.0625 if k is None else 0)
    assert RBP(p=0.5).residual([1, 0], scores=[2, 1]) == 0.25
    assert RBP(p=0.5, unjudged="skip").bounds(labels, scores=[4, 3, 2, 1]) == (0.5, 0.8125)


def test_an_undefined_list_counts_with_its_number_and_not_when_it_is_skipped() -> None:
    labels = np.ma.masked_array([0, 0], [0, 1])
    assert RR(empty=1).bounds(labels, scores=[2, 1]) == (0.5, 1)
    assert RR(empty="skip").bounds(labels, scores=[2, 1]) == (0.5, 0.5)
    assert AUC(empty=0.75).bounds(np.ma.masked_array([1, 0], [0, 1]), scores=[2, 1]) == (0.75, 1)
    assert AUC(empty="skip").bounds(np.ma.masked_array([1, 0], [0, 1]), scores=[2, 1]) == (1, 1)
    assert np.isnan(AUC(empty="skip").bounds(np.ma.masked_array([0.0], [1]), scores=[2])).all()
    assert np.isnan(NDCG(empty="skip", max_grade=0).bounds(np.ma.masked_array([0.0], [1]), scores=[2])).all()
    # a reader stops at grade 1 of 4 with the probability 1/16; no grade is between 0 and 1
    assert ERR(empty="skip").bounds(labels, scores=[2, 1]) == (1 / 32, 15 / 32)


# --- what is refused --------------------------------------------------------------------------------------------------


def bounds_of_two(metric: Any, judged: float = 1.0) -> Any:
    columns = {name: [1.0, 1.0] for name in metric.columns}
    return metric.bounds(np.ma.masked_array([judged, 0], [0, 1]), scores=[2, 1], columns=columns)


@pytest.mark.parametrize("metric", [DCG(), NDCG(), ERU()])
def test_without_a_highest_label_there_are_no_bounds(metric: Any) -> None:
    with pytest.raises(TypeError, match="max_grade"):
        bounds_of_two(metric)


def test_labels_that_the_metric_does_not_take_are_refused() -> None:
    with pytest.raises(ValueError, match=r"max_grade=2; got 3 for document 0"):
        bounds_of_two(NDCG(max_grade=2), 3)
    with pytest.raises(ValueError, match=r"grades 0 to 1; got 2 for document 0"):
        bounds_of_two(DCG(gain=(0, 1)), 2)
    with pytest.raises(ValueError, match=r"above 1000 .* got 1e\+06 for the highest label that is possible"):
        bounds_of_two(DCG(max_grade=1e6))


def test_bounds_of_weighted_ndcg_are_refused() -> None:
    with pytest.raises(ValueError, match="no exact bounds are known for NDCG with weights"):
        bounds_of_two(NDCG(weight="worth", max_grade=2))


def test_bounds_of_an_unknown_metric_are_refused_unless_it_is_monotone() -> None:
    """A metric of a user says by itself that it is monotone."""

    class Own(DCG):
        __str__ = object.__repr__

    class Jumpy(Own):
        monotone = False

    with pytest.raises(ValueError, match=r"Jumpy.* no exact bounds are known for this metric"):
        bounds_of_two(Jumpy(max_grade=1))
    assert bounds_of_two(Own(max_grade=1)) == bounds_of_two(DCG(max_grade=1))
