"""Answers of language models in many shapes, and alternative names of labels."""

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
MISSING = [np.nan] * 3
EXPECTED = [
    [1, 1, 0],
    [0, 1, 0],
    [0.75, 1, 0.5],
    [1, 0, 1],
    MISSING,
    MISSING,
    [0, 0, 0],
    [0, 0, 1],
]
# Cases that only strict reading refuses.
STRICT_CASES = {
    "a model in two files",
    "semicolons",
    "empty file",
    "header only",
    "Parquet: no rows",
    "only blank lines",
    "only a byte order mark",
    "JSON: empty file",
    "gzip: empty file",
    "long: duplicate pair",
    "JSON: an array",
    "JSON: unknown key",
    "JSON: labels are text",
    "JSON: label twice",
}


def write_answers(folder: Path, form: str) -> Path:
    """Return the answers as lines, or written in another form."""
    if form == "lines":
        return ANSWERS

    path = folder / "answers.json"
    text = ANSWERS.read_text()
    entries = list(map(json.loads, text.splitlines()))
    if form == "array":
        path.write_text(json.dumps(entries, indent=1))
    elif form == "object":
        tags_by_instance = {entry["id"]: entry["tags"] for entry in entries}
        path.write_text(json.dumps(tags_by_instance))
    else:
        path.write_text(text)

    return path


def write_lines(folder: Path, *entries: object) -> Path:
    """Write JSON lines."""
    path = folder / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, entries)))
    return path


@pytest.mark.parametrize("form", ["lines", "array", "object", "lines called JSON"])
@pytest.mark.parametrize("read", [read_predictions, scan_predictions])
def test_answers_are_read_with_a_warning(tmp_path: Path, form: str, read) -> None:
    events = [
        "answers without labels read as missing: 2",
        "duplicate tags read once: 2 ('sports', 'weather')",
        "empty tags left out: 2",
        "texts read as tags: 1",
    ]
    if form != "object":
        events.append("keys left out: 2 ('reasoning')")

    with pytest.warns(InputWarning) as warned:
        panel = read(write_answers(tmp_path, form))
    (message,) = [str(warning.message) for warning in warned]
    assert sorted(message.split("; ")) == sorted(events)
    assert panel.models == ("answers",)
    assert panel.labels == ("sports", "politics", "weather")
    assert panel.instances.tolist() == [f"d{position}" for position in range(1, 9)]
    np.testing.assert_array_equal(next(panel.blocks(9)).to_array(), [EXPECTED])


def test_strict_refuses_such_answers() -> None:
    with pytest.raises(
        InputError, match="line 1: found the key 'id', expected instance, labels"
    ):
        read_predictions(ANSWERS, strict=True)


@pytest.mark.parametrize("case", BAD_FILES, ids=lambda case: case.name)
def test_bad_files_are_refused_without_strict(case: BadFile, tmp_path: Path) -> None:
    paths = case.make(tmp_path)
    if case.needs_user:
        pytest.skip("root may read everything")
    if case.name in STRICT_CASES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            read_predictions(paths)
        return
    with pytest.raises(InputError) as refused:
        read_predictions(paths)
    assert "\n" not in str(refused.value)


def test_bad_answers_are_reported_together(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = '{"instance": "1", "labels": ["x"]}\n'
    path.write_text(
        good
        + "Sure! Here are the tags:\n"
        + '{"instance": "2", "labels": {"x": "perhaps"}}\n'
        + good * 3
    )
    with pytest.raises(InputError) as refused:
        read_predictions(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: found 5 bad answers (line 2: found no JSON (")
    assert (
        "; line 3, label 'x': found 'perhaps'"
        "; line 4: found the instance '1' again (first in line 1); …)"
    ) in message
    assert '), expected {"instance": "7", "labels": ["a", "b"]} or ' in message
    assert message.endswith(" (--skip-bad leaves them out)")

    # They can be left out, unless they are the most.
    with pytest.raises(InputError, match="5 of 6 answers that cannot be read, such as"):
        read_predictions(path, skip_bad=True)
    with path.open("a") as file:
        for number in range(2, 6):
            file.write(f'{{"instance": "{number}", "labels": ["x"]}}\n')
    with pytest.warns(InputWarning, match=r"^bad answers left out: 5 \("):
        panel = read_predictions(path, skip_bad=True)
    assert panel.shape == (1, 5, 1)
    path.write_text("no\n")
    with pytest.raises(InputError, match="none of the answers can be read"):
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


def read_one(folder: Path, tags, **options) -> dict[str, float | None]:
    """Write and read one answer, and return the score of each label."""
    path = write_lines(folder, {"instance": 1, "labels": tags})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        table = read_table(path, **options)

    scores = {}
    for label, score in zip(table.labels, table.scores[0].tolist(), strict=True):
        scores[str(label)] = score
        if np.isnan(score):
            scores[str(label)] = None

    return scores


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
def test_texts_that_mean_an_empty_label_set(tmp_path: Path, text: str) -> None:
    path = write_lines(
        tmp_path, {"instance": 1, "labels": ["x"]}, {"instance": 2, "labels": text}
    )
    assert read_predictions(path).to_array().tolist() == [[[1.0], [0.0]]]


def test_json_that_is_cut_off_is_a_bad_answer(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path,
        {"instance": 1, "labels": ["x"]},
        {"instance": 2, "labels": '["x", "wea'},
        {"instance": 3, "labels": '["x", "wea'},
        {"instance": 4, "labels": ["x"]},
    )
    with pytest.raises(
        InputError, match="line 2, labels: found JSON that is broken or cut off"
    ):
        read_predictions(path)
    with pytest.warns(
        InputWarning,
        match=r"^bad answers left out: 2 \('2 from .*a.jsonl, line 2, labels'\)$",
    ):
        assert len(read_predictions(path, skip_bad=True)) == 2


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "answer": ["x"]}')
    with pytest.raises(
        InputError,
        match="no key 'labels' among 'id', 'answer', expected .*, or --columns label=…",
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
def test_refusals_are_missing(tmp_path: Path, tags) -> None:
    path = write_lines(
        tmp_path, {"instance": 1, "labels": ["x"]}, {"instance": 2, "labels": tags}
    )
    with pytest.warns(
        InputWarning, match="^answers without labels read as missing: 1$"
    ):
        panel = read_predictions(path)
    np.testing.assert_array_equal(panel.to_array(), [[[1.0], [np.nan]]])


@pytest.mark.parametrize(
    "text", ["ERROR: timeout", "Refused", "x and y", "fish: 0.9", "Refused.", "Y, Z."]
)
def test_texts_without_a_label_of_the_vocabulary_are_missing(
    tmp_path: Path, text: str
) -> None:
    path = write_lines(
        tmp_path,
        {"instance": 1, "labels": ["x"]},
        {"instance": 2, "labels": text},
        {"instance": 3, "labels": ["fish"]},
    )
    message = (
        f"^texts without a label of the vocabulary: 1 .'{text}'.; "
        "answers without labels read as missing: 1; "
        "labels outside the vocabulary left out: 1 "
    )
    with pytest.warns(InputWarning, match=message):
        table = read_table(path, vocabulary=["x"])
    assert table.instances.tolist() == ["1", "3"]
    assert table.scores.tolist() == [[1.0], [0.0]]


def test_none_may_be_a_label_of_the_vocabulary(tmp_path: Path) -> None:
    assert read_one(tmp_path, ["None"], vocabulary=["None"]) == {"None": 1.0}


def test_warning_about_keys_in_a_text(tmp_path: Path) -> None:
    text = '{"labels":["x"],"scores":[0.9]}'
    path = write_lines(tmp_path, {"instance": 1, "labels": text})
    with pytest.warns(InputWarning, match=r"^keys left out: 1 \('scores'\)$"):
        read_predictions(path)


def test_an_answer_that_is_cut_off_after_a_draft_is_bad(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path,
        {"instance": 1, "labels": ["x"]},
        {"instance": 2, "labels": 'Not ["x"] but ["y", "z'},
    )
    with pytest.raises(
        InputError, match="line 2, labels: found JSON that is broken or cut off"
    ):
        read_predictions(path)


@pytest.mark.parametrize("skip_bad", [False, True])
def test_the_first_error_is_raised_if_all_answers_are_bad(
    tmp_path: Path, skip_bad: bool
) -> None:
    path = write_lines(
        tmp_path, {"uid": 1, "labels": ["x"]}, {"uid": 2, "labels": ["x"]}
    )
    message = "line 1: found no key 'instance'.*, or --columns instance=… to name it; "
    with pytest.raises(InputError, match=message):
        read_predictions(path, skip_bad=skip_bad)


def test_a_model_without_answers_is_left_out(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path,
        {"model": "a", "id": 1, "labels": None},
        {"model": "b", "id": 2, "labels": ["x"]},
    )
    with pytest.warns(
        InputWarning, match="models without an answer left out: 1 .'a'.$"
    ):
        panel = read_predictions(path)
    assert panel.models == ("b",)
    assert panel.instances.tolist() == ["1", "2"]


def test_json_in_a_folder_is_read_if_there_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"instance": "1", "labels": ["x"]}]')
    assert read_predictions(tmp_path).models == ("a",)
    (tmp_path / "b.csv").write_text("id,x\n1,1\n")
    assert read_predictions(tmp_path).models == ("b",)


LABELS = ["Politics", "politics", "sports ", "colour", "mistake"]
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
    layout = "wide"
    if "long" in name:
        layout = "long"
    write_table(tmp_path / name, table, layout=layout)

    options = {"vocabulary": VOCABULARY, "aliases": ALIASES, "ignore_case": True}
    with pytest.warns(InputWarning) as warned:
        panel = read(tmp_path / name, **options)
    assert str(warned[0].message) == (
        "labels called otherwise: 3 ('politics', 'sports ', 'colour'); "
        "labels outside the vocabulary left out: 1 ('mistake')"
    )
    assert panel.labels == ("Politics", "Sports", "Color")
    result = np.concatenate([block.to_array() for block in panel.blocks(2)], axis=1)
    np.testing.assert_array_equal(result, [[[0.5, 1, 0], [1, np.nan, 0.5], [0, 0, 0]]])


@pytest.mark.parametrize("read", [read_predictions, scan_predictions])
def test_merged_labels_of_files_in_another_order(tmp_path: Path, read) -> None:
    names = np.array(["1", "2", "3"])
    scores = np.array([[1, 0], [0, 1], [1, 1]])
    for model, order in (("a", [0, 1, 2]), ("b", [2, 0, 1])):
        table = ScoreTable(model, scores[order], names[order], ["X", "x"])
        write_table(tmp_path / f"{model}.parquet", table)

    with pytest.warns(InputWarning, match="labels called otherwise: 2 "):
        panel = read(tmp_path, ignore_case=True)
    block = next(panel.blocks(9))
    np.testing.assert_array_equal(block.to_array(), np.ones((2, 3, 1)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ignore_case": True},
        {"vocabulary": ["caf\u00e9"]},
        {"vocabulary": ["cafe\u0301"]},
    ],
)
def test_accents_are_the_same_in_both_codes(tmp_path: Path, options) -> None:
    (tmp_path / "a.csv").write_text("id,caf\u00e9\n1,1\n")
    (tmp_path / "b.jsonl").write_text('{"id": 1, "labels": ["cafe\u0301"]}')
    with pytest.warns(
        InputWarning, match="^labels called otherwise: 1 .'cafe\u0301'.$"
    ):
        panel = read_predictions([tmp_path / "a.csv", tmp_path / "b.jsonl"], **options)
    assert panel.labels == ("caf\u00e9",)
    assert panel.to_array().tolist() == [[[1.0]], [[1.0]]]


@pytest.mark.parametrize("read", [read_predictions, scan_predictions])
def test_warning_about_labels_that_differ_in_case(tmp_path: Path, read) -> None:
    (tmp_path / "a.csv").write_text("id,law,War\n1,1,0\n")
    (tmp_path / "b.csv").write_text("id,law,war \n1,1,0\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    with pytest.warns(
        InputWarning,
        match="^labels: 1 differ.* such as 'war ' from 'War', .*--ignore-case",
    ):
        assert len(read(paths).labels) == 3


def test_hints_for_a_vocabulary_in_another_case(tmp_path: Path) -> None:
    path = write_lines(tmp_path, {"id": 1, "labels": "sports"})
    message = r"no answer .* but for case \(--ignore-case reads them\): 1 \('sports'\)"
    with pytest.raises(InputError, match=message):
        read_predictions(path, vocabulary=["Sports"])

    path = write_lines(tmp_path, {"id": 1, "labels": ["sports"]})
    message = r"no label of the vocabulary .*; but for case .* \(--ignore-case\)"
    with pytest.raises(InputError, match=message):
        read_predictions(path, vocabulary=["Sports"])

    path = write_lines(tmp_path, {"id": 1, "labels": ["sports", "law"]})
    message = r"left out \(--ignore-case takes .* in case alone\): 1 .'sports'"
    with pytest.warns(InputWarning, match=message):
        read_predictions(path, vocabulary=["Sports", "law"])


def test_files_of_labels(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,law,wars,art\n7,1,1,1\n")
    (tmp_path / "labels.txt").write_text("law\nwar\n\n")
    (tmp_path / "aliases.csv").write_text("name,stands for\nwars,war\n")
    files = {"vocabulary": tmp_path / "labels.txt", "aliases": tmp_path / "aliases.csv"}
    with pytest.warns(InputWarning):
        panel = mlc.read_predictions(tmp_path / "a.csv", **files)
    assert panel.labels == ("law", "war")
    with pytest.raises(InputError, match="no label of the vocabulary from model 'a'"):
        mlc.read_predictions(tmp_path / "a.csv", vocabulary=["fish"])
    (tmp_path / "aliases.csv").write_text("name\nwars\n")
    with pytest.raises(
        InputError,
        match="found 1 columns, expected 2: the name and its label it stands for",
    ):
        mlc.read_predictions(tmp_path / "a.csv", **files)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"sports": "high", "war": " Medium"}, [0.95, 0.75]),
        ([{"tag": "sports", "confidence": "low"}, {"tag": "war"}], [0.55, 1]),
        ({"sports": "yes", "war": "no"}, [1, 0]),
        ("sports: high, war: low", [0.95, 0.55]),
        ({"sports": "85%", "war": "7.5 %"}, [0.85, 0.075]),
        ("sports: 85%, war (20%)", [0.85, 0.2]),
        ({"sports": 70, "war": 20}, [0.7, 0.2]),
        ({"sports": "100%", "war": 70}, [1, 0.7]),
        ('{"sports": 70, "war": 0}', [0.7, 0]),
    ],
)
def test_confidences_in_words_and_percentages(tmp_path, labels, expected) -> None:
    path = write_lines(tmp_path, {"id": "d1", "labels": labels})
    with pytest.warns(InputWarning, match=r"percentages|confidences in words"):
        panel = read_predictions(path)
    assert panel.labels == ("sports", "war")
    np.testing.assert_allclose(panel.to_array()[0, 0], expected)


def test_numbers_of_other_scales_are_no_percentages(tmp_path: Path) -> None:
    # Scores from 1 to 10, a number above 100, and one 70 among probabilities.
    for scores in ({"a": 7, "b": 3}, {"a": 50, "b": 101}, {"a": 70, "b": 0.5}):
        path = write_lines(tmp_path, {"id": "d1", "labels": scores})
        with pytest.raises(InputError, match=r"line 1, label '[ab]': found \d+, expe"):
            read_predictions(path)

    # The other answers of the file can be used.
    path = write_lines(
        tmp_path,
        {"id": "d1", "labels": {"a": 0.4, "b": 0.5}},
        {"id": "d2", "labels": {"a": 70, "b": 0.5}},
    )
    with pytest.warns(InputWarning, match="bad answers left out: 1"):
        panel = read_predictions(path, skip_bad=True)
    np.testing.assert_array_equal(panel.to_array(), [[[0.4, 0.5]]])


def test_a_table_of_confidences(tmp_path: Path) -> None:
    path = write_lines(tmp_path, {"id": "d1", "labels": {"a": "Sure", "b": "high"}})
    table = tmp_path / "words.csv"
    table.write_text("word,score\nsure,0.9\nlow,0.1\n")
    for confidences in (str(table), {"sure": 0.9}):
        with pytest.warns(InputWarning, match=r"\('sure = 0.9', 'high = 0.95'\)"):
            panel = read_predictions(path, confidences=confidences)
        np.testing.assert_array_equal(panel.to_array(), [[[0.9, 0.95]]])

    with pytest.raises(InputError, match="word 'sure': found 2, expected a number"):
        read_predictions(path, confidences={"sure": 2})
    path = write_lines(tmp_path, {"instance": "1", "labels": {"a": "high"}})
    with pytest.raises(InputError, match="found 'high', expected a number"):
        read_predictions(path, strict=True)


def test_labels_in_nested_objects(tmp_path: Path) -> None:
    answer = {"result": {"classification": {"labels": ["a"]}}, "usage": {"tokens": 5}}
    path = write_lines(tmp_path, {"id": "d1", "output": answer})
    with pytest.warns(InputWarning, match=r"keys left out: 1 \('usage'\)"):
        panel = read_predictions(path, columns={"label": "output"})
    assert panel.labels == ("a",)

    # Two lists of labels are not one answer.
    answer = {"first": {"labels": ["a"]}, "second": {"labels": ["b"]}}
    path = write_lines(tmp_path, {"id": "d1", "output": answer})
    with pytest.raises(InputError, match="label 'first': found 'an object'"):
        read_predictions(path, columns={"label": "output"})


def test_keys_by_path(tmp_path: Path) -> None:
    entry = {"uid": {"n": "d1"}, "response": {"choices": [{"text": "law, war"}]}}
    path = write_lines(tmp_path, entry)
    columns = {"label": "response.choices[0].text", "instance": "uid.n"}
    with pytest.warns(InputWarning, match="^texts read as tags: 1$"):
        panel = read_predictions(path, columns=columns)
    assert (panel.instances.tolist(), panel.labels) == (["d1"], ("law", "war"))

    # A key may have a point in its name.
    path = write_lines(tmp_path, {"id": 1, "a.b": ["x"], "a": {"b": ["y"]}})
    with pytest.warns(InputWarning, match="keys left out"):
        assert read_predictions(path, columns={"label": "a.b"}).labels == ("x",)

    for missing in ("a.c", "a[0]", "a.b.c", "a.b[7]"):
        with pytest.raises(InputError) as refused:
            read_predictions(path, columns={"label": missing, "instance": "id"})
        assert f"found no key {missing!r} among 'id', 'a.b'" in str(refused.value)


def make_openai_result(instance: str, message: object) -> dict[str, object]:
    """Return one line of a batch of OpenAI."""
    body = {"choices": [{"message": message}]}
    response = {"status_code": 200, "body": body}
    return {"custom_id": instance, "response": response, "error": None}


def make_anthropic_result(instance: str, part: object) -> dict[str, object]:
    """Return one line of a batch of Anthropic."""
    result = {"type": "succeeded", "message": {"content": [part]}}
    return {"custom_id": instance, "result": result}


CALL = {"function": {"name": "tag", "arguments": '{"labels": ["war"]}'}}
OPENAI_BATCH = [
    make_openai_result("d1", {"content": '{"labels": ["law"]}'}),
    make_openai_result("d2", {"content": None, "tool_calls": [CALL]}),
    {"custom_id": "d3", "response": None, "error": {"code": "expired"}},
]
ANTHROPIC_BATCH = [
    make_anthropic_result("d1", {"type": "text", "text": '{"labels": ["law"]}'}),
    make_anthropic_result("d2", {"type": "tool_use", "input": {"labels": ["war"]}}),
    {"custom_id": "d3", "result": {"type": "errored", "error": {}}},
]


@pytest.mark.parametrize(
    "entries", [OPENAI_BATCH, ANTHROPIC_BATCH], ids=["OpenAI", "Anthropic"]
)
def test_batches(tmp_path: Path, entries) -> None:
    path = write_lines(tmp_path, *entries)
    with pytest.warns(InputWarning, match="^answers without labels read as missing: 1"):
        panel = read_predictions(path)
    assert (panel.models, panel.labels) == (("a",), ("law", "war"))
    assert panel.instances.tolist() == ["d1", "d2", "d3"]
    np.testing.assert_array_equal(panel.to_array()[0], [[1, 0], [0, 1], [np.nan] * 2])


@pytest.mark.parametrize("read", [read_predictions, scan_predictions])
def test_a_model_in_several_files(tmp_path: Path, read) -> None:
    paths = []
    for name, model in (("cold", "llama"), ("warm", "llama"), ("other", "mistral")):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps({"id": 1, "labels": ["law"], "model": model}))
        paths.append(path)
    assert read(paths).models == ("llama (cold)", "llama (warm)", "mistral")

    # Parts of one table are not several models.
    paths[1].write_text('{"id": 2, "labels": ["law"], "model": "llama"}')
    with pytest.raises(InputError, match=r"warm.jsonl: found other instances of the m"):
        read(paths)


def test_aliases_of_aliases(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path,
        {"instance": 1, "labels": ["sign-in"]},
        {"instance": 2, "labels": ["Sign in"]},
        {"instance": 3, "labels": ["login"]},
    )
    aliases = {"sign-in": "Sign in", "Sign in": "log-in", "log-in": "login"}
    with pytest.warns(InputWarning, match="labels called otherwise: 2"):
        panel = read_predictions(path, aliases=aliases, vocabulary=["login"])
    assert panel.to_array().tolist() == [[[1], [1], [1]]]

    # With --ignore-case an alias may be its own label in another case.
    with pytest.warns(InputWarning, match="labels called otherwise"):
        panel = read_predictions(path, aliases={"LOGIN": "login"}, ignore_case=True)
    assert "login" in panel.labels

    cycle = {"login": "sign-in", "sign-in": "Sign in", "Sign in": "login"}
    with pytest.raises(InputError, match="stand for each other .login → sign-in → Sig"):
        read_predictions(path, aliases=cycle)
