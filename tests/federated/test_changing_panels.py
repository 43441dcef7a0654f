"""Panels that change: other models, other labels, parts that are taken back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from states import PANEL, changed, combiner_named, every_method, saved

import mlconsensus as mlc
from mlconsensus.federated.statistics_files import read_state
from panels import panels


def days(scores, cut):
    """Return two days of one panel; on the second, a model and a label are replaced."""
    m, _, l = scores.shape
    panel = mlc.Predictions(scores)
    one = panel[:cut].select(models=panel.models[: m - 1], labels=panel.labels[: l - 1])
    two = panel[cut:].select(
        models=panel.models[1:][::-1], labels=panel.labels[1:][::-1]
    )
    as_one = scores.astype(float)
    as_one[m - 1, :cut] = as_one[:, :cut, l - 1] = as_one[0, cut:] = as_one[
        :, cut:, 0
    ] = np.nan
    return one, two, mlc.Predictions(as_one)


def through_rounds(name, parts):
    """Merge parts of a panel in each pass; also return the parts of the last pass."""
    fitted = [combiner_named(name).fit_pass(part) for part in parts]
    with pytest.warns(mlc.InputWarning, match="that some files do not have"):
        together = mlc.merge(fitted)
    while together.unfinished:
        state = together.next_state()
        same = [
            part.with_labels(together.labels_).with_models(together.models_)
            for part in parts
        ]
        fitted = [combiner_named(name).fit_pass(part, state) for part in same]
        together = mlc.merge(fitted)
    return together, fitted


@every_method
@settings(max_examples=15)
@given(scores=panels(), cut=st.integers(1, 9))
def test_other_models_and_labels_merge_to_their_union(name, scores, cut):
    scores = np.resize(scores, np.maximum(scores.shape, 3))
    one, two, pooled = days(scores, 1 + cut % (scores.shape[1] - 1))
    together, _ = through_rounds(name, [one, two])
    assert set(together.models_) == set(pooled.models)
    assert set(together.labels_) == set(pooled.labels)
    pooled = pooled.select(models=together.models_, labels=together.labels_)
    np.testing.assert_allclose(
        together.transform(pooled),
        combiner_named(name).fit_transform(pooled),
        rtol=0,
        atol=1e-10,
    )


@every_method
def test_what_was_added_can_be_taken_back(name):
    panel, _ = mlc.datasets.make_panel(300, 6, 4, missing=0.2, random_state=1)
    one, two, pooled = days(panel.to_array(), 140)
    together, (_, second) = through_rounds(name, [one, two])
    rest = mlc.subtract(together, second)
    alone = one.with_labels(together.labels_).with_models(together.models_)
    assert rest.n_instances_ == 140
    fresh = combiner_named(name).fit_pass(alone, together.state_)
    test = pooled.select(models=together.models_, labels=together.labels_)
    np.testing.assert_allclose(
        rest.transform(test), fresh.transform(test), rtol=0, atol=1e-9
    )


@every_method
def test_a_window_that_slides_for_long_stays_exact(name, tmp_path):
    panel, _ = mlc.datasets.make_panel(600, 5, 4, missing=0.1, random_state=2)
    first = combiner_named(name)
    state = (
        combiner_named(name).fit(panel).state_
    )  # of a method that has rounds, what they told is kept
    item = [
        combiner_named(name).fit_pass(panel[position : position + 20], state)
        for position in range(0, 600, 20)
    ]
    window = mlc.merge(item[:5])
    for gone, come in zip(item, item[5:], strict=False):
        window = mlc.subtract(mlc.merge([window, come]), gone)
    mlc.save_statistics(
        window, tmp_path / "window.stats"
    )  # no number is below 0, as rounding might make it
    last = panel[500:]
    fresh = combiner_named(name).fit_pass(last, state)
    result = mlc.load(tmp_path / "window.stats")
    assert result.n_instances_ == 100
    np.testing.assert_allclose(
        result.transform(last), fresh.transform(last), rtol=0, atol=1e-9
    )
    assert first.name == result.name


@every_method
def test_what_was_never_added_cannot_be_taken_back(name):
    panel, _ = mlc.datasets.make_panel(60, 4, 3, random_state=0)
    state = combiner_named(name).fit(panel).state_
    total, other = (
        combiner_named(name).fit_pass(part, state) for part in (panel[:40], panel[30:])
    )
    with pytest.raises(
        mlc.InputError, match="part: found all that there is, expected less"
    ):
        mlc.subtract(total, total)
    if name in ("dawid_skene", "mlcm_r", "mlcm_a", "bgcm"):  # whose sums can tell
        with pytest.raises(mlc.InputError, match="found more than there"):
            mlc.subtract(total, other)
    strange = combiner_named(name).fit(panel.select(labels=panel.labels[:2])[:10])
    with pytest.raises(mlc.InputError):
        mlc.subtract(strange, total)


def written(combiner, path):
    mlc.save_statistics(combiner, path)
    return mlc.load(path)


@every_method
def test_what_came_from_a_file_is_added_once_and_taken_back_once(name, tmp_path):
    panel, _ = mlc.datasets.make_panel(
        300, 5, 4, missing=0.1, probabilities=True, random_state=3
    )
    state = combiner_named(name).fit(panel).state_
    a, b, c = (
        written(
            combiner_named(name).fit_pass(panel[position : position + 100], state),
            tmp_path / f"{position}",
        )
        for position in (0, 100, 200)
    )
    again = panel[:100][np.random.default_rng(0).permutation(100)]
    if state is None:  # else names are in the order of the rounds before
        again = again.select(models=panel.models[::-1], labels=panel.labels[::-1])
    sent_again = written(
        combiner_named(name).fit_pass(again, state), tmp_path / "again"
    )
    both = written(mlc.merge([a, b]), tmp_path / "both")
    for parts in ([a, sent_again], [both, sent_again], [a, both]):
        with pytest.raises(
            mlc.InputError,
            match="1: found sums that are in combiner 0 too, expected each site once",
        ):
            mlc.merge(parts)
    assert mlc.merge([both, c]).n_instances_ == 300
    with pytest.raises(
        mlc.InputError,
        match="part: found sums that are not among those of total, expected some that",
    ):
        mlc.subtract(both, c)
    assert mlc.subtract(mlc.merge([both, c]), sent_again).n_instances_ == 200
    with pytest.raises(
        mlc.InputError, match="found sums that are not among those of total"
    ):
        mlc.subtract(mlc.subtract(mlc.merge([both, c]), a), a)
    # What was gathered in one go, or here, tells only by its sums what is in it.
    pooled = written(combiner_named(name).fit_pass(panel, state), tmp_path / "whole")
    assert (
        mlc.subtract(pooled, a).n_instances_
        == mlc.subtract(
            mlc.merge([both, combiner_named(name).fit_pass(panel[200:], state)]), c
        ).n_instances_
        == 200
    )


def test_a_file_without_a_list_of_parts_is_read(tmp_path):
    path = tmp_path / "old"
    mlc.save_statistics(mlc.MLCMr().fit(PANEL), path)
    header, arrays = read_state(path)
    del header["parts"]
    saved(path, header, arrays)
    assert len(mlc.load(path).parts_) == 1
    changed(path, parts=["a", "a"])
    with pytest.raises(
        mlc.InputError, match="old, parts: found .* twice, expected each name once"
    ):
        mlc.load(path)


@pytest.mark.parametrize("what", ["models", "labels"])
def test_panels_that_share_nothing_are_not_merged(what):
    others = [f"other {position}" for position in range(len(getattr(PANEL, what)))]
    foreign = mlc.Predictions(
        PANEL.to_array(),
        **{"models": PANEL.models, "labels": PANEL.labels} | {what: others},
    )
    with pytest.raises(
        mlc.InputError,
        match=f"combiner 0: found no {what} that any other has, expected some in",
    ):
        mlc.merge([mlc.MLCMr().fit(PANEL), mlc.MLCMr().fit(foreign)])


def test_how_many_names_are_lacking_is_said():
    subset = mlc.Predictions(
        np.ones((1, 3, 9)), labels=[f"label {position}" for position in range(9)]
    )
    fewer = subset.select(labels=subset.labels[:2])
    output = (
        "labels that some files do not have: 'label 2', .*, 'label 6' and 2 more; their"
    )
    with pytest.warns(mlc.InputWarning, match=output):
        mlc.merge([mlc.MLCMr().fit(subset), mlc.MLCMr().fit(fewer)])


@pytest.mark.parametrize("name", ["mlcm_a", "weighted_consensus"])
def test_sums_of_many_labels_are_not_taken_back(name):
    panel = mlc.Predictions([sparse.eye_array(40, 2100, format="csr")] * 2)
    total = combiner_named(name).fit(panel)
    part = combiner_named(name).fit_pass(panel[:20], total.state_)
    with pytest.raises(
        mlc.InputError,
        match="found that of a panel of many labels, expected one of at most 2,048 to",
    ):
        mlc.subtract(total, part)


def test_noise_is_not_taken_back():
    private = mlc.privacy.fit(mlc.MLCMr(), PANEL, epsilon=10.0, delta=1e-6)
    with pytest.raises(
        mlc.InputError,
        match="total: found noise, which would not be taken back, expected sums "
        "without",
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
    """Once, each of 2,000 labels was looked up in a new set of all labels."""
    l = 2000
    fitted = mlc.MajorityVote().fit(np.ones((2, 2, l), dtype=bool))
    labels = [Counted(position) for position in range(l)]
    sites = [
        mlc.MajorityVote.from_statistics(
            fitted.statistics_, models="ab", labels=part, n_instances=2
        )
        for part in (labels, labels[::-1])
    ]
    Counted.looked_up = 0
    assert mlc.merge(sites).n_instances_ == 4
    assert Counted.looked_up < 20 * l


@every_method
def test_files_have_the_weights_that_were_fitted(name, tmp_path):
    fitted = (
        combiner_named(name, weights=[1.0, 2.0])
        .fit(PANEL)
        .set_params(weights=[5.0, 1.0])
    )
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
