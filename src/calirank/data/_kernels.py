"""Kernels of the LETOR reader: text to sparse rows, sparse rows to a dense array, spans of text to identifiers.

:func:`parse_block` reads whole lines ``label qid:Q number:value ... # comment``. A block ends with a newline byte, and
every loop over bytes stops at one, so no loop has to look where the block ends; eight more bytes must be readable.

**Two speeds.** :func:`_plain_features` reads what nearly all text consists of, ``number:digits.digits`` with single
spaces between, eight bytes at a time, and stops before anything else, which :func:`_any_feature` then reads byte by
byte. Eight bytes are one 64-bit word w. In t = w XOR '00000000' a digit is a byte 0 to 9, and only for other bytes has
t + 0x76 or t itself the high bit; so the zeros below the lowest of these high bits count the digits at the front. With
the bytes after them shifted out, three multiplications put the digits together, in pairs, fours, eights (Lemire 2021).

**Numbers.** What is wanted is Python's ``float`` of the decimal string, for features rounded to float32. Let the string
be m·10^e with whole m (the first 18 significant digits; further ones only move e).

* m ≤ 2^53, no digit left out and |e| ≤ 22: m and 10^|e| are float64 exactly, so one multiplication or division rounds
  once, as ``float`` does (Clinger 1990).
* Other features: x = m·10^e in float64 carries at most four relative errors of 2^-53 each, from m to float64, from the
  table entry 10^e, from the product and from the digits left out (< 10^-17). Together they are below 2^-50, with room
  for the rounding of low = x(1 - 2^-50) and high = x(1 + 2^-50); so low ≤ exact value ≤ high. Rounding to float64 is
  monotone and leaves low and high as they are, so low ≤ float(text) ≤ high; rounding to float32 is monotone, so where
  low and high round to one float32, float(text) does too. The table ends where x would no longer be a normal float64;
  a denormal float32 is then rounded from a normal float64 and needs no care.
* All others (about one in a million numbers of 17 digits, and exponents off the table) are put on a list that the
  caller goes through with Python's ``float``. Labels stay float64, so they follow the first rule or go on that list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from calirank._kernel import inlined, kernel

Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]
Ids: TypeAlias = NDArray[np.int32]
Values: TypeAlias = NDArray[np.float32]

#: For numba a conversion to int64; for a type checker, which knows bytes and words as numbers of their own, to int.
_int = cast("Callable[[Any], int]", np.int64)

# What can be wrong with a line: info[ERROR], with the position of the byte in info[WHERE].
FINE = 0
BAD_LABEL = 1
BAD_VALUE = 2
BAD_NUMBER = 3  # the number of a feature
NO_COLON = 4
BELOW_LOWEST = 5
ABOVE_HIGHEST = 6
REPEATED = 7
OVERFLOW = 8
NO_QID = 9
EMPTY_QID = 10
SURPRISING_QID = 11
BAD_BYTE = 12

# The places of the array ``info`` that a parse fills.
ERROR = 0
WHERE = 1
ROWS = 2
ENTRIES = 3
RUNS = 4
HARD = 5
LINES = 6
LOWEST = 7  # the smallest and the largest number of a feature
HIGHEST = 8
NAMED = 9  # rows with a document id
HAS_QID = 10  # whether the rows have a query id (-1 where no row came so far); FIRST is where the first one stands
FIRST = 11
INFO = 12

#: How many bytes after a block are looked at.
PADDING = 8
#: No feature has this number or a larger one: columns are int32.
TOO_LARGE = 2**31 - 1
#: From here on float32 rounds to infinity.
FLOAT32_LIMIT = 2.0**128 - 2.0**103

_EXACT = 2**53
_LOWEST_POWER, _HIGHEST_POWER = -290, 290
_POWERS = np.array([float(f"1e{e}") for e in range(_LOWEST_POWER, _HIGHEST_POWER + 1)])
_ONE = -_LOWEST_POWER  # _POWERS[_ONE + e] is 10^e
_WHOLE_POWERS = np.array([10**e for e in range(19)])
_DOWN, _UP = 1.0 - 2.0**-50, 1.0 + 2.0**-50

_TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _COLON, _POINT = 9, 10, 13, 32, 35, 58, 46
_PLUS, _MINUS, _ZERO, _SMALL_E, _LARGE_E = 43, 45, 48, 101, 69

# Words. numba makes float64 of a uint64 beside a plain int, so that every constant that meets a word is a word itself.
_W1, _W7, _W8, _W10, _W16, _W24, _W32 = (np.uint64(k) for k in (1, 7, 8, 10, 16, 24, 32))
_W40, _W48, _W56, _W64 = (np.uint64(k) for k in (40, 48, 56, 64))
_HIGH_BITS = np.uint64(0x8080808080808080)
_DIGIT_ZEROS = np.uint64(0x3030303030303030)
_BEYOND_NINE = np.uint64(0x7676767676767676)
_FOURTEENS = np.uint64(0x0E0E0E0E0E0E0E0E)
_PAIRS = np.uint64(0x000000FF000000FF)
_WEIGHTS_LOW = np.uint64(100 + (1_000_000 << 32))
_WEIGHTS_HIGH = np.uint64(1 + (10_000 << 32))


def _zeros_below(_context: Any, number: Any) -> Any:
    """The machine instruction that numba has no name for: how many zero bits stand below the lowest one."""

    def generate(target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], target.get_constant(types.boolean, False))  # not undefined for 0: gives 64

    return types.uint64(types.uint64), generate


_trailing_zeros: Callable[[np.uint64], np.uint64] = intrinsic(_zeros_below)


@inlined
def _word(text: Bytes, p: int) -> np.uint64:
    """The eight bytes from p on, the first one lowest; the compiler makes one load of it."""
    q = np.uint64(p)
    return (
        np.uint64(text[q])
        | (np.uint64(text[q + np.uint64(1)]) << _W8)
        | (np.uint64(text[q + np.uint64(2)]) << _W16)
        | (np.uint64(text[q + np.uint64(3)]) << _W24)
        | (np.uint64(text[q + np.uint64(4)]) << _W32)
        | (np.uint64(text[q + np.uint64(5)]) << _W40)
        | (np.uint64(text[q + np.uint64(6)]) << _W48)
        | (np.uint64(text[q + np.uint64(7)]) << _W56)
    )


@inlined
def _digit_bits(t: np.uint64) -> np.uint64:
    """Eight times the number of bytes 0 to 9 at the front of t."""
    return _trailing_zeros(((t + _BEYOND_NINE) | t) & _HIGH_BITS) & ~_W7


@inlined
def _whole(t: np.uint64, bits: np.uint64) -> int:
    """The number that the first ``bits`` (8 to 64) of t write."""
    t <<= _W64 - bits
    t = t * _W10 + (t >> _W8)
    return _int(((t & _PAIRS) * _WEIGHTS_LOW + ((t >> _W16) & _PAIRS) * _WEIGHTS_HIGH) >> _W32)


@kernel
def _plain_features(
    text: Bytes, p: int, ids: Ids, values: Values, entries: int, previous: int, lowest: int, highest: int
) -> tuple[int, int, int, bool]:
    """Read features from p on while they are plain: (where it stopped, entries, last number, all numbers increased)."""
    increasing = True
    while True:
        t = _word(text, p) ^ _DIGIT_ZEROS
        bits = _digit_bits(t)
        if not 0 < bits < _W64:
            break
        number = _whole(t, bits)
        q = p + _int(bits >> np.uint64(3))
        if text[np.uint64(q)] != _COLON or number < lowest or number > highest:
            break
        q += 1
        negative = text[np.uint64(q)] == _MINUS
        q += negative
        t = _word(text, q) ^ _DIGIT_ZEROS
        bits = _digit_bits(t)
        if not 0 < bits < _W64:
            break
        m = _whole(t, bits)
        q += _int(bits >> np.uint64(3))
        value = np.float64(m)
        if text[np.uint64(q)] == _POINT:
            q += 1
            t = _word(text, q) ^ _DIGIT_ZEROS
            bits = _digit_bits(t)
            if bits > 0:
                fraction = _int(bits >> np.uint64(3))
                q += fraction
                m = m * _WHOLE_POWERS[np.uint64(fraction)] + _whole(t, bits)
                if fraction == 8:  # perhaps more digits
                    t = _word(text, q) ^ _DIGIT_ZEROS
                    bits = _digit_bits(t)
                    if bits > 0:
                        more = _int(bits >> np.uint64(3))
                        if more == 8 or m >= 10**10:
                            break
                        q += more
                        fraction += more
                        m = m * _WHOLE_POWERS[np.uint64(more)] + _whole(t, bits)
                if m > _EXACT:
                    break
                value = np.float64(m) / _POWERS[np.uint64(_ONE + fraction)]
        c = text[np.uint64(q)]
        if c not in (_SPACE, _NEWLINE):
            break
        ids[np.uint64(entries)] = number
        values[np.uint64(entries)] = -value if negative else value
        entries += 1
        increasing = increasing and number > previous
        previous = number
        p = q
        if c == _NEWLINE:
            break
        p += 1
    return p, entries, previous, increasing


@inlined
def _skip_blanks(text: Bytes, p: int) -> int:
    while text[p] == _SPACE or text[p] == _TAB:
        p += 1
    return p


@inlined
def _ends_line(text: Bytes, p: int) -> bool:
    newline: bool = text[p] == _NEWLINE
    return newline or (text[p] == _RETURN and text[p + 1] == _NEWLINE)


@inlined
def _ends_token(text: Bytes, p: int) -> bool:
    return _ends_line(text, p) or text[p] == _SPACE or text[p] == _TAB or text[p] == _HASH


@kernel
def _digits(text: Bytes, p: int) -> tuple[int, int, int, int, bool]:
    """Digits with at most one point from p on, as (end, m, e, how many, none was left out) with m < 10^18."""
    m, power, count, kept, after_point, complete = 0, 0, 0, 0, False, True
    while True:
        c = _int(text[p])
        if c == _POINT and not after_point:
            after_point = True
        elif _ZERO <= c <= _ZERO + 9:
            count += 1
            if kept < 18:
                m = m * 10 + (c - _ZERO)
                kept += m > 0
                power -= after_point
            else:
                complete = complete and c == _ZERO
                power += not after_point
        else:
            return p, m, power, count, complete
        p += 1


@kernel
def _decimal(text: Bytes, p: int) -> tuple[int, int, int, bool, bool]:
    """The decimal number at p as (end, m, e, negative, no digit was left out); the end is 0 when there is none."""
    negative = text[p] == _MINUS
    if negative or text[p] == _PLUS:
        p += 1
    p, m, power, count, complete = _digits(text, p)
    if count == 0:
        return 0, 0, 0, False, True
    if text[p] == _SMALL_E or text[p] == _LARGE_E:
        p += 1
        down = text[p] == _MINUS
        if down or text[p] == _PLUS:
            p += 1
        start, shift = p, 0
        while _ZERO <= _int(text[p]) <= _ZERO + 9:
            shift = min(shift * 10 + _int(text[p]) - _ZERO, 10**9)
            p += 1
        if p == start:
            return 0, 0, 0, False, True
        power += -shift if down else shift
    return p, m, power, negative, complete


@kernel
def _exact(m: int, power: int, complete: bool) -> tuple[float, bool]:
    """m·10^e by the first rule above, and whether it applies."""
    if not complete or m > _EXACT or power < -22 or power > 22:
        return 0.0, False
    x = np.float64(m)
    return (x / _POWERS[_ONE - power] if power < 0 else x * _POWERS[_ONE + power]), True


@kernel
def _narrow(m: int, power: int) -> tuple[float, int]:
    """m·10^e for float32 by the second rule: the value with FINE, or OVERFLOW, or BAD_VALUE when it is not certain."""
    if m == 0:
        return 0.0, FINE
    if power < _LOWEST_POWER or power > _HIGHEST_POWER:
        return 0.0, BAD_VALUE
    x = np.float64(m) * _POWERS[_ONE + power]
    low, high = x * _DOWN, x * _UP
    if low >= FLOAT32_LIMIT:
        return 0.0, OVERFLOW
    if high >= FLOAT32_LIMIT or np.float32(low) != np.float32(high):
        return 0.0, BAD_VALUE
    return low, FINE


@kernel
def _any_feature(text: Bytes, p: int, lowest: int, highest: int) -> tuple[int, int, int, float, bool]:
    """One feature of any form as (error, end or place of the error, number, value, the value is left to the caller)."""
    start, number = p, 0
    while _ZERO <= _int(text[p]) <= _ZERO + 9:
        number = min(number * 10 + _int(text[p]) - _ZERO, TOO_LARGE)
        p += 1
    if p == start:
        return BAD_NUMBER, p, 0, 0.0, False
    if text[p] != _COLON:
        return NO_COLON, p, 0, 0.0, False
    if number < lowest:
        return BELOW_LOWEST, start, 0, 0.0, False
    if number > highest:
        return ABOVE_HIGHEST, start, 0, 0.0, False
    start = p + 1
    p, m, power, negative, complete = _decimal(text, start)
    if p == 0 or not _ends_token(text, p):
        return BAD_VALUE, start, 0, 0.0, False
    value, certain = _exact(m, power, complete)
    hard = False
    if not certain:
        value, state = _narrow(m, power)
        if state == OVERFLOW:
            return OVERFLOW, start, 0, 0.0, False
        hard = state == BAD_VALUE
    return FINE, p, number, (-value if negative else value), hard


@kernel
def _comment(text: Bytes, p: int) -> tuple[int, int, int]:
    """The newline (or NUL) that ends the comment at p, and where its document id begins and ends (0, 0 when none)."""
    p = _skip_blanks(text, p + 1)
    start = stop = 0
    if text[p] == 100 and text[p + 1] == 111 and text[p + 2] == 99 and text[p + 3] == 105 and text[p + 4] == 100:
        p = _skip_blanks(text, p + 5)
        if text[p] == 61:
            p = _skip_blanks(text, p + 1)
            start = p
            while text[p] > _SPACE:
                p += 1
            stop = p
            if stop == start:
                start = stop = 0
    while True:
        w = _word(text, p)
        # The lowest high bit set stands in the first byte below 14; tabs and the like are passed one at a time.
        bits = _trailing_zeros((w - _FOURTEENS) & ~w & _HIGH_BITS)
        p += _int(bits >> np.uint64(3))
        if bits < _W64:
            if text[p] == _NEWLINE or text[p] == 0:
                return p, start, stop
            p += 1


@kernel
def _sort_row(ids: Ids, values: Values, start: int, stop: int) -> None:
    """Sort ids[start:stop], and values with them, in place: a heap, so O(m log m) whatever comes."""
    count = stop - start
    for step in range(count // 2 - 1, -1, -1):
        _sink(ids, values, start, step, count)
    for step in range(count - 1, 0, -1):
        _swap(ids, values, start, start + step)
        _sink(ids, values, start, 0, step)


@inlined
def _swap(ids: Ids, values: Values, a: int, b: int) -> None:
    ids[a], ids[b] = ids[b], ids[a]
    values[a], values[b] = values[b], values[a]


@kernel
def _sink(ids: Ids, values: Values, start: int, root: int, size: int) -> None:
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and ids[start + child] < ids[start + child + 1]:
            child += 1
        if ids[start + root] >= ids[start + child]:
            return
        _swap(ids, values, start + root, start + child)
        root = child


@kernel
def _same_text(text: Bytes, start: int, other: int, length: int) -> bool:
    k = 0
    while k < length and text[start + k] == text[other + k]:
        k += 1
    return k == length


@kernel
def parse_block(
    text: Bytes,
    begin: int,
    end: int,
    lowest: int,
    highest: int,
    ids: Ids,
    values: Values,
    row_start: Ints,
    labels: NDArray[np.float64],
    doc_span: Ints,
    run_place: Ints,
    run_span: Ints,
    hard: Ints,
    info: Ints,
) -> None:
    """Parse the lines text[begin:end], which end with a newline, into sparse rows; stop at the first line in error.

    Row r has the entries row_start[r]:row_start[r + 1] of ids (the numbers as written, increasing) and values. A run is
    rows after each other with one query id: run_place[k] is (row, line of the block from 0, column from 0) and its id
    is text[run_span[k, 0]:run_span[k, 1]]. Document ids are such spans too. hard[k] is (row, number of the feature or
    -1 for the label, position where the feature or label begins) of a value that is left to the caller. Numbers of
    features below ``lowest`` or above ``highest`` are errors.
    """
    p = begin
    rows = entries = runs = hards = lines = named = 0
    has_qid, first = -1, begin
    smallest, largest = TOO_LARGE, -1
    error, where = FINE, 0
    row_start[0] = 0
    qid_start = qid_stop = 0
    while p < end:
        line_start = p
        p = _skip_blanks(text, p)
        if text[p] == _HASH:
            p, _, _ = _comment(text, p)
            if text[p] == 0:
                error, where = BAD_BYTE, p
                break
        if _ends_line(text, p):
            p += 1 + (text[p] == _RETURN)
            lines += 1
            continue

        # the label
        start = p
        p, m, power, negative, complete = _decimal(text, p)
        if p == 0 or not _ends_token(text, p):
            error, where = BAD_LABEL, start
            break
        label, certain = _exact(m, power, complete)
        if not certain:
            hard[hards, 0], hard[hards, 1], hard[hards, 2] = rows, -1, start
            hards += 1
        labels[rows] = -label if negative else label

        # the query
        p = _skip_blanks(text, p)
        qid = text[p] == 113 and text[p + 1] == 105 and text[p + 2] == 100 and text[p + 3] == _COLON
        if rows == 0:
            has_qid, first = _int(qid), p
        elif qid != has_qid:
            error, where = (SURPRISING_QID if qid else NO_QID), p
            break
        if qid:
            p += 4
            start = p
            while text[p] > _SPACE and text[p] != _HASH:
                p += 1
            if not _ends_token(text, p):
                error, where = BAD_BYTE, p
                break
            if p == start:
                error, where = EMPTY_QID, p
                break
            length = p - start
            if rows == 0 or length != qid_stop - qid_start or not _same_text(text, start, qid_start, length):
                run_place[runs, 0], run_place[runs, 1], run_place[runs, 2] = rows, lines, start - line_start
                run_span[runs, 0], run_span[runs, 1] = start, p
                runs += 1
            qid_start, qid_stop = start, p

        # the features
        previous, increasing = -1, True
        row_begin = entries
        while True:
            p = _skip_blanks(text, p)
            p, entries, previous, fine = _plain_features(text, p, ids, values, entries, previous, lowest, highest)
            increasing = increasing and fine
            p = _skip_blanks(text, p)
            if text[p] == _HASH or _ends_line(text, p):
                break
            start = p
            error, p, number, value, is_hard = _any_feature(text, start, lowest, highest)
            if error != FINE:
                where = p
                break
            if is_hard:
                hard[hards, 0], hard[hards, 1], hard[hards, 2] = rows, number, start
                hards += 1
            ids[entries], values[entries] = number, value
            entries += 1
            increasing = increasing and number > previous
            previous = number
        if error != FINE:
            break

        # the end of the line
        doc_span[rows, 0], doc_span[rows, 1] = 0, 0
        if text[p] == _HASH:
            p, doc_span[rows, 0], doc_span[rows, 1] = _comment(text, p)
            if text[p] == 0:
                error, where = BAD_BYTE, p
                break
            named += doc_span[rows, 1] > 0
        if not increasing:
            _sort_row(ids, values, row_begin, entries)
            repeated = False
            for k in range(row_begin + 1, entries):
                repeated = repeated or ids[k] == ids[k - 1]
            if repeated:
                error, where = REPEATED, line_start
                break
        if entries > row_begin:
            smallest = min(smallest, _int(ids[row_begin]))
            largest = max(largest, _int(ids[entries - 1]))
        p += 1 + (text[p] == _RETURN)
        rows += 1
        lines += 1
        row_start[rows] = entries
    info[ERROR], info[WHERE] = error, where
    info[ROWS], info[ENTRIES], info[RUNS], info[HARD], info[LINES] = rows, entries, runs, hards, lines
    info[LOWEST], info[HIGHEST], info[NAMED], info[HAS_QID], info[FIRST] = smallest, largest, named, has_qid, first


@kernel
def scatter(ids: Ids, values: Values, row_start: Ints, lowest: int, out: NDArray[np.float32]) -> None:
    """Write sparse rows into rows of zeros: out[r, number - lowest] = value."""
    for row in range(len(row_start) - 1):
        for k in range(row_start[row], row_start[row + 1]):
            out[np.uint64(row), np.uint64(ids[np.uint64(k)] - lowest)] = values[np.uint64(k)]


@kernel
def copy_spans(text: Bytes, spans: Ints, starts: Ints, out: Bytes) -> None:
    """Copy text[spans[k, 0]:spans[k, 1]] to out[starts[k]:starts[k + 1]]."""
    for k in range(len(spans)):
        shift = spans[k, 0] - starts[k]
        for p in range(starts[k], starts[k + 1]):
            out[np.uint64(p)] = text[np.uint64(p + shift)]


@kernel
def code_points(text: Bytes, starts: Ints, out: NDArray[np.uint32]) -> None:
    """ASCII pieces text[starts[k]:starts[k + 1]] as rows of code points, which is how NumPy keeps text."""
    for k in range(len(starts) - 1):
        for p in range(starts[k], starts[k + 1]):
            out[np.uint64(k), np.uint64(p - starts[k])] = text[np.uint64(p)]


@kernel
def canonical_integers(text: Bytes, starts: Ints, out: Ints) -> bool:
    """Whether every piece is an int64 as Python would print it; then ``out`` holds their values."""
    for k in range(len(starts) - 1):
        p, stop = starts[k], starts[k + 1]
        negative = text[p] == _MINUS
        p += negative
        length = stop - p
        if length < 1 or length > 19 or (text[p] == _ZERO and (negative or length > 1)):
            return False
        number = np.uint64(0)
        while p < stop:
            digit = _int(text[p]) - _ZERO
            if digit < 0 or digit > 9:
                return False
            number = number * _W10 + np.uint64(digit)
            p += 1
        if number > np.uint64(2**63 - 1) + np.uint64(negative):
            return False
        out[k] = -_int(number) if negative else _int(number)
    return True
