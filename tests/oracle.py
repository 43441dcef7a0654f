"""The paper's equations literally, with loops and explicit inverses.

Silence (NaN) follows docs/theory.md: no edge in a walk, no voice in a mean. Where an
equation has no value (an instance without edges, a mean over nobody) the stated prior
stands in.
"""

import numpy as np


def _says(scores):
    return ~np.isnan(scores), np.nan_to_num(scores)


def majority_vote(scores):
    m, n, l = scores.shape
    is_present, value = _says(scores)
    out = np.empty((n, l))
    for label in range(l):
        n_said = is_present[:, :, label].sum()
        if n_said:
            prior = value[:, :, label].sum() / n_said
        else:
            prior = 0.0
        for i in range(n):
            voices = [value[k, i, label] for k in range(m) if is_present[k, i, label]]
            out[i, label] = sum(voices) / len(voices) if voices else prior
    return out


def _walk(A, B, alpha, prior, restart=None):
    """Eqs. cm_closed_sol_q and cm_closed_sol_u; a node without edges has no steps."""
    n, v = A.shape
    d_v = A.sum(axis=0)
    d_n = A.sum(axis=1)
    anchored = B.sum(axis=1) > 0  # clusters stand for no label
    if restart is None:
        stop = alpha / (alpha + d_v)
    else:
        stop = np.where(d_v > 0, restart, 1.0)
    stop = np.where(anchored, stop, 0.0)
    D_lambda = np.diag(1 - stop)
    D_1_lambda = np.diag(stop)
    inv_d_v = np.diag([1 / d if d > 0 else 0.0 for d in d_v])
    inv_d_n = np.diag([1 / d if d > 0 else 0.0 for d in d_n])
    Q = (
        np.linalg.inv(np.eye(v) - D_lambda @ inv_d_v @ A.T @ inv_d_n @ A)
        @ D_1_lambda
        @ B
    )
    U = inv_d_n @ A @ Q
    for i in range(n):
        if d_n[i] == 0:
            U[i] = prior
    return Q, U


def mlcm_r(scores, alpha=2.0, restart=None, clusters=None):
    m, n, l = scores.shape
    _, value = _says(scores)
    if clusters is None:
        clusters = np.zeros((n, 0))
    A = np.concatenate([np.zeros((n, m * l)), clusters], axis=1)
    B = np.zeros((A.shape[1], l))
    for k in range(m):
        for label in range(l):
            A[:, k * l + label] = value[k, :, label]
            B[k * l + label, label] = 1
    edges = value.sum(axis=(0, 1))
    if edges.sum() > 0:
        prior = edges / edges.sum()
    else:
        prior = np.full(l, 1 / l)
    return _walk(A, B, alpha, prior, restart)[1]


def bgcm(scores, alpha=2.0, clusters=None):
    m, n, l = scores.shape
    is_present, value = _says(scores)
    if clusters is None:
        clusters = np.zeros((n, 0))
    out = np.empty((n, l))
    for label in range(l):
        A = np.concatenate([np.zeros((n, 2 * m)), clusters], axis=1)
        B = np.zeros((A.shape[1], 2))
        for k in range(m):
            A[:, 2 * k] = value[k, :, label]
            A[:, 2 * k + 1] = np.where(
                is_present[k, :, label], 1 - value[k, :, label], 0.0
            )
            B[2 * k, 0] = B[2 * k + 1, 1] = 1
        yes = A[:, : 2 * m : 2].sum()
        everything = A[:, : 2 * m].sum()
        if everything > 0:
            prior = yes / everything
        else:
            prior = 0.0
        out[:, label] = _walk(A, B, alpha, np.array([prior, 1 - prior]))[1][:, 0]
    return out


def mlcm_a(scores, n_iter=1):
    """Algorithm 1 with Ω(I + mΩ)⁻¹, which is (Ω⁻¹ + mI)⁻¹ where Ω⁻¹ exists."""
    m, n, l = scores.shape
    is_present, value = _says(scores)
    prior = np.zeros(l)
    mean = np.full((n, l), np.nan)
    for i in range(n):
        for label in range(l):
            voices = [value[k, i, label] for k in range(m) if is_present[k, i, label]]
            if voices:
                mean[i, label] = sum(voices) / len(voices)
    for label in range(l):
        gold = mean[:, label][~np.isnan(mean[:, label])]
        prior[label] = gold.mean() if gold.size else 0.0
    mean = np.where(np.isnan(mean), prior, mean)
    voices = is_present.sum() / (n * l)
    Y = mean
    for _ in range(n_iter):
        omega = Y.T @ Y / n
        Y = voices * mean @ omega @ np.linalg.inv(np.eye(l) + voices * omega)
    return Y


def mlcm_a_with_precision(scores, n_iter=1):
    """Algorithm 1 exactly as printed, with Ω⁻¹; needs a well conditioned Ω."""
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


def dawid_skene(scores, n_iter=100, tol=1e-5, gold=None):
    """EM label by label; stops when the bound gains less than `tol` per vote."""
    m, n, l = scores.shape
    if gold is None:
        gold = np.full((n, l), np.nan)
    is_present, value = _says(scores)
    out = np.zeros((n, l))
    for label in range(l):
        heard = [[k for k in range(m) if is_present[k, i, label]] for i in range(n)]
        yes = value[:, :, label] >= 0.5
        answers = {i: gold[i, label] for i in range(n) if not np.isnan(gold[i, label])}
        covered = [i for i in range(n) if heard[i] or i in answers]
        if not covered:
            continue
        true = {
            i: answers[i]
            if i in answers
            else sum(yes[k, i] for k in heard[i]) / len(heard[i])
            for i in covered
        }

        prior, says = _maximise(true, heard, yes)
        bound = -np.inf
        for _ in range(n_iter):
            used = prior, says
            for i in covered:
                likely = np.array([1 - prior, prior])
                for k in heard[i]:
                    likely = likely * (says[k] if yes[k, i] else 1 - says[k])
                true[i] = answers[i] if i in answers else likely[1] / likely.sum()
            prior, says = _maximise(true, heard, yes)
            gained = 0.0
            for i in covered:
                for side, t, p in ((0, 1 - true[i], 1 - prior), (1, true[i], prior)):
                    if t > 0:
                        votes = sum(
                            np.log(says[k, side] if yes[k, i] else 1 - says[k, side])
                            for k in heard[i]
                        )
                        gained += t * (votes + np.log(p) - np.log(t))
            if gained - bound < tol * sum(len(heard[i]) for i in covered):
                break
            bound = gained
        for i in range(n):
            out[i, label] = true[i] if i in true else used[0]
    return out


def walk_with_gold(A, B, alpha, gamma, Y, rounds=20000):
    """Descend Eq. cm_objective less 2 gamma <u, y - mean y> of gold instances.

    Instances (n,) and group nodes (v,) of edges A (n, v) are means of their neighbours;
    a node is held to its label B (v, l) by `alpha` (none: 0). Rows of Y (n, l) add up
    to 1 or are 0: not known.
    """
    n, v = A.shape
    held = alpha * (B.sum(axis=1) > 0)
    sources = [i for i in range(n) if Y[i].sum() > 0 and A[i].sum() > 0]
    mean_gold = sum(Y[i] for i in sources) / len(sources)
    U = np.zeros((n, B.shape[1]))
    Q = np.array(B, dtype=float)
    for _ in range(rounds):
        before = Q.copy()
        for i in range(n):
            if A[i].sum() > 0:
                U[i] = (
                    A[i] @ Q + gamma * (Y[i] - mean_gold if i in sources else 0)
                ) / A[i].sum()
        for j in range(v):
            if A[:, j].sum() + held[j] > 0:
                Q[j] = (A[:, j] @ U + held[j] * B[j]) / (A[:, j].sum() + held[j])
        if np.abs(Q - before).max() < 1e-14:
            break
    return Q


def mlcm_r_with_gold(scores, gold, gamma, alpha=2.0, clusters=None):
    m, n, l = scores.shape
    if clusters is None:
        clusters = np.zeros((n, 0))
    A = np.concatenate([*np.nan_to_num(scores), clusters], axis=1)
    B = np.concatenate([*[np.eye(l)] * m, np.zeros((clusters.shape[1], l))])
    Y = np.nan_to_num(gold)
    Q = walk_with_gold(
        A, B, alpha, gamma, Y / np.maximum(Y.sum(axis=1, keepdims=True), 1)
    )
    return A @ Q / A.sum(axis=1, keepdims=True)


def bgcm_with_gold(scores, gold, gamma, alpha=2.0, clusters=None):
    m, n, l = scores.shape
    is_present, value = _says(scores)
    if clusters is None:
        clusters = np.zeros((n, 0))
    out = np.empty((n, l))
    for label in range(l):
        yes = value[:, :, label].T
        no = (is_present * (1 - value))[:, :, label].T
        A = np.concatenate([yes, no, clusters], axis=1)
        B = np.array(
            [[1.0, 0.0]] * m + [[0.0, 1.0]] * m + [[0.0, 0.0]] * clusters.shape[1]
        )
        Y = np.nan_to_num(np.stack([gold[:, label], 1 - gold[:, label]], axis=1))
        out[:, label] = (A @ walk_with_gold(A, B, alpha, gamma, Y))[:, 0] / A.sum(
            axis=1
        )
    return out


def mlcm_a_with_gold(scores, gold, taus, extra):
    """Least squares with pseudo-instances, at the tau of highest density."""
    m, n, l = scores.shape
    mean = scores.mean(axis=0)
    G = mean.T @ mean / n
    F = m * np.linalg.inv(np.linalg.inv(G) + m * np.eye(l))
    has_gold = ~np.isnan(gold).any(axis=1)
    X = mean[has_gold]
    Y = gold[has_gold]
    best = None
    c = (X @ F * Y).sum() / (X @ F * (X @ F)).sum()
    F = c * F
    for tau in taus:
        spread = (
            np.eye(len(X)) + X @ np.linalg.inv(G) @ X.T / tau
        )  # of each label's answers, in units of the noise
        wrong = Y - X @ F
        of_labels = (wrong * np.linalg.solve(spread, wrong)).sum(axis=0) + extra
        density = -0.5 * (
            l * np.linalg.slogdet(spread)[1] + len(Y) * np.log(of_labels).sum()
        )
        if best is None or density > best[0]:
            half = np.linalg.cholesky(tau * G).T
            W = np.linalg.lstsq(
                np.concatenate([X, half]), np.concatenate([Y, half @ F]), rcond=None
            )[0]
            best = density, W
    return mean @ best[1]


def learned(starts, inputs_of_models, answers, rounds, spread):
    """Pólya–Gamma EM of docs/theory.md with loops."""
    g, l = starts.shape
    mean_start = starts.mean(axis=0)
    p = 2 + len(inputs_of_models)
    z = np.array(
        [
            [
                [1, (starts[i, j] - mean_start[j]) / 2, *inputs_of_models[:, i, j]]
                for i in range(g)
            ]
            for j in range(l)
        ]
    )
    kind = [0, 1] + [2] * len(inputs_of_models)
    T = np.array([spread[k] for k in kind])
    T_all = np.array([(1, 1, 0.1)[k] for k in kind])
    common = np.zeros(p)
    deviation = np.zeros((l, p))
    for _ in range(rounds):
        H = np.zeros((l, p, p))
        c = np.zeros((l, p))
        for j in range(l):
            for i in range(g):
                if not np.isnan(answers[i, j]):
                    eta = starts[i, j] + z[j, i] @ (common + deviation[j])
                    omega = np.tanh(eta / 2) / (2 * eta)
                    H[j] += omega * np.outer(z[j, i], z[j, i])
                    c[j] += z[j, i] * (answers[i, j] - 0.5 - omega * starts[i, j])
        # Common and own parts together are one large least squares problem; b and each
        # d have a prior of their own.
        big = np.zeros((p + l * p, p + l * p))
        right = np.concatenate([c.sum(axis=0), c.ravel()])
        big[:p, :p] = H.sum(axis=0) + np.diag(1 / T_all)
        for j in range(l):
            position = slice(p + j * p, p + (j + 1) * p)
            big[:p, position] = big[position, :p] = H[j]
            big[position, position] = H[j] + np.diag(1 / T)
        result = np.linalg.solve(big, right)
        common = result[:p]
        deviation = result[p:].reshape(l, p)
        inputs = [np.linalg.inv(H[j] + np.diag(1 / T)) for j in range(l)]
        complete = np.linalg.inv(big)[:p, :p]
        for k in range(3):
            subset = [a for a in range(p) if kind[a] == k]
            if subset:
                T[subset] = max(
                    np.mean(
                        [
                            deviation[j, a] ** 2 + inputs[j][a, a]
                            for j in range(l)
                            for a in subset
                        ]
                    ),
                    1e-5,
                )
            if subset and k == 2:
                T_all[subset] = max(
                    np.mean([common[a] ** 2 + complete[a, a] for a in subset]), 1e-5
                )
    both = common + deviation
    return np.concatenate(
        [
            [both[:, 0] - both[:, 1] * mean_start / 2],
            [1 + both[:, 1] / 2],
            both[:, 2:].T,
        ]
    )
