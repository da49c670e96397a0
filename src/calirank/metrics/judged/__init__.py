"""What the metrics share that judge by rankings or by preferences."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from calirank.data.ragged import frozen, list_numbers, offsets_of
from calirank.data.supervision import Rankings, Supervision
from calirank.metrics.base import Columns, JudgementMetric, Number
from calirank.metrics.lists import Floats, Ints, Scores, each_block, positions
from calirank.orders import check_order

Gain: TypeAlias = Callable[[Collection[int], int], Number]
S = TypeVar("S", bound=Supervision)


def kernels() -> Any:
    """The compiled loops, imported when first used."""
    from calirank.metrics.judged import _kernels

    return _kernels


class Compared(NamedTuple):
    """Rankings beside scores: what the kernels of rankings take."""

    items: Ints
    levels: Ints
    starts: Ints
    query: Ints
    offsets: Ints
    #: The first and last rank that a document can have by its score.
    first: Ints
    last: Ints


class RankingMetric(JudgementMetric):
    """A metric that compares scores, or an order, with a ranking.

    The ranking is an order (``y[k]`` is the document at rank k; a tuple inside it holds tied documents), or
    :class:`~calirank.Rankings` of one query, whose judgements have the weighted mean of their values. Each ranks all
    documents of the list: a document that it leaves out has no place, and that is refused.
    """

    supervision = "rankings"

    def _judgement(self, labels: Any) -> tuple[Rankings, int]:
        if isinstance(labels, Supervision):
            rankings = of_one_query(self, labels, Rankings, "an order or Rankings")
            return rankings, 0 if rankings.sizes is None else int(rankings.sizes[0])
        try:
            if isinstance(labels, Sequence) and any(isinstance(place, Sequence) for place in labels):
                return Rankings([labels]), 0
            order = check_order(labels)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self}: the ranking: {error}") from None
        return Rankings.from_flat(order, np.arange(len(order)), [0, len(order)]), len(order)

    def _compared(self, scores: Floats, offsets: Ints, judgements: Supervision) -> Compared:
        """The rankings beside the ranks that the scores give, once all is checked."""
        rankings = aligned(self, judgements, Rankings, offsets)
        query = list_numbers(rankings.offsets)
        self._refuse_partial(rankings, np.diff(offsets)[query])
        _, first, last, _ = possible_ranks(scores, offsets)
        return Compared(rankings.items, rankings.levels, rankings.starts, frozen(query), frozen(offsets), first, last)

    def lowest(self, judgements: Supervision) -> Floats:
        """The value of each ranking at its own reverse, ties and all: nothing is further from it."""
        held = aligned(self, judgements, Rankings, offsets_of(sizes_of(self, judgements)))
        self._refuse_partial(held, sizes_of(self, held)[list_numbers(held.offsets)])
        count = len(held.weight)
        worst = np.empty(len(held.items))
        worst[held.items + np.repeat(held.starts[:-1], np.diff(held.starts))] = held.levels
        alone = held._build(
            np.arange(count), np.arange(count + 1), held.weight, held.starts, held.payload, np.diff(held.starts)
        )
        return self.judgement_values(worst, held.starts, alone)

    def _refuse_partial(self, rankings: Rankings, sizes: Ints) -> None:
        ranked = np.diff(rankings.starts)
        partial = np.flatnonzero(ranked != sizes)
        if len(partial):
            number = int(partial[0])
            query = int(np.searchsorted(rankings.offsets, number, side="right")) - 1
            missing = np.setdiff1d(np.arange(sizes[number]), rankings.judgement(number)[0])
            raise ValueError(
                f"{self}: expected rankings of all documents; judgement {number - rankings.offsets[query]} of query "
                f"{rankings.query_ids[query]} ranks {ranked[number]} of {sizes[number]} and leaves out document "
                f"{missing[0]} (documents that nothing tells apart can be tied at the end)"
            )

    def _ties(self, labels: Any) -> tuple[int, list[tuple[float, Ints, Ints]]]:
        """The number of documents; the weight of each judgement, its documents best first, and their levels."""
        rankings, n = self._judgement(labels)
        n = n or rankings.items_of(0)
        self._refuse_partial(rankings, np.full(len(rankings.weight), n))
        held = []
        for number in rankings.numbers(0):
            items, levels = rankings.judgement(number)
            held.append((float(rankings.weight[number]), items, levels))
        return n, held

    def _decomposed(self, labels: Any, columns: Columns = None) -> tuple[Number, Gain]:
        n, judgements = self._ties(labels)
        return mean_decomposed(
            [(weight, *self._decomposed_one(items, levels, n)) for weight, items, levels in judgements]
        )

    def _decomposed_one(self, items: Ints, levels: Ints, n: int) -> tuple[Number, Gain]:
        """Offset and prefix gain by one judgement."""
        del items, levels, n
        return JudgementMetric._decomposed(self, None)


def mean_decomposed(parts: Sequence[tuple[float, Number, Gain]]) -> tuple[Number, Gain]:
    """Offset and prefix gain of the weighted mean of judgements; those that are skipped (NaN) are left out.

    >>> mean_decomposed([(3, Fraction(1), lambda before, item: Fraction(-1)), (1, math.nan, lambda before, item: 0)])[0]
    Fraction(1, 1)
    """
    told = [(Fraction(weight), offset, gain) for weight, offset, gain in parts if weight and not math.isnan(offset)]
    total = sum(weight for weight, _, _ in told)
    if not told:
        return math.nan, nothing

    def mean_gain(before: Collection[int], item: int) -> Number:
        return sum((weight / total * gain(before, item) for weight, _, gain in told), Fraction(0))

    return sum((weight / total * offset for weight, offset, _ in told), Fraction(0)), mean_gain


def nothing(before: Collection[int], item: int) -> Number:
    """The prefix gain where all orders have the same value."""
    del before, item
    return Fraction(0)


def of_one_query(metric: Any, labels: Supervision, kind: type[S], expected: str) -> S:
    """The judgements of a call, once they are known to be of the right kind and of one query."""
    if not isinstance(labels, kind):
        raise TypeError(f"{metric}: expected {expected} as labels, got {type(labels).__name__}")
    if len(labels) != 1:
        raise ValueError(
            f"{metric}: expected {kind.__name__} of one query, got {len(labels)} queries (choose one with select)"
        )
    return labels


def aligned(metric: Any, judgements: Supervision, kind: type[S], offsets: Ints) -> S:
    """The judgements, once they are known to be of the right kind and of these lists."""
    if not isinstance(judgements, kind):
        raise TypeError(f"{metric}: expected {kind.__name__}, got {type(judgements).__name__}")
    if not np.array_equal(sizes_of(metric, judgements), np.diff(offsets)):
        raise ValueError(f"{metric}: the judgements are aligned with lists of other lengths than those of the scores")
    return judgements


def sizes_of(metric: Any, judgements: Supervision) -> Ints:
    """The number of documents of each list, once the judgements are known to be aligned with lists."""
    if judgements.sizes is None:
        raise ValueError(f"{metric}: expected {type(judgements).__name__} that are aligned with lists of documents")
    return judgements.sizes


def possible_ranks(values: Floats, offsets: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """The positions of each list by falling values; for each document the first and last rank it can have, and its tie.

    >>> order, first, last, tie = possible_ranks(np.array([1.0, 5.0, 1.0]), np.array([0, 3]))
    >>> order.tolist(), first.tolist(), last.tolist(), tie.tolist()
    ([1, 0, 2], [1, 0, 1], [2, 0, 2], [1, 0, 1])
    """
    order, first, last, group = (np.empty(len(values), np.int64) for _ in range(4))
    places = positions(offsets).astype(np.uint32)
    scores = Scores(np.ascontiguousarray(values, dtype=np.float64), places, offsets)

    def task(start: int, stop: int) -> None:
        keys, _, slot, _ = scores.sorted_keys(start, stop, finite=False)
        kernels().ranks_of_keys(keys, slot, frozen(offsets), start, order, first, last, group)

    each_block(task, offsets)
    return frozen(order), frozen(first), frozen(last), frozen(group)


def by_weight(starts: Ints, weight: Floats) -> Ints | slice:
    """An order of the preferences in which the weights of each judgement rise; a slice where they do already."""
    number = list_numbers(starts)
    falls = (np.diff(weight) < 0) & (np.diff(number) == 0)
    return np.lexsort((weight, number)) if falls.any() else slice(None)
