import json
from pathlib import Path

import numpy as np
import pytest

import mlconsensus as mlc

CROWD_KIT = json.loads(Path(__file__).with_name("crowdkit_dawid_skene.json").read_text())["cases"]


@pytest.mark.parametrize("case", CROWD_KIT, ids=range(len(CROWD_KIT)))
def test_equals_crowd_kit_after_as_many_rounds(case):
    """Its own stopping rule adds the prior once for every vote, so rounds are counted instead."""
    votes = np.array([[np.nan if vote == "." else float(vote) for vote in row] for row in case["votes"]])
    found = mlc.dawid_skene(votes[:, :, None], n_iter=25, tol=1e-300)[:, 0]
    np.testing.assert_allclose(found, case["true"], rtol=0, atol=1e-8)


def test_a_model_that_answers_at_random_hardly_counts():
    panel, _ = mlc.datasets.make_panel(
        3000, 3, 5, quality=[0.9, 0.9, 0.9, 0.9, 0], shared_errors=0, cardinality=1, random_state=0
    )
    solution = mlc.DawidSkene().fit(panel).solution_
    informed = np.abs(solution.if_true - solution.if_false)
    assert (informed[4] < 0.1).all()
    assert (informed[:4] > 0.5).all()


def test_more_than_eight_and_more_than_sixteen_models():
    """A pattern then takes more bytes than one word."""
    rng = np.random.default_rng(0)
    for m in (9, 17, 40):
        scores = (rng.random((m, 30, 2)) < 0.5).astype(float)
        scores[rng.random(scores.shape) < 0.2] = np.nan
        alone = mlc.dawid_skene(scores[:, :, :1])
        np.testing.assert_allclose(mlc.dawid_skene(scores)[:, :1], alone, atol=1e-12)


@pytest.mark.parametrize(("setting", "message"), [({"n_iter": 0}, "n_iter: found 0"), ({"tol": 0}, "tol: found 0")])
def test_bad_settings(setting, message):
    with pytest.raises(mlc.InputError, match=message):
        mlc.DawidSkene(**setting).fit_transform([[[1, 0]]])
