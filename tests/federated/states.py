"""What tests of statistics and model files share."""

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.federated.statistics_files import read_state, write_state

every_method = pytest.mark.parametrize("name", mlc.COMBINERS)
PANEL = mlc.Predictions(
    np.eye(3)[None].repeat(2, axis=0),
    models=["ann", "bob"],
    labels=["flu", "cold", "cough"],
)


def combiner_named(name, **parameters):
    """Return a combiner of this method."""
    return mlc.COMBINERS[name](**parameters)


def saved(path, header, arrays):
    """Write a file whose checksum is right, whatever is in it."""
    with path.open("wb") as file:
        write_state(file, header, arrays)


def changed(path, **changes):
    """Change entries of a file's header, and put the checksum right."""
    header, arrays = read_state(path)
    saved(path, header | changes, arrays)
