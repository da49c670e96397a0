"""From ranking data to a table with a row a document, as a frame of pandas, Polars or pyarrow."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from calirank._extras import optional
from calirank.data._csv import distinct_queries
from calirank.data._table_roles import TableRoles
from calirank.data.ragged import Floats, list_numbers
from calirank.data.ranking_data import RankingData

#: The most bytes that sparse features may take as the dense columns of a table; more is refused.
DENSE_LIMIT = 1 << 30

_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")
_KEPT_BY = "data.save(folder) and cr.write_npz keep"


@dataclass(frozen=True)
class Column:
    """Values of a column, where they are null, and what they mean if they are codes of categories."""

    values: NDArray[Any]
    null: NDArray[np.bool_] | None = None
    categories: tuple[Any, ...] | None = None


def table_roles(data: RankingData, names: Mapping[str, str]) -> TableRoles:
    """Which column of the data's table is what; data that a table cannot hold is refused."""
    _refuse_what_tables_lack(data)
    held = {"y": data.y, "doc_id": data.doc_ids, "query_weight": data.query_weight, "doc_weight": data.doc_weight}
    columns: dict[str, Any] = {role: None if values is None else names[role] for role, values in held.items()}
    features = [data.feature_name(feature) for feature in range(data.n_features)]
    if data.feature_names is None:
        features = [f"f{number}" for number in features]
    judges = None
    if data.judges is not None:
        judges = tuple(f"judge_{number + 1}" for number in range(int(data.judges.counts.max(initial=0))))
    roles = TableRoles(
        **columns,
        qid=names["qid"],
        features=tuple(features),
        categorical={features[feature]: values for feature, values in data.categories.items()},
        columns=tuple(data.columns),
        judges=judges,
        named=data.feature_names is not None,
        feature_base=data.feature_base,
        sparse=_is_sparse(data),
        dtype=None if data.X is None else data.X.dtype.name,
    )
    taken: dict[str, str] = {}
    for role, column in [*roles.single(), *(("features", name) for name in features)]:
        if column in taken:
            raise ValueError(f"a table has one column of a name, and {column!r} would be {taken[column]} and {role}")
        taken[column] = role
    return roles


def table_columns(data: RankingData, roles: TableRoles) -> dict[str, Column]:
    """The columns of the data's table, or of a slice of the data whose whole has these roles."""
    query = list_numbers(data.offsets)
    columns = {roles.qid: Column(data.query_ids[query])}
    if roles.doc_id is not None:
        columns[roles.doc_id] = Column(cast("NDArray[Any]", data.doc_ids))
    if roles.y is not None:
        columns[roles.y] = Column(cast("Floats", data.y), None if data.judged is None else ~data.judged)
    if roles.judges is not None:
        labels = _labels_by_judge(data, len(roles.judges))
        columns.update((name, Column(row, np.isnan(row))) for name, row in zip(roles.judges, labels, strict=True))
    if roles.query_weight is not None:
        columns[roles.query_weight] = Column(cast("Floats", data.query_weight)[query])
    if roles.doc_weight is not None:
        columns[roles.doc_weight] = Column(cast("Floats", data.doc_weight))
    X = data.X.tocsc() if roles.sparse else data.X
    for number, name in enumerate(roles.features or ()):
        values = X[:, [number]].toarray()[:, 0] if roles.sparse else np.ascontiguousarray(X[:, number])
        categories = roles.categorical.get(name)
        if categories:
            null = np.isnan(values)
            columns[name] = Column(np.where(null, 0, values).astype(np.int32), null, categories)
        else:
            columns[name] = Column(values)
    columns.update((name, Column(values)) for name, values in data.columns.items())
    return columns


def refuse_mixed_ids(data: RankingData, what: str) -> None:
    """Refuse identifiers that are numbers in one place and text in another."""
    for name, ids in (("query_ids", data.query_ids), ("doc_ids", data.doc_ids)):
        if ids is not None and ids.dtype == object:
            kinds = sorted({type(value).__name__ for value in ids.tolist()})
            raise ValueError(f"{name}: {what} has identifiers of one type; these are {' and '.join(kinds)}")


def _is_sparse(data: RankingData) -> bool:
    return data.X is not None and not isinstance(data.X, np.ndarray)


def _refuse_what_tables_lack(data: RankingData) -> None:
    if data.supervision in ("preferences", "rankings"):
        raise ValueError(
            f"a table has a row a document and cannot hold {data.supervision}: data.save(folder) keeps them, "
            f"cr.write_{data.supervision}(data, path) writes them as CSV"
        )
    if data.has_posterior:
        raise ValueError(
            "a table cannot hold the distribution that synthetic data knows: data.save(folder) keeps it, "
            "data.replace(posterior=None) leaves it out"
        )
    refuse_mixed_ids(data, "a table")
    distinct_queries(data, f"a table ({_KEPT_BY} several lists of a query)")
    if data.judges is not None:
        if (data.judges.weight != 1).any():
            raise ValueError(f"a table cannot hold weights of judgements: {_KEPT_BY} them")
        silent = np.isnan(data.judges.labels)
        if len(silent) and np.logical_and.reduceat(silent, data.judges.starts[:-1]).any():
            raise ValueError(f"a table cannot hold a judgement without any label: {_KEPT_BY} it")
    if _is_sparse(data):
        size = data.n_docs * data.n_features * data.X.dtype.itemsize
        if size > DENSE_LIMIT:
            raise ValueError(
                f"a table has dense columns, and these sparse features would take {size / 2**30:.1f} GiB (limit: "
                f"{DENSE_LIMIT / 2**30:.1f}): {_KEPT_BY} them sparse, and so does cr.write_letor"
            )


def _labels_by_judge(data: RankingData, count: int) -> Floats:
    """A row a judgement (the first, second, … of each query) and a column a document; NaN where there is none."""
    judges = data.judges
    assert judges is not None
    query = list_numbers(judges.offsets)
    sizes = np.diff(judges.starts)
    number = np.arange(len(query)) - judges.offsets[:-1][query]
    inside = np.arange(len(judges.labels)) - np.repeat(judges.starts[:-1], sizes)
    labels = np.full((count, data.n_docs), np.nan)
    labels[np.repeat(number, sizes), np.repeat(data.offsets[:-1][query], sizes) + inside] = judges.labels
    return labels


# --- frames of each library ------------------------------------------------------------------------------------------


def build_frame(backend: str, columns: Mapping[str, Column]) -> Any:
    """The columns as a frame of a library."""
    if backend not in _BUILDERS:
        raise ValueError(f"backend: expected {', '.join(map(repr, _BUILDERS))}; got {backend!r}")
    return _BUILDERS[backend](columns)


def pyarrow() -> Any:
    """The module ``pyarrow``, or an error that says how to install it."""
    return optional("pyarrow", extra="parquet", purpose="Parquet or Arrow")


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"a frame of {name} needs {name}, which is not installed; type: pip install {name}") from None


def _dates(name: str, values: NDArray[Any], units: Sequence[str]) -> NDArray[Any]:
    """Dates in the coarsest of a library's units that loses nothing."""
    unit = np.datetime_data(values.dtype)[0]
    finer = _UNITS[_UNITS.index(unit) :] if unit in _UNITS else _UNITS if unit == "generic" else ()
    fitting = next((candidate for candidate in finer if candidate in units), None)
    if fitting is None:
        raise ValueError(f"column {name!r}: expected dates in units of {', '.join(units)}; got {unit}")
    return values.astype(f"datetime64[{fitting}]")


def _pandas_frame(columns: Mapping[str, Column]) -> Any:
    pandas = _library("pandas")

    def native(name: str, column: Column) -> Any:
        values, null = column.values, column.null
        if column.categories is not None:
            codes = values if null is None else np.where(null, -1, values)
            return pandas.Categorical.from_codes(codes, categories=list(column.categories))
        if null is not None and null.any():
            return pandas.arrays.FloatingArray(np.where(null, 0.0, values), null)
        return _dates(name, values, ("s", "ms", "us", "ns")) if values.dtype.kind == "M" else np.array(values)

    return pandas.DataFrame({name: native(name, column) for name, column in columns.items()})


def _polars_frame(columns: Mapping[str, Column]) -> Any:
    polars = _library("polars")

    def native(name: str, column: Column) -> Any:
        values = column.values
        if values.dtype.kind == "M":
            values = _dates(name, values, ("D", "ms", "us", "ns"))
        series = polars.Series(name, values)
        if column.null is not None and column.null.any():
            series = series.set(polars.Series(column.null), None)
        if column.categories is None:
            return series
        odd = next((value for value in column.categories if not isinstance(value, str)), None)
        if odd is not None:
            raise ValueError(f"column {name!r}: categories are text in Polars; got {odd!r}")
        names = list(column.categories)
        return polars.Series(name, names, dtype=polars.Enum(names)).gather(series)

    return polars.DataFrame({name: native(name, column) for name, column in columns.items()})


def _arrow_table(columns: Mapping[str, Column]) -> Any:
    pa = pyarrow()

    def native(name: str, column: Column) -> Any:
        values = column.values
        if values.dtype.kind == "M":
            values = _dates(name, values, ("D", "s", "ms", "us", "ns"))
        array = pa.array(values, mask=column.null)
        if column.categories is None:
            return array
        return pa.DictionaryArray.from_arrays(array, pa.array(list(column.categories)), ordered=True)

    return pa.table({name: native(name, column) for name, column in columns.items()})


_BUILDERS: dict[str, Callable[[Mapping[str, Column]], Any]] = {
    "pandas": _pandas_frame,
    "polars": _polars_frame,
    "pyarrow": _arrow_table,
}
