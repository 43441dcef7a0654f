"""The rater filter as docs/theory.md tells it, with loops over raters, cells and labels; no sums, no shortcuts.

Panels without copies of a rater only, and scores on one scale.
"""

import itertools
import math

import numpy as np
from scipy import stats


def over(a, b):
    if b:
        return a / b
    return 0.0


def drawn(estimates, expected, chance, least=1e-5):
    spread = 0.03
    for _ in range(30):
        trust = [1 / (variance + spread) ** 2 for variance in chance]
        moments = [
            t * ((f - e) ** 2 - variance)
            for t, f, e, variance in zip(
                trust, estimates, expected, chance, strict=True
            )
        ]
        spread = max(least, sum(moments) / sum(trust))
    return [
        (f * spread + e * variance) / (spread + variance)
        for f, e, variance in zip(estimates, expected, chance, strict=True)
    ]


def voices(agreed, precision, overlap, r):
    """Whose errors correlate by more than a half shares that much of its voice; clearly, by two standard errors."""
    m = len(r)
    result = []
    for k in range(m):
        shared = 0.0
        for q in range(m):
            if k != q and precision[k][q] > 0:
                clearly = agreed[k][q] - r[k] * r[q] - 2 * chance_of(precision[k][q])
                size = math.sqrt(
                    max(1 - r[k] ** 2, 1 - 0.98**2) * max(1 - r[q] ** 2, 1 - 0.98**2)
                )
                shared += overlap[k][q] * max(2 * min(clearly / size, 1) - 1, 0)
        result.append(1 / (1 + shared))
    return result


def chance_of(precision):
    return min(max(1 / math.sqrt(max(precision, 1)), 1e-3), 1)


def reliability(agreed, precision, overlap):
    m = len(agreed)
    pairs = [
        (k, q) for k in range(m) for q in range(m) if k != q and precision[k][q] > 0
    ]
    if not pairs:
        return [0.98] * m, [1.0] * m
    all_precision = sum(precision[k][q] for k, q in pairs)
    average = sum(precision[k][q] * agreed[k][q] for k, q in pairs) / all_precision
    r = [math.sqrt(max(average, 1e-4))] * m
    spread = 0.05
    voice = [1.0] * m
    for position in range(200):
        if position % 5 == 0:
            now = voices(agreed, precision, overlap, r)
            if position:
                voice = [(v + value) / 2 for v, value in zip(voice, now, strict=True)]
            else:
                voice = now
        information = [0.0] * m
        weighted = [0.0] * m
        for k, q in pairs:
            weight = precision[k][q] / (
                1 + abs(agreed[k][q] - r[k] * r[q]) / chance_of(precision[k][q])
            )
            weight *= voice[k] * voice[q]
            information[k] += weight * r[q] ** 2
            weighted[k] += weight * agreed[k][q] * r[q]
        mean = sum(i * value for i, value in zip(information, r, strict=True)) / max(
            sum(information), 1e-12
        )
        pulled = [
            (w + mean / spread) / (i + 1 / spread)
            for w, i in zip(weighted, information, strict=True)
        ]
        r = [
            (value + min(max(new, -1), 1)) / 2
            for value, new in zip(r, pulled, strict=True)
        ]
        if position > 5:
            trust = [(i / (i + 1 / spread)) ** 2 for i in information]
            far = [
                (w / max(i, 1e-9) - mean) ** 2 - 1 / max(i, 1e-9)
                for w, i in zip(weighted, information, strict=True)
            ]
            spread = max(
                1e-5,
                sum(t * f for t, f in zip(trust, far, strict=True))
                / max(sum(trust), 1e-12),
            )
    if sum(r) < 0:
        r = [-value for value in r]
    z = [
        sum(precision[k][q] * agreed[k][q] * shape(k, q) for k, q in pairs)
        / math.sqrt(
            max(2 * sum(precision[k][q] * shape(k, q) ** 2 for k, q in pairs), 1e-300)
        )
        for shape in (
            lambda k, q: voice[k] * voice[q],
            lambda k, q: voice[k] * r[k] * voice[q] * r[q],
        )
    ]
    if (z[0] < 3 and z[1] < 3 + math.sqrt(2 * m)) or sum(r) < 0.1 * sum(map(abs, r)):
        return [0.0] * m, [1.0] * m
    opposite = -0.3 * max(float(np.median(r)), 0) - 1e-9
    return [
        max(value, -0.98) if value < opposite else min(max(value, 0), 0.98)
        for value in r
    ], voice


def erring_together(Y, r):
    """1 where chances of a yes have a beta distribution among cells, 0 where there are two: Pearson's inequality."""
    trusted = [max(value, 0) for value in r]
    average = sum(value**3 for value in trusted) / sum(value**2 for value in trusted)
    reliable = [k for k, value in enumerate(trusted) if value > average / 2]
    result = expected = n_terms = 0.0
    spread = False
    for j in range(Y.shape[2]):
        cells = [
            [Y[k, i, j] for k in reliable if not np.isnan(Y[k, i, j])]
            for i in range(Y.shape[1])
        ]
        cells = [cell for cell in cells if len(cell) > 3]
        if not cells:
            continue
        raw = [
            np.mean(
                [
                    np.mean(
                        [
                            math.prod(subset)
                            for subset in itertools.combinations(cell, size)
                        ]
                    )
                    for cell in cells
                ]
            )
            for size in (1, 2, 3, 4)
        ]
        mean = raw[0]
        n_terms = n_terms + len(cells)
        v = raw[1] - mean**2
        if v <= 1e-9:
            continue
        spread = True
        m3 = raw[2] - 3 * raw[1] * mean + 2 * mean**3
        m4 = raw[3] - 4 * raw[2] * mean + 6 * raw[1] * mean**2 - 3 * mean**4
        result += len(cells) * v**3 * (m4 / v**2 - m3**2 / v**3 - 1)
        size = mean * (1 - mean) / v - 1
        if size > 1e-9:
            skewness, kurtosis = stats.beta(mean * size, (1 - mean) * size).stats(
                moments="sk"
            )
            expected += len(cells) * v**3 * (kurtosis + 3 - skewness**2 - 1)
    if expected > 1e-12 * n_terms:
        return min(max(result / expected, 0), 1)
    return float(spread)


def rater_filter(Y, weights=None):
    m, n, l = Y.shape
    K = range(m)
    N = range(n)
    L = range(l)
    is_present = ~np.isnan(Y)
    y = np.where(is_present, Y, 0.0)
    if weights is None:
        inputs = np.ones(m)
    else:
        inputs = np.asarray(weights, dtype=float)
    heard = is_present.sum(axis=1).astype(float)
    total = y.sum(axis=1)
    frequency = np.array([over(total[:, j].sum(), heard[:, j].sum()) for j in L])
    mean = (total + frequency) / (heard + 1)
    x = np.where(is_present, y - mean[:, None, :], 0.0)
    variance = np.array(
        [[over((x[k, :, j] ** 2).sum(), heard[k, j]) for j in L] for k in K]
    )
    square = np.array(
        [[over((y[k, :, j] ** 2).sum(), heard[k, j]) for j in L] for k in K]
    )
    variance[variance <= np.maximum(1e-12, 1e-8 * square)] = 0
    deviation = np.sqrt(variance)

    # Round 2: pairs of raters.
    pooled = [over((variance[:, j] * heard[:, j]).sum(), heard[:, j].sum()) for j in L]
    labels = sum(pooled) ** 2 / max(sum(value**2 for value in pooled), 1e-300)
    agreed, precision, alike, overlap = np.zeros((4, m, m))
    count = heard.sum(axis=1) / l
    rate = np.array(
        [
            [total[k, j] / heard[k, j] if heard[k, j] else frequency[j] for j in L]
            for k in K
        ]
    )
    for k in K:
        for q in K:
            shared = is_present[k] & is_present[q]
            value = x[k][shared]
            other = x[q][shared]
            both = shared.sum() / l
            size = math.sqrt((value**2).sum() * (other**2).sum())
            agreed[k, q] = min(max(over((value * other).sum(), size), -1), 1)
            precision[k, q] = both * labels if k != q else 0
            part = both / max(count[k], 1) / max(count[q], 1)
            # McNemar: where both answered by how they differ, elsewhere by the variance
            # of each.
            chance = over(((value - other) ** 2).sum(), both) * part
            chance += variance[k].sum() * (1 / max(count[k], 1) - part)
            chance += variance[q].sum() * (1 / max(count[q], 1) - part)
            shift = ((rate[k] - rate[q]) ** 2).sum()
            overlap[k, q] = both / math.sqrt(max(count[k] * count[q], 1))
            alike[k, q] = (
                1
                if k == q
                else min(1, max(chance, 0) / max(shift, 1e-12)) ** 2 * overlap[k, q]
            )
    r, voice = map(np.array, reliability(agreed, precision, overlap))
    vote = np.array(
        [
            [
                over((inputs * y[:, i, j]).sum(), (inputs * is_present[:, i, j]).sum())
                for j in L
            ]
            for i in N
        ]
    )
    if not r.any() or m == 1:
        silent = np.array(
            [[not (inputs * is_present[:, i, j]).any() for j in L] for i in N]
        )
        return np.where(silent, frequency, vote)
    logit = [
        np.log(p / (1 - p))
        for p in (np.clip(mean, 1e-9, 1 - 1e-9), np.clip(frequency, 1e-9, 1 - 1e-9))
    ]
    bound = np.exp(-np.abs(logit[0] - logit[1]) / 2)
    alike = np.where(np.eye(m), 1, alike * erring_together(Y, r))

    def pooling(c):
        u = np.array(
            [
                [over(c[k, j] / (1 - c[k, j] ** 2), deviation[k, j]) for j in L]
                for k in K
            ]
        )
        return u, u * c * deviation

    # Round 3: readings.
    inputs = voice * inputs
    u, b = (
        voice[:, None] * item
        for item in pooling(np.sign(r)[:, None] * np.minimum(np.abs(r)[:, None], bound))
    )
    Z = (u[:, None] * x).sum(axis=0)
    I = (b[:, None] * is_present).sum(axis=0)
    read = np.array([sum(I[i, j] > 1e-9 for i in N) for j in L])
    position = [j for j in L if read[j] * b[:, j].sum() > 1e-9]
    v = np.array(
        [
            sum((Z[i, j] / I[i, j]) ** 2 for i in N if I[i, j] > 1e-9) / max(read[j], 1)
            for j in L
        ]
    )
    signal = np.zeros((l, l))
    for j in L:
        for g in L:
            complete = Z[:, j] @ Z[:, g]
            informed = max(I[:, j] @ I[:, g], 1e-12)
            alone = sum(u[k, j] * u[k, g] * (x[k, :, j] @ x[k, :, g]) for k in K)
            value = sum(
                b[k, j] * b[k, g] * (is_present[k, :, j] & is_present[k, :, g]).sum()
                for k in K
            )
            usable = min(max(2 * (1 - value / informed), 0), 1)
            signal[j, g] = (
                usable
                * (complete - alone)
                / max(I[:, j] @ I[:, g] - value, 1e-3 * informed)
            )
            signal[j, g] += (1 - usable) * complete / informed
    ease = np.ones(l)
    chance = [2 * max(v[j] ** 2 - 1, 0.01) / max(read[j], 1) for j in position]
    ease[position] = np.clip(
        drawn([signal[j, j] for j in position], [1.0] * len(position), chance, 1e-3),
        0.02,
        4,
    )
    d = np.sqrt(ease)
    c = np.clip(
        np.sign(r)[:, None] * np.minimum(np.abs(r)[:, None], bound) * d, -0.99, 0.99
    )
    for k in K:
        subset = []
        result = []
        chance = []
        for j in position:
            others = sum(I[i, j] - b[k, j] for i in N if is_present[k, i, j])
            if others > 1e-9 and deviation[k, j] > 0:
                of_others = [
                    Z[i, j] - u[k, j] * x[k, i, j] for i in N if is_present[k, i, j]
                ]
                answers = [x[k, i, j] for i in N if is_present[k, i, j]]
                subset.append(j)
                result.append(
                    float(np.dot(answers, of_others))
                    / deviation[k, j]
                    / (d[j] * others)
                )
                size = max(float(np.dot(of_others, of_others)), 1e-12)
                chance.append(size / (d[j] * others) ** 2 * (1 - c[k, j] ** 2))
        if len(subset) > 1:
            c[k, subset] = drawn(result, c[k, subset].tolist(), chance)
        c[k] = np.clip(c[k], -0.99, 0) if r[k] < 0 else np.clip(c[k], 0, 0.99)
    c = np.where(deviation > 0, np.sign(c) * np.minimum(np.abs(c), bound), 0)

    # Correlations of labels, drawn to 0.
    Phi = np.eye(len(position))
    different = [
        (a, e) for a in range(len(position)) for e in range(len(position)) if a != e
    ]
    if different:
        result = [
            min(
                max(
                    signal[position[a], position[e]]
                    / (d[position[a]] * d[position[e]]),
                    -1,
                ),
                1,
            )
            for a, e in different
        ]
        chance = [
            v[position[a]]
            / ease[position[a]]
            * v[position[e]]
            / ease[position[e]]
            / math.sqrt(max(read[position[a]], 1) * max(read[position[e]], 1))
            for a, e in different
        ]
        for (a, e), rho in zip(
            different, drawn(result, [0.0] * len(result), chance, 1e-8), strict=True
        ):
            Phi[a, e] = rho
        Phi = (Phi + Phi.T) / 2
    values, vectors = np.linalg.eigh(Phi) if position else (np.ones(1), None)
    if values[0] < 0:
        Phi = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
        Phi = Phi / np.sqrt(np.outer(np.diag(Phi), np.diag(Phi)))

    # Filter, scale and vote.
    w, information = (item * inputs[:, None] for item in pooling(c))
    noise, kin, gain, average = np.zeros((4, l))
    trusted = np.maximum(c, 0) ** 2 * heard
    for j in L:
        value = 1 / max((information[:, j] * heard[:, j]).sum() / max(read[j], 1), 1e-9)
        all_of_it = max(information[:, j].sum(), 1e-9)
        errors = np.sqrt(information[:, j]) / all_of_it
        common = max(
            sum(errors[k] * alike[k, q] * errors[q] for k in K for q in K)
            - 1 / all_of_it,
            0,
        )
        noise[j] = max(value, min((1 + common) ** 2 - 1, 3))
        kin[j] = noise[j] - value
        average[j] = (trusted[:, j] * c[:, j] ** 2).sum() / max(
            trusted[:, j].sum(), 1e-12
        )
        gain[j] = (trusted[:, j] * c[:, j] * deviation[:, j]).sum() / max(
            trusted[:, j].sum(), 1e-12
        )
    weight = np.array(
        [over((deviation[:, j] ** 2 * heard[:, j]).sum(), heard[:, j].sum()) for j in L]
    )
    level = max(math.sqrt((weight * average).sum() / weight.sum()), 0.05)
    gain /= level ** (0.5 * np.exp(-frequency / 0.1))
    both = np.outer(np.maximum(r, 0) ** 2, np.maximum(r, 0) ** 2) * (1 - np.eye(m))
    kappa = over((both * alike).sum(), both.sum()) * min(1, 2 * level)
    h = 2 * (1 - kappa) ** 2
    ballot = np.maximum(r, 0) * inputs
    if not ballot.any():
        ballot = (heard.sum(axis=1) > 0) * inputs
    scores = np.zeros((n, l))
    for i in N:
        z = np.zeros(len(position))
        for a, j in enumerate(position):
            brought = (information[:, j] * is_present[:, i, j]).sum()
            if brought > 1e-9:
                reading = (w[:, j] * x[:, i, j]).sum() / brought
                z[a] = reading * (1 + noise[j]) / (1 + 1 / brought + kin[j])
        f = frequency.copy()
        if position:
            N_at = np.diag(noise[position] + 1e-6)
            f[position] += (z @ np.linalg.solve(Phi + N_at, Phi)) * gain[position]
        for j in L:
            spoke = (ballot * is_present[:, i, j]).sum()
            if spoke:
                voted = (ballot * y[:, i, j]).sum() / spoke
            else:
                voted = frequency[j]
            scores[i, j] = (max(f[j], 0) + h * voted + 1e-6 * frequency[j]) / (1 + h)
    return scores
