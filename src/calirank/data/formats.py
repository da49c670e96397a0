"""The table of file formats, and reading, writing and converting by it.

Each entry of :data:`~calirank.names.FORMATS` says what the format can carry. Writing loses nothing silently:
what the format has no room for is named in an error, and left out only where ``drop=`` names it.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from calirank.data._files import Source, Target, is_path, name_of, open_bytes, without_compression_suffix
from calirank.data.folder import INDEX
from calirank.data.ranking_data import RankingData
from calirank.names import FORMATS, did_you_mean

#: What data can have beside its lists and their query ids: arguments of RankingData.
PARTS = (
    "X",
    "y",
    "judges",
    "preferences",
    "rankings",
    "posterior",
    "doc_ids",
    "feature_names",
    "categorical",
    "columns",
    "query_weight",
    "doc_weight",
)
_TABLE = tuple(part for part in PARTS if part not in ("preferences", "rankings", "posterior"))
_HEAD = 1 << 14  # bytes of a file by which its format is recognised
_RUN_HINT = "it is a TREC run, which is scores and no ranking data; cr.read_run(path) reads it"


@dataclass(frozen=True)
class Format:
    """A file format: its endings, the functions that read and write it, and the parts of the data that it can carry."""

    name: str
    description: str
    extensions: tuple[str, ...]
    carries: tuple[str, ...]
    module: str
    reader: str
    writer: str | None
    aliases: tuple[str, ...] = ()
    #: Whether a list of files is read as one set.
    several: bool = False

    def read(self, source: Any, **options: Any) -> RankingData:
        """Read a file of this format; the options are those of its reader."""
        if isinstance(source, (list, tuple)) and not self.several:
            if len(source) != 1:
                raise ValueError(f"{self.name}: expected one file, got {len(source)}; cr.concatenate joins data sets")
            source = source[0]
        function = self._function(self.reader, options)
        return cast("RankingData", function(source, **options))

    def write(self, data: RankingData, target: Any, **options: Any) -> None:
        """Write a file of this format; the options are those of its writer."""
        if self.writer is None:
            raise ValueError(f"{_target_name(target)}: the format {self.name} can be read and not written")
        self._function(self.writer, options)(data, target, **options)

    def _function(self, name: str, options: Iterable[str]) -> Any:
        """A function of the format's module, which must have these options."""
        function = getattr(importlib.import_module(self.module), name)
        known = _options_of(function)
        unknown = next((option for option in options if option not in known), None)
        if unknown is not None:
            listed = f"Its options: {', '.join(known)}" if known else "It has no options"
            hint = did_you_mean(unknown, known)
            raise TypeError(f"{name} (format {self.name}) has no option {unknown!r}.{hint} {listed}")
        return function

    @property
    def read_options(self) -> list[str]:
        """The options of the reader.

        >>> format_named("npz").read_options
        ['group_rows']
        """
        return _options_of(getattr(importlib.import_module(self.module), self.reader))

    def lacks(self, data: RankingData) -> list[str]:
        """The parts of the data that this format has no room for."""
        return [part for part in parts_of(data) if part not in self.carries]


def _options_of(function: Any) -> list[str]:
    """The keyword arguments of a function; ``**options: Unpack[T]`` has those of the typed dictionary T."""
    known: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            known.append(parameter.name)
        elif parameter.kind is parameter.VAR_KEYWORD:
            typed = str(parameter.annotation).removeprefix("Unpack[").removesuffix("]")
            known += function.__globals__[typed].__annotations__
    return known


def _enter(entry: Format) -> None:
    FORMATS.register(entry.name, aliases=entry.aliases)(lambda: entry)


for _entry in (
    Format(
        "letor",
        "LETOR / SVMlight text, also LightGBM's with sizes in a .query file",
        (".letor", ".svm", ".svmlight", ".libsvm", ".train", ".test", ".vali", ".txt"),
        ("X", "y", "doc_ids"),
        "calirank.data.letor",
        "read_letor",
        "write_letor",
        aliases=("svmlight", "libsvm"),
        several=True,
    ),
    Format(
        "parquet",
        "Parquet, a row a document",
        (".parquet", ".pq"),
        _TABLE,
        "calirank.data.tables",
        "read_parquet",
        "write_parquet",
        several=True,
    ),
    Format(
        "arrow",
        "Arrow IPC (Feather, version 2), a row a document",
        (".arrow", ".feather", ".ipc"),
        _TABLE,
        "calirank.data.tables",
        "read_arrow",
        "write_arrow",
        aliases=("feather", "ipc"),
        several=True,
    ),
    Format("npz", "NumPy arrays in one file", (".npz",), _TABLE, "calirank.data.npz", "read_npz", "write_npz"),
    Format(
        "folder",
        "a folder of NumPy arrays that are mapped into memory; holds everything",
        (),
        PARTS,
        "calirank.data.folder",
        "open_folder",
        "save",
    ),
    Format(
        "qrels",
        "TREC relevance judgements: query, iteration, document, relevance",
        (".qrels", ".qrel"),
        ("y", "doc_ids"),
        "calirank.data.trec",
        "read_qrels",
        "write_qrels",
        aliases=("trec",),
    ),
    Format(
        "preflib",
        "PrefLib's orders: strict or with ties, complete or not",
        (".soc", ".soi", ".toc", ".toi"),
        ("rankings", "doc_ids"),
        "calirank.data.preflib",
        "read_preflib",
        "write_preflib",
        aliases=("soc", "soi", "toc", "toi"),
        several=True,
    ),
    Format(
        "rankings",
        "CSV, a row a ranking",
        (".csv",),
        ("rankings", "doc_ids"),
        "calirank.data.rankings_csv",
        "read_rankings",
        "write_rankings",
    ),
    Format(
        "preferences",
        "CSV, a row a comparison of two items",
        (".csv",),
        ("preferences", "doc_ids"),
        "calirank.data.preferences_csv",
        "read_preferences",
        "write_preferences",
    ),
    Format(
        "label_ranking",
        "CSV, features and the rank of each class",
        (".csv",),
        ("X", "rankings", "feature_names"),
        "calirank.data.rankings_csv",
        "read_label_ranking",
        None,
    ),
):
    _enter(_entry)


def format_named(name: str) -> Format:
    """The format with this name or alias.

    >>> format_named("feather").name
    'arrow'
    """
    if not isinstance(name, str):
        raise TypeError(f"format: expected a name, such as 'parquet'; got {name!r}")
    return cast("Format", FORMATS[name]())


def formats() -> list[Format]:
    """All formats."""
    return [format_named(name) for name in FORMATS.names]


def parts_of(data: RankingData) -> list[str]:
    """What the data has beside its lists and their query ids.

    >>> parts_of(RankingData([[1.0], [2.0]], [1, 0], sizes=[2], feature_names=["bm25"]))
    ['X', 'y', 'feature_names']
    """
    held = {part: getattr(data, part, None) for part in PARTS}
    held |= {"posterior": data.has_posterior or None, "categorical": data.categories or None}
    held["columns"] = data.columns or None
    return [part for part, value in held.items() if value is not None]


def format_of(source: Any, format: str | None = None) -> Format:
    """The format with this name, or else that of a path (or of the first of several), as :func:`read` tells it."""
    return _format_of_source(source) if format is None else format_named(format)


def markdown_table() -> str:
    """The formats as the README and the docs show them."""
    rows = ["| format | endings | what it is | carries |", "|---|---|---|---|"]
    for entry in formats():
        endings = " ".join(f"`{extension}`" for extension in entry.extensions) or "a folder"
        carries = "everything" if entry.carries == PARTS else ", ".join(entry.carries)
        described = entry.description + ("" if entry.writer else " (read only)")
        rows.append(f"| {entry.name} | {endings} | {described} | {carries} |")
    return "\n".join(rows)


# --- reading, writing, converting ------------------------------------------------------------------------------------


def read(source: Source | Sequence[Source], format: str | None = None, **options: Any) -> RankingData:
    """Read ranking data of any format; ``options`` go to the format's reader.

    The format is told by the ending of the path (``.gz``, ``.xz``, ``.bz2`` and ``.zst`` are looked through), else by
    the first bytes of a file (not of a pipe); ``.csv`` can be several things, so there it must be said. A list of files
    is read as one set, where the format has that (letor, parquet, arrow, preflib).
    """
    return format_of(source, format).read(source, **options)


def write(
    data: RankingData, target: Target, format: str | None = None, *, drop: Iterable[str] = (), **options: Any
) -> None:
    """Write ranking data in the format that the ending of the path tells; ``options`` go to the format's writer.

    A folder is meant where the path ends with ``/`` or is a folder already. What the format cannot carry is an error
    unless ``drop`` names it: ``drop=("feature_names", "columns")`` leaves these two out.
    """
    chosen = _format_of_target(target) if format is None else format_named(format)
    reduced = _without(data, drop)
    lost = chosen.lacks(reduced)
    if lost:
        others = [entry.name for entry in formats() if entry.writer and not entry.lacks(data)]
        raise ValueError(
            f"{_target_name(target)}: the format {chosen.name} cannot carry {', '.join(lost)} of this data; "
            f"all of it goes into {' or '.join(others)}, and drop={tuple(lost)!r} leaves out what does not"
        )
    chosen.write(reduced, target, **options)


def convert(
    source: Source | Sequence[Source],
    target: Target,
    *,
    from_format: str | None = None,
    to_format: str | None = None,
    read_options: Mapping[str, Any] | None = None,
    write_options: Mapping[str, Any] | None = None,
    drop: Iterable[str] = (),
) -> RankingData:
    """Read one file and write it as another; gives back the data that was read. See :func:`read` and :func:`write`."""
    chosen = _format_of_target(target) if to_format is None else format_named(to_format)
    if chosen.writer is None:
        raise ValueError(f"{_target_name(target)}: the format {chosen.name} can be read and not written")
    data = read(source, from_format, **(read_options or {}))
    write(data, target, chosen.name, drop=drop, **(write_options or {}))
    return data


def _without(data: RankingData, drop: Iterable[str]) -> RankingData:
    """The data without these parts."""
    if isinstance(drop, str):
        raise TypeError(f"drop: expected a list of names, got {drop!r}")
    changes: dict[str, Any] = {}
    for part in drop:
        if part not in PARTS:
            raise ValueError(f"drop: no part of the data is called {part!r}.{did_you_mean(str(part), PARTS)}")
        changes[part] = () if part == "categorical" else None
    if "X" in changes:
        changes |= {"feature_names": None, "categorical": ()}
    return data.replace(**changes) if changes else data


# --- which format ----------------------------------------------------------------------------------------------------


def _format_of_source(source: Any) -> Format:
    first = source[0] if isinstance(source, (list, tuple)) and source else source
    if not is_path(first):
        raise ValueError(f"{name_of(first)}: what is no path has no ending; give format=, one of {_listed(formats())}")
    if os.path.isdir(first):
        if os.path.isfile(os.path.join(first, INDEX)):
            return format_named("folder")
        preflib = format_named("preflib")
        if any(_ending(name) in preflib.extensions for name in os.listdir(first)):
            return preflib
        raise ValueError(
            f"{os.fspath(first)}: expected a file, a calirank data folder or a folder of PrefLib files, "
            "got another directory"
        )
    ending = _ending(first)
    found = _with_ending(ending)
    if len(found) == 1 and ending != ".txt":
        return found[0]
    if len(found) > 1:
        raise _ambiguous(first, ending, found)
    regular = stat.S_ISREG(os.stat(first).st_mode)
    recognised = _recognised(first) if regular else None  # what is read of a pipe is gone
    if recognised is not None:
        return recognised
    if found:
        return found[0]
    if not (regular or ending):
        raise ValueError(f"{os.fspath(first)}: a pipe without an ending; give format=, one of {_listed(formats())}")
    raise _unknown(first, ending)


def _format_of_target(target: Any) -> Format:
    if not is_path(target):
        raise ValueError(
            f"{_target_name(target)}: what is no path has no ending; give format=, one of {_listed(formats())}"
        )
    if os.fspath(target).endswith(("/", os.sep)) or os.path.isdir(target):
        return format_named("folder")
    ending = _ending(target)
    found = [entry for entry in _with_ending(ending) if entry.writer]
    if len(found) > 1:
        raise _ambiguous(target, ending, found)
    if not found:
        raise _unknown(target, ending)
    return found[0]


def _target_name(target: Any) -> str:
    return "<stdout>" if target == "-" else name_of(target)


def _ending(path: Any) -> str:
    return os.path.splitext(without_compression_suffix(path))[1].lower()


def _with_ending(ending: str) -> list[Format]:
    return [entry for entry in formats() if ending in entry.extensions]


def _listed(entries: Iterable[Format]) -> str:
    return ", ".join(entry.name for entry in entries)


def _ambiguous(path: Any, ending: str, found: Iterable[Format]) -> ValueError:
    choices = "; ".join(f"{entry.name} ({entry.description})" for entry in found)
    table = " A CSV of features is for a data frame library and cr.from_frame." if ending == ".csv" else ""
    return ValueError(f"{os.fspath(path)}: the ending {ending} can be several formats, give format=: {choices}.{table}")


def _unknown(path: Any, ending: str) -> ValueError:
    if ending == ".run":
        return ValueError(f"{os.fspath(path)}: expected ranking data; {_RUN_HINT}")
    known = [extension for entry in formats() for extension in entry.extensions]
    what = f"the ending {ending} tells no format" if ending else "a path without an ending tells no format"
    hint = did_you_mean(ending, known) if ending else ""
    return ValueError(f"{os.fspath(path)}: {what}.{hint} Give format=, one of {_listed(formats())}")


_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "npz"}
_LETOR_FIELD = re.compile(r"qid:\S+|[0-9]+:\S+")
_PREFLIB = re.compile(r"^# DATA TYPE:", re.MULTILINE)


def _recognised(path: Any) -> Format | None:
    """The format that the first bytes of a file tell, if they do."""
    with open_bytes(path) as stream:
        head = stream.read(_HEAD)
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return format_named(name)
    text = head.decode("utf-8-sig", "replace")
    if _PREFLIB.search(text):
        return format_named("preflib")
    lines = (line.split("#")[0].split() for line in text.splitlines())
    fields = next((line for line in lines if line), [])
    if len(fields) > 1 and _is_number(fields[0]) and _LETOR_FIELD.fullmatch(fields[1]):
        return format_named("letor")
    if len(fields) == 6 and _is_number(fields[3]) and _is_number(fields[4]):
        raise ValueError(f"{os.fspath(path)}: expected ranking data; {_RUN_HINT}")
    if len(fields) == 4 and _is_number(fields[3]):
        return format_named("qrels")
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
