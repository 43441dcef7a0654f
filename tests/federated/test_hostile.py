"""State files made to harm: one line that names the file, in little time and memory."""

import io
import json
import time

import numpy as np
import pytest

import mlconsensus as mlc
from mlconsensus.cli import main
from mlconsensus.errors import InputError
from mlconsensus.federated.statistics_files import read_state, write_state

PANEL = mlc.Predictions(np.random.default_rng(0).random((2, 20, 3)) < 0.4)


def changed(tmp_path, combiner, save=mlc.save_statistics, **header):
    """Write the state of a combiner with another header, under a right checksum."""
    save(combiner, tmp_path / "state", force=True)
    part, arrays = read_state(tmp_path / "state")
    file = io.BytesIO()
    write_state(file, part | header, arrays)
    (tmp_path / "state").write_bytes(file.getvalue())
    return tmp_path / "state"


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), "x", [1], {"model_0": 10**400, "model_1": 1}]
)
@pytest.mark.parametrize(
    ("combiner", "name"),
    [
        (mlc.MLCMr(), "alpha"),
        (mlc.MLCMr(), "restart"),
        (mlc.MLCMr(), "weights"),
        (mlc.MLCMa(), "n_iter"),
        (mlc.BGCM(), "alpha"),
        (mlc.DawidSkene(), "n_iter"),
        (mlc.DawidSkene(), "tol"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_parameters_that_no_method_takes(tmp_path, combiner, name, value):
    path = changed(tmp_path, combiner.fit(PANEL), parameters={name: value})
    with pytest.raises(InputError, match="state, parameters"):
        mlc.load(path)


def test_rounds_that_would_not_end(tmp_path):
    path = changed(tmp_path, mlc.MLCMa().fit(PANEL), parameters={"n_iter": 10**9})
    with pytest.raises(
        InputError,
        match="state, parameters, n_iter: found 1000000000, expected at most 100,000",
    ):
        mlc.load(path)
    start = time.process_time()
    path = changed(tmp_path, mlc.MLCMa().fit(PANEL), parameters={"n_iter": 10**5})
    assert mlc.load(path).solution_ is not None
    assert time.process_time() - start < 10


def test_names_of_many_labels_are_compared_fast(tmp_path):
    labels = [f"label {position}" for position in range(16_000)]
    sites = [
        mlc.MajorityVote().fit(mlc.Predictions(np.eye(2, 16_000)[None], labels=part))
        for part in (labels, labels[::-1])
    ]
    start = time.process_time()
    mlc.save_statistics(mlc.merge(sites), tmp_path / "state")
    assert set(mlc.load(tmp_path / "state").labels_) == set(labels)
    assert time.process_time() - start < 3


@pytest.mark.parametrize("shape", [(), (1,), (3, 0)])
def test_a_scalar_or_nothing_in_place_of_an_array(tmp_path, shape):
    mlc.save_statistics(mlc.MLCMr().fit(PANEL), tmp_path / "state")
    header, _ = read_state(tmp_path / "state")
    file = io.BytesIO()
    write_state(file, header, {"walk": np.zeros(shape)})
    (tmp_path / "state").write_bytes(file.getvalue())
    with pytest.raises(InputError, match=r"state, walk: found"):
        mlc.load(tmp_path / "state")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 8,
        (2**62).to_bytes(8, "little") + b"{}",
        (10**6).to_bytes(8, "little") + b"[" * 10**6,
        (2).to_bytes(8, "little") + b"{}" + bytes(100),
    ],
    ids=["empty", "a length beyond all", "a header beyond all", "depth", "no header"],
)
def test_what_is_no_state_file(tmp_path, data):
    (tmp_path / "state").write_bytes(data)
    with pytest.raises(InputError, match="state: found no statistics or model file"):
        mlc.load(tmp_path / "state")


def test_a_header_of_deep_json(tmp_path):
    deep = json.dumps(
        {
            "__metadata__": {
                "mlconsensus": json.dumps({"header": "[" * 10**5, "sha256": ""})
            }
        }
    ).encode()
    (tmp_path / "state").write_bytes(len(deep).to_bytes(8, "little") + deep)
    with pytest.raises(InputError, match="state: found no statistics or model file"):
        mlc.load(tmp_path / "state")


def test_names_are_compared_as_text_and_shown_safely(tmp_path, capsys):
    path = changed(
        tmp_path, mlc.MLCMr().fit(PANEL), labels=["\x1b]0;owned\x07", "b", "b"]
    )
    with pytest.raises(SystemExit) as end:
        main(["solve", str(path), "-o", str(tmp_path / "out")])
    assert end.value.code == 2
    assert "\x1b" not in capsys.readouterr().err


def with_number(path, name, number):
    """Put a number into an array of a state file, under a right checksum."""
    header, arrays = read_state(path)
    arrays[name][0, 1] = number
    file = io.BytesIO()
    write_state(file, header, arrays)
    path.write_bytes(file.getvalue())
    return path


@pytest.mark.parametrize("count", [1e-310, 5e-324, 1e59])
def test_counts_that_no_site_can_have(tmp_path, recwarn, count):
    """A pass is solved without warnings, and never to numbers that are not finite."""
    mlc.save_statistics(
        mlc.WeightedConsensus().fit_pass(PANEL, None), tmp_path / "state"
    )
    mlc.save(
        mlc.load(with_number(tmp_path / "state", "n_predictions", count)),
        tmp_path / "round",
    )
    assert all(
        np.isfinite(array).all() for array in read_state(tmp_path / "round")[1].values()
    )
    assert not recwarn.list


@pytest.mark.parametrize(
    ("rate", "limit"), [(0.0, "below 1e-300"), (-0.0, "below 1e-300"), (1.0, "above")]
)
def test_rates_of_which_no_logarithm_is_finite(tmp_path, rate, limit):
    mlc.save(mlc.DawidSkene().fit(PANEL), tmp_path / "state")
    with pytest.raises(
        InputError, match=f"state, if_true: found .*, expected no number {limit}"
    ):
        mlc.load(with_number(tmp_path / "state", "if_true", rate))
