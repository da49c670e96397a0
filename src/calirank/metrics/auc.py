r"""AUC: the share of the pairs of a relevant and an irrelevant document that are in the right order.

.. math:: \mathrm{AUC}(y, \sigma) = \frac{1}{\|y\|_1 (n - \|y\|_1)} \sum_{i: y_i = 1} \sum_{j: y_j = 0} 1\{i \succ j\}

It is positional with φ(k) = n - k, u_i = y_i / (‖y‖₁ (n - ‖y‖₁)) and b = -(‖y‖₁ - 1) / (2 (n - ‖y‖₁)) [MLJ13 B.1].
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
    check_empty,
    empty_value,
    labels_or_zero,
)
from calirank.metrics.lists import Floats, Labels, Lists
from calirank.metrics.relevance import Binary, check_relevant
from calirank.names import METRICS


@METRICS.register("auc")
@dataclass(frozen=True)
class AUC(Binary):
    """AUC; a tied pair counts one half. ``empty`` where all documents are relevant, or none.

    Documents that a run did not return stand below all others and win no pair.

    >>> AUC()([1, 0, 1, 0], scores=[4, 3, 2, 2])        # 2 pairs won, 1 lost, 1 tied
    0.625
    """

    relevant: float = 1
    empty: Empty = 0.0
    unjudged: Unjudged = "zero"
    monotone = False

    def __post_init__(self) -> None:
        check_relevant("auc", self.relevant)
        check_empty("auc", self.empty)
        check_choice("auc", "unjudged", self.unjudged, UNJUDGED)

    @property
    def is_positional(self) -> bool:
        return True

    def values(self, lists: Lists) -> Floats:
        relevant = lists.table(self._relevant)
        R = lists.counts(relevant)
        others = lists.sizes - R
        return lists.quotients(lists.pairs_won(relevant, others), R * others, empty_value(self.empty))

    def discount(self, n: int) -> Floats:
        """n - k for the ranks k = 1..n."""
        return np.arange(n - 1, -1, -1, dtype=np.float64)

    def discount_form(self) -> tuple[Any, float]:
        return ("linear",), 1.0

    def utility(self, labels: Any, *, columns: Columns = None) -> Floats:
        """y / (R (n - R)) for R relevant documents."""
        del columns
        values = labels_or_zero(labels, self)
        self.check(Labels(values, np.array([0, len(values)])))
        y = self._relevant(values, {})
        R = int(y.sum())
        return y / (R * (len(y) - R)) if 0 < R < len(y) else np.zeros(len(y))

    def _decomposed(
        self, labels: Any, columns: Columns = None
    ) -> tuple[Number, Callable[[Collection[int], int], Number]]:
        y = self._relevance(labels)
        n, R = len(y), sum(y)
        if not 0 < R < n:
            return as_number(self.empty), lambda before, item: Fraction(0)
        gain = [value / (R * (n - R)) for value in y]
        return -(R - 1) / (2 * (n - R)), lambda before, item: (n - len(before) - 1) * gain[item]
