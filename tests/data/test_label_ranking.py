"""Label ranking sets: values, crossed features, refusals with their place, and the real sets."""

from __future__ import annotations

import csv
import io
import lzma
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calirank as cr


def read_labels(text: str, **options: Any) -> cr.RankingData:
    return cr.read_label_ranking(io.StringIO(text), **options)


def test_label_ranking_without_features() -> None:
    data = read_labels("2,1,3\n0.5,2,3,1\n-1,1,2,3\n", item_features="none")
    assert data.X is None
    assert data.doc_ids.tolist() == [1, 2, 3, 1, 2, 3]
    assert [data.rankings.orders(query) for query in (0, 1)] == [[(2, 0, 1)], [(0, 1, 2)]]


def test_label_ranking_features_are_crossed_with_the_classes() -> None:
    data = read_labels("1,2,2\n0.1, 3e0 ,2,1\n")
    assert data.X.dtype == np.float32
    expected = [[0.1, 3, 1, 0, 0, 0], [0, 0, 0, 0.1, 3, 1]]
    assert np.array_equal(data.X, np.array(expected, np.float32))
    assert data.feature_names == ("x1:class1", "x2:class1", "1:class1", "x1:class2", "x2:class2", "1:class2")


def test_wide_label_ranking_features_are_sparse() -> None:
    wide = read_labels(
        "2,32,2\n" + ",".join(["0", *["1.5"] * 31, "1,2"]) + "\n" + ",".join([*["2"] * 32, "2,1"]) + "\n"
    )
    assert wide.X.shape == (4, 66)
    assert wide.X.nnz == 2 * (32 + 33)  # the 0 is not stored
    first = np.zeros((4, 66), np.float32)
    first[0, 1:32], first[0, 32], first[1, 34:65], first[1, 65] = 1.5, 1, 1.5, 1
    first[2, :32], first[2, 32], first[3, 33:65], first[3, 65] = 2, 1, 2, 1
    assert np.array_equal(wide.X.toarray(), first)


LABELS = {
    "empty": ("", "<stream>:1: expected the first line rows,features,classes, got an empty file"),
    "two sizes": ("2,3\n", "<stream>:1: expected the first line rows,features,classes, three whole numbers, got '2,3'"),
    "size no number": ("2,x,3\n", "three whole numbers, got '2,x,3'"),
    "no rows": ("0,1,2\n", "with at least one row and one class, got '0,1,2'"),
    "rows missing": ("3,1,2\n1,1,2\n1,2,1\n", "<stream>:3: expected 3 rows, as line 1 says, got 2"),
    "too many rows": ("1,1,2\n1,1,2\n1,2,1\n", "<stream>:3: expected 1 rows, as line 1 says, got 2"),
    "short row": ("2,1,2\n1,1,2\n1,2\n", "<stream>:3:4: expected 3 cells (features and ranks), got 2"),
    "all rows short": ("1,1,2\n1,2\n", "<stream>:2:4: expected 3 cells (features and ranks), got 2"),
    "long row": ("1,1,2\n1,1,2,9\n", "<stream>:2:7: expected 3 cells (features and ranks), got 4"),
    "letter": ("1,2,2\n1, b ,1,2\n", "<stream>:2:4: expected a finite number, got 'b'"),
    "empty cell": ("1,1,2\n,1,2\n", "<stream>:2:1: expected a finite number, got ''"),
    "NaN": ("1,1,2\nnan,1,2\n", "<stream>:2:1: expected a finite number, got 'nan'"),
    "infinite": ("1,1,2\n-inf,1,2\n", "<stream>:2:1: expected a finite number, got '-inf'"),
    "beyond float32": ("1,2,2\n1,1e39,1,2\n", "<stream>:2:3: expected a feature within float32, got one beyond it"),
    "rank twice": ("1,1,3\n5,2,1,2\n", "<stream>:2:7: expected the ranks 1 to 3, each once; class 3 has 2"),
    "rank too large": ("1,1,2\n5,3,1\n", "<stream>:2:3: expected the ranks 1 to 2, each once; class 1 has 3"),
    "rank 0": ("1,1,2\n5,1,0\n", "<stream>:2:5: expected the ranks 1 to 2, each once; class 2 has 0"),
    "fractional rank": ("1,1,2\n5,1,1.5\n", "<stream>:2:5: expected the ranks 1 to 2, each once; class 2 has 1.5"),
}


@pytest.mark.parametrize("case", LABELS)
def test_wrong_label_ranking_sets_are_refused_with_their_place(case: str) -> None:
    text, message = LABELS[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        read_labels(text)


def test_text_in_another_encoding_is_refused() -> None:
    with pytest.raises(ValueError, match="<stream>:2:3: expected UTF-8 text, got byte 0xe9"):
        cr.read_label_ranking(io.BytesIO(b"1,1,2\n1,\xe9,2\n"))


def test_unknown_item_features_are_refused() -> None:
    with pytest.raises(ValueError, match='item_features: expected "cross" or "none", got \'all\''):
        read_labels("1,1,2\n5,1,2\n", item_features="all")


# --- real sets -----------------------------------------------------------------------------------------------------

SETS = (
    "authorship bodyfat cold cpu fried glass heat housing iris pendigits segment spo stock vehicle vowel wine wisconsin"
)


@pytest.mark.parametrize("name", SETS.split())
def test_real_label_ranking(real_data: Path, name: str) -> None:
    path = real_data / "label_ranking" / f"{name}.csv.xz"
    data = cr.read_label_ranking(path)
    sizes, *rows = csv.reader(io.StringIO(lzma.decompress(path.read_bytes()).decode(), newline=""))
    count, features, classes = map(int, sizes)
    assert len(data) == count == len(rows)
    assert set(data.sizes.tolist()) == {classes}
    assert data.X.shape == (count * classes, classes * (features + 1))
    for query in range(0, count, max(1, count // 50)):
        ranks = [int(rank) for rank in rows[query][features:]]
        assert data.rankings.orders(query) == [tuple(ranks.index(place + 1) for place in range(classes))]
        matrix = data.X[data.rows(query)]
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        block = np.float32([*map(float, rows[query][:features]), 1])
        assert np.array_equal(dense, np.kron(np.eye(classes, dtype=np.float32), block))


def test_every_label_ranking_set_has_the_sizes_of_its_first_line(real_data: Path) -> None:
    for path in sorted((real_data / "label_ranking").glob("*.csv.xz")):
        with lzma.open(path, "rt") as stream:
            count, _, classes = map(int, stream.readline().split(","))
        data = cr.read_label_ranking(path, item_features="none")
        assert (len(data), data.n_docs, data.rankings.weight.sum()) == (count, count * classes, count)
