"""The figures of a report against figures worked out another way."""

import itertools
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from report_panels import by_all_sets
from scipy.special import expit

import mlconsensus as mlc
from mlconsensus.inspection import diagnostics
from mlconsensus.report import Report, changes, labels, models, summarize
from mlconsensus.report.changes import compare_with_vote
from mlconsensus.report.charts import heat
from mlconsensus.report.findings import findings
from mlconsensus.report.provenance import hash_predictions
from panels import DEGENERATE, panels


def test_panel(made, summary):
    scores = made.predictions.to_array()
    for k, model in enumerate(summary.panel.models):
        is_present = ~np.isnan(scores[k])
        assert model.missing == pytest.approx(1 - is_present.mean())
        assert (model.instances, model.labels) == (
            is_present.any(axis=1).sum(),
            is_present.any(axis=0).sum(),
        )
        assert model.cardinality == pytest.approx(
            np.nansum(scores[k]) / is_present.any(axis=1).sum()
        )
        assert model.decides
    assert summary.panel.missing == pytest.approx(np.isnan(scores).mean())
    assert summary.panel.cardinality == pytest.approx(
        np.nanmean(scores, axis=0).sum(axis=1).mean()
    )


def test_scores_are_not_decisions():
    panel = mlc.Predictions([[[0.0, 1.0]], [[0.5, 1.0]]])
    assert [model.decides for model in summarize(mlc.combine(panel)).panel.models] == [
        True,
        False,
    ]


def test_models(made, consensus, summary):
    diagnosed = consensus.diagnostics.panel
    order = [diagnosed.models.index(name) for name in summary.models.order]
    assert sorted(order) == list(range(5))
    np.testing.assert_array_equal(
        summary.models.agreement, diagnosed.agreement[np.ix_(order, order)]
    )
    for k, row in enumerate(summary.models.rows):
        others = [
            (diagnosed.agreement[k, q], name)
            for q, name in enumerate(diagnosed.models)
            if q != k
        ]
        assert (row.agreement, row.nearest) == max(others)
        assert row.weight == pytest.approx(consensus.combiner.model_weights_[k])
    assert [(one.kind, one.models) for one in summary.models.flags] == [
        ("random", ("model_4",))
    ]
    assert summary.models.rows[4].remark == "random"
    pairs = [diagnosed.agreement[k, q] for k, q in itertools.combinations(range(5), 2)]
    assert summary.models.mean_agreement == pytest.approx(np.mean(pairs))


def test_pairs_that_share_few_instances_are_not_named():
    rng = np.random.default_rng(0)
    truth = rng.random((200, 6)) < 0.4
    scores = (truth ^ (rng.random((5, 200, 6)) < 0.2)).astype(float)
    scores[0, 4:] = np.nan
    scores[1, :4] = scores[
        0, :4
    ]  # four instances that they agree on, and that is all of the first
    panel = mlc.Predictions(scores)
    summary = summarize(mlc.combine(panel))
    near = diagnostics.examine(
        panel.select(models=panel.models[1:])
    ).agreement - 3 * np.eye(4)
    assert (summary.models.rows[0].nearest, summary.models.rows[0].agreement) == (
        None,
        None,
    )
    assert summary.models.rows[1].nearest == panel.models[1 + near[0].argmax()]
    one, other = np.unravel_index(near.argmax(), near.shape)
    assert (
        f"closest are model_{one + 1} and model_{other + 1} ({near.max():.2f})"
        in findings(summary)[0].sentence
    )
    assert "model_0" not in heat(summary.models.order, summary.models.agreement).highest
    assert "<td>–</td>" in mlc.combine(panel).report().to_html()
    few = summarize(mlc.combine(panel[:4]))  # where all share few, they are named
    assert few.models.rows[0].nearest == "model_1"
    apart = mlc.Predictions([[[1.0, 0], [np.nan, np.nan]], [[np.nan, np.nan], [1, 0]]])
    assert (
        "No two models have predictions for the same instance"
        in findings(summarize(mlc.combine(apart)))[0].sentence
    )


def test_models_are_examined_once(made, monkeypatch):
    examined = []
    examine = diagnostics.examine
    monkeypatch.setattr(
        diagnostics, "examine", lambda *given: examined.append(given) or examine(*given)
    )
    mlc.combine(made.predictions).report(made.truth).to_html()
    assert len(examined) == 1


def test_like_stands_beside_like():
    block = np.kron(np.eye(2), np.ones((3, 3)))
    mixed = np.array([0, 3, 1, 4, 2, 5])
    order = models.ordered(block[np.ix_(mixed, mixed)])
    groups = [int(mixed[position] >= 3) for position in order]
    assert groups in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])


def test_labels(consensus, summary):
    chosen = consensus.label_indicator
    used = chosen.any(axis=0)
    order = [consensus.labels.index(name) for name in summary.labels.order]
    assert sorted(order) == np.flatnonzero(used).tolist()
    np.testing.assert_allclose(
        summary.labels.correlation,
        np.corrcoef(chosen[:, order].T.astype(float)),
        atol=1e-10,
    )
    for pair in summary.labels.pairs:
        one, other = (
            chosen[:, consensus.labels.index(name)] for name in (pair.one, pair.other)
        )
        assert pair.together == (one & other).sum()
        assert pair.expected == pytest.approx(one.sum() * other.sum() / len(chosen))
        assert pair.correlation == pytest.approx(np.corrcoef(one, other)[0, 1])
    assert [row.consensus for row in summary.labels.rows] == chosen.sum(axis=0).tolist()
    best = max(
        np.corrcoef(chosen[:, i], chosen[:, j])[0, 1]
        for i, j in itertools.combinations(np.flatnonzero(used), 2)
        if (chosen[:, i] & chosen[:, j]).sum() >= 3
    )
    assert summary.labels.pairs[0].correlation == pytest.approx(best)


def test_many_labels_are_thinned_to_those_with_the_strongest_ties():
    rng = np.random.default_rng(0)
    chosen = rng.random((500, 120)) < 0.1
    chosen[:, 70:80] = chosen[:, 60:70]  # ten pairs of twins
    names = tuple(f"l{j}" for j in range(120))
    none = np.zeros(120, dtype=np.int64)
    thinned = labels.summarize_labels(names, chosen, none, none, np.zeros(120))
    assert len(thinned.order) == labels.MOST_LABELS
    assert {f"l{j}" for j in range(60, 80)} <= set(thinned.order)
    assert len(thinned.rows) == 120
    assert {(pair.one, pair.other) for pair in thinned.pairs[:10]} == {
        (f"l{j}", f"l{j + 10}") for j in range(60, 70)
    }


def test_pairs_are_counted_and_those_that_go_together_least_are_listed():
    """Labels that exclude each other are as informative as labels that co-occur."""
    rng = np.random.default_rng(0)
    chosen = rng.random((500, 8)) < 0.3
    chosen[:, 7] &= ~chosen[:, 0]
    names = tuple("abcdefgh")
    none = np.zeros(8, dtype=np.int64)
    label_summary = labels.summarize_labels(names, chosen, none, none, np.zeros(8))
    every = sorted(
        (
            (np.corrcoef(chosen[:, i], chosen[:, j])[0, 1], names[i], names[j])
            for i in range(8)
            for j in range(i)
        ),
        reverse=True,
    )
    assert (label_summary.n_pairs, len(label_summary.pairs)) == (28, 20)
    correlations = [pair.correlation for pair in label_summary.pairs]
    assert correlations == pytest.approx(
        [one[0] for one in (*every[:10], *every[-10:])]
    )
    assert (
        label_summary.pairs[-1].one,
        label_summary.pairs[-1].other,
        label_summary.pairs[-1].together,
    ) == (
        "a",
        "h",
        0,
    )
    summary = summarize(mlc.combine([chosen, chosen], method="mv"))
    report = Report(replace(summary, labels=label_summary))
    assert (
        "The 10 pairs of labels that go together most, and the 10 that do least, of 28"
        in report.to_html()
    )
    text = report.to_text()
    assert (
        "… and 18 between the 5 with the highest correlation and the 5 with the lowest"
        in text
    )
    last = [
        "a",
        "h",
        "0",
        f"{label_summary.pairs[-1].expected:.1f}",
        f"−{-correlations[-1]:.2f}",
    ]
    assert last in [line.split() for line in text.splitlines()]


@given(scores=panels())
def test_added_and_dropped_are_what_no_and_every_best_vote_has(scores):
    consensus = mlc.combine(scores, method="mlcm-a")
    comparison = compare_with_vote(consensus.vote, consensus.label_indicator)
    literal = [
        by_all_sets(vote, chosen)
        for vote, chosen in zip(consensus.vote, consensus.label_indicator, strict=True)
    ]
    l = scores.shape[2]
    assert comparison.added.tolist() == [
        sum(j in added for added, _, _ in literal) for j in range(l)
    ]
    assert comparison.dropped.tolist() == [
        sum(j in dropped for _, dropped, _ in literal) for j in range(l)
    ]
    assert comparison.tied.tolist() == [tied for _, _, tied in literal]
    assert (comparison.overruled > 0).tolist() == [
        bool(added or dropped) for added, dropped, _ in literal
    ]


def test_changes(consensus, summary):
    result = summary.changes
    rows = {row.name: row for row in result.instances}
    literal = [
        by_all_sets(vote, chosen)
        for vote, chosen in zip(consensus.vote, consensus.label_indicator, strict=True)
    ]
    assert result.n_added == sum(len(added) for added, _, _ in literal)
    assert result.n_dropped == sum(len(dropped) for _, dropped, _ in literal)
    assert result.n_changed == sum(
        bool(added or dropped) for added, dropped, _ in literal
    )
    assert len(rows) == changes.MOST_INSTANCES < len(consensus.scores)
    assert result.n_moved_shown == min(result.n_changed, changes.MOST_MOVED)
    sets = consensus.label_sets()
    for i, name in enumerate(consensus.instances.tolist()):
        if str(name) in rows:
            row = rows[str(name)]
            assert row.labels == sets[i]
            assert {consensus.labels.index(label) for label in row.added} == literal[i][
                0
            ]
            assert {consensus.labels.index(label) for label in row.dropped} == literal[
                i
            ][1]
    ranked = [row.overruled for row in result.instances[: result.n_moved_shown]]
    assert ranked == sorted(ranked, reverse=True)
    assert min(ranked) > 0


@pytest.mark.parametrize("method", mlc.COMBINERS)
def test_reasons_add_up_to_the_score(method, made):
    consensus = mlc.combine(made.predictions[:60], method=method)
    for row in summarize(consensus).changes.instances:
        i = consensus.instances.tolist().index(int(row.name))
        for why in row.reasons:
            score = consensus.scores[i, consensus.labels.index(why.label)]
            assert why.score == pytest.approx(score, abs=1e-10)
            assert why.vote == consensus.vote[i, consensus.labels.index(why.label)]
            parts = (
                sum(part.contribution for part in why.parts)
                + why.others
                + why.baseline
                + why.remainder
            )
            if np.isfinite(parts):
                assert parts == pytest.approx(why.total, abs=1e-9)
            if why.scale == "score":
                total = why.total
            else:
                total = expit(why.total)
            assert total == pytest.approx(score, abs=1e-9)
        assert {why.label for why in row.reasons if why.change == "added"} <= set(
            row.added
        )
        assert row.reasons[-1].label == consensus.labels[
            consensus.scores[i].argmax()
        ] or "first" not in {why.change for why in row.reasons}


def test_nothing_changes_where_voting_is_the_method(made):
    result = summarize(mlc.combine(made.predictions, method="mv")).changes
    assert (
        result.n_changed,
        result.n_added,
        result.n_dropped,
        result.moved,
        result.n_moved_shown,
    ) == (0, 0, 0, 0, 0)


def test_the_hash_tells_panels_apart(made):
    panel = made.predictions
    scores = panel.to_array()
    same = hash_predictions(panel)
    assert hash_predictions(mlc.Predictions(list(scores))) == same
    scores[2, 3, 4] = np.nan if scores[2, 3, 4] == scores[2, 3, 4] else 1.0
    others = [
        mlc.Predictions(scores),
        panel.select(models=panel.models[::-1]),
        panel[::-1],
        mlc.Predictions(panel.to_array(), labels=[f"x{j}" for j in range(9)]),
        panel.with_clusterings({"halves": [i % 2 for i in range(len(panel))]}),
    ]
    assert len({hash_predictions(other).sha256 for other in [panel, *others]}) == 6


def test_the_same_input_gives_the_same_bytes(tmp_path):
    code = (
        "import sys, mlconsensus as mlc\n"
        "panel, truth = mlc.datasets.make_panel(80, 8, 4, missing=0.1, "
        "random_state=3)\n"
        "report = mlc.combine(panel).report(truth)\n"
        "[report.save(sys.argv[1] + end) for end in ('.html', '.json', '.txt')]\n"
    )
    environment = {**os.environ, "TZ": "UTC+2", "PYTHONHASHSEED": "1"}
    if os.environ.get("PYTHONHASHSEED") == "1":
        environment["PYTHONHASHSEED"] = "2"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "other process")],
        check=True,
        env=environment,
    )
    panel, truth = mlc.datasets.make_panel(80, 8, 4, missing=0.1, random_state=3)
    report = mlc.combine(panel).report(truth)
    for end in (".html", ".json", ".txt"):
        here = tmp_path / f"here{end}"
        report.save(here)
        assert here.read_bytes() == (tmp_path / f"other process{end}").read_bytes()
        assert str(tmp_path) not in here.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_panels(name):
    panel = mlc.Predictions(DEGENERATE[name])
    truth = np.zeros(panel.shape[1:], dtype=bool)
    truth[0, 0] = True
    for report in (
        mlc.combine(panel).report(truth),
        mlc.combine(panel, method="ds").report(),
    ):
        assert report.to_html().startswith("<!doctype html>")
        assert report.to_json().startswith("{")
        assert report.to_text().startswith("Consensus of ")
