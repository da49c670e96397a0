"""Every metric as its definition reads, for one order of one list; nothing here is taken from the library.

An order is a tuple of items, best first. It may leave out some of the documents: what was not returned counts in ideals
and in the number of relevant documents, and earns nothing. Numbers that can be rational are Fractions.

At tied scores the value is the mean over all orders that sort them (:func:`expected`), by listing them all.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Labels = Any  # grades by document (None: no judgement), a ranking, or a matrix of preferences
Order = tuple[int, ...]
Columns = Mapping[str, Sequence[Any]]

#: The parameters that say how a list is prepared or what an undefined value is, not what the metric is.
OUTER = ("unjudged", "empty")


# --- one list, one order ---------------------------------------------------------------------------------------------


def gain_of(
    labels: Labels, item: int, gain: Any, weight: str | None, columns: Columns, v: float | None = None
) -> float | Fraction:
    """The gain of one document: by its grade, above the neutral grade, or from a column; times its weight."""
    if v is not None:
        value: Any = max(labels[item] - v, 0)
    elif gain == "exponential":
        value = 2 ** labels[item] - 1
    elif gain == "linear":
        value = labels[item]
    elif isinstance(gain, str):
        value = columns[gain][item]
    else:
        value = gain[labels[item]]
    return value * (1 if weight is None else columns[weight][item])


def discounted(gains: Sequence[Any], k: int | None, base: float) -> float:
    """The gains in ranked order, divided by the logarithm of 1 + rank."""
    return sum(float(gain) / math.log(rank + 1, base) for rank, gain in enumerate(gains[:k], start=1))


@functools.cache
def best_discounted(gains: tuple[Any, ...], k: int | None, base: float) -> float:
    """The most that any order of these gains reaches."""
    return max(discounted(order, k, base) for order in itertools.permutations(gains))


def dcg(
    labels: Labels,
    order: Order,
    columns: Columns,
    *,
    k: int | None = None,
    gain: Any = "exponential",
    base: float = 2,
    weight: str | None = None,
    max_grade: int | None = None,
) -> float:
    del max_grade
    return discounted([gain_of(labels, item, gain, weight, columns) for item in order], k, base)


def ndcg(
    labels: Labels,
    order: Order,
    columns: Columns,
    *,
    k: int | None = None,
    gain: Any = "exponential",
    base: float = 2,
    weight: str | None = None,
    max_grade: int | None = None,
    ideal_over: str = "judged",
) -> float | None:
    del max_grade
    counted = sorted(order) if ideal_over == "list" else range(len(labels))
    best = best_discounted(tuple(gain_of(labels, item, gain, weight, columns) for item in counted), k, base)
    return dcg(labels, order, columns, k=k, gain=gain, base=base, weight=weight) / best if best > 0 else None


def eru(
    labels: Labels,
    order: Order,
    columns: Columns,
    *,
    v: float = 0,
    w: float = 5,
    k: int | None = None,
    weight: str | None = None,
    max_grade: int | None = None,
) -> float:
    del max_grade
    gains = [gain_of(labels, item, None, weight, columns, v) for item in order[:k]]
    return sum(float(gain) * 2.0 ** ((1 - rank) / (w - 1)) for rank, gain in enumerate(gains, start=1))


def hits(labels: Labels, order: Sequence[int], relevant: float) -> int:
    """How many of these documents are relevant."""
    return sum(1 for item in order if labels[item] >= relevant)


def number_relevant(labels: Labels, relevant: float) -> int:
    return hits(labels, range(len(labels)), relevant)


def precision(
    labels: Labels,
    order: Order,
    columns: Columns,
    *,
    k: int | None = None,
    relevant: float = 1,
    divisor: str = "k",
) -> Fraction:
    n = len(order)
    depth = n if k is None else min(k, n) if divisor == "min" else k
    return Fraction(hits(labels, order[:k], relevant), depth) if depth else Fraction(0)


def recall(
    labels: Labels, order: Order, columns: Columns, *, k: int | None = None, relevant: float = 1
) -> Fraction | None:
    total = number_relevant(labels, relevant)
    return Fraction(hits(labels, order[:k], relevant), total) if total else None


def auc(labels: Labels, order: Order, columns: Columns, *, relevant: float = 1) -> Fraction | None:
    good = [item for item in range(len(labels)) if labels[item] >= relevant]
    bad = [item for item in range(len(labels)) if labels[item] < relevant]
    place = {item: rank for rank, item in enumerate(order)}
    if not good or not bad:
        return None
    right = sum(1 for i in good for j in bad if i in place and place[i] < place.get(j, len(labels)))
    return Fraction(right, len(good) * len(bad))


def rbp(
    labels: Labels, order: Order, columns: Columns, *, p: float = 0.8, k: int | None = None, relevant: float = 1
) -> Fraction:
    persistence = Fraction(repr(p))
    return sum(
        (
            (1 - persistence) * persistence ** (rank - 1)
            for rank, item in enumerate(order[:k], start=1)
            if labels[item] >= relevant
        ),
        Fraction(0),
    )


def ap(
    labels: Labels,
    order: Order,
    columns: Columns,
    *,
    k: int | None = None,
    relevant: float = 1,
    divisor: str = "relevant",
) -> Fraction | None:
    total = number_relevant(labels, relevant)
    if not total:
        return None
    earned = Fraction(0)
    for rank, item in enumerate(order[:k], start=1):
        if labels[item] >= relevant:
            earned += Fraction(hits(labels, order[:rank], relevant), rank)
    return earned / (min(total, k) if divisor == "min" and k is not None else total)


def rr(labels: Labels, order: Order, columns: Columns, *, k: int | None = None, relevant: float = 1) -> Fraction | None:
    for rank, item in enumerate(order[:k], start=1):
        if labels[item] >= relevant:
            return Fraction(1, rank)
    return Fraction(0) if number_relevant(labels, relevant) else None


def err(labels: Labels, order: Order, columns: Columns, *, k: int | None = None, max_grade: int = 4) -> Any:
    if not any(label > 0 for label in labels):
        return None
    total: Any = Fraction(0)
    for rank, item in enumerate(order[:k], start=1):
        stop = chance_to_stop(labels[item], max_grade)
        for earlier in order[: rank - 1]:
            stop *= 1 - chance_to_stop(labels[earlier], max_grade)
        total += stop / rank
    return total


def chance_to_stop(grade: float, max_grade: int) -> Any:
    """(2^y - 1) / 2^p."""
    return Fraction(2**grade - 1) / 2**max_grade


def levels_of(ranking: Labels) -> dict[int, int]:
    """The level of each item, best first; a tuple inside the ranking holds tied items."""
    places = [place if isinstance(place, tuple) else (place,) for place in ranking]
    return {item: level for level, place in enumerate(places) for item in place}


@functools.cache
def orders_of(ranking: Labels) -> list[Order]:
    """The orders that a ranking stands for, equally likely: one when it has no ties."""
    level = levels_of(ranking)
    if len(ranking) == len(level):
        return [tuple(level)]
    return argsort_set([-level[item] for item in range(len(level))])


def spearman(ranking: Labels, order: Order, columns: Columns) -> Fraction | None:
    n = len(order)
    if n < 2:
        return None
    squares = [sum((order.index(item) - y.index(item)) ** 2 for item in range(n)) for y in orders_of(ranking)]
    return 1 - 6 * mean(squares) / (n * (n * n - 1))


def kendall(ranking: Labels, order: Order, columns: Columns) -> float | Fraction | None:
    return tau_b(ranking, [-order.index(item) for item in range(len(order))])


def tau_b(ranking: Labels, scores: Sequence[Any]) -> float | Fraction | None:
    """Kendall's tau-b between scores and a ranking: pairs that tie on a side are left out of its factor of the root."""
    level = levels_of(ranking)
    pairs = list(itertools.combinations(range(len(scores)), 2))
    by_score = [(scores[i] > scores[j]) - (scores[i] < scores[j]) for i, j in pairs]
    by_level = [(level[i] < level[j]) - (level[i] > level[j]) for i, j in pairs]
    total = sum(a * b for a, b in zip(by_score, by_level, strict=True))
    score_pairs, level_pairs = sum(map(abs, by_score)), sum(map(abs, by_level))
    if not score_pairs or not level_pairs:
        return None
    exact = score_pairs == level_pairs == len(pairs)
    return Fraction(total, len(pairs)) if exact else total / math.sqrt(score_pairs * level_pairs)


def zero_one(ranking: Labels, order: Order, columns: Columns) -> Fraction:
    return mean([Fraction(int(y == tuple(order))) for y in orders_of(ranking)])


def preferences(labels: Labels, pairs: str) -> list[list[Any]]:
    """W[i][j]: by how much i is preferred to j; a vector of grades gives 1, or the difference, where y_i > y_j."""
    if len(labels) and isinstance(labels[0], Sequence):
        return [list(row) for row in labels]
    return [[(1 if pairs == "unit" else a - b) if a > b else 0 for b in labels] for a in labels]


def pd(
    labels: Labels,
    order: Order,
    columns: Columns,
    *,
    normalise: bool = True,
    ties: str = "half",
    pairs: str = "unit",
) -> Fraction | None:
    del ties  # an order has none
    W = preferences(labels, pairs)
    lost = sum(Fraction(W[i][j]) for rank, j in enumerate(order) for i in order[rank + 1 :])
    return kept(lost, W, normalise)


def pd_with_whole_ties(labels: Labels, scores: Sequence[Any], *, normalise: bool, pairs: str) -> Fraction | None:
    """Duchi's convention: a tied pair is lost whole."""
    W = preferences(labels, pairs)
    n = range(len(W))
    return kept(sum(Fraction(W[i][j]) for i in n for j in n if i != j and scores[i] <= scores[j]), W, normalise)


def kept(lost: Any, W: list[list[Any]], normalise: bool) -> Fraction | None:
    total = sum(Fraction(weight) for row in W for weight in row)
    if not total:
        return None
    return 1 - Fraction(lost) / total if normalise else -Fraction(lost)


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "DCG": dcg,
    "NDCG": ndcg,
    "Precision": precision,
    "Recall": recall,
    "AUC": auc,
    "ERU": eru,
    "RBP": rbp,
    "AP": ap,
    "RR": rr,
    "ERR": err,
    "Spearman": spearman,
    "Kendall": kendall,
    "ZeroOne": zero_one,
    "PD": pd,
}


# --- a metric object and its definition ------------------------------------------------------------------------------


def reference_of(metric: Any) -> Callable[..., Any]:
    """The definition of a metric object, by its fields: ``(labels, order, columns={}) -> number``, NaN when skipped.

    Documents without a judgement (label None) have label 0 under "zero" and are taken out under "skip".
    """
    if type(metric).__name__ == "WeightedSum":
        parts = [(Fraction(coefficient), reference_of(part)) for coefficient, part in metric.terms]

        def total(labels: Labels, order: Order, columns: Columns | None = None) -> Any:
            return summed(metric.constant, [(c, part(labels, order, columns)) for c, part in parts])

        return total
    if type(metric).__name__ == "Custom":
        return lambda labels, order, columns=None: metric.function(*judged(metric.unjudged, labels, order, {})[:2])
    definition = DEFINITIONS[type(metric).__name__]
    fields = fields_of(metric)
    arguments = {name: value for name, value in fields.items() if name not in OUTER}

    def value(labels: Labels, order: Order, columns: Columns | None = None) -> Any:
        labels, order, columns = judged(fields.get("unjudged", "zero"), labels, order, columns or {})
        result = definition(labels, order, columns, **arguments)
        return undefined(fields) if result is None else result

    return value


def fields_of(metric: Any) -> dict[str, Any]:
    return {field.name: getattr(metric, field.name) for field in dataclasses.fields(metric)}


def undefined(fields: Mapping[str, Any]) -> Any:
    empty = fields.get("empty", 0)
    return math.nan if empty == "skip" else Fraction(empty)


def summed(constant: float, parts: Sequence[tuple[Fraction, Any]]) -> Any:
    """Coefficients times values, and the constant; NaN where a value is."""
    if any(math.isnan(part) for _, part in parts):
        return math.nan
    return Fraction(constant) + sum(coefficient * part for coefficient, part in parts)


def judged(how: str, labels: Labels, order: Order, columns: Columns) -> tuple[Labels, Order, Columns]:
    """The list without None: set to 0, or, under "skip", without its documents."""
    if None not in labels:
        return labels, tuple(order), columns
    if how == "zero":
        return [0 if label is None else label for label in labels], tuple(order), columns
    assert how == "skip", "the bounds of a list are found by assigning every label"
    left = [item for item, label in enumerate(labels) if label is not None]
    number = {item: place for place, item in enumerate(left)}
    return (
        [labels[item] for item in left],
        tuple(number[item] for item in order if item in number),
        {name: [column[item] for item in left] for name, column in columns.items()},
    )


# --- tied scores, the best order, missing labels ---------------------------------------------------------------------


def argsort_set(scores: Sequence[Any]) -> list[Order]:
    """Every order along which the scores do not increase; -0.0 equals 0.0."""
    return [
        order
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]


def mean(values: Sequence[Any]) -> Any:
    """The mean: of Fractions as one, of floats correctly rounded."""
    if all(isinstance(value, (Fraction, int)) for value in values):
        return sum(map(Fraction, values)) / len(values)
    return math.fsum(map(float, values)) / len(values)


def expected(value_of_order: Callable[[Order], Any], scores: Sequence[Any]) -> Any:
    """The mean over all ways to break the ties of the scores."""
    return mean([value_of_order(order) for order in argsort_set(scores)])


def at_scores(metric: Any, labels: Labels, scores: Sequence[Any], columns: Columns | None = None) -> Any:
    """What a metric is at scores: the mean over tie-breakings, but for the two that define a value at ties themselves.

    These are tau-b, and pairwise disagreement whose tied pairs are lost whole.
    """
    kind = type(metric).__name__
    if kind == "WeightedSum":
        parts = [(Fraction(c), at_scores(part, labels, scores, columns)) for c, part in metric.terms]
        return summed(metric.constant, parts)
    if kind == "Kendall":
        value: Any = tau_b(labels, scores)
    elif kind == "PD" and metric.ties == "error":
        value = pd_with_whole_ties(labels, scores, normalise=metric.normalise, pairs=metric.pairs)
    else:
        reference = reference_of(metric)
        return expected(lambda order: reference(labels, order, columns), scores)
    return undefined(fields_of(metric)) if value is None else value


def ideal(metric: Any, labels: Labels, columns: Columns | None = None) -> Any:
    """The highest value of an order."""
    reference = reference_of(metric)
    n = len(levels_of(labels)) if isinstance(labels, tuple) else len(labels)
    return max(reference(labels, order, columns) for order in itertools.permutations(range(n)))


def assignments(labels: Labels, candidates: Sequence[Any]) -> list[list[Any]]:
    """The labels with each missing one replaced, in all ways, by a candidate."""
    missing = [item for item, label in enumerate(labels) if label is None]
    filled = []
    for chosen in itertools.product(candidates, repeat=len(missing)):
        given = dict(zip(missing, chosen, strict=True))
        filled.append([given.get(item, label) for item, label in enumerate(labels)])
    return filled


def bounds(
    metric: Any, labels: Labels, scores: Sequence[Any], candidates: Sequence[Any], columns: Columns | None = None
) -> tuple[Any, Any]:
    """The lowest and highest value at these scores that the missing labels allow; NaN where none is defined."""
    values = [at_scores(metric, filled, scores, columns) for filled in assignments(labels, candidates)]
    defined = [value for value in values if not math.isnan(value)]
    return (min(defined), max(defined)) if defined else (math.nan, math.nan)
