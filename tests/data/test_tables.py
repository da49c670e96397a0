"""Frames, Parquet and Arrow: nothing is lost on the way out and back, and what is wrong is said with its place."""

from __future__ import annotations

import builtins
import io
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import calirank as cr
from calirank.data import _table_writing
from calirank.data._table_roles import TableRoles

SETTINGS = settings(max_examples=60, deadline=None)
BACKENDS = ["pandas", "polars", "pyarrow"]
FILES = [(cr.write_parquet, cr.read_parquet), (cr.write_arrow, cr.read_arrow)]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


# --- made data -------------------------------------------------------------------------------------------------------


@st.composite
def ranking_data(draw: st.DrawFn, named: bool = True) -> cr.RankingData:
    """Any data that a table can hold."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    rows = sum(sizes)

    def numbers(elements: Any, count: int = rows) -> Any:
        return draw(st.lists(elements, min_size=count, max_size=count))

    def ids(count: int, unique: bool) -> Any:
        kind = draw(st.sampled_from([st.integers(-(2**62), 2**62), TEXT]))
        return draw(st.lists(kind, min_size=count, max_size=count, unique=unique))

    width = draw(st.integers(1, 4))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    values = st.floats(allow_infinity=False, width=32 if dtype is np.float32 else 64)
    X = np.array(numbers(values, rows * width), dtype=dtype).reshape(rows, width)
    categories: dict[int, list[str]] = {}
    if draw(st.booleans()):
        names = draw(st.lists(TEXT, min_size=1, max_size=4, unique=True))
        X[:, 0] = numbers(st.sampled_from([*range(len(names)), np.nan]))
        categories[0] = names
    held: dict[str, Any] = {}
    supervision = draw(st.sampled_from(["none", "grades", "unjudged", "judges"]))
    if supervision in ("grades", "unjudged"):
        labels = np.array(numbers(st.floats(-100, 100)))
        mask = numbers(st.booleans()) if supervision == "unjudged" else np.zeros(rows, bool)
        held["y"] = np.ma.MaskedArray(labels, mask)
    elif supervision == "judges":
        count = draw(st.integers(1, 3))
        table = np.array(numbers(st.sampled_from([0.0, 1.0, 2.5, np.nan]), rows * count)).reshape(rows, count)
        held["judges"] = np.ma.masked_invalid(table)
    if draw(st.booleans()):
        held["query_weight"] = numbers(st.floats(0, 10), len(sizes))
    if draw(st.booleans()):
        held["doc_weight"] = numbers(st.floats(0, 10))
    if draw(st.booleans()):
        held["doc_ids"] = ids(rows, unique=False)
    days = st.integers(-20000, 20000).map(lambda day: np.datetime64(day, "D"))
    columns = {
        "text": np.array(numbers(TEXT), dtype=np.str_),
        "count": np.array(numbers(st.integers(-(2**63), 2**63 - 1)), dtype=np.int64),
        "price": np.array(numbers(st.floats()), dtype=np.float64),
        "seen": np.array(numbers(st.booleans())),
        "day": np.array(numbers(days), dtype="datetime64[D]"),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(columns)), unique=True))
    return cr.RankingData(
        X,
        sizes=sizes,
        query_ids=ids(len(sizes), unique=True),
        feature_names=[f"feature {number}" for number in range(width)] if named else None,
        categorical=categories,
        columns={name: columns[name] for name in chosen},
        **held,
    )


def roles_of(data: cr.RankingData) -> dict[str, Any]:
    """The arguments with which a frame of ``to_frame`` is read back."""
    return {
        "y": None if data.y is None else "label",
        "doc_id": None if data.doc_ids is None else "doc_id",
        "columns": list(data.columns),
        "query_weight": None if data.query_weight is None else "query_weight",
        "doc_weight": None if data.doc_weight is None else "doc_weight",
        "judges": None if data.judges is None else [f"judge_{n + 1}" for n in range(data.judges.counts.max())],
    }


def small(**changes: Any) -> pd.DataFrame:
    frame = pd.DataFrame({"qid": ["a", "a", "b"], "label": [1, 0, 2], "bm25": [0.5, 0.25, 1.0], "clicks": [3, 0, 1]})
    return frame.assign(**changes)


# --- there and back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@SETTINGS
@given(data=ranking_data())
def test_a_frame_of_any_library_gives_the_data_back(backend: Any, data: cr.RankingData) -> None:
    back = cr.from_frame(cr.to_frame(data, backend), **roles_of(data))
    if data.n_features == 1 and data.categories:  # codes alone do not say that they were float64
        data = data.replace(X=data.X.astype(np.float32))
    if backend == "pandas" and "day" in data.columns:  # it has no unit so coarse
        data = data.replace(columns={**data.columns, "day": data.columns["day"].astype("datetime64[s]")})
    assert back.equals(data)


@pytest.mark.parametrize(("write", "read"), FILES)
@SETTINGS
@given(data=ranking_data(named=False) | ranking_data())
def test_a_file_gives_the_data_back_without_arguments(write: Any, read: Any, data: cr.RankingData) -> None:
    stream = io.BytesIO()
    write(data, stream)
    assert read(io.BytesIO(stream.getvalue())).equals(data)


@pytest.mark.parametrize(("write", "read"), FILES)
def test_a_large_file_is_written_in_parts(tmp_path: Any, monkeypatch: Any, write: Any, read: Any) -> None:
    monkeypatch.setattr("calirank.data.tables._ROWS", 7)
    rng = np.random.default_rng(0)
    sizes = [3, 9, 1, 1, 2, 8, 4]
    rows = sum(sizes)
    X = np.stack([rng.integers(0, 3, rows), rng.normal(size=rows)], axis=1)
    labels = np.ma.MaskedArray(rng.integers(0, 3, rows).astype(float), [row == 20 for row in range(rows)])
    data = cr.RankingData(
        X, labels, sizes=sizes, categorical={0: ["x", "y", "z"]}, doc_ids=[f"d{n}" for n in range(rows)]
    )
    write(data, tmp_path / "data")
    assert read(tmp_path / "data").equals(data)


@pytest.mark.parametrize(("write", "read"), FILES)
def test_sparse_features_come_back_sparse_with_their_feature_base(write: Any, read: Any) -> None:
    X = sparse.csr_array(np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, np.nan]], dtype=np.float32))
    data = cr.RankingData(X, [1, 0, 1], sizes=[2, 1], feature_base=0)
    stream = io.BytesIO()
    write(data, stream)
    assert read(io.BytesIO(stream.getvalue())).equals(data)


def test_sparse_features_that_would_explode_are_refused(monkeypatch: Any) -> None:
    data = cr.RankingData(sparse.csr_array((2, 1000), dtype=np.float64), sizes=[2])
    monkeypatch.setattr(_table_writing, "DENSE_LIMIT", 2 * 1000 * 8)
    assert cr.to_frame(data, "pyarrow").num_columns == 1001
    monkeypatch.setattr(_table_writing, "DENSE_LIMIT", 2 * 1000 * 8 - 1)
    with pytest.raises(ValueError, match=r"0\.0 GiB .*write_npz"):
        cr.to_frame(data)


def test_data_without_features_or_without_queries_go_through(tmp_path: Any) -> None:
    for data in (cr.RankingData(y=[1, 0], sizes=[2]), cr.RankingData(np.zeros((0, 2)), [], sizes=[], query_ids=[])):
        cr.write_parquet(data, tmp_path / "data.parquet")
        assert cr.read_parquet(tmp_path / "data.parquet").equals(data)


def test_dates_of_every_unit_keep_their_value() -> None:
    for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"):
        days = np.array(["2020-01-06", "NaT"], dtype=f"datetime64[{unit}]")
        data = cr.RankingData(y=[1, 0], sizes=[2], columns={"day": days})
        for backend in BACKENDS:
            back = cr.from_frame(cr.to_frame(data, backend), columns=["day"])
            np.testing.assert_array_equal(back.columns["day"], days)
    late = np.array(["2020-01-06", "NaT"], dtype="datetime64[ps]")
    with pytest.raises(ValueError, match=r"'day': expected dates in units of .*; got ps"):
        cr.to_frame(cr.RankingData(y=[1, 0], sizes=[2], columns={"day": late}))


def test_categories_of_numbers_survive_where_the_library_has_them() -> None:
    data = cr.RankingData([[2], [0]], [1, 0], sizes=[2], feature_names=["size"], categorical={0: [30, 10, 20]})
    assert cr.from_frame(cr.to_frame(data, "pandas")).equals(data.replace(X=data.X.astype(np.float32)))
    assert cr.from_frame(cr.to_frame(data, "pyarrow")).equals(data.replace(X=data.X.astype(np.float32)))
    with pytest.raises(ValueError, match="'size': categories are text in Polars; got 30"):
        cr.to_frame(data, "polars")
    for write, read in FILES:
        stream = io.BytesIO()
        write(data, stream)
        assert read(io.BytesIO(stream.getvalue())).equals(data)


def test_codes_without_categories_stay_numbers() -> None:
    data = cr.RankingData([[2], [0]], sizes=[2], feature_names=["size"], categorical=["size"])
    frame = cr.to_frame(data)
    assert frame["size"].tolist() == [2.0, 0.0]
    assert cr.from_frame(frame, y=None, categorical={"size": ()}).equals(data)


def test_columns_can_be_called_otherwise() -> None:
    data = cr.RankingData([[1.0]], [1], qid=["q"], feature_names=["label"], doc_ids=["d"])
    with pytest.raises(ValueError, match="'label' would be y and features"):
        cr.to_frame(data)
    frame = cr.to_frame(data, "polars", y="grade", qid="query", doc_id="document")
    assert frame.columns == ["query", "document", "grade", "label"]
    assert cr.from_frame(frame, y="grade", qid="query", doc_id="document", features=["label"]).equals(data)


# --- missing values and precision ------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [pl.DataFrame, pa.table])
def test_null_labels_are_unjudged_and_nan_labels_are_refused(build: Any) -> None:
    frame = build({"qid": [1, 1, 1], "label": [1.0, None, 0.0], "x": [1.0, None, float("nan")]})
    data = cr.from_frame(frame)
    assert data.judged is not None
    assert data.judged.tolist() == [True, False, True]
    np.testing.assert_array_equal(data.X[:, 0], [1.0, np.nan, np.nan])
    with pytest.raises(ValueError, match=r"column 'label', row 2: expected a finite number, or null .*; got nan$"):
        cr.from_frame(build({"qid": [1, 1, 1], "label": [1.0, None, float("nan")], "x": [1, 2, 3]}))


def test_numpy_columns_of_pandas_have_no_null() -> None:
    frame = small(label=[1.0, np.nan, 0.0])
    with pytest.raises(ValueError, match=r"'label', row 1: .* got .*nan.*; \.astype\(\"Float64\"\)"):
        cr.from_frame(frame)
    data = cr.from_frame(frame.assign(label=frame["label"].astype("Float64")))
    assert data.judged is not None
    assert data.judged.tolist() == [True, False, True]


def test_infinite_labels_and_features_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'label', row 2: expected a finite number.* got .*inf"):
        cr.from_frame(small(label=[1.0, 0.0, np.inf]))
    with pytest.raises(ValueError, match="infinite value -inf in feature bm25 of query b, document 0"):
        cr.from_frame(small(bm25=[1.0, 0.0, -np.inf]))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([0.1, 2, 3], np.float32), np.float32),
        (np.array([0.1, 2, 3], np.float64), np.float64),
        (np.array([True, False, True]), np.float32),
        (np.array([1, 2, 2**24], np.int64), np.float32),
        (np.array([1, 2, -(2**24) - 1], np.int64), np.float64),
        (np.array([1, 2, 2**53], np.uint64), np.float64),
        (np.array([1, 2, 255], np.uint8), np.float32),
    ],
)
def test_precision_follows_what_is_exact(values: Any, expected: Any) -> None:
    frame = small(clicks=values, bm25=np.float32(0.5))
    for native in (frame, pl.from_pandas(frame), pa.table(frame)):
        data = cr.from_frame(native)
        assert data.X.dtype == expected
        assert data.X[:, 1].tolist() == values.tolist()


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_whole_numbers_that_no_float_holds_are_refused(value: int) -> None:
    with pytest.raises(ValueError, match=rf"'clicks', row 1: .*{value}.* beyond 2\*\*53"):
        cr.from_frame(small(clicks=[0, value, 0]))
    data = cr.from_frame(small(clicks=[0, value, 0]), columns=["clicks"])
    assert data.columns["clicks"].tolist() == [0, value, 0]


def test_nullable_columns_of_pandas_are_read() -> None:
    frame = small(
        seen=pd.array([True, None, False], dtype="boolean"),
        count=pd.array([None, 7, 8], dtype="Int64"),
        arrow=pd.array([1, None, 3], dtype="int64[pyarrow]"),
    )
    data = cr.from_frame(frame)
    np.testing.assert_array_equal(data.X[:, 2:], [[1, np.nan, 1], [np.nan, 7, np.nan], [0, 8, 3]])


def test_decimals_are_numbers() -> None:
    frame = pa.table({"qid": [1, 1], "label": [0, 1], "price": pa.array([1.5, None]).cast(pa.decimal128(5, 2))})
    np.testing.assert_array_equal(cr.from_frame(frame).X, [[1.5], [np.nan]])


def test_a_column_beside_the_features_keeps_no_null_that_its_type_cannot_say() -> None:
    for values in ([1, None, 3], [True, None, False], ["a", None, "b"]):
        with pytest.raises(ValueError, match=r"'note', row 1: a column of .* cannot keep a null; fill it"):
            cr.from_frame(pl.from_pandas(small()).with_columns(note=pl.Series(values)), columns=["note"])
    data = cr.from_frame(pl.from_pandas(small()).with_columns(note=pl.Series([1.5, None, 2])), columns=["note"])
    np.testing.assert_array_equal(data.columns["note"], [1.5, np.nan, 2])
    with pytest.raises(ValueError, match=r"'note' is Datetime.* expected dates without a time zone"):
        cr.from_frame(small(note=pd.to_datetime(["2020-01-01"] * 3, utc=True)), columns=["note"])
    with pytest.raises(ValueError, match=r"'note' is List.*; expected numbers, truth values, dates or text"):
        cr.from_frame(pl.from_pandas(small()).with_columns(note=pl.Series([[1], [2], [3]])), columns=["note"])


def test_what_the_caller_changes_later_does_not_change_the_data() -> None:
    arrays = {name: np.array([1.0, 1.0, 3.0]) for name in ("qid", "label", "bm25", "price", "doc_weight")}
    data = cr.from_frame(pd.DataFrame(arrays, copy=False), columns=["price"], doc_weight="doc_weight")
    for values in arrays.values():
        values[:] = 9
    assert data.query_ids.tolist() == [1, 3]
    for held in (data.y, data.X[:, 0], data.columns["price"], data.doc_weight):
        assert held.tolist() == [1, 1, 3]


# --- categories ------------------------------------------------------------------------------------------------------


def test_pandas_keeps_the_order_and_the_unused_categories() -> None:
    colour = pd.Categorical(["red", None, "blue"], categories=["red", "green", "blue"])
    data = cr.from_frame(small(colour=colour))
    assert data.categories == {2: ("red", "green", "blue")}
    np.testing.assert_array_equal(data.X[:, 2], [0, np.nan, 2])


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_codes_do_not_depend_on_the_order_of_rows(order: list[int]) -> None:
    words = np.array(["red", "blue", "green"])[order].tolist()
    base = {"qid": [1, 1, 1], "label": [0, 0, 1]}
    frames = [
        (pl.DataFrame(base).with_columns(colour=pl.Series(words, dtype=pl.Categorical)), None),
        (pa.table({**base, "colour": pa.array(words).dictionary_encode()}), None),
        (pl.DataFrame({**base, "colour": words}), ["colour"]),
        (pd.DataFrame({**base, "colour": words}), ["colour"]),
        (
            pd.DataFrame(
                {**base, "colour": pd.array(words, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))}
            ),
            None,
        ),
    ]
    for frame, categorical in frames:
        data = cr.from_frame(frame, categorical=categorical)
        assert data.categories == {0: ("blue", "green", "red")}
        assert [data.categories[0][int(code)] for code in data.X[:, 0]] == words


def test_numbers_can_be_categories() -> None:
    assert cr.from_frame(small(), categorical=["clicks"]).categories == {1: (0, 1, 3)}
    missing = cr.from_frame(small(clicks=[3, None, 1]), categorical=["clicks"])
    assert missing.categories == {1: (1, 3)}
    np.testing.assert_array_equal(missing.X[:, 1], [1, np.nan, 0])
    assert cr.from_frame(small(), categorical={"clicks": [3, 1, 0, 7]}).X[:, 1].tolist() == [0, 2, 1]


def test_arrow_dictionaries_of_several_chunks_are_one() -> None:
    chunks = pa.chunked_array(
        [pa.array(["b", "a"]).dictionary_encode(), pa.array(["c", None, "a"]).dictionary_encode()]
    )
    data = cr.from_frame(pa.table({"qid": [1] * 5, "label": [0] * 5, "word": chunks}))
    assert data.categories == {0: ("a", "b", "c")}
    np.testing.assert_array_equal(data.X[:, 0], [1, 0, 2, np.nan, 0])


def test_odd_categories_are_refused() -> None:
    days = pd.Categorical(pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01"]))
    with pytest.raises(ValueError, match="'day' is Categorical; expected text or numbers as categories, not Timestamp"):
        cr.from_frame(small(day=days))
    with pytest.raises(ValueError, match=r"'day' is Datetime.*; expected text or numbers as categories"):
        cr.from_frame(small(day=pd.to_datetime(["2020-01-01"] * 3)), categorical=["day"])
    with pytest.raises(ValueError, match=r"categorical: 'bm52' is not among the features. Did you mean 'bm25'"):
        cr.from_frame(small(), categorical=["bm52"])


# --- like another data set -------------------------------------------------------------------------------------------


def test_like_gives_the_features_their_order_and_their_codes() -> None:
    train = cr.from_frame(small(colour=pd.Categorical(["red", "blue", "red"])))
    frame = pl.DataFrame(
        {
            "colour": ["red", None, "blue"],
            "clicks": [1, 2, 3],
            "bm25": [0.0, 1.0, 2.0],
            "qid": [1, 1, 2],
            "label": [0, 1, 0],
        }
    )
    test = cr.from_frame(frame, like=train)
    assert test.feature_names == train.feature_names == ("bm25", "clicks", "colour")
    assert test.categories == train.categories == {2: ("blue", "red")}
    np.testing.assert_array_equal(test.X, [[0, 1, 1], [1, 2, np.nan], [2, 3, 0]])


def test_like_refuses_other_features_and_unknown_categories() -> None:
    train = cr.from_frame(small(colour=pd.Categorical(["red", "blue", "red"])))
    frame = small(colour=["red", "bleu", "blue"])
    with pytest.raises(ValueError, match=r"'colour', row 1: category 'bleu' is not known. Did you mean 'blue'"):
        cr.from_frame(frame, like=train)
    missing = cr.from_frame(frame, like=train, unknown_category="missing")
    np.testing.assert_array_equal(missing.X[:, 2], [1, np.nan, 0])
    with pytest.raises(ValueError, match=r"the frame lacks features of like=: 'clicks'. Did you mean 'click'"):
        cr.from_frame(frame.rename(columns={"clicks": "click"}), like=train)
    with pytest.raises(ValueError, match="differ from those of like= in 'price'"):
        cr.from_frame(frame.assign(price=1), like=train)
    kept = cr.from_frame(frame.assign(price=1), like=train, columns=["price"], unknown_category="missing")
    assert kept.feature_names == train.feature_names
    left = cr.from_frame(frame.assign(price=1), like=train, features=train.feature_names, unknown_category="missing")
    assert left.feature_names == train.feature_names
    with pytest.raises(ValueError, match="differ from those of like= in 'clicks', 'colour'"):
        cr.from_frame(frame, like=train, features=["bm25"])
    with pytest.raises(ValueError, match="'bm25' is Categorical; expected numbers, as in like="):
        cr.from_frame(frame.assign(bm25=pd.Categorical(["a", "b", "a"])), like=train)
    with pytest.raises(ValueError, match="categorical: 'clicks' is not categorical in like="):
        cr.from_frame(frame, like=train, categorical=["clicks"])
    with pytest.raises(ValueError, match="like: its features have no names"):
        cr.from_frame(frame, like=train.replace(feature_names=None))
    with pytest.raises(ValueError, match='unknown_category: expected "error" or "missing"'):
        cr.from_frame(frame, unknown_category="drop")


# --- roles -----------------------------------------------------------------------------------------------------------


def test_missing_columns_are_named_with_the_nearest_one() -> None:
    frame = small()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"y": "lable"}, "y: the frame has no column 'lable'; y=None is data without labels. Did you mean 'label'?"),
        ({"qid": "qids"}, "qid: the frame has no column 'qids'. Did you mean 'qid'?"),
        ({"features": ["bm2"]}, "features: the frame has no column 'bm2'. Did you mean 'bm25'?"),
        ({"columns": ["click"]}, "columns: the frame has no column 'click'. Did you mean 'clicks'?"),
        ({"query_weight": "weight"}, "query_weight: the frame has no column 'weight'."),
        ({"judges": ["a"], "y": None}, "judges: the frame has no column 'a'."),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError) as error:
            cr.from_frame(frame, **arguments)
        assert str(error.value) == message


def test_columns_without_a_role_are_not_guessed() -> None:
    with pytest.raises(ValueError, match=r"no feature can be made of 'title' \(String\), 'day' \(Datetime.*columns="):
        cr.from_frame(small(title=["x", "y", "z"], day=pd.to_datetime(["2020-01-01"] * 3)))
    for name in ("doc_id", "query_weight", "doc_weight", "judge_3"):
        with pytest.raises(ValueError, match=f"'{name}' has no role and would become a feature"):
            cr.from_frame(small(**{name: [1, 2, 3]}))
        assert cr.from_frame(small(**{name: [1, 2, 3]}), features=["bm25"]).n_features == 1
    with pytest.raises(ValueError, match="'label' has no role"):
        cr.from_frame(small(), y=None)
    with pytest.raises(
        ValueError, match=r"'title' is String; expected numbers, or a category: categorical=\['title'\]"
    ):
        cr.from_frame(small(title=["x", "y", "z"]), features=["bm25", "title"])


def test_a_column_has_one_role() -> None:
    for arguments in (
        {"features": ["bm25", "label"]},
        {"features": ["bm25", "bm25"]},
        {"columns": ["label"]},
        {"doc_id": "qid"},
        {"judges": ["clicks", "clicks"], "y": None, "features": ["bm25"]},
    ):
        with pytest.raises(ValueError, match="is given twice, as"):
            cr.from_frame(small(), **arguments)
    with pytest.raises(ValueError, match="got judges and y='label'; y=None leaves the label out"):
        cr.from_frame(small(), judges=["clicks"])
    with pytest.raises(TypeError, match="columns: expected a list of column names, got 'bm25'"):
        cr.from_frame(small(), columns="bm25")


def test_judges_and_weights() -> None:
    frame = pl.DataFrame(
        {
            "qid": ["a", "a", "b"],
            "x": [1, 2, 3],
            "ann": [1, 0, None],
            "bob": [2, None, 1],
            "w": [3, 3, 1],
            "v": [1, 2, 0],
        }
    )
    data = cr.from_frame(frame, judges=["ann", "bob"], query_weight="w", doc_weight="v")
    assert data.judges is not None
    np.testing.assert_array_equal(data.judges.matrix(0), [[1, 0], [2, np.nan]])
    np.testing.assert_array_equal(data.judges.matrix(1), [[1]])
    assert (data.query_weight.tolist(), data.doc_weight.tolist()) == ([3, 1], [1, 2, 0])
    assert data.feature_names == ("x",)
    with pytest.raises(ValueError, match=r"'v' \(query_weight\): expected one weight for query a, got 1.0 and 2.0"):
        cr.from_frame(frame, y=None, features=["x"], query_weight="v")
    with pytest.raises(ValueError, match="'bob', row 1: expected a finite weight >= 0, got None"):
        cr.from_frame(frame, y=None, features=["x"], doc_weight="bob")


def test_rows_of_a_query_that_lie_apart_are_grouped_on_demand() -> None:
    frame = small(qid=["a", "b", "a"], w=[1, 2, 1])
    with pytest.raises(ValueError, match="query a do not lie together"):
        cr.from_frame(frame, query_weight="w")
    data = cr.from_frame(frame, query_weight="w", group_rows=True)
    assert (data.query_ids.tolist(), data.query_weight.tolist(), data.y.tolist()) == (["a", "b"], [1, 2], [1, 2, 0])
    assert data.in_caller_order(data.X[:, 0]).tolist() == [0.5, 0.25, 1.0]


def test_identifiers_of_every_type() -> None:
    for values, expected in (
        ([7, 7, 8], [7, 8]),
        (["x", "x", "y"], ["x", "y"]),
        (pd.Categorical(["x", "x", "y"]), ["x", "y"]),
        (pd.Categorical([7, 7, 8], categories=[9, 8, 7]), [7, 8]),
        (pd.array([7, 7, 8], dtype="Int64"), [7, 8]),
        ([7.0, 7.0, 8.0], [7, 8]),
    ):
        assert cr.from_frame(small(qid=values)).query_ids.tolist() == expected
    with pytest.raises(ValueError, match="column 'qid', row 1: expected an identifier, got none"):
        cr.from_frame(pl.from_pandas(small()).with_columns(qid=pl.Series([1, None, 2])))


def test_the_index_of_pandas_is_no_column(tmp_path: Any) -> None:
    frame = small().set_index(pd.Index([5, 9, 7], name="number"))
    assert cr.from_frame(frame).feature_names == ("bm25", "clicks")
    frame.to_parquet(tmp_path / "frame.parquet")
    assert cr.read_parquet(tmp_path / "frame.parquet").feature_names == ("bm25", "clicks")
    small().set_index("qid").to_parquet(tmp_path / "frame.parquet")
    assert cr.read_parquet(tmp_path / "frame.parquet").query_ids.tolist() == ["a", "b"]


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected a data frame \(pandas, .*got numpy.ndarray$"):
        cr.from_frame(np.zeros((2, 2)))
    with pytest.raises(TypeError, match=r"LazyFrame; \.collect\(\) makes a frame of it"):
        cr.from_frame(pl.from_pandas(small()).lazy())
    with pytest.raises(ValueError, match="expected text as column names, got 0"):
        cr.from_frame(pd.DataFrame(np.zeros((2, 2))))
    with pytest.raises(ValueError, match="bm25"):
        cr.from_frame(pd.concat([small(), small()[["bm25"]]], axis=1))
    assert cr.from_frame(nw.from_native(small())).n_docs == 3


# --- what a table cannot hold ----------------------------------------------------------------------------------------


def test_what_a_table_cannot_hold_is_refused_with_what_can() -> None:
    base = cr.RankingData([[1.0], [2.0]], sizes=[2])
    preferences = base.replace(preferences=cr.Preferences([0], [1]))
    rankings = base.replace(rankings=cr.Rankings([(1, 0)]))
    posterior = base.replace(y=[1, 0], posterior=cr.Judgements([[[1, 0]]]))
    weighted = base.replace(judges=cr.Judgements([[[1, 0], [0, 1]]], weight=[2, 1]))
    silent = base.replace(judges=cr.Judgements([[[1, 0], [np.nan, np.nan]]]))
    twice = cr.RankingData(y=[1, 0], sizes=[1, 1], query_ids=["q", "q"])
    mixed = cr.RankingData(y=[1, 0], sizes=[1, 1], query_ids=["q", 7])
    for data, message in (
        (preferences, r"cannot hold preferences: data.save\(folder\) keeps them, cr.write_preferences"),
        (rankings, "cannot hold rankings: .*cr.write_rankings"),
        (posterior, "cannot hold the distribution"),
        (weighted, "cannot hold weights of judgements"),
        (silent, "cannot hold a judgement without any label"),
        (twice, "several lists of a query.*'q' stands twice"),
        (mixed, "query_ids: a table has identifiers of one type; these are int and str"),
    ):
        for write in (cr.to_frame, lambda data: cr.write_parquet(data, io.BytesIO())):
            with pytest.raises(ValueError, match=message):
                write(data)
    with pytest.raises(ValueError, match="backend: expected 'pandas', 'polars', 'pyarrow'; got 'dask'"):
        cr.to_frame(base, "dask")


# --- files of others -------------------------------------------------------------------------------------------------


def test_files_of_others_take_the_arguments_of_frames(tmp_path: Any) -> None:
    frame = small(title=["x", "y", "z"]).rename(columns={"label": "grade", "qid": "query"})
    expected = cr.from_frame(frame, y="grade", qid="query", columns=["title"])
    frame.to_parquet(tmp_path / "frame.parquet")
    assert cr.read_parquet(tmp_path / "frame.parquet", y="grade", qid="query", columns=["title"]).equals(expected)
    pyarrow.feather.write_feather(frame, str(tmp_path / "frame.feather"), compression="lz4")
    assert cr.read_arrow(tmp_path / "frame.feather", y="grade", qid="query", columns=["title"]).equals(expected)
    with pytest.raises(ValueError, match=r"frame.parquet has no column 'qid'\."):
        cr.read_parquet(tmp_path / "frame.parquet")
    with pytest.raises(TypeError, match="no argument is called 'querry'"):
        cr.read_parquet(tmp_path / "frame.parquet", querry="query")


def test_an_argument_goes_before_the_note(tmp_path: Any) -> None:
    data = cr.from_frame(small(price=[1.0, 2.0, 3.0]), columns=["price"])
    cr.write_parquet(data, tmp_path / "data.parquet")
    weighted = cr.read_parquet(tmp_path / "data.parquet", y=None, columns=[], doc_weight="price", features=["clicks"])
    assert weighted.doc_weight.tolist() == [1, 2, 3]
    assert weighted.feature_names == ("clicks",)
    assert weighted.y is None
    assert weighted.columns == {}


def test_only_needed_columns_are_read(tmp_path: Any, monkeypatch: Any) -> None:
    small(other=[1, 2, 3]).to_parquet(tmp_path / "frame.parquet")
    asked: list[list[str]] = []
    read = pq.ParquetFile.read

    def spy(self: Any, columns: Any = None, **rest: Any) -> Any:
        asked.append(columns)
        return read(self, columns=columns, **rest)

    monkeypatch.setattr(pq.ParquetFile, "read", spy)
    cr.read_parquet(tmp_path / "frame.parquet", features=["bm25"])
    assert asked == [["qid", "label", "bm25"]]


@pytest.mark.parametrize(("write", "read"), FILES)
def test_several_files_are_one_set(tmp_path: Any, write: Any, read: Any) -> None:
    data = cr.from_frame(small(colour=pd.Categorical(["red", "blue", "red"])))
    write(data[:1], tmp_path / "1")
    write(data[1:], tmp_path / "2")
    assert read([tmp_path / "1", tmp_path / "2"]).equals(data)
    write(data[1:].replace(feature_names=["bm25", "shares", "colour"]), tmp_path / "2")
    with pytest.raises(ValueError, match=r"1 and .*2 cannot be read as one: their notes on the columns differ"):
        read([tmp_path / "1", tmp_path / "2"])
    with pytest.raises(ValueError, match="expected at least one file"):
        read([])


def test_several_files_of_others_are_one_set(tmp_path: Any) -> None:
    def write(name: str, frame: pd.DataFrame) -> Any:
        frame.to_parquet(tmp_path / name)
        return tmp_path / name

    whole = small(colour=pd.Categorical(["red", "blue", "red"]))
    first = write("1", whole[:1].assign(colour=pd.Categorical(["red"])))
    rest = write("2", whole[1:].assign(colour=pd.Categorical(["blue", "red"])))
    data = cr.read_parquet([first, rest])  # query a goes on in the second file
    assert data.sizes.tolist() == [2, 1]
    assert data.categories == {2: ("blue", "red")}
    assert data.X[:, 2].tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match=r"2 has no column 'clicks', which .*1 has"):
        cr.read_parquet([first, write("2", whole[1:].drop(columns="clicks"))])
    with pytest.raises(ValueError, match=r"2 has the column 'price', which .*1 has not"):
        cr.read_parquet([first, write("2", whole[1:].assign(price=1))])
    with pytest.raises(ValueError, match="1 and 1 more cannot be read as one"):
        cr.read_parquet([first, write("2", whole[1:].assign(clicks=["a", "b"]))])


def test_an_arrow_stream_is_read(tmp_path: Any) -> None:
    table = pa.table(small())
    with pa.ipc.new_stream(str(tmp_path / "stream"), table.schema) as writer:
        writer.write_table(table)
    assert cr.read_arrow(tmp_path / "stream").equals(cr.from_frame(table))


def test_like_works_for_files(tmp_path: Any) -> None:
    train = cr.from_frame(small())
    small(clicks=[9, 9, 9])[["clicks", "bm25", "qid", "label"]].to_parquet(tmp_path / "test.parquet")
    assert cr.read_parquet(tmp_path / "test.parquet", like=train).feature_names == ("bm25", "clicks")


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("write", "read"), FILES)
def test_damaged_files_are_refused_by_name(tmp_path: Any, write: Any, read: Any) -> None:
    path = tmp_path / "data.bin"
    write(cr.from_frame(small()), path)
    whole = path.read_bytes()
    for damaged in (
        whole[: len(whole) // 2],
        b"PAR1" + b"\0" * 40 + b"PAR1",
        b"2 qid:1 1:0.5\n",
        b"ARROW1\0\0" + b"x" * 99,
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"data\.bin: expected a(n Arrow| Parquet) file, got a damaged"):
            read(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"data\.bin: expected a.* file, got an empty file"):
        read(path)
    with pytest.raises(ValueError, match="expected a file, got a directory"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent")


@pytest.mark.parametrize("code", [7, -5])
def test_a_code_that_has_no_category_is_refused(tmp_path: Any, code: int) -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, code, 1]), pa.array(["a", "b"]), safe=False)
    table = pa.table({"qid": [1, 1, 1], "label": [0, 0, 1], "word": codes})
    with pa.ipc.new_file(str(tmp_path / "data.arrow"), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(ValueError, match=r"data\.arrow: expected an Arrow file, got a damaged"):
        cr.read_arrow(tmp_path / "data.arrow")


def test_a_damaged_note_is_refused(tmp_path: Any) -> None:
    table = pa.table(small())
    for note in (
        b"{",
        b"[]",
        b'{"format": "calirank table", "version": 2}',
        b'{"format": "calirank table", "version": 1}',
    ):
        pq.write_table(table.replace_schema_metadata({b"calirank": note}), tmp_path / "data.parquet")
        with pytest.raises(ValueError, match=r"data\.parquet: the note 'calirank' in the file is damaged"):
            cr.read_parquet(tmp_path / "data.parquet")


def test_without_pyarrow_the_extra_is_named(monkeypatch: Any) -> None:
    imported = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr("importlib.import_module", absent)
    for call in (
        lambda: cr.read_parquet("x.parquet"),
        lambda: cr.write_arrow(cr.from_frame(small()), "x.arrow"),
    ):
        with pytest.raises(ImportError, match=r'the extra "parquet".*pip install "calirank\[parquet\]"'):
            call()


# --- categories that are numbers of NumPy ----------------------------------------------------------------------------


@pytest.mark.parametrize("values", [np.array([10, 20]), np.array(["a", "b"]), [np.int64(10), np.float64(0.5)]])
def test_categories_of_numpy_are_written_as_pythons(values: Any) -> None:
    plain = tuple(value.item() for value in values)
    roles = TableRoles(categorical={"f": values, "g": None})
    assert roles.categorical == {"f": plain, "g": None}
    assert {type(value) for value in roles.categorical["f"]} <= {int, float, str}
    assert TableRoles().changed({"categorical": {"f": values}}).categorical == {"f": plain}
    assert b'"format"' in roles.note()


def test_data_with_categories_of_numpy_is_written_as_parquet() -> None:
    data = cr.RankingData([[0.0], [1.0]], [1, 0], sizes=[2], feature_names=["f"], categorical={0: np.array([10, 20])})
    target = io.BytesIO()
    cr.write_parquet(data, target)
    assert cr.read_parquet(io.BytesIO(target.getvalue())).categories == {0: (10, 20)}
