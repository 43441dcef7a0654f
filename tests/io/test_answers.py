"""Answers of language models as they come, and labels of many names."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from bad_files import BAD_FILES, BadFile

import mlconsensus as mlc
from mlconsensus.errors import InputError, InputWarning
from mlconsensus.io import read_predictions, read_table, scan_predictions, write_table
from mlconsensus.predictions.score_tables import ScoreTable

ANSWERS = Path(__file__).parent.parent / "data" / "answers.jsonl"
# Instances d1, …, d8 (d5 and d6 got no answer); labels sports, politics, weather.
SILENCE = [np.nan] * 3
EXPECTED = [
    [1, 1, 0],
    [0, 1, 0],
    [0.75, 1, 0.5],
    [1, 0, 1],
    SILENCE,
    SILENCE,
    [0, 0, 0],
    [0, 0, 1],
]
# What is refused only by a strict reader.
READ = {
    "long: duplicate pair",
    "JSON: an array",
    "JSON: unknown key",
    "JSON: labels are text",
    "JSON: label twice",
}


def as_array(folder: Path) -> Path:
    entries = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    (folder / "answers.json").write_text(json.dumps(entries, indent=1))
    return folder / "answers.json"


def as_object(folder: Path) -> Path:
    entries = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    (folder / "answers.json").write_text(
        json.dumps({entry["id"]: entry["tags"] for entry in entries})
    )
    return folder / "answers.json"


def as_lines_called_json(folder: Path) -> Path:
    (folder / "answers.json").write_bytes(ANSWERS.read_bytes())
    return folder / "answers.json"


def as_it_is(folder: Path) -> Path:
    return ANSWERS


@pytest.mark.parametrize("form", [as_it_is, as_array, as_object, as_lines_called_json])
@pytest.mark.parametrize("read", [read_predictions, scan_predictions])
def test_answers_are_read_and_what_was_done_is_said(tmp_path: Path, form, read) -> None:
    with pytest.warns(InputWarning) as said:
        panel = read(form(tmp_path))
    (line,) = [str(warning.message) for warning in said]
    if form is as_object:
        keys = []
    else:
        keys = ["keys left out: 2 ('reasoning')"]
    assert sorted(line.split("; ")) == sorted(
        [
            *keys,
            "duplicate tags read once: 2 ('sports', 'weather')",
            "empty tags left out: 2",
            "texts read as tags: 1",
            "answers without labels read as missing: 2",
        ]
    )
    assert (panel.models, panel.labels) == (
        ("answers",),
        ("sports", "politics", "weather"),
    )
    assert panel.instances.tolist() == [f"d{position}" for position in range(1, 9)]
    np.testing.assert_array_equal(next(panel.blocks(9)).to_array(), [EXPECTED])


def test_strict_refuses_them() -> None:
    with pytest.raises(
        InputError, match="line 1: found the key 'id', expected instance, labels"
    ):
        read_predictions(ANSWERS, strict=True)


@pytest.mark.parametrize("case", BAD_FILES, ids=lambda case: case.name)
def test_what_is_bad_stays_bad(case: BadFile, tmp_path: Path) -> None:
    paths = case.make(tmp_path)
    if case.needs_user:
        pytest.skip("root may read everything")
    if case.name in READ:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            read_predictions(paths)
        return
    with pytest.raises(InputError) as refused:
        read_predictions(paths)
    assert "\n" not in str(refused.value)


def test_bad_answers_are_reported_all_at_once_and_can_be_skipped(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"
    good = '{"instance": "1", "labels": ["x"]}\n'
    path.write_text(
        good
        + "Sure! Here are the tags:\n"
        + '{"instance": "2", "labels": {"x": "high"}}\n'
        + good * 3
    )
    with pytest.raises(InputError) as refused:
        read_predictions(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: found 5 bad answers (line 2: found no JSON (")
    assert (
        "; line 3, label 'x': found 'high'; line 4: found the instance '1' again (first in line 1); …)"
        in message
    )
    assert message.endswith("expected none (--skip-bad leaves them out)")
    with pytest.warns(InputWarning, match=r"^bad answers left out: 5 \("):
        panel = read_predictions(path, skip_bad=True)
    assert panel.shape == (1, 1, 1)
    path.write_text("no\n")
    with pytest.raises(InputError, match="no answer that can be read"):
        read_predictions(path, skip_bad=True)


def test_an_answer_after_a_refusal_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"instance": "1", "labels": null}\n{"instance": "1", "labels": ["x"]}\n'
    )
    with pytest.warns(
        InputWarning, match="^answers without labels read as missing: 1$"
    ):
        assert read_predictions(path).to_array().tolist() == [[[1.0]]]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"x": 0.5, "y": None}, {"x": 0.5, "y": None}),
        ([{"tag": "x", "probability": 0.5}, {"name": "x", "score": None}], {"x": 0.5}),
        ({"label": "x", "score": 0.5}, {"x": 0.5}),
        ("- x\n- y z\n", {"x": 1.0, "y z": 1.0}),
        ('{"x": 0.5}', {"x": 0.5}),
        ("I, II", {"I": 1.0, "II": 1.0}),
        (
            'Here are the tags:\n```json\n["x", "y"]\n```\nLet me know!',
            {"x": 1.0, "y": 1.0},
        ),
        ('Here you go: ["x"] as in [1]', {"x": 1.0}),
        ('<think>perhaps ["z"]</think>\n["x"]', {"x": 1.0}),
        ("[3, 7]", {"3": 1.0, "7": 1.0}),
        ('```json\n{"labels": ["x"]}\n```', {"x": 1.0}),
        ({"tags": {"x": 0.5}}, {"x": 0.5}),
        ({"x": 0.5, "labels": 0.25}, {"x": 0.5, "labels": 0.25}),
        ([["x", 0.5], ["y", 1]], {"x": 0.5, "y": 1.0}),
        ("1. x\n2. y", {"x": 1.0, "y": 1.0}),
        ("x\n2. Bundesliga", {"x": 1.0, "2. Bundesliga": 1.0}),
        ("Tags: x, y", {"x": 1.0, "y": 1.0}),
        ("Here are the tags:\n- x\n- y\nAnything else?", {"x": 1.0, "y": 1.0}),
        ("x [1], y [2]", {"x [1]": 1.0, "y [2]": 1.0}),
        ('First I thought ["x","y","z"] but final answer: ["w"]', {"w": 1.0}),
        (
            'Not {"x": 1, "y": 1, "z": 1}; but {"w": 0.5} as in [1] and [2, 3].',
            {"w": 0.5},
        ),
        ("Sports, Politics.", {"Sports": 1.0, "Politics": 1.0}),
        ("- law.\n- U.S.", {"law": 1.0, "U.S.": 1.0}),
        ("sports: 0.75, café: 0.25", {"sports": 0.75, "café": 0.25}),
        ("sports (1), law (.5)", {"sports": 1.0, "law": 0.5}),
        ("title: 1, part two", {"title: 1": 1.0, "part two": 1.0}),
        ("sports | politics", {"sports": 1.0, "politics": 1.0}),
        ("<labels>sports, politics</labels>", {"sports": 1.0, "politics": 1.0}),
        ('{"labels": "sports, politics"}', {"sports": 1.0, "politics": 1.0}),
        ('[{"labels":["sports"]}]', {"sports": 1.0}),
        ('[{"sports": 0.5}, {"law": 1}]', {"sports": 0.5, "law": 1.0}),
        ('{"sports": "0.5"}', {"sports": 0.5}),
        ('{"label": "x", "confidence": 0.5}', {"x": 0.5}),
        ('{"labels": ["x"], "label": "y", "score": 0.5}', {"x": 1.0}),
        ("['sports', \"women's rights\"]", {"sports": 1.0, "women's rights": 1.0}),
        ("So: {'labels': ['sports']}", {"sports": 1.0}),
        ({"x": 0.5, "labels": None}, {"x": 0.5, "labels": None}),
        (["none", "x"], {"none": 1.0, "x": 1.0}),
    ],
)
def test_forms_of_tags(tmp_path: Path, tags, expected) -> None:
    assert read_one(tmp_path, tags) == expected


def read_one(folder: Path, tags, **rules) -> dict[str, float | None]:
    (folder / "a.jsonl").write_text(json.dumps({"instance": 1, "labels": tags}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        table = read_table(folder / "a.jsonl", **rules)
    result = dict(zip(table.labels.tolist(), table.scores[0].tolist(), strict=True))
    return {name: None if score != score else score for name, score in result.items()}


@pytest.mark.parametrize(
    "text",
    [
        "No applicable labels.",
        "None of the above",
        "None of these",
        "There are no tags that apply",
        "No tags.",
        "Nothing",
        "Nothing applies.",
        "[]",
        '{"labels": []}',
        'Not ["x"] but []',
    ],
)
def test_saying_that_no_label_applies_is_no_silence(tmp_path: Path, text: str) -> None:
    lines = [{"instance": 1, "labels": ["x"]}, {"instance": 2, "labels": text}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert read_predictions(tmp_path / "a.jsonl").to_array().tolist() == [
        [[1.0], [0.0]]
    ]


def test_json_that_is_cut_off_is_a_bad_answer(tmp_path: Path) -> None:
    lines = [
        {"instance": 1, "labels": ["x"]},
        *({"instance": position, "labels": '["x", "wea'} for position in (2, 3)),
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(
        InputError, match="line 2, labels: found JSON that is broken or cut off"
    ):
        read_predictions(tmp_path / "a.jsonl")
    with pytest.warns(
        InputWarning,
        match=r"^bad answers left out: 2 \('2 from .*a.jsonl, line 2, labels'\)$",
    ):
        assert len(read_predictions(tmp_path / "a.jsonl", skip_bad=True)) == 1


def test_a_key_that_is_lacking_is_named_beside_those_that_are_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "answer": ["x"]}')
    with pytest.raises(
        InputError,
        match="no key 'labels' among 'id', 'answer', expected .*, or --columns label=… to name it",
    ):
        read_predictions(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    "tags",
    [
        "I cannot answer.",
        "None",
        "NONE.",
        "(none)",
        "n/a",
        ["none"],
        ["N/A"],
        '["none"]',
        '{"labels": "none"}',
        '{"labels": null}',
        "This text is about sports and nothing else",
    ],
)
def test_refusals_are_silence(tmp_path: Path, tags) -> None:
    lines = [{"instance": 1, "labels": ["x"]}, {"instance": 2, "labels": tags}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.warns(
        InputWarning, match="^answers without labels read as missing: 1$"
    ):
        panel = read_predictions(tmp_path / "a.jsonl")
    np.testing.assert_array_equal(panel.to_array(), [[[1.0], [np.nan]]])


@pytest.mark.parametrize(
    "text", ["ERROR: timeout", "Refused", "x and y", "fish: 0.9", "Refused.", "Y, Z."]
)
def test_texts_without_a_label_of_the_vocabulary_are_silence(
    tmp_path: Path, text: str
) -> None:
    lines = [
        {"instance": 1, "labels": ["x"]},
        {"instance": 2, "labels": text},
        {"instance": 3, "labels": ["fish"]},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = f"texts without a label of the vocabulary: 1 .'{text}'.; answers without labels read as missing: 1; "
    with pytest.warns(
        InputWarning, match=f"^{said}labels outside the vocabulary left out: 1 "
    ):
        table = read_table(tmp_path / "a.jsonl", vocabulary=["x"])
    assert (table.instances.tolist(), table.scores.tolist()) == (
        ["1", "3"],
        [[1.0], [0.0]],
    )


def test_none_may_be_a_label_of_the_vocabulary(tmp_path: Path) -> None:
    assert read_one(tmp_path, ["None"], vocabulary=["None"]) == {"None": 1.0}


def test_keys_beside_labels_are_named_in_a_text_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"instance": 1, "labels": '{"labels":["x"],"scores":[0.9]}'})
    )
    with pytest.warns(InputWarning, match=r"^keys left out: 1 \('scores'\)$"):
        read_predictions(tmp_path / "a.jsonl")


def test_an_answer_that_is_cut_off_after_a_draft_is_bad(tmp_path: Path) -> None:
    lines = [
        {"instance": 1, "labels": ["x"]},
        {"instance": 2, "labels": 'Not ["x"] but ["y", "z'},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(
        InputError, match="line 2, labels: found JSON that is broken or cut off"
    ):
        read_predictions(tmp_path / "a.jsonl")


@pytest.mark.parametrize("skip_bad", [False, True])
def test_if_no_answer_can_be_read_the_first_fault_says_why(
    tmp_path: Path, skip_bad: bool
) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"uid": 1, "labels": ["x"]}\n{"uid": 2, "labels": ["x"]}\n'
    )
    with pytest.raises(
        InputError,
        match="line 1: found no key 'instance'.*, or --columns instance=… to name it; ",
    ):
        read_predictions(tmp_path / "a.jsonl", skip_bad=skip_bad)


def test_a_model_that_never_answers_is_left_out_and_named(tmp_path: Path) -> None:
    lines = [
        {"model": "a", "id": 1, "labels": None},
        {"model": "b", "id": 2, "labels": ["x"]},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.warns(
        InputWarning, match="models without an answer left out: 1 .'a'.$"
    ):
        panel = read_predictions(tmp_path / "a.jsonl")
    assert (panel.models, panel.instances.tolist()) == (("b",), ["1", "2"])


def test_a_folder_takes_json_only_where_there_is_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"instance": "1", "labels": ["x"]}]')
    assert read_predictions(tmp_path).models == ("a",)
    (tmp_path / "b.csv").write_text("id,x\n1,1\n")
    assert read_predictions(tmp_path).models == ("b",)


LABELS = ["Politics", "politics", "sports ", "colour", "mistake"]
WANTED = {"Politics": 0, "politics": 0, "sports ": 1, "colour": 2}
VOCABULARY = ["Politics", "Sports", "Color"]
ALIASES = {"COLOUR": "color"}


@pytest.mark.parametrize(
    "name",
    ["a.csv", "a.parquet", "a.feather", "a.jsonl", "a.npz", "long.csv", "long.parquet"],
)
@pytest.mark.parametrize("read", [read_predictions, scan_predictions])
def test_vocabulary_aliases_and_case_in_every_format(
    tmp_path: Path, name: str, read
) -> None:
    scores = np.array([[0.5, 0.25, 1, 0, 1], [0, 1, np.nan, 0.5, 1], [0, 0, 0, 0, 0.5]])
    table = ScoreTable("a", scores, ["1", "2", "3"], LABELS)
    write_table(tmp_path / name, table, layout="long" if "long" in name else "wide")
    options = {"vocabulary": VOCABULARY, "aliases": ALIASES, "ignore_case": True}
    with pytest.warns(InputWarning) as said:
        panel = read(tmp_path / name, **options)
    assert str(said[0].message) == (
        "labels called otherwise: 3 ('politics', 'sports ', 'colour'); "
        "labels outside the vocabulary left out: 1 ('mistake')"
    )
    assert panel.labels == ("Politics", "Sports", "Color")
    result = np.concatenate([block.to_array() for block in panel.blocks(2)], axis=1)
    np.testing.assert_array_equal(result, [[[0.5, 1, 0], [1, np.nan, 0.5], [0, 0, 0]]])


def test_labels_in_another_order_stream_as_they_are_read(tmp_path: Path) -> None:
    for name, order in (("a", [0, 1, 2]), ("b", [2, 0, 1])):
        scores = np.array([[1, 0], [0, 1], [1, 1]])[order]
        write_table(
            tmp_path / f"{name}.parquet",
            ScoreTable(name, scores, np.array(list("123"))[order], ["X", "x"]),
        )
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    with pytest.warns(InputWarning, match="labels called otherwise: 2 "):
        read, scanned = (
            how(paths, ignore_case=True) for how in (read_predictions, scan_predictions)
        )
    np.testing.assert_array_equal(read.to_array(), np.ones((2, 3, 1)))
    np.testing.assert_array_equal(
        next(scanned.blocks(9)).to_array(), np.ones((2, 3, 1))
    )


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"ignore_case": True},
        {"vocabulary": ["caf\u00e9"]},
        {"vocabulary": ["cafe\u0301"]},
    ],
)
def test_accents_are_one_however_they_are_coded(tmp_path: Path, rules) -> None:
    (tmp_path / "a.csv").write_text("id,caf\u00e9\n1,1\n")
    (tmp_path / "b.jsonl").write_text('{"id": 1, "labels": ["cafe\u0301"]}')
    with pytest.warns(
        InputWarning, match="^labels called otherwise: 1 .'cafe\u0301'.$"
    ):
        panel = read_predictions([tmp_path / "a.csv", tmp_path / "b.jsonl"], **rules)
    assert (panel.labels, panel.to_array().tolist()) == (
        ("caf\u00e9",),
        [[[1.0]], [[1.0]]],
    )


@pytest.mark.parametrize("read", [read_predictions, scan_predictions])
def test_labels_that_differ_in_case_or_spaces_alone_are_pointed_out(
    tmp_path: Path, read
) -> None:
    (tmp_path / "a.csv").write_text("id,law,War\n1,1,0\n")
    (tmp_path / "b.csv").write_text("id,law,war \n1,1,0\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    with pytest.warns(
        InputWarning,
        match="^labels: 1 differ.* such as 'war ' from 'War', .*--ignore-case",
    ):
        assert len(read(paths).labels) == 3


def test_a_vocabulary_in_another_case_hints_at_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "labels": "sports"}\n')
    with pytest.raises(
        InputError,
        match=r"no answer .* but for case \(--ignore-case reads them\): 1 \('sports'\)",
    ):
        read_predictions(tmp_path / "a.jsonl", vocabulary=["Sports"])
    (tmp_path / "a.jsonl").write_text('{"id": 1, "labels": ["sports"]}\n')
    with pytest.raises(
        InputError,
        match=r"no label of the vocabulary .*; but for case there are some \(--ignore-case\)",
    ):
        read_predictions(tmp_path / "a.jsonl", vocabulary=["Sports"])
    (tmp_path / "a.jsonl").write_text('{"id": 1, "labels": ["sports", "law"]}\n')
    with pytest.warns(
        InputWarning,
        match=r"left out \(--ignore-case takes those that differ in case alone\): 1 .'sports'",
    ):
        read_predictions(tmp_path / "a.jsonl", vocabulary=["Sports", "law"])


def test_files_of_labels(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,law,wars,art\n7,1,1,1\n")
    (tmp_path / "labels.txt").write_text("law\nwar\n\n")
    (tmp_path / "aliases.csv").write_text("name,stands for\nwars,war\n")
    files = {"vocabulary": tmp_path / "labels.txt", "aliases": tmp_path / "aliases.csv"}
    with pytest.warns(InputWarning):
        assert mlc.read_predictions(tmp_path / "a.csv", **files).labels == (
            "law",
            "war",
        )
    with pytest.raises(InputError, match="no label of the vocabulary from model 'a'"):
        mlc.read_predictions(tmp_path / "a.csv", vocabulary=["fish"])
    (tmp_path / "aliases.csv").write_text("name\nwars\n")
    with pytest.raises(
        InputError,
        match="found 1 columns, expected 2: the name and its label it stands for",
    ):
        mlc.read_predictions(tmp_path / "a.csv", **files)
