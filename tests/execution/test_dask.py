"""Dask: workers give the same scores as memory, also if one of them is killed."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.execution import dask as engine
from mlconsensus.federated.statistics_files import to_arrays
from mlconsensus.io import FilePredictions, read_table, write_table
from mlconsensus.predictions.score_tables import ScoreTable

da = pytest.importorskip("dask.array")
delayed = pytest.importorskip("dask").delayed
distributed = pytest.importorskip("distributed")

# Clusters that come and go leave sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module", params=[1, 2])
def client(request):
    with (
        distributed.LocalCluster(
            n_workers=request.param,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def panel():
    return mlc.datasets.make_panel(
        120, 5, 3, missing=0.1, probabilities=True, random_state=0
    )[0]


def as_arrays(panel, form):
    cube = panel.to_array()
    if form == "cube":
        return mlc.from_dask(da.from_array(cube, chunks=(2, 50, 3)))
    arrays = [
        da.from_array(matrix, chunks=(30 + 20 * k, 5)) for k, matrix in enumerate(cube)
    ]
    if form == "list":
        return mlc.from_dask(arrays, models=panel.models, labels=panel.labels)
    return mlc.from_dask(
        dict(zip(panel.models, arrays, strict=True)), labels=panel.labels
    )


def as_files(panel, folder):
    instances = [f"i{position}" for position in range(len(panel))]
    for model, scores in zip(panel.models, panel.to_array(), strict=True):
        write_table(
            folder / f"{model}.parquet",
            ScoreTable(model, scores, instances, panel.labels),
        )
    return [folder / f"{model}.parquet" for model in panel.models]


def close(result, expected):
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", mlc.COMBINERS)
def test_every_method_gives_the_same_as_in_memory(
    client, panel, method, tmp_path, monkeypatch
):
    pooled = mlc.COMBINERS[method]().fit(panel)
    arrays = as_arrays(panel, "list")
    fitted = mlc.COMBINERS[method]().fit(arrays)
    lazy = fitted.transform(arrays)
    assert isinstance(lazy, da.Array)
    assert lazy.shape == (120, 5)
    close(lazy.compute(), pooled.transform(panel))
    np.testing.assert_array_equal(fitted.predict(panel), pooled.predict(panel))
    with pytest.raises(mlc.InputError, match="predict: found .* on a cluster"):
        fitted.predict(arrays)
    monkeypatch.setattr(FilePredictions, "block_size", 16)
    scanned = engine.DaskPredictions.from_scanned(
        mlc.scan_predictions(as_files(panel, tmp_path))
    )
    for suffix in ("parquet", "csv"):
        done = mlc.write_consensus(scanned, tmp_path / f"out.{suffix}", method=method)
        assert done.n_missing == panel.n_missing
        table = read_table(tmp_path / f"out.{suffix}")
        assert table.instances.tolist() == [f"i{position}" for position in range(120)]
        close(table.scores, pooled.transform(panel))
    assert len(list(tmp_path.iterdir())) == 3 + 2


@pytest.mark.parametrize("form", ["cube", "list", "mapping"])
def test_forms_of_arrays(panel, form):
    """Without a cluster, threads do the work."""
    arrays = as_arrays(panel, form)
    assert arrays.shape == panel.shape
    assert arrays.models == panel.models
    np.testing.assert_array_equal(
        np.concatenate([block.to_array() for block in arrays.blocks(40)], axis=1),
        panel.to_array(),
    )
    close(mlc.MLCMr().fit(arrays).transform(arrays).compute(), mlc.mlcm_r(panel))
    close(mlc.combine(arrays).scores.compute(), mlc.combine(panel).scores)
    assert arrays.instances.tolist() == list(range(120))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (lambda: da.zeros((2, 3)), "found 2 dimensions, expected 3"),
        (list, "found no model"),
        (
            lambda: [np.zeros((2, 3))],
            "model 'model_0': found ndarray, expected a Dask array",
        ),
        (lambda: [da.zeros(3)], "found 1 dimensions, expected 2"),
        (
            lambda: [da.zeros((2, 3)), da.zeros((2, 4))],
            r"model 'model_1': found shape \(2, 4\), expected \(2, 3\)",
        ),
        (lambda: [da.zeros((0, 3))], "found no instance"),
        (
            lambda: [da.zeros((2, 3)).astype(str)],
            "expected bool, 0/1 integers or floats",
        ),
        (lambda: [da.zeros((4, 3))[da.zeros(4) == 0]], "found chunks of unknown size"),
    ],
)
def test_bad_arrays(arrays, words):
    with pytest.raises(mlc.InputError, match=words):
        mlc.from_dask(arrays())


def test_bad_scores_are_refused_by_their_place(client):
    scores = np.zeros((60, 3))
    scores[41, 2] = 1.5
    arrays = mlc.from_dask([da.from_array(scores, chunks=(20, 3))])
    with pytest.raises(
        mlc.InputError, match="model 'model_0', instance 41, label 'label_2': found 1.5"
    ):
        mlc.MajorityVote().fit(arrays)


def test_the_client_gets_nothing_that_grows_with_instances(
    client, panel, tmp_path, monkeypatch
):
    """All that is brought here is counted."""
    monkeypatch.setattr(FilePredictions, "block_size", 4)
    scanned = engine.DaskPredictions.from_scanned(
        mlc.scan_predictions(as_files(panel, tmp_path))
    )
    brought = []
    gather = distributed.Client.gather

    def counted(self, futures, *args, **kwargs):
        result = gather(self, futures, *args, **kwargs)
        brought.extend(result if isinstance(result, list) else [result])
        return result

    monkeypatch.setattr(distributed.Client, "gather", counted)
    mlc.write_consensus(scanned, tmp_path / "out.parquet", method="mlcm-r")
    statistics, *missing = brought
    assert statistics.walk.shape == (3, 5, 3, 5)
    assert sum(missing) == panel.n_missing


def _slow(statistics):
    """Give somebody time to kill the worker."""

    def slowed(*args, **kwargs):
        time.sleep(0.15)
        return statistics(*args, **kwargs)

    return slowed


@pytest.mark.slow
@pytest.mark.parametrize("client", [2], indirect=True)
@pytest.mark.parametrize("during", ["_compute_pass", "_apply"])
def test_a_killed_worker_changes_nothing(client, panel, tmp_path, monkeypatch, during):
    monkeypatch.setattr(FilePredictions, "block_size", 2)
    scanned = engine.DaskPredictions.from_scanned(
        mlc.scan_predictions(as_files(panel, tmp_path))
    )

    class Slow(mlc.MLCMr):
        pass

    slowed = _slow(getattr(mlc.MLCMr, during))
    setattr(Slow, during, slowed if during == "_compute_pass" else staticmethod(slowed))
    victims = []

    def kill():
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not victims:
            busy = [address for address, keys in client.processing().items() if keys]
            begun = during == "_compute_pass" or list(
                tmp_path.glob(".out.parquet*/part-*")
            )
            if busy and begun:
                victims.append(client.run(os.getpid)[busy[0]])
                os.kill(victims[0], signal.SIGKILL)
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    mlc.write_consensus(scanned, tmp_path / "out.parquet", method=Slow())
    killer.join()
    assert victims
    assert victims[0] not in client.run(os.getpid).values()
    close(read_table(tmp_path / "out.parquet").scores, mlc.mlcm_r(panel))
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.slow
def test_without_any_worker_left_there_is_an_error_and_no_output(
    panel, tmp_path, monkeypatch
):
    monkeypatch.setattr(FilePredictions, "block_size", 2)
    monkeypatch.setattr(engine, "_PATIENCE", 1.0)
    scanned = engine.DaskPredictions.from_scanned(
        mlc.scan_predictions(as_files(panel, tmp_path))
    )

    class Deadly(mlc.MLCMr):
        @staticmethod
        def _apply(block, solution):
            time.sleep(1)
            return mlc.MLCMr._apply(block, solution)

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        threading.Timer(2.0, lambda: cluster.scale(0)).start()
        with pytest.raises(mlc.InputError, match="Dask: found no worker left"):
            mlc.write_consensus(scanned, tmp_path / "out.parquet", method=Deadly())
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".parquet"] * 3


def test_results_that_are_lost_with_all_workers_are_not_waited_for(panel, monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE", 1.0)
    finished = engine._iter_finished

    def lost(client, futures):
        yield from finished(client, futures)
        client.cluster.scale(0)
        while client.scheduler_info(n_workers=-1)["workers"]:
            time.sleep(0.1)

    monkeypatch.setattr(engine, "_iter_finished", lost)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
        pytest.raises(mlc.InputError, match="Dask: found no worker left"),
    ):
        engine._compute([delayed(abs)(-1)], "counting")


WARNING = """
import logging
from mlconsensus.execution.dask import connect
with connect(None):
    logging.getLogger("distributed.nanny").warning("as of a worker that is slow to end")
"""


def test_a_cluster_of_our_own_warns_of_nothing():
    ran = subprocess.run(
        [sys.executable, "-c", WARNING], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")


INTERRUPTED = """
import time
from mlconsensus.execution.dask import connect
try:
    with connect(None) as client:
        tasks = [client.submit(time.sleep, 60, pure=False) for _ in range(4)]
        while not any(client.processing().values()):
            time.sleep(0.1)
        time.sleep(0.5)
        began = time.monotonic()
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print(time.monotonic() - began)
"""


def test_workers_that_are_at_something_keep_nobody_waiting():
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert float(ran.stdout) < 2


def test_an_address_without_a_cluster(monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE", 0.5)
    with (
        pytest.raises(
            mlc.InputError,
            match=r"--dask: found no scheduler at 'tcp://127\.0\.0\.1:9'",
        ),
        engine.connect("tcp://127.0.0.1:9"),
    ):
        pass


@pytest.fixture
def command(client, panel, tmp_path, monkeypatch):
    """Run a command on the panel's files, on the cluster unless told."""
    from mlconsensus.cli import main

    monkeypatch.chdir(tmp_path)
    files = [path.name for path in as_files(panel, tmp_path)]
    used = []
    computed = engine._compute
    monkeypatch.setattr(
        engine,
        "_compute",
        lambda *args, **named: used.append(args) or computed(*args, **named),
    )

    def command(*args, options=("--dask", client.scheduler.address)):
        with pytest.raises(SystemExit) as end:
            main([*args[:-1], *files, "-o", args[-1], *options])
        assert end.value.code == 0
        assert bool(used) == ("--dask" in options)
        used.clear()

    return command


def test_commands_on_a_cluster(command, panel):
    command("combine", "out.parquet")
    frame = pl.read_parquet("out.parquet")
    close(frame.drop("instance").to_numpy(), mlc.combine(panel).scores)


@pytest.mark.parametrize("method", mlc.COMBINERS)
def test_statistics_of_a_site_on_a_cluster(command, panel, method):
    how = ["--method", method]
    for position in range(len(mlc.COMBINERS[method].passes) + 1):
        command("statistics", *how, f"cluster{position}.stats")
        command("statistics", *how, f"local{position}.stats", options=["--no-stream"])
        result, expected = (
            mlc.load(f"{name}{position}.stats") for name in ("cluster", "local")
        )
        if result.unfinished:
            mlc.save(expected, f"{position}.round")
            how = ["--after", f"{position}.round"]
    assert (result.n_instances_, result.labels_) == (
        expected.n_instances_,
        expected.labels_,
    )
    arrays = to_arrays(result.statistics_)
    assert arrays.keys() == to_arrays(expected.statistics_).keys()
    for name, array in to_arrays(expected.statistics_).items():
        close(arrays[name], array)
    mlc.save(mlc.merge([result]), "a.model")
    command("apply", "a.model", "cluster.parquet")
    command(
        "apply", "a.model", "--decide", "instances", "--layout", "long", "cluster.csv"
    )
    close(read_table("cluster.parquet").scores, expected.transform(panel))
    counts = mlc.decision.cardinalities(panel)
    label_sets = mlc.decision.match_instances(expected.transform(panel), counts)
    assert read_table("cluster.csv").scores.sum() == label_sets.sum()


@pytest.mark.parametrize("client", [1], indirect=True)
def test_private_statistics_on_a_cluster(command, panel):
    pytest.importorskip("opendp")
    command(
        "statistics",
        "--method",
        "mlcm-r",
        "--epsilon",
        "1000",
        "--delta",
        "1e-6",
        "private.stats",
    )
    result = mlc.load("private.stats")
    exact = mlc.MLCMr().fit(panel)
    np.testing.assert_allclose(
        result.statistics_.walk, exact.statistics_.walk, atol=0.5
    )
