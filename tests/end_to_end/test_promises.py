"""The lines that users rely on, as they would type them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calirank as cr


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with train.txt, vali.txt and test.txt, which is the current one."""
    data = cr.synthetic("grades", queries=30, seed=3)
    for name, part in (("train", data[:20]), ("vali", data[20:25]), ("test", data[25:])):
        cr.write_letor(part, tmp_path / f"{name}.txt")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_three_files_are_read_as_plain_arrays(files: Path) -> None:
    train, valid, test = (cr.read_letor(f"{part}.txt") for part in ("train", "vali", "test"))
    assert (len(train), len(valid), len(test)) == (20, 5, 5)
    for array in (train.X, train.y, train.offsets, train.query_ids):
        assert isinstance(array, np.ndarray)
    assert train.X.shape[0] == len(train.y) == train.offsets[-1] == train.n_docs
    assert train.offsets.dtype == np.int64
    assert len(train.query_ids) == len(train)


def test_names_are_values_and_objects_are_first_class() -> None:
    assert cr.metric("ndcg@10") == cr.metrics.NDCG(k=10)
    metric = cr.metric("ndcg@10")
    assert 0 < metric([0, 2, 1], scores=[0.9, 0.5, 0.1]) < 1
    assert metric([0, 2, 1], order=[1, 2, 0]) == pytest.approx(metric.ideal([0, 2, 1]))
    assert len(metric.utility([0, 2, 1])) == len(metric.discount(3)) == 3
    assert metric.offset([0, 2, 1]) == 0


def test_preferences_with_cycles_are_data() -> None:
    better, worse, weight, query = [0, 1, 2, 0], [1, 2, 0, 1], [1.0, 1.0, 0.5, 2.0], [0, 0, 0, 1]
    X, offsets = np.zeros((5, 2)), np.array([0, 3, 5])
    data = cr.RankingData(X, offsets=offsets, preferences=cr.Preferences(better, worse, weight, query=query))
    assert data.preferences.matrix(0)[2, 0] == 0.5
    assert data.preferences.matrix(1)[0, 1] == 2.0


def test_the_signature_of_ranking_data() -> None:
    given = list(inspect.signature(cr.RankingData).parameters)
    promised = [
        "X", "y", "offsets", "sizes", "qid", "query_ids", "doc_ids", "feature_names", "categorical", "columns",
        "query_weight", "doc_weight", "judges", "preferences", "rankings",
    ]  # fmt: skip
    assert given[: len(promised)] == promised
    kinds = inspect.signature(cr.RankingData).parameters
    assert all(kinds[name].kind is inspect.Parameter.KEYWORD_ONLY for name in given[2:])
    data = cr.RankingData(
        np.eye(3),
        [2, 0, 1],
        sizes=[2, 1],
        query_ids=["a", "b"],
        doc_ids=["x", "y", "z"],
        feature_names=["f", "g", "h"],
        categorical=["f"],
        columns={"revenue": [1.0, 2.0, 3.0]},
        query_weight=[1, 2],
        doc_weight=[1, 1, 2],
    )
    assert len(data) == 2
    assert data.n_docs == 3
    assert data[0].n_docs == 2
    assert data[0:1].equals(data[np.array([True, False])])
    assert cr.RankingData(y=[1, 0], sizes=[1, 1]).query_ids.tolist() == [0, 1]
    assert cr.RankingData(sizes=[2], judges=[[1, 0], [0, 2]]).judges.matrix(0).tolist() == [[1, 0], [0, 2]]


def test_the_signature_of_read_letor(files: Path) -> None:
    train = cr.read_letor("train.txt", base=1, n_features=40)
    assert train.n_features == 40
    assert cr.read_letor(Path("test.txt"), like=train).n_features == 40
    assert len(cr.read_letor(["vali.txt", "test.txt"], base="auto")) == 10
    with open("vali.txt", "rb") as stream:
        assert cr.read_letor(stream, base=0, progress=False).equals(cr.read_letor("vali.txt", base=0))


def test_a_ranking_as_supervision_is_an_order_and_ranks_are_converted() -> None:
    assert cr.Rankings([[2, 0, 1]]).equals(cr.Rankings.from_ranks([[2, 3, 1]]))


def test_functions_take_a_seed_or_a_generator() -> None:
    for seed in (7, np.random.default_rng(7)):
        assert len(cr.synthetic("grades", queries=3, seed=seed)) == 3


def test_a_guarantee_is_a_record() -> None:
    held = cr.Guarantee(claim="calibrated for dcg", holds=True, constant=2.0, exponent=0.5, citation="[MLJ13 Th 5.2]")
    assert (held.claim, held.constant, held.exponent, held.condition, held.scope) == (
        "calibrated for dcg", 2.0, 0.5, "", "",
    )  # fmt: skip


def test_threads_are_set_for_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from calirank import _kernel

    monkeypatch.setenv("CALIRANK_THREADS", "3")
    try:
        cr.set_threads(2)
        assert _kernel.get_threads() == 2
    finally:
        cr.set_threads(None)
    assert _kernel.get_threads() == 3


def test_a_run_is_query_document_score() -> None:
    run: Any = cr.Run(["q", "q"], ["d1", "d2"], [0.5, 0.25])
    assert (len(run), run.n_docs) == (1, 2)
