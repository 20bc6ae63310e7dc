"""A private curve: exponential survival times."""

from dataclasses import dataclass

import pandas as pd

from skdpsurv.checks import horizon, positive, positive_number
from skdpsurv.mechanisms.sums import COUNT, PROOF, Sum
from skdpsurv.privacy import clip_times
from skdpsurv.privacy.measurement import NoisySum
from skdpsurv.privacy.plan import Plan, Sequential
from skdpsurv.release import released_array
from skdpsurv.survival.univariate import UnivariateFitter

#: Follow-up of one person, in horizons.
FOLLOW_UP = Sum.of_reals(0.0, 1.0, -30)


@dataclass(frozen=True, kw_only=True)
class Total(NoisySum):
    """The number of events up to the horizon, or the total time in horizons."""

    max_time: float
    name: str
    asked: Sum

    theorem = PROOF
    assumptions = ("max_time was not read off these records",)

    def ask(self, known, records):
        def total(block):
            time, event = clip_times(block[1], block[0], self.max_time)
            return self.asked.total(event if self.name == "events" else time / self.max_time)

        return records.map_sum(total)

    def after(self, known, noisy):
        return {self.name: self.asked.value(max(noisy, 1))}


class DPExponentialFitter(UnivariateFitter):
    r"""Exponential survival times: :math:`S(t) = \exp(-t/\lambda)`, lambda total time by events.

    Half of epsilon for each of the two sums, by the Laplace mechanism; the rest follows from them.
    """

    _rules = {"max_time": horizon(positive())}

    def __init__(self, epsilon=1.0, *, max_time=None, random_state=None, accountant=None):
        self.epsilon = epsilon
        self.max_time = max_time
        self.random_state = random_state
        self.accountant = accountant

    def _plan(self, shape):
        parts = {"price": float(self.epsilon) / 2.0, "max_time": float(self.max_time)}
        events = Total(name="events", asked=COUNT, **parts)
        times = Total(name="times", asked=FOLLOW_UP, **parts)
        inputs = {"n_records": shape.n_records, "max_time": float(self.max_time)}
        return Plan(Sequential((events, times)), float(self.epsilon), inputs=inputs)

    def _stated(self, shape):
        return {"max_time": float(self.max_time)}

    def _set_parameters(self, release):
        times, events = (float(released_array(release, name, ())) for name in ("times", "events"))
        self.lambda_ = positive_number("lambda", self.max_time * times / events)

    def _estimates(self):
        return pd.Series({"lambda_": self.lambda_})

    def _cumulative_hazard(self, times, parameters):
        return times / parameters
