import numpy as np
import pytest
from sklearn.metrics import label_ranking_average_precision_score, label_ranking_loss

from mlconsensus.combiners import learning


def test_instances_with_known_answers_are_judged_as_scikit_learn_does():
    """Those without a pair to rank are left out, and labels that are not known."""
    rng = np.random.default_rng(0)
    scores, answers = rng.random((40, 5)), (rng.random((40, 5)) < 0.4).astype(float)
    answers[rng.random(answers.shape) < 0.2] = np.nan
    found = learning._ranked(scores, answers)
    for own, truth, (top, pairs, precision) in zip(scores, answers, found, strict=True):
        known = ~np.isnan(truth)
        if not 0 < truth[known].sum() < known.sum():
            assert np.isnan([top, pairs, precision]).all()
            continue
        given = truth[known][None], own[known][None]
        assert top == truth[known][np.argmax(own[known])]
        assert pairs == pytest.approx(1 - label_ranking_loss(*given))
        assert precision == pytest.approx(label_ranking_average_precision_score(*given))


@pytest.mark.parametrize(
    "answers", [[[1, 0]], [[0, 0]], [[1, np.nan], [np.nan, 0]], [[1, 0]] * 4, [[0, 0]] * 30], ids=str
)
def test_a_few_known_answers_teach_nothing(answers):
    """Fewer than five instances that rank something; of one, no fold is left to learn from."""
    g = len(answers)
    rng = np.random.default_rng(0)
    assert learning.correction(rng.random((g, 2)), rng.random((3, g, 2)) - 0.5, np.array(answers, dtype=float)) is None
