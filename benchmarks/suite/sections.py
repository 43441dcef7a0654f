"""What is measured: each section gives the names of its cases and how each is run."""

import json
import os
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path

import numpy as np

from mlconsensus.combiners.registry import COMBINERS

from . import case, floor, judging, panels, starting

HERE = Path(__file__).parents[1]
PEERS = HERE / ".peers"
MOST_SECONDS = 600

METHODS = tuple(COMBINERS)
SMALL = (10, 5_000, 50)
LARGE = (10, 100_000, 200)
LONG = (5, 1_000_000, 100)
WIDE = (10, 20_000, 2_000)
LITERAL = ("majority_vote", "bgcm", "mlcm_r", "mlcm_a")
PEER_ENVIRONMENTS = {
    "crowdkit-mv": "crowdkit",
    "crowdkit-ds": "crowdkit",
    "crowdlab": "cleanlab",
    "snorkel": "snorkel",
}
PEER_LABELS = {"snorkel": 10}  # of 50: all would take minutes

# Growth: the axis that grows, the panel it is cut from, and its sizes.
GROWTH = {
    "n": ((5, 1_000_000, 100), (62_500, 125_000, 250_000, 500_000, 1_000_000)),
    "l": ((5, 20_000, 800), (50, 100, 200, 400, 800)),
    "m": ((32, 20_000, 100), (2, 4, 8, 16, 32)),
}


def small():
    """10 × 5,000 × 50, beside floor, literal transcription and peers."""
    yield from _of_size(SMALL)
    for method in LITERAL:
        yield (
            f"literal {method}",
            partial(_case, what="literal", method=method, shape=SMALL),
        )
    for peer in PEER_ENVIRONMENTS:
        yield f"peer {peer}", partial(_peer, peer)
    # Models of families, which the default finds.
    yield from related()


def related():
    """10 × 5,000 × 50 of related models, next to crowd-kit."""
    name = "related Weighted"
    yield (
        name,
        partial(
            _case,
            what="ours",
            method="weighted_consensus",
            shape=SMALL,
            kind="related",
        ),
    )
    yield "related peer crowdkit-ds", partial(_peer, "crowdkit-ds", "related")


def large():
    """10 × 100,000 × 200 at 2.5 %, as dense bool, float32 and CSR, beside the floor."""
    yield from _of_size(LARGE)
    for form in ("float32", "csr"):
        for method in METHODS:
            yield (
                f"ours {method} {form}",
                partial(_case, what="ours", method=method, shape=LARGE, form=form),
            )


def long():
    """5 × 1,000,000 × 100, beside the floor."""
    yield from _of_size(LONG)


def wide():
    """10 × 20,000 × 2,000, beside the floor."""
    yield from _of_size(WIDE)


def growth():
    """Time as instances, labels or models grow."""
    for axis, (shape, sizes) in GROWTH.items():
        for method in METHODS:
            for size in sizes:
                part = [
                    size if name == axis else whole
                    for name, whole in zip("mnl", shape, strict=True)
                ]
                run = partial(
                    _case,
                    what="ours",
                    method=method,
                    shape=shape,
                    part=part,
                    quality=False,
                )
                yield f"{axis} {method} {size}", run


def imports():
    """`import mlconsensus` beside `import sklearn.base, scipy.sparse, scipy.linalg`."""
    for name in starting.STATEMENTS:
        yield name, lambda name=name: _imports()[name]


def metrics():
    """Metrics on 1,000,000 × 100, beside one sort of the scores."""
    for name in judging.CASES:
        yield name, partial(_child, "suite.judging", name)


def csv():
    """`mlconsensus combine` on five CSV files of 1,000,000 × 100, beside reading them."""
    for name in ("read", "combine to CSV", "combine to Parquet"):
        yield name, lambda name=name: _csv()[name]


SECTIONS = {
    f.__name__: f for f in (small, large, long, wide, growth, imports, metrics, csv)
}


def _of_size(shape):
    # Ours and its floor one after the other, so that a ratio compares what ran under
    # the same conditions.
    for method in METHODS:
        for what in ("ours", "floor") if method in floor.FLOORS else ("ours",):
            yield (
                f"{what} {method}",
                partial(_case, what=what, method=method, shape=shape),
            )


def _case(**case):
    return _child("suite.case", json.dumps(case))


def _child(module, *arguments):
    command = [sys.executable, "-m", module, *arguments]
    return _answer(command, cwd=HERE)


def _answer(command, **options):
    # Compiled modules are kept, as any installation has them.
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE"
    }
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            env=environment,
            **options,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"takes more than {MOST_SECONDS} s"}
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return {"failed": said[-1] if said else f"ended with {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def _peer(peer, kind="independent"):
    python = PEERS / PEER_ENVIRONMENTS[peer] / "bin" / "python"
    if not python.exists():
        return {"failed": "not installed: `make bench-peers`"}
    _, truth = panels.load(SMALL, kind)
    with tempfile.TemporaryDirectory() as folder:
        scores = Path(folder) / "scores.npy"
        script = HERE / "suite" / "peer.py"
        labels = PEER_LABELS.get(peer, SMALL[2])
        found = _answer(
            [
                python,
                "-W",
                "ignore",
                script,
                peer,
                panels.files(SMALL, kind)[0],
                scores,
                str(labels),
            ]
        )
        if "failed" not in found and labels == SMALL[2]:
            found["quality"] = case.quality(truth, np.load(scores))
    return found


@cache
def _imports():
    return starting.measure()


@cache
def _csv():
    with tempfile.TemporaryDirectory() as folder:
        found = _answer([sys.executable, HERE / "combine_csv.py", "--folder", folder])
    if "failed" not in found:
        return found
    return {name: found for name, _ in csv()}
