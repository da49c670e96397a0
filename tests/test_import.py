"""``import calirank`` is light, and every module imports only what stands above it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import calirank

PACKAGE = Path(calirank.__file__).resolve().parent

#: What must not be loaded before it is needed.
HEAVY = [
    "numba",
    "llvmlite",
    "scipy",
    "sklearn",
    "lightgbm",
    "xgboost",
    "torch",
    "pandas",
    "polars",
    "pyarrow",
    "narwhals",
    "zstandard",
    "highspy",
    "typer",
    "rich",
    "matplotlib",
]

#: The modules from the floor up: each imports only what stands above it here. A new module takes its place in the list.
ORDER = [
    "guarantees",
    "names",
    "orders",
    "_kernel",
    "_extras",
    "_progress",
    "data",
    "data._files",
    "data.ragged",
    "data._kernels",
    "data.supervision.base",
    "data.supervision.judgements",
    "data.supervision.preferences",
    "data.supervision.rankings",
    "data.supervision",
    "data.arguments",
    "data.ranking_data",
    "data.combine",
    "data.folder",
    "data.describe",
    "data._csv",
    "data._letor_errors",
    "data._letor_parse",
    "data.letor",
    "data._table_roles",
    "data._table_reading",
    "data._table_writing",
    "data.tables",
    "data.npz",
    "data.trec",
    "data.preflib",
    "data.label_ranking",
    "data.rankings_csv",
    "data.preferences_csv",
    "data.formats",
    "data.synthetic.truth",
    "data.synthetic.grades",
    "data.synthetic.jaguar",
    "data.synthetic.dcg_vs_ndcg",
    "data.synthetic.err_islands",
    "data.synthetic.preferences",
    "data.synthetic.rankings",
    "data.synthetic",
    "metrics.ties",
    "metrics.ties._kernels",
    "metrics._kernels",
    "metrics.lists",
    "metrics.base",
    "metrics.gains",
    "metrics.positional",
    "metrics.relevance",
    "metrics.dcg",
    "metrics.ndcg",
    "metrics.precision",
    "metrics.recall",
    "metrics.auc",
    "metrics.eru",
    "metrics.rbp",
    "metrics.ap",
    "metrics.rr",
    "metrics.err",
    "metrics.judged._kernels",
    "metrics.judged",
    "metrics.pd",
    "metrics.spearman",
    "metrics.kendall",
    "metrics.zero_one",
    "metrics.sums",
    "metrics.custom",
    "metrics.bounds._kernels",
    "metrics.bounds",
    "metrics.profiles",
    "metrics",
    "evaluation",
    "evaluation.rendering",
    "evaluation.statistics",
    "evaluation.comparison",
    "evaluation.alignment",
    "evaluation.values",
    "evaluation.table",
    "evaluation.evaluate",
    "evaluation.compare",
    "evaluation.command",
    "demo",
    "cli",
    "__main__",
]

#: Methods of RankingData that hand over to a file of their own, which makes RankingData again.
HANDED_OVER = {("data.ranking_data", "data.combine"), ("data.ranking_data", "data.folder")}


def sources() -> dict[str, Path]:
    """The file of each module, by its name inside the package; "" is the package itself."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def running_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those under ``if TYPE_CHECKING:``, which only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from (other, *running_statements(other))
        else:
            yield from (node, *running_statements(node))


def imports(module: str, text: str, is_package: bool, known: set[str]) -> set[str]:
    """The modules of the package that a module imports, at its top or inside functions; "" is the package itself."""
    home = ["calirank", *module.split(".")] if module else ["calirank"]
    found = set()
    for node in running_statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level + is_package] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                found.add(inner if inner.removeprefix("calirank.") in known else origin)
    inside = {name for name in found if name.split(".")[0] == "calirank"}
    return {name.removeprefix("calirank").removeprefix(".") for name in inside}


def faults(module: str, imported: set[str]) -> list[str]:
    """What a module imports from below its own place, the package itself (which imports lazily) left out."""
    place = ORDER.index(module)
    allowed = {"", module, *ORDER[:place]} | {other for one, other in HANDED_OVER if one == module}
    return [f"{module} imports {other}" for other in sorted(imported - allowed)]


def test_every_module_has_its_place_in_the_order() -> None:
    assert [module for module in sources() if module and module not in ORDER] == []
    assert len(ORDER) == len(set(ORDER))


def test_each_module_imports_only_what_stands_above_it() -> None:
    found = sources()
    wrong = []
    for module, path in found.items():
        if module:
            imported = imports(module, path.read_text(), path.name == "__init__.py", set(found))
            wrong += faults(module, imported)
    assert wrong == []


def test_what_is_handed_over_is_really_imported() -> None:
    found = sources()
    for module, other in HANDED_OVER:
        assert other in imports(module, found[module].read_text(), False, set(found))


@pytest.mark.parametrize(
    ("module", "text", "imported"),
    [
        ("names", "import calirank.orders", {"orders"}),
        ("names", "import numpy, calirank", {""}),
        ("names", "from calirank import orders, __version__", {"orders", ""}),
        ("names", "from calirank.orders import ranks", {"orders"}),
        ("names", "def f():\n    if True:\n        from calirank import cli", {"cli"}),
        ("names", "from . import orders", {"orders"}),
        ("data.letor", "from .ragged import offsets_of", {"data.ragged"}),
        ("data.letor", "from .. import orders", {"orders"}),
        ("data.letor", "from ..orders import ranks", {"orders"}),
        ("data", "from .letor import read_letor", {"data.letor"}),
        ("data", "from . import letor", {"data.letor"}),
        ("names", "if TYPE_CHECKING:\n    from calirank import cli\nelse:\n    import calirank.demo", {"demo"}),
    ],
)
def test_imports_of_every_form_are_seen(module: str, text: str, imported: set[str]) -> None:
    assert imports(module, text, module == "data", set(sources())) == imported


def test_an_import_from_below_is_a_fault() -> None:
    assert faults("names", {"", "guarantees", "orders", "cli"}) == ["names imports cli", "names imports orders"]


def run_python(code: str) -> str:
    """What a new interpreter prints that runs the code."""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=PACKAGE.parent, timeout=120
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


LOADED = f"; import sys; print(*[m for m in sys.modules if m.split('.')[0] in {HEAVY} or m.endswith('_kernels')])"


def test_the_import_loads_nothing_heavy_and_no_kernel() -> None:
    assert run_python("import calirank" + LOADED).split() == []
    assert "numba" in run_python("import numba" + LOADED).split()


def test_no_public_name_loads_anything_heavy_when_it_is_looked_up() -> None:
    assert run_python("import calirank; [getattr(calirank, name) for name in calirank.__all__]" + LOADED).split() == []


def test_every_public_name_is_there_and_is_listed() -> None:
    for name in calirank.__all__:
        assert getattr(calirank, name) is not None
        assert name in dir(calirank)
    with pytest.raises(AttributeError, match=r"has no attribute 'RankingDate'\. Did you mean 'RankingData'"):
        calirank.RankingDate  # noqa: B018 - the look-up itself is what fails


def test_the_import_takes_little_longer_than_that_of_numpy() -> None:
    """At most 0.3 s; the best of five runs each, taken in turn, so that a busy machine slows both."""

    def seconds(module: str) -> float:
        code = f"import time; begin = time.perf_counter(); import {module}; print(time.perf_counter() - begin)"
        return float(run_python(code))

    runs = [(seconds("numpy"), seconds("calirank")) for _ in range(5)]
    assert min(ours for _, ours in runs) <= min(numpys for numpys, _ in runs) + 0.3


def test_only_the_decorator_and_kernel_files_know_numba() -> None:
    """Kernel files may take types and intrinsics from numba, but only the decorator compiles."""
    compilers = {"njit", "jit", "prange", "vectorize", "guvectorize", "cfunc", "stencil", "generated_jit", "config"}
    for module, path in sources().items():
        if module == "_kernel":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numba":
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names if alias.name.split(".")[0] == "numba"]
            assert not names or path.name == "_kernels.py", f"{module} imports {names} from numba"
            assert "numba" not in names, f"{module} imports numba as a whole"
            assert not compilers & set(names), f"{module} compiles by itself"


def test_kernels_stand_in_kernel_files_only() -> None:
    for module, path in sources().items():
        text = path.read_text()
        if path.name != "_kernels.py" and module != "_kernel":
            assert "@kernel" not in text, module
            assert "@inlined" not in text, module
