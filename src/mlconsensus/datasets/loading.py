"""From files to matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..errors import InputError
from .catalogue import entry
from .fetch import fetch


class Dataset(NamedTuple):
    """Instances with features and labels."""

    name: str
    features: sparse.csr_array  # (n, d) float64
    labels: sparse.csr_array  # (n, l) bool
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]

    def first(self, n: int) -> Dataset:
        """Keep the first `n` instances only."""
        return self._replace(features=self.features[:n], labels=self.labels[:n])


def load(name: str) -> Dataset:
    """Load one of the paper's six data sets: sparse features, sparse labels, and their names.

    Parameters
    ----------
    name
        ``"enron"``, ``"medical"``, ``"rcv1subset1"``, ``"rcv1subset2"``, ``"slashdot"`` or ``"bibtex"``.

    Returns
    -------
    Dataset
        ``(name, features, labels, feature_names, label_names)``, all instances in the files' order.

    Notes
    -----
    Files in the folder that the variable ``MLCONSENSUS_DATA`` names are used first; else they are downloaded once
    into the user's cache.

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> medical = mlc.datasets.load("medical")  # doctest: +SKIP
    >>> medical.features.shape, medical.labels.shape  # doctest: +SKIP
    ((978, 1449), (978, 45))
    """
    from ..io import arff  # brings the table library, which synthetic panels do without
    from .rda import read_rda

    expected = entry(name)
    path = fetch(name)[0]
    features, labels, feature_names, label_names = read_rda(path) if path.suffix == ".rda" else arff.load(path)
    found = (*features.shape, labels.shape[1])
    if found != (expected.instances, expected.features, expected.labels):
        raise InputError(
            f"{path}: found {found[0]} instances, {found[1]} features and {found[2]} labels, expected "
            f"{expected.instances}, {expected.features} and {expected.labels}"
        )
    return Dataset(name, features, labels.astype(np.bool_), tuple(feature_names), tuple(label_names))
