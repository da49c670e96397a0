"""LETOR text: the compiled reader against the plain one, what it refuses and how it says so, and the writer."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import os
import re
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from scipy import sparse

import calirank as cr
from calirank._kernel import set_threads
from calirank.data import letor
from calirank.data.ragged import query_ids_of_text
from data import reference_letor as reference

EXAMPLE = b"2 qid:1 1:0.5 3:1 #docid = A\n0 qid:1 2:4e-1 #docid = B\n1 qid:7 1:-0.0 2:2 3:3 #docid = C\n"


@pytest.fixture(autouse=True)
def _restore_threads() -> Any:
    yield
    set_threads(None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("letor")


def read(text: bytes, *, block_size: int = 1 << 20, **options: Any) -> cr.RankingData:
    """Read bytes from a stream, with blocks of the given size."""
    plan = letor._plan(*(options.pop(name, default) for name, default in PLAN.items()))
    return letor._read([io.BytesIO(text)], plan, block_size=block_size, **options)


PLAN = {"base": 1, "n_features": None, "like": None, "dense": "auto"}


def bits(values: Any) -> list[int]:
    """Floats by their bits, so that -0.0 differs from 0.0."""
    array = np.ascontiguousarray(values)
    return array.view({4: np.int32, 8: np.int64}[array.itemsize]).ravel().tolist()


def assert_equal(data: cr.RankingData, expected: reference.Reference) -> None:
    assert data.n_features == expected.width
    assert data.feature_base == expected.base
    if isinstance(data.X, np.ndarray):
        assert data.X.dtype == np.float32
        assert np.array_equal(data.X.view(np.int32), expected.X.view(np.int32))
    else:
        assert (data.X.dtype, data.X.indices.dtype) == (np.float32, np.int32)
        stored = [sorted((c, v) for c, v in row.items() if v != 0 or np.signbit(v)) for row in expected.rows]
        assert np.array_equal(data.X.indptr, np.cumsum([0, *map(len, stored)]))
        assert data.X.indices.tolist() == [column for row in stored for column, _ in row]
        assert bits(data.X.data) == bits(np.array([value for row in stored for _, value in row], dtype=np.float32))
    assert bits(data.y) == bits(expected.y)
    assert data.offsets.tolist() == expected.offsets
    assert data.query_ids.dtype.kind == expected.query_ids.dtype.kind
    assert data.query_ids.tolist() == expected.query_ids.tolist()
    assert (None if data.doc_ids is None else data.doc_ids.tolist()) == expected.doc_ids


def refused_line(error: ValueError) -> int | None:
    """The line that a message of the form ``name:line:column: ...`` blames."""
    found = re.match(r"<stream>:(\d+):(\d+): expected .*, got ", str(error), re.DOTALL)
    assert found or str(error).startswith("groups: "), str(error)
    return int(found.group(1)) if found else None


def assert_twins_agree(text: bytes, **options: Any) -> None:
    """Both readers accept with equal values, or both refuse on the same line."""
    groups = {"groups": options["sizes"]} if options.get("sizes") else {}
    ours = {name: value for name, value in options.items() if name in (*PLAN, "block_size")} | groups
    plain = {name: value for name, value in options.items() if name in ("base", "n_features", "sizes")}
    expected: reference.Reference | reference.RefusedError
    try:
        expected = reference.read(text, **plain)
    except reference.RefusedError as refusal:
        expected = refusal
    if isinstance(expected, reference.Reference):
        assert_equal(read(text, **ours), expected)
    else:
        with pytest.raises(ValueError) as caught:
            read(text, **ours)
        assert refused_line(caught.value) == expected.line, str(caught.value)


# --- real data -------------------------------------------------------------------------------------------------------

MQ2007 = [f"letor4/MQ2007/S{part}.txt.xz" for part in range(1, 6)]
MSLR_COUNTS = {
    "web30k_fold1_train_head": (42, 4955, [2758, 1448, 665, 54, 30]),
    "web30k_fold1_test_head": (42, 4974, [2826, 1440, 576, 98, 34]),
    "q10-99_train": (54, 5555, [3117, 1613, 695, 90, 40]),
    "q10-99_vali": (18, 1734, [980, 492, 231, 26, 5]),
    "q10-99_test": (18, 1900, [1023, 604, 243, 20, 10]),
    "more_train": (10, 980, [560, 289, 116, 9, 6]),
    "more_test": (12, 1339, [473, 548, 266, 40, 12]),
}
LIGHTGBM_COUNTS = {
    "rank.train": (201, 3005, [645, 1211, 858, 222, 69]),
    "rank.test": (50, 768, [206, 256, 252, 44, 10]),
}


def counts(data: cr.RankingData) -> tuple[int, int, list[int]]:
    return len(data), data.n_docs, np.bincount(data.y.astype(int)).tolist()


@pytest.mark.parametrize("name", [*MQ2007, *(f"mslr/{name}.txt.xz" for name in MSLR_COUNTS)])
def test_real_files_equal_the_reference(real_data: Path, name: str) -> None:
    path = real_data / name
    assert_equal(cr.read_letor(path), reference.read(lzma.decompress(path.read_bytes())))


@pytest.mark.parametrize("name", MSLR_COUNTS)
def test_mslr_has_the_counts_of_its_readme(real_data: Path, name: str) -> None:
    data = cr.read_letor(real_data / f"mslr/{name}.txt.xz")
    assert counts(data) == MSLR_COUNTS[name]
    assert data.X.shape[1] == 136


def test_mq2007_has_the_counts_of_its_readme(real_data: Path) -> None:
    data = cr.read_letor([real_data / name for name in MQ2007])
    assert counts(data) == (1692, 69623, [51632, 14128, 3863])
    assert (data.sizes.min(), np.median(data.sizes), data.sizes.max()) == (6, 40, 147)
    best = np.maximum.reduceat(data.y, data.offsets[:-1])
    assert (best == 0).sum() == 237
    constant = np.flatnonzero(data.X.min(axis=0) == data.X.max(axis=0)) + 1
    assert constant.tolist() == [6, 7, 8, 9, 10]


@pytest.mark.parametrize("name", LIGHTGBM_COUNTS)
def test_lightgbm_files_find_their_query_file(real_data: Path, name: str) -> None:
    path = real_data / f"lightgbm-lambdarank/{name}.xz"
    sizes = [int(line) for line in path.with_suffix(".query").read_text().split()]
    data = cr.read_letor(path)
    assert_equal(data, reference.read(lzma.decompress(path.read_bytes()), sizes=sizes))
    assert counts(data) == LIGHTGBM_COUNTS[name]
    assert data.n_features == 300


def test_a_test_set_takes_the_width_of_its_training_set(real_data: Path) -> None:
    train = cr.read_letor(real_data / "lightgbm-lambdarank/rank.train.xz", base=0)
    test = cr.read_letor(real_data / "lightgbm-lambdarank/rank.test.xz", like=train)
    assert (test.n_features, test.feature_base) == (train.n_features, 0) == (301, 0)


def test_pytorchltr_fixture(real_data: Path) -> None:
    path = real_data / "fixtures/pytorchltr_dataset.txt.xz"
    data = cr.read_letor(path)
    assert_equal(data, reference.read(lzma.decompress(path.read_bytes())))
    assert (len(data), data.n_docs) == (4, 39)


@pytest.mark.parametrize("part", ["train", "vali", "test"])
def test_files_that_repeat_features_are_refused_where_the_reference_refuses_them(real_data: Path, part: str) -> None:
    path = real_data / f"fixtures/tfranking_{part}.txt.xz"
    with pytest.raises(reference.RefusedError) as refusal:
        reference.read(lzma.decompress(path.read_bytes()))
    with pytest.raises(ValueError, match=r"expected each feature once, got \d+ again after column") as caught:
        cr.read_letor(path)
    assert str(caught.value).startswith(f"{path}:{refusal.value.line}:")


# --- numbers ---------------------------------------------------------------------------------------------------------


def decimal_text(value: Fraction, digits: int) -> str:
    with localcontext() as context:
        context.prec = digits
        return str(Decimal(value.numerator) / Decimal(value.denominator))


@st.composite
def near_halfway(draw: DrawFn) -> str:
    """A decimal at, or a little beside, the middle between two float32 (denormal ones too)."""
    pattern = draw(st.integers(0, 0x7F7FFFFE))
    low, high = np.array([pattern, pattern + 1], dtype=np.int32).view(np.float32).tolist()
    middle = (Fraction(low) + Fraction(high)) / 2
    step = Fraction(1, 10 ** draw(st.integers(20, 70))) * middle * draw(st.sampled_from([-1, 0, 0, 1]))
    text = decimal_text(middle + step, digits=90 if step else 1200)
    digits = draw(st.sampled_from([None, 16, 17, 18, 19, 20, 25]))
    if digits is not None:
        with localcontext() as context:
            context.prec = digits
            text = str(+Decimal(text))
    return draw(st.sampled_from(["", "-", "+"])) + text


ODD_NUMBERS = [
    *(
        "0",
        "-0",
        "-0.0",
        "5.",
        ".5",
        "1e-400",
        "0e999999999999",
        "16777217",
        "9007199254740993",
        "99999999999999999e-17",
    ),
    *("1e-45", "7e-46", "1.17549435e-38", "3.4028235e38", "3.40282356e38", "3.4028235677973366e38", "1e39", "1e309"),
    *("340282356779733661637539395458142568447", "340282356779733661637539395458142568448", "123456789012345678901"),
    *("00000000000000000000000001", "0." + "0" * 400 + "1e400", "1" + "0" * 400 + "e-400", "1e-37000"),
]

NUMBERS: SearchStrategy[str] = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda x: repr(float(x))),
    st.floats(allow_nan=False, allow_infinity=False, max_value=3e38, min_value=-3e38).map(repr),
    st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.from_regex(r"0\.0{0,60}[0-9]{1,30}", fullmatch=True),
    near_halfway(),
    st.sampled_from(ODD_NUMBERS),
)


def float32_of(text: str) -> float | None:
    value = float(text)
    return None if abs(value) >= 2.0**128 - 2.0**103 else float(np.float32(value))


@settings(deadline=None, max_examples=300)
@given(st.lists(NUMBERS, min_size=1, max_size=30))
def test_values_are_python_floats_rounded_to_float32(texts: list[str]) -> None:
    kept = [text for text in texts if float32_of(text) is not None]
    if kept:
        lines = "".join(f"0 qid:1 1:{text}\n" for text in kept)
        expected = np.array([float(text) for text in kept]).astype(np.float32)
        assert bits(read(lines.encode()).X) == bits(expected)
    for row, text in enumerate(texts):
        if float32_of(text) is None:
            with pytest.raises(ValueError, match=f"<stream>:{row + 1}:11: expected a value within float32"):
                read("".join(f"0 qid:1 1:{t if float32_of(t) is None else 0}\n" for t in texts).encode())
            break


@settings(deadline=None, max_examples=150)
@given(st.lists(NUMBERS.filter(lambda text: not np.isinf(float(text))), min_size=1, max_size=30))
def test_labels_are_python_floats(texts: list[str]) -> None:
    data = read("".join(f"{text} qid:1 1:0\n" for text in texts).encode())
    assert bits(data.y) == bits(np.array([float(text) for text in texts]))


@pytest.mark.parametrize("digits", [7, 9, 12, 15, 16, 17, 18, 19, 25])
def test_many_random_decimals(digits: int) -> None:
    """Twenty thousand decimals of each length, spread over the range of float32 (and below it)."""
    random = np.random.default_rng(digits)
    whole = ["".join(row) for row in random.integers(0, 10, (20_000, digits)).astype(str)]
    point, exponent = random.integers(0, digits + 1, 20_000), random.integers(-60, 20, 20_000)
    forms = random.integers(0, 3, 20_000)
    texts = [
        (f"{w[:p]}.{w[p:]}" if p > 0 or digits else w) + ("" if form else f"e{e}")
        for w, p, e, form in zip(whole, point, exponent, forms, strict=True)
    ]
    kept = [text for text in texts if float32_of(text) is not None]
    data = read("".join(f"0 qid:1 1:{text}\n" for text in kept).encode())
    assert bits(data.X) == bits(np.array(kept, dtype=np.float64).astype(np.float32))


# --- the twins on odd and on damaged text ----------------------------------------------------------------------------

BLANKS = st.sampled_from([" ", " ", " ", "  ", "\t", " \t "])
COMMENTS = st.sampled_from(
    ["", "", "#", "# docid", "#docid = X", "#docid=Ünïcode inc = 1", " #\tdocid\t= a#b ", "#x #docid = 1"]
)
IDS = st.one_of(
    st.integers(0, 12).map(str), st.sampled_from(["a", "007", "-0", "+1", "q-1", "日本", "9223372036854775808"])
)


@st.composite
def letor_text(draw: DrawFn, *, lowest: int = 1) -> bytes:
    """Well-formed text, apart from values that may be beyond float32: blanks, comments and line ends of all kinds."""
    numbers = st.one_of(st.integers(lowest, 6), st.integers(lowest, 6), st.integers(lowest, 200), st.just(1_000_000))
    lines = []
    docs = draw(st.booleans())
    for identifier in draw(st.lists(IDS, min_size=1, max_size=5, unique=True)):
        for _ in range(draw(st.integers(1, 3))):
            blank = draw(BLANKS)
            ids = draw(st.lists(numbers, max_size=8, unique=True))
            features = [f"{'0' * draw(st.sampled_from([0, 0, 0, 1, 12]))}{j}:{draw(NUMBERS)}" for j in ids]
            comment = f"#docid = d{len(lines)}" if docs else draw(COMMENTS)
            end = draw(st.sampled_from(["\n", "\n", "\r\n", " \n", "\n\n", "\n \t\n", "\n# a comment\n"]))
            lines.append(
                blank.join([draw(st.sampled_from(["0", "1", "2.5", "-1", "1e2"])), f"qid:{identifier}", *features])
                + comment
                + end
            )
    text = draw(st.sampled_from(["", "\ufeff"])) + "".join(lines)
    return (text if draw(st.booleans()) else text.rstrip("\n")).encode()


@settings(deadline=None, max_examples=150)
@given(letor_text(), st.sampled_from([1, 16, 100, 1 << 20]), st.sampled_from([True, False, "auto"]))
def test_well_formed_text_equals_the_reference(text: bytes, block_size: int, dense: Any) -> None:
    if dense is True and b"1000000:" in text:
        dense = "auto"
    assert_twins_agree(text, block_size=block_size, dense=dense)


@settings(deadline=None, max_examples=60)
@given(
    letor_text(lowest=0),
    st.sampled_from([0, 1, "auto"]),
    st.sampled_from([None, 5, 300]),
    st.sampled_from([1, 1 << 20]),
)
def test_bases_and_widths_equal_the_reference(text: bytes, base: Any, n_features: int | None, block_size: int) -> None:
    if base == "auto":
        n_features = None
    assert_twins_agree(text, base=base, n_features=n_features, block_size=block_size, dense=False)


@settings(deadline=None, max_examples=300)
@given(letor_text(), st.data())
def test_mutations_are_accepted_or_refused_as_by_the_reference(text: bytes, data: st.DataObject) -> None:
    pieces = [
        b" ",
        b"\n",
        b"\r",
        b"\t",
        b":",
        b"#",
        b"\0",
        b"-",
        b"+",
        b".",
        b"e",
        b"0",
        b"9",
        b"x",
        b"_",
        b"\xff",
        b"qid:",
    ]
    pieces += [b"inf", b"nan", b"0x1", b"\x0b", b" 1:1", b" 2147483647:1", b"1e39", b"docid = \xc3", b"#docid = \xc3 "]
    mutant = bytearray(text)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(mutant)))
        stop = start + data.draw(st.sampled_from([0, 0, 1, 2, 8]))
        mutant[start:stop] = data.draw(st.sampled_from([b"", *pieces]))
    assert_twins_agree(bytes(mutant), block_size=data.draw(st.sampled_from([1, 50, 1 << 20])), dense=False)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(-1, 1), st.sampled_from([1, 1 << 20]))
def test_groups_equal_the_reference(sizes: list[int], surplus: int, block_size: int) -> None:
    rows = max(1, sum(sizes) + surplus)
    text = "".join(f"{row % 3} 1:{row} 4:0.5\n" for row in range(rows)).encode()
    assert_twins_agree(text, sizes=sizes, block_size=block_size)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_result_does_not_depend_on_threads_blocks_or_source(folder: Path, threads: int) -> None:
    random = np.random.default_rng(3)
    lines = []
    for row in range(700):
        ids = random.permutation(40)[: random.integers(0, 12)] + 1
        features = " ".join(f"{j}:{random.normal():.{random.integers(1, 20)}g}" for j in ids)
        lines.append(f"{random.integers(0, 5)} qid:{row // 9} {features} #docid = doc-{row}{'é' * (row == 400)}")
    text = "\n".join(lines).encode()
    expected = reference.read(text)
    path = folder / f"threads-{threads}.txt"
    path.write_bytes(text)
    set_threads(threads)
    for block_size, dense in itertools.product([1, 300, 4096, 1 << 20], [True, False, "auto"]):
        plan = letor._plan(1, None, None, dense)
        assert_equal(letor._read([path], plan, block_size=block_size), expected)
        assert_equal(letor._read([io.BytesIO(text)], plan, block_size=block_size), expected)


def test_a_long_line_is_longer_than_a_block() -> None:
    """Features in falling order, so that a row of 5,000 is sorted."""
    features = " ".join(f"{j}:{j / 8}" for j in range(5000, 0, -1))
    text = f"1 qid:1 {features}\n0 qid:1 7:1\n".encode()
    assert_equal(read(text, block_size=64), reference.read(text))


def test_sorting_takes_little_more_than_linear_time() -> None:
    """Two hundred thousand features in falling order; a quadratic sort would take minutes."""
    text = b"1 qid:1 " + b" ".join(b"%d:1" % j for j in range(200_000, 0, -1)) + b"\n"
    data = read(text)
    assert data.n_features == 200_000
    assert data.X.min() == 1


# --- what is read ----------------------------------------------------------------------------------------------------


def test_arrays_of_the_example() -> None:
    data = read(EXAMPLE)
    assert data.X.tolist() == [[0.5, 0, 1], [0, float(np.float32(0.4)), 0], [0, 2, 3]]
    assert np.signbit(data.X[2, 0])
    assert (data.y.dtype, data.y.tolist()) == (np.float64, [2, 0, 1])
    assert (data.offsets.dtype, data.offsets.tolist()) == (np.int64, [0, 2, 3])
    assert data.query_ids.tolist() == [1, 7]
    assert data.doc_ids.tolist() == ["A", "B", "C"]


def test_a_million_features_are_csr_and_a_small_table_is_dense() -> None:
    wide = read(b"1 qid:1 3:1 1000000:0.5 7:0\n0 qid:1 5:2\n")
    assert wide.X.shape == (2, 1_000_000)
    assert (wide.X.indices.tolist(), wide.X.data.tolist(), wide.X.indptr.tolist()) == (
        [2, 999999, 4],
        [1, 0.5, 2],
        [0, 2, 3],
    )
    assert isinstance(read(b"1 qid:1 3:1 100000:0.5\n").X, np.ndarray)


def test_dense_and_sparse_hold_the_same() -> None:
    assert np.array_equal(read(EXAMPLE, dense=False).X.toarray(), read(EXAMPLE, dense=True).X)
    assert read(EXAMPLE, dense=False).X.data.tolist() == [0.5, 1, float(np.float32(0.4)), -0.0, 2, 3]


def test_like_takes_base_width_and_kind_of_array() -> None:
    train = read(b"1 qid:1 0:1 9:2\n", base="auto", dense=False)
    assert (train.feature_base, train.n_features) == (0, 10)
    test = read(b"1 qid:1 1:1\n", like=train)
    assert (test.feature_base, test.n_features, test.X.toarray().tolist()[0][:3]) == (0, 10, [0, 1, 0])


def test_base_auto_is_one_unless_a_zero_occurs() -> None:
    text = b"1 qid:1 1:1 2:2\n0 qid:1 2:5\n"
    assert read(text, base="auto", block_size=1).X.tolist() == [[1, 2], [0, 5]]
    both = read(text + b"0 qid:2 0:7\n", base="auto", block_size=1)
    assert both.X.tolist() == [[0, 1, 2], [0, 0, 5], [7, 0, 0]]


def test_several_paths_are_one_set(tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    first.write_bytes(b"1 qid:1 1:1\n0 qid:2 1:2")
    second.write_bytes(gzip.compress(b"2 qid:2 3:3\n"))
    data = cr.read_letor([first, second])
    assert data.X.tolist() == [[1, 0, 0], [2, 0, 0], [0, 0, 3]]
    assert (data.query_ids.tolist(), data.offsets.tolist()) == ([1, 2], [0, 1, 3])


def test_rows_of_a_query_are_brought_together_when_asked() -> None:
    text = b"1 qid:b 1:1\n2 qid:a 1:2\n3 qid:b 1:3\n"
    data = read(text, group_rows=True, block_size=1)
    assert (data.query_ids.tolist(), data.y.tolist(), data.source_rows.tolist()) == (["b", "a"], [1, 3, 2], [0, 2, 1])
    assert data.in_caller_order(data.y).tolist() == [1, 2, 3]
    assert read(EXAMPLE, group_rows=True).source_rows is None


def test_doc_ids_need_every_line() -> None:
    assert read(EXAMPLE + b"0 qid:8 1:1 # docid of nothing\n").doc_ids is None
    assert read(b"0 qid:8 1:1 # docid=7\n").doc_ids.tolist() == ["7"]


def test_a_set_without_features_has_width_zero_or_the_width_given() -> None:
    assert read(b"1 qid:1\n0 qid:1").X.shape == (2, 0)
    assert read(b"1 qid:1\n0 qid:1", n_features=3).X.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("form", ["list", "array", "path", "paths", "sibling"])
def test_sizes_of_queries_come_from_groups(tmp_path: Path, form: str) -> None:
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n0 1:2\n2 1:3\n"))
    query = tmp_path / ("train.txt.query" if form == "sibling" else "sizes")
    query.write_text("2\n\n1\r\n")
    groups = {"list": [2, 1], "array": np.array([2, 1]), "path": query, "paths": [str(query)], "sibling": None}[form]
    data = cr.read_letor(path, groups=groups)
    assert (data.offsets.tolist(), data.query_ids.tolist()) == ([0, 2, 3], [0, 1])


def test_each_of_several_paths_has_its_own_query_file(tmp_path: Path) -> None:
    for name, rows in (("a", 2), ("b", 3)):
        (tmp_path / f"{name}.txt").write_text("1 1:1\n" * rows)
        (tmp_path / f"{name}.txt.query").write_text(f"1\n{rows - 1}\n")
    assert cr.read_letor([tmp_path / "a.txt", tmp_path / "b.txt"]).offsets.tolist() == [0, 1, 2, 3, 5]


@pytest.mark.parametrize("source", ["text stream", "bytes stream", "open file", "pipe", "standard input"])
def test_sources(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = reference.read(EXAMPLE)
    match source:
        case "text stream":
            assert_equal(cr.read_letor(io.StringIO(EXAMPLE.decode())), expected)
        case "bytes stream":
            assert_equal(cr.read_letor(io.BytesIO(bz2.compress(EXAMPLE))), expected)
        case "open file":
            (tmp_path / "x").write_bytes(EXAMPLE)
            with open(tmp_path / "x", "rb") as stream:
                assert_equal(cr.read_letor(stream), expected)
        case "pipe":
            end, other = os.pipe()
            os.write(other, EXAMPLE)
            os.close(other)
            with os.fdopen(end, "rb") as stream:
                assert_equal(cr.read_letor(stream), expected)
        case _:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(EXAMPLE)))
            assert_equal(cr.read_letor("-"), expected)


def test_progress_shows_a_bar_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert_equal(cr.read_letor(io.BytesIO(EXAMPLE), progress=True), reference.read(EXAMPLE))
    assert_equal(cr.read_letor(io.BytesIO(EXAMPLE), progress=False), reference.read(EXAMPLE))
    assert capsys.readouterr().out == ""


# --- what is refused, and in which words -----------------------------------------------------------------------------

MISSING = "qid is missing, so the sizes of the queries must come from groups= or a .query file"
REFUSED = {
    "truncated after the colon": (
        b"2 qid:1 3:",
        "1:11",
        "a value after '3:', a decimal number",
        "the end of the line (query 1)",
    ),
    "truncated before the colon": (b"2 qid:1 3", "1:9", "a feature 'number:value'", "'3' (query 1)"),
    "truncated number": (b"2 qid:1 3:1e\n", "1:11", "a value after '3:', a decimal number", "'1e' (query 1)"),
    "blank for a value": (b"2 qid:1 3: 4:1\n", "1:11", "a value after '3:', a decimal number", "a blank (query 1)"),
    "letter in a value": (
        b"1 qid:1 1:1\n2 qid:x 3:1.2a 4:1\n",
        "2:11",
        "a value after '3:', a decimal number",
        "'1.2a' (query x)",
    ),
    "letter in a label": (b"2a qid:1 3:1\n", "1:1", "a label, a decimal number", "'2a' (query 1)"),
    "letter in a feature number": (b"2 qid:1 3x:1\n", "1:9", "a feature 'number:value'", "'3x:1' (query 1)"),
    "feature 0": (
        b"2 qid:1 0:1\n",
        "1:9",
        "feature numbers from 1 on",
        ("'0:1'; where features are numbered from 0, give base=0 or base=\"auto\" (query 1)"),
    ),
    "negative feature": (b"2 qid:1 1:1 -3:1\n", "1:13", "a feature number from 1 on", "negative '-3:1' (query 1)"),
    "repeated feature": (b"2 qid:1 4:1 3:2 4:1 #4:\n", "1:17", "each feature once", "4 again after column 9 (query 1)"),
    "feature too large": (
        b"2 qid:1 2147483647:1\n",
        "1:9",
        "feature numbers up to 2147483646",
        "'2147483647:1' (query 1)",
    ),
    "label missing": (b"qid:1 1:2\n", "1:1", "a label, a decimal number", "'qid:1' (the label is missing)"),
    "qid missing": (b"1 1:2\n", "1:3", "qid: after the label", "'1:2'; " + MISSING),
    "qid missing at the end": (b"1", "1:2", "qid: after the label", "the end of the line; " + MISSING),
    "qid on some lines": (b"1 qid:1 1:2\n\n2 3:1\n", "3:3", "qid: as on the lines before", "'3:1'"),
    "qid empty": (b"1 qid: 1:2\n", "1:7", "a query id after 'qid:'", "a blank"),
    "qid later": (
        b"1 qid:1 1:2 qid:2\n",
        "1:13",
        "a feature 'number:value'",
        "'qid:2' (qid: stands directly after the label) (query 1)",
    ),
    "query comes back": (
        b"1 qid:5 1:1\n1 qid:6 1:1\n# comment\n1 qid:5 1:1\n",
        "4:7",
        "the rows of a query to lie together",
        "query 5 again, which began at line 1; group_rows=True brings them together",
    ),
    "value beyond float32": (
        b"1 qid:1 2:1e39\n",
        "1:11",
        "a value within float32 (below 3.4028236e38)",
        "'1e39' (query 1)",
    ),
    "hard value beyond float32": (
        b"1 qid:1 2:1e999\n",
        "1:11",
        "a value within float32 (below 3.4028236e38)",
        "'1e999' (query 1)",
    ),
    "label beyond float64": (
        b"1e999 qid:1 2:1\n",
        "1:1",
        "a label within float64 (below 1.7976932e308)",
        "'1e999' (query 1)",
    ),
    "infinite value": (b"1 qid:1 2:-inf\n", "1:11", "a value after '2:' that is finite", "'-inf' (query 1)"),
    "NaN value": (b"1 qid:1 2:NaN\n", "1:11", "a value after '2:' that is finite", "'NaN' (query 1)"),
    "NaN label": (b"nan qid:1 2:1\n", "1:1", "a label that is finite", "'nan' (query 1)"),
    "underscore": (b"1 qid:1 2:1_0\n", "1:11", "a value after '2:' without underscores", "'1_0' (query 1)"),
    "hexadecimal": (
        b"1 qid:1 2:0x1p3\n",
        "1:11",
        "a value after '2:' in decimal digits, not hexadecimal",
        "'0x1p3' (query 1)",
    ),
    "empty": (b"", "1:1", "lines 'label qid:Q number:value ...'", "an empty file"),
    "only comments": (b"# a\n\n# b", "1:1", "lines 'label qid:Q number:value ...'", "none in 3 lines"),
    "binary": (b"1 qid:1 1:1\n\x7fELF\x00\x01\n", "2:5", "text", "a NUL byte (a binary file?)"),
    "binary in a comment": (b"1 qid:1 1:1 # a\x00b\n", "1:16", "text", "a NUL byte (a binary file?) (query 1)"),
    "carriage return inside": (b"1 qid:1\r 1:1\n", "1:8", "a blank or the end of the line", "byte 0x0d (query 1)"),
    "not UTF-8": (b"1 qid:a\xffb 1:1\n", "1:8", "UTF-8 text", "byte 0xff (query a\\xffb)"),
    "document id not UTF-8": (b"1 qid:1 1:1 #docid = \xe9\n", "1:22", "UTF-8 text", "byte 0xe9 (query 1)"),
    "a long token": (
        b"1 qid:1 1:" + b"9" * 99 + b"z\n",
        "1:11",
        "a value after '1:', a decimal number",
        "'999999999999999999999999999999…' (query 1)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("block_size", [1, 1 << 20])
def test_refusals_say_where_and_what(tmp_path: Path, case: str, block_size: int) -> None:
    text, place, expected, got = REFUSED[case]
    path = tmp_path / "bad.txt"
    path.write_bytes(text)
    for source, name in ((path, str(path)), (io.BytesIO(text), "<stream>")):
        with pytest.raises(ValueError) as caught:
            letor._read([source], letor._plan(1, None, None, "auto"), block_size=block_size)
        assert str(caught.value) == f"{name}:{place}: expected {expected}, got {got}"
    assert_twins_agree(text, block_size=block_size)


def test_lines_are_counted_over_blocks_and_files(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_bytes(b"1 qid:1 1:1\n" * 50)
    bad.write_bytes(b"\xef\xbb\xbf" + b"1 qid:2 1:1\n# comment\n\n" * 40 + b"1 qid:2 1:?\n")
    with pytest.raises(
        ValueError, match=re.escape(f"{bad}:121:11: expected a value after '1:', a decimal number, got '?'")
    ):
        letor._read([good, bad], letor._plan(1, None, None, "auto"), block_size=100)


def test_a_query_that_comes_back_in_another_file_names_both(tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_bytes(b"1 qid:1 1:1\n1 qid:2 1:1\n")
    second.write_bytes(b"1 qid:3 1:1\n1 qid:1 1:1\n")
    with pytest.raises(
        ValueError, match=re.escape(f"{second}:2:7: ") + ".*query 1 again.*" + re.escape(f"{first}, line 1;")
    ):
        cr.read_letor([first, second])


def test_the_first_error_is_reported_whatever_the_blocks() -> None:
    text = b"1 qid:1 1:1\n" * 30 + b"1 qid:1 1:a\n" + b"1 qid:1 1:1\n" * 30 + b"b qid:1 1:a\n"
    for threads, block_size in itertools.product([1, 2], [1, 20, 100, 1 << 20]):
        set_threads(threads)
        with pytest.raises(ValueError, match="<stream>:31:11: "):
            read(text, block_size=block_size)


@pytest.mark.parametrize(
    ("options", "number", "said"),
    [({"n_features": 2}, 3, "up to 2 (n_features=2)"), ({"base": 0, "n_features": 2}, 2, "up to 1 (n_features=2)")],
)
def test_a_feature_beyond_the_width(options: dict[str, int], number: int, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"<stream>:2:9: expected feature numbers {said}, got '{number}:1'")):
        read(f"1 qid:1 1:1\n1 qid:1 {number}:1\n".encode(), **options)


def test_a_feature_beyond_the_width_of_the_training_set() -> None:
    with pytest.raises(ValueError, match=re.escape("up to 3 (like= has 3), got '4:1'")):
        read(b"1 qid:1 4:1\n", like=read(EXAMPLE))


def test_a_directory_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path}: expected a file, got a directory")):
        cr.read_letor(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        cr.read_letor(tmp_path / "nowhere.txt")


def test_a_gzip_cut_in_half(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b"1 qid:%d 1:%d\n" % (row, row * row) for row in range(5000)))
    path = tmp_path / "half.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=re.escape(f"{path}: expected more gzip data, got the end of the file")):
        cr.read_letor(path)


def test_an_error_in_the_lines_comes_before_damage_after_them(tmp_path: Path) -> None:
    path = tmp_path / "half.gz"
    whole = gzip.compress(b"1 qid:1 1:x\n" + os.urandom(1 << 20).hex().encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=re.escape(f"{path}:1:11: ")):
        letor._read([path], letor._plan(1, None, None, "auto"), block_size=1000)


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([1, 1], ValueError, "groups: expected sizes that sum to the 3 rows of <stream>, got 2"),
        ([3, 0], ValueError, "groups: expected sizes from 1 on, got 0 at position 1"),
        ([1.5, 1.5], TypeError, "groups: expected whole numbers in one dimension, got float64 of shape (2,)"),
        (["a", "b"], ValueError, "groups: expected a file for each of 1 sources, got 2"),
    ],
)
def test_wrong_groups(groups: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        read(b"1 1:1\n1 1:1\n1 1:1\n", groups=groups)


def test_wrong_query_files(tmp_path: Path) -> None:
    path, query = tmp_path / "t.txt", tmp_path / "t.txt.query"
    path.write_bytes(b"1 1:1\n1 1:1\n")
    query.write_text("1\n")
    with pytest.raises(ValueError, match=re.escape(f"{query}: expected sizes that sum to the 2 rows of {path}, got 1")):
        cr.read_letor(path)
    query.write_text("1\n  x\n")
    with pytest.raises(ValueError, match=re.escape(f"{query}:2:3: expected the size of a query, got 'x'")):
        cr.read_letor(path)


def test_groups_beside_qid_and_qid_after_lines_without() -> None:
    with pytest.raises(ValueError, match="<stream>:1:3: expected no qid: beside groups=, got 'qid:1'"):
        read(EXAMPLE, groups=[2, 1])
    text = b"1 1:1\n1 qid:1 1:1\n"
    for block_size in (1, 1 << 20):
        with pytest.raises(ValueError, match=r"<stream>:2:3: expected no qid: .*, got 'qid:1'"):
            read(text, groups=[2], block_size=block_size)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"base": 2}, ValueError, "base: expected 0, 1 or 'auto', got 2"),
        ({"dense": "yes"}, ValueError, "dense: expected True, False or 'auto', got 'yes'"),
        ({"n_features": 0}, ValueError, "n_features: expected 1 to 2147483646, got 0"),
        ({"n_features": 2.0}, TypeError, "n_features: expected a whole number, got 2.0"),
        (
            {"n_features": 2, "base": "auto"},
            ValueError,
            "n_features: expected base=0 or base=1 with it, got base='auto'",
        ),
        ({"like": 3}, TypeError, "like: expected RankingData with features, got 3"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        cr.read_letor(io.BytesIO(EXAMPLE), **options)


def test_options_that_contradict_like() -> None:
    train = read(EXAMPLE)
    with pytest.raises(ValueError, match="n_features: expected 3 as in like=, got 4"):
        read(EXAMPLE, like=train, n_features=4)
    with pytest.raises(ValueError, match="base: expected 1 as in like=, got 0"):
        read(EXAMPLE, like=train, base=0)


def test_wrong_sources() -> None:
    with pytest.raises(TypeError, match="expected a path, several paths, '-' or an open stream, got int"):
        cr.read_letor(3)
    with pytest.raises(ValueError, match="expected at least one path, got none"):
        cr.read_letor([])


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_memory_stays_below_the_file_and_the_result(tmp_path: Path) -> None:
    """Peak memory beyond what the process had, against 1.5 x (file + result), in a process of its own."""
    path = tmp_path / "large.txt"
    random = np.random.default_rng(0)
    block = "".join(
        f"0 qid:{{0}} {' '.join(f'{j}:{x:.6f}' for j, x in enumerate(row, 1))}\n" for row in random.random((100, 50))
    )
    path.write_text("".join(block.format(query) for query in range(300)))
    script = f"""
import sys, calirank as cr
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
import io
cr.read_letor(io.BytesIO({EXAMPLE!r}))
before = peak()
data = cr.read_letor({str(path)!r})
print(peak() - before, data.X.nbytes + data.y.nbytes)
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    used, result = map(int, out.split())
    assert used < 1.5 * (path.stat().st_size + result)


# --- writing ---------------------------------------------------------------------------------------------------------


def written(data: cr.RankingData, **options: Any) -> str:
    stream = io.BytesIO()
    cr.write_letor(data, stream, **options)
    return stream.getvalue().decode()


def test_written_text() -> None:
    expected = "2 qid:1 1:0.5 2:0 3:1 #docid = A\n0 qid:1 1:0 2:0.4 3:0 #docid = B\n1 qid:7 1:-0 2:2 3:3 #docid = C\n"
    assert written(read(EXAMPLE)) == expected
    sparse = "2 qid:1 1:0.5 3:1 #docid = A\n0 qid:1 2:0.4 #docid = B\n1 qid:7 1:-0 2:2 3:3 #docid = C\n"
    assert written(read(EXAMPLE, dense=False)) == sparse
    assert written(read(EXAMPLE, dense=False), base=0).startswith("2 qid:1 0:0.5 2:1 #docid")


@settings(deadline=None, max_examples=100)
@given(letor_text(), st.booleans())
def test_what_is_written_is_read_back(text: bytes, dense: bool) -> None:
    try:
        data = read(text, dense=dense and b"1000000:" not in text)
    except ValueError:
        return  # a value beyond float32
    again = io.BytesIO(written(data).encode())
    copy = cr.read_letor(again, like=data)
    assert bits(copy.X if isinstance(copy.X, np.ndarray) else copy.X.data) == bits(
        data.X if isinstance(data.X, np.ndarray) else data.X.data
    )
    assert data.equals(copy)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(-3e38, 3e38), min_size=1, max_size=20))
def test_float64_features_are_written_so_that_python_reads_them_back(values: list[float]) -> None:
    text = written(cr.RankingData(np.array([values]), [1.0], sizes=[1]))
    assert [float(token.split(":")[1]) for token in text.split()[2:]] == values
    assert np.array_equal(read(text.encode()).X, np.float32([values]))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_paths_are_compressed_by_their_names(tmp_path: Path, suffix: str) -> None:
    data, path = read(EXAMPLE), tmp_path / f"out.txt{suffix}"
    cr.write_letor(data, path)
    assert cr.read_letor(path).equals(data)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def _data(**changes: Any) -> cr.RankingData:
    return cr.RankingData(np.ones((2, 1)), np.array([1.0, 0.0]), sizes=[1, 1]).replace(**changes)


UNSAYABLE = {
    "unjudged": (lambda: _data(y=np.ma.masked_array([1.0, 0.0], [False, True])), "cannot leave a label out"),
    "NaN": (lambda: _data(X=np.array([[1.0], [np.nan]])), "expected all features present, got NaN"),
    "NaN of sparse rows": (
        lambda: _data(X=sparse.csr_array([[1.0, 0.0], [0.0, np.nan]])),
        "got NaN in query 1, document 0, feature 2",
    ),
    "beyond float32": (
        lambda: _data(X=np.array([[1.0, 1.0], [1.0, 1e300]])),
        "expected features within it, got 1e+300 in query 1, document 0, feature 2",
    ),
    "beyond float32 in sparse rows": (
        lambda: _data(X=sparse.csr_array([[0.0, 1.0], [0.0, -(2.0**128 - 2.0**103)]])),
        "expected features within it, got -3.4028235677973366e+38 in query 1, document 0, feature 2",
    ),
    "no labels": (lambda: _data(y=None), "needs one label a document"),
    "no features": (lambda: _data(X=None), "needs features"),
    "judges": (lambda: cr.RankingData(np.ones((2, 1)), sizes=[2], judges=np.ones((2, 2))), "cannot hold judges"),
    "weights": (lambda: _data(query_weight=[1.0, 2.0]), "cannot hold query_weight"),
    "query twice": (
        lambda: _data(query_ids=["a", "a"]),
        "query ids (data.merge_queries() joins equal ones): 'a' stands twice",
    ),
    "query with a blank": (
        lambda: _data(query_ids=["a", "b c"]),
        "expected a query id without blanks and #, got 'b c'",
    ),
    "document with a blank": (lambda: _data(doc_ids=["a", ""]), "expected a document id without blanks, got ''"),
}


@pytest.mark.parametrize("case", UNSAYABLE)
def test_what_the_text_cannot_say_is_refused_and_leaves_no_file(tmp_path: Path, case: str) -> None:
    make, message = UNSAYABLE[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        cr.write_letor(make(), tmp_path / "out.txt")
    assert not list(tmp_path.iterdir())


def test_the_largest_float32_is_written() -> None:
    largest = np.nextafter(2.0**128 - 2.0**103, 0)
    data = cr.RankingData(np.array([[largest, -largest]]), [1.0], sizes=[1])
    assert read(written(data).encode()).X.tolist() == [[np.finfo(np.float32).max, np.finfo(np.float32).min]]


def test_last_columns_that_sparse_rows_do_not_store_come_back_when_told() -> None:
    data = cr.RankingData(sparse.csr_array(np.float32([[1, 0, 0]])), [1.0], sizes=[1])
    assert written(data) == "1 qid:0 1:1\n"
    assert read(written(data).encode()).n_features == 1
    assert read(written(data).encode(), n_features=3, dense=False).equals(data)
    assert read(written(data).encode(), like=data).equals(data)


@pytest.mark.parametrize("base", [1.0, True, "1", None, [0], np.array([0, 1])])
def test_a_base_that_is_no_whole_number_is_refused(base: Any) -> None:
    with pytest.raises(ValueError, match="base: expected 0, 1 or 'auto', got "):
        read(EXAMPLE, base=base)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.integers(-(2**64), 2**64).map(str)
        | st.sampled_from([*map(str, (2**63 - 1, 2**63, -(2**63), -(2**63) - 1)), "-0", "00", "+1", "1_0", "9" * 19])
        | st.text("0123456789-a٣", min_size=1, max_size=4),
        min_size=1,
        max_size=4,
        unique=True,
    )
)
def test_query_ids_follow_the_rule_of_all_text_formats(texts: list[str]) -> None:
    found = read("".join(f"1 qid:{text} 1:1\n" for text in texts).encode()).query_ids
    expected = query_ids_of_text(texts)
    assert (found.tolist(), found.dtype) == (expected.tolist(), expected.dtype)


def test_a_query_that_ends_one_file_and_begins_the_next_is_one(tmp_path: Path) -> None:
    for name, text in (("a", "1 qid:1 1:1\n1 qid:2 1:1\n"), ("b", "0 qid:2 1:1\n")):
        (tmp_path / name).write_text(text)
    assert cr.read_letor([tmp_path / "a", tmp_path / "b"]).sizes.tolist() == [1, 2]


def test_a_base_other_than_0_and_1_is_refused() -> None:
    with pytest.raises(ValueError, match="base: expected 0 or 1, got 2"):
        written(read(EXAMPLE), base=2)


def test_what_is_written_for_lightgbm_is_read_by_it_and_by_us(tmp_path: Path) -> None:
    import lightgbm

    X = np.array([[0.5, 0.0, 1.0], [0.25, 4.0, 0.0], [0.0, 2.0, 3.0]] * 40, np.float32)
    labels = np.arange(120) % 3
    data = cr.RankingData(
        X, labels, sizes=[50, 40, 30], query_ids=["a", "b", "a"], doc_ids=[f"d{n}" for n in range(120)]
    )
    path = tmp_path / "train.txt"
    cr.write_letor(data, path, groups=True)
    assert (tmp_path / "train.txt.query").read_text() == "50\n40\n30\n"
    again = cr.read_letor(path)
    np.testing.assert_array_equal(again.X, data.X)
    np.testing.assert_array_equal(again.y, data.y)
    assert again.sizes.tolist() == [50, 40, 30]
    theirs = lightgbm.Dataset(str(path), params={"verbose": -1, "min_data_in_bin": 1}).construct()
    assert theirs.get_group().tolist() == [50, 40, 30]
    assert theirs.get_label().tolist() == labels.tolist()
    cr.write_letor(data, tmp_path / "t.txt.gz", groups=True)
    assert (tmp_path / "t.txt.query").read_text() == "50\n40\n30\n"
    text = io.BytesIO()
    cr.write_letor(data, text, groups=tmp_path / "sizes")
    assert text.getvalue() == path.read_bytes()
    assert (tmp_path / "sizes").read_text() == "50\n40\n30\n"


def test_wrong_files_for_the_sizes_that_are_written(tmp_path: Path) -> None:
    data = cr.RankingData([[1.0]], [0], sizes=[1])
    with pytest.raises(ValueError, match=r"no \.query file beside it; groups= takes its path"):
        cr.write_letor(data, io.BytesIO(), groups=True)
    with pytest.raises(TypeError, match="groups: expected True or the path"):
        cr.write_letor(data, tmp_path / "a.txt", groups=[1])
    with pytest.raises(ValueError, match="float32"):
        cr.write_letor(cr.RankingData([[1e300]], [0], sizes=[1]), tmp_path / "a.txt", groups=True)
    assert list(tmp_path.iterdir()) == []
