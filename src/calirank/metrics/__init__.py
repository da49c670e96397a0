"""Metrics: what a ranking is judged by. A metric is a value: it has a name, and equal names are equal metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def metric(name: str | Metric | Callable[[Any, tuple[int, ...]], Any], **settings: Any) -> Metric:
    """The metric of this name, such as ``"ndcg@10"``; a metric itself is returned as it is.

    A function ``(labels, order) -> number`` becomes a metric too; ``settings`` are those of :class:`Custom`.

    >>> metric("ndcg@10") == NDCG(k=10)
    True
    >>> str(metric("NDCG(gain=linear)@5"))
    'ndcg(gain=linear)@5'
    """
    if isinstance(name, Metric):
        return name
    if callable(name):
        return Custom(name, **settings)
    found: Metric = METRICS.build(name)
    return found
