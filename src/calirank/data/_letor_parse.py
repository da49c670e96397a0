"""One block of LETOR text: the compiled parse, the numbers it leaves to Python, and the compact form that is kept."""

from __future__ import annotations

import contextlib
import math
import mmap
import re
import threading
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from calirank.data._files import Block

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Scalar = TypeVar("Scalar", bound=np.generic)

_SMALL_ARRAY = 1 << 14  # bytes
_SLAB = 1 << 23
_LONG_BLOCK = 1 << 26  # bytes; only a very long line makes a block so long
_TOKEN_END = re.compile(rb"[ \t\r\n#\0]")


class Texts(NamedTuple):
    """Pieces of text, one after the other: piece k is text[starts[k]:starts[k + 1]]."""

    text: NDArray[np.uint8]
    starts: Ints

    def piece(self, k: int) -> bytes:
        return self.text[self.starts[k] : self.starts[k + 1]].tobytes()

    def without_first(self) -> Texts:
        return Texts(self.text[self.starts[1] :], self.starts[1:] - self.starts[1])


class Entries(NamedTuple):
    """Sparse rows, without the values that are +0: row r has row_start[r]:row_start[r + 1]."""

    ids: NDArray[np.int32]
    values: NDArray[np.float32]
    row_start: Ints


@dataclass
class Part:
    """One block, parsed: its rows, its runs of rows with one query id, and the first error in it."""

    rows: int
    lines: int
    labels: Floats
    features: NDArray[np.float32] | Entries  # an array begins with feature number ``lowest`` of the call
    stored: int  # values that are not +0
    lowest: int  # smallest and largest number of a feature
    highest: int
    run_place: Ints  # (row, line, column) of each run, from 0
    run_ids: Texts
    doc_ids: Texts | None
    has_qid: bool | None  # None where no row got as far
    first: int  # position where the first row has its query id, or would have it
    error: int
    where: int  # position of the error


class _Scratch:
    """Arrays that a parse fills, large enough for any block of some size; memory that is not touched costs nothing."""

    def __init__(self, size: int, rows: int, entries: int) -> None:
        from calirank.data._kernels import INFO

        self.size = size
        self.ids = np.empty(entries, dtype=np.int32)
        self.values = np.empty(entries, dtype=np.float32)
        self.row_start = np.empty(rows + 1, dtype=np.int64)
        self.labels = np.empty(rows, dtype=np.float64)
        self.doc_span = np.empty((rows, 2), dtype=np.int64)
        self.run_place = np.empty((rows, 3), dtype=np.int64)
        self.run_span = np.empty((rows, 2), dtype=np.int64)
        self.hard = np.empty((entries, 3), dtype=np.int64)
        self.info = np.zeros(INFO, dtype=np.int64)


class Parser:
    """Parses blocks, from several threads at once; each call takes a scratch and puts it back."""

    def __init__(self, lowest: int, highest: int, dense: bool | Literal["auto"]) -> None:
        self.lowest, self.highest, self.dense = lowest, highest, dense
        self._scratches: list[_Scratch] = []
        self._slabs = _Slabs()

    def __call__(self, block: Block) -> Part:
        from calirank.data import _kernels as k

        scratch = self._take(block)
        k.parse_block(
            block.text,
            block.begin,
            block.end,
            self.lowest,
            self.highest,
            scratch.ids,
            scratch.values,
            scratch.row_start,
            scratch.labels,
            scratch.doc_span,
            scratch.run_place,
            scratch.run_span,
            scratch.hard,
            scratch.info,
        )
        info: list[int] = scratch.info.tolist()
        rows, runs = info[k.ROWS], info[k.RUNS]
        errors = [(info[k.WHERE], info[k.ERROR])] if info[k.ERROR] else []
        errors += _settle_hard(block, scratch, rows, info[k.HARD])
        run_ids, wrong = _texts(block, scratch.run_span[:runs])
        errors += wrong
        doc_ids, wrong = _doc_ids(block, scratch, rows, info[k.NAMED])
        errors += wrong
        where, error = min(errors, default=(0, 0))
        features, stored = self._compact(scratch, rows, info[k.HIGHEST])
        part = Part(
            rows=rows,
            lines=info[k.LINES],
            labels=scratch.labels[:rows].copy(),
            features=features,
            stored=stored,
            lowest=info[k.LOWEST],
            highest=info[k.HIGHEST],
            run_place=scratch.run_place[:runs].copy(),
            run_ids=run_ids,
            doc_ids=doc_ids,
            has_qid=None if info[k.HAS_QID] < 0 else bool(info[k.HAS_QID]),
            first=info[k.FIRST],
            error=error,
            where=where,
        )
        self._scratches.append(scratch)
        block.release()
        return part

    def _take(self, block: Block) -> _Scratch:
        size = block.end - block.begin
        try:
            scratch = self._scratches.pop()
        except IndexError:
            pass
        else:
            if scratch.size >= size:
                return scratch
        if size > _LONG_BLOCK:
            return _Scratch(size, _count(block, 10) + 1, _count(block, 58) + _count(block, 10) + 1)
        size += size // 4  # the next block may be somewhat longer
        # A row takes two bytes at least ("0\n"), a feature four (" 1:0"), a hard number four.
        return _Scratch(size, size // 2 + 1, size // 4 + 1)

    def _compact(self, scratch: _Scratch, rows: int, highest: int) -> tuple[NDArray[np.float32] | Entries, int]:
        """The features as an array or as sparse rows, whichever is wanted or smaller, and how many are not +0."""
        from calirank.data._kernels import scatter

        count = int(scratch.row_start[rows])
        ids, values, row_start = scratch.ids[:count], scratch.values[:count], scratch.row_start[: rows + 1]
        bits = values.view(np.int32)
        stored = int(np.count_nonzero(bits))
        width = max(highest - self.lowest + 1, 0)
        if self.dense is True or (self.dense == "auto" and rows * width <= 4 * stored):
            table = self._slabs.zeros((rows, width), np.dtype(np.float32))
            scatter(ids, values, row_start, self.lowest, table)
            return table, stored
        if stored == count:
            return Entries(self._slabs.copy(ids), self._slabs.copy(values), row_start.copy()), stored
        keep = bits != 0
        before = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
        return Entries(self._slabs.copy(ids[keep]), self._slabs.copy(values[keep]), before[row_start]), stored


def _settle_hard(block: Block, scratch: _Scratch, rows: int, count: int) -> list[tuple[int, int]]:
    """Read the hard numbers of whole rows with Python's ``float``; the first too large one, as (place, error)."""
    from calirank.data._kernels import FLOAT32_LIMIT, OVERFLOW

    for row, number, position in scratch.hard[:count].tolist():
        if row >= rows:  # the row of an error, the last one
            break
        prefix, colon, digits = _token_at(block, position).rpartition(b":")
        value = float(digits)
        if abs(value) >= (math.inf if number < 0 else FLOAT32_LIMIT):
            return [(position + len(prefix + colon), OVERFLOW)]
        if number < 0:
            scratch.labels[row] = value
        else:
            start, stop = scratch.row_start[row : row + 2]
            at = start + np.searchsorted(scratch.ids[start:stop], number)
            scratch.values[at] = value
    return []


def _token_at(block: Block, position: int) -> bytes:
    """The bytes from a position to the next blank, comment or end of the line."""
    size = 64
    while True:
        piece = block.text[position : min(position + size, block.end)].tobytes()
        found = _TOKEN_END.search(piece)
        if found is not None:
            return piece[: found.start()]
        size *= 4


def _doc_ids(block: Block, scratch: _Scratch, rows: int, named: int) -> tuple[Texts | None, list[tuple[int, int]]]:
    """The document ids, when every row has one; ids that are not UTF-8 are errors in any case."""
    spans = scratch.doc_span[:rows]
    if named == rows:
        return _texts(block, spans)
    return None, _texts(block, spans[spans[:, 1] > 0])[1] if named else []


def _texts(block: Block, spans: Ints) -> tuple[Texts, list[tuple[int, int]]]:
    """Copies of pieces of the block; the first one that is not UTF-8, as (place, error)."""
    from calirank.data._kernels import BAD_BYTE, copy_spans

    starts = np.zeros(len(spans) + 1, dtype=np.int64)
    np.cumsum(spans[:, 1] - spans[:, 0], out=starts[1:])
    texts = Texts(np.empty(starts[-1], dtype=np.uint8), starts)
    copy_spans(block.text, spans, starts, texts.text)
    if not texts.text.size or texts.text.max() < 128:
        return texts, []
    for k, start in enumerate(spans[:, 0].tolist()):
        try:
            texts.piece(k).decode("utf-8")
        except UnicodeDecodeError as error:
            return texts, [(start + error.start, BAD_BYTE)]
    return texts, []


def _count(block: Block, byte: int) -> int:
    """How often a byte occurs, without an array as large as the block."""
    step = 1 << 24
    pieces = (block.text[at : min(at + step, block.end)] for at in range(block.begin, block.end, step))
    return sum(int(np.count_nonzero(piece == byte)) for piece in pieces)


class _Slabs:
    """Memory for what is kept of the blocks: large pieces of it, which go back to the system when they are dropped.

    Freed heap memory may stay with the process, and the parts are dropped while the result is filled, so that both
    together would be the peak. A slab is mapped memory that lives as long as an array in it does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slab: mmap.mmap | None = None
        self._used = 0

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype[Scalar]) -> NDArray[Scalar]:
        size = math.prod(shape) * dtype.itemsize
        if size < _SMALL_ARRAY:
            return np.zeros(shape, dtype)
        with self._lock:
            if self._slab is None or self._used + size > len(self._slab):
                self._slab, self._used = _mapped_memory(max(size, _SLAB)), 0
            slab, start = self._slab, self._used
            self._used += -(-size // 64) * 64
        return np.frombuffer(slab, dtype=dtype, count=math.prod(shape), offset=start).reshape(shape)

    def copy(self, array: NDArray[Scalar]) -> NDArray[Scalar]:
        copied = self.zeros(array.shape, array.dtype)
        copied[...] = array
        return copied


def _mapped_memory(size: int) -> mmap.mmap:
    """Zeroed memory that is not part of the heap, in large pages where the system has them."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, size)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
