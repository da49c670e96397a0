"""LETOR / SVMlight text: ``label qid:Q number:value ... # comment``, one document a line.

The text is read in one pass over blocks of whole lines, on several threads; each block is parsed by one compiled call
(``_kernels.parse_block``) and at once brought to a compact form. Values are exactly Python's ``float`` of the text, for
features rounded to float32. The result is the same bit for bit for any number of threads and any size of blocks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NoReturn, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank._kernel import get_threads, run_tasks
from calirank._progress import track
from calirank.data import _letor_errors
from calirank.data._csv import distinct_queries
from calirank.data._files import (
    Block,
    Source,
    Target,
    atomic_write,
    is_path,
    is_plain_file,
    name_of,
    read_text_lines,
    text_blocks,
    without_compression_suffix,
)
from calirank.data._letor_parse import Parser, Part, Texts
from calirank.data.ragged import whole_numbers
from calirank.data.ranking_data import RankingData

Ints: TypeAlias = NDArray[np.int64]
Base: TypeAlias = Literal[0, 1, "auto"]

_BLOCK = 1 << 20  # bytes of text parsed by one call
_AHEAD = 8  # blocks of a mapped file that are in flight at once, for each thread
_COPIES_AHEAD = 2  # the same for blocks that are copies of the text
_DENSE_COSTS = 4  # how many times larger than CSR an array may be
_DENSE_IS_SMALL = 1 << 20  # bytes of an array that are not worth a thought
_WRITTEN = 1 << 18  # values that are written at once


def read_letor(
    source: Source | Iterable[Source],
    *,
    base: Base = 1,
    n_features: int | None = None,
    like: RankingData | None = None,
    groups: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | ArrayLike | None = None,
    group_rows: bool = False,
    dense: bool | Literal["auto"] = "auto",
    progress: bool | None = None,
) -> RankingData:
    r"""Read LETOR / SVMlight text from a path, several paths (as one set), an open stream or ``"-"`` (standard input).

    Compression (gzip, xz, bz2, zstd) is recognised by the first bytes. Features may come in any order; a missing one is
    0 and a repeated one is an error. Query ids are int64 when all are whole numbers as they would be printed, else
    text. Where every comment has the form ``#docid = X ...``, X is the document's id (text); other comments are passed
    over. Several paths are read as if one followed the other in one file: a query that ends one of them and begins the
    next is one query.

    base: the number of the first feature, 0 or 1; ``"auto"``: 0 if a feature 0 occurs, else 1.
    n_features: how many features there are, where the text does not show it.
    like: other data (the training set) whose base, number of features and kind of array are taken.
    groups: for text without ``qid:``, the sizes of the queries in order, or a file of them (LightGBM's ``.query``
    format); a file ``<path>.query`` beside the text is found by itself.
    group_rows: bring rows of a query that do not lie together to their first row (stable; ``data.source_rows``).
    dense: True for an array, False for CSR, in which +0 is not stored. ``"auto"`` takes an array unless it would take
    more than 1 MB and more than four times as much as CSR.

    >>> import io
    >>> data = read_letor(io.StringIO("2 qid:7 1:0.5 3:1 #docid = A\n0 qid:7 2:4e-1 #docid = B\n"))
    >>> data.X.tolist() == [[0.5, 0, 1], [0, float(np.float32(0.4)), 0]], data.y.tolist()
    (True, [2.0, 0.0])
    >>> data.query_ids.tolist(), data.doc_ids.tolist()
    ([7], ['A', 'B'])
    """
    plan = _plan(base, n_features, like, dense)
    return _read(_sources(source), plan, groups=groups, group_rows=group_rows, progress=progress)


# --- what is asked for -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """Which features there may be, and the kind of array that is wanted."""

    base: Base
    width: int | None
    dense: bool | Literal["auto"]
    limit: str  # how messages call the source of the width

    @property
    def lowest(self) -> int:
        return 0 if self.base == "auto" else self.base

    @property
    def highest(self) -> int:
        return 2**31 - 2 if self.width is None else self.lowest + self.width - 1


def _plan(base: Base, n_features: int | None, like: RankingData | None, dense: bool | Literal["auto"]) -> _Plan:
    if not isinstance(base, str) or base != "auto":
        base = _first_feature(base, "0, 1 or 'auto'")
    if dense not in (True, False, "auto"):
        raise ValueError(f"dense: expected True, False or 'auto', got {dense!r}")
    limit = "" if n_features is None else f"n_features={n_features}"
    if like is not None:
        if not isinstance(like, RankingData) or like.X is None:
            raise TypeError(f"like: expected RankingData with features, got {like!r}")
        if n_features not in (None, like.n_features):
            raise ValueError(f"n_features: expected {like.n_features} as in like=, got {n_features}")
        if base == 0 and like.feature_base == 1:
            raise ValueError("base: expected 1 as in like=, got 0")
        base, n_features, limit = cast("Base", like.feature_base), like.n_features, f"like= has {like.n_features}"
        dense = isinstance(like.X, np.ndarray) if dense == "auto" else dense
    elif n_features is not None:
        if isinstance(n_features, bool) or not isinstance(n_features, (int, np.integer)):
            raise TypeError(f"n_features: expected a whole number, got {n_features!r}")
        if not 1 <= n_features < 2**31 - 1:
            raise ValueError(f"n_features: expected 1 to 2147483646, got {n_features}")
        if base == "auto":
            raise ValueError("n_features: expected base=0 or base=1 with it, got base='auto'")
    return _Plan(base, n_features, dense, limit)


def _first_feature(base: object, options: str) -> Literal[0, 1]:
    if isinstance(base, bool) or not isinstance(base, (int, np.integer)) or base not in (0, 1):
        raise ValueError(f"base: expected {options}, got {base!r}")
    return 1 if base else 0


def _sources(source: Source | Iterable[Source]) -> list[Source]:
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "read"):
        return [cast("Source", source)]
    if not isinstance(source, Iterable):
        raise TypeError(f"expected a path, several paths, '-' or an open stream, got {type(source).__name__}")
    several = list(source)
    if not several:
        raise ValueError("expected at least one path, got none")
    return several


# --- from text to parts ----------------------------------------------------------------------------------------------


def _read(
    sources: list[Source],
    plan: _Plan,
    *,
    groups: Any = None,
    group_rows: bool = False,
    progress: bool | None = None,
    block_size: int = _BLOCK,
) -> RankingData:
    from calirank.data._kernels import PADDING

    reader = _Reader(sources, plan, _Groups(groups, sources))
    with track(_total_size(sources), "reading", progress) as advance:
        for number, source in enumerate(sources):
            with closing(text_blocks(source, block_size, PADDING)) as blocks:
                for count in reader.read(number, blocks):
                    advance(count)
    return reader.result(group_rows)


def _total_size(sources: list[Source]) -> int | None:
    """Bytes of text in all; None when they are not known beforehand."""
    paths = [cast("str", source) for source in sources if is_path(source) and os.path.isfile(cast("str", source))]
    if len(paths) < len(sources) or not all(map(is_plain_file, paths)):
        return None
    return sum(map(os.path.getsize, paths))


class _Reader:
    """Gathers the parts of all sources, in order, and refuses what only the order shows."""

    def __init__(self, sources: list[Source], plan: _Plan, groups: _Groups) -> None:
        self.names = [name_of(source) for source in sources]
        self.plan, self.groups = plan, groups
        self.parse = Parser(plan.lowest, plan.highest, plan.dense)
        self.parts: list[Part] = []
        self.part_file: list[int] = []
        self.rows = np.zeros(len(sources), dtype=np.int64)  # of each source
        self.lines = 0  # of the current source, so far
        self.has_qid: bool | None = None
        self.last_id: bytes | None = None

    def read(self, file: int, blocks: Iterator[Block]) -> Iterator[int]:
        """Parse the blocks of one source; yields how many bytes are done. While some parse, the next ones are read."""
        self.lines = 0
        batch, failure = _some(blocks)
        while batch:
            tasks: list[Callable[[], Any]] = [partial(self.parse, block) for block in batch]
            tasks.append(partial(_some, blocks))
            *parts, following = run_tasks(tasks)
            for block, part in zip(batch, parts, strict=True):
                self._append(file, block, part)
                yield block.end - block.begin
            if failure is not None:
                break
            batch, failure = following
        if failure is not None:
            raise failure
        if not self.rows[file]:
            found = f"none in {self.lines} lines" if self.lines else "an empty file"
            raise ValueError(f"{self.names[file]}:1:1: expected lines 'label qid:Q number:value ...', got {found}")

    def _append(self, file: int, block: Block, part: Part) -> None:
        self._check_qid(file, block, part)
        if part.error:
            place = _letor_errors.place_of(block, part.where)
            column, words = _letor_errors.describe(
                part.error, place, lowest=self.plan.lowest, highest=self.plan.highest, limit=self.plan.limit
            )
            self._refuse(file, place, column, words)
        if part.rows and self.has_qid:
            last = part.run_ids.piece(len(part.run_place) - 1)
            if part.run_ids.piece(0) == self.last_id:  # the list goes on
                part.run_place, part.run_ids = part.run_place[1:], part.run_ids.without_first()
            self.last_id = last
        if part.rows:
            part.run_place += [self.rows.sum(), self.lines, 0]
            self.rows[file] += part.rows
            self.parts.append(part)
            self.part_file.append(file)
        self.lines += part.lines

    def _check_qid(self, file: int, block: Block, part: Part) -> None:
        """Either all lines have ``qid:``, or none has and the sizes of the queries are known."""
        if part.has_qid is None:
            return
        if self.has_qid is None:
            self.has_qid = part.has_qid
        if part.has_qid:
            wrong = not self.has_qid or self.groups.given
            words = f"expected no qid: {'as on the lines before' if not self.groups.given else 'beside groups='}"
        else:
            wrong = self.has_qid or not self.groups.known(file)
            words = f"expected qid:{' as on the lines before' if self.has_qid else ' after the label'}"
        if wrong:
            place = _letor_errors.place_of(block, part.first)
            words += f", got {_letor_errors.show(place.token) if place.token else 'the end of the line'}"
            if not self.has_qid and not part.has_qid:
                words += "; qid is missing, so the sizes of the queries must come from groups= or a .query file"
            self._refuse(file, place, place.column, words)

    def _refuse(self, file: int, place: _letor_errors.Place, column: int, words: str) -> NoReturn:
        raise ValueError(f"{self.names[file]}:{self.lines + place.line + 1}:{column + 1}: {words}{place.query}")

    # --- from parts to the result ------------------------------------------------------------------------------------

    def result(self, group_rows: bool) -> RankingData:
        labels = np.concatenate([part.labels for part in self.parts])
        if all(part.doc_ids is not None for part in self.parts):
            doc_ids = _strings(_joined([cast("Texts", part.doc_ids) for part in self.parts]))
        else:
            doc_ids = None
        offsets, ids, together = self._queries(group_rows)
        X, base = _features(self.parts, self.plan)
        if together:
            return RankingData(X, labels, offsets=offsets, query_ids=ids, doc_ids=doc_ids, feature_base=base)
        qid = np.repeat(cast("NDArray[Any]", ids), np.diff(offsets))
        return RankingData(X, labels, qid=qid, doc_ids=doc_ids, feature_base=base, group_rows=True)

    def _queries(self, group_rows: bool) -> tuple[Ints, NDArray[Any] | None, bool]:
        """Where the runs of rows with one query begin, their ids, and whether no query comes back later."""
        if not self.has_qid:
            return self.groups.offsets(self.names, self.rows), None, True
        places = np.concatenate([part.run_place for part in self.parts])
        ids = _identifiers(_joined([part.run_ids for part in self.parts]))
        together = len(set(ids.tolist())) == len(ids)
        if not together and not group_rows:
            self._refuse_return(ids, places)
        return np.append(places[:, 0], self.rows.sum()), ids, together

    def _refuse_return(self, ids: NDArray[Any], places: Ints) -> NoReturn:
        files = np.repeat(self.part_file, [len(part.run_place) for part in self.parts])
        begun: dict[Any, int] = {}
        for run, identifier in enumerate(ids.tolist()):
            if identifier in begun:
                break
            begun[identifier] = run
        _, line, column = places[run].tolist()
        before = begun[identifier]
        there = f"line {places[before, 1] + 1}"
        if files[before] != files[run]:
            there = f"{self.names[files[before]]}, {there}"
        raise ValueError(
            f"{self.names[files[run]]}:{line + 1}:{column + 1}: expected the rows of a query to lie together, "
            f"got query {identifier} again, which began at {there}; group_rows=True brings them together"
        )


def _some(blocks: Iterator[Block]) -> tuple[list[Block], Exception | None]:
    """Some blocks more; an error in reading is kept until the lines before it have been looked at."""
    batch: list[Block] = []
    try:
        for block in blocks:
            batch.append(block)
            if len(batch) >= get_threads() * (_AHEAD if block.mapped else _COPIES_AHEAD):
                break
    except (OSError, ValueError) as error:
        return batch, error
    return batch, None


# --- from parts to arrays --------------------------------------------------------------------------------------------


def _features(parts: list[Part], plan: _Plan) -> tuple[Any, int]:
    """The features of all parts as one array or CSR, and their base. Parts are dropped as they are copied."""
    highest = max(part.highest for part in parts)
    base = plan.base
    if base == "auto":
        base = 0 if min(part.lowest for part in parts) == 0 else 1
    width = max(highest - base + 1, 0) if plan.width is None else plan.width
    rows, stored = sum(part.rows for part in parts), sum(part.stored for part in parts)
    dense = plan.dense
    if dense == "auto":
        dense = 4 * rows * width <= max(_DENSE_COSTS * (8 * stored + 4 * rows), _DENSE_IS_SMALL)
    fill = _fill_dense if dense else _fill_sparse
    return fill(parts, rows, stored, width, plan.lowest, base), base


def _fill_dense(parts: list[Part], rows: int, _stored: int, width: int, lowest: int, base: int) -> NDArray[np.float32]:
    from calirank.data._kernels import scatter

    X = np.zeros((rows, width), dtype=np.float32)

    def place(part: Part, row: int) -> None:
        features, out = part.features, X[row : row + part.rows]
        if isinstance(features, np.ndarray):
            wanted = features[:, base - lowest :]
            out[:, : wanted.shape[1]] = wanted
        else:
            scatter(features.ids, features.values, features.row_start, base, out)
        del part.features

    starts = np.cumsum([0, *(part.rows for part in parts)]).tolist()
    run_tasks([partial(place, part, row) for part, row in zip(parts, starts, strict=False)])
    return X


def _fill_sparse(parts: list[Part], rows: int, stored: int, width: int, lowest: int, base: int) -> Any:
    from scipy import sparse

    data: NDArray[np.float32] = np.empty(stored, dtype=np.float32)
    indices: NDArray[np.int32] = np.empty(stored, dtype=np.int32)
    indptr = np.zeros(rows + 1, dtype=np.int32 if stored < 2**31 else np.int64)

    def place(part: Part, row: int, at: int) -> None:
        features, out = part.features, slice(at, at + part.stored)
        if isinstance(features, np.ndarray):
            keep = features.view(np.int32) != 0
            data[out] = features[keep]
            indices[out] = np.nonzero(keep)[1] - (base - lowest)
            ends = np.cumsum(np.count_nonzero(keep, axis=1))
        else:
            data[out], ends = features.values, features.row_start[1:]
            np.subtract(features.ids, base, out=indices[out])
        indptr[row + 1 : row + part.rows + 1] = ends + at
        del part.features

    starts = np.cumsum([0, *(part.rows for part in parts)]).tolist()
    ats = np.cumsum([0, *(part.stored for part in parts)]).tolist()
    run_tasks([partial(place, *task) for task in zip(parts, starts, ats, strict=False)])
    X = sparse.csr_array(cast("Any", (data, indices, indptr)), shape=(rows, width))
    X.has_canonical_format = True
    return X


def _joined(pieces: list[Texts]) -> Texts:
    shifts = np.cumsum([0, *(len(piece.text) for piece in pieces)])
    starts = [piece.starts[:-1] + shift for piece, shift in zip(pieces, shifts[:-1], strict=True)]
    return Texts(np.concatenate([piece.text for piece in pieces]), np.concatenate([*starts, shifts[-1:]]))


def _identifiers(texts: Texts) -> NDArray[Any]:
    """Query ids by the rule of ``ragged.query_ids_of_text``, without a Python text for each."""
    from calirank.data._kernels import canonical_integers

    numbers = np.empty(len(texts.starts) - 1, dtype=np.int64)
    return numbers if canonical_integers(texts.text, texts.starts, numbers) else _strings(texts)


def _strings(texts: Texts) -> NDArray[np.str_]:
    from calirank.data._kernels import code_points

    count, width = len(texts.starts) - 1, int(np.diff(texts.starts).max())
    if texts.text.max() >= 128:
        return np.array([texts.piece(k).decode("utf-8") for k in range(count)], dtype=np.str_)
    codes = np.zeros((count, width), dtype=np.uint32)
    code_points(texts.text, texts.starts, codes)
    return codes.view(f"U{width}")[:, 0]


# --- sizes of the queries --------------------------------------------------------------------------------------------


class _Groups:
    """Where the sizes of the queries come from when the text has no ``qid:``."""

    def __init__(self, groups: Any, sources: list[Source]) -> None:
        self.given = groups is not None
        self.sizes: Ints | None = None  # of all sources together
        self.files: list[Source | None] = []  # or a file for each
        if groups is None:
            self.files = [_sibling(source) for source in sources]
        elif isinstance(groups, (str, os.PathLike)) or hasattr(groups, "read"):
            self.files = [cast("Source", groups)]
        elif isinstance(groups, (list, tuple)) and groups and all(isinstance(g, (str, os.PathLike)) for g in groups):
            self.files = list(groups)
        else:
            self.sizes = _given_sizes(groups)
        if self.sizes is None and len(self.files) != len(sources):
            raise ValueError(f"groups: expected a file for each of {len(sources)} sources, got {len(self.files)}")

    def known(self, file: int) -> bool:
        return self.sizes is not None or self.files[file] is not None

    def offsets(self, names: list[str], rows: Ints) -> Ints:
        if self.sizes is not None:
            sizes = [_summing_to(self.sizes, int(rows.sum()), "groups", ", ".join(names))]
        else:
            files = cast("list[Source]", self.files)
            sizes = [
                _summing_to(_sizes_in(file), int(count), name_of(file), name)
                for file, count, name in zip(files, rows, names, strict=True)
            ]
        return np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64)


def _sibling(source: Source) -> str | None:
    if not is_path(source):
        return None
    path = without_compression_suffix(cast("str", source)) + ".query"
    return path if os.path.isfile(path) else None


def _given_sizes(groups: Any) -> Ints:
    sizes = whole_numbers(groups, "groups")
    if len(sizes) and sizes.min() < 1:
        at = int(np.argmax(sizes < 1))
        raise ValueError(f"groups: expected sizes from 1 on, got {sizes[at]} at position {at}")
    return sizes


def _sizes_in(file: Source) -> Ints:
    """The sizes in a ``.query`` file, one a line."""
    sizes = []
    for number, line in read_text_lines(file):
        text = line.strip(" \t")
        if text and (not re.fullmatch("[0-9]{1,15}", text) or int(text) < 1):
            column = len(line) - len(line.lstrip(" \t")) + 1
            raise ValueError(f"{name_of(file)}:{number}:{column}: expected the size of a query, got {text[:30]!r}")
        if text:
            sizes.append(int(text))
    return np.array(sizes, dtype=np.int64)


def _summing_to(sizes: Ints, rows: int, groups: str, name: str) -> Ints:
    if sizes.sum() != rows:
        raise ValueError(f"{groups}: expected sizes that sum to the {rows} rows of {name}, got {sizes.sum()}")
    return sizes


# --- writing ---------------------------------------------------------------------------------------------------------


def write_letor(
    data: RankingData,
    target: Target,
    *,
    base: Literal[0, 1] | None = None,
    groups: bool | str | os.PathLike[str] = False,
) -> None:
    r"""Write LETOR text to a path (``.gz``, ``.xz``, ``.bz2`` and ``.zst`` compress), ``"-"`` or an open stream.

    Labels and float32 features are the shortest decimals that :func:`read_letor` reads back as the same floats; it
    rounds float64 features to float32. Sparse rows write what they store. ``base`` is the number of the first feature,
    by default ``data.feature_base``. What the text cannot say is refused: missing values, values beyond float32,
    missing labels, weights, supervision other than grades, a query in two places.

    Names and categories of features, and columns, are left out without a word; document ids come back as text. The text
    of sparse rows does not show how many features there are: where no row stores the last ones, reading must be told by
    ``n_features=`` or ``like=``.

    ``groups`` writes the form that LightGBM reads: no ``qid:`` and no comments, and the number of documents of each
    query, one a line, in the file that it names, or for ``True`` in the one with ``.query`` after the target's name,
    where LightGBM and :func:`read_letor` find it. The names of queries and documents are then left out as well.

    >>> import io
    >>> text = io.StringIO()
    >>> write_letor(RankingData([[0.1, 2.0], [0.0, 1e-7]], [1, 0.5], qid=[4, 4], doc_ids=["A", "B"]), text)
    >>> print(text.getvalue(), end="")
    1 qid:4 1:0.1 2:2 #docid = A
    0.5 qid:4 1:0 2:1e-07 #docid = B
    """
    _refuse_unsayable(data)
    first = data.feature_base if base is None else _first_feature(base, "0 or 1")
    doc_ids = None
    if groups is not False:
        query_fields, sizes_target = [""] * len(data), _sizes_target(target, groups)
    else:
        query_fields = [f" qid:{name}" for name in _tokens(distinct_queries(data, "write_letor"), "query id", " \n#")]
        if data.doc_ids is not None:
            doc_ids = _tokens(map(str, data.doc_ids.tolist()), "document id", " \n")
    step = max(1, _WRITTEN // max(1, data.n_features if isinstance(data.X, np.ndarray) else 100))
    with atomic_write(target, "wb") as out:
        for start in range(0, data.n_docs, step):
            rows = slice(start, min(start + step, data.n_docs))
            queries = np.searchsorted(data.offsets, np.arange(rows.start, rows.stop), side="right") - 1
            labels = _shortest(cast("NDArray[Any]", data.y)[rows]).tolist()
            lines = [
                f"{y}{query_fields[q]}{x}" for y, q, x in zip(labels, queries, _rows_of(data, rows, first), strict=True)
            ]
            if doc_ids is not None:
                lines = [f"{line} #docid = {doc}" for line, doc in zip(lines, doc_ids[rows], strict=True)]
            out.write(("\n".join(lines) + "\n").encode())
        if groups is not False:  # when the text is complete and not yet in its place
            with atomic_write(sizes_target, "w") as sizes:
                sizes.writelines(f"{size}\n" for size in data.sizes.tolist())


def _sizes_target(target: Target, groups: object) -> str:
    """The file for the sizes of the queries."""
    if isinstance(groups, (str, os.PathLike)):
        return os.fspath(groups)
    if groups is not True:
        raise TypeError(f"groups: expected True or the path of a file for the sizes, got {groups!r}")
    if not is_path(target):
        raise ValueError(f"{name_of(target)}: what is no path has no .query file beside it; groups= takes its path")
    return f"{without_compression_suffix(name_of(target))}.query"


def _refuse_unsayable(data: RankingData) -> None:
    if data.X is None or data.y is None:
        lacking = "features" if data.X is None else "one label a document"
        kinds = ("judges", "preferences", "rankings")
        other = next((f": it cannot hold {kind}" for kind in kinds if getattr(data, kind) is not None), "")
        raise ValueError(f"LETOR text needs {lacking}, which the data does not have{other}")
    if data.judged is not None:
        row = int(np.argmin(data.judged))
        raise ValueError(
            f"LETOR text cannot leave a label out: expected all documents judged, got none in {data.row_name(row)}"
        )
    for name in ("query_weight", "doc_weight"):
        if getattr(data, name) is not None:
            raise ValueError(f"LETOR text cannot hold {name}; data.replace({name}=None) leaves it out")
    if not data.n_docs:
        raise ValueError("LETOR text needs at least one document, got none")


def _tokens(ids: Iterable[str], what: str, stops: str) -> list[str]:
    """Identifiers, which must stay in one piece between blanks."""
    texts = list(ids)
    for text in texts:
        if not text or min(text) <= " " or any(stop in text for stop in stops):
            raise ValueError(f"expected a {what} without blanks{' and #' * ('#' in stops)}, got {text!r}")
    return texts


def _rows_of(data: RankingData, rows: slice, first: int) -> list[str]:
    """The features of some rows, each with a blank before it."""
    if isinstance(data.X, np.ndarray):
        form = "".join(f" {number}:%s" for number in range(first, first + data.n_features))
        values = data.X[rows]
        for row, feature in np.argwhere(_unsayable(values))[:1].tolist():
            _refuse_value(data, rows.start + row, feature, values[row, feature])
        return [form % tuple(row) for row in _shortest(values).tolist()]
    bounds = data.X.indptr[rows.start : rows.stop + 1]
    stored = slice(bounds[0], bounds[-1])
    for at in np.flatnonzero(_unsayable(data.X.data[stored]))[:1] + bounds[0]:
        row = int(np.searchsorted(data.X.indptr, at, side="right")) - 1
        _refuse_value(data, row, int(data.X.indices[at]), data.X.data[at])
    values = _shortest(data.X.data[stored]).tolist()
    numbers = (data.X.indices[stored].astype(np.int64) + first).tolist()
    features = [f" {number}:{value}" for number, value in zip(numbers, values, strict=True)]
    ends = (bounds - bounds[0]).tolist()
    return ["".join(features[a:b]) for a, b in pairwise(ends)]


def _unsayable(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are missing or would be infinite when they are read as float32."""
    from calirank.data._kernels import FLOAT32_LIMIT

    wrong: NDArray[np.bool_] = np.isnan(values)
    if values.dtype != np.float32:
        wrong |= np.abs(values) >= FLOAT32_LIMIT
    return wrong


def _refuse_value(data: RankingData, row: int, feature: int, value: float) -> NoReturn:
    where = f"{data.row_name(row)}, feature {data.feature_name(feature)}"
    if np.isnan(value):
        raise ValueError(f"LETOR text cannot leave a value open: expected all features present, got NaN in {where}")
    raise ValueError(f"LETOR text is read as float32: expected features within it, got {value} in {where}")


def _shortest(values: NDArray[Any]) -> NDArray[np.object_]:
    """The shortest decimals that are read back as these floats; each distinct one is formatted once."""
    bits = values.view(np.int32 if values.dtype == np.float32 else np.int64)
    distinct, inverse = np.unique(bits, return_inverse=True)
    numbers = distinct.view(values.dtype)
    texts = numbers.astype(np.str_).tolist()
    if values.dtype == np.float32:  # they are read as float64 first, and that could round the other way
        changed = np.array(texts, dtype=np.float64).astype(np.float32) != numbers
        for k in np.flatnonzero(changed).tolist():
            texts[k] = repr(float(numbers[k]))
    short = np.empty(len(texts), dtype=object)
    short[:] = [text.removesuffix(".0") for text in texts]
    return short[inverse].reshape(values.shape)
