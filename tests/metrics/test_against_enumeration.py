"""What every metric promises, against plain definitions and the enumeration of all orders of short lists."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score

import calirank as cr
from calirank.names import METRICS
from metrics import reference, strategies
from metrics.strategies import METRIC_SETTINGS, Case, cases, named, plainly

FEW = settings(max_examples=12, deadline=None)
EVERY = pytest.mark.parametrize("metric", METRIC_SETTINGS, ids=named)
TOLERANCE = 1e-12

#: Metrics that have a meaning for documents without a judgement.
JUDGED = [metric for metric in METRIC_SETTINGS if "unjudged" in reference.fields_of(metric)]


# --- what is checked -------------------------------------------------------------------------------------------------


def agree(got: Any, expected: Any, scale: float = 1.0) -> bool:
    """Whether two values are the same up to rounding, or both are skipped."""
    got, expected = float(got), float(expected)
    if math.isnan(expected) or math.isnan(got):
        return math.isnan(expected) and math.isnan(got)
    return abs(got - expected) <= TOLERANCE * max(1.0, scale)


def scale_of(metric: Any, case: Case) -> float:
    """The size of the values of a list: that of its best and of its worst order by labels."""
    value, n = reference.reference_of(metric), len(case)
    ends = [abs(float(value(case.labels, order, case.columns))) for order in (range(n), range(n)[::-1])]
    return max([1.0, *(end for end in ends if not math.isnan(end))])


def check_scores(value: Callable[..., Any], metric: Any, case: Case) -> None:
    """``value`` at the scores is what the metric is by definition: the mean over all tie-breakings."""
    got = value(case.given, scores=case.scores, **case.with_columns)
    expected = reference.at_scores(metric, case.labels, plainly(case.scores), case.columns)
    assert agree(got, expected, scale_of(metric, case)), (named(metric), case, got, float(expected))


def check_order(value: Callable[..., Any], metric: Any, case: Case, order: Sequence[int]) -> None:
    """``value`` of an order is what the definition says."""
    got = value(case.given, order=order, **case.with_columns)
    expected = reference.reference_of(metric)(case.labels, tuple(order), case.columns)
    assert agree(got, expected, scale_of(metric, case)), (named(metric), case, order, got, float(expected))


def some_orders(n: int, most: int = 24) -> list[tuple[int, ...]]:
    """All orders of short lists, and of longer ones every few."""
    orders = list(itertools.permutations(range(n)))
    return orders[:: max(1, len(orders) // most)]


def some_columns(metric: Any, n: int, *values: float) -> dict[str, list[float]]:
    """The columns that the metric asks for, with these values again and again."""
    return {name: list(itertools.islice(itertools.cycle(values), n)) for name in strategies.column_names(metric)}


def example(metric: Any) -> tuple[Any, dict[str, Any]]:
    """Labels of three documents that the metric takes, and its columns."""
    kinds = {type(part).__name__ for part in strategies.parts_of(metric)}
    grades = strategies.grades_of(metric)
    labels: Any = (2, 0, 1) if kinds & set(strategies.RANKINGS) else [grades[-1], grades[0], grades[0]]
    return labels, Case(labels, None, some_columns(metric, 3, 1.0)).with_columns


def moved(case: Case, move: Sequence[int]) -> Case:
    """The same list with its rows in another order: row r of it was row move[r]."""
    where = {item: row for row, item in enumerate(move)}
    if isinstance(case.labels, tuple):
        labels: Any = tuple(
            tuple(where[item] for item in place) if isinstance(place, tuple) else where[place] for place in case.labels
        )
    elif isinstance(case.labels[0], list):
        labels = [[case.labels[i][j] for j in move] for i in move]
    else:
        labels = [case.labels[item] for item in move]
    scores = case.scores[list(move)] if isinstance(case.scores, np.ndarray) else [case.scores[i] for i in move]
    return Case(labels, scores, {name: [column[i] for i in move] for name, column in case.columns.items()})


# --- the settings themselves -----------------------------------------------------------------------------------------


def test_no_registered_metric_is_forgotten() -> None:
    """Every class of the registry stands in the settings, and each of its parameters not only with the default."""
    classes = {type(part) for metric in METRIC_SETTINGS for part in strategies.parts_of(metric)}
    for name, entry in METRICS:
        if not isinstance(entry, type):
            assert cr.metric(name) in METRIC_SETTINGS, name
            continue
        assert entry in classes, name
        varied = [strategies.non_default_fields(metric) for metric in METRIC_SETTINGS if type(metric) is entry]
        assert set().union(*varied) == {field.name for field in dataclasses.fields(entry)}, name
    assert {cr.metrics.WeightedSum, cr.metrics.Custom} <= {type(metric) for metric in METRIC_SETTINGS}


@pytest.mark.parametrize("metric", [m for m in METRIC_SETTINGS if type(m).__name__ != "Custom"], ids=named)
def test_the_name_of_a_setting_means_it(metric: Any) -> None:
    assert cr.metric(str(metric)) == metric


# --- the definitions themselves --------------------------------------------------------------------------------------


@FEW
@given(st.data(), st.integers(2, 6))
def test_the_plain_definitions_agree_with_scipy_and_scikit_learn(data: st.DataObject, n: int) -> None:
    """Where these define the same number: without ties, and tau-b and AUC with them."""
    order = tuple(data.draw(st.permutations(range(n))))
    ranking = tuple(data.draw(st.permutations(range(n))))
    y = np.array([*data.draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2)), 0, 1])
    scores, ranks = np.empty(n), np.empty(n)
    scores[list(order)], ranks[list(ranking)] = -np.arange(n), -np.arange(n)
    assert reference.spearman(ranking, order, {}) == pytest.approx(spearmanr(scores, ranks).statistic)
    assert reference.kendall(ranking, order, {}) == pytest.approx(kendalltau(scores, ranks).statistic)
    assert reference.ap(y.tolist(), order, {}) == pytest.approx(average_precision_score(y, scores))
    assert reference.ndcg(y.tolist(), order, {}, gain="linear") == pytest.approx(ndcg_score([y], [scores]))
    assert reference.dcg(y.tolist(), order, {}, gain="linear", k=2, base=3) == pytest.approx(
        dcg_score([y], [scores], k=2, log_base=3)
    )
    tied = np.minimum(scores, data.draw(st.integers(1 - n, 0)))
    assume(len(set(tied)) > 1)
    assert reference.tau_b(ranking, tied.tolist()) == pytest.approx(kendalltau(tied, ranks).statistic)
    assert reference.at_scores(cr.metrics.AUC(), y.tolist(), tied.tolist()) == pytest.approx(roc_auc_score(y, tied))


# --- values ----------------------------------------------------------------------------------------------------------


@EVERY
def test_value_at_scores_is_the_mean_over_all_tie_breakings(metric: Any) -> None:
    @FEW
    @given(cases(metric))
    def check(case: Case) -> None:
        check_scores(metric, metric, case)

    check()


@EVERY
def test_value_of_an_order_is_its_definition(metric: Any) -> None:
    @FEW
    @given(cases(metric, largest=5))
    def check(case: Case) -> None:
        for order in some_orders(len(case)):
            check_order(metric, metric, case, order)

    check()


@EVERY
def test_ideal_is_the_value_of_the_best_order(metric: Any) -> None:
    @FEW
    @given(cases(metric, largest=5))
    def check(case: Case) -> None:
        expected = reference.ideal(metric, case.labels, case.columns)
        got = metric.ideal(case.given, **case.with_columns)
        assert agree(got, expected, scale_of(metric, case)), (named(metric), case, got, float(expected))

    check()


@pytest.mark.parametrize("metric", [m for m in METRIC_SETTINGS if getattr(m, "is_positional", False)], ids=named)
def test_utility_discount_and_offset_reproduce_every_order(metric: Any) -> None:
    @FEW
    @given(cases(metric, largest=5))
    def check(case: Case) -> None:
        offset = metric.offset(case.given, **case.with_columns)
        utility = metric.utility(case.given, **case.with_columns)
        discount = metric.discount(len(case))
        assert np.all(np.diff(discount) <= 0)
        for order in some_orders(len(case)):
            rebuilt = offset + sum(discount[rank] * utility[item] for rank, item in enumerate(order))
            expected = reference.reference_of(metric)(case.labels, order, case.columns)
            assert agree(rebuilt, expected, scale_of(metric, case)), (named(metric), case, order, rebuilt)

    check()


POSITIONAL = ("DCG", "NDCG", "Precision", "Recall", "AUC", "ERU", "RBP", "Spearman")
BY_PREFIX = (*POSITIONAL, "AP", "RR", "ERR", "PD")


@EVERY
def test_which_metrics_are_positional(metric: Any) -> None:
    """The table of the definitions says which; a sum is where its terms share a discount."""
    kind = type(metric).__name__
    if kind == "WeightedSum":
        discounts = {(type(part).__name__ in POSITIONAL, getattr(part, "k", None)) for _, part in metric.terms}
        assert metric.is_positional == (len(discounts) == 1 and discounts.pop()[0])
    else:
        assert metric.is_positional == (kind in POSITIONAL)


def has_prefix_gain(metric: Any) -> bool:
    labels, _ = example(metric)
    try:
        metric.prefix_gain(labels, [], 0)
    except TypeError as error:
        assert "no prefix gain" in str(error)
        return False
    return True


#: Columns are no part of a list's prefix gains.
WITHOUT_COLUMNS = [metric for metric in METRIC_SETTINGS if not strategies.column_names(metric)]


@pytest.mark.parametrize("metric", WITHOUT_COLUMNS, ids=named)
def test_prefix_gains_add_up_to_every_order_whatever_came_first(metric: Any) -> None:
    """The gain at a rank depends on the documents above it as a set: each arrangement of them gives the same."""
    if not has_prefix_gain(metric):
        assert {type(part).__name__ for part in strategies.parts_of(metric)} - set(BY_PREFIX)
        return

    @FEW
    @given(cases(metric, largest=5), st.randoms(use_true_random=False))
    def check(case: Case, random: Any) -> None:
        offset = float(metric.offset(case.given))
        for order in some_orders(len(case), most=8):
            total = offset
            for rank, item in enumerate(order):
                before = list(order[:rank])
                gain = metric.prefix_gain(case.given, before, item)
                random.shuffle(before)
                again = metric.prefix_gain(case.given, set(before), item)
                assert agree(again, metric.prefix_gain(case.given, before, item), abs(gain))
                assert agree(again, gain, abs(gain)), (named(metric), case, before, item)
                total += float(gain)
            expected = reference.reference_of(metric)(case.labels, order, case.columns)
            assert agree(total, expected, scale_of(metric, case)), (named(metric), case, order, total)

    check()


EXACT = ("Precision", "Recall", "AUC", "RBP", "AP", "RR", "ERR", "Spearman", "Kendall", "ZeroOne", "PD")


@pytest.mark.parametrize("metric", [m for m in METRIC_SETTINGS if type(m).__name__ in EXACT], ids=named)
def test_exact_is_the_fraction_of_the_definition(metric: Any) -> None:
    """Where the value is skipped, or irrational (labels that are no grades, ties of tau-b), there is none."""

    @FEW
    @given(cases(metric, largest=5))
    def check(case: Case) -> None:
        for order in some_orders(len(case), most=8):
            expected = reference.reference_of(metric)(case.labels, order, case.columns)
            if isinstance(expected, float):
                with pytest.raises(TypeError, match="no exact value"):
                    metric.exact(case.given, order)
                continue
            got = metric.exact(case.given, order)
            assert isinstance(got, Fraction)
            assert got == Fraction(expected), (named(metric), case, order, got, expected)

    check()


# --- ties, precisions, rows ------------------------------------------------------------------------------------------


@EVERY
def test_the_order_of_rows_changes_no_bit(metric: Any) -> None:
    @FEW
    @given(cases(metric), st.randoms(use_true_random=False))
    def check(case: Case, random: Any) -> None:
        move = list(range(len(case)))
        random.shuffle(move)
        other = moved(case, move)
        first = metric(case.given, scores=case.scores, **case.with_columns)
        second = metric(other.given, scores=other.scores, **other.with_columns)
        assert np.float64(first).tobytes() == np.float64(second).tobytes(), (named(metric), case, move, first, second)

    check()


@EVERY
def test_scores_tie_in_their_own_precision(metric: Any) -> None:
    """Two scores that are neighbours as float64 are one number as float32, and then they tie."""
    wide = np.array([0.1, 0.1 + 1e-12, 0.1 - 1e-12])
    assert len(set(wide.astype(np.float32).tolist())) == 1
    grades = strategies.grades_of(metric)
    kinds = {type(part).__name__ for part in strategies.parts_of(metric)}
    labels: Any = (2, 0, 1) if kinds & set(strategies.RANKINGS) else [grades[-1], grades[0], grades[0]]
    case = Case(labels, wide, some_columns(metric, 3, 3.0, 0.5, 1.0))
    check_scores(metric, metric, case)
    check_scores(metric, metric, dataclasses.replace(case, scores=wide.astype(np.float32)))
    check_scores(metric, metric, dataclasses.replace(case, scores=np.array([2**53, 2**53 + 1, 2**53 - 1])))


def neighbours(n: int, start: float, dtype: Any) -> Any:
    """n numbers, each the next one above the last."""
    values = [dtype(start)]
    while len(values) < n:
        values.append(np.nextafter(values[-1], dtype(np.inf)))
    return np.array(values, dtype=dtype)


LONG = {
    "neighbours as float64": lambda n: neighbours(n, 1.0, np.float64),
    "neighbours as float32": lambda n: neighbours(n, -1.0, np.float32),
    "neighbours around zero": lambda n: np.array([k * 5e-324 for k in range(-(n // 2), n - n // 2)]),
    "of all sizes": lambda n: np.array([(-1.0) ** k * 10.0 ** (k % 300) for k in range(n)]),
    "whole numbers": lambda n: np.arange(n) + 2**60,
    "the largest whole numbers": lambda n: np.arange(n) + (2**63 - n),
    "unsigned": lambda n: np.arange(n, dtype=np.uint64) + np.uint64(2**64 - n),
    "float16": lambda n: neighbours(n, 1.0, np.float16),
    "exact numbers": lambda n: [Fraction(1, 3 + k) for k in range(n)],
}
TOO_MANY_ORDERS = ("NDCG", "WeightedSum")  # the plain definition looks for the best order among all


@pytest.mark.parametrize("metric", [m for m in METRIC_SETTINGS if type(m).__name__ not in TOO_MANY_ORDERS], ids=named)
def test_distinct_scores_of_a_long_list_sort_it(metric: Any) -> None:
    """However near the scores are to each other."""
    n, rng = 45, np.random.default_rng(0)
    grades = strategies.grades_of(metric)
    for kind, scores in LONG.items():
        ascending = scores(n)
        order = tuple(sorted(range(n), key=lambda item: -plainly(ascending)[item]))
        assert len(set(plainly(ascending))) == n
        labels: Any = [grades[int(k)] for k in rng.integers(0, len(grades), n)]
        if {type(part).__name__ for part in strategies.parts_of(metric)} & set(strategies.RANKINGS):
            labels = order if type(metric).__name__ == "ZeroOne" else tuple(rng.permutation(n).tolist())
        case = Case(labels, ascending, some_columns(metric, n, 1.0, 0.5, 3.0))
        expected = reference.reference_of(metric)(labels, order, case.columns)
        for shown in (case, moved(case, rng.permutation(n).tolist())):
            got = metric(shown.given, scores=shown.scores, **shown.with_columns)
            assert agree(got, expected, scale_of(metric, case)), (named(metric), kind, got, float(expected))


@EVERY
@pytest.mark.parametrize("n", [1, 2, 5])
def test_lists_at_the_edge(metric: Any, n: int) -> None:
    """One document, all tied, nothing relevant, everything relevant, only the last relevant."""
    kinds = {type(part).__name__ for part in strategies.parts_of(metric)}
    low, *_, high = strategies.grades_of(metric)
    supervisions: list[Any] = [[low] * n, [high] * n, [low] * (n - 1) + [high]]
    if kinds & set(strategies.RANKINGS):
        supervisions = [tuple(range(n)), tuple(range(n))[::-1]]
    signs = np.where(np.arange(n) % 2, 0.0, -0.0)
    for labels, scores in itertools.product(supervisions, (np.ones(n), signs, np.arange(n), -np.arange(n))):
        case = Case(labels, scores, some_columns(metric, n, 0.0 if labels[-1] == low else 1.0))
        check_scores(metric, metric, case)
        for order in some_orders(n, most=3):
            check_order(metric, metric, case, order)


WITH_EMPTY = [entry for _, entry in METRICS if isinstance(entry, type) and "empty" in reference.fields_of(entry())]


@pytest.mark.parametrize("entry", WITH_EMPTY, ids=lambda e: e.__name__)
def test_an_undefined_value_is_the_number_asked_for_or_is_skipped(entry: Any) -> None:
    """The default is 0."""
    kind = entry.__name__
    lists: list[Any] = [(0,)] if kind in ("Spearman", "Kendall") else [[0, 0], [0]]
    lists += [[1, 1]] if kind == "AUC" else []
    for labels in lists:
        for scores in (np.zeros(len(labels)), np.arange(len(labels))):
            assert entry()(labels, scores=scores) == 0
            assert entry(empty=1)(labels, scores=scores) == 1
            assert entry(empty=0.25)(labels, order=range(len(labels))) == 0.25
            assert math.isnan(entry(empty="skip")(labels, scores=scores))
            assert math.isnan(entry(empty="skip")(labels, order=range(len(labels))))
    for wrong in (math.nan, math.inf, "skipped", None):
        with pytest.raises((ValueError, TypeError), match=cr.metric(entry()).__class__.__name__.lower()):
            entry(empty=wrong)


# --- several judges --------------------------------------------------------------------------------------------------


@FEW
@given(st.data(), st.integers(2, 4), st.integers(1, 3))
def test_several_judges_count_by_their_weights(data: st.DataObject, n: int, judges: int) -> None:
    """The value by Preferences or Rankings of several judges is the weighted mean of the values by each."""
    scores, judge = data.draw(strategies.scores_of(n)), np.arange(judges)
    weight = np.array(data.draw(st.lists(st.sampled_from([1.0, 2.0, 0.5]), min_size=judges, max_size=judges)))
    edge = st.sampled_from(list(itertools.permutations(range(n), 2)))
    edges = [data.draw(st.lists(edge, min_size=1, max_size=4)) for _ in judge]
    better, worse = np.array([pair for some in edges for pair in some]).T
    named_judges = np.repeat(judge, [len(some) for some in edges])
    held = cr.Preferences(better, worse, judge=named_judges, judge_weight=dict(zip(judge, weight, strict=True)))
    matrices = [[[float(some.count((i, j))) for j in range(n)] for i in range(n)] for some in edges]
    for metric in (cr.metrics.PD(), cr.metrics.PD(normalise=False), cr.metrics.PD(ties="error")):
        values = [float(reference.at_scores(metric, W, plainly(scores))) for W in matrices]
        assert agree(metric(held, scores=scores), weight @ values / weight.sum(), n), (named(metric), edges, scores)
    rankings = [data.draw(strategies.rankings(n)) for _ in judge]
    told = cr.Rankings(rankings, weight)
    for metric in (cr.metrics.Spearman(), cr.metrics.Kendall(), cr.metrics.ZeroOne()):
        values = [float(reference.at_scores(metric, ranking, plainly(scores))) for ranking in rankings]
        assert agree(metric(told, scores=scores), weight @ values / weight.sum()), (named(metric), rankings, scores)


# --- documents without a judgement -----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [m for m in JUDGED if m.unjudged in ("zero", "skip")], ids=named)
def test_unjudged_documents_count_zero_or_are_taken_out(metric: Any) -> None:
    @FEW
    @given(cases(metric, largest=6, missing=True))
    def check(case: Case) -> None:
        check_scores(metric, metric, case)
        for order in some_orders(len(case), most=6):
            check_order(metric, metric, case, order)

    check()


@pytest.mark.parametrize("metric", [m for m in JUDGED if m.unjudged == "bounds"], ids=named)
def test_bounds_are_the_lowest_and_highest_value_that_the_missing_labels_allow(metric: Any) -> None:
    @FEW
    @given(cases(metric, largest=5, missing=True))
    def check(case: Case) -> None:
        low, high = metric.bounds(case.given, scores=case.scores, **case.with_columns)
        candidates = strategies.candidates_of(metric, case.labels)
        lowest, highest = reference.bounds(metric, case.labels, plainly(case.scores), candidates, case.columns)
        full = Case(reference.assignments(case.labels, [candidates[-1]])[0], case.scores, case.columns)
        scale = scale_of(metric, full)
        assert agree(low, lowest, scale), (named(metric), case, "low", low, float(lowest))
        assert agree(high, highest, scale), (named(metric), case, "high", high, float(highest))

    check()


@pytest.mark.parametrize("metric", [m for m in JUDGED if m.unjudged == "bounds"], ids=named)
def test_bounds_of_a_list_with_all_its_judgements_are_its_value(metric: Any) -> None:
    @FEW
    @given(cases(metric, largest=5))
    def check(case: Case) -> None:
        value = reference.at_scores(metric, case.labels, plainly(case.scores), case.columns)
        low, high = metric.bounds(case.given, scores=case.scores, **case.with_columns)
        assert agree(low, value, scale_of(metric, case))
        assert agree(high, value, scale_of(metric, case))

    check()


# --- many lists, and documents that a run does not return ------------------------------------------------------------

MANY = [m for m in JUDGED if m.unjudged != "bounds" and type(m).__name__ != "Custom"]


def data_of(many: list[Case]) -> cr.RankingData:
    """Lists, document i of each with the id of its number."""
    labels = [label for case in many for label in case.labels]
    columns = {name: [value for case in many for value in case.columns[name]] for name in many[0].columns}
    return cr.RankingData(
        y=np.array(labels, dtype=np.float64),
        sizes=[len(case) for case in many],
        doc_ids=[str(item) for case in many for item in range(len(case))],
        columns=columns or None,
    )


@pytest.mark.parametrize("metric", MANY, ids=named)
def test_each_of_many_lists_has_its_value(metric: Any) -> None:
    @FEW
    @given(st.lists(cases(metric, largest=5), min_size=1, max_size=4))
    def check(many: list[Case]) -> None:
        scores = [[float(score) for score in plainly(case.scores)] for case in many]
        table = cr.evaluate(np.concatenate(scores), data_of(many), metric)
        for case, own, got in zip(many, scores, table[metric].per_query.tolist(), strict=True):
            expected = reference.at_scores(metric, case.labels, own, case.columns)
            assert agree(got, expected, scale_of(metric, case)), (named(metric), many, case, got, float(expected))

    check()


@pytest.mark.parametrize("metric", [m for m in MANY if not strategies.column_names(m)], ids=named)
def test_documents_that_a_run_leaves_out_earn_nothing_and_count(metric: Any) -> None:
    """They count in ideals and among the relevant ones; what only the run has is a document without a judgement."""

    @FEW
    @given(st.lists(cases(metric, largest=4), min_size=1, max_size=3), st.data())
    def check(many: list[Case], data: st.DataObject) -> None:
        query, doc, score, expected, scales = [], [], [], [], []
        for number, case in enumerate(many):
            n, extra = len(case), data.draw(st.integers(0, 2))
            returned = data.draw(st.lists(st.integers(0, n + extra - 1), min_size=1, unique=True))
            many_scores = st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.5]), min_size=n + extra, max_size=n + extra)
            own = data.draw(many_scores)[: len(returned)]
            labels = [*case.labels, *[None] * sum(item >= n for item in returned)]
            of_run = {item: n + place for place, item in enumerate(item for item in returned if item >= n)}
            items = [of_run.get(item, item) for item in returned]
            value = reference.reference_of(metric)
            orders = [tuple(items[k] for k in order) for order in reference.argsort_set(own)]
            expected.append(reference.mean([value(labels, order) for order in orders]))
            scales.append(scale_of(metric, case))
            query += [number] * len(returned)
            doc += [str(item) for item in returned]
            score += own
        got = cr.evaluate(cr.Run(query, doc, score), data_of(many), metric)[metric].per_query.tolist()
        for number, (found, value) in enumerate(zip(got, expected, strict=True)):
            assert agree(found, value, scales[number]), (named(metric), many, query, doc, score, found, float(value))

    check()


# --- what is refused -------------------------------------------------------------------------------------------------

GRADED = [m for m in METRIC_SETTINGS if type(m).__name__ in ("DCG", "NDCG", "ERU", "ERR", *strategies.BINARY)]
CUT = [entry for _, entry in METRICS if isinstance(entry, type) and "k" in reference.fields_of(entry())]


def refused(metric: Any, call: Callable[[], Any], *mentions: str) -> None:
    """The call raises a ValueError that names the metric and says each of these."""
    with pytest.raises(ValueError) as caught:
        call()
    message = str(caught.value)
    for mention in (METRICS.describe(metric).name, *mentions):
        assert re.search(mention, message), (mention, message)


NAMED = [m for m in METRIC_SETTINGS if type(m).__name__ not in ("Custom", "WeightedSum")]


@pytest.mark.parametrize("metric", NAMED, ids=named)
def test_scores_and_orders_that_do_not_fit_are_refused(metric: Any) -> None:
    labels, columns = example(metric)
    for bad in (math.nan, math.inf, -math.inf):
        refused(metric, lambda bad=bad: metric(labels, scores=[0.0, bad, 1.0], **columns), r"\b1\b", "nan|inf")
        refused(
            metric,
            lambda bad=bad: metric(labels, scores=np.array([0.0, 1.0, bad], np.float32), **columns),
            r"\b2\b",
            "nan|inf",
        )
    refused(metric, lambda: metric(labels, scores=[1.0, 2.0], **columns), r"\b3\b", r"\b2\b")
    refused(metric, lambda: metric(labels, scores=[1.0, 2.0, 3.0, 4.0], **columns), r"\b3\b", r"\b4\b")
    refused(metric, lambda: metric(labels, order=[0, 1, 1], **columns), r"\b1\b")
    refused(metric, lambda: metric(labels, order=[0, 1, 3], **columns), r"\b3\b")
    for call in (
        lambda: metric(labels, **columns),
        lambda: metric(labels, scores=[1, 2, 3], order=[0, 1, 2], **columns),
    ):
        with pytest.raises(TypeError, match="scores or an order"):
            call()


@pytest.mark.parametrize("metric", GRADED, ids=named)
def test_labels_that_mean_nothing_are_refused(metric: Any) -> None:
    _, columns = example(metric)
    top = strategies.grades_of(metric)[-1]
    for how in ({"scores": [1.0, 2.0, 3.0]}, {"order": [2, 1, 0]}):
        refused(metric, lambda how=how: metric([top, 0, -1], **how, **columns), "-1", r"\b2\b")
        refused(metric, lambda how=how: metric([top, math.nan, 0], **how, **columns), "nan", r"\b1\b")
        refused(metric, lambda how=how: metric([top, math.inf, 0], **how, **columns), r"\b1\b")
        with pytest.raises(ValueError):
            metric([[top, 0, 0]], **how, **columns)


@pytest.mark.parametrize("metric", [m for m in GRADED if not strategies.column_names(m)], ids=named)
def test_no_method_takes_labels_that_a_call_refuses(metric: Any) -> None:
    """Negative ones; those between 0 and relevant; those above the largest grade."""
    top, order = strategies.grades_of(metric)[-1], [2, 1, 0]
    bad = [-1, *([metric.relevant / 2] if type(metric).__name__ in strategies.BINARY else [])]
    bad += [metric.max_grade + 1] if getattr(metric, "max_grade", None) is not None else []
    methods: list[Callable[[Any], Any]] = [
        lambda labels: metric(labels, order=order),
        metric.ideal,
        metric.offset,
        lambda labels: metric.prefix_gain(labels, [0], 1),
        lambda labels: metric.bounds(labels, order=order),
    ]
    methods += [metric.utility] if metric.is_positional else []
    methods += [lambda labels: metric.exact(labels, order)] if type(metric).__name__ in EXACT else []
    for label, method in itertools.product(bad, methods):
        refused(metric, lambda label=label, method=method: method([top, 0, label]), rf"{label:g}", r"\b2\b")


@pytest.mark.parametrize("metric", [m for m in NAMED if type(m).__name__ in EXACT], ids=named)
def test_exact_takes_an_order_of_all_documents(metric: Any) -> None:
    labels, _ = example(metric)
    for order in ([0, 1], [0, 1, 2, 3], [0, 1, 1], [0, 1, 3]):
        with pytest.raises(ValueError, match="order"):
            metric.exact(labels, order)


@pytest.mark.parametrize("metric", [m for m in GRADED if type(m).__name__ in strategies.BINARY], ids=named)
def test_a_binary_label_is_0_or_relevant(metric: Any) -> None:
    between = metric.relevant / 2
    for how in ({"scores": [1.0, 2.0, 3.0]}, {"order": [2, 1, 0]}):
        refused(metric, lambda how=how: metric([0, metric.relevant, between], **how), rf"{between:g}", r"\b2\b")
    assert 0 <= metric([0, metric.relevant, metric.relevant], order=[0, 1, 2]) <= 1


@pytest.mark.parametrize("metric", [m for m in GRADED if type(m).__name__ == "ERR"], ids=named)
def test_a_label_above_the_largest_grade_is_refused(metric: Any) -> None:
    above = metric.max_grade + 1
    for how in ({"scores": [1.0, 2.0, 3.0]}, {"order": [2, 1, 0]}):
        refused(metric, lambda how=how: metric([0, above, 1], **how), rf"\b{above}\b", r"\b1\b")


@pytest.mark.parametrize("entry", CUT, ids=lambda entry: entry.__name__)
@pytest.mark.parametrize("k", [0, -1, 1.5, True, "all"])
def test_a_cut_off_is_a_whole_number_from_1(entry: Any, k: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        entry(k=k)
    assert METRICS.describe(entry()).name in str(caught.value)
    assert repr(k) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("precision", {"relevant": 0}),
        ("precision", {"relevant": math.nan}),
        ("precision", {"divisor": "n"}),
        ("ap", {"divisor": "k"}),
        ("ap", {"unjudged": "guess"}),
        ("rbp", {"p": -0.5}),
        ("rbp", {"p": 1.0}),
        ("rbp", {"p": math.nan}),
        ("eru", {"w": 1}),
        ("eru", {"w": math.inf}),
        ("eru", {"v": math.nan}),
        ("err", {"max_grade": 0}),
        ("err", {"max_grade": math.inf}),
        ("dcg", {"base": 1}),
        ("dcg", {"base": 0.5}),
        ("ndcg", {"ideal_over": "best"}),
        ("dcg", {"gain": (0, -1)}),
        ("pd", {"ties": "third"}),
        ("pd", {"pairs": "ratio"}),
    ],
    ids=str,
)
def test_settings_that_mean_nothing_are_refused(name: str, arguments: dict[str, Any]) -> None:
    """The message names the metric and the value."""
    with pytest.raises(ValueError) as caught:
        METRICS[name](**arguments)
    assert name in str(caught.value)
    assert repr(next(iter(arguments.values()))) in str(caught.value)


# --- the check itself can fail ---------------------------------------------------------------------------------------


def by_position(metric: Any) -> Callable[..., Any]:
    """A wrong metric: tied documents stay in the order of their rows."""

    def value(labels: Any, *, scores: Any) -> Any:
        order = sorted(range(len(scores)), key=lambda item: -plainly(scores)[item])
        return reference.reference_of(metric)(list(labels), tuple(order))

    return value


def pessimistic(metric: Any) -> Callable[..., Any]:
    """A wrong metric: tied documents stand worst first."""

    def value(labels: Any, *, scores: Any) -> Any:
        orders = reference.argsort_set(plainly(scores))
        return min(reference.reference_of(metric)(list(labels), order) for order in orders)

    return value


def by_float32(metric: Any) -> Callable[..., Any]:
    """A wrong metric: scores tie once they are rounded."""

    def value(labels: Any, *, scores: Any) -> Any:
        return reference.at_scores(metric, list(labels), plainly(np.asarray(scores, np.float32)))

    return value


def rank_of_mean(metric: Any) -> Callable[..., Any]:
    """A wrong metric: each of tied documents is taken to have their mean label."""

    def value(labels: Any, *, scores: Any) -> Any:
        groups: dict[Any, list[Any]] = {}
        for label, score in zip(labels, plainly(scores), strict=True):
            groups.setdefault(score, []).append(Fraction(label))
        means = [sum(groups[score]) / len(groups[score]) for score in plainly(scores)]
        order = max(reference.argsort_set(plainly(scores)))
        total, through = 0.0, 1.0
        for rank, item in enumerate(order, start=1):
            stop = float(means[item]) / 2
            total, through = total + through * stop / rank, through * (1 - stop)
        return total

    return value


@pytest.mark.parametrize(
    ("wrong", "metric"),
    [
        (by_position, cr.metrics.AP()),
        (by_position, cr.metrics.NDCG(k=3)),
        (by_position, cr.metrics.Precision(k=1)),
        (pessimistic, cr.metrics.RR()),
        (pessimistic, cr.metrics.ERR()),
        (by_float32, cr.metrics.AP()),
        (rank_of_mean, cr.metrics.ERR(max_grade=1)),
    ],
    ids=lambda thing: getattr(thing, "__name__", str(thing)),
)
def test_a_metric_that_breaks_ties_wrongly_fails_the_check(wrong: Callable[..., Any], metric: Any) -> None:
    @settings(FEW, max_examples=400, phases=[Phase.generate], database=None, derandomize=True)
    @given(cases(metric, largest=4))
    def check(case: Case) -> None:
        check_scores(wrong(metric), metric, case)

    with pytest.raises(AssertionError):
        check()


def test_a_wrong_order_or_a_wrong_bit_fails_the_check() -> None:
    case = Case([1, 0, 0], np.array([1.0, 1.0, 0.0]))
    metric = cr.metrics.AP()
    check_scores(metric, metric, case)
    with pytest.raises(AssertionError):
        check_scores(lambda labels, scores: metric(labels, scores=scores) + 1e-11, metric, case)
    with pytest.raises(AssertionError):
        check_scores(lambda labels, scores: math.nan, metric, case)
    with pytest.raises(AssertionError):
        check_order(lambda labels, order: metric(labels, order=order[::-1]), metric, case, (0, 1, 2))
