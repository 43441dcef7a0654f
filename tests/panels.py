"""Predictions for tests: a strategy for Hypothesis, and degenerate cases."""

import numpy as np
from hypothesis import strategies as st

NAN = np.nan


@st.composite
def panels(draw, missing=True, max_models=4, max_instances=9, max_labels=5):
    """Arrays (m, n, l) of decisions or scores, some with silence."""
    shape = tuple(
        draw(st.integers(1, most)) for most in (max_models, max_instances, max_labels)
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    fill = draw(st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0]))
    scores = (rng.random(shape) < fill).astype(float)
    if draw(st.booleans()):
        scores *= rng.random(shape)
    if missing:
        scores[rng.random(shape) < draw(st.sampled_from([0.0, 0.0, 0.3, 0.9]))] = NAN
    return scores


_rng = np.random.default_rng(7)
_DECISIONS = (_rng.random((3, 8, 4)) < 0.4).astype(float)

DEGENERATE = {
    "one model": _DECISIONS[:1],
    "one label": _DECISIONS[:, :, :1],
    "one instance": _DECISIONS[:, :1],
    "one cell": np.ones((1, 1, 1)),
    "more labels than instances": (_rng.random((2, 3, 11)) < 0.4).astype(float),
    "all zero": np.zeros((3, 5, 4)),
    "all one": np.ones((3, 5, 4)),
    "identical models": np.repeat(_DECISIONS[:1], 3, axis=0),
    "an instance without labels": np.concatenate(
        [_DECISIONS, np.zeros((3, 1, 4))], axis=1
    ),
    "a label never predicted": np.concatenate(
        [_DECISIONS, np.zeros((3, 8, 1))], axis=2
    ),
    "a silent model": np.concatenate([_DECISIONS, np.full((1, 8, 4), NAN)]),
    "an instance nobody spoke of": np.concatenate(
        [_DECISIONS, np.full((3, 1, 4), NAN)], axis=1
    ),
    "a label nobody spoke of": np.concatenate(
        [_DECISIONS, np.full((3, 8, 1), NAN)], axis=2
    ),
    "nobody said anything": np.full((2, 3, 4), NAN),
    "scores": _rng.random((3, 8, 4)),
}
