"""Calibration and survival by risk group: what is drawn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from skdpsurv.dp import PrivacyGuarantee
from skdpsurv.evaluation import Estimate, RiskGroup, SurvivalEvaluation
from skdpsurv.plotting import plot_calibration, plot_risk_groups


@pytest.fixture
def found():
    groups = tuple(
        RiskGroup(
            *(low, low + 0.3, 0.5),
            Estimate(p, p - 0.05, p + 0.1),
            (Estimate(o + 0.1, o, 1.0), Estimate(o, o - 0.1, 1.0)),
        )
        for low, p, o in [(0.3, 0.4, 0.5), (0.6, 0.8, 0.7)]
    )
    numbers = [Estimate(0.7, 0.6, 0.8)] * 3
    return SurvivalEvaluation(
        *numbers, groups, (2.0, 5.0), 0.9, 5.0, 0.9, PrivacyGuarantee(1.0), {}
    )


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure")
    return figure.Figure().subplots()


def test_groups_with_intervals(found, ax):
    assert plot_calibration(found, ax=ax) is ax
    diagonal, points = ax.lines[0], ax.lines[1]
    np.testing.assert_array_equal(diagonal.get_data(), [[0, 1], [0, 1]])
    np.testing.assert_allclose(points.get_data(), [[0.4, 0.8], [0.5, 0.7]])
    bars = [path.vertices for one in ax.collections for path in one.get_paths()]
    np.testing.assert_allclose(bars[0], [[0.35, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(bars[2], [[0.4, 0.4], [0.4, 1.0]])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["as predicted", "risk groups, 90 % intervals"]
    assert ax.get_title() == "Survival to 5"


def test_several_models(found, ax):
    plot_calibration({"one": found, "other": found}, ax=ax, legend=False)
    assert ax.get_legend() is None
    assert len(ax.containers) == 2


def test_refusals(found):
    with pytest.raises(ValueError, match="evaluations must hold"):
        plot_calibration({})
    with pytest.raises(TypeError, match="evaluations must be of"):
        plot_calibration({"one": found, "other": 3})


class ProportionalHazards:
    """A row [x] has the cumulative hazard t e^x, on steps of one half."""

    def predict_survival_function(self, X):
        steps = np.arange(0.5, 5.01, 0.5)
        return [Curve(steps, np.exp(-steps * np.exp(x))) for (x,) in X]


class Curve:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __call__(self, at):
        return self.y[np.searchsorted(self.x, at, side="right") - 1]


def test_curves_of_groups_and_of_a_model(found, ax):
    assert plot_risk_groups(found, ProportionalHazards(), [[-1.0]], ax=ax, time_unit="years") is ax
    for group, bars, line in zip(found.groups, ax.containers, ax.lines[::4], strict=True):
        times, values = bars.lines[0].get_data()
        np.testing.assert_allclose(times, found.times, atol=0.1)
        np.testing.assert_allclose(values, [point.value for point in group.curve])
        x, y = line.get_data()
        ends = np.floor(2 * x) / 2
        np.testing.assert_allclose(y, group.predicted.value ** (ends / 5.0), rtol=1e-9)
    bars = [path.vertices for one in ax.collections for path in one.get_paths()]
    np.testing.assert_allclose(bars[1][:, 1], [0.4, 1.0])
    legend = ax.get_legend()
    assert [t.get_text() for t in legend.get_texts()] == ["0.30 to 0.60", "0.60 to 0.90"]
    assert "90 % intervals; lines as predicted" in legend.get_title().get_text()
    assert ax.get_xlabel() == "Time (years)"


def test_a_model_with_proportional_hazards_has_the_same_curves_for_any_profile(found, ax):
    plot_risk_groups(found, ProportionalHazards(), [[-1.0]], ax=ax, legend=False)
    first = [line.get_ydata() for line in ax.lines[::4]]
    ax.clear()
    plot_risk_groups(found, ProportionalHazards(), [[-2.5]], ax=ax)
    np.testing.assert_allclose(first, [line.get_ydata() for line in ax.lines[::4]], rtol=1e-9)


def test_without_a_model(found, ax):
    plot_risk_groups(found, ax=ax, legend=False)
    assert ax.get_legend() is None
    assert len(ax.containers) == 2


def test_refusals_of_curves(found):
    with pytest.raises(TypeError, match="evaluation must be of"):
        plot_risk_groups(3)
    with pytest.raises(ValueError, match="profile must be given"):
        plot_risk_groups(found, ProportionalHazards())
    with pytest.raises(ValueError, match="profile must be one row, got 2"):
        plot_risk_groups(found, ProportionalHazards(), [[0.0], [1.0]])
    with pytest.raises(TypeError, match="predict_survival_function"):
        plot_risk_groups(found, 3, [[0.0]])
