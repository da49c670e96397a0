r"""DCG: gains, discounted by the logarithm of the rank.

.. math:: \mathrm{DCG}_K(y, \sigma) = \sum_{k \le K} \frac{g(y_{\sigma(k)})}{\log_2(1 + k)}
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from calirank.metrics.positional import Floats, Gain, Positional, check_settings, gains, logarithmic_discount
from calirank.names import METRICS


@METRICS.register("dcg")
@dataclass(frozen=True)
class DCG(Positional):
    """DCG of one list; tied scores share their mean discount.

    >>> DCG()([0, 1, 3], scores=[0.2, 0.1, 0.9])        # 7 / log2(2) + 0 / log2(3) + 1 / log2(4)
    7.5
    """

    k: int | None = None
    gain: Gain = "exponential"

    def __post_init__(self) -> None:
        check_settings(self.k, self.gain, "dcg")

    def utility(self, labels: ArrayLike) -> Floats:
        """The gains."""
        return gains(labels, self.gain, self)

    def discount(self, n: int) -> Floats:
        """1 / log2(1 + rank), 0 beyond the cut-off."""
        return logarithmic_discount(n, self.k)
