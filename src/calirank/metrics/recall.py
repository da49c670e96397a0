r"""Recall: the share of the relevant documents that stand among the first.

.. math:: \mathrm{R}_K(y, \sigma) = \frac{1}{\|y\|_1} \sum_{k \le K} y_{\sigma(k)}
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from calirank.metrics.base import (
    UNJUDGED,
    Columns,
    Empty,
    Number,
    Unjudged,
    as_number,
    check_choice,
    check_cutoff,
    check_empty,
)
from calirank.metrics.lists import Floats, Lists
from calirank.metrics.precision import Hits
from calirank.metrics.relevance import check_relevant
from calirank.names import METRICS


@METRICS.register("recall")
@dataclass(frozen=True)
class Recall(Hits):
    """Recall among the first k documents; ``empty`` where no document is relevant.

    >>> Recall(k=2)([0, 1, 1], scores=[0.9, 0.5, 0.1])
    0.5
    """

    k: int | None = None
    relevant: float = 1
    empty: Empty = 0.0
    unjudged: Unjudged = "zero"
    monotone = False

    def __post_init__(self) -> None:
        check_cutoff("recall", self.k)
        check_relevant("recall", self.relevant)
        check_empty("recall", self.empty)
        check_choice("recall", "unjudged", self.unjudged, UNJUDGED)

    def _divisor(self, lists: Lists, gains: Floats) -> Floats:
        return lists.counts(gains > 0).astype(np.float64)

    def discount_form(self) -> tuple[Any, float]:
        return ("first", self.k), 1.0

    def _decomposed(
        self, labels: Any, columns: Columns = None
    ) -> tuple[Number, Callable[[Collection[int], int], Number]]:
        y = self._relevance(labels)
        R, last = sum(y), len(y) if self.k is None else self.k
        if not R:
            return as_number(self.empty), lambda before, item: Fraction(0)
        return Fraction(0), lambda before, item: y[item] / R if len(before) < last else Fraction(0)
