"""Reports in a real browser: no console messages and no network requests."""

import itertools
import shutil
from pathlib import Path

import pytest
from report_panels import PANELS, report_of

import mlconsensus as mlc
from mlconsensus.cli import main

SECTIONS = [
    "Predictions",
    "Models",
    "Labels",
    "Changes compared with voting",
    "Evaluation with ground truth",
    "How this page was made",
    "How to read this page",
]
NEWS = [
    "newsroom.csv",
    "agency.tsv",
    "archive.parquet",
    "readers.jsonl",
    "startup.csv.gz",
]


@pytest.fixture(scope="module")
def browser():
    """One browser for all of these tests, closed at the end."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright for Python is not installed"
    )
    path = next(
        filter(
            None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
        ),
        None,
    )
    if path is None:
        pytest.skip("there is no Chromium here (apt-get install chromium)")
    with api.sync_playwright() as running:
        started = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


def run(*args):
    with pytest.raises(SystemExit) as end:
        main([str(arg) for arg in args])
    assert end.value.code == 0


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The report of each panel as a file, made when first asked for."""
    folder = tmp_path_factory.mktemp("reports")

    def file(name):
        path = folder / f"{['demo', 'news', *PANELS].index(name)}.html"
        if path.exists():
            return path
        if name == "demo":
            run("demo", "--output", folder / "demo")
            run(
                "report",
                folder / "demo" / "answers.jsonl",
                "--truth",
                folder / "demo" / "truth.jsonl",
                "--output",
                path,
            )
        elif name == "news":
            news = Path(__file__).parents[2] / "examples" / "news"
            run(
                "report",
                *(news / name for name in NEWS),
                "--truth",
                news / "truth.csv",
                "--output",
                path,
            )
        else:
            report_of(name).save(path)
        return path

    return file


@pytest.fixture
def opened(browser, files):
    """Open a report; at the end check the console and the network."""
    messages = []
    pages = []

    def opened(name, **settings):
        page = browser.new_page(**settings)
        pages.append(page)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on(
            "dialog", lambda dialog: (messages.append(dialog.message), dialog.dismiss())
        )
        page.on(
            "request",
            lambda request: (
                messages.append(request.url) if not _own(request.url) else None
            ),
        )
        page.goto(files(name).as_uri())
        return page

    yield opened
    for page in pages:
        page.close()
    assert messages == []


def _own(url):
    return url.startswith(("file:", "data:", "about:"))


def shown(table):
    """The first cells of the rows that can be seen."""
    return table.locator("tbody > tr:visible > th").all_inner_texts()


@pytest.mark.parametrize("name", ["demo", "news", *PANELS])
def test_a_report(opened, name):
    """Visit every section, search, sort and explain; at the width of a phone, too."""
    page = opened(name)
    sections = list(SECTIONS)
    if not page.locator("#truth").count():
        sections.remove("Evaluation with ground truth")
    assert page.locator("h2").all_inner_texts() == [
        "What to do now",
        "What was found",
        *sections,
    ]
    assert page.locator("nav a").all_inner_texts() == sections
    assert page.evaluate("window.ran") is None
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    check_explanation(page)
    for what in ("models", "labels", "instances"):
        check_search(page, what)
    check_sort(page)
    page.locator("#instances .why").first.click()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def check_explanation(page):
    button = page.locator("#instances .why").first
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    why = page.locator("#instances tr.reasons")
    assert why.count() == 1
    for reason in why.locator("table").all():
        pushes = reason.locator("tbody > tr > td:nth-child(4)").all_text_contents()
        figures = [float(text.replace("−", "-")) for text in pushes]
        assert sum(figures[:-1]) == pytest.approx(figures[-1], abs=1e-3)
        assert f"{figures[-1]:.4f} by " in reason.locator(
            "caption"
        ).inner_text().replace("−", "-")
    button.click()
    assert why.count() == 0
    assert button.get_attribute("aria-expanded") == "false"


def check_search(page, what):
    box = page.locator(
        f"main .table[data-rows={what}]", has=page.locator("input")
    ).first
    if not box.count():  # a single row is not searched
        assert page.locator(".lead + .lead").inner_text().count(" 1 label")
        return
    names = box.locator("tbody > tr > th").all_text_contents()
    wanted = names[-1][:30]
    box.locator("input").fill(wanted.upper())
    expected = [name for name in names if wanted.lower() in name.lower()]
    assert len(shown(box)) == min(len(expected), 12)
    assert (
        f"{len(expected)} of {len(names)} {what} found"
        in box.locator(".status").inner_text()
    )
    box.locator("input").fill("no such name")
    assert shown(box) == []
    assert (
        box.locator(".status").inner_text()
        == f"none of the {len(names)} {what} is called that"
    )
    box.locator("input").fill("")
    assert len(shown(box)) == min(len(names), 12)


def check_sort(page):
    box = page.locator("#labels .table").last
    heading = box.locator("th", has_text="Disagreement")
    assert heading.get_attribute("aria-sort") == "descending"

    def figures(column):
        cells = box.locator(f"tbody > tr > td:nth-child({column})")
        return [
            float(value)
            for value in cells.evaluate_all(
                "cells => cells.map((cell) => cell.dataset.v)"
            )
        ]

    before = figures(2)
    assert before == sorted(before, reverse=True)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert figures(2) == sorted(before)
    box.locator("th", has_text="Instances").locator("button").press("Enter")
    assert heading.get_attribute("aria-sort") is None
    assert figures(3) == sorted(figures(3), reverse=True)


def test_names_sort_as_people_count(opened):
    box = opened("300 labels × 20 models").locator("#models .table").first
    box.locator("th", has_text="Model").locator("button").click()
    assert shown(box)[:3] == ["model_0", "model_1", "model_2"]
    assert box.locator(".status").inner_text().startswith("12 of 20 models shown")
    box.locator(".status button").click()
    assert shown(box) == [f"model_{k}" for k in range(20)]


def test_sorting_closes_what_was_explained_and_keeps_each_explanation_with_its_instance(
    opened,
):
    page = opened("two models")
    page.locator("#instances .why").first.click()
    first = page.locator("#instances tr.reasons").inner_text()
    name = page.locator("#instances .why").first.inner_text()
    page.locator("#instances th", has_text="Instance").locator("button").first.click()
    assert page.locator("#instances tr.reasons").count() == 0
    page.locator("#changes input").fill(name)
    page.locator("#instances .why:visible").get_by_text(name, exact=True).click()
    assert page.locator("#instances tr.reasons").inner_text() == first


def test_a_cell_of_a_heat_map_is_read_out(opened):
    page = opened("two models")
    svg = page.locator("#models svg.heat")
    left_edge, top, size, _ = map(int, svg.get_attribute("data-frame").split())
    svg.scroll_into_view_if_needed()
    svg.hover(position={"x": left_edge + 1.5 * size, "y": top + 0.5 * size})
    names = svg.locator(".r").all_text_contents()
    figure = svg.locator(".t").first.text_content()
    assert (
        page.locator("#models .readout").inner_text()
        == f"{names[0]} and {names[1]}: {figure}"
    )


def test_wide_tables_scroll_and_a_tap_opens_hints_on_a_phone(
    opened,
):
    page = opened(
        "demo", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    wide = page.locator(".scroll").evaluate_all(
        "all => all.map((one) => one.scrollWidth > one.clientWidth + 20)"
    )
    assert any(wide)
    box = page.locator(".scroll").nth(wide.index(True))
    box.scroll_into_view_if_needed()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    style = box.evaluate("one => getComputedStyle(one).backgroundAttachment")
    assert style == "local, local, scroll, scroll"
    heading = page.locator("th[title]").first
    heading.scroll_into_view_if_needed()
    heading.locator("button").tap()
    description = page.locator(".table .told").first
    assert (
        description.inner_text()
        == f"{heading.text_content()}: {heading.get_attribute('title')}"
    )
    svg = page.locator("#models svg.heat")
    left_edge, top, size, _ = map(int, svg.get_attribute("data-frame").split())
    scale = svg.bounding_box()["width"] / svg.evaluate(
        "one => one.viewBox.baseVal.width"
    )
    svg.tap(
        position={
            "x": (left_edge + 1.5 * size) * scale,
            "y": (top + 0.5 * size) * scale,
        }
    )
    assert " and " in page.locator("#models .readout").inner_text()
    page.locator("#instances .why").first.tap()
    assert page.locator("#instances tr.reasons").count() == 1


def test_light_and_dark(opened):
    for scheme, other in itertools.permutations(["light", "dark"]):
        page = opened("two models", color_scheme=scheme)
        ground = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(ground)
        button = page.locator("#theme")
        assert button.inner_text().lower() == other
        button.click()
        assert page.evaluate(ground) != before
        button.click()
        assert page.evaluate(ground) == before


def test_by_keyboard(opened):
    page = opened("two models")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator("#instances .why").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#instances tr.reasons").count() == 1


def test_on_paper(opened):
    page = opened("two models")
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("nav").is_visible()
    assert (
        page.evaluate("getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_without_scripts_all_rows_are_there(browser, files):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(files("two models").as_uri())
        assert page.locator("#instances tbody > tr").count() == 300
        assert page.locator("#instances tbody > tr").last.is_visible()


def test_in_the_frame_of_a_notebook(browser):
    messages = []
    page = browser.new_page()
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    panel, _ = mlc.datasets.make_panel(30, 5, 3, random_state=0)
    page.set_content(mlc.combine(panel).report()._repr_html_())
    frame = page.frame_locator("iframe")
    frame.locator(".why").first.click()
    assert frame.locator("tr.reasons").count() == 1
    page.close()
    assert messages == []
