"""What privacy costs: ranking loss and microAUC against ε and the number of instances; makes curve.md and curve.svg.

    python docs/privacy/curve.py

A panel of 5 models and 20 labels is made, statistics of its first n instances are
released with noise, and 5,000 other instances are judged. Means of 10 releases; each
draws new noise, so that another run differs in the last digit or two.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

import mlconsensus as mlc

EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]
SIZES = [1_000, 10_000, 100_000]
DELTA, JUDGED, RELEASES = 1e-6, 5_000, 10
METHODS = {"MLCM-r": mlc.MLCMr, "MLCM-a": mlc.MLCMa}
METRICS = {"ranking loss": mlc.metrics.ranking_loss, "microAUC": mlc.metrics.micro_auc}
COLOURS = ["#d95f02", "#7570b3", "#1b9e77"]

Figures = dict[str, float]  # by metric


def main(folder: Path) -> None:
    """Measure, and write both files."""
    panel, truth = mlc.datasets.make_panel(max(SIZES) + JUDGED, random_state=0)
    judged, truth = panel[max(SIZES) :], truth[max(SIZES) :]
    vote = judge(truth, mlc.majority_vote(judged))
    found: dict[tuple[str, int, float | None], Figures] = {}
    for name, kind in METHODS.items():
        for n in SIZES:
            found[name, n, None] = judge(truth, kind().fit(panel[:n]).transform(judged))
            for epsilon in EPSILONS:
                releases = [
                    mlc.privacy.fit(
                        kind(), panel[:n], epsilon=epsilon, delta=DELTA
                    ).transform(judged)
                    for _ in range(RELEASES)
                ]
                each = [judge(truth, scores) for scores in releases]
                found[name, n, epsilon] = {
                    metric: float(np.mean([one[metric] for one in each]))
                    for metric in METRICS
                }
            print(
                name,
                n,
                *(
                    f"{found[name, n, epsilon]['ranking loss']:.4f}"
                    for epsilon in [*EPSILONS, None]
                ),
            )
    (folder / "curve.md").write_text(table(found, vote))
    (folder / "curve.svg").write_text(drawing(found, vote))


def judge(truth: np.ndarray, scores: np.ndarray) -> Figures:
    """Give every metric of one set of scores."""
    return {
        metric: float(measure(truth, scores)) for metric, measure in METRICS.items()
    }


def table(found: dict[tuple[str, int, float | None], Figures], vote: Figures) -> str:
    """Write a table for each metric, as Markdown."""
    lines = []
    for metric in METRICS:
        columns = " | ".join([f"ε = {epsilon:g}" for epsilon in EPSILONS] + ["exact"])
        lines += [
            f"| {metric} | instances | {columns} |",
            "|---" * (len(EPSILONS) + 3) + "|",
        ]
        for name in METHODS:
            for n in SIZES:
                row = " | ".join(
                    f"{found[name, n, epsilon][metric]:.4f}"
                    for epsilon in [*EPSILONS, None]
                )
                lines.append(f"| {name} | {n:,} | {row} |")
        lines += [
            f"\nMajority voting, which needs no statistics: {vote[metric]:.4f}.\n"
        ]
    return "\n".join(lines)


def drawing(found: dict[tuple[str, int, float | None], Figures], vote: Figures) -> str:
    """Draw ranking loss against ε, a picture for each method and a line for each n."""
    width, height, left, top = 330, 230, 60, 40
    values = [one["ranking loss"] for one in found.values()] + [vote["ranking loss"]]
    low, high = 0.9 * min(values), 1.05 * max(values)
    span = np.log(EPSILONS[-1] / EPSILONS[0])

    def x(epsilon: float) -> float:
        return left + width * float(np.log(epsilon / EPSILONS[0]) / span)

    def y(value: float) -> float:
        return top + height * (high - value) / (high - low)

    parts = []
    for at, name in enumerate(METHODS):
        shift = at * (width + 90)
        lines = [
            f'<text x="{left}" y="{top - 15}" font-weight="bold">{escape(name)}: ranking loss</text>'
        ]
        for tick in np.linspace(low, high, 5):
            lines.append(f'<path d="M{left} {y(tick):.1f}h{width}" stroke="#ddd"/>')
            lines.append(
                f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.3f}</text>'
            )
        for epsilon in EPSILONS:
            lines.append(
                f'<text x="{x(epsilon):.1f}" y="{top + height + 18}" text-anchor="middle">{epsilon:g}</text>'
            )
        lines.append(
            f'<text x="{left + width / 2}" y="{top + height + 36}" text-anchor="middle">ε</text>'
        )
        lines.append(
            f'<path d="M{left} {y(vote["ranking loss"]):.1f}h{width}" stroke="#888" stroke-dasharray="2 3"/>'
        )
        for n, colour in zip(SIZES, COLOURS, strict=True):
            points = " ".join(
                f"{x(one):.1f},{y(found[name, n, one]['ranking loss']):.1f}"
                for one in EPSILONS
            )
            exact = y(found[name, n, None]["ranking loss"])
            lines.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
            )
            lines.append(
                f'<path d="M{left} {exact:.1f}h{width}" stroke="{colour}" stroke-dasharray="6 4"/>'
            )
        parts.append(f'<g transform="translate({shift} 0)">' + "".join(lines) + "</g>")
    for at, (n, colour) in enumerate(zip(SIZES, COLOURS, strict=True)):
        at_x = left + at * 130
        parts.append(
            f'<rect x="{at_x}" y="{top + height + 56}" width="14" height="4" fill="{colour}"/>'
        )
        parts.append(f'<text x="{at_x + 20}" y="{top + height + 63}">n = {n:,}</text>')
    note = "solid: private; dashed: exact; dotted: majority voting"
    parts.append(f'<text x="{left + 400}" y="{top + height + 63}">{note}</text>')
    size = f'width="{2 * width + 190}" height="{top + height + 80}"'
    style = 'font-family="sans-serif" font-size="12" style="background:white"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
        + "\n".join(parts)
        + "</svg>\n"
    )


if __name__ == "__main__":
    main(Path(__file__).parent)
