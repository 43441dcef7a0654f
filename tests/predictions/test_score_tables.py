"""Frames of pandas and Polars with columns of all types, matched by name."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mlconsensus as mlc

CELLS = np.array([[1.0, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
NAMES = list("klmn")
LABELS = ["cat", "dog", "emu"]
FRAME = pd.DataFrame(CELLS, index=NAMES, columns=LABELS)
POLARS = pl.DataFrame({"document": NAMES}).hstack(pl.DataFrame(CELLS, schema=LABELS))
MIXED = POLARS[[2, 0, 3, 1]].select("document", "emu", "cat", "dog")


def panel_of(**frames):
    return mlc.Predictions(frames)


@pytest.mark.parametrize(
    "other",
    [
        FRAME,
        MIXED,
        MIXED.lazy(),
        MIXED.to_arrow(),
        MIXED.cast({"document": pl.Categorical}),
    ],
)
def test_frames_of_any_library_are_matched_by_name(other):
    panel = panel_of(x=POLARS, y=other)
    assert panel.instances.tolist() == NAMES
    assert panel.labels == tuple(LABELS)
    np.testing.assert_array_equal(panel.to_array(), [CELLS, CELLS])
    result = mlc.combine(panel, method="mv")
    assert (
        result.evaluate(other)["micro_f1"]
        == mlc.metrics.evaluate(POLARS, other)["micro_f1"]
        == 1
    )
    assert mlc.metrics.evaluate_models(other, panel)["BM"]["micro_f1"] == 1
    assert mlc.metrics.evaluate(FRAME, POLARS, other)["subset_accuracy"] == 1
    np.testing.assert_array_equal(panel.with_gold(other).gold.answers, CELLS)
    assert mlc.MajorityVote().fit(panel).score(panel, other) == 1


def test_a_polars_frame_without_names_of_instances_has_those_of_labels():
    x = pl.DataFrame({"cat": [1.0, 1, 0], "dog": [0.0, 0, 1]})
    y = x.select("dog", "cat")
    panel = panel_of(x=x, y=y)
    assert (panel.labels, panel.instances.tolist()) == (("cat", "dog"), [0, 1, 2])
    np.testing.assert_array_equal(mlc.combine(panel, method="mv").scores, x.to_numpy())
    assert (
        mlc.metrics.evaluate(x, y)["micro_f1"]
        == mlc.combine(panel).evaluate(y)["micro_f1"]
        == 1
    )
    assert (
        mlc.metrics.evaluate(x, pd.DataFrame(y.to_numpy(), list("abc"), y.columns))[
            "micro_f1"
        ]
        == 1
    )
    with pytest.raises(mlc.InputError, match="found other labels than the truth has"):
        mlc.metrics.evaluate(x, y.rename({"cat": "fox"}))
    with pytest.raises(
        mlc.InputError, match="found names in model 'y' and none in model 'x'"
    ):
        panel_of(x=x, y=x.with_row_index("id"))
    with pytest.raises(mlc.InputError, match="truth: found no names of instances"):
        mlc.combine(panel_of(x=FRAME)).evaluate(POLARS.drop("document"))


@pytest.mark.parametrize("instances", [None, NAMES, [7, 8, 9, 4]])
def test_what_to_frame_gives_is_taken_back(instances):
    panel = mlc.Predictions(
        [CELLS, np.where(CELLS, 0.5, np.nan)], labels=LABELS, instances=instances
    )
    again = mlc.Predictions(
        {model: panel.to_frame(model, "polars") for model in panel.models}
    )
    assert again.instances.tolist() == panel.instances.tolist()
    assert again.labels == panel.labels
    np.testing.assert_array_equal(again.to_array(), panel.to_array())


@pytest.mark.parametrize(
    "frame",
    [
        *(
            FRAME.astype(kind)
            for kind in (
                "boolean",
                "Int64",
                "bool[pyarrow]",
                "Float32",
                "category",
                object,
            )
        ),
        FRAME.astype(bool).astype("category"),
        FRAME.astype(bool).astype(object),
        FRAME.astype({"cat": bool, "dog": "boolean", "emu": object}),
        POLARS.with_columns(
            pl.col("cat").cast(bool), pl.col("dog").cast(pl.Decimal(3, 1))
        ),
    ],
)
def test_columns_of_any_kind_of_number_are_taken_alike(frame):
    panel = panel_of(x=frame)
    np.testing.assert_array_equal(panel.to_array(), [CELLS])
    assert mlc.combine(panel, method="mv").evaluate(frame)["micro_f1"] == 1
    assert mlc.metrics.evaluate(frame, FRAME, frame) == mlc.metrics.evaluate(
        FRAME, frame, frame
    )
    np.testing.assert_array_equal(panel.with_gold(frame).gold.answers, CELLS)


@pytest.mark.parametrize("kind", ["boolean", "bool[pyarrow]", "category", object])
def test_an_empty_cell_is_missing_or_not_known(kind):
    frame = pd.DataFrame(
        {"x": pd.Series([True, None, False], dtype=kind), "y": [0.0, 1.0, 1.0]}
    )
    gap = panel_of(x=frame)
    np.testing.assert_array_equal(gap.to_array(), [[[1, 0], [np.nan, 1], [0, 1]]])
    with pytest.raises(mlc.InputError, match="truth: found nan, expected only 0 and 1"):
        mlc.combine(gap).evaluate(frame)
    bits = pl.DataFrame({"x": [True, None], "y": [None, None]})
    np.testing.assert_array_equal(
        panel_of(x=bits).to_array(), [[[1, np.nan], [np.nan, np.nan]]]
    )


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (
            pd.DataFrame({"x": ["1"]}),
            "model 'a', column 'x': found (str|object) values, expected numbers",
        ),
        (
            pd.DataFrame({"x": ["1"]}, dtype="category"),
            "column 'x': found category values",
        ),
        (
            pd.DataFrame({"x": [pd.Timestamp("2026")]}),
            "column 'x': found datetime64.* values",
        ),
        (
            pl.DataFrame({"id": [1], "x": ["1"]}),
            r"model 'a', column 'x': found \[String\] values, expected numbers",
        ),
        (pl.DataFrame(), "model 'a': found no column"),
        (pl.DataFrame({"id": ["i"]}), "model 'a': found no label"),
        (
            pl.DataFrame({"id": ["i", None], "x": [1, 0]}),
            "found None at position 1, expected a name",
        ),
    ],
)
def test_what_holds_no_numbers_is_refused(frame, said):
    with pytest.raises(mlc.InputError, match=said):
        panel_of(a=frame)


DAYS = pd.date_range("2026-01-01 12:00", periods=4)


@pytest.mark.parametrize(
    "days",
    [
        DAYS,
        DAYS.tz_localize("UTC"),
        DAYS.to_period("D"),
        DAYS - DAYS[0],
        pd.Index(DAYS.date),
    ],
)
def test_days_and_times_match_themselves(days):
    frame = pd.DataFrame(CELLS, index=days, columns=LABELS)
    result = mlc.combine({"x": frame, "y": frame[::-1]}, method="mv")
    assert result.instances.tolist() == [str(day) for day in days]
    assert result.evaluate(frame.astype(int))["micro_f1"] == 1
    assert result.explain(days[2], "cat").score == 1
    assert result.predictions.with_gold(frame).gold.at.tolist() == [0, 1, 2, 3]
    assert (
        result.to_frame().reindex(days.map(str)).equals(frame.set_axis(days.map(str)))
    )
    weeks = result.predictions.with_clusterings(
        {"weeks": pd.Series(list("aabb"), days)}
    )
    assert weeks.clusters == ("weeks: a", "weeks: b")


def test_numpy_and_polars_write_times_as_pandas_does():
    panel = mlc.Predictions([CELLS], instances=DAYS.to_numpy(), labels=LABELS)
    both = panel_of(
        x=pd.DataFrame(CELLS, DAYS, LABELS),
        y=pl.DataFrame({"day": DAYS}).hstack(POLARS.drop("document")),
    )
    assert (
        panel.instances.tolist()
        == both.instances.tolist()
        == [str(day) for day in DAYS]
    )
    with pytest.raises(mlc.InputError, match="instances: found None at position 1"):
        mlc.Predictions([CELLS[:2]], instances=pd.DatetimeIndex([DAYS[0], None]))


def test_a_truth_that_names_an_instance_twice_is_refused():
    with pytest.raises(
        mlc.InputError,
        match="truth: found 'k' at positions 0, 4, expected each name once",
    ):
        mlc.combine(panel_of(x=FRAME)).evaluate(pd.concat([FRAME, FRAME[:1]]))


def test_what_is_not_judged_is_said():
    result = mlc.combine(panel_of(x=FRAME))
    with pytest.warns(
        mlc.InputWarning, match="judged on 2 of 4 instances and 3 of 3 labels"
    ):
        result.evaluate(FRAME[:2])


@pytest.mark.parametrize("library", [pd, pl])
def test_a_series_names_instances_and_labels(library):
    said = np.zeros((1, 2, 2))
    panel = mlc.Predictions(
        said, labels=library.Series(["x", "y"]), instances=library.Series([7, 8])
    )
    assert (panel.labels, panel.instances.tolist()) == (("x", "y"), [7, 8])
    for names, message in (
        (["x", "x"], "'x' at positions 0, 1, expected each name once"),
        (["x", None], "a name"),
    ):
        with pytest.raises(mlc.InputError, match=message):
            mlc.Predictions(said, labels=library.Series(names))


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT, ""])
def test_a_gap_is_no_name(gap):
    with pytest.raises(
        mlc.InputError,
        match=r"model 'a', instances: found .* at position 1, expected a name",
    ):
        panel_of(a=FRAME.set_axis(pd.Index(["k", gap, "m", "n"], dtype=object)))


@pytest.mark.parametrize("names", [["x", np.nan], ["x", None], pa.array(["x", None])])
def test_a_gap_among_texts_is_no_name_in_a_list_either(names):
    with pytest.raises(mlc.InputError, match="at position 1, expected a name"):
        mlc.Predictions(np.zeros((1, 1, 2)), labels=names)


HASHES = [2**63 + 1, 2]  # as Polars' hash() gives them, beyond int64


@pytest.mark.parametrize(
    "ids",
    [HASHES, np.array(HASHES, dtype=np.uint64), pl.Series(HASHES, dtype=pl.UInt64)],
)
def test_whole_numbers_beyond_int64_keep_every_digit(ids):
    said = np.array([[1], [0]])
    texts = [str(name) for name in HASHES[::-1]]
    panel = mlc.Predictions([said], instances=ids, labels=["x"])
    assert panel.instances.tolist() == texts[::-1]
    both = mlc.Predictions(
        [pd.DataFrame(said, ids, ["x"]), pd.DataFrame(said[::-1], texts, ["x"])]
    )
    assert both.to_array()[:, :, 0].tolist() == [[1, 0], [1, 0]]
    assert mlc.Predictions([said], instances=[np.inf, 1.0]).instances.tolist() == [
        "inf",
        "1.0",
    ]


@pytest.mark.parametrize("what", ["models", "labels", "instances"])
def test_names_are_a_list_in_order(what):
    assert list(
        getattr(mlc.Predictions(np.zeros((2, 2, 2)), **{what: iter("xy")}), what)
    ) == ["x", "y"]
    for names in ("xy", 5, {"x", "y"}, [["x"], ["x", "y"]]):
        with pytest.raises(
            mlc.InputError, match=f"{what}: found .*, expected a .*list of names"
        ):
            mlc.Predictions(np.zeros((2, 2, 2)), **{what: names})


def test_frames_that_cannot_be_read_are_refused():
    doubled = pa.table([[1], [0]], names=["x", "x"])
    for read in (
        lambda: panel_of(a=doubled),
        lambda: mlc.from_long(doubled),
        lambda: mlc.from_long({"label": ["x"]}),
    ):
        with pytest.raises(
            mlc.InputError, match="expected a frame of pandas, Polars or Arrow"
        ):
            read()
    with pytest.raises(mlc.InputError, match="labels: found 'instance'"):
        mlc.Predictions([[[1]]], labels=["instance"]).to_frame("model_0", "polars")
    assert panel_of(
        a=pl.DataFrame({"x": pl.Series([1, 0], dtype=pl.Int128)})
    ).to_array().tolist() == [[[1], [0]]]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_any_frame_may_be_a_long_table(kind):
    panel = mlc.from_long(
        kind({"worker": ["ann", "bob"], "task": [7, 7], "label": ["law", "law"]})
    )
    assert (panel.models, panel.to_array().tolist()) == (("ann", "bob"), [[[1]], [[1]]])


def test_a_long_frame_with_a_column_twice_is_refused():
    with pytest.raises(mlc.InputError, match="^frame: found "):
        mlc.from_long(
            pd.DataFrame(
                [["a", "a", "1", "x"]], columns=["worker", "worker", "task", "label"]
            )
        )
