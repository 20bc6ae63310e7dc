"""Forest plots: what is drawn, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lifelines import CoxPHFitter
from lifelines.datasets import load_rossi

from skdpsurv.data.feature import raw_features
from skdpsurv.inference.inference import table
from skdpsurv.plotting import plot_coefficients


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure")
    return figure.Figure().subplots()


def summary(coef, error):
    return table(np.array(coef), np.array(error), raw_features(["age", "dose"]))


def points(ax):
    """What is drawn as points, by model."""
    return [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "o"]


def bars(ax):
    return [[tuple(segment[:, 0]) for segment in lines.get_segments()] for lines in ax.collections]


def test_ratios_and_their_intervals_are_drawn(ax):
    plot_coefficients(summary([0.5, -0.2], [0.1, 0.2]), ax=ax)
    assert points(ax)[0] == pytest.approx(np.exp([0.5, -0.2]))
    expected = [
        (np.exp(c - 1.959964 * e), np.exp(c + 1.959964 * e)) for c, e in ((0.5, 0.1), (-0.2, 0.2))
    ]
    np.testing.assert_allclose(bars(ax)[0], expected, rtol=1e-6)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["age", "dose"]
    assert ax.get_xscale() == "log"


def test_coefficients_in_units(ax):
    scale = pd.Series({"age": 10.0})
    plot_coefficients(summary([0.5, -0.2], [0.1, 0.2]), ratios=False, scale=scale, ax=ax)
    assert points(ax)[0] == pytest.approx([5.0, -0.2])


def test_what_is_unknown_spans_the_figure_without_a_point(ax):
    plot_coefficients(summary([0.5, 1.0], [0.1, np.inf]), limits=(0.5, 4.0), ax=ax)
    assert len(points(ax)[0]) == 1
    assert bars(ax)[0][1] == (0.5, 4.0)
    arrows = [
        line.get_marker()
        for line in ax.lines
        if len(line.get_xdata()) and line.get_marker() in "<>"
    ]
    assert sorted(arrows) == ["<", ">"]


def test_a_reference_of_lifelines_stands_beside(ax):
    cox = CoxPHFitter().fit(load_rossi(), "week", "arrest")
    plot_coefficients({"Cox": cox, "other": cox.summary}, ax=ax)
    assert points(ax)[0] == points(ax)[1]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Cox", "other"]


def test_all_unknown(ax):
    plot_coefficients(summary([0.5, 1.0], [np.inf, np.inf]), ax=ax)
    low, high = ax.get_xlim()
    assert 0 < low < 1 < high


def test_bad_input(ax):
    with pytest.raises(TypeError, match=r"models\['x'\] must have a summary"):
        plot_coefficients({"x": object()}, ax=ax)
    with pytest.raises(ValueError, match="at least one model"):
        plot_coefficients({}, ax=ax)
