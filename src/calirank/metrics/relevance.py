"""Relevance: the labels from which a document counts, for metrics that know two kinds of documents."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from calirank.metrics.base import LabelMetric, check_number
from calirank.metrics.lists import Bools, Floats, Labels


class Binary(LabelMetric):
    """A metric of relevant and irrelevant documents: a label of at least ``relevant`` is relevant, 0 is not.

    What lies between is refused, because it says neither.
    """

    supervision = "binary"
    monotone = True
    relevant: float

    def check(self, labels: Labels) -> None:
        super().check(labels)
        labels.check(
            self,
            lambda y: (y > 0) & (y < self.relevant),
            f"expected labels 0 or >= {self.relevant:g} (relevant={self.relevant:g})",
        )

    def _relevant(self, labels: Floats, columns: Mapping[str, Floats]) -> Bools:
        del columns
        relevant: Bools = labels >= self.relevant
        return relevant

    def top_label(self) -> float:
        """The highest label that matters."""
        return float(self.relevant)

    def _relevance(self, labels: Any) -> list[Fraction]:
        """1 for each relevant document, 0 for the others."""
        return [Fraction(int(label >= self.relevant)) for label in self._known(labels)]


def check_relevant(metric: str, relevant: Any) -> None:
    """Refuse a threshold that no label could be below."""
    check_number(metric, "relevant", relevant, 0, inclusive=False)
