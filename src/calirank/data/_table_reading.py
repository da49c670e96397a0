"""From a table with a row a document to ranking data; tables of every library through narwhals."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from calirank.data._table_roles import TableRoles
from calirank.data.ragged import Floats, Ints, as_ids, list_numbers
from calirank.data.ranking_data import RankingData
from calirank.names import did_you_mean

UnknownCategory: TypeAlias = Literal["error", "missing"]
Bools: TypeAlias = NDArray[np.bool_]

_BLOCK = 1 << 12  # rows of features put together at a time
_EXACT32, _EXACT64 = 1 << 24, 1 << 53  # whole numbers up to here are exact in float32, in float64
_OWN_NAMES = re.compile(r"label|doc_id|query_weight|doc_weight|judge_[0-9]+")


class Table:
    """A frame, the types of its columns, and what error messages call it."""

    def __init__(self, frame: Any, where: str) -> None:
        import narwhals

        self.nw = narwhals
        self.where = where
        try:
            self.frame = narwhals.from_native(frame, eager_only=True)
        except TypeError:
            kind = f"{type(frame).__module__}.{type(frame).__name__}"
            lazy = "; .collect() makes a frame of it" if hasattr(frame, "collect") else ""
            raise TypeError(f"expected a data frame (pandas, Polars, pyarrow.Table, …), got {kind}{lazy}") from None
        self.names: list[str] = list(self.frame.columns)
        for name in self.names:
            if not isinstance(name, str):
                raise ValueError(
                    f"{where}: expected text as column names, got {name!r} (try frame.columns.astype(str))"
                )
        self.types: dict[str, Any] = dict(self.frame.schema)

    def __len__(self) -> int:
        return len(self.frame)

    def column(self, name: str) -> Any:
        return self.frame.get_column(name)

    def is_category(self, name: str) -> bool:
        return isinstance(self.types[name], (self.nw.Categorical, self.nw.Enum))

    def is_number(self, name: str) -> bool:
        """Whether the column holds numbers or truth values."""
        return bool(self.types[name].is_numeric()) or self.types[name] == self.nw.Boolean

    def is_text(self, name: str) -> bool:
        return bool(self.types[name] == self.nw.String)

    def require(self, role: str, name: str) -> None:
        if name not in self.types:
            none = "; y=None is data without labels" if role == "y" else ""
            hint = did_you_mean(str(name), self.names)
            raise ValueError(f"{role}: {self.where} has no column {name!r}{none}.{hint}")

    def refuse_column(self, name: str, expected: str) -> NoReturn:
        raise ValueError(f"{self.where}: column {name!r} is {self.types[name]}; expected {expected}")

    def refuse_row(self, name: str, wrong: Bools, what: str) -> NoReturn:
        """Refuse the first row that is wrong; ``{}`` in the text stands for its value."""
        row = int(np.argmax(wrong))
        value = self.column(name)[row]
        raise ValueError(f"{self.where}: column {name!r}, row {row}: {what.replace('{}', repr(value))}")


def ranking_data(
    table: Table, roles: TableRoles, like: RankingData | None, unknown_category: UnknownCategory, group_rows: bool
) -> RankingData:
    """The ranking data that a table holds when its columns have these roles."""
    if unknown_category not in ("error", "missing"):
        raise ValueError(f'unknown_category: expected "error" or "missing", got {unknown_category!r}')
    roles = _settled(table, roles, like)
    X, categories = _features(table, roles, unknown_category)

    def read(name: str | None, how: Callable[[Table, str], Any]) -> Any:
        return None if name is None else how(table, name)

    data = RankingData(
        X,
        read(roles.y, _labels),
        qid=_ids(table, roles.qid),
        doc_ids=read(roles.doc_id, _ids),
        feature_names=roles.features if X is not None and roles.named else None,
        categorical=cast("Any", categories),
        columns={name: _plain_values(table, name) for name in roles.columns},
        doc_weight=read(roles.doc_weight, _weights),
        judges=None if roles.judges is None else _judges(table, roles.judges),
        group_rows=group_rows,
        feature_base=roles.feature_base,
    )
    if roles.query_weight is None:
        return data
    return data.replace(query_weight=_query_weights(data, table, roles.query_weight))


# --- which column is what --------------------------------------------------------------------------------------------


def _settled(table: Table, roles: TableRoles, like: RankingData | None) -> TableRoles:
    """The roles with every feature named; a column that is missing, or has two roles or none, is an error."""
    if roles.judges is not None and roles.y == "label" and "label" not in table.types:
        roles = dataclasses.replace(roles, y=None)
    if roles.judges is not None and roles.y is not None:
        raise ValueError(f"expected one kind of supervision, got judges and y={roles.y!r}; y=None leaves the label out")
    if like is not None:
        roles = _like_roles(like, roles)
    taken: dict[str, str] = {}
    for role, name in roles.single():
        table.require(role, name)
        if name in taken:
            raise ValueError(f"{table.where}: column {name!r} is given twice, as {taken[name]} and as {role}")
        taken[name] = role
    features = roles.features
    if features is None:
        features = _remaining(table, [name for name in table.names if name not in taken], roles.categorical)
    if like is not None:
        features = _like_features(like, table, features, taken)
    for name in features:
        table.require("features", name)
        if name in taken:
            raise ValueError(f"{table.where}: column {name!r} is given twice, as {taken[name]} and as features")
        taken[name] = "features"
        if not (table.is_number(name) or table.is_category(name) or name in roles.categorical):
            table.refuse_column(name, f"numbers, or a category: categorical=[{name!r}]")
    for name in roles.categorical:
        if name not in features:
            raise ValueError(f"categorical: {name!r} is not among the features.{did_you_mean(name, features)}")
    return dataclasses.replace(roles, features=tuple(features))


def _remaining(table: Table, remaining: list[str], categorical: Mapping[str, Any]) -> tuple[str, ...]:
    """The features where they are not listed: all columns that have no other role, if each can be one."""
    numeric = [n for n in remaining if table.is_number(n) or table.is_category(n) or n in categorical]
    others = [f"{name!r} ({table.types[name]})" for name in remaining if name not in numeric]
    if others:
        raise ValueError(
            f"{table.where}: no feature can be made of {', '.join(others)}; columns= keeps it beside the features, "
            "categorical= makes it a category, and features= leaves out what it does not list"
        )
    known = [repr(name) for name in numeric if _OWN_NAMES.fullmatch(name)]
    if known:
        raise ValueError(
            f"{table.where}: {', '.join(known)} has no role and would become a feature, which its name says it is not; "
            "give it its role (y, doc_id, query_weight, doc_weight, judges, columns) or list the features="
        )
    return tuple(numeric)


def _like_roles(like: RankingData, roles: TableRoles) -> TableRoles:
    if like.feature_names is None:
        raise ValueError("like: its features have no names by which columns could be found; give it feature_names")
    fixed = {like.feature_names[feature]: values for feature, values in like.categories.items()}
    other = next((name for name in roles.categorical if name not in fixed), None)
    if other is not None:
        raise ValueError(f"categorical: {other!r} is not categorical in like=")
    return dataclasses.replace(roles, categorical=fixed, feature_base=like.feature_base, named=True)


def _like_features(like: RankingData, table: Table, found: Sequence[str], taken: Mapping[str, str]) -> tuple[str, ...]:
    """The features of ``like``, if the table has exactly these."""
    wanted = like.feature_names or ()
    missing = [name for name in wanted if name not in table.types]
    if missing:
        hint = did_you_mean(missing[0], [name for name in table.names if name not in taken])
        raise ValueError(f"{table.where} lacks features of like=: {', '.join(map(repr, missing[:5]))}.{hint}")
    differing = [name for name in found if name not in wanted] or [name for name in wanted if name not in found]
    if differing:
        raise ValueError(
            f"{table.where}: the features differ from those of like= in {', '.join(map(repr, differing[:5]))}; "
            "columns= keeps a column beside the features, features=like.feature_names leaves out all others"
        )
    categorical = {wanted[feature] for feature in like.categories}
    for name in wanted:
        if table.is_category(name) and name not in categorical:
            table.refuse_column(name, "numbers, as in like=")
    return wanted


# --- features --------------------------------------------------------------------------------------------------------


def _features(
    table: Table, roles: TableRoles, unknown_category: UnknownCategory
) -> tuple[Any, dict[int, tuple[Any, ...]]]:
    """The matrix of features, and the categories of the categorical ones."""
    categories: dict[int, tuple[Any, ...]] = {}
    found: list[NDArray[Any]] = []
    nulls: dict[int, Bools] = {}
    for number, name in enumerate(roles.features or ()):
        fixed = roles.categorical.get(name)
        if fixed != () and (name in roles.categorical or table.is_category(name)):
            codes, categories[number] = _codes(table, name, fixed, unknown_category)
            found.append(codes)
            continue
        if fixed == ():
            categories[number] = ()
        values, null = _numbers(table, name)
        found.append(_as_floats(table, name, values))
        if null is not None:
            nulls[number] = null
    if not found:
        return None, {}
    X = np.empty((len(table), len(found)), dtype=roles.dtype or np.result_type(np.float32, *found))
    for first in range(0, len(X), _BLOCK):  # a row lies together in X, a column in the table
        for number, column in enumerate(found):
            X[first : first + _BLOCK, number] = column[first : first + _BLOCK]
    for number, null in nulls.items():
        X[null, number] = np.nan
    if not roles.sparse:
        return X, categories
    from scipy import sparse

    return sparse.csr_array(X), categories


def _as_floats(table: Table, name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers and truth values in the float type in which they are exact; floats as they are."""
    if values.dtype.kind == "f":
        return values
    if values.dtype.kind == "b" or values.dtype.itemsize <= 2:
        return values.astype(np.float32)
    largest = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    if largest > _EXACT64:
        beyond = (values > _EXACT64) | (values < -_EXACT64)
        table.refuse_row(name, beyond, "{} is beyond 2**53, so it is not exact as a feature; cast it to floats")
    return values.astype(np.float32 if largest <= _EXACT32 else np.float64)


def _numbers(table: Table, name: str) -> tuple[NDArray[Any], Bools | None]:
    """The numbers of a column, and where it is null (there the number means nothing); None where it never is."""
    series, dtype = table.column(name), table.types[name]
    if not table.is_number(name):
        table.refuse_column(name, "numbers")
    if dtype.is_decimal() or dtype in (table.nw.Int128, table.nw.UInt128):
        series = series.cast(table.nw.Float64)
    null = None if _never_null(series) else np.asarray(series.is_null().to_numpy(), dtype=bool)
    if null is None or not null.any():
        return np.asarray(series.to_numpy()), None
    return np.asarray(series.fill_null(False if dtype == table.nw.Boolean else 0).to_numpy()), null


def _never_null(series: Any) -> bool:
    """Whether it is a pandas column of a NumPy type: there NaN is a value and null does not exist."""
    implementation = series.implementation
    return (implementation.is_pandas() or implementation.is_modin()) and isinstance(series.to_native().dtype, np.dtype)


# --- categories ------------------------------------------------------------------------------------------------------


def _codes(
    table: Table, name: str, fixed: tuple[Any, ...] | None, unknown_category: UnknownCategory
) -> tuple[NDArray[Any], tuple[Any, ...]]:
    """A column as codes, NaN where missing, and the categories that the codes stand for."""
    levels, values, ordered = _levels(table, name)
    if fixed is None:
        odd = next((value for value in values if not isinstance(value, (str, int, float))), None)
        if odd is not None:
            table.refuse_column(name, f"text or numbers as categories, not {odd!r} of type {type(odd).__name__}")
        fixed = tuple(values if ordered else sorted(values))
    place = {value: number for number, value in enumerate(fixed)}
    target = np.array([place.get(value, -1) for value in values] + [-1], dtype=np.int64)  # the last is that of null
    unknown = (levels >= 0) & (target[levels] < 0)
    if unknown_category == "error" and unknown.any():
        value = values[levels[int(np.argmax(unknown))]]
        hint = did_you_mean(str(value), map(str, fixed))
        table.refuse_row(
            name, unknown, f'category {value!r} is not known.{hint} unknown_category="missing" takes it as missing'
        )
    found = target[levels]
    codes = found.astype(np.float32 if len(fixed) <= _EXACT32 else np.float64)
    codes[found < 0] = np.nan
    return codes, fixed


def _levels(table: Table, name: str) -> tuple[Ints, list[Any], bool]:
    """A column as numbers (-1 where null) into a list of values, and whether the order of that list means something."""
    series = table.column(name)
    if table.is_category(name):
        native, implementation = series.to_native(), series.implementation
        if implementation.is_pandas_like() and hasattr(getattr(native, "cat", None), "codes"):
            return np.asarray(native.cat.codes, dtype=np.int64), native.cat.categories.tolist(), True
        if implementation.is_pyarrow():
            native = native.unify_dictionaries()
            parts = [_filled(chunk.indices.cast("int64")) for chunk in native.chunks]
            values = native.chunk(0).dictionary.to_pylist() if parts else []
            return np.concatenate([np.zeros(0, np.int64), *parts]), values, bool(native.type.ordered)
        if implementation.is_polars() and isinstance(table.types[name], table.nw.Enum):
            return _filled(native.to_physical().cast(int)), list(table.types[name].categories), True
        return _text_levels(series.cast(table.nw.String))
    if table.is_number(name):
        return _number_levels(*_numbers(table, name))
    if table.is_text(name):
        return _text_levels(series)
    return table.refuse_column(name, "text or numbers as categories")


def _filled(numbers: Any) -> Ints:
    """Whole numbers of Arrow or Polars, with -1 for null."""
    return np.asarray(numbers.fill_null(-1).to_numpy(), dtype=np.int64)


def _text_levels(series: Any) -> tuple[Ints, list[Any], bool]:
    found: dict[str, int] = {}
    texts = series.to_list()
    numbers = (found.setdefault(text, len(found)) if isinstance(text, str) else -1 for text in texts)
    return np.fromiter(numbers, dtype=np.int64, count=len(texts)), list(found), False


def _number_levels(values: NDArray[Any], null: Bools | None) -> tuple[Ints, list[Any], bool]:
    present = np.ones(len(values), bool) if null is None else ~null
    if values.dtype.kind == "f":
        present &= ~np.isnan(values)
    distinct, number = np.unique(values[present], return_inverse=True)
    if distinct.dtype.kind == "f" and (np.abs(distinct) <= _EXACT64).all() and (distinct == np.floor(distinct)).all():
        distinct = distinct.astype(np.int64)  # whole numbers that became floats because some are missing
    levels = np.full(len(values), -1, dtype=np.int64)
    levels[present] = number.reshape(-1)
    return levels, distinct.tolist(), True


# --- the other roles -------------------------------------------------------------------------------------------------


def _labels(table: Table, name: str) -> Any:
    """Labels, masked where null."""
    values, null = _numbers(table, name)
    values = values.astype(np.float64)
    wrong = ~np.isfinite(values) if null is None else ~np.isfinite(values) & ~null
    if wrong.any():
        hint = '; .astype("Float64") turns NaN into null' if _never_null(table.column(name)) else ""
        table.refuse_row(name, wrong, f"expected a finite number, or null where there is no label; got {{}}{hint}")
    return values if null is None else np.ma.MaskedArray(values, null)


def _judges(table: Table, names: Sequence[str]) -> Any:
    matrix = np.ma.zeros((len(table), len(names)))
    for number, name in enumerate(names):
        matrix[:, number] = _labels(table, name)
    return matrix


def _weights(table: Table, name: str) -> Floats:
    values, null = _numbers(table, name)
    values = values.astype(np.float64)
    wrong = ~(np.isfinite(values) & (values >= 0))
    if null is not None:
        wrong |= null
    if wrong.any():
        table.refuse_row(name, wrong, "expected a finite weight >= 0, got {}")
    return values


def _query_weights(data: RankingData, table: Table, name: str) -> Floats:
    """One weight a query out of one a row; those of a query must be equal."""
    weights = _weights(table, name)
    if data.source_rows is not None:
        weights = weights[data.source_rows]
    of_query = weights[data.offsets[:-1]]
    query = list_numbers(data.offsets)
    wrong = np.flatnonzero(weights != of_query[query])
    if len(wrong):
        at = int(query[wrong[0]])
        raise ValueError(
            f"{table.where}: column {name!r} (query_weight): expected one weight for query {data.query_ids[at]}, "
            f"got {of_query[at]} and {weights[wrong[0]]}"
        )
    return of_query


def _refuse_null(table: Table, name: str, what: str) -> None:
    null = np.asarray(table.column(name).is_null().to_numpy(), dtype=bool)
    if null.any():
        table.refuse_row(name, null, what)


def _ids(table: Table, name: str) -> NDArray[Any]:
    _refuse_null(table, name, "expected an identifier, got none")
    if table.is_category(name) or table.is_text(name):
        return _texts(table, name)
    return np.array(as_ids(table.column(name).to_numpy(), name))


def _texts(table: Table, name: str) -> NDArray[Any]:
    """A column of text, or of categories (which may be numbers), without nulls."""
    if table.is_text(name):
        return np.array(table.column(name).to_list(), dtype=np.str_)
    levels, values, _ = _levels(table, name)
    return as_ids(values, name)[levels]


def _plain_values(table: Table, name: str) -> NDArray[Any]:
    """A column kept beside the features: numbers, truth values, dates or text. Only floats and dates can be missing."""
    if table.is_number(name):
        values, null = _numbers(table, name)
        values = np.array(values)
        if null is not None and values.dtype.kind != "f":
            table.refuse_row(
                name, null, f"a column of {table.types[name]} beside the features cannot keep a null; fill it"
            )
        if null is not None:
            values[null] = np.nan
        return values
    if table.is_category(name) or table.is_text(name):
        _refuse_null(table, name, "a column of text beside the features cannot keep a null; fill it")
        return _texts(table, name)
    if getattr(table.types[name], "time_zone", None) is not None:
        table.refuse_column(name, "dates without a time zone (convert to UTC, then drop the zone)")
    values = np.array(table.column(name).to_numpy())
    if values.dtype.kind != "M":
        table.refuse_column(name, "numbers, truth values, dates or text")
    return values
