r"""Positional metrics: a non-increasing discount of the ranks times a utility of the documents.

.. math:: r(y, \sigma) = b(y) + \sum_k \phi(k)\, u_{\sigma(k)}(y)

[MLJ13 Def 2.1] calls them generalised positional performance measures. Sorting by expected utility is optimal for each
of them, and the documents of a tie share the mean discount of the ranks that they take up, which makes the value at
tied scores the exact mean over all ways to break the ties.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.names import METRICS
from calirank.orders import check_order, group_means, tie_groups

Floats = NDArray[np.float64]

#: "exponential" is 2^y - 1, "linear" is y; a list gives the gain of each grade 0, 1, 2, …
Gain: TypeAlias = Literal["exponential", "linear"] | tuple[float, ...]


class Positional:
    """What all positional metrics share; a metric of this kind says its ``discount`` and its ``utility``."""

    def utility(self, labels: ArrayLike) -> Floats:
        """u(y): the targets whose expectation an optimal order sorts."""
        raise NotImplementedError

    def discount(self, n: int) -> Floats:
        """φ of the ranks of a list of n documents, best first."""
        raise NotImplementedError

    def offset(self, labels: ArrayLike) -> float:
        """b(y): the part of the value that no order changes."""
        del labels
        return 0.0

    def ideal(self, labels: ArrayLike) -> float:
        """The highest value that an order of these labels reaches."""
        utility = self.utility(labels)
        return self.offset(labels) + dot(np.sort(utility)[::-1], self.discount(len(utility)))

    def __call__(self, labels: ArrayLike, *, scores: ArrayLike | None = None, order: ArrayLike | None = None) -> float:
        """The value of an order, or of the scores (the mean over all orders that sort them)."""
        utility = self.utility(labels)
        discount = self.discount(len(utility))
        if (scores is None) == (order is None):
            raise TypeError(f"{self}: expected scores or an order, and not both")
        if order is not None:
            return self.offset(labels) + dot(utility[check_order(order, len(utility))], discount)
        by_score, starts = tie_groups(np.asarray(scores))
        if len(by_score) != len(utility):
            raise ValueError(f"{self}: {len(utility)} labels and {len(by_score)} scores")
        shared = np.repeat(group_means(discount, starts), np.diff(starts))
        return self.offset(labels) + dot(utility[by_score], shared)

    def __str__(self) -> str:
        return METRICS.name_of(self)


def dot(utility: Floats, discount: Floats) -> float:
    """Σ φ u, rounded once: the same bits in whatever order the documents come."""
    return math.fsum((utility * discount).tolist())


def as_labels(labels: ArrayLike, metric: Any) -> Floats:
    """The labels of one list as floats; NaN, infinite and negative ones are refused with their place."""
    if isinstance(labels, np.ma.MaskedArray) and np.ma.getmaskarray(labels).any():
        row = int(np.argmax(np.ma.getmaskarray(labels)))
        raise ValueError(f"{metric}: document {row} has no label, which is not the same as a label 0")
    array = np.asarray(labels, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{metric}: expected one label a document, got shape {array.shape}")
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        raise ValueError(f"{metric}: expected labels >= 0, got {array[bad[0]]} for document {bad[0]}")
    return array


def gains(labels: ArrayLike, gain: Gain, metric: Any) -> Floats:
    """The gain of each document.

    >>> gains([0, 2, 1], "exponential", "dcg").tolist(), gains([0, 2, 1], (0, 1, 5), "dcg").tolist()
    ([0.0, 3.0, 1.0], [0.0, 5.0, 1.0])
    """
    grades = as_labels(labels, metric)
    if gain == "exponential":
        if len(grades) and grades.max() > 1000:
            row = int(grades.argmax())
            raise ValueError(
                f"{metric}: the exponential gain of a label above 1000 is beyond all numbers; "
                f"got {grades[row]:g} for document {row}"
            )
        return np.exp2(grades) - 1
    if gain == "linear":
        return grades
    table = np.asarray(gain, dtype=np.float64)
    bad = np.flatnonzero((grades != np.floor(grades)) | (grades >= len(table)))
    if len(bad):
        raise ValueError(
            f"{metric}: the list of gains is for grades 0 to {len(table) - 1}; "
            f"got {grades[bad[0]]:g} for document {bad[0]}"
        )
    return table[grades.astype(np.int64)]


def check_settings(k: int | None, gain: Gain, metric: str) -> None:
    """Refuse a cut-off or a gain that means nothing."""
    if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1):
        raise ValueError(f"{metric}: the cut-off k is a whole number from 1 on, or None; got {k!r}")
    if isinstance(gain, str):
        if gain not in ("exponential", "linear"):
            raise ValueError(f'{metric}: gain is "exponential", "linear" or a list of gains by grade; got {gain!r}')
    elif not gain or not all(np.isfinite(gain)) or min(gain) < 0:
        raise ValueError(f"{metric}: the gains of the grades are finite numbers >= 0; got {gain!r}")


def logarithmic_discount(n: int, k: int | None) -> Floats:
    """1 / log2(1 + rank) for the ranks 1..n, and 0 beyond the cut-off."""
    discount = 1 / np.log2(np.arange(2, n + 2))
    if k is not None:
        discount[k:] = 0
    return discount
