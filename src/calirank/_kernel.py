"""Compiled functions and the thread pool: the one place that names numba's options.

A *kernel* is a function over flat arrays and offsets, compiled by numba without the interpreter lock. Kernels live in
files called ``_kernels.py`` beside the formula that they speed up, and those files are imported on first use only, so
that ``import calirank`` does not load numba. Parallel work is contiguous ranges of lists on one pool of threads::

    def task(start: int, stop: int) -> None:
        some_kernel(labels, offsets, out, start, stop)

    run_ranges(task, offsets)

Every list is computed by itself and sums over lists are taken afterwards in list order, so no result depends on the
number of threads.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import pickle
import sys
import tempfile
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")

#: Less work than this (items, or bytes of text) is not worth waking another thread for.
SMALL = 20_000

_PACKAGE = Path(__file__).resolve().parent
_registered: list[str] = []


# --- compiled functions ----------------------------------------------------------------------------------------------


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of a ``_kernels.py`` file: no interpreter lock, cached on disk, IEEE arithmetic.

    Division by zero gives inf or NaN as in NumPy, and no floating-point operation is reordered, so a kernel returns the
    same bits on every call. To mypy the result is the plain function.
    """
    return _compile(function, inline="never")


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a small helper that kernels of the same file call; it becomes part of its callers."""
    return _compile(function, inline="llvm")


def _compile(function: Callable[P, R], *, inline: str) -> Callable[P, R]:
    path = Path(function.__code__.co_filename)
    if path.name != "_kernels.py":
        raise ValueError(
            f"kernel {function.__qualname__} stands in {path.name}: kernels live in files called _kernels.py, "
            "because the key of the disk cache is a hash of those files"
        )
    if function.__closure__ is not None:
        raise ValueError(
            f"kernel {function.__qualname__} uses variables of an enclosing function, which the key of the disk cache "
            "does not see: pass them as arguments"
        )
    import numba

    _listen_to_numba()
    options: dict[str, Any] = {"nogil": True, "fastmath": False, "error_model": "numpy"}
    if inline == "llvm":
        options["forceinline"] = True
    dispatcher: Any = numba.njit(**options)(function)
    directory = cache_directory()
    if directory is not None:
        dispatcher._cache = _DiskCache(function, directory)
    _registered.append(f"{function.__module__}.{function.__qualname__}")
    return cast(Callable[P, R], dispatcher)


def kernels_registered() -> int:
    """How many kernels the modules imported so far have declared."""
    return len(_registered)


@contextmanager
def watch_compilation(begin: Callable[[], None], finished: Callable[[int], None]) -> Iterator[None]:
    """Report compilations while the block runs: ``begin()`` before the first, ``finished(count)`` after each.

    A kernel that is found in the disk cache is not a compilation and is not reported. This is how the command line says
    "preparing (once)". It does not load numba: the first kernel file that is imported does.
    """
    watch = _Watch(begin, finished)
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)


class _Watch:
    def __init__(self, begin: Callable[[], None], finished: Callable[[int], None]) -> None:
        self.begin, self.finished = begin, finished
        self.started = self.count = 0


_watches: list[_Watch] = []


_listening = False


def _listen_to_numba() -> None:
    """Once a process: pass numba's compile events on to the watches, and fork only while no other thread compiles."""
    global _listening
    from numba.core import event
    from numba.core.compiler_lock import global_compiler_lock

    class Listener(event.Listener):  # type: ignore[misc]  # numba carries no types
        def on_start(self, _event: Any) -> None:
            for watch in list(_watches):
                watch.started += 1
                if watch.started == 1:
                    watch.begin()

        def on_end(self, _event: Any) -> None:
            for watch in list(_watches):
                watch.count += 1
                watch.finished(watch.count)

    with global_compiler_lock:
        if not _listening:
            _listening = True
            event.register("numba:compile", Listener())
            _hold_at_fork(global_compiler_lock)


def _hold_at_fork(lock: Any) -> None:
    """Hold numba's compiler lock around forks: a child has no other thread that could let it go.

    A fork waits until the other threads have compiled what they are at. The lock may be taken again by the thread that
    holds it, so a fork out of a compilation does not wait for itself, and its child goes on compiling.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


# --- the disk cache --------------------------------------------------------------------------------------------------


def source_stamp(extra: Path | None = None) -> str:
    """Hash of every kernel source of the package: an edit in any of them makes all cached machine code stale.

    numba by itself looks only at the file of the kernel that is called, not at those whose kernels it calls.
    """
    digest = hashlib.sha256(_package_stamp())
    if extra is not None and _PACKAGE not in extra.resolve().parents:
        digest.update(extra.read_bytes())
    return digest.hexdigest()


@functools.lru_cache(maxsize=1)
def _package_stamp() -> bytes:
    digest = hashlib.sha256()
    for path in sorted([*_PACKAGE.rglob("_kernels.py"), _PACKAGE / "_kernel.py"]):
        digest.update(str(path.relative_to(_PACKAGE)).encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.digest()


@functools.lru_cache(maxsize=1)
def cache_directory() -> Path | None:
    """Where machine code is kept: ``NUMBA_CACHE_DIR``, else beside the package, else the user's cache; or nowhere.

    Where nothing can be written, kernels are compiled in memory for each process, and a warning says so once.
    """
    named = os.environ.get("NUMBA_CACHE_DIR")
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    candidates = [Path(named) / "calirank"] if named else [_PACKAGE / "__pycache__" / "kernels", user / "calirank"]
    for directory in candidates:
        if str(directory).startswith("~"):  # a user without a home
            continue
        try:
            directory.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=directory).close()
        except OSError:
            continue
        return directory
    _warn_uncached(f"none of {', '.join(map(str, candidates))} can be written")
    return None


def _warn_uncached(reason: str) -> None:
    """Once a process: a Python warning is shown once for one text and place, and this is the one place."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled kernels are not kept on disk ({reason}), so every process compiles them again; "
            "set NUMBA_CACHE_DIR to a folder that can be written",
            RuntimeWarning,
            stacklevel=2,
        )


_warned = False


class _DiskCache:
    """The machine code of one kernel on disk, one file a signature: what numba asks of the cache of a function.

    The name of a file holds a hash of everything its content depends on, and its content begins with its own SHA-256.
    Hence processes that write at the same time write the same bytes, nothing stale is ever read, and a damaged file is
    a miss. (numba's own cache keeps an index beside numbered files; two processes can leave an index that points to the
    code of another signature.) A folder that cannot be written costs a warning.
    """

    def __init__(self, function: Callable[..., Any], directory: Path) -> None:
        code = function.__code__
        file = Path(code.co_filename).resolve()
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.stamp = source_stamp(file)
        self.line = code.co_firstlineno
        self.directory = directory
        self.cache_path = str(directory)  # numba's statistics ask for it
        place = hashlib.sha256(str(file).encode()).hexdigest()[:12]
        self.stem = f"{self.name.replace('<', '').replace('>', '')}-{place}-"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled function for this signature, or None when it is not there or not whole."""
        from numba.core import compiler

        target_context.refresh()
        try:
            content = self._path(signature, target_context.codegen()).read_bytes()
        except OSError:
            return None
        digest, body = content[:32], content[32:]
        if hashlib.sha256(body).digest() != digest:
            return None
        try:
            return compiler.CompileResult._rebuild(target_context, *pickle.loads(body))
        except Exception:  # written by another build of numba or LLVM: whatever is wrong, compiling again is right
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a compiled function; older code of the same kernel goes."""
        from numba.core import serialize

        if compiled.library.has_dynamic_globals:
            raise ValueError(
                f"kernel {self.name} cannot be kept on disk, because it uses a large global array or a pointer: "
                "pass it as an argument"
            )
        body = serialize.dumps(compiled._reduce())
        path = self._path(signature, compiled.codegen)
        draft = path.with_name(f"{uuid.uuid4().hex}.tmp")
        try:
            draft.write_bytes(hashlib.sha256(body).digest() + body)
            draft.replace(path)
            self._remove_stale()
        except OSError as error:
            _warn_uncached(str(error))
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def enable(self) -> None:
        """Nothing to do: the cache is on from the start."""

    def disable(self) -> None:
        """Nothing to do: numba calls it on caches that it made itself."""

    def flush(self) -> None:
        """Remove what is kept of this kernel; numba calls it before it compiles all signatures again."""
        for path in self.directory.glob(f"{self.stem}*"):
            path.unlink(missing_ok=True)

    def _path(self, signature: Any, codegen: Any) -> Path:
        import numba

        build = (sys.version, numba.__version__, codegen.magic_tuple())
        key = hashlib.sha256(repr((build, self.line, signature)).encode()).hexdigest()
        return self.directory / f"{self.stem}{self.stamp[:16]}-{key[:32]}.bin"

    def _remove_stale(self) -> None:
        for path in self.directory.glob(f"{self.stem}*"):
            if not path.name.startswith(f"{self.stem}{self.stamp[:16]}-"):
                path.unlink(missing_ok=True)


# --- threads ---------------------------------------------------------------------------------------------------------

_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_pool_lock = threading.Lock()
_pools_of_parent: list[ThreadPoolExecutor] = []
_threads: int | None = None


def set_threads(n: int | None) -> None:
    """Use at most ``n`` threads from now on in this process; None: ``CALIRANK_THREADS``, else all cores we may use.

    Work that is under way in another thread ends with the number it began with.
    """
    global _threads
    if n is not None:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ValueError(f"the number of threads must be a whole number from 1 on, or None; got {n!r}")
        n = int(n)
    _threads = n


def get_threads() -> int:
    """How many threads kernels may use now."""
    if _threads is not None:
        return _threads
    named = os.environ.get("CALIRANK_THREADS", "").strip()
    if named:
        if not (named.isascii() and named.isdigit()) or int(named) < 1:
            raise ValueError(f"CALIRANK_THREADS must be a whole number from 1 on; got {named!r}")
        return int(named)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def run_tasks(tasks: Sequence[Callable[[], R]]) -> list[R]:
    """Run the tasks, at most :func:`get_threads` at once, and return their results in the order of the tasks.

    The calling thread works too, and alone where no other thread can be had, as at the end of the interpreter. One
    task, one thread, or a call from inside a task runs them one after the other. Tasks begin in their order and none
    begins after one has failed. The error of the first task that failed is raised, as it would be in a plain loop, and
    only when none runs any more, so that no thread still writes into the caller's arrays. The same holds for Ctrl-C.
    """
    threads = get_threads()
    if len(tasks) <= 1 or threads == 1 or _inside.task:
        return [task() for task in tasks]
    batch = _Batch(tasks)
    pool = _get_pool(threads - 1)  # held until the end: a pool that nobody holds ends its threads
    try:
        with suppress(RuntimeError):  # no thread can be started any more
            for _ in range(min(threads, len(tasks)) - 1):
                pool.submit(batch.help)
        batch.work()
    finally:
        batch.stop()
    return batch.take_results()


class _Inside(threading.local):
    """Whether this thread is inside a task."""

    task = False


_inside = _Inside()


class _Batch(Generic[R]):
    """The tasks of one call of :func:`run_tasks`, shared by the threads that work on them.

    Ctrl-C can strike the calling thread anywhere, so nothing that the others wait for depends on it: only helpers are
    counted, and the lock and the queue are the interpreter's own, which leave no gap for Ctrl-C (conditions do).
    """

    def __init__(self, tasks: Sequence[Callable[[], R]]) -> None:
        self.tasks = tasks
        self.results: list[Any] = [None] * len(tasks)
        self.errors: dict[int, BaseException] = {}
        self.next = self.helping = 0
        self.lock = threading.Lock()
        self.ended: SimpleQueue[None] = SimpleQueue()  # has an entry for each task that a helper has ended

    def work(self) -> None:
        """Take tasks until none is left, in the calling thread; Ctrl-C is raised here and now."""
        _inside.task = True
        try:
            while (number := self._take(helping=False)) is not None:
                self._run(number)
        finally:
            _inside.task = False

    def help(self) -> None:
        """Take tasks until none is left, in a thread of the pool; several do this at once."""
        while (number := self._take(helping=True)) is not None:
            try:
                self._run(number)
            except KeyboardInterrupt as error:
                self._fail(number, error)
            with self.lock:
                self.helping -= 1
            self.ended.put(None)

    def _take(self, *, helping: bool) -> int | None:
        with self.lock:
            if self.next >= len(self.tasks):
                return None
            number = self.next
            self.next += 1
            self.helping += helping
            return number

    def _run(self, number: int) -> None:
        try:
            self.results[number] = self.tasks[number]()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._fail(number, error)

    def _fail(self, number: int, error: BaseException) -> None:
        with self.lock:
            self.errors[number] = error
            self.next = len(self.tasks)

    def stop(self) -> None:
        """Begin no task any more and wait for those that run; Ctrl-C in the meantime is raised after that."""
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                with self.lock:
                    self.next = len(self.tasks)
                while self.helping:
                    self.ended.get()
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def take_results(self) -> list[R]:
        """The results, or the error of the first task that failed."""
        if self.errors:
            first = self.errors.pop(min(self.errors))
            self.errors.clear()
            try:
                raise first
            finally:
                del first  # an error that its own traceback refers to would keep the caller's arrays alive
        return self.results


def run_ranges(task: Callable[[int, int], object], offsets: NDArray[np.int64], *, small: int = SMALL) -> None:
    """Call ``task(start, stop)`` on ranges of lists that cover all lists, with about equal numbers of items.

    Few items (below ``small``) are one range. Four ranges a thread keep the threads busy when lists differ in cost.
    """
    lists = len(offsets) - 1
    if lists <= 0:
        return
    threads = get_threads()
    items = int(offsets[-1] - offsets[0])
    if items < small or threads == 1 or lists == 1 or _inside.task:
        task(0, lists)
        return
    cuts = split_evenly(offsets, min(4 * threads, lists))
    run_tasks([functools.partial(task, a, b) for a, b in itertools.pairwise(cuts)])


def split_evenly(offsets: NDArray[np.int64], parts: int) -> list[int]:
    """Cut points 0 = c0 < c1 < … = number of lists, so that each range of lists has about as many items.

    >>> split_evenly(np.array([0, 5, 10, 15, 20]), 2)
    [0, 2, 4]
    """
    lists = len(offsets) - 1
    goals = offsets[0] + (offsets[-1] - offsets[0]) * np.arange(1, parts) / parts
    inner = np.searchsorted(offsets, goals)
    return cast(list[int], np.unique(np.concatenate([[0], inner, [lists]])).tolist())


def _get_pool(threads: int) -> ThreadPoolExecutor:
    """The pool of so many helpers, made when first needed and when their number has changed.

    The pool that it replaces is left to those who still hold it; when the last one lets go, its threads end.
    """
    global _pool, _pool_size
    with _pool_lock:
        if _pool is None or _pool_size != threads:
            _pool, _pool_size = ThreadPoolExecutor(threads, "calirank", initializer=_enter_pool), threads
        return _pool


def _enter_pool() -> None:
    _inside.task = True


def _after_fork_in_child() -> None:
    """Threads do not survive a fork: the child leaves its parent's pool and lock alone and makes its own."""
    global _pool, _pool_lock
    if _pool is not None:
        _pools_of_parent.append(_pool)  # never taken down: that would touch locks that a lost thread may hold
    _pool, _pool_lock = None, threading.Lock()
    _inside.task = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
