"""Write into README.md and docs/ what the code knows: tables, the list of references, and what commands print.

Each table has its place between ``<!-- name -->`` and ``<!-- /name -->``. In a code block of the language ``console``,
``$ cat FILE`` makes a file of the lines below it, and what stands below ``$ calirank …`` and ``$ python FILE`` becomes
what the command prints. All blocks of a page share one folder, which is empty at first. Tests check that the pages are
up to date.
"""

import inspect
import io
import os
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from calirank import cli
from calirank.data.formats import markdown_table
from calirank.guarantees import REFERENCES
from calirank.metrics.profiles import conventions
from calirank.names import METRICS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


# --- tables ----------------------------------------------------------------------------------------------------------


def table(rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, the headings first."""
    headings, *others = rows
    lines = [headings, ["---"] * len(headings), *others]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |" for cells in lines)


def metrics() -> Iterator[tuple[str, ...]]:
    """A row for each metric of the registry, in the order of the alphabet."""
    yield ("name", "also", "judges by", "parameters and their defaults", "positional", "what it is")
    also: dict[str, list[str]] = {}
    for alias, name in METRICS.aliases.items():
        also.setdefault(name, []).append(f"`{alias}`")
    for name, entry in sorted(METRICS):
        one = METRICS.build(name)
        aliases = ", ".join(also.get(name, []))
        positional = "yes" if one.is_positional else "no"
        yield (f"`{name}`", aliases, one.supervision, parameters(entry), positional, about(entry))


def parameters(entry: Any) -> str:
    """The parameters of a metric with their defaults."""
    listed = inspect.signature(entry).parameters.values()
    return ", ".join(f"`{one.name}={value_text(one.default)}`" for one in listed)


def value_text(value: Any) -> str:
    """A default as names write it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def about(entry: Any) -> str:
    """The first sentence about a metric: of its module, without the name before the colon; of a function, its own."""
    text = inspect.getdoc(sys.modules[entry.__module__]) if isinstance(entry, type) else inspect.getdoc(entry)
    sentence = (text or "").split("\n\n")[0].replace("\n", " ")
    sentence = re.sub(r"^[\w -]+: ", "", sentence)
    return sentence[:1].upper() + sentence[1:]


def parts() -> dict[str, str]:
    """The tables by the names of their places."""
    return {
        "formats": markdown_table(),
        "references": "\n".join(f"- **{key}** {reference}" for key, reference in REFERENCES.items()),
        "metrics": table(metrics()),
        "conventions": table(conventions()),
    }


# --- commands --------------------------------------------------------------------------------------------------------


def run_block(block: str) -> str:
    """A console block with the output of its commands, run in the current folder."""
    steps = []
    for step in re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]:
        command, _, below = step.partition("\n")
        match shlex.split(command.removeprefix("$ ")):
            case ["cat", file]:
                text = below.rstrip("\n")
                Path(file).write_text(f"{text}\n", encoding="utf-8")
            case ["python", file]:
                text = printed(lambda file=file: runpy.run_path(file, run_name="__main__"))
            case ["calirank", *_] as words:
                with mock.patch.object(sys, "argv", words):
                    text = printed(cli.main)
            case _:
                raise ValueError(f"expected $ cat FILE, $ python FILE or $ calirank …, got {command!r}")
        steps.append(f"{command}\n{text}\n" if text else f"{command}\n")
    return "\n".join(steps)


def printed(run: Any) -> str:
    """What a function prints, its errors too; without trailing blanks, and without the line of the first use."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out), mock.patch.dict(os.environ, COLUMNS="110"):
        try:
            run()
        except SystemExit as ended:
            if ended.code not in (None, 0, 2):
                raise
    lines = [line.rstrip() for line in out.getvalue().splitlines() if "preparing (once)" not in line]
    return "\n".join(lines).strip("\n")


# --- pages -----------------------------------------------------------------------------------------------------------


def filled(text: str) -> str:
    """The text of a page with its tables and the output of its commands as they are now."""
    for name, part in parts().items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        whole = f"{begin}\n\n{part}\n\n{end}"
        text = re.sub(f"{begin}.*?{end}", lambda _, whole=whole: whole, text, flags=re.DOTALL)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return re.sub(
            r"^```console\n(.*?)^```$",
            lambda match: f"```console\n{run_block(match[1])}```",
            text,
            flags=re.DOTALL | re.MULTILINE,
        )


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
