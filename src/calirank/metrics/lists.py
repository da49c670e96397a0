"""Many lists at once: labels in a form that kernels look up, scores sorted with their ties, and sums over both.

Two types meet here. :class:`Labels` is made once for a data set: where all labels are small whole numbers (grades), a
document's *place* is its grade, and a metric's table has one entry a grade; otherwise it is the document's position
in its list when the best label comes first, and a table has one entry a document. :class:`Lists` is a range of lists
sorted by score: what a metric computes its values from.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank._kernel import SMALL, get_threads, run_tasks, split_evenly
from calirank.data.ragged import frozen, list_numbers, offsets_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Labels that are whole numbers below this are codes.
CODES = 64

#: At most so many documents are sorted and judged together, so that their keys stay in the processor's cache.
BLOCK = 300_000

#: No cut-off.
ENDLESS = np.iinfo(np.int64).max

_CLASSES = 8 * 64


def kernels() -> Any:
    """The compiled loops, imported when first used."""
    from calirank.metrics import _kernels

    return _kernels


class Labels:
    """The labels of many lists of documents: ``values``, flat, with ``offsets``.

    ``codes`` holds them as small whole numbers where they are such, and ``seen`` how often each code occurs. Otherwise,
    and where a metric uses ``columns`` (other numbers a document), ``rows`` sorts each list by label, best first; that
    comes after :meth:`check`.
    """

    def __init__(
        self,
        values: Floats,
        offsets: Ints,
        columns: Mapping[str, Floats] | None = None,
        where: Callable[[int], str] | None = None,
    ) -> None:
        self.values, self.offsets, self.columns = frozen(values), frozen(offsets), dict(columns or {})
        self.where = where or (lambda row: f"document {row}")
        self.codes: NDArray[np.uint8] | None = None
        self.seen = np.zeros(CODES, np.int64)
        if not self.columns:
            codes = np.empty(len(values), np.uint8)
            if kernels().count_codes(self.values, codes, self.seen):
                self.codes = frozen(codes)
                self.seen = self.seen[: int(np.max(np.flatnonzero(self.seen), initial=0)) + 1]

    @cached_property
    def rows(self) -> Ints | None:
        """The rows of each list, best label first; None where labels are codes."""
        return self._sorted_rows() if self.codes is None else None

    @cached_property
    def places(self) -> NDArray[Any]:
        """Where the tables say something of each document."""
        if self.codes is not None:
            return self.codes
        places = np.empty(len(self.values), np.uint32)
        places[self.rows] = positions(self.offsets)
        return places

    def _sorted_rows(self) -> Ints:
        """The rows of each list, best label first; equal labels by their columns."""
        if self.columns:
            columns = [-column for column in self.columns.values()]
            return np.lexsort([*columns, -self.values, list_numbers(self.offsets)])
        scores = Scores(self.values, positions(self.offsets).astype(np.uint32), self.offsets, self.where)
        rows = np.empty(len(self.values), np.int64)

        def task(start: int, stop: int) -> None:
            keys, _, slot, _ = scores.sorted_keys(start, stop)
            kernels().rows_of_keys(keys, slot, self.offsets, start, rows)

        each_block(task, self.offsets)
        return rows

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def distinct(self) -> Floats:
        """All labels that occur; where they are no codes, each as often as it occurs."""
        return self.values if self.codes is None else np.flatnonzero(self.seen).astype(np.float64)

    def check(self, metric: Any, bad: Callable[[Floats], Bools], expected: str) -> None:
        """Refuse labels for which ``bad`` holds, naming the first document that has one."""
        if bad(self.distinct).any():
            row = int(np.argmax(bad(self.values)))
            raise ValueError(f"{metric}: {expected}; got {self.values[row]:g} for {self.where(row)}")


class Sorted(NamedTuple):
    """Lists of sorted keys: where each list begins, how long it is, and in which turn loops should take it."""

    keys: NDArray[np.uint64]
    turns: Ints
    slot: Ints
    length: Ints


class Scores:
    """Scores of the ranked documents of many lists, with the place of each.

    Where places are positions in a list sorted by label, the scores are given in that order too.
    """

    def __init__(
        self, scores: NDArray[Any], places: NDArray[Any], offsets: Ints, where: Callable[[int], str] | None = None
    ) -> None:
        self.values, self.places, self.offsets = frozen(scores), frozen(places), frozen(offsets)
        self.where = where or (lambda row: f"document {row}")
        self.short: NDArray[np.float32] | None = self.values if scores.dtype == np.float32 else None
        if self.short is None:
            narrow = np.empty(len(scores), np.float32)
            self.short = frozen(narrow) if kernels().narrow(self.values, narrow) else None

    def sorted_keys(self, start: int, stop: int, *, finite: bool = True) -> Sorted:
        """The keys of lists ``start:stop``, sorted; with ``finite=False`` scores may be -inf."""
        compiled = kernels()
        count, slot, turns = np.empty((3, stop - start), np.int64)
        kinds, widths, bases = np.zeros((3, _CLASSES), np.int64)
        total = compiled.lay_out(self.offsets, start, count, slot, turns, kinds, widths, bases)
        keys = np.empty(total, np.uint64)
        if self.short is not None:
            bits = self.short.view(np.int32)
            known = compiled.pack_short(bits, self.places, self.offsets, start, slot, keys)
        else:
            known = compiled.pack_long(self.values.view(np.int64), self.offsets, start, slot, keys)
        if finite and not known:
            self._refuse(start, stop)
        for kind in np.flatnonzero(kinds).tolist():
            base, width, lists = int(bases[kind]), int(widths[kind]), int(kinds[kind])
            if width > 1:
                keys[base : base + lists * width].reshape(lists, width).sort(axis=1)
        if self.short is None:
            bits = self.values.view(np.int64)
            compiled.resolve_long(bits, self.places, self.offsets, start, slot, keys)
        return Sorted(keys, turns, slot, count)

    def _refuse(self, start: int, stop: int) -> None:
        first = int(self.offsets[start])
        row = first + int(np.argmin(np.isfinite(self.values[first : self.offsets[stop]])))
        raise ValueError(f"scores: expected finite numbers, got {self.values[row]} for {self.where(row)}")


class Lists:
    """A range of lists, sorted by score: what the value of a metric is computed from."""

    def __init__(self, labels: Labels, scores: Scores, start: int, stop: int) -> None:
        self.labels, self.start, self.stop = labels, start, stop
        self.sorted = scores.sorted_keys(start, stop)
        self.count = self.sorted.length
        self.tied = np.empty(stop - start, np.bool_)
        kernels().find_ties(*self.sorted, self.tied)
        self.bounds = labels.offsets[start : stop + 1]
        self.first = np.zeros(stop - start, np.int64) if labels.rows is None else self.bounds[:-1] - self.bounds[0]
        self._counts: Ints | None = None

    def __len__(self) -> int:
        return self.stop - self.start

    @cached_property
    def sizes(self) -> Ints:
        """Number of documents of each list, the unranked ones included."""
        return np.diff(self.bounds)

    @cached_property
    def longest(self) -> int:
        """The most documents that a list has."""
        return int(self.sizes.max(initial=0))

    def table(self, function: Callable[[Floats, Mapping[str, Floats]], NDArray[Any]]) -> NDArray[Any]:
        """What a function of the label (and of columns) says of each place."""
        rows = self.labels.rows
        if rows is None:
            return function(np.arange(len(self.labels.seen), dtype=np.float64), {})
        part = rows[self.bounds[0] : self.bounds[-1]]
        columns = {name: column[part] for name, column in self.labels.columns.items()}
        return function(self.labels.values[part], columns)

    def _per_code(self) -> Ints:
        """How often each code occurs in each list."""
        if self._counts is None:
            self._counts = np.zeros((len(self), len(self.labels.seen)), np.int64)
            kernels().histogram(self.labels.codes, self.labels.offsets, self.start, self.sorted.turns, self._counts)
        return self._counts

    def counts(self, table: Bools) -> Ints:
        """How many documents of each list the table marks, the unranked ones included."""
        if self.labels.rows is None:
            found = np.empty(len(self), np.int64)
            kernels().sum_counts(self._per_code(), table, found)
            return found
        running = np.concatenate([[0], np.cumsum(table)])
        ends = self.bounds - self.bounds[0]
        return np.asarray(running[ends[1:]] - running[ends[:-1]])

    def discounted(self, table: Floats, discount: Floats, cutoff: int) -> Floats:
        """Σ discount · table over the ranks of each list."""
        return self._sum("discounted", table, frozen(discount), cutoff)

    def ideal(self, table: Floats, discount: Floats, running: Floats, cutoff: int) -> Floats:
        """The highest that :meth:`discounted` could be with all documents ranked; ``running`` sums the discounts."""
        out = np.empty(len(self))
        if self.labels.rows is None:
            levels = np.argsort(-table, kind="stable")
            kernels().ideal_of_counts(self._per_code(), levels, table, running, cutoff, out)
            return out
        ends = self.bounds - self.bounds[0]
        kernels().ideal_of_sorted(_falling(table, ends), ends, discount, cutoff, out)
        return out

    def ideal_of_ranked(self, table: Floats, discount: Floats, running: Floats, cutoff: int) -> Floats:
        """The same with the ranked documents alone; with all of them in a list where none is ranked."""
        best = self.ideal(table, discount, running, cutoff)
        if np.array_equal(self.count, self.sizes):
            return best
        ends = offsets_of(self.count)
        number = list_numbers(ends)
        place = (self.sorted.keys[self.sorted.slot[number] + positions(ends)] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        out = np.empty(len(self))
        kernels().ideal_of_sorted(_falling(table[self.first[number] + place], ends), ends, discount, cutoff, out)
        return np.where(self.count > 0, out, best)

    def shares(
        self,
        sums: Floats,
        ideals: NDArray[Any],
        table: NDArray[Any],
        cutoff: int,
        empty: float,
        *,
        of_ranked: bool = False,
    ) -> Floats:
        """Discounted sums divided by the ideal ones, in place; exactly 1 where the order is ideal.

        ``of_ranked`` says that only ranked documents count in the ideal.
        """
        complete = np.ones(len(self), np.bool_) if of_ranked else np.equal(self.count, self.sizes)
        divisors = np.asarray(ideals, np.float64)
        kernels().shares(*self.sorted, self.tied, self.first, table, cutoff, complete, divisors, empty, sums)
        return sums

    @staticmethod
    def quotients(sums: Floats, divisors: NDArray[Any], empty: float) -> Floats:
        """Sums divided in place; ``empty`` where the divisor is 0."""
        kernels().quotients(np.asarray(divisors, np.float64), empty, sums)
        return sums

    def precision_sums(self, relevant: Bools, cutoff: int) -> Floats:
        """Σ of the precision at the ranks of the relevant documents."""
        return self._sum("precision_sums", relevant, reciprocals(self.longest), cutoff)

    def first_hits(self, relevant: Bools, cutoff: int) -> Floats:
        """1/rank of the first relevant document."""
        return self._sum("first_hits", relevant, cutoff)

    def cascade(self, stops: Floats, cutoff: int) -> Floats:
        """The expected reciprocal rank of a reader who stops at a document with the probability in the table."""
        longest = int(self.count.max(initial=0))
        return self._sum(
            "cascade", stops, reciprocals(self.longest), cutoff, np.empty(3 * longest + 1024 if self.tied.any() else 0)
        )

    def pairs_won(self, relevant: Bools, irrelevant: Ints) -> Floats:
        """Pairs of a relevant and an irrelevant document in the right order."""
        return self._sum("pairs_won", relevant, irrelevant)

    def _sum(self, kernel: str, table: NDArray[Any], *arguments: Any) -> Floats:
        out = np.empty(len(self))
        compiled = getattr(kernels(), kernel)
        compiled(*self.sorted, self.tied, self.first, table, *arguments, out)
        return out


@functools.lru_cache(maxsize=8)
def _reciprocals(size: int) -> Floats:
    found: Floats = 1 / np.arange(1.0, size + 1)
    found.setflags(write=False)
    return found


def reciprocals(n: int) -> Floats:
    """1/rank of the ranks 1..n at least; kept for the next call."""
    return _reciprocals(room(n))


def room(n: int) -> int:
    """A size that is at least n, and seldom another one."""
    return max(1024, 1 << (n - 1).bit_length() if n > 0 else 0)


def _falling(values: Floats, ends: Ints) -> Floats:
    """The values of each list from the highest to the lowest."""
    steps = np.diff(values)
    steps[ends[1:-1][(ends[1:-1] > 0) & (ends[1:-1] < len(values))] - 1] = 0
    if not (steps > 0).any():
        return values
    return values[np.lexsort([-values, list_numbers(ends)])]


def positions(offsets: Ints) -> Ints:
    """The position of each document in its list.

    >>> positions(np.array([0, 2, 5])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def blocks(offsets: Ints, codes: int = 0) -> list[tuple[int, int]]:
    """Ranges of lists with at most about :data:`BLOCK` documents, or one list; as many for each thread.

    Where so many codes are counted in each list, many short lists are more ranges.
    """
    lists, documents, threads = len(offsets) - 1, int(offsets[-1] - offsets[0]), get_threads()
    parts = -(-max(documents, lists * codes // 4) // BLOCK)
    if documents >= SMALL and threads > 1:
        parts = -(-parts // threads) * threads
    cuts = split_evenly(offsets, min(lists, parts)) if min(lists, parts) > 1 else [0, lists]
    return list(itertools.pairwise(cuts))


def each_block(task: Callable[[int, int], object], offsets: Ints, codes: int = 0) -> None:
    """Call ``task(start, stop)`` on all blocks of lists, in the threads that there are."""
    run_tasks([functools.partial(task, start, stop) for start, stop in blocks(offsets, codes)])


def as_scores(scores: ArrayLike, what: str = "scores") -> NDArray[Any]:
    """Scores as a flat float32 or float64 array that sorts and ties exactly as they do.

    >>> as_scores([2**60, 2**60 + 1, 5]).tolist()                 # too large for float64: their ranks instead
    [1.0, 2.0, 0.0]
    """
    if isinstance(scores, np.ma.MaskedArray) and np.ma.getmaskarray(scores).any():
        raise ValueError(f"{what}: expected a number for each document, got a masked array")
    try:
        array = np.asarray(scores)
    except ValueError:
        raise ValueError(f"{what}: expected one flat row of numbers, got rows of different lengths") from None
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "fiubO"):
        raise ValueError(f"{what}: expected one number a document, got {array.dtype} of shape {array.shape}")
    if array.dtype in (np.float32, np.float64):
        return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
    if array.dtype == np.float16 or array.dtype.kind == "b" or not len(array):
        return array.astype(np.float32)
    wide = array.astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = not np.isfinite(wide).all() or bool((wide.astype(array.dtype) == array).all())
    if exact:
        return wide
    distinct = np.unique(array, return_inverse=True)[1]
    return distinct.astype(np.float64)
