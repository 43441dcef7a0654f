import dask.array as da
import numpy as np
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.choosing import choose
from mlconsensus.insight.meetings import sampled


def of_its_own_errors(truth, n_raters, error, seed=0):
    """Raters who err by chance, each by itself: votes are all there is to know."""
    rng = np.random.default_rng(seed)
    return truth ^ (rng.random((n_raters, *truth.shape)) < error)


@pytest.fixture(scope="module")
def unrelated():
    """Labels that have nothing to do with each other, and raters of equal worth: nothing is better than voting."""
    return of_its_own_errors(np.random.default_rng(1).random((1500, 6)) < 0.4, 7, 0.2)


@pytest.fixture(scope="module")
def related():
    """Labels that come in pairs, and raters that miss much: related labels help."""
    topic = np.random.default_rng(2).random((1500, 4)) < 0.3
    rng = np.random.default_rng(3)
    truth = np.repeat(topic, 3, axis=1)
    return truth & (rng.random((6, *truth.shape)) < 0.4)


def test_where_held_out_raters_see_no_gain_it_is_voting(unrelated):
    found = mlc.combine(unrelated)
    assert found.method == "MV"
    assert "held out do not bear out more than voting" in found.reason
    np.testing.assert_array_equal(found.scores, mlc.majority_vote(unrelated))


@pytest.mark.parametrize("optimize", ["auto", "one_error"])
def test_where_they_see_one_it_is_the_filter(related, optimize):
    found = mlc.combine(related, optimize)
    assert found.method == "Filter"
    np.testing.assert_array_equal(found.scores, mlc.rater_filter(related))


def test_whoever_cannot_be_judged_gets_the_filter(unrelated):
    assert mlc.combine(unrelated[:2]).method == "Filter"  # too few to hold one out
    assert mlc.combine(np.repeat(unrelated[:2], 3, axis=0)).method == "Filter"  # copies are no others
    known = np.where(np.arange(1500)[:, None] < 50, unrelated[0], np.nan)
    assert mlc.combine(unrelated, gold=known).method == "Filter"  # which say more than raters


def test_a_method_that_is_asked_for_is_used(unrelated):
    assert mlc.combine(unrelated, method="filter").method == "Filter"


def test_weights_go_to_voting_too(unrelated):
    weights = [3, 1, 1, 1, 1, 1, 1]
    found = mlc.combine(unrelated, weights=weights)
    np.testing.assert_array_equal(found.scores, mlc.majority_vote(unrelated, weights=weights))


@pytest.mark.parametrize("name", ["unrelated", "related"])
def test_the_same_is_chosen_wherever_a_panel_is(name, request, tmp_path):
    panel = mlc.Predictions(request.getfixturevalue(name))
    for model, scores in zip(panel.models, panel.to_array(), strict=True):
        ids = pl.DataFrame({"id": [f"i{at}" for at in range(len(panel))]})
        table = pl.DataFrame(scores > 0.5, schema=list(panel.labels))
        pl.concat([ids, table], how="horizontal").write_parquet(tmp_path / f"{model}.parquet", row_group_size=400)
    scanned = mlc.scan_predictions(tmp_path)
    arrays = mlc.from_dask(da.from_array(panel.to_array(), chunks=(1, 370, 4)), models=panel.models)
    for other in (scanned, arrays):
        np.testing.assert_array_equal(sampled(other, 1000).to_array(), sampled(panel, 1000).to_array())
        assert choose(other).combiner.name == choose(panel).combiner.name
        assert choose(other).reason == choose(panel).reason
