"""Mutation tests: how often a test fails if one operation in the code is changed.

A mutant is a file of `linalg`, `combiners`, `metrics` or `decision` in which one
operator, comparison, number, condition or call is changed. There are thousands, so a
random sample is tried; the seed determines it. The share of mutants for which a test
fails is printed with its 95 % interval.

All tests run once, to record which lines each of them reaches. Each mutant then runs
in a forked process, with the tests that reach its line, the fastest first. Results are
stored in a file, so that an interrupted run can be continued.

Mutants that behave like the original are listed in tools/equivalent_mutants.txt, each
with a reason, and are not counted.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import resource
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "mlconsensus"
EQUIVALENT = Path(__file__).parent / "equivalent_mutants.txt"
ROOMS = ("linalg", "combiners", "metrics", "decision")
TESTS = (
    *ROOMS,
    "inspection/test_explanations.py",
    "model_selection/test_held_out_models.py",
    "predictions",
    "federated/test_merge.py",
    "federated/test_changing_panels.py",
    "federated/test_statistics_files.py",
    "test_own_method.py",
)
CPU_SECONDS, MEMORY = (
    20,
    8 * 2**30,
)  # beside three times what its tests take; a mutant that needs more is noticed, too

SWAPS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.RShift: ast.LShift,
    ast.LShift: ast.RShift,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.USub: ast.UAdd,
}
CALLS = {
    "maximum": "minimum",
    "minimum": "maximum",
    "max": "min",
    "min": "max",
    "any": "all",
    "all": "any",
}


def places(tree: ast.AST) -> Iterator[tuple[int, int, str]]:
    """Yield the number of each node, of its part, and what the part is changed to."""
    for at, node in enumerate(_code(tree)):
        if (
            isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp)
            and type(node.op) in SWAPS
        ):
            yield at, 0, f"{type(node.op).__name__} → {SWAPS[type(node.op)].__name__}"
        elif isinstance(node, ast.Compare):
            for part, op in enumerate(node.ops):
                yield at, part, f"{type(op).__name__} → {SWAPS[type(op)].__name__}"
        elif isinstance(node, ast.UnaryOp):
            yield at, 0, f"without {type(node.op).__name__}"
        elif isinstance(node, ast.Constant) and isinstance(
            node.value, bool | int | float
        ):
            yield at, 0, f"{node.value!r} → {_other(node.value)!r}"
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield at, 0, "the other way round"
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", "")) in CALLS
        ):
            yield (
                at,
                0,
                f"{getattr(node.func, 'attr', getattr(node.func, 'id', ''))} → its "
                f"opposite",
            )


def mutated(tree: ast.AST, at: int, part: int) -> tuple[ast.AST, int, int, int]:
    """Return a changed copy of a tree, the lines of the change, and its column."""
    tree = copy.deepcopy(tree)
    node: Any = _code(tree)[at]
    last = (
        node.test.end_lineno
        if isinstance(node, ast.If | ast.While)
        else node.end_lineno
    )
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
    return ast.fix_missing_locations(tree), node.lineno, last, node.col_offset


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
            if (
                name not in skipped
                and isinstance(child, ast.AST)
                and not isinstance(child, ast.JoinedStr | ast.Raise)
            ):
                found += _code(child)
    return found


class Trial:
    """Collect the tests with pytest, record what they reach, and try mutants."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.trees = {
            f"{room}/{path.name}": ast.parse(path.read_text(encoding="utf-8"))
            for room in ROOMS
            for path in sorted((SOURCE / room).glob("[a-z]*.py"))
        }

    def pytest_runtestloop(self, session: Any) -> bool:
        """Take the place of pytest's own loop."""
        self.items = {item.nodeid: item for item in session.items}
        kept = self.given.results.with_suffix(
            ".reached"
        )  # of other tests or sources: made anew
        sources = [Path(item.path) for item in session.items] + [
            SOURCE / name for name in self.trees
        ]
        newest = max(path.stat().st_mtime for path in sources)
        if not kept.exists() or kept.stat().st_mtime < newest:
            kept.write_text(_in_a_fork(self._reached), encoding="utf-8")
        self.seconds, self.reached = json.loads(kept.read_text(encoding="utf-8"))
        if not self.seconds.keys() >= self.items.keys():
            kept.unlink()
            sys.exit("found tests that fail as they are, expected none")
        sample(self)
        return True

    def _reached(self) -> Any:
        """Run every test; return its time, and the tests that reach each line."""
        import coverage

        watch = coverage.Coverage(
            data_file=None,
            include=[str(SOURCE / room / "*") for room in ROOMS],
            config_file=False,
        )
        seconds = {}
        watch.start()
        for nodeid, item in self.items.items():
            watch.switch_context(nodeid)
            start = time.process_time()
            if not self._passes([item]):
                return seconds, {}
            seconds[nodeid] = time.process_time() - start
        watch.stop()
        data, reached = watch.get_data(), {}
        for path in data.measured_files():
            lines = {
                line: [each for each in tests if each]
                for line, tests in data.contexts_by_lineno(path).items()
            }
            reached[str(Path(path).relative_to(SOURCE))] = lines
        return seconds, reached

    @staticmethod
    def _passes(items: list[Any]) -> bool:
        from _pytest.runner import runtestprotocol

        for item, following in zip(items, [*items[1:], None], strict=True):
            if any(
                report.failed
                for report in runtestprotocol(item, log=False, nextitem=following)
            ):
                return False
        return True

    def tests_of(self, name: str, first: int, last: int) -> list[str]:
        """Return the tests that reach some lines, the fastest first."""
        lines = {int(line): tests for line, tests in self.reached.get(name, {}).items()}
        here = {test for line in range(first, last + 1) for test in lines.get(line, [])}
        here = here or {test for tests in lines.values() for test in tests}
        return sorted(here, key=lambda test: self.seconds[test])

    def noticed(self, name: str, tree: Any, tests: list[str]) -> bool:
        """Run tests with a changed tree, in its own process; return if one fails."""
        limit = CPU_SECONDS + int(3 * sum(self.seconds[test] for test in tests))
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os.dup2(1, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            try:
                put(name, tree)
                os._exit(not self._passes([self.items[test] for test in tests]))
            finally:
                os._exit(1)
        until = time.monotonic() + 30 * limit
        while time.monotonic() < until:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return status != 0
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return True


def _in_a_fork(work: Callable[[], Any]) -> str:
    """Run a function in a copy of this process and return its result."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
        with os.fdopen(write, "w") as pipe:
            json.dump(work(), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


def put(name: str, tree: Any) -> None:
    """Replace a module's code by that of a tree, in all modules that import it."""
    module = sys.modules["mlconsensus." + name.removesuffix(".py").replace("/", ".")]
    fresh = types.ModuleType(module.__name__)
    vars(fresh).update(
        {key: value for key, value in vars(module).items() if key.startswith("__")}
    )
    exec(compile(tree, str(SOURCE / name), "exec"), vars(fresh))
    for key, new in list(vars(fresh).items()):
        old = vars(module).get(key)
        if key.startswith("__") or old is new:
            continue
        if isinstance(new, types.FunctionType) and new.__module__ == module.__name__:
            _recode(old, new)
        elif isinstance(new, type) and new.__module__ == module.__name__:
            for own, part in list(vars(new).items()):
                if not _recode(vars(old).get(own), part) and not own.startswith("__"):
                    setattr(old, own, part)
        else:  # a number, which others may have imported
            for other in list(sys.modules.values()):
                if key in getattr(other, "__dict__", ()) and vars(other)[key] is old:
                    setattr(other, key, new)


def _recode(old: Any, new: Any) -> bool:
    """Replace the code of a function, method or property; return if it was one."""
    for part in ("__func__", "fget"):
        old, new = getattr(old, part, old), getattr(new, part, new)
    if isinstance(old, types.FunctionType) and isinstance(new, types.FunctionType):
        if old.__code__.co_freevars == new.__code__.co_freevars:
            old.__code__, old.__defaults__, old.__kwdefaults__ = (
                new.__code__,
                new.__defaults__,
                new.__kwdefaults__,
            )
        return True
    return False


def interval(killed: int, tried: int) -> tuple[float, float]:
    """Give Wilson's 95 % interval of a share."""
    z = 1.96
    middle = (killed + z * z / 2) / (tried + z * z)
    half = z / (tried + z * z) * (killed * (tried - killed) / tried + z * z / 4) ** 0.5
    return middle - half, middle + half


def sample(trial: Trial) -> None:
    """Try the mutants of the sample; print the score and who survived."""
    given, trees = trial.given, trial.trees
    every = [(name, *place) for name, tree in trees.items() for place in places(tree)]
    random.Random(given.seed).shuffle(every)
    every = [each for each in every if given.file in each[0]]
    known = {}
    if given.results.exists():
        for line in given.results.read_text(encoding="utf-8").splitlines():
            found = json.loads(line)
            known[found["mutant"]] = found["noticed"]
    equivalent = {
        line.rpartition(" — ")[0]
        for line in EQUIVALENT.read_text(encoding="utf-8").splitlines()
    }
    control = "linalg/random_walk.py"
    tests = trial.tests_of(control, 1, 1)
    nothing = ast.parse("def solved(*a, **k): raise RuntimeError")
    if trial.noticed(control, trees[control], tests) or not trial.noticed(
        control, nothing, tests
    ):
        sys.exit(
            "found tests that fail with the same code once more, or that do not "
            "meet a mutant; expected neither"
        )
    survivors, killed, left_out = [], 0, 0
    chosen = every[given.first : given.sample]
    for name, at, part, what in chosen:
        tree, first, last, column = mutated(trees[name], at, part)
        source = (SOURCE / name).read_text(encoding="utf-8").splitlines()[first - 1]
        mutant = (
            f"{name} `{source.strip()}` "
            f"{column - len(source) + len(source.lstrip())}: {what}"
        )
        if mutant in equivalent:
            left_out += 1
            continue
        if mutant not in known or (given.again and not known[mutant]):
            tests, start = trial.tests_of(name, first, last), time.monotonic()
            known[mutant] = trial.noticed(name, tree, tests)
            with given.results.open("a", encoding="utf-8") as file:
                file.write(
                    json.dumps(
                        {"mutant": mutant, "noticed": known[mutant]}, ensure_ascii=False
                    )
                    + "\n"
                )
            took = f"{len(tests)} tests, {time.monotonic() - start:.0f} s"
            print(
                "noticed " if known[mutant] else "SURVIVED",
                f"{mutant} (line {first}; {took})",
                flush=True,
            )
        killed += known[mutant]
        survivors += [] if known[mutant] else [mutant]
    tried = len(chosen) - left_out
    low, high = interval(killed, tried)
    print("\n".join(["", "Survivors:", *sorted(survivors)]))
    print(
        f"{killed} of {tried} noticed: {killed / tried:.1%}, 95 % interval "
        f"{low:.0%} to {high:.0%}",
        end="; ",
    )
    print(
        f"{left_out} others of the sample are named as equivalent; {len(every):,} "
        f"mutants in all"
    )


def main() -> None:
    """Collect the tests and let a sample of mutants meet them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sample", type=int, default=150, help="how many mutants of all"
    )
    parser.add_argument(
        "--first",
        type=int,
        default=0,
        help="where in the sample to begin, for several at once",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--file", default="", help="only mutants of files with this in their names"
    )
    parser.add_argument("--results", type=Path, default=ROOT / ".mutants.jsonl")
    parser.add_argument(
        "--again", action="store_true", help="try those that survived once more"
    )
    given = parser.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src")]
    import pytest

    options = [
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:cov",
    ]
    paths = [
        *(str(SOURCE / room) for room in ROOMS),
        *(f"tests/{each}" for each in TESTS),
    ]
    sys.exit(pytest.main([*options, *paths], plugins=[Trial(given)]))


if __name__ == "__main__":
    main()
