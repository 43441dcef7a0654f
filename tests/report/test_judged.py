"""What a report says against the truth, beside figures worked out another way."""

import itertools

import numpy as np
import pytest
from report_panels import by_all_sets
from sklearn.metrics import f1_score, precision_recall_curve

import mlconsensus as mlc
from mlconsensus.combiners.registry import list_by_name
from mlconsensus.report import evaluation, summarize
from mlconsensus.report.evaluation import compute_calibration_error


def test_judged(made, consensus, summary):
    judged = summary.judged
    panel, truth = made
    by_name = {row.name: row.metrics for row in judged.results}
    assert [row.kind for row in judged.results] == [
        "consensus",
        *["method"] * (len(mlc.COMBINERS) - 1),
        *["model"] * 5,
        "mean",
    ]
    for kind in mlc.COMBINERS.values():
        name = kind.name
        fitted = kind().fit(panel)
        scores = fitted.transform(panel)
        fair = mlc.decision.match_total(
            scores, int(consensus.label_indicator.sum())
        )  # as many as the consensus gives
        assert by_name[name] == mlc.metrics.evaluate(
            truth, scores, fair if kind.comparable else fitted.predict(panel)
        )
    assert {
        name: by_name[name] for name in (*panel.models, "BM")
    } == mlc.metrics.evaluate_models(truth, panel)
    literal = [
        by_all_sets(vote, chosen)
        for vote, chosen in zip(consensus.vote, consensus.label_indicator, strict=True)
    ]
    for j, gain in enumerate(judged.labels):
        decided = consensus.label_indicator[:, j]
        voting = consensus.label_indicator[:, j].copy()
        for i, (added, dropped, _) in enumerate(literal):
            voting[i] = (voting[i] and j not in added) or j in dropped
        assert gain.voting == pytest.approx(
            f1_score(truth[:, j], voting, zero_division=0)
        )
        assert gain.consensus == pytest.approx(
            f1_score(truth[:, j], decided, zero_division=0)
        )
        assert gain.fixed == ((voting != truth[:, j]) & (decided == truth[:, j])).sum()
        assert gain.broken == ((voting == truth[:, j]) & (decided != truth[:, j])).sum()
        assert gain.relevant == truth[:, j].sum()


def test_gains_leave_out_what_voting_ties_whatever_the_order_of_labels():
    panel, truth = mlc.datasets.make_panel(400, 9, 5, shared_errors=0, random_state=0)
    summary = summarize(mlc.combine(panel, method="mlcm-a"), truth)
    turned = summarize(
        mlc.combine(panel.select(labels=panel.labels[::-1]), method="mlcm-a"),
        truth[:, ::-1],
    )
    assert summary.changes.n_tied
    assert turned.judged.labels[::-1] == summary.judged.labels
    changed = summary.changes.n_added + summary.changes.n_dropped
    assert (
        sum(gain.fixed + gain.broken for gain in summary.judged.labels) == changed > 0
    )


def test_clusterings_beside_the_models(made):
    """Methods that cannot use clusterings are evaluated without them."""
    panel, truth = made
    consensus = mlc.combine(
        panel.with_clusterings({"halves": [i % 2 for i in range(len(panel))]}),
        method="mlcm-r",
    )
    results = {
        row.name: row.metrics for row in consensus.report(truth).summary.judged.results
    }
    for name in ("MV", "MLCM-a"):
        assert results[name]["ranking_loss"] == mlc.metrics.ranking_loss(
            truth, list_by_name()[name]().fit_transform(panel)
        )
    assert results["MLCM-r"]["ranking_loss"] == mlc.metrics.ranking_loss(
        truth, consensus.scores
    )


def test_curves(made, consensus, summary):
    curve = summary.judged.precision_recall[0]
    precision, recall, _ = precision_recall_curve(
        made.truth.ravel(), consensus.scores.ravel()
    )
    known = {(round(r, 9), round(p, 9)) for r, p in zip(recall, precision, strict=True)}
    assert 2 < len(curve.recall) <= 80
    assert {
        (round(r, 9), round(p, 9))
        for r, p in zip(curve.recall, curve.precision, strict=True)
    } <= known
    assert curve.recall[-1] == 1
    reliability = summary.judged.reliability[0]
    flat = consensus.scores.ravel()
    relevant = made.truth.ravel()
    bins = [
        (flat >= low) & (flat < high)
        for low, high in itertools.pairwise([-9, *np.arange(1, 10) / 10, 9])
    ]
    full = [cells for cells in bins if cells.any()]
    assert reliability.cells == tuple(int(cells.sum()) for cells in full)
    assert reliability.score == pytest.approx([flat[cells].mean() for cells in full])
    assert reliability.relevant == pytest.approx(
        [relevant[cells].mean() for cells in full]
    )


def test_large_truths_are_sampled(made, consensus, monkeypatch):
    monkeypatch.setattr(evaluation, "MOST_CELLS", 9 * 40)
    judged = summarize(
        mlc.combine(made.predictions, method="mlcm-a"), made.truth
    ).judged
    assert (judged.n_sampled, judged.n_instances) == (40, 400)
    rows = np.linspace(0, 399, 40).round().astype(int)
    fitted = mlc.MLCMa().fit(made.predictions)
    assert judged.results[0].metrics["ranking_loss"] == pytest.approx(
        mlc.metrics.ranking_loss(
            made.truth[rows], fitted.transform(made.predictions)[rows]
        )
    )


def test_truth_by_name_about_a_part(made, consensus):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(made.truth, columns=consensus.labels).iloc[10:60, 2:5]
    judged = summarize(consensus, frame).judged
    assert (judged.n_instances, [gain.name for gain in judged.labels]) == (
        50,
        list(consensus.labels[2:5]),
    )
    empty = int((~frame.to_numpy().any(axis=1)).sum())
    assert empty > 1
    counted = (
        f"{empty} instances without a relevant label: whatever is ranked first "
        "is a one-error"
    )
    assert judged.note == f"judged on 50 of 400 instances and 3 of 9 labels; {counted}"


def test_a_truth_of_another_shape_is_refused(consensus):
    with pytest.raises(
        mlc.InputError, match=r"truth: found shape \(3, 2\), expected \(400, 9\)"
    ):
        consensus.report(np.zeros((3, 2), dtype=bool))


def test_calibration_error_of_probabilities():
    rng = np.random.default_rng(0)
    likely = rng.random((500, 4))
    right, wrong = (
        compute_calibration_error(rng.random(likely.shape) < p, likely)
        for p in (likely, likely / 2)
    )
    assert right.low <= right.error < 0.05
    assert wrong.low < 0.25 < wrong.high
