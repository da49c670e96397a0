r"""NDCG: the share of the attainable discounted gain that a ranking earns.

.. math:: \mathrm{NDCG}_K(y, \sigma) = \mathrm{DCG}_K(y, \sigma) \,/\, \max_{\sigma'} \mathrm{DCG}_K(y, \sigma')
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calirank.metrics.positional import Floats, Gain, Positional, check_settings, dot, gains, logarithmic_discount
from calirank.names import METRICS


@METRICS.register("ndcg")
@dataclass(frozen=True)
class NDCG(Positional):
    """NDCG of one list; tied scores share their mean discount. A list with nothing to gain has the value ``empty``.

    >>> round(NDCG(k=2)([0, 2, 1], scores=[0.9, 0.5, 0.1]), 4)      # 3 / log2(3), divided by 3 + 1 / log2(3)
    0.5213
    """

    k: int | None = None
    gain: Gain = "exponential"
    empty: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self.k, self.gain, "ndcg")
        if not np.isfinite(self.empty):
            raise ValueError(f"ndcg: the value of a list with nothing to gain is a finite number; got {self.empty!r}")

    def utility(self, labels: ArrayLike) -> Floats:
        """The gains, divided by the best DCG of these labels."""
        gained = gains(labels, self.gain, self)
        best = dot(np.sort(gained)[::-1], self.discount(len(gained)))
        return gained / best if best > 0 else np.zeros_like(gained)

    def discount(self, n: int) -> Floats:
        """1 / log2(1 + rank), 0 beyond the cut-off."""
        return logarithmic_discount(n, self.k)

    def offset(self, labels: ArrayLike) -> float:
        """``empty`` for a list with nothing to gain, else 0."""
        return 0.0 if gains(labels, self.gain, self).any() else self.empty
