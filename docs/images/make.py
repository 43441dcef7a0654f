"""Make the pictures of the docs: the report of examples/news, by the real command, in Chromium (`make pictures`)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
NEWS = HERE.parents[1] / "examples" / "news"
FILES = [
    "newsroom.csv",
    "agency.tsv",
    "archive.parquet",
    "readers.jsonl",
    "startup.csv.gz",
]


def shoot(page: Page, first: str, last: str, name: str, width: int = 1080) -> None:
    """Save what lies from the top of one element to the bottom of another."""
    page.evaluate("scrollTo(0, 0)")
    page.mouse.move(0, 0)
    top, bottom = (page.locator(place).first.bounding_box() for place in (first, last))
    assert top is not None
    assert bottom is not None
    y = max(top["y"] - 16, 0)
    clip = {
        "x": (1200 - width) / 2,
        "y": y,
        "width": width,
        "height": bottom["y"] + bottom["height"] - y + 16,
    }
    page.screenshot(path=HERE / f"{name}.png", full_page=True, clip=clip)  # type: ignore[arg-type]


def main() -> None:
    """Make the report, open it in light and dark, and save its parts as pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        report = Path(folder) / "report.html"
        command = [
            Path(sys.executable).with_name("mlconsensus"),
            "report",
            *FILES,
            "--truth",
            "truth.csv",
        ]
        subprocess.run([*command, "--output", report], cwd=NEWS, check=True)
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": 1200, "height": 900}, color_scheme=scheme
            )
            page.goto(report.as_uri())
            shoot(page, "header", "#models figure", f"report-{scheme}")
            if scheme == "light":
                shoot(page, "#labels", "#labels .beside", "report-labels")
                shoot(page, "#truth .pair", "#truth .key", "report-curves")
                page.locator("#instances .why").first.click()
                shoot(page, "#changes h3", "#instances .reason", "report-why")
        browser.close()


if __name__ == "__main__":
    main()
