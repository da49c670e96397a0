"""Three documents on which DCG and NDCG want opposite orders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calirank.data.supervision import Judgements
from calirank.data.synthetic.truth import Truth, replicate, shares, whole
from calirank.names import SCENARIOS


@SCENARIOS.register("dcg_vs_ndcg")
@dataclass(frozen=True, slots=True)
class DcgVsNdcg:
    """Labels (1,0,0) with probability .44, (0,1,1) with .56: DCG wants document 1 last, NDCG wants it first.

    DCG sorts the expected gains (.44, .56, .56). NDCG divides the second outcome by its larger ideal, 1 + c with
    c = 1/log2(3), and sorts (.44, .56/(1+c), .56/(1+c)) = (.44, .3434, .3434). Document 1 moves between the ranks 1 and
    3, where the discounts are 1 and 1/2: NDCG's order loses 1/2 (.56 - .44) = 3/50 of DCG, and DCG's order
    1/2 (.44 - .56/(1+c)) of NDCG. The best DCG is .56 (1 + c) + .22, the best NDCG .44 + .56 (c + 1/2)/(1 + c).

    ===========  ===========  ==========  ==========  =============  =======
    scenario     metric       best value  best order  another order  regret
    ===========  ===========  ==========  ==========  =============  =======
    dcg_vs_ndcg  dcg          1.13332     2>3>1       1>2>3          3/50
    dcg_vs_ndcg  ndcg         0.82832     1>2>3       2>3>1          0.04832
    dcg_vs_ndcg  precision@1  14/25       2>3>1       1>2>3          3/25
    ===========  ===========  ==========  ==========  =============  =======
    """

    noise_features: int = 2

    def __post_init__(self) -> None:
        whole(self.noise_features, 0, "dcg_vs_ndcg: noise_features")

    def template(self) -> Judgements:
        return Judgements([[[1, 0, 0], [0, 1, 1]]], shares([11, 14]))

    def truth(self, queries: int, rng: np.random.Generator) -> Truth:
        return replicate(self.template(), 3, queries, rng, self.noise_features)
