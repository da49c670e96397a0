r"""Average precision: the mean of the precision at the ranks of the relevant documents.

.. math:: \mathrm{AP}(y, \sigma) = \frac{1}{\|y\|_1} \sum_{i: y_i = 1} \mathrm{P}_{\mathrm{rank}(i)}(y, \sigma)

It is not positional, and no convex loss that is decoded by sorting scores is calibrated for it [NeurIPS20].
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

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
    empty_value,
)
from calirank.metrics.lists import Floats, Lists
from calirank.metrics.relevance import Binary, check_relevant
from calirank.names import METRICS


@METRICS.register("ap", aliases=("map",))
@dataclass(frozen=True)
class AP(Binary):
    """Average precision; with a cut-off, over the relevant documents among the first k.

    The divisor is R, the number of relevant documents, or with ``divisor="min"`` the smaller of R and k.

    >>> AP()([1, 0, 1], scores=[3, 2, 1])        # (1/1 + 2/3) / 2
    0.8333333333333333
    >>> AP()([1, 0], scores=[1, 1])              # the mean of 1 and 1/2
    0.75
    """

    k: int | None = None
    relevant: float = 1
    divisor: Literal["relevant", "min"] = "relevant"
    empty: Empty = 0.0
    unjudged: Unjudged = "zero"
    monotone = False

    def __post_init__(self) -> None:
        check_cutoff("ap", self.k)
        check_relevant("ap", self.relevant)
        check_choice("ap", "divisor", self.divisor, ("relevant", "min"))
        check_empty("ap", self.empty)
        check_choice("ap", "unjudged", self.unjudged, UNJUDGED)

    def values(self, lists: Lists) -> Floats:
        relevant = lists.table(self._relevant)
        R = lists.counts(relevant)
        if self.divisor == "min" and self.k is not None:
            R = np.minimum(R, self.k)
        sums = lists.precision_sums(relevant, self._cutoff)
        return lists.shares(sums, R, relevant, self._cutoff, empty_value(self.empty))

    def _decomposed(
        self, labels: Any, columns: Columns = None
    ) -> tuple[Number, Callable[[Collection[int], int], Number]]:
        y = self._relevance(labels)
        R, last = sum(y), len(y) if self.k is None else self.k
        if not R:
            return as_number(self.empty), lambda before, item: Fraction(0)
        divisor = R if self.divisor == "relevant" or self.k is None else min(R, Fraction(self.k))

        def gain(before: Collection[int], item: int) -> Fraction:
            rank = len(before) + 1
            return y[item] * (1 + sum(y[other] for other in before)) / (rank * divisor) if rank <= last else Fraction(0)

        return Fraction(0), gain
