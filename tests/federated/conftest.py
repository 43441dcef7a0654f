import pytest

import mlconsensus as mlc


@pytest.fixture
def stats(tmp_path):
    """A file of statistics."""
    panel, _ = mlc.datasets.make_panel(40, 4, 3, random_state=0)
    mlc.save_statistics(mlc.MLCMr().fit(panel), tmp_path / "a.stats")
    return tmp_path / "a.stats"
