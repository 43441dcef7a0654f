"""`statistics`, `solve` and `apply`: federated sites on the command line."""

import json
import shutil

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.io import read_table, write_table
from mlconsensus.predictions.score_tables import ScoreTable

LABELS = ["flu", "cold", "cough", "fever"]
MODELS = ["ann", "bob", "carl"]


@pytest.fixture
def sites(tmp_path):
    """Make the folders of two sites and of both together, labels reordered."""
    panel, _ = mlc.datasets.make_panel(
        90, 4, 3, cardinality=1.5, missing=0.1, random_state=0
    )
    places = {
        "north": (slice(0, 30), [0, 1, 2, 3]),
        "south": (slice(30, 90), [2, 0, 3, 1]),
        "all": (slice(90), [3, 2, 1, 0]),
    }
    for place, (rows, columns) in places.items():
        (tmp_path / place).mkdir()
        ids = [
            f"{place}{position}" if place == "all" else f"{position}"
            for position in range(rows.start or 0, rows.stop)
        ]
        for model, scores in zip(MODELS, panel.to_array(), strict=True):
            table = ScoreTable(
                model,
                scores[rows][:, columns],
                ids,
                [LABELS[position] for position in columns],
            )
            write_table(tmp_path / place / f"{model}.csv", table)
    return tmp_path


def files(place, models=MODELS):
    return [f"{place}/{model}.csv" for model in models]


@pytest.mark.parametrize("method", [name.lower() for name in mlc.COMBINERS])
def test_sites_give_what_pooled_data_give(run, sites, method):
    name = next(name for name in mlc.COMBINERS if name.lower() == method)
    how = ["--method", method]
    for position in range(len(mlc.COMBINERS[name].passes) + 1):
        assert (
            run("statistics", *files("north"), *how, "-o", "n.stats", "--force").code
            == 0
        )
        assert (
            run(
                "statistics",
                *files("south", MODELS[::-1]),
                *how,
                "-o",
                "s.stats",
                "--force",
            ).code
            == 0
        )
        last = position == len(mlc.COMBINERS[name].passes)
        if last:
            output = "both.model"
        else:
            output = f"{position}.round"
        ran = run("solve", "n.stats", "s.stats", "--output", output)
        assert (ran.code, ran.out) == (0, "")
        how = ["--after", output]
        if not last:
            assert f"solved round {position + 1} of 3 of {name}" in ran.err
            assert "expected a solved model" in run("apply", output, *files("all")).err
    assert (
        ran.err
        == f"solved {name} for 3 models × 4 labels from 2 files of 90 instances → "
        f"both.model\n"
    )
    ran = run("apply", "both.model", *files("all"), "-o", "federated.csv")
    assert ran.code == 0
    assert (
        ran.err.splitlines()[-1]
        == f"applied {name} to 3 models × 90 instances × 4 labels → federated.csv"
    )
    assert (
        run("combine", *files("all"), "--method", method, "-o", "pooled.csv").code == 0
    )
    federated, pooled = (
        read_table(sites / f"{name}.csv") for name in ("federated", "pooled")
    )
    order = [list(federated.labels).index(label) for label in pooled.labels]
    np.testing.assert_allclose(
        federated.scores[:, order], pooled.scores, rtol=0, atol=1e-10
    )


def test_rounds_that_do_not_follow_each_other_are_refused(run, sites):
    for place in ("north", "south"):
        run("statistics", *files(place), "--method", "weighted", "-o", f"{place}.1")
        run("solve", f"{place}.1", "-o", f"{place}.round")
        run(
            "statistics", *files(place), "--after", f"{place}.round", "-o", f"{place}.2"
        )
    for scores, result in {
        ("solve", "north.1", "south.2"): "south.2: found sums that follow other rounds",
        ("solve", "north.2", "south.2"): "south.2: found sums that follow other rounds",
        (
            "statistics",
            *files("north"),
            "--after",
            "north.1",
        ): "north.1: found no round to go on from",
    }.items():
        ran = run(*scores, "-o", "x")
        assert (ran.code, len(ran.err.splitlines())) == (2, 1)
        assert result in ran.err


def test_what_apply_writes_is_chosen_as_for_combine(run, sites):
    run("statistics", *files("north"), "--method", "mlcm-r", "-o", "n.stats")
    run("solve", "n.stats", "-o", "n.model")
    assert (
        run(
            "apply",
            "n.model",
            *files("north"),
            "--decide",
            "instances",
            "-o",
            "tags.jsonl",
        ).code
        == 0
    )
    assert isinstance(
        json.loads((sites / "tags.jsonl").read_text().splitlines()[0])["labels"], list
    )
    ran = run(
        "apply",
        "n.model",
        *files("north"),
        "--layout",
        "ranked",
        "--top-k",
        "1",
        "--output-format",
        "tsv",
    )
    assert len(ran.out.splitlines()) == 31
    ran = run("apply", "n.model", *files("south"), "-o", "x.parquet", "--json")
    assert json.loads(ran.out)["instances"] == 60


def test_json_says_what_was_done(run, sites):
    ran = run(
        "statistics", *files("north"), "--method", "mlcm-a", "-o", "n.stats", "--json"
    )
    done = json.loads(ran.out)
    assert (done["method"], done["instances"], done["labels"], done["privacy"]) == (
        "mlcm_a",
        30,
        4,
        None,
    )
    done = json.loads(run("solve", "n.stats", "-o", "n.model", "--json").out)
    assert (done["sites"], done["instances"], done["models"]) == (1, 30, MODELS)


@pytest.mark.parametrize("method", ["mlcm-r", "mlcm-a"])
def test_private_statistics(run, sites, method):
    options = ["--method", method, "--epsilon", "5", "--delta", "1e-5"]
    for place in ("north", "south"):
        ran = run("statistics", *files(place), *options, "-o", f"{place}.stats")
        assert ran.code == 0
        assert (
            "gathered private statistics (ε = 5, δ = 1e-05) of 3 models × 4 labels"
            in ran.err
        )
        assert "the exact number of instances is not" in ran.err
    ran = run("solve", "north.stats", "south.stats", "-o", "both.model")
    budget = "ε = 5, δ = 1e-05 in each of 2 releases; those of the same people add up"
    assert f"from 2 files of private statistics ({budget})" in ran.err
    assert run("apply", "both.model", *files("all"), "-o", "out.csv").code == 0
    assert np.isfinite(read_table(sites / "out.csv").scores).all()
    done = json.loads(run("solve", "north.stats", "-o", "x.model", "--json").out)
    assert (done["instances"], done["privacy"]["epsilon"]) == (None, 5.0)


def test_a_list_of_labels_makes_sites_agree(run, sites):
    (sites / "tags.jsonl").write_text(
        '{"instance": "1", "labels": ["flu"]}\n{"instance": "2", "labels": ["fever"]}\n'
    )
    (sites / "labels.txt").write_text("flu\ncold\n\ncough\nfever\n")
    assert (
        run(
            "statistics",
            "tags.jsonl",
            "--label-names",
            "labels.txt",
            "--method",
            "mlcm-r",
            "-o",
            "t.stats",
        ).code
        == 0
    )
    assert mlc.load(sites / "t.stats").labels_ == tuple(LABELS)
    run("solve", "t.stats", "-o", "t.model")
    ran = run("apply", "t.model", "tags.jsonl")
    assert ran.out.splitlines()[0] == "instance,flu,cold,cough,fever"
    (sites / "labels.txt").write_text("flu\ncold\nfevers\n")
    ran = run(
        "statistics", "tags.jsonl", "--label-names", "labels.txt", "-o", "x.stats"
    )
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "found 'fever', expected some of 'flu', 'cold', 'fevers'" in ran.err


@pytest.fixture
def stats(run, sites):
    """Files that fit and files that do not."""
    run("statistics", *files("north"), "--method", "mlcm-r", "-o", "n.stats")
    run("statistics", *files("south"), "--method", "mlcm-r", "-o", "s.stats")
    run("statistics", *files("south"), "--method", "mlcm-a", "-o", "a.stats")
    run(
        "statistics",
        *files("south", MODELS[:2]),
        "--method",
        "mlcm-r",
        "-o",
        "two.stats",
    )
    run(
        "statistics",
        *files("south"),
        "--method",
        "mlcm-r",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "-o",
        "private.stats",
    )
    run("solve", "n.stats", "-o", "n.model")
    run("statistics", *files("north"), "-o", "f.stats")
    run("solve", "f.stats", "-o", "f.round")
    shutil.copy(sites / "n.stats", sites / "again.stats")
    shutil.copy(sites / "north" / "ann.csv", sites / "north" / "dora.csv")
    data = (sites / "n.stats").read_bytes()
    (sites / "flipped.stats").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    (sites / "short.stats").write_bytes(data[:500])
    (sites / "newer.stats").write_bytes(
        data.replace(b'version\\\\\\": 2', b'version\\\\\\": 9')
    )
    return sites


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            "solve n.stats a.stats -o x.model",
            "a.stats: found method = 'mlcm_a', expected 'mlcm_r' as in n.stats",
        ),
        (
            "solve n.stats --without s.stats -o x.model",
            "found more than there is in all, expected sums that were added",
        ),
        (
            "solve n.stats --without again.stats -o x.model",
            "again.stats: found all that there is",
        ),
        (
            "solve n.stats s.stats --without n.stats -o x.model",
            "n.stats: found it given twice, expected each once: what is",
        ),
        (
            "solve n.stats s.stats --without two.stats -o x.model",
            "two.stats: found sums that are not among those of",
        ),
        (
            "solve n.stats s.stats --sums s.stats -o x.model",
            "s.stats: found an existing file",
        ),
        (
            "solve n.stats private.stats -o x.model",
            "private.stats: found privacy = 'ε = 1, δ = 1e-06', expected 'none' as "
            "in n.stats",
        ),
        (
            "solve private.stats n.stats -o x.model",
            "n.stats: found privacy = 'none', expected 'ε = 1, δ = 1e-06' as in "
            "private.stats",
        ),
        (
            "solve n.stats again.stats -o x.model",
            "again.stats: found sums that are in n.stats too",
        ),
        (
            "solve n.stats n.model -o x.model",
            "n.model: found a solved model, which has no statistics",
        ),
        (
            "solve n.stats flipped.stats -o x.model",
            "flipped.stats: found content that does not fit its checksum",
        ),
        (
            "solve short.stats -o x.model",
            "short.stats: found no statistics or model file",
        ),
        (
            "solve newer.stats -o x.model",
            "newer.stats: found version 9 of the format, expected 2",
        ),
        (
            "solve north/ann.csv -o x.model",
            "north/ann.csv: found no statistics or model file",
        ),
        ("solve nn.stats -o x.model", "did you mean 'n.stats'?"),
        ("solve n.stats -o s.stats", "s.stats: found an existing file"),
        (
            "solve n.stats -o n.stats --force",
            "n.stats: found among the input files too",
        ),
        ("solve -o x.model", "FILE"),
        (
            "apply n.model north/ann.csv north/dora.csv -o x.csv",
            "models: found 'dora', expected some of 'ann', 'bob'",
        ),
        ("apply flipped.stats north/ann.csv -o x.csv", "flipped.stats: found content"),
        (
            "apply n.model north/ann.csv north/bob.csv north/carl.csv -o x.cvs",
            "x.cvs: found the suffix '.cvs'",
        ),
        ("apply n.model -o x.csv", "FILE"),
        (
            "statistics north/ann.csv -o x.stats --method mlcmr",
            "did you mean 'mlcm_r'?",
        ),
        ("statistics north/ann.csv --method mlcm-r", "--output"),
        (
            "statistics north/ann.csv --after f.round --method mlcm-r -o x",
            "--method: found mlcm_r, expected weighted_consensus as in f",
        ),
        (
            "statistics north/ann.csv -o x.stats --epsilon 1",
            "--epsilon: found no --delta, expected both",
        ),
        (
            "statistics north/ann.csv -o x.stats --delta 1e-6",
            "--delta: found no --epsilon, expected both",
        ),
        (
            "statistics north/ann.csv -o x.stats --epsilon 1 --delta 1e-6",
            "found weighted_consensus, for whose statistics no bound",
        ),
        ("statistics north/ann.csv -o x.stats --clip 1", "--clip: found without"),
        (
            "statistics north/ann.csv -o x.stats --method mlcm-r --epsilon -1 "
            "--delta 1e-6",
            "epsilon: found -1.0",
        ),
        (
            "statistics north/ann.csv -o x.stats --method mlcm-r --epsilon 1 --delta 2",
            "delta: found 2.0",
        ),
        (
            "statistics north/ann.csv -o x.stats --method mlcm-r --epsilon 0.01 "
            "--delta 0.5",
            "found 0.5 for 30 instances, of which 15 may be shown as they are, "
            "expected at most a tenth of 1 / 30",
        ),
        (
            "statistics north/ann.csv -o x.stats --label-names none.txt",
            "none.txt: found no such file",
        ),
        (
            "statistics north/ann.csv -o x.stats --dask nowhere",
            "--dask: found 'nowhere', expected an address",
        ),
        (
            "statistics north/ann.csv -o x.stats --no-stream --dask",
            "--dask: found together with --no-stream",
        ),
        (
            "apply n.model north/ann.csv -o x.csv --dask nowhere",
            "--dask: found 'nowhere', expected an address",
        ),
        (
            "apply n.model north/ann.csv -o x.jsonl --dask",
            "x.jsonl: found a format that cannot be written block",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(run, stats, args, words):
    before = sorted(path.name for path in stats.iterdir())
    ran = run(*args.split())
    assert (ran.code, ran.out) == (2, "")
    *notes, error = ran.err.splitlines()
    assert words in error
    assert all("predictions are missing" in note for note in notes)
    assert sorted(path.name for path in stats.iterdir()) == before


def test_statistics_that_would_not_fit_are_streamed(run, sites, monkeypatch):
    monkeypatch.setattr("mlconsensus.execution.memory.available_memory", lambda: 100)
    monkeypatch.setenv("MLCONSENSUS_LIMIT", "1")
    ran = run("statistics", *files("north"), "-o", "n.stats")
    assert ran.code == 0
    assert ran.err.startswith(
        "streaming: the files would take more than half of the memory that is free"
    )
    assert (
        "streaming"
        not in run(
            "statistics", *files("north"), "--no-stream", "-o", "other.stats"
        ).err
    )


def test_files_that_stay_on_disk(run, sites):
    """Streamed or read whole, the files and the consensus are the same."""
    options = ["--method", "mlcm-r"]
    assert (
        run(
            "statistics", *files("north"), *options, "--stream", "-o", "disk.stats"
        ).code
        == 0
    )
    assert (
        run(
            "statistics", *files("north"), *options, "--no-stream", "-o", "memory.stats"
        ).code
        == 0
    )
    one, other = (
        np.asarray(mlc.load(sites / f"{name}.stats").statistics_.walk)
        for name in ("disk", "memory")
    )
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)
    assert run("solve", "disk.stats", "-o", "north.model").code == 0
    for extra in (
        [],
        ["--decide", "instances"],
        ["--top-k", "2", "--layout", "ranked"],
    ):
        place = files("south", MODELS[::-1])
        ran = run(
            "apply",
            "north.model",
            *place,
            *extra,
            "--stream",
            "-o",
            "disk.csv",
            "--force",
        )
        assert (
            ran.err.splitlines()[-1]
            == "applied mlcm_r to 3 models × 60 instances × 4 labels → disk.csv"
        )
        assert (
            run(
                "apply",
                "north.model",
                *place,
                *extra,
                "--no-stream",
                "-o",
                "memory.csv",
                "--force",
            ).code
            == 0
        )
        assert (sites / "disk.csv").read_text() == (sites / "memory.csv").read_text()
    budget = ["--epsilon", "1000", "--delta", "1e-6"]
    assert (
        run(
            "statistics",
            *files("north"),
            *options,
            *budget,
            "--stream",
            "-o",
            "private.stats",
        ).code
        == 0
    )
    np.testing.assert_allclose(
        np.asarray(mlc.load(sites / "private.stats").statistics_.walk), other, atol=0.5
    )
    shutil.copy(sites / "south" / "ann.csv", sites / "dora.csv")
    ran = run("apply", "north.model", "dora.csv", "--stream", "-o", "x.csv")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert not [path for path in sites.iterdir() if "x.csv" in path.name]


@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
def test_a_rater_is_missing_and_a_day_is_taken_back(run, sites, stream):
    run("statistics", *files("north"), "--method", "mlcm-r", "-o", "n.stats")
    run(
        "statistics",
        *files("south", MODELS[:2]),
        "--method",
        "mlcm-r",
        "-o",
        "two.stats",
    )
    ran = run(
        "solve", "n.stats", "two.stats", "--sums", "sum.stats", "-o", "both.model"
    )
    assert (
        ran.err.splitlines()[0]
        == "models that some files do not have: 'carl'; their predictions count as "
        "missing"
    )
    assert (sites / "sum.stats").exists()
    # A site that lacks a rater can use the model.
    assert (
        run(
            "apply",
            "both.model",
            *files("south", MODELS[:2]),
            stream,
            "-o",
            "south.csv",
        ).code
        == 0
    )
    ran = run("solve", "sum.stats", "--without", "two.stats", "-o", "north.model")
    assert ran.err == (
        "solved mlcm_r for 3 models × 4 labels from 1 file, without 1 file, of "
        "30 instances → north.model\n"
    )
    run("solve", "n.stats", "-o", "alone.model")
    panel = mlc.read_predictions([sites / name for name in files("north")])
    one, other = (
        mlc.load(sites / f"{name}.model").transform(panel)
        for name in ("north", "alone")
    )
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_a_filter_of_sites_with_other_raters(run, sites):
    """Later passes of a method include a model that predicts nothing at a site."""
    part = {"north": files("north"), "south": files("south", MODELS[:2])}
    for position in (1, 2, 3):
        if position == 1:
            after = []
        else:
            after = ["--after", f"round.{position - 1}"]
        for site in part:
            assert (
                run("statistics", *part[site], *after, "-o", f"{site}.{position}").code
                == 0
            )
        assert (
            run(
                "solve",
                f"north.{position}",
                f"south.{position}",
                "-o",
                f"round.{position}",
            ).code
            == 0
        )
    assert mlc.load(sites / "round.3").models_ == tuple(MODELS)
    assert run("apply", "round.3", *part["south"], "-o", "south.csv").code == 0


def test_the_site_that_has_answers_corrects_the_model_of_all(run, tmp_path):
    panel, truth = mlc.datasets.make_panel(300, 4, 3, cardinality=1.5, random_state=0)
    scores = panel.to_array().copy()
    ids = [str(position) for position in range(300)]
    scores[1:] = (np.random.default_rng(0).random((300, 4)) < 0.3) ^ (
        np.random.default_rng(1).random((2, 300, 4)) < 0.1
    )
    scores[0] = truth
    for model, part in zip(MODELS, scores, strict=True):
        write_table(tmp_path / f"{model}.csv", ScoreTable(model, part, ids, LABELS))
    write_table(
        tmp_path / "gold.csv",
        ScoreTable("gold", truth[:120].astype(float), ids[:120], LABELS),
    )
    mlc.save(
        mlc.WeightedConsensus().fit(mlc.Predictions(scores, MODELS, LABELS)),
        tmp_path / "all.model",
    )
    here = [f"{model}.csv" for model in MODELS]
    assert run("apply", "all.model", *here, "-o", "without.csv").code == 0
    assert (
        run("apply", "all.model", *here, "--gold", "gold.csv", "-o", "with.csv").code
        == 0
    )
    without, result = (
        np.asarray(read_table(tmp_path / f"{name}.csv").scores)[120:]
        for name in ("without", "with")
    )
    assert (
        mlc.metrics.micro_auc(truth[120:], result)
        > mlc.metrics.micro_auc(truth[120:], without) + 0.05
    )
