r"""Rankings by groups of voters: Mallows, Plackett-Luce, or one fixed order a group.

.. math:: P(\sigma) = \sum_m w_m\, P_q(\sigma \mid \text{centre}_m),\quad
    \text{Mallows: } P_q \propto q^{\mathrm{inversions}},\quad
    \text{Plackett-Luce: strength } q^{k-1} \text{ at place } k \text{ of the centre}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from calirank.data.ragged import Floats, Ints
from calirank.data.supervision import Rankings
from calirank.data.synthetic.truth import Truth, between, relative_weights, replicate, shares, whole
from calirank.names import SCENARIOS
from calirank.orders import all_orders

Model = Literal["mallows", "plackett_luce", "fixed"]
#: All orders of so many items are listed; a longer list takes the model "fixed".
MOST_ITEMS = 6


@SCENARIOS.register("rankings")
@dataclass(frozen=True, slots=True)
class VoterRankings:
    """Groups of voters, in the ratios of ``weights``: group m = 0, 1, … ranks 1 > 2 > … > n with the first m put last.

    ``model`` says how the voters of a group scatter around that centre: "mallows" (P ∝ q^inversions, q = ``spread``),
    "plackett_luce" (the item at place k of the centre has strength q^(k-1)), or "fixed" (not at all: as many outcomes
    as groups, for lists of any length). The other two list all n! orders, for up to 6 items.

    Two groups, the second with share p, "fixed": for p < 1/2 the majority order 1 > 2 > … > n is best for Kendall's
    tau, 1 - 4p/n, and for zero_one, 1 - p. Spearman's rho sorts by mean rank (Borda): for 1/n < p < 2/n, 2 > 1 > 3 >
    … > n is best for it; it loses 4(1-2p)/(n(n-1)) of tau, and the majority order 12(pn-1)/(n(n²-1)) of rho.

    One group: its centre is best for all three. The items at the places i and i + d of the centre stand in this order
    with probability (d+1)/(1-q^(d+1)) - d/(1-q^d) (Mallows), 1/(1+q^d) (Plackett-Luce).

    ==============================  ========  ==========  ==========  =============  ======
    scenario                        metric    best value  best order  another order  regret
    ==============================  ========  ==========  ==========  =============  ======
    rankings                        kendall   31/105      1>2>3       2>1>3          2/105
    rankings                        spearman  5/14        2>1>3       1>2>3          1/14
    rankings                        zero_one  8/21        1>2>3       2>3>1          4/35
    rankings(model=plackett_luce)   kendall   127/425     1>2>3       2>1>3          2/425
    rankings(model=plackett_luce)   spearman  63/170      2>1>3       1>2>3          63/850
    rankings(items=4, model=fixed)  kendall   3/5         1>2>3>4     2>1>3>4        1/15
    rankings(items=4, model=fixed)  spearman  16/25       2>1>3>4     1>2>3>4        3/25
    rankings(items=4, model=fixed)  zero_one  3/5         1>2>3>4     2>3>4>1        1/5
    ==============================  ========  ==========  ==========  =============  ======
    """

    items: int = 3
    weights: tuple[float, ...] = (3.0, 2.0)
    model: Model = "mallows"
    spread: float = 0.25
    noise_features: int = 2

    def __post_init__(self) -> None:
        whole(self.items, 2, "rankings: items")
        object.__setattr__(self, "weights", relative_weights(self.weights, "rankings: weights"))
        if len(self.weights) > self.items:
            raise ValueError(
                f"rankings: weights: {self.items} items have {self.items} centres; got {len(self.weights)}"
            )
        if self.model not in get_args(Model):
            raise ValueError(f"rankings: model: expected {', '.join(get_args(Model))}; got {self.model!r}")
        if self.model != "fixed" and self.items > MOST_ITEMS:
            raise ValueError(
                f"rankings: {self.model} lists all orders, of at most {MOST_ITEMS} items; got {self.items}; "
                "model=fixed takes lists of any length"
            )
        between(self.spread, 0.001, 1, "rankings: spread")
        whole(self.noise_features, 0, "rankings: noise_features")

    def template(self) -> Rankings:
        """The list itself: one order for each outcome."""
        centres = np.array([np.roll(np.arange(self.items), -group) for group in range(len(self.weights))])
        weights = shares(self.weights)
        if self.model == "fixed":
            return Rankings(centres, weights)
        orders = all_orders(self.items).astype(np.int64)
        scatter = _mallows if self.model == "mallows" else _plackett_luce
        chances = [scatter(np.argsort(centre)[orders], self.spread) for centre in centres]
        return Rankings(orders, weights @ np.array(chances))

    def truth(self, queries: int, rng: np.random.Generator) -> Truth:
        return replicate(self.template(), self.items, queries, rng, self.noise_features)


def _mallows(places: Ints, q: float) -> Floats:
    """Probabilities of orders, given as the places that their items have in the centre."""
    first, second = np.triu_indices(places.shape[1], 1)
    return shares(q ** (places[:, first] > places[:, second]).sum(axis=1))


def _plackett_luce(places: Ints, q: float) -> Floats:
    strength = q ** places.astype(np.float64)
    left = np.cumsum(strength[:, ::-1], axis=1)[:, ::-1]
    return shares((strength / left).prod(axis=1))
