"""docs/performance.md and its plots, from the results."""

import math
from pathlib import Path
from textwrap import fill

from . import bars, plots
from .sections import GROWTH, METHODS, SECTIONS, SMALL

DOCS = Path(__file__).parents[2] / "docs"
PLOTS = DOCS / "performance"

PEER_NAMES = {
    "crowdkit-mv": "crowd-kit BinaryRelevance(MajorityVote)",
    "crowdkit-ds": "crowd-kit BinaryRelevance(DawidSkene)",
    "crowdlab": "cleanlab CROWDLAB, label by label",
    "snorkel": "snorkel LabelModel, label by label",
}
SIZES = {
    "small": "10 models × 5,000 instances × 50 labels",
    "large": "10 × 100,000 × 200",
    "long": "5 × 1,000,000 × 100",
    "wide": "10 × 20,000 × 2,000",
}


def write(results):
    """Write the page and its plots from {section: results}."""
    PLOTS.mkdir(parents=True, exist_ok=True)
    cases = {name: results.get(name, {}).get("cases", {}) for name in SECTIONS}
    head = Path(__file__).with_suffix(".md").read_text()
    parts = [
        head,
        _machine(results),
        _bars(cases),
        *(_size(cases, name) for name in SIZES),
    ]
    parts += [
        _growth(cases["growth"]),
        _metrics(cases["metrics"]),
        _imports(cases["imports"]),
        _csv(cases["csv"]),
    ]
    (DOCS / "performance.md").write_text("\n".join(part for part in parts if part))


def _machine(results):
    found = {tuple(section["machine"].items()) for section in results.values()}
    text = "; ".join(
        f"{name.replace('_gib', '')} {value}{' GiB' if name.endswith('_gib') else ''}"
        for name, value in max(found, default=())
    )
    if found:
        return f"## The machine\n\n{fill(text, 120)}.\n"
    return ""


def _bars(cases):
    found = bars.reached(cases)
    rows = [
        [bar.what, bar.bar, _number(bar.measured), "yes" if bar.met else "**no**"]
        for bar in found
    ]
    if rows:
        return "\n".join(
            ["## The bars\n", _table(["", "bar", "measured", "met"], rows), ""]
        )
    return ""


def _size(cases, section):
    found = cases[section]
    if not found:
        return ""
    forms = [
        form
        for form in ("float32", "csr")
        if any(name.endswith(f" {form}") for name in found)
    ]
    literal = any(name.startswith("literal") for name in found)
    head = [
        "method",
        "seconds",
        *(f"from {form}" for form in forms),
        "floor",
        "times floor",
        "peak MiB",
        "floor's",
    ]
    head += ["literal", "times faster"] if literal else []
    head += ["microAUC ↑", "ranking loss ↓"]
    rows = []
    missing = []
    for method in METHODS:
        ours = found.get(f"ours {method}", {"failed": "not measured"})
        if "failed" in ours:
            missing.append(f"{method}: {ours['failed']}.")
            continue
        floor = bars.seconds(found, f"floor {method}")
        row = [
            method,
            _number(ours["seconds"]),
            *(_number(bars.seconds(found, f"ours {method} {form}")) for form in forms),
        ]
        row += [
            _number(floor),
            _number(bars.over(ours["seconds"], floor)),
            _number(ours["peak_mib"]),
        ]
        row.append(_number(found.get(f"floor {method}", {}).get("peak_mib")))
        if literal:
            slow = bars.seconds(found, f"literal {method}")
            row += [_number(slow), _number(bars.over(slow, ours["seconds"]))]
        rows.append(row + [f"{value:.4f}" for value in ours["quality"].values()])
    parts = [f"## {SIZES[section]}\n", _table(head, rows), *missing]
    if section == "small":
        parts += [_peers(found), _peer_plot(found)]
    return "\n".join([*parts, ""])


def _peers(found):
    rows = []
    labels = SMALL[2]
    for peer, name in PEER_NAMES.items():
        case = found.get(f"peer {peer}", {"failed": "not measured"})
        if "failed" in case:
            rows.append([name, case["failed"], "", "", ""])
            continue
        measured = case["labels_measured"]
        if measured == labels:
            part = ""
        else:
            part = f"; {measured} of {labels} labels measured, and scaled"
        quality = [f"{value:.4f}" for value in case.get("quality", {}).values()] or [
            "",
            "",
        ]
        rows.append(
            [
                f"{name} ({case['version']}{part})",
                _number(case["seconds"]),
                _number(case["peak_mib"]),
                *quality,
            ]
        )
    return "\n" + _table(
        ["peer", "seconds", "peak MiB", "microAUC ↑", "ranking loss ↓"], rows
    )


def _peer_plot(found):
    colours = {
        "ours": plots.COLOURS[0],
        "floor": "#999",
        "literal": plots.COLOURS[1],
        "peer": plots.COLOURS[2],
    }
    rows = []
    for name, case in found.items():
        what, which = name.split(" ", 1)
        if "failed" not in case:
            if what != "peer":
                shown = f"{which}, {what}"
            else:
                shown = PEER_NAMES[which].split(",")[0].replace("BinaryRelevance", "")
            rows.append((shown, case["seconds"], colours[what]))
    rows.sort(key=lambda row: row[1])
    (PLOTS / "small.svg").write_text(plots.bars(SIZES["small"], rows, "seconds"))
    return f"\n![Seconds of each method, its floor, its literal transcription and the peers]({PLOTS.name}/small.svg)"


def _growth(found):
    if not found:
        return ""
    names = {"n": "instances", "l": "labels", "m": "models"}
    rows = [
        [method, *(_number(bars.exponent(found, axis, method), 3) for axis in GROWTH)]
        for method in METHODS
    ]
    parts = [
        "## Growth\n",
        "Exponents of time by least squares over all sizes; below 1 where fixed costs still count.\n",
    ]
    parts.append(
        _table(["method", *(f"in {names[axis]} `{axis}`" for axis in GROWTH)], rows)
    )
    for axis, (shape, _) in GROWTH.items():
        series = {
            method: points
            for method in METHODS
            if len(points := bars.points(found, axis, method)) > 1
        }
        if series:
            others = " × ".join(
                axis if name == axis else f"{size:,}"
                for name, size in zip("mnl", shape, strict=True)
            )
            title = f"Seconds at {others}"
            (PLOTS / f"growth-{axis}.svg").write_text(
                plots.lines(title, series, names[axis], "seconds")
            )
            parts.append(f"\n![{title}]({PLOTS.name}/growth-{axis}.svg)")
    return "\n".join([*parts, ""])


def _metrics(found):
    if not found:
        return ""
    rows = []
    for name, yardstick in (
        ("micro_auc", "sort of all"),
        ("ranking_loss", "sort of rows"),
        ("one_error", "sort of rows"),
        ("average_precision", "sort of rows"),
        ("label sets", "partition of rows"),
    ):
        row = [name, f"one {yardstick}"]
        for ties in ("", " with ties"):
            ours = bars.seconds(found, name + ties)
            least = bars.seconds(found, yardstick + ties)
            row += [_number(ours), _number(least), _number(bars.over(ours, least))]
        rows.append([*row, _number(found.get(name, {}).get("peak_mib"))])
    head = [
        "",
        "yardstick",
        "seconds",
        "yardstick's",
        "times",
        "with ties",
        "yardstick's",
        "times",
        "peak MiB",
    ]
    return "\n".join(["## Metrics, 1,000,000 × 100\n", _table(head, rows), ""])


def _imports(found):
    if not found:
        return ""
    rows = [
        [f"`{name}`" if name.startswith("import") else name, _number(case["seconds"])]
        for name, case in found.items()
    ]
    note = (
        "The yardstick is `import sklearn.base, scipy.sparse, scipy.linalg`.\n"
        "What `mlconsensus` offers is imported when it is first used.\n"
    )
    return "\n".join(
        [
            "## Importing\n",
            note,
            _table(["a fresh interpreter with", "seconds"], rows),
            "",
        ]
    )


def _csv(found):
    rows = [
        [
            name,
            _number(case["seconds"]),
            _number(case["times"]),
            _number(case["peak_mib"]),
        ]
        for name, case in found.items()
        if "failed" not in case
    ]
    if not rows:
        return ""
    note = (
        "`mlconsensus combine` with the default method on five 0/1 files, beside Polars reading them;\n"
        "memory is that of the whole process.\n"
    )
    table = _table(["", "seconds", "times reading", "peak MiB"], rows)
    return "\n".join(["## CSV files, 5 × 1,000,000 × 100\n", note, table, ""])


def _number(value, digits=2):
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    if value:
        return f"{value:.{max(0, digits - 1 - math.floor(math.log10(value)))}f}"
    return "0"


def _table(head, rows):
    lines = [
        "| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]
    ]
    return "\n".join(lines)
