"""Lists of different lengths as one flat array and its offsets: list i is ``flat[offsets[i]:offsets[i + 1]]``."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def offsets_of(sizes: ArrayLike) -> Ints:
    """Offsets of lists of these sizes.

    >>> offsets_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    sizes = np.asarray(sizes, dtype=np.int64)
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def list_numbers(offsets: Ints) -> Ints:
    """The number of the list that each element belongs to.

    >>> list_numbers(np.array([0, 2, 2, 5])).tolist()
    [0, 0, 2, 2, 2]
    """
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))


def take_lists(offsets: Ints, lists: Ints) -> tuple[Ints, Ints]:
    """Where the elements of the chosen lists stand, and the offsets of the chosen lists.

    >>> elements, chosen = take_lists(np.array([0, 2, 5]), np.array([1, 0]))
    >>> elements.tolist(), chosen.tolist()
    ([2, 3, 4, 0, 1], [0, 3, 5])
    """
    sizes = offsets[lists + 1] - offsets[lists]
    chosen = offsets_of(sizes)
    return np.arange(chosen[-1]) + np.repeat(offsets[lists] - chosen[:-1], sizes), chosen


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view: what was validated once cannot be changed by accident, and kernels see one kind of array."""
    view = array.view()
    view.flags.writeable = False
    return view


def as_ids(values: Any, what: str) -> NDArray[Any]:
    """Identifiers of any type as an array: int64, fixed-width text, or objects when they are mixed.

    >>> as_ids(["q1", "q22"], "query_ids")
    array(['q1', 'q22'], dtype='<U3')
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise ValueError(f"{what}: an identifier is missing at position {int(np.argmax(np.ma.getmaskarray(values)))}")
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{what}: expected one identifier an entry, got the single text {values!r}")
    if isinstance(values, (list, tuple)) and not _uniform({_family(value) for value in values}):
        array = _object_array(values)  # NumPy would turn numbers beside text into text, and tuples into a table
    else:
        array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{what}: expected a one-dimensional array, got one of shape {array.shape}")
    kind = array.dtype.kind
    if kind in "iu":
        if kind == "u" and len(array) and array.max() > np.iinfo(np.int64).max:
            return array.astype(str)
        return array.astype(np.int64, copy=False)
    if kind == "U":
        return array
    if kind == "S":
        return np.char.decode(array, "utf-8")
    if kind == "f":
        bad = np.flatnonzero(~np.isfinite(array))
        if len(bad):
            raise ValueError(f"{what}: an identifier must not be NaN or infinite; got {array[bad[0]]} at {bad[0]}")
        whole = array.astype(np.int64)
        return whole if np.array_equal(whole, array) else _object_array(array.tolist())
    if kind in "mM":
        return array.astype(str)
    return _tidy_objects(array.tolist(), what)


def _uniform(families: set[str]) -> bool:
    return len(families) == 0 or (len(families) == 1 and families <= {"number", "str", "str_", "bytes", "bytes_"})


def _family(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    return "number" if isinstance(value, (int, np.integer, float, np.floating)) else type(value).__name__


def _object_array(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):  # a plain assignment would spread tuples over a table
        array[place] = value
    return array


def _tidy_objects(values: list[Any], what: str) -> NDArray[Any]:
    if values and all(isinstance(value, str) for value in values):
        return np.array(values, dtype=np.str_)
    if values and all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values):
        return np.array(values, dtype=np.int64)
    for position, value in enumerate(values):
        if value is None or (isinstance(value, float) and np.isnan(value)):
            raise ValueError(f"{what}: an identifier is missing at position {position} (got {value!r})")
        if not isinstance(value, Hashable):
            raise TypeError(f"{what}: an identifier must be hashable; got {value!r} at position {position}")
    return _object_array(values)


def encode_ids(ids: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """The distinct identifiers in order of first appearance, and the number of each entry among them.

    >>> distinct, codes = encode_ids(np.array(["b", "a", "b"]))
    >>> distinct.tolist(), codes.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    if ids.dtype.kind in "OU":  # twice as fast for text as sorting it
        table: dict[Any, int] = {}
        numbers = (table.setdefault(value, len(table)) for value in ids.tolist())
        codes = np.fromiter(numbers, dtype=np.int64, count=len(ids))
        return _object_array(list(table)).astype(ids.dtype), codes
    distinct, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    appearance = np.argsort(first, kind="stable")
    number = np.empty(len(distinct), dtype=np.int64)
    number[appearance] = np.arange(len(distinct))
    return distinct[appearance], number[inverse.reshape(-1)]


def join_ids(parts: Sequence[NDArray[Any]], what: str) -> NDArray[Any]:
    """Concatenate identifier arrays without turning numbers into text."""
    if len({part.dtype.kind for part in parts if len(part)}) > 1:
        return as_ids([value for part in parts for value in part.tolist()], what)
    return np.concatenate(list(parts)) if parts else np.zeros(0, dtype=np.int64)


_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


def query_ids_of_text(texts: Sequence[str]) -> NDArray[Any]:
    """Query ids as text files give them: int64 when all are whole numbers as they would be printed, else text.

    Every text format reads query ids by this rule, and document ids as text.

    >>> query_ids_of_text(["10", "7"]).tolist(), query_ids_of_text(["10", "007"]).tolist()
    ([10, 7], ['10', '007'])
    """
    if all(_WHOLE.fullmatch(text) for text in texts):
        numbers = [int(text) for text in texts]
        if all(-(2**63) <= number < 2**63 for number in (min(numbers, default=0), max(numbers, default=0))):
            return np.array(numbers, dtype=np.int64)
    return np.array(texts, dtype=np.str_)
