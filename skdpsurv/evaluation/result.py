"""What an evaluation has found: released numbers, measures with intervals, and the guarantee."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import starmap
from typing import Any, NamedTuple, Self

import pandas as pd

from skdpsurv.dp import PrivacyGuarantee
from skdpsurv.dp.guarantee import frozen, thawed

#: Measures of the whole, in words.
MEASURES = {
    "c_index": "C-index",
    "integrated_brier": "integrated Brier score",
    "expected_observed": "expected / observed",
}


class Estimate(NamedTuple):
    """A number, and the ends of its interval."""

    value: float
    lower: float
    upper: float


class RiskGroup(NamedTuple):
    """Records of similar predicted survival.

    Parameters
    ----------
    low, high : float
        Ends, of the predicted probability to survive the horizon.
    share : float
        Of all records, about.
    predicted : Estimate
        Mean predicted probability to survive the horizon.
    curve : tuple of Estimate
        Actuarial probabilities to survive the evaluation's ``times``.
    """

    low: float
    high: float
    share: float
    predicted: Estimate
    curve: tuple[Estimate, ...]

    @classmethod
    def of(cls, low: float, high: float, share: float, predicted: Any, curve: Any) -> Self:
        """Make a group of plain numbers."""
        ends = float(low), float(high), float(share)
        return cls(*ends, Estimate(*predicted), tuple(starmap(Estimate, curve)))

    @property
    def observed(self) -> Estimate:
        """Actuarial probability to survive the horizon."""
        return self.curve[-1]


@dataclass(frozen=True, repr=False)
class SurvivalEvaluation:
    """How good a survival model is, by :func:`~skdpsurv.evaluation.private_survival_metrics`.

    Everything in it is public once it was released: values, intervals and the noisy numbers that
    they are computed from.

    Parameters
    ----------
    c_index : Estimate
        Harrell's C of the predicted risk at ``max_time``.
    integrated_brier : Estimate
        Mean Brier score over (0, max_time), weighted for censoring.
    expected_observed : Estimate
        Mean predicted risk at ``max_time``, divided by the observed one.
    groups : tuple of RiskGroup
        Calibration, from the highest risk to the lowest.
    times : tuple of float
        Ends of the bands of time; the last one is ``max_time``.
    uncensored : float
        Share that is still followed at ``max_time``, or would be but for an event, by the released
        counts. Where it is small, all measures rest on few records, and the Brier score is too low,
        as weights are capped: choose an earlier ``max_time``.
    max_time : float
        The horizon.
    level : float
        Coverage that intervals were asked for.
    guarantee : PrivacyGuarantee
    released : mapping of str to object
        What was released: edges, noisy counts and sums, as lists.
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

    @property
    def calibration(self) -> pd.DataFrame:
        """A row for each risk group: ends, share, predicted and observed survival, intervals."""
        groups = self.groups
        table = pd.DataFrame([group[:3] for group in groups], columns=["low", "high", "share"])
        for name in ("predicted", "observed"):
            columns = [name, f"{name} lower", f"{name} upper"]
            table[columns] = [getattr(group, name) for group in groups]
        return table.set_index(pd.RangeIndex(1, len(groups) + 1, name="group"))

    @property
    def curves(self) -> pd.DataFrame:
        """Observed survival with its interval, a row for each risk group and time."""
        index = pd.MultiIndex.from_product(
            [range(1, len(self.groups) + 1), self.times], names=["group", "time"]
        )
        points = [point for group in self.groups for point in group.curve]
        return pd.DataFrame(points, index=index, columns=Estimate._fields)

    @property
    def summary(self) -> pd.DataFrame:
        """A row for each measure of the whole: ``value``, ``lower`` and ``upper``."""
        measures = [getattr(self, name) for name in MEASURES]
        return pd.DataFrame(measures, index=list(MEASURES.values()), columns=Estimate._fields)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of plain JSON values; ``from_dict`` turns it back.

        Returns
        -------
        dict
        """
        content = {
            **vars(self),
            "groups": [group._asdict() for group in self.groups],
            "guarantee": self.guarantee.to_dict(),
            "released": thawed(self.released),
        }
        # Lists of tuples.
        plain: dict[str, Any] = json.loads(json.dumps(content))
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make an evaluation from what :meth:`to_dict` returned, or from its JSON.

        Parameters
        ----------
        data : mapping

        Returns
        -------
        SurvivalEvaluation
        """
        content: dict[str, Any] = {name: Estimate(*data[name]) for name in MEASURES}
        content["times"] = tuple(data["times"])
        content["guarantee"] = PrivacyGuarantee.from_dict(data["guarantee"])
        content["released"] = frozen("released", data["released"])
        content["groups"] = tuple(RiskGroup.of(**group) for group in data["groups"])
        return cls(**{**data, **content})

    def __repr__(self) -> str:
        lines = [
            f"SurvivalEvaluation at {self.max_time:g}: {100 * self.level:g} % intervals, "
            f"epsilon = {self.guarantee.epsilon:g}, status {self.guarantee.status}",
            *(f"  {name}: {_shown(row)}" for name, row in self.summary.T.items()),
            f"  still followed at max_time: {self.uncensored:.0%}",
            "  survival by risk group: predicted, observed",
            *(
                f"    {g.share:.0%} of records: {_shown(g.predicted)}, {_shown(g.observed)}"
                for g in self.groups
            ),
        ]
        return "\n".join(lines)


def _shown(estimate: Any) -> str:
    value, lower, upper = estimate
    return f"{value:.3f} [{lower:.3f}, {upper:.3f}]"
