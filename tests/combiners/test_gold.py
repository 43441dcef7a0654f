"""Methods that learn from gold labels, and their equations with loops."""

import numpy as np
import pytest

import mlconsensus as mlc
import oracle
from mlconsensus.combiners import mlcm_a
from mlconsensus.execution.statistics import merge_statistics
from panels import NAN

EVERY = [kind() for kind in mlc.COMBINERS.values()]
in_one_round = pytest.mark.parametrize(
    "combiner", [each for each in EVERY if not each.passes], ids=repr
)
every_combiner = pytest.mark.parametrize("combiner", EVERY, ids=repr)


def close(one, other, within=1e-9):
    np.testing.assert_allclose(one, other, rtol=0, atol=within)


@pytest.fixture
def scores():
    rng = np.random.default_rng(1)
    scores = np.round(rng.random((3, 9, 4)), 2)
    scores[0, 4] = scores[1, 2, 1] = NAN
    return scores


@pytest.fixture
def gold():
    known = np.full((9, 4), NAN)
    known[1] = [1, 0, 0, 1]
    known[5] = [0, 0, 1, 0]
    known[7] = [NAN, 1, NAN, 0]
    return known


LOUD = 1.0  # γ: half of α, which is 2


def others(gold):
    return np.isnan(gold).all(axis=1)


def test_known_labels_are_sources_of_the_walk(scores, gold):
    result = mlc.MLCMr().fit_transform(mlc.Predictions(scores).with_gold(gold))
    close(
        result[others(gold)], oracle.mlcm_r_with_gold(scores, gold, LOUD)[others(gold)]
    )


def test_known_answers_are_sources_of_bgcm(scores, gold):
    result = mlc.BGCM().fit_transform(mlc.Predictions(scores).with_gold(gold))
    close(result[others(gold)], oracle.bgcm_with_gold(scores, gold, LOUD)[others(gold)])


def test_no_label_gains_on_the_whole_by_being_frequent_among_known_instances(
    scores, gold
):
    """A few gold instances do not attract all walks, nor lower rare labels."""
    panel = mlc.Predictions(scores).with_gold(gold)
    close(mlc.MLCMr().fit(panel).solution_.groups.sum(axis=0), 3)
    result = mlc.BGCM().fit(panel).solution_
    close((result.yes + result.no).sum(axis=0), 3)


@pytest.mark.parametrize(
    "combiner", [mlc.MLCMr(), mlc.MLCMr(restart=0.4), mlc.BGCM(), mlc.MLCMa()], ids=repr
)
def test_a_few_known_instances_do_no_harm(combiner):
    panel, truth = mlc.datasets.make_panel(n_instances=400, n_labels=12, random_state=1)
    gold = np.where(np.arange(400)[:, None] < 25, truth, NAN)
    without, result = (
        combiner.fit_transform(each)[25:] for each in (panel, panel.with_gold(gold))
    )
    before, after = (
        mlc.metrics.evaluate(truth[25:], scores) for scores in (without, result)
    )
    for metric in ("micro_auc", "average_precision"):
        assert after[metric] > before[metric] - 0.005


@pytest.mark.parametrize("method", ["mlcm_r", "bgcm"])
def test_clusters_pass_on_what_is_known(scores, gold, method):
    """The first cluster of "b" has gold instances, one of them without models."""
    scores[:, 8] = NAN
    inside = {
        "a": [0, 0, 1, 1, 1, 0, 1, 0, 1],
        "b": [None, "x", None, None, None, "x", None, None, "x"],
    }
    clusters = np.array(
        [[a == 0, a == 1, b == "x"] for a, b in zip(*inside.values(), strict=True)],
        dtype=float,
    )
    panel = mlc.Predictions(scores).with_clusterings(inside).with_gold(gold)
    result = getattr(mlc, method)(panel)
    expected = getattr(oracle, f"{method}_with_gold")(
        scores, gold, LOUD, clusters=clusters
    )
    close(result[others(gold)], expected[others(gold)])


def test_a_restarting_walk_stays_one_over_distributions(scores, gold):
    result = (
        mlc.MLCMr(restart=0.4)
        .fit(mlc.Predictions(scores).with_gold(gold))
        .solution_.groups
    )
    close(result.sum(axis=1), 1)


@pytest.mark.parametrize(
    "combiner", [mlc.MLCMr(), mlc.MLCMr(restart=0.4), mlc.BGCM()], ids=repr
)
def test_beside_known_answers_a_weight_counts_as_copies(combiner, scores, gold):
    thrice = mlc.Predictions(scores[[0, 1, 1, 1, 2]]).with_gold(gold)
    weighted = combiner.set_params(weights=[1, 3, 1]).fit_transform(
        mlc.Predictions(scores).with_gold(gold)
    )
    close(weighted, combiner.set_params(weights=None).fit_transform(thrice))


def test_dawid_skene_keeps_known_answers(scores, gold):
    scores[:, 7, 1] = NAN  # known, and nobody spoke of it
    result = mlc.DawidSkene().fit_transform(mlc.Predictions(scores).with_gold(gold))
    close(result, oracle.dawid_skene(scores, gold=gold))


@pytest.mark.parametrize(
    "taus", [None, np.geomspace(1e4, 0.01, 500)], ids=["its own", "closer ones"]
)
def test_mlcm_a_fits_known_instances_and_is_drawn_to_its_filter(taus, monkeypatch):
    if (
        taus is not None
    ):  # of which another is best where the evidence is but a little different
        monkeypatch.setattr(mlcm_a, "_TAUS", tuple(taus))
    rng = np.random.default_rng(0)
    truth = rng.random((60, 4)) < [0.5, 0.3, 0.4, 0.2]
    scores = (truth ^ (rng.random((3, 60, 4)) < 0.2)) * [1, 1, 0.5, 1]
    known = np.where(np.arange(60)[:, None] < 25, truth, NAN)
    known[30, 0] = 1  # of an instance that is not known whole
    result = mlc.MLCMa().fit_transform(mlc.Predictions(scores).with_gold(known))
    expected = oracle.mlcm_a_with_gold(scores, known, mlcm_a._TAUS, mlcm_a._NOISE)
    close(result[31:], expected[31:])
    assert abs(result[31:] - mlc.mlcm_a(scores)[31:]).max() > 0.01


@in_one_round
def test_sums_of_parts_are_those_of_the_whole(combiner, scores, gold):
    panel = mlc.Predictions(scores).with_gold(gold)
    parts = merge_statistics(
        *(type(combiner)().fit(part).statistics_ for part in (panel[:6], panel[6:]))
    )
    sums = {"models": panel.models, "labels": panel.labels, "n_instances": 9}
    close(
        type(combiner).from_statistics(parts, **sums).transform(panel),
        combiner.fit_transform(panel),
    )


@every_combiner
def test_known_answers_stand_and_without_them_nothing_changes(combiner, scores, gold):
    panel = mlc.Predictions(scores)
    held = panel.with_gold(gold)
    known = ~np.isnan(gold)
    np.testing.assert_array_equal(combiner.fit_transform(held)[known], gold[known])
    np.testing.assert_array_equal(combiner.predict(held)[known], gold[known])
    without = combiner.fit(held.with_gold(None)).transform(panel)
    np.testing.assert_array_equal(without, combiner.fit_transform(panel))


@every_combiner
def test_more_models_than_gold_and_gold_without_a_model_do_no_harm(combiner):
    rng = np.random.default_rng(0)
    scores = (rng.random((12, 30, 3)) < 0.3).astype(float)
    scores[:, 2] = NAN
    known = np.full((30, 3), NAN)
    known[2], known[3] = [1, 0, 0], [0, 0, 0]
    assert np.isfinite(
        combiner.fit_transform(mlc.Predictions(scores).with_gold(known))
    ).all()


def biased_panel():
    """One model is right, and the others agree on something else."""
    rng = np.random.default_rng(4)
    truth = rng.random((400, 6)) < 0.3
    other = rng.random((400, 6)) < 0.3
    noise = rng.random((5, 400, 6)) < 0.1
    scores = np.stack([truth, other, other, other, other]) ^ noise
    return mlc.Predictions(scores), truth


def test_the_default_learns_whom_to_believe():
    panel, truth = biased_panel()
    known = np.where(np.arange(400)[:, None] < 100, truth, NAN)
    without = mlc.combine(panel)
    result = mlc.combine(panel, gold=known)
    assert mlc.metrics.micro_auc(truth[100:], without.scores[100:]) < 0.8
    assert mlc.metrics.micro_auc(truth[100:], result.scores[100:]) > 0.9
    assert "gold labels: model_0 counts more" in result.reason


def test_answers_that_teach_nothing_leave_the_default_as_it_is():
    panel, _ = mlc.datasets.make_panel(n_instances=300, random_state=0)
    few = np.full((300, 20), NAN)
    few[0, :3] = [1, 0, 0]
    without = mlc.combine(panel)
    result = mlc.combine(panel, gold=few)
    np.testing.assert_array_equal(result.scores[1:], without.scores[1:])
    assert "gold labels did not change the scores" in result.reason


def test_a_corrected_score_is_explained_to_the_last_bit():
    panel, truth = biased_panel()
    result = mlc.combine(
        panel, gold=np.where(np.arange(400)[:, None] < 100, truth, NAN)
    )
    for cell in ((200, 1), (301, 5)):
        why = result.explain(*cell)
        assert why.scale == "log-odds"
        total = why.baseline + why.contributions.sum() + why.remainder
        close(1 / (1 + np.exp(-total)), result.scores[cell])


def test_a_corrected_model_survives_its_file(tmp_path):
    panel, truth = biased_panel()
    result = mlc.combine(
        panel, gold=np.where(np.arange(400)[:, None] < 100, truth, NAN)
    )
    mlc.save(result.combiner, tmp_path / "a.model")
    close(
        mlc.load(tmp_path / "a.model").transform(panel),
        result.combiner.transform(panel),
        0,
    )


def test_a_solved_model_can_be_taught_where_the_answers_are(tmp_path):
    panel, truth = biased_panel()
    held = panel.with_gold(np.where(np.arange(400)[:, None] < 100, truth, NAN))
    mlc.save(mlc.WeightedConsensus().fit(panel), tmp_path / "a.model")
    model = mlc.load(tmp_path / "a.model")
    expected = mlc.WeightedConsensus().fit(held).transform(panel)
    assert np.abs(model.transform(panel) - expected).max() > 0.1
    close(model.fit_gold(held).transform(panel), expected, 0)
    close(
        model.fit_gold(held).transform(panel), expected, 0
    )  # anew, not on top of what was learned
    with pytest.raises(
        mlc.InputError, match="found no gold label, expected gold labels"
    ):
        model.fit_gold(panel)
    with pytest.raises(
        mlc.InputError,
        match="found mlcm_r, whose statistics contain the gold labels",
    ):
        mlc.MLCMr().fit(held).fit_gold(held)


def test_dask_finds_what_memory_finds():
    da = pytest.importorskip("dask.array")
    panel, truth = biased_panel()
    known = np.where(np.arange(400)[:, None] < 100, truth, NAN)
    arrays = [
        da.from_array(part, chunks=(70, -1)) for part in panel.to_array().astype(bool)
    ]
    for kind in (mlc.WeightedConsensus, mlc.MLCMr, mlc.DawidSkene):
        there = mlc.from_dask(arrays).with_gold(known)
        close(
            kind().fit(there).transform(there).compute(),
            kind().fit_transform(panel.with_gold(known)),
        )
