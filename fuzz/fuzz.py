"""Break files, give them to the command line, and say what it did wrong: `make fuzz SECONDS=60`.

Each file follows from the seed and its number alone. A worker takes them one after the
other, within limits of time and memory, and is replaced if it dies. What is wrong: any
exit code but 0 and 2, a warning of Python's, a traceback, a refusal that says nothing,
more than 10 s of processor time or 2 GB, an output where a file was refused, and
streaming that decides or writes otherwise than memory. Such a file is kept in
`fuzz/found`; it belongs into `tests/fuzz_corpus`.
"""

import argparse
import contextlib
import io
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent))
import seeds
from mutate import mutated

from mlconsensus.cli import main
from mlconsensus.text import safe

KINDS = ("memory", "streamed", "state")
# that one file may take
SECONDS = 10
BYTES = 2 * 2**30
METHODS = ("mv", "mv", "mv", "weighted", "ds", "bgcm", "mlcm-r", "mlcm-a")
FOUND = Path(__file__).parent / "found"
# files after which a worker is replaced: Polars keeps the stacks of what panicked, 2 MB
# of addresses each
LIFE = 500


def case(
    kind: str, seed: int, number: int, originals: dict[str, bytes]
) -> tuple[str, bytes, random.Random]:
    """Return the name of a broken file, its bytes, and the chance that chooses what to do with it."""
    rng = random.Random(f"{seed} {kind} {number}")
    name = rng.choice(list(originals))
    suffix = name.split(".", 1)[1]
    alike = [
        data for other, data in originals.items() if other.split(".", 1)[1] == suffix
    ]
    return name, mutated(name, originals[name], alike, rng), rng


def run(*words: object) -> tuple[int, str]:
    """Run a command in this process: its exit code, and what it said on standard error."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            if isinstance(end.code, int):
                code = end.code
            else:
                code = 1
    return code, said.getvalue()


def wrong(kind: str, path: Path, rng: random.Random) -> str:
    """Give a file to the commands that read such files; return what they did wrong, "": nothing."""
    out = path.with_name("out.csv")
    good = path.with_name("beside.csv")
    good.write_bytes(seeds.GOOD)
    if kind == "state":
        model = path.with_name("out.model")
        panel = path.with_name("beside.npz")
        command = ["solve", path, "-o", model]
        if path.suffix != ".stats":
            applied = ["apply", path, panel, "-o", out]
            if path.suffix == ".model":
                command = applied
            else:
                command = ["statistics", panel, "--after", path, "-o", model]
        return _judged(run(*command, "--force"))
    method = rng.choice(METHODS)
    if rng.random() < 0.5:
        beside = [good]
    else:
        beside = []
    strict = ["--strict"] * (rng.random() < 0.2)
    command = [
        "combine",
        path,
        *beside,
        *strict,
        "--method",
        method,
        "-o",
        out,
        "--force",
    ]
    out.unlink(missing_ok=True)
    code, said = run(*command, "--no-stream")
    if fault := _judged((code, said)):
        return fault
    if code and out.exists():
        return "an output though the input was refused"
    if kind == "memory":
        return ""
    whole = _numbers(out)
    out.unlink(missing_ok=True)
    streamed, also = run(*command, "--stream")
    if fault := _judged((streamed, also)):
        return fault
    names, scores = _numbers(out)
    if (
        streamed != code
        or names != whole[0]
        or not np.allclose(scores, whole[1], rtol=0, atol=1e-10)
    ):
        return f"streaming ends with {streamed}, memory with {code}: {also.strip()} | {said.strip()}"
    return ""


def _numbers(path: Path) -> tuple[list[str], np.ndarray]:
    """Read a consensus: its names, and its scores, which streaming may round otherwise."""
    if not path.exists():
        return [], np.empty(0)
    table = pl.read_csv(path, infer_schema=False)
    if table.width > 1:
        scores = table[:, 1:].cast(pl.Float64).to_numpy()
    else:
        scores = np.empty(0)
    return [*table.columns, *table[:, 0]], scores


def _judged(ended: tuple[int, str]) -> str:
    code, said = ended
    if said:
        last = said.splitlines()[-1]
    else:
        last = ""
    if code not in (0, 2) or "Traceback" in said or "Warning: " in said:
        return f"exit code {code}: {last}"
    if code == 2 and (not last.startswith("mlconsensus: ") or "found" not in last):
        return f"no sentence that says what was found: {said!r}"
    hidden = [line for line in said.splitlines() if safe(line) != line]
    if hidden:
        return f"what a terminal obeys: {hidden[0]!r}"
    return ""


def work(kind: str, seed: int, numbers: range, pipe) -> None:
    """Take files one after the other; say of each, before and after, which it is and how it went."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # panics
    if kind == "state":
        originals = seeds.states()
    else:
        originals = seeds.files()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    tempfile.tempdir = str(folder)
    (folder / "beside.npz").write_bytes(seeds.PANEL)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2 * BYTES, used + 2 * BYTES))
    signal.signal(signal.SIGPROF, _too_long)
    wrong(kind, _first(folder, kind, originals), random.Random(0))  # imports
    for number in numbers:
        name, data, rng = case(kind, seed, number, originals)
        path = folder / name
        path.write_bytes(data)
        pipe.send(("begun", number))
        Path("/proc/self/clear_refs").write_text("5")  # forget the most memory so far
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            fault = wrong(kind, path, rng)
        except BaseException as unexpected:
            fault = f"{type(unexpected).__name__}: {unexpected}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        took = time.process_time() - start
        most = _most_memory()
        fault = (
            fault
            or (f"{took:.1f} s" if took > SECONDS else "")
            or (f"{most / 1e9:.1f} GB" if most > BYTES else "")
        )
        path.unlink(missing_ok=True)
        pipe.send(("done", number, fault, took, most))
    pipe.send(("end",))


def _first(folder: Path, kind: str, originals: dict[str, bytes]) -> Path:
    """Write a file that is whole."""
    if kind == "state":
        name = "Filter.stats"
    else:
        name = "scores-wide.csv"
    (folder / name).write_bytes(originals[name])
    return folder / name


def _too_long(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def _most_memory() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def explore(
    kind: str, seed: int, first: int, count: int, until: float
) -> tuple[int, Counter[str], float, float]:
    """Run files until there are enough, or the time is over; keep those with which something went wrong."""
    spawn = multiprocessing.get_context("spawn")
    next_one = first
    faults = Counter[str]()
    slowest = 0.0
    largest = 0.0
    if kind == "state":
        originals = seeds.states()
    else:
        originals = seeds.files()
    while next_one < first + count and time.monotonic() < until:
        ours, theirs = spawn.Pipe()
        numbers = range(next_one, min(first + count, next_one + LIFE))
        worker = spawn.Process(
            target=work, args=(kind, seed, numbers, theirs), daemon=True
        )
        worker.start()
        theirs.close()
        at = next_one
        try:
            while time.monotonic() < until:
                if not ours.poll(120):
                    raise EOFError
                news = ours.recv()
                if news[0] == "end":
                    break
                at = news[1]
                if news[0] == "done":
                    next_one = at + 1
                    slowest = max(slowest, news[3])
                    largest = max(largest, news[4])
                    if news[2]:
                        faults[_kept(kind, seed, at, originals, news[2])] += 1
        except EOFError:
            worker.join(5)
            if worker.exitcode is None:
                ended = "the process hung"
            else:
                ended = f"the process ended with {worker.exitcode}"
            faults[_kept(kind, seed, at, originals, ended)] += 1
            next_one = at + 1
        worker.kill()
        worker.join()
    return next_one - first, faults, slowest, largest


def _kept(
    kind: str, seed: int, number: int, originals: dict[str, bytes], fault: str
) -> str:
    FOUND.mkdir(exist_ok=True)
    name, data, _ = case(kind, seed, number, originals)
    (FOUND / f"{kind}-{seed}-{number}-{name}").write_bytes(data)
    with (FOUND / "faults.txt").open("a") as file:
        file.write(f"{kind} seed {seed} number {number} {name}: {safe(fault)}\n")
    return safe(fault)[:100]


def cli() -> None:
    """Explore what the arguments say, and end with 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds", type=float, default=60, help="for all kinds together"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument(
        "--files", type=int, default=10**9, help="of each kind, at most"
    )
    given = parser.parse_args()
    failed = False
    end = time.monotonic() + given.seconds
    for at, kind in enumerate(given.kinds):
        now = time.monotonic()
        until = now + (end - now) / (len(given.kinds) - at)
        tried, faults, slowest, largest = explore(
            kind, given.seed, given.first, given.files, until
        )
        most = f"slowest {slowest:.1f} s, largest {largest / 1e9:.2f} GB"
        print(f"{kind}: {tried:,} files, {faults.total()} faults, {most}", flush=True)
        for fault, times in faults.most_common(20):
            print(f"  {times} × {fault}")
        failed |= bool(faults)
    sys.exit(failed)


if __name__ == "__main__":
    cli()
