"""Methods that learn from known answers, against their equations written out with loops."""

import numpy as np
import pytest

import mlconsensus as mlc
import oracle
from mlconsensus.combiners import mlcm_a
from mlconsensus.combiners._old_default import learning
from mlconsensus.execution.statistics import merge_statistics
from panels import NAN

EVERY = [kind() for kind in mlc.COMBINERS.values()]
in_one_round = pytest.mark.parametrize(
    "combiner", [each for each in EVERY if not each.rounds], ids=repr
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
    gold_labels = np.full((9, 4), NAN)
    gold_labels[1] = [1, 0, 0, 1]
    gold_labels[5] = [0, 0, 1, 0]
    gold_labels[7] = [NAN, 1, NAN, 0]
    return gold_labels


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
    """Held to their answers, few instances would be where all walks end, and labels rare among them would lose."""
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
        combiner.fit_transform(predictions)[25:]
        for predictions in (panel, panel.with_gold(gold))
    )
    before, after = (
        mlc.metrics.evaluate(truth[25:], scores) for scores in (without, result)
    )
    for metric in ("micro_auc", "average_precision"):
        assert after[metric] > before[metric] - 0.005


@pytest.mark.parametrize("method", ["mlcm_r", "bgcm"])
def test_clusters_pass_on_what_is_known(scores, gold, method):
    """The first cluster of "b" is met by known instances and by one that no model knows."""
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
    gold_labels = np.where(np.arange(60)[:, None] < 25, truth, NAN)
    gold_labels[30, 0] = 1  # of an instance that is not known whole
    result = mlc.MLCMa().fit_transform(mlc.Predictions(scores).with_gold(gold_labels))
    expected = oracle.mlcm_a_with_gold(scores, gold_labels, mlcm_a._TAUS, mlcm_a._NOISE)
    close(result[31:], expected[31:])
    assert abs(result[31:] - mlc.mlcm_a(scores)[31:]).max() > 0.01


def test_the_correction_is_the_equation_written_out():
    rng = np.random.default_rng(2)
    starts = rng.normal(size=(12, 3))
    inputs = rng.normal(size=(2, 12, 3))
    answers = (rng.random((12, 3)) < 0.4).astype(float)
    answers[3, 1] = answers[5] = NAN
    result = learning._fitted(starts, inputs, answers, np.ones(2, dtype=bool))
    close(
        result,
        oracle.learned(starts, inputs, answers, learning._ROUNDS, learning._SPREAD),
    )
    alone = learning._fitted(starts, inputs, answers, np.zeros(2, dtype=bool))
    close(
        alone[:2],
        oracle.learned(starts, inputs[:0], answers, learning._ROUNDS, learning._SPREAD),
    )
    assert not alone[2:].any()


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
    has_gold = ~np.isnan(gold)
    np.testing.assert_array_equal(
        combiner.fit_transform(held)[has_gold], gold[has_gold]
    )
    np.testing.assert_array_equal(combiner.predict(held)[has_gold], gold[has_gold])
    without = combiner.fit(held.with_gold(None)).transform(panel)
    np.testing.assert_array_equal(without, combiner.fit_transform(panel))


@every_combiner
def test_more_models_than_gold_and_gold_without_a_model_do_no_harm(combiner):
    rng = np.random.default_rng(0)
    scores = (rng.random((12, 30, 3)) < 0.3).astype(float)
    scores[:, 2] = NAN
    gold_labels = np.full((30, 3), NAN)
    gold_labels[2], gold_labels[3] = [1, 0, 0], [0, 0, 0]
    assert np.isfinite(
        combiner.fit_transform(mlc.Predictions(scores).with_gold(gold_labels))
    ).all()


def biased_panel():
    """One model is right, the others agree on something else: agreement alone trusts the wrong ones."""
    rng = np.random.default_rng(4)
    truth = rng.random((400, 6)) < 0.3
    other = rng.random((400, 6)) < 0.3
    noise = rng.random((5, 400, 6)) < 0.1
    scores = np.stack([truth, other, other, other, other]) ^ noise
    return mlc.Predictions(scores), truth


def test_the_default_learns_whom_to_believe():
    panel, truth = biased_panel()
    gold_labels = np.where(np.arange(400)[:, None] < 100, truth, NAN)
    without = mlc.combine(panel)
    result = mlc.combine(panel, gold=gold_labels)
    assert mlc.metrics.micro_auc(truth[100:], without.scores[100:]) < 0.8
    assert mlc.metrics.micro_auc(truth[100:], result.scores[100:]) > 0.9
    assert "known answers correct it" in result.reason


def test_answers_that_teach_nothing_leave_the_default_as_it_is():
    panel, _ = mlc.datasets.make_panel(n_instances=300, random_state=0)
    noise = np.where(
        np.arange(300)[:, None] < 40,
        np.random.default_rng(0).random((300, 20)) < 0.1,
        NAN,
    )
    without = mlc.combine(panel)
    result = mlc.combine(panel, gold=noise)
    np.testing.assert_array_equal(result.scores[40:], without.scores[40:])
    assert "known answers show nothing that would be better" in result.reason


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
    close(model.teach(held).transform(panel), expected, 0)
    close(
        model.teach(held).transform(panel), expected, 0
    )  # anew, not on top of what was learned
    with pytest.raises(
        mlc.InputError, match="found no known answer, expected a panel with gold"
    ):
        model.teach(panel)
    with pytest.raises(
        mlc.InputError,
        match="found MLCM-r, whose sums hold what known answers tell, expected WeightedConsensus",
    ):
        mlc.MLCMr().fit(held).teach(held)


def test_dask_finds_what_memory_finds():
    da = pytest.importorskip("dask.array")
    panel, truth = biased_panel()
    gold_labels = np.where(np.arange(400)[:, None] < 100, truth, NAN)
    arrays = [
        da.from_array(part, chunks=(70, -1)) for part in panel.to_array().astype(bool)
    ]
    for kind in (mlc.WeightedConsensus, mlc.MLCMr, mlc.DawidSkene):
        there = mlc.from_dask(arrays).with_gold(gold_labels)
        close(
            kind().fit(there).transform(there).compute(),
            kind().fit_transform(panel.with_gold(gold_labels)),
        )
