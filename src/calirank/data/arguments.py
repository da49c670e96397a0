"""The arguments of RankingData: each brought to its one form, or refused with its place and what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.data.ragged import Floats, Ints, encode_ids, frozen, offsets_of
from calirank.data.supervision import Judgements, Supervision

#: Rows of features that are looked at together, so that checking needs no copy of the whole matrix.
BLOCK = 1 << 14


def is_sparse(X: Any) -> bool:
    return type(X).__module__.startswith("scipy.sparse")


def as_features(X: Any) -> Any:
    if X is None:
        return None
    if is_sparse(X):
        from scipy import sparse

        matrix = sparse.csr_array(X)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # the caller's arrays may be shared
            matrix.sum_duplicates()
        return matrix
    if hasattr(X, "columns") and not isinstance(X, np.ndarray):
        raise TypeError("X is a data frame: cr.from_frame(frame, ...) takes its columns by name")
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    try:
        array = np.asarray(X)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"values of type {array.dtype}")
        if array.dtype not in (np.float32, np.float64):
            array = array.astype(np.result_type(array.dtype, np.float32))
            if array.dtype not in (np.float32, np.float64):
                array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"X: expected a numeric array with a row a document, got {error}") from None
    if array.ndim != 2:
        raise ValueError(f"X: expected a row a document and a column a feature, got shape {array.shape}")
    return np.ascontiguousarray(array)


def frozen_features(X: Any) -> Any:
    if isinstance(X, np.ndarray):
        return frozen(X)
    return X


def as_labels(y: Any) -> tuple[Floats | None, NDArray[np.bool_] | None]:
    if y is None:
        return None, None
    mask = np.ma.getmaskarray(y) if isinstance(y, np.ma.MaskedArray) else None
    try:
        labels = np.array(np.ma.getdata(y), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"y: expected one number a document, got {error}") from None
    if labels.ndim != 1:
        raise ValueError(f"y: expected one label a document, got shape {labels.shape}")
    if mask is None or not mask.any():
        return labels, None
    labels[mask] = np.nan
    return labels, ~mask


def row_count(X: Any, y: Any, doc_ids: Any, judges: Any, columns: Any) -> int | None:
    """The number of documents that the per-document arguments agree on; None when only the lists say it."""
    sizes = {"X": None if X is None else X.shape[0], "y": None if y is None else len(y)}
    sizes["doc_ids"] = None if doc_ids is None else len(doc_ids)
    if judges is not None and not isinstance(judges, Judgements):
        sizes["judges"] = len(judges)
    for name, values in (columns or {}).items():
        sizes[f"column {name}"] = len(values)
    known = {name: size for name, size in sizes.items() if size is not None}
    if len(set(known.values())) > 1:
        raise ValueError(f"different numbers of documents: {', '.join(f'{n} has {s}' for n, s in known.items())}")
    return next(iter(known.values()), None)


def whole(values: ArrayLike, what: str) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise TypeError(f"{what}: expected whole numbers in one dimension, got {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)


def list_bounds(offsets: ArrayLike | None, sizes: ArrayLike | None, rows: int | None) -> Ints:
    if sizes is not None:
        counts = whole(sizes, "sizes")
        bad = np.flatnonzero(counts < 1)
        if len(bad):
            raise ValueError(
                f"sizes: every query needs at least one document; query number {bad[0]} has {counts[bad[0]]}"
            )
        bounds = offsets_of(counts)
    else:
        bounds = whole(cast("ArrayLike", offsets), "offsets")
        if not len(bounds) or bounds[0] != 0:
            raise ValueError(f"offsets: expected to begin with 0, got {bounds[:1].tolist()}")
        if rows is not None and len(bounds) - 1 > rows:
            raise ValueError(f"offsets: {len(bounds) - 1} queries for {rows} documents: some would be empty")
        bad = np.flatnonzero(np.diff(bounds) < 1)
        if len(bad):
            raise ValueError(
                f"offsets: every query needs at least one document; query number {bad[0]} goes from {bounds[bad[0]]} "
                f"to {bounds[bad[0] + 1]}"
            )
    if rows is not None and bounds[-1] != rows:
        what = "sizes add up to" if sizes is not None else "offsets end with"
        raise ValueError(f"{what} {bounds[-1]}; there are {rows} documents")
    return bounds


def lists_of_rows(qid: NDArray[Any], rows: int | None, group_rows: bool) -> tuple[NDArray[Any], Ints, Ints | None]:
    """Query ids, offsets and, if rows had to be moved, the permutation that groups them."""
    if rows is not None and len(qid) != rows:
        raise ValueError(f"qid has {len(qid)} entries; there are {rows} documents")
    begins = np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1]]))[: len(qid)]
    offsets = np.append(begins, len(qid)).astype(np.int64)
    runs = qid[begins]
    distinct, codes = encode_ids(runs)
    if len(distinct) == len(runs):
        return runs, offsets, None
    if not group_rows:
        again = int(np.flatnonzero(codes != np.maximum.accumulate(np.append(-1, codes))[:-1] + 1)[0])
        earlier = int(offsets[int(np.argmax(codes == codes[again])) + 1]) - 1
        raise ValueError(
            f"qid: the rows of query {runs[again]} do not lie together: it ends at row {earlier} and comes back at row "
            f"{offsets[again]}; group_rows=True groups them"
        )
    row_codes = np.repeat(codes, np.diff(offsets))
    permutation = np.argsort(row_codes, kind="stable")
    return distinct, offsets_of(np.bincount(row_codes)), permutation.astype(np.int64)


def per_document(values: NDArray[Any], n_docs: int, what: str) -> NDArray[Any]:
    if len(values) != n_docs:
        raise ValueError(f"{what}: expected one for each of {n_docs} documents, got {len(values)}")
    return values


def as_column(values: Any, n_docs: int, name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype == object and all(isinstance(value, str) for value in array.tolist()):
        array = array.astype(np.str_)
    if array.ndim != 1 or array.dtype.kind not in "fiubUM":
        raise TypeError(
            f"column {name}: expected numbers, truth values, dates or text in one dimension; "
            f"got {array.dtype} of shape {array.shape}"
        )
    return per_document(array, n_docs, f"column {name}")


def judge_table(judges: Any, n_docs: int) -> Any:
    table = judges if isinstance(judges, np.ma.MaskedArray) else np.asarray(judges, dtype=np.float64)
    if not isinstance(table, np.ma.MaskedArray) and np.isnan(table).any():
        raise ValueError(
            "judges: a label is NaN; where a judge is silent the entry is masked: numpy.ma.masked_invalid(judges)"
        )
    if table.ndim != 2 or len(table) != n_docs:
        raise ValueError(
            f"judges: expected a row for each of {n_docs} documents and a column a judge, got shape {table.shape}"
        )
    return table


def as_feature_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    listed = tuple(str(name) for name in names)
    if len(listed) != n_features:
        raise ValueError(f"feature_names: expected {n_features}, got {len(listed)}")
    if len(set(listed)) < len(listed):
        twice = next(name for number, name in enumerate(listed) if name in listed[:number])
        raise ValueError(f"feature_names: {twice!r} stands twice")
    return listed


def as_weight(values: ArrayLike | None, count: int, name: str, entry: str) -> Floats | None:
    if values is None:
        return None
    weight = np.asarray(values, dtype=np.float64)
    if weight.shape != (count,):
        raise ValueError(f"{name}: expected one number for each {entry}, that is {count}; got shape {weight.shape}")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise ValueError(f"{name}: expected finite numbers >= 0; got {weight[bad[0]]} for {entry} number {bad[0]}")
    return frozen(weight)


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, Supervision):
        return ours.equals(theirs)
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return list(ours) == list(theirs) and all(same(ours[name], theirs[name]) for name in ours)
    if is_sparse(ours) or is_sparse(theirs):
        return (
            is_sparse(ours)
            and is_sparse(theirs)
            and ours.shape == theirs.shape
            and all(same(getattr(ours, n), getattr(theirs, n)) for n in ("indptr", "indices", "data"))
        )
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        if ours.dtype.kind != theirs.dtype.kind or ours.shape != theirs.shape:
            return False
        if isinstance(ours, np.ma.MaskedArray) or isinstance(theirs, np.ma.MaskedArray):
            if not np.array_equal(np.ma.getmaskarray(ours), np.ma.getmaskarray(theirs)):
                return False
            ours, theirs = np.ma.getdata(ours), np.ma.getdata(theirs)
        floats = ours.dtype.kind == "f"
        return (not floats or ours.dtype == theirs.dtype) and np.array_equal(ours, theirs, equal_nan=floats)
    return type(ours) is type(theirs) and bool(ours == theirs)
