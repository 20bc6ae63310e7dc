"""Plans of Weibull fits, and what stands in for their noise."""

import math

import numpy as np

from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.likelihoods.weibull import SHAPE_RANGE
from skdpsurv.mechanisms import sums
from skdpsurv.published import weibull_fitters as published_plans
from skdpsurv.survival.weibull import weibull_plan as weibull_plan
from skdpsurv.survival.weibull.log_time_counts import N_CELLS, count_table
from skdpsurv.survival.weibull.plausible import WeibullEstimate
from skdpsurv.survival.weibull.weibull_plan import WeibullSetting

MAX_TIME, OMEGA, MAX_SHAPE = 5.0, 6.0, 10.0


WAYS = {
    "tight": weibull_plan.TIGHT,
    "exact": published_plans.EXACT,
    "published": published_plans.PUBLISHED,
    "Laplace": published_plans.LAPLACE,
    "blocks": published_plans.SAMPLE_AGGREGATE,
    "no privacy": weibull_plan.MAXIMUM_LIKELIHOOD,
}


def table_of(time, event, max_time, omega):
    return count_table(InMemory([Histories(time, event)]), max_time, omega)


def estimate_of(public, records, source):
    """Return what the plan releases of records as they are read, or of their counts."""
    known = public.way.plan(public).run(records, source)
    return WeibullEstimate(known["shape"], known["log_scale"], known.get("n_events"))


def estimate(public, time, event, source):
    records = public.way.read(InMemory([Histories(time, event)]), public.max_time, public.omega)
    return estimate_of(public, records, source)


def make_fit(
    kind, n, epsilon, shape_fraction=None, n_levels=None, omega=OMEGA, max_shape=MAX_SHAPE
):
    way = WAYS[kind]._replace(n_levels=n_levels)
    return WeibullSetting(way, n, epsilon, MAX_TIME, omega, max_shape, shape_fraction)


def simulate(n, shape=1.4, scale=2.0, censoring=4.0, seed=0):
    rng = np.random.default_rng(seed)
    life, end = scale * rng.weibull(shape, n), rng.exponential(censoring, n)
    return np.minimum(life, end), life <= end


class Ledger:
    """Stands in for the noise: keeps what it is asked for, and returns what it is told to.

    With answers that do not depend on the records, what follows an answer is seen as sequential
    composition sees it: given the same answers before.
    """

    def __init__(self, monkeypatch, answers=(), shape=1.5):
        self.answers, self.shape = answers, shape
        self.values, self.scales, self.ladders = [], [], []
        monkeypatch.setattr(sums, "lattice_laplace", self.lattice_laplace)
        monkeypatch.setattr(weibull_plan, "draw_cell", self.draw_cell)

    def lattice_laplace(self, value, scale, source):
        self.values.append(value)
        self.scales.append(scale)
        return self.answers[len(self.values) - 1] if self.answers else value

    def draw_cell(self, levels, epsilon, source, n_levels=None):
        self.ladders.append((levels, epsilon, n_levels))
        if levels.n_cells != N_CELLS:
            return int(levels.n_cells * self.shape / MAX_SHAPE)
        return round(N_CELLS * (1.0 - math.log(self.shape / MAX_SHAPE) / math.log(SHAPE_RANGE)))

    def forget(self):
        self.values, self.scales, self.ladders = [], [], []
