"""Explanations as text, as tables and as HTML, and their label sets."""

import json
import re

import numpy as np
import pytest

import mlconsensus as mlc
from panels import NAN

HOSTILE = [
    "<script>alert(1)</script>",
    "a\nb\rc\td\x1b[31m",
    "x" * 10_000,
    "\u202egnorw",
    "שלום עולם",
    "体育" * 40,
    "👩\u200d🚀 'quoted\" & more",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_shown_as_text(name):
    panel = mlc.Predictions(
        np.ones((2, 1, 2)), models=[name, "b"], labels=[name, "y"], instances=[name]
    )
    why = mlc.explain(mlc.MLCMa().fit(panel), panel, name, name)
    lines = why.to_text().split("\n")
    assert lines == why.to_text().splitlines()
    assert len(lines) == 2 + 1 + 4 + 1
    assert all(len(line) < 160 for line in lines)
    assert all(
        character.isprintable() or character == "\u200d"
        for line in lines
        for character in line
    )
    assert len(repr(why)) < 200
    html = why._repr_html_()
    assert "<script" not in html
    assert len(html) < 5000
    assert not re.search(r'"quoted|quoted"|& more', html)
    assert json.loads(json.dumps(why.to_dict()))["label"] == name


def test_tables_are_aligned_and_say_what_they_leave_out():
    panel = mlc.Predictions(
        np.full((3, 1, 4), 0.5),
        models=["ana", "体育", "c"],
        labels=list("pqrs"),
        instances=["i"],
    )
    why = mlc.explain(mlc.MLCMr().fit(panel), panel, "i", "q")
    lines = why.to_text(most=2).splitlines()
    assert lines[0] == "instance i, label q: 0.2500 by mlcm_r, 0.5000 by voting"
    assert lines[2].split() == ["model", "label", "prediction", "consensus", "voting"]
    assert lines[-2].startswith("10 more")
    assert lines[-1].split() == ["sum", "0.2500", "0.5000"]
    assert len(why.to_text(most=50).splitlines()) == 2 + 1 + 12 + 1


def test_small_contributions_keep_their_figures():
    panel = mlc.Predictions(np.ones((2, 1, 400)))
    why = mlc.explain(mlc.MLCMr().fit(panel), panel, 0, 7)
    first = why.to_text().splitlines()[3].split()
    assert float(first[3]) == pytest.approx(why.parts[0].contribution, rel=0.005)
    assert why.parts[0].contribution < 0.003


def test_where_nobody_spoke_the_prior_is_shown():
    scores = np.array([[[1.0, 1.0], [0.0, 1.0], [NAN, 0.0]]])
    why = mlc.explain(mlc.MajorityVote().fit(scores), scores, 2, 0)
    assert (why.score, why.vote, why.baseline) == (0.5, 0.5, 0.5)
    assert [part.prediction for part in why.parts] == [None]
    assert "baseline" in why.to_text()
    assert why.to_text().splitlines()[-1].split() == ["sum", "0.5000", "0.5000"]


def test_the_only_yes_comes_first_and_who_never_saw_the_instance_has_no_part():
    rng = np.random.default_rng(0)
    truth = rng.random((200, 4)) < 0.3
    scores = np.where(
        rng.random((30, 200, 1)) < 0.3, truth ^ (rng.random((30, 200, 4)) < 0.1), NAN
    )
    # Model 0 is constant, so that methods that learn from agreement ignore it.
    scores[0] = [1, 0, 0, 0]
    scores[:, 0] = NAN
    scores[:6, 0] = [[1, 0, 0, 0], *[[0, 1, 0, 0]] * 4, [NAN, 1, 0, 0]]
    consensus = mlc.combine(scores, method="weighted")
    why = consensus.explain(0, 0)
    assert (why.parts[0].model, why.parts[0].prediction, why.vote) == (
        "model_0",
        1.0,
        0.2,
    )
    assert abs(why.parts[0].contribution) < abs(why.parts[1].contribution)
    assert {part.model for part in why.parts} == {f"model_{k}" for k in range(6)}
    assert ("model_5", None) in {
        (part.model, part.prediction) for part in why.parts if part.label == "label_0"
    }
    assert why.baseline + why.remainder + sum(
        part.contribution for part in why.parts
    ) == pytest.approx(why.score)


@pytest.mark.parametrize("many", [False, True])
def test_a_consensus_says_whether_the_label_is_in_the_label_set(many):
    panel = mlc.Predictions(
        [[[1, 0, 0]], [[1, 1, 0]], [[1, 1, 0]]], labels=list("xyz"), instances=["i"]
    )
    consensus = mlc.combine(panel.as_block(many=many), method="weighted")
    (chosen,) = consensus.label_sets()
    assert "x" in chosen
    assert "z" not in chosen
    for label in "xyz":
        why = consensus.explain("i", label)
        assert why.in_label_set is why.to_dict()["in_label_set"] is (label in chosen)
        expected = " by voting; not in the label set"
        if label in chosen:
            expected = " by voting; in the label set"
        assert why.to_text().splitlines()[0].endswith(expected)
    assert mlc.explain(consensus.combiner, panel, "i", "x").in_label_set is None


def test_plain_voting_knows_no_weights():
    panel = mlc.Predictions([[[1.0], [0.0]], [[0.0], [0.0]]]).weighted([3.0, 1.0])
    why = mlc.explain(mlc.MajorityVote(weights=[3.0, 1.0]).fit(panel), panel, 0, 0)
    assert (why.score, why.vote) == (0.75, 0.5)
    assert [(part.contribution, part.vote) for part in why.parts] == [
        (0.75, 0.5),
        (0.0, 0.0),
    ]
