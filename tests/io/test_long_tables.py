"""Long tables as annotators, crowds and tools give them."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.errors import InputError, InputWarning
from mlconsensus.io import read_table, read_tables, write_table
from mlconsensus.predictions.score_tables import ScoreTable

DATA = Path(__file__).parent.parent / "data"
NAN = np.nan
# Models ann and bob; instances d1, d2, d3; labels sports, politics. Ann has seen d2 and
# gave it no label.
ANNOTATORS = [[[1, 1], [0, 0], [NAN, NAN]], [[1, 0], [0, 1], [0, 1]]]


def written(folder: Path, form: str) -> Path:
    frame = pl.read_csv(DATA / "annotators.csv")
    path = folder / f"annotators.{form}"
    if form == "tsv":
        frame.write_csv(path, separator="\t")
    else:
        getattr(
            frame,
            {"csv": "write_csv", "parquet": "write_parquet", "feather": "write_ipc"}[
                form
            ],
        )(path)
    return path


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "feather"])
def test_rows_without_a_score_are_yes_and_without_a_label_seen(
    tmp_path: Path, form: str
) -> None:
    path = written(tmp_path, form)
    for panel in (mlc.read_predictions(path), mlc.scan_predictions(path)):
        assert (panel.models, panel.labels) == (("ann", "bob"), ("sports", "politics"))
        assert panel.instances.tolist() == ["d1", "d2", "d3"]
        np.testing.assert_array_equal(next(panel.blocks(9)).to_array(), ANNOTATORS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("crowd.csv", "worker,item,label\na,1,x\nb,1,x\na,2,y\nb,2,\nc,1,\n"),
        ("spaces.csv", "worker,item,label\na,1,x\nb,1,x\na,2,y\nb,2,  \nc,1, \n"),
        (
            "crowd.jsonl",
            '{"model": "a", "instance": "1", "labels": ["x"]}\n{"model": "b", "instance": "1", "labels": ["x"]}\n'
            '{"model": "a", "instance": "2", "labels": ["y"]}\n{"model": "b", "instance": "2", "labels": []}\n'
            '{"model": "c", "instance": "1", "labels": []}\n',
        ),
    ],
)
def test_who_never_gave_a_label_said_no(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    for panel in (
        mlc.read_predictions(tmp_path / name),
        mlc.scan_predictions(tmp_path / name),
    ):
        assert (panel.models, panel.labels) == (("a", "b", "c"), ("x", "y"))
        said = [[[1, 0], [0, 1]], [[1, NAN], [0, NAN]], [[0, 0], [NAN, NAN]]]
        np.testing.assert_array_equal(next(panel.blocks(9)).to_array(), said)


def test_columns_of_any_name_and_others_left_out() -> None:
    columns = {"model": "who", "instance": "text_id"}  # `tag` is called as is usual
    with pytest.warns(
        InputWarning, match=r"^columns left out: 2 \('when', 'comment'\)$"
    ):
        panel = mlc.read_predictions(DATA / "export.csv", columns=columns)
    assert (panel.models, panel.labels) == (
        ("ann", "bob"),
        ("sports", "politics", "weather"),
    )
    np.testing.assert_array_equal(
        panel.to_array(), [[[1, 0, NAN], [0, 1, NAN]], [[1, NAN, 0], [0, NAN, 1]]]
    )


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"model": "whom", "instance": "text_id"},
            ["no column 'whom'", "did you mean 'who'?"],
        ),
        ({"model": "who"}, ["no column for the instance", "instance=…"]),
        ({"modell": "who"}, ["'modell'", "did you mean 'model'?"]),
    ],
)
def test_wrong_columns_are_refused(columns: dict[str, str], words: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        mlc.read_predictions(DATA / "export.csv", columns=columns)
    for word in words:
        assert word in str(refused.value)


def test_some_file_must_have_the_columns(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("id,sports,politics\n1,1,0\n2,0,1\n")
    (tmp_path / "b.csv").write_text("who,item,tag\nbob,1,sports\n")
    for read in (mlc.read_predictions, mlc.scan_predictions):
        assert read(
            [tmp_path / "wide.csv", tmp_path / "b.csv"], columns={"model": "who"}
        ).models == ("wide", "bob")
        with pytest.raises(
            InputError,
            match="columns: found none of those named in any file, expected some",
        ):
            read([tmp_path / "wide.csv"], columns={"model": "who"})


def test_lines_are_counted_through_columns_that_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        'item,label,score,note\n1,x,0.5,"two\nlines"\n2,x,high,\n'
    )
    with pytest.raises(
        InputError, match=r"a\.csv, line 4, column 'score': found 'high'"
    ):
        mlc.read_predictions(tmp_path / "a.csv", columns={"instance": "item"})


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_of_crowd_kit(library) -> None:
    frame = library.DataFrame(
        {
            "task": [7, 7, 8, 8],
            "worker": ["w1", "w2", "w1", "w2"],
            "label": ["cat", "dog", None, "dog"],
        }
    )
    panel = mlc.from_long(frame)
    assert (panel.models, panel.labels, panel.instances.tolist()) == (
        ("w1", "w2"),
        ("cat", "dog"),
        ["7", "8"],
    )
    np.testing.assert_array_equal(
        panel.to_array(), [[[1, NAN], [0, NAN]], [[NAN, 1], [NAN, 1]]]
    )
    if library is pd:
        renamed = frame.rename(columns={"task": "t"})
    else:
        renamed = frame.rename({"task": "t"})
    with pytest.raises(
        InputError, match="frame: found the columns t, worker, label, expected"
    ):
        mlc.from_long(renamed)
    np.testing.assert_array_equal(
        mlc.from_long(renamed, columns={"instance": "t"}).to_array(), panel.to_array()
    )


CROWD = {"task": [7, 8], "worker": ["a", "b"], "label": ["x", "x"]}


@pytest.mark.parametrize(
    ("frame", "reading", "told"),
    [
        (CROWD, {}, "frame: found dict, expected a frame of pandas"),
        (
            pd.DataFrame(
                [[7, "a", "x", "x"]], columns=["task", "worker", "label", "label"]
            ),
            {},
            "frame: found the columns",
        ),
        (
            pl.DataFrame(CROWD),
            {"columns": {"model": "who"}},
            "columns: found none of those named in the frame",
        ),
        (pl.DataFrame(CROWD), {"columns": ["model"]}, "columns: found a list"),
        (pl.DataFrame(CROWD), {"vocabulary": 5}, "vocabulary: found an? int"),
        (
            pl.DataFrame(CROWD),
            {"vocabulary": ["x", None]},
            "vocabulary: found None at position 1, expected a name",
        ),
        (pl.DataFrame(CROWD), {"aliases": ["x"]}, "aliases: found a list"),
        (pl.DataFrame(CROWD), {"aliases": {"x": None}}, "aliases: found None"),
    ],
)
def test_frames_and_rules_that_are_none(frame, reading, told) -> None:
    with pytest.raises(InputError, match=told):
        mlc.from_long(frame, **reading)


def test_frames_of_any_library_and_rules_of_numbers() -> None:
    frame = pl.DataFrame(CROWD | {"label": [1, 2]})
    with pytest.warns(InputWarning):
        panels = [
            mlc.from_long(own, vocabulary=[1, 3], aliases={2: 3})
            for own in (frame, frame.lazy(), frame.to_arrow())
        ]
    assert [panel.labels for panel in panels] == [("1", "3")] * 3
    numbered = frame.to_pandas().set_axis([0, "worker", "label"], axis=1)
    assert mlc.from_long(numbered, columns={"instance": 0}).instances.tolist() == [
        "7",
        "8",
    ]


def test_numbers_may_be_labels(tmp_path: Path) -> None:
    pl.DataFrame({"task": [1, 2], "worker": [5, 6], "label": [0, 1]}).write_parquet(
        tmp_path / "a.parquet"
    )
    panel = mlc.read_predictions(tmp_path / "a.parquet")
    assert (panel.models, panel.labels) == (("5", "6"), ("0", "1"))


def test_a_row_that_comes_again_is_read_once_unless_its_score_differs(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("worker,task,label,score\nann,1,x,0.5\nann,1,y,1\nann,1,x,0.5\n")
    for read in (mlc.read_predictions, mlc.scan_predictions):
        with pytest.warns(
            InputWarning, match="^statements that come again read once: 1$"
        ):
            panel = read(path)
        np.testing.assert_array_equal(next(panel.blocks(9)).to_array(), [[[0.5, 1]]])
    path.write_text("worker,task,label,score\nann,1,x,0.5\nann,1,y,1\nann,1,x,0.6\n")
    with pytest.raises(
        InputError,
        match=r"line 4: found label 'x' of instance '1' again \(first in line 2\)",
    ):
        mlc.read_predictions(path)


def test_of_a_row_with_neither_label_nor_score_nothing_was_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("instance,label,score\n2,,\n1,x,0.5\n")
    for read in (mlc.read_predictions, mlc.scan_predictions):
        panel = read(tmp_path / "a.csv")
        assert panel.instances.tolist() == ["2", "1"]
        np.testing.assert_array_equal(
            next(panel.blocks(9)).to_array(), [[[np.nan], [0.5]]]
        )


def test_tags_that_are_joined_in_one_cell_are_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("worker,task,label\nann,1,x\nann,2,x; y\nann,3,y\n")
    with pytest.warns(
        InputWarning, match="^labels that join others, read as one each: 1 .'x; y'.$"
    ):
        assert mlc.read_predictions(tmp_path / "a.csv").labels == ("x", "x; y", "y")


def test_a_score_without_a_label_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("instance,label,score\n1,x,0.5\n2,,\n3, ,0.5\n")
    with pytest.raises(
        InputError,
        match=r"line 4, column 'label': found nothing next to a score, expected a name",
    ):
        mlc.read_predictions(tmp_path / "a.csv")


@pytest.mark.parametrize(
    "header", ["annotator,item,label", "Instance,Label,Score", "instance,label,model"]
)
def test_strict_knows_only_the_names_that_are_documented(
    tmp_path: Path, header: str
) -> None:
    (tmp_path / "a.csv").write_text(header + "\nann,d1,0.5\nann,d2,0.1\n")
    with pytest.raises(InputError):
        read_table(tmp_path / "a.csv", strict=True)


@pytest.mark.parametrize(
    "header",
    ["id,label", "item,tag,colour", "id,document,label", "instance,label,class"],
)
def test_other_headers_stay_wide(tmp_path: Path, header: str) -> None:
    (tmp_path / "a.csv").write_text(header + "\n7" + ",1" * header.count(",") + "\n")
    assert read_table(tmp_path / "a.csv").labels.tolist() == header.split(",")[1:]


def test_labels_called_as_columns_are_read_back(tmp_path: Path) -> None:
    table = ScoreTable("a", np.array([[0.5, 1.0]]), ["7"], ["worker", "label"])
    write_table(tmp_path / "a.csv", table)
    (read,) = read_tables(tmp_path / "a.csv")
    assert read.labels.tolist() == ["worker", "label"]


def lists(n: int, frequent: int = 30) -> pl.DataFrame:
    """Three annotators of n items: bob never says "rare", which ann says twice, nor "frequent", which others do."""
    rows = [(who, f"t{i}", "usual") for who in ("ann", "bob", "cleo") for i in range(n)]
    rows += [("ann", f"t{i}", "rare") for i in range(2)] + [("cleo", "t0", "rare")]
    rows += [
        (who, f"t{i}", "frequent")
        for who in ("ann", "cleo")
        for i in range(min(n, frequent))
    ]
    return pl.DataFrame(rows, schema=["annotator", "item", "label"], orient="row")


def test_a_rare_label_that_a_list_never_names_is_a_no_and_a_frequent_one_is_silence(
    tmp_path: Path,
) -> None:
    """Bob would be expected to say "rare" 1.5 times of 60, which may be chance, and "frequent" 30 times."""
    lists(60).write_csv(tmp_path / "crowd.csv")
    for panel in (
        mlc.from_long(lists(60)),
        mlc.read_predictions(tmp_path / "crowd.csv"),
    ):
        said = dict(
            zip(panel.labels, panel.select(models=["bob"]).to_array()[0].T, strict=True)
        )
        assert (said["rare"] == 0).all()
        assert np.isnan(said["frequent"]).all()
        assert panel.n_missing == 60
    streamed = mlc.scan_predictions(tmp_path / "crowd.csv")
    complete = np.concatenate(
        [block.to_array() for block in streamed.blocks(7)], axis=1
    )
    np.testing.assert_array_equal(complete, panel.to_array())
    one_vote = mlc.majority_vote(panel)[:, panel.labels.index("rare")]
    assert one_vote[:3].round(9).tolist() == [round(2 / 3, 9), round(1 / 3, 9), 0]


def test_where_a_label_becomes_frequent_enough_to_tell(tmp_path: Path) -> None:
    """Named 5 times by those who do, it would be named 5 times by bob; 4 times can be chance."""
    for frequent, missing in ((4, 0), (5, 60)):
        assert mlc.from_long(lists(60, frequent)).n_missing == missing


def test_of_few_instances_and_in_wide_tables_what_is_not_there_is_silence(
    tmp_path: Path,
) -> None:
    assert mlc.from_long(lists(49)).n_missing == 2 * 49
    columns = {
        "id": [f"t{i}" for i in range(60)],
        "usual": [1] * 60,
        "rare": [1] + [0] * 59,
    }
    pl.DataFrame(columns).write_csv(tmp_path / "ann.csv")
    pl.DataFrame(columns).drop("rare").write_csv(tmp_path / "bob.csv")
    assert (
        mlc.read_predictions([tmp_path / "ann.csv", tmp_path / "bob.csv"]).n_missing
        == 60
    )


def test_aliases_add_up_how_often_a_label_is_named() -> None:
    """Two spellings, three times each, are one label that bob would have named six times."""
    rows = [(who, f"t{i}", "usual") for who in ("ann", "bob") for i in range(60)]
    rows += [("ann", f"t{i}", "colour") for i in range(3)] + [
        ("ann", f"t{i}", "color") for i in range(3, 6)
    ]
    frame = pl.DataFrame(rows, schema=["annotator", "item", "label"], orient="row")
    assert mlc.from_long(frame).n_missing == 0
    with pytest.warns(mlc.InputWarning):
        assert mlc.from_long(frame, aliases={"colour": "color"}).n_missing == 60


def test_a_long_table_with_one_more_column_is_told_how_to_be_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "crowd.csv").write_text(
        "worker,task,label,time\nann,t1,law,9\nann,t2,war,8\n"
    )
    with pytest.raises(
        InputError,
        match="found the instance 'ann' again .* a long file has the columns .* --columns names",
    ):
        read_table(tmp_path / "crowd.csv")


def test_names_of_instances_that_differ_by_spaces_are_pointed_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "ann.csv").write_text("id,x\nt1,1\nt2,0\n")
    (tmp_path / "bob.csv").write_text("id,x\nt1 ,1\nt2,0\n")
    with pytest.warns(
        InputWarning,
        match=r"bob.csv: 1 instances, such as 't1 ', have spaces around their names",
    ):
        assert (
            len(mlc.read_predictions([tmp_path / "ann.csv", tmp_path / "bob.csv"])) == 3
        )
    (tmp_path / "ann.csv").write_text("id,x\nt1 ,1\nt2,0\n")
    assert (
        len(mlc.read_predictions([tmp_path / "ann.csv", tmp_path / "bob.csv"])) == 2
    )  # without a word
