"""Several label vectors for each query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.data.ragged import (
    Floats,
    Ints,
    as_ids,
    list_numbers,
    offsets_of,
    owned,
)
from calirank.data.supervision.base import Supervision, float_table, judgement_weights


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
        ids = owned(as_ids(np.arange(len(labels)) if query_ids is None else query_ids, "query_ids"))
        if len(ids) != len(labels):
            raise ValueError(f"Judgements: expected one query id for each of {len(labels)} matrices, got {len(ids)}")
        matrices = [_label_matrix(matrix, query) for matrix, query in zip(labels, ids.tolist(), strict=True)]
        counts = np.array([len(matrix) for matrix in matrices], dtype=np.int64)
        sizes = np.array([matrix.shape[1] for matrix in matrices], dtype=np.int64)
        offsets = offsets_of(counts)
        self._set(
            ids,
            offsets,
            judgement_weights(weight, int(counts.sum()), "judgement", ids, offsets),
            offsets_of(np.repeat(sizes, counts)),
            [np.concatenate([matrix.reshape(-1) for matrix in matrices]) if matrices else np.zeros(0)],
        )

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, offsets: Ints, query_ids: NDArray[Any] | None = None) -> Judgements:
        """One row a document, one column a judge, as label files have them; judges silent on a list are left out."""
        table = float_table(matrix, "judges")
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
        held = self.numbers(query)
        labels = self.labels[self.starts[held.start] : self.starts[held.stop]]
        return labels.reshape(len(held), self.items_of(query))

    def items_of(self, query: int) -> int:
        held = self.numbers(query)
        if self.sizes is not None or not held:
            return super().items_of(query)
        return int(self.starts[held.start + 1] - self.starts[held.start])

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


def _label_matrix(matrix: ArrayLike, query: Any) -> Floats:
    table = float_table(matrix, f"Judgements: query {query}")
    if table.ndim != 2:
        raise ValueError(
            f"Judgements: query {query}: expected a row a judge and a column a document, got shape {table.shape}"
        )
    return table
