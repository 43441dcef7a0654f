"""Predictions that remain in files equal those in memory, and so do the errors."""

import os

import numpy as np
import pytest
from bad_files import BAD_FILES

import mlconsensus as mlc
from mlconsensus.io import read_predictions, scan_predictions, write_table
from mlconsensus.predictions.score_tables import ScoreTable

FORMATS = ["parquet", "csv", "tsv", "feather", "jsonl", "npz", "csv.gz"]


def write_files(folder, seed):
    """Write one to four tables with different names, scores, formats and layouts."""
    rng = np.random.default_rng(seed)
    n_instances = int(rng.integers(3, 60))
    order = seed % 3  # 0: the same instances, 1: some of them, 2: some in any order
    labels = [f"l{j}" for j in range(rng.integers(1, 6))]
    paths = []
    for k in range(rng.integers(1, 5)):
        positions = np.arange(n_instances)
        if order:
            n_drawn = n_instances * 3 // 4
            drawn = rng.choice(n_instances, n_drawn, replace=False)
            positions = np.union1d(drawn, [0])
        if order == 2:
            rng.shuffle(positions)

        instances = [f"i{position}" for position in positions]
        model_labels = [labels[0]]
        model_labels += [label for label in labels[1:] if rng.random() < 0.8]
        scores = draw_scores(rng, (len(instances), len(model_labels)))

        suffix = rng.choice(FORMATS)
        layout = "long"
        if suffix in ("npz", "jsonl") or rng.random() < 0.5:
            layout = "wide"

        path = folder / f"m{k}.{suffix}"
        table = ScoreTable(f"m{k}", scores, instances, model_labels)
        write_table(path, table, layout=layout)
        paths.append(path)

    return paths


def draw_scores(rng, shape):
    """Draw label sets, scores, or label sets with gaps."""
    cells = rng.random(shape)
    cells[0, 0] = 0.2  # a label that is never listed would be missing
    kinds = [
        cells < 0.3,
        cells.round(3),
        np.where(cells < 0.1, np.nan, cells < 0.4),
    ]
    return kinds[rng.integers(3)]


@pytest.mark.parametrize(
    "options", [{}, {"instances": "intersection"}, {"labels": "intersection"}], ids=str
)
@pytest.mark.parametrize("seed", range(24))
def test_blocks_of_any_size_equal_the_panel_in_memory(tmp_path, seed, options):
    paths = write_files(tmp_path, seed)
    read = read_predictions(paths, **options)
    scanned = scan_predictions(paths, **options)
    assert scanned.models == read.models
    assert scanned.labels == read.labels
    assert scanned.shape == read.shape
    assert scanned.instances.tolist() == list(map(str, read.instances.tolist()))
    for size in (1, 7, 1000):
        blocks = [block.to_array() for block in scanned.blocks(size)]
        np.testing.assert_array_equal(np.concatenate(blocks, axis=1), read.to_array())


@pytest.mark.parametrize("case", BAD_FILES, ids=lambda case: case.name)
def test_bad_files_are_refused(tmp_path, case):
    if case.needs_user and os.geteuid() == 0:
        pytest.skip("root may read everything")
    paths = case.make(tmp_path)
    with pytest.raises(mlc.InputError) as refused:
        for _ in scan_predictions(paths, strict=True).blocks(1000):
            pass
    for word in case.words:
        assert word in str(refused.value)
