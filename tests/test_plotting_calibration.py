"""Calibration by risk group: what is drawn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from skdpsurv.metrics import Estimate, RiskGroup, SurvivalEvaluation
from skdpsurv.plotting import plot_calibration
from skdpsurv.privacy import PrivacyGuarantee


@pytest.fixture
def found():
    groups = tuple(
        RiskGroup(low, low + 0.3, 0.5, Estimate(p, p - 0.05, p + 0.1), Estimate(o, o - 0.1, 1.0))
        for low, p, o in [(0.3, 0.4, 0.5), (0.6, 0.8, 0.7)]
    )
    numbers = [Estimate(0.7, 0.6, 0.8)] * 3
    return SurvivalEvaluation(*numbers, groups, 0.9, 5.0, 0.9, PrivacyGuarantee(1.0), {})


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
