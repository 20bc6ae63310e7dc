"""The plan of a study: what it costs, what it will get, and what would be better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from skdpsurv.dp.checks import integer
from skdpsurv.dp.guarantee import PERSON, RECORD, SAME_GROUP, PrivacyGuarantee
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.privacy_cost import Cost, epsilon_at
from skdpsurv.dp.references import WORDS, __version__, phrase, reference
from skdpsurv.evaluation.forecast import with_delta
from skdpsurv.report.explain import described_kinds
from skdpsurv.report.figures import Advantage
from skdpsurv.report.numbers import between
from skdpsurv.report.text import PAGES
from skdpsurv.study.advice import Balance, StudyForecast, advice, gains
from skdpsurv.study.parts import EVALUATION, PlannedAnalysis, parts_of, sizes, tree_of
from skdpsurv.study.protocol import Protocol
from skdpsurv.study.study_forecast import Scenario

#: Other shares are proposed if they reduce the largest relative error to this part of it.
BETTER = 0.9
PROOF = reference("docs/proofs/study", "dwork")


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """A study in public numbers: nothing is spent, and the plan may be published.

    Parameters
    ----------
    protocol : Protocol
    n_people : int
        Number of people; of records, where nobody has two. Public.
    parts : mapping of str to Part
        By name, in the order of the protocol.
    """

    protocol: Protocol
    n_people: int
    parts: Mapping[str, PlannedAnalysis]

    @classmethod
    def of(cls, protocol: Protocol, n_people: int) -> StudyPlan:
        """Plan a study of so many people.

        Parameters
        ----------
        protocol : Protocol
        n_people : int

        Returns
        -------
        StudyPlan

        Raises
        ------
        ValueError
            If a part would hold nobody, an analysis cannot be had for its share, or the protocol
            is for another number of people.
        AppetiteError
            If the appetite of the protocol does not allow the study.
        """
        integer(2)("n_people", n_people)
        if protocol.n_people not in (None, n_people):
            raise ValueError(
                f"n_people must be that of the protocol, {protocol.n_people:,}, got {n_people:,}."
            )
        found = cls(protocol, int(n_people), parts_of(protocol, int(n_people)))
        if protocol.appetite is not None:
            for one in (found.guarantee(), *(part.guarantee for part in found.parts.values())):
                protocol.appetite.require(one)
        return found

    @property
    def n_evaluation(self) -> int:
        """Number of people who are held out: public."""
        return sizes(self.protocol, self.n_people)[EVALUATION]

    @property
    def n_training(self) -> int:
        """Number of the other people: public."""
        return self.n_people - self.n_evaluation

    @cached_property
    def _whole(self) -> Plan:
        """The plan of all measurements, within the budget of the study."""
        return Plan(tree_of(self.parts), self.protocol.first_epsilon, self.protocol.delta)

    @property
    def cost(self) -> Cost:
        """Cost of all analyses together: shared + max(training, evaluation)."""
        return self._whole.cost

    def guarantee(self) -> PrivacyGuarantee:
        """Return the guarantee that the ledger is charged for: of the study, not of each analysis.

        Returns
        -------
        PrivacyGuarantee
            Its epsilon is that of the protocol without the reserve; a delta only if some noise
            is Gaussian. Its rho is stated where that says no less. Groups that a table says are
            public are not protected by the study as a whole.
        """
        plan, protocol = self._whole, self.protocol
        rho = plan.cost.rho if plan.delta else None
        if rho is not None and epsilon_at(rho, plan.delta) > plan.epsilon:
            rho = None  # pure epsilons were added
        guarantees = {name: part.guarantee for name, part in self.parts.items()}
        # Whoever are neighbours for that table are for the other analyses, too.
        parts = self.parts.values()
        public = [part.analysis.by for part in parts if part.plan.same_group]
        inputs: dict[str, Any] = {"protocol_sha256": protocol.sha256, "n_records": self.n_people}
        inputs["n_held_out"] = self.n_evaluation
        inputs |= {"by": public[0], "by_is_public": True} if public else {}
        inputs |= {f"epsilon_{name}": one.epsilon for name, one in guarantees.items()}
        inputs |= {f"delta_{name}": one.delta for name, one in guarantees.items() if one.delta}
        words = f"a study of {len(guarantees)} analyses: {', '.join(guarantees)}"
        neighbours = (RECORD if protocol.person is None else PERSON) + SAME_GROUP * bool(public)
        about: Any = {"neighbours": neighbours, "mechanism": words, "public_inputs": inputs}
        about |= {"assumptions": self._assumptions(), "source": PROOF}
        return PrivacyGuarantee(plan.epsilon, plan.delta, rho=rho, **about)

    def _assumptions(self) -> tuple[str, ...]:
        of_parts = (text for part in self.parts.values() for text in part.plan.assumptions)
        dealt = [WORDS["assumptions"]["dealt"]] if self.n_evaluation else []
        people = [WORDS["assumptions"]["person"]] * (self.protocol.person is not None)
        return (*dict.fromkeys([*dealt, *of_parts]), *people)

    @property
    def table(self) -> pd.DataFrame:
        """Analyses by name: kind, whose records, how many, epsilon and delta."""
        rows = {
            name: (part.analysis.kind, part.people, part.n_people, *part.spend)
            for name, part in self.parts.items()
        }
        columns = ["kind", "people", "number", "epsilon", "delta"]
        found = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
        return found.rename_axis("analysis")

    # ---- What it will get, by simulation from public numbers.

    def outlook(self, scenario: Scenario | None = None) -> StudyForecast:
        """Forecast each analysis by its name; its decisive error comes first.

        Parameters
        ----------
        scenario : Scenario or None, default=None
            What is guessed of the people. None: the defaults.

        Returns
        -------
        dict of str to list of Expected
        """
        chosen = Scenario() if scenario is None else scenario
        if chosen not in self._outlooks:
            chosen.check(self.protocol)
            parts = self.parts.items()
            found = {name: chosen.expected(part, self.protocol) for name, part in parts}
            self._outlooks[chosen] = found
        return self._outlooks[chosen]

    @cached_property
    def _outlooks(self) -> dict[Any, StudyForecast]:
        return {}

    def forecast(self, scenario: Scenario | None = None) -> pd.DataFrame:
        """Return the accuracy to expect of each analysis, by simulation; no record is used.

        Parameters
        ----------
        scenario : Scenario or None, default=None

        Returns
        -------
        pandas.DataFrame
            Indexed by analysis and by what is forecast, with the columns ``without privacy``,
            ``half epsilon``, ``in this study``, ``from`` and ``to``, an interval of about 95 % for
            the mean or median over simulated studies (NaN for figures by formula, or of one study),
            ``twice epsilon``, and ``times``: ``in this study`` divided by ``without privacy``, of
            errors.
            Empty for an analysis that cannot be simulated.
        """
        outlook = self.outlook(scenario).items()
        shown = [(name, one) for name, each in outlook for one in each if not one.is_hidden]
        rows = [
            (name, one.what, one.without, one.half, one.private, one.low, one.high, one.twice)
            for name, one in shown
        ]
        columns = ["analysis", "what", "without privacy", "half epsilon", "in this study"]
        found = pd.DataFrame(rows, columns=[*columns, "from", "to", "twice epsilon"])
        times = found["in this study"] / found["without privacy"]
        found["times"] = times.where([one.is_error for _, one in shown])
        return found.set_index(["analysis", "what"])

    def advice(self, scenario: Scenario | None = None) -> list[str]:
        """List analyses that will say nothing, and changes that would help.

        Parameters
        ----------
        scenario : Scenario or None, default=None

        Returns
        -------
        list of str
        """
        outlook, gained = self.outlook(scenario), self._with_delta(scenario)
        found = list(advice(self.protocol, self.parts, outlook, gained, self.n_people))
        balance = Balance.of(self.parts, self.outlook(scenario))
        if balance.after < BETTER * balance.before:
            stated = ", ".join(f"{name} {share:g}" for name, share in balance.shares.items())
            before, after = balance.before, balance.after
            found.append(phrase("other_shares", shares=stated, before=before, after=after))
        return found

    def best_shares(self, scenario: Scenario | None = None) -> dict[str, float]:
        """Return shares that make the worst part best.

        Parameters
        ----------
        scenario : Scenario or None, default=None

        Returns
        -------
        dict of str to float
            By analysis; the worst is that whose error is largest, relative to no privacy. Parts
            whose errors hardly depend on epsilon keep their shares.
        """
        return dict(Balance.of(self.parts, self.outlook(scenario)).shares)

    def gain_of_delta(self) -> str:
        """Return how much a delta would reduce the noise of each fit, in words; "" if hardly."""
        return " ".join(text for _, text in gains(self.protocol, self.parts))

    def _with_delta(self, scenario: Scenario | None) -> StudyForecast:
        """Return forecasts with a delta of 1/n² of each fit, for those that gain by it."""
        chosen = Scenario() if scenario is None else scenario
        if (key := (chosen, "with a delta")) not in self._outlooks:
            self._outlooks[key] = found = {}
            for name, _ in gains(self.protocol, self.parts):
                part = self.parts[name]
                part = replace(part, estimator=with_delta(part.estimator, part.n_people))
                found[name] = chosen.expected(part, self.protocol)
        return self._outlooks[key]

    def page(self, scenario: Scenario | None = None) -> str:
        """Return the protocol as a page to sign: its costs, its promise and its hash.

        Parameters
        ----------
        scenario : Scenario or None, default=None
            For a forecast and advice on the page. None: without these.

        Returns
        -------
        str
            HTML, the same for the same arguments; it loads nothing.
        """
        guarantee, columns = self.guarantee(), described_kinds(self.protocol.kinds)
        page: dict[str, Any] = {"forecast": None, "advice": [], "guessed": ""}
        if scenario is not None:
            page = {"forecast": self.outlook(scenario), "advice": self.advice(scenario)}
            page["guessed"] = scenario.words
        page |= {"plan": self, "protocol": self.protocol, "g": guarantee, "columns": columns}
        page["bound"] = Advantage.at(guarantee.epsilon, guarantee.delta)
        page |= {"between": between, "version": __version__}
        return PAGES.get_template("protocol.html.jinja").render(page)
