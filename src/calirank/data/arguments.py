"""The arguments of RankingData: each brought to its one form, or refused with its place and what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.data.ragged import Floats, Ints, encode_ids, frozen, offsets_of, same_bits, whole_numbers
from calirank.data.supervision import Judgements, Supervision

#: Rows of features that are looked at together, so that checking needs no copy of the whole matrix.
BLOCK = 1 << 14


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy matrix or array, found out without loading SciPy."""
    return type(X).__module__.startswith("scipy.sparse")


def as_features(X: Any) -> Any:
    """Features as a dense float32 or float64 table in C order, or as canonical CSR."""
    if X is None:
        return None
    if is_sparse(X):
        from scipy import sparse

        matrix = sparse.csr_array(X)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(_float_type(matrix.dtype))
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
            array = array.astype(_float_type(array.dtype))
    except (TypeError, ValueError) as error:
        raise TypeError(f"X: expected a numeric array with a row a document, got {error}") from None
    if array.ndim != 2:
        raise ValueError(f"X: expected a row a document and a column a feature, got shape {array.shape}")
    return np.ascontiguousarray(array)


def _float_type(dtype: np.dtype[Any]) -> Any:
    """The smallest of float32 and float64 that holds the type's values (float64 for long doubles)."""
    wide = np.result_type(dtype, np.float32)
    return wide if wide in (np.float32, np.float64) else np.float64


def frozen_features(X: Any) -> Any:
    """The same features read-only, without a copy."""
    if not is_sparse(X):
        return None if X is None else frozen(X)
    from scipy import sparse

    parts = tuple(frozen(part) for part in (X.data, X.indices, X.indptr))
    return sparse.csr_array(parts, shape=X.shape, copy=False)


def as_labels(y: Any) -> tuple[Floats | None, NDArray[np.bool_] | None]:
    """Labels as float64 with NaN where masked, and which documents are judged (None: all)."""
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


def list_bounds(offsets: ArrayLike | None, sizes: ArrayLike | None, rows: int | None) -> Ints:
    """Offsets from offsets or sizes: no list is empty, and they end with the number of rows where that is known."""
    if sizes is not None:
        counts = whole_numbers(sizes, "sizes")
        bad = np.flatnonzero(counts < 1)
        if len(bad):
            raise ValueError(
                f"sizes: every query needs at least one document; query number {bad[0]} has {counts[bad[0]]}"
            )
        bounds = offsets_of(counts)
        if (bounds[1:] <= bounds[:-1]).any():
            raise ValueError("sizes: they add up to more documents than a whole number of 64 bits counts")
    else:
        bounds = whole_numbers(cast("ArrayLike", offsets), "offsets")
        if not len(bounds) or bounds[0] != 0:
            raise ValueError(f"offsets: expected to begin with 0, got {bounds[:1].tolist()}")
        if rows is not None and len(bounds) - 1 > rows:
            raise ValueError(f"offsets: {len(bounds) - 1} queries for {rows} documents: some would be empty")
        bad = np.flatnonzero(bounds[1:] <= bounds[:-1])
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
    """The values, once there is one for each document."""
    if len(values) != n_docs:
        raise ValueError(f"{what}: expected one for each of {n_docs} documents, got {len(values)}")
    return values


def as_column(values: Any, n_docs: int, name: str) -> NDArray[Any]:
    """A column of document values: numbers, truth values, dates or text."""
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
    """The labels of several judges: a row a document, a column a judge, masked where silent."""
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
    """Names of the features, all different."""
    if names is None:
        return None
    listed = tuple(str(name) for name in names)
    if len(listed) != n_features:
        raise ValueError(f"feature_names: expected {n_features}, got {len(listed)}")
    if len(set(listed)) < len(listed):
        twice = next(name for number, name in enumerate(listed) if name in listed[:number])
        raise ValueError(f"feature_names: {twice!r} stands twice")
    return listed


def same(ours: Any, theirs: Any) -> bool:
    """Whether two arguments of RankingData are the same, arrays bit for bit."""
    if isinstance(ours, Supervision):
        return ours.equals(theirs)
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return list(ours) == list(theirs) and all(same(ours[name], theirs[name]) for name in ours)
    if is_sparse(ours) or is_sparse(theirs):
        return (
            is_sparse(ours)
            and is_sparse(theirs)
            and ours.shape == theirs.shape
            and np.array_equal(ours.indptr, theirs.indptr)  # SciPy chooses the width of these integers
            and np.array_equal(ours.indices, theirs.indices)
            and same_bits(ours.data, theirs.data)
        )
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        if isinstance(ours, np.ma.MaskedArray) != isinstance(theirs, np.ma.MaskedArray):
            return False
        masks = np.array_equal(np.ma.getmaskarray(ours), np.ma.getmaskarray(theirs))
        return masks and same_bits(np.ma.getdata(ours), np.ma.getdata(theirs))
    return type(ours) is type(theirs) and bool(ours == theirs)
