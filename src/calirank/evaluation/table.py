"""What an evaluation found: for each metric a value a query, its mean, and how sure the mean is."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calirank.data.ragged import Floats
from calirank.evaluation.rendering import aligned, counted, deliver, markdown_table, plain
from calirank.evaluation.statistics import Interval, Seed, bootstrap_interval, mean, mean_interval
from calirank.metrics import Metric, metric
from calirank.names import did_you_mean

Path: TypeAlias = "str | os.PathLike[str]"


@dataclass(frozen=True, eq=False)
class Values:
    """One metric: its value for every query, NaN where the metric skips it, and means over the others."""

    #: The name as it was given.
    name: str
    metric: Metric
    per_query: Floats
    query_weight: Floats | None = None
    #: The values that missing labels allow, with unjudged="bounds"; then ``per_query`` is the lower one.
    lower: Floats | None = None
    upper: Floats | None = None
    #: Standard errors of values that were sampled: a user's metric at many ties.
    sampling_error: Floats | None = None

    @cached_property
    def mean(self) -> float:
        """The mean over the queries; NaN when there is none."""
        return mean(self.per_query)

    @cached_property
    def weighted_mean(self) -> float:
        """The mean weighted by the query weights of the data; the plain mean where it has none."""
        return mean(self.per_query, self.query_weight)

    @property
    def n(self) -> int:
        """How many queries have a value."""
        return int(np.count_nonzero(~np.isnan(self.per_query)))

    @property
    def bounds(self) -> tuple[float, float]:
        """The mean of the lower and of the upper values; both are the mean where no label is missing."""
        return (self.mean, self.mean) if self.upper is None else (mean(self.per_query), mean(self.upper))

    @cached_property
    def interval(self) -> Interval:
        """The 95 % interval of the mean, by Student's t."""
        return self.interval_at(0.95)

    def interval_at(self, level: float, *, weighted: bool = False) -> Interval:
        """The interval of the mean (or of the weighted mean) at another level."""
        return mean_interval(self.per_query, level, self.query_weight if weighted else None)

    def bootstrap(
        self,
        *,
        seed: Seed,
        resamples: int = 1000,
        level: float = 0.95,
        weighted: bool = False,
        progress: bool | None = None,
    ) -> Interval:
        """The interval of the mean over resampled queries."""
        weights = self.query_weight if weighted else None
        return bootstrap_interval(
            self.per_query, seed=seed, resamples=resamples, level=level, weights=weights, progress=progress
        )

    def __repr__(self) -> str:
        return f"Values({self.name}: mean {self.mean:.4f} over {counted(self.n, 'query', 'queries')})"

    def _only(self, chosen: NDArray[np.bool_]) -> Values:
        def cut(array: Floats | None) -> Any:
            return None if array is None else array[chosen]

        return Values(
            self.name,
            self.metric,
            self.per_query[chosen],
            cut(self.query_weight),
            cut(self.lower),
            cut(self.upper),
            cut(self.sampling_error),
        )


@dataclass(frozen=True, eq=False)
class Table(Mapping[str, Values]):
    """The values of the metrics: ``table["ndcg@10"].mean``; a metric is found by the name given or by an equal one."""

    values_of: dict[str, Values]
    query_ids: NDArray[Any]
    #: Queries that the run does not have: each has the metric's lowest value.
    missed: tuple[Any, ...] = ()
    #: Queries of the run that the data does not have: they are left out.
    unknown: tuple[Any, ...] = ()
    #: Whether the run's documents are all unknown to the data.
    strangers: bool = False
    #: The same for each segment of the queries, where ``by`` was given.
    segments: dict[Any, Table] = field(default_factory=dict)
    by: str = ""

    def __getitem__(self, key: str | Metric) -> Values:
        if isinstance(key, str) and key in self.values_of:
            return self.values_of[key]
        try:
            wanted: Metric | None = metric(key)
        except (ValueError, TypeError):
            wanted = None
        for values in self.values_of.values():
            if values.metric == wanted:
                return values
        hint = did_you_mean(str(key), self.values_of)
        raise KeyError(f"no metric {str(key)!r} in this table.{hint} It has: {', '.join(self)}")

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]  # anything may be asked for
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_of)

    def __len__(self) -> int:
        return len(self.values_of)

    def only(self, chosen: NDArray[np.bool_]) -> Table:
        """The table of some of the queries."""
        return Table({name: values._only(chosen) for name, values in self.values_of.items()}, self.query_ids[chosen])

    # what it looks like

    def records(self) -> list[dict[str, Any]]:
        """One record a metric, and one a metric and segment, with the 95 % interval."""
        found = []
        tables: list[tuple[Any, Table]] = [(None, self), *self.segments.items()]
        for segment, table in tables:
            for name, values in table.items():
                low, high, _ = values.interval
                record: dict[str, Any] = {"metric": name}
                if self.segments:
                    record["segment"] = "all" if segment is None else plain(segment)
                record |= {"queries": values.n, "mean": values.mean, "low": low, "high": high}
                if values.query_weight is not None:
                    record["weighted_mean"] = values.weighted_mean
                if values.upper is not None:
                    record["lower_bound"], record["upper_bound"] = values.bounds
                found.append(record)
        return found

    def rows(self, decimals: int = 4) -> Iterator[tuple[str, ...]]:
        """The records as text, the headings first."""
        records = self.records()
        headings = list(dict.fromkeys(name for record in records for name in record))
        yield tuple(_HEADING.get(name, name.replace("_", " ")) for name in headings)
        for record in records:
            yield tuple(_cell(record.get(name), decimals) for name in headings)

    def notes(self) -> Iterator[str]:
        """What a reader of the numbers should know."""
        if self.missed:
            missed = counted(len(self.missed), "query is not in the run and has", "queries are not in the run and have")
            yield f"{missed} the lowest value: {_some(self.missed)}"
        if self.strangers:
            yield "none of the returned documents has a judgement: do the document ids match?"
        if self.unknown:
            unknown = counted(len(self.unknown), "query of the run is", "queries of the run are")
            yield f"{unknown} not in the data and left out: {_some(self.unknown)}"
        for name, values in self.items():
            if values.n < len(self.query_ids):
                skipped = len(self.query_ids) - values.n
                yield f"{name} skips {skipped} of {len(self.query_ids)} queries, where it is undefined"
            if values.sampling_error is not None:
                worst = float(values.sampling_error.max())
                yield f"{name} was sampled at ties: standard error up to {worst:.2g} a query"

    def __str__(self) -> str:
        return "\n".join([aligned(list(self.rows())), *self.notes()])

    def __repr__(self) -> str:
        means = ", ".join(f"{name} {values.mean:.4f}" for name, values in self.items())
        queries = counted(len(self.query_ids), "query", "queries")
        return f"Table({queries}: {means})"

    def to_markdown(self, path: Path | None = None, *, decimals: int = 4) -> str:
        """A Markdown table, also written to a file where one is named."""
        return deliver(markdown_table(list(self.rows(decimals))), path)

    def to_csv(self, path: Path | None = None, *, per_query: bool = False) -> str:
        """Comma-separated values: one line a metric, or with ``per_query`` one a query and a column a metric."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if per_query:
            writer.writerow(["query", *self])
            columns = [values.per_query.tolist() for values in self.values()]
            for query, *numbers in zip(self.query_ids.tolist(), *columns, strict=True):
                writer.writerow([query, *("" if math.isnan(number) else repr(number) for number in numbers)])
        else:
            records = self.records()
            headings = list(dict.fromkeys(name for record in records for name in record))
            writer.writerow(headings)
            writer.writerows([_number(record.get(name)) for name in headings] for record in records)
        return deliver(text.getvalue(), path)

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Everything as plain numbers and text; NaN is None."""
        found: dict[str, Any] = {
            "queries": len(self.query_ids),
            "metrics": [{name: _json(value) for name, value in record.items()} for record in self.records()],
            "missed": [plain(query) for query in self.missed],
            "unknown": [plain(query) for query in self.unknown],
        }
        if per_query:
            found["query_ids"] = list(map(plain, self.query_ids))
            found["per_query"] = {name: list(map(_json, values.per_query.tolist())) for name, values in self.items()}
        return found

    def to_json(self, path: Path | None = None, *, per_query: bool = False) -> str:
        """JSON of :meth:`to_dict`."""
        return deliver(json.dumps(self.to_dict(per_query=per_query), ensure_ascii=False, indent=1) + "\n", path)


_HEADING = {"low": "95 % from", "high": "to"}


def _cell(value: Any, decimals: int) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def _number(value: Any) -> Any:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value


def _json(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _some(ids: tuple[Any, ...]) -> str:
    return ", ".join(map(str, ids[:5])) + (", …" if len(ids) > 5 else "")
