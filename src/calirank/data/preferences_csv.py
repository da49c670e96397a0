"""Pairwise preferences as comma-separated values, in the forms that such tables have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

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
from calirank.data.ragged import Floats, Ints, encode_ids, list_numbers
from calirank.data.ranking_data import RankingData
from calirank.data.supervision import Preferences
from calirank.data.supervision.preferences import find_cycle
from calirank.names import did_you_mean

Form = Literal["pairs", "counts", "results", "matrix", "long_matrix", "judges"]
Coding = Literal["signed", "share"] | Mapping[str, float]

#: The parameters that each form takes, beside items and missing.
_TAKES = {
    "pairs": ("better", "worse", "weight", "judge", "query", "dag"),
    "counts": ("a", "b", "wins_a", "wins_b", "tied", "ties", "judge", "query", "dag"),
    "results": ("a", "b", "result", "coding", "ties", "weight", "judge", "query", "dag"),
    "matrix": ("dag",),
    "long_matrix": ("better", "worse", "weight", "judge", "query", "dag"),
    "judges": ("columns", "coding", "ties", "judge", "query", "dag"),
}
_SIGNED = {1.0: 1.0, 0.0: 0.5, -1.0: 0.0}
_SHARE = {1.0: 1.0, 0.5: 0.5, 0.0: 0.0}
_TRUTH = {"true": 1.0, "false": 0.0}


# --- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Comparisons:
    """Comparisons of two items each: ``wins_a`` is the weight for "a is preferred to b", ``wins_b`` for the reverse."""

    names: Sequence[str]
    a: Ints
    b: Ints
    wins_a: Floats
    wins_b: Floats
    row: Ints


def read_preferences(
    source: Source,
    *,
    form: Form = "pairs",
    better: str | None = None,
    worse: str | None = None,
    a: str | None = None,
    b: str | None = None,
    wins_a: str | None = None,
    wins_b: str | None = None,
    tied: str | None = None,
    result: str | None = None,
    coding: Coding | None = None,
    columns: Mapping[str, tuple[str, str]] | None = None,
    ties: Literal["half", "drop"] | None = None,
    weight: str | None = None,
    judge: str | None = None,
    query: str | None = None,
    items: Sequence[Any] | None = None,
    missing: Sequence[str] = MISSING,
    dag: bool = False,
) -> RankingData:
    """Read a table with a header that compares items two by two; the documents are the items.

    The parameters name columns; a column that has the parameter's own name need not be named.

    ``form="pairs"``
        A row says that ``better`` is preferred to ``worse``, with ``weight`` if there is such a column.
    ``form="counts"``
        A row compares ``a`` and ``b``: ``wins_a`` times a was preferred, ``wins_b`` times b, ``tied`` times neither. A
        row without any count compared nothing.
    ``form="results"``
        A row is one comparison of ``a`` and ``b`` with ``result``, and ``weight`` if there is such a column. ``coding``
        says what results mean: ``"signed"``: 1 for a, 0 tie, -1 for b; ``"share"``: 1 or TRUE for a, 0.5 tie, 0 or
        FALSE for b; or a mapping from each text to a's share, as ``{"H": 1, "D": 0.5, "A": 0}``. Left out, it is read
        off the results; where they are only 0 and 1, or only 0, it must be given, as 0 then can be a loss or a tie.
    ``form="matrix"``
        A square matrix of counts with the same names in the header and in the first column: how often the row's item
        was preferred to the column's. The diagonal is not looked at.
    ``form="long_matrix"``
        The same matrix with a row for each entry: the columns ``better`` (row), ``worse`` (column) and ``weight``
        (count). Entries of the diagonal only name their item.
    ``form="judges"``
        A row is a judge (called ``judge``), a column ``A:B`` a comparison, a cell its result with ``coding``. Other
        columns are not looked at. Where the names are different, ``columns`` maps each to its two items.

    A tie is half a preference for each item (``ties="half"``) or left out (``ties="drop"``); a missing result is left
    out. Several rows that compare the same items are summed, within each ``judge``; comparisons of another judge are
    another judgement, if any expresses a preference. Comparisons of another ``query`` are another list.

    The items are those that are named, by the rows in order of appearance or by the header; ``items`` gives all of them
    in another order. With queries, the list of each holds the items that its own rows name. Items are text; query
    ids are int64 when all are whole numbers as they would be printed, else text. ``dag=True`` promises that no judge's
    preferences have a cycle; that is checked.

    >>> import io
    >>> data = read_preferences(io.BytesIO(b"better,worse\\nfig,pear\\npear,plum\\nfig,pear\\n"))
    >>> data.doc_ids.tolist(), data.preferences.matrix(0).tolist()
    (['fig', 'pear', 'plum'], [[0.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    >>> games = io.BytesIO(b"home,away,result\\nAjax,Bonn,1\\nBonn,Como,0\\nComo,Ajax,-1\\n")
    >>> read_preferences(games, form="results", a="home", b="away").preferences.matrix(0).tolist()
    [[0.0, 1.0, 1.0], [0.0, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """
    options = {
        "better": better,
        "worse": worse,
        "a": a,
        "b": b,
        "wins_a": wins_a,
        "wins_b": wins_b,
        "tied": tied,
        "result": result,
        "coding": coding,
        "columns": columns,
        "ties": ties,
        "weight": weight,
        "judge": judge,
        "query": query,
        "dag": dag or None,
    }
    _check_options(form, {name: value for name, value in options.items() if value is not None})
    table = read_table(source)
    drop = ties == "drop"
    match form:
        case "pairs" | "long_matrix":
            found = _pairs(table, better, worse, weight, items, missing, matrix=form == "long_matrix")
        case "counts":
            found = _counts(table, (a, b), (wins_a, wins_b), tied, items, missing, drop)
        case "results":
            found = _results(table, (a, b), result, coding, weight, items, missing, drop)
        case "matrix":
            found = _matrix(table, items, missing)
        case "judges":
            found = _judges(table, columns, coding, items, missing, drop)
    by_row = form != "matrix"
    judge_column = table.optional_column(judge, "judge", "judge") if by_row else None
    query_column = table.optional_column(query, "query", "query") if by_row else None
    judges: NDArray[Any] | None = None
    if judge_column is not None:
        judges = np.array(table.names(judge_column, missing), dtype=np.str_)
    if form == "judges" and judges is None:
        judges = np.arange(len(table.rows))
    queries = None if query_column is None else table.queries(query_column, missing)
    by_appearance = items is None and form not in ("matrix", "judges")
    return _ranking_data(table.name, found, judges, queries, dag, by_appearance)


def _check_options(form: str, given: dict[str, Any]) -> None:
    if form not in _TAKES:
        shown = ", ".join(f'"{name}"' for name in _TAKES)
        raise ValueError(f"form: expected one of {shown}, got {form!r}.{did_you_mean(str(form), _TAKES)}")
    for name in given:
        if name not in _TAKES[form]:
            raise ValueError(f'{name}: form="{form}" does not take it; it takes {", ".join(_TAKES[form])}')
    if given.get("ties", "half") not in ("half", "drop"):
        raise ValueError(f'ties: expected "half" or "drop", got {given["ties"]!r}')


def _pairs(
    table: Table,
    better: str | None,
    worse: str | None,
    weight: str | None,
    items: Sequence[Any] | None,
    missing: Sequence[str],
    *,
    matrix: bool,
) -> _Comparisons:
    pair = (table.column(better or "better", "better"), table.column(worse or "worse", "worse"))
    if matrix:
        weights = table.numbers([table.column(weight or "weight", "weight")], least=0)[:, 0]
    else:
        weights = _weights(table, weight)
    names, first, second = _items_of_rows(table, pair, items, missing, allow_equal=matrix)
    weights = np.where(first == second, 0.0, weights)  # the diagonal of a matrix
    return _Comparisons(names, first, second, weights, np.zeros(len(weights)), np.arange(len(weights)))


def _weights(table: Table, weight: str | None) -> Floats:
    column = table.optional_column(weight, "weight", "weight")
    return np.ones(len(table.rows)) if column is None else table.numbers([column], least=0)[:, 0]


def _items_of_rows(
    table: Table,
    pair: tuple[int, int],
    items: Sequence[Any] | None,
    missing: Sequence[str],
    *,
    allow_equal: bool = False,
) -> tuple[list[str], Ints, Ints]:
    """All item names, and the numbers of the two items of each row."""
    names = None if items is None else distinct_names(items, "items")
    number = {name: code for code, name in enumerate(names or ())}
    codes = np.empty((len(table.rows), 2), np.int64)
    for row, cells in enumerate(table.rows):
        for side, column in enumerate(pair):
            name = cells[column]
            if name in missing:
                table.refuse(row, column, f"expected the name of an item, got {name!r}")
            if names is not None and name not in number:
                table.refuse(
                    row, column, f"expected one of the {len(names)} items, got {name!r}.{did_you_mean(name, names)}"
                )
            codes[row, side] = number.setdefault(name, len(number))
        if codes[row, 0] == codes[row, 1] and not allow_equal:
            table.refuse(row, pair[1], f"item {cells[pair[1]]!r} is compared with itself")
    return list(number), codes[:, 0], codes[:, 1]


def _counts(
    table: Table,
    pair: tuple[str | None, str | None],
    wins: tuple[str | None, str | None],
    tied: str | None,
    items: Sequence[Any] | None,
    missing: Sequence[str],
    drop: bool,
) -> _Comparisons:
    sides = (table.column(pair[0] or "a", "a"), table.column(pair[1] or "b", "b"))
    columns = [table.column(wins[0] or "wins_a", "wins_a"), table.column(wins[1] or "wins_b", "wins_b")]
    tied_column = table.optional_column(tied, "tied", "tied")
    if tied_column is not None:
        columns.append(tied_column)
    names, first, second = _items_of_rows(table, sides, items, missing)
    counts = table.numbers(columns, missing, least=0)
    absent = np.isnan(counts)
    partly = absent.any(axis=1) & ~absent.all(axis=1)
    if partly.any():
        row = int(np.argmax(partly))
        table.refuse(row, columns[int(np.argmax(absent[row]))], "expected a count, as the row has others, got none")
    counts[absent] = 0
    half = np.zeros(len(counts)) if drop or tied_column is None else counts[:, 2] / 2
    return _Comparisons(names, first, second, counts[:, 0] + half, counts[:, 1] + half, np.arange(len(counts)))


def _results(
    table: Table,
    pair: tuple[str | None, str | None],
    result: str | None,
    coding: Coding | None,
    weight: str | None,
    items: Sequence[Any] | None,
    missing: Sequence[str],
    drop: bool,
) -> _Comparisons:
    sides = (table.column(pair[0] or "a", "a"), table.column(pair[1] or "b", "b"))
    column = table.column(result or "result", "result")
    weights = _weights(table, weight)
    names, first, second = _items_of_rows(table, sides, items, missing)
    share = _shares(table, [column], coding, missing)[:, 0]
    return _of_shares(_Comparisons(names, first, second, weights, weights, np.arange(len(weights))), share, drop)


def _of_shares(compared: _Comparisons, share: Floats, drop: bool) -> _Comparisons:
    """Divide the weight of each comparison by a's share; NaN (and a tie that is dropped) is for nobody."""
    silent = np.isnan(share) | ((share == 0.5) & drop)
    return replace(
        compared,
        wins_a=np.where(silent, 0.0, compared.wins_a * share),
        wins_b=np.where(silent, 0.0, compared.wins_b * (1 - share)),
    )


def _shares(table: Table, columns: Sequence[int], coding: Coding | None, missing: Sequence[str]) -> Floats:
    """a's share of each result: 1, 0.5 or 0; NaN where it is missing."""
    if coding is None:
        coding = _guess_coding(table, columns, missing)
    read = _reader(coding)
    return table.convert(columns, lambda text: np.nan if text in missing else read(text))


def _reader(coding: Coding) -> Callable[[str], float]:
    if isinstance(coding, Mapping):
        shares = {str(text): float(share) for text, share in coding.items()}
        if not shares or not set(shares.values()) <= {0.0, 0.5, 1.0}:
            raise ValueError(f"coding: expected the shares 1, 0.5 or 0, got {dict(coding)!r}")
        expected, truth, values = f"one of {', '.join(map(repr, shares))}", shares, {}
    elif coding == "signed":
        expected, truth, values = "1, 0 or -1", {}, _SIGNED
    elif coding == "share":
        expected, truth, values = "1, 0.5, 0, TRUE or FALSE", _TRUTH, _SHARE
    else:
        raise ValueError(f'coding: expected "signed", "share" or a mapping, got {coding!r}')

    def read(text: str) -> float:
        share = truth.get(text, truth.get(text.lower()) if truth is _TRUTH else None)
        if share is None and values:
            share = values.get(read_number(text))
        if share is None:
            raise ValueError(f"expected {expected}")
        return share

    return read


def _guess_coding(table: Table, columns: Sequence[int], missing: Sequence[str]) -> Coding:
    """The coding that the results make certain."""
    values = set(
        table.convert(columns, lambda text: np.nan if text in missing else _plain_result(text)).ravel().tolist()
    )
    if -1.0 in values:
        return "signed"
    words = {row[column].lower() for row in table.rows for column in columns} & set(_TRUTH)
    if 0.5 in values or 0.0 not in values or words:
        return "share"
    raise ValueError(
        f"{table.place(-1, columns[0])}: no result is -1 or 0.5, so that 0 may be a loss or a tie: give "
        'coding="share" if 0 is a loss, coding="signed" if it is a tie'
    )


def _plain_result(text: str) -> float:
    value = _TRUTH.get(text.lower())
    return read_number(text) if value is None else value


def _matrix(table: Table, items: Sequence[Any] | None, missing: Sequence[str]) -> _Comparisons:
    names = table.header[1:]
    for column, name in enumerate(names, start=1):
        if not name or name in names[: column - 1]:
            table.refuse(-1, column, "expected a name of its own for each item")
    rows = table.texts(0)
    if sorted(rows) != sorted(names):
        row = next((row for row, name in enumerate(rows) if name not in names or name in rows[:row]), len(rows) - 1)
        table.refuse(
            row,
            0,
            f"expected a square matrix, with the {len(names)} names of the header once each in the first column, "
            f"got {len(rows)} rows and here {rows[row]!r}",
        )
    counts = table.numbers(range(1, len(table.header)), missing)
    order = [rows.index(name) for name in names]
    counts = counts[order]
    np.fill_diagonal(counts, 0)
    wrong = np.argwhere(~(counts >= 0))
    if len(wrong):
        row, column = wrong[0].tolist()
        table.refuse(order[row], column + 1, f"expected a number >= 0, got {table.rows[order[row]][column + 1]!r}")
    listed, number = _listed(names, items)
    first, second = np.nonzero(~np.eye(len(names), dtype=bool))
    return _Comparisons(
        listed, number[first], number[second], counts[first, second], np.zeros(len(first)), np.array(order)[first]
    )


def _judges(
    table: Table,
    columns: Mapping[str, tuple[str, str]] | None,
    coding: Coding | None,
    items: Sequence[Any] | None,
    missing: Sequence[str],
    drop: bool,
) -> _Comparisons:
    if columns is not None:
        pairs = {table.column(name, "columns"): tuple(map(str, pair)) for name, pair in columns.items()}
    else:
        pairs = {number: tuple(name.split(":")) for number, name in enumerate(table.header) if ":" in name}
    if not pairs:
        raise ValueError(
            f"{table.place(-1, 0)}: expected columns called A:B, for two items, got none; columns= names them"
        )
    for column, pair in pairs.items():
        if len(pair) != 2 or not all(pair):
            table.refuse(-1, column, f"expected two items, got {pair}; columns= gives the items of each column")
        if pair[0] == pair[1]:
            table.refuse(-1, column, f"item {pair[0]!r} is compared with itself")
    names = list(dict.fromkeys(name for pair in pairs.values() for name in pair))
    listed, number = _listed(names, items)
    place = {name: int(code) for name, code in zip(names, number, strict=True)}
    share = _shares(table, list(pairs), coding, missing).reshape(-1)
    ones = np.ones(len(share))
    compared = _Comparisons(
        listed,
        np.tile([place[pair[0]] for pair in pairs.values()], len(table.rows)),
        np.tile([place[pair[1]] for pair in pairs.values()], len(table.rows)),
        ones,
        ones,
        np.repeat(np.arange(len(table.rows)), len(pairs)),
    )
    return _of_shares(compared, share, drop)


def _listed(names: Sequence[str], items: Sequence[Any] | None) -> tuple[Sequence[str], Ints]:
    """All items in their order, and where each of the names stands among them."""
    listed = names if items is None else distinct_names(items, "items")
    for name in names:
        if name not in listed:
            raise ValueError(f"items: {name!r} of the header is not among them.{did_you_mean(name, listed)}")
    place = {name: code for code, name in enumerate(listed)}
    return listed, np.array([place[name] for name in names], np.int64)


def _ranking_data(
    name: str,
    found: _Comparisons,
    judges: NDArray[Any] | None,
    queries: NDArray[Any] | None,
    dag: bool,
    by_appearance: bool,
) -> RankingData:
    if not (found.wins_a.any() or found.wins_b.any()):
        raise ValueError(f"{name}: expected at least one preference, got none with a weight above 0")
    pairs = np.stack([found.a, found.b], axis=1)
    wins = np.stack([found.wins_a, found.wins_b], axis=1).reshape(-1)
    row = np.repeat(found.row, 2)
    ids, code = np.zeros(1, np.int64), np.zeros(len(row), np.int64)
    items, sizes = np.arange(len(found.names)), np.array([len(found.names)])
    if queries is not None:
        ids, code = encode_ids(queries[row])
        items, sizes, place = item_lists(code, pairs.reshape(-1), len(ids), by_appearance=by_appearance)
        pairs = place.reshape(-1, 2)
    real = wins > 0
    preferences = Preferences(
        pairs.reshape(-1)[real],
        pairs[:, ::-1].reshape(-1)[real],
        wins[real],
        query=ids[code[real]],
        judge=None if judges is None else judges[row[real]],
    )
    data = RankingData(
        sizes=sizes, query_ids=ids, doc_ids=np.array(found.names, dtype=np.str_)[items], preferences=preferences
    )
    if dag:
        _refuse_cycles(name, data)
    return data


def _refuse_cycles(name: str, data: RankingData) -> None:
    """Raise if a judge prefers in a circle, and name its items."""
    preferences, items = data.preferences, data.doc_ids
    assert preferences is not None
    assert items is not None
    for query, identifier in enumerate(data.query_ids):
        for better, worse, _ in preferences.edges(query):
            cycle = find_cycle(better.tolist(), worse.tolist())
            if cycle:
                path = " > ".join(str(items[data.offsets[query] + item]) for item in [*cycle, cycle[0]])
                raise ValueError(
                    f"{name}: query {identifier}: no cycle was promised (dag=True), but a judge prefers {path}"
                )


# --- writing ---------------------------------------------------------------------------------------------------------


def write_preferences(data: RankingData, target: Target) -> None:
    """Write the preferences of the data as a table in the form ``pairs``, as :func:`read_preferences` reads it.

    A column ``query`` is written if there is more than one query (or one that is not called 0), a column ``judge``
    (numbers from 1) if a query has several, a column ``weight`` if not all weights are 1. Where the pairs would not
    name the documents of a query in their order, pairs of weight 0 before them do; they express no preference.
    Documents come back as text.
    """
    what = "write_preferences"
    refuse_lossy(data, "preferences", what)
    preferences = data.preferences
    assert preferences is not None
    if (preferences.weight != 1).any():
        raise ValueError(f"{what}: the judges have different weights, for which the table has no room")
    names = item_names(data, what, MISSING)
    rows = _written_rows(data, preferences)
    columns: dict[str, Iterable[Cell]] = {}
    if needs_query_column(data):
        texts = query_names(data, what)
        columns["query"] = (texts[number] for number in rows.query.tolist())
    if (preferences.counts > 1).any():
        columns["judge"] = rows.judge.tolist()
    columns["better"] = (names[document] for document in rows.better.tolist())
    columns["worse"] = (names[document] for document in rows.worse.tolist())
    if (rows.weight != 1).any():
        columns["weight"] = rows.weight.tolist()
    write_table(target, list(columns), zip(*columns.values(), strict=True))


class _Written(NamedTuple):
    """What the rows say: numbers of queries, of judges within each (from 1), and of documents among all."""

    query: Ints
    judge: Ints
    better: Ints
    worse: Ints
    weight: Floats


def _written_rows(data: RankingData, preferences: Preferences) -> _Written:
    """The pairs query by query; before them pairs of weight 0, where these must name the documents in order."""
    judgement = list_numbers(preferences.starts)
    query = list_numbers(preferences.offsets)[judgement]
    real = preferences.edge_weight > 0
    silent = np.flatnonzero(np.bincount(judgement[real], minlength=len(preferences.weight)) == 0)
    if len(silent):
        owner = data.query_ids[list_numbers(preferences.offsets)[silent[0]]]
        raise ValueError(f"write_preferences: query {owner}: all pairs of a judge have weight 0")
    first = data.offsets[query]
    pairs = _Written(
        query[real],
        (judgement - preferences.offsets[query] + 1)[real],
        (first + preferences.better)[real],
        (first + preferences.worse)[real],
        preferences.edge_weight[real],
    )
    naming = _naming_pairs(data, pairs)
    rows = [np.concatenate(parts) for parts in zip(naming, pairs, strict=True)]
    order = np.argsort(rows[0], kind="stable")
    return _Written(*(values[order] for values in rows))


def _naming_pairs(data: RankingData, pairs: _Written) -> _Written:
    """Pairs of neighbours for the queries whose documents do not first appear in their order."""
    appears = np.full(data.n_docs, -1)
    named, at = np.unique(np.stack([pairs.better, pairs.worse], axis=1), return_index=True)
    appears[named] = at
    owner = list_numbers(data.offsets)
    wrong = appears < 0
    wrong[1:] |= (appears[1:] < appears[:-1]) & (owner[1:] == owner[:-1])
    needed = np.zeros(len(data), bool)
    needed[owner[wrong]] = True
    lone = np.flatnonzero(needed & (data.sizes == 1))
    if len(lone):
        raise ValueError(f"write_preferences: query {data.query_ids[lone[0]]} has one document, so it has no pair")
    better = np.flatnonzero(needed[owner[:-1]] & (owner[:-1] == owner[1:]))
    return _Written(owner[better], np.ones(len(better), np.int64), better, better + 1, np.zeros(len(better)))
