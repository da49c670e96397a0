"""Opening and writing files: streams, standard input and output, compression, atomic replacement.

Readers take a *source*: a path, ``"-"`` for standard input, or an open stream. Compressed sources are recognised by
their first bytes, never by their name. Writers take a *target*: a path, ``"-"`` for standard output, or an open stream;
here the name decides (``.gz``, ``.xz``, ``.bz2``, ``.zst``), and a path is replaced only when all was written.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import functools
import gzip
import io
import lzma
import mmap
import os
import secrets
import stat
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, Literal, NamedTuple, TypeAlias, cast, overload

import numpy as np
from numpy.typing import NDArray

from calirank._extras import optional

Source: TypeAlias = "str | os.PathLike[str] | IO[bytes] | IO[str]"
Target: TypeAlias = "str | os.PathLike[str] | IO[bytes] | IO[str]"

_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIX = {".gz": "gzip", ".xz": "xz", ".bz2": "bz2", ".zst": "zstd"}
_HEAD = 6  # the longest magic number
_CHUNK = 1 << 18


# --- names -----------------------------------------------------------------------------------------------------------


def is_path(source: object) -> bool:
    """Whether the source is a path (and not ``"-"`` or a stream).

    >>> is_path("a.txt"), is_path("-"), is_path(io.BytesIO())
    (True, False, False)
    """
    return isinstance(source, (str, os.PathLike)) and source != "-"


def name_of(source: Source | Target) -> str:
    """How messages call a source or target.

    >>> name_of("a.txt"), name_of("-"), name_of(io.BytesIO())
    ('a.txt', '<stdin>', '<stream>')
    """
    if isinstance(source, str) and source == "-":
        return "<stdin>"
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def without_compression_suffix(path: str | os.PathLike[str]) -> str:
    """The path without ``.gz``, ``.xz``, ``.bz2`` or ``.zst`` at its end.

    >>> without_compression_suffix("train.txt.gz"), without_compression_suffix("train.txt")
    ('train.txt', 'train.txt')
    """
    stem, suffix = os.path.splitext(os.fspath(path))
    return stem if suffix.lower() in _SUFFIX else os.fspath(path)


def refuse_compression(target: Target, title: str) -> None:
    """Raise ``ValueError`` where the name asks to compress a file that is read at random, and compresses by itself."""
    name = name_of(target)
    if is_path(target) and without_compression_suffix(name) != name:
        raise ValueError(f"{name}: {title} is not compressed as a whole; leave out {os.path.splitext(name)[1]}")


# --- reading ---------------------------------------------------------------------------------------------------------


@contextmanager
def open_bytes(source: Source) -> Iterator[IO[bytes]]:
    """Open a source as a binary stream of its uncompressed bytes; a stream of the caller is left open.

    A path that is not there gives ``FileNotFoundError``; a directory, a damaged or cut compressed file ``ValueError``.
    """
    name = name_of(source)
    with ExitStack() as stack:
        if isinstance(source, (str, os.PathLike)) and source != "-":
            refuse_directory(source)
            raw: IO[bytes] = stack.enter_context(open(source, "rb"))
        else:
            raw = _binary(_standard_input() if isinstance(source, str) else source)
        head, raw = _peek(raw)
        kind = compression_of(head)
        if kind is not None:
            inner = stack.enter_context(_decompressor(kind, raw, name))
            raw = stack.enter_context(io.BufferedReader(_Translated(inner, kind, name), _CHUNK))
        yield raw


def read_text_lines(source: Source) -> Generator[tuple[int, str], None, None]:
    """The lines of a source as (number from 1, text without its line end); UTF-8, a byte order mark is dropped.

    >>> list(read_text_lines(io.BytesIO(b"one\\r\\ntwo")))
    [(1, 'one'), (2, 'two')]
    """
    name = name_of(source)
    with open_bytes(source) as stream:
        for number, raw in enumerate(stream, start=1):
            line = raw.removesuffix(b"\n").removesuffix(b"\r")
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            try:
                yield number, line.decode("utf-8")
            except UnicodeDecodeError as error:
                found = line[error.start]
                raise ValueError(
                    f"{name}:{number}:{error.start + 1}: expected UTF-8 text, got byte 0x{found:02x}"
                ) from None


def refuse_directory(path: str | os.PathLike[str]) -> None:
    """Raise ``ValueError`` where a file was expected and a directory stands."""
    if os.path.isdir(path):
        raise ValueError(f"{os.fspath(path)}: expected a file, got a directory")


def compression_of(head: bytes) -> str | None:
    """The compression that the first bytes announce, or None.

    >>> compression_of(b"BZh91AY"), compression_of(b"2 qid:1 ")
    ('bz2', None)
    """
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def is_plain_file(path: str | os.PathLike[str]) -> bool:
    """Whether the path is a regular file that is not compressed, so that it can be mapped into memory."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        return False
    with open(path, "rb") as stream:
        return compression_of(stream.read(_HEAD)) is None


def _standard_input() -> IO[bytes] | IO[str]:
    return cast("IO[bytes] | IO[str]", getattr(sys.stdin, "buffer", sys.stdin))


def _binary(stream: IO[bytes] | IO[str]) -> IO[bytes]:
    """The stream itself when it gives bytes; a text stream is read as UTF-8 bytes."""
    if not hasattr(stream, "read"):
        raise TypeError(f"expected a path, '-' or an open stream, got {type(stream).__name__}")
    if stream is sys.stdin and hasattr(stream, "buffer"):
        return stream.buffer
    if isinstance(stream.read(0), str):
        return io.BufferedReader(_Encoded(cast("IO[str]", stream)), _CHUNK)
    return cast("IO[bytes]", stream)


def _peek(stream: IO[bytes]) -> tuple[bytes, IO[bytes]]:
    """The first bytes and a stream that still gives all of them; pipes cannot be rewound."""
    head = b""
    while len(head) < _HEAD:
        more = stream.read(_HEAD - len(head))
        if not more:
            break
        head += more
    return head, io.BufferedReader(_Joined(head, stream), _CHUNK)


class _Raw(io.RawIOBase):
    """A readable raw stream over a function ``read(n) -> bytes``."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._next(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _next(self, count: int) -> bytes:
        raise NotImplementedError


class _Joined(_Raw):
    """Bytes already read, followed by the stream they were read from."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def _next(self, count: int) -> bytes:
        if self._head:
            data, self._head = self._head[:count], self._head[count:]
            return data
        return self._rest.read(count) or b""


class _Encoded(_Raw):
    """A text stream as UTF-8 bytes."""

    def __init__(self, text: IO[str]) -> None:
        self._text, self._left = text, b""

    def _next(self, count: int) -> bytes:
        if not self._left:
            self._left = self._text.read(count).encode("utf-8")
        data, self._left = self._left[:count], self._left[count:]
        return data


class _Zstd(_Raw):
    """Zstandard frames one after the other; ends with ``EOFError`` when the last one is cut."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._decompressor = stream, _zstandard(name).ZstdDecompressor()
        self._frame: Any = None
        self._left, self._ready = b"", b""

    def _next(self, count: int) -> bytes:
        while not self._ready:
            data = self._left or self._stream.read(1 << 16)
            self._left = b""
            if not data:
                if self._frame is not None:
                    raise EOFError
                return b""
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            self._ready = self._frame.decompress(data)
            if self._frame.eof:
                self._left, self._frame = self._frame.unused_data, None
        data, self._ready = self._ready[:count], self._ready[count:]
        return data


class _Translated(_Raw):
    """A decompressor whose errors are ``ValueError`` with the name of the file."""

    def __init__(self, inner: IO[bytes], kind: str, name: str) -> None:
        self._inner, self._kind, self._name = inner, kind, name

    def _next(self, count: int) -> bytes:
        try:
            return self._inner.read(count)
        except EOFError:
            raise ValueError(
                f"{self._name}: expected more {self._kind} data, got the end of the file (cut off?)"
            ) from None
        except Exception as error:
            if not _is_damage(error):
                raise
            raise ValueError(f"{self._name}: expected {self._kind} data, got a damaged file ({error})") from error


def _is_damage(error: Exception) -> bool:
    """Whether a decompressor refused the data; an ``OSError`` with a number comes from the disk instead."""
    if isinstance(error, OSError):
        return error.errno is None
    return isinstance(error, (zlib.error, lzma.LZMAError)) or type(error).__name__ == "ZstdError"


def _decompressor(kind: str, stream: IO[bytes], name: str) -> IO[bytes]:
    match kind:
        case "gzip":
            return cast("IO[bytes]", gzip.GzipFile(fileobj=stream, mode="rb"))
        case "xz":
            return cast("IO[bytes]", lzma.LZMAFile(stream, "rb"))
        case "bz2":
            return cast("IO[bytes]", bz2.BZ2File(stream, "rb"))
        case _:
            return cast("IO[bytes]", io.BufferedReader(_Zstd(stream, name), _CHUNK))


def _zstandard(name: str) -> Any:
    return optional("zstandard", extra="zstd", purpose=f"{name}: zstd")


# --- blocks of whole lines -------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """Whole lines ``text[begin:end]``, the last byte a newline; some bytes after ``end`` may be looked at."""

    text: NDArray[np.uint8]
    begin: int
    end: int
    mapped: bool  # whether the text is a mapped file, not a copy
    release: Callable[[], None]  # to be called when the block has been read


def text_blocks(source: Source, size: int, padding: int) -> Generator[Block, None, None]:
    """A source as blocks of whole lines of about ``size`` bytes, each with ``padding`` bytes that can be read after it.

    A plain file is mapped into memory, and pages that have been read are handed back, so no second copy of the text is
    made; everything else is read on block by block. A byte order mark is left out.
    """
    if is_path(source):
        path = cast("str | os.PathLike[str]", source)
        refuse_directory(path)
        if is_plain_file(path) and os.path.getsize(path) > 0:
            yield from _mapped_blocks(path, size, padding)
            return
    with open_bytes(source) as stream:
        yield from _read_blocks(stream, size, padding)


def _mapped_blocks(path: str | os.PathLike[str], size: int, padding: int) -> Iterator[Block]:
    with open(path, "rb") as stream:
        pages = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    text = np.frombuffer(pages, dtype=np.uint8)
    begin = len(codecs.BOM_UTF8) if pages[:3] == codecs.BOM_UTF8 else 0
    mapped_end = pages.rfind(b"\n", begin, max(begin, len(pages) - padding)) + 1 or begin
    while begin < mapped_end:
        end = mapped_end
        if mapped_end - begin > size:
            end = pages.rfind(b"\n", begin, begin + size) + 1 or pages.find(b"\n", begin + size) + 1
        yield Block(text, begin, end, True, functools.partial(_hand_back, pages, begin, end))
        begin = end
    if begin < len(pages):  # the last line or two, copied so that bytes can stand after them
        yield _padded([pages[begin:]], padding)


def _hand_back(pages: mmap.mmap, begin: int, end: int) -> None:
    """Tell the system that these pages of a mapped file need not stay in memory."""
    if hasattr(mmap, "MADV_DONTNEED"):
        first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
        last = end // mmap.PAGESIZE * mmap.PAGESIZE
        if first < last:
            pages.madvise(mmap.MADV_DONTNEED, first, last - first)


def _read_blocks(stream: IO[bytes], size: int, padding: int) -> Iterator[Block]:
    begun: list[bytes] = []  # a line of which the end has not been read
    first = True
    while data := stream.read(size):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield _padded([*begun, data[:cut]], padding, skip_mark=first)
            begun, first = [], False
        if cut < len(data):
            begun.append(data[cut:])
    if begun and not (first and b"".join(begun) == codecs.BOM_UTF8):
        yield _padded(begun, padding, skip_mark=first)


def _padded(parts: list[bytes], padding: int, *, skip_mark: bool = False) -> Block:
    ends = parts[-1].endswith(b"\n")
    joined = b"".join([*parts, b"\n" * (padding + (not ends))])
    begin = len(codecs.BOM_UTF8) if skip_mark and joined.startswith(codecs.BOM_UTF8) else 0
    return Block(np.frombuffer(joined, dtype=np.uint8), begin, len(joined) - padding, False, _nothing)


def _nothing() -> None:
    pass


# --- writing ---------------------------------------------------------------------------------------------------------


@overload
def atomic_write(target: Target, mode: Literal["w"]) -> contextlib.AbstractContextManager[IO[str]]: ...
@overload
def atomic_write(target: Target, mode: Literal["wb"]) -> contextlib.AbstractContextManager[IO[bytes]]: ...


def atomic_write(target: Target, mode: Literal["w", "wb"]) -> contextlib.AbstractContextManager[IO[Any]]:
    """Open a target for writing text (``"w"``, UTF-8, line ends as written) or bytes (``"wb"``).

    A path is written beside itself and renamed when the block ends without an error; after an error the old file, if
    any, is untouched and nothing else is left. ``"-"`` and streams are written through and stay open.
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"expected the mode 'w' or 'wb', got {mode!r}")
    if isinstance(target, (str, os.PathLike)) and os.fspath(target) == "/dev/stdout":
        target = "-"  # what it is redirected to must not be replaced
    if isinstance(target, (str, os.PathLike)) and target != "-":
        return _write_path(os.fspath(target), mode)
    stream = getattr(sys.stdout, "buffer", sys.stdout) if isinstance(target, str) else target
    if not hasattr(stream, "write"):
        raise TypeError(f"expected a path, '-' or an open stream, got {type(stream).__name__}")
    return _write_stream(stream, mode)


@contextmanager
def _write_path(path: str, mode: str) -> Iterator[IO[Any]]:
    refuse_directory(path)
    final = os.path.realpath(path)  # a link stays a link
    if os.path.exists(final) and not os.path.isfile(final):  # a device or a pipe cannot be renamed over
        with open(final, "wb") as stream, _encoding(stream, path, mode) as outer:
            yield outer
        return
    folder, base = os.path.split(final)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{path}: expected its folder to be there, got none at {folder}")
    temporary = os.path.join(folder, f".{base[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as stream, _encoding(stream, path, mode) as outer:
            yield outer
        if os.path.exists(final):
            os.chmod(temporary, stat.S_IMODE(os.stat(final).st_mode))
        os.replace(temporary, final)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextmanager
def _encoding(stream: IO[bytes], path: str, mode: str) -> Iterator[IO[Any]]:
    """Put compression (by the name) and text encoding (by the mode) before a binary stream."""
    with ExitStack() as stack:
        kind = _SUFFIX.get(os.path.splitext(path)[1].lower())
        outer: IO[Any] = stream if kind is None else stack.enter_context(_compressor(kind, stream, path))
        if mode == "w":
            outer = stack.enter_context(_text_over(outer))
        yield outer


def _compressor(kind: str, stream: IO[bytes], path: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    match kind:
        case "gzip":  # no name and no time inside: equal data give equal files
            return cast("IO[bytes]", gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6, mtime=0))
        case "xz":
            return cast("IO[bytes]", lzma.LZMAFile(stream, "wb"))
        case "bz2":
            return cast("IO[bytes]", bz2.BZ2File(stream, "wb"))
        case _:
            writer = _zstandard(path).ZstdCompressor().stream_writer(stream, closefd=False)
            return cast("contextlib.AbstractContextManager[IO[bytes]]", writer)


@contextmanager
def _text_over(stream: IO[bytes]) -> Iterator[IO[str]]:
    """Text over a binary stream, which stays open."""
    text = io.TextIOWrapper(cast("Any", stream), encoding="utf-8", newline="\n")
    try:
        yield text
    finally:
        text.detach()  # flushes first


@contextmanager
def _write_stream(stream: IO[Any], mode: str) -> Iterator[IO[Any]]:
    takes_text = isinstance(stream, io.TextIOBase) or hasattr(stream, "encoding")
    if mode == "w" and not takes_text:
        with _text_over(stream) as text:
            yield text
    elif mode == "wb" and takes_text:
        with io.BufferedWriter(_Decoded(stream), _CHUNK) as binary:
            yield binary
    else:
        yield stream
    if hasattr(stream, "flush"):
        stream.flush()


class _Decoded(io.RawIOBase):
    """A binary stream that writes UTF-8 bytes into a text stream."""

    def __init__(self, text: IO[str]) -> None:
        self._text, self._decoder = text, codecs.getincrementaldecoder("utf-8")()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._text.write(self._decoder.decode(bytes(data)))
        return len(data)
