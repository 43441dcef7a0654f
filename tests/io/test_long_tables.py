"""Long tables as annotators, crowds and tools give them."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.errors import InputError, InputWarning
from mlconsensus.io import (
    read_predictions,
    read_table,
    read_tables,
    scan_predictions,
    write_table,
)
from mlconsensus.predictions.score_tables import ScoreTable

DATA = Path(__file__).parent.parent / "data"
NAN = np.nan
# Models ann and bob; instances d1, d2, d3; labels sports, politics. Ann has seen d2 and
# gave it no label.
ANNOTATORS = [[[1, 1], [0, 0], [NAN, NAN]], [[1, 0], [0, 1], [0, 1]]]


def write_annotators(folder: Path, form: str) -> Path:
    """Write the data of the annotators in a format."""
    frame = pl.read_csv(DATA / "annotators.csv")
    path = folder / f"annotators.{form}"
    if form == "tsv":
        frame.write_csv(path, separator="\t")
    elif form == "csv":
        frame.write_csv(path)
    elif form == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_ipc(path)
    return path


def make_frame(rows: list[tuple[str, str, str]]) -> pl.DataFrame:
    """Return a long table of annotators, items and labels."""
    return pl.DataFrame(rows, schema=["annotator", "item", "label"], orient="row")


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "feather"])
def test_rows_without_a_score_or_a_label(tmp_path: Path, form: str) -> None:
    path = write_annotators(tmp_path, form)
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
            '{"model": "a", "instance": "1", "labels": ["x"]}\n'
            '{"model": "b", "instance": "1", "labels": ["x"]}\n'
            '{"model": "a", "instance": "2", "labels": ["y"]}\n'
            '{"model": "b", "instance": "2", "labels": []}\n'
            '{"model": "c", "instance": "1", "labels": []}\n',
        ),
    ],
)
def test_a_model_without_any_label_predicts_0(
    tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    expected = [[[1, 0], [0, 1]], [[1, NAN], [0, NAN]], [[0, 0], [NAN, NAN]]]
    for panel in (mlc.read_predictions(path), mlc.scan_predictions(path)):
        assert panel.models == ("a", "b", "c")
        assert panel.labels == ("x", "y")
        np.testing.assert_array_equal(next(panel.blocks(9)).to_array(), expected)


def test_columns_of_any_name_and_others_left_out() -> None:
    columns = {"model": "who", "instance": "text_id"}  # `tag` is recognized
    with pytest.warns(
        InputWarning, match=r"^columns left out: 2 \('when', 'comment'\)$"
    ):
        panel = mlc.read_predictions(DATA / "export.csv", columns=columns)
    assert panel.models == ("ann", "bob")
    assert panel.labels == ("sports", "politics", "weather")
    expected = [[[1, 0, NAN], [0, 1, NAN]], [[1, NAN, 0], [0, NAN, 1]]]
    np.testing.assert_array_equal(panel.to_array(), expected)


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


def test_columns_must_be_in_one_file_or_more(tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text("id,sports,politics\n1,1,0\n2,0,1\n")
    long = tmp_path / "b.csv"
    long.write_text("who,item,tag\nbob,1,sports\n")
    columns = {"model": "who"}
    message = "columns: found none of those named in any file, expected some"
    for read in (mlc.read_predictions, mlc.scan_predictions):
        assert read([wide, long], columns=columns).models == ("wide", "bob")
        with pytest.raises(InputError, match=message):
            read([wide], columns=columns)


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
    assert panel.models == ("w1", "w2")
    assert panel.labels == ("cat", "dog")
    assert panel.instances.tolist() == ["7", "8"]
    expected = [[[1, NAN], [0, NAN]], [[NAN, 1], [NAN, 1]]]
    np.testing.assert_array_equal(panel.to_array(), expected)

    frame.columns = ["t", "worker", "label"]
    with pytest.raises(
        InputError, match="frame: found the columns t, worker, label, expected"
    ):
        mlc.from_long(frame)
    named = mlc.from_long(frame, columns={"instance": "t"})
    np.testing.assert_array_equal(named.to_array(), expected)


CROWD = {"task": [7, 8], "worker": ["a", "b"], "label": ["x", "x"]}


@pytest.mark.parametrize(
    ("frame", "reading", "message"),
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
def test_frames_and_options_that_are_refused(frame, reading, message) -> None:
    with pytest.raises(InputError, match=message):
        mlc.from_long(frame, **reading)


def test_frames_of_other_libraries_and_numbers_as_names() -> None:
    polars_frame = pl.DataFrame(CROWD | {"label": [1, 2]})
    for frame in (polars_frame, polars_frame.lazy(), polars_frame.to_arrow()):
        with pytest.warns(InputWarning):
            panel = mlc.from_long(frame, vocabulary=[1, 3], aliases={2: 3})
        assert panel.labels == ("1", "3")

    numbered = polars_frame.to_pandas().set_axis([0, "worker", "label"], axis=1)
    panel = mlc.from_long(numbered, columns={"instance": 0})
    assert panel.instances.tolist() == ["7", "8"]


def test_numbers_may_be_labels(tmp_path: Path) -> None:
    frame = pl.DataFrame({"task": [1, 2], "worker": [5, 6], "label": [0, 1]})
    frame.write_parquet(tmp_path / "a.parquet")
    panel = mlc.read_predictions(tmp_path / "a.parquet")
    assert (panel.models, panel.labels) == (("5", "6"), ("0", "1"))


def test_repeated_rows_with_the_same_or_another_score(tmp_path: Path) -> None:
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


def test_a_model_abstains_in_rows_without_label_and_score(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("instance,label,score\n2,,\n1,x,0.5\n")
    for read in (mlc.read_predictions, mlc.scan_predictions):
        panel = read(tmp_path / "a.csv")
        assert panel.instances.tolist() == ["2", "1"]
        scores = next(panel.blocks(9)).to_array()
        np.testing.assert_array_equal(scores, [[[np.nan], [0.5]]])


def test_warning_about_tags_that_are_joined_in_one_cell(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("task,label,score\n1,x,1\n2,x; y,1\n3,y,1\n")
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
def test_strict_accepts_only_documented_names(tmp_path: Path, header: str) -> None:
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


def make_lists(n_items: int, n_frequent: int = 30) -> pl.DataFrame:
    """Return the labels of three annotators; bob lists only the label "common".

    The label "rare" is listed three times, "frequent" by ann and cleo.
    """
    rows = [("ann", "t0", "rare"), ("ann", "t1", "rare"), ("cleo", "t0", "rare")]
    for model in ("ann", "bob", "cleo"):
        for position in range(n_items):
            rows.append((model, f"t{position}", "common"))

    for model in ("ann", "cleo"):
        for position in range(min(n_items, n_frequent)):
            rows.append((model, f"t{position}", "frequent"))

    return make_frame(rows)


def test_labels_that_an_annotator_never_lists(tmp_path: Path) -> None:
    """Bob is expected to list "rare" 1.5 times, which may be chance.

    He is expected to list "frequent" 30 times, so that he does not know it.
    """
    path = tmp_path / "crowd.csv"
    make_lists(60).write_csv(path)
    for panel in (mlc.from_long(make_lists(60)), mlc.read_predictions(path)):
        scores = panel.select(models=["bob"], labels=["rare", "frequent"]).to_array()
        assert (scores[0, :, 0] == 0).all()
        assert np.isnan(scores[0, :, 1]).all()
        assert panel.n_missing == 60

    blocks = mlc.scan_predictions(path).blocks(7)
    streamed = np.concatenate([block.to_array() for block in blocks], axis=1)
    np.testing.assert_array_equal(streamed, panel.to_array())

    votes = mlc.majority_vote(panel)[:, panel.labels.index("rare")]
    np.testing.assert_allclose(votes[:3], [2 / 3, 1 / 3, 0], atol=1e-9)


@pytest.mark.parametrize(("n_frequent", "n_missing"), [(4, 0), (5, 60)])
def test_a_label_is_missing_if_5_are_expected(n_frequent: int, n_missing: int) -> None:
    assert mlc.from_long(make_lists(60, n_frequent)).n_missing == n_missing


def test_labels_are_missing_if_there_are_few_instances() -> None:
    assert mlc.from_long(make_lists(49)).n_missing == 2 * 49


def test_labels_are_missing_in_wide_tables(tmp_path: Path) -> None:
    names = [f"t{position}" for position in range(60)]
    frame = pl.DataFrame({"id": names, "common": 1, "rare": [1] + [0] * 59})
    frame.write_csv(tmp_path / "ann.csv")
    frame.drop("rare").write_csv(tmp_path / "bob.csv")
    assert mlc.read_predictions(tmp_path).n_missing == 60


def test_counts_of_a_label_are_added_over_its_aliases() -> None:
    """Two spellings, three times each, are one label that bob is expected to list."""
    rows = []
    for position in range(60):
        rows.append(("ann", f"t{position}", "common"))
        rows.append(("bob", f"t{position}", "common"))
    for position in range(3):
        rows.append(("ann", f"t{position}", "colour"))
        rows.append(("ann", f"t{position + 3}", "color"))

    frame = make_frame(rows)
    assert mlc.from_long(frame).n_missing == 0
    with pytest.warns(mlc.InputWarning):
        assert mlc.from_long(frame, aliases={"colour": "color"}).n_missing == 60


def test_hint_for_a_long_table_with_another_column(tmp_path: Path) -> None:
    (tmp_path / "crowd.csv").write_text(
        "worker,task,label,time\nann,t1,law,9\nann,t2,war,8\n"
    )
    with pytest.raises(
        InputError,
        match="the instance 'ann' again .* a long file has the columns .* --columns",
    ):
        read_table(tmp_path / "crowd.csv")


def test_warning_about_instances_that_differ_in_spaces(tmp_path: Path) -> None:
    paths = [tmp_path / "ann.csv", tmp_path / "bob.csv"]
    paths[0].write_text("id,x\nt1,1\nt2,0\n")
    paths[1].write_text("id,x\nt1 ,1\nt2,0\n")
    with pytest.warns(
        InputWarning,
        match=r"bob.csv: 1 instances, such as 't1 ', have spaces around their names",
    ):
        assert len(mlc.read_predictions(paths)) == 3

    # There is no warning if all files have the spaces.
    paths[0].write_text("id,x\nt1 ,1\nt2,0\n")
    assert len(mlc.read_predictions(paths)) == 2


@pytest.mark.parametrize("read", [read_predictions, scan_predictions])
def test_all_models_know_all_labels(tmp_path: Path, read) -> None:
    both = tmp_path / "both.csv"
    both.write_text(
        "annotator,item,label\nann,1,law\nann,2,war\nbob,1,law\nbob,2,law\n"
    )
    ann = tmp_path / "ann.csv"
    ann.write_text("annotator,item,label\nann,1,law\nann,2,war\n")
    bob = tmp_path / "bob.csv"
    bob.write_text("annotator,item,label\nbob,1,law\nbob,2,law\n")
    for paths in ([both], [ann, bob]):
        (block,) = read(paths).blocks()
        assert block.n_missing == 2
        (block,) = read(paths, all_know_labels=True).blocks()
        assert block.to_array().tolist() == [[[1, 0], [0, 1]], [[1, 0], [1, 0]]]


@pytest.mark.parametrize("read", [read_predictions, scan_predictions])
@pytest.mark.parametrize(
    "cell",
    [
        "law, war",
        "law,war",
        "law;war",
        "law | war",
        '["law", "war"]',
        '{"choices": ["law", "war"]}',
    ],
)
def test_cells_with_several_labels(tmp_path: Path, read, cell: str) -> None:
    path = tmp_path / "form.csv"
    quoted = cell.replace('"', '""')
    path.write_text(f'annotator,item,label\nann,1,"{quoted}"\nann,2,law\nann,3,\n')
    with pytest.warns(InputWarning, match="^cells with several labels split: 1"):
        (block,) = read(path).blocks()
    assert block.labels == ("law", "war")
    assert block.to_array().tolist() == [[[1, 1], [1, 0], [0, 0]]]


def test_labels_with_commas_are_not_split(tmp_path: Path) -> None:
    path = tmp_path / "form.csv"
    path.write_text('annotator,item,label\nann,1,"arts, film"\nann,2,law\n')
    assert read_predictions(path).labels == ("arts, film", "law")

    # The vocabulary shows it even if a part is a label, too.
    path.write_text('annotator,item,label\nann,1,"arts, film"\nann,2,arts\n')
    labels = read_predictions(path, vocabulary=["arts", "arts, film"]).labels
    assert labels == ("arts, film", "arts")
    with pytest.warns(InputWarning, match="cells with several labels split"):
        assert read_predictions(path).labels == ("arts", "film")

    # A row that is wrong is called by its line in the file.
    path.write_text('annotator,item,label\nann,1,"law, war"\nann,2,law\nann,,law\n')
    with pytest.raises(InputError, match="line 4, column 'instance': found nothing"):
        read_predictions(path)
