"""The kernel decorator, its disk cache and the thread pool, tried on kernels that the tests write themselves."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import itertools
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calirank
from calirank import _kernel
from calirank._kernel import get_threads, run_ranges, run_tasks, set_threads, split_evenly

SOURCE = """
import numpy as np
from calirank._kernel import inlined, kernel

@inlined
def square(x):
    return x * x

@kernel
def norms(values, offsets, out, start, stop):
    for l in range(start, stop):
        total = 0.0
        for i in range(offsets[l], offsets[l + 1]):
            total += square(values[i])
        out[l] = np.sqrt(total)

@kernel
def divide(a, b):
    return a / b

@kernel
def spin(n):
    x = np.uint64(88172645463325252)
    for _ in range(n):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
    return x
"""

Load = Callable[..., ModuleType]


@pytest.fixture(autouse=True)
def leave_the_threads_as_they_were() -> Iterator[None]:
    before = _kernel._threads
    yield
    set_threads(before)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The test's own cache of machine code."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    _kernel.cache_directory.cache_clear()
    monkeypatch.setattr(_kernel, "_warned", False)
    yield tmp_path / "cache" / "calirank"
    _kernel.cache_directory.cache_clear()
    _kernel._package_stamp.cache_clear()


@pytest.fixture
def load(tmp_path: Path, folder: Path) -> Iterator[Load]:
    """Write a file of kernels and import it, each time anew, as another process would."""
    loaded: set[str] = set()

    def write_and_import(source: str = SOURCE, place: str = "some", file: str = "_kernels.py") -> ModuleType:
        path = tmp_path / place / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        name = f"{place}_kernels_of_the_test"
        loaded.add(name)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode  # two versions of a file within one second
    yield write_and_import
    sys.dont_write_bytecode = before
    for name in loaded:
        sys.modules.pop(name, None)


class Watched:
    """Counts the compilations of a block."""

    def __enter__(self) -> Watched:
        self.begun, self.finished = 0, [0]
        self._watch = _kernel.watch_compilation(self._begin, self.finished.append)
        self._watch.__enter__()
        return self

    def _begin(self) -> None:
        self.begun += 1

    def __exit__(self, *error: object) -> None:
        self._watch.__exit__(None, None, None)

    @property
    def count(self) -> int:
        assert self.finished == list(range(len(self.finished)))
        assert self.begun == min(1, self.finished[-1])
        return self.finished[-1]


def example(lists: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 200, lists))])
    values = rng.normal(size=offsets[-1])
    return (
        values,
        offsets,
        np.array([math.sqrt(sum(v * v for v in values[a:b])) for a, b in itertools.pairwise(offsets)]),
    )


def norms(module: ModuleType, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    out = np.empty(len(offsets) - 1)
    module.norms(values, offsets, out, 0, len(out))
    return out


# --- the decorator ---------------------------------------------------------------------------------------------------


def test_a_kernel_computes_what_its_python_text_says(load: Load) -> None:
    before = _kernel.kernels_registered()
    module = load()
    assert _kernel.kernels_registered() == before + 4
    values, offsets, wanted = example()
    assert np.array_equal(norms(module, values, offsets), wanted)
    assert module.divide(1.0, 0.0) == math.inf
    assert math.isnan(module.divide(0.0, 0.0))


def test_kernels_stand_in_files_called_kernels(load: Load) -> None:
    with pytest.raises(
        ValueError, match=r"kernel square stands in formulas\.py: kernels live in files called _kernels"
    ):
        load(file="formulas.py")


def test_kernels_are_no_closures(load: Load) -> None:
    source = """
from calirank._kernel import kernel

def make(factor):
    @kernel
    def times(x):
        return factor * x
    return times

three_times = make(3)
"""
    with pytest.raises(ValueError, match="times uses variables of an enclosing function"):
        load(source)


def test_a_kernel_lets_other_threads_run(load: Load) -> None:
    spin = load().spin
    spin(1)
    thread = threading.Thread(target=spin, args=(200_000_000,))
    begin = last = time.perf_counter()
    longest = 0.0
    thread.start()
    while thread.is_alive():
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    longest = max(longest, time.perf_counter() - last)
    assert longest < (time.perf_counter() - begin) / 2  # this thread was never held up for as long as the kernel took


def test_read_only_and_memory_mapped_arrays_are_taken(load: Load, tmp_path: Path) -> None:
    module = load()
    values, offsets, wanted = example()
    np.save(tmp_path / "values.npy", values)
    mapped = np.load(tmp_path / "values.npy", mmap_mode="r")
    offsets.flags.writeable = False
    assert isinstance(mapped, np.memmap)
    assert np.array_equal(norms(module, mapped, offsets), wanted)


def test_ten_threads_may_make_the_first_call_at_once(load: Load) -> None:
    module = load()
    values, offsets, wanted = example()
    barrier = threading.Barrier(10)
    results: list[np.ndarray] = []

    def call() -> None:
        barrier.wait()
        results.append(norms(module, values, offsets))

    threads = [threading.Thread(target=call) for _ in range(10)]
    with Watched() as watched:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert watched.count == 2  # norms, and square inside it
    assert len(results) == 10
    assert all(np.array_equal(result, wanted) for result in results)


# --- the disk cache --------------------------------------------------------------------------------------------------

CALL = """
import sys
sys.path.insert(0, {place!r})
compiled = [0]
from calirank._kernel import watch_compilation
with watch_compilation(lambda: None, compiled.append):
    import _kernels
    result = _kernels.divide(1.0, 4.0)
print(compiled[-1], result)
"""


def test_a_second_process_finds_what_the_first_compiled(load: Load, tmp_path: Path, folder: Path) -> None:
    (tmp_path / "_kernels.py").write_text(SOURCE)
    home = str(Path(calirank.__file__).parents[1])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder.parent), "PYTHONPATH": home}
    call = [sys.executable, "-c", CALL.format(place=str(tmp_path))]
    printed = [subprocess.run(call, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    assert [process.stdout for process in printed] == ["1 0.25\n", "0 0.25\n"]
    assert [process.stderr for process in printed] == ["", ""]


def test_each_signature_is_compiled_once_and_found_again(load: Load, folder: Path) -> None:
    for wanted in (1, 0):
        with Watched() as watched:
            assert load().divide(1.0, 4.0) == 0.25
        assert watched.count == wanted
    for wanted in (1, 0):
        with Watched() as watched:
            assert load().divide(1, 4) == 0.25
            assert load().divide(1.0, 4.0) == 0.25
        assert watched.count == wanted
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("damage", ["empty", "short", "flipped"])
def test_a_damaged_file_is_compiled_again(load: Load, folder: Path, damage: str) -> None:
    load().divide(1.0, 4.0)
    (file,) = folder.iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes({"empty": b"", "short": bytes(content[:-1]), "flipped": bytes(content)}[damage])
    with Watched() as watched:
        assert load().divide(1.0, 4.0) == 0.25
    assert watched.count == 1
    with Watched() as watched:
        assert load().divide(1.0, 4.0) == 0.25
    assert watched.count == 0


def test_no_damaged_byte_gets_through(load: Load, folder: Path) -> None:
    divide: Any = load().divide
    divide(1.0, 4.0)
    (signature,), (file,) = divide.overloads, folder.iterdir()
    content = file.read_bytes()
    for place in range(0, len(content), len(content) // 100):
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert divide._cache.load_overload(signature, divide.targetctx) is None
    file.write_bytes(content)
    assert divide._cache.load_overload(signature, divide.targetctx) is not None


def test_whole_files_that_numba_cannot_use_are_compiled_again(load: Load, folder: Path) -> None:
    import hashlib
    import pickle

    load().divide(1.0, 4.0)
    (file,) = folder.iterdir()
    for content in (b"no pickle at all", pickle.dumps(("written", "by", "another numba"))):
        file.write_bytes(hashlib.sha256(content).digest() + content)
        assert load().divide(1.0, 4.0) == 0.25


def test_two_kernels_of_one_name_do_not_meet(load: Load) -> None:
    source = "from calirank._kernel import kernel\n@kernel\ndef f(x):\n    return x + {}\n"
    for _ in range(2):
        assert load(source.format(1), "here").f(1) == 2
        assert load(source.format(2), "there").f(1) == 3
    twice = source.format(1) + "g = f\n" + source.format(2)
    for _ in range(2):
        module = load(twice, "both")
        assert (module.g(1), module.f(1)) == (2, 3)


def test_an_edit_in_any_kernel_file_makes_the_code_stale(
    load: Load, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other file is the one whose kernel is called, which numba's own cache would not look at."""
    monkeypatch.setattr(_kernel, "_PACKAGE", tmp_path)
    (tmp_path / "_kernel.py").write_text("")
    inner = "from calirank._kernel import kernel\n@kernel\ndef inner(x):\n    return {} * x\n"
    outer = (
        "from calirank._kernel import kernel\nfrom inner_kernels_of_the_test import inner\n"
        "@kernel\ndef outer(x):\n    return inner(x) + 1\n"
    )
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer" / "_kernels.py").write_text(outer)
    for factor, compiled in ((2, 2), (2, 0), (3, 2), (3, 0)):
        load(inner.format(factor), "inner")
        _kernel._package_stamp.cache_clear()  # another process would see the files anew
        with Watched() as watched:
            load(inner.format(factor), "inner")
            assert load(outer, "outer").outer(10) == 10 * factor + 1
        assert watched.count == compiled
    assert len(list(folder.iterdir())) == 2  # what is stale is removed


def test_the_stamp_of_the_package_covers_its_kernels_and_this_decorator() -> None:
    package = Path(calirank.__file__).parent
    assert _kernel.source_stamp() == _kernel.source_stamp(package / "data" / "_kernels.py")
    assert _kernel.source_stamp() != _kernel.source_stamp(Path(__file__))


def test_where_nothing_can_be_written_kernels_work_and_one_warning_says_so(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match="compiled kernels are not kept on disk") as caught:
        modules = [load(), load()]
    assert len(caught) == 1
    assert str(tmp_path / "file" / "cache") in str(caught[0].message)
    with Watched() as watched:
        assert [module.divide(1.0, 4.0) for module in modules] == [0.25, 0.25]
    assert watched.count == 2


def test_code_is_kept_beside_the_package_or_else_in_the_users_cache(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chosen() -> Path | None:
        _kernel.cache_directory.cache_clear()
        return _kernel.cache_directory()

    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(_kernel, "_PACKAGE", tmp_path / "package")
    assert chosen() == tmp_path / "package" / "__pycache__" / "kernels"
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(_kernel, "_PACKAGE", tmp_path / "file")
    assert chosen() == tmp_path / "home" / "calirank"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="so every process compiles them again; set NUMBA_CACHE_DIR"):
        assert chosen() is None
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user without a home
    monkeypatch.chdir(tmp_path)
    assert chosen() is None
    assert not (tmp_path / "~").exists()


def test_a_disk_that_fails_later_costs_a_warning(load: Load, folder: Path) -> None:
    module = load()
    shutil.rmtree(folder)
    folder.write_text("a file where the folder was")
    with pytest.warns(RuntimeWarning, match="compiled kernels are not kept on disk") as caught:
        results = [module.divide(1.0, 4.0), module.divide(1, 4)]
    assert results == [0.25, 0.25]
    assert len(caught) == 1


def test_a_kernel_that_cannot_be_kept_says_why(load: Load) -> None:
    source = (
        "import numpy as np\nfrom calirank._kernel import kernel\nTABLE = np.zeros(1_000_000)\n"
        "@kernel\ndef entry(i):\n    return TABLE[i]\n"
    )
    with pytest.raises(ValueError, match="entry cannot be kept on disk, because it uses a large global array"):
        load(source).entry(3)


def test_numba_may_recompile_a_kernel(load: Load, folder: Path) -> None:
    divide: Any = load().divide
    divide(1.0, 4.0)
    assert divide.stats.cache_path == str(folder)
    with Watched() as watched:
        divide.recompile()
        assert divide(1.0, 4.0) == 0.25
    assert watched.count == 1
    assert len(list(folder.iterdir())) == 1


# --- ranges of lists -------------------------------------------------------------------------------------------------

SIZES = st.lists(st.integers(0, 5) | st.just(1000), max_size=40)


@given(SIZES, st.integers(1, 5), st.integers(0, 50))
@settings(deadline=None, max_examples=100)
def test_ranges_cover_every_list_once(sizes: list[int], threads: int, small: int) -> None:
    set_threads(threads)
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    ranges: list[tuple[int, int]] = []
    run_ranges(lambda a, b: ranges.append((a, b)), offsets, small=small)
    assert [number for a, b in sorted(ranges) for number in range(a, b)] == list(range(len(sizes)))


@given(SIZES.filter(len), st.integers(1, 10))
@settings(deadline=None, max_examples=100)
def test_cuts_are_even_up_to_one_list(sizes: list[int], parts: int) -> None:
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    cuts = split_evenly(offsets, parts)
    assert cuts[0] == 0
    assert cuts[-1] == len(sizes)
    assert cuts == sorted(set(cuts))
    assert len(cuts) - 1 <= parts
    for a, b in itertools.pairwise(cuts):
        assert offsets[b] - offsets[a] <= offsets[-1] / parts + max(sizes)


def test_results_do_not_depend_on_the_number_of_threads(load: Load) -> None:
    module = load()
    values, offsets, wanted = example(500)
    for threads in (1, 2, 5):
        set_threads(threads)
        out = np.full(len(offsets) - 1, np.nan)
        run_ranges(lambda a, b, out=out: module.norms(values, offsets, out, a, b), offsets)
        assert np.array_equal(out, wanted)


def test_small_work_stays_in_the_callers_thread() -> None:
    set_threads(2)
    seen: list[tuple[str, int, int]] = []
    offsets = np.arange(0, _kernel.SMALL, 100)
    run_ranges(lambda a, b: seen.append((threading.current_thread().name, a, b)), offsets)
    assert seen == [(threading.current_thread().name, 0, len(offsets) - 1)]


# --- tasks -----------------------------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_tasks() -> None:
    set_threads(3)

    def task(number: int) -> int:
        time.sleep(0.001 * (number % 3))
        return number

    assert run_tasks([lambda number=number: task(number) for number in range(30)]) == list(range(30))
    assert run_tasks([]) == []


def test_tasks_run_side_by_side_but_never_more_than_the_threads() -> None:
    set_threads(2)
    both = threading.Barrier(2)
    assert run_tasks([lambda: both.wait(10) >= 0] * 2) == [True, True]  # each waits for the other
    running, most, lock = [0], [0], threading.Lock()

    def task() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.002)
        with lock:
            running[0] -= 1

    run_tasks([task] * 12)
    assert most[0] == 2


def test_tasks_inside_a_task_run_one_after_the_other_in_their_thread() -> None:
    set_threads(2)

    both = threading.Barrier(2)

    def outer() -> tuple[int, list[int]]:
        both.wait(10)
        return threading.get_ident(), run_tasks([threading.get_ident] * 5)

    (first, firsts), (second, seconds) = run_tasks([outer] * 2)
    assert threading.get_ident() in (first, second)  # the caller works too
    assert first != second
    assert firsts == [first] * 5
    assert seconds == [second] * 5
    ranges: list[tuple[int, int]] = []
    offsets = np.arange(0, 100_001, 10)
    run_tasks([lambda: run_ranges(lambda a, b: ranges.append((a, b)), offsets)] * 2)
    assert ranges == [(0, 10_000)] * 2


def test_ten_callers_share_the_pool() -> None:
    set_threads(2)
    results: list[list[int]] = []

    def caller() -> None:
        results.append(run_tasks([lambda number=number: number * number for number in range(50)]))

    callers = [threading.Thread(target=caller) for _ in range(10)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert results == [[number * number for number in range(50)]] * 10


class Recorder:
    """Tasks that note when they begin and end."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.ended: list[int] = []

    def task(self, number: int, seconds: float, do: Callable[[], object] = lambda: None) -> Callable[[], None]:
        def run() -> None:
            self.begun.append(number)
            try:
                do()
                time.sleep(seconds)
            finally:
                self.ended.append(number)

        return run

    def check_that_nothing_runs(self) -> None:
        begun, ended = sorted(self.begun), sorted(self.ended)
        assert begun == ended
        time.sleep(0.05)
        assert sorted(self.begun) == begun


def failing(error: BaseException, seconds: float = 0.0) -> Callable[[], object]:
    def fail() -> object:
        time.sleep(seconds)
        raise error

    return fail


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_error_of_the_first_task_is_raised_when_none_runs_any_more(threads: int) -> None:
    set_threads(threads)
    recorder = Recorder()
    tasks = [recorder.task(number, 0.01) for number in range(100)]
    tasks[1] = recorder.task(1, 0, failing(ValueError("the first in order"), 0.03))
    tasks[2] = recorder.task(2, 0, failing(ValueError("the first in time")))
    with pytest.raises(ValueError, match="the first in order"):
        run_tasks(tasks)
    recorder.check_that_nothing_runs()
    assert len(recorder.begun) < 50


def test_an_error_leaves_nothing_behind() -> None:
    """Arrays of the caller are freed when the error is, without waiting for the garbage collector."""
    set_threads(2)

    class Thing:
        pass

    def call() -> weakref.ref[Thing]:
        thing = Thing()

        def task() -> None:
            raise ValueError(f"about {thing}")

        with pytest.raises(ValueError, match="about"):
            run_tasks([task, task])
        return weakref.ref(thing)

    gc.collect()
    gc.disable()
    try:
        reference = call()
        deadline = time.monotonic() + 5
        while reference() is not None and time.monotonic() < deadline:
            time.sleep(0.01)  # a thread of the pool may still be letting go
        assert reference() is None
    finally:
        gc.enable()


def test_an_interrupt_inside_a_task_is_raised_when_none_runs_any_more() -> None:
    set_threads(2)
    recorder = Recorder()
    tasks = [recorder.task(number, 0.02) for number in range(50)]
    tasks[0] = recorder.task(0, 0, failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        run_tasks(tasks)
    recorder.check_that_nothing_runs()
    assert len(recorder.begun) < 50


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals cannot be sent to a thread on this system")
@pytest.mark.parametrize("times", [1, 3])
def test_ctrl_c_in_the_calling_thread_leaves_no_thread_writing(times: int) -> None:
    set_threads(2)
    recorder = Recorder()
    main = threading.main_thread().ident
    assert main == threading.get_ident()

    def press() -> None:
        for _ in range(times):
            time.sleep(0.02)
            signal.pthread_kill(main, signal.SIGINT)

    presses = threading.Thread(target=press)
    tasks = [recorder.task(number, 0.15, presses.start if number == 0 else lambda: None) for number in range(20)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_tasks(tasks)
    finally:
        with contextlib.suppress(KeyboardInterrupt):
            presses.join()
        presses.join()
        signal.signal(signal.SIGINT, before)
    recorder.check_that_nothing_runs()
    assert 0 < len(recorder.begun) < 20
    assert run_tasks([lambda: 1] * 3) == [1, 1, 1]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals cannot be sent to a thread on this system")
def test_ctrl_c_goes_before_errors_of_tasks() -> None:
    set_threads(2)
    both = threading.Barrier(2)

    def task() -> None:
        both.wait(10)
        if threading.current_thread() is threading.main_thread():
            signal.raise_signal(signal.SIGINT)
        raise ValueError("an error of the other task")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(5):
            with pytest.raises(KeyboardInterrupt):
                run_tasks([task, task])
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_that_outlives_the_main_thread_works_on() -> None:
    code = """
import threading
from calirank._kernel import run_tasks, set_threads

def late():
    threading.main_thread().join()
    print(run_tasks([lambda n=n: n for n in range(5)]), flush=True)

set_threads(3)
run_tasks([lambda: None] * {warm})
threading.Thread(target=late).start()
"""
    for warm in (0, 3):  # without a pool and with one
        call = [sys.executable, "-c", code.format(warm=warm)]
        ended = subprocess.run(call, capture_output=True, text=True, check=False, timeout=60)
        assert (ended.stdout, ended.stderr, ended.returncode) == ("[0, 1, 2, 3, 4]\n", "", 0)


# --- the number of threads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, -1, 1.0, "2", True])
def test_set_threads_wants_a_whole_number_or_none(wrong: Any) -> None:
    set_threads(3)
    with pytest.raises(
        ValueError, match=f"the number of threads must be a whole number from 1 on, or None; got {wrong!r}"
    ):
        set_threads(wrong)
    assert get_threads() == 3


def test_threads_come_from_the_call_the_environment_or_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALIRANK_THREADS", "7")
    set_threads(np.int64(2))
    assert get_threads() == 2
    assert type(get_threads()) is int
    set_threads(None)
    assert get_threads() == 7
    monkeypatch.setenv("CALIRANK_THREADS", " ")
    machine = get_threads()
    assert 1 <= machine <= (os.cpu_count() or 1)
    monkeypatch.delenv("CALIRANK_THREADS")
    assert get_threads() == machine
    for wrong in ("0", "-1", "two", "1.5", "²"):
        monkeypatch.setenv("CALIRANK_THREADS", wrong)
        with pytest.raises(ValueError, match="CALIRANK_THREADS must be a whole number from 1 on"):
            get_threads()


def test_the_number_of_threads_may_change_while_others_work() -> None:
    problems: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            while not done.is_set():
                assert run_tasks([lambda number=number: number for number in range(6)]) == list(range(6))
        except BaseException as error:
            problems.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for number in itertools.islice(itertools.cycle([2, 3, 1, 4]), 200):
        set_threads(number)
        time.sleep(0.001)
    done.set()
    for worker in workers:
        worker.join()
    assert problems == []
    set_threads(2)
    run_tasks([lambda: None] * 2)
    deadline = time.monotonic() + 5
    while (left := _pool_threads()) > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left <= 1  # the pools that were replaced are gone


def _pool_threads() -> int:
    return sum(thread.name.startswith("calirank") for thread in threading.enumerate())


# --- forks -----------------------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def succeeds_in_a_child(check: Callable[[], bool]) -> bool:
    """Whether a forked child that runs the check ends well, within a minute."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # newer versions warn of forks beside threads: the point here
        child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if check() else 2
        finally:
            os._exit(status)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@needs_fork
@pytest.mark.parametrize("pool_used", [False, True])
def test_a_forked_child_computes_the_same(load: Load, pool_used: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kernel, "_pool", None)
    module = load()
    values, offsets, wanted = example(500)

    def compute() -> bool:
        set_threads(2)
        out = np.full(len(offsets) - 1, np.nan)
        run_ranges(lambda a, b: module.norms(values, offsets, out, a, b), offsets)
        return np.array_equal(out, wanted)

    if pool_used:
        assert compute()
        assert _kernel._pool is not None
    else:
        assert np.array_equal(norms(module, values, offsets), wanted)
        assert _kernel._pool is None
    assert succeeds_in_a_child(lambda: compute() and module.divide(1, 4) == 0.25)
    assert compute()


@needs_fork
def test_a_child_does_not_wait_for_a_lock_that_its_parent_held() -> None:
    set_threads(2)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with _kernel._pool_lock:
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        assert succeeds_in_a_child(lambda: run_tasks([lambda: 1, lambda: 2]) == [1, 2])
    finally:
        release.set()
        holder.join()


@needs_fork
def test_a_fork_from_inside_the_pool_makes_a_pool_of_its_own() -> None:
    set_threads(2)

    def child() -> bool:
        both = threading.Barrier(2)
        return run_tasks([lambda: both.wait(10) >= 0] * 2) == [True, True]

    assert run_tasks([lambda: succeeds_in_a_child(child)] * 2) == [True, True]


@needs_fork
def test_a_child_compiles_although_another_thread_compiled_at_the_fork(load: Load) -> None:
    from numba.core.compiler_lock import global_compiler_lock

    module = load()
    held, release = threading.Event(), threading.Event()

    def compile_for_a_while() -> None:
        with global_compiler_lock:
            held.set()
            release.wait(10)

    compiler = threading.Thread(target=compile_for_a_while)
    compiler.start()
    held.wait()
    threading.Timer(0.2, release.set).start()
    assert succeeds_in_a_child(lambda: module.divide(1.0, 4.0) == 0.25)
    compiler.join()
    assert module.divide(1.0, 4.0) == 0.25


@needs_fork
def test_a_fork_out_of_a_compilation_does_not_wait_for_itself(load: Load) -> None:
    from numba.core.compiler_lock import global_compiler_lock

    module, ended = load(), []

    def child() -> bool:
        return module.divide(1.0, 4.0) == 0.25

    with _kernel.watch_compilation(lambda: ended.append(succeeds_in_a_child(child)), lambda count: None):
        assert module.divide(1, 4) == 0.25
    assert ended == [True]
    assert not global_compiler_lock.is_locked()


def test_numba_is_listened_to_once(load: Load) -> None:
    _kernel._listen_to_numba()
    with Watched() as watched:
        load().divide(1.0, 4.0)
    assert watched.count == 1
