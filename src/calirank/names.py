"""The grammar of names and the registries behind it; the only parser of names.

A name says which object is meant and how it is set: ``ndcg@10``, ``err(max_grade=2)@10``,
``pairwise(smooth_hinge, alpha=0.5)``. Names can be added up: ``0.7*ndcg@10 + 0.3*dcg(gain=revenue)@10``::

    sum      = ["-"] term {("+" | "-") term}
    term     = [number ["*"]] name | number
    name     = word ["(" [argument {"," argument}] ")"] ["@" cutoff]
    argument = [word "="] value          positional ones first
    value    = number | true | false | none | word | "quoted text" | "[" [value {"," value}] "]" | sum

Spaces are free. Names and parameters are not case sensitive, and a hyphen between letters is an underscore, so that a
difference of two names needs a space before its minus: ``ndcg - err``. A word that stands alone as a value keeps its
spelling, because it may be the name of a column.

:func:`parse` turns text into :class:`Name` or :class:`Sum`, and ``str`` turns these back. A :class:`Registry` is a
table of named classes or functions; it builds objects from names and finds the name of an object.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import inspect
import json
import math
import numbers
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar, Union

T = TypeVar("T", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

#: What an argument can be: a number, truth value, None, text, a list (as a tuple), a name or a sum of names.
Value: TypeAlias = "int | float | bool | str | tuple[Value, ...] | Name | Sum | None"

_WORD = r"[^\W\d]\w*(?:-[^\W\d]\w*)*"
_TOKEN = re.compile(
    rf"(?P<word>{_WORD})"
    r"|(?P<number>(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?\w*)"
    r"|(?P<quoted>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<mark>[()\[\],=@*+-])",
    re.DOTALL,
)
_CONSTANTS = {"true": True, "false": False, "none": None}


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """The end of an error message: the option nearest to ``word``, or nothing when none is near.

    >>> did_you_mean("lable", ["label", "qid"])
    " Did you mean 'label'?"
    >>> did_you_mean("price", ["label", "qid"])
    ''
    """
    spelled = {option.lower(): option for option in options}
    near = difflib.get_close_matches(word.lower(), list(spelled), n=1)
    return f" Did you mean {spelled[near[0]]!r}?" if near else ""


# --- what a name is --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """One name with its arguments; ``keywords`` are pairs of parameter and value.

    >>> parse("Pairwise(smooth-hinge, alpha=.5)")
    Name(name='pairwise', arguments=('smooth-hinge',), keywords=(('alpha', 0.5),), cutoff=None)
    >>> str(parse("err( max_grade = 2 ) @ 10"))
    'err(max_grade=2)@10'
    """

    name: str
    arguments: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    cutoff: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", _normal(self.name))
        if not re.fullmatch(_WORD, self.name):
            raise ValueError(f"a name begins with a letter and consists of letters, digits and _; got {self.name!r}")
        if self.cutoff is not None and (isinstance(self.cutoff, bool) or self.cutoff < 1):
            raise ValueError(f"a cut-off is a whole number from 1 on; got {self.cutoff!r}")
        object.__setattr__(self, "arguments", tuple(_plain(value) for value in self.arguments))
        object.__setattr__(self, "keywords", tuple((_normal(key), _plain(value)) for key, value in self.keywords))

    def __str__(self) -> str:
        parts = [_text_of(value) for value in self.arguments]
        parts += [f"{key}={_text_of(value)}" for key, value in self.keywords]
        inside = f"({', '.join(parts)})" if parts else ""
        return f"{self.name}{inside}" + ("" if self.cutoff is None else f"@{self.cutoff}")


@dataclass(frozen=True, slots=True)
class Sum:
    """A weighted sum of names and a constant; ``terms`` are pairs of coefficient and name.

    >>> str(parse("1 - .5 ndcg@10 + err"))
    '-0.5*ndcg@10 + err + 1'
    """

    terms: tuple[tuple[float, Name], ...]
    constant: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple((float(coefficient), name) for coefficient, name in self.terms))
        object.__setattr__(self, "constant", float(self.constant))
        if not all(map(math.isfinite, (self.constant, *(coefficient for coefficient, _ in self.terms)))):
            raise ValueError("the coefficients of a sum are finite numbers")
        if not self.terms or (len(self.terms) == 1 and self.terms[0][0] == 1 and self.constant == 0):
            raise ValueError("a sum has two terms, or a coefficient other than 1, or a constant")

    def __str__(self) -> str:
        return sum_text([(coefficient, str(name)) for coefficient, name in self.terms], self.constant)


def sum_text(terms: Iterable[tuple[float, str]], constant: float = 0.0) -> str:
    """A weighted sum of things that have names, as it is written.

    >>> sum_text([(-0.5, "ndcg@10"), (1.0, "err")], 1.0)
    '-0.5*ndcg@10 + err + 1'
    """
    parts = []
    for coefficient, name in terms:
        size = "" if abs(coefficient) == 1 else f"{_text_of_number(abs(coefficient))}*"
        parts.append(("-" if coefficient < 0 else "+", f"{size}{name}"))
    if constant:
        parts.append(("-" if constant < 0 else "+", _text_of_number(abs(constant))))
    (sign, first), *others = parts
    return ("-" if sign == "-" else "") + first + "".join(f" {sign} {part}" for sign, part in others)


def parse(text: str) -> Name | Sum:
    """Read a name or a sum of names; ``str`` of the result is the canonical form, and parses to the same.

    >>> parse("NDCG@10")
    Name(name='ndcg', arguments=(), keywords=(), cutoff=10)
    >>> parse("2*ndcg - err").terms[1]
    (-1.0, Name(name='err', arguments=(), keywords=(), cutoff=None))
    """
    if not isinstance(text, str):
        raise TypeError(f"a name is text, such as 'ndcg@10'; got {text!r} of type {type(text).__name__}")
    try:
        return _Parser(text).parse()
    except RecursionError:
        raise ValueError(f"cannot read the name {text[:60]!r}…: it is nested too deeply") from None


def _normal(word: str) -> str:
    return word.replace("-", "_").lower()


def _plain(value: Value) -> Value:
    """A name without arguments is, as a value, just a word; and a list is a tuple."""
    if isinstance(value, Name) and not (value.arguments or value.keywords or value.cutoff is not None):
        return value.name
    if isinstance(value, tuple):
        return tuple(_plain(inner) for inner in value)
    return value


def _text_of(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return _text_of_number(value)
    if isinstance(value, str):
        bare = re.fullmatch(_WORD, value) and value.lower() not in _CONSTANTS
        return value if bare else json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return f"[{', '.join(_text_of(inner) for inner in value)}]"
    return str(value)


def _text_of_number(value: float) -> str:
    """1.0 and 1 are equal, so they are written alike."""
    if not math.isfinite(value):
        raise ValueError(f"a name holds finite numbers; got {value!r}")
    return (
        str(int(value)) if isinstance(value, int) or (value.is_integer() and abs(value) < 1e16) else repr(float(value))
    )


# --- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # word, number, quoted, mark, end
    text: str
    place: int


class _Parser:
    """Recursive descent; each method reads one line of the grammar in the module's docstring."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._split())
        self.index = 0

    def parse(self) -> Name | Sum:
        result = self._sum()
        if not isinstance(result, (Name, Sum)):
            self.index = 0
            self._fail(f"a name, such as 'ndcg@10', not {'a number' if self.token.kind == 'number' else 'this'} alone")
        if self.token.kind != "end":
            after = " (arguments come before the cut-off: name(…)@10)" if self.token.text == "(" else ""
            self._fail(f"'+', '-' or the end{after}")
        return result

    # tokens

    def _split(self) -> Iterator[_Token]:
        place = 0
        while place < len(self.text):
            if self.text[place].isspace():
                place += 1
                continue
            match = _TOKEN.match(self.text, place)
            if match is None:
                what = (
                    "the closing quote"
                    if self.text[place] in "\"'"
                    else "a name, a number or one of ( ) [ ] , = @ * + -"
                )
                self._fail_at(place, what)
            yield _Token(str(match.lastgroup), match.group(), place)
            place = match.end()
        yield _Token("end", "", len(self.text))

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def _take(self, *marks: str) -> str:
        """The mark that stands here, passed over, if it is one of these; else nothing."""
        if self.token.kind == "mark" and self.token.text in marks:
            self.index += 1
            return self.tokens[self.index - 1].text
        return ""

    def _fail(self, expected: str) -> NoReturn:
        self._fail_at(self.token.place, expected)

    def _fail_at(self, place: int, expected: str) -> NoReturn:
        line = re.sub(r"\s", " ", self.text)
        raise ValueError(f"cannot read the name {self.text!r}: expected {expected}\n  {line}\n  {' ' * place}^")

    # grammar

    def _sum(self) -> Value:
        """A sum; or a name, where that is all there is; or, where no name comes, the number that stands alone."""
        terms: list[tuple[float, Name]] = []
        constant: float = 0
        start = self.index
        sign = self._take("+", "-")
        while True:
            coefficient, name = self._term()
            coefficient = -coefficient if sign == "-" else coefficient
            if name is None:
                constant += coefficient
            else:
                terms.append((coefficient, name))
            end = self.index
            sign = self._take("+", "-")
            if not sign:
                break
        if not terms:
            if end - start > 2:
                self.index = start
                self._fail("a sum that has a name in it")
            return constant
        if len(terms) == 1 and terms[0][0] == 1 and not constant:
            return terms[0][1]
        return Sum(tuple(terms), constant)

    def _term(self) -> tuple[float, Name | None]:
        if self.token.kind == "word":
            return 1, self._name()
        if self.token.kind != "number":
            self._fail("a name or a number")
        number = self._number()
        if self._take("*") and self.token.kind != "word":
            self._fail("a name after '*'")
        return number, self._name() if self.token.kind == "word" else None

    def _name(self) -> Name:
        word = self.token.text
        self.index += 1
        arguments: list[Value] = []
        keywords: list[tuple[str, Value]] = []
        if self._take("(") and not self._take(")"):
            while True:
                self._argument(arguments, keywords)
                if self._take(")"):
                    break
                if not self._take(","):
                    self._fail("',' or ')'")
        return Name(word, tuple(arguments), tuple(keywords), self._cutoff() if self._take("@") else None)

    def _cutoff(self) -> int:
        token = self.token
        if token.kind != "number" or not (token.text.isascii() and token.text.isdigit()) or int(token.text) < 1:
            self._fail("a whole number from 1 on after '@'")
        self.index += 1
        return int(token.text)

    def _argument(self, arguments: list[Value], keywords: list[tuple[str, Value]]) -> None:
        here, following = self.token, self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        if here.kind == "word" and following.text == "=" and following.kind == "mark":
            key = _normal(here.text)
            if key in dict(keywords):
                self._fail(f"each parameter once, but {key!r} is given twice")
            self.index += 2
            keywords.append((key, self._value()))
        elif keywords:
            self._fail("'parameter=value', because values without a parameter come first")
        else:
            arguments.append(self._value())

    def _value(self) -> Value:
        token = self.token
        if token.kind == "quoted":
            self.index += 1
            return self._unquoted(token)
        if self._take("["):
            return self._list()
        if token.kind == "word":
            following = self.tokens[self.index + 1]
            if following.kind != "mark" or following.text in ",)]":
                self.index += 1
                return _CONSTANTS.get(token.text.lower(), token.text)
        if token.kind not in ("word", "number") and token.text not in ("+", "-"):
            self._fail("a value")
        return self._sum()

    def _list(self) -> tuple[Value, ...]:
        values: list[Value] = []
        if self._take("]"):
            return ()
        while True:
            values.append(self._value())
            if self._take("]"):
                return tuple(values)
            if not self._take(","):
                self._fail("',' or ']'")

    def _number(self) -> int | float:
        text = self.token.text
        try:
            number = float(text)
        except ValueError:
            self._fail(f"a number, not {text!r}")
        if not math.isfinite(number):
            self._fail("a finite number; this one is too large")
        self.index += 1
        return int(text) if text.replace("_", "").isdigit() else number

    def _unquoted(self, token: _Token) -> str:
        """Text in quotes with the escapes of JSON."""
        inside = token.text[1:-1]
        if token.text[0] == "'":
            swapped = {"\\'": "'", '"': '\\"'}
            inside = re.sub(r"\\.|\"", lambda match: swapped.get(match.group(), match.group()), inside)
        try:
            return str(json.loads(f'"{inside}"'))
        except ValueError:
            self._fail_at(token.place, "quoted text with no escapes but those of JSON")


# --- registries ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parameter:
    """What a registered class or function takes under one name."""

    name: str
    kind: Any
    annotation: Any
    default: Any  # inspect.Parameter.empty when it must be given
    registry: Registry  # where the names stand that are given as its value
    always: bool = False  # shown in the canonical name even when it has its default
    positional: bool = False  # shown there without its name

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty and self.kind is not inspect.Parameter.VAR_POSITIONAL


class Registry:
    """A table of named classes (frozen dataclasses) or functions, all of one kind.

    >>> shapes = Registry("shape")
    >>> @shapes.register("box", aliases=("rectangle",))
    ... @dataclass(frozen=True)
    ... class Box:
    ...     width: float
    ...     height: float = 1.0
    ...     k: int | None = None
    >>> shapes.build("box(2, height=3)@5")
    Box(width=2.0, height=3.0, k=5)
    >>> shapes.name_of(Box(2, k=5))
    'box(width=2)@5'

    A cut-off is the parameter ``k``. Fields of a dataclass may carry metadata: ``{"positional": True}`` writes the
    value without its name, ``{"always": True}`` writes it even where it is the default, and ``{"registry": OTHER}``
    looks names given as its value up in another table. ``modules`` are imported when the table is used: they register
    their entries, and this module imports nothing that stands above it.
    """

    def __init__(self, kind: str, *, modules: Iterable[str] = ()) -> None:
        self.kind = kind
        self._modules = tuple(modules)
        self._entries: dict[str, Callable[..., Any]] = {}
        self._aliases: dict[str, str] = {}
        self._names: dict[type, str] = {}
        self._sum_class: type | None = None
        self._parameters = functools.lru_cache(maxsize=None)(self._read_parameters)

    # the table

    def register(self, name: str, *, aliases: Iterable[str] = ()) -> Callable[[T], T]:
        """A decorator that enters a class or function under ``name``, and under its aliases too."""
        aliases = (aliases,) if isinstance(aliases, str) else tuple(aliases)
        spellings = [str(Name(spelling)) for spelling in (name, *aliases)]

        def enter(entry: T) -> T:
            for spelling in spellings:
                if spelling in self._entries or spelling in self._aliases or spellings.count(spelling) > 1:
                    raise ValueError(f"two entries of one table are called {spelling!r} (table of kind {self.kind!r})")
            if isinstance(entry, type):
                if entry in self._names:
                    raise ValueError(f"{entry.__name__} is registered as {self._names[entry]!r} already; use aliases=")
                self._names[entry] = spellings[0]
            self._entries[spellings[0]] = entry
            self._aliases.update(dict.fromkeys(spellings[1:], spellings[0]))
            return entry

        return enter

    def register_sum(self, entry: C) -> C:
        """A decorator for the class of weighted sums, a dataclass whose field ``terms`` holds pairs (number, object).

        It may have a field ``constant``; without it, a sum with a constant is an error.
        """
        if self._sum_class is not None:
            raise ValueError(f"the table of kind {self.kind!r} has a class of sums already: {self._sum_class.__name__}")
        self._sum_class = entry
        return entry

    def add_up(self, terms: Iterable[tuple[float, Any]], constant: float = 0.0) -> Any:
        """The weighted sum of objects of this table."""
        if self._sum_class is None:
            raise ValueError(f"this table has no sums (kind: {self.kind})")
        return self._sum_class(tuple(terms), constant)

    def __iter__(self) -> Iterator[tuple[str, Callable[..., Any]]]:
        self._fill()
        return iter(list(self._entries.items()))

    def __len__(self) -> int:
        self._fill()
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        self._fill()
        return isinstance(name, str) and (_normal(name) in self._entries or _normal(name) in self._aliases)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The registered class or function itself."""
        return self._entries[self.resolve(name)]

    def __repr__(self) -> str:
        return f"Registry({self.kind!r})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the order of registration, without aliases."""
        self._fill()
        return tuple(self._entries)

    @property
    def aliases(self) -> dict[str, str]:
        """Each alias with the name that it stands for."""
        self._fill()
        return dict(self._aliases)

    def resolve(self, name: str) -> str:
        """The canonical spelling of a name or alias, without arguments; an error when there is none."""
        self._fill()
        spelling = _normal(name)
        spelling = self._aliases.get(spelling, spelling)
        if spelling not in self._entries:
            raise ValueError(self._unknown(name))
        return spelling

    def _unknown(self, name: str) -> str:
        spellings = [*self._entries, *self._aliases]
        hint = did_you_mean(_normal(name), spellings)
        parts = _normal(name).split("_")
        for cut in range(1, len(parts)):
            first, second = "_".join(parts[:cut]), "_".join(parts[cut:])
            if first in self and second in self:
                hint = f" For a difference put a space before the minus: '{first} - {second}'."
        return f"no {self.kind} is called {name!r}.{hint} Known are: {', '.join(sorted(spellings)) or 'none'}"

    def _fill(self) -> None:
        for module in self._modules:
            importlib.import_module(module)

    # names to objects

    def build(self, name: str | Name | Sum) -> Any:
        """The object that a name means; equal names give equal objects."""
        parsed = parse(name) if isinstance(name, str) else name
        if isinstance(parsed, Sum):
            return self._build_sum(parsed)
        if not isinstance(parsed, Name):
            raise TypeError(f"expected the name of a {self.kind} as text; got {name!r} of type {type(name).__name__}")
        canonical = self.resolve(parsed.name)
        positional, keywords = self._bind(canonical, parsed)
        return self._entries[canonical](*positional, **keywords)

    def _build_sum(self, parsed: Sum) -> Any:
        if self._sum_class is None:
            raise ValueError(f"{str(parsed)!r} is a sum, which this table has not (kind: {self.kind})")
        terms = tuple((coefficient, self.build(name)) for coefficient, name in parsed.terms)
        if not parsed.constant:
            return self._sum_class(terms)
        if "constant" not in inspect.signature(self._sum_class).parameters:
            raise ValueError(f"{str(parsed)!r} adds a constant, which a sum cannot have here (kind: {self.kind})")
        return self._sum_class(terms, constant=parsed.constant)

    def _bind(self, canonical: str, name: Name) -> tuple[list[Any], dict[str, Any]]:
        """Give each argument of the name to its parameter, converted to what the annotation asks for."""
        parameters = self._parameters(canonical)
        by_name = {parameter.name: parameter for parameter in parameters if not _is_variadic(parameter)}
        variadic = next((parameter for parameter in parameters if _is_variadic(parameter)), None)
        ordered = [p for p in parameters if p.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD,)]
        where = f"(in {str(name)!r})"
        if len(name.arguments) > len(ordered) and variadic is None:
            listed = f" ({', '.join(p.name for p in ordered)})" if ordered else ""
            raise ValueError(
                f"{canonical} takes at most {len(ordered)} values without a parameter's name{listed}; "
                f"got {len(name.arguments)} {where}"
            )
        positional = [
            _convert(value, ordered[place] if place < len(ordered) else typing.cast(_Parameter, variadic), where)
            for place, value in enumerate(name.arguments)
        ]
        given = [(key, value) for key, value in name.keywords]
        if name.cutoff is not None:
            if "k" not in by_name:
                raise ValueError(f"{canonical} takes no cut-off; got @{name.cutoff} {where}")
            given.append(("k", name.cutoff))
        taken = {parameter.name for parameter in ordered[: len(positional)]}
        keywords: dict[str, Any] = {}
        for key, value in given:
            if key not in by_name:
                known = f"Its parameters are: {', '.join(by_name)}" if by_name else "It has none"
                raise ValueError(f"{canonical} has no parameter {key!r}.{did_you_mean(key, by_name)} {known} {where}")
            if key in taken:
                raise ValueError(f"{canonical}: parameter {key!r} is given twice {where}")
            taken.add(key)
            keywords[key] = _convert(value, by_name[key], where)
        missing = [parameter.name for parameter in parameters if parameter.required and parameter.name not in taken]
        if missing:
            raise ValueError(f"{canonical} needs {', '.join(missing)} {where}")
        return positional, keywords

    def _read_parameters(self, canonical: str) -> tuple[_Parameter, ...]:
        entry = self._entries[canonical]
        hints = typing.get_type_hints(entry)
        fields = {f.name: f for f in dataclasses.fields(entry)} if dataclasses.is_dataclass(entry) else {}
        parameters = []
        for name, parameter in inspect.signature(entry).parameters.items():
            field = fields.get(name)
            metadata: Any = field.metadata if field is not None else {}
            default = parameter.default
            if field is not None and field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            parameters.append(
                _Parameter(
                    name=name,
                    kind=parameter.kind,
                    annotation=hints.get(name, Any),
                    default=default,
                    registry=metadata.get("registry", self),
                    always=metadata.get("always", False),
                    positional=metadata.get("positional", False),
                )
            )
        return tuple(parameters)

    # objects to names

    def name_of(self, thing: object) -> str:
        """The canonical name of an object of a registered dataclass: ``build`` of it gives an equal object."""
        return str(self.describe(thing))

    def describe(self, thing: object) -> Name | Sum:
        """The canonical name, not yet written out."""
        self._fill()
        if self._sum_class is not None and type(thing) is self._sum_class:
            return self._describe_sum(thing)
        canonical = self._names.get(type(thing))
        if canonical is None or not dataclasses.is_dataclass(thing):
            raise TypeError(f"{thing!r} of type {type(thing).__name__} is no registered {self.kind}, so it has no name")
        arguments: list[Value] = []
        pending: list[Value] = []  # positional values that have their default: needed only before one that has not
        keywords: list[tuple[str, Value]] = []
        cutoff: int | None = None
        for parameter in self._parameters(canonical):
            value = getattr(thing, parameter.name)
            shown = parameter.always or parameter.required or not _same(value, parameter.default)
            if parameter.positional:
                pending.append(_written(value, parameter.registry))
                if shown:
                    arguments, pending = [*arguments, *pending], []
            elif shown and parameter.name == "k" and _is_whole(value) and value >= 1:
                cutoff = int(value)
            elif shown:
                keywords.append((parameter.name, _written(value, parameter.registry)))
        return Name(canonical, tuple(arguments), tuple(keywords), cutoff)

    def _describe_sum(self, thing: Any) -> Name | Sum:
        terms = []
        for coefficient, part in thing.terms:
            name = self.describe(part)
            if isinstance(name, Sum):
                raise ValueError(f"a sum of sums has no name: {thing!r}")
            terms.append((float(coefficient), name))
        constant = float(getattr(thing, "constant", 0.0))
        return terms[0][1] if len(terms) == 1 and terms[0][0] == 1 and not constant else Sum(tuple(terms), constant)


def _is_variadic(parameter: _Parameter) -> bool:
    return parameter.kind is inspect.Parameter.VAR_POSITIONAL


def _is_whole(value: object) -> typing.TypeGuard[int]:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _same(value: object, default: object) -> bool:
    """Equal, and not one of them a truth value where the other is a number."""
    return value is default or (bool(value == default) and isinstance(value, bool) == isinstance(default, bool))


def _written(value: Any, registry: Registry) -> Value:
    """The value of a field as it stands in a name."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and float(value) == value:
        return float(value)
    if isinstance(value, (tuple, list)):
        return tuple(_written(inner, registry) for inner in value)
    return registry.describe(value)


# --- values and annotations ------------------------------------------------------------------------------------------


class _MisfitError(Exception):
    """The value is not of the annotated type."""


def _convert(value: Value, parameter: _Parameter, where: str) -> Any:
    try:
        return _fitted(value, parameter.annotation, parameter.registry)
    except _MisfitError:
        expected = _in_words(parameter.annotation, parameter.registry)
        raise ValueError(f"parameter {parameter.name!r} takes {expected}; got {_text_of(value)} {where}") from None


def _fitted(value: Value, annotation: Any, registry: Registry) -> Any:
    """The value as the annotated type: a whole number may stand for a float, a name for the object it means."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _fitted(value, inner[0], registry)
    if origin in (Union, types.UnionType):
        return _fitted_to_one(value, inner, registry)
    if origin is Literal:
        return _option(value, inner)
    if annotation is tuple or origin is tuple:
        return _fitted_items(value, inner, registry)
    if annotation in (None, type(None)):
        return _require(value is None, value)
    if annotation is bool:
        return _require(isinstance(value, bool), value)
    if annotation is int:
        if isinstance(value, float) and value.is_integer():
            return int(value)  # 2.0 is written as 2
        return _require(_is_whole(value), value)
    if annotation is float:
        return float(typing.cast(float, _require(_is_whole(value) or isinstance(value, float), value)))
    if annotation is str:
        return _require(isinstance(value, str), value)
    if annotation in (Any, object):  # plain values only: a word would not say whether it means an object
        return _require(not isinstance(value, (Name, Sum)), value)
    return _named(value, annotation, registry)


def _require(fits: bool, value: Value) -> Value:
    if not fits:
        raise _MisfitError
    return value


def _fitted_to_one(value: Value, annotations: tuple[Any, ...], registry: Registry) -> Any:
    """The first member of a union that the value fits; an unknown name is an error only when no member fits."""
    problem: ValueError | None = None
    for annotation in annotations:
        try:
            return _fitted(value, annotation, registry)
        except _MisfitError:
            continue
        except ValueError as error:
            problem = problem or error
    raise problem or _MisfitError


def _option(value: Value, options: tuple[Any, ...]) -> Any:
    """The option of a Literal that the value is, or that is spelled like it (none, true, norm+dcg)."""
    for option in options:
        if type(option) is type(value) and option == value:
            return option
    spelled = "" if isinstance(value, tuple) else str(value) if isinstance(value, str) else _text_of(value)
    for option in options:
        if isinstance(option, str) and _normal(option) == _normal(spelled).replace(" ", ""):
            return option
    raise _MisfitError


def _fitted_items(value: Value, inner: tuple[Any, ...], registry: Registry) -> tuple[Any, ...]:
    if not isinstance(value, tuple):
        raise _MisfitError
    if not inner:
        return value
    wanted = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
    if len(wanted) != len(value):
        raise _MisfitError
    return tuple(_fitted(item, annotation, registry) for item, annotation in zip(value, wanted, strict=True))


def _named(value: Value, annotation: Any, registry: Registry) -> Any:
    """The object that a name given as a value means."""
    if not isinstance(value, (str, Name, Sum)):
        raise _MisfitError
    if isinstance(value, str):
        if not re.fullmatch(_WORD, value):
            raise _MisfitError
        value = Name(value)
    thing = registry.build(value)
    if (
        isinstance(annotation, type)
        and not getattr(annotation, "_is_protocol", False)
        and not isinstance(thing, annotation)
    ):
        raise _MisfitError
    return thing


def _in_words(annotation: Any, registry: Registry) -> str:
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    simple = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a word or quoted text",
        tuple: "a list",
    }
    if origin is typing.Annotated:
        return _in_words(inner[0], registry)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_in_words(member, registry) for member in inner))
    if origin is Literal:
        return " or ".join(_text_of(option) for option in inner)
    if origin is tuple:
        if inner[-1] is Ellipsis:
            return f"a list of which each is {_in_words(inner[0], registry)}"
        return f"a list of {len(inner)}: {', '.join(_in_words(member, registry) for member in inner)}"
    if annotation in (None, type(None)):
        return "none"
    if annotation in (Any, object):
        return "a number, a word or a list"
    return simple.get(annotation, f"the name of a {registry.kind}")


# --- the tables of the library ---------------------------------------------------------------------------------------

METRICS = Registry("metric", modules=("calirank.metrics",))
SCENARIOS = Registry("scenario", modules=("calirank.data.synthetic",))
FORMATS = Registry("format", modules=("calirank.data.formats",))
