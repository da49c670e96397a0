"""Lists of different lengths as one flat array and its offsets: list i is ``flat[offsets[i]:offsets[i + 1]]``."""

from __future__ import annotations

import math
import operator
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


def whole_numbers(values: ArrayLike, what: str) -> Ints:
    """Whole numbers in one dimension, as a copy."""
    array = np.asarray(values)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise TypeError(f"{what}: expected whole numbers in one dimension, got {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view: what was validated once cannot be changed by accident, and kernels see one kind of array."""
    view = array.view()
    view.flags.writeable = False
    return view


def owned(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only array that the caller cannot change either: a copy, unless the array is read-only already."""
    return frozen(array.copy() if array.flags.writeable else array)


def refrozen(value: Any) -> Any:
    """The value with all its arrays read-only: what comes out of a pickle is writable."""
    if isinstance(value, np.ndarray):
        return frozen(value)
    if isinstance(value, tuple):
        return tuple(refrozen(inner) for inner in value)
    if isinstance(value, dict):
        return {name: refrozen(inner) for name, inner in value.items()}
    return value


def same_bits(ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    """Whether two arrays hold the same values of the same type, bit for bit; text, dates and objects by value."""
    if ours.shape != theirs.shape or ours.dtype.kind != theirs.dtype.kind:
        return False
    if ours.dtype.kind in "UO":
        return np.array_equal(ours, theirs)
    if ours.dtype.kind in "mM":
        return np.array_equal(ours, theirs, equal_nan=True)  # whatever the unit
    if ours.dtype != theirs.dtype:
        return False
    return np.array_equal(np.ascontiguousarray(ours).view(np.uint8), np.ascontiguousarray(theirs).view(np.uint8))


def list_number(query: Any, count: int) -> int:
    """The number of a list, from 0; a negative one counts from the end, as for a Python list.

    >>> list_number(-1, 3)
    2
    """
    number = operator.index(query)
    if not -count <= number < count:
        raise IndexError(f"query number {number}: there are {count} queries")
    return number % count


# --- identifiers -----------------------------------------------------------------------------------------------------


def as_ids(values: Any, what: str) -> NDArray[Any]:
    """Identifiers of any type as an array: int64, fixed-width text, or objects when they are mixed or neither.

    Different identifiers stay different (1 and "1", large integers), and whole floats are the integers they equal.

    >>> as_ids(["q1", "q22"], "query_ids")
    array(['q1', 'q22'], dtype='<U3')
    >>> as_ids([1, "1"], "query_ids")
    array([1, '1'], dtype=object)
    """
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{what}: expected one identifier an entry, got the single text {values!r}")
    missing = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(0, bool)
    if missing.any():
        raise ValueError(f"{what}: an identifier is missing at position {int(np.argmax(missing))}")
    array = np.asarray(values) if hasattr(values, "__array__") else object_array(list(values))
    if array.ndim != 1:
        raise ValueError(f"{what}: expected a one-dimensional array, got one of shape {array.shape}")
    if array.dtype.kind == "U" or array.dtype == np.int64:
        return array
    if array.dtype.kind in "iu" and (not len(array) or array.max() <= np.iinfo(np.int64).max):
        return array.astype(np.int64)
    if array.dtype.kind in "mM":
        if np.isnat(array).any():
            raise ValueError(
                f"{what}: an identifier is missing at position {int(np.argmax(np.isnat(array)))} (got NaT)"
            )
        return array.astype(str)
    return _ids_of_values(array.tolist(), what)


def _ids_of_values(values: list[Any], what: str) -> NDArray[Any]:
    """Identifiers from Python values, so that nothing is rounded or cut off on the way."""
    values = [_tidy_id(value, position, what) for position, value in enumerate(values)]
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return np.array(values, dtype=np.str_)
    if kinds <= {int} and all(-(2**63) <= value < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    return object_array(values)


def _tidy_id(value: Any, position: int, what: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{what}: expected UTF-8 text at position {position}, got {value!r}") from None
    if (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NaTType", "NAType")
    ):
        raise ValueError(f"{what}: an identifier is missing at position {position} (got {value!r})")
    if isinstance(value, bool):
        raise TypeError(f"{what}: an identifier is a number, text or another hashable value; got {value} at {position}")
    if isinstance(value, float):
        if math.isinf(value):
            raise ValueError(f"{what}: an identifier must not be infinite; got {value} at position {position}")
        return int(value) if value.is_integer() else value
    if isinstance(value, str):
        if value.endswith("\0"):
            raise ValueError(f"{what}: an identifier must not end with a NUL; got {value!r} at position {position}")
        return str(value)
    if not isinstance(value, Hashable):
        raise TypeError(f"{what}: an identifier must be hashable; got {value!r} at position {position}")
    return value


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """An array of these objects; tuples stay tuples."""
    return np.fromiter(values, dtype=object, count=len(values))


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
        return object_array(list(table)).astype(ids.dtype), codes
    distinct, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    appearance = np.argsort(first, kind="stable")
    number = np.empty(len(distinct), dtype=np.int64)
    number[appearance] = np.arange(len(distinct))
    return distinct[appearance], number[inverse.reshape(-1)]


def join_ids(parts: Sequence[NDArray[Any]], what: str) -> NDArray[Any]:
    """Concatenate identifier arrays without turning numbers into text."""
    filled = [part for part in parts if len(part)] or list(parts[:1])
    if len({part.dtype.kind for part in filled}) > 1:
        return as_ids([value for part in filled for value in part.tolist()], what)
    return np.concatenate(filled)


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
