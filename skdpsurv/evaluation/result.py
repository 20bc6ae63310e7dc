"""SurvivalEvaluation: released numbers, measures with intervals, and the guarantee."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import starmap
from typing import Any, NamedTuple, Self

import pandas as pd

from skdpsurv.dp.guarantee import PrivacyGuarantee, as_json, immutable
from skdpsurv.dp.stated_noise import checked_plan

#: Overall measures, in words.
MEASURES = {
    "c_index": "C-index",
    "integrated_brier": "integrated Brier score",
    "expected_observed": "expected / observed",
}


class Estimate(NamedTuple):
    """A value with the lower and upper end of its interval."""

    value: float
    lower: float
    upper: float


class RiskGroup(NamedTuple):
    """Records of similar predicted survival; of a cause, "survival" below stands for incidence.

    Parameters
    ----------
    low, high : float
        Range of the predicted probability to survive the horizon.
    share : float
        Estimated share of all records.
    predicted : Estimate
        Mean predicted probability to survive the horizon.
    curve : tuple of Estimate
        Observed (actuarial) probabilities to survive the evaluation's ``times``, from 0.
    since_entry : Estimate or None, default=None
        With late entries, ``predicted`` and this are means, over records at risk, of the
        probability to survive the horizon given that of the entry.
    """

    low: float
    high: float
    share: float
    predicted: Estimate
    curve: tuple[Estimate, ...]
    since_entry: Estimate | None = None

    @classmethod
    def of(
        cls,
        low: float,
        high: float,
        share: float,
        predicted: Any,
        curve: Any,
        since_entry: Any = None,
    ) -> Self:
        """Make a group of plain numbers."""
        ends = float(low), float(high), float(share)
        observed = None if since_entry is None else Estimate(*since_entry)
        return cls(*ends, Estimate(*predicted), tuple(starmap(Estimate, curve)), observed)

    @property
    def observed(self) -> Estimate:
        """Observed (actuarial) probability to survive the horizon, since the entry if late."""
        return self.curve[-1] if self.since_entry is None else self.since_entry


@dataclass(frozen=True, repr=False)
class SurvivalEvaluation:
    """Result of :func:`~skdpsurv.evaluation.private_survival_metrics`.

    It may be published: all follows from noisy numbers.

    Parameters
    ----------
    c_index : Estimate
        Harrell's C of the predicted risk at ``max_time``.
    integrated_brier : Estimate
        Mean Brier score over (0, max_time), weighted for censoring.
    expected_observed : Estimate
        Mean predicted risk at ``max_time``, divided by the observed one.
    groups : tuple of RiskGroup
        Risk groups, from the highest risk to the lowest.
    times : tuple of float
        Ends of the time bands; the last one is ``max_time``.
    uncensored : float
        Estimated share that is not censored before ``max_time``. If it is small, all measures rest
        on few records, and the Brier score is too low, as weights are capped: choose an earlier
        ``max_time``.
    max_time : float
        The horizon.
    level : float
        Nominal coverage of the intervals.
    guarantee : PrivacyGuarantee
    released : mapping of str to object
        Released numbers: edges, noisy counts and sums, as lists.
    cause : label or None, default=None
        The cause of events that all measures are of, with incidences in place of survival in
        ``groups``, ``calibration`` and ``curves``. None: events are of one kind.
    plan : mapping or None, default=None
        The measurements with their noise, as a release states them; None in older files.
    """

    c_index: Estimate
    integrated_brier: Estimate
    expected_observed: Estimate
    groups: tuple[RiskGroup, ...]
    times: tuple[float, ...]
    uncensored: float
    max_time: float
    level: float
    guarantee: PrivacyGuarantee
    released: Mapping[str, object]
    cause: Any = None
    plan: Mapping[str, Any] | None = None

    @property
    def outcome(self) -> str:
        """What is predicted and observed, in words."""
        return "survival" if self.cause is None else f"incidence of {self.cause}"

    @property
    def calibration(self) -> pd.DataFrame:
        """Risk groups, one a row: range, share, predicted and observed, with intervals.

        They are probabilities to survive ``max_time``, or incidences of the ``cause`` by then.
        """
        groups = self.groups
        table = pd.DataFrame([group[:3] for group in groups], columns=["low", "high", "share"])
        for name in ("predicted", "observed"):
            columns = [name, f"{name} lower", f"{name} upper"]
            table[columns] = [getattr(group, name) for group in groups]
        return table.set_index(pd.RangeIndex(1, len(groups) + 1, name="group"))

    @property
    def curves(self) -> pd.DataFrame:
        """Observed survival, or incidence, with its interval, for each risk group and time."""
        cells = [range(1, len(self.groups) + 1), self.times]
        index = pd.MultiIndex.from_product(cells, names=["group", "time"])
        points = [point for group in self.groups for point in group.curve]
        return pd.DataFrame(points, index=index, columns=Estimate._fields)

    @property
    def summary(self) -> pd.DataFrame:
        """Overall measures, one a row: ``value``, ``lower`` and ``upper``."""
        measures = {label: getattr(self, name) for name, label in MEASURES.items()}
        return pd.DataFrame.from_dict(measures, orient="index", columns=list(Estimate._fields))

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of plain JSON values; :meth:`from_dict` reads it.

        Returns
        -------
        dict
        """
        content = {
            **vars(self),
            "groups": [group._asdict() for group in self.groups],
            "guarantee": self.guarantee.to_dict(),
            "released": as_json(self.released),
            "plan": as_json(self.plan),
        }
        for name in ("cause", "plan"):
            if content[name] is None:  # as earlier versions read it
                del content[name]
        plain: dict[str, Any] = json.loads(json.dumps(content))  # lists in place of tuples
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make an evaluation from the dict that :meth:`to_dict` returns, or from its JSON.

        Parameters
        ----------
        data : mapping

        Returns
        -------
        SurvivalEvaluation
        """
        content = {**data, **{name: Estimate(*data[name]) for name in MEASURES}}
        content["guarantee"] = PrivacyGuarantee.from_dict(data["guarantee"])
        content["groups"] = tuple(RiskGroup.of(**group) for group in data["groups"])
        content |= {
            "times": tuple(data["times"]),
            "released": immutable("released", data["released"]),
            "plan": checked_plan(data.get("plan")),
        }
        return cls(**content)

    def __repr__(self) -> str:
        lines = [
            f"SurvivalEvaluation at {self.max_time:g}: {100 * self.level:g} % intervals, "
            f"epsilon = {self.guarantee.epsilon:g}, status {self.guarantee.status}",
            *(f"  {name}: {_interval(row)}" for name, row in self.summary.T.items()),
            f"  still followed at max_time: {self.uncensored:.0%}",
            f"  {self.outcome} by risk group: predicted, observed",
            *(
                f"    {g.share:.0%} of records: {_interval(g.predicted)}, {_interval(g.observed)}"
                for g in self.groups
            ),
        ]
        return "\n".join(lines)


def _interval(estimate: Any) -> str:
    value, lower, upper = estimate
    return f"{value:.3f} [{lower:.3f}, {upper:.3f}]"
