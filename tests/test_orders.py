"""Orders, ties and swaps against plain enumeration."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calirank import orders
from calirank.orders import Blocks, Order

SCORES = st.lists(st.sampled_from([-1.5, -0.0, 0.0, 1.0, 1.0 + 2**-40]), max_size=6)
RAGGED = st.lists(SCORES, max_size=5)
SIZES = st.lists(st.integers(1, 3), min_size=1, max_size=4).filter(lambda sizes: sum(sizes) <= 5).map(tuple)


def flat(lists: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, lists)])
    return np.array([score for scores in lists for score in scores], dtype=np.float64), offsets


def reference_argsort_set(scores: list[Any]) -> set[Order]:
    return {
        order
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    }


def linked(a: Order, b: Order) -> bool:
    """Whether one exchange of adjacent items leads from a to b."""
    differing = [k for k in range(len(a)) if a[k] != b[k]]
    return len(differing) == 2 and differing[1] == differing[0] + 1


def reference_components(chosen: list[Order]) -> set[frozenset[Order]]:
    left, components = set(chosen), set()
    while left:
        component, edge = set(), {left.pop()}
        while edge:
            component |= edge
            edge = {order for order in left if any(linked(order, other) for other in edge)}
            left -= edge
        components.add(frozenset(component))
    return components


def as_sets(chosen: list[Order], labels: np.ndarray) -> set[frozenset[Order]]:
    return {
        frozenset(order for order, label in zip(chosen, labels, strict=True) if label == wanted) for wanted in labels
    }


# --- orders and ranks ------------------------------------------------------------------------------------------------


@given(st.permutations(range(6)))
@settings(deadline=None)
def test_ranks_and_order_are_inverse(order: list[int]) -> None:
    ranks = orders.ranks(order)
    assert [ranks[item] for item in order] == list(range(6))
    assert orders.order_of(ranks).tolist() == order


def test_check_order_takes_what_is_an_order() -> None:
    assert orders.check_order((2, 0, 1), 3).dtype == np.int64
    assert orders.check_order(np.array([1, 0], dtype=np.uint8)).tolist() == [1, 0]
    assert orders.check_order([]).tolist() == []


@pytest.mark.parametrize(
    ("order", "n", "problem"),
    [
        ([0, 2, 2], None, "an order of 3 items holds each of 0..2 once; 2 stands twice, 1 is missing"),
        ([1, 1, 1, 1], None, "1 stands 4 times, 0 is missing, 2 is missing, 3 is missing"),
        ([1, 2, 3], None, "3 is none of them, 0 is missing"),
        ([-1, 0], None, "-1 is none of them, 1 is missing"),
        (list(range(10, 20)), None, "and 16 more"),
        ([0, 1], 3, r"an order of 3 items was expected; got 2: \[0, 1\]"),
        ([0.0, 1.0], None, "an order is one row of whole numbers"),
        ([[0, 1]], None, "an order is one row of whole numbers"),
        ([True, False], None, "an order is one row of whole numbers"),
        (["a"], None, "an order is one row of whole numbers"),
        ([], 2, "an order of 2 items was expected; got 0"),
    ],
)
def test_check_order_says_what_is_wrong(order: Any, n: int | None, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        orders.check_order(order, n)


def test_ranks_that_are_none_are_called_ranks() -> None:
    with pytest.raises(ValueError, match=r"a list of ranks of 2 ranks holds each of 0\.\.1 once"):
        orders.order_of([1, 2])


# --- ties ------------------------------------------------------------------------------------------------------------


@given(SCORES)
@settings(deadline=None)
def test_the_argsort_set_is_the_set_of_sorted_orders(scores: list[float]) -> None:
    wanted = reference_argsort_set(scores)
    listed = list(orders.argsort_set(scores))
    assert set(listed) == wanted
    assert len(listed) == len(wanted) == orders.argsort_set_size(scores)
    assert all(type(item) is int for order in listed for item in order)
    for order in itertools.permutations(range(len(scores))):
        assert orders.is_sorted_by(order, scores) == (order in wanted)


@given(SCORES)
@settings(deadline=None)
def test_mean_ranks_are_means_over_the_argsort_set(scores: list[float]) -> None:
    members = [orders.ranks(order) for order in reference_argsort_set(scores)]
    assert np.array_equal(orders.mean_ranks(scores), np.mean(members, axis=0))


@given(SCORES, st.lists(st.integers(-9, 9), min_size=6, max_size=6))
@settings(deadline=None)
def test_group_means_are_what_an_item_gets_on_average(scores: list[float], values: list[int]) -> None:
    values = values[: len(scores)]
    order, starts = orders.tie_groups(scores)
    shared = np.empty(len(scores))
    shared[order] = np.repeat(orders.group_means(values, starts), np.diff(starts))
    each = [[values[rank] for rank in orders.ranks(member)] for member in reference_argsort_set(scores)]
    assert shared == pytest.approx(np.mean(each, axis=0))


@given(RAGGED)
@settings(deadline=None)
def test_many_lists_are_sorted_like_each_by_itself(lists: list[list[float]]) -> None:
    scores, offsets = flat(lists)
    order, starts = orders.tie_groups(scores, offsets)
    assert np.array_equal(order, orders.sort_lists(scores, offsets))
    alone = [orders.tie_groups(scores) for scores in lists]
    assert order.tolist() == [int(item) + int(a) for (o, _), a in zip(alone, offsets, strict=False) for item in o]
    assert starts.tolist() == [
        int(start) + int(a) for (_, s), a in zip(alone, offsets, strict=False) for start in s[:-1]
    ] + [len(scores)]
    means = [orders.mean_ranks(scores) for scores in lists]
    assert np.array_equal(orders.mean_ranks(scores, offsets), np.concatenate([*means, []]))
    drawn = orders.random_order(scores, 3, offsets)
    for list_scores, (a, b) in zip(lists, itertools.pairwise(offsets), strict=True):
        assert orders.is_sorted_by(drawn[a:b] - a, list_scores)


def test_sorting_is_stable_and_groups_are_those_of_equal_scores() -> None:
    order, starts = orders.tie_groups([0.0, 2.0, -0.0, 1.0, 0.0])
    assert order.tolist() == [1, 3, 0, 2, 4]
    assert starts.tolist() == [0, 1, 2, 5]
    assert (order.dtype, starts.dtype) == (np.int64, np.int64)


def test_scores_are_compared_in_their_own_precision() -> None:
    near = [1.0, 1.0 + 2**-30]
    assert orders.argsort_set_size(near) == 1
    assert orders.argsort_set_size(np.array(near, dtype=np.float32)) == 2
    large = [2**62, 2**62 + 1]
    assert list(orders.argsort_set(large)) == [(1, 0)]  # equal as floats
    assert list(orders.argsort_set(np.array([0, 255, 0], dtype=np.uint8))) == [(1, 0, 2), (1, 2, 0)]
    assert list(orders.argsort_set(np.array([False, True]))) == [(1, 0)]
    assert list(orders.argsort_set(np.array([-128, 127], dtype=np.int8))) == [(1, 0)]
    third = [Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30), Fraction(1, 3)]
    assert list(orders.argsort_set(third)) == [(1, 0, 2), (1, 2, 0)]


def test_a_random_order_is_uniform_over_the_argsort_set_and_fixed_by_its_seed() -> None:
    scores, generator = [1.0, 3.0, 1.0, 1.0], np.random.default_rng(0)
    drawn = Counter(tuple(orders.random_order(scores, generator).tolist()) for _ in range(3000))
    assert set(drawn) == reference_argsort_set(scores)
    assert all(abs(count - 500) < 4 * math.sqrt(3000 * 5 / 36) for count in drawn.values())
    assert np.array_equal(orders.random_order(scores, 7), orders.random_order(scores, 7))


def test_group_means_are_exact_for_fractions() -> None:
    values = np.array([Fraction(1, k) for k in (1, 2, 3)], dtype=object)
    assert orders.group_means(values, [0, 1, 3]).tolist() == [1, Fraction(5, 12)]


@pytest.mark.parametrize(
    ("scores", "offsets", "problem"),
    [
        ([1.0, math.nan], None, r"scores are finite numbers; scores\[1\] is .*nan"),
        ([math.inf, 0.0], None, r"scores\[0\] is .*inf"),
        ([0.0, 1.0, 2.0, -math.inf, 3.0], [0, 2, 5], r"scores\[3\] is .*-inf.* \(list 1, item 1\)"),
        ([Fraction(1, 2), math.nan], None, r"scores\[1\] is nan"),
        ([1, None], None, r"scores\[1\] is None"),
        ([1j], None, "scores are real numbers; got an array of complex128"),
        (["a"], None, "scores are real numbers"),
        ([[1.0]], None, r"scores are one flat row of numbers; got shape \(1, 1\)"),
        ([1.0, 2.0], [0, 1], "offsets end with the number of items, 2; got 1"),
        ([1.0, 2.0], [1, 2], "offsets are one row of whole numbers that begins with 0"),
        ([1.0, 2.0], [0.0, 2.0], "offsets are one row of whole numbers that begins with 0"),
        ([1.0, 2.0], [], "offsets are one row of whole numbers that begins with 0"),
        ([1.0, 2.0], [0, 2, 1, 2], r"offsets do not decrease; offsets\[2\] is 1 after 2"),
    ],
)
def test_scores_and_offsets_that_are_refused(scores: Any, offsets: Any, problem: str) -> None:
    for function in (orders.sort_lists, orders.tie_groups, orders.mean_ranks):
        with pytest.raises(ValueError, match=problem):
            function(scores, offsets)


def test_group_means_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"expected one value for each of 3 ranks; got values of shape \(2,\)"):
        orders.group_means([1.0, 2.0], [0, 3])
    with pytest.raises(ValueError, match="group 1 is empty"):
        orders.group_means([1.0], [0, 1, 1])
    with pytest.raises(ValueError, match="an order of 2 items was expected; got 1"):
        orders.is_sorted_by([0], [1.0, 2.0])


# --- spaces ----------------------------------------------------------------------------------------------------------


@given(SIZES)
@settings(deadline=None, max_examples=40)
def test_a_space_partitions_the_orders(sizes: tuple[int, ...]) -> None:
    space = Blocks(sizes)
    predictions = list(space)
    assert predictions == sorted(predictions)
    assert len(predictions) == len(set(predictions)) == space.count
    members = [list(space.members(prediction)) for prediction in predictions]
    every = list(itertools.chain.from_iterable(members))
    assert sorted(every) == list(itertools.permutations(range(space.n)))
    for prediction, its_members in zip(predictions, members, strict=True):
        assert {space.canonical(member) for member in its_members} == {prediction}
        assert prediction in its_members


@given(SIZES, st.data())
@settings(deadline=None, max_examples=40)
def test_swapping_items_in_a_space_is_swapping_them_in_every_member(
    sizes: tuple[int, ...], data: st.DataObject
) -> None:
    space = Blocks(sizes)
    order = tuple(data.draw(st.permutations(range(space.n))))
    i, j = data.draw(st.tuples(*[st.integers(0, space.n - 1)] * 2))
    swapped = {space.canonical(orders.swap_items(member, i, j)) for member in space.members(order)}
    assert swapped == {space.swap(order, i, j)}
    assert orders.swap_items(orders.swap_items(order, i, j), j, i) == order


@pytest.mark.parametrize(
    ("name", "n", "sizes", "canonical"),
    [
        ("full", 3, (1, 1, 1), "full"),
        ("top(2)", 5, (1, 1, 3), "top(2)"),
        ("TOP( k = 2 )", 5, (1, 1, 3), "top(2)"),
        ("top(3)", 3, (1, 1, 1), "full"),
        ("top(2)", 3, (1, 1, 1), "full"),
        ("selection(2)", 5, (2, 3), "selection(2)"),
        ("selection(1)", 4, (1, 3), "top(1)"),
        ("selection(3)", 3, (3,), "blocks(3)"),
        ("blocks(1,2,2)", 5, (1, 2, 2), "blocks(1, 2, 2)"),
        ("blocks(2, 1)", 3, (2, 1), "selection(2)"),
        (Blocks((2, 3)), 5, (2, 3), "selection(2)"),
    ],
)
def test_spaces_by_name(name: str | Blocks, n: int, sizes: tuple[int, ...], canonical: str) -> None:
    space = orders.space(name, n)
    assert space.sizes == sizes
    assert str(space) == canonical
    assert orders.space(str(space), n) == space


@pytest.mark.parametrize(
    ("name", "n", "problem"),
    [
        ("top(4)", 3, r"the prediction space 'top\(4\)' does not fit 3 items: its blocks would be \[1, 1, 1, 1, -1\]"),
        ("top(0)", 3, r"the top has at least 1 item; got top\(0\)"),
        ("selection(0)", 3, "does not fit 3 items"),
        ("blocks(1, 2)", 4, "does not fit 4 items"),
        ("blocks(1, -1, 3)", 3, "does not fit 3 items"),
        ("blocks", 3, "does not fit 3 items"),
        (Blocks((2, 2)), 5, r"the prediction space 'selection\(2\)' does not fit 5 items"),
        ("selecton(1)", 3, "no prediction space is called 'selecton'. Did you mean 'selection'"),
        ("top", 3, "top needs k"),
        ("full(3)", 3, "full takes at most 0 values"),
        ("top(1.5)", 3, "parameter 'k' takes a whole number; got 1.5"),
    ],
)
def test_spaces_that_are_refused(name: str | Blocks, n: int, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        orders.space(name, n)


def test_blocks_that_are_refused() -> None:
    for sizes in ((), (0, 1), (1.5, 1), (-1,)):
        with pytest.raises(ValueError, match="blocks have whole numbers of items, at least 1 each"):
            Blocks(sizes)
    with pytest.raises(ValueError, match="an order of 3 items was expected"):
        Blocks((1, 2)).canonical((0, 1))


# --- adjacent swaps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(8))
def test_all_orders_are_the_permutations(n: int) -> None:
    table = orders.all_orders(n)
    assert table.shape == (math.factorial(n), n)
    assert list(map(tuple, table.tolist())) == list(itertools.permutations(range(n)))


def test_all_orders_of_too_many_items_are_refused() -> None:
    for n in (-1, 13):
        with pytest.raises(ValueError, match=f"all orders of {n} items cannot be listed"):
            orders.all_orders(n)


def test_swap_items_refuses_items_that_are_not_there() -> None:
    with pytest.raises(ValueError, match=r"the order has items 0..2; got item 3"):
        orders.swap_items([0, 1, 2], 0, 3)


@given(st.permutations(range(5)))
@settings(deadline=None)
def test_adjacent_swaps_are_the_orders_one_exchange_away(order: list[int]) -> None:
    found = list(orders.adjacent_swaps(order))
    assert set(found) == {other for other in itertools.permutations(range(5)) if linked(tuple(order), other)}
    assert len(found) == 4


@given(SIZES, st.data())
@settings(deadline=None, max_examples=40)
def test_adjacent_swaps_of_a_space_link_members_of_two_predictions(sizes: tuple[int, ...], data: st.DataObject) -> None:
    space = Blocks(sizes)
    start = space.canonical(data.draw(st.permutations(range(space.n))))
    found = list(orders.adjacent_swaps(start, space))
    reached = {space.canonical(other) for member in space.members(start) for other in orders.adjacent_swaps(member)}
    assert set(found) == reached - {start}
    assert len(found) == len(set(found))


@given(st.sets(st.permutations(range(4)).map(tuple), min_size=1))
@settings(deadline=None)
def test_components_of_orders_against_a_plain_search(chosen: set[Order]) -> None:
    table = sorted(chosen)
    labels = orders.connected_components(table)
    assert as_sets(table, labels) == reference_components(table)
    assert list(dict.fromkeys(labels.tolist())) == list(range(labels.max() + 1))
    for row, others in zip(table, orders.neighbours(table), strict=True):
        wanted = [table.index(other) if other in chosen else -1 for other in orders.adjacent_swaps(row)]
        assert others.tolist() == wanted


@given(SIZES.filter(lambda sizes: sum(sizes) <= 4), st.data())
@settings(deadline=None, max_examples=60)
def test_predictions_are_connected_as_their_members_are(sizes: tuple[int, ...], data: st.DataObject) -> None:
    """[NeurIPS20 Lemma 22]: a set of weak orders is connected iff the union of its members is."""
    space = Blocks(sizes)
    chosen = sorted(data.draw(st.sets(st.sampled_from(list(space)), min_size=1)))
    labels = orders.connected_components(chosen, space)
    members = [member for prediction in chosen for member in space.members(prediction)]
    by_members = {
        frozenset(space.canonical(member) for member in component) for component in reference_components(members)
    }
    assert as_sets(chosen, labels) == by_members


def test_a_set_of_orders_may_be_disconnected_though_its_selections_are_linked() -> None:
    """[NeurIPS20 Remark 23], with items counted from 0."""
    pair = [(1, 0, 2), (2, 0, 1)]
    assert orders.connected_components(pair).tolist() == [0, 1]
    selection = Blocks((2, 1))
    assert orders.connected_components(pair, selection).tolist() == [0, 0]
    assert orders.path_between(*pair, allowed=pair) is None
    assert orders.path_between(*pair, allowed=pair, space=selection) == [(0, 1, 2), (0, 2, 1)]


def test_all_orders_are_connected_and_a_long_path_is_followed() -> None:
    every = orders.all_orders(6)
    assert orders.connected_components(every).max() == 0
    path = orders.path_between(tuple(range(6)), tuple(range(5, -1, -1)), every)
    assert path is not None
    assert len(path) == 16  # 15 pairs are inverted
    assert orders.connected_components(np.random.default_rng(0).permutation(path)).max() == 0
    assert orders.connected_components([*path[:7], *path[8:]]).tolist() == [0] * 7 + [1] * 8


def test_a_path_inverts_as_many_pairs_as_it_has_steps_when_nothing_is_forbidden() -> None:
    every = orders.all_orders(4)
    for goal in itertools.permutations(range(4)):
        path = orders.path_between((0, 1, 2, 3), goal, every)
        assert path is not None
        assert (path[0], path[-1]) == ((0, 1, 2, 3), goal)
        assert all(linked(a, b) for a, b in itertools.pairwise(path))
        assert len(path) - 1 == sum(a > b for a, b in itertools.combinations(goal, 2))


@given(st.sets(st.permutations(range(4)).map(tuple), min_size=2), st.data())
@settings(deadline=None)
def test_a_path_exists_exactly_inside_a_component(chosen: set[Order], data: st.DataObject) -> None:
    a, b = data.draw(st.tuples(*[st.sampled_from(sorted(chosen))] * 2))
    path = orders.path_between(a, b, chosen)
    together = any({a, b} <= component for component in reference_components(sorted(chosen)))
    assert (path is not None) == together
    if path is not None:
        assert set(path) <= chosen
        assert all(linked(one, other) for one, other in itertools.pairwise(path))


@pytest.mark.parametrize(
    ("table", "space", "problem"),
    [
        ([(0, 1), (0, 1)], None, r"the order \(0, 1\) stands twice in the set"),
        ([(0, 1, 2), (0, 2, 1)], Blocks((1, 2)), r"the order \(0, 1, 2\) stands twice in the set"),
        ([(0, 1), (1, 1)], None, "1 stands twice, 0 is missing"),
        ([(0, 1, 2)], Blocks((1, 1)), "the space full has 2 items, the orders have 3"),
        ([0, 1], None, "expected a table with one order a row; got int64 of shape"),
        ([], None, "expected a table with one order a row"),
    ],
)
def test_sets_of_orders_that_are_refused(table: Any, space: Blocks | None, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        orders.connected_components(table, space)


def test_a_path_between_orders_that_are_not_allowed_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the order \(1, 0\) is not among the allowed ones"):
        orders.path_between((0, 1), (1, 0), [(0, 1)])
