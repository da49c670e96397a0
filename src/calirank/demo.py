"""The demonstration: data of a known truth, a ranker trained on it, and what its rankings are worth.

The ranker is the simplest consistent one: linear least squares on the gains, whose minimiser is the expected gain of a
document, by which DCG wants to sort [MLJ13 Th 3.2]. Because the data is synthetic, the best ranking that anyone could
make is known, and the table shows how far below it each ranking stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calirank.data._files import atomic_write
from calirank.data.letor import read_letor, write_letor
from calirank.data.ranking_data import RankingData
from calirank.data.synthetic import synthetic
from calirank.evaluation.evaluate import evaluate
from calirank.evaluation.statistics import mean_interval
from calirank.metrics import Metric, metric

Floats = NDArray[np.float64]

#: How the demonstration's data is made.
SCENARIO = "grades"
METRIC = "ndcg@10"


@dataclass(frozen=True)
class Result:
    """What the demonstration found: the mean of the metric on the test queries for each ranking."""

    folder: Path
    metric: str
    train: str
    test: str
    means: dict[str, float]
    #: 95 % interval of the difference between the trained and the random ranking.
    gain: tuple[float, float]

    def rows(self) -> Iterator[tuple[str, str]]:
        for name, mean in self.means.items():
            yield name, f"{mean:.4f}"


def run_demo(folder: str | Path = "calirank-demo", *, queries: int = 1000, seed: int = 0) -> Result:
    """Make data, train, judge; leave ``train.txt``, ``test.txt``, ``scores.txt``, ``results.json`` in ``folder``."""
    if queries < 10:
        raise ValueError(f"the demonstration needs at least 10 queries; got {queries}")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    made = synthetic(SCENARIO, queries=queries, seed=seed)
    split = int(0.6 * queries)
    for name, part in (("train", made[:split]), ("test", made[split:])):
        write_letor(part, place / f"{name}.txt")
    # The rest works on the files, as a user's own would be read; the truth stays with the data that was made.
    train = read_letor(place / "train.txt")
    test, truth = read_letor(place / "test.txt", like=train), made[split:]
    judged_by = metric(METRIC)
    scores = {
        "trained: least squares on gains": least_squares(train, test),
        "random order": np.random.default_rng(seed + 1).random(test.n_docs),
        "best possible (the truth is known)": expected_utility(truth, judged_by),
    }
    values = {name: evaluate(given, test, judged_by)[METRIC].per_query for name, given in scores.items()}
    trained, random = list(values.values())[:2]
    with atomic_write(place / "scores.txt", "w") as out:
        out.writelines(f"{score!r}\n" for score in next(iter(scores.values())).tolist())
    result = Result(
        folder=place,
        metric=METRIC,
        train=repr(train),
        test=repr(test),
        means={name: float(found.mean()) for name, found in values.items()},
        gain=mean_interval(trained - random)[:2],
    )
    report = {"metric": METRIC, "seed": seed, "queries": queries, "mean": result.means, "gain_over_random": result.gain}
    with atomic_write(place / "results.json", "w") as out:
        out.write(json.dumps(report, indent=1) + "\n")
    return result


def least_squares(train: RankingData, test: RankingData) -> Floats:
    """Scores of the test documents by the linear function that fits the gains of the training documents best."""
    gain = metric("dcg").utility(train.y if train.y is not None else [])
    weights = np.linalg.lstsq(_with_constant(train.X), gain, rcond=None)[0]
    scores: Floats = _with_constant(test.X) @ weights
    return scores


def _with_constant(X: NDArray[np.float32]) -> Floats:
    return np.column_stack([X.astype(np.float64), np.ones(len(X))])


def expected_utility(truth: RankingData, judged_by: Metric) -> Floats:
    """The expected utility of each document under the true distribution: no ranking beats the order of these."""
    scores = np.empty(truth.n_docs)
    for query in range(len(truth)):
        outcomes, probabilities = truth.posterior(query)
        scores[truth.rows(query)] = probabilities @ np.stack([judged_by.utility(labels) for labels in outcomes])
    return scores
