"""A file that grows block by block: whole in the end, whatever was let go of or cut off on the way."""

import polars as pl
import pytest

from mlconsensus.io import growing


def _blocks(kind):
    frames = [pl.DataFrame({"id": [f"{at}"], "x": [at / 4]}) for at in range(4)]
    return pl.concat(frames), [bytes(growing.encoded(frame, kind, at == 0)) for at, frame in enumerate(frames)]


def _read(path, kind):
    return pl.read_parquet(path) if kind == "parquet" else pl.read_csv(path, schema={"id": pl.String, "x": pl.Float64})


@pytest.mark.parametrize("held", [2**28, 1])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_gone_on_with_after_a_block_that_was_cut_off(tmp_path, monkeypatch, kind, held):
    monkeypatch.setattr(growing, "_HELD", held)  # 1: every block is brought to the disk and let go of
    whole, blocks = _blocks(kind)
    path = tmp_path / "rows"
    with path.open("w+b") as file:
        begun = growing.Growing(file, kind)
        begun.append(memoryview(blocks[0]))
        begun.append(memoryview(blocks[1]))
        file.write(blocks[2][:7])
    with path.open("r+b") as file:
        again = growing.Growing(file, kind, [len(block) for block in blocks[:2]])
        again.append(memoryview(blocks[2]))
        again.append(memoryview(blocks[3]))
        again.finish()
    assert _read(path, kind).equals(whole)
