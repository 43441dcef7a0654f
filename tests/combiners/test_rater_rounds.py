"""The filter's first two rounds against sums over cells, written as loops."""

import numpy as np
import pytest
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.combiners._old_default import rater_rounds

FORMS = {
    "dense": lambda scores: scores,
    "sparse": lambda scores: [sparse.csr_array(own) for own in scores],
    "silent": lambda scores: np.where(
        np.random.default_rng(5).random(scores.shape) < 0.3, np.nan, scores
    ),
}


def drawn(form, size):
    """Draw scores of four raters; small ones, so that sums are below 1 and nothing hides behind a bound of 1."""
    rng = np.random.default_rng(2)
    scores = np.where(rng.random((4, 9, 3)) < 0.6, rng.random((4, 9, 3)) * size, 0.0)
    scores[3, :, 2] = 0.25 * size  # one never changes its mind
    inputs = FORMS[form](scores)
    if form == "sparse":
        said = np.array([own.toarray() for own in inputs])
    else:
        said = np.asarray(inputs)
    return mlc.Predictions(inputs), said


@pytest.mark.parametrize("size", [1, 0.01])
@pytest.mark.parametrize("form", FORMS)
def test_how_often_raters_say_yes(form, size):
    panel, said = drawn(form, size)
    result = rater_rounds.rates(panel, None)
    means = rater_rounds.means(result, None)
    for j in range(3):
        every = [y for own in said[:, :, j] for y in own if not np.isnan(y)]
        for k in range(4):
            own = [y for y in said[k, :, j] if not np.isnan(y)]
            sums = result.total[k, j], result.squares[k, j], result.heard[k, j]
            assert sums == pytest.approx((sum(own), sum(y * y for y in own), len(own)))
            mean = (sum(own) + sum(every) / len(every)) / (
                len(own) + 1
            )  # as if it had given one usual answer more
            assert means.mean[k, j] == pytest.approx(mean)
            variance = sum((y - mean) ** 2 for y in own) / len(own)
            assert means.variance[k, j] == pytest.approx(variance)
    if form != "silent":
        assert result.n_complete == 9
        np.testing.assert_allclose(
            result.products, np.einsum("kij,hij->kh", said, said)
        )


@pytest.mark.parametrize("size", [1, 0.01])
@pytest.mark.parametrize("form", FORMS)
def test_sums_over_pairs_of_raters(form, size):
    panel, said = drawn(form, size)
    means = rater_rounds.means(rater_rounds.rates(panel, None), None)
    result = rater_rounds.pairs(panel, means)
    told = rater_rounds.pairs_told(means)
    assert (told is None) == (form == "silent")
    for sums in [result, *([] if told is None else [told])]:
        for k in range(4):
            for h in range(4):
                both = [
                    (said[k, i, j] - means.mean[k, j], said[h, i, j] - means.mean[h, j])
                    for i in range(9)
                    for j in range(3)
                    if not np.isnan(said[k, i, j] + said[h, i, j])
                ]
                assert sums.both[k, h] == len(both)
                assert sums.products[k, h] == pytest.approx(
                    sum(x * z for x, z in both), abs=1e-12
                )
                assert sums.squares[k, h] == pytest.approx(
                    sum(x * x for x, _ in both), abs=1e-12
                )
