"""The figures of a report against figures worked out another way."""

import itertools
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from scipy.special import expit
from sklearn.metrics import f1_score, precision_recall_curve

import mlconsensus as mlc
from mlconsensus.insight import diagnostics
from mlconsensus.report import Report, changes, judged, labels, models, summarise
from mlconsensus.report.changes import departure
from mlconsensus.report.charts import heat
from mlconsensus.report.findings import actions, findings
from mlconsensus.report.judged import calibration_error
from mlconsensus.report.origin import hash_predictions
from panels import DEGENERATE, panels


@pytest.fixture(scope="module")
def made():
    return mlc.datasets.make_panel(
        400, 9, 5, quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, known_labels=0.8, missing=0.1, random_state=0
    )


@pytest.fixture(scope="module")
def consensus(made):
    return mlc.combine(made.predictions)


@pytest.fixture(scope="module")
def summary(consensus, made):
    return summarise(consensus, made.truth)


def test_panel(made, summary):
    scores = made.predictions.to_array()
    for k, found in enumerate(summary.panel.models):
        said = ~np.isnan(scores[k])
        assert found.missing == pytest.approx(1 - said.mean())
        assert (found.instances, found.labels) == (said.any(axis=1).sum(), said.any(axis=0).sum())
        assert found.cardinality == pytest.approx(np.nansum(scores[k]) / said.any(axis=1).sum())
        assert found.decides
    assert summary.panel.missing == pytest.approx(np.isnan(scores).mean())
    assert summary.panel.cardinality == pytest.approx(np.nanmean(scores, axis=0).sum(axis=1).mean())


def test_scores_are_not_decisions():
    panel = mlc.Predictions([[[0.0, 1.0]], [[0.5, 1.0]]])
    assert [found.decides for found in summarise(mlc.combine(panel)).panel.models] == [True, False]


def test_models(made, consensus, summary):
    found = consensus.diagnostics.panel
    at = [found.models.index(name) for name in summary.models.order]
    assert sorted(at) == list(range(5))
    np.testing.assert_array_equal(summary.models.agreement, found.agreement[np.ix_(at, at)])
    for k, row in enumerate(summary.models.rows):
        others = [(found.agreement[k, q], name) for q, name in enumerate(found.models) if q != k]
        assert (row.agreement, row.nearest) == max(others)
        assert row.weight == pytest.approx(consensus.combiner.model_weights_[k])
    assert summary.models.looks_random == ("model_4",)
    assert summary.models.rows[4].remark == "answers as if at random"
    pairs = [found.agreement[k, q] for k, q in itertools.combinations(range(5), 2)]
    assert summary.models.mean_agreement == pytest.approx(np.mean(pairs))


def test_pairs_that_share_few_instances_are_not_named():
    rng = np.random.default_rng(0)
    truth = rng.random((200, 6)) < 0.4
    scores = (truth ^ (rng.random((5, 200, 6)) < 0.2)).astype(float)
    scores[0, 4:] = np.nan
    scores[1, :4] = scores[0, :4]  # four instances that they agree on, and that is all of the first
    panel = mlc.Predictions(scores)
    found = summarise(mlc.combine(panel))
    near = diagnostics.examine(panel.select(models=panel.models[1:])).agreement - 3 * np.eye(4)
    assert (found.models.rows[0].nearest, found.models.rows[0].agreement) == (None, None)
    assert found.models.rows[1].nearest == panel.models[1 + near[0].argmax()]
    one, other = np.unravel_index(near.argmax(), near.shape)
    assert f"closest are model_{one + 1} and model_{other + 1} ({near.max():.2f})" in findings(found)[0]
    assert "model_0" not in heat(found.models.order, found.models.agreement).highest
    assert "<td>–</td>" in mlc.combine(panel).report().to_html()
    few = summarise(mlc.combine(panel[:4]))  # where all share few, they are named
    assert few.models.rows[0].nearest == "model_1"
    apart = mlc.Predictions([[[1.0, 0], [np.nan, np.nan]], [[np.nan, np.nan], [1, 0]]])
    assert "No two models speak about the same instance" in findings(summarise(mlc.combine(apart)))[0]


def test_models_are_examined_once(made, monkeypatch):
    examined, examine = [], diagnostics.examine
    monkeypatch.setattr(diagnostics, "examine", lambda *given: examined.append(given) or examine(*given))
    mlc.combine(made.predictions).report(made.truth).to_html()
    assert len(examined) == 1


def test_like_stands_beside_like():
    block = np.kron(np.eye(2), np.ones((3, 3)))
    mixed = np.array([0, 3, 1, 4, 2, 5])
    order = models.ordered(block[np.ix_(mixed, mixed)])
    groups = [int(mixed[at] >= 3) for at in order]
    assert groups in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])


def test_labels(consensus, summary):
    chosen = consensus.labels
    used = chosen.any(axis=0)
    at = [consensus.label_names.index(name) for name in summary.labels.order]
    assert sorted(at) == np.flatnonzero(used).tolist()
    np.testing.assert_allclose(summary.labels.correlation, np.corrcoef(chosen[:, at].T.astype(float)), atol=1e-10)
    for pair in summary.labels.pairs:
        one, other = (chosen[:, consensus.label_names.index(name)] for name in (pair.one, pair.other))
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
    found = labels.summarise_labels(names, chosen, none, none, np.zeros(120))
    assert len(found.order) == labels.MOST_LABELS
    assert {f"l{j}" for j in range(60, 80)} <= set(found.order)
    assert len(found.rows) == 120
    assert {(pair.one, pair.other) for pair in found.pairs[:10]} == {(f"l{j}", f"l{j + 10}") for j in range(60, 70)}


def test_pairs_are_counted_and_those_that_go_together_least_are_listed():
    """Labels that exclude each other are never together, and tell as much as those that always are."""
    rng = np.random.default_rng(0)
    chosen = rng.random((500, 8)) < 0.3
    chosen[:, 7] &= ~chosen[:, 0]
    names, none = tuple("abcdefgh"), np.zeros(8, dtype=np.int64)
    found = labels.summarise_labels(names, chosen, none, none, np.zeros(8))
    every = sorted(
        ((np.corrcoef(chosen[:, i], chosen[:, j])[0, 1], names[i], names[j]) for i in range(8) for j in range(i)),
        reverse=True,
    )
    assert (found.n_pairs, len(found.pairs)) == (28, 20)
    kept = [pair.correlation for pair in found.pairs]
    assert kept == pytest.approx([one[0] for one in (*every[:10], *every[-10:])])
    assert (found.pairs[-1].one, found.pairs[-1].other, found.pairs[-1].together) == ("a", "h", 0)
    summary = summarise(mlc.combine([chosen, chosen], method="mv"))
    report = Report(summary._replace(labels=found))
    assert "The 10 pairs of labels that go together most, and the 10 that do least, of 28" in report.to_html()
    text = report.to_text()
    assert "… and 18 between the 5 that go together most and the 5 that do least" in text
    last = ["a", "h", "0", f"{found.pairs[-1].expected:.1f}", f"−{-kept[-1]:.2f}"]
    assert last in [line.split() for line in text.splitlines()]


def by_all_sets(vote, chosen):
    """Compare with every label set of the same size that has most votes: the definition, spelt out."""
    size = int(chosen.sum())
    sets = list(itertools.combinations(range(len(vote)), size))
    most = max(sum(vote[list(s)]) for s in sets)
    best = [set(s) for s in sets if sum(vote[list(s)]) > most - 1e-9]
    own = set(np.flatnonzero(chosen).tolist())
    return own - set.union(*best), set.intersection(*best) - own, len(best) > 1


@given(scores=panels())
def test_added_and_dropped_are_what_no_and_every_best_vote_has(scores):
    consensus = mlc.combine(scores, method="mlcm-a")
    found = departure(consensus.vote, consensus.labels)
    literal = [by_all_sets(vote, chosen) for vote, chosen in zip(consensus.vote, consensus.labels, strict=True)]
    l = scores.shape[2]
    assert found.added.tolist() == [sum(j in added for added, _, _ in literal) for j in range(l)]
    assert found.dropped.tolist() == [sum(j in dropped for _, dropped, _ in literal) for j in range(l)]
    assert found.tied.tolist() == [tied for _, _, tied in literal]
    assert (found.overruled > 0).tolist() == [bool(added or dropped) for added, dropped, _ in literal]


def test_changes(consensus, summary):
    found = summary.changes
    rows = {row.name: row for row in found.instances}
    literal = [by_all_sets(vote, chosen) for vote, chosen in zip(consensus.vote, consensus.labels, strict=True)]
    assert found.n_added == sum(len(added) for added, _, _ in literal)
    assert found.n_dropped == sum(len(dropped) for _, dropped, _ in literal)
    assert found.n_changed == sum(bool(added or dropped) for added, dropped, _ in literal)
    assert len(rows) == changes.MOST_INSTANCES < len(consensus.scores)
    assert found.n_moved_shown == min(found.n_changed, changes.MOST_MOVED)
    sets = consensus.label_sets()
    for i, name in enumerate(consensus.instances.tolist()):
        if str(name) in rows:
            row = rows[str(name)]
            assert row.labels == sets[i]
            assert {consensus.label_names.index(label) for label in row.added} == literal[i][0]
            assert {consensus.label_names.index(label) for label in row.dropped} == literal[i][1]
    ranked = [row.overruled for row in found.instances[: found.n_moved_shown]]
    assert ranked == sorted(ranked, reverse=True)
    assert min(ranked) > 0


@pytest.mark.parametrize("method", mlc.COMBINERS)
def test_reasons_add_up_to_the_score(method, made):
    consensus = mlc.combine(made.predictions[:60], method=method)
    for row in summarise(consensus).changes.instances:
        i = consensus.instances.tolist().index(int(row.name))
        for why in row.reasons:
            score = consensus.scores[i, consensus.label_names.index(why.label)]
            assert why.score == pytest.approx(score, abs=1e-10)
            assert why.vote == consensus.vote[i, consensus.label_names.index(why.label)]
            parts = sum(part.contribution for part in why.parts) + why.others + why.baseline + why.remainder
            if np.isfinite(parts):
                assert parts == pytest.approx(why.total, abs=1e-9)
            total = why.total if why.scale == "score" else expit(why.total)
            assert total == pytest.approx(score, abs=1e-9)
        assert {why.label for why in row.reasons if why.change == "added"} <= set(row.added)
        assert row.reasons[-1].label == consensus.label_names[consensus.scores[i].argmax()] or "first" not in {
            why.change for why in row.reasons
        }


def test_nothing_changes_where_voting_is_the_method(made):
    found = summarise(mlc.combine(made.predictions, method="mv")).changes
    assert (found.n_changed, found.n_added, found.n_dropped, found.moved, found.n_moved_shown) == (0, 0, 0, 0, 0)


def test_judged(made, consensus, summary):
    found = summary.judged
    panel, truth = made
    by_name = {row.name: row.metrics for row in found.results}
    assert [row.kind for row in found.results] == [
        "consensus",
        *["method"] * (len(mlc.COMBINERS) - 1),
        *["model"] * 5,
        "mean",
    ]
    for name, kind in mlc.COMBINERS.items():
        fitted = kind().fit(panel)
        scores = fitted.transform(panel)
        fair = mlc.decisions.match_total(scores, int(consensus.labels.sum()))  # as many as the consensus gives
        assert by_name[name] == mlc.metrics.evaluate(truth, scores, fair if kind.comparable else fitted.predict(panel))
    assert {name: by_name[name] for name in (*panel.models, "BM")} == mlc.metrics.evaluate_models(truth, panel)
    literal = [by_all_sets(vote, chosen) for vote, chosen in zip(consensus.vote, consensus.labels, strict=True)]
    for j, gain in enumerate(found.labels):
        own, voting = consensus.labels[:, j], consensus.labels[:, j].copy()
        for i, (added, dropped, _) in enumerate(literal):
            voting[i] = (voting[i] and j not in added) or j in dropped
        assert gain.voting == pytest.approx(f1_score(truth[:, j], voting, zero_division=0))
        assert gain.consensus == pytest.approx(f1_score(truth[:, j], own, zero_division=0))
        assert gain.mended == ((voting != truth[:, j]) & (own == truth[:, j])).sum()
        assert gain.spoiled == ((voting == truth[:, j]) & (own != truth[:, j])).sum()
        assert gain.relevant == truth[:, j].sum()


def test_gains_leave_out_what_voting_ties_whatever_the_order_of_labels():
    panel, truth = mlc.datasets.make_panel(400, 9, 5, shared_errors=0, random_state=0)
    summary = summarise(mlc.combine(panel, method="mlcm-a"), truth)
    turned = summarise(mlc.combine(panel.select(labels=panel.labels[::-1]), method="mlcm-a"), truth[:, ::-1])
    assert summary.changes.n_tied
    assert turned.judged.labels[::-1] == summary.judged.labels
    changed = summary.changes.n_added + summary.changes.n_dropped
    assert sum(gain.mended + gain.spoiled for gain in summary.judged.labels) == changed > 0


def test_clusterings_beside_the_models(made):
    """Voting and the other methods are judged on the models alone, where they cannot use clusterings."""
    panel, truth = made
    found = mlc.combine(panel.with_clusterings({"halves": [i % 2 for i in range(len(panel))]}), method="mlcm-r")
    results = {row.name: row.metrics for row in found.report(truth).summary.judged.results}
    for name in ("MV", "MLCM-a"):
        assert results[name]["ranking_loss"] == mlc.metrics.ranking_loss(
            truth, mlc.COMBINERS[name]().fit_transform(panel)
        )
    assert results["MLCM-r"]["ranking_loss"] == mlc.metrics.ranking_loss(truth, found.scores)


def test_curves(made, consensus, summary):
    curve = summary.judged.precision_recall[0]
    precision, recall, _ = precision_recall_curve(made.truth.ravel(), consensus.scores.ravel())
    known = {(round(r, 9), round(p, 9)) for r, p in zip(recall, precision, strict=True)}
    assert 2 < len(curve.recall) <= 80
    assert {(round(r, 9), round(p, 9)) for r, p in zip(curve.recall, curve.precision, strict=True)} <= known
    assert curve.recall[-1] == 1
    found = summary.judged.reliability[0]
    flat, relevant = consensus.scores.ravel(), made.truth.ravel()
    bins = [(flat >= low) & (flat < high) for low, high in itertools.pairwise([-9, *np.arange(1, 10) / 10, 9])]
    full = [cells for cells in bins if cells.any()]
    assert found.cells == tuple(int(cells.sum()) for cells in full)
    assert found.score == pytest.approx([flat[cells].mean() for cells in full])
    assert found.relevant == pytest.approx([relevant[cells].mean() for cells in full])


def test_large_truths_are_sampled_and_large_methods_left_out(made, consensus, monkeypatch):
    monkeypatch.setattr(judged, "MOST_CELLS", 9 * 40)
    monkeypatch.setattr(judged, "available_memory", lambda: 1)
    found = summarise(mlc.combine(made.predictions, method="mlcm-a"), made.truth).judged
    assert (found.n_sampled, found.n_instances, found.left_out) == (40, 400, ("MLCM-r",))
    at = np.linspace(0, 399, 40).round().astype(int)
    fitted = mlc.MLCMa().fit(made.predictions)
    assert found.results[0].metrics["ranking_loss"] == pytest.approx(
        mlc.metrics.ranking_loss(made.truth[at], fitted.transform(made.predictions)[at])
    )


def test_truth_by_name_about_a_part(made, consensus):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(made.truth, columns=consensus.label_names).iloc[10:60, 2:5]
    found = summarise(consensus, frame).judged
    assert (found.n_instances, [gain.name for gain in found.labels]) == (50, list(consensus.label_names[2:5]))
    empty = int((~frame.to_numpy().any(axis=1)).sum())
    assert empty > 1
    counted = f"{empty} instances without a relevant label: any that is put first there is one error"
    assert found.note == f"judged on 50 of 400 instances and 3 of 9 labels; {counted}"


def test_a_truth_of_another_shape_is_refused(consensus):
    with pytest.raises(mlc.InputError, match=r"truth: found shape \(3, 2\), expected \(400, 9\)"):
        consensus.report(np.zeros((3, 2), dtype=bool))


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
        "panel, truth = mlc.datasets.make_panel(80, 8, 4, missing=0.1, random_state=3)\n"
        "report = mlc.combine(panel).report(truth)\n"
        "[report.save(sys.argv[1] + end) for end in ('.html', '.json', '.txt')]\n"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC+{seed}"}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / seed)], check=True, env=environment)
    for end in (".html", ".json", ".txt"):
        assert (tmp_path / f"1{end}").read_bytes() == (tmp_path / f"2{end}").read_bytes()
        assert str(tmp_path) not in (tmp_path / f"1{end}").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_panels(name):
    panel = mlc.Predictions(DEGENERATE[name])
    truth = np.zeros(panel.shape[1:], dtype=bool)
    truth[0, 0] = True
    for report in (mlc.combine(panel).report(truth), mlc.combine(panel, method="ds").report()):
        assert report.to_html().startswith("<!doctype html>")
        assert report.to_json().startswith("{")
        assert report.to_text().startswith("Consensus of ")


def test_the_report_begins_with_what_to_do():
    panel, truth = mlc.datasets.make_panel(quality=[0.8, 0.8, 0.8, 0.8, 0], shared_errors=0, random_state=0)
    found = mlc.combine(panel, method="filter")
    report = found.report()
    unknown, known = (actions(each.summary) for each in (report, found.report(truth)))
    assert [action.section for action in unknown] == ["models", "changes"]
    assert unknown[0].sentence.startswith(f"Look at {panel.models[4]}: ")
    assert unknown[1].sentence.startswith("Ask a person about 100 instances before you rely on it, first about ")
    assert known[-1].sentence.startswith("Use voting in its place: in average precision it is 0.")
    assert " behind voting (−0." in known[-1].sentence
    other, other_truth = mlc.datasets.make_panel(random_state=0)
    trusted = actions(mlc.combine(other, method="filter").report(other_truth).summary)[-1]
    assert trusted.sentence.startswith("Use it: it ranks better than chance (microAUC 0.")
    assert re.search(r"in average precision it is 0\.\d+ ahead of voting \(0\.\d+ to 0\.\d+\) and ", trusted.sentence)
    page = report.to_html()
    assert page.index("What to do now") < page.index("What was found")
    assert '<a href="#changes">The evidence</a>' in page
    assert "What to do now:" in report.to_text()


@pytest.mark.parametrize("method", ["filter", "mv"])
def test_a_consensus_that_is_chance_or_worse_is_not_to_be_used(made, method):
    panel, truth = made
    rng = np.random.default_rng(0)
    random = rng.random((4, 400, 9)) < np.linspace(0.1, 0.5, 9)  # it knows how frequent labels are, and no more
    mixed = rng.random((400, 9)) < np.linspace(0.1, 0.5, 9)
    for said, known in ((panel, ~truth), (random, mixed)):
        report = mlc.combine(said, method=method).report(known)
        first = actions(report.summary)[-1].sentence
        assert first.startswith("Do not use it: it ranks no better than chance (microAUC 0.")
        assert "Use it" not in report.to_text()
        assert "label sets are behind" not in report.to_text()
    assert report.summary.judged.results[0].metrics["micro_auc"] > 0.55


def test_voting_is_not_compared_with_itself(made):
    report = mlc.combine(made.predictions, method="mv").report(made.truth)
    assert [rival.kind for rival in report.summary.judged.rivals] == ["model"]
    assert "voting (" not in report.to_text()
    assert "that of voting" not in report.to_text()


def test_a_model_that_is_better_by_far_is_to_be_used_in_its_place():
    rng = np.random.default_rng(0)
    truth = rng.random((300, 8)) < 0.3
    panel = [truth, *(truth ^ (rng.random((3, 300, 8)) < 0.35))]
    first = actions(mlc.combine(panel, method="mv").report(truth).summary)[-1].sentence
    assert first.startswith("Use model_0 in its place: in average precision it is 0.")
    assert first.count(" behind the best model, model_0 (−0.") == 1


def test_nobody_is_compared_on_few_instances_and_all_on_the_same():
    """The best of many who did a handful each is good by chance; who skips what is hard has it easier than all."""
    rng = np.random.default_rng(0)
    truth = rng.random((300, 6)) < 0.3
    hard = np.arange(300) >= 180
    said = (truth ^ (rng.random((5, 300, 6)) < np.where(hard, 0.4, 0.05)[:, None])).astype(float)
    said[3, 6:] = said[4, hard] = np.nan
    said[3, :6] = truth[:6]
    found = summarise(mlc.combine(said), truth)
    rows = {row.name: row for row in found.judged.results}
    assert rows["model_3"].consensus is None
    assert rows["model_3"].metrics["micro_f1"] == 1
    scores, sets = (values[~hard] for values in (mlc.combine(said).scores, mlc.combine(said).labels))
    assert rows["model_4"].consensus == mlc.metrics.evaluate(truth[~hard], scores, sets)
    assert rows["model_4"].metrics["micro_f1"] > rows[found.origin.method].metrics["micro_f1"] + 0.02
    assert not any("label sets are behind" in line for line in findings(found))
    assert "model_3" not in {rival.name for rival in found.judged.rivals}
    assert found.judged.precision_recall[-1].recall[0] > 0.8  # of what it has seen


def test_models_that_hardly_agree_are_not_to_be_combined():
    random = np.random.default_rng(0).random((3, 200, 5)) < 0.3
    assert actions(mlc.combine(random).report().summary)[0].sentence.startswith("Do not combine these models")


def test_nothing_is_left_to_ask_where_all_is_known():
    panel, truth = mlc.datasets.make_panel(n_instances=30, random_state=0)
    found = actions(mlc.combine(panel, gold=truth.astype(float)).report().summary)
    assert found[-1].sentence == "Trust it: every instance has an answer."


def test_calibration_error_of_probabilities():
    rng = np.random.default_rng(0)
    likely = rng.random((500, 4))
    right, wrong = (calibration_error(rng.random(likely.shape) < p, likely) for p in (likely, likely / 2))
    assert right.low <= right.error < 0.05
    assert wrong.low < 0.25 < wrong.high


def test_a_model_with_better_label_sets_is_named():
    """Three that err alike outvote one who knows."""
    rng = np.random.default_rng(0)
    truth = rng.random((300, 8)) < 0.2
    alike = truth ^ (rng.random(truth.shape) < 0.15)
    said = {name: alike ^ (rng.random(truth.shape) < 0.05) for name in ("ann", "bob", "cleo")}
    found = findings(summarise(mlc.combine(said | {"dora": truth ^ (rng.random(truth.shape) < 0.01)}), truth))
    assert any(line.startswith("Its label sets are behind those of a model (micro F1 0.") for line in found)
    own = {name: truth ^ (rng.random(truth.shape) < 0.1) for name in ("ann", "bob", "cleo")}
    good = findings(summarise(mlc.combine(own), truth))
    assert not any("label sets are behind" in line for line in good)
