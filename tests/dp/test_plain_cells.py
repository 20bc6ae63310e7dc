"""Cells are read by exact types: none of them is asked to convert itself."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    HybridMEstimator,
    PublicBoundsScaler,
    PublicColumns,
)
from skdpsurv.data.dask import guarded_call, result_of
from skdpsurv.data.histories import checked_events, checked_times
from skdpsurv.data.person import read_names
from skdpsurv.dp.clipping import clip_rows
from skdpsurv.dp.input_errors import NUMBERS, as_float_array, refuse_foreign_cells

from .costs import refused

asked = []


def _exit(self):
    asked.append(self)
    raise SystemExit("secret")


class Leaving:
    __float__ = __int__ = __index__ = __str__ = __len__ = __bool__ = _exit


class LeavingFloat(float):
    __float__ = __int__ = __index__ = __str__ = _exit


class LeavingWhole(int):
    __float__ = __int__ = __index__ = __str__ = __abs__ = _exit


class Pretending(type):
    """Of classes that say that they are float."""

    __hash__ = classmethod(hash)

    def __eq__(cls, other):
        return True


class Pretender(metaclass=Pretending):
    __float__ = _exit


FOREIGN = [Leaving(), LeavingFloat(1.0), LeavingWhole(1), Pretender()]
FOREIGN += [pd.Series([1.0]), np.array([1.0])]


def matrices(cell):
    array = np.zeros((20, 2), dtype=object)
    array[3, 1] = cell
    rows = array.tolist()
    seconds = pd.Series([row[1] for row in rows], dtype=object)
    return array, rows, pd.DataFrame({"a": np.zeros(20), "b": seconds})


@pytest.mark.parametrize("cell", FOREIGN, ids=lambda cell: type(cell).__name__)
@pytest.mark.filterwarnings("error")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_cell_of_a_class_of_its_own_is_refused_and_not_asked(cell):
    asked.clear()
    labels = np.arange(20) % 2
    lone = np.empty(20, dtype=object)
    lone[:] = [1] * 20
    lone[3] = cell
    for X in matrices(cell):
        for fit in (
            partial(DPLogisticRegression(classes=[0, 1], data_norm=1.0).fit, y=labels),
            partial(DPDiscreteTimeSurvival(max_time=9.0, data_norm=1.0).fit, y=np.ones(20)),
            PublicBoundsScaler(0.0, 1.0).fit_transform,
        ):
            with pytest.raises((TypeError, ValueError), match="must hold plain numbers alone"):
                fit(X)
        with pytest.raises(ValueError, match=r"X must|X contains"):
            HybridMEstimator(method="cells").fit(X, labels, public=np.arange(20) > 9)
    columns = PublicColumns({"a": (0, 1), "b": (0, 1)})
    refused("must hold numbers", lambda: columns.fit_transform(matrices(cell)[2]))
    refused("array of real numbers", lambda: clip_rows(matrices(cell)[0], 1.0))
    for values in (lone, lone.tolist()):
        reads = (partial(read, values, "times") for read in (checked_times, checked_events))
        refused("must be", *reads)
        refused("person must hold", partial(read_names, values))
        refused("must", partial(DPWeibullFitter(max_time=3.0).fit, np.ones(20), values))
    assert not asked


@pytest.mark.parametrize("cell", FOREIGN, ids=lambda cell: type(cell).__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_it_raises_where_it_is_asked_is_a_refusal(cell):
    """Labels that nobody stated may be of other classes, so that NumPy asks them."""
    labels = [1] * 20
    labels[3] = cell
    for read in (
        lambda: DPLogisticRegression(data_norm=1.0).fit(np.zeros((20, 1)), labels),
        lambda: DPKaplanMeierFitter(max_time=3.0).fit(np.ones(20), group=labels),
        lambda: as_float_array([1.0, cell], "y"),
        lambda: result_of(guarded_call(_exit, cell)),
    ):
        with pytest.raises((ValueError, TypeError, RuntimeError)) as error:
            read()
        assert "secret" not in f"{error.value} {error.value.__cause__} {error.value.__context__}"


def test_plain_cells_are_let_through():
    cells = [1, 1.5, True, "2", None, *(kind(1) for kind in NUMBERS)]
    refuse_foreign_cells([cells, cells])
    of_words = pd.Series(["x", "y"], dtype="category")
    for column in (pd.Series(cells, dtype=object), of_words, pd.array([1, None], dtype="Int64")):
        refuse_foreign_cells(pd.DataFrame({"a": column}))
    assert not {np.timedelta64, bool} & set(NUMBERS)
    assert read_names([1, np.int8(2), np.uint64(3)]).tolist() == [1, 2, 3]
    assert read_names(["a", np.str_("b")]).tolist() == ["a", "b"]
