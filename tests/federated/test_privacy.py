"""Private statistics: sensitivity, scale of the noise, and solving with noise."""

import contextlib
import hashlib
import re
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

import mlconsensus as mlc
from mlconsensus.federated.privacy import noise
from mlconsensus.federated.privacy.mechanism import Guarantee
from mlconsensus.federated.privacy.private_sums import (
    PrivateMLCMa,
    PrivateMLCMr,
    PrivateSums,
    from_vector,
    to_vector,
)
from mlconsensus.federated.statistics_files import read_state, write_state
from panels import panels

METHODS = {mlc.MLCMr: PrivateMLCMr(), mlc.MLCMa: PrivateMLCMa()}
PRODUCTS = {mlc.MLCMr: "walk", mlc.MLCMa: "gram"}
# Budgets here are of all sizes.
pytestmark = pytest.mark.filterwarnings("ignore:privacy:mlconsensus.InputWarning")
every_method = pytest.mark.parametrize("kind", METHODS)
PANEL, TRUTH = mlc.datasets.make_panel(3000, 6, 3, random_state=0)


def vector(kind, scores, clip=1.0, weights=None):
    """What a panel gives before the noise."""
    if weights is None:
        weights = np.ones(len(scores))
    else:
        weights = np.array(weights)
    return to_vector(METHODS[kind].compute_sums(weights, clip, mlc.Predictions(scores)))


def private(kind, epsilon=1.0, panel=PANEL, **options):
    return mlc.privacy.fit(kind(), panel, epsilon=epsilon, delta=1e-6, **options)


# What one instance can add.


@every_method
@given(
    scores=panels(), clip=st.sampled_from([0.01, 0.5, 1.0, 3.0]), weighted=st.booleans()
)
def test_one_instance_adds_no_more_than_the_sensitivity(kind, scores, clip, weighted):
    if weighted:
        weights = np.linspace(0.5, 4.0, len(scores))
    else:
        weights = None
    pooled = vector(kind, scores, clip, weights)
    for i in range(scores.shape[1]):
        rest = np.delete(scores, i, axis=1)
        if rest.shape[1]:
            others = vector(kind, rest, clip, weights)
        else:
            others = np.zeros_like(pooled)
        assert np.linalg.norm(pooled - others) <= METHODS[kind].sensitivity


ADVERSARIAL = {
    "one yes": np.eye(12)[0],
    "all yes": np.ones(12),
    "four yes": (np.arange(12) < 4).astype(float),
    "nearly one": np.nextafter(np.ones(12), 0),
    "tiny": np.full(12, 1e-300),
    "smallest": np.full(12, 5e-324),
    "one large among tiny": np.r_[1.0, np.full(11, 1e-12)],
    "thirds": np.full(12, 1 / 3),
    "no": np.zeros(12),
    "silent": np.full(12, np.nan),
    "half silent": np.r_[np.ones(6), np.full(6, np.nan)],
}


@every_method
@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize("shape", [(3, 1, 4), (1, 1, 12), (12, 1, 1)])
def test_adversarial_instances_add_no_more_either(kind, name, shape):
    scores = ADVERSARIAL[name].reshape(shape)
    for given_scores in (scores, [sparse.csr_array(matrix) for matrix in scores]):
        assert np.linalg.norm(vector(kind, given_scores)) <= METHODS[kind].sensitivity


@every_method
@pytest.mark.parametrize("weight", [1e-15, 1e15])
def test_extreme_weights_add_no_more_either(kind, weight):
    one = np.ones((3, 1, 4))
    assert (
        np.linalg.norm(vector(kind, one, 1.0, [weight, weight, 0.0]))
        <= METHODS[kind].sensitivity
    )


def test_decisions_reach_the_sensitivity_of_mlcm_r():
    for n_yes in (1, 2, 3, 7, 12):
        one = (np.arange(12) < n_yes).astype(float).reshape(3, 1, 4)
        exact = np.asarray(mlc.MLCMr().fit(one).statistics_.walk)
        assert np.linalg.norm(exact) == pytest.approx(1.0, abs=1e-12)
        assert np.linalg.norm(vector(mlc.MLCMr, one)) == pytest.approx(
            1.0, abs=5e-3
        )  # rounded down


@every_method
def test_sums_are_exact_whatever_the_order(kind):
    """On the grid there is no rounding, so the order of instances does not matter."""
    scores = PANEL.to_array()
    rng = np.random.default_rng(0)
    turned = scores[:, rng.permutation(scores.shape[1])]
    np.testing.assert_array_equal(vector(kind, scores), vector(kind, turned))
    halves = vector(kind, scores[:, :1111]) + vector(kind, scores[:, 1111:])
    np.testing.assert_allclose(vector(kind, scores), halves, rtol=1e-15)
    as_sparse = [sparse.csr_array(matrix) for matrix in scores]
    np.testing.assert_array_equal(vector(kind, scores), vector(kind, as_sparse))


@given(scores=panels(missing=False), clip=st.sampled_from([0.1, 1.0, 2.5]))
def test_clipped_statistics_are_those_of_clipped_means(scores, clip):
    average = np.mean(scores, axis=0)
    norms = np.linalg.norm(average, axis=1, keepdims=True)
    clipped = average * np.minimum(1, clip / np.maximum(norms, 1e-300))
    m, n, l = scores.shape
    result = PrivateMLCMa().make_statistics(
        from_vector(vector(mlc.MLCMa, scores, clip), l), np.ones(m), clip
    )
    assert result.n_instances == n
    assert result.n_predictions == pytest.approx(m * n * l, rel=1e-3)
    np.testing.assert_allclose(
        result.mean_sum, clipped.sum(axis=0), atol=n * clip * 3e-4
    )
    np.testing.assert_allclose(
        result.gram, clipped.T @ clipped, atol=n * clip**2 * 1e-3
    )


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_symmetric_matrix_keeps_its_norm_as_a_vector(size):
    matrix = np.random.default_rng(0).normal(size=(size, size))
    matrix = matrix + matrix.T
    flat = to_vector(PrivateSums(counts=np.empty(0), gram=matrix))
    assert np.linalg.norm(flat) == pytest.approx(np.linalg.norm(matrix))
    np.testing.assert_allclose(from_vector(flat, size).gram, matrix, rtol=1e-15)


# How much noise.


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (8.0, 1e-5)]
)
def test_the_scale_is_no_less_than_the_guarantee_needs_and_hardly_more(epsilon, delta):
    """Compare with the closed form of δ(ε) for Gaussian noise (Balle and Wang 2018)."""

    def exact_delta(scale):
        a = 1 / (2 * scale)
        b = epsilon * scale
        return stats.norm.cdf(a - b) - np.exp(epsilon) * stats.norm.cdf(-a - b)

    scale = noise.find_noise_scale(epsilon, delta, 1.0, 100)
    assert exact_delta(scale) <= delta
    assert exact_delta(0.8 * scale) > delta
    assert noise.find_noise_scale(epsilon, delta, 3.0, 100) == pytest.approx(
        3 * scale, rel=1e-6
    )


def test_noise_has_the_scale_that_the_guarantee_says():
    """Chi-square of 20,000 draws: outside these bounds once in 10¹² runs."""
    drawn = noise.add_noise(np.full(20_000, 7.0), 2.5) - 7.0
    low, high = stats.chi2.ppf([5e-13, 1 - 5e-13], len(drawn))
    assert low < (drawn**2).sum() / 2.5**2 < high
    assert abs(drawn.mean()) < 7.2 * 2.5 / np.sqrt(len(drawn))


@every_method
def test_what_is_released_differs_from_the_sums_by_such_noise(kind):
    result = private(kind, clip=1.0)
    method = METHODS[kind]
    assert result.privacy_.sensitivity == method.sensitivity
    assert result.privacy_.scale == pytest.approx(
        noise.find_noise_scale(1.0, 1e-6, method.sensitivity, 500), rel=1e-6
    )
    exact = vector(kind, PANEL.to_array(), 1.0)
    released = released_vector(result)
    low, high = stats.chi2.ppf([5e-13, 1 - 5e-13], len(exact))
    assert low < ((released - exact) ** 2).sum() / result.privacy_.scale**2 < high
    # The same noise never comes twice.
    again = getattr(private(kind).statistics_, PRODUCTS[kind])
    assert (again != getattr(result.statistics_, PRODUCTS[kind])).all()


def released_vector(private):
    statistics = private.statistics_
    m = len(private.models_)
    l = len(private.labels_)
    if isinstance(private, mlc.MLCMr):
        walk = statistics.walk.reshape(m * l, m * l)
        return to_vector(PrivateSums(counts=np.empty(0), gram=walk))
    counts = np.array(
        [
            statistics.n_instances,
            statistics.n_predictions / (m * l),
            *statistics.mean_sum,
        ]
    )
    return to_vector(PrivateSums(counts=counts, gram=statistics.gram))


@every_method
def test_with_next_to_no_privacy_results_are_next_to_exact(kind):
    with pytest.warns(
        mlc.InputWarning,
        match=r"privacy: ε = 10000 hides little: .* e\^10000 times as likely",
    ):
        loose = private(kind, epsilon=1e4, clip=2.0)
    np.testing.assert_allclose(
        loose.transform(PANEL), kind().fit_transform(PANEL), atol=2e-3
    )


@every_method
def test_noise_that_drowns_all_is_told(kind):
    with pytest.warns(
        mlc.InputWarning,
        match=r"the noise \(±.*\) is larger than every sum; a larger ε or more",
    ):
        private(kind, 1e-6)


# Whatever the noise, it is solved.


@every_method
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("shape", [(30, 5, 3), (3, 9, 2), (1, 1, 1)])
def test_the_solve_is_well_posed_under_heavy_noise(kind, epsilon, shape):
    n, l, m = shape
    panel, _ = mlc.datasets.make_panel(
        n, l, m, cardinality=1, missing=0.2, random_state=0
    )
    result = private(kind, epsilon, panel)
    scores = result.transform(panel)
    assert np.isfinite(scores).all()
    if kind is mlc.MLCMr:
        assert (scores >= 0).all()
        np.testing.assert_allclose(scores.sum(axis=1), 1.0)
        eigenvalues = np.linalg.eigvalsh(
            np.asarray(result.statistics_.walk).reshape(m * l, m * l)
        )
        assert (
            eigenvalues.min() < 0 or l == 1
        )  # so that there was something to put right
    else:
        filter = result.solution_.label_map
        assert (filter == filter.T).all() or np.allclose(filter, filter.T)
        assert np.linalg.eigvalsh(filter).min() > -1e-9
        assert np.linalg.eigvalsh(filter).max() < 1


def test_restart_is_well_posed_too():
    result = mlc.privacy.fit(
        mlc.MLCMr(restart=0.3), PANEL[:30], epsilon=0.01, delta=1e-6
    )
    np.testing.assert_allclose(result.transform(PANEL).sum(axis=1), 1.0)


def test_noise_costs_little_where_instances_are_many():
    panel, truth = mlc.datasets.make_panel(20_000, 6, 3, random_state=0)
    for kind in METHODS:
        exact = mlc.metrics.ranking_loss(truth, kind().fit_transform(panel))
        noisy = mlc.metrics.ranking_loss(
            truth, private(kind, 1.0, panel, clip=2.0).transform(panel)
        )
        assert noisy == pytest.approx(exact, abs=0.005)


# What is said, withheld and refused.


@every_method
def test_the_file_says_the_guarantee_and_not_how_many_instances(kind, tmp_path):
    mlc.save_statistics(private(kind), tmp_path / "a.stats")
    header, _ = read_state(tmp_path / "a.stats")
    assert header["instances"] is None
    output = header["privacy"]
    assert (output["epsilon"], output["delta"], output["releases"]) == (1.0, 1e-6, 1)
    assert output["clip"] == (1.5 if kind is mlc.MLCMa else None)
    assert "adding or removing one instance" in output["neighbours"]
    assert "3000" not in str(header)
    read = mlc.load(tmp_path / "a.stats")
    assert read.n_instances_ is None
    with pytest.raises(mlc.InputError, match="partial_fit: found private statistics"):
        read.partial_fit(PANEL)
    mlc.save(read, tmp_path / "a.model")
    model = mlc.load(tmp_path / "a.model")
    assert model.privacy_ == read.privacy_
    assert str(model.privacy_) == "ε = 1, δ = 1e-06"
    np.testing.assert_allclose(
        model.transform(PANEL), read.transform(PANEL), atol=1e-12
    )


@every_method
def test_private_sites_add_up(kind):
    sites = [
        private(kind, panel=PANEL[start : start + 1000]) for start in (0, 1000, 2000)
    ]
    pooled = mlc.merge(sites)
    assert pooled.privacy_ == replace(sites[0].privacy_, releases=3)
    name = PRODUCTS[kind]
    sums = sum(np.asarray(getattr(site.statistics_, name)) for site in sites)
    np.testing.assert_allclose(np.asarray(getattr(pooled.statistics_, name)), sums)
    assert np.isfinite(pooled.transform(PANEL)).all()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            lambda: mlc.MLCMa().fit(PANEL),
            "found privacy = 'none', expected 'ε = 1, δ = 1e-06' as in",
        ),
        (
            lambda: private(mlc.MLCMa, epsilon=2.0),
            "found privacy = 'ε = 2, δ = 1e-06', expected 'ε = 1, δ = 1e-06'",
        ),
        (
            lambda: private(mlc.MLCMa, clip=2.0),
            "found clip = 2.0, expected 1.5 as in combiner 0",
        ),
    ],
)
def test_releases_with_other_guarantees_are_refused(other, message):
    with pytest.raises(mlc.InputError, match=f"combiner 1: .*{message}"):
        mlc.merge([private(mlc.MLCMa), other()])


@pytest.mark.parametrize(
    "name", ["majority_vote", "dawid_skene", "bgcm", "weighted_consensus"]
)
def test_other_methods_are_refused(name):
    with pytest.raises(
        mlc.InputError, match=f"found {name}, .* expected mlcm_r or mlcm_a"
    ):
        mlc.privacy.fit(mlc.COMBINERS[name](), PANEL, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon: found 0.0"),
        ({"epsilon": -1.0}, "epsilon: found -1.0"),
        ({"epsilon": np.nan}, "epsilon: found nan"),
        ({"epsilon": np.inf}, "epsilon: found inf"),
        ({"delta": 0.0}, "delta: found 0.0"),
        ({"delta": 1.0}, "delta: found 1.0"),
        ({"clip": 0.0}, "clip: found 0.0"),
        ({"clip": 1e300}, "clip: found 1e+300, expected a number from 1e-06 to 1e+06"),
        ({"clip": 1e-300}, "clip: found 1e-300, expected a number from 1e-06 to 1e+06"),
        (
            {"epsilon": 1e-300, "delta": 1e-300},
            "found ε = 1e-300, δ = 1e-300, for which OpenDP finds no noise, expected",
        ),
    ],
)
def test_bad_budgets_are_refused(options, message):
    with pytest.raises(mlc.InputError, match=re.escape(message)):
        mlc.privacy.fit(
            mlc.MLCMa(), PANEL, **({"epsilon": 1.0, "delta": 1e-6} | options)
        )


def test_clusterings_are_refused():
    with pytest.raises(mlc.InputError, match="privacy: found clusterings"):
        private(mlc.MLCMr, panel=PANEL[:3].with_clusterings({"c": [1, 2, 3]}))


def test_without_opendp_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "opendp.prelude", None)
    with pytest.raises(mlc.InputError, match=r"pip install 'mlconsensus\[privacy\]'"):
        private(mlc.MLCMr)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0},
        {"delta": "1"},
        {"scale": None},
        {"clip": -1},
        {"releases": 0},
        {"mechanism": "none"},
        {"more": 1},
    ],
    ids=str,
)
def test_broken_guarantees_are_refused(changes, tmp_path):
    path = tmp_path / "a.stats"
    mlc.save_statistics(private(mlc.MLCMa), path)
    header, arrays = read_state(path)
    with path.open("wb") as file:
        write_state(file, header | {"privacy": header["privacy"] | changes}, arrays)
    with pytest.raises(mlc.InputError, match="privacy"):
        mlc.load(path)


def test_a_guarantee_for_another_method_is_refused(tmp_path):
    path = tmp_path / "a.stats"
    mlc.save_statistics(mlc.MajorityVote().fit(PANEL), path)
    header, arrays = read_state(path)
    guarantee = Guarantee(epsilon=1.0, delta=1e-6, scale=4.5, sensitivity=1.0)
    changes = {"privacy": asdict(guarantee), "instances": None}
    with path.open("wb") as file:
        write_state(file, header | changes, arrays)
    with pytest.raises(mlc.InputError, match="a.stats, privacy: found majority_vote"):
        mlc.load(path)


@every_method
def test_flipped_bytes_under_a_right_checksum_are_refused_or_harmless(kind, tmp_path):
    path = tmp_path / "a.stats"
    panel = PANEL[:20].select(labels=PANEL.labels[:2])
    mlc.save_statistics(private(kind, 100.0, panel), path)
    content = path.read_bytes()[:-32]
    rng = np.random.default_rng(0)
    for position in rng.choice(np.arange(20, len(content)), 150, replace=False):
        broken = (
            content[:position]
            + bytes([content[position] ^ (1 << rng.integers(8))])
            + content[position + 1 :]
        )
        path.write_bytes(broken + hashlib.sha256(broken).digest())
        with contextlib.suppress(mlc.InputError):
            read = mlc.load(path)
            mlc.save(read, tmp_path / "solved.model", force=True)
            assert np.isfinite(
                read.transform(
                    mlc.Predictions(panel.to_array(), read.models_, read.labels_)
                )
            ).all()
