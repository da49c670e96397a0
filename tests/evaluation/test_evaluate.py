"""``evaluate`` against one call a list, runs against data, threads, row orders, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calirank as cr
from calirank.metrics import lists as lists_module

GRADED = [
    "dcg",
    "dcg(gain=linear, base=3)@5",
    "dcg(gain=price, weight=quality)",
    "ndcg@10",
    "ndcg",
    "ndcg(gain=[0, 1, 1, 5, 9], empty=skip)@3",
    "ndcg(weight=quality)",
    "ndcg(ideal_over=list)@2",
    "precision@3",
    "precision(divisor=min)@10",
    "precision",
    "wta",
    "recall(empty=skip)@4",
    "auc(empty=0.5)",
    "eru(v=1, w=3)",
    "eru(weight=price)@4",
    "rbp(p=0.5)",
    "ap",
    "ap(divisor=min)@3",
    "rr(empty=1)",
    "err",
    "err(max_grade=6)@3",
    "pd",
    "pd(pairs=difference, ties=error)",
    "0.7*ndcg@10 + 0.3*dcg(gain=price)@10",
    "1 - 2*err",
]


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    yield
    cr.set_threads(None)


def made(queries: int, longest: int, seed: int = 0, *, grades: bool = True) -> tuple[cr.RankingData, Any]:
    """Random lists of 1 to ``longest`` documents with few distinct scores, and their scores."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, queries)
    n = int(sizes.sum())
    labels = rng.choice(5, n, p=[0.5, 0.2, 0.1, 0.1, 0.1]).astype(float)
    if not grades:
        labels = np.where(labels > 0, labels + rng.random(n), 0.0).clip(0, 4)
    columns = {"price": rng.random(n) * 10, "quality": rng.integers(0, 3, n)}
    data = cr.RankingData(y=labels, sizes=sizes, columns=columns)
    scores = np.where(rng.random(n) < 0.5, rng.integers(0, 6, n), rng.standard_normal(n))
    return data, scores


def whole_grades_only(name: str) -> bool:
    return "gain=[" in name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("grades", [True, False])
def test_each_query_has_the_value_of_a_call_by_itself(dtype: Any, grades: bool) -> None:
    data, scores = made(60, 25, grades=grades)
    scores = scores.astype(dtype)
    names = [name for name in GRADED if grades or not whole_grades_only(name)]
    table = cr.evaluate(scores, data, names)
    assert data.y is not None
    for name in names:
        metric = cr.metric(name)
        alone = []
        for query in range(len(data)):
            rows = data.rows(query)
            columns = {key: column[rows] for key, column in data.columns.items()}
            alone.append(metric(data.y[rows], scores=scores[rows], columns=columns))
        np.testing.assert_array_equal(table[name].per_query, alone, err_msg=name)


@pytest.mark.parametrize("grades", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neither_threads_nor_the_order_of_rows_change_a_bit(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, grades: bool
) -> None:
    monkeypatch.setattr(lists_module, "BLOCK", 100)  # many blocks, so that threads have something to share
    data, scores = made(300, 30, seed=1, grades=grades)
    scores = (scores / 3).astype(dtype)
    names = [name for name in GRADED if grades or not whole_grades_only(name)]
    cr.set_threads(1)
    expected = cr.evaluate(scores, data, names)
    rng = np.random.default_rng(2)
    moved = np.concatenate([rng.permutation(np.arange(a, b)) for a, b in itertools.pairwise(data.offsets)])
    assert data.y is not None
    shuffled = cr.RankingData(
        y=data.y[moved], offsets=data.offsets, columns={key: column[moved] for key, column in data.columns.items()}
    )
    for count, which, order in ((2, data, slice(None)), (5, data, slice(None)), (1, shuffled, moved)):
        cr.set_threads(count)
        found = cr.evaluate(scores[order], which, names)
        for name in names:
            assert found[name].per_query.tobytes() == expected[name].per_query.tobytes(), name


def test_an_ideal_order_is_worth_exactly_one() -> None:
    data, _ = made(300, 60, seed=3, grades=False)
    assert data.y is not None
    table = cr.evaluate(data.y, data, ["ndcg(empty=1)", "ndcg(gain=linear, empty=1)@7", "ap(empty=1)", "auc(empty=1)"])
    assert all((values.per_query == 1).all() for values in table.values())
    whole = cr.RankingData(y=np.floor(data.y), offsets=data.offsets)
    assert (
        cr.evaluate(data.y, whole, "ndcg(empty=1)")["ndcg(empty=1)"].per_query == 1
    ).all()  # finer scores, coarser labels


@pytest.mark.parametrize(
    ("name", "labels", "scores", "below"),
    [
        ("ndcg", [30, 0.5, 0], [2, 1, 1], 1 - 1e-11),  # a tie of unequal gains
        ("ndcg(gain=[1, 0, 1e10])", [2, 0, 1], [3, 1, 1], 1 - 1e-12),
        ("ndcg@1", [1e-5 + 1, 1], [1, 1], 1),
    ],
)
def test_nearly_ideal_is_not_ideal(name: str, labels: Any, scores: Any, below: float) -> None:
    assert cr.metric(name)(labels, scores=scores) < below


def test_no_share_is_above_one_and_an_ideal_top_is_one() -> None:
    labels, order = [3, 1, 0, 0, 3, 0, 2, 4, 4, 1, 0], [7, 8, 0, 4, 6, 1, 5, 10, 2, 3, 9]
    assert cr.metric("ndcg@5")(labels, order=order) == 1
    rng = np.random.default_rng(4)
    for _ in range(300):
        y = rng.integers(0, 5, 12)
        order = np.argsort(-y, kind="stable")
        order[7:] = rng.permutation(order[7:])
        for name in ("ndcg@7", "ndcg(base=10)@7", "ndcg(gain=linear)@7"):
            assert cr.metric(f"{name}")(y, order=order) == (1 if y.any() else 0)
    data = cr.RankingData(y=[30, 1], qid=["q", "q"], doc_ids=["a", "b"])
    assert cr.evaluate(cr.Run(["q"], ["a"], [1]), data, "ndcg")["ndcg"].mean < 1 - 1e-10  # b was not returned


def test_small_labels_and_large_gains_keep_their_digits() -> None:
    assert cr.metric("ndcg")([1e-17, 0], scores=[2, 1]) == 1
    assert cr.metric("dcg")([1e-10], scores=[1]) == pytest.approx(1e-10 * np.log(2), rel=1e-12)
    assert cr.metric("err(empty=1)")([1e-17], scores=[1]) == pytest.approx(1e-17 * np.log(2) / 16, rel=1e-12)
    assert cr.metric("ndcg(gain=linear)")([1e290] * 3, scores=[3, 2, 1]) == 1
    with pytest.raises(ValueError, match="a gain times its weight is above 1e"):
        cr.metric("dcg(weight=w)")([1000, 0], scores=[2, 1], columns={"w": [1e200, 1]})


def test_bounds_of_a_sum_of_several_terms_are_refused() -> None:
    labels = np.ma.masked_invalid([1, np.nan, 0])
    one = cr.metric("1 - 2*rr(unjudged=bounds)")
    assert one.bounds(labels, scores=[2, 3, 1]) == (-1, 0)
    assert one(labels, scores=[2, 3, 1]) == -1
    data = cr.RankingData(y=labels, sizes=[3])
    values = next(iter(cr.evaluate([2, 3, 1], data, one).values()))
    assert (values.lower.tolist(), values.upper.tolist()) == ([-1], [0])
    two = cr.metric("rr(unjudged=bounds) + ap(unjudged=bounds)")
    for call in (lambda: two(labels, scores=[2, 3, 1]), lambda: cr.evaluate([2, 3, 1], data, two)):
        with pytest.raises(ValueError, match="the bounds of this sum are not known"):
            call()
    with pytest.raises(TypeError, match="kendall has no bounds"):
        cr.metric("kendall").bounds([0, 1], scores=[2, 1])


def test_scores_are_compared_in_their_own_precision() -> None:
    close = np.array([1.0, 1.0 + 2**-50, 1.0 - 2**-52])
    data = cr.RankingData(y=[0, 1, 0], sizes=[3])
    assert cr.evaluate(close, data, "rr")["rr"].mean == 1
    assert cr.evaluate(close.astype(np.float32), data, "rr")["rr"].mean == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert cr.evaluate([2**60, 2**60 + 1, 2**60 - 1], data, "rr")["rr"].mean == 1  # no float64 tells these apart
    assert cr.evaluate([-0.0, 0.0, -1.0], data, "rr")["rr"].mean == 0.75
    tiny = np.array([5e-324, 1e-323, 0.0])
    assert cr.evaluate(tiny, data, "rr")["rr"].mean == 1
    for same in (np.array([1, 1, 0], bool), np.array([1, 1, 0], np.float16), np.array([1, 1, 0], np.uint8), [1, 1, 0]):
        assert cr.evaluate(same, data, "rr")["rr"].mean == 0.75
    assert cr.evaluate([Fraction(1, 3), Fraction(1, 3), Fraction(0)], data, "rr")["rr"].mean == 0.75


@pytest.mark.parametrize("size", [1, 2, 3, 16, 17, 129, 5000])
def test_runs_of_scores_that_differ_in_their_last_bits_are_sorted(size: int) -> None:
    """The lowest bits of a score give way to positions in a key, and must still decide."""
    rng = np.random.default_rng(size)
    scores = np.full(size, 0.1)
    scores.view(np.int64)[:] += rng.integers(0, max(2, size // 2), size)  # neighbours, many of them tied
    labels = rng.integers(0, 3, size)
    coarse = np.unique(scores, return_inverse=True)[1].astype(np.float32)  # the same order and ties, as small numbers
    for y in (labels, labels + np.where(labels > 0, 0.25, 0)):
        data = cr.RankingData(y=y, sizes=[size])
        names = ["ndcg", "ap", "err", "auc", "rr"]
        fine, plain = cr.evaluate(scores, data, names), cr.evaluate(coarse, data, names)
        assert [fine[name].mean for name in names] == [plain[name].mean for name in names]


def test_memory_mapped_scores_and_labels_are_judged(tmp_path: Path) -> None:
    data, scores = made(50, 20, seed=5)
    expected = cr.evaluate(scores, data, "err")["err"].per_query
    for name, array in (("scores", scores), ("y", data.y)):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("scores", "y")]
    found = cr.evaluate(mapped[0], cr.RankingData(y=mapped[1], offsets=data.offsets), "err")["err"].per_query
    np.testing.assert_array_equal(found, expected)
    wide = np.repeat(scores, 2)[::2]  # not contiguous
    np.testing.assert_array_equal(cr.evaluate(wide, data, "err")["err"].per_query, expected)
    np.testing.assert_array_equal(cr.evaluate(scores.astype(">f8"), data, "err")["err"].per_query, expected)


def test_a_million_short_lists_and_one_long_one() -> None:
    sizes = np.full(10**6, 2)
    data = cr.RankingData(y=np.tile([1.0, 0.0], 10**6), sizes=sizes)
    scores = np.tile([0.0, 1.0, 1.0, 0.0], 10**6 // 2)
    table = cr.evaluate(scores, data, ["rr", "ap"])
    assert (table["rr"].mean, table["ap"].per_query[:2].tolist()) == (0.75, [0.5, 1.0])
    long = cr.RankingData(y=np.arange(100_000) % 2, sizes=[100_000])
    tied = cr.evaluate(np.zeros(100_000), long, ["precision@10", "auc", "dcg"])
    discount = 1 / np.log2(np.arange(2, 100_002))
    assert tied["precision@10"].mean == 0.5
    assert tied["auc"].mean == 0.5
    assert tied["dcg"].mean == pytest.approx(discount.sum() / 2, rel=1e-13)


# --- what a table offers ----------------------------------------------------------------------------------------------


def test_a_metric_is_found_by_its_name_as_given_or_by_an_equal_metric() -> None:
    data, scores = made(5, 5)
    table = cr.evaluate(scores, data, ["NDCG@3", cr.metrics.AP(), "map@5"])
    assert list(table) == ["NDCG@3", "ap", "map@5"]
    assert table["NDCG@3"] is table["ndcg@3"] is table[cr.metrics.NDCG(k=3)]
    assert table["ap@5"] is table["map@5"]
    assert "ndcg@3" in table
    assert "ndcg@4" not in table
    assert "no metric at all" not in table
    with pytest.raises(KeyError, match=r"no metric 'ndcg@4' in this table.*NDCG@3"):
        table["ndcg@4"]
    with pytest.raises(ValueError, match="'ap' is named twice"):
        cr.evaluate(scores, data, ["ap", "ap"])
    with pytest.raises(ValueError, match="at least one"):
        cr.evaluate(scores, data, [])


def test_means_are_over_the_queries_that_have_a_value() -> None:
    data = cr.RankingData(y=[1, 0, 0, 0, 0, 1], sizes=[2, 2, 2], query_weight=[1, 5, 3])
    table = cr.evaluate([2, 1, 2, 1, 2, 1], data, ["rr(empty=skip)", "rr"])
    skipping = table["rr(empty=skip)"]
    assert skipping.per_query.tolist()[::2] == [1.0, 0.5]
    assert np.isnan(skipping.per_query[1])
    assert (skipping.mean, skipping.n, skipping.weighted_mean) == (0.75, 2, (1 + 3 * 0.5) / 4)
    assert (table["rr"].mean, table["rr"].weighted_mean) == (0.5, 2.5 / 9)
    assert "skips 1 of 3 queries" in str(table)
    low, high, level = table["rr"].interval
    assert low < 0.5 < high
    assert level == 0.95
    assert table["rr"].bootstrap(seed=1) == table["rr"].bootstrap(seed=1)


def test_segments_are_tables_of_their_queries() -> None:
    data, scores = made(200, 30, seed=7)
    half = np.where(np.arange(200) < 50, "new", "old")
    table = cr.evaluate(scores, data, ["ap", "rr"], by=half)
    assert list(table.segments) == ["new", "old"]
    np.testing.assert_array_equal(table.segments["new"]["ap"].per_query, table["ap"].per_query[:50])
    lengths = cr.evaluate(scores, data, "ap", by="length").segments
    assert len(lengths) == 4  # thirty lengths are put into four ranges
    mostly = cr.RankingData(y=np.zeros(115), sizes=[*([5] * 12), *range(1, 11)])
    assert list(cr.evaluate(np.zeros(115), mostly, "dcg", by="length").segments) != ["1 to 10"]
    tenths = cr.evaluate(scores, data, "ap", by=np.arange(200) / 10).segments
    assert next(iter(tenths)) == "0 to 4.9"
    assert sum(len(part.query_ids) for part in lengths.values()) == 200
    column = cr.RankingData(y=data.y, offsets=data.offsets, columns={"site": np.repeat(half, data.sizes)})
    by_column = cr.evaluate(scores, column, "ap", by="site").segments
    assert by_column["old"]["ap"].mean == table.segments["old"]["ap"].mean
    for wrong, message in (
        ("sight", "no column 'sight'; it can be site, length. Did you mean 'site'"),
        ([1, 2], "one entry for each of 200 queries"),
        (np.where(np.arange(200) == 3, np.nan, 0.0), "query 3 has NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            cr.evaluate(scores, column, "ap", by=wrong)
    mixed = cr.RankingData(y=[0, 0], sizes=[2], columns={"site": ["a", "b"]})
    with pytest.raises(ValueError, match="not the same for all documents of a query: it is b for query 0, document 1"):
        cr.evaluate([1, 2], mixed, "ap", by="site")


def test_rows_that_were_grouped_take_scores_in_the_order_of_the_caller() -> None:
    data = cr.RankingData(y=[1, 0, 0, 1], qid=["a", "b", "a", "b"], group_rows=True)
    assert cr.evaluate([4, 3, 2, 1], data, "rr")["rr"].per_query.tolist() == [1.0, 0.5]


def test_a_ranker_is_asked_for_its_scores() -> None:
    class Fixed:
        def predict(self, data: cr.RankingData) -> Any:
            return np.arange(data.n_docs)

    data = cr.RankingData(y=[1, 0, 0, 1], sizes=[2, 2])
    assert cr.evaluate(Fixed(), data, "rr")["rr"].per_query.tolist() == [0.5, 1.0]


# --- runs -------------------------------------------------------------------------------------------------------------

QRELS = cr.RankingData(
    y=[2, 0, 1, 1, 0, 3], qid=["q1", "q1", "q1", "q2", "q2", "q3"], doc_ids=["a", "b", "c", "a", "d", "e"]
)


def test_documents_that_a_run_did_not_return_count_in_the_ideal_and_earn_nothing() -> None:
    run = cr.Run(["q1", "q1", "q2", "q9"], ["c", "x", "a", "a"], [1.0, 2.0, 5.0, 1.0])
    table = cr.evaluate(run, QRELS, ["ap", "recall@10", "ndcg", "ndcg(ideal_over=list)", "precision@2", "auc"])
    assert table["ap"].per_query.tolist() == [0.25, 1.0, 0.0]  # q1: c at rank 2 of 2 relevant ones
    assert table["recall@10"].per_query.tolist() == [0.5, 1.0, 0.0]
    second = 1 / np.log2(3)
    assert table["ndcg"].per_query.tolist() == pytest.approx([second / (3 + second), 1.0, 0.0])
    assert table["ndcg(ideal_over=list)"].per_query.tolist() == pytest.approx([second, 1.0, 0.0])
    assert table["precision@2"].per_query.tolist() == [0.5, 0.5, 0.0]
    assert (table.missed, table.unknown) == (("q3",), ("q9",))
    assert "1 query is not in the run and has the lowest value: q3" in str(table)
    # AUC of q1: a and c are relevant, b and x are not; c is below x and above b, and a wins nothing.
    assert table["auc"].per_query[0] == 1 / 4


def test_documents_without_a_judgement_follow_the_metric() -> None:
    run = cr.Run(["q1"] * 3, ["x", "a", "y"], [3.0, 2.0, 1.0])
    table = cr.evaluate(run, QRELS, ["rr", "rr(unjudged=skip)", "rr(unjudged=bounds)", "precision(unjudged=bounds)@2"])
    first = [values.per_query[0] for values in table.values()]
    assert first == [0.5, 1.0, 0.5, 0.5]
    assert table["rr(unjudged=bounds)"].upper[0] == 1.0
    assert table["precision(unjudged=bounds)@2"].upper[0] == 1.0
    assert table["rr(unjudged=bounds)"].bounds == (0.5 / 3, 1 / 3)


@pytest.mark.parametrize("like", ["lightgbm", "xgboost"])
def test_a_missing_query_earns_nothing_whatever_the_convention(like: str) -> None:
    metric = cr.metric("ndcg@10", like=like)  # counts 1 where nothing can be gained
    none = cr.RankingData(y=[1, 0, 0], qid=["q1", "q1", "q2"], doc_ids=["a", "b", "c"])
    other = cr.Run(["q0", "q2"], ["a", "c"], [1.0, 1.0])
    assert cr.evaluate(other, none, metric)[metric].per_query.tolist() == [0.0, 1.0]


def test_every_metric_has_its_lowest_value_on_a_missing_query() -> None:
    names = [*(name for name in GRADED if "price" not in name and "quality" not in name and "gain=[" not in name), "rr"]
    names.remove("1 - 2*err")
    data = cr.RankingData(y=[2, 0, 1, 0], qid=["x", "x", "x", "y"], doc_ids=list("abcd"))
    table = cr.evaluate(cr.Run(["y"], ["d"], [1.0]), data, names)
    assert all(values.per_query[0] == 0 for values in table.values())
    with pytest.raises(ValueError, match="query x is not in the run, and the lowest value of a sum with negative"):
        cr.evaluate(cr.Run(["y"], ["d"], [1.0]), data, "1 - 2*err")


def test_ids_are_matched_as_text() -> None:
    data = cr.RankingData(y=[0, 1], qid=[7, 7], doc_ids=[10, 11])
    assert cr.evaluate(cr.Run(["7", "7"], ["10", "11"], [1, 2]), data, "rr")["rr"].mean == 1
    assert cr.evaluate(cr.Run([7, 7], [10, 11], [1, 2]), data, "rr")["rr"].mean == 1


def test_a_run_of_strangers_is_told() -> None:
    table = cr.evaluate(cr.Run(["q1", "q2"], ["A", "B"], [1.0, 2.0]), QRELS, "ap")
    assert "do the document ids match?" in str(table)
    assert "do the document ids match?" not in str(cr.evaluate(cr.Run(["q1"], ["a"], [1.0]), QRELS, "ap"))
    priced = cr.RankingData(y=[1], sizes=[1], query_ids=["q1"], doc_ids=["a"], columns={"price": [3]})
    with pytest.raises(ValueError, match="whose price could be anything"):
        cr.evaluate(cr.Run(["q1"], ["x"], [1]), priced, "dcg(gain=price, unjudged=bounds)")


def test_pairs_of_documents_that_were_not_returned_earn_nothing() -> None:
    data = cr.RankingData(y=[1, 0, 0, 1], sizes=[4], query_ids=["q"], doc_ids=list("abcd"))
    for returned in ("c", "a", "b", "ca", "dab", "x"):
        run = cr.Run(["q"] * len(returned), list(returned), -np.arange(len(returned)))
        table = cr.evaluate(run, data, ["auc", "pd"])
        assert table["auc"].mean == table["pd"].mean
    preferred = cr.RankingData(
        sizes=[2], query_ids=["q"], doc_ids=list("ab"), preferences=cr.Preferences([0], [1], query=["q"])
    )
    assert cr.evaluate(cr.Run(["q"], ["z"], [1]), preferred, "pd")["pd"].mean == 0


def test_runs_that_cannot_be_matched_are_refused() -> None:
    run = cr.Run(["q1"], ["a"], [1.0])
    with pytest.raises(ValueError, match="the data has no doc_ids"):
        cr.evaluate(run, cr.RankingData(y=[1], sizes=[1]), "ap")
    with pytest.raises(ValueError, match="none of the 3 queries of the data: its first is 'Q1', that of the data 'q1'"):
        cr.evaluate(cr.Run(["Q1"], ["a"], [1.0]), QRELS, "ap")
    twice = cr.RankingData(y=[1, 0], sizes=[2], query_ids=["q1"], doc_ids=["a", "a"])
    with pytest.raises(ValueError, match="query q1 of the data has two documents with the same id"):
        cr.evaluate(run, twice, "ap")
    with pytest.raises(ValueError, match="query q1 has document a twice"):
        cr.Run(["q1", "q1"], ["a", "a"], [1.0, 2.0])


def test_missing_queries_have_the_lowest_value_of_each_kind_of_metric() -> None:
    ranked = cr.RankingData(
        sizes=[3, 3],
        query_ids=["x", "y"],
        doc_ids=list("abcabc"),
        rankings=cr.Rankings([[0, 1, 2]] * 2, query=["x", "y"]),
    )
    run = cr.Run(["x"] * 4, ["a", "b", "c", "new"], [3, 2, 1, 9])
    table = cr.evaluate(run, ranked, ["kendall", "spearman", "zero_one", "kendall(empty=skip)"])
    assert [values.per_query.tolist() for values in table.values()] == [[1, -1], [1, -1], [1, 0], [1, -1]]
    preferred = cr.RankingData(
        sizes=[2, 2, 2],
        query_ids=["x", "y", "z"],
        doc_ids=list("ababab"),
        preferences=cr.Preferences([0, 0], [1, 1], [2, 3], query=["x", "y"]),
    )
    run = cr.Run(["x", "x", "z"], ["a", "b", "a"], [2, 1, 1])
    table = cr.evaluate(run, preferred, ["pd", "pd(normalise=false)", "pd(empty=0.5)"])
    assert [values.per_query.tolist() for values in table.values()] == [[1, 0, 0], [0, -3, 0], [1, 0, 0.5]]
    table = cr.evaluate(cr.Run(["q1"], ["a"], [1]), QRELS, ["pd"])
    assert table["pd"].per_query.tolist()[1:] == [0, 0]

    def top(labels: Any, order: Any) -> Any:
        return labels[order[0]] - 1

    assert cr.evaluate(cr.Run(["q1"], ["a"], [1]), QRELS, cr.metric(top))["top"].per_query.tolist() == [1, -1, 2]


# --- several judgements, and a user's metric --------------------------------------------------------------------------


def test_several_judges_give_the_weighted_mean_of_their_values() -> None:
    judges = cr.Judgements([[[1, 0, np.nan], [0, 1, 1]], [[1, 0]]], weight=[3, 1, 1])
    data = cr.RankingData(sizes=[3, 2], judges=judges)
    scores = [3, 2, 1, 1, 2]
    table = cr.evaluate(scores, data, ["rr", "ap(unjudged=skip)", "ap(unjudged=bounds)", "pd"])
    assert table["rr"].per_query.tolist() == [(3 * 1 + 0.5) / 4, 0.5]
    by_second = cr.metric("ap")([0, 1, 1], scores=[3, 2, 1])
    assert table["ap(unjudged=skip)"].per_query.tolist() == pytest.approx([(3 + by_second) / 4, 0.5])
    low = cr.metric("ap").bounds(np.ma.masked_invalid([1, 0, np.nan]), scores=[3, 2, 1])
    bounds = table["ap(unjudged=bounds)"]
    assert [bounds.lower[0], bounds.upper[0]] == pytest.approx([(3 * end + by_second) / 4 for end in low])
    assert table["pd"].per_query[1] == 0


def test_a_metric_that_judges_by_something_else_is_refused() -> None:
    ranked = cr.RankingData(sizes=[2], rankings=cr.Rankings([[0, 1]]))
    with pytest.raises(ValueError, match="ndcg judges by labels, and the data has rankings; kendall"):
        cr.evaluate([1, 2], ranked, "ndcg")
    with pytest.raises(ValueError, match="kendall judges by rankings, and the data has grades"):
        cr.evaluate([1, 2], cr.RankingData(y=[1, 0], sizes=[2]), "kendall")
    with pytest.raises(ValueError, match="judges by labels, and the data has no labels"):
        cr.evaluate([1, 2], cr.RankingData([[1.0], [2.0]], sizes=[2]), "ndcg")


def test_a_users_metric_is_exact_on_few_ties_and_states_its_error_on_many() -> None:
    calls: list[Any] = []

    def gain_at_top(labels: Any, order: Any) -> Fraction:
        calls.append((labels, order))
        return Fraction(labels[order[0]], 3)

    metric = cr.metric(gain_at_top, samples=400, seed=1)
    data = cr.RankingData(y=[0, 1, 2, *([0] * 6), *([3] * 6)], sizes=[3, 12])
    table = cr.evaluate([0, 0, 0, *np.zeros(12)], data, [metric, "wta"])
    values = table[metric]
    assert values.name == "gain_at_top"
    assert values.per_query[0] == 1 / 3  # the mean of 0, 1 and 2, over 3
    assert type(calls[0][0][0]) is type(calls[0][1][0]) is int
    error = values.sampling_error
    assert error is not None
    assert error[0] == 0 < error[1] < 0.04
    assert abs(values.per_query[1] - 0.5) < 5 * error[1]
    assert "sampled at ties" in str(table)
    assert table[metric].per_query[1] == cr.evaluate(np.zeros(15), data, [metric])[metric].per_query[1]  # seeded
    assert metric.ideal([0, 2, 1]) == 2 / 3
    assert metric.exact([0, 2, 1], (1, 0, 2)) == Fraction(2, 3)
    both = cr.evaluate(np.zeros(15), data, 0.5 * metric + cr.metric("rr"))
    assert list(both) == ["0.5*gain_at_top + rr"]
    assert both["0.5*gain_at_top + rr"].per_query[0] == pytest.approx(0.5 / 3 + 5 / 6)


def test_a_users_metric_may_judge_by_rankings_and_preferences() -> None:
    def same_first(ranking: Any, order: Any) -> bool:
        return ranking[0] == order[0]

    ranked = cr.RankingData(sizes=[3], rankings=cr.Rankings([[2, 0, 1], [0, 1, 2]], weight=[3, 1]))
    metric = cr.metric(same_first, supervision="rankings")
    assert cr.evaluate([0, 1, 2], ranked, metric)["same_first"].mean == 0.75

    def kept(W: Any, order: Any) -> float:
        return sum(W[i][j] for place, i in enumerate(order) for j in order[place + 1 :])

    preferred = cr.RankingData(sizes=[3], preferences=cr.Preferences([0, 1], [1, 2], [2, 1]))
    metric = cr.metric(kept, supervision="preferences")
    assert cr.evaluate([2, 1, 3], preferred, metric)["kept"].mean == 2

    def broken(labels: Any, order: Any) -> float:
        return float("nan")

    with pytest.raises(ValueError, match="broken: expected a finite number, got nan for labels"):
        cr.metric(broken)([1, 0], scores=[1, 2])


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "labels", "metric", "message"),
    [
        ([1, np.nan, 0], [1, 0, 1], "ap", "scores: expected finite numbers, got nan for query q, document 1"),
        ([1, 2, np.inf], [1.5, 0, 1], "ap", "got inf for query r, document 0"),
        ([1, 2, -np.inf], [1, 0, 1], "pd", "got -inf for query r, document 0"),
        ([1, 2], [1, 0, 1], "ap", "one for each of 3 documents, got 2"),
        (["a", "b", "c"], [1, 0, 1], "ap", "one number a document"),
        ([1, 2, 3], [1, 0.5, 1], "ap", "ap: expected labels 0 or >= 1 (relevant=1); got 0.5 for query q, document 1"),
        ([1, 2, 3], [1, 0, -1], "ndcg", "ndcg: expected labels >= 0; got -1 for query r, document 0"),
        ([1, 2, 3], [1, 5, 1], "err", "err(max_grade=4): expected labels up to max_grade=4; got 5 for query q"),
        ([1, 2, 3], [1, 0, 1], "ndcg(gain=price)", "the data has no column 'price': its columns are prize"),
        ([1, 2, 3], [1, 0, 1], "dcg(weight=doc_weight)", "the data has no column 'doc_weight'"),
        ([1, 2, 3], [1, 0, 1], "dcg(gain=text)", "column 'text' does not hold numbers"),
        ([1, 2, 3], [1, 0, 1], "ndgc", "Did you mean 'ndcg'"),
        ([1, 2, 3], [1, 0, 1], "ndcg@0", "whole number from 1"),
        ([1, np.nan, 3], [1, 0, 1], cr.metric(lambda labels, order: 1), "got nan for query q, document 1"),
        ([1, 2, 3], [1, 0, 1], cr.metric(lambda labels, order: "x"), "query q: <lambda>: expected a finite number"),
        ([1, 2, 3], [1, 0, 1], cr.metrics.NDCG, "got the class NDCG: write NDCG()"),
        ([1, 2, 3], [1, 0, 1e300], "dcg(gain=linear)", "gains above 1e+290 cannot be added up; got 1e+300 for query r"),
        ([1, 2, 3], [1, 0, 1], "rr(unjudged=skip) + ap", "treat documents without a label alike"),
        ([1, 2, 3], [1, 0, 1], 3, "metrics: expected a name, a metric, a function, or a list of these; got 3"),
    ],
)
def test_bad_input_is_refused_with_its_place(scores: Any, labels: Any, metric: Any, message: str) -> None:
    columns = {"prize": [1, 2, 3], "text": ["a", "b", "c"]}
    data = cr.RankingData(y=labels, sizes=[2, 1], query_ids=["q", "r"], columns=columns)
    with pytest.raises((ValueError, TypeError)) as caught:
        cr.evaluate(scores, data, metric)
    assert message in str(caught.value)


def test_a_wrong_score_of_a_run_is_named_by_its_document() -> None:
    with pytest.raises(ValueError, match="got nan for document b of query q1"):
        cr.Run(["q1", "q1"], ["a", "b"], [1.0, np.nan])


def test_documents_without_a_label_are_treated_alike_by_all_methods() -> None:
    labels = np.ma.masked_invalid([1, np.nan, 0])
    zero, skip = cr.metrics.Precision(k=2), cr.metrics.Precision(k=2, unjudged="skip")
    assert (zero(labels, order=[1, 0, 2]), zero.exact(labels, [1, 0, 2])) == (0.5, Fraction(1, 2))
    assert zero.utility(labels).tolist() == [1, 0, 0]
    assert (skip(labels, order=[1, 2, 0]), skip.ideal(labels)) == (0.5, 0.5)
    for method in (skip.utility, skip.offset, lambda y: skip.prefix_gain(y, (), 0), lambda y: skip.exact(y, [0, 1, 2])):
        with pytest.raises(ValueError, match="document 1 has no label and is no document of the list"):
            method(labels)


def test_a_metric_may_judge_by_others_while_it_judges() -> None:
    """Sorted lists are no shared room that the next sort overwrites."""

    class Twice(cr.metrics.DCG):
        def values(self, lists: Any) -> Any:
            cr.metric("ndcg")([0, 1, 2, 3], scores=[4, 3, 2, 1])
            return 2 * super().values(lists)

    data, scores = made(20, 9, seed=8)
    found = cr.evaluate(scores, data, [cr.metrics.DCG(), "rr"])["dcg"].per_query
    twice = cr.evaluation.values._label_values([Twice()], cr.evaluation.alignment.align(scores, data))
    assert next(iter(twice.values())).value.tolist() == (2 * found).tolist()


def test_weights_of_documents_are_a_column() -> None:
    data = cr.RankingData(y=[1, 1], sizes=[2], doc_weight=[1, 3])
    table = cr.evaluate([2, 1], data, ["dcg(weight=doc_weight)"])
    assert table["dcg(weight=doc_weight)"].mean == 1 + 3 / np.log2(3)


def test_compare_averages_seeds_and_joins_folds() -> None:
    first, scores = made(12, 9, seed=10)
    second, others = made(7, 9, seed=11)
    rng = np.random.default_rng(12)
    seeds = [[rng.random(data.n_docs) for _ in range(3)] for data in (first, second)]
    found = cr.compare({"one": [scores, others], "three": seeds}, [first, second], ["ap", "rr"])
    one = np.concatenate(
        [cr.evaluate(scores, first, "ap")["ap"].per_query, cr.evaluate(others, second, "ap")["ap"].per_query]
    )
    each = [
        [cr.evaluate(s, data, "ap")["ap"].per_query for s in held]
        for data, held in zip((first, second), seeds, strict=True)
    ]
    three = np.concatenate([np.mean(part, axis=0) for part in each])
    assert found.summary("ap", "three").seeds == 3
    assert found.pair("ap", "one", "three").difference == pytest.approx((one - three).mean(), rel=1e-12)
    matrix = cr.compare({"one": scores, "three": np.array(seeds[0])}, first, "ap")
    assert matrix.summary("ap", "three").mean == pytest.approx(np.mean(each[0]), rel=1e-12)
    for runs, message in (
        ({"a": [scores, others], "b": [seeds[0], others]}, r"run 'b': folds\[1\]: expected 3 seeds"),
        ({"a": [scores]}, "run 'a': expected a list with an entry for each of 2 folds"),
        ({"a": [scores, scores]}, "run 'a', fold 1: scores: expected one for each of"),
        ({"a": [scores, [others, others[:1]]]}, "run 'a', fold 1, seed 1: scores: expected one for each of"),
    ):
        with pytest.raises(ValueError, match=message):
            cr.compare(runs, [first, second], "ap")
    with pytest.raises(TypeError, match="the name of a run is text; got 1"):
        cr.compare({1: scores}, first, "ap")


def test_many_codes_in_many_short_lists_take_little_room() -> None:
    """The counts of codes, one row a list, are kept small by taking fewer lists at a time."""
    cr.set_threads(1)
    offsets = np.arange(10**6 + 1)
    widest = max(stop - start for start, stop in lists_module.blocks(offsets, 64))
    assert widest * 64 * 8 < 12e6
    assert len(lists_module.blocks(offsets, 64)) > len(lists_module.blocks(offsets))


def test_exports_read_back(tmp_path: Path) -> None:
    import csv
    import json

    data, scores = made(4, 5)
    table = cr.evaluate(scores, data, ["ap(empty=skip)", "rr"])
    written = json.loads(table.to_json(tmp_path / "t.json", per_query=True))
    assert written == json.loads((tmp_path / "t.json").read_text())
    expected = [None if np.isnan(value) else value for value in table["ap(empty=skip)"].per_query.tolist()]
    assert written["per_query"]["ap(empty=skip)"] == expected
    lines = list(csv.DictReader(table.to_csv(per_query=True).splitlines()))
    assert [float(line["rr"]) for line in lines] == table["rr"].per_query.tolist()
    assert table.to_markdown().count("\n") == 4
    assert float(next(csv.DictReader(table.to_csv().splitlines()))["mean"]) == table["ap(empty=skip)"].mean
