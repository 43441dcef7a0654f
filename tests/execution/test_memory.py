import itertools
import subprocess
import sys

import pytest

from mlconsensus.errors import InputError
from mlconsensus.execution import memory


@pytest.fixture
def files(tmp_path, monkeypatch):
    """What the system tells, in files of our own."""
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    monkeypatch.setattr(
        memory, "monotonic", itertools.count().__next__
    )  # the system is asked every time
    return tmp_path


def test_the_least_of_all_limits_counts(files):
    assert memory.available_memory() == 8000 * 1024
    (files / "memory.max").write_text("max\n")
    (files / "memory.current").write_text("1000\n")
    assert memory.available_memory() == 8000 * 1024
    (files / "memory.max").write_text("5000\n")
    assert memory.available_memory() == 4000
    (files / "memory.max").write_text("500\n")
    assert memory.available_memory() == 0


def test_the_limit_of_the_shell_counts():
    resource = pytest.importorskip("resource")
    program = f"""
import resource
from mlconsensus.execution import memory
resource.setrlimit(resource.RLIMIT_AS, ({2**31}, {resource.RLIM_INFINITY}))
print(memory.available_memory())
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert 0 < int(ran.stdout) < 2**31


def test_sizes_are_compared_with_a_share_of_what_is_free(files, monkeypatch):
    monkeypatch.delenv(memory.LIMIT, raising=False)
    memory.check_size(2000 * 1024, "a", "b")
    memory.check_size(4000 * 1024, "a", "b", 0.5)
    with pytest.raises(
        InputError, match="a: found 0.00205 GB b, expected at most 0.00205 GB"
    ):
        memory.check_size(2000 * 1024 + 1, "a", "b")
    monkeypatch.setenv(memory.LIMIT, "1.5")
    memory.check_size(1.5e9, "a", "b")
    with pytest.raises(InputError, match="at most 1.5 GB"):
        memory.check_size(1.6e9, "a", "b")


LISTENING = """
import pathlib
from mlconsensus.execution.dask import start_local_cluster

def ports():
    rows = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return {tuple(row.split()[1:10:8]) for row in rows if row.split()[3] == "0A"}

if __name__ == "__main__":
    before = ports()
    with start_local_cluster(1):
        print(*{address.split(":")[0] for address, _ in ports() - before})
"""


def test_a_cluster_of_this_machines_own_listens_to_nobody_else(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "listening.py").write_text(LISTENING)
    ran = subprocess.run(
        [sys.executable, tmp_path / "listening.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == ["0100007F"]  # 127.0.0.1
