"""A run is judged as trec_eval judges it: documents that were not returned or not judged, and queries that are missing.

pytrec_eval runs trec_eval's own code, and leaves out the queries that a run does not have. trec_eval counts them as 0
when it is called with ``-c``; so do we, and so does :func:`complete` here.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calirank as cr

pytrec_eval = pytest.importorskip("pytrec_eval", reason="the package pytrec-eval-terrier is not installed")

Grades = dict[str, dict[str, int]]
Scored = dict[str, dict[str, float]]

#: Our names of trec_eval's measures.
MEASURES = {
    "map": "map",
    "map@5": "map_cut_5",
    "map@1000": "map_cut_1000",
    "ndcg": "ndcg",
    "ndcg@1": "ndcg_cut_1",
    "ndcg@10": "ndcg_cut_10",
    "ndcg@1000": "ndcg_cut_1000",
    "precision": "set_P",
    "precision@5": "P_5",
    "precision@1000": "P_1000",
    "recall": "set_recall",
    "recall@5": "recall_5",
    "recall@1000": "recall_1000",
    "mrr": "recip_rank",
}


@dataclass(frozen=True)
class Case:
    """Judgements and what a system returned."""

    qrels: Grades
    run: Scored

    @property
    def data(self) -> cr.RankingData:
        rows = [(query, doc, grade) for query, docs in self.qrels.items() for doc, grade in docs.items()]
        queries, docs, grades = zip(*rows, strict=True)
        return cr.RankingData(y=grades, qid=queries, doc_ids=docs)

    @property
    def returned(self) -> cr.Run:
        rows = [(query, doc, score) for query, docs in self.run.items() for doc, score in docs.items()]
        queries, docs, scores = zip(*rows, strict=True)
        return cr.Run(queries, docs, scores, name="system")

    @property
    def missed(self) -> list[str]:
        return [query for query in self.qrels if query not in self.run]

    @property
    def unknown(self) -> list[str]:
        return [query for query in self.run if query not in self.qrels]

    def complete(self, measures: set[str], **settings: Any) -> dict[str, list[float]]:
        """trec_eval's value of each query of the qrels, 0 where the run has not the query."""
        found = pytrec_eval.RelevanceEvaluator(self.qrels, measures, **settings).evaluate(self.run)
        assert set(found) == set(self.qrels) - set(self.missed)
        return {name: [found[q][name] if q in found else 0.0 for q in self.qrels] for name in measures}


def made_case(seed: int, query: str = "q{:03d}") -> Case:
    """Graded qrels, and a run that returns part of the judged documents, unjudged ones, and not all queries.

    Some queries have no relevant document, in some the run returns none of the judged, in some but one document.
    """
    rng = np.random.default_rng(seed)
    qrels: Grades = {}
    run: Scored = {}
    for number in range(40):
        name = query.format(number + 1)
        judged = [f"d{doc:04d}" for doc in rng.choice(5000, int(rng.integers(1, 60)), replace=False)]
        grades = rng.choice(4, len(judged), p=[0.5, 0.25, 0.15, 0.1]) * (number % 7 != 3)
        qrels[name] = dict(zip(judged, grades.tolist(), strict=True))
        if number % 8 == 5:
            continue
        found = [doc for doc in judged if rng.random() < 0.6] if number % 9 != 4 else []
        found += [f"u{doc:04d}" for doc in rng.choice(5000, int(rng.integers(1, 40)), replace=False)]
        rng.shuffle(found)
        found = found[:1] if number % 10 == 7 else found
        run[name] = dict(zip(found, untied(rng, len(found)), strict=True))
    for number in (90, 95):
        run[query.format(number)] = {"d0001": 1.5, "u0001": 0.5}
    order = list(run)
    rng.shuffle(order)
    return Case(qrels, {name: run[name] for name in order})


def untied(rng: np.random.Generator, count: int) -> list[float]:
    """Scores that differ in single precision too, which trec_eval has."""
    scores = rng.permutation(count) * 0.37 - 3 + rng.uniform(0, 0.1, count)
    assert len(np.unique(scores.astype(np.float32))) == count
    return scores.tolist()


def like_trec_eval(names: list[str]) -> list[Any]:
    return [cr.metric(name, like="trec_eval") for name in names]


def check(table: Any, case: Case, measures: dict[str, str], names: dict[str, Any], **settings: Any) -> None:
    """Every query and every mean, with the missing queries as 0."""
    expected = case.complete(set(measures.values()), **settings)
    for ours, measure in measures.items():
        values = table[names[ours]]
        np.testing.assert_allclose(values.per_query, expected[measure], rtol=0, atol=1e-9, err_msg=ours)
        mean = sum(expected[measure]) / len(case.qrels)
        assert values.mean == pytest.approx(mean, abs=1e-9), ours
    assert list(map(str, table.missed)) == case.missed
    assert sorted(map(str, table.unknown)) == sorted(case.unknown)


@pytest.mark.parametrize("seed", range(5))
def test_a_run_equals_trec_eval_for_every_query_and_in_the_mean(seed: int) -> None:
    case = made_case(seed)
    assert case.missed
    assert case.unknown
    names = dict(zip(MEASURES, like_trec_eval(list(MEASURES)), strict=True))
    check(cr.evaluate(case.returned, case.data, list(names.values())), case, MEASURES, names)


def test_missing_queries_would_raise_the_mean_if_they_were_left_out() -> None:
    """What pytrec_eval reports without -c is higher: the case can tell the two apart."""
    case = made_case(1)
    present = pytrec_eval.RelevanceEvaluator(case.qrels, {"ndcg"}).evaluate(case.run)
    ours = cr.evaluate(case.returned, case.data, "ndcg(gain=linear)")["ndcg(gain=linear)"].mean
    assert np.mean([values["ndcg"] for values in present.values()]) > ours + 0.01


@pytest.mark.parametrize("query", ["{}", "q{:03d}", "topic-{}"])  # ids that are numbers, and ids that are text
def test_files_equal_trec_eval(query: str, tmp_path: Path) -> None:
    """Both libraries read the same files, which we wrote, or which have the columns that TREC's files have."""
    case = made_case(11, query)
    lines = [f"{q} 0 {doc} {grade}\n" for q, docs in case.qrels.items() for doc, grade in docs.items()]
    (tmp_path / "qrels").write_text("".join(lines))
    cr.write_run(case.returned, tmp_path / "run")
    cr.write_qrels(case.data, tmp_path / "written.qrels")
    with (tmp_path / "run").open() as run, (tmp_path / "written.qrels").open() as qrels:
        theirs = Case(pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_run(run))
    assert theirs.qrels == case.qrels
    assert theirs.run == case.run
    names = dict(zip(MEASURES, like_trec_eval(list(MEASURES)), strict=True))
    for source in ("qrels", "written.qrels"):
        read = cr.read_qrels(tmp_path / source)
        assert list(map(str, read.query_ids.tolist())) == list(case.qrels)
        check(cr.evaluate(cr.read_run(tmp_path / "run"), read, list(names.values())), theirs, MEASURES, names)


def test_the_rank_of_a_line_is_not_looked_at() -> None:
    """The scores order the documents, as in trec_eval."""
    qrels = "1 0 a 0\n1 0 b 1\n"
    run = "1 Q0 a 1 0.5 tag\n1 Q0 b 2 0.75 tag\n"
    evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(io.StringIO(qrels)), {"recip_rank"})
    theirs = evaluator.evaluate(pytrec_eval.parse_run(io.StringIO(run)))["1"]["recip_rank"]
    data, returned = cr.read_qrels(io.BytesIO(qrels.encode())), cr.read_run(io.BytesIO(run.encode()))
    assert cr.evaluate(returned, data, "rr")["rr"].mean == theirs == 1


@pytest.mark.parametrize("seed", range(3))
def test_leaving_out_unjudged_documents_equals_trec_eval_with_judged_documents_only(seed: int) -> None:
    """``unjudged="skip"`` is trec_eval's ``-J``."""
    case = made_case(seed)
    assert any(doc.startswith("u") for docs in case.run.values() for doc in docs)
    names = {}
    for ours in MEASURES:
        name, _, cutoff = ours.partition("@")
        names[ours] = cr.metric(f"{name}(unjudged=skip)" + (cutoff and f"@{cutoff}"), like="trec_eval")
    table = cr.evaluate(case.returned, case.data, list(names.values()))
    check(table, case, MEASURES, names, judged_docs_only_flag=True)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_reciprocal_rank_with_a_cut_off_is_that_of_the_first_documents(k: int) -> None:
    """trec_eval cuts all measures with ``-M``: it is given the first k documents here."""
    case = made_case(2)
    first = {query: dict(sorted(docs.items(), key=lambda item: -item[1])[:k]) for query, docs in case.run.items()}
    expected = Case(case.qrels, first).complete({"recip_rank"})["recip_rank"]
    metric = cr.metric(f"rr@{k}", like="trec_eval")
    values = cr.evaluate(case.returned, case.data, metric)[metric].per_query
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)


def test_sums_of_measures_are_sums_of_trec_evals() -> None:
    case = made_case(3)
    expected = case.complete({"ndcg_cut_10", "map"})
    metric = cr.metric("0.25*ndcg@10 + 0.75*map", like="trec_eval")
    values = cr.evaluate(case.returned, case.data, metric)[metric].per_query
    wanted = 0.25 * np.array(expected["ndcg_cut_10"]) + 0.75 * np.array(expected["map"])
    np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-9)


def test_a_run_of_all_judged_documents_equals_scores_of_the_data() -> None:
    """The two ways to give a ranking agree where both can say it."""
    case = made_case(4)
    rng = np.random.default_rng(4)
    run = {query: dict(zip(docs, untied(rng, len(docs)), strict=True)) for query, docs in case.qrels.items()}
    case = Case(case.qrels, run)
    names = dict(zip(MEASURES, like_trec_eval(list(MEASURES)), strict=True))
    check(cr.evaluate(case.returned, case.data, list(names.values())), case, MEASURES, names)
    scores = [run[query][doc] for query, docs in case.qrels.items() for doc in docs]
    check(cr.evaluate(scores, case.data, list(names.values())), case, MEASURES, names)
