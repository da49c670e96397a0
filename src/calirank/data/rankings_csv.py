"""Full and partial rankings as comma-separated values.

A row is a ranking, in one of two forms that look alike, so that a reader must know which it is:

===========  ==============================  ==========================
form         a column                        a cell
===========  ==============================  ==========================
``ranks``    an item, named by the header    the place of that item
``orders``   a place, from the best          the item at that place
===========  ==============================  ==========================
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from calirank.data._csv import (
    MISSING,
    Cell,
    Table,
    distinct_names,
    item_lists,
    item_names,
    needs_query_column,
    query_names,
    read_number,
    read_table,
    refuse_lossy,
    write_table,
)
from calirank.data._files import Source, Target
from calirank.data.label_ranking import read_label_ranking
from calirank.data.ragged import Floats, Ints, encode_ids, list_numbers, offsets_of, query_ids_of_text
from calirank.data.ranking_data import RankingData
from calirank.data.supervision import Rankings
from calirank.names import did_you_mean

__all__ = ["read_label_ranking", "read_rankings", "write_rankings"]

Form = Literal["auto", "ranks", "orders", "best_worst"]

_PLACE_WORDS = ("rank", "place", "position", "choice")
#: Names of columns that are hardly items: places and counts.
_DOUBTFUL = frozenset(
    (
        "first",
        "second",
        "third",
        "best",
        "worst",
        "1st",
        "2nd",
        "3rd",
        "n",
        "count",
        "counts",
        "freq",
        "frequency",
        "weights",
        "w",
        "wk",
        "wt",
        "votes",
        "voters",
        "total",
    )
)
#: The most cells that ``ranks`` may write where most of them are empty, and what counts as most.
_CELLS, _CELLS_PER_ITEM = 1 << 20, 10
_NUMBERED = re.compile(r"(.*?)(\d+)", re.ASCII)


# --- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Orders:
    """Rankings of named items: ranking j is ``items[starts[j]:starts[j + 1]]``; equal levels are ties.

    ``row`` and ``item`` say which items each row mentions, ranked or not.
    """

    names: Sequence[str]
    items: Ints
    levels: Ints
    starts: Ints
    row: Ints
    item: Ints


def read_rankings(
    source: Source,
    *,
    form: Form = "auto",
    weight: str | None = None,
    query: str | None = None,
    items: Sequence[Any] | None = None,
    base: int | None = None,
    blocks: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    best: str = "best",
    worst: str = "worst",
    missing: Sequence[str] = MISSING,
) -> RankingData:
    """Read a table with a header whose rows are rankings; the documents are the ranked items.

    In both forms a 0 or a missing cell (``missing``) means "not ranked".

    ``form="ranks"``
        A column is an item, a cell its place: 1 is best, equal places are ties. ``items`` renames the columns (of each
        block). ``base=0``: places count from 0, and 0 is a place.
    ``form="orders"``
        A column is a place, best first, a cell the item there; places without an item are skipped. The items are those
        that appear: numbers in their order, names in order of appearance; ``items`` gives all of them, in order. With
        ``base`` a cell is the number of an item in ``items``, counting from ``base`` (0 then is an item if ``base=0``).
    ``form="best_worst"``
        ``columns`` hold the items that are compared, ``best`` and ``worst`` say which is best and worst: its name, its
        column, or the letter of its column (A for the first). The items between are tied.
    ``form="auto"``
        ``orders`` if the columns are called rank, place, position or choice and count from 1 (``Rank_1``, ``Rank_2``,
        …); ``ranks`` if the names are different, no two of them are numbers after the same word, and none is a word for
        a place or a count (``first``, ``best``, ``n``, …). All else is an error: ``X1, X2, …`` can be both.

    Columns that are no part of the ranking: ``weight`` (default: ``weight``, where there is one) counts each row, 0
    allowed; ``query`` (default: ``query``, likewise) names the query that the row ranks; a first column without a name
    holds row names. Any other column is left out by naming the ranking's own in ``columns``.

    Without queries there is one, of all items. With queries, the list of each holds the items that are mentioned in one
    of its rows, be it by a 0. ``blocks`` gives the number of columns of several rankings that stand side by side in a
    row, each of another query; the queries are numbered from 0, or called like the first columns where these alone have
    names, and then the items are numbered from 1.

    Items are text; query ids are int64 when all are whole numbers as they would be printed, else text.

    >>> import io
    >>> data = read_rankings(io.BytesIO(b"pear,fig,plum,weight\\n2,1,3,5\\n1,1,,2\\n"))
    >>> data.doc_ids.tolist(), data.rankings.orders(0), data.rankings.weight.tolist()
    (['pear', 'fig', 'plum'], [(1, 0, 2), ((0, 1),)], [5.0, 2.0])
    >>> read_rankings(io.BytesIO(b"rank1,rank2\\nfig,pear\\nplum,\\n")).rankings.orders(0)
    [(0, 1), (2,)]
    """
    _check_options(form, base, blocks, query, columns)
    table = read_table(source)
    weight_column = table.optional_column(weight, "weight", "weight")
    query_column = None if blocks is not None else table.optional_column(query, "query", "query")
    if form == "best_worst":
        lists = [_best_worst(table, _columns(table, columns, ()), best, worst, items, missing)]
    else:
        chosen = _columns(table, columns, (weight_column, query_column), blocked=blocks is not None)
        if form == "auto":
            form = _guess_form(table, chosen)
        read_block = _ranks if form == "ranks" else _orders
        lists = [read_block(table, part, items, base, missing) for part in _split(table, chosen, blocks)]
    if not all(len(part.items) for part in lists):
        raise ValueError(
            f"{table.name}: expected a ranking, got no ranked item in {'a block' if blocks else 'any row'}"
        )
    weights = None if weight_column is None else _weights(table, weight_column)
    if blocks is not None:
        return _side_by_side(lists, weights, _block_names(table, chosen, blocks))
    if query_column is not None:
        return _by_query(table, lists[0], weights, table.queries(query_column, missing))
    return _side_by_side(lists, weights, np.zeros(1, np.int64))


def _check_options(form: str, base: int | None, blocks: object, query: object, columns: object) -> None:
    if form not in ("auto", "ranks", "orders", "best_worst"):
        options = ("auto", "ranks", "orders", "best_worst")
        raise ValueError(
            f'form: expected "auto", "ranks", "orders" or "best_worst", got {form!r}.{did_you_mean(str(form), options)}'
        )
    if base not in (None, 0, 1):
        raise ValueError(f"base: expected 0 or 1, got {base!r}")
    if blocks is not None and query is not None:
        raise ValueError("expected either blocks or query: each block is a query of its own")
    if form == "best_worst" and (columns is None or blocks is not None or base is not None):
        raise ValueError('form="best_worst" needs columns, the columns of the items, and takes no blocks and no base')


def _columns(
    table: Table, names: Sequence[str] | None, others: Iterable[int | None], blocked: bool = False
) -> list[int]:
    """The columns of the ranking: those named, or all but the others and one of row names."""
    if names is not None:
        return [table.column(name, "columns") for name in distinct_names(names, "columns")]
    chosen = [number for number in range(len(table.header)) if number not in others]
    named = [bool(table.header[column]) for column in chosen]
    if not blocked and len(chosen) > 1 and chosen[0] == 0 and not named[0] and all(named[1:]):
        chosen = chosen[1:]
    if not chosen:
        raise ValueError(f"{table.place(-1, 0)}: expected columns of a ranking, got none")
    return chosen


def _guess_form(table: Table, columns: Sequence[int]) -> Form:
    """The form that the header makes certain (see :func:`read_rankings`); otherwise an error."""
    names = [table.header[column] for column in columns]
    numbered = [match for match in map(_NUMBERED.fullmatch, names) if match]
    prefixes = Counter(match[1] for match in numbered)
    if len(prefixes) == 1 and [int(match[2]) for match in numbered] == list(range(1, len(names) + 1)):
        called_places = next(iter(prefixes)).strip(" _.-").lower() in _PLACE_WORDS
        if called_places:
            return "orders"
    alike = max(prefixes.values(), default=0) > 1
    doubtful = any((name if len(name) == 1 else name.lower()) in _DOUBTFUL for name in names)  # N may be an item
    if all(names) and len(set(names)) == len(names) and not alike and not doubtful:
        return "ranks"
    shown = ", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "")
    raise ValueError(
        f'{table.place(-1, columns[0])}: the header {shown} does not say what a row is: give form="ranks" if a '
        'column is an item and a cell its place, form="orders" if a column is a place and a cell the item there; '
        "weight= names a column of counts, columns= those of the ranking"
    )


def _split(table: Table, columns: list[int], blocks: Sequence[int] | None) -> list[list[int]]:
    if blocks is None:
        return [columns]
    sizes = [int(size) for size in blocks]
    if not sizes or min(sizes) < 1 or sum(sizes) != len(columns):
        raise ValueError(
            f"{table.name}: blocks: expected sizes from 1 that add up to the {len(columns)} columns of the rankings, "
            f"got {sizes}"
        )
    bounds = offsets_of(sizes).tolist()
    return [columns[first:last] for first, last in itertools.pairwise(bounds)]


def _block_names(table: Table, columns: list[int], blocks: Sequence[int]) -> NDArray[Any]:
    """The header's name of each block where only the first column of each has one; numbers otherwise."""
    parts = _split(table, columns, blocks)
    first = [table.header[part[0]] for part in parts]
    alone = (
        all(first) and len(set(first)) == len(first) and not any(table.header[c] for part in parts for c in part[1:])
    )
    return query_ids_of_text(first) if alone and max(map(len, parts)) > 1 else np.arange(len(parts), dtype=np.int64)


def _ranks(
    table: Table, columns: Sequence[int], items: Sequence[Any] | None, base: int | None, missing: Sequence[str]
) -> _Orders:
    def read(text: str) -> float:
        try:
            return np.nan if text in missing else read_number(text, 0)
        except ValueError:
            raise ValueError('expected a place, a number >= 0 (form="orders" if the cells are items)') from None

    places = table.convert(columns, read)
    row, item = np.nonzero(~np.isnan(places))
    if base != 0:
        places[places == 0] = np.nan
    flat = Rankings.from_ranks(places)
    return _Orders(_column_items(table, columns, items), flat.items, flat.levels, flat.starts, row, item)


def _column_items(table: Table, columns: Sequence[int], items: Sequence[Any] | None) -> list[str]:
    if items is not None:
        names = distinct_names(items, "items")
        if len(names) != len(columns):
            raise ValueError(
                f"items: expected a name for each of the {len(columns)} columns of {table.name}, got {len(names)}"
            )
        return names
    names = [table.header[column] for column in columns]
    if len(names) > 1 and not any(names[1:]):  # a name that stands over all columns of a block
        return [str(number + 1) for number in range(len(names))]
    times = Counter(names)
    for column, name in zip(columns, names, strict=True):
        if not name or times[name] > 1:
            problem = f"{name!r} stands {times[name]} times" if name else "a column has no name"
            raise ValueError(f"{table.place(-1, column)}: expected a name for each item: {problem}; items= gives names")
    return names


def _orders(
    table: Table, columns: Sequence[int], items: Sequence[Any] | None, base: int | None, missing: Sequence[str]
) -> _Orders:
    if base is None:
        names, code = _named_items(table, columns, items, missing)
    else:
        names, code = _numbered_items(table, columns, items, base, missing)
    row, place = np.nonzero(code >= 0)
    item = code[row, place]
    starts = offsets_of(np.bincount(row, minlength=len(code)))
    _refuse_repeated(table, columns, row, place, item, names)
    return _Orders(names, item, np.arange(len(item)) - starts[row], starts, row, item)


def _named_items(
    table: Table, columns: Sequence[int], items: Sequence[Any] | None, missing: Sequence[str]
) -> tuple[list[str], Ints]:
    """The items, and the number of the item in each cell (-1: none); a cell holds the item's name."""
    if items is not None:
        names = distinct_names(items, "items")
    else:
        present = dict.fromkeys(row[column] for row in table.rows for column in columns)
        names = [text for text in present if text != "0" and text not in missing]
        if query_ids_of_text(names).dtype.kind == "i":
            names.sort(key=int)
    number = {name: code for code, name in enumerate(names)}

    def read(text: str) -> float:
        if text in number:
            return number[text]
        if text == "0" or text in missing:
            return -1
        hint = did_you_mean(text, names)
        if text.isdecimal():
            hint = " (if cells count the items: base=1)"
        raise ValueError(f"expected one of the {len(names)} items{hint}")

    return names, table.convert(columns, read).astype(np.int64)


def _numbered_items(
    table: Table, columns: Sequence[int], items: Sequence[Any] | None, base: int, missing: Sequence[str]
) -> tuple[list[str], Ints]:
    """As :func:`_named_items`; a cell holds the item's number, from ``base``."""
    names = None if items is None else distinct_names(items, "items")

    def read(text: str) -> float:
        if text in missing or (text == "0" and base == 1):
            return -1
        if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) < base:
            raise ValueError(f"expected the number of an item, from {base}")
        if names is not None and int(text) >= base + len(names):
            raise ValueError(f"expected the number of one of the {len(names)} items, {base} to {base + len(names) - 1}")
        return int(text) - base

    code = table.convert(columns, read).astype(np.int64)
    return names if names is not None else [str(base + number) for number in range(int(code.max()) + 1)], code


def _refuse_repeated(
    table: Table, columns: Sequence[int], row: Ints, place: Ints, item: Ints, names: Sequence[str]
) -> None:
    width = len(names) + 1
    order = np.argsort(row * width + item, kind="stable")
    key = (row * width + item)[order]
    again = np.flatnonzero(key[1:] == key[:-1])
    if len(again):
        second = int(order[again + 1].min())
        table.refuse(
            int(row[second]), columns[place[second]], f"item {names[item[second]]!r} stands twice in this ranking"
        )


def _best_worst(
    table: Table, columns: Sequence[int], best: str, worst: str, items: Sequence[Any] | None, missing: Sequence[str]
) -> _Orders:
    names, code = _named_items(table, columns, items, missing)
    row, place = np.nonzero(code >= 0)
    item = code[row, place]
    _refuse_repeated(table, columns, row, place, item, names)
    ends = [_pointed_column(table, columns, table.column(name, name)) for name in (best, worst)]
    for number, (top, bottom) in enumerate(zip(*ends, strict=True)):
        for name, end in ((best, top), (worst, bottom)):
            if code[number, end] < 0:
                table.refuse(
                    number, table.column(name, name), "expected one of the items of this row, got an empty column"
                )
        if top == bottom:
            same = names[code[number, top]]
            table.refuse(number, table.column(worst, worst), f"expected another item than the best, got {same!r}")
    level = np.ones(len(row), np.int64)
    level[place == np.array(ends[0])[row]] = 0
    level[place == np.array(ends[1])[row]] = 2
    level[(level == 2) & (np.bincount(row)[row] == 2)] = 1  # no item between
    order = np.lexsort((level, row))
    starts = offsets_of(np.bincount(row, minlength=len(code)))
    return _Orders(names, item[order], level[order], starts, row, item)


def _pointed_column(table: Table, columns: Sequence[int], pointer: int) -> list[int]:
    """Which of the columns each row's cell points to: by the item's name, the column's name or its letter."""
    letters = {chr(ord("A") + number): number for number in range(min(len(columns), 26))}
    letters |= {table.header[column]: number for number, column in enumerate(columns)}
    found = []
    for number, row in enumerate(table.rows):
        options = letters | {row[column]: place for place, column in enumerate(columns)}
        if row[pointer] not in options:
            table.refuse(number, pointer, f"expected an item of this row, its column or letter, got {row[pointer]!r}")
        found.append(options[row[pointer]])
    return found


def _weights(table: Table, column: int) -> Floats:
    weights = table.numbers([column], least=0)[:, 0]
    if not weights.any():
        raise ValueError(f"{table.place(-1, column)}: column {table.header[column]!r}: all weights are 0")
    return weights


def _side_by_side(lists: Sequence[_Orders], weights: Floats | None, query_ids: NDArray[Any]) -> RankingData:
    """Each entry of ``lists`` ranks the items of its own query."""
    rows = [len(part.starts) - 1 for part in lists]
    rankings = Rankings.from_flat(
        np.concatenate([part.items for part in lists]),
        np.concatenate([part.levels for part in lists]),
        offsets_of(np.concatenate([np.diff(part.starts) for part in lists])),
        None if weights is None else np.tile(weights, len(lists)),
        np.repeat(query_ids, rows),
    )
    return RankingData(
        sizes=[len(part.names) for part in lists],
        query_ids=query_ids,
        doc_ids=np.array([name for part in lists for name in part.names], dtype=np.str_),
        rankings=rankings,
    )


def _by_query(table: Table, orders: _Orders, weights: Floats | None, query: NDArray[Any]) -> RankingData:
    """Each row ranks items of its query; the list of a query holds the items that its rows mention."""
    ids, code = encode_ids(query)
    if weights is not None:
        silent = np.flatnonzero(np.bincount(code, weights) == 0)
        if len(silent):
            raise ValueError(f"{table.name}: query {ids[silent[0]]}: all weights are 0")
    ranked_by = list_numbers(orders.starts)
    queries = np.concatenate([code[orders.row], code[ranked_by]])
    documents, sizes, place = item_lists(queries, np.concatenate([orders.item, orders.items]), len(ids))
    if (sizes == 0).any():
        raise ValueError(f"{table.name}: query {ids[int(np.argmin(sizes))]}: expected at least one item, got none")
    return RankingData(
        sizes=sizes,
        query_ids=ids,
        doc_ids=np.array(orders.names, dtype=np.str_)[documents],
        rankings=Rankings.from_flat(place[len(orders.row) :], orders.levels, orders.starts, weights, query),
    )


# --- writing ---------------------------------------------------------------------------------------------------------


def write_rankings(data: RankingData, target: Target, *, form: Literal["ranks", "orders"] = "ranks") -> None:
    """Write the rankings of the data as a table that :func:`read_rankings` reads with the same ``form``.

    A column ``query`` is written if there is more than one query (or one that is not called 0), a column ``weight`` if
    not all weights are 1. In the form ``ranks`` an item that the query has and the row does not rank is 0, one that the
    query does not have is empty; the documents come back in the order of the columns. The form ``orders`` holds no ties
    and only items that are ranked by someone; their order is given back by ``items=``. The form ``ranks`` is refused
    where queries share so few documents that nearly all of a large table would be empty. Documents come back as text.
    """
    what = "write_rankings"
    if form not in ("ranks", "orders"):
        raise ValueError(f'form: expected "ranks" or "orders", got {form!r}')
    refuse_lossy(data, "rankings", what)
    rankings = data.rankings
    assert rankings is not None
    silent = np.flatnonzero(rankings.counts == 0)
    if len(silent):
        raise ValueError(f"{what}: query {data.query_ids[silent[0]]} has no ranking, so it has no row")
    names = item_names(data, what, ("0", *MISSING) if form == "orders" else ())
    query = list_numbers(rankings.offsets)
    write_cells = _rank_cells if form == "ranks" else _order_cells
    header, cells = write_cells(data, rankings, names, query)
    extra: dict[str, list[Cell]] = {}
    if needs_query_column(data):
        texts = query_names(data, what)
        extra["query"] = [texts[number] for number in query]
    if (rankings.weight != 1).any():
        extra["weight"] = rankings.weight.tolist()
    reserved = {"query", "weight"}.intersection(header)
    if reserved:
        raise ValueError(f"{what}: an item is called {min(reserved)!r}, which names another column")
    rows = ([*(values[number] for values in extra.values()), *row] for number, row in enumerate(cells))
    write_table(target, [*extra, *header], rows)


def _rank_cells(
    data: RankingData, rankings: Rankings, names: list[str], query: Ints
) -> tuple[list[str], Iterable[Sequence[Cell]]]:
    header = list(dict.fromkeys(names))
    column = {name: number for number, name in enumerate(header)}
    columns = np.array([column[name] for name in names], np.int64)
    cells, used = len(query) * len(header), int(data.sizes[query].sum())
    if cells > max(_CELLS, _CELLS_PER_ITEM * used):
        raise ValueError(
            f'write_rankings: form="ranks" has a column for each document: {len(query)} rows of {len(header)} cells, '
            f'of which {used} hold anything; form="orders" has no empty columns, data.save(folder) keeps all'
        )

    def rows() -> Iterable[list[int | None]]:
        for number, owner in enumerate(query.tolist()):
            of_query = columns[data.rows(owner)]
            cells: list[int | None] = [None] * len(header)
            for place in of_query.tolist():
                cells[place] = 0
            items, levels = rankings.judgement(number)
            for place, level in zip(of_query[items].tolist(), levels.tolist(), strict=True):
                cells[place] = level + 1
            yield cells

    return header, rows()


def _order_cells(
    data: RankingData, rankings: Rankings, names: list[str], query: Ints
) -> tuple[list[str], Iterable[Sequence[Cell]]]:
    def refuse(owner: int, problem: str) -> NoReturn:
        raise ValueError(
            f'write_rankings: query {data.query_ids[owner]}: {problem}, for which form="orders" has no room; '
            'form="ranks" has'
        )

    ranked = np.zeros(data.n_docs, bool)
    first = data.offsets[query]
    rows: list[list[str | None]] = []
    for number, owner in enumerate(query.tolist()):
        items, levels = rankings.judgement(number)
        documents = first[number] + items
        if (np.diff(levels) == 0).any():
            refuse(owner, "documents are tied")
        ranked[documents] = True
        rows.append([names[document] for document in documents.tolist()])
    if not ranked.all():
        row = int(np.argmin(ranked))
        refuse(int(np.searchsorted(data.offsets, row, side="right")) - 1, f"nobody ranks document {names[row]!r}")
    width = max(map(len, rows))
    return [f"rank{place + 1}" for place in range(width)], ([*row, *[None] * (width - len(row))] for row in rows)
