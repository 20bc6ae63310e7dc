"""The page of a protocol, to sign before a study is run: one HTML file that loads nothing."""

from __future__ import annotations

from typing import Any

from skdpsurv.dp.references import __version__
from skdpsurv.report.explain import described_kinds
from skdpsurv.report.figures import Advantage
from skdpsurv.report.numbers import between
from skdpsurv.report.text import PAGES
from skdpsurv.study.study_forecast import Scenario


def protocol_page(plan: Any, scenario: Scenario | None = None) -> str:
    """Return the protocol as a page to sign, with its costs and its hash.

    Parameters
    ----------
    plan : StudyPlan
    scenario : Scenario or None, default=None
        What is guessed of the people, for a forecast and advice. None: without these.

    Returns
    -------
    str
        HTML, the same bytes for the same arguments.
    """
    guarantee = plan.guarantee()
    page: dict[str, Any] = {"forecast": None, "advice": [], "guessed": ""}
    if scenario is not None:
        page = {"forecast": plan.outlook(scenario), "advice": plan.advice(scenario)}
        page["guessed"] = scenario.words
    page |= {"plan": plan, "protocol": plan.protocol, "g": guarantee, "between": between}
    page["bound"] = Advantage.at(guarantee.epsilon, guarantee.delta)
    page |= {"columns": described_kinds(plan.protocol.kinds), "version": __version__}
    return PAGES.get_template("protocol.html.jinja").render(page)
