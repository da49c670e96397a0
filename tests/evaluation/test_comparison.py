"""Comparisons of several runs against the tests they are made of, and exports that are read back."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calirank.evaluation.comparison import Comparison, Pair, compare_values, letter
from calirank.evaluation.statistics import (
    cohens_d_paired,
    holm,
    mean_interval,
    over_seeds,
    paired_t_test,
    randomisation_test,
    win_tie_loss,
)

NAN = math.nan
Values = dict[str, dict[str, Any]]


def runs_of(count: int, queries: int = 60, seed: int = 0, step: float = 0.03) -> Values:
    """Runs that get better and better, under two metrics."""
    rng = np.random.default_rng(seed)
    base = rng.random((2, queries))
    return {
        f"run {number}": {
            metric: row + number * step + rng.normal(0, 0.1, queries)
            for metric, row in zip(("ndcg@10", "ap"), base, strict=True)
        }
        for number in range(count)
    }


def flat(pair: Pair) -> list[Any]:
    """All fields in one list, texts and numbers."""
    return [pair.metric, pair.a, pair.b, pair.n, *pair.interval, *pair.record, pair.mean_a, pair.mean_b, *others(pair)]


def others(pair: Pair) -> list[float]:
    return [pair.difference, pair.t, pair.t_p, pair.randomisation_p, pair.exact, pair.adjusted_p, pair.effect]


# --- what is computed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", ["t", "randomisation"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_number_is_that_of_its_function(test: Any, weighted: bool) -> None:
    """Means, intervals, tests, effects and counts of each pair; Holm over the pairs of one metric."""
    values = runs_of(4)
    values["run 1"]["ap"][7] = NAN
    weights = np.random.default_rng(1).random(60) if weighted else None
    found = compare_values(values, test=test, seed=5, resamples=1000, weights=weights, alpha=0.1)
    for metric in ("ndcg@10", "ap"):
        p = []
        for x, y in itertools.combinations(values, 2):
            a, b = values[x][metric], values[y][metric]
            one, t = found.pair(metric, x, y), paired_t_test(a, b, weights, level=0.9)
            signs = randomisation_test(a, b, seed=5, resamples=1000, weights=weights)
            assert (one.t, one.t_p, one.n, one.difference, one.interval) == t
            assert (one.randomisation_p, one.exact) == (signs.p, signs.exact)
            assert one.effect == cohens_d_paired(a, b, weights)
            assert one.record == win_tie_loss(a, b)
            assert one.mean_a - one.mean_b == pytest.approx(one.difference, abs=1e-12)
            p.append(t.p if test == "t" else signs.p)
        assert [one.adjusted_p for one in found.pairs if one.metric == metric] == holm(p).tolist()
        for run in values:
            summary = found.summary(metric, run)
            assert summary.mean == pytest.approx(
                np.ma.average(np.ma.masked_invalid(values[run][metric]), weights=weights)
            )
            assert summary.interval == mean_interval(values[run][metric], 0.9, weights)
            assert summary.n == 60 - (metric == "ap" and run == "run 1")


def test_marks_say_what_is_significantly_worse() -> None:
    """The letters of the beaten runs, after the correction, and never of a better one."""
    found = compare_values(runs_of(4))
    for metric, run in itertools.product(found.metrics, found.runs):
        expected = [
            other
            for other in found.runs
            if other != run
            and found.pair(metric, run, other).adjusted_p <= 0.05
            and found.pair(metric, run, other).difference > 0
        ]
        assert list(found.better_than(metric, run)) == expected
        assert found.marks(metric, run) == "".join("abcd"[found.runs.index(other)] for other in expected)
    assert found.marks("ap", "run 3") == "ab"
    assert found.marks("ap", "run 0") == ""
    assert found.best("ap") == ("run 3",)


def test_the_correction_can_take_a_mark_away() -> None:
    """A pair that is significant by itself is not among many."""
    values = runs_of(1)
    values["run 1"] = {
        metric: row + 0.05 * np.where(np.arange(60) % 3, 1, -1) for metric, row in values["run 0"].items()
    }
    alone = compare_values(values)
    among = compare_values(values | {f"other {k}": run for k, run in enumerate(runs_of(20, seed=4).values())})
    pair, again = alone.pair("ap", "run 0", "run 1"), among.pair("ap", "run 0", "run 1")
    assert pair.t_p == again.t_p <= 0.05
    assert alone.marks("ap", "run 1") == "a"
    assert again.adjusted_p > 0.05
    assert "a" not in among.marks("ap", "run 1").split(",")


def test_a_baseline_is_compared_with_every_other_run() -> None:
    """The family is the pairs with the baseline, which stands second."""
    values = runs_of(4)
    found = compare_values(values, baseline="run 1")
    assert [(one.a, one.b) for one in found.pairs[:3]] == [("run 0", "run 1"), ("run 2", "run 1"), ("run 3", "run 1")]
    p = [paired_t_test(values[run]["ap"], values["run 1"]["ap"]).p for run in ("run 0", "run 2", "run 3")]
    assert [one.adjusted_p for one in found.pairs if one.metric == "ap"] == holm(p).tolist()
    assert found.marks("ap", "run 3") == "b"
    assert "3 pairs with run 1" in str(found)
    with pytest.raises(ValueError, match="'run 0' and 'run 3' were not compared; the baseline is 'run 1'"):
        found.pair("ap", "run 0", "run 3")


def test_a_pair_can_be_asked_for_in_either_order() -> None:
    """b against a is a against b with the signs changed."""
    values = runs_of(2)
    swapped = compare_values(dict(reversed(values.items())))
    found = compare_values(values).pair("ap", "run 1", "run 0")
    assert flat(found) == flat(swapped.pair("ap", "run 1", "run 0"))
    assert found.reversed().reversed() == found
    assert found.difference > 0


@pytest.mark.parametrize("seed", [7, "generator"])
def test_a_pair_does_not_depend_on_the_other_runs_or_on_the_order(seed: Any) -> None:
    """Only the corrected p value does, and not on the order."""

    def compare(values: Values) -> Comparison:
        return compare_values(values, seed=np.random.default_rng(1) if seed == "generator" else seed, resamples=500)

    values = runs_of(6)
    values["run 2"]["ap"][:9] = NAN
    whole = compare(values)
    shuffled = compare({run: dict(reversed(values[run].items())) for run in sorted(values, reverse=True)})
    some = compare({run: values[run] for run in ("run 2", "run 4", "run 5")})
    for metric in whole.metrics:
        for a, b in itertools.combinations(whole.runs, 2):
            assert flat(whole.pair(metric, a, b)) == flat(shuffled.pair(metric, a, b))
        for a, b in itertools.combinations(some.runs, 2):
            assert (one := whole.pair(metric, a, b)).randomisation_p == some.pair(metric, a, b).randomisation_p
            assert one.t_p == some.pair(metric, a, b).t_p
    assert compare(values) == whole


def test_seeds_are_averaged_first_and_their_spread_is_shown() -> None:
    """A run of three seeds against one of a single seed."""
    rng = np.random.default_rng(0)
    trained = rng.random(40) + rng.normal(0, 0.1, (3, 40))
    single = rng.random(40)
    found = compare_values({"three": {"ap": list(trained)}, "one": {"ap": single}})
    seeds = over_seeds(trained)
    pair = found.pair("ap", "three", "one")
    assert (pair.t_p, pair.n) == (paired_t_test(seeds.values, single).p, 40)
    assert found.summary("ap", "three").spread == seeds.spread
    assert found.summary("ap", "three").seeds == 3
    assert math.isnan(found.summary("ap", "one").spread)
    assert f"{seeds.values.mean():.4f} ± {seeds.spread:.4f}" in str(found)
    assert "over seeds" in str(found)


def test_pairs_are_of_the_queries_that_both_runs_have() -> None:
    """And the table says that means are of different queries."""
    found = compare_values({"x": {"ap": [0.1, NAN, 0.5, 0.9]}, "y": {"ap": [0.2, 0.3, NAN, 0.8]}})
    pair = found.pair("ap", "x", "y")
    assert (pair.n, pair.mean_a, pair.mean_b) == (2, 0.5, 0.5)
    assert "pairs of the queries" not in str(found)
    lacking = compare_values({"x": {"ap": [0.1, NAN, 0.5]}, "y": {"ap": [0.2, 0.3, 0.4]}})
    assert "ap: means are of 2 to 3 queries, pairs of the queries that both runs have." in str(lacking)


@pytest.mark.parametrize("values", [[], [NAN, NAN], [0.5], [0.5, 0.5]])
def test_edges(values: list[float]) -> None:
    """No queries, no values, one query, equal runs: everything is printed and exported, and nothing is marked."""
    found = compare_values({"x": {"ap": values}, "y": {"ap": values}})
    assert found.marks("ap", "x") == found.marks("ap", "y") == ""
    assert "x" in str(found)
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.to_markdown().startswith("|")
    assert found.best("ap") == (("x", "y") if 0.5 in values else ())
    assert found.pair("ap", "x", "y").adjusted_p == 1 or not {0.5} & set(values)


def test_one_run_alone_is_a_table_without_tests() -> None:
    """There is no pair, and no note about letters."""
    found = compare_values({"x": {"ap": [0.5, 0.7]}})
    assert found.pairs == ()
    assert str(found) == "   run  ap\na  x    0.6000"


def test_without_resamples_there_is_no_randomisation_test() -> None:
    """resamples=0 leaves it out."""
    found = compare_values(runs_of(3), resamples=0)
    assert all(math.isnan(one.randomisation_p) for one in found.pairs)
    assert found.marks("ap", "run 2") == compare_values(runs_of(3)).marks("ap", "run 2")


def test_too_few_resamples_for_the_family_are_refused() -> None:
    """1 / (1 + resamples) times the number of pairs must be able to reach alpha; enumerated tests always may."""
    with pytest.raises(ValueError, match=r"at least 1 / 101, so none of 10 pairs .* expected at least 200 resamples"):
        compare_values(runs_of(5), test="randomisation", resamples=100)
    assert compare_values(runs_of(5), test="randomisation", resamples=200).pairs
    assert compare_values(runs_of(5, queries=10), test="randomisation", resamples=100).pairs


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ({}, {}, "at least one run"),
        ({"x": {}}, {}, "run 'x': expected at least one metric"),
        ({"x": {"ap": [1]}, "y": {"rr": [1]}}, {}, "run 'y': expected the metrics of 'x', ap; got rr"),
        ({"x": {"ap": [1]}, "y": {"ap": [1, 2]}}, {}, "run 'y', metric 'ap': expected 1 queries, as in run 'x', got 2"),
        ({"x": {"ap": [math.inf]}}, {}, "run 'x', metric 'ap': values: expected finite"),
        ({"x": {"ap": [1]}}, {"weights": [1, 2]}, "run 'x', metric 'ap': weights: expected one for each of 1"),
        ({"first": {"ap": [1]}}, {"baseline": "frist"}, "baseline: expected one of first; .* Did you mean 'first'"),
        ({"x": {"ap": [1]}}, {"alpha": 5}, "alpha: expected"),
        ({"x": {"ap": [1]}}, {"test": "z"}, "test: expected 't' or 'randomisation'"),
        ({"x": {"ap": [1]}}, {"test": "randomisation", "resamples": 0}, "resamples: expected at least 1"),
        ({"x": {"ap": [1]}, "y": {"ap": [1]}}, {"resamples": -1}, "resamples: expected a whole number"),
    ],
)
def test_what_is_refused(values: Values, options: dict[str, Any], message: str) -> None:
    """Errors name the run and the metric."""
    with pytest.raises(ValueError, match=message):
        compare_values(values, **options)


def test_names_are_texts_and_unknown_ones_are_refused() -> None:
    """A run that is no text, a run, a metric and an export that are not there."""
    with pytest.raises(TypeError, match="expected names of runs and metrics, got 3"):
        compare_values({3: {"ap": [1]}})
    found = compare_values(runs_of(2))
    with pytest.raises(ValueError, match=r"run: expected one of run 0, run 1; got 'run 2'\. Did you mean"):
        found.summary("ap", "run 2")
    with pytest.raises(ValueError, match="metric: expected one of ndcg@10, ap; got 'map'"):
        found.marks("map", "run 1")
    with pytest.raises(ValueError, match="what: expected 'table', 'summaries' or 'pairs'"):
        found.to_csv(what="all")


# --- printing and exporting ------------------------------------------------------------------------------------------

ODD = [
    'pipe | "quote", comma',
    "two\nlines\r",
    "*bold* _it_ `code` <b> &amp; \\",
    "[red]\x1b[31m",
    "return\r",
    "ünïcode 検索",
    "",
]


def odd_runs() -> Values:
    return dict(zip(ODD, (run for run in runs_of(len(ODD)).values()), strict=True))


def test_csv_is_read_back(tmp_path: Path) -> None:
    """The table, the summaries and the pairs, with every name and number as it was."""
    found = compare_values(odd_runs())
    for what in ("table", "summaries", "pairs"):
        text = found.to_csv(tmp_path / "out.csv", what=what)
        assert (tmp_path / "out.csv").read_bytes().decode() == text == found.to_csv(what=what)
    table = list(csv.DictReader(io.StringIO(found.to_csv(), newline="")))
    assert [row["run"] for row in table] == ODD
    assert [float(row["ap"]) for row in table] == [found.summary("ap", run).mean for run in ODD]
    assert [row["ap better than"] for row in table] == [found.marks("ap", run) for run in ODD]
    summaries = list(csv.DictReader(io.StringIO(found.to_csv(what="summaries"), newline="")))
    assert [(row["run"], float(row["low"])) for row in summaries] == [(s.run, s.interval.low) for s in found.summaries]
    pairs = list(csv.DictReader(io.StringIO(found.to_csv(what="pairs"), newline="")))
    assert [(row["a"], row["b"], float(row["t_p"])) for row in pairs] == [(p.a, p.b, p.t_p) for p in found.pairs]


def test_json_is_read_back(tmp_path: Path) -> None:
    """Numbers that are not finite are null; everything else is as it was."""
    values = odd_runs()
    found = compare_values(values, resamples=0)
    found.to_json(tmp_path / "out.json")
    read = json.loads((tmp_path / "out.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert read == found.to_dict()
    assert [run["run"] for run in read["runs"]] == ODD
    for record, pair in zip(read["pairs"], found.pairs, strict=True):
        assert record["randomisation_p"] is None
        assert (record["a"], record["difference"], record["win"]) == (pair.a, pair.difference, pair.record.win)
        assert (record["low"], record["high"]) == pair.interval[:2]
    assert (read["alpha"], read["test"], read["correction"], read["baseline"]) == (0.05, "t", "holm", None)
    single = compare_values({"x": {"ap": [0.5]}}).to_dict()["summaries"][0]
    assert (single["mean"], single["low"], single["high"], single["spread"]) == (0.5, None, None, None)


def test_markdown_has_one_row_a_run_whatever_the_names(tmp_path: Path) -> None:
    """Best means are bold, marks are raised, and no name breaks out of its cell."""
    found = compare_values(odd_runs())
    text = found.to_markdown(tmp_path / "out.md")
    assert (tmp_path / "out.md").read_text("utf-8") == text
    head, rule, *rows = text.split("\n\n")[0].splitlines()
    assert head == "|  | run | ndcg@10 | ap |"
    assert rule == "| :-- | :-- | --: | --: |"
    cells = [re.split(r"(?<!\\)(?:\\\\)*\|", row)[1:-1] for row in rows]
    assert [len(row) for row in cells] == [4] * len(ODD)
    assert [row[1].strip() for row in cells[:3]] == [
        r'pipe \| "quote", comma',
        r"two\\nlines\\r",
        r"\*bold\* \_it\_ \`code\` &lt;b> &amp;amp; \\",
    ]
    best = found.best("ap")[0]
    place = ODD.index(best)
    mean, marks = found.summary("ap", best).mean, found.marks("ap", best)
    assert cells[place][3].strip() == f"**{mean:.4f}**<sup>{marks}</sup>"
    assert marks
    assert sum("**" in row[3] for row in cells) == 1
    assert f"**{mean:.2f}**" in found.to_markdown(decimals=2)


def test_the_printed_table_has_one_line_a_run() -> None:
    """Names that cannot be printed stand as their escapes; numbers stand under numbers."""
    found = compare_values(odd_runs())
    lines = str(found).split("\n\n")[0].split("\n")
    assert len(lines) == 1 + len(ODD)
    assert r"two\nlines\r" in lines[2]
    assert "\x1b" not in str(found)
    column = [line.index(f"{found.summary('ap', run).mean:.4f}") for run, line in zip(ODD, lines[1:], strict=True)]
    assert len(set(column)) == 1
    assert lines[0].index("ap") == column[0]


def test_pairs_are_printed_where_they_are_few() -> None:
    """Two runs under two metrics are two lines; fifteen pairs a metric are left to the exports."""
    assert str(compare_values(runs_of(2))).count("a - b") == 2
    assert "a - b" not in str(compare_values(runs_of(6)))


def test_rich_prints_the_same_words() -> None:
    """The table, the notes and the pairs; names are no markup, the best mean is bold."""
    from rich.console import Console

    values = {"[red]x": {"ap": [0.1, 0.2, 0.3]}, "y": {"ap": [0.5, 0.65, 0.7]}}
    found = compare_values(values, resamples=0)
    out = io.StringIO()
    Console(file=out, width=200, force_terminal=True, color_system="standard").print(found)
    plain = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
    words = [word for word in plain.split() if not set(word) <= set("─━ ")]
    assert words == str(found).split()
    assert re.search(r"\x1b\[1m0\.6167 a\s*\x1b", out.getvalue())
    assert not re.search(r"\x1b\[1m0\.2000", out.getvalue())


def test_more_runs_than_letters() -> None:
    """After z comes aa, and marks are parted by commas."""
    assert [letter(number) for number in (0, 25, 26, 51, 52, 701, 702)] == ["a", "z", "aa", "az", "ba", "zz", "aaa"]
    assert len({letter(number) for number in range(3000)}) == 3000
    found = compare_values(runs_of(30, step=0.2), resamples=0)
    assert found.letter("run 29") == "ad"
    assert found.marks("ap", "run 28").split(",") == [letter(number) for number in range(28)]
    assert found.marks("ap", "run 28").endswith(",z,aa,ab")
    assert len(list(csv.reader(io.StringIO(found.to_csv())))) == 31


def test_runs_that_are_equally_best_are_all_best() -> None:
    """Up to rounding: 0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1."""
    values = {"x": [0.1, 0.2, 0.3], "y": [0.3, 0.2, 0.1], "z": [0.1, 0.1, 0.1]}
    found = compare_values({run: {"ap": row} for run, row in values.items()})
    assert found.summary("ap", "x").mean != found.summary("ap", "y").mean
    assert found.best("ap") == ("x", "y")


def test_queries_of_weight_0_do_not_count() -> None:
    """Neither in a mean nor in a pair."""
    values = {"x": {"ap": [0.5, NAN, 0.7, 0.9]}, "y": {"ap": [0.4, 0.1, 0.1, 0.2]}}
    found = compare_values(values, weights=[1, 1, 2, 0])
    assert found.summary("ap", "x").n == found.pair("ap", "x", "y").n == 2
    assert found.summary("ap", "y").n == 3
