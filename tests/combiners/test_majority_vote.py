import numpy as np
from numpy import nan

import mlconsensus as mlc


def test_the_mean_is_over_those_who_spoke():
    result = mlc.majority_vote([[[1, 0.5]], [[0, nan]], [[nan, nan]]])
    np.testing.assert_allclose(result, [[0.5, 0.5]])


def test_a_cell_nobody_spoke_of_gets_what_was_fitted():
    fitted = mlc.MajorityVote().fit([[[1, 0], [1, 1], [0, 0], [1, 0]]])
    np.testing.assert_allclose(fitted.transform([[[nan, nan]]]), [[0.75, 0.25]])
