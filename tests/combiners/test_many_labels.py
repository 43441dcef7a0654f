"""Large label spaces: sparse results equal those of complete arrays."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.linalg.sparse_scores import SparseScores
from mlconsensus.predictions.predictions import Predictions
from mlconsensus.predictions.score_tables import ScoreTable

EXACT = ("majority_vote", "dawid_skene", "bgcm")


def small_panel(
    seed: int,
    n: int = 30,
    l: int = 12,
    m: int = 3,
    gaps: bool = True,
    decide: bool = False,
) -> Predictions:
    """Make sparse models that did not see all instances or know all labels."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, l)) < 0.25
    tables = []
    for k in range(3):
        scores = np.where(
            truth ^ (rng.random((n, l)) < 0.1), 0.3 + 0.7 * rng.random((n, l)), 0.0
        )
        if decide:
            scores = (scores > 0).astype(float)
        else:
            scores = np.round(scores, 3)
        if gaps:
            rows = np.flatnonzero(rng.random(n) < 0.9)
        else:
            rows = np.arange(n)
        if gaps:
            columns = np.flatnonzero(rng.random(l) < 0.9)
        else:
            columns = np.arange(l)
        rows, columns = (
            position if len(position) else np.arange(1) for position in (rows, columns)
        )
        rows[0] = columns[0] = 0
        rows = np.unique(rows)
        columns = np.unique(columns)
        own = sparse.csr_array(scores[np.ix_(rows, columns)])
        tables.append(
            ScoreTable(
                f"m{k}", own, [f"i{i}" for i in rows], [f"l{j}" for j in columns]
            )
        )
    return Predictions.from_tables(tables)


def both_ways(panel: Predictions, name: str) -> tuple[np.ndarray, SparseScores]:
    dense = panel.as_block(False)
    many = panel.as_block(True)
    return mlc.COMBINERS[name]().fit_transform(dense), mlc.COMBINERS[
        name
    ]().fit_transform(many)


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), gaps=st.booleans(), decide=st.booleans())
def test_cells_that_somebody_named_have_the_same_score(name, seed, gaps, decide):
    panel = small_panel(seed, gaps=gaps, decide=decide)
    dense, many = both_ways(panel, name)
    named = sum((values > 0).toarray() for values, _, _ in panel.apart()) > 0
    np.testing.assert_allclose(many.toarray()[named], dense[named], atol=1e-10)
    if not gaps:
        np.testing.assert_allclose(many.toarray(), dense, atol=1e-10)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), gaps=st.booleans(), decide=st.booleans())
def test_families_and_reliability_are_the_same(seed, gaps, decide):
    panel = small_panel(seed, gaps=gaps, decide=decide)
    small = mlc.WeightedConsensus().fit(panel.as_block(False))
    large = mlc.WeightedConsensus().fit(panel.as_block(True))
    for field in ("family", "mean", "deviation", "reliability", "correlation"):
        expected = getattr(small.state_, field)
        result = getattr(large.state_, field)
        np.testing.assert_allclose(result, expected, atol=1e-8, err_msg=field)
    for field in ("squared_estimates", "n_informed", "agreement", "others_squares"):
        expected = getattr(small.statistics_, field)
        result = getattr(large.statistics_, field)
        limit = 1e-7 * max(1, np.abs(expected).max())
        np.testing.assert_allclose(result, expected, atol=limit, err_msg=field)


@pytest.mark.parametrize("name", ["mlcm_a"])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), decide=st.booleans())
def test_while_all_labels_are_in_the_head_scores_are_the_same(name, seed, n, decide):
    dense, many = both_ways(small_panel(seed, n=n, gaps=False, decide=decide), name)
    np.testing.assert_allclose(many.toarray(), dense, atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    gaps=st.booleans(),
    head=st.integers(1, 14),
    settings=st.sampled_from(
        [{}, {"alpha": 0.3}, {"restart": 0.2}, {"weights": [1, 0, 3]}]
    ),
    most=st.sampled_from([2**29, 100]),
)
def test_the_walk_is_within_its_bound(seed, n, gaps, head, settings, most):
    panel = small_panel(seed, n=n, gaps=gaps)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("mlconsensus.linalg.head_tail_map.HEAD_SIZE", head)
        changed.setattr("mlconsensus.linalg.head_tail_map.MAX_EXACT_LABELS", head)
        changed.setattr("mlconsensus.linalg.random_walk._MOST", most)
        combiner = mlc.MLCMr(**settings).fit(panel.as_block(True))
        many = combiner.transform(panel)
    dense = mlc.MLCMr(**settings).fit_transform(panel.as_block(False))
    result = many.stored.tocoo()
    bound = combiner.solution_.groups.bound
    assert (
        np.abs(result.data - dense[result.row, result.col]) <= bound[result.col]
    ).all()


def test_the_walk_has_the_same_best_labels():
    panel = large_panel(n=400)
    combiner = mlc.MLCMr().fit(panel)
    few = np.unique(np.concatenate([values.indices for values, _, _ in panel.apart()]))
    dense = mlc.mlcm_r(panel.select(labels=[panel.labels[j] for j in few]))
    labels, scores = combiner.transform(panel).top(10)
    np.testing.assert_allclose(scores, -np.sort(-dense, axis=1)[:, :10], atol=1e-5)
    result = dense[np.arange(400)[:, None], np.searchsorted(few, labels)]
    np.testing.assert_allclose(scores, result, atol=1e-5)
    assert combiner.solution_.groups.bound.max() < 1e-3


@pytest.mark.parametrize("name", ["mlcm_a", "mlcm_r", "weighted_consensus"])
def test_pieces_of_the_work_change_nothing(name, monkeypatch):
    panel = small_panel(7, n=100).as_block(True)
    monkeypatch.setattr("mlconsensus.linalg.head_tail_map.HEAD_SIZE", 5)
    monkeypatch.setattr("mlconsensus.linalg.head_tail_map.MAX_EXACT_LABELS", 5)
    complete = mlc.COMBINERS[name]().fit_transform(panel)
    monkeypatch.setattr("mlconsensus.linalg.sparse_scores._AT_ONCE", 30)
    monkeypatch.setattr("mlconsensus.linalg.head_tail_shrinkage._PIECE_SIZE", 30)
    pieces = mlc.COMBINERS[name]().fit_transform(panel)
    np.testing.assert_allclose(
        pieces.toarray(), complete.toarray(), atol=1e-6
    )  # with a tail, single precision


@pytest.mark.parametrize("name", [*EXACT, "mlcm_a", "mlcm_r", "weighted_consensus"])
def test_blocks_and_order_change_nothing(name):
    panel = small_panel(11, n=60).as_block(True)
    combiner = mlc.COMBINERS[name]().fit(panel)
    complete = combiner.transform(panel)
    from mlconsensus.execution import local
    from mlconsensus.execution.statistics import merge_statistics

    if not combiner.passes:
        parts = [
            combiner._compute_pass(panel[position : position + 20])
            for position in (0, 20, 40)
        ]
        pieces = mlc.COMBINERS[name]()
        pieces.many_ = True
        pieces.take(
            60,
            models=panel.models,
            labels=panel.labels,
            statistics=merge_statistics(merge_statistics(*parts[:2]), parts[2]),
        )
        np.testing.assert_allclose(
            pieces.transform(panel).toarray(), complete.toarray(), atol=1e-10
        )
    rows = [
        combiner.transform(panel[position : position + 20]).toarray()
        for position in (0, 20, 40)
    ]
    np.testing.assert_allclose(np.concatenate(rows), complete.toarray(), atol=1e-10)
    assert local.map_blocks(panel, combiner.applying()).shape == complete.shape


def large_panel(n: int = 60, l: int = 3000) -> Predictions:
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n), 5)
    result = []
    for _ in range(3):
        labels = np.minimum(rng.zipf(1.3, len(rows)), l) - 1
        result.append(
            sparse.csr_array((np.ones(len(rows)), (rows, labels)), shape=(n, l))
        )
        result[-1].sum_duplicates()
        result[-1].data = np.minimum(result[-1].data, 1)
    return Predictions(result)


def test_a_panel_of_many_labels_takes_the_sparse_route_and_others_do_not():
    panel = large_panel()
    assert panel.many
    assert panel[:5].many
    assert not panel.select(labels=panel.labels[:10]).many
    assert not Predictions([np.ones((4, 3000))]).many
    result = mlc.combine(panel)
    assert result.method == "weighted_consensus"
    assert isinstance(result.scores, SparseScores)
    best = result.top(3)
    assert best.labels.shape == (60, 3)
    assert (np.diff(best.scores, axis=1) <= 0).all()
    sets = result.label_sets()
    assert [len(names) for names in sets] == np.diff(
        result.label_indicator.indptr
    ).tolist()
    assert result.evaluate(np.eye(60, 3000))["ranking_loss"] >= 0
    why = result.explain(0, best.labels[0, 0])
    assert why.score == pytest.approx(best.scores[0, 0])
    assert why.baseline + why.contributions.sum() + why.remainder == pytest.approx(
        why.score
    )
    assert len(result.report().summary.labels.rows) == 500  # those that are named most


def test_what_does_not_fit_is_refused_before_the_work(monkeypatch):
    panel = large_panel()
    monkeypatch.setattr("mlconsensus.combiners.memory.available_memory", lambda: 2**20)
    for combiner in (mlc.MLCMr(), mlc.WeightedConsensus()):
        asked = (
            f"{combiner.identifier}: found 3 models × 60 instances × 3,000 labels, "
            f"which would take .* expected majority_vote or dawid_skene"
        )
        with pytest.raises(mlc.InputError, match=asked):
            combiner.fit(panel)
    thousand = panel.with_models([*panel.models, *(f"silent {k}" for k in range(997))])
    monkeypatch.setattr("mlconsensus.combiners.memory.available_memory", lambda: 2**34)
    with pytest.raises(
        mlc.InputError,
        match="bgcm: found 1,000 models .* would take .* GiB, "
        "expected majority_vote or dawid_skene$",
    ):
        mlc.BGCM().fit(thousand)
    monkeypatch.setattr("mlconsensus.combiners.memory.available_memory", lambda: 2**20)
    gold = np.full((60, 3000), np.nan)
    gold[0] = 0
    with pytest.raises(
        mlc.InputError, match="expected gold and clusterings to have fewer labels"
    ):
        mlc.MajorityVote().fit(panel.with_gold(gold))


def test_an_instance_with_all_labels_says_nothing_of_which_go_together():
    panel = large_panel()
    parts = [values for values, _, _ in panel.apart()]
    parts[0] = sparse.vstack([parts[0], sparse.csr_array(np.ones((1, 3000)))]).tocsr()
    others = [
        sparse.vstack([own, sparse.csr_array((1, 3000))]).tocsr() for own in parts[1:]
    ]
    scores = mlc.mlcm_a(Predictions([parts[0], *others]))
    assert isinstance(scores, SparseScores)
    assert np.isfinite(scores.stored.data).all()


def hostile(kind: str) -> Predictions:
    rng = np.random.default_rng(0)
    n = 40
    l = 3000
    if kind == "nobody names a label":
        return Predictions([sparse.csr_array((n, l))] * 3)
    if kind == "one instance has all labels":
        position = np.zeros(l, dtype=int), np.arange(l)
        return Predictions([sparse.csr_array((np.ones(l), position), shape=(n, l))] * 3)
    if kind == "one label is on all instances":
        position = np.arange(n), np.zeros(n, dtype=int)
        return Predictions(
            [
                sparse.csr_array((rng.random(n), position), shape=(n, l))
                for _ in range(3)
            ]
        )
    if kind == "every label is named once":
        position = np.arange(l) % n, np.arange(l)
        own = [
            sparse.csr_array(
                (rng.random(1000), (position[0][k::3], position[1][k::3])), shape=(n, l)
            )
            for k in range(3)
        ]
        return Predictions(own)
    own = [
        rng.integers(k * 1000, k * 1000 + 1000, (n, 5)) for k in range(3)
    ]  # no label in common
    return Predictions(
        [
            sparse.csr_array(
                (np.full(5 * n, 0.2), (np.repeat(np.arange(n), 5), item.ravel())),
                shape=(n, l),
            )
            for item in own
        ]
    )


@pytest.mark.parametrize("name", [*EXACT, "mlcm_a", "mlcm_r", "weighted_consensus"])
@pytest.mark.parametrize(
    "kind",
    [
        "nobody names a label",
        "one instance has all labels",
        "one label is on all instances",
        "every label is named once",
        "models have no label in common",
    ],
)
def test_hostile_panels_are_answered(kind, name):
    result = mlc.combine(hostile(kind), method=name)
    assert isinstance(result.scores, SparseScores)
    assert np.isfinite(result.top(10).scores).all()
    assert len(result.label_sets()) == 40


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("dawid_skene", "mlconsensus.combiners.dawid_skene._compute_entropy"),
        ("bgcm", "numpy.linalg.solve"),
    ],
)
def test_labels_that_nobody_names_are_not_worked_on(name, step, monkeypatch):
    module, _, function = step.rpartition(".")
    usual = getattr(import_module(module), function)
    sizes = []

    def counted(first, *others):
        sizes.append(len(getattr(first, "labels", first)))
        return usual(first, *others)

    monkeypatch.setattr(step, counted)
    few = small_panel(3, gaps=False)
    parts = [values for values, _, _ in few.apart()]
    wide = [
        sparse.csr_array((own.data, own.indices, own.indptr), shape=(30, 4000))
        for own in parts
    ]
    result = mlc.combine(Predictions(wide), method=name).scores
    assert (
        0 < max(sizes) <= 12 * 2**3
    )  # patterns of three models' votes on twelve labels
    alone = mlc.COMBINERS[name]().fit_transform(few.as_block(True))
    np.testing.assert_allclose(
        result.above[:, :12].toarray(), alone.above.toarray(), atol=1e-12
    )
    assert (result.default[12:] == 0).all()
