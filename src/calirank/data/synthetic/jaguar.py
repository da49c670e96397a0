"""A query that means several things: each annotator has one of them in mind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calirank.data.supervision import Judgements
from calirank.data.synthetic.truth import Truth, relative_weights, replicate, shares, whole
from calirank.names import SCENARIOS


@SCENARIOS.register("jaguar")
@dataclass(frozen=True, slots=True)
class Jaguar:
    """Annotators with intents: "jaguar" the car or the animal. Documents are relevant to one intent only.

    Outcome c has label 1 for the ``each`` documents of intent c and 0 for all others; its probability is in the
    ratios of ``weights``, one for each intent. ``irrelevant`` documents are relevant to none. Roles: the documents of
    the first intent, of the second, …, the irrelevant ones.

    Sorting by expected relevance puts all documents of the likeliest intent first. That is best for the metrics with a
    utility (DCG, NDCG, precision); but RR and ERR want every intent served early. With weights in decreasing order
    p_1 ≥ p_2 ≥ …, the best RR is Σ_c p_c/c, and the sort loses Σ_c p_c (1/c - 1/(1 + each (c-1))).

    The default has documents 1 and 2 for cars, 3 and 4 for animals: y = (1,1,0,0) with probability p = 7/12, (0,0,1,1)
    with 5/12. For 1/2 < p < 2/3 the best ERR (max_grade 1) is 5/16 + 13p/48, reached by 1>3>2>4 and by what it becomes
    when the documents of an intent are exchanged: four orders, no two of them a swap of neighbours apart. Sorting by
    expected relevance, 1>2>3>4, loses 1/12 - p/8. It is best for AP, with 5/12 + 7p/12, and 1>3>2>4 loses p/4 - 1/12.
    With equal weights ERR gains 1/48 and AP loses 1/24 from 1>2>3>4 to 1>3>2>4 ([ICML11 Th 3] prints sums over the two
    outcomes, 1/24 and -1/12); then ERR is best for all 16 orders that begin with both intents, and they are connected,
    while AP's best are two groups of four.

    ========================  ================  ==========  ==========  =============  =======
    scenario                  metric            best value  best order  another order  regret
    ========================  ================  ==========  ==========  =============  =======
    jaguar                    err(max_grade=1)  271/576     1>3>2>4     1>2>3>4        1/96
    jaguar                    err(max_grade=1)  271/576     1>3>2>4     1>3>4>2        1/288
    jaguar                    ap                109/144     1>2>3>4     1>3>2>4        1/16
    jaguar                    rr                19/24       1>3>2>4     1>2>3>4        5/72
    jaguar                    precision@2       7/12        1>2>3>4     1>3>2>4        1/12
    jaguar                    dcg               1.3392      1>2>3>4     1>3>2>4        0.0218
    jaguar                    ndcg              0.8211      1>2>3>4     1>3>2>4        0.0134
    jaguar(weights=[1, 1])    err(max_grade=1)  43/96       1>3>2>4     1>2>3>4        1/48
    jaguar(weights=[1, 1])    ap                17/24       1>2>3>4     1>3>2>4        1/24
    jaguar(weights=[51, 49])  err(max_grade=1)  721/1600    1>3>2>4     1>2>3>4        47/2400
    jaguar(weights=[11, 9])   err(max_grade=1)  443/960     1>3>2>4     1>2>3>4        7/480
    jaguar(weights=[3, 2])    err(max_grade=1)  19/40       1>3>2>4     1>2>3>4        1/120
    ========================  ================  ==========  ==========  =============  =======
    """

    weights: tuple[float, ...] = (7.0, 5.0)
    each: int = 2
    irrelevant: int = 0
    noise_features: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", relative_weights(self.weights, "jaguar: weights"))
        whole(self.each, 1, "jaguar: each")
        whole(self.irrelevant, 0, "jaguar: irrelevant")
        whole(self.noise_features, 0, "jaguar: noise_features")

    @property
    def items(self) -> int:
        return len(self.weights) * self.each + self.irrelevant

    def template(self) -> Judgements:
        """The list itself: a row a intent, a column a role."""
        labels = np.zeros((len(self.weights), self.items))
        for intent in range(len(self.weights)):
            labels[intent, intent * self.each : (intent + 1) * self.each] = 1
        return Judgements([labels], shares(self.weights))

    def truth(self, queries: int, rng: np.random.Generator) -> Truth:
        return replicate(self.template(), self.items, queries, rng, self.noise_features)
