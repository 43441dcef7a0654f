"""Text that reaches users avoids the words that the style page rejects."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "mlconsensus"

REJECTED = re.compile(
    r"\b("
    r"raters?|voices?|kin|silence|silent|strangers|replicas|bears? out|referee|verdict|"
    r"suspects?|accused|anew|beside|mended|spoiled|foresee|reckon|nobody|unless told|"
    r"whatever the|is no|keep a promise"
    r")\b",
    re.IGNORECASE,
)

# Names of columns in files of users, which are read as columns of models.
DATA_NAMES = {"rater"}

PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
)
TEMPLATES = sorted(path for path in SOURCE.glob("*/templates/*") if path.is_file())
MODULES = sorted(SOURCE.rglob("*.py"))


def find_rejected(text):
    """Return the rejected words of a text, with their lines."""
    # Words in identifiers such as with_silence, and at ends of lines
    words = text.replace("_", " ")
    lines = words.split("\n")
    results = []
    for match in REJECTED.finditer(re.sub(r"\s", " ", words)):
        number = words.count("\n", 0, match.start())
        results.append(f"{match.group()!r} in: {lines[number].strip()}")
    return results


def list_strings(path):
    """Return all strings of a module: messages, help, docstrings and JSON keys."""
    tree = ast.parse(path.read_text("utf-8"))
    strings = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if node.value not in DATA_NAMES:
            strings.append(node.value)
    return strings


@pytest.mark.parametrize(
    "text",
    ["5 raters", "the rater_filter", "It is\nno model.", "Kin count once", "Anew"],
)
def test_rejected_words_are_found(text):
    assert find_rejected(text)


@pytest.mark.parametrize(
    "text", ["a generator", "skin", "besides", "is not a model", "his nose", "invoices"]
)
def test_other_words_are_not_found(text):
    assert not find_rejected(text)


def test_all_kinds_of_text_are_read():
    assert len(PAGES) > 20
    assert len(MODULES) > 100
    assert {path.suffix for path in TEMPLATES} == {".j2", ".css", ".js"}


def test_strings_of_the_package_avoid_rejected_words():
    results = []
    for path in MODULES:
        for text in list_strings(path):
            for result in find_rejected(text):
                results.append(f"{path.relative_to(ROOT)}: {result}")
    assert not results, "\n".join(results)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_avoid_rejected_words(path):
    assert not find_rejected(path.read_text("utf-8"))


@pytest.mark.parametrize("name", [str(path.relative_to(ROOT)) for path in PAGES])
def test_pages_avoid_rejected_words(name):
    results = find_rejected((ROOT / name).read_text("utf-8"))
    assert not results, "\n".join(results)
