"""Files of statistics and models: what goes in comes out; what does not fit together, or is broken, is refused."""

import contextlib
import hashlib
import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mlconsensus as mlc
from mlconsensus.combiners.method import merged
from mlconsensus.sites import state_file
from mlconsensus.sites.state_file import read_state, write_state
from panels import DEGENERATE, panels

every_method = pytest.mark.parametrize("name", mlc.COMBINERS)


def combiner_named(name, **parameters):
    """A combiner whose statistics do not hang on other sites' instances."""
    return mlc.COMBINERS[name](**({"rescale": False} if name == "Filter" else {}), **parameters)


def close(one, other):
    """Equal but for the order of additions, which hangs on how arrays lie in memory."""
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def saved(path, header, arrays):
    """Write a file whose checksum is right, whatever is in it."""
    with path.open("wb") as file:
        write_state(file, header, arrays)


def changed(path, **changes):
    """Change entries of a file's header, and put the checksum right."""
    header, arrays = read_state(path)
    saved(path, header | changes, arrays)


@pytest.fixture
def stats(tmp_path):
    panel, _ = mlc.datasets.make_panel(40, 4, 3, random_state=0)
    mlc.save_statistics(mlc.MLCMr().fit(panel), tmp_path / "a.stats")
    return tmp_path / "a.stats"


# What goes in comes out.


@every_method
@settings(max_examples=15)
@given(scores=panels(), cut=st.integers(0, 9))
def test_sites_give_what_pooled_data_give(name, scores, cut, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sites")
    panel = mlc.Predictions(scores)
    parts = [part for part in (panel[:cut], panel[cut:]) if len(part)]
    site, known = combiner_named(name), None
    for _ in range(len(site.rounds) + 1):
        for at, part in enumerate(parts):
            turned = part.select(models=part.models[::-1], labels=part.labels[::-1]) if at else part
            site = combiner_named(name) if known is None else mlc.load(folder / "all.model")
            mlc.save_statistics(site.fit_round(turned, known), folder / f"{at}.stats", force=True)
        together = mlc.merge([mlc.load(folder / f"{at}.stats") for at in range(len(parts))])
        mlc.save(together, folder / "all.model", force=True)
        known = mlc.load(folder / "all.model").prepared_
    found = mlc.load(folder / "all.model").transform(panel)
    np.testing.assert_allclose(found, combiner_named(name).fit_transform(panel), rtol=0, atol=1e-10)


@every_method
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_panels_go_through_files(name, case, tmp_path):
    fitted = combiner_named(name).fit(DEGENERATE[case])
    mlc.save_statistics(fitted, tmp_path / "a.stats")
    mlc.save(fitted, tmp_path / "a.model")
    for file in ("a.stats", "a.model"):
        close(mlc.load(tmp_path / file).transform(DEGENERATE[case]), fitted.transform(DEGENERATE[case]))


@every_method
def test_a_model_is_applied_without_statistics(name, tmp_path):
    panel, _ = mlc.datasets.make_panel(60, 5, 3, missing=0.1, random_state=0)
    fitted = combiner_named(name).fit(panel)
    mlc.save(fitted, tmp_path / "a.model")
    model = mlc.load(tmp_path / "a.model")
    assert not hasattr(model, "statistics_")
    assert (model.models_, model.labels_, model.n_instances_) == (fitted.models_, fitted.labels_, 60)
    np.testing.assert_array_equal(model.predict(panel), fitted.predict(panel))
    assert mlc.explain(model, panel, 0, "label_1").score == mlc.explain(fitted, panel, 0, "label_1").score
    assert list(model.get_feature_names_out()) == list(panel.labels)
    with pytest.raises(mlc.InputError, match="partial_fit: found (a solved model|RaterFilter)"):
        model.partial_fit(panel)
    with pytest.raises(mlc.InputError, match="found a solved model, which has no statistics"):
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
    one, other = (mlc.MLCMr(alpha=0.5).fit(part).statistics_ for part in (panel[:30], panel[30:]))
    whole = mlc.MLCMr.from_statistics(
        merged(one, other), models=panel.models, labels=panel.labels, n_instances=100, alpha=0.5
    )
    np.testing.assert_allclose(whole.transform(panel), mlc.mlcm_r(panel, alpha=0.5), rtol=0, atol=1e-10)


def test_parameters_of_a_model_cannot_change(tmp_path):
    panel, _ = mlc.datasets.make_panel(50, 4, 3, random_state=0)
    mlc.save(mlc.MLCMr().fit(panel), tmp_path / "a.model")
    model = mlc.load(tmp_path / "a.model").set_params(alpha=3.0)
    with pytest.raises(mlc.InputError, match="found others than the model was solved for"):
        model.transform(panel)


def test_parameters_and_weights_are_kept(tmp_path):
    panel, _ = mlc.datasets.make_panel(50, 4, 3, random_state=0)
    fitted = mlc.MLCMr(alpha=np.float64(0.5), weights=np.array([1.0, 2.0, 0.5])).fit(panel)
    mlc.save_statistics(fitted, tmp_path / "a.stats")
    turned = panel.select(models=panel.models[::-1])
    mlc.save_statistics(mlc.MLCMr(alpha=0.5, weights=[0.5, 2.0, 1.0]).fit(turned), tmp_path / "b.stats")
    a, b = mlc.load(tmp_path / "a.stats"), mlc.load(tmp_path / "b.stats")
    assert a.get_params() == {"alpha": 0.5, "restart": None, "weights": {"model_0": 1, "model_1": 2, "model_2": 0.5}}
    close(a.transform(panel), fitted.transform(panel))
    assert mlc.merge([a, b]).n_instances_ == 100


@pytest.mark.parametrize("kind", [mlc.MLCMr, mlc.BGCM])
def test_clusterings_go_through_files(kind, tmp_path):
    panel, _ = mlc.datasets.make_panel(60, 4, 3, random_state=0)
    panel = panel.with_clusterings({"k-means": [str(at % 5) for at in range(60)]})
    for at, part in enumerate((panel[:20], panel[20:])):
        mlc.save_statistics(kind().fit(part), tmp_path / f"{at}.stats")
    whole = mlc.merge([mlc.load(tmp_path / f"{at}.stats") for at in range(2)])
    mlc.save(whole, tmp_path / "all.model")
    found = mlc.load(tmp_path / "all.model").transform(panel)
    np.testing.assert_allclose(found, kind().fit_transform(panel), rtol=0, atol=1e-10)


def test_scales_stay_in_a_model_and_keep_statistics_at_home(tmp_path):
    panel, _ = mlc.datasets.make_panel(60, 4, 3, probabilities=True, random_state=0)
    fitted = mlc.RaterFilter().fit(panel)
    mlc.save(fitted, tmp_path / "a.model")
    close(mlc.load(tmp_path / "a.model").transform(panel), fitted.transform(panel))
    with pytest.raises(mlc.InputError, match="combiner 1: found sums that follow other rounds"):
        mlc.merge([fitted, mlc.RaterFilter().fit(panel[:50])])


def test_the_same_content_gives_the_same_bytes(stats, tmp_path):
    mlc.save_statistics(mlc.load(stats), tmp_path / "again.stats")
    assert stats.read_bytes() == (tmp_path / "again.stats").read_bytes()


def test_the_documented_bytes(stats):
    """What docs/state-files.md says, read without the package."""
    with safe_open(stats, framework="np") as file:
        entry = json.loads(file.metadata()["mlconsensus"])
        arrays = {name: file.get_tensor(name) for name in sorted(file.keys())}
    header = json.loads(entry["header"])
    assert [header[name] for name in ("version", "kind", "method", "instances", "privacy")] == [
        2, "statistics", "MLCM-r", 40, None
    ]  # fmt: skip
    assert arrays["walk"].shape == (3, 4, 3, 4)
    np.testing.assert_array_equal(arrays["walk"], mlc.load(stats).statistics_.walk)
    digest = hashlib.sha256(entry["header"].encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
    assert digest.hexdigest() == entry["sha256"]


def test_a_file_without_a_field_that_came_later_is_read(stats):
    header, arrays = read_state(stats)
    del arrays["to_clusters"], arrays["clusters"]
    saved(stats, header | {"a later note": 1}, arrays)
    assert mlc.load(stats).n_instances_ == 40


def test_nothing_is_written_unfitted_or_over_a_file(stats):
    with pytest.raises(NotFittedError):
        mlc.save(mlc.MLCMr(), "x.model")
    with pytest.raises(mlc.InputError, match="found an existing file"):
        mlc.save(mlc.load(stats), stats)
    mlc.save(mlc.load(stats), stats, force=True)
    assert not hasattr(mlc.load(stats), "statistics_")


def test_a_method_of_ones_own_has_no_file(tmp_path):
    class Mine(mlc.MLCMr):
        pass

    with pytest.raises(mlc.InputError, match="method: found MLCM-r"):
        mlc.save(Mine().fit([[[1, 0]]]), tmp_path / "x.model")


# What does not fit together is refused.

PANEL = mlc.Predictions(np.eye(3)[None].repeat(2, axis=0), models=["ann", "bob"], labels=["flu", "cold", "cough"])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (mlc.MLCMa().fit(PANEL), "combiner 1: found method = 'MLCM-a', expected 'MLCM-r' as in combiner 0"),
        (mlc.MLCMr(alpha=3.0).fit(PANEL), "combiner 1: found alpha = 3.0, expected 2.0 as in combiner 0"),
        (mlc.MLCMr(weights=[2, 1]).fit(PANEL), "found weights = {'ann': 2.0, 'bob': 1.0}, expected None"),
        (
            mlc.MLCMr().fit(PANEL.with_clusterings({"c": [1, 2, 1]})),
            "combiner 1, clusters: found ['c: 1', 'c: 2'] too many and [] lacking, expected the clusters of combiner 0",
        ),
    ],
)
def test_statistics_that_do_not_fit_are_refused(other, message):
    with pytest.raises(mlc.InputError) as error:
        mlc.merge([mlc.MLCMr().fit(PANEL), other])
    assert message in str(error.value)


def test_a_label_that_is_spelled_otherwise_is_named():
    other = mlc.Predictions(PANEL.to_array(), models=["ann", "bob"], labels=["flu", "colds", "cough"])
    with pytest.warns(mlc.InputWarning, match="labels that not all have: 'cold', 'colds'; the others said nothing"):
        mlc.merge([mlc.MLCMr().fit(PANEL), mlc.MLCMr().fit(other)])


def test_with_clusterings_or_noise_all_have_the_same_labels():
    clustered = PANEL.with_clusterings({"c": [1, 2, 1]})
    fewer = clustered.select(labels=["flu", "cold"])
    with pytest.raises(mlc.InputError, match="with clusterings, all must have the same"):
        mlc.merge([mlc.BGCM().fit(clustered), mlc.BGCM().fit(fewer)])
    private = [
        mlc.privacy.fit(mlc.MLCMa(), each, epsilon=1.0, delta=1e-6) for each in (PANEL, PANEL.select(models=["ann"]))
    ]
    with pytest.raises(mlc.InputError, match="with noise, all must have the same"):
        mlc.merge(private)


# Panels that change: other models, other labels, parts that are taken back.


def days(scores, cut):
    """Two days of one panel: on the second a model and a label are gone, and others have come."""
    m, _, l = scores.shape
    panel = mlc.Predictions(scores)
    one = panel[:cut].select(models=panel.models[: m - 1], labels=panel.labels[: l - 1])
    two = panel[cut:].select(models=panel.models[1:][::-1], labels=panel.labels[1:][::-1])
    as_one = scores.astype(float)
    as_one[m - 1, :cut] = as_one[:, :cut, l - 1] = as_one[0, cut:] = as_one[:, cut:, 0] = np.nan
    return one, two, mlc.Predictions(as_one)


def through_rounds(name, parts):
    """Merge parts of a panel, in each round anew; also the parts' own sums of the last round."""
    fitted = [combiner_named(name).fit_round(part) for part in parts]
    with pytest.warns(mlc.InputWarning, match="that not all have"):
        together = mlc.merge(fitted)
    while together.unfinished:
        known = together.next_known()
        same = [part.with_labels(together.labels_).with_models(together.models_) for part in parts]
        fitted = [combiner_named(name).fit_round(part, known) for part in same]
        together = mlc.merge(fitted)
    return together, fitted


@every_method
@settings(max_examples=15)
@given(scores=panels(), cut=st.integers(1, 9))
def test_other_models_and_labels_merge_to_their_union(name, scores, cut):
    scores = np.resize(scores, np.maximum(scores.shape, 3))
    one, two, whole = days(scores, 1 + cut % (scores.shape[1] - 1))
    together, _ = through_rounds(name, [one, two])
    assert set(together.models_) == set(whole.models)
    assert set(together.labels_) == set(whole.labels)
    whole = whole.select(models=together.models_, labels=together.labels_)
    np.testing.assert_allclose(together.transform(whole), combiner_named(name).fit_transform(whole), rtol=0, atol=1e-10)


@every_method
def test_what_was_added_can_be_taken_back(name):
    panel, _ = mlc.datasets.make_panel(300, 6, 4, missing=0.2, random_state=1)
    one, two, whole = days(panel.to_array(), 140)
    together, (_, second) = through_rounds(name, [one, two])
    left = mlc.subtract(together, second)
    alone = one.with_labels(together.labels_).with_models(together.models_)
    assert left.n_instances_ == 140
    fresh = combiner_named(name).fit_round(alone, together.prepared_)
    test = whole.select(models=together.models_, labels=together.labels_)
    np.testing.assert_allclose(left.transform(test), fresh.transform(test), rtol=0, atol=1e-9)


@every_method
def test_a_window_that_slides_for_long_stays_exact(name, tmp_path):
    panel, _ = mlc.datasets.make_panel(600, 5, 4, missing=0.1, random_state=2)
    first = combiner_named(name)
    known = combiner_named(name).fit(panel).prepared_  # of a method that has rounds, what they told is kept
    each = [combiner_named(name).fit_round(panel[at : at + 20], known) for at in range(0, 600, 20)]
    window = mlc.merge(each[:5])
    for gone, come in zip(each, each[5:], strict=False):
        window = mlc.subtract(mlc.merge([window, come]), gone)
    mlc.save_statistics(window, tmp_path / "window.stats")  # no number is below 0, as rounding might make it
    last = panel[500:]
    fresh = combiner_named(name).fit_round(last, known)
    found = mlc.load(tmp_path / "window.stats")
    assert found.n_instances_ == 100
    np.testing.assert_allclose(found.transform(last), fresh.transform(last), rtol=0, atol=1e-9)
    assert first.name == found.name


@every_method
def test_what_was_never_added_cannot_be_taken_back(name):
    panel, _ = mlc.datasets.make_panel(60, 4, 3, random_state=0)
    known = combiner_named(name).fit(panel).prepared_
    total, other = (combiner_named(name).fit_round(part, known) for part in (panel[:40], panel[30:]))
    with pytest.raises(mlc.InputError, match="part: found all that there is, expected less"):
        mlc.subtract(total, total)
    if name in ("DS", "MLCM-r", "MLCM-a", "BGCM"):  # whose sums can tell
        with pytest.raises(mlc.InputError, match="found more than there"):
            mlc.subtract(total, other)
    strange = combiner_named(name).fit(panel.select(labels=panel.labels[:2])[:10])
    with pytest.raises(mlc.InputError):
        mlc.subtract(strange, total)


@pytest.mark.parametrize("name", ["MLCM-a", "Filter"])
def test_sums_of_many_labels_are_not_taken_back(name):
    panel = mlc.Predictions([sparse.eye_array(40, 2100, format="csr")] * 2)
    total = combiner_named(name).fit(panel)
    part = combiner_named(name).fit_round(panel[:20], total.prepared_)
    with pytest.raises(mlc.InputError, match="found that of a panel of many labels, expected one of at most 2,048 to"):
        mlc.subtract(total, part)


def test_noise_is_not_taken_back():
    private = mlc.privacy.fit(mlc.MLCMr(), PANEL, epsilon=1.0, delta=1e-6)
    with pytest.raises(
        mlc.InputError, match="total: found noise, which would not be taken back, expected sums without"
    ):
        mlc.subtract(private, private)


class Counted(str):
    """A name that counts how often names are looked up."""

    looked_up = 0
    __slots__ = ()

    def __hash__(self):
        Counted.looked_up += 1
        return super().__hash__()

    def __eq__(self, other):
        return str(self) == str(other)


def test_names_are_compared_in_a_time_that_grows_with_their_number():
    """Of 2,000 labels each was once looked up in a new set of all, 4,000,000 times a site."""
    l = 2000
    fitted = mlc.MajorityVote().fit(np.ones((2, 2, l), dtype=bool))
    labels = [Counted(at) for at in range(l)]
    sites = [
        mlc.MajorityVote.from_statistics(fitted.statistics_, models="ab", labels=own, n_instances=2)
        for own in (labels, labels[::-1])
    ]
    Counted.looked_up = 0
    assert mlc.merge(sites).n_instances_ == 4
    assert Counted.looked_up < 20 * l


@every_method
def test_files_have_the_weights_that_were_fitted(name, tmp_path):
    fitted = combiner_named(name, weights=[1.0, 2.0]).fit(PANEL).set_params(weights=[5.0, 1.0])
    mlc.save_statistics(fitted, tmp_path / "a.stats")
    mlc.save(fitted, tmp_path / "a.model")
    for file in ("a.stats", "a.model"):
        assert mlc.load(tmp_path / file).weights == {"ann": 1.0, "bob": 2.0}
    assert mlc.merge([fitted, fitted]).weights_.tolist() == [1.0, 2.0]


def test_merging_leaves_the_parts_alone():
    parts = [mlc.MLCMr().fit(PANEL), mlc.MLCMr().fit(PANEL)]
    before = np.array(parts[0].statistics_.walk)
    assert mlc.merge(parts).n_instances_ == 6
    np.testing.assert_array_equal(parts[0].statistics_.walk, before)
    with pytest.raises(mlc.InputError, match="found no statistics"):
        mlc.merge([])
    with pytest.raises(NotFittedError):
        mlc.merge([clone(parts[0])])


# Broken and hostile files are refused in one sentence.


def outer_header(data):
    """What safetensors itself has before the arrays."""
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])


def framed(outer, content):
    text = json.dumps(outer).encode()
    return len(text).to_bytes(8, "little") + text + content


def rewritten(path, change):
    """Change our own header as text, whatever comes of it."""
    data = path.read_bytes()
    outer, start = outer_header(data), 8 + int.from_bytes(data[:8], "little")
    own = json.loads(outer["__metadata__"]["mlconsensus"])
    own["header"] = change(own["header"])
    outer["__metadata__"]["mlconsensus"] = json.dumps(own)
    path.write_bytes(framed(outer, data[start:]))


def entry(data):
    """Our part of the metadata."""
    return outer_header(data)["__metadata__"]["mlconsensus"]


def refused(path):
    with pytest.raises(mlc.InputError) as error:
        mlc.load(path)
    assert str(error.value).startswith(str(path))
    assert "expected" in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("kind", ["stats", "model"])
def test_every_flipped_byte_and_every_cut_is_refused(kind, tmp_path):
    path = tmp_path / f"a.{kind}"
    fitted = mlc.MajorityVote().fit([[[1, 0]]])
    (mlc.save_statistics if kind == "stats" else mlc.save)(fitted, path)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        refused(path)
        path.write_bytes(whole[:at])
        refused(path)
    path.write_bytes(whole + b"x")
    refused(path)


@every_method
@pytest.mark.parametrize("kind", ["stats", "model"])
def test_flipped_bytes_under_a_right_sha256_of_are_refused_or_harmless(name, kind, tmp_path, monkeypatch):
    """As someone would do it who wants to do harm: what is read is refused in one sentence, or gives finite scores."""
    panel, _ = mlc.datasets.make_panel(20, 2, 2, missing=0.1, random_state=0)
    path = tmp_path / f"a.{kind}"
    fitted = combiner_named(name).fit(panel)
    (mlc.save_statistics if kind == "stats" else mlc.save)(fitted, path)
    content = path.read_bytes()
    monkeypatch.setattr(state_file, "_sha256_of", lambda text, arrays: json.loads(entry(content))["sha256"])
    rng = np.random.default_rng(0)
    for at in rng.choice(len(content), 150, replace=False):
        path.write_bytes(content[:at] + bytes([content[at] ^ (1 << rng.integers(8))]) + content[at + 1 :])
        with contextlib.suppress(mlc.InputError):
            read = mlc.load(path)
            mlc.save(read, tmp_path / "solved.model", force=True)
            own = mlc.Predictions(panel.to_array(), read.models_, read.labels_)
            assert np.isfinite(read.transform(own)).all()


def test_other_files_are_refused(tmp_path):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("a pickle was opened",)

    npz = tmp_path / "x.npz"
    np.savez(npz, a=np.array([Trap()], dtype=object), allow_pickle=True)
    for content in (
        b"",
        b"\n",
        b"mlconsensus",
        pickle.dumps(Trap()),
        npz.read_bytes(),
        b"id,a\n1,0\n",
        b"\x1f\x8b",
        b"\xff" * 8 + b"{}",
        (2).to_bytes(8, "little") + b"{}",
    ):
        (tmp_path / "x").write_bytes(content)
        refused(tmp_path / "x")
    refused(tmp_path)
    refused(tmp_path / "not there")


def test_another_version_is_refused_with_what_to_do(stats):
    rewritten(stats, lambda header: header.replace('"version": 2', '"version": 3'))
    assert "found version 3 of the format, expected 2: read it with a newer mlconsensus" in refused(stats)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "pickle"},
        {"kind": None},
        {"method": "MLCM-x"},
        {"method": ["MLCM-r"]},
        {"parameters": None},
        {"parameters": {"alpha": -1}},
        {"parameters": {"alpha": "2"}},
        {"parameters": {"alpha": [2]}},
        {"parameters": {"beta": 1}},
        {"parameters": {"weights": 7}},
        {"parameters": {"weights": [1, 2]}},
        {"parameters": {"weights": {"nobody": 1}}},
        {"parameters": {"weights": ["a", "b", "c"]}},
        {"models": []},
        {"models": ["a", "b"]},
        {"models": ["a", "a", "b"]},
        {"models": "abc"},
        {"models": None},
        {"labels": [1, 2, 3, 4]},
        {"labels": ["a", "b", "c", ""]},
        {"labels": ["a", "b", "c", "d", "e"]},
        {"clusters": None},
        {"instances": None},
        {"instances": 0},
        {"instances": -5},
        {"instances": 1.5},
        {"instances": True},
        {"instances": 10**30},
        {"privacy": {}},
        {"privacy": {"epsilon": 1}},
        {"privacy": "none"},
    ],
    ids=str,
)
def test_headers_that_do_not_make_sense_are_refused(stats, changes):
    changed(stats, **changes)
    assert "\n" not in refused(stats)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        1,
        {},
        {"dtype": "F64", "shape": [10**13], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [2**30, 2**30, 2**30], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1] * 40, "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": ["F64"], "shape": [1], "data_offsets": [0, 8]},
    ],
    ids=str,
)
def test_lists_of_arrays_that_lie_are_refused(stats, entry):
    outer = outer_header(stats.read_bytes())
    for content in (b"", bytes(8), bytes(16)):
        stats.write_bytes(framed({"__metadata__": outer["__metadata__"], "walk": entry}, content))
        assert "\n" not in refused(stats)


@pytest.mark.parametrize("header", ["", "{", "[]", "null", '{"kind": NaN}', "[" * 100_000, "1" * 5000])
def test_headers_that_are_no_json_objects_are_refused(stats, header):
    rewritten(stats, lambda before: header)
    refused(stats)


def walk_of(change):
    def changed_walk(arrays):
        arrays["walk"] = change(arrays["walk"].copy())
        return arrays

    return changed_walk


def put(where, value):
    def change(walk):
        walk[where] = value
        return walk

    return walk_of(change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put((0, 0, 0, 0), np.nan), "walk: found NaN, infinite or impossibly large values"),
        (put((0, 0, 0, 0), np.inf), "walk: found NaN, infinite or impossibly large values"),
        (put((0, 0, 0, 0), -1.0), "walk: found -1, expected no number below 0"),
        (put((0, 0, 1, 1), 99.0), "walk: found a matrix that is not symmetric"),
        (walk_of(lambda walk: walk[:2]), "walk: found the shape (2, 4, 3, 4), expected m × l × m × l"),
        (walk_of(lambda walk: walk.reshape(12, 12)), "walk: found the shape (12, 12)"),
        (walk_of(lambda walk: walk[..., None]), "walk: found the shape (3, 4, 3, 4, 1)"),
        (walk_of(lambda walk: np.float64(5.0)), "walk: found the shape ()"),
        (walk_of(lambda walk: walk.astype(np.uint8)), "walk: found no numbers that fit"),
        (lambda arrays: {"walks": arrays["walk"]}, "found the array 'walks', expected walk"),
        (lambda arrays: {"walk.more": arrays["walk"]}, "walk: found no numbers that fit"),
        (lambda arrays: {}, "found no array 'walk', expected one"),
    ],
)
def test_sums_that_cannot_be_are_refused(stats, change, words):
    header, arrays = read_state(stats)
    saved(stats, header, {name: np.asarray(array) for name, array in change(arrays).items()})
    assert words in refused(stats)


def test_nothing_in_place_of_sums_is_refused(stats):
    """A 0 says that nothing was added up, which can be so only beside the sums that every panel has."""
    header, arrays = read_state(stats)
    saved(stats, header, arrays | {"walk": np.float64(0.0)})
    assert "walk: found the shape (), expected m × l × m × l" in refused(stats)


@pytest.mark.parametrize("value", [-1.0, 7.0])
@pytest.mark.parametrize("name", ["MV", "DS", "BGCM", "MLCM-r", "MLCM-a"])
def test_models_with_numbers_that_no_solution_has_are_refused(name, value, tmp_path):
    panel, _ = mlc.datasets.make_panel(20, 3, 2, random_state=0)
    mlc.save(combiner_named(name).fit(panel), tmp_path / "a.model")
    header, arrays = read_state(tmp_path / "a.model")
    saved(tmp_path / "a.model", header, {field: np.full_like(array, value) for field, array in arrays.items()})
    assert "expected no number" in refused(tmp_path / "a.model")


def test_shares_that_do_not_add_up_to_1_are_refused(tmp_path):
    panel, _ = mlc.datasets.make_panel(20, 3, 2, random_state=0)
    mlc.save(mlc.MLCMr().fit(panel), tmp_path / "a.model")
    header, arrays = read_state(tmp_path / "a.model")
    saved(tmp_path / "a.model", header, arrays | {"groups": arrays["groups"] / 2})
    assert "groups: found shares that do not add up to 1" in refused(tmp_path / "a.model")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows, counts: (rows, -counts), "expected no number below 0"),
        (lambda rows, counts: (rows, counts * np.nan), "found NaN, infinite"),
        (lambda rows, counts: (rows, counts[1:]), "expected patterns of 3 votes"),
        (lambda rows, counts: (rows[:, :-1], counts), "expected patterns of 3 votes"),
        (lambda rows, counts: (rows.astype(float), counts), "expected patterns of 3 votes"),
        (lambda rows, counts: (rows | 64, counts), "expected votes"),
        (lambda rows, counts: (rows * [1, 1, 1, 1, 1, 0], counts), "expected votes"),
    ],
)
def test_patterns_that_cannot_be_are_refused(tmp_path, change, words):
    path = tmp_path / "a.stats"
    panel, _ = mlc.datasets.make_panel(40, 4, 3, random_state=0)
    mlc.save_statistics(mlc.DawidSkene().fit(panel), path)
    header, arrays = read_state(path)
    rows, counts = change(arrays["patterns.rows"], arrays["patterns.counts"])
    rows = rows.astype(np.uint8) if rows.dtype.kind == "i" else rows
    saved(path, header, {"patterns.rows": rows, "patterns.counts": counts})
    assert words in refused(path)


def test_statistics_without_a_solution_are_refused(tmp_path):
    path = tmp_path / "a.stats"
    mlc.save_statistics(mlc.MLCMa().fit([[[1, 0]]]), path)
    header, arrays = read_state(path)
    saved(path, header, arrays | {"n_instances": np.array(0)})
    with pytest.raises(mlc.InputError, match="statistics: found no solution"):
        mlc.save(mlc.load(path), tmp_path / "a.model")
    assert not (tmp_path / "a.model").exists()


def test_models_for_more_than_any_panel_are_refused(tmp_path):
    path = tmp_path / "a.model"
    mlc.save(mlc.MajorityVote().fit([[[1]]]), path)
    names = [str(at) for at in range(5000)]
    header, _ = read_state(path)
    saved(path, header | {"models": names, "labels": names}, {"value": np.zeros(5000)})
    assert "found 5,000 models × 5,000 labels" in refused(path)
