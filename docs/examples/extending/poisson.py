"""A private Poisson regression: counts, given columns."""

from dataclasses import dataclass

import numpy as np

from skdpsurv.base.linear_estimator import PrivateLinearModel
from skdpsurv.dp.checks import integer, positive


@dataclass(frozen=True)
class CappedPoisson:
    """exp(eta) - y eta for counts y up to a largest one, linear where it is steeper than a cap."""

    largest_slope: float
    largest_count: int
    asserted = True  # of its slopes and curvatures, which no registered theorem is about

    @property
    def largest_curvature(self):
        return self.largest_slope + self.largest_count

    loss_at_zero = property(lambda self: 1 + self.largest_slope * np.log1p(self.largest_count))
    slope_rounding = property(lambda self: 24 + 20 * self.largest_count / self.largest_slope)

    def _within(self, eta, y):
        c = self.largest_slope
        return np.clip(eta, np.log(np.maximum(y - c, 1e-300)), np.log(y + c))

    def value(self, eta, y):
        near = self._within(eta, y)
        return np.exp(near) - y * near + self.derivatives(eta, y, 1)[0] * (eta - near)

    def derivatives(self, eta, y, order):
        near = self._within(eta, y)
        mean, c = np.exp(near), self.largest_slope
        return np.clip(mean - y, -c, c), np.where(near == eta, mean, 0.0) if order > 1 else None


class DPPoissonRegressor(PrivateLinearModel):
    """Poisson regression of counts from 0 to ``largest_count``; steeper residuals are capped."""

    _rules = {"largest_count": integer(), "max_residual": positive()}

    def __init__(self, epsilon=1.0, *, columns=None, largest_count=10, max_residual=3.0, alpha=0.0,
            data_norm=None, method="obj_pert", random_state=None, accountant=None):  # fmt: skip
        self.epsilon, self.columns, self.largest_count = epsilon, columns, largest_count
        self.max_residual, self.data_norm, self.alpha = max_residual, data_norm, alpha
        self.method, self.random_state, self.accountant = method, random_state, accountant

    def _loss(self):
        return CappedPoisson(float(self.max_residual), int(self.largest_count))

    def _outcome_range(self):
        return 0.0, float(self.largest_count)

    def _outcomes(self, y):
        return np.rint(y)

    def _mean(self, predictor):
        return np.exp(np.minimum(predictor, np.log(self.largest_count)))
