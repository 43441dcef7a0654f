import dask.array as da
import numpy as np
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus import choosing
from mlconsensus.choosing import choose
from mlconsensus.metrics.intervals import Estimate
from mlconsensus.metrics.ranking import RANKING_METRICS
from mlconsensus.model_selection.held_out_models import (
    HeldOutComparison,
    compare_on_held_out_models,
)
from mlconsensus.predictions.sampling import subsample_instances


def of_its_own_errors(truth, n_raters, error, seed=0):
    """Raters who err by chance, each by itself: votes are all there is to know."""
    rng = np.random.default_rng(seed)
    return truth ^ (rng.random((n_raters, *truth.shape)) < error)


def without_relations(seed, n=1500):
    """Labels that have nothing to do with each other, and raters of equal worth: nothing is better than voting."""
    return of_its_own_errors(
        np.random.default_rng(seed).random((n, 6)) < 0.4, 7, 0.2, seed=100 + seed
    )


@pytest.fixture(scope="module")
def unrelated():
    """One of those that are voted on, which most are."""
    panels = (without_relations(seed) for seed in range(10))
    return next(panel for panel in panels if choose(panel).combiner.name == "MV")


@pytest.fixture(scope="module")
def related():
    """Labels that come in pairs, and raters that miss much: related labels help."""
    topic = np.random.default_rng(2).random((1500, 4)) < 0.3
    rng = np.random.default_rng(3)
    truth = np.repeat(topic, 3, axis=1)
    return truth & (rng.random((6, *truth.shape)) < 0.4)


def test_where_held_out_raters_see_no_gain_it_is_voting(unrelated):
    result = mlc.combine(unrelated)
    assert result.method == "MV"
    assert "held out do not bear out more than voting" in result.reason
    np.testing.assert_array_equal(result.scores, mlc.majority_vote(unrelated))


def test_most_panels_in_which_nothing_is_better_than_voting_are_voted_on():
    chosen = [choose(without_relations(seed, 500)).combiner.name for seed in range(12)]
    assert chosen.count("MV") >= 7  # one standard error lets one of six through


def test_where_a_rival_is_clearly_ahead_in_every_metric_it_is_that(monkeypatch):
    """Held-out raters as they might judge: what counts is that it is ahead of both, in all four, by two errors."""
    ahead, level, behind = (
        Estimate(value=size, standard_error=0.01, low=0.0, high=0.0)
        for size in (0.03, 0.015, -0.03)
    )
    for over_default, expected in (
        ((ahead,) * 4, "MLCM-a"),
        ((ahead, ahead, ahead, level), "Filter"),
    ):
        gains = {
            name: dict.fromkeys((*RANKING_METRICS, "mean"), ahead)
            for name in ("Filter", "MLCM-a")
        }
        beyond = {"MLCM-a": dict(zip(RANKING_METRICS, over_default, strict=True))}
        comparison = HeldOutComparison(
            gains=gains,
            beyond=beyond,
            metric="mean",
            n_raters=5,
            n_groups=5,
            n_folds=5,
            verdict="Filter",
            sentence="",
        )
        monkeypatch.setattr(
            choosing,
            "compare_on_held_out_models",
            lambda *_, comparison=comparison, **__: comparison,
        )
        assert choose(without_relations(0)).combiner.name == expected
    gains["MLCM-a"]["one_error"] = (
        behind  # ahead of the filter in every metric, and not of voting
    )
    beyond["MLCM-a"] = dict.fromkeys(RANKING_METRICS, ahead)
    assert choose(without_relations(0)).combiner.name == "Filter"


@pytest.mark.parametrize("optimize", ["auto", "one_error"])
def test_where_they_see_one_it_is_the_filter(related, optimize):
    result = mlc.combine(related, optimize)
    assert result.method == "Filter"
    np.testing.assert_array_equal(result.scores, mlc.weighted_consensus(related))


def test_whoever_cannot_be_judged_gets_the_filter(unrelated):
    assert mlc.combine(unrelated[:2]).method == "Filter"  # too few to hold one out
    assert (
        mlc.combine(np.repeat(unrelated[:2], 3, axis=0)).method == "Filter"
    )  # copies are no others


@pytest.mark.parametrize(
    "place",
    [
        mlc.Predictions,
        lambda scores: mlc.from_dask(da.from_array(scores, chunks=(1, 370, 4))),
    ],
)
def test_known_answers_decide_where_raters_would_vote(unrelated, place):
    """Those of one rater teach the filter to believe it; those of the vote cannot be ranked better than by voting."""
    subset = np.arange(1500)[:, None] % 30 == 0
    panel = place(unrelated)
    of_one, of_vote = (
        np.where(subset, answers, np.nan)
        for answers in (unrelated[0], unrelated.mean(axis=0) > 0.5)
    )
    result = choose(panel.with_gold(of_one))
    assert result.combiner.name == "Filter"
    assert (
        "known answers, from which it learns, bear it out more than MV" in result.reason
    )
    assert choose(panel.with_gold(of_vote)).combiner.name == "MV"


def test_a_few_known_answers_do_not_sway_the_raters_that_are_held_out(
    related, monkeypatch
):
    """On a panel of flags, 25 answers made them choose voting, which was clearly worse."""
    judged = []

    def watched(sample, **settings):
        judged.append(sample.gold)
        return compare_on_held_out_models(sample, **settings)

    monkeypatch.setattr(choosing, "compare_on_held_out_models", watched)
    choose(
        mlc.Predictions(related).with_gold(
            np.where(np.arange(1500)[:, None] < 25, related[0], np.nan)
        )
    )
    assert judged == [None]


def test_a_method_that_is_asked_for_is_used(unrelated):
    assert mlc.combine(unrelated, method="filter").method == "Filter"


def test_weights_go_to_voting_too(unrelated):
    weights = [3, 1, 1, 1, 1, 1, 1]
    result = mlc.combine(unrelated, weights=weights)
    np.testing.assert_array_equal(
        result.scores, mlc.majority_vote(unrelated, weights=weights)
    )


@pytest.mark.parametrize("name", ["unrelated", "related"])
def test_the_same_is_chosen_wherever_a_panel_is(name, request, tmp_path):
    panel = mlc.Predictions(request.getfixturevalue(name))
    for model, scores in zip(panel.models, panel.to_array(), strict=True):
        ids = pl.DataFrame({"id": [f"i{position}" for position in range(len(panel))]})
        table = pl.DataFrame(scores > 0.5, schema=list(panel.labels))
        pl.concat([ids, table], how="horizontal").write_parquet(
            tmp_path / f"{model}.parquet", row_group_size=400
        )
    scanned = mlc.scan_predictions(tmp_path)
    arrays = mlc.from_dask(
        da.from_array(panel.to_array(), chunks=(1, 370, 4)), models=panel.models
    )
    for other in (scanned, arrays):
        np.testing.assert_array_equal(
            subsample_instances(other, 1000).to_array(),
            subsample_instances(panel, 1000).to_array(),
        )
        assert choose(other).combiner.name == choose(panel).combiner.name
        assert choose(other).reason == choose(panel).reason


def test_a_rival_that_raters_chose_does_not_learn_from_answers_unseen(
    related, monkeypatch
):
    """On cal500 that lost 0.004 in microAUC with 200 answers; what was asked for by name learns as ever."""
    monkeypatch.setattr(
        choosing, "_by_held_out_raters", lambda panel: ("MLCM-a", "raters say so")
    )
    monkeypatch.setattr(choosing, "_known_answers_prefer_the_default", lambda *_: False)
    gold = np.where(np.arange(1500)[:, None] < 300, related[0], np.nan)
    result = mlc.combine(related, gold=gold)
    assert result.method == "MLCM-a"
    np.testing.assert_array_equal(result.scores[:300], related[0][:300])
    np.testing.assert_array_equal(result.scores[300:], mlc.mlcm_a(related)[300:])
    assert (
        np.abs(
            result.scores - mlc.combine(related, method="mlcm-a", gold=gold).scores
        ).max()
        > 0.01
    )
