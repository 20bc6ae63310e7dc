"""Fits with a delta: what they promise is what their noise costs, and never worse than without."""

import math

import numpy as np
import pandas as pd
import pytest

from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, FrameChunks, PrivateSearchCV
from skdpsurv.dp import BudgetExceededError, PrivacyAccountant, PrivacyGuarantee
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
@pytest.mark.parametrize("method", ["noisy_gd", "out_pert"])  # "auto" is the first here
@pytest.mark.parametrize("inference_share", [0.0, 0.2])
class TestPrice:
    def test_all_noise_that_is_drawn_costs_rho(self, monkeypatch, kind, method, inference_share):
        """Counted from draws and sensitivities that are known here, not from the plan."""
        counts, discrete = [], sums.lattice_gaussian
        laws = laws_drawn(monkeypatch, SphericalGaussian)

        def counted(value, deviation, source):
            counts.append((np.size(value), deviation))
            return discrete(value, deviation, source)

        monkeypatch.setattr(sums, "lattice_gaussian", counted)
        monkeypatch.setattr(sums, "lattice_laplace", pytest.fail)
        guarantee = fitted(kind, method=method, inference_share=inference_share).guarantee_
        stated = guarantee.public_inputs
        # The plan's own prices: what the parts may cost.
        costs = {name: mu for name, mu in stated.items() if name.startswith("mu_")}
        assert costs
        if kind == CLASSES:
            # Of the vectors of the model's own length: gradients, or the minimiser.
            scales = [law.scale for law in laws if law.dimension == D + 1]
            sensitivity = 2.0 * stated["max_residual"] * math.hypot(1.0, 0.1)
            if len(scales) == 1:
                sensitivity /= stated["kappa"][0]
            costs["fit"] = math.sqrt(sum((sensitivity / scale) ** 2 for scale in scales))
        rho = sum(mu**2 for mu in costs.values()) / 2.0
        assert guarantee.rho == pytest.approx(rho, rel=1e-3)
        assert epsilon_at(guarantee.rho, DELTA) <= guarantee.epsilon == 1.0
        assert guarantee.delta == DELTA
        assert counts
        # A life table, a table of risks: a record moves two counts, by one each. No table here has
        # more of the price than that of risks.
        for deviation in [deviation for size, deviation in counts if size > 6]:
            assert math.sqrt(2.0) / deviation <= stated["mu_recalibration"] * (1.0 + 1e-9)


@pytest.mark.parametrize("kind", [SURVIVAL, CLASSES])
class TestChoice:
    def test_many_columns_have_use_for_it_and_few_have_none_unless_forced(self, kind):
        few, many = records(kind, d=2), records(kind)
        found, without = (fitted(kind, few, delta=d).guarantee_ for d in (DELTA, 0.0))
        assert (found.delta, found.rho) == (0.0, None)
        assert found.public_inputs == without.public_inputs
        assert fitted(kind, few, method="noisy_gd").guarantee_.delta == DELTA
        used = fitted(kind, many).guarantee_
        assert (used.delta, "noisy gradient descent" in used.mechanism) == (DELTA, True)
        assert fitted(kind, many, method="obj_pert").guarantee_.delta == 0.0

    def test_hazards_weigh_the_noise_of_second_moments_too(self, kind):
        """Seven columns: for half of it a hazard model takes up to half more on its gradient."""

        def used(n=N, **changes):
            guarantee = model(kind, **changes).prepare(*records(kind, n, 7)).guarantee
            assert (guarantee.rho is None) == (guarantee.delta == 0.0)
            return guarantee.delta

        assert used() == used(inference_share=0.3, delta=0.0) == 0.0
        assert used(inference_share=0.3) == (DELTA if kind == SURVIVAL else 0.0)
        # A descent of 1,000 steps ends so early here that it is worth a larger ridge.
        assert used(50_000, inference_share=0.3, epsilon=3.0) == 0.0

    @pytest.mark.parametrize("d", [5, 40, 100])
    @pytest.mark.parametrize("epsilon", [0.3, 3.0])
    def test_the_noise_is_never_more_than_without(self, kind, d, epsilon):
        data = records(kind, 300, d)
        plans = []
        for delta in (0.0, DELTA):
            one = model(kind, delta=delta, epsilon=epsilon)
            leaves = one.prepare(*data).plan.leaves
            (fit,) = (leaf.fit for leaf in leaves if isinstance(leaf, Minimisers))
            plans.append(fit.noise if kind == SURVIVAL else fit.noise((1.0,)))
        assert plans[1] <= plans[0]

    @pytest.mark.slow
    def test_more_accurate(self, kind):
        """By so much that four fits show it, whose seeds leave nothing to chance."""
        data, scores = records(kind), []
        for delta in (0.0, DELTA):
            fits = [fitted(kind, data, delta=delta, random_state=seed) for seed in range(4)]
            scores.append(np.mean([one.score(*data) for one in fits]))
        assert scores[1] > scores[0] + 0.01


class TestRules:
    @pytest.mark.parametrize("kind", [SURVIVAL, CLASSES])
    def test_of_delta(self, kind):
        for delta in (-1e-9, 1.0, 2.0, math.nan, True, "small"):
            with pytest.raises((ValueError, TypeError), match="delta"):
                fitted(kind, delta=delta)
        with pytest.raises(ValueError, match="delta must be positive with method='noisy_gd'"):
            fitted(kind, delta=0.0, method="noisy_gd")
        if kind == SURVIVAL:
            with pytest.raises(ValueError, match="delta must be 0 with"):
                fitted(kind, method="psgld")
            few = records(SURVIVAL, 300)
            assert fitted(SURVIVAL, few, link="probit").guarantee_.delta == DELTA

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
        free = PrivacyAccountant()
        one.set_params(method="auto", accountant=free).fit(*records(kind))
        assert free.spent_delta() == DELTA

    def test_a_ridge_of_nothing_is_as_small_as_can_be(self):
        assert fitted(CLASSES, alpha=0.0).guarantee_.delta == 0.0
        one = fitted(CLASSES, alpha=0.0, method="noisy_gd")
        assert "noisy gradient descent" in one.guarantee_.mechanism
        assert np.isfinite(one.coef_).all()

    @pytest.mark.parametrize("cosine", [0.4, pytest.param(0.98, marks=pytest.mark.slow)])
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
        one = fitted(CLASSES, records(CLASSES, n_classes=3), classes=[0, 1, 2])
        two, costs = fitted(CLASSES), []
        assert one.coef_.shape == (3, D)
        for n_outputs, each in ((3, one), (1, two)):
            stated = each.guarantee_.public_inputs
            apart = 2.0 * stated["max_residual"] * math.hypot(1.0, 0.1) / stated["noise_scale"][0]
            # Three descents together cost what one does.
            descents = n_outputs * stated["n_steps"][0] * apart**2
            promised = (getattr(each.guarantee_, name) for name in ("rho", "epsilon", "delta"))
            costs.append([descents, *promised])
        np.testing.assert_allclose(*costs, rtol=1e-6)


@pytest.mark.parametrize("how", ["plain", "person", "chunks", "dask", "search"])
class TestRoomBeforeTheShape:
    """People are counted, and blocks read, after the ledger was asked a first time."""

    def fit(self, how, accountant, d=D, **parameters):
        X, y = records(CLASSES, d=d)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
        names, table = list(frame), frame.assign(y=y, who=np.arange(N))
        if how == "chunks":
            table = FrameChunks([table[:700], table[700:]])
        elif how == "dask":
            table = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=2)
        person = None if how == "plain" else table["who"]
        estimator = model(CLASSES, epsilon=1.0, accountant=accountant, **parameters)
        if how == "search":
            asked = {"epsilon": 1.0, "delta": DELTA, "accountant": accountant}
            inner = model(CLASSES, delta=0.0, **parameters)
            asked |= {"strategy": "split", "refit": None}
            estimator = PrivateSearchCV(inner, {"alpha": [0.1, 1.0]}, **asked)
        return estimator.fit(table[names], table["y"], person=person).guarantee_

    def test_divergences_have_room_where_pure_ones_have_none(self, how):
        """After fits that leave less than a fit of this epsilon and no delta would cost."""
        accountant = PrivacyAccountant(2.0, DELTA, composition="renyi")
        before = PrivacyGuarantee(0.5, DELTA, rho=rho_for(0.5, DELTA), mechanism="before")
        while accountant.remaining(DELTA) > 1.5:
            accountant.charge(before)
        assert accountant.remaining() < 1.0
        guarantee = self.fit(how, accountant, method="auto" if how == "search" else "noisy_gd")
        assert guarantee.delta == DELTA
        assert accountant.spent() <= 2.0

    def test_a_budget_without_a_delta_takes_fits_that_use_none(self, how):
        accountant = PrivacyAccountant(1.0)
        if how != "search":  # which decides before the shape
            assert self.fit(how, accountant, d=3).delta == 0.0
            assert accountant.remaining() == 0.0
            with pytest.raises(BudgetExceededError):
                self.fit(how, PrivacyAccountant(1.0), method="noisy_gd")

    @pytest.mark.parametrize(
        "terms", [{"epsilon": 0.5}, {"epsilon": 0.5, "delta": DELTA, "composition": "renyi"}]
    )
    def test_a_budget_that_has_no_room_for_either(self, monkeypatch, how, terms):
        for name in ("one_record_each", "one_record_each_of"):
            monkeypatch.setattr(
                f"skdpsurv.base.private_estimator.{name}", lambda *args: pytest.fail("looked")
            )
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
    stated = {"classes": [0, 1], "method": "noisy_gd", "data_norm": 1.0}
    asked = {"epsilon": epsilon, "delta": delta, "accountant": ledger}
    inner = DPLogisticRegression(**stated)
    for one in (
        DPLogisticRegression(**stated, **asked),
        PrivateSearchCV(inner, {"alpha": [0.01, 0.1]}, **asked),
    ):
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
