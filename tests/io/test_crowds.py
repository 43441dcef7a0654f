"""A long table of a crowd is read without a matrix for each model."""

import json

import numpy as np
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.execution.memory import LIMIT
from mlconsensus.io import crowds

METHODS = ("majority_vote", "dawid_skene", "bgcm", "mlcm_r", "mlcm_a")


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

    columns = ["task", "worker", "label", "score"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    if kind == "gaps":
        is_gap = pl.int_range(pl.len()) % 17 == 0
        return frame.with_columns(pl.when(~is_gap).then("score").alias("score"))
    if kind == "lists":
        return frame.drop("score")
    if kind == "answers":  # a row without a label is an answer, not an abstention
        return frame.with_columns(pl.col("score").fill_null(0.0))
    return frame


@pytest.fixture
def without_crowds(monkeypatch: pytest.MonkeyPatch):
    """Return a function that calls another one, with a table for each model."""

    def call(function, *arguments, **keywords):
        with monkeypatch.context() as patch:
            patch.setattr(crowds, "make_crowd", lambda loaded, options: None)
            return function(*arguments, **keywords)

    return call


def check_equal(crowd: mlc.Predictions, tables: mlc.Predictions) -> None:
    """Check that predictions are the same, in the same order."""
    assert tables._rows is None
    assert crowd.models == tables.models
    assert crowd.labels == tables.labels
    assert crowd.instances.tolist() == tables.instances.tolist()
    np.testing.assert_array_equal(crowd.to_array(), tables.to_array())
    assert crowd.n_missing == tables.n_missing
    assert crowd.complete == tables.complete
    assert repr(crowd) == repr(tables)


KINDS = ["scores", "lists", "gaps", "answers"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_equal_to_one_table_for_each_model(kind, seed, without_crowds):
    frame = make_crowd_frame(seed, kind=kind)
    crowd = mlc.from_long(frame)
    assert crowd._rows is not None
    check_equal(crowd, without_crowds(mlc.from_long, frame))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("kind", KINDS)
def test_files_equal_to_one_table_for_each_model(
    kind, suffix, tmp_path, without_crowds
):
    path = tmp_path / f"crowd.{suffix}"
    frame = make_crowd_frame(5, kind=kind)
    writers = {
        "csv": frame.write_csv,
        "parquet": frame.write_parquet,
        "feather": frame.write_ipc,
    }
    writers[suffix](path)

    crowd = mlc.read_predictions(path)
    assert crowd._rows is not None
    check_equal(crowd, without_crowds(mlc.read_predictions, path))
    check_equal(crowd, without_crowds(mlc.from_long, frame))


def test_labels_that_are_seen_or_missing(tmp_path):
    # 40 annotators see two of 80 instances each; annotator 0 never lists "rare",
    # annotator 1 lists no label at all, and both abstain on the last instance.
    lines = ["instance,label,score,model"]
    for model in range(2, 40):
        lines.append(f"i{2 * model},common,0.5,w{model}")
        lines.append(f"i{2 * model + 1},often,,w{model}")
    lines += ["i0,common,1,w0", "i1,often,1,w0"]
    lines += ["i2,,0,w1", "i3,,0,w1"]
    lines += ["last,,,w0", "last,,,w1", "i79,rare,1,w39"]
    path = tmp_path / "crowd.csv"
    path.write_text("\n".join(lines))

    crowd = mlc.read_predictions(path)
    assert crowd._rows is not None
    scores = crowd.select(labels=["common", "often", "rare"]).to_array()
    position = {name: row for row, name in enumerate(crowd.instances.tolist())}
    model = crowd.models.index

    # A listed label without a score is missing; labels not listed for an instance
    # have the score 0.
    np.testing.assert_array_equal(
        scores[model("w2"), position["i5"]], [0.0, np.nan, 0.0]
    )
    # A label that only one annotator lists is rare: others know it, too.
    np.testing.assert_array_equal(scores[model("w0"), position["i0"]], [1, 0, 0])
    # An annotator without any label has predicted 0 for all of them.
    np.testing.assert_array_equal(scores[model("w1"), position["i2"]], [0, 0, 0])
    # Instances that an annotator did not see are missing, and those on which all
    # abstain are part of the panel.
    assert np.isnan(scores[model("w0"), position["i2"]]).all()
    assert np.isnan(scores[:, position["last"]]).all()


def test_abstentions_on_an_instance_by_all(tmp_path, without_crowds):
    frame = make_crowd_frame(6, kind="scores")
    row = pl.DataFrame(
        {"task": ["unseen"], "worker": ["w3"], "label": [None], "score": [None]},
        schema=frame.schema,
    )
    path = tmp_path / "crowd.parquet"
    pl.concat([row, frame]).write_parquet(path)
    crowd = mlc.read_predictions(path)
    assert crowd._rows is not None
    check_equal(crowd, without_crowds(mlc.read_predictions, path))


def test_datasets_equal_to_one_table_for_each_model(tmp_path, without_crowds):
    frame = make_crowd_frame(7, kind="lists").group_by("task", "worker").agg("label")
    rows = []
    for instance, model, labels in frame.sort("task", "worker").rows():
        names = [label for label in labels if label is not None]
        rows.append({"id": instance, "annotator": model, "labels": names})

    crowd = mlc.from_dataset(rows)
    assert crowd._rows is not None
    check_equal(crowd, without_crowds(mlc.from_dataset, rows))

    path = tmp_path / "crowd.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    check_equal(mlc.read_predictions(path), without_crowds(mlc.from_dataset, rows))


@pytest.mark.parametrize(
    "names",
    [
        {"l0": "re\u0301sume\u0301"},  # is normalized
        {"l0": "l1; l2"},  # joins others
        {"i0": " i1"},  # differs in spaces
        {"l0": "L1"},  # differs in case
    ],
    ids=["normalized", "joined", "spaces", "case"],
)
def test_warnings_about_names(names, tmp_path, without_crowds):
    frame = make_crowd_frame(8, kind="scores")
    path = tmp_path / "crowd.csv"
    frame.with_columns(pl.col(pl.String).replace(names)).write_csv(path)
    with pytest.warns(mlc.InputWarning) as warned:
        crowd = mlc.read_predictions(path)
    with pytest.warns(mlc.InputWarning) as expected:
        tables = without_crowds(mlc.read_predictions, path)

    check_equal(crowd, tables)
    messages = [str(warning.message) for warning in warned]
    assert messages == [str(warning.message) for warning in expected]


@pytest.mark.filterwarnings("error::mlconsensus.InputWarning")
def test_warnings_that_are_errors(tmp_path):
    frame = make_crowd_frame(8, kind="scores")
    path = tmp_path / "crowd.csv"
    frame.with_columns(pl.col("label").replace({"l0": "L1"})).write_csv(path)
    with pytest.raises(mlc.InputWarning, match="differ from others in case"):
        mlc.read_predictions(path)


@pytest.mark.parametrize(
    "keywords",
    [
        {"models": [f"m{position}" for position in range(30)]},
        {"ignore_case": True},
        {"vocabulary": ["l0", "l1", "l2", "l3", "l4", "l5"]},
        {"partial": True},
    ],
    ids=lambda keywords: next(iter(keywords)),
)
def test_options_that_need_tables(keywords, tmp_path, without_crowds):
    path = tmp_path / "crowd.csv"
    make_crowd_frame(9, kind="scores").write_csv(path)
    predictions = mlc.read_predictions(path, **keywords)
    assert predictions._rows is None
    check_equal(predictions, without_crowds(mlc.read_predictions, path, **keywords))


def test_intersection_of_a_crowd(tmp_path):
    path = tmp_path / "crowd.csv"
    make_crowd_frame(9, kind="scores").write_csv(path)
    with pytest.raises(mlc.InputError, match="none that all models share"):
        mlc.read_predictions(path, instances="intersection")


def test_two_files_are_matched_by_tables(tmp_path):
    frame = make_crowd_frame(10, kind="scores")
    frame.write_csv(tmp_path / "crowd.csv")
    other = frame.with_columns(worker="x" + pl.col("worker"))
    other.write_csv(tmp_path / "other.csv")
    predictions = mlc.read_predictions(tmp_path)
    assert len(predictions.models) == 60
    assert predictions._rows is None


def test_columns_that_no_file_has(tmp_path):
    path = tmp_path / "crowd.csv"
    make_crowd_frame(11, kind="scores").write_csv(path)
    with pytest.raises(mlc.InputError, match="none of those named in any file"):
        mlc.read_predictions(path, columns={"model": "who"})
    renamed = {"worker": "who"}
    make_crowd_frame(11, kind="scores").rename(renamed).write_csv(path)
    predictions = mlc.read_predictions(path, columns={"model": "who"})
    assert predictions._rows is not None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["scores", "lists", "gaps"])
def test_methods_on_rows(method, kind):
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


def test_sizes_of_crowds_are_checked(tmp_path, monkeypatch):
    # Each of many models predicts another label.
    lines = ["model,instance,label"]
    for position in range(2000):
        lines.append(f"m{position},i{position},l{position}")
    path = tmp_path / "crowd.csv"
    path.write_text("\n".join(lines))
    assert mlc.read_predictions(path)._rows is not None

    monkeypatch.setenv(LIMIT, "0.01")
    with pytest.raises(mlc.InputError, match="models about 2,000 labels"):
        mlc.read_predictions(path)
