r"""Bounds: the lowest and highest value of a metric that the labels of unjudged documents allow.

An unjudged document may have any label that is possible: it may be relevant or not; it may have any label from 0 to
``max_grade``, whole or not; where the metric lists the gains of grades, or is ERR, any grade. An assignment under which
the metric is undefined takes part with the number ``empty``, or is left out (``empty="skip"``).

Each bound is the value of an assignment, which is found as follows.

- *Monotone* metrics (DCG, precision, RBP, ERU, ERR, RR): all unjudged documents have the label of the lowest gain, or
  all that of the highest. Only an undefined list breaks this for ERR and RR: the lowest value of a defined one is that
  with the last document alone at the lowest grade above 0.
- *Recall, AUC, AP*: if t unjudged documents are relevant, the first t by rank are the best, and the last t the worst,
  because the value is a sum over relevant documents and pairs of them whose terms never rise when one is moved down.
  All t are tried.
- *NDCG*: that it is at least λ means that DCG - λ IDCG ≥ 0. For the lowest value: this is concave in the gains, so that
  each unjudged document has the lowest or the highest gain, the last t of them the highest. For the highest value: it
  is a sum over the levels v of gains, with J(v) judged documents and t(v) unjudged ones of at least this gain,

  .. math:: \mathrm{const} + \int \Big( \sum_{i \le t(v)} \phi_i - \lambda \sum_{k \le J(v) + t(v)} \phi(k) \Big)\, dv,

  where φ_i is the mean discount of the unjudged document i, the first ones being the best. The best t(v) depends on
  J(v) alone and falls with v, so that some best gains are judged ones, 0 or the highest. Dinkelbach's iteration [1967]
  finds λ in a few steps.

Under ties all of this holds for means over tie-breakings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calirank.metrics.ap import AP
from calirank.metrics.auc import AUC
from calirank.metrics.base import Columns, LabelMetric, OneList, columns_of, finds_bounds, scores_of, split_labels
from calirank.metrics.dcg import Discounted
from calirank.metrics.err import ERR
from calirank.metrics.gains import gain_column, gains
from calirank.metrics.lists import ENDLESS, Bools, Floats, Ints, Labels, Lists, Scores
from calirank.metrics.lists import kernels as sorting
from calirank.metrics.ndcg import NDCG
from calirank.metrics.recall import Recall
from calirank.metrics.rr import RR


def kernels() -> Any:
    """The compiled loops, imported when first used."""
    from calirank.metrics.bounds import _kernels

    return _kernels


@finds_bounds
def bounds_of_list(metric: LabelMetric, labels: Any, scores: Any, order: Any, columns: Columns) -> tuple[float, float]:
    """The lowest and highest value of one list; its missing labels are masked.

    >>> from calirank.metrics import RR
    >>> bounds_of_list(RR(), np.ma.masked_invalid([0, np.nan, 1]), [3, 2, 1], None, None)
    (0.3333333333333333, 0.5)
    """
    values, missing = split_labels(labels, metric)
    one = OneList(
        values,
        missing,
        scores_of(metric, len(values), scores, order),
        columns_of(metric, columns, len(values)),
    )
    metric.check(one.labels)
    if missing is None:
        missing = np.zeros(len(values), np.bool_)
    low, high = bounds_of_lists(metric, one.labels, missing, one.scores, 0, 1)
    return float(low[0]), float(high[0])


def bounds_of_lists(
    metric: LabelMetric,
    labels: Labels,
    missing: Bools,
    scores: Scores,
    start: int,
    stop: int,
    ranked_rows: Ints | None = None,
) -> tuple[Floats, Floats]:
    """The lowest and highest value of each of the lists ``start:stop``; NaN where every assignment is skipped.

    ``missing`` marks the rows of ``labels`` that have none (and hold 0); the others have been checked. ``ranked_rows``
    are the rows that the scores belong to, in the order of the scores; None when all documents are ranked, in the order
    of the labels. Where labels are sorted (``labels.rows``), the places of the scores say it, and it is not used.
    """
    low = metric.values(Lists(labels, scores, start, stop))  # with all missing labels 0, which is one assignment
    high = low.copy()
    ends = labels.offsets[start : stop + 1]
    running = np.concatenate([[0], np.cumsum(missing[ends[0] : ends[-1]])])
    which = np.flatnonzero(np.diff(running[ends - ends[0]])) + start
    if len(which) and _labels_matter(metric):
        part = _Part(labels, missing, scores, which, ranked_rows)
        for filled in _assignments(metric, part):
            values = part.values_of(metric, filled)
            low[which - start] = np.fmin(low[which - start], values)  # fmin and fmax leave out what is skipped
            high[which - start] = np.fmax(high[which - start], values)
    return low, high


class _Part:
    """Those lists of a range that lack labels, with their documents in the order of ranks, the unranked ones last."""

    def __init__(
        self, labels: Labels, missing: Bools, scores: Scores, which: Ints, ranked_rows: Ints | None = None
    ) -> None:
        rows, self.bounds = _rows_of(labels.offsets, which)
        self.labels, self.missing = labels.values[rows], missing[rows]
        self.columns = {name: column[rows] for name, column in labels.columns.items()}
        ranked, self.score_bounds = _rows_of(scores.offsets, which)
        self.scores = scores.values[ranked]
        self.counts, self.sizes = np.diff(self.score_bounds), np.diff(self.bounds)
        if labels.rows is not None:
            ranked = labels.rows[np.repeat(labels.offsets[which], self.counts) + scores.places[ranked]]
        elif ranked_rows is not None:
            ranked = ranked_rows[ranked]
        self.row_of_score = ranked - np.repeat(labels.offsets[which] - self.bounds[:-1], self.counts)

    def values_of(self, metric: LabelMetric, filled: Floats) -> Floats:
        """The value of each list when these are the labels."""
        labels = Labels(filled, self.bounds, self.columns)
        order = np.arange(len(self.scores))
        if labels.rows is not None:  # scores in the order of places
            score_of_row = np.full(len(filled), -1)
            score_of_row[self.row_of_score] = order
            order = score_of_row[labels.rows]
            order = order[order >= 0]
        places = labels.places[self.row_of_score[order]]
        return metric.values(Lists(labels, Scores(self.scores[order], places, self.score_bounds), 0, len(labels)))

    @cached_property
    def _by_score(self) -> Ints:
        """The scores of each list, best first, as positions among all scores."""
        return _best_first(self.scores, self.score_bounds)

    @cached_property
    def _standing(self) -> Ints:
        """Where the document of each score, best first, stands among all documents of all lists."""
        return np.repeat(self.bounds[:-1] - self.score_bounds[:-1], self.counts) + np.arange(len(self.scores))

    @cached_property
    def is_ranked(self) -> Bools:
        """Which documents are ranked, in the order of ranks."""
        ranked = np.zeros(len(self.labels), np.bool_)
        ranked[self._standing] = True
        return ranked

    @cached_property
    def rows(self) -> Ints:
        """The documents in the order of ranks."""
        rows = np.empty(len(self.labels), np.int64)
        taken = self.row_of_score[self._by_score]
        rows[self._standing] = taken
        unranked = np.ones(len(self.labels), np.bool_)
        unranked[taken] = False
        rows[~self.is_ranked] = np.flatnonzero(unranked)
        return rows

    @cached_property
    def _tie_of_score(self) -> Ints:
        """The position among all scores, best first, where the tie of each begins."""
        ordered = self.scores[self._by_score]
        begins = np.ones(len(ordered), np.bool_)
        begins[1:] = ordered[1:] != ordered[:-1]
        begins[self.score_bounds[:-1][self.counts > 0]] = True
        return np.maximum.accumulate(np.where(begins, np.arange(len(ordered)), 0))

    def ties(self) -> Ints:
        """Where the tie of each document begins, in the order of ranks; the unranked ones tie with none."""
        first = np.arange(len(self.labels))
        first[self._standing] = self._standing[self._tie_of_score]
        return first

    def mean_discounts(self, discount: Floats, cutoff: int = ENDLESS) -> Floats:
        """The mean discount of each document over the ways to break ties, in the order of ranks; 0 without a rank."""
        first = self._tie_of_score
        rank = np.arange(len(first)) - np.repeat(self.score_bounds[:-1], self.counts)
        found = np.zeros(len(self.labels))
        if len(first):
            begins = np.flatnonzero(first == np.arange(len(first)))
            sums = np.add.reduceat(np.where(rank < cutoff, discount[rank], 0), begins)
            many = np.diff(begins, append=len(first))
            found[self._standing] = np.repeat(sums / many, many)
        return found

    @property
    def longest(self) -> int:
        """The most documents that a list has."""
        return int(self.sizes.max())

    def all_at(self, label: float) -> Floats:
        """The labels when all missing ones are this one."""
        return np.where(self.missing, label, self.labels)

    def some_at(self, label: float, number: Ints, first: bool) -> Floats:
        """The labels when the first (or last) so many missing ones of each list by rank are this one, the others 0."""
        rows = self.rows[self.missing[self.rows]]
        place, many = _places(self.lacking)
        number = np.repeat(number, self.lacking)
        filled = self.labels.copy()
        filled[rows[place < number if first else place >= many - number]] = label
        return filled

    @cached_property
    def lacking(self) -> Ints:
        """How many labels each list lacks."""
        return np.add.reduceat(self.missing, self.bounds[:-1], dtype=np.int64)


# --- assignments ------------------------------------------------------------------------------------------------------


def _labels_matter(metric: LabelMetric) -> bool:
    return not (isinstance(metric, Discounted) and gain_column(metric.gain))


def _assignments(metric: LabelMetric, part: _Part) -> Iterator[Floats]:
    """Assignments of all missing labels: with that of zeros, the lowest and highest value of each list are theirs."""
    labels, gained = _possible(metric)
    if isinstance(metric, NDCG):
        yield from _for_ndcg(metric, part, labels, gained)
    elif isinstance(metric, (Recall, AUC, AP)):
        yield from _for_relevant(metric, part, labels[-1])
    elif metric.monotone:
        yield from _for_monotone(metric, part, labels)
    else:
        raise ValueError(f"{metric}: no exact bounds are known for this metric")


def _possible(metric: LabelMetric) -> tuple[Floats, Floats]:
    """Labels that a document without one may have, of distinct gains that rise: all gains of grades, or the ends."""
    top = metric.top_label()
    labels = np.array([0.0, top])
    if isinstance(metric, Discounted):
        if isinstance(metric.gain, tuple):
            labels = np.arange(min(math.floor(top), len(metric.gain) - 1) + 1.0)
        metric.check(Labels(labels, np.array([0, len(labels)]), where=lambda row: "the highest label that is possible"))
        gained = gains(labels, metric.gain, {})
    else:
        gained = labels
    gained, first = np.unique(gained, return_index=True)
    return labels[first], gained


def _for_monotone(metric: LabelMetric, part: _Part, labels: Floats) -> Iterator[Floats]:
    if labels[0] != 0:
        yield part.all_at(labels[0])
    yield part.all_at(labels[-1])
    if isinstance(metric, (RR, ERR)) and metric.empty != 0:
        least = min(1.0, labels[-1]) if isinstance(metric, ERR) else labels[-1]
        yield part.some_at(least, np.ones(len(part.sizes), np.int64), first=False)


def _for_relevant(metric: Recall | AUC | AP, part: _Part, label: float) -> Iterator[Floats]:
    """The first so many unjudged documents relevant, the last so many, and for AUC all of them."""
    judged, missing = part.labels[part.rows] >= metric.relevant, part.missing[part.rows]
    R = np.add.reduceat(judged, part.bounds[:-1], dtype=np.int64)
    values = part.lacking + 1
    added, _ = _places(values)
    relevant = np.repeat(R, values) + added
    n = np.repeat(part.sizes, values)
    for first in (True, False):
        found = np.empty(len(added))
        if isinstance(metric, AP):
            cutoff = ENDLESS if metric.k is None else int(metric.k)
            share = part.mean_discounts(1 / np.arange(1.0, part.longest + 1), cutoff)
            kernels().precision_sums(judged, missing, share, part.ties(), part.bounds, cutoff, first, found)
            divisor = np.minimum(relevant, cutoff) if metric.divisor == "min" else relevant
        elif isinstance(metric, AUC):
            # Σ n - rank of the relevant documents that are ranked, less the pairs of one of them and a relevant one
            below = np.where(part.is_ranked, np.repeat(part.sizes, part.sizes), 0)
            share = below - part.mean_discounts(np.arange(1.0, part.longest + 1))
            kernels().found_sums(judged, missing, share, part.bounds, first, found)
            ranked = np.empty(len(added))
            kernels().found_sums(judged, missing, part.is_ranked.astype(np.float64), part.bounds, first, ranked)
            found += ranked * (ranked + 1) / 2 - ranked * relevant
            divisor = relevant * (n - relevant)
        else:
            share = part.mean_discounts(np.ones(part.longest), ENDLESS if metric.k is None else int(metric.k))
            kernels().found_sums(judged, missing, share, part.bounds, first, found)
            divisor = relevant
        value = np.full(len(added), -np.inf)
        np.divide(found if first else -found, divisor, out=value, where=divisor > 0)
        number = np.empty(len(values), np.int64)
        kernels().largest(value, np.concatenate([[0], np.cumsum(values)]), number)
        yield part.some_at(label, number, first)
    if isinstance(metric, AUC) and metric.empty != "skip":
        yield part.all_at(label)


def _for_ndcg(metric: NDCG, part: _Part, labels: Floats, gained: Floats) -> Iterator[Floats]:
    if metric.weight:
        raise ValueError(f"{metric}: no exact bounds are known for NDCG with weights of documents")
    if labels[0] != 0:
        yield part.all_at(labels[0])
    if metric.ideal_over == "list":  # where nothing is ranked, all documents count
        yield part.all_at(labels[-1])
    rows, missing = part.rows, part.missing[part.rows]
    counts = part.is_ranked if metric.ideal_over == "list" else np.ones(len(rows), np.bool_)
    judged = counts & ~missing
    many = np.add.reduceat(judged, part.bounds[:-1], dtype=np.int64)
    bounds = np.concatenate([[0], np.cumsum(many)])
    known = part.labels[rows[judged]]
    known_gains = gains(known, metric.gain, {})
    by_gain = _best_first(known_gains, bounds)
    in_order = np.zeros(len(rows))
    in_order[judged] = known_gains
    cutoff = ENDLESS if metric.k is None else int(metric.k)
    discount = metric._raw_discount(part.longest)
    ideal = np.cumsum(np.where(np.arange(part.longest) < cutoff, discount[: part.longest], 0))
    lowest = np.where(missing, labels[0], part.labels[rows])
    highest = lowest.copy()
    kernels().shares_of_ideal(
        in_order,
        missing,
        part.mean_discounts(discount, cutoff),
        part.bounds,
        part.counts if metric.ideal_over == "list" else part.sizes,
        known_gains[by_gain],
        known[by_gain],
        bounds,
        gained,
        labels,
        np.concatenate([[0.0], ideal]),
        lowest,
        highest,
    )
    for found in (lowest, highest):
        filled = np.empty(len(rows))
        filled[rows] = found
        yield filled


# --- rows -------------------------------------------------------------------------------------------------------------


def _rows_of(offsets: Ints, which: Ints) -> tuple[Ints, Ints]:
    """The rows of some lists, and the bounds of each among them."""
    sizes = offsets[which + 1] - offsets[which]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(bounds[-1]) + np.repeat(offsets[which] - bounds[:-1], sizes), bounds


def _places(sizes: Ints) -> tuple[Ints, Ints]:
    """For each row of lists of these sizes: its place in its list, and the size."""
    ends = np.cumsum(sizes)
    return np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes), np.repeat(sizes, sizes)


def _best_first(values: NDArray[Any], bounds: Ints) -> Ints:
    """The rows of each list, the highest value first."""
    place, _ = _places(np.diff(bounds))
    ordered = Scores(values, place.astype(np.uint32), bounds).sorted_keys(0, len(bounds) - 1)
    rows = np.empty(len(values), np.int64)
    sorting().rows_of_keys(ordered.keys, ordered.slot, bounds, 0, rows)
    return rows
