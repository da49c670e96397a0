"""Compiled searches for the labels of unjudged documents that make a metric highest or lowest.

Documents stand in the order of their ranks, those of list ``l`` at ``bounds[l]:bounds[l + 1]``; the unranked ones are
last. ``missing`` marks the unjudged ones, and ``share`` is the mean discount of a document over the ways to break ties.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calirank._kernel import inlined, kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Dinkelbach's iteration needs a handful of steps.
STEPS = 100


# --- some of the unjudged documents are relevant ----------------------------------------------------------------------


@kernel
def found_sums(relevant: Bools, missing: Bools, share: Floats, bounds: Ints, down: bool, out: Floats) -> None:
    """Σ share of the relevant documents, when 0, 1, … all of the unjudged ones are relevant too.

    They become relevant from the first down, or from the last up. A list with m of them has m + 1 values.
    """
    place = 0
    for number in range(len(bounds) - 1):
        a, b = bounds[number], bounds[number + 1]
        total = 0.0
        for k in range(a, b):
            if relevant[k]:
                total += share[k]
        out[place] = total
        place += 1
        for step in range(b - a):
            k = a + step if down else b - 1 - step
            if missing[k]:
                total += share[k]
                out[place] = total
                place += 1


@kernel
def precision_sums(
    relevant: Bools,
    missing: Bools,
    share: Floats,
    first: Ints,
    bounds: Ints,
    cutoff: int,
    down: bool,
    out: Floats,
) -> None:
    """Σ of the precision at the ranks of the relevant documents, as in :func:`found_sums`; share is the mean of 1/rank.

    It is the sum of 1/(lower rank) over all pairs of relevant documents, each with itself too. ``first`` is where the
    tie of a document begins.
    """
    place = 0
    for number in range(len(bounds) - 1):
        a, b = bounds[number], bounds[number + 1]
        total = below = 0.0
        above = 0
        k = a
        while k < b:
            start, stop = k, tie_stop(first, k, b)
            r = marked(relevant, start, stop)
            total += r * (1 + above) * share[k] + r * (r - 1) / 2 * pair_share(start - a, stop - a, cutoff)
            above += r
            below += r * share[k]
            k = stop
        out[place] = total
        place += 1
        if down:
            above = 0
        else:
            below = 0.0
        k = a if down else b
        while k != (b if down else a):
            start = k if down else first[k - 1]
            stop = tie_stop(first, k, b) if down else k
            each = share[start]
            r, m = marked(relevant, start, stop), marked(missing, start, stop)
            pair = pair_share(start - a, stop - a, cutoff) if m > 0 else 0.0
            if down:
                below -= r * each
            else:
                above -= r
            for more in range(m):
                total += (1 + above) * each + (r + more) * pair + below
                out[place] = total
                place += 1
            if down:
                above += r + m
                k = stop
            else:
                below += (r + m) * each
                k = start


@inlined
def tie_stop(first: Ints, k: int, b: int) -> int:
    """Where the tie that begins at k ends."""
    stop = k + 1
    while stop < b and first[stop] == first[k]:
        stop += 1
    return stop


@inlined
def marked(marks: Bools, start: int, stop: int) -> int:
    """How many of the documents are marked."""
    count = 0
    for k in range(start, stop):
        count += marks[k]
    return count


@inlined
def pair_share(start: int, stop: int, cutoff: int) -> float:
    """The mean of 1/(lower rank) of two documents of the tie at ranks start + 1 to stop; 0 beyond the cut-off."""
    total = 0.0
    for k in range(start + 1, min(stop, cutoff)):
        total += (k - start) / (k + 1)
    m = stop - start
    return 2 * total / (m * (m - 1)) if m > 1 else 0.0


@kernel
def largest(values: Floats, bounds: Ints, out: Ints) -> None:
    """Where the largest value of each list is, the first of them, counted from the begin of the list."""
    for number in range(len(out)):
        a = bounds[number]
        out[number] = 0
        for k in range(a + 1, bounds[number + 1]):
            if values[k] > values[a + out[number]]:
                out[number] = k - a


# --- NDCG -------------------------------------------------------------------------------------------------------------


@kernel
def shares_of_ideal(
    gains: Floats,
    missing: Bools,
    share: Floats,
    bounds: Ints,
    sizes: Ints,
    judged_gains: Floats,
    judged_labels: Floats,
    judged_bounds: Ints,
    grid_gains: Floats,
    grid_labels: Floats,
    ideal: Floats,
    lowest: Floats,
    highest: Floats,
) -> None:
    """Write the labels of the unjudged documents that make NDCG lowest, and those that make it highest.

    Only the first ``sizes[l]`` documents of a list count. ``judged_gains`` of a list fall, ``grid_gains`` rise;
    ``ideal[n]`` is the sum of the first n discounts.

    Let v_0 < v_1 < … be the gains that are judged or in the grid, and let J_l judged and t_l unjudged documents have a
    gain of at least v_l. Then DCG is that of the judged documents plus Σ_l (v_l - v_{l-1}) Σ share of those t_l, and
    IDCG is Σ_l (v_l - v_{l-1}) ideal[J_l + t_l], where v_{-1} = 0.
    """
    most = np.max(judged_bounds[1:] - judged_bounds[:-1]) + len(grid_gains)
    levels, labels = np.empty(most), np.empty(most)
    above, chosen, kept = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    sums = np.empty(np.max(sizes) + 1)
    for number in range(len(sizes)):
        a = bounds[number]
        b = a + sizes[number]
        m = 0
        sums[0] = base = 0.0
        for k in range(a, b):
            if missing[k]:
                m += 1
                sums[m] = sums[m - 1] + share[k]
            else:
                base += gains[k] * share[k]
        c, d = judged_bounds[number], judged_bounds[number + 1]
        top = lay_levels(judged_gains[c:d], judged_labels[c:d], grid_gains, grid_labels, levels, labels, above)
        if m == 0 or top == 0:
            continue
        base += levels[0] * sums[m]
        least = levels[0] * ideal[b - a]

        t = fewest_worst(levels, above, top, ideal, base, least, sums, m)
        left = m
        for k in range(a, b):
            if missing[k]:
                if left <= t:
                    lowest[k] = labels[top]
                left -= 1

        some = levels[0] > 0 or above[1] > 0  # the ideal is not 0 when no unjudged document has a gain
        for level in range(1, top + 1):
            kept[level] = 0 if some else m
        kept[0] = chosen[0] = m
        ratio, _ = share_of(levels, above, top, ideal, base, least, sums, kept)
        for _ in range(STEPS):
            most_above_line(levels, above, top, ideal, ratio, sums, chosen)
            found, best = share_of(levels, above, top, ideal, base, least, sums, chosen)
            if not (best > 0 and found > ratio):
                break
            ratio = found
            kept[: top + 1] = chosen[: top + 1]
        level, before = top, 0
        for k in range(a, b):
            if missing[k]:
                while kept[level] <= before:
                    level -= 1
                highest[k] = labels[level]
                before += 1


@inlined
def lay_levels(
    judged_gains: Floats,
    judged_labels: Floats,
    grid_gains: Floats,
    grid_labels: Floats,
    levels: Floats,
    labels: Floats,
    above: Ints,
) -> int:
    """Write the distinct gains, rising, a label of each, and how many judged ones are not below; return the last."""
    left, g, level = len(judged_gains), 0, 0
    while left > 0 or g < len(grid_gains):
        if left == 0 or (g < len(grid_gains) and grid_gains[g] <= judged_gains[left - 1]):
            levels[level], labels[level] = grid_gains[g], grid_labels[g]
            g += 1
        else:
            levels[level], labels[level] = judged_gains[left - 1], judged_labels[left - 1]
        above[level] = left
        while left > 0 and judged_gains[left - 1] <= levels[level]:
            left -= 1
        level += 1
    return level - 1


@inlined
def share_of(
    levels: Floats, above: Ints, top: int, ideal: Floats, base: float, least: float, sums: Floats, chosen: Ints
) -> tuple[float, float]:
    """DCG/IDCG and IDCG when the first ``chosen[l]`` unjudged documents have a gain of at least ``levels[l]``."""
    found, best = base, least
    for level in range(1, top + 1):
        step = levels[level] - levels[level - 1]
        found += step * sums[chosen[level]]
        best += step * ideal[above[level] + chosen[level]]
    return found / best, best


@inlined
def worst_share(
    levels: Floats, above: Ints, top: int, ideal: Floats, base: float, least: float, sums: Floats, m: int, t: int
) -> float:
    """DCG/IDCG when the last t of m unjudged documents have the highest gain, and the others the lowest."""
    best = least
    for level in range(1, top + 1):
        best += (levels[level] - levels[level - 1]) * ideal[above[level] + t]
    found: float = (base + (levels[top] - levels[0]) * (sums[m] - sums[m - t])) / best
    return found


@inlined
def fewest_worst(
    levels: Floats, above: Ints, top: int, ideal: Floats, base: float, least: float, sums: Floats, m: int
) -> int:
    """The number of unjudged documents at the end that must have the highest gain for the lowest DCG/IDCG.

    Its steps rise in DCG and fall in IDCG, so once the quotient does not fall it never falls again.
    """
    lo, hi = 0 if levels[0] > 0 or above[1] > 0 else 1, m
    while lo < hi:
        t = (lo + hi) // 2
        here = worst_share(levels, above, top, ideal, base, least, sums, m, t)
        if worst_share(levels, above, top, ideal, base, least, sums, m, t + 1) >= here:
            hi = t
        else:
            lo = t + 1
    return lo


@inlined
def most_above_line(
    levels: Floats, above: Ints, top: int, ideal: Floats, ratio: float, sums: Floats, chosen: Ints
) -> None:
    """Write into chosen[1:] what makes DCG - ratio · IDCG highest: for each level t with the highest

        sums[t] - ratio · ideal[above[level] + t].

    The fewer documents are above, the steeper the ideal, so the best t never rises with the level: every other level is
    searched between its neighbours, then every other of those that are left, and so on.
    """
    stride = 1
    while 2 * stride <= top:
        stride *= 2
    while stride > 0:
        for level in range(stride, top + 1, 2 * stride):
            begin = chosen[level + stride] if level + stride <= top else 0
            best = begin
            value = sums[begin] - ratio * ideal[above[level] + begin]
            for t in range(begin + 1, chosen[level - stride] + 1):
                here = sums[t] - ratio * ideal[above[level] + t]
                if here > value:
                    best, value = t, here
            chosen[level] = best
        stride //= 2
