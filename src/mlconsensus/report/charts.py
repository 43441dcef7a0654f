"""Numbers for the templates of charts: squares of a heat map and points of curves."""

from collections.abc import Sequence
from dataclasses import dataclass

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
_MAX_ROWS_WITH_VALUES = 12  # squares of larger heat maps do not show their values

# Classes of the style sheet; the last one is drawn on top
_KINDS = ("other", "dots", "two", "one")


@dataclass(frozen=True, kw_only=True)
class Heat:
    """A symmetric matrix of correlations, ready to be drawn."""

    names: list[str]
    cell: int  # width of a square
    margin: int  # of the names, left and above
    limit: float  # at which the shades end
    squares: dict[str, list[tuple[int, int, float]]]  # by shade: row, column, value
    with_figures: bool
    highest: str  # the pair and its correlation
    lowest: str


def heat(names: Sequence[str], values: FloatArray, limit: float | None = None) -> Heat:
    """Lay out a heat map.

    Parameters
    ----------
    names : sequence of str
        Names of the k rows and columns.
    values : ndarray of shape (k, k)
        Correlations.
    limit : float, default=None
        Correlation at which the shades end. By default the strongest correlation of
        two different names.

    Returns
    -------
    Heat

    Examples
    --------
    >>> chart = heat(["a", "b"], np.array([[1.0, 0.5], [0.5, 1.0]]), 1.0)
    >>> chart.squares["p2"], chart.highest
    ([(0, 1, 0.5), (1, 0, 0.5)], 'a and b, 0.50')
    """
    k = len(names)
    is_off_diagonal = ~np.eye(k, dtype=np.bool_)
    pairs = np.argwhere(is_off_diagonal)
    correlations = values[is_off_diagonal]  # in the order of the pairs
    if not limit:
        limit = max(0.05, float(np.abs(correlations).max()))

    # The squares of each shade
    steps = np.clip(np.rint(correlations / limit * _STEPS), -_STEPS, _STEPS)
    squares: dict[str, list[tuple[int, int, float]]] = {}
    for (i, j), correlation, step in zip(
        pairs.tolist(), correlations.tolist(), steps.tolist(), strict=True
    ):
        shade = SHADES[int(step) + _STEPS]
        squares.setdefault(shade, []).append((i, j, correlation))

    from rich.cells import cell_len

    shortened = [shown(name, 18) for name in names]
    highest_i, highest_j = pairs[correlations.argmax()]
    lowest_i, lowest_j = pairs[correlations.argmin()]
    return Heat(
        names=shortened,
        cell=_choose_square_width(k),
        margin=10 + round(6.6 * max(map(cell_len, shortened))),
        limit=limit,
        squares=squares,
        with_figures=k <= _MAX_ROWS_WITH_VALUES,
        highest=_describe_pair(names, values, highest_i, highest_j),
        lowest=_describe_pair(names, values, lowest_i, lowest_j),
    )


def _choose_square_width(n_rows: int) -> int:
    """Choose the width of a square in pixels."""
    if n_rows <= 8:
        return 46
    if n_rows <= _MAX_ROWS_WITH_VALUES:
        return 38
    if n_rows <= 24:
        return 18
    return 15


def _describe_pair(names: Sequence[str], values: FloatArray, i: int, j: int) -> str:
    """Return two names and their correlation."""
    return f"{shown(names[i], 24)} and {shown(names[j], 24)}, {figure(values[i, j])}"


def lines(
    curves: Sequence[PrecisionRecall] | Sequence[ReliabilityCurve], x: str, y: str
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Lay out curves on 260 × 200 pixels.

    Parameters
    ----------
    curves : sequence of PrecisionRecall or ReliabilityCurve
        Curves in any order.
    x, y : str
        Names of the fields with the coordinates.

    Returns
    -------
    list of tuple
        Kind of each curve and its points, in the order in which they are drawn.

    Examples
    --------
    >>> curve = PrecisionRecall(
    ...     name="MV", kind="method", recall=(0.0, 1.0), precision=(1.0, 0.5)
    ... )
    >>> lines([curve], "recall", "precision")
    [('two', [('0', '0'), ('260', '100')])]
    """
    drawings = []
    for curve in curves:
        across = 260 * np.clip(getattr(curve, x), 0, 1)
        down = 200 - 200 * np.clip(getattr(curve, y), 0, 1)
        points = []
        for point_x, point_y in zip(across.tolist(), down.tolist(), strict=True):
            points.append((f"{point_x:.4g}", f"{point_y:.4g}"))
        drawings.append((_choose_kind(curve), points))

    return sorted(drawings, key=lambda drawing: _KINDS.index(drawing[0]))


def _choose_kind(curve: PrecisionRecall | ReliabilityCurve) -> str:
    """Choose the class of the style sheet for a curve."""
    if curve.kind == "consensus":
        return "one"
    if curve.kind == "model":
        return "dots"
    if curve.name == "MV":
        return "two"
    return "other"
