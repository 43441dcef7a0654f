"""One summary, three renderings, whatever names are made of."""

import itertools
import json
import re
from dataclasses import asdict, replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest
from report_panels import HOSTILE, PANELS, report_of

import mlconsensus as mlc
from mlconsensus.inspection.model_quality import FlaggedModel
from mlconsensus.report.findings import actions, findings
from mlconsensus.report.render import choose_report_format

EMPTY = {"meta", "link", "input"}
ELEMENTS = {
    "html",
    "head",
    "meta",
    "title",
    "link",
    "style",
    "body",
    "a",
    "header",
    "p",
    "h1",
    "h2",
    "h3",
    "ul",
    "li",
    "nav",
    "button",
    "main",
    "section",
    "dl",
    "dt",
    "dd",
    "div",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "span",
    "i",
    "bdi",
    "strong",
    "code",
    "pre",
    "figure",
    "figcaption",
    "svg",
    "g",
    "path",
    "text",
    "polyline",
    "circle",
    "label",
    "input",
    "details",
    "summary",
    "del",
    "footer",
    "script",
}


class Page(HTMLParser):
    """The elements of a page, checked to be closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes), [name for name, _ in self.open]))
        if tag not in EMPTY:
            self.open.append((tag, len(self.texts)))

    def handle_endtag(self, tag):
        name, first = self.open.pop()
        assert name == tag
        if tag in ("bdi", "caption", "h1", "h2", "h3"):
            self.texts.append(
                (tag, "".join(text for kind, text in self.texts[first:] if kind == ""))
            )

    def handle_data(self, text):
        self.texts.append(("", text))

    def all(self, tag):
        return [attributes for name, attributes, _ in self.elements if name == tag]


@pytest.fixture(scope="module", params=PANELS)
def page(request):
    return Page(report_of(request.param).to_html())


def test_many_instances_are_sampled_and_the_page_stays_small():
    made, _ = mlc.datasets.make_panel(1000, 100, 5, cardinality=5, random_state=0)
    report = mlc.combine(made, method="mlcm-r").report()
    changes = report.summary.changes
    assert (len(changes.instances), changes.n_moved_shown) == (300, 200)
    page = report.to_html()
    assert (
        "The 200 that changed most, and an even sample of 100 of the others, of "
        "1,000 in all." in page
    )
    assert "Shown are the 40 with the strongest ties of 100." in page
    assert len(page.encode()) < 1_000_000  # and no more of ten times as many instances


def test_only_our_own_elements(page):
    assert page.open == []
    assert {tag for tag, _, _ in page.elements} <= ELEMENTS
    assert [attributes.get("type") for attributes in page.all("script")] == [
        "application/json",
        None,
    ]
    for tag, attributes, _ in page.elements:
        assert not [name for name in attributes if name.startswith("on")], tag
        assert "javascript:" not in attributes.get("href", "")
        if tag not in ("path", "bdi"):
            assert len(attributes.get("style", "")) < 20


def test_it_asks_no_network_for_anything(page):
    for tag, attributes, _ in page.elements:
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(("#", "data:")), tag
    assert "default-src 'none'" in page.all("meta")[1]["content"]


def test_what_a_screen_reader_needs(page):
    ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all(attributes.get("aria-label") for attributes in page.all("svg"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(
        above[-1] == "label" for tag, _, above in page.elements if tag == "input"
    )
    assert all(attributes.get("scope") for attributes in page.all("th"))
    levels = [int(tag[1]) for tag, _, _ in page.elements if tag in ("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.all("a")[0]["href"] == "#main"
    assert page.all("html")[0]["lang"] == "en"


def test_hostile_names_are_text_and_the_long_one_is_there_in_full():
    page = Page(report_of("hostile names").to_html())
    names = {text for tag, text in page.texts if tag == "bdi"}
    assert {
        "<script>window.ran = 1</script>",
        "\"'><img src=x onerror='window.ran = 1'>",
        "x" * 10_000,
        "x" * 26 + "…" + "x" * 9,
        "👩‍👩‍👧‍👦 family",
        "שלום <b>עולם</b>",
        "a\\nb\\tc\\x00\\x1b[31m",
        "\\u202eevil",
        "$script ${7*7} {{x}} &amp;",
    } <= names


def test_embedded_data_cannot_end_its_script_and_holds_the_explanations():
    text = report_of("hostile names").to_html()
    data = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL
    )[1]
    assert not set("<>&") & set(data)
    found = json.loads(data)
    assert "</script><script>window.ran = 1</script>" in found["explanations"]["names"]
    assert len(found["explanations"]["reasons"]) == 40


def test_a_name_longer_than_reason_is_cut_and_says_so():
    panel = mlc.Predictions([[[1, 0]], [[1, 1]]], labels=["y" * 12_000, "z"])
    text = mlc.combine(panel).report().to_html()
    assert "y" * 10_000 in text
    assert "y" * 10_001 not in text
    assert "… and 2,000 more characters" in text


def test_json_is_the_whole_summary():
    report = report_of("hostile names")
    data = json.loads(report.to_json(), parse_constant=pytest.fail)
    assert list(data) == [
        "panel",
        "models",
        "agreement",
        "labels",
        "changes",
        "judged",
        "gold_evidence",
        "asking",
        "origin",
        "note",
    ]
    assert [model["name"] for model in data["panel"]["models"]] == HOSTILE
    assert np.shape(data["models"]["agreement"]) == (11, 11)
    reason = data["changes"]["instances"][0]["reasons"][0]
    assert set(reason["parts"][0]) == {
        "model",
        "label",
        "prediction",
        "contribution",
        "vote",
    }
    assert len(data["judged"]["results"]) == len(mlc.COMBINERS) + 11 + 1
    assert json.loads(report_of("no agreement").to_json())["judged"] is None


def test_figures_without_a_value_are_null():
    report = mlc.combine([[[1]]], method="ds").report(np.array([[True]]))
    assert (
        json.loads(report.to_json(), parse_constant=pytest.fail)["judged"]["results"][
            0
        ]["metrics"]["micro_auc"]
        is None
    )
    assert "a ranking cannot be evaluated" in report.to_text()


@pytest.mark.parametrize("name", PANELS)
def test_text_has_every_section_and_stays_within_its_lines(name):
    text = report_of(name).to_text()
    headings = [
        "Predictions",
        "Models",
        "Labels",
        "Changes compared with voting",
        "How this report was made",
    ]
    evaluation = "Evaluation with ground truth"
    if report_of(name).summary.judged is None:
        assert evaluation not in text
    else:
        headings.append(evaluation)
    for heading in headings:
        assert f"\n{heading}\n{'=' * len(heading)}\n" in text
    assert all(line.isprintable() or "\u200d" in line for line in text.splitlines())
    assert max(map(len, text.splitlines())) < 260


def test_what_a_reader_should_know_first():
    text = report_of("no agreement").to_text()
    assert "The models hardly agree: their mean correlation is " in text
    assert (
        "- Agreement: There is one model, so that agreement cannot be measured."
        in mlc.combine([[[1, 0]]]).report().to_text()
    )
    assert "Krippendorff" not in mlc.combine([[[1, 0]]]).report().to_text()
    several = mlc.combine(mlc.datasets.make_panel(60, random_state=0).predictions)
    alpha = str(mlc.agreement(several.predictions).alpha)
    assert f"Krippendorff's α: {alpha} label by label" in several.report().to_text()
    assert f"Krippendorff's α is {alpha} label by label" in several.report().to_html()
    rng = np.random.default_rng(1)
    four = mlc.datasets.make_panel(
        2000, 8, 4, quality=0.8, shared_errors=0, random_state=0
    ).predictions.to_array()
    five = [
        *four,
        rng.permuted(four[0], axis=0),
        rng.permuted(four[1], axis=0),
        1 - four[2],
        four[1],
    ]
    text = (
        mlc.combine(mlc.Predictions(five, models=list("abcdefgh"))).report().to_text()
    )
    for sentence_start in (
        "e is random:",
        "f is random:",
        "g is inverted:",
        "h is a duplicate of b:",
        "b and h behave like one model:",
    ):
        assert f": {sentence_start} " in text


def test_warnings_are_those_of_the_diagnostics():
    good, _ = mlc.datasets.make_panel(
        2000, 8, 4, quality=0.8, shared_errors=0, random_state=0
    )
    rng = np.random.default_rng(1)
    at_random = [rng.permuted(good.to_array()[k % 4], axis=0) for k in range(3)]
    names = [*"abcd", "<b>\n", *"fg"]
    consensus = mlc.combine(
        mlc.Predictions([*good.to_array(), *at_random], models=names)
    )
    report = consensus.report()
    diagnostics = consensus.diagnostics
    assert [one.models for one in diagnostics.flags] == [("<b>\n",), ("f",), ("g",)]
    text = report.to_text()
    page = report.to_html()
    for sentence in (
        diagnostics.effective_models.sentence,
        *(one.sentence for one in diagnostics.flags),
    ):
        assert f": {sentence}.\n" in text
        assert f'</strong> {escape(sentence)}. <a href="#models">' in page
    models = json.loads(report.to_json())["models"]
    assert [one["sentence"] for one in models["flags"]] == [
        one.sentence for one in diagnostics.flags
    ]
    assert models["effective_models"] == asdict(diagnostics.effective_models)


def test_a_crowd_is_cut_in_the_table_of_metrics_too():
    panel, truth = mlc.datasets.make_panel(60, 5, 14, random_state=0)
    text = mlc.combine(panel).report(truth).to_text()
    table = (
        text[text.index("Evaluation with ground truth\n") :]
        .split("\n\n")[0]
        .splitlines()
    )
    assert [line.split()[0] for line in table[3:]] == [
        *(
            name
            for name in sorted(
                (kind.name for kind in mlc.COMBINERS.values()), key="Weighted".__ne__
            )
        ),
        "BM",
        *panel.models[:10],
        "…",
    ]
    assert table[-1] == "… and 4 more"


def test_ask_is_not_named_where_it_takes_no_such_panel():
    summary = replace(report_of("two models").summary, judged=None)
    assert "mlconsensus ask writes" in actions(summary)[-1].sentence
    assert (
        "mlconsensus ask"
        not in actions(
            replace(summary, note="the 500 labels named most are looked at")
        )[-1].sentence
    )


def test_at_most_twelve_flags_are_listed():
    one = report_of("two models").summary
    flag = FlaggedModel(
        kind="random",
        models=("a",),
        sentence="a is random",
        instances=9,
        cells=9,
        statistic=0.0,
        low=-0.1,
        high=0.1,
        expected=0.5,
        p_value=0.0,
        q_value=0.0,
    )
    models = replace(one.models, flags=(flag,) * 14)
    results = findings(replace(one, models=models))
    sentences = [result.sentence for result in results]
    assert sentences.count("a is random.") == 12
    assert "The report as JSON has 2 more warnings." in sentences


def test_a_notebook_shows_the_page_in_a_frame():
    report = report_of("two models")
    frame = Page(report._repr_html_())
    assert [tag for tag, _, _ in frame.elements] == ["iframe"]
    attributes = frame.all("iframe")[0]
    assert attributes["srcdoc"] == report.to_html()
    assert attributes["sandbox"] == "allow-scripts"
    assert (
        repr(report)
        == "<Report: 2 models × 300 instances × 12 labels by weighted_consensus>"
    )


def test_save(tmp_path):
    report = report_of("two models")
    for end, text in (
        (".html", report.to_html()),
        (".json", report.to_json()),
        (".txt", report.to_text()),
    ):
        report.save(tmp_path / f"report{end}")
        assert (tmp_path / f"report{end}").read_text(encoding="utf-8") == text
    report.save(tmp_path / "report", format="text")
    with pytest.raises(mlc.InputError, match="found an existing file"):
        report.save(tmp_path / "report", format="text")
    with pytest.raises(
        mlc.InputError,
        match=r"report.htlm: found the suffix '.htlm', expected one of .* mean '.htm'",
    ):
        report.save(tmp_path / "report.htlm")
    with pytest.raises(
        mlc.InputError, match="format: found 'pdf', expected one of html, json, text"
    ):
        choose_report_format("report", "pdf")
