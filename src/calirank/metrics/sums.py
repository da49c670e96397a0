r"""Weighted sums of metrics, such as ``0.7*ndcg@10 + 0.3*dcg(gain=revenue)@10``.

Positional metrics whose discounts are proportional add their utilities, so their sum is positional again: one discount
φ, the utility Σ c_m u_m, and the offset Σ c_m b_m [MLJ13 Def 2.1]. Other sums are metrics like any other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calirank.metrics.base import Columns, Metric, Number, documents_of, exact_number, is_number
from calirank.metrics.lists import Floats
from calirank.names import METRICS, sum_text


@METRICS.register_sum
@dataclass(frozen=True)
class WeightedSum(Metric):
    """Σ coefficient · metric + constant; equal metrics are one term.

    >>> from calirank.metrics import metric
    >>> both = metric("0.75*precision@2 + 0.25*recall@2")
    >>> both([1, 0, 1, 1], scores=[4, 3, 2, 1]), both.is_positional        # 0.75 · 1/2 + 0.25 · 1/3
    (0.4583333333333333, True)
    """

    terms: tuple[tuple[float, Metric], ...]
    constant: float = 0.0

    def __post_init__(self) -> None:
        merged: dict[Metric, float] = {}
        constant = float(self.constant)
        for coefficient, metric in self.terms:
            if not is_number(coefficient):
                raise ValueError(f"the coefficients of a sum of metrics are finite numbers; got {coefficient!r}")
            parts = metric.terms if isinstance(metric, WeightedSum) else ((1.0, metric),)
            constant += coefficient * metric.constant if isinstance(metric, WeightedSum) else 0.0
            for inner, part in parts:
                merged[part] = merged.get(part, 0.0) + float(coefficient) * inner
        if not merged:
            raise ValueError("a sum of metrics has at least one metric")
        kinds = {_KIND[metric.supervision] for metric in merged}
        if len(kinds) > 1 and kinds != {"labels", "preferences"}:  # pd judges by labels too
            raise ValueError(f"a sum of metrics that judge by different things: {', '.join(sorted(map(str, merged)))}")
        policies = {str(getattr(metric, "unjudged", "")) for metric in merged} - {""}
        if len(policies) > 1:
            listed = " and ".join(sorted(policies))
            raise ValueError(f"the terms of a sum treat documents without a label alike; got unjudged {listed}")
        object.__setattr__(self, "terms", tuple((value, metric) for metric, value in merged.items()))
        object.__setattr__(self, "constant", constant)

    @property
    def supervision(self) -> str:  # type: ignore[override]  # a fixed word in the other metrics
        """What its terms judge by."""
        kinds = {metric.supervision for _, metric in self.terms}
        return kinds.pop() if len(kinds) == 1 else "grades"

    def __str__(self) -> str:
        """The name that ``cr.metric`` reads; where a term is a user's function, it only looks like one."""
        return sum_text([(coefficient, str(metric)) for coefficient, metric in self.terms], self.constant)

    @property
    def is_positional(self) -> bool:
        forms = [metric.discount_form() for _, metric in self.terms]
        return forms[0] is not None and all(form is not None and form[0] == forms[0][0] for form in forms)

    def discount_form(self) -> tuple[Any, float] | None:
        return self.terms[0][1].discount_form() if self.is_positional else None

    def __call__(
        self,
        labels: Any,
        *,
        scores: ArrayLike | None = None,
        order: ArrayLike | None = None,
        columns: Columns = None,
    ) -> float:
        if np.ma.is_masked(labels) and any(getattr(metric, "unjudged", "") == "bounds" for _, metric in self.terms):
            return self.bounds(labels, scores=scores, order=order, columns=columns)[0]
        values = [c * metric(labels, scores=scores, order=order, columns=columns) for c, metric in self.terms]
        return float(sum(values) + self.constant)

    def bounds(
        self,
        labels: Any,
        *,
        scores: ArrayLike | None = None,
        order: ArrayLike | None = None,
        columns: Columns = None,
    ) -> tuple[float, float]:
        ends = [metric.bounds(labels, scores=scores, order=order, columns=columns) for _, metric in self.terms]
        low, high = self.bounds_of_terms([(np.float64(low), np.float64(high)) for low, high in ends])
        return float(low), float(high)

    def bounds_of_terms(self, ends: list[tuple[Any, Any]]) -> tuple[Any, Any]:
        """The bounds of the sum from those of its one term; those of more terms need not be reached together."""
        if len(self.terms) > 1:
            raise ValueError(
                f"{self}: the bounds of this sum are not known, because its terms need not reach theirs together; "
                'evaluate the terms by themselves, or with unjudged="zero" or "skip"'
            )
        coefficient, (low, high) = self.terms[0][0], ends[0]
        low, high = (low, high) if coefficient >= 0 else (high, low)
        return coefficient * low + self.constant, coefficient * high + self.constant

    def discount(self, n: int) -> Floats:
        """φ of the first term; those of the others are proportional."""
        if not self.is_positional:
            raise self._not_positional("discount")
        return self.terms[0][1].discount(n)

    def utility(self, labels: Any, *, columns: Columns = None) -> Floats:
        """Σ c u, each utility in the unit of the first term's discount."""
        form = self.discount_form()
        if form is None:
            raise self._not_positional("utility")
        parts = []
        for coefficient, metric in self.terms:
            own = metric.discount_form()
            assert own is not None
            parts.append(coefficient * (own[1] / form[1]) * metric.utility(labels, columns=columns))
        total: Floats = np.sum(parts, axis=0)
        return total

    def ideal(self, labels: Any, *, columns: Columns = None) -> float:
        """The highest value that an order of these labels reaches.

        By sorting where the sum is positional; by the metric itself where it has one term; else by subsets of the
        documents, of which there may be 15 (8 where a term has no prefix gain).
        """
        if len(self.terms) == 1 and self.terms[0][0] > 0:
            coefficient, metric = self.terms[0]
            return coefficient * metric.ideal(labels, columns=columns) + self.constant
        if self.is_positional and _KIND[self.supervision] == "labels":
            return self(labels, scores=self.utility(labels, columns=columns), columns=columns)
        return best_of_orders(self, labels, columns)

    def _decomposed(
        self, labels: Any, columns: Columns = None
    ) -> tuple[Number, Callable[[Collection[int], int], Number]]:
        parts = [(exact_number(c), *metric._decomposed(labels, columns)) for c, metric in self.terms]

        def gain(before: Collection[int], item: int) -> Number:
            return _total(Fraction(0), [(c, inner(before, item)) for c, _, inner in parts])

        return _total(exact_number(self.constant), [(c, offset) for c, offset, _ in parts]), gain


_KIND = {"binary": "labels", "grades": "labels", "rankings": "rankings", "preferences": "preferences"}


def parts_of(metric: Metric) -> tuple[tuple[tuple[float, Metric], ...], float]:
    """The terms and the constant of a metric; one that is no sum is its own term."""
    return (metric.terms, metric.constant) if isinstance(metric, WeightedSum) else (((1.0, metric),), 0.0)


def _total(start: Number, parts: list[tuple[Fraction, Number]]) -> Number:
    total = start
    for coefficient, value in parts:
        total = total + coefficient * value
    return total


def best_of_orders(metric: Metric, labels: Any, columns: Columns) -> float:
    """The highest value of an order, by dynamic programming over the sets of documents above a rank.

    It costs 2ⁿ n prefix gains, so lists have at most 15 documents. Where a term has no prefix gain all orders are
    tried, of at most 8 documents.
    """
    n = documents_of(labels)
    try:
        offset, gain = metric._decomposed(labels, columns)
    except (TypeError, ValueError):
        _refuse_more_than(8, n, metric)
        orders = itertools.permutations(range(n))
        return max(metric(labels, order=order, columns=columns) for order in orders)
    _refuse_more_than(15, n, metric)
    best: list[Number] = [0.0] * (1 << n)
    for members in range((1 << n) - 2, -1, -1):
        before = [item for item in range(n) if members >> item & 1]
        best[members] = max(
            gain(before, item) + best[members | 1 << item] for item in range(n) if not members >> item & 1
        )
    return float(offset + best[0])


def _refuse_more_than(most: int, n: int, metric: Metric) -> None:
    if n > most:
        raise ValueError(f"{metric}: the best order of {n} documents is not known; it is found for at most {most}")
