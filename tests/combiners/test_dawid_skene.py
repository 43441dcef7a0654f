import json
from pathlib import Path

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.predictions.blocks import VotePatterns

CROWD_KIT = json.loads(
    Path(__file__).with_name("crowdkit_dawid_skene.json").read_text()
)["cases"]


@pytest.mark.parametrize("case", CROWD_KIT, ids=range(len(CROWD_KIT)))
def test_equals_crowd_kit_after_as_many_rounds(case):
    """Its stopping rule differs, so the number of iterations is compared."""
    votes = np.array(
        [
            [np.nan if vote == "." else float(vote) for vote in row]
            for row in case["votes"]
        ]
    )
    result = mlc.dawid_skene(votes[:, :, None], n_iter=25, tol=1e-300)[:, 0]
    np.testing.assert_allclose(result, case["true"], rtol=0, atol=1e-8)


def test_a_model_that_answers_at_random_hardly_counts():
    panel, _ = mlc.datasets.make_panel(
        3000,
        3,
        5,
        quality=[0.9, 0.9, 0.9, 0.9, 0],
        shared_errors=0,
        cardinality=1,
        random_state=0,
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


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"n_iter": 0}, "n_iter: found 0"), ({"tol": 0}, "tol: found 0")],
)
def test_bad_settings(setting, message):
    with pytest.raises(mlc.InputError, match=message):
        mlc.DawidSkene(**setting).fit_transform([[[1, 0]]])


def test_counts_of_patterns_in_another_order_are_those_of_the_panel_in_that_order():
    rng = np.random.default_rng(0)
    scores = (rng.random((3, 40, 4)) < 0.4).astype(float)
    scores[rng.random(scores.shape) < 0.3] = np.nan
    models = np.array([2, 0, 1])
    labels = np.array([3, 1, 0, 2])
    straight = (
        mlc.DawidSkene().fit(scores).statistics_.patterns.reordered(models, labels)
    )
    turned = mlc.DawidSkene().fit(scores[models][:, :, labels]).statistics_.patterns
    assert_same_patterns(straight, turned)


def test_models_that_are_alike_stay_alike():
    """The likelihood has a saddle there, and rounding would lead away from it."""
    rows = ["10000110", "00010110", "00100000", "10000011"]
    votes = np.array([[float(vote) for vote in row] for row in rows])
    straight = mlc.DawidSkene(tol=1e-300).fit(votes[:, :, None]).solution_
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(4)
        turned = mlc.DawidSkene(tol=1e-300).fit(votes[order][:, :, None]).solution_
        np.testing.assert_array_equal(turned.if_true, straight.if_true[order])
        np.testing.assert_array_equal(turned.if_false, straight.if_false[order])


def assert_same_patterns(first, second):
    assert first.labels.tolist() == second.labels.tolist()
    assert first.votes.toarray().tolist() == second.votes.toarray().tolist()
    assert first.counts.tolist() == second.counts.tolist()


def counted(scores):
    return mlc.DawidSkene().fit(scores).statistics_.patterns


def test_patterns_that_are_taken_away_leave_those_of_the_rest():
    scores = (np.random.default_rng(0).random((3, 40, 4)) < 0.4).astype(float)
    rest = counted(scores) - counted(scores[:, 25:])
    expected = counted(scores[:, :25])
    assert_same_patterns(rest, expected)
    with pytest.raises(mlc.InputError, match="patterns: found more than there are"):
        counted(scores[:, :25]) - counted(scores)


@pytest.mark.parametrize(
    ("label", "votes"),
    [(1, [0]), (-1, [0]), (0, [2]), (0, [-1]), (0, [0, 1])],
    ids=["label", "negative label", "model", "negative model", "yes and no"],
)
def test_impossible_patterns_are_refused(label, votes):
    arrays = {
        "labels": np.array([label]),
        "votes": np.array(votes),
        "starts": np.array([0, len(votes)]),
        "counts": np.ones(1),
    }
    message = "file: found patterns that 1 models cannot give 1 labels"
    with pytest.raises(mlc.InputError, match=message):
        VotePatterns.from_arrays(arrays, (1, 1), "file")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("labels", np.zeros(2, dtype=np.int64)),
        ("labels", np.zeros(1)),
        ("starts", np.array([0, 2])),
        ("starts", np.array([1, 1])),
        ("counts", np.ones((1, 1))),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(name, array):
    arrays = counted(np.ones((1, 1, 1))).arrays()
    arrays[name] = array
    with pytest.raises(mlc.InputError, match="found arrays that do not fit together"):
        VotePatterns.from_arrays(arrays, (1, 1), "file")
    with pytest.raises(mlc.InputError, match="found arrays that do not fit together"):
        VotePatterns.from_arrays({}, (1, 1), "file")


def test_negative_counts_are_refused():
    arrays = counted(np.ones((1, 1, 1))).arrays()
    arrays["counts"] = np.array([-1.0])
    with pytest.raises(mlc.InputError, match="found -1, expected no number below 0"):
        VotePatterns.from_arrays(arrays, (1, 1), "file")
