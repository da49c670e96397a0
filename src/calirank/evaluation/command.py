"""What ``calirank evaluate`` does: rankings from score files, columns and TREC runs, judged and reported.

A score file has one number a line, for each document in the order of the data's rows. Its numbers are read as Python
reads a float; blank lines at its end are passed over, and no others.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calirank.data._files import Source, is_path, name_of, open_bytes, without_compression_suffix
from calirank.data.ragged import Floats
from calirank.data.ranking_data import RankingData
from calirank.data.trec import Run, read_run
from calirank.evaluation.comparison import Comparison, Test, compare_values
from calirank.evaluation.evaluate import evaluate
from calirank.evaluation.rendering import aligned, markdown_table, notes_of_all, plain
from calirank.evaluation.statistics import Interval, mean
from calirank.evaluation.table import Table, Values
from calirank.metrics import LabelMetric, Metric, metric
from calirank.metrics.sums import parts_of
from calirank.names import did_you_mean

Rows: TypeAlias = list[tuple[str, ...]]

#: What is computed where no metric is named, by the supervision of the data.
_DEFAULTS = {"rankings": ["kendall"], "preferences": ["pd"]}
_DEFAULT = ["ndcg@10", "ndcg", "precision@10", "rr", "ap"]


# --- metrics ---------------------------------------------------------------------------------------------------------


def split_names(text: str) -> list[str]:
    """Names with commas between them; a comma inside brackets or quotes belongs to its name.

    >>> split_names("err(max_grade=2, empty=skip)@10, 0.7*ndcg@10 + 0.3*dcg(gain=[0, 1, 5]),ap")
    ['err(max_grade=2, empty=skip)@10', '0.7*ndcg@10 + 0.3*dcg(gain=[0, 1, 5])', 'ap']
    """
    names, depth, quote = [""], 0, ""
    for mark in text:
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "\"'":
            quote = mark
        elif mark in "([":
            depth += 1
        elif mark in ")]":
            depth -= 1
        elif mark == "," and depth <= 0:
            names.append("")
            continue
        names[-1] += mark
    return [name.strip() for name in names if name.strip()]


def metrics_named(texts: Sequence[str], like: str | None = None) -> dict[str, Metric]:
    """The metrics of these texts by the names that tables show: as written, or canonical under a convention.

    >>> {name: str(found) for name, found in metrics_named(["NDCG@5,ap"]).items()}
    {'NDCG@5': 'ndcg@5', 'ap': 'ap'}
    """
    names = [name for text in texts for name in split_names(text)]
    if not names:
        raise ValueError("--metrics: expected names such as ndcg@10,ap; got none")
    found: dict[str, Metric] = {}
    for name in names:
        one = metric(name) if like is None else metric(name, like=like)
        shown = name if like is None else str(one)
        if shown in found:
            raise ValueError(f"--metrics: {shown!r} is named twice")
        found[shown] = one
    return found


def default_metrics(data: RankingData, like: str | None = None) -> dict[str, Metric]:
    """The metrics that are computed where none is named: those of them that the other library has."""
    names = _DEFAULTS.get(data.supervision or "", _DEFAULT)
    if like is None:
        return metrics_named(names)
    found: dict[str, Metric] = {}
    for name in names:
        with suppress(ValueError):
            found |= metrics_named([name], like)
    return found or metrics_named(names[:1], like)


def columns_of(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """The columns of the data that metrics use, with the name of the metric.

    >>> columns_of(metrics_named(["ndcg@10,dcg(gain=revenue)@5"]))
    {'revenue': 'dcg(gain=revenue)@5'}
    """
    return {
        column: name
        for name, one in metrics.items()
        for _, part in parts_of(one)[0]
        if isinstance(part, LabelMetric)
        for column in part.columns
    }


# --- the data --------------------------------------------------------------------------------------------------------


def table_options(known: Collection[str], options: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    """Options for reading the data: of a table only the columns that are needed, and no features.

    >>> table_options(["y", "columns", "features", "categorical", "doc_weight"], {"y": "grade"}, ["price"])
    {'y': 'grade', 'features': [], 'categorical': [], 'columns': ['price']}
    """
    chosen = dict(options)
    if not {"columns", "features", "categorical"} <= set(known):
        return chosen
    for role in ("features", "categorical"):
        chosen.setdefault(role, [])
    given = chosen.get("columns", [])
    wanted = list(columns)
    if "doc_weight" in wanted:  # a metric takes the weights of the documents by this name
        wanted.remove("doc_weight")
        chosen.setdefault("doc_weight", "doc_weight")
    if wanted and isinstance(given, list):
        chosen["columns"] = list(dict.fromkeys([*given, *wanted]))
    return chosen


@contextmanager
def naming_columns(asked: Mapping[str, str]) -> Iterator[None]:
    """An error about a column says who asked for it: an option of the command, or a metric.

    >>> with naming_columns({"x": "--by"}):
    ...     raise ValueError("columns: a.parquet has no column 'x'.")
    Traceback (most recent call last):
    ValueError: --by: a.parquet has no column 'x'.
    """
    try:
        yield
    except ValueError as error:
        text = str(error)
        who = next((who for column, who in asked.items() if f" has no column {column!r}" in text), None)
        if who is None or not text.startswith("columns: "):
            raise
        raise ValueError(f"{who}: {text.removeprefix('columns: ')}") from None


# --- the rankings ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ranking:
    """One ranking of the data: scores of a file or a column, or a run. ``where`` is how messages call it."""

    where: str
    scores: NDArray[Any] | Run
    #: Names that it can have, the best first; the others are for when another ranking has the same.
    names: tuple[str, ...]


def named_file(text: str) -> tuple[str | None, str]:
    """The name, where it has one, and the path of ``[NAME=]FILE``; a file that is called like the whole goes before.

    >>> named_file("bm25=runs/a.txt"), named_file("runs/k1=0.9/a.txt"), named_file("a.txt")
    (('bm25', 'runs/a.txt'), (None, 'runs/k1=0.9/a.txt'), (None, 'a.txt'))
    """
    name, equals, path = text.partition("=")
    if not equals or not name or not path or "/" in name or os.sep in name or os.path.exists(text):
        return None, text
    return name, path


def file_names(path: str) -> tuple[str, ...]:
    """Names for the ranking that a file holds: its stem, its name, its name with more and more of its folders.

    >>> file_names("runs/bm25/test.txt.gz")
    ('test', 'test.txt.gz', 'bm25/test.txt.gz', 'runs/bm25/test.txt.gz')
    """
    if path == "-":
        return ("stdin",)
    parts = PurePath(path).parts
    stem = os.path.splitext(os.path.basename(without_compression_suffix(path)))[0]
    return (stem, *(str(PurePath(*parts[first:])) for first in reversed(range(len(parts)))))


def distinct_names(rankings: Sequence[Ranking]) -> list[str]:
    """A name for each ranking: the first of its names that tells it from the others.

    >>> distinct_names([Ranking(path, np.zeros(1), file_names(path)) for path in ("x/a.txt", "y/a.txt", "b.txt")])
    ['x/a.txt', 'y/a.txt', 'b']
    """
    place = [0] * len(rankings)
    while True:
        names = [one.names[at] for one, at in zip(rankings, place, strict=True)]
        shared = next((name for name in names if names.count(name) > 1), None)
        if shared is None:
            return names
        group = [number for number, name in enumerate(names) if name == shared]
        others = [number for number in group if place[number] + 1 < len(rankings[number].names)]
        if not others:
            first, second = (rankings[number].where for number in group[:2])
            what = f"{first} is given twice" if first == second else f"{first} and {second} are both called {shared!r}"
            raise ValueError(f"{what}; NAME=FILE gives a ranking another name")
        for number in others:
            place[number] += 1


def refuse_same_files(paths: Sequence[str], rankings: Sequence[str]) -> None:
    """Refuse a ranking that is the data itself, and standard input for more than one thing."""
    if [*paths, *rankings].count("-") > 1:
        raise ValueError("standard input is asked for twice, and can be read once")
    for ranking in rankings:
        for path in paths:
            if (
                is_path(ranking)
                and os.path.exists(ranking)
                and os.path.exists(path)
                and os.path.samefile(ranking, path)
            ):
                raise ValueError(f"{ranking}: expected the scores of a ranking, got the data itself")


def rankings_of(
    data: RankingData, where: str, scores: Sequence[str] = (), columns: Sequence[str] = (), runs: Sequence[str] = ()
) -> list[Ranking]:
    """All rankings that are to be judged; ``where`` is how messages call the data."""
    if runs and data.doc_ids is None:
        raise ValueError(
            f"--run: a run names its documents, and {where} has no document ids to match them with; give scores of its "
            f"{data.n_docs} documents by --scores, or the column of the ids of a table by --doc-id"
        )
    return [
        *(ranking_of_scores(text, data) for text in scores),
        *(ranking_of_column(column, data) for column in columns),
        *(ranking_of_run(text) for text in runs),
    ]


def refuse_overwriting(out: str, inputs: Sequence[str]) -> None:
    """Refuse to write over a file that is read."""
    for path in inputs:
        if path != "-" and os.path.exists(path) and os.path.exists(out) and os.path.samefile(path, out):
            raise ValueError(f"--out: {out} is read by this command; expected another file")


def ranking_of_scores(text: str, data: RankingData) -> Ranking:
    """The ranking of ``[NAME=]FILE``, a file with a score a line."""
    name, path = named_file(text)
    return Ranking(name_of(path), read_scores(path, data), file_names(path) if name is None else (name,))


def ranking_of_run(text: str) -> Ranking:
    """The ranking of ``[NAME=]FILE``, a TREC run; without a name it is called by its tag."""
    name, path = named_file(text)
    run = read_run(path)
    return Ranking(name_of(path), run, (run.name, *file_names(path)) if name is None else (name,))


def ranking_of_column(column: str, data: RankingData) -> Ranking:
    """The ranking by a column of the data, or by a feature: its name, or its number as LETOR text counts."""
    if column in data.columns:
        values = data.columns[column]
    else:
        features = [data.feature_name(feature) for feature in range(data.n_features)]
        if column not in features:
            names = [*data.columns, *(data.feature_names or ())]
            has = f"its columns are {', '.join(names[:20])}{', …' if len(names) > 20 else ''}" if names else ""
            if data.n_features and not data.feature_names:
                has = f"its features are {features[0]} to {features[-1]}"
            raise ValueError(f"--score-column: the data has no column {column!r}; {has}.{did_you_mean(column, names)}")
        place = features.index(column)
        values = data.X[:, [place]]
        values = (values if isinstance(values, np.ndarray) else values.toarray())[:, 0]
    where = f"column {column!r}"
    if values.dtype.kind not in "fiub":
        raise ValueError(f"--score-column: {where} does not hold numbers")
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"--score-column: {where}: expected a finite number, got {values[row]} for {data.row_name(row)}"
        )
    values = data.in_caller_order(values)  # as scores are given: in the order of the file's rows
    called = column if column in data.columns or data.feature_names else f"feature {column}"
    return Ranking(where, values, (called, where))


def read_scores(source: Source, data: RankingData) -> Floats:
    """The numbers of a score file, one for each document of the data in the order of its file.

    >>> data = RankingData(y=[0, 1], sizes=[2])
    >>> read_scores(io.BytesIO(b"0.5\\n-2e3\\n"), data).tolist()
    [0.5, -2000.0]
    >>> read_scores(io.BytesIO(b"0.5\\nnan\\n"), data)
    Traceback (most recent call last):
    ValueError: <stream>:2: expected a finite number, got 'nan' (query 0, document 1)
    """
    name = name_of(source)
    with open_bytes(source) as stream:
        text = stream.read().removeprefix(codecs.BOM_UTF8).rstrip()
    if not text:
        raise ValueError(f"{name}: expected a score for each of {data.n_docs} documents, got an empty file")
    lines = text.split(b"\n")
    try:
        values = np.fromiter(map(float, lines), np.float64, len(lines))
    except ValueError:
        _refuse_line(name, lines, data)
    if b"_" in text or not np.isfinite(values).all():  # Python takes 1_000 for a number
        _refuse_line(name, lines, data)
    if len(values) != data.n_docs:
        missing = f"; the first without one is {_row_of_line(len(values), data)}" if len(values) < data.n_docs else ""
        raise ValueError(f"{name}: expected a score for each of {data.n_docs} documents, got {len(values)}{missing}")
    return values


def _refuse_line(name: str, lines: Sequence[bytes], data: RankingData) -> NoReturn:
    """Name the first line that is no finite number."""
    for number, line in enumerate(lines):
        with_value = _number(line)
        if with_value is not None and math.isfinite(with_value):
            continue
        field = line.strip().decode("utf-8", "replace")
        shown = repr(field if len(field) <= 60 else f"{field[:60]}…") if field else "a blank line"
        what = "a number" if with_value is None else "a finite number"
        hint = "; a TREC run is given by --run" if len(line.split()) == 6 else ""
        place = f" ({_row_of_line(number, data)})" if number < data.n_docs else ""
        raise ValueError(f"{name}:{number + 1}: expected {what}, got {shown}{place}{hint}")
    raise AssertionError("some line was no finite number")


def _number(line: bytes) -> float | None:
    try:
        return None if b"_" in line else float(line)
    except ValueError:
        return None


def _row_of_line(line: int, data: RankingData) -> str:
    """The document whose score stands in this line (from 0), in words."""
    if data.source_rows is not None:
        line = int(np.argsort(data.source_rows, kind="stable")[line])
    return data.row_name(line)


# --- judging ---------------------------------------------------------------------------------------------------------


def judge(
    rankings: Sequence[Ranking], data: RankingData, where: str, metrics: Mapping[str, Metric], by: str | None
) -> dict[str, Table]:
    """The table of each ranking, by its name; ``where`` is how messages call the data."""
    names = distinct_names(rankings)
    tables = {}
    for name, one in zip(names, rankings, strict=True):
        try:
            tables[name] = evaluate(one.scores, data, list(metrics), by=by)
        except ValueError as error:
            text = str(error)
            if text.startswith("by: "):
                raise
            if text.startswith("the run "):
                raise ValueError(f"{one.where} {text.removeprefix('the run ')}") from None
            raise ValueError(f"{where}: {text}") from None
    return tables


@dataclass(frozen=True, eq=False)
class Report:
    """What was found, and how it is shown: as tables, Markdown, CSV or JSON, or query by query."""

    where: str
    data: RankingData
    tables: Mapping[str, Table]
    #: The rankings side by side, where there are several.
    comparison: Comparison | None
    #: The level of intervals; the resamples of the bootstrap, 0 for Student's t; whether query weights count.
    level: float
    bootstrap: int
    seed: int
    weighted: bool

    def interval(self, values: Values) -> Interval:
        """The interval of the mean."""
        if not self.bootstrap:
            return values.interval_at(self.level, weighted=self.weighted)
        return values.bootstrap(seed=self.seed, resamples=self.bootstrap, level=self.level, weighted=self.weighted)

    def mean(self, values: Values) -> float:
        """The mean, weighted where query weights count."""
        return values.weighted_mean if self.weighted else values.mean

    def record(self, values: Values) -> dict[str, Any]:
        """The mean of a metric and what belongs to it."""
        low, high, _ = self.interval(values)
        found: dict[str, Any] = {"metric": values.name, "queries": values.n, self.mean_name: self.mean(values)}
        found |= {"low": low, "high": high}
        if values.upper is not None:
            upper = mean(values.upper, values.query_weight if self.weighted else None)
            found |= {"lower_bound": self.mean(values), "upper_bound": upper}
        return found

    @property
    def mean_name(self) -> str:
        """What records call the mean."""
        return "weighted_mean" if self.weighted else "mean"

    @property
    def by(self) -> str:
        """What the segments are of; nothing where there are none."""
        return next(iter(self.tables.values())).by

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics."""
        return list(next(iter(self.tables.values())))

    # --- tables ------------------------------------------------------------------------------------------------------

    def caption(self) -> str:
        """What was judged, in a line."""
        first, *others = self.tables
        what = f"{len(self.tables)} rankings" if others else first
        queries = f"{len(self.data):,} {'query' if len(self.data) == 1 else 'queries'}"
        weighted = "; means weighted by query" if self.weighted else ""
        return f"{what} on {self.where}: {queries}, {self.data.n_docs:,} documents{weighted}"

    def sections(self) -> Iterator[Rows]:
        """The tables as text, headings first: all but the comparison."""
        level = f"{100 * self.level:.6g} % interval{' (bootstrap)' if self.bootstrap else ''}"
        if self.comparison is None:
            (table,) = self.tables.values()
            yield self._summary(("metric", *table), [self.record(values) for values in table.values()], level)
        elif self.bootstrap:
            rows: Rows = [(level, *self.metrics)]
            for name, table in self.tables.items():
                rows.append((name, *(_span(*self.interval(values)[:2]) for values in table.values())))
            yield rows
        if self.by:
            for name in self.metrics:
                yield self._by_segment(name, level)

    def _by_segment(self, name: str, level: str) -> Rows:
        """One metric: a row a segment, and where there are several rankings a column a ranking."""
        parts = [_parts(table) for table in self.tables.values()]
        segments = [str(segment) for segment, _ in parts[0]]
        heading = f"{name} by {self.by}"
        if len(parts) == 1:
            return self._summary((heading, *segments), [self.record(part[name]) for _, part in parts[0]], level)
        rows: Rows = [(heading, "queries", *self.tables)]
        for segment, *tables in zip(segments, *([part for _, part in held] for held in parts), strict=True):
            means = [self.mean(table[name]) for table in tables]
            rows.append((segment, f"{tables[0][name].n:,}", *map(_decimals, means)))
        return rows

    def _summary(self, labels: tuple[str, ...], records: list[dict[str, Any]], level: str) -> Rows:
        """Mean, interval and number of queries in a row each; the first label is the heading of the others."""
        heading, *names = labels
        bounded = any("upper_bound" in record for record in records)
        headings = [heading, self.mean_name.replace("_", " "), level, "queries"]
        rows: Rows = [(*headings, "bounds") if bounded else tuple(headings)]
        for name, record in zip(names, records, strict=True):
            cells = [name, _decimals(record[self.mean_name]), _span(record["low"], record["high"])]
            cells.append(f"{record['queries']:,}")
            if bounded:
                cells.append(_span(record.get("lower_bound", math.nan), record.get("upper_bound", math.nan)))
            rows.append(tuple(cells))
        return rows

    def notes(self) -> Iterator[str]:
        """What a reader of the numbers should know; what holds for all rankings once."""
        yield from notes_of_all({name: list(table.notes()) for name, table in self.tables.items()})

    def __str__(self) -> str:
        comparison = [] if self.comparison is None else [str(self.comparison)]
        return "\n\n".join([self.caption(), *comparison, *map(aligned, self.sections())])

    # --- files -------------------------------------------------------------------------------------------------------

    def text(self, form: str, *, per_query: bool = False) -> str:
        """The text of the output in a form: table, markdown, csv, tsv or json; the table of queries is tsv."""
        if form == "json":
            return self.to_json(per_query=per_query)
        if form == "markdown":
            return self.query_markdown() if per_query else self.to_markdown()
        if form == "table" and not per_query:
            return f"{self}\n"
        delimiter = "," if form == "csv" else "\t"
        return _delimited(self.query_rows(), delimiter) if per_query else self.to_csv(delimiter)

    def to_markdown(self) -> str:
        """The tables in Markdown."""
        parts = [f"{self.caption()}\n"]
        if self.comparison is not None:
            parts.append(self.comparison.to_markdown())
        return "\n".join([*parts, *map(markdown_table, self.sections())])

    def to_csv(self, delimiter: str = ",") -> str:
        """A line for each ranking and metric, and for each segment where there are any; numbers in full."""
        records = []
        for name, table in self.tables.items():
            for segment, part in _parts(table):
                for values in part.values():
                    record = {"run": name, **self.record(values)}
                    if self.by:
                        record["segment"] = segment
                    if self.comparison is not None and part is table:
                        record["better_than"] = ";".join(self.comparison.better_than(values.name, name))
                    records.append(record)
        order = ["run", "metric", "segment", "queries", "weighted_mean", "mean", "low", "high"]
        order += ["lower_bound", "upper_bound", "better_than"]
        headings = [field for field in order if any(field in record for record in records)]
        return _delimited([headings, *([record.get(field) for field in headings] for record in records)], delimiter)

    def to_json(self, *, per_query: bool = False) -> str:
        """Everything, as one line of JSON."""
        found = _finite(self.to_dict(per_query=per_query))  # dates as ids and segments become text
        return json.dumps(found, ensure_ascii=False, allow_nan=False, default=str) + "\n"

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Everything as lists and dicts."""
        method = {"method": "bootstrap", "resamples": self.bootstrap, "seed": self.seed}
        found: dict[str, Any] = {
            "data": self.where,
            "queries": len(self.data),
            "documents": self.data.n_docs,
            "weighted": self.weighted,
            "interval": {"level": self.level, **(method if self.bootstrap else {"method": "t"})},
            "runs": [],
        }
        if self.by:
            found["by"] = self.by
        if per_query:
            found["query_ids"] = self.data.query_ids.tolist()
        for name, table in self.tables.items():
            metrics = [self.record(values) for values in table.values()]
            if self.by:
                for record in metrics:
                    parts = [(segment, part[record["metric"]]) for segment, part in table.segments.items()]
                    record["segments"] = [{"segment": segment, **self.record(values)} for segment, values in parts]
            run: dict[str, Any] = {"run": name, "metrics": metrics}
            run |= {"missed": list(map(plain, table.missed)), "unknown": list(map(plain, table.unknown))}
            if per_query:
                run["per_query"] = {heading: column.tolist() for heading, column in _columns(table).items()}
            found["runs"].append(run)
        if self.comparison is not None:
            found["comparison"] = self.comparison.to_dict()
        return found

    def query_rows(self) -> Iterator[list[Any]]:
        """The values of every query, headings first: a column a metric, or a column for each ranking and metric."""
        columns: dict[str, Floats] = {}
        for name, table in self.tables.items():
            prefix = "" if self.comparison is None else f"{name}:"
            columns |= {f"{prefix}{heading}": column for heading, column in _columns(table).items()}
        yield ["query", *columns]
        lists = [column.tolist() for column in columns.values()]
        for query, *numbers in zip(self.data.query_ids.tolist(), *lists, strict=True):
            yield [query, *numbers]

    def query_markdown(self) -> str:
        """The values of every query as a Markdown table."""
        headings, *rows = self.query_rows()
        return markdown_table([headings, *((str(query), *map(_decimals, numbers)) for query, *numbers in rows)])


def report(
    rankings: Sequence[Ranking],
    data: RankingData,
    where: str,
    metrics: Mapping[str, Metric],
    *,
    by: str | None = None,
    baseline: str | None = None,
    test: Test = "t",
    alpha: float = 0.05,
    seed: int = 0,
    resamples: int = 0,
    bootstrap: int = 0,
    weighted: bool = False,
) -> Report:
    """Judge the rankings, and compare them where there are several."""
    if not 0 < alpha < 1:
        raise ValueError(f"--alpha: expected a number between 0 and 1, got {alpha!r}")
    if baseline is not None and len(rankings) == 1:
        raise ValueError("--baseline: expected at least two rankings, got one")
    if weighted and data.query_weight is None:
        raise ValueError(
            f"--query-weighted: {where} has no query weights; in a table -o query_weight=COLUMN names their column"
        )
    tables = judge(rankings, data, where, metrics, by)
    comparison = None
    if len(tables) > 1:
        comparison = compare_values(
            {name: {key: values.per_query for key, values in table.items()} for name, table in tables.items()},
            baseline=baseline,
            test=test,
            alpha=alpha,
            seed=seed,
            resamples=resamples,
            weights=data.query_weight if weighted else None,
        )
    return Report(where, data, tables, comparison, 1 - alpha, bootstrap, seed, weighted)


_FORMS = {".md": "markdown", ".csv": "csv", ".tsv": "tsv", ".json": "json"}


def form_of(out: str | None) -> str:
    """The form of the output that the ending of its file tells.

    >>> form_of("report.json.gz"), form_of("report.txt"), form_of(None)
    ('json', 'table', 'table')
    """
    return _FORMS.get(os.path.splitext(without_compression_suffix(out or ""))[1].lower(), "table")


# --- texts -----------------------------------------------------------------------------------------------------------


def _parts(table: Table) -> list[tuple[Any, Table]]:
    """The table of all queries and those of the segments."""
    return [("all", table), *table.segments.items()]


def _columns(table: Table) -> dict[str, Floats]:
    """The values of every query by the metric's name; two columns where missing labels allow a range."""
    columns: dict[str, Floats] = {}
    for name, values in table.items():
        if values.upper is None:
            columns[name] = values.per_query
        else:
            columns[f"{name} lower"], columns[f"{name} upper"] = values.per_query, values.upper
    return columns


def _decimals(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "–"


def _span(low: float, high: float) -> str:
    return f"{low:.4f} to {high:.4f}" if math.isfinite(low) and math.isfinite(high) else "–"


def _delimited(rows: Iterable[Sequence[Any]], delimiter: str) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerows([["" if _is_lost(cell) else cell for cell in row] for row in rows])
    return text.getvalue()


def _is_lost(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _finite(value: Any) -> Any:
    """The value with None for numbers that are not finite, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if _is_lost(value) else value
