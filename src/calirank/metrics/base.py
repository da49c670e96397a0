"""What every metric is: a named value that judges scores or an order by labels; larger is better."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.data.supervision import Supervision
from calirank.metrics.lists import ENDLESS, Floats, Ints, Labels, Lists, Scores, as_scores
from calirank.names import METRICS
from calirank.orders import check_order

#: The value of a list where the metric is undefined: a number, or "skip" (NaN, and left out of means).
Empty: TypeAlias = float | Literal["skip"]

#: What a document without a label is: a label 0, no document of the list, or anything that a label can be.
Unjudged: TypeAlias = Literal["zero", "skip", "bounds"]

Number: TypeAlias = Fraction | float

#: Larger gains could not be added up.
LARGEST = 1e290
Columns: TypeAlias = Mapping[str, ArrayLike] | None


class Metric:
    """What all metrics share. Metrics can be multiplied by numbers and added up: ``0.7 * a + 0.3 * b``."""

    #: What it judges by: "binary", "grades", "rankings" or "preferences".
    supervision: ClassVar[str] = "grades"

    @property
    def is_positional(self) -> bool:
        """Whether it is a discount of the ranks times a utility of the documents."""
        return False

    def __call__(
        self,
        labels: Any,
        *,
        scores: ArrayLike | None = None,
        order: ArrayLike | None = None,
        columns: Columns = None,
    ) -> float:
        """The value of an order, or of scores: the mean over all orders that sort them.

        Where labels are missing and the metric has ``unjudged="bounds"``, it is the lowest value that they allow.
        """
        raise NotImplementedError

    def ideal(self, labels: Any, *, columns: Columns = None) -> float:
        """The highest value that an order of these labels reaches."""
        raise NotImplementedError

    def discount_form(self) -> tuple[Any, float] | None:
        """What determines the discount up to a factor, and the factor; None when the metric is not positional."""
        return None

    def bounds(
        self,
        labels: Any,
        *,
        scores: ArrayLike | None = None,
        order: ArrayLike | None = None,
        columns: Columns = None,
    ) -> tuple[float, float]:
        """The lowest and the highest value that the missing labels allow (missing ones are masked)."""
        del labels, scores, order, columns
        raise TypeError(f"{self} has no bounds: it does not judge by labels of which some could be missing")

    # What only positional metrics have.

    def utility(self, labels: Any, *, columns: Columns = None) -> Floats:
        """u(y): the targets whose expectation an optimal order sorts."""
        raise self._not_positional("utility")

    def discount(self, n: int) -> Floats:
        """φ of the ranks of a list of n documents, best first."""
        raise self._not_positional("discount")

    def _not_positional(self, what: str) -> TypeError:
        return TypeError(f"{self} is not positional (a discount of the ranks times a utility), so it has no {what}")

    # What metrics have whose gain at a rank depends on the documents above as a set.

    def offset(self, labels: Any, *, columns: Columns = None) -> float:
        """b(y): the part of the value that no order changes."""
        return float(self._decomposed(labels, columns)[0])

    def prefix_gain(self, labels: Any, before: Collection[int], item: int, *, columns: Columns = None) -> Number:
        """The gain of putting ``item`` at the rank behind the set ``before``; a Fraction where it is rational.

        The value of an order is the offset plus the gains of its prefixes.
        """
        return self._decomposed(labels, columns)[1](before, item)

    def exact(self, labels: Any, order: Sequence[int]) -> Fraction:
        """The value of an order in exact arithmetic, for metrics whose values are rational.

        >>> from calirank.metrics import RR
        >>> RR().exact([0, 0, 1], [0, 1, 2])
        Fraction(1, 3)
        """
        offset, gain = self._decomposed(labels)
        items = order_for(self, labels, order)
        value = sum((gain(items[:rank], item) for rank, item in enumerate(items)), offset)
        if not isinstance(value, Fraction):
            raise TypeError(f"{self} has no exact value: it is not rational, or not for these labels")
        return value

    def _decomposed(
        self, labels: Any, columns: Columns = None
    ) -> tuple[Number, Callable[[Collection[int], int], Number]]:
        """The offset, and the gain of an item at the rank behind a set."""
        del labels, columns
        raise TypeError(
            f"{self} has no prefix gain: its gain at a rank depends on more than the set of documents above"
        )

    # Sums.

    def __add__(self, other: Any) -> Any:
        return _sum(((1.0, self),), other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _sum(((1.0, self),), other, -1.0)

    def __rsub__(self, other: Any) -> Any:
        return _sum(((-1.0, self),), other, 1.0)

    def __neg__(self) -> Any:
        return -1.0 * self

    def __mul__(self, factor: float) -> Any:
        return _sum(((float(factor), self),), 0.0, 1.0) if is_number(factor) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Any:
        return self * (1 / divisor)

    def __str__(self) -> str:
        return METRICS.name_of(self)


def _sum(terms: tuple[tuple[float, Metric], ...], other: Any, sign: float) -> Any:
    """The weighted sum; the metric itself where that is all there is."""
    if isinstance(other, Metric):
        found = METRICS.add_up((*terms, (sign, other)))
    elif is_number(other):
        found = METRICS.add_up(terms, sign * float(other))
    else:
        return NotImplemented
    return found.terms[0][1] if len(found.terms) == 1 and found.terms[0][0] == 1 and not found.constant else found


class LabelMetric(Metric):
    """A metric of labels, one a document: computed for many lists at once by :meth:`values`."""

    unjudged: Unjudged

    def values(self, lists: Lists) -> Floats:
        """The value of each list; NaN where it is skipped."""
        raise NotImplementedError

    def check(self, labels: Labels) -> None:
        """Refuse labels outside the metric's domain, with their place."""
        labels.check(self, lambda y: ~(np.isfinite(y) & (y >= 0)), "expected labels >= 0")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of numbers a document that the metric uses."""
        return ()

    def _known(self, labels: Any) -> list[Fraction]:
        """The labels of one list as exact numbers, once they are known to be in the metric's domain."""
        values = labels_or_zero(labels, self)
        self.check(Labels(values, np.array([0, len(values)])))
        return [Fraction(label) for label in values.tolist()]

    @property
    def _cutoff(self) -> int:
        """The last rank that counts."""
        k: int | None = getattr(self, "k", None)
        return ENDLESS if k is None else int(k)

    #: Whether a higher label at a place never lowers the value, so that bounds come from the lowest and highest labels.
    monotone: ClassVar[bool] = False

    def top_label(self) -> float:
        """The highest label that a document without one may have."""
        raise TypeError(f"{self}: bounds need the highest label that is possible; give max_grade=, such as max_grade=4")

    def __call__(
        self,
        labels: Any,
        *,
        scores: ArrayLike | None = None,
        order: ArrayLike | None = None,
        columns: Columns = None,
    ) -> float:
        one = one_list(self, labels, scores, order, columns)
        if self.unjudged == "bounds" and one.missing is not None:
            return self.bounds(labels, scores=scores, order=order, columns=columns)[0]
        self.check(one.labels)
        return float(self.values(one.lists())[0])

    def bounds(
        self,
        labels: Any,
        *,
        scores: ArrayLike | None = None,
        order: ArrayLike | None = None,
        columns: Columns = None,
    ) -> tuple[float, float]:
        return _bounds_finder[0](self, labels, scores, order, columns)

    def ideal(self, labels: Any, *, columns: Columns = None) -> float:
        values, _ = split_labels(labels, self)
        given = labels if self.unjudged == "skip" else values
        return self(given, scores=self._best_scores(values, columns), columns=columns)

    def _best_scores(self, labels: Floats, columns: Columns) -> Floats:
        """Scores that sort the documents best."""
        del columns
        return labels


FindsBounds: TypeAlias = Callable[[LabelMetric, Any, Any, Any, Columns], tuple[float, float]]
_bounds_finder: list[FindsBounds] = []


def finds_bounds(function: FindsBounds) -> FindsBounds:
    """Enter the function behind :meth:`LabelMetric.bounds`: it knows every metric, so it stands above this module."""
    _bounds_finder.append(function)
    return function


class JudgementMetric(Metric):
    """A metric that judges by rankings or preferences: computed for all judgements of all lists at once."""

    def judgement_values(self, scores: Floats, offsets: Ints, judgements: Supervision) -> Floats:
        """The value of each judgement of ``judgements``, which are aligned with the lists of scores.

        NaN where it is skipped. A document that was not ranked has the score -inf.
        """
        raise NotImplementedError

    def lowest(self, judgements: Supervision) -> Floats:
        """The lowest value of each judgement: what it gives to a query that a run does not return."""
        return np.zeros(len(judgements.weight))

    def _judgement(self, labels: Any) -> tuple[Supervision, int]:
        """The labels of a call as one judgement of one list, and the number of documents (0: as many as scores)."""
        raise NotImplementedError

    def __call__(
        self,
        labels: Any,
        *,
        scores: ArrayLike | None = None,
        order: ArrayLike | None = None,
        columns: Columns = None,
    ) -> float:
        del columns
        judgements, n = self._judgement(labels)
        given = np.asarray(scores if order is None else order)
        values = scores_of(self, n or given.size, scores, order)
        aligned = judgements.align(judgements.query_ids, np.array([len(values)]))
        found = self.judgement_values(values.astype(np.float64), np.array([0, len(values)]), aligned)
        return float(weighted_by_judge(found, aligned)[0])


def weighted_by_judge(values: Floats, judgements: Supervision) -> Floats:
    """The mean of each query over its judgements, weighted; over those that are not skipped (NaN when all are)."""
    query = np.repeat(np.arange(len(judgements)), judgements.counts)
    told = ~np.isnan(values)
    weight = judgements.weight * told
    total = np.bincount(query, weights=weight, minlength=len(judgements))
    sums = np.bincount(query, weights=np.where(told, values, 0) * weight, minlength=len(judgements))
    mean = np.full(len(judgements), np.nan)
    np.divide(sums, total, out=mean, where=total > 0)
    return mean


# --- one list ---------------------------------------------------------------------------------------------------------


class OneList:
    """The labels and scores of one list, in the form of many."""

    def __init__(
        self, labels: Floats, missing: NDArray[np.bool_] | None, scores: NDArray[Any], columns: dict[str, Floats]
    ):
        self.missing = missing
        offsets = np.array([0, len(labels)])
        self.labels = Labels(labels, offsets, columns)
        self._given = scores

    @cached_property
    def scores(self) -> Scores:
        """The scores with the places of the documents; to be asked for once the labels are checked."""
        rows, places = self.labels.rows, self.labels.places
        by_place = (self._given, places) if rows is None else (self._given[rows], places[rows])
        return Scores(*by_place, self.labels.offsets)

    def lists(self) -> Lists:
        return Lists(self.labels, self.scores, 0, 1)


def one_list(metric: LabelMetric, labels: Any, scores: Any, order: Any, columns: Columns) -> OneList:
    """Check the arguments of a call; documents without a label are treated as the metric says."""
    values, missing = split_labels(labels, metric)
    given = scores_of(metric, len(values), scores, order)
    held = columns_of(metric, columns, len(values))
    if missing is not None and metric.unjudged == "skip":
        keep = ~missing
        values, given, missing = values[keep], given[keep], None
        held = {name: column[keep] for name, column in held.items()}
    return OneList(values, missing, given, held)


def scores_of(metric: Any, n: int, scores: Any, order: Any) -> NDArray[Any]:
    """The scores of one list; an order is the scores that sort so."""
    if (scores is None) == (order is None):
        raise TypeError(f"{metric}: expected scores or an order, and not both")
    if order is not None:
        found = np.empty(n)
        try:
            found[check_order(order, n)] = -np.arange(n)
        except ValueError as error:
            raise ValueError(f"{metric}: {error}") from None
        return found
    given = as_scores(scores, f"{metric}: scores")
    if len(given) != n:
        raise ValueError(f"{metric}: {n} labels and {len(given)} scores")
    bad = np.flatnonzero(~np.isfinite(given))
    if len(bad):
        raise ValueError(f"{metric}: scores: expected finite numbers, got {given[bad[0]]} for document {bad[0]}")
    return given


def split_labels(labels: Any, metric: Any) -> tuple[Floats, NDArray[np.bool_] | None]:
    """The labels of one list as floats, 0 where they are missing, and which are missing (None: none is)."""
    missing = None
    if isinstance(labels, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(labels)
        missing = mask if mask.any() else None
        labels = np.ma.filled(labels.astype(np.float64), 0.0) if missing is not None else labels.data
    try:
        array = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{metric}: expected one number a document as labels, got {labels!r}") from None
    if array.ndim != 1:
        raise ValueError(f"{metric}: expected one label a document, got shape {array.shape}")
    return np.ascontiguousarray(array), missing


def as_labels(labels: Any, metric: Any) -> Floats:
    """The labels of one list as finite floats; a masked one is refused with its place."""
    values, missing = split_labels(labels, metric)
    if missing is not None:
        raise ValueError(
            f"{metric}: document {int(np.argmax(missing))} has no label, which is not the same as a label 0"
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(f"{metric}: expected finite labels, got {values[bad[0]]} for document {bad[0]}")
    return values


def documents_of(labels: Any) -> int:
    """How many documents the labels of a call speak of: grades, an order with ties as tuples, or judgements."""
    if isinstance(labels, Supervision):
        return labels.items_of(0) if len(labels) else 0
    return sum(len(place) if isinstance(place, tuple) else 1 for place in labels)


def order_for(metric: Any, labels: Any, order: Any) -> list[int]:
    """An order of the documents that the labels speak of."""
    try:
        items: list[int] = check_order(order, documents_of(labels)).tolist()
    except ValueError as error:
        raise ValueError(f"{metric}: {error}") from None
    return items


def exact_number(number: float) -> Fraction:
    """The decimal number that was written.

    >>> exact_number(0.7)
    Fraction(7, 10)
    """
    return Fraction(repr(float(number)))


def labels_or_zero(labels: Any, metric: LabelMetric) -> Floats:
    """The labels of one list, 0 where they are missing; refused where the metric leaves such documents out."""
    values, missing = split_labels(labels, metric)
    if missing is not None and metric.unjudged == "skip":
        raise ValueError(
            f"{metric}: document {int(np.argmax(missing))} has no label and is no document of the list "
            '(unjudged="skip"); give the labels without it'
        )
    return values


def columns_of(metric: LabelMetric, columns: Columns, n: int) -> dict[str, Floats]:
    """The columns that the metric uses, checked."""
    held: dict[str, Floats] = {}
    for name in metric.columns:
        if columns is None or name not in columns:
            has = f"; the columns given are {', '.join(map(str, columns)) or 'none'}" if columns is not None else ""
            raise ValueError(f"{metric}: needs the column {name!r}: give columns={{{name!r}: …}}{has}")
        held[name] = as_column(metric, name, columns[name], n)
    return held


def as_column(metric: Any, name: str, values: Any, n: int, where: Callable[[int], str] | None = None) -> Floats:
    """A column of finite numbers >= 0, one a document."""
    try:
        column = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{metric}: the column {name!r} does not hold numbers") from None
    if column.shape != (n,):
        raise ValueError(f"{metric}: the column {name!r} has {column.size} values for {n} documents")
    bad = np.flatnonzero(~((column >= 0) & (column <= LARGEST)))
    if len(bad):
        place = f"document {bad[0]}" if where is None else where(int(bad[0]))
        raise ValueError(
            f"{metric}: expected numbers from 0 to {LARGEST:g} in column {name!r}, got {column[bad[0]]} for {place}"
        )
    return column


# --- parameters -------------------------------------------------------------------------------------------------------


def check_cutoff(metric: str, k: Any) -> None:
    """Refuse a cut-off that means nothing."""
    if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k < 2**62):
        raise ValueError(f"{metric}: the cut-off k is a whole number from 1 on (below 2^62), or None; got {k!r}")


def check_choice(metric: str, name: str, value: Any, options: tuple[str, ...]) -> None:
    """Refuse a value that is none of the options."""
    if value not in options:
        raise ValueError(f"{metric}: {name} is {' or '.join(map(repr, options))}; got {value!r}")


def check_empty(metric: str, empty: Any) -> None:
    """Refuse a value of undefined lists that is neither finite nor "skip"."""
    if empty != "skip" and not is_number(empty):
        raise ValueError(
            f'{metric}: the value of a list where it is undefined is a finite number or "skip"; got {empty!r}'
        )


def check_number(
    metric: str, name: str, value: Any, above: float, *, inclusive: bool = True, below: float = math.inf
) -> None:
    """Refuse a parameter that is no finite number in its range."""
    if not is_number(value) or value < above or value >= below or (value == above and not inclusive):
        sign = ">=" if inclusive else ">"
        limit = f" and < {below:g}" if below < math.inf else ""
        raise ValueError(f"{metric}: {name} is a finite number {sign} {above:g}{limit}; got {value!r}")


def is_number(value: Any) -> bool:
    """Whether a value is a finite real number."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))


UNJUDGED = ("zero", "skip", "bounds")


def as_number(empty: Empty) -> Number:
    """The value of undefined lists as an exact number; NaN where they are skipped."""
    return empty_value(empty) if empty == "skip" else exact_number(empty)


def empty_value(empty: Empty) -> float:
    """The number for undefined lists: NaN where they are skipped."""
    return math.nan if empty == "skip" else float(empty)
