import numpy as np
import pandas as pd
import pytest

import mlconsensus as mlc
from mlconsensus.decision.expected_f1 import estimate_total_labels
from mlconsensus.io import read_table

PANEL, TRUTH = mlc.datasets.make_panel(60, 6, 3, random_state=0)


def test_the_default_is_weighted_consensus():
    result = mlc.combine(PANEL)
    assert result.method == "weighted_consensus"
    assert "reliability" in result.reason
    np.testing.assert_allclose(
        result.scores, mlc.WeightedConsensus().fit_transform(PANEL)
    )
    np.testing.assert_array_equal(
        result.label_indicator,
        mlc.decision.match_total(result.scores, estimate_total_labels(PANEL)),
    )
    assert result.evaluate(TRUTH) == mlc.metrics.evaluate(
        TRUTH, result.scores, result.label_indicator
    )


def test_a_method_may_be_asked_for():
    assert mlc.combine(PANEL, method="bgcm").method == "bgcm"
    result = mlc.combine(PANEL, method=mlc.MLCMr(alpha=0.5))
    assert result.method == "mlcm_r"
    np.testing.assert_allclose(result.scores, mlc.mlcm_r(PANEL, alpha=0.5))


@pytest.mark.parametrize("share_missing", [0.0, 0.3])
@pytest.mark.parametrize("method", mlc.COMBINERS)
def test_predict_returns_the_label_sets_of_combine(method, share_missing):
    predictions, _ = mlc.datasets.make_panel(
        200, 8, 4, missing=share_missing, random_state=3
    )
    consensus = mlc.combine(predictions, method=method)
    combiner = mlc.COMBINERS[method]().fit(predictions)
    np.testing.assert_array_equal(
        combiner.predict(predictions), consensus.label_indicator
    )

    # New instances too: as if the fitted combiner had been applied to them.
    new = predictions[:50]
    expected = combiner.choose_label_sets(combiner.transform(new), new)
    np.testing.assert_array_equal(combiner.predict(new), expected)


def test_predict_with_stated_families():
    predictions, _ = mlc.datasets.make_panel(200, 8, 4, random_state=3)
    families = {"model_0": "a", "model_1": "a"}
    consensus = mlc.combine(predictions, families=families)
    combiner = mlc.WeightedConsensus(families=families).fit(predictions)
    np.testing.assert_array_equal(
        combiner.predict(predictions), consensus.label_indicator
    )


def test_misspelt_names():
    with pytest.raises(
        mlc.InputError,
        match="method: found 'mlcmr', expected one of .*did you mean 'mlcm_r'",
    ):
        mlc.combine(PANEL, method="mlcmr")


def test_label_sets_by_name_in_order_of_score():
    result = mlc.combine(
        mlc.Predictions([[[0, 1, 1]], [[0, 1, 0]]], labels=["a", "b", "c"]), method="mv"
    )
    assert result.label_sets() == [("b", "c")]


@pytest.mark.parametrize(
    "name", ["scores.csv", "scores.parquet", "scores.jsonl.gz", "scores.npz"]
)
def test_a_consensus_is_saved_and_read_again(tmp_path, name):
    result = mlc.combine(PANEL)
    result.save(tmp_path / name)
    table = read_table(tmp_path / name)
    if hasattr(table.scores, "toarray"):
        scores = table.scores.toarray()
    else:
        scores = table.scores
    np.testing.assert_array_equal(scores, result.scores)
    with pytest.raises(mlc.InputError, match="found an existing file"):
        result.save(tmp_path / name)
    result.save(tmp_path / name, force=True)


def test_a_frame_of_truth_is_matched_by_name():
    panel = mlc.Predictions(PANEL.to_array(), instances=[f"i{k}" for k in range(60)])
    result = mlc.combine(panel)
    truth = pd.DataFrame(TRUTH, index=panel.instances.tolist(), columns=panel.labels)
    straight = result.evaluate(TRUTH)
    assert result.evaluate(truth.iloc[::-1, ::-1]) == pytest.approx(straight)
    assert mlc.metrics.ranking_loss(truth, truth.iloc[::-1]) == 0
    with pytest.raises(
        mlc.InputError, match="found other instances than the truth has"
    ):
        mlc.metrics.ranking_loss(truth, truth.iloc[1:])
    assert repr(result) == "<Consensus: 60 instances × 6 labels by weighted_consensus>"
    assert (
        repr(mlc.combine([[[1]]], method="mv"))
        == "<Consensus: 1 instance × 1 label by majority_vote>"
    )


@pytest.mark.parametrize("method", [mlc.MLCMa, mlc.mlcm_a, 3, ["mv"]])
def test_what_is_no_method_is_refused(method):
    with pytest.raises(mlc.InputError, match="^method: found "):
        mlc.combine(PANEL, method=method)
    with pytest.raises(mlc.InputError, match="^combiner: found "):
        mlc.explain(method, PANEL, 0, "label_0")


@pytest.mark.parametrize(
    "use",
    [
        mlc.combine,
        mlc.rescale,
        mlc.compare_on_held_out_models,
        mlc.MLCMr().partial_fit,
        mlc.weighted_consensus,
    ],
)
def test_a_panel_without_instances_is_refused(use):
    with pytest.raises(
        mlc.InputError, match="^predictions: found no instance, expected at least one"
    ):
        use(PANEL[:0])
