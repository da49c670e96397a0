"""Weighted judgements of each query as flat arrays: what label vectors, rankings and preferences share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.data.ragged import (
    Floats,
    Ints,
    as_ids,
    encode_ids,
    frozen,
    join_ids,
    list_number,
    list_numbers,
    offsets_of,
    refrozen,
    same_bits,
    take_lists,
)
from calirank.names import did_you_mean


class Supervision:
    """Weighted judgements of each query, as flat arrays.

    ``offsets[q]:offsets[q + 1]`` are the judgements of query ``q``, ``weight`` has one number a judgement, and
    ``starts[j]:starts[j + 1]`` is the payload of judgement ``j`` in each of the payload arrays.
    """

    payload_names: ClassVar[tuple[str, ...]] = ()

    query_ids: NDArray[Any]
    offsets: Ints
    weight: Floats
    starts: Ints
    payload: tuple[NDArray[Any], ...]
    #: Number of documents of each query; None until a RankingData aligned the supervision with its lists.
    sizes: Ints | None

    @classmethod
    def _build(
        cls,
        query_ids: NDArray[Any],
        offsets: Ints,
        weight: Floats,
        starts: Ints,
        payload: Sequence[NDArray[Any]],
        sizes: Ints | None = None,
    ) -> Self:
        self = cls.__new__(cls)
        self._set(query_ids, offsets, weight, starts, payload, sizes)
        return self

    def _set(
        self,
        query_ids: NDArray[Any],
        offsets: Ints,
        weight: Floats,
        starts: Ints,
        payload: Sequence[NDArray[Any]],
        sizes: Ints | None = None,
    ) -> None:
        self.query_ids, self.offsets, self.weight = frozen(query_ids), frozen(offsets), frozen(weight)
        self.starts, self.payload = frozen(starts), tuple(frozen(array) for array in payload)
        self.sizes = None if sizes is None else frozen(sizes)

    def __len__(self) -> int:
        return len(self.query_ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} queries, {len(self.weight)} judgements)"

    @property
    def counts(self) -> Ints:
        """Number of judgements of each query."""
        return np.diff(self.offsets)

    def numbers(self, query: int) -> range:
        """The numbers of the judgements of a query; a negative query counts from the end."""
        query = list_number(query, len(self))
        return range(int(self.offsets[query]), int(self.offsets[query + 1]))

    def probabilities(self, query: int) -> Floats:
        """Weights of the judgements of a query, divided by their sum."""
        held = self.numbers(query)
        weight = self.weight[held.start : held.stop]
        shares: Floats = weight / weight.sum()
        return shares

    def judgement(self, number: int) -> tuple[NDArray[Any], ...]:
        """Payload arrays of one judgement (:meth:`numbers` gives those of a query)."""
        return tuple(array[self.starts[number] : self.starts[number + 1]] for array in self.payload)

    def items_of(self, query: int) -> int:
        """Number of documents of the query's list; before alignment, the number that the judgements mention."""
        if self.sizes is not None:
            return int(self.sizes[list_number(query, len(self))])
        held = self.numbers(query)
        first, last = self.starts[held.start], self.starts[held.stop]
        return 1 + max((int(array[first:last].max(initial=-1)) for array in self._item_arrays()), default=-1)

    def _item_arrays(self) -> tuple[NDArray[Any], ...]:
        """Those payload arrays that hold positions of documents."""
        raise NotImplementedError

    def select(self, queries: Any) -> Self:
        """The supervision of these queries: a slice without a step (which copies nothing), a mask, or numbers."""
        if isinstance(queries, slice):
            return self._range(*queries.indices(len(self))[:2])
        lists = np.asarray(queries)
        lists = np.flatnonzero(lists) if lists.dtype.kind == "b" else lists.astype(np.int64)
        judgements, offsets = take_lists(self.offsets, lists)
        elements, starts = take_lists(self.starts, judgements)
        return self._build(
            self.query_ids[lists],
            offsets,
            self.weight[judgements],
            starts,
            [array[elements] for array in self.payload],
            None if self.sizes is None else self.sizes[lists],
        )

    def _range(self, first: int, last: int) -> Self:
        offsets = self.offsets[first : last + 1]
        starts = self.starts[offsets[0] : offsets[-1] + 1]
        return self._build(
            self.query_ids[first:last],
            offsets - offsets[0],
            self.weight[offsets[0] : offsets[-1]],
            starts - starts[0],
            [array[starts[0] : starts[-1]] for array in self.payload],
            None if self.sizes is None else self.sizes[first:last],
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """One supervision of all queries of the parts, in order; a query that occurs twice stays twice."""
        sizes: list[Any] = [part.sizes for part in parts]
        return cls._build(
            join_ids([part.query_ids for part in parts], "query_ids"),
            offsets_of(np.concatenate([part.counts for part in parts])),
            np.concatenate([part.weight for part in parts]),
            offsets_of(np.concatenate([np.diff(part.starts) for part in parts])),
            [np.concatenate(arrays) for arrays in zip(*(part.payload for part in parts), strict=True)],
            None
            if any(size is None for size in sizes)
            else np.concatenate([size for size in sizes if size is not None]),
        )

    def align(self, query_ids: NDArray[Any], sizes: Ints) -> Self:
        """The supervision in the order of these queries, checked against the lengths of their lists.

        A query that the supervision does not mention gets no judgement; one that only the supervision mentions is an
        error.
        """
        aligned = self if np.array_equal(self.query_ids, query_ids) else self._reordered(query_ids)
        aligned = aligned._build(
            query_ids, aligned.offsets, aligned.weight, aligned.starts, aligned.payload, np.asarray(sizes, np.int64)
        )
        aligned._check_items()
        return aligned

    def renamed(self, query_ids: NDArray[Any]) -> Self:
        """The same judgements with other names of the queries."""
        return self._build(query_ids, self.offsets, self.weight, self.starts, self.payload, self.sizes)

    def _reordered(self, query_ids: NDArray[Any]) -> Self:
        _, codes = encode_ids(join_ids([query_ids, self.query_ids], "query"))
        ours = codes[len(query_ids) :]
        if len(np.unique(codes[: len(query_ids)])) < len(query_ids):
            raise ValueError(
                f"{type(self).__name__}: the data has lists with the same query id, so judgements cannot be told apart "
                "by it; give each list its own id, then merge"
            )
        unknown = np.flatnonzero(ours >= len(query_ids))
        if len(unknown):
            name = self.query_ids[unknown[0]]
            raise ValueError(
                f"{type(self).__name__}: query {name.item() if isinstance(name, np.generic) else name!r} is not among "
                f"the {len(query_ids)} queries of the data.{did_you_mean(str(name), map(str, query_ids.tolist()))}"
            )
        order = np.argsort(ours, kind="stable")
        chosen = self.select(order)
        counts = np.zeros(len(query_ids), dtype=np.int64)
        np.add.at(counts, ours[order], chosen.counts)  # a query that we hold twice has the judgements of both
        return self._build(query_ids, offsets_of(counts), chosen.weight, chosen.starts, chosen.payload)

    def _check_items(self) -> None:
        assert self.sizes is not None
        query = np.repeat(list_numbers(self.offsets), np.diff(self.starts))
        for array in self._item_arrays():
            bad = np.flatnonzero((array >= self.sizes[query]) | (array < 0))
            if len(bad):
                at = int(query[bad[0]])
                raise ValueError(
                    f"{type(self).__name__}: query {self.query_ids[at]} has {self.sizes[at]} documents, "
                    f"numbered from 0; got document {array[bad[0]]}"
                )

    def merged(
        self, lists: Ints, groups: Ints, query_ids: NDArray[Any], sizes: Ints, weight: Floats, move: Ints
    ) -> Self:
        """The judgements of several lists put together as judgements of one list.

        ``lists[groups[g]:groups[g + 1]]`` become list ``g`` of ``sizes[g]`` documents. The judgements of a list share
        its weight: they get ``weight[list]`` times their probability. ``move`` gives for each document (in the flat
        order of all lists) its position in the merged list.
        """
        assert self.sizes is not None
        share = np.zeros(len(self.weight))
        query = list_numbers(self.offsets)
        total = np.bincount(query, weights=self.weight, minlength=len(self))
        np.divide(self.weight * weight[query], total[query], out=share, where=total[query] > 0)
        chosen = self._build(self.query_ids, self.offsets, share, self.starts, self.payload, self.sizes).select(lists)
        judgements = chosen.offsets[groups]
        first_document = offsets_of(self.sizes)[:-1][lists]
        return chosen._moved(query_ids, judgements, sizes, first_document, move)

    def _moved(self, query_ids: NDArray[Any], offsets: Ints, sizes: Ints, first_document: Ints, move: Ints) -> Self:
        """Rename documents to their merged positions; ``first_document`` of each (old) list indexes ``move``."""
        base = np.repeat(first_document[list_numbers(self.offsets)], np.diff(self.starts))
        payload = list(self.payload)
        for number, array in enumerate(self.payload):
            if any(array is items for items in self._item_arrays()):
                payload[number] = move[base + array]
        return self._build(query_ids, offsets, self.weight, self.starts, payload, sizes)

    def equals(self, other: object) -> bool:
        """Whether the other supervision is of the same kind with the same queries, judgements, weights and payload."""
        return (
            isinstance(other, Supervision)
            and type(self) is type(other)
            and all(map(same_bits, self._arrays(), other._arrays()))
        )

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return (self.query_ids, self.offsets, self.weight, self.starts, *self.payload)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(refrozen(state))


# --- checks of what judgements are made from --------------------------------------------------------------------------


def entries_by_query(query: Any, count: int, kind: str, entry: str) -> tuple[NDArray[Any], Ints]:
    """The queries that the entries of a supervision name, and the number of each entry's query among them."""
    if query is None:
        return np.zeros(1 if count else 0, np.int64), np.zeros(count, np.int64)
    ids = as_ids(query, f"{kind}: query")
    if len(ids) != count:
        raise ValueError(f"{kind}: expected one query id for each {entry}, that is {count}; got {len(ids)}")
    return encode_ids(ids)


def judgement_weights(
    weight: ArrayLike | None, count: int, entry: str, ids: NDArray[Any], offsets: Ints, order: Ints | None = None
) -> Floats:
    """One finite weight >= 0 a judgement, in the order of the judgements; a query must not have weight 0 in all."""
    if weight is None:
        return np.ones(count)
    weights = finite_weights(weight, count, entry)
    if order is not None:
        weights = weights[order]
    total = np.bincount(list_numbers(offsets), weights=weights, minlength=len(ids))
    empty = np.flatnonzero((total <= 0) & (np.diff(offsets) > 0))
    if len(empty):
        raise ValueError(f"weight: all judgements of query {ids[empty[0]]} have weight 0")
    return weights


def finite_weights(weight: ArrayLike | None, count: int, entry: str = "pair", name: str = "weight") -> Floats:
    """A finite weight >= 0 for each entry, 1 where none are given; always the caller's no longer."""
    if weight is None:
        return np.ones(count)
    weights = np.array(weight, dtype=np.float64)
    if weights.shape != (count,):
        raise ValueError(f"{name}: expected one number for each {entry}, that is {count}; got shape {weights.shape}")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ValueError(f"{name}: expected finite numbers >= 0; got {weights[bad[0]]} for {entry} number {bad[0]}")
    return weights


def float_table(values: ArrayLike, what: str) -> Floats:
    """Values as float64; masked ones are NaN, infinite ones are refused."""
    if isinstance(values, np.ma.MaskedArray):
        table: Floats = np.ma.filled(values.astype(np.float64), np.nan)
    else:
        table = np.asarray(values, dtype=np.float64)
    if np.isinf(table).any():
        raise ValueError(f"{what}: expected finite numbers, got an infinite one")
    return table
