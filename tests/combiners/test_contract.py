"""The contract that every combiner in the registry keeps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mlconsensus as mlc
import oracle
from panels import DEGENERATE, NAN, panels

# Every registered method as it is, and settings that take another way through the code.
COMBINERS = [
    *(kind() for kind in mlc.COMBINERS.values()),
    mlc.MLCMr(restart=0.5),
    mlc.MLCMa(n_iter=None),
]
# Settings that change figures only: compared with the equations, and left out
# elsewhere.
OTHERS = [
    mlc.BGCM(alpha=0.3),
    mlc.DawidSkene(n_iter=4),
    mlc.MLCMr(alpha=0.3),
    mlc.MLCMa(n_iter=0),
    mlc.MLCMa(n_iter=4),
]
# The equations written out with loops; methods of our own have none that somebody else
# wrote.
LITERAL = {
    "majority_vote": oracle.majority_vote,
    "bgcm": oracle.bgcm,
    "dawid_skene": oracle.dawid_skene,
    "mlcm_r": oracle.mlcm_r,
    "mlcm_a": oracle.mlcm_a,
}
SHARES = [
    mlc.MajorityVote(),
    mlc.DawidSkene(),
    mlc.BGCM(),
    mlc.MLCMr(),
    mlc.MLCMr(alpha=1e-6),
]
TRANSCRIBED = [
    combiner
    for combiner in (*COMBINERS, *OTHERS)
    if combiner.identifier in LITERAL
    and combiner.get_params().get("n_iter", 0) is not None  # a limit has no last round
]

# For properties that concern the form of the input or output and not the values: a few
# shapes of panels with and without missing predictions are enough.
few_examples = settings(max_examples=15)

every_combiner = pytest.mark.parametrize("combiner", COMBINERS, ids=repr)
in_one_round = pytest.mark.parametrize(
    "combiner", [each for each in COMBINERS if not each.passes], ids=repr
)


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


def literal_parameters(combiner):
    """Return the parameters that the literal transcription supports."""
    return {
        name: value
        for name, value in combiner.get_params().items()
        if name not in ("weights", "rescale")
    }


@pytest.mark.parametrize("combiner", TRANSCRIBED, ids=repr)
@given(scores=panels())
def test_equals_the_literal_transcription(combiner, scores):
    close(
        clone(combiner).fit_transform(scores),
        LITERAL[combiner.identifier](scores, **literal_parameters(combiner)),
    )


@pytest.mark.parametrize("combiner", TRANSCRIBED, ids=repr)
@pytest.mark.parametrize("name", DEGENERATE)
def test_equals_the_literal_transcription_on_degenerate_panels(combiner, name):
    expected = LITERAL[combiner.identifier](
        DEGENERATE[name], **literal_parameters(combiner)
    )
    close(clone(combiner).fit_transform(DEGENERATE[name]), expected)


@every_combiner
@pytest.mark.parametrize("name", DEGENERATE)
def test_scores_are_finite_on_degenerate_panels(combiner, name):
    assert np.isfinite(clone(combiner).fit_transform(DEGENERATE[name])).all()


@pytest.mark.parametrize("combiner", SHARES, ids=repr)
@pytest.mark.parametrize(
    "form", ["decisions", "scores", "weighted", "silence", "float32", "one label"]
)
def test_shares_stay_between_0_and_1(combiner, form):
    """Scores stay in [0, 1] despite rounding, so that they are predictions, too."""
    rng = np.random.default_rng(0)
    same = rng.random((100, 10)) < 0.3
    scores = np.broadcast_to(
        same if form == "decisions" else np.where(same, 1.0, 0.0), (100, 100, 10)
    ).copy()
    if form == "silence":
        scores[rng.random(scores.shape) < 0.1] = NAN
    if form == "one label":
        scores = rng.random((29, 500, 1)) < 0.3
    if form == "weighted":
        weights = rng.random(100)
    else:
        weights = None
    fitted = clone(combiner).set_params(weights=weights).fit(scores)
    result = fitted.transform(
        scores, dtype=np.float32 if form == "float32" else np.float64
    )
    assert result.min() >= 0
    assert result.max() <= 1


@every_combiner
@settings(max_examples=8)
@given(scores=panels())
def test_function_equals_estimator(combiner, scores):
    function = getattr(mlc, combiner.identifier)
    close(
        function(scores, **combiner.get_params()), clone(combiner).fit_transform(scores)
    )


@every_combiner
@given(scores=panels(), seed=st.integers(0, 1000))
def test_order_does_not_matter(combiner, scores, seed):
    rng = np.random.default_rng(seed)
    m, n, l = (rng.permutation(size) for size in scores.shape)
    straight = clone(combiner).fit_transform(scores)
    close(clone(combiner).fit_transform(scores[m][:, n][:, :, l]), straight[n][:, l])


@in_one_round
@given(scores=panels(), sizes=st.lists(st.integers(1, 5), min_size=9, max_size=9))
def test_pieces_of_any_size_give_what_the_whole_gives(combiner, scores, sizes):
    in_pieces = clone(combiner)
    start = 0
    for size in sizes:
        if start < scores.shape[1]:
            in_pieces.partial_fit(scores[:, start : start + size])
            start += size
    complete = clone(combiner).fit(scores)
    close(in_pieces.transform(scores), complete.transform(scores))
    assert in_pieces.n_instances_ == complete.n_instances_ == scores.shape[1]


@every_combiner
@few_examples
@given(scores=panels())
def test_transform_of_the_fitted_data_and_of_parts_of_it(combiner, scores):
    fitted = clone(combiner).fit(scores)
    together = fitted.fit_transform(scores)
    close(fitted.transform(scores), together)
    for i in range(scores.shape[1]):
        close(fitted.transform(scores[:, i : i + 1]), together[i : i + 1])


@every_combiner
@few_examples
@given(scores=panels())
def test_sparse_dense_and_mixed_input_agree(combiner, scores):
    dense = clone(combiner).fit_transform(scores)
    as_sparse = [sparse.csr_array(matrix) for matrix in scores]
    close(clone(combiner).fit_transform(as_sparse), dense)
    mixed = [
        matrix if k % 2 else sparse.coo_matrix(matrix)
        for k, matrix in enumerate(scores)
    ]
    close(clone(combiner).fit_transform(mixed), dense)
    fitted = clone(combiner).fit(scores)
    np.testing.assert_array_equal(
        fitted.predict(as_sparse).sum(axis=1), fitted.predict(scores).sum(axis=1)
    )


@every_combiner
@few_examples
@given(scores=panels(missing=False))
def test_bool_integer_and_float_input_agree(combiner, scores):
    decisions = scores > 0.5
    as_float = clone(combiner).fit_transform(decisions.astype(np.float64))
    for dtype in (bool, np.int64, np.uint8, np.float32):
        close(clone(combiner).fit_transform(decisions.astype(dtype)), as_float)


@every_combiner
def test_scikit_learn_conventions(combiner):
    copy = clone(combiner)
    assert copy.get_params() == combiner.get_params()
    assert copy.set_params(**combiner.get_params()) is copy
    with pytest.raises(NotFittedError, match="not fitted"):
        copy.transform(DEGENERATE["scores"])
    with pytest.raises(NotFittedError, match="not fitted"):
        copy.predict(DEGENERATE["scores"])
    with pytest.raises(NotFittedError):
        copy.get_feature_names_out()
    assert copy.fit(DEGENERATE["scores"]) is copy
    assert copy.transform(DEGENERATE["scores"]).dtype == np.float64
    assert copy.predict(DEGENERATE["scores"]).dtype == np.bool_
    assert copy.fit(DEGENERATE["one label"]).labels_ == ("label_0",)


@every_combiner
def test_output_as_a_pandas_frame(combiner):
    panel = mlc.Predictions(DEGENERATE["scores"], labels=["a", "b", "c", "d"])
    frame = clone(combiner).set_output(transform="pandas").fit_transform(panel)
    assert list(frame.columns) == ["a", "b", "c", "d"]
    close(frame.to_numpy(), clone(combiner).fit_transform(panel))
    sets = clone(combiner).set_output(transform="pandas").fit(panel).predict(panel)
    assert sets.shape == frame.shape


@in_one_round
def test_models_and_labels_are_matched_by_name_in_pieces(combiner):
    panel = mlc.Predictions(
        DEGENERATE["scores"], models=["x", "y", "z"], labels=["a", "b", "c", "d"]
    )
    turned = panel.select(models=["z", "x", "y"], labels=["d", "a", "c", "b"])
    close(
        clone(combiner).fit(panel).partial_fit(turned).transform(turned),
        clone(combiner).partial_fit(panel).partial_fit(panel).transform(panel),
    )
    with pytest.raises(mlc.InputError, match="models: found 'w', expected 'z'"):
        clone(combiner).fit(panel).partial_fit(
            mlc.Predictions(DEGENERATE["scores"], ["x", "y", "w"], list("abcd"))
        )


def test_a_method_of_several_rounds_refuses_pieces():
    with pytest.raises(
        mlc.InputError,
        match="partial_fit: found WeightedConsensus, which goes over all instances "
        "3 times",
    ):
        mlc.WeightedConsensus().fit(DEGENERATE["scores"]).partial_fit(
            DEGENERATE["scores"]
        )


@every_combiner
def test_models_and_labels_are_matched_by_name_at_transform(combiner):
    panel = mlc.Predictions(
        DEGENERATE["scores"], models=["x", "y", "z"], labels=["a", "b", "c", "d"]
    )
    turned = panel.select(models=["z", "x", "y"], labels=["d", "a", "c", "b"])
    fitted = clone(combiner).fit(panel)
    close(fitted.transform(turned), fitted.transform(panel))


@every_combiner
def test_others_are_refused_at_transform(combiner):
    panel = mlc.Predictions(
        DEGENERATE["scores"], models=["x", "y", "z"], labels=["a", "b", "c", "d"]
    )
    fitted = clone(combiner).fit(panel)
    with pytest.raises(
        mlc.InputError,
        match="models: found no 'y', 'z', expected the 3 .* Predictions.with_models",
    ):
        fitted.transform(panel.select(models=["x"]))
    with pytest.raises(
        mlc.InputError, match="models: found 'w', expected the 3 that were fitted"
    ):
        fitted.transform(
            mlc.Predictions(
                [*panel.to_array(), panel.to_array()[0]], [*"xyzw"], panel.labels
            )
        )
    with pytest.raises(
        mlc.InputError, match="labels: found 'e', expected 'd' as was fitted"
    ):
        fitted.transform(
            mlc.Predictions(DEGENERATE["scores"], ["x", "y", "z"], ["a", "b", "c", "e"])
        )


@every_combiner
def test_parameters_may_change_after_fit(combiner):
    fitted = clone(combiner).fit(DEGENERATE["scores"])
    fitted.transform(DEGENERATE["scores"])
    for name in literal_parameters(combiner):
        if name in ("restart", "tol"):
            value = 0.25
        elif name == "families":
            continue  # they count from the next fit on
        else:
            value = 3
        fitted.set_params(**{name: value})
        changed = clone(fitted)
        close(
            fitted.transform(DEGENERATE["scores"]),
            changed.fit_transform(DEGENERATE["scores"]),
        )


@every_combiner
def test_weights_count_from_the_next_fit_on(combiner):
    """Statistics cannot be solved, applied or written with other weights."""
    fitted = clone(combiner).fit(DEGENERATE["scores"])
    before = fitted.transform(DEGENERATE["scores"])
    fitted.set_params(weights=[1.0, 2.0, 0.5])
    close(fitted.transform(DEGENERATE["scores"]), before)
    close(
        fitted.fit_transform(DEGENERATE["scores"]),
        clone(fitted).fit_transform(DEGENERATE["scores"]),
    )
    assert fitted.weights_.tolist() == [1.0, 2.0, 0.5]


@in_one_round
def test_pieces_are_added_with_the_weights_of_the_first(combiner):
    more = clone(combiner).fit(DEGENERATE["scores"]).set_params(weights=[1.0, 2.0, 0.5])
    more.partial_fit(DEGENERATE["scores"])
    assert more.weights_ is None
    close(
        more.transform(DEGENERATE["scores"]),
        clone(combiner)
        .partial_fit(DEGENERATE["scores"])
        .partial_fit(DEGENERATE["scores"])
        .transform(DEGENERATE["scores"]),
    )


@every_combiner
def test_fit_forgets_what_was_fitted_before(combiner):
    fitted = clone(combiner).fit(DEGENERATE["all one"]).fit(DEGENERATE["scores"])
    close(
        fitted.transform(DEGENERATE["scores"]),
        clone(combiner).fit_transform(DEGENERATE["scores"]),
    )


@every_combiner
def test_input_is_left_as_it_was(combiner):
    scores = DEGENERATE["scores"].copy()
    scores[0, 0, 0] = NAN
    as_sparse = [sparse.csr_array(matrix) for matrix in scores]
    before = scores.copy()
    clone(combiner).fit_transform(scores)
    clone(combiner).fit_transform(as_sparse)
    np.testing.assert_array_equal(scores, before)
    for matrix, was in zip(as_sparse, before, strict=True):
        np.testing.assert_array_equal(matrix.toarray(), was)


@pytest.mark.parametrize(
    "combiner",
    [
        mlc.MLCMr(alpha=-1),
        mlc.MLCMr(restart=1),
        mlc.BGCM(alpha=0),
        mlc.MLCMa(n_iter=-1),
        mlc.DawidSkene(tol=-1),
    ],
    ids=repr,
)
def test_bad_parameters_are_refused_at_fit(combiner):
    with pytest.raises(mlc.InputError, match="found"):
        combiner.fit(DEGENERATE["scores"])


@every_combiner
@few_examples
@given(scores=panels())
def test_scores_as_float32(combiner, scores):
    fitted = clone(combiner).fit(scores)
    half = fitted.transform(scores, dtype=np.float32)
    assert half.dtype == np.float32
    # A few dozen terms of the size of the largest score, each rounded to 2⁻²⁴ of
    # itself, some 6e-8.
    complete = fitted.transform(scores)
    np.testing.assert_allclose(
        half, complete, rtol=0, atol=5e-6 * max(1, np.abs(complete).max())
    )


@pytest.mark.parametrize("form", ["decisions", "sparse", "scores", "silence"])
@pytest.mark.parametrize(
    "combiner", [mlc.MLCMa(), mlc.MLCMr(), mlc.WeightedConsensus()], ids=repr
)
def test_linear_methods_work_in_float32_where_asked(combiner, form):
    if form == "silence":
        missing = 0.1
    else:
        missing = 0.0
    panel, truth = mlc.datasets.make_panel(
        400, 30, probabilities=form == "scores", missing=missing, random_state=0
    )
    if form == "sparse":
        panel = mlc.Predictions(
            [sparse.csr_array(values) for values, _ in panel.cells()]
        )
    fitted = clone(combiner).fit(panel)
    half, complete = (
        fitted.applying(dtype)(panel) for dtype in (np.float32, np.float64)
    )
    assert half.dtype == np.float32
    assert complete.dtype == np.float64
    np.testing.assert_allclose(half, complete, rtol=1e-5, atol=1e-6)
    assert mlc.metrics.ranking_loss(truth, half) == pytest.approx(
        mlc.metrics.ranking_loss(truth, complete), abs=1e-4
    )
