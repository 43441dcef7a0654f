"""The parts of explanations sum to the score, and are those of the equations."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse, special
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mlconsensus as mlc
import oracle
from mlconsensus.combiners.registry import BaseCombiner
from mlconsensus.predictions.source import LazyPredictions, prepared
from panels import DEGENERATE, NAN, panels

COMBINERS = [
    *(kind() for kind in mlc.COMBINERS.values()),
    mlc.BGCM(alpha=0.3),
    mlc.MLCMr(restart=0.5),
    mlc.MLCMa(n_iter=0),
    mlc.MLCMa(n_iter=None),
]
every_combiner = pytest.mark.parametrize("combiner", COMBINERS, ids=repr)
LINEAR = [combiner for combiner in COMBINERS if combiner.additive]


def cells(scores):
    """Return all labels of the first two instances and of the last one.

    The panels that are degenerate by one instance have it at the end.
    """
    _, n, l = np.shape(scores)
    rows = sorted({0, min(1, n - 1), n - 1})
    return [(i, label) for i in rows for label in range(l)]


def assert_sums_to(why, score):
    """Check that the parts sum to the score, in arrays, in lists and in JSON."""
    assert why.score == pytest.approx(score, abs=1e-10)
    with np.errstate(over="ignore"):
        if why.scale == "log-odds":
            to_score = special.expit
        else:
            to_score = float
        added = (
            why.baseline
            + why.contributions.sum()
            + sum(why.clusters.values())
            + why.remainder
        )
        assert to_score(added) == pytest.approx(score, abs=1e-10)
        assert to_score(why.total) == pytest.approx(score, abs=1e-10)
        explanation = json.loads(json.dumps(why.to_dict(), allow_nan=False))
        if explanation["baseline"] is not None:
            listed = sum(part["contribution"] for part in explanation["parts"])
            assert to_score(
                explanation["baseline"] + listed + explanation["remainder"]
            ) == pytest.approx(score, abs=1e-10)


def assert_is_consistent(combiner, scores):
    panel = mlc.Predictions(scores)
    fitted = clone(combiner).fit(panel)
    consensus = fitted.transform(panel)
    vote = mlc.majority_vote(panel)
    for i, label in cells(scores):
        why = mlc.explain(fitted, panel, i, label)
        assert_sums_to(why, consensus[i, label])
        assert why.vote == pytest.approx(vote[i, label], abs=1e-12)
        np.testing.assert_array_equal(why.predictions, scores[:, i])
        assert (why.contributions[np.isnan(scores[:, i])] == 0).all()
        if not np.isnan(scores[:, i, label]).all():
            assert sum(part.vote for part in why.parts) == pytest.approx(
                vote[i, label], abs=1e-12
            )


@every_combiner
@settings(max_examples=25)
@given(scores=panels(max_instances=6, max_labels=4))
def test_parts_sum_to_the_score(combiner, scores):
    assert_is_consistent(combiner, scores)


@every_combiner
@pytest.mark.parametrize("name", DEGENERATE)
def test_parts_sum_to_the_score_on_degenerate_panels(combiner, name):
    assert_is_consistent(combiner, DEGENERATE[name])


@every_combiner
@pytest.mark.parametrize(
    "name", ["scores", "a silent model", "an instance without labels"]
)
def test_sparse_and_dense_input_are_explained_alike(combiner, name):
    scores = DEGENERATE[name]
    fitted = clone(combiner).fit(scores)
    as_sparse = mlc.Predictions([sparse.csr_array(matrix) for matrix in scores])
    for label in range(scores.shape[2]):
        one, other = (
            mlc.explain(fitted, panel, scores.shape[1] - 1, label)
            for panel in (scores, as_sparse)
        )
        np.testing.assert_allclose(
            one.contributions, other.contributions, rtol=0, atol=1e-12
        )
        np.testing.assert_array_equal(one.predictions, other.predictions)


@every_combiner
def test_constant_models(combiner):
    scores = DEGENERATE["scores"].copy()
    scores[0], scores[1] = 0.0, 1.0
    assert_is_consistent(combiner, scores)


@every_combiner
def test_new_instances_in_another_order_of_models_and_labels(combiner):
    models = ["x", "y", "z"]
    labels = ["a", "b", "c", "d"]
    fitted = clone(combiner).fit(mlc.Predictions(DEGENERATE["scores"], models, labels))
    new = mlc.Predictions(
        np.random.default_rng(1).random((3, 2, 4)), models, labels, ["new", "newer"]
    )
    straight = mlc.explain(fitted, new, "newer", "c")
    turned = mlc.explain(
        fitted, new.select(["z", "x", "y"], ["d", "c", "b", "a"]), "newer", "c"
    )
    assert_sums_to(straight, fitted.transform(new)[1, 2])
    assert straight.to_dict() == turned.to_dict()


def weighted(combiner, m):
    return clone(combiner).set_params(weights=[2.0, 0.5, 0.0, 1.0][:m])


@pytest.mark.parametrize(
    "combiner", [c for c in COMBINERS if "weights" in c.get_params()], ids=repr
)
@settings(max_examples=15)
@given(scores=panels(max_instances=5, max_labels=3))
def test_weighted_models(combiner, scores):
    assert_is_consistent(weighted(combiner, len(scores)), scores)


@pytest.mark.parametrize(
    "combiner", [mlc.BGCM(), mlc.MLCMr(), mlc.MLCMr(restart=0.5)], ids=repr
)
@pytest.mark.parametrize(
    "name", ["scores", "an instance nobody spoke of", "an instance without labels"]
)
def test_clusters_have_their_part(combiner, name):
    scores = DEGENERATE[name]
    n = scores.shape[1]
    groups = {
        "k-means": [None, *(f"c{i % 2}" for i in range(1, n))],
        "sites": ["here"] * (n - 1) + ["there"],
    }
    panel = mlc.Predictions(scores).with_clusterings(groups)
    fitted = clone(combiner).fit(panel)
    consensus = fitted.transform(panel)
    for i, label in cells(scores):
        why = mlc.explain(fitted, panel, i, label)
        assert_sums_to(why, consensus[i, label])
        assert set(why.clusters) <= {
            f"{name}: {clusters[i]}" for name, clusters in groups.items()
        }
        assert {
            part.model: part.contribution for part in why.parts if part.label == ""
        } == why.clusters
    assert mlc.explain(fitted, panel, n - 1, 0).clusters


@pytest.mark.parametrize("combiner", LINEAR, ids=repr)
def test_another_statement_moves_the_score_by_its_own_contribution_alone(combiner):
    """In additive methods, a prediction changes its own contribution only."""
    scores = DEGENERATE["scores"].copy()
    scores[2, 4, 1] = NAN
    fitted = clone(combiner).fit(scores)
    rng = np.random.default_rng(3)
    for _ in range(30):
        k, i, j, label = (
            int(rng.integers(size)) for size in (*scores.shape, scores.shape[2])
        )
        if np.isnan(scores[k, i, j]):
            continue
        changed = scores.copy()
        changed[k, i, j] = rng.random()
        before, after = (
            mlc.explain(fitted, panel, i, label) for panel in (scores, changed)
        )
        moved = after.contributions - before.contributions
        assert moved[k, j] == pytest.approx(
            (after.total - after.remainder) - (before.total - before.remainder)
        )
        moved[k, j] = 0
        np.testing.assert_allclose(moved, 0, rtol=0, atol=1e-12)
        assert after.baseline == before.baseline


@pytest.mark.parametrize(
    "combiner", [mlc.MajorityVote(), mlc.BGCM(), mlc.DawidSkene()], ids=repr
)
def test_methods_that_go_label_by_label_listen_to_their_own_label_only(combiner):
    scores = DEGENERATE["scores"]
    fitted = combiner.fit(scores)
    why = mlc.explain(fitted, scores, 2, 1)
    assert {part.label for part in why.parts} == {"label_1"}
    silenced = scores.copy()
    silenced[:, 2, [0, 2, 3]] = NAN
    assert fitted.transform(silenced)[2, 1] == pytest.approx(
        fitted.transform(scores)[2, 1], rel=1e-12
    )


def test_a_no_adds_nothing_to_a_walk():
    scores = DEGENERATE["one model"]
    fitted = mlc.MLCMr().fit(scores)
    assert (
        mlc.explain(fitted, scores, 3, 0).contributions[scores[:, 3] == 0] == 0
    ).all()
    silenced = np.where(scores == 0, NAN, scores)
    np.testing.assert_array_equal(fitted.transform(silenced), fitted.transform(scores))


def literal_mlcm_r(scores, i, label, alpha):
    """Eq. cm_closed_sol_u term by term."""
    m, _, l = scores.shape
    A = np.concatenate([np.nan_to_num(matrix) for matrix in scores], axis=1)
    Q, _ = oracle._walk(A, np.tile(np.eye(l), (m, 1)), alpha, np.zeros(l))
    return [
        [A[i, k * l + j] * Q[k * l + j, label] / A[i].sum() for j in range(l)]
        for k in range(m)
    ]


def literal_bgcm(scores, i, label, alpha):
    """The walk from the yes and the no node of each model."""
    m, _, l = scores.shape
    yes, no = (np.nan_to_num(values[:, :, label].T) for values in (scores, 1 - scores))
    Q, _ = oracle._walk(
        np.concatenate([yes, no], axis=1),
        np.repeat(np.eye(2), m, axis=0),
        alpha,
        np.zeros(2),
    )
    heard = (~np.isnan(scores[:, i, label])).sum()
    return [
        [
            (yes[i, k] * Q[k, 0] + no[i, k] * Q[m + k, 0]) / heard
            if j == label
            else 0.0
            for j in range(l)
        ]
        for k in range(m)
    ]


def literal_mlcm_a(scores, i, label):
    """Eq. averaging_omega for one round, its mean taken apart."""
    m, n, l = scores.shape
    mean = np.nanmean(scores, axis=0)
    voices = (~np.isnan(scores)).sum() / (n * l)
    filter = (
        voices
        * (mean.T @ mean / n)
        @ np.linalg.inv(np.eye(l) + voices * (mean.T @ mean / n))
    )
    heard = (~np.isnan(scores[:, i])).sum(axis=0)
    return [
        [np.nan_to_num(scores[k, i, j]) / heard[j] * filter[j, label] for j in range(l)]
        for k in range(m)
    ]


def literal_majority_vote(scores, i, label):
    m, _, l = scores.shape
    heard = (~np.isnan(scores[:, i, label])).sum()
    return [
        [
            np.nan_to_num(scores[k, i, j]) / heard if j == label else 0.0
            for j in range(l)
        ]
        for k in range(m)
    ]


@pytest.mark.parametrize(
    ("combiner", "literal"),
    [
        (mlc.MajorityVote(), literal_majority_vote),
        (mlc.BGCM(alpha=0.7), lambda *cell: literal_bgcm(*cell, alpha=0.7)),
        (mlc.MLCMr(alpha=0.7), lambda *cell: literal_mlcm_r(*cell, alpha=0.7)),
        (mlc.MLCMa(), literal_mlcm_a),
    ],
    ids=lambda value: repr(value) if isinstance(value, BaseCombiner) else "",
)
def test_parts_are_the_terms_of_the_equations(combiner, literal):
    scores = np.random.default_rng(5).random((3, 9, 4)).round(1)
    scores[0, 2, 1] = scores[1, 4, 3] = scores[2, 4, 3] = NAN
    fitted = combiner.fit(scores)
    for i, label in cells(scores):
        explanation = mlc.explain(fitted, scores, i, label)
        np.testing.assert_allclose(
            explanation.contributions, literal(scores, i, label), rtol=0, atol=1e-10
        )
        assert (explanation.baseline, explanation.remainder, explanation.scale) == (
            0.0,
            0.0,
            "score",
        )


def test_dawid_skene_adds_log_likelihood_ratios():
    rng = np.random.default_rng(2)
    truth = rng.random((200, 1)) < 0.4
    scores = np.array(
        [
            np.where(rng.random((200, 1)) < right, truth, ~truth)
            for right in (0.9, 0.8, 0.7)
        ],
        dtype=float,
    )
    scores[2, 0] = NAN
    fitted = mlc.DawidSkene().fit(scores)
    posterior = fitted.transform(scores)[:, 0]
    why = mlc.explain(fitted, scores, 0, 0)
    assert why.scale == "log-odds"
    is_predicted = ~np.isnan(scores[0, :, 0])
    for k in range(2):
        yes = scores[k, :, 0] == 1
        if yes[0]:
            says = yes
        else:
            says = ~yes
        # At the maximum, rates are those of the posterior; EM stops a little before it.
        ratio = (
            (posterior * says)[is_predicted].sum()
            / posterior.sum()
            / (((1 - posterior) * says).sum() / (1 - posterior).sum())
        )
        assert why.contributions[k, 0] == pytest.approx(np.log(ratio), abs=0.02)
    assert why.contributions[2, 0] == 0
    assert why.baseline == pytest.approx(special.logit(posterior.mean()), abs=0.02)
    assert "log-odds" in why.to_text()


def test_infinite_log_odds():
    scores = DEGENERATE["a label nobody spoke of"]
    why = mlc.explain(mlc.DawidSkene().fit(scores), scores, 0, 4)
    assert (why.score, why.baseline, why.total, why.to_dict()["baseline"]) == (
        0.0,
        -np.inf,
        -np.inf,
        None,
    )
    assert "never true" in why.to_text()
    assert "never true" in why._repr_html_()


def test_the_baseline_is_the_prior_and_the_floor_a_remainder():
    panel, _ = mlc.datasets.make_panel(300, 6, 4, random_state=0)
    fitted = mlc.WeightedConsensus().fit(panel)
    consensus = fitted.transform(panel)
    silent = mlc.Predictions(np.full((4, 1, 6), NAN))
    floored = 0
    for i in range(20):
        for label in range(6):
            why = mlc.explain(fitted, panel, i, label)
            assert why.baseline == pytest.approx(
                fitted.transform(silent)[0, label], abs=1e-12
            )
            assert why.remainder >= 0
            if why.remainder > 0:
                floored += 1
                solution = fitted.solution_
                weight = solution.vote_weight
                vote = weight @ panel.to_array()[:, i, label] / weight.sum()
                voted = solution.vote_share * vote
                assert consensus[i, label] == pytest.approx(voted, abs=1e-6)
                assert "floor at 0" in why.to_text()
    assert floored


def test_what_is_said_about_related_labels_counts():
    panel, _ = mlc.datasets.make_panel(300, 6, 4, random_state=0)
    why = mlc.combine(panel).explain(0, "label_2")
    assert {part.label for part in why.parts} == set(panel.labels)
    sizes = [abs(part.contribution) for part in why.parts]
    assert sizes == sorted(sizes, reverse=True)
    assert all(part.vote == 0 for part in why.parts if part.label != "label_2")
    assert [part.vote for part in why.parts if part.label == "label_2"].count(
        0.25
    ) == panel.to_array()[:, 0, 2].sum()


def test_names_that_are_not_there():
    panel = mlc.Predictions(
        np.ones((1, 2, 2)), labels=["sport", "news"], instances=["a1", "a2"]
    )
    fitted = mlc.MajorityVote().fit(panel)
    with pytest.raises(
        mlc.InputError,
        match="instance: found 'b2', expected one of 2 names, .*did you mean 'a2'",
    ):
        mlc.explain(fitted, panel, "b2", "news")
    with pytest.raises(
        mlc.InputError,
        match="label: found 'nws', expected one of 2 names, .*did you mean 'news'",
    ):
        mlc.explain(fitted, panel, "a1", "nws")
    with pytest.raises(mlc.InputError, match="label: found '1'"):
        mlc.explain(fitted, panel, "a1", 1)
    with pytest.raises(NotFittedError):
        mlc.explain(mlc.MajorityVote(), panel, "a1", "news")


@pytest.mark.parametrize("names", [[7, 11], ["7", "11"]])
def test_instances_are_found_by_number_or_text(names):
    panel = mlc.Predictions([[[1], [0]]], instances=names)
    fitted = mlc.MajorityVote().fit(panel)
    for name in (11, "11", np.int64(11)):
        why = mlc.explain(fitted, panel, name, 0)
        assert (why.instance, why.score) == (names[1], 0.0)
    with pytest.raises(
        mlc.InputError,
        match="instance: found '0', expected one of 2 names, such as '7'",
    ):
        mlc.explain(fitted, panel, 0, 0)


class Elsewhere(LazyPredictions):
    """A panel that only shows a block at a time."""

    def __init__(self, panel):
        super().__init__(panel[:1])
        self.panel = panel

    def __len__(self):
        return len(self.panel)

    has_scores = True
    block_size = 2

    def read(self, start, stop):
        return prepared(self.panel[start:stop], self._steps)


@every_combiner
def test_panels_that_are_not_in_memory(combiner):
    scores = DEGENERATE["an instance nobody spoke of"]
    panel = mlc.Predictions(scores, instances=[f"i{k}" for k in range(9)])
    fitted = clone(combiner).fit(panel)
    for name in ("i3", "i8"):
        straight, elsewhere = (
            mlc.explain(fitted, source, name, 2) for source in (panel, Elsewhere(panel))
        )
        assert straight.to_dict() == elsewhere.to_dict()
    with pytest.raises(
        mlc.InputError,
        match="instance: found 'x7', expected one of 9 names, .*did you mean 'i7'",
    ):
        mlc.explain(fitted, Elsewhere(panel), "x7", 2)
