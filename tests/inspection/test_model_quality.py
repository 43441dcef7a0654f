"""Nobody is accused without evidence: 200 panels without any suspect and 200 with one, of eight kinds."""

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


def test_hardly_anybody_is_accused_in_200_panels_without_suspects():
    kinds = [simulate.KINDS[name] for name in SPARSE + DENSE]
    accused = [
        simulate.trial(kinds[seed % 8], None, seed)[0].total() for seed in range(200)
    ]
    assert np.count_nonzero(accused) <= 2


def test_suspects_are_found_in_200_panels_with_one():
    n_detected = Counter()
    falsely = Counter()
    for name in SPARSE + DENSE:
        for seed in range(25):
            what = simulate.PLANTED[seed % 4]
            false, hit = simulate.trial(simulate.KINDS[name], what, 5000 + seed)
            falsely["experts" in name] += false.total()
            n_detected[name in DENSE and name[0] != "4", what] += hit
    assert falsely[False] <= 0.01 * n_detected.total()
    assert (
        falsely[True] <= 2
    )  # two experts beside raters that err together look a little like copies
    of_each = {
        what: sum(seed % 4 == position for seed in range(25))
        for position, what in enumerate(simulate.PLANTED)
    }
    for what, least in (
        ("copy", 1.0),
        ("near copy", 0.7),
        ("random", 0.9),
        ("inverted", 1.0),
    ):
        assert n_detected[True, what] >= least * 5 * of_each[what]
    for what in (
        "random",
        "inverted",
    ):  # also among 20 annotators, in batches and of four models
        assert n_detected[False, what] >= 0.8 * 3 * of_each[what]


def test_a_suspect_shows_the_evidence():
    rng = np.random.default_rng(0)
    honest = simulate.honest(simulate.KINDS["dense"], rng)
    simulate.plant(honest, "random", rng)
    (suspect,) = examine(mlc.Predictions(honest)).suspects
    assert (suspect.kind, suspect.raters) == ("random", ("model_9",))
    assert (suspect.instances, suspect.cells) == (1000, 50_000)
    assert suspect.low <= 0 <= suspect.high < 0.6 * suspect.expected
    assert suspect.p_value <= suspect.q_value <= 0.01
    centred = honest - honest.mean(axis=1, keepdims=True)
    correlation = np.corrcoef(centred.reshape(10, -1))[9, :9].mean()
    assert suspect.statistic == pytest.approx(correlation, abs=0.01)


def test_a_weak_rater_is_not_a_random_one():
    quality = [0.8] * 5 + [0.05]
    panel, _ = mlc.datasets.make_panel(
        3000, 10, 6, quality=quality, shared_errors=0, random_state=0
    )
    assert not examine(panel).suspects


def test_good_raters_are_no_copies():
    quality = [0.99, 0.99, 0.5, 0.5, 0.5, 0.5]
    panel, _ = mlc.datasets.make_panel(
        3000, 10, 6, quality=quality, shared_errors=0, random_state=0
    )
    assert not examine(panel).suspects


def test_sign_and_order_do_not_matter():
    rng = np.random.default_rng(3)
    honest = simulate.honest(simulate.KINDS["silence, 40 %"], rng)
    simulate.plant(honest, "copy", rng)
    names = [f"r{k}" for k in range(len(honest))]
    first = examine(mlc.Predictions(honest, models=names))
    turned = examine(mlc.Predictions(honest[::-1, ::-1, ::-1], models=names[::-1]))
    assert [(one.kind, one.raters) for one in first.suspects] == [
        ("copy", ("r0", "r7"))
    ]
    assert [(one.kind, sorted(one.raters)) for one in turned.suspects] == [
        ("copy", ["r0", "r7"])
    ]
    np.testing.assert_allclose(turned.reliability[::-1], first.reliability, atol=1e-10)


@pytest.mark.parametrize("answer", [1.0, 0.0, 0.3])
def test_a_rater_whose_answers_never_vary_is_named(answer):
    panel, _ = mlc.datasets.make_panel(300, 8, 6, random_state=0)
    scores = panel.to_array()
    scores[2] = answer
    (suspect,) = examine(mlc.Predictions(scores)).suspects
    assert (suspect.kind, suspect.raters) == ("random", ("model_2",))
    assert suspect.sentence.startswith(
        f"model_2 says yes to {8 if answer == 1 else 0} of 8 labels, whatever the instance"
    )
    assert suspect.q_value < 0.01


def test_answers_that_hardly_anybody_varies_accuse_nobody():
    scores = np.zeros((4, 40, 5))
    scores[:, :, 0] = 1.0
    scores[3, 3, 2] = 1.0
    assert not examine(mlc.Predictions(scores)).suspects


@pytest.mark.parametrize(
    ("n", "named"), [(3, False), (12, False), (100, False), (3000, True)]
)
def test_scores_near_to_decisions_do_not_make_copies_of_those_who_agree_on_a_few_cells(
    n, named
):
    """Three that say the same of few instances may all be right, whatever a fourth that gives scores says."""
    scores = np.zeros((4, n, 2))
    scores[:, np.arange(n), np.arange(n) % 2] = 1
    scores[3] = 0.98 * scores[3] + 0.01 * np.random.default_rng(0).random((n, 2))
    assert (
        any(one.kind == "copy" for one in examine(mlc.Predictions(scores)).suspects)
        == named
    )
