"""Pairwise tables: values of each form, refusals with their place, round trips, real tables against plain sums."""

from __future__ import annotations

import csv
import io
import lzma
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calirank as cr


def read(text: str, **options: Any) -> cr.RankingData:
    return cr.read_preferences(io.StringIO(text), **options)


def written(data: cr.RankingData) -> str:
    target = io.StringIO()
    cr.write_preferences(data, target)
    return target.getvalue()


def edges(data: cr.RankingData, query: int = 0) -> list[set[tuple[str, str, float]]]:
    """(better, worse, weight) of each judgement of a query, by names."""
    names = data.doc_ids[data.rows(query)].tolist()
    return [
        {(names[b], names[w], value) for b, w, value in zip(*(part.tolist() for part in judgement), strict=True)}
        for judgement in data.preferences.edges(query)
    ]


def records(path: Path) -> list[dict[str, str]]:
    text = (lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


# --- pairs -----------------------------------------------------------------------------------------------------------


def test_pairs_of_one_judge_are_summed() -> None:
    data = read("better,worse\nfig,pear\nplum,fig\nfig,pear\n")
    assert data.doc_ids.tolist() == ["fig", "pear", "plum"]
    assert edges(data) == [{("fig", "pear", 2.0), ("plum", "fig", 1.0)}]
    assert data.query_ids.tolist() == [0]
    assert data.X is None


def test_pairs_with_all_columns() -> None:
    text = (
        "query,judge,better,worse,weight\n"
        "x,ann,fig,pear,2\n"
        "y,ann,plum,fig,1\n"
        "x,bob,pear,fig,0.5\n"
        "x,ann,fig,pear,1\n"
        "x,bob,pear,kiwi,0\n"
    )
    data = read(text)
    assert data.query_ids.tolist() == ["x", "y"]
    assert data.doc_ids.tolist() == ["fig", "pear", "kiwi", "plum", "fig"]
    assert data.sizes.tolist() == [3, 2]
    assert edges(data, 0) == [{("fig", "pear", 3.0)}, {("pear", "fig", 0.5)}]
    assert edges(data, 1) == [{("plum", "fig", 1.0)}]
    assert data.preferences.matrix(0).tolist() == [[0, 1.5, 0], [0.25, 0, 0], [0, 0, 0]]
    renamed = text.replace("query,judge,better,worse,weight", "q,j,b,w,n")
    assert read(renamed, query="q", judge="j", better="b", worse="w", weight="n").equals(data)


def test_items_fix_the_order_of_the_documents() -> None:
    text = "better,worse\nfig,pear\nplum,fig\n"
    data = read(text, items=["kiwi", "plum", "pear", "fig"])
    assert data.doc_ids.tolist() == ["kiwi", "plum", "pear", "fig"]
    assert edges(data) == edges(read(text))
    by_query = read("query,better,worse\n1,fig,pear\n2,plum,fig\n", items=["kiwi", "plum", "pear", "fig"])
    assert by_query.doc_ids.tolist() == ["pear", "fig", "plum", "fig"]


def test_query_ids_that_are_whole_numbers_are_numbers_and_items_are_text() -> None:
    data = read(f"query,better,worse\n{2**63 - 1},20,7\n1,7,20\n")
    assert data.query_ids.tolist() == [2**63 - 1, 1]
    assert data.doc_ids.tolist() == ["20", "7", "7", "20"]
    assert read("better,worse\n020,7\n").doc_ids.tolist() == ["020", "7"]


def test_a_promised_order_without_cycles_is_checked() -> None:
    text = "judge,better,worse\nann,fig,pear\nbob,pear,fig\nann,pear,plum\n"
    assert edges(read(text, dag=True)) == edges(read(text))
    with pytest.raises(
        ValueError, match=r"<stream>: query 0: no cycle was promised .* prefers fig > pear > plum > fig"
    ):
        read(text + "ann,plum,fig\n", dag=True)


# --- counts ----------------------------------------------------------------------------------------------------------


def test_counts_and_ties() -> None:
    text = "a,b,wins_a,wins_b,tied\nfig,pear,2,1,3\nplum,fig,0,4,0\nkiwi,fig,,NA,\n"
    half = read(text, form="counts")
    assert half.doc_ids.tolist() == ["fig", "pear", "plum", "kiwi"]
    assert edges(half) == [{("fig", "pear", 3.5), ("pear", "fig", 2.5), ("fig", "plum", 4.0)}]
    dropped = read(text, form="counts", ties="drop")
    assert edges(dropped) == [{("fig", "pear", 2.0), ("pear", "fig", 1.0), ("fig", "plum", 4.0)}]
    named = read(text.replace("tied", "draws", 1), form="counts", tied="draws")
    assert named.equals(half)
    assert read(text.replace("tied", "draws", 1), form="counts").equals(dropped)


# --- results ---------------------------------------------------------------------------------------------------------

FIG, PEAR, TIE = {("fig", "pear", 1.0)}, {("pear", "fig", 1.0)}, {("fig", "pear", 0.5), ("pear", "fig", 0.5)}


@pytest.mark.parametrize(
    ("coding", "results"),
    [
        (None, ["1", "-1", "0"]),
        (None, ["1.0", "0", "0.5"]),
        (None, ["TRUE", "false", "0.5"]),
        ("signed", ["1", "-1", "0"]),
        ("share", ["1", "0", "0.5"]),
        ({"H": 1, "A": 0, "D": 0.5}, ["H", "A", "D"]),
        ({"1": 0, "2": 1, "0": 0.5}, ["2", "1", "0"]),
    ],
)
def test_results_in_each_coding(coding: Any, results: list[str]) -> None:
    rows = "".join(f"{judge},fig,pear,{result}\n" for judge, result in enumerate([*results, ""]))
    data = read(f"judge,a,b,result\n{rows}", form="results", coding=coding)
    assert edges(data) == [FIG, PEAR, TIE]
    dropped = read(f"judge,a,b,result\n{rows}", form="results", coding=coding, ties="drop")
    assert edges(dropped) == [FIG, PEAR]


def test_results_are_weighted() -> None:
    data = read("a,b,result,weight\nfig,pear,1,3\nfig,pear,0.5,2\n", form="results")
    assert edges(data) == [{("fig", "pear", 4.0), ("pear", "fig", 1.0)}]


def test_results_of_0_and_1_may_be_losses_or_ties() -> None:
    text = "a,b,result\nfig,pear,1\nfig,plum,0\n"
    with pytest.raises(
        ValueError, match=r'<stream>:1:5: no result is -1 or 0\.5, .* coding="share" .* coding="signed"'
    ):
        read(text, form="results")
    assert edges(read(text, form="results", coding="share")) == [{("fig", "pear", 1.0), ("plum", "fig", 1.0)}]
    tie = {("fig", "plum", 0.5), ("plum", "fig", 0.5)}
    assert edges(read(text, form="results", coding="signed")) == [{("fig", "pear", 1.0)} | tie]
    assert edges(read("a,b,result\nfig,pear,1\n", form="results")) == [FIG]


# --- matrices --------------------------------------------------------------------------------------------------------


def test_matrix_rows_are_preferred_to_columns() -> None:
    data = read(",fig,pear,plum\nfig,9,2,0\npear,1,,0.5\nplum,0,0,7\n", form="matrix")
    assert data.doc_ids.tolist() == ["fig", "pear", "plum"]
    assert data.preferences.matrix(0).tolist() == [[0, 2, 0], [1, 0, 0.5], [0, 0, 0]]
    moved = read("name,fig,pear,plum\nplum,0,0,7\nfig,9,2,0\npear,1,,0.5\n", form="matrix")
    assert moved.equals(data)
    other = read(",fig,pear\nfig,0,2\npear,1,0\n", form="matrix", items=["pear", "kiwi", "fig"])
    assert other.preferences.matrix(0).tolist() == [[0, 0, 1], [0, 0, 0], [2, 0, 0]]


def test_long_matrix_with_groups() -> None:
    text = "row,col,group,count\nfig,fig,g,4\npear,fig,g,3\nfig,pear,g,1\nkiwi,fig,h,2\nplum,plum,h,0\n"
    data = read(text, form="long_matrix", better="row", worse="col", weight="count", query="group")
    assert data.query_ids.tolist() == ["g", "h"]
    assert data.doc_ids.tolist() == ["fig", "pear", "kiwi", "fig", "plum"]
    assert edges(data, 0) == [{("pear", "fig", 3.0), ("fig", "pear", 1.0)}]
    assert edges(data, 1) == [{("kiwi", "fig", 2.0)}]


# --- judges ----------------------------------------------------------------------------------------------------------


def test_a_row_a_judge() -> None:
    text = "age,fig:pear,plum:fig\n30,1,-1\n40,0,\n50,,\n"
    data = read(text, form="judges")
    assert data.doc_ids.tolist() == ["fig", "pear", "plum"]
    assert edges(data) == [{("fig", "pear", 1.0), ("fig", "plum", 1.0)}, TIE]
    assert data.preferences.matrix(0).tolist() == [[0, 0.75, 0.5], [0.25, 0, 0], [0, 0, 0]]
    one_judge = read("who" + text.replace("30", "x").replace("40", "x")[3:], form="judges", judge="who")
    assert edges(one_judge) == [{("fig", "pear", 1.5), ("pear", "fig", 0.5), ("fig", "plum", 1.0)}]


def test_columns_can_be_given_their_items() -> None:
    columns = {"V12": ("fig", "pear"), "V13": ("fig", "10:30")}
    data = read("V12,V13,V99\n0,2,5\n1,1,5\n", form="judges", columns=columns, coding={"0": 1, "1": 0.5, "2": 0})
    assert data.doc_ids.tolist() == ["fig", "pear", "10:30"]
    late = {("fig", "10:30", 0.5), ("10:30", "fig", 0.5)}
    assert edges(data) == [{("fig", "pear", 1.0), ("10:30", "fig", 1.0)}, TIE | late]


def test_judges_of_several_queries() -> None:
    data = read("query,fig:pear,plum:fig\nx,1,\ny,-1,-1\n", form="judges", items=["plum", "pear", "fig"])
    assert data.sizes.tolist() == [3, 3]
    assert edges(data, 0) == [FIG]
    assert edges(data, 1) == [PEAR | {("fig", "plum", 1.0)}]


# --- refusals --------------------------------------------------------------------------------------------------------

COUNTS = {"form": "counts"}
RESULTS = {"form": "results"}
MATRIX = {"form": "matrix"}
JUDGES = {"form": "judges"}
WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "empty file": ("", {}, "<stream>:1: expected a header and at least one row, got an empty file"),
    "header only": ("better,worse\n", {}, "<stream>:1: expected a header and at least one row, got a header only"),
    "ragged": ("better,worse\nfig,pear\nfig\n", {}, "<stream>:3:4: expected 2 cells, as in the header, got 1"),
    "unknown form": ("a,b\n1,2\n", {"form": "pair"}, "got 'pair'. Did you mean 'pairs'?"),
    "missing column": (
        "beter,worse\nfig,pear\n",
        {},
        "<stream>:1:1: better: expected a column 'better', got 'beter', 'worse'.",
    ),
    "nearest column": ("beter,worse\nfig,pear\n", {}, "Did you mean 'beter'?"),
    "missing given column": ("better,worse,j\nfig,pear,1\n", {"judge": "k"}, "judge: expected a column 'k'"),
    "parameter of another form": (
        "better,worse\nfig,pear\n",
        {"a": "x"},
        'a: form="pairs" does not take it; it takes better',
    ),
    "weight of a matrix": (
        ",a\na,0\n",
        {**MATRIX, "weight": "x"},
        'weight: form="matrix" does not take it; it takes dag',
    ),
    "ties": ("a,b\n1,2\n", {**COUNTS, "ties": "keep"}, 'ties: expected "half" or "drop", got \'keep\''),
    "no item": ("better,worse\nfig,\n", {}, "<stream>:2:5: column 'worse': expected the name of an item, got ''"),
    "itself": ("better,worse\na,b\nfig, fig\n", {}, "<stream>:3:6: column 'worse': item 'fig' is compared with itself"),
    "unknown item": (
        "better,worse\nfig,pera\n",
        {"items": ["fig", "pear"]},
        "<stream>:2:5: column 'worse': expected one of",
    ),
    "items twice": ("better,worse\nfig,pear\n", {"items": ["fig", "fig"]}, "items: 'fig' stands twice"),
    "no judge": ("better,worse,judge\nfig,pear,\n", {}, "<stream>:2:10: column 'judge': expected a name, got ''"),
    "no query": ("better,worse,query\nfig,pear,NA\n", {}, "<stream>:2:10: column 'query': expected a name, got 'NA'"),
    "weight no number": (
        "better,worse,weight\nfig,pear,x\n",
        {},
        "<stream>:2:10: column 'weight': expected a finite number",
    ),
    "weight NaN": ("better,worse,weight\nfig,pear,nan\n", {}, "column 'weight': expected a finite number, got 'nan'"),
    "weight infinite": (
        "better,worse,weight\nfig,pear,-inf\n",
        {},
        "column 'weight': expected a finite number, got '-inf'",
    ),
    "weight negative": (
        "better,worse,weight\nfig,pear,-1\n",
        {},
        "<stream>:2:10: column 'weight': expected a number >= 0",
    ),
    "weight missing": ("better,worse,weight\nfig,pear,\n", {}, "column 'weight': expected a finite number, got ''"),
    "all weights 0": ("better,worse,weight\nfig,pear,0\n", {}, "<stream>: expected at least one preference, got none"),
    "negative count": (
        "a,b,wins_a,wins_b\nx,y,1,-2\n",
        COUNTS,
        "<stream>:2:7: column 'wins_b': expected a number >= 0, got '-2'",
    ),
    "count no number": (
        "a,b,wins_a,wins_b\nx,y,1,two\n",
        COUNTS,
        "<stream>:2:7: column 'wins_b': expected a finite number",
    ),
    "count missing": (
        "a,b,wins_a,wins_b\nx,y,,2\n",
        COUNTS,
        "<stream>:2:5: column 'wins_a': expected a count, as the row has",
    ),
    "counted with itself": (
        "a,b,wins_a,wins_b\nx,x,1,2\n",
        COUNTS,
        "<stream>:2:3: column 'b': item 'x' is compared with",
    ),
    "no counts": (
        "a,b,wins_a\nx,y,1\n",
        COUNTS,
        "wins_b: expected a column 'wins_b', got 'a', 'b', 'wins_a'. Did you mean",
    ),
    "signed result": (
        "a,b,result\nx,y,-1\nx,y,0.5\n",
        RESULTS,
        "<stream>:3:5: column 'result': expected 1, 0 or -1, got '0.5'",
    ),
    "share result": (
        "a,b,result\nx,y,0.5\nx,y,2\n",
        RESULTS,
        "<stream>:3:5: column 'result': expected 1, 0.5, 0, TRUE or FALSE",
    ),
    "result no number": (
        "a,b,result\nx,y,won\n",
        RESULTS,
        "<stream>:2:5: column 'result': expected a finite number, got 'won'",
    ),
    "coded result": (
        "a,b,result\nx,y,W\n",
        {**RESULTS, "coding": {"H": 1}},
        "<stream>:2:5: column 'result': expected one of 'H'",
    ),
    "no result": ("a,b,result\nx,y,\n", RESULTS, "<stream>: expected at least one preference, got none"),
    "coding": (
        "a,b,result\nx,y,1\n",
        {**RESULTS, "coding": "sign"},
        'coding: expected "signed", "share" or a mapping, got',
    ),
    "shares": (
        "a,b,result\nx,y,1\n",
        {**RESULTS, "coding": {"1": 2}},
        "coding: expected the shares 1, 0.5 or 0, got {'1': 2}",
    ),
    "not square": (
        ",a,b\na,0,1\n",
        MATRIX,
        "<stream>:2:1: column number 1: expected a square matrix, with the 2 names of",
    ),
    "other row name": (",a,b\na,0,1\nc,1,0\n", MATRIX, "<stream>:3:1: column number 1: expected a square matrix"),
    "row name twice": (",a,b\na,0,1\na,1,0\n", MATRIX, "<stream>:3:1: column number 1: expected a square matrix"),
    "column name twice": (
        ",a,a\na,0,1\na,1,0\n",
        MATRIX,
        "<stream>:1:4: column 'a': expected a name of its own for each item",
    ),
    "column without name": (",a,\na,0,1\n,1,0\n", MATRIX, "<stream>:1:4: column number 3: expected a name of its own"),
    "negative entry": (",a,b\nb,-1,0\na,0,2\n", MATRIX, "<stream>:2:3: column 'a': expected a number >= 0, got '-1'"),
    "missing entry": (",a,b\na,0,\nb,1,0\n", MATRIX, "<stream>:2:5: column 'b': expected a number >= 0, got ''"),
    "entry no number": (",a,b\na,0,x\nb,1,0\n", MATRIX, "<stream>:2:5: column 'b': expected a finite number, got 'x'"),
    "items without one": (
        ",a,b\na,0,1\nb,1,0\n",
        {**MATRIX, "items": ["a"]},
        "items: 'b' of the header is not among them.",
    ),
    "no pairs of columns": (
        "a,b\n1,-1\n",
        JUDGES,
        "<stream>:1:1: expected columns called A:B, for two items, got none",
    ),
    "three items": ("a:b:c\n1\n", JUDGES, "<stream>:1:1: column 'a:b:c': expected two items, got ('a', 'b', 'c')"),
    "no second item": ("a:\n1\n", JUDGES, "<stream>:1:1: column 'a:': expected two items, got ('a', '')"),
    "judged with itself": ("b:c,a:a\n1,1\n", JUDGES, "<stream>:1:5: column 'a:a': item 'a' is compared with itself"),
    "judge's result": ("b:c,a:b\n1,-1\n1,3\n", JUDGES, "<stream>:3:3: column 'a:b': expected 1, 0 or -1, got '3'"),
    "unknown column": (
        "V1,V2\n1,-1\n",
        {**JUDGES, "columns": {"V3": ("a", "b")}},
        "columns: expected a column 'V3', got 'V1', 'V2'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_tables_are_refused_with_their_place(case: str) -> None:
    text, options, message = WRONG[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        read(text, **options)


@settings(max_examples=300, deadline=None)
@given(st.text('ab01,"\n .-:NA', max_size=25), st.sampled_from(["pairs", "counts", "results", "matrix", "judges"]))
def test_any_text_is_read_or_refused_with_the_name_of_the_file(text: str, form: Any) -> None:
    header = {"pairs": "better,worse\n", "counts": "a,b,wins_a,wins_b\n", "results": "a,b,result\n"}.get(form, "")
    try:
        data = read(header + text, form=form)
    except ValueError as error:
        assert str(error).startswith("<stream>")
    else:
        assert sum(map(len, edges(data))) > 0


# --- writing ---------------------------------------------------------------------------------------------------------


def test_written_pairs() -> None:
    data = read("better,worse\nfig,pear\nplum,fig\nfig,pear\n")
    assert written(data) == "better,worse,weight\nfig,pear,2\nplum,fig,1\n"
    assert written(read("better,worse\nfig,pear\n")) == "better,worse\nfig,pear\n"
    judges = read("query,judge,better,worse\nx,ann,a,b\nx,bob,b,a\n")
    assert written(judges) == "query,judge,better,worse\nx,1,a,b\nx,2,b,a\n"


def test_documents_that_the_pairs_do_not_name_in_order_are_named_first() -> None:
    data = cr.RankingData(sizes=[3], doc_ids=["a", "b", "c"], preferences=cr.Preferences([2], [0]))
    assert written(data) == "better,worse,weight\na,b,0\nb,c,0\nc,a,1\n"
    assert read(written(data)).equals(data)


def test_only_queries_that_need_it_name_their_documents_first() -> None:
    preferences = cr.Preferences([0, 1, 1], [1, 0, 2], [1, 2, 0], query=[7, 8, 8])
    data = cr.RankingData(sizes=[2, 3, 2], query_ids=[7, 8, 9], doc_ids=list("ababcab"), preferences=preferences)
    assert written(data) == "query,better,worse,weight\n7,a,b,1\n8,a,b,0\n8,b,c,0\n8,b,a,2\n9,a,b,0\n"


def test_writing_many_queries_does_not_visit_each() -> None:
    count = 2000
    query = np.repeat(np.arange(count), 2)
    preferences = cr.Preferences(np.tile([0, 1], count), np.tile([1, 2], count), query=query)
    data = cr.RankingData(sizes=np.full(count, 3), doc_ids=np.tile(["a", "b", "c"], count), preferences=preferences)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cr.Preferences, "edges", None)
        text = written(data)
    assert read(text).equals(data)


@st.composite
def preference_data(draw: st.DrawFn) -> cr.RankingData:
    names = st.text('ab,"é 1\n', min_size=1, max_size=4).filter(lambda name: name == name.strip())
    queries = [f"q{name}" for name in draw(st.lists(names, min_size=1, max_size=3, unique=True))]
    doc_ids, sizes, rows = [], [], []
    for query in queries:
        listed = [f"d{name}" for name in draw(st.lists(names, min_size=2, max_size=5, unique=True))]
        doc_ids += listed
        sizes.append(len(listed))
        for _ in range(draw(st.integers(0, 6))):
            better, worse = draw(st.permutations(range(len(listed))))[:2]
            rows.append((better, worse, draw(st.sampled_from([1, 2, 0.1, 1e-300])), query, draw(st.integers(0, 2))))
    if not rows:
        rows.append((0, 1, 1.0, queries[0], 0))
    better, worse, weight, owner, judge = map(list, zip(*rows, strict=True))
    preferences = cr.Preferences(better, worse, weight, query=owner, judge=judge)
    return cr.RankingData(sizes=sizes, query_ids=queries, doc_ids=doc_ids, preferences=preferences)


@settings(max_examples=80, deadline=None)
@given(preference_data())
def test_round_trip(data: cr.RankingData) -> None:
    assert read(written(data)).equals(data)


def test_what_the_table_cannot_hold_is_refused() -> None:
    data = cr.RankingData(sizes=[2], doc_ids=["a", "b"], preferences=cr.Preferences([0], [1]))
    lone = cr.RankingData(sizes=[1, 2], doc_ids=["a", "b", "c"], preferences=cr.Preferences([0], [1], query=[1]))
    seen_twice = cr.RankingData(sizes=[2, 2], query_ids=[5, 5], query_weight=[1, 3], doc_ids=["a", "b", "a", "b"])
    seen_twice = seen_twice.replace(
        preferences=cr.Preferences.concatenate(
            [cr.Preferences([0], [1], query=[5]), cr.Preferences([1], [0], query=[5])]
        )
    )
    cases = [
        (data.replace(X=np.ones((2, 1))), "write_preferences: there is no room for X"),
        (data.replace(rankings=cr.Rankings([[0]])), "expected data with preferences, got rankings"),
        (data.replace(preferences=cr.Preferences([0], [1], [0])), "query 0: all pairs of a judge have weight 0"),
        (data.replace(doc_ids=["a", ""]), "the name '' would not be read as it is written"),
        (data.replace(doc_ids=["a", "NA"]), "the name 'NA' would be read as a cell that names nothing"),
        (
            cr.RankingData(
                sizes=[2], query_ids=["NA"], doc_ids=["a", "b"], preferences=cr.Preferences([0], [1], query=["NA"])
            ),
            "the name 'NA' would be read as a cell that names nothing",
        ),
        (lone, "query 0 has one document, so it has no pair"),
        (seen_twice.replace(query_weight=None), "'5' stands twice"),
        (seen_twice.merge_queries().replace(query_weight=None), "the judges have different weights"),
    ]
    for wrong, message in cases:
        with pytest.raises(ValueError, match=re.escape(message)):
            written(wrong)


# --- real tables -----------------------------------------------------------------------------------------------------

Sums = dict[tuple[str, str], float]


def sums(data: cr.RankingData, query: int = 0) -> Sums:
    """The weight of each pair of names, over all judges."""
    total: Sums = defaultdict(float)
    for judgement in edges(data, query):
        for better, worse, weight in judgement:
            total[str(better), str(worse)] += weight
    return dict(total)


def counted(rows: list[dict[str, str]], a: str, b: str, wins: tuple[str, str], tied: str | None = None) -> Sums:
    total: Sums = defaultdict(float)
    for row in rows:
        half = float(row[tied] or 0) / 2 if tied else 0
        total[row[a], row[b]] += float(row[wins[0]] or 0) + half
        total[row[b], row[a]] += float(row[wins[1]] or 0) + half
    return {pair: weight for pair, weight in total.items() if weight > 0}


@pytest.mark.parametrize(
    ("name", "better", "worse", "judge"),
    [
        ("BayesMallows_beach_preferences.csv.xz", "top_item", "bottom_item", "assessor"),
        ("BayesMallows_sounds.csv.xz", "top_item", "bottom_item", "assessor"),
        ("BT2_flatlizards_contests.csv", "winner", "loser", None),
    ],
)
def test_real_pairs(real_data: Path, name: str, better: str, worse: str, judge: str | None) -> None:
    path = real_data / "pairwise" / name
    data = cr.read_preferences(path, better=better, worse=worse, judge=judge)
    rows = records(path)
    by_judge: dict[str, set[tuple[str, str, float]]] = defaultdict(set)
    times: Sums = defaultdict(float)
    for row in rows:
        times[row[judge] if judge else "", row[better], row[worse]] += 1
    for (who, winner, loser), count in times.items():
        by_judge[who].add((winner, loser, count))
    assert [{(str(b), str(w), n) for b, w, n in judgement} for judgement in edges(data)] == list(by_judge.values())
    assert sum(sums(data).values()) == len(rows)
    assert read(written(data), items=data.doc_ids).equals(data)


def test_real_pairs_with_and_without_cycles(real_data: Path) -> None:
    names = {"better": "top_item", "worse": "bottom_item", "judge": "assessor", "dag": True}
    cr.read_preferences(real_data / "pairwise" / "BayesMallows_beach_preferences.csv.xz", **names)
    with pytest.raises(ValueError, match="no cycle was promised"):
        cr.read_preferences(real_data / "pairwise" / "BayesMallows_sounds.csv.xz", **names)


@pytest.mark.parametrize(
    ("name", "a", "b", "wins", "tied", "judge"),
    [
        ("BT2_baseball.csv", "home.team", "away.team", ("home.wins", "away.wins"), None, None),
        ("BT2_springall_contests.csv", "row", "col", ("win", "loss"), "tie", None),
        ("BT2_sound.fields_comparisons.csv.xz", "field1", "field2", ("win1", "win2"), "tie", None),
        ("PlackettLuce_pudding.csv", "i", "j", ("w_ij", "w_ji"), "t_ij", None),
        ("BT2_CEMS_preferences.csv.xz", "school1", "school2", ("win1", "win2"), "tied", "student"),
    ],
)
def test_real_counts(
    real_data: Path, name: str, a: str, b: str, wins: tuple[str, str], tied: str | None, judge: str | None
) -> None:
    path = real_data / "pairwise" / name
    options = {"form": "counts", "a": a, "b": b, "wins_a": wins[0], "wins_b": wins[1], "tied": tied, "judge": judge}
    data = cr.read_preferences(path, **options)
    rows = records(path)
    assert sums(data) == counted(rows, a, b, wins, tied)
    assert sums(cr.read_preferences(path, **options, ties="drop")) == counted(rows, a, b, wins)
    judges = {row[judge] for row in rows if row[wins[0]]} if judge else {""}
    assert len(data.preferences.weight) == len(judges)


@pytest.mark.parametrize(
    ("name", "a", "b", "shares"),
    [
        ("BT2_football.csv.xz", "home", "away", {"1": 1, "0": 0.5, "-1": 0}),
        ("BT2_icehockey.csv.xz", "visitor", "opponent", {"1": 1, "0.5": 0.5, "0": 0}),
    ],
)
def test_real_results(real_data: Path, name: str, a: str, b: str, shares: dict[str, float]) -> None:
    path = real_data / "pairwise" / name
    data = cr.read_preferences(path, form="results", a=a, b=b)
    expected: Sums = defaultdict(float)
    for row in records(path):
        expected[row[a], row[b]] += shares[row["result"]]
        expected[row[b], row[a]] += 1 - shares[row["result"]]
    assert sums(data) == {pair: weight for pair, weight in expected.items() if weight > 0}
    by_query = cr.read_preferences(
        path, form="results", a=a, b=b, query="season" if "football" in name else "conference"
    )
    assert sum(sum(sums(by_query, query).values()) for query in range(len(by_query))) == len(records(path))


@pytest.mark.parametrize(
    "name", ["BT2_citations", "eba_celebrities", "eba_schoolsubjects_boys", "eba_schoolsubjects_girls"]
)
def test_real_matrices(real_data: Path, name: str) -> None:
    path = real_data / "pairwise" / f"{name}.csv"
    data = cr.read_preferences(path, form="matrix")
    expected = {
        (row[""], other): float(count)
        for row in records(path)
        for other, count in row.items()
        if other and other != row[""] and count != "0"
    }
    assert sums(data) == expected
    assert data.doc_ids.tolist() == [row[""] for row in records(path)]


@pytest.mark.parametrize(
    ("name", "group"),
    [("eba_drugrisk_long.csv.xz", "group"), ("eba_heaviness_long.csv", "order"), ("eba_pork_long.csv", "Var3")],
)
def test_real_long_matrices(real_data: Path, name: str, group: str) -> None:
    path = real_data / "pairwise" / name
    data = cr.read_preferences(path, form="long_matrix", better="X.", worse="X..1", weight="count", query=group)
    rows = records(path)
    assert [str(query) for query in data.query_ids] == list(dict.fromkeys(row[group] for row in rows))
    items = list(dict.fromkeys(row["X."] for row in rows))
    for query, identifier in enumerate(data.query_ids):
        of_group = [row for row in rows if row[group] == str(identifier) and row["X."] != row["X..1"]]
        expected = {(row["X."], row["X..1"]): float(row["count"]) for row in of_group if row["count"] != "0"}
        assert sums(data, query) == expected
        assert data.doc_ids[data.rows(query)].tolist() == items


@pytest.mark.parametrize("name", ["FirstNames", "GermanParties2009"])
def test_real_judges(real_data: Path, name: str) -> None:
    path = real_data / "pairwise" / f"psychotools_{name}.csv.xz"
    data = cr.read_preferences(path, form="judges")
    expected = [
        {
            (*column.split(":"), 1.0) if result == "1" else (*column.split(":")[::-1], 1.0)
            for column, result in row.items()
        }
        for row in records(path)
    ]
    assert edges(data) == expected
    assert len(expected) == 192


def test_real_judges_whose_columns_need_names(real_data: Path) -> None:
    folder = real_data / "pairwise"
    columns = {f"V{a}{b}": (str(a), str(b)) for b in (2, 3, 4) for a in range(1, b)}
    data = cr.read_preferences(folder / "prefmod_immig.csv", form="judges", columns=columns)
    expected: Sums = defaultdict(float)
    for row in records(folder / "prefmod_immig.csv"):
        for column, (a, b) in columns.items():
            share = {"1": (1, 0), "-1": (0, 1), "0": (0.5, 0.5), "": (0, 0)}[row[column]]
            expected[a, b] += share[0]
            expected[b, a] += share[1]
    assert sums(data) == dict(expected)
    coded = cr.read_preferences(
        folder / "prefmod_cemspc.csv.xz",
        form="judges",
        columns={"V1": ("London", "Paris")},
        coding={"0": 1, "1": 0.5, "2": 0},
    )
    results = [row["V1"] for row in records(folder / "prefmod_cemspc.csv.xz")]
    half = results.count("1") / 2
    assert sums(coded) == {
        ("London", "Paris"): results.count("0") + half,
        ("Paris", "London"): results.count("2") + half,
    }
