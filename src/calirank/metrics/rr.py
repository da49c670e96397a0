r"""Reciprocal rank of the first relevant document.

.. math:: \mathrm{RR}(y, \sigma) = 1 / \min \{k : y_{\sigma(k)} = 1\}
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

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


@METRICS.register("rr", aliases=("mrr",))
@dataclass(frozen=True)
class RR(Binary):
    """Reciprocal rank; 0 when the first relevant document is beyond the cut-off, ``empty`` when there is none at all.

    >>> RR()([0, 1, 1], scores=[3, 2, 1])
    0.5
    """

    k: int | None = None
    relevant: float = 1
    empty: Empty = 0.0
    unjudged: Unjudged = "zero"

    def __post_init__(self) -> None:
        check_cutoff("rr", self.k)
        check_relevant("rr", self.relevant)
        check_empty("rr", self.empty)
        check_choice("rr", "unjudged", self.unjudged, UNJUDGED)

    def values(self, lists: Lists) -> Floats:
        relevant = lists.table(self._relevant)
        found = lists.first_hits(relevant, self._cutoff)
        if self.empty != 0:
            found[lists.counts(relevant) == 0] = empty_value(self.empty)
        return found

    def _decomposed(
        self, labels: Any, columns: Columns = None
    ) -> tuple[Number, Callable[[Collection[int], int], Number]]:
        y = self._relevance(labels)
        last = len(y) if self.k is None else self.k
        if not any(y):
            return as_number(self.empty), lambda before, item: Fraction(0)

        def gain(before: Collection[int], item: int) -> Fraction:
            rank = len(before) + 1
            first = not any(y[other] for other in before)
            return y[item] / rank if first and rank <= last else Fraction(0)

        return Fraction(0), gain
