"""Pages of docs show what commands print: every `$ …` line is run."""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from mlconsensus.cli import main
from mlconsensus.cli.demo import run_demo as demo

ROOT = Path(__file__).parents[2]
SHOWN = re.compile(
    r"^    \$ (.*)\n((?:    (?!\$ ).*\n|\n(?=    (?!\$ )))*)", re.MULTILINE
)  # a command, what it prints


def printed(line):
    """Run a command and return its output; commands of others run in a shell."""
    words = shlex.split(line, comments=True)
    if words[0] != "mlconsensus":
        done = subprocess.run(
            line,
            shell=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return done.stdout
    streams = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with (
        contextlib.redirect_stdout(streams),
        contextlib.redirect_stderr(streams),
        pytest.raises(SystemExit),
    ):
        main(words[1:])
    return streams.buffer.getvalue().decode()


@pytest.mark.parametrize(
    "page", ["command-line.md", "agreement.md", "explanations.md", "held-out-models.md"]
)
def test_a_page_shows_what_is_printed(page, tmp_path, monkeypatch):
    if page == "held-out-models.md":
        demo(tmp_path / "here")
    else:
        shutil.copytree(ROOT / "examples" / "news", tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    result = SHOWN.findall((ROOT / "docs" / page).read_text().replace("\\\n", " "))
    assert result
    for line, shown in result:
        lines = textwrap.dedent(shown).strip().splitlines()
        pattern = "\n".join(
            "(?s:.*)" if one == "…" else re.escape(one).replace("…", ".*")
            for one in lines
        )
        output = printed(line).strip()
        assert re.fullmatch(pattern, output), f"{line}\n{output}"
