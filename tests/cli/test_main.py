import re
import subprocess
import sys

import click
import pytest

import mlconsensus
from mlconsensus.cli.main import _COMMANDS, cli
from mlconsensus.cli.options import Output


def test_version_and_help(run):
    assert run("--version").out == f"mlconsensus, version {mlconsensus.__version__}\n"
    for command in _COMMANDS:
        ran = run(command, "--help")
        assert ran.code == 0
        assert "Example" in ran.out
        assert command in run("--help").out


def test_help_and_version_load_no_library():
    heavy = "print(sorted({'numpy', 'scipy', 'polars', 'sklearn'} & set(sys.modules)))"
    asked = (
        f"import sys\nfrom mlconsensus.cli.main import main\ntry: "
        f"main(['--help'])\nexcept SystemExit: {heavy}"
    )
    ran = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True
    )
    assert ran.stdout.endswith("\n[]\n")


def test_misspelt_commands_and_options(run):
    ran = run("combin", "a.csv")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "found 'combin'" in ran.err
    assert "did you mean 'combine'" in ran.err
    ran = run("combine", "a.csv", "--ouput", "x.csv")
    assert ran.code == 2
    assert "--output" in ran.err
    assert ran.err.count("\n") == 1


def test_a_fault_of_the_program_exits_1(run, panel, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("out of\nluck")

    monkeypatch.setattr("mlconsensus.read_predictions", broken)
    ran = run("combine", "a.csv")
    assert ran.code == 1
    assert (
        ran.err
        == "mlconsensus: internal fault, please report it: RuntimeError: out of luck\n"
    )
    assert "Traceback" in run("--traceback", "combine", "a.csv").err


def test_interruption(run, panel, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("mlconsensus.read_predictions", interrupted)
    ran = run("combine", "a.csv", "-o", "x.csv")
    assert ran.code == 130
    assert not (panel / "x.csv").exists()


def test_a_reader_that_has_had_enough(shell, panel):
    shell("(mlconsensus combine a.csv b.csv 2>err; echo $? >code) | true")
    assert (panel / "code").read_text() == "0\n"
    assert "Traceback" not in (panel / "err").read_text()
    assert "fault" not in (panel / "err").read_text()


def test_completion(shell):
    ran = shell(
        "COMP_WORDS='mlconsensus com' COMP_CWORD=1 "
        "_MLCONSENSUS_COMPLETE=bash_complete mlconsensus"
    )
    assert ran.out.split() == ["plain,combine", "plain,compare"]


def test_help_names_every_method(run):
    text = run("combine", "--help").out
    for method in mlconsensus.COMBINERS:
        assert method.replace("_", "-") in re.sub(r"-\s+", "-", text)


def test_demo(run, tmp_path):
    ran = run("demo", "--output", "here")
    assert ran.code == 0
    assert "\nweighted-consensus " in ran.out
    assert (tmp_path / "here" / "consensus.csv").exists()
    assert run("demo", "--output", "here").code == 2


def test_a_terminal_sees_a_bar(run, panel, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setattr("mlconsensus.Predictions.block_size", property(lambda panel: 1))
    # Fewer labels are solved at once, without a bar.
    labels = [f"label {number}" for number in range(40)]
    for name in ("wide_a.csv", "wide_b.csv"):
        rows = [",".join(["id", *labels]), ",".join(["7"] + 40 * ["1"])]
        rows.append(",".join(["8"] + 40 * ["0"]))
        (panel / name).write_text("\n".join(rows) + "\n")

    ran = run("combine", "wide_a.csv", "wide_b.csv", "-o", "out.csv")
    for doing in ("gathering", "solving", "combining"):
        assert doing in ran.err
    assert ran.out == ""


def test_the_bare_command_shows_its_help(run):
    ran = run()
    assert ran.code == 0
    assert ran.out.splitlines()[0].startswith("Usage: mlconsensus")


def test_a_closed_standard_output_is_no_fault_where_nothing_is_printed(
    run, panel, monkeypatch
):
    monkeypatch.setattr(
        "sys.stdout", None
    )  # what Python has where the shell closed it by >&-
    assert run("combine", "a.csv", "b.csv", "-o", "out.csv").code == 0
    assert (panel / "out.csv").exists()


def test_a_full_standard_output_is_no_fault_of_the_program(shell, panel):
    ran = shell("mlconsensus combine a.csv b.csv > /dev/full")
    assert ran.code == 2
    assert ran.err.splitlines()[-1].startswith("mlconsensus: standard output: found")


def test_what_cannot_be_encoded_is_escaped(shell, panel):
    ran = shell("PYTHONIOENCODING=cp1252 mlconsensus agreement a.csv b.csv > out.txt")
    assert (ran.code, b"\\u03b1" in (panel / "out.txt").read_bytes()) == (0, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--decide", "threshold", "--threshold", "1.5"],
            "1.5 is not in the range 0<=x<=1",
        ),
        (
            ["--layout", "ranked", "-o", "out.jsonl"],
            "layout: found 'ranked' for JSONL, expected a table, such as CSV",
        ),
    ],
)
def test_options_that_would_be_ignored_are_refused(run, panel, options, words):
    ran = run("combine", "a.csv", "b.csv", *options)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert words in ran.err


def _places():
    """Each pair of an output and a file that a command reads, and of two outputs."""
    context = click.Context(cli)
    for name in _COMMANDS:
        files = [
            option
            for option in cli.get_command(context, name).params
            if isinstance(option.type, click.Path)
        ]
        for output in (option for option in files if isinstance(option.type, Output)):
            yield from (
                (name, output, other)
                for other in files
                if other is not output and other.type.file_okay
            )


def _option(option, value):
    if isinstance(option, click.Argument):
        return [value]
    return [option.opts[0], value]


@pytest.mark.parametrize(
    ("name", "output", "other"),
    [
        pytest.param(*item, id=f"{item[0]} {item[2].name} {item[1].name}")
        for item in _places()
    ],
)
def test_no_output_takes_the_place_of_a_file_that_is_read_or_of_another_output(
    run, panel, name, output, other
):
    before = (panel / "a.csv").read_bytes()
    arguments = [*_option(other, "a.csv"), *_option(output, "./a.csv"), "--force"]
    for option in cli.get_command(click.Context(cli), name).params:
        if (
            option.required
            and option not in (output, other)
            and isinstance(option.type, click.Path)
        ):
            arguments += _option(option, f"{option.name}.csv")
    ran = run(name, *arguments)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert (
        "a.csv: found among the input files" in ran.err
        or "a.csv: found the place of another output" in ran.err
    )
    assert (panel / "a.csv").read_bytes() == before


def test_an_output_is_no_model_of_the_next_run(run, panel):
    (panel / "c.csv").rename(panel / "c.txt")
    ran = run("combine", ".", "-o", "out.csv")
    assert (ran.code, "out.csv: found among the input files too" in ran.err) == (
        2,
        True,
    )
    (panel / "made").mkdir()
    assert run("combine", ".", "-o", "made/out.csv").code == 0
    assert run("report", ".", "-o", "report.html").code == 0  # which is not read


def test_the_help_has_commands_in_groups(run):
    text = run("--help").out
    headings = ["Combine", "Evaluate", "Review", "Federated", "Try"]
    positions = [text.index(f"\n{heading}:\n") for heading in headings]
    assert positions == sorted(positions)
    for name in _COMMANDS:
        assert text.count(f"\n  {name} ") == 1
    assert "..." not in text.split("Combine:")[1]  # nothing is cut


@pytest.mark.parametrize("name", [name for name in _COMMANDS if name != "datasets"])
def test_the_help_of_a_command_has_its_own_options_first_and_files_last(run, name):
    text = run(name, "--help").out
    known = ["Options", "Method", "Label sets", "Output", "Large data", "Reading files"]
    headings = [line[:-1] for line in text.splitlines() if line[:-1] in known]
    assert headings == [heading for heading in known if heading in headings]
    for option in cli.get_command(click.Context(cli), name).params:
        if isinstance(option, click.Option):
            assert f"{option.opts[0]}" in text
    if "Reading files" in headings:
        assert text.index("--columns") > text.index("\nReading files:")


def test_the_examples_of_the_help_can_be_parsed(run, monkeypatch, tmp_path):
    """Each example has a command and options that exist."""
    for name in _COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        lines = [line.strip() for line in command.help.splitlines()]
        examples = [line for line in lines if line.startswith("mlconsensus ")]
        assert examples
        for example in examples:
            _, other, *words = example.split()
            called = cli.get_command(click.Context(cli), other)
            with called.make_context(other, words, resilient_parsing=False) as context:
                assert context.command is called
