"""Expected contribution of one tie group to the expected reciprocal rank (ERR), exactly and without enumeration.

The derivation stands in the docstring of the package. Throughout, m items with stop probabilities R_i take the ranks
a..a+m-1 in random order, and the first T of these ranks count (T = m without a cut-off). Items are always taken from
the smallest R to the largest, so that the bits of a result do not depend on the direction in which they are sorted.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calirank._kernel import inlined, kernel

#: ``scratch`` must hold at least 2·(items of the group) + SCRATCH numbers.
SCRATCH = 192

_NODES = 40  # room for nodes on the circle: four arrays of this length at the start of ``scratch``
_SUMS = 4 * _NODES  # power sums start here
_TERMS = 24  # most of them that are used
_LIST = SCRATCH  # distinct values start here
_NOTHING = 41.5  # exp(-41.5) < 1e-18: what counts as nothing
_GAMMA = 0.5772156649015329  # Euler's constant


@kernel
def tied_survival(stops: NDArray[np.float64], first: int, last: int) -> float:
    """Probability Π (1 - R_i) that no item of the sorted ``stops[first:last]`` stops; below 1e-18 it is 0."""
    if first >= last:
        return 1.0
    high, step = first, 1  # from the largest down to the first zero
    if stops[first] < stops[last - 1]:
        high, step = last - 1, -1
    survival = 1.0
    for j in range(last - first):
        R = stops[high + step * j]
        if R == 0.0:
            break
        survival *= 1.0 - R
        if survival < 1e-18:
            return 0.0
    return survival


@kernel
def tied_err(
    stops: NDArray[np.float64], first: int, last: int, rank: int, cutoff: int, scratch: NDArray[np.float64]
) -> float:
    """Expected ERR of the tie group ``stops[first:last]`` that starts at ``rank`` (from 1), given survival until then.

    The stop probabilities are sorted, up or down. Ranks above ``cutoff`` do not count. ``scratch`` is overwritten.
    """
    m = last - first
    T = min(m, cutoff - rank + 1)
    if T <= 0:
        return 0.0
    if m <= 2:
        return _err_of_two(stops[first], stops[last - 1], T, rank)
    low, step = first, 1
    if stops[first] > stops[last - 1]:
        low, step = last - 1, -1
    zeros = _count_zeros(stops, low, step, m)
    if zeros == m:
        return 0.0
    total = 0.0
    for j in range(zeros, m):
        total += stops[low + step * j]
    alive = _NOTHING * m / total  # 1 - F_t <= exp(-t total/m): nobody is left after so many ranks
    full = m == T or alive <= T
    rows = int(alive) + 1 if alive < T else T
    if (m - zeros + 16.0) * rows <= (40_000.0 if full else 120_000.0):  # where the two ways cost about the same
        return _err_by_recurrence(stops, low, step, m, zeros, min(T, rows), rank, scratch)
    return _err_by_quadrature(stops, low, step, m, zeros, total, m if full else T, rank, scratch)


@inlined
def _err_of_two(R: float, other: float, T: int, rank: int) -> float:
    mean = 0.5 * (R + other)
    if T == 1:
        return mean / rank
    return (mean + (R + other - R * other) * rank) / (float(rank) * (rank + 1.0))


@inlined
def _count_zeros(stops: NDArray[np.float64], low: int, step: int, m: int) -> int:
    """How many of the sorted stop probabilities are 0, by bisection."""
    if stops[low] > 0.0:
        return 0
    zeros, others = 1, m + 1
    while others - zeros > 1:
        middle = (zeros + others) // 2
        if stops[low + step * (middle - 1)] > 0.0:
            others = middle
        else:
            zeros = middle
    return zeros


# --- small groups: one item after the other -------------------------------------------------------------------------


@kernel
def _err_by_recurrence(
    stops: NDArray[np.float64], low: int, step: int, m: int, zeros: int, T: int, rank: int, scratch: NDArray[np.float64]
) -> float:
    """Σ_t F_t (1/(a+t-1) - 1/(a+t)) with F_t the probability of a stop among the first t; O((m - zeros)·T).

    The item j+1 is among the first t of j+1 with probability t/(j+1), and is then the last of them, say:
    F'_t = (1 - t/(j+1)) F_t + t/(j+1) (R + (1-R) F_{t-1}). Everything is positive. Items with R=0 leave F at 0.
    """
    F = scratch[: T + 1]  # F_T, …, F_0: written from the front, where the old F_{t-1} is still ahead
    t = scratch[T + 1 : 2 * T + 1]
    for i in range(T):
        F[i] = 0.0
        t[i] = T - i
    F[T] = 0.0
    for j in range(zeros, m):
        R = stops[low + step * j]
        q = 1.0 - R
        share = 1.0 / (j + 1.0)
        for i in range(max(T - j - 1, 0), T):
            F[i] += (t[i] * share) * (R + q * F[i + 1] - F[i])
    a = float(rank)
    value: float = F[0] / (a + T - 1.0)
    for i in range(1, T):
        value += F[i] / ((a + t[i] - 1.0) * (a + t[i]))
    return value


# --- large groups: one integral -------------------------------------------------------------------------------------


@kernel
def _err_by_quadrature(
    stops: NDArray[np.float64],
    low: int,
    step: int,
    m: int,
    zeros: int,
    total: float,
    T: int,
    rank: int,
    scratch: NDArray[np.float64],
) -> float:
    """∫ -Q_T'(s) K(s) ds by the trapezoidal rule, s = end/(1 + e^-y), y = x + (e^x - e^(left-x))/2.

    The integrand is analytic around the line of real x and falls off doubly exponentially to both sides, so that the
    rule converges exponentially. Between ``left`` and 0 lie the scales of s that matter: a/T and 1/ΣR.
    """
    nodes = _place_circle(m, T, scratch)
    widest = 0.0
    for k in range(nodes):
        widest = max(widest, math.hypot(scratch[k], scratch[_NODES + k]))
    decay = total * T / m  # Q_T(s) <= exp(-decay s)
    end = min(1.0, _NOTHING / decay)
    n = m - zeros
    singles, terms, top = _gather(stops, low + step * zeros, step, n, 0.25 / (end * widest), end * widest, scratch)
    left = -math.log(1.0 + T * end / rank) - math.log(1.0 + decay * end)
    h = 0.25
    value = 0.0
    for i in range(math.floor((left - 4.6) / h), math.ceil(4.5 / h) + 1):
        x = i * h
        rise, fall = 0.5 * math.exp(x), 0.5 * math.exp(left - x)
        y = x + rise - fall
        tail = math.exp(-y)
        s = min(end / (1.0 + tail), 1.0 - 2.0**-53)
        slope = end * tail / ((1.0 + tail) * (1.0 + tail)) * (1.0 + rise + fall)
        value += slope * _slope_of_survival(s, nodes, singles, terms, top, n, scratch) * _kernel_at(s, T, rank)
    return h * value


@kernel
def _place_circle(m: int, T: int, scratch: NDArray[np.float64]) -> int:
    """Points w_k and weights c_k with Q_T(s) = Re Σ_k c_k Q(w_k s); returns how many.

    With p = T/m, c is the characteristic function of the binomial distribution (m, p) about its mean, at M angles of
    the circle, and w = p e^{iθ}/(1 - p + p e^{iθ}). The sum yields Σ_l P(T + l·M) Q_{T+lM}(s), and M is such that P is
    nothing but for l = 0. Angles come in conjugate pairs. Where c < 1e-18, what is left out is small at every
    s: |1 + z(1 - sR)| / (1 + |z|) is largest at sR = 0 or sR = 1, and (1-p)^m <= exp(-T). No more than 36 angles are
    left (T = 41).
    """
    if m == T:
        scratch[0], scratch[_NODES], scratch[2 * _NODES], scratch[3 * _NODES] = 1.0, 0.0, 1.0, 0.0
        return 1
    p = T / m
    M = int(9.0 * math.sqrt(T * (1.0 - p))) + 13
    nodes = 0
    norm = 0.0
    for k in range(M // 2 + 1):
        angle = 2.0 * math.pi * k / M
        half = math.sin(0.5 * angle)
        size = math.exp(0.5 * m * math.log1p(-4.0 * p * (1.0 - p) * half * half))
        if size < 1e-18 and T > _NOTHING:
            break
        real, imag = 1.0 - 2.0 * p * half * half, p * math.sin(angle)
        phase = m * math.atan2(imag, real) - T * angle
        if 0 < 2 * k < M:
            size *= 2.0
        square = real * real + imag * imag
        scratch[k] = p * (p + (1.0 - p) * math.cos(angle)) / square
        scratch[_NODES + k] = (1.0 - p) * imag / square
        scratch[2 * _NODES + k] = size * math.cos(phase)
        scratch[3 * _NODES + k] = size * math.sin(phase)
        norm += scratch[2 * _NODES + k]
        nodes += 1
    for k in range(nodes):
        scratch[2 * _NODES + k] /= norm
        scratch[3 * _NODES + k] /= norm
    return nodes


@kernel
def _gather(
    stops: NDArray[np.float64],
    low: int,
    step: int,
    n: int,
    limit: float,
    scale: float,
    scratch: NDArray[np.float64],
) -> tuple[int, int, float]:
    """Distinct values above ``limit`` with their counts, and power sums Σ (R/top)^k of the others, top the largest.

    Returns the number of the former, the number of sums, and top. At most 166 items lie above the limit.
    """
    values = scratch[_LIST : _LIST + n]
    counts = scratch[_LIST + n : _LIST + 2 * n]
    size = small = 0
    top = 0.0
    j = 0
    while j < n:
        R = stops[low + step * j]
        begin = j
        j += 1
        while j < n and stops[low + step * j] == R:
            j += 1
        values[size] = R
        counts[size] = j - begin
        size += 1
        if limit >= R:
            small = size
            top = R
    terms = 0
    if small:
        x = max(top * scale, 1e-18)
        terms = min(_TERMS, int(37.0 / -math.log(x)) + 1)
        for i in range(small):
            values[i] /= top
        for k in range(terms):
            scratch[_SUMS + k] = _next_power_sum(values, counts, small)
    for i in range(small, size):
        values[i - small] = values[i]
        counts[i - small] = counts[i]
    return size - small, terms, top


@inlined
def _next_power_sum(values: NDArray[np.float64], weights: NDArray[np.float64], n: int) -> float:
    """Multiply the weights by the values, once more, and return their sum (of four interleaved sums)."""
    a = b = c = d = 0.0
    for i in range(n):
        weight = weights[i] * values[i]
        weights[i] = weight if weight > 1e-200 else 0.0
    i = 0
    while i + 3 < n:
        a += weights[i]
        b += weights[i + 1]
        c += weights[i + 2]
        d += weights[i + 3]
        i += 4
    while i < n:
        a += weights[i]
        i += 1
    return (a + b) + (c + d)


@kernel
def _slope_of_survival(
    s: float, nodes: int, singles: int, terms: int, top: float, n: int, scratch: NDArray[np.float64]
) -> float:
    """-Q_T'(s) = Re Σ_k c_k w_k Q(w_k s) Σ_i R_i/(1 - w_k s R_i), with log Q from power sums and single values."""
    value = 0.0
    for k in range(nodes):
        w = complex(scratch[k], scratch[_NODES + k])
        z = w * (s * top)
        log = 0j
        ratio = 0j
        for i in range(terms - 1, -1, -1):
            log = log * z + scratch[_SUMS + i] / (i + 1.0)
            ratio = ratio * z + scratch[_SUMS + i]
        log *= z
        ratio *= top
        size = math.exp(-log.real)
        product = complex(size * math.cos(log.imag), -size * math.sin(log.imag))
        for i in range(singles):
            R = scratch[_LIST + i]
            count = int(scratch[_LIST + n + i])
            factor = 1.0 - w * (s * R)
            ratio += factor.conjugate() * (count * R / (factor.real * factor.real + factor.imag * factor.imag))
            while count:
                if count & 1:
                    product *= factor
                factor *= factor
                count >>= 1
        slope = w * product * ratio
        value += scratch[2 * _NODES + k] * slope.real - scratch[3 * _NODES + k] * slope.imag
    return value


@kernel
def _kernel_at(s: float, T: int, rank: int) -> float:
    """K(s) = s^(a-1) (1-s)^-(a+T) ∫_s^1 σ^-a (1-σ)^(a+T-1) dσ = Σ_n (T+1)_n/(a+T)_{n+1} (1-s)^n.

    By Gauss's continued fraction for the hypergeometric function (DLMF 15.7.1), all terms positive; where that
    converges slowly, at small s, by the recurrence (a-1) K_a = (1 - (a+T-1) s K_{a-1})/(1-s) from K_1 upwards, or from
    20 ranks before a, when what one starts from is forgotten.
    """
    a = float(rank)
    odds = s / (1.0 - s)
    if (a + T) * odds > 1.0:
        c = a + T
        value = ahead = c
        behind = 0.0
        change = 0.0
        n = 0
        while abs(change - 1.0) > 1e-15:
            above = ((a + n // 2) * (c + n // 2) if n % 2 == 0 else (n // 2 + 1) * (T + n // 2 + 1.0)) / odds
            n += 1
            behind = 1.0 / (c + n + above * behind)
            ahead = c + n + above / ahead
            change = ahead * behind
            value *= change
        return 1.0 / (s * value)
    begin = max(1, rank - 20)
    if begin > 1:
        value = 1.0 / begin
    else:
        term = T * s
        value = -math.log(s) - _harmonic(T)
        for k in range(1, T + 1):
            value += term / k
            term *= -(T - k) / (k + 1.0) * s
            if abs(term) < 1e-17 * abs(value):
                break
        value *= math.exp(-(T + 1.0) * math.log1p(-s))
    for r in range(begin + 1, rank + 1):
        value = (1.0 / (1.0 - s) - (r + T - 1.0) * odds * value) / (r - 1.0)
    return value


@inlined
def _harmonic(n: int) -> float:
    """1 + 1/2 + … + 1/n."""
    value = 0.0
    if n < 30:
        for k in range(1, n + 1):
            value += 1.0 / k
        return value
    square = 1.0 / (float(n) * n)
    return math.log(n) + _GAMMA + 0.5 / n - square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))
