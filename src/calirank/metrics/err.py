r"""ERR: the expected reciprocal rank at which a reader stops who goes down the list.

.. math:: \mathrm{ERR}(y, \sigma) = \sum_k \frac{R_{\sigma(k)}}{k} \prod_{j < k} (1 - R_{\sigma(j)}),
    \quad R_i = \frac{2^{y_i} - 1}{2^p}

p is the largest grade that is *possible*, never the largest that was seen [ICML11]. It is not positional, and no convex
loss that is decoded by sorting scores is calibrated for it [NeurIPS20].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from calirank.metrics.base import (
    UNJUDGED,
    Columns,
    Empty,
    LabelMetric,
    Number,
    Unjudged,
    as_number,
    check_choice,
    check_cutoff,
    check_empty,
    check_number,
    empty_value,
    exact_number,
)
from calirank.metrics.gains import exponential
from calirank.metrics.lists import Floats, Labels, Lists
from calirank.names import METRICS


@METRICS.register("err")
@dataclass(frozen=True)
class ERR(LabelMetric):
    """ERR with the largest possible grade ``max_grade``; ``empty`` where all labels are 0.

    >>> ERR(max_grade=1)([0, 1, 1], scores=[3, 2, 1])        # 1/2 · 1/2 + 1/3 · 1/2 · 1/2
    0.3333333333333333
    """

    k: int | None = None
    max_grade: float = field(default=4, metadata={"always": True})
    empty: Empty = 0.0
    unjudged: Unjudged = "zero"
    monotone = True

    def __post_init__(self) -> None:
        check_cutoff("err", self.k)
        check_number("err", "max_grade", self.max_grade, 0, inclusive=False, below=1001)
        check_empty("err", self.empty)
        check_choice("err", "unjudged", self.unjudged, UNJUDGED)

    def check(self, labels: Labels) -> None:
        super().check(labels)
        labels.check(self, lambda y: y > self.max_grade, f"expected labels up to max_grade={self.max_grade:g}")

    def _stops(self, labels: Floats, columns: Mapping[str, Floats]) -> Floats:
        """R: the probability that a reader stops at a document."""
        del columns
        stops: Floats = np.minimum(exponential(labels) / 2.0**self.max_grade, 1)
        return stops

    def values(self, lists: Lists) -> Floats:
        stops = lists.table(self._stops)
        found = lists.cascade(stops, self._cutoff)
        if self.empty != 0:
            found[lists.counts(stops > 0) == 0] = empty_value(self.empty)
        return found

    def top_label(self) -> float:
        """The largest possible grade."""
        return float(self.max_grade)

    def _decomposed(
        self, labels: Any, columns: Columns = None
    ) -> tuple[Number, Callable[[Collection[int], int], Number]]:
        two = Fraction(2)
        R: list[Any] = [(two**label - 1) / two ** exact_number(self.max_grade) for label in self._known(labels)]
        last = len(R) if self.k is None else self.k
        if not any(R):
            return as_number(self.empty), lambda before, item: Fraction(0)

        def gain(before: Collection[int], item: int) -> Number:
            rank = len(before) + 1
            survival: Number = math.prod((1 - R[other] for other in before), start=Fraction(1))
            return survival * R[item] / rank if rank <= last else Fraction(0)

        return Fraction(0), gain
