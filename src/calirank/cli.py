"""The command ``calirank``: a thin layer over the library that parses, prints, and turns errors into one line."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from calirank import __version__, _kernel

if TYPE_CHECKING:
    from calirank.data.formats import Format


class _Commands(TyperGroup):
    """The commands; the user's errors are one line on stderr and exit status 2."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command. What typer itself would catch is caught before."""
        try:
            with _saying_that_kernels_are_compiled():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            _say("interrupted")
            status = 130
        except BrokenPipeError:
            status = _NOBODY_READS
        except (ValueError, TypeError, OSError, ImportError) as error:
            if ctx.params["traceback"]:
                raise
            _say(f"error: {_in_words(error)}")
            status = 2
        raise typer.Exit(status)


_NOBODY_READS = 128 + 13  # as a shell reports a program that SIGPIPE ended

app = typer.Typer(
    name="calirank",
    cls=_Commands,
    help="Calibrated learning to rank: name the metric, get the loss that is consistent with it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command; where the reader of its output has gone away, it ends with status 141."""
    try:
        try:
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
        sys.exit(_NOBODY_READS)


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
    del version, traceback
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
    test, scores = result.folder / "test.txt", result.folder / "scores.txt"
    print(f"Next: calirank evaluate {test} --scores {scores} --metrics {result.metric},ap,err")


# --- reading and converting ------------------------------------------------------------------------------------------


def _base(text: str) -> Any:
    if text not in ("0", "1", "auto"):
        raise typer.BadParameter(f'expected 0, 1 or auto, got "{text}"')
    return text if text == "auto" else int(text)


Base = Annotated[
    Any,
    typer.Option(parser=_base, metavar="[0|1|auto]", help="Number of the first feature in LETOR text (default: 1)."),
]
Groups = Annotated[
    list[str] | None,
    typer.Option(help="LETOR text without qid: file of the sizes of the queries, one for each input file."),
]
Y = Annotated[str | None, typer.Option(help='Tables: column of the labels; "" where there are none (default: label).')]
Qid = Annotated[str | None, typer.Option(help="Tables: column of the query ids (default: qid).")]
DocId = Annotated[str | None, typer.Option(help="Tables: column of the document ids.")]
More = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="NAME=VALUE", help="Another option of the format's reader: -o form=counts."),
]
ToMore = Annotated[
    list[str] | None,
    typer.Option(
        "--to-option", metavar="NAME=VALUE", help="An option of the output's writer: --to-option groups=true."
    ),
]
GroupRows = Annotated[bool, typer.Option("--group-rows", help="Group the rows of a query that do not lie together.")]


@app.command()
def describe(
    paths: Annotated[
        list[str], typer.Argument(help='Files of one data set ("-" for standard input), or a data folder.')
    ],
    format: Annotated[str | None, typer.Option(help="Format of the input, where its name does not say it.")] = None,
    base: Base = None,
    groups: Groups = None,
    y: Y = None,
    qid: Qid = None,
    doc_id: DocId = None,
    group_rows: GroupRows = False,
    option: More = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Count queries, documents, labels and lengths; name constant features, all-zero queries, duplicate ids."""
    from calirank.data.describe import describe as describe_data

    given = {"base": base, "groups": groups, "y": y, "qid": qid, "doc_id": doc_id, "group_rows": group_rows}
    given |= _named_options(option or [])
    with _errors_in_options(format="--format"):
        source, entry, options = _input(paths, format, given)
        found = describe_data(entry.read(source, **options))
    if as_json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        _table(None, found.rows())


@app.command()
def convert(
    paths: Annotated[
        list[str], typer.Argument(help="Input files, read as one data set; the last argument is the output.")
    ],
    from_format: Annotated[
        str | None, typer.Option("--from", help="Format of the input, where its name does not say it.")
    ] = None,
    to_format: Annotated[
        str | None, typer.Option("--to", help="Format of the output, where its name does not say it.")
    ] = None,
    base: Base = None,
    groups: Groups = None,
    y: Y = None,
    qid: Qid = None,
    doc_id: DocId = None,
    group_rows: GroupRows = False,
    option: More = None,
    to_option: ToMore = None,
    drop: Annotated[str, typer.Option(help="What may be lost if the output cannot hold it: names with commas.")] = "",
) -> None:
    """Convert ranking data from one format to another; nothing is lost silently."""
    from calirank.data.formats import convert as convert_file

    *inputs, target = paths
    if not inputs:
        raise ValueError("convert needs at least one input and the output, in this order")
    given = {"base": base, "groups": groups, "y": y, "qid": qid, "doc_id": doc_id, "group_rows": group_rows}
    given |= _named_options(option or [])
    with _errors_in_options(format="--from"):
        source, entry, options = _input(inputs, from_format, given)
    with _errors_in_options(format="--to"):
        data = convert_file(
            source,
            target,
            from_format=entry.name,
            to_format=to_format,
            read_options=options,
            write_options=_named_options(to_option or []),
            drop=[name.strip() for name in drop.split(",") if name.strip()],
        )
    if target != "-":
        _say(f"wrote {data!r} to {target}")


# --- evaluating ------------------------------------------------------------------------------------------------------


def _one_of(*options: str, **spellings: str) -> Callable[[str], str]:
    """A parser of an option with these values; ``spellings`` are other words for some of them."""

    def parse(text: str) -> str:
        found = spellings.get(text.lower(), text.lower())
        if found not in options:
            raise typer.BadParameter(f'expected {", ".join(options[:-1])} or {options[-1]}, got "{text}"')
        return found

    return parse


_OUTPUT = ("table", "markdown", "csv", "tsv", "json")
_LIKE = ("lightgbm", "xgboost", "sklearn", "trec_eval", "ranx")


@app.command()
def evaluate(
    paths: Annotated[
        list[str], typer.Argument(help='Files of one data set with labels ("-" for standard input), or a data folder.')
    ],
    scores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE", help='A score a line, in the order of the data\'s rows ("-": standard input).'
        ),
    ] = None,
    score_column: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Scores in a column of the data, or a feature (its name or number)."),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]FILE", help="A TREC run, for qrels or other data with document ids."),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metrics", "--metric", metavar="NAMES", help="Names with commas: ndcg@10,ap,err(max_grade=2)."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            parser=_one_of(*_LIKE),
            metavar="LIBRARY",
            help=f"Compute the metrics by the conventions of {', '.join(_LIKE[:-1])} or {_LIKE[-1]}.",
        ),
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="[length|COLUMN]", help="Also for segments of the queries.")] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Test each ranking against this one (default: every two).")
    ] = None,
    test: Annotated[
        str,
        typer.Option(
            parser=_one_of("t", "randomisation", randomization="randomisation"),
            metavar="[t|randomisation]",
            help="The paired test that decides about marks.",
        ),
    ] = "t",
    alpha: Annotated[float, typer.Option(help="Level of significance; intervals are of level 1 - alpha.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of the randomisation test and of the bootstrap.", min=0)] = 0,
    resamples: Annotated[
        int | None,
        typer.Option(
            help="Sign patterns of the randomisation test (default: 10000 where it is the --test, else none).",
            min=0,
        ),
    ] = None,
    bootstrap: Annotated[
        int | None, typer.Option(metavar="RESAMPLES", help="Intervals by the bootstrap (default: Student's t).", min=1)
    ] = None,
    query_weighted: Annotated[
        bool, typer.Option("--query-weighted", help="Means, intervals and tests with the data's query weights.")
    ] = False,
    per_query: Annotated[
        bool,
        typer.Option("--per-query", "-q", help="A line a query; with --out these go there and the table is printed."),
    ] = False,
    output_format: Annotated[
        str | None,
        typer.Option(
            parser=_one_of(*_OUTPUT),
            metavar=f"[{'|'.join(_OUTPUT)}]",
            help="Form of the output (default: what the ending of --out tells, else table; tsv with --per-query).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output-format json.")] = False,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write the output to this file.")] = None,
    format: Annotated[str | None, typer.Option(help="Format of the data, where its name does not say it.")] = None,
    base: Base = None,
    groups: Groups = None,
    y: Y = None,
    qid: Qid = None,
    doc_id: DocId = None,
    group_rows: GroupRows = False,
    option: More = None,
) -> None:
    """Judge rankings of the data by metrics; several rankings are compared by paired tests."""
    from calirank.data._files import atomic_write, name_of
    from calirank.evaluation import command

    if not (scores or score_column or run):
        raise ValueError(
            "no ranking to judge: give --scores FILE (a score a line for each document), --score-column COLUMN "
            "(a column of the data) or --run FILE (a TREC run, for data with document ids)"
        )
    if as_json and output_format not in (None, "json"):
        raise ValueError(f"--json and --output-format {output_format} ask for two forms of output")
    files = [command.named_file(text)[1] for text in [*(scores or []), *(run or [])]]
    command.refuse_same_files(paths, files)
    out = None if out == "-" else out
    if out is not None:
        command.refuse_overwriting(out, [*paths, *files])
    given = {"base": base, "groups": groups, "y": y, "qid": qid, "doc_id": doc_id, "group_rows": group_rows}
    given |= _named_options(option or [])
    with _errors_in_options(format="--format"):
        wanted = command.metrics_named(metrics, like) if metrics else {}
    asked = command.columns_of(wanted) | ({} if by in (None, "length") else {by: "--by"})
    asked |= dict.fromkeys(score_column or [], "--score-column")
    with _errors_in_options(format="--format"), command.naming_columns(asked):
        source, entry, options = _input(paths, format, given)
        data = entry.read(source, **command.table_options(entry.read_options, options, asked))
    where = name_of(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    rankings = command.rankings_of(data, where, scores or (), score_column or (), run or ())
    wanted = wanted or command.default_metrics(data, like)
    with _errors_in_options(format="--format", others=_EVALUATING):
        found = command.report(
            rankings,
            data,
            where,
            wanted,
            by=by,
            baseline=baseline,
            test="t" if test == "t" else "randomisation",
            alpha=alpha,
            seed=seed,
            resamples=(10_000 if test == "randomisation" else 0) if resamples is None else resamples,
            bootstrap=bootstrap or 0,
            weighted=query_weighted,
        )
    if not metrics:
        _say(f"judged by {', '.join(wanted)}; --metrics names others")
    for note in found.notes():
        _say(note)
    form = "json" if as_json else output_format or command.form_of(out)
    if out is not None:
        with atomic_write(out, "w") as stream:
            stream.write(found.text(form, per_query=per_query))
        _say(f"wrote {out}")
    elif form != "table" or per_query:
        print(found.text(form, per_query=per_query), end="")
        return
    if out is None or per_query:
        _print(found.caption(), found.comparison, *(_rich_table(*rows) for rows in found.sections()))


#: Arguments of the library that evaluation speaks of at the beginning of an error.
_EVALUATING = ("by", "baseline", "resamples")


#: Options of readers that are options of the command; all others are given by ``-o``.
_OPTIONS = ("base", "groups", "y", "qid", "doc_id", "group_rows")


def _named_options(texts: list[str]) -> dict[str, Any]:
    """Options of a reader or writer from NAME=VALUE; values are JSON where they can be, else text.

    >>> _named_options(["form=counts", "blocks=[4, 4]", "a=home.team"])
    {'form': 'counts', 'blocks': [4, 4], 'a': 'home.team'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ValueError(f'an option is NAME=VALUE, such as -o form=counts; got "{text}"')
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _input(paths: list[str], format: str | None, given: dict[str, Any]) -> tuple[Any, Format, dict[str, Any]]:
    """What to read, its format, and those of the options that were given, which the format must have."""
    from calirank.data.formats import format_of

    source: Any = paths if len(paths) > 1 else paths[0]
    entry = format_of(source, format)
    options = {name: value for name, value in given.items() if value not in (None, []) and value is not False}
    known = entry.read_options
    for name in options:
        if name not in known:
            has = ", ".join(f"{other}=" for other in _OPTIONS if other in known) or "none"
            others = ", ".join(other for other in known if other not in _OPTIONS)
            more = f"; with -o: {others}" if others else ""
            raise ValueError(f"the format {entry.name} has no option {name}=; it has {has}{more}")
    if options.get("y") == "":
        options["y"] = None
    return source, entry, options


# --- errors ----------------------------------------------------------------------------------------------------------


#: An argument of the library in an error, such as ``base=1``; in a path, as in ``a/y=1/b``, a slash stands before it.
_ARGUMENT = re.compile(rf"(?<![^\s(])(format|drop|like|{'|'.join(_OPTIONS)})=(True|None|[0-9]+|'\w+'|\([^)]*\))?")


@contextmanager
def _errors_in_options(*, format: str, others: Sequence[str] = ()) -> Iterator[None]:
    """Errors of the library name its arguments: name the options of the command instead.

    >>> with _errors_in_options(format="--to"):
    ...     raise ValueError("give format=; drop=('X', 'y') and group_rows=True")
    Traceback (most recent call last):
    ValueError: give --to; --drop X,y and --group-rows
    >>> with _errors_in_options(format="--format", others=["by"]):  # others: where an error begins with them
    ...     raise ValueError("by: expected a column")
    Traceback (most recent call last):
    ValueError: --by: expected a column
    """

    def renamed(found: re.Match[str]) -> str:
        argument, value = found.groups(default="")
        option = format if argument == "format" else f"--{argument.replace('_', '-')}"
        if value == "None":
            return f'{option} ""'
        words = [word for word in re.findall(r"\w+", value) if word != "True"]
        return f"{option} {','.join(words)}".rstrip()

    try:
        yield
    except (ValueError, TypeError) as error:
        said = _ARGUMENT.sub(renamed, str(error))
        said = f"--{said}" if said.partition(":")[0] in others else said
        if said == str(error):
            raise
        raise ValueError(said) from error


# --- tables ----------------------------------------------------------------------------------------------------------


def _table(headings: tuple[str, ...] | None, rows: Iterator[tuple[str, ...]]) -> None:
    """Print a table with rich; in a table with headings all columns but the first are numbers."""
    _print(_rich_table(headings, *rows))


def _rich_table(headings: tuple[str, ...] | None, *rows: tuple[str, ...]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD if headings else None, show_header=headings is not None, pad_edge=False)
    for number, heading in enumerate(headings or ("", "")):
        right = headings is not None and number > 0
        table.add_column(heading, justify="right" if right else "left", overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    return table


def _print(*parts: Any) -> None:
    """Print with rich what is not None; where no terminal is, lines are as long as they need."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 10_000)
    with console.capture() as printed:  # rich itself would end the program where nobody reads
        for part in parts:
            if part is not None:
                console.print(part)
    lines = [line.rstrip() for line in printed.get().splitlines()]
    print(*(line for line, before in zip(lines, ["-", *lines], strict=False) if line or before), sep="\n")
