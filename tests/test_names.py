"""Names are values: what is parsed is printed back, what is built is named back, and errors say what was meant."""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calirank import names
from calirank.names import Name, Registry, Sum, did_you_mean, parse

# --- the grammar -----------------------------------------------------------------------------------------------------

LATER = string.ascii_letters + string.digits + "_"
WORDS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.none() | st.booleans() | NUMBERS | WORDS | st.text(max_size=8)


@st.composite
def values(draw: st.DrawFn, depth: int) -> Any:
    """A value, with names, sums and lists inside one another up to a depth."""
    kind = draw(st.sampled_from(["plain", "plain", "list", "name", "sum"])) if depth else "plain"
    if kind == "plain":
        return draw(PLAIN)
    if kind == "list":
        return tuple(draw(values(depth - 1)) for _ in range(draw(st.integers(0, 3))))
    return draw(named(depth - 1) if kind == "name" else sums(depth - 1))


@st.composite
def named(draw: st.DrawFn, depth: int = 2) -> Name:
    arguments = tuple(draw(values(depth)) for _ in range(draw(st.integers(0, 2))))
    keys = draw(st.lists(WORDS, max_size=2, unique_by=str.lower))
    return Name(draw(WORDS), arguments, tuple((key, draw(values(depth))) for key in keys), draw(CUTOFFS))


@st.composite
def sums(draw: st.DrawFn, depth: int = 2) -> Sum:
    terms = tuple((draw(COEFFICIENTS), draw(named(depth))) for _ in range(draw(st.integers(2, 3))))
    return Sum(terms, draw(st.just(0.0) | COEFFICIENTS))


COEFFICIENTS = st.floats(-1e6, 1e6)
CUTOFFS = st.none() | st.integers(1, 10**6)


@given(named() | sums())
@settings(deadline=None, max_examples=200)
def test_what_is_printed_is_parsed_to_the_same(tree: Name | Sum) -> None:
    assert parse(str(tree)) == tree
    assert str(parse(str(tree))) == str(tree)


@given(named(), st.data())
@settings(deadline=None, max_examples=100)
def test_spaces_between_tokens_do_not_matter(tree: Name, data: st.DataObject) -> None:
    text = str(tree)
    if '"' in text:
        return  # spaces inside quotes do matter
    spaced = "".join(data.draw(st.sampled_from(["", " ", "\t\n"])) + c + " " if c in "(,)=[]@" else c for c in text)
    assert parse(spaced) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("ndcg", Name("ndcg")),
        ("ndcg@10", Name("ndcg", cutoff=10)),
        (" NDCG @ 10 ", Name("ndcg", cutoff=10)),
        ("ndcg()", Name("ndcg")),
        ("err(max_grade=2)@10", Name("err", (), (("max_grade", 2),), 10)),
        ("err(Max-Grade=2)", Name("err", (), (("max_grade", 2),))),
        ("zero-one", Name("zero_one")),
        ("top(3)", Name("top", (3,))),
        ("blocks(1,2,2)", Name("blocks", (1, 2, 2))),
        ("pairwise(smooth_hinge, alpha=0.5)", Name("pairwise", ("smooth_hinge",), (("alpha", 0.5),))),
        ("pairwise(smooth_hinge(alpha=.5))", Name("pairwise", (Name("smooth_hinge", (), (("alpha", 0.5),)),))),
        ("f(g())", Name("f", ("g",))),
        ("f(dcg@5)", Name("f", (Name("dcg", cutoff=5),))),
        ("f(gain=[0, 1, 3])", Name("f", (), (("gain", (0, 1, 3)),))),
        ("f([], [[1], [a, 'b c']])", Name("f", ((), ((1,), ("a", "b c"))))),
        ("f(true, False, NONE)", Name("f", (True, False, None))),
        ("f('true', \"none\")", Name("f", ("true", "none"))),
        ("f(Revenue, click-rate)", Name("f", ("Revenue", "click-rate"))),
        (r"f('it\'s', 'a\\', 'say \"so\"', 'say \\\'')", Name("f", ("it's", "a\\", 'say "so"', "say \\'"))),
        (r'f("été\n", "\u00e9")', Name("f", ("été\n", "é"))),
        ("f(-1, +2, - 3.5)", Name("f", (-1, 2, -3.5))),
        ("f(1e-3, .5, 5., 1E+2, 1_000)", Name("f", (0.001, 0.5, 5.0, 100.0, 1000))),
        ("f(norm+dcg)", Name("f", (Sum(((1, Name("norm")), (1, Name("dcg")))),))),
        ("f(0.5*a@3)", Name("f", (Sum(((0.5, Name("a", cutoff=3)),)),))),
        (
            "0.7*ndcg@10 + 0.3*dcg(gain=revenue)@10",
            Sum(((0.7, Name("ndcg", cutoff=10)), (0.3, Name("dcg", (), (("gain", "revenue"),), 10)))),
        ),
        ("0.7 ndcg@10-0.3 err", Sum(((0.7, Name("ndcg", cutoff=10)), (-0.3, Name("err"))))),
        ("ndcg - err", Sum(((1, Name("ndcg")), (-1, Name("err"))))),
        ("ndcg@5-err", Sum(((1, Name("ndcg", cutoff=5)), (-1, Name("err"))))),
        ("-err", Sum(((-1, Name("err")),))),
        ("+err", Name("err")),
        ("1*err", Name("err")),
        ("2err", None),
        ("1 - err", Sum(((-1, Name("err")),), 1)),
        ("err + 1 - 1", Name("err")),
    ],
)
def test_the_grammar_by_example(text: str, tree: Name | Sum | None) -> None:
    if tree is None:
        with pytest.raises(ValueError, match="expected a number, not '2err'"):
            parse(text)
    else:
        assert parse(text) == tree


def test_numbers_keep_their_type() -> None:
    whole, decimal = parse("f(10, 10.0)").arguments
    assert (type(whole), type(decimal)) == (int, float)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("NDCG(GAIN='linear') @10", "ndcg(gain=linear)@10"),
        ("f(1.0, 0.10, 1e20, 'two words', [1,2])", 'f(1, 0.1, 1e+20, "two words", [1, 2])'),
        ("1 - 2.0*err", "-2*err + 1"),
        ("a -0.5*b -c", "a - 0.5*b - c"),
        ("a-0.5*b-c", "a - 0.5*b_c"),
    ],
)
def test_the_canonical_form_by_example(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("", 0, "a name or a number"),
        ("10", 0, "a name, such as 'ndcg@10', not a number alone"),
        ("1 + 2", 0, "a sum that has a name in it"),
        ("ndcg@", 5, "a whole number from 1 on after '@'"),
        ("ndcg@0", 5, "a whole number from 1 on after '@'"),
        ("ndcg@-1", 5, "a whole number from 1 on after '@'"),
        ("ndcg@1.5", 5, "a whole number from 1 on after '@'"),
        ("ndcg@ten", 5, "a whole number from 1 on after '@'"),
        ("ndcg@10(gain=linear)", 7, "arguments come before the cut-off"),
        ("ndcg@10@5", 7, "'+', '-' or the end"),
        ("ndcg err", 5, "'+', '-' or the end"),
        ("ndcg)", 4, "'+', '-' or the end"),
        ("ndcg(", 5, "a value"),
        ("ndcg(gain=)", 10, "a value"),
        ("ndcg(gain=linear", 16, "',' or ')'"),
        ("ndcg(gain linear)", 10, "',' or ')'"),
        ("ndcg(1,)", 7, "a value"),
        ("ndcg([1 2])", 8, "',' or ']'"),
        ("ndcg([1,", 8, "a value"),
        ("ndcg(gain=linear, 10)", 18, "'parameter=value'"),
        ("ndcg(k=1, K=2)", 10, "each parameter once, but 'k' is given twice"),
        ("0.5*", 4, "a name after '*'"),
        ("0.5*0.5", 4, "a name after '*'"),
        ("ndcg +", 6, "a name or a number"),
        ("ndcg & err", 5, "one of ( ) [ ] , = @ * + -"),
        ("f('open)", 2, "the closing quote"),
        (r"f('\q')", 2, "no escapes but those of JSON"),
        ("f('a\nb')", 2, "no escapes but those of JSON"),
        ("f(1e999)", 2, "a finite number"),
        ("f(1__0)", 2, "a number, not '1__0'"),
        ("f(0x10)", 2, "a number, not '0x10'"),
        ("é+1.ndcg", 2, "a number, not '1.ndcg'"),
    ],
)
def test_syntax_errors_show_the_place_and_what_was_expected(text: str, place: int, expected: str) -> None:
    with pytest.raises(ValueError, match="cannot read the name") as caught:
        parse(text)
    message, line, caret = str(caught.value).rsplit("\n", 2)
    assert repr(text) in message
    assert expected in message
    assert line == "  " + text.replace("\n", " ")
    assert caret == "  " + " " * place + "^"


@given(st.text(LATER + "()[]@=,+-*.'\" \\é", max_size=30))
@settings(deadline=None, max_examples=300)
def test_any_text_is_read_or_refused_with_a_value_error(text: str) -> None:
    try:
        tree = parse(text)
    except ValueError:
        return
    assert parse(str(tree)) == tree


def test_a_name_is_text() -> None:
    with pytest.raises(TypeError, match="a name is text, such as 'ndcg@10'; got 10 of type int"):
        parse(10)


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse("f(" * 100_000)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Name("two words"), "a name begins with a letter"),
        (lambda: Name("a", cutoff=0), "a cut-off is a whole number from 1 on"),
        (lambda: Sum(()), "a sum has two terms"),
        (lambda: Sum(((1.0, Name("a")),)), "a sum has two terms"),
        (lambda: Sum(((float("inf"), Name("a")),)), "finite"),
        (lambda: str(Name("a", (float("nan"),))), "a name holds finite numbers"),
    ],
)
def test_trees_that_no_text_means_are_refused(make: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        make()


def test_did_you_mean() -> None:
    assert did_you_mean("NDGC", ["dcg", "ndcg", "err"]) == " Did you mean 'ndcg'?"
    assert did_you_mean("qid", ["Qid"]) == " Did you mean 'Qid'?"
    assert did_you_mean("qid", []) == did_you_mean("qid", ["label"]) == ""


# --- registries ------------------------------------------------------------------------------------------------------

METRICS = Registry("metric")
LOSSES = Registry("loss")
Gain = Literal["exponential", "linear", "none", "norm+dcg"] | str | tuple[float, ...]


class Metric:
    """The base of the test metrics."""


class Curve(Protocol):
    alpha: float


@METRICS.register("dcg", aliases=["discounted-gain"])
@dataclass(frozen=True)
class DCG(Metric):
    k: int | None = None
    gain: Gain = "exponential"
    base: float = 2.0
    empty: float | Literal["skip"] = 0.0


@METRICS.register("ndcg")
@dataclass(frozen=True, slots=True)
class NDCG(Metric):
    k: int | None = None
    gain: Gain = "exponential"


@METRICS.register("err", aliases="expected-reciprocal-rank")
@dataclass(frozen=True)
class ERR(Metric):
    max_grade: int = field(default=4, metadata={"always": True})
    k: int | None = None


@METRICS.register("auc")
@dataclass(frozen=True)
class AUC(Metric):
    weights: tuple[float, float] = (1.0, 1.0)
    strict: bool = False
    columns: tuple[str, ...] = field(default_factory=tuple)


@METRICS.register("wta")
def wta() -> NDCG:
    return NDCG(k=1)


@METRICS.register_sum
@dataclass(frozen=True)
class MetricSum(Metric):
    terms: tuple[tuple[float, Metric], ...]
    constant: float = 0.0


@LOSSES.register("smooth_hinge")
@dataclass(frozen=True)
class SmoothHinge:
    alpha: float = 0.5


@LOSSES.register("logistic")
@dataclass(frozen=True)
class Logistic:
    alpha: float = 1.0


@LOSSES.register("pairwise")
@dataclass(frozen=True)
class Pairwise:
    phi: str = field(default="logistic", metadata={"positional": True})
    alpha: float | None = None


@LOSSES.register("composed")
@dataclass(frozen=True)
class Composed:
    curve: Curve = field(metadata={"positional": True})
    other: SmoothHinge = field(default=SmoothHinge(), metadata={"positional": True})
    metric: Metric | None = field(default=None, metadata={"registry": METRICS})


@LOSSES.register("squared")
@dataclass(frozen=True)
class Squared:
    k: int = 3
    scale: Annotated[float, "positive"] = 1.0
    anything: Any = None


FLOATS = st.floats(-1e9, 1e9)
GAINS = st.sampled_from(["exponential", "linear", "none", "norm+dcg", "Revenue", "two words"])
THINGS = st.one_of(
    st.builds(DCG, CUTOFFS, GAINS | st.lists(FLOATS, max_size=3).map(tuple), FLOATS, FLOATS | st.just("skip")),
    st.builds(NDCG, CUTOFFS, GAINS),
    st.builds(ERR, st.integers(0, 9), CUTOFFS),
    st.builds(AUC, st.tuples(FLOATS, FLOATS), st.booleans(), st.lists(st.text(max_size=5), max_size=2).map(tuple)),
)
HINGES, CURVES = st.builds(SmoothHinge, FLOATS), st.builds(Logistic, FLOATS)
LOSS_THINGS = st.one_of(
    HINGES,
    st.builds(Pairwise, st.sampled_from(["logistic", "smooth_hinge"]), st.none() | FLOATS),
    st.builds(Composed, HINGES | CURVES, HINGES, st.none() | THINGS),
    st.builds(Squared, st.integers(-3, 5), FLOATS, st.none() | st.text(max_size=3) | st.integers()),
)


@given(THINGS)
@settings(deadline=None, max_examples=200)
def test_metrics_are_built_back_from_their_names(thing: object) -> None:
    assert METRICS.build(METRICS.name_of(thing)) == thing
    assert str(parse(METRICS.name_of(thing))) == METRICS.name_of(thing)


@given(LOSS_THINGS)
@settings(deadline=None, max_examples=200)
def test_losses_are_built_back_from_their_names(thing: object) -> None:
    assert LOSSES.build(LOSSES.name_of(thing)) == thing


@given(st.lists(st.tuples(FLOATS, THINGS), min_size=2, max_size=3), FLOATS)
@settings(deadline=None, max_examples=100)
def test_sums_are_built_back_from_their_names(terms: list[tuple[float, Metric]], constant: float) -> None:
    thing = MetricSum(tuple(terms), constant)
    assert METRICS.build(METRICS.name_of(thing)) == thing


@pytest.mark.parametrize(
    ("name", "thing", "canonical"),
    [
        ("ndcg@10", NDCG(k=10), "ndcg@10"),
        ("NDCG(10)", NDCG(k=10), "ndcg@10"),
        ("ndcg(k=10)", NDCG(k=10), "ndcg@10"),
        ("ndcg(gain=exponential)", NDCG(), "ndcg"),
        ("ndcg(gain=[0, 1, 3])@5", NDCG(5, (0.0, 1.0, 3.0)), "ndcg(gain=[0, 1, 3])@5"),
        ("ndcg(gain=norm + dcg)", NDCG(gain="norm+dcg"), 'ndcg(gain="norm+dcg")'),
        ("ndcg(gain=none)", NDCG(gain="none"), 'ndcg(gain="none")'),
        ("ndcg(gain=Linear)", NDCG(gain="linear"), "ndcg(gain=linear)"),
        ("ndcg(gain=Revenue)", NDCG(gain="Revenue"), "ndcg(gain=Revenue)"),
        ("discounted_gain(base=10)", DCG(base=10.0), "dcg(base=10)"),
        ("dcg(empty=skip)@3", DCG(k=3, empty="skip"), "dcg(empty=skip)@3"),
        ("err", ERR(), "err(max_grade=4)"),
        ("err(max_grade=2)@10", ERR(2, 10), "err(max_grade=2)@10"),
        ("Expected-Reciprocal-Rank(2)", ERR(2), "err(max_grade=2)"),
        ("auc(weights=[1, 0.5], strict=true)", AUC((1.0, 0.5), True), "auc(weights=[1, 0.5], strict=true)"),
        ("wta", NDCG(k=1), "ndcg@1"),
        (
            "0.7*ndcg@10 + 0.3*dcg(gain=revenue)@10",
            MetricSum(((0.7, NDCG(10)), (0.3, DCG(10, "revenue")))),
            "0.7*ndcg@10 + 0.3*dcg(gain=revenue)@10",
        ),
        ("1 - err", MetricSum(((-1.0, ERR()),), 1.0), "-err(max_grade=4) + 1"),
    ],
)
def test_metric_names_by_example(name: str, thing: object, canonical: str) -> None:
    assert METRICS.build(name) == thing
    assert METRICS.build(parse(name)) == thing
    assert METRICS.name_of(thing) == canonical
    assert METRICS.build(canonical) == thing


@pytest.mark.parametrize(
    ("name", "thing", "canonical"),
    [
        ("pairwise(smooth_hinge, alpha=0.5)", Pairwise("smooth_hinge", 0.5), "pairwise(smooth_hinge, alpha=0.5)"),
        ("pairwise(alpha=1)", Pairwise(alpha=1.0), "pairwise(alpha=1)"),
        ("composed(logistic)", Composed(Logistic()), "composed(logistic)"),
        ("composed(curve=smooth-hinge(2))", Composed(SmoothHinge(2.0)), "composed(smooth_hinge(alpha=2))"),
        (
            "composed(logistic, smooth_hinge(3), metric=ndcg@10)",
            Composed(Logistic(), SmoothHinge(3.0), NDCG(10)),
            "composed(logistic, smooth_hinge(alpha=3), metric=ndcg@10)",
        ),
        (
            "composed(logistic, metric=ndcg - 2*err)",
            Composed(Logistic(), metric=MetricSum(((1.0, NDCG()), (-2.0, ERR())))),
            "composed(logistic, metric=ndcg - 2*err(max_grade=4))",
        ),
        ("squared@5", Squared(5), "squared@5"),
        ("squared@3", Squared(), "squared"),
        ("squared(-1, 2, word)", Squared(-1, 2.0, "word"), "squared(k=-1, scale=2, anything=word)"),
    ],
)
def test_loss_names_by_example(name: str, thing: object, canonical: str) -> None:
    assert LOSSES.build(name) == thing
    assert LOSSES.name_of(thing) == canonical
    assert LOSSES.build(canonical) == thing


def test_equal_names_give_equal_objects_of_the_same_types() -> None:
    assert type(METRICS.build("dcg(base=2)").base) is float
    assert hash(METRICS.build("dcg(gain=[1, 2])")) == hash(METRICS.build("dcg(gain=[1.0, 2.0])"))


def test_values_from_numpy_are_named_like_python_ones() -> None:
    assert METRICS.name_of(DCG(k=np.int64(5), base=np.float32(0.5))) == "dcg(base=0.5)@5"


def test_a_truth_value_is_not_taken_for_the_number_it_equals() -> None:
    assert METRICS.name_of(DCG(empty=False)) == "dcg(empty=false)"
    assert METRICS.name_of(ERR(k=True)) == "err(max_grade=4, k=true)"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("ndgc@10", r"no metric is called 'ndgc'. Did you mean 'ndcg'\? Known are: auc, dcg, discounted_gain, err, "),
        ("xyz", r"no metric is called 'xyz'. Known are: auc, "),
        ("ndcg-err", "For a difference put a space before the minus: 'ndcg - err'"),
        ("ndcg + ndgc", "Did you mean 'ndcg'"),
        ("ndcg(gian=linear)", r"ndcg has no parameter 'gian'. Did you mean 'gain'\? Its parameters are: k, gain "),
        ("wta(gain=linear)", r"wta has no parameter 'gain'. It has none \(in 'wta\(gain=linear\)'\)"),
        ("wta@5", r"wta takes no cut-off; got @5 \(in 'wta@5'\)"),
        ("auc@5", "auc takes no cut-off; got @5"),
        ("ndcg(k=10)@5", "ndcg: parameter 'k' is given twice"),
        ("ndcg(10, k=10)", "ndcg: parameter 'k' is given twice"),
        ("ndcg(1, linear, 3)", r"ndcg takes at most 2 values without a parameter's name \(k, gain\); got 3"),
        ("wta(1)", "wta takes at most 0 values without a parameter's name; got 1"),
        ("ndcg(k=ten)", r"parameter 'k' takes a whole number or none; got ten \(in 'ndcg\(k=ten\)'\)"),
        ("ndcg(k=1.5)", "parameter 'k' takes a whole number or none; got 1.5"),
        ("ndcg(k=true)", "parameter 'k' takes a whole number or none; got true"),
        ("err(max_grade=[1])", r"parameter 'max_grade' takes a whole number; got \[1\]"),
        ("dcg(base=none)", "parameter 'base' takes a number; got none"),
        ("dcg(base=true)", "parameter 'base' takes a number; got true"),
        ("dcg(empty=word)", "parameter 'empty' takes a number or skip; got word"),
        ("dcg(gain=[a])", "or a list of which each is a number; got"),
        ("dcg(gain=ndcg@3)", "parameter 'gain' takes exponential or linear or .* got ndcg@3"),
        ("auc(strict=1)", "parameter 'strict' takes true or false; got 1"),
        ("auc(weights=[1])", r"parameter 'weights' takes a list of 2: a number, a number; got \[1\]"),
        ("auc(columns=revenue)", "takes a list of which each is a word or quoted text; got revenue"),
    ],
)
def test_errors_in_metric_names(name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        METRICS.build(name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("composed", "composed needs curve"),
        ("composed(logistc)", "no loss is called 'logistc'. Did you mean 'logistic'"),
        ("composed(5)", "parameter 'curve' takes the name of a loss; got 5"),
        ("composed('two words')", "parameter 'curve' takes the name of a loss; got"),
        ("composed(logistic, logistic)", "parameter 'other' takes the name of a loss; got logistic"),
        ("composed(logistic, metric=logistic)", "no metric is called 'logistic'"),
        ("logistic + smooth_hinge", "is a sum, which this table has not"),
        ("squared(anything=f(1))", r"parameter 'anything' takes a number, a word or a list; got f\(1\)"),
    ],
)
def test_errors_in_loss_names(name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        LOSSES.build(name)


def test_what_is_no_name_and_what_has_no_name() -> None:
    with pytest.raises(TypeError, match="expected the name of a metric as text; got 5 of type int"):
        METRICS.build(5)
    with pytest.raises(TypeError, match="is no registered metric"):
        METRICS.name_of(SmoothHinge())
    with pytest.raises(TypeError, match="is no registered metric"):
        METRICS.name_of(NDCG(gain=abs))
    with pytest.raises(ValueError, match="a sum of sums"):
        METRICS.name_of(MetricSum(((1.0, MetricSum(((2.0, NDCG()),))), (1.0, ERR()))))


def test_sums_without_a_constant_refuse_one() -> None:
    table = Registry("metric")
    table.register("ndcg")(NDCG)

    @table.register_sum
    @dataclass(frozen=True)
    class Plain:
        terms: tuple[tuple[float, object], ...]

    assert table.name_of(table.build("2*ndcg - ndcg@5")) == "2*ndcg - ndcg@5"
    assert table.name_of(Plain(((1.0, NDCG()),))) == "ndcg"
    with pytest.raises(ValueError, match="adds a constant, which a sum cannot have here"):
        table.build("1 - ndcg")
    with pytest.raises(ValueError, match="has a class of sums already: Plain"):
        table.register_sum(MetricSum)


def test_functions_take_any_number_of_values() -> None:
    table = Registry("space")

    @table.register("blocks")
    def blocks(*sizes: int) -> tuple[int, ...]:
        return sizes

    assert table.build("blocks(1, 2, 2)") == (1, 2, 2)
    assert table.build("blocks") == ()
    with pytest.raises(ValueError, match="parameter 'sizes' takes a whole number; got a"):
        table.build("blocks(1, a)")
    with pytest.raises(ValueError, match="blocks has no parameter 'sizes'"):
        table.build("blocks(sizes=1)")


def test_a_table_lists_its_entries_in_order_and_knows_its_aliases() -> None:
    assert [name for name, _ in METRICS] == list(METRICS.names) == ["dcg", "ndcg", "err", "auc", "wta"]
    assert dict(METRICS)["err"] is ERR is METRICS["Expected-reciprocal-rank"]
    assert METRICS.aliases == {"discounted_gain": "dcg", "expected_reciprocal_rank": "err"}
    assert METRICS.resolve("Discounted-Gain") == "dcg"
    assert len(METRICS) == 5
    assert "WTA" in METRICS
    assert "discounted_gain" in METRICS
    assert "rr" not in METRICS
    assert 5 not in METRICS
    with pytest.raises(ValueError, match="no metric is called 'rr'"):
        METRICS["rr"]


def test_one_name_stands_once_in_a_table_and_may_stand_in_two_tables() -> None:
    first, second = Registry("metric"), Registry("loss")
    first.register("a", aliases=["b"])(NDCG)
    second.register("a")(NDCG)
    for name in ("a", "A", "b"):
        with pytest.raises(ValueError, match=f"two entries of one table are called '{name.lower()}'"):
            first.register(name)(ERR)
    with pytest.raises(ValueError, match="two entries of one table are called 'b'"):
        first.register("c", aliases=["b"])(ERR)
    with pytest.raises(ValueError, match="two entries of one table are called 'd'"):
        first.register("d", aliases=["D"])(ERR)
    with pytest.raises(ValueError, match="NDCG is registered as 'a' already; use aliases="):
        first.register("e")(NDCG)
    with pytest.raises(ValueError, match="a name begins with a letter"):
        first.register("no name")
    assert first.names == ("a",)


def test_a_lazy_table_is_filled_when_it_is_first_used(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazily_registered.py").write_text(
        "import tables_of_the_test\n"
        "@tables_of_the_test.TABLE.register('late')\n"
        "def late(k: int = 1) -> int:\n    return k\n"
        "FILLED_DURING_IMPORT = tables_of_the_test.TABLE.names\n"
    )
    (tmp_path / "tables_of_the_test.py").write_text(
        "from calirank.names import Registry\nTABLE = Registry('thing', modules=('lazily_registered',))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import sys

    import tables_of_the_test

    assert "lazily_registered" not in sys.modules
    assert tables_of_the_test.TABLE.build("late@7") == 7
    assert sys.modules["lazily_registered"].FILLED_DURING_IMPORT == ("late",)
    for module in ("lazily_registered", "tables_of_the_test"):
        monkeypatch.delitem(sys.modules, module)


def test_the_tables_of_the_library_can_be_listed() -> None:
    for table in (names.METRICS, names.SCENARIOS, names.FORMATS):
        assert len(table) > 0, table
        assert all(table[name] is entry for name, entry in table)
