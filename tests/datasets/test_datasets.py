"""Data sets: what is loaded, what is refused, and that simulations keep their promises."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sksurv.datasets
from scipy.stats import kstest

from skdpsurv.data import PublicBoundsScaler
from skdpsurv.datasets import load_flchain, load_survival_csv, make_discrete_time_survival
from skdpsurv.reference import cox_coefficients


@pytest.fixture(scope="module")
def flchain():
    return load_flchain()


def test_flchain_is_the_published_data(flchain):
    assert flchain.X.shape == (7874, 7)
    assert flchain.y["death"].sum() == 2169
    assert flchain.X["creatinine"].isna().sum() == 1350
    assert flchain.X.drop(columns="creatinine").notna().all(axis=None)
    assert set(flchain.X.dtypes) == {np.dtype(float)}
    raw, y = sksurv.datasets.load_flchain()
    np.testing.assert_array_equal(flchain.y, y)
    np.testing.assert_array_equal(flchain.X["sex_male"] == 1, raw["sex"] == "M")
    np.testing.assert_array_equal(flchain.X["mgus"] == 1, raw["mgus"] == "yes")
    np.testing.assert_array_equal(flchain.X["sample_yr"], raw["sample.yr"].astype(float))
    for same in ("age", "kappa", "lambda", "creatinine"):
        np.testing.assert_array_equal(flchain.X[same], raw[same])


def test_flchain_does_not_hold_the_cause_of_death(flchain):
    assert list(flchain.X) == list(flchain.bounds)
    assert "chapter" not in flchain.X
    assert "left out. The cause of death, chapter," in flchain.description


def test_flchain_does_not_hold_the_quantile_group(flchain):
    assert not {"flc_grp", "flc.grp"} & set(flchain.X)
    assert "flc.grp" in flchain.description


def test_flchain_bounds_fit_the_scaler_and_are_not_the_extremes(flchain):
    scaler = PublicBoundsScaler.from_bounds(flchain.bounds, missing="midpoint")
    Z = scaler.set_output(transform="pandas").fit_transform(flchain.X)
    assert (Z.abs() <= 1).all(axis=None)
    for name in ("age", "kappa", "lambda", "creatinine"):
        low, high = flchain.bounds[name]
        assert high < flchain.X[name].max()
        clipped = (flchain.X[name] > high) | (flchain.X[name] < low)
        assert 0 < clipped.mean() < 0.01
    assert flchain.max_time < flchain.y["futime"].max()


def test_flchain_bounds_are_a_copy(flchain):
    load_flchain().bounds["age"] = (0, 1)
    assert load_flchain().bounds["age"] == flchain.bounds["age"]


def test_read_csv_plain_and_compressed(tmp_path):
    frame = pd.DataFrame(
        {"time": [3, 0, 12], "event": [1, 0, 1], "age": [70.5, None, 55], "sibs": [1, 2, 4]}
    )
    for name in ("data.csv", "data.csv.gz"):
        frame.to_csv(tmp_path / name, index=False)
        X, y = load_survival_csv(tmp_path / name)
        pd.testing.assert_frame_equal(X, frame[["age", "sibs"]])
        assert y.dtype == [("event", "?"), ("time", "f8")]
        np.testing.assert_array_equal(y["event"], [True, False, True])
        np.testing.assert_array_equal(y["time"], [3, 0, 12])


def test_read_csv_with_other_names_and_booleans(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("died,months,x\nTrue,2.5,1\nFalse,4,2\n")
    X, y = load_survival_csv(path, time="months", event="died")
    assert list(X) == ["x"]
    np.testing.assert_array_equal(y["event"], [True, False])
    with pytest.raises(ValueError, match="time must name a column of the file, got 'time'"):
        load_survival_csv(path, event="died")
    with pytest.raises(ValueError, match="event must name a column of the file, got 'event'"):
        load_survival_csv(path, time="months")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("-73.5,1", "column 'time' must hold finite times that are not negative"),
        (",1", "column 'time' must hold finite times"),
        ("inf,1", "column 'time' must hold finite times"),
        ("73.5 days,1", "column 'time' must hold finite times"),
        ("73.5,2", r"column 'event' must hold 0 \(censored\) and 1 \(event\) only"),
        ("73.5,", "column 'event' must hold 0"),
        ("73.5,dead", "column 'event' must hold 0"),
    ],
)
def test_read_csv_refuses_and_shows_no_value(tmp_path, row, message):
    path = tmp_path / "data.csv"
    path.write_text(f"time,event\n1,0\n{row}\n")
    with pytest.raises(ValueError, match=message) as info:
        load_survival_csv(path)
    assert "73.5" not in str(info.value)
    assert "dead" not in str(info.value)


def test_simulation_shapes_and_domain():
    data = make_discrete_time_survival(500, 4, max_time=30, random_state=0)
    assert data.X.shape == (500, 4)
    assert np.abs(data.X).max() <= 1
    assert data.y.dtype == [("event", "?"), ("time", "f8")]
    assert data.y["time"].min() > 0
    assert data.y["time"].max() == data.max_time == 30.0
    assert not data.y["event"][data.y["time"] == 30].any()
    np.testing.assert_allclose(data.coef, [1, 1 / 3, -1 / 3, -1])


def test_simulation_is_reproducible():
    one, two, other = (make_discrete_time_survival(50, random_state=s) for s in (7, 7, 8))
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)
    assert not np.array_equal(one.X, other.X)


@pytest.mark.parametrize("baseline", ["front-loaded", "flat", "rising"])
def test_simulated_lifetimes_follow_the_stated_law(baseline):
    """Kolmogorov-Smirnov at 1e-7, on event times mapped to the uniform law they should have."""
    data = make_discrete_time_survival(
        20_000, 2, baseline=baseline, event_rate=0.5, censoring_rate=0, random_state=1
    )
    u = data.y["time"] / data.max_time
    ratio = np.exp(data.X @ data.coef)
    dead = data.y["event"]
    by_now = -np.expm1(-data.cumulative_hazard * u**data.shape * ratio)
    by_horizon = -np.expm1(-data.cumulative_hazard * ratio)
    assert by_horizon.mean() == pytest.approx(0.5, abs=1e-9)
    assert kstest((by_now / by_horizon)[dead], "uniform").pvalue > 1e-7
    # Binomial with variance at most n / 4: 5.5 standard deviations, false alarm < 1e-7.
    assert abs(dead.mean() - 0.5) < 5.5 * 0.5 / np.sqrt(20_000)


@pytest.mark.parametrize("censoring", ["exponential", "uniform"])
@pytest.mark.parametrize("rate", [0.2, 0.7])
def test_simulated_dropout_has_the_stated_rate(censoring, rate):
    """With hardly any events the share of dropouts is binomial: 5.5 sd, false alarm < 1e-7."""
    n = 20_000
    data = make_discrete_time_survival(
        n, 1, event_rate=1e-9, censoring=censoring, censoring_rate=rate, random_state=2
    )
    dropped = (data.y["time"] < data.max_time).mean()
    assert abs(dropped - rate) < 5.5 * np.sqrt(rate * (1 - rate) / n)
    times = data.y["time"][data.y["time"] < data.max_time]
    law = times if censoring == "uniform" else (1 - (1 - rate) ** times) / rate
    assert kstest(law, "uniform").pvalue > 1e-7


def test_cox_recovers_the_simulated_coefficients():
    """Standard errors are below 0.03 here; 0.17 is more than 5.5 of them: false alarm < 1e-7."""
    data = make_discrete_time_survival(
        10_000, 2, coef=[0.8, -0.4], censoring="uniform", random_state=4
    )
    np.testing.assert_allclose(cox_coefficients(data.X, data.y), data.coef, atol=0.17)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_samples": 0}, "n_samples must be a positive integer, got 0"),
        ({"n_features": 1.5}, "n_features must be a positive integer, got float"),
        ({"baseline": "bathtub"}, "baseline must be one of .* got 'bathtub'"),
        ({"event_rate": 1.0}, r"event_rate must be a number in \(0, 1\), got 1.0"),
        ({"censoring": "none"}, "censoring must be one of 'exponential', 'uniform', got 'none'"),
        ({"censoring_rate": 1.0}, r"censoring_rate must be a number in \[0, 1\), got 1.0"),
        ({"max_time": -1}, "max_time must be a positive finite number, got -1"),
        ({"coef": [1.0, 2.0]}, r"coef must be finite and have shape \(n_features,\) = \(3,\)"),
        ({"coef": [1.0, 2.0, np.nan]}, "coef must be finite"),
    ],
)
def test_simulation_refuses(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make_discrete_time_survival(**change)
