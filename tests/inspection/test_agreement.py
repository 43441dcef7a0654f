"""Compare agreement with the packages krippendorff and nltk, and with a bootstrap."""

import krippendorff
import numpy as np
import pytest
from nltk.metrics import masi_distance
from nltk.metrics.agreement import AnnotationTask
from scipy import sparse
from sklearn.metrics import cohen_kappa_score

import mlconsensus as mlc
from mlconsensus.inspection import agreement as module


def crowd(seed=0, m=6, n=60, l=4, silence=0.3, errors=0.15, graded=False):
    """Make scores (m, n, l) with independent errors and missing predictions."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, l)) < [0.1, 0.3, 0.5, 0.7][:l]
    scores = (truth ^ (rng.random((m, n, l)) < errors)).astype(float)
    if graded:
        scores = np.clip(0.8 * scores + 0.2 * rng.random(scores.shape), 0, 1).round(2)
    scores[rng.random((m, n)) < silence] = np.nan
    scores[rng.random(scores.shape) < 0.05] = np.nan
    return scores


@pytest.mark.parametrize("graded", [False, True])
def test_alpha_of_labels_is_krippendorffs(graded):
    scores = crowd(graded=graded)
    result = mlc.agreement(scores)
    for j, one in enumerate(result.labels):
        votes = np.where(np.isnan(scores[:, :, j]), np.nan, scores[:, :, j] >= 0.5)
        expected = krippendorff.alpha(
            reliability_data=votes, level_of_measurement="nominal"
        )
        assert one.alpha.value == pytest.approx(expected, abs=1e-12)
        assert one.instances == ((~np.isnan(votes)).sum(axis=0) > 1).sum()


def test_one_label_is_the_whole():
    result = mlc.agreement(crowd(l=1))
    assert result.alpha == result.labels[0].alpha
    assert result.share == result.labels[0].share


def test_alpha_of_sets_is_nltks():
    scores = crowd(silence=0.2)
    scores[:, :, 3] = np.where(
        np.isnan(scores).all(axis=2), np.nan, 1
    )  # nltk divides by 0 at two empty sets
    rows = [
        (f"rater {k}", i, frozenset(np.flatnonzero(scores[k, i] >= 0.5).tolist()))
        for k, i in np.argwhere(~np.isnan(scores).all(axis=2))
    ]
    met = {i for _, i, _ in rows if sum(i == other for _, other, _ in rows) > 1}
    task = AnnotationTask(
        [row for row in rows if row[1] in met], distance=masi_distance
    )
    assert mlc.agreement(scores).set_alpha.value == pytest.approx(
        task.alpha(), abs=1e-12
    )


def test_masi_distances():
    rng = np.random.default_rng(0)
    sets = rng.random((20, 5)) < 0.5
    sets[:, 0] |= ~sets.any(axis=1)
    names = [set(np.flatnonzero(row).tolist()) for row in sets]
    result = module.compute_masi_distances(sets)
    assert np.allclose(result, [[masi_distance(a, b) for b in names] for a in names])
    assert module.compute_masi_distances(np.zeros((2, 3), dtype=bool)).tolist() == [
        [0, 0],
        [0, 0],
    ]


def test_kappa_of_pairs_is_cohens_over_shared_items():
    scores = crowd(l=1)
    result = mlc.agreement(scores)
    assert len(result.pairs) == 15
    for one in result.pairs:
        a, b = (scores[int(name.removeprefix("model_")), :, 0] for name in one.models)
        shared = ~np.isnan(a) & ~np.isnan(b)
        assert one.instances == shared.sum()
        assert one.share.value == pytest.approx((a == b)[shared].mean())
        assert one.kappa.value == pytest.approx(
            cohen_kappa_score(a[shared], b[shared]), abs=1e-12
        )
        task = AnnotationTask(
            [
                (who, i, values[i])
                for who, values in (("a", a), ("b", b))
                for i in np.flatnonzero(shared)
            ]
        )
        assert one.kappa.value == pytest.approx(
            task.kappa_pairwise("a", "b"), abs=1e-12
        )


def test_a_rater_stands_beside_each_of_the_others():
    scores = crowd(l=1)
    for k, one in enumerate(mlc.agreement(scores).models):
        answers = []
        others = []
        for q in range(len(scores)):
            shared = (q != k) & ~np.isnan(scores[k, :, 0]) & ~np.isnan(scores[q, :, 0])
            answers += scores[k, shared, 0].tolist()
            others += scores[q, shared, 0].tolist()
        assert one.kappa.value == pytest.approx(
            cohen_kappa_score(answers, others), abs=1e-12
        )
        assert one.share.value == pytest.approx(np.mean(np.equal(answers, others)))


def test_who_only_knows_frequencies_scores_nothing():
    rng = np.random.default_rng(0)
    result = mlc.agreement(rng.random((4, 2000, 3)) < [0.05, 0.3, 0.9])
    for figure in (
        result.alpha,
        *(one.kappa for one in (*result.models, *result.pairs)),
    ):
        assert abs(figure.value) < 0.05
        assert figure.low - 0.03 < 0 < figure.high + 0.03


def test_intervals_are_those_of_a_bootstrap_that_reads_all_again():
    scores = crowd(seed=1, n=1000)
    result = mlc.agreement(scores)
    assert result.alpha.low < result.alpha.value < result.alpha.high
    rng = np.random.default_rng(5)
    again = []
    for _ in range(60):
        one = mlc.agreement(scores[:, rng.integers(1000, size=1000)])
        again.append(
            [
                one.alpha.value,
                one.set_alpha.value,
                one.models[0].kappa.value,
                one.pairs[0].kappa.value,
            ]
        )
    figures = (
        result.alpha,
        result.set_alpha,
        result.models[0].kappa,
        result.pairs[0].kappa,
    )
    width = [(figure.high - figure.low) / 2 / 1.96 for figure in figures]
    assert width == pytest.approx(
        np.std(again, axis=0), rel=0.35
    )  # four standard errors of the standard deviation


def test_a_sparse_crowd_is_the_same_as_silence():
    scores = crowd(m=5, n=40)
    tables = {}
    for k, answers in enumerate(np.nan_to_num(scores)):
        rows = np.flatnonzero(~np.isnan(scores[k]).all(axis=1))
        scores[k, rows] = answers[rows]
        tables[f"model_{k}"] = (sparse.csr_array(answers[rows]), rows)
    from mlconsensus.predictions.score_tables import ScoreTable

    panel = mlc.Predictions.from_tables(
        [ScoreTable(k, v, rows, list("abcd")) for k, (v, rows) in tables.items()]
    )
    ordered = scores[:, panel.instances]
    a = mlc.agreement(panel)
    b = mlc.agreement(mlc.Predictions(ordered, labels=list("abcd")))
    assert a == b


def test_nothing_to_differ_about():
    result = mlc.agreement([[[1, 0], [1, 1]], [[1, 0], [1, 1]]])
    assert np.isnan(result.labels[0].alpha.value)
    assert result.labels[1].alpha.value == result.alpha.value == 1
    assert "–" in result.to_text()
    with pytest.raises(
        mlc.InputError, match="agreement: found one model, expected at least two"
    ):
        mlc.agreement([[[1, 0]]])


def test_models_without_shared_instances():
    result = mlc.agreement(
        [[[1.0], [np.nan], [0]], [[np.nan], [0.0], [1]], [[np.nan], [1.0], [np.nan]]]
    )
    assert [one.models for one in result.pairs] == [
        ("model_0", "model_1"),
        ("model_1", "model_2"),
    ]


@pytest.mark.parametrize("instances", [1, 3])
def test_nobody_said_anything(instances):
    result = mlc.agreement(np.full((2, instances, 2), np.nan))
    assert result.pairs == ()
    assert result.instances == 0
    assert np.isnan(
        [
            result.alpha.value,
            result.set_alpha.value,
            result.share.value,
            result.models[0].kappa.value,
        ]
    ).all()
    assert "–" in result.to_text()


def test_large_panels_are_looked_at_in_part(monkeypatch):
    scores = crowd(seed=1, n=400)
    complete = mlc.agreement(scores)
    monkeypatch.setattr(module, "_MOST_COMPARISONS", 20_000)
    monkeypatch.setattr(module, "_MOST_SETS", 15)
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    part = mlc.agreement(scores)
    assert part.instances < complete.instances
    assert part.alpha.value == pytest.approx(complete.alpha.value, abs=0.1)


def test_pairs_that_share_few_instances_come_last():
    scores = crowd(m=4, silence=0)
    scores[3, 5:] = (
        np.nan
    )  # it shares five instances with the others, and says the opposite
    scores[3, :5] = 1 - (scores[0, :5] >= 0.5)
    result = mlc.agreement(
        mlc.Predictions(scores, models=["ann", "bob", "carl", "dora"])
    )
    lines = result.to_text().split("\n\n")[-1].splitlines()[1:]
    assert ["dora" in line for line in lines] == [False] * 3 + [True] * 3
    few = mlc.agreement(
        mlc.Predictions(scores[:, :9], models=["ann", "bob", "carl", "dora"])
    )
    assert (
        "dora" in few.to_text().split("\n\n")[-1].splitlines()[1]
    )  # where all pairs share few


def test_few_instances_have_no_interval():
    """Intervals from a bootstrap of few shared instances would be too short."""
    scores = crowd(m=4, n=30, silence=0)
    scores[3, 9:] = np.nan
    result = mlc.agreement(scores)
    for pair in result.pairs:
        few = "model_3" in pair.models
        assert pair.instances == (9 if few else 30)
        assert (
            np.isnan([pair.kappa.low, pair.kappa.high, pair.share.low]).tolist()
            == [few] * 3
        )
        assert not np.isnan(pair.kappa.value)
    assert np.isnan(result.models[3].kappa.low)
    assert not np.isnan(
        [result.alpha.low, result.set_alpha.low, result.labels[0].alpha.low]
    ).any()
    few = mlc.agreement(scores[:, :9])
    assert np.isnan([few.alpha.low, few.set_alpha.low, few.labels[0].alpha.low]).all()
    assert f"{few.alpha.value:.3f} (–)" in few.to_text()


def test_one_instance_is_one():
    assert "2 models, 1 instance with" in mlc.agreement([[[1, 0]], [[1, 1]]]).to_text()


def test_what_is_looked_at_of_a_large_panel_is_said(monkeypatch):
    scores = crowd(n=90, silence=0.0)
    assert "looked at" not in mlc.agreement(scores).to_text()
    monkeypatch.setattr(module, "_MOST_COMPARISONS", 6 * 6 * 90 * 4 // 3)
    result = mlc.agreement(scores)
    assert result.note == "Of 90 instances, 30 are looked at."
    assert result.to_text().splitlines()[:2] == [
        "6 models, 30 instances with predictions of two or more",
        result.note,
    ]
