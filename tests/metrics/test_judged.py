"""Metrics that judge by rankings and preferences: ties on both sides, several judges, many lists, the best order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

import calirank as cr
from calirank._kernel import get_threads, set_threads
from calirank.data.ragged import offsets_of
from calirank.metrics.kendall import Kendall
from calirank.metrics.pd import PD
from calirank.metrics.spearman import LONGEST, Spearman
from calirank.metrics.zero_one import ZeroOne
from calirank.names import METRICS

FEW = settings(max_examples=60, deadline=None)
RANKED = [Spearman(), Kendall(), ZeroOne()]
PREFERRED = [
    PD(normalise=normalise, ties=ties, pairs=pairs)
    for normalise, ties, pairs in itertools.product((True, False), ("half", "error"), ("unit", "difference"))
]
SCORES = st.sampled_from([-1.5, -0.0, 0.0, 1.0, 1.0 + 2**-52])


# --- as the definitions read ------------------------------------------------------------------------------------------


def orders_of(groups: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Every order of the documents that keeps the order of the groups."""
    parts = itertools.product(*(itertools.permutations(group) for group in groups))
    return [tuple(itertools.chain.from_iterable(part)) for part in parts]


def sorted_groups(values: Sequence[float]) -> list[list[int]]:
    """The documents by falling value, those of equal value together."""
    return [[i for i, other in enumerate(values) if other == value] for value in sorted(set(values), reverse=True)]


def groups_of(ranking: Sequence[Any]) -> list[tuple[int, ...]]:
    return [place if isinstance(place, tuple) else (place,) for place in ranking]


def mean_over_ties(value: Callable[[tuple[int, ...], tuple[int, ...]], Any], ranking: Any, scores: Any) -> Fraction:
    """The mean over all pairs of an order that the ranking allows and one that sorts the scores."""
    pairs = list(itertools.product(orders_of(groups_of(ranking)), orders_of(sorted_groups(scores))))
    return sum((Fraction(value(y, order)) for y, order in pairs), Fraction(0)) / len(pairs)


def rho(y: tuple[int, ...], order: tuple[int, ...]) -> Fraction:
    n = len(y)
    squares = sum((y.index(i) - order.index(i)) ** 2 for i in range(n))
    return 1 - Fraction(6 * squares, n * (n * n - 1)) if n > 1 else Fraction(0)


def places(ranking: Sequence[Any]) -> list[int]:
    """The place of each document, from 0."""
    found = dict.fromkeys(range(sum(map(len, groups_of(ranking)))), 0)
    for level, group in enumerate(groups_of(ranking)):
        found.update(dict.fromkeys(group, level))
    return list(found.values())


def tau_b(ranking: Sequence[Any], scores: Sequence[float]) -> float:
    """By all pairs; 0 where one side ties all."""
    level = places(ranking)
    pairs = list(itertools.combinations(range(len(level)), 2))
    y = [(level[i] < level[j]) - (level[i] > level[j]) for i, j in pairs]
    s = [(scores[i] > scores[j]) - (scores[i] < scores[j]) for i, j in pairs]
    apart = sum(map(abs, y)) * sum(map(abs, s))
    return sum(a * b for a, b in zip(y, s, strict=True)) / math.sqrt(apart) if apart else 0.0


def disagreement(metric: PD, W: Any, scores: Sequence[float]) -> Fraction:
    """By all pairs; 0 without preferences."""
    n = range(len(W))
    tied = Fraction(1, 2) if metric.ties == "half" else Fraction(1)
    lost = sum(
        Fraction(W[i][j]) * (1 if scores[i] < scores[j] else tied if scores[i] == scores[j] else 0)
        for i in n
        for j in n
        if i != j
    )
    total = sum(Fraction(weight) for row in W for weight in row)
    if not total:
        return Fraction(0)
    return 1 - lost / total if metric.normalise else Fraction(-lost)


def matrix_of(metric: PD, y: Sequence[float]) -> list[list[Any]]:
    """The preferences that grades mean."""
    unit = metric.pairs == "unit"
    return [[(1 if unit else Fraction(a) - Fraction(b)) if a > b else 0 for b in y] for a in y]


# --- lists ------------------------------------------------------------------------------------------------------------


@st.composite
def rankings(draw: Any, n: int) -> tuple[Any, ...]:
    """A ranking of n documents with ties; tied documents are a tuple inside it."""
    level = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    groups = [tuple(i for i in range(n) if level[i] == value) for value in sorted(set(level))]
    return tuple(group[0] if len(group) == 1 else group for group in groups)


@st.composite
def ranked(draw: Any, largest: int = 5) -> tuple[tuple[Any, ...], list[float]]:
    n = draw(st.integers(1, largest))
    return draw(rankings(n)), draw(st.lists(SCORES, min_size=n, max_size=n))


def weights(n: int) -> st.SearchStrategy[list[list[float]]]:
    """Preferences with cycles, of weights whose sums are rounded."""
    flat = st.lists(st.sampled_from([0.0, 0.0, 1.0, 0.1, 0.7, 3.0]), min_size=n * n, max_size=n * n)
    return flat.map(lambda held: [[0.0 if i == j else held[i * n + j] for j in range(n)] for i in range(n)])


@st.composite
def preferred(draw: Any, largest: int = 6) -> tuple[list[list[float]], list[float]]:
    n = draw(st.integers(1, largest))
    return draw(weights(n)), draw(st.lists(SCORES, min_size=n, max_size=n))


@st.composite
def graded(draw: Any, largest: int = 9) -> tuple[list[float], list[float]]:
    n = draw(st.integers(0, largest))
    grades = st.sampled_from([-3.0, -0.0, 0.0, 0.1, 0.7, 1e9, 1e9 + 0.1])
    return draw(st.lists(grades, min_size=n, max_size=n)), draw(st.lists(SCORES, min_size=n, max_size=n))


def near(got: Any, expected: Any, scale: float = 1.0) -> bool:
    return abs(float(got) - float(expected)) <= 1e-13 * max(1.0, scale)


def bits(values: Any) -> bytes:
    return np.asarray(values, np.float64).tobytes()


# --- values -----------------------------------------------------------------------------------------------------------


@FEW
@given(ranked())
def test_spearman_and_zero_one_are_the_mean_over_the_ties_of_both_sides(case: Any) -> None:
    ranking, scores = case
    assert near(Spearman()(ranking, scores=scores), mean_over_ties(rho, ranking, scores))
    hit = mean_over_ties(lambda y, order: int(y == order), ranking, scores)
    assert ZeroOne()(ranking, scores=scores) == float(hit)


@FEW
@given(ranked(largest=9))
def test_kendall_is_tau_b_with_ties_on_both_sides(case: Any) -> None:
    ranking, scores = case
    got = Kendall()(ranking, scores=scores)
    assert near(got, tau_b(ranking, scores))
    if len(set(scores)) > 1 and len(ranking) > 1:
        assert near(got, kendalltau(scores, [-level for level in places(ranking)]).statistic)


def test_long_lists_agree_with_scipy() -> None:
    """Spearman without ties, tau-b with many."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 50, 5000):
        order = rng.permutation(n)
        scores = rng.normal(size=n)
        rank = np.empty(n)
        rank[order] = -np.arange(n)
        assert near(Spearman()(order, scores=scores), spearmanr(scores, rank).statistic)
        assert near(Kendall()(order, scores=scores), kendalltau(scores, rank).statistic)
        coarse, level = rng.integers(0, 7, n) * 1.0, rng.integers(0, n, n) // 3
        coarse[:2], level[:2] = (0, 1), (0, n)
        tied = cr.Rankings.from_ranks([level])
        assert near(Kendall()(tied, scores=coarse), kendalltau(coarse, -level).statistic)
        assert -1 <= Spearman()(tied, scores=coarse) <= 1


@pytest.mark.parametrize("n", [1, 2, 3, 9, 1000, 99_999])
def test_the_ranking_itself_is_1_to_the_bit_and_its_reverse_minus_1(n: int) -> None:
    order = np.random.default_rng(n).permutation(n)
    for metric in (Spearman(empty=1), Kendall(empty=1)):
        assert metric(order, order=order) == 1
        assert metric(order, order=order[::-1]) == (-1 if n > 1 else 1)
        judged = cr.Rankings([order]).align(np.array([0]), np.array([n]))
        assert metric.lowest(judged).tolist() == [-1 if n > 1 else 1]
    assert ZeroOne()(order, order=order) == 1
    assert ZeroOne()(order, scores=np.zeros(n)) == pytest.approx(1 / math.factorial(n) if n < 100 else 0)


@FEW
@given(ranked(largest=7))
def test_equal_ties_on_both_sides_are_a_tau_b_of_1(case: Any) -> None:
    ranking, _ = case
    scores = [-level for level in places(ranking)]
    assert Kendall(empty=1)(ranking, scores=scores) == 1
    assert Kendall(empty=1)(ranking, scores=[-score for score in scores]) == (-1 if len(ranking) > 1 else 1)


@pytest.mark.parametrize("metric", PREFERRED, ids=str)
def test_pd_is_the_weight_of_the_contradicted_preferences(metric: PD) -> None:
    @FEW
    @given(preferred())
    def check_matrix(case: Any) -> None:
        W, scores = case
        scale = sum(map(sum, W))
        assert near(metric(np.array(W), scores=scores), disagreement(metric, W, scores), scale)
        if metric.ties == "half":
            orders = orders_of(sorted_groups(scores))
            mean = sum(metric.exact(W, order) for order in orders) / len(orders)
            assert near(metric(W, scores=scores), mean, scale)

    @FEW
    @given(graded())
    def check_grades(case: Any) -> None:
        y, scores = case
        W = matrix_of(metric, y)
        got = metric(y, scores=scores)
        assert near(got, disagreement(metric, W, scores), 10 * float(sum(map(sum, W))) if not metric.normalise else 1)
        if metric.pairs == "unit":
            assert near(got, metric(np.array(W, float).reshape(len(y), len(y)), scores=scores))

    check_matrix()
    check_grades()


def test_differences_of_far_grades_do_not_cancel() -> None:
    """The step between 1e15 and 1e15 + 1 counts like that between 0 and 1."""
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 3, 200) * 1.0, rng.integers(0, 50, 200) * 1.0
    metric = PD(pairs="difference", normalise=False)
    assert metric(y + 1e15, scores=scores) == metric(y, scores=scores) < -1000


def test_binary_grades_are_auc_to_the_bit() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        n = int(rng.integers(2, 30))
        y, scores = rng.integers(0, 2, n) * 1.0, rng.integers(0, 5, n) * 1.0
        for metric in (PD(), PD(pairs="difference")):
            assert bits(metric(y, scores=scores)) == bits(cr.metric("auc")(y, scores=scores))


def test_long_lists_of_grades_agree_with_the_matrix() -> None:
    rng = np.random.default_rng(3)
    y, scores = rng.normal(size=300).round(1), rng.normal(size=300).round(1)
    for metric in PREFERRED:
        W = np.array(matrix_of(metric, y), dtype=np.float64)
        assert metric(y, scores=scores) == pytest.approx(metric(W, scores=scores), rel=1e-12)


# --- several judgements -----------------------------------------------------------------------------------------------


@FEW
@given(st.data(), st.integers(1, 4))
def test_several_rankings_have_the_weighted_mean_of_their_values(data: st.DataObject, n: int) -> None:
    votes = data.draw(st.lists(rankings(n), min_size=1, max_size=4))
    weight = data.draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(votes), max_size=len(votes)))
    scores = data.draw(st.lists(SCORES, min_size=n, max_size=n))
    held = cr.Rankings(votes, weight=weight)
    for metric in (*RANKED, Kendall(empty="skip")):
        values = [metric(vote, scores=scores) for vote in votes]
        told = [(w, value) for w, value in zip(weight, values, strict=True) if not math.isnan(value)]
        expected = sum(w * value for w, value in told) / sum(w for w, _ in told) if told else math.nan
        assert metric(held, scores=scores) == pytest.approx(expected, abs=1e-14, nan_ok=True)


@FEW
@given(st.data(), st.integers(1, 4))
def test_decompositions_and_the_best_order_of_several_judges(data: st.DataObject, n: int) -> None:
    """Offset and gains add up to the value of each order, the best of which is the ideal."""
    votes = cr.Rankings(data.draw(st.lists(rankings(n), min_size=1, max_size=4)))
    edges = data.draw(st.lists(st.tuples(*[st.integers(0, n - 1)] * 2, st.integers(0, 2)), max_size=9))
    edges = [edge for edge in edges if edge[0] != edge[1]]
    preferences = cr.Preferences(
        [i for i, _, _ in edges],
        [j for _, j, _ in edges],
        [[0.0, 0.1, 0.7, 3.0][k % 4] for k in range(len(edges))],
        judge=[judge for *_, judge in edges],
        judge_weight={judge: [1.0, 2.5, 0.5][judge] for *_, judge in edges},
    )
    some: list[tuple[Any, Any]] = [(metric, votes) for metric in (Spearman(), Kendall(), Kendall(empty="skip"))]
    some += [(PD(normalise=bool(k % 2), empty=("skip", 0.25)[k // 2]), preferences) for k in range(4)]
    for metric, labels in some:
        values = []
        for order in itertools.permutations(range(n)):
            value = metric(labels, order=order)
            gains = [metric.prefix_gain(labels, set(order[:rank]), item) for rank, item in enumerate(order)]
            assert float(metric.offset(labels) + sum(gains)) == pytest.approx(value, abs=1e-12, nan_ok=True)
            if metric.is_positional:
                utility, discount = metric.utility(labels), metric.discount(n)
                rebuilt = metric.offset(labels) + sum(discount[rank] * utility[i] for rank, i in enumerate(order))
                assert rebuilt == pytest.approx(value, abs=1e-12)
            values.append(value)
        assert metric.ideal(labels) == pytest.approx(max(values), abs=1e-12, nan_ok=True), metric


@FEW
@given(st.data(), st.integers(1, 4))
def test_zero_one_is_exact_and_has_no_prefix_gain(data: st.DataObject, n: int) -> None:
    votes = data.draw(st.lists(rankings(n), min_size=1, max_size=3))
    orders = list(itertools.permutations(range(n)))
    values = [ZeroOne().exact(cr.Rankings(votes), order) for order in orders]
    assert sum(values) == 1
    for order, value in zip(orders, values, strict=True):
        assert ZeroOne()(cr.Rankings(votes), order=order) == pytest.approx(float(value), abs=1e-15)
    if len(votes) == 1 or all(len(vote) == n for vote in votes):
        assert ZeroOne().ideal(cr.Rankings(votes)) == pytest.approx(float(max(values)))
    else:
        with pytest.raises(ValueError, match="one of them has ties"):
            ZeroOne().ideal(cr.Rankings(votes))
    with pytest.raises(TypeError, match="no prefix gain"):
        ZeroOne().prefix_gain(votes[0], [], 0)


def test_rational_values_are_exact() -> None:
    assert Spearman().exact([(0, 1), 2], [1, 0, 2]) == Fraction(3, 4)
    assert Spearman().exact(cr.Rankings([[0, 1, 2], [2, 1, 0]], weight=[2, 1]), [0, 1, 2]) == Fraction(1, 3)
    assert Kendall().exact([0, 1, 2], [1, 0, 2]) == Fraction(1, 3)
    with pytest.raises(TypeError, match="not rational"):
        Kendall().exact([(0, 1), 2], [1, 0, 2])
    assert PD().exact([[0, 0.5, 0], [0, 0, 1], [0, 0, 0]], [1, 0, 2]) == Fraction(2, 3)
    assert PD(normalise=False).exact([2, 1, 0], [2, 1, 0]) == -3
    assert PD(pairs="difference", normalise=False).exact([2, 0.5, 0], [2, 1, 0]) == -4


# --- the best order ---------------------------------------------------------------------------------------------------


@FEW
@given(preferred(largest=5))
def test_the_ideal_of_preferences_is_the_best_order(case: Any) -> None:
    W, _ = case
    for metric in (PD(), PD(normalise=False)):
        best = max(metric(W, order=order) for order in itertools.permutations(range(len(W))))
        assert metric.ideal(W) == pytest.approx(best, abs=1e-12)


def test_long_graphs_without_long_circles_have_an_ideal() -> None:
    """Of 1000 documents in one chain nothing is lost, nor of a majority against a minority but the minority."""
    chain = cr.Preferences(range(999), range(1, 1000))
    assert PD().ideal(chain) == 1
    assert PD(normalise=False).ideal(chain) == 0
    both = cr.Preferences([*range(999), *range(1, 1000)], [*range(1, 1000), *range(999)], [3.0] * 999 + [1.0] * 999)
    assert PD().ideal(both) == 0.75
    circles = cr.Preferences(np.arange(900), np.arange(900) // 9 * 9 + (np.arange(900) + 1) % 9)
    assert PD(normalise=False).ideal(circles) == -100
    assert PD().ideal([3, 1, 2] * 500) == 1
    assert PD(normalise=False, pairs="difference").ideal([3, 1, 2]) == 0


def test_sixteen_documents_in_a_circle_are_ordered_and_seventeen_refused() -> None:
    rng = np.random.default_rng(4)
    W = np.triu(rng.random((16, 16)), 1)
    W[15, 0] = 20.0  # against all that follows from it
    cut = PD(normalise=False).ideal(W)
    assert cut < 0
    for order in itertools.islice(itertools.permutations(range(16)), 0, 2000, 7):
        assert PD(normalise=False)(W, order=order) <= cut + 1e-9
    ring = cr.Preferences(range(17), [*range(1, 17), 0])
    with pytest.raises(ValueError, match=r"17 documents are preferred to each other in circles.*feedback arc set"):
        PD().ideal(ring)


def test_the_ideal_of_votes_is_kemeny_s_consensus() -> None:
    votes = cr.Rankings([[0, 1, 2, 3], [1, 2, 0, 3], [2, 0, 1, 3]], weight=[3, 2, 2])
    best = max(Kendall()(votes, order=order) for order in itertools.permutations(range(4)))
    assert Kendall().ideal(votes) == pytest.approx(best, abs=1e-15)
    assert ZeroOne().ideal(votes) == pytest.approx(3 / 7)


# --- where there is nothing to judge ----------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [0.0, 0.25, "skip"])
def test_undefined_lists(empty: Any) -> None:
    """One document or none, all tied, no preference."""
    number = math.nan if empty == "skip" else empty
    for metric in (Spearman(empty=empty), Kendall(empty=empty)):
        for ranking in ([], [0]):
            found = metric(ranking, scores=np.zeros(len(ranking)))
            assert bits(found) == bits(number)
            assert bits(metric.ideal(ranking)) == bits(number)
            assert bits(metric.offset(ranking)) == bits(number)
    for ranking, scores in (([0, 1], [1, 1]), ([(0, 1)], [1, 2]), ([(0, 1)], [1, 1])):
        assert bits(Kendall(empty=empty)(ranking, scores=scores)) == bits(number)
        assert Spearman(empty=empty)(ranking, scores=scores) == 0
    assert bits(Kendall(empty=empty).ideal([(0, 1)])) == bits(number)
    assert Spearman().discount(1).tolist() == Spearman().utility([0]).tolist() == [0.0]
    nothing = [[], [1], [1, 1], np.zeros((0, 0)), np.zeros((1, 1)), np.zeros((2, 2)), cr.Preferences([], [])]
    nothing += [cr.Preferences.from_matrices([np.zeros((2, 2))]), cr.Preferences([0], [1], [0.0])]
    for metric in (PD(empty=empty), PD(empty=empty, normalise=False)):
        for labels in nothing:
            n = 2 if isinstance(labels, cr.Preferences) else len(labels)
            assert bits(metric(labels, scores=np.arange(n))) == bits(number)
            assert bits(metric.ideal(labels)) == bits(number)
            assert bits(metric.offset(labels)) == bits(number)


def test_the_lowest_value_is_that_of_an_order_that_loses_all() -> None:
    preferences = cr.Preferences([0, 0, 1], [1, 1, 2], [3, 4, 0.5], query=[7, 8, 8], judge=[0, 0, 1])
    aligned = preferences.align(np.array([7, 8]), np.array([2, 3]))
    assert PD().lowest(aligned).tolist() == [0, 0, 0]
    assert PD(normalise=False).lowest(aligned).tolist() == [-3, -4, -0.5]
    with pytest.raises(ValueError, match="aligned with lists of documents"):
        PD().lowest(preferences)
    y, offsets = np.array([2.0, 0, 1, 1, 5, 5]), np.array([0, 3, 4, 6])
    assert PD(normalise=False, pairs="difference", empty=0.5).label_lowest(y, offsets).tolist() == [-4, 0.5, 0.5]
    votes = cr.Rankings([[1, 0], [0, 1], [0]], query=[5, 5, 6]).align(np.array([5, 6]), np.array([2, 1]))
    assert Kendall(empty=0.5).lowest(votes).tolist() == [-1, -1, 0.5]
    assert ZeroOne().lowest(votes).tolist() == [0, 0, 1]  # one document has one order


# --- many lists -------------------------------------------------------------------------------------------------------


def many_lists(lists: int, seed: int) -> tuple[np.ndarray, np.ndarray, cr.Rankings, cr.Preferences, np.ndarray]:
    """Scores (some not ranked), offsets, rankings (some tied), preferences and grades of lists; some are not judged."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, lists)
    offsets = offsets_of(sizes)
    scores = rng.integers(0, 20, offsets[-1]).astype(np.float64)
    scores[rng.random(len(scores)) < 0.1] = -np.inf
    orders, query, edges = [], [], []
    for number, n in enumerate(sizes.tolist()):
        for _ in range(rng.integers(0, 4)):
            level = rng.integers(0, 2 * n, n)
            groups = [np.flatnonzero(level == value).tolist() for value in np.unique(level)]
            orders.append(groups)
            query.append(number)
        pairs = rng.integers(0, n, (rng.integers(0, 40), 2))
        edges += [(number, i, j, judge % 2) for judge, (i, j) in enumerate(pairs.tolist()) if i != j]
    table = np.array(edges)
    ids = np.arange(lists)
    preferences = cr.Preferences(
        table[:, 1], table[:, 2], rng.choice([0.1, 0.7, 1.0], len(table)), query=table[:, 0], judge=table[:, 3]
    )
    votes = cr.Rankings(orders, weight=rng.choice([1.0, 2.0], len(orders)), query=query)
    grades = rng.choice([0.0, 0.1, 0.7, 2.0], len(scores))
    return scores, offsets, votes.align(ids, sizes), preferences.align(ids, sizes), grades


def all_values(scores: Any, offsets: Any, votes: Any, preferences: Any, grades: Any) -> Iterator[np.ndarray]:
    for metric in RANKED:
        yield metric.judgement_values(scores, offsets, votes)
    for metric in PREFERRED:
        yield metric.judgement_values(scores, offsets, preferences)
        yield metric.label_values(scores, grades, offsets)


def test_many_lists_are_those_lists_one_by_one() -> None:
    """A document that is not ranked stands below all others, tied with the like; two of them win no preference."""
    scores, offsets, votes, preferences, grades = many_lists(40, seed=5)
    query = np.repeat(np.arange(40), votes.counts)
    finite = np.where(np.isinf(scores), -1.0, scores)
    lists = [slice(int(a), int(b)) for a, b in itertools.pairwise(offsets)]
    for metric in RANKED:
        found = metric.judgement_values(scores, offsets, votes)
        for number, at in enumerate(query.tolist()):
            ranking = votes.orders(at)[number - int(votes.offsets[at])]
            assert found[number] == metric(ranking, scores=finite[lists[at]])
    for metric in PREFERRED:
        found = metric.judgement_values(scores, offsets, preferences)
        for number, at in enumerate(np.repeat(np.arange(40), preferences.counts).tolist()):
            better, worse, weight = preferences.judgement(number)
            W = np.zeros((len(finite[lists[at]]),) * 2)
            W[better, worse] = weight
            unranked = np.isinf(scores[lists[at]])
            if not np.any(W[np.ix_(unranked, unranked)]):
                assert found[number] == metric(W, scores=finite[lists[at]])
            elif metric.ties == "half":
                assert found[number] < metric(W, scores=finite[lists[at]])
        by_grade = metric.label_values(scores, grades, offsets)
        assert by_grade.tolist() == [metric(grades[rows], scores=finite[rows]) for rows in lists]


def test_no_bit_depends_on_threads() -> None:
    held = many_lists(4000, seed=6)
    before = get_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            set_threads(threads)
            found.append([bits(values) for values in all_values(*held)])
    finally:
        set_threads(before)
    assert found[0] == found[1] == found[2]


@FEW
@given(st.data(), st.integers(1, 12))
def test_no_bit_depends_on_the_order_of_the_rows(data: st.DataObject, n: int) -> None:
    """Sums of weights that are rounded differently in another order, and counts beyond 2^53 in zero_one."""
    n *= data.draw(st.sampled_from([1, 3]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores, grades = rng.integers(0, 3, n) * 1.0, rng.choice([0.1, 0.7, 1 / 3, 1e9], n)
    level = np.minimum(-scores * 10 + rng.integers(0, 3, n), -5.0)  # often agrees with the scores
    W = rng.choice([0, 0.1, 0.7, 1 / 3, 1e9], (n, n)) * (1 - np.eye(n))
    move = rng.permutation(n)
    for metric in RANKED:
        first = metric(cr.Rankings.from_ranks([level]), scores=scores)
        assert bits(first) == bits(metric(cr.Rankings.from_ranks([level[move]]), scores=scores[move]))
    for metric in PREFERRED:
        assert bits(metric(W, scores=scores)) == bits(metric(W[np.ix_(move, move)], scores=scores[move]))
        assert bits(metric(grades, scores=scores)) == bits(metric(grades[move], scores=scores[move]))


def test_long_lists_are_judged() -> None:
    """Nothing is quadratic in the documents: all pairs of 100,000 would take minutes and 80 GB."""
    n, rng = 100_000, np.random.default_rng(7)
    scores, order = rng.normal(size=n), rng.permutation(n)
    grades, edges = rng.normal(size=n), rng.integers(0, n, (2, 4 * n))
    edges = edges[:, edges[0] != edges[1]]
    held = cr.Preferences(edges[0], edges[1], rng.random(edges.shape[1]))
    some: list[tuple[Any, Any]] = [(metric, order) for metric in RANKED]
    some += [(PD(), grades), (PD(pairs="difference"), grades), (PD(), held)]
    for metric, labels in some:
        assert abs(metric(labels, scores=scores) - (0.5 if isinstance(metric, PD) else 0.0)) < 0.02, metric


# --- names and what is refused ----------------------------------------------------------------------------------------


def test_names() -> None:
    for name, metric in {
        "spearman": Spearman(),
        "kendall(empty=skip)": Kendall(empty="skip"),
        "zero_one": ZeroOne(),
        "pd": PD(),
        "pd(normalise=false, ties=error, pairs=difference, empty=1)": PD(False, "error", "difference", 1.0),
    }.items():
        assert METRICS.build(name) == metric
        assert str(metric) == name
    assert METRICS.build("wpd") == PD()
    assert [metric.supervision for metric in (*RANKED, PD())] == ["rankings"] * 3 + ["preferences"]
    assert [metric.is_positional for metric in (*RANKED, PD())] == [True, False, False, False]


@pytest.mark.parametrize("metric", RANKED, ids=str)
def test_rankings_that_are_none_are_refused(metric: Any) -> None:
    name = str(metric)
    for labels, message in {
        (0, 2): f"{name}: the ranking: an order of 2 items holds each of 0..1 once",
        (0.5, 0.1): f"{name}: the ranking: an order is one row of whole numbers",
        ((0, 1), 1): f"{name}: the ranking: Rankings: entry 0 ranks document 1 twice",
    }.items():
        with pytest.raises(ValueError) as error:
            metric(labels, scores=[1, 2])
        assert str(error.value).startswith(message)
    votes = cr.Rankings([[1, 0, 2], [2, 0]], query=["a", "a"])
    partial = (
        f"{name}: expected rankings of all documents; judgement 1 of query a ranks 2 of 3 and leaves out document 1"
    )
    for call in (
        lambda: metric(votes, scores=[1, 2, 3]),
        lambda: metric.ideal(votes),
        lambda: metric.exact(votes, [0, 1, 2]),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value).startswith(partial)
    with pytest.raises(ValueError, match=f"{name}: expected Rankings of one query, got 2"):
        metric(cr.Rankings([[0], [0]], query=[1, 2]), scores=[1])
    with pytest.raises(TypeError, match=f"{name}: expected an order or Rankings as labels, got Preferences"):
        metric(cr.Preferences([0], [1]), scores=[1, 2])
    with pytest.raises(ValueError, match="has 2 documents, numbered from 0; got document 2"):
        metric(cr.Rankings([[0, 2]]), scores=[1, 2])
    with pytest.raises(ValueError, match=f"{name}: 2 labels and 3 scores"):
        metric([0, 1], scores=[1, 2, 3])
    with pytest.raises(ValueError, match=f"{name}: scores: expected finite numbers, got nan for document 1"):
        metric([0, 1], scores=[1, math.nan])
    aligned = cr.Rankings([[0, 1]]).align(np.array([0]), np.array([2]))
    with pytest.raises(ValueError, match="lists of other lengths"):
        metric.judgement_values(np.zeros(3), np.array([0, 3]), aligned)


def test_a_list_whose_sums_would_overflow_is_refused() -> None:
    with pytest.raises(ValueError, match=f"a list has {LONGEST + 1} documents"):
        Spearman().judgement_values(np.zeros(0), np.array([0, LONGEST + 1]), cr.Rankings([[0]]))


def test_preferences_that_are_none_are_refused() -> None:
    metric = PD()
    cases: list[tuple[Any, str]] = [
        (np.zeros((2, 3)), "pd: expected Preferences, a square matrix or a grade for each document; got an array of "),
        (
            [[0, 1], [0]],
            "pd: expected Preferences, a square matrix or a grade for each document; got rows of different",
        ),
        ([[0, -1], [0, 0]], "pd: expected weights from 0 to 1e+290; got -1.0 in row 0, column 1"),
        ([[0, math.nan], [0, 0]], "pd: expected weights from 0 to 1e+290; got nan in row 0, column 1"),
        ([[0, 1], [0, 2]], "pd: the diagonal must be 0: document 1 is preferred to itself"),
        ([1, math.nan], "pd: expected finite labels, got nan for document 1"),
        ([1, 2, 3], "pd: 3 labels and 2 scores"),
        (np.ma.masked_array([1, 2], [False, True]), "pd: document 1 has no label"),
        (cr.Preferences([0, 0], [1, 1], query=[1, 2]), "pd: expected Preferences of one query, got 2"),
        (cr.Preferences([0], [2]), "Preferences: query 0 has 2 documents, numbered from 0; got document 2"),
    ]
    for labels, message in cases:
        with pytest.raises(ValueError) as error:
            metric(labels, scores=[1, 2])
        assert str(error.value).startswith(message)
    with pytest.raises(TypeError, match="as labels, got Rankings"):
        metric(cr.Rankings([[0, 1]]), scores=[1, 2])
    with pytest.raises(ValueError, match="got nan for document 1 of list 1"):
        metric.label_values(np.zeros(3), np.array([0, 1, math.nan]), np.array([0, 1, 3]))
    with pytest.raises(ValueError, match="a score and a label for each of 2 documents, got 2 and 3"):
        metric.label_values(np.zeros(2), np.zeros(3), np.array([0, 2]))
    for wrong in ({"ties": "third"}, {"pairs": "ratio"}, {"normalise": 1}, {"empty": math.inf}):
        with pytest.raises(ValueError, match="pd: "):
            PD(**wrong)
