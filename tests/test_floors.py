"""The floors that speed is measured against must compute what the package computes."""

import numpy as np
import pytest
from suite import floor, panels

import mlconsensus as mlc


@pytest.mark.parametrize("method", list(floor.FLOORS))
def test_floor_is_the_method(method):
    votes, _ = panels.make(4, 400, 12)
    prepare, run = floor.FLOORS[method]
    expected = mlc.COMBINERS[method]().fit_transform(votes)
    np.testing.assert_allclose(run(prepare(votes)), expected, atol=1e-9)


def test_votes_fill_what_is_said():
    votes, truth = panels.make(5, 20_000, 40)
    assert votes.mean() == pytest.approx(panels.FILL, rel=0.05)
    assert truth.mean() == pytest.approx(panels.FILL, rel=0.05)
