"""Synthetic data: the stated best values and regrets are recomputed by enumeration, and draws follow the truth.

Metrics are written here once more, naively, in fractions where they are rational; documents are numbered from 0 in code
and from 1 in the tables.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

import calirank as cr
from calirank.data.synthetic import CyclicPreferences, Grades, Jaguar, VoterRankings
from calirank.names import SCENARIOS
from calirank.orders import connected_components

F = Fraction
Order = tuple[int, ...]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "synthetic.md"
NAMES = SCENARIOS.names


# --- naive metrics: (supervision, order) -> value --------------------------------------------------------------------


def err(max_grade: int) -> Callable[[Any, Order], Fraction]:
    def value(labels: Any, order: Order) -> Fraction:
        total, survives = F(0), F(1)
        for rank, item in enumerate(order, start=1):
            stops = F(2 ** int(labels[item]) - 1, 2**max_grade)
            total += survives * stops / rank
            survives *= 1 - stops
        return total

    return value


def ap(labels: Any, order: Order) -> Fraction:
    found, total = 0, F(0)
    for rank, item in enumerate(order, start=1):
        if labels[item]:
            found += 1
            total += F(found, rank)
    return total / found if found else F(0)


def rr(labels: Any, order: Order) -> Fraction:
    return next((F(1, rank) for rank, item in enumerate(order, start=1) if labels[item]), F(0))


def precision(k: int) -> Callable[[Any, Order], Fraction]:
    return lambda labels, order: F(sum(int(labels[item]) for item in order[:k]), k)


def dcg(labels: Any, order: Order) -> float:
    return sum((2 ** labels[item] - 1) / math.log2(1 + rank) for rank, item in enumerate(order, start=1))


def ndcg(labels: Any, order: Order) -> float:
    ideal = dcg(labels, tuple(sorted(range(len(labels)), key=lambda item: -labels[item])))
    return dcg(labels, order) / ideal if ideal else 0.0


def pd(edges: Any, order: Order) -> Fraction:
    rank = {item: place for place, item in enumerate(order)}
    weights = [(int(b), int(w), F(float(v))) for b, w, v in zip(*edges, strict=True)]
    return 1 - sum(v for b, w, v in weights if rank[b] > rank[w]) / sum(v for _, _, v in weights)


def kendall(ranking: Any, order: Order) -> Fraction:
    rank, n = {item: place for place, item in enumerate(order)}, len(order)
    lost = sum(rank[ranking[i]] > rank[ranking[j]] for i in range(n) for j in range(i + 1, n))
    return 1 - F(4 * lost, n * (n - 1))


def spearman(ranking: Any, order: Order) -> Fraction:
    rank, n = {item: place for place, item in enumerate(order)}, len(order)
    return 1 - F(6 * sum((rank[item] - place) ** 2 for place, item in enumerate(ranking)), n * (n * n - 1))


def zero_one(ranking: Any, order: Order) -> Fraction:
    return F(tuple(ranking) == tuple(order))


METRICS: dict[str, Callable[[Any, Order], Any]] = {
    "err(max_grade=1)": err(1),
    "err(max_grade=2)": err(2),
    "ap": ap,
    "rr": rr,
    "precision@1": precision(1),
    "precision@2": precision(2),
    "dcg": dcg,
    "ndcg": ndcg,
    "pd": pd,
    "kendall": kendall,
    "spearman": spearman,
    "zero_one": zero_one,
}


# --- the truth of one list -------------------------------------------------------------------------------------------


def exact(probabilities: Any) -> list[Fraction]:
    """The fractions that floats stand for, when their denominators are moderate."""
    found = [F(float(p)).limit_denominator(10**6) for p in probabilities]
    assert sum(found) == 1
    assert all(abs(float(p) - q) < 1e-15 for p, q in zip(found, probabilities, strict=True))
    return found


def in_roles(data: cr.RankingData, query: int = 0) -> tuple[list[Any], Any]:
    """Outcomes of a query with its documents named by their roles, which its features tell."""
    outcomes, probabilities = data.posterior(query)
    names = data.feature_names or ()
    roles = data[query].X[:, [n for n, name in enumerate(names) if name.startswith("role_")]]
    assert np.array_equal(np.sort(roles.argmax(axis=1)), np.arange(len(roles)))
    assert roles.sum() == len(roles)
    role = roles.argmax(axis=1)
    if data.supervision == "preferences":
        return [(role[better], role[worse], weight) for better, worse, weight in outcomes], probabilities
    if data.supervision == "rankings":
        return [tuple(int(role[item]) for item in order) for order in outcomes], probabilities
    return [row[np.argsort(role)] for row in outcomes], probabilities


@cache
def truth(scenario: str) -> tuple[list[Any], tuple[Fraction, ...]]:
    outcomes, probabilities = in_roles(cr.synthetic(scenario, queries=1, seed=3))
    return outcomes, tuple(exact(probabilities))


def length(outcome: Any, metric: str) -> int:
    return 1 + int(max(outcome[0].max(), outcome[1].max())) if metric == "pd" else len(outcome)


@cache
def values(scenario: str, metric: str) -> dict[Order, Any]:
    """The expected value of every order."""
    outcomes, chances = truth(scenario)
    measure = METRICS[metric]
    return {
        order: sum(p * measure(outcome, order) for p, outcome in zip(chances, outcomes, strict=True))
        for order in permutations(range(length(outcomes[0], metric)))
    }


def best_orders(scenario: str, metric: str) -> list[Order]:
    table = values(scenario, metric)
    best = max(table.values())
    return [
        order for order, value in table.items() if value == best or (isinstance(best, float) and value > best - 1e-12)
    ]


def regret(scenario: str, metric: str, order: str) -> Any:
    table = values(scenario, metric)
    return max(table.values()) - table[order_of(order)]


def order_of(text: str) -> Order:
    return tuple(int(item) - 1 for item in text.split(">"))


def components(orders: list[Order]) -> list[int]:
    return sorted(np.bincount(connected_components(orders)).tolist())


# --- the stated values -----------------------------------------------------------------------------------------------


def rows_of_page() -> list[tuple[str, ...]]:
    """Rows of the page: scenario, metric, best value, best order, another order, its regret."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    rows = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]
    return [(row[0].strip("`"), *row[1:]) for row in rows if row[1] in METRICS]


def rows_of_docstring(scenario: type) -> list[tuple[str, ...]]:
    lines = (inspect.getdoc(scenario) or "").splitlines()
    rules = [number for number, line in enumerate(lines) if re.fullmatch(r"=+(  =+){5}", line)]
    return [tuple(re.split(r"\s{2,}", line)) for line in lines[rules[1] + 1 : rules[2]]]


def agrees(stated: str, computed: Any) -> bool:
    """A stated fraction or whole number is exact; a stated decimal number is rounded."""
    if "." in stated:
        return abs(float(stated) - float(computed)) <= 0.5000001 * 10 ** -len(stated.split(".")[1])
    if isinstance(computed, float):
        return abs(float(F(stated)) - computed) < 1e-12
    return F(stated) == computed


ROWS = rows_of_page()


@pytest.mark.parametrize("row", [row for row in ROWS if not row[0].startswith("grades")], ids=" ".join)
def test_a_stated_row_is_what_enumeration_finds(row: tuple[str, ...]) -> None:
    scenario, metric, best, best_order, other, lost = row
    table = values(scenario, metric)
    assert agrees(best, max(table.values()))
    assert agrees("0", regret(scenario, metric, best_order))
    assert agrees(lost, regret(scenario, metric, other))


@pytest.mark.parametrize("name", NAMES)
def test_every_scenario_states_its_values_on_the_page_and_in_its_docstring(name: str) -> None:
    on_page = [row for row in ROWS if re.match(rf"{name}(\(|$)", row[0])]
    assert on_page == rows_of_docstring(SCENARIOS[name])
    assert on_page
    assert f"## {name}:" in PAGE.read_text(encoding="utf-8")
    for row in on_page:
        assert SCENARIOS.name_of(SCENARIOS.build(row[0])) == row[0]


def test_a_wrong_row_would_be_noticed() -> None:
    assert not agrees("1/95", regret("jaguar", "err(max_grade=1)", "1>2>3>4"))
    assert not agrees("0.0135", regret("jaguar", "ndcg", "1>3>2>4"))
    assert not agrees("0", regret("dcg_vs_ndcg", "dcg", "1>2>3"))


# --- grades: sums against enumeration, and the truth against the formula ---------------------------------------------


def sorted_by(utility: Any) -> Order:
    return tuple(np.argsort(-np.asarray(utility), kind="stable").tolist())


def utilities(outcomes: Any, probabilities: Any) -> dict[str, Any]:
    gains = 2**outcomes - 1
    ideal = np.array([dcg(labels, sorted_by(labels)) for labels in outcomes])[:, None]
    relative = np.divide(gains, ideal, out=np.zeros_like(gains), where=ideal > 0)
    return {
        "by E[gain]": probabilities @ gains,
        "by E[gain/maxDCG]": probabilities @ relative,
        "by E[label]": probabilities @ outcomes,
    }


@cache
def grades_by_enumeration(scenario: str) -> list[tuple[Any, Any, dict[str, dict[Order, float]]]]:
    data = cr.synthetic(scenario, queries=40, seed=0)
    found = []
    for query in range(len(data)):
        outcomes, probabilities = data.posterior(query)
        lists = [row.tolist() for row in outcomes.astype(int)]
        tables = {
            metric: {
                order: sum(
                    p * float(METRICS[metric](labels, order))
                    for p, labels in zip(probabilities.tolist(), lists, strict=True)
                )
                for order in permutations(range(outcomes.shape[1]))
            }
            for metric in ("dcg", "ndcg", "err(max_grade=2)")
        }
        found.append((outcomes, probabilities, tables))
    return found


@pytest.mark.parametrize("row", [row for row in ROWS if row[0].startswith("grades")], ids=" ".join)
def test_a_stated_mean_of_grades_is_what_enumeration_finds(row: tuple[str, ...]) -> None:
    scenario, metric, best, best_order, other, lost = row
    best_values, regrets, best_regrets = [], [], []
    for outcomes, probabilities, tables in grades_by_enumeration(scenario):
        table, sorts = tables[metric], utilities(outcomes, probabilities)
        top = max(table.values())
        best_values.append(top)
        regrets.append(top - table[sorted_by(sorts[other])])
        best_regrets.append(0.0 if best_order == "by search" else top - table[sorted_by(sorts[best_order])])
    assert agrees(best, np.mean(best_values))
    assert agrees(lost, np.mean(regrets))
    assert max(best_regrets) < 1e-12


def test_the_best_dcg_and_ndcg_of_grades_are_the_stated_sums() -> None:
    for outcomes, probabilities, tables in grades_by_enumeration("grades(items=5, max_grade=2)"):
        for metric, rule in (("dcg", "by E[gain]"), ("ndcg", "by E[gain/maxDCG]")):
            utility = np.sort(utilities(outcomes, probabilities)[rule])[::-1]
            total = sum(u / math.log2(1 + rank) for rank, u in enumerate(utility, start=1))
            assert max(tables[metric].values()) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize(
    "scenario",
    [
        Grades(),
        Grades(items=(1, 9), max_grade=1, outcomes=3, noise=2.5, skew=0.3, noise_features=0),
        Grades(items=2, outcomes=1),
        Grades(items=4, outcomes=2, noise=0.0),
    ],
)
def test_the_truth_of_grades_is_the_stated_function_of_the_features(scenario: Grades) -> None:
    data, K = cr.synthetic(scenario, queries=6, seed=5), scenario.outcomes
    assert data.feature_names is not None
    column = {name: number for number, name in enumerate(data.feature_names)}
    for query in range(len(data)):
        X = data[query].X.astype(np.float64)
        outcomes, probabilities = data.posterior(query)
        assert len(set(X[:, column["topic"]])) == 1
        shares = [1 + scenario.skew * X[0, column["topic"]] * math.cos(2 * math.pi * k / K) for k in range(K)]
        np.testing.assert_allclose(probabilities, np.array(shares) / sum(shares), rtol=1e-12)
        for k in range(K):
            for document, x in enumerate(X):
                cos, sin = math.cos(2 * math.pi * k / K), math.sin(2 * math.pi * k / K)
                z = (2 * x[column["quality_1"]] + 2 * x[column["quality_2"]] + x[column["quality_3"]]) / 3
                z += scenario.noise * (x[column["taste_1"]] * cos + x[column["taste_2"]] * sin)
                assert outcomes[k, document] == min(max(math.floor(2 * z), 0), scenario.max_grade)


def test_the_noise_of_grades_is_shared_by_the_documents_of_a_query() -> None:
    """Two documents of a list are dependent given the features: their joint distribution is not the product."""
    outcomes, probabilities = cr.synthetic("grades", queries=1, seed=0).posterior(0)
    means = probabilities @ outcomes
    covariance = (outcomes - means).T @ ((outcomes - means) * probabilities[:, None])
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() > 0.1


def test_lengths_lie_between_their_bounds_around_the_geometric_mean() -> None:
    sizes = cr.synthetic("grades", items=(10, 160), queries=2000, seed=0).sizes
    assert sizes.min() == 10
    assert sizes.max() == 160
    assert 36 <= np.median(sizes) <= 44
    assert set(cr.synthetic("grades(items=[3, 3])", queries=9).sizes) == {3}


# --- what else the scenarios state -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [(51, 49), (11, 9), (7, 5), (3, 2), (13, 7)])
def test_jaguar_has_four_isolated_best_orders_for_err(first: int, second: int) -> None:
    name, p = f"jaguar(weights=[{first}, {second}])", F(first, first + second)
    best = best_orders(name, "err(max_grade=1)")
    assert components(best) == [1, 1, 1, 1]
    assert order_of("1>3>2>4") in best
    assert max(values(name, "err(max_grade=1)").values()) == F(5, 16) + F(13, 48) * p
    assert regret(name, "err(max_grade=1)", "1>2>3>4") == F(1, 12) - p / 8
    assert components(best_orders(name, "ap")) == [4]
    assert max(values(name, "ap").values()) == F(5, 12) + F(7, 12) * p
    assert regret(name, "ap", "1>3>2>4") == p / 4 - F(1, 12)
    assert max(values(name, "rr").values()) == (1 + p) / 2
    assert regret(name, "rr", "1>2>3>4") == (1 - p) / 6
    for metric in ("dcg", "ndcg", "precision@2"):
        assert order_of("1>2>3>4") in best_orders(name, metric)


def test_jaguar_with_equal_weights_is_the_witness_of_a_constant_utility() -> None:
    name = "jaguar(weights=[1, 1])"
    found, ranked = values(name, "err(max_grade=1)"), values(name, "ap")
    assert found[0, 2, 1, 3] - found[0, 1, 2, 3] == F(1, 48)
    assert ranked[0, 2, 1, 3] - ranked[0, 1, 2, 3] == F(-1, 24)
    assert components(best_orders(name, "err(max_grade=1)")) == [16]
    assert {tuple(sorted(item // 2 for item in order[:2])) for order in best_orders(name, "err(max_grade=1)")} == {
        (0, 1)
    }
    assert components(best_orders(name, "ap")) == [4, 4]


@pytest.mark.parametrize(
    ("weights", "each", "irrelevant"), [((3, 2, 1), 2, 0), ((3, 2, 1), 1, 2), ((5, 4), 3, 1), ((1,), 2, 1)]
)
def test_the_best_rr_of_jaguar_serves_every_intent_early(weights: tuple[int, ...], each: int, irrelevant: int) -> None:
    name = SCENARIOS.name_of(Jaguar(weights, each, irrelevant))
    p = [F(weight, sum(weights)) for weight in weights]
    assert max(values(name, "rr").values()) == sum(share / rank for rank, share in enumerate(p, start=1))
    by_relevance = ">".join(str(item + 1) for item in range(len(weights) * each + irrelevant))
    lost = sum(share * (F(1, c + 1) - F(1, 1 + each * c)) for c, share in enumerate(p))
    assert regret(name, "rr", by_relevance) == lost


def test_err_islands_are_two_and_vanish_with_a_larger_grade() -> None:
    assert best_orders("err_islands", "err(max_grade=1)") == [(0, 2, 1), (1, 2, 0)]
    assert components(best_orders("err_islands", "err(max_grade=1)")) == [1, 1]
    assert best_orders("err_islands", "err(max_grade=2)") == [(0, 1, 2), (1, 0, 2)]
    assert components(best_orders("err_islands", "err(max_grade=2)")) == [2]


def test_dcg_and_ndcg_share_no_best_order() -> None:
    assert best_orders("dcg_vs_ndcg", "dcg") == [(1, 2, 0), (2, 1, 0)]
    assert best_orders("dcg_vs_ndcg", "ndcg") == [(0, 1, 2), (0, 2, 1)]
    c = 1 / math.log2(3)
    assert max(values("dcg_vs_ndcg", "dcg").values()) == pytest.approx(0.56 * (1 + c) + 0.22, abs=1e-12)
    assert max(values("dcg_vs_ndcg", "ndcg").values()) == pytest.approx(0.44 + 0.56 * (c + 0.5) / (1 + c), abs=1e-12)
    assert regret("dcg_vs_ndcg", "ndcg", "2>3>1") == pytest.approx((0.44 - 0.56 / (1 + c)) / 2, abs=1e-12)


# --- preferences: conditions and best orders -------------------------------------------------------------------------


def margins(name: str, n: int) -> list[list[Fraction]]:
    """s[i][j] = E[y_ij - y_ji]."""
    outcomes, chances = truth(name)
    s = [[F(0)] * n for _ in range(n)]
    for p, edges in zip(chances, outcomes, strict=True):
        for better, worse, weight in zip(*edges, strict=True):
            s[better][worse] += p * F(float(weight))
            s[worse][better] -= p * F(float(weight))
    return s


def p_dag(s: list[list[Fraction]]) -> bool:
    left = set(range(len(s)))
    while left:
        last = [i for i in left if not any(s[i][j] > 0 for j in left)]
        if not last:
            return False
        left -= set(last)
    return True


def p_f(s: list[list[Fraction]]) -> bool:
    f, items = [sum(row) for row in s], range(len(s))
    return all(f[i] > f[j] for i in items for j in items if s[i][j] > 0)


def low_noise(s: list[list[Fraction]]) -> bool:
    items = range(len(s))
    return all(s[i][j] >= s[i][k] + s[k][j] for i in items for k in items for j in items if s[i][k] > 0 and s[k][j] > 0)


CYCLES = [F(0), F(1, 4), F(1, 2), F(3, 5), F(5, 8), F(2, 3), F(3, 4), F(4, 5), F(1)]


@pytest.mark.parametrize("c", CYCLES, ids=str)
@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("graph", ["order", "distance", "chain"])
def test_the_conditions_on_preferences_hold_where_the_page_says(graph: Any, n: int, c: Fraction) -> None:
    name = SCENARIOS.name_of(CyclicPreferences(n, float(c), graph))
    s = margins(name, n)
    squares = sum(k * k for k in range(1, n))
    natural, reverse = (">".join(map(str, order)) for order in (range(1, n + 1), range(n, 0, -1)))
    turned = ">".join(map(str, [*range(2, n + 1), 1]))
    best = max(values(name, "pd").values())
    if graph == "order":
        assert all(s[i][j] == 1 - 2 * c * F(j - i, n) for i in range(n) for j in range(i + 1, n))
        assert [sum(row) for row in s] == [(1 - c) * (n + 1 - 2 * i) for i in range(1, n + 1)]
        acyclic = c <= F(n, 2 * (n - 1))
        assert (p_dag(s), p_f(s), low_noise(s)) == (acyclic, acyclic, n == 2)
        assert best == 1 - c * F(n + 1, 3 * n)
        assert regret(name, "pd", turned) == 2 * (1 - c) / n
        assert regret(name, "pd", reverse) == 1 - 2 * c * F(n + 1, 3 * n)
    elif graph == "distance":
        assert all(s[i][j] == (1 - c) * (j - i) for i in range(n) for j in range(i + 1, n))
        assert (p_dag(s), p_f(s), low_noise(s)) == (True, True, True)
        assert best == 1 - c / 2
        assert regret(name, "pd", reverse) == 1 - c
    else:
        assert (p_dag(s), p_f(s), low_noise(s)) == (c == 0 or n == 2, n == 2, n == 2)
        assert best == 1 - c / n
        f = [sum(row) for row in s]
        if n > 2:
            assert f == [(1 - c) * (2 * i - 1) for i in range(1, n)] + [-(1 - c) * (n - 1) ** 2]
        by_f = ">".join(map(str, [*range(n - 1, 0, -1), n]))
        assert regret(name, "pd", by_f) == (1 - c) * F(squares - (n - 1) ** 2, squares) + c * F(n - 2, n)
    assert regret(name, "pd", natural) == 0
    if c < 1:
        assert best_orders(name, "pd") == [tuple(range(n))]


def test_every_judge_of_the_preferences_is_acyclic() -> None:
    data = cr.synthetic("preferences(items=5, cycle=1)", queries=4, judges=3, seed=1)
    assert data.preferences is not None
    for query in range(len(data)):
        for better, worse, weight in [*data.preferences.edges(query), *data.posterior(query)[0]]:
            cr.Preferences(better, worse, weight, dag=True)
            assert len(better) == 10


# --- rankings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [F(2, 5), F(3, 8), F(9, 20)], ids=str)
@pytest.mark.parametrize("n", [3, 4])
def test_two_groups_of_voters_part_kendall_from_spearman(n: int, p: Fraction) -> None:
    name = SCENARIOS.name_of(VoterRankings(n, (p.denominator - p.numerator, p.numerator), "fixed"))
    majority = ">".join(map(str, range(1, n + 1)))
    borda = ">".join(map(str, [2, 1, *range(3, n + 1)]))
    assert F(1, n) < p < F(2, n)
    assert max(values(name, "kendall").values()) == 1 - 4 * p / n
    assert max(values(name, "zero_one").values()) == 1 - p
    assert (
        regret(name, "kendall", majority) == regret(name, "zero_one", majority) == regret(name, "spearman", borda) == 0
    )
    assert regret(name, "kendall", borda) == 4 * (1 - 2 * p) / (n * (n - 1))
    assert regret(name, "spearman", majority) == 12 * (p * n - 1) / (n * (n * n - 1))
    for metric in ("kendall", "spearman", "zero_one"):
        assert len(best_orders(name, metric)) == 1


@pytest.mark.parametrize("model", ["mallows", "plackett_luce"])
@pytest.mark.parametrize("q", [0.25, 0.5, 0.9])
def test_one_group_of_voters_has_the_stated_pairwise_probabilities(model: Any, q: float) -> None:
    n = 4
    outcomes, chances = in_roles(cr.synthetic(VoterRankings(n, (1,), model, q), queries=1))
    assert len(set(outcomes)) == math.factorial(n)
    for i in range(n):
        for j in range(i + 1, n):
            d = j - i
            right = sum(p for p, order in zip(chances, outcomes, strict=True) if order.index(i) < order.index(j))
            mallows = (d + 1) / (1 - q ** (d + 1)) - d / (1 - q**d)
            assert right == pytest.approx(mallows if model == "mallows" else 1 / (1 + q**d), abs=1e-12)
    name = SCENARIOS.name_of(VoterRankings(n, (1,), model, 0.5))
    for metric in ("kendall", "spearman", "zero_one"):
        assert best_orders(name, metric) == [tuple(range(n))]


def test_mallows_and_plackett_luce_are_the_models_of_these_names() -> None:
    """By their definitions: q to the number of inversions; one draw after the other in proportion to strength."""
    for model in ("mallows", "plackett_luce"):
        outcomes, chances = truth(f"rankings(items=3, weights=[1], model={model}, spread=0.5)")
        for order, p in zip(outcomes, chances, strict=True):
            if model == "mallows":
                wrong = sum(order[a] > order[b] for a in range(3) for b in range(a + 1, 3))
                expected = F(1, 2**wrong) / (1 + 2 * F(1, 2) + 2 * F(1, 4) + F(1, 8))
            else:
                strength = [F(1, 2**item) for item in order]
                expected = strength[0] / sum(strength) * strength[1] / (strength[1] + strength[2])
            assert p == expected


def test_a_long_list_takes_fixed_orders() -> None:
    data = cr.synthetic("rankings(model=fixed, items=60, weights=[3, 2, 1])", queries=2, judges=2)
    outcomes, probabilities = in_roles(data, 1)
    expected = [(*range(m, 60), *range(m)) for m in range(3)]
    assert [tuple(order) for order in outcomes] == expected
    np.testing.assert_allclose(probabilities, [1 / 2, 1 / 3, 1 / 6])


# --- every scenario --------------------------------------------------------------------------------------------------


def as_key(outcome: Any) -> Any:
    if isinstance(outcome, tuple) and isinstance(outcome[0], np.ndarray):
        return tuple(sorted(zip(*(array.tolist() for array in outcome), strict=True)))
    return tuple(outcome.tolist() if isinstance(outcome, np.ndarray) else outcome)


def drawn(data: cr.RankingData, query: int) -> Iterator[Any]:
    if data.y is not None:
        yield as_key(data.y[data.rows(query)])
    elif data.judges is not None:
        yield from map(as_key, data.judges.matrix(query))
    elif data.preferences is not None:
        yield from map(as_key, data.preferences.edges(query))
    else:
        assert data.rankings is not None
        yield from map(as_key, data.rankings.orders(query))


def distribution(data: cr.RankingData, query: int) -> Counter[Any]:
    """Probabilities of the different outcomes."""
    total: Counter[Any] = Counter()
    for outcome, probability in zip(*data.posterior(query), strict=True):
        total[as_key(outcome)] += probability
    return total


def small(name: str) -> str:
    return "grades(items=[1, 6], max_grade=2)" if name == "grades" else name


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_sum_to_one_and_draws_are_outcomes(name: str) -> None:
    for judges in (None, 3):
        data = cr.synthetic(small(name), queries=50, seed=2, judges=judges)
        assert data.X.dtype == np.float32
        assert data.feature_names is not None
        assert len(data.feature_names) == data.n_features
        for query in range(len(data)):
            truth_of_query = distribution(data, query)
            assert sum(truth_of_query.values()) == pytest.approx(1, abs=1e-12)
            assert min(truth_of_query.values()) > 0
            found = list(drawn(data, query))
            assert len(found) == (judges or 1)
            assert set(found) <= set(truth_of_query)


@pytest.mark.parametrize("name", NAMES)
def test_draws_follow_the_posterior(name: str) -> None:
    judges = 3000
    data = cr.synthetic(small(name), queries=3, seed=11, judges=judges)
    for query in range(len(data)):
        found, expected = Counter(drawn(data, query)), distribution(data, query)
        if len(expected) > 1:
            counts = [found[outcome] for outcome in expected]
            assert chisquare(counts, judges * np.array(list(expected.values()))).pvalue > 1e-3


@pytest.mark.parametrize("name", [name for name in NAMES if name != "grades"])
def test_over_queries_each_outcome_comes_as_often_as_it_should(name: str) -> None:
    """One draw a query; the roles make the queries comparable."""
    data = cr.synthetic(name, queries=2000, seed=4)
    expected: Counter[Any] = Counter()
    for outcome, probability in zip(*in_roles(data), strict=True):
        expected[as_key(outcome)] += probability
    found: Counter[Any] = Counter()
    for query in range(len(data)):
        outcomes = [as_key(outcome) for outcome in data.posterior(query)[0]]
        found[as_key(in_roles(data, query)[0][outcomes.index(next(drawn(data, query)))])] += 1
    assert sum(found.values()) == 2000
    assert chisquare([found[key] for key in expected], 2000 * np.array(list(expected.values()))).pvalue > 1e-3


def test_judges_are_independent_of_each_other() -> None:
    data = cr.synthetic("jaguar", queries=3000, seed=9, judges=2)
    assert data.judges is not None
    cars = np.array(
        [[row[data[query].X[:, 0].argmax()] for row in data.judges.matrix(query)] for query in range(len(data))]
    )
    table = [[np.count_nonzero((cars[:, 0] == a) & (cars[:, 1] == b)) for b in (0, 1)] for a in (0, 1)]
    assert chi2_contingency(table).pvalue > 1e-3


@pytest.mark.parametrize("name", [name for name in NAMES if name != "grades"])
def test_the_features_determine_the_posterior(name: str) -> None:
    """Documents in the same roles have the same distribution, in every query and for every seed."""

    def told(data: cr.RankingData, query: int) -> list[Any]:
        outcomes, probabilities = in_roles(data, query)
        return [(as_key(outcome), float(p)) for outcome, p in zip(outcomes, probabilities, strict=True)]

    one, other = cr.synthetic(name, queries=20, seed=0), cr.synthetic(name, queries=20, seed=1)
    first = told(one, 0)
    assert all(told(data, query) == first for data in (one, other) for query in range(20))
    assert len({one[query].X[:, : one.n_features - 2].tobytes() for query in range(20)}) > 3  # dealt anew each time


def test_every_deal_of_the_roles_is_as_likely() -> None:
    X = cr.synthetic("err_islands", queries=3000, seed=6).X[:, :3].reshape(-1, 3, 3)
    deals = Counter(tuple(row) for row in X.argmax(axis=2).tolist())
    assert len(deals) == 6
    assert chisquare(list(deals.values())).pvalue > 1e-3


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("judges", [None, 2])
def test_the_seed_decides_everything(name: str, judges: int | None) -> None:
    def made(seed: Any) -> cr.RankingData:
        return cr.synthetic(small(name), queries=30, seed=seed, judges=judges)

    first = made(7)
    assert first.equals(made(7))
    assert first.equals(made(np.random.default_rng(7)))
    assert first.equals(made(np.random.Generator(np.random.PCG64(7))))
    assert not first.equals(made(8))
    with ThreadPoolExecutor(4) as pool:
        assert all(first.equals(data) for data in pool.map(made, [7] * 8))
    generator = np.random.default_rng(7)
    assert made(generator).equals(first)
    assert not made(generator).equals(first)


@pytest.mark.parametrize("name", NAMES)
def test_judges_do_not_change_features_or_truth(name: str) -> None:
    one, many = (cr.synthetic(small(name), queries=9, seed=3, judges=judges) for judges in (1, 4))
    assert np.array_equal(one.X, many.X)
    assert [distribution(one, q) for q in range(9)] == [distribution(many, q) for q in range(9)]
    alone = cr.synthetic(small(name), queries=9, seed=3)
    assert [list(drawn(alone, q)) for q in range(9)] == [list(drawn(one, q)) for q in range(9)]


DIGEST = """
import hashlib, sys
import calirank as cr
found = hashlib.sha256()
for name in cr.names.SCENARIOS.names:
    data = cr.synthetic(name, queries=20, seed=1)
    for array in (data.X, data._posterior.weight, *data._posterior.payload, data.y):
        found.update(b"" if array is None else array.tobytes())
print(found.hexdigest())
"""


def test_another_process_makes_the_same_bits() -> None:
    found = hashlib.sha256()
    for name in NAMES:
        data = cr.synthetic(name, queries=20, seed=1)
        truth_of_data = data._posterior
        assert truth_of_data is not None
        for array in (data.X, truth_of_data.weight, *truth_of_data.payload, data.y):
            found.update(b"" if array is None else array.tobytes())
    run = subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == found.hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_selection_and_folders_keep_the_posterior(name: str, tmp_path: Path) -> None:
    data = cr.synthetic(small(name), queries=12, seed=5)
    before = [distribution(data, query) for query in range(12)]
    assert [distribution(data[3:7], query) for query in range(4)] == before[3:7]
    assert [distribution(data[[9, 0, 9]], query) for query in range(3)] == [before[9], before[0], before[9]]
    assert distribution(data[np.arange(12) == 4], 0) == distribution(data[4], 0) == before[4]
    both = cr.concatenate([data[:5], data[5:]])
    assert both.equals(data)
    data.save(tmp_path / "data")
    opened = cr.RankingData.open(tmp_path / "data")
    assert opened.equals(data)
    assert [distribution(opened, query) for query in range(12)] == before


# --- names and errors ------------------------------------------------------------------------------------------------


def test_parameters_stand_in_the_name_or_as_keywords_or_in_an_object() -> None:
    data = cr.synthetic("jaguar(weights=[3, 2], each=1)", queries=5)
    assert data.equals(cr.synthetic("Jaguar", queries=5, weights=(3, 2), each=1))
    assert data.equals(cr.synthetic("jaguar(weights=[3, 2])", queries=5, each=np.int64(1)))
    assert data.equals(cr.synthetic("jaguar", queries=5, weights=np.array([3, 2]), each=1))
    assert data.equals(cr.synthetic(Jaguar((3, 2), 1), queries=5))
    assert cr.synthetic("grades", queries=3, items=[2, 4]).equals(cr.synthetic(Grades(items=(2, 4)), queries=3))
    assert Jaguar([3, 2]) == Jaguar((3.0, 2.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gradse",), "Did you mean 'grades'"),
        (("grades", {"itms": 5}), "no parameter 'itms'. Did you mean 'items'"),
        (("grades(items=5)", {"items": 6}), "'items' is given twice"),
        (("grades@5",), "takes no cut-off"),
        (("grades + jaguar",), "is a sum"),
        (("grades", {"items": 0}), "grades: items: expected a whole number from 1 on, got 0"),
        (("grades", {"items": -3}), "grades: items"),
        (("grades", {"items": 2.5}), "'items' takes a whole number or a list"),
        (("grades", {"items": (5, 4)}), "second bound: expected a whole number from 5 on, got 4"),
        (("grades", {"items": (1, 2, 3)}), "'items' takes a whole number or a list of 2"),
        (("grades", {"max_grade": 0}), "max_grade"),
        (("grades", {"outcomes": 0}), "outcomes"),
        (("grades", {"noise": -0.5}), "noise: expected a finite number from 0"),
        (("grades", {"skew": 1.5}), "skew: expected a finite number from 0 to 1, got 1.5"),
        (("grades", {"noise_features": -1}), "noise_features"),
        (("jaguar", {"weights": (1, 0)}), r"expected at least one finite number > 0, got \[1.0, 0.0\]"),
        (("jaguar", {"weights": (1, -2)}), "finite number > 0"),
        (("jaguar", {"weights": ()}), "at least one"),
        (("jaguar", {"weights": (1, "2")}), "'weights' takes a list of which each is a number"),
        (("jaguar", {"each": 0}), "each"),
        (("jaguar", {"irrelevant": -1}), "irrelevant"),
        (("err_islands", {"noise_features": -1}), "noise_features"),
        (("err_islands", {"items": 4}), "no parameter 'items'"),
        (("dcg_vs_ndcg", {"noise_features": -1}), "noise_features"),
        (("preferences", {"items": 1}), "items: expected a whole number from 2 on"),
        (("preferences", {"cycle": 1.01}), "cycle: expected a finite number from 0 to 1"),
        (("preferences", {"cycle": -0.1}), "cycle"),
        (("preferences", {"graph": "tree"}), "'graph' takes order or distance or chain"),
        (("preferences", {"noise_features": -1}), "noise_features"),
        (("rankings", {"items": 1}), "items"),
        (("rankings", {"items": 7}), "model=fixed takes lists of any length"),
        (("rankings", {"weights": (1, 1, 1, 1)}), "3 items have 3 centres; got 4"),
        (("rankings", {"model": "normal"}), "'model' takes mallows or plackett_luce or fixed"),
        (("rankings", {"spread": 0}), "spread"),
        (("rankings", {"noise_features": -1}), "noise_features"),
        (("grades", {"queries": 0}), "queries: expected a whole number from 1 on, got 0"),
        (("grades", {"queries": -5}), "queries"),
        (("grades", {"judges": 0}), "judges: expected a whole number from 1 on, got 0"),
        (("grades", {"seed": -1}), "seed"),
    ],
)
def test_a_bad_argument_is_refused_with_what_was_expected(arguments: tuple[Any, ...], message: str) -> None:
    scenario, keywords = arguments[0], dict(arguments[1]) if len(arguments) > 1 else {}
    with pytest.raises(ValueError, match=message):
        cr.synthetic(scenario, **{"queries": 3, **keywords})


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: cr.synthetic(5), "expected a name or a scenario, got int"),
        (lambda: cr.synthetic(Jaguar(), each=3), "each goes with a name"),
        (lambda: cr.synthetic("grades", queries=2.5), "queries: expected a whole number"),
        (lambda: cr.synthetic("grades", queries=True), "queries: expected a whole number"),
        (lambda: cr.synthetic("grades", seed="1"), "seed .or a numpy.random.Generator.: expected"),
        (lambda: cr.synthetic("grades", seed=None), "seed"),
        (lambda: Grades(items=2.5), "items: expected a whole number, got 2.5"),
        (lambda: Grades(noise="1"), "noise: expected a number"),
        (lambda: Jaguar(weights="12"), "weights: expected a list of numbers"),
        (lambda: Jaguar(weights=3), "weights: expected a list of numbers"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(made: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        made()


@pytest.mark.parametrize(
    "made",
    [
        lambda: Grades(noise=math.nan),
        lambda: Grades(noise=math.inf),
        lambda: Grades(items=(1, 2, 3)),
        lambda: Jaguar(weights=(1.0, math.inf)),
        lambda: Jaguar(weights=(1.0, math.nan)),
        lambda: CyclicPreferences(cycle=math.nan),
        lambda: CyclicPreferences(graph="tree"),
        lambda: VoterRankings(model="normal"),
    ],
)
def test_objects_check_their_parameters_too(made: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        made()
