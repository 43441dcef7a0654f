"""Every layout of a block gives the sums of a literal transcription."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse

from mlconsensus import Predictions
from mlconsensus.predictions.blocks import (
    DenseBlock,
    PredictionBlock,
    SparseBlock,
    answer_table,
)
from mlconsensus.predictions.blocks.layout import (
    _collect_rows,
    _make_named_block,
    make_crowd_block,
)
from mlconsensus.predictions.blocks.pair_values import DenseValues, PatternValues

Maker = Callable[[Predictions], PredictionBlock]


def make_scores(seed: int, *, missing: str, kind: str) -> np.ndarray:
    """Return scores (m, n, l) with the given kind of missing predictions."""
    rng = np.random.default_rng(seed)
    scores = rng.random((4, 90, 5)) * (rng.random((4, 90, 5)) < 0.4)
    if kind == "votes":
        scores = (scores > 0.3).astype(float)
    if missing in ("rows", "both"):
        scores[rng.random((4, 90)) < 0.5] = np.nan
    if missing in ("single", "both"):
        scores[rng.random(scores.shape) < 0.2] = np.nan
    return scores


def make_frames(scores: np.ndarray) -> dict[str, object]:
    """Return one DataFrame per model, without the rows that are entirely missing."""
    import pandas as pd

    frames: dict[str, object] = {}
    for model, matrix in enumerate(scores):
        frame = pd.DataFrame(matrix, columns=list("abcde"))
        frame.index = [f"i{position}" for position in range(len(frame))]
        frames[f"model {model}"] = frame.dropna(how="all")
    return frames


def make_blocks(scores: np.ndarray) -> tuple[np.ndarray, list[PredictionBlock]]:
    """Return aligned scores and their blocks in each layout that supports them."""
    predictions = Predictions(make_frames(scores)).weighted([1.0, 2.0, 0.5, 1.0])
    aligned = predictions.to_array()
    shape = aligned.shape
    info = predictions.to_block().info
    parts = predictions._parts
    is_present = ~np.isnan(aligned)
    dense = DenseBlock(list(np.where(is_present, aligned, 0.0)), list(is_present), info)
    rows = _collect_rows(parts, shape[1], shape[2])
    blocks: list[PredictionBlock] = [dense, make_crowd_block(rows, info)]
    if not any(part.has_nan for part in parts):
        blocks.append(_make_named_block(parts, shape, info, is_large=False))
    return aligned, blocks


@pytest.mark.parametrize("missing", ["none", "rows", "single", "both"])
@pytest.mark.parametrize("kind", ["scores", "votes"])
def test_sums_of_all_layouts(missing: str, kind: str) -> None:
    scores, blocks = make_blocks(make_scores(0, missing=missing, kind=kind))
    model_weights = np.array([1.0, 2.0, 0.5, 1.0])[:, None, None]
    is_present = ~np.isnan(scores)
    filled = np.where(is_present, scores, 0.0)

    rng = np.random.default_rng(1)
    weights = rng.random((4, 5))
    total = (model_weights * filled).sum(axis=0)
    count = (model_weights * is_present).sum(axis=0)
    weighted = (model_weights * weights[:, None] * filled).sum(axis=0)
    weighted_count = (model_weights * weights[:, None] * is_present).sum(axis=0)
    prior = rng.random(5)
    mean = np.where(count > 0, total / np.where(count > 0, count, 1), prior)

    for block in blocks:
        values = block.compute_mean_scores(prior)
        np.testing.assert_allclose(block.sum_scores().to_array(), total)
        np.testing.assert_allclose(block.count_predictions().to_array(), count)
        np.testing.assert_allclose(block.sum_scores(weights).to_array(), weighted)
        np.testing.assert_allclose(
            block.count_predictions(weights).to_array(), weighted_count, atol=1e-12
        )
        sums = block.sum_predictions(weights, 1 - weights)
        expected_sums = weighted + (
            model_weights * (1 - weights[:, None]) * (is_present - filled)
        ).sum(axis=0)
        np.testing.assert_allclose(sums.to_array(), expected_sums, atol=1e-12)
        np.testing.assert_allclose(values.to_array(), mean)
        np.testing.assert_allclose(values.sum_over_instances(), mean.sum(axis=0))
        np.testing.assert_allclose(
            block.sum_scores_by_model(values),
            (model_weights * filled * mean).sum(axis=1),
        )
        np.testing.assert_allclose(
            block.count_predictions_by_model(values),
            (model_weights * is_present * mean).sum(axis=1),
        )
        np.testing.assert_allclose(
            block.sum_scores_by_model(), (model_weights * filled).sum(axis=1)
        )
        np.testing.assert_allclose(
            block.count_predictions_by_model(), (model_weights * is_present).sum(axis=1)
        )


@pytest.mark.parametrize("missing", ["none", "rows", "single", "both"])
@pytest.mark.parametrize("kind", ["scores", "votes"])
def test_products_of_all_layouts(missing: str, kind: str) -> None:
    scores, blocks = make_blocks(make_scores(2, missing=missing, kind=kind))
    weights = np.array([1.0, 2.0, 0.5, 1.0])
    is_present = (~np.isnan(scores)) * weights[:, None, None]
    filled = np.nan_to_num(scores) * weights[:, None, None]

    for block in blocks:
        values = block.compute_mean_scores(0.5)
        mean = values.to_array()
        products = block.multiply_models(values)
        for name, first, second in (
            ("scores", filled, filled),
            ("presence_and_score", is_present, filled),
            ("presence", is_present, is_present),
        ):
            expected = np.einsum("il,kil,qil->lkq", mean, first, second)
            np.testing.assert_allclose(getattr(products, name), expected, atol=1e-12)

        matrix = block.connection_matrix()
        if sparse.issparse(matrix):
            matrix = matrix.toarray()
        expected_matrix = filled.transpose(1, 0, 2).reshape(len(matrix), -1)
        np.testing.assert_allclose(matrix, expected_matrix)

        for instance in (0, 17):
            own_scores, presence = block.get_instance(instance)
            np.testing.assert_allclose(own_scores, filled[:, instance])
            np.testing.assert_allclose(presence, is_present[:, instance])


@pytest.mark.parametrize("missing", ["none", "rows", "single", "both"])
@pytest.mark.parametrize("kind", ["scores", "votes"])
def test_vote_patterns_of_all_layouts(missing: str, kind: str) -> None:
    scores, blocks = make_blocks(make_scores(3, missing=missing, kind=kind))
    n_models, n_instances, n_labels = scores.shape
    is_selected = np.random.default_rng(4).random((n_instances, n_labels)) < 0.5

    for selection in (None, is_selected):
        expected: dict[tuple[object, ...], float] = {}
        for instance in range(n_instances):
            for label in range(n_labels):
                if selection is not None and not selection[instance, label]:
                    continue
                votes = scores[:, instance, label]
                key = (label, *np.where(np.isnan(votes), -1, votes >= 0.5).tolist())
                expected[key] = expected.get(key, 0) + 1

        for block in blocks[: 2 if selection is not None else 3]:
            patterns = block.vote_patterns(selection)
            is_yes = patterns.votes[:, :n_models].toarray() > 0
            is_no = patterns.votes[:, n_models:].toarray() > 0
            codes = np.where(is_yes, 1, np.where(is_no, 0, -1)).tolist()
            counted = {
                (label, *code): count
                for label, code, count in zip(
                    patterns.labels.tolist(), codes, patterns.counts, strict=True
                )
            }
            assert counted == expected


def test_votes_of_few_models_use_patterns() -> None:
    rng = np.random.default_rng(6)
    votes = rng.random((3, 200, 4)) < 0.4
    block = Predictions(votes).to_block()
    assert block._patterns is not None
    weights = rng.random((3, 4))
    np.testing.assert_allclose(
        block.sum_scores(weights).to_array(), np.einsum("kl,kil->il", weights, votes)
    )
    np.testing.assert_allclose(
        block.sum_predictions(weights, -weights).to_array(),
        np.einsum("kl,kil->il", weights, 2.0 * votes - 1),
    )
    third = block.count_predictions().map(np.reciprocal)
    products = block.multiply_models(third)
    np.testing.assert_allclose(
        products.scores, np.einsum("kil,qil->lkq", votes / 3, votes)
    )
    np.testing.assert_allclose(
        products.presence_and_score, np.einsum("kil,qil->lkq", votes * 0 + 1 / 3, votes)
    )


def test_layout_follows_the_data() -> None:
    rng = np.random.default_rng(5)
    complete = Predictions(rng.random((3, 50, 4)))
    assert isinstance(complete.to_block(), DenseBlock)

    few = [sparse.csr_array(rng.random((50, 40)) < 0.02) for _ in range(3)]
    assert isinstance(Predictions(few).to_block(), SparseBlock)

    crowd = np.full((20, 60, 4), np.nan)
    for instance in range(60):
        crowd[rng.choice(20, 2, replace=False), instance] = rng.random((2, 4))
    frames = {}
    import pandas as pd

    for model, matrix in enumerate(crowd):
        frames[f"m{model}"] = pd.DataFrame(matrix).dropna(how="all")
    assert isinstance(Predictions(frames).to_block(), SparseBlock)


@pytest.mark.parametrize("missing", ["none", "rows", "single", "both"])
@pytest.mark.parametrize("kind", ["scores", "votes"])
def test_centered_products_of_all_layouts(missing: str, kind: str) -> None:
    scores, blocks = make_blocks(make_scores(2, missing=missing, kind=kind))
    rng = np.random.default_rng(3)
    means = rng.random((4, 5))
    weights = rng.random((4, 5))
    presence = (~np.isnan(scores)).astype(float)
    centered = np.nan_to_num(scores - means[:, np.newaxis])
    weighted = weights[:, np.newaxis] * centered
    weighted_presence = weights[:, np.newaxis] * presence

    for block in blocks:
        pairs = block.pairwise_products(means)
        products = np.einsum("kij,qij->kq", centered, centered)
        np.testing.assert_allclose(pairs.products, products, atol=1e-10)
        squares = np.einsum("kij,qij->kq", centered**2, presence)
        np.testing.assert_allclose(pairs.squares, squares, atol=1e-10)
        n_pairs = np.einsum("kij,qij->kq", presence, presence)
        np.testing.assert_allclose(pairs.n_pairs, n_pairs, atol=1e-10)

        label_products = np.einsum("kij,kil->jl", weighted, weighted)
        result = block.sum_label_products(weights, means)
        np.testing.assert_allclose(result, label_products, atol=1e-10)
        label_counts = np.einsum("kij,kil->jl", weighted_presence, weighted_presence)
        result = block.count_label_products(weights)
        np.testing.assert_allclose(result, label_counts, atol=1e-10)

        squared = np.nansum(scores**2, axis=1)
        np.testing.assert_allclose(block.sum_squares_by_model(), squared, atol=1e-10)
        cubes = np.nansum(scores**3, axis=0)
        raised = block.raise_scores(3).sum_scores(np.ones((4, 5)))
        if kind == "scores":
            np.testing.assert_allclose(raised.to_array(), cubes, atol=1e-10)


@pytest.mark.parametrize("missing", ["none", "rows", "single", "both"])
def test_families_of_all_layouts(missing: str) -> None:
    scores, blocks = make_blocks(make_scores(4, missing=missing, kind="scores"))
    shares = np.array([[0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.3, -0.2]])
    is_present = ~np.isnan(scores)
    filled = np.where(is_present, scores, 0.0)
    total = np.einsum("fk,kij->fij", shares, filled)
    present_share = np.einsum("fk,kij->fij", np.abs(shares), is_present)
    has_any = present_share > 0
    expected = np.where(has_any, total / np.where(has_any, present_share, 1), 0.0)

    rng = np.random.default_rng(5)
    weights = rng.random((2, 5))
    for block in blocks:
        families = block.merge_models(shares)
        assert families.n_models == 2
        result = families.sum_scores(weights).to_array()
        target = np.einsum("fj,fij->ij", weights, expected)
        np.testing.assert_allclose(result, target, atol=1e-10)
        result = families.count_predictions(weights).to_array()
        target = np.einsum("fj,fij->ij", weights, has_any)
        np.testing.assert_allclose(result, target, atol=1e-10)
        result = families.count_label_products(weights)
        weighted = weights[:, np.newaxis] * has_any
        target = np.einsum("fij,fil->jl", weighted, weighted)
        np.testing.assert_allclose(result, target, atol=1e-10)


def test_products_of_many_models_are_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    _, blocks = make_blocks(make_scores(2, missing="both", kind="scores"))
    means = np.random.default_rng(3).random((4, 5))
    dense, crowd = blocks[:2]
    monkeypatch.setattr(answer_table, "MAX_DENSE_MODELS", 3)
    expected = dense.pairwise_products(means)
    products = crowd.pairwise_products(means)
    for name in ("products", "squares", "n_pairs"):
        matrix = getattr(products, name)
        assert sparse.issparse(matrix)
        np.testing.assert_allclose(
            matrix.toarray(), getattr(expected, name), atol=1e-12
        )


def test_families_of_one_model_each_change_nothing() -> None:
    _, blocks = make_blocks(make_scores(5, missing="both", kind="scores"))
    _, crowd = blocks[:2]
    merged = crowd.merge_models(np.eye(4))
    np.testing.assert_array_equal(merged.weights, np.ones(4))
    np.testing.assert_allclose(
        merged.get_instance(3)[0], crowd.get_instance(3)[0] / crowd.weights[:, None]
    )


def test_functions_of_pattern_values() -> None:
    rng = np.random.default_rng(7)
    votes = rng.random((3, 200, 4)) < 0.4
    block = Predictions(votes).to_block()
    weights = rng.random((3, 4))
    prior = rng.random(4)
    values = block.sum_predictions(weights, -weights)
    expected = np.einsum("kl,kil->il", weights, 2.0 * votes - 1)
    assert isinstance(values, PatternValues)

    # Operands that are the same for each pattern keep the patterns.
    sums = values.map(np.add, prior).map(np.multiply, block.count_predictions())
    assert isinstance(sums, PatternValues)
    np.testing.assert_allclose(sums.to_array(), (expected + prior) * 3)
    both = values.map(np.add, values.map(np.square))
    assert isinstance(both, PatternValues)
    np.testing.assert_allclose(both.to_array(), expected + expected**2)
    thirds = values.divide(block.count_predictions(), prior)
    assert isinstance(thirds, PatternValues)
    np.testing.assert_allclose(thirds.to_array(), expected / 3)

    # Others do not.
    other = DenseValues(rng.random((200, 4)))
    mixed = values.map(np.add, other)
    assert not isinstance(mixed, PatternValues)
    np.testing.assert_allclose(mixed.to_array(), expected + other.to_array())
    np.testing.assert_allclose(
        other.map(np.add, values).to_array(), expected + other.to_array()
    )
    np.testing.assert_allclose(
        values.divide(other, prior).to_array(), expected / other.to_array()
    )
    np.testing.assert_allclose(
        values.sum_over_instances(), expected.sum(axis=0), atol=1e-12
    )


def test_mean_of_complete_votes_is_float32_if_the_default_is() -> None:
    votes = np.random.default_rng(8).random((3, 20, 4)) < 0.4
    block = Predictions(votes).to_block()
    mean = block.compute_mean_scores(np.zeros(4, dtype=np.float32))
    assert mean.to_matrix().dtype == np.float32
    np.testing.assert_allclose(mean.to_array(), votes.mean(axis=0), rtol=1e-6)


def test_patterns_of_many_models_add_up() -> None:
    rng = np.random.default_rng(9)
    n_models = 41  # more than patterns are joined for
    votes = rng.random((n_models, 12, 2)) < 0.5
    whole = Predictions(votes).to_block().vote_patterns()
    first = Predictions(votes[:, :7]).to_block().vote_patterns()
    second = Predictions(votes[:, 7:]).to_block().vote_patterns()
    total = first + second + 0
    assert total.counts.sum() == whole.counts.sum() == 24
    np.testing.assert_array_equal(total.labels, whole.labels)
    np.testing.assert_array_equal(total.votes.toarray(), whole.votes.toarray())
    np.testing.assert_array_equal(first.labels, np.tile([0, 1], 7))


def test_families_of_voters_use_their_patterns() -> None:
    rng = np.random.default_rng(10)
    votes = rng.random((3, 200, 4)) < 0.4
    shares = np.array([[0.25, -0.75, 0.0], [0.0, 0.0, 1.0]])
    block = Predictions(votes).to_block()
    families = block.merge_models(shares)
    scores = np.einsum("gk,kil->gil", shares, votes)
    weights = rng.random((2, 4))

    values = families.sum_scores(weights)
    expected = np.einsum("gl,gil->il", weights, scores)
    assert isinstance(values, PatternValues)
    np.testing.assert_allclose(values.to_array(), expected, atol=1e-12)
    np.testing.assert_allclose(
        families.sum_scores_by_model(values),
        np.einsum("il,gil->gl", expected, scores),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        families.count_predictions_by_model(values.map(np.square)),
        np.tile((expected**2).sum(axis=0), (2, 1)),
    )
    np.testing.assert_allclose(
        families.sum_squares_by_model(), (scores**2).sum(axis=1), atol=1e-12
    )
    cubes = families.raise_scores(3)
    np.testing.assert_allclose(
        cubes.sum_scores_by_model(), (scores**3).sum(axis=1), atol=1e-12
    )

    means = rng.random((2, 4))
    centered = scores - means[:, np.newaxis]
    pairs = families.pairwise_products(means)
    np.testing.assert_allclose(
        pairs.products, np.einsum("gil,hil->gh", centered, centered), atol=1e-10
    )
    third = families.count_predictions().map(np.reciprocal)
    products = families.multiply_models(third)
    np.testing.assert_allclose(
        products.scores, np.einsum("gil,hil->lgh", scores, scores) / 2, atol=1e-12
    )

    # Values of other patterns are not mixed up.
    other = Predictions(votes[::-1]).to_block()
    np.testing.assert_allclose(
        other.sum_scores_by_model(values),
        np.einsum("il,kil->kl", expected, votes[::-1]),
        atol=1e-12,
    )
    patterns = families.vote_patterns()
    assert patterns.counts.sum() == 200 * 4
    is_yes = (patterns.votes[:, :2].toarray() * patterns.counts[:, np.newaxis]).sum(0)
    np.testing.assert_array_equal(is_yes, (scores >= 0.5).sum(axis=(1, 2)))
