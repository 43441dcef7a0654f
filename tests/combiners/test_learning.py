import numpy as np
import pytest
from sklearn.metrics import label_ranking_average_precision_score, label_ranking_loss

from mlconsensus.combiners import learning


def test_instances_with_known_answers_are_judged_as_scikit_learn_does():
    """Those without a pair to rank are left out, and labels that are not known."""
    rng = np.random.default_rng(0)
    scores, answers = rng.random((40, 5)), (rng.random((40, 5)) < 0.4).astype(float)
    answers[rng.random(answers.shape) < 0.2] = np.nan
    found = learning._ranked(scores, answers)
    for own, truth, (top, pairs, precision) in zip(scores, answers, found, strict=True):
        known = ~np.isnan(truth)
        if not 0 < truth[known].sum() < known.sum():
            assert np.isnan([top, pairs, precision]).all()
            continue
        given = truth[known][None], own[known][None]
        assert top == truth[known][np.argmax(own[known])]
        assert pairs == pytest.approx(1 - label_ranking_loss(*given))
        assert precision == pytest.approx(label_ranking_average_precision_score(*given))


@pytest.mark.parametrize(
    "answers", [[[1, 0]], [[0, 0]], [[1, np.nan], [np.nan, 0]], [[1, 0]] * 4, [[0, 0]] * 30], ids=str
)
def test_a_few_known_answers_teach_nothing(answers):
    """Fewer than five instances that rank something; of one, no fold is left to learn from."""
    g = len(answers)
    rng = np.random.default_rng(0)
    assert learning.correction(rng.random((g, 2)), rng.random((3, g, 2)) - 0.5, np.array(answers, dtype=float)) is None


def fitted_by_loops(starts, said, answers, some):
    """Pólya–Gamma EM, label by label: a part that all labels share, and one that is each label's own."""
    g, l = starts.shape
    chosen = np.flatnonzero(some)
    p = 2 + len(chosen)
    Z = np.zeros((l, g, p))
    for j in range(l):
        for i in range(g):
            Z[j, i] = [1, (starts[i, j] - starts[:, j].mean()) / 2, *(said[k, i, j] for k in chosen)]
    kinds = [[0], [1], list(range(2, p))]
    T = np.array([0.05, 0.05] + [0.3] * (p - 2))
    T_all = np.array([1.0, 1.0] + [0.1] * (p - 2))
    both = np.zeros((l, p))
    for _ in range(15):
        H, c = np.zeros((l, p, p)), np.zeros((l, p))
        for j in range(l):
            for i in range(g):
                if np.isnan(answers[i, j]):
                    continue
                eta = max(abs(starts[i, j] + Z[j, i] @ both[j]), 1e-3)
                omega = np.tanh(eta / 2) / (2 * eta)
                H[j] += omega * np.outer(Z[j, i], Z[j, i])
                c[j] += Z[j, i] * (answers[i, j] - 0.5 - omega * starts[i, j])
        V = [np.linalg.inv(H[j] + np.diag(1 / T)) for j in range(l)]
        V_all = np.linalg.inv(sum(H[j] - H[j] @ V[j] @ H[j] for j in range(l)) + np.diag(1 / T_all))
        common = V_all @ sum(c[j] - H[j] @ V[j] @ c[j] for j in range(l))
        own = np.array([V[j] @ (c[j] - H[j] @ common) for j in range(l)])
        both = common + own
        size = [max(np.mean([own[j, q] ** 2 + V[j][q, q] for j in range(l)]), 1e-5) for q in range(p)]
        for kind in kinds:
            T[kind] = np.mean([size[q] for q in kind]) if kind else 1.0
        if kinds[2]:
            T_all[2:] = max(np.mean([common[q] ** 2 + V_all[q, q] for q in kinds[2]]), 1e-5)
    learned = np.zeros((2 + len(said), l))
    for j in range(l):
        learned[0, j] = both[j, 0] - both[j, 1] * starts[:, j].mean() / 2
        learned[1, j] = 1 + both[j, 1] / 2
        for q, k in enumerate(chosen):
            learned[2 + k, j] = both[j, 2 + q]
    return learned


@pytest.mark.parametrize("some", [(True, False, True), (False, False, False)], ids=["two of three", "none"])
def test_what_answers_teach_equals_the_derivation_written_with_loops(some):
    rng = np.random.default_rng(7)
    starts, said = rng.normal(0, 2, (12, 3)), rng.random((3, 12, 3)) - 0.4
    answers = (starts + 2 * said[2] + rng.normal(0, 1, starts.shape) > 0.5).astype(float)
    answers[rng.random(answers.shape) < 0.2] = np.nan
    found = learning._fitted(starts, said, answers, np.array(some))
    np.testing.assert_allclose(found, fitted_by_loops(starts, said, answers, some), rtol=0, atol=1e-9)
    corrected = learning._corrected(starts, said, found)
    for i in range(12):
        for j in range(3):
            of_raters = sum(found[2 + k, j] * said[k, i, j] for k in range(3))
            assert corrected[i, j] == pytest.approx(found[0, j] + found[1, j] * starts[i, j] + of_raters)
