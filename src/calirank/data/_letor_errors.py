"""What is wrong with a line of LETOR text, in words: the line is looked at again after the parser refused it."""

from __future__ import annotations

import re
from typing import NamedTuple

from calirank.data._files import Block

_QID = re.compile(rb"[ \t]*[^ \t\r\n#]+[ \t]+qid:([^ \t\r\n#]+)")
_FEATURE = re.compile(rb"[ \t]([0-9]+):")
_NOT_FINITE = re.compile(rb"[+-]?(inf|infinity|nan)", re.IGNORECASE)
_HEXADECIMAL = re.compile(rb"[+-]?0x", re.IGNORECASE)
_UNDERSCORES = re.compile(rb"[+-]?[0-9_.e+-]*_[0-9_.e+-]*", re.IGNORECASE)
_SHOWN = 30  # bytes of a token


class Place(NamedTuple):
    """A byte of a block: the line (from 0 in the block), its text without the line end, the column (from 0)."""

    line: int
    text: bytes
    column: int

    @property
    def token(self) -> bytes:
        """From the column to the next blank."""
        return re.split(rb"[ \t]", self.text[self.column :], maxsplit=1)[0]

    @property
    def query(self) -> str:
        """Where the query of the line is known, a remark that names it."""
        found = _QID.match(self.text)
        return f" (query {show(found.group(1), quoted=False)})" if found else ""


def place_of(block: Block, position: int) -> Place:
    before = block.text[block.begin : position].tobytes()
    start = before.rfind(b"\n") + 1 + block.begin
    size = 1 << 12
    while (rest := block.text[position : min(position + size, block.end)].tobytes()).find(b"\n") < 0:
        size *= 4
    text = block.text[start:position].tobytes() + rest[: rest.find(b"\n")]
    return Place(before.count(b"\n"), text.removesuffix(b"\r"), position - start)


def describe(error: int, place: Place, *, lowest: int, highest: int, limit: str) -> tuple[int, str]:
    """The column (from 0) and the words for an error of the parser."""
    from calirank.data import _kernels as k

    nul = place.text.find(b"\0")
    if nul >= 0:
        return nul, "expected text, got a NUL byte (a binary file?)"
    token, column = place.token, place.column
    got = show(token) if token else "a blank" if column < len(place.text) else "the end of the line"
    match error:
        case k.BAD_LABEL:
            hint = " (the label is missing)" if b":" in token else ""
            return column, f"expected {_number('a label', token)}, got {got}{hint}"
        case k.BAD_VALUE:
            return column, f"expected {_number(f'a value after {show(_before(place))}', token)}, got {got}"
        case k.BAD_NUMBER | k.NO_COLON:
            return _bad_feature(error == k.NO_COLON, place, lowest)
        case k.BELOW_LOWEST:
            return column, (
                f"expected feature numbers from {lowest} on, got {got}; "
                'where features are numbered from 0, give base=0 or base="auto"'
            )
        case k.ABOVE_HIGHEST:
            reason = f" ({limit})" if limit else ""
            return column, f"expected feature numbers up to {highest}{reason}, got {got}"
        case k.REPEATED:
            return _repeated(place)
        case k.OVERFLOW:
            if b":" in _before(place):
                return column, f"expected a value within float32 (below 3.4028236e38), got {got}"
            return column, f"expected a label within float64 (below 1.7976932e308), got {got}"
        case k.NO_QID:
            return column, f"expected qid: as on the lines before, got {got}"
        case k.SURPRISING_QID:
            return column, f"expected no qid: as on the lines before, got {got}"
        case k.EMPTY_QID:
            return column, f"expected a query id after 'qid:', got {'a comment' if token else got}"
        case _:
            byte = place.text[column : column + 1]
            what = "UTF-8 text" if byte >= b"\x80" else "a blank or the end of the line"
            return column, f"expected {what}, got byte 0x{byte.hex()}"


def _number(what: str, token: bytes) -> str:
    """What was expected instead of a token that is not a decimal number."""
    if _NOT_FINITE.fullmatch(token):
        return f"{what} that is finite"
    if _HEXADECIMAL.match(token):
        return f"{what} in decimal digits, not hexadecimal"
    if _UNDERSCORES.fullmatch(token):
        return f"{what} without underscores"
    return f"{what}, a decimal number"


def _before(place: Place) -> bytes:
    """What stands directly before the column, back to a blank."""
    return re.split(rb"[ \t]", place.text[: place.column])[-1]


def _bad_feature(digits: bool, place: Place, lowest: int) -> tuple[int, str]:
    token = _before(place) + place.token if digits else place.token
    column = place.column + len(place.token) - len(token)
    if token.startswith(b"-") and token[1:2].isdigit():
        return column, f"expected a feature number from {lowest} on, got negative {show(token)}"
    remark = " (qid: stands directly after the label)" if token.startswith(b"qid:") else ""
    return column, f"expected a feature 'number:value', got {show(token)}{remark}"


def _repeated(place: Place) -> tuple[int, str]:
    """The first feature that came before on the line."""
    seen: dict[int, int] = {}
    for found in _FEATURE.finditer(place.text.split(b"#", 1)[0]):
        number, column = int(found.group(1)), found.start(1)
        if number in seen:
            return column, f"expected each feature once, got {number} again after column {seen[number] + 1}"
        seen[number] = column
    raise AssertionError("a repeated feature that is not there")


def show(token: bytes, *, quoted: bool = True) -> str:
    text = token.decode("utf-8", "backslashreplace")
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return repr(text) if quoted else text
