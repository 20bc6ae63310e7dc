"""Survival curves: what is drawn, and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from skdpsurv import DPDiscreteTimeSurvival, PublicBoundsScaler
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.plotting import plot_survival_curves
from skdpsurv.reference import fit_cox

PEOPLE = np.array([[-0.5, 0.0], [0.5, 0.0]])


@pytest.fixture(scope="module")
def data():
    return make_discrete_time_survival(500, 2, max_time=10.0, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    model = DPDiscreteTimeSurvival(np.inf, max_time=data.max_time, n_intervals=20)
    return model.fit(data.X, data.y)


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure")
    return figure.Figure().subplots()


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_one_model_without_names(model, ax):
    assert plot_survival_curves(model, PEOPLE, ax=ax) is ax
    expected = model.predict_survival_function(PEOPLE, return_array=True)
    assert len(ax.lines) == 2
    for line, survival in zip(ax.lines, expected, strict=True):
        assert line.get_drawstyle() == "steps-post"
        np.testing.assert_array_equal(line.get_xdata(), [0, *model.unique_times_])
        np.testing.assert_array_equal(line.get_ydata(), [1, *survival])
    assert legend_texts(ax) == ["person 1", "person 2"]
    assert ax.get_xlabel() == "Time"
    assert ax.get_xlim() == (0, 10)


def test_several_models_share_the_people_s_colours(data, model, ax):
    other = DPDiscreteTimeSurvival(1.0, max_time=data.max_time, random_state=0)
    other.fit(data.X, data.y)
    plot_survival_curves(
        {"exact": model, "private": other},
        PEOPLE,
        labels=["low", "high"],
        ax=ax,
        time_unit="decades",
        time_scale=10.0,
    )
    private_low, private_high, exact_low, exact_high = ax.lines  # the first model is on top
    assert exact_low.get_color() == private_low.get_color()
    assert exact_high.get_color() == private_high.get_color()
    assert exact_low.get_color() != exact_high.get_color()
    assert exact_low.get_linestyle() == "-"
    assert private_low.get_linestyle() == "--"
    assert exact_low.get_xdata()[-1] == 1.0
    assert ax.get_xlabel() == "Time (decades)"
    assert legend_texts(ax) == ["low", "high", "", "exact", "private"]


def test_cox_and_a_pipeline_with_a_data_frame(data, ax):
    cox = fit_cox(data.X, data.y)
    plot_survival_curves(cox, PEOPLE, ax=ax, legend=False)
    assert ax.get_legend() is None
    # Cox's own curve starts at its first event time.
    assert (ax.lines[0].get_xdata()[0], ax.lines[0].get_ydata()[0]) == (0.0, 1.0)
    pipeline = make_pipeline(
        PublicBoundsScaler(), DPDiscreteTimeSurvival(np.inf, max_time=data.max_time)
    )
    frame = pd.DataFrame(data.X, columns=["a", "b"])
    pipeline.fit(frame, data.y)
    plot_survival_curves(pipeline, frame.head(3), ax=ax)
    assert len(ax.lines) == 2 + 3


def test_more_models_and_people_than_styles(model, ax):
    people = np.zeros((9, 2))
    plot_survival_curves({str(k): model for k in range(7)}, people, ax=ax)
    assert len(ax.lines) == 63
    assert [line.get_linestyle() for line in ax.lines].count("-") == 9


def test_makes_axes_of_its_own(model):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = plot_survival_curves(model, PEOPLE)
    assert ax.figure.get_axes() == [ax]
    pyplot.close(ax.figure)


def test_refusals(model, ax):
    with pytest.raises(ValueError, match="models must hold at least one model"):
        plot_survival_curves({}, PEOPLE, ax=ax)
    with pytest.raises(ValueError, match="one label for each of the 2 rows of X, got 1"):
        plot_survival_curves(model, PEOPLE, labels=["one"], ax=ax)
    with pytest.raises(ValueError, match="time_scale must be a positive finite number, got 0"):
        plot_survival_curves(model, PEOPLE, time_scale=0, ax=ax)
    with pytest.raises(TypeError, match=r"models\['b'\] must have .* PublicBoundsScaler has none"):
        plot_survival_curves({"a": model, "b": PublicBoundsScaler()}, PEOPLE, ax=ax)
    assert not ax.lines


def test_without_matplotlib_the_error_names_the_extra(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "skdpsurv\[plot\]"'):
        plot_survival_curves(model, PEOPLE)


@pytest.mark.filterwarnings("ignore::skdpsurv.PrivacyLeakWarning")
def test_bands_are_shaded_around_the_first_model(data, model, ax):
    private = DPDiscreteTimeSurvival(
        5.0, max_time=data.max_time, n_intervals=20, inference_share=0.3, random_state=0
    ).fit(data.X, data.y)
    plot_survival_curves({"private": private, "exact": model}, PEOPLE, band=True, ax=ax)
    lower, upper = private.survival_band(PEOPLE)
    assert len(ax.collections) == 2
    for shade, low, high in zip(ax.collections, lower, upper, strict=True):
        drawn = shade.get_paths()[0].vertices[:, 1]
        assert drawn.min() == pytest.approx(low.min())
        assert set(np.round(high, 9)) <= set(np.round(drawn, 9))


def test_bands_need_a_model_that_has_some(data, model, ax):
    with pytest.raises(TypeError, match="must begin with one that has a survival_band"):
        plot_survival_curves({"Cox": fit_cox(data.X, data.y)}, PEOPLE, band=True, ax=ax)
    with pytest.raises(ValueError, match="inference_share must be positive"):
        plot_survival_curves(model, PEOPLE, band=True, ax=ax)
