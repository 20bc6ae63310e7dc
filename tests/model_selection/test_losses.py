"""Losses of single records: bounded, proper, and silent about what fails."""

import warnings
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures
from sksurv.util import Surv

from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, DPWeibullFitter, HybridMEstimator
from skdpsurv.data import PublicBoundsScaler, PublicColumns
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.mechanisms.sums import LOSS
from skdpsurv.model_selection import losses as summed
from skdpsurv.model_selection.losses import (
    SurvivalLoss,
    _at_once,
    _features,
    _matrix,
    brier_loss,
    error_loss,
    summed_losses,
)
from skdpsurv.model_selection.search_plan import SearchRecords
from tests.support.combinations import thinned
from tests.support.registry import RAW, WARDS, raw_labelled


class Coin:
    """Says 0.75 for class 1 where x > 0, else 0.25; cannot do 13."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        if (X == 13).any():
            raise ValueError("13 in a record")
        p = np.where(X[:, 0] > 0, 0.75, 0.25)
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.predict_proba(X)[:, 1] > 0.5


X = np.array([[1.0], [1.0], [-1.0], [-1.0]])
Y = np.array([1, 0, 0, 7])


def test_sums_of_losses_are_exact_in_units_of_the_lattice_and_clipped():
    np.testing.assert_array_equal(error_loss(Coin(), X, Y), [0, 1, 0, 1])
    np.testing.assert_allclose(brier_loss(Coin(), X, Y), [1 / 16, 9 / 16, 1 / 16, 1.0])
    assert summed_losses(error_loss, Coin(), X, Y) == 2 * LOSS.sensitivity
    assert summed_losses(brier_loss, Coin(), X, Y) == (1 + 9 + 1 + 16) * LOSS.sensitivity // 16
    for value, counted in [(-3.0, 0.0), (5.0, 1.0), (np.nan, 1.0)]:
        total = summed_losses(
            lambda m, X, y, value=value: np.where(y == 7, value, 0.5), Coin(), X, Y
        )
        assert total == round((3 * 0.5 + counted) * LOSS.sensitivity)
    for strange in (0.0, np.zeros(7)):
        total = summed_losses(lambda m, X, y, value=strange: value, Coin(), X, Y)
        assert total == 4 * LOSS.sensitivity


def test_a_failure_counts_for_its_record_alone_and_is_silent():
    rows = np.array([[1.0], [13.0], [-1.0], [-1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert summed_losses(error_loss, Coin(), rows, np.array([1, 1, 0, 0])) == LOSS.sensitivity


def test_one_record_moves_the_sum_by_one_at_most():
    base = summed_losses(brier_loss, Coin(), X, Y)
    for x, y in [(13.0, 0), (np.nan, 1), (1e300, 5), (-1.0, 0)]:
        rows, labels = X.copy(), Y.copy()
        rows[3], labels[3] = x, y
        assert abs(summed_losses(brier_loss, Coin(), rows, labels) - base) <= LOSS.sensitivity


def test_a_loss_of_ones_own_is_asked_for_one_record_at_a_time():
    """Of a model of this package, too."""
    own = DPLogisticRegression(classes=[0, 1]).fit(X, [1, 1, 0, 0])
    for model in (Coin(), own):
        sizes = []

        def loss(model, X, y, sizes=sizes):
            sizes.append(len(X))
            return (X[:, 0] > X[:, 0].mean()).astype(float)

        assert summed_losses(loss, model, X, Y) == 0
        assert sizes == [1, 1, 1, 1]


def squeezed(model, X, y):
    return np.squeeze(error_loss(model, X, y)[:, None])


def by_size(model, X, y):
    """Stands for a tie that the last bits of a matrix product decide, other ones in a batch."""
    model.predict(X)
    return np.full(len(X), float(len(X) == 1))


@pytest.mark.parametrize("loss", [squeezed, by_size])
def test_a_record_that_fails_does_not_change_how_others_are_counted(loss):
    rows = np.repeat(X, 20, axis=0)
    sums = [summed_losses(loss, Coin(), rows, np.zeros(80))]
    rows[7] = 13.0
    sums.append(summed_losses(loss, Coin(), rows, np.zeros(80)))
    assert abs(sums[0] - sums[1]) <= LOSS.sensitivity


@pytest.mark.parametrize("cell", ["unknown", {"no": "number"}], ids=str)
@pytest.mark.parametrize("container", [list, partial(np.array, dtype=object), pd.DataFrame])
def test_a_row_that_cannot_be_read_fails_for_its_own_record_alone(container, cell):
    """Of a loss of somebody else's, who is shown rows of numbers."""

    def loss(model, X, y):
        return (model.predict(np.asarray(X)) != y).astype(float)

    rows = np.repeat(X, 20, axis=0).astype(object).tolist()
    labels = [int(row[0] > 0.0) for row in rows]
    assert summed_losses(loss, Coin(), container(rows), labels) == 0
    rows[7] = [cell]
    assert summed_losses(loss, Coin(), container(rows), labels) == LOSS.sensitivity


EXTREMES = [1e308, -1e308, 5e-324, np.nan, np.inf]


@pytest.mark.parametrize("value", EXTREMES)
@pytest.mark.parametrize(
    "loss", [error_loss, brier_loss, SurvivalLoss("brier", 1.0)], ids=["error", "brier", "survival"]
)
def test_records_that_are_looked_at_together_do_not_meet(loss, value, monkeypatch):
    """A product overflows behind the step before: its row is lost, and all others are as before."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    if isinstance(loss, SurvivalLoss):
        kind, model = DPDiscreteTimeSurvival, DPDiscreteTimeSurvival(max_time=1.0)
        asks = "_scores"
        y = Surv.from_arrays(rng.random(60) < 0.5, rng.random(60))
    else:
        kind, model = DPLogisticRegression, DPLogisticRegression(classes=[0, 1])
        asks = "predict"
        y = rng.integers(2, size=60)
    model = make_pipeline(PolynomialFeatures(3), Normalizer(), model).fit(rows, y)
    asked, predict = [], getattr(kind, asks)
    monkeypatch.setattr(kind, asks, lambda self, X: asked.append(len(X)) or predict(self, X))
    if loss is not brier_loss:
        before = summed_losses(loss, model, rows, y)
        assert asked == [60]
    monkeypatch.undo()
    losses = [_at_once(loss, model, rows, y)]
    rows[7, 0] = value
    with suppressed_warnings():
        losses.append(_at_once(loss, model, rows, y))
    others = np.arange(60) != 7
    np.testing.assert_array_equal(losses[0][others], losses[1][others])
    assert np.isfinite(losses[1][others]).all()
    assert np.isnan(losses[1][7]) == (value != 5e-324)
    if loss is not brier_loss:
        assert abs(summed_losses(loss, model, rows, y) - before) <= LOSS.sensitivity


WARD = PublicColumns({"ward": list(WARDS)})
WHOLE = PublicColumns(RAW)
PARTS = ColumnTransformer([("ward", WARD, ["ward"]), ("age", PublicBoundsScaler(), ["age"])])


RAW_COLUMNS = {"whole": WHOLE, "parts": PARTS, "normed": make_pipeline(WHOLE, Normalizer())}


@pytest.mark.parametrize(
    ("columns", "inside", "loss"), thinned(RAW_COLUMNS, [True, False], [error_loss, brier_loss])
)
def test_raw_records_that_are_refused_count_for_themselves(columns, inside, loss):
    """Whatever is in a cell, all other rows are read as before, to the last bit."""
    data, columns = raw_labelled(), RAW_COLUMNS[columns]
    model = DPLogisticRegression(classes=[0, 1], columns=columns if inside else None)
    model = model if inside else make_pipeline(columns, model)
    model.fit(data.X, data.y)
    before = _at_once(loss, model, data.X, data.y)
    assert np.isfinite(before).all()
    assert summed_losses(loss, model, data.X, data.y) == LOSS.total(before)
    for cell in ("south", 7, np.array([1.0]), {"no": "hash"}):
        X = data.X.copy()
        X["ward"] = [cell if row == 7 else ward for row, ward in enumerate(X["ward"])]
        with suppressed_warnings():
            after = _at_once(loss, model, X, data.y)
        assert np.isnan(after[7])
        np.testing.assert_array_equal(np.delete(after, 7), np.delete(before, 7))


def test_raw_rows_of_any_container_are_read_alike():
    """One gap must not change how the cells of others are read."""
    data = raw_labelled()
    ward = PublicColumns({"x1": list(WARDS)})
    parts = ColumnTransformer([("ward", ward, [1]), ("age", PublicBoundsScaler(), [0])])
    rows = data.X[["age", "ward"]].to_numpy().tolist()
    model = DPLogisticRegression(1e3, classes=[0, 1], columns=parts).fit(rows, data.y)
    before = _at_once(error_loss, model, rows, data.y)
    np.testing.assert_array_equal(before, error_loss(model, rows, data.y))
    for gap in (None, float("nan"), "7", np.float32(0.1)):
        changed = [[gap, ward] if row == 7 else [age, ward] for row, (age, ward) in enumerate(rows)]
        after = _at_once(error_loss, model, changed, data.y)
        np.testing.assert_array_equal(np.delete(after, 7), np.delete(before, 7))


def test_bounds_by_name_are_found_and_gaps_between_steps_are_no_refusals():
    """A later step may fill them; a row that an earlier one refuses is refused."""
    data = raw_labelled()
    X = pd.DataFrame({"a": data.X["age"].astype(float), "b": 1.0})
    scaler = PublicBoundsScaler({"b": 0.0, "a": -0.5}, {"b": 2.0, "a": 0.5})
    for columns, steps in ((scaler, []), (None, [scaler])):
        model = DPLogisticRegression(1e3, classes=[0, 1], columns=columns)
        model = make_pipeline(*steps, model).fit(X, data.y)
        found = summed_losses(error_loss, model, X, data.y)
        assert found == LOSS.total(error_loss(model, X, data.y))
        turned = X[["b", "a"]] if columns is scaler else X
        assert summed_losses(error_loss, model, turned, data.y) == found
    X = np.where(np.arange(len(X))[:, None] < 10, np.nan, X)
    model = make_pipeline(PublicBoundsScaler(missing="midpoint"), DPLogisticRegression(1e3))
    model.fit(X, data.y)
    found = _at_once(error_loss, model, X, data.y)
    np.testing.assert_array_equal(found, error_loss(model, X, data.y))
    first = ColumnTransformer([("ward", WARD, ["ward"])], remainder="passthrough")
    model = make_pipeline(
        first, PublicBoundsScaler(missing="midpoint"), DPLogisticRegression(1e3, classes=[0, 1])
    )
    X = data.X[["ward", "age"]].assign(age=[None] * 10 + [0.25] * (len(data.X) - 10))
    model.fit(X, data.y)
    np.testing.assert_array_equal(
        _at_once(error_loss, model, X, data.y), error_loss(model, X, data.y)
    )
    refused = X.assign(ward=["south"] * 20 + list(X["ward"])[20:])
    assert np.isnan(_at_once(error_loss, model, refused, data.y)[:20]).all()


def test_a_label_that_compares_with_nothing_counts_for_itself():
    for loss, label in product(
        [error_loss, brier_loss], [[1, 2], {}, np.array([1, 0]), Surv, None]
    ):
        labels = np.zeros(4, dtype=object)
        sums = [summed_losses(loss, Coin(), X, labels)]
        labels[1] = label
        sums.append(summed_losses(loss, Coin(), X, labels))
        assert abs(sums[0] - sums[1]) <= LOSS.sensitivity
        assert np.isfinite(loss(Coin(), X, labels)).all()


def test_the_public_model_inside_sees_all_records_at_once_and_what_it_can():
    """Trees cannot take numbers beyond single precision; text has no place in a column of numbers.

    One by one, a forest would take a minute and a half for 2,000 records.
    """
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 2))
    y = (rows[:, 0] > 0).astype(int)
    forest = RandomForestClassifier(n_estimators=5, random_state=0)
    model = HybridMEstimator(forest, method="cells").fit(rows, y, public=np.arange(80) < 40)
    held_out = rows[40:].astype(object)
    losses = [_at_once(error_loss, model, held_out, y[40:])]
    np.testing.assert_array_equal(losses[0], model.predict(held_out) != y[40:])
    for value in (1e39, 1e300, np.nan, "x"):
        held_out[3, 1] = value
        losses.append(_at_once(error_loss, model, held_out, y[40:]))
        assert np.isnan(losses[-1][3])
        np.testing.assert_array_equal(np.delete(losses[0], 3), np.delete(losses[-1], 3))


def test_a_row_that_ends_the_program_where_it_is_read_counts_for_itself(monkeypatch):
    def leaving(X):
        if (np.asarray(X) == 13.0).any():
            raise SystemExit
        return np.asarray(X, dtype=float)

    class Final:
        estimator_ = Coin()
        _matrix = staticmethod(leaving)

    Final.estimator_.n_features_in_ = 1
    rows = np.array([[1.0], [13.0], [-1.0]])
    np.testing.assert_array_equal(_matrix(Final, rows), [[1.0], [np.nan], [-1.0]])
    columns = PublicColumns({"a": (0, 20)})
    frame = pd.DataFrame(rows, columns=["a"])
    columns.fit(frame)
    monkeypatch.setattr(summed, "encoded", lambda step, X, *names: leaving(X))
    np.testing.assert_array_equal(_features([columns], columns, frame), [[1.0], [np.nan], [-1.0]])


def test_a_failed_model_loses_everything():
    assert summed_losses(error_loss, None, X, Y) == 4 * LOSS.sensitivity


def test_the_model_that_sees_records_is_a_copy():
    class Nosy(Coin):
        def predict(self, X):
            self.seen = X
            return super().predict(X)

    model = Nosy()
    assert summed_losses(error_loss, model, X, Y) == 2 * LOSS.sensitivity
    assert not hasattr(model, "seen")


@pytest.mark.parametrize("kind", ["likelihood", "brier"])
class TestSurvival:
    def data(self, n=20_000):
        rng = np.random.default_rng(0)
        X = rng.choice([-1.0, 1.0], size=(n, 1))
        time = rng.exponential(np.exp(-0.7 * X[:, 0]))
        censored = rng.exponential(1.0, size=n)
        return X, Surv.from_arrays(time <= censored, np.minimum(time, censored))

    def test_the_true_curve_is_best_whatever_the_censoring(self, kind):
        """A mean over 20,000 records; the others are more than 10 standard errors behind."""
        X, y = self.data()
        loss = SurvivalLoss(kind, 1.0)

        class Model:
            unique_times_ = np.arange(1, 101) / 100

            def __init__(self, level, slope):
                self.level, self.slope = level, slope

            def predict_cumulative_hazard_function(self, X, return_array):
                rate = self.level * np.exp(self.slope * X[:, 0])
                return rate[:, None] * self.unique_times_

        true = loss(Model(1.0, 0.7), X, y)
        for level, slope in [(1.0, 0.0), (1.0, 1.3), (0.6, 0.7), (1.6, 0.7), (1.0, -0.7)]:
            worse = loss(Model(level, slope), X, y) - true
            assert worse.mean() > 4 * worse.std() / np.sqrt(worse.size), (level, slope)

    def test_values_are_of_times_within_the_horizon(self, kind):
        X, y = self.data(500)
        loss = SurvivalLoss(kind, 1.0)
        late = Surv.from_arrays([True] * 500, np.full(500, 3.0))
        last = Surv.from_arrays([False] * 500, np.full(500, 1.0))
        hazard = DPDiscreteTimeSurvival(np.inf, max_time=1.0, n_intervals=37)
        for model in (hazard, DPWeibullFitter(np.inf, max_time=1.0)):  # without covariates
            losses = loss(model.fit(X, y), X, y)
            assert losses.shape == (500,)
            assert ((losses >= 0) & (losses <= 1)).all()
            np.testing.assert_array_equal(loss(model, X, late), loss(model, X, last))


def test_times_alone_are_held_out_as_they_are():
    """All of them events; X has one column, as frames of durations have."""
    for container, kind in product(
        [list, tuple, np.asarray, pd.Series], [DPDiscreteTimeSurvival, DPWeibullFitter]
    ):
        rng = np.random.default_rng(0)
        times, rows = rng.uniform(0.5, 4.0, 200), pd.DataFrame({"x": rng.uniform(-1, 1, 200)})
        y = Surv.from_arrays(np.ones(200, bool), times)
        model = kind(50.0, max_time=5.0, random_state=0)
        with suppressed_warnings():
            model.fit(rows, y)
        loss, held = SurvivalLoss("brier", 5.0), np.arange(20, 90)
        found = [
            summed_losses(loss, model, *SearchRecords.split(rows, target, {}, model).held_out(held))
            for target in (container(times), y)
        ]
        assert found[0] == found[1] < len(held) * LOSS.sensitivity


def test_likelihood_of_a_constant_hazard():
    class Constant:
        unique_times_ = np.array([0.5, 1.0, 1.5, 2.0])

        def predict_cumulative_hazard_function(self, X, return_array):
            return np.broadcast_to(1.5 * self.unique_times_, (len(X), 4))

    y = Surv.from_arrays([True, False], [0.3, 0.3])
    loss = SurvivalLoss("likelihood", 2.0, log_range=(-2.0, 6.0))
    # H(0.3) = 0.45; the hazard is 3 in units of 1 / horizon.
    expected = (np.array([0.45 - np.log(3.0), 0.45]) + 2.0) / 8.0
    np.testing.assert_allclose(loss(Constant(), np.zeros((2, 1)), y), expected)
