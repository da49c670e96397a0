r"""Precision: the share of relevant documents among the first.

.. math:: \mathrm{P}_K(y, \sigma) = \frac{1}{K} \sum_{k \le K} y_{\sigma(k)}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from calirank.metrics.base import UNJUDGED, Columns, Number, Unjudged, check_choice, check_cutoff
from calirank.metrics.gains import geometric_discount
from calirank.metrics.lists import Floats, Lists, room
from calirank.metrics.positional import Positional
from calirank.metrics.relevance import Binary, check_relevant
from calirank.names import METRICS


class Hits(Binary, Positional):
    """A positional metric that counts relevant documents down to the cut-off."""

    def _gain(self, labels: Floats, columns: Mapping[str, Floats]) -> Floats:
        return self._relevant(labels, columns).astype(np.float64)

    def _raw_discount(self, n: int) -> Floats:
        return geometric_discount(1.0, room(n))


@METRICS.register("precision")
@dataclass(frozen=True)
class Precision(Hits):
    """Precision among the first k documents, or in the whole list.

    The divisor is k, also where fewer documents are ranked, or with ``divisor="min"`` the smaller of both.

    >>> Precision(k=2)([0, 1, 1], scores=[0.9, 0.5, 0.1])
    0.5
    >>> Precision(k=4)([1, 1], scores=[2, 1]), Precision(k=4, divisor="min")([1, 1], scores=[2, 1])
    (0.5, 1.0)
    """

    k: int | None = None
    relevant: float = 1
    divisor: Literal["k", "min"] = "k"
    unjudged: Unjudged = "zero"

    def __post_init__(self) -> None:
        check_cutoff("precision", self.k)
        check_relevant("precision", self.relevant)
        check_choice("precision", "divisor", self.divisor, ("k", "min"))
        check_choice("precision", "unjudged", self.unjudged, UNJUDGED)

    def _divisor(self, lists: Lists, gains: Floats) -> Floats:
        del gains
        if self.k is None:
            return lists.count.astype(np.float64)
        full = np.full(len(lists), float(self.k))
        return np.minimum(full, lists.count) if self.divisor == "min" else full

    def _discount_divisor(self, n: int) -> int:
        if self.k is None:
            return max(n, 1)
        return max(min(self.k, n), 1) if self.divisor == "min" else self.k

    def discount_form(self) -> tuple[Any, float]:
        if self.k is None or self.divisor == "min":
            return ("share", self.k), 1.0
        return ("first", self.k), 1 / self.k

    def _decomposed(
        self, labels: Any, columns: Columns = None
    ) -> tuple[Number, Callable[[Collection[int], int], Number]]:
        y = self._relevance(labels)
        divisor = self._discount_divisor(len(y))
        last = len(y) if self.k is None else self.k
        return Fraction(0), lambda before, item: y[item] / divisor if len(before) < last else Fraction(0)


@METRICS.register("wta")
def wta(relevant: float = 1, unjudged: Unjudged = "zero") -> Precision:
    """Winner takes all: whether the first document is relevant; it is precision@1."""
    return Precision(k=1, relevant=relevant, unjudged=unjudged)
