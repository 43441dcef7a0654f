"""Reading of Excel workbooks."""

import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest

from mlconsensus.errors import InputError, InputWarning
from mlconsensus.io import read_predictions, scan_predictions

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
SPREADSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def make_cell(value: object) -> str:
    """Return the XML of one cell."""
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    if value is None:
        return "<c/>"
    return f"<c><v>{value}</v></c>"


def write_workbook(path: Path, **sheets: list[list[object]]) -> Path:
    """Write a workbook with sheets by name."""
    entries = links = overrides = ""
    with zipfile.ZipFile(path, "w") as archive:
        for number, (name, rows) in enumerate(sheets.items(), 1):
            file = f"worksheets/sheet{number}.xml"
            entries += f'<sheet name="{name}" sheetId="{number}" r:id="r{number}"/>'
            links += (
                f'<Relationship Id="r{number}" Type="{OFFICE}/worksheet" '
                f'Target="{file}"/>'
            )
            overrides += (
                f'<Override PartName="/xl/{file}" '
                f'ContentType="{SPREADSHEET}.worksheet+xml"/>'
            )
            lines = ""
            for row in rows:
                lines += f"<row>{''.join(map(make_cell, row))}</row>"
            archive.writestr(
                f"xl/{file}",
                f'<worksheet xmlns="{MAIN}"><sheetData>{lines}</sheetData></worksheet>',
            )

        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{TYPES}">'
            '<Default Extension="rels" ContentType="application/'
            'vnd.openxmlformats-package.relationships+xml"/>'
            '<Override PartName="/xl/workbook.xml" '
            f'ContentType="{SPREADSHEET}.sheet.main+xml"/>{overrides}</Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{RELATIONS}"><Relationship Id="r1" '
            f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
            "</Relationships>",
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">'
            f"<sheets>{entries}</sheets></workbook>",
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{RELATIONS}">{links}</Relationships>',
        )
    return path


@pytest.mark.parametrize("read", [read_predictions, scan_predictions])
def test_wide_and_long_sheets(tmp_path: Path, read) -> None:
    wide = [["Item", "law", "war, peace"], [1, True, 0.25], ["007", None, 1]]
    path = write_workbook(tmp_path / "ann.xlsx", answers=wide)
    panel = read(path)
    (block,) = panel.blocks()
    assert (panel.models, panel.labels) == (("ann",), ("law", "war, peace"))
    np.testing.assert_array_equal(block.to_array(), [[[1, 0.25], [np.nan, 1]]])
    assert read_predictions(path).instances.tolist() == ["1", "007"]

    long = [["annotator", "item", "label"], ["ann", 1, "law"], ["ann", 2, None]]
    path = write_workbook(tmp_path / "long.xlsx", answers=long)
    (block,) = read(path).blocks()
    assert block.to_array().tolist() == [[[1], [0]]]


def test_other_sheets_and_rows_that_are_wrong(tmp_path: Path) -> None:
    rows = [["id", "law"], [1, 1], [2, "many"]]
    path = write_workbook(tmp_path / "a.xlsx", answers=rows[:2], notes=[["text"]])
    with pytest.warns(InputWarning, match=r"^sheets left out: 1 \('notes'\)$"):
        assert read_predictions(path).shape == (1, 1, 1)

    path = write_workbook(tmp_path / "a.xlsx", answers=rows)
    with pytest.raises(InputError, match="line 3, column 'law': found 'many'"):
        read_predictions(path)


def test_files_that_are_no_workbooks(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.xlsx"
    for content in (b"", b"id,law\n1,1\n", b"PK\x03\x04broken"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"a\.xlsx: found .*orkbook"):
            read_predictions(path)

    # Archives that unpack to more than the limit are refused before.
    rows = [["id", "law"], *([[1, "a" * 100]] * 1000)]
    write_workbook(path, answers=rows)
    monkeypatch.setenv("MLCONSENSUS_LIMIT", "0.0001")
    with pytest.raises(InputError, match="when unpacked"):
        read_predictions(path)


def test_without_the_package_for_excel(tmp_path: Path, monkeypatch) -> None:
    path = write_workbook(tmp_path / "a.xlsx", answers=[["id", "law"], [1, 1]])
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(InputError, match=r"pip install 'mlconsensus\[excel\]'"):
        read_predictions(path)
