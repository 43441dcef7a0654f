"""Panels of several files."""

from pathlib import Path

import numpy as np
import pytest

from mlconsensus.errors import InputError, InputWarning
from mlconsensus.io import (
    FORMATS,
    format_of,
    read_predictions,
    read_table,
    scan_predictions,
)

A = "id,x,y\n1,1,0\n2,0,1\n"
B = "id,y,z\n2,1,0\n3,0,1\n"


def write(folder: Path, **texts: str) -> list[Path]:
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    return [folder / f"{name}.csv" for name in texts]


def test_models_are_matched_by_name(tmp_path: Path) -> None:
    panel = read_predictions(write(tmp_path, a=A, b=B))
    assert panel.models == ("a", "b")
    assert panel.instances.tolist() == ["1", "2", "3"]
    assert panel.labels == ("x", "y", "z")
    nan = np.nan
    np.testing.assert_array_equal(
        panel.to_array(),
        [[[1, 0, nan], [0, 1, nan], [nan] * 3], [[nan] * 3, [nan, 1, 0], [nan, 0, 1]]],
    )


def test_intersections(tmp_path: Path) -> None:
    panel = read_predictions(
        write(tmp_path, a=A, b=B), instances="intersection", labels="intersection"
    )
    assert panel.instances.tolist() == ["2"]
    assert panel.labels == ("y",)
    np.testing.assert_array_equal(panel.to_array(), [[[1]], [[1]]])


def test_a_single_path(tmp_path: Path) -> None:
    (path,) = write(tmp_path, a=A)
    assert read_predictions(path).models == ("a",)
    assert read_predictions(str(path)).models == ("a",)


def test_files_of_the_same_name_in_two_folders(tmp_path: Path) -> None:
    paths = []
    for folder in ("run1", "run2"):
        (tmp_path / folder).mkdir()
        paths += write(tmp_path / folder, tagger=A)
    assert read_predictions(paths).models == ("run1/tagger", "run2/tagger")


def test_models_can_be_named(tmp_path: Path) -> None:
    paths = write(tmp_path, a=A, b=B)
    assert read_predictions(paths, models=["ann", "bob"]).models == ("ann", "bob")
    assert read_predictions([paths[0], paths[0]], models=["ann", "bob"]).models == (
        "ann",
        "bob",
    )
    with pytest.raises(InputError, match="models: found names for 1, expected for 2"):
        read_predictions(paths, models=["ann"])
    with pytest.raises(InputError, match="found a second model 'ann'"):
        read_predictions(paths, models=["ann", "ann"])
    with pytest.raises(InputError, match="models: found the single text 'ab'"):
        read_predictions(paths, models="ab")


def test_names_that_are_positions_fit_files_without_names(tmp_path: Path) -> None:
    (path,) = write(tmp_path, a="id,label_0,label_1\n1,0,1\n0,1,0\n")
    np.savez(tmp_path / "b.npz", scores=np.eye(2))
    np.testing.assert_array_equal(
        read_predictions([tmp_path / "b.npz", path]).to_array(), [np.eye(2), np.eye(2)]
    )
    (path,) = write(tmp_path, a="id,label_0,label_1\n1,0,1\n2,1,0\n")  # counts from 1
    with pytest.raises(
        InputError,
        match=r"b\.npz: found no names of instances, expected them, since .* as '2'",
    ):
        read_predictions([tmp_path / "b.npz", path])


def test_arguments_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no file, expected at least one"):
        read_predictions([])
    for read, path in [
        (read_predictions, None),
        (scan_predictions, [3]),
        (read_predictions, b"a.csv"),
        (read_table, 3),
    ]:
        with pytest.raises(InputError, match="file: found a .*, expected a path"):
            read(path)
    with pytest.raises(InputError, match="format: found '3'"):
        read_table("a.csv", format=3)
    with pytest.raises(InputError, match="standard input: found twice"):
        read_predictions(["-", "-"], format="csv")
    with pytest.raises(InputError, match="found no format"):
        read_predictions("-")
    (tmp_path / "two.csv").write_text(
        "model,instance,label,score\nann,1,a,1\nbob,1,a,0\n"
    )
    with pytest.raises(
        InputError, match=r"two\.csv: found 2 models \('ann', 'bob'\), expected one"
    ):
        read_table(tmp_path / "two.csv")


def test_odd_file_names(tmp_path: Path) -> None:
    for name in ("a[1]", "b*", "c d", "é"):
        (path,) = write(tmp_path, **{name: A})
        assert read_predictions(path).models == (name,)


def test_every_suffix_has_its_format() -> None:
    for name, form in FORMATS.items():
        assert callable(form.module.read)
        for suffix in form.suffixes:
            for packed in ("", ".gz", ".zst", ".GZ"):
                assert format_of(f"x.y{suffix.upper()}{packed}").name == name


def test_unknown_keywords(tmp_path: Path) -> None:
    for read in (read_predictions, scan_predictions):
        with pytest.raises(TypeError, match="ignorecase"):
            read(write(tmp_path, a=A), ignorecase=True)  # type: ignore[call-arg]


def test_errors_suggest_labels_that_differ_in_case(tmp_path):
    (tmp_path / "a.csv").write_text("id,Sports\n1,1\n")
    (tmp_path / "b.csv").write_text("id,sports\n1,1\n")
    with pytest.raises(
        InputError, match="found no label .* but for case and spaces there are some"
    ):
        read_predictions([tmp_path / "a.csv", tmp_path / "b.csv"])
    (tmp_path / "b.csv").write_text("id,weather\n1,1\n")
    with pytest.raises(InputError, match="expected some in common$"):
        read_predictions([tmp_path / "a.csv", tmp_path / "b.csv"])


@pytest.mark.parametrize("read", [read_predictions, scan_predictions])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", ""),
        ("header.csv", "annotator,item,label\n"),
        ("array.json", "[]"),
        ("refused.jsonl", '{"id": 1, "labels": "Sorry, I cannot help."}'),
    ],
)
def test_files_without_predictions(tmp_path: Path, read, name, content) -> None:
    (good,) = write(tmp_path, a=A)
    empty = tmp_path / name
    empty.write_text(content)
    with pytest.warns(InputWarning, match="files without predictions left out: 1"):
        assert read([empty, good]).models == ("a",)

    # They are an error if there are no others, and for strict reading.
    with pytest.raises(InputError, match=name):
        read([empty, empty])
    with pytest.raises(InputError, match=name):
        read([good, empty], strict=True)
