"""Large label spaces on the command line: in memory, streamed and on Dask."""

import json

import numpy as np
import polars as pl
import pytest

import mlconsensus as mlc
from mlconsensus.cli.main import main
from mlconsensus.linalg.block_sums import dense


@pytest.fixture
def votes(tmp_path):
    """Write a long file of three models, 200 instances and 4,000 labels."""
    rng = np.random.default_rng(0)
    n = 200
    l = 4000
    true = np.minimum(rng.zipf(1.3, (n, 4)), l) - 1
    frames = [
        pl.DataFrame(
            {
                "instance": ["d0"] * l,
                "label": [f"s{j}" for j in range(l)],
                "score": 0.0,
                "model": "m0",
            }
        )
    ]
    for k in range(3):
        output = np.where(
            rng.random(true.shape) < 0.8,
            true,
            np.minimum(rng.zipf(1.3, true.shape), l) - 1,
        )
        rows = [
            (f"d{i}", f"s{j}", 0.9 - 0.1 * k, f"m{k}")
            for i in range(n)
            for j in sorted(set(output[i].tolist()))
        ]
        frames.append(
            pl.DataFrame(
                rows, schema=["instance", "label", "score", "model"], orient="row"
            )
        )
    votes_table = (
        pl.concat(frames)
        .group_by("instance", "label", "model", maintain_order=True)
        .agg(pl.col("score").max())
    )
    votes_table.select("instance", "label", "score", "model").write_parquet(
        tmp_path / "votes.parquet"
    )
    return tmp_path / "votes.parquet"


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


@pytest.mark.parametrize("method", ["mv", "ds", "bgcm", "mlcm-a", "mlcm-r", "weighted"])
def test_streamed_is_the_same_as_in_memory(votes, tmp_path, method):
    for name, extra in {"memory": "--no-stream", "streamed": "--stream"}.items():
        options = ("--layout", "ranked", "--top-k", 5, "--method", method, extra)
        assert run("combine", votes, *options, "-o", tmp_path / f"{name}.parquet") == 0
    one, other = (
        pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("memory", "streamed")
    )
    assert one.drop("score").equals(other.drop("score"))
    np.testing.assert_allclose(one["score"], other["score"], atol=1e-10)
    assert one.height == 5 * 200
    assert one["rank"].max() == 5


def test_workers_of_a_cluster_know_how_little_was_said(votes):
    from mlconsensus.execution.dask import DaskPredictions

    scanned = mlc.scan_predictions(votes)
    panel = DaskPredictions.from_scanned(scanned)
    assert panel.many
    assert (
        panel.n_stored == scanned.n_stored < 5 * 200 * 4000 / 100
    )  # or every method would be taken for too large


def test_a_ranked_file_reads_back(votes, tmp_path):
    assert (
        run(
            "combine",
            votes,
            "--layout",
            "ranked",
            "--top-k",
            3,
            "-o",
            tmp_path / "top.csv",
        )
        == 0
    )
    table = mlc.io.read_table(tmp_path / "top.csv")
    result = mlc.combine(mlc.read_predictions(votes)).top(3)
    position = {name: j for j, name in enumerate(table.labels.tolist())}
    if hasattr(table.scores, "toarray"):
        scores = table.scores.toarray()
    else:
        scores = table.scores
    rows = [
        [scores[i, position[name]] for name in names]
        for i, names in enumerate(result.labels.tolist())
    ]
    np.testing.assert_allclose(rows, result.scores, atol=1e-10)


def test_label_sets_are_written_as_long_tables(votes, tmp_path):
    assert (
        run(
            "combine",
            votes,
            "--decide",
            "instances",
            "--layout",
            "long",
            "-o",
            tmp_path / "sets.csv",
        )
        == 0
    )
    sets = pl.read_csv(tmp_path / "sets.csv")
    assert sets.columns == ["instance", "label", "score"]
    assert (sets["score"] == 1).all()


def test_files_of_many_labels_are_judged_without_a_table_of_all(
    votes, tmp_path, capsys, monkeypatch
):
    """Beyond some size no array of all cells is made; figures are the same."""
    truth = (
        pl.read_parquet(votes)
        .filter((pl.col("model") == "m0") & (pl.col("score") > 0))
        .drop("model")
    )
    truth.with_columns(score=1.0).write_parquet(tmp_path / "truth.parquet")
    options = (
        "--method",
        "mv",
        "--layout",
        "ranked",
        "--top-k",
        20,
        "-o",
        tmp_path / "mv.parquet",
    )
    assert run("combine", votes, *options) == 0
    result = []
    for most in (10**9, 0):
        monkeypatch.setattr("mlconsensus.cli.evaluate._MAX_PAIRS", most)
        capsys.readouterr()
        assert (
            run(
                "evaluate",
                tmp_path / "mv.parquet",
                "--truth",
                tmp_path / "truth.parquet",
                "--json",
            )
            == 0
        )
        result.append(json.loads(capsys.readouterr().out))
    assert result[0]["intervals"]
    assert not result[1]["intervals"]
    assert 0.5 < result[0]["average_precision"] < 1
    for metric in (*mlc.metrics.RANKING_METRICS, *mlc.metrics.LABEL_SET_METRICS):
        assert result[1][metric] == pytest.approx(result[0][metric])


def test_every_method_is_compared_on_many_labels(votes, tmp_path, capsys):
    truth = (
        pl.read_parquet(votes)
        .filter((pl.col("model") == "m0") & (pl.col("score") > 0))
        .drop("model")
    )
    truth.with_columns(score=1.0).write_parquet(tmp_path / "truth.parquet")
    assert run("compare", votes, "--truth", tmp_path / "truth.parquet", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert {kind.name for kind in mlc.COMBINERS.values()} < set(result)
    panel = mlc.read_predictions(votes)
    table = mlc.io.read_table(tmp_path / "truth.parquet")
    scores = mlc.majority_vote(panel).toarray()
    rows = [panel.instances.tolist().index(name) for name in table.instances.tolist()]
    all_truth = np.zeros(
        scores.shape, dtype=bool
    )  # a list says no to what it never names
    all_truth[np.ix_(rows, [panel.labels.index(name) for name in table.labels])] = (
        dense(table.scores)
    )
    assert result["MV"]["average_precision"] == pytest.approx(
        mlc.metrics.average_precision(all_truth[rows], scores[rows])
    )


def test_what_is_shown_of_many_labels_are_those_named_most(votes, tmp_path, capsys):
    for command in (
        ["agreement", votes, "--json"],
        ["report", votes, "-o", tmp_path / "report.json"],
    ):
        assert run(*command) == 0
        assert (
            "Of 4,000 labels, the 500 named most are looked at"
            in capsys.readouterr().err
        )
    shown = json.loads((tmp_path / "report.json").read_text())["labels"]["order"]
    panel = mlc.read_predictions(votes)
    named = sum(scores.sum(axis=0) for scores, _, _ in panel.apart())
    least = min(named[panel.labels.index(label)] for label in shown)
    assert least >= np.sort(named)[-500]


def test_the_best_of_many_labels_are_explained(votes, capsys):
    assert run("explain", votes, "--instance", "d1", "--top-k", 2, "--json") == 0
    best = mlc.combine(mlc.read_predictions(votes)).top(2)
    assert [why["label"] for why in json.loads(capsys.readouterr().out)] == best.labels[
        1
    ].tolist()


def test_label_sets_of_many_labels_by_a_threshold(votes, tmp_path):
    options = (
        "--decide",
        "threshold",
        "--threshold",
        0.5,
        "--layout",
        "long",
        "--method",
        "mv",
    )
    assert run("combine", votes, *options, "-o", tmp_path / "sets.csv") == 0
    sets = pl.read_csv(tmp_path / "sets.csv")
    scores = mlc.majority_vote(mlc.read_predictions(votes)).toarray()
    assert len(sets) == (scores >= 0.5).sum()
    assert (
        run("combine", votes, *options, "--top-k", 1, "-o", tmp_path / "first.csv") == 0
    )
    assert len(pl.read_csv(tmp_path / "first.csv")) == (scores >= 0.5).any(axis=1).sum()


@pytest.mark.parametrize("method", ["weighted", "mlcm-r"])
def test_label_sets_of_many_labels_by_f1(votes, tmp_path, method):
    assert (
        run(
            "combine",
            votes,
            "--decide",
            "micro-f1",
            "--method",
            method,
            "--layout",
            "long",
            "-o",
            tmp_path / "s.csv",
        )
        == 0
    )
    result = mlc.combine(mlc.read_predictions(votes), method=method)
    assert 0 < len(pl.read_csv(tmp_path / "s.csv")) == result.label_indicator.nnz


def test_label_sets_of_many_labels_hold_what_is_known(votes, tmp_path):
    panel = mlc.read_predictions(votes)
    row, column = np.argwhere(
        mlc.combine(panel, method="mv").label_indicator.toarray()
    )[0]
    instance = panel.instances[row]
    label = panel.labels[column]
    (tmp_path / "gold.csv").write_text(
        f"instance,{label}\n{instance},0\n"
    )  # where the vote says yes
    gold_option = ("--gold", tmp_path / "gold.csv")
    form = ("--layout", "long", "-o", tmp_path / "s.csv")
    assert (
        run(
            "combine",
            votes,
            "--decide",
            "micro-f1",
            "--method",
            "mv",
            *gold_option,
            *form,
        )
        == 0
    )
    output = {cells[:2]: cells[-1] for cells in pl.read_csv(tmp_path / "s.csv").rows()}
    assert len(output) > 1
    assert not output.get((instance, label))


def test_what_cannot_be_done_with_many_labels_is_said_in_one_line(
    votes, tmp_path, capsys, monkeypatch
):
    assert run("ask", votes, "-o", tmp_path / "questions.csv") == 2
    assert (
        "labels: found 4,000, expected at most 2,048 for this command"
        in capsys.readouterr().err
    )
    monkeypatch.setattr("mlconsensus.execution.memory.available_memory", lambda: 2**22)
    assert run("combine", votes, "--no-stream", "-o", tmp_path / "wide.csv") == 2
    assert (
        "--layout wide: found 200 × 4,000 scores, expected --layout ranked or long"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "wide.csv").exists()
