"""Streaming gives the same scores as memory; work that is stopped leaves no file."""

import os
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.io import FilePredictions, read_table, write_table
from mlconsensus.predictions.score_tables import ScoreTable


def written(folder, panel, suffix="parquet"):
    paths = []
    for model, scores in zip(panel.models, panel.to_array(), strict=True):
        paths.append(folder / f"{model}.{suffix}")
        write_table(
            paths[-1],
            ScoreTable(
                model,
                scores,
                [f"i{position}" for position in range(len(panel))],
                panel.labels,
            ),
        )
    return paths


@pytest.fixture
def panel():
    return mlc.datasets.make_panel(
        150, 6, 4, missing=0.1, probabilities=True, random_state=0
    )[0]


@pytest.fixture
def paths(tmp_path, panel):
    (tmp_path / "in").mkdir()
    return written(tmp_path / "in", panel)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(FilePredictions, "block_size", 7)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("method", mlc.COMBINERS)
def test_every_method_gives_the_same_as_in_memory(
    tmp_path, panel, paths, method, size, monkeypatch
):
    monkeypatch.setattr(FilePredictions, "block_size", size)
    scanned = mlc.scan_predictions(paths)
    pooled = mlc.COMBINERS[method]().fit(panel)
    fitted = mlc.COMBINERS[method]().fit(scanned)
    assert fitted.n_instances_ == len(panel)
    np.testing.assert_allclose(
        fitted.transform(scanned), pooled.transform(panel), rtol=0, atol=1e-10
    )
    np.testing.assert_array_equal(fitted.predict(panel), pooled.predict(panel))
    with pytest.raises(mlc.InputError, match="predict: found predictions in files"):
        fitted.predict(scanned)
    done = mlc.write_consensus(scanned, tmp_path / "out.parquet", method=method)
    assert (done.method, done.n_missing) == (method, panel.n_missing)
    table = read_table(tmp_path / "out.parquet")
    assert table.instances.tolist() == [f"i{position}" for position in range(150)]
    np.testing.assert_allclose(
        table.scores, pooled.transform(panel), rtol=0, atol=1e-10
    )
    assert names(tmp_path) == ["in", "out.parquet"]


@pytest.mark.usefixtures("small_blocks")
def test_functions_weights_and_pieces(panel, paths):
    scanned = mlc.scan_predictions(paths)
    weights = {"model_1": 3.0}
    close = {"rtol": 0, "atol": 1e-10}
    np.testing.assert_allclose(
        mlc.mlcm_r(scanned, weights=weights),
        mlc.mlcm_r(panel, weights=weights),
        **close,
    )
    order = panel.select(models=panel.models[::-1], labels=panel.labels[::-1])
    fitted = mlc.MLCMr().fit(order)
    np.testing.assert_allclose(
        fitted.transform(scanned), fitted.transform(panel), **close
    )
    pieces = mlc.MLCMa().partial_fit(panel).partial_fit(scanned)
    twice = mlc.MLCMa().partial_fit(panel).partial_fit(panel)
    np.testing.assert_allclose(pieces.transform(panel), twice.transform(panel), **close)
    assert mlc.combine(scanned).instances.tolist() == scanned.instances.tolist()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("layout", ["wide", "long", "ranked"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_a_streamed_file_is_what_would_be_written_at_once(
    tmp_path, panel, paths, layout, suffix
):
    mlc.write_consensus(
        mlc.scan_predictions(paths),
        tmp_path / f"streamed.{suffix}",
        method="mv",
        layout=layout,
    )
    vote = ScoreTable(
        "majority_vote",
        mlc.majority_vote(panel),
        [f"i{position}" for position in range(150)],
        panel.labels,
    )
    write_table(tmp_path / f"whole.{suffix}", vote, layout=layout)
    if suffix == "parquet":
        assert pl.read_parquet(tmp_path / "streamed.parquet").equals(
            pl.read_parquet(tmp_path / "whole.parquet")
        )
    else:
        assert (tmp_path / f"streamed.{suffix}").read_text() == (
            tmp_path / f"whole.{suffix}"
        ).read_text()


def same_tables(one, other):
    result = read_table(one)
    expected = read_table(other)
    assert result.instances.tolist() == expected.instances.tolist()
    assert result.labels.tolist() == expected.labels.tolist()
    np.testing.assert_allclose(result.scores, expected.scores, rtol=0, atol=1e-10)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_reads", [1, 10, 30, 40])
def test_an_interruption_leaves_nothing(tmp_path, paths, monkeypatch, n_reads):
    read = FilePredictions.read
    remaining = [n_reads]

    def interrupted(panel, start, stop):
        remaining[0] -= 1
        if remaining[0] == 0:
            raise KeyboardInterrupt
        return read(panel, start, stop)

    monkeypatch.setattr(FilePredictions, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mlc.write_consensus(
            mlc.scan_predictions(paths), tmp_path / "out.parquet", method="mlcm-r"
        )
    assert names(tmp_path) == ["in"]


@pytest.mark.parametrize("method", ["dawid_skene", "mlcm_r", "weighted_consensus"])
def test_a_solved_model_is_applied(tmp_path, panel, paths, method):
    """The model was solved before, with its models reordered and one more label."""
    wider = panel.select(models=panel.models[::-1]).with_labels(
        [*panel.labels[::-1], "one more"]
    )
    mlc.save(mlc.COMBINERS[method]().fit(wider), tmp_path / "in" / "a.model")
    solved = mlc.load(tmp_path / "in" / "a.model")
    scanned = mlc.scan_predictions(paths).with_labels(solved.labels_)
    done = mlc.write_consensus(
        scanned, tmp_path / "out.csv", method=solved, solved=True
    )
    assert done.n_missing == wider.n_missing
    table = read_table(tmp_path / "out.csv")
    assert table.labels.tolist() == list(wider.labels)
    np.testing.assert_allclose(
        table.scores, solved.transform(wider), rtol=0, atol=1e-10
    )


@pytest.mark.usefixtures("small_blocks")
def test_a_bad_cell_far_down_leaves_nothing(tmp_path, paths):
    frame = pl.read_parquet(paths[1])
    label = frame.columns[2]
    scores = frame[label].to_list()
    scores[120] = 7.0
    frame.with_columns(pl.Series(label, scores)).write_parquet(paths[1])
    with pytest.raises(
        mlc.InputError,
        match=f"row 121, column '{label}': found 7, expected a number from 0 to 1",
    ):
        mlc.write_consensus(mlc.scan_predictions(paths), tmp_path / "out.csv")
    assert names(tmp_path) == ["in"]


def test_an_existing_output_is_replaced_only_by_force(tmp_path, paths):
    (tmp_path / "out.csv").write_text("mine")
    scanned = mlc.scan_predictions(paths)
    with pytest.raises(mlc.InputError, match="--force"):
        mlc.write_consensus(scanned, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "mine"
    mlc.write_consensus(scanned, tmp_path / "out.csv", force=True)
    assert (tmp_path / "out.csv").read_text().startswith("instance,")


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv.gz", "-"])
def test_formats_that_cannot_grow_are_refused(tmp_path, paths, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mlc.InputError, match=r"block by block|standard"):
        mlc.write_consensus(
            mlc.scan_predictions(paths), name, format="csv" if name == "-" else None
        )
    assert names(tmp_path) == ["in"]


def test_scratch_files_vanish_with_the_panel(tmp_path, panel, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    scanned = mlc.scan_predictions(written(tmp_path, panel, "csv"))
    assert len(names(tmp_path / "scratch")) == 1
    chosen = scanned.select(models=scanned.models[:2])
    del scanned
    assert chosen.shape == (2, 150, 6)
    assert len(list(chosen.blocks(100))) == 2
    del chosen
    assert names(tmp_path / "scratch") == []


def test_a_pipe_is_written_to_and_stays(tmp_path, paths):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    mlc.write_consensus(
        mlc.scan_predictions(paths), tmp_path / "pipe", method="mv", format="csv"
    )
    out, _ = reader.communicate(timeout=30)
    assert len(out.splitlines()) == 151
    assert (tmp_path / "pipe").is_fifo()


PROGRAM = """
import sys, time
import mlconsensus as mlc
from mlconsensus.io import ScannedPanel
ScannedPanel.block_size = 7
read = ScannedPanel.read
def slow(panel, start, stop):
    time.sleep(0.02)
    print(start, flush=True)
    return read(panel, start, stop)
ScannedPanel.read = slow
mlc.write_consensus(mlc.scan_predictions(sys.argv[2:]), sys.argv[1], method="mlcm-r")
"""


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_work_that_is_stopped_leaves_no_output(tmp_path, paths, stop):
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        str(tmp_path / "out.parquet"),
        *map(str, paths),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(30):  # in the second pass
        process.stdout.readline()
    os.kill(process.pid, stop)
    process.communicate(timeout=30)
    assert process.returncode
    assert not (tmp_path / "out.parquet").exists()
    if stop == signal.SIGINT:
        assert names(tmp_path) == ["in"]
