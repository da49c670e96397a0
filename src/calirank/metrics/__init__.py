"""Metrics: what a ranking is judged by. A metric is a value: it has a name, and equal names are equal metrics."""

from __future__ import annotations

from calirank.metrics.dcg import DCG
from calirank.metrics.ndcg import NDCG
from calirank.metrics.positional import Positional
from calirank.names import METRICS

__all__ = ["DCG", "NDCG", "Positional", "metric"]


def metric(name: str | Positional) -> Positional:
    """The metric of this name, such as ``"ndcg@10"``; a metric itself is returned as it is.

    >>> metric("ndcg@10") == NDCG(k=10)
    True
    >>> str(metric("NDCG(gain=linear)@5"))
    'ndcg(gain=linear)@5'
    """
    if isinstance(name, Positional):
        return name
    found: Positional = METRICS.build(name)
    return found
