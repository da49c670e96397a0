"""Profiles: ``like=`` gives the numbers that the libraries themselves compute, at scores without ties."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calirank as cr
from calirank.metrics.profiles import PROFILES, as_in, conventions
from calirank.names import METRICS, Sum
from metrics.peers import PEERS, Floats, Lists, is_there, lightgbm_means, one_list, xgboost_means

CUTOFFS = (None, 1, 3, 5, 10, 32, 100, 1000)
HERE = [like for like in PROFILES if is_there(PEERS[like].module)]


def needs(like: str) -> Any:
    """A profile, skipped where its library is not installed."""
    module = PEERS[like].module
    return pytest.param(
        like, marks=pytest.mark.skipif(not is_there(module), reason=f"the package {module} is not installed")
    )


def needed(module: str) -> Any:
    """A test that is skipped where a library is not installed."""
    return pytest.mark.skipif(not is_there(module), reason=f"the package {module} is not installed")


# --- lists -----------------------------------------------------------------------------------------------------------


def made_lists(seed: int, queries: int = 50) -> Lists:
    """Lists of 1 to 90 documents with grades 0 to 4; in some no document is relevant, in some all are."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([[1, 1, 2, 2, 31, 32, 33], rng.integers(1, 91, queries - 7)])
    labels = []
    for number, size in enumerate(sizes.tolist()):
        shares = rng.dirichlet([2, 1, 1, 0.5, 0.5])
        drawn = rng.choice(5, size, p=shares)
        labels.append([0 * drawn, np.maximum(drawn, 1), drawn, drawn, drawn][number % 5])
    scores = [rng.permutation(size) / 7 - 3 for size in sizes]
    lists = Lists(np.concatenate(labels).astype(np.float64), np.concatenate(scores), sizes)
    assert lists.untied()
    return lists


def real_lists(path: Path) -> Lists:
    """Documents scored by a fixed linear function of their features, and by a little of their row's number."""
    data = cr.read_letor(path)
    assert data.y is not None
    features = np.nan_to_num((data.X - data.X.mean(axis=0)) / np.maximum(data.X.std(axis=0), 1e-9))
    scores = features @ np.random.default_rng(5).normal(size=features.shape[1])
    jitter = np.arange(data.n_docs) * 0.6180339887498949 % 1
    lists = Lists(np.asarray(data.y), scores + 0.01 * jitter, np.diff(data.offsets))
    assert lists.untied()
    return lists


# --- numbers ---------------------------------------------------------------------------------------------------------


def names_of(like: str, metric: str) -> Iterator[tuple[str, str]]:
    """Our names of a metric with the library's, for all cut-offs that both have."""
    for k in CUTOFFS:
        theirs = PROFILES[like].metrics[metric].called(k)
        if theirs is not None:
            yield (metric if k is None else f"{metric}@{k}"), theirs


def values_of(ours: Any, lists: Lists) -> Floats:
    return cr.evaluate(lists.scores, cr.RankingData(y=lists.labels, sizes=lists.sizes), ours)[ours].per_query


def fitting(like: str, metric: str, lists: Lists) -> Lists:
    """The lists as the library takes them for this metric."""
    peer = PEERS[like]
    lists = lists.longer_than(peer.shortest - 1)
    return lists.binary if metric in peer.binary else lists


def check_per_query(like: str, lists: Lists) -> None:
    for metric in PROFILES[like].metrics:
        held, names = fitting(like, metric, lists), list(names_of(like, metric))
        theirs = PEERS[like].per_query([name for _, name in names], held)
        for ours, name in names:
            found = values_of(cr.metric(ours, like=like), held)
            np.testing.assert_allclose(found, theirs[name], rtol=0, atol=1e-9, err_msg=f"{ours} like {like}")


def check_means(like: str, lists: Lists) -> None:
    means = PEERS[like].means
    assert means is not None
    for metric in PROFILES[like].metrics:
        held, names = fitting(like, metric, lists), list(names_of(like, metric))
        theirs = means([name for _, name in names], held)
        for ours, name in names:
            found = values_of(cr.metric(ours, like=like), held).mean()
            assert found == pytest.approx(theirs[name], abs=1e-9), f"{ours} like {like}"


@pytest.mark.parametrize("like", [needs(like) for like in PROFILES])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_metric_of_a_profile_is_the_librarys_for_every_query(like: str, seed: int) -> None:
    lists = made_lists(seed)
    assert sum(not labels.any() for labels, _ in lists) >= 10
    assert lists.sizes.min() == 1
    assert lists.sizes.max() > 32
    check_per_query(like, lists)


@pytest.mark.parametrize("like", [needs(like) for like in PROFILES if PEERS[like].means])
def test_means_over_many_queries_are_the_librarys(like: str) -> None:
    check_means(like, made_lists(3, queries=400))


REAL = [*(f"letor4/MQ2007/S{part}.txt.xz" for part in (5, 1)), "mslr/web30k_fold1_test_head.txt.xz"]


@pytest.mark.parametrize("like", HERE)  # none is skipped: a library that is absent is skipped above, and says so
@pytest.mark.parametrize("name", REAL)
def test_real_lists_have_the_librarys_numbers(real_data: Path, like: str, name: str) -> None:
    """The test parts of the first two folds of MQ2007, and a sample of the test part of MSLR."""
    lists = real_lists(real_data / name)
    if PEERS[like].means is None:
        check_per_query(like, lists)
    else:
        check_means(like, lists)
        check_per_query(like, lists.first(10))


@pytest.mark.parametrize("like", [needs(like) for like in PROFILES])
def test_a_wrong_convention_is_noticed(like: str) -> None:
    """The comparison can fail: where a library has another convention than we, our own defaults give other numbers."""
    lists, changed = made_lists(1, queries=20), 0
    for metric in PROFILES[like].metrics:
        name, ours = PROFILES[like].metrics[metric].called(10), f"{metric}@10"
        if name is None:
            name, ours = PROFILES[like].metrics[metric].called(None), metric
        if cr.metric(ours) != cr.metric(ours, like=like):
            held = fitting(like, metric, lists)
            found = PEERS[like].per_query([str(name)], held)[str(name)]
            assert not np.allclose(values_of(cr.metric(ours), held), found, rtol=0, atol=1e-9, equal_nan=True)
            changed += 1
    assert changed


# --- names -----------------------------------------------------------------------------------------------------------


def test_what_the_name_sets_stays() -> None:
    """Also where it sets what is the default anyway."""
    assert cr.metric("ndcg(gain=exponential)@10", like="trec_eval") == cr.metrics.NDCG(k=10)
    assert cr.metric("ndcg(empty=skip)@5", like="lightgbm") == cr.metrics.NDCG(k=5, ideal_over="list", empty="skip")
    assert cr.metric("ndcg(5, linear)", like="xgboost") == cr.metric("ndcg(gain=linear, ideal_over=list, empty=1)@5")
    assert cr.metric("ndcg(k=none)", like="xgboost") == cr.metric("ndcg(ideal_over=list, empty=1)")
    assert cr.metric("MAP(relevant=2)", like="XGBoost") == cr.metrics.AP(k=32, relevant=2, divisor="min", empty=1.0)


def test_what_an_object_sets_stays_and_its_defaults_give_way() -> None:
    assert cr.metric(cr.metrics.NDCG(k=7), like="ranx") == cr.metric("ndcg(gain=linear)@7")
    assert cr.metric(cr.metrics.AP(empty=0.5), like="lightgbm") == cr.metrics.AP(divisor="min", empty=0.5)
    assert cr.metric(cr.metrics.NDCG(gain=(0, 1, 5)), like="sklearn").gain == (0, 1, 5)


def test_sums_have_the_defaults_in_each_term() -> None:
    wanted = "0.5*ndcg(ideal_over=list, empty=1)@10 + 0.5*ap(divisor=min, empty=1) + 2"
    assert str(cr.metric("0.5*ndcg@10 + 0.5*ap + 2", like="lightgbm")) == wanted
    assert str(cr.metric(cr.metric("0.5*ndcg@10 + 0.5*ap + 2"), like="lightgbm")) == wanted
    half = cr.metric("0.5*ndcg@10", like="trec_eval")
    assert half([0, 1, 2], scores=[3, 2, 1]) == 0.5 * cr.metric("ndcg(gain=linear)@10")([0, 1, 2], scores=[3, 2, 1])


def test_a_function_that_stands_for_a_metric_is_that_metric() -> None:
    assert cr.metric("wta", like="xgboost") == cr.metrics.Precision(k=1, divisor="min")
    assert cr.metric("wta(relevant=2)", like="trec_eval") == cr.metrics.Precision(k=1, relevant=2)


@pytest.mark.parametrize("like", PROFILES)
def test_every_default_is_a_parameter_with_a_reason_and_is_used(like: str) -> None:
    for metric, convention in PROFILES[like].metrics.items():
        assert METRICS.resolve(metric) == metric
        built = cr.metric(metric, like=like)
        assert cr.metric(built, like=like) == cr.metric(str(built), like=like) == built
        assert len({parameter for parameter, _, _ in convention.defaults}) == len(convention.defaults)
        for parameter, value, reason in convention.defaults:
            assert getattr(built, parameter) == value
            assert reason
            assert "\n" not in reason


def test_an_unknown_library_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no library is called 'lightgmb'\. Did you mean 'lightgbm'\? Known are: "):
        cr.metric("ndcg", like="lightgmb")
    with pytest.raises(TypeError, match=r"like is the name of a library .*; got 3"):
        cr.metric("ndcg", like=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "like", "problem"),
    [
        ("err", "lightgbm", r"LightGBM has no err \(in 'err'\); like='lightgbm' has ndcg, ap"),
        ("dcg@10", "lightgbm", r"LightGBM has no dcg \(in 'dcg@10'\)"),
        ("ndcg + 2*err@5", "xgboost", r"XGBoost has no err \(in 'err@5'\); like='xgboost' has ndcg, ap, precision"),
        ("auc", "lightgbm", r"no auc \(in 'auc'\): its auc is over the documents of all queries together; "),
        ("auc", "xgboost", r"no auc \(in 'auc'\): its auc of queries counts pairs of equal labels too; "),
        ("rbp", "ranx", r"ranx has no rbp \(in 'rbp'\): its rbp adds up grades"),
        ("map@10", "sklearn", r"scikit-learn has no cut-off in its average_precision_score \(in 'map@10'\)"),
        ("ap(k=none)", "sklearn", r"no cut-off"),
        ("ncdg", "sklearn", r"no metric is called 'ncdg'\. Did you mean 'ndcg'\?"),
        ("ndcg(gian=linear)", "sklearn", r"ndcg has no parameter 'gian'.*\(in 'ndcg\(gian=linear\)'\)"),
    ],
)
def test_what_a_library_has_not_is_refused(name: str, like: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        cr.metric(name, like=like)
    if "@" not in name and "(" not in name and "+" not in name and name in METRICS:
        with pytest.raises(ValueError, match=problem.replace(r"'err'", r"'err\(max_grade=4\)'")):
            cr.metric(cr.metric(name), like=like)


def test_a_function_of_the_user_is_in_no_library() -> None:
    with pytest.raises(TypeError, match=r"like='ranx' is for names and metrics; no library has a function of yours"):
        cr.metric(lambda labels, order: 1.0, like="ranx")


def test_the_table_has_a_row_for_each_metric_of_each_library() -> None:
    headings, *rows = conventions()
    assert len(rows) == sum(len(profile.metrics) for profile in PROFILES.values())
    assert len({row[:2] for row in rows}) == len(rows)
    libraries = {profile.library: like for like, profile in PROFILES.items()}
    for row in rows:
        assert len(row) == len(headings)
        assert all(row)
        ours = cr.metric(row[3].strip("`"))
        assert ours == cr.metric(f"{row[0]}@10" if "@10" in row[3] else row[0], like=libraries[row[1]])
        assert not isinstance(METRICS.describe(ours), Sum)
    assert ("ndcg", "XGBoost") in {row[:2] for row in rows}


def test_a_profile_reads_as_the_function_behind_it() -> None:
    assert as_in("ndcg", "sklearn") == cr.metric("ndcg", like="sklearn")


# --- what the table, the reasons and the errors say of the libraries -------------------------------------------------


def theirs(like: str, name: str, labels: list[float], scores: list[float]) -> float:
    return float(PEERS[like].per_query([name], one_list(labels, scores))[name][0])


@pytest.mark.parametrize("like", [needs(like) for like in ("lightgbm", "xgboost", "trec_eval")])
def test_tied_scores_are_broken_as_the_table_says(like: str) -> None:
    """By the order of the rows, or by the names of the documents, last first."""
    labels, order = [0.0, 1.0, 2.0, 0.0], [3, 2, 1, 0] if like == "trec_eval" else [0, 1, 2, 3]
    found = theirs(like, str(PROFILES[like].metrics["ndcg"].called(5)), labels, [0.5] * 4)
    assert found == pytest.approx(cr.metric("ndcg@5", like=like)(labels, order=order), abs=1e-9)


@pytest.mark.parametrize("like", [needs(like) for like in ("lightgbm", "xgboost", "trec_eval")])
def test_scores_that_differ_in_double_precision_alone(like: str) -> None:
    """They are tied where the table says that the library has single precision."""
    name, labels = str(PROFILES[like].metrics["ndcg"].called(5)), [1.0, 2.0, 0.0]
    scores = [1.0, 1.0 - 1e-10, 1.0 + 1e-10] if like == "trec_eval" else [1.0 - 1e-10, 1.0, 1.0 + 1e-10]
    tied = theirs(like, name, labels, scores) == theirs(like, name, labels, [1.0] * 3)
    assert tied == ("single precision" in PROFILES[like].ties)


def test_scikit_learn_has_the_exact_mean_at_ties_except_in_ap() -> None:
    labels, scores = [1.0, 0.0, 2.0, 0.0], [1.0, 1.0, 2.0, 0.0]
    ndcg = cr.metric("ndcg", like="sklearn")(labels, scores=scores)
    assert theirs("sklearn", "ndcg_score", labels, scores) == pytest.approx(ndcg, abs=1e-9)
    binary = [1.0, 0.0, 1.0, 0.0]
    auc = cr.metric("auc", like="sklearn")(binary, scores=scores)
    assert theirs("sklearn", "roc_auc_score", binary, scores) == pytest.approx(auc, abs=1e-9)
    last = (1 + 2 / 3) / 2  # the relevant document of the tie at rank 3
    assert theirs("sklearn", "average_precision_score", binary, scores) == pytest.approx(last, abs=1e-9)
    mean = (last + 1) / 2
    assert cr.metric("ap", like="sklearn")(binary, scores=scores) == pytest.approx(mean, abs=1e-9)


def test_the_label_ranking_average_precision_of_scikit_learn_is_ap_but_for_empty_lists() -> None:
    """Where no document is relevant it is 1, and ``average_precision_score``, which is our ap, is 0."""
    from sklearn.metrics import label_ranking_average_precision_score

    for labels, scores in fitting("sklearn", "ap", made_lists(4)):
        value = cr.metric("ap(empty=1)", like="sklearn")(labels, scores=scores)
        assert label_ranking_average_precision_score([labels], [scores]) == pytest.approx(value, abs=1e-9)


def test_the_auc_of_lightgbm_pools_the_queries() -> None:
    lists = Lists(np.array([1.0, 0.0, 1.0, 0.0]), np.array([4.0, 3.0, 2.0, 1.0]), np.array([2, 2]))
    assert values_of("auc", lists).tolist() == [1, 1]
    assert lightgbm_means(["auc"], lists)["auc"] == 0.75


@needed("xgboost")
def test_the_auc_of_xgboost_counts_pairs_of_equal_labels() -> None:
    labels, scores = [1.0, 0.0, 0.0], [3.0, 1.0, 2.0]
    assert cr.metric("auc")(labels, scores=scores) == 1
    assert theirs("xgboost", "auc", labels, scores) == pytest.approx(2 / 3)
    assert theirs("xgboost", "auc", labels, [3.0, 2.0, 1.0]) == 1


@needed("xgboost")
@pytest.mark.parametrize(("ours", "name"), [("ndcg", "ndcg@10-"), ("ap", "map@10-"), ("precision", "pre@10-")])
def test_a_minus_ends_the_names_in_which_empty_lists_count_0_in_xgboost(ours: str, name: str) -> None:
    lists = made_lists(5).binary
    metric = cr.metric(f"{ours}@10" if ours == "precision" else f"{ours}(empty=0)@10", like="xgboost")
    assert values_of(metric, lists).mean() == pytest.approx(xgboost_means([name], lists)[name], abs=1e-9)


@needed("xgboost")
def test_linear_gains_of_xgboost_are_a_setting() -> None:
    """``ndcg_exp_gain=False``, which XGBoost 2 does not look at when it evaluates."""
    import xgboost

    gain = "linear" if int(xgboost.__version__.split(".")[0]) >= 3 else "exponential"
    lists = made_lists(6)
    found = xgboost_means(["ndcg@10"], lists, ndcg_exp_gain=False)["ndcg@10"]
    ours = values_of(cr.metric(f"ndcg(gain={gain})@10", like="xgboost"), lists).mean()
    assert found == pytest.approx(ours, abs=1e-9)


@needed("ranx")
def test_the_rbp_of_ranx_adds_up_grades() -> None:
    assert theirs("ranx", "rbp.80", [1.0, 2.0, 0.0], [3.0, 2.0, 1.0]) == pytest.approx(0.2 * (1 + 2 * 0.8))
    assert cr.metric("rbp")([1, 2, 0], scores=[3, 2, 1]) == pytest.approx(0.2 * (1 + 0.8))
    assert theirs("ranx", "rbp.80", [1.0, 1.0, 0.0], [3.0, 2.0, 1.0]) == pytest.approx(0.2 * (1 + 0.8))


@needed("ranx")
def test_the_ndcg_burges_of_ranx_has_exponential_gains() -> None:
    lists = made_lists(7)
    values = PEERS["ranx"].per_query(["ndcg_burges@10", "ndcg_burges"], lists)
    for name, ours in {"ndcg_burges@10": "ndcg(gain=exponential)@10", "ndcg_burges": "ndcg(gain=exponential)"}.items():
        np.testing.assert_allclose(values_of(cr.metric(ours, like="ranx"), lists), values[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("engine", [needs("lightgbm"), needs("xgboost")])
def test_weights_of_queries_without_relevant_documents_are_ignored_by_the_ndcg_of_engines(engine: str) -> None:
    """A weight 5 counts as 1 in their sum and as 5 in what they divide it by, so only unweighted means can agree."""
    lists = Lists(np.array([0.0, 0.0, 0.0, 1.0]), np.array([2.0, 1.0, 2.0, 1.0]), np.array([2, 2]))
    weights = [5.0, 5.0, 1.0, 1.0] if engine == "lightgbm" else [5.0, 1.0]
    means: Any = PEERS[engine].means
    found = means(["ndcg@2", "map@2"], lists, weights=weights)
    second = values_of(cr.metric("ndcg@2", like=engine), lists)[1]
    assert found["ndcg@2"] == pytest.approx((1 + second) / 6)
    assert found["map@2"] == pytest.approx((5 + 1 / 2) / 6)
