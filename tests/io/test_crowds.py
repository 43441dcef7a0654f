"""A long table of a crowd is read without a matrix for each model."""

import numpy as np
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.io import long_table

METHODS = ("MV", "DS", "BGCM", "MLCM-r", "MLCM-a")


def make_crowd_frame(seed: int, *, kind: str) -> pl.DataFrame:
    """Return a long table: 30 annotators, of whom three see each of 80 instances."""
    rng = np.random.default_rng(seed)
    rows = []
    for instance in range(80):
        for model in rng.choice(30, 3, replace=False):
            labels = np.flatnonzero(rng.random(6) < 0.3)
            for label in labels:
                score = round(float(rng.random()), 3)
                rows.append((f"i{instance}", f"w{model}", f"l{label}", score))
            if len(labels) == 0:
                rows.append((f"i{instance}", f"w{model}", None, None))
    if kind == "gaps":
        rows = [
            (*row[:3], None) if position % 17 == 0 and row[2] else row
            for position, row in enumerate(rows)
        ]
    columns = ["task", "worker", "label", "score"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    if kind == "lists":
        return frame.drop("score")
    return frame


def read_by_tables(frame: pl.DataFrame, monkeypatch: pytest.MonkeyPatch):
    """Read the frame by way of one table for each model."""
    with monkeypatch.context() as patch:
        patch.setattr(long_table, "make_crowd", lambda frame, options: None)
        return mlc.from_long(frame)


def sort_instances(predictions):
    order = np.argsort(predictions.instances.tolist())
    labels = sorted(predictions.labels)
    models = sorted(predictions.models)
    return predictions[order].select(models=models, labels=labels)


@pytest.mark.parametrize("kind", ["scores", "lists", "gaps"])
@pytest.mark.parametrize("seed", [0, 1])
def test_equal_to_one_table_for_each_model(kind, seed, monkeypatch):
    frame = make_crowd_frame(seed, kind=kind)
    crowd = mlc.from_long(frame)
    tables = read_by_tables(frame, monkeypatch)
    assert crowd._rows is not None
    assert tables._rows is None
    assert crowd.n_missing == tables.n_missing

    expected = sort_instances(tables)
    np.testing.assert_array_equal(sort_instances(crowd).to_array(), expected.to_array())
    assert crowd.complete == tables.complete
    assert repr(crowd) == repr(tables)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["scores", "lists", "gaps"])
def test_methods_on_rows(method, kind, monkeypatch):
    frame = make_crowd_frame(2, kind=kind)
    crowd = mlc.from_long(frame)
    combiner = mlc.COMBINERS[method]
    dense = mlc.Predictions(
        crowd.to_array(), crowd.models, crowd.labels, crowd.instances
    )
    scores = combiner().fit_transform(crowd)
    np.testing.assert_allclose(scores, combiner().fit_transform(dense), atol=1e-10)

    # Blocks and another order change nothing.
    order = np.random.default_rng(0).permutation(len(crowd))
    np.testing.assert_allclose(
        combiner().fit(crowd).transform(crowd[order]), scores[order], atol=1e-10
    )
    pieces = combiner().fit(crowd[:30])
    pieces.partial_fit(crowd[30:])
    np.testing.assert_allclose(pieces.transform(crowd), scores, atol=1e-9)


def test_repeated_predictions_are_read_like_other_tables():
    frame = make_crowd_frame(3, kind="scores").drop_nulls()
    repeated = pl.concat([frame, frame.head(1)])
    with pytest.warns(mlc.InputWarning, match="read once"):
        assert mlc.from_long(repeated)._rows is None
    conflicting = frame.head(1).with_columns(score=pl.lit(0.999))
    with pytest.raises(mlc.InputError, match="again"):
        mlc.from_long(pl.concat([frame, conflicting]))


def test_models_without_answers_are_left_out():
    frame = make_crowd_frame(4, kind="scores")
    row = pl.DataFrame(
        {"task": ["i0"], "worker": ["idle"], "label": [None], "score": [None]},
        schema=frame.schema,
    )
    with pytest.warns(mlc.InputWarning, match="without an answer"):
        predictions = mlc.from_long(pl.concat([frame, row]))
    assert "idle" not in predictions.models
    assert predictions._rows is not None
