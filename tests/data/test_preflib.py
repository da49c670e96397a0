"""PrefLib files: values against an independent parser, every refusal with its place, round trips."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calirank as cr

#: From the README of the data: voters of each set, all its files together.
VOTERS = {
    "00001-irish": 138011,
    "00003-nasa": 10,
    "00005-burlington": 18768,
    "00006-skate": 416,
    "00010-ski": 8,
    "00012-shirt": 30,
    "00024-dots": 3183,
    "00027-frenchrate": 398,
    "00032-education": 153,
    "00034-cities": 784,
    "00052-f1seasons": 1814,
    "00064-eurovision": 2257,
}


def election(kind: str, alternatives: int, *rows: str, **changes: str) -> str:
    """A PrefLib file whose totals fit its rows; ``changes`` replace values of the header."""
    counts = [int(row.split(":")[0]) for row in rows if row.split(":")[0].isdigit()]
    header = {
        "FILE NAME": f"made.{kind}",
        "DATA TYPE": kind,
        "NUMBER ALTERNATIVES": str(alternatives),
        "NUMBER VOTERS": str(sum(counts)),
        "NUMBER UNIQUE ORDERS": str(len(rows)),
    }
    header |= {f"ALTERNATIVE NAME {k}": f"item {k}" for k in range(1, alternatives + 1)}
    header |= {key.replace("_", " "): value for key, value in changes.items()}
    return "".join(f"# {key}: {value}\n" for key, value in header.items() if value != "(none)") + "\n".join(rows) + "\n"


def read(text: str) -> cr.RankingData:
    return cr.read_preflib(io.StringIO(text))


def naive(text: str) -> tuple[dict[str, str], list[tuple[int, tuple]]]:
    """Header, and (count, order) of each row; a group of one is no tie."""
    header, rows = {}, []
    for line in text.splitlines():
        if line.startswith("#"):
            key, _, value = line[1:].partition(":")
            header[key.strip()] = value.strip()
        elif line.strip():
            count, _, order = line.partition(":")
            groups = [[int(n) - 1 for n in re.findall(r"\d+", g)] for g in re.findall(r"\{[^}]*\}|\d+", order)]
            rows.append((int(count), tuple(g[0] if len(g) == 1 else tuple(sorted(g)) for g in groups)))
    return header, rows


# --- values ----------------------------------------------------------------------------------------------------------


def test_orders_counts_and_names() -> None:
    data = read(election("toi", 4, "7: 3,{4,1}", "2: 2", "0: {1,2},{3,4}"))
    assert data.query_ids.tolist() == ["made"]
    assert data.doc_ids.tolist() == ["item 1", "item 2", "item 3", "item 4"]
    assert data.rankings.orders(0) == [(2, (0, 3)), (1,), ((0, 1), (2, 3))]
    assert data.rankings.weight.tolist() == [7, 2, 0]
    assert data.X is None
    assert data.y is None


def test_blanks_line_ends_and_comments_do_not_matter() -> None:
    text = election("soc", 3, "4: 1,2,3", "1: 3,2,1").replace("4: 1,2,3", " 4 :  1 , 2,3  ")
    text = "\ufeff" + text.replace("\n", "\r\n") + "\r\n"
    text = text.replace("# DATA TYPE", "# a remark without a key\r\n\r\n# DATA TYPE")
    assert read(text).equals(read(election("soc", 3, "4: 1,2,3", "1: 3,2,1")))


def test_repeated_and_missing_names_get_their_numbers() -> None:
    changes = {"ALTERNATIVE_NAME_1": "Smith", "ALTERNATIVE_NAME_3": "Smith", "ALTERNATIVE_NAME_4": "(none)"}
    data = read(election("soc", 4, "1: 1,2,3,4", **changes))
    assert data.doc_ids.tolist() == ["Smith #1", "item 2", "Smith #3", "4"]


def test_names_that_stay_ambiguous_become_numbers() -> None:
    changes = {"ALTERNATIVE_NAME_1": "2", "ALTERNATIVE_NAME_2": ""}
    assert read(election("soc", 2, "1: 1,2", **changes)).doc_ids.tolist() == ["1", "2"]


def test_files_become_queries_named_like_them(tmp_path: Path) -> None:
    (tmp_path / "a.soc").write_text(election("soc", 2, "3: 2,1"))
    (tmp_path / "b.soi.gz").write_bytes(gzip.compress(election("soi", 3, "5: 3", "1: 1,2").encode()))
    data = cr.read_preflib([tmp_path / "a.soc", str(tmp_path / "b.soi.gz")])
    assert data.query_ids.tolist() == ["a", "b"]
    assert data.sizes.tolist() == [2, 3]
    assert data.rankings.orders(0) == [(1, 0)]
    assert data.rankings.orders(1) == [(2,), (0, 1)]
    assert data.rankings.weight.tolist() == [3, 5, 1]


def test_equal_file_names_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    paths = [tmp_path / "a.soc", tmp_path / "a.toc", tmp_path / "x" / "a.toc"]
    for path in paths:
        path.write_text(election(path.suffix[1:], 2, "3: 2,1"))
    assert cr.read_preflib(paths[:2]).query_ids.tolist() == ["a.soc", "a.toc"]
    assert cr.read_preflib(paths[1:]).query_ids.tolist() == [str(path) for path in paths[1:]]
    assert cr.read_preflib([paths[0], paths[0]]).query_ids.tolist() == [0, 1]


def test_a_stream_is_named_by_its_header() -> None:
    assert read(election("soc", 2, "1: 1,2", FILE_NAME="00009-01.soc")).query_ids.tolist() == ["00009-01"]
    assert read(election("soc", 2, "1: 1,2", FILE_NAME="(none)")).query_ids.tolist() == ["<stream>"]


def test_a_strict_order_may_stand_in_a_file_of_a_wider_type() -> None:
    assert read(election("toi", 2, "1: 2,1")).rankings.orders(0) == [(1, 0)]


# --- refusals --------------------------------------------------------------------------------------------------------

# The wrong row is the second one: five lines of totals, three of names and a correct row stand before it.
ROWS = {
    "number too large": ("soi", "1: 1,4", "<stream>:10:6: expected an alternative from 1 to 3, got 4"),
    "number 0": ("soi", "1: 0,2", "<stream>:10:4: expected an alternative from 1 to 3, got 0"),
    "repeated": ("soi", "12: 1,2,1", "<stream>:10:9: expected each alternative once, got 1 again"),
    "repeated in a tie": ("toi", "1: 2,{1,2}", "<stream>:10:9: expected each alternative once, got 2 again"),
    "tie in soc": ("soc", "1: 1,{2,3}", r"<stream>:10:6: expected an order without ties \(type soc\), got one"),
    "tie in soi": ("soi", "1: {2,3}", r"<stream>:10:4: expected an order without ties \(type soi\), got one"),
    "incomplete soc": ("soc", "1: 3,1", r"<stream>:10:4: expected all 3 alternatives \(type soc\), 2 is missing"),
    "incomplete toc": ("toc", "1: {3,2}", r"<stream>:10:4: expected all 3 alternatives \(type toc\), 1 is missing"),
    "letter": ("soi", "1: 1,x,3", "<stream>:10:6: expected the number of an alternative or '{', got 'x'"),
    "minus": ("soi", "1: -1,3", "<stream>:10:4: expected the number of an alternative or '{', got '-'"),
    "no comma": ("soi", "1: 1 3", "<stream>:10:6: expected ',', got '3'"),
    "two commas": ("soi", "1: 1,,3", "<stream>:10:6: expected the number of an alternative or '{', got ','"),
    "comma at the end": ("soi", "1: 1,3,", "<stream>:10:8: expected an alternative, got the end of the line"),
    "no order": ("soi", "1:", "<stream>:10:3: expected an alternative, got the end of the line"),
    "unclosed brace": ("toi", "1: 1,{2,3", "<stream>:10:6: expected a closing '}', got the end of the line"),
    "unopened brace": ("toi", "1: 1,2},3", "<stream>:10:7: expected ',', got '}'"),
    "brace in brace": ("toi", "1: {1,{2,3}}", "<stream>:10:7: expected the number of an alternative, got '{'"),
    "empty brace": ("toi", "1: 1,{}", "<stream>:10:7: expected the number of an alternative, got '}'"),
    "brace after number": ("toi", "1: 1{2,3}", "<stream>:10:5: expected ',', got '{'"),
    "no count": ("soi", "1,2,3", "<stream>:10:1: expected 'count: order' with a whole count, got '1,2,3'"),
    "count with a letter": ("soi", "x: 1,2", "<stream>:10:1: expected 'count: order' with a whole count, got 'x: 1,2'"),
    "negative count": ("soi", "-2: 1,2", "<stream>:10:1: expected 'count: order' with a whole count, got '-2: 1,2'"),
    "fractional count": ("soi", "  1.5: 1", "<stream>:10:3: expected 'count: order' with a whole count, got '1.5: 1'"),
    "header after orders": ("soi", "# TITLE: x", "<stream>:10:1: expected 'count: order' with a whole count"),
}


@pytest.mark.parametrize("case", ROWS)
def test_wrong_orders_are_refused_with_their_place(case: str) -> None:
    kind, row, message = ROWS[case]
    with pytest.raises(ValueError, match=message):
        read(election(kind, 3, "9: 1,2,3", row, NUMBER_UNIQUE_ORDERS="2", NUMBER_VOTERS="10").replace("\n\n", "\n"))


HEADERS = {
    "voters": (
        {"NUMBER_VOTERS": "8"},
        "<stream>:4:18: NUMBER VOTERS: the header says 8, got 7 as the sum of the counts",
    ),
    "orders": ({"NUMBER_UNIQUE_ORDERS": "1"}, "<stream>:5:25: NUMBER UNIQUE ORDERS: the header says 1, got 2 lines"),
    "voters no number": (
        {"NUMBER_VOTERS": "many"},
        "<stream>:4:18: NUMBER VOTERS: expected a whole number, got 'many'",
    ),
    "alternatives no number": ({"NUMBER_ALTERNATIVES": "2.0"}, "<stream>:3:24: NUMBER ALTERNATIVES: expected a whole"),
    "no alternatives": ({"NUMBER_ALTERNATIVES": "0"}, "<stream>:3: expected at least one alternative, got 0"),
    "no type": ({"DATA_TYPE": "(none)"}, "<stream>:1: expected a line '# DATA TYPE: …' in the header, got none"),
    "no voters": ({"NUMBER_VOTERS": "(none)"}, "expected a line '# NUMBER VOTERS: …' in the header"),
    "no number of orders": ({"NUMBER_UNIQUE_ORDERS": "(none)"}, "expected a line '# NUMBER UNIQUE ORDERS: …'"),
    "unknown type": ({"DATA_TYPE": "abc"}, "<stream>:2:14: expected the type soc, soi, toc or toi, got 'abc'"),
    "cat": ({"DATA_TYPE": "cat"}, "got cat: ballots that put alternatives into categories, not orders"),
    "dat": ({"DATA_TYPE": "dat"}, "got dat: data in a form of its own"),
    "wmd": ({"DATA_TYPE": "wmd"}, "got wmd: a weighted matching problem"),
    "pwg": ({"DATA_TYPE": "pwg"}, "got pwg: a graph of pairwise comparisons"),
    "name of no alternative": ({"ALTERNATIVE_NAME_9": "x"}, "<stream>:8:3: ALTERNATIVE NAME 9: expected one of the 2"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_that_does_not_fit_is_refused(case: str) -> None:
    changes, message = HEADERS[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        read(election("soc", 2, "4: 1,2", "3: 2,1", **changes))


def test_a_header_line_that_stands_twice_is_refused() -> None:
    text = "# DATA TYPE: soc\n" + election("soc", 2, "4: 1,2")
    with pytest.raises(ValueError, match="<stream>:3:1: DATA TYPE stands twice, first in line 1"):
        read(text)


def test_no_voter_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="<stream>:4: expected at least one order that a voter gave, got none"):
        read(election("soc", 2, "0: 1,2"))
    with pytest.raises(ValueError, match="<stream>:4: expected at least one order that a voter gave, got none"):
        read(election("soc", 2))


def test_the_old_format_is_named() -> None:
    with pytest.raises(ValueError, match=r"<stream>:1:1: .* got PrefLib's old format, .* not supported"):
        read("3\n1,Soup\n2,Fish\n3,Stew\n5,5,1\n5,1,2,3\n")


def test_files_that_are_no_orders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="<stream>:1: expected a PrefLib file with '# KEY: value' lines, got none"):
        read("")
    with pytest.raises(ValueError, match=r"<stream>:1:1: expected a PrefLib file, which begins with .* got 'a,b,c'"):
        read("a,b,c\n1,2,3\n")
    path = tmp_path / "ballots.dat"
    path.write_text("PosterA1,PosterA2\n1,2\n")
    with pytest.raises(ValueError, match=r"ballots\.dat:1:1: expected a soc, soi, toc or toi file, got dat: data in"):
        cr.read_preflib(path)
    with pytest.raises(ValueError, match="expected at least one file, got none"):
        cr.read_preflib([])


# --- writing ---------------------------------------------------------------------------------------------------------


def made(orders: list, weight: list[float] | None = None, size: int = 3) -> cr.RankingData:
    names = ["soup", "fish", "stew", "cake"][:size]
    return cr.RankingData(
        sizes=[size],
        query_ids=["lunch"],
        doc_ids=names,
        rankings=cr.Rankings(orders, weight, query=["lunch"] * len(orders)),
    )


def test_the_written_file_reads_like_the_format() -> None:
    target = io.StringIO()
    cr.write_preflib(made([[2, 0, 1], [1], [2, 0, 1]], [4, 3, 1]), target)
    lines = target.getvalue().splitlines()
    assert lines[:2] == ["# FILE NAME: lunch.soi", "# TITLE: lunch"]
    assert lines[-6:] == [
        "# NUMBER UNIQUE ORDERS: 2",
        "# ALTERNATIVE NAME 1: soup",
        "# ALTERNATIVE NAME 2: fish",
        "# ALTERNATIVE NAME 3: stew",
        "5: 3,1,2",  # equal orders are one line
        "3: 2",
    ]
    assert "# NUMBER VOTERS: 8" in lines


@pytest.mark.parametrize(
    ("orders", "kind"),
    [
        ([[2, 0, 1]], "soc"),
        ([[2, 0, 1], [1]], "soi"),
        ([[2, 0, 1], [(0, 1), 2]], "toc"),
        ([[2, 0, 1], [(0, 1)]], "toi"),
        ([[(0, 1), 2], [1]], "toi"),
    ],
)
def test_the_type_follows_the_content_and_must_fit_the_ending(tmp_path: Path, orders: list, kind: str) -> None:
    data = made(orders)
    room = {"soc": ["soc", "soi", "toc", "toi"], "soi": ["soi", "toi"], "toc": ["toc", "toi"], "toi": ["toi"]}[kind]
    for ending in ("soc", "soi", "toc", "toi"):
        path = tmp_path / f"lunch.{ending}"
        if ending in room:
            cr.write_preflib(data, path)
            assert f"# DATA TYPE: {ending}\n" in path.read_text()
            assert cr.read_preflib(path).equals(data)
        else:
            with pytest.raises(
                ValueError, match=rf"lunch\.{ending}: the rankings have .*: expected the ending \.{kind}"
            ):
                cr.write_preflib(data, path)
            assert not path.exists()
    cr.write_preflib(data, tmp_path / "lunch.txt.xz")
    assert cr.read_preflib(tmp_path / "lunch.txt.xz").equals(data)


def test_several_queries_go_into_a_folder(tmp_path: Path) -> None:
    rankings = cr.Rankings([[1, 0], [0], [(0, 1, 2)]], [2, 1, 3], query=["a", "b", "b"])
    data = cr.RankingData(sizes=[2, 3], query_ids=["a", "b"], doc_ids=list("xyuvw"), rankings=rankings)
    with pytest.raises(ValueError, match="holds one election, the data has 2 queries: give a folder"):
        cr.write_preflib(data, tmp_path / "both.toi")
    cr.write_preflib(data, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.soc", "b.toi"]
    assert cr.read_preflib([tmp_path / "a.soc", tmp_path / "b.toi"]).equals(data)
    bad = cr.RankingData(sizes=[2], query_ids=["a/b"], rankings=cr.Rankings([[0]], query=["a/b"]))
    with pytest.raises(ValueError, match="query 'a/b' cannot be the name of a file"):
        cr.write_preflib(bad, tmp_path)


def test_several_queries_are_all_written_or_none(tmp_path: Path) -> None:
    rankings = cr.Rankings([[1, 0], [0, 1]], [2, 0.5], query=["a", "b"])
    bad = cr.RankingData(sizes=[2, 2], query_ids=["a", "b"], rankings=rankings)
    with pytest.raises(ValueError, match=r"query b: PrefLib counts voters, expected whole weights, got 0\.5"):
        cr.write_preflib(bad, tmp_path)
    named = bad.replace(doc_ids=["x", "y", "x", "u\nv"], rankings=cr.Rankings([[1, 0], [0, 1]], query=["a", "b"]))
    with pytest.raises(ValueError, match="expected a name on one line"):
        cr.write_preflib(named, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_alternative_may_be_called_na_and_a_file_by_a_number(tmp_path: Path) -> None:
    rankings = cr.Rankings([[1, 0]], query=[7])
    data = cr.RankingData(sizes=[2], query_ids=[7], doc_ids=["NA", "0"], rankings=rankings)
    cr.write_preflib(data, tmp_path)
    assert cr.read_preflib(tmp_path / "7.soc").equals(data)


def test_what_the_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    good = made([[0, 1, 2]])
    cases = {
        "expected whole weights, got 0.5": made([[0, 1, 2]], [0.5]),
        "expected rankings of at least one document, got an empty one": made([[0], []]),
        "no room for X": good.replace(X=np.zeros((3, 1))),
        "no room for query_weight": good.replace(query_weight=[2.0]),
        "no room for note": good.replace(columns={"note": [1, 2, 3]}),
        "expected data with rankings, got grades": good.replace(y=[0, 1, 2]),
        "'soup' stands twice": good.replace(doc_ids=["soup", "fish", "soup"]),
        "expected a name on one line": good.replace(doc_ids=["a\nb", "c", "d"]),
        "the name ' a' would not be read as it is written": good.replace(doc_ids=[" a", "c", "d"]),
    }
    for message, data in cases.items():
        with pytest.raises(ValueError, match=message):
            cr.write_preflib(data, tmp_path / "lunch.soi")
    with pytest.raises(ValueError, match=r"expected the ending \.soc, got \.cat, which is for ballots"):
        cr.write_preflib(good, tmp_path / "lunch.cat")
    assert list(tmp_path.iterdir()) == []


def test_documents_without_names_are_numbered() -> None:
    target = io.BytesIO()
    cr.write_preflib(cr.RankingData(sizes=[2], rankings=cr.Rankings([[1, 0]])), target)
    assert cr.read_preflib(io.BytesIO(target.getvalue())).doc_ids.tolist() == ["1", "2"]


@st.composite
def elections(draw: st.DrawFn) -> cr.RankingData:
    size = draw(st.integers(1, 5))
    orders: dict[tuple, int] = {}
    for _ in range(draw(st.integers(1, 5))):
        items = draw(st.permutations(range(size)))[: draw(st.integers(1, size))]
        order: list = []
        for item in items:
            if order and draw(st.booleans()):
                order[-1] = tuple(sorted((*order[-1], item)))
            else:
                order.append((item,))
        orders[tuple(order)] = draw(st.integers(1, 10**6))
    plain = [[group[0] if len(group) == 1 else group for group in order] for order in orders]
    names = draw(
        st.lists(
            st.text("abc #:{},é", min_size=1).filter(lambda s: s == s.strip()),
            min_size=size,
            max_size=size,
            unique=True,
        )
    )
    rankings = cr.Rankings(plain, list(orders.values()), query=["q"] * len(plain))
    return cr.RankingData(sizes=[size], query_ids=["q"], doc_ids=names, rankings=rankings)


@settings(max_examples=60, deadline=None)
@given(elections())
def test_round_trip(data: cr.RankingData) -> None:
    target = io.BytesIO()
    cr.write_preflib(data, target)
    assert cr.read_preflib(io.BytesIO(target.getvalue())).equals(data)


@settings(max_examples=150, deadline=None)
@given(st.text("123,{} :x", max_size=12))
def test_any_order_is_read_like_the_naive_parser_or_refused(order: str) -> None:
    text = election("toi", 3, f"1: {order}", NUMBER_VOTERS="1", NUMBER_UNIQUE_ORDERS="1")
    try:
        data = read(text)
    except ValueError as error:
        assert re.match(r"<stream>:9:\d+: expected ", str(error))
        return
    assert data.rankings.orders(0) == [naive(text)[1][0][1]]


# --- real files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VOTERS)
def test_real_files(real_data: Path, name: str) -> None:
    voters = 0
    with tarfile.open(real_data / "preflib" / f"{name}.tar.xz") as archive:
        for member in archive:
            if Path(member.name).suffix not in (".soc", ".soi", ".toc", ".toi"):
                continue
            stream = archive.extractfile(member)
            assert stream is not None
            content = stream.read()
            data = cr.read_preflib(io.BytesIO(content))
            header, rows = naive(content.decode())
            assert data.query_ids.tolist() == [Path(header["FILE NAME"]).stem]
            assert data.rankings.weight.tolist() == [count for count, _ in rows]
            assert data.rankings.orders(0) == [order for _, order in rows]
            assert data.doc_ids.tolist() == [header[f"ALTERNATIVE NAME {k}"] for k in range(1, data.n_docs + 1)]
            assert data.rankings.weight.sum() == int(header["NUMBER VOTERS"])
            voters += int(header["NUMBER VOTERS"])
    assert voters == VOTERS[name]


def test_real_elections_as_one_set_come_back(real_data: Path, tmp_path: Path) -> None:
    with tarfile.open(real_data / "preflib" / "00032-education.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    paths = sorted(path for path in tmp_path.rglob("*.[st]o[ci]"))
    data = cr.read_preflib(paths)
    assert len(data) == len(paths) == 7
    out = tmp_path / "out"
    out.mkdir()
    cr.write_preflib(data, out)
    assert cr.read_preflib([next(out.glob(f"{name}.*")) for name in data.query_ids]).equals(data)


@pytest.mark.parametrize(("name", "reason"), [("00039-csconf", "got cat: ballots"), ("00017-berkley", "got dat: data")])
def test_real_files_of_other_types_are_refused(real_data: Path, name: str, reason: str) -> None:
    refused = 0
    with tarfile.open(real_data / "preflib" / f"{name}.tar.xz") as archive:
        for member in archive:
            if Path(member.name).suffix in (".cat", ".dat"):
                with pytest.raises(ValueError, match=reason):
                    cr.read_preflib(archive.extractfile(member))
                refused += 1
    assert refused > 0
