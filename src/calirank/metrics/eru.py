r"""Expected rank utility: what a document is worth above a neutral grade, halved every so many ranks.

.. math:: \mathrm{ERU}(y, \sigma) = \sum_k 2^{(1 - k)/(w - 1)} \max(y_{\sigma(k)} - v, 0)

Breese, Heckerman and Kadie's half-life utility: a document at rank w counts half of one at rank 1 [NIPS13].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calirank.metrics.base import LARGEST, UNJUDGED, Unjudged, check_choice, check_cutoff, check_number
from calirank.metrics.gains import geometric_discount
from calirank.metrics.lists import Floats, Labels, room
from calirank.metrics.positional import Positional
from calirank.names import METRICS


@METRICS.register("eru")
@dataclass(frozen=True)
class ERU(Positional):
    """Expected rank utility with the neutral grade ``v`` and the half-life ``w``.

    >>> ERU(v=1, w=2)([4, 0, 2], scores=[1, 3, 2])        # 0 + 1/2 · 1 + 1/4 · 3
    1.25
    """

    v: float = 0
    w: float = 5
    k: int | None = None
    weight: str | None = None
    unjudged: Unjudged = "zero"
    max_grade: float | None = None
    monotone = True

    def __post_init__(self) -> None:
        check_number("eru", "v", self.v, 0)
        check_number("eru", "w", self.w, 1, inclusive=False)
        check_cutoff("eru", self.k)
        check_choice("eru", "unjudged", self.unjudged, UNJUDGED)
        if self.weight is not None and (not isinstance(self.weight, str) or not self.weight):
            raise ValueError(f"eru: weight is the name of a column, or None; got {self.weight!r}")
        if self.max_grade is not None:
            check_number("eru", "max_grade", self.max_grade, 0)

    def check(self, labels: Labels) -> None:
        super().check(labels)
        labels.check(self, lambda y: y > LARGEST, f"grades above {LARGEST:g} cannot be added up")
        if self.max_grade is not None:
            limit = self.max_grade
            labels.check(self, lambda y: y > limit, f"expected labels up to max_grade={limit:g}")

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.weight,) if self.weight else ()

    def _gain(self, labels: Floats, columns: Mapping[str, Floats]) -> Floats:
        gain: Floats = np.maximum(labels - self.v, 0)
        return gain * columns[self.weight] if self.weight else gain

    def _raw_discount(self, n: int) -> Floats:
        return geometric_discount(2 ** (-1 / (self.w - 1)), room(n))

    def discount_form(self) -> tuple[Any, float]:
        return ("geometric", 2 ** (-1 / (self.w - 1)), self.k), 1.0

    def top_label(self) -> float:
        """The highest label that a document without one may have."""
        return super().top_label() if self.max_grade is None else float(self.max_grade)
