"""Private objects are told apart by their types: no record answers for an attribute."""

import ast
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import skdpsurv
from skdpsurv import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    PrivacyAccountant,
    split_target,
)
from skdpsurv.data.shape import target_names
from skdpsurv.dp import containers

ROOT = Path(skdpsurv.__file__).parent
#: Rooms that see no record.
PUBLIC_ROOMS = {"plotting", "pooling", "datasets", "priors", "report", "study", "cli", "release"}
PUBLIC_ROOMS |= {"verify", "verify_study"}
#: Names of private objects in the other rooms.
ARGUMENTS = {"X", "y", "person", "durations", "event_observed"}
PRIVATE = ARGUMENTS | {
    *("groups", "public", "rows", "row", "values", "value", "block", "column", "cells", "cell"),
    *("table", "frame", "target", "event", "time", "times", "labels", "one", "records"),
}
ASKING = {"getattr", "hasattr", "vars", "dir", "setattr", "delattr"}
#: Objects of these names that may be asked, as they are public.
PUBLIC = {
    ("classification/private_classifier", "values"): "released values",
    ("hybrid/estimator", "values"): "released values",
    ("evaluation/forecast_result", "table"): "a forecast, which reads no record",
    ("evaluation/forecast_result", "cells"): "a forecast, which reads no record",
    ("evaluation/forecast_studies", "X"): "simulated people",
    ("survival/comparisons", "groups"): "groups of two fitted curves",
    ("survival/curves/kaplan_meier", "labels"): "labels that are stated",
    ("survival/curves/life_table_curve", "X"): "made-up people",
    ("data/column_specifications", "table"): "a specification",
    ("data/public_steps", "value"): "a transformer",
}
#: Attributes that no Series has, and that are read where the type is known.
TYPED = {
    ("base/prepared", "X.target"): "a source of blocks",
    ("data/blocks", "X.meta"): "a source of blocks",
    ("data/blocks", "X.target"): "a source of blocks",
    ("data/shape", "X.meta"): "a source of blocks",
    ("data/cells", "X.columns"): "a frame of polars",
    ("data/single_rows", "X.toarray"): "a sparse matrix",
    ("data/chunks", "X.columns"): "chunks",
    ("data/chunks", "y.columns"): "chunks",
    ("data/dask", "X.columns"): "a frame of Dask, or chunks",
    ("data/dask", "X.chunks"): "an array of Dask",
    ("data/dask", "X.over_chunks"): "chunks",
    ("data/sources", "X.columns"): "a frame of Dask",
    ("data/sources", "y._meta"): "a frame of Dask",
    ("evaluation/predictions", "X.columns"): "a frame of pandas",
}
MODULES = {
    name: ast.parse(path.read_text())
    for path in sorted(ROOT.rglob("*.py"))
    if (name := path.relative_to(ROOT).with_suffix("").as_posix()).split("/")[0] not in PUBLIC_ROOMS
}
NODES = [(name, node) for name, tree in MODULES.items() for node in ast.walk(tree)]


def name_of(node):
    return node.id if isinstance(node, ast.Name) else None


def asked(node):
    """Yield the names that are asked whether they have an attribute, or hold an entry."""
    if isinstance(node, ast.Call) and name_of(node.func) in ASKING and node.args:
        yield name_of(node.args[0])
    elif isinstance(node, ast.Compare):
        pairs = zip(node.ops, node.comparators, strict=True)
        yield from (name_of(one) for how, one in pairs if isinstance(how, ast.In | ast.NotIn))


def test_no_private_object_is_asked_what_it_has():
    found = {(module, name) for module, node in NODES for name in asked(node) if name in PRIVATE}
    assert found == set(PUBLIC)


def test_attributes_are_those_of_the_class():
    """An attribute of the class of Series is never answered by a label of its index."""
    found = {
        (module, f"{node.value.id}.{node.attr}")
        for module, node in NODES
        if isinstance(node, ast.Attribute)
        and name_of(node.value) in ARGUMENTS
        and not hasattr(pd.Series, node.attr)
    }
    assert found == set(TYPED)


def test_no_missing_attribute_is_caught():
    caught = {
        module
        for module, node in NODES
        if isinstance(node, ast.ExceptHandler) or name_of(getattr(node, "func", None)) == "suppress"
        for kind in getattr(node, "args", [getattr(node, "type", None) or ast.Tuple([])])
        for inner in ast.walk(kind)
        if name_of(inner) == "AttributeError"
    }
    assert caught == {"model_selection/candidates"}  # set_params of a step


# ---- Labels of an index, which are private.

N = 60
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (N, 2))
LABELS = (
    *("columns", "tocsr", "toarray", "names", "chunks", "simplify", "iloc", "shape", "dtype"),
    *("fit", "sparse", "__array__", "__array_interface__", "__array_struct__", "__dataframe__"),
)


class Frame(pd.DataFrame):
    """A subclass, as those of other packages."""

    @property
    def _constructor(self):
        return Frame


class Series(pd.Series):
    """A subclass, as those of other packages."""

    @property
    def _constructor(self):
        return Series


def fitted(index, series=pd.Series, frame=pd.DataFrame):
    """Return what fits on data with an index release, and their scores."""
    classes, event = series(RNG_CLASSES, index=index), series(RNG_CLASSES == "yes", index=index)
    time, person = series(RNG_TIMES, index=index), series(np.arange(N) // 2, index=index)
    table, ledger = frame(X, columns=["a", "b"], index=index), PrivacyAccountant(epsilon=np.inf)
    y = frame({"event": event, "time": time})
    logistic = DPLogisticRegression(
        epsilon=np.inf, classes=["no", "yes"], data_norm=1.0, accountant=ledger
    ).fit(table, classes)
    hazards = DPDiscreteTimeSurvival(epsilon=np.inf, max_time=4.0, data_norm=1.0)
    found = [logistic.coef_, logistic.score(table, classes), logistic.release_.target_names]
    for target in ((event, time), y):
        found += [hazards.fit(table, target, person=person).coef_, hazards.score(table, target)]
    curve = DPKaplanMeierFitter(epsilon=np.inf, max_time=4.0)
    curve.fit(time, event)
    found += [curve.survival_function_.to_numpy(), curve.release_.target_names]
    found += [curve.score(time, event), curve.predict(time.clip(upper=4.0))]
    found += [logistic.score(table, classes, series(np.arange(1.0, N + 1), index=index))]
    causes = DPAalenJohansenFitter(epsilon=np.inf, max_time=4.0, causes=["yes"], censored="no")
    found += [causes.fit(time, classes).score(time, classes)]
    with pytest.raises(TypeError, match="must be a data frame"):
        split_target(time, time="time", event="event")
    return found


RNG_CLASSES = np.where(RNG.random(N) < 0.5, "yes", "no").astype(object)
RNG_TIMES = RNG.exponential(2.0, N)


def test_labels_of_an_index_change_nothing():
    expected = fitted(None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for position in (0, 7):
            labels = [*LABELS, *range(N - len(LABELS))]
            found = fitted(np.roll(np.array(labels, object), position))
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)


def test_subclasses_of_pandas_are_what_they_are():
    for one, other in zip(fitted(None, Series, Frame), fitted(None), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("label", LABELS)
def test_a_series_has_no_names_of_columns(label):
    y = pd.Series(["dead", "alive"], index=[label, 0])
    assert target_names(y) == ()
    assert containers.labels_of(y) is None
    assert containers.fields_of(y) == ()
    assert target_names(y.rename("status")) == ("status",)
    assert target_names(pd.DataFrame({"event": [1], "time": [2.0]})) == ("event", "time")


def test_the_index_of_a_frame_is_left_alone():
    y = pd.Series([1, 2], index=["columns", "b"])
    assert containers.unlabelled(y).index.tolist() == [0, 1]
    assert y.index.tolist() == ["columns", "b"]


# ---- Each container, and what it is told to be.

CELLS = {"event": [1, 0, 1], "time": [2.0, 0.5, 4.0]}
FRAME = pd.DataFrame(CELLS)
PAIRS = np.array(list(zip(*CELLS.values(), strict=True)), dtype=[("event", "i8"), ("time", "f8")])


def arrow(cells):
    return pytest.importorskip("pyarrow").table(cells)


@pytest.mark.parametrize("of", [arrow, pl.DataFrame, pd.DataFrame, Frame])
def test_tables_of_every_library(of):
    table, pandas = of(CELLS), of in (pd.DataFrame, Frame)
    assert (containers.is_arrow(table), containers.is_frame(table)) == (of is arrow, True)
    assert not containers.is_series(table)
    assert not containers.is_dask_array(table)
    assert containers.labels_of(table) == ["event", "time"]
    assert containers.labels_of(containers.select(table, ["time"])) == ["time"]
    assert containers.column_types(table) == (
        ["int64", "double"] if of is arrow else ["int64", "float64"]
    )
    assert containers.shape_of(table) == (3, 2)
    assert containers.dtype_of(table) is containers.name_of(table) is None
    assert containers.fields_of(table) == ()
    assert containers.sparse_rows(table) is table
    assert (containers.unlabelled(table) is table) != pandas
    column = table["time"]
    assert (containers.is_arrow(column), containers.is_frame(column)) == (of is arrow, False)
    assert containers.is_series(column)
    assert containers.labels_of(column) is None
    found = containers.listed(column)
    assert found == CELLS["time"]
    assert {type(cell) for cell in found} == {float}
    assert containers.name_of(column) == (None if of is arrow else "time")


@pytest.mark.parametrize(
    ("values", "shape", "dtype"),
    [
        (FRAME.to_numpy(), (3, 2), "float64"),
        (PAIRS, (3,), PAIRS.dtype),
        (sparse.coo_matrix(FRAME), (3, 2), "float64"),
        (sparse.coo_array(FRAME), (3, 2), "float64"),
        (FRAME["time"], (3,), "float64"),
        (FRAME["event"].array, (3,), "int64"),
        (pl.Series(CELLS["time"]), (3,), pl.Float64),
        ([1.0, 2.0], None, None),
    ],
)
def test_what_is_no_table(values, shape, dtype):
    assert containers.shape_of(values) == shape
    assert containers.dtype_of(values) == dtype
    assert containers.fields_of(values) == (("event", "time") if values is PAIRS else ())
    assert containers.labels_of(values) is None
    assert not containers.is_frame(values)
    assert not containers.is_arrow(values)
    assert containers.is_series(values) == isinstance(values, pd.Series | pl.Series)
    rows = containers.sparse_rows(values)
    is_sparse = isinstance(values, containers.SPARSE)
    assert (rows.format == "csr") if is_sparse else rows is values


def test_what_is_no_numpy_array():
    """A container that only NumPy can read has a shape, and one of Dask is known."""

    class Read:
        def __array__(self, dtype=None, copy=None):
            return np.zeros((4, 2))

    assert containers.shape_of(Read()) == (4, 2)
    assert containers.dtype_of(Read()) is None
    da = pytest.importorskip("dask.array")
    assert containers.is_dask_array(da.ones(3))
    assert not containers.is_dask_array(np.ones(3))


def test_classes_of_libraries_that_are_not_imported():
    assert containers.loaded("no_such_library", "Table") == ()
    assert containers.loaded("pandas", "Series", "NoSuchClass") == (pd.Series,)


def test_a_query_is_refused():
    with pytest.raises(TypeError, match=r"X must hold records: .* X\.collect\(\)"):
        containers.unlabelled(pl.LazyFrame(CELLS))
    containers.refuse_query(pl.DataFrame(CELLS), "X")


def test_cells_are_not_copied():
    for values in (FRAME[["time"]], FRAME["time"]):
        assert np.shares_memory(containers.unlabelled(values).to_numpy(), values.to_numpy())
