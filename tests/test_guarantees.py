"""A guarantee says what is known, where from and how far, and never more."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calirank.guarantees import REFERENCES, Guarantee

CITED = Guarantee(
    claim="calibrated for ndcg@10",
    holds=True,
    condition="labels are bounded",
    constant=math.sqrt(2),
    exponent=0.5,
    citation="[MLJ13 Th 5.2], [ICML11 Th 1]",
    scope="lists of up to 120 items",
)

WORDS = st.text(min_size=1, max_size=12).filter(str.strip)
PLACES = st.tuples(st.sampled_from(sorted(REFERENCES)), st.sampled_from(["Th 3.2", "(14)", "Prop 9", "App A"]))
CITATIONS = st.lists(PLACES.map("[{0[0]} {0[1]}]".format), min_size=1, max_size=3).map(", ".join) | st.just(
    "computed: by enumeration of all orders, as in [MLJ13 Th 5.4]"
)
POSITIVE = st.floats(1e-6, 1e6)


@st.composite
def guarantees(draw: st.DrawFn) -> Guarantee:
    holds = draw(st.sampled_from([True, False, None]))
    bound = draw(st.booleans()) and holds is True
    return Guarantee(
        claim=draw(WORDS),
        holds=holds,
        condition=draw(st.just("") | WORDS),
        constant=draw(POSITIVE) if bound else None,
        exponent=draw(POSITIVE) if bound else None,
        citation=draw(CITATIONS if holds is not None else CITATIONS | st.just("")),
        scope=draw(st.just("") | WORDS),
    )


@given(guarantees())
@settings(deadline=None, max_examples=100)
def test_a_guarantee_survives_json(guarantee: Guarantee) -> None:
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee


@given(guarantees())
@settings(deadline=None, max_examples=100)
def test_words_never_say_more_than_is_known(guarantee: Guarantee) -> None:
    words = str(guarantee).removeprefix(f"{guarantee.claim}: ")
    assert words.startswith({True: "holds", False: "does not hold", None: "not known"}[guarantee.holds])
    assert ("regret <=" in words) == (guarantee.constant is not None)
    for part in (guarantee.condition, guarantee.scope, guarantee.citation):
        assert part in words


def test_words_by_example() -> None:
    assert str(CITED) == (
        "calibrated for ndcg@10: holds if labels are bounded [MLJ13 Th 5.2], [ICML11 Th 1]; "
        "regret <= 1.414 * (surrogate regret)^0.5; scope: lists of up to 120 items"
    )
    computed = Guarantee("has a utility", False, citation="computed: by exact enumeration", scope="n = 4")
    assert str(computed) == "has a utility: does not hold (computed: by exact enumeration); scope: n = 4"
    unknown = Guarantee("calibrated for err", None, condition="low noise")
    assert str(unknown) == "calibrated for err: not known; condition: low noise"


def test_the_regret_bound_is_constant_times_power() -> None:
    assert CITED.regret_bound(0.02) == pytest.approx(0.2)  # sqrt(2) * sqrt(0.02) = sqrt(0.04)
    assert CITED.regret_bound(0) == 0
    assert CITED.regret_bound(math.inf) == math.inf


def test_no_bound_is_made_up() -> None:
    with pytest.raises(ValueError, match="no regret bound is known for 'calibrated for err'"):
        Guarantee("calibrated for err", None).regret_bound(0.1)
    for wrong in (-1e-9, math.nan):
        with pytest.raises(ValueError, match="a surrogate regret is a number from 0 on"):
            CITED.regret_bound(wrong)


def test_references_are_the_papers_in_full_each_once() -> None:
    assert CITED.references() == (REFERENCES["MLJ13"], REFERENCES["ICML11"])
    twice = dataclasses.replace(CITED, citation="[MLJ13 Th 5.2] [MLJ13 Th 3.2]")
    assert twice.references() == (REFERENCES["MLJ13"],)
    assert set(REFERENCES) == {"ICML11", "MLJ13", "NIPS13", "NeurIPS20"}


def test_numbers_of_a_bound_become_floats() -> None:
    guarantee = dataclasses.replace(CITED, constant=2, exponent=1)
    assert (type(guarantee.constant), type(guarantee.exponent)) == (float, float)


@pytest.mark.parametrize(
    ("changes", "error", "problem"),
    [
        ({"claim": " "}, ValueError, "the claim is empty"),
        ({"claim": None}, TypeError, "the claim of a guarantee is text"),
        ({"scope": 5}, TypeError, "the scope of a guarantee is text; got 5"),
        ({"holds": 1}, TypeError, r"holds is True, False or None \(not known\); got 1"),
        ({"holds": "yes"}, TypeError, "holds is True, False or None"),
        ({"exponent": None}, ValueError, "a regret bound has both a constant and an exponent"),
        ({"constant": None}, ValueError, "a regret bound has both a constant and an exponent"),
        ({"constant": 0.0}, ValueError, "the constant of a regret bound is positive and finite; got 0.0"),
        ({"constant": math.inf}, ValueError, "the constant of a regret bound is positive and finite"),
        ({"exponent": math.nan}, ValueError, "the exponent of a regret bound is positive and finite"),
        ({"exponent": "half"}, TypeError, "the exponent of a regret bound is a number"),
        ({"constant": True}, TypeError, "the constant of a regret bound is a number"),
        ({"holds": False}, ValueError, "a regret bound comes with a claim that holds"),
        ({"holds": None}, ValueError, "a regret bound comes with a claim that holds"),
        ({"citation": ""}, ValueError, "is said to hold without a reason"),
        ({"citation": "Theorem 3"}, ValueError, "which has 'Theorem 3' outside brackets"),
        ({"citation": "[MLJ13 Th 3] proof"}, ValueError, "which has 'proof' outside brackets"),
        ({"citation": "[MLJ31 Th 3]"}, ValueError, r"citation \[MLJ31 Th 3\] names no known paper; known are ICML11"),
        ({"citation": "[]"}, ValueError, "names no known paper"),
        ({"citation": "[MLJ13]"}, ValueError, "names no place in the paper"),
        ({"citation": "computed:"}, ValueError, "says how it was computed"),
        ({"citation": "computed: [MLJ13 Th 3]"}, ValueError, "says how it was computed"),
        ({"citation": "computed: as in [Smith12 Th 3]"}, ValueError, "names no known paper"),
    ],
)
def test_what_is_no_guarantee_is_refused(changes: dict[str, Any], error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        dataclasses.replace(CITED, **changes)


def test_a_refutation_needs_a_reason_too() -> None:
    with pytest.raises(ValueError, match="is said to fail without a reason"):
        Guarantee("calibrated for err", False)


def test_dictionaries_with_other_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="a guarantee does not have proof; its fields are claim, holds, condition"):
        Guarantee.from_dict({**CITED.to_dict(), "proof": "trivial"})
    with pytest.raises(ValueError, match="a guarantee needs claim, holds"):
        Guarantee.from_dict({"scope": "everything"})
