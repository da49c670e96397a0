r"""Zero-one accuracy: whether an order is the ranking.

.. math:: r(y, \sigma) = 1\{\sigma = y\}
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from calirank._kernel import run_ranges
from calirank.data.ragged import frozen, list_numbers
from calirank.data.supervision import Supervision
from calirank.metrics.base import Columns
from calirank.metrics.judged import Compared, RankingMetric, kernels
from calirank.metrics.lists import Floats, Ints
from calirank.names import METRICS
from calirank.orders import check_order


@METRICS.register("zero_one")
@dataclass(frozen=True)
class ZeroOne(RankingMetric):
    """1 when the order is the ranking, else 0; at tied scores 1 / (number of orders that sort them) or 0.

    A ranking with ties stands for all its orders, each equally likely: the value is the chance to hit the one that is
    meant. The gain of a rank depends on the order above it and not on the set alone, so there is no prefix gain.

    >>> ZeroOne()([2, 0, 1], scores=[2, 2, 3])           # two orders sort the scores, and the ranking is one of them
    0.5
    >>> ZeroOne()([2, (0, 1)], order=[2, 0, 1])          # the ranking is one of two orders
    0.5
    """

    def judgement_values(self, scores: Floats, offsets: Ints, judgements: Supervision) -> Floats:
        held = self._tied_by_score(self._compared(scores, offsets, judgements))
        found = np.empty(len(held.query))
        run_ranges(lambda begin, end: kernels().zero_one(*held, found, begin, end), held.starts)
        return found

    def _tied_by_score(self, held: Compared) -> Compared:
        """The rankings with their tied documents in the order of the scores."""
        number = list_numbers(held.starts)
        if not ((np.diff(held.levels) == 0) & (np.diff(number) == 0)).any():
            return held
        rank = held.first[held.offsets[held.query[number]] + held.items]
        return held._replace(items=frozen(held.items[np.lexsort((rank, held.levels, number))]))

    def exact(self, labels: Any, order: Sequence[int]) -> Fraction:
        """The value of an order in exact arithmetic."""
        n, judgements = self._ties(labels)
        items = check_order(order, n)
        told = [(Fraction(weight), ranked, levels) for weight, ranked, levels in judgements]
        total = sum(weight for weight, _, _ in told)
        if not total:
            raise TypeError(f"{self} has no exact value: there is no ranking")
        found = Fraction(0)
        for weight, ranked, levels in told:
            level = np.empty(n, np.int64)
            level[ranked] = levels
            if (np.diff(level[items]) >= 0).all():
                found += weight / total / orders_of(levels)
        return found

    def ideal(self, labels: Any, *, columns: Columns = None) -> float:
        """The highest value of an order: 1 for one ranking without ties.

        For several rankings it is the weight of the most frequent one; ties are then refused, because an order that
        many of them allow is hard to find.
        """
        del columns
        _, judgements = self._ties(labels)
        if len(judgements) == 1:
            return float(Fraction(1, orders_of(judgements[0][2])))
        weights: dict[bytes, float] = {}
        for weight, items, levels in judgements:
            if orders_of(levels) > 1:
                raise ValueError(f"{self}: the best order of several rankings is not known where one of them has ties")
            weights[items.tobytes()] = weights.get(items.tobytes(), 0.0) + weight
        return max(weights.values()) / sum(weights.values()) if weights else math.nan


def orders_of(levels: Ints) -> int:
    """How many orders a ranking with ties allows.

    >>> orders_of(np.array([0, 1, 1, 1]))
    6
    """
    return math.prod(math.factorial(size) for size in np.bincount(levels).tolist())
