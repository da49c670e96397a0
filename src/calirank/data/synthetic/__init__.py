"""Synthetic data with a known truth: P(y | x) is a finite joint distribution, so regret is computed, not estimated.

=============  ==============  =================================================================================
scenario       supervision     what it shows
=============  ==============  =================================================================================
grades         grades          labels 0..p whose noise is shared by the documents of a query
jaguar         binary labels   annotators with different intents; ERR's best orders fall into four islands
err_islands    binary labels   three documents, two best orders for ERR, no path between them
dcg_vs_ndcg    binary labels   DCG and NDCG want opposite orders
preferences    preferences     acyclic judges whose mean may be cyclic: P_DAG, P_f, low noise hold or fail as told
rankings       rankings        groups of voters; the best orders for Kendall's tau and Spearman's rho differ
=============  ==============  =================================================================================

The page docs/synthetic.md gives formulas and exact best values and regrets.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from calirank.data.ranking_data import RankingData
from calirank.data.supervision import Judgements, Preferences, Rankings
from calirank.data.synthetic.dcg_vs_ndcg import DcgVsNdcg
from calirank.data.synthetic.err_islands import ErrIslands
from calirank.data.synthetic.grades import Grades
from calirank.data.synthetic.jaguar import Jaguar
from calirank.data.synthetic.preferences import CyclicPreferences
from calirank.data.synthetic.rankings import VoterRankings
from calirank.data.synthetic.truth import Scenario, Truth, draw, whole
from calirank.names import SCENARIOS, Name, parse

__all__ = [
    "CyclicPreferences",
    "DcgVsNdcg",
    "ErrIslands",
    "Grades",
    "Jaguar",
    "Scenario",
    "Truth",
    "VoterRankings",
    "synthetic",
]


def synthetic(
    scenario: str | Scenario = "grades",
    *,
    queries: int = 1000,
    seed: int | np.random.Generator = 0,
    judges: int | None = None,
    **parameters: Any,
) -> RankingData:
    """Queries of a scenario: features, supervision drawn from P(y | x), and P(y | x) itself, ``data.posterior(i)``.

    Parameters of the scenario stand in its name, ``"grades(items=50)"``, or as keywords, ``items=50``. One supervision
    is drawn for each query; with ``judges=m`` m independent ones, as judgements of the query.

    P(y | x) is the same function of the features for every seed: data of two seeds are a training and a test set. One
    seed gives the same features with and without ``judges``. The numbers come from NumPy's PCG64 (one stream for the
    features, one for the draws), in one thread: equal seeds give equal data, as long as NumPy draws alike. A generator
    as ``seed`` gives other data each time that it is used.

    >>> data = synthetic("jaguar", queries=1, noise_features=0, seed=1)
    >>> data.X.argmax(axis=1).tolist()             # the role of each document: 0, 1 are cars, 2, 3 animals
    [2, 1, 3, 0]
    >>> outcomes, probabilities = data.posterior(0)
    >>> outcomes.tolist(), probabilities.round(4).tolist()  # an annotator who means cars, one who means animals
    ([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]], [0.5833, 0.4167])
    >>> data.y.tolist()                            # what one annotator said
    [0.0, 1.0, 0.0, 1.0]
    """
    built = _scenario(scenario, parameters)
    for_truth, for_draws = _streams(seed)
    truth = built.truth(whole(queries, 1, "queries"), for_truth)
    drawn = draw(truth.posterior, 1 if judges is None else whole(judges, 1, "judges"), for_draws)
    supervision: dict[str, Any]
    if isinstance(drawn, Preferences):
        supervision = {"preferences": drawn}
    elif isinstance(drawn, Rankings):
        supervision = {"rankings": drawn}
    else:
        assert isinstance(drawn, Judgements)
        supervision = {"y": drawn.labels} if judges is None else {"judges": drawn}
    return RankingData(
        truth.X, sizes=truth.sizes, feature_names=truth.feature_names, posterior=truth.posterior, **supervision
    )


def _scenario(scenario: str | Scenario, parameters: dict[str, Any]) -> Scenario:
    """The scenario that is meant; keywords are arguments of its name."""
    if not isinstance(scenario, str):
        if not hasattr(scenario, "truth"):
            raise TypeError(f"scenario: expected a name or a scenario, got {type(scenario).__name__}")
        if parameters:
            raise TypeError(f"scenario: {next(iter(parameters))} goes with a name; this scenario is already made")
        return scenario
    name = parse(scenario)
    if isinstance(name, Name):
        given = tuple((key, _plain(value)) for key, value in parameters.items())
        name = Name(name.name, name.arguments, name.keywords + given, name.cutoff)
    return cast("Scenario", SCENARIOS.build(name))


def _plain(value: Any) -> Any:
    """Lists and arrays as the tuples, NumPy's numbers as the numbers that names are made of."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(_plain(inner) for inner in value) if isinstance(value, list | tuple) else value


def _streams(seed: int | np.random.Generator) -> list[np.random.Generator]:
    """Two independent generators: for features and truth, and for the draws."""
    if not isinstance(seed, np.random.Generator):
        seed = np.random.Generator(np.random.PCG64(whole(seed, 0, "seed (or a numpy.random.Generator)")))
    return seed.spawn(2)
