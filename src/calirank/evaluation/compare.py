"""``compare``: several rankings of the same queries, with paired tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calirank.data.ranking_data import RankingData
from calirank.evaluation.comparison import Comparison, Test, compare_values
from calirank.evaluation.evaluate import AnyMetric, evaluate
from calirank.evaluation.rendering import notes_of_all
from calirank.evaluation.statistics import Floats, Seed, over_folds


def compare(
    runs: Mapping[str, Any],
    data: RankingData | Sequence[RankingData],
    metrics: AnyMetric | Sequence[AnyMetric],
    *,
    baseline: str | None = None,
    test: Test = "t",
    alpha: float = 0.05,
    seed: Seed = 0,
    resamples: int = 10_000,
    weighted: bool = False,
    progress: bool | None = None,
) -> Comparison:
    """Compare rankings of the same data under several metrics.

    ``runs`` maps names to what :func:`~calirank.evaluate` takes: scores, a ranker, a run. A list of these are rankings
    of several seeds, which are averaged query by query. Where ``data`` is a list, it has the folds, and each run is a
    list with an entry a fold: their queries are different queries, put one after the other.

    Every two runs are compared, or each with the ``baseline``, by a paired t test and a paired randomisation test with
    this seed; Holm's correction is over the pairs of one metric, and decides with ``test`` and ``alpha`` about the
    marks. With ``weighted`` the query weights of the data count.

    >>> import calirank as cr
    >>> data = cr.RankingData(y=[1, 0, 0, 1, 1, 0], sizes=[2, 2, 2])
    >>> found = cr.compare({"ours": [2, 1, 1, 2, 2, 1], "theirs": [1, 2, 1, 2, 2, 1]}, data, "ap")
    >>> found.pair("ap", "ours", "theirs").difference
    0.16666666666666666
    """
    if not isinstance(runs, Mapping) or not runs:
        raise TypeError('runs: expected a mapping of names to rankings, such as {"ours": scores, "theirs": other}')
    folds = [data] if isinstance(data, RankingData) else list(data)
    if not folds:
        raise ValueError("data: expected at least one fold")
    values: dict[str, dict[str, Floats]] = {}
    notes: dict[str, list[str]] = {}
    for name, run in runs.items():
        if not isinstance(name, str):
            raise TypeError(f"runs: the name of a run is text; got {name!r}")
        entries = [run] if isinstance(data, RankingData) else run
        if isinstance(entries, (str, bytes)) or not hasattr(entries, "__len__") or len(entries) != len(folds):
            raise ValueError(f"run {name!r}: expected a list with an entry for each of {len(folds)} folds")
        where = [f", fold {number}" if len(folds) > 1 else "" for number in range(len(folds))]
        parts = [
            _of_fold(f"run {name!r}{place}", entry, fold, metrics, progress, notes.setdefault(name, []))
            for entry, fold, place in zip(entries, folds, where, strict=True)
        ]
        try:
            values[name] = {metric: over_folds([part[metric] for part in parts]) for metric in parts[0]}
        except ValueError as error:
            raise ValueError(f"run {name!r}: {error}") from None
    weights = None
    if weighted and any(fold.query_weight is not None for fold in folds):
        weights = np.concatenate([np.ones(len(f)) if f.query_weight is None else f.query_weight for f in folds])
    found = compare_values(
        values,
        baseline=baseline,
        alpha=alpha,
        test=test,
        seed=seed,
        resamples=resamples,
        weights=weights,
        progress=progress,
    )
    return dataclasses.replace(found, remarks=tuple(notes_of_all(notes)))


def _of_fold(
    name: str,
    entry: Any,
    data: RankingData,
    metrics: AnyMetric | Sequence[AnyMetric],
    progress: bool | None,
    notes: list[str],
) -> dict[str, Floats]:
    """A matrix (seeds, queries) for each metric; what is to be said of them is added to the notes."""
    tables = []
    seeds = _seeds(entry)
    for number, scores in enumerate(seeds):
        try:
            tables.append(evaluate(scores, data, metrics, progress=progress))
        except ValueError as error:
            which = f", seed {number}" if len(seeds) > 1 else ""
            raise ValueError(f"{name}{which}: {error}") from None
        notes += [note for note in tables[-1].notes() if note not in notes]
    return {metric: np.stack([table[metric].per_query for table in tables]) for metric in tables[0]}


def _seeds(entry: Any) -> list[Any]:
    """The rankings of several seeds, or the one ranking: a row of numbers is one, a list of rows several."""
    if isinstance(entry, np.ndarray):
        return list(entry) if entry.ndim == 2 else [entry]
    if isinstance(entry, (list, tuple)) and entry and not isinstance(entry[0], (int, float, np.number)):
        return list(entry)
    return [entry]
