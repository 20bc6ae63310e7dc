"""A plugin of pytest: scikit-survival's own tests meet our estimators in place of its own.

``CoxPHSurvivalAnalysis``, ``StepFunction`` and the list of all survival estimators are ours. What
tests do not say is ``max_time``: it is the largest time of the records that a test fits.
"""

import numpy as np

from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.survival.step_function import StepFunction


class Ours(DPDiscreteTimeSurvival):
    """With a horizon where a test states none; noise is of the default epsilon, unless seeded."""

    def __init__(self, epsilon=1.0, *, alpha=0.0, max_time=None, random_state=None):
        super().__init__(epsilon, alpha=alpha, max_time=max_time, random_state=random_state)

    def fit(self, X, y, person=None):
        _, time = np.asarray(y).dtype.names
        self.max_time = float(np.max(y[time]))
        return super().fit(X, y, person=person)


def pytest_configure():
    """Replace classes in the process whose plugin this is, and nowhere else."""
    import sksurv.functions
    import sksurv.linear_model
    import sksurv.testing

    sksurv.functions.StepFunction = StepFunction
    sksurv.linear_model.CoxPHSurvivalAnalysis = Ours
    sksurv.testing.all_survival_estimators = lambda: {Ours}
