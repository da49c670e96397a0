r"""Weighted preference graphs: every judge's is acyclic, their mean can be a cycle.

.. math:: E[y_{ij}] - E[y_{ji}] = 1 - 2c\,\frac{j-i}{n}\quad (i < j,\ \text{graph "order"})
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from calirank.data.supervision import Preferences
from calirank.data.synthetic.truth import Truth, between, replicate, whole
from calirank.names import SCENARIOS

Graph = Literal["order", "distance", "chain"]


@SCENARIOS.register("preferences")
@dataclass(frozen=True, slots=True)
class CyclicPreferences:
    """Judges with a Condorcet cycle: with probability 1 - c all agree on 1 > 2 > … > n, else the order is rotated.

    With probability ``cycle`` = c the judge has one of the n rotations of 1 > 2 > … > n, each alike (the order itself
    is one of them). ``graph`` says which pairs of the judge's order are edges, and with what weight:

    - "order": all pairs, weight 1. For i < j, s_ij = E[y_ij - y_ji] = 1 - 2c (j-i)/n, and
      f_i = Σ_j s_ij = (1-c)(n+1-2i). P_DAG and P_f hold if and only if c ≤ n/(2(n-1)); low noise only for n = 2.
    - "distance": all pairs, weighted by the difference of the places. s_ij = (1-c)(j-i): all three conditions hold, low
      noise with equality.
    - "chain": neighbours only, k² for the places k and k+1; S is the sum of these weights. For n ≥ 3, P_DAG holds
      only for c = 0; P_f and low noise never: for c < 1, f_i = (1-c)(2i-1) *grows* up to i = n-1, and f_n =
      -(1-c)(n-1)²; for c = 1 the means are a plain cycle.

    (P_DAG, P_f, low noise: [NIPS13].) The best order for PD is 1 > 2 > … > n, for every c and also where the conditions
    fail; for c < 1 no other is as good. (For "order": at c = 1, moving the first document to the end changes nothing,
    so any order may be turned until it begins with 1; what follows is the same problem with n-1 documents and
    c = (n-1)/n; and the loss is linear in c.) Its value, and what other orders lose:

    - "order": 1 - c(n+1)/(3n). Moving document 1 to the end loses 2(1-c)/n, reversal 1 - 2c(n+1)/(3n).
    - "distance": 1 - c/2; reversal loses 1 - c.
    - "chain": 1 - c/n. Sorting by f, n-1 > … > 2 > 1 > n, loses (1-c)(S - (n-1)²)/S + c(n-2)/n.

    =================================  ======  ==========  ==========  =============  ======
    scenario                           metric  best value  best order  another order  regret
    =================================  ======  ==========  ==========  =============  ======
    preferences                        pd      19/24       1>2>3>4     2>3>4>1        1/4
    preferences                        pd      19/24       1>2>3>4     4>3>2>1        7/12
    preferences(cycle=0.75)            pd      11/16       1>2>3>4     2>3>4>1        1/8
    preferences(cycle=1)               pd      7/12        1>2>3>4     4>3>2>1        1/6
    preferences(graph=distance)        pd      3/4         1>2>3>4     4>3>2>1        1/2
    preferences(cycle=0, graph=chain)  pd      1           1>2>3>4     3>2>1>4        5/14
    preferences(graph=chain)           pd      7/8         1>2>3>4     3>2>1>4        3/7
    =================================  ======  ==========  ==========  =============  ======
    """

    items: int = 4
    cycle: float = 0.5
    graph: Graph = "order"
    noise_features: int = 2

    def __post_init__(self) -> None:
        whole(self.items, 2, "preferences: items")
        between(self.cycle, 0, 1, "preferences: cycle")
        if self.graph not in get_args(Graph):
            raise ValueError(f"preferences: graph: expected {', '.join(get_args(Graph))}; got {self.graph!r}")
        whole(self.noise_features, 0, "preferences: noise_features")

    def template(self) -> Preferences:
        """The list itself: one judge for each rotation."""
        n, c = self.items, self.cycle
        first, second = np.triu_indices(n, 1)  # places of the judge's order
        if self.graph == "chain":
            first, second = np.arange(n - 1), np.arange(1, n)
        weight = {"order": np.ones(len(first)), "distance": second - first, "chain": (first + 1) ** 2}[self.graph]
        rotation = np.arange(n if c > 0 else 1)
        graphs = Preferences(
            ((rotation[:, None] + first) % n).reshape(-1),
            ((rotation[:, None] + second) % n).reshape(-1),
            np.tile(weight, len(rotation)),
            judge=np.repeat(rotation, len(first)),
        )
        chance = np.full(len(rotation), c / n)
        chance[0] += 1 - c
        return Preferences._build(graphs.query_ids, graphs.offsets, chance, graphs.starts, graphs.payload)

    def truth(self, queries: int, rng: np.random.Generator) -> Truth:
        return replicate(self.template(), self.items, queries, rng, self.noise_features)
