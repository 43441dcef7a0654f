"""Binary relevance with linear SVMs, the default: of all learners tried it comes closest to the paper's base models."""

from __future__ import annotations

from .base import BoolArray, Learner, Problem
from .pivoting import full_margins, linear_kernel, out_of_fold

C = 1.0  # of the squared hinge loss, as in scikit-learn's LinearSVC


def predict(problem: Problem) -> list[BoolArray]:
    """Predict with the exact optimum of each SVM; see `pivoting` for how the folds share work."""
    kernel = linear_kernel(problem.features)
    margins = full_margins(kernel, problem.truth, C)
    tests = [test for shuffle in problem.shuffles for _, test in problem.splits(shuffle)]
    parts = iter(out_of_fold(kernel, problem.truth, margins, tests, C))
    predictions = []
    for shuffle in problem.shuffles:
        predicted = problem.truth.copy()
        for _, test in problem.splits(shuffle):
            predicted[test] = next(parts)
        predictions.append(predicted)
    return predictions


SVM = Learner(
    "binary relevance with linear SVMs (squared hinge, C = 1)", predict, labels_at_once=4, repeats_together=True
)
