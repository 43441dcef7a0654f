"""Streaming: the same scores as in memory, whatever the blocks; interrupted work is gone on with, or leaves nothing."""

import os
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.engines import streaming
from mlconsensus.io import ScannedPanel, read_table, write_table
from mlconsensus.panel.model_tables import ModelTable


def written(folder, panel, suffix="parquet"):
    paths = []
    for model, scores in zip(panel.models, panel.to_array(), strict=True):
        paths.append(folder / f"{model}.{suffix}")
        write_table(paths[-1], ModelTable(model, scores, [f"i{at}" for at in range(len(panel))], panel.labels))
    return paths


@pytest.fixture
def panel():
    return mlc.datasets.make_panel(150, 6, 4, missing=0.1, probabilities=True, random_state=0)[0]


@pytest.fixture
def paths(tmp_path, panel):
    (tmp_path / "in").mkdir()
    return written(tmp_path / "in", panel)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(ScannedPanel, "block_size", 7)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("method", mlc.COMBINERS)
def test_every_method_gives_the_same_as_in_memory(tmp_path, panel, paths, method, size, monkeypatch):
    monkeypatch.setattr(ScannedPanel, "block_size", size)
    scanned = mlc.scan_predictions(paths)
    whole = mlc.COMBINERS[method]().fit(panel)
    fitted = mlc.COMBINERS[method]().fit(scanned)
    assert fitted.n_instances_ == len(panel)
    np.testing.assert_allclose(fitted.transform(scanned), whole.transform(panel), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(fitted.predict(scanned), whole.predict(panel))
    done = mlc.write_consensus(scanned, tmp_path / "out.parquet", method=method)
    assert (done.method, done.n_missing) == (method, panel.n_missing)
    table = read_table(tmp_path / "out.parquet")
    assert table.instances.tolist() == [f"i{at}" for at in range(150)]
    np.testing.assert_allclose(table.scores, whole.transform(panel), rtol=0, atol=1e-10)
    assert names(tmp_path) == ["in", "out.parquet"]


@pytest.mark.usefixtures("small_blocks")
def test_functions_weights_and_pieces(panel, paths):
    scanned = mlc.scan_predictions(paths)
    weights = {"model_1": 3.0}
    close = {"rtol": 0, "atol": 1e-10}
    np.testing.assert_allclose(mlc.mlcm_r(scanned, weights=weights), mlc.mlcm_r(panel, weights=weights), **close)
    order = panel.select(models=panel.models[::-1], labels=panel.labels[::-1])
    fitted = mlc.MLCMr().fit(order)
    np.testing.assert_allclose(fitted.transform(scanned), fitted.transform(panel), **close)
    pieces = mlc.MLCMa().partial_fit(panel).partial_fit(scanned)
    twice = mlc.MLCMa().partial_fit(panel).partial_fit(panel)
    np.testing.assert_allclose(pieces.transform(panel), twice.transform(panel), **close)
    assert mlc.combine(scanned).instances.tolist() == scanned.instances.tolist()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("layout", ["wide", "long", "ranked"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_a_streamed_file_is_what_would_be_written_at_once(tmp_path, panel, paths, layout, suffix):
    mlc.write_consensus(mlc.scan_predictions(paths), tmp_path / f"streamed.{suffix}", method="mv", layout=layout)
    vote = ModelTable("MV", mlc.majority_vote(panel), [f"i{at}" for at in range(150)], panel.labels)
    write_table(tmp_path / f"whole.{suffix}", vote, layout=layout)
    if suffix == "parquet":
        assert pl.read_parquet(tmp_path / "streamed.parquet").equals(pl.read_parquet(tmp_path / "whole.parquet"))
    else:
        assert (tmp_path / f"streamed.{suffix}").read_text() == (tmp_path / f"whole.{suffix}").read_text()


def same_tables(one, other):
    found, expected = read_table(one), read_table(other)
    assert found.instances.tolist() == expected.instances.tolist()
    assert found.labels.tolist() == expected.labels.tolist()
    np.testing.assert_allclose(found.scores, expected.scores, rtol=0, atol=1e-10)


class Interrupted:
    """Stops the work at the n-th block that is read."""

    def __init__(self, monkeypatch, at):
        self.read, self.left, self.starts = ScannedPanel.read, at, []
        monkeypatch.setattr(ScannedPanel, "read", lambda panel, start, stop: self(panel, start, stop))

    def __call__(self, panel, start, stop):
        self.starts.append(start)
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self.read(panel, start, stop)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("method", ["DS", "MLCM-r", "Filter"])
@pytest.mark.parametrize("at", [1, 10, 30, 40])
def test_interrupted_work_is_gone_on_with(tmp_path, paths, monkeypatch, at, method, suffix):
    scanned = mlc.scan_predictions(paths)
    mlc.write_consensus(scanned, tmp_path / f"whole.{suffix}", method=method)
    out = tmp_path / f"out.{suffix}"
    with monkeypatch.context() as patch:
        first = Interrupted(patch, at)
        with pytest.raises(KeyboardInterrupt):
            mlc.write_consensus(scanned, out, method=method)
    assert not out.exists()
    assert names(tmp_path) == [f".out.{suffix}.part", "in", f"whole.{suffix}"]
    with monkeypatch.context() as patch:
        second = Interrupted(patch, -1)
        mlc.write_consensus(mlc.scan_predictions(paths), out, method=method, resume=True)
    same_tables(out, tmp_path / f"whole.{suffix}")
    assert names(tmp_path) == ["in", f"out.{suffix}", f"whole.{suffix}"]
    # Blocks under way when it was interrupted are read again, and the first, to see what statistics are like.
    blocks = -(-150 // 7) * (3 if method == "Filter" else 2)
    assert len(first.starts) + len(second.starts) <= blocks + 10


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("method", ["DS", "MLCM-r", "Filter"])
@pytest.mark.parametrize("at", [1, 8, 20])
def test_an_interrupted_application_is_gone_on_with(tmp_path, panel, paths, monkeypatch, at, method, suffix):
    """Of a model that was solved before, with its models in another order and a label more."""
    wider = panel.select(models=panel.models[::-1]).with_labels([*panel.labels[::-1], "one more"])
    mlc.save(mlc.COMBINERS[method]().fit(wider), tmp_path / "in" / "a.model")
    solved = mlc.load(tmp_path / "in" / "a.model")
    scanned = mlc.scan_predictions(paths).with_labels(solved.labels_)
    out = tmp_path / f"out.{suffix}"
    with monkeypatch.context() as patch:
        first = Interrupted(patch, at)
        with pytest.raises(KeyboardInterrupt):
            mlc.write_consensus(scanned, out, method=solved, solved=True)
    assert names(tmp_path) == [f".out.{suffix}.part", "in"]
    other = mlc.COMBINERS[method]().fit(wider[:100])
    with pytest.raises(mlc.InputError, match="found work begun with other model"):
        mlc.write_consensus(scanned, out, method=other, solved=True, resume=True)
    again = mlc.scan_predictions(paths).with_labels(solved.labels_)
    with monkeypatch.context() as patch:
        second = Interrupted(patch, -1)
        done = mlc.write_consensus(again, out, method=solved, solved=True, resume=True)
    assert names(tmp_path) == ["in", f"out.{suffix}"]
    assert done.n_missing == wider.n_missing
    table = read_table(out)
    assert table.labels.tolist() == list(wider.labels)
    np.testing.assert_allclose(table.scores, solved.transform(wider), rtol=0, atol=1e-10)
    assert len(first.starts) + len(second.starts) <= -(-150 // 7) + 10


@pytest.mark.usefixtures("small_blocks")
def test_a_block_that_was_cut_off_is_written_again(tmp_path, paths, monkeypatch):
    scanned, out = mlc.scan_predictions(paths), tmp_path / "out.parquet"
    mlc.write_consensus(scanned, tmp_path / "whole.parquet")
    with monkeypatch.context() as patch:
        Interrupted(patch, 60)
        with pytest.raises(KeyboardInterrupt):
            mlc.write_consensus(scanned, out)
    part = streaming.part_of(out)
    with (part / "rows").open("ab") as rows, (part / "journal").open("a") as journal:
        rows.write(b"half a block")
        journal.write("12")
    mlc.write_consensus(scanned, out, resume=True)
    same_tables(out, tmp_path / "whole.parquet")


@pytest.mark.usefixtures("small_blocks")
def test_other_work_is_not_gone_on_with(tmp_path, paths, monkeypatch):
    out = tmp_path / "out.csv"
    with monkeypatch.context() as patch:
        Interrupted(patch, 30)
        with pytest.raises(KeyboardInterrupt):
            mlc.write_consensus(mlc.scan_predictions(paths), out, method="mv")
    with pytest.raises(mlc.InputError, match="begun with other method"):
        mlc.write_consensus(mlc.scan_predictions(paths), out, method="bgcm", resume=True)
    with pytest.raises(mlc.InputError, match="begun with other output"):
        mlc.write_consensus(mlc.scan_predictions(paths), out, method="mv", layout="long", resume=True)
    os.utime(paths[0], ns=(1, 1))
    with pytest.raises(mlc.InputError, match=r"out\.csv\.part: found work begun with other inputs"):
        mlc.write_consensus(mlc.scan_predictions(paths), out, method="mv", resume=True)
    mlc.write_consensus(mlc.scan_predictions(paths), out, method="mv")
    assert names(tmp_path) == ["in", "out.csv"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("resume", [False, True])
def test_the_second_at_work_on_an_output_gives_way_to_the_first(tmp_path, panel, paths, monkeypatch, resume):
    scanned, out = mlc.scan_predictions(paths), tmp_path / "out.parquet"
    read, refused = ScannedPanel.read, []

    def interfering(panel, start, stop):
        if start == 70:  # once in each pass
            with pytest.raises(mlc.InputError, match=r"out\.parquet: found other work on it under way") as found:
                mlc.write_consensus(scanned, out, method="mlcm-r", force=True, resume=resume)
            refused.append(found.value)
        return read(panel, start, stop)

    monkeypatch.setattr(ScannedPanel, "read", interfering)
    mlc.write_consensus(scanned, out, method="mlcm-r")
    assert len(refused) == 2
    np.testing.assert_allclose(read_table(out).scores, mlc.mlcm_r(panel), rtol=0, atol=1e-10)
    assert names(tmp_path) == ["in", "out.parquet"]


@pytest.mark.usefixtures("small_blocks")
def test_a_bad_cell_far_down_leaves_nothing(tmp_path, paths):
    frame = pl.read_parquet(paths[1])
    label = frame.columns[2]
    scores = frame[label].to_list()
    scores[120] = 7.0
    frame.with_columns(pl.Series(label, scores)).write_parquet(paths[1])
    with pytest.raises(mlc.InputError, match=f"row 121, column '{label}': found 7, expected a number from 0 to 1"):
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
        mlc.write_consensus(mlc.scan_predictions(paths), name, format="csv" if name == "-" else None)
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


PROGRAM = """
import sys, time
import mlconsensus as mlc
from mlconsensus.engines import streaming
from mlconsensus.io import ScannedPanel
ScannedPanel.block_size = 7
streaming._KEEP_EVERY = 0
read = ScannedPanel.read
def slow(panel, start, stop):
    time.sleep(0.02)
    print(start, flush=True)
    return read(panel, start, stop)
ScannedPanel.read = slow
mlc.write_consensus(mlc.scan_predictions(sys.argv[2:]), sys.argv[1], method="mlcm-r", resume=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [8, 30])
def test_work_that_was_killed_is_gone_on_with(tmp_path, panel, paths, blocks):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "out.parquet"), *map(str, paths)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    for _ in range(blocks):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert names(tmp_path) == [".out.parquet.part", "in"]
    assert (streaming.part_of(tmp_path / "out.parquet") / "lock").exists()  # of somebody who is gone
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert len(done.stdout.split()) < 2 * 22 - blocks + 12
    np.testing.assert_allclose(read_table(tmp_path / "out.parquet").scores, mlc.mlcm_r(panel), rtol=0, atol=1e-10)
    assert names(tmp_path) == ["in", "out.parquet"]


def test_work_killed_when_the_output_was_in_place_is_done_anew(tmp_path, panel, paths, monkeypatch):
    def killed(folder, **options):
        raise SystemExit

    monkeypatch.setattr(streaming, "emptied", lambda folder, **options: killed(folder) if options else None)
    target = tmp_path / "out.parquet"
    with pytest.raises(SystemExit):
        mlc.write_consensus(mlc.scan_predictions(paths), target, method="mv")
    assert (streaming.part_of(target) / "journal").exists()
    monkeypatch.undo()
    mlc.write_consensus(mlc.scan_predictions(paths), target, method="mv", resume=True, force=True)
    np.testing.assert_allclose(read_table(target).scores, mlc.majority_vote(panel), rtol=0, atol=1e-10)
    assert names(tmp_path) == ["in", "out.parquet"]
