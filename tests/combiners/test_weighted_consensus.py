"""What the rater filter promises beyond the contract of all methods."""

import numpy as np
import pytest

import mlconsensus as mlc
import rater_oracle


def fitted(scores):
    return mlc.WeightedConsensus(rescale=False).fit_transform(scores)


@pytest.mark.parametrize("silent", [0.0, 0.3])
def test_a_copy_of_a_model_adds_nothing(silent):
    """But for the one answer at the labels' frequencies that each rater's mean starts from."""
    panel, _ = mlc.datasets.make_panel(1000, 8, 5, random_state=0)
    scores = panel.to_array()
    scores[np.random.default_rng(0).random(scores.shape) < silent] = np.nan
    more = np.concatenate([scores, scores[[2]]])
    np.testing.assert_allclose(fitted(more), fitted(scores), rtol=0, atol=1e-3)


@pytest.mark.parametrize("silent", [0.0, 0.3])
@pytest.mark.parametrize("copies", [3, 5, 8])
def test_near_copies_do_not_carry_the_panel(copies, silent):
    """One annotator many times, with 3 % of the answers drawn anew, beside five others: ahead of voting, not behind."""
    rng = np.random.default_rng(copies)
    truth = rng.random((600, 10)) < np.linspace(0.05, 0.4, 10)
    answers = np.where(
        truth, rng.random((6, 600, 10)) < 0.7, rng.random((6, 600, 10)) < 0.08
    )
    anew = rng.random((copies, 600, 10)) < 0.03
    near = np.where(anew, rng.random(anew.shape) < truth.mean(axis=0), answers[5])
    scores = np.concatenate([answers[:5], near]).astype(float)
    scores[rng.random(scores.shape) < silent] = np.nan
    without = mlc.metrics.micro_auc(
        truth, fitted(np.concatenate([scores[:5], scores[[5]]]))
    )
    result = mlc.metrics.micro_auc(truth, fitted(scores))
    assert result > mlc.metrics.micro_auc(truth, mlc.majority_vote(scores)) + 0.002
    assert result > without - 0.01


def without_a_signal(form):
    rng = np.random.default_rng(0)
    if form == "scores":
        scores = rng.random((7, 500, 6))
    else:
        scores = (rng.random((7, 500, 6)) < 0.2).astype(float)
    if form == "silence":
        scores[rng.random(scores.shape) < 0.3] = np.nan
        scores[:, 3] = np.nan
    if form == "copies":
        scores[4] = scores[1]
    if form == "opposites":  # the same answers, with as many raters on either side
        scores = np.stack([scores[0], scores[0], 1 - scores[0], 1 - scores[0]])
    return scores


@pytest.mark.parametrize(
    "weights", [None, [3.0, 0.0, 1.0, 1.0, 0.5, 1.0, 1.0]], ids=["alike", "weighted"]
)
@pytest.mark.parametrize(
    "form", ["decisions", "scores", "silence", "copies", "opposites"]
)
def test_without_a_signal_scores_are_votes(form, weights):
    scores = without_a_signal(form)
    weights = weights and weights[: len(scores)]
    result = mlc.combine(scores, method="filter", weights=weights)
    if weights is None:
        check_interrupted = scores
    else:
        check_interrupted = scores[np.array(weights) > 0]
    spoken = ~np.isnan(check_interrupted).all(axis=0)
    vote = mlc.majority_vote(scores, weights=weights)
    np.testing.assert_allclose(result.scores[spoken], vote[spoken], rtol=0, atol=1e-12)
    assert "do not agree beyond chance, so the scores are votes" in result.reason
    assert not result.combiner.model_weights_.any()
    default = mlc.combine(
        scores, weights=weights
    )  # where some can be held out, these say so instead
    np.testing.assert_allclose(default.scores[spoken], vote[spoken], rtol=0, atol=1e-12)
    assert "votes" in default.reason or "voting" in default.reason


def test_chance_is_seldom_taken_for_a_signal():
    """Three standard errors: one panel in 700 by the raters' agreement on the whole, fewer along the fit."""
    rng = np.random.default_rng(0)
    shapes = [(2, 60, 6), (3, 60, 6), (6, 40, 5), (12, 30, 4)]
    drawn = [rng.random(shape) < 0.3 for shape in shapes for _ in range(50)]
    assert (
        sum(
            mlc.WeightedConsensus().fit(scores).model_weights_.any() for scores in drawn
        )
        <= 3
    )


@pytest.mark.parametrize(
    "reliable", [[0.7, 0.7], [0.6, 0.6, 0.6], [0.8, 0.8, -0.8], [0.8] * 3 + [0.0] * 9]
)
def test_a_signal_in_a_few_hundred_cells_is_found(reliable):
    """Also where one says the opposite of two, or most answer at random."""
    rng = np.random.default_rng(0)
    truth = rng.random((60, 6)) < 0.3
    at_random = rng.random((len(reliable), 60, 6)) < 0.3
    check_interrupted = rng.random(at_random.shape) < np.abs(reliable)[:, None, None]
    scores = np.where(
        check_interrupted, truth ^ (np.array(reliable) < 0)[:, None, None], at_random
    )
    result = mlc.WeightedConsensus().fit(scores).model_weights_
    assert (
        result[: np.count_nonzero(reliable)]
        * np.array(reliable)[np.array(reliable) != 0]
        > 0.1
    ).all()


def test_the_voice_of_copies_is_as_loud_as_the_loudest():
    """A copy that counts for nothing takes nothing away, wherever it stands."""
    panel, _ = mlc.datasets.make_panel(300, 6, 4, random_state=0)
    scores = panel.to_array()
    alone = mlc.WeightedConsensus(weights=[2, 1, 1, 1]).fit_transform(scores)
    more = np.concatenate([scores[:1], scores])
    for weights in ([0, 2, 1, 1, 1], [2, 0, 1, 1, 1], [2, 1.5, 1, 1, 1]):
        result = mlc.WeightedConsensus(weights=weights).fit_transform(more)
        np.testing.assert_allclose(
            result, alone, rtol=0, atol=3e-3
        )  # a copy moves where rates of raters start from
    first, second = (
        mlc.WeightedConsensus(weights=w).fit_transform(more)
        for w in ([0, 2, 1, 1, 1], [2, 0, 1, 1, 1])
    )
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-12)


def test_a_sparse_crowd_is_combined_in_proportion_to_what_was_said():
    """Three of two hundred raters on each instance: rater by rater nothing is known, together much is."""
    rng = np.random.default_rng(0)
    truth = rng.random((600, 8)) < 0.3
    scores = np.full((200, 600, 8), np.nan)
    for i in range(600):
        for k in rng.choice(200, 3, replace=False):
            scores[k, i] = truth[i] ^ (rng.random(8) < (0.05 if k % 2 else 0.35))
    gained = [
        mlc.metrics.micro_auc(truth, result)
        for result in (fitted(scores), mlc.majority_vote(scores))
    ]
    assert gained[0] > gained[1] + 0.01


def test_models_that_answer_at_random_leave_the_consensus_almost_as_it_is():
    panel, truth = mlc.datasets.make_panel(
        3000, 10, 5, quality=0.8, shared_errors=0, random_state=0
    )
    scores = panel.to_array()
    rng = np.random.default_rng(1)
    noise = np.stack(
        [rng.random(truth.shape) < truth.mean(axis=0) for _ in range(3)]
    ).astype(float)
    alone = fitted(scores)
    among = fitted(np.concatenate([scores, noise]))
    assert np.corrcoef(alone.ravel(), among.ravel())[0, 1] > 0.99
    voting = [
        mlc.majority_vote(inputs)
        for inputs in (scores, np.concatenate([scores, noise]))
    ]
    assert np.corrcoef(*(inputs.ravel() for inputs in voting))[0, 1] < 0.97


def test_the_better_a_model_the_more_it_is_trusted():
    quality = [0.2, 0.4, 0.6, 0.8]
    panel, _ = mlc.datasets.make_panel(
        5000, 8, 4, quality=quality, shared_errors=0, random_state=0
    )
    overall = mlc.WeightedConsensus().fit(panel).solution_.overall
    assert (np.diff(overall) > 0).all()


@pytest.mark.parametrize("shift", [1, 2])
def test_labels_that_go_together_lend_each_other_what_models_missed(shift):
    """Two labels that are always true together: where models miss one of them, the other one speaks for it."""
    rng = np.random.default_rng(0)
    truth = np.repeat(
        rng.random((2000, 2)) < 0.2, 2, axis=1
    )  # labels 0 and 1, and labels 2 and 3
    scores = (truth & (rng.random((4, 2000, 4)) < 0.6)).astype(float)
    result = fitted(scores)
    only_first = (scores[:, :, 0] == 1).all(axis=0) & (scores[:, :, 1:] == 0).all(
        axis=(0, 2)
    )
    assert only_first.any()
    assert (result[only_first, 1] > result[only_first, 1 + shift]).all()


def drawn_panel(seed, m, n, l, right, form):
    """Raters that heed the truth as often as `right` says, and answer at random elsewhere."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, 1)) < rng.uniform(0.1, 0.6, (n, l))  # labels go together
    shape = (m, n, l)
    check_interrupted = rng.random(shape) < np.abs(right)[:, None, None]
    answers = np.where(
        check_interrupted,
        truth ^ (np.array(right) < 0)[:, None, None],
        rng.random(shape) < 0.3,
    ).astype(float)
    if form == "scores":
        answers = 0.7 * answers + 0.3 * rng.random(shape)
    if form == "silence":
        answers[rng.random(shape) < 0.3] = np.nan
    if form == "near copies":
        answers[-1] = np.where(rng.random((n, l)) < 0.06, answers[-1], answers[0])
    if form == "few labels":
        answers[1:, :, 0] = np.nan
        answers[:, 2] = np.nan
        answers[:, :, 1] = np.nan  # of which nobody speaks
        answers[-1, :, 3] = 1.0  # a rater that always says yes to one label
    return answers


@pytest.mark.parametrize(
    "form", ["decisions", "scores", "silence", "near copies", "few labels"]
)
@pytest.mark.parametrize(
    "right",
    [
        [0.8, 0.7, 0.5, 0.3],
        [0.9, 0.8, -0.7],
        [0.6, 0.5],
        [0.9, 0.0, 0.8, 0.1, 0.7],
        [0.0, 0.0, 0.0],
        [0.5],
    ],
    ids=repr,
)
def test_equals_the_derivation_written_with_loops(right, form):
    right = np.array(right)
    weights = [None, np.linspace(0.5, 2, len(right))]
    for seed, n, l in ((0, 40, 5), (1, 25, 8), (0, 60, 2)):
        if l == 2 and form == "few labels":
            continue
        scores = drawn_panel(seed, len(right), n, l, right, form)
        result = mlc.WeightedConsensus(
            rescale=False, weights=weights[seed]
        ).fit_transform(scores)
        np.testing.assert_allclose(
            result, rater_oracle.rater_filter(scores, weights[seed]), rtol=0, atol=1e-8
        )


def test_scores_are_brought_to_one_scale_unless_told_otherwise():
    scores = (
        drawn_panel(0, 3, 60, 5, np.array([0.8, 0.7, 0.6]), "scores")
        ** np.array([1, 1, 8])[:, None, None]
    )
    by_itself = mlc.WeightedConsensus().fit_transform(scores)
    np.testing.assert_array_equal(
        by_itself, mlc.WeightedConsensus(rescale=True).fit_transform(scores)
    )
    assert np.abs(by_itself - fitted(scores)).max() > 0.01


def test_one_rater_alone_is_believed_to_the_letter():
    rng = np.random.default_rng(0)
    for scores in (rng.random((1, 50, 6)), rng.random((1, 50, 6)) < 0.3):
        np.testing.assert_allclose(
            mlc.combine(scores).scores, scores[0], rtol=0, atol=1e-12
        )
