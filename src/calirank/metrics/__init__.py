"""Metrics: what a ranking is judged by. A metric is a value: it has a name, and equal names are equal metrics."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from calirank.metrics import bounds as bounds
from calirank.metrics.ap import AP
from calirank.metrics.auc import AUC
from calirank.metrics.base import LabelMetric, Metric
from calirank.metrics.custom import Custom
from calirank.metrics.dcg import DCG
from calirank.metrics.err import ERR
from calirank.metrics.eru import ERU
from calirank.metrics.kendall import Kendall
from calirank.metrics.ndcg import NDCG
from calirank.metrics.pd import PD
from calirank.metrics.positional import Positional
from calirank.metrics.precision import Precision, wta
from calirank.metrics.rbp import RBP
from calirank.metrics.recall import Recall
from calirank.metrics.rr import RR
from calirank.metrics.spearman import Spearman
from calirank.metrics.sums import WeightedSum
from calirank.metrics.zero_one import ZeroOne
from calirank.names import METRICS

__all__ = [
    "AP",
    "AUC",
    "Custom",
    "DCG",
    "ERR",
    "ERU",
    "Kendall",
    "LabelMetric",
    "Metric",
    "NDCG",
    "PD",
    "Positional",
    "Precision",
    "RBP",
    "RR",
    "Recall",
    "Spearman",
    "WeightedSum",
    "ZeroOne",
    "metric",
    "wta",
]


def metric(
    name: str | Metric | Callable[[Any, tuple[int, ...]], Any], /, *, like: str | None = None, **settings: Any
) -> Metric:
    """The metric of this name, such as ``"ndcg@10"``; a metric itself is returned as it is.

    ``like`` names a library whose conventions are the defaults: "lightgbm", "xgboost", "sklearn", "trec_eval", "ranx".
    A function ``(labels, order) -> number`` becomes a metric too; ``settings`` are those of :class:`Custom`.

    >>> metric("ndcg@10") == NDCG(k=10)
    True
    >>> str(metric("NDCG(gain=linear)@5")), str(metric("ndcg@5", like="trec_eval"))
    ('ndcg(gain=linear)@5', 'ndcg(gain=linear)@5')
    """
    if settings and (isinstance(name, (str, Metric)) or like is not None):
        raise TypeError(f"settings are for functions; those of {str(name)!r} stand in its name: {', '.join(settings)}")
    if like is not None:
        from calirank.metrics.profiles import as_in

        return as_in(name, like)  # type: ignore[arg-type]  # a function is refused there
    if isinstance(name, Metric):
        return name
    if isinstance(name, type):
        raise TypeError(
            f"a metric is a name, an object or a function; got the class {name.__name__}: write {name.__name__}()"
        )
    if not isinstance(name, str):
        return Custom(name, **settings)
    return _of_name(name)


@functools.lru_cache(maxsize=256)
def _of_name(name: str) -> Metric:
    """A metric does not change, so equal names can share one."""
    found: Metric = METRICS.build(name)
    return found
