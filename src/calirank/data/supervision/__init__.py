"""What is known about the right order of a query: label vectors, rankings, preference graphs, each with a weight.

All three are one structure. A query has *judgements* (of a judge, a session, a voter, or an outcome of a known
distribution); a judgement has a weight and a payload:

==================  ===========================================================
:class:`Judgements`   a label for each document, missing (NaN) where the judge is silent
:class:`Rankings`     documents from best to worst; ties and unranked documents allowed
:class:`Preferences`  weighted pairs (better, worse); cycles allowed
==================  ===========================================================

Documents are named by their position in the query's list, from 0; queries by their identifier. On its own a
supervision knows the queries that it mentions; :class:`~calirank.RankingData` aligns it with its own queries.
"""

from __future__ import annotations

from calirank.data.supervision.base import Supervision
from calirank.data.supervision.judgements import Judgements
from calirank.data.supervision.preferences import Preferences
from calirank.data.supervision.rankings import Rankings

__all__ = ["Judgements", "Preferences", "Rankings", "Supervision"]
