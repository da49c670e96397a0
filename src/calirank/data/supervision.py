"""What is known about the right order of a query: label vectors, rankings, preference graphs, each with a weight.

All three are one structure. A query has *judgements* (of a judge, a session, a voter, or an outcome of a known
distribution); a judgement has a weight and a payload:

==================  ===========================================================
:class:`Judgements`   a label for each document, missing (NaN) where the judge is silent
:class:`Rankings`     documents from best to worst; ties and unranked documents allowed
:class:`Preferences`  weighted pairs (better, worse); cycles allowed
==================  ===========================================================

Documents are named by their position in the query's list, from 0; queries by their identifier. On its own a
supervision knows the queries that it mentions; :class:`~calirank.RankingData` aligns it with its own queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    list_numbers,
    offsets_of,
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

    def probabilities(self, query: int) -> Floats:
        """Weights of the judgements of a query, divided by their sum."""
        weight = self.weight[self.offsets[query] : self.offsets[query + 1]]
        shares: Floats = weight / weight.sum()
        return shares

    def judgement(self, number: int) -> tuple[NDArray[Any], ...]:
        """Payload arrays of one judgement (``offsets`` gives the numbers of a query's judgements)."""
        return tuple(array[self.starts[number] : self.starts[number + 1]] for array in self.payload)

    def items_of(self, query: int) -> int:
        """Number of documents of the query's list; before alignment, the number that the judgements mention."""
        if self.sizes is not None:
            return int(self.sizes[query])
        first, last = self.starts[self.offsets[query]], self.starts[self.offsets[query + 1]]
        return 1 + max((int(array[first:last].max(initial=-1)) for array in self._item_arrays()), default=-1)

    def _item_arrays(self) -> tuple[NDArray[Any], ...]:
        """Those payload arrays that hold positions of documents."""
        raise NotImplementedError

    def select(self, queries: ArrayLike) -> Self:
        """The supervision of these queries (numbers, in this order)."""
        lists = np.asarray(queries, dtype=np.int64)
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
        place = np.full(len(query_ids), len(self), dtype=np.int64)  # the extra list is empty
        place[ours] = np.arange(len(self))
        extended = self._build(
            np.concatenate([self.query_ids.astype(object), [None]]),
            np.append(self.offsets, self.offsets[-1]),
            self.weight,
            self.starts,
            self.payload,
        )
        return extended.select(place)

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
            and all(
                np.array_equal(a, b, equal_nan=a.dtype.kind == "f" == b.dtype.kind)
                for a, b in zip(self._arrays(), other._arrays(), strict=True)
            )
        )

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return (self.query_ids, self.offsets, self.weight, self.starts, *self.payload)


class Judgements(Supervision):
    """Several label vectors for each query.

    ``labels`` has one matrix a query: a row for each judge (or session, or outcome), a column for each document; NaN or
    a masked entry where that judge is silent. The rows are kept as *joint* label vectors, because the targets of many
    metrics (NDCG's, for one) need the whole vector of a judge, not each document's label by itself.

    >>> two_judges = Judgements([[[2, 0, 1], [0, 0, 1]], [[1, 0]]], weight=[3, 1, 1])
    >>> two_judges.matrix(0).tolist(), two_judges.probabilities(0).tolist()
    ([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]], [0.75, 0.25])
    """

    payload_names = ("labels",)

    def __init__(self, labels: Sequence[ArrayLike], weight: ArrayLike | None = None, *, query_ids: Any = None) -> None:
        ids = as_ids(np.arange(len(labels)) if query_ids is None else query_ids, "query_ids")
        if len(ids) != len(labels):
            raise ValueError(f"Judgements: expected one query id for each of {len(labels)} matrices, got {len(ids)}")
        matrices = [_label_matrix(matrix, query) for matrix, query in zip(labels, ids.tolist(), strict=True)]
        counts = np.array([len(matrix) for matrix in matrices], dtype=np.int64)
        sizes = np.array([matrix.shape[1] for matrix in matrices], dtype=np.int64)
        offsets = offsets_of(counts)
        self._set(
            ids,
            offsets,
            _weights(weight, int(counts.sum()), "judgement", ids, offsets),
            offsets_of(np.repeat(sizes, counts)),
            [np.concatenate([matrix.reshape(-1) for matrix in matrices]) if matrices else np.zeros(0)],
        )

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, offsets: Ints, query_ids: NDArray[Any] | None = None) -> Judgements:
        """One row a document, one column a judge, as label files have them; judges silent on a list are left out."""
        table = _float_table(matrix, "judges")
        if table.ndim != 2 or len(table) != offsets[-1]:
            raise ValueError(
                f"judges: expected one row a document and one column a judge, that is {int(offsets[-1])} rows; "
                f"got shape {table.shape}"
            )
        lists, judges = len(offsets) - 1, table.shape[1]
        spoke = np.logical_or.reduceat(~np.isnan(table), offsets[:-1], axis=0) if lists else np.zeros((0, judges), bool)
        query, judge = np.nonzero(spoke)
        sizes = np.diff(offsets)
        starts = offsets_of(sizes[query])
        rows = np.arange(starts[-1]) + np.repeat(offsets[:-1][query] - starts[:-1], sizes[query])
        ids = np.arange(lists, dtype=np.int64) if query_ids is None else query_ids
        return cls._build(
            ids,
            offsets_of(spoke.sum(axis=1)),
            np.ones(len(query)),
            starts,
            [table[rows, np.repeat(judge, sizes[query])]],
        )

    @property
    def labels(self) -> Floats:
        """All label vectors, one after the other."""
        return self.payload[0]

    def matrix(self, query: int) -> Floats:
        """The labels of a query: a row for each judgement, a column for each document."""
        first, last = self.offsets[query], self.offsets[query + 1]
        return self.labels[self.starts[first] : self.starts[last]].reshape(int(last - first), self.items_of(query))

    def items_of(self, query: int) -> int:
        if self.sizes is not None or self.offsets[query] == self.offsets[query + 1]:
            return 0 if self.sizes is None else int(self.sizes[query])
        return int(np.diff(self.starts)[self.offsets[query]])

    def _item_arrays(self) -> tuple[NDArray[Any], ...]:
        return ()

    def _check_items(self) -> None:
        assert self.sizes is not None
        query = list_numbers(self.offsets)
        bad = np.flatnonzero(np.diff(self.starts) != self.sizes[query])
        if len(bad):
            at = int(query[bad[0]])
            raise ValueError(
                f"Judgements: query {self.query_ids[at]} has {self.sizes[at]} documents; "
                f"got a label vector of {np.diff(self.starts)[bad[0]]}"
            )

    def _moved(
        self, query_ids: NDArray[Any], offsets: Ints, sizes: Ints, first_document: Ints, move: Ints
    ) -> Judgements:
        query = list_numbers(self.offsets)
        old_sizes = np.diff(self.starts)
        starts = offsets_of(np.repeat(sizes, np.diff(offsets)))
        inside = np.arange(len(self.labels)) - np.repeat(self.starts[:-1], old_sizes)
        place = move[np.repeat(first_document[query], old_sizes) + inside]
        labels = np.full(int(starts[-1]), np.nan)
        labels[np.repeat(starts[:-1], old_sizes) + place] = self.labels
        return self._build(query_ids, offsets, self.weight, starts, [labels], sizes)


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
        self = cls.__new__(cls)
        self._take(
            np.asarray(items, np.int64), np.asarray(levels, np.int64), np.asarray(starts, np.int64), weight, query
        )
        return self

    @classmethod
    def from_ranks(cls, ranks: ArrayLike, weight: ArrayLike | None = None, *, query: Any = None) -> Rankings:
        """From a row a judgement with the *place* of each document: the smallest is best, equal places tie.

        Missing places (NaN or masked) are documents that the judge did not rank.
        """
        table = _float_table(ranks, "ranks")
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
        ids, codes = _entries_by_query(query, count, "Rankings", "ranking")
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
        order = np.argsort(codes, kind="stable")
        elements, sorted_starts = take_lists(starts, order)
        offsets = offsets_of(np.bincount(codes, minlength=len(ids)))
        weights = _weights(weight, count, "ranking", ids, offsets, order)
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

    def orders(self, query: int) -> list[tuple[Any, ...]]:
        """The rankings of a query, each a tuple of documents, best first; tied documents are a tuple inside it."""
        found = []
        for number in range(int(self.offsets[query]), int(self.offsets[query + 1])):
            items, levels = self.judgement(number)
            bounds = np.flatnonzero(np.diff(levels)) + 1
            groups = np.split(items, bounds) if len(items) else []
            found.append(tuple(int(g[0]) if len(g) == 1 else tuple(g.tolist()) for g in groups))
        return found

    def ranks(self, query: int) -> Floats:
        """A row a judgement: the level of each document from 0 (best), NaN where it is not ranked."""
        first, last = int(self.offsets[query]), int(self.offsets[query + 1])
        table = np.full((last - first, self.items_of(query)), np.nan)
        inside = slice(int(self.starts[first]), int(self.starts[last]))
        table[list_numbers(self.starts[first : last + 1] - self.starts[first]), self.items[inside]] = self.levels[
            inside
        ]
        return table


class Preferences(Supervision):
    """Pairwise preferences: edge k says that document ``better[k]`` is preferred to ``worse[k]`` with ``weight[k]``.

    ``query`` and ``judge`` give the query and the judge of each edge; left out, all edges belong to query 0 and to one
    judge. Cycles are allowed unless ``dag=True`` promises that there are none, which is checked. An edge that one judge
    repeats is one edge with the summed weight.

    >>> data = Preferences([0, 1, 2], [1, 2, 0], [1, 1, 0.5])          # a cycle: 0 > 1 > 2 > 0
    >>> data.matrix(0).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.0, 0.0]]
    >>> Preferences([0, 1, 2], [1, 2, 0], dag=True)
    Traceback (most recent call last):
    ...
    ValueError: Preferences: query 0 was promised to have no cycle, but prefers 0 > 1 > 2 > 0
    """

    payload_names = ("better", "worse", "edge_weight")

    def __init__(
        self,
        better: ArrayLike,
        worse: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        query: Any = None,
        judge: Any = None,
        dag: bool = False,
    ) -> None:
        better, worse = _positions(better, "better"), _positions(worse, "worse")
        if len(better) != len(worse):
            raise ValueError(f"Preferences: better has {len(better)} entries, worse has {len(worse)}")
        edges = len(better)
        weights = _edge_weights(weight, edges)
        ids, codes = _entries_by_query(query, edges, "Preferences", "pair")
        loops = np.flatnonzero(better == worse)
        if len(loops):
            at = int(loops[0])
            raise ValueError(
                f"Preferences: query {ids[codes[at]]}: document {better[at]} is preferred to itself (pair {at})"
            )
        judges = np.zeros(edges, np.int64) if judge is None else encode_ids(as_ids(judge, "judge"))[1]
        if len(judges) != edges:
            raise ValueError(f"Preferences: judge has {len(judges)} entries for {edges} pairs")
        # Edges by query, then judge (both in order of appearance), then documents; repeated ones are summed.
        order = np.lexsort((worse, better, judges, codes))
        rows = np.stack([codes, judges, better, worse])[:, order]
        new_edge = np.ones(edges, bool)
        new_edge[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
        first = np.flatnonzero(new_edge)
        summed = np.add.reduceat(weights[order], first) if edges else np.zeros(0)
        kept = rows[:, first]
        new_judgement = np.ones(len(first), bool)
        new_judgement[1:] = (kept[:2, 1:] != kept[:2, :-1]).any(axis=0)
        starts = np.append(np.flatnonzero(new_judgement), len(first)).astype(np.int64)
        offsets = offsets_of(np.bincount(kept[0][new_judgement], minlength=len(ids)))
        self._set(ids, offsets, np.ones(len(starts) - 1), starts, [kept[2].copy(), kept[3].copy(), summed])
        if dag:
            self._refuse_cycles()

    @classmethod
    def from_matrices(cls, matrices: Sequence[ArrayLike], *, query_ids: Any = None, dag: bool = False) -> Preferences:
        """One matrix a query: entry [a, b] is the weight with which document a is preferred to b."""
        tables = [np.asarray(matrix, dtype=np.float64) for matrix in matrices]
        ids = as_ids(np.arange(len(tables)) if query_ids is None else query_ids, "query_ids")
        for table, name in zip(tables, ids, strict=True):
            if table.ndim != 2 or table.shape[0] != table.shape[1]:
                raise ValueError(f"Preferences: query {name}: expected a square matrix, got shape {table.shape}")
            if np.diagonal(table).any():
                raise ValueError(
                    f"Preferences: query {name}: the diagonal must be 0: no document is preferred to itself"
                )
        found = [np.nonzero(table) for table in tables]
        return cls(
            np.concatenate([pair[0] for pair in found]) if found else [],
            np.concatenate([pair[1] for pair in found]) if found else [],
            np.concatenate([table[pair] for table, pair in zip(tables, found, strict=True)]) if found else [],
            query=np.repeat(ids, [len(pair[0]) for pair in found]) if found else None,
            dag=dag,
        )

    @property
    def better(self) -> Ints:
        return self.payload[0]

    @property
    def worse(self) -> Ints:
        return self.payload[1]

    @property
    def edge_weight(self) -> Floats:
        return self.payload[2]

    def _item_arrays(self) -> tuple[NDArray[Any], ...]:
        return self.payload[:2]

    def edges(self, query: int) -> list[tuple[Ints, Ints, Floats]]:
        """(better, worse, weight) of each judgement of a query."""
        numbers = range(int(self.offsets[query]), int(self.offsets[query + 1]))
        return [(b, w, v) for b, w, v in map(self.judgement, numbers)]

    def matrix(self, query: int) -> Floats:
        """W[a, b]: the weight with which a is preferred to b, averaged over the judges by their weights."""
        items = self.items_of(query)
        total = np.zeros((items, items))
        if self.offsets[query] < self.offsets[query + 1]:
            for share, (better, worse, weight) in zip(self.probabilities(query), self.edges(query), strict=True):
                total[better, worse] += share * weight
        return total

    def _refuse_cycles(self) -> None:
        query = list_numbers(self.offsets)
        for number in range(len(self.weight)):
            better, worse, weight = self.judgement(number)
            present = weight > 0
            cycle = find_cycle(better[present].tolist(), worse[present].tolist())
            if cycle:
                path = " > ".join(map(str, [*cycle, cycle[0]]))
                raise ValueError(
                    f"Preferences: query {self.query_ids[query[number]]} was promised to have no cycle, "
                    f"but prefers {path}"
                )


def find_cycle(better: Sequence[int], worse: Sequence[int]) -> list[int]:
    """Documents of a cycle of the graph, in the order of preference; empty when there is none.

    Documents that nothing is preferred to are taken away again and again; what stays has a cycle, and going backwards
    inside it must come back to where it was.

    >>> find_cycle([0, 1, 2, 3], [1, 2, 0, 0])
    [0, 1, 2]
    """
    below: dict[int, list[int]] = {}
    above: dict[int, list[int]] = {}
    for a, b in zip(better, worse, strict=True):
        below.setdefault(a, []).append(b)
        above.setdefault(b, []).append(a)
    waiting = {item: len(above.get(item, ())) for item in {*better, *worse}}
    free = [item for item, count in waiting.items() if count == 0]
    while free:
        item = free.pop()
        del waiting[item]
        for other in below.get(item, ()):
            waiting[other] -= 1
            if waiting[other] == 0:
                free.append(other)
    if not waiting:
        return []
    seen: dict[int, int] = {}
    path: list[int] = []
    item = min(waiting)
    while item not in seen:
        seen[item] = len(path)
        path.append(item)
        item = min(other for other in above[item] if other in waiting)
    cycle = path[seen[item] :][::-1]
    smallest = cycle.index(min(cycle))
    return cycle[smallest:] + cycle[:smallest]


def _entries_by_query(query: Any, count: int, kind: str, entry: str) -> tuple[NDArray[Any], Ints]:
    if query is None:
        return np.zeros(1 if count else 0, np.int64), np.zeros(count, np.int64)
    ids = as_ids(query, f"{kind}: query")
    if len(ids) != count:
        raise ValueError(f"{kind}: expected one query id for each {entry}, that is {count}; got {len(ids)}")
    return encode_ids(ids)


def _weights(
    weight: ArrayLike | None, count: int, entry: str, ids: NDArray[Any], offsets: Ints, order: Ints | None = None
) -> Floats:
    """One finite weight >= 0 a judgement, in the order of the judgements; a query must not have weight 0 in all."""
    if weight is None:
        return np.ones(count)
    weights = _edge_weights(weight, count, entry)
    if order is not None:
        weights = weights[order]
    total = np.bincount(list_numbers(offsets), weights=weights, minlength=len(ids))
    empty = np.flatnonzero((total <= 0) & (np.diff(offsets) > 0))
    if len(empty):
        raise ValueError(f"weight: all judgements of query {ids[empty[0]]} have weight 0")
    return weights


def _edge_weights(weight: ArrayLike | None, count: int, entry: str = "pair") -> Floats:
    if weight is None:
        return np.ones(count)
    weights = np.asarray(weight, dtype=np.float64)
    if weights.shape != (count,):
        raise ValueError(f"weight: expected one number for each {entry}, that is {count}; got shape {weights.shape}")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ValueError(f"weight: expected finite numbers >= 0; got {weights[bad[0]]} for {entry} {bad[0]}")
    return weights


def _float_table(values: ArrayLike, what: str) -> Floats:
    if isinstance(values, np.ma.MaskedArray):
        table: Floats = np.ma.filled(values.astype(np.float64), np.nan)
    else:
        table = np.asarray(values, dtype=np.float64)
    if np.isinf(table).any():
        raise ValueError(f"{what}: expected finite numbers, got an infinite one")
    return table


def _label_matrix(matrix: ArrayLike, query: Any) -> Floats:
    table = _float_table(matrix, f"Judgements: query {query}")
    if table.ndim != 2:
        raise ValueError(
            f"Judgements: query {query}: expected a row a judge and a column a document, got shape {table.shape}"
        )
    return table


def _positions(values: ArrayLike, what: str) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise TypeError(f"Preferences: {what} must be whole numbers, positions in the list; got {array.dtype}")
    array = array.astype(np.int64)
    if len(array) and array.min() < 0:
        raise ValueError(f"Preferences: documents are numbered from 0; got {array.min()} in {what}")
    return array


def _position(item: Any, where: str) -> int:
    if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)) or item < 0:
        raise ValueError(f"{where}: expected positions of documents, whole numbers from 0; got {item!r}")
    return int(item)
