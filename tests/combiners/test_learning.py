import numpy as np
import pytest
from sklearn.metrics import label_ranking_average_precision_score, label_ranking_loss

from mlconsensus.combiners._old_default import learning
from mlconsensus.combiners.contributions import Contributions


def test_instances_with_known_answers_are_judged_as_scikit_learn_does():
    """Those without a pair to rank are left out, and labels that are not known."""
    rng = np.random.default_rng(0)
    scores = rng.random((40, 5))
    answers = (rng.random((40, 5)) < 0.4).astype(float)
    answers[rng.random(answers.shape) < 0.2] = np.nan
    result = learning._ranked(scores, answers)
    for own, truth, (top, pairs, precision) in zip(
        scores, answers, result, strict=True
    ):
        gold = ~np.isnan(truth)
        if not 0 < truth[gold].sum() < gold.sum():
            assert np.isnan([top, pairs, precision]).all()
            continue
        inputs = truth[gold][None], own[gold][None]
        assert top == truth[gold][np.argmax(own[gold])]
        assert pairs == pytest.approx(1 - label_ranking_loss(*inputs))
        assert precision == pytest.approx(
            label_ranking_average_precision_score(*inputs)
        )


@pytest.mark.parametrize(
    "answers",
    [[[1, 0]], [[0, 0]], [[1, np.nan], [np.nan, 0]], [[1, 0]] * 4, [[0, 0]] * 30],
    ids=str,
)
def test_a_few_known_answers_teach_nothing(answers):
    """Fewer than five instances that rank something; of one, no fold is left to learn from."""
    g = len(answers)
    rng = np.random.default_rng(0)
    assert (
        learning.correction(
            rng.random((g, 2)),
            rng.random((3, g, 2)) - 0.5,
            np.array(answers, dtype=float),
        )
        is None
    )


def test_parts_of_a_corrected_score_sum_to_it():
    """Of statements, of what stands for none of them, and of what a rater's answer is worth beyond its agreement."""
    result = Contributions(0.3, np.array([[0.1, 0.05], [-0.02, 0.0]]), 0.2)
    inputs = np.array([[0.4, -0.1], [0.5, 0.2]])
    learned = np.array([[0.1, 0.2], [0.8, 1.3], [0.7, -0.2], [0.3, 0.6]])
    for label in (0, 1):
        parts = learning.revised_parts(result, inputs, learned, label)
        odds = np.log(
            (0.63 + 0.01) / (1 - 0.63 + 0.01)
        )  # of 0.3 + 0.1 + 0.05 - 0.02 + 0.2
        expected = (
            learned[0, label]
            + learned[1, label] * odds
            + learned[2:, label] @ inputs[:, label]
        )
        assert (
            parts.baseline + parts.statements.sum() + parts.remainder
            == pytest.approx(expected)
        )
        share = (parts.statements[0, 1 - label] / result.statements[0, 1 - label]) / (
            parts.remainder / result.remainder
        )
        assert share == pytest.approx(
            1
        )  # each its share of how far all of them move the odds


def test_what_does_not_hold_elsewhere_teaches_nothing():
    """Answers at random, and many raters: fitted to the same instances they would seem to tell much."""
    taught = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        inputs = rng.random((12, 15, 3)) - 0.5
        answers = (rng.random((15, 3)) < 0.5).astype(float)
        taught += (
            learning.correction(rng.uniform(0.4, 0.6, (15, 3)), inputs, answers)
            is not None
        )
    assert taught == 0
