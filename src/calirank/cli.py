"""The command ``calirank``: a thin layer over the library that parses, prints, and turns errors into one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calirank import __version__, _kernel

if TYPE_CHECKING:
    from calirank.data.ranking_data import RankingData

app = typer.Typer(
    name="calirank",
    help="Calibrated learning to rank: name the metric, get the loss that is consistent with it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Base = Annotated[str, typer.Option(help='Number of the first feature in LETOR text: 0, 1 or "auto".')]
Format = Annotated[str | None, typer.Option(help="Format of the input, where its name does not say it.")]
GroupRows = Annotated[bool, typer.Option("--group-rows", help="Group the rows of a query that do not lie together.")]


def main() -> None:
    """Run the command; errors of the user's input are one line on stderr and exit status 2."""
    try:
        with _saying_that_kernels_are_compiled():
            app()
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away
        sys.stderr.close()
        sys.exit(141)
    except (ValueError, TypeError, OSError, ImportError) as error:
        if _wants_traceback:
            raise
        _say(f"error: {_in_words(error)}")
        sys.exit(2)


_wants_traceback = False


def _say(text: str) -> None:
    print(f"calirank: {text}", file=sys.stderr)


def _in_words(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"no such file: {error.filename}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@contextmanager
def _saying_that_kernels_are_compiled() -> Iterator[None]:
    """On the first call on a machine kernels are compiled, once: say so, with a bar where there is a terminal."""
    bar: list[Any] = []  # the bar and its task, once something is compiled

    def begin() -> None:
        if not sys.stderr.isatty():
            _say("preparing (once): compiling kernels for this machine")
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("preparing (once)"), BarColumn(), MofNCompleteColumn(), TextColumn("kernels"))
        progress = stack.enter_context(Progress(*columns, console=Console(file=sys.stderr), transient=True))
        bar.extend((progress, progress.add_task("", total=_kernel.kernels_registered())))

    def finished(count: int) -> None:
        if bar:
            bar[0].update(bar[1], completed=count, total=max(count, _kernel.kernels_registered()))

    with ExitStack() as stack, _kernel.watch_compilation(begin, finished):
        yield


def _version(wanted: bool) -> None:
    if wanted:
        print(f"calirank {__version__}")
        raise typer.Exit


@app.callback()
def options(
    threads: Annotated[
        int | None, typer.Option(help="Number of threads (default: CALIRANK_THREADS, else all cores).", min=1)
    ] = None,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="On an error show where in the program it arose.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options that every command has."""
    global _wants_traceback
    del version
    _wants_traceback = traceback
    if threads is not None:
        _kernel.set_threads(threads)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the data, the scores and the results.")] = Path("calirank-demo"),
    queries: Annotated[int, typer.Option(help="Number of queries to make.", min=10)] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
) -> None:
    """Make data with a known truth, train a ranker on it, and judge its rankings."""
    from calirank.demo import run_demo

    result = run_demo(out, queries=queries, seed=seed)
    print(f"train  {result.train}")
    print(f"test   {result.test}")
    _table((f"{result.metric} of the test queries", "mean"), result.rows())
    low, high = result.gain
    print(f"The trained ranker is above the random order by {low:.4f} to {high:.4f} (95 % interval).")
    print(f"Written to {result.folder}: train.txt, test.txt, scores.txt, results.json")
    print(f"Next: calirank describe {result.folder / 'train.txt'}")


@app.command()
def describe(
    paths: Annotated[
        list[str], typer.Argument(help='Files of one data set ("-" for standard input), or a data folder.')
    ],
    format: Format = None,
    base: Base = "1",
    group_rows: GroupRows = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Count queries, documents, labels and lengths; name constant features, all-zero queries, duplicate ids."""
    from calirank.data.describe import describe as describe_data

    found = describe_data(_read(paths, format, base, group_rows))
    if as_json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        _table(None, found.rows())


@app.command()
def convert(
    source: Annotated[
        list[str], typer.Argument(help="Input files, read as one data set; the last argument is the output.")
    ],
    from_format: Annotated[
        str | None, typer.Option("--from", help="Format of the input, where its name does not say it.")
    ] = None,
    to_format: Annotated[
        str | None, typer.Option("--to", help="Format of the output, where its name does not say it.")
    ] = None,
    base: Base = "1",
    group_rows: GroupRows = False,
    drop: Annotated[str, typer.Option(help="What may be lost if the output cannot hold it: names with commas.")] = "",
) -> None:
    """Convert ranking data from one format to another; nothing is lost silently."""
    if len(source) < 2:
        raise ValueError("convert needs at least one input and the output, in this order")
    from calirank.data.formats import write

    data = _read(source[:-1], from_format, base, group_rows)
    write(data, source[-1], format=to_format, drop=tuple(name.strip() for name in drop.split(",") if name.strip()))
    if source[-1] != "-":
        _say(f"wrote {data!r} to {source[-1]}")


def _read(paths: list[str], format: str | None, base: str, group_rows: bool) -> RankingData:
    from calirank.data.formats import format_of, read

    source: Any = paths if len(paths) > 1 else paths[0]
    options: dict[str, Any] = {}
    if group_rows:
        options["group_rows"] = True
    if format_of(paths[0], format).name == "letor":
        if base not in ("0", "1", "auto"):
            raise ValueError(f'--base is 0, 1 or auto; got "{base}"')
        options["base"] = base if base == "auto" else int(base)
    return read(source, format=format, **options)


def _table(headings: tuple[str, ...] | None, rows: Iterator[tuple[str, ...]]) -> None:
    """Print a table with rich; the last column of a table with headings is numbers."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD if headings else None, show_header=headings is not None, pad_edge=False)
    for number, heading in enumerate(headings or ("", "")):
        last = headings is not None and number == len(headings) - 1
        table.add_column(heading, justify="right" if last else "left", overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False, markup=False)
    console.print(table)
