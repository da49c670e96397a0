"""A slow reader of LETOR text in plain Python: the independent twin of the compiled one."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
FEATURE = re.compile(rb"([0-9]+):(" + NUMBER + rb")")
DOC_ID = re.compile(rb"[ \t]*docid[ \t]*=[ \t]*([^\x00-\x20]+)")
LARGEST_NUMBER = 2**31 - 2


class RefusedError(Exception):
    """The text is in error on this line (counted from 1); None when no line is to blame."""

    def __init__(self, line: int | None) -> None:
        super().__init__(line)
        self.line = line


@dataclass
class Reference:
    rows: list[dict[int, np.float32]]  # column (from 0) -> value
    width: int
    y: NDArray[np.float64]
    offsets: list[int]
    query_ids: NDArray[np.int64] | NDArray[np.str_]
    doc_ids: list[str] | None
    base: int

    @property
    def X(self) -> NDArray[np.float32]:
        X = np.zeros((len(self.rows), self.width), dtype=np.float32)
        for row, values in enumerate(self.rows):
            for column, value in values.items():
                X[row, column] = value
        return X


def read(
    text: bytes, *, base: int | str = 1, n_features: int | None = None, sizes: list[int] | None = None
) -> Reference:
    lowest = 0 if base == "auto" else int(base)
    highest = LARGEST_NUMBER if n_features is None else n_features - 1 + lowest
    rows, labels, queries, docs, places = [], [], [], [], []
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if b"\0" in line:
            raise RefusedError(number)
        body, hash_sign, comment = line.removesuffix(b"\r").partition(b"#")
        tokens = [token for token in re.split(rb"[ \t]+", body) if token]
        if not tokens:
            continue
        places.append(number)
        label = _number(tokens.pop(0), number)
        if np.isinf(label):
            raise RefusedError(number)
        labels.append(label)
        queries.append(_query(tokens, number))
        if (queries[-1] is None) != (queries[0] is None) or (queries[-1] is None and sizes is None):
            raise RefusedError(number)
        rows.append(_features(tokens, lowest, highest, number))
        found = DOC_ID.match(comment) if hash_sign else None
        docs.append(_text(found.group(1), number) if found else None)
    if not rows:
        raise RefusedError(1)
    if base == "auto":
        lowest = 0 if any(0 in row for row in rows) else 1
    offsets, ids = _lists(queries, places, sizes)
    last = max((max(row, default=-1) for row in rows), default=-1)
    width = max(last - lowest + 1, 0) if n_features is None else n_features
    shifted = [{number - lowest: value for number, value in row.items()} for row in rows]
    named = all(doc is not None for doc in docs)
    return Reference(shifted, width, np.array(labels), offsets, ids, docs if named else None, lowest)


def _number(token: bytes, line: int) -> float:
    if not re.fullmatch(NUMBER, token):
        raise RefusedError(line)
    return float(token)


def _text(token: bytes, line: int) -> str:
    try:
        return token.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError(line) from None


def _query(tokens: list[bytes], line: int) -> str | None:
    if not tokens or not tokens[0].startswith(b"qid:"):
        return None
    name = tokens.pop(0).removeprefix(b"qid:")
    if not name or min(name) <= 32:
        raise RefusedError(line)
    return _text(name, line)


def _features(tokens: list[bytes], lowest: int, highest: int, line: int) -> dict[int, np.float32]:
    row: dict[int, np.float32] = {}
    for token in tokens:
        found = FEATURE.fullmatch(token)
        if not found:
            raise RefusedError(line)
        number, value = int(found.group(1)), float(found.group(2))
        # 2^128 - 2^103 lies between the largest float32 and the next one, which would be infinite
        if number in row or not lowest <= number <= highest or abs(value) >= 2.0**128 - 2.0**103:
            raise RefusedError(line)
        row[number] = np.float32(value)
    return row


def _lists(
    queries: list[str | None], places: list[int], sizes: list[int] | None
) -> tuple[list[int], NDArray[np.int64] | NDArray[np.str_]]:
    if queries[0] is None:
        if sum(sizes) != len(queries):
            raise RefusedError(None)
        return [0, *np.cumsum(sizes).tolist()], np.arange(len(sizes))
    offsets, ids = [], []
    for row, query in enumerate(queries):
        if row == 0 or query != queries[row - 1]:
            if query in ids:
                raise RefusedError(places[row])
            offsets.append(row)
            ids.append(query)
    whole = all(re.fullmatch("0|-?[1-9][0-9]*", query) and -(2**63) <= int(query) < 2**63 for query in ids)
    return [*offsets, len(queries)], np.array([int(q) for q in ids] if whole else ids)
