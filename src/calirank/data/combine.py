"""Several data sets as one, and the same query seen many times as one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from calirank.data.arguments import BLOCK
from calirank.data.ragged import Floats, Ints, encode_ids, join_ids, list_numbers, offsets_of
from calirank.data.ranking_data import RankingData, as_data
from calirank.data.supervision import Judgements, Preferences, Rankings


def merge_queries(data: RankingData, *, features: str = "equal") -> RankingData:
    """See :meth:`calirank.RankingData.merge_queries`."""
    if features not in ("equal", "first"):
        raise ValueError(f'features: expected "equal" or "first", got {features!r}')
    ids, group = encode_ids(data.query_ids)
    if len(ids) == len(data):
        return data
    first_row, move, offsets = _match_documents(data, ids, group)
    if features == "equal":
        _refuse_differences(data, group, first_row, move, offsets)
    lists = np.argsort(group, kind="stable")
    groups = offsets_of(np.bincount(group))
    weight = np.ones(len(data)) if data.query_weight is None else data.query_weight
    held: Any = next((h for h in (data.judges, data.preferences, data.rankings) if h is not None), None)
    if data.y is not None:
        ones = np.arange(len(data) + 1)
        held = Judgements._build(data.query_ids, ones, np.ones(len(data)), data.offsets, [data.y], data.sizes)
    total = np.bincount(group, weights=weight)
    share = np.where(total[group] > 0, weight, 1.0)  # a query of no weight keeps its judgements, alike
    merged = None if held is None else held.merged(lists, groups, ids, np.diff(offsets), share, move)
    truth = data._posterior
    if truth is not None:  # the first list's, if it has every document
        first_lists = lists[groups[:-1]]
        same = np.array_equal(data.sizes[first_lists], np.diff(offsets))
        truth = truth.select(first_lists) if same else None

    def documents(array: Any) -> Any:
        return None if array is None else array[first_row]

    return RankingData(
        documents(data.X),
        offsets=offsets,
        query_ids=ids,
        doc_ids=documents(data.doc_ids),
        feature_names=data.feature_names,
        categorical=cast("Any", data.categories),
        columns={name: documents(values) for name, values in data.columns.items()},
        query_weight=total,
        doc_weight=documents(data.doc_weight),
        feature_base=data.feature_base,
        judges=merged if isinstance(merged, Judgements) else None,
        preferences=merged if isinstance(merged, Preferences) else None,
        rankings=merged if isinstance(merged, Rankings) else None,
        posterior=truth,
    )


def _match_documents(data: RankingData, ids: NDArray[Any], group: Ints) -> tuple[Ints, Ints, Ints]:
    """First row of each merged document, position of each row in its merged list, and the merged offsets."""
    query = group[list_numbers(data.offsets)]
    if data.doc_ids is None:
        sizes = data.sizes
        longest = np.zeros(len(ids), np.int64)
        np.maximum.at(longest, group, sizes)
        uneven = np.flatnonzero(sizes != longest[group])
        if len(uneven):
            raise ValueError(
                f"query {data.query_ids[uneven[0]]} is seen with {sizes[uneven[0]]} and with "
                f"{longest[group[uneven[0]]]} documents: without doc_ids they cannot be matched"
            )
        document = np.arange(data.n_docs) - np.repeat(data.offsets[:-1], sizes)
        count = int(longest.max(initial=0))
    else:
        names, document = encode_ids(data.doc_ids)
        count = len(names)
        inside = np.sort(list_numbers(data.offsets) * count + document)
        twice = np.flatnonzero(inside[1:] == inside[:-1])
        if len(twice):
            at, name = divmod(int(inside[twice[0]]), count)
            raise ValueError(f"query {data.query_ids[at]}: document {names[name]} occurs twice in one list")
    distinct, first, inverse = np.unique(query * count + document, return_index=True, return_inverse=True)
    order = np.lexsort((first, distinct // count))  # by query, then by first appearance
    number = np.empty(len(distinct), np.int64)
    number[order] = np.arange(len(distinct))
    offsets = offsets_of(np.bincount(distinct // count, minlength=len(ids)))
    return first[order], number[inverse.reshape(-1)] - offsets[query], offsets


def _refuse_differences(data: RankingData, group: Ints, first_row: Ints, move: Ints, offsets: Ints) -> None:
    original = first_row[offsets[group[list_numbers(data.offsets)]] + move]

    def refuse(row: int, what: str) -> None:
        raise ValueError(
            f"{data.row_name(row)}: its {what} differs from that in another list of the same query; "
            'features="first" takes the first'
        )

    for name, values in {**data.columns, "doc_weight": data.doc_weight}.items():
        if values is not None:
            wrong = values != values[original]
            if values.dtype.kind in "fmM":  # a missing value equals a missing value
                missing = np.isnan(values)
                wrong &= ~(missing & missing[original])
            if wrong.any():
                refuse(int(np.argmax(wrong)), name)
    if data.X is None:
        return
    for first in range(0, data.n_docs, BLOCK):
        rows = np.arange(first, min(first + BLOCK, data.n_docs))
        rows = rows[original[rows] != rows]
        ours, others = data.X[rows], data.X[original[rows]]
        if not isinstance(ours, np.ndarray):
            ours, others = ours.toarray(), others.toarray()
        wrong = (ours != others) & ~(np.isnan(ours) & np.isnan(others))
        if wrong.any():
            row, feature = np.argwhere(wrong)[0]
            refuse(int(rows[row]), f"feature {data.feature_name(int(feature))}")


def concatenate(parts: Sequence[RankingData]) -> RankingData:
    """One data set of all queries of the parts, in order; a query of two parts stays twice (see merge_queries).

    >>> a, b = RankingData(y=[1, 0], sizes=[2]), RankingData(y=[2], sizes=[1], query_ids=[7])
    >>> concatenate([a, b]).query_ids.tolist()
    [0, 7]
    """
    parts = [as_data(part) for part in parts]
    if not parts:
        raise ValueError("expected at least one data set")
    head = parts[0]
    for number, part in enumerate(parts[1:], start=1):
        _refuse_unlike(head, part, number)

    def joined(name: str) -> Any:
        held = [getattr(part, name) for part in parts]
        return None if held[0] is None else type(held[0]).concatenate(held)

    labels = None
    if head.y is not None:
        labels = np.concatenate([cast("Floats", part.y) for part in parts])
        if any(part.judged is not None for part in parts):
            labels = np.ma.masked_invalid(labels)
    weights: dict[str, Any] = {}
    for name, size in (("query_weight", len), ("doc_weight", lambda part: part.n_docs)):
        if any(getattr(part, name) is not None for part in parts):
            weights[name] = np.concatenate(
                [np.ones(size(part)) if getattr(part, name) is None else getattr(part, name) for part in parts]
            )
    whole = RankingData(
        _stack([part.X for part in parts]),
        labels,
        offsets=offsets_of(np.concatenate([part.sizes for part in parts])),
        query_ids=join_ids([part.query_ids for part in parts], "query_ids"),
        doc_ids=None if head.doc_ids is None else join_ids([cast("Any", part.doc_ids) for part in parts], "doc_ids"),
        feature_names=head.feature_names,
        categorical=cast("Any", head.categories),
        columns={name: np.concatenate([part.columns[name] for part in parts]) for name in head.columns},
        judges=joined("judges"),
        preferences=joined("preferences"),
        rankings=joined("rankings"),
        posterior=joined("_posterior"),
        feature_base=head.feature_base,
        **weights,
    )
    if any(part.source_rows is not None for part in parts):  # the caller's rows of the parts, one part after the other
        places = [part.caller_rows + first for part, first in zip(parts, _first_rows(parts), strict=True)]
        whole._with_source_rows(np.concatenate(places))
    return whole


def _first_rows(parts: Sequence[RankingData]) -> Ints:
    return offsets_of([part.n_docs for part in parts])[:-1]


def _refuse_unlike(head: RankingData, part: RankingData, number: int) -> None:
    def refuse(what: str, ours: Any, theirs: Any) -> None:
        raise ValueError(f"data sets 0 and {number} cannot be put together: {what} {ours} and {theirs}")

    if (head.X is None) != (part.X is None) or head.n_features != part.n_features:
        refuse("features:", head.n_features, part.n_features)
    if head.feature_names != part.feature_names:
        pairs = zip(head.feature_names or (None,), part.feature_names or (None,), strict=False)
        refuse("feature names:", *next((pair for pair in pairs if pair[0] != pair[1]), (None, None)))
    if head.categories != part.categories:
        refuse("categories:", head.categories, part.categories)
    if head.feature_base != part.feature_base and head.X is not None:
        refuse("first feature:", head.feature_base, part.feature_base)
    if head.supervision != part.supervision:
        refuse("supervision:", head.supervision, part.supervision)
    if (head.doc_ids is None) != (part.doc_ids is None):
        refuse(
            "doc_ids:",
            "given" if head.doc_ids is not None else "missing",
            "given" if part.doc_ids is not None else "missing",
        )
    if set(head.columns) != set(part.columns):
        refuse("columns:", sorted(head.columns), sorted(part.columns))
    for name, values in head.columns.items():
        if (values.dtype.kind in "iufb") != (part.columns[name].dtype.kind in "iufb"):
            refuse(f"column {name}:", values.dtype, part.columns[name].dtype)
    if head.has_posterior != part.has_posterior:
        refuse("known distribution (replace(posterior=None) leaves it out):", head.has_posterior, part.has_posterior)


def _stack(parts: list[Any]) -> Any:
    if parts[0] is None:
        return None
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    from scipy import sparse

    return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
