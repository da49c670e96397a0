"""Fuzzing of the LETOR reader with atheris, run by hand: both readers agree on every text, or the run stops with it.

    pip install atheris
    python tests/fuzz/fuzz_letor.py -max_total_time=300

The compiled parser cannot be watched for coverage, but its plain twin can: it has the same branches, so that inputs are
sought that reach all of them. Options are libFuzzer's.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SEEDS = [
    b"2 qid:1 1:0.5 3:1 #docid = A\n0 qid:1 2:4e-1 #docid = B\n1 qid:7 1:-0.0 2:2 3:3 #docid = C\n",
    b"\xef\xbb\xbf1 qid:b 7:.5 3:5. 4:12345678901234567890\r\n\r\n# comment\n1.5\tqid:-3  1:1e38 2:3.4028235e38#x\n",
    b"1 qid:1 1:0.12345678901234567 2:16777217 3:1e-45 1000000:7.006492321624086e-46",
    b"1 qid:1\n1 qid:2\n1 qid:1\n",
    b"1 1:1\n",
]


def main() -> None:
    import atheris

    with atheris.instrument_imports(include=["data.reference_letor"]):
        from data import reference_letor  # noqa: F401 - imported first, so that it is watched
    from data.test_letor import assert_twins_agree

    def check(data: bytes) -> None:
        if not data:
            return
        choice, text = data[0], data[1:]
        block_size = (1, 20, 64, 1 << 20)[choice & 3]
        base = (1, 0, "auto", 1)[choice >> 2 & 3]
        width = {} if base == "auto" or not choice & 16 else {"n_features": 7}
        assert_twins_agree(text, block_size=block_size, base=base, dense=False, **width)

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(SEEDS):
            (Path(corpus) / str(number)).write_bytes(b"\0" + seed)
        atheris.Setup([*sys.argv, corpus], check)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
