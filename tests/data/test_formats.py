"""Every format against every other, and how the format of a file is told."""

from __future__ import annotations

import io
import itertools
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import calirank as cr
from calirank.data.formats import PARTS, Format, format_named, format_of, formats, parts_of
from calirank.data.npz import read_npz, write_npz
from calirank.names import FORMATS

#: The name of a file of each format; the format is told from it where no format is given.
FILES = {
    "letor": "data.letor.gz",
    "parquet": "data.parquet",
    "arrow": "data.feather",
    "npz": "data.npz",
    "folder": "data/",
    "qrels": "data.qrels.xz",
    "preflib": "votes.soc",
    "rankings": "data.csv",
    "preferences": "data.csv",
}
WRITTEN = [entry.name for entry in formats() if entry.writer is not None]


def graded() -> cr.RankingData:
    """Data with everything that grades can have."""
    return cr.RankingData(
        np.array([[1, 0.5], [0, -2], [2, 1e-7], [1, 3]], dtype=np.float32),
        [1, 0, 2.5, 0],
        sizes=[2, 1, 1],
        query_ids=[12, 7, 9],
        doc_ids=["D1", "D2", "D1", "D4"],
        feature_names=["colour", "bm25"],
        categorical={0: ["red", "green", "blue"]},
        columns={"price": np.array([1.5, 2.5, 0.0, 9.0]), "title": np.array(["x", "y", "", "é"])},
        query_weight=[1, 2, 0.5],
        doc_weight=[1, 1, 3, 0],
        posterior=cr.Judgements([[[1, 0]], [[2.5]], [[0]]], query_ids=[12, 7, 9]),
    )


def judged() -> cr.RankingData:
    return graded().replace(judges=np.ma.masked_invalid([[1, 0], [0, np.nan], [2, 1], [np.nan, 1]]), posterior=None)


def ranked() -> cr.RankingData:
    orders = cr.Rankings([(1, 0, 2), (2, 1, 0)], weight=[3, 1], query=["votes"] * 2)
    return cr.RankingData(sizes=[3], query_ids=["votes"], doc_ids=["a", "b", "c"], rankings=orders)


def preferred() -> cr.RankingData:
    edges = cr.Preferences([0, 1, 2], [1, 2, 0], query=["votes"] * 3)
    return cr.RankingData(sizes=[3], query_ids=["votes"], doc_ids=["a", "b", "c"], preferences=edges)


SAMPLES = [graded(), judged(), ranked(), preferred()]
SUPERVISION = ("y", "judges", "rankings", "preferences")


def fits(data: cr.RankingData, entry: Format) -> bool:
    return any(part in entry.carries for part in SUPERVISION if getattr(data, part) is not None)


def without(data: cr.RankingData, parts: list[str]) -> cr.RankingData:
    return data.replace(**{part: () if part == "categorical" else None for part in parts})


# --- the table -------------------------------------------------------------------------------------------------------


def test_every_format_is_in_the_matrix() -> None:
    assert set(FILES) == set(WRITTEN)
    assert {entry.name for entry in formats()} - set(WRITTEN) == {"label_ranking"}
    for entry in formats():
        assert set(entry.carries) <= set(PARTS)
        assert FORMATS.build(entry.name) is entry
        assert all(format_named(alias) is entry for alias in entry.aliases)
        assert sum(fits(data, entry) for data in SAMPLES) >= 1


@pytest.mark.parametrize(("first", "second"), list(itertools.product(WRITTEN, WRITTEN)))
def test_every_format_converts_to_every_other(tmp_path: Path, first: str, second: str) -> None:
    source, target = format_named(first), format_named(second)
    given, made = f"{tmp_path}/in/{FILES[first]}", f"{tmp_path}/out/{FILES[second]}"
    for data in SAMPLES:
        if not fits(data, source):
            continue
        held = without(data, source.lacks(data))
        lost = target.lacks(held)
        for folder in ("in", "out"):
            shutil.rmtree(tmp_path / folder, ignore_errors=True)
            (tmp_path / folder).mkdir()
        cr.write(held, given, first)
        if lost:
            names = ", ".join(lost)
            with pytest.raises(ValueError, match=rf"the format {second} cannot carry {names} of .*folder.*, and drop="):
                cr.convert(given, made, from_format=first, to_format=second)
            assert list((tmp_path / "out").iterdir()) == []
        if not fits(held, target) or (second == "letor" and held.X is None):
            continue
        assert cr.convert(given, made, from_format=first, to_format=second, drop=lost).equals(held)
        assert cr.read(made, second).equals(without(held, lost))


@pytest.mark.parametrize("name", [name for name in WRITTEN if not FILES[name].endswith("csv")])
def test_the_format_is_told_by_the_path(tmp_path: Path, name: str) -> None:
    path = f"{tmp_path}/{FILES[name]}"
    for data in SAMPLES:
        if fits(data, format_named(name)):
            held = without(data, format_named(name).lacks(data))
            cr.write(held, path)
            assert cr.read(path).equals(held)


@pytest.mark.parametrize("name", ["letor", "parquet", "arrow", "npz", "qrels", "preflib"])
def test_the_format_is_told_by_the_first_bytes(tmp_path: Path, name: str) -> None:
    data = next(data for data in SAMPLES if fits(data, format_named(name)))
    held = without(data, format_named(name).lacks(data))
    for file in ("votes.txt", "votes.data", "votes"):
        cr.write(held, tmp_path / file, name)
        assert cr.read(tmp_path / file).equals(held)


def test_letor_text_is_recognised_behind_comments_and_without_queries(tmp_path: Path) -> None:
    (tmp_path / "a.data").write_text("# made by hand\n\n1 qid:3 1:0.5 # best\n0 qid:3 1:0.25\n")
    assert cr.read(tmp_path / "a.data").y.tolist() == [1, 0]
    (tmp_path / "rank").write_text("1 1:0.5\n0 1:0.25\n")
    assert cr.read(tmp_path / "rank", groups=[2]).sizes.tolist() == [2]


def test_text_that_is_nothing_known_is_read_as_letor_where_it_is_called_txt(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("what is this\n")
    with pytest.raises(ValueError, match=r"a\.txt:1"):
        cr.read(tmp_path / "a.txt")


def test_several_files_are_one_set(tmp_path: Path) -> None:
    data = without(graded(), ["posterior"])
    cr.write(data[:2], tmp_path / "1.parquet")
    cr.write(data[2:], tmp_path / "2.parquet")
    assert cr.read([tmp_path / "1.parquet", tmp_path / "2.parquet"]).equals(data)
    cr.write(data[:2], tmp_path / "1.npz")
    assert cr.read([tmp_path / "1.npz"]).equals(data[:2])
    with pytest.raises(ValueError, match=r"npz: expected one file, got 2; cr\.concatenate joins data sets"):
        cr.read([tmp_path / "1.npz", tmp_path / "1.npz"])


def test_options_go_to_readers_and_writers(tmp_path: Path) -> None:
    (tmp_path / "a.letor").write_text("1 qid:3 0:0.5\n")
    cr.convert(tmp_path / "a.letor", tmp_path / "b.letor", read_options={"base": 0}, write_options={"base": 1})
    assert (tmp_path / "b.letor").read_text() == "1 qid:3 1:0.5\n"


def test_unknown_options_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "a.qrels").write_text("q 0 d 1\n")
    with pytest.raises(
        TypeError, match=r"read_qrels \(format qrels\) has no option 'group_rows'\. Its options: negative"
    ):
        cr.read(tmp_path / "a.qrels", group_rows=True)
    with pytest.raises(
        TypeError, match=r"read_letor .* has no option 'bse'. Did you mean 'base'. Its options: base, n_"
    ):
        cr.read(tmp_path / "a.letor", bse=0)
    with pytest.raises(TypeError, match=r"write_npz .* has no option 'base'"):
        cr.write(judged(), tmp_path / "a.npz", base=0)
    with pytest.raises(TypeError, match=r"read_parquet .* has no option 'querry'\. .*like, .* qid, doc_id"):
        cr.read(tmp_path / "a.parquet", querry="q")


def test_format_of_tells_the_format() -> None:
    assert format_of("x.feather").name == "arrow"
    assert format_of(["x.npz", "y"]).name == "npz"
    assert format_of("-", "svmlight").name == "letor"
    with pytest.raises(ValueError, match="<stdout>: what is no path"):
        cr.write(judged(), "-")


def test_streams_need_a_format() -> None:
    stream = io.BytesIO(b"1 qid:3 1:0.5\n")
    with pytest.raises(
        ValueError, match="<stream>: what is no path has no ending; give format=, one of letor, parquet"
    ):
        cr.read(stream)
    data = cr.read(stream, "letor")
    out = io.BytesIO()
    with pytest.raises(ValueError, match="<stream>: what is no path has no ending"):
        cr.write(data, out)
    cr.write(data, out, "svmlight")
    assert out.getvalue() == b"1 qid:3 1:0.5\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_opened_once_and_its_first_bytes_are_not_looked_at(tmp_path: Path) -> None:
    for name, format in (("a.txt", None), ("b", "letor"), ("c.letor", None)):
        os.mkfifo(tmp_path / name)
        writer = threading.Thread(target=(tmp_path / name).write_text, args=["1 qid:3 1:0.5\n"])
        assert format_of(tmp_path / name, format).name == "letor"
        writer.start()
        assert cr.read(tmp_path / name, format).y.tolist() == [1]
        writer.join()
    with pytest.raises(ValueError, match=r"b: a pipe without an ending; give format=, one of letor"):
        cr.read(tmp_path / "b")
    os.mkfifo(tmp_path / "d.xyz")
    with pytest.raises(ValueError, match=r"the ending \.xyz tells no format"):
        cr.read(tmp_path / "d.xyz")


@pytest.mark.parametrize("entry", formats(), ids=lambda entry: entry.name)
def test_every_reader_says_its_options(entry: Format) -> None:
    assert len(set(entry.read_options)) == len(entry.read_options)
    assert ("qid" in entry.read_options) == (entry.name in ("parquet", "arrow"))
    assert ("group_rows" in entry.read_options) == (entry.name in ("letor", "parquet", "arrow", "npz"))


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_csv_can_be_several_things(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"the ending \.csv can be several formats, give format=: rankings \(.*preferences"
    ):
        cr.write(ranked(), tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"rankings \(.*label_ranking .*cr\.from_frame"):
        cr.read(tmp_path / "a.csv")


def test_unknown_endings_and_names_are_refused_with_the_nearest(tmp_path: Path) -> None:
    data = without(graded(), ["posterior"])
    with pytest.raises(
        ValueError, match=r"the ending \.parqet tells no format\. Did you mean '\.parquet'\? Give format="
    ):
        cr.write(data, tmp_path / "a.parqet")
    with pytest.raises(ValueError, match=r"a path without an ending tells no format. Give format="):
        cr.write(data, tmp_path / "a")
    with pytest.raises(ValueError, match=r"no format is called 'parket'. Did you mean 'parquet'"):
        cr.write(data, tmp_path / "a", "parket")
    with pytest.raises(TypeError, match="format: expected a name, such as 'parquet'; got 3"):
        cr.read(tmp_path / "a", 3)
    (tmp_path / "a.xyz").write_text("a b c\n")
    with pytest.raises(ValueError, match=r"a\.xyz: the ending \.xyz tells no format"):
        cr.read(tmp_path / "a.xyz")
    with pytest.raises(ValueError, match="a folder of PrefLib files, got another directory"):
        cr.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        cr.read(tmp_path / "absent")


def test_a_run_is_no_ranking_data(tmp_path: Path) -> None:
    for file in ("a.run", "a.txt"):
        (tmp_path / file).write_text("q Q0 d 1 0.5 tag\n")
        with pytest.raises(ValueError, match=r"expected ranking data; it is a TREC run, .*cr\.read_run"):
            cr.read(tmp_path / file)
    with pytest.raises(ValueError, match=r"cr\.read_run"):
        cr.write(ranked(), tmp_path / "a.run")


def test_a_format_that_is_only_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the format label_ranking can be read and not written"):
        cr.convert(tmp_path / "absent", tmp_path / "a.csv", to_format="label_ranking")
    with pytest.raises(ValueError, match="the format label_ranking can be read and not written"):
        cr.write(without(ranked(), ["doc_ids"]), tmp_path / "a.csv", "label_ranking")


def test_drop_names_parts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no part of the data is called 'colums'. Did you mean 'columns'"):
        cr.write(graded(), tmp_path / "a.letor", drop=["colums"])
    with pytest.raises(TypeError, match="drop: expected a list of names, got 'columns'"):
        cr.write(graded(), tmp_path / "a.letor", drop="columns")
    cr.write(graded(), tmp_path / "a.qrels", drop=[part for part in PARTS if part not in ("y", "doc_ids")])
    assert parts_of(cr.read(tmp_path / "a.qrels")) == ["y", "doc_ids"]


# --- npz -------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_npz_gives_the_data_back(data: Any) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    rows, width = sum(sizes), data.draw(st.integers(1, 3))
    values = st.sampled_from([0.0, 1.5, -2.0, np.nan])
    X = np.array(data.draw(st.lists(values, min_size=rows * width, max_size=rows * width))).reshape(rows, width)
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    held: dict[str, Any] = {}
    if data.draw(st.booleans()):
        held["y"] = np.ma.MaskedArray(np.arange(rows), data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)))
    else:
        counts = [data.draw(st.integers(0, 2)) for _ in sizes]
        labels = [np.arange(count * size).reshape(count, size) for count, size in zip(counts, sizes, strict=True)]
        weight = data.draw(st.lists(st.integers(1, 3), min_size=sum(counts), max_size=sum(counts)))
        held["judges"] = cr.Judgements(labels, weight)
    made = cr.RankingData(
        sparse.csr_array(X.astype(dtype)) if data.draw(st.booleans()) else X.astype(dtype),
        sizes=sizes,
        feature_names=[f"x{n}" for n in range(width)] if data.draw(st.booleans()) else None,
        doc_ids=[f"é{n}" for n in range(rows)] if data.draw(st.booleans()) else None,
        columns={"a/b": np.arange(rows), "c": np.array(["x"] * rows)} if data.draw(st.booleans()) else None,
        feature_base=data.draw(st.integers(0, 1)),
        **held,
    )
    stream = io.BytesIO()
    write_npz(made, stream)
    assert read_npz(io.BytesIO(stream.getvalue())).equals(made)


def test_npz_keeps_queries_that_are_seen_twice_and_numbers_as_categories(tmp_path: Path) -> None:
    data = cr.RankingData([[1.0], [0.0]], [1, 0], sizes=[1, 1], query_ids=["q", "q"], categorical={0: [10, 2.5]})
    write_npz(data, tmp_path / "a.npz")
    assert read_npz(tmp_path / "a.npz").equals(data)


def test_npz_made_elsewhere_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, X=np.eye(3, order="F"), y=np.array([1, 0, 2]), qid=np.array(["a", "b", "a"]))
    with pytest.raises(ValueError, match=r"a\.npz: qid: the rows of query a do not lie together"):
        read_npz(path)
    assert read_npz(path, group_rows=True).y.tolist() == [1, 2, 0]
    np.savez_compressed(path, X=np.eye(3), sizes=np.array([2, 1]))
    assert read_npz(path).sizes.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.eye(2), "Y": [1, 0], "sizes": [2]}, "no array is expected to be called 'Y'. Did you mean 'y'"),
        ({"X": np.eye(2)}, "expected exactly one of offsets, sizes and qid"),
        ({"X": np.eye(2), "sizes": [3]}, "sizes add up to 3; there are 2 documents"),
        ({"X_data": [1.0], "sizes": [1]}, "the array 'X_indices' is missing"),
        ({"y": [1.0], "sizes": [1], "columns": ["a"]}, "the array 'column_0' is missing"),
        ({"y": [np.nan], "sizes": [1]}, "expected finite labels, got nan"),
        ({"X": np.array([[None]]), "sizes": [1]}, "expected an npz file, got .*[oO]bject"),
        (
            {"X_data": [1.0], "X_indices": [5], "X_indptr": [0, 1], "X_shape": [1, 2], "sizes": [1]},
            "5|indices must be",
        ),
        (
            {"sizes": [2], "y": None, "judges_offsets": [0, 2], "judges_weight": [1.0, 1], "judges_labels": [1.0]},
            "judges_labels: expected 4 labels",
        ),
        (
            {"sizes": [2], "judges_offsets": [0, -1], "judges_weight": [1.0], "judges_labels": [1.0, 1]},
            "judges_offsets: expected 2 whole numbers that rise from 0",
        ),
    ],
)
def test_wrong_npz_files_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "a.npz", **{name: value for name, value in arrays.items() if value is not None})
    with pytest.raises(ValueError, match=rf"a\.npz: .*({message})"):
        read_npz(tmp_path / "a.npz")


def test_damaged_npz_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_npz(without(graded(), ["posterior"]), path)
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"2 qid:1 1:0.5\n", whole[:200] + b"x" * 50 + whole[250:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"a\.npz: expected an npz file, got a damaged file"):
            read_npz(path)
    with path.open("wb") as stream:
        np.save(stream, np.eye(2))
    with pytest.raises(ValueError, match="expected an npz file"):
        read_npz(path)
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "absent.npz")


def test_what_npz_cannot_hold_is_refused() -> None:
    mixed = cr.RankingData(y=[1, 0], sizes=[1, 1], query_ids=["q", 7])
    for data, message in (
        (ranked(), r"does not hold rankings: data\.save"),
        (preferred(), r"does not hold preferences: data\.save"),
        (graded(), "does not hold the distribution that synthetic data knows"),
        (mixed, "query_ids: an npz file has identifiers of one type; these are int and str"),
    ):
        with pytest.raises(ValueError, match=message):
            write_npz(data, io.BytesIO())


# --- real files ------------------------------------------------------------------------------------------------------


def test_real_files_are_told_apart(real_data: Path, tmp_path: Path) -> None:
    lightgbm = cr.read(real_data / "lightgbm-lambdarank" / "rank.test.xz")
    assert (len(lightgbm), lightgbm.n_docs) == (50, 768)
    cr.convert(real_data / "lightgbm-lambdarank" / "rank.test.xz", tmp_path / "rank.parquet")
    assert cr.read(tmp_path / "rank.parquet").equals(lightgbm)
    iris = cr.read(next((real_data / "label_ranking").glob("iris*")), "label_ranking")
    assert len(iris) == 150
