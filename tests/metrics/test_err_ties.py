"""The expected ERR of a tie group against enumeration of its orders, exact fractions and extended precision."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calirank.metrics.ties import _kernels as kernels

NO_CUTOFF = 2**62
RANKS = (1, 2, 10, 1000, 100_000)
GRADES = [(2.0**y - 1) / 16 for y in range(5)]
STOPS = st.one_of(st.sampled_from([0.0, 1.0, 1e-12, 15 / 16, 1 / 16]), st.floats(0, 1, allow_subnormal=False))


def tied_err(stops: Any, rank: int, cutoff: int = NO_CUTOFF) -> float:
    """Sorted, with a margin around group and scratch space that must neither be read nor written."""
    stops = np.sort(np.asarray(stops, float))
    m = len(stops)
    padded = np.r_[np.nan, np.nan, stops, np.nan]
    scratch = np.full(2 * m + kernels.SCRATCH + 8, np.nan)
    value = kernels.tied_err(padded, 2, 2 + m, rank, cutoff, scratch)
    assert np.isnan(scratch[-8:]).all()
    padded[2:-1] = stops[::-1]
    assert kernels.tied_err(padded, 2, 2 + m, rank, cutoff, scratch) == value  # also on a used scratch
    return value


def by_enumeration(stops: Any, rank: int, cutoff: int) -> float:
    orders = list(itertools.permutations([Fraction(float(R)) for R in stops]))
    total = Fraction(0)
    for order in orders:
        survival = Fraction(1)
        for place, R in enumerate(order, rank):
            if place <= cutoff:
                total += survival * R / place
            survival *= 1 - R
    return float(total / len(orders))


def exact_drops(stops: Any) -> list[float]:
    """S_t - S_{t+1} for t = 0..m-1, with S_t = e_t(1-R)/C(m, t) in whole numbers over a power of two."""
    fractions = [Fraction(float(R)) for R in stops]
    unit = max(R.denominator for R in fractions)
    e = [1]
    for R in fractions:
        q = int((1 - R) * unit)
        e = [a + q * b for a, b in zip([*e, 0], [0, *e], strict=True)]
    m = len(fractions)
    # S_t - S_{t+1} = (e_t (t+1)^-1 (m-t) unit - e_{t+1}) / (C(m, t+1) unit^(t+1))
    return [
        float(Fraction(e[t] * unit * (m - t) - e[t + 1] * (t + 1), (t + 1) * math.comb(m, t + 1) * unit ** (t + 1)))
        for t in range(m)
    ]


def from_drops(drops: list[float], rank: int, cutoff: int) -> float:
    return math.fsum(drop / (rank + t) for t, drop in enumerate(drops) if rank + t <= cutoff)


def in_extended_precision(stops: Any, rows: int) -> Any:
    """Probability of a stop among the first t = 0..rows items, one item after the other, in long double."""
    F = np.zeros(rows + 1, np.longdouble)
    t = np.arange(rows + 1, dtype=np.longdouble)
    stops = np.sort(stops)
    for j in range(int((stops == 0).sum()), len(stops)):
        R = np.longdouble(stops[j])
        share = np.minimum(t[1:] / (j + 1), 1)
        F[1:] = (1 - share) * F[1:] + share * (R + (1 - R) * F[:-1])
    return F


def from_extended(F: Any, rank: int, rows: int) -> float:
    places = np.arange(rank, rank + rows, dtype=np.longdouble)
    return float(np.sum(F[1:rows] / (places[:-1] * places[1:])) + F[rows] / places[-1])


def patterns(m: int) -> Iterator[tuple[str, Any]]:
    random = np.random.default_rng(m)
    zeros = np.zeros(m)
    yield "97 % zeros", random.choice(GRADES, m, p=[0.97, 0.01, 0.01, 0.005, 0.005])
    yield "five grades", random.choice(GRADES, m)
    yield "two grades", random.choice([0, 15 / 16], m)
    yield "uniform labels", (2 ** random.uniform(0, 4, m) - 1) / 16
    yield "equal", np.full(m, 15 / 16)
    yield "equal and small", np.full(m, 10 / m)
    yield "one", np.r_[zeros[1:], 15 / 16]
    yield "one certain", np.r_[zeros[1:], 1.0]
    yield "one tiny", np.r_[zeros[1:], 1e-12]
    yield "all certain", np.ones(m)
    yield "all tiny", random.uniform(0, 1e-12, m)
    yield "nearly denormal", np.full(m, 1e-300)
    yield "few large", np.r_[random.uniform(0.2, 1, m // 6), zeros[m // 6 :]]
    yield "all scales", 10 ** random.uniform(-14, 0, m)
    yield "tiny and large", np.r_[np.full(m // 2, 1e-9), np.full(m - m // 2, 0.9)]


@settings(max_examples=60, deadline=None)
@given(st.lists(STOPS, min_size=1, max_size=6), st.integers(1, 40), st.one_of(st.just(NO_CUTOFF), st.integers(0, 45)))
def test_small_groups_match_enumeration(stops: list[float], rank: int, cutoff: int) -> None:
    assert tied_err(stops, rank, cutoff) == pytest.approx(by_enumeration(stops, rank, cutoff), rel=1e-14, abs=0)


@settings(max_examples=60, deadline=None)
@given(st.lists(STOPS, min_size=1, max_size=40), st.sampled_from(RANKS), st.integers(0, 50))
def test_middle_groups_match_exact_fractions(stops: list[float], rank: int, more: int) -> None:
    drops = exact_drops(stops)
    assert tied_err(stops, rank) == pytest.approx(from_drops(drops, rank, NO_CUTOFF), rel=1e-13, abs=0)
    expected = from_drops(drops, rank, rank + more - 1)
    assert tied_err(stops, rank, rank + more - 1) == pytest.approx(expected, rel=1e-13, abs=0)


@pytest.mark.parametrize("m", [50, 300])
def test_both_ways_match_exact_fractions(m: int) -> None:
    """The integral is not used for groups as small as these, yet must be right on them."""
    scratch = np.empty(2 * m + kernels.SCRATCH)
    for name, values in patterns(m):
        if name == "nearly denormal" or (m > 100 and name in {"all scales", "few large"}):
            continue  # whole numbers of too many digits
        stops = np.sort(values)
        drops = exact_drops(stops)
        zeros, total = int((stops == 0).sum()), float(stops.sum())
        for rank, T in itertools.product(RANKS, (1, 2, 10, m // 5, m // 2 + 1, m - 30, m - 1, m)):
            expected = from_drops(drops, rank, rank + T - 1)
            whole = kernels.tied_err(stops, 0, m, rank, rank + T - 1, scratch)
            if not total:
                assert whole == expected == 0
                continue
            recurrence = kernels._err_by_recurrence(stops, 0, 1, m, zeros, T, rank, scratch)
            integral = kernels._err_by_quadrature(stops, 0, 1, m, zeros, total, T, rank, scratch)
            for value in (whole, recurrence, integral):
                assert value == pytest.approx(expected, rel=1e-13, abs=0), (name, rank, T)


@pytest.mark.parametrize("m", [3000, 20_000])
def test_large_groups_match_extended_precision(m: int) -> None:
    cuts = (1, 10, 41, 42, 100, 777) if m < 10_000 else (1, 10, 500)
    for name, stops in patterns(m):
        positive = int((stops > 0).sum())
        total = float(stops.sum())
        rows = m if positive * m < 1e7 else min(m, int(42 * m / total) + 1, 10**7 // positive)
        F = in_extended_precision(stops, rows)
        lengths = {*cuts, rows // 2, rows - 3, rows - 1, rows}
        for rank, T in itertools.product(RANKS, sorted(t for t in lengths if 1 <= t <= rows)):
            expected = from_extended(F, rank, T)
            assert tied_err(stops, rank, rank + T - 1) == pytest.approx(expected, rel=4e-13, abs=0), (name, rank, T)
            if rows == T and (rows == m or total * rows > 41.5 * m):  # nobody is left after these rows
                assert tied_err(stops, rank) == pytest.approx(expected, rel=4e-13, abs=0), (name, rank)


def test_hundred_thousand_certain_stops_are_one_over_the_rank() -> None:
    assert tied_err(np.ones(100_000), 7) == pytest.approx(1 / 7, rel=1e-14, abs=0)


def test_one_stop_among_a_hundred_thousand_is_its_mean_over_the_ranks() -> None:
    stops = np.zeros(100_000)
    stops[5] = 15 / 16
    for rank, T in ((1, 100_000), (3, 99_999), (1, 60_000), (10, 5000), (100_000, 17)):
        mean = math.fsum(15 / 16 / 100_000 / place for place in range(rank, rank + T))
        assert tied_err(stops, rank, rank + T - 1) == pytest.approx(mean, rel=1e-13, abs=0)


def test_equal_stops_are_a_geometric_distribution() -> None:
    """Also with a cut-off deep inside the group, where survival is still worth something."""
    for R, T in ((1e-5, 100_000), (1e-5, 30_000), (1e-3, 5000), (1e-12, 99_990), (0.5, 50_000)):
        exact = math.fsum(R / (2 + t) * math.exp(t * math.log1p(-R)) for t in range(T))
        assert tied_err(np.full(100_000, R), 2, T + 1) == pytest.approx(exact, rel=4e-13, abs=0)


def test_cutoffs_before_the_group_leave_nothing() -> None:
    assert tied_err([0.5, 0.5, 0.5], 4, 3) == 0
    assert tied_err([0.5, 0.5, 0.5], 4, -(2**62)) == 0


def test_zeros_alone_contribute_nothing() -> None:
    for m in (1, 2, 3, 500, 100_000):
        assert tied_err(np.zeros(m), 1) == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(STOPS, max_size=30))
def test_survival_is_the_product(stops: list[float]) -> None:
    product = math.prod((1 - Fraction(R) for R in stops), start=Fraction(1))
    for values in (sorted(stops), sorted(stops, reverse=True)):
        survival = kernels.tied_survival(np.array([0.5, *values, 0.5]), 1, 1 + len(values))
        assert survival == 0 or survival >= 1e-18
        assert survival == pytest.approx(float(product), rel=1e-14, abs=1.000001e-18)


def test_survival_keeps_what_is_above_its_floor() -> None:
    assert kernels.tied_survival(np.r_[np.zeros(1000), np.full(50, 0.5)], 0, 1050) == 2.0**-50
    assert kernels.tied_survival(np.full(100, 0.5), 0, 100) == 0
