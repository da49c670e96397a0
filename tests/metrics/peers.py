"""How other libraries are asked for the values of their metrics at given scores, under their own names.

Each function takes names as the library spells them and returns one value a query. LightGBM and XGBoost give means
only: they are asked for one query after the other, or for the mean of all.
"""

from __future__ import annotations

import importlib.util
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lists:
    """Labels and scores of the documents, list after list."""

    labels: Floats
    scores: Floats
    sizes: NDArray[np.int64]

    def __iter__(self) -> Iterator[tuple[Floats, Floats]]:
        ends = np.cumsum(self.sizes)
        return zip(np.split(self.labels, ends[:-1]), np.split(self.scores, ends[:-1]), strict=True)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def binary(self) -> Lists:
        """The same with labels 0 and 1."""
        return Lists((self.labels >= 1).astype(np.float64), self.scores, self.sizes)

    def first(self, count: int) -> Lists:
        """Some of the lists."""
        docs = int(self.sizes[:count].sum())
        return Lists(self.labels[:docs], self.scores[:docs], self.sizes[:count])

    def longer_than(self, size: int) -> Lists:
        """The lists with more documents than that."""
        keep = np.repeat(self.sizes > size, self.sizes)
        return Lists(self.labels[keep], self.scores[keep], self.sizes[self.sizes > size])

    def untied(self) -> bool:
        """Whether no two documents of a list have the same score, in single precision too."""
        return all(len(np.unique(scores.astype(np.float32))) == len(scores) for _, scores in self)


def one_list(labels: Sequence[float], scores: Sequence[float]) -> Lists:
    """A single list."""
    return Lists(np.array(labels, np.float64), np.array(scores, np.float64), np.array([len(labels)]))


def is_there(module: str) -> bool:
    """Whether a library can be imported."""
    return importlib.util.find_spec(module) is not None


# --- engines: means --------------------------------------------------------------------------------------------------


def lightgbm_means(names: Sequence[str], lists: Lists, weights: Sequence[float] | None = None) -> dict[str, float]:
    """LightGBM's metrics of a model without trees, whose scores are the initial ones; weights are by document."""
    import lightgbm

    cutoffs = sorted({int(name.split("@")[1]) for name in names if "@" in name})
    params = {"metric": sorted({name.split("@")[0] for name in names}), "eval_at": cutoffs, "verbose": -1}
    data = lightgbm.Dataset(
        np.zeros((len(lists.labels), 1)),
        lists.labels,
        group=lists.sizes,
        weight=weights,
        init_score=lists.scores,
        params={"feature_pre_filter": False, "num_threads": 1, "verbose": -1},
    )
    booster = lightgbm.Booster({"objective": "none", "num_threads": 1, **params}, data)
    found = {entry[1]: float(entry[2]) for entry in booster.eval_train()}
    return {name: found[name] for name in names}


def xgboost_means(
    names: Sequence[str], lists: Lists, weights: Sequence[float] | None = None, **params: Any
) -> dict[str, float]:
    """XGBoost's metrics of a model without trees, whose scores are the base margin; weights are by query."""
    import xgboost

    data = xgboost.DMatrix(
        np.zeros((len(lists.labels), 1)),
        lists.labels,
        group=lists.sizes,
        base_margin=lists.scores,
        weight=weights,
        nthread=1,
    )
    settings = {"objective": "rank:ndcg", "base_score": 0.0, "nthread": 1, "eval_metric": list(names), **params}
    text = xgboost.Booster(settings, [data]).eval(data, name="")
    values = [field.removeprefix("-").rsplit(":", 1) for field in text.split("\t")[1:]]
    return {name: float(value) for name, value in values}


Means = Callable[..., dict[str, float]]


def _each(means: Means) -> Callable[[Sequence[str], Lists], dict[str, Floats]]:
    """Means of one query at a time."""

    def per_query(names: Sequence[str], lists: Lists) -> dict[str, Floats]:
        found = [means(names, Lists(labels, scores, np.array([len(labels)]))) for labels, scores in lists]
        return {name: np.array([values[name] for values in found]) for name in names}

    return per_query


# --- libraries that give one value a query ---------------------------------------------------------------------------


def sklearn_values(names: Sequence[str], lists: Lists) -> dict[str, Floats]:
    """scikit-learn's functions: "ndcg_score(k=10)" is one with its keyword."""
    return {name: np.array([_sklearn(name, labels, scores) for labels, scores in lists]) for name in names}


def _sklearn(name: str, labels: Floats, scores: Floats) -> float:
    from sklearn import metrics

    match = re.fullmatch(r"(\w+)(?:\(k=(\d+)\))?", name)
    assert match is not None
    function, whole_matrix = getattr(metrics, match[1]), match[1] in ("ndcg_score", "dcg_score")
    arguments = {"k": int(match[2])} if match[2] else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(Only one class is present|No positive class found)")
        return float(function([labels], [scores], **arguments) if whole_matrix else function(labels, scores))


def _named(values: Floats) -> dict[str, float]:
    """One number a document, by the document's name."""
    return {f"d{place:05d}": value for place, value in enumerate(values.tolist())}


def trec_eval_values(names: Sequence[str], lists: Lists, **settings: Any) -> dict[str, Floats]:
    """trec_eval through pytrec_eval; "-M 10 recip_rank" is recip_rank of the first ten documents."""
    import pytrec_eval

    qrels = {str(query): {doc: int(y) for doc, y in _named(labels).items()} for query, (labels, _) in enumerate(lists)}
    runs = {str(query): _named(scores) for query, (_, scores) in enumerate(lists)}
    found = {}
    for name in names:
        match = re.fullmatch(r"(?:-M (\d+) )?(\w+)", name)
        assert match is not None
        run = {query: _head(docs, int(match[1])) for query, docs in runs.items()} if match[1] else runs
        values = pytrec_eval.RelevanceEvaluator(qrels, {match[2]}, **settings).evaluate(run)
        found[name] = np.array([values[str(query)][match[2]] for query in range(len(lists))])
    return found


def _head(docs: dict[str, float], count: int) -> dict[str, float]:
    """The documents with the highest scores."""
    return dict(sorted(docs.items(), key=lambda item: -item[1])[:count])


def ranx_values(names: Sequence[str], lists: Lists) -> dict[str, Floats]:
    """ranx, which warns of casts in its own code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ranx

        queries = [f"q{query:05d}" for query in range(len(lists))]
        labels = [{doc: int(y) for doc, y in _named(labels).items()} for labels, _ in lists]
        qrels = ranx.Qrels(dict(zip(queries, labels, strict=True)))
        run = ranx.Run({query: _named(scores) for query, (_, scores) in zip(queries, lists, strict=True)})
        found = ranx.evaluate(qrels, run, list(names), return_mean=False)
    return {name: np.asarray(found[name] if len(names) > 1 else found) for name in names}


# --- all of them -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """The library behind a profile: where it is imported from, and how it is asked."""

    module: str
    per_query: Callable[[Sequence[str], Lists], dict[str, Floats]]
    means: Means | None = None  # where it can give no more than that at once
    shortest: int = 1  # it refuses lists with fewer documents
    binary: tuple[str, ...] = ()  # those of our metrics for which it takes labels 0 and 1 only


PEERS = {
    "lightgbm": Peer("lightgbm", _each(lightgbm_means), lightgbm_means),
    "xgboost": Peer("xgboost", _each(xgboost_means), xgboost_means, binary=("ap", "precision")),
    "sklearn": Peer("sklearn", sklearn_values, shortest=2, binary=("ap", "auc")),
    "trec_eval": Peer("pytrec_eval", trec_eval_values),
    "ranx": Peer("ranx", ranx_values),
}
