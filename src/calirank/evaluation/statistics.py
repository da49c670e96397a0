"""How sure a mean over queries is: intervals, paired tests, effect sizes, many tests at once.

The *query* is the unit: its values are one draw from the population of queries, so every function here takes one value
a query and treats the queries as independent. NaN means that the metric skips the query; such a query is dropped (of a
pair of runs: when either run lacks it). Weights weigh queries; a query of weight 0 is dropped too.

Seeds are no queries. Two trainings of one method see the same queries, so their values are correlated query by query,
and S seeds of Q queries are not S·Q observations. :func:`over_seeds` therefore averages each query over the seeds
first, and tests compare the averages: the question is which method is better on a new query, for the seeds that were
run. How much the mean moves with the seed is another question, answered by the spread of the means over the seeds.

Folds hold different queries, so :func:`over_folds` puts them one after the other. The queries of one fold share a
trained model, which no test of Q values can see: such a test is about the models that were trained.

A difference of less than 1e-12 of the larger value is rounding and counts as none.

[Cochran 1977] *Sampling Techniques*. [Efron and Tibshirani 1993] *An Introduction to the Bootstrap*. [Smucker, Allan,
Carterette 2007] on significance tests in information retrieval. [Phipson and Smyth 2010] on p values of random
permutations. [Holm 1979] on many tests. [Cohen 1988], [Hedges 1981] on effect sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank._progress import track

Floats: TypeAlias = NDArray[np.float64]
Seed: TypeAlias = int | np.random.Generator

#: Differences below this share of the larger value are rounding.
ROUNDING = 1e-12
#: All 2^m sign patterns are enumerated up to this many differences m that are not 0.
ENUMERATED = 16
#: Sums under different signs that differ by less than this share of the sum of absolute values are equal.
_TIED = 1e-8
#: Numbers held at once by anything that resamples (8 bytes each).
_BLOCK = 1 << 21


class Interval(NamedTuple):
    """An interval that holds the true mean with probability ``level``."""

    low: float
    high: float
    level: float


# --- one run ---------------------------------------------------------------------------------------------------------


def mean(values: ArrayLike, weights: ArrayLike | None = None) -> float:
    """The mean Σwx / Σw of the values that are there; NaN of none.

    >>> mean([0.5, float("nan"), 1.0], weights=[3, 1, 1])
    0.625
    """
    if weights is not None:
        return _estimate(*_kept(values, weights), 0.0).mean
    x = _row(values, "values")
    if np.isnan(x.sum()):
        x = x[~np.isnan(x)]
    if len(x) == 0:
        return math.nan
    return float(x[0] if x.min() == x.max() else x.sum() / len(x))


def mean_interval(values: ArrayLike, level: float = 0.95, weights: ArrayLike | None = None) -> Interval:
    r"""Student's t interval of the mean.

    With weights the mean is the ratio Σwx / Σw, and its standard error that of a ratio estimator, linearised
    [Cochran 1977 §6.3]; for equal weights it is the usual s/√n.

    .. math:: \mathrm{se}^2 = \frac{n}{n - 1} \sum_q w_q^2 (x_q - \bar x)^2 \Big/ \Big(\sum_q w_q\Big)^2

    One value says nothing about the spread, so its interval is (-inf, inf); of no value it is NaN. Equal values (two or
    more) give an interval of width zero.

    >>> low, high, level = mean_interval([0.0, 0.5, 1.0])
    >>> round(low, 4), round(high, 4)
    (-0.7421, 1.7421)
    """
    x, w = _kept(values, weights)
    return _t_interval(_estimate(x, w, float(np.abs(x).max(initial=0))), level)


def bootstrap_interval(
    values: ArrayLike,
    *,
    seed: Seed,
    resamples: int = 1_000,
    level: float = 0.95,
    weights: ArrayLike | None = None,
    progress: bool | None = None,
) -> Interval:
    """Percentile bootstrap interval of the mean [Efron and Tibshirani 1993 §13.3]: queries are drawn with replacement.

    All queries are equally likely to be drawn, and a resample gives its own Σwx / Σw. With 1,000 resamples the ends
    still move with the seed, by about 4 % of the half-width; the error falls with the root of their number. Of few
    queries the interval is too narrow (its variance divides by n where s² divides by n - 1): prefer
    :func:`mean_interval`. No value, one value and equal values are treated as there.

    >>> bootstrap_interval([0.0, 0.5, 1.0, 1.0], seed=0, resamples=200)
    Interval(low=0.25, high=1.0, level=0.95)
    """
    x, w = _kept(values, weights)
    _check_level(level)
    _check_resamples(resamples)
    rng = _generator(seed)
    n = len(x)
    if n < 2 or x.min() == x.max():
        return _t_interval(_estimate(x, w, 0.0), level)
    wx, weighted = w * x, bool(np.any(w != 1))
    means = np.empty(resamples)
    rows = max(1, _BLOCK // 8 // n)
    with track(resamples, "bootstrap", progress) as advance:
        for begin in range(0, resamples, rows):
            drawn = rng.integers(
                0, n, size=(min(rows, resamples - begin), n), dtype=np.int32 if n < 2**31 else np.int64
            )
            total = w[drawn].sum(axis=1) if weighted else n
            means[begin : begin + len(drawn)] = wx[drawn].sum(axis=1) / total
            advance(len(drawn))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Interval(low, high, level)


# --- seeds and folds -------------------------------------------------------------------------------------------------


class Seeds(NamedTuple):
    """A run of several seeds: its values, the mean of each seed, and the standard deviation of those means."""

    values: Floats
    means: Floats
    spread: float


def over_seeds(values: ArrayLike | Sequence[ArrayLike], weights: ArrayLike | None = None) -> Seeds:
    """Average a run over its seeds query by query; values have shape (queries,) or (seeds, queries).

    A query counts where every seed has a value, so that all seeds are averaged over the same queries. The spread
    divides by (seeds - 1); of one seed it is NaN.

    >>> run = over_seeds([[0.1, 0.4, 0.9], [0.3, 0.4, 0.5]])
    >>> run.values.round(2).tolist(), run.means.round(4).tolist(), round(run.spread, 4)
    ([0.2, 0.4, 0.7], [0.4667, 0.4], 0.0471)
    """
    rows = _seeds_by_queries(values, "values")
    w = _check_weights(weights, rows.shape[1])
    averages = _mean_over_rows(rows)
    keep = ~np.isnan(averages) & (w > 0)
    means = np.array([_estimate(row[keep], w[keep], 0.0).mean for row in rows])
    alike = len(means) > 1 and np.ptp(means) <= ROUNDING * np.abs(means).max()
    spread = 0.0 if alike else float(means.std(ddof=1)) if len(means) > 1 else math.nan
    return Seeds(averages, means, spread)


def over_folds(folds: Sequence[ArrayLike]) -> Floats:
    """The values of all folds in one row of queries; of folds with several seeds, one such row a seed.

    >>> over_folds([[0.1, 0.2], [0.3]]).tolist()
    [0.1, 0.2, 0.3]
    """
    parts = [_seeds_by_queries(fold, f"folds[{number}]") for number, fold in enumerate(folds)]
    if not parts:
        raise ValueError("folds: expected at least one fold, got none")
    for number, part in enumerate(parts):
        if len(part) != len(parts[0]):
            raise ValueError(f"folds[{number}]: expected {len(parts[0])} seeds, as in folds[0], got {len(part)}")
    joined = np.concatenate(parts, axis=1)
    return joined[0] if all(np.ndim(fold) == 1 for fold in folds) else joined


def _mean_over_rows(rows: Floats) -> Floats:
    """The mean of each column; equal values have exactly that mean."""
    averages: Floats = np.where((rows == rows[0]).all(axis=0), rows[0], rows.mean(axis=0))
    return averages


def _seeds_by_queries(values: ArrayLike | Sequence[ArrayLike], what: str) -> Floats:
    if isinstance(values, (list, tuple)):
        sizes = [np.shape(row) for row in values]
        if len(set(sizes)) > 1:
            raise ValueError(f"{what}: expected one value a query for each seed, got seeds of shapes {sizes}")
    array = _numbers(values, what)
    if array.ndim not in (1, 2) or (array.ndim == 2 and not len(array)):
        raise ValueError(f"{what}: expected shape (queries,) or (seeds, queries), got {array.shape}")
    return np.atleast_2d(array)


# --- two runs --------------------------------------------------------------------------------------------------------


class PairedT(NamedTuple):
    """Student's paired t test: ``difference`` is the mean of a - b over ``n`` queries, ``interval`` its interval."""

    statistic: float
    p: float
    n: int
    difference: float
    interval: Interval


def paired_t_test(a: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None, *, level: float = 0.95) -> PairedT:
    """Two-sided t test of whether the mean of a - b is 0; n - 1 degrees of freedom, weights as in `mean_interval`.

    Equal runs have p = 1; differences that are all the same and not 0 have p = 0. No queries, or one that differs, are
    no test: NaN.

    >>> test = paired_t_test([0.5, 0.7, 0.9], [0.4, 0.7, 0.6])
    >>> round(test.statistic, 4), round(test.p, 4), test.n
    (1.5119, 0.2697, 3)
    """
    pair = _pair(*_two(a, b), weights)
    found = _estimate(pair.d, pair.w, pair.scale)
    interval = _t_interval(found, level)
    statistic, p = math.nan, math.nan
    if found.mean == 0:
        statistic, p = 0.0, 1.0
    elif found.error == 0:
        statistic, p = math.copysign(math.inf, found.mean), 0.0
    elif found.n > 1:
        from scipy.special import stdtr

        statistic = found.mean / found.error
        p = float(2 * stdtr(found.n - 1, -abs(statistic)))
    return PairedT(statistic, p, found.n, found.mean, interval)


class Randomisation(NamedTuple):
    """Sign-flip test: ``p`` from all sign patterns (``exact``) or from ``patterns`` random ones."""

    p: float
    n: int
    difference: float
    exact: bool
    patterns: int


def randomisation_test(
    a: ArrayLike,
    b: ArrayLike,
    *,
    seed: Seed,
    resamples: int = 10_000,
    weights: ArrayLike | None = None,
    progress: bool | None = None,
) -> Randomisation:
    """Two-sided paired randomisation test of the mean difference [Smucker, Allan, Carterette 2007].

    If the runs are equally good query by query, each difference a - b could as well have had the other sign. p is the
    share of sign patterns under which the (weighted) mean difference is at least as far from 0 as it is.

    With at most 16 differences that are not 0 all patterns are enumerated. Otherwise ``resamples`` random ones are
    drawn, and p = (1 + count) / (1 + resamples), which never promises too much [Phipson and Smyth 2010]: it is at least
    1 / (1 + resamples). Sums equal up to 1e-8 of Σ|a - b| count as equal, that is as at least as far.

    The sign of a query depends on the seed and on the query's place only, so a pair of runs has the same p whatever
    else is compared with that seed, and in either order.

    >>> randomisation_test([0.5, 0.7, 0.9], [0.4, 0.7, 0.6], seed=0)
    Randomisation(p=0.5, n=3, difference=0.13333333333333333, exact=True, patterns=4)
    """
    return randomisation_tests(
        _two(a, b), [(0, 1)], seed=seed, resamples=resamples, weights=weights, progress=progress
    )[0]


def randomisation_tests(
    runs: Sequence[Floats] | Floats,
    pairs: Sequence[tuple[int, int]],
    *,
    seed: Seed,
    resamples: int = 10_000,
    weights: ArrayLike | None = None,
    progress: bool | None = None,
) -> list[Randomisation]:
    """:func:`randomisation_test` of many pairs of ``runs`` (rows; queries) at once, all under the same signs.

    A sum of signed differences Σ ±(a - b) is that of a minus that of b, so runs rather than pairs are summed, by one
    matrix product for each block of sign patterns. A pair that lacks different queries in its two runs, or whose
    differences are so small that the subtraction would lose digits, is summed by itself.
    """
    rows = np.asarray(runs, dtype=np.float64)
    w = _check_weights(weights, rows.shape[1])
    _check_resamples(resamples)
    entropy = int(seed.integers(2**63)) if isinstance(seed, np.random.Generator) else seed
    _generator(entropy)  # refuses what is no seed
    lacking = [np.isnan(row).tobytes() for row in rows]
    results: list[Randomisation] = []
    together: list[_Sum] = []
    alone: list[_Sum] = []
    for number, (i, j) in enumerate(pairs):
        pair = _pair(rows[i], rows[j], w)
        n, difference = len(pair.d), _estimate(pair.d, pair.w, pair.scale).mean
        terms = pair.w * pair.d
        changing = terms[terms != 0]
        if len(changing) <= ENUMERATED:
            p = _exact_p(changing) if n else math.nan
            results.append(Randomisation(p, n, difference, True, 2 ** len(changing) if n else 0))
            continue
        results.append(Randomisation(math.nan, n, difference, False, resamples))
        size = float(np.abs(terms).sum())
        magnitude = float((pair.w * (np.abs(rows[i][pair.places]) + np.abs(rows[j][pair.places]))).sum())
        separable = lacking[i] == lacking[j] and size >= 1e-3 * magnitude
        (together if separable else alone).append(_Sum(number, i, j, size))

    width = max(1, _BLOCK // max(1, rows.shape[1]))
    parts = [alone[begin : begin + width] for begin in range(0, len(alone), width)]
    with track(resamples * (bool(together) + len(parts)), "randomisation tests", progress) as advance:

        def count(columns: Floats, sums: list[_Sum]) -> None:
            extreme = _count_extreme(columns, sums, _generator(entropy), resamples, advance)
            for one, found in zip(sums, extreme.tolist(), strict=True):
                results[one.number] = results[one.number]._replace(p=(1 + found) / (1 + resamples))

        if together:
            used = sorted({run for one in together for run in (one.first, one.second)})
            place = {run: number for number, run in enumerate(used)}
            columns = np.stack([_on_grid(w * np.nan_to_num(rows[run])) for run in used])
            count(columns, [one._replace(first=place[one.first], second=place[one.second]) for one in together])
        for part in parts:
            columns = np.zeros((len(part) + 1, rows.shape[1]))  # the last one stays 0
            for number, one in enumerate(part):
                pair = _pair(rows[one.first], rows[one.second], w)
                columns[number, pair.places] = pair.w * pair.d
                columns[number] = _on_grid(columns[number])
            count(columns, [one._replace(first=number, second=len(part)) for number, one in enumerate(part)])
    return results


class _Sum(NamedTuple):
    """The pair with this number: two columns whose difference is summed, and the sum of its absolute values."""

    number: int
    first: int
    second: int
    size: float


def _exact_p(terms: Floats) -> float:
    """The share of sign patterns with a sum at least as far from 0; half of them, because the other half mirrors it."""
    if not len(terms):
        return 1.0
    sums = terms[:1]
    for term in terms[1:]:
        sums = np.concatenate([sums + term, sums - term])
    bound = abs(sums[0]) - _TIED * np.abs(terms).sum()  # the first pattern is the observed one
    return float(np.mean(np.abs(sums) >= bound))


def _on_grid(column: Floats) -> Floats:
    """The column rounded to multiples of a power of two so coarse that every sum of its entries is exact.

    Σ|x| is below 2^52 of these steps, so no order of summation, number of threads or shape of a matrix changes a sum.
    """
    exponent = 51 - int(np.frexp(np.abs(column).sum())[1])
    rounded: Floats = np.ldexp(np.rint(np.ldexp(column, exponent)), -exponent)
    return rounded


def _count_extreme(
    columns: Floats, sums: list[_Sum], rng: np.random.Generator, resamples: int, advance: Callable[[float], None]
) -> NDArray[np.int64]:
    """In how many random sign patterns each pair's sum is at least as far from 0 as without signs."""
    n = columns.shape[1]
    total = columns.sum(axis=1)
    first, second = np.array([one.first for one in sums]), np.array([one.second for one in sums])
    bound = np.abs(total[first] - total[second]) - _TIED * np.array([one.size for one in sums])
    counts = np.zeros(len(sums), np.int64)
    rows = min(resamples, max(1, _BLOCK // n))
    step = max(1, _BLOCK // rows)  # pairs at a time
    for begin in range(0, resamples, rows):
        positive = _random_bits(rng, min(rows, resamples - begin), n)
        signed = 2 * (columns @ positive.T) - total[:, None]
        for some in range(0, len(sums), step):
            part = slice(some, some + step)
            distance = np.abs(signed[first[part]] - signed[second[part]])
            counts[part] += np.count_nonzero(distance >= bound[part, None], axis=1)
        advance(len(positive))
    return counts


def _random_bits(rng: np.random.Generator, rows: int, n: int) -> Floats:
    """Rows of n random zeros and ones; row after row, so that the size of blocks does not matter."""
    words = rng.integers(0, 2**64, size=(rows, -(-n // 64)), dtype=np.uint64).astype("<u8", copy=False)
    return np.unpackbits(words.view(np.uint8), axis=1, count=n, bitorder="little").astype(np.float64)


class Record(NamedTuple):
    """On how many queries the first run is better, equal and worse."""

    win: int
    tie: int
    loss: int


def win_tie_loss(a: ArrayLike, b: ArrayLike) -> Record:
    """On how many queries a is better than b, equal, and worse; larger values are better.

    >>> win_tie_loss([0.5, 0.7, 0.9], [0.4, 0.7, float("nan")])
    Record(win=1, tie=1, loss=0)
    """
    d = _pair(*_two(a, b), None).d
    win, loss = int(np.count_nonzero(d > 0)), int(np.count_nonzero(d < 0))
    return Record(win, len(d) - win - loss, loss)


def cohens_d_paired(a: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None, *, hedges: bool = False) -> float:
    r"""The mean of a - b over its standard deviation, Cohen's d_z; 0 for equal runs, NaN for one query.

    ``hedges=True`` multiplies by :math:`J = \Gamma(m/2) / (\sqrt{m/2}\, \Gamma((m - 1)/2))` with :math:`m = n - 1`,
    which takes the bias out for normal differences [Hedges 1981]; it needs 3 queries.

    >>> round(cohens_d_paired([0.5, 0.7, 0.9], [0.4, 0.7, 0.6]), 4)
    0.8729
    """
    pair = _pair(*_two(a, b), weights)
    found = _estimate(pair.d, pair.w, pair.scale)
    if found.n < 2:
        return math.nan
    if found.deviation == 0:
        d = math.copysign(math.inf, found.mean) if found.mean else 0.0
    else:
        d = found.mean / found.deviation
    if not hedges:
        return d
    m = found.n - 1
    return d * math.exp(math.lgamma(m / 2) - math.lgamma((m - 1) / 2)) / math.sqrt(m / 2) if m > 1 else math.nan


# --- many tests ------------------------------------------------------------------------------------------------------


def holm(p_values: ArrayLike) -> Floats:
    """p values adjusted for being many [Holm 1979], under any dependence between them; NaN is no test and stays NaN.

    The k-th smallest of m is multiplied by m - k + 1; then none is below a smaller one's, and none above 1. Rejecting
    what is at most 0.05 has a false rejection anywhere in the family with probability at most 0.05.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = _numbers(p_values, "p_values")
    if p.ndim != 1 or np.any((p < 0) | (p > 1)):
        raise ValueError(f"p_values: expected a row of numbers from 0 to 1 (or NaN), got {p_values!r}")
    tests = np.flatnonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    adjusted = p.copy()
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return adjusted


# --- what the above share --------------------------------------------------------------------------------------------


class _Estimate(NamedTuple):
    mean: float
    error: float  # standard error of the mean: inf of one value
    deviation: float  # standard deviation of a value
    n: int


def _estimate(x: Floats, w: Floats, scale: float) -> _Estimate:
    """The weighted mean and its error; a range of the values that is rounding next to ``scale`` is no spread."""
    n = len(x)
    if n == 0:
        return _Estimate(math.nan, math.nan, math.nan, 0)
    low, high = float(x.min()), float(x.max())
    total = w.sum()
    center = low if low == high else float((w * x).sum() / total)
    if n == 1:
        return _Estimate(center, math.inf, math.nan, 1)
    if high - low <= ROUNDING * scale:
        return _Estimate(center, 0.0, 0.0, n)
    unit = float(np.abs(x - center).max())  # squares of very small or large numbers are beyond all numbers
    squares = ((x - center) / unit) ** 2
    error = unit * math.sqrt(n / (n - 1) * float((w**2 * squares).sum())) / float(total)
    deviation = unit * math.sqrt(n / (n - 1) * float((w * squares).sum() / total))
    return _Estimate(center, error, deviation, n)


def _t_interval(found: _Estimate, level: float) -> Interval:
    _check_level(level)
    half = found.error  # of no values NaN, of one inf, of equal ones 0
    if 0 < half < math.inf:
        from scipy.special import stdtrit

        half *= float(stdtrit(found.n - 1, (1 + level) / 2))
    return Interval(found.mean - half, found.mean + half, level)


class _Pair(NamedTuple):
    d: Floats  # the differences, rounding taken for 0
    w: Floats
    places: NDArray[np.int64]  # of the queries that both have
    scale: float  # the largest absolute value


def _pair(a: Floats, b: Floats, weights: ArrayLike | None) -> _Pair:
    w = _check_weights(weights, len(a))
    places = np.flatnonzero(~np.isnan(a) & ~np.isnan(b) & (w > 0))
    a, b = a[places], b[places]
    d = a - b
    larger = np.maximum(np.abs(a), np.abs(b))
    d[np.abs(d) <= ROUNDING * larger] = 0
    return _Pair(d, w[places], places, float(larger.max(initial=0)))


def _two(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    first, second = _row(a, "a"), _row(b, "b")
    if len(first) != len(second):
        raise ValueError(f"expected one value of a and of b for each query, got {len(first)} and {len(second)}")
    return first, second


def _kept(values: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    """The values that are there, with their weights."""
    x = _row(values, "values")
    w = _check_weights(weights, len(x))
    keep = ~np.isnan(x) & (w > 0)
    return x[keep], w[keep]


def _row(values: ArrayLike, what: str) -> Floats:
    array = _numbers(values, what)
    if array.ndim != 1:
        raise ValueError(f"{what}: expected one value a query in one row, got shape {array.shape}")
    return array


def _numbers(values: ArrayLike | Sequence[ArrayLike], what: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if np.isinf(array).any():
        raise ValueError(f"{what}: expected finite numbers or NaN, got {array[np.isinf(array)][0]}")
    return array


def _check_weights(weights: ArrayLike | None, n: int) -> Floats:
    """The weights over the largest one; equal weights are exactly 1."""
    if weights is None:
        return np.ones(n)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,):
        raise ValueError(f"weights: expected one for each of {n} queries, got shape {w.shape}")
    if not np.all((w >= 0) & (w < np.inf)):
        raise ValueError(f"weights: expected finite numbers >= 0, got {w[~((w >= 0) & (w < np.inf))][0]}")
    largest = w.max(initial=0)
    return w / largest if largest > 0 else w


def _check_level(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, got {level!r}")
    return level


def _check_resamples(resamples: int) -> None:
    if not isinstance(resamples, (int, np.integer)) or resamples < 1:
        raise ValueError(f"resamples: expected a whole number from 1 on, got {resamples!r}")


def _generator(seed: Seed) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed: expected a whole number from 0 on or a numpy.random.Generator, got {seed!r}")
    return np.random.Generator(np.random.PCG64(int(seed)))
