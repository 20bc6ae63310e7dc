"""Recalibration of competing hazards: tables by cause, what they correct, and what it costs."""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from skdpsurv import DPCompetingRisks, Release
from skdpsurv.audit import measurement_audit, worst_neighbours
from skdpsurv.data.histories import Histories
from skdpsurv.release.script import formula_of
from skdpsurv.survival.hazards.model import RECALIBRATION, HazardRecords
from skdpsurv.survival.hazards.recalibration import RiskCounts, layout_of, of_cause
from tests.survival.test_competing_risks import HORIZON, made, simulated, target

recalibrated = partial(made, recalibration_share=0.35)


def observed(cause, time, which):
    """Return Aalen-Johansen's incidence at the horizon of people who are all followed to it."""
    return np.mean((cause == which) & (time <= HORIZON))


def followed(n, seed):
    """Return x, causes and times of people whom nobody loses."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    times = np.stack([rng.exponential(3.0 * np.exp(-X[:, 0])), rng.exponential(6.0, n)])
    return X, times.argmin(axis=0) + 1, times.min(axis=0)


def test_it_corrects_what_a_low_cap_does():
    """With a cap of 1.2 on cumulative hazards of 2 to 5, and hardly any noise."""
    X, cause, time = followed(20_000, 1)
    off = []
    for share in (0.0, 0.35):
        how = {"max_cumulative_hazard": 1.2, "recalibration_share": share, "random_state": 0}
        with pytest.warns(match="random_state"):
            model = made(1e4, n_intervals=60, **how).fit(X, target(cause, time))
        total, far = model.predict_survival_function(X, return_array=True), []
        for which in (1, 2):
            own = model.predict_cumulative_incidence_function(X, which, return_array=True)
            total += own
            far += [
                own[half, -1].mean() - observed(cause[half], time[half], which)
                for half in (X[:, 0] < 0, X[:, 0] > 0)
            ]
        np.testing.assert_allclose(total, 1.0)
        off.append(np.max(np.abs(far)))
    assert off[1] < 0.3 * off[0]


@pytest.mark.parametrize(
    ("epsilon", "share", "n_tables"), [(1.0, 0, 0), (0.3, 0.4, 0), (1.0, 0.4, 2)]
)
def test_the_parts_of_epsilon_add_up(epsilon, share, n_tables):
    X, cause, time = simulated(600)
    prepared = made(epsilon, recalibration_share=share).prepare(X, target(cause, time))
    names = [leaf.name for leaf in prepared.plan.leaves]
    assert names.count("a table of risks over time") == n_tables
    prices = [Fraction(leaf.price) for leaf in prepared.plan.leaves]
    assert Fraction(epsilon) * Fraction(1 - 2**-20) < sum(prices) <= Fraction(epsilon)
    model = prepared.run()
    assert all((one.slope != 1.0) == bool(n_tables) for one in model.recalibration_)
    assert len(model.recalibration_) == 2


def test_shares_are_refused_that_leave_nothing():
    X, cause, time = simulated(100)
    with pytest.raises(ValueError, match="must sum to less than 1"):
        made(1.0, recalibration_share=0.95).prepare(X, target(cause, time))


def test_whoever_had_another_event_leaves_an_interval_earlier():
    seen = Histories(np.array([1, 4, 5, 5, 9]), np.array([2, 2, 1, 0, 2]))
    rows, own = of_cause(HazardRecords(np.zeros((5, 1)), seen), 1)
    assert own.exit.tolist() == [1, 3, 5, 5, 8]  # the first stays in the first interval
    assert own.cause.tolist() == [False, False, True, False, False]
    late = replace(seen, entry=np.array([0, 3, 1, 0, 2]))
    own = of_cause(HazardRecords(rows, late), 1).histories
    assert own.exit.tolist() == [0, 3, 5, 5, 8]
    assert own.at_risk.tolist() == [False, False, True, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
def test_each_record_is_in_one_cell_of_each_table(late):
    """Over 10,000 pairs a record moves two cells of a table by one, and no more."""
    X, cause, time = simulated(6000)
    entry = {"entry": np.full(6000, 0.5)} if late else {}
    prepared = recalibrated(2.0).prepare(X, target(cause, time), **entry)
    leaf = next(leaf for leaf in prepared.plan.leaves if isinstance(leaf, RiskCounts))
    fit, rng, most = leaf.fit, np.random.default_rng(0), 0
    context = {"_fitted": (np.full((2, 12), -3.0), np.array([[1.0, 0.5], [0.2, -1.0]]))}
    layouts = [layout_of(fit, context, leaf.price, cause) for cause in (1, 2)]

    def one():
        """Return a row, an exit, a cause and perhaps an entry."""
        x = rng.choice([-1e308, -1.0, 0.0, np.nan, 1.0, 1e308], 2)
        return x, int(rng.integers(1, 13)), int(rng.integers(3)), int(rng.integers(13))

    def counts(record, layout, which):
        x, leaves, what, enters = record
        seen = Histories(np.array([leaves]), np.array([what]), np.array([enters]) if late else None)
        return layout.counts(*of_cause(HazardRecords(x[None], seen), which))

    for _ in range(10_000):
        pair = one(), one()
        for which, layout in enumerate(layouts, 1):
            tables = [counts(record, layout, which) for record in pair]
            assert all(table.sum() == 1 for table in tables)
            most = max(most, np.abs(tables[0] - tables[1]).sum())
    assert most == 2


@pytest.mark.slow
def test_audit_of_each_measurement():
    model = recalibrated(500.0, n_intervals=4, n_knots=1, alpha=1.0, data_norm=1.0)
    most = {}
    for pair in worst_neighbours(model, n=12, n_features=1):
        result = measurement_audit(model, *pair[1:])
        assert result.passed, result
        for one in result.distances:
            most[one.measurement] = max(most.get(one.measurement, 0.0), one.share)
    assert len(most) == 5
    assert min(most.values()) > 0.4


@pytest.fixture(scope="module")
def model():
    X, cause, time = simulated(3000)
    return recalibrated(3.0).fit(X, target(cause, time))


class TestRelease:
    def test_it_stands_alone(self, model, tmp_path):
        X = simulated(9)[0]
        model.release_.save(tmp_path / "model.json")
        built = DPCompetingRisks.from_release(Release.load(tmp_path / "model.json"))
        assert [one.slope for one in built.recalibration_] == [
            one.slope for one in model.recalibration_
        ]
        for which in (1, 2):
            curves = [
                one.predict_cumulative_incidence_function(X, which, return_array=True)
                for one in (built, model)
            ]
            np.testing.assert_array_equal(*curves)
        formula = formula_of(model, model.release_.features)
        assert formula.count("bend(t, ") > 4

    @pytest.mark.parametrize("name", RECALIBRATION)
    @pytest.mark.parametrize("change", [lambda x: x[:1], lambda x: x * np.nan, lambda x: -x])
    def test_crafted_values_are_refused(self, model, name, change):
        release = model.release_
        values = {**release.values, name: change(np.array(release.values[name]))}
        if name == RECALIBRATION[2] and change(np.ones(1)) == -1.0:
            return  # any shift is one
        with pytest.raises(ValueError, match="recalibration"):
            DPCompetingRisks.from_release(replace(release, values=values))
