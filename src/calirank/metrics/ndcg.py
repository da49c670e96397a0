r"""NDCG: the share of the attainable discounted gain that a ranking earns.

.. math:: \mathrm{NDCG}_K(y, \sigma) = \mathrm{DCG}_K(y, \sigma) \,/\, \max_{\sigma'} \mathrm{DCG}_K(y, \sigma')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calirank.metrics.base import Empty, Unjudged, check_choice, check_empty, empty_value
from calirank.metrics.dcg import Discounted
from calirank.metrics.gains import Gain, logarithmic_sums
from calirank.metrics.lists import Floats, Lists
from calirank.names import METRICS


@METRICS.register("ndcg")
@dataclass(frozen=True)
class NDCG(Discounted):
    """NDCG of one list; tied scores share their mean discount. A list with nothing to gain has the value ``empty``.

    ``gain``, ``weight`` and ``base`` are those of DCG. The ideal is over all judged documents, or, with
    ``ideal_over="list"``, over those that were ranked.

    >>> round(NDCG(k=2)([0, 2, 1], scores=[0.9, 0.5, 0.1]), 4)      # 3 / log2(3), divided by 3 + 1 / log2(3)
    0.5213
    """

    k: int | None = None
    gain: Gain = "exponential"
    base: float = 2
    weight: str | None = None
    ideal_over: Literal["judged", "list"] = "judged"
    empty: Empty = 0.0
    unjudged: Unjudged = "zero"
    max_grade: float | None = None
    monotone = False

    def __post_init__(self) -> None:
        self._check_settings("ndcg")
        check_empty("ndcg", self.empty)
        check_choice("ndcg", "ideal_over", self.ideal_over, ("judged", "list"))

    def _divided(self, lists: Lists, sums: Floats, divisor: Floats, gains: Floats) -> Floats:
        of_ranked = self.ideal_over == "list"
        return lists.shares(sums, divisor, gains, self._cutoff, empty_value(self.empty), of_ranked=of_ranked)

    def _divisor(self, lists: Lists, gains: Floats) -> Floats:
        best = lists.ideal_of_ranked if self.ideal_over == "list" else lists.ideal
        n = lists.longest
        return best(gains, self._raw_discount(n), logarithmic_sums(n, self.base), self._cutoff)
