"""TREC files against parsing line by line, and every way in which a file or a run can be wrong."""

from __future__ import annotations

import gzip
import io
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calirank as cr
from calirank.data import trec
from calirank.data.ragged import list_numbers

SETTINGS = settings(max_examples=60, deadline=None)
WORD = st.text(st.characters(codec="utf-8", exclude_characters=" \t\n\r\x0b\x0c\ufeff\0"), min_size=1, max_size=5)
IDS = WORD | st.integers(-99, 99).map(str)
BLANKS = st.sampled_from([" ", "\t", "  ", " \t"])


@st.composite
def pairs(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Queries and documents, each pair once, in any order."""
    return draw(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=12, unique=True))


def by_query(rows: list[tuple[str, str, float]]) -> dict[str, list[tuple[str, float]]]:
    """What a file says, read as simply as possible: queries in order of appearance, rows in theirs."""
    found: dict[str, list[tuple[str, float]]] = {}
    for query, doc, value in rows:
        found.setdefault(query, []).append((doc, value))
    return found


def read(reader: Any, text: str) -> Any:
    return reader(io.BytesIO(text.encode()))


# --- against parsing line by line ------------------------------------------------------------------------------------


@SETTINGS
@given(data=st.data(), rows=pairs(), end=st.sampled_from(["\n", "\r\n"]), last=st.booleans())
def test_a_run_is_read_as_line_by_line(data: Any, rows: list[tuple[str, str]], end: str, last: bool) -> None:
    scores = data.draw(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=len(rows), max_size=len(rows))
    )
    lines = []
    for (query, doc), score in zip(rows, scores, strict=True):
        blank = data.draw(BLANKS)
        lines += [blank] * data.draw(st.integers(0, 1))
        lines.append(blank.join([query, "Q0", doc, "7", repr(score), "tag"]))
    run = read(cr.read_run, end.join(lines) + end * last)
    expected = by_query([(query, doc, score) for (query, doc), score in zip(rows, scores, strict=True)])
    assert run.name == "tag"
    assert [str(query) for query in run] == list(expected)
    for query in run:
        docs, values = run[query]
        assert [(str(doc), value) for doc, value in zip(docs, values.tolist(), strict=True)] == expected[str(query)]


@SETTINGS
@given(rows=pairs(), data=st.data())
def test_qrels_are_read_as_line_by_line(rows: list[tuple[str, str]], data: Any) -> None:
    grades = [data.draw(st.sampled_from(["0", "1", "-2", "0.5", "3e0"])) for _ in rows]
    text = "".join(f"{query} 0 {doc} {grade}\n" for (query, doc), grade in zip(rows, grades, strict=True))
    found = read(cr.read_qrels, text)
    expected = by_query([(query, doc, float(grade)) for (query, doc), grade in zip(rows, grades, strict=True)])
    assert [str(query) for query in found.query_ids] == list(expected)
    assert found.X is None
    for query, judged in zip(found, expected.values(), strict=True):
        assert [(str(doc), grade) for doc, grade in zip(query.doc_ids, query.y.tolist(), strict=True)] == judged
    assert found.in_caller_order(found.y).tolist() == [float(grade) for grade in grades]


@SETTINGS
@given(rows=pairs(), data=st.data(), precision=st.sampled_from([np.float32, np.float64]))
def test_a_written_run_is_read_back_in_the_order_of_its_scores(rows: Any, data: Any, precision: Any) -> None:
    values = st.floats(allow_nan=False, allow_infinity=False, width=32)
    scores = np.array([data.draw(values | st.sampled_from([0.5, 1.0])) for _ in rows], dtype=precision)
    run = cr.Run([query for query, _ in rows], [doc for _, doc in rows], scores, name="mine")
    text = io.StringIO()
    cr.write_run(run, text)
    back = read(cr.read_run, text.getvalue())
    assert [str(query) for query in back] == [str(query) for query in run]
    for query, again in zip(run, back, strict=True):
        docs, values = run[query]
        order = sorted(range(len(docs)), key=lambda place: -values[place])  # stable
        assert [str(doc) for doc in back[again][0]] == [str(docs[place]) for place in order]
        assert back[again][1].tolist() == [float(values[place]) for place in order]
    ranks = [int(line.split()[3]) for line in text.getvalue().encode().split(b"\n")[:-1]]
    assert ranks == [rank for query in run for rank in range(1, len(run[query][0]) + 1)]


def test_many_tied_documents_keep_their_order() -> None:
    scores = np.arange(1000) % 3.0
    text = io.StringIO()
    cr.write_run(cr.Run([1] * 1000, np.arange(1000), scores), text)
    docs = [int(line.split()[2]) for line in text.getvalue().splitlines()]
    assert docs == sorted(range(1000), key=lambda doc: (-scores[doc], doc))


@SETTINGS
@given(rows=pairs(), data=st.data())
def test_written_qrels_are_read_back(rows: Any, data: Any) -> None:
    labels = [data.draw(st.floats(-1e6, 1e6) | st.integers(-2, 4)) for _ in rows]
    made = cr.RankingData(y=labels, qid=[q for q, _ in rows], doc_ids=[d for _, d in rows], group_rows=True)
    text = io.StringIO()
    cr.write_qrels(made, text)
    back = read(cr.read_qrels, text.getvalue())
    assert [str(query) for query in back.query_ids] == made.query_ids.astype(str).tolist()
    assert [str(doc) for doc in back.doc_ids] == made.doc_ids.astype(str).tolist()
    assert back.y.tolist() == made.y.tolist()


@pytest.mark.parametrize("size", [1, 7, 20, 1000])
def test_blocks_make_no_difference(monkeypatch: Any, size: int) -> None:
    lines = [f"{n % 5} Q0 d{n} 1 {n / 7!r} t" for n in range(40)]
    lines[13:13] = ["", "   "]
    text = "\n".join(lines)
    whole = read(cr.read_run, text)
    monkeypatch.setattr(trec, "_BLOCK", size)
    assert read(cr.read_run, text).equals(whole)
    with pytest.raises(ValueError, match=r"<stream>:43:1: query: ?|<stream>:43:\d+: expected 6 columns"):
        read(cr.read_run, text + "\n1 Q0 x\n")


def test_a_nul_is_no_text() -> None:
    with pytest.raises(ValueError, match=r"<stream>:2:9: expected text, got a NUL byte \(a binary file\?\)"):
        read(cr.read_qrels, "1 0 a 1\n1 0 a 1 \0 1 0 b 2\n")
    with pytest.raises(ValueError, match=r"document: expected text without blanks, got 'a\\x00b'"):
        cr.write_run(cr.Run([1, 1], ["a\0b", "b"], [1, 2]), io.StringIO())


def reference(text: str) -> list[tuple[str, str, float]] | None:
    """The rows of qrels, or None if they are wrong."""
    rows: list[tuple[str, str, float]] = []
    if "\0" in text:
        return None
    for line in text.encode().split(b"\n"):
        fields = [field.decode() for field in line.split()]
        if not fields:
            continue
        try:
            query, _, doc, grade = fields
            value = float(grade)
        except ValueError:
            return None
        if not np.isfinite(value) or "_" in grade or (query, doc) in [row[:2] for row in rows]:
            return None
        rows.append((query, doc, value))
    return rows or None


WORDS = st.sampled_from(["a", "b", "1", "2.5", "-0", "nan", "1_0", "é", "\0", "", "\r", "\t"])
RIGHT = st.tuples(st.sampled_from("ab"), st.just("0"), st.sampled_from("cdé"), st.sampled_from(["1", "2.5", "-0"]))


@settings(max_examples=300, deadline=None)
@given(st.lists(RIGHT.map(list) | RIGHT.map(list) | st.lists(WORDS, max_size=6), max_size=4))
def test_any_text_is_read_as_line_by_line_or_refused(lines: list[list[str]]) -> None:
    text = "\n".join(" ".join(line) for line in lines)
    expected = reference(text)
    if expected is None:
        with pytest.raises(ValueError, match="<stream>:"):
            read(cr.read_qrels, text)
    else:
        found = read(cr.read_qrels, text)
        got = zip(found.query_ids[list_numbers(found.offsets)], found.doc_ids, found.y.tolist(), strict=True)
        rows = [(str(query), str(doc), value) for query, doc, value in got]
        assert rows == [(q, d, v) for q, docs in by_query(expected).items() for d, v in docs]


# --- what becomes of identifiers and files ---------------------------------------------------------------------------


def test_query_ids_are_whole_numbers_where_all_are_and_documents_are_text() -> None:
    data = read(cr.read_qrels, "301 0 007 1\n302 0 8 0\n")
    assert (data.query_ids.tolist(), data.doc_ids.tolist()) == ([301, 302], ["007", "8"])
    data = read(cr.read_qrels, "301 0 7 1\nq2 0 8 0\n")
    assert (data.query_ids.tolist(), data.doc_ids.tolist()) == (["301", "q2"], ["7", "8"])
    run = read(cr.read_run, f"{2**63 - 1} Q0 7 1 2.5 tag\n1 Q0 7 1 2.5 tag\n")
    assert (run.query_ids.tolist(), run.doc.tolist()) == ([2**63 - 1, 1], ["7", "7"])
    assert read(cr.read_qrels, f"{2**63} 0 7 1\n").query_ids.tolist() == [str(2**63)]


def test_compression_and_byte_order_marks_are_looked_through(tmp_path: Any) -> None:
    plain = "q 0 a 1\nq 0 b 0\n"
    (tmp_path / "qrels.gz").write_bytes(gzip.compress(("\ufeff" + plain).encode()))
    assert cr.read_qrels(tmp_path / "qrels.gz").equals(read(cr.read_qrels, plain))
    run = cr.Run(["q"], ["a"], [1.0], name="x")
    cr.write_run(run, tmp_path / "run.xz")
    assert cr.read_run(tmp_path / "run.xz").equals(run)


def test_unjudged_documents_are_left_out_of_qrels() -> None:
    labels = np.ma.MaskedArray([1, 0, 0, 2], [0, 1, 1, 0])
    data = cr.RankingData(y=labels, sizes=[2, 1, 1], query_ids=["a", "b", "c"], doc_ids=["w", "x", "y", "z"])
    text = io.StringIO()
    cr.write_qrels(data[[0, 2]], text)
    assert text.getvalue() == "a 0 w 1\nc 0 z 2\n"
    with pytest.raises(ValueError, match="query b has no judged document, so qrels would not show that it is there"):
        cr.write_qrels(data, io.StringIO())


def test_a_run_without_a_name_is_written_all_the_same() -> None:
    text = io.StringIO()
    cr.write_run(cr.Run([1], [2], [3]), text)
    assert text.getvalue() == "1 Q0 2 1 3.0 calirank\n"


# --- runs ------------------------------------------------------------------------------------------------------------


def test_a_run_groups_its_queries() -> None:
    run = cr.Run([3, 1, 3, 2, 1], ["a", "a", "b", "c", "b"], np.array([1, 2, 3, 4, 5], np.float32), name="mine")
    assert (len(run), run.n_docs, list(run)) == (3, 5, [3, 1, 2])
    assert (run.offsets.tolist(), run.query.tolist()) == ([0, 2, 4, 5], [3, 3, 1, 1, 2])
    assert run.score.dtype == np.float32
    docs, scores = run[3]
    assert (docs.tolist(), scores.tolist()) == (["a", "b"], [1, 3])
    assert 2 in run
    assert 4 not in run
    with pytest.raises(KeyError, match=r"the run has no query 'q'\."):
        run["q"]
    assert repr(run) == "Run('mine', 3 queries, 5 documents)"
    assert repr(cr.Run(["q"], ["a"], [1])) == "Run('', 1 query, 1 document)"
    assert cr.Run([], [], []).offsets.tolist() == [0]


def test_a_run_does_not_change() -> None:
    scores = np.array([1.0, 2.0])
    run = cr.Run([1, 1], ["a", "b"], scores)
    scores[0] = 9
    assert run.score.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        run.score[0] = 9
    with pytest.raises(AttributeError, match="score"):
        run.score = scores


def test_runs_are_equal_when_all_in_them_is() -> None:
    run = cr.Run([1, 2], ["a", "b"], [1.0, 2.0], name="x")
    assert pickle.loads(pickle.dumps(run)).equals(run)
    for other in (
        cr.Run([1, 2], ["a", "b"], [1.0, 2.0], name="y"),
        cr.Run([2, 1], ["b", "a"], [2.0, 1.0], name="x"),
        cr.Run([1, 2], ["a", "b"], np.array([1, 2], np.float32), name="x"),
        cr.Run([1, 2], ["a", "c"], [1.0, 2.0], name="x"),
        "x",
    ):
        assert not run.equals(other)


def test_wrong_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="got 1, 2 and 2"):
        cr.Run([1], ["a", "b"], [1, 2])
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(
            ValueError, match=f"score: expected a finite number, got {value} for document b of query q2"
        ):
            cr.Run(["q1", "q2", "q1"], ["a", "b", "c"], [1, value, 2])
    with pytest.raises(ValueError, match="doc: query q1 has document a twice"):
        cr.Run(["q1", "q2", "q1"], ["a", "b", "a"], [1, 2, 3])
    with pytest.raises(ValueError, match="query: an identifier is missing at position 1"):
        cr.Run(["q1", None], ["a", "b"], [1, 2])
    with pytest.raises(TypeError, match="score: expected one number a document, got <U1"):
        cr.Run([1], [1], ["1"])
    with pytest.raises(TypeError, match=r"score: expected one number a document, got .* of shape \(1, 1\)"):
        cr.Run([1], [1], [[1.0]])
    with pytest.raises(ValueError, match="got a masked array"):
        cr.Run([1], [1], np.ma.masked_invalid([np.nan]))
    with pytest.raises(TypeError, match="name: expected text, got 5"):
        cr.Run([1], [1], [1], name=5)


# --- wrong files -----------------------------------------------------------------------------------------------------

GOOD = "q1 Q0 a 1 2.5 t\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 Q0 b 1 2.5\n", r"2:14: expected 6 columns \(query Q0 document rank score tag\), got 5: 'q1 Q0 b 1 2\.5'"),
        ("q1 Q0 b 1 2.5 t u\n", r"2:17: expected 6 columns .*, got 7"),
        ("q1 Q0 b 1 high t\n", r"2:11: score: expected a finite number, got 'high'"),
        ("q1 Q0 b 1  nan t\n", r"2:12: score: expected a finite number, got 'nan'"),
        ("q1 Q0 b 1 -inf t\n", r"2:11: score: expected a finite number, got '-inf'"),
        ("q1 Q0 b 1 1_000 t\n", r"2:11: score: expected a finite number, got '1_000'"),
        ("\n\nq2 Q0 a 1 2.5 u\n", r"4: expected one run in a file, got tag 'u' after 't' of line 1"),
        ("q2 Q0 a 1 2.5 t\nq1 Q0 a 2 0 t\n", r"3: query q1 has document a already in line 1; expected it once"),
    ],
)
def test_wrong_run_files_are_refused_with_their_place(tmp_path: Any, text: str, message: str) -> None:
    path = tmp_path / "a.run"
    path.write_text(GOOD + text)
    with pytest.raises(ValueError, match=rf"a\.run:{message}"):
        cr.read_run(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 0 a\n", r"1:7: expected 4 columns \(query iteration document relevance\), got 3"),
        ("q1 0 a 1\nq1 0 b x\n", r"2:8: relevance: expected a finite number, got 'x'"),
        ("q1 0 a 1\nq1 0 b nan\n", r"2:8: relevance: expected a finite number, got 'nan'"),
        ("q1 0 a 1\nq2 0 a 1\n\nq1 0 a 0\n", r"4: query q1 has document a already in line 1; expected it once"),
        ("", r" expected relevance judgements .*, got an empty file"),
        ("\n  \n", r" expected relevance judgements .*, got an empty file"),
    ],
)
def test_wrong_qrels_are_refused_with_their_place(tmp_path: Any, text: str, message: str) -> None:
    path = tmp_path / "a.qrels"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"a\.qrels:{message}"):
        cr.read_qrels(path)


def test_text_that_is_not_utf8_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "a.qrels"
    path.write_bytes(b"q1 0 a 1\nq1 0 \xff 1\n")
    with pytest.raises(ValueError, match=r"a\.qrels:2:6: document: expected UTF-8 text, got b'\\xff'"):
        cr.read_qrels(path)
    path.write_bytes(b"q1 0 a 1\n\xff 0 a 1\n")
    with pytest.raises(ValueError, match=r"a\.qrels:2: query: expected UTF-8 text, got b'\\xff'"):
        cr.read_qrels(path)
    path.write_bytes(bytes(range(256)) * 4)
    with pytest.raises(ValueError, match=r"a\.qrels:1:1: expected text, got a NUL byte"):
        cr.read_qrels(path)
    with pytest.raises(ValueError, match="expected a file, got a directory"):
        cr.read_qrels(tmp_path)


def test_what_trec_files_cannot_say_is_refused() -> None:
    data = cr.RankingData(y=[1, 0], sizes=[2], doc_ids=["a", "b"])
    for wrong, message in (
        (data.replace(doc_ids=None), "qrels name documents, and these have no ids"),
        (data.replace(doc_ids=["a", "b c"]), "document: expected text without blanks, got 'b c'"),
        (data.replace(doc_ids=["a", ""]), "document: expected text without blanks, got ''"),
        (data.replace(doc_ids=["a", "a"]), r"query 0, document 1 \(a\) is in its list twice"),
        (data.replace(query_ids=["q\t1"]), r"query: expected text without blanks, got 'q\\t1'"),
        (data.replace(judges=[[1], [2]]), "qrels hold a label a document; the data has judges"),
        (data.replace(y=None), "qrels hold a label a document; the data has no supervision"),
        (
            cr.RankingData(y=[1, 0], sizes=[1, 1], query_ids=[5, 5], doc_ids=["a", "b"]),
            ": '5' stands twice",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            cr.write_qrels(wrong, io.StringIO())
    for run, message in (
        (cr.Run(["q 1"], ["a"], [1]), "query: expected text without blanks, got 'q 1'"),
        (cr.Run(["q"], ["a\n"], [1]), r"document: expected text without blanks, got 'a\\n'"),
        (cr.Run(["q"], ["a"], [1], name="my run"), "name: expected text without blanks, got 'my run'"),
    ):
        with pytest.raises(ValueError, match=message):
            cr.write_run(run, io.StringIO())


def test_negative_grades_are_kept_or_made_zero() -> None:
    text = b"1 0 a -2\n1 0 b 1.5\n"
    assert cr.read_qrels(io.BytesIO(text)).y.tolist() == [-2, 1.5]
    assert cr.read_qrels(io.BytesIO(text), negative="zero").y.tolist() == [0, 1.5]
    with pytest.raises(ValueError, match="expected 'keep' or 'zero', got 'drop'"):
        cr.read_qrels(io.BytesIO(text), negative="drop")
