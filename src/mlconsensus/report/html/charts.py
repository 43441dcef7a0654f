"""Charts drawn by hand as SVG: heat maps and curves; the style sheet has their colours, for light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...arithmetic.products import FloatArray
from ...terminal import shown, width
from ..findings import figure
from .markup import Html, el, join

_STEPS = 5  # shades on either side of 0
_WITH_FIGURES = 12  # rows up to which cells show their figures


class Line(NamedTuple):
    """A curve, or the dots of single points."""

    x: Sequence[float]
    y: Sequence[float]
    kind: str  # a class of the style sheet: "one", "two", "other" or "dots"


def heat_map(key: str, names: Sequence[str], values: FloatArray, about: str, limit: float) -> Html:
    """Draw a symmetric matrix of correlations in shades that end at `limit`.

    The script finds the names and figures under `key`.

    Examples
    --------
    >>> drawn = heat_map("models", ["a", "b"], np.array([[1.0, 0.5], [0.5, 1.0]]), "Agreement of a and b.", 1)
    >>> drawn.count("0.50"), 'aria-label="Agreement of a and b."' in drawn
    (2, True)
    """
    k = len(names)
    cell = 46 if k <= 8 else 38 if k <= _WITH_FIGURES else 18 if k <= 24 else 15
    texts = [shown(name, 18) for name in names]
    left = 10 + round(6.6 * max(map(width, texts)))
    top = 10 + round(6.6 * max(map(width, texts)))
    steps = np.clip(np.rint(values / limit * _STEPS), -_STEPS, _STEPS).astype(int)
    shapes = []
    for step in range(-_STEPS, _STEPS + 1):
        squares = [
            f"M{j * cell} {i * cell}h{cell - 1}v{cell - 1}h{1 - cell}z"
            for i, j in np.argwhere(steps == step).tolist()
            if i != j
        ]
        if squares:
            shapes.append(el("path", class_=_shade(step), d="".join(squares)))
    figures = [
        el(
            "text",
            figure(float(values[i, j])),
            x=j * cell + cell // 2,
            y=i * cell + cell // 2 + 4,
            class_=f"t {_shade(s)}",
        )
        for (i, j), s in np.ndenumerate(steps)
        if k <= _WITH_FIGURES and i != j
    ]
    rows = [el("text", text, x=-6, y=i * cell + cell // 2 + 4, class_="r") for i, text in enumerate(texts)]
    columns = [
        el("text", text, transform=f"translate({j * cell + cell // 2 + 4} -6) rotate(-90)", class_="c")
        for j, text in enumerate(texts)
    ]
    across, down = left + k * cell + 4, top + k * cell + 4
    inside = el("g", *shapes, *figures, *rows, *columns, transform=f"translate({left} {top})")
    drawn = el(
        "svg",
        inside,
        viewBox=f"0 0 {across} {down}",
        width=across,
        height=down,
        role="img",
        aria_label=about,
        class_="heat",
        data_names=key,
        data_frame=f"{left} {top} {cell} {k}",
    )
    readout = el("p", "Point at a cell to read it.", class_="readout", aria_hidden="true")
    return el("figure", el("div", drawn, class_="scroll"), _legend(limit), readout, class_="heat")


def curves(lines: Sequence[Line], x: str, y: str, about: str, *, diagonal: bool = False) -> Html:
    """Draw curves in the unit square.

    Examples
    --------
    >>> 'points="0,200 260,0"' in curves([Line([0, 1], [0, 1], "one")], "recall", "precision", "A curve.")
    True
    """
    w, h = 260, 200
    grid = [el("path", d="".join(f"M0 {h * t // 4}h{w}M{w * t // 4} 0v{h}" for t in range(5)), class_="grid")]
    ticks = [
        join(
            el("text", f"{t / 4:g}", x=w * t // 4, y=h + 16, class_="m"),
            el("text", f"{t / 4:g}", x=-7, y=h - h * t // 4 + 4, class_="r"),
        )
        for t in range(5)
    ]
    if diagonal:
        grid.append(el("path", d=f"M0 {h}L{w} 0", class_="diagonal"))
    shapes = []
    for line in sorted(lines, key=lambda line: ("other", "dots", "two", "one").index(line.kind)):
        points = [
            (f"{w * min(max(a, 0), 1):.4g}", f"{h - h * min(max(b, 0), 1):.4g}")
            for a, b in zip(line.x, line.y, strict=True)
        ]
        if line.kind != "dots":
            shapes.append(el("polyline", points=" ".join(",".join(point) for point in points), class_=line.kind))
        if line.kind == "dots" or (diagonal and line.kind != "other"):
            shapes += [el("circle", cx=a, cy=b, r=3, class_=line.kind) for a, b in points]
    titles = [
        el("text", x, x=w // 2, y=h + 36, class_="m"),
        el("text", y, transform=f"translate(-38 {h // 2}) rotate(-90)", class_="m"),
    ]
    inside = el("g", *grid, *ticks, *titles, *shapes, transform="translate(48 10)")
    return el("svg", inside, viewBox="0 0 322 252", role="img", aria_label=about, class_="curves")


def _shade(step: int) -> str:
    return "z" if step == 0 else f"{'n' if step < 0 else 'p'}{abs(step)}"


def _legend(limit: float) -> Html:
    boxes = [el("i", class_=_shade(step)) for step in range(-_STEPS, _STEPS + 1)]
    return el(
        "p", el("span", f"−{limit:.2f}"), el("span", *boxes, class_="boxes"), el("span", f"+{limit:.2f}"),
        class_="legend", aria_hidden="true",
    )  # fmt: skip
