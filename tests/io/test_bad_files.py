"""Files that must be refused."""

import os
from pathlib import Path

import pytest
from bad_files import BAD_FILES, BadFile

import mlconsensus as mlc
from mlconsensus.errors import InputError
from mlconsensus.io import read_predictions


@pytest.mark.parametrize("case", BAD_FILES, ids=lambda case: case.name)
def test_bad_file_is_refused_in_one_line(case: BadFile, tmp_path: Path) -> None:
    if case.needs_user and os.geteuid() == 0:
        pytest.skip("root may read everything")
    with pytest.raises(InputError) as refusal:
        read_predictions(case.make(tmp_path), strict=True)
    message = str(refusal.value)
    assert "\n" not in message
    assert len(message) < 400
    assert "found" in message
    assert "expected" in message
    for word in case.words:
        assert word in message


def test_cases_have_unique_names() -> None:
    names = [case.name for case in BAD_FILES]
    assert len(names) >= 40
    assert len(set(names)) == len(names)


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(
        InputError, match=r"secret\.csv: found no permission, expected a file to read"
    ):
        mlc.io.read_table(tmp_path / "secret.csv")
