r"""Kendall's tau-b between the order of the scores and a ranking.

.. math:: \tau_b(y, s) = \frac{\#\text{concordant} - \#\text{discordant}}
          {\sqrt{\#\{\text{pairs apart in } y\} \cdot \#\{\text{pairs apart in } s\}}}

Without ties it is 1 - 2·lost/(n(n-1)/2), where lost are the pairs that stand in the wrong order: for theory it is
pairwise disagreement over total orders.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from calirank._kernel import run_ranges
from calirank.data.supervision import Supervision
from calirank.metrics.base import Columns, Empty, Number, as_number, check_empty, empty_value
from calirank.metrics.judged import Gain, RankingMetric, kernels, nothing
from calirank.metrics.lists import Floats, Ints
from calirank.metrics.pd import least_lost
from calirank.names import METRICS


@METRICS.register("kendall")
@dataclass(frozen=True)
class Kendall(RankingMetric):
    """Kendall's tau-b; ``empty`` where the scores or the ranking tie all documents.

    Scores and ranking may have ties. At tied scores tau-b is *not* the mean over all ways to break the ties, as most
    metrics here are: the tied pairs are left out of its divisor. An order has no ties.

    >>> Kendall()([0, 1, 2], scores=[2, 3, 1])           # two pairs in the right order, one in the wrong one
    0.3333333333333333
    >>> Kendall()([(0, 1), 2], scores=[5, 5, 2])         # ties in the same place
    1.0
    """

    empty: Empty = 0.0

    def __post_init__(self) -> None:
        check_empty("kendall", self.empty)

    def judgement_values(self, scores: Floats, offsets: Ints, judgements: Supervision) -> Floats:
        held = self._compared(scores, offsets, judgements)
        longest = int(np.diff(held.starts).max(initial=0))
        found = np.empty(len(held.query))

        def task(begin: int, end: int) -> None:
            kernels().kendall(*held, np.empty(longest + 1, np.int64), found, begin, end)

        run_ranges(task, held.starts)
        return np.where(np.isnan(found), empty_value(self.empty), found)

    def ideal(self, labels: Any, *, columns: Columns = None) -> float:
        """The highest value of an order: 1 for one ranking without ties, less for one with ties.

        For several rankings it is that of Kemeny's consensus, which :func:`~calirank.metrics.pd.least_lost` finds.
        """
        del columns
        n, judgements = self._ties(labels)
        value = float(self._decomposed(labels)[0])
        told = [(weight, items, levels, self._scale(levels)) for weight, items, levels in judgements]
        if self.empty == "skip":
            told = [part for part in told if part[3]]
        if len(told) < 2 or not any(weight for weight, *_ in told):
            return value
        total = sum(weight for weight, *_ in told)
        W = np.zeros((n, n))
        for weight, items, levels, scale in told:
            level = np.empty(n, np.int64)
            level[items] = levels
            W += weight / total * 2 * float(scale) * (level[:, None] < level)
        better, worse = np.nonzero(W)
        return value - least_lost(better, worse, W[better, worse], str(self))

    def _scale(self, levels: Ints) -> Number:
        """What a pair counts: 1 / √(all pairs · pairs apart), a Fraction without ties; 0 where all are tied."""
        pairs, apart = pairs_apart(levels)
        if not apart:
            return Fraction(0)
        return Fraction(1, pairs) if apart == pairs else 1 / math.sqrt(pairs * apart)

    def _decomposed_one(self, items: Ints, levels: Ints, n: int) -> tuple[Number, Gain]:
        del n
        scale = self._scale(levels)
        if not scale:
            return as_number(self.empty), nothing
        level = dict(zip(items.tolist(), levels.tolist(), strict=True))

        def gain(before: Collection[int], item: int) -> Number:
            wrong: int = sum(level[item] < level[other] for other in before)
            return -2 * wrong * scale

        return pairs_apart(levels)[1] * scale, gain


def pairs_apart(levels: Ints) -> tuple[int, int]:
    """The number of pairs, and of those that are not tied.

    >>> pairs_apart(np.array([0, 0, 1]))
    (3, 2)
    """
    n = len(levels)
    pairs = n * (n - 1) // 2
    return pairs, pairs - sum(size * (size - 1) // 2 for size in np.bincount(levels).tolist())
