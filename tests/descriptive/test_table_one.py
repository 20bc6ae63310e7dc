"""DPTableOne: exact without noise, groups that add up, valid intervals, the layout of tableone."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skdpsurv import DPTableOne, PrivacyAccountant, PublicColumns, Release, pool_releases
from skdpsurv.descriptive.printed import Printed
from skdpsurv.descriptive.share_intervals import Level
from skdpsurv.descriptive.summary import Summary

N = 3000
PAIR = "control", "open"
COLUMNS = PublicColumns(
    {
        "arm": ["control", "treated", "open"],
        "age": {"bounds": [18, 100], "unit": "years"},
        "creatinine": {"bounds": [0, 5], "missing": "midpoint"},
        "smoker": bool,
        "stage": {"categories": [1, 2, 3], "missing": "category"},
        "seen": {"dates": ["2001-01-01", "2010-12-31"]},
    }
)


def made(seed=0, n=N):
    rng = np.random.default_rng(seed)
    arm = rng.choice(["control", "treated", "open"], n, p=[0.5, 0.3, 0.2])
    X = pd.DataFrame({"arm": arm, "age": rng.normal(60.0, 12.0, n).round()})
    X["creatinine"] = np.exp(rng.normal(0.0, 0.3, n)) + (arm == "open") * 0.5
    X.loc[rng.random(n) < 0.1, "creatinine"] = np.nan
    X["smoker"] = rng.random(n) < np.where(arm == "open", 0.4, 0.2)
    X["stage"] = rng.choice([1.0, 2.0, 3.0, np.nan], n, p=[0.4, 0.3, 0.2, 0.1])
    X["seen"] = pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 3652, n), "D")
    return X


@pytest.fixture(scope="module")
def records():
    return made()


@pytest.fixture(scope="module")
def exact(records):
    return DPTableOne(np.inf, columns=COLUMNS, by="arm", grid=200).fit(records)


@pytest.fixture(scope="module")
def fitted(records):
    return DPTableOne(2.0, columns=COLUMNS, by="arm", random_state=0).fit(records)


class TestWithoutPrivacy:
    def test_counts_and_shares_are_those_of_pandas(self, records, exact):
        found = exact.table_.estimate
        for part, own in [("Overall", records), *records.groupby("arm")]:
            assert found["n", "", "n", part] == len(own)
            for name in ("creatinine", "stage"):
                assert found[name, "", "missing", part] == own[name].isna().sum()
            for label in (1, 2, 3):
                held = own.stage.dropna() == label
                assert found["stage", str(label), "count", part] == held.sum()
                assert found["stage", str(label), "share", part] == pytest.approx(held.mean())

    def test_means_are_those_of_clipped_values_at_any_points(self, records):
        for grid in (2, 9, {"age": 3, "creatinine": [0.0, 1.0, 5.0], "seen": 2}):
            table = DPTableOne(np.inf, columns=COLUMNS, by="arm", grid=grid).fit(records).table_
            for part, own in [("Overall", records), *records.groupby("arm")]:
                for name, bounds in (("age", (18, 100)), ("creatinine", (0, 5))):
                    mean = own[name].clip(*bounds).mean()
                    assert table.estimate[name, "", "mean", part] == pytest.approx(mean, rel=1e-5)

    def test_deviations_and_quartiles_are_near_between_many_points(self, records, exact):
        for part, own in [("Overall", records), *records.groupby("arm")]:
            values = own.creatinine.clip(0, 5).dropna()
            found = exact.table_.loc["creatinine", "", :, part]
            assert found.estimate["sd"] == pytest.approx(values.std(ddof=0), rel=0.01)
            for name, p in (("q1", 0.25), ("median", 0.5), ("q3", 0.75)):
                assert found.estimate[name] == pytest.approx(values.quantile(p), abs=0.03)

    def test_differences_are_those_of_the_formula(self, records, exact):
        first, other = (records[records.arm == arm] for arm in ("control", "open"))
        both = [own.creatinine.clip(0, 5).dropna() for own in (first, other)]
        spread = math.sqrt(0.5 * sum(one.var(ddof=0) for one in both))
        d = exact.table_.estimate["creatinine", "", "smd", "open"]
        assert d == pytest.approx((both[1].mean() - both[0].mean()) / spread, rel=0.02)
        p = [own.smoker.mean() for own in (first, other)]
        spread = math.sqrt(0.5 * sum(share * (1 - share) for share in p))
        d = exact.table_.estimate["smoker", "", "smd", "open"]
        assert d == pytest.approx((p[1] - p[0]) / spread)
        assert np.isnan(exact.table_.estimate["stage", "", "smd", "open"])

    def test_intervals_of_differences_without_noise_are_those_of_the_delta_method(
        self, records, exact
    ):
        square = 0.0
        groups = [records[records.arm == arm].creatinine.clip(0, 5).dropna() for arm in PAIR]
        scale = math.sqrt(0.5 * sum(one.var(ddof=0) for one in groups))
        d = (groups[1].mean() - groups[0].mean()) / scale
        for sign, x in zip((-1.0, 1.0), groups, strict=True):
            away = x - x.mean()
            # d by the mean is sign / s, and by the variance -d / (4 s^2).
            square += np.var(sign * away / scale - d * away**2 / (4.0 * scale**2)) / len(x)
        found = exact.table_.loc["creatinine", "", "smd", PAIR[1]]
        half = 0.5 * (found.population_high - found.population_low)
        assert half == pytest.approx(1.959964 * math.sqrt(square), rel=0.05)
        shares = [records[records.arm == arm].smoker for arm in PAIR]
        p, q = (one.mean() for one in shares)
        scale = math.sqrt(0.5 * (p * (1 - p) + q * (1 - q)))
        slopes = (
            sign / scale - (q - p) * (1 - 2 * r) / (4 * scale**3)
            for sign, r in ((-1.0, p), (1.0, q))
        )
        parts = zip(slopes, (p, q), shares, strict=True)
        error = math.sqrt(sum(g**2 * r * (1 - r) / len(x) for g, r, x in parts))
        found = exact.table_.loc["smoker", "", "smd", PAIR[1]]
        half = 0.5 * (found.population_high - found.population_low)
        assert half == pytest.approx(1.959964 * error, rel=0.02)

    def test_intervals_without_noise_are_points_and_those_of_statistics(self, records, exact):
        found = exact.table_.loc["smoker", "True", "share", "Overall"]
        p, z = records.smoker.mean(), 1.959964
        assert found.people_low == pytest.approx(p, abs=1e-7)
        assert found.people_high == pytest.approx(p, abs=1e-7)
        centre = (p + z**2 / (2 * N)) / (1 + z**2 / N)
        half = z / (1 + z**2 / N) * math.sqrt(p * (1 - p) / N + z**2 / (4 * N**2))
        assert found.population_low == pytest.approx(centre - half, abs=1e-6)
        assert found.population_high == pytest.approx(centre + half, abs=1e-6)
        mean = exact.table_.loc["age", "", "mean", "Overall"]
        error = records.age.clip(18, 100).std(ddof=0) / math.sqrt(N)
        assert mean.population_high - mean.estimate == pytest.approx(z * error, rel=0.01)


class TestSums:
    def test_groups_add_up_everywhere(self, fitted):
        """The sum over cells is the size of the group, in all columns; sizes add up to n."""
        found = fitted.table_.estimate
        sizes = [found["n", "", "n", arm] for arm in fitted.groups_]
        assert sum(sizes) == pytest.approx(N)
        assert found["n", "", "n", "Overall"] == pytest.approx(N)
        for arm, size in zip(fitted.groups_, sizes, strict=True):
            labels = sum(found["stage", str(label), "count", arm] for label in (1, 2, 3))
            assert labels + found["stage", "", "missing", arm] == pytest.approx(size)
            both = sum(found["smoker", str(label), "count", arm] for label in (False, True))
            assert both == pytest.approx(size)
        for label in (1, 2, 3):
            parts = sum(found["stage", str(label), "count", arm] for arm in fitted.groups_)
            assert parts == pytest.approx(found["stage", str(label), "count", "Overall"])
        reach = 1.959964 * math.sqrt(fitted._summary.sizes.covariance[0, 0])
        for arm in fitted.groups_:
            row = fitted.table_.loc["n", "", "n", arm]
            both = row.estimate - row.people_low, row.people_high - row.estimate
            assert both == pytest.approx((reach, reach))

    def test_the_number_of_all_is_whole_and_known(self, exact):
        """With any noise of three groups, whose sum was off by a rounding now and then."""
        summary, counts = exact._summary, exact.release_.values["counts"]
        for seed in range(40):
            noisy = counts + np.random.default_rng(seed).laplace(0.0, 5.0, counts.shape)
            found = Summary.of(summary.columns, noisy, 50.0, N, summary.groups, None)
            _, row = next(found._rows(Level(0.95, True)))
            assert (row.estimate, *row.people) == (N, N, N)

    def test_errors_are_those_of_the_solution(self, exact):
        """Variances of sums by formula and by 4,000 draws: 7 standard deviations, alarm 1e-11."""
        summary, rng = exact._summary, np.random.default_rng(0)
        counts = exact.release_.values["counts"]
        draws = [
            Summary.of(
                summary.columns, counts + rng.normal(0.0, 3.0, counts.shape), 9.0, N,
                summary.groups, None,
            )
            for _ in range(4000)
        ]  # fmt: skip
        place = [cells.kind.column for cells in summary.columns].index("stage")
        weights = np.random.default_rng(1).normal(size=(3, 3, 4))
        found = np.array([draw.solved[place].sums(weights)[0] for draw in draws])
        _, expected = draws[0].solved[place].sums(weights)
        error = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) * 2.0 / 4000)
        assert (np.abs(np.cov(found.T) - expected) < 7.0 * error).all()
        sizes = np.array([draw.sizes.estimate for draw in draws])
        covariance = draws[0].sizes.covariance
        assert (np.abs(np.cov(sizes.T) - covariance) < 7.0 * covariance[0, 0] * 0.03).all()


def coverage(statistics, which, n_draws, population=None):
    """Return the shares of draws whose intervals hold the truth, by quantity."""
    source = made(7, 2000)
    model = DPTableOne(1.0, columns=COLUMNS, by="arm")
    grid = {"age": 12, "creatinine": 20, "seen": 10}
    reference = DPTableOne(np.inf, columns=COLUMNS, by="arm", grid=grid).fit(source)
    summary, deviation = reference._summary, model._deviation()
    rng = np.random.default_rng(11)
    truth = reference.table_.estimate.copy()
    for part, own in [("Overall", source), *source.groupby("arm")]:
        for name, bounds in (("age", (18, 100)), ("creatinine", (0, 5))):
            values = own[name].clip(*bounds).dropna()
            truth[name, "", "sd", part] = values.std(ddof=0)
            for quartile, p in (("q1", 0.25), ("median", 0.5), ("q3", 0.75)):
                truth[name, "", quartile, part] = values.quantile(p, interpolation="lower")
    held = []
    for _ in range(n_draws):
        counts = reference.release_.values["counts"]
        if which == "population":
            again = source.sample(len(source), replace=True, random_state=rng.integers(2**31))
            counts = reference.fit(again).release_.values["counts"]
        counts = counts + rng.laplace(0.0, deviation / math.sqrt(2.0), counts.shape)
        found = Summary.of(
            summary.columns, counts, deviation**2, len(source), summary.groups, None
        ).frame(0.95)
        held.append((found[f"{which}_low"] <= truth) & (truth <= found[f"{which}_high"]))
    share = pd.concat(held, axis=1).mean(axis=1)
    chosen = share.index.get_level_values("statistic").isin(statistics)
    return share[chosen & (share.index.get_level_values("column") != "seen")]


class TestIntervals:
    @pytest.mark.slow
    def test_of_these_people(self):
        """150 draws: below 0.82 with probability 1e-8 at 95 %. Quartiles cover more."""
        found = coverage(("share", "mean", "count", "missing"), "people", 150)
        assert found.min() > 0.82
        assert 0.93 < found.mean() < 0.98

    @pytest.mark.slow
    def test_of_the_population(self):
        found = coverage(("share", "mean", "sd", "median"), "population", 300)
        assert found.min() > 0.87
        smooth = found[found.index.get_level_values("statistic") != "median"]
        assert 0.93 < smooth.mean() < 0.98

    @pytest.mark.slow
    def test_of_deviations_and_quartiles(self):
        assert coverage(("sd", "q1", "median", "q3"), "people", 300).min() > 0.87

    def test_noise_that_hides_all_leaves_the_public_range(self, records):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # In 1 of 60 draws the noise hides all but a bound.
            table = DPTableOne(1e-6, columns=COLUMNS, by="arm", random_state=0).fit(records).table_
        mean = table.loc["age", "", "mean", "treated"]
        share = table.loc["stage", "1", "share", "treated"]
        assert (mean.people_low, mean.people_high) == (18.0, 100.0)
        assert (share.population_low, share.population_high) == (0.0, 1.0)

    def test_expected_ones_are_near_those_of_a_fit(self, records, fitted):
        expected = DPTableOne(2.0, columns=COLUMNS, by="arm").expected_table(N)
        assert expected.index.equals(fitted.table_.index)
        for column, level, statistic in (("age", "", "mean"), ("stage", "2", "share")):
            widths = [
                np.diff(t.loc[column, level, statistic, "Overall"][["people_low", "people_high"]])
                for t in (expected, fitted.table_)
            ]
            assert widths[0] == pytest.approx(widths[1], rel=0.3)

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    @pytest.mark.parametrize("labels", [[False, True], ["I", "II", "III", "IV"]])
    def test_the_expected_share_is_that_of_fits(self, labels, delta):
        """Means of two groups in 6 fits, with a deviation of at most 0.5 % of the width."""
        n, others = 1000, {f"x{place}": (0, 1) for place in range(5)}
        of = {"arm": ["control", "open"], "label": bool if len(labels) == 2 else labels, **others}
        X = pd.DataFrame(0.5, index=range(2 * n), columns=list(of))
        X["arm"] = np.repeat(of["arm"], n)
        X["label"] = np.resize([*labels, *labels[:1] * (len(labels) - 2)], 2 * n)
        model, found = DPTableOne(1.0, columns=PublicColumns(of), by="arm", delta=delta), []
        for seed in range(6):
            table = model.set_params(random_state=seed).fit(X).table_.sort_index()
            found += [table.loc["label", str(labels[0]), "share", arm] for arm in of["arm"]]
        expected, found = model._expected_share(n), pd.DataFrame(found).mean()
        for one in ("people", "population"):
            low, high = getattr(expected, one)
            width = found[f"{one}_high"] - found[f"{one}_low"]
            assert width == pytest.approx(high - low, rel=0.03)


def test_public_groups(records):
    table = DPTableOne(1.0, columns=COLUMNS, by="arm", by_is_public=True).fit(records)
    sizes = records.arm.value_counts()
    for arm in table.groups_:
        row = table.table_.loc["n", "", "n", arm]
        assert row.estimate == row.people_low == row.people_high == sizes[arm]
    assert any("group of each record is public" in text for text in table.guarantee_.assumptions)
    assert table.guarantee_.neighbours == "replace-one-same-group"
    assert "but for the group, which is public" in table.guarantee_.describe()
    again = DPTableOne(1.0, columns=COLUMNS, by="arm", by_is_public=True)
    again.fit(records, person=np.arange(N) // 2)
    assert again.guarantee_.neighbours == "replace-one-person-same-group"
    private = DPTableOne(1.0, columns=COLUMNS, by="arm").fit(records)
    assert "group_sizes" not in private.release_.values


def test_a_gap_in_the_groups_is_a_group_of_its_own():
    X = made(3, 300)
    X["stage"] = X.stage.astype(object)
    table = DPTableOne(np.inf, columns=COLUMNS, by="stage").fit(X)
    assert table.groups_ == [1, 2, 3, "missing"]
    assert table.table_.estimate["n", "", "n", "missing"] == pytest.approx(X.stage.isna().sum())


class TestPrinted:
    def test_layout_is_that_of_tableone(self, exact):
        frame = exact.to_frame(intervals=None, nonnormal=["creatinine"])
        assert list(frame) == [
            "Missing", "Overall", "control", "treated", "open",
            "SMD (control,treated)", "SMD (control,open)",
        ]  # fmt: skip
        assert [label for label, _ in frame.index] == [
            "n", "age years, mean (SD)", "creatinine, median [Q1,Q3]", "smoker, n (%)",
            "stage, n (%)", "stage, n (%)", "stage, n (%)", "seen, mean (SD)",
        ]  # fmt: skip
        assert frame.loc[("n", ""), "Overall"] == "3000"

    def test_numbers_have_the_decimals_that_noise_leaves(self, fitted):
        frame = fitted.to_frame(intervals="population")
        assert "{" in frame.loc[("age years, mean (SD)", ""), "Overall"]
        assert not frame.map(lambda text: "nan" in text).any(axis=None)
        for text in (fitted.to_markdown(), fitted.to_html(), fitted.to_latex()):
            assert "smoker" in text

    def test_dashes_stand_where_an_interval_is_most_of_the_public_range(self, records):
        shown = {"intervals": None, "nonnormal": ["creatinine"]}
        for epsilon, hidden in ((0.005, True), (5.0, False)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                frame = (
                    DPTableOne(epsilon, columns=COLUMNS, by="arm").fit(records).to_frame(**shown)
                )
            for label in (
                ("age years, mean (SD)", ""),
                ("creatinine, median [Q1,Q3]", ""),
                ("stage, n (%)", "1"),
                ("seen, mean (SD)", ""),
            ):
                assert (frame.loc[label, "open"] == "-") is hidden

    def test_a_dash_may_stand_for_one_quartile(self, exact):
        summary, found = exact._summary, exact.table_
        wide = ("age", "", "q1", "Overall")
        found.loc[wide, ["people_low", "people_high"]] = 20.0, 70.0
        printed = Printed(found, exact.groups_, None).frame(summary.columns, ["age"])
        assert " [-," in printed.loc[("age years, median [Q1,Q3]", ""), "Overall"]

    def test_what_nobody_knows_is_refused(self, fitted):
        for options, name in (
            ({"intervals": "both"}, "intervals"),
            ({"nonnormal": ["stage"]}, "nonnormal"),
            ({"level": 1.5}, "level"),
        ):
            with pytest.raises(ValueError, match=name):
                fitted.to_frame(**options)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"columns": None}, "columns"),
        ({"by": "age"}, "by"),
        ({"by": "arms"}, "by"),
        ({"by_is_public": True}, "by_is_public"),
        ({"grid": 1}, "grid"),
        ({"grid": "fine"}, "grid"),
        ({"grid": {"stage": 5}}, "grid"),
        ({"grid": {"age": [18, 50, 40, 100]}}, "grid"),
        ({"grid": {"age": [0, 100]}}, "grid"),
        ({"grid": {"age": [18.0, 18.00000004, 100.0]}}, "grid"),
        ({"grid": {"age": [18.0, "x", 100.0]}}, "grid"),
        ({"delta": 1.0}, "delta"),
        ({"columns": PublicColumns.of(arm=["a", "b"]), "by": "arm"}, "columns"),
        ({"columns": PublicColumns.of(x=(1e16, 1e16 + 4))}, "grid"),
        ({"columns": PublicColumns.of(x=(0, 1e200))}, "columns"),
        ({"columns": PublicColumns.of(arm=["x", "Overall"], age=(0, 9)), "by": "arm"}, "by"),
        ({"columns": PublicColumns.of(arm=list(map(str, range(999))))}, "columns"),
        ({"grid": {"age": [18.0, 10**400, 100.0]}}, "grid"),
    ],
)
def test_wrong_parameters_cost_nothing(records, options, name):
    ledger = PrivacyAccountant(1.0)
    model = DPTableOne(1.0, **{"columns": COLUMNS, **options}, accountant=ledger)
    X = records if "x" not in str(options.get("columns")) else pd.DataFrame({"x": [1e16] * 9})
    with pytest.raises((ValueError, TypeError), match=rf"^{name}"):
        model.fit(X)
    assert ledger.spent() == 0.0


def test_releases_stand_alone_and_tables_of_sites_add_up(fitted):
    again = DPTableOne.from_release(Release.from_json(fitted.release_.to_json()))
    pd.testing.assert_frame_equal(again.table_, fitted.table_)
    grid = {"age": 10, "creatinine": 10, "seen": 5}
    for public in (False, True):
        site = DPTableOne(1.0, columns=COLUMNS, by="arm", by_is_public=public, grid=grid)
        releases = [site.fit(made(seed, 800)).release_ for seed in (1, 2)]
        pooled = pool_releases(releases)
        table = pooled.to_estimator()
        assert table.n_records_ == 1600
        variance = 2 * releases[0].noise["counts"]["variance"]
        assert pooled.noise["counts"] == {"law": "sum", "variance": variance}
        total = sum(release.values["counts"] for release in releases)
        np.testing.assert_array_equal(pooled.values["counts"], total)
        assert table.table_.estimate["n", "", "n", "Overall"] == pytest.approx(1600)
    crafted = releases[0]
    for values, parameters in (
        ({"group_sizes": [-5.0, 305.0, 500.0]}, {}),
        ({"group_sizes": [1.5, 298.5, 500.0]}, {}),
        ({"counts": 1e300 * np.ones_like(crafted.values["counts"])}, {}),
        ({}, {"grid": {}}),
        ({}, {"grid": 5}),
    ):
        wrong = replace(
            crafted,
            values={**crafted.values, **values},
            parameters={**crafted.parameters, **parameters},
        )
        with pytest.raises(ValueError, match="of the release"):
            DPTableOne.from_release(wrong)
    other = DPTableOne(1.0, columns=COLUMNS, by="arm", grid={**grid, "age": 11})
    with pytest.raises(ValueError, match="grid"):
        pool_releases([releases[0], other.fit(made(3, 800)).release_])
    skewed = {**COLUMNS.columns, "age": {"bounds": [18, 100], "unit": "years", "typical": 30}}
    for stated, agrees in ((grid, False), (releases[0].parameters["grid"], True)):
        other = DPTableOne(1.0, columns=PublicColumns(skewed), by="arm", by_is_public=True)
        other = other.set_params(grid=stated).fit(made(3, 800)).release_
        if agrees:  # points, whatever is typical
            assert pool_releases([releases[0], other]).to_estimator().n_records_ == 1600
        else:
            with pytest.raises(ValueError, match="typical values"):
                pool_releases([releases[0], other])
    relabelled = PublicColumns({**COLUMNS.columns, "arm": ["placebo", "treated", "open"]})
    strange = made(4, 800).replace({"arm": {"control": "placebo"}})
    elsewhere = DPTableOne(1.0, columns=relabelled, by="arm", by_is_public=True, grid=grid)
    with pytest.raises(ValueError, match="same columns"):
        pool_releases([releases[0], elsewhere.fit(strange).release_])


def test_a_table_that_says_little_is_warned_of(records):
    with pytest.warns(UserWarning, match="uncertain by"):
        DPTableOne(0.01, columns=COLUMNS, by="arm").fit(records[:500])
