import os
import tempfile

import hypothesis
import pytest

# One BLAS thread a process, set before NumPy is imported: pytest-xdist uses all cores,
# and threads that wait for each other cost a fifth more processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Examples are drawn the same way on every machine, so that a failure in CI is a failure
# here.
hypothesis.settings.register_profile(
    "mlconsensus", deadline=None, derandomize=True, max_examples=40
)
hypothesis.settings.load_profile("mlconsensus")


@pytest.fixture(autouse=True, scope="session")
def scratch_files_go_where_pytest_removes_them(tmp_path_factory):
    """Keep scratch folders until the end, because predictions are read from them."""
    with pytest.MonkeyPatch.context() as patch:
        folder = str(tmp_path_factory.mktemp("scratch"))
        patch.setattr(tempfile, "tempdir", folder)
        patch.setenv("TMPDIR", folder)  # of processes that tests start
        yield
