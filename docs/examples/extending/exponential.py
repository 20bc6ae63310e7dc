"""A private curve: exponential survival times."""

from dataclasses import dataclass

import numpy as np

from skdpsurv.dp.checks import horizon, positive, positive_number
from skdpsurv.dp.plan import NoisySum, Plan
from skdpsurv.mechanisms.sums import PROOF, Sum, Sums
from skdpsurv.release import released_array
from skdpsurv.survival.released_curve import ReleasedCurve
from skdpsurv.survival.univariate import UnivariateFitter

#: One event, and follow-up of one person to the horizon, in units of the lattice.
FOLLOW_UP = Sum.of_reals(0.0, 1.0, -30)


@dataclass(frozen=True, kw_only=True)
class EventsAndTime(NoisySum):
    """Number of events and total time in horizons."""

    max_time: float
    asserted = True  # no registered theorem is about this class
    name = "Laplace noise on the number of events and on the total time"
    theorem, query = PROOF, Sums(number=2, each=FOLLOW_UP.high)

    def exact_answer(self, known, records):
        def sums(block):
            seen = block.clipped(self.max_time)
            return FOLLOW_UP.total(seen.event), FOLLOW_UP.total(seen.exit / self.max_time)

        return records.map_reduce(sums)

    def postprocess(self, known, noisy):
        n_events, total = noisy
        return {"lambda": self.max_time * max(total, 1) / max(n_events, FOLLOW_UP.high)}


class Exponential(ReleasedCurve):
    """The scale lambda, as a release has it."""

    names = ("lambda_",)

    def __init__(self, release):
        super().__init__(release)
        scale = positive_number("lambda", float(released_array(release, "lambda", ())))
        self.estimates = np.array([scale])

    def cumulative_hazard(self, times, parameters):
        return times / parameters


class DPExponentialFitter(UnivariateFitter):
    r"""Exponential survival times: :math:`S(t) = \exp(-t/\lambda)`, lambda total time by events."""

    _curve_type = Exponential
    _rules = {"max_time": horizon(positive())}

    def __init__(self, epsilon=1.0, *, max_time=None, random_state=None, accountant=None):
        self.epsilon, self.max_time = epsilon, max_time
        self.random_state, self.accountant = random_state, accountant

    def _plan(self, shape):
        return Plan(
            EventsAndTime(price=float(self.epsilon), **self._release_parameters(shape)),
            float(self.epsilon),
            inputs={"n_records": shape.n_records, **self._release_parameters(shape)},
            assumed=("max_time was not read off these records",),
        )

    def _release_parameters(self, shape):
        return {"max_time": float(self.max_time)}
