"""The five examples of docs/extending: each is one file, and all that is promised holds for it."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    PrivacyAccountant,
    Release,
)
from skdpsurv.audit import audit_epsilon, density_ratio_audit, measurement_audit, worst_neighbours
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.likelihoods.loss import PrivacyConstants
from skdpsurv.mechanisms import output_perturbation
from skdpsurv.mechanisms.vector_noise import LEAST_NOISE
from tests.likelihoods.scalar_losses import check_scalar_loss
from tests.support import noise_laws
from tests.support.extensions import FOLDER, extension
from tests.support.transcript import transcript_audit

ROOT = Path(__file__).resolve().parents[1]
CappedPoisson = extension("poisson").CappedPoisson
DPPoissonRegressor = extension("poisson").DPPoissonRegressor
ProductLaplace = extension("product_laplace").ProductLaplace
DPHistogram = extension("histogram").DPHistogram
FileBlocks = extension("file_blocks").FileBlocks


def test_the_page_shows_every_example_and_an_estimator_is_short():
    text = (ROOT / "docs" / "extending.md").read_text()
    shown = set(re.findall(r"examples/extending/(\w+)\.py", text))
    assert shown == {path.stem for path in FOLDER.glob("*.py")}
    for name in ("poisson", "histogram"):
        assert len((FOLDER / f"{name}.py").read_text().splitlines()) <= 61


def test_counts_of_a_histogram_are_integers_within_their_noise():
    """The largest of 1000 deviations of scale 2 / 0.5 is above 100 with probability 1e-8."""
    X = np.random.default_rng(0).uniform(-0.1, 1.2, (5000, 1))
    exact = np.histogram(np.clip(X, 0.0, 1.0), bins=20, range=(0.0, 1.0))[0]
    for _ in range(50):
        found = DPHistogram(0.5, n_bins=20).fit(X).counts_
        assert np.array_equal(found, np.rint(found))
        assert np.abs(found - exact).max() < 100
    found = DPHistogram(np.inf).fit([[-1.0], [0.05], [0.15], [0.95], [7.0]])
    assert found.counts_.tolist() == [2, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    np.testing.assert_allclose(found.bin_edges_, np.linspace(0.0, 1.0, 11))


class TestPoisson:
    @pytest.mark.parametrize("cap", [0.5, 3.0])
    def test_its_loss_keeps_its_promises(self, cap):
        check_scalar_loss(CappedPoisson(cap, 6), range(7), np.linspace(-40.0, 40.0, 80_001))

    def test_without_noise_it_is_poisson_regression(self):
        """With so high a cap, and so small a ridge, as to make no difference."""
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, (4000, 2)) / np.sqrt(2.0)
        y = np.minimum(rng.poisson(np.exp(0.5 + X @ [1.0, -1.0])), 60.0)
        ours = DPPoissonRegressor(np.inf, largest_count=60, max_residual=59.0).fit(X, y)
        theirs = PoissonRegressor(alpha=0.0, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-3)
        near = DPPoissonRegressor(3.0, max_residual=4.0, random_state=0).fit(X, y)
        assert near.score(X, y) > 0.6 * ours.score(X, y)

    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["obj_pert", "out_pert"])
    def test_exact_ratios_are_below_epsilon_and_not_far(self, method):
        model = DPPoissonRegressor(1.0, method=method, alpha=20.0)
        results = [
            density_ratio_audit(model, pair.data, pair.neighbour)
            for pair in worst_neighbours(model, n=2)
        ]
        assert all(result.passed for result in results)
        assert max(result.largest for result in results) > 0.5

    @pytest.mark.parametrize("kind", [list, np.array], ids=["list", "array"])
    def test_refusals_quote_no_outcome_and_cost_nothing(self, kind):
        class Logs(DPPoissonRegressor):
            def _outcomes(self, y):
                return np.log(y - 1.0)

        accountant = PrivacyAccountant(1.0)
        masked = np.ma.array(np.ones(10), mask=np.arange(10) == 9)
        wrong = ("secret-name", b"secret", None, np.nan, np.inf, 1 + 2j)
        outcomes = [(DPPoissonRegressor, kind([1.0] * 9 + [one])) for one in wrong]
        # The last are outside of the domain of the loss.
        for model, y in (*outcomes, (DPPoissonRegressor, masked), (Logs, kind([1.0] * 10))):
            with pytest.raises((ValueError, TypeError)) as caught:
                model(accountant=accountant).fit(np.zeros((10, 2)), y)
            assert "secret" not in f"{caught.value}{caught.value.__context__}"
            assert caught.value.__cause__ is None
        assert accountant.spent() == 0.0

    def test_releases_hold_plain_numbers_and_all_that_predicts(self):
        X, stated = np.zeros((10, 2)), {"data_norm": np.float16(1), "largest_count": np.int8(9)}
        model = DPPoissonRegressor(np.float32(1.0), **stated).fit(X, np.ones(10))
        back = DPPoissonRegressor.from_release(Release.from_json(model.release_.to_json()))
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        for name in stated:
            fewer = {n: v for n, v in model.release_.parameters.items() if n != name}
            with pytest.raises(ValueError, match=name):
                DPPoissonRegressor.from_release(replace(model.release_, parameters=fewer))

    @pytest.mark.slow
    def test_an_attack_finds_no_more_than_epsilon(self):
        model = DPPoissonRegressor(1.0, alpha=20.0)
        pair = next(iter(worst_neighbours(model, n=1)))
        assert audit_epsilon(model, pair.data, pair.neighbour, n_trials=2000, random_state=0).passed


@dataclass(frozen=True)
class Heavy:
    """A law whose cost is not a function of distance over scale alone."""

    dimension: int
    scale: float
    tail: float

    @classmethod
    def calibrated_to(cls, dimension, sensitivity, epsilon):
        return cls(dimension, sensitivity / np.expm1(epsilon / 4.0), 2.0 * sensitivity / epsilon)

    def cost(self, sensitivity):
        return 2.0 * np.log1p(sensitivity / self.scale) + sensitivity / self.tail


def test_minima_are_hidden_for_epsilon_whatever_the_law():
    constants = PrivacyConstants(2.0, 1.0, 1)
    for n, alpha in ((200, 0.0), (1000, 0.1), (10, 1e9)):
        calibration = output_perturbation.calibrate(constants, 1.0, n, 3, alpha, distribution=Heavy)
        apart = (2.0 + 2.0 * calibration.certificate.tolerance) / calibration.kappa
        assert calibration.output.cost(apart) <= 1.0
        assert calibration.output.scale >= LEAST_NOISE * (1.0 - 1e-9)


class Squared(DPLogisticRegression):
    """With noise of another law, which is all that it says."""

    _noise_law = ProductLaplace


class TestNoiseLaw:
    @pytest.mark.parametrize("dimension", [1, 3])
    def test_it_hides_what_it_says(self, dimension):
        noise_laws.check(ProductLaplace.calibrated_to(dimension, 2.0, 0.7), 2.0, 0.7)

    @pytest.mark.parametrize("method", ["obj_pert", "out_pert"])
    def test_estimators_draw_it_and_audits_know_it(self, method):
        model = Squared(1.0, classes=[0, 1], method=method, alpha=60.0)
        plan = clone(model).prepare(np.zeros((5, 2)), np.zeros(5)).plan
        (calibration,) = plan.only_measurement.fit.calibrations
        assert isinstance(calibration.linear or calibration.output, ProductLaplace)
        pairs = list(worst_neighbours(model, n=1, n_features=2))[:4]
        for audit, found in (
            (density_ratio_audit, lambda result: result.largest),
            (transcript_audit, lambda result: result.total),
            (measurement_audit, lambda result: result.distances[-1].found),
        ):
            results = [audit(model, pair.data, pair.neighbour) for pair in pairs]
            assert all(result.passed for result in results)
            assert max(map(found, results)) > 0.3

    def test_a_survival_fit_draws_it(self):
        class Survival(DPDiscreteTimeSurvival):
            _noise_law = ProductLaplace

        data = make_discrete_time_survival(500, 2, random_state=0)
        options = {"max_time": 1.0, "n_intervals": 20, "random_state": 0}
        ours = Survival(**options).fit(data.X, data.y)
        theirs = DPDiscreteTimeSurvival(**options).fit(data.X, data.y)
        assert (ours.coef_ != theirs.coef_).all()


@pytest.mark.parametrize(
    "model",
    [
        DPDiscreteTimeSurvival(max_time=1.0, n_intervals=20, random_state=0),
        DPWeibullFitter(max_time=1.0, random_state=0),
        DPPoissonRegressor(random_state=0),
        DPLogisticRegression(classes=[0, 1], random_state=0),
    ],
)
def test_records_in_files(tmp_path, model):
    """The release of a fit to files is that of a fit to arrays, up to rounding."""
    data = make_discrete_time_survival(600, 2, random_state=0)
    X, y = data.X, data.y
    y = y if hasattr(model, "max_time") else y["event"].astype(int)
    paths = [tmp_path / f"{k}.npz" for k in range(4)]
    for path, part in zip(paths, np.array_split(np.arange(600), 4), strict=True):
        np.savez(path, X=X[part], y=y[part])
    found = model.fit(FileBlocks(paths, X.shape), None).release_.values
    for name, value in model.fit(X, y).release_.values.items():
        np.testing.assert_allclose(found[name], value, atol=2e-5)
