"""Tables as text: aligned for a terminal, Markdown, and files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from calirank.data._files import atomic_write


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns: the first one to the left, the others to the right.

    >>> print(aligned([("metric", "mean"), ("ap", "0.5")]))
    metric  mean
    ap       0.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def shown(name: str) -> str:
    """The name on one line: what cannot be printed as its escape.

    >>> print(shown("two\\nlines"))
    two\\nlines
    """
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in name)


def markdown_text(name: str) -> str:
    r"""The name as Markdown shows it.

    >>> print(markdown_text("a|b <c>"))
    a\|b &lt;c>
    """
    plain = shown(name).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", plain)


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table, the headings first.

    >>> print(markdown_table([("metric", "mean"), ("a|b", "0.5")]), end="")
    | metric | mean |
    | --- | ---: |
    | a\\|b | 0.5 |
    """
    headings, *others = [list(map(markdown_text, row)) for row in rows]
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [headings, rule, *others])


def notes_of_all(notes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What is to be said of each name: once where it holds for all of them, else with the name.

    >>> list(notes_of_all({"a": ["x", "y"], "b": ["x"]}))
    ['x', 'a: y']
    """
    for note in dict.fromkeys(note for held in notes.values() for note in held):
        having = [name for name, held in notes.items() if note in held]
        yield from [note] if len(having) == len(notes) else [f"{name}: {note}" for name in having]


def deliver(text: str, path: str | os.PathLike[str] | None) -> str:
    """The text, once it is in the file too where one is named."""
    if path is not None:
        with atomic_write(path, "w") as out:
            out.write(text)
    return text


def plain(value: Any) -> Any:
    """A number as a Python one, and what is neither number nor text (a date) as text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (int, float, str)) else str(value)


def counted(number: int, noun: str, plural: str) -> str:
    """A number and its noun.

    >>> counted(1, "query is", "queries are")
    '1 query is'
    """
    return f"{number} {noun if number == 1 else plural}"
