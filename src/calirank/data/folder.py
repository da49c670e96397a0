"""Ranking data as a folder of plain NumPy arrays.

``calirank-data.json``, the index, says what there is: the format's version, the small values, and for each array its
file, type and shape. Arrays are ``.npy`` files without pickled objects, so they can be opened by NumPy itself or mapped
into memory; they stand in a subfolder with a name of its own for each time that data is saved. The index is replaced in
one step when all arrays are written, so a reader sees the old data or the new, never a mixture.
"""

from __future__ import annotations

import errno
import json
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calirank.data.ragged import as_ids, frozen
from calirank.data.ranking_data import RankingData
from calirank.data.supervision import Judgements, Preferences, Rankings, Supervision

INDEX = "calirank-data.json"
VERSION = 1
_SUBFOLDER = re.compile(r"arrays-[0-9a-f]+")
_KINDS: dict[str, type[Supervision]] = {kind.__name__: kind for kind in (Judgements, Preferences, Rankings)}
_SUPERVISIONS = ("judges", "preferences", "rankings", "_posterior")
_ARRAYS = ("y", "judged", "offsets", "query_ids", "doc_ids", "query_weight", "doc_weight", "source_rows")


def save(data: RankingData, folder: Any) -> None:
    """Write ``data`` to ``folder``; an earlier data folder of that name is replaced, anything else is left alone.

    Data that is open from the folder stays usable where the system keeps deleted files that are mapped (not Windows).
    """
    target = Path(folder)
    exists = target.exists()
    if exists and not (target / INDEX).is_file() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists and is not a calirank data folder (no {INDEX}); it is left as it is")
    place = target / f"arrays-{secrets.token_hex(6)}"
    draft = target / f"{place.name}.json"
    place.mkdir(parents=True)
    try:
        index = _write(data, place)
        draft.write_text(json.dumps(index, ensure_ascii=False, indent=1), encoding="utf-8")
        former = _arrays_of(target)
        draft.replace(target / INDEX)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        draft.unlink(missing_ok=True)
        if not exists:
            with suppress(OSError):
                target.rmdir()
        raise
    if former is not None:
        shutil.rmtree(target / former, ignore_errors=True)


def _arrays_of(target: Path) -> str | None:
    """The subfolder that holds the arrays of a data folder, if it is one."""
    try:
        name = json.loads((target / INDEX).read_text(encoding="utf-8"))["folder"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) and _SUBFOLDER.fullmatch(name) else None


def _write(data: RankingData, place: Path) -> dict[str, Any]:
    """Write the arrays of the data into ``place``, and give back what the index says of them."""
    arrays: dict[str, Any] = {}

    def put(name: str, array: NDArray[Any]) -> None:
        if array.dtype == object:
            values = array.tolist()
            if not all(isinstance(value, (str, int, float, bool)) for value in values):
                kind = next(type(value).__name__ for value in values if not isinstance(value, (str, int, float, bool)))
                raise ValueError(f"{name}: identifiers of type {kind} cannot be saved; use text or numbers")
            arrays[name] = {"values": values}
            return
        file = f"{name}.npy"
        np.save(place / file, array, allow_pickle=False)
        arrays[name] = {"file": file, "dtype": array.dtype.str, "shape": list(array.shape)}

    for name in _ARRAYS:
        if getattr(data, name) is not None:
            put(name, getattr(data, name))
    sparse_shape = None
    if isinstance(data.X, np.ndarray):
        put("X", data.X)
    elif data.X is not None:
        sparse_shape = list(data.X.shape)
        for part in ("data", "indices", "indptr"):
            put(f"X.{part}", getattr(data.X, part))
    for number, values in enumerate(data.columns.values()):
        put(f"column.{number}", values)
    kinds = {}
    for name in _SUPERVISIONS:
        held = getattr(data, name)
        if held is not None:
            kinds[name] = type(held).__name__
            for part in ("offsets", "weight", "starts"):
                put(f"{name}.{part}", getattr(held, part))
            for part, array in zip(held.payload_names, held.payload, strict=True):
                put(f"{name}.{part}", array)
    return {
        "format": "calirank data",
        "version": VERSION,
        "folder": place.name,
        "feature_names": data.feature_names,
        "categories": list(data.categories.items()),
        "columns": list(data.columns),
        "feature_base": data.feature_base,
        "sparse_shape": sparse_shape,
        "supervisions": kinds,
        "arrays": arrays,
    }


def open_folder(folder: Any, *, memory_map: bool = True) -> RankingData:
    """Read a folder written by :func:`save`. What was validated when it was made is checked only for its form."""
    place = Path(folder)
    while True:
        index = _read_index(place)
        try:
            return _assemble(place / index["folder"], index, memory_map)
        except FileNotFoundError as error:  # saved anew since the index was read, or damaged
            if _arrays_of(place) == index["folder"]:
                raise ValueError(f"{error.filename} is missing; {place} is damaged") from None
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"{place / INDEX} is damaged: {type(error).__name__} {error}") from None


def _read_index(place: Path) -> dict[str, Any]:
    try:
        index = json.loads((place / INDEX).read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not place.exists():
            raise FileNotFoundError(errno.ENOENT, "no such data folder", str(place)) from None
        raise ValueError(f"{place} is not a calirank data folder: it has no {INDEX}") from None
    except NotADirectoryError:
        raise ValueError(f"{place}: expected a calirank data folder, got a file") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{place / INDEX} is damaged: {error}") from None
    if not isinstance(index, dict) or index.get("format") != "calirank data":
        raise ValueError(f"{place / INDEX} does not describe calirank data")
    if index.get("version") != VERSION:
        raise ValueError(f"{place} has format version {index.get('version')}; this calirank reads version {VERSION}")
    if not _SUBFOLDER.fullmatch(str(index.get("folder"))):
        raise ValueError(f"{place / INDEX} is damaged: it names no folder of arrays")
    return index


def _assemble(place: Path, index: dict[str, Any], memory_map: bool) -> RankingData:
    held = index["arrays"]

    def get(name: str) -> NDArray[Any]:
        entry = held[name]
        if "values" in entry:
            return as_ids(entry["values"], name)
        file = place / Path(entry["file"]).name
        mapped = memory_map and 0 not in entry["shape"]  # an empty file cannot be mapped
        try:
            array: NDArray[Any] = np.load(file, mmap_mode="r" if mapped else None, allow_pickle=False)
        except FileNotFoundError:
            raise
        except (OSError, ValueError, EOFError) as error:
            raise ValueError(f"{file} is damaged: {error}") from None
        if array.dtype.str != entry["dtype"] or list(array.shape) != entry["shape"]:
            raise ValueError(
                f"{file}: expected {entry['dtype']} of shape {entry['shape']}, "
                f"got {array.dtype.str} of {list(array.shape)}"
            )
        return frozen(np.asarray(array))

    data = object.__new__(RankingData)
    for name in _ARRAYS:
        setattr(data, name, get(name) if name in held else None)
    lists, rows = len(data.query_ids), int(data.offsets[-1])
    data.X = None
    if index["sparse_shape"] is not None:
        from scipy import sparse

        parts = tuple(get(f"X.{part}") for part in ("data", "indices", "indptr"))
        data.X = sparse.csr_array(parts, shape=tuple(index["sparse_shape"]), copy=False)
    elif "X" in held:
        data.X = get("X")
    data.feature_names = None if index["feature_names"] is None else tuple(index["feature_names"])
    data.categories = {int(feature): tuple(values) for feature, values in index["categories"]}
    data.categorical = tuple(data.categories)
    data.columns = {name: get(f"column.{number}") for number, name in enumerate(index["columns"])}
    data.feature_base = int(index["feature_base"])
    for name in _SUPERVISIONS:
        setattr(data, name, None)
        if name in index["supervisions"]:
            kind = _KINDS[index["supervisions"][name]]
            offsets, weight, starts = (get(f"{name}.{part}") for part in ("offsets", "weight", "starts"))
            payload = [get(f"{name}.{part}") for part in kind.payload_names]
            supervision = kind._build(data.query_ids, offsets, weight, starts, payload, data.sizes)
            _check_offsets(place, f"{name}.offsets", supervision.offsets, lists, len(supervision.weight))
            _check_offsets(place, f"{name}.starts", supervision.starts, len(supervision.weight), len(payload[0]))
            setattr(data, name, supervision)
    _check_offsets(place, "offsets", data.offsets, lists, rows)
    counts = {"X": data.X, "y": data.y, "judged": data.judged, "doc_ids": data.doc_ids, "doc_weight": data.doc_weight}
    for name, array in {**counts, **data.columns}.items():
        if array is not None and array.shape[0] != rows:
            raise ValueError(f"{place}: {name} has {array.shape[0]} rows, the lists have {rows}")
    return data._seal()


def _check_offsets(place: Path, name: str, offsets: NDArray[Any], count: int, end: int) -> None:
    if len(offsets) != count + 1 or offsets[0] != 0 or offsets[-1] != end or (np.diff(offsets) < 0).any():
        raise ValueError(f"{place}: {name} is damaged: expected {count + 1} numbers rising from 0 to {end}")
