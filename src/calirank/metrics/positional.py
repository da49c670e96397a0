r"""Positional metrics: a non-increasing discount of the ranks times a utility of the documents.

.. math:: r(y, \sigma) = b(y) + \sum_k \phi(k)\, u_{\sigma(k)}(y)

[MLJ13 Def 2.1] calls them generalised positional performance measures. Sorting by expected utility is optimal for each
of them, and the documents of a tie share the mean discount of the ranks that they take up, which makes the value at
tied scores the exact mean over all ways to break the ties.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from calirank.metrics.base import Columns, Empty, LabelMetric, Number, columns_of, empty_value, labels_or_zero
from calirank.metrics.lists import Floats, Labels, Lists, Scores


class Positional(LabelMetric):
    """A metric that divides a discounted sum of gains by a number of the list.

    A metric of this kind says the gain of a document (``_gain``), the discount of the ranks before any division
    (``_raw_discount``), the divisor of each list (``_divisor``) and the part of it that belongs to the discount.
    """

    k: int | None = None
    empty: Empty = 0.0

    @property
    def is_positional(self) -> bool:
        return True

    def _gain(self, labels: Floats, columns: Mapping[str, Floats]) -> Floats:
        """The gain of each document by itself."""
        raise NotImplementedError

    def _raw_discount(self, n: int) -> Floats:
        """The discount of the ranks 1..n at least; the cut-off is applied by others."""
        raise NotImplementedError

    def _divisor(self, lists: Lists, gains: Floats) -> Floats | None:
        """What the sum of each list is divided by; 0 where the metric is undefined."""
        del lists, gains
        return None

    def _discount_divisor(self, n: int) -> int:
        """The part of the division that is the same for all labels, and belongs to the discount."""
        del n
        return 1

    def values(self, lists: Lists) -> Floats:
        gains = self._table(lists)
        sums = lists.discounted(gains, self._raw_discount(lists.longest), self._cutoff)
        divisor = self._divisor(lists, gains)
        if divisor is None:
            return sums
        return self._divided(lists, sums, divisor, gains)

    def _divided(self, lists: Lists, sums: Floats, divisor: Floats, gains: Floats) -> Floats:
        del gains
        return lists.quotients(sums, divisor, empty_value(self.empty))

    def _table(self, lists: Lists) -> Floats:
        """The gain of each place."""
        return lists.table(self._gain)

    def discount(self, n: int) -> Floats:
        """φ of the ranks of a list of n documents; 0 beyond the cut-off."""
        discount = self._raw_discount(n)[:n] / self._discount_divisor(n)
        if self.k is not None:
            discount[self.k :] = 0
        return discount

    def utility(self, labels: Any, *, columns: Columns = None) -> Floats:
        """u(y): the targets whose expectation an optimal order sorts."""
        lists = self._alone(labels, columns)
        gains = self._gain(lists.labels.values, lists.labels.columns)
        divisor = self._divisor(lists, self._table(lists))
        n = len(gains)
        if divisor is None:
            return np.array(gains, dtype=np.float64)
        return gains / (divisor[0] / self._discount_divisor(n)) if divisor[0] > 0 else np.zeros(n)

    def _decomposed(
        self, labels: Any, columns: Columns = None
    ) -> tuple[Number, Callable[[Collection[int], int], Number]]:
        utility = self.utility(labels, columns=columns)
        discount = self.discount(len(utility))
        return self._undefined(labels, columns), lambda before, item: float(discount[len(before)] * utility[item])

    def _undefined(self, labels: Any, columns: Columns) -> float:
        """``empty`` for a list where the metric is undefined, else 0."""
        lists = self._alone(labels, columns)
        divisor = self._divisor(lists, self._table(lists))
        return empty_value(self.empty) if divisor is not None and not divisor[0] > 0 else 0.0

    def _alone(self, labels: Any, columns: Columns) -> Lists:
        """One list, all documents tied."""
        values = labels_or_zero(labels, self)
        offsets = np.array([0, len(values)])
        held = Labels(values, offsets, columns_of(self, columns, len(values)))
        self.check(held)
        places = np.sort(held.places)
        return Lists(held, Scores(np.zeros(len(values), np.float32), places, offsets), 0, 1)

    def _best_scores(self, labels: Floats, columns: Columns) -> Floats:
        held = Labels(labels, np.array([0, len(labels)]), columns_of(self, columns, len(labels)))
        self.check(held)
        return np.array(self._gain(labels, held.columns), dtype=np.float64)
