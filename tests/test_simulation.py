"""Made-up people give back, by fits without privacy, the releases that they are made up from.

Each comparison is at 6 standard errors of sampling, or at 1e-7 of a chi-squared statistic, with
fixed seeds: in all, less than one false alarm in a million.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from skdpsurv import (
    DPAalenJohansenFitter,
    DPCompetingRisks,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPTableOne,
    DPWeibullFitter,
    PublicColumns,
    Release,
)
from skdpsurv.data import PublicBoundsScaler
from skdpsurv.survival.hazards.model import published_basis

N, END, Z = 20_000, 8.0, 6.0
QUARTERS = END * np.array([0.25, 0.5, 0.75, 1.0])
STAGES = ["I", "II", "III"]
COLUMNS = PublicColumns(
    {
        "age": {"bounds": [18, 100], "unit": "years"},
        "stage": STAGES,
        "treated": bool,
        "nodes": {"log": [0, 35], "offset": 1},
    }
)


def people(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"age": rng.normal(60, 10, n), "stage": rng.choice(STAGES, n, p=[0.5, 0.3, 0.2])}
    )
    X["treated"] = rng.random(n) < 0.2 + 0.3 * (X["stage"] == "III")
    X["nodes"] = rng.poisson(3, n)
    hazard = 0.1 * np.exp((X["age"] - 60) / 15 + 0.5 * (X["stage"] == "III") - 0.5 * X["treated"])
    time, lost = rng.exponential(1 / hazard), rng.exponential(15.0, n)
    y = np.empty(n, dtype=[("died", "?"), ("years", "f8")])
    y["died"], y["years"] = time <= np.minimum(lost, END), np.minimum(np.minimum(time, lost), END)
    return X, y


def cause_of(y, labels=(0, 1, 2)):
    which = np.random.default_rng(5).random(y.size) < 0.05 + 0.02 * y["years"]
    return np.array(labels, dtype=object)[np.where(y["died"], 1 + which, 0)]


X, Y = people()
#: Without privacy, so that a release and its refit have no error but that of sampling.
EXACT = {"epsilon": np.inf, "max_time": END}
TABLE = DPTableOne(epsilon=np.inf, columns=COLUMNS, by="stage").fit(X).release_


def alone(model):
    """Return the release of a fit, read from its text."""
    return Release.from_json(model.release_.to_json())


def assert_near(found, expected, errors, z=Z):
    assert (np.abs(np.asarray(found) - expected) <= z * np.asarray(errors)).all()


def assert_plausible(away, information):
    """Refuse a distance of estimates that is beyond their sampling error."""
    assert away @ information @ away < stats.chi2.isf(1e-7, away.size)


def binomial(share, n=N):
    return np.sqrt(share * (1.0 - share) / n)


def grid_information(model, X, y):
    """Return the information on baseline and coefficients of a hazard model with the logit link."""
    rows, q = model.columns_.transform(X), model.unique_times_.size
    basis = published_basis(q, model.baseline_coef_.shape[-1])
    last = np.ceil(q * y["years"] / END)
    total = np.zeros((basis.shape[1] + rows.shape[1],) * 2)
    for s in range(q):
        own = rows[last > s]
        z = np.hstack([np.tile(basis[s], (len(own), 1)), own])
        h = special.expit(z @ np.append(model.baseline_coef_, model.coef_))
        total += (z.T * (h * (1 - h))) @ z
    return total


@pytest.mark.parametrize("censoring", [None, 0.08])
def test_hazards_come_back(censoring):
    settings = {**EXACT, "columns": COLUMNS, "n_intervals": 24}
    model = DPDiscreteTimeSurvival(**settings).fit(X, Y)
    M, y = alone(model).simulate(N, 1, table=TABLE, censoring=censoring)
    assert y.dtype.names == ("died", "years")
    assert (y["years"] <= END).all()
    assert (y["years"] < END)[~y["died"]].any() == bool(censoring)
    again = DPDiscreteTimeSurvival(**settings).fit(M, y)
    both = [np.append(one.baseline_coef_, one.coef_) for one in (model, again)]
    assert_plausible(both[1] - both[0], grid_information(model, M, y))
    # Those who are lost tell less: at the end, more than half of the people are followed.
    expected, found = (
        one.predict_survival_function(M, True)[:, 5::6].mean(0) for one in (model, again)
    )
    assert_near(found, expected, binomial(expected, N if censoring is None else N / 2))


def test_hazards_of_strata_and_other_links_come_back():
    for options in ({"strata": "stage"}, {"link": "cloglog"}):
        settings = {**EXACT, "columns": COLUMNS, "n_intervals": 24, **options}
        model = DPDiscreteTimeSurvival(**settings).fit(X, Y)
        M, y = alone(model).simulate(N, 2, table=TABLE)
        again = DPDiscreteTimeSurvival(**settings).fit(M, y)
        for stage in STAGES:
            one, other = (
                m.predict_survival_function(M[M["stage"] == stage], True)[:, 5::6].mean(0)
                for m in (model, again)
            )
            assert_near(other, one, binomial(one, (M["stage"] == stage).sum()))
        # A coefficient of a column with the deviation s has an error of about 1 / (s root(events)).
        errors = 1.2 / M["age"].std() * 41.0 / np.sqrt(y["died"].sum())
        assert_near(again.coef_[0], model.coef_[0], errors)


@pytest.mark.slow
def test_causes_come_back():
    for labels in ((0, 1, 2), ("alive", "relapse", "death"), (0, "relapse", "death")):
        how = {"causes": list(labels[1:]), "censored": labels[0], "n_intervals": 24}
        settings = {**EXACT, "columns": COLUMNS, **how}
        model = DPCompetingRisks(**settings).fit(X, (cause_of(Y, labels), Y["years"]))
        M, y = alone(model).simulate(N, 3, table=TABLE)
        assert set(y["event"]) == set(labels)
        again = DPCompetingRisks(**settings).fit(M, y)
        for cause in labels[1:]:
            one, other = (
                m.predict_cumulative_incidence_function(M, cause, True)[:, 5::6].mean(0)
                for m in (model, again)
            )
            assert_near(other, one, binomial(one))
            errors = 1.2 / M["age"].std() * 41.0 / np.sqrt((y["event"] == cause).sum())
            at = labels.index(cause) - 1
            assert_near(again.coef_[at, 0], model.coef_[at, 0], errors)


def greenwood(curve):
    """Return the standard errors of a curve at the quarters, by its table."""
    table = curve.event_table.iloc[1:]
    left = table["at_risk"] - table["censored"] / 2
    sums = (table["observed"] / (left * (left - table["observed"]).clip(lower=1))).cumsum()
    at = [np.searchsorted(table.index, time) for time in QUARTERS]
    return curve.predict(QUARTERS) * np.sqrt(sums.iloc[at]).to_numpy()


@pytest.mark.parametrize("with_censoring", [False, True])
def test_curves_of_groups_come_back(with_censoring):
    settings = {**EXACT, "groups": STAGES, "n_intervals": 40}
    model = DPKaplanMeierFitter(**settings).fit(Y["years"], Y["died"], group=X["stage"])
    release = alone(model)
    M, y = release.simulate(N, 4, censoring=release if with_censoring else None)
    again = DPKaplanMeierFitter(**settings).fit(y["time"], y["event"], group=M["group"])
    for stage in STAGES:
        one, other = model.of_group(stage), again.of_group(stage)
        assert_near(other.predict(QUARTERS), one.predict(QUARTERS), greenwood(other))
        share = (X["stage"] == stage).mean()
        assert_near((M["group"] == stage).mean(), share, binomial(share))
        if with_censoring:
            was, now = (
                m.event_table["censored"].iloc[:-1].sum() / m.event_table["entrance"].sum()
                for m in (one, other)
            )
            assert_near(now, was, binomial(was, share * N))


def test_incidences_come_back():
    settings = {**EXACT, "causes": ["relapse", "death"], "censored": "alive", "n_intervals": 40}
    which = cause_of(Y, ("alive", "relapse", "death"))
    model = DPAalenJohansenFitter(**settings).fit(Y["years"], which)
    M, y = alone(model).simulate(N, 5)
    assert M.shape == (N, 0)
    again = DPAalenJohansenFitter(**settings).fit(y["time"], y["event"])
    for cause in settings["causes"]:
        one, other = (m.cumulative_density_at_times(QUARTERS, cause=cause) for m in (model, again))
        assert_near(other, one.to_numpy(), binomial(one))


def test_late_entries_come_back():
    entry = np.random.default_rng(1).uniform(0.0, 4.0, Y.size) * (np.arange(Y.size) % 2)
    seen = Y["years"] > entry
    settings = {**EXACT, "n_intervals": 40, "breakpoints": "equal"}
    model = DPKaplanMeierFitter(**settings)
    model = model.fit(Y["years"][seen], Y["died"][seen], entry=entry[seen])
    M, y = alone(model).simulate(N, 6)
    assert (M["entry"] < y["time"]).all()
    shares = [(one == 0.0).mean() for one in (entry[seen], M["entry"])]
    assert_near(shares[1], shares[0], binomial(shares[0]))
    again = DPKaplanMeierFitter(**settings).fit(y["time"], y["event"], entry=M["entry"])
    assert_near(again.predict(QUARTERS), model.predict(QUARTERS), greenwood(again))


def test_nobody_is_lost_before_an_entry():
    entry = np.random.default_rng(1).uniform(0.0, 4.0, Y.size)
    seen = Y["years"] > entry
    settings = {**EXACT, "n_intervals": 40, "breakpoints": "equal"}
    late = DPKaplanMeierFitter(**settings)
    late = late.fit(Y["years"][seen], Y["died"][seen], entry=entry[seen]).release_
    plain = DPKaplanMeierFitter(**settings).fit(Y["years"], Y["died"]).release_

    def soon(X, rng):
        return X["entry"] + 0.5

    for censoring in (0.5, late, plain, soon):
        M, y = late.simulate(N, 21, censoring=censoring)
        assert (M["entry"] < y["time"]).all()
        assert (~y["event"] & (y["time"] < END)).any()
    _, y = late.simulate(N, 21, censoring=0.5)
    left = (y["time"] - M["entry"])[~y["event"] & (y["time"] < END)]
    assert left.mean() < 2.0  # 1 / 0.5, less those who had an event
    with pytest.raises(ValueError, match="not before an entry"):
        late.simulate(N, 21, censoring=np.full(N, 1.0))


def test_weibull_distributions_come_back():
    model = DPWeibullFitter(**EXACT).fit(Y["years"], Y["died"])
    _, y = alone(model).simulate(N, 7, censoring=0.05)
    again = DPWeibullFitter(**EXACT).fit(y["time"], y["event"])
    one, other = model.predict(QUARTERS), again.predict(QUARTERS)
    assert_near(other, one, binomial(one, N / 2))
    assert_near(again.rho_ / model.rho_, 1.0, 1.0 / np.sqrt(y["event"].sum()))


def test_classes_come_back():
    for classes, labels in ((["no", "yes"], Y["died"] + 0), (STAGES, Y["years"] // 3)):
        named = np.array(classes)[np.asarray(labels, dtype=int).clip(max=len(classes) - 1)]
        settings = {"epsilon": np.inf, "columns": COLUMNS, "classes": classes}
        model = DPLogisticRegression(**settings).fit(X, named)
        M, y = alone(model).simulate(N, 8, table=TABLE)
        for label, p in zip(classes, model.predict_proba(M).mean(0), strict=True):
            assert_near((y == label).mean(), p, binomial(p))
        if len(classes) == 2:
            z = np.column_stack([np.ones(N), model.columns_.transform(M)])
            again = DPLogisticRegression(**settings).fit(M, y)
            p = model.predict_proba(M)[:, 1]
            away = [np.append(one.intercept_, one.coef_[0]) for one in (model, again)]
            assert_plausible(away[1] - away[0], (z.T * (p * (1 - p))) @ z)


def assert_margins(M, parts=("Overall", *STAGES)):
    table = DPTableOne.from_release(TABLE).table_["estimate"]
    for part in parts:
        rows = M if part == "Overall" else M[M["stage"] == part]
        n = len(rows)
        share = table["treated", "True", "share", part]
        assert_near(rows["treated"].mean(), share, binomial(share, n))
        for name in ("age", "nodes"):
            mean, sd = table[name, "", "mean", part], table[name, "", "sd", part]
            width = (82.0 if name == "age" else 35.0) / 199.0  # of the grid, which is a bias
            assert_near(rows[name].mean(), mean, sd / np.sqrt(n) + width / 50)
            assert_near(rows[name].std(), sd, 2 * sd / np.sqrt(2 * n) + width / 50)
            if name == "age":
                for q, p in (("q1", 0.25), ("median", 0.5), ("q3", 0.75)):
                    below = (rows[name] < table[name, "", q, part]).mean()
                    assert_near(below, p, binomial(p, n))
    for stage in STAGES:
        share = table["n", "", "n", stage] / len(X)
        assert_near((M["stage"] == stage).mean(), share, binomial(share))


def test_the_margins_of_a_table_come_back_by_group():
    M, y = TABLE.simulate(N, 9)
    assert y is None
    assert set(M.attrs["margins"].values()) == {"Table 1"}
    assert_margins(M)


def test_without_its_groups_a_table_gives_the_margins_of_all():
    columns = PublicColumns.of(age=(18, 100), treated=bool)
    table = DPTableOne(epsilon=np.inf, columns=COLUMNS, by="stage").fit(X).release_
    model = DPDiscreteTimeSurvival(**EXACT, columns=columns).fit(X[["age", "treated"]], Y)
    M, _ = model.release_.simulate(N, 10, table=table)
    assert_near(M["treated"].mean(), X["treated"].mean(), binomial(X["treated"].mean()))


def test_a_private_fit_gives_the_margins_that_it_measured():
    model = DPDiscreteTimeSurvival(5.0, max_time=END, columns=COLUMNS, inference_share=0.3)
    release = alone(model.fit(X, Y))
    M, y = release.simulate(N, 11)
    assert set(M.attrs["margins"].values()) == {"the fit"}
    rows = release.transformer().transform(M)
    center, scale = release.values["row_center"], release.values["row_scale"]
    assert_near(rows.mean(0), center, rows.std(0) / np.sqrt(N) + 1e-3)
    assert_near(rows.std(0)[[0, 4]], scale[[0, 4]], scale[[0, 4]] / np.sqrt(N) + 1e-3)
    # Effects are those of predictions.
    again = DPDiscreteTimeSurvival(**EXACT, columns=COLUMNS).fit(M, y)
    one, other = (m.predict_survival_function(M, True)[:, 49::50].mean(0) for m in (model, again))
    assert_near(other, one, binomial(one))


def test_stated_margins_are_used_and_others_are_even():
    columns = PublicColumns(
        {
            "age": {"bounds": [18, 100], "typical": 60, "spread": 9},
            "stage": {"categories": STAGES, "prevalence": [0.6, 0.3, 0.1]},
            "treated": {"boolean": True, "prevalence": 0.2},
            "nodes": (0, 35),
        }
    )
    model = DPDiscreteTimeSurvival(**EXACT, columns=columns).fit(X, Y)
    M, _ = model.release_.simulate(N, 12)
    sources = dict.fromkeys(M, "the columns") | {"nodes": "none: spread evenly"}
    assert M.attrs["margins"] == sources
    assert_near(M["age"].mean(), 60, 9 / np.sqrt(N))
    assert_near(M["age"].std(), 9, 9 / np.sqrt(N))
    for label, share in zip(STAGES, [0.6, 0.3, 0.1], strict=True):
        assert_near((M["stage"] == label).mean(), share, binomial(share))
    assert_near(M["treated"].mean(), 0.2, binomial(0.2))
    assert stats.kstest(M["nodes"] / 35, "uniform").pvalue > 1e-7


def test_what_a_small_fit_did_not_measure_is_even():
    """Below n * epsilon = 200 a release holds public centres and scales alone."""
    columns = PublicColumns(
        {"age": {"bounds": [18, 100], "spread": 9}, "stage": STAGES, "n": (0, 1)}
    )
    rows = X[:100].assign(n=0.9)[["age", "stage", "n"]]
    model = DPDiscreteTimeSurvival(1.0, max_time=END, columns=columns).fit(rows, Y[:100])
    M, _ = model.release_.simulate(N, 19)
    even = "none: spread evenly"
    assert M.attrs["margins"] == {"age": "the columns", "stage": even, "n": even}
    for label in STAGES:
        assert_near((M["stage"] == label).mean(), 1 / 3, binomial(1 / 3))
    assert_near(M["n"].mean(), 0.5, np.sqrt(1 / 12 / N))


KINDS = {
    "number": {"bounds": [-3, 5], "missing": "midpoint"},
    "gap": {"bounds": [0, 1], "missing": "category"},
    "label": {"categories": [1, 2, 3], "missing": "category"},
    "missing": {"categories": ["missing", "present"]},
    "flag": {"boolean": True, "missing": "midpoint"},
    "day": {"dates": ["2001-01-01", "2010-12-31"]},
    "inverse": {"power": [1, 9], "exponent": -1, "spread": 0.1, "typical": 1.2},
    "curve": {"spline": [15, 60], "df": 3, "typical": 25, "spread": 4},
    "number:flag": {"interaction": ["number", "flag"]},
}


def test_every_kind_of_column_is_drawn_within_its_description():
    columns = PublicColumns(KINDS)
    raw = pd.DataFrame(
        {name: [one.example] * 400 for name, one in zip(KINDS, columns._kinds(), strict=False)}
    )
    raw["number"], raw["label"] = [None, *[1.0] * 399], [None] * 100 + [3] * 300
    raw["gap"] = [None] * 200 + [0.25] * 200
    table = DPTableOne(epsilon=np.inf, columns=columns).fit(raw).release_
    model = DPDiscreteTimeSurvival(**EXACT, columns=columns).fit(raw, Y[:400])
    for known in (None, table):
        M, _ = alone(model).simulate(2000, 13, table=known)
        assert np.isfinite(model.release_.predict(M, strict=True)).all()
        if known is None:  # most inverses are near that of the typical value
            assert np.abs(1 / M["inverse"] - 1 / 1.2).mean() < 0.12
            assert abs(M["curve"].mean() - 25) < 1
    assert_near(M["gap"].isna().mean(), 0.5, binomial(0.5, 2000))
    assert_near(M["label"].isna().mean(), 0.25, binomial(0.25, 2000))
    assert set(M["label"].dropna()) == {3}


def test_measured_shares_of_missing_values_are_used():
    columns = PublicColumns({"age": {"bounds": [18, 100], "missing": "category"}, "treated": bool})
    raw = X[["age", "treated"]].assign(age=X["age"].where(np.arange(len(X)) % 4 > 0))
    model = DPDiscreteTimeSurvival(50.0, max_time=END, columns=columns).fit(raw, Y)
    M, _ = model.release_.simulate(N, 14)
    assert abs(M["age"].isna().mean() - 0.25) < 0.05


def test_measured_moments_are_those_of_values_that_are_there():
    """A fit measures the middle of the bounds where a value is missing, and that as a feature."""
    columns = PublicColumns(
        {
            "age": {"bounds": [0, 100], "missing": "category"},
            "treated": {"boolean": True, "missing": "category"},
        }
    )
    rng = np.random.default_rng(2)
    raw = pd.DataFrame({"age": rng.normal(80, 5, len(X)), "treated": rng.random(len(X)) < 0.9})
    raw = raw.astype(object).mask(rng.random(raw.shape) < 0.4)
    model = DPDiscreteTimeSurvival(500.0, max_time=END, columns=columns, inference_share=0.3)
    M, _ = model.fit(raw, Y).release_.simulate(N, 20)
    assert set(M.attrs["margins"].values()) == {"the fit"}
    assert_near(M.isna().mean(), 0.4, 0.01)
    assert_near(M["age"].astype(float).mean(), 80, 0.3)
    assert_near(M["age"].astype(float).std(), 5, 1)
    assert_near(M["treated"].dropna().astype(float).mean(), 0.9, 0.01)


def test_arrays_come_without_names():
    for columns in (PublicColumns.of(a=(0, 1), b=bool), PublicBoundsScaler([0, 0], [1, 1])):
        rows = np.column_stack([X["age"] / 100, X["treated"]])
        model = DPDiscreteTimeSurvival(**EXACT, columns=columns).fit(rows, Y)
        M, y = alone(model).simulate(50, 15)
        assert M.shape == (50, 2)
        assert y.shape == (50,)


def test_the_release_is_all_that_is_used_and_the_seed_decides():
    model = DPDiscreteTimeSurvival(2.0, max_time=END, columns=COLUMNS).fit(X, Y)
    text, own = model.release_.to_json(), model.release_.simulate(300, 16, censoring=0.1)
    del model
    again = Release.from_json(text).simulate(300, 16, censoring=0.1)
    pd.testing.assert_frame_equal(own[0], again[0])
    assert (own[1] == again[1]).all()
    assert "nobody" in again[0].attrs["made_up"]
    other = Release.from_json(text).simulate(300, 17)[0]
    assert not own[0].equals(other)
    # Other censoring is of the same people.
    free = Release.from_json(text).simulate(300, 16)
    assert own[0].equals(free[0])
    assert (own[1]["years"] <= free[1]["years"]).all()


def test_censoring_may_be_times_a_function_or_a_curve():
    release = DPDiscreteTimeSurvival(**EXACT, columns=COLUMNS).fit(X, Y).release_
    _, free = release.simulate(500, 18)
    _, y = release.simulate(500, 18, censoring=np.full(500, 2.0))
    assert y["years"][~y["died"]].tolist() == [2.0] * (~y["died"]).sum()
    late = y["died"] & (y["years"] > 2.0)  # in the interval of censoring, which a fit reads so
    assert (y["years"][late] <= 2.0 + END / 200).all()

    def by_age(X, rng):
        return np.where(X["age"] > 60, 1.0, np.inf) + rng.random(len(X))

    M, y = release.simulate(500, 18, censoring=by_age)
    old = (M["age"] > 60).to_numpy()
    assert y["years"][old].max() <= 2.1
    assert (y["years"][~old] == free["years"][~old]).all()
    curve = DPKaplanMeierFitter(**EXACT).fit(Y["years"], Y["died"]).release_
    _, y = release.simulate(N, 18, censoring=curve)
    lost = DPKaplanMeierFitter(**EXACT, n_intervals=40).fit(y["years"], ~y["died"]).predict(4.0)
    assert_near(lost, np.exp(-4.0 / 15.0), binomial(0.77, N / 2))  # 15: the mean of people()


REFUSED = [
    ({"n_records": 0}, ValueError, "n_records must be"),
    ({"n_records": 2.5}, TypeError, "n_records must be"),
    ({"seed": -1}, ValueError, "seed must be"),
    ({"seed": None}, TypeError, "seed must be"),
    ({"table": "table.json"}, TypeError, "table must be"),
    ({"censoring": 0.0}, ValueError, "censoring must be"),
    ({"censoring": [1.0, 2.0]}, ValueError, "censoring must be"),
    ({"censoring": -np.ones(10)}, ValueError, "censoring must be"),
    ({"censoring": "half"}, ValueError, "censoring must be"),
    ({"censoring": TABLE}, ValueError, "censoring must be"),
]


@pytest.fixture(scope="module")
def release():
    return DPDiscreteTimeSurvival(**EXACT, columns=COLUMNS).fit(X, Y).release_


@pytest.mark.parametrize(("wrong", "error", "says"), REFUSED)
def test_wrong_arguments_are_named(release, wrong, error, says):
    with pytest.raises(error, match=says):
        release.simulate(**{"n_records": 10, "seed": 0, **wrong})


def test_other_labels_in_a_table_are_refused(release):
    columns = PublicColumns.of(age=(18, 100), stage=["I", "II", "III", "IV"])
    table = DPTableOne(epsilon=np.inf, columns=columns).fit(X[["age", "stage"]]).release_
    with pytest.raises(ValueError, match="table must describe 'stage' as the release does"):
        release.simulate(10, 0, table=table)


def test_releases_that_describe_nobody_are_refused():
    rows = COLUMNS.transform(X)
    plain = DPDiscreteTimeSurvival(**EXACT).fit(rows, Y).release_
    with pytest.raises(ValueError, match="columns of the release must state bounds"):
        plain.simulate(10, 0)
    curve = DPWeibullFitter(**EXACT).fit(Y["years"], Y["died"]).release_
    with pytest.raises(ValueError, match="table must be None for a DPWeibullFitter"):
        curve.simulate(10, 0, table=TABLE)
    with pytest.raises(ValueError, match="a Release of Kaplan-Meier"):
        curve.simulate(10, 0, censoring=curve)
    classes = DPLogisticRegression(epsilon=np.inf, columns=COLUMNS, classes=[0, 1])
    with pytest.raises(ValueError, match="censoring must be None for a DPLogisticRegression"):
        classes.fit(X, Y["died"] + 0).release_.simulate(10, 0, censoring=1.0)
    paper = Release.from_coefficients({"age": 0.1}, {"age": 0.1}, source="a paper")
    with pytest.raises(ValueError, match="nobody can be made up"):
        paper.simulate(10, 0)
