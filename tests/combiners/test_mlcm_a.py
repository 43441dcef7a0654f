import numpy as np
import pytest
from hypothesis import assume, given

import mlconsensus as mlc
import oracle
from panels import panels


@pytest.mark.parametrize(
    "n_iter", [1, 2]
)  # from 3 on the printed loop itself has lost the digits
def test_equals_algorithm_1_as_printed_where_omega_can_be_inverted(n_iter):
    scores = np.random.default_rng(0).random((4, 300, 6))
    result = mlc.mlcm_a(scores, n_iter=n_iter)
    np.testing.assert_allclose(
        result, oracle.mlcm_a_with_precision(scores, n_iter), rtol=0, atol=1e-10
    )


@given(scores=panels(missing=False))
def test_many_rounds_come_to_the_limit(scores):
    # At m·g = 4 exactly the rounds creep, so a panel whose eigenvalues come near it is
    # not asked.
    mg = len(scores) * np.linalg.eigvalsh(
        scores.mean(axis=0).T @ scores.mean(axis=0) / scores.shape[1]
    )
    assume((np.abs(mg - 4) >= 0.1).all())
    np.testing.assert_allclose(
        mlc.mlcm_a(scores, n_iter=None),
        mlc.mlcm_a(scores, n_iter=3000),
        rtol=0,
        atol=1e-9,
    )


@pytest.mark.parametrize("n", [20, 3])  # fewer than labels, too
def test_no_rounds_are_voting(n):
    scores = np.random.default_rng(0).random((3, n, 5))
    np.testing.assert_allclose(mlc.mlcm_a(scores, n_iter=0), mlc.majority_vote(scores))


def test_labels_that_never_go_together_stay_at_exactly_zero():
    """Rounding must not rank them: else metrics hang on the last bit."""
    scores = np.zeros((3, 60, 12))
    scores[:, :30, :5] = np.random.default_rng(0).random((3, 30, 5)) < 0.5
    scores[:, 30:, 5:10] = np.random.default_rng(1).random((3, 30, 5)) < 0.5
    for n_iter in (1, 3, None):
        result = mlc.mlcm_a(scores, n_iter=n_iter)
        assert (result[:30, 5:] == 0).all()
        assert (result[30:, :5] == 0).all()
        assert (result[:, 10:] == 0).all()


@pytest.mark.parametrize("n_iter", [-1, 1.5, "1", True])
def test_n_iter_must_be_whole(n_iter):
    with pytest.raises(
        mlc.InputError, match="n_iter: found .* expected a whole number of at least 0"
    ):
        mlc.MLCMa(n_iter=n_iter).fit_transform([[[1, 0]]])
