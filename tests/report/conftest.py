"""A panel, its consensus and the summary of its report."""

import pytest

import mlconsensus as mlc
from mlconsensus.report import summarize


@pytest.fixture(scope="session")
def made():
    return mlc.datasets.make_panel(
        400,
        9,
        5,
        quality=[0.8, 0.8, 0.8, 0.8, 0],
        shared_errors=0,
        known_labels=0.8,
        missing=0.1,
        random_state=0,
    )


@pytest.fixture(scope="session")
def consensus(made):
    return mlc.combine(made.predictions)


@pytest.fixture(scope="session")
def summary(consensus, made):
    return summarize(consensus, made.truth)
