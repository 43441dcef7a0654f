"""Hostile names, files and streams: output is printable, and no file is left."""

import csv
import os
import pty
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.cli import main
from mlconsensus.cli.main import _COMMANDS

HOSTILE = "\x1b]0;owned\x07\x9b2J\u202eEVIL\n"


def obeyed(text):
    """What a terminal would do, rather than show, of a text."""
    return [
        character
        for character in text
        if not character.isprintable() and character != "\n"
    ]


@pytest.fixture
def hostile(tmp_path):
    """Predictions whose names contain control sequences of a terminal."""
    rng = np.random.default_rng(0)
    with (tmp_path / "p.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["instance", "label", "score", "model"])
        for model in ("1", "2", "3"):
            for i in range(120):
                rows.writerows(
                    [f"{HOSTILE}{i}", HOSTILE + label, rng.integers(2), HOSTILE + model]
                    for label in "xyz"
                )
    truth = [[f"{HOSTILE}{i}", i % 2, i % 3 // 2] for i in range(40)]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", HOSTILE + "x", HOSTILE + "y"], *truth])
    (tmp_path / f"{HOSTILE.strip()}.csv").write_text("id,x\n1,maybe\n")
    (tmp_path / f"{HOSTILE.strip()}2.csv").write_text("id,x\n1,1\n")


@pytest.mark.parametrize(
    ("code", "args"),
    [
        (0, ["combine", "p.csv", "-o", "o.csv"]),
        (0, ["compare", "p.csv", "--truth", "t.csv", "--each-model"]),
        (0, ["compare", "p.csv"]),
        (0, ["report", "p.csv", "--truth", "t.csv", "--output-format", "text"]),
        (0, ["report", "p.csv", "--truth", "t.csv", "--output-format", "html"]),
        (0, ["report", "p.csv", "--output-format", "json"]),
        (0, ["explain", "p.csv", "--instance", f"{HOSTILE}7"]),
        (0, ["explain", "p.csv", "--instance", f"{HOSTILE}7", "--json"]),
        (
            0,
            [
                "evaluate",
                f"{HOSTILE.strip()}2.csv",
                "--truth",
                f"{HOSTILE.strip()}2.csv",
            ],
        ),
        (0, ["report", f"{HOSTILE.strip()}2.csv", "-o", f"{HOSTILE.strip()}.json"]),
        (2, ["combine", f"{HOSTILE.strip()}.csv"]),
        (2, ["explain", "p.csv", "--instance", f"{HOSTILE}none"]),
        (2, ["combine", "p.csv", "--weight", f"{HOSTILE}=1"]),
        (2, [f"{HOSTILE}command"]),
    ],
    ids=lambda value: (
        value[0].encode("unicode_escape").decode() if isinstance(value, list) else ""
    ),
)
def test_no_name_is_obeyed_by_a_terminal(run, hostile, code, args):
    ran = run(*args)
    assert ran.code == code
    assert obeyed(ran.out) == []
    assert obeyed(ran.err) == []


EVIL = HOSTILE.strip()
WALK = {
    "agreement": [["p.csv"], ["p.csv", "--json"]],
    "ask": [
        ["p.csv", "--budget", "5", "-o", f"{EVIL}.ask.csv"],
        ["p.csv", "--gold", "t.csv", "--budget", "3", "-o", "-"],
        ["p.csv", "--gold", f"{EVIL}.csv", "-o", "x.csv"],
    ],
    "apply": [["s.model", "p.csv"], [f"{EVIL}2.csv", "p.csv"]],
    "combine": [
        ["p.csv", "-o", f"{EVIL}.out.csv"],
        ["p.csv", "--stream", "-o", f"{EVIL}.parquet"],
        [f"{EVIL}.csv"],
    ],
    "compare": [["p.csv", "--truth", "t.csv", "--each-model"], ["p.csv"]],
    "datasets": [["list"], ["fetch", EVIL]],
    "decide": [
        ["p.csv", "--gold", "t.csv", "--recall", "0.5", "--precision", "0.5"],
        [
            "p.csv",
            "--gold",
            "t.csv",
            "--recall",
            "0.5",
            "--json",
            "-o",
            f"{EVIL}.sets.csv",
        ],
        ["p.csv", "--gold", f"{EVIL}.csv", "--recall", "0.5"],
    ],
    "demo": [["--output", f"{EVIL}.demo"]],
    "evaluate": [
        [f"{EVIL}2.csv", "--truth", f"{EVIL}2.csv"],
        ["k.npz", "--truth", "t.csv"],
        ["l.arff", "--truth", "t.csv"],
    ],
    "explain": [
        ["p.csv", "--instance", f"{HOSTILE}7"],
        ["p.csv", "--instance", EVIL],
        ["p.csv", "--instance", "\udce9"],
    ],
    "labels": [["p.csv", "--suggest", f"{EVIL}.aliases.csv"]],
    "report": [["p.csv", "--truth", "t.csv"], ["p.csv", "-o", f"{EVIL}.html"]],
    "reproduce": [[EVIL]],
    "solve": [["s.stats", "-o", f"{EVIL}.model"], [f"{EVIL}2.csv", "-o", "x"]],
    "statistics": [
        ["p.csv", "--method", "mv", "-o", f"{EVIL}.stats"],
        ["p.csv", "--method", EVIL, "-o", "x"],
    ],
}


@pytest.fixture
def on_terminal(monkeypatch, tmp_path):
    """Run the command line on a pseudo-terminal, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "TERM", "dumb"
    )  # on which progress bars send no commands of their own

    def run(*args):
        ours, theirs = pty.openpty()
        shown = []

        def listen():
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # nobody is there any more
                    return
                shown.append(part)

        listener = threading.Thread(target=listen)
        listener.start()
        with (
            open(theirs, "w", encoding="utf-8", errors="backslashreplace") as terminal,
            monkeypatch.context() as patched,
        ):
            patched.setattr(sys, "stdout", terminal)
            patched.setattr(sys, "stderr", terminal)
            with pytest.raises(SystemExit) as end:
                main([str(arg) for arg in args])
        listener.join()
        os.close(ours)
        return end.value.code, b"".join(shown).decode().replace("\r\n", "\n")

    return run


@pytest.mark.parametrize("command", _COMMANDS)
def test_all_that_a_terminal_is_shown_is_printable(
    on_terminal, hostile, tmp_path, command
):
    panel = mlc.read_predictions(tmp_path / "p.csv")
    mlc.save_statistics(mlc.MajorityVote().fit(panel), tmp_path / "s.stats")
    mlc.save(mlc.MajorityVote().fit(panel), tmp_path / "s.model")
    np.savez(tmp_path / "k.npz", **{EVIL: np.ones((1, 1))})
    levels = (
        f"@relation 'r: -C 1'\n@attribute a {{0,1}}\n@attribute f "
        f"{{'{EVIL}',x}}\n@data\n1,zz\n"
    )
    (tmp_path / "l.arff").write_text(levels)
    codes = []
    for args in WALK[command]:
        code, shown = on_terminal(command, *args)
        assert shown
        assert obeyed(shown) == []
        codes.append(code)
    assert set(codes) <= {0, 2}
    assert codes[0] == (
        2 if command == "reproduce" else 0
    )  # the first goes through all


def test_a_terminal_that_can_do_more(on_terminal, hostile, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(
        "mlconsensus.Predictions.block_size", property(lambda panel: 100)
    )
    code, shown = on_terminal("combine", "p.csv", "-o", "o.csv")
    assert code == 0
    assert not {"\x07", "\x9b", "\u202e"} & set(shown)
    assert "\x1b]" not in shown


@pytest.mark.filterwarnings("always")
def test_warnings_are_shown_whoever_gives_them(on_terminal, monkeypatch):
    def warn(*args, **options):
        for kind in (mlc.InputWarning, UserWarning):
            warnings.warn(HOSTILE, kind, stacklevel=1)
        raise mlc.InputError("a.csv: found nothing, expected something")

    monkeypatch.setattr("mlconsensus.read_predictions", warn)
    code, shown = on_terminal("combine", "a.csv")
    assert (code, shown.count("EVIL")) == (2, 2)
    assert obeyed(shown) == []


def test_messages_have_an_end(run, tmp_path):
    (tmp_path / "a.csv").write_text(f"id,{'x' * 100_000},{'x' * 100_000}\n1,1,1\n")
    ran = run("combine", "a.csv")
    assert ran.code == 2
    assert len(ran.err) < 2100


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (MemoryError("It takes 75 GB"), "memory: found too little"),
        (
            OSError(30, "Read-only file system", "/there"),
            "/there: found 'read-only file system', expected",
        ),
        (
            OSError(24, "Too many open files"),
            "system: found 'too many open files', expected",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_the_system_refuses_is_no_fault_of_the_program(
    run, panel, monkeypatch, fault, words
):
    def refuse(*args, **options):
        raise fault

    monkeypatch.setattr("mlconsensus.read_predictions", refuse)
    ran = run("combine", "a.csv", "-o", "out.csv")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert words in ran.err


def test_standard_streams_that_are_closed(shell, panel):
    assert (
        shell(
            "python -c 'import sys, mlconsensus.cli; sys.exit(sys.stderr is None)' 2>&-"
        ).code
        == 0
    )
    assert (
        shell(
            "mlconsensus combine a.csv b.csv --method mv -o out.csv >&- 2>&- <&-"
        ).code
        == 0
    )
    assert (panel / "out.csv").exists()
    ran = shell("mlconsensus combine a.csv b.csv --method mv >&-")
    assert ran.code == 2
    assert ran.err.endswith(
        "mlconsensus: standard output: found it closed, expected it open\n"
    )
    ran = shell("mlconsensus combine - --format csv -o d.csv <&-")
    assert ran.code == 2
    assert ran.err == "mlconsensus: standard input: found it closed, expected it open\n"


def test_a_panic_of_a_library_is_one_line(shell, tmp_path):
    (tmp_path / "a.csv").write_bytes(b'id,a,b\n1,0.5,\n2,"')
    pl.DataFrame({"id": ["a"], "x": [0.5]}).write_ipc(
        tmp_path / "a.feather", compression="uncompressed"
    )
    data = (tmp_path / "a.feather").read_bytes()
    one = (1).to_bytes(
        8, "little"
    )  # first the length of the batch, which no file has below 0
    (tmp_path / "a.feather").write_bytes(data.replace(one, b"\xff" * 8, 1))
    for name in ("a.csv", "a.feather"):
        ran = shell(f"mlconsensus combine {name} -o out.csv")
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert ran.err.startswith(f"mlconsensus: {name}")
    ran = shell("mlconsensus --traceback combine a.feather -o out.csv")
    assert "panicked" in ran.err


SLOW = """
import os, sys, time
from mlconsensus.io import files
def wait(*args):
    print("ready", flush=True)
    time.sleep(60)
files.put_in_place = wait
from mlconsensus.cli import main
main()
"""


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("SIGTERM", "--stream"),
        ("SIGTERM", "--no-stream"),
        ("SIGHUP", "--stream"),
        ("SIGINT", "--no-stream"),
    ],
)
def test_a_request_to_end_leaves_nothing(panel, name, mode):
    (panel / "scratch").mkdir()
    before = sorted(os.listdir(panel))
    number = getattr(signal, name)
    command = [
        sys.executable,
        "-c",
        SLOW,
        "combine",
        "a.csv",
        "b.csv",
        "--method",
        "mv",
        mode,
        "-o",
        "out.csv",
    ]
    scratch = {**os.environ, "TMPDIR": str(panel / "scratch")}
    process = subprocess.Popen(
        command, cwd=panel, env=scratch, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    assert any(entry.endswith(".part") for entry in os.listdir(panel))
    process.send_signal(number)
    _, output = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert output.decode().splitlines()[-1] == "mlconsensus: interrupted"
    assert sorted(os.listdir(panel)) == before
    assert os.listdir(panel / "scratch") == []


def test_nohup_is_heeded(panel):
    program = SLOW.replace("time.sleep(60)", "time.sleep(1)")
    command = [
        "nohup",
        sys.executable,
        "-c",
        program,
        "combine",
        "a.csv",
        "b.csv",
        "--method",
        "mv",
        "-o",
        "out.csv",
    ]
    process = subprocess.Popen(
        command, cwd=panel, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_pipes_are_never_replaced(run, panel, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for mode in ("--stream", "--no-stream"):
        call = [
            "combine",
            "a.csv",
            "--method",
            "mv",
            mode,
            "--output-format",
            "csv",
            "-o",
            "pipe",
        ]
        ran = run(*call, "--force")
        assert ran.code == 2
        assert "pipe: found 'no such device or address'" in ran.err
        assert (tmp_path / "pipe").is_fifo()
    with subprocess.Popen(
        ["cat", "pipe"], cwd=tmp_path, stdout=subprocess.PIPE
    ) as reader:
        time.sleep(0.2)
        assert run(*call).code == 0
        assert reader.stdout.read().count(b"\n") == 4
    assert (tmp_path / "pipe").is_fifo()


def test_devices_are_never_replaced(run, panel, tmp_path):
    try:  # one that takes everything, in a folder of our own
        os.mknod(tmp_path / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        (tmp_path / "device").open("wb").close()
    except OSError:
        pytest.skip("only root may make a device")
    for mode in ("--stream", "--no-stream"):
        for force in ([], ["--force"]):
            ran = run(
                "combine",
                "a.csv",
                "--method",
                "mv",
                mode,
                "--output-format",
                "csv",
                "-o",
                "device",
                *force,
            )
            assert ran.code == 0
            assert (tmp_path / "device").is_char_device()


def test_a_score_of_minus_zero(run, tmp_path):
    (tmp_path / "a.csv").write_text("id,law,war\n1,0.5,-0\n2,1,0.25\n")
    (tmp_path / "b.csv").write_text("id,law,war\n1,0.5,0\n2,1,0.25\n")
    outs = []
    for files in (["a.csv", "b.csv"], ["b.csv", "a.csv"]):
        for options in ([], ["--rescale", "--method", "mv"]):
            ran = run("combine", *files, *options)
            assert ran.code == 0
            outs.append(ran.out)
    assert outs[:2] == outs[2:]
    assert run("report", "a.csv", "b.csv").code == 0
