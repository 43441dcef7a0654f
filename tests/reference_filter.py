"""The prototype from which the package's rater filter was made, dense and in one piece.

It keeps the package's version, which goes over blocks, sparse input and shared kernels, to the same numbers. It is no
independent derivation: three later changes (what counts as a copy, a fixed number of rounds, Newton's method at the end
of `_rank_one`) were made in both.

statistics(block) -> dict   sums over instances (additive: merge = add)
merge(a, b)       -> dict
solve(stats)      -> Model  (small: per label m x m, one l x l system)
apply(model, Y)   -> (n, l) scores
Y is (m, n, l), bool / 0-1 / [0,1]; NaN = the model did not say.
"""

from types import SimpleNamespace

import numpy as np
from scipy.stats import norm


# ---------------------------------------------------------------- statistics
def statistics(Y):
    m, n, l = Y.shape
    A = np.ascontiguousarray(np.moveaxis(np.asarray(Y, float), 1, 0).reshape(n, m * l))
    O = ~np.isnan(A)
    A = np.where(O, A, 0.0)
    full = O.all()
    s = {"m": m, "l": l, "n": float(n), "P": A.T @ A, "s": A.sum(0), "Q": None, "M": None}
    if not full:
        Of = O.astype(float)
        s["Q"] = A.T @ Of  # sum of a over the instances where both spoke
        s["M"] = Of.T @ Of  # how often both spoke
    return s


def _dense(s):
    p = s["m"] * s["l"]
    if s["Q"] is None:
        s = dict(s, Q=np.repeat(s["s"][:, None], p, 1), M=np.full((p, p), s["n"]))
    return s


def merge(a, b):
    out = dict(a)
    if a["Q"] is not None or b["Q"] is not None:
        a, b = _dense(a), _dense(b)
        out["Q"] = a["Q"] + b["Q"]
        out["M"] = a["M"] + b["M"]
    for k in ("n", "P", "s"):
        out[k] = a[k] + b[k]
    return out


# --------------------------------------------------------------------- solve
def _moments(s):
    """means (m,l), covariances (m,l,m,l), co-observation counts (l,m,m)."""
    m, l = s["m"], s["l"]
    if s["Q"] is None:
        mu = s["s"] / max(s["n"], 1)
        G = s["P"] / max(s["n"], 1) - np.outer(mu, mu)
        cnt = np.full((l, m, m), s["n"])
    else:
        d = np.diag(s["M"])
        mu = s["s"] / np.maximum(d, 1)
        G = s["P"] - s["Q"] * mu[None, :] - s["Q"].T * mu[:, None] + s["M"] * np.outer(mu, mu)
        G /= np.maximum(s["M"], 1)
        cnt = np.einsum("kjqj->jkq", s["M"].reshape(m, l, m, l)).copy()
    return mu.reshape(m, l), G.reshape(m, l, m, l), cnt


def _distinct(mu, S, cnt):
    """index of the first exact copy of every model (copies count once)."""
    m = mu.shape[0]
    var = np.einsum("jkk->jk", S)
    rep = np.arange(m)
    for k in range(m):
        for q in range(k):
            if rep[q] != q:
                continue
            gap = var[:, k] + var[:, q] - 2 * S[:, k, q] + (mu[k] - mu[q]) ** 2
            alike = (cnt[:, k, q] == cnt[:, k, k]) & (cnt[:, k, q] == cnt[:, q, q])
            if alike.all() and gap.max() <= 1e-10:
                rep[k] = q
                break
    return rep


def _kinship(mu, S, cnt):
    """kappa^2; kappa = share of the difference of two models' rates that chance explains."""
    m = mu.shape[0]
    K = np.eye(m)
    var = np.einsum("jkk->jk", S)
    for k in range(m):
        for q in range(k):
            n = cnt[:, k, q]
            d2 = (mu[k] - mu[q]) ** 2
            gap = var[:, k] + var[:, q] - 2 * S[:, k, q] + d2
            g = gap * n > 0.5
            chi = (n[g] * d2[g] / gap[g]).sum()
            K[k, q] = K[q, k] = min(1.0, g.sum() / max(chi, 1e-12)) ** 2 if g.any() else 1.0
    return K


def _rank_one(R, it=300):
    """least absolute deviations fit of off-diagonal R by r r'."""
    m = len(R)
    if m == 1:
        return np.ones(1)
    off = ~np.eye(m, dtype=bool)
    r = np.full(m, np.sqrt(max(R[off].mean(), 1e-6)))
    for t in range(1, it + 1):
        w = off / (np.abs(R - np.outer(r, r)) + 1e-3)
        new = 0.5 * r + 0.5 * np.clip((w * R) @ r / np.maximum(w @ (r * r), 1e-12), -1, 1)
        r = new
        if t in (20, 40, 80, 160, 300):
            x = _stationary(R, r)
            if x is not None:
                r = x
                break
    return r if r.sum() >= 0 else -r


def _stationary(R, r0):
    """minimum of sum f(R - r r'), f(e) = |e| - 1e-3 log(1 + |e|/1e-3), if Newton's steps lead to one within 0.05."""
    m = len(R)
    x = r0.copy()
    for _ in range(12):
        g, H = np.zeros(m), np.zeros((m, m))
        for k in range(m):
            for q in range(m):
                if k != q:
                    e = R[k, q] - x[k] * x[q]
                    f1, f2 = e / (abs(e) + 1e-3), 1e-3 / (abs(e) + 1e-3) ** 2
                    g[k] -= f1 * x[q]
                    H[k, k] += f2 * x[q] ** 2
                    H[k, q] += f2 * x[k] * x[q] - f1
        lowest, highest = np.linalg.eigvalsh(H)[[0, -1]]
        if lowest <= 1e-8 * highest:
            return None
        d = np.linalg.solve(H, -g)
        x = x + d
        if np.abs(x - r0).max() > 0.05 or np.abs(x).max() > 1:
            return None
        if np.abs(d).max() <= 1e-12:
            return x
    return None


def _loadings(mu, S, cnt, it=80):
    """r[j,k] = corr(model k's prediction of label j, what the models have in common on j).

    Cross-model correlations rho_kq = r_k r_q (errors of different models independent);
    two-way empirical Bayes: r_jk ~ N(r_k d_j, tau2), d_j^2 ~ N(1, td)."""
    l, m = S.shape[0], S.shape[1]
    var = np.maximum(np.einsum("jkk->jk", S), 0)
    sd = np.sqrt(var)
    ok = sd > 1e-9
    iv = np.where(ok, 1 / np.where(ok, sd, 1), 0)
    rho = np.clip(S * iv[:, :, None] * iv[:, None, :], -1, 1)
    pv = var.sum(0)
    R = np.clip(S.sum(0) / np.sqrt(np.maximum(np.outer(pv, pv), 1e-30)), -1, 1)
    r = _rank_one(R)
    if m > 1:
        cells = cnt.max() * max(1.0, pv.sum() ** 2 / max((var.sum(1) ** 2).sum(), 1e-30))
        o = ~np.eye(m, dtype=bool)
        if np.median(r) * r.max() < 3 / np.sqrt(max(cells, 1)):
            # most models agree with no one beyond chance: agreement cannot tell who is right, trust all alike
            r = np.full(m, max(np.sqrt(max(R[o].mean(), 0)), min(0.5, cells**-0.25)))
            rho = np.where(np.eye(m, dtype=bool), rho, r[0] ** 2)
    inv = r < -0.5 * max(np.median(r), 0) - 1e-9  # inverted, not just useless
    r = np.where(inv, r, np.maximum(r, 0))
    a = np.maximum(1 - r * r, 1e-3)
    eta = np.clip((R - np.outer(r, r)) / np.sqrt(np.outer(a, a)), 0, 1)  # errors in common
    np.fill_diagonal(eta, 1.0)
    pw = (1 - eta**2) ** 4  # near copies say nothing about each other
    off = ~np.eye(m, dtype=bool)
    obs = off & ok[:, :, None] & ok[:, None, :] & (cnt > 1)
    p = np.maximum(sd, 1e-9)
    pp = p[:, :, None] * p[:, None, :]
    rr = np.outer(r, r)
    rj = np.tile(r, (l, 1))
    d = np.ones(l)
    tau2, td = np.full(m, 0.03), 0.1
    for t in range(it):
        pm = np.clip(r * d[:, None], -0.99, 0.99)
        v = (1 + np.abs(pm[:, :, None] * pm[:, None, :]) / pp) / np.maximum(cnt, 1)
        iw = np.where(obs, pw / v, 0)
        if t % 5 == 0:
            hd = np.einsum("jkq,kq->j", iw, rr**2) / 2
            nd = np.einsum("jkq,jkq,kq->j", iw, rho, rr) / 2
            g = hd > 0
            raw = nd / np.maximum(hd, 1e-12)
            for _ in range(10):
                q = (hd / (hd + 1 / td)) ** 2 * g
                td = max(1e-4, (q * ((raw - 1) ** 2 - 1 / np.maximum(hd, 1e-12))).sum() / max(q.sum(), 1e-12))
            d = np.sqrt(np.clip((nd + 1 / td) / (hd + 1 / td), 0.01, 4))
        h = np.einsum("jkq,jq->jk", iw, rj**2)
        num = np.einsum("jkq,jkq,jq->jk", iw, rho, rj)
        new = np.clip((num + pm / tau2) / (h + 1 / tau2), -0.99, 0.99)
        rj = 0.5 * rj + 0.5 * np.where(inv, np.minimum(new, 0), np.maximum(new, 0))
        if t > 10:
            q = (h / (h + 1 / tau2)) ** 2 * (h > 0)
            raw = num / np.maximum(h, 1e-12)
            e = q * ((raw - pm) ** 2 - 1 / np.maximum(h, 1e-12))
            tau2 = np.maximum(1e-5, 0.5 * tau2 + 0.5 * e.sum(0) / np.maximum(q.sum(0), 1e-12))
    return np.where(ok, rj, 0), sd, r, eta, rj


def _prevalence(c, call, ok, mu, nk, bend=1.0):
    """label frequencies as the trusted models see them, unbent by `bend` on the probit scale, and their mean
    reliability."""
    k = c.shape[1]
    mu = np.clip(mu, 0, 1)
    om = np.maximum(c, 0) ** 2 * ok
    tot = om.sum(1, keepdims=True)
    om = np.where(tot > 1e-12, om / np.maximum(tot, 1e-12), 1 / k)
    rb = np.sqrt((om * c**2).sum(1))
    pi = (om * mu.T).sum(1)
    # a model that never says j says no, unless, were the others right, it would have spoken by now
    zero = np.exp(-nk * (np.minimum(pi, 1 - pi) * rb**2)[:, None])
    oa = np.where(ok, np.maximum(c, 0) ** 2, np.maximum(call, 0) ** 2 * zero)
    ta = oa.sum(1, keepdims=True)
    pi = (np.where(ta > 1e-12, oa / np.maximum(ta, 1e-12), 1 / k) * norm.cdf(bend * norm.ppf(mu.T))).sum(1)
    return pi, rb, om


def _bend(c, rb, pi, r, Th, beta, mu, S):
    """what models know when they say yes where it is likelier than no: probit(rate) = probit(frequency) / b."""
    m, l = mu.shape
    for k in range(m):  # whoever gives scores does not decide
        if sum(S[j, k, k] for j in range(l)) < 0.999 * sum(mu[k, j] * (1 - mu[k, j]) for j in range(l)):
            return 1.0
    pairs = [(r[k] ** 2 * r[q] ** 2, Th[k, q]) for k in range(m) for q in range(m) if k != q]
    kin = sum(w * th for w, th in pairs) / max(sum(w for w, _ in pairs), 1e-12)
    return _level(rb, pi) ** ((1 - kin) * (1 + min(beta, 0)) / 2)


def _level(rb, pi):
    """r bar"""
    var = np.maximum(pi * (1 - pi), 0)
    return max(np.sqrt((var * rb**2).sum() / max(var.sum(), 1e-12)), 0.03)


def _drawn(P, V, S, nk):
    """correlations of labels drawn to 0: E[P_ji^2] = s + chance_ji, s estimated from all pairs, heavily where chance is
    small."""
    l = len(P)
    var, n = np.zeros(l), np.zeros(l)
    for j in range(l):
        var[j] = V[j] @ S[j] @ V[j]
        n[j] = max(np.abs(V[j]) @ nk[j] / max(np.abs(V[j]).sum(), 1e-300), 1)
    pairs = [(j, i) for j in range(l) for i in range(l) if i != j]
    if not pairs:
        return P
    chance = {(j, i): var[j] * var[i] / np.sqrt(n[j] * n[i]) for j, i in pairs}
    over = {pair: P[pair] ** 2 - chance[pair] for pair in pairs}
    s = max(sum(over.values()) / len(pairs), 1e-6)
    for _ in range(50):
        weight = {pair: (s / (s + chance[pair])) ** 2 for pair in pairs}
        s = max(sum(weight[pair] * over[pair] for pair in pairs) / max(sum(weight.values()), 1e-300), 1e-8)
    out = P.copy()
    for pair in pairs:
        out[pair] *= s / (s + chance[pair])
    return out


def _mechanism(c, mu, pi, nk):
    """+1: models that know a label less stay silent (recall differs, votes keep their worth);
    -1: they say it too often (precision differs); 0: neither shows, as with replicas.
    Slope, within labels, of log r^2 = log(precision recall) on the log odds of the rate."""
    p = np.clip(mu.T, 1e-9, 1 - 1e-9)
    use = (c > 0.05) & (p * nk >= 5) & ((1 - p) * nk >= 5)
    wt = use * np.sqrt(np.maximum(pi, 0))[:, None]
    y = np.where(use, 2 * np.log(np.where(use, c, 1)), 0)
    x = np.where(use, np.log(p / (1 - p)), 0)
    tot = np.maximum(wt.sum(1, keepdims=True), 1e-12)
    y = y - (wt * y).sum(1, keepdims=True) / tot
    x = x - (wt * x).sum(1, keepdims=True) / tot
    noise = (wt * np.where(use, 1 / (np.maximum(nk, 1) * p), 0)).sum()  # sampling variance of x
    return float(np.clip((wt * x * y).sum() / max((wt * x * x).sum() + noise, 1e-12), -1, 1))


def solve(s):
    m, l = s["m"], s["l"]
    mu, G, cnt = _moments(s)
    S = np.ascontiguousarray(np.einsum("kjqj->jkq", G))
    rep = _distinct(mu, S, cnt)
    use = np.where(rep == np.arange(m))[0]
    mu_, G_, S_, cnt_ = mu[use], G[use][:, :, use], S[:, use][:, :, use], cnt[:, use][:, :, use]
    Th = _kinship(mu_, S_, cnt_)
    c, sd, r, eta, call = _loadings(mu_, S_, cnt_)  # (l,k)
    ok = sd > 1e-9
    isd = np.where(ok, 1 / np.where(ok, sd, 1), 0)
    t = (eta**2).sum(1)  # near copies share one voice
    nk = np.einsum("jkk->jk", cnt_)
    pi, _, _ = _prevalence(c, call, ok, mu_, nk)
    # 0 <= FPR and TPR <= 1 bound what a model with this rate can know of a label this frequent:
    # c^2 <= odds ratio of the two frequencies
    p = np.clip(mu_.T, 1e-9, 1 - 1e-9)
    q = np.clip(pi, 1e-9, 1 - 1e-9)[:, None]
    c = np.sign(c) * np.minimum(np.abs(c), np.exp(-np.abs(np.log(p / (1 - p) * (1 - q) / q)) / 2))
    pi, rb, _ = _prevalence(c, call, ok, mu_, nk)
    beta = _mechanism(c, mu_, pi, nk)
    level = _level(rb, pi)
    pi, _, _ = _prevalence(c, call, ok, mu_, nk, _bend(c, rb, pi, r, Th, beta, mu_, S_))
    w = np.where(ok, c / (1 - c * c) / t, 0)  # evidence per standardised vote
    h = (w * c).sum(1)  # information
    act = h > 1e-6
    W = np.where(act[:, None], w / np.where(act, h, 1)[:, None], 0)
    u = W * np.sqrt(1 - c * c)
    own = (u * u).sum(1)
    sh = np.maximum(np.einsum("jk,kq,jq->j", u, Th, u) - own, 0)
    noise = np.maximum(own, np.minimum((1 + sh) ** 2 - 1, 2))
    gain = np.maximum(rb, 0.03) ** (1 - beta / 2) / np.sqrt(level) * np.sqrt(np.maximum(pi * (1 - pi), 0))
    gain = np.where(rb > 0, gain, 0)
    # label correlations of the common signal, from pairs of different models
    V = W * isd
    A = np.einsum("jk,kjqi,iq->ji", V, G_, V, optimize=True)
    D = np.einsum("jk,kjki,ik->ji", V, G_, V, optimize=True)
    Wc = W * c
    den = 1 - Wc @ Wc.T
    f = np.clip(2 * den, 0, 1)
    Phi = f * (A - D) / np.maximum(den, 1e-3) + (1 - f) * A
    Phi = (Phi + Phi.T) / 2
    np.fill_diagonal(Phi, 1.0)
    i = np.where(act)[0]
    F = np.zeros((l, l))
    if len(i):
        P = _drawn(Phi[np.ix_(i, i)], V[i], S_[i], nk[i])
        e, E = np.linalg.eigh(P)
        if e[0] < 0:
            P = (E * np.maximum(e, 0)) @ E.T
            dg = np.sqrt(np.maximum(np.diag(P), 1e-12))
            P = P / dg[:, None] / dg[None]
        F[np.ix_(i, i)] = np.linalg.solve(P + np.diag(noise[i] + 1e-6), P)
    return SimpleNamespace(
        m=m,
        l=l,
        use=use,
        rep=rep,
        mu=mu_,
        V=V,
        w=w,
        c=c,
        isd=isd,
        h=h,
        own=own,
        noise=noise,
        F=F * gain,
        gain=gain,
        pi=pi,
        act=act,
        r=r,
        kin=Th,
        rb=rb,
        Phi=Phi,
        W=W,
        beta=beta,
        eta=eta,
    )


# --------------------------------------------------------------------- apply
def evidence(M, Y):
    """(n,l): the models' joint, standardised, unbiased reading of every label."""
    Y = np.asarray(Y, float)
    Z = Y[M.use]
    O = ~np.isnan(Z)
    if O.all():
        return np.einsum("knl,lk->nl", Z, M.V) - (M.V.T * M.mu).sum(0)
    X = np.where(O, Z - M.mu[:, None, :], 0)
    x = np.einsum("knl,lk->nl", X, M.w * M.isd)
    h = np.einsum("knl,lk->nl", O.astype(float), M.w * M.c)
    hj = np.where(M.act, M.h, 1)
    shared = M.noise - M.own
    some = h > 1e-9 * hj
    hh = np.where(some, h, 1)
    nij = M.own * hj / hh + shared  # noise of what was said
    return np.where(some & M.act, x / hh * (1 + M.noise) / (1 + nij), 0)


def apply(M, Y):
    S = M.pi + evidence(M, Y) @ M.F
    return np.maximum(S, 0) + 1e-6 * M.pi  # a probability; where none is left, the prior orders


def consensus(Y):
    return apply(solve(statistics(Y)), Y)
