"""Three documents, two best orders for ERR, and no way from one to the other through orders as good."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calirank.data.supervision import Judgements
from calirank.data.synthetic.truth import Truth, replicate, shares, whole
from calirank.names import SCENARIOS


@SCENARIOS.register("err_islands")
@dataclass(frozen=True, slots=True)
class ErrIslands:
    """Labels (1,1,0) with probability 7/12, (0,0,1) with 5/12: the best orders for ERR fall into two islands.

    With max_grade 1 exactly 1>3>2 and 2>3>1 are best, and they are no swap of neighbours apart; so no score that
    estimates an expected utility finds them [NeurIPS20 Th 6]. Were 2 the largest grade possible, 1>2>3 and 2>1>3
    would be best, which are one swap apart.

    ===========  ================  ==========  ==========  =============  =======
    scenario     metric            best value  best order  another order  regret
    ===========  ================  ==========  ==========  =============  =======
    err_islands  err(max_grade=1)  4/9         1>3>2       1>2>3          1/96
    err_islands  err(max_grade=1)  4/9         2>3>1       3>1>2          1/24
    err_islands  err(max_grade=2)  271/1152    1>2>3       1>3>2          1/1152
    err_islands  err(max_grade=2)  271/1152    2>1>3       3>1>2          25/1152
    err_islands  rr                19/24       1>3>2       1>2>3          5/72
    err_islands  ap                109/144     3>1>2       1>2>3          5/144
    ===========  ================  ==========  ==========  =============  =======
    """

    noise_features: int = 2

    def __post_init__(self) -> None:
        whole(self.noise_features, 0, "err_islands: noise_features")

    def template(self) -> Judgements:
        return Judgements([[[1, 1, 0], [0, 0, 1]]], shares([7, 5]))

    def truth(self, queries: int, rng: np.random.Generator) -> Truth:
        return replicate(self.template(), 3, queries, rng, self.noise_features)
