"""Plots as plain SVG, on logarithmic axes."""

import math
from html import escape

COLOURS = (
    "#4269d0",
    "#efb118",
    "#ff725c",
    "#6cc5b0",
    "#3ca951",
    "#a463f2",
    "#97bbf5",
    "#9c6b4e",
)
_TEXT = 'font-family="sans-serif" font-size="12"'


def bars(title, rows, unit):
    """Draw a bar for each (name, value, colour)."""
    left = 210
    right = 600
    height = 20
    low, high = _decades([value for _, value, _ in rows])
    across = _scale(low, high, left, right)
    bottom = 36 + height * len(rows)
    parts = []
    for at in range(low, high + 1):
        x = across(10.0**at)
        parts.append(
            f'<line x1="{x:.1f}" y1="30" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>'
        )
        parts.append(_label(x, bottom + 16, _power(at), "middle"))
    for k, (name, value, colour) in enumerate(rows):
        y = 34 + height * k
        parts.append(_label(left - 8, y + 12, name, "end"))
        width = across(value) - left
        parts.append(
            f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{height - 5}" fill="{colour}"/>'
        )
        parts.append(_label(across(value) + 5, y + 12, _short(value), "start"))
    parts.append(_label((left + right) / 2, bottom + 34, unit, "middle"))
    return _svg(660, bottom + 44, title, parts)


def lines(title, series, x_name, y_name):
    """Draw a line for each {name: [(x, y), …]}."""
    left = 60
    right = 470
    top = 36
    bottom = 330
    x_values = sorted({x for points in series.values() for x, _ in points})
    low, high = _decades([y for points in series.values() for _, y in points])
    across = _scale(math.log10(x_values[0]), math.log10(x_values[-1]), left, right)
    up = _scale(low, high, bottom, top)
    parts = []
    for at in range(low, high + 1):
        y = up(10.0**at)
        parts.append(
            f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>'
        )
        parts.append(_label(left - 6, y + 4, _power(at), "end"))
    parts += [_label(across(x), bottom + 18, f"{x:,}", "middle") for x in x_values]
    ends = _apart([up(points[-1][1]) for points in series.values()], 15)
    for (name, points), colour, end in zip(series.items(), COLOURS, ends, strict=False):
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts += [
            f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="{colour}"/>'
            for x, y in points
        ]
        parts.append(_label(right + 12, end + 4, name, "start", colour))
    parts.append(_label((left + right) / 2, bottom + 38, x_name, "middle"))
    parts.append(_label(left, top - 8, y_name, "middle"))
    return _svg(560, bottom + 50, title, parts)


def _svg(width, height, title, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">'
    background = f'<title>{escape(title)}</title><rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, background, *parts, "</svg>", ""])


def _label(x, y, text, anchor, colour="#333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" {_TEXT} text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _scale(low, high, start, end):
    return lambda value: (
        start + (math.log10(value) - low) / ((high - low) or 1) * (end - start)
    )


def _decades(values):
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def _apart(places, least):
    """Move labels apart that would cover each other, keeping their order."""
    moved = [0.0] * len(places)
    last = -math.inf
    for at in sorted(range(len(places)), key=places.__getitem__):
        last = moved[at] = max(places[at], last + least)
    return moved


def _power(at):
    if at >= 0:
        return f"{10**at:,}"
    return f"{10.0**at:.{-at}f}"


def _short(value):
    if value < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}"
