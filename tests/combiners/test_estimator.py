"""Combiners follow scikit-learn's conventions without its base classes."""

import subprocess
import sys

import numpy as np
import pytest
import sklearn

import mlconsensus as mlc

PANEL = mlc.Predictions([[[1, 0], [0, 1]], [[1, 1], [0, 1]]], labels=["x", "y"])


def test_a_command_does_not_import_scikit_learn():
    program = (
        "import sys, mlconsensus as mlc; mlc.combine([[[1, 0]], [[1, 1]]]);"
        "print([name for name in sys.modules if name.startswith('sklearn')])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_an_unknown_parameter_is_refused():
    with pytest.raises(mlc.InputError, match="MLCMr: found .*'beta', expected one of"):
        mlc.MLCMr().set_params(beta=3)


def test_only_changed_parameters_are_shown():
    assert repr(mlc.MLCMr(alpha=3.0)) == "MLCMr(alpha=3.0)"
    assert repr(mlc.MLCMr(alpha=2.0)) == "MLCMr()"


def test_a_copy_has_the_parameters_and_is_not_fitted():
    fitted = mlc.MLCMr(alpha=3.0).set_output(transform="pandas").fit(PANEL)
    copy = fitted.make_unfitted_copy()
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "models_")
    assert hasattr(copy.fit(PANEL).transform(PANEL), "columns")


def test_the_output_of_all_transformers_can_be_set():
    with sklearn.config_context(transform_output="pandas"):
        frame = mlc.MajorityVote().fit_transform(PANEL)
    assert list(frame.columns) == ["x", "y"]
    assert isinstance(mlc.MajorityVote().fit_transform(PANEL), np.ndarray)


def test_polars_output_is_refused():
    with pytest.raises(mlc.InputError, match="transform: found 'polars'"):
        mlc.MajorityVote().set_output(transform="polars")
