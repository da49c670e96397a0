"""``calirank evaluate``: what it reads, what it prints and writes, and how it says that something is wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calirank as cr
from calirank import cli
from calirank.evaluation import command
from calirank.metrics.profiles import PROFILES

Run = Callable[..., tuple[int, str, str]]

#: Five queries of different lengths; the last one has no relevant document.
SIZES = [3, 2, 3, 4, 2]
LABELS = np.array([2, 0, 1, 0, 1, 0, 2, 1, 1, 0, 0, 2, 0, 0], dtype=float)
FEATURES = np.random.default_rng(3).random((14, 3)).round(3).astype(np.float32)
IDS = [f"d{row}" for row in range(14)]
A = np.array([0.9, 0.1, 0.5, 0.2, 0.2, 0.3, 0.8, 0.1, 0.4, 0.3, 0.2, 0.9, 0.5, 0.1])
B = np.random.default_rng(4).random(14).round(2)


@pytest.fixture
def data() -> cr.RankingData:
    return cr.RankingData(FEATURES, LABELS, sizes=SIZES, query_ids=[7, 8, 9, 11, 12], doc_ids=IDS)


@pytest.fixture
def folder(tmp_path: Path, data: cr.RankingData, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the data as LETOR text and two files of scores, in which the command runs."""
    cr.write_letor(data.replace(doc_ids=None), tmp_path / "test.txt")
    for name, scores in (("a", A), ("b", B)):
        (tmp_path / f"{name}.txt").write_text("".join(f"{score!r}\n" for score in scores.tolist()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def evaluate(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``calirank evaluate`` in the folder; gives its exit status, output and errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["calirank", "evaluate", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        status = 0
        try:
            cli.main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        out, err = capsys.readouterr()
        return status, out, "".join(line for line in err.splitlines(keepends=True) if "preparing (once)" not in line)

    return run


def cells(out: str) -> list[list[str]]:
    """The words of each line that is not empty and no rule."""
    return [line.split() for line in out.splitlines() if line.strip() and "──" not in line]


# --- one ranking -----------------------------------------------------------------------------------------------------


def test_one_ranking_is_a_table_of_means(evaluate: Run, data: cr.RankingData) -> None:
    status, out, err = evaluate("test.txt", "--scores", "a.txt", "--metrics", "ndcg@2,ap", "--metric", "rr")
    assert (status, err) == (0, "")
    table = cr.evaluate(A, data, ["ndcg@2", "ap", "rr"])
    caption, headings, *rows = cells(out)
    assert " ".join(caption) == "a on test.txt: 5 queries, 14 documents"
    assert " ".join(headings) == "metric mean 95 % interval queries"
    assert rows == [
        [name, f"{values.mean:.4f}", f"{values.interval[0]:.4f}", "to", f"{values.interval[1]:.4f}", "5"]
        for name, values in table.items()
    ]


def test_commas_inside_brackets_do_not_part_metrics(evaluate: Run, data: cr.RankingData) -> None:
    names = ["err(max_grade=2, empty=0.5)@2", "0.7*ndcg@10 + 0.3*dcg(gain=[0, 1, 5])@10", "ap"]
    status, out, _ = evaluate("test.txt", "--scores", "a.txt", "--metrics", ", ".join(names), "--json")
    found = json.loads(out)["runs"][0]["metrics"]
    assert (status, [record["metric"] for record in found]) == (0, names)
    table = cr.evaluate(A, data, names)
    assert [record["mean"] for record in found] == [table[name].mean for name in names]


def test_what_is_computed_by_default_is_said(evaluate: Run, folder: Path) -> None:
    _, out, err = evaluate("test.txt", "--scores", "a.txt", "--json")
    names = ["ndcg@10", "ndcg", "precision@10", "rr", "ap"]
    assert [record["metric"] for record in json.loads(out)["runs"][0]["metrics"]] == names
    assert err == f"calirank: judged by {', '.join(names)}; --metrics names others\n"


def test_other_conventions_change_what_a_name_means(evaluate: Run, data: cr.RankingData) -> None:
    _, out, _ = evaluate("test.txt", "--scores", "a.txt", "--metrics", "ndcg@2", "--like", "lightgbm", "--json")
    (record,) = json.loads(out)["runs"][0]["metrics"]
    theirs = cr.metric("ndcg@2", like="lightgbm")
    assert cr.metric(record["metric"]) == theirs != cr.metric("ndcg@2")
    assert record["mean"] == cr.evaluate(A, data, theirs)[theirs].mean
    assert record["mean"] > cr.evaluate(A, data, "ndcg@2")["ndcg@2"].mean  # queries without gain count 1 there


def test_by_default_a_library_has_those_of_the_default_metrics_that_it_has(evaluate: Run) -> None:
    _, _, err = evaluate("test.txt", "--scores", "a.txt", "--like", "trec_eval")
    assert err.count("ndcg") == 2
    status, _, err = evaluate("test.txt", "--scores", "a.txt", "--like", "lucene")
    assert (status, "expected lightgbm, xgboost" in err) == (2, True)


def test_the_level_and_the_kind_of_intervals_can_be_chosen(evaluate: Run, data: cr.RankingData) -> None:
    values = cr.evaluate(A, data, "ap")["ap"]
    base = ["test.txt", "--scores", "a.txt", "--metrics", "ap", "--alpha", "0.2"]
    _, out, _ = evaluate(*base, "--json")
    found = json.loads(out)
    assert found["interval"] == {"level": 0.8, "method": "t"}
    assert [found["runs"][0]["metrics"][0][end] for end in ("low", "high")] == list(values.interval_at(0.8)[:2])
    _, out, _ = evaluate(*base, "--bootstrap", "50", "--seed", "3", "--json")
    found = json.loads(out)
    assert found["interval"] == {"level": 0.8, "method": "bootstrap", "resamples": 50, "seed": 3}
    expected = values.bootstrap(seed=3, resamples=50, level=0.8)[:2]
    assert [found["runs"][0]["metrics"][0][end] for end in ("low", "high")] == list(expected)
    _, out, _ = evaluate(*base, "--bootstrap", "50")
    assert "80 % interval (bootstrap)" in out


def test_the_interval_of_one_query_is_not_known(evaluate: Run, folder: Path) -> None:
    (folder / "one.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    (folder / "s.txt").write_text("1\n2\n")
    status, out, _ = evaluate("one.txt", "--scores", "s.txt", "--metrics", "rr")
    assert (status, cells(out)[-1]) == (0, ["rr", "0.5000", "–", "1"])
    assert "1 query, 2 documents" in out
    _, out, _ = evaluate("one.txt", "--scores", "s.txt", "--metrics", "rr", "--json")
    assert json.loads(out)["runs"][0]["metrics"][0]["low"] is None


# --- several rankings ------------------------------------------------------------------------------------------------


def test_several_rankings_are_compared(evaluate: Run, data: cr.RankingData) -> None:
    runs = ["--scores", "a.txt", "--scores", "theirs=b.txt"]
    status, out, err = evaluate("test.txt", *runs, "--metrics", "ndcg@2,ap")
    assert (status, err) == (0, "")
    printed = cr.compare({"a": A, "theirs": B}, data, ["ndcg@2", "ap"], resamples=0)
    assert cells(out) == [
        ["2", "rankings", "on", "test.txt:", "5", "queries,", "14", "documents"],
        *cells(str(printed)),
    ]
    for options, settings in (
        ([], {"resamples": 0}),
        (["--test", "randomization"], {"test": "randomisation", "resamples": 10_000}),
        (
            ["--resamples", "100", "--seed", "5", "--alpha", "0.3", "--baseline", "theirs"],
            {"resamples": 100, "seed": 5, "alpha": 0.3, "baseline": "theirs"},
        ),
    ):
        _, out, _ = evaluate("test.txt", *runs, "--metrics", "ndcg@2,ap", *options, "--json")
        expected = cr.compare({"a": A, "theirs": B}, data, ["ndcg@2", "ap"], **settings)
        assert json.loads(out)["comparison"] == json.loads(expected.to_json())


def test_rankings_are_called_by_what_tells_them_apart(evaluate: Run, folder: Path) -> None:
    for path in ("x/a.txt.gz", "y/a.txt"):
        (folder / path).parent.mkdir()
        text = (folder / "a.txt").read_bytes()
        (folder / path).write_bytes(gzip.compress(text) if path.endswith("gz") else text)
    (folder / "k=1").mkdir()
    (folder / "k=1" / "s.txt").write_text((folder / "a.txt").read_text())
    (folder / "c=d.txt").write_text((folder / "a.txt").read_text())
    paths = ["b.txt", "x/a.txt.gz", "y/a.txt", "k=1/s.txt", "c=d.txt", "a=b.txt"]
    options = [word for path in paths for word in ("--scores", path)]
    status, out, err = evaluate("test.txt", *options, "--metrics", "ap", "--json")
    assert status == 0, err
    names = [run["run"] for run in json.loads(out)["runs"]]
    assert names == ["b", "a.txt.gz", "a.txt", "s", "c=d", "a"]


def test_the_same_ranking_twice_is_refused(evaluate: Run) -> None:
    for options, message in (
        (["--scores", "a.txt", "--scores", "a.txt"], "a.txt is given twice; NAME=FILE"),
        (["--scores", "x=a.txt", "--scores", "x=b.txt"], "a.txt and b.txt are both called 'x'"),
        (["--score-column", "1", "--score-column", "1"], "column '1' is given twice"),
    ):
        status, out, err = evaluate("test.txt", *options)
        assert (status, out, message in err) == (2, "", True), err


def test_intervals_of_several_rankings_are_shown_when_asked_for(evaluate: Run, data: cr.RankingData) -> None:
    options = ["--scores", "a.txt", "--scores", "b.txt", "--metrics", "ap"]
    assert "interval (bootstrap)" not in evaluate("test.txt", *options)[1]
    _, out, _ = evaluate("test.txt", *options, "--bootstrap", "20")
    low, high, _ = cr.evaluate(B, data, "ap")["ap"].bootstrap(seed=0, resamples=20)
    assert cells(out)[-1] == ["b", f"{low:.4f}", "to", f"{high:.4f}"]


# --- where scores come from ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_of_tables_are_rankings(evaluate: Run, data: cr.RankingData, kind: str) -> None:
    import pyarrow as pa
    from pyarrow import feather, parquet

    query = np.repeat(data.query_ids, SIZES)
    columns = {"grade": LABELS, "query": query, "f": FEATURES[:, 0], "text": IDS, "s": A, "t": B, "price": B + 1}
    table = pa.table({**columns, "lang": np.where(query > 8, "de", "fr"), "w": query.astype(float)})
    write = parquet.write_table if kind == "parquet" else feather.write_feather
    write(table, f"t.{kind}")
    given = [f"t.{kind}", "--y", "grade", "--qid", "query"]
    options = ["--score-column", "s", "--score-column", "f", "--metrics", "ap,dcg(gain=price)@2", "--by", "lang"]
    status, out, err = evaluate(*given, *options, "--json")
    assert status == 0, err
    found = {run["run"]: run["metrics"] for run in json.loads(out)["runs"]}
    priced = data.replace(columns={"price": B + 1, "lang": np.where(query > 8, "de", "fr")})
    for name, scores in (("s", A), ("f", FEATURES[:, 0])):
        expected = cr.evaluate(scores, priced, ["ap", "dcg(gain=price)@2"], by="lang")
        assert [record["mean"] for record in found[name]] == [values.mean for values in expected.values()]
        segments = {record["segment"]: record["mean"] for record in found[name][0]["segments"]}
        assert segments == {segment: part["ap"].mean for segment, part in expected.segments.items()}
    for wrong, message in (
        (["--score-column", "u"], f"error: --score-column: t.{kind} has no column 'u'"),
        (["--score-column", "s", "--by", "u"], f"error: --by: t.{kind} has no column 'u'"),
        (["--score-column", "s", "--metrics", "dcg(gain=u)"], f"error: dcg(gain=u): t.{kind} has no column 'u'"),
        (["--score-column", "text"], "error: --score-column: column 'text' does not hold numbers"),
        (["--score-column", "s", "--query-weighted"], "error: --query-weighted: t."),
    ):
        status, out, err = evaluate(*given, *wrong)
        assert (status, out, message in err) == (2, "", True), err
    weighted = priced.replace(query_weight=data.query_ids.astype(float))
    for runs in (["s"], ["s", "f"]):
        chosen = [word for name in runs for word in ("--score-column", name)]
        _, out, _ = evaluate(*given, *chosen, "--metrics", "ap", "-o", "query_weight=w", "--query-weighted", "--json")
        found = json.loads(out)
        values = cr.evaluate(A, weighted, "ap")["ap"]
        (record,) = found["runs"][0]["metrics"]
        assert (record["weighted_mean"], record["low"]) == (
            values.weighted_mean,
            values.interval_at(0.95, weighted=True).low,
        )
        assert values.weighted_mean != values.mean
        assert "mean" not in record
    expected = cr.compare({"s": A, "f": FEATURES[:, 0]}, weighted, "ap", weighted=True, resamples=0)
    assert found["comparison"] == json.loads(expected.to_json())


def test_files_of_the_library_know_their_columns_and_weights(evaluate: Run, data: cr.RankingData) -> None:
    weight = np.arange(1.0, 15)
    whole = data.replace(columns={"s": A, "price": B}, doc_weight=weight, feature_names=["u", "v", "w"])
    cr.write_parquet(whole, "t.parquet")
    whole.save("saved")
    cr.write_npz(whole, "t.npz")
    names = ["dcg(gain=price)@2", "dcg(weight=doc_weight)"]
    expected = [
        [values.mean for values in cr.evaluate(scores, whole, names).values()] for scores in (A, FEATURES[:, 1])
    ]
    for path in ("t.parquet", "saved", "t.npz"):
        options = ["--score-column", "s", "--score-column", "v", "--metrics", ",".join(names), "--json"]
        status, out, err = evaluate(path, *options)
        assert status == 0, err
        assert [[one["mean"] for one in run["metrics"]] for run in json.loads(out)["runs"]] == expected


def test_a_feature_of_letor_text_is_a_ranking(evaluate: Run, data: cr.RankingData) -> None:
    _, out, _ = evaluate("test.txt", "--score-column", "2", "--scores", "a.txt", "--metrics", "ap", "--json")
    files, feature = json.loads(out)["runs"]
    assert (files["run"], feature["run"]) == ("a", "feature 2")
    assert feature["metrics"][0]["mean"] == cr.evaluate(FEATURES[:, 1], data, "ap")["ap"].mean
    status, _, err = evaluate("test.txt", "--score-column", "4")
    assert (status, "has no column '4'; its features are 1 to 3" in err) == (2, True), err


def test_scores_belong_to_the_rows_of_the_file_where_rows_are_grouped(evaluate: Run, folder: Path) -> None:
    (folder / "mixed.txt").write_text("1 qid:1 1:1\n2 qid:2 1:2\n0 qid:1 1:3\n1 qid:2 1:4\n")
    (folder / "s.txt").write_text("1\n2\n3\n4\n")
    options = ["--metrics", "ndcg@1,dcg@1", "--group-rows"]
    _, by_file, _ = evaluate("mixed.txt", "--scores", "s.txt", *options, "-q")
    assert by_file == "query\tndcg@1\tdcg@1\n1\t0.0\t0.0\n2\t0.3333333333333333\t1.0\n"
    _, by_column, _ = evaluate("mixed.txt", "--score-column", "1", *options, "-q")
    assert by_column == by_file
    (folder / "s.txt").write_text("1\nx\n3\n4\n")
    _, _, err = evaluate("mixed.txt", "--scores", "s.txt", *options)
    assert "s.txt:2: expected a number, got 'x' (query 2, document 0)" in err


def test_several_files_of_data_are_one_set(evaluate: Run, folder: Path) -> None:
    (folder / "more.txt").write_text("1 qid:99 1:1\n")
    (folder / "all.txt").write_text((folder / "a.txt").read_text() + "0.25\n")
    _, out, _ = evaluate("test.txt", "more.txt", "--scores", "all.txt", "--metrics", "ap")
    assert "all on test.txt and 1 more: 6 queries, 15 documents" in out


def test_runs_are_matched_with_judgements_by_ids(evaluate: Run, folder: Path, data: cr.RankingData) -> None:
    cr.write_qrels(data, "judgements.2024")  # recognised by what it says
    query = np.repeat(data.query_ids, SIZES)
    for name, tag, scores in (("a", "bm25", A), ("b", "bm25", B), ("c", "neural", B)):
        cr.write_run(cr.Run(query, IDS, scores, name=tag), f"{name}.run")
    cr.write_run(cr.Run([*query[:-2], 99], [*IDS[:-2], "x"], [*A[:-2], 1.0], name="part"), "part.run")
    runs = ["a.run", "b.run", "c.run", "mine=part.run"]
    options = [word for path in runs for word in ("--run", path)]
    status, out, err = evaluate("judgements.2024", *options, "--scores", "b.txt", "--metrics", "ndcg@2,ap", "--json")
    assert status == 0, err
    found = json.loads(out)
    assert [run["run"] for run in found["runs"]] == ["b.txt", "a", "b.run", "neural", "mine"]
    whole = json.loads(
        cr.compare(
            {"b.txt": B, "a": A, "b.run": B, "neural": B, "mine": cr.read_run("part.run")},
            data,
            ["ndcg@2", "ap"],
            resamples=0,
        ).to_json()
    )
    missed, unknown = whole.pop("remarks")
    assert missed == "mine: 1 query is not in the run and has the lowest value: 12"
    assert unknown == "mine: 1 query of the run is not in the data and left out: 99"
    del found["comparison"]["remarks"]  # the command tells them beside the comparison
    assert found["comparison"] == whole
    assert (found["runs"][-1]["missed"], found["runs"][-1]["unknown"]) == ([12], [99])
    lines = err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("calirank: mine: 1 quer") for line in lines)
    _, _, err = evaluate("judgements.2024", "--run", "part.run", "--metrics", "ap")
    assert [line.partition(" quer")[0] for line in err.splitlines()] == ["calirank: 1", "calirank: 1"]
    status, _, err = evaluate("judgements.2024", "--format", "qrels", "--run", "a.run", "--metrics", "ap")
    assert (status, err) == (0, "")


def test_runs_that_do_not_fit_are_refused(evaluate: Run, folder: Path, data: cr.RankingData) -> None:
    cr.write_qrels(data, "t.qrels")
    (folder / "twice.run").write_text("7 Q0 d0 1 2 t\n7 Q0 d1 2 1 t\n7 Q0 d0 3 0 t\n")
    (folder / "other.run").write_text("70 Q0 d0 1 2 t\n")
    for paths, message in (
        (["t.qrels", "--run", "twice.run"], "error: twice.run:3: query 7 has document d0 already in line 1"),
        (
            ["t.qrels", "--run", "other.run"],
            "error: other.run has none of the 5 queries of the data: its first is '70'",
        ),
        (
            ["test.txt", "--run", "other.run"],
            "error: --run: a run names its documents, and test.txt has no document ids",
        ),
        (["test.txt", "--scores", "a.txt", "--run", "other.run"], "give scores of its 14 documents by --scores"),
        (
            ["other.run", "--run", "other.run"],
            "error: other.run: expected the scores of a ranking, got the data itself",
        ),
    ):
        status, out, err = evaluate(*paths, "--metrics", "ap")
        assert (status, out, message in err) == (2, "", True), err


def test_missing_judgements_can_be_bounded(evaluate: Run, folder: Path, data: cr.RankingData) -> None:
    cr.write_qrels(data, "t.qrels")
    (folder / "x.run").write_text("".join(f"{query} Q0 new 1 2 t\n" for query in (7, 8, 9, 11, 12)))
    name = "precision(unjudged=bounds)@1"
    options = ["t.qrels", "--run", "x.run", "--metrics", f"{name},rr"]
    _, out, _ = evaluate(*options)
    assert cells(out)[1][-1] == "bounds"
    assert cells(out)[2][-3:] == ["0.0000", "to", "1.0000"]
    assert cells(out)[3][-1] == "–"
    _, out, _ = evaluate(*options, "-q")
    assert out.splitlines()[:2] == [f"query\t{name} lower\t{name} upper\trr", "7\t0.0\t1.0\t0.0"]
    _, out, _ = evaluate(*options, "--output-format", "csv")
    first, second = csv.DictReader(io.StringIO(out))
    assert (first["lower_bound"], first["upper_bound"]) == ("0.0", "1.0")
    assert (second["lower_bound"], second["upper_bound"]) == ("", "")


def test_standard_input_is_scores_or_data(
    evaluate: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, data: cr.RankingData
) -> None:
    mean = f"{cr.evaluate(A, data, 'ap')['ap'].mean:.4f}"
    for name, options, caption in (
        ("a.txt", ["test.txt", "--scores", "-"], "stdin on test.txt"),
        ("a.txt", ["test.txt", "--scores", "mine=-"], "mine on test.txt"),
        ("test.txt", ["-", "--format", "letor", "--scores", "a.txt"], "a on <stdin>"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / name).read_bytes())))
        status, out, err = evaluate(*options, "--metrics", "ap")
        assert status == 0, err
        assert caption in out
        assert mean in out
    status, _, err = evaluate("-", "--format", "letor", "--scores", "-")
    assert (status, "standard input is asked for twice" in err) == (2, True)


numbers = st.floats(allow_nan=False, allow_infinity=False)
written = st.one_of(numbers.map(repr), numbers.map("{:.6g}".format).filter(lambda text: math.isfinite(float(text))))


@given(
    texts=st.lists(written, min_size=1, max_size=20),
    end=st.sampled_from(["\n", "\r\n", " \n"]),
    blanks=st.sampled_from(["", "\n", "\r\n\n"]),
    mark=st.booleans(),
    zipped=st.booleans(),
)
def test_scores_are_read_as_python_reads_floats(
    texts: list[str], end: str, blanks: str, mark: bool, zipped: bool
) -> None:
    held = cr.RankingData(y=np.zeros(len(texts)), sizes=[len(texts)])
    text = (b"\xef\xbb\xbf" if mark else b"") + (end.join(texts) + blanks).encode()
    found = command.read_scores(io.BytesIO(gzip.compress(text) if zipped else text), held)
    assert found.tobytes() == np.array([float(text) for text in texts]).tobytes()


# --- what is wrong with scores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x", "a.txt:4: expected a number, got 'x' (query 8, document 0)"),
        ("nan", "a.txt:4: expected a finite number, got 'nan' (query 8, document 0)"),
        ("-Infinity", "a.txt:4: expected a finite number, got '-Infinity' (query 8, document 0)"),
        ("1e999", "a.txt:4: expected a finite number, got '1e999' (query 8, document 0)"),
        ("", "a.txt:4: expected a number, got a blank line (query 8, document 0)"),
        ("1_0", "a.txt:4: expected a number, got '1_0' (query 8, document 0)"),
        ("1\t2", "a.txt:4: expected a number, got '1\\t2' (query 8, document 0)"),
        ("1\0", "a.txt:4: expected a number, got '1\\x00' (query 8, document 0)"),
        ("7 Q0 d 1 0.5 t", "(query 8, document 0); a TREC run is given by --run"),
        ("y" * 1000, f"a.txt:4: expected a number, got '{'y' * 60}…' (query 8, document 0)"),
    ],
)
def test_what_is_no_score_is_named_with_its_place(evaluate: Run, folder: Path, line: str, message: str) -> None:
    lines = (folder / "a.txt").read_text().splitlines()
    lines[3] = line
    (folder / "a.txt").write_text("\n".join(lines) + "\n")
    status, out, err = evaluate("test.txt", "--scores", "a.txt")
    assert (status, out) == (2, "")
    assert err.startswith("calirank: error: a.txt:4: expected a")
    assert err.endswith(f"{message}\n")


def test_the_number_of_scores_is_that_of_documents(evaluate: Run, folder: Path) -> None:
    text = (folder / "a.txt").read_text()
    for changed, message in (
        (text.rpartition("\n")[0].rpartition("\n")[0], "got 13; the first without one is query 12, document 1"),
        (text + "1\n1\n", "got 16"),
        ("", "got an empty file"),
        ("\n \n", "got an empty file"),
    ):
        (folder / "a.txt").write_text(changed)
        status, _, err = evaluate("test.txt", "--scores", "b.txt", "--scores", "a.txt")
        assert status == 2
        assert err == f"calirank: error: a.txt: expected a score for each of 14 documents, {message}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "no ranking to judge: give --scores FILE"),
        (["--scores", "nothing.txt"], "no such file: nothing.txt"),
        (["--scores", "test.txt"], "test.txt: expected the scores of a ranking, got the data itself"),
        (["--scores", "./x/../test.txt"], "test.txt: expected the scores of a ranking, got the data itself"),
        (["--scores", "."], ".: expected a file, got a directory"),
        (["--scores", "a.txt", "--metrics", "ndgc@10"], "Did you mean 'ndcg'?"),
        (["--scores", "a.txt", "--metrics", " ,"], "--metrics: expected names such as"),
        (["--scores", "a.txt", "--metrics", "ap,ap"], "--metrics: 'ap' is named twice"),
        (["--scores", "a.txt", "--metrics", "err(max_grade=1)"], "test.txt: err(max_grade=1): expected labels"),
        (["--scores", "a.txt", "--metrics", "dcg(gain=price)"], "test.txt: dcg(gain=price): the data has no column"),
        (["--scores", "a.txt", "--by", "lang"], "error: --by: the data has no column 'lang'"),
        (["--scores", "a.txt", "--baseline", "b"], "--baseline: expected at least two rankings"),
        (["--scores", "a.txt", "--scores", "b.txt", "--baseline", "bb"], "--baseline: expected one of a, b; got 'bb'"),
        (["--scores", "a.txt", "--alpha", "1"], "--alpha: expected a number between 0 and 1, got 1.0"),
        (["--scores", "a.txt", "--query-weighted"], "--query-weighted: test.txt has no query weights"),
        (["--scores", "a.txt", "--json", "--output-format", "csv"], "--json and --output-format csv ask for two"),
        (["--scores", "a.txt", "--output-format", "html"], "expected table, markdown, csv, tsv or json"),
        (["--scores", "a.txt", "--test", "wilcoxon"], "expected t or randomisation"),
        (["--scores", "a.txt", "--doc-id", "x"], "letor has no option --doc-id"),
        (["--scores", "a.txt", "--out", "test.txt"], "--out: test.txt is read by this command"),
        (["--scores", "a.txt", "--out", "a.txt"], "--out: a.txt is read by this command"),
        (["--scores", "a.txt", "--out", "no/a.txt"], "no/a.txt: expected its folder to be there"),
        (
            ["--scores", "a.txt", "--scores", "b.txt", "--test", "randomisation", "--resamples", "0"],
            "--resamples: expected at least 1",
        ),
    ],
)
def test_errors_name_the_options(evaluate: Run, folder: Path, options: list[str], message: str) -> None:
    (folder / "x").mkdir()
    before = {path.name: path.read_bytes() for path in folder.glob("*.txt")}
    status, out, err = evaluate("test.txt", *options)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert {path.name: path.read_bytes() for path in folder.glob("*.txt")} == before


def test_a_column_that_lacks_a_number_is_refused(evaluate: Run, data: cr.RankingData) -> None:
    cr.write_npz(data.replace(columns={"s": np.where(A > 0.85, np.nan, A)}), "t.npz")
    status, _, err = evaluate("t.npz", "--score-column", "s")
    assert (status, "column 's': expected a finite number, got nan for query 7, document 0 (d0)" in err) == (2, True), (
        err
    )
    status, _, err = evaluate("t.npz", "--score-column", "z")
    assert (status, "has no column 'z'" in err) == (2, True), err


# --- segments and queries --------------------------------------------------------------------------------------------


def test_segments_of_the_queries(evaluate: Run, data: cr.RankingData) -> None:
    expected = cr.evaluate(A, data, ["ap", "rr"], by="length")
    one = ["test.txt", "--scores", "a.txt", "--metrics", "ap,rr", "--by", "length"]
    _, out, _ = evaluate(*one)
    lines = [" ".join(line) for line in cells(out)]
    start = lines.index("rr by length mean 95 % interval queries")
    assert [line.split()[0] for line in lines[start + 1 :]] == ["all", "2", "3", "4"]
    assert [line.split()[1] for line in lines[start + 2 :]] == [
        f"{expected.segments[length]['rr'].mean:.4f}" for length in (2, 3, 4)
    ]
    _, out, _ = evaluate(*one, "--scores", "b.txt")
    lines = [" ".join(line) for line in cells(out)]
    start = lines.index("ap by length queries a b")
    other = cr.evaluate(B, data, "ap", by="length")
    assert lines[start + 2] == (
        f"2 2 {expected.segments[2]['ap'].mean:.4f} {other.segments[2]['ap'].mean:.4f}"  # two queries of two
    )
    _, out, _ = evaluate(*one, "--scores", "b.txt", "--output-format", "csv")
    records = list(csv.DictReader(io.StringIO(out)))
    assert len(records) == 2 * 2 * 4
    assert [record["segment"] for record in records[::2]] == ["all", "2", "3", "4"] * 2
    (found,) = [r for r in records if (r["run"], r["metric"], r["segment"]) == ("a", "rr", "4")]
    assert float(found["mean"]) == expected.segments[4]["rr"].mean
    assert found["low"] == found["high"] == ""


def test_segments_can_be_dates(evaluate: Run, data: cr.RankingData) -> None:
    days = np.repeat(np.array(["2024-05-01", "2024-05-01", "2024-06-01", "2024-06-01", "2024-06-02"], "M8[D]"), SIZES)
    cr.write_npz(data.replace(columns={"day": days, "s": A}), "t.npz")
    options = ["t.npz", "--score-column", "s", "--metrics", "ap", "--by", "day"]
    status, out, err = evaluate(*options, "--json")
    assert status == 0, err
    segments = json.loads(out)["runs"][0]["metrics"][0]["segments"]
    assert [(part["segment"], part["queries"]) for part in segments] == [
        ("2024-05-01", 2),
        ("2024-06-01", 2),
        ("2024-06-02", 1),
    ]
    assert "2024-06-02" in evaluate(*options)[1]


@pytest.mark.parametrize(("kind", "metric"), [("rankings", "kendall"), ("preferences", "pd")])
def test_what_is_computed_by_default_depends_on_the_supervision(evaluate: Run, kind: str, metric: str) -> None:
    if kind == "rankings":
        held = cr.RankingData(rankings=cr.Rankings([[0, 1, 2], [1, 0]], query=[0, 1]), sizes=[3, 2])
    else:
        held = cr.RankingData(preferences=cr.Preferences([0, 1, 1], [1, 2, 0], query=[0, 0, 1]), sizes=[3, 2])
    held.replace(columns={"s": np.arange(5.0)}).save("judged")
    status, out, err = evaluate("judged", "--score-column", "s", "--json")
    assert (status, f"judged by {metric}" in err) == (0, True), err
    (record,) = json.loads(out)["runs"][0]["metrics"]
    assert record["mean"] == cr.evaluate(np.arange(5.0), held, metric)[metric].mean


def test_one_line_a_query(evaluate: Run, folder: Path, data: cr.RankingData) -> None:
    name = "ap(empty=skip)"
    ours, theirs = (cr.evaluate(scores, data, [name, "rr"]) for scores in (A, B))
    options = ["test.txt", "--scores", "a.txt", "--metrics", f"{name},rr"]
    _, out, err = evaluate(*options, "-q")
    headings, *rows = (line.split("\t") for line in out.splitlines())
    assert headings == ["query", name, "rr"]
    assert [row[0] for row in rows] == ["7", "8", "9", "11", "12"]
    assert [float(row[1] or "nan") for row in rows[:4]] == ours[name].per_query[:4].tolist()
    assert rows[4] == ["12", "", "0.0"]
    assert err == f"calirank: {name} skips 1 of 5 queries, where it is undefined\n"
    both = [*options, "--scores", "b.txt", "--per-query"]
    status, out, err = evaluate(*both, "--out", "queries.csv")
    assert (status, "2 rankings on" in out, "wrote queries.csv" in err) == (0, True, True)
    records = list(csv.DictReader(io.StringIO((folder / "queries.csv").read_text())))
    assert list(records[0]) == ["query", f"a:{name}", "a:rr", f"b:{name}", "b:rr"]
    assert [float(record["b:rr"]) for record in records] == theirs["rr"].per_query.tolist()
    _, out, _ = evaluate(*both, "--json")
    found = json.loads(out)
    assert found["query_ids"] == [7, 8, 9, 11, 12]
    assert found["runs"][0]["per_query"][name] == [*ours[name].per_query[:4].tolist(), None]
    _, out, _ = evaluate(*options, "-q", "--output-format", "markdown")
    assert out.splitlines()[-1] == "| 12 | – | 0.0000 |"


# --- forms of output -------------------------------------------------------------------------------------------------


def test_the_ending_of_the_file_tells_the_form(evaluate: Run, folder: Path, data: cr.RankingData) -> None:
    options = ["test.txt", "--scores", "a.txt", "--scores", "b.txt", "--metrics", "ap,rr", "--by", "length"]
    texts = {}
    for name in ("r.txt", "r.md", "r.csv", "r.tsv", "r.json", "r.json.gz"):
        status, out, err = evaluate(*options, "--out", name)
        assert (status, out, err) == (0, "", f"calirank: wrote {name}\n")
        read = (folder / name).read_bytes()
        texts[name] = (gzip.decompress(read) if name.endswith("gz") else read).decode()
    assert texts["r.json"] == texts["r.json.gz"] == evaluate(*options, "--json")[1]
    assert texts["r.csv"] == texts["r.tsv"].replace("\t", ",")
    assert texts["r.md"] == evaluate(*options, "--output-format", "Markdown")[1]
    assert cells(texts["r.txt"])[:1] == cells(evaluate(*options)[1])[:1]
    assert texts["r.md"].count("| --- |") == 2  # a table of segments for each metric
    assert "| a | a | " in texts["r.md"]
    _, out, err = evaluate(*options, "--out", "-", "--output-format", "csv")
    assert (out, err) == (texts["r.csv"], "")
    evaluate(*options, "--out", "r.csv", "--output-format", "json")
    assert (folder / "r.csv").read_text() == texts["r.json"]


def test_an_error_leaves_the_old_output(evaluate: Run, folder: Path) -> None:
    (folder / "r.csv").write_text("old")
    assert evaluate("test.txt", "--scores", "a.txt", "--out", "r.csv", "--metrics", "err(max_grade=1)")[0] == 2
    assert (folder / "r.csv").read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt", "r.csv", "test.txt"]


def test_marks_are_in_every_form(evaluate: Run, folder: Path) -> None:
    rows = range(40)
    (folder / "long.txt").write_text("".join(f"{label} qid:{row} 1:{row + 1}\n" for row in rows for label in (1, 0)))
    (folder / "good.txt").write_text("2\n1\n" * 40)
    (folder / "bad.txt").write_text("1\n2\n" * 39 + "2\n1\n")
    options = ["long.txt", "--scores", "good.txt", "--scores", "bad.txt", "--metrics", "rr"]
    assert ["a", "good", "1.0000", "b"] in cells(evaluate(*options)[1])
    assert "**1.0000**<sup>b</sup>" in evaluate(*options, "--output-format", "markdown")[1]
    good, bad = csv.DictReader(io.StringIO(evaluate(*options, "--output-format", "csv")[1]))
    assert (good["better_than"], bad["better_than"]) == ("bad", "")


# --- the process -----------------------------------------------------------------------------------------------------


def started(*arguments: object) -> subprocess.Popen[str]:
    call = [sys.executable, "-m", "calirank", "evaluate", *map(str, arguments)]
    return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_it_loads_no_heavy_module(folder: Path) -> None:
    """Not even for several rankings with intervals and both tests."""
    options = ["--scores", "b.txt", "--metrics", "ndcg@2,ap,err", "--test", "randomisation", "--by", "length"]
    arguments = ["calirank", "evaluate", "test.txt", "--scores", "a.txt", *options]
    code = (
        f"import sys; sys.argv = {arguments!r}; from calirank import cli\n"
        "try: cli.main()\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        "print([name for name in ('scipy.stats', 'sklearn', 'lightgbm', 'pandas', 'pyarrow', 'torch')"
        " if name in sys.modules])\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-2:] == ["[]", "True"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_ctrl_c_while_scores_are_read_ends_the_command_with_a_word(folder: Path) -> None:
    os.mkfifo("pipe")
    with started("test.txt", "--scores", "pipe") as process, Path("pipe").open("w"):  # both ends are open now
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "calirank: interrupted"
    assert "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of this system do not say that nobody reads")
@pytest.mark.parametrize("options", [[], ["-q"], ["--json"], ["--output-format", "csv"]])
def test_where_nobody_reads_the_command_ends_as_by_sigpipe(folder: Path, options: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    call = [sys.executable, "-m", "calirank", "evaluate", "test.txt", "--scores", "a.txt", "--metrics", "ap", *options]
    process = subprocess.run(call, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert process.returncode == 141
    assert [line for line in process.stderr.splitlines() if "preparing (once)" not in line] == []


def test_the_help_names_the_options() -> None:
    with started("--help") as process:
        out, _ = process.communicate(timeout=60)
    for word in (
        "--scores",
        "--score-column",
        "--run",
        "--metrics",
        "--metric",
        "--per-query",
        "-q",
        "--like",
        "--out",
    ):
        assert word in out


def test_the_demonstration_can_be_judged_again(evaluate: Run, folder: Path) -> None:
    from calirank.demo import run_demo

    result = run_demo(folder / "demo", queries=20)
    _, out, _ = evaluate("demo/test.txt", "--scores", "demo/scores.txt", "--metrics", result.metric, "--json")
    assert json.loads(out)["runs"][0]["metrics"][0]["mean"] == next(iter(result.means.values()))


def test_the_libraries_of_the_option_are_those_of_the_profiles() -> None:
    """The command names them without loading the profiles."""
    assert tuple(PROFILES) == cli._LIKE
