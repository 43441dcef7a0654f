"""Clusterings as panel members: group nodes without an anchor."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csgraph, csr_array

import mlconsensus as mlc
import oracle
from panels import NAN, panels

KINDS = {mlc.MLCMr: oracle.mlcm_r, mlc.BGCM: oracle.bgcm}
either = pytest.mark.parametrize("kind", KINDS)


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


def as_matrix(clusterings):
    columns = [
        np.equal(ids, name)
        for ids in clusterings
        for name in dict.fromkeys(i for i in ids if i is not None)
    ]
    return np.array(columns, dtype=float).T.reshape(-1, len(columns))


def reaches_a_label(scores, clusters):
    """Return whether each component has an edge to a model for every label."""
    n, c = clusters.shape
    joined = csr_array(
        np.block([[np.zeros((n, n)), clusters], [clusters.T, np.zeros((c, c))]])
    )
    _, component = csgraph.connected_components(joined)
    spoken = (~np.isnan(scores)).any(axis=0).all(axis=1) & (
        np.nan_to_num(scores).sum(axis=(0, 2)) > 0
    )
    return set(component[:n][spoken]) == set(component)


@either
@given(scores=panels(), data=st.data())
def test_equals_the_literal_walk(kind, scores, data):
    n = scores.shape[1]
    of_one = st.lists(st.sampled_from(["x", "y", None]), min_size=n, max_size=n).filter(
        any
    )
    clusterings = data.draw(st.lists(of_one, min_size=1, max_size=2))
    clusters = as_matrix(clusterings)
    assume(reaches_a_label(scores, clusters))
    panel = mlc.Predictions(scores).with_clusterings(
        {str(position): ids for position, ids in enumerate(clusterings)}
    )
    close(kind().fit_transform(panel), KINDS[kind](scores, clusters=clusters))
    in_pieces = kind().partial_fit(panel[: n // 2 + 1])
    if n // 2 + 1 < n:
        in_pieces.partial_fit(panel[n // 2 + 1 :])
    close(in_pieces.transform(panel), kind().fit_transform(panel))


@either
def test_what_is_known_of_a_cluster_reaches_those_of_whom_nothing_is(kind):
    scores = np.array([[[1.0, 0.0], [NAN, NAN], [0.0, 1.0], [NAN, NAN]]])
    panel = mlc.Predictions(scores).with_clusterings({"k": [0, 0, 1, 1]})
    result = kind().fit_transform(panel)
    assert result[1, 0] > result[1, 1]
    assert result[3, 1] > result[3, 0]
    alone = kind().fit_transform(scores)
    close(alone[1], alone[3])


@either
def test_a_cluster_of_unknowns_gets_the_prior(kind):
    scores = np.array([[[1.0, 0.0], [1.0, 1.0], [NAN, NAN], [NAN, NAN]]])
    panel = mlc.Predictions(scores).with_clusterings({"k": ["a", "a", "b", "b"]})
    result = kind().fit_transform(panel)
    prior = {mlc.MLCMr: [2 / 3, 1 / 3], mlc.BGCM: [1.0, 0.5]}[kind]
    close(result[2:], [prior, prior])


@either
def test_without_members_nothing_changes(kind):
    scores = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]])
    panel = mlc.Predictions(scores).with_clusterings({"k": [None, NAN]})
    close(kind().fit_transform(panel), kind().fit_transform(scores))


def test_sequences_mappings_and_series_agree():
    panel = mlc.Predictions([[[1], [0], [1]]], instances=["a", "b", "c"])
    ids = [0, 0, 1]
    by_name = {"c": 1, "a": 0, "b": 0}
    for given_as in (
        ids,
        np.array(ids),
        np.array(ids, dtype=float),
        by_name,
        pd.Series(by_name),
    ):
        result = panel.with_clusterings({"k": given_as})
        assert sorted(result.clusters) == ["k: 0", "k: 1"]
        assert [result.clusters[position] for position in result.members[:, 0]] == [
            "k: 0",
            "k: 0",
            "k: 1",
        ]


def test_bad_clusterings():
    panel = mlc.Predictions([[[1], [0]]], instances=["a", "b"])
    for ids, message in [
        ([0], "clustering 'k': found 1 instances, expected 2 as the panel has"),
        ("ab", "clustering 'k': found 'ab', expected the cluster of each instance"),
        (
            {"z": 1},
            "clustering 'k': found none of the panel's instances, expected some "
            "such as 'a'",
        ),
    ]:
        with pytest.raises(mlc.InputError) as caught:
            panel.with_clusterings({"k": ids})
        assert str(caught.value) == message


@pytest.mark.parametrize(
    "kind", [kind for kind in mlc.COMBINERS.values() if kind not in KINDS]
)
def test_other_methods_say_that_they_cannot_use_them(kind):
    panel = mlc.Predictions([[[1], [0]]]).with_clusterings({"k": [0, 1]})
    with pytest.raises(mlc.InputError, match="expected BGCM or MLCMr"):
        kind().fit(panel)


@either
def test_clusters_must_be_those_fitted(kind):
    panel = mlc.Predictions([[[1], [0]]])
    fitted = kind().fit(panel.with_clusterings({"k": [0, 1]}))
    for other in (panel, panel.with_clusterings({"k": [0, 2]})):
        with pytest.raises(mlc.InputError, match="clusters: found"):
            fitted.transform(other)


@pytest.mark.parametrize(
    "clusters",
    [
        [1, pd.NA],
        pa.array([1, None]),
        pd.Series([1, None], dtype="Int64"),
        [1.0, pd.NaT],
    ],
)
def test_gaps_of_any_kind_are_no_cluster(clusters):
    panel = mlc.Predictions([[[1], [0]]]).with_clusterings({"k": clusters})
    assert (panel.clusters, panel.members.tolist()) == (("k: 1",), [[0], [-1]])


@pytest.mark.parametrize(
    "clusters",
    [None, [[1, 1]], {"k": np.zeros((2, 2))}, {"k": pd.Series([1, 2], index=[0, 0])}],
)
def test_what_is_no_clustering_is_refused(clusters):
    with pytest.raises(mlc.InputError, match="^clustering"):
        mlc.Predictions([[[1], [0]]]).with_clusterings(clusters)
