from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from mlconsensus.io import read_table

TEXT = "3,7 1:0.5 4:1\n 2:1\n10\n7 1:1e-3 # why\n1:2\n\n3,10,7 2:1\n"


def test_label_sets(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text(TEXT)
    table = read_table(tmp_path / "a.svm")
    assert table.labels.tolist() == ["3", "7", "10"]
    assert table.instances is None
    np.testing.assert_array_equal(
        table.scores, [[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0], [0, 0, 0], [1, 1, 1]]
    )


def test_scikit_learn_reads_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text(TEXT.replace("\n\n", "\n"))  # it leaves out lines with nothing on them
    _, sets = load_svmlight_file(str(tmp_path / "a.svm"), multilabel=True)
    table = read_table(tmp_path / "a.svm")
    assert [sorted(tags) for tags in sets] == [
        [float(label) for label in table.labels[row > 0]] for row in table.scores
    ]
