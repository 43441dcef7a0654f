"""Ctrl-C while the sums are solved: heard at once, though LAPACK and threads of our own are at work."""

import os
import subprocess
import sys
import time

import pytest

# Each makes a solve that takes far longer than the test may: 20 s of LAPACK, and rounds
# that do not end.
LAPACK = """
rows = np.random.default_rng(0).random((4000, 4000))
fitted = mlc.MLCMa.from_statistics(
    mlcm_a.MLCMaStatistics(4000, 4e4 * 4000, np.full(4000, 4e3), rows.sum(axis=0), rows.T @ rows),
    models=list("abcdefghij"), labels=[str(at) for at in range(4000)], n_instances=4000,
)
"""
ROUNDS = """
random_walk._ERROR = 0.0
local.available_memory = lambda: 0
panel, _ = mlc.datasets.make_panel(n_instances=400, n_labels=12, n_models=4, random_state=1)
threads.set_limits(0, 2)
fitted = mlc.MLCMr(alpha=1e-9).from_statistics(
    mlc.MLCMr()._compute_statistics(panel.to_block()), models=panel.models, labels=panel.labels, n_instances=400, alpha=1e-9
)
"""
SCRIPT = """
import os, signal, threading, time
import numpy as np
import mlconsensus as mlc
from mlconsensus.execution import threads
from mlconsensus.combiners import mlcm_a
from mlconsensus.linalg import random_walk
from mlconsensus.execution import local
{case}
def interrupt():
    time.sleep(0.5)
    print(time.monotonic(), flush=True)
    os.kill(os.getpid(), signal.SIGINT)
local.solve(lambda: None)  # what is imported when first used
threading.Thread(target=interrupt, daemon=True).start()
try:
    fitted.solution_
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
"""


@pytest.mark.parametrize("case", [LAPACK, ROUNDS], ids=["LAPACK", "rounds"])
def test_a_solve_is_interrupted_within_2_s(case):
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(case=case)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ended = time.monotonic()
    assert ran.stderr == ""
    sent, heard = (float(line) for line in ran.stdout.split())
    assert heard - sent < 2
    assert ended - heard < 10  # and nothing keeps the process from ending


def test_ctrl_c_while_the_command_is_being_imported_shows_no_traceback(tmp_path):
    """Importing takes most of a second."""
    (tmp_path / "click.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "mlconsensus", "combine", "a.csv"], capture_output=True, text=True, timeout=60,
        check=False, env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        130,
        "",
        "mlconsensus: interrupted\n",
    )
