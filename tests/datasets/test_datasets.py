"""Data sets: what is loaded, what is refused, and that simulations keep their promises."""

import itertools

import numpy as np
import pandas as pd
import pytest
import sksurv.datasets
from scipy.stats import kstest

from skdpsurv.data import PublicBoundsScaler
from skdpsurv.datasets import load_flchain, load_survival_csv, make_discrete_time_survival
from skdpsurv.reference import cox_coefficients

NUMBERS = ["age", "kappa", "lambda", "creatinine"]


def test_flchain_is_the_published_data():
    flchain, (raw, y) = load_flchain(), sksurv.datasets.load_flchain()
    assert flchain.X.shape == (7874, 7)
    assert flchain.y["death"].sum() == 2169
    assert flchain.X["creatinine"].isna().sum() == 1350
    assert flchain.X.drop(columns="creatinine").notna().all(axis=None)
    assert set(flchain.X.dtypes) == {np.dtype(float)}
    np.testing.assert_array_equal(flchain.y, y)
    np.testing.assert_array_equal(flchain.X["sex_male"] == 1, raw["sex"] == "M")
    np.testing.assert_array_equal(flchain.X["mgus"] == 1, raw["mgus"] == "yes")
    np.testing.assert_array_equal(flchain.X["sample_yr"], raw["sample.yr"].astype(float))
    np.testing.assert_array_equal(flchain.X[NUMBERS], raw[NUMBERS])
    # Neither the cause of death nor the quantile group, which is of the records.
    assert list(flchain.X) == list(flchain.bounds)
    assert not {"chapter", "flc_grp", "flc.grp"} & set(flchain.X)
    assert all(word in flchain.description for word in ("cause of death, chapter", "flc.grp"))


def test_flchain_bounds_fit_the_scaler_and_are_not_the_extremes():
    flchain = load_flchain()
    scaler = PublicBoundsScaler.from_bounds(flchain.bounds, missing="midpoint")
    assert (np.abs(scaler.fit_transform(flchain.X)) <= 1).all(axis=None)
    for name in NUMBERS:
        low, high = flchain.bounds[name]
        assert high < flchain.X[name].max()
        clipped = (flchain.X[name] > high) | (flchain.X[name] < low)
        assert 0 < clipped.mean() < 0.01
    assert flchain.max_time < flchain.y["futime"].max()
    load_flchain().bounds["age"] = (0, 1)  # a copy
    assert load_flchain().bounds["age"] == flchain.bounds["age"]


def test_read_csv(tmp_path):
    """Plain or compressed, with other names, and with booleans."""
    events = [1, 0, 1]
    frame = pd.DataFrame({"time": [3, 0, 12], "event": events, "age": [70.5, None, 55], "sibs": 1})
    for name in ("data.csv", "data.csv.gz"):
        frame.to_csv(tmp_path / name, index=False)
        X, y = load_survival_csv(tmp_path / name)
        pd.testing.assert_frame_equal(X, frame[["age", "sibs"]])
        assert y.dtype == [("event", "?"), ("time", "f8")]
        np.testing.assert_array_equal(y["event"], np.array(events, dtype=bool))
        np.testing.assert_array_equal(y["time"], [3, 0, 12])
    path = tmp_path / "other.csv"
    path.write_text("died,months,x\nTrue,2.5,1\nFalse,4,2\n")
    X, y = load_survival_csv(path, time="months", event="died")
    assert list(X) == ["x"]
    np.testing.assert_array_equal(y["event"], [True, False])
    for given, missing in (({"event": "died"}, "time"), ({"time": "months"}, "event")):
        with pytest.raises(ValueError, match=f"{missing} must name a column of the file"):
            load_survival_csv(path, **given)


def test_read_csv_refuses_and_shows_no_value(tmp_path):
    path = tmp_path / "data.csv"
    times = [(f"{time},1", "time") for time in ("-73.5", "", "inf", "73.5 days")]
    for row, name in times + [(f"73.5,{event}", "event") for event in ("2", "", "perished")]:
        path.write_text(f"time,event\n1,0\n{row}\n")
        with pytest.raises(ValueError, match=f"column '{name}' must ") as info:
            load_survival_csv(path)
        assert "73.5" not in str(info.value)
        assert "perished" not in str(info.value)


def test_simulation_shapes_and_domain():
    one, same, other = (
        make_discrete_time_survival(500, 4, max_time=30, random_state=s) for s in (7, 7, 8)
    )
    assert np.abs(one.X).max() <= 1
    assert one.y.dtype == [("event", "?"), ("time", "f8")]
    assert one.y["time"].min() > 0
    assert one.y["time"].max() == one.max_time == 30.0
    assert not one.y["event"][one.y["time"] == 30].any()
    np.testing.assert_allclose(one.coef, [1, 1 / 3, -1 / 3, -1])
    np.testing.assert_array_equal(one.X, same.X)
    np.testing.assert_array_equal(one.y, same.y)
    assert (one.X != other.X).any()


@pytest.mark.parametrize("baseline", ["front-loaded", "flat", "rising"])
def test_simulated_lifetimes_follow_the_stated_law(baseline):
    """Kolmogorov-Smirnov at 1e-7, on event times mapped to the uniform law they should have."""
    how = {"baseline": baseline, "event_rate": 0.5, "censoring_rate": 0, "random_state": 1}
    data = make_discrete_time_survival(20_000, 2, **how)
    ratio, dead = np.exp(data.X @ data.coef), data.y["event"]
    passed = (data.y["time"] / data.max_time) ** data.shape
    by_now, by_horizon = (
        -np.expm1(-data.cumulative_hazard * part * ratio) for part in (passed, 1.0)
    )
    assert by_horizon.mean() == pytest.approx(0.5, abs=1e-9)
    assert kstest((by_now / by_horizon)[dead], "uniform").pvalue > 1e-7
    # Binomial with variance at most n / 4: 5.5 standard deviations, false alarm < 1e-7.
    assert abs(dead.mean() - 0.5) < 5.5 * 0.5 / np.sqrt(20_000)


def test_simulated_dropout_has_the_stated_rate():
    """With hardly any events the share of dropouts is binomial: 5.5 sd, false alarm < 1e-7."""
    n = 20_000
    for censoring, rate in itertools.product(["exponential", "uniform"], [0.2, 0.7]):
        how = {"event_rate": 1e-9, "censoring": censoring, "random_state": 2}
        data = make_discrete_time_survival(n, 1, censoring_rate=rate, **how)
        times = data.y["time"][data.y["time"] < data.max_time]
        assert abs(times.size / n - rate) < 5.5 * np.sqrt(rate * (1 - rate) / n)
        law = times if censoring == "uniform" else (1 - (1 - rate) ** times) / rate
        assert kstest(law, "uniform").pvalue > 1e-7


def test_cox_recovers_the_simulated_coefficients():
    """Standard errors are below 0.03 here; 0.17 is more than 5.5 of them: false alarm < 1e-7."""
    how = {"coef": [0.8, -0.4], "censoring": "uniform", "random_state": 4}
    data = make_discrete_time_survival(10_000, 2, **how)
    np.testing.assert_allclose(cox_coefficients(data.X, data.y), data.coef, atol=0.17)


def test_simulation_refuses():
    for name, values in {
        "n_samples": (0,),
        "n_features": (1.5,),
        "baseline": ("bathtub",),
        "event_rate": (1.0,),
        "censoring": ("none",),
        "censoring_rate": (1.0,),
        "max_time": (-1,),
        "coef": ([1.0, 2.0], [1.0, 2.0, np.nan]),
    }.items():
        for value in values:
            with pytest.raises((TypeError, ValueError), match=f"^{name} must be"):
                make_discrete_time_survival(**{name: value})
