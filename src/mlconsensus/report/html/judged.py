"""The section "Against the truth"."""

from __future__ import annotations

from collections.abc import Sequence

from ...evaluation.metrics import LABEL_SET_METRICS, LOWER_IS_BETTER, RANKING_METRICS
from ...tables import TITLES, best_rows
from ...terminal import shown
from ..judged import JudgedSummary, Judgement, PrecisionRecall, Reliability
from .charts import Line, curves
from .markup import Html, el, join, name, whole_name
from .panel import MOST_ROWS
from .tables import Cell, Column, bar, table

_KINDS = {"consensus": "the consensus", "method": "method", "model": "model", "mean": "models' mean"}


def judged_section(judged: JudgedSummary | None) -> Html:
    """Show how good every method and model is, or how to find out."""
    if judged is None:
        return el(
            "p",
            "No truth was given. With ",
            el("code", "--truth FILE"),
            ", or ",
            el("code", "consensus.report(truth)"),
            " in Python, this section shows the metrics of every method and model, precision–recall and reliability "
            "curves, and which labels the consensus mends or spoils. The truth is used to judge, never to combine.",
            class_="empty",
        )
    sampled = f"The figures are over an even sample of {judged.n_sampled:,} of {judged.n_instances:,} instances."
    left_out = f"Left out, since they would take gigabytes of memory: {', '.join(judged.left_out)}."
    notes = [
        f"{judged.note[:1].upper()}{judged.note[1:]}." if judged.note else "",
        sampled if judged.n_sampled < judged.n_instances else "",
        left_out if judged.left_out else "",
    ]
    return join(
        *(el("p", note) for note in notes if note),
        _metrics(judged.results),
        el(
            "div",
            _figure("Precision and recall, over all cells", _precision_recall(judged.precision_recall)),
            _figure("Reliability: how often a score comes true", _reliability(judged.reliability)),
            class_="pair",
        ),
        _key(judged),
        _figures(judged.reliability),
        el("h3", "Gains and losses by label"),
        _gains(judged),
    )


def _figure(title: str, drawn: Html) -> Html:
    return el("figure", el("figcaption", title), drawn)


def _metrics(results: Sequence[Judgement]) -> Html:
    metrics = [*RANKING_METRICS, *LABEL_SET_METRICS]
    by_place = {str(at): row.metrics for at, row in enumerate(results)}
    best = {metric: best_rows(by_place, metric) for metric in metrics}
    columns = [
        Column("Name", number=False),
        Column("What", number=False),
        *(Column(f"{TITLES[metric]} {'↓' if metric in LOWER_IS_BETTER else '↑'}") for metric in metrics),
    ]
    rows = [
        [
            _name(row),
            Cell(_KINDS[row.kind], class_="short"),
            *(
                Cell(
                    "–" if row.metrics[metric] != row.metrics[metric] else f"{row.metrics[metric]:.4f}",
                    row.metrics[metric] if row.metrics[metric] == row.metrics[metric] else None,
                    "best" if str(at) in best[metric] else None,
                )
                for metric in metrics
            ),
        ]
        for at, row in enumerate(results[:MOST_ROWS])
    ]
    return join(
        table("Every method and model against the truth", columns, rows, what="methods and models", rows_shown=20),
        el("p", "↑ more is better, ↓ less is better; the best of a column is underlined.", class_="note"),
    )


def _name(row: Judgement) -> Cell:
    if row.kind == "model":
        return Cell(whole_name(row.name, 24))
    return Cell(el("strong", row.name) if row.kind == "consensus" else row.name, class_="short")


def _kind(found: PrecisionRecall | Reliability) -> str:
    if found.kind == "consensus":
        return "one"
    return "dots" if found.kind == "model" else "two" if found.name == "MV" else "other"


def _precision_recall(found: Sequence[PrecisionRecall]) -> Html:
    own = found[0]
    about = "Precision against recall."
    if own.recall:
        middle = min(range(len(own.recall)), key=lambda at: abs(own.recall[at] - 0.5))
        about = (
            f"Precision against recall. {own.name} has a precision of {own.precision[middle]:.2f} "
            f"at a recall of {own.recall[middle]:.2f}."
        )
    return curves([Line(c.recall, c.precision, _kind(c)) for c in found], "recall", "precision", about)


def _reliability(found: Sequence[Reliability]) -> Html:
    lines = [Line(c.score, c.relevant, _kind(c)) for c in found]
    about = "Share of relevant cells against their mean score; on the diagonal, a score is a probability. "
    return curves(lines, "score", "share relevant", about + "The figures are in the table below.", diagonal=True)


def _key(judged: JudgedSummary) -> Html:
    own = judged.results[0].name
    entries = [("one", f"{own} (the consensus)")]
    if own != "MV":
        entries.append(("two", "MV (voting)"))
    entries += [("other", "the other methods"), ("dots", "each model, at scores of at least 0.5")]
    return el(
        "p", *(el("span", el("i", class_=kind), text) for kind, text in entries), class_="key", aria_hidden="true"
    )


def _figures(found: Sequence[Reliability]) -> Html:
    columns = [Column("Method", number=False), Column("Mean score"), Column("Share relevant"), Column("Cells")]
    rows = [
        [name(c.name), Cell(f"{score:.3f}", score), Cell(f"{share:.3f}", share), Cell(f"{cells:,}", cells)]
        for c in found
        for score, share, cells in zip(c.score, c.relevant, c.cells, strict=True)
    ]
    return el(
        "details",
        el("summary", "Reliability as figures"),
        table("Share of relevant cells, by the score", columns, rows, what="bins", search=False, rows_shown=30),
    )


def _gains(judged: JudgedSummary) -> Html:
    gained = [(label, label.consensus - label.voting) for label in judged.labels]
    gained.sort(key=lambda pair: -pair[1])
    most = max((abs(gain) for _, gain in gained), default=0.0) or 1.0
    columns = [
        Column("Label", number=False),
        Column("Change of F1"),
        Column("F1 of voting"),
        Column("F1 of consensus"),
        Column("Mended", about="Cells that voting has wrong and the consensus right"),
        Column("Spoiled", about="Cells that voting has right and the consensus wrong"),
        Column("Relevant", about="Instances to which the label truly belongs"),
    ]
    rows = [
        [
            Cell(whole_name(label.name)),
            Cell(bar(abs(gain) / most, f"{gain:+.3f}".replace("-", "−"), "" if gain >= 0 else "warm"), gain, "bars"),
            Cell(f"{label.voting:.3f}", label.voting),
            Cell(f"{label.consensus:.3f}", label.consensus),
            Cell(f"{label.mended:,}", label.mended),
            Cell(f"{label.spoiled:,}", label.spoiled),
            Cell(f"{label.relevant:,}", label.relevant),
        ]
        for label, gain in gained[:MOST_ROWS]
    ]
    better, worse = sum(gain > 0 for _, gain in gained), sum(gain < 0 for _, gain in gained)
    same = len(gained) - better - worse
    sentence = (
        f"Against voting, the consensus is better on {better:,} labels, worse on {worse:,}, the same on {same:,}."
    )
    if gained and gained[-1][1] < 0:
        sentence += f" It loses most on {shown(gained[-1][0].name)} ({gained[-1][1]:+.3f}).".replace("-0", "−0")
    return join(
        el("p", sentence),
        table("Label sets of consensus and of voting, label by label", columns, rows, what="labels", sorted_by=1),
    )
