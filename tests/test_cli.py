"""The command: what it prints, what it writes, and how it says that something is wrong."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calirank as cr
from calirank import _kernel, cli, demo

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True, scope="module")
def kernels_are_compiled() -> None:
    """So that no command but the one that is asked says that it prepares."""
    cr.describe(cr.read_letor(io.BytesIO(b"1 qid:1 1:0.5\n")))


@pytest.fixture
def calirank(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process; gives its exit status, output and errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["calirank", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        status = 0
        try:
            cli.main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    yield run
    cr.set_threads(None)


@pytest.fixture
def letor(tmp_path: Path) -> Path:
    path = tmp_path / "train.txt"
    path.write_text("1 qid:1 1:0.5 2:3\n0 qid:1 1:0.25 2:3\n0 qid:2 1:1 2:3\n")
    return path


def test_the_command_is_installed_and_shows_its_help() -> None:
    shown = subprocess.run([sys.executable, "-m", "calirank", "--help"], capture_output=True, text=True, check=True)
    for word in ("demo", "describe", "convert", "--threads"):
        assert word in shown.stdout
    version = subprocess.run(
        [sys.executable, "-m", "calirank", "--version"], capture_output=True, text=True, check=True
    )
    assert version.stdout == f"calirank {cr.__version__}\n"


def test_describe_prints_what_the_library_counts(calirank: Run, letor: Path) -> None:
    status, out, err = calirank("describe", letor)
    assert (status, err) == (0, "")
    printed = [line.split(None, 0)[0].rstrip() for line in out.splitlines() if line.strip()]
    for heading, text in cr.describe(cr.read_letor(letor)).rows():
        assert any(line.startswith(heading) and line.endswith(text) for line in printed), heading
    status, out, _ = calirank("describe", letor, "--json")
    assert json.loads(out)["constant_features"] == ["2"]
    assert json.loads(out)["all_zero_queries"] == 1


def test_describe_reads_several_files_as_one_set(calirank: Run, letor: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("0 qid:7 1:1\n")
    _, out, _ = calirank("describe", letor, tmp_path / "more.txt", "--json")
    assert json.loads(out)["queries"] == 3


def test_options_of_the_text_reach_the_reader(calirank: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.txt"
    path.write_text("1 qid:1 0:5 1:1\n0 qid:2 0:1\n2 qid:1 0:1\n")
    assert calirank("describe", path)[0] == 2
    status, _, err = calirank("describe", path, "--base", "0")
    assert status == 2
    assert err.endswith("; --group-rows brings them together\n")
    status, out, _ = calirank("describe", path, "--base", "auto", "--group-rows", "--json")
    assert status == 0
    assert json.loads(out)["queries"] == 2
    status, _, err = calirank("describe", path, "--base", "7")
    assert status == 2
    assert "'--base': expected 0, 1 or auto, got \"7\"" in err


def test_options_of_tables_name_their_columns(calirank: Run, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = pa.table({"query": [1, 1, 2], "grade": [1, 0, 2], "page": ["a", "b", "a"], "bm25": [0.5, 0.25, 1]})
    parquet.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, tmp_path / "a.feather")
    for name in ("a.parquet", "a.feather"):
        assert calirank("describe", tmp_path / name)[0] == 2
        given = ["--qid", "query", "--y", "grade", "--doc-id", "page"]
        status, out, err = calirank("describe", tmp_path / name, *given, "--json")
        assert (status, err) == (0, "")
        assert json.loads(out)["labels"] == {"0": 1, "1": 1, "2": 1}
        assert calirank("convert", tmp_path / name, tmp_path / "b.npz", *given)[0] == 0
        assert cr.read(tmp_path / "b.npz").doc_ids.tolist() == ["a", "b", "a"]
    parquet.write_table(table.drop(["page", "grade"]), tmp_path / "b.parquet")
    status, _, err = calirank("describe", tmp_path / "b.parquet", "--qid", "query")
    assert (status, '--y "" is data without labels' in err) == (2, True)
    status, out, _ = calirank("describe", tmp_path / "b.parquet", "--qid", "query", "--y", "", "--json")
    assert (status, json.loads(out)["supervision"]) == (0, None)


def test_sizes_of_queries_come_from_files(calirank: Run, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("1 1:0.5\n0 1:0.25\n0 1:1\n")
        (tmp_path / f"{name}.sizes").write_text("2\n1\n")
    status, _, err = calirank("describe", tmp_path / "a.txt")
    assert (status, "must come from --groups or a .query file" in err) == (2, True)
    _, out, _ = calirank("describe", tmp_path / "a.txt", "--groups", tmp_path / "a.sizes", "--json")
    assert json.loads(out)["queries"] == 2
    files = [tmp_path / "a.txt", tmp_path / "b.txt", "--groups", tmp_path / "a.sizes", "--groups", tmp_path / "b.sizes"]
    _, out, _ = calirank("describe", *files, "--json")
    assert json.loads(out)["queries"] == 4


def test_options_that_a_format_does_not_have_are_refused(calirank: Run, letor: Path, tmp_path: Path) -> None:
    data = cr.read_letor(letor)
    cr.write(data, tmp_path / "a.parquet")
    data.save(tmp_path / "folder")
    for path, options, message in (
        ("a.parquet", ["--base", "0"], "parquet has no option --base; it has --y, --qid, --doc-id, --group-rows; with"),
        ("folder", ["--group-rows"], "folder has no option --group-rows; it has none; with -o: memory_map\n"),
        ("train.txt", ["--doc-id", "x"], "letor has no option --doc-id; it has --base, --groups, --group-rows; with"),
        (
            "train.txt",
            ["-o", "form=x"],
            "letor has no option form=; it has --base, --groups, --group-rows; with -o: n_f",
        ),
    ):
        for arguments in (["describe", tmp_path / path], ["convert", tmp_path / path, tmp_path / "out.npz"]):
            status, _, err = calirank(*arguments, *options)
            assert (status, f"the format {message}" in err) == (2, True), err
    status, _, err = calirank("describe", tmp_path / "a.parquet", "--base", "banana")
    assert (status, "expected 0, 1 or auto" in err) == (2, True)


def test_every_option_of_a_reader_can_be_given(calirank: Run, tmp_path: Path) -> None:
    (tmp_path / "games.csv").write_text("home,away,result\nHull,Stoke,1\nStoke,Hull,0\n")
    options = ["--format", "preferences", "-o", "form=results", "-o", "a=home", "-o", "b=away", "-o", "coding=signed"]
    _, out, err = calirank("describe", tmp_path / "games.csv", *options, "--json")
    assert err == ""
    assert json.loads(out)["judged_entries"] == 2
    (tmp_path / "quiz.csv").write_text("A,B,C,D\n1,2,2,1\n")
    given = ["--from", "rankings", "--option", "form=ranks", "-o", "blocks=[2, 2]", "--to", "preflib"]
    status, _, err = calirank("convert", tmp_path / "quiz.csv", f"{tmp_path / 'votes'}/", *given)
    assert status == 0, err
    assert sorted(path.name for path in (tmp_path / "votes").iterdir()) == ["0.soc", "1.soc"]
    _, out, _ = calirank("describe", tmp_path / "votes", "--json")  # the folder reads back
    assert json.loads(out)["queries"] == 2
    for wrong in ("form", "=counts"):
        status, _, err = calirank("describe", tmp_path / "games.csv", "--format", "preferences", "-o", wrong)
        assert (status, "an option is NAME=VALUE" in err) == (2, True)


def test_options_of_the_writer_can_be_given(calirank: Run, letor: Path, tmp_path: Path) -> None:
    status, _, err = calirank("convert", letor, tmp_path / "lgb.txt", "--to-option", "groups=true")
    assert status == 0, err
    assert (tmp_path / "lgb.txt.query").read_text() == "2\n1\n"
    _, out, _ = calirank("describe", tmp_path / "lgb.txt", "--json")
    assert json.loads(out)["queries"] == 2
    status, _, err = calirank("convert", letor, tmp_path / "lgb.txt", "--to-option", "group=true")
    assert (status, "has no option 'group'" in err) == (2, True), err


def test_files_that_are_read_at_random_are_not_compressed(calirank: Run, letor: Path, tmp_path: Path) -> None:
    for name in ("a.npz.gz", "a.parquet.zst", "a.arrow.xz"):
        status, _, err = calirank("convert", letor, tmp_path / name)
        assert (status, "is not compressed as a whole; leave out ." in err) == (2, True), err
    assert [path.name for path in tmp_path.iterdir()] == ["train.txt"]


def test_errors_name_the_options_of_the_command(calirank: Run, letor: Path, tmp_path: Path) -> None:
    csv = tmp_path / "format=x" / "a.csv"
    csv.parent.mkdir()
    csv.write_text("a,b\n")
    cr.write(cr.read_letor(letor).replace(feature_names=["u", "v"], query_weight=[1, 2]), tmp_path / "a.npz")
    for arguments, message in (
        (["describe", csv], f"{csv}: the ending .csv can be several formats, give --format: rankings"),
        (["convert", csv, tmp_path / "out.npz"], "give --from: rankings"),
        (["convert", letor, tmp_path / "out.csv"], "give --to: rankings"),
        (["convert", letor, tmp_path / "out.parqet"], "Did you mean '.parquet'? Give --to, one of letor"),
        (["describe", "-"], "<stdin>: what is no path has no ending; give --format, one of letor"),
        (["convert", tmp_path / "a.npz", tmp_path / "a.txt"], "--drop feature_names,query_weight leaves out what"),
    ):
        status, _, err = calirank(*arguments)
        assert (status, message in err) == (2, True), err
    assert calirank("convert", tmp_path / "a.npz", tmp_path / "a.txt", "--drop", "feature_names,query_weight")[0] == 0


def test_a_run_is_for_another_function(calirank: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("q Q0 d 1 0.5 tag\n")
    status, _, err = calirank("describe", tmp_path / "a.txt")
    assert (status, "cr.read_run(path) reads it" in err) == (2, True)


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow", "out.npz", "out.txt.gz", "folder"])
def test_convert_there_and_back_loses_nothing(calirank: Run, letor: Path, tmp_path: Path, name: str) -> None:
    options = ["--to", "folder"] if name == "folder" else []
    status, _, err = calirank("convert", letor, tmp_path / name, *options)
    assert status == 0, err
    assert "wrote RankingData(2 queries, 3 documents, 2 features, grades)" in err
    status, _, err = calirank("convert", tmp_path / name, tmp_path / "back.txt")
    assert status == 0, err
    back = cr.read_letor(tmp_path / "back.txt")
    original = cr.read_letor(letor)
    np.testing.assert_array_equal(back.X, original.X)
    np.testing.assert_array_equal(back.y, original.y)
    assert back.query_ids.tolist() == original.query_ids.tolist()


def test_errors_are_one_line_and_status_2(calirank: Run, letor: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("1 qid:1 1:0.5\n1 qid:1 1:x\n")
    for arguments, message in (
        (["describe", bad], f"{bad}:2:"),
        (["describe", tmp_path / "nothing.txt"], "no such file"),
        (["describe", tmp_path], "folder"),
        (["convert", letor], "at least one input and the output"),
        (["describe", letor, "--format", "lettor"], "Did you mean 'letor'"),
    ):
        status, out, err = calirank(*arguments)
        assert status == 2, arguments
        assert out == ""
        assert message in err, (arguments, err)
        assert err.startswith("calirank: error: ")
        assert "Traceback" not in err
    half = tmp_path / "half.txt.gz"
    half.write_bytes(gzip.compress(b"1 qid:1 1:0.5\n" * 5000)[:60])
    status, _, err = calirank("describe", half)
    assert status == 2
    assert str(half) in err


def test_a_traceback_is_shown_when_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["calirank", "--traceback", "describe", str(tmp_path / "nothing.txt")])
    with pytest.raises(FileNotFoundError):
        cli.main()


def test_threads_is_an_option_of_every_command(calirank: Run, letor: Path) -> None:
    assert calirank("--threads", "1", "describe", letor)[0] == 0
    assert _kernel.get_threads() == 1
    assert calirank("--threads", "0", "describe", letor)[0] == 2


needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")


def started(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    call = [sys.executable, "-m", "calirank", *map(str, arguments)]
    return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@needs_pipes
def test_ctrl_c_ends_the_command_with_a_word(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    with started("describe", tmp_path / "a.txt") as process, (tmp_path / "a.txt").open("w"):  # both ends are open now
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "calirank: interrupted"
    assert "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of this system do not say that nobody reads")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("options", [["describe"], ["describe", "--json"], ["convert", "--to", "letor"]])
def test_where_nobody_reads_the_command_ends_as_by_sigpipe(letor: Path, options: list[str], unbuffered: str) -> None:
    command, *more = options
    outputs = ["-"] if command == "convert" else []
    read, write = os.pipe()
    os.close(read)
    call = [sys.executable, "-m", "calirank", command, str(letor), *outputs, *more]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    process = subprocess.run(call, stdout=write, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    os.close(write)
    assert (process.returncode, process.stderr) == (141, "")


@needs_pipes
def test_pipes_are_read_once(letor: Path, tmp_path: Path) -> None:
    for name, options in (("a.txt", []), ("b", ["--format", "letor"]), ("c.parquet", [])):
        os.mkfifo(tmp_path / name)
        text = letor.read_bytes()
        if name == "c.parquet":
            cr.write(cr.read_letor(letor), tmp_path / "whole.parquet")
            text = (tmp_path / "whole.parquet").read_bytes()
        with started("describe", tmp_path / name, "--json", *options) as process:
            (tmp_path / name).write_bytes(text)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert json.loads(out)["documents"] == 3
    with started("describe", tmp_path / "b") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert f"{tmp_path / 'b'}: a pipe without an ending; give --format, one of letor" in err


def test_the_first_call_on_a_machine_says_that_it_prepares(tmp_path: Path, letor: Path) -> None:
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PATH": "", "HOME": str(tmp_path)}
    first, second = (
        subprocess.run(
            [sys.executable, "-m", "calirank", "describe", str(letor)],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        for _ in range(2)
    )
    assert "preparing (once)" in first.stderr
    assert second.stderr == ""
    assert first.stdout == second.stdout


def test_demo_trains_better_than_chance_and_below_the_best_possible(calirank: Run, tmp_path: Path) -> None:
    status, out, err = calirank("demo", "--out", tmp_path / "demo", "--queries", "200", "--seed", "1")
    assert (status, err) == (0, "")
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == [
        "results.json", "scores.txt", "test.txt", "train.txt",
    ]  # fmt: skip
    means = list(json.loads((tmp_path / "demo" / "results.json").read_text())["mean"].values())
    trained, random, best = means
    assert random < trained < best
    for mean in means:
        assert f"{mean:.4f}" in out
    # The scores on disk are those that were judged.
    test = cr.read_letor(tmp_path / "demo" / "test.txt")
    scores = np.array([float(line) for line in (tmp_path / "demo" / "scores.txt").read_text().split()])
    assert cr.evaluate(scores, test, "ndcg@10")["ndcg@10"].mean == trained


def test_no_order_has_a_higher_expected_value_than_the_one_by_expected_utility() -> None:
    import itertools

    data = cr.synthetic("grades(items=4)", queries=10, seed=5)
    metric = cr.metric("ndcg@2")
    scores = demo.expected_utility(data, metric)
    for query in range(len(data)):
        outcomes, probabilities = data.posterior(query)

        def expected(order: tuple[int, ...], outcomes: np.ndarray = outcomes, p: np.ndarray = probabilities) -> float:
            return float(sum(share * metric(labels, order=order) for share, labels in zip(p, outcomes, strict=True)))

        best = max(expected(order) for order in itertools.permutations(range(4)))
        assert expected(tuple(np.argsort(-scores[data.rows(query)]).tolist())) == pytest.approx(best, abs=1e-12)
