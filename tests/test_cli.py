"""The command: what it prints, what it writes, and how it says that something is wrong."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import calirank as cr
from calirank import _kernel, cli, demo

Run = Callable[..., tuple[int, str, str]]


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

    yield run  # type: ignore[misc]
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
    assert "group_rows" in err or "group-rows" in err
    status, out, _ = calirank("describe", path, "--base", "auto", "--group-rows", "--json")
    assert status == 0
    assert json.loads(out)["queries"] == 2
    status, _, err = calirank("describe", path, "--base", "7")
    assert (status, "--base is 0, 1 or auto" in err) == (2, True)


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


def test_ctrl_c_ends_the_command_quietly(calirank: Run, monkeypatch: pytest.MonkeyPatch, letor: Path) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("calirank.data.formats.read", interrupted)
    status, out, err = calirank("describe", letor)
    assert (status, out) == (130, "")
    assert "Traceback" not in err


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
    assert demo.per_query(cr.metric("ndcg@10"), test, scores).mean() == trained


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
