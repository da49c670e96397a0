"""What a scenario makes: features, and the true distribution of the supervision given the features; and draws from it.

A scenario is a frozen dataclass with a method ``truth(queries, rng)``. Most of them describe one list, whose documents
play *roles* 0, 1, …: a supervision with a single query, its judgements the outcomes. :func:`replicate` makes many
queries of it: in each the roles are dealt to the documents at random, and the features say which role a document plays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from calirank.data.ragged import Floats, Ints, take_lists
from calirank.data.supervision import Supervision

S = TypeVar("S", bound=Supervision)


@dataclass(frozen=True, slots=True)
class Truth:
    """Features of the documents of all lists, and what is true of each list; every list has equally many outcomes."""

    X: NDArray[np.float32]
    feature_names: tuple[str, ...]
    sizes: Ints
    posterior: Supervision


class Scenario(Protocol):
    """Anything that makes a :class:`Truth`; equal generators give equal results."""

    def truth(self, queries: int, rng: np.random.Generator) -> Truth: ...


def replicate(template: Supervision, items: int, queries: int, rng: np.random.Generator, noise_features: int) -> Truth:
    """Many queries like the one of ``template``, their documents in random order.

    Features: ``role_1`` … ``role_n`` is 1 for the document that plays this role and 0 for the others; then
    ``noise_features`` standard normal features that mean nothing.
    """
    place = rng.permuted(np.tile(np.arange(items, dtype=np.int64), (queries, 1)), axis=1)  # of role r in query q
    documents = queries * items
    X = np.zeros((documents, items + noise_features), dtype=np.float32)
    first = np.arange(queries, dtype=np.int64) * items
    X[first[:, None] + place, np.arange(items)] = 1
    X[:, items:] = rng.standard_normal((documents, noise_features), dtype=np.float32)
    sizes = np.full(queries, items, dtype=np.int64)
    one = template.align(template.query_ids, np.array([items]))
    many = one.select(np.zeros(queries, dtype=np.int64))
    posterior = many._moved(np.arange(queries), many.offsets, sizes, first, place.reshape(-1))
    names = [*numbered("role", items), *numbered("noise", noise_features)]
    return Truth(X, tuple(names), sizes, posterior)


def draw(posterior: S, judgements: int, rng: np.random.Generator) -> S:
    """Independent judgements of each query: the outcomes, of their probabilities, in which uniform numbers fall."""
    queries = len(posterior)
    shares = posterior.weight.reshape(queries, -1)
    upper = np.cumsum(shares, axis=1)[:, :-1]
    uniform = rng.random((queries, judgements))
    chosen = np.stack([(uniform[:, [judge]] >= upper).sum(axis=1) for judge in range(judgements)], axis=1)
    numbers = (chosen + posterior.offsets[:-1, None]).reshape(-1)
    elements, starts = take_lists(posterior.starts, numbers)
    return type(posterior)._build(
        posterior.query_ids,
        np.arange(queries + 1, dtype=np.int64) * judgements,
        np.ones(len(numbers)),
        starts,
        [array[elements] for array in posterior.payload],
        posterior.sizes,
    )


# --- parameters ------------------------------------------------------------------------------------------------------


def numbered(word: str, count: int) -> list[str]:
    """Names of features.

    >>> numbered("role", 3)
    ['role_1', 'role_2', 'role_3']
    """
    return [f"{word}_{number}" for number in range(1, count + 1)]


def whole(value: Any, least: int, what: str) -> int:
    """The value, if it is a whole number of at least ``least``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{what}: expected a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{what}: expected a whole number from {least} on, got {value}")
    return int(value)


def between(value: Any, low: float, high: float, what: str) -> float:
    """The value, if it is a number between these two (they are allowed)."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{what}: expected a number, got {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{what}: expected a finite number from {low:g} to {high:g}, got {value}")
    return float(value)


def relative_weights(values: Any, what: str) -> tuple[float, ...]:
    """Positive numbers, at least one; only their ratios count: 7 and 5 mean the probabilities 7/12 and 5/12."""
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
        raise TypeError(f"{what}: expected a list of numbers, got {values!r}")
    weights = tuple(between(value, -np.inf, np.inf, what) for value in values)
    if not weights or not all(0 < weight < np.inf for weight in weights):
        raise ValueError(f"{what}: expected at least one finite number > 0, got {list(weights)}")
    return weights


def shares(weights: Sequence[float]) -> Floats:
    """Probabilities in these ratios.

    >>> shares([3, 1]).tolist()
    [0.75, 0.25]
    """
    array: Floats = np.asarray(weights, dtype=np.float64)
    return array / float(array.sum())
