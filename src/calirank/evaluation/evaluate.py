"""``evaluate``: many metrics of one ranking, for every query of the data."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.data.describe import number_text
from calirank.data.ragged import list_numbers
from calirank.data.ranking_data import RankingData
from calirank.evaluation.alignment import align
from calirank.evaluation.table import Table, Values
from calirank.evaluation.values import query_values
from calirank.metrics import Metric, metric
from calirank.names import did_you_mean

AnyMetric: TypeAlias = str | Metric | Callable[[Any, tuple[int, ...]], Any]

#: As many values of a number are segments by themselves; more are put into four ranges.
_DISTINCT = 12


def evaluate(
    scores: Any,
    data: RankingData,
    metrics: AnyMetric | Sequence[AnyMetric],
    *,
    by: str | ArrayLike | None = None,
    progress: bool | None = None,
) -> Table:
    """Judge a ranking by several metrics, exactly under ties.

    ``scores`` has one number a document, in the order of the rows that the data was made from; or it is a ranker, or a
    :class:`~calirank.Run`. ``by`` asks for the same by segments of queries: an array with one entry a query, the name
    of a column that is constant in each query, or "length"; many different numbers are put into four ranges.

    >>> import calirank as cr
    >>> data = cr.RankingData(y=[2, 0, 1, 0, 1], sizes=[3, 2])
    >>> table = cr.evaluate([0.9, 0.1, 0.5, 0.5, 0.5], data, ["ndcg", "rr"])
    >>> table["rr"].per_query.tolist(), round(table["ndcg"].mean, 4)
    ([1.0, 0.75], 0.9077)
    """
    if not isinstance(metrics, (str, Metric, Sequence)) and not callable(metrics):
        raise TypeError(f"metrics: expected a name, a metric, a function, or a list of these; got {metrics!r}")
    given = list(metrics) if isinstance(metrics, Sequence) and not isinstance(metrics, str) else [metrics]
    if not given:
        raise ValueError("metrics: expected at least one")
    built = [metric(one) for one in given]
    names = [one if isinstance(one, str) else str(found) for one, found in zip(given, built, strict=True)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"metrics: {repeated[0]!r} is named twice; cr.metric(function, name=…) names a function")
    ranked = align(scores, data)
    table = Table(
        {
            name: Values(name, one, found.value, data.query_weight, found.lower, found.upper, found.error)
            for name, one, found in zip(names, built, query_values(built, ranked, progress), strict=True)
        },
        data.query_ids,
        tuple(data.query_ids[ranked.missed].tolist()),
        ranked.unknown,
        ranked.strangers,
    )
    if by is None:
        return table
    labels = segments_of(by, data)
    segments = {label: table.only(chosen) for label, chosen in labels.items()}
    return dataclasses.replace(table, segments=segments, by=by if isinstance(by, str) else "segment")


def segments_of(by: str | ArrayLike, data: RankingData) -> dict[Any, NDArray[np.bool_]]:
    """The queries of each segment.

    >>> data = RankingData(y=[0, 0, 0, 0], sizes=[1, 1, 2])
    >>> {length: chosen.tolist() for length, chosen in segments_of("length", data).items()}
    {1: [True, True, False], 2: [False, False, True]}
    """
    if isinstance(by, str):
        values = data.sizes if by == "length" and by not in data.columns else _query_column(by, data)
    else:
        values = np.asarray(by)
        if values.shape != (len(data),):
            raise ValueError(f"by: expected one entry for each of {len(data)} queries, got shape {values.shape}")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(f"by: query {data.query_ids[int(np.argmax(np.isnan(values)))]} has NaN, which is no segment")
    if values.dtype.kind == "O":
        values = np.array([str(value) for value in values.tolist()])
    distinct = np.unique(values)
    if values.dtype.kind not in "iuf" or len(distinct) <= _DISTINCT:
        return {value.item(): values == value for value in distinct}
    ends = np.unique(np.quantile(values, [0.25, 0.5, 0.75, 1], method="inverted_cdf"))
    segments = {}
    for low, high in itertools.pairwise([None, *ends.tolist()]):
        inside = (values <= high) if low is None else (values > low) & (values <= high)
        held = values[inside]
        first, last = number_text(float(held.min())), number_text(float(held.max()))
        segments[first if first == last else f"{first} to {last}"] = inside
    return segments


def _query_column(name: str, data: RankingData) -> NDArray[Any]:
    """A column with one value a query."""
    if name not in data.columns:
        has = [*data.columns, "length"]
        raise ValueError(f"by: the data has no column {name!r}; it can be {', '.join(has)}.{did_you_mean(name, has)}")
    column = data.columns[name]
    starts = data.offsets[:-1]
    values = column[starts]
    others = values[list_numbers(data.offsets)]
    differs = np.flatnonzero((column != others) & ~(_is_nan(column) & _is_nan(others)))
    if len(differs):
        raise ValueError(
            f"by: the column {name!r} is not the same for all documents of a query: it is {column[differs[0]]} "
            f"for {data.row_name(int(differs[0]))}"
        )
    return values


def _is_nan(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)
