"""The paper's equations to the letter, with loops and explicit inverses: what the package is checked against.

Silence (NaN) follows docs/theory.md: no edge in a walk, no voice in a mean. Where an equation has no value
(an instance without edges, a mean over nobody) the stated prior stands in.
"""

import numpy as np


def _says(scores):
    return ~np.isnan(scores), np.nan_to_num(scores)


def majority_vote(scores):
    m, n, l = scores.shape
    said, value = _says(scores)
    out = np.empty((n, l))
    for label in range(l):
        n_said = said[:, :, label].sum()
        prior = value[:, :, label].sum() / n_said if n_said else 0.0
        for i in range(n):
            voices = [value[k, i, label] for k in range(m) if said[k, i, label]]
            out[i, label] = sum(voices) / len(voices) if voices else prior
    return out


def _walk(A, B, alpha, prior, restart=None):
    """Eqs. cm_closed_sol_q and cm_closed_sol_u; 0/0 in a transition from a node without edges is no transition."""
    n, v = A.shape
    d_v, d_n = A.sum(axis=0), A.sum(axis=1)
    anchored = B.sum(axis=1) > 0  # clusters stand for no label
    stop = alpha / (alpha + d_v) if restart is None else np.where(d_v > 0, restart, 1.0)
    stop = np.where(anchored, stop, 0.0)
    D_lambda, D_1_lambda = np.diag(1 - stop), np.diag(stop)
    inv_d_v = np.diag([1 / d if d > 0 else 0.0 for d in d_v])
    inv_d_n = np.diag([1 / d if d > 0 else 0.0 for d in d_n])
    Q = np.linalg.inv(np.eye(v) - D_lambda @ inv_d_v @ A.T @ inv_d_n @ A) @ D_1_lambda @ B
    U = inv_d_n @ A @ Q
    for i in range(n):
        if d_n[i] == 0:
            U[i] = prior
    return Q, U


def mlcm_r(scores, alpha=2.0, restart=None, clusters=None):
    m, n, l = scores.shape
    _, value = _says(scores)
    clusters = np.zeros((n, 0)) if clusters is None else clusters
    A = np.concatenate([np.zeros((n, m * l)), clusters], axis=1)
    B = np.zeros((A.shape[1], l))
    for k in range(m):
        for label in range(l):
            A[:, k * l + label] = value[k, :, label]
            B[k * l + label, label] = 1
    edges = value.sum(axis=(0, 1))
    prior = edges / edges.sum() if edges.sum() > 0 else np.full(l, 1 / l)
    return _walk(A, B, alpha, prior, restart)[1]


def bgcm(scores, alpha=2.0, clusters=None):
    m, n, l = scores.shape
    said, value = _says(scores)
    clusters = np.zeros((n, 0)) if clusters is None else clusters
    out = np.empty((n, l))
    for label in range(l):
        A = np.concatenate([np.zeros((n, 2 * m)), clusters], axis=1)
        B = np.zeros((A.shape[1], 2))
        for k in range(m):
            A[:, 2 * k] = value[k, :, label]
            A[:, 2 * k + 1] = np.where(said[k, :, label], 1 - value[k, :, label], 0.0)
            B[2 * k, 0] = B[2 * k + 1, 1] = 1
        yes, everything = A[:, : 2 * m : 2].sum(), A[:, : 2 * m].sum()
        prior = yes / everything if everything > 0 else 0.0
        out[:, label] = _walk(A, B, alpha, np.array([prior, 1 - prior]))[1][:, 0]
    return out


def mlcm_a(scores, n_iter=1):
    """Algorithm 1 with Ω(I + mΩ)⁻¹ for (Ω⁻¹ + mI)⁻¹, which is the same where Ω⁻¹ exists."""
    m, n, l = scores.shape
    said, value = _says(scores)
    prior = np.zeros(l)
    mean = np.full((n, l), np.nan)
    for i in range(n):
        for label in range(l):
            voices = [value[k, i, label] for k in range(m) if said[k, i, label]]
            if voices:
                mean[i, label] = sum(voices) / len(voices)
    for label in range(l):
        known = mean[:, label][~np.isnan(mean[:, label])]
        prior[label] = known.mean() if known.size else 0.0
    mean = np.where(np.isnan(mean), prior, mean)
    voices = said.sum() / (n * l)
    Y = mean
    for _ in range(n_iter):
        omega = Y.T @ Y / n
        Y = voices * mean @ omega @ np.linalg.inv(np.eye(l) + voices * omega)
    return Y


def mlcm_a_with_precision(scores, n_iter=1):
    """Algorithm 1 exactly as printed, with Ω⁻¹ inverted; only where Ω is well conditioned."""
    m, n, l = scores.shape
    mean = scores.mean(axis=0)
    Y = mean
    for _ in range(n_iter):
        omega = Y.T @ Y / n
        Y = m * mean @ np.linalg.inv(np.linalg.inv(omega) + m * np.eye(l))
    return Y


def _maximise(true, heard, yes):
    says = np.empty((len(yes), 2))
    for k in range(len(yes)):
        for side in (0, 1):
            weight = {i: t if side else 1 - t for i, t in true.items() if k in heard[i]}
            ayes = max(sum(w for i, w in weight.items() if yes[k, i]), 1e-10)
            noes = max(sum(w for i, w in weight.items() if not yes[k, i]), 1e-10)
            says[k, side] = ayes / (ayes + noes)
    return sum(true.values()) / len(true), says


def dawid_skene(scores, n_iter=100, tol=1e-5):
    """EM label by label with loops; stops a label when its evidence bound gains less than `tol` a vote."""
    m, n, l = scores.shape
    said, value = _says(scores)
    out = np.zeros((n, l))
    for label in range(l):
        heard = [[k for k in range(m) if said[k, i, label]] for i in range(n)]
        yes = value[:, :, label] >= 0.5
        known = [i for i in range(n) if heard[i]]
        if not known:
            continue
        true = {i: sum(yes[k, i] for k in heard[i]) / len(heard[i]) for i in known}

        prior, says = _maximise(true, heard, yes)
        bound = -np.inf
        for _ in range(n_iter):
            used = prior, says
            for i in known:
                likely = np.array([1 - prior, prior])
                for k in heard[i]:
                    likely = likely * (says[k] if yes[k, i] else 1 - says[k])
                true[i] = likely[1] / likely.sum()
            prior, says = _maximise(true, heard, yes)
            gained = 0.0
            for i in known:
                for side, t, p in ((0, 1 - true[i], 1 - prior), (1, true[i], prior)):
                    if t > 0:
                        votes = sum(np.log(says[k, side] if yes[k, i] else 1 - says[k, side]) for k in heard[i])
                        gained += t * (votes + np.log(p) - np.log(t))
            if gained - bound < tol * sum(len(heard[i]) for i in known):
                break
            bound = gained
        for i in range(n):
            out[i, label] = true[i] if heard[i] else used[0]
    return out
