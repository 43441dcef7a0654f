"""Files of statistics and models: round trips, merges, and mismatches."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier
from states import PANEL, combiner_named, every_method, saved

import mlconsensus as mlc
from mlconsensus.execution.statistics import merge_statistics
from mlconsensus.federated.statistics_files import read_state
from panels import DEGENERATE, panels


def close(one, other):
    """Equal but for the order of additions, which hangs on how arrays lie in memory."""
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


@every_method
@settings(max_examples=15)
@given(scores=panels(), cut=st.integers(0, 9))
def test_sites_give_what_pooled_data_give(name, scores, cut, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sites")
    panel = mlc.Predictions(scores)
    parts = [part for part in (panel[:cut], panel[cut:]) if len(part)]
    site = combiner_named(name)
    state = None
    for _ in range(len(site.passes) + 1):
        for position, part in enumerate(parts):
            if position:
                turned = part.select(models=part.models[::-1], labels=part.labels[::-1])
            else:
                turned = part
            if state is None:
                site = combiner_named(name)
            else:
                site = mlc.load(folder / "all.model")
            mlc.save_statistics(
                site.fit_pass(turned, state), folder / f"{position}.stats", force=True
            )
        sites = [
            mlc.load(folder / f"{position}.stats") for position in range(len(parts))
        ]
        sites[0].parts_ = ()  # of so few instances, two sites may say the same
        together = mlc.merge(sites)
        mlc.save(together, folder / "all.model", force=True)
        state = mlc.load(folder / "all.model").state_
    result = mlc.load(folder / "all.model").transform(panel)
    np.testing.assert_allclose(
        result, combiner_named(name).fit_transform(panel), rtol=0, atol=1e-10
    )


@every_method
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_panels_go_through_files(name, case, tmp_path):
    fitted = combiner_named(name).fit(DEGENERATE[case])
    mlc.save_statistics(fitted, tmp_path / "a.stats")
    mlc.save(fitted, tmp_path / "a.model")
    for file in ("a.stats", "a.model"):
        close(
            mlc.load(tmp_path / file).transform(DEGENERATE[case]),
            fitted.transform(DEGENERATE[case]),
        )


@every_method
def test_a_model_is_applied_without_statistics(name, tmp_path):
    panel, _ = mlc.datasets.make_panel(60, 5, 3, missing=0.1, random_state=0)
    fitted = combiner_named(name).fit(panel)
    mlc.save(fitted, tmp_path / "a.model")
    model = mlc.load(tmp_path / "a.model")
    assert not hasattr(model, "statistics_")
    assert (model.models_, model.labels_, model.n_instances_) == (
        fitted.models_,
        fitted.labels_,
        60,
    )
    np.testing.assert_array_equal(model.predict(panel), fitted.predict(panel))
    assert (
        mlc.explain(model, panel, 0, "label_1").score
        == mlc.explain(fitted, panel, 0, "label_1").score
    )
    assert list(model.get_feature_names_out()) == list(panel.labels)
    with pytest.raises(
        mlc.InputError, match="partial_fit: found (a solved model|WeightedConsensus)"
    ):
        model.partial_fit(panel)
    with pytest.raises(
        mlc.InputError, match="found a solved model, which has no statistics"
    ):
        mlc.save_statistics(model, tmp_path / "b.stats")
    mlc.save(model, tmp_path / "b.model")
    assert (tmp_path / "b.model").read_bytes() == (tmp_path / "a.model").read_bytes()
    assert model.fit(panel[:30]).n_instances_ == 30


def test_statistics_from_a_file_can_be_added_to(stats):
    panel, _ = mlc.datasets.make_panel(100, 4, 3, random_state=1)
    more = mlc.load(stats).partial_fit(panel)
    assert more.n_instances_ == 140


def test_statistics_sent_some_other_way():
    panel, _ = mlc.datasets.make_panel(100, 4, 3, random_state=0)
    one, other = (
        mlc.MLCMr(alpha=0.5).fit(part).statistics_ for part in (panel[:30], panel[30:])
    )
    pooled = mlc.MLCMr.from_statistics(
        merge_statistics(one, other),
        models=panel.models,
        labels=panel.labels,
        n_instances=100,
        alpha=0.5,
    )
    np.testing.assert_allclose(
        pooled.transform(panel), mlc.mlcm_r(panel, alpha=0.5), rtol=0, atol=1e-10
    )


def test_parameters_of_a_model_cannot_change(tmp_path):
    panel, _ = mlc.datasets.make_panel(50, 4, 3, random_state=0)
    mlc.save(mlc.MLCMr().fit(panel), tmp_path / "a.model")
    model = mlc.load(tmp_path / "a.model").set_params(alpha=3.0)
    with pytest.raises(
        mlc.InputError, match="found others than the model was solved for"
    ):
        model.transform(panel)


def test_parameters_and_weights_are_kept(tmp_path):
    panel, _ = mlc.datasets.make_panel(50, 4, 3, random_state=0)
    fitted = mlc.MLCMr(alpha=np.float64(0.5), weights=np.array([1.0, 2.0, 0.5])).fit(
        panel
    )
    mlc.save_statistics(fitted, tmp_path / "a.stats")
    turned = panel.select(models=panel.models[::-1])
    mlc.save_statistics(
        mlc.MLCMr(alpha=0.5, weights=[0.5, 2.0, 1.0]).fit(turned), tmp_path / "b.stats"
    )
    a = mlc.load(tmp_path / "a.stats")
    b = mlc.load(tmp_path / "b.stats")
    assert a.get_params() == {
        "alpha": 0.5,
        "restart": None,
        "weights": {"model_0": 1, "model_1": 2, "model_2": 0.5},
    }
    close(a.transform(panel), fitted.transform(panel))
    b.parts_ = ()  # the same sums, which would be refused
    assert mlc.merge([a, b]).n_instances_ == 100


@pytest.mark.parametrize("kind", [mlc.MLCMr, mlc.BGCM])
def test_clusterings_go_through_files(kind, tmp_path):
    panel, _ = mlc.datasets.make_panel(60, 4, 3, random_state=0)
    panel = panel.with_clusterings(
        {"k-means": [str(position % 5) for position in range(60)]}
    )
    for position, part in enumerate((panel[:20], panel[20:])):
        mlc.save_statistics(kind().fit(part), tmp_path / f"{position}.stats")
    pooled = mlc.merge(
        [mlc.load(tmp_path / f"{position}.stats") for position in range(2)]
    )
    mlc.save(pooled, tmp_path / "all.model")
    result = mlc.load(tmp_path / "all.model").transform(panel)
    np.testing.assert_allclose(result, kind().fit_transform(panel), rtol=0, atol=1e-10)


def test_scales_stay_in_a_model_and_keep_statistics_at_home(tmp_path):
    panel, _ = mlc.datasets.make_panel(60, 4, 3, probabilities=True, random_state=0)
    fitted = mlc.WeightedConsensus().fit(panel)
    mlc.save(fitted, tmp_path / "a.model")
    close(mlc.load(tmp_path / "a.model").transform(panel), fitted.transform(panel))
    with pytest.raises(
        mlc.InputError, match="combiner 1: found sums that follow other rounds"
    ):
        mlc.merge([fitted, mlc.WeightedConsensus().fit(panel[:50])])


def test_the_same_content_gives_the_same_bytes(stats, tmp_path):
    mlc.save_statistics(mlc.load(stats), tmp_path / "again.stats")
    assert stats.read_bytes() == (tmp_path / "again.stats").read_bytes()


def test_the_documented_bytes(stats):
    """What docs/state-files.md says, read without the package."""
    with safe_open(stats, framework="np") as file:
        entry = json.loads(file.metadata()["mlconsensus"])
        arrays = {name: file.get_tensor(name) for name in sorted(file.keys())}
    header = json.loads(entry["header"])
    assert header["version"] == 2
    assert header["kind"] == "statistics"
    assert header["method"] == "mlcm_r"
    assert header["instances"] == 40
    assert header["privacy"] is None
    assert arrays["walk"].shape == (3, 4, 3, 4)
    np.testing.assert_array_equal(arrays["walk"], mlc.load(stats).statistics_.walk)
    digest = hashlib.sha256(entry["header"].encode())
    for name, array in arrays.items():
        digest.update(
            f"{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes()
        )
    assert digest.hexdigest() == entry["sha256"]


def test_a_file_without_a_field_that_came_later_is_read(stats):
    header, arrays = read_state(stats)
    assert "to_clusters" not in arrays
    saved(stats, header | {"a later note": 1}, arrays)
    assert mlc.load(stats).n_instances_ == 40


def test_nothing_is_written_unfitted_or_over_a_file(stats):
    with pytest.raises(NotFittedError):
        mlc.save(mlc.MLCMr(), "x.model")
    with pytest.raises(mlc.InputError, match="found an existing file"):
        mlc.save(mlc.load(stats), stats)
    mlc.save(mlc.load(stats), stats, force=True)
    assert not hasattr(mlc.load(stats), "statistics_")


@pytest.mark.parametrize("save", [mlc.save, mlc.save_statistics])
def test_what_is_no_combiner_is_kept_by_joblib(save, tmp_path):
    classifier = mlc.ConsensusClassifier(
        [("tree", DecisionTreeClassifier()), ("stump", DecisionTreeClassifier())]
    )
    classifier.fit([[0], [1]], [[1, 0], [0, 1]])
    with pytest.raises(
        mlc.InputError,
        match=r"found a ConsensusClassifier, expected a fitted combiner, .*joblib",
    ):
        save(classifier, tmp_path / "a.model")
    save(classifier.combiner_, tmp_path / "a.model")


def test_a_method_of_ones_own_has_no_file(tmp_path):
    class Mine(mlc.MLCMr):
        pass

    with pytest.raises(mlc.InputError, match="method: found mlcm_r"):
        mlc.save(Mine().fit([[[1, 0]]]), tmp_path / "x.model")


# What does not fit together is refused.


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            mlc.MLCMa().fit(PANEL),
            "combiner 1: found method = 'mlcm_a', expected 'mlcm_r' as in combiner 0",
        ),
        (
            mlc.MLCMr(alpha=3.0).fit(PANEL),
            "combiner 1: found alpha = 3.0, expected 2.0 as in combiner 0",
        ),
        (
            mlc.MLCMr(weights=[2, 1]).fit(PANEL),
            "found weights = {'ann': 2.0, 'bob': 1.0}, expected None",
        ),
        (
            mlc.MLCMr().fit(PANEL.with_clusterings({"c": [1, 2, 1]})),
            "combiner 1, clusters: found ['c: 1', 'c: 2'] too many and [] lacking, "
            "expected the clusters of combiner 0",
        ),
    ],
)
def test_statistics_that_do_not_fit_are_refused(other, message):
    with pytest.raises(mlc.InputError) as error:
        mlc.merge([mlc.MLCMr().fit(PANEL), other])
    assert message in str(error.value)


def test_a_label_that_is_spelled_otherwise_is_named():
    other = mlc.Predictions(
        PANEL.to_array(), models=["ann", "bob"], labels=["flu", "colds", "cough"]
    )
    with pytest.warns(
        mlc.InputWarning,
        match="labels that some files do not have: 'cold', 'colds'; their",
    ):
        mlc.merge([mlc.MLCMr().fit(PANEL), mlc.MLCMr().fit(other)])


def test_with_clusterings_or_noise_all_have_the_same_labels():
    clustered = PANEL.with_clusterings({"c": [1, 2, 1]})
    fewer = clustered.select(labels=["flu", "cold"])
    with pytest.raises(
        mlc.InputError, match="with clusterings, all must have the same"
    ):
        mlc.merge([mlc.BGCM().fit(clustered), mlc.BGCM().fit(fewer)])
    private = [
        mlc.privacy.fit(mlc.MLCMa(), item, epsilon=10.0, delta=1e-6)
        for item in (PANEL, PANEL.select(models=["ann"]))
    ]
    with pytest.raises(mlc.InputError, match="with noise, all must have the same"):
        mlc.merge(private)


@pytest.mark.parametrize("value", [None, [3], ["a.stats"]])
def test_what_is_no_combiner_is_not_merged(value):
    for attempt in (
        lambda: mlc.merge(value),
        lambda: mlc.subtract(mlc.MLCMr().fit(PANEL), value),
    ):
        with pytest.raises(mlc.InputError, match="found .*, expected a"):
            attempt()
