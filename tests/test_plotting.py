"""Figures: what is drawn, and what is refused."""

import sys

import numpy as np
import pandas as pd
import pytest
from lifelines import CoxPHFitter, WeibullFitter
from lifelines.datasets import load_rossi
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sksurv.functions import StepFunction

from skdpsurv import (
    DPCompetingRisks,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    PublicBoundsScaler,
    PublicColumns,
)
from skdpsurv.data.feature import raw_features
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.dp import PrivacyGuarantee
from skdpsurv.evaluation import Estimate, RiskGroup, SurvivalEvaluation
from skdpsurv.inference.uncertainty import table
from skdpsurv.plotting import (
    add_at_risk_counts,
    plot_calibration,
    plot_coefficients,
    plot_risk_groups,
    plot_stacked_incidences,
    plot_survival_curves,
    plot_univariate,
    style,
)
from skdpsurv.reference import fit_cox

PEOPLE = np.array([[-0.5, 0.0], [0.5, 0.0]])
N_RESAMPLES = 20


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure")
    return figure.Figure().subplots()


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def bars(ax):
    """Return the ends of what is drawn in one stroke, in both directions."""
    return [path.vertices for one in ax.collections for path in one.get_paths()]


@pytest.fixture(scope="module")
def data():
    return make_discrete_time_survival(500, 2, max_time=10.0, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    model = DPDiscreteTimeSurvival(np.inf, max_time=data.max_time, n_intervals=20)
    return model.fit(data.X, data.y)


class TestSurvivalCurves:
    def test_a_pipeline_without_names(self, data, model, ax):
        pipeline = make_pipeline(PublicBoundsScaler(), clone(model)).fit(data.X, data.y)
        assert plot_survival_curves(pipeline, PEOPLE, ax=ax) is ax
        expected = pipeline.predict_survival_function(PEOPLE, return_array=True)
        for line, survival in zip(ax.lines, expected, strict=True):
            assert line.get_drawstyle() == "steps-post"
            np.testing.assert_array_equal(line.get_xdata(), [0, *model.unique_times_])
            np.testing.assert_array_equal(line.get_ydata(), [1, *survival])
        assert legend_texts(ax) == ["person 1", "person 2"]
        assert (ax.get_xlabel(), ax.get_xlim()) == ("Time", (0, 10))
        ax.clear()
        models = {str(k): model for k in range(7)}  # more than there are styles
        plot_survival_curves(models, np.zeros((9, 2)), ax=ax, legend=False)
        assert [line.get_linestyle() for line in ax.lines].count("-") == 9
        assert ax.get_legend() is None

    def test_several_models_share_the_people_s_colours(self, data, model, ax):
        models = {"exact": model, "private": fit_cox(data.X, data.y)}
        options = {"labels": ["low", "high"], "time_unit": "decades", "time_scale": 10.0}
        plot_survival_curves(models, PEOPLE, ax=ax, **options)
        private_low, private_high, exact_low, exact_high = ax.lines  # the first model is on top
        assert exact_low.get_color() == private_low.get_color()
        assert exact_high.get_color() == private_high.get_color()
        assert exact_low.get_color() != exact_high.get_color()
        assert (exact_low.get_linestyle(), private_low.get_linestyle()) == ("-", "--")
        # Cox's own curve starts at its first event time.
        assert (private_low.get_xdata()[0], private_low.get_ydata()[0]) == (0.0, 1.0)
        assert exact_low.get_xdata()[-1] == 1.0
        assert ax.get_xlabel() == "Time (decades)"
        assert legend_texts(ax) == ["low", "high", "", "exact", "private"]

    def test_bands_are_shaded_around_the_first_model(self, data, model, ax):
        private = DPDiscreteTimeSurvival(
            5.0, max_time=data.max_time, n_intervals=20, inference_share=0.3, random_state=0
        ).fit(data.X, data.y)
        plot_survival_curves({"private": private, "exact": model}, PEOPLE, band=True, ax=ax)
        lower, upper = private.survival_band(PEOPLE)
        for shade, low, high in zip(ax.collections, lower, upper, strict=True):
            drawn = shade.get_paths()[0].vertices[:, 1]
            assert drawn.min() == pytest.approx(low.min())
            assert set(np.round(high, 9)) <= set(np.round(drawn, 9))


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
    guarantee = PrivacyGuarantee(1.0)
    return SurvivalEvaluation(*numbers, groups, (2.0, 5.0), 0.9, 5.0, 0.9, guarantee, {})


class ProportionalHazards:
    """A row [x] has the cumulative hazard t e^x, on steps of one half."""

    def predict_survival_function(self, X):
        steps = np.arange(0.0, 5.01, 0.5)
        return [StepFunction(steps, np.exp(-steps * np.exp(x))) for (x,) in X]


class TestEvaluations:
    def test_groups_with_intervals(self, found, ax):
        assert plot_calibration(found, ax=ax) is ax
        diagonal, points = ax.lines[0], ax.lines[1]
        np.testing.assert_array_equal(diagonal.get_data(), [[0, 1], [0, 1]])
        np.testing.assert_allclose(points.get_data(), [[0.4, 0.8], [0.5, 0.7]])
        np.testing.assert_allclose(bars(ax)[0], [[0.35, 0.5], [0.5, 0.5]])
        np.testing.assert_allclose(bars(ax)[2], [[0.4, 0.4], [0.4, 1.0]])
        assert legend_texts(ax) == ["as predicted", "risk groups, 90 % intervals"]
        assert ax.get_title() == "Survival to 5"
        ax.clear()
        plot_calibration({"one": found, "other": found}, ax=ax, legend=False)
        assert (ax.get_legend(), len(ax.containers)) == (None, 2)
        ax.clear()
        plot_risk_groups(found, ax=ax, legend=False)
        assert (ax.get_legend(), len(ax.containers)) == (None, 2)

    @pytest.mark.parametrize("profile", [-1.0, -2.5])
    def test_curves_of_groups_are_the_same_for_any_profile(self, found, ax, profile):
        """Where hazards are proportional."""
        plot_risk_groups(found, ProportionalHazards(), [[profile]], ax=ax, time_unit="years")
        for group, drawn, line in zip(found.groups, ax.containers, ax.lines[::4], strict=True):
            times, values = drawn.lines[0].get_data()
            np.testing.assert_allclose(times, found.times, atol=0.1)
            np.testing.assert_allclose(values, [point.value for point in group.curve])
            x, y = line.get_data()
            ends = np.floor(2 * x) / 2
            np.testing.assert_allclose(y, group.predicted.value ** (ends / 5.0), rtol=1e-9)
        np.testing.assert_allclose(bars(ax)[1][:, 1], [0.4, 1.0])
        assert legend_texts(ax) == ["0.30 to 0.60", "0.60 to 0.90"]
        assert ax.get_xlabel() == "Time (years)"


def summary(coef, error):
    return table(np.array(coef), np.array(error), raw_features(["age", "dose"]))


def points(ax):
    """Return what is drawn as points, by model."""
    return [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "o"]


class TestIncidences:
    def test_causes_are_stacked_and_leave_room_for_no_event(self, ax):
        rng = np.random.default_rng(0)
        X, time = rng.uniform(-1.0, 1.0, (400, 2)), rng.exponential(5.0, 400)
        parameters = {"causes": ["relapse", "death"], "max_time": 8.0, "n_intervals": 10}
        model = DPCompetingRisks(np.inf, censored="no", **parameters)
        model.fit(X, (rng.choice(["no", "relapse", "death"], 400), time))
        assert plot_stacked_incidences(model, X[:1], time_unit="years", ax=ax) is ax
        tops = [shade.get_paths()[0].vertices[:, 1].max() for shade in ax.collections]
        first = model.predict_cumulative_incidence_function(X[:1], return_array=True)[0, -1]
        survival = model.predict_survival_function(X[:1], return_array=True)[0, -1]
        assert tops == pytest.approx([first, 1.0 - survival])
        assert legend_texts(ax) == ["death", "relapse"]
        assert ax.get_xlabel() == "Time (years)"
        with pytest.raises(ValueError, match="X must have one row, got 2"):
            plot_stacked_incidences(model, X[:2], ax=ax)
        with pytest.raises(ValueError, match="labels must hold one label for each of the 2"):
            plot_stacked_incidences(model, X[:1], labels=["one"], ax=ax)
        with pytest.raises(TypeError, match="must have a method predict_cumulative_incidence"):
            plot_stacked_incidences(summary([0.5], [0.1]), X[:1], ax=ax)


class TestCoefficients:
    def test_ratios_and_their_intervals_are_drawn(self, ax):
        coef, error = np.array([0.5, -0.2]), np.array([0.1, 0.2])
        plot_coefficients(summary(coef, error), ax=ax)
        assert points(ax)[0] == pytest.approx(np.exp(coef))
        ends = np.exp([coef - 1.959964 * error, coef + 1.959964 * error]).T
        np.testing.assert_allclose([bar[:, 0] for bar in bars(ax)[:2]], ends, rtol=1e-6)
        assert [label.get_text() for label in ax.get_yticklabels()] == ["age", "dose"]
        assert ax.get_xscale() == "log"
        ax.clear()
        cox = CoxPHFitter().fit(load_rossi(), "week", "arrest")
        plot_coefficients({"Cox": cox, "other": cox.summary}, ax=ax)
        assert points(ax)[0] == points(ax)[1]
        assert legend_texts(ax) == ["Cox", "other"]
        ax.clear()
        scale = pd.Series({"age": 10.0})
        plot_coefficients(summary(coef, error), ratios=False, scale=scale, ax=ax)
        assert points(ax)[0] == pytest.approx([5.0, -0.2])
        assert [label.get_text() for label in ax.get_yticklabels()] == ["age, +10", "dose"]

    def test_a_release_says_for_which_step_effects_are_drawn(self, ax):
        age, wait = {"bounds": [20, 90], "unit": "years", "per": 10}, (0.0, 50.0)
        columns = PublicColumns({"age": age, "wait": wait, "sex": ["f", "m"]})
        rows = pd.DataFrame({"age": [30.0, 80.0] * 30, "wait": 1.0, "sex": ["f", "m", "m"] * 20})
        model = DPLogisticRegression(np.inf, classes=[0, 1], columns=columns)
        model.fit(rows, np.arange(60) % 2)
        for drawn in (model, {"Cox": model.summary, "private": model}):
            ax.clear()
            plot_coefficients(drawn, ratios=False, ax=ax)
            expected = model.summary["coef"] * [10.0, 5.0, 1.0]
            assert points(ax)[0] == points(ax)[-1] == pytest.approx(expected.tolist())
            labels = [label.get_text() for label in ax.get_yticklabels()]
            assert labels == ["age, +10 years", "wait, +5", "sex_m"]

    def test_what_is_unknown_spans_the_figure_without_a_point(self, ax):
        plot_coefficients(summary([0.5, 1.0], [0.1, np.inf]), limits=(0.5, 4.0), ax=ax)
        assert len(points(ax)[0]) == 1
        assert bars(ax)[1][:, 0].tolist() == [0.5, 4.0]
        markers = [line.get_marker() for line in ax.lines if len(line.get_xdata())]
        assert sorted(marker for marker in markers if marker in "<>") == ["<", ">"]
        ax.clear()
        plot_coefficients(summary([0.5, 1.0], [np.inf, np.inf]), ax=ax)
        low, high = ax.get_xlim()
        assert 0 < low < 1 < high


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


class TestUnivariate:
    def test_a_model_and_what_its_release_makes(self, private, ax):
        rebuilt = DPWeibullFitter.from_release(private.release_)
        assert plot_univariate(rebuilt, ax=ax, n_resamples=N_RESAMPLES) is ax
        (line,) = ax.lines
        times, survival = line.get_data()
        assert (times[0], survival[0], times[-1]) == (0.0, 1.0, 10.0)
        np.testing.assert_allclose(survival, private.predict(times))
        assert (line.get_linestyle(), line.get_drawstyle()) == ("-", "default")
        vertices = bars(ax)[0]
        expected = private.survival_band(times, n_resamples=N_RESAMPLES)
        at_the_end = vertices[vertices[:, 0] == 10.0, 1]
        assert at_the_end.min() == expected["lower"].iloc[-1]
        assert at_the_end.max() == expected["upper"].iloc[-1]
        assert legend_texts(ax) == ["ε = 2", "95 % interval"]
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("Time", "Probability of survival")
        assert (ax.get_xlim(), ax.get_ylim()) == ((0.0, 10.0), (0.0, 1.0))

    def test_reference_without_a_band_shares_the_horizon(self, private, reference, ax):
        models = {"private": private, "lifelines": reference}
        plot_univariate(models, ax=ax, n_resamples=N_RESAMPLES, level=0.8, time_scale=5.0)
        dashed, solid = ax.lines  # the first model is on top
        assert (dashed.get_linestyle(), solid.get_linestyle()) == ("--", "-")
        assert dashed.get_color() != solid.get_color()
        assert dashed.get_xdata()[-1] == solid.get_xdata()[-1] == 2.0
        expected = reference.survival_function_at_times(dashed.get_xdata() * 5.0)
        np.testing.assert_allclose(dashed.get_ydata(), expected)
        assert len(ax.collections) == 1
        assert legend_texts(ax) == ["private", "lifelines", "80 % interval"]

    def test_times_names_and_colors(self, records, private, reference, ax):
        longer = DPWeibullFitter(np.inf, max_time=20.0).fit(*records)
        plot_univariate({"short": private, "long": longer}, ax=ax, band=False)
        assert [line.get_xdata()[-1] for line in ax.lines] == [20.0, 10.0]
        assert ax.get_xlim() == (0.0, 20.0)
        ax.clear()
        models = {"a": private, "b": private, "c": reference}
        options = {"times": [1.0, 2.0, 4.0], "colors": ["red", "blue"], "legend": False}
        plot_univariate(models, ax=ax, band=False, **options)
        assert [line.get_color() for line in ax.lines] == ["red", "blue", "red"]
        assert all(list(line.get_xdata()) == [1.0, 2.0, 4.0] for line in ax.lines)
        assert ax.get_legend() is None
        assert private.plot(ax, band=False, labels=["trial"], time_unit="years") is ax
        assert (legend_texts(ax), ax.get_xlabel()) == (["trial"], "Time (years)")
        plot_univariate(longer, ax=ax, band=False)
        assert legend_texts(ax) == ["No privacy"]
        plot_univariate(reference, ax=ax, times=[0.0, 1.0])
        assert legend_texts(ax) == ["Weibull"]


@pytest.fixture(scope="module")
def twelve():
    """Curves of twelve groups with long names that differ at their ends."""
    names = [f"Randomised to the treatment that is number {i} of a dozen" for i in range(12)]
    time, group = np.random.default_rng(0).exponential(5.0, 600), np.resize(names, 600)
    model = DPKaplanMeierFitter(3.0, max_time=10.0, groups=names, n_intervals=4, random_state=0)
    return model.fit(time, np.ones(600), group=group)


class TestManyGroupsAndLongNames:
    def test_each_has_a_look_of_its_own(self, twelve, model, found, ax):
        twelve.plot(ax, band=False)
        assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == 12
        turns = [style.line_style(turn) for turn in range(9)]
        assert len(set(turns)) == 9
        ax.clear()
        plot_univariate(twelve.of_group(twelve.groups_[0]), colors=["red"], ax=ax, band=False)
        plot_survival_curves({"a": model, "b": model}, np.zeros((12, 2)), ax=ax)
        looks = {(one.get_color(), one.get_marker(), one.get_linestyle()) for one in ax.lines[1:]}
        assert len(looks) == 24
        ax.clear()
        plot_calibration({str(k): found for k in range(12)}, ax=ax)
        looks = {(one.get_color(), one.get_marker()) for one in ax.lines[1:]}
        assert sum(shape in style.MARKERS for _, shape in looks) == 12

    def test_names_are_short_and_differ(self, twelve):
        names = twelve.groups_.tolist()
        assert style.cut(names, 24) == [f"… {i} of a dozen" for i in range(12)]
        assert style.cut(["ab" * 20, "short"], 10) == ["ababababa…", "short"]
        assert style.cut(["same " * 9 + "x" * 9 + end for end in "ab"], 10) == ["… xxxxxxx…"] * 2
        assert len(set(style.cut(["x" * 30 + end for end in "ab"], 10))) == 1  # no words

    @pytest.mark.parametrize("n_groups", [2, 12])
    def test_plain_subplots_have_room_for_all(self, twelve, n_groups):
        """Nothing is cut off, and most of the figure is for curves."""
        figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(8.0, 6.0))
        ax = figure.subplots()
        labels = twelve.groups_.tolist()[:n_groups]
        models = {label: twelve.of_group(label) for label in labels}
        plot_univariate(models, ax=ax, band=False, at_risk_counts=True)
        figure.draw_without_rendering()
        whole, axes = figure.bbox, ax.get_window_extent()
        assert axes.width > 0.35 * whole.width
        for part in (ax.get_legend(), *ax.texts):
            box = part.get_window_extent()
            assert -1 <= box.x0 <= box.x1 <= whole.x1 + 1
            assert -1 <= box.y0 <= box.y1 <= whole.y1 + 1
        fixed = figure.add_axes((0.1, 0.1, 0.8, 0.8))
        plot_univariate(models, ax=fixed, band=False)
        assert fixed.get_legend().get_window_extent().x1 <= fixed.get_window_extent().x1

    def test_numbers_at_risk_end_with_each_horizon(self, ax):
        """Where the last tick is one of rounding beyond it, too."""
        time = np.random.default_rng(0).exponential(5.0, 300)
        ends = {"short": 3 * 0.1, "long": 0.6}
        models = {n: DPKaplanMeierFitter(3.0, max_time=end).fit(time) for n, end in ends.items()}
        plot_univariate(models, ax=ax, band=False, at_risk_counts=True, time_scale=0.1)
        ax.set_xticks([0.0, 3.0, 6.0])
        add_at_risk_counts(models, ax=(again := ax), time_scale=0.1)
        numbers = [text.get_text() for text in again.texts[-7:]]
        assert [numbers[0], numbers[3]] == ["short", "long"]
        with pytest.raises(ValueError, match=r"times must be at most max_time=0\.3"):
            plot_univariate(models, ax=ax, times=[0.0, 0.6])


def test_refusals(data, model, private, reference, found):
    cox, other = {"Cox": fit_cox(data.X, data.y)}, {"a": model, "b": PublicBoundsScaler()}
    hazards, not_fitted = ProportionalHazards(), DPWeibullFitter(max_time=1.0)
    rising = "array of rising times"
    for function, arguments, options, why in (
        (plot_survival_curves, ({}, PEOPLE), {}, "at least one model"),
        (plot_survival_curves, (model, PEOPLE), {"labels": ["one"]}, "one label for each of the 2"),
        (plot_survival_curves, (model, PEOPLE), {"time_scale": 0}, "time_scale must be a positive"),
        (plot_survival_curves, (other, PEOPLE), {}, r"models\['b'\] .*Scaler has none"),
        (plot_survival_curves, (cox, PEOPLE), {"band": True}, "one that has a survival_band"),
        (plot_survival_curves, (model, PEOPLE), {"band": True}, "inference_share must be positive"),
        (plot_calibration, ({},), {}, "evaluations must hold"),
        (plot_calibration, ({"one": found, "other": 3},), {}, "evaluations must be of"),
        (plot_risk_groups, (3,), {}, "evaluation must be of"),
        (plot_risk_groups, (found, hazards), {}, "profile must be given"),
        (plot_risk_groups, (found, hazards, [[0.0], [1.0]]), {}, "profile must be one row, got 2"),
        (plot_risk_groups, (found, 3, [[0.0]]), {}, "predict_survival_function"),
        (plot_coefficients, ({"x": object()},), {}, r"models\['x'\] must have a summary"),
        (plot_univariate, ({"a": private, "b": object()},), {}, r"models\['b'\] must have"),
        (plot_univariate, (private,), {"colors": []}, "colors must hold at least one color"),
        (plot_univariate, (private,), {"level": 1.5}, "level"),
        *((plot_univariate, (private,), {"times": t}, rising) for t in ([[1.0]], [1.0, 1.0])),
        *((plot_univariate, (private,), {"times": t}, rising) for t in ([-1.0, 1.0], [np.nan])),
        (plot_univariate, (reference,), {}, "no model states a max_time"),
        (plot_univariate, ({"a": not_fitted},), {}, "not fitted"),
    ):
        with pytest.raises((ValueError, TypeError, NotFittedError), match=why):
            function(*arguments, **options)


def test_axes_of_their_own_and_matplotlib(model, private, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    drawn = (lambda: plot_survival_curves(model, PEOPLE), lambda: private.plot(band=False))
    for draw in drawn:
        ax = draw()
        assert ax.figure.get_axes() == [ax]
        pyplot.close(ax.figure)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in drawn:
        with pytest.raises(ImportError, match=r'"skdpsurv\[plot\]"'):
            draw()
