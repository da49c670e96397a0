"""Pairwise preferences: a weighted directed graph for each judge of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.data.ragged import (
    Floats,
    Ints,
    as_ids,
    encode_ids,
    list_numbers,
    offsets_of,
    whole_numbers,
)
from calirank.data.supervision.base import (
    Supervision,
    entries_by_query,
    finite_weights,
    judgement_weights,
)
from calirank.names import did_you_mean


class Preferences(Supervision):
    """Pairwise preferences: edge k says that document ``better[k]`` is preferred to ``worse[k]`` with ``weight[k]``.

    ``query`` and ``judge`` give the query and the judge of each edge; left out, all edges belong to query 0 and to one
    judge. ``judge_weight`` maps judges to their weights (1 for those that it does not name). Cycles are allowed unless
    ``dag=True`` promises that there are none, which is checked. An edge that one judge repeats is one edge with the
    summed weight.

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
        judge_weight: Mapping[Any, float] | None = None,
        dag: bool = False,
    ) -> None:
        better, worse = _positions(better, "better"), _positions(worse, "worse")
        if len(better) != len(worse):
            raise ValueError(f"Preferences: better has {len(better)} entries, worse has {len(worse)}")
        edges = len(better)
        weights = finite_weights(weight, edges)
        ids, codes = entries_by_query(query, edges, "Preferences", "pair")
        loops = np.flatnonzero(better == worse)
        if len(loops):
            at = int(loops[0])
            raise ValueError(
                f"Preferences: query {ids[codes[at]]}: document {better[at]} is preferred to itself (pair {at})"
            )
        names, judges = encode_ids(np.zeros(edges, np.int64) if judge is None else as_ids(judge, "judge"))
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
        weight_of = _judge_weights(names, judge_weight or {})
        by_judgement = judgement_weights(weight_of[kept[1][new_judgement]], len(starts) - 1, "judge", ids, offsets)
        self._set(ids, offsets, by_judgement, starts, [kept[2].copy(), kept[3].copy(), summed])
        if dag:
            self._refuse_cycles()

    @classmethod
    def from_matrices(cls, matrices: Sequence[ArrayLike], *, query_ids: Any = None, dag: bool = False) -> Preferences:
        """One matrix a query: entry [a, b] is the weight with which document a is preferred to b."""
        tables = [np.asarray(matrix, dtype=np.float64) for matrix in matrices]
        ids = as_ids(np.arange(len(tables)) if query_ids is None else query_ids, "query_ids")
        if len(ids) != len(tables):
            raise ValueError(f"Preferences: expected one query id for each of {len(tables)} matrices, got {len(ids)}")
        for table, name in zip(tables, ids, strict=True):
            if table.ndim != 2 or table.shape[0] != table.shape[1]:
                raise ValueError(f"Preferences: query {name}: expected a square matrix, got shape {table.shape}")
            if np.diagonal(table).any():
                raise ValueError(
                    f"Preferences: query {name}: the diagonal must be 0: no document is preferred to itself"
                )
        found = [np.nonzero(table) for table in tables]
        if not found:
            return cls([], [])
        held = cls(
            np.concatenate([pair[0] for pair in found]),
            np.concatenate([pair[1] for pair in found]),
            np.concatenate([table[pair] for table, pair in zip(tables, found, strict=True)]),
            query=np.repeat(ids, [len(pair[0]) for pair in found]),
            dag=dag,
        )
        return held._reordered(ids)  # with the queries that have no preference

    @property
    def better(self) -> Ints:
        """The preferred document of each edge."""
        return self.payload[0]

    @property
    def worse(self) -> Ints:
        """The other document of each edge."""
        return self.payload[1]

    @property
    def edge_weight(self) -> Floats:
        """The weight of each edge."""
        return self.payload[2]

    def _item_arrays(self) -> tuple[NDArray[Any], ...]:
        return self.payload[:2]

    def _moved(
        self, query_ids: NDArray[Any], offsets: Ints, sizes: Ints, first_document: Ints, move: Ints
    ) -> Preferences:
        moved = super()._moved(query_ids, offsets, sizes, first_document, move)
        order = np.lexsort((moved.worse, moved.better, list_numbers(moved.starts)))
        return self._build(query_ids, offsets, moved.weight, moved.starts, [a[order] for a in moved.payload], sizes)

    def edges(self, query: int) -> list[tuple[Ints, Ints, Floats]]:
        """(better, worse, weight) of each judgement of a query."""
        return [(b, w, v) for b, w, v in map(self.judgement, self.numbers(query))]

    def matrix(self, query: int) -> Floats:
        """W[a, b]: the weight with which a is preferred to b, averaged over the judges by their weights."""
        items = self.items_of(query)
        total = np.zeros((items, items))
        if self.numbers(query):
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


def _judge_weights(names: NDArray[Any], given: Mapping[Any, float]) -> Floats:
    """The weight of each judge; a judge who has no preference at all is an error, because it is likely a slip."""
    listed = names.tolist()
    known = set(listed)
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise ValueError(
            f"Preferences: judge_weight names judge {unknown!r}, who prefers nothing."
            f"{did_you_mean(str(unknown), map(str, listed))}"
        )
    return np.array([given.get(name, 1.0) for name in listed], dtype=np.float64)


def _positions(values: ArrayLike, what: str) -> Ints:
    array = whole_numbers(values, f"Preferences: {what} (positions in the list)")
    if len(array) and array.min() < 0:
        raise ValueError(f"Preferences: documents are numbered from 0; got {array.min()} in {what}")
    return array
