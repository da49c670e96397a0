"""Scores meet data: plain scores, a ranker, or a run that names its documents.

A list of the data and what was ranked of it become one list of documents: first the documents of the data, in their
order, then those that a run returned and the data does not know, which have no label. ``rows`` says which of them are
ranked (None: all, in order).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calirank.data.ragged import Floats, Ints, list_numbers, offsets_of
from calirank.data.ranking_data import RankingData
from calirank.data.trec import Run
from calirank.metrics.lists import as_scores
from calirank.names import did_you_mean


@dataclass(frozen=True)
class Ranked:
    """The documents of each list of the data, with the scores of those that are ranked."""

    data: RankingData
    #: Lists of all documents, those of the data and those that only the run has.
    offsets: Ints
    #: Scores of the ranked documents, list after list, and the lists that they form.
    scores: NDArray[Any]
    score_offsets: Ints
    #: Which documents the scores belong to; None when to all in order.
    rows: Ints | None
    #: Where the documents of the data stand among all; None when they are all.
    data_rows: Ints | None
    #: Numbers of the queries that the run does not have, and the ids of queries that the data does not have.
    missed: Ints
    unknown: tuple[Any, ...]
    #: Whether a run returned documents of which the data knows none.
    strangers: bool = False

    @property
    def n_docs(self) -> int:
        """Number of documents of all lists."""
        return int(self.offsets[-1])

    def spread(self, values: NDArray[Any], fill: float) -> Floats:
        """Values of the documents of the data, as values of all documents."""
        if self.data_rows is None:
            return np.ascontiguousarray(values, dtype=np.float64)
        found = np.full(self.n_docs, fill)
        found[self.data_rows] = values
        return found

    @cached_property
    def dense_scores(self) -> Floats:
        """Scores of all documents as float64; -inf where a document is not ranked."""
        if self.rows is None:
            return self.scores.astype(np.float64)
        found = np.full(self.n_docs, -np.inf)
        found[self.rows] = self.scores
        return found

    def require_finite(self) -> None:
        """Refuse a score that is no finite number, naming its document."""
        finite = np.isfinite(self.scores)
        if not finite.all():
            row = int(np.argmin(finite))
            raise ValueError(f"scores: expected finite numbers, got {self.scores[row]} for {self.name_of_score(row)}")

    def name_of_row(self, row: int) -> str:
        """A document in words."""
        query = int(np.searchsorted(self.offsets, row, side="right")) - 1
        place = row - int(self.offsets[query])
        if place < self.data.sizes[query]:
            return self.data.row_name(int(self.data.offsets[query]) + place)
        return f"query {self.data.query_ids[query]}, a document that only the run has"

    def name_of_score(self, row: int) -> str:
        """A ranked document in words."""
        return self.name_of_row(row if self.rows is None else int(self.rows[row]))


def align(scores: Any, data: RankingData) -> Ranked:
    """Bring scores, the predictions of a ranker, or a run into the order of the data."""
    if not isinstance(data, RankingData):
        raise TypeError(
            f"data: expected RankingData, got {type(data).__name__}; cr.RankingData(y=labels, sizes=…) makes it"
        )
    if isinstance(scores, Run):
        return _align_run(scores, data)
    if hasattr(scores, "predict"):
        scores = _predictions(scores, data)
    given = as_scores(scores)
    if len(given) != data.n_docs:
        raise ValueError(f"scores: expected one for each of {data.n_docs} documents, got {len(given)}")
    if data.source_rows is not None:  # scores come in the order in which the caller gave the rows
        given = given[data.caller_rows]
    nothing = np.zeros(0, np.int64)
    return Ranked(data, data.offsets, given, data.offsets, None, None, nothing, ())


def _predictions(ranker: Any, data: RankingData) -> Any:
    if isinstance(ranker, type):
        raise TypeError(f"scores: expected a ranker, got the class {ranker.__name__}")
    try:
        return ranker.predict(data)
    except Exception as error:
        error.add_note(
            f"A ranker's predict takes ranking data. If this {type(ranker).__name__} takes features, give its scores: "
            "model.predict(data.X)"
        )
        raise


def _align_run(run: Run, data: RankingData) -> Ranked:
    """Match queries and documents by the text of their ids."""
    if data.doc_ids is None:
        raise ValueError(
            f"a run names its documents, and the data has no doc_ids to match them with; "
            f"give scores for its {data.n_docs} documents, or the data with doc_ids"
        )
    number_of = {str(query): number for number, query in enumerate(data.query_ids.tolist())}
    if len(number_of) < len(data):
        raise ValueError("the data has lists with the same query id, so a run cannot be matched with them")
    lists = np.array([number_of.get(str(query), -1) for query in run.query_ids.tolist()], np.int64)
    if len(run) and (lists < 0).all():
        first = str(run.query_ids[0])
        raise ValueError(
            f"the run has none of the {len(data)} queries of the data: its first is {first!r}, "
            f"that of the data {str(data.query_ids[0])!r}.{did_you_mean(first, number_of)}"
        )
    docs, run_docs = data.doc_ids.tolist(), run.doc.tolist()
    bounds, run_bounds = data.offsets.tolist(), run.offsets.tolist()
    from_run = np.full(len(data), -1, np.int64)
    from_run[lists[lists >= 0]] = np.flatnonzero(lists >= 0)

    extra = np.zeros(len(data), np.int64)  # documents that only the run has
    places: list[int] = []  # of the returned documents in their list
    run_rows: list[int] = []
    returned = np.zeros(len(data), np.int64)
    for query, entry in enumerate(from_run.tolist()):
        if entry < 0:
            continue
        names = docs[bounds[query] : bounds[query + 1]]
        place_of = {str(name): place for place, name in enumerate(names)}
        if len(place_of) < len(names):
            raise ValueError(f"query {data.query_ids[query]} of the data has two documents with the same id")
        known = len(names)
        for row in range(run_bounds[entry], run_bounds[entry + 1]):
            place = place_of.get(str(run_docs[row]))
            if place is None:
                place = known
                known += 1
            places.append(place)
            run_rows.append(row)
        extra[query] = known - len(names)
        returned[query] = run_bounds[entry + 1] - run_bounds[entry]

    offsets = offsets_of(data.sizes + extra)
    score_offsets = offsets_of(returned)
    rows = np.array(places, np.int64) + offsets[:-1][list_numbers(score_offsets)]
    data_rows = None
    if extra.any():
        data_rows = np.arange(data.n_docs) + (offsets - data.offsets)[:-1][list_numbers(data.offsets)]
    unknown = tuple(np.asarray(run.query_ids)[lists < 0].tolist())
    taken = np.array(run_rows, np.int64)
    return Ranked(
        data,
        offsets,
        as_scores(run.score[taken]),
        score_offsets,
        rows,
        data_rows,
        np.flatnonzero(from_run < 0),
        unknown,
        bool(places) and int(extra.sum()) == len(places),
    )
