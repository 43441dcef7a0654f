import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy import nan
from scipy import sparse

import mlconsensus as mlc
from mlconsensus.predictions.score_tables import ScoreTable
from panels import panels


class TestForms:
    """Every form that the constructor takes gives the same panel."""

    SCORES = np.array([[[1, 0, 0.5], [0, 0, 1]], [[nan, 1, 0], [0.25, nan, 1]]])

    @pytest.mark.parametrize(
        "given",
        [
            SCORES,
            SCORES.tolist(),
            tuple(SCORES),
            [sparse.csr_array(matrix) for matrix in SCORES],
            [sparse.coo_matrix(matrix) for matrix in SCORES],
            [sparse.csc_array(SCORES[0]), SCORES[1]],
            {"model_0": SCORES[0], "model_1": SCORES[1]},
            np.ma.masked_invalid(SCORES),
            np.asfortranarray(SCORES),
        ],
        ids=lambda given: type(given).__name__,
    )
    def test_same_panel(self, given):
        panel = mlc.Predictions(given)
        np.testing.assert_array_equal(panel.to_array(), self.SCORES)
        assert panel.models == ("model_0", "model_1")
        assert panel.labels == ("label_0", "label_1", "label_2")
        assert panel.instances.tolist() == [0, 1]
        assert panel.shape == (2, 2, 3)
        assert panel.n_missing == 2
        assert not panel.complete

    @pytest.mark.parametrize(
        "dtype", [bool, np.int8, np.uint64, np.float16, np.float32, ">f8"]
    )
    def test_dtypes(self, dtype):
        given = np.array([[[1, 0]]], dtype=dtype)
        assert mlc.Predictions(given).to_array().tolist() == [[[1, 0]]]

    def test_duplicate_entries_of_a_sparse_matrix_add_up_without_touching_the_users(
        self,
    ):
        given = sparse.csr_array(
            (np.array([0.25, 0.5]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2)
        )
        assert mlc.Predictions([given]).to_array().tolist() == [[[0.75, 0]]]
        assert given.nnz == 2

    def test_nothing_is_copied(self, tmp_path):
        stored = np.lib.format.open_memmap(
            tmp_path / "a.npy", mode="w+", dtype=np.float32, shape=(2, 5, 3)
        )
        stored.flush()
        mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
        panel = mlc.Predictions(mapped)
        assert all(np.shares_memory(part.matrix, mapped) for part in panel._parts)
        assert all(
            np.shares_memory(part.matrix, mapped)
            for block in panel.blocks(2)
            for part in block._parts
        )


class TestFrames:
    def test_frames_are_matched_by_name(self):
        a = pd.DataFrame([[1, 0], [0, 1]], index=["i", "j"], columns=["x", "y"])
        b = pd.DataFrame(
            [[0.5, 0.25], [1.0, 0.0]], index=["j", "k"], columns=["y", "z"]
        )
        panel = mlc.Predictions({"a": a, "b": b})
        assert panel.instances.tolist() == ["i", "j", "k"]
        assert panel.labels == ("x", "y", "z")
        np.testing.assert_array_equal(
            panel.to_array(),
            [
                [[1, 0, nan], [0, 1, nan], [nan, nan, nan]],
                [[nan, nan, nan], [nan, 0.5, 0.25], [nan, 1, 0]],
            ],
        )
        assert panel.n_missing == 5 + 5

    def test_whole_floats_in_an_index_are_whole_numbers(self):
        """Names that a join of pandas turned to floats are the same instances."""
        a = pd.DataFrame({"x": [1, 0]})
        b = pd.DataFrame({"x": [1, 0]}, index=[1.0, 0.0])
        assert mlc.Predictions({"a": a, "b": b}).to_array().tolist() == [
            [[1], [0]],
            [[0], [1]],
        ]

    def test_models_that_share_no_instance_are_refused(self):
        a = pd.DataFrame({"x": [1]}, index=["i"])
        b = pd.DataFrame({"x": [1]}, index=["j"])
        with pytest.raises(
            mlc.InputError,
            match="model 'b': found no instance in model 'b' that another model has",
        ):
            mlc.Predictions({"a": a, "b": b})

    def test_nullable_columns(self):
        frame = pd.DataFrame(
            {
                "x": pd.array([1, None], dtype="Int64"),
                "y": pd.array([True, None], dtype="boolean"),
            }
        )
        np.testing.assert_array_equal(
            mlc.Predictions([frame]).to_array(), [[[1, 1], [nan, nan]]]
        )

    def test_integer_index_and_columns(self):
        panel = mlc.Predictions(
            {"a": pd.DataFrame([[1, 0]], index=[7], columns=[10, 11])}
        )
        assert panel.instances.tolist() == [7]
        assert panel.labels == ("10", "11")

    def test_text_is_refused_by_column(self):
        frame = pd.DataFrame({"x": [0.5], "y": ["yes"]})
        with pytest.raises(
            mlc.InputError, match="model 'a', column 'y': found .* expected numbers"
        ):
            mlc.Predictions({"a": frame})


class TestTables:
    def test_intersection(self):
        a = ScoreTable("a", np.eye(2), ["i", "j"], ["x", "y"])
        b = ScoreTable(
            "b", sparse.csr_array(np.eye(3)), ["j", "k", "i"], ["z", "y", "w"]
        )
        panel = mlc.Predictions.from_tables(
            [a, b], instances="intersection", labels="intersection"
        )
        assert panel.instances.tolist() == ["i", "j"]
        assert panel.labels == ("y",)
        assert panel.to_array().tolist() == [[[0], [1]], [[0], [0]]]
        assert panel.complete

    def test_no_common_name(self):
        known = {"a": ["x", "y"], "b": ["y", "z"], "c": ["z", "x"]}
        tables = [
            ScoreTable(name, [[1, 0]], ["i"], labels) for name, labels in known.items()
        ]
        with pytest.raises(
            mlc.InputError, match="labels: found none that all models share"
        ):
            mlc.Predictions.from_tables(tables, labels="intersection")

    def test_how_must_be_known(self):
        table = ScoreTable("a", [[1]], ["i"], ["x"])
        with pytest.raises(
            mlc.InputError,
            match="labels: found 'Union', expected 'union' or 'intersection'",
        ):
            mlc.Predictions.from_tables([table], labels="Union")

    def test_names_in_one_model_only(self):
        tables = [ScoreTable("a", [[1]], ["i"], ["x"]), ScoreTable("b", [[1]], ["i"])]
        with pytest.raises(
            mlc.InputError,
            match="labels: found names in model 'a' and none in model 'b'",
        ):
            mlc.Predictions.from_tables(tables)

    @given(scores=panels(), seed=st.integers(0, 1000), as_sparse=st.booleans())
    def test_alignment_undoes_any_order_and_selection(self, scores, seed, as_sparse):
        """Each model has its own rows and columns; they are matched by name."""
        rng = np.random.default_rng(seed)
        m, n, l = scores.shape
        expected = np.full_like(scores, nan)
        tables = []
        for k in range(m):
            rows = rng.permutation(n)[: rng.integers(1, n + 1)]
            rows[0] *= (
                0 in rows
            )  # one that all have seen, without which models are refused
            columns = rng.permutation(l)[: rng.integers(1, l + 1)]
            columns[0] *= 0 in columns
            own = scores[k][np.ix_(rows, columns)]
            expected[k][np.ix_(rows, columns)] = own
            tables.append(
                ScoreTable(
                    f"m{k}", sparse.csr_array(own) if as_sparse else own, rows, columns
                )
            )
        panel = mlc.Predictions.from_tables(tables)
        labels = [int(label) for label in panel.labels]
        aligned = expected[:, panel.instances][:, :, labels]
        np.testing.assert_array_equal(panel.to_array(), aligned)
        assert panel.n_missing == np.isnan(aligned).sum()
        subset = rng.permutation(len(panel))
        np.testing.assert_array_equal(panel[subset].to_array(), aligned[:, subset])
        np.testing.assert_array_equal(panel[1:3].to_array(), aligned[:, 1:3])


class TestWalking:
    @given(scores=panels(), size=st.integers(1, 12))
    def test_blocks_cover_the_whole(self, scores, size):
        blocks = list(mlc.Predictions(scores).blocks(size))
        assert all(len(block) <= size for block in blocks)
        np.testing.assert_array_equal(
            np.concatenate([block.to_array() for block in blocks], axis=1), scores
        )
        assert np.concatenate([block.instances for block in blocks]).tolist() == list(
            range(scores.shape[1])
        )

    def test_mask_and_positions(self):
        panel = mlc.Predictions(np.eye(3)[None], instances=["a", "b", "c"])
        assert panel[np.array([True, False, True])].instances.tolist() == ["a", "c"]
        assert panel[[2, 0]].instances.tolist() == ["c", "a"]

    def test_a_mask_must_fit(self):
        panel = mlc.Predictions(np.eye(3)[None])
        with pytest.raises(mlc.InputError, match="found a mask of shape"):
            panel[np.array([True])]
        with pytest.raises(mlc.InputError, match="expected a slice, a mask or a list"):
            panel[1]

    def test_size_must_be_positive(self):
        with pytest.raises(mlc.InputError, match="blocks: found size 0"):
            next(mlc.Predictions([[[1]]]).blocks(0))

    def test_select(self):
        panel = mlc.Predictions(
            np.arange(8).reshape(2, 2, 2) / 8, models=["a", "b"], labels=["x", "y"]
        )
        chosen = panel.select(models=["b"], labels=["y", "x"])
        assert chosen.to_array().tolist() == [[[5 / 8, 4 / 8], [7 / 8, 6 / 8]]]
        with pytest.raises(
            mlc.InputError, match="labels: found 'w', expected some of 'x', 'y'"
        ):
            panel.select(labels=["w"])


class TestImmutable:
    def test_attributes(self):
        panel = mlc.Predictions([[[1, 0]]])
        with pytest.raises(AttributeError, match="cannot be changed"):
            panel.labels = ("a", "b")
        with pytest.raises(ValueError, match="read-only"):
            panel.instances[0] = 3
        with pytest.raises(ValueError, match="read-only"):
            next(panel.cells())[0][0, 0] = 0

    def test_pickle(self):
        panel = mlc.Predictions([[[1, nan]]], models=["a"], instances=["ü"])
        copy = pickle.loads(pickle.dumps(panel))
        assert (copy.models, copy.labels, copy.instances.tolist()) == (
            ("a",),
            panel.labels,
            ["ü"],
        )
        np.testing.assert_array_equal(copy.to_array(), panel.to_array())

    def test_repr(self):
        assert (
            repr(mlc.Predictions(np.zeros((1, 2000, 2))))
            == "<Predictions: 1 model × 2,000 instances × 2 labels>"
        )


ONE = np.zeros((1, 2, 2))
BAD = {
    "no models": ([], {}, "found no model"),
    "no models in an array": (np.zeros((0, 2, 2)), {}, "found no model"),
    "no instances": (np.zeros((1, 0, 2)), {}, "model 'model_0': found no instance"),
    "no labels": (np.zeros((1, 2, 0)), {}, "model 'model_0': found no label"),
    "one matrix": (
        np.zeros((2, 2)),
        {},
        "found a single matrix, expected one for each model",
    ),
    "one sparse matrix": (sparse.eye_array(2), {}, "found a single matrix"),
    "one frame": (pd.DataFrame([[1]]), {}, "found a single matrix"),
    "four dimensions": (np.zeros((1, 1, 1, 1)), {}, "found 4 dimensions, expected 3"),
    "a vector in a list": (
        [np.zeros(3)],
        {},
        "model 'model_0': found 1 dimensions, expected 2",
    ),
    "a number": (3, {}, "predictions: found int, expected an array"),
    "text": ("a.csv", {}, "predictions: found str, expected an array"),
    "None": (None, {}, "predictions: found NoneType"),
    "instances differ": (
        [np.zeros((2, 2)), np.zeros((3, 2))],
        {},
        "'model_1': found 3 instances, expected 2 as",
    ),
    "labels differ": (
        [np.zeros((2, 2)), np.zeros((2, 4))],
        {},
        "'model_1': found 4 labels, expected 2 as",
    ),
    "too large": (
        [[[0, 1], [0, 1.5]]],
        {},
        "instance 1, label 'label_1': found 1.5, expected a number in",
    ),
    "too large in the names' words": (
        {"a": [[0.0, -0.5]]},
        {"labels": ["x", "y"], "instances": ["i"]},
        "model 'a', instance 'i', label 'y': found -0.5",
    ),
    "too large and sparse": (
        [sparse.csr_array([[0, 0], [0, 7]])],
        {},
        "instance 1, label 'label_1': found 7, expected 0 or 1",
    ),
    "beside NaN": ([[[nan, 2.0]]], {}, "label 'label_1': found 2.0"),
    "infinite": ([[[0, np.inf]]], {}, "label 'label_1': found inf"),
    "minus infinite": ([[[0, -np.inf]]], {}, "found -inf"),
    "complex": (
        np.zeros((1, 2, 2), dtype=complex),
        {},
        "found complex128 values, expected bool",
    ),
    "strings": (np.full((1, 2, 2), "a"), {}, "found <U1 values"),
    "objects": (np.full((1, 2, 2), None, dtype=object), {}, "found object values"),
    "ragged": ([[[1, 0], [1]]], {}, "found rows of different lengths"),
    "duplicate models": (
        np.zeros((2, 1, 1)),
        {"models": ["a", "a"]},
        "models: found 'a' at positions 0, 1",
    ),
    "duplicate labels": (
        ONE,
        {"labels": ["a", "a"]},
        "labels: found 'a' at positions 0, 1, expected each",
    ),
    "duplicate instances": (
        ONE,
        {"instances": [3, 3]},
        "instances: found 3 at positions 0, 1",
    ),
    "three times": (
        np.zeros((1, 3, 1)),
        {"instances": ["a"] * 3},
        "found 'a' at positions 0, 1",
    ),
    "too few models named": (
        ONE,
        {"models": ["a", "b"]},
        "models: found 2 names, expected one for each of 1",
    ),
    "too few labels named": (
        ONE,
        {"labels": ["a"]},
        "found 1 names of labels, expected 2",
    ),
    "too many instances named": (
        ONE,
        {"instances": ["abc"]},
        "found 1 names of instances, expected 2",
    ),
    "one text for labels": (
        ONE,
        {"labels": "ab"},
        "labels: found the single text 'ab'",
    ),
    "a table of names": (
        ONE,
        {"instances": np.zeros((2, 2))},
        "instances: found 2 dimensions, expected a flat list",
    ),
    "an empty label": (
        ONE,
        {"labels": ["a", ""]},
        "labels: found '' at position 1, expected a name",
    ),
    "a label that is None": (
        ONE,
        {"labels": ["a", None]},
        "labels: found None at position 1, expected a name",
    ),
    "an instance that is NaN": (
        ONE,
        {"instances": [1.0, nan]},
        "instances: found NaN at position 1",
    ),
    "names twice": (
        {"a": [[1]]},
        {"models": ["a"]},
        "models: found models=… next to a mapping",
    ),
    "frame's names twice": (
        {"a": pd.DataFrame([[1]])},
        {"labels": ["x"]},
        "labels: found labels=… next to model 'a'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    scores, names, message = BAD[name]
    with pytest.raises(mlc.InputError) as error:
        mlc.Predictions(scores, **names)
    assert message in str(error.value)
    assert "expected" in str(error.value)
    assert "\n" not in str(error.value)


def test_labels_that_nobody_spoke_of_are_added_and_others_refused():
    """Also where models know labels of their own, in an order of their own."""
    tables = [
        ScoreTable("a", [[1, 0]], ["i"], ["x", "y"]),
        ScoreTable("b", [[1, 1]], ["i"], ["z", "y"]),
    ]
    panel = mlc.Predictions.from_tables(tables).with_labels(["new", "z", "y", "x"])
    np.testing.assert_array_equal(
        panel.to_array(), [[[np.nan, np.nan, 0, 1]], [[np.nan, 1, 1, np.nan]]]
    )
    assert panel.labels == ("new", "z", "y", "x")
    with pytest.raises(
        mlc.InputError, match="labels: found 'x', expected some of 'z', 'y'"
    ):
        panel.select(labels=["z", "y", "x"]).with_labels(["z", "y"])


def test_a_name_that_is_no_text():
    with pytest.raises(
        mlc.InputError, match="expected a name that can be written as UTF-8"
    ):
        mlc.Predictions([[[1]]], labels=["broken \ud800 name"])


def test_names_in_a_message_are_names():
    one = pd.DataFrame({"x": [1, 0]}, index=[0, 1])
    other = pd.DataFrame({"x": [1, 0]}, index=[7, 8])
    with pytest.raises(
        mlc.InputError,
        match=r"\(such as '0'; its own are such as '7'\), expected some in common",
    ):
        mlc.Predictions({"a": one, "b": other})


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_instances_that_are_not_there_are_refused(form):
    panel = mlc.Predictions([form(np.eye(3))])
    assert (
        len(panel[[]]),
        panel[::-1].instances.tolist(),
        panel[[-1]].instances.tolist(),
    ) == (0, [2, 1, 0], [2])
    for position in (
        [3],
        [-4],
        [1.0],
        ["0"],
        [nan],
        pd.array([True, None, True]),
        slice("0", "1"),
        slice(None, None, 0),
    ):
        with pytest.raises(mlc.InputError, match="^instances: found "):
            panel[position]


@pytest.mark.parametrize("method", ["select", "with_labels"])
def test_labels_may_be_any_list_of_names_but_each_once(method):
    panel = mlc.Predictions(np.eye(2)[None], labels=["0", "1"])
    for labels in (iter("10"), np.array(["1", "0"]), [1, 0], pd.Index(["1", "0"])):
        chosen = getattr(panel, method)(labels=labels)
        assert chosen.labels == ("1", "0")
        assert type(chosen.labels[0]) is str
        assert chosen.to_array()[0].tolist() == [[0, 1], [1, 0]]
    for labels in (["1", "0", "0"], [], "10", 5, [None], [["0"]]):
        with pytest.raises(mlc.InputError, match="^labels: found "):
            getattr(panel, method)(labels=labels)


def test_models_may_be_any_list_of_names_but_each_once():
    panel = mlc.Predictions(np.zeros((2, 1, 1)), models=["a", "b"])
    assert panel.select(iter("b")).models == ("b",)
    assert panel.with_models(iter("cab")).models == ("c", "a", "b")
    for models in (["a", "b", "b"], [], "ab", 5, [None]):
        for method in (panel.select, panel.with_models):
            with pytest.raises(mlc.InputError, match="^models: found "):
                method(models)
