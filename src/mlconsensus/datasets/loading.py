"""From files to matrices."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from ..errors import InputError, expect, needed
from .catalogue import entry, fetch


class Dataset(NamedTuple):
    """Instances with features and labels."""

    name: str
    features: sparse.csr_array  # (n, d) float64
    labels: sparse.csr_array  # (n, l) bool
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]

    def first(self, n: int) -> Self:
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

    known, path = entry(name), fetch(name)[0]
    features, labels, feature_names, label_names = _read_rda(path) if path.suffix == ".rda" else arff.load(path)
    found, expected = (*features.shape, labels.shape[1]), (known.instances, known.features, known.labels)
    expect(found == expected, str(path), f"{found} instances, features and labels", str(expected))
    return Dataset(name, features, labels.astype(np.bool_), tuple(feature_names), tuple(label_names))


def _read_rda(path: Path) -> tuple[sparse.csr_array, sparse.csr_array, list[str], list[str]]:
    """Read an R data file of the package mldr.datasets, as which slashdot and rcv1 are published."""
    rdata = needed("rdata", "datasets", str(path))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rdata does not know the class mldr, which is a list to it all the same
            content: Any = next(iter(rdata.read_rda(path).values()))
        table = content["dataset"]
        # R counts from 1.
        chosen = [np.asarray(at, np.intp) - 1 for at in (content["attributesIndexes"], content["labels"]["index"])]
        # Column by column, so that no second dense copy of the table is made.
        columns = [[sparse.csc_array(table.iloc[:, [at]].to_numpy(np.float64)) for at in part] for part in chosen]
        features, labels = (sparse.hstack(part, format="csr") for part in columns)
        feature_names, label_names = ([str(table.columns[at]) for at in part] for part in chosen)
    except Exception as fault:  # whatever a damaged file makes its reader raise
        raise InputError(f"{path}: found {type(fault).__name__}: {fault}, expected an R data file of mldr") from None
    return features, labels, feature_names, label_names
