"""Metrics of label sets: Hamming loss, subset accuracy and F1."""

from numpy.typing import ArrayLike

from ..linalg.block_sums import column_sums, ratio, row_sums
from ..predictions import Matrix
from .ground_truth import check_truth_and_label_sets

LABEL_SET_METRICS = ("hamming_loss", "subset_accuracy", "micro_f1", "macro_f1")


def hamming_loss(truth: ArrayLike, label_sets: ArrayLike) -> float:
    """Compute the share of instance-label pairs that are wrong.

    Parameters
    ----------
    truth : array-like or sparse matrix of shape (n, l)
        Relevant labels, as in `evaluate`.
    label_sets : array-like or sparse matrix of shape (n, l)
        Label sets, 0/1 or bool, as in `evaluate`.

    Returns
    -------
    float
        A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> label_sets = [[True, False], [True, True]]
    >>> mlc.metrics.hamming_loss([[1, 0], [0, 1]], label_sets)
    0.25
    """
    return _compute_checked(truth, label_sets)["hamming_loss"]


def subset_accuracy(truth: ArrayLike, label_sets: ArrayLike) -> float:
    """Compute the share of instances whose label set is exactly right.

    Parameters
    ----------
    truth : array-like or sparse matrix of shape (n, l)
        Relevant labels, as in `evaluate`.
    label_sets : array-like or sparse matrix of shape (n, l)
        Label sets, 0/1 or bool, as in `evaluate`.

    Returns
    -------
    float
        A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> label_sets = [[True, False], [True, True]]
    >>> mlc.metrics.subset_accuracy([[1, 0], [0, 1]], label_sets)
    0.5
    """
    return _compute_checked(truth, label_sets)["subset_accuracy"]


def micro_f1(truth: ArrayLike, label_sets: ArrayLike) -> float:
    """Compute the F1 over all instance-label pairs.

    It is 0 if no label is relevant and no label is chosen.

    Parameters
    ----------
    truth : array-like or sparse matrix of shape (n, l)
        Relevant labels, as in `evaluate`.
    label_sets : array-like or sparse matrix of shape (n, l)
        Label sets, 0/1 or bool, as in `evaluate`.

    Returns
    -------
    float
        A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> label_sets = [[True, False], [True, True]]
    >>> mlc.metrics.micro_f1([[1, 0], [0, 1]], label_sets)
    0.8
    """
    return _compute_checked(truth, label_sets)["micro_f1"]


def macro_f1(truth: ArrayLike, label_sets: ArrayLike) -> float:
    """Compute the mean over labels of the F1 of each label.

    It is 0 for a label that is never relevant and never chosen.

    Parameters
    ----------
    truth : array-like or sparse matrix of shape (n, l)
        Relevant labels, as in `evaluate`.
    label_sets : array-like or sparse matrix of shape (n, l)
        Label sets, 0/1 or bool, as in `evaluate`.

    Returns
    -------
    float
        A number in [0, 1].

    Examples
    --------
    >>> import mlconsensus as mlc
    >>> label_sets = [[True, False], [True, True]]
    >>> round(mlc.metrics.macro_f1([[1, 0], [0, 1]], label_sets), 4)
    0.8333
    """
    return _compute_checked(truth, label_sets)["macro_f1"]


def compute_label_set_metrics(truth: Matrix, label_sets: Matrix) -> dict[str, float]:
    """Compute all metrics of label sets, of checked input.

    Parameters
    ----------
    truth, label_sets : ndarray of bool or csr_array of shape (n, l)
        As `check_truth_and_label_sets` returns them.

    Returns
    -------
    dict of str to float
        The metrics by the names in `LABEL_SET_METRICS`.
    """
    n_labels = truth.shape[1]
    n_wrong = row_sums(truth != label_sets)  # (n,)

    # F1 is 2 |A and B| / (|A| + |B|), of all labels together and of each label.
    n_both = column_sums(truth * label_sets)  # (l,)
    n_sum = column_sums(truth) + column_sums(label_sets)  # (l,)
    return {
        "hamming_loss": float(n_wrong.mean() / n_labels),
        "subset_accuracy": float((n_wrong == 0).mean()),
        "micro_f1": float(ratio(2 * n_both.sum(), n_sum.sum(), 0.0)),
        "macro_f1": float(ratio(2 * n_both, n_sum, 0.0).mean()),
    }


def _compute_checked(truth: ArrayLike, label_sets: ArrayLike) -> dict[str, float]:
    """Check the input, and compute all metrics of label sets."""
    checked_truth, checked_sets = check_truth_and_label_sets(truth, label_sets)
    return compute_label_set_metrics(checked_truth, checked_sets)
