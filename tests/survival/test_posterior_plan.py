"""method="psgld": parameters, status, degenerate data, and what a fit keeps of the records."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skdpsurv import (
    BudgetExceededError,
    DPDiscreteTimeSurvival,
    PosteriorSampling,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PublicBoundsScaler,
    PublicInputWarning,
    Release,
)
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.shape import Shape
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.dp import random_source
from skdpsurv.mechanisms.langevin import MALA, PSGLD, least_step
from skdpsurv.mechanisms.posterior_sampling import calibrate
from skdpsurv.published.hazards import PublishedDraw
from skdpsurv.survival.hazards import posterior as hazard_posterior
from skdpsurv.survival.hazards.model import (
    HazardModel,
    HazardRecords,
    orthogonal_basis,
    published_basis,
    to_published,
)
from skdpsurv.survival.hazards.posterior import BURN_IN, PSGLD_EPOCHS, PosteriorDraw
from tests.support.combinations import thinned
from tests.support.estimators import hazard, search_of

Y = np.dtype([("event", "?"), ("time", "f8")])
LINKS = ("logit", "cloglog", "probit")
#: The shortest chains: epochs of MALA are single steps, those of pSGLD n of them.
CHAINS = {
    "mala": {"sampler": "mala", "n_epochs": 100},
    "psgld": {"sampler": "psgld", "n_epochs": 17, "batch_size": 10},
    "published": {
        "sampler": "psgld",
        "n_epochs": 17,
        "batch_size": 10,
        "published": True,
        "step_size": 1e-2,
    },
}


def model(epsilon=1.0, **parameters):
    defaults = {"max_time": 1.0, "n_intervals": 10, "random_state": 0, "n_epochs": 100}
    return hazard(epsilon, **{**defaults, **parameters})


def target(event, time):
    y = np.empty(len(time), dtype=Y)
    y["event"], y["time"] = event, time
    return y


@pytest.fixture(scope="module")
def data():
    return make_discrete_time_survival(60, 2, event_rate=0.6, random_state=0)


@pytest.fixture(params=["mala", "psgld", pytest.param("published", marks=pytest.mark.slow)])
def chain(request):
    return CHAINS[request.param]


class Untouchable:
    """Raises on any access: stands for records that must not be read."""

    def __getattribute__(self, name):
        raise AssertionError(f"a record was read: {name}")


BAD = [
    ({"sampler": "hmc"}, ValueError, "sampler"),
    ({"sampler": None}, (TypeError, ValueError), "sampler"),
    ({"n_epochs": 0}, ValueError, "n_epochs"),
    ({"n_epochs": -3}, ValueError, "n_epochs"),
    ({"n_epochs": 2.5}, TypeError, "n_epochs"),
    ({"n_epochs": "many"}, ValueError, "n_epochs"),
    ({"n_epochs": None}, TypeError, "n_epochs"),
    ({"n_epochs": 1}, ValueError, "n_epochs"),
    ({"n_epochs": 99}, ValueError, "n_epochs"),
    ({"batch_size": 0}, ValueError, "batch_size"),
    ({"batch_size": 10.0}, TypeError, "batch_size"),
    ({"batch_size": "auto"}, TypeError, "batch_size"),
    ({"step_size": 0.0}, ValueError, "step_size"),
    ({"step_size": -1.0}, ValueError, "step_size"),
    ({"step_size": np.inf}, ValueError, "step_size"),
    ({"step_size": np.nan}, ValueError, "step_size"),
    ({"step_size": "small"}, ValueError, "step_size"),
    ({"step_size": None}, TypeError, "step_size"),
    ({"step_exponent": 0.5}, ValueError, "step_exponent"),
    ({"step_exponent": 0.0}, ValueError, "step_exponent"),
    ({"step_exponent": 1.0001}, ValueError, "step_exponent"),
    ({"step_exponent": np.nan}, ValueError, "step_exponent"),
    ({"step_exponent": "auto"}, TypeError, "step_exponent"),
    ({"verbose": -1}, ValueError, "verbose"),
    ({"verbose": 0.5}, ValueError, "verbose"),
    ({"published": True, "sampler": "mala"}, ValueError, "sampler"),
    ({"published": True}, ValueError, "sampler"),
]


class TestParameters:
    @pytest.mark.parametrize(("parameters", "error", "name"), BAD)
    def test_are_refused_before_any_record_and_any_charge(self, parameters, error, name):
        accountant = PrivacyAccountant(10.0, rehearsal=True)
        one = model(**parameters, accountant=accountant)
        with pytest.raises(error, match=name) as caught:
            one.fit(Untouchable(), Untouchable())
        assert str(caught.value).startswith(name)
        assert len(accountant.entries()) == 0
        assert not hasattr(one, "release_")

    @pytest.mark.parametrize("step_exponent", [0.5000001, 0.51, 1.0, 1])
    def test_exponents_that_have_a_limit(self, step_exponent):
        one = model(sampler="psgld", step_exponent=step_exponent)
        one._check_parameters()
        assert one.method.chain(100).step_exponent == step_exponent

    def test_defaults(self):
        assert PosteriorSampling().get_params() == {
            "sampler": "mala",
            "n_epochs": "auto",
            "batch_size": 200,
            "step_size": "auto",
            "step_exponent": 0.51,
            "verbose": 0,
        }

    def test_length_and_chain(self):
        steps = [PosteriorSampling("mala").n_steps(n) for n in (10, 1000, 8000, 10**4, 10**6)]
        assert steps == [4000, 4000, 500, 400, 400]
        assert PosteriorSampling("psgld").n_steps(1000) == 1000 * PSGLD_EPOCHS
        assert [PosteriorSampling("psgld").n_steps(n) for n in (1, 2, 3, 4, 5)] == [
            1000, 1000, 1002, 1000, 1250,
        ]  # fmt: skip
        assert PosteriorSampling("psgld", n_epochs=3).n_steps(1000) == 3000
        mala = PosteriorSampling("mala", n_epochs=41).chain(1000)
        assert mala == MALA(int(np.ceil(41 * BURN_IN["mala"])))
        chain = PosteriorSampling(
            "psgld", n_epochs=3, batch_size=200, step_size=0.01, step_exponent=0.6
        ).chain(1000)
        assert chain == PSGLD(int(np.ceil(3000 * BURN_IN["psgld"])), 200, 0.01, 0.6)

    def test_step_size_auto(self):
        for n, k in ((1000, 200), (100, 100)):
            automatic = PosteriorSampling("psgld").chain(n)
            assert automatic.batch_size == k
            assert automatic.step_size is None
        assert PosteriorSampling("psgld", step_size=0.5).chain(1000).step_size == 0.5

    def test_the_word_is_the_object_with_its_defaults(self, data):
        """A chain of the default length; and, with a delta, one whose sampler is named."""
        one, other = (
            DPDiscreteTimeSurvival(max_time=1.0, n_intervals=10, random_state=0, method=method)
            for method in ("psgld", PosteriorSampling())
        )
        assert one.fit(data.X, data.y).release_ == other.fit(data.X, data.y).release_

    def test_they_are_nested_parameters(self, data):
        """Which clones copy, searches set, and nothing but the estimator's own copy sees."""
        one = model()
        other = clone(one).set_params(method__n_epochs=250, method__sampler="psgld")
        assert other.get_params()["method__n_epochs"] == 250
        assert (one.method.n_epochs, one.method.sampler) == (100, "mala")
        X, y = np.repeat(data.X, 2, axis=0), np.repeat(data.y, 2)
        grid = {"method__n_epochs": [100, 120]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            search = GridSearchCV(one, grid, cv=2, error_score="raise").fit(X, y)
        best = search.best_estimator_
        assert best.guarantee_.public_inputs["n_steps"] == best.method.n_epochs

    def test_private_searches_set_them(self, data):
        """Among chains with a delta, whose guarantees are proved."""
        noisy = hazard(max_time=1.0, n_intervals=10, sampler="psgld", n_epochs=30, verbose=1)
        grid = {"method__n_epochs": [30, 40]}
        search = search_of(
            noisy, grid, epsilon=4.0, delta=1e-4, eta=0.0, expected_runs=1.0, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            search.fit(data.X, data.y)
        best = search.best_estimator_
        assert best.method.n_epochs == search.best_params_["method__n_epochs"]
        assert noisy.method.n_epochs == 30

    @pytest.mark.parametrize("method", [None, 3, PosteriorSampling, [PosteriorSampling()]])
    def test_other_objects_are_refused(self, data, method):
        one = DPDiscreteTimeSurvival(max_time=1.0, method=method)
        with pytest.raises((ValueError, TypeError), match=r"^method must be one of .*Posterior"):
            one.fit(data.X, data.y)


class TestStatus:
    @pytest.mark.parametrize("sampler", ["mala", "psgld"])
    def test_is_asymptotic(self, data, sampler):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", PublicInputWarning)
            one = model(random_state=None, **CHAINS[sampler]).fit(data.X, data.y)
        guarantee = one.guarantee_
        assert guarantee.status == "asymptotic"
        assert guarantee.epsilon == 1.0
        assert guarantee.delta == 0.0
        assert sampler in guarantee.mechanism
        assert "sanitised exponential mechanism" in guarantee.mechanism
        inputs = guarantee.public_inputs
        assert inputs["sampler"] == sampler
        assert inputs["n_steps"] == (100 if sampler == "mala" else 1020)
        v = 2 * np.log(60)
        assert inputs["loss_ceiling"] == pytest.approx(v)
        assert inputs["rate"] == pytest.approx(1.0 / (2 * v))
        assert inputs["prior_precision"] == pytest.approx(1e-2)
        assert "limit of the sampler" in guarantee.meaning

    @pytest.mark.parametrize("sampler", ["mala", "psgld"])
    def test_seeded(self, data, sampler):
        with pytest.warns(PrivacyLeakWarning, match="random_state"):
            one = model(**CHAINS[sampler]).fit(data.X, data.y)
        assert one.guarantee_.status == "seeded"

    @pytest.mark.parametrize("random_state", [None, 0])
    def test_published_is_none_and_says_so_before_the_charge(self, data, random_state):
        accountant = PrivacyAccountant()
        one = model(accountant=accountant, **{**CHAINS["published"], "random_state": random_state})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            warnings.filterwarnings("error", message=".*twice its epsilon.*")
            with pytest.raises(PrivacyLeakWarning, match="twice its epsilon"):
                one.fit(data.X, data.y)
        assert len(accountant.entries()) == 0
        with pytest.warns(PrivacyLeakWarning, match="twice its epsilon"):
            one.fit(data.X, data.y)
        assert one.guarantee_.status == "none"
        assert "published" in one.guarantee_.mechanism

    def test_infinite_epsilon_is_maximum_likelihood(self, data):
        fits = [
            model(np.inf).fit(data.X, data.y),
            DPDiscreteTimeSurvival(np.inf, max_time=1.0, n_intervals=10).fit(data.X, data.y),
        ]
        np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
        assert fits[0].guarantee_.status == "none"

    def test_docstring_says_it(self):
        text = " ".join(DPDiscreteTimeSurvival.__doc__.split())
        assert "asymptotic guarantee only" in text

    def test_charged_once_and_whole(self, data, chain):
        accountant = PrivacyAccountant(5.0, rehearsal=True)
        model(2.0, accountant=accountant, **chain).fit(data.X, data.y)
        assert len(accountant.entries()) == 1
        assert accountant.rehearsed() == 2.0

    def test_budget_is_asked_before_any_record_is_read(self):
        with pytest.raises(BudgetExceededError):
            model(2.0, accountant=PrivacyAccountant(1.0, rehearsal=True)).fit(
                np.full((200, 2), np.nan), None
            )

    def test_divergence_stays_charged_and_tells_nothing(self, data):
        accountant = PrivacyAccountant(5.0, rehearsal=True)
        one = model(**{**CHAINS["psgld"], "step_size": 1e9}, accountant=accountant)
        with pytest.raises(ValueError, match="step_size") as caught:
            one.fit(data.X, data.y)
        assert not any(character.isdigit() for character in str(caught.value))
        assert len(accountant.entries()) == 1
        assert not hasattr(one, "release_")


every_link = pytest.mark.parametrize("link", LINKS)


def at_least(quick):
    """Run with each link, all but one of them in the slow suite."""
    slow = pytest.mark.slow
    return pytest.mark.parametrize(
        "link", [link if link == quick else pytest.param(link, marks=slow) for link in LINKS]
    )


class TestEveryDataSetGetsAFit:
    """What depends on data must not raise or warn: it would tell about the records."""

    def fits(self, X, event, time, link, **parameters):
        X = np.asarray(X, dtype=float)
        y = target(event, np.asarray(time))
        for sampler, epsilon in (("mala", 1e3), ("psgld", 1e-6 if link == "logit" else 1e3)):
            least = PosteriorSampling(sampler).least_epochs(len(X))
            chain = {"sampler": sampler, "n_epochs": least}
            one = model(epsilon, link=link, max_cumulative_hazard=None, **chain, **parameters)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", PublicInputWarning)
                warnings.simplefilter("ignore", PrivacyLeakWarning)
                one.fit(X, y)
            assert np.isfinite(one.coef_).all()
            assert np.isfinite(one.baseline_coef_).all()

    @every_link
    def test_plain(self, data, link):
        self.fits(data.X, data.y["event"], data.y["time"], link)

    @pytest.mark.parametrize(("link", "event"), thinned(LINKS, [False, True]))
    def test_no_events_or_only_events(self, data, link, event):
        self.fits(data.X, event, data.y["time"], link)

    @at_least("cloglog")
    def test_all_events_in_the_first_interval(self, data, link):
        self.fits(data.X, True, np.full(60, 0.01), link)

    @every_link
    def test_separated(self, data, link):
        up = data.X[:, 0] > 0
        self.fits(np.where(data.X > 0, 1e300, -1e300), up, np.where(up, 0.01, 1.0), link)

    @at_least("logit")
    def test_constant_and_equal_columns(self, data, link):
        x = data.X[:, :1]
        X = np.hstack([np.ones((60, 1)), np.zeros((60, 1)), x, x])
        self.fits(X, data.y["event"], data.y["time"], link)

    @pytest.mark.parametrize(("link", "n"), thinned(LINKS, [1, 2]))
    def test_one_or_two_records(self, data, link, n):
        self.fits(data.X[:n], np.arange(n) == 0, data.y["time"][:n], link)

    @at_least("probit")
    def test_as_many_knots_as_intervals(self, data, link):
        self.fits(data.X, data.y["event"], data.y["time"], link, n_knots=10)


class TestSetting:
    """What the plan asks of the mechanism."""

    @staticmethod
    def plan(epsilon=1.0, alpha=0.0, schedule=None, **changes):
        fields = {
            "link": "logit", "n_intervals": 10, "n_knots": 3, "n_records": 60, "n_features": 2,
            "data_norm": 0.5, "max_cumulative_hazard": "auto", "prior_event_rate": 0.4,
        }  # fmt: skip
        model = HazardModel(**{**fields, **changes})
        return PosteriorDraw(
            model, epsilon, alpha, schedule or PosteriorSampling("mala", n_epochs=100)
        )

    def test_alpha_adds_to_the_prior(self):
        """On the scale of the mean loss: n alpha / 2 ||f||^2 beside the sum, times the rate."""
        plain, ridged = self.plan(), self.plan(alpha=0.3)
        rate = 1.0 / (4.0 * np.log(60))
        assert plain.sanitizer.prior_precision == 1e-2
        assert ridged.sanitizer.prior_precision == pytest.approx(1e-2 + rate * 60 * 0.3)
        assert plain.sanitizer.ceiling == ridged.sanitizer.ceiling
        assert plain.sanitizer.rate == ridged.sanitizer.rate == pytest.approx(rate)

    def test_a_large_alpha_shrinks(self, data):
        one = model(alpha=1e6).fit(data.X, data.y)
        assert np.abs(one.coef_).max() < 0.1
        assert np.abs(model().fit(data.X, data.y).coef_).max() > 0.1

    @pytest.mark.parametrize("link", LINKS)
    def test_records_and_likelihood_of_the_target(self, monkeypatch, data, link):
        """Uncapped, rows clipped to data_norm and divided by it, the orthogonal basis."""
        seen = []

        def spy(self, target, source):
            seen.append(target)
            while True:
                yield np.arange(1.0, 6.0)

        monkeypatch.setattr(MALA, "states", spy)
        plan = self.plan(link=link)
        interval = np.full(60, 3)
        records = InMemory([HazardRecords(3.0 * data.X, interval, data.y["event"])])
        values = plan.run({}, records, random_source(0))
        (made,) = seen
        assert made.likelihood.max_cumulative_hazard is None
        assert made.likelihood.link.name == link
        assert made.likelihood.data_norm == 1.0
        assert made.sanitizer == plan.sanitizer
        basis = orthogonal_basis(10, 3)
        np.testing.assert_array_equal(made.likelihood.basis, basis)
        (block,) = made.blocks.blocks
        norms = np.linalg.norm(block.X, axis=1)
        assert norms.max() <= 1 + 1e-12
        assert (norms > 1 - 1e-9).sum() > 5
        np.testing.assert_allclose(values["baseline_coef"], to_published(basis @ [1, 2, 3], 3))
        np.testing.assert_allclose(values["coef"], np.array([4, 5]) / 0.5)

    def test_published_uses_the_papers_basis(self):
        plan = self.plan(schedule=PosteriorSampling("psgld", n_epochs=20))
        np.testing.assert_array_equal(plan.basis, orthogonal_basis(10, 3))
        published = PublishedDraw(plan.model, 1.0, 0.0, plan.schedule)
        assert published.chain() == replace(plan.chain(), published=True)
        np.testing.assert_array_equal(published.basis, published_basis(10, 3))

    def test_cap_first_look_and_guess_do_not_enter(self, data):
        guess = {"prior_event_rate": 1e-9}
        fits = [
            model(max_cumulative_hazard=cap, pilot_share=share, **more).fit(data.X, data.y).coef_
            for cap, share, more in (("auto", 0.1, {}), (0.5, 0.0, {}), (None, 0.7, guess))
        ]
        np.testing.assert_array_equal(fits[0], fits[1])
        np.testing.assert_array_equal(fits[0], fits[2])

    def test_the_last_state_of_a_chain_of_that_length_is_released(self, monkeypatch, data):
        def states(self, target, source):
            for t in range(1, 1000):
                yield np.full(5, float(t))

        monkeypatch.setattr(MALA, "states", states)
        one = model(n_epochs=117, data_norm=1.0).fit(data.X, data.y)
        np.testing.assert_allclose(one.coef_, 117.0)

    @pytest.mark.parametrize("block_rows", [7, 25])
    def test_blocks_do_not_change_the_fit(self, monkeypatch, data, block_rows):
        """Up to rounding."""
        whole = model().fit(data.X, data.y)
        monkeypatch.setattr("skdpsurv.data.blocks.BLOCK_ROWS", block_rows)
        parts = model().fit(data.X, data.y)
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-5)

    def test_much_epsilon_is_near_the_mode(self, data):
        """A posterior with little spread: draws agree, but are not the same."""
        one = model(1e6, n_epochs=300, data_norm=2.0).fit(data.X, data.y)
        two = model(1e6, n_epochs=300, data_norm=2.0, random_state=1).fit(data.X, data.y)
        assert (one.coef_ != two.coef_).all()
        np.testing.assert_allclose(one.coef_, two.coef_, atol=0.05)
        np.testing.assert_allclose(one.predict(data.X), two.predict(data.X), atol=0.05)


def state_but_release(one):
    state = {k: v for k, v in vars(one).items() if k not in ("release_", "coef_", "baseline_coef_")}
    state["shapes"] = one.coef_.shape, one.baseline_coef_.shape
    state["parameters"] = dict(one.release_.parameters)
    return {key: pickle.dumps(value) for key, value in state.items()}


class TestNothingPrivateIsKept:
    def test_neighbours_differ_in_released_values_only(self, data, chain):
        fits = []
        for x, event, time in (([9.0, 9.0], True, 0.0), ([-9.0, -9.0], False, 99.0)):
            X, y = data.X.copy(), data.y.copy()
            X[3], y[3] = x, (event, time)
            fits.append(model(**chain).fit(X, y))
        one, other = map(state_but_release, fits)
        assert one == other
        assert (fits[0].coef_ != fits[1].coef_).any()
        assert set(fits[0].release_.values) == {"coef", "baseline_coef"}

    def test_attributes_are_parameters_and_the_release(self, data, chain):
        one = model(**chain).fit(data.X, data.y)
        extra = set(vars(one)) - set(one.get_params())
        assert extra == {
            "n_features_in_", "release_", "guarantee_", "coef_", "baseline_coef_", "columns_",
            "unique_times_", "recalibration_", "inference_", "max_cumulative_hazard_",
        }  # fmt: skip

    def test_a_pickle_holds_no_training_data(self, data, chain):
        rng = np.random.default_rng(0)
        X, time = rng.uniform(-1, 1, size=(60, 2)), rng.uniform(0.1, 0.9, size=60)
        one = model(**chain, accountant=PrivacyAccountant()).fit(X, target(True, time))
        content = pickle.dumps(one)
        for value in (*X.ravel(), *time):
            assert value.tobytes() not in content
            assert repr(float(value)).encode() not in content
        assert one.coef_[0].tobytes() in content

    def test_a_release_rebuilds_the_model(self, data, chain):
        one = model(**chain).fit(data.X, data.y)
        two = type(one).from_release(Release.from_json(one.release_.to_json()))
        assert two.guarantee_ == one.guarantee_
        np.testing.assert_array_equal(two.predict(data.X), one.predict(data.X))
        np.testing.assert_array_equal(
            two.predict_survival_function(data.X, return_array=True),
            one.predict_survival_function(data.X, return_array=True),
        )


class TestReproducible:
    def test_seeds(self, data, chain):
        one = model(**chain)
        first = one.fit(data.X, data.y).coef_
        np.testing.assert_array_equal(clone(one).fit(data.X, data.y).coef_, first)
        np.testing.assert_array_equal(one.fit(data.X, data.y).coef_, first)  # a refit
        other = clone(one).set_params(random_state=1).fit(data.X, data.y).coef_
        assert (other != first).all()

    @pytest.mark.parametrize("sampler", ["mala", "psgld"])
    def test_without_a_seed_no_two_fits_are_equal(self, data, sampler):
        one = model(**{**CHAINS[sampler], "random_state": None})
        first = one.fit(data.X, data.y).coef_
        assert (one.fit(data.X, data.y).coef_ != first).all()

    def test_pipeline(self, data, chain):
        scaler = PublicBoundsScaler.from_bounds({"a": (-1.0, 1.0), "b": (-2.0, 1.0)})
        X = pd.DataFrame(data.X, columns=["a", "b"])
        piped = make_pipeline(scaler, model(**chain)).fit(X, data.y)
        alone = model(**chain).fit(np.asarray(scaler.fit_transform(X)), data.y)
        np.testing.assert_array_equal(piped[-1].coef_, alone.coef_)
        assert 0.0 <= piped.score(X, data.y) <= 1.0


class TestVerbose:
    @pytest.mark.parametrize("verbose", [0, 1])
    def test_writes_to_the_error_stream_alone_and_changes_nothing(self, capsys, data, verbose):
        one = model(verbose=verbose).fit(data.X, data.y)
        out, err = capsys.readouterr()
        assert out == ""
        assert ("posterior sampling (mala)" in err) == bool(verbose)
        np.testing.assert_array_equal(one.coef_, model().fit(data.X, data.y).coef_)

    def test_the_bar_is_told_nothing_but_names_and_counts(self, monkeypatch, data):
        told = []

        def spy(items, n_items, task, verbose):
            told.append((n_items, task, verbose))
            return iter([next(items)])

        monkeypatch.setattr(hazard_posterior, "first", spy)
        model(verbose=2).fit(data.X, data.y)
        assert told == [(100, "posterior sampling (mala)", 2)]


class TestAutomaticStep:
    @pytest.mark.parametrize(("epsilon", "n"), thinned([1e-6, 1.0, 1e3], [1, 2, 5]))
    def test_never_diverges(self, epsilon, n):
        """Few records: all of them in each step, and a prior that rules."""
        rng = np.random.default_rng(n)
        for seed in range(3):
            X, time = rng.normal(size=(n, 1)) * 10.0 ** rng.integers(-300, 300), rng.random(n)
            chain = {"sampler": "psgld", "n_epochs": "auto", "n_knots": 1, "random_state": seed}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyLeakWarning)
                coef = model(epsilon, **chain).fit(X, time).coef_
            assert np.abs(coef).max() < 1e3

    @pytest.mark.slow
    def test_few_records_leave_the_prior(self):
        """At epsilon near 0 the law is the prior's: sd 10, of 200 draws within 6 errors of 5 %."""
        X, time = np.zeros((2, 1)), np.array([0.3, 0.7])
        draws = []
        for seed in range(200):
            chain = {"sampler": "psgld", "n_epochs": 500, "n_knots": 1, "random_state": seed}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyLeakWarning)
                made = model(1e-9, data_norm=1.0, **chain).fit(X, time)
            draws.append(made.coef_[0])
        assert 7.0 < np.std(draws) < 13.0


def test_more_epochs_than_can_be_counted_are_refused():
    accountant = PrivacyAccountant(epsilon=1.0, rehearsal=True)
    for n_epochs in (10**9 + 1, 10**20, 10**400):
        with pytest.raises(ValueError, match=r"n_epochs must be .* to 1,000,000,000, got"):
            model(n_epochs=n_epochs, accountant=accountant).fit(np.zeros((3, 1)), [0.1, 0.2, 0.3])
    assert len(accountant.entries()) == 0


class TestChainsThatStayWhereTheyBegin:
    """Are refused from public numbers, before anything is read or charged."""

    @staticmethod
    def refusal(n, **parameters):
        accountant = PrivacyAccountant(10.0)
        one = model(accountant=accountant, sampler="psgld", **parameters)
        with pytest.raises(ValueError, match="at least") as caught:
            one._plan(Shape(n, 2))  # public numbers alone
        with pytest.raises(ValueError, match="at least") as again:
            one.fit(np.zeros((n, 2)), np.full(n, 0.5))
        assert str(again.value) == str(caught.value)
        assert len(accountant.entries()) == 0
        assert not hasattr(one, "release_")
        return str(caught.value)

    @pytest.mark.parametrize(("n", "least"), [(1, 1000), (60, 17), (999, 2)])
    @pytest.mark.parametrize("published", [False, True])
    def test_few_epochs(self, n, least, published):
        told = self.refusal(n, n_epochs=least - 1, published=published)
        assert told.startswith(f"n_epochs must be at least {least} ")
        PosteriorSampling("psgld", n_epochs=least).check_length(calibrate(1.0, n), n)

    @pytest.mark.parametrize("step_size", [1e-30, 1e-12, 1e-9, 1e-6])
    @pytest.mark.parametrize("epsilon", [0.01, 1.0])
    def test_tiny_steps(self, step_size, epsilon):
        told = self.refusal(50, step_size=step_size, n_epochs=250, epsilon=epsilon)
        assert told.startswith("step_size must be at least ")

    @pytest.mark.parametrize(("epsilon", "n"), [(0.01, 200), (1.0, 300), (5.0, 10**5)])
    def test_the_bound_is_the_sum_of_public_rates(self, epsilon, n):
        """What is forgotten in sum is 10: the sum of a_t G c / 2, within the sum's own bound."""
        law = calibrate(epsilon, n)
        steps = np.arange(1.0, 20 * n + 1.0)
        least = least_step(law, n, 200, steps.size, 0.51)
        share = least / (1e-5 + law.rate / np.sqrt(200)) * (1e-2 + law.rate * n) / 2
        assert share * np.sum(steps**-0.51) == pytest.approx(10.0, rel=0.06)
        PosteriorSampling(
            "psgld", n_epochs=20, batch_size=200, step_size=1.01 * least
        ).check_length(law, n)
        with pytest.raises(ValueError, match="step_size"):
            PosteriorSampling(
                "psgld", n_epochs=20, batch_size=200, step_size=0.99 * least
            ).check_length(law, n)

    def test_exponent_of_one(self):
        law = calibrate(1.0, 100)
        one = [least_step(law, 100, 100, 5000, tau) for tau in (1.0, 1.0 - 1e-9)]
        assert one[0] == pytest.approx(one[1], rel=1e-6)

    def test_mala_has_no_step_size(self):
        PosteriorSampling("mala", n_epochs=100, step_size=1e-30).check_length(
            calibrate(1.0, 50), 50
        )


def test_a_draw_is_rounded_to_a_public_lattice():
    data = make_discrete_time_survival(30, 2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        made = model(data_norm=1.0).fit(data.X, data.y)
    steps = made.coef_ / hazard_posterior.LATTICE
    assert np.array_equal(steps, np.round(steps))
