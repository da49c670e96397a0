r"""Graded labels whose noise is shared by the documents of a query.

.. math:: y^k_i = \mathrm{clip}(\lfloor 2 z^k_i \rfloor, 0, p),\quad
    z^k_i = \tfrac{2 q_{i1} + 2 q_{i2} + q_{i3}}{3} + \nu\,(a_i \cos\tfrac{2\pi k}{K} + b_i \sin\tfrac{2\pi k}{K}),\quad
    P(k \mid x) = \tfrac{1}{K}\bigl(1 + \kappa\, t \cos\tfrac{2\pi k}{K}\bigr)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calirank.data.ragged import Floats, Ints, list_numbers, offsets_of
from calirank.data.supervision import Judgements
from calirank.data.synthetic.truth import Truth, between, numbered, whole
from calirank.names import SCENARIOS

_NAMED = ("topic", "taste_1", "taste_2", "quality_1", "quality_2", "quality_3")


@SCENARIOS.register("grades")
@dataclass(frozen=True, slots=True)
class Grades:
    """Labels 0..p with correlated noise: K tastes, one of which judges the whole list.

    Every document has three standard normal qualities q1, q2, q3 and two tastes a, b; every list has a topic t, uniform
    on [-1, 1]. The outcomes k = 0..K-1 are readers whose tastes lie evenly around a circle. Reader k sees
    z = (2 q1 + 2 q2 + q3)/3 + noise (a cos(2πk/K) + b sin(2πk/K)) and gives the label floor(2z), cut to 0..max_grade;
    the reader is k with probability (1 + skew t cos(2πk/K))/K (divided by its sum, which is 1 unless K = 1). So the
    labels of a list move together, and neither the labels nor their means are linear in the features. Outcomes may
    coincide.

    ``items`` is the length of all lists, or two bounds: the length is then log-normal around their geometric mean, cut
    off at the bounds. ``outcomes`` is K. Features: topic, taste_1, taste_2, quality_1..3, and ``noise_features`` that
    mean nothing.

    Known of every list: the best order for DCG sorts U_i = E[2^y_i - 1], and its value is Σ_k U_(k)/log2(1+k), U_(k)
    the k-th largest; for NDCG the same with U_i = E[(2^y_i - 1)/maxDCG(y)], a list without a label above 0 counting
    0. Another order's regret is the difference of these sums. ERR has no such utility; its best order is found by
    search. Means over 40 lists (queries=40, seed=0):

    ============================  ================  ==========  =================  =================  ======
    scenario                      metric            best value  best order         another order      regret
    ============================  ================  ==========  =================  =================  ======
    grades(items=5, max_grade=2)  dcg               2.6950      by E[gain]         by E[gain/maxDCG]  0.0208
    grades(items=5, max_grade=2)  dcg               2.6950      by E[gain]         by E[label]        0.0025
    grades(items=5, max_grade=2)  ndcg              0.7657      by E[gain/maxDCG]  by E[gain]         0.0071
    grades(items=5, max_grade=2)  err(max_grade=2)  0.5012      by search          by E[gain]         0.0017
    ============================  ================  ==========  =================  =================  ======
    """

    items: int | tuple[int, int] = 20
    max_grade: int = 4
    outcomes: int = 8
    noise: float = 1.0
    skew: float = 1.0
    noise_features: int = 4

    def __post_init__(self) -> None:
        if isinstance(self.items, (tuple, list)):
            if len(self.items) != 2:
                raise ValueError(f"grades: items: expected a length or two bounds, got {len(self.items)} numbers")
            low = whole(self.items[0], 1, "grades: items")
            object.__setattr__(self, "items", (low, whole(self.items[1], low, "grades: items, second bound")))
        else:
            whole(self.items, 1, "grades: items")
        whole(self.max_grade, 1, "grades: max_grade")
        whole(self.outcomes, 1, "grades: outcomes")
        between(self.noise, 0, 1e6, "grades: noise")
        between(self.skew, 0, 1, "grades: skew")
        whole(self.noise_features, 0, "grades: noise_features")

    def truth(self, queries: int, rng: np.random.Generator) -> Truth:
        sizes = self._sizes(queries, rng)
        offsets = offsets_of(sizes)
        query = list_numbers(offsets)
        topic = (2 * rng.random(queries) - 1).astype(np.float32)
        X = rng.standard_normal((len(query), len(_NAMED) + self.noise_features), dtype=np.float32)
        X[:, 0] = topic[query]
        angle = 2 * np.pi * np.arange(self.outcomes) / self.outcomes
        chance = 1 + self.skew * topic.astype(np.float64)[:, None] * np.cos(angle)
        chance /= chance.sum(axis=1, keepdims=True)
        posterior = Judgements._build(
            np.arange(queries),
            np.arange(queries + 1, dtype=np.int64) * self.outcomes,
            chance.reshape(-1),
            offsets_of(np.repeat(sizes, self.outcomes)),
            [self._labels(X, offsets, query, angle)],
        )
        return Truth(X, (*_NAMED, *numbered("noise", self.noise_features)), sizes, posterior)

    def _sizes(self, queries: int, rng: np.random.Generator) -> Ints:
        if isinstance(self.items, int):
            return np.full(queries, self.items, dtype=np.int64)
        low, high = self.items
        part = np.clip(0.5 + 0.2 * rng.standard_normal(queries), 0, 1)
        return np.rint(low * (high / low) ** part).astype(np.int64)

    def _labels(self, X: NDArray[np.float32], offsets: Ints, query: Ints, angle: Floats) -> Floats:
        """The K label vectors of each list, one after the other."""
        _, a, b, q1, q2, q3 = X[:, : len(_NAMED)].T.astype(np.float64)
        seen = (2 * q1 + 2 * q2 + q3) / 3
        lengths = np.diff(offsets)[query]
        place = np.arange(len(query)) + (self.outcomes - 1) * offsets[query]  # of the first outcome's labels
        labels = np.empty(self.outcomes * len(query))
        for cos, sin in zip(np.cos(angle), np.sin(angle), strict=True):
            labels[place] = np.clip(np.floor(2 * (seen + self.noise * (a * cos + b * sin))), 0, self.max_grade)
            place += lengths
        return labels
