"""Metrics: calirank against every library that computes some of the same, in one run.

    python benchmarks/bench_metrics.py                      # everything, in a few minutes
    python benchmarks/bench_metrics.py --quick --only a,b   # small sizes, some parts
    python benchmarks/bench_metrics.py --ties               # what each library does with tied scores
    python benchmarks/bench_metrics.py --markdown           # the tables as the documentation shows them
    python benchmarks/bench_metrics.py --out results.json   # keeps the numbers, with machine and commit

Everybody runs on one thread and evaluates from input of the library's own kind, built beforehand; what counts is one
evaluation, its sorting included. A library computes those of NDCG@10, NDCG, AP, ERR, P@10 and RR that it has, calirank
all six. A first call on a small sample warms up, a second one estimates the time; the best of several runs counts.
What depends on the labels alone calirank keeps with its RankingData, as LightGBM does with its Dataset; "labels not
seen before" is a call that still has that to do. Scores have no ties here, so that all libraries must agree to 1e-6.
The floor is ``np.sort`` of as many uint64 keys. On a machine with other work to do, ``--cpu`` counts processor time.

The parts: (a) 10,000 lists of 120, (b) 1,000 of 1,000, (c) 100 of 100,000, (d) 1.2 million documents in lists of 1 to
2,000, (e) a million lists of 1 to 20; "tied" is one list of 100,000 with one score, "call" one list of 100 by
``metric(labels, scores=…)``, "ties" the same tied file for all libraries.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before the libraries are loaded
os.environ["NUMBA_NUM_THREADS"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import numpy as np
from _metric_peers import CORE, MAX_GRADE, PEERS, Lists, Peer
from bench_data import machine

import calirank as cr

PARTS = ("a", "b", "c", "d", "e", "tied", "call", "ties")
SHORT = {"ndcg@10": "NDCG@10", "ndcg": "NDCG", "ap": "AP", "err": "ERR", "precision@10": "P@10", "rr": "RR"}
SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)  # of the grades 0 to 4


# --- workloads -------------------------------------------------------------------------------------------------------


def make_lists(sizes: Iterable[int], *, distinct: bool) -> Lists:
    """Normal scores and graded labels; with ``distinct`` no two scores of a list are equal (lists of one length)."""
    random = np.random.default_rng(0)
    sizes = np.asarray(sizes, dtype=np.int64)
    labels = random.choice(len(SHARES), p=SHARES, size=sizes.sum()).astype(np.float32)
    scores = random.standard_normal(len(labels), dtype=np.float32)
    if distinct:
        square = scores.reshape(len(sizes), -1)
        again = np.arange(len(sizes))
        while len(again):
            order = np.argsort(square[again], axis=1)
            by_score = np.take_along_axis(square[again], order, axis=1)
            row, place = np.nonzero(by_score[:, 1:] == by_score[:, :-1])
            square[again[row], order[row, place]] = random.standard_normal(len(row), dtype=np.float32)
            again = again[np.unique(row)]
    return Lists(labels, scores, sizes)


def workload(part: str, quick: bool) -> Lists:
    share = 50 if quick else 1
    if part in ("a", "b", "c"):
        count, length = {"a": (10_000, 120), "b": (1_000, 1_000), "c": (100, 10_000 if quick else 100_000)}[part]
        return make_lists(np.full(count // share, length), distinct=True)
    random = np.random.default_rng(1)
    if part == "e":
        return make_lists(random.integers(1, 21, size=1_000_000 // share), distinct=False)
    documents = 1_200_000 // share
    sizes = np.clip(np.rint(random.lognormal(4.5, 1.0, size=documents // 20)), 1, 2000).astype(np.int64)
    sizes = sizes[: np.searchsorted(np.cumsum(sizes), documents) + 1]
    sizes[-1] -= sizes.sum() - documents
    return make_lists(sizes, distinct=False)


def in_words(lists: Lists) -> str:
    lengths = f"{lists.n:,}" if lists.sizes.min() == lists.n else f"{lists.sizes.min():,} to {lists.n:,}"
    return f"{len(lists.sizes):,} lists of {lengths}"


def keys_of(lists: Lists) -> np.ndarray:
    """Score and label of each document in one integer; integers sort as the scores do."""
    bits = lists.scores.view(np.int32).astype(np.int64)
    ordered = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits) + 2**31
    return lists.square(ordered.astype(np.uint64) << np.uint64(32) | lists.labels.astype(np.uint64))


# --- timing ----------------------------------------------------------------------------------------------------------


class Timer:
    """The best of several runs, also of runs at different times; ``cores`` says how many were busy."""

    clock = staticmethod(time.perf_counter)

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.best = float("inf")
        self.wall = self.cpu = 0.0

    @property
    def cores(self) -> float:
        return self.cpu / self.wall

    def run(self, runs: int, seconds: float = 2.0) -> Timer:
        """At most this many runs; no new one once so many seconds have passed."""
        start = time.perf_counter()
        for _ in range(runs):
            cpu, wall, before = time.process_time(), time.perf_counter(), self.clock()
            self.call()
            self.best = min(self.best, self.clock() - before)
            self.wall += time.perf_counter() - wall
            self.cpu += time.process_time() - cpu
            if time.perf_counter() - start > seconds:
                break
        return self


class WallTimer(Timer):
    """Always by the clock on the wall: for more threads than one."""

    clock = staticmethod(time.perf_counter)


def ours(lists: Lists, metrics: Sequence[str] = CORE, fresh: int = 0) -> Callable[[], dict[str, float]]:
    """One evaluation by calirank; ``fresh`` is a number of calls that each find data that no call has seen before."""
    data = [cr.RankingData(y=lists.labels, sizes=lists.sizes) for _ in range(max(1, fresh))]

    def call() -> dict[str, float]:
        table = cr.evaluate(lists.scores, data.pop() if fresh else data[0], list(metrics))
        return {metric: float(table[metric].mean) for metric in metrics}

    return call


def time_peer(peer: Peer, lists: Lists, limit: float, runs: int) -> dict[str, Any]:
    """The time and the values of one library, or a word on why there are none."""
    try:
        importlib.import_module(peer.module)
    except ImportError:
        return {"skipped": f"not installed{f': {peer.install}' * bool(peer.install)}"}
    try:
        peer.prepare(lists.head(2, longest=50))()  # compiles and loads
        sample = max(1, len(lists.sizes) // 100)
        call = peer.prepare(lists.head(sample))
        estimate = Timer(call).run(1).best * len(lists.sizes) / sample
        if estimate > limit:
            return {"skipped": f"about {estimate:.0f} s, beyond the limit of {limit:g} s", "estimate": estimate}
        start = time.perf_counter()
        call = peer.prepare(lists)
        built = time.perf_counter() - start
        values: dict[str, float] = {}
        timer = Timer(lambda: values.update(call()))
        if estimate < 1:
            timer.call()
        timer.run(runs)
    except Exception as error:
        return {"skipped": f"fails: {type(error).__name__}: {first_line(error)}"}
    return {"seconds": timer.best, "cores": timer.cores, "built": built, "values": values}


def first_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error)).strip()[:100]


# --- the parts -------------------------------------------------------------------------------------------------------


def against_peers(part: str, lists: Lists, peers: Sequence[Peer], options: argparse.Namespace, show: Show) -> Any:
    """(a), (b), (c): every library, and the floor."""
    keys = keys_of(lists)
    floor = Timer(lambda: np.sort(keys, axis=1))
    mine = Timer(ours(lists))
    mine.call()  # compiles
    found: dict[str, Any] = {}
    for peer in peers:  # ours and the floor take a turn before each library
        floor.run(options.runs, seconds=0.3)
        mine.run(options.runs, seconds=0.5)
        found[peer.name] = time_peer(peer, lists, options.limit, options.runs)
    floor.run(options.runs, seconds=1)
    mine.run(options.runs, seconds=2)
    unseen = Timer(ours(lists, fresh=5)).run(5)

    names = sorted({name for result in found.values() for name in result.get("values", {})} | set(CORE))
    exact = ours(lists, names)()
    rows = [
        ["calirank", milliseconds(mine.best), computed(CORE), "1", "", ""],
        ["", milliseconds(unseen.best), computed(CORE), f"{unseen.best / mine.best:.1f}", "", "labels not seen before"],
    ]
    for peer in peers:
        result = found[peer.name]
        if "skipped" in result:
            rows.append([peer.name, "", "", "", "", result["skipped"]])
            continue
        result["ratio"] = result["seconds"] / mine.best
        result["difference"] = max(abs(value - exact[name]) for name, value in result["values"].items())
        result["agrees"] = result["difference"] <= (1e-3 if peer.single else 1e-6)
        agrees = ("yes" if result["difference"] <= 1e-6 else "in single precision") if result["agrees"] else "NO"
        busy = f"{result['cores']:.1f} cores" if result["cores"] > 1.3 else ""
        rows.append(
            [
                peer.name,
                milliseconds(result["seconds"]),
                computed(result["values"]),
                f"{result['ratio']:.1f}",
                f"{agrees}, {result['difference']:.0e}",
                "; ".join(filter(None, (peer.note, busy))),
            ]
        )
    floors = mine.best / floor.best
    rows.append(["np.sort of the keys", milliseconds(floor.best), "(the floor)", f"1/{floors:.1f}", "", ""])
    title = f"({part}) {in_words(lists)}: {floors:.1f} floors, {per_document(mine.best, lists)}"
    show(title, ["library", "ms", "metrics", "x ours", "agrees to 1e-6", ""], rows)
    values = ours(lists)()
    times = {"seconds": mine.best, "unseen": unseen.best, "floor": floor.best}
    return times | {"documents": lists.n_docs, "values": values, "peers": found}


def ragged(parts: Sequence[str], options: argparse.Namespace, show: Show) -> Any:
    """(d), (e): lists of many lengths, ours alone, taking turns with (a)."""
    names = {"a": "lists of 120", "d": "log-normal lengths from 1 to 2,000", "e": "lists of 1 to 20"}
    loads = {part: workload(part, options.quick) for part in names if part == "a" or part in parts}
    timers = {part: Timer(ours(lists)) for part, lists in loads.items()}
    for _ in range(3):
        for timer in timers.values():
            timer.call()
            timer.run(options.runs, seconds=0.7)
    each = {part: timer.best / loads[part].n_docs for part, timer in timers.items()}
    rows = [
        [
            f"({part}) {names[part]}",
            f"{loads[part].n_docs:,}",
            milliseconds(timer.best),
            f"{each[part] * 1e9:.1f}",
            f"{each[part] / each['a']:.2f}",
        ]
        for part, timer in timers.items()
    ]
    show("Lists of many lengths", ["", "documents", "ms", "ns a document", "x (a)"], rows)
    return {
        part: {"seconds": timer.best, "documents": loads[part].n_docs, "ratio_to_a": each[part] / each["a"]}
        for part, timer in timers.items()
        if part != "a"
    }


def two_threads(parts: Sequence[str], options: argparse.Namespace, show: Show) -> Any:
    """(a) to (d) on one and on two threads, taking turns."""
    rows, results = [], {}
    for part in parts:
        call = ours(workload(part, options.quick))
        one, two = WallTimer(call), WallTimer(call)
        for _ in range(3):
            for threads, timer in ((1, one), (2, two)):
                cr.set_threads(threads)
                call()
                timer.run(options.runs, seconds=0.7)
        cr.set_threads(1)
        rows.append([f"({part})", milliseconds(one.best), milliseconds(two.best), f"{one.best / two.best:.2f}"])
        results[part] = {"one": one.best, "two": two.best}
    show("Two threads against one", ["", "one, ms", "two, ms", "times faster"], rows)
    return results


def graded_metrics(labels: Sequence[float]) -> tuple[list[str], dict[str, str]]:
    """The registered metrics that take such grades, and for the others the reason why not."""
    takes: list[str] = []
    refuses: dict[str, str] = {}
    grades = np.asarray(labels, dtype=np.float64)
    for name, _ in cr.names.METRICS:
        try:
            metric = cr.metric(name)
            float(metric(grades, scores=np.arange(len(grades), dtype=np.float64)))
            cr.evaluate(np.zeros(len(grades)), cr.RankingData(y=grades, sizes=[len(grades)]), [name])
        except (TypeError, ValueError) as error:
            refuses[name] = first_line(error)
        else:
            takes.append(name)
    return takes, refuses


def one_tie(options: argparse.Namespace, show: Show) -> Any:
    """One list with one score: all metrics against one sort."""
    n = 5_000 if options.quick else 100_000
    random = np.random.default_rng(2)
    keys = random.permutation(n).astype(np.uint64) * np.uint64(2**64 // n)
    floor = Timer(lambda: np.sort(keys)).run(50, seconds=1)
    results: dict[str, Any] = {"floor": floor.best}
    rows = []
    kinds = {
        f"uniform on [0, {MAX_GRADE}]": random.uniform(0, MAX_GRADE, n),
        "five grades, 97 % zero": random.choice(5, p=(0.97, 0.01, 0.01, 0.005, 0.005), size=n).astype(np.float64),
    }
    for kind, labels in kinds.items():
        names, refuses = graded_metrics([0.5, 2.5, 0.0] if "uniform" in kind else [1, 0, 4])
        lists = Lists(labels, np.zeros(n, np.float32), np.array([n]))
        timers = {"all at once": Timer(ours(lists, names))} | {name: Timer(ours(lists, [name])) for name in names}
        for name, timer in timers.items():
            timer.call()
            timer.run(options.runs, seconds=0.5)
            rows.append([kind, name, milliseconds(timer.best), f"{timer.best / floor.best:.1f}"])
        results[kind] = {name: timer.best for name, timer in timers.items()} | {"refused": refuses}
        if refuses:
            rows.append([kind, "refused: " + ", ".join(refuses), "", ""])
    rows.append(["", "np.sort of distinct keys", milliseconds(floor.best), "1"])
    show(f"One list of {n:,}, all scores tied", ["labels", "metric", "ms", "sorts"], rows)
    return results


def one_call(options: argparse.Namespace, show: Show) -> Any:
    """``metric(labels, scores=…)`` for one list of 100."""
    random = np.random.default_rng(3)
    labels, scores = random.choice(5, p=SHARES, size=100), random.standard_normal(100)
    loops = 20 if options.quick else 200
    results = {}
    for name in graded_metrics([1, 0, 4])[0]:
        metric = cr.metric(name)

        def many(metric: Any = metric) -> None:
            for _ in range(loops):
                metric(labels, scores=scores)

        many()
        results[name] = Timer(many).run(5, seconds=0.5).best / loops
    rows = [[name, f"{seconds * 1e6:.1f}"] for name, seconds in results.items()]
    show("metric(labels, scores=…), one list of 100", ["metric", "µs"], rows)
    return results


def tied_file(quick: bool) -> Lists:
    """2,000 lists of 120 with about six scores, the relevant documents stored first."""
    random = np.random.default_rng(4)
    shape = (100 if quick else 2_000, 120)
    labels = -np.sort(-random.choice(len(SHARES), p=SHARES, size=shape), axis=1)
    scores = np.clip(np.rint(random.standard_normal(shape) + 0.4 * labels), -2, 3)
    sizes = np.full(shape[0], shape[1])
    return Lists(labels.ravel().astype(np.float32), scores.ravel().astype(np.float32), sizes)


def tied_scores(peers: Sequence[Peer], options: argparse.Namespace, show: Show) -> Any:
    """What each library makes of tied scores: NDCG@10 in both orders of the rows, and with other document names."""
    lists = tied_file(options.quick)
    names = np.tile(np.arange(lists.n), len(lists.sizes))
    back = np.arange(lists.n_docs).reshape(len(lists.sizes), -1)[:, ::-1].ravel()
    turned = Lists(lists.labels[back], lists.scores[back], lists.sizes, names[back])
    renamed = replace(lists, names=lists.n - 1 - names)
    gains = {"ndcg@10": "exponential", "ndcg(gain=linear)@10": "linear"}
    exact, again = (ours(each, list(gains))() for each in (lists, turned))
    rows = []
    for name, gain in gains.items():
        offs = ["+0.0000", f"{round(again[name] - exact[name], 4) + 0:+.4f}", ""]
        rows.append(["calirank", gain, f"{exact[name]:.4f}", f"{exact[name]:.4f}", *offs, "no order: the exact mean"])
    results: dict[str, Any] = {"exact": exact}
    for peer in peers:
        try:
            found = [peer.prepare(each)() for each in ([lists, turned, renamed] if peer.named else [lists, turned])]
        except ImportError:
            rows.append([peer.name, *[""] * 6, "not installed"])
            continue
        except Exception as error:
            rows.append([peer.name, *[""] * 6, f"fails: {first_line(error)}"])
            continue
        name = next(name for name in gains if name in found[0])
        off = [values[name] - exact[name] for values in found]
        results[peer.name] = {"gain": gains[name]} | dict(zip(("given", "reversed", "renamed"), off, strict=False))
        shown = [f"{round(x, 4) + 0:+.4f}" for x in off] + [""] * (3 - len(off))
        rows.append([peer.name, gains[name], f"{exact[name]:.4f}", f"{found[0][name]:.4f}", *shown, peer.ties])
    heads = ["library", "gain", "exact", "NDCG@10", "off", "rows reversed", "documents renamed", "ties are broken by"]
    show(f"Tied scores: {in_words(lists)}, about 6 scores, relevant documents first", heads, rows)
    return results


# --- tables ----------------------------------------------------------------------------------------------------------


class Show:
    """Prints tables: plain, or as Markdown."""

    def __init__(self, markdown: bool) -> None:
        self.markdown = markdown

    def __call__(self, title: str, heads: list[str], rows: list[list[str]]) -> None:
        print(f"\n{'### ' if self.markdown else ''}{title}\n")
        if self.markdown:
            print("\n".join(f"| {' | '.join(cells)} |" for cells in [heads, ["---"] * len(heads), *rows]), flush=True)
            return
        widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
        for row in [heads, *rows]:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip(), flush=True)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f}" if seconds < 0.1 else f"{seconds * 1e3:,.0f}"


def per_document(seconds: float, lists: Lists) -> str:
    return f"{seconds / lists.n_docs * 1e9:.1f} ns a document"


def computed(metrics: Iterable[str]) -> str:
    found = {metric.replace("(gain=linear)", "") for metric in metrics}
    linear = any("linear" in metric for metric in metrics)
    return " ".join(short for name, short in SHORT.items() if name in found) + (" (linear gain)" if linear else "")


def versions(peers: Sequence[Peer]) -> dict[str, str | None]:
    distributions = importlib.metadata.packages_distributions()
    found: dict[str, str | None] = {}
    for module in ("numpy", "numba", *(peer.module for peer in peers), "torch", "jax"):
        names = distributions.get(module, [])
        found[module] = importlib.metadata.version(names[0]) if names else None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", help=f"some parts of {','.join(PARTS)}")
    parser.add_argument("--ties", action="store_true", help="the same as --only ties")
    parser.add_argument("--peers", help="some of the libraries, by their modules, such as lightgbm,sklearn; none: ''")
    parser.add_argument("--limit", type=float, default=60, help="seconds that one evaluation may take")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--cpu", action="store_true", help="count processor time instead of the clock on the wall")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    parts = ["ties"] if options.ties else options.only.split(",") if options.only else list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--only takes some of {','.join(PARTS)}; got {','.join(sorted(unknown))}")
    wanted = None if options.peers is None else set(options.peers.lower().split(",")) - {""}
    peers = [peer for peer in PEERS if wanted is None or peer.module in wanted]
    if wanted and (unknown := wanted - {peer.module for peer in PEERS}):
        parser.error(f"--peers: no library {','.join(sorted(unknown))}")

    warnings.filterwarnings("ignore", message=".*unsafe cast from uint64")  # ranx, while it compiles
    cr.set_threads(1)
    show = Show(options.markdown)
    if options.cpu:
        Timer.clock = staticmethod(time.process_time)
    results: dict[str, Any] = {}
    for part in parts:
        if part in ("a", "b", "c"):
            results[part] = against_peers(part, workload(part, options.quick), peers, options, show)
    if "d" in parts or "e" in parts:
        results |= ragged(parts, options, show)
    if several := [part for part in parts if part in ("a", "b", "c", "d")]:
        results["threads"] = two_threads(several, options, show)
    for part, run in (("tied", one_tie), ("call", one_call)):
        if part in parts:
            results[part] = run(options, show)
    if "ties" in parts:
        results["ties"] = tied_scores(peers, options, show)
    if options.out:
        about = machine() | {"versions": versions(peers)}
        result = {"machine": about, "quick": options.quick, "cpu_time": options.cpu, "limit": options.limit}
        options.out.write_text(json.dumps(result | results, indent=2) + "\n")
    wrong = [
        f"{name} in ({part})"
        for part in "abc"
        for name, result in results.get(part, {}).get("peers", {}).items()
        if not result.get("agrees", True)
    ]
    if wrong:
        raise SystemExit(f"\nthe numbers of these libraries are not ours: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
