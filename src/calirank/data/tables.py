"""Ranking data as tables with a row a document: data frames of any library, Parquet and Arrow files.

A table has a column that names the query of each row; the other columns have *roles*: label, features, weights and so
on. Frames do not say which is which, so :func:`from_frame` is told. Files written here carry a note about it (schema
metadata under the key ``calirank``), so that reading them back needs no arguments.

What a table cannot hold is refused, never dropped: preferences and rankings, the distribution of synthetic data,
weights of judgements, and several lists of one query. ``data.save(folder)`` keeps all of these.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal, TypeAlias, Unpack, cast

import numpy as np

from calirank.data import _table_writing as writing
from calirank.data._files import (
    Source,
    Target,
    atomic_write,
    is_path,
    is_plain_file,
    name_of,
    open_bytes,
    refuse_compression,
    refuse_directory,
)
from calirank.data._table_reading import Table, UnknownCategory, ranking_data
from calirank.data._table_roles import Roles, TableRoles, roles_of_note
from calirank.data._table_writing import pyarrow, table_columns, table_roles
from calirank.data.ranking_data import RankingData
from calirank.names import did_you_mean

Backend: TypeAlias = Literal["pandas", "polars", "pyarrow"]
Sources: TypeAlias = "Source | Sequence[Source]"

_NOTE = b"calirank"
_NAMES = {name: name for name in ("qid", "doc_id", "query_weight", "doc_weight")} | {"y": "label"}
_ROWS = 1 << 17  # rows of a file written at a time


# --- frames ----------------------------------------------------------------------------------------------------------


def from_frame(
    frame: Any,
    *,
    y: str | None = "label",
    qid: str = "qid",
    doc_id: str | None = None,
    features: Sequence[str] | None = None,
    categorical: Sequence[str] | Mapping[str, Sequence[Any]] | None = None,
    columns: Sequence[str] = (),
    query_weight: str | None = None,
    doc_weight: str | None = None,
    judges: Sequence[str] | None = None,
    group_rows: bool = False,
    like: RankingData | None = None,
    unknown_category: UnknownCategory = "error",
) -> RankingData:
    """Ranking data from a data frame: pandas, Polars, pyarrow, Modin, and what else narwhals knows.

    The arguments name columns. ``y=None`` is data without labels; ``judges`` has a column a judge. Left out,
    ``features`` are all remaining numeric, boolean and categorical columns; a column of another type that remains is an
    error. ``columns`` are kept beside the features. The index of a pandas frame is not a column.

    **Missing values.** A null label means unjudged, and a null of a judge means silent; NaN is refused there. (A pandas
    column of NumPy floats has no null: ``.astype("Float64")`` turns its NaN into null.) In features null and NaN both
    mean missing.

    **Precision.** ``X`` is float32 where every feature is exact in it (floats of at most 32 bits, truth values,
    categories, whole numbers up to 2²⁴) and else float64; whole numbers beyond 2⁵³ are refused.

    **Categories.** Categorical and enumerated columns become codes, and so do the columns that ``categorical`` names.
    pandas categories, Polars enumerations and ordered Arrow dictionaries keep their order and their unused members;
    otherwise categories are sorted, so that codes do not depend on the order of the rows. ``{column: categories}``
    fixes them, and ``{column: ()}`` says that the column holds codes already.

    **like.** Another data set gives the features, by name and in its order, and their categories. A category that it
    does not know is an error, or missing with ``unknown_category="missing"``.

    >>> import pandas
    >>> frame = pandas.DataFrame({"qid": ["a", "a", "b"], "label": [1, 0, 2], "bm25": [0.5, 0.25, 1.0]})
    >>> data = from_frame(frame)
    >>> data, data.feature_names
    (RankingData(2 queries, 3 documents, 1 feature, grades), ('bm25',))
    """
    roles: Roles = {
        "y": y,
        "qid": qid,
        "doc_id": doc_id,
        "features": features,
        "categorical": categorical,
        "columns": columns,
        "query_weight": query_weight,
        "doc_weight": doc_weight,
        "judges": judges,
    }
    return ranking_data(Table(frame, "the frame"), TableRoles().changed(roles), like, unknown_category, group_rows)


def to_frame(
    data: RankingData,
    backend: Backend = "pandas",
    *,
    y: str = "label",
    qid: str = "qid",
    doc_id: str = "doc_id",
    query_weight: str = "query_weight",
    doc_weight: str = "doc_weight",
) -> Any:
    """The data as a data frame with a row a document; the arguments name its columns.

    It has, as far as the data has them: query and document ids, labels (null where unjudged) or ``judge_1``,
    ``judge_2``, … (null where silent), weights, features, and the extra columns. Features without names are called
    ``f1``, ``f2``, …. Categorical features are categories (in Polars an enumeration, in Arrow an ordered dictionary);
    where the data knows only their codes they stay numbers. Sparse features become dense columns, if these take no more
    than 1 GiB.

    >>> data = RankingData([[0.5], [0.25]], [1, 0], qid=["a", "a"], feature_names=["bm25"])
    >>> to_frame(data, "polars").to_dict(as_series=False)
    {'qid': ['a', 'a'], 'label': [1.0, 0.0], 'bm25': [0.5, 0.25]}
    """
    names = {"y": y, "qid": qid, "doc_id": doc_id, "query_weight": query_weight, "doc_weight": doc_weight}
    return writing.build_frame(backend, table_columns(data, table_roles(data, names)))


# --- files -----------------------------------------------------------------------------------------------------------


def read_parquet(
    source: Sources,
    *,
    like: RankingData | None = None,
    unknown_category: UnknownCategory = "error",
    group_rows: bool = False,
    **roles: Unpack[Roles],
) -> RankingData:
    """Ranking data from a Parquet file, or from several that are read as one table.

    A file of :func:`write_parquet` says itself which column is what. For other files the arguments are those of
    :func:`from_frame`, with its defaults. An argument that is given goes before the file's own note. Only the columns
    that are needed are read. In a list of files the rows of a query may go on in the next file.
    """
    return _read(_PARQUET, source, roles, like, unknown_category, group_rows)


def write_parquet(data: RankingData, target: Target) -> None:
    """Write the table of :func:`to_frame` as a Parquet file, which :func:`read_parquet` reads without arguments."""
    _write(_PARQUET, data, target)


def read_arrow(
    source: Sources,
    *,
    like: RankingData | None = None,
    unknown_category: UnknownCategory = "error",
    group_rows: bool = False,
    **roles: Unpack[Roles],
) -> RankingData:
    """Ranking data from an Arrow IPC file (Feather, version 2) or IPC stream; else as :func:`read_parquet`."""
    return _read(_ARROW, source, roles, like, unknown_category, group_rows)


def write_arrow(data: RankingData, target: Target) -> None:
    """Write the table of :func:`to_frame` as an Arrow IPC file (Feather, version 2)."""
    _write(_ARROW, data, target)


@dataclass(frozen=True)
class _Kind:
    """A kind of file: how its schema is read, how some of its columns are read, and how it is written."""

    title: str
    open: Callable[[Any], tuple[Any, Callable[[list[str]], Any]]]
    writer: Callable[[IO[bytes], Any], Any]


def _open_parquet(buffer: Any) -> tuple[Any, Callable[[list[str]], Any]]:
    from pyarrow import parquet

    file = parquet.ParquetFile(buffer)
    return file.schema_arrow, lambda columns: file.read(columns=columns)


def _open_arrow(buffer: Any) -> tuple[Any, Callable[[list[str]], Any]]:
    from pyarrow import ipc

    magic = buffer.read(6)
    buffer.seek(0)
    if magic != b"ARROW1":
        stream = ipc.open_stream(buffer)
        return stream.schema, lambda columns: stream.read_all()
    schema = ipc.open_file(buffer).schema

    def read(columns: list[str]) -> Any:
        fields = [schema.get_field_index(name) for name in columns]
        return ipc.open_file(buffer, options=ipc.IpcReadOptions(included_fields=fields)).read_all()

    return schema, read


def _parquet_writer(stream: IO[bytes], schema: Any) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(stream, schema)


def _arrow_writer(stream: IO[bytes], schema: Any) -> Any:
    from pyarrow import ipc

    return ipc.new_file(stream, schema)


_PARQUET = _Kind("a Parquet file", _open_parquet, _parquet_writer)
_ARROW = _Kind("an Arrow file", _open_arrow, _arrow_writer)


# --- reading ---------------------------------------------------------------------------------------------------------


def _read(
    kind: _Kind,
    source: Sources,
    given: Roles,
    like: RankingData | None,
    unknown_category: UnknownCategory,
    group_rows: bool,
) -> RankingData:
    pyarrow()
    sources = cast("list[Source]", list(source) if isinstance(source, (list, tuple)) else [source])
    if not sources:
        raise ValueError("expected at least one file, got none")
    names = [name_of(one) for one in sources]
    tables: list[Any] = []
    roles = TableRoles().changed(given)  # wrong arguments are said before a file is looked at
    for one, name in zip(sources, names, strict=True):
        buffer = _buffer(one, kind.title)
        with _damage(name, kind.title):
            schema, read = kind.open(buffer)
        note = (schema.metadata or {}).get(_NOTE)
        found = (TableRoles() if note is None else roles_of_note(note, name)).changed(given)
        columns = _needed(schema, found)
        if tables:
            if found != roles:
                raise ValueError(f"{names[0]} and {name} cannot be read as one: their notes on the columns differ")
            _refuse_other_columns(tables[0].column_names, columns, names[0], name)
            columns = tables[0].column_names
        roles = found
        with _damage(name, kind.title):
            tables.append(read(columns).select(columns))
            tables[-1].validate(full=True)  # text and codes come from the file as they are
    where = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return ranking_data(Table(_joined(tables, where), where), roles, like, unknown_category, group_rows)


def _joined(tables: list[Any], where: str) -> Any:
    pa = pyarrow()
    try:
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise ValueError(f"{where} cannot be read as one: {error}") from None


@contextlib.contextmanager
def _damage(name: str, title: str) -> Iterator[None]:
    """Turn what pyarrow says about a file into ``ValueError`` with the name of the file."""
    try:
        yield
    except (pyarrow().ArrowException, OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{name}: expected {title}, got a damaged file or one of another kind ({error})") from None


def _buffer(source: Source, title: str) -> Any:
    """The bytes of a source for pyarrow; an ordinary file is mapped into memory."""
    pa = pyarrow()
    if is_path(source):
        path = cast("str | os.PathLike[str]", source)
        refuse_directory(path)
        if is_plain_file(path) and os.path.getsize(path):
            return pa.memory_map(os.fspath(path))
    with open_bytes(source) as stream:
        held = stream.read()
    if not held:
        raise ValueError(f"{name_of(source)}: expected {title}, got an empty file")
    return pa.BufferReader(held)


def _needed(schema: Any, roles: TableRoles) -> list[str]:
    """The columns to read, in the order of the file: those that have a role, or all where features are not listed."""
    asked = {column for _, column in roles.single()}
    if roles.features is not None:
        asked.update(roles.features)
        return [name for name in schema.names if name in asked]
    index = _pandas_index(schema)
    return [name for name in schema.names if name in asked or name not in index]


def _pandas_index(schema: Any) -> set[str]:
    """The columns of a file that were the index of a pandas frame."""
    try:
        held = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        return {name for name in held["index_columns"] if isinstance(name, str)}
    except (ValueError, KeyError, TypeError):
        return set()


def _refuse_other_columns(expected: Sequence[str], found: Sequence[str], first: str, name: str) -> None:
    missing = [column for column in expected if column not in found]
    if missing:
        raise ValueError(f"{name} has no column {missing[0]!r}, which {first} has.{did_you_mean(missing[0], found)}")
    extra = [column for column in found if column not in expected]
    if extra:
        raise ValueError(
            f"{name} has the column {extra[0]!r}, which {first} has not.{did_you_mean(extra[0], expected)}"
        )


# --- writing ---------------------------------------------------------------------------------------------------------


def _write(kind: _Kind, data: RankingData, target: Target) -> None:
    pyarrow()
    refuse_compression(target, kind.title)
    roles = table_roles(data, _NAMES)
    schema = _block(data[:0], roles).schema
    with atomic_write(target, "wb") as stream, kind.writer(stream, schema) as writer:
        for first, last in _blocks(data):
            writer.write_table(_block(data[first:last], roles))


def _block(data: RankingData, roles: TableRoles) -> Any:
    return writing.build_frame("pyarrow", table_columns(data, roles)).replace_schema_metadata({_NOTE: roles.note()})


def _blocks(data: RankingData) -> Iterator[tuple[int, int]]:
    """Ranges of queries of about ``_ROWS`` documents."""
    first = 0
    while first < len(data):
        last = int(np.searchsorted(data.offsets, data.offsets[first] + _ROWS, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last
