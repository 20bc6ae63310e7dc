"""The report of a study: one page, a table of all published numbers, and figures as files.

It follows from releases and the protocol alone, so that it costs nothing and may be made again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from skdpsurv.dp.budget import exact_sum, float_above
from skdpsurv.dp.guarantee import PrivacyGuarantee, weakest_status
from skdpsurv.dp.ledger import REFUSED
from skdpsurv.dp.references import __version__
from skdpsurv.evaluation import SurvivalEvaluation
from skdpsurv.release import Release
from skdpsurv.report.explain import described_kinds
from skdpsurv.report.figures import Advantage, Figure, can_draw
from skdpsurv.report.numbers import ShownNumber, csv_text
from skdpsurv.report.output_check import OutputCheck, output_check
from skdpsurv.report.results import all_of, evaluated, results
from skdpsurv.report.text import PAGES, WORDS
from skdpsurv.study.analyses import Analysis
from skdpsurv.study.parts import sizes, whose
from skdpsurv.study.study_plan import StudyPlan

#: Files beside the page.
TABLE, PAGE, FIGURES = "table.csv", "report.html", "figures"


class Section(NamedTuple):
    """Results of one analysis, as parts of a page; none if its release was lost."""

    analysis: Analysis
    heading: str
    guarantee: PrivacyGuarantee | None
    parts: Mapping[str, Any]
    #: SHA-256 of the file of the release.
    sha256: str


@dataclass(frozen=True, eq=False)
class StudyReport:
    """Results of a study, and what they cost.

    Parameters
    ----------
    plan : StudyPlan
        Public: the protocol, and how many people each analysis had.
    found : mapping of str to Release or SurvivalEvaluation
        What was published, by the names of the analyses; one that is not there was lost.
    charges : sequence of PrivacyGuarantee
        What was spent: the study as a whole, then each analysis that was charged again, and
        refusals where the ledger charges them.
    date : str
        Day of the first charge.
    left : float or None, default=None
        Epsilon that is left in the ledger, at the delta of the protocol. None: there is no ledger.
    sha256 : mapping of str to str
        Hashes of the files of releases, by the names of the analyses.
    """

    plan: StudyPlan
    found: Mapping[str, Release | SurvivalEvaluation]
    charges: Sequence[PrivacyGuarantee]
    date: str
    left: float | None = None
    sha256: Mapping[str, str] | None = None

    @cached_property
    def sections(self) -> list[Section]:
        """Results of each analysis, in the order of a paper."""
        order = list(WORDS["analyses"])
        analyses = sorted(self.plan.protocol.analyses, key=lambda one: order.index(one.kind))
        headings = Counter(map(_heading, analyses))
        return [self._section(one, headings[_heading(one)] > 1) for one in analyses]

    def _section(self, analysis: Analysis, is_named: bool) -> Section:
        heading, found = _heading(analysis), self.found.get(analysis.name)
        if is_named:
            heading += f" ({analysis.name})"
        if found is None:
            return Section(analysis, heading, None, {}, "")
        if isinstance(found, Release):
            parts = results(found, unit=self.plan.protocol.unit)
        else:
            parts = {"quality": evaluated(found, self.plan.protocol.unit)}
        sha256 = (self.sha256 or {}).get(analysis.name, "")
        return Section(analysis, heading, found.guarantee, parts, sha256)

    def _people_of(self, analysis: Analysis) -> tuple[str, int]:
        """Return whose records an analysis uses, and their number."""
        people = whose(self.plan.protocol, analysis)
        return people, sizes(self.plan.protocol, self.plan.n_people)[people]

    @property
    def spent(self) -> PrivacyGuarantee:
        """Guarantee of all charges together, with the status of the weakest."""
        total, *again = self.charges
        if again:
            epsilon = float_above(exact_sum(one.epsilon for one in self.charges))
            delta = float_above(exact_sum(one.delta for one in self.charges))
            total = replace(total, epsilon=epsilon, delta=delta, rho=None, renyi=())
        statuses = (one.guarantee.status for one in self.found.values())
        return replace(total, status=weakest_status([total.status, *statuses]))

    @cached_property
    def numbers(self) -> pd.DataFrame:
        """All published numbers: analysis, quantity, group, estimate, low and high."""
        found = ((one.analysis.name, all_of(one.parts, "numbers")) for one in self.sections)
        rows = [(name, *row) for name, numbers in found for row in numbers]
        return pd.DataFrame(rows, columns=["analysis", *ShownNumber._fields])

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """Figures, by the names of their files."""
        return {
            f"{section.analysis.name}-{one.name}.svg": one
            for section in self.sections
            for one in all_of(section.parts, "figures")
        }

    @property
    def checks(self) -> list[tuple[str, OutputCheck]]:
        """What an output checker needs to know of each result, by its heading."""
        found = [one for one in self.sections if one.guarantee is not None]
        return [
            (one.heading, output_check(self.found[one.analysis.name], one.parts)) for one in found
        ]

    @cached_property
    def html(self) -> str:
        """The page."""
        spent, protocol = self.spent, self.plan.protocol
        guarantees = [one.guarantee for one in self.found.values()]
        bound = Advantage.at(spent.epsilon, spent.delta) if spent.status == "proved" else None
        page: dict[str, Any] = {"report": self, "protocol": protocol, "plan": self.plan}
        page |= {"sections": self.sections, "g": spent, "bound": bound, "can_draw": can_draw()}
        page |= {"columns": described_kinds(protocol.kinds), "refused": REFUSED}
        for name in ("limits", "assumptions"):
            texts = (text for one in (spent, *guarantees) for text in getattr(one, name))
            page[name] = list(dict.fromkeys(texts))
        return PAGES.get_template("study.html.jinja").render(page, version=__version__)

    def files(self) -> dict[str, str]:
        """Return the text of each file, by its path in the folder of the study."""
        drawn = {f"{FIGURES}/{name}": one.file for name, one in self.figures.items()}
        return {PAGE: self.html, TABLE: csv_text(self.numbers), **drawn}


def _heading(analysis: Analysis) -> str:
    """Return the heading of an analysis, with the columns of its groups and its outcome."""
    words, options = WORDS["analyses"][analysis.kind], analysis.options
    by = f", by {options['by']}" if options.get("by") else ""
    return f"{words}{by}" + (f" of {options['target']}" if options.get("target") else "")
