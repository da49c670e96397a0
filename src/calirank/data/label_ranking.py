"""Label ranking: sets in which each row has features and ranks the same classes (the KEBI sets)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from calirank.data._csv import cell_place, read_number
from calirank.data._files import Source, name_of, read_text_lines
from calirank.data.ragged import Floats
from calirank.data.ranking_data import RankingData
from calirank.data.supervision import Rankings

#: Crossed features with more columns than this are stored as a sparse matrix.
_DENSE_COLUMNS = 64


def read_label_ranking(source: Source, *, item_features: Literal["cross", "none"] = "cross") -> RankingData:
    """Read a label ranking set: the first line ``rows,features,classes``, then features and the rank of each class.

    Each row is a query whose documents are the classes 1, 2, …; its supervision is the row's ranking of them.

    ``item_features="cross"`` gives class c of a row its own block of columns, which holds the row's features and a 1
    (the intercept), and is 0 elsewhere: a linear score then has one weight vector a class. More than 64 columns make a
    sparse (CSR) matrix. ``"none"``: no features. Values are read as Python's ``float`` and rounded to float32.

    >>> import io
    >>> data = read_label_ranking(io.BytesIO(b"2,1,2\\n0.5,2,1\\n-1,1,2\\n"))
    >>> data.X.tolist()
    [[0.5, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 1.0], [-1.0, 1.0, 0.0, 0.0], [0.0, 0.0, -1.0, 1.0]]
    >>> data.rankings.orders(0), data.feature_names
    ([(1, 0)], ('x1:class1', '1:class1', 'x1:class2', '1:class2'))
    """
    if item_features not in ("cross", "none"):
        raise ValueError(f'item_features: expected "cross" or "none", got {item_features!r}')
    name = name_of(source)
    lines = [(number, text) for number, text in read_text_lines(source) if text.strip()]
    rows, features, classes = _label_ranking_sizes(name, lines)
    values = _label_ranking_values(name, lines[1:], features + classes)
    ranks = values[:, features:]
    wrong = np.flatnonzero((np.sort(ranks, axis=1) != np.arange(1, classes + 1)).any(axis=1))
    if len(wrong):
        _refuse_ranks(name, lines[1 + wrong[0]], ranks[wrong[0]], features)
    too_large = np.argwhere(np.abs(values[:, :features]) > np.finfo(np.float32).max)
    if len(too_large):
        row, column = too_large[0].tolist()
        raise ValueError(
            f"{name}:{cell_place(lines[1 + row], column)}: expected a feature within float32, got one beyond it"
        )
    crossed = item_features == "cross"
    return RankingData(
        _crossed(values[:, :features].astype(np.float32), classes) if crossed else None,
        sizes=np.full(rows, classes),
        doc_ids=np.tile(np.arange(1, classes + 1), rows),
        feature_names=_crossed_names(features, classes) if crossed else None,
        rankings=Rankings.from_ranks(ranks, query=np.arange(rows)),
    )


def _label_ranking_sizes(name: str, lines: Sequence[tuple[int, str]]) -> tuple[int, int, int]:
    expected = "expected the first line rows,features,classes"
    if not lines:
        raise ValueError(f"{name}:1: {expected}, got an empty file")
    number, text = lines[0]
    sizes = [cell.strip() for cell in text.split(",")]
    if len(sizes) != 3 or not all(re.fullmatch(r"\d{1,9}", size, re.ASCII) for size in sizes):
        raise ValueError(f"{name}:{number}: {expected}, three whole numbers, got {text!r}")
    rows, features, classes = map(int, sizes)
    if rows < 1 or classes < 1:
        raise ValueError(f"{name}:{number}: {expected}, with at least one row and one class, got {text!r}")
    if len(lines) - 1 != rows:
        raise ValueError(f"{name}:{lines[-1][0]}: expected {rows} rows, as line {number} says, got {len(lines) - 1}")
    return rows, features, classes


def _label_ranking_values(name: str, lines: Sequence[tuple[int, str]], width: int) -> Floats:
    try:
        values = np.loadtxt([text for _, text in lines], delimiter=",", dtype=np.float64, comments=None, ndmin=2)
    except ValueError as error:
        _refuse_values(name, lines, width)
        raise ValueError(f"{name}: {error}") from error
    if values.shape[1] != width or not np.isfinite(values).all():
        _refuse_values(name, lines, width)
    return values


def _refuse_values(name: str, lines: Sequence[tuple[int, str]], width: int) -> None:
    """Find the first cell that is no number, or the first row of another width."""
    for line in lines:
        cells = line[1].split(",")
        if len(cells) != width:
            place = cell_place(line, min(len(cells), width))
            raise ValueError(f"{name}:{place}: expected {width} cells (features and ranks), got {len(cells)}")
        for column, cell in enumerate(cells):
            try:
                read_number(cell.strip())
            except ValueError as error:
                raise ValueError(f"{name}:{cell_place(line, column)}: {error}, got {cell.strip()!r}") from None


def _refuse_ranks(name: str, line: tuple[int, str], ranks: Floats, features: int) -> NoReturn:
    classes = len(ranks)
    bad = np.array([rank not in range(1, classes + 1) or rank in ranks[:place] for place, rank in enumerate(ranks)])
    column = int(np.argmax(bad))
    raise ValueError(
        f"{name}:{cell_place(line, features + column)}: expected the ranks 1 to {classes}, each once; "
        f"class {column + 1} has {ranks[column]:g}"
    )


def _crossed(features: NDArray[np.float32], classes: int) -> Any:
    """Rows of all classes: the features and a 1, in the columns of the class."""
    rows, width = len(features), features.shape[1] + 1
    block = np.concatenate([features, np.ones((rows, 1), np.float32)], axis=1)
    if classes * width <= _DENSE_COLUMNS:
        dense = np.zeros((rows, classes, classes, width), np.float32)
        every = np.arange(classes)
        dense[:, every, every] = block[:, None]
        return dense.reshape(rows * classes, classes * width)
    from scipy import sparse

    columns = np.tile(np.arange(classes * width, dtype=np.int64), rows)
    starts = np.arange(rows * classes + 1, dtype=np.int64) * width
    matrix = sparse.csr_array(
        (np.repeat(block, classes, axis=0).reshape(-1), columns, starts), shape=(rows * classes, classes * width)
    )
    matrix.eliminate_zeros()
    return matrix


def _crossed_names(features: int, classes: int) -> list[str]:
    names = [*(f"x{number + 1}" for number in range(features)), "1"]
    return [f"{name}:class{number + 1}" for number in range(classes) for name in names]
