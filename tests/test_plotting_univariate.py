"""Weibull curves and bands: what is drawn, and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from lifelines import WeibullFitter
from sklearn.exceptions import NotFittedError

from skdpsurv import DPWeibullFitter
from skdpsurv.plotting import plot_univariate

N_RESAMPLES = 20


@pytest.fixture(scope="module")
def records():
    times = 4.0 * np.random.default_rng(0).weibull(0.8, 400)
    return np.minimum(times, 10.0), times <= 10.0


@pytest.fixture(scope="module")
def private(records):
    return DPWeibullFitter(2.0, max_time=10.0, random_state=0).fit(*records)


@pytest.fixture(scope="module")
def reference(records):
    return WeibullFitter().fit(*records)


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure")
    return figure.Figure().subplots()


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_one_model(private, ax):
    assert plot_univariate(private, ax=ax, n_resamples=N_RESAMPLES) is ax
    (line,) = ax.lines
    times, survival = line.get_data()
    assert (times[0], survival[0]) == (0.0, 1.0)
    assert times[-1] == 10.0
    np.testing.assert_allclose(survival, private.predict(times))
    assert line.get_linestyle() == "-"
    assert line.get_drawstyle() == "default"
    (shade,) = ax.collections
    vertices = shade.get_paths()[0].vertices
    expected = private.survival_band(times, n_resamples=N_RESAMPLES)
    at_the_end = vertices[vertices[:, 0] == 10.0, 1]
    assert at_the_end.min() == expected["lower"].iloc[-1]
    assert at_the_end.max() == expected["upper"].iloc[-1]
    assert legend_texts(ax) == ["ε = 2", "95 % interval"]
    assert ax.get_xlabel() == "Time"
    assert ax.get_ylabel() == "Probability of survival"
    assert (ax.get_xlim(), ax.get_ylim()) == ((0.0, 10.0), (0.0, 1.0))


def test_the_estimator_draws_itself(private, ax):
    assert private.plot(ax, band=False, labels=["trial"], time_unit="years") is ax
    assert not ax.collections
    assert legend_texts(ax) == ["trial"]
    assert ax.get_xlabel() == "Time (years)"


def test_reference_without_a_band_shares_the_horizon(private, reference, ax):
    models = {"private": private, "lifelines": reference}
    plot_univariate(models, ax=ax, n_resamples=N_RESAMPLES, level=0.8, time_scale=5.0)
    dashed, solid = ax.lines  # the first model is on top
    assert dashed.get_linestyle() == "--"
    assert solid.get_linestyle() == "-"
    assert dashed.get_color() != solid.get_color()
    assert dashed.get_xdata()[-1] == solid.get_xdata()[-1] == 2.0
    expected = reference.survival_function_at_times(dashed.get_xdata() * 5.0)
    np.testing.assert_allclose(dashed.get_ydata(), expected)
    assert len(ax.collections) == 1
    assert legend_texts(ax) == ["private", "lifelines", "80 % interval"]


def test_given_times_and_colors(private, reference, ax):
    plot_univariate(
        {"a": private, "b": private, "c": reference},
        ax=ax,
        times=[1.0, 2.0, 4.0],
        colors=["red", "blue"],
        n_resamples=N_RESAMPLES,
        legend=False,
    )
    assert [line.get_color() for line in ax.lines] == ["red", "blue", "red"]
    assert all(list(line.get_xdata()) == [1.0, 2.0, 4.0] for line in ax.lines)
    assert ax.get_legend() is None
    assert ax.get_xlim() == (0.0, 4.0)


def test_each_model_ends_at_its_own_horizon(records, private, ax):
    longer = DPWeibullFitter(np.inf, max_time=20.0).fit(*records)
    plot_univariate({"short": private, "long": longer}, ax=ax, band=False)
    assert [line.get_xdata()[-1] for line in ax.lines] == [20.0, 10.0]
    assert ax.get_xlim() == (0.0, 20.0)
    other = ax.figure.add_subplot()
    plot_univariate(longer, ax=other, band=False)
    assert legend_texts(other) == ["No privacy"]


def test_needs_no_more_than_the_release(private, ax):
    rebuilt = DPWeibullFitter.from_release(private.release_)
    plot_univariate({"fit": private, "release": rebuilt}, ax=ax, n_resamples=N_RESAMPLES)
    release, fit = ax.lines
    np.testing.assert_array_equal(release.get_ydata(), fit.get_ydata())
    one, other = (shade.get_paths()[0].vertices for shade in ax.collections)
    np.testing.assert_array_equal(one, other)


def test_lifelines_alone_needs_times(reference, ax):
    with pytest.raises(ValueError, match="times must be given, as no model states a max_time"):
        plot_univariate(reference, ax=ax)
    plot_univariate(reference, ax=ax, times=[0.0, 1.0])
    assert legend_texts(ax) == ["Weibull"]


def test_makes_axes_of_its_own(private):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = plot_univariate(private, band=False)
    assert ax.figure.get_axes() == [ax]
    pyplot.close(ax.figure)


def test_refusals(private, reference, ax):
    def refused(error, match, models=private, **options):
        with pytest.raises(error, match=match):
            plot_univariate(models, ax=ax, **options)

    refused(ValueError, "models must hold at least one model", {})
    refused(TypeError, r"models\['b'\] must have .* object has none", {"a": private, "b": object()})
    refused(ValueError, "one label for each of the 1 models, got 2", labels=["a", "b"])
    refused(ValueError, "colors must hold at least one color", colors=[])
    refused(ValueError, "time_scale must be a positive finite number, got 0", time_scale=0)
    refused(ValueError, "level", level=1.5)
    for times in ([], [[1.0]], [-1.0, 1.0], [1.0, 1.0], [np.nan]):
        refused(ValueError, "times must be a one-dimensional array of rising times", times=times)
    for models in (DPWeibullFitter(max_time=1.0), {"a": DPWeibullFitter(max_time=1.0)}):
        refused(NotFittedError, "not fitted", models)
    assert not ax.lines
    assert not ax.collections


def test_without_matplotlib_the_error_names_the_extra(private, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'plot_univariate needs .* "skdpsurv\[plot\]"'):
        plot_univariate(private, band=False)
