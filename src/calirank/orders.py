"""Orders of items: argsort sets, ranks, ties, adjacent swaps, ordered partitions; the only code that knows ties.

Items and ranks count from 0. An *order* lists the items best first: ``order[k]`` is the item at rank ``k``; the
*ranks* are its inverse: ``ranks(order)[i]`` is the rank of item ``i``. Scores that are equal tie; they are compared in
their own precision, and -0.0 equals 0.0. ``argsort(s)`` is the set of all orders with non-increasing scores, all
equally likely.

Many lists are flat arrays with offsets: list ``l`` is ``offsets[l]:offsets[l + 1]``. The groups of equal scores are
given like lists: group ``g`` takes the places ``starts[g]:starts[g + 1]`` of the sorted items.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.names import Registry

Order: TypeAlias = tuple[int, ...]
Seed: TypeAlias = int | np.random.Generator | None

#: The orders of more items than this do not fit into memory.
MOST_ITEMS = 12


# --- orders and ranks ------------------------------------------------------------------------------------------------


def check_order(order: ArrayLike, n: int | None = None) -> NDArray[np.int64]:
    """The order as an int64 array, once it is known to hold each of the items 0..n-1 exactly once.

    >>> check_order([0, 2, 2])
    Traceback (most recent call last):
    ValueError: an order of 3 items holds each of 0..2 once; 2 stands twice, 1 is missing
    """
    return _check_permutation(order, n, "an order", "items")


def ranks(order: ArrayLike) -> NDArray[np.int64]:
    """The rank of each item: the inverse of the order.

    >>> ranks([2, 0, 1])
    array([1, 2, 0])
    """
    return _inverse(check_order(order))


def order_of(ranks: ArrayLike) -> NDArray[np.int64]:
    """The order in which item ``i`` has rank ``ranks[i]``: the inverse of :func:`ranks`.

    >>> order_of([1, 2, 0])
    array([2, 0, 1])
    """
    return _inverse(_check_permutation(ranks, None, "a list of ranks", "ranks"))


def _inverse(permutation: NDArray[np.int64]) -> NDArray[np.int64]:
    inverse = np.empty_like(permutation)
    inverse[permutation] = np.arange(len(permutation))
    return inverse


def _check_permutation(given: ArrayLike, n: int | None, what: str, of: str) -> NDArray[np.int64]:
    array = np.asarray(given)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(f"{what} is one row of whole numbers; got {given!r}")
    size = len(array) if n is None else n
    if len(array) != size:
        raise ValueError(f"{what} of {size} {of} was expected; got {len(array)}: {array.tolist()}")
    result = array.astype(np.int64)
    if not np.array_equal(np.sort(result), np.arange(size)):
        counts = Counter(result.tolist())
        wrong = [f"{value} is none of them" for value in sorted(counts) if not 0 <= value < size]
        wrong += [
            f"{value} stands {'twice' if count == 2 else f'{count} times'}"
            for value, count in sorted(counts.items())
            if count > 1 and 0 <= value < size
        ]
        wrong += [f"{value} is missing" for value in range(size) if value not in counts]
        more = f" and {len(wrong) - 4} more" if len(wrong) > 4 else ""
        raise ValueError(f"{what} of {size} {of} holds each of 0..{size - 1} once; {', '.join(wrong[:4])}{more}")
    return result


# --- scores and ties -------------------------------------------------------------------------------------------------


def sort_lists(scores: ArrayLike, offsets: ArrayLike | None = None) -> NDArray[np.int64]:
    """Sort each list by descending score, ties by position: the places in the flat arrays, list after list.

    ``labels[sort_lists(scores, offsets)]`` are the labels in ranked order. Without offsets all is one list.

    >>> sort_lists([1.0, 3.0, 2.0, 5.0, 9.0], [0, 3, 5])
    array([1, 2, 0, 4, 3])
    """
    comparable, lists, _ = _check_scores(scores, offsets)
    return _sort(comparable, lists)


def tie_groups(scores: ArrayLike, offsets: ArrayLike | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The items sorted by descending score, and where each group of equal scores starts (and the last one ends).

    With offsets, ``order`` is that of :func:`sort_lists` and no group goes from one list into the next.

    >>> order, starts = tie_groups([1.0, 5.0, 1.0, 7.0])
    >>> order, starts
    (array([3, 1, 0, 2]), array([0, 1, 2, 4]))
    """
    comparable, lists, _ = _check_scores(scores, offsets)
    order = _sort(comparable, lists)
    return order, _group_starts(comparable, lists, order)


def argsort_set(scores: ArrayLike) -> Iterator[Order]:
    """Every order with non-increasing scores.

    >>> list(argsort_set([1, 5, 1]))
    [(1, 0, 2), (1, 2, 0)]
    """
    order, starts = tie_groups(scores)
    groups = [order[a:b].tolist() for a, b in itertools.pairwise(starts)]
    for parts in itertools.product(*(list(itertools.permutations(group)) for group in groups)):
        yield tuple(itertools.chain.from_iterable(parts))


def argsort_set_size(scores: ArrayLike) -> int:
    """How many orders :func:`argsort_set` has: the product of the factorials of the group sizes.

    >>> argsort_set_size([1, 5, 1, 1])
    6
    """
    _, starts = tie_groups(scores)
    return math.prod(math.factorial(int(size)) for size in np.diff(starts))


def is_sorted_by(order: ArrayLike, scores: ArrayLike) -> bool:
    """Whether the scores do not increase along the order: whether it is in the argsort set.

    >>> is_sorted_by([1, 2, 0], [1, 5, 1]), is_sorted_by([0, 1, 2], [1, 5, 1])
    (True, False)
    """
    comparable, _, _ = _check_scores(scores, None)
    along = comparable[check_order(order, len(comparable))]
    return bool(np.all(along[1:] <= along[:-1]))


def random_order(scores: ArrayLike, seed: Seed = None, offsets: ArrayLike | None = None) -> NDArray[np.int64]:
    """One order drawn uniformly from the argsort set (of each list, as places in the flat arrays).

    >>> sorted(random_order([1, 5, 1], seed=0).tolist())
    [0, 1, 2]
    """
    comparable, lists, _ = _check_scores(scores, offsets)
    return _sort(comparable, lists, np.random.default_rng(seed).permutation(len(comparable)))


def mean_ranks(scores: ArrayLike, offsets: ArrayLike | None = None) -> NDArray[np.float64]:
    """The expected rank of each item in its list when ties are broken at random: tied items share their mean rank.

    >>> mean_ranks([1, 5, 1])
    array([1.5, 0. , 1.5])
    """
    comparable, lists, firsts = _check_scores(scores, offsets)
    order = _sort(comparable, lists)
    starts = _group_starts(comparable, lists, order)
    middles = np.repeat((starts[:-1] + starts[1:] - 1) / 2, np.diff(starts))
    result = np.empty(len(order))
    result[order] = middles - firsts
    return result


def group_means(values_by_rank: ArrayLike, starts: ArrayLike) -> NDArray[Any]:
    """The mean of the values at the ranks of each group: what an item of the group gets when ties are broken at random.

    >>> group_means([9.0, 4.0, 2.0], [0, 1, 3])
    array([9., 3.])
    """
    values, bounds = np.asarray(values_by_rank), _check_offsets(starts, None, "starts")
    if values.ndim != 1 or len(values) != bounds[-1]:
        raise ValueError(f"expected one value for each of {bounds[-1]} ranks; got values of shape {values.shape}")
    sizes = np.diff(bounds)
    if np.any(sizes == 0):
        raise ValueError(f"group {int(np.argmin(sizes))} is empty, so it has no mean")
    means: NDArray[Any] = np.add.reduceat(values, bounds[:-1]) / sizes if len(sizes) else values.astype(np.float64)
    return means


def _sort(
    comparable: NDArray[Any], lists: NDArray[np.int64] | None, tie_break: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    descending = -comparable if comparable.dtype.kind == "f" else ~comparable
    keys = [descending]
    if tie_break is not None:
        keys.insert(0, tie_break)
    if lists is not None:
        keys.append(lists)
    return np.lexsort(keys).astype(np.int64, copy=False)


def _group_starts(
    comparable: NDArray[Any], lists: NDArray[np.int64] | None, order: NDArray[np.int64]
) -> NDArray[np.int64]:
    along = comparable[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = along[1:] != along[:-1]
    if lists is not None:
        begins[1:] |= lists[1:] != lists[:-1]
    return np.append(np.flatnonzero(begins), len(order)).astype(np.int64, copy=False)


def _check_scores(
    scores: ArrayLike, offsets: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.int64] | None, NDArray[np.int64] | int]:
    """Numbers that sort and tie as the scores do; the list of each item and its first place (None and 0: one list)."""
    array = np.asarray(scores)
    if array.ndim != 1:
        raise ValueError(f"scores are one flat row of numbers; got shape {array.shape}")
    lists: NDArray[np.int64] | None = None
    firsts: NDArray[np.int64] | int = 0
    if offsets is not None:
        bounds = _check_offsets(offsets, len(array), "offsets")
        lists = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        firsts = bounds[lists]
    if array.dtype.kind == "O":
        finite = np.array([_is_finite(score) for score in array.tolist()], dtype=bool)
    elif array.dtype.kind in "fiub":
        finite = np.isfinite(array)
    else:
        raise ValueError(f"scores are real numbers; got an array of {array.dtype}")
    if not finite.all():
        place = int(np.argmin(finite))
        inside = (
            ""
            if lists is None
            else f" (list {lists[place]}, item {place - np.broadcast_to(firsts, len(array))[place]})"
        )
        raise ValueError(f"scores are finite numbers; scores[{place}] is {array[place]!r}{inside}")
    if array.dtype.kind == "O":
        array = np.unique(array, return_inverse=True)[1]
    return (array.view(np.uint8) if array.dtype.kind == "b" else array), lists, firsts


def _is_finite(score: object) -> bool:
    return isinstance(score, numbers.Rational) or (isinstance(score, numbers.Real) and math.isfinite(score))


def _check_offsets(offsets: ArrayLike, total: int | None, what: str) -> NDArray[np.int64]:
    bounds = np.asarray(offsets)
    if bounds.ndim != 1 or bounds.dtype.kind not in "iu" or len(bounds) == 0 or bounds[0] != 0:
        raise ValueError(f"{what} are one row of whole numbers that begins with 0; got {offsets!r}")
    result = bounds.astype(np.int64)
    falls = np.flatnonzero(np.diff(result) < 0)
    if len(falls):
        place = int(falls[0]) + 1
        raise ValueError(f"{what} do not decrease; {what}[{place}] is {result[place]} after {result[place - 1]}")
    if total is not None and result[-1] != total:
        raise ValueError(f"{what} end with the number of items, {total}; got {result[-1]}")
    return result


# --- spaces of predictions -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Blocks:
    """A space of predictions: ordered partitions into blocks of these sizes, best block first [NeurIPS20 App A].

    A prediction is a weak order: the order inside a block means nothing. It is written as the order in which each block
    ascends (its canonical form).

    >>> selection = Blocks((1, 2))
    >>> list(selection)
    [(0, 1, 2), (1, 0, 2), (2, 0, 1)]
    >>> list(selection.members((1, 0, 2)))
    [(1, 0, 2), (1, 2, 0)]
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(self.sizes))
        wrong = [size for size in self.sizes if not isinstance(size, numbers.Integral) or size < 1]
        if wrong or not self.sizes:
            raise ValueError(f"blocks have whole numbers of items, at least 1 each; got {self.sizes!r}")
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))

    @property
    def n(self) -> int:
        """The number of items."""
        return sum(self.sizes)

    @property
    def starts(self) -> tuple[int, ...]:
        """The rank at which each block begins, and n."""
        return (0, *itertools.accumulate(self.sizes))

    @property
    def is_full(self) -> bool:
        """Whether the predictions are plain orders."""
        return len(self.sizes) == self.n

    @property
    def count(self) -> int:
        """The number of predictions: n! over the factorials of the sizes."""
        return math.factorial(self.n) // math.prod(map(math.factorial, self.sizes))

    def __iter__(self) -> Iterator[Order]:
        """Every prediction once, in lexicographic order."""
        return self._extend(tuple(range(self.n)), self.sizes)

    def _extend(self, left: Order, sizes: tuple[int, ...]) -> Iterator[Order]:
        if not sizes:
            yield ()
            return
        for block in itertools.combinations(left, sizes[0]):
            rest = tuple(item for item in left if item not in block)
            for tail in self._extend(rest, sizes[1:]):
                yield block + tail

    def canonical(self, order: ArrayLike) -> Order:
        """The prediction that an order belongs to: each block ascending."""
        items = check_order(order, self.n).tolist()
        return tuple(item for a, b in itertools.pairwise(self.starts) for item in sorted(items[a:b]))

    def members(self, order: ArrayLike) -> Iterator[Order]:
        """Every order that means the same prediction as this one."""
        items = self.canonical(order)
        blocks = [list(itertools.permutations(items[a:b])) for a, b in itertools.pairwise(self.starts)]
        for parts in itertools.product(*blocks):
            yield tuple(itertools.chain.from_iterable(parts))

    def swap(self, order: ArrayLike, i: int, j: int) -> Order:
        """The prediction in which items ``i`` and ``j`` have exchanged their places."""
        return self.canonical(swap_items(order, i, j))

    def adjacent_ranks(self) -> tuple[tuple[int, int], ...]:
        """The pairs of ranks in neighbouring blocks, whose exchange is one adjacent swap."""
        starts = self.starts
        return tuple(
            (a, b)
            for left, middle, right in zip(starts, starts[1:], starts[2:], strict=False)
            for a in range(left, middle)
            for b in range(middle, right)
        )

    def __str__(self) -> str:
        """The name that :func:`space` reads."""
        if self.is_full:
            return "full"
        if self.sizes[:-1] == (1,) * (len(self.sizes) - 1) and len(self.sizes) > 1:
            return f"top({len(self.sizes) - 1})"
        if len(self.sizes) == 2:
            return f"selection({self.sizes[0]})"
        return f"blocks({', '.join(map(str, self.sizes))})"


_SPACES = Registry("prediction space")


@_SPACES.register("full")
def _full() -> Callable[[int], list[int]]:
    return lambda n: [1] * n


@_SPACES.register("top")
def _top(k: int) -> Callable[[int], list[int]]:
    if k < 1:
        raise ValueError(f"the top has at least 1 item; got top({k})")
    return lambda n: [1] * k + [n - k]


@_SPACES.register("selection")
def _selection(k: int) -> Callable[[int], list[int]]:
    return lambda n: [k, n - k]


@_SPACES.register("blocks")
def _blocks(*sizes: int) -> Callable[[int], list[int]]:
    return lambda n: list(sizes)


def space(name: str | Blocks, n: int) -> Blocks:
    """The space of predictions over ``n`` items: "full", "top(3)", "selection(3)", "blocks(1, 2, 2)", or Blocks.

    >>> space("top(2)", 5).sizes, space("selection(2)", 5).sizes
    ((1, 1, 3), (2, 3))
    """
    sizes = list(name.sizes) if isinstance(name, Blocks) else _SPACES.build(name)(n)
    if sizes and sizes[-1] == 0:  # the top 3 of 3
        sizes = sizes[:-1]
    if not sizes or min(sizes) < 1 or sum(sizes) != n:
        raise ValueError(f"the prediction space {str(name)!r} does not fit {n} items: its blocks would be {sizes}")
    return Blocks(tuple(sizes))


# --- adjacent swaps --------------------------------------------------------------------------------------------------


def all_orders(n: int) -> NDArray[np.int8]:
    """Every order of ``n`` items in lexicographic order, as an (n!, n) array of small integers.

    >>> all_orders(3).tolist()
    [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    """
    if not 0 <= n <= MOST_ITEMS:
        raise ValueError(
            f"all orders of {n} items cannot be listed; 0 to {MOST_ITEMS} items can, and {MOST_ITEMS}! is "
            f"{math.factorial(MOST_ITEMS):,}"
        )
    table = np.zeros((1, 0), dtype=np.int8)
    for size in range(1, n + 1):
        longer = np.empty((size, len(table), size), dtype=np.int8)
        for first in range(size):
            longer[first, :, 0] = first
            longer[first, :, 1:] = table + (table >= first)
        table = longer.reshape(-1, size)
    return table


def swap_items(order: ArrayLike, i: int, j: int) -> Order:
    """The order in which items ``i`` and ``j`` have exchanged their places.

    >>> swap_items([2, 0, 1], 2, 1)
    (1, 0, 2)
    """
    items: list[int] = check_order(order).tolist()
    for item in (i, j):
        if item not in items:
            raise ValueError(f"the order has items 0..{len(items) - 1}; got item {item}")
    a, b = items.index(i), items.index(j)
    items[a], items[b] = items[b], items[a]
    return tuple(items)


def adjacent_swaps(order: ArrayLike, space: Blocks | None = None) -> Iterator[Order]:
    """The neighbours of an order: two items at adjacent ranks are exchanged; in a space, two of adjacent blocks.

    >>> list(adjacent_swaps([2, 0, 1]))
    [(0, 2, 1), (2, 1, 0)]
    """
    items = check_order(order)
    blocks = Blocks((1,) * len(items)) if space is None else space
    start: list[int] = list(blocks.canonical(items))
    for a, b in blocks.adjacent_ranks():
        other = start.copy()
        other[a], other[b] = other[b], other[a]
        yield tuple(other) if blocks.is_full else blocks.canonical(other)


def neighbours(orders: ArrayLike, space: Blocks | None = None) -> NDArray[np.int64]:
    """For each order of a set, the rows of its neighbours in the set, one column an adjacent swap; -1: not in the set.

    >>> neighbours([(0, 1, 2), (0, 2, 1), (2, 1, 0)])
    array([[-1,  1],
           [-1,  0],
           [-1, -1]])
    """
    table, blocks = _check_table(orders, space)
    keys = _keys(table)
    by_key = np.argsort(keys, kind="stable")
    in_order = keys[by_key]
    repeated = np.flatnonzero(in_order[1:] == in_order[:-1])
    if len(repeated):
        row = int(by_key[repeated[0]])
        raise ValueError(f"the order {tuple(table[row].tolist())} stands twice in the set")
    pairs = blocks.adjacent_ranks()
    result = np.empty((len(table), len(pairs)), dtype=np.int64)
    for column, (a, b) in enumerate(pairs):
        swapped = table.copy()
        swapped[:, [a, b]] = table[:, [b, a]]
        wanted = _keys(_canonical_rows(swapped, blocks))
        place = np.minimum(np.searchsorted(in_order, wanted), len(table) - 1)
        result[:, column] = np.where(in_order[place] == wanted, by_key[place], -1)
    return result


def connected_components(orders: ArrayLike, space: Blocks | None = None) -> NDArray[np.int64]:
    """The component of each order of a set when adjacent swaps inside the set link them [NeurIPS20 Prop 9].

    Components are numbered from 0 in the order of their first members.

    >>> connected_components([(0, 2, 1), (1, 2, 0), (0, 1, 2)])
    array([0, 1, 0])
    """
    table = neighbours(orders, space)
    component = np.arange(len(table))
    while table.shape[1]:
        # Everyone takes the smallest number among its neighbours; numbers are rows, so they can be followed on.
        smallest = np.where(table >= 0, component[table], len(table)).min(axis=1)
        lower = np.minimum(component, smallest)
        lower = lower[lower]
        if np.array_equal(lower, component):
            break
        component = lower
    return np.unique(component, return_inverse=True)[1].astype(np.int64, copy=False)


def path_between(
    a: Sequence[int], b: Sequence[int], allowed: Iterable[Sequence[int]], space: Blocks | None = None
) -> list[Order] | None:
    """A shortest path of adjacent swaps from ``a`` to ``b`` inside the allowed orders, both ends included; else None.

    >>> path_between((0, 1, 2), (2, 0, 1), all_orders(3))
    [(0, 1, 2), (0, 2, 1), (2, 0, 1)]
    """
    table, blocks = _check_table(allowed if isinstance(allowed, np.ndarray) else list(allowed), space)
    members = set(map(tuple, table.tolist()))
    start, goal = blocks.canonical(a), blocks.canonical(b)
    for end in (start, goal):
        if end not in members:
            raise ValueError(f"the order {end} is not among the allowed ones")
    came_from: dict[Order, Order | None] = {start: None}
    queue = deque([start])
    while queue and goal not in came_from:
        here = queue.popleft()
        for other in adjacent_swaps(here, blocks):
            if other in members and other not in came_from:
                came_from[other] = here
                queue.append(other)
    if goal not in came_from:
        return None
    path: list[Order] = []
    step: Order | None = goal
    while step is not None:
        path.append(step)
        step = came_from[step]
    return path[::-1]


def _check_table(orders: ArrayLike, space: Blocks | None) -> tuple[NDArray[Any], Blocks]:
    """The orders as rows in canonical form, and the space they belong to."""
    table = np.asarray(orders)
    if table.ndim != 2 or table.dtype.kind not in "iu" or table.size == 0:
        raise ValueError(f"expected a table with one order a row; got {table.dtype} of shape {table.shape}")
    n = table.shape[1]
    wrong = np.flatnonzero((np.sort(table, axis=1) != np.arange(n)).any(axis=1))
    if len(wrong):
        check_order(table[wrong[0]])
    blocks = Blocks((1,) * n) if space is None else space
    if blocks.n != n:
        raise ValueError(f"the space {blocks} has {blocks.n} items, the orders have {n}")
    return _canonical_rows(table, blocks), blocks


def _canonical_rows(table: NDArray[Any], blocks: Blocks) -> NDArray[Any]:
    if blocks.is_full:
        return table
    return np.concatenate([np.sort(table[:, a:b], axis=1) for a, b in itertools.pairwise(blocks.starts)], axis=1)


def _keys(table: NDArray[Any]) -> NDArray[Any]:
    """One string of bytes for each row, to sort and search by."""
    return np.ascontiguousarray(table, dtype=">u2").view(f"S{2 * table.shape[1]}").ravel()
