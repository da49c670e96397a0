"""Several runs side by side: means, paired tests of every two, and marks where a difference is significant.

The tests are those of :mod:`calirank.evaluation.statistics`. A *family* is all pairs of runs within one metric: p
values are corrected for the number of pairs [Holm 1979], and not for the number of metrics. A run of several seeds is
averaged over them query by query, before anything is tested.

Each run has a letter. The mark ``b`` at a run's mean says that this run is significantly better than run ``b``.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calirank.evaluation.rendering import deliver, markdown_text, shown
from calirank.evaluation.statistics import (
    ROUNDING,
    Floats,
    Interval,
    Randomisation,
    Record,
    Seed,
    Seeds,
    cohens_d_paired,
    holm,
    mean,
    mean_interval,
    over_seeds,
    paired_t_test,
    randomisation_tests,
    win_tie_loss,
)
from calirank.names import did_you_mean

Path: TypeAlias = "str | os.PathLike[str]"
Test: TypeAlias = Literal["t", "randomisation"]

#: More pairs than this are not printed, only exported.
_PRINTED = 12
_TESTS = {"t": "paired t test", "randomisation": "paired randomisation test"}


@dataclass(frozen=True)
class Summary:
    """One run under one metric: its mean over the ``n`` queries where it has a value, and the t interval of the mean.

    ``spread`` is the standard deviation of the mean over ``seeds``: NaN where there is one seed.
    """

    run: str
    metric: str
    mean: float
    n: int
    interval: Interval
    seeds: int
    spread: float


@dataclass(frozen=True)
class Pair:
    """Two runs under one metric, on the ``n`` queries where both have a value.

    ``difference`` is ``mean_a - mean_b`` and ``interval`` its t interval, of this pair alone. ``t_p`` and
    ``randomisation_p`` (NaN where not asked for, ``exact`` where all sign patterns were enumerated) are p values of
    this pair alone; ``adjusted_p`` is that of the chosen test after Holm's correction. ``effect`` is Cohen's d of the
    differences; ``record`` counts the queries where a is better, equal and worse.
    """

    metric: str
    a: str
    b: str
    n: int
    mean_a: float
    mean_b: float
    difference: float
    interval: Interval
    t: float
    t_p: float
    randomisation_p: float
    exact: bool
    adjusted_p: float
    effect: float
    record: Record

    def reversed(self) -> Pair:
        """The same pair with b first."""
        low, high, level = self.interval
        return Pair(
            self.metric,
            self.b,
            self.a,
            self.n,
            self.mean_b,
            self.mean_a,
            -self.difference,
            Interval(-high, -low, level),
            -self.t,
            self.t_p,
            self.randomisation_p,
            self.exact,
            self.adjusted_p,
            -self.effect,
            Record(self.record.loss, self.record.tie, self.record.win),
        )


@dataclass(frozen=True)
class Comparison:
    """Runs compared under metrics; ``print`` it, or export it: Markdown, CSV, JSON, a dict.

    >>> found = compare_values({"x": {"ap": [0.5, 0.7, 0.8]}, "y": {"ap": [0.4, 0.5, 0.7]}})
    >>> found.pair("ap", "x", "y").record
    Record(win=3, tie=0, loss=0)
    """

    runs: tuple[str, ...]
    metrics: tuple[str, ...]
    baseline: str | None
    alpha: float
    test: Test
    resamples: int
    summaries: tuple[Summary, ...]
    pairs: tuple[Pair, ...]
    #: What the evaluation of each run had to say: missed queries, skipped ones, sampling errors.
    remarks: tuple[str, ...] = ()

    # --- looking things up -------------------------------------------------------------------------------------------

    @cached_property
    def _summary_of(self) -> dict[tuple[str, str], Summary]:
        return {(one.metric, one.run): one for one in self.summaries}

    @cached_property
    def _pair_of(self) -> dict[tuple[str, str, str], Pair]:
        return {(one.metric, one.a, one.b): one for one in self.pairs}

    @cached_property
    def _beaten(self) -> dict[tuple[str, str], list[int]]:
        """The numbers of the runs that are significantly worse than a run under a metric."""
        number = {run: place for place, run in enumerate(self.runs)}
        beaten: dict[tuple[str, str], list[int]] = {(one.metric, one.run): [] for one in self.summaries}
        for pair in self.pairs:
            if pair.adjusted_p <= self.alpha:
                winner, loser = (pair.a, pair.b) if pair.difference > 0 else (pair.b, pair.a)
                beaten[pair.metric, winner].append(number[loser])
        return beaten

    def letter(self, run: str) -> str:
        """The letter of a run: a, b, …, z, aa, ab, …"""
        return letter(self.runs.index(_known(run, self.runs, "run")))

    def summary(self, metric: str, run: str) -> Summary:
        """The mean of a run under a metric, and what belongs to it."""
        return self._summary_of[_known(metric, self.metrics, "metric"), _known(run, self.runs, "run")]

    def pair(self, metric: str, a: str, b: str) -> Pair:
        """The tests of a against b under a metric, in this order."""
        key = _known(metric, self.metrics, "metric"), _known(a, self.runs, "run"), _known(b, self.runs, "run")
        if key in self._pair_of:
            return self._pair_of[key]
        swapped = self._pair_of.get((key[0], b, a))
        if swapped is None:
            raise ValueError(f"{a!r} and {b!r} were not compared; the baseline is {self.baseline!r}")
        return swapped.reversed()

    def better_than(self, metric: str, run: str) -> tuple[str, ...]:
        """The runs that this run is significantly better than under a metric."""
        one = self.summary(metric, run)
        return tuple(self.runs[number] for number in self._beaten[one.metric, one.run])

    def marks(self, metric: str, run: str) -> str:
        """The letters of the runs that this run is significantly better than; commas part them beyond 26 runs."""
        return ("" if len(self.runs) <= 26 else ",").join(map(self.letter, self.better_than(metric, run)))

    def best(self, metric: str) -> tuple[str, ...]:
        """The run with the largest mean under a metric; several where they are equal up to rounding."""
        means = [self.summary(metric, run).mean for run in self.runs]
        largest = max((value for value in means if not math.isnan(value)), default=math.nan)
        least = largest - ROUNDING * abs(largest)
        return tuple(run for run, value in zip(self.runs, means, strict=True) if value >= least)

    # --- printing ----------------------------------------------------------------------------------------------------

    def rows(self, decimals: int = 4) -> Iterator[tuple[str, ...]]:
        """The table as text, headings first: letter, run, and for each metric mean, spread over seeds, marks."""
        yield ("", "run", *map(shown, self.metrics))
        columns = [self._cells(metric, decimals) for metric in self.metrics]
        for number, run in enumerate(self.runs):
            yield (letter(number), shown(run), *(column[number] for column in columns))

    def _cells(self, metric: str, decimals: int) -> list[str]:
        """Numbers under numbers, marks under marks."""
        numbers = [_number(self.summary(metric, run), decimals) for run in self.runs]
        marks = [self.marks(metric, run) for run in self.runs]
        width, room = max(map(len, numbers)), max(map(len, marks))
        return [f"{text:>{width}} {mark:<{room}}" for text, mark in zip(numbers, marks, strict=True)]

    def pair_rows(self) -> Iterator[tuple[str, ...]]:
        """The pairs as text, headings first; p is that of the chosen test, before and after the correction."""
        interval = f"{100 * (1 - self.alpha):.6g} % interval"
        yield ("metric", "pair", "difference", interval, "p", "p (Holm)", "effect", "+/=/-")
        for one in self.pairs:
            p = one.t_p if self.test == "t" else one.randomisation_p
            yield (
                shown(one.metric),
                f"{self.letter(one.a)} - {self.letter(one.b)}",
                f"{one.difference:+.4f}",
                f"{one.interval.low:+.4f} to {one.interval.high:+.4f}",
                f"{p:.2g}",
                f"{one.adjusted_p:.2g}",
                f"{one.effect:+.3f}",
                f"{one.record.win}/{one.record.tie}/{one.record.loss}",
            )

    def notes(self) -> Iterator[str]:
        """What the table does not say by itself, a sentence each."""
        if self.pairs:
            family = len(self.pairs) // len(self.metrics)
            of = "1 pair" if family == 1 else f"{family} pairs"
            against = "" if self.baseline is None else f" with {shown(self.baseline)}"
            yield (
                f"Letters: significantly better than those runs, p <= {self.alpha:g} "
                f"({_TESTS[self.test]}; Holm, {of}{against})."
            )
        if any(one.seeds > 1 for one in self.summaries):
            yield "± standard deviation of the mean over seeds; tests are of the averages over seeds, query by query."
        for metric in self.metrics:
            counts = [self.summary(metric, run).n for run in self.runs]
            if len(set(counts)) > 1:
                yield (
                    f"{shown(metric)}: means are of {min(counts)} to {max(counts)} queries, "
                    "pairs of the queries that both runs have."
                )
        yield from map(shown, self.remarks)

    def __str__(self) -> str:
        parts = [_aligned(list(self.rows())), "\n".join(self.notes())]
        if 0 < len(self.pairs) <= _PRINTED:
            parts.append(_aligned(list(self.pair_rows())))
        return "\n\n".join(part for part in parts if part)

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        headings, *rows = self.rows()
        best = [set(self.best(metric)) for metric in self.metrics]
        styled = [
            [Text(cell, "bold" if column >= 2 and run in best[column - 2] else "") for column, cell in enumerate(row)]
            for run, row in zip(self.runs, rows, strict=True)
        ]
        parts: list[Any] = [_rich_table(headings, styled), *map(Text, self.notes())]
        if 0 < len(self.pairs) <= _PRINTED:
            headings, *rows = self.pair_rows()
            parts.append(_rich_table(headings, [[Text(cell) for cell in row] for row in rows]))
        return Group(*parts)

    # --- exporting ---------------------------------------------------------------------------------------------------

    def to_markdown(self, path: Path | None = None, *, decimals: int = 4) -> str:
        """The table in Markdown: best mean in bold, marks raised. Returned, and written to ``path`` if given."""
        lines = [["", "run", *map(markdown_text, self.metrics)], [":--", ":--", *["--:"] * len(self.metrics)]]
        best = [set(self.best(metric)) for metric in self.metrics]
        for number, run in enumerate(self.runs):
            cells = [letter(number), markdown_text(run)]
            for metric, winners in zip(self.metrics, best, strict=True):
                text, marks = _number(self.summary(metric, run), decimals), self.marks(metric, run)
                text = f"**{text}**" if run in winners else text
                cells.append(text + (f"<sup>{marks}</sup>" if marks else ""))
            lines.append(cells)
        table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
        notes = "".join(f"\n{markdown_text(note)}\n" for note in self.notes())
        return deliver(table + notes, path)

    def to_csv(self, path: Path | None = None, *, what: Literal["table", "summaries", "pairs"] = "table") -> str:
        """Comma-separated values, texts in quotes and numbers in full. Returned, and written to ``path`` if given.

        ``"table"`` has a row a run and for each metric the mean and the letters of the runs that it is better than;
        ``"summaries"`` a row for each metric and run, ``"pairs"`` one for each metric and pair, with all that is known.
        """
        if what == "table":
            heads = [text for metric in self.metrics for text in (metric, f"{metric} better than")]
            rows: list[list[Any]] = [["letter", "run", *heads]]
            for run in self.runs:
                cells = [(self.summary(metric, run).mean, self.marks(metric, run)) for metric in self.metrics]
                rows.append([self.letter(run), run, *(cell for both in cells for cell in both)])
        elif what in ("summaries", "pairs"):
            fields = self._summary_fields() if what == "summaries" else self._pair_fields()
            rows = [list(fields), *map(list, zip(*fields.values(), strict=True))]
        else:
            raise ValueError(f"what: expected 'table', 'summaries' or 'pairs', got {what!r}")
        out = io.StringIO()
        csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows(rows)
        return deliver(out.getvalue(), path)

    def to_json(self, path: Path | None = None) -> str:
        """:meth:`to_dict` as JSON. Returned, and written to ``path`` if given."""
        return deliver(json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n", path)

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists and dicts of texts and numbers; a number that is not finite is None."""
        return {
            "runs": [{"letter": self.letter(run), "run": run} for run in self.runs],
            "metrics": list(self.metrics),
            "baseline": self.baseline,
            "alpha": self.alpha,
            "test": self.test,
            "correction": "holm",
            "resamples": self.resamples,
            "summaries": _records(self._summary_fields()),
            "pairs": _records(self._pair_fields()),
            "remarks": list(self.remarks),
        }

    def _summary_fields(self) -> dict[str, list[Any]]:
        """The summaries as columns."""
        every = self.summaries
        return {
            "metric": [one.metric for one in every],
            "run": [one.run for one in every],
            "mean": [one.mean for one in every],
            "low": [one.interval.low for one in every],
            "high": [one.interval.high for one in every],
            "n": [one.n for one in every],
            "seeds": [one.seeds for one in every],
            "spread": [one.spread for one in every],
            "better_than": [self.marks(one.metric, one.run) for one in every],
        }

    def _pair_fields(self) -> dict[str, list[Any]]:
        """The pairs as columns."""
        every = self.pairs
        fields: dict[str, list[Any]] = {name: [getattr(one, name) for one in every] for name in _PAIR_FIELDS}
        fields["low"] = [one.interval.low for one in every]
        fields["high"] = [one.interval.high for one in every]
        for name in Record._fields:
            fields[name] = [getattr(one.record, name) for one in every]
        return fields


_PAIR_FIELDS = (
    *("metric", "a", "b", "n", "mean_a", "mean_b", "difference"),
    *("t", "t_p", "randomisation_p", "exact", "adjusted_p", "effect"),
)


# --- comparing -------------------------------------------------------------------------------------------------------


def compare_values(
    values: Mapping[str, Mapping[str, ArrayLike | Sequence[ArrayLike]]],
    *,
    baseline: str | None = None,
    alpha: float = 0.05,
    test: Test = "t",
    seed: Seed = 0,
    resamples: int = 10_000,
    weights: ArrayLike | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Compare runs by their values ``values[run][metric]``: one a query, or a matrix (seeds, queries); NaN is skipped.

    Every two runs are compared, or each with the ``baseline``. ``test`` chooses the p values that are corrected and
    decide about marks; both are reported. ``alpha`` is the level of significance, and 1 - alpha that of intervals.
    ``resamples=0`` leaves the randomisation test out. Nothing about a pair depends on the other runs except its
    corrected p value, and nothing depends on the order of the runs except who is called a and who b.

    >>> print(compare_values({"x": {"ap": [0.5, 0.7, 0.8]}, "y": {"ap": [0.4, 0.6, 0.71]}}, resamples=0))
       run  ap
    a  x    0.6667 b
    b  y    0.5700
    <BLANKLINE>
    Letters: significantly better than those runs, p <= 0.05 (paired t test; Holm, 1 pair).
    <BLANKLINE>
    metric  pair   difference  95 % interval       p       p (Holm)  effect   +/=/-
    ap      a - b  +0.0967     +0.0823 to +0.1110  0.0012  0.0012    +16.743  3/0/0
    """
    runs, metrics = _names(values)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha: expected a number between 0 and 1, got {alpha!r}")
    if test not in _TESTS:
        raise ValueError(f"test: expected 't' or 'randomisation', got {test!r}")
    if test == "randomisation" and resamples == 0:
        raise ValueError("resamples: expected at least 1 for test='randomisation', got 0")
    if baseline is not None:
        _known(baseline, runs, "baseline")
        chosen = [(number, runs.index(baseline)) for number, run in enumerate(runs) if run != baseline]
    else:
        chosen = list(itertools.combinations(range(len(runs)), 2))
    if isinstance(seed, np.random.Generator):  # every metric, and with it every pair, gets the same signs
        seed = int(seed.integers(2**63))
    summaries: list[Summary] = []
    pairs: list[Pair] = []
    for metric in metrics:
        rows: list[Floats] = []
        for run in runs:
            try:
                seeds = over_seeds(values[run][metric], weights)
                if rows and len(seeds.values) != len(rows[0]):
                    raise ValueError(f"expected {len(rows[0])} queries, as in run {runs[0]!r}, got {len(seeds.values)}")
            except ValueError as error:
                raise ValueError(f"run {run!r}, metric {metric!r}: {error}") from None
            rows.append(seeds.values)
            summaries.append(_summarise(run, metric, seeds, weights, alpha))
        pairs += _test_pairs(metric, runs, rows, chosen, weights, alpha, test, seed, resamples, progress)
    return Comparison(runs, metrics, baseline, alpha, test, resamples, tuple(summaries), tuple(pairs))


def _summarise(run: str, metric: str, seeds: Seeds, weights: ArrayLike | None, alpha: float) -> Summary:
    counted = ~np.isnan(seeds.values)
    if weights is not None:
        counted &= np.asarray(weights) > 0
    interval = mean_interval(seeds.values, 1 - alpha, weights)
    n = int(np.count_nonzero(counted))
    return Summary(run, metric, mean(seeds.values, weights), n, interval, len(seeds.means), seeds.spread)


def _test_pairs(
    metric: str,
    runs: tuple[str, ...],
    rows: list[Floats],
    chosen: list[tuple[int, int]],
    weights: ArrayLike | None,
    alpha: float,
    test: Test,
    seed: Seed,
    resamples: int,
    progress: bool | None,
) -> list[Pair]:
    """The tests of one family."""
    if resamples:
        flipped = randomisation_tests(rows, chosen, seed=seed, resamples=resamples, weights=weights, progress=progress)
    else:
        flipped = [Randomisation(math.nan, 0, math.nan, False, 0)] * len(chosen)
    if test == "randomisation" and len(chosen) > alpha * (1 + resamples) and not all(one.exact for one in flipped):
        raise ValueError(
            f"resamples: a p value of random sign patterns is at least 1 / {1 + resamples}, so none of {len(chosen)} "
            f"pairs could be significant at {alpha:g} after Holm's correction; expected at least "
            f"{math.ceil(len(chosen) / alpha)} resamples, or test='t'"
        )
    tested = [paired_t_test(rows[i], rows[j], weights, level=1 - alpha) for i, j in chosen]
    adjusted = holm([one.p for one in (tested if test == "t" else flipped)])
    return [
        Pair(
            metric=metric,
            a=runs[i],
            b=runs[j],
            n=t.n,
            mean_a=mean(np.where(np.isnan(rows[j]), np.nan, rows[i]), weights),
            mean_b=mean(np.where(np.isnan(rows[i]), np.nan, rows[j]), weights),
            difference=t.difference,
            interval=t.interval,
            t=t.statistic,
            t_p=t.p,
            randomisation_p=signs.p,
            exact=signs.exact,
            adjusted_p=p,
            effect=cohens_d_paired(rows[i], rows[j], weights),
            record=win_tie_loss(rows[i], rows[j]),
        )
        for (i, j), t, signs, p in zip(chosen, tested, flipped, adjusted.tolist(), strict=True)
    ]


def _names(values: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The runs and the metrics, which must be the same for all runs; their order is that of the first run."""
    runs = tuple(values)
    if not runs:
        raise ValueError("values: expected at least one run, got none")
    metrics = tuple(values[runs[0]])
    if not metrics:
        raise ValueError(f"run {runs[0]!r}: expected at least one metric, got none")
    for name in (*runs, *metrics):
        if not isinstance(name, str):
            raise TypeError(f"values: expected names of runs and metrics, got {name!r}")
    for run in runs:
        if set(values[run]) != set(metrics):
            got = ", ".join(map(str, values[run]))
            raise ValueError(f"run {run!r}: expected the metrics of {runs[0]!r}, {', '.join(metrics)}; got {got}")
    return runs, metrics


# --- texts -----------------------------------------------------------------------------------------------------------


def letter(number: int) -> str:
    """The letter of the run with this number: a to z, then aa, ab, …

    >>> letter(0), letter(25), letter(26), letter(702)
    ('a', 'z', 'aa', 'aaa')
    """
    text = ""
    number += 1
    while number:
        number, last = divmod(number - 1, 26)
        text = chr(ord("a") + last) + text
    return text


def _known(name: str, names: tuple[str, ...], what: str) -> str:
    if name not in names:
        raise ValueError(f"{what}: expected one of {', '.join(names)}; got {name!r}.{did_you_mean(str(name), names)}")
    return name


def _number(one: Summary, decimals: int) -> str:
    if math.isnan(one.mean):
        return "–"
    return f"{one.mean:.{decimals}f}" + ("" if one.seeds == 1 else f" ± {one.spread:.{decimals}f}")


def _aligned(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _rich_table(headings: Sequence[str], rows: list[list[Any]]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for heading in headings:
        table.add_column(Text(heading), overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _records(fields: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """A dict a row; None for numbers that are not finite."""
    cells = [
        [None if isinstance(cell, float) and not math.isfinite(cell) else cell for cell in column]
        for column in fields.values()
    ]
    return [dict(zip(fields, row, strict=True)) for row in zip(*cells, strict=True)]
