"""PrefLib's files of orders: soc, soi, toc and toi [Mattei & Walsh, PrefLib: a library for preferences, ADT 2013].

A file is one election: a header of ``# KEY: value`` lines, then a line ``count: order`` for each distinct order:
alternatives by their numbers, best first, tied ones in braces, as in ``12: 3,{1,4},2``.

====  ==============  =========================
type  ties            every alternative ranked
====  ==============  =========================
soc   no              yes
soi   no              not by all
toc   yes             yes
toi   yes             not by all
====  ==============  =========================
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, cast

import numpy as np

from calirank.data._csv import distinct_queries, item_names, refuse_lossy
from calirank.data._files import (
    Source,
    Target,
    atomic_write,
    is_path,
    name_of,
    read_text_lines,
    without_compression_suffix,
)
from calirank.data.ragged import offsets_of, query_ids_of_text
from calirank.data.ranking_data import RankingData
from calirank.data.supervision import Rankings

#: Whether a type allows ties, and whether it allows alternatives that are not ranked.
_TYPES = {"soc": (False, False), "soi": (False, True), "toc": (True, False), "toi": (True, True)}
_ENDINGS = tuple(f".{kind}" for kind in _TYPES)
_REFUSED = {
    "cat": "ballots that put alternatives into categories, not orders",
    "dat": "data in a form of its own",
    "csv": "data in a form of its own",
    "wmd": "a weighted matching problem, not orders",
    "pwg": "a graph of pairwise comparisons, which PrefLib no longer stores; its soc or soi file holds the orders",
    "tog": "a tournament graph, which PrefLib no longer stores; its soc or soi file holds the orders",
    "mjg": "a majority graph, which PrefLib no longer stores; its soc or soi file holds the orders",
    "wmg": "a weighted majority graph, which PrefLib no longer stores; its soc or soi file holds the orders",
}
_NEEDED = ("DATA TYPE", "NUMBER ALTERNATIVES", "NUMBER VOTERS", "NUMBER UNIQUE ORDERS")

_HEADER = re.compile(r"#\s*([^:]*?)\s*:\s*(.*?)\s*")
_NAME_KEY = re.compile(r"ALTERNATIVE NAME (\d+)", re.ASCII)
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_ROW = re.compile(r"(\s*)(\d{1,15})(\s*:\s*)(.*?)\s*", re.ASCII)
_PLAIN = re.compile(r"\d+(?:\s*,\s*\d+)*", re.ASCII)
_TOKEN = re.compile(r"\s*(\d+|[{},])|\s*(\S)", re.ASCII)


# --- reading ---------------------------------------------------------------------------------------------------------


def read_preflib(source: Source | Sequence[Source]) -> RankingData:
    """Read PrefLib files of the types soc, soi, toc and toi; several files become several queries.

    The documents of a query are its alternatives, in the order of their numbers; ``doc_ids`` are their names. A name
    that stands twice gets its number (``"Smith #3"``), an alternative without a name is called by its number alone. The
    rankings are the distinct orders, weighted by how many voters gave them. Query ids are the names of the files
    without their endings (of a stream without a name: the one in its header); where these do not tell the files apart,
    with endings, with folders, or numbers from 0. They are int64 when all are whole numbers as they would be printed.

    A folder stands for all files of these types in it, by name. The header is compared with the orders: types, numbers
    of alternatives, voters and orders.

    >>> import io
    >>> votes = '''# FILE NAME: lunch.toc
    ... # DATA TYPE: toc
    ... # NUMBER ALTERNATIVES: 3
    ... # NUMBER VOTERS: 5
    ... # NUMBER UNIQUE ORDERS: 2
    ... # ALTERNATIVE NAME 1: soup
    ... # ALTERNATIVE NAME 2: fish
    ... # ALTERNATIVE NAME 3: stew
    ... 3: 2,1,3
    ... 2: 1,{2,3}
    ... '''
    >>> data = read_preflib(io.StringIO(votes))
    >>> data.query_ids.tolist(), data.doc_ids.tolist()
    (['lunch'], ['soup', 'fish', 'stew'])
    >>> data.rankings.orders(0), data.rankings.weight.tolist()
    ([(1, 0, 2), (0, (1, 2))], [3.0, 2.0])
    """
    given = list(source) if isinstance(source, (list, tuple)) else [cast("Source", source)]
    sources = [one for entry in given for one in _files_in(entry)]
    if not sources:
        raise ValueError("read_preflib: expected at least one file, got none")
    elections = [_read_election(one) for one in sources]
    ids = query_ids_of_text(_query_ids(elections))
    orders = [len(election.counts) for election in elections]
    rankings = Rankings.from_flat(
        np.array([item for election in elections for item in election.items], np.int64),
        np.array([level for election in elections for level in election.levels], np.int64),
        offsets_of([size for election in elections for size in election.sizes]),
        np.array([count for election in elections for count in election.counts], np.float64),
        np.repeat(ids, orders),
    )
    return RankingData(
        sizes=[len(election.names) for election in elections],
        query_ids=ids,
        doc_ids=np.array([name for election in elections for name in election.names], dtype=np.str_),
        rankings=rankings,
    )


def _files_in(source: Source) -> list[Source]:
    """The PrefLib files of a folder, by name; of anything else, the thing itself."""
    if not (is_path(source) and os.path.isdir(cast("str", source))):
        return [source]
    folder = os.fspath(cast("str", source))
    names = sorted(os.listdir(folder))
    files = [name for name in names if os.path.splitext(without_compression_suffix(name))[1].lower() in _ENDINGS]
    if not files:
        raise ValueError(f"{folder}: expected a file, or a folder with files {' '.join(_ENDINGS)}; got none of these")
    return [os.path.join(folder, name) for name in files]


@dataclass(slots=True)
class _Election:
    """One file, read."""

    source: str
    file_name: str
    names: list[str]
    items: list[int] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


def _query_ids(elections: Sequence[_Election]) -> list[str]:
    """The shortest kind of name that tells the files apart."""
    full = [without_compression_suffix(election.file_name) for election in elections]
    for names in ([os.path.splitext(name)[0] for name in full], full, [election.source for election in elections]):
        if len(set(names)) == len(names):
            return names
    return [str(number) for number in range(len(elections))]


def _read_election(source: Source) -> _Election:
    name = name_of(source)
    lines = ((number, text) for number, text in read_text_lines(source) if text.strip())
    header, first = _read_header(name, lines)
    kind, alternatives = _read_kind(name, header)
    nameless = not is_path(source) and name.startswith("<")
    file_name = (nameless and header.get("FILE NAME", (0, 0, ""))[2]) or os.path.basename(name)
    election = _Election(name, file_name, _alternative_names(name, header, alternatives))
    row = _Row(name, kind, alternatives, election)
    if first is not None:
        row.read(*first)
    for number, text in lines:
        row.read(number, text)
    _check_totals(name, header, election)
    return election


_Entry = tuple[int, int, str]  # line, column and text of a value of the header


def _read_header(name: str, lines: Iterator[tuple[int, str]]) -> tuple[dict[str, _Entry], tuple[int, str] | None]:
    """The header's values by key, and the first line after it."""
    header: dict[str, _Entry] = {}
    number = 1
    for number, text in lines:
        if not text.startswith("#"):
            if not header:
                _refuse_start(name, number, text)
            return header, (number, text)
        match = _HEADER.fullmatch(text)
        if match is None:
            continue  # a comment
        if match[1] in header:
            raise ValueError(f"{name}:{number}:1: {match[1]} stands twice, first in line {header[match[1]][0]}")
        header[match[1]] = (number, match.start(2) + 1, match[2])
    if not header:
        raise ValueError(f"{name}:{number}: expected a PrefLib file with '# KEY: value' lines, got none")
    return header, None


def _refuse_start(name: str, number: int, text: str) -> NoReturn:
    ending = os.path.splitext(without_compression_suffix(name))[1][1:].lower()
    if ending in _REFUSED:
        raise ValueError(f"{name}:{number}:1: expected a soc, soi, toc or toi file, got {ending}: {_REFUSED[ending]}")
    if text.strip().isdecimal():
        raise ValueError(
            f"{name}:{number}:1: expected '# KEY: value' lines, got PrefLib's old format, which begins with the "
            "number of alternatives; it is not supported: preflib.org has the same data in the new one"
        )
    raise ValueError(
        f"{name}:{number}:1: expected a PrefLib file, which begins with '# KEY: value' lines, got {text[:40]!r}"
    )


def _read_kind(name: str, header: dict[str, _Entry]) -> tuple[str, int]:
    """The type of the orders and the number of alternatives."""
    line, column, kind = header.get("DATA TYPE", (1, 1, ""))
    if kind.lower() in _REFUSED:
        raise ValueError(
            f"{name}:{line}:{column}: expected the type soc, soi, toc or toi, got {kind}: {_REFUSED[kind.lower()]}"
        )
    for key in _NEEDED:
        if key not in header:
            raise ValueError(f"{name}:1: expected a line '# {key}: …' in the header, got none")
    if kind.lower() not in _TYPES:
        raise ValueError(f"{name}:{line}:{column}: expected the type soc, soi, toc or toi, got {kind!r}")
    alternatives = _header_number(name, header, "NUMBER ALTERNATIVES")
    if alternatives < 1:
        raise ValueError(f"{name}:{header['NUMBER ALTERNATIVES'][0]}: expected at least one alternative, got 0")
    return kind.lower(), alternatives


def _header_number(name: str, header: dict[str, _Entry], key: str) -> int:
    line, column, text = header[key]
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{name}:{line}:{column}: {key}: expected a whole number, got {text!r}")
    return int(text)


def _alternative_names(name: str, header: dict[str, _Entry], alternatives: int) -> list[str]:
    given = [""] * alternatives
    for key, (line, _, text) in header.items():
        match = _NAME_KEY.fullmatch(key)
        if match is not None:
            if not 1 <= int(match[1]) <= alternatives:
                raise ValueError(
                    f"{name}:{line}:3: {key}: expected one of the {alternatives} alternatives, 1 to {alternatives}"
                )
            given[int(match[1]) - 1] = text
    times = Counter(given)
    names = [
        str(number) if not text else text if times[text] == 1 else f"{text} #{number}"
        for number, text in enumerate(given, start=1)
    ]
    return names if len(set(names)) == alternatives else [str(number) for number in range(1, alternatives + 1)]


class _Row:
    """Reads the lines of one election's orders."""

    def __init__(self, name: str, kind: str, alternatives: int, election: _Election) -> None:
        self._name, self._kind, self._alternatives, self._election = name, kind, alternatives, election
        self._ties, self._partial = _TYPES[kind]

    def read(self, number: int, text: str) -> None:
        """Add ``count: order``."""
        match = _ROW.fullmatch(text)
        if match is None:
            got = text.strip()[:40]
            column = text.index(got[:1])
            self._refuse(number, column, f"expected 'count: order' with a whole count, got {got!r}")
        order, begin = match[4], match.start(4)
        items = self._plain(order)
        levels = list(range(len(items))) if items is not None else []
        if items is None:
            items, levels = self._walk(number, order, begin)
        if len(items) < self._alternatives and not self._partial:
            missing = min(set(range(1, self._alternatives + 1)).difference(items))
            self._refuse(
                number,
                begin,
                f"expected all {self._alternatives} alternatives (type {self._kind}), {missing} is missing",
            )
        election = self._election
        election.items += [item - 1 for item in items]
        election.levels += levels
        election.sizes.append(len(items))
        election.counts.append(int(match[2]))

    def _plain(self, order: str) -> list[int] | None:
        """The alternatives of a correct order without ties; None where a closer look is needed."""
        if not _PLAIN.fullmatch(order):
            return None
        items = [int(text) for text in order.split(",")]
        correct = min(items) >= 1 and max(items) <= self._alternatives and len(set(items)) == len(items)
        return items if correct else None

    def _walk(self, number: int, order: str, begin: int) -> tuple[list[int], list[int]]:
        """The alternatives of any order, and their levels: place (',' place)*, place = number | '{' numbers '}'."""
        items: list[int] = []
        levels: list[int] = []
        level, opened, expects_item = 0, -1, True
        for token in _TOKEN.finditer(order):
            text, column = token[1], begin + token.start(token.lastindex or 0)
            if text is None or (text == "{" and (opened >= 0 or not expects_item)) or (text == "}" and opened < 0):
                self._refuse(
                    number, column, f"expected {self._expected(opened, expects_item)}, got {token[0].strip()!r}"
                )
            if text == "{":
                if not self._ties:
                    self._refuse(number, column, f"expected an order without ties (type {self._kind}), got one")
                opened = len(items)
                open_column = column
            elif expects_item != text.isdigit():
                self._refuse(number, column, f"expected {self._expected(opened, expects_item)}, got {text!r}")
            elif text == "}":
                items[opened:] = sorted(items[opened:])
                opened = -1
            elif text == ",":
                expects_item = True
                level += opened < 0
            else:
                self._check(number, column, int(text), items)
                items.append(int(text))
                levels.append(level)
                expects_item = False
        if opened >= 0:
            self._refuse(number, open_column, "expected a closing '}', got the end of the line")
        if expects_item:
            self._refuse(number, begin + len(order), "expected an alternative, got the end of the line")
        return items, levels

    @staticmethod
    def _expected(opened: int, expects_item: bool) -> str:
        if expects_item:
            return "the number of an alternative" if opened >= 0 else "the number of an alternative or '{'"
        return "',' or '}'" if opened >= 0 else "','"

    def _check(self, number: int, column: int, item: int, items: list[int]) -> None:
        if not 1 <= item <= self._alternatives:
            self._refuse(number, column, f"expected an alternative from 1 to {self._alternatives}, got {item}")
        if item in items:
            self._refuse(number, column, f"expected each alternative once, got {item} again")

    def _refuse(self, number: int, column: int, problem: str) -> NoReturn:
        raise ValueError(f"{self._name}:{number}:{column + 1}: {problem}")


def _check_totals(name: str, header: dict[str, _Entry], election: _Election) -> None:
    found = {
        "NUMBER UNIQUE ORDERS": (len(election.counts), "lines of orders"),
        "NUMBER VOTERS": (sum(election.counts), "as the sum of the counts"),
    }
    for key, (count, what) in found.items():
        stated = _header_number(name, header, key)
        if stated != count:
            line, column, _ = header[key]
            raise ValueError(f"{name}:{line}:{column}: {key}: the header says {stated}, got {count} {what}")
    if not any(election.counts):
        raise ValueError(
            f"{name}:{header['NUMBER VOTERS'][0]}: expected at least one order that a voter gave, got none"
        )


# --- writing ---------------------------------------------------------------------------------------------------------


def write_preflib(data: RankingData, target: Target) -> None:
    """Write rankings in PrefLib's format: one query into a file, several into a folder, a file each.

    A path that is a folder, or ends with ``/`` (then the folder is made), is for several queries, and for one as well.
    The type is the narrowest that holds the rankings, or what the ending of the file says, which must have room for
    them. In a folder the files are called like the queries. Equal orders become one line with the sum of their counts.
    Nothing is written before all is known to be sayable. Document names come back as text.
    """
    what = "write_preflib"
    refuse_lossy(data, "rankings", what)
    names = item_names(data, what)
    folder = is_path(target) and (name_of(target).endswith(("/", os.sep)) or os.path.isdir(cast("str", target)))
    if len(data) != 1 and not folder:
        raise ValueError(
            f"{what}: a PrefLib file holds one election, the data has {len(data)} queries: give a folder, "
            "or a path that ends with / to make one"
        )
    written: list[tuple[Target, str]] = []
    for query, identifier in enumerate(distinct_queries(data, what)):
        lines = _order_lines(data, query)
        kind = _narrowest(lines, int(data.sizes[query]))
        path = target
        if folder:
            if not identifier or identifier.startswith(".") or re.search(r"[/\\:\x00-\x1f]", identifier):
                raise ValueError(f"{what}: query {identifier!r} cannot be the name of a file")
            path = os.path.join(os.fspath(cast("str", target)), f"{identifier}.{kind}")
        elif is_path(target):
            kind = _checked_ending(name_of(target), kind)
        stem = os.path.basename(without_compression_suffix(name_of(path))) if is_path(path) else f"{identifier}.{kind}"
        written.append((path, _election_text(stem, identifier, kind, names[data.rows(query)], lines)))
    if folder:
        os.makedirs(cast("str", target), exist_ok=True)
    for path, text in written:
        with atomic_write(path, "w") as stream:
            stream.write(text)


_Lines = dict[tuple[tuple[int, ...], ...], int]


def _order_lines(data: RankingData, query: int) -> _Lines:
    """The distinct orders of a query, as groups of tied alternatives, and their counts."""
    rankings = data.rankings
    assert rankings is not None
    lines: _Lines = {}
    weights = rankings.weight[rankings.offsets[query] : rankings.offsets[query + 1]]
    for order, weight in zip(rankings.orders(query), weights.tolist(), strict=True):
        where = f"write_preflib: query {data.query_ids[query]}"
        if weight != int(weight):
            raise ValueError(f"{where}: PrefLib counts voters, expected whole weights, got {weight}")
        if not order:
            raise ValueError(f"{where}: expected rankings of at least one document, got an empty one")
        groups = tuple(tuple(sorted(place)) if isinstance(place, tuple) else (place,) for place in order)
        lines[groups] = lines.get(groups, 0) + int(weight)
    if not lines:
        raise ValueError(f"write_preflib: query {data.query_ids[query]}: expected at least one ranking, got none")
    return lines


def _narrowest(lines: _Lines, alternatives: int) -> str:
    ties = any(len(group) > 1 for order in lines for group in order)
    partial = any(sum(map(len, order)) < alternatives for order in lines)
    return next(kind for kind, allowed in _TYPES.items() if allowed == (ties, partial))


def _checked_ending(path: str, kind: str) -> str:
    """The type that the file's ending says, if it is one; an error where it has no room for the orders."""
    ending = os.path.splitext(without_compression_suffix(path))[1][1:].lower()
    if ending in _REFUSED:
        raise ValueError(f"{path}: expected the ending .{kind}, got .{ending}, which is for {_REFUSED[ending]}")
    if ending not in _TYPES:
        return kind
    needs = [
        reason
        for reason, needed, room in zip(("ties", "partial orders"), _TYPES[kind], _TYPES[ending], strict=True)
        if needed and not room
    ]
    if needs:
        raise ValueError(f"{path}: the rankings have {' and '.join(needs)}: expected the ending .{kind}, got .{ending}")
    return ending


def _election_text(file_name: str, title: str, kind: str, names: Sequence[str], lines: _Lines) -> str:
    header = {
        "FILE NAME": file_name,
        "TITLE": title,
        "DESCRIPTION": "",
        "DATA TYPE": kind,
        "MODIFICATION TYPE": "",
        "RELATES TO": "",
        "RELATED FILES": "",
        "PUBLICATION DATE": "",
        "MODIFICATION DATE": "",
        "NUMBER ALTERNATIVES": len(names),
        "NUMBER VOTERS": sum(lines.values()),
        "NUMBER UNIQUE ORDERS": len(lines),
    }
    header |= {f"ALTERNATIVE NAME {number}": name for number, name in enumerate(names, start=1)}
    text: list[str] = []
    for key, value in header.items():
        if "\n" in str(value):
            raise ValueError(f"write_preflib: {key}: expected a name on one line, got {value!r}")
        text.append(f"# {key}: {value}\n")
    for order, count in lines.items():
        places = [",".join(str(item + 1) for item in group) for group in order]
        shown = ",".join(f"{{{place}}}" if "," in place else place for place in places)
        text.append(f"{count}: {shown}\n")
    return "".join(text)
