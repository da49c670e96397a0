"""Which column of a table is what: as arguments of a call, as a record, and as the note inside a file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from calirank.names import did_you_mean

_FORMAT, _VERSION = "calirank table", 1
_LISTS = ("features", "columns", "judges")


class Roles(TypedDict, total=False):
    """The arguments of :func:`calirank.from_frame` that say which column is what."""

    y: str | None
    qid: str
    doc_id: str | None
    features: Sequence[str] | None
    categorical: Sequence[str] | Mapping[str, Sequence[Any]] | None
    columns: Sequence[str]
    query_weight: str | None
    doc_weight: str | None
    judges: Sequence[str] | None


@dataclass(frozen=True)
class TableRoles:
    """Which column is what; and what the names of columns cannot say, which only the note in a file knows."""

    y: str | None = "label"
    qid: str = "qid"
    doc_id: str | None = None
    features: tuple[str, ...] | None = None
    #: Categories of each categorical feature; None where the column says them, () where it holds codes.
    categorical: Mapping[str, tuple[Any, ...] | None] = dataclasses.field(default_factory=dict)
    columns: tuple[str, ...] = ()
    query_weight: str | None = None
    doc_weight: str | None = None
    judges: tuple[str, ...] | None = None
    #: Whether the features have names of their own.
    named: bool = True
    feature_base: int = 1
    sparse: bool = False
    #: The type of the feature matrix; None where the columns decide it.
    dtype: str | None = None

    def __post_init__(self) -> None:
        held = {
            name: None if values is None else tuple(plain_values(values)) for name, values in self.categorical.items()
        }
        object.__setattr__(self, "categorical", held)

    def changed(self, given: Roles) -> TableRoles:
        """These roles with the arguments that a caller gave in their place.

        >>> TableRoles().changed({"y": "grade", "columns": ["price"]}).columns
        ('price',)
        """
        known = Roles.__annotations__
        unknown = next((name for name in given if name not in known), None)
        if unknown is not None:
            raise TypeError(f"no argument is called {unknown!r}.{did_you_mean(unknown, known)}")
        settled: dict[str, Any] = dict(given)
        for name in _LISTS:
            if settled.get(name) is not None:
                settled[name] = _column_names(settled[name], name)
        if "categorical" in settled:
            categorical = settled["categorical"] or ()
            if isinstance(categorical, Mapping):
                settled["categorical"] = categorical
            else:
                settled["categorical"] = dict.fromkeys(_column_names(categorical, "categorical"))
        return dataclasses.replace(self, **settled)

    def single(self) -> Iterator[tuple[str, str]]:
        """Every role but the features, with its column.

        >>> list(TableRoles(columns=("price",)).single())
        [('qid', 'qid'), ('y', 'label'), ('columns', 'price')]
        """
        for role in ("qid", "y", "doc_id", "query_weight", "doc_weight"):
            column = getattr(self, role)
            if column is not None:
                yield role, column
        for role, columns in (("judges", self.judges or ()), ("columns", self.columns)):
            for column in columns:
                yield role, column

    def note(self) -> bytes:
        """The roles as the note in a file."""
        return json.dumps({"format": _FORMAT, "version": _VERSION, "roles": dataclasses.asdict(self)}).encode()


def roles_of_note(note: bytes, where: str) -> TableRoles:
    """The roles that the note in a file holds."""
    try:
        held = json.loads(note)
        if not isinstance(held, dict) or held.get("format") != _FORMAT:
            raise ValueError("it does not describe a calirank table")
        if held.get("version") != _VERSION:
            raise ValueError(f"it has version {held.get('version')!r}; this calirank reads version {_VERSION}")
        roles = held["roles"]
        for name in _LISTS:
            roles[name] = None if roles[name] is None else tuple(map(str, roles[name]))
        roles["categorical"] = {name: tuple(values) for name, values in roles["categorical"].items()}
        if roles["dtype"] not in (None, "float32", "float64"):
            raise ValueError(f"features are of type {roles['dtype']!r}")
        return TableRoles(**roles)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{where}: the note 'calirank' in the file is damaged: {error}") from None


def plain_values(values: Iterable[Any]) -> list[Any]:
    """The values as Python's own: NumPy's numbers and texts look alike, but no file holds them.

    >>> plain_values(np.array([10, 20]))
    [10, 20]
    """
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _column_names(values: Any, role: str) -> tuple[str, ...]:
    if isinstance(values, str) or not np.iterable(values):
        raise TypeError(f"{role}: expected a list of column names, got {values!r}")
    return tuple(values)
