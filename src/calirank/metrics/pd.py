r"""Pairwise disagreement: the share of the weight of the preferences that an order keeps.

.. math:: \text{lost}(W, \sigma) = \sum_{i \ne j} W_{ij}\, 1\{\mathrm{rank}(i) > \mathrm{rank}(j)\}

The metric is 1 - lost/total, so that 1 is best. W_ij > 0 says that i is preferred to j; cycles are allowed. The gain of
putting i behind the set S is -Σ_{j∈S} W_ij. It is positional only where the preferences come from two grades, or from
grades with the weights y_i - y_j [NeurIPS20].
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calirank._kernel import run_ranges
from calirank.data.ragged import frozen, list_numbers, offsets_of
from calirank.data.supervision import Preferences, Supervision
from calirank.metrics.base import (
    LARGEST,
    Columns,
    Empty,
    JudgementMetric,
    Number,
    as_labels,
    as_number,
    check_choice,
    check_empty,
    empty_value,
    scores_of,
)
from calirank.metrics.judged import (
    Gain,
    aligned,
    by_weight,
    kernels,
    mean_decomposed,
    nothing,
    of_one_query,
    possible_ranks,
    sizes_of,
)
from calirank.metrics.lists import Floats, Ints
from calirank.names import METRICS

#: The best order of so many documents that prefer each other in a circle is found.
LARGEST_CYCLE = 16


@METRICS.register("pd", aliases=("wpd",))
@dataclass(frozen=True)
class PD(JudgementMetric):
    """The share of the weight of all preferences that is kept, or with ``normalise=False`` minus the weight lost.

    The labels are :class:`~calirank.Preferences` of one query (the weighted mean of the values by its judges), a square
    matrix W, or a grade for each document: then y_i > y_j is a preference of weight 1, or with ``pairs="difference"``
    of weight y_i - y_j. A tied pair is half lost, which is the mean over both ways to break the tie, or with
    ``ties="error"`` lost whole. ``empty`` where there is no preference.

    >>> PD()([[0, 3, 0], [0, 0, 1], [0, 0, 0]], scores=[1, 2, 0])     # 0 is preferred to 1, and below it
    0.25
    >>> PD(pairs="difference")([2, 1, 0], scores=[1, 2, 0])           # weights 1, 1 and 2
    0.75
    """

    supervision = "preferences"

    normalise: bool = True
    ties: Literal["half", "error"] = "half"
    pairs: Literal["unit", "difference"] = "unit"
    empty: Empty = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.normalise, bool):
            raise ValueError(f"pd: normalise is True or False; got {self.normalise!r}")
        check_choice("pd", "ties", self.ties, ("half", "error"))
        check_choice("pd", "pairs", self.pairs, ("unit", "difference"))
        check_empty("pd", self.empty)

    def __call__(
        self,
        labels: Any,
        *,
        scores: ArrayLike | None = None,
        order: ArrayLike | None = None,
        columns: Columns = None,
    ) -> float:
        if not _are_grades(labels):
            return super().__call__(labels, scores=scores, order=order)
        y = as_labels(labels, self)
        given = scores_of(self, len(y), scores, order).astype(np.float64)
        return float(self.label_values(given, y, np.array([0, len(y)]))[0])

    def judgement_values(self, scores: Floats, offsets: Ints, judgements: Supervision) -> Floats:
        """The value of each judge's preferences in lists of scores (-inf: not ranked, below all others)."""
        held = aligned(self, judgements, Preferences, offsets)
        count = len(held.weight)
        lost, total = np.empty(count), np.empty(count)
        rising = by_weight(held.starts, held.edge_weight)
        edges = [frozen(array[rising]) for array in held.payload]
        values, bounds = frozen(np.ascontiguousarray(scores, dtype=np.float64)), frozen(offsets)
        query, whole = frozen(list_numbers(held.offsets)), self.ties == "error"

        def task(begin: int, end: int) -> None:
            kernels().lost_preferences(values, bounds, query, held.starts, *edges, whole, lost, total, begin, end)

        run_ranges(task, held.starts)
        return self._of(lost, total)

    def label_values(self, scores: Floats, labels: Floats, offsets: Ints) -> Floats:
        """The value of each list, whose preferences are those of its grades; scores as for :meth:`judgement_values`.

        It costs O(n log n).
        """
        if not len(scores) == len(labels) == offsets[-1]:
            raise ValueError(
                f"{self}: expected a score and a label for each of {offsets[-1]} documents, got {len(scores)} and "
                f"{len(labels)}"
            )
        bad = np.flatnonzero(~(np.abs(labels) <= LARGEST))
        if len(bad):
            number = int(np.searchsorted(offsets, bad[0], side="right")) - 1
            raise ValueError(
                f"{self}: expected labels up to {LARGEST:g}, got {labels[bad[0]]} for document "
                f"{bad[0] - offsets[number]} of list {number}"
            )
        count = len(offsets) - 1
        longest = int(np.diff(offsets).max(initial=0))
        lost, total = np.empty(count), np.empty(count)
        y, bounds = frozen(np.ascontiguousarray(labels, dtype=np.float64)), frozen(offsets)
        order = possible_ranks(y, offsets)[0]
        _, *ranks = possible_ranks(scores, offsets)
        whole, difference = self.ties == "error", self.pairs == "difference"

        def task(begin: int, end: int) -> None:
            tree = np.empty(longest + 1, np.int64)
            kernels().lost_grades(y, order, bounds, *ranks, whole, difference, tree, lost, total, begin, end)

        run_ranges(task, offsets)
        return self._of(lost, total)

    def _of(self, lost: Floats, total: Floats) -> Floats:
        """The values where so much of the total weight is lost."""
        found = np.full(len(lost), empty_value(self.empty))
        if self.normalise:
            np.divide(total - lost, total, out=found, where=total > 0)
        else:
            np.subtract(0.0, lost, out=found, where=total > 0)
        return found

    def lowest(self, judgements: Supervision) -> Floats:
        """The value by each judge where every preference is lost."""
        offsets = offsets_of(sizes_of(self, judgements))
        return self._all_lost.judgement_values(np.zeros(offsets[-1]), offsets, judgements)

    def label_lowest(self, labels: Floats, offsets: Ints) -> Floats:
        """The value of each list of grades where every preference is lost."""
        return self._all_lost.label_values(np.zeros(len(labels)), labels, offsets)

    @property
    def _all_lost(self) -> PD:
        """The metric that loses every preference at equal scores."""
        return dataclasses.replace(self, ties="error")

    def ideal(self, labels: Any, *, columns: Columns = None) -> float:
        """The highest value of an order: for grades that by grade; else :func:`least_lost` finds it."""
        del columns
        if _are_grades(labels):
            y = as_labels(labels, self)
            return self(y, order=np.argsort(-y, kind="stable"))
        held, _ = self._judgement(labels)
        assert isinstance(held, Preferences)
        value = float(self._decomposed(labels)[0])
        weight = np.repeat(self._pair_weights(held), np.diff(held.starts)) * held.edge_weight
        return value - least_lost(held.better, held.worse, weight, str(self))

    def _pair_weights(self, held: Preferences) -> Floats:
        """What a weight of 1 counts in the mean over the judges: 0 by a judge who is skipped or has no preference."""
        total = np.bincount(list_numbers(held.starts), weights=held.edge_weight, minlength=len(held.weight))
        told = total > 0 if self.empty == "skip" else np.ones(len(total), bool)
        share = np.where(told, held.weight, 0.0)
        share = share / (share.sum() or 1.0)
        divisor = total if self.normalise else np.ones(len(total))
        return np.divide(share, divisor, out=np.zeros(len(total)), where=total > 0)

    def _judgement(self, labels: Any) -> tuple[Preferences, int]:
        if isinstance(labels, Supervision):
            none = isinstance(labels, Preferences) and not len(labels)
            held = _no_preferences() if none else of_one_query(self, labels, Preferences, _EXPECTED)
            n = 0 if none or held.sizes is None else int(held.sizes[0])
            return held if len(held.weight) else _no_preferences(), n
        W = _matrix(labels, self)
        better, worse = np.nonzero(W)
        held = Preferences(better, worse, W[better, worse]) if len(better) else _no_preferences()
        return held, len(W)

    def _decomposed(self, labels: Any, columns: Columns = None) -> tuple[Number, Gain]:
        if _are_grades(labels):
            return self._decomposed_grades([Fraction(label) for label in as_labels(labels, self).tolist()])
        held, _ = self._judgement(labels)
        parts = []
        for number in range(len(held.weight)):
            better, worse, weight = (array.tolist() for array in held.judgement(number))
            W = {(i, j): Fraction(w) for i, j, w in zip(better, worse, weight, strict=True)}
            parts.append((float(held.weight[number]), *self._decomposed_pairs(W)))
        return mean_decomposed(parts)

    def _decomposed_pairs(self, W: dict[tuple[int, int], Fraction]) -> tuple[Number, Gain]:
        total = sum(W.values(), Fraction(0))
        if not total:
            return as_number(self.empty), nothing
        divisor = total if self.normalise else Fraction(1)

        def gain(before: Collection[int], item: int) -> Fraction:
            return -sum((W.get((item, other), Fraction(0)) for other in before), Fraction(0)) / divisor

        return Fraction(int(self.normalise)), gain

    def _decomposed_grades(self, y: list[Fraction]) -> tuple[Number, Gain]:
        unit = self.pairs == "unit"
        rising = sorted(y)
        if unit:
            total = Fraction(sum(bisect_left(rising, label) for label in rising))
        else:
            total = sum((label * (2 * rank - len(y) + 1) for rank, label in enumerate(rising)), Fraction(0))
        if not total:
            return as_number(self.empty), nothing
        divisor = total if self.normalise else Fraction(1)

        def gain(before: Collection[int], item: int) -> Fraction:
            higher = [y[item] - y[other] for other in before if y[item] > y[other]]
            return -(Fraction(len(higher)) if unit else sum(higher, Fraction(0))) / divisor

        return Fraction(int(self.normalise)), gain


_EXPECTED = "Preferences, a square matrix or a grade for each document"


def _are_grades(labels: Any) -> bool:
    """Whether labels are one row of numbers, and not Preferences or a matrix."""
    try:
        return not isinstance(labels, Supervision) and np.ndim(labels) < 2
    except ValueError:  # rows of different lengths
        return False


def _matrix(labels: Any, metric: PD) -> Floats:
    """The labels as a square matrix of weights >= 0."""
    try:
        W = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{metric}: expected {_EXPECTED}; got rows of different lengths, or no numbers") from None
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(f"{metric}: expected {_EXPECTED}; got an array of shape {W.shape}")
    bad = np.argwhere(~((W >= 0) & (W <= LARGEST)))
    if len(bad):
        i, j = bad[0].tolist()
        raise ValueError(f"{metric}: expected weights from 0 to {LARGEST:g}; got {W[i, j]} in row {i}, column {j}")
    loops = np.flatnonzero(np.diagonal(W))
    if len(loops):
        raise ValueError(f"{metric}: the diagonal must be 0: document {loops[0]} is preferred to itself")
    return W


def _no_preferences() -> Preferences:
    """One judge of one query who prefers nothing."""
    none, one = np.zeros(0, np.int64), np.array([0, 1])
    return Preferences._build(np.zeros(1, np.int64), one, np.ones(1), np.zeros(2, np.int64), [none, none, np.zeros(0)])


def least_lost(better: Ints, worse: Ints, weight: Floats, metric: str) -> float:
    """The least weight of preferences that an order contradicts: that of a minimum feedback arc set, exactly.

    Of two opposite preferences the lighter one is lost in any case, and only the difference is left to choose. A
    preference between documents that no circle connects costs nothing more. What remains are the circles (strong
    components), each of which is solved by subsets; one of more than 16 documents is refused, because the problem is
    hard.

    >>> least_lost(np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([3.0, 2.0, 0.5]), "pd")
    0.5
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    documents, places = np.unique(np.concatenate([better, worse]), return_inverse=True)
    n = len(documents)
    if not n:
        return 0.0
    W = coo_array((weight, (places[: len(better)], places[len(better) :])), shape=(n, n)).tocsr()
    net = (W - W.T).maximum(0).tocsr()
    net.eliminate_zeros()
    lost = float(W.minimum(W.T).sum() / 2)
    count, component = connected_components(net, directed=True, connection="strong")
    sizes = np.bincount(component, minlength=count)
    if sizes.max() > LARGEST_CYCLE:
        raise ValueError(
            f"{metric}: {sizes.max()} documents are preferred to each other in circles; the best order, a minimum "
            f"feedback arc set, is found for at most {LARGEST_CYCLE}: for more there are its decoders"
        )
    for number in np.flatnonzero(sizes > 1).tolist():
        members = np.flatnonzero(component == number)
        inside = np.ascontiguousarray(net[members][:, members].toarray())
        m = len(members)
        lost += kernels().least_lost(inside, np.empty((1 << m, m)), np.empty(1 << m))
    return lost
