"""What is in a data set, and what in it deserves a second look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calirank.data.arguments import BLOCK
from calirank.data.ragged import encode_ids, list_numbers
from calirank.data.ranking_data import RankingData, as_data

#: More distinct labels than this are summed up by their range instead of a histogram.
MOST_LABELS = 50


@dataclass(frozen=True)
class Description:
    """Counts of a data set; ``str`` gives them as text, :meth:`to_dict` for JSON."""

    queries: int
    documents: int
    features: int
    sparse: bool
    supervision: str | None
    #: min, median, mean, max of the number of documents of a query.
    list_lengths: tuple[float, float, float, float]
    #: Number of documents (or, with several judges, of labels) with each label; empty when they are too many.
    labels: dict[float, int] = field(default_factory=dict)
    label_range: tuple[float, float] | None = None
    unjudged: int = 0
    #: Queries without any positive label: no order of them is better than another.
    all_zero_queries: int = 0
    #: Queries with one label only (the all-zero ones among them).
    single_label_queries: int = 0
    #: Judgements (judges, rankings, preference graphs) in all, and the pairs or places that they hold.
    judgements: int = 0
    judged_entries: int = 0
    constant_features: tuple[str, ...] = ()
    missing_values: int = 0
    zero_share: float | None = None
    categorical: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    #: Query ids that several lists have, and documents that occur twice in one list.
    repeated_queries: tuple[Any, ...] = ()
    repeated_documents: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "labels": {number_text(label): count for label, count in self.labels.items()}}

    def rows(self) -> Iterator[tuple[str, str]]:
        """Pairs of a heading and its text, in the order in which they are printed."""
        yield "queries", f"{self.queries:,}"
        yield "documents", f"{self.documents:,}"
        low, median, mean, high = self.list_lengths
        yield "documents a query", f"{low:g} to {high:g}, median {median:g}, mean {mean:.1f}"
        yield "supervision", self._supervision_in_words()
        if self.labels:
            yield "labels", ", ".join(f"{number_text(label)}: {count:,}" for label, count in self.labels.items())
        elif self.label_range:
            yield (
                "labels",
                f"more than {MOST_LABELS} different ones, {self.label_range[0]:g} to {self.label_range[1]:g}",
            )
        if self.unjudged:
            yield "unjudged documents", f"{self.unjudged:,}"
        if self.labels or self.label_range:
            yield "all-zero queries", f"{self.all_zero_queries:,} (no positive label)"
            yield "one-label queries", f"{self.single_label_queries:,} (every document has the same label)"
        yield from self._feature_rows()
        if self.columns:
            yield "columns", ", ".join(self.columns)
        repeated = "none"
        if self.repeated_queries:
            shown = ", ".join(map(str, self.repeated_queries[:5]))
            repeated = f"{len(self.repeated_queries):,}: {shown}{', …' if len(self.repeated_queries) > 5 else ''}"
        yield "repeated query ids", repeated
        yield (
            "repeated documents",
            f"{self.repeated_documents:,} (twice in one query)" if self.repeated_documents else "none",
        )

    def _supervision_in_words(self) -> str:
        if self.supervision in ("judges", "rankings", "preferences"):
            entries = {"judges": "labels", "rankings": "ranked places", "preferences": "pairs"}[self.supervision]
            return f"{self.supervision}: {self.judgements:,} judgements with {self.judged_entries:,} {entries}"
        return self.supervision or "none"

    def _feature_rows(self) -> Iterator[tuple[str, str]]:
        if not self.features:
            yield "features", "none"
            return
        zeros = "" if self.zero_share is None else f", {self.zero_share:.1%} zeros"
        yield "features", f"{self.features:,} ({'sparse' if self.sparse else 'dense'}{zeros})"
        shown = ", ".join(self.constant_features[:20])
        more = f", … ({len(self.constant_features)} in all)" if len(self.constant_features) > 20 else ""
        yield "constant features", shown + more or "none"
        if self.missing_values:
            yield "missing values", f"{self.missing_values:,}"
        if self.categorical:
            yield "categorical", ", ".join(self.categorical)

    def __str__(self) -> str:
        rows = list(self.rows())
        width = max(len(heading) for heading, _ in rows)
        return "\n".join(f"{heading:<{width}}  {text}" for heading, text in rows)


def number_text(number: float) -> str:
    """The shortest text that reads back as the number, without a needless point.

    >>> number_text(2.0), number_text(0.1)
    ('2', '0.1')
    """
    return str(int(number)) if number.is_integer() else repr(number)


def describe(data: RankingData) -> Description:
    """Count what is in the data.

    >>> print(describe(RankingData([[1, 0], [1, 2], [1, 3]], [0, 2, 0], qid=["a", "a", "b"])))
    queries             2
    documents           3
    documents a query   1 to 2, median 1.5, mean 1.5
    supervision         grades
    labels              0: 2, 2: 1
    all-zero queries    1 (no positive label)
    one-label queries   1 (every document has the same label)
    features            2 (dense, 16.7% zeros)
    constant features   1
    repeated query ids  none
    repeated documents  none
    """
    sizes = as_data(data).sizes
    lengths = (sizes.min(), np.median(sizes), sizes.mean(), sizes.max()) if len(sizes) else (0, 0, 0, 0)
    low, median, mean, high = map(float, lengths)
    held = next((h for h in (data.judges, data.rankings, data.preferences) if h is not None), None)
    distinct, codes = encode_ids(data.query_ids)
    repeats = np.bincount(codes, minlength=len(distinct)) > 1
    return Description(
        queries=len(data),
        documents=data.n_docs,
        features=data.n_features,
        sparse=data.X is not None and not isinstance(data.X, np.ndarray),
        supervision=data.supervision,
        list_lengths=(low, median, mean, high),
        judgements=0 if held is None else len(held.weight),
        judged_entries=0 if held is None else len(held.payload[0]),
        categorical=tuple(data.feature_name(feature) for feature in data.categorical),
        columns=tuple(data.columns),
        repeated_queries=tuple(distinct[repeats].tolist()),
        repeated_documents=_repeated_documents(data),
        **_labels(data),
        **_features(data),
    )


def _labels(data: RankingData) -> dict[str, Any]:
    """Histogram, and the queries whose labels say little: of the grades, or of all judges together."""
    if data.y is not None:
        labels, starts = data.y, data.offsets
    elif data.judges is not None and len(data.judges.labels):
        labels, starts = data.judges.labels, data.judges.starts[data.judges.offsets]
    else:
        return {}
    known = ~np.isnan(labels)
    values, counts = np.unique(labels[known], return_counts=True)
    found: dict[str, Any] = {"unjudged": int((~known).sum())}
    if len(values) and len(values) <= MOST_LABELS:
        found["labels"] = {float(value): int(count) for value, count in zip(values, counts, strict=True)}
    elif len(values):
        found["label_range"] = (float(values[0]), float(values[-1]))
    full = np.flatnonzero(np.diff(starts) > 0)
    if len(full):
        highest = np.maximum.reduceat(np.where(known, labels, -np.inf), starts[full])
        lowest = np.minimum.reduceat(np.where(known, labels, np.inf), starts[full])
        found["all_zero_queries"] = int((highest <= 0).sum())
        found["single_label_queries"] = int((highest <= lowest).sum())
    return found


def _features(data: RankingData) -> dict[str, Any]:
    if data.X is None or not data.n_docs:
        return {}
    if isinstance(data.X, np.ndarray):
        low, high, missing, zeros = _dense_summary(data.X)
    else:
        low, high, missing, zeros = _sparse_summary(data.X)
    constant = np.flatnonzero(~(low < high))
    return {
        "constant_features": tuple(data.feature_name(int(feature)) for feature in constant),
        "missing_values": missing,
        "zero_share": zeros / (data.n_docs * max(data.n_features, 1)),
    }


def _dense_summary(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], int, int]:
    """Lowest and highest value of each feature (NaN left out), number of NaN, number of zeros; block by block."""
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    missing = zeros = 0
    for first in range(0, len(X), BLOCK):
        block = X[first : first + BLOCK]
        np.fmin(low, np.fmin.reduce(block, axis=0), out=low)
        np.fmax(high, np.fmax.reduce(block, axis=0), out=high)
        missing += int(np.isnan(block).sum())
        zeros += int((block == 0).sum())
    return low, high, missing, zeros


def _sparse_summary(X: Any) -> tuple[NDArray[Any], NDArray[Any], int, int]:
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    np.fmin.at(low, X.indices, X.data)
    np.fmax.at(high, X.indices, X.data)
    implied = np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]  # features with zeros that are not stored
    low[implied], high[implied] = np.minimum(low[implied], 0), np.maximum(high[implied], 0)
    stored_zeros = int((X.data == 0).sum())
    return low, high, int(np.isnan(X.data).sum()), X.shape[0] * X.shape[1] - len(X.data) + stored_zeros


def _repeated_documents(data: RankingData) -> int:
    """How many documents occur a second time in their query."""
    if data.doc_ids is None:
        return 0
    names, codes = encode_ids(data.doc_ids)
    keys = list_numbers(data.offsets) * len(names) + codes
    return len(keys) - len(np.unique(keys))
