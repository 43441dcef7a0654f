"""Local execution: results do not depend on the size and number of blocks."""

import signal
import subprocess
import sys

import numpy as np
import pytest
import threadpoolctl
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.execution import local, memory


@pytest.fixture(params=[1, 7, 64])
def small_blocks(request, monkeypatch):
    """Blocks of a few instances, so that a small panel has many."""
    monkeypatch.setattr(
        mlc.Predictions, "block_size", property(lambda panel: request.param)
    )


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("name", mlc.COMBINERS)
def test_block_size_and_threads_do_not_matter(name, threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    panel, _ = mlc.datasets.make_panel(
        200, 6, 4, missing=0.2, probabilities=True, random_state=0
    )
    matrices = [sparse.csr_array(scores) for scores in panel.to_array()]
    for layout in (panel.to_array(), matrices):
        blocked = mlc.COMBINERS[name]().fit_transform(layout)
        with monkeypatch.context() as patch:
            patch.setattr(mlc.Predictions, "block_size", property(len))
            pooled = mlc.COMBINERS[name]().fit_transform(layout)
        np.testing.assert_allclose(blocked, pooled, rtol=0, atol=1e-10)


@pytest.mark.usefixtures("small_blocks")
def test_an_error_in_one_block_ends_the_pass():
    panel = mlc.Predictions(np.zeros((2, 300, 3)))

    def broken(block):
        if block.instances[0] > 100:
            raise ValueError("block at fault")
        return np.zeros((len(block), 3))

    with pytest.raises(ValueError, match="block at fault"):
        local.map_blocks(panel, broken)


def test_threads_follow_the_limit_of_a_container(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    cores = range(8)
    monkeypatch.setattr(
        memory.os, "sched_getaffinity", lambda process: cores, raising=False
    )
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert memory.count_cores() == 8
    for text, n_cores in (("max 100000", 8), ("250000 100000", 3), ("50000 100000", 1)):
        (tmp_path / "cpu.max").write_text(text)
        assert memory.count_cores() == n_cores


def test_threads_follow_the_users_wish(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert memory.count_cores() == 1
    for nonsense in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", nonsense)
        assert memory.count_cores() >= 1


def test_what_numpy_is_to_ignore_is_ignored_while_solving():
    with np.errstate(divide="ignore"):
        assert local.solve(lambda: np.log(np.zeros(1)))[0] == -np.inf
    with pytest.raises(RuntimeWarning, match="divide by zero"):
        local.solve(lambda: np.log(np.zeros(1)))


WAITING = """
import os, signal, sys, time
import polars  # whose handler of signals leaves who waits for a thread asleep
from mlconsensus.execution.threads import get_limits
from mlconsensus.execution import local, memory
def work(*_):
    os.write(1, b"ready\\n")  # in one piece, whichever thread is first
    for _ in range(600):
        if get_limits().stop.is_set():
            return
        time.sleep(0.1)
try:
    if sys.argv[1] == "solve":
        local.solve(work)
    else:
        list(local.map_with_progress([1, 2], work, 2, "gathering"))
except KeyboardInterrupt:
    print("heard")
"""


@pytest.mark.parametrize("where", ["solve", "blocks"])
def test_an_interruption_is_heard_while_threads_work(where):
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, where], stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)  # a third of what the work takes
    assert output.splitlines()[-1] == b"heard"


def count_blas_threads(block):
    """Return the number of threads that BLAS uses while a block is worked on."""
    counts = []
    for library in threadpoolctl.threadpool_info():
        if library["user_api"] == "blas":
            counts.append(library["num_threads"])
    return max(counts)


def test_blas_uses_one_thread_for_a_block_with_small_matrices():
    small_matrices = mlc.Predictions(np.zeros((4, 4000, 20), dtype=bool))
    large_matrices = mlc.Predictions(np.zeros((1, 3000, 600), dtype=bool))
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        assert local.reduce_blocks(small_matrices, count_blas_threads) == 1
        assert local.map_blocks(small_matrices, count_blas_threads) == 1
        assert local.reduce_blocks(large_matrices, count_blas_threads) == 2
        assert count_blas_threads(small_matrices) == 2
