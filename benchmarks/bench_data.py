"""Reading LETOR text: calirank against scikit-learn, LightGBM and XGBoost, in one run.

    python benchmarks/bench_data.py                         # text that the script makes
    python benchmarks/bench_data.py --data ../shared/data   # MQ2007, its five parts joined
    python benchmarks/bench_data.py --out results.json      # keeps the numbers, with machine and commit

Every reader first reads a small file (so that kernels are compiled and libraries loaded), then all take turns, and the
best of their times counts. Peak memory is measured in a process of its own, beyond what stood there before the read.
What the peers do differs: scikit-learn makes CSR of float64 and drops comments; XGBoost makes CSR of float32; LightGBM
cannot read ``qid:``, so it is given the same text without it and the sizes in a ``.query`` file, and its Dataset is
binned as well as read.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Reader:
    name: str
    threads: tuple[int, ...]
    read: Callable[[Path, int], Any]
    nbytes: Callable[[Any], int | None]


def _calirank(path: Path, threads: int) -> Any:
    import calirank as cr

    cr.set_threads(threads)
    return cr.read_letor(path)


def _calirank_bytes(data: Any) -> int:
    arrays = (data.X, data.y, data.offsets, data.query_ids, data.doc_ids)
    return sum(array.nbytes for array in arrays if array is not None)


def _sklearn(path: Path, _threads: int) -> Any:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(str(path), query_id=True)


def _sklearn_bytes(result: Any) -> int:
    X, y, qid = result
    return sum(array.nbytes for array in (X.data, X.indices, X.indptr, y, qid))


def _lightgbm(path: Path, threads: int) -> Any:
    import lightgbm

    return lightgbm.Dataset(str(_without_qid(path)), params={"num_threads": threads, "verbose": -1}).construct()


def _xgboost(path: Path, threads: int) -> Any:
    import xgboost

    return xgboost.DMatrix(f"{path}?format=libsvm", nthread=threads)


READERS = [
    Reader("calirank", (1, 2), _calirank, _calirank_bytes),
    Reader("scikit-learn", (1,), _sklearn, _sklearn_bytes),
    Reader("LightGBM", (1, 2), _lightgbm, lambda _: None),
    Reader("XGBoost", (1, 2), _xgboost, lambda _: None),
    Reader("(bytes only)", (1,), lambda path, _: path.read_bytes(), len),
]


# --- the text --------------------------------------------------------------------------------------------------------


def make_text(path: Path, rows: int) -> None:
    """About as many bytes a row as MQ2007: 46 features of six decimals, half of them zero, and a comment."""
    random = np.random.default_rng(0)
    with open(path, "w") as out:
        for row in range(rows):
            values = np.where(random.random(46) < 0.5, 0, random.random(46))
            features = " ".join(f"{j}:{x:.6f}" for j, x in enumerate(values.tolist(), 1))
            out.write(f"{row % 3} qid:{row // 40} {features} #docid = GX{row:07d} inc = 1 prob = {values[0]:.6f}\n")


def join_mq2007(path: Path, data: Path) -> bool:
    parts = [data / f"letor4/MQ2007/S{part}.txt.xz" for part in range(1, 6)]
    if not all(part.is_file() for part in parts):
        return False
    path.write_bytes(b"".join(lzma.decompress(part.read_bytes()) for part in parts))
    return True


def _without_qid(path: Path) -> Path:
    return path.with_suffix(".svm")


def make_lightgbm_text(path: Path) -> None:
    """The same rows without qid and comments, and the sizes of the queries beside them."""
    text = path.read_bytes()
    queries = np.array(re.findall(rb"qid:(\S+)", text))
    starts = np.flatnonzero(np.concatenate([[True], queries[1:] != queries[:-1]]))
    sizes = np.diff(np.append(starts, len(queries)))
    target = _without_qid(path)
    target.write_bytes(re.sub(rb" qid:\S+| *#[^\n]*", b"", text))
    target.with_name(target.name + ".query").write_text("".join(f"{size}\n" for size in sizes))


# --- measuring -------------------------------------------------------------------------------------------------------


def time_all(path: Path, small: Path, runs: int) -> dict[tuple[str, int], float | str]:
    """The best time of each reader and number of threads, all taking turns; a word where one cannot read."""
    best: dict[tuple[str, int], float | str] = {}
    cases = [(reader, threads) for reader in READERS for threads in reader.threads]
    for reader, threads in cases:
        try:
            reader.read(small, threads)
        except ImportError:
            best[reader.name, threads] = "not installed"
    for _ in range(runs):
        for reader, threads in cases:
            before = best.get((reader.name, threads), float("inf"))
            if isinstance(before, float):
                start = time.perf_counter()
                reader.read(path, threads)
                best[reader.name, threads] = min(before, time.perf_counter() - start)
    return best


def memory_in_a_process(name: str, threads: int, path: Path, small: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", name, str(threads), str(path), str(small)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def measure(name: str, threads: int, path: Path, small: Path) -> None:
    """Print the peak of resident memory during one read, beyond what was there before, and the size of the result."""
    reader = next(reader for reader in READERS if reader.name == name)
    reader.read(small, threads)
    if os.path.exists("/proc/self/clear_refs"):
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _status("VmRSS")
    result = reader.read(path, threads)
    print(json.dumps({"peak": _status("VmHWM") - before, "result": reader.nbytes(result)}))


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo")
    models = re.findall(r"model name\s*: (.*)", info.read_text()) if info.is_file() else []
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    versions = {}
    for name in ("numpy", "numba", "sklearn", "lightgbm", "xgboost"):
        try:
            versions[name] = __import__(name).__version__
        except ImportError:
            versions[name] = None
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "commit": commit.stdout.strip() or None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with letor4/MQ2007; without it the text is made")
    parser.add_argument("--rows", type=int, default=69_623, help="rows of text to make")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, threads, path, small = options.measure
        measure(name, int(threads), Path(path), Path(small))
        return

    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "text.txt", Path(folder) / "small.txt"
        real = options.data is not None and join_mq2007(path, options.data)
        if not real:
            make_text(path, options.rows)
        make_text(small, 200)
        for text in (path, small):
            make_lightgbm_text(text)
        size = path.stat().st_size
        print(f"{'MQ2007, five parts joined' if real else 'made text'}: {size / 1e6:.1f} MB, best of {options.runs}\n")
        times = time_all(path, small, options.runs)
        peer = times["scikit-learn", 1]
        rows = []
        print(
            f"{'reader':<14}{'threads':>8}{'seconds':>10}{'MB/s':>8}"
            f"{'x sklearn':>11}{'peak MB':>10}{'peak / (file + result)':>24}"
        )
        for (name, threads), seconds in times.items():
            if isinstance(seconds, str):
                print(f"{name:<14}{threads:>8}  {seconds}")
                continue
            memory = memory_in_a_process(name, threads, path, small) if sys.platform.startswith("linux") else {}
            ratio = peer / seconds if isinstance(peer, float) else None
            share = memory["peak"] / (size + memory["result"]) if memory.get("result") else None
            rows.append(
                {"reader": name, "threads": threads, "seconds": seconds, "times_sklearn": ratio, "memory_share": share}
                | {f"{key}_bytes": value for key, value in memory.items()}
            )
            print(
                f"{name:<14}{threads:>8}{seconds:>10.4f}{size / seconds / 1e6:>8.0f}"
                f"{'' if ratio is None else f'{ratio:.1f}':>11}{memory.get('peak', 0) / 1e6:>10.1f}"
                f"{'' if share is None else f'{share:.2f}':>24}"
            )
        if options.out:
            result = {"text": "MQ2007" if real else "made", "bytes": size, "runs": options.runs, "readers": rows}
            options.out.write_text(json.dumps({"machine": machine(), **result}, indent=2) + "\n")


if __name__ == "__main__":
    main()
