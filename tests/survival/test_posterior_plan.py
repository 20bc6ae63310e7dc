"""method="psgld": parameters, status, degenerate data, and what a fit keeps of the records."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest

from skdpsurv import (
    DPDiscreteTimeSurvival,
    PosteriorSampling,
    PrivacyAccountant,
    PrivacyLeakWarning,
)
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.data.shape import Shape
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms.langevin import MALA, PSGLD, least_step
from skdpsurv.mechanisms.posterior_sampling import calibrate
from skdpsurv.published.hazards import PublishedDraw
from skdpsurv.survival.hazards import model as hazard_model
from skdpsurv.survival.hazards.posterior import BURN_IN, LATTICE, PSGLD_EPOCHS, PosteriorDraw
from tests.support.combinations import thinned
from tests.support.estimators import hazard, search_of
from tests.support.refusing import refused
from tests.support.weibull import strictly, target

#: The shortest chains: epochs of MALA are single steps, those of pSGLD n of them.
SHORT = {
    "mala": {"sampler": "mala", "n_epochs": 100},
    "psgld": {"sampler": "psgld", "n_epochs": 17, "batch_size": 10},
}


def model(epsilon=1.0, **parameters):
    defaults = {"max_time": 1.0, "n_intervals": 10, "random_state": 0, "n_epochs": 100}
    return hazard(epsilon, **{**defaults, **parameters})


@pytest.fixture(scope="module")
def data():
    return make_discrete_time_survival(60, 2, event_rate=0.6, random_state=0)


BAD = {
    "sampler": ("hmc", None),
    "n_epochs": (0, 2.5, "many", None, 99, 10**9 + 1, 10**400),
    "batch_size": (0, 10.0, "auto"),
    "step_size": (0.0, np.inf, np.nan, "small", None),
    "step_exponent": (0.5, 1.0001, np.nan, "auto"),
    "verbose": (-1, 0.5),
}


class TestParameters:
    def test_are_refused_before_any_record(self):
        cases = [(name, {name: value}) for name, values in BAD.items() for value in values]
        cases += [("sampler", {"published": True, **one}) for one in ({"sampler": "mala"}, {})]
        for name, parameters in cases:
            refused(model(**parameters), f"^{name}", np.full((3, 1), np.nan), [0.1, 0.2, 0.3])

    def test_length_and_chain(self):
        steps = [PosteriorSampling("mala").n_steps(n) for n in (10, 1000, 8000, 10**4, 10**6)]
        assert steps == [4000, 4000, 500, 400, 400]
        steps = [PosteriorSampling("psgld").n_steps(n) for n in (1, 2, 3, 4, 5, 1000)]
        assert steps == [1000, 1000, 1002, 1000, 1250, 1000 * PSGLD_EPOCHS]
        mala = PosteriorSampling("mala", n_epochs=41).chain(1000)
        assert mala == MALA(int(np.ceil(41 * BURN_IN["mala"])))
        given = {"batch_size": 200, "step_size": 0.01, "step_exponent": 1}
        chain = PosteriorSampling("psgld", n_epochs=3, **given).chain(1000)
        assert chain == PSGLD(int(np.ceil(3000 * BURN_IN["psgld"])), 200, 0.01, 1)
        for n, k in ((1000, 200), (100, 100)):
            automatic = PosteriorSampling("psgld").chain(n)
            assert (automatic.batch_size, automatic.step_size) == (k, None)

    def test_the_word_is_the_object_with_its_defaults(self):
        one, other = (
            DPDiscreteTimeSurvival(max_time=1.0, method=method)._plan(Shape(60, 2))
            for method in ("psgld", PosteriorSampling())
        )
        schedules = [plan.leaves[0].schedule.get_params() for plan in (one, other)]
        assert schedules[0] == schedules[1]
        assert one.guarantee("asymptotic") == other.guarantee("asymptotic")

    def test_they_are_nested_parameters(self, data):
        """Which searches set, and nothing but the estimator's own copy sees."""
        noisy = hazard(max_time=1.0, n_intervals=10, sampler="psgld", n_epochs=30, verbose=1)
        how = {"delta": 1e-4, "eta": 0.0, "expected_runs": 1.0, "random_state": 0}
        search = search_of(noisy, {"method__n_epochs": [30, 40]}, epsilon=4.0, **how)
        search.fit(data.X, data.y)
        best = search.best_estimator_
        assert best.method.n_epochs == search.best_params_["method__n_epochs"]
        assert noisy.method.n_epochs == 30


class TestStatus:
    @pytest.mark.parametrize("sampler", SHORT)
    def test_is_asymptotic(self, data, sampler):
        one = strictly(model(random_state=None, **SHORT[sampler]).fit, data.X, data.y)
        guarantee, inputs = one.guarantee_, one.guarantee_.public_inputs
        assert (guarantee.status, guarantee.epsilon, guarantee.delta) == ("asymptotic", 1.0, 0.0)
        assert sampler in guarantee.mechanism
        assert inputs["n_steps"] == (100 if sampler == "mala" else 1020)
        found = inputs["loss_ceiling"], inputs["rate"], inputs["prior_precision"]
        assert found == pytest.approx((2 * np.log(60), 1.0 / (4 * np.log(60)), 1e-2))

    def test_published_is_none_and_says_so_before_the_charge(self, data):
        accountant = PrivacyAccountant()
        one = model(accountant=accountant, published=True, **SHORT["psgld"], step_size=1e-2)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*twice its epsilon.*")
            with pytest.raises(PrivacyLeakWarning, match="twice"):
                one.fit(data.X, data.y)
        assert len(accountant.entries()) == 0
        one.fit(data.X, data.y)
        assert one.guarantee_.status == "none"
        assert "published" in one.guarantee_.mechanism

    def test_divergence_stays_charged_and_tells_nothing(self, data):
        accountant = PrivacyAccountant(5.0, rehearsal=True)
        one = model(**{**SHORT["psgld"], "step_size": 1e9}, accountant=accountant)
        with pytest.raises(ValueError, match="step_size") as caught:
            one.fit(data.X, data.y)
        assert not any(character.isdigit() for character in str(caught.value))
        assert len(accountant.entries()) == 1
        assert not hasattr(one, "release_")


def awkward(data):
    """Name: covariates, events, times and more parameters."""
    X, event, time = data.X, data.y["event"], data.y["time"]
    up, x, every = X[:, 0] > 0, X[:, :1], np.full(60, True)
    columns = np.hstack([np.ones((60, 1)), np.zeros((60, 1)), x, x])
    return {
        "plain": (X, event, time, {}),
        "no events": (X, ~every, time, {}),
        "only events": (X, every, time, {}),
        "all in the first interval": (X, every, np.full(60, 0.01), {}),
        "separated": (np.where(X > 0, 1e300, -1e300), up, np.where(up, 0.01, 1.0), {}),
        "constant and equal columns": (columns, event, time, {}),
        "one record": (X[:1], every[:1], time[:1], {}),
        "two records": (X[:2], np.array([True, False]), time[:2], {}),
        "as many knots as intervals": (X, event, time, {"n_knots": 10}),
    }


@pytest.mark.parametrize(
    ("case", "link"), thinned(awkward(make_discrete_time_survival(60, 2)), LINKS)
)
def test_every_data_set_gets_a_fit(data, case, link):
    """What depends on data must not raise or warn: it would tell about the records."""
    X, event, time, parameters = awkward(data)[case]
    for sampler, epsilon in (("mala", 1e3), ("psgld", 1e-6 if link == "logit" else 1e3)):
        chain = {"sampler": sampler, "n_epochs": PosteriorSampling(sampler).least_epochs(len(X))}
        one = model(epsilon, link=link, max_cumulative_hazard=None, **chain, **parameters)
        strictly(one.fit, X, target(event, time))
        assert np.isfinite([*one.coef_, *one.baseline_coef_]).all()


@pytest.mark.parametrize(("epsilon", "n"), thinned([1e-6, 1.0, 1e3], [1, 2, 5]))
def test_automatic_steps_never_diverge(epsilon, n):
    """Few records: all of them in each step, and a prior that rules."""
    rng = np.random.default_rng(n)
    for seed in range(3):
        X, time = rng.normal(size=(n, 1)) * 10.0 ** rng.integers(-300, 300), rng.random(n)
        chain = {"sampler": "psgld", "n_epochs": "auto", "n_knots": 1, "random_state": seed}
        assert np.abs(model(epsilon, **chain).fit(X, time).coef_).max() < 1e3


class TestSetting:
    """What the plan asks of the mechanism."""

    @staticmethod
    def plan(epsilon=1.0, alpha=0.0, schedule=None, **changes):
        fields = {
            "link": "logit", "n_intervals": 10, "n_knots": 3, "n_records": 60, "n_features": 2,
            "data_norm": 0.5, "max_cumulative_hazard": "auto", "prior_event_rate": 0.4,
        }  # fmt: skip
        model = hazard_model.HazardModel(**{**fields, **changes})
        return PosteriorDraw(
            model, epsilon, alpha, schedule or PosteriorSampling("mala", n_epochs=100)
        )

    def test_alpha_adds_to_the_prior(self):
        """On the scale of the mean loss: n alpha / 2 ||f||^2 beside the sum, times the rate."""
        plain, ridged = self.plan().sanitizer, self.plan(alpha=0.3).sanitizer
        rate = 1.0 / (4.0 * np.log(60))
        assert plain.prior_precision == 1e-2
        assert ridged.prior_precision == pytest.approx(1e-2 + rate * 60 * 0.3)
        assert plain.ceiling == ridged.ceiling
        assert plain.rate == ridged.rate == pytest.approx(rate)

    @pytest.mark.parametrize("link", LINKS)
    def test_records_and_likelihood_of_the_target(self, monkeypatch, data, link):
        """Uncapped, rows clipped to data_norm and divided by it, the orthogonal basis."""
        seen = []

        def spy(self, target, source):
            seen.append(target)
            return itertools.repeat(np.arange(1.0, 6.0))

        monkeypatch.setattr(MALA, "states", spy)
        plan = self.plan(link=link)
        rows = hazard_model.HazardRecords(3.0 * data.X, Histories(np.full(60, 3), data.y["event"]))
        values = plan.run({}, InMemory([rows]), random_source(0))
        (made,) = seen
        assert made.likelihood.max_cumulative_hazard is None
        assert (made.likelihood.link.name, made.likelihood.data_norm) == (link, 1.0)
        assert made.sanitizer == plan.sanitizer
        basis = hazard_model.orthogonal_basis(10, 3)
        np.testing.assert_array_equal(made.likelihood.basis, basis)
        norms = np.linalg.norm(made.blocks.blocks[0].X, axis=1)
        assert norms.max() <= 1 + 1e-12
        assert (norms > 1 - 1e-9).sum() > 5
        expected = hazard_model.to_published(basis @ [1, 2, 3], 3)
        np.testing.assert_allclose(values["baseline_coef"], expected)
        np.testing.assert_allclose(values["coef"], np.array([4, 5]) / 0.5)

    def test_published_uses_the_papers_basis(self):
        plan = self.plan(schedule=PosteriorSampling("psgld", n_epochs=20))
        np.testing.assert_array_equal(plan.basis, hazard_model.orthogonal_basis(10, 3))
        published = PublishedDraw(plan.model, 1.0, 0.0, plan.schedule)
        assert published.chain() == replace(plan.chain(), published=True)
        np.testing.assert_array_equal(published.basis, hazard_model.published_basis(10, 3))

    def test_the_last_state_of_a_chain_of_that_length_is_released(self, monkeypatch, data):
        states = (np.full(5, float(t)) for t in itertools.count(1))
        monkeypatch.setattr(MALA, "states", lambda *args: states)
        one = model(n_epochs=117, data_norm=1.0).fit(data.X, data.y)
        np.testing.assert_allclose(one.coef_, 117.0)

    def test_neither_blocks_nor_a_progress_bar_change_the_fit(self, monkeypatch, capsys, data):
        """Up to rounding; and a draw is rounded to a public lattice."""
        whole, told = (model(data_norm=1.0, verbose=v).fit(data.X, data.y) for v in (0, 1))
        assert "posterior sampling (mala)" in capsys.readouterr().err
        np.testing.assert_array_equal(whole.coef_, told.coef_)
        np.testing.assert_array_equal(whole.coef_ / LATTICE, np.round(whole.coef_ / LATTICE))
        monkeypatch.setattr("skdpsurv.data.blocks.BLOCK_ROWS", 25)
        parts = model(data_norm=1.0).fit(data.X, data.y)
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-5)


class TestChainsThatStayWhereTheyBegin:
    """Are refused from public numbers, before anything is read or charged."""

    @staticmethod
    def refusal(n, **parameters):
        one = model(sampler="psgld", **parameters)
        with pytest.raises(ValueError, match="at least") as caught:
            one._plan(Shape(n, 2))  # public numbers alone
        assert refused(one, "at least", np.zeros((n, 2)), np.full(n, 0.5)) == str(caught.value)
        return str(caught.value)

    def test_few_epochs_and_tiny_steps(self):
        lengths = [(1, 1000), (60, 17), (999, 2)]
        for (n, least), published in itertools.product(lengths, [False, True]):
            told = self.refusal(n, n_epochs=least - 1, published=published)
            assert told.startswith(f"n_epochs must be at least {least} ")
            PosteriorSampling("psgld", n_epochs=least).check_length(calibrate(1.0, n), n)
        for step_size, epsilon in itertools.product([1e-30, 1e-6], [0.01, 1.0]):
            told = self.refusal(50, step_size=step_size, n_epochs=250, epsilon=epsilon)
            assert told.startswith("step_size must be at least ")

    def test_the_bound_is_the_sum_of_public_rates(self):
        """What is forgotten in sum is 10: the sum of a_t G c / 2, within the sum's own bound."""
        for epsilon, n in [(0.01, 200), (1.0, 300), (5.0, 10**5)]:
            law = calibrate(epsilon, n)
            steps = np.arange(1.0, 20 * n + 1.0)
            least = least_step(law, n, 200, steps.size, 0.51)
            share = least / (1e-5 + law.rate / np.sqrt(200)) * (1e-2 + law.rate * n) / 2
            assert share * np.sum(steps**-0.51) == pytest.approx(10.0, rel=0.06)
            enough, short = (
                PosteriorSampling("psgld", n_epochs=20, batch_size=200, step_size=part * least)
                for part in (1.01, 0.99)
            )
            enough.check_length(law, n)
            with pytest.raises(ValueError, match="step_size"):
                short.check_length(law, n)
