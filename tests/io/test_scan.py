"""Files that stay on disk: the same panel, block by block, as when they are read, and the same refusals."""

import os

import numpy as np
import pytest
from bad_files import BAD_FILES

import mlconsensus as mlc
from mlconsensus.io import read_predictions, scan_predictions, write_table
from mlconsensus.predictions.score_tables import ScoreTable

FORMATS = ["parquet", "csv", "tsv", "feather", "jsonl", "npz", "csv.gz"]


def files(folder, seed):
    """Write one to four tables that differ in instances, order, labels, kind of scores, format and layout."""
    rng = np.random.default_rng(seed)
    # the same instances; some of them; some in any order
    n = int(rng.integers(3, 60))
    order = seed % 3
    instances = [f"i{k}" for k in range(n)]
    labels = [f"l{j}" for j in range(rng.integers(1, 6))]
    paths = []
    for k in range(rng.integers(1, 5)):
        own = np.arange(n)
        if order:
            own = np.union1d(rng.choice(n, n * 3 // 4, replace=False), [0])
        if order == 2:
            rng.shuffle(own)
        known = [labels[0], *(label for label in labels[1:] if rng.random() < 0.8)]
        cells = rng.random((len(own), len(known)))
        cells[0, 0] = 0.2  # a label that is never listed would be unknown
        scores = [
            cells < 0.3,
            cells.round(3),
            np.where(cells < 0.1, np.nan, cells < 0.4),
        ][rng.integers(3)]
        suffix = rng.choice(FORMATS)
        if suffix in ("npz", "jsonl") or rng.random() < 0.5:
            layout = "wide"
        else:
            layout = "long"
        paths.append(folder / f"m{k}.{suffix}")
        write_table(
            paths[-1],
            ScoreTable(f"m{k}", scores, [instances[i] for i in own], known),
            layout=layout,
        )
    return paths


@pytest.mark.parametrize(
    "options", [{}, {"instances": "intersection"}, {"labels": "intersection"}], ids=str
)
@pytest.mark.parametrize("seed", range(24))
def test_blocks_of_any_size_are_what_reading_gives(tmp_path, seed, options):
    paths = files(tmp_path, seed)
    read = read_predictions(paths, **options)
    scanned = scan_predictions(paths, **options)
    assert (scanned.models, scanned.labels, scanned.shape) == (
        read.models,
        read.labels,
        read.shape,
    )
    assert scanned.instances.tolist() == [str(name) for name in read.instances.tolist()]
    for size in (1, 7, 1000):
        blocks = [block.to_array() for block in scanned.blocks(size)]
        np.testing.assert_array_equal(np.concatenate(blocks, axis=1), read.to_array())


@pytest.mark.parametrize("case", BAD_FILES, ids=lambda case: case.name)
def test_bad_files_are_refused_as_when_they_are_read(tmp_path, case):
    if case.needs_user and os.geteuid() == 0:
        pytest.skip("root may read everything")
    paths = case.make(tmp_path)
    with pytest.raises(mlc.InputError) as refused:
        for _ in scan_predictions(paths, strict=True).blocks(1000):
            pass
    for word in case.words:
        assert word in str(refused.value)
