"""Measure time, memory and quality beside floor, literal transcription and peers; write results and the page.

    python benchmarks/run.py [SECTION ...] [--keep] [--page]

Results are in benchmarks/results, one JSON file a section, written after each case: an
interrupted run goes on with --keep, which measures only what is not there yet. --page
measures nothing and only writes docs/performance.md.
"""

import argparse
import json
import time
from pathlib import Path

from suite import machine, page
from suite.sections import SECTIONS

RESULTS = Path(__file__).parent / "results"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "sections",
        nargs="*",
        metavar="SECTION",
        help=f"some of {', '.join(SECTIONS)}; all without",
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep what has been measured"
    )
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(
            f"found section {min(unknown)!r}, expected some of {', '.join(SECTIONS)}"
        )
    RESULTS.mkdir(exist_ok=True)
    for name in [] if options.page else options.sections or SECTIONS:
        measure(name, keep=options.keep)
    page.write(
        {
            path.stem: json.loads(path.read_text())
            for path in sorted(RESULTS.glob("*.json"))
        }
    )


def measure(section, keep):
    path = RESULTS / f"{section}.json"
    if keep and path.exists():
        kept = json.loads(path.read_text())["cases"]
    else:
        kept = {}
    cases = {}
    for name, run in SECTIONS[section]():
        began = time.perf_counter()
        known = name in kept and "failed" not in kept[name]
        cases[name] = kept[name] if known else run()
        if not known:
            told = cases[name].get("failed") or f"{cases[name]['seconds']:.3g} s"
            print(
                f"{section}: {name}: {told} ({time.perf_counter() - began:.0f} s in all)",
                flush=True,
            )
            save(path, {"machine": machine.describe(), "cases": {**kept, **cases}})
    save(path, {"machine": machine.describe(), "cases": cases})


def save(path, results):
    part = path.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1) + "\n")
    part.rename(path)


if __name__ == "__main__":
    main()
