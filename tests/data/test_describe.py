"""describe: every count against a plain loop."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import calirank as cr


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 5), min_size=1, max_size=5), st.booleans())
def test_counts_are_those_of_a_plain_loop(seed: int, sizes: list[int], as_sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = sum(sizes)
    X: Any = rng.integers(0, 2, (rows, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.ma.masked_array(rng.integers(-1, 3, rows), rng.random(rows) < 0.3)
    data = cr.RankingData(sparse.csr_array(X) if as_sparse else X, y, sizes=sizes, doc_ids=rng.integers(0, 3, rows))
    found = cr.describe(data)
    assert (found.queries, found.documents, found.features, found.sparse) == (len(sizes), rows, 4, as_sparse)
    assert found.labels == Counter(y.compressed().tolist())
    assert found.unjudged == y.mask.sum()
    lists = [y[data.rows(query)].compressed().tolist() for query in range(len(sizes))]
    assert found.all_zero_queries == sum(all(label <= 0 for label in labels) for labels in lists)
    assert found.single_label_queries == sum(len(set(labels)) <= 1 for labels in lists)
    columns = [set(column[~np.isnan(column)].tolist()) for column in X.T]
    assert found.constant_features == tuple(str(n + 1) for n, values in enumerate(columns) if len(values) <= 1)
    assert found.missing_values == np.isnan(X).sum()
    assert found.zero_share == pytest.approx((X == 0).mean())
    assert found.repeated_documents == sum(
        n - len(set(data.doc_ids[data.rows(query)].tolist())) for query, n in enumerate(sizes)
    )
    assert found.list_lengths == (min(sizes), np.median(sizes), np.mean(sizes), max(sizes))
    json.dumps(found.to_dict())


def test_repeated_queries_and_other_supervision_are_shown() -> None:
    data = cr.RankingData(sizes=[2, 2], query_ids=["q", "q"])
    assert "repeated query ids  1: q" in str(cr.describe(data))
    ranked = cr.RankingData(sizes=[3], rankings=cr.Rankings([[0, 1, 2], [1, 0]]))
    assert "rankings: 2 judgements with 5 ranked places" in str(cr.describe(ranked))
    preferred = cr.RankingData(sizes=[3], preferences=cr.Preferences([0, 1], [1, 2]))
    assert "preferences: 1 judgements with 2 pairs" in str(cr.describe(preferred))
    judged = cr.RankingData(sizes=[2], judges=np.ma.masked_array([[1, 0], [0, 0]], [[0, 0], [0, 1]]))
    assert cr.describe(judged).labels == {0.0: 2, 1.0: 1}
    assert cr.describe(judged).unjudged == 1


def test_many_different_labels_are_a_range() -> None:
    found = cr.describe(cr.RankingData(y=np.arange(100) / 7, sizes=[100]))
    assert found.labels == {}
    assert "more than 50 different ones, 0 to 14.1429" in str(found)


def test_labels_that_are_nearly_equal_are_counted_apart() -> None:
    found = cr.describe(cr.RankingData(y=[1.0000001, 1.0000002, 1.0000002], sizes=[3]))
    assert found.to_dict()["labels"] == {"1.0000001": 1, "1.0000002": 2}


def test_many_rows_are_counted_block_by_block() -> None:
    X = np.zeros((50_000, 2))
    X[[3, 20_000, 49_999], 0] = np.nan
    X[40_000, 1] = 1
    found = cr.describe(cr.RankingData(X, sizes=[50_000]))
    assert found.missing_values == 3
    assert found.constant_features == ("1",)
    assert found.zero_share == pytest.approx((100_000 - 4) / 100_000)


def test_no_documents_at_all() -> None:
    assert cr.describe(cr.RankingData(y=[1.0], sizes=[1])[0:0]).documents == 0
