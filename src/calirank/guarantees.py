"""What a claim is: claim, condition, constant, exponent, citation, scope.

Every statement that the library makes about itself ("calibrated for ndcg@10", "regret at most …") is a
:class:`Guarantee`. It was computed or cites its theorem, and it never says more than is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import Any

#: The papers that a citation may name. "[MLJ13 Th 3.2]" is Theorem 3.2 of REFERENCES["MLJ13"].
REFERENCES: Mapping[str, str] = MappingProxyType(
    {
        "ICML11": "David Buffoni, Clément Calauzènes, Patrick Gallinari, Nicolas Usunier. Learning Scoring Functions "
        "with Order-Preserving Losses and Standardized Supervision. The 28th International Conference on Machine "
        "Learning (ICML 2011), pp. 825-832, 2011.",
        "MLJ13": "Clément Calauzènes, Nicolas Usunier, Patrick Gallinari. Calibration and regret bounds for "
        "order-preserving surrogate losses in learning to rank. Machine Learning, 93 (2-3), pp. 227-260, 2013. "
        "doi:10.1007/s10994-013-5382-3.",
        "NIPS13": "Harish G. Ramaswamy, Shivani Agarwal, Ambuj Tewari. Convex Calibrated Surrogates for Low-Rank Loss "
        "Matrices with Applications to Subset Ranking Losses. Advances in Neural Information Processing Systems 26, "
        "pp. 1475-1483, 2013.",
        "NeurIPS20": "Clément Calauzènes, Nicolas Usunier. On ranking via sorting by estimated expected utility. "
        "Advances in Neural Information Processing Systems 33, 2020.",
    }
)

_KEY = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One claim, what it holds under, and where it comes from.

    ``holds`` is True, False, or None: not known. ``condition`` and ``scope`` are words: what the data must satisfy, and
    for which lists, labels and arithmetic the claim was decided. ``constant`` and ``exponent`` bound the regret:
    regret <= constant * (surrogate regret) ** exponent. ``citation`` is one or more keys such as "[MLJ13 Th 3.2]", or
    "computed: " and how; a claim that is decided needs one or the other.

    >>> claim = Guarantee("calibrated for dcg", True, constant=2.0, exponent=0.5, citation="[MLJ13 Th 5.2]")
    >>> claim.regret_bound(0.25)
    1.0
    >>> print(claim)
    calibrated for dcg: holds [MLJ13 Th 5.2]; regret <= 2 * (surrogate regret)^0.5
    >>> print(Guarantee("calibrated for err", None))
    calibrated for err: not known
    """

    claim: str
    holds: bool | None
    condition: str = ""
    constant: float | None = None
    exponent: float | None = None
    citation: str = ""
    scope: str = ""

    def __post_init__(self) -> None:
        for name in ("claim", "condition", "citation", "scope"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise TypeError(f"the {name} of a guarantee is text; got {value!r}")
        if not self.claim.strip():
            raise ValueError("a guarantee says what it claims; the claim is empty")
        if not (self.holds is None or isinstance(self.holds, bool)):
            raise TypeError(f"holds is True, False or None (not known); got {self.holds!r}")
        self._check_bound()
        _check_citation(self.citation)
        if self.holds is not None and not self.citation:
            raise ValueError(
                f"{self.claim!r} is said to {'hold' if self.holds else 'fail'} without a reason: "
                'cite a theorem ("[MLJ13 Th 3.2]") or say how it was computed ("computed: …")'
            )

    def _check_bound(self) -> None:
        if (self.constant is None) != (self.exponent is None):
            raise ValueError(
                "a regret bound has both a constant and an exponent; "
                f"got constant={self.constant!r} and exponent={self.exponent!r}"
            )
        for name in ("constant", "exponent"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"the {name} of a regret bound is a number; got {value!r}")
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"the {name} of a regret bound is positive and finite; got {value!r}")
            object.__setattr__(self, name, float(value))
        if self.constant is not None and self.holds is not True:
            raise ValueError(f"a regret bound comes with a claim that holds; {self.claim!r} has holds={self.holds!r}")

    def regret_bound(self, surrogate_regret: float) -> float:
        """The largest regret that a model with this surrogate regret can have: constant * regret ** exponent.

        It bounds anything only where the condition of the guarantee is met.
        """
        if self.constant is None or self.exponent is None:
            raise ValueError(f"no regret bound is known for {self.claim!r}")
        if not surrogate_regret >= 0:
            raise ValueError(f"a surrogate regret is a number from 0 on; got {surrogate_regret!r}")
        return self.constant * math.pow(surrogate_regret, self.exponent)

    def references(self) -> tuple[str, ...]:
        """The cited papers in full, each once.

        >>> [paper[:14] for paper in Guarantee("calibrated for dcg", True, citation="[MLJ13 Th 3.2]").references()]
        ['Clément Calauz']
        """
        papers = (key.split()[0] for key in _KEY.findall(self.citation))
        return tuple(REFERENCES[paper] for paper in dict.fromkeys(papers))

    def __str__(self) -> str:
        verdict = {True: "holds", False: "does not hold", None: "not known"}[self.holds]
        parts = [f"{self.claim}: {verdict}"]
        if self.condition and self.holds is not None:
            parts[0] += f" if {self.condition}"
        if self.citation:
            parts[0] += f" {self.citation}" if self.citation.startswith("[") else f" ({self.citation})"
        if self.condition and self.holds is None:
            parts.append(f"condition: {self.condition}")
        if self.constant is not None:
            parts.append(f"regret <= {self.constant:.4g} * (surrogate regret)^{self.exponent:.4g}")
        if self.scope:
            parts.append(f"scope: {self.scope}")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dictionary of JSON's own types; :meth:`from_dict` takes it back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Guarantee:
        """The guarantee that :meth:`to_dict` wrote down."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(values) - set(known))
        missing = sorted({"claim", "holds"} - set(values))
        if unknown or missing:
            what = f"does not have {', '.join(unknown)}" if unknown else f"needs {', '.join(missing)}"
            raise ValueError(f"a guarantee {what}; its fields are {', '.join(known)}")
        return cls(**values)


def _check_citation(citation: str) -> None:
    """Every [key] names a known paper and a place in it; what is not computed consists of keys alone."""
    computed = citation.startswith("computed:")
    if computed and not _KEY.sub("", citation.removeprefix("computed:")).strip(" ,;."):
        raise ValueError(f'a computed claim says how it was computed ("computed: …"); got {citation!r}')
    if not computed and _KEY.sub("", citation).strip(" ,;"):
        raise ValueError(
            f'a citation is keys such as "[MLJ13 Th 3.2]", or "computed: " and how; got {citation!r}, '
            f"which has {_KEY.sub('', citation).strip(' ,;')!r} outside brackets"
        )
    for key in _KEY.findall(citation):
        paper, _, place = key.strip().partition(" ")
        if paper not in REFERENCES:
            raise ValueError(f"citation [{key}] names no known paper; known are {', '.join(REFERENCES)}")
        if not place.strip():
            raise ValueError(f'citation [{key}] names no place in the paper; expected something like "[{paper} Th 3]"')
