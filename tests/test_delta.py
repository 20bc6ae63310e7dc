"""Fits with a delta: what they promise is what their noise costs, and never worse than without."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, FrameChunks, PrivateSearchCV
from skdpsurv.data import PublicInputWarning
from skdpsurv.dp import BudgetExceededError, PrivacyAccountant, PrivacyGuarantee, PrivacyLeakWarning
from skdpsurv.dp.exact_vectors import require_delta
from skdpsurv.dp.privacy_cost import epsilon_at, rho_for
from skdpsurv.mechanisms import sums
from skdpsurv.mechanisms.perturbation import Minimisers
from skdpsurv.mechanisms.vector_noise import SphericalGaussian
from tests.support.estimators import logistic as perturbed
from tests.support.spies import laws_drawn

N, D, DELTA = 2000, 40, 1e-7
SURVIVAL, CLASSES = "survival", "classes"


def records(kind, n=N, d=D, n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    if kind == CLASSES:
        return X / math.sqrt(d), np.digitize(X[:, 0], np.linspace(-1, 1, n_classes + 1)[1:-1])
    time = rng.exponential(np.exp(-X[:, 0]))
    return X, np.array(list(zip(time < 1.0, np.minimum(time, 1.0), strict=True)), dtype="?,f8")


def model(kind, **parameters):
    if kind == SURVIVAL:
        return DPDiscreteTimeSurvival(**{"max_time": 1.0, "delta": DELTA, **parameters})
    return perturbed(**{"classes": [0, 1], "delta": DELTA, **parameters})


def fitted(kind, data=None, **parameters):
    data = records(kind) if data is None else data
    return model(kind, **parameters).fit(*data)


@pytest.mark.parametrize("kind", [SURVIVAL, CLASSES])
@pytest.mark.parametrize("method", ["auto", "noisy_gd", "out_pert"])
@pytest.mark.parametrize("inference_share", [0.0, 0.2])
class TestPrice:
    def test_all_noise_that_is_drawn_costs_rho(self, monkeypatch, kind, method, inference_share):
        """Counted from draws and sensitivities that are known here, not from the plan."""
        spent, discrete = [], sums.lattice_gaussian
        laws = laws_drawn(monkeypatch, SphericalGaussian)

        def counts(value, deviation, source):
            spent.append(("integers", np.size(value), deviation))
            return discrete(value, deviation, source)

        monkeypatch.setattr(sums, "lattice_gaussian", counts)
        monkeypatch.setattr(sums, "lattice_laplace", pytest.fail)
        one = fitted(kind, method=method, inference_share=inference_share)
        spent += [("vector", law.dimension, law.scale) for law in laws]
        guarantee = one.guarantee_
        stated = guarantee.public_inputs
        names = [name for name in stated if name.startswith("mu_")]
        assert names
        # The plan's own prices: what the parts may cost.
        costs = {name: stated[name] for name in names}
        if kind == CLASSES:
            costs["fit"] = self.of_descent(one, spent)
        rho = sum(mu**2 for mu in costs.values()) / 2.0
        assert guarantee.rho == pytest.approx(rho, rel=1e-3)
        assert epsilon_at(guarantee.rho, DELTA) <= guarantee.epsilon == 1.0
        assert guarantee.delta == DELTA
        # A life table, a table of risks: a record moves two counts, by one each.
        tables = [s for s in spent if s[0] == "integers" and s[1] > 6]
        for _, _, deviation in tables:
            assert math.sqrt(2.0) / deviation <= max(costs.values())
        assert sum(s[0] == "integers" for s in spent) >= 1

    @staticmethod
    def of_descent(one, spent):
        """Return the mu of the vectors of the model's own length: gradients, or the minimiser."""
        stated = one.guarantee_.public_inputs
        width = D + 1
        scales = [scale for what, size, scale in spent if what == "vector" and size == width]
        reach = math.hypot(1.0, 0.1)
        sensitivity = 2.0 * stated["max_residual"] * reach
        if len(scales) == 1:
            sensitivity /= stated["kappa"][0]
        return math.sqrt(sum((sensitivity / scale) ** 2 for scale in scales))


@pytest.mark.parametrize("kind", [SURVIVAL, CLASSES])
class TestChoice:
    def test_few_columns_have_no_use_for_it(self, kind):
        one = fitted(kind, records(kind, d=2))
        assert one.guarantee_.delta == 0.0
        assert one.guarantee_.rho is None
        without = fitted(kind, records(kind, d=2), delta=0.0)
        assert one.guarantee_.public_inputs == without.guarantee_.public_inputs

    def test_many_have(self, kind):
        one = fitted(kind)
        assert one.guarantee_.delta == DELTA
        assert "noisy gradient descent" in one.guarantee_.mechanism

    def test_it_may_be_forced_or_forbidden(self, kind):
        assert fitted(kind, records(kind, d=2), method="noisy_gd").guarantee_.delta == DELTA
        assert fitted(kind, method="obj_pert").guarantee_.delta == 0.0

    @pytest.mark.parametrize("d", [5, 40, 100])
    @pytest.mark.parametrize("epsilon", [0.3, 3.0])
    def test_the_noise_is_never_more_than_without(self, kind, d, epsilon):
        data = records(kind, 300, d)
        plans = []
        for delta in (0.0, DELTA):
            one = model(kind, delta=delta, epsilon=epsilon)
            leaves = one._planned(*data)[1].leaves
            (fit,) = (leaf.fit for leaf in leaves if isinstance(leaf, Minimisers))
            plans.append(fit.noise if kind == SURVIVAL else fit.noise((1.0,)))
        assert plans[1] <= plans[0]

    def test_more_accurate(self, kind):
        """By so much that ten seeded fits show it."""
        data = records(kind)
        found = []
        for delta in (0.0, DELTA):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyLeakWarning)
                fits = [fitted(kind, data, delta=delta, random_state=i) for i in range(10)]
            found.append(np.mean([one.score(*data) for one in fits]))
        assert found[1] > found[0] + 0.02


class TestRules:
    @pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, math.nan, True, "small"])
    @pytest.mark.parametrize("kind", [SURVIVAL, CLASSES])
    def test_of_delta(self, kind, delta):
        with pytest.raises((ValueError, TypeError), match="delta"):
            fitted(kind, delta=delta)

    @pytest.mark.parametrize("kind", [SURVIVAL, CLASSES])
    def test_noisy_descent_needs_one(self, kind):
        with pytest.raises(ValueError, match="delta must be positive with method='noisy_gd'"):
            fitted(kind, delta=0.0, method="noisy_gd")

    @pytest.mark.parametrize("parameters", [{"method": "psgld"}, {"link": "probit"}])
    def test_other_ways_know_none(self, parameters):
        if "link" in parameters:
            few = records(SURVIVAL, 300)
            assert fitted(SURVIVAL, few, **parameters).guarantee_.delta == DELTA
            return
        with pytest.raises(ValueError, match="delta must be 0 with"):
            fitted(SURVIVAL, **parameters)

    @pytest.mark.parametrize("kind", [SURVIVAL, CLASSES])
    def test_a_large_one_is_asked_about(self, kind):
        with pytest.warns(PublicInputWarning, match=r"delta=1e-05 is above 1/n\^2 = 2.5e-07"):
            fitted(kind, delta=1e-5)

    @pytest.mark.parametrize("kind", [SURVIVAL, CLASSES])
    def test_budgets_count_it(self, kind):
        accountant = PrivacyAccountant(epsilon=3.0, delta=1.5 * DELTA)
        one = fitted(kind, accountant=accountant)
        assert (accountant.spent(), accountant.spent_delta()) == (1.0, DELTA)
        with pytest.raises(BudgetExceededError, match="it asks for delta=1e-07"):
            one.fit(*records(kind))
        # What does not use it is not charged it.
        one.set_params(method="obj_pert").fit(*records(kind))
        assert (accountant.spent(), accountant.spent_delta()) == (2.0, DELTA)

    def test_an_accountant_without_limits_takes_any(self):
        accountant = PrivacyAccountant()
        fitted(CLASSES, accountant=accountant)
        assert accountant.spent_delta() == DELTA

    @pytest.mark.parametrize("kind", [SURVIVAL, CLASSES])
    def test_releases_keep_it(self, kind):
        one = fitted(kind)
        release = type(one.release_).from_json(one.release_.to_json())
        built = type(one).from_release(release)
        assert release.guarantee == one.guarantee_
        assert (built.delta, release.guarantee.rho) == (DELTA, one.guarantee_.rho)
        np.testing.assert_array_equal(built.coef_, one.coef_)

    def test_a_ridge_of_nothing_is_as_small_as_can_be(self):
        assert fitted(CLASSES, alpha=0.0).guarantee_.delta == 0.0
        one = fitted(CLASSES, alpha=0.0, method="noisy_gd")
        assert "noisy gradient descent" in one.guarantee_.mechanism
        assert np.isfinite(one.coef_).all()

    @pytest.mark.parametrize("cosine", [0.4, 0.9, 0.98])
    def test_rows_in_one_direction_do_not_make_points_swing(self, cosine):
        """The curvature of n records is then nearly that of n equal ones."""
        rng = np.random.default_rng(0)
        n, d = 20_000, 50
        X = cosine / math.sqrt(d) + math.sqrt((1 - cosine**2) / d) * rng.standard_normal((n, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = (rng.random(n) < 0.7).astype(int)
        one = fitted(
            CLASSES, (X, y), epsilon=3.0, delta=1e-9, recalibration_share=0.0, method="noisy_gd"
        )
        assert one.predict_proba(X)[:, 1].mean() == pytest.approx(0.7, abs=0.05)

    def test_several_classes_share_it(self):
        data = records(CLASSES, n_classes=3)
        one = fitted(CLASSES, data, classes=[0, 1, 2])
        assert one.coef_.shape == (3, D)
        two = fitted(CLASSES)
        for name in ("rho", "epsilon", "delta"):
            assert getattr(one.guarantee_, name) == pytest.approx(
                getattr(two.guarantee_, name), rel=1e-6
            )
        # Three descents together cost what one does.
        costs = []
        for n_outputs, each in ((3, one), (1, two)):
            stated = each.guarantee_.public_inputs
            apart = 2.0 * stated["max_residual"] * math.hypot(1.0, 0.1) / stated["noise_scale"][0]
            costs.append(n_outputs * stated["n_steps"][0] * apart**2)
        assert costs[0] == pytest.approx(costs[1], rel=1e-6)


def in_blocks_of(kind, X, y, whose):
    """Return the arguments of fit as chunks, or as a collection of Dask."""
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    names = list(frame.columns)
    frame = frame.assign(y=y, who=whose)
    if kind == "chunks":
        table = FrameChunks([frame[:700], frame[700:]])
    else:
        table = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)
    return table[names], table["y"], {"person": table["who"]}


@pytest.mark.parametrize("how", ["plain", "person", "chunks", "dask", "search"])
class TestRoomBeforeTheShape:
    """People are counted, and blocks read, after the ledger was asked a first time."""

    def fit(self, how, accountant, d=D, **parameters):
        X, y = records(CLASSES, d=d)
        options = {}
        estimator = model(CLASSES, epsilon=1.0, accountant=accountant, **parameters)
        if how == "person":
            options = {"person": np.arange(N)}
        elif how == "search":
            estimator = PrivateSearchCV(
                model(CLASSES, delta=0.0, **parameters),
                {"alpha": [0.1, 1.0]},
                epsilon=1.0,
                delta=DELTA,
                strategy="split",
                refit=None,
                accountant=accountant,
            )
            options = {"person": np.arange(N)}
        elif how != "plain":
            X, y, options = in_blocks_of(how, X, y, np.arange(N))
        return estimator.fit(X, y, **options).guarantee_

    def test_divergences_have_room_where_pure_ones_have_none(self, how):
        """After fits that leave less than a fit of this epsilon and no delta would cost."""
        accountant = PrivacyAccountant(2.0, DELTA, composition="renyi")
        while accountant.remaining(DELTA) > 1.5:
            accountant.charge(
                PrivacyGuarantee(0.5, DELTA, rho=rho_for(0.5, DELTA), mechanism="before")
            )
        assert accountant.remaining() < 1.0
        guarantee = self.fit(how, accountant, method="auto" if how == "search" else "noisy_gd")
        assert guarantee.delta == DELTA
        assert accountant.spent() <= 2.0

    def test_a_budget_without_a_delta_takes_fits_that_use_none(self, how):
        accountant = PrivacyAccountant(1.0)
        if how == "search":
            pytest.skip("a search decides before the shape")
        assert self.fit(how, accountant, d=3).delta == 0.0
        assert accountant.remaining() == 0.0
        with pytest.raises(BudgetExceededError):
            self.fit(how, PrivacyAccountant(1.0), method="noisy_gd")

    @pytest.mark.parametrize(
        "terms", [{"epsilon": 0.5}, {"epsilon": 0.5, "delta": DELTA, "composition": "renyi"}]
    )
    def test_a_budget_that_has_no_room_for_either(self, monkeypatch, how, terms):
        for name in ("one_record_each", "one_record_each_of"):
            monkeypatch.setattr(f"skdpsurv.base.{name}", lambda *args: pytest.fail("looked"))
        with pytest.raises(BudgetExceededError):
            self.fit(how, PrivacyAccountant(**terms))


@pytest.mark.parametrize(
    ("terms", "charged"),
    [
        ({"epsilon": 3.0}, (1.0, 0.0)),
        ({"epsilon": 3.0, "delta": 1e-6}, (1.0, DELTA)),
        ({"epsilon": 3.0, "delta": 1e-6, "composition": "renyi"}, (1.0, 0.0)),
    ],
)
def test_a_refusal_is_charged_at_what_the_ledger_has_room_for(terms, charged):
    accountant = PrivacyAccountant(**terms, charge_refusals=True)
    X, y = records(CLASSES)
    with pytest.raises(ValueError, match="person must"):
        model(CLASSES, epsilon=1.0, accountant=accountant).fit(X, y, person=[None] * N)
    [entry] = accountant.entries().to_dict("records")
    assert (entry["epsilon"], entry["delta"], entry["mechanism"]) == (*charged, "none: refused")


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-40), (1.0, 5e-324), (50.0, 1e-12)])
def test_a_delta_below_what_the_program_is_off_by_is_refused(epsilon, delta):
    X, y = records(CLASSES, n=200, d=2)
    ledger = PrivacyAccountant(epsilon, delta=0.1)
    model = DPLogisticRegression(
        epsilon, delta=delta, classes=[0, 1], method="noisy_gd", data_norm=1.0, accountant=ledger
    )
    search = PrivateSearchCV(
        DPLogisticRegression(classes=[0, 1], data_norm=1.0, method="noisy_gd"),
        {"alpha": [0.01, 0.1]},
        epsilon=epsilon,
        delta=delta,
        accountant=ledger,
    )
    for one in (model, search):
        with pytest.raises(ValueError, match="delta must be 0 or at least"):
            one.fit(X, y)
    assert ledger.spent() == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 50.0, 53.0])
def test_the_least_delta_is_that_of_the_page(epsilon):
    least = 1e-23 * (1.0 + math.exp(epsilon))
    if least < 1.0:
        require_delta(epsilon, 1.0001 * least)
    for delta in (0.9999 * least, 1.0 - 2.0**-53):
        if delta < least:
            with pytest.raises(ValueError, match="delta must be 0"):
                require_delta(epsilon, delta)
