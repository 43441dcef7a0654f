"""Every block of the README is run, and prints what is shown."""

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

import mlconsensus as mlc
from mlconsensus.cli import main
from mlconsensus.cli.demo import run_demo

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(README)


def get_blocks(language):
    return [text for name, text in BLOCKS if name == language]


def run(command):
    """Run a command and return what it prints."""
    output = io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
        pytest.raises(SystemExit) as end,
    ):
        main(command.split()[1:])
    assert end.value.code == 0
    return output.getvalue().strip()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_demo("mlconsensus-demo")
    return tmp_path


def test_the_readme_is_short_and_has_known_blocks():
    assert len(README.splitlines()) <= 130
    assert README.count("```") == 2 * len(BLOCKS)
    assert [name for name, _ in BLOCKS] == ["sh", "json", "python", "text", "console"]
    assert README.count("<picture>") + README.count("](docs/images") <= 3


def test_shell_blocks_only_install():
    for text in get_blocks("sh"):
        assert text.startswith(("pip install .", "make "))


def test_python_blocks_print_what_is_shown(folder, capsys):
    for code, shown in zip(get_blocks("python"), get_blocks("text"), strict=True):
        assert len([line for line in code.splitlines() if line]) <= 10
        exec(code, {})
        assert capsys.readouterr().out == shown
    assert (folder / "report.html").exists()


def test_commands_print_what_is_shown(folder):
    for code in get_blocks("python"):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, {})

    (text,) = get_blocks("console")
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    assert len(parts) == 2
    for part in parts:
        command, _, shown = part.partition("\n")
        lines = shown.strip().splitlines()
        pattern = "\n".join(
            "(?s:.*)" if line == "…" else re.escape(line) for line in lines
        )
        output = run(command)
        assert re.fullmatch(pattern, output), output


def test_the_rows_are_in_the_files(folder):
    input_row, output_row = get_blocks("json")[0].splitlines()
    answers = (folder / "mlconsensus-demo" / "answers.jsonl").read_text()
    assert input_row in answers.splitlines()
    run(
        "mlconsensus combine mlconsensus-demo/answers.jsonl --decide micro-f1 "
        "--output tags.jsonl"
    )
    assert output_row in (folder / "tags.jsonl").read_text().splitlines()
    assert json.loads(input_row)["instance"] == json.loads(output_row)["instance"]


def test_the_metrics_of_voting_are_right():
    tickets = mlc.datasets.load_support_tickets()
    scores = mlc.majority_vote(tickets.predictions)
    metrics = mlc.metrics.evaluate(tickets.truth, scores)
    names = ("micro_auc", "one_error", "ranking_loss", "average_precision")
    first, second, third, last = [f"{metrics[name]:.4f}" for name in names]
    assert f"Majority voting has {first}, {second}, {third} and {last} here." in README


def test_links_and_names_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
    for image in re.findall(r'src(?:set)?="([^"]+)"', README):
        assert (ROOT / image).exists(), image
    for name in re.findall(r"`mlc\.(\w+)", README):
        assert hasattr(mlc, name)
    consensus = mlc.combine(mlc.datasets.make_panel(20, 3, 3, random_state=0)[0])
    for name in re.findall(r"`consensus\.(\w+)", README):
        assert hasattr(consensus, name)
    for method in mlc.COMBINERS:
        assert f"`{method.replace('_', '-')}`" in README
