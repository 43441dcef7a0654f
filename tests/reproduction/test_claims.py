"""Claims and tables of the paper, judged on the paper's own values."""

import json
import re
from dataclasses import replace

import pytest

from mlconsensus.metrics.ranking import RANKING_METRICS
from mlconsensus.reproduction import (
    Settings,
    as_json,
    as_markdown,
    as_text,
    judge_claims,
)
from mlconsensus.reproduction.paper import tables
from mlconsensus.reproduction.protocol import MeanOfRepeats, Results


@pytest.fixture
def papers_own():
    """Make results of the paper's values; one error replaces a misprint."""
    made = {
        name: {
            method: {
                metric: MeanOfRepeats(
                    mean=row[metric], std=0.001, paper=printed.get_value(method, metric)
                )
                for metric in RANKING_METRICS
            }
            for method, row in printed.cells.items()
        }
        for name, printed in tables().items()
    }
    return Results(Settings().checked(), dict.fromkeys(made, 100), made)


def judge(results):
    return {judged.claim: judged.result for judged in judge_claims(results)}


def test_the_papers_figures_are_as_printed():
    assert tables()["bibtex"].cells["MLCM-a"] == dict(
        zip(RANKING_METRICS, (0.8645, 0.3790, 0.1755, 0.4937), strict=True)
    )
    assert {
        name: table.misprinted for name, table in tables().items() if table.misprinted
    } == {"rcv1subset2": {"ranking_loss"}}


def test_the_papers_claims_hold_in_its_own_tables_but_the_last_two(papers_own):
    result = judge(papers_own)
    assert {claim: text for claim, text in result.items() if text != "holds"} == {
        "the algorithms are ahead of MV in one error": "holds in part",
        "the algorithms are ahead of MV in average precision": "holds in part",
    }


def test_claims_that_do_not_hold(papers_own):
    table = papers_own.tables["enron"]
    worse = {
        method: {
            metric: replace(figure, mean=table["BM"][metric].mean)
            for metric, figure in row.items()
        }
        for method, row in table.items()
    }
    result = judge_claims(papers_own._replace(tables={"enron": worse}))
    assert {judged.result for judged in result} == {"does not"}
    assert (
        result[0].ours
        == "better in 0 of 4 comparisons; not in enron: micro auc, one error, ranking "
        "loss, average precision"
    )
    assert result[1].ours == "0.0% (enron)"


def test_a_gain_of_half_the_size_holds_in_part(papers_own):
    table = papers_own.tables["medical"]
    loss = MeanOfRepeats(mean=0.0989 * (1 - 0.3), std=0, paper=None)
    weaker = table | {"MV": table["MV"] | {"ranking_loss": loss}}
    assert (
        judge_claims(papers_own._replace(tables={"medical": weaker}))[1].result
        == "holds in part"
    )


def test_where_the_paper_is_misprinted_there_is_nothing_to_compare(papers_own):
    only = papers_own._replace(tables={"rcv1subset2": papers_own.tables["rcv1subset2"]})
    assert judge_claims(only)[1].paper == "no figures"


def test_json(papers_own):
    read = json.loads(as_json(papers_own))
    assert read["settings"]["learner"] == "svm"
    assert read["settings"]["repeats"] == 10
    assert read["enron"]["MV"]["ranking_loss"] == {
        "mean": 0.1848,
        "std": 0.001,
        "paper": 0.1848,
        "runs": [],
    }
    assert read["rcv1subset2"]["MV"]["ranking_loss"]["paper"] is None
    assert read["claims"][0]["result"] == "holds"


@pytest.mark.parametrize("render", [as_text, as_markdown])
def test_tables(papers_own, render):
    text = render(papers_own)
    rows = [line for line in text.splitlines() if re.match(r"(\| )?MLCM-r [ |]", line)]
    assert len(rows) == 6
    assert "0.1003*" in rows[0].replace("\\", "")
    assert "(0.2955)" in rows[3]
    assert "+0.0000" in rows[0]
    assert "not compared" in text
    assert "holds in part" in text


def test_a_method_that_the_paper_does_not_have(papers_own):
    table = papers_own.tables["enron"]
    more = {
        "BGCM": {
            metric: replace(figure, paper=None)
            for metric, figure in table["MV"].items()
        }
    }
    text = as_text(papers_own._replace(tables={"enron": table | more}))
    row = next(line for line in text.splitlines() if line.startswith("BGCM"))
    assert row.split() == ["BGCM", "0.8289", "0.3398", "0.1848", "0.6020"]
