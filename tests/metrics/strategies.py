"""Lists of few documents with many ties, and settings of every metric, for the tests of what all metrics promise."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import calirank as cr

# --- scores ----------------------------------------------------------------------------------------------------------

#: Few values of each precision, so that many tie: both zeros, denormals, neighbours, the largest.
FLOAT64 = [-1.5, -0.0, 0.0, 5e-324, -5e-324, 1.0, 1.0 + 2**-52, 1.7e308]
FLOAT32 = [-1.5, -0.0, 0.0, 1e-45, -1e-45, 1.0, 1.0 + 2**-23, 3.4e38]
WHOLE = [-3, 0, 1, 2**53, 2**53 + 1]  # the last two are one number as float64


def scores_of(n: int) -> SearchStrategy[Any]:
    """n scores drawn from 1 to 4 values of one type: arrays of three types, or a plain list of numbers."""
    kinds: list[tuple[Any, list[Any]]] = [
        (np.float64, FLOAT64),
        (np.float32, FLOAT32),
        (np.int64, WHOLE),
        (None, FLOAT64[:4]),
    ]
    return st.one_of([_drawn(n, dtype, pool) for dtype, pool in kinds])


def _drawn(n: int, dtype: Any, pool: list[Any]) -> SearchStrategy[Any]:
    few = st.lists(st.sampled_from(pool), min_size=1, max_size=4)
    drawn = few.flatmap(lambda values: st.lists(st.sampled_from(values), min_size=n, max_size=n))
    return drawn if dtype is None else drawn.map(lambda values: np.array(values, dtype=dtype))


def plainly(scores: Any) -> list[Any]:
    """The scores as Python numbers that compare as they do in their own precision."""
    return np.asarray(scores).tolist()


# --- supervisions ----------------------------------------------------------------------------------------------------

RANKINGS = ("Spearman", "Kendall", "ZeroOne")
BINARY = ("Precision", "Recall", "AUC", "RBP", "AP", "RR")
#: What the labels of a list must not exceed where the metric sets no bound itself.
LARGEST = 4


def parts_of(metric: Any) -> Iterator[Any]:
    """The metrics that a metric is made of: itself, or the terms of a sum."""
    if type(metric).__name__ == "WeightedSum":
        for _, part in metric.terms:
            yield from parts_of(part)
    else:
        yield metric


def grades_of(metric: Any) -> list[Any]:
    """Labels that every part of a metric takes, lowest first."""
    grades: set[Any] = {0, 0.5, 1, 2, 2.5, 3, LARGEST}
    for part in parts_of(metric):
        kind = type(part).__name__
        if kind in BINARY:
            grades -= {grade for grade in grades if 0 < grade < part.relevant}
        elif getattr(part, "max_grade", None) is not None:
            grades -= {grade for grade in grades if grade > part.max_grade}
        if isinstance(getattr(part, "gain", None), tuple):
            grades &= set(range(len(part.gain)))
        if kind == "ERR":
            grades = {grade for grade in grades if float(grade).is_integer()}
    return sorted(grades)


def candidates_of(metric: Any, labels: Sequence[Any]) -> list[Any]:
    """The labels that an unjudged document may turn out to have: relevant or not; a whole grade, or one of the list's.

    Bounds allow all labels up to the largest grade; the extremes are at 0, at the largest, or at a label of the list.
    """
    kinds = {type(part).__name__ for part in parts_of(metric)}
    if kinds <= set(BINARY):
        return [0, max(part.relevant for part in parts_of(metric))]
    known = {label for label in labels if label is not None}
    return sorted(known | {grade for grade in grades_of(metric) if float(grade).is_integer()})


def labels_of(metric: Any, n: int) -> SearchStrategy[Any]:
    """The supervision of one list of n documents."""
    kinds = {type(part).__name__ for part in parts_of(metric)}
    if kinds & set(RANKINGS):
        return rankings(n)
    if "PD" in kinds:
        grades = st.lists(st.sampled_from([0, 1, 2, 2.5]), min_size=n, max_size=n)
        return grades | matrices(n)
    return st.lists(st.sampled_from(grades_of(metric)), min_size=n, max_size=n)


def rankings(n: int) -> SearchStrategy[tuple[Any, ...]]:
    """Rankings, half of them with ties: tuples of items inside."""
    ties = st.lists(st.booleans(), min_size=n, max_size=n)
    return st.permutations(range(n)).map(tuple) | st.builds(_with_ties, st.permutations(range(n)), ties)


def _with_ties(order: list[int], tied: list[bool]) -> tuple[Any, ...]:
    places: list[tuple[int, ...]] = []
    for item, joins in zip(order, tied, strict=True):
        places[len(places) - joins * bool(places) :] = [(*places[-1], item)] if joins and places else [(item,)]
    return tuple(place if len(place) > 1 else place[0] for place in places)


def matrices(n: int) -> SearchStrategy[list[list[float]]]:
    """Weighted preferences, cycles among them."""
    weights = st.lists(st.sampled_from([0, 0, 1, 0.5, 2]), min_size=n * n, max_size=n * n)
    return weights.map(lambda flat: [[0 if i == j else flat[i * n + j] for j in range(n)] for i in range(n)])


# --- cases -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One list: its supervision (None in it: no judgement), its scores, its columns."""

    labels: Any
    scores: Any
    columns: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def given(self) -> Any:
        """The labels as a metric takes them: grades without a judgement are masked, preferences a matrix."""
        if len(self.labels) and isinstance(self.labels[0], list):
            return np.array(self.labels, dtype=np.float64)
        if None not in self.labels:
            return list(self.labels)
        mask = [label is None for label in self.labels]
        return np.ma.masked_array([7 if label is None else label for label in self.labels], mask)

    @property
    def with_columns(self) -> dict[str, Any]:
        """The keyword argument for the columns, where the list has any."""
        return {"columns": {name: np.array(values) for name, values in self.columns.items()}} if self.columns else {}


def column_names(metric: Any) -> list[str]:
    """The columns that a metric asks for: of gains, of weights."""
    asked = {getattr(part, name, None) for part in parts_of(metric) for name in ("gain", "weight")}
    return sorted(name for name in asked if isinstance(name, str) and name not in ("exponential", "linear"))


def columns_of(metric: Any, n: int) -> SearchStrategy[dict[str, list[float]]]:
    """A column for each name that the metric asks for."""
    values = st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), min_size=n, max_size=n)
    return st.fixed_dictionaries(dict.fromkeys(column_names(metric), values))


@st.composite
def cases(draw: Any, metric: Any, largest: int = 7, missing: bool = False) -> Case:
    """A list that the metric can judge, of 1 to ``largest`` documents; with ``missing``, some have no judgement."""
    ranked = metric.supervision == "rankings"  # ties of the ranking are enumerated too: 7! squared is too many
    n = draw(st.integers(1, min(largest, 5) if ranked else largest))
    labels = draw(labels_of(metric, n))
    if missing:
        hidden = draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=min(n, 3)))
        labels = [None if item in hidden else label for item, label in enumerate(labels)]
    return Case(labels, draw(scores_of(n)), draw(columns_of(metric, n)))


# --- settings of metrics ---------------------------------------------------------------------------------------------


def with_every_k(metric: type, *ks: int | None, **arguments: Any) -> list[Any]:
    return [metric(k=k, **arguments) for k in ks]


def first_less_last(labels: Sequence[Any], order: Sequence[int]) -> float:
    """A metric of a user: one that no closed form of the library knows."""
    return float(labels[order[0]] - 0.25 * labels[order[-1]]) if len(order) > 1 else 0.5


m = cr.metrics

METRIC_SETTINGS: list[Any] = [
    *with_every_k(m.DCG, None, 1, 3, 9),
    m.DCG(gain="linear", base=3, k=4),
    m.DCG(gain=(0, 1, 5)),
    m.DCG(gain=(1, 0, 5), k=2, unjudged="bounds"),
    m.DCG(gain="linear", weight="worth", unjudged="bounds", max_grade=3),
    m.DCG(gain="revenue", k=3),
    m.DCG(weight="worth", base=10),
    m.DCG(unjudged="skip", k=2),
    m.DCG(unjudged="bounds", max_grade=2, k=2),
    *with_every_k(m.NDCG, None, 1, 3, 9),
    m.NDCG(gain="linear", base=1.5, k=2),
    m.NDCG(gain=(0.5, 1, 5), empty=1),
    m.NDCG(gain="revenue", weight="worth", k=3),
    m.NDCG(ideal_over="list", k=3, empty="skip"),
    m.NDCG(unjudged="skip", weight="worth", empty="skip"),
    m.NDCG(unjudged="bounds", max_grade=2, k=2),
    m.NDCG(unjudged="bounds", max_grade=3, gain="linear", empty=0.5),
    m.NDCG(unjudged="bounds", gain=(0.5, 0, 3), empty="skip", ideal_over="list"),
    *with_every_k(m.Precision, None, 1, 3, 9),
    *with_every_k(m.Precision, 2, 9, divisor="min", relevant=2, unjudged="skip"),
    *with_every_k(m.Precision, None, 3, unjudged="bounds", relevant=2),
    *with_every_k(m.Recall, None, 1, 3, 9),
    m.Recall(k=2, relevant=2, empty=1, unjudged="skip"),
    m.Recall(k=2, empty="skip", unjudged="bounds"),
    m.AUC(),
    m.AUC(relevant=2, empty=0.5, unjudged="skip"),
    m.AUC(empty="skip", unjudged="bounds"),
    *with_every_k(m.ERU, None, 1, 3, 9),
    m.ERU(v=1, w=2, weight="worth", unjudged="skip"),
    m.ERU(v=2, w=1.25, k=3),
    m.ERU(v=1, k=2, max_grade=3, unjudged="bounds"),
    *with_every_k(m.RBP, None, 1, 3, 9),
    m.RBP(p=0.5, relevant=2, unjudged="skip"),
    m.RBP(p=0.75, k=3, unjudged="bounds"),
    *with_every_k(m.AP, None, 1, 3, 9),
    *with_every_k(m.AP, 2, None, divisor="min", relevant=2, empty=1, unjudged="skip"),
    m.AP(k=3, divisor="min", empty="skip", unjudged="bounds"),
    m.AP(unjudged="bounds"),
    *with_every_k(m.RR, None, 1, 3, 9),
    m.RR(k=2, relevant=2, empty=1, unjudged="skip"),
    m.RR(k=3, empty="skip", unjudged="bounds"),
    m.RR(empty=1, unjudged="bounds"),
    *with_every_k(m.ERR, None, 1, 3, 9),
    m.ERR(max_grade=1, empty=0.5),
    m.ERR(max_grade=2, k=2, empty="skip", unjudged="skip"),
    m.ERR(max_grade=2, unjudged="bounds"),
    m.ERR(max_grade=1, k=3, empty="skip", unjudged="bounds"),
    m.ERR(max_grade=1, empty=0.75, unjudged="bounds"),
    m.Spearman(),
    m.Spearman(empty="skip"),
    m.Kendall(),
    m.Kendall(empty=0.5),
    m.ZeroOne(),
    m.PD(),
    m.PD(normalise=False, pairs="difference"),
    m.PD(ties="error", empty="skip"),
    m.PD(normalise=False, ties="error", empty=0.25),
    m.PD(pairs="difference", empty=1),
    m.WeightedSum(terms=((0.5, m.NDCG(k=3)), (0.25, m.DCG(k=3))), constant=0.125),
    m.WeightedSum(terms=((-2.0, m.ERR(max_grade=4)), (0.5, m.AP(k=2, empty="skip")))),
    m.WeightedSum(terms=((1.0, m.Spearman()), (-0.5, m.Kendall()), (3.0, m.ZeroOne()))),
    cr.metric("wta"),
    cr.metric(first_less_last),
    cr.metric(first_less_last, unjudged="skip"),
]


def named(metric: Any) -> str:
    """A name of a metric for the list of tests."""
    return f"{metric}, {metric.unjudged}" if type(metric).__name__ == "Custom" else str(metric)


def non_default_fields(metric: Any) -> set[str]:
    """The fields of a metric that differ from their defaults."""
    return {
        field.name
        for field in dataclasses.fields(metric)
        if field.default is not dataclasses.MISSING and getattr(metric, field.name) != field.default
    }
