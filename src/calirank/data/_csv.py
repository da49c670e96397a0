"""What readers and writers of text share: tables of comma-separated values, names, lists.

A :class:`Table` holds text and remembers where each cell stands, so that an error can name file, line and column.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calirank.data._files import Source, Target, atomic_write, name_of, read_text_lines
from calirank.data.ragged import Floats, Ints, offsets_of, query_ids_of_text
from calirank.data.ranking_data import RankingData
from calirank.names import did_you_mean

#: Cells that hold nothing: empty ones and R's mark.
MISSING = ("", "NA")

Cell: TypeAlias = str | float | None

_FIELD = re.compile(r' *"(?:[^"]|"")*"|[^,]*')
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


# --- reading ---------------------------------------------------------------------------------------------------------


class Table:
    """A header and rows of text, blanks around each cell removed."""

    def __init__(self, name: str, header: list[str], rows: list[list[str]], records: list[tuple[int, str]]) -> None:
        self.name, self.header, self.rows = name, header, rows
        self._records = records  # line number and text of the header and of each row

    def place(self, row: int, column: int) -> str:
        """File, line and column of a cell; row -1 is the header."""
        return f"{self.name}:{cell_place(self._records[row + 1], column)}"

    def refuse(self, row: int, column: int, problem: str) -> NoReturn:
        """Raise ``ValueError`` that names the place of a cell and its column."""
        label = repr(self.header[column]) if self.header[column] else f"number {column + 1}"
        raise ValueError(f"{self.place(row, column)}: column {label}: {problem}")

    def column(self, name: str, meaning: str) -> int:
        """The number of the column with this name; ``meaning`` says in an error what was looked for."""
        if not isinstance(name, str):
            raise TypeError(f"{meaning}: expected the name of a column, got {name!r}")
        found = [number for number, label in enumerate(self.header) if label == name]
        if len(found) == 1:
            return found[0]
        where = self.place(-1, found[1] if found else 0)
        if found:
            raise ValueError(f"{where}: {meaning}: column {name!r} stands {len(found)} times in the header")
        named = [label for label in self.header if label]
        shown = ", ".join(map(repr, named[:12])) + (", …" if len(named) > 12 else "")
        raise ValueError(f"{where}: {meaning}: expected a column {name!r}, got {shown}.{did_you_mean(name, named)}")

    def optional_column(self, name: str | None, default: str, meaning: str) -> int | None:
        """The column with this name; if no name is given, the column called ``default`` where there is one."""
        if name is not None:
            return self.column(name, meaning)
        return self.column(default, meaning) if default in self.header else None

    def texts(self, column: int) -> list[str]:
        """The cells of a column."""
        return [row[column] for row in self.rows]

    def convert(self, columns: Sequence[int], read: Callable[[str], float]) -> Floats:
        """A matrix of the columns' cells, each distinct text read once by ``read``.

        What ``read`` says in a ``ValueError`` is raised again with the place of the first such cell.
        """
        cells = [row[column] for row in self.rows for column in columns]
        values: dict[str, float] = {}
        for text in dict.fromkeys(cells):
            try:
                values[text] = read(text)
            except ValueError as error:
                row, number = divmod(cells.index(text), len(columns))
                self.refuse(row, columns[number], f"{error}, got {text!r}")
        matrix = np.fromiter((values[text] for text in cells), np.float64, len(cells))
        return matrix.reshape(len(self.rows), len(columns))

    def numbers(self, columns: Sequence[int], missing: Sequence[str] = (), least: float = -np.inf) -> Floats:
        """A matrix of the columns' numbers, at least ``least``; NaN where a cell is missing."""

        def read(text: str) -> float:
            return np.nan if text in missing else read_number(text, least)

        return self.convert(columns, read)

    def names(self, column: int, missing: Sequence[str]) -> list[str]:
        """The cells of a column as names; a missing one is an error."""
        texts = self.texts(column)
        for row, text in enumerate(texts):
            if text in missing:
                self.refuse(row, column, f"expected a name, got {text!r}")
        return texts

    def queries(self, column: int, missing: Sequence[str]) -> NDArray[Any]:
        """The cells of a column as query ids; a missing one is an error."""
        return query_ids_of_text(self.names(column, missing))


def read_table(source: Source) -> Table:
    """Read comma-separated values: a header, then rows of as many cells; blank lines are skipped."""
    name = name_of(source)
    records: list[tuple[int, str]] = []
    rows: list[list[str]] = []
    for number, text, cells in _records(source, name):
        if rows and len(cells) != len(rows[0]):
            place = cell_place((number, text), min(len(cells), len(rows[0])))
            raise ValueError(f"{name}:{place}: expected {len(rows[0])} cells, as in the header, got {len(cells)}")
        records.append((number, text))
        rows.append(cells)
    if len(rows) < 2:
        got = "a header only" if rows else "an empty file"
        raise ValueError(
            f"{name}:{records[-1][0] if records else 1}: expected a header and at least one row, got {got}"
        )
    return Table(name, rows[0], rows[1:], records)


def _records(source: Source, name: str) -> Iterator[tuple[int, str, list[str]]]:
    """Line number, text and cells of each record; a quoted cell may go over several lines."""
    lines: list[tuple[int, str]] = []

    def feed() -> Iterator[str]:
        for number, line in read_text_lines(source):
            lines.append((number, line))
            yield line + "\n"

    reader = csv.reader(feed(), strict=True, skipinitialspace=True)
    while True:
        lines.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"{name}:{lines[0][0]}: expected comma-separated values: {error}") from None
        text = "\n".join(line for _, line in lines)
        if text.strip():
            yield lines[0][0], text, [cell.strip() for cell in cells]


def cell_place(record: tuple[int, str], column: int) -> str:
    """Line and column, from 1, where a cell of a record (the number of its first line, and its text) begins."""
    number, text = record
    position = 0
    for _ in range(column):
        match = _FIELD.match(text, position)
        assert match is not None  # the pattern matches the empty text
        position = min(match.end() + 1, len(text))
    while text[position : position + 1] == " ":
        position += 1
    before = text[:position]
    return f"{number + before.count(chr(10))}:{position - (before.rfind(chr(10)) + 1) + 1}"


def read_number(text: str, least: float = -np.inf) -> float:
    """A finite decimal number.

    >>> read_number("2.5")
    2.5
    >>> read_number("nan")
    Traceback (most recent call last):
    ...
    ValueError: expected a finite number
    """
    value = float(text) if _NUMBER.fullmatch(text) else np.nan
    if not np.isfinite(value):
        raise ValueError("expected a finite number")
    if value < least:
        raise ValueError(f"expected a number >= {number_text(least)}")
    return value


def distinct_names(names: Iterable[Any], what: str) -> list[str]:
    """The names as text; a name that stands twice is an error."""
    if isinstance(names, str):
        raise TypeError(f"{what}: expected a sequence of names, got the single text {names!r}")
    texts = [str(name) for name in names]
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            raise ValueError(f"{what}: {text!r} stands twice")
        seen.add(text)
    return texts


def item_lists(query: Ints, item: Ints, queries: int, *, by_appearance: bool = False) -> tuple[Ints, Ints, Ints]:
    """The distinct items of each query: items of all lists, sizes of the lists, place of each entry in its list.

    A list is in the order of the items' numbers, or of their first entry in the query.

    >>> items, sizes, place = item_lists(np.array([0, 0, 1, 0]), np.array([7, 5, 7, 7]), 2)
    >>> items.tolist(), sizes.tolist(), place.tolist()
    ([5, 7, 7], [2, 1], [1, 0, 0, 1])
    """
    width = int(item.max(initial=0)) + 1
    keys, first, inverse = np.unique(query * width + item, return_index=True, return_inverse=True)
    owner = keys // width
    order = np.lexsort((first, owner)) if by_appearance else np.arange(len(keys))
    number = np.empty(len(keys), np.int64)
    number[order] = np.arange(len(keys))
    sizes = np.bincount(owner, minlength=queries).astype(np.int64)
    return keys[order] % width, sizes, number[inverse.reshape(-1)] - offsets_of(sizes)[query]


# --- writing ---------------------------------------------------------------------------------------------------------


def write_table(target: Target, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Write comma-separated values: text as it is, numbers in their shortest form, None as an empty cell."""
    with atomic_write(target, "w") as stream:
        stream.write(",".join(map(_cell, header)) + "\n")
        for row in rows:
            stream.write((",".join(map(_cell, row)) or '""') + "\n")  # a blank line would be skipped


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return number_text(value)
    return f'"{value.replace(chr(34), chr(34) * 2)}"' if re.search(r'[,"\n]', value) else value


def number_text(value: float) -> str:
    """The shortest text that reads as the same number.

    >>> number_text(2.0), number_text(0.1)
    ('2', '0.1')
    """
    whole = np.isfinite(value) and value == int(value) and abs(value) < 2**53
    return str(int(value)) if whole else repr(float(value))


def refuse_lossy(data: RankingData, kind: str, what: str) -> None:
    """Raise unless the data holds this kind of supervision and nothing else that ``what`` has no room for."""
    if data.supervision != kind:
        raise ValueError(f"{what}: expected data with {kind}, got {data.supervision or 'no supervision'}")
    held = {"X": data.X, "query_weight": data.query_weight, "doc_weight": data.doc_weight, **data.columns}
    for name, value in held.items():
        if value is not None:
            raise ValueError(f"{what}: there is no room for {name}; leave it out first: data.replace(...)")


def item_names(data: RankingData, what: str, none: Sequence[str] = ()) -> list[str]:
    """The text of each document's identifier (its number from 1 without one), as a reader will give it back.

    ``none``: texts that the reader takes for no item.
    """
    ids = data.doc_ids
    if ids is None:
        names = [str(number) for size in data.sizes.tolist() for number in range(1, size + 1)]
    else:
        names = [str(name) for name in ids.tolist()]
    for query in range(len(data)):
        distinct_names(names[data.rows(query)], f"{what}: documents of query {data.query_ids[query]}")
    return _readable(names, what, none)


def query_names(data: RankingData, what: str) -> list[str]:
    """The text of each query's identifier, all different."""
    return _readable(distinct_queries(data, what), what, MISSING)


def distinct_queries(data: RankingData, what: str) -> list[str]:
    """The text of each query's identifier; a file that tells lists apart by it cannot hold two of the same."""
    return distinct_names(data.query_ids.tolist(), f"{what}: query ids (data.merge_queries() joins equal ones)")


def needs_query_column(data: RankingData) -> bool:
    """Whether the queries must be named: one query with the identifier 0 is what a reader makes of no names."""
    return not np.array_equal(data.query_ids, np.zeros(1, np.int64))


def _readable(names: list[str], what: str, none: Sequence[str]) -> list[str]:
    for name in dict.fromkeys(names):
        if not name or name != name.strip() or "\r" in name or name.startswith("\ufeff"):
            raise ValueError(f"{what}: the name {name!r} would not be read as it is written")
        if name in none:
            raise ValueError(f"{what}: the name {name!r} would be read as a cell that names nothing")
    return names
