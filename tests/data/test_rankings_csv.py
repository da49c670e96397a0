"""Rankings as tables: values, refusals with their place, round trips, and real tables against plain computations."""

from __future__ import annotations

import csv
import io
import itertools
import lzma
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calirank as cr


def read(text: str, **options: Any) -> cr.RankingData:
    return cr.read_rankings(io.StringIO(text), **options)


def written(data: cr.RankingData, **options: Any) -> str:
    target = io.StringIO()
    cr.write_rankings(data, target, **options)
    return target.getvalue()


def cells(path: Path) -> list[list[str]]:
    text = (lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()).decode()
    return list(csv.reader(io.StringIO(text, newline="")))


def by_places(places: list[str]) -> tuple:
    """The order of the items (by number) that have these places; 0 and empty cells are not ranked."""
    ranked = {item: float(place) for item, place in enumerate(places) if place not in ("", "0")}
    levels = [[item for item in ranked if ranked[item] == place] for place in sorted(set(ranked.values()))]
    return tuple(tuple(level) if len(level) > 1 else level[0] for level in levels)


# --- ranks -----------------------------------------------------------------------------------------------------------


def test_ranks_with_ties_and_unranked_items() -> None:
    data = read("pear,fig,plum\n2,1,3\n1,1,2\n0,,5\n2.5,1,2.5\n")
    assert data.doc_ids.tolist() == ["pear", "fig", "plum"]
    assert data.rankings.orders(0) == [(1, 0, 2), ((0, 1), 2), (2,), (1, (0, 2))]
    assert data.rankings.weight.tolist() == [1, 1, 1, 1]
    assert data.query_ids.tolist() == [0]
    assert data.X is None


def test_the_weight_column() -> None:
    text = "pear,fig,n\n2,1,0\n1,2,2.5\n"
    assert read(text, weight="n").rankings.weight.tolist() == [0, 2.5]
    assert read(text.replace("n\n", "weight\n", 1)).equals(read(text, weight="n"))  # it is found by its name


def test_a_column_that_is_likely_a_count_is_not_guessed_to_be_an_item() -> None:
    for name in ("Wk", "w", "votes"):
        with pytest.raises(ValueError, match="does not say what a row is"):
            read(f"A,B,{name}\n1,2,4\n2,1,3\n")
        assert read(f"A,B,{name}\n1,2,4\n2,1,3\n", weight=name).rankings.weight.tolist() == [4, 3]


def test_places_from_0_and_other_names() -> None:
    data = read("pear,fig,plum\n0,1,\n", base=0, items=[5, 7, 6])
    assert data.rankings.orders(0) == [(0, 1)]
    assert data.doc_ids.tolist() == ["5", "7", "6"]


def test_a_column_of_row_names_is_not_ranked() -> None:
    assert read(',pear,fig\n"first",2,1\n').rankings.orders(0) == [(1, 0)]


def test_columns_choose_and_order_the_items() -> None:
    data = read("age,pear,fig,town\n30,2,1,Rome\n", form="ranks", columns=["fig", "pear"])
    assert data.doc_ids.tolist() == ["fig", "pear"]
    assert data.rankings.orders(0) == [(0, 1)]


def test_queries_have_the_items_that_their_rows_mention() -> None:
    text = "query,pear,fig,plum,kiwi\nb,2,1,,\na,,1,0,\nb,1,,,2\n"
    data = read(text)
    assert data.query_ids.tolist() == ["b", "a"]
    assert data.doc_ids.tolist() == ["pear", "fig", "kiwi", "fig", "plum"]
    assert data.sizes.tolist() == [3, 2]
    assert data.rankings.orders(0) == [(1, 0), (0, 2)]
    assert data.rankings.orders(1) == [(0,)]
    assert read(text.replace("query", "who"), query="who").equals(data)


def test_blocks_are_queries() -> None:
    data = read("a,b,c,d,e,weight\n1,2,3,2,1,4\n2,1,1,2,0,6\n", blocks=[2, 3])
    assert data.query_ids.tolist() == [0, 1]
    assert data.sizes.tolist() == [2, 3]
    assert data.doc_ids.tolist() == ["a", "b", "c", "d", "e"]
    assert data.rankings.orders(0) == [(0, 1), (1, 0)]
    assert data.rankings.orders(1) == [(2, 1, 0), (0, 1)]
    assert data.rankings.weight.tolist() == [4, 6, 4, 6]


def test_blocks_may_be_named_by_their_first_columns() -> None:
    data = read("2007,,2008,\n1,2,2,1\n", blocks=[2, 2], form="ranks")
    assert data.query_ids.tolist() == [2007, 2008]
    assert data.doc_ids.tolist() == ["1", "2", "1", "2"]


# --- orders ----------------------------------------------------------------------------------------------------------


def test_orders_of_names() -> None:
    data = read("Rank_1,Rank_2,Rank_3\nfig,pear,plum\nplum,,\nkiwi,0,fig\n")
    assert data.doc_ids.tolist() == ["fig", "pear", "plum", "kiwi"]
    assert data.rankings.orders(0) == [(0, 1, 2), (2,), (3, 0)]


def test_orders_of_numbers_have_their_items_in_numeric_order() -> None:
    data = read("rank1,rank2\n10,9\n100,0\n")
    assert data.doc_ids.tolist() == ["9", "10", "100"]
    assert data.rankings.orders(0) == [(1, 0), (2,)]


def test_items_fix_the_order_and_may_be_more_than_appear() -> None:
    data = read("rank1,rank2\nfig,pear\n", items=["kiwi", "pear", "fig"])
    assert data.doc_ids.tolist() == ["kiwi", "pear", "fig"]
    assert data.rankings.orders(0) == [(2, 1)]


def test_cells_may_count_the_items() -> None:
    assert read("rank1,rank2\n3,1\n1,0\n", items=["a", "b", "c"], base=1).rankings.orders(0) == [(2, 0), (0,)]
    assert read("rank1,rank2\n2,0\n1,\n", items=["a", "b", "c"], base=0).rankings.orders(0) == [(2, 0), (1,)]
    assert read("rank1,rank2\n3,1\n", base=1).doc_ids.tolist() == ["1", "2", "3"]


def test_orders_by_query() -> None:
    data = read("query,rank1,rank2\n7,fig,pear\n8,plum,fig\n7,plum,\n")
    assert data.query_ids.tolist() == [7, 8]
    assert data.doc_ids.tolist() == ["fig", "pear", "plum", "fig", "plum"]
    assert data.rankings.orders(0) == [(0, 1), (2,)]
    assert data.rankings.orders(1) == [(1, 0)]


def test_what_counts_as_missing_can_be_said() -> None:
    assert read("rank1,rank2\nNA,DE\n").rankings.orders(0) == [(0,)]
    assert read("rank1,rank2\nNA,DE\n", missing=[""]).doc_ids.tolist() == ["NA", "DE"]
    assert read("rank1,rank2\n-,DE\n", missing=["-"]).doc_ids.tolist() == ["DE"]


def test_best_and_worst() -> None:
    text = "p,q,r,s,best,worst\nfig,pear,plum,kiwi,B,A\nkiwi,fig,pear,,kiwi,r\nfig,kiwi,,,q,A\n"
    data = read(text, form="best_worst", columns=["p", "q", "r", "s"])
    assert data.doc_ids.tolist() == ["fig", "pear", "plum", "kiwi"]
    assert data.rankings.orders(0) == [(1, (2, 3), 0), (3, 0, 1), (3, 0)]


# --- which form ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header", ["rank1,rank2", "Rank_1,Rank_2", "place 1,place 2", "Choice.1,Choice.2", "POSITION-1,POSITION-2"]
)
def test_columns_called_places_hold_orders(header: str) -> None:
    assert read(f"{header}\n7,3\n").doc_ids.tolist() == ["3", "7"]


@pytest.mark.parametrize("header", ["A,B", "Arsenal,Manchester.United", "x1,y2", "item,2"])
def test_columns_with_names_hold_ranks(header: str) -> None:
    assert read(f"{header}\n2,1\n").rankings.orders(0) == [(1, 0)]


@pytest.mark.parametrize(
    "header",
    ["X1,X2", "P1,P2", "1,2", "rank2,rank1", "rank0,rank1", "first,second", "best,worst", "A,A", "rank1,n", "A,n"],
)
def test_a_header_that_does_not_tell_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match=r'<stream>:1:1: the header .* form="ranks" .* form="orders"'):
        read(f"{header}\n2,1\n")


# --- refusals --------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "empty file": ("", {}, "<stream>:1: expected a header and at least one row, got an empty file"),
    "blank file": ("\n\n", {}, "<stream>:1: expected a header and at least one row, got an empty file"),
    "header only": ("\na,b\n", {}, "<stream>:2: expected a header and at least one row, got a header only"),
    "short row": ("a,b\n1,2\n1\n", {}, "<stream>:3:2: expected 2 cells, as in the header, got 1"),
    "long row": ("a,b\n1,2,3\n", {}, "<stream>:2:5: expected 2 cells, as in the header, got 3"),
    "open quote": ('a,b\n"1,2\n', {}, "<stream>:2: expected comma-separated values: "),
    "text after quote": ('a,b\n1,"2"x\n', {}, "<stream>:2: expected comma-separated values: "),
    "no place": ("a,b\n1,fig\n", {}, "<stream>:2:3: column 'b': expected a place, a number >= 0 (form=\"orders\" if"),
    "negative": ("a,b\n1,-2\n", {}, "<stream>:2:3: column 'b': expected a place, a number >= 0"),
    "NaN": ("a,b\n1,nan\n", {}, "<stream>:2:3: column 'b': expected a place, a number >= 0"),
    "infinite": ("a,b\n1,inf\n", {}, "got 'inf'"),
    "beyond floats": ("a,b\n1,1e999\n", {}, "got '1e999'"),
    "underscore": ("a,b\n1,1_0\n", {}, "got '1_0'"),
    "after a quoted comma": ('"a,x",b\n"1", y\n', {}, "<stream>:2:6: column 'b': expected a place"),
    "after a quoted line end": ('"a",b\n"1\n",y\n', {}, "<stream>:3:3: column 'b': expected a place"),
    "nothing ranked": ("a,b\n0,\n", {}, "<stream>: expected a ranking, got no ranked item in any row"),
    "no items": ("rank1,rank2\n0,\n", {}, "<stream>: expected a ranking, got no ranked item in any row"),
    "nothing in block": (
        "a,b\n1,0\n",
        {"blocks": [1, 1]},
        "<stream>: expected a ranking, got no ranked item in a block",
    ),
    "item twice in header": (
        "a,b,a\n1,2,3\n",
        {"form": "ranks"},
        "<stream>:1:1: expected a name for each item: 'a' stands 2",
    ),
    "item without name": (
        "a,,c\n1,2,3\n",
        {"form": "ranks"},
        "<stream>:1:3: expected a name for each item: a column has no",
    ),
    "item twice in row": (
        "rank1,rank2,rank3\na,b,c\nc,0,c\n",
        {},
        "<stream>:3:5: column 'rank3': item 'c' stands twice",
    ),
    "unknown item": (
        "rank1,rank2\nfig,pera\n",
        {"items": ["pear", "fig"]},
        "<stream>:2:5: column 'rank2': expected one of the 2 items Did you mean 'pear'?, got 'pera'",
    ),
    "number for name": (
        "rank1\n1\n",
        {"items": ["fig"]},
        "expected one of the 1 items (if cells count the items: base=1)",
    ),
    "number too large": (
        "rank1\n4\n",
        {"items": ["a", "b"], "base": 1},
        "expected the number of one of the 2 items, 1 to 2",
    ),
    "negative item": (
        "rank1\n-1\n",
        {"base": 1},
        "<stream>:2:1: column 'rank1': expected the number of an item, from 1",
    ),
    "fractional item": ("rank1\n1.0\n", {"base": 1}, "expected the number of an item, from 1, got '1.0'"),
    "missing weight column": (
        "fig,pear,count\n1,2,3\n",
        {"weight": "cuont"},
        "<stream>:1:1: weight: expected a column 'cuont'",
    ),
    "nearest name": ("fig,pear,count\n1,2,3\n", {"weight": "cuont"}, "Did you mean 'count'?"),
    "column twice": (
        "a,n,n\n1,2,3\n",
        {"weight": "n"},
        "<stream>:1:5: weight: column 'n' stands 2 times in the header",
    ),
    "negative weight": ("a,weight\n1,-3\n", {}, "<stream>:2:3: column 'weight': expected a number >= 0, got '-3'"),
    "weight no number": ("a,weight\n1,x\n", {}, "<stream>:2:3: column 'weight': expected a finite number, got 'x'"),
    "weight missing": ("a,weight\n1,\n", {}, "<stream>:2:3: column 'weight': expected a finite number, got ''"),
    "all weights 0": ("a,weight\n1,0\n", {}, "<stream>:1:3: column 'weight': all weights are 0"),
    "a query's weights 0": ("query,a,weight\nq,1,0\nr,1,1\n", {}, "<stream>: query q: all weights are 0"),
    "query missing": ("query,a\n,1\n", {}, "<stream>:2:1: column 'query': expected a name, got ''"),
    "query of nothing": ("query,a\nq,\nr,1\n", {}, "<stream>: query q: expected at least one item, got none"),
    "no columns": ("weight\n1\n", {}, "<stream>:1:1: expected columns of a ranking, got none"),
    "unknown column": (
        "fig,pear\n1,2\n",
        {"columns": ["fgi"]},
        "columns: expected a column 'fgi', got 'fig', 'pear'. Did you",
    ),
    "too few names": (
        "a,b\n1,2\n",
        {"items": ["x"]},
        "items: expected a name for each of the 2 columns of <stream>, got 1",
    ),
    "names twice": ("a,b\n1,2\n", {"items": ["x", "x"]}, "items: 'x' stands twice"),
    "blocks too small": (
        "a,b\n1,2\n",
        {"blocks": [1]},
        "<stream>: blocks: expected sizes from 1 that add up to the 2 columns",
    ),
    "form": (
        "a,b\n1,2\n",
        {"form": "rank"},
        'form: expected "auto", "ranks", "orders" or "best_worst", got \'rank\'. Did you',
    ),
    "base": ("a,b\n1,2\n", {"base": 2}, "base: expected 0 or 1, got 2"),
    "blocks and query": ("a,b\n1,2\n", {"blocks": [2], "query": "a"}, "expected either blocks or query"),
    "no columns for best_worst": ("a,b\n1,2\n", {"form": "best_worst"}, "needs columns"),
    "best is worst": (
        "p,q,best,worst\nfig,pear,A,fig\n",
        {"form": "best_worst", "columns": ["p", "q"]},
        "<stream>:2:12: column 'worst': expected another item than the best, got 'fig'",
    ),
    "best is nothing": (
        "p,q,best,worst\nfig,,B,A\n",
        {"form": "best_worst", "columns": ["p", "q"]},
        "<stream>:2:6: column 'best': expected one of the items of this row, got an empty column",
    ),
    "best unknown": (
        "p,q,best,worst\nfig,pear,C,A\n",
        {"form": "best_worst", "columns": ["p", "q"]},
        "<stream>:2:10: column 'best': expected an item of this row, its column or letter, got 'C'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_tables_are_refused_with_their_place(case: str) -> None:
    text, options, message = WRONG[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        read(text, **options)


def test_items_given_as_one_text_are_refused() -> None:
    with pytest.raises(TypeError, match="items: expected a sequence of names, got the single text 'ab'"):
        read("a,b\n1,2\n", items="ab")
    with pytest.raises(TypeError, match="weight: expected the name of a column, got 3"):
        read("a,b\n1,2\n", weight=3)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a file, got a directory"):
        cr.read_rankings(tmp_path)
    with pytest.raises(ValueError, match="<stream>:2:3: expected UTF-8 text, got byte 0xe9"):
        cr.read_rankings(io.BytesIO(b"a,b\n1,\xe9\n"))


@settings(max_examples=300, deadline=None)
@given(st.text('ab12,"\n .-NA', max_size=25), st.sampled_from(["auto", "ranks", "orders"]))
def test_any_text_is_read_or_refused_with_the_name_of_the_file(text: str, form: Any) -> None:
    try:
        data = read(text, form=form)
    except ValueError as error:
        assert str(error).startswith("<stream>")
    else:
        assert max(map(len, data.rankings.orders(0))) > 0


# --- writing ---------------------------------------------------------------------------------------------------------


def test_written_ranks() -> None:
    data = read("pear,fig,plum,weight\n2,1,3,5\n1,1,,0.5\n")
    assert written(data) == "weight,pear,fig,plum\n5,2,1,3\n0.5,1,1,0\n"
    two = read("query,a,b,c\nx,1,2,\ny,,0,1\n")
    assert written(two) == "query,a,b,c\nx,1,2,\ny,,0,1\n"


def test_written_orders() -> None:
    data = read("rank1,rank2\nfig,pear\npear,\n")
    assert written(data, form="orders") == "rank1,rank2\nfig,pear\npear,\n"


NAMES = st.text(alphabet='ab,"é 1\n', min_size=1, max_size=4).filter(lambda name: name == name.strip())


@st.composite
def ranking_data(draw: st.DrawFn, ties: bool = True) -> cr.RankingData:
    """Several queries over common items, in the order of the items; every item is ranked by someone."""
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique=True))
    queries = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    doc_ids, sizes, orders, owner, weights = [], [], [], [], []
    for query in queries:
        listed = [name for name in names if draw(st.booleans())] or names[:1]
        doc_ids += listed
        sizes.append(len(listed))
        for ranked in [len(listed), *draw(st.lists(st.integers(0, len(listed)), max_size=3))]:
            order: list = []
            for item in draw(st.permutations(range(len(listed))))[:ranked]:
                if ties and order and draw(st.booleans()):
                    order[-1] = tuple(sorted((*order[-1], item)))
                else:
                    order.append((item,))
            orders.append([group[0] if len(group) == 1 else group for group in order])
            owner.append(query)
            weights.append(draw(st.sampled_from([1, 2, 0.1, 1e300])))
    rankings = cr.Rankings(orders, weights, query=owner)
    return cr.RankingData(sizes=sizes, query_ids=queries, doc_ids=np.array(doc_ids), rankings=rankings)


def in_column_order(data: cr.RankingData) -> cr.RankingData:
    """The data read back by hand from the writer's rule: columns in order of first appearance."""
    columns = list(dict.fromkeys(data.doc_ids.tolist()))
    moved = [
        sorted(range(size), key=lambda d, q=q: columns.index(data.doc_ids[data.rows(q)][d]))
        for q, size in enumerate(data.sizes)
    ]
    place = [{old: new for new, old in enumerate(order)} for order in moved]
    orders, owner = [], []
    for query in range(len(data)):
        for order in data.rankings.orders(query):
            groups = [group if isinstance(group, tuple) else (group,) for group in order]
            orders.append([tuple(sorted(place[query][item] for item in group)) for group in groups])
            owner.append(data.query_ids[query])
    ids = np.concatenate([data.doc_ids[data.rows(q)][moved[q]] for q in range(len(data))])
    return data.replace(doc_ids=ids, rankings=cr.Rankings(orders, data.rankings.weight, query=owner))


@settings(max_examples=60, deadline=None)
@given(ranking_data())
def test_ranks_round_trip(data: cr.RankingData) -> None:
    back = read(written(data), form="ranks")
    expected = in_column_order(data)
    assert [str(name) for name in back.doc_ids] == expected.doc_ids.tolist()
    assert [str(name) for name in back.query_ids] == expected.query_ids.tolist()
    assert back.sizes.tolist() == expected.sizes.tolist()
    for query in range(len(data)):
        assert back.rankings.orders(query) == expected.rankings.orders(query)
    assert back.rankings.weight.tolist() == data.rankings.weight.tolist()


@settings(max_examples=40, deadline=None)
@given(ranking_data(ties=False))
def test_orders_round_trip(data: cr.RankingData) -> None:
    items = list(dict.fromkeys(data.doc_ids.tolist()))
    back = read(written(data, form="orders"), items=items)
    expected = in_column_order(data)
    assert [str(name) for name in back.doc_ids] == expected.doc_ids.tolist()
    for query in range(len(data)):
        assert back.rankings.orders(query) == expected.rankings.orders(query)


def test_whole_numbers_round_trip_exactly() -> None:
    rankings = cr.Rankings([[1, (0, 2)], [0], []], [1, 2, 3], query=[9, 4, 4])
    data = cr.RankingData(sizes=[3, 1], query_ids=[9, 4], doc_ids=["30", "10", "20", "10"], rankings=rankings)
    assert read(written(data), form="ranks").equals(data)


def test_whole_numbers_of_documents_come_back_as_text() -> None:
    data = cr.RankingData(
        sizes=[2], query_ids=[2**63 - 1], doc_ids=[5, 3], rankings=cr.Rankings([[1, 0]], query=[2**63 - 1])
    )
    back = read(written(data), form="ranks")
    assert (back.query_ids.tolist(), back.doc_ids.tolist()) == ([2**63 - 1], ["5", "3"])


def test_an_item_called_na_may_head_a_column_but_not_be_a_cell() -> None:
    data = cr.RankingData(sizes=[2], doc_ids=["NA", "b"], rankings=cr.Rankings([[1, 0]]))
    assert read(written(data), form="ranks").equals(data)
    named = data.replace(doc_ids=["a", "b"], query_ids=["NA"], rankings=cr.Rankings([[1, 0]], query=["NA"]))
    for form in ("ranks", "orders"):
        with pytest.raises(ValueError, match="the name 'NA' would be read as a cell that names nothing"):
            written(named, form=form)


def test_a_table_of_nearly_empty_columns_is_refused() -> None:
    count = 1000
    rankings = cr.Rankings.from_ranks(np.tile([1, 2, 3], (count, 1)), query=np.arange(count))
    data = cr.RankingData(sizes=np.full(count, 3), doc_ids=[f"d{n}" for n in range(3 * count)], rankings=rankings)
    with pytest.raises(ValueError, match='1000 rows of 3000 cells, of which 3000 hold anything; form="orders"'):
        written(data)
    assert read(written(data, form="orders")).n_docs == 3 * count
    same = data.replace(doc_ids=np.tile(["a", "b", "c"], count))
    assert read(written(same), form="ranks").equals(same)


def test_what_the_tables_cannot_hold_is_refused() -> None:
    data = cr.RankingData(sizes=[3], doc_ids=["a", "b", "c"], rankings=cr.Rankings([[0, 1, 2]]))
    silent = cr.RankingData(sizes=[1, 1], doc_ids=["a", "b"], rankings=cr.Rankings([[0]], query=[1]))
    cases = [
        (data.replace(X=np.ones((3, 1))), {}, "write_rankings: there is no room for X; leave it out first"),
        (data.replace(doc_weight=[1, 2, 3]), {}, "no room for doc_weight"),
        (data.replace(preferences=cr.Preferences([0], [1])), {}, "expected data with rankings, got preferences"),
        (data.replace(doc_ids=["a", "b", "a"]), {}, "documents of query 0: 'a' stands twice"),
        (data.replace(doc_ids=["a", "b ", "c"]), {}, "the name 'b ' would not be read as it is written"),
        (data.replace(doc_ids=["a", "b", "weight"]), {}, "an item is called 'weight', which names another column"),
        (data.replace(doc_ids=["weight", "b", "query"]), {}, "an item is called 'query', which names another column"),
        (data.replace(doc_ids=["a", "NA", "c"]), {"form": "orders"}, "the name 'NA' would be read as a cell"),
        (silent, {}, "query 0 has no ranking, so it has no row"),
        (data, {"form": "rank"}, 'form: expected "ranks" or "orders", got \'rank\''),
        (
            data.replace(rankings=cr.Rankings([[0, (1, 2)]])),
            {"form": "orders"},
            "query 0: documents are tied, for which form",
        ),
        (
            data.replace(rankings=cr.Rankings([[0, 1]])),
            {"form": "orders"},
            "query 0: nobody ranks document 'c', for which",
        ),
        (
            data.replace(doc_ids=["a", "0", "c"]),
            {"form": "orders"},
            "the name '0' would be read as a cell that names nothing",
        ),
    ]
    for wrong, options, message in cases:
        with pytest.raises(ValueError, match=re.escape(message)):
            written(wrong, **options)
    twice = cr.RankingData(sizes=[1, 1], query_ids=[3, 3], doc_ids=["a", "b"])
    twice = twice.replace(rankings=cr.Rankings.concatenate([cr.Rankings([[0]], query=[3])] * 2))
    with pytest.raises(ValueError, match=r"query ids \(data.merge_queries\(\) joins equal ones\): '3' stands twice"):
        written(twice)


# --- real tables -----------------------------------------------------------------------------------------------------

RANKS: dict[str, tuple[dict[str, Any], int]] = {  # options, and the number of leading columns that are no items
    "BayesMallows_potato_visual.csv": ({"form": "ranks"}, 0),
    "BayesMallows_potato_weighing.csv": ({"form": "ranks"}, 0),
    "BayesMallows_potato_true_ranking.csv": ({"form": "ranks"}, 0),
    "Rankcluster_sports_data.csv": ({}, 0),
    "Rankcluster_words_data.csv": ({}, 0),
    "prefmod_salad.csv": ({}, 0),
    "ConsRank_EMD.csv": ({"weight": "Wk"}, 0),
    "ConsRank_USAranks.csv.xz": ({}, 1),
    "pmr_big4.csv": ({"weight": "n"}, 0),
    "pmr_idea.csv": ({"form": "ranks", "weight": "n"}, 0),
    "pmr_song.csv": ({"form": "ranks", "weight": "n"}, 0),
    "pmr_leisure.black.csv": ({"form": "ranks", "weight": "n"}, 0),
    "pmr_leisure.white.csv": ({"form": "ranks", "weight": "n"}, 0),
}


@pytest.mark.parametrize("name", RANKS)
def test_real_ranks(real_data: Path, name: str) -> None:
    options, leading = RANKS[name]
    path = real_data / "permutations" / name
    header, *rows = cells(path)
    trailing = -1 if "weight" in options else None
    data = cr.read_rankings(path, **options)
    assert data.doc_ids.tolist() == header[leading:trailing]
    assert data.rankings.orders(0) == [by_places(row[leading:trailing]) for row in rows]
    weights = [float(row[-1]) if "weight" in options else 1 for row in rows]
    assert data.rankings.weight.tolist() == weights
    assert read(written(data), form="ranks").equals(data)


@pytest.mark.parametrize("name", ["apa", "carconf", "dublinwest", "gaming", "german", "nascar", "occup", "rice"])
def test_real_orders(real_data: Path, name: str) -> None:
    path = next((real_data / "permutations").glob(f"PLMIX_d_{name}.csv*"))
    _, *rows = cells(path)
    data = cr.read_rankings(path, base=1)
    assert data.doc_ids.tolist() == [str(n + 1) for n in range(max(int(cell) for row in rows for cell in row))]
    assert data.rankings.orders(0) == [tuple(int(cell) - 1 for cell in row if cell != "0") for row in rows]
    assert cr.read_rankings(path).equals(data)  # every number appears
    assert read(written(data, form="orders")).equals(data)


def test_real_races_with_names_of_drivers(real_data: Path) -> None:
    folder = real_data / "permutations"
    drivers = [row[0] for row in cells(folder / "PlackettLuce_nascar_drivers.csv")[1:]]
    data = cr.read_rankings(folder / "PlackettLuce_nascar.csv.xz", items=drivers, base=1)
    first = cells(folder / "PlackettLuce_nascar.csv.xz")[1]
    assert data.doc_ids.tolist() == drivers
    assert len(data.rankings.orders(0)) == 36
    assert [drivers[item] for item in data.rankings.orders(0)[0]] == [
        drivers[int(cell) - 1] for cell in first if cell != "0"
    ]


@pytest.mark.parametrize(("name", "ending"), [("quiz", "csv"), ("eurovision", "csv.xz")])
def test_real_blocks(real_data: Path, name: str, ending: str) -> None:
    folder = real_data / "permutations"
    blocks = [int(row[0]) for row in cells(folder / f"Rankcluster_{name}_m.csv")[1:]]
    path = folder / f"Rankcluster_{name}_data.{ending}"
    header, *rows = cells(path)
    data = cr.read_rankings(path, form="ranks", blocks=blocks)
    bounds = np.cumsum([0, *blocks])
    for query, (first, last) in enumerate(itertools.pairwise(bounds)):
        assert data.rankings.orders(query) == [by_places(row[first:last]) for row in rows]
    if name == "quiz":
        assert data.doc_ids.tolist() == header
    else:
        assert data.query_ids.tolist() == [2007, 2008, 2009, 2010, 2011, 2012]
        assert data.doc_ids.tolist() == [*"12345678"] * 6


def test_real_headers_that_do_not_tell_are_refused(real_data: Path) -> None:
    for name in ("BayesMallows_potato_visual.csv", "pmr_idea.csv", "Rankcluster_eurovision_data.csv.xz"):
        with pytest.raises(ValueError, match="does not say what a row is"):
            cr.read_rankings(real_data / "permutations" / name)


def test_real_triples_of_best_and_worst(real_data: Path) -> None:
    path = real_data / "permutations" / "PlackettLuce_beans.csv.xz"
    varieties = ["variety_a", "variety_b", "variety_c"]
    data = cr.read_rankings(path, form="best_worst", columns=varieties)
    _, *rows = cells(path)
    expected = []
    for row in rows:
        best, worst = "ABC".index(row[3]), "ABC".index(row[4])
        expected.append([row[best], row[3 - best - worst], row[worst]])
    assert [[data.doc_ids[item] for item in order] for order in data.rankings.orders(0)] == expected
    assert len(expected) == 842
