r"""DCG: gains, discounted by the logarithm of the rank.

.. math:: \mathrm{DCG}_K(y, \sigma) = \sum_{k \le K} \frac{g(y_{\sigma(k)})}{\log_2(1 + k)}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calirank.metrics.base import LARGEST, UNJUDGED, Unjudged, check_choice, check_cutoff, check_number
from calirank.metrics.gains import Gain, as_gain, check_gains, gain_column, gains, logarithmic_discount
from calirank.metrics.lists import Floats, Labels
from calirank.metrics.positional import Positional
from calirank.names import METRICS


class Discounted(Positional):
    """What DCG and NDCG share: a gain, weights of the documents, and a logarithmic discount."""

    gain: Gain
    base: float
    weight: str | None
    max_grade: float | None
    monotone = True

    def _check_settings(self, name: str) -> None:
        check_cutoff(name, self.k)
        object.__setattr__(self, "gain", as_gain(name, self.gain))
        check_number(name, "base", self.base, 1, inclusive=False)
        if self.weight is not None and (not isinstance(self.weight, str) or not self.weight):
            raise ValueError(f"{name}: weight is the name of a column, or None; got {self.weight!r}")
        check_choice(name, "unjudged", self.unjudged, UNJUDGED)
        if self.max_grade is not None:
            check_number(name, "max_grade", self.max_grade, 0)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*gain_column(self.gain), *([self.weight] if self.weight else [])]))

    def check(self, labels: Labels) -> None:
        super().check(labels)
        check_gains(self, self.gain, labels)
        if self.max_grade is not None:
            limit = self.max_grade
            labels.check(self, lambda y: y > limit, f"expected labels up to max_grade={limit:g}")

    def _gain(self, labels: Floats, columns: Mapping[str, Floats]) -> Floats:
        gained = gains(labels, self.gain, columns)
        if self.weight is None:
            return gained
        with np.errstate(over="ignore"):
            weighted = gained * columns[self.weight]
        if len(weighted) and weighted.max() > LARGEST:
            raise ValueError(f"{self}: a gain times its weight is above {LARGEST:g}, which cannot be added up")
        return weighted

    def _raw_discount(self, n: int) -> Floats:
        return logarithmic_discount(n, self.base)

    def discount_form(self) -> tuple[Any, float]:
        return ("logarithmic", self.k), math.log2(self.base)

    def top_label(self) -> float:
        """The highest label that a document without one may have."""
        if self.max_grade is None and isinstance(self.gain, tuple):
            return len(self.gain) - 1.0
        return super().top_label() if self.max_grade is None else float(self.max_grade)


@METRICS.register("dcg")
@dataclass(frozen=True)
class DCG(Discounted):
    """DCG of one list; tied scores share their mean discount.

    ``gain`` is "exponential" (2^y - 1), "linear" (y), a list of gains by grade or the name of a column of gains;
    ``weight`` names a column that multiplies it. ``base`` is that of the logarithm.

    >>> DCG()([0, 1, 3], scores=[0.2, 0.1, 0.9])        # 7 / log2(2) + 0 / log2(3) + 1 / log2(4)
    7.5
    >>> DCG(gain="price")([0, 1, 0], scores=[3, 2, 1], columns={"price": [10, 0, 20]})      # 10 / 1 + 20 / 2
    20.0
    """

    k: int | None = None
    gain: Gain = "exponential"
    base: float = 2
    weight: str | None = None
    unjudged: Unjudged = "zero"
    max_grade: float | None = None

    def __post_init__(self) -> None:
        self._check_settings("dcg")
