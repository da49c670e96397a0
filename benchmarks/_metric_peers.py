"""How each peer of the benchmark of metrics is called: once to build its input, then again and again to evaluate.

A peer's ``prepare`` turns lists into the input that the library wants (not timed) and returns the call that is timed:
one evaluation, its sorting included. The call returns means under calirank's names of the same metrics, so that the
numbers can be compared. Documents are relevant from grade 1 on. Gains are exponential where the library has them.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What is timed; every peer computes those that it has.
CORE = ("ndcg@10", "ndcg", "ap", "err", "precision@10", "rr")
MAX_GRADE = 4

Call = Callable[[], dict[str, float]]


@dataclass(frozen=True)
class Lists:
    """Labels and scores of all documents, list after list; ``names`` says how the document in each row is called."""

    labels: NDArray[np.float32]
    scores: NDArray[np.float32]
    sizes: NDArray[np.int64]
    names: NDArray[np.int64] | None = None  # a number in each row, below 100,000; by default the row within its list

    @property
    def n_docs(self) -> int:
        return len(self.labels)

    @property
    def n(self) -> int:
        """The length of the longest list."""
        return int(self.sizes.max())

    @property
    def offsets(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def square(self, flat: NDArray[Any]) -> NDArray[Any]:
        """A row a list; all lists must be of one length."""
        return flat.reshape(len(self.sizes), self.n)

    def head(self, count: int, longest: int | None = None) -> Lists:
        """The first lists, and of these the first documents."""
        rows = np.concatenate([np.arange(a, b)[:longest] for a, b in self._spans(count)])
        sizes = self.sizes[:count] if longest is None else np.minimum(self.sizes[:count], longest)
        return Lists(self.labels[rows], self.scores[rows], sizes, None if self.names is None else self.names[rows])

    def _spans(self, count: int) -> list[tuple[int, int]]:
        return list(zip(self.offsets[:count].tolist(), self.offsets[1 : count + 1].tolist(), strict=True))

    @cached_property
    def gains(self) -> NDArray[np.float32]:
        return np.exp2(self.labels) - 1

    @cached_property
    def binary(self) -> NDArray[np.float32]:
        return (self.labels >= 1).astype(np.float32)

    def dicts(self, flat: NDArray[Any]) -> dict[str, dict[str, Any]]:
        """What the peers with document names read: query -> document -> number. All names are equally long."""
        words = [f"d{i:05d}" for i in range(self.n)]
        values = flat.tolist()
        found = {}
        for query, (start, stop) in enumerate(self._spans(len(self.sizes))):
            names = words if self.names is None else [words[i] for i in self.names[start:stop].tolist()]
            found[f"q{query:06d}"] = dict(zip(names, values[start:stop], strict=False))
        return found


@dataclass(frozen=True)
class Peer:
    """A library, or one way to call it; ``ties`` says in words what it does with tied scores."""

    name: str
    module: str
    prepare: Callable[[Lists], Call]
    ties: str
    note: str = ""
    install: str = ""  # how, where the extra "bench" does not install it
    single: bool = False  # it adds up in single precision
    named: bool = False  # its documents have names


# --- engines ---------------------------------------------------------------------------------------------------------


def _lightgbm(lists: Lists) -> Call:
    import lightgbm

    params = {"objective": "none", "metric": ["ndcg", "map"], "eval_at": [10, lists.n], "num_threads": 1, "verbose": -1}
    if lists.n > 10_000:  # its NDCG refuses longer lists, its MAP does not
        params |= {"metric": "map", "eval_at": [lists.n]}
    data = lightgbm.Dataset(
        np.zeros((lists.n_docs, 1), np.float32),
        lists.labels,
        group=lists.sizes,
        init_score=lists.scores.astype(np.float64),
        params={"feature_pre_filter": False, "verbose": -1},
    )
    booster = lightgbm.Booster(params, data)
    names = {"ndcg@10": "ndcg@10", f"ndcg@{lists.n}": "ndcg", f"map@{lists.n}": "ap"}

    def call() -> dict[str, float]:
        return {names[entry[1]]: float(entry[2]) for entry in booster.eval_train() if entry[1] in names}

    return call


def _xgboost(lists: Lists) -> Call:
    import xgboost

    def booster(labels: NDArray[Any], objective: str, metrics: list[str]) -> Callable[[], str]:
        empty = np.zeros((lists.n_docs, 1), np.float32)
        data = xgboost.DMatrix(empty, labels, group=lists.sizes, base_margin=lists.scores, nthread=1)
        made = xgboost.Booster({"objective": objective, "eval_metric": metrics, "nthread": 1}, [data])
        return lambda: made.eval(data, name="")

    graded = booster(lists.labels, "rank:ndcg", ["ndcg@10", f"ndcg@{lists.n}"])
    binary = booster(lists.binary, "rank:map", [f"map@{lists.n}", "pre@10"])  # these two refuse grades
    names = {"ndcg@10": "ndcg@10", f"ndcg@{lists.n}": "ndcg", f"map@{lists.n}": "ap", "pre@10": "precision@10"}

    def call() -> dict[str, float]:
        fields = [field.lstrip("-").split(":") for text in (graded(), binary()) for field in text.split("\t")[1:]]
        return {names[name]: float(value) for name, value in fields}

    return call


def _catboost(lists: Lists) -> Call:
    from catboost.utils import eval_metric

    queries = np.repeat(np.arange(len(lists.sizes)), lists.sizes)
    stops = lists.gains / 2**MAX_GRADE  # its ERR takes the probability to stop
    metrics = [
        ("ndcg@10", "NDCG:top=10;type=Exp", lists.labels),
        ("ndcg", "NDCG:type=Exp", lists.labels),
        ("ap", "MAP", lists.labels),
        ("err", "ERR", stops),
        ("precision@10", "PrecisionAt:top=10", lists.labels),
        ("rr", "MRR", lists.labels),
    ]

    def call() -> dict[str, float]:
        return {
            name: eval_metric(labels, lists.scores, metric, group_id=queries, thread_count=1)[0]
            for name, metric, labels in metrics
        }

    return call


# --- libraries of TREC's kind ----------------------------------------------------------------------------------------


def _pytrec_eval(lists: Lists) -> Call:
    import pytrec_eval

    names = {
        "ndcg_cut_10": "ndcg(gain=linear)@10",
        "ndcg": "ndcg(gain=linear)",
        "map": "ap",
        "P_10": "precision@10",
        "recip_rank": "rr",
    }
    evaluator = pytrec_eval.RelevanceEvaluator(lists.dicts(lists.labels.astype(np.int64)), set(names))
    run = lists.dicts(lists.scores)

    def call() -> dict[str, float]:
        found = evaluator.evaluate(run).values()
        return {ours: fmean(values[theirs] for values in found) for theirs, ours in names.items()}

    return call


def _ir_measures(lists: Lists) -> Call:
    import ir_measures
    from ir_measures import AP, RR, P, nDCG

    names = {
        nDCG @ 10: "ndcg(gain=linear)@10",
        nDCG: "ndcg(gain=linear)",
        AP: "ap",
        P @ 10: "precision@10",
        RR: "rr",
    }
    evaluator = ir_measures.evaluator(list(names), lists.dicts(lists.labels.astype(np.int64)))
    run = lists.dicts(lists.scores)

    def call() -> dict[str, float]:
        return {names[measure]: value for measure, value in evaluator.calc_aggregate(run).items()}

    return call


_RANX = {"ndcg_burges@10": "ndcg@10", "ndcg_burges": "ndcg", "map": "ap", "precision@10": "precision@10", "mrr": "rr"}


def _ranx(lists: Lists) -> Call:
    """The constructor of a Run sorts it; here that sort is undone before each call, which sorts once more."""
    from numba.typed import List
    from ranx import Qrels, Run, evaluate
    from ranx.data_structures.common import create_bulk

    qrels, run = Qrels(lists.dicts(lists.labels.astype(np.int64))), Run()
    scores = lists.dicts(lists.scores)
    unsorted = create_bulk(
        List(scores),
        List([np.array(list(docs), dtype="<U6") for docs in scores.values()]),
        List([np.array(list(docs.values()), dtype=np.float64) for docs in scores.values()]),
    )

    def call() -> dict[str, float]:
        run.run, run.sorted = unsorted, False
        found = evaluate(qrels, run, list(_RANX), threads=1, save_results_in_run=False)
        return {ours: float(found[theirs]) for theirs, ours in _RANX.items()}

    return call


def _ranx_sorted(lists: Lists) -> Call:
    from ranx import Qrels, Run, evaluate

    qrels, run = Qrels(lists.dicts(lists.labels.astype(np.int64))), Run(lists.dicts(lists.scores))

    def call() -> dict[str, float]:
        found = evaluate(qrels, run, list(_RANX), threads=1, save_results_in_run=False)
        return {ours: float(found[theirs]) for theirs, ours in _RANX.items()}

    return call


# --- arrays and tensors: lists of one length -------------------------------------------------------------------------


def _sklearn(lists: Lists) -> Call:
    from sklearn.metrics import label_ranking_average_precision_score, ndcg_score

    gains, binary, scores = (lists.square(flat) for flat in (lists.gains, lists.binary, lists.scores))

    def call() -> dict[str, float]:
        return {
            "ndcg@10": float(ndcg_score(gains, scores, k=10)),
            "ndcg": float(ndcg_score(gains, scores)),
            "ap": float(label_ranking_average_precision_score(binary, scores)),
        }

    return call


def _rax(lists: Lists) -> Call:
    import jax
    import rax

    def metrics(scores: Any, labels: Any, binary: Any) -> dict[str, Any]:
        average_precision = {"ap": rax.ap_metric(scores, binary)} if lists.n <= 500 else {}
        return average_precision | {
            "ndcg@10": rax.ndcg_metric(scores, labels, topn=10),
            "ndcg": rax.ndcg_metric(scores, labels),
            "precision@10": rax.precision_metric(scores, binary, topn=10),
            "rr": rax.mrr_metric(scores, binary),
        }

    with _one_core():  # XLA makes its threads here
        arrays = [jax.numpy.asarray(lists.square(flat)) for flat in (lists.scores, lists.labels, lists.binary)]
        compiled = jax.jit(metrics).lower(*arrays).compile()

    def call() -> dict[str, float]:
        with _one_core():
            return {name: float(value) for name, value in compiled(*arrays).items()}

    return call


@contextmanager
def _one_core() -> Iterator[None]:
    """Threads that start in here keep to one core, and so does this one until the end: XLA has no switch for it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _torchmetrics(lists: Lists) -> Call:
    import torch
    from torchmetrics.functional import retrieval

    torch.set_num_threads(1)
    sizes = lists.sizes.tolist()
    positive = np.unique(lists.scores, return_inverse=True)[1] + 1  # its AP calls documents with scores <= 0 irrelevant
    scores = torch.split(torch.from_numpy(positive.astype(np.float32)), sizes)
    gains = torch.split(torch.from_numpy(lists.gains), sizes)
    binary = torch.split(torch.from_numpy(lists.binary).long(), sizes)

    def call() -> dict[str, float]:
        sums = torch.zeros(5, dtype=torch.float64)
        for score, gain, relevant in zip(scores, gains, binary, strict=True):
            sums += torch.stack(
                [
                    retrieval.retrieval_normalized_dcg(score, gain, top_k=10),
                    retrieval.retrieval_normalized_dcg(score, gain),
                    retrieval.retrieval_average_precision(score, relevant),
                    retrieval.retrieval_precision(score, relevant, top_k=10),
                    retrieval.retrieval_reciprocal_rank(score, relevant),
                ]
            )
        return dict(zip(("ndcg@10", "ndcg", "ap", "precision@10", "rr"), (sums / len(sizes)).tolist(), strict=True))

    return call


def _allrank(lists: Lists) -> Call:
    """The module of its metrics takes one constant from the one that reads data, which needs torchvision and gcsfs."""
    import torch

    if "allrank.data.dataset_loading" not in sys.modules:
        stand_in: Any = types.ModuleType("allrank.data.dataset_loading")
        stand_in.PADDED_Y_VALUE = -1
        sys.modules[stand_in.__name__] = stand_in
    from allrank.models import metrics

    torch.set_num_threads(1)
    scores, labels, binary = (
        torch.from_numpy(lists.square(flat)) for flat in (lists.scores, lists.labels, lists.binary)
    )

    def call() -> dict[str, float]:
        at10, whole = metrics.ndcg(scores, labels, ats=[10, lists.n]).double().mean(dim=0).tolist()
        return {"ndcg@10": at10, "ndcg": whole, "rr": metrics.mrr(scores, binary).double().mean().item()}

    return call


PEERS = (
    Peer("LightGBM", "lightgbm", _lightgbm, "the order of the rows", "no NDCG beyond 10,000 documents"),
    Peer("XGBoost", "xgboost", _xgboost, "the order of the rows"),
    Peer("allRank", "allrank", _allrank, "an unstable sort", install="pip install --no-deps allRank", single=True),
    Peer("pytrec_eval", "pytrec_eval", _pytrec_eval, "the documents' names, last first", named=True),
    Peer("ir_measures", "ir_measures", _ir_measures, "the documents' names, last first", named=True),
    Peer("CatBoost", "catboost", _catboost, "the irrelevant first", "what it makes of arrays is counted"),
    Peer("scikit-learn", "sklearn", _sklearn, "no order: the exact mean"),
    Peer("ranx", "ranx", _ranx, "an unstable sort", named=True),
    Peer("ranx, run sorted", "ranx", _ranx_sorted, "an unstable sort", "its sort is not counted", named=True),
    Peer("rax", "rax", _rax, "the order of the rows", "AP, which takes n² numbers, up to n = 500", single=True),
    Peer("torchmetrics", "torchmetrics", _torchmetrics, "no order: the exact mean", single=True),
)
