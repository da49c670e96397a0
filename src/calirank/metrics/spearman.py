r"""Spearman's rank correlation between an order and a ranking.

.. math:: \rho(y, \sigma) = 1 - \frac{6 \sum_i (y^{-1}(i) - \sigma^{-1}(i))^2}{n (n^2 - 1)}

It is positional with φ(k) = 12 (n - k) / (n (n² - 1)), u_i = n - y⁻¹(i) and b = -3 (n - 1) / (n + 1) [MLJ13 Table 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from calirank._kernel import run_ranges
from calirank.data.supervision import Supervision
from calirank.metrics.base import Columns, Empty, Number, as_number, check_empty, empty_value
from calirank.metrics.judged import Gain, RankingMetric, kernels, nothing
from calirank.metrics.lists import Floats, Ints
from calirank.names import METRICS

#: The sums of longer lists would not fit into 64 bits.
LONGEST = 2_000_000


@METRICS.register("spearman")
@dataclass(frozen=True)
class Spearman(RankingMetric):
    """Spearman's rho; ``empty`` for a list of fewer than two documents, where it divides by 0.

    Tied documents share their mean rank, on both sides. This is the mean over all ways to break the ties; it is not
    the correlation of the tied ranks, which statistics packages compute and which has no fixed utility.

    >>> Spearman()([0, 1, 2], scores=[2, 3, 1])          # the ranking 0 > 1 > 2, and scores that sort 1 > 0 > 2
    0.5
    >>> Spearman()([(0, 1), 2], order=[1, 0, 2])         # a ranking with 0 and 1 tied: the mean of 1 and 0.5
    0.75
    """

    empty: Empty = 0.0

    def __post_init__(self) -> None:
        check_empty("spearman", self.empty)

    @property
    def is_positional(self) -> bool:
        return True

    def discount_form(self) -> tuple[Any, float]:
        return ("spearman",), 1.0

    def judgement_values(self, scores: Floats, offsets: Ints, judgements: Supervision) -> Floats:
        longest = int(np.diff(offsets).max(initial=0))
        if longest > LONGEST:
            raise ValueError(f"{self}: a list has {longest} documents; it is computed for at most {LONGEST}")
        held = self._compared(scores, offsets, judgements)
        found = np.empty(len(held.query))
        run_ranges(lambda begin, end: kernels().spearman(*held, found, begin, end), held.starts)
        return np.where(np.isnan(found), empty_value(self.empty), found)

    def discount(self, n: int) -> Floats:
        """12 (n - k) / (n (n² - 1)) for the ranks k = 1..n; 0 for one document."""
        return 12 * np.arange(n - 1, -1, -1, dtype=np.float64) / max(n * (n * n - 1), 1)

    def utility(self, labels: Any, *, columns: Columns = None) -> Floats:
        """n - y⁻¹(i), the number of documents below i in the ranking; half of those that are tied with it."""
        del columns
        n, judgements = self._ties(labels)
        total = sum(weight for weight, _, _ in judgements)
        found = np.zeros(n)
        for weight, items, levels in judgements:
            found[items] += weight / total * below(levels)
        return found

    def ideal(self, labels: Any, *, columns: Columns = None) -> float:
        """The value of the order by utility: 1 for one ranking without ties."""
        return self(labels, scores=self.utility(labels), columns=columns)

    def _decomposed_one(self, items: Ints, levels: Ints, n: int) -> tuple[Number, Gain]:
        if n < 2:
            return as_number(self.empty), nothing
        utility = dict(zip(items.tolist(), map(Fraction, below(levels).tolist()), strict=True))
        share = Fraction(12, n * (n * n - 1))
        return Fraction(-3 * (n - 1), n + 1), lambda before, item: share * (n - len(before) - 1) * utility[item]


def below(levels: Ints) -> Floats:
    """How many documents stand below each, those tied with it counting one half; documents stand best first.

    >>> below(np.array([0, 1, 1])).tolist()
    [2.0, 0.5, 0.5]
    """
    sizes = np.bincount(levels)
    behind = len(levels) - np.cumsum(sizes)
    found: Floats = (behind + (sizes - 1) / 2)[levels]
    return found
