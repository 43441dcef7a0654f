"""A literal transcription of weighted consensus, on one array (m, n, l).

It follows the equations of the theory page, with the errors of every pair of models and
every instance in memory. Families are given.
"""

import numpy as np

MAX_RELIABILITY = 0.98


def divide(numerator, denominator, default=0.0):
    """Divide where the denominator is not 0."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    result = np.full(numerator.shape, default, dtype=float)
    is_known = denominator != 0
    result[is_known] = numerator[is_known] / denominator[is_known]
    return result


def shrink(estimates, expected, variance):
    """Empirical Bayes: shrink estimates to what is expected."""
    between = 0.03
    for _ in range(20):
        weight = (variance + between) ** -2
        excess = np.sum(weight * ((estimates - expected) ** 2 - variance))
        between = max(1e-6, excess / max(np.sum(weight), 1e-300))
    return expected + (estimates - expected) * between / (between + variance)


def correlate(scores):
    """Return rates, variances, correlations of models and their precision."""
    n_models, _, n_labels = scores.shape
    count = np.sum(~np.isnan(scores), axis=1).astype(float)
    total = np.nansum(scores, axis=1)
    prior = divide(total.sum(axis=0), count.sum(axis=0))
    mean = (total + prior) / (count + 1)
    centered = scores - mean[:, None]
    variance = divide(np.nansum(centered**2, axis=1), count)
    variance[variance < 1e-9] = 0

    products = np.zeros((n_models, n_models))
    correlation = np.zeros((n_models, n_models))
    n_both = np.zeros((n_models, n_models))
    for first in range(n_models):
        for second in range(n_models):
            x = centered[first]
            y = centered[second]
            both = ~np.isnan(x) & ~np.isnan(y)
            products[first, second] = np.sum(x[both] * y[both])
            scale = np.sqrt(np.sum(x[both] ** 2) * np.sum(y[both] ** 2))
            if scale > 0:
                correlation[first, second] = products[first, second] / scale
            n_both[first, second] = both.sum()
    of_label = divide((variance * count).sum(axis=0), count.sum(axis=0))
    n_effective = of_label.sum() ** 2 / max(np.sum(of_label**2), 1e-300)
    precision = n_both / n_labels * n_effective
    return {
        "count": count,
        "prior": prior,
        "mean": mean,
        "variance": variance,
        "products": products,
        "correlation": np.clip(correlation, -1, 1),
        "precision": precision,
        "n_both": n_both / n_labels,
    }


def fit_reliability(correlation, precision):
    """Fit R = c c' to pairs of models in different families."""
    n_models = len(correlation)
    mean = np.sum(precision * correlation) / max(np.sum(precision), 1e-300)
    c = np.full(n_models, np.sqrt(max(mean, 1e-4)))
    n_free = np.sum(precision > 0) / 2 - n_models
    weight = precision
    misfit = 1.0
    for iteration in range(150):
        if iteration >= 50:
            residual = correlation - np.outer(c, c)
            weight = precision / (1 + np.abs(residual) * np.sqrt(precision))
            if n_free > 0:
                chi_squared = np.sum(precision * residual**2) / 2
                misfit = max(1.0, np.sqrt(chi_squared / n_free))
        information = np.maximum(weight @ c**2, 1e-9)
        estimate = (weight * correlation) @ c / information
        average = information @ estimate / information.sum()
        c = (c + shrink(estimate, average, misfit / information)) / 2
    return np.clip(c, -MAX_RELIABILITY, MAX_RELIABILITY)


def find_signs(correlation, precision):
    """Return -1 for models that clearly predict the opposite."""
    used = np.where(precision > 0, correlation, 0.0)
    np.fill_diagonal(used, 0)
    direction = np.linalg.eigh(used)[1][:, -1]
    direction = direction * np.sign(direction.sum() or 1)
    candidate = np.where(direction < 0, -1.0, 1.0)
    evidence = candidate * ((precision * used) @ candidate)
    is_clear = evidence > 3 * np.sqrt(precision.sum(axis=1))
    return np.where(is_clear & (candidate < 0), -1.0, 1.0)


def merge(scores, shares):
    """Return the scores of families, NaN if no member made a prediction."""
    merged = []
    for family in shares:
        total = np.zeros(scores.shape[1:])
        present = np.zeros(scores.shape[1:])
        for member, share in enumerate(family):
            is_present = ~np.isnan(scores[member])
            total[is_present] += share * scores[member][is_present]
            present[is_present] += abs(share)
        with np.errstate(invalid="ignore"):
            merged.append(np.where(present > 0, total / present, np.nan))
    return np.array(merged)


def measure_replication(scores, reliability):
    """Compare the moments of the families' mean predictions with replicas'."""
    positive = np.maximum(reliability, 0)
    is_reliable = 2 * positive * np.sum(positive**2) > np.sum(positive**3)
    used = scores[is_reliable]
    n_labels = scores.shape[2]
    observed = 0.0
    expected = 0.0
    total_weight = 0.0
    for label in range(n_labels):
        moments = []
        for values in used[:, :, label].T:
            values = values[~np.isnan(values)]
            if len(values) < 4:
                continue
            sums = []
            for order in range(1, 5):
                coefficients = np.poly(-values)  # elementary symmetric polynomials
                n_subsets = 1.0
                for factor in range(order):
                    n_subsets *= (len(values) - factor) / (factor + 1)
                sums.append(coefficients[order] / n_subsets)
            moments.append(sums)
        if not moments:
            continue
        first, second, third, fourth = np.mean(moments, axis=0)
        variance = second - first**2
        if variance <= 1e-9:
            continue
        m3 = third - 3 * first * second + 2 * first**3
        m4 = fourth - 4 * first * third + 6 * first**2 * second - 3 * first**4
        spread = first * (1 - first)
        s = max(spread / variance - 1, 0)
        of_beta = 2 * s * (spread * s**2 + s + 1) * variance**3
        of_beta /= spread * (s + 2) ** 2 * (s + 3)
        weight = len(moments)
        total_weight += weight
        observed += weight * (m4 * variance - m3**2 - variance**3)
        expected += weight * of_beta
    if total_weight == 0:
        return 0.0
    if expected <= 0:
        return 1.0
    return float(np.clip(observed / expected, 0, 1))


def combine(scores, family):
    """Return the consensus scores of models in the given families."""
    n_models, _, n_labels = scores.shape
    rates = correlate(scores)
    correlation = rates["correlation"]
    is_one_family = len(set(family)) == 1
    if is_one_family:
        family = np.arange(n_models)
    is_across = np.array([[a != b for b in family] for a in family])
    across = rates["precision"] * is_across

    # Reliability of models.
    c = np.full(n_models, np.sqrt(0.5))
    is_copied = is_one_family and correlation.min() > 1 - 1e-9
    if n_models > 1 and not is_copied:
        signs = find_signs(correlation, across)
        signed = correlation * np.outer(signs, signs)
        c = np.zeros(n_models)
        if np.sum(signed * across) > 3 * np.sqrt(2 * across.sum()):
            c = signs * fit_reliability(signed, across)

    # Shares of members, and what families are like.
    n_families = max(family) + 1
    shares = np.zeros((n_families, n_models))
    for model, number in enumerate(family):
        shares[number, model] = c[model] if c[model] != 0 else 1e-9
    shares /= np.abs(shares).sum(axis=1, keepdims=True)
    full = correlation.copy()
    np.fill_diagonal(full, 1.0)
    size = np.diag(shares @ full @ shares.T)
    reliability = np.clip(shares @ c / np.sqrt(size), -MAX_RELIABILITY, MAX_RELIABILITY)
    mean = shares @ rates["mean"]
    deviation = np.sqrt(np.abs(shares) @ rates["variance"] * size[:, None])

    # How similar the rates of families are.
    similarity = 1.0
    if not is_one_family:
        n_seen = np.maximum(rates["count"].mean(axis=1), 1)
        weighted = 0.0
        total = 0.0
        trust = np.maximum(c, 0) ** 2 * np.abs(shares).sum(axis=0)
        for a in range(n_models):
            for b in range(n_models):
                if not is_across[a, b] or rates["n_both"][a, b] == 0:
                    continue
                observed = np.sum((rates["mean"][a] - rates["mean"][b]) ** 2)
                products = rates["products"]
                chance = products[a, a] / n_seen[a] ** 2
                chance += products[b, b] / n_seen[b] ** 2
                chance -= 2 * products[a, b] / (n_seen[a] * n_seen[b])
                alike = 1.0
                if observed > 0:
                    alike = min(1.0, max(chance, 0) / observed)
                alike *= rates["n_both"][a, b] / np.sqrt(n_seen[a] * n_seen[b])
                weighted += trust[a] * trust[b] * alike
                total += trust[a] * trust[b]
        similarity = min(1.0, weighted / max(total, 1e-300))

    # Estimates of the signal.
    families = merge(scores, shares)
    present = ~np.isnan(families)
    x = np.where(present, families - mean[:, None], 0.0)
    start = reliability[:, None] * np.ones(n_labels)

    def weigh(c):
        odds = c / (1 - c**2)
        return divide(odds, deviation), np.where(deviation > 0, odds * c, 0.0)

    u, b = weigh(start)
    parts = u[:, None] * x
    informations = b[:, None] * present
    estimate = parts.sum(axis=0)
    information = informations.sum(axis=0)
    is_informed = information > 1e-9
    n_informed = is_informed.sum(axis=0).astype(float)
    n = np.maximum(n_informed, 1)
    standardized = divide(estimate, np.where(is_informed, information, 0))
    variance = np.sum(standardized**2, axis=0) / n

    # Products of different families.
    together = estimate.T @ estimate
    informed = information.T @ information
    signal = divide(together, informed)
    across_products = np.zeros_like(together)
    across_information = np.zeros_like(together)
    for a in range(n_families):
        for other in range(n_families):
            if a != other:
                across_products += parts[a].T @ parts[other]
                across_information += informations[a].T @ informations[other]
    ease = np.ones(n_labels)
    if n_families > 1:
        usable = across_information > 1e-12 * across_information.max(initial=0)
        signal = np.where(usable, divide(across_products, across_information), 0.0)
        has_signal = np.diag(usable)
        if has_signal.any():
            chance = 2 * np.maximum(variance**2 - 1, 0.01) / n
            shrunk = shrink(np.diag(signal)[has_signal], 1.0, chance[has_signal])
            ease[has_signal] = np.clip(shrunk, 0.02, 4.0)

    # Reliability on each label.
    scale = np.sqrt(ease)
    by_label = np.clip(start * scale, -MAX_RELIABILITY, MAX_RELIABILITY)
    for number in range(n_families):
        others = (estimate - parts[number]) * present[number]
        others_information = (information - informations[number]) * present[number]
        total = scale * others_information.sum(axis=0)
        regression = divide(np.sum(x[number] * others, axis=0), deviation[number])
        regression = divide(regression, total)
        chance = np.sum(others**2, axis=0) * (1 - by_label[number] ** 2)
        chance = divide(chance, total**2)
        used = others_information.sum(axis=0) > 1e-9
        used &= (chance > 0) & (deviation[number] > 0)
        if used.sum() > 1:
            by_label[number, used] = shrink(
                regression[used], by_label[number, used], chance[used]
            )
    sign = np.sign(reliability)[:, None]
    by_label = sign * np.clip(sign * by_label, 0, MAX_RELIABILITY)

    if not is_one_family:
        similarity *= measure_replication(families, reliability)
    u, b = weigh(by_label)
    count = present.sum(axis=1).astype(float)
    typical = np.maximum((b * count).sum(axis=0), 1e-9)
    common = similarity * np.maximum(count.sum(axis=0) / typical - n / typical, 0)
    noise = n / typical + common
    trust = np.maximum(by_label, 0) ** 2 * count
    gain = divide((trust * by_label * deviation).sum(axis=0), trust.sum(axis=0))

    # Label correlations and the filter.
    if n_families == 1:
        scale = np.sqrt(np.maximum(np.diag(signal), 1e-12))
    phi = np.clip(signal / np.outer(scale, scale), -1, 1)
    off = ~np.eye(n_labels, dtype=bool)
    chance = variance / ease / np.sqrt(n) if n_families > 1 else 1 / np.sqrt(n)
    if off.any():
        phi[off] = shrink(
            phi[off], 0.0, np.maximum(np.outer(chance, chance)[off], 1e-300)
        )
    np.fill_diagonal(phi, 1.0)
    values, vectors = np.linalg.eigh((phi + phi.T) / 2)
    phi = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
    labels = np.flatnonzero(n_informed)
    label_map = np.zeros((n_labels, n_labels))
    if len(labels):
        known = np.ix_(labels, labels)
        system = phi[known] + np.diag(noise[labels] + 1e-6)
        label_map[known] = np.linalg.inv(system) @ phi[known] * gain[labels]

    # Scores.
    prior = rates["prior"]
    vote_weight = np.maximum(reliability, 0)
    if not vote_weight.any():
        vote_weight = np.count_nonzero(shares, axis=1).astype(float)
    inverted = np.maximum(-shares, 0).sum(axis=1)
    votes = np.where(present, families + inverted[:, None, None], 0.0)
    total_weight = np.einsum("f,fij->ij", vote_weight, present)
    vote = np.einsum("f,fij->ij", vote_weight, votes)
    vote = np.where(total_weight > 0, divide(vote, total_weight), prior)
    if not reliability.any():
        return vote
    information = np.einsum("fj,fij->ij", b, present)
    estimate = np.einsum("fj,fij->ij", u, x)
    is_informed = information > 1e-9
    information = np.where(is_informed, information, 1.0)
    factor = (1 + noise) / (1 + common + 1 / information) / information
    z = np.where(is_informed, estimate * factor, 0.0)
    share = 0.5 * (1 - similarity)
    filtered = np.maximum(prior + z @ label_map, 1e-6 * prior)
    return (1 - share) * filtered + share * vote
