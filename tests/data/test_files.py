"""Opening and writing files: compression, streams, pipes, damage, replacement in one step, blocks of lines."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from calirank._progress import track
from calirank.data._files import (
    atomic_write,
    is_plain_file,
    name_of,
    open_bytes,
    read_text_lines,
    text_blocks,
    without_compression_suffix,
)

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
TEXT = "".join(f"{n} {n * n}\n" for n in range(20_000)).encode()


def read(source: object) -> bytes:
    with open_bytes(source) as stream:
        return stream.read()


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compression_is_recognised_by_the_bytes_not_the_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(COMPRESS[suffix](TEXT))
    assert read(path) == read(str(path)) == TEXT
    assert read(io.BytesIO(path.read_bytes())) == TEXT
    assert is_plain_file(path) == (suffix == "")


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_joined_compressed_files_are_one_text(suffix: str) -> None:
    assert read(io.BytesIO(COMPRESS[suffix](b"one\n") + COMPRESS[suffix](b"two\n"))) == b"one\ntwo\n"


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.999])
def test_a_cut_compressed_file_is_refused_by_name(tmp_path: Path, suffix: str, share: float) -> None:
    whole = COMPRESS[suffix](TEXT)
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(whole[: max(8, int(share * len(whole)))])
    with pytest.raises(ValueError, match=re.escape(f"{path}: expected more ") + ".* got the end of the file"):
        read(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_a_damaged_compressed_file_is_refused_by_name(tmp_path: Path, suffix: str) -> None:
    whole = bytearray(COMPRESS[suffix](TEXT))
    whole[len(whole) // 3 : len(whole) // 3 + 20] = b"x" * 20
    path = tmp_path / f"damaged{suffix}"
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=re.escape(f"{path}: expected ") + ".* data, got a damaged file"):
        read(path)


def test_zstd_without_its_extra_names_the_line_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.zst"
    path.write_bytes(COMPRESS[".zst"](TEXT))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=re.escape(f'{path}: zstd needs the extra "zstd"')) as caught:
        read(path)
    assert 'pip install "calirank[zstd]"' in str(caught.value)
    with pytest.raises(ImportError, match="zstd needs the extra"), atomic_write(tmp_path / "out.zst", "wb"):
        pytest.fail("the block must not begin")
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.zst"]


def test_directories_missing_files_and_other_things(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path}: expected a file, got a directory")):
        read(tmp_path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nowhere")
    with pytest.raises(TypeError, match="expected a path, '-' or an open stream, got int"):
        read(3)


def test_text_streams_are_read_as_utf8() -> None:
    assert read(io.StringIO("Ü日\n" * 1000)) == "Ü日\n".encode() * 1000
    assert read(io.StringIO("")) == b""


def test_a_stream_is_read_from_where_it_stands_and_left_open() -> None:
    stream = io.BytesIO(b"before" + TEXT)
    stream.seek(6)
    assert read(stream) == TEXT
    assert not stream.closed


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    assert read("-") == TEXT
    monkeypatch.setattr(sys, "stdin", io.StringIO("plain"))
    assert read("-") == b"plain"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a matter of Unix")
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_named_pipes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(COMPRESS[suffix](TEXT)))
    writer.start()
    assert read(path) == TEXT
    writer.join()


def test_bytes_that_come_one_at_a_time_are_recognised() -> None:
    class Slow(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self.rest = io.BytesIO(data)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:
            return self.rest.readinto(memoryview(buffer)[:1])

    assert read(Slow(lzma.compress(b"slow\n"))) == b"slow\n"


def test_lines_of_text() -> None:
    source = io.BytesIO("\ufeffone\r\ntwo\n\nÜ".encode())
    assert list(read_text_lines(source)) == [(1, "one"), (2, "two"), (3, ""), (4, "Ü")]
    with pytest.raises(ValueError, match="<stream>:2:3: expected UTF-8 text, got byte 0xff"):
        list(read_text_lines(io.BytesIO(b"one\ntw\xff\n")))


def test_names() -> None:
    assert name_of(Path("a/b.txt")) == "a/b.txt"
    assert name_of(sys.__stdin__) == "<stdin>"
    assert [without_compression_suffix(f"a.b{suffix}") for suffix in COMPRESS] == ["a.b"] * 5


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.sampled_from([b"a", b"bc\n", b"\n", b"\r\n", b"long line\n", b"\xef\xbb\xbf"]), max_size=20),
    st.integers(1, 40),
    st.integers(1, 8),
)
def test_blocks_are_whole_lines_and_together_the_text(pieces: list[bytes], size: int, padding: int) -> None:
    text = b"".join(pieces)
    wanted = text.removeprefix(b"\xef\xbb\xbf")
    wanted += b"\n" if wanted and not wanted.endswith(b"\n") else b""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        path.write_bytes(text)
        for source in (path, io.BytesIO(text)):
            parts = []
            for block in text_blocks(source, size, padding):
                parts.append(block.text[block.begin : block.end].tobytes())
                assert parts[-1].endswith(b"\n")
                assert len(block.text) >= block.end + padding
                block.release()
            assert b"".join(parts) == wanted


# --- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", COMPRESS)
def test_the_name_decides_the_compression(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    with atomic_write(path, "wb") as stream:
        stream.write(TEXT)
    assert is_plain_file(path) == (suffix == "")
    assert read(path) == TEXT
    with atomic_write(path, "w") as text:
        text.write("Ü\r\n")
    assert read(path) == "Ü\r\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_gzip_files_do_not_depend_on_time_or_name(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with atomic_write(tmp_path / name, "wb") as stream:
            stream.write(TEXT)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize("suffix", COMPRESS)
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_bytes(b"old")

    def write() -> None:
        with atomic_write(path, "w") as stream:
            stream.write("new")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with atomic_write(link, "w") as stream:
        stream.write("new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_targets_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a file, got a directory"), atomic_write(tmp_path, "w"):
        pytest.fail("the block must not begin")
    missing = tmp_path / "none" / "x"
    with pytest.raises(FileNotFoundError, match="expected its folder to be there"), atomic_write(missing, "w"):
        pytest.fail("the block must not begin")
    with pytest.raises(TypeError, match="expected a path, '-' or an open stream, got int"):
        atomic_write(3, "w")
    with pytest.raises(ValueError, match="expected the mode 'w' or 'wb', got 'a'"):
        atomic_write(tmp_path / "x", "a")


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="a device of Unix")
def test_a_device_is_written_through() -> None:
    with atomic_write("/dev/null", "w") as stream:
        stream.write("away")
    assert not os.path.isfile("/dev/null")


def test_streams_of_either_kind_take_text_and_bytes() -> None:
    binary, text = io.BytesIO(), io.StringIO()
    for target in (binary, text):
        with atomic_write(target, "w") as stream:
            stream.write("Ü\n")
        with atomic_write(target, "wb") as stream:
            stream.write("日".encode()[:2])
            stream.write("日".encode()[2:])
    assert (binary.getvalue().decode(), text.getvalue()) == ("Ü\n日", "Ü\n日")


def test_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with atomic_write("-", "w") as stream:
        stream.write("Ü\n")
    with atomic_write("-", "wb") as stream:
        stream.write(b"bytes\n")
    assert capsysbinary.readouterr().out == "Ü\nbytes\n".encode()


# --- progress --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("progress", [True, False, None])
def test_progress_writes_to_stderr_only_when_asked(capsys: pytest.CaptureFixture[str], progress: bool | None) -> None:
    with track(10, "reading things", progress) as advance:
        for _ in range(10):
            advance(1)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("reading things" in err) == bool(progress)


def test_a_bar_on_a_terminal_waits_until_the_work_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    clock = iter([0.0, 0.1, 2.0, 2.1])
    monkeypatch.setattr("calirank._progress.time.monotonic", lambda: next(clock, 3.0))
    monkeypatch.setattr(sys, "stderr", Terminal())
    with track(None, "reading", None) as advance:
        advance(1)
        assert sys.stderr.getvalue() == ""
        advance(1)
        assert "reading" in sys.stderr.getvalue()
