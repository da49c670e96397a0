"""Lists of documents with features and supervision: flat arrays plus offsets, validated once.

List ``i`` is the rows ``offsets[i]:offsets[i + 1]`` of every per-document array. What is known about the right order is
one of four: grades ``y``, several judgements per document (``judges``), ``preferences`` or ``rankings``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calirank.data.arguments import (
    BLOCK,
    as_column,
    as_feature_names,
    as_features,
    as_labels,
    frozen_features,
    judge_table,
    list_bounds,
    lists_of_rows,
    per_document,
    row_count,
    same,
)
from calirank.data.ragged import (
    Floats,
    Ints,
    as_ids,
    frozen,
    list_number,
    owned,
    refrozen,
    take_lists,
)
from calirank.data.supervision import Judgements, Preferences, Rankings, Supervision
from calirank.data.supervision.base import finite_weights
from calirank.names import did_you_mean


class RankingData:
    """Ranking data, validated on construction; its arrays are read-only.

    Features are not copied: who changes the array given as ``X`` afterwards changes the data unseen. All else is
    copied.

    The lists are given by exactly one of ``offsets`` (Q + 1 numbers, from 0), ``sizes`` (documents of each list) or
    ``qid`` (the query of each row; the rows of a query must lie together unless ``group_rows=True``).

    ``X`` is a dense array (float32 or float64; NaN means missing) or a SciPy CSR matrix, or None. Labels ``y`` are
    floats; the label of an unjudged document is masked (``numpy.ma``), and reads as NaN in ``data.y``. ``judges`` has a
    row a document and a column a judge (masked where silent), or is a :class:`Judgements`.

    >>> data = RankingData([[0.1], [0.9], [0.4]], [0, 2, 1], qid=["a", "a", "b"])
    >>> data
    RankingData(2 queries, 3 documents, 1 feature, grades)
    >>> data.offsets.tolist(), data.query_ids.tolist(), data[1].y.tolist()
    ([0, 2, 3], ['a', 'b'], [1.0])
    """

    X: Any
    y: Floats | None
    offsets: Ints
    query_ids: NDArray[Any]
    doc_ids: NDArray[Any] | None
    feature_names: tuple[str, ...] | None
    categorical: tuple[int, ...]
    categories: Mapping[int, tuple[Any, ...]]
    columns: Mapping[str, NDArray[Any]]
    query_weight: Floats | None
    doc_weight: Floats | None
    judges: Judgements | None
    preferences: Preferences | None
    rankings: Rankings | None
    #: Which documents have a label; None when all have.
    judged: NDArray[np.bool_] | None
    #: The number that LETOR text gives to the first feature.
    feature_base: int
    #: Where each row stood in the caller's arrays; None when in the same place.
    source_rows: Ints | None
    _posterior: Supervision | None
    _sealed: bool

    def __init__(
        self,
        X: Any = None,
        y: Any = None,
        *,
        offsets: ArrayLike | None = None,
        sizes: ArrayLike | None = None,
        qid: Any = None,
        query_ids: Any = None,
        doc_ids: Any = None,
        feature_names: Sequence[str] | None = None,
        categorical: Sequence[int | str] | Mapping[int | str, Sequence[Any]] = (),
        columns: Mapping[str, Any] | None = None,
        query_weight: ArrayLike | None = None,
        doc_weight: ArrayLike | None = None,
        judges: Any = None,
        preferences: Preferences | None = None,
        rankings: Rankings | None = None,
        group_rows: bool = False,
        feature_base: int = 1,
        posterior: Supervision | None = None,
    ) -> None:
        features = as_features(X)
        labels, judged = as_labels(y)
        rows = row_count(features, labels, doc_ids, judges, columns)
        given = [n for n, v in (("offsets", offsets), ("sizes", sizes), ("qid", qid)) if v is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of offsets, sizes and qid; got {' and '.join(given) or 'none'}")
        if group_rows and qid is None:
            raise ValueError("group_rows groups the rows by qid; it has no meaning with offsets or sizes")
        permutation: Ints | None = None
        if qid is not None:
            if query_ids is not None:
                raise ValueError("qid already names the queries; query_ids goes with offsets or sizes")
            ids, bounds, permutation = lists_of_rows(as_ids(qid, "qid"), rows, group_rows)
        else:
            bounds = list_bounds(offsets, sizes, rows)
            ids = as_ids(np.arange(len(bounds) - 1) if query_ids is None else query_ids, "query_ids")
            if len(ids) != len(bounds) - 1:
                raise ValueError(f"query_ids: expected one for each of {len(bounds) - 1} queries, got {len(ids)}")

        def arranged(array: Any) -> Any:
            return array if permutation is None or array is None else array[permutation]

        n_docs = int(bounds[-1])
        self.offsets, self.query_ids = frozen(bounds), owned(ids)
        self.source_rows = None if permutation is None else frozen(permutation)
        self.X = frozen_features(arranged(features))
        self.y = None if labels is None else frozen(arranged(labels))
        self.judged = None if judged is None else frozen(arranged(judged))
        self.doc_ids = None
        if doc_ids is not None:
            self.doc_ids = owned(arranged(per_document(as_ids(doc_ids, "doc_ids"), n_docs, "doc_ids")))
        self.feature_names = as_feature_names(feature_names, self.n_features)
        self.categorical, self.categories = self._categorical(categorical)
        self.columns = {
            str(name): owned(arranged(as_column(values, n_docs, str(name)))) for name, values in (columns or {}).items()
        }
        if len(self.columns) < len(columns or {}):
            raise ValueError(f"columns: names are text, and two of {list(columns or {})} are the same text")
        self.query_weight = self.doc_weight = None
        if query_weight is not None:
            self.query_weight = frozen(finite_weights(query_weight, len(ids), "query", "query_weight"))
        if doc_weight is not None:
            self.doc_weight = frozen(arranged(finite_weights(doc_weight, n_docs, "document", "doc_weight")))
        if feature_base not in (0, 1):
            raise ValueError(f"feature_base: expected 0 or 1, got {feature_base!r}")
        self.feature_base = int(feature_base)

        by_position = [held for held in (judges, preferences, rankings, posterior) if isinstance(held, Supervision)]
        if permutation is not None and by_position:
            raise ValueError(
                "group_rows moves documents, so judgements that name documents by position would point elsewhere; "
                "group the rows first, then give the supervision to data.replace(...)"
            )
        if judges is not None and not isinstance(judges, Judgements):
            judges = Judgements.from_matrix(arranged(judge_table(judges, n_docs)), bounds, ids)
        kinds = [
            n
            for n, v in (("y", y), ("judges", judges), ("preferences", preferences), ("rankings", rankings))
            if v is not None
        ]
        if len(kinds) > 1:
            raise ValueError(f"expected one kind of supervision, got {' and '.join(kinds)}")
        self.judges = self._aligned(judges, Judgements, "judges")
        self.preferences = self._aligned(preferences, Preferences, "preferences")
        self.rankings = self._aligned(rankings, Rankings, "rankings")
        self._posterior = self._aligned(posterior, Supervision, "posterior")
        self._check_values()
        self._seal()

    def _seal(self) -> RankingData:
        """From now on no attribute can be set, and no column be exchanged."""
        self.columns, self.categories = MappingProxyType(self.columns), MappingProxyType(self.categories)
        self._sealed = True
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if "_sealed" in self.__dict__:
            raise AttributeError(f"ranking data is read-only; data.replace({name}=...) makes changed data")
        super().__setattr__(name, value)

    def _with_source_rows(self, source_rows: Ints | None) -> RankingData:
        """This data, told where its rows stood in the caller's arrays."""
        self.__dict__["source_rows"] = None if source_rows is None else frozen(source_rows)
        return self

    # --- validation that needs the whole ---------------------------------------------------------------------------

    def _aligned(self, supervision: Any, kind: type[Any], name: str) -> Any:
        if supervision is None:
            return None
        if not isinstance(supervision, kind):
            raise TypeError(f"{name}: expected {kind.__name__}, got {type(supervision).__name__}")
        return supervision.align(self.query_ids, self.sizes)

    def _categorical(self, given: Any) -> tuple[tuple[int, ...], dict[int, tuple[Any, ...]]]:
        entries = given.items() if isinstance(given, Mapping) else [(name, ()) for name in given]
        categories: dict[int, tuple[Any, ...]] = {}
        for name, values in entries:
            categories[self.feature_index(name)] = tuple(
                value.item() if isinstance(value, np.generic) else value for value in values
            )
        return tuple(sorted(categories)), dict(sorted(categories.items()))

    def _check_values(self) -> None:
        if self.y is not None:
            wrong = ~np.isfinite(self.y) if self.judged is None else ~np.isfinite(self.y) & self.judged
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(
                    f"y: expected finite labels, got {self.y[row]} in {self.row_name(row)}; a document without a label "
                    "is masked: numpy.ma.masked_invalid(y)"
                )
        if self.X is None:
            return
        if isinstance(self.X, np.ndarray):
            for first in range(0, len(self.X), BLOCK):
                block = self.X[first : first + BLOCK]
                if np.isinf(block).any():
                    row, feature = np.argwhere(np.isinf(block))[0]
                    self._refuse_value(first + int(row), int(feature), block[row, feature])
        elif np.isinf(self.X.data).any():
            at = int(np.argmax(np.isinf(self.X.data)))
            row = int(np.searchsorted(self.X.indptr, at, side="right")) - 1
            self._refuse_value(row, int(self.X.indices[at]), self.X.data[at])
        for feature in self.categorical:
            codes = self._feature_column(feature)
            codes = codes[~np.isnan(codes)]
            limit = len(self.categories[feature]) or np.inf
            if ((codes < 0) | (codes != np.floor(codes)) | (codes >= limit)).any():
                raise ValueError(
                    f"X: feature {self.feature_name(feature)} is categorical: expected codes 0, 1, … "
                    f"{'' if limit == np.inf else f'below {limit} '}or NaN"
                )

    def _feature_column(self, feature: int) -> NDArray[Any]:
        column = self.X[:, [feature]]
        return cast("NDArray[Any]", (column if isinstance(column, np.ndarray) else column.toarray())[:, 0])

    def _refuse_value(self, row: int, feature: int, value: Any) -> None:
        raise ValueError(f"X: infinite value {value} in feature {self.feature_name(feature)} of {self.row_name(row)}")

    # --- what there is ---------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def n_docs(self) -> int:
        """Number of documents of all queries together."""
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int:
        """Number of features; 0 without ``X``."""
        return 0 if self.X is None else int(self.X.shape[1])

    @property
    def sizes(self) -> Ints:
        """Number of documents of each query."""
        return np.diff(self.offsets)

    @property
    def supervision(self) -> str | None:
        """The kind of supervision: "grades", "judges", "preferences", "rankings", or None."""
        kinds = {"grades": self.y, "judges": self.judges, "preferences": self.preferences, "rankings": self.rankings}
        return next((name for name, value in kinds.items() if value is not None), None)

    def rows(self, query: int) -> slice:
        """The rows of a query in every per-document array; a negative number counts from the end."""
        query = list_number(query, len(self))
        return slice(int(self.offsets[query]), int(self.offsets[query + 1]))

    def posterior(self, query: int) -> tuple[Any, Floats]:
        """The true distribution of the supervision of a query: outcomes and their probabilities (synthetic data).

        Outcomes are the rows of a matrix for grades, a list of (better, worse, weight) for preferences, and a list of
        orders for rankings.
        """
        truth = self._posterior
        if truth is None:
            raise ValueError("the distribution of the supervision is not known; it is for data of cr.synthetic(...)")
        query = list_number(query, len(self))
        probabilities = truth.probabilities(query)
        if isinstance(truth, Judgements):
            return truth.matrix(query), probabilities
        if isinstance(truth, Preferences):
            return truth.edges(query), probabilities
        assert isinstance(truth, Rankings)
        return truth.orders(query), probabilities

    @property
    def has_posterior(self) -> bool:
        """Whether the true distribution of the supervision is known, so that :meth:`posterior` gives it."""
        return self._posterior is not None

    def feature_name(self, feature: int) -> str:
        """The name of a feature given by its column, or its number as LETOR text counts."""
        feature = self.feature_index(feature)
        return self.feature_names[feature] if self.feature_names else str(feature + self.feature_base)

    def feature_index(self, name: int | str) -> int:
        """The column of a feature given by its name or by its column number."""
        if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
            if not 0 <= name < self.n_features:
                raise ValueError(f"feature {name}: the data has {self.n_features} features, numbered from 0")
            return int(name)
        names = self.feature_names or ()
        if name not in names:
            raise ValueError(f"no feature is called {name!r}.{did_you_mean(str(name), names)}")
        return names.index(name)

    def row_name(self, row: int) -> str:
        """A row in words: its query and its place in it."""
        query = int(np.searchsorted(self.offsets, row, side="right")) - 1
        place = f"query {self.query_ids[query]}, document {row - int(self.offsets[query])}"
        return place if self.doc_ids is None else f"{place} ({self.doc_ids[row]})"

    def __repr__(self) -> str:
        def count(number: int, noun: str, plural: str) -> str:
            return f"{number} {noun if number == 1 else plural}"

        parts = [count(len(self), "query", "queries"), count(self.n_docs, "document", "documents")]
        if self.X is not None:
            parts.append(count(self.n_features, "feature", "features"))
        return f"RankingData({', '.join([*parts, self.supervision or 'no supervision'])})"

    # --- selection -------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[RankingData]:
        return (self[query] for query in range(len(self)))

    def __getitem__(self, queries: Any) -> RankingData:
        """Choose queries by number, slice, boolean mask or array of numbers; contiguous choices copy no features."""
        if isinstance(queries, (int, np.integer)) and not isinstance(queries, (bool, np.bool_)):
            first = list_number(queries, len(self))
            return self._range(first, first + 1)
        if isinstance(queries, slice):
            first, last, step = queries.indices(len(self))
            if step == 1:
                return self._range(first, max(first, last))
            return self._chosen(np.arange(first, last, step, dtype=np.int64))
        chosen = np.asarray(queries)
        if chosen.ndim == 1 and chosen.dtype.kind == "b":
            if len(chosen) != len(self):
                raise IndexError(f"the mask has {len(chosen)} entries; the data has {len(self)} queries")
            chosen = np.flatnonzero(chosen)
        if chosen.ndim != 1 or (len(chosen) and chosen.dtype.kind not in "iu"):
            raise TypeError(f"choose queries by a number, a slice, a mask or numbers; got {queries!r}")
        chosen = chosen.astype(np.int64)
        bad = np.flatnonzero((chosen < -len(self)) | (chosen >= len(self)))
        if len(bad):
            raise IndexError(f"query number {chosen[bad[0]]}: there are {len(self)} queries")
        return self._chosen(np.where(chosen < 0, chosen + len(self), chosen))

    def _range(self, first: int, last: int) -> RankingData:
        bounds = self.offsets[first : last + 1]
        rows = slice(int(bounds[0]), int(bounds[-1]))
        return self._cut(slice(first, last), rows, bounds - bounds[0])

    def _chosen(self, queries: Ints) -> RankingData:
        return self._cut(queries, *take_lists(self.offsets, queries))

    def _cut(self, queries: slice | Ints, rows: slice | Ints, offsets: Ints) -> RankingData:
        """The same data with these queries; ``rows`` are their rows. Nothing is validated again."""

        def documents(array: Any) -> Any:
            return None if array is None else frozen(array[rows])

        cut = object.__new__(RankingData)
        cut.__dict__.update({name: value for name, value in self.__dict__.items() if name != "_sealed"})
        cut.offsets = frozen(offsets)
        cut.query_ids = frozen(self.query_ids[queries])
        cut.X = None if self.X is None else frozen_features(self.X[rows])
        cut.y, cut.judged, cut.doc_ids = documents(self.y), documents(self.judged), documents(self.doc_ids)
        if cut.judged is not None and cut.judged.all():
            cut.judged = None
        cut.doc_weight, cut.source_rows = documents(self.doc_weight), documents(self.source_rows)
        cut.columns = {name: documents(values) for name, values in self.columns.items()}
        cut.query_weight = None if self.query_weight is None else frozen(self.query_weight[queries])
        for name in ("judges", "preferences", "rankings", "_posterior"):
            held = getattr(self, name)
            setattr(cut, name, None if held is None else held.select(queries))
        return cut._seal()

    @property
    def caller_rows(self) -> Ints:
        """Where each row stands among the rows as the caller gave them: ``values[data.caller_rows]`` is in data order.

        >>> RankingData(y=[1, 0, 0, 1], qid=["a", "b", "a", "b"], group_rows=True).caller_rows.tolist()
        [0, 2, 1, 3]
        """
        rows = np.arange(self.n_docs)
        if self.source_rows is not None:
            rows[np.argsort(self.source_rows, kind="stable")] = np.arange(self.n_docs)
        return rows

    def in_caller_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Per-document values (scores, say) in the order in which the caller gave the rows.

        It differs from the order of the data only when ``group_rows=True`` moved rows.
        """
        values = np.asarray(values)
        if len(values) != self.n_docs:
            raise ValueError(f"expected one value for each of {self.n_docs} documents, got {len(values)}")
        return values if self.source_rows is None else values[np.argsort(self.source_rows, kind="stable")]

    def _arguments(self) -> dict[str, Any]:
        labels = self.y
        if labels is not None and self.judged is not None:
            labels = np.ma.MaskedArray(labels, ~self.judged)
        return {
            "X": self.X,
            "y": labels,
            "offsets": self.offsets,
            "query_ids": self.query_ids,
            "doc_ids": self.doc_ids,
            "feature_names": self.feature_names,
            "categorical": self.categories,
            "columns": self.columns,
            "query_weight": self.query_weight,
            "doc_weight": self.doc_weight,
            "judges": self.judges,
            "preferences": self.preferences,
            "rankings": self.rankings,
            "feature_base": self.feature_base,
            "posterior": self._posterior,
        }

    def replace(self, **changes: Any) -> RankingData:
        """The same data with some arguments of the constructor changed; a new supervision takes the place of the old.

        >>> RankingData([[1.0], [2.0]], sizes=[2]).replace(y=[0, 1]).y.tolist()
        [0.0, 1.0]
        """
        arguments = self._arguments()
        unknown = [name for name in changes if name not in arguments]
        if unknown:
            raise TypeError(f"replace: no argument {unknown[0]!r}.{did_you_mean(unknown[0], arguments)}")
        supervisions = ("y", "judges", "preferences", "rankings")
        if any(changes.get(name) is not None for name in supervisions):
            arguments.update(dict.fromkeys(supervisions))
        if "query_ids" in changes:  # what is kept of the supervision follows its queries to their new names
            ids = as_ids(changes["query_ids"], "query_ids")
            for name, held in arguments.items():
                if isinstance(held, Supervision) and name not in changes and len(ids) == len(self):
                    arguments[name] = held.renamed(ids)
        changed = RankingData(**{**arguments, **changes})
        same_rows = "offsets" not in changes and changed.n_docs == self.n_docs
        return changed._with_source_rows(self.source_rows if same_rows else None)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "_sealed"}
        return {**state, "columns": dict(self.columns), "categories": dict(self.categories)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(refrozen(state))
        self.X = frozen_features(self.X)
        self._seal()

    def equals(self, other: object) -> bool:
        """Whether the other data has the same arrays, bit for bit, and the same names and supervision."""
        if not isinstance(other, RankingData):
            return False
        ours, theirs = self._arguments(), other._arguments()
        return all(same(ours[name], theirs[name]) for name in ours)

    # --- folders ---------------------------------------------------------------------------------------------------

    def save(self, folder: Any) -> None:
        """Write the data as a folder of plain NumPy arrays; it appears complete or not at all (see docs/data.md)."""
        from calirank.data.folder import save

        save(self, folder)

    @classmethod
    def open(cls, folder: Any, *, memory_map: bool = True) -> RankingData:
        """Open a folder written by :meth:`save`; its arrays are mapped into memory and read when used."""
        from calirank.data.folder import open_folder

        return open_folder(folder, memory_map=memory_map)

    # --- the same query seen many times ----------------------------------------------------------------------------

    def merge_queries(self, *, features: str = "equal") -> RankingData:
        """Lists with the same query id become one list with several weighted judgements.

        Each list (a session, an annotator) is one judgement, weighted by its ``query_weight`` (1 if none), and the
        merged list gets the sum of the weights. Training on the mean utility of the judgements is then *exactly*
        training on all lists: for the squared loss, the sum over lists of w (u - s)² is W (ū - s)² plus a constant,
        with W the sum of the w and ū the weighted mean of the u.

        Documents are matched by ``doc_ids``; a document that a list lacks is unjudged in that judgement. Without
        ``doc_ids`` they are matched by position, and the lists must be equally long. A document's features, columns and
        weight must be the same in all lists (``features="equal"``), or are taken from the first (``"first"``). Where no
        query id repeats the data is returned as it is.

        >>> sessions = RankingData(y=[1, 0, 0, 0, 1, 0], sizes=[3, 3], query_ids=["q", "q"], query_weight=[3, 1])
        >>> merged = sessions.merge_queries()
        >>> merged.judges.matrix(0).tolist(), merged.judges.probabilities(0).tolist(), merged.query_weight.tolist()
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.75, 0.25], [4.0])
        """
        from calirank.data.combine import merge_queries

        return merge_queries(self, features=features)


def as_data(value: Any) -> RankingData:
    """The value, once it is known to be ranking data."""
    if isinstance(value, RankingData):
        return value
    hint = "; cr.read(path) reads a file" if isinstance(value, (str, os.PathLike)) else ""
    raise TypeError(f"expected RankingData, got {type(value).__name__} {str(value)[:60]!r}{hint}")
