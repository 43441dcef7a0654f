"""Reading of annotation tools' exports, and writing of files that they import.

The exports in tests/data have the shapes that the tools' documentation shows.
"""

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.errors import InputError
from mlconsensus.io import (
    FORMATS,
    read_predictions,
    read_table,
    scan_predictions,
    write_table,
)
from mlconsensus.predictions.score_tables import ScoreTable

DATA = Path(__file__).parent.parent / "data"
NAN = float("nan")
with_missing_answers = pytest.mark.filterwarnings(
    "ignore:answers without labels read as missing"
)
with_both_readers = pytest.mark.parametrize(
    "read", [read_predictions, scan_predictions]
)


def check_scores(panel, expected):
    """Check the scores of each model; labels are sorted by name."""
    labels = sorted(panel.labels)
    blocks = [block.select(labels=labels).to_array() for block in panel.blocks()]
    scores = np.concatenate(blocks, axis=1)
    assert list(panel.models) == list(expected)
    np.testing.assert_array_equal(scores, list(expected.values()))


# Labels in order of their names: economy, politics (weather).


@with_missing_answers
@with_both_readers
@pytest.mark.parametrize("form", [None, "label-studio"])
def test_label_studio(read, form):
    panel = read(DATA / "label_studio.json", format=form, columns={"label": "topics"})
    assert panel.instances.tolist() == ["101", "102"]
    # Bob could choose economy and never did; he skipped task 102. Ann chose no label
    # there.
    check_scores(
        panel,
        {
            "ann@example.org": [[1, 1], [0, 0]],
            "bob@example.org": [[0, 1], [NAN, NAN]],
            "tagger-v2": [[0.75, 0], [0, 0.4]],
        },
    )


@with_missing_answers
def test_label_studio_with_all_controls_and_other_ids():
    panel = read_predictions(DATA / "label_studio.json", columns={"instance": "doc"})
    assert panel.instances.tolist() == ["news-1", "news-2"]
    assert sorted(panel.labels) == ["economy", "long", "politics"]


def test_label_studio_shapes_of_other_versions(tmp_path):
    region = {"from_name": "c", "to_name": "t"}
    choice = region | {"type": "choices", "value": {"choices": ["law"]}}
    taxonomy = {"taxonomy": [["art", "film"]]}
    path = region | {"type": "taxonomy", "value": taxonomy}
    annotation = {"completed_by": 3, "result": [choice, path]}
    prediction = {"result": [choice | {"score": 0.25}], "score": None}
    tasks = [
        {"id": 1, "data": {}, "annotations": [annotation], "predictions": [7]},
        {"id": 2, "data": {}, "predictions": [prediction]},
    ]
    (tmp_path / "a.json").write_text(json.dumps(tasks))
    panel = read_predictions(tmp_path / "a.json")
    check_scores(panel, {"3": [[1, 1], [NAN, NAN]], "model": [[NAN, NAN], [0, 0.25]]})
    assert set(panel.labels) == {"law", "art/film"}

    # Label Studio's storage has a file for each task.
    (tmp_path / "one.json").write_text(json.dumps(tasks[0]))
    assert read_predictions(tmp_path / "one.json").models == ("3",)

    # The export JSON-MIN.
    task = {"id": 1, "annotator": 3, "topics": {"choices": ["law", "war"]}}
    (tmp_path / "min.json").write_text(json.dumps([task]))
    panel = read_predictions(tmp_path / "min.json", columns={"label": "topics"})
    check_scores(panel, {"3": [[1, 1]]})


@with_both_readers
@pytest.mark.parametrize(("form", "strict"), [(None, False), ("doccano", True)])
def test_doccano(read, form, strict):
    panel = read(DATA / "doccano_ann.jsonl", format=form, strict=strict)
    assert panel.instances.tolist() == ["101", "102", "103"]
    check_scores(panel, {"doccano_ann": [[1, 1, 0], [0, 0, 0], [0, 0, 1]]})


@with_missing_answers
@with_both_readers
def test_prodigy(read):
    panel = read(DATA / "prodigy.jsonl")
    assert panel.instances.tolist() == ["1101", "-1102"]
    check_scores(
        panel,
        {"news-ann": [[1, 1, 0], [0, 0, 0]], "news-bob": [[0, 1, 0], [NAN, NAN, NAN]]},
    )
    texts = read(DATA / "prodigy.jsonl", columns={"instance": "text"})
    assert texts.instances.tolist() == [
        "Parliament votes on the budget",
        "A cup of tea",
    ]


@with_both_readers
def test_prodigy_one_label_at_a_time(read):
    # Politics: accepted, ignored; weather: rejected twice.
    check_scores(read(DATA / "prodigy_binary.jsonl"), {"news-ann": [[1, 0], [NAN, 0]]})


@with_both_readers
def test_argilla(read):
    panel = read(DATA / "argilla.jsonl")
    assert panel.instances.tolist() == ["r1", "r2"]
    check_scores(
        panel,
        {
            "ann-uuid": [[1, 1, 0], [0, 0, 0]],
            "bob-uuid": [[0, 1, 0], [NAN, NAN, NAN]],  # a draft is not an answer
            "tagger-v2": [[0.9, 0, 0.25], [0, 0, 1]],
        },
    )


def test_argilla_with_several_questions():
    rows = []
    for line in (DATA / "argilla.jsonl").read_text().splitlines():
        rows.append(json.loads(line) | {"tone.suggestion": "calm"})

    message = (
        r"found no argilla \(the questions \['tone', 'topics'\]: --columns label=…"
    )
    with pytest.raises(mlc.InputError, match=message):
        mlc.from_dataset(rows)
    assert mlc.from_dataset(rows, columns={"label": "tone"}).labels == ("calm",)
    assert mlc.from_dataset(rows, columns={"label": "topics"}).models == (
        "ann-uuid",
        "bob-uuid",
        "tagger-v2",
    )


class Dataset(list):
    """Looks like a Hugging Face dataset: rows as dicts, and names of classes."""

    def __init__(self, rows, **class_names):
        super().__init__(rows)
        self.features = {}
        for key, names in class_names.items():
            item = SimpleNamespace(names=names)
            self.features[key] = SimpleNamespace(feature=item)


def test_datasets_of_rows():
    rows = [
        {"text": "a", "labels": [0, 2]},
        {"text": "b", "labels": []},
        {"text": "c", "labels": None},
    ]
    with pytest.warns(
        mlc.InputWarning,
        match=r"keys left out: 3 \('text'\); answers without labels read as missing: 1",
    ):
        panel = mlc.Predictions.from_dataset(
            Dataset(rows, labels=["law", "war", "art"])
        )
    assert panel.instances.tolist() == ["0", "1", "2"]
    assert panel.labels == ("law", "art")
    check_scores(panel, {"model": [[1, 1], [0, 0], [np.nan, np.nan]]})
    one = [{"id": "x", "annotator": "ann", "topic": 1}]
    named = mlc.from_dataset(
        Dataset(one, topic=["law", "war"]), columns={"label": "topic"}
    )
    assert (named.models, named.labels) == (("ann",), ("war",))
    with pytest.raises(mlc.InputError, match="dataset, row 0: found a text, expected"):
        mlc.from_dataset({"train": rows})


def test_a_hugging_face_dataset_itself():
    datasets = pytest.importorskip(
        "datasets", reason="Hugging Face's datasets is not installed"
    )
    if not hasattr(datasets, "Dataset"):
        pytest.skip("it is our own folder of tests")
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "labels": [datasets.ClassLabel(names=["law", "war"])],
        }
    )
    rows = datasets.Dataset.from_list(
        [{"id": "a", "labels": [1]}, {"id": "b", "labels": [0, 1]}], features=features
    )
    check_scores(mlc.from_dataset(rows), {"model": [[0, 1], [1, 1]]})


@pytest.mark.parametrize(
    ("record", "form", "message"),
    [
        (
            {"id": 1, "data": {}, "annotations": [{"completed_by": 1}]},
            None,
            "found no label-studio ('result'), expected it",
        ),
        ({"id": 1, "data": {}, "annotations": ["x"]}, None, "found no label-studio ("),
        (
            {"data": {}, "annotations": []},
            None,
            "found no label-studio (no id or text: --columns instance=… names it)",
        ),
        ({"_input_hash": 3, "answer": "accept"}, None, "('label'), expected it"),
        ({"id": 3, "text": "…"}, "doccano", "('label'), expected it"),
        ({"id": 3, "labels": ["law"]}, "argilla", "found no argilla (the questions []"),
        (["law"], "prodigy", "found no prodigy ("),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_records_that_are_refused(tmp_path, record, form, message, strict):
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    with pytest.raises(mlc.InputError) as error:
        read_predictions(tmp_path / "a.jsonl", format=form, strict=strict)
    assert message in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "a.jsonl"))


def test_an_annotator_who_answers_twice_is_refused(tmp_path):
    task = {"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": []}] * 2}
    (tmp_path / "a.json").write_text(json.dumps([task]))
    with pytest.raises(mlc.InputError, match="found the instance '1' again"):
        read_predictions(tmp_path / "a.json")


# Annif: a file a document, a folder a project.


@with_both_readers
def test_annif(read):
    panel = read([DATA / "annif" / "tfidf", DATA / "annif" / "mllm"])
    assert panel.instances.tolist() == ["doc1", "doc2"]
    # mllm lists neither parliaments nor tea, and nothing at all for doc2.
    check_scores(
        panel,
        {
            "tfidf": [[0.9125, 0.5, 0], [0, 0, 0.25]],
            "mllm": [[0.75, NAN, NAN], [0, NAN, NAN]],
        },
    )
    uris = read(DATA / "annif" / "tfidf", columns={"label": "uri"})
    assert uris.labels[0] == "http://www.yso.fi/onto/yso/p1"


def test_annif_truth_and_single_files(tmp_path):
    truth = read_table(DATA / "annif" / "gold")
    assert (truth.instances.tolist(), truth.labels.tolist()) == (
        ["doc1", "doc2"],
        ["budgets", "parliaments", "tea"],
    )
    np.testing.assert_array_equal(truth.scores, [[1, 1, 0], [0, 0, 1]])
    (tmp_path / "keys.txt").write_text("budgets\ntea\n")
    assert read_table(tmp_path / "keys.txt", format="annif").labels.tolist() == [
        "budgets",
        "tea",
    ]
    assert read_table(DATA / "annif" / "tfidf" / "doc1.annif").instances.tolist() == [
        "doc1"
    ]
    (tmp_path / "d.annif").write_text("<http://x/1>\tlaw\thigh\n")
    with pytest.raises(
        mlc.InputError,
        match=r"d\.annif, line 1: found 'high', expected a score after a tab",
    ):
        read_table(tmp_path / "d.annif")


def test_a_folder_of_tables_is_not_annif(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.tsv").write_text("id\tx\n1\t1\n")
    assert read_predictions(tmp_path).models == ("a", "b")


# What tools import.

TABLE = ScoreTable(
    "Weighted",
    np.array([[0.9, 0.6], [1.02, 0.0], [0.1, NAN]]),
    ["7", "8", "a text"],
    ["law", "war"],
)


def test_predictions_for_label_studio(tmp_path):
    write_table(tmp_path / "a.json", TABLE, format="label-studio")
    tasks = json.loads((tmp_path / "a.json").read_text())
    assert [task.get("id") for task in tasks] == [7, 8, None]
    assert [task["data"]["text"] for task in tasks] == ["7", "8", "a text"]

    first, second, third = [task["predictions"][0] for task in tasks]
    assert first["result"][0]["value"]["choices"] == ["law", "war"]
    assert second["result"][0]["value"]["choices"] == ["law"]
    assert third["result"] == []
    assert first["model_version"] == "Weighted"
    # 0.1 + 0.4 labels of the first are expected to be wrong, none of the second, 0.1 of
    # the third.
    assert first["score"] == pytest.approx(1 / 1.5)
    assert second["score"] == 1.0
    assert third["score"] == pytest.approx(1 / 1.1)
    assert read_table(tmp_path / "a.json").instances.tolist() == ["7", "8", "a text"]


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("doccano", {"text": "7", "label": ["law", "war"]}),
        (
            "prodigy",
            {
                "text": "7",
                "options": [{"id": "law", "text": "law"}, {"id": "war", "text": "war"}],
                "accept": ["law", "war"],
            },
        ),
    ],
)
def test_lines_for_doccano_and_prodigy(tmp_path, form, line):
    write_table(tmp_path / "a.jsonl", TABLE, format=form)
    first, *rest = (tmp_path / "a.jsonl").read_text().splitlines()
    assert json.loads(first) == line
    assert len(rest) == 2
    back = read_table(tmp_path / "a.jsonl", format=form, columns={"instance": "text"})
    np.testing.assert_array_equal(back.scores, [[1, 1], [1, 0], [0, 0]])


def test_a_consensus_is_saved_for_a_tool(tmp_path):
    panel = mlc.Predictions(np.ones((2, 1, 1)), instances=["a text"], labels=["law"])
    mlc.combine(panel).save(tmp_path / "a.json", format="label-studio")
    (task,) = json.loads((tmp_path / "a.json").read_text())
    assert task["data"] == {"text": "a text"}


@pytest.mark.parametrize("form", ["annif", "argilla", "arff"])
def test_formats_that_cannot_be_written(tmp_path, form):
    with pytest.raises(
        mlc.InputError, match=f"output format: found '{form}', expected one of csv, "
    ) as refused:
        write_table(tmp_path / "a", TABLE, format=form)
    _, suggested_formats = str(refused.value).split("expected")
    for name in ("annif", "argilla", "arff"):
        assert name not in suggested_formats
    with pytest.raises(
        mlc.InputError, match=r"a\.odd: found the suffix '\.odd'.*\.npz$"
    ):
        write_table(tmp_path / "a.odd", TABLE)
    assert list(tmp_path.iterdir()) == []


def test_all_writable_formats_can_be_written(tmp_path):
    for name, form in FORMATS.items():
        if form.is_writable:
            write_table(tmp_path / name, TABLE, format=name)
            assert read_table(tmp_path / name, format=name).labels is not None


SHORT_RECORDS = [
    {"id": 1, "annotator": 5, "topics": {"choices": ["law", "war, peace"]}},
    {"id": 1, "annotator": 6, "topics": "law"},
    {"id": 2, "annotator": 5, "topics": "war, peace"},
    {"id": 2, "annotator": 6},
]


def write_short_export(folder: Path, form: str) -> Path:
    """Write Label Studio's short export, JSON-MIN or CSV."""
    records = []
    for number, record in enumerate(SHORT_RECORDS):
        times = {"annotation_id": number, "lead_time": 1.5, "created_at": "2026-03-01"}
        records.append(times | {"text": f"Article {number}"} | record)

    path = folder / f"export.{form}"
    if form == "json":
        path.write_text(json.dumps(records))
        return path

    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*records[0]])
        writer.writeheader()
        for record in records:
            topics = record.get("topics", "")
            if isinstance(topics, dict):
                topics = json.dumps(topics)
            writer.writerow(record | {"topics": topics})
    return path


@with_both_readers
@pytest.mark.parametrize("form", ["json", "csv"])
def test_short_exports_of_label_studio(tmp_path, read, form):
    path = write_short_export(tmp_path, form)
    panel = read(path, columns={"label": "topics"})
    # A key that is missing means that nothing was chosen.
    check_scores(panel, {"5": [[1, 1], [0, 1]], "6": [[1, 0], [0, 0]]})
    assert sorted(panel.labels) == ["law", "war, peace"]

    with pytest.raises(InputError, match="keys text, topics: --columns label=… says"):
        read(path)
