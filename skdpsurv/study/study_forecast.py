r"""Forecasts of the results of a study's analyses, by simulation from public numbers.

Each analysis is simulated at half of its epsilon, at all of it and at twice of it. Its errors,
relative to those without privacy, are taken to follow

.. math:: r_i(\epsilon) = 1 + a_i (\epsilon_i / \epsilon)^{p_i}.

How sure a figure is follows from the studies that it summarises: an interval by Student's t for a
mean, and by order statistics for a median.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.dp.references import phrase
from skdpsurv.dp.types import FloatArray
from skdpsurv.evaluation.forecast import RECORDS
from skdpsurv.evaluation.forecast_records import check_shares, label_counts
from skdpsurv.evaluation.forecast_result import by_study, summarised
from skdpsurv.evaluation.forecast_studies import ERROR_OF, MEDIAN, Guess, simulated
from skdpsurv.inference.effects import term_changes
from skdpsurv.inference.uncertainty import half_width
from skdpsurv.study.analysis_kinds import events_of
from skdpsurv.study.parts import PlannedAnalysis
from skdpsurv.study.protocol import Protocol
from skdpsurv.survival import DPKaplanMeierFitter

#: Largest number of simulated people: beyond, errors depend on n times epsilon alone. Fewer are
#: in an evaluation; of a table there is a formula.
MOST, OTHERS = 1_000_000, {("model",): 100_000, ("rows",): 2**53}
#: Multiples of the epsilon of a part at which it is simulated.
MULTIPLES = (0.5, 1.0, 2.0)
#: Smallest excess of an error over that without privacy: less is chance.
LEAST_EXCESS = 0.01
#: Measures in words, the decisive one first, and up to which each error is no matter for advice;
#: None for those that are no errors.
MEASURES: dict[str, tuple[str, float | None]] = {
    "share_width": ("width of a 95 % interval of a share in a group", 0.1),
    "c_index_width": ("width of the 95 % interval of the C-index", 0.1),
    "width_horizon": ("width of a 95 % interval at the end of follow-up", 0.1),
    "largest_error": ("largest error of a curve", 0.03),
    MEDIAN: ("relative width of intervals of coefficients", 0.0),
    "risk_error": ("mean error of a predicted risk", 0.03),
    "coefficient_error": ("error of coefficients, in standard errors without privacy", 0.0),
    "c_index": ("C-index", None),
    "auc": ("AUC", None),
    "finite_intervals": ("share of coefficients with an interval", None),
}
#: Beginning of the words about a term: its 95 % interval reaches so far to either side.
FACTOR = "factor of the interval of "


class Expected(NamedTuple):
    """Expected value of one measure of an analysis: without privacy, and in this study.

    The smaller the better, if it ``is_error``, and up to ``small`` it is no matter for advice;
    ``power`` is that of 1 / epsilon by which privacy adds to it.
    """

    what: str
    without: float
    private: float
    is_error: bool = True
    small: float = 0.0
    power: float = math.nan
    #: Expected value at half of the epsilon, and at twice the epsilon.
    half: float = math.nan
    twice: float = math.nan
    #: Interval for the mean, or median, of all studies like those that were simulated.
    low: float = math.nan
    high: float = math.nan

    @property
    def is_hidden(self) -> bool:
        """Whether noise hides it: it is infinite, and stands in no table."""
        return math.isinf(self.private)

    @property
    def ratio(self) -> float:
        """The error relative to the one without privacy."""
        return self.private / self.without if self.without > 0.0 else math.nan


@dataclass(frozen=True)
class Scenario(Guess):
    """Assumptions about the people of a study, and the number of simulated studies.

    Parameters
    ----------
    event_rate, censoring, baseline, concordance, n_repeats
        As for :func:`~skdpsurv.forecast_accuracy`. Of a classifier, half of the labels are
        positive.
    entry : "uniform" or list of float, default=None
        When people enter, if the protocol has late entries, as for
        :func:`~skdpsurv.forecast_accuracy`. None: evenly until the horizon.
    random_state : int or None, default=0
        Seed of the simulation, which uses no record.
    shares : mapping of str to list of float
        How people divide into groups, such as the unequal arms of a trial, by column and in the
        order of its labels; and how events divide into the labels of
        ``event_is``, by the column of events. Elsewhere they are equal.
    """

    @property
    def words(self) -> str:
        """The assumptions, and the precision of the simulation, in sentences."""
        ratios = {name: " : ".join(map("{:g}".format, n)) for name, n in self.shares.items()}
        divided = "".join(f" {name} divides as {ratio}." for name, ratio in ratios.items())
        sure = phrase("sure") if self.n_repeats > 1 else phrase("not_sure")
        return phrase("guessed", **vars(self)) + f"{divided} {sure}"

    def check(self, protocol: Protocol) -> None:
        """Refuse shares of a column that has no labels, or another number of them."""
        labels = label_counts(protocol.kinds) | {protocol.event: len(protocol.event_is)}
        check_shares(self.shares, labels)

    def _of_event(self, part: PlannedAnalysis, protocol: Protocol) -> Scenario:
        """Return the scenario in which the events of one analysis are the only events."""
        of = part.analysis if part.analysis.of is None else protocol.analysis(part.analysis.of)
        labels, own = protocol.event_is, events_of(of.options, protocol)
        weights = self.shares.get(str(protocol.event), (1.0,) * len(labels))
        counted = [w for label, w in zip(labels, weights, strict=True) if label in own]
        if len(counted) == len(labels):
            return self
        rate = self.event_rate * sum(counted) / sum(weights)
        lost = (1.0 - self.event_rate) * self.censoring + self.event_rate - rate
        return replace(self, event_rate=rate, censoring=lost / (1.0 - rate))

    def _groups(self, part: PlannedAnalysis, n_groups: int) -> list[tuple[str, int]]:
        """Return the smallest and the largest group: words about it, and its number of people."""
        whole, shares = part.n_people, self.shares.get(str(part.analysis.by))
        if shares is None:
            return [("", max(whole // max(n_groups, 1), 1))]
        ends = {"smallest": min(shares), "largest": max(shares)}
        sizes = {word: int(whole * share / sum(shares)) for word, share in ends.items()}
        return [(f", in the {word} group", max(n, 1)) for word, n in sizes.items()]

    def expected(self, part: PlannedAnalysis, protocol: Protocol) -> list[Expected]:
        """Forecast an analysis: its decisive error first; nothing if that is unknown.

        Raises
        ------
        ValueError
            If no such people can be.
        """
        with part.analysis.named():
            return self._expected(part, protocol)

    def _expected(self, part: PlannedAnalysis, protocol: Protocol) -> list[Expected]:
        estimator, takes = part.estimator, part.estimator._card.takes
        if takes == ("rows", "causes"):
            return []  # the simulated people have one kind of event
        late = (self.entry or "uniform") if part.shape.has_entry else None
        if late and not {"rows", "model"} & set(part.estimator._card.takes):
            return []  # a curve from 0, when hardly anybody has entered, says nothing of others
        guess = replace(self._of_event(part, protocol), entry=late)
        n_groups = 1
        if takes == ("rows",):
            guess, n_groups = replace(guess, n_repeats=1), len(estimator._groups())
        elif "classes" in takes:
            guess = replace(self, event_rate=0.5)
            if len(estimator.classes) != 2:
                return []
        elif "group" in takes:
            n_groups = len(estimator.groups or [None])
            # Each group has all of epsilon for itself. Of competing events, the curve that is free
            # of all: each cause has as much noise.
            names = ("max_time", "n_intervals", "breakpoints")
            own = {name: getattr(estimator, name) for name in names}
            estimator = DPKaplanMeierFitter(estimator.epsilon, **own)
        table = None
        if (scales := part.scales) is not None:
            spend = Spend(scales.guarantee.epsilon, scales.guarantee.delta)
            table = protocol.analysis(scales.analysis).estimator(protocol, spend)
        each = self._groups(part, n_groups)
        return [one for group in each for one in guess._rows(part, estimator, table, *group)]

    def _rows(
        self, part: PlannedAnalysis, estimator: Any, table: Any, words: str, n_people: int
    ) -> Iterator[Expected]:
        """Yield the measures of an estimator: at some multiples of the epsilon of the part."""
        n = min(n_people, OTHERS.get(estimator._card.takes, MOST))
        epsilons = [multiple * part.spend.epsilon * (n_people / n) for multiple in MULTIPLES]
        columns = getattr(estimator, "columns", None)
        own = () if columns is None else columns._names()
        shares = {name: one for name, one in self.shares.items() if name in own}
        if estimator._card.measure:
            RECORDS("n_records", n)
        # The table's epsilon is that of the plan, at each multiple of the regression's.
        runs = simulated(estimator, n, epsilons, self, shares, table=table)
        measures = [name for name in MEASURES if name in runs[0][math.inf]]
        summary, studies = summarised(runs, measures[-1]), by_study(runs)
        for name in measures:
            what, small = MEASURES[name]
            about = {"is_error": small is not None, "small": small or 0.0}
            row = _row(summary[name], studies[name], name == MEDIAN, what + words, **about)
            if name != MEDIAN or math.isfinite(row.private):
                yield row
        yield from _terms(studies, columns)


def _terms(studies: Any, columns: Any) -> Iterator[Expected]:
    """Yield how far intervals of terms reach: the median of studies, infinite where noise hides."""
    errors = studies.groupby("epsilon").median().filter(regex=f"^{ERROR_OF}")
    for name in errors:
        term = name.removeprefix(ERROR_OF)
        with np.errstate(over="ignore"):
            factors = np.exp(half_width(0.95) * errors[name].to_numpy())
        half, private, twice, without = map(float, factors)
        what = f"{FACTOR}{term} ({term_changes(columns)[term][0]})"
        yield Expected(what, without, private, is_error=False, half=half, twice=twice)


def _row(table: Any, studies: Any, is_median: bool, what: str, **about: Any) -> Expected:
    """Return a number by its measure, and how sure it is, given each simulated study."""
    half, private, twice, without = map(float, table)
    own = studies.unstack("epsilon").iloc[:, MULTIPLES.index(1.0)]
    low, high = _interval(own.to_numpy(), is_median=is_median)
    privately = zip(MULTIPLES, (half, private, twice), strict=True)
    excess = [(m, max(one / without - 1.0, LEAST_EXCESS)) for m, one in privately if without]
    known = [each for each in excess if math.isfinite(each[1])]
    if len(known) > 1:
        (first, larger), (last, smaller) = known[0], known[-1]
        about["power"] = math.log(larger / smaller) / math.log(last / first)
    return Expected(what, without, private, half=half, twice=twice, low=low, high=high, **about)


def _interval(values: FloatArray, is_median: bool) -> tuple[float, float]:
    """Return an interval of about 95 % for a mean, or a median, of such values; NaN of one."""
    known = np.sort(values[~np.isnan(values)])
    n = known.size
    if n < 2:
        return math.nan, math.nan
    if is_median:  # widths may be infinite
        k = max(int(np.sum(special.bdtr(np.arange(n), n, 0.5) <= 0.025)), 1)
        return float(known[k - 1]), float(known[n - k])
    mean, half = known.mean(), special.stdtrit(n - 1, 0.975) * known.std(ddof=1) / math.sqrt(n)
    # All but errors of coefficients are about probabilities.
    most = 1.0 if known[-1] <= 1.0 else math.inf
    return max(float(mean - half), 0.0), min(float(mean + half), most)
