r"""Rank-biased precision: the expected share of relevant documents that a reader sees who goes on with probability p.

.. math:: \mathrm{RBP}(y, \sigma) = (1 - p) \sum_k p^{k - 1} y_{\sigma(k)}

Moffat and Zobel 2008. It never reaches 1 on a finite list: what is below the last rank is part of the residual.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from calirank.metrics.base import (
    UNJUDGED,
    Columns,
    Number,
    Unjudged,
    check_choice,
    check_cutoff,
    check_number,
    exact_number,
    split_labels,
)
from calirank.metrics.gains import geometric_discount
from calirank.metrics.lists import Floats, room
from calirank.metrics.precision import Hits
from calirank.metrics.relevance import check_relevant
from calirank.names import METRICS


@METRICS.register("rbp")
@dataclass(frozen=True)
class RBP(Hits):
    """Rank-biased precision with the persistence ``p``.

    >>> RBP(p=0.5)([0, 1, 1], scores=[3, 2, 1])        # 1/2 (0 + 1/2 + 1/4)
    0.375
    """

    p: float = 0.8
    k: int | None = None
    relevant: float = 1
    unjudged: Unjudged = "zero"

    def __post_init__(self) -> None:
        check_number("rbp", "p", self.p, 0, below=1)
        check_cutoff("rbp", self.k)
        check_relevant("rbp", self.relevant)
        check_choice("rbp", "unjudged", self.unjudged, UNJUDGED)

    def _raw_discount(self, n: int) -> Floats:
        return (1 - self.p) * geometric_discount(float(self.p), room(n))

    def discount_form(self) -> tuple[Any, float]:
        return ("geometric", float(self.p), self.k), 1 - self.p

    def residual(self, labels: Any, *, scores: Any = None, order: Any = None) -> float:
        """How much higher the value could be: what unjudged documents and all ranks below the last would add.

        >>> import numpy as np
        >>> RBP(p=0.5).residual(np.ma.masked_invalid([1, np.nan, 0]), scores=[3, 2, 1])      # 1/4 + (1/2)³
        0.375
        """
        values, _ = split_labels(labels, self)
        low, high = self.bounds(labels, scores=scores, order=order)
        last = len(values) if self.k is None else min(self.k, len(values))
        return high - low + float(self.p) ** last

    def _decomposed(
        self, labels: Any, columns: Columns = None
    ) -> tuple[Number, Callable[[Collection[int], int], Number]]:
        y, p = self._relevance(labels), exact_number(self.p)
        last = len(y) if self.k is None else self.k

        def gain(before: Collection[int], item: int) -> Fraction:
            return (1 - p) * p ** len(before) * y[item] if len(before) < last else Fraction(0)

        return Fraction(0), gain
