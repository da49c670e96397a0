"""Files of NumPy arrays: what is read of judgements and categories, and what is refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import calirank as cr


def saved(data: cr.RankingData, **changes: Any) -> io.BytesIO:
    """The data's file, with some of its arrays changed."""
    target = io.BytesIO()
    cr.write_npz(data, target)
    with np.load(io.BytesIO(target.getvalue())) as file:
        arrays = {name: file[name] for name in file.files} | changes
    target = io.BytesIO()
    np.savez(target, **arrays)
    return io.BytesIO(target.getvalue())


def judged() -> cr.RankingData:
    judges = cr.Judgements([[[2, 0, 1], [0, np.nan, 1]], np.zeros((0, 1)), [[1, 0]]], weight=[3, 1, 0.5])
    return cr.RankingData(sizes=[3, 1, 2], judges=judges)


def test_judgements_come_back() -> None:
    data = judged()
    assert cr.read_npz(saved(data)).equals(data)


def test_judgements_are_not_read_query_by_query(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 2000
    labels = np.tile([2.0, np.nan, 1.0], count)
    data = cr.RankingData(sizes=np.full(count, 3), judges=np.ma.masked_invalid(labels[:, None]))
    file = saved(data)
    monkeypatch.setattr(cr.Judgements, "__init__", None)
    assert cr.read_npz(file).equals(data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"judges_labels": np.array([2, 0, 1, 0, np.inf, 1, 1, 0.0])}, "judges_labels: expected finite numbers"),
        ({"judges_labels": np.zeros(7)}, r"judges_labels: expected 8 labels, got shape \(7,\)"),
        ({"judges_labels": np.zeros((8, 1))}, r"judges_labels: expected 8 labels, got shape \(8, 1\)"),
        ({"judges_weight": np.array([1.0, -1.0, 1.0])}, "expected finite numbers >= 0; got -1.0"),
        ({"judges_weight": np.array([1.0, 1.0, 0.0])}, "all judgements of query 2 have weight 0"),
        ({"judges_weight": np.ones(2)}, "expected one number for each judgement, that is 3"),
        ({"judges_offsets": np.array([0, 2, 1, 3])}, "judges_offsets: expected 4 whole numbers that rise from 0"),
        ({"judges_offsets": np.array([0, 2, 3])}, "judges_offsets: expected 4 whole numbers that rise from 0"),
        ({"judges_offsets": np.array([[0, 2, 2, 3]])}, "judges_offsets: expected 4 whole numbers that rise from 0"),
        ({"judges_offsets": np.array(["a"] * 4)}, "judges_offsets: expected 4 whole numbers that rise from 0"),
        ({"judges_offsets": np.array([0, 3, 2, 3], np.uint8)}, "judges_offsets: expected 4 whole numbers"),
    ],
)
def test_wrong_judgements_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"<stream>: .*{message}"):
        cr.read_npz(saved(judged(), **changes))


@pytest.mark.parametrize("values", [np.array([10, 20]), np.array(["a", "b"]), [np.float64(0.5), np.float32(1.5)]])
def test_categories_may_be_numbers_and_texts_of_numpy(values: Any) -> None:
    data = cr.RankingData([[0.0], [1.0]], [1, 0], sizes=[2], feature_names=["f"], categorical={0: values})
    back = cr.read_npz(saved(data))
    assert back.categories == {0: tuple(value.item() for value in values)}
    assert {type(value) for value in back.categories[0]} <= {int, float, str}
