"""The values of many metrics for every query, in one pass over the lists."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calirank._progress import track
from calirank.data.ragged import Floats, Ints, list_numbers, offsets_of, take_lists
from calirank.data.ranking_data import RankingData
from calirank.data.supervision import Judgements, Preferences, Rankings, Supervision
from calirank.evaluation.alignment import Ranked
from calirank.metrics import PD, Custom, Metric
from calirank.metrics.base import JudgementMetric, LabelMetric, as_column, empty_value, weighted_by_judge
from calirank.metrics.bounds import bounds_of_lists
from calirank.metrics.lists import Bools, Labels, Lists, Scores, each_block, positions
from calirank.metrics.sums import WeightedSum, parts_of
from calirank.names import did_you_mean


@dataclass(frozen=True)
class QueryValues:
    """One value a query, NaN where it is skipped; the bounds where labels are missing; errors where it was sampled."""

    value: Floats
    lower: Floats | None = None
    upper: Floats | None = None
    error: Floats | None = None


def query_values(metrics: Sequence[Metric], ranked: Ranked, progress: bool | None = None) -> list[QueryValues]:
    """The values of each metric for every query of the data."""
    parts: dict[Metric, QueryValues] = {}
    terms = {part: None for metric in metrics for _, part in parts_of(metric)[0]}
    labelled = [part for part in terms if isinstance(part, LabelMetric)]
    if labelled:
        parts.update(_label_values(labelled, ranked))
    for part in terms:
        if isinstance(part, JudgementMetric):
            parts[part] = QueryValues(_judgement_values(part, ranked))
        elif isinstance(part, Custom):
            parts[part] = _custom_values(part, ranked, progress)
        elif part not in parts:
            raise TypeError(f"cannot evaluate {part!r} of type {type(part).__name__}")
    if len(ranked.missed):
        for metric in metrics:
            if any(coefficient < 0 for coefficient, _ in parts_of(metric)[0]):
                missed = ranked.data.query_ids[ranked.missed[0]]
                raise ValueError(
                    f"{metric}: query {missed} is not in the run, and the lowest value of a sum with negative "
                    "coefficients is not known; evaluate its terms by themselves"
                )
    return [_combined(metric, parts) for metric in metrics]


def _combined(metric: Metric, parts: dict[Metric, QueryValues]) -> QueryValues:
    """A sum from the values of its terms."""
    terms, constant = parts_of(metric)
    held = [(coefficient, part, parts[part]) for coefficient, part in terms]
    if len(held) == 1 and held[0][0] == 1 and constant == 0:
        return held[0][2]
    value: Floats = constant + np.sum([c * found.value for c, _, found in held], axis=0)
    lower: Floats | None = None
    upper: Floats | None = None
    error: Floats | None = None
    if any(found.lower is not None for _, _, found in held):
        assert isinstance(metric, WeightedSum)
        ends = [(f.value, f.value) if f.lower is None else (f.lower, f.upper) for _, _, f in held]
        lower, upper = metric.bounds_of_terms(ends)
        assert lower is not None
        value = lower
    errors = [(c, found.error) for c, _, found in held if found.error is not None]
    if errors:
        # The terms may have drawn the same orders: their errors may add up.
        error = np.sum([abs(c) * e for c, e in errors], axis=0)
    return QueryValues(value, lower, upper, error)


# --- labels -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Problem:
    """Lists of labels, which of them are missing, and what is ranked; one list a judgement where there are several."""

    values: Floats
    missing: Bools | None
    offsets: Ints
    scores: NDArray[Any]
    score_offsets: Ints
    rows: Ints | None
    #: The documents of the alignment that these are; None when the same.
    source: Ints | None
    judgements: Supervision | None


def _label_values(metrics: list[LabelMetric], ranked: Ranked) -> dict[Metric, QueryValues]:
    """Metrics of labels, all that need the same lists together."""
    problem = _problem(metrics[0], ranked)
    groups: dict[tuple[str, tuple[str, ...]], list[LabelMetric]] = {}
    for metric in metrics:
        policy: str = metric.unjudged if problem.missing is not None else "zero"
        groups.setdefault((policy, metric.columns), []).append(metric)
    found: dict[Metric, QueryValues] = {}
    for (policy, columns), group in groups.items():
        held = _without_missing(problem) if policy == "skip" else problem
        if policy == "bounds" and columns and ranked.data_rows is not None:
            raise ValueError(
                f"{group[0]}: the run has documents that the data does not know, whose {' and '.join(columns)} could "
                "be anything, so the values have no bounds"
            )
        labels = _labels(held, ranked, group[0], columns)
        for metric in group:
            metric.check(labels)
        scores = _scores(held, ranked, labels)
        lower, upper = _block_values(group, policy == "bounds", labels, scores, held)
        for number, metric in enumerate(group):
            low, high = (_per_query(side[number], problem.judgements) for side in (lower, upper))
            found[metric] = QueryValues(low, low, high) if policy == "bounds" else QueryValues(low)
    return found


def _block_values(
    group: list[LabelMetric], bounds: bool, labels: Labels, scores: Scores, held: _Problem
) -> tuple[Floats, Floats]:
    """The values of several metrics, block by block; the highest that missing labels allow where bounds are wanted."""
    lists = len(held.offsets) - 1
    lower, upper = np.empty((len(group), lists)), np.empty((len(group) if bounds else 0, lists))

    def task(start: int, stop: int) -> None:
        if bounds:
            assert held.missing is not None
            for number, metric in enumerate(group):
                ends = bounds_of_lists(metric, labels, held.missing, scores, start, stop, held.rows)
                lower[number, start:stop], upper[number, start:stop] = ends
            return
        block = Lists(labels, scores, start, stop)
        for number, metric in enumerate(group):
            lower[number, start:stop] = metric.values(block)

    each_block(task, held.offsets, 0 if labels.codes is None else len(labels.seen))
    return lower, upper if bounds else lower


def _per_query(values: Floats, judgements: Supervision | None) -> Floats:
    return values if judgements is None else weighted_by_judge(values, judgements)


def _problem(metric: Metric, ranked: Ranked) -> _Problem:
    """The labels of the data, as lists of the alignment."""
    data = ranked.data
    if data.y is not None:
        missing = None
        if data.judged is not None or ranked.data_rows is not None:
            judged = np.ones(data.n_docs, bool) if data.judged is None else data.judged
            missing = ranked.spread(judged, 0) == 0
            missing = missing if missing.any() else None
        known = data.y if data.judged is None else np.where(data.judged, data.y, 0.0)
        values = ranked.spread(known, 0.0)
        return _Problem(values, missing, ranked.offsets, ranked.scores, ranked.score_offsets, ranked.rows, None, None)
    if data.judges is None:
        what = f"has {data.supervision}" if data.supervision else "has no labels"
        hint = "; kendall, spearman and zero_one judge by rankings" if data.supervision == "rankings" else ""
        hint = "; pd judges by preferences" if data.supervision == "preferences" else hint
        raise ValueError(f"{metric} judges by labels, and the data {what}{hint}")
    return _expanded(ranked, data.judges)


def _expanded(ranked: Ranked, judges: Judgements) -> _Problem:
    """One list a judgement: the same scores, judged by each label vector."""
    query = list_numbers(judges.offsets)
    documents, offsets = take_lists(ranked.offsets, query)
    labels = np.full(int(offsets[-1]), np.nan)
    sizes = ranked.data.sizes[query]
    starts = offsets_of(sizes)
    labels[np.repeat(offsets[:-1], sizes) + positions(starts)] = judges.labels
    missing = np.isnan(labels)
    taken, score_offsets = take_lists(ranked.score_offsets, query)
    rows = None
    if ranked.rows is not None:
        shift = offsets[:-1] - ranked.offsets[:-1][query]
        rows = ranked.rows[taken] + np.repeat(shift, np.diff(score_offsets))
    return _Problem(
        np.where(missing, 0.0, labels),
        missing if missing.any() else None,
        offsets,
        ranked.scores[taken],
        score_offsets,
        rows,
        documents,
        judges,
    )


def _without_missing(problem: _Problem) -> _Problem:
    """The lists without the documents that have no label."""
    assert problem.missing is not None
    keep = ~problem.missing
    kept = np.concatenate([[0], np.cumsum(keep)])
    ranked_keep = keep if problem.rows is None else keep[problem.rows]
    ranked_kept = np.concatenate([[0], np.cumsum(ranked_keep)])
    source = np.flatnonzero(keep) if problem.source is None else problem.source[keep]
    return _Problem(
        problem.values[keep],
        None,
        kept[problem.offsets],
        problem.scores[ranked_keep],
        ranked_kept[problem.score_offsets],
        None if problem.rows is None else kept[problem.rows[ranked_keep]],
        source,
        problem.judgements,
    )


def _labels(problem: _Problem, ranked: Ranked, metric: LabelMetric, columns: tuple[str, ...]) -> Labels:
    """The labels of a problem, with the columns that metrics use."""
    held = {name: _column(metric, name, ranked) for name in columns}
    if problem.source is not None:
        held = {name: column[problem.source] for name, column in held.items()}
    if problem.values is ranked.data.y:
        return _labels_of(ranked.data, held)
    return Labels(problem.values, problem.offsets, held, lambda row: _name_of_row(problem, ranked, row))


def _scores(problem: _Problem, ranked: Ranked, labels: Labels) -> Scores:
    """The scores of a problem with the places of their documents."""

    def where(row: int) -> str:
        return _name_of_row(problem, ranked, row if problem.rows is None else int(problem.rows[row]))

    places = labels.places if problem.rows is None else labels.places[problem.rows]
    if labels.rows is None:
        return Scores(problem.scores, places, problem.score_offsets, where)
    # By place: a tie is then sorted as it comes.
    order = labels.rows
    if problem.rows is not None:
        first = problem.offsets[:-1][list_numbers(problem.score_offsets)]
        order = np.argsort(first + places)
    return Scores(problem.scores[order], places[order], problem.score_offsets, lambda row: where(int(order[row])))


def _name_of_row(problem: _Problem, ranked: Ranked, row: int) -> str:
    return ranked.name_of_row(row if problem.source is None else int(problem.source[row]))


_known_labels: weakref.WeakKeyDictionary[RankingData, dict[tuple[str, ...], Labels]] = weakref.WeakKeyDictionary()


def _labels_of(data: RankingData, columns: dict[str, Floats]) -> Labels:
    """The labels of data that are plain grades; kept with the data, which does not change."""
    known = _known_labels.setdefault(data, {})
    labels = known.get(tuple(columns))
    if labels is None:
        assert data.y is not None
        alone = weakref.ref(data)

        def where(row: int) -> str:
            held = alone()
            return f"document {row}" if held is None else held.row_name(row)

        labels = known[tuple(columns)] = Labels(data.y, data.offsets, columns, where)
    return labels


def _column(metric: LabelMetric, name: str, ranked: Ranked) -> Floats:
    """A column of the data by its name; ``doc_weight`` is the weight of the documents."""
    data = ranked.data
    if name == "doc_weight" and name not in data.columns and data.doc_weight is not None:
        values: Any = data.doc_weight
    elif name in data.columns:
        values = data.columns[name]
    else:
        has = [*data.columns, *(["doc_weight"] if data.doc_weight is not None else [])]
        listed = f"its columns are {', '.join(has)}" if has else "it has no columns"
        raise ValueError(f"{metric}: the data has no column {name!r}: {listed}.{did_you_mean(name, has)}")
    return ranked.spread(as_column(metric, name, values, data.n_docs, data.row_name), 0.0)


# --- rankings and preferences -----------------------------------------------------------------------------------------


def _judgement_values(metric: JudgementMetric, ranked: Ranked) -> Floats:
    """Metrics of rankings or preferences; documents that only a run has are in none, and are left out."""
    data = ranked.data
    ranked.require_finite()
    held: Supervision | None = data.preferences if metric.supervision == "preferences" else data.rankings
    if held is None and isinstance(metric, PD) and (data.y is not None or data.judges is not None):
        return _pairs_of_grades(metric, ranked)
    if held is None:
        what = f"has {data.supervision}" if data.supervision else "has no supervision"
        raise ValueError(f"{metric} judges by {metric.supervision}, and the data {what}")
    scores = ranked.dense_scores if ranked.data_rows is None else ranked.dense_scores[ranked.data_rows]
    values = metric.judgement_values(scores, data.offsets, held)
    if len(ranked.missed):
        lost = np.isin(list_numbers(held.offsets), ranked.missed)
        values[lost] = metric.lowest(held)[lost]
    found = weighted_by_judge(values, held)
    found[held.counts == 0] = empty_value(getattr(metric, "empty", "skip"))
    return found


def _pairs_of_grades(metric: PD, ranked: Ranked) -> Floats:
    """Preferences that come from labels; a document without one is in no pair."""
    problem = _problem(metric, ranked)
    if problem.missing is not None:
        problem = _without_missing(problem)
    scores = ranked.dense_scores if problem.source is None else ranked.dense_scores[problem.source]
    if ranked.rows is not None:
        # Documents that are not ranked earn nothing: they come last, and the best of them at the very end.
        order = np.lexsort([np.where(np.isneginf(scores), -problem.values, 0.0), scores])
        held_scores, held_labels = scores[order], np.where(np.isneginf(scores), problem.values, 0.0)[order]
        steps = (held_scores[1:] > held_scores[:-1]) | (held_labels[1:] < held_labels[:-1])
        scores = np.empty(len(order))
        scores[order] = np.concatenate([[0], np.cumsum(steps)])[: len(order)]
    values = metric.label_values(scores, problem.values, problem.offsets)
    if len(ranked.missed):
        held = problem.judgements
        query = np.arange(len(values)) if held is None else list_numbers(held.offsets)
        lost = np.isin(query, ranked.missed)
        values[lost] = metric.label_lowest(problem.values, problem.offsets)[lost]
    return _per_query(values, problem.judgements)


# --- a user's metric --------------------------------------------------------------------------------------------------


def _custom_values(metric: Custom, ranked: Ranked, progress: bool | None) -> QueryValues:
    """One list after the other; documents that a run did not return stand at the bottom, tied."""
    data = ranked.data
    ranked.require_finite()
    scores = ranked.dense_scores
    values, errors = np.full(len(data), np.nan), np.zeros(len(data))
    missed = set(ranked.missed.tolist())
    with track(len(data), str(metric), progress) as advance:
        for query in range(len(data)):
            rows = slice(int(ranked.offsets[query]), int(ranked.offsets[query + 1]))
            total = weight = spread = 0.0
            for share, labels in _labels_for(metric, ranked, query):
                try:
                    lost = query in missed
                    value, error = (metric.worst(labels), 0.0) if lost else metric.at_scores(labels, scores[rows])
                except ValueError as wrong:
                    raise ValueError(f"query {data.query_ids[query]}: {wrong}") from wrong
                except Exception as wrong:
                    wrong.add_note(f"in {metric}, query {data.query_ids[query]}")
                    raise
                total, weight, spread = total + share * value, weight + share, spread + share * error
            if weight > 0:
                values[query], errors[query] = total / weight, spread / weight
            advance(1)
    return QueryValues(values, error=errors if errors.any() else None)


def _labels_for(metric: Custom, ranked: Ranked, query: int) -> Iterable[tuple[float, Any]]:
    """The judgements of a query with their weights, each in the form that a call of the metric takes."""
    data = ranked.data
    size = int(ranked.offsets[query + 1] - ranked.offsets[query])
    if metric.supervision in ("grades", "binary") and data.y is not None:
        labels = np.full(size, np.nan)
        known = data.y[data.rows(query)]
        labels[: len(known)] = known
        yield 1.0, np.ma.masked_invalid(labels)
        return
    supervisions: dict[str, Supervision | None] = {"rankings": data.rankings, "preferences": data.preferences}
    held = supervisions.get(metric.supervision, data.judges)
    if held is None:
        what = f"has {data.supervision}" if data.supervision else "has no supervision"
        raise ValueError(f"{metric} judges by {metric.supervision}, and the data {what}")
    if isinstance(held, Judgements):
        for row, share in zip(held.matrix(query), held.probabilities(query), strict=True):
            labels = np.full(size, np.nan)
            labels[: len(row)] = row
            yield float(share), np.ma.masked_invalid(labels)
    elif isinstance(held, Rankings):
        for number, order in zip(held.numbers(query), held.orders(query), strict=True):
            if len(order) != size or any(isinstance(place, tuple) for place in order):
                raise ValueError(
                    f"{metric}: query {data.query_ids[query]}: expected orders of all {size} documents, got {order}"
                )
            yield float(held.weight[number]), order
    elif isinstance(held, Preferences):
        for number in held.numbers(query):
            matrix = np.zeros((size, size))
            better, worse, weight = held.judgement(number)
            np.add.at(matrix, (better, worse), weight)
            yield float(held.weight[number]), matrix
