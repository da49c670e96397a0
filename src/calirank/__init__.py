"""calirank: learning to rank in which every number that is trained on can be traced to the metric that will judge it.

The whole public surface stands on this screen. Each name is imported when it is first used, so ``import calirank`` by
itself costs almost nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "calirank._kernel": ("set_threads",),
    "calirank.guarantees": ("Guarantee",),
    "calirank.data.ranking_data": ("RankingData",),
    "calirank.data.combine": ("concatenate",),
    "calirank.data.supervision": ("Judgements", "Preferences", "Rankings"),
    "calirank.data.letor": ("read_letor", "write_letor"),
    "calirank.data.tables": ("from_frame", "to_frame", "read_parquet", "write_parquet", "read_arrow", "write_arrow"),
    "calirank.data.npz": ("read_npz", "write_npz"),
    "calirank.data.trec": ("Run", "read_qrels", "write_qrels", "read_run", "write_run"),
    "calirank.data.preflib": ("read_preflib", "write_preflib"),
    "calirank.data.rankings_csv": ("read_rankings", "write_rankings", "read_label_ranking"),
    "calirank.data.preferences_csv": ("read_preferences", "write_preferences"),
    "calirank.data.formats": ("read", "write", "convert"),
    "calirank.data.describe": ("describe",),
    "calirank.data.synthetic": ("synthetic",),
    "calirank.metrics": ("metric",),
    "calirank.evaluation.evaluate": ("evaluate",),
    "calirank.evaluation.compare": ("compare",),
}
_HOME_OF = {name: module for module, names in _HOME.items() for name in names}
_MODULES = ("data", "evaluation", "guarantees", "metrics", "names", "orders")

__all__ = ["__version__", *_MODULES, *_HOME_OF]  # noqa: PLE0604 - the tables above hold only strings


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        from calirank.names import did_you_mean

        raise AttributeError(f"module 'calirank' has no attribute {name!r}.{did_you_mean(name, __all__)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from calirank import data as data
    from calirank import evaluation as evaluation
    from calirank import guarantees as guarantees
    from calirank import metrics as metrics
    from calirank import names as names
    from calirank import orders as orders
    from calirank._kernel import set_threads as set_threads
    from calirank.data.combine import concatenate as concatenate
    from calirank.data.describe import describe as describe
    from calirank.data.formats import convert as convert
    from calirank.data.formats import read as read
    from calirank.data.formats import write as write
    from calirank.data.letor import read_letor as read_letor
    from calirank.data.letor import write_letor as write_letor
    from calirank.data.npz import read_npz as read_npz
    from calirank.data.npz import write_npz as write_npz
    from calirank.data.preferences_csv import read_preferences as read_preferences
    from calirank.data.preferences_csv import write_preferences as write_preferences
    from calirank.data.preflib import read_preflib as read_preflib
    from calirank.data.preflib import write_preflib as write_preflib
    from calirank.data.ranking_data import RankingData as RankingData
    from calirank.data.rankings_csv import read_label_ranking as read_label_ranking
    from calirank.data.rankings_csv import read_rankings as read_rankings
    from calirank.data.rankings_csv import write_rankings as write_rankings
    from calirank.data.supervision import Judgements as Judgements
    from calirank.data.supervision import Preferences as Preferences
    from calirank.data.supervision import Rankings as Rankings
    from calirank.data.synthetic import synthetic as synthetic
    from calirank.data.tables import from_frame as from_frame
    from calirank.data.tables import read_arrow as read_arrow
    from calirank.data.tables import read_parquet as read_parquet
    from calirank.data.tables import to_frame as to_frame
    from calirank.data.tables import write_arrow as write_arrow
    from calirank.data.tables import write_parquet as write_parquet
    from calirank.data.trec import Run as Run
    from calirank.data.trec import read_qrels as read_qrels
    from calirank.data.trec import read_run as read_run
    from calirank.data.trec import write_qrels as write_qrels
    from calirank.data.trec import write_run as write_run
    from calirank.evaluation.compare import compare as compare
    from calirank.evaluation.evaluate import evaluate as evaluate
    from calirank.guarantees import Guarantee as Guarantee
    from calirank.metrics import metric as metric
