"""Mutation tests: how often does a test fail when the mathematics is changed in one place? `make mutants` runs it.

A mutant is a file of `combiners`, `arithmetic` or `evaluation` in which one operator, comparison, number, condition or
call is another. There are thousands, so a random sample is tried, the same for the same seed; the share that tests
notice is an estimate, printed with its 95 % interval. Each mutant meets, in a process of its own, the tests that mirror
its file until one fails. Results are kept in a file, so that a run goes on where another ended.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.machinery
import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "mlconsensus"
ROOMS = ("arithmetic", "combiners", "evaluation")
CPU_SECONDS, SECONDS, MEMORY = 150, 3000, 6 * 2**30  # a mutant that needs more is noticed, too

# Tests of a file beside its own examples and tests/<room>/test_<name>.py; after "::" what pytest's -k selects.
CONTRACT, CLUSTERED, WEIGHTS = (
    "combiners/test_contract.py",
    "combiners/test_clusterings.py",
    "combiners/test_weights.py",
)
EXPLAINED, GOLD, MANY = "insight/test_explanations.py", "combiners/test_gold.py", "combiners/test_many_labels.py"
RATERS = "combiners/test_raters.py"
FILTER, LOOPS = "combiners/test_rater_filter.py", "combiners/test_rater_filter.py::loops"
MORE = {
    "combiners/bgcm.py": [f"{CONTRACT}::literal and BGCM", CLUSTERED, GOLD, f"{WEIGHTS}::BGCM", f"{EXPLAINED}::BGCM"],
    "combiners/contributions.py": [EXPLAINED],
    "combiners/dawid_skene.py": [f"{CONTRACT}::Dawid", GOLD, MANY, f"{WEIGHTS}::Dawid", f"{EXPLAINED}::Dawid"],
    "combiners/learning.py": [GOLD, f"{EXPLAINED}::RaterFilter"],
    "combiners/majority_vote.py": [f"{CONTRACT}::Majority", MANY, f"{WEIGHTS}::Majority", f"{EXPLAINED}::Majority"],
    "combiners/many_raters.py": [MANY],
    "combiners/method.py": ["test_own_method.py", CONTRACT],
    "combiners/mlcm_a.py": [f"{CONTRACT}::MLCMa", GOLD, MANY, f"{WEIGHTS}::MLCMa", f"{EXPLAINED}::MLCMa"],
    "combiners/mlcm_r.py": [f"{CONTRACT}::MLCMr", CLUSTERED, GOLD, f"{WEIGHTS}::MLCMr", f"{EXPLAINED}::MLCMr"],
    "combiners/rater_filter.py": [LOOPS, RATERS, GOLD, f"{CONTRACT}::RaterFilter", f"{EXPLAINED}::RaterFilter"],
    "combiners/rater_rounds.py": [LOOPS, RATERS, FILTER, f"{CONTRACT}::RaterFilter"],
    "combiners/raters.py": [LOOPS, RATERS, FILTER],
    "combiners/walk_system.py": ["combiners/test_mlcm_r.py"],
    "arithmetic": ["arithmetic", CLUSTERED, MANY, f"{CONTRACT}::literal or sparse"],
    "combiners": [],
    "evaluation": ["evaluation"],
}
SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.RShift: ast.LShift, ast.LShift: ast.RShift,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.USub: ast.UAdd,
}  # fmt: skip
CALLS = {"maximum": "minimum", "minimum": "maximum", "max": "min", "min": "max", "any": "all", "all": "any"}


def places(tree: ast.AST) -> Iterator[tuple[int, int, str]]:
    """Yield where a tree can be changed: number of the node, number of the part, and what it is changed to."""
    for at, node in enumerate(_code(tree)):
        if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
            yield at, 0, f"{type(node.op).__name__} → {SWAPS[type(node.op)].__name__}"
        elif isinstance(node, ast.Compare):
            for part, op in enumerate(node.ops):
                yield at, part, f"{type(op).__name__} → {SWAPS[type(op)].__name__}"
        elif isinstance(node, ast.UnaryOp):
            yield at, 0, f"without {type(node.op).__name__}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            yield at, 0, f"{node.value!r} → {_other(node.value)!r}"
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield at, 0, "the other way round"
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in CALLS:
            yield at, 0, f"{getattr(node.func, 'attr', getattr(node.func, 'id', ''))} → its opposite"


def mutated(tree: ast.AST, at: int, part: int) -> tuple[ast.AST, int]:
    """Return a copy of the tree that is changed in one place, and the line of that place."""
    tree = copy.deepcopy(tree)
    node: Any = _code(tree)[at]
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[part] = SWAPS[type(node.ops[part])]()
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.USub):
            node.op = ast.UAdd()
        else:
            node.operand = ast.UnaryOp(node.op, node.operand)
    elif isinstance(node, ast.Constant):
        node.value = _other(node.value)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node.func, ast.Attribute):
        node.func.attr = CALLS[node.func.attr]
    else:
        node.func.id = CALLS[node.func.id]
    return ast.fix_missing_locations(tree), node.lineno


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) or value == 0 else 2 * value


def _code(tree: ast.AST) -> list[ast.AST]:
    """List the nodes of a tree without annotations, decorators, messages and text."""
    found = [tree]
    skipped = {"annotation", "returns", "decorator_list"}
    for name, value in ast.iter_fields(tree):
        for child in value if isinstance(value, list) else [value]:
            if name not in skipped and isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr | ast.Raise):
                found += _code(child)
    return found


def tests_of(name: str) -> list[str]:
    """Return what pytest is to run for a file such as combiners/bgcm.py, quickest first, each once."""
    room, file = name.split("/")
    chosen = [*MORE.get(name, []), f"{room}/test_{file}", *MORE[room]]
    return [each for each in dict.fromkeys(chosen) if (ROOT / "tests" / each.partition("::")[0]).exists()]


def noticed(name: str, tree: ast.AST | None) -> bool:
    """Run the tests of a file with another tree in its place, in a process of its own; whether one of them fails."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os._exit(_run(name, tree))
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _run(name: str, tree: ast.AST | None) -> int:
    import pytest

    path, plain = str(SOURCE / name), importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: Any, module: str) -> Any:
        return compile(tree, path, "exec") if tree is not None and loader.path == path else plain(loader, module)  # type: ignore[arg-type]

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[assignment,method-assign]
    options = ["-x", "-q", "--no-header", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    # Plain assertions: pytest would load the file itself, as it is, to rewrite them.
    options += ["--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
    if pytest.main([*options, path]) not in (0, 5):  # the examples in the file itself; 5: there are none
        return 1
    for each in tests_of(name):
        file, _, chosen = each.partition("::")
        if pytest.main([*options, str(ROOT / "tests" / file), *(["-k", chosen] if chosen else [])]) not in (0, 5):
            return 1
    return 0


def interval(killed: int, tried: int) -> tuple[float, float]:
    """Give Wilson's 95 % interval of a share."""
    z = 1.96
    middle = (killed + z * z / 2) / (tried + z * z)
    half = z / (tried + z * z) * (killed * (tried - killed) / tried + z * z / 4) ** 0.5
    return middle - half, middle + half


def main() -> None:
    """Try mutants of the sample that were not tried yet, and print the score and who survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=150, help="how many mutants of all")
    parser.add_argument("--first", type=int, default=0, help="where in the sample to begin, for several at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=ROOT / ".mutants.jsonl")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    given = parser.parse_args()
    trees = {
        f"{room}/{path.name}": ast.parse(path.read_text(encoding="utf-8"))
        for room in ROOMS
        for path in sorted((SOURCE / room).glob("[a-z]*.py"))
    }
    every = [(name, *place) for name, tree in trees.items() for place in places(tree)]
    random.Random(given.seed).shuffle(every)
    known = {}
    if given.results.exists():
        for line in given.results.read_text(encoding="utf-8").splitlines():
            found = json.loads(line)
            known[found["mutant"]] = found["noticed"]
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src")]
    import hypothesis, numpy, pandas, polars, pytest, scipy.linalg, scipy.sparse, scipy.stats, sklearn.base  # noqa: E401, F401  # isort: skip

    control = "combiners/walk_system.py"
    if noticed(control, None) or not noticed(control, ast.parse("raise RuntimeError")):
        sys.exit("found tests that fail as they are, or that do not meet the mutant; expected neither")
    survivors = []
    killed = 0
    for name, at, part, what in every[given.first : given.sample]:
        tree, line = mutated(trees[name], at, part)
        source = (SOURCE / name).read_text(encoding="utf-8").splitlines()[line - 1].strip()
        mutant = f"{name}:{line}: {what} (node {at}.{part}) in `{source}`"
        if mutant not in known or (given.again and not known[mutant]):
            known[mutant] = noticed(name, tree)
            with given.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"mutant": mutant, "noticed": known[mutant]}, ensure_ascii=False) + "\n")
            print("noticed " if known[mutant] else "SURVIVED", mutant, flush=True)
        killed += known[mutant]
        survivors += [] if known[mutant] else [mutant]
    tried = min(given.sample, len(every)) - given.first
    low, high = interval(killed, tried)
    print("\n".join(["", "Survivors:", *sorted(survivors)]))
    print(f"{killed} of {tried} noticed: {killed / tried:.1%}, 95 % interval {low:.0%} to {high:.0%}")
    print(f"{len(every):,} mutants in all")


if __name__ == "__main__":
    main()
