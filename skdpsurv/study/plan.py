"""The plan of a study: what each analysis costs, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.privacy_cost import Cost, Spend
from skdpsurv.study.analyses import Analysis
from skdpsurv.study.protocol import Protocol

#: Whose records an analysis uses.
EVERYBODY, TRAINING, EVALUATION = "everybody", "training", "evaluation"


@dataclass(frozen=True, eq=False)
class Part:
    """One analysis with its budget; ``people`` says whose records it uses."""

    analysis: Analysis
    spend: Spend
    people: str
    n_people: int
    plan: Plan
    #: Not fitted; of an evaluation it has no model yet.
    estimator: Any

    @property
    def cost(self) -> Cost:
        """What it costs the people whose records it uses."""
        return self.plan.cost


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """A study in public numbers: it costs nothing, and may be published."""

    protocol: Protocol
    n_people: int
    #: In the order of the protocol, by name.
    parts: Mapping[str, Part]

    @classmethod
    def of(cls, protocol: Protocol, n_people: int) -> StudyPlan:
        """Plan a study of so many people."""
        raise NotImplementedError

    @property
    def n_evaluation(self) -> int:
        """Number of people who are held out: public."""
        return round(self.protocol.evaluation_share * self.n_people)

    @property
    def n_training(self) -> int:
        """Number of the other people."""
        return self.n_people - self.n_evaluation

    @property
    def cost(self) -> Cost:
        """Cost of all analyses together."""
        raise NotImplementedError

    def guarantee(self) -> PrivacyGuarantee:
        """Return what the ledger is charged for the whole study."""
        raise NotImplementedError

    def guarantee_of(self, name: str) -> PrivacyGuarantee:
        """Return what the ledger is charged if an analysis that was lost is charged again."""
        raise NotImplementedError

    def forecast(self) -> pd.DataFrame:
        """Return the expected error of each analysis."""
        raise NotImplementedError

    def advice(self) -> list[str]:
        """Return what will say nothing, and what would help."""
        raise NotImplementedError

    def best_shares(self) -> dict[str, float]:
        """Return shares that make the worst part best."""
        raise NotImplementedError

    def gain_of_delta(self) -> str:
        """Return how much a delta would reduce the noise, in words."""
        raise NotImplementedError

    def page(self) -> str:
        """Return the protocol as a page to sign, in HTML."""
        raise NotImplementedError
