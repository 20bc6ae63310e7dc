"""A private curve: exponential survival times."""

from dataclasses import dataclass

import pandas as pd

from skdpsurv.checks import horizon, positive, positive_number
from skdpsurv.mechanisms.sums import COUNT, Sum
from skdpsurv.privacy import clip_times
from skdpsurv.release import released_array
from skdpsurv.survival.univariate import UnivariateFitter

#: Follow-up of one person, in horizons.
FOLLOW_UP = Sum.of_reals(0.0, 1.0, -30)


@dataclass(frozen=True)
class NoisySums:
    """Number of events and total time in horizons, each for half of epsilon."""

    n_records: int
    max_time: float
    epsilon: float

    mechanism = "Laplace noise on the number of events and on the total time"
    proof = "docs/proofs/noise"
    assumptions = ("max_time was not read off these records",)

    def spans(self):
        return [self.epsilon]

    def public_inputs(self):
        return {"n_records": self.n_records, "max_time": self.max_time}

    def run(self, records, source):
        def sums(block):
            time, event = clip_times(block[1], block[0], self.max_time)
            return int(event.sum()), FOLLOW_UP.total(time / self.max_time)

        n_events, total = records.map_sum(sums)
        n_events = max(COUNT.release(n_events, self.epsilon / 2.0, source), 1)
        total = max(FOLLOW_UP.release(total, self.epsilon / 2.0, source), 1)
        return {"lambda": self.max_time * FOLLOW_UP.value(total) / n_events}


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
        return NoisySums(shape.n_records, float(self.max_time), float(self.epsilon))

    def _stated(self, shape):
        return {"max_time": float(self.max_time)}

    def _set_parameters(self, release):
        self.lambda_ = positive_number("lambda", float(released_array(release, "lambda", ())))

    def _estimates(self):
        return pd.Series({"lambda_": self.lambda_})

    def _cumulative_hazard(self, times, parameters):
        return times / parameters
