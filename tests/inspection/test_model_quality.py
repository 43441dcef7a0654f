"""Flagged models in 200 simulations with one bad model, and in 200 without."""

import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.inspection.diagnostics import examine

_SCRIPT = Path(__file__).parents[2] / "docs" / "diagnostics" / "simulate.py"
_spec = importlib.util.spec_from_file_location("simulate", _SCRIPT)
simulate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(simulate)

SPARSE = ("20 annotators, 2–3 an item", "batches, 3 annotators each")
DENSE = (
    "scores",
    "silence, 40 %",
    "few, frequent labels",
    "rare labels",
    "4 models, 200 instances",
    "2 experts among 6",
)


def test_at_most_two_false_flags_in_200_simulations():
    kinds = [simulate.KINDS[name] for name in SPARSE + DENSE]
    flagged_by_seed = [
        simulate.trial(kinds[seed % 8], None, seed)[0].total() for seed in range(200)
    ]
    assert np.count_nonzero(flagged_by_seed) <= 2


def test_bad_models_are_flagged_in_200_simulations():
    flagged = Counter()
    falsely = Counter()
    for name in SPARSE + DENSE:
        for seed in range(25):
            what = simulate.PLANTED[seed % 4]
            false, hit = simulate.trial(simulate.KINDS[name], what, 5000 + seed)
            falsely["experts" in name] += false.total()
            flagged[name in DENSE and name[0] != "4", what] += hit
    assert falsely[False] <= 0.01 * flagged.total()
    # Two experts next to models with common errors look a little like duplicates
    assert falsely[True] <= 4
    of_each = {
        what: sum(seed % 4 == position for seed in range(25))
        for position, what in enumerate(simulate.PLANTED)
    }
    for what, least in (
        ("duplicate", 1.0),
        ("near duplicate", 0.7),
        ("random", 0.9),
        ("inverted", 1.0),
    ):
        assert flagged[True, what] >= least * 5 * of_each[what]
    # Also among 20 annotators, in batches and of four models
    for what in ("random", "inverted"):
        assert flagged[False, what] >= 0.8 * 3 * of_each[what]


def test_a_flag_shows_the_evidence():
    rng = np.random.default_rng(0)
    honest = simulate.honest(simulate.KINDS["dense"], rng)
    simulate.plant(honest, "random", rng)
    (flag,) = examine(mlc.Predictions(honest)).flags
    assert (flag.kind, flag.models) == ("random", ("model_9",))
    assert (flag.instances, flag.cells) == (1000, 50_000)
    assert flag.low <= 0 <= flag.high < 0.6 * flag.expected
    assert flag.p_value <= flag.q_value <= 0.01
    centred = honest - honest.mean(axis=1, keepdims=True)
    mean_correlation = np.corrcoef(centred.reshape(10, -1))[9, :9].mean()
    assert flag.statistic == pytest.approx(mean_correlation, abs=0.01)


def test_a_model_that_is_close_to_useless_is_weak_and_not_random():
    quality = [0.8] * 5 + [0.05]
    panel, _ = mlc.datasets.make_panel(
        3000, 10, 6, quality=quality, shared_errors=0, random_state=0
    )
    (flag,) = examine(panel).flags
    assert (flag.kind, flag.models) == ("weak", ("model_5",))
    assert 0 < flag.low < flag.high < flag.expected / 3
    assert flag.sentence.startswith("model_5 is weak: its correlation with other")


def test_good_models_are_not_duplicates():
    quality = [0.99, 0.99, 0.5, 0.5, 0.5, 0.5]
    panel, _ = mlc.datasets.make_panel(
        3000, 10, 6, quality=quality, shared_errors=0, random_state=0
    )
    assert not [flag for flag in examine(panel).flags if flag.kind != "family"]


def test_sign_and_order_do_not_matter():
    rng = np.random.default_rng(3)
    honest = simulate.honest(simulate.KINDS["silence, 40 %"], rng)
    simulate.plant(honest, "duplicate", rng)
    names = [f"r{k}" for k in range(len(honest))]
    first = examine(mlc.Predictions(honest, models=names))
    turned = examine(mlc.Predictions(honest[::-1, ::-1, ::-1], models=names[::-1]))
    expected = [("duplicate", ["r0", "r7"]), ("family", ["r0", "r7"])]
    assert [(one.kind, sorted(one.models)) for one in first.flags] == expected
    assert [(one.kind, sorted(one.models)) for one in turned.flags] == expected
    np.testing.assert_allclose(turned.reliability[::-1], first.reliability, atol=1e-10)


@pytest.mark.parametrize("answer", [1.0, 0.0, 0.3])
def test_a_constant_model_is_flagged(answer):
    panel, _ = mlc.datasets.make_panel(300, 8, 6, random_state=0)
    scores = panel.to_array()
    scores[2] = answer
    (flagged,) = examine(mlc.Predictions(scores)).flags
    assert (flagged.kind, flagged.models) == ("random", ("model_2",))
    n_positive = 8 * int(answer == 1)
    assert flagged.sentence.startswith(
        f"model_2 is random: it gives the same {n_positive} of 8 labels to each"
    )
    assert flagged.q_value < 0.01


def test_labels_that_hardly_vary_are_not_evidence():
    scores = np.zeros((4, 40, 5))
    scores[:, :, 0] = 1.0
    scores[3, 3, 2] = 1.0
    assert not examine(mlc.Predictions(scores)).flags


@pytest.mark.parametrize(
    ("n", "named"), [(3, False), (12, False), (100, False), (3000, True)]
)
def test_agreement_on_few_pairs_does_not_make_duplicates(n, named):
    """Three models that agree on few instances may all be right."""
    scores = np.zeros((4, n, 2))
    scores[:, np.arange(n), np.arange(n) % 2] = 1
    scores[3] = 0.98 * scores[3] + 0.01 * np.random.default_rng(0).random((n, 2))
    assert (
        any(one.kind == "duplicate" for one in examine(mlc.Predictions(scores)).flags)
        == named
    )


def _make_model(rng, truth, hit, false_alarm):
    """Return binary predictions (n, l) with independent errors."""
    drawn = rng.random(truth.shape)
    return np.where(truth, drawn < hit, drawn < false_alarm).astype(float)


def test_related_models_are_not_evidence_against_their_quality():
    """As in the trial with six LLM taggers: the best two models are near copies."""
    rng = np.random.default_rng(0)
    truth = rng.random((500, 25)) < 0.1
    best = _make_model(rng, truth, 0.86, 0.018)
    base = _make_model(rng, truth, 0.76, 0.03)
    models = {"aurora": best}
    for name, original, share in (
        ("borealis", best, 0.04),
        ("cumulus-t0", base, 0.03),
        ("cumulus-t07", base, 0.12),
        ("cumulus-t10", base, 0.3),
    ):
        again = _make_model(rng, truth, 0.8, 0.025)
        models[name] = np.where(rng.random(truth.shape) < share, again, original)
    models["drizzle"] = _make_model(rng, truth, 0.12, 0.06)

    flags = examine(mlc.Predictions(models)).flags
    about_quality = [flag for flag in flags if flag.is_about_quality]
    assert [(flag.kind, flag.models) for flag in about_quality] == [
        ("weak", ("drizzle",))
    ]
    families = [set(flag.models) for flag in flags if flag.kind == "family"]
    assert {"aurora", "borealis"} in families
    assert {"cumulus-t0", "cumulus-t07", "cumulus-t10"} in families
    assert ("duplicate", ("aurora", "borealis")) in [
        (flag.kind, flag.models) for flag in flags
    ]


def test_two_inverted_models_of_six_are_flagged():
    rng = np.random.default_rng(1)
    truth = rng.random((800, 12)) < 0.3
    scores = np.array([_make_model(rng, truth, 0.8, 0.05) for _ in range(6)])
    expected = [("inverted", ("model_4",)), ("inverted", ("model_5",))]
    scores[4:] = 1 - scores[4:]
    flags = examine(mlc.Predictions(scores)).flags
    assert [(flag.kind, flag.models) for flag in flags] == expected
    vote = mlc.majority_vote(scores)
    consensus = mlc.weighted_consensus(scores)
    ranking_loss = mlc.metrics.ranking_loss
    assert ranking_loss(truth, consensus) < 0.2 * ranking_loss(truth, vote)
