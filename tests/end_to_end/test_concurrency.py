"""The library's own kernels, called by many threads at once and by a forked child."""

from __future__ import annotations

import os
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import calirank as cr
from calirank.metrics import lists


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A file of several blocks, so that reading it uses the pool of threads."""
    path = tmp_path / "many.txt"
    cr.write_letor(cr.synthetic("grades", queries=2500, seed=0), path)
    assert path.stat().st_size > 3 * 2**20
    return path


@pytest.fixture(autouse=True)
def two_threads() -> object:
    cr.set_threads(2)
    yield
    cr.set_threads(None)


def test_ten_threads_read_at_once_and_agree(text: Path) -> None:
    expected = cr.read_letor(text)
    begin = threading.Barrier(10)
    found: list[cr.RankingData] = []

    def read() -> None:
        begin.wait()
        found.append(cr.read_letor(text))

    threads = [threading.Thread(target=read) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 10
    assert all(data.equals(expected) for data in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_reads_the_same_after_a_read_in_the_parent(text: Path) -> None:
    expected = cr.read_letor(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks in a process with threads
        child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if cr.read_letor(text).equals(expected) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert cr.read_letor(text).equals(expected)


METRICS = ["ndcg@10", "ndcg", "ap", "err", "precision@10", "rr", "pd"]


@pytest.fixture
def judged() -> tuple[np.ndarray, cr.RankingData]:
    """Enough documents for several blocks, so that judging them uses the pool of threads."""
    data = cr.synthetic("grades", queries=5000, seed=0)
    scores = np.random.default_rng(0).integers(0, 50, data.n_docs).astype(np.float32)
    assert len(lists.blocks(data.offsets)) > 1
    return scores, data


def test_ten_threads_judge_at_once_and_agree(judged: tuple[np.ndarray, cr.RankingData]) -> None:
    scores, data = judged
    cr.set_threads(1)
    expected = [cr.evaluate(scores, data, METRICS)[name].per_query for name in METRICS]
    cr.set_threads(2)
    begin = threading.Barrier(10)
    found: list[list[np.ndarray]] = []

    def judge() -> None:
        begin.wait()
        for _ in range(3):
            table = cr.evaluate(scores, data, METRICS)
            found.append([table[name].per_query for name in METRICS])

    threads = [threading.Thread(target=judge) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 30
    assert all(np.array_equal(one, other) for values in found for one, other in zip(values, expected, strict=True))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_judges_the_same_after_a_call_in_the_parent(judged: tuple[np.ndarray, cr.RankingData]) -> None:
    scores, data = judged
    expected = cr.evaluate(scores, data, METRICS)["err"].per_query
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks in a process with threads
        child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if np.array_equal(cr.evaluate(scores, data, METRICS)["err"].per_query, expected) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
