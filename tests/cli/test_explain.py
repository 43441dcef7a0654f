import json

import pytest

import mlconsensus as mlc

FILES = ["a.csv", "b.csv", "c.csv"]


@pytest.fixture
def combined(panel):
    predictions = mlc.read_predictions([panel / file for file in FILES])
    return lambda method: mlc.combine(predictions, method=method)


@pytest.mark.parametrize("method", mlc.COMBINERS)
def test_a_table_for_one_label(run, combined, method):
    ran = run(
        "explain",
        *FILES,
        "--instance",
        "2",
        "--label",
        "war",
        "--method",
        method.lower(),
    )
    assert ran.code == 0
    assert ran.out == combined(method).explain("2", "war").to_text() + "\n"
    assert ran.err.startswith("25.9% of the")
    assert ran.out.splitlines()[0].startswith("instance 2, label war: ")


def test_the_labels_put_first_are_explained(run, panel):
    ran = run("explain", *FILES, "--instance", "2", "--method", "mv", "--top-k", "2")
    titles = [line for line in ran.out.splitlines() if line.startswith("instance")]
    assert titles == [
        f"instance 2, label {label}: 1.0000 by majority_vote, 1.0000 by voting; in the "
        "label set"
        for label in ("news", "war")
    ]
    assert run("explain", *FILES, "--instance", "2").out.count("instance 2, label") == 3


def test_several_labels_in_the_order_they_are_given(run, panel):
    ran = run(
        "explain", *FILES, "--instance", "1", "--label", "war", "--label", "sport"
    )
    assert ran.out.index("label war") < ran.out.index("label sport")


def test_a_method_may_be_asked_for(run, panel):
    ran = run("explain", *FILES, "--instance", "1", "--method", "mlcm-r")
    assert "by mlcm_r" in ran.out


def test_json_holds_every_part(run, combined):
    ran = run("explain", *FILES, "--instance", "3", "--label", "news", "--json")
    (result,) = json.loads(ran.out)
    assert result == combined("weighted").explain("3", "news").to_dict()
    assert result["baseline"] + sum(
        part["contribution"] for part in result["parts"]
    ) + result["remainder"] == (pytest.approx(result["score"], abs=1e-10))
    assert {
        (part["model"], part["prediction"])
        for part in result["parts"]
        if part["label"] == "news"
    } == {
        ("a", 1.0),
        ("b", 1.0),
    }  # the third has not seen it


def test_json_of_infinite_log_odds(run, tmp_path):
    (tmp_path / "x.csv").write_text("id,news,war\n1,1,\n2,0,\n")
    ran = run(
        "explain",
        "x.csv",
        "--instance",
        "1",
        "--label",
        "war",
        "--method",
        "ds",
        "--json",
    )
    assert json.loads(ran.out)[0]["baseline"] is None


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], ["--instance"]),
        (
            ["--instance", "9"],
            ["instance: found '9', expected one of 3 names, such as '1'"],
        ),
        (
            ["--instance", "1", "--label", "sprot"],
            ["label: found 'sprot'", "did you mean 'sport'"],
        ),
        (["--instance", "1", "--method", "mlcmr"], ["did you mean 'mlcm_r'"]),
        (["--instance", "1", "--top-k", "0"], ["--top-k"]),
    ],
)
def test_bad_calls(run, panel, args, words):
    ran = run("explain", *FILES, *args)
    assert (ran.code, ran.out) == (2, "")
    last = ran.err.splitlines()[-1]
    for word in words:
        assert word in last
