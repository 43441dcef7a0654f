"""Comparisons on held-out models are right if errors are independent, else cautious."""

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.combiners.registry import list_by_name
from mlconsensus.metrics.estimate import Estimate
from mlconsensus.model_selection import held_out_models as module
from mlconsensus.text import plural

METRICS = mlc.metrics.RANKING_METRICS
SIGN = {"micro_auc": 1, "one_error": -1, "ranking_loss": -1, "average_precision": 1}


def raters(n=800, l=12, m=6, seed=0, hit=(0.4, 0.95), alarm=(0.02, 0.2)):
    """Answers (m, n, l) that depend on nothing but the truth, and the truth."""
    rng = np.random.default_rng(seed)
    _, truth = mlc.datasets.make_panel(n, l, 1, cardinality=2.5, random_state=seed)
    hits, alarms = (rng.uniform(*of, m)[:, None, None] for of in (hit, alarm))
    drawn = rng.random((m, n, l))
    return np.where(truth, drawn < hits, drawn < alarms), truth


class Reversed(mlc.MajorityVote):
    """A method that is always wrong: what was voted for least comes first."""

    name = "Reversed"

    def transform(self, predictions, dtype=np.float64):
        return -super().transform(predictions, dtype)


class OfFirst(mlc.MajorityVote):
    """Believe the first model, where it is among those that are combined."""

    def transform(self, predictions, dtype=np.float64):
        return np.asarray(
            predictions.select(models=[min(predictions.models)]).to_array()[0], dtype
        )


def close(comparison, other, within=1e-12):
    for name, method_gains in comparison.gains.items():
        for metric, gain in method_gains.items():
            expected = other.gains[name][metric].to_dict()
            assert gain.to_dict() == pytest.approx(expected, abs=within)


@pytest.mark.parametrize("seed", range(3))
def test_signs_are_right_where_raters_err_on_their_own(seed):
    votes, truth = raters(seed=seed)
    comparison = mlc.compare_on_held_out_models(votes)
    assert (comparison.n_models, comparison.n_families, comparison.n_folds) == (6, 6, 5)
    assert comparison.recommended is not None
    vote = mlc.metrics.evaluate(truth, mlc.majority_vote(votes))
    clear = 0
    right = 0
    for name, method_gains in comparison.gains.items():
        true = mlc.metrics.evaluate(truth, list_by_name()[name]().fit_transform(votes))
        for metric in METRICS:
            gain = method_gains[metric]
            real = SIGN[metric] * (true[metric] - vote[metric])
            # One rater in five is missing where it is judged: what is nearly 0 with all
            # of them may have either sign.
            if abs(gain.value) > 2 * gain.standard_error and abs(real) > 0.005:
                clear += 1
                right += gain.value * real > 0
    assert clear >= 8
    assert right >= 0.9 * clear


def test_a_wrong_method_is_worse_and_voting_is_even():
    votes, _ = raters()
    comparison = mlc.compare_on_held_out_models(
        votes, methods={"wrong": Reversed(), "vote": mlc.MajorityVote()}
    )
    for metric in METRICS:
        assert comparison.gains["wrong"][metric].high < -0.3
        assert comparison.gains["vote"][metric] == Estimate(
            value=0, standard_error=0, low=0, high=0
        )
    assert comparison.recommended is None
    assert comparison.sentence.startswith("No method is shown to be better than voting")


def test_what_knows_the_truth_is_ahead():
    votes, truth = raters()

    class Oracle(mlc.MajorityVote):
        def transform(self, predictions, dtype=np.float64):
            return truth[predictions.instances].astype(float)

    comparison = mlc.compare_on_held_out_models(
        votes, "one-error", methods={"oracle": Oracle()}
    )
    assert comparison.metric == "one_error"
    assert comparison.recommended == "oracle"
    assert "oracle is better than voting in one-error: gain" in comparison.sentence
    assert all(comparison.gains["oracle"][metric].low > 0 for metric in METRICS)


def test_figures_are_those_of_the_metrics():
    """With three models of equal weight, gains are means of `metrics` over folds."""
    votes, _ = raters(n=40, m=3, l=5, hit=(0.8, 0.8), alarm=(0.1, 0.1))
    panel = mlc.Predictions(votes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_binarize_scores", lambda rows: rows.scores > 0)
        patch.setattr(
            module, "_compute_trust", lambda rows, vote: np.ones(len(rows.model))
        )
        comparison = mlc.compare_on_held_out_models(panel, methods=["ds"])
    totals = {metric: np.zeros(2) for metric in METRICS}
    for held in range(3):
        rest = np.delete(votes, held, axis=0)
        ranked = (votes[held].any(axis=1)) & ~votes[held].all(axis=1)
        scores = [mlc.DawidSkene().fit_transform(rest), mlc.majority_vote(rest)]
        for metric in METRICS:
            rows = ranked
            weight = ranked.sum()
            if metric == "micro_auc":
                rows = slice(None)
                weight = votes[held].sum()
            compute = getattr(mlc.metrics, metric)
            value = compute(votes[held][rows], scores[0][rows])
            vote = compute(votes[held][rows], scores[1][rows])
            totals[metric] += [weight * SIGN[metric] * (value - vote), weight]
    for metric, (gain, weight) in totals.items():
        assert comparison.gains["DS"][metric].value == pytest.approx(gain / weight)


def test_the_jackknife_leaves_out_a_part_at_a_time():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 9, (600, 4)) / 9
    yes = rng.random((600, 4))
    no = rng.random((600, 4))

    def pairs(rows):
        s, of_yes, of_no = (values[rows].ravel() for values in (scores, yes, no))
        return of_yes @ ((s[:, None] > s) + (s[:, None] == s) / 2) @ of_no

    comparison = module._sum_won_pairs(scores, yes, no)
    for part in (0, 7, 20):  # the last leaves nothing out
        assert comparison[part] == pytest.approx(
            pairs(np.arange(600) % 20 != part), rel=1e-4 if part < 20 else 1e-12
        )


def test_a_random_rater_changes_nothing():
    votes, truth = raters(m=5)
    noise = np.random.default_rng(1).random((1, *truth.shape)) < 0.3
    before, after = (
        mlc.compare_on_held_out_models(panel, methods=["mlcm-a"])
        for panel in (votes, np.concatenate([votes, noise]))
    )
    assert after.n_families == 6
    trust = module._compute_trust(
        module.make_annotations(mlc.Predictions(noise)), mlc.majority_vote(votes)
    )
    of_others = module._compute_trust(
        module.make_annotations(mlc.Predictions(votes[:1])),
        mlc.majority_vote(votes[1:]),
    )
    assert trust.max() < 0.01 * of_others.min()
    assert before.recommended == after.recommended


@pytest.mark.parametrize("flipped", [0.0, 0.005])
def test_copies_are_held_out_together(flipped):
    votes, _ = raters(m=5)
    near = votes[:1] ^ (np.random.default_rng(2).random(votes[:1].shape) < flipped)
    comparison = mlc.compare_on_held_out_models(
        np.concatenate([votes, near]), methods=["mlcm-a"]
    )
    assert (comparison.n_models, comparison.n_families) == (6, 5)


def test_stated_families_are_held_out_together():
    votes, _ = raters(m=5)
    names = ["ann", "bob", "cy", "dan", "eve"]
    panel = mlc.Predictions(votes, models=names)
    comparison = mlc.compare_on_held_out_models(
        panel, methods=["ds"], families={"ann": "x", "bob": "x", "cy": "dan"}
    )
    # The group 'dan' is not the rater dan.
    assert (comparison.n_families, comparison.n_folds) == (4, 4)
    with pytest.raises(
        mlc.InputError, match="families: found model 'zoe', expected one of"
    ):
        mlc.compare_on_held_out_models(panel, families={"zoe": "x"})


@pytest.mark.parametrize("m", [1, 2])
def test_too_few_raters_are_told(m):
    comparison = mlc.compare_on_held_out_models(raters(m=m)[0])
    assert comparison.gains == {}
    assert comparison.recommended is None
    assert str(comparison) == comparison.sentence
    assert comparison.sentence == (
        f"No recommendation: {plural(m, 'model')} in {m} families or alone are too "
        "few; with one held out, at least 3 must remain to show which is reliable."
    )


def test_copies_of_two_raters_are_too_few():
    comparison = mlc.compare_on_held_out_models(np.repeat(raters(m=2)[0], 4, axis=0))
    assert (comparison.n_models, comparison.n_families, comparison.recommended) == (
        8,
        2,
        None,
    )


def test_too_few_instances_are_told():
    comparison = mlc.compare_on_held_out_models(raters(n=5, m=4)[0])
    assert comparison.recommended is None
    assert "too few instances" in comparison.sentence


def test_replicas_of_one_learner_are_told():
    rng = np.random.default_rng(0)
    _, truth = raters(m=1)
    learner = truth ^ (rng.random(truth.shape) < np.where(truth, 0.3, 0.05))
    doubtful = rng.random(truth.shape) < 0.15  # where replicas differ
    replicas = learner ^ (doubtful & (rng.random((8, *truth.shape)) < 0.4))
    comparison = mlc.compare_on_held_out_models(replicas, methods=["mlcm-a"])
    assert comparison.n_families > 2
    assert comparison.recommended is None
    assert "errors of models of different families correlate" in comparison.sentence
    assert comparison.gains
    unjudged = mlc.compare_on_held_out_models(
        replicas, methods=["mlcm-a"], even_in_doubt=False
    )
    assert unjudged.gains == {}
    assert unjudged.sentence == comparison.sentence
    assert comparison.gains


def test_scores_become_the_share_of_yes_that_their_mean_says():
    rng = np.random.default_rng(0)
    scores = rng.random((1, 400, 5)) ** 3
    decided = module._binarize_scores(module.make_annotations(mlc.Predictions(scores)))
    assert decided.mean() == pytest.approx(scores.mean(), abs=0.001)
    assert scores[0][decided].min() > scores[0][~decided].max()


def test_silence_is_not_judged():
    """Labels that a held-out rater never speaks about may have any score."""
    votes, _ = raters(m=4)
    panel = votes.astype(float)
    panel[:, :, :3] = np.nan
    panel[:, ::2, 4] = np.nan

    class Mad(mlc.MajorityVote):
        def transform(self, predictions, dtype=np.float64):
            scores = super().transform(predictions, dtype)
            scores[:, :3] = 7
            return np.where(np.isnan(predictions.to_array()).all(axis=0), 9.0, scores)

    comparison = mlc.compare_on_held_out_models(panel, methods={"mad": Mad()})
    for metric in METRICS:
        assert comparison.gains["mad"][metric].value == pytest.approx(0, abs=1e-12)


def test_the_order_of_models_does_not_matter():
    panel, _ = mlc.datasets.make_panel(
        300, 6, 7, missing=0.2, probabilities=True, random_state=0
    )
    votes = panel.to_array()
    close(
        mlc.compare_on_held_out_models(votes),
        mlc.compare_on_held_out_models(votes[[3, 0, 6, 1, 5, 2, 4]]),
    )


def test_the_cost_does_not_grow_with_the_instances():
    fitted = []

    class Counting(mlc.MajorityVote):
        def fit(self, predictions, y=None):
            fitted.append(len(predictions))
            return super().fit(predictions)

        def transform(self, predictions, dtype=np.float64):
            fitted.append(len(predictions))
            return super().transform(predictions, dtype)

    votes, _ = raters(n=30_000, l=3, m=4)
    mlc.compare_on_held_out_models(votes, methods={"counting": Counting()})
    assert sorted(fitted) == [600] * 4 + [2000] * 4  # applied to, fitted to


def test_hundreds_of_models_with_few_instances_each():
    votes, _ = raters(n=1500, l=4, m=200)
    panel = np.where(
        np.random.default_rng(0).random((200, 1500, 1)) < 0.02, votes, np.nan
    )
    comparison = mlc.compare_on_held_out_models(panel, methods=["mlcm-a"])
    assert (comparison.n_families, comparison.n_folds) == (200, 5)
    assert comparison.recommended is not None
    assert all(
        np.isfinite(list(gain.to_dict().values())).all()
        for gain in comparison.gains["MLCM-a"].values()
    )


def test_other_metrics_and_methods_are_refused():
    votes, _ = raters(n=20, m=3)
    with pytest.raises(
        mlc.InputError, match="optimize: found 'f1', expected auto, micro_auc"
    ):
        mlc.compare_on_held_out_models(votes, "f1")
    with pytest.raises(mlc.InputError, match="method: found 'nope'"):
        mlc.compare_on_held_out_models(votes, methods=["nope"])


def test_the_table():
    votes, _ = raters()
    comparison = mlc.compare_on_held_out_models(votes, methods=["mv", "ds", "mlcm-a"])
    lines = str(comparison).splitlines()
    assert lines[0].split() == [
        "method",
        "microAUC",
        "one-error",
        "ranking",
        "loss",
        "LRAP",
        "mean",
    ]
    assert [line.split()[0] for line in lines[1:3]] == ["DS", "MLCM-a"]
    assert lines[-1] == comparison.sentence


def test_known_answers_are_the_best_rater_there_is():
    """Gold labels show that all models but one have common errors."""
    votes, truth = raters(n=500, m=5, seed=3)
    lie = raters(n=500, m=5, seed=4)[1]  # what all raters but one mean
    votes[1:] = raters(n=500, m=4, seed=5)[0] & lie | (votes[1:] & ~truth)
    gold = np.where(np.arange(500)[:, None] % 2 == 0, truth, np.nan)
    of_first = {"first": OfFirst()}
    without, comparison = (
        mlc.compare_on_held_out_models(panel, methods=of_first)
        for panel in (votes, mlc.Predictions(votes).with_gold(gold))
    )
    assert (
        comparison.gains["first"]["mean"].value
        > without.gains["first"]["mean"].value + 0.1
    )


def test_known_answers_judge_and_are_not_fitted_with():
    votes, truth = raters(n=300)
    panel = mlc.Predictions(votes)
    fitted = []

    class Watched(mlc.MajorityVote):
        def fit(self, X, y=None):
            fitted.append(X.gold)
            return super().fit(X, y)

    comparison = mlc.compare_on_held_out_models(
        panel.with_gold(truth.astype(float)), methods={"vote": Watched()}
    )
    assert fitted == [None] * comparison.n_folds
    assert comparison.gains["vote"]["mean"].value == 0


def test_three_families_are_too_few_for_a_recommendation():
    """The two families that remain do not show which one is reliable."""
    rng = np.random.default_rng(1)
    votes, truth = raters(m=3, hit=(0.7, 0.9), alarm=(0.01, 0.05))
    again, _ = raters(m=3, hit=(0.7, 0.9), alarm=(0.01, 0.05))
    is_new = rng.random((3, *truth.shape)) < 0.1
    related = np.where(is_new, again, votes[:1])
    comparison = mlc.compare_on_held_out_models(np.concatenate([votes[1:], related]))
    assert comparison.n_families == 3
    assert comparison.gains
    assert comparison.recommended is None
    assert comparison.sentence.startswith("No recommendation: 5 models in 3 families")


def test_a_gain_that_one_family_decides_is_not_a_recommendation():
    values = np.zeros((4, 3, 4, 21))
    values[:, 1] = np.array([0.5, -0.01, -0.01, -0.01])[:, None, None]
    values[:, 2] = 0.1
    weights = np.ones((4, 4, 21))
    names = ["by one", "by all"]
    stable = module._find_stable_methods(values, weights, names, "mean")
    gains = module._estimate_gains(values, weights, names, reference=0)
    assert gains["by one"]["mean"].low > gains["by all"]["mean"].value
    assert stable == {"by all"}
    assert module._choose_method(gains, "mean", stable) == "by all"
    assert module._choose_method(gains, "mean", set()) is None
