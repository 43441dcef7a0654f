"""What the templates of charts draw, in numbers: the squares of a heat map and the points of curves."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..predictions import FloatArray
from ..text import shown
from .evaluation import PrecisionRecall, ReliabilityCurve
from .findings import figure

_STEPS = 5  # shades on either side of 0
SHADES = [
    *(f"n{step}" for step in range(_STEPS, 0, -1)),
    "z",
    *(f"p{step}" for step in range(1, _STEPS + 1)),
]
_WITH_FIGURES = 12  # rows up to which squares show their figures
_KINDS = (
    "other",
    "dots",
    "two",
    "one",
)  # classes of the style sheet; what is drawn last is on top


class Heat(NamedTuple):
    """A symmetric matrix of correlations, ready to be drawn."""

    names: list[str]
    cell: int  # width of a square
    margin: int  # of the names, left and above
    limit: float  # at which the shades end
    squares: dict[
        str, list[tuple[int, int, float]]
    ]  # by shade: row, column and correlation
    with_figures: bool
    highest: str  # the pair and its correlation
    lowest: str


def heat(names: Sequence[str], values: FloatArray, limit: float | None = None) -> Heat:
    """Lay out a heat map; without a `limit`, shades end at the strongest correlation of two different things.

    Examples
    --------
    >>> chart = heat(["a", "b"], np.array([[1.0, 0.5], [0.5, 1.0]]), 1.0)
    >>> chart.squares["p2"], chart.highest
    ([(0, 1, 0.5), (1, 0, 0.5)], 'a and b, 0.50')
    """
    from rich.cells import cell_len

    k = len(names)
    apart = np.argwhere(~np.eye(k, dtype=np.bool_)).tolist()
    limit = limit or max(0.05, max(abs(float(values[i, j])) for i, j in apart))
    squares: dict[str, list[tuple[int, int, float]]] = {}
    for i, j in apart:
        step = int(np.clip(np.rint(values[i, j] / limit * _STEPS), -_STEPS, _STEPS))
        squares.setdefault(SHADES[step + _STEPS], []).append(
            (i, j, float(values[i, j]))
        )

    low, high = (
        f"{shown(names[i], 24)} and {shown(names[j], 24)}, {figure(values[i, j])}"
        for i, j in (
            choose(apart, key=lambda at: values[at[0], at[1]]) for choose in (min, max)
        )
    )
    texts = [shown(name, 18) for name in names]
    if k <= 8:
        cell = 46
    else:
        if k <= _WITH_FIGURES:
            cell = 38
        else:
            if k <= 24:
                cell = 18
            else:
                cell = 15

    margin = 10 + round(6.6 * max(map(cell_len, texts)))
    return Heat(texts, cell, margin, limit, squares, k <= _WITH_FIGURES, high, low)


def lines(
    found: Sequence[PrecisionRecall] | Sequence[ReliabilityCurve], x: str, y: str
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the kind of each curve and its points on 260 × 200 pixels, in the order in which they are drawn.

    Examples
    --------
    >>> curve = PrecisionRecall(
    ...     name="MV", kind="method", recall=(0.0, 1.0), precision=(1.0, 0.5)
    ... )
    >>> lines([curve], "recall", "precision")
    [('two', [('0', '0'), ('260', '100')])]
    """
    drawn = []
    for curve in found:
        kind = {"consensus": "one", "model": "dots"}.get(
            curve.kind, "two" if curve.name == "MV" else "other"
        )
        across, up = (np.clip(getattr(curve, axis), 0, 1).tolist() for axis in (x, y))
        points = [
            (f"{260 * a:.4g}", f"{200 - 200 * b:.4g}")
            for a, b in zip(across, up, strict=True)
        ]
        drawn.append((kind, points))

    return sorted(drawn, key=lambda line: _KINDS.index(line[0]))
