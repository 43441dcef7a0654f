import numpy as np

import mlconsensus as mlc


def test_labels_do_not_touch_one_another():
    scores = (np.random.default_rng(0).random((3, 20, 5)) < 0.4).astype(float)
    alone = [mlc.bgcm(scores[:, :, [label]]) for label in range(5)]
    np.testing.assert_allclose(mlc.bgcm(scores), np.hstack(alone))


def test_scores_are_probabilities():
    result = mlc.bgcm(np.random.default_rng(0).random((3, 20, 5)))
    assert ((result >= 0) & (result <= 1)).all()
