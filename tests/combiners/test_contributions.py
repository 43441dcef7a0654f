import numpy as np

import mlconsensus as mlc
from mlconsensus.combiners.contributions import statements


def test_statements_are_those_about_the_first_instance():
    scores = [[[1, np.nan], [0.2, 0.3]], [[0, 0.5], [0.4, 0.6]]]
    predictions, spoke = statements(
        mlc.Predictions(scores).weighted(np.array([1.0, 2.0]))
    )
    np.testing.assert_array_equal(predictions, [[1, 0], [0, 1]])
    np.testing.assert_array_equal(spoke, [[1, 0], [2, 2]])
