"""Completion in real shells, if they are installed."""

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

# How each shell is started without anybody's settings, and what it has to be told
# first.
SHELLS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        'bind "set enable-bracketed-paste off"; eval "$({})"',
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        "bindkey -e; unsetopt prompt_cr; autoload -U compinit; compinit -u -D; "
        'eval "$({})"',
    ),
    "fish": (["fish", "--no-config", "-i"], "{} | source"),
}
LINES = {
    "mlconsensus combine al": "mlconsensus combine alpha.csv",
    "mlconsensus combine alpha.csv --method we": "mlconsensus combine alpha.csv "
    "--method weighted-consensus",
    "mlconsensus combine alpha.csv --output-format lab": "mlconsensus combine "
    "alpha.csv --output-format label-studio",
    "mlconsensus combine alpha.csv --fam": "mlconsensus combine alpha.csv --families",
    "mlconsensus combine alpha.csv --aliases nam": "mlconsensus combine alpha.csv "
    "--aliases names.txt",
    "mlconsensus evaluate alpha.csv --truth al": "mlconsensus evaluate alpha.csv "
    "--truth alpha.csv",
    "mlconsensus agr": "mlconsensus agreement",
}


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, words, folder):
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        env = {"PATH": path, "TERM": "dumb", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        env |= {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        self.pid, self.line = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, env)

    def send(self, text, until, most=20.0):
        """Type something and wait for a pattern; what came is returned."""
        os.write(self.line, text.encode())
        output = ""
        end = time.monotonic() + most
        while time.monotonic() < end and not re.search(until, output):
            if select.select([self.line], [], [], 0.1)[0]:
                output += os.read(self.line, 65536).decode(errors="replace")
                if (
                    "\x1b[c" in output or "\x1b[0c" in output
                ):  # fish asks what terminal this is, and waits
                    os.write(self.line, b"\x1b[?62c")
                    output = output.replace("\x1b[c", "").replace("\x1b[0c", "")
        return output

    def close(self):
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.close(self.line)
        os.waitpid(self.pid, 0)


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_files_methods_formats_and_options(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    for name in ("alpha.csv", "names.txt"):
        (tmp_path / name).touch()
    words, setup = SHELLS[shell]
    terminal = Terminal(words, tmp_path)
    try:
        ready = terminal.send(
            setup.format(f"_MLCONSENSUS_COMPLETE={shell}_source mlconsensus")
            + "; echo rea''dy\r",
            "ready",
            30,
        )
        assert "ready" in ready
        for typed, expected in LINES.items():
            # The line that Tab has made is not run but shown: Ctrl-A goes to its
            # beginning.
            terminal.send(typed + "\t", re.escape(expected[len(typed) :]), 10)
            output = terminal.send("\x01echo GO''T \r", "GOT mlcon[^\n]*\n")
            assert [
                line.rstrip()
                for line in re.findall(r"GOT (mlconsensus[^\r\n]*)", output)
            ] == [expected]
    finally:
        terminal.close()
