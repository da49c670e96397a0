"""TREC's two files: relevance judgements (qrels) and runs, the scored documents that a system returned.

=====  =============================================  ====================
file   a line                                         what is looked at
=====  =============================================  ====================
qrels  ``query iteration document relevance``         all but iteration
run    ``query Q0 document rank score tag``           query, document, score, tag
=====  =============================================  ====================

Columns are separated by blanks and tabs; blank lines are passed over. Query ids become int64 where all are whole
numbers as they would be printed, else text; document ids are text.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.data._csv import distinct_queries
from calirank.data._files import Source, Target, atomic_write, name_of, open_bytes
from calirank.data.arguments import lists_of_rows
from calirank.data.ragged import Ints, as_ids, frozen, list_numbers, query_ids_of_text
from calirank.data.ranking_data import RankingData
from calirank.names import did_you_mean

_BLOCK = 1 << 23  # bytes of whole lines taken at a time
_RUN = ("query", "Q0", "document", "rank", "score", "tag")
_QRELS = ("query", "iteration", "document", "relevance")
_FIELD = re.compile(rb"\S+")
_BLANK = re.compile(r"[ \t\n\r\x0b\x0c\0]")


# --- runs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Run:
    """Scored documents of queries, from a system that returned them; higher scores are better.

    ``query``, ``doc`` and ``score`` have an entry a returned document. The entries of a query are brought together, in
    the order of the queries' first appearance, and keep their order otherwise: list ``i`` is
    ``doc[offsets[i]:offsets[i + 1]]``, of query ``query_ids[i]``. Scores stay float32 or float64.

    >>> run = Run(["q2", "q1", "q2"], ["a", "a", "b"], [0.5, 1.0, 2.5], name="bm25")
    >>> run, run.query_ids.tolist(), run.offsets.tolist()
    (Run('bm25', 2 queries, 3 documents), ['q2', 'q1'], [0, 2, 3])
    >>> docs, scores = run["q2"]
    >>> docs.tolist(), scores.tolist()
    (['a', 'b'], [0.5, 2.5])
    """

    query_ids: NDArray[Any]
    offsets: Ints
    doc: NDArray[Any]
    score: NDArray[Any]
    name: str
    _number: dict[Any, int]

    def __init__(self, query: Any, doc: Any, score: ArrayLike, *, name: str = "") -> None:
        queries, docs, scores = as_ids(query, "query"), as_ids(doc, "doc"), _scores(score)
        if not len(queries) == len(docs) == len(scores):
            raise ValueError(
                f"expected as many queries as documents and scores; got {len(queries)}, {len(docs)} and {len(scores)}"
            )
        if not isinstance(name, str):
            raise TypeError(f"name: expected text, got {name!r}")
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            at = wrong[0]
            raise ValueError(
                f"score: expected a finite number, got {scores[at]} for document {docs[at]} of query {queries[at]}"
            )
        ids, offsets, order = lists_of_rows(queries, None, group_rows=True)
        if order is not None:
            docs, scores = docs[order], scores[order]
        repeated = _repeated(offsets, docs)
        if repeated is not None:
            at = repeated[1]
            query = ids[list_numbers(offsets)[at]]
            raise ValueError(f"doc: query {query} has document {docs[at]} twice")
        held = {"query_ids": ids, "offsets": offsets, "doc": docs, "score": scores}
        for attribute, array in held.items():
            object.__setattr__(self, attribute, frozen(array))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_number", {query: number for number, query in enumerate(ids.tolist())})

    @property
    def query(self) -> NDArray[Any]:
        """The query of each document."""
        return self.query_ids[list_numbers(self.offsets)]

    @property
    def n_docs(self) -> int:
        """Number of documents of all queries together."""
        return len(self.doc)

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.query_ids)

    def __iter__(self) -> Iterator[Any]:
        """The query ids."""
        return iter(self._number)

    def __contains__(self, query: object) -> bool:
        return query in self._number

    def __getitem__(self, query: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Documents and scores of a query, in the order in which they were given."""
        number = self._number.get(query)
        if number is None:
            hint = did_you_mean(str(query), map(str, self._number))
            raise KeyError(f"the run has no query {query!r}.{hint}")
        rows = slice(int(self.offsets[number]), int(self.offsets[number + 1]))
        return self.doc[rows], self.score[rows]

    def __repr__(self) -> str:
        queries = f"{len(self)} {'query' if len(self) == 1 else 'queries'}"
        return f"Run({self.name!r}, {queries}, {self.n_docs} document{'s' * (self.n_docs != 1)})"

    def equals(self, other: object) -> bool:
        """Whether the other run has the same name, queries, documents and scores, in the same order and types."""
        arrays = ("query_ids", "offsets", "doc", "score")
        return (
            isinstance(other, Run)
            and self.name == other.name
            and self.score.dtype == other.score.dtype
            and all(np.array_equal(getattr(self, array), getattr(other, array)) for array in arrays)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.query, self.doc, self.score, self.name)


def _rebuilt(kind: type[Run], query: Any, doc: Any, score: Any, name: str) -> Run:
    return kind(query, doc, score, name=name)


def _scores(score: ArrayLike) -> NDArray[Any]:
    if isinstance(score, np.ma.MaskedArray) and np.ma.getmaskarray(score).any():
        raise ValueError("score: expected a number for each document, got a masked array")
    array = np.array(score)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "fiub"):
        raise TypeError(f"score: expected one number a document, got {array.dtype} of shape {array.shape}")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _repeated(offsets: Ints, docs: NDArray[Any]) -> tuple[int, int] | None:
    """The first two rows of one query that have the same document."""
    names = docs.tolist()
    for first, last in pairwise(offsets.tolist()):
        if len(set(names[first:last])) == last - first:
            continue
        seen: dict[Any, int] = {}
        for row in range(first, last):
            if names[row] in seen:
                return seen[names[row]], row
            seen[names[row]] = row
    return None


# --- reading ---------------------------------------------------------------------------------------------------------


def read_run(source: Source) -> Run:
    """Read a TREC run: ``query Q0 document rank score tag``.

    The rank is not looked at: as in trec_eval, the scores alone order the documents. The tag becomes the run's name; a
    file with two tags is refused, and so is a document that a query has twice.

    >>> import io
    >>> run = read_run(io.BytesIO(b"301 Q0 FT1 1 9.5 bm25\\n301 Q0 FT7 2 8.25 bm25\\n"))
    >>> run, run[301][1].tolist()
    (Run('bm25', 1 query, 2 documents), [9.5, 8.25])
    """
    rows = _Rows(source, _RUN, "a run")
    tags: dict[bytes, int] = {}
    for block in rows:
        rows.take_query(block.columns[0])
        rows.take_document(block, 2)
        rows.take_number(block, 4)
        for tag in set(block.columns[5]) - set(tags):
            tags[tag] = int(block.numbers[block.columns[5].index(tag)])
        if len(tags) > 1:
            (first, line), (other, place) = sorted(tags.items(), key=lambda item: item[1])[:2]
            raise ValueError(
                f"{rows.name}:{place}: expected one run in a file, got tag {_text(other)!r} "
                f"after {_text(first)!r} of line {line}"
            )
    query, docs, scores = rows.finish()
    return Run(query, docs, scores, name=_text(next(iter(tags))))


def read_qrels(source: Source, *, negative: str = "keep") -> RankingData:
    """Read TREC relevance judgements: ``query iteration document relevance``; data with labels and ids, no features.

    Fractional grades are kept, and so are negative ones, which metrics refuse; ``negative="zero"`` makes them 0, as
    trec_eval counts them. Queries come in the order of their first appearance; rows of a query that
    do not lie together are brought together (``data.source_rows``). A document judged twice for a query is refused.

    >>> import io
    >>> data = read_qrels(io.BytesIO(b"301 0 FT1 1\\n302 0 FT1 0\\n301 0 FT7 2\\n"))
    >>> data.query_ids.tolist(), data.doc_ids.tolist(), data.y.tolist()
    ([301, 302], ['FT1', 'FT7', 'FT1'], [1.0, 2.0, 0.0])
    """
    if negative not in ("keep", "zero"):
        raise ValueError(f"negative: expected 'keep' or 'zero', got {negative!r}")
    rows = _Rows(source, _QRELS, "relevance judgements")
    for block in rows:
        rows.take_query(block.columns[0])
        rows.take_document(block, 2)
        rows.take_number(block, 3)
    query, docs, labels = rows.finish()
    if negative == "zero":
        labels = np.maximum(labels, 0)
    return RankingData(y=labels, qid=query, doc_ids=docs, group_rows=True)


def _text(field: bytes) -> str:
    return field.decode("utf-8", "replace")


@dataclass(frozen=True)
class _Block:
    """Some lines of a file that are not blank, their numbers, and their columns."""

    lines: Sequence[bytes]
    numbers: Ints
    columns: Sequence[Sequence[bytes]]


class _Rows:
    """The lines of a file in blocks, and what was taken out of them."""

    def __init__(self, source: Source, names: Sequence[str], what: str) -> None:
        self.name = name_of(source)
        self._source, self._names, self._what = source, names, what
        self._queries: dict[bytes, int] = {}
        self._codes: list[Ints] = []
        self._docs: list[str] = []
        self._values: list[NDArray[np.float64]] = []
        self._numbers: list[Ints] = []

    def __iter__(self) -> Iterator[_Block]:
        read = 0
        with open_bytes(self._source) as stream:
            while data := stream.read(_BLOCK) + stream.readline():
                if not read:
                    data = data.removeprefix(codecs.BOM_UTF8)
                lines = data.removesuffix(b"\n").split(b"\n")
                block = self._block(data, lines, np.arange(read + 1, read + 1 + len(lines)))
                read += len(lines)
                if block.lines:
                    self._numbers.append(block.numbers)
                    yield block

    def _block(self, data: bytes, lines: list[bytes], numbers: Ints) -> _Block:
        """The columns of whole lines, split all at once (NUL marks the ends) where no line has too few or too many."""
        width = len(self._names)
        if b"\0" in data:
            at = next(number for number, line in enumerate(lines) if b"\0" in line)
            place = lines[at].index(b"\0") + 1
            raise ValueError(f"{self.name}:{numbers[at]}:{place}: expected text, got a NUL byte (a binary file?)")
        fields = data.removesuffix(b"\n").replace(b"\n", b" \0 ").split()
        if len(fields) == (width + 1) * len(lines) - 1 and set(fields[width :: width + 1]) <= {b"\0"}:
            return _Block(lines, numbers, [fields[column :: width + 1] for column in range(width)])
        rows = [line.split() for line in lines]
        kept = [at for at, row in enumerate(rows) if row]
        for at in kept:
            if len(rows[at]) != width:
                self._refuse_width(lines[at], int(numbers[at]), len(rows[at]))
        return _Block([lines[at] for at in kept], numbers[kept], list(zip(*(rows[at] for at in kept), strict=True)))

    def _refuse_width(self, line: bytes, number: int, width: int) -> NoReturn:
        wanted = f"expected {len(self._names)} columns ({' '.join(self._names)})"
        place = _place(line, min(width, len(self._names)))
        raise ValueError(f"{self.name}:{number}:{place}: {wanted}, got {width}: {_text(line.strip())[:80]!r}")

    def _refuse(self, block: _Block, row: int, column: int, problem: str) -> NoReturn:
        place = _place(block.lines[row], column)
        raise ValueError(f"{self.name}:{block.numbers[row]}:{place}: {self._names[column]}: {problem}")

    def take_query(self, column: Sequence[bytes]) -> None:
        table = self._queries
        codes = (table.setdefault(query, len(table)) for query in column)
        self._codes.append(np.fromiter(codes, dtype=np.int64, count=len(column)))

    def take_document(self, block: _Block, column: int) -> None:
        texts = block.columns[column]
        try:
            self._docs += b"\n".join(texts).decode("utf-8").split("\n")
        except UnicodeDecodeError:
            self._refuse_bytes(block, column)

    def _refuse_bytes(self, block: _Block, column: int) -> NoReturn:
        for row, text in enumerate(block.columns[column]):
            try:
                text.decode("utf-8")
            except UnicodeDecodeError:
                self._refuse(block, row, column, f"expected UTF-8 text, got {text!r}")
        raise AssertionError("some text was not UTF-8")

    def take_number(self, block: _Block, column: int) -> None:
        texts = block.columns[column]
        try:
            values = np.array(list(map(float, texts)))
        except ValueError:
            values = np.array([_number_or_nan(text) for text in texts])
        wrong = ~np.isfinite(values)
        if b"_" in b"".join(texts):  # Python takes 1_000 for a number
            wrong |= np.array([b"_" in text for text in texts])
        if wrong.any():
            row = int(np.argmax(wrong))
            self._refuse(block, row, column, f"expected a finite number, got {_text(texts[row])!r}")
        self._values.append(values)

    def finish(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
        """Query ids, document ids and numbers of all lines; a document that a query has twice is refused."""
        if not self._numbers:
            raise ValueError(f"{self.name}: expected {self._what} ({' '.join(self._names)}), got an empty file")
        codes = np.concatenate(self._codes)
        try:
            queries = query_ids_of_text([query.decode("utf-8") for query in self._queries])
        except UnicodeDecodeError as error:
            number = list(self._queries).index(error.object)
            line = int(np.concatenate(self._numbers)[int(np.argmax(codes == number))])
            raise ValueError(f"{self.name}:{line}: query: expected UTF-8 text, got {error.object!r}") from None
        docs = np.array(self._docs, dtype=np.str_)
        _, offsets, order = lists_of_rows(codes, None, group_rows=True)
        repeated = _repeated(offsets, docs if order is None else docs[order])
        if repeated is not None:
            rows = repeated if order is None else tuple(order[list(repeated)])
            first, again = np.concatenate(self._numbers)[list(rows)].tolist()
            raise ValueError(
                f"{self.name}:{again}: query {queries[codes[rows[1]]]} has document {docs[rows[1]]} already "
                f"in line {first}; expected it once"
            )
        return queries[codes], docs, np.concatenate(self._values)


def _place(line: bytes, column: int) -> int:
    """Where a column of a line begins, from 1; after the end where there are not so many."""
    starts = [match.start() for match in _FIELD.finditer(line)]
    return 1 + (starts[column] if column < len(starts) else len(line.rstrip()))


def _number_or_nan(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


# --- writing ---------------------------------------------------------------------------------------------------------


def write_run(run: Run, target: Target) -> None:
    """Write a run as TREC text; the tag is the run's name, or ``calirank`` where it has none.

    Documents of a query are ranked from 1 by decreasing score, tied ones in the order that they have in the run. Scores
    are written so that reading gives the same numbers (as float64).

    >>> import io
    >>> text = io.StringIO()
    >>> write_run(Run([7, 7], ["a", "b"], [0.5, 2], name="mine"), text)
    >>> print(text.getvalue(), end="")
    7 Q0 b 1 2.0 mine
    7 Q0 a 2 0.5 mine
    """
    tag = _words([run.name or "calirank"], "name")[0]
    queries, docs = _words(run.query_ids.tolist(), "query"), _words(run.doc.tolist(), "document")
    scores = run.score.tolist()
    with atomic_write(target, "w") as stream:
        for query, (first, last) in zip(queries, pairwise(run.offsets.tolist()), strict=True):
            order = first + np.argsort(-run.score[first:last], kind="stable")
            stream.writelines(
                f"{query} Q0 {docs[row]} {rank} {scores[row]!r} {tag}\n" for rank, row in enumerate(order.tolist(), 1)
            )


def write_qrels(data: RankingData, target: Target) -> None:
    """Write labels as TREC relevance judgements, whole ones as whole numbers; the documents need ids.

    Documents without a label are left out: in qrels a document that is not there is an unjudged one. A query of which
    no document is judged would not be there either, and is refused. Features, weights and columns have no place in
    qrels and are left out without a word; document ids come back as text.

    >>> import io
    >>> text = io.StringIO()
    >>> write_qrels(RankingData(y=[1, 0.5], qid=["q", "q"], doc_ids=["a", "b"]), text)
    >>> print(text.getvalue(), end="")
    q 0 a 1
    q 0 b 0.5
    """
    if data.y is None:
        raise ValueError(f"qrels hold a label a document; the data has {data.supervision or 'no supervision'}")
    if data.doc_ids is None:
        raise ValueError("qrels name documents, and these have no ids; data.replace(doc_ids=...) gives them some")
    names = distinct_queries(data, "write_qrels")
    repeated = _repeated(data.offsets, data.doc_ids)
    if repeated is not None:
        raise ValueError(f"{data.row_name(repeated[1])} is in its list twice, which qrels cannot say")
    queries, docs = _words(names, "query"), _words(data.doc_ids.tolist(), "document")
    judged = np.arange(data.n_docs) if data.judged is None else np.flatnonzero(data.judged)
    query = list_numbers(data.offsets)[judged]
    vanished = np.flatnonzero(np.bincount(query, minlength=len(data)) == 0)
    if len(vanished):
        raise ValueError(
            f"query {data.query_ids[vanished[0]]} has no judged document, so qrels would not show that it is there"
        )
    labels = data.y[judged].tolist()
    with atomic_write(target, "w") as stream:
        stream.writelines(
            f"{queries[q]} 0 {docs[row]} {int(label) if label.is_integer() else repr(label)}\n"
            for q, row, label in zip(query.tolist(), judged.tolist(), labels, strict=True)
        )


def _words(values: Sequence[Any], what: str) -> list[str]:
    """Identifiers as text, which must be one word each."""
    words = [str(value) for value in values]
    blank = _BLANK.search("".join(words))
    if blank or "" in words:
        word = next(word for word in words if not word or _BLANK.search(word))
        raise ValueError(f"{what}: expected text without blanks, got {word!r}")
    return words
