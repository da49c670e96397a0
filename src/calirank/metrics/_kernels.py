"""Compiled loops of the metrics, over lists that :mod:`calirank.metrics.lists` has sorted.

The documents of list ``l`` stand best first in ``keys[slot[l]:slot[l] + count[l]]``. A key holds the score in its upper
32 bits, so that equal upper halves are ties, and a *place* in its lower 32 bits: ``table[first[l] + place]`` is what a
metric's table says of the document. Inside a tie the places ascend, so no result depends on the order of the rows.

Loops index by unsigned numbers and make no slices: both cost more than a short list by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calirank._kernel import inlined, kernel
from calirank.metrics.ties._kernels import tied_err, tied_survival

LOW = np.uint64(0xFFFFFFFF)
HIGH = np.uint64(32)
ONE = np.uint64(1)
NO_KEY = ~np.uint64(0)  # sorts behind the keys of all finite scores

#: A survival below this changes no sum any more; left alone it would become denormal, which is slow.
NOTHING = 1e-18

Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


# --- labels -----------------------------------------------------------------------------------------------------------


@kernel
def count_codes(labels: Floats, codes: NDArray[np.uint8], seen: Ints) -> bool:
    """Labels as small whole numbers, and how often each occurs; False when one is none (of ``len(seen)``)."""
    limit = np.float64(len(seen))
    for row in range(len(labels)):
        label = labels[row]
        if not 0 <= label < limit:
            return False
        code = np.uint8(label)
        if np.float64(code) != label:
            return False
        codes[row] = code
        seen[code] += 1
    return True


@kernel
def histogram(codes: NDArray[np.uint8], offsets: Ints, start: int, turns: Ints, out: Ints) -> None:
    """How often each code occurs in each list."""
    for number in turns:
        for row in range(offsets[start + number], offsets[start + number + 1]):
            out[np.uint64(number), codes[np.uint64(row)]] += 1


# --- keys -------------------------------------------------------------------------------------------------------------


@inlined
def padded(n: int) -> tuple[int, int]:
    """The class of a list length, and the length to which the lists of the class are padded: at most an eighth more."""
    if n <= 16:
        return n, n
    shift = 0
    while (n - 1) >> shift >= 16:
        shift += 1
    head = ((n - 1) >> shift) + 1
    return 8 * shift + head, head << shift


@kernel
def lay_out(
    offsets: Ints, start: int, count: Ints, slot: Ints, turns: Ints, kinds: Ints, widths: Ints, bases: Ints
) -> int:
    """Give each list its slot among the lists of its class; return the number of keys in all.

    ``turns`` are the lists class by class. Loops over lists go in this order, so that they run equally long many times
    in a row, which processors foresee.
    """
    kinds[:] = 0
    for number in range(len(count)):
        count[number] = offsets[start + number + 1] - offsets[start + number]
        kind, width = padded(count[number])
        kinds[kind] += 1
        widths[kind] = width
    total = lists = 0
    for kind in range(len(kinds)):
        bases[kind] = total
        total += kinds[kind] * widths[kind]
        lists += kinds[kind]
        kinds[kind] = lists - kinds[kind]  # for now, the first turn of the class
    first = kinds.copy()
    for number in range(len(count)):
        kind, width = padded(count[number])
        slot[number] = bases[kind] + (kinds[kind] - first[kind]) * width
        turns[kinds[kind]] = number
        kinds[kind] += 1
    kinds -= first
    return total


@kernel
def narrow(scores: Floats, out: NDArray[np.float32]) -> bool:
    """Scores as float32; False when one of them is no float32."""
    for row in range(len(scores)):
        out[row] = np.float32(scores[row])
        if np.float64(out[row]) != scores[row]:
            return False
    return True


@kernel
def pack_short(
    bits: NDArray[np.int32], places: NDArray[np.uint32], offsets: Ints, start: int, slot: Ints, keys: Keys
) -> bool:
    """Keys of float32 scores, given by their bits; False when a score is not finite.

    The bits of negative numbers, read as whole numbers, descend as the numbers ascend; those of positive ones do when
    they are flipped. Zero has one key, whatever its sign.
    """
    largest = np.int32(0)
    for number in range(len(slot)):
        begin, at = np.uint64(offsets[start + number]), np.uint64(slot[number])
        n = offsets[start + number + 1] - offsets[start + number]
        for row in range(n):
            raw = bits[begin + np.uint64(row)]
            size = raw & np.int32(0x7FFFFFFF)
            largest = max(largest, size)
            raw = np.int32(0) if size == 0 else raw
            key = np.uint32(raw ^ (np.int32(0x7FFFFFFF) & ~(raw >> np.int32(31))))
            keys[at + np.uint64(row)] = (np.uint64(key) << HIGH) | np.uint64(places[begin + np.uint64(row)])
        _, width = padded(n)
        for row in range(n, width):
            keys[at + np.uint64(row)] = NO_KEY
    return bool(largest < np.int32(0x7F800000))


@inlined
def descending(raw: Any) -> Any:
    """The bits of a float64 score, as a whole number that descends as the score ascends."""
    size = raw & np.int64(0x7FFFFFFFFFFFFFFF)
    raw = np.int64(0) if size == 0 else raw
    return np.uint64(raw ^ (np.int64(0x7FFFFFFFFFFFFFFF) & ~(raw >> np.int64(63))))


@inlined
def low_bits(n: int) -> Any:
    """A mask of as many bits as the positions in a list of n need."""
    mask = np.uint64(1)
    while mask < np.uint64(n):
        mask = (mask << np.uint64(1)) | np.uint64(1)
    return mask


@kernel
def pack_long(bits: Ints, offsets: Ints, start: int, slot: Ints, keys: Keys) -> bool:
    """Preliminary keys of float64 scores: the lowest bits of the score give way to the position in the list."""
    largest = np.int64(0)
    for number in range(len(slot)):
        begin, end = offsets[start + number], offsets[start + number + 1]
        mask = low_bits(end - begin)
        source = bits[begin:end]
        _, width = padded(end - begin)
        target = keys[slot[number] : slot[number] + width]
        for row in range(end - begin):
            largest = max(largest, source[row] & np.int64(0x7FFFFFFFFFFFFFFF))
            target[row] = (descending(source[row]) & ~mask) | np.uint64(row)
        target[end - begin :] = NO_KEY
    return bool(largest < np.int64(0x7FF0000000000000))


@kernel
def resolve_long(bits: Ints, places: NDArray[np.uint32], offsets: Ints, start: int, slot: Ints, keys: Keys) -> None:
    """Turn sorted preliminary keys into final ones: the number of the distinct score, and the place.

    Scores that differ in the bits that gave way stand in one run, which is sorted here by the whole score; and scores
    that tie are sorted by their places.
    """
    counts = np.empty(64, np.int64)
    for number in range(len(slot)):
        begin, end = offsets[start + number], offsets[start + number + 1]
        n = end - begin
        mask = low_bits(n)
        source, place = bits[begin:end], places[begin:end]
        target = keys[slot[number] : slot[number] + n]
        group = np.uint64(0)
        a = 0
        while a < n:
            head = target[a] | mask
            b = a + 1
            while b < n and target[b] | mask == head:
                b += 1
            if b > a + 1:
                for k in range(a, b):
                    target[k] &= mask
                sort_run(target[a:b], source, place, counts)
            last = descending(source[target[a] & mask])
            for k in range(a, b):
                row = target[k] & mask
                exact = descending(source[row])
                if exact != last:
                    group += np.uint64(1)
                    last = exact
                target[k] = (group << HIGH) | np.uint64(place[row])
            group += np.uint64(1)
            a = b


@inlined
def comes_after(x: int, y: int, source: Ints, place: NDArray[np.uint32]) -> bool:
    """Whether position x stands behind position y: by the score, then by the place."""
    first, second = descending(source[x]), descending(source[y])
    return bool(first > second or (first == second and place[x] > place[y]))


@kernel
def sort_run(run: Keys, source: Ints, place: NDArray[np.uint32], counts: Ints) -> None:
    """Sort positions by score and place: a tie of few places by counting, else by insertion or a heap."""
    n = len(run)
    if n > 32 and sort_tie(run, source, place, counts):
        return
    moves = 0
    for k in range(1, n):
        x = run[k]
        j = k - 1
        while j >= 0 and comes_after(run[j], x, source, place):
            run[j + 1] = run[j]
            j -= 1
            moves += 1
        run[j + 1] = x
        if moves > 8 * n:
            break
    else:
        return
    for k in range(n // 2 - 1, -1, -1):
        sift_down(run, k, n, source, place)
    for last in range(n - 1, 0, -1):
        run[0], run[last] = run[last], run[0]
        sift_down(run, 0, last, source, place)


@kernel
def sort_tie(run: Keys, source: Ints, place: NDArray[np.uint32], counts: Ints) -> bool:
    """Sort positions whose scores are all equal and whose places are small; False when they are not.

    Documents of equal places are alike, so any position that has the place will do.
    """
    for k in range(len(run)):
        if descending(source[run[k]]) != descending(source[run[0]]) or place[run[k]] >= len(counts):
            return False
    some = np.empty(len(counts), np.uint64)
    counts[:] = 0
    for k in range(len(run)):
        counts[place[run[k]]] += 1
        some[place[run[k]]] = run[k]
    k = 0
    for number in range(len(counts)):
        for _ in range(counts[number]):
            run[k] = some[number]
            k += 1
    return True


@inlined
def sift_down(run: Keys, root: int, n: int, source: Ints, place: NDArray[np.uint32]) -> None:
    """Restore the heap below a root, the one that comes last on top."""
    x = run[root]
    while 2 * root + 1 < n:
        child = 2 * root + 1
        if child + 1 < n and comes_after(run[child + 1], run[child], source, place):
            child += 1
        if not comes_after(run[child], x, source, place):
            break
        run[root] = run[child]
        root = child
    run[root] = x


@kernel
def sum_counts(counts: Ints, marked: Bools, out: Ints) -> None:
    """How many documents of each list have a marked code."""
    for number in range(len(out)):
        total = 0
        for code in range(len(marked)):
            total += counts[number, code] if marked[code] else 0
        out[number] = total


@kernel
def find_ties(keys: Keys, turns: Ints, slot: Ints, count: Ints, tied: Bools) -> None:
    """Which lists have equal scores."""
    for number in turns:
        at = np.uint64(slot[number])
        equal = False
        for k in range(count[number] - 1):
            equal |= (keys[at + np.uint64(k)] ^ keys[at + np.uint64(k) + ONE]) >> HIGH == 0
        tied[number] = equal


@kernel
def rows_of_keys(keys: Keys, slot: Ints, offsets: Ints, start: int, rows: Ints) -> None:
    """The rows of each list in the order of its keys, whose places are positions in the list."""
    for number in range(len(slot)):
        begin, end = offsets[start + number], offsets[start + number + 1]
        part, target = keys[slot[number] : slot[number] + end - begin], rows[begin:end]
        for k in range(end - begin):
            target[k] = begin + np.int64(part[k] & LOW)


@inlined
def place_at(keys: Keys, at: int, rank: int) -> Any:
    """The place of the document at a rank (from 0)."""
    return keys[np.uint64(at) + np.uint64(rank)] & LOW


@inlined
def tie_end(keys: Keys, at: int, n: int, rank: int) -> int:
    """The rank behind the tie that begins at a rank."""
    head = keys[np.uint64(at) + np.uint64(rank)] >> HIGH
    end = rank + 1
    while end < n and keys[np.uint64(at) + np.uint64(end)] >> HIGH == head:
        end += 1
    return end


# --- positional metrics -----------------------------------------------------------------------------------------------


@kernel
def discounted(
    keys: Keys,
    turns: Ints,
    slot: Ints,
    count: Ints,
    tied: Bools,
    first: Ints,
    table: Floats,
    discount: Floats,
    cutoff: int,
    out: Floats,
) -> None:
    """Σ discount · table over the ranks up to the cut-off; the documents of a tie share their mean discount."""
    for number in turns:
        at, n, base = slot[number], count[number], np.uint64(first[number])
        if tied[number]:
            out[number] = discounted_ties(keys, at, n, base, table, discount, cutoff)
            continue
        total = 0.0
        for k in range(min(n, cutoff)):
            total += table[base + place_at(keys, at, k)] * discount[k]
        out[number] = total


@kernel
def discounted_ties(keys: Keys, at: int, n: int, base: Any, table: Floats, discount: Floats, cutoff: int) -> float:
    """The same of one list with ties."""
    end = min(n, cutoff)
    total = 0.0
    k = 0
    while k < end:
        stop = tie_end(keys, at, n, k)
        value = table[base + place_at(keys, at, k)]
        if stop == k + 1:
            total += value * discount[k]
            k = stop
            continue
        alike = True
        gain = 0.0
        for j in range(k, stop):
            x = table[base + place_at(keys, at, j)]
            gain += x
            alike &= x == value
        if alike:  # as if there were no tie
            for j in range(k, min(stop, end)):
                total += value * discount[j]
        else:
            share = 0.0
            for j in range(k, min(stop, end)):
                share += discount[j]
            total += gain * share / (stop - k)
        k = stop
    return total


@kernel
def ideal_of_counts(counts: Ints, levels: Ints, gains: Floats, running: Floats, cutoff: int, out: Floats) -> None:
    """The highest discounted sum of each list, from how often each code occurs.

    ``levels`` are the codes by falling gain and ``running`` the sums of the discounts of the first ranks, from those of
    none on. Each step from one gain down to the next is worth its height times the discounts of the ranks above it.
    """
    last = min(cutoff, len(running) - 1)
    for number in range(len(out)):
        total = 0.0
        above = 0
        for level in range(len(levels)):
            gain = gains[levels[level]]
            below = gains[levels[level + 1]] if level + 1 < len(levels) else 0.0
            above += counts[number, levels[level]]
            total += (gain - below) * running[min(above, last)]
        out[number] = total


@kernel
def ideal_of_sorted(gains: Floats, bounds: Ints, discount: Floats, cutoff: int, out: Floats) -> None:
    """The highest discounted sum of each list, from gains that fall along ``bounds[l]:bounds[l + 1]``."""
    for number in range(len(out)):
        part = gains[bounds[number] : bounds[number + 1]]
        total = 0.0
        for rank in range(min(len(part), cutoff)):
            total += part[rank] * discount[rank]
        out[number] = total


@kernel
def shares(
    keys: Keys,
    turns: Ints,
    slot: Ints,
    count: Ints,
    tied: Bools,
    first: Ints,
    table: Floats,
    cutoff: int,
    complete: Bools,
    ideal: Floats,
    empty: float,
    out: Floats,
) -> None:
    """Divide discounted sums by the ideal ones, in place; ``empty`` where the ideal is 0.

    The two sums are rounded in different ways. So no share is above 1, and one next to 1 is exactly 1 where the order
    is ideal in a ``complete`` list, one whose documents are all ranked or count only if they are.
    """
    for number in turns:
        best = ideal[number]
        if not best > 0:
            out[number] = empty
            continue
        share = out[number] / best
        out[number] = min(share, 1.0)
        if (
            complete[number]
            and abs(share - 1) < 1e-9
            and is_ideal(keys, slot[number], count[number], np.uint64(first[number]), table, cutoff)
        ):
            out[number] = 1.0


@kernel
def is_ideal(keys: Keys, at: int, n: int, base: Any, table: Floats, cutoff: int) -> bool:
    """Whether the values never rise down to the cut-off, ties are among equals, and nothing below is higher."""
    last = table[base + place_at(keys, at, 0)]
    for k in range(1, n):
        value = table[base + place_at(keys, at, k)]
        if k < cutoff:
            tie = keys[np.uint64(at) + np.uint64(k)] >> HIGH == keys[np.uint64(at) + np.uint64(k - 1)] >> HIGH
            if value > last or (tie and value != last):
                return False
            last = value
        elif value > last:
            return False
    if cutoff < n:  # a tie across the cut-off
        head = keys[np.uint64(at) + np.uint64(cutoff - 1)] >> HIGH
        for k in range(cutoff, n):
            if keys[np.uint64(at) + np.uint64(k)] >> HIGH != head:
                break
            if table[base + place_at(keys, at, k)] != last:
                return False
    return True


@kernel
def quotients(divisor: Floats, empty: float, out: Floats) -> None:
    """Divide in place; ``empty`` where the divisor is 0."""
    for number in range(len(out)):
        out[number] = out[number] / divisor[number] if divisor[number] > 0 else empty


# --- metrics of the relevant documents --------------------------------------------------------------------------------


@inlined
def hits_in(keys: Keys, at: int, base: Any, relevant: Bools, start: int, stop: int) -> int:
    """How many of the documents at these ranks are relevant."""
    hits = 0
    for j in range(start, stop):
        hits += int(relevant[base + place_at(keys, at, j)])
    return hits


@kernel
def precision_sums(
    keys: Keys,
    turns: Ints,
    slot: Ints,
    count: Ints,
    tied: Bools,
    first: Ints,
    relevant: Bools,
    reciprocals: Floats,
    cutoff: int,
    out: Floats,
) -> None:
    """Σ of the precision at the ranks of the relevant documents, up to the cut-off."""
    for number in turns:
        at, n, base = slot[number], count[number], np.uint64(first[number])
        if tied[number]:
            out[number] = precision_sum_of_ties(keys, at, n, base, relevant, reciprocals, cutoff)
            continue
        found = 0
        total = 0.0
        for k in range(min(n, cutoff)):
            hit = int(relevant[base + place_at(keys, at, k)])
            found += hit
            total += hit * found * reciprocals[np.uint64(k)]
        out[number] = total


@kernel
def precision_sum_of_ties(
    keys: Keys, at: int, n: int, base: Any, relevant: Bools, reciprocals: Floats, cutoff: int
) -> float:
    """The same of one list with ties.

    In a tie of m documents at ranks a.. with r relevant ones and c before it, rank a+t is relevant with probability
    r/m, and then c + 1 + (r-1)t/(m-1) relevant documents are expected up to it.
    """
    end = min(n, cutoff)
    found = 0
    total = 0.0
    k = 0
    while k < end:
        stop = tie_end(keys, at, n, k)
        if stop == k + 1:
            hit = int(relevant[base + place_at(keys, at, k)])
            found += hit
            total += hit * found * reciprocals[np.uint64(k)]
            k = stop
            continue
        r, m = hits_in(keys, at, base, relevant, k, stop), stop - k
        if r == m:  # as if there were no tie
            for j in range(k, min(stop, end)):
                total += (found + j - k + 1) * reciprocals[np.uint64(j)]
        elif r > 0:
            share = 0.0
            growth = (r - 1) / (m - 1)
            for j in range(k, min(stop, end)):
                share += (found + 1 + growth * (j - k)) * reciprocals[np.uint64(j)]
            total += share * r / m
        found += r
        k = stop
    return total


@kernel
def first_hits(
    keys: Keys,
    turns: Ints,
    slot: Ints,
    count: Ints,
    tied: Bools,
    first: Ints,
    relevant: Bools,
    cutoff: int,
    out: Floats,
) -> None:
    """The expected 1/rank of the first relevant document, 0 beyond the cut-off."""
    for number in turns:
        at, n, base = slot[number], count[number], np.uint64(first[number])
        if tied[number]:
            out[number] = first_hit_of_ties(keys, at, n, base, relevant, cutoff)
            continue
        out[number] = 0
        for k in range(min(n, cutoff)):
            if relevant[base + place_at(keys, at, k)]:
                out[number] = 1 / (k + 1)
                break


@kernel
def first_hit_of_ties(keys: Keys, at: int, n: int, base: Any, relevant: Bools, cutoff: int) -> float:
    """The same of one list with ties.

    In a tie of m documents with r relevant ones the first of them is number t + 1 with probability
    C(m-t-1, r-1)/C(m, r).
    """
    end = min(n, cutoff)
    total = 0.0
    k = 0
    while k < end:
        stop = tie_end(keys, at, n, k)
        r = hits_in(keys, at, base, relevant, k, stop)
        if r > 0:
            none = 1.0  # the probability that none was relevant before
            for j in range(k, min(stop, end)):
                left = stop - j
                if r >= left:
                    total += none / (j + 1)
                    break
                total += none * (r / left) / (j + 1)
                none *= (left - r) / left
                if none < NOTHING:
                    break
            break
        k = stop
    return total


@kernel
def cascade(
    keys: Keys,
    turns: Ints,
    slot: Ints,
    count: Ints,
    tied: Bools,
    first: Ints,
    stops: Floats,
    reciprocals: Floats,
    cutoff: int,
    scratch: Floats,
    out: Floats,
) -> None:
    """ERR: a reader goes down the ranks, stops at a document with the probability in the table, and is paid 1/rank."""
    for number in turns:
        at, n, base = slot[number], count[number], np.uint64(first[number])
        if tied[number]:
            out[number] = cascade_of_ties(keys, at, n, base, stops, cutoff, scratch)
            continue
        reading = 1.0
        total = 0.0
        for k in range(min(n, cutoff)):
            chance = stops[base + place_at(keys, at, k)]
            total += reading * chance * reciprocals[np.uint64(k)]
            reading *= 1 - chance
            if reading < NOTHING:
                break
        out[number] = total


@kernel
def cascade_of_ties(keys: Keys, at: int, n: int, base: Any, stops: Floats, cutoff: int, scratch: Floats) -> float:
    """The same of one list with ties; ``scratch`` has room for the stops of a tie and what its expectation needs."""
    end = min(n, cutoff)
    reading = 1.0
    total = 0.0
    k = 0
    while k < end and reading >= NOTHING:
        stop = tie_end(keys, at, n, k)
        if stop == k + 1:
            chance = stops[base + place_at(keys, at, k)]
            total += reading * chance / (k + 1)
            reading *= 1 - chance
        else:
            m = stop - k
            for j in range(m):
                scratch[j] = stops[base + place_at(keys, at, k + j)]
            total += reading * tied_err(scratch, 0, m, k + 1, cutoff, scratch[m:])
            reading *= tied_survival(scratch, 0, m)
        k = stop
    return total


@kernel
def pairs_won(
    keys: Keys,
    turns: Ints,
    slot: Ints,
    count: Ints,
    tied: Bools,
    first: Ints,
    relevant: Bools,
    others: Ints,
    out: Floats,
) -> None:
    """Pairs of a relevant and an irrelevant document that are in the right order; a tied pair counts ½.

    ``others`` are the irrelevant documents of each list, the unranked ones included: they stand below all ranked ones.
    """
    for number in turns:
        at, n, base = slot[number], count[number], np.uint64(first[number])
        below = others[number]
        halves = 0  # twice the pairs
        k = 0
        while k < n:
            stop = tie_end(keys, at, n, k) if tied[number] else k + 1
            r = hits_in(keys, at, base, relevant, k, stop)
            misses = stop - k - r
            halves += r * (2 * below - misses)
            below -= misses
            k = stop
        out[number] = halves / 2
