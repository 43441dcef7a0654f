"""Weights of models: a weight of 2 equals the model twice, 0 leaves it out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import mlconsensus as mlc
from panels import panels

# In the rater filter a copy adds nothing, so that a weight cannot mean copies there.
COUNTING = [
    mlc.MajorityVote(),
    mlc.DawidSkene(),
    mlc.BGCM(),
    mlc.MLCMr(),
    mlc.MLCMr(restart=0.4),
    mlc.MLCMa(),
]
counting = pytest.mark.parametrize("combiner", COUNTING, ids=repr)
every = pytest.mark.parametrize("kind", mlc.COMBINERS.values())


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


@counting
@given(scores=panels(), data=st.data())
def test_a_weight_counts_copies(combiner, scores, data):
    times = data.draw(
        st.lists(st.integers(0, 3), min_size=len(scores), max_size=len(scores)).filter(
            any
        )
    )
    weighted = clone(combiner).set_params(weights=times)
    close(
        weighted.fit_transform(scores),
        clone(combiner).fit_transform(np.repeat(scores, times, axis=0)),
    )


@every
@given(scores=panels())
def test_equal_weights_of_one_are_no_weights(kind, scores):
    close(
        kind(weights=[1] * len(scores)).fit_transform(scores),
        kind().fit_transform(scores),
    )


@every
def test_by_name_and_in_any_order(kind):
    panel, _ = mlc.datasets.make_panel(
        n_models=3, n_instances=50, n_labels=4, random_state=0
    )
    a, b, c = panel.models
    in_order = kind(weights=[2, 1, 0.5]).fit(panel).transform(panel)
    close(kind(weights={c: 0.5, a: 2}).fit(panel).transform(panel), in_order)
    by_name = kind(weights={a: 2, c: 0.5}).fit(panel)
    close(by_name.transform(panel.select(models=[c, a, b])), in_order)
    assert not np.allclose(in_order, kind().fit_transform(panel))


def test_a_vote_of_weight_0_is_not_heard_by_the_filter():
    panel, _ = mlc.datasets.make_panel(
        n_models=4, n_instances=80, n_labels=5, random_state=1
    )
    scores = panel.to_array()
    fitted = mlc.WeightedConsensus(weights=[1, 1, 1, 0]).fit(scores)
    otherwise = scores.copy()
    otherwise[3] = 1 - otherwise[3]
    close(fitted.transform(otherwise), fitted.transform(scores))


def test_a_heavier_model_has_more_of_a_say_in_the_filter():
    panel, _ = mlc.datasets.make_panel(
        n_models=4, n_instances=200, n_labels=5, random_state=2
    )
    first_model = panel.to_array()[0]

    def likeness(weight):
        consensus = mlc.WeightedConsensus(weights=[weight, 1, 1, 1]).fit_transform(
            panel
        )
        return np.corrcoef(consensus.ravel(), first_model.ravel())[0, 1]

    assert likeness(0) < likeness(1) < likeness(5)


def test_silence_beside_weights():
    scores = np.array([[[1.0]], [[0.0]], [[np.nan]]])
    assert mlc.majority_vote(scores, weights=[3, 1, 5])[0, 0] == 0.75


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1], "weights: found 1, expected one for each of 2 models"),
        (
            [1, -1],
            "weights, model 'model_1': found -1, expected a finite number of at "
            "least 0",
        ),
        (
            [1, np.inf],
            "weights, model 'model_1': found inf, expected a finite number of at "
            "least 0",
        ),
        (
            [1, "2"],
            "weights, model 'model_1': found '2', expected a finite number of at "
            "least 0",
        ),
        (
            [1, 1e-161],
            "weights, model 'model_1': found 1e-161, expected 0 or a number from "
            "1e-15 to 1e15",
        ),
        (
            [1, 1e161],
            "weights, model 'model_1': found 1e+161, expected 0 or a number from "
            "1e-15 to 1e15",
        ),
        ([0, 0], "weights: found 0 for every model, expected at least one above 0"),
        ({"model_2": 1}, "weights: found one for 'model_2', expected names of models"),
    ],
)
@every
def test_bad_weights(kind, weights, message):
    with pytest.raises(mlc.InputError) as caught:
        kind(weights=weights).fit([[[1, 0]], [[0, 1]]]).transform([[[1, 0]], [[0, 1]]])
    assert message in str(caught.value)


def test_combine_takes_them():
    panel, _ = mlc.datasets.make_panel(
        n_models=3, n_instances=50, n_labels=4, random_state=0
    )
    for method in mlc.COMBINERS:
        result = mlc.combine(panel, method=method, weights=[1, 2, 3]).scores
        close(result, mlc.COMBINERS[method](weights=[1, 2, 3]).fit_transform(panel))
    with pytest.raises(
        mlc.InputError, match="weights: found weights next to a combiner"
    ):
        mlc.combine(panel, method=mlc.MLCMr(), weights=[1, 2, 3])


def test_a_series_weighs_models_by_name():
    panel = mlc.Predictions([[[1, 0]], [[0, 1]], [[0, 0]]], models=["a", "b", "c"])
    assert panel.weighted(pd.Series({"c": 5, "a": 1})).weights.tolist() == [1, 1, 5]
    assert panel.weighted(pd.Series([5, 1, 2])).weights.tolist() == [5, 1, 2]
    for weights in (
        pd.Series([1, 2, 3], index=["a", "b", "b"]),
        pd.Series({"q": 1}),
        3,
    ):
        with pytest.raises(mlc.InputError, match="weights: found "):
            panel.weighted(weights)
