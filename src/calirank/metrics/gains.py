"""Gains of labels, and discounts of ranks: the parameters that DCG-like metrics share."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from calirank.metrics.base import LARGEST, is_number
from calirank.metrics.lists import Bools, Floats, Labels, room

#: "exponential" is 2^y - 1, "linear" is y; a tuple gives the gain of each grade 0, 1, 2, …; any other word is the name
#: of a column of gains.
Gain: TypeAlias = str | tuple[float, ...]


def as_gain(metric: str, gain: Any) -> Gain:
    """A gain once it is known to mean something; a list becomes a tuple."""
    if isinstance(gain, str) and gain:
        return gain
    try:
        values = tuple(gain)
    except TypeError:
        values = ()
    if not values or not all(is_number(value) and value >= 0 for value in values):
        raise ValueError(
            f'{metric}: gain is "exponential", "linear", gains >= 0 by grade, or the name of a column; got {gain!r}'
        )
    return tuple(float(value) for value in values)


def gain_column(gain: Gain) -> tuple[str, ...]:
    """The column that the gain names, if any."""
    return (gain,) if isinstance(gain, str) and gain not in ("exponential", "linear") else ()


def gains(labels: Floats, gain: Gain, columns: Mapping[str, Floats]) -> Floats:
    """The gain of each document.

    >>> grades = np.array([0.0, 2.0, 1.0])
    >>> gains(grades, "exponential", {}).tolist(), gains(grades, (0.0, 1.0, 5.0), {}).tolist()
    ([0.0, 3.0, 1.0], [0.0, 5.0, 1.0])
    """
    if gain == "exponential":
        return exponential(labels)
    if gain == "linear":
        return labels
    if isinstance(gain, str):
        return columns[gain]
    table = np.asarray(gain)
    return table[np.minimum(labels, len(table) - 1).astype(np.int64)]


def exponential(labels: Floats) -> Floats:
    """2^y - 1: exact for whole labels, and without cancellation for small ones.

    >>> exponential(np.array([0.0, 3.0])).tolist(), f"{exponential(np.array([1e-20]))[0]:.6g}"
    ([0.0, 7.0], '6.93147e-21')
    """
    whole = labels == np.floor(labels)
    return np.where(whole, np.exp2(labels) - 1, np.expm1(labels * np.log(2)))


def check_gains(metric: Any, gain: Gain, labels: Labels) -> None:
    """Refuse labels that have no gain."""
    if gain == "exponential":
        labels.check(metric, _above_1000, "the exponential gain of a label above 1000 is beyond all numbers")
    elif gain == "linear":
        labels.check(metric, _beyond_sums, f"gains above {LARGEST:g} cannot be added up")
    elif isinstance(gain, tuple):
        grades = len(gain)

        def no_grade(y: Floats) -> Bools:
            return np.not_equal(y, np.floor(y)) | np.greater_equal(y, grades)

        labels.check(metric, no_grade, f"the list of gains is for the grades 0 to {grades - 1}")


def _beyond_sums(gains: Floats) -> Bools:
    return np.greater(gains, LARGEST)


def _above_1000(labels: Floats) -> Bools:
    return np.greater(labels, 1000)


@functools.lru_cache(maxsize=16)
def _logarithmic(base: float, size: int) -> tuple[Floats, Floats]:
    """The discounts of the first ranks, and their sums from that of none on."""
    logs = np.log2(np.arange(2.0, size + 2)) if base == 2 else np.log(np.arange(2.0, size + 2)) / np.log(base)
    discount: Floats = 1 / logs
    sums = np.concatenate([[0.0], np.cumsum(discount)])
    discount.setflags(write=False)
    sums.setflags(write=False)
    return discount, sums


def logarithmic_discount(n: int, base: float) -> Floats:
    """1 / log(1 + rank) of the ranks 1..n at least; kept for the next call."""
    return _logarithmic(float(base), room(n))[0]


def logarithmic_sums(n: int, base: float) -> Floats:
    """The sums of the first 0, 1, 2, … of these discounts."""
    return _logarithmic(float(base), room(n))[1]


@functools.lru_cache(maxsize=16)
def geometric_discount(ratio: float, n: int) -> Floats:
    """1, ratio, ratio², … of the ranks 1..n; 0 once it is below all normal numbers."""
    discount: Floats = np.float64(ratio) ** np.arange(n, dtype=np.float64)
    discount[discount < 1e-300] = 0
    discount.setflags(write=False)
    return discount
