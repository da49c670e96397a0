"""Profiles: the conventions of other libraries, so that a metric gives the number that one of them prints.

``metric("ndcg@10", like="lightgbm")`` is NDCG as LightGBM computes it: what the name leaves open has that library's
defaults. It reproduces the library's number at scores without ties; at ties ours stays the exact mean over all orders,
where most libraries depend on the order of the rows or on the names of the documents. Means agree where all queries
weigh the same: with weights, the NDCG of LightGBM and XGBoost gives a query without relevant documents the weight 1.

:data:`PROFILES` was filled by running the libraries, and the tests run them again.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from calirank.metrics.base import Metric
from calirank.names import METRICS, Name, Sum, Value, did_you_mean, parse

#: A parameter of ours, its value, and why.
Default: TypeAlias = tuple[str, Value, str]


@dataclass(frozen=True)
class Convention:
    """How a library computes one metric: what it calls it, and the defaults that give its number.

    ``whole`` is its name without a cut-off, ``cut`` with one; None where there is no such thing.
    """

    whole: str | None
    cut: str | None
    defaults: tuple[Default, ...]
    ties: str = ""

    def called(self, k: int | None) -> str | None:
        """The library's name of the metric.

        >>> PROFILES["trec_eval"].metrics["ndcg"].called(10)
        'ndcg_cut_10'
        """
        return self.whole if k is None else self.cut and self.cut.format(k=k)


@dataclass(frozen=True)
class Profile:
    """A library: its metrics under our names, and those of its metrics that bear our names and are something else."""

    library: str
    ties: str
    metrics: Mapping[str, Convention]
    others: Mapping[str, str] = field(default_factory=dict)


# --- defaults that several libraries share ----------------------------------------------------------------------------

_EXPONENTIAL: Default = ("gain", "exponential", "the gain of a grade y is 2^y - 1")
_LINEAR: Default = ("gain", "linear", "the gain of a grade is the grade")
_BASE: Default = ("base", 2, "the discount is 1 / log2(1 + rank)")
_OVER_LIST: Default = ("ideal_over", "list", "it knows the documents of the list alone")
_OVER_JUDGED: Default = ("ideal_over", "judged", "the ideal counts judged documents that were not returned")
_EMPTY_IS_0: Default = ("empty", 0.0, "a query without relevant documents counts 0")
_EMPTY_IS_1: Default = ("empty", 1.0, "a query without relevant documents counts 1")
_EMPTY_IS_1_BUT_MINUS: Default = ("empty", 1.0, "a query without relevant documents counts 1; 0 as ndcg-, map-")
_RELEVANT: Default = ("relevant", 1, "grades from 1 on are relevant")
_BINARY: Default = ("relevant", 1, "it takes labels 0 and 1 only")
_BY_R: Default = ("divisor", "relevant", "the divisor is R, the number of relevant documents, below any cut-off")
_BY_MIN_R_K: Default = ("divisor", "min", "the divisor is the smaller of R and k")
_BY_K: Default = ("divisor", "k", "the divisor is k, also where fewer documents were returned")
_BY_MIN_K_N: Default = ("divisor", "min", "the divisor is the smaller of k and the length of the list")
_FIRST_32: Default = ("k", 32, "without @k it looks at the first 32 documents")
_UNJUDGED: Default = ("unjudged", "zero", "a returned document without a judgement is irrelevant")

_LISTWISE = (_BASE, _OVER_LIST)
_TREC_NDCG = (_LINEAR, _BASE, _OVER_JUDGED, _EMPTY_IS_0, _UNJUDGED)
_TREC_AP = (_RELEVANT, _BY_R, _EMPTY_IS_0, _UNJUDGED)
_TREC_PRECISION = (_RELEVANT, _BY_K, _UNJUDGED)
_TREC_OTHER = (_RELEVANT, _EMPTY_IS_0, _UNJUDGED)

# --- the libraries ----------------------------------------------------------------------------------------------------

PROFILES: Mapping[str, Profile] = {
    "lightgbm": Profile(
        "LightGBM",
        "the order of the rows",
        {
            "ndcg": Convention(None, "ndcg@{k}", (_EXPONENTIAL, *_LISTWISE, _EMPTY_IS_1)),
            "ap": Convention(None, "map@{k}", (_RELEVANT, _BY_MIN_R_K, _EMPTY_IS_1)),
        },
        {"auc": "its auc is over the documents of all queries together"},
    ),
    "xgboost": Profile(
        "XGBoost",
        "the order of the rows, in single precision",
        {
            "ndcg": Convention("ndcg", "ndcg@{k}", (_FIRST_32, _EXPONENTIAL, *_LISTWISE, _EMPTY_IS_1_BUT_MINUS)),
            "ap": Convention("map", "map@{k}", (_FIRST_32, _BINARY, _BY_MIN_R_K, _EMPTY_IS_1_BUT_MINUS)),
            "precision": Convention("pre", "pre@{k}", (_FIRST_32, _BINARY, _BY_MIN_K_N)),
        },
        {"auc": "its auc of queries counts pairs of equal labels too"},
    ),
    "sklearn": Profile(
        "scikit-learn",
        "the exact mean",
        {
            "ndcg": Convention("ndcg_score", "ndcg_score(k={k})", (_LINEAR, *_LISTWISE, _EMPTY_IS_0)),
            "dcg": Convention("dcg_score", "dcg_score(k={k})", (_LINEAR, _BASE)),
            "ap": Convention(
                "average_precision_score",
                None,
                (_BINARY, _BY_R, _EMPTY_IS_0),
                ties="tied documents at the rank of their last",
            ),
            "auc": Convention(
                "roc_auc_score",
                None,
                (_BINARY, ("empty", "skip", "where all labels are equal it is NaN, with a warning")),
            ),
        },
    ),
    "trec_eval": Profile(
        "trec_eval",
        "by document name, last first, in single precision",
        {
            "ndcg": Convention("ndcg", "ndcg_cut_{k}", _TREC_NDCG),
            "ap": Convention("map", "map_cut_{k}", _TREC_AP),
            "precision": Convention("set_P", "P_{k}", _TREC_PRECISION),
            "recall": Convention("set_recall", "recall_{k}", _TREC_OTHER),
            "rr": Convention("recip_rank", "-M {k} recip_rank", _TREC_OTHER),
        },
    ),
    "ranx": Profile(
        "ranx",
        "an unstable sort",
        {
            "ndcg": Convention("ndcg", "ndcg@{k}", _TREC_NDCG),
            "dcg": Convention("dcg", "dcg@{k}", (_LINEAR, _BASE, _UNJUDGED)),
            "ap": Convention("map", "map@{k}", _TREC_AP),
            "precision": Convention("precision", "precision@{k}", _TREC_PRECISION),
            "recall": Convention("recall", "recall@{k}", _TREC_OTHER),
            "rr": Convention("mrr", "mrr@{k}", _TREC_OTHER),
        },
        {"rbp": "its rbp adds up grades, where rbp counts relevant documents"},
    ),
}


# --- metrics as in a library ------------------------------------------------------------------------------------------


def as_in(metric: str | Metric, like: str) -> Metric:
    """The metric with the defaults of a library; what a name says itself stays, and so does what an object has set.

    An object has set what differs from our defaults: a name can say more, as in ``ndcg(gain=exponential)@10``.

    >>> str(as_in("ndcg@10", "lightgbm"))
    'ndcg(ideal_over=list, empty=1)@10'
    >>> str(as_in("0.5*ndcg(empty=0)@10 + 0.5*map", "lightgbm"))
    '0.5*ndcg(ideal_over=list)@10 + 0.5*ap(divisor=min, empty=1)'
    >>> as_in("err", "sklearn")
    Traceback (most recent call last):
    ValueError: scikit-learn has no err (in 'err'); like='sklearn' has ndcg, dcg, ap, auc
    """
    if not isinstance(like, str):
        raise TypeError(f"like is the name of a library ({', '.join(PROFILES)}); got {like!r}")
    if like.lower() not in PROFILES:
        hint = did_you_mean(like, PROFILES)
        raise ValueError(f"no library is called {like!r}.{hint} Known are: {', '.join(PROFILES)}")
    if not isinstance(metric, (str, Metric)):
        raise TypeError(f"like={like!r} is for names and metrics; no library has a function of yours: {metric!r}")
    name = parse(metric) if isinstance(metric, str) else METRICS.describe(metric)
    METRICS.build(name)  # what is wrong in the name itself is told before anything is added to it
    if isinstance(name, Sum):
        terms = tuple((coefficient, _with_defaults(term, like)) for coefficient, term in name.terms)
        found: Metric = METRICS.build(Sum(terms, name.constant))
    else:
        found = METRICS.build(_with_defaults(name, like))
    return found


def _with_defaults(name: Name, like: str) -> Name:
    """The name with all defaults of the library that it leaves open."""
    profile = PROFILES[like.lower()]
    entry = METRICS[name.name]
    if not isinstance(entry, type):  # a function that stands for a metric with settings
        described = METRICS.describe(METRICS.build(name))
        assert isinstance(described, Name)
        return _with_defaults(described, like)
    called = METRICS.resolve(name.name)
    convention = profile.metrics.get(called)
    if convention is None:
        why = f": {profile.others[called]}" if called in profile.others else ""
        raise ValueError(
            f"{profile.library} has no {called} (in {str(name)!r}){why}; like={like!r} has {', '.join(profile.metrics)}"
        )
    parameters = list(inspect.signature(entry).parameters)
    given = {*parameters[: len(name.arguments)], *dict(name.keywords)} | ({"k"} if name.cutoff is not None else set())
    if convention.cut is None and "k" in given:
        raise ValueError(f"{profile.library} has no cut-off in its {convention.whole} (in {str(name)!r})")
    added = tuple((parameter, value) for parameter, value, _ in convention.defaults if parameter not in given)
    return Name(called, name.arguments, (*name.keywords, *added), name.cutoff)


# --- the table for the docs -------------------------------------------------------------------------------------------

_HEADINGS = ("metric", "library", "its name", "ours", "gain", "no relevant document", "divisor", "tied scores")


def conventions() -> Iterator[tuple[str, ...]]:
    """All conventions as rows of a table, the headings first, metric by metric; with the cut-off 10 where there is one.

    >>> rows = list(conventions())
    >>> rows[1][:4]
    ('ndcg', 'LightGBM', '`ndcg@10`', '`ndcg(ideal_over=list, empty=1)@10`')
    """
    yield _HEADINGS
    for metric in dict.fromkeys(name for profile in PROFILES.values() for name in profile.metrics):
        for like, profile in PROFILES.items():
            if metric in profile.metrics:
                yield _row(metric, like, profile)


def _row(metric: str, like: str, profile: Profile) -> tuple[str, ...]:
    convention = profile.metrics[metric]
    names = [name for name in (convention.whole, convention.called(10)) if name]
    k = None if convention.cut is None else 10
    ours: Any = as_in(metric if k is None else f"{metric}@{k}", like)
    whole: Any = as_in(metric, like)
    divisor = _DIVISORS[metric, getattr(ours, "divisor", getattr(ours, "ideal_over", None))]
    if getattr(whole, "k", None) is not None:
        divisor += f"; `{convention.whole}` is `{convention.called(whole.k)}`"
    return (
        metric,
        profile.library,
        ", ".join(f"`{name}`" for name in names),
        f"`{ours}`",
        {"exponential": "2^y - 1", "linear": "y"}.get(getattr(ours, "gain", ""), "-"),
        "skipped" if getattr(ours, "empty", 0.0) == "skip" else f"{getattr(ours, 'empty', 0.0):g}",
        divisor,
        convention.ties or profile.ties,
    )


#: What the value is divided by, for R relevant documents in a list of n.
_DIVISORS = {
    ("dcg", None): "-",
    ("ndcg", "judged"): "the ideal of all judged",
    ("ndcg", "list"): "the ideal of the list",
    ("ap", "relevant"): "R",
    ("ap", "min"): "min(R, k)",
    ("auc", None): "R (n - R)",
    ("precision", "k"): "k; n without a cut-off",
    ("precision", "min"): "min(k, n)",
    ("recall", None): "R",
    ("rr", None): "-",
}
