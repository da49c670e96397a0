"""Ranking data as one ``.npz`` file of NumPy arrays, without pickled objects.

The arrays are called like the arguments of :class:`~calirank.RankingData`, so such a file is easily made elsewhere:

* the lists are ``offsets``, ``sizes`` or ``qid``;
* sparse features are ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape``;
* ``judged`` tells which labels ``y`` exist;
* several judgements are ``judges_offsets`` (judgements of each query), ``judges_weight`` and ``judges_labels`` (label
  vectors, one after the other, NaN where silent);
* extra columns are ``column_0``, ``column_1``, …, and ``columns`` holds their names;
* ``categories`` is JSON text, ``[[feature, [category, …]], …]``.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from calirank.data._files import (
    Source,
    Target,
    atomic_write,
    is_path,
    is_plain_file,
    name_of,
    open_bytes,
    refuse_compression,
)
from calirank.data._table_roles import plain_values
from calirank.data._table_writing import refuse_mixed_ids
from calirank.data.ragged import list_numbers, offsets_of
from calirank.data.ranking_data import RankingData
from calirank.data.supervision import Judgements
from calirank.data.supervision.base import float_table, judgement_weights
from calirank.names import did_you_mean

_PLAIN = ("X", "y", "offsets", "sizes", "qid", "query_ids", "doc_ids", "query_weight", "doc_weight")
_SPARSE = ("X_data", "X_indices", "X_indptr", "X_shape")
_JUDGES = ("judges_offsets", "judges_weight", "judges_labels")
_OTHER = ("judged", "feature_names", "categories", "columns", "feature_base")


def write_npz(data: RankingData, target: Target) -> None:
    """Write the data as one file; preferences, rankings and a known distribution go into ``data.save(folder)`` only."""
    if data.supervision in ("preferences", "rankings") or data.has_posterior:
        what = data.supervision if not data.has_posterior else "the distribution that synthetic data knows"
        raise ValueError(f"an npz file does not hold {what}: data.save(folder) keeps it")
    refuse_mixed_ids(data, "an npz file")
    refuse_compression(target, "an npz file")
    arrays: dict[str, Any] = {name: getattr(data, name, None) for name in (*_PLAIN, "judged", "feature_names")}
    arrays["sizes"] = None  # offsets say it
    arrays["feature_base"] = data.feature_base
    if data.X is not None and not isinstance(data.X, np.ndarray):
        matrix = (data.X.data, data.X.indices, data.X.indptr, data.X.shape)
        arrays |= {"X": None, **dict(zip(_SPARSE, matrix, strict=True))}
    if data.judges is not None:
        judges = (data.judges.offsets, data.judges.weight, data.judges.labels)
        arrays |= dict(zip(_JUDGES, judges, strict=True))
    if data.categories:
        arrays["categories"] = json.dumps(
            [[feature, plain_values(values)] for feature, values in data.categories.items()]
        )
    if data.columns:
        arrays["columns"] = list(data.columns)
        arrays |= {f"column_{number}": values for number, values in enumerate(data.columns.values())}
    with atomic_write(target, "wb") as stream:
        cast("Any", np.savez)(
            stream, **{name: np.asarray(array) for name, array in arrays.items() if array is not None}
        )


def read_npz(source: Source, *, group_rows: bool = False) -> RankingData:
    """Ranking data from a file of :func:`write_npz`, or from one made elsewhere with arrays of these names."""
    name = name_of(source)
    arrays = _arrays(source, name)
    columns = [f"column_{number}" for number in range(len(arrays.get("columns", ())))]
    known = {*_PLAIN, *_SPARSE, *_JUDGES, *_OTHER, *columns}
    unknown = next((key for key in arrays if key not in known), None)
    if unknown is not None:
        raise ValueError(f"{name}: no array is expected to be called {unknown!r}.{did_you_mean(unknown, known)}")
    for group in (_SPARSE, _JUDGES, columns):
        missing = [key for key in group if key not in arrays]
        if missing and (group is columns or len(missing) < len(group)):
            raise ValueError(f"{name}: the array {missing[0]!r} is missing")
    try:
        return _assembled(arrays, columns, group_rows)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ValueError(f"{name}: {error}") from None


def _arrays(source: Source, name: str) -> dict[str, NDArray[Any]]:
    held: Any = source
    if not is_path(source) or not is_plain_file(cast("str", source)):
        with open_bytes(source) as stream:
            held = io.BytesIO(stream.read())
    try:
        with zipfile.ZipFile(held), np.load(held, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except (ValueError, OSError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{name}: expected an npz file, got a damaged file or one of another kind ({error})") from None


def _assembled(arrays: dict[str, NDArray[Any]], columns: list[str], group_rows: bool) -> RankingData:
    given: dict[str, Any] = {key: arrays[key] for key in _PLAIN if key in arrays}
    if "X_data" in arrays:
        from scipy import sparse

        values, indices, indptr, shape = (arrays[key] for key in _SPARSE)
        given["X"] = sparse.csr_array((values, indices, indptr), shape=tuple(shape.tolist()))
        given["X"].check_format(full_check=True)
    if "judged" in arrays and "y" in arrays:
        given["y"] = np.ma.MaskedArray(arrays["y"], ~arrays["judged"].astype(bool))
    if "feature_names" in arrays:
        given["feature_names"] = arrays["feature_names"].tolist()
    if "categories" in arrays:
        given["categorical"] = {int(feature): values for feature, values in json.loads(str(arrays["categories"]))}
    if columns:
        given["columns"] = dict(zip(arrays["columns"].tolist(), (arrays[key] for key in columns), strict=True))
    if "feature_base" in arrays:
        given["feature_base"] = int(arrays["feature_base"])
    data = RankingData(group_rows=group_rows, **given)
    if "judges_labels" not in arrays:
        return data
    return data.replace(judges=_judges(data, *(arrays[key] for key in _JUDGES)))


def _judges(data: RankingData, offsets: NDArray[Any], weight: NDArray[Any], labels: NDArray[Any]) -> Judgements:
    """The judgements from their flat arrays, checked as the caller's are."""
    if data.source_rows is not None:
        raise ValueError("group_rows moves documents, and judgements name them by their position")
    whole = offsets.shape == (len(data) + 1,) and offsets.dtype.kind in "iu"
    if not whole or offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"judges_offsets: expected {len(data) + 1} whole numbers that rise from 0")
    offsets = offsets.astype(np.int64)
    query = list_numbers(offsets)
    starts = offsets_of(data.sizes[query])
    if labels.shape != (starts[-1],):
        raise ValueError(f"judges_labels: expected {starts[-1]} labels, got shape {labels.shape}")
    weights = judgement_weights(weight, len(query), "judgement", data.query_ids, offsets)
    return Judgements._build(data.query_ids, offsets, weights, starts, [float_table(labels, "judges_labels")])
