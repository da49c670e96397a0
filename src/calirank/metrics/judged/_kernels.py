"""Compiled loops of the metrics that judge by rankings, preferences and pairs of grades.

A list ``l`` has the documents ``offsets[l]:offsets[l + 1]``. Judgement ``j`` speaks of the list ``query[j]`` and has
the payload ``starts[j]:starts[j + 1]``. Ranks count from 0. All counts are whole numbers, and sums of weights run in
the order of the weights, so no result depends on the order of the rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calirank._kernel import inlined, kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


# --- sorting ----------------------------------------------------------------------------------------------------------


@kernel
def ranks_of_keys(
    keys: NDArray[np.uint64], slot: Ints, offsets: Ints, start: int, order: Ints, first: Ints, last: Ints, group: Ints
) -> None:
    """From sorted keys whose places are positions: the positions, the ranks each document can have, and its tie."""
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    for number in range(len(slot)):
        a, n = offsets[start + number], offsets[start + number + 1] - offsets[start + number]
        part = keys[slot[number] : slot[number] + n]
        k = ties = 0
        while k < n:
            stop = k + 1
            while stop < n and part[stop] >> high == part[k] >> high:
                stop += 1
            for j in range(k, stop):
                position = np.int64(part[j] & low)
                order[a + j] = position
                first[a + position] = k
                last[a + position] = stop - 1
                group[a + position] = ties
            ties += 1
            k = stop


# --- a tree of counts -------------------------------------------------------------------------------------------------


@inlined
def counted(tree: Ints, ranks: int) -> int:
    """How many of the documents in the tree stand at one of the first so many ranks."""
    found = 0
    while ranks > 0:
        found += tree[ranks]
        ranks &= ranks - 1
    return found


@inlined
def put(tree: Ints, rank: int, n: int) -> None:
    """Put a document into the tree (of Fenwick), at its first rank."""
    place = rank + 1
    while place <= n:
        tree[place] += 1
        place += place & -place


# --- rankings ---------------------------------------------------------------------------------------------------------


@kernel
def spearman(
    items: Ints,
    levels: Ints,
    starts: Ints,
    query: Ints,
    offsets: Ints,
    first: Ints,
    last: Ints,
    out: Floats,
    begin: int,
    end: int,
) -> None:
    """Σ XY / Σ X² for X, Y twice the mean ranks minus their mean, n - 1; Σ X² = n(n²-1)/3 without ties.

    NaN for fewer than two documents. The sums are whole numbers and exact up to 2·10⁶ documents.
    """
    for j in range(begin, end):
        a, b = starts[j], starts[j + 1]
        n, base = b - a, offsets[query[j]]
        total = 0
        k = a
        while k < b:
            stop = k
            x = 0
            while stop < b and levels[stop] == levels[k]:
                document = base + items[stop]
                x += first[document] + last[document] - (n - 1)
                stop += 1
            total += x * (k + stop - 1 - 2 * a - (n - 1))
            k = stop
        out[j] = np.float64(total) / np.float64(n * (n * n - 1) // 3) if n > 1 else np.nan


@kernel
def kendall(
    items: Ints,
    levels: Ints,
    starts: Ints,
    query: Ints,
    offsets: Ints,
    first: Ints,
    last: Ints,
    tree: Ints,
    out: Floats,
    begin: int,
    end: int,
) -> None:
    """Tau-b: (concordant - discordant pairs) / √(pairs apart in the scores · pairs apart in the ranking).

    NaN where one of them has no pair apart. The levels of the ranking go into the tree one after the other, best first.
    """
    for j in range(begin, end):
        a, b = starts[j], starts[j + 1]
        n, base = b - a, offsets[query[j]]
        tree[: n + 1] = 0
        difference = 0
        tied_scores = 0  # counted twice
        apart = 0
        k = a
        while k < b:
            stop = k
            while stop < b and levels[stop] == levels[k]:
                document = base + items[stop]
                rank = first[document]
                tied_scores += last[document] - rank
                difference += counted(tree, rank) + counted(tree, rank + 1) - (k - a)
                stop += 1
            apart += (k - a) * (stop - k)
            for place in range(k, stop):
                put(tree, first[base + items[place]], n)
            k = stop
        scored_apart = (n * (n - 1) - tied_scores) // 2
        if apart == 0 or scored_apart == 0:
            out[j] = np.nan
        else:
            out[j] = difference / math.sqrt(np.float64(scored_apart) * np.float64(apart))


@kernel
def zero_one(
    items: Ints,
    levels: Ints,
    starts: Ints,
    query: Ints,
    offsets: Ints,
    first: Ints,
    last: Ints,
    out: Floats,
    begin: int,
    end: int,
) -> None:
    """The chance that a random order of the scores is a random order of the ranking.

    Tied documents of the ranking come by score. Scores with groups of a documents and a ranking with groups of b, which
    share groups of c, have Π a! · Π b! pairs of orders, of which Π c! are equal; 0 where they contradict each other.
    """
    for j in range(begin, end):
        base = offsets[query[j]]
        pairs = 1.0  # an exact whole number as long as it is below 2^53
        rank, level = np.int64(-1), np.int64(-1)
        a = b = c = 0
        for k in range(starts[j], starts[j + 1]):
            here = first[base + items[k]]
            if here < rank:
                pairs = np.inf
                break
            c = c + 1 if here == rank and levels[k] == level else 1
            a = a + 1 if here == rank else 1
            b = b + 1 if levels[k] == level else 1
            pairs = pairs * a / c * b
            rank, level = here, levels[k]
        out[j] = 1 / pairs


# --- preferences ------------------------------------------------------------------------------------------------------


@kernel
def lost_preferences(
    scores: Floats,
    offsets: Ints,
    query: Ints,
    starts: Ints,
    better: Ints,
    worse: Ints,
    weight: Floats,
    whole: bool,
    lost: Floats,
    total: Floats,
    begin: int,
    end: int,
) -> None:
    """The weight of the preferences that the scores contradict, and of all; a tied pair counts whole or half.

    A pair of documents that are not ranked (-inf) earns nothing, so it is lost whole. The preferences of a judgement
    stand by rising weight; those of equal weight are counted.
    """
    for j in range(begin, end):
        base = offsets[query[j]]
        lost[j] = total[j] = 0.0
        k, b = starts[j], starts[j + 1]
        while k < b:
            start = k
            halves = 0
            while k < b and weight[k] == weight[start]:
                above, below = scores[base + better[k]], scores[base + worse[k]]
                if above < below or (above == below and (whole or above == -np.inf)):
                    halves += 2
                elif above == below:
                    halves += 1
                k += 1
            lost[j] += weight[start] * (halves / 2)
            total[j] += weight[start] * (k - start)


@kernel
def lost_grades(
    labels: Floats,
    order: Ints,
    offsets: Ints,
    first: Ints,
    last: Ints,
    group: Ints,
    whole: bool,
    difference: bool,
    tree: Ints,
    lost: Floats,
    total: Floats,
    begin: int,
    end: int,
) -> None:
    """The weight of the pairs y_i > y_j that the scores contradict, and of all; a tied pair counts whole or half.

    ``order`` sorts each list by falling label. The weight of a pair is 1, or y_i - y_j: then it is the sum of the steps
    between neighbouring labels that lie between, and Σ step · (contradicted pairs across it) has no cancellation. The
    tree counts documents by their tie.
    """
    tied = 2 if whole else 1
    for number in range(begin, end):
        a, b = offsets[number], offsets[number + 1]
        n = b - a
        label, sorted_by_label, low, high, tie_of = labels[a:b], order[a:b], first[a:b], last[a:b], group[a:b]
        ties = 0
        for k in range(n):
            ties = max(ties, tie_of[k] + 1)
        tree[: ties + 1] = 0
        halves = pairs = across = 0
        lost[number] = total[number] = 0.0
        k = 0
        while k < n:
            step = label[sorted_by_label[k]]
            stop = k
            as_worse = as_better = 0
            while stop < n and label[sorted_by_label[stop]] == step:
                mine = tie_of[sorted_by_label[stop]]
                above = counted(tree, mine)
                not_below = counted(tree, mine + 1)
                as_worse += 2 * (k - not_below) + tied * (not_below - above)
                stop += 1
            halves += as_worse
            pairs += k * (stop - k)
            if difference:
                for place in range(k, stop):
                    put(tree, tie_of[sorted_by_label[place]], ties)
                for place in range(k, stop):
                    document = sorted_by_label[place]
                    rank, mine = low[document], tie_of[document]
                    above, not_below = counted(tree, mine), counted(tree, mine + 1)
                    as_better += 2 * (rank - above) + tied * (high[document] + 1 - rank - (not_below - above))
                across += as_better - as_worse
                if stop < n:
                    step -= label[sorted_by_label[stop]]
                    lost[number] += step * (across / 2)
                    total[number] += step * (stop * (n - stop))
            else:
                for place in range(k, stop):
                    put(tree, tie_of[sorted_by_label[place]], ties)
            k = stop
        if not difference:
            lost[number] = halves / 2
            total[number] = pairs


# --- the best order ---------------------------------------------------------------------------------------------------


@kernel
def least_lost(W: Floats, cost: Floats, best: Floats) -> float:
    """The least weight that an order of few documents contradicts, by the best order of each subset at the top.

    ``cost[S, i]`` is what it costs to put i behind the subset S: the weights with which i is preferred to one of S.
    """
    m = len(W)
    cost[0] = 0.0
    for j in range(m):
        for subset in range(1 << j, 2 << j):
            for i in range(m):
                cost[subset, i] = cost[subset - (1 << j), i] + W[i, j]
    best[0] = 0.0
    for subset in range(1, 1 << m):
        least = np.inf
        for i in range(m):
            if subset >> i & 1:
                before = subset - (1 << i)
                least = min(least, best[before] + cost[before, i])
        best[subset] = least
    return float(best[(1 << m) - 1])
