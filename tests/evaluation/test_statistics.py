"""Intervals, paired tests and corrections against SciPy, enumeration and simulation."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calirank.evaluation import statistics
from calirank.evaluation.statistics import (
    Interval,
    Record,
    bootstrap_interval,
    cohens_d_paired,
    holm,
    mean,
    mean_interval,
    over_folds,
    over_seeds,
    paired_t_test,
    randomisation_test,
    randomisation_tests,
    win_tie_loss,
)

NAN = math.nan
VALUES = st.floats(0, 1).map(lambda x: round(x, 3))
PAIRED = st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=12)
COARSE = st.lists(st.integers(-4, 4), min_size=1, max_size=9)


def random_values(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


def same(found: tuple[float, ...], expected: tuple[float, ...]) -> bool:
    return np.allclose(found, expected, rtol=1e-9, atol=1e-12, equal_nan=True)


def reference_sign_flip(d: list[Fraction]) -> Fraction:
    """The share of all sign patterns whose sum is at least as far from 0, in exact arithmetic."""
    patterns = list(itertools.product((1, -1), repeat=len(d)))
    sums = [abs(sum((s * x for s, x in zip(signs, d, strict=True)), Fraction(0))) for signs in patterns]
    return Fraction(sum(found >= abs(sum(d)) for found in sums), len(patterns))


# --- intervals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("n", [2, 3, 40])
def test_the_t_interval_is_that_of_scipy(n: int, level: float) -> None:
    """Student's interval of a mean, NaN left out."""
    x = random_values(n, n)
    expected = stats.ttest_1samp(x, 0).confidence_interval(level)
    assert same(mean_interval([NAN, *x, NAN], level)[:2], (expected.low, expected.high))


def test_the_weighted_interval_follows_its_formula() -> None:
    """The linearised variance of a ratio, written with plain loops."""
    x, w = [0.2, 0.9, 0.4, 0.4], [1.0, 3.0, 0.5, 2.0]
    center = sum(a * b for a, b in zip(x, w, strict=True)) / sum(w)
    variance = 4 / 3 * sum((b * (a - center)) ** 2 for a, b in zip(x, w, strict=True)) / sum(w) ** 2
    half = stats.t.ppf(0.975, 3) * math.sqrt(variance)
    assert same(mean_interval(x, weights=w)[:2], (center - half, center + half))
    assert mean(x, w) == pytest.approx(center, rel=1e-14)


@pytest.mark.parametrize(
    "interval", [mean_interval, lambda x, weights=None: bootstrap_interval(x, seed=3, weights=weights)]
)
def test_equal_weights_change_nothing_and_no_weight_drops(interval: Callable[..., Interval]) -> None:
    """Weights are relative; a query of weight 0 is as good as absent."""
    x = random_values(0, 30)
    assert interval(x, weights=np.full(30, 0.3)) == interval(x)
    weights = np.where(np.arange(30) < 20, 1.0, 0.0)
    assert interval(x, weights=weights) == interval(x[:20]) == interval(np.where(weights > 0, x, NAN))


@pytest.mark.parametrize("weighted", [False, True])
def test_t_intervals_hold_the_mean_as_often_as_they_say(weighted: bool) -> None:
    """Of 2,000 samples about 95 % of the intervals hold the true mean (three standard errors either side)."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(2000):
        x = rng.normal(0.4, 0.2, 40)
        low, high, _ = mean_interval(x, weights=rng.uniform(0.5, 1.5, 40) if weighted else None)
        held += low <= 0.4 <= high
    assert abs(held / 2000 - 0.95) < 3 * math.sqrt(0.95 * 0.05 / 2000)


def test_weights_that_go_with_the_value_are_accounted_for() -> None:
    """The estimator is Σwx / Σw of queries drawn with their weights; its interval holds E wx / E w."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(1000):
        w = rng.uniform(0.5, 2.5, 200)
        low, high, _ = mean_interval(w + rng.normal(0, 0.1, 200), weights=w)
        held += low <= (1.5**2 + 4 / 12) / 1.5 <= high
    assert abs(held / 1000 - 0.95) < 0.025


def test_bootstrap_intervals_hold_the_mean_nearly_as_often_as_they_say() -> None:
    """With 60 skewed values a percentile interval of 95 % holds the mean in 92 to 96 % of samples."""
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(1000):
        low, high, _ = bootstrap_interval(rng.exponential(1, 60), seed=rng, resamples=300)
        held += low <= 1 <= high
    assert 0.91 < held / 1000 < 0.965


def test_the_bootstrap_is_that_of_scipy() -> None:
    """The percentile interval, up to the noise of the resamples."""
    x = random_values(4, 50) ** 3
    expected = stats.bootstrap(
        (x,), np.mean, n_resamples=20_000, method="percentile", random_state=np.random.default_rng(0)
    ).confidence_interval
    found = bootstrap_interval(x, seed=1, resamples=20_000)
    width = expected.high - expected.low
    assert abs(found.low - expected.low) < 0.02 * width
    assert abs(found.high - expected.high) < 0.02 * width


def test_the_bootstrap_follows_a_plain_loop() -> None:
    """Each resample draws n queries and takes the ratio of their sums."""
    x, w = random_values(5, 17), random_values(6, 17) + 0.1
    rng = np.random.Generator(np.random.PCG64(9))
    means = []
    for _ in range(200):
        drawn = rng.integers(0, 17, 17)
        means.append(sum(w[drawn] * x[drawn]) / sum(w[drawn]))
    expected = np.quantile(means, [0.05, 0.95])
    assert same(bootstrap_interval(x, seed=9, resamples=200, level=0.9, weights=w)[:2], tuple(expected))


def test_the_bootstrap_does_not_depend_on_the_size_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives the same interval; another one gives another."""
    x = random_values(7, 100)
    found = bootstrap_interval(x, seed=1)
    monkeypatch.setattr(statistics, "_BLOCK", 8 * 700)
    assert bootstrap_interval(x, seed=1) == bootstrap_interval(x, seed=np.random.Generator(np.random.PCG64(1))) == found
    assert bootstrap_interval(x, seed=2) != found


@pytest.mark.parametrize("interval", [mean_interval, lambda x: bootstrap_interval(x, seed=0)])
def test_intervals_of_few_and_of_equal_values(interval: Callable[[Any], Interval]) -> None:
    """Nothing is known of no value, no spread of one, and equal values have none."""
    assert all(math.isnan(end) for end in interval([])[:2])
    assert all(math.isnan(end) for end in interval([NAN, NAN])[:2])
    assert interval([0.3, NAN]) == (-math.inf, math.inf, 0.95)
    assert interval([0.1] * 10) == (0.1, 0.1, 0.95)


def test_a_bar_shows_the_resamples(capsys: pytest.CaptureFixture[str]) -> None:
    """progress=True draws on stderr, and nothing is drawn without a terminal."""
    bootstrap_interval([0.1, 0.2], seed=0)
    randomisation_test(random_values(0, 30), random_values(1, 30), seed=0)
    assert capsys.readouterr() == ("", "")
    bootstrap_interval([0.1, 0.2], seed=0, progress=True)
    randomisation_test(random_values(0, 30), random_values(1, 30), seed=0, progress=True)
    shown = capsys.readouterr().err
    assert "bootstrap" in shown
    assert "randomisation" in shown


# --- seeds and folds -------------------------------------------------------------------------------------------------


def test_seeds_are_averaged_query_by_query() -> None:
    """A query that one seed lacks is lacking; the spread is of the means over the same queries."""
    run = over_seeds([[0.1, 0.5, NAN], [0.3, 0.5, 0.9], [0.2, 0.2, 0.8]], weights=[3, 1, 1])
    assert same(tuple(run.values), (0.2, 0.4, NAN))
    assert same(tuple(run.means), (0.2, 0.35, 0.2))
    assert run.spread == pytest.approx(np.std([0.2, 0.35, 0.2], ddof=1))


def test_one_seed_has_no_spread_and_equal_seeds_spread_0() -> None:
    """One row is taken as it is; copies of it change nothing."""
    x = random_values(0, 9)
    alone, thrice = over_seeds(x), over_seeds([x, x, x])
    assert math.isnan(alone.spread)
    assert thrice.spread == 0
    assert np.array_equal(alone.values, x)
    assert np.array_equal(thrice.values, x)


def test_seeds_do_not_pass_for_queries() -> None:
    """Where the methods are equal on average over queries, averaging first keeps the level; stacking seeds does not."""
    rng = np.random.default_rng(0)
    averaged = stacked = 0
    for _ in range(300):
        d = rng.normal(0, 1, 20) + rng.normal(0, 0.1, (5, 20))
        averaged += paired_t_test(over_seeds(d).values, np.zeros(20)).p <= 0.05
        stacked += paired_t_test(d.ravel(), np.zeros(100)).p <= 0.05
    assert averaged / 300 < 0.09
    assert stacked / 300 > 0.3


def test_folds_stand_one_after_the_other() -> None:
    """Queries of folds are pooled; seeds stay rows."""
    assert over_folds([[0.1, 0.2], [], [0.3]]).tolist() == [0.1, 0.2, 0.3]
    assert over_folds([[[1, 2], [3, 4]], [[5], [6]]]).tolist() == [[1, 2, 5], [3, 4, 6]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: over_folds([]), "at least one fold"),
        (lambda: over_folds([[0.1], [[0.1], [0.2]]]), r"folds\[1\]: expected 1 seeds"),
        (lambda: over_seeds([[0.1, 0.2], [0.1]]), "for each seed, got seeds of shapes"),
        (lambda: over_seeds(np.zeros((2, 2, 2))), "expected shape"),
        (lambda: mean_interval([[0.1]]), "one value a query in one row"),
        (lambda: mean_interval([math.inf]), "finite numbers or NaN, got inf"),
        (lambda: mean_interval([0.1, 0.2], 95), "level: expected a number between 0 and 1, got 95"),
        (lambda: mean_interval([0.1, 0.2], weights=[1]), "one for each of 2 queries"),
        (lambda: mean_interval([0.1, 0.2], weights=[1, -1]), "finite numbers >= 0, got -1"),
        (lambda: mean_interval([0.1, 0.2], weights=[1, NAN]), "finite numbers >= 0, got nan"),
        (lambda: bootstrap_interval([0.1], seed=0, resamples=0), "resamples: expected"),
        (lambda: bootstrap_interval([0.1], seed=-1), "seed: expected"),
        (lambda: randomisation_test([0.1], [0.2], seed=None), "seed: expected"),
        (lambda: paired_t_test([0.1], [0.2, 0.3]), "got 1 and 2"),
        (lambda: holm([0.1, 1.5]), "from 0 to 1"),
    ],
)
def test_what_is_refused(call: Callable[[], object], message: str) -> None:
    """Errors say what was expected and what came."""
    with pytest.raises(ValueError, match=message):
        call()


# --- the t test ------------------------------------------------------------------------------------------------------


@given(PAIRED)
def test_the_t_test_is_that_of_scipy(values: list[tuple[float, float]]) -> None:
    """Statistic, p value and interval, wherever the differences have a spread."""
    a, b = np.array(values).T
    found = paired_t_test(a, b, level=0.9)
    if np.ptp(a - b) > 1e-9:
        expected = stats.ttest_rel(a, b)
        interval = expected.confidence_interval(0.9)
        assert np.allclose((found.statistic, found.p), (expected.statistic, expected.pvalue), rtol=1e-6, atol=1e-12)
        assert np.allclose(found.interval[:2], interval, rtol=1e-6, atol=1e-12)
    else:
        assert found.p == (1 if np.allclose(a, b) else 0)
    assert found.n == len(values)


def test_the_t_test_drops_queries_that_one_run_lacks() -> None:
    """Pairs are of the queries where both have a value and the weight is not 0."""
    a, b = random_values(0, 12), random_values(1, 12)
    holed = a.copy(), b.copy()
    holed[0][3], holed[1][[5, 7]] = NAN, NAN
    keep = [0, 1, 2, 4, 6, 8, 9, 10]
    found = paired_t_test(*holed, weights=np.arange(12) < 11)
    assert found == paired_t_test(a[keep], b[keep])
    assert found.n == 8


def test_edges_of_the_t_test() -> None:
    """Equal runs, a constant difference, one query, none."""
    x = random_values(0, 7)
    assert paired_t_test(x, x)[:4] == (0, 1, 7, 0)
    assert paired_t_test(x, x).interval == (0, 0, 0.95)
    above = paired_t_test(x + 0.1, x)
    assert above[:3] == (math.inf, 0, 7)
    assert above.interval.low == above.interval.high == above.difference
    assert paired_t_test(x, x + 0.1).statistic == -math.inf
    assert paired_t_test(x, x * (1 + 1e-15)).p == 1  # rounding
    assert paired_t_test([0.5], [0.5]).p == 1
    assert math.isnan(paired_t_test([0.5], [0.4]).p)
    assert paired_t_test([0.5], [0.4]).interval == (-math.inf, math.inf, 0.95)
    nothing = paired_t_test([NAN, 1], [1, NAN])
    assert nothing.n == 0
    assert all(math.isnan(number) for number in (nothing.statistic, nothing.p, nothing.difference))


# --- the randomisation test ------------------------------------------------------------------------------------------


@given(COARSE)
def test_few_differences_are_enumerated_exactly(steps: list[int]) -> None:
    """All sign patterns, ties counted, though tenths are not exact in binary."""
    d = [Fraction(step, 10) for step in steps]
    found = randomisation_test([0.7 + float(x) for x in d], [0.7] * len(d), seed=0)
    assert found.p == float(reference_sign_flip(d))
    assert found.exact
    assert found.patterns == 2 ** sum(step != 0 for step in steps)


def test_enumeration_is_that_of_scipy() -> None:
    """permutation_test of paired samples enumerates the same patterns."""
    a, b = random_values(1, 9), random_values(2, 9) * 0.8
    expected = stats.permutation_test(
        (a, b),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=9999,
    )
    assert randomisation_test(a, b, seed=0).p == pytest.approx(expected.pvalue, rel=1e-12)


def test_random_patterns_follow_a_plain_loop() -> None:
    """(1 + count) / (1 + resamples) with one sign a query and pattern, and weights on the differences."""
    a, b, w = random_values(1, 70), random_values(2, 70), random_values(3, 70)
    words = np.random.Generator(np.random.PCG64(5)).integers(0, 2**64, (300, 2), dtype=np.uint64).tolist()
    observed = abs(sum(w * (a - b)))
    count = 0
    for low, high in words:
        bits = low + (high << 64)
        signs = np.array([1 if bits >> query & 1 else -1 for query in range(70)])
        count += abs(sum(signs * w * (a - b))) >= observed
    found = randomisation_test(a, b, seed=5, resamples=300, weights=w)
    assert found.p == (1 + count) / 301
    assert not found.exact
    assert found.patterns == 300


def test_random_patterns_estimate_the_exact_p(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within four standard errors, on values with many ties."""
    rng = np.random.default_rng(8)
    for _ in range(10):
        a, b = rng.integers(0, 4, 14) / 10, rng.integers(0, 4, 14) / 10
        exact = randomisation_test(a, b, seed=1).p
        with monkeypatch.context() as patched:
            patched.setattr(statistics, "ENUMERATED", -1)
            sampled = randomisation_test(a, b, seed=1)
        assert not sampled.exact
        assert abs(sampled.p - exact) <= 4 * math.sqrt(exact * (1 - exact) / 10_000) + 1e-4


def test_equally_good_runs_are_rejected_as_often_as_allowed() -> None:
    """Of 1,000 pairs without a difference, at most about 5 % have p <= 0.05."""
    rng = np.random.default_rng(10)
    runs = rng.exponential(1, (2000, 30))
    found = randomisation_tests(runs, [(2 * k, 2 * k + 1) for k in range(1000)], seed=0, resamples=500)
    rejected = sum(one.p <= 0.05 for one in found)
    assert 25 <= rejected <= 75


def test_many_pairs_at_once_are_each_pair_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is tested, in either order, in blocks of any size: the same p to the last bit."""
    rng = np.random.default_rng(11)
    base = rng.random(100)
    runs = base + rng.normal(0, 0.1, (8, 100))
    runs[4:6, 3] = NAN  # lacks the same query as run 5
    runs[6, rng.random(100) < 0.3] = NAN
    runs[7] = runs[0] + rng.normal(0, 1e-6, 100)  # so near to run 0 that the pair is summed by itself
    weights = rng.random(100)
    pairs = list(itertools.permutations(range(8), 2))
    found = dict(zip(pairs, randomisation_tests(runs, pairs, seed=4, resamples=400, weights=weights), strict=True))
    assert len({one.p for one in found.values()}) > 10
    monkeypatch.setattr(statistics, "_BLOCK", 730)
    again = dict(zip(pairs, randomisation_tests(runs, pairs, seed=4, resamples=400, weights=weights), strict=True))
    assert again == found
    for (i, j), one in found.items():
        assert one == randomisation_test(runs[i], runs[j], seed=4, resamples=400, weights=weights)
        assert one.p == found[j, i].p
        assert one.difference == -found[j, i].difference


def test_summing_runs_and_summing_pairs_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values with many ties: a pair that is summed by itself (a third run lacks what it lacks) has the same p."""
    rng = np.random.default_rng(12)
    for _ in range(5):
        a, b = rng.integers(0, 6, (2, 60)) / 10
        together = randomisation_test([*a, 0.4], [*b, 0.4], seed=2, resamples=500).p
        assert randomisation_test([*a, 0.4], [*b, NAN], seed=2, resamples=500).p == together


def test_small_differences_between_large_values_keep_their_digits() -> None:
    """Multiples of a unit that is lost next to the values' sum: ties are those of the multiples themselves."""
    rng = np.random.default_rng(13)
    unit = 2**-39 + 2**-47
    for _ in range(10):
        steps = rng.integers(-3, 4, 60)
        base = rng.integers(1, 2**20, 60) / 2**20
        near = randomisation_test(base + steps * unit, base, seed=0, resamples=1000)
        assert near.difference == pytest.approx(steps.mean() * unit, rel=1e-9)
        assert near.p == randomisation_test(steps, np.zeros(60), seed=0, resamples=1000).p


@given(st.integers(0, 10_000), st.integers(1, 60))
def test_sums_on_the_grid_are_exact(seed: int, n: int) -> None:
    """In any order, and with any signs; rounding to the grid changes an entry by at most 2^-51 of Σ|x|."""
    rng = np.random.default_rng(seed)
    values = rng.random(n) * 10.0 ** rng.integers(-3, 4)
    column = statistics._on_grid(values)
    assert np.abs(column - values).max() <= 2**-51 * np.abs(values).sum()
    signed = rng.permutation(column * rng.choice([2, 0], n, p=[0.9, 0.1])).tolist()
    assert sum(signed) == math.fsum(signed)


def test_edges_of_the_randomisation_test() -> None:
    """Equal runs, one query, none, and the least p of random patterns."""
    x = random_values(0, 40)
    assert randomisation_test(x, x, seed=0) == (1, 40, 0, True, 1)
    assert randomisation_test([0.5], [0.4], seed=0).p == 1
    assert randomisation_test(x + 1, x, seed=0, resamples=99).p == 0.01
    nothing = randomisation_test([NAN], [0.1], seed=0)
    assert math.isnan(nothing.p)
    assert nothing.n == 0
    assert randomisation_tests([x], [], seed=0) == []
    generator = randomisation_test(x, x[::-1] * 0.9, seed=np.random.default_rng(3))
    assert generator == randomisation_test(x, x[::-1] * 0.9, seed=np.random.default_rng(3))
    assert 0 < generator.p < 1


# --- effects, records, corrections -----------------------------------------------------------------------------------


def test_effect_sizes_follow_their_formulas() -> None:
    """Mean over standard deviation of the differences; Hedges' factor is near 1 - 3 / (4 m - 1)."""
    a, b = random_values(1, 25), random_values(2, 25)
    d = cohens_d_paired(a, b)
    assert d == pytest.approx((a - b).mean() / (a - b).std(ddof=1), rel=1e-12)
    assert cohens_d_paired(a, b, hedges=True) / d == pytest.approx(1 - 3 / (4 * 24 - 1), rel=1e-4)
    assert cohens_d_paired(a, b, weights=np.full(25, 2.0)) == d
    assert cohens_d_paired(b, a) == -d
    assert cohens_d_paired(a, a) == 0
    assert cohens_d_paired(a + 1, a) == math.inf
    assert math.isnan(cohens_d_paired([1], [0]))
    assert math.isnan(cohens_d_paired([1, 0], [0, 3], hedges=True))


def test_hedges_takes_the_bias_out() -> None:
    """The mean of d over many small normal samples is above the true effect; with the correction it is not."""
    rng = np.random.default_rng(0)
    samples = rng.normal(0.8, 1, (4000, 6))
    plain = np.mean([cohens_d_paired(x, np.zeros(6)) for x in samples])
    corrected = np.mean([cohens_d_paired(x, np.zeros(6), hedges=True) for x in samples])
    assert plain > 0.9
    assert abs(corrected - 0.8) < 0.03


def test_wins_ties_and_losses_are_counted() -> None:
    """Rounding is a tie; a query that one run lacks does not count."""
    assert win_tie_loss([0.3, 0.5, 0.1 + 0.2, NAN, 0.9], [0.2, 0.6, 0.3, 0.1, 0.1]) == Record(2, 1, 1)
    assert win_tie_loss([], []) == Record(0, 0, 0)


def test_holm_by_hand() -> None:
    """0.005·4, 0.01·3, then 0.03·2 carried on to 0.04·1; NaN is no test."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    found = holm([0.01, NAN, 0.04, 0.9])
    assert same(tuple(found), (0.03, NAN, 0.08, 0.9))
    assert holm([0.6, 0.7]).tolist() == [1, 1]
    assert holm([]).tolist() == []
    assert np.isnan(holm([NAN])).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.999))
def test_holm_rejects_what_the_step_down_procedure_rejects(p: list[float], alpha: float) -> None:
    """Going up from the smallest, reject while p <= alpha / (tests left)."""
    adjusted = holm(p)
    left = sorted(range(len(p)), key=lambda k: p[k])
    while left and p[left[0]] * len(left) <= alpha:
        assert adjusted[left.pop(0)] <= alpha
    assert all(adjusted[k] > alpha for k in left)


def test_the_slow_libraries_are_not_loaded() -> None:
    """Neither scipy.stats nor scikit-learn is needed for any of this."""
    code = (
        "import sys; from calirank.evaluation import comparison, statistics as s;"
        "assert 'scipy' not in sys.modules and 'rich' not in sys.modules;"
        "s.paired_t_test([1, 2, 4], [1, 1, 1]); s.bootstrap_interval([1, 2], seed=0);"
        "assert not {'scipy.stats', 'sklearn', 'numba'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr == ""


def test_memory_does_not_grow_with_the_resamples() -> None:
    """All draws at once would take 320 MB and more; blocks take less than 80 MB."""
    a, b = random_values(1, 20_000), random_values(2, 20_000)
    tracemalloc.start()
    try:
        bootstrap_interval(a, seed=0, resamples=2000)
        randomisation_test(a, b, seed=0, resamples=2000)
        randomisation_tests(random_values(3, 60, 50), list(itertools.combinations(range(60), 2)), seed=0)
        assert tracemalloc.get_traced_memory()[1] < 80e6
    finally:
        tracemalloc.stop()
