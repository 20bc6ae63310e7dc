"""What an output checker needs to know of a result: its kind, its risks, and who says so.

Checks of disclosure control look at the records behind a table: how many are in a cell, say. Here
nobody may. In their place stand the guarantee, the verifier of it, and the published numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.dp.appetite import RiskAppetite
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.evaluation.result import SurvivalEvaluation
from skdpsurv.report.results import all_of
from skdpsurv.report.text import WORDS, exact, short
from skdpsurv.verify import Verdict
from skdpsurv.verify_study import verify

#: Quantities of a page that are noisy counts, and names of released values that a fit has chosen.
_COUNTS = re.compile(r"n\b|number of events|number at risk|count of |missing of ")
_FITTED = re.compile(r"((high|low)_level_|baseline_)?(coef|intercept)(_\d+)?|rho|lambda")
#: Words of ACRO, from the best.
_WORDS = "pass", "review", "fail"
_OF_VERDICT = {"verified": "pass", "refuted": "fail", "not covered": "review"}


class Check(NamedTuple):
    """One check: its name, its result, and why."""

    name: str
    status: str
    why: str


@dataclass(frozen=True)
class OutputCheck:
    """A result as an output checker sees it.

    Parameters
    ----------
    part : str
        Kind of output, as in ``WORDS["outputs"]``.
    guarantee : PrivacyGuarantee
    verdict : Verdict
        What the verifier says of the file.
    smallest_count : float or None
        Smallest noisy count among the published numbers.
    dof : int or None
        Records less fitted numbers.
    appetite : RiskAppetite or None
        What the environment allows. None: that is for a person to say.
    study : (PrivacyGuarantee, Verdict) or None, default=None
        What the study of the result spent in all, and what the verifier says of its folder.
    """

    part: str
    guarantee: PrivacyGuarantee
    verdict: Verdict
    smallest_count: float | None
    dof: int | None
    appetite: RiskAppetite | None
    study: tuple[PrivacyGuarantee, Verdict] | None = None

    @property
    def words(self) -> Any:
        """Type and analysis of ACRO, its class of outputs (statbarn), and their risks."""
        return WORDS["outputs"][self.part]

    @property
    def mitigation(self) -> str:
        """ACRO's word for what reduces the risks; none that is not proved."""
        return "Noise" if self.guarantee.status == "proved" else "none"

    @property
    def verifier(self) -> str:
        """The verifier's line."""
        return next(self.verdict.lines())

    @cached_property
    def checks(self) -> list[Check]:
        """The checks that stand in the place of those of records."""
        appetite, found = self.appetite, []
        found.append(Check("Verifier", _OF_VERDICT[self.verdict.word], self.verifier))
        asked = [self.guarantee]
        if self.study is not None:
            spent, whole = self.study
            found.append(Check("StudyVerifier", _OF_VERDICT[whole.word], next(whole.lines())))
            asked.append(spent)
        if appetite is None:
            found.append(Check("RiskAppetite", "review", "no risk appetite was stated"))
        else:
            every = (one for guarantee in asked for one in appetite.faults(guarantee))
            faults = list(dict.fromkeys(f"{one.rule}: {one.asked}" for one in every))
            if self.guarantee.n_protected is None and appetite.min_records > 1:
                faults.append(f"min_records = {appetite.min_records}: it states no number")
            why = "; ".join(faults) or f"{appetite.name} allows epsilon, delta and status"
            found.append(Check("RiskAppetite", "fail" if faults else "pass", why))
        if self.part == "other":
            why = "which class of outputs (statbarn) this is, a person must say"
            found.append(Check("StatbarnDataCheck", "review", why))
        stated = appetite or RiskAppetite
        for name, what, value, least in (
            (
                "MinimumThresholdCheck",
                "smallest noisy count",
                self.smallest_count,
                "safe_threshold",
            ),
            ("MinimumDoFCheck", "residual degrees of freedom", self.dof, "safe_dof_threshold"),
        ):
            if value is not None:
                threshold = getattr(stated, least)
                why = f"{what} {short(value)}, threshold {threshold}"
                found.append(Check(name, "pass" if value >= threshold else "review", why))
        return found

    @property
    def status(self) -> str:
        """The worst of the checks; no result passes without an appetite that allows it."""
        return max((one.status for one in self.checks), key=_WORDS.index)

    @property
    def summary(self) -> str:
        """The promise and all checks in a line."""
        g = self.guarantee
        promise = f"epsilon {exact(g.epsilon)}, delta {exact(g.delta)}, {g.neighbours}, {g.status}"
        checks = (f"{one.name}: {one.status}, {one.why}" for one in self.checks)
        return "; ".join([f"Mitigation: {self.mitigation}, {promise}", *checks])


def output_check(
    found: Any,
    parts: Mapping[str, Any],
    appetite: RiskAppetite | None = None,
    *,
    text: str | None = None,
    study: tuple[PrivacyGuarantee, Verdict] | None = None,
) -> OutputCheck:
    """Return what an output checker needs to know of a release or an evaluation.

    Parameters
    ----------
    found : Release or SurvivalEvaluation
    parts : mapping
        Of a page about it, as :func:`~skdpsurv.report.results.results` returns them.
    appetite : RiskAppetite or None, default=None
    text : str or None, default=None
        Its file, as it is published, which is what is verified. None: as it would be written.
    study : (PrivacyGuarantee, Verdict) or None, default=None
        As of :class:`OutputCheck`.
    """
    if isinstance(found, SurvivalEvaluation):
        verdict = verify(json.dumps(found.to_dict()) if text is None else text)
        return OutputCheck("quality", found.guarantee, verdict, None, None, appetite, study)
    kinds = [name for name in WORDS["outputs"] if parts.get(name) is not None]
    counts = [one.estimate for one in all_of(parts, "numbers") if _COUNTS.match(one.quantity)]
    counts += np.ravel(found.values.get("n_events", ())).tolist()
    return OutputCheck(
        kinds[0] if kinds else "other",
        found.guarantee,
        verify(found.to_json() if text is None else text),
        min(counts, default=None),
        _residual(found),
        appetite,
        study,
    )


def _residual(release: Any) -> int | None:
    """Return the number of records less that of fitted numbers; of curves, less intervals."""
    n, public = release.made_by.n_protected, release.made_by.public_inputs
    fitted = sum(np.size(v) for name, v in release.values.items() if _FITTED.fullmatch(name))
    intervals, groups = public.get("n_intervals"), public.get("groups", (None,))
    if isinstance(points := public.get("breakpoints"), tuple):
        intervals = len(points) + 1
    if not fitted and type(intervals) is int and isinstance(groups, tuple):
        fitted = intervals * len(groups)
    return n - fitted if n is not None and fitted else None
