"""Rankings of the documents of each query, full or partial, with ties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.data.ragged import (
    Floats,
    Ints,
    list_numbers,
    offsets_of,
    take_lists,
    whole_numbers,
)
from calirank.data.supervision.base import (
    Supervision,
    entries_by_query,
    float_table,
    judgement_weights,
)


class Rankings(Supervision):
    """Rankings of the documents of each query, full or partial, with ties.

    ``orders`` has one entry a judgement: documents from best to worst, where a tuple or list inside stands for
    documents tied at that place. Documents left out are not ranked by that judge. ``query`` gives the query of each
    entry; left out, all rank the one list of query 0.

    >>> votes = Rankings([[2, 0, 1], [2, (0, 1)], [1]], weight=[5, 2, 1])
    >>> votes.orders(0)
    [(2, 0, 1), (2, (0, 1)), (1,)]
    >>> Rankings.from_ranks([[2, 3, 1], [2, 2, 1]]).orders(0)     # the place of each document, not an order
    [(2, 0, 1), (2, (0, 1))]
    """

    payload_names = ("items", "levels")

    def __init__(self, orders: Iterable[Sequence[Any]], weight: ArrayLike | None = None, *, query: Any = None) -> None:
        items: list[int] = []
        levels: list[int] = []
        starts = [0]
        for number, order in enumerate(orders):
            if isinstance(order, (str, bytes)) or not np.iterable(order):
                raise TypeError(f"Rankings: entry {number} is {order!r}; expected document positions, best first")
            for level, place in enumerate(order):
                tied = place if np.iterable(place) else (place,)
                for item in tied:
                    items.append(_position(item, f"Rankings: entry {number}"))
                    levels.append(level)
            starts.append(len(items))
        self._take(np.array(items, np.int64), np.array(levels, np.int64), np.array(starts, np.int64), weight, query)

    @classmethod
    def from_flat(
        cls, items: ArrayLike, levels: ArrayLike, starts: ArrayLike, weight: ArrayLike | None = None, query: Any = None
    ) -> Rankings:
        """From flat arrays: entry j ranks ``items[starts[j]:starts[j + 1]]``, best first; equal levels are tied."""
        flat = [
            whole_numbers(v, f"Rankings: {n}") for n, v in (("items", items), ("levels", levels), ("starts", starts))
        ]
        if len(flat[0]) != len(flat[1]):
            raise ValueError(f"Rankings: {len(flat[0])} items and {len(flat[1])} levels")
        ends = flat[2]
        if not len(ends) or ends[0] != 0 or ends[-1] != len(flat[0]) or (ends[1:] < ends[:-1]).any():
            raise ValueError(f"Rankings: starts must rise from 0 to the number of items, {len(flat[0])}")
        self = cls.__new__(cls)
        self._take(flat[0], flat[1], ends, weight, query)
        return self

    @classmethod
    def from_ranks(cls, ranks: ArrayLike, weight: ArrayLike | None = None, *, query: Any = None) -> Rankings:
        """From a row a judgement with the *place* of each document: the smallest is best, equal places tie.

        Missing places (NaN or masked) are documents that the judge did not rank.
        """
        table = float_table(ranks, "ranks")
        if table.ndim != 2:
            raise ValueError(f"ranks: expected a row a judgement and a column a document, got shape {table.shape}")
        order = np.argsort(table, axis=1, kind="stable")  # NaN last
        placed = np.take_along_axis(table, order, axis=1)
        ranked = ~np.isnan(placed)
        with np.errstate(invalid="ignore"):
            step = np.concatenate([np.zeros((len(table), 1), bool), placed[:, 1:] != placed[:, :-1]], axis=1)
        return cls.from_flat(
            order[ranked], np.cumsum(step, axis=1)[ranked], offsets_of(ranked.sum(axis=1)), weight=weight, query=query
        )

    def _take(self, items: Ints, levels: Ints, starts: Ints, weight: ArrayLike | None, query: Any) -> None:
        count = len(starts) - 1
        ids, codes = entries_by_query(query, count, "Rankings", "ranking")
        number = list_numbers(starts)
        if len(items) and items.min() < 0:
            raise ValueError(f"Rankings: documents are numbered from 0; got {items.min()}")
        width = int(items.max(initial=0)) + 1
        key = np.sort(number * width + items)
        repeated = np.flatnonzero(key[1:] == key[:-1])
        if len(repeated):
            entry, item = divmod(int(key[repeated[0]]), width)
            raise ValueError(f"Rankings: entry {entry} ranks document {item} twice")
        falls = np.flatnonzero((np.diff(levels) < 0) & (np.diff(number) == 0))
        if len(falls):
            raise ValueError(f"Rankings: entry {number[falls[0]]} has levels that decrease; expected best first")
        items, levels = _canonical(items, levels, number)
        order = np.argsort(codes, kind="stable")
        elements, sorted_starts = take_lists(starts, order)
        offsets = offsets_of(np.bincount(codes, minlength=len(ids)))
        weights = judgement_weights(weight, count, "ranking", ids, offsets, order)
        self._set(ids, offsets, weights, sorted_starts, [items[elements], levels[elements]])

    @property
    def items(self) -> Ints:
        """Ranked documents, best first, one judgement after the other."""
        return self.payload[0]

    @property
    def levels(self) -> Ints:
        """The level of each ranked document: equal levels are ties."""
        return self.payload[1]

    def _item_arrays(self) -> tuple[NDArray[Any], ...]:
        return self.payload[:1]

    def _moved(self, query_ids: NDArray[Any], offsets: Ints, sizes: Ints, first_document: Ints, move: Ints) -> Rankings:
        moved = super()._moved(query_ids, offsets, sizes, first_document, move)
        items, levels = _canonical(moved.items, moved.levels, list_numbers(moved.starts))
        return self._build(query_ids, offsets, moved.weight, moved.starts, [items, levels], sizes)

    def orders(self, query: int) -> list[tuple[Any, ...]]:
        """The rankings of a query, each a tuple of documents, best first; tied documents are a tuple inside it."""
        found = []
        for number in self.numbers(query):
            items, levels = self.judgement(number)
            bounds = np.flatnonzero(np.diff(levels)) + 1
            groups = np.split(items, bounds) if len(items) else []
            found.append(tuple(int(g[0]) if len(g) == 1 else tuple(g.tolist()) for g in groups))
        return found

    def ranks(self, query: int) -> Floats:
        """A row a judgement: the level of each document from 0 (best), NaN where it is not ranked."""
        held = self.numbers(query)
        starts = self.starts[held.start : held.stop + 1]
        inside = slice(int(starts[0]), int(starts[-1]))
        table = np.full((len(held), self.items_of(query)), np.nan)
        table[list_numbers(starts - starts[0]), self.items[inside]] = self.levels[inside]
        return table


def _canonical(items: Ints, levels: Ints, number: Ints) -> tuple[Ints, Ints]:
    """Tied documents in rising order, and levels 0, 1, 2, … of each entry, so that equal rankings are equal arrays."""
    within = np.lexsort((items, levels, number))
    higher = np.zeros(len(levels), np.int64)
    higher[1:] = (np.diff(levels) > 0) & (np.diff(number) == 0)
    level = np.cumsum(higher)
    first = np.flatnonzero(np.diff(number, prepend=-1))
    return items[within], level - np.repeat(level[first], np.diff(np.append(first, len(level))))


def _position(item: Any, where: str) -> int:
    if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)) or item < 0:
        raise ValueError(f"{where}: expected positions of documents, whole numbers from 0; got {item!r}")
    return int(item)
