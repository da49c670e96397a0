"""A user's own metric: a Python function of the labels and an order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calirank.metrics.base import Columns, Metric, Unjudged, check_choice, is_number, scores_of, split_labels
from calirank.metrics.lists import Floats
from calirank.orders import argsort_set, argsort_set_size, check_order, random_order

#: As many orders are enumerated, and no more.
MOST_ORDERS = 5040


@dataclass(frozen=True)
class Custom(Metric):
    """A metric that is a function ``(labels, order) -> number``; larger is better.

    ``labels`` is a tuple of Python numbers (whole ones are ints), ``order`` a tuple of document numbers, best first.
    For ``supervision="rankings"`` the labels are an order; for "preferences", a tuple of rows of weights. At tied
    scores the value is the mean over the orders that sort them: exact when they are at most 5,040, else the mean of
    ``samples`` random ones, with the standard error that :meth:`value_and_error` states.

    >>> def top(labels, order):
    ...     return labels[order[0]]
    >>> Custom(top)([0, 2, 1], scores=[1, 1, 0])
    1.0
    """

    function: Callable[[Any, tuple[int, ...]], Any]
    name: str = ""
    supervision: str = "grades"  # type: ignore[misc]  # a fixed word in the other metrics
    unjudged: Unjudged = "zero"
    lowest_value: float | None = None
    samples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"a metric is a name, a metric or a function (labels, order); got {self.function!r}")
        check_choice(str(self), "supervision", self.supervision, ("binary", "grades", "rankings", "preferences"))
        check_choice(str(self), "unjudged", self.unjudged, ("zero", "skip"))
        if self.lowest_value is not None and not is_number(self.lowest_value):
            raise ValueError(f"{self}: lowest_value is a finite number; got {self.lowest_value!r}")
        if isinstance(self.samples, bool) or not isinstance(self.samples, int) or self.samples < 2:
            raise ValueError(f"{self}: samples is a whole number from 2 on; got {self.samples!r}")

    def __str__(self) -> str:
        return self.name or getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(
        self,
        labels: Any,
        *,
        scores: ArrayLike | None = None,
        order: ArrayLike | None = None,
        columns: Columns = None,
    ) -> float:
        del columns
        return self.value_and_error(labels, scores=scores, order=order)[0]

    def value_and_error(
        self, labels: Any, *, scores: ArrayLike | None = None, order: ArrayLike | None = None
    ) -> tuple[float, float]:
        """The value, and its standard error: 0 where it is exact."""
        known, keep = self._known(labels)
        n = len(known)
        if order is not None and scores is None and keep is None:
            return float(self._value(known, tuple(check_order(order, n).tolist()))), 0.0
        given = scores_of(self, n if keep is None else len(keep), scores, order)
        return self._expected(known, given if keep is None else given[keep])

    def at_scores(self, labels: Any, scores: Floats) -> tuple[float, float]:
        """The value and its standard error at scores of which some are -inf: documents that are not ranked."""
        known, keep = self._known(labels)
        given = scores if keep is None else scores[keep]
        return self._expected(known, np.unique(given, return_inverse=True)[1])

    def _expected(self, labels: Any, scores: Any) -> tuple[float, float]:
        count = argsort_set_size(scores)
        if count <= MOST_ORDERS:
            total: Any = 0
            for order in argsort_set(scores):
                total = total + self._value(labels, order)
            return float(total / count), 0.0
        random = np.random.default_rng(self.seed)
        orders = (tuple(random_order(scores, random).tolist()) for _ in range(self.samples))
        values = np.array([float(self._value(labels, order)) for order in orders])
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(self.samples))

    def exact(self, labels: Any, order: Sequence[int]) -> Fraction:
        known, _ = self._known(labels)
        value = self._value(known, tuple(check_order(order, len(known)).tolist()))
        if isinstance(value, float) and not value.is_integer():
            raise TypeError(f"{self} has no exact value: the function returned the float {value!r}")
        return Fraction(value)

    def ideal(self, labels: Any, *, columns: Columns = None) -> float:
        """The highest value of all orders, of which there may be 8!."""
        del columns
        return float(max(self._all_values(labels, "best")))

    def worst(self, labels: Any) -> float:
        """The lowest value: ``lowest_value`` where it is given, else that of all orders."""
        if self.lowest_value is not None:
            return float(self.lowest_value)
        return float(min(self._all_values(labels, "worst")))

    def _all_values(self, labels: Any, which: str) -> list[Any]:
        known, _ = self._known(labels)
        if len(known) > 8:
            hint = "; give lowest_value=" if which == "worst" else ""
            raise ValueError(
                f"{self}: the {which} order of {len(known)} documents is not known; of 8 it would be{hint}"
            )
        return [self._value(known, order) for order in itertools.permutations(range(len(known)))]

    def _known(self, labels: Any) -> tuple[Any, Any]:
        """The labels as plain Python numbers, and which documents are kept (None: all)."""
        if self.supervision == "preferences":
            matrix = labels.matrix(0) if hasattr(labels, "matrix") else np.asarray(labels, dtype=np.float64)
            return tuple(tuple(map(_plain, row)) for row in matrix.tolist()), None
        if self.supervision == "rankings":
            return tuple(check_order(labels).tolist()), None
        values, missing = split_labels(labels, self)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise ValueError(f"{self}: expected finite labels, got {values[bad[0]]} for document {bad[0]}")
        if missing is not None and self.unjudged == "skip":
            return tuple(map(_plain, values[~missing].tolist())), ~missing
        return tuple(map(_plain, values.tolist())), None

    def _value(self, labels: Any, order: tuple[int, ...]) -> Any:
        value = self.function(labels, order)
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, bool):
            value = int(value)
        if not isinstance(value, (int, float, Fraction)) or not math.isfinite(value):
            raise ValueError(f"{self}: expected a finite number, got {value!r} for labels {labels} and order {order}")
        return value


def _plain(number: float) -> float:
    """Whole numbers as ints."""
    return int(number) if number.is_integer() else number
