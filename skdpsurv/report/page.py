"""The report: one HTML file that loads nothing from elsewhere."""

from __future__ import annotations

import os
from typing import Any

from skdpsurv.dp.references import __version__
from skdpsurv.evaluation.result import SurvivalEvaluation
from skdpsurv.release.layout import save
from skdpsurv.report.explain import described
from skdpsurv.report.figures import Advantage, advantage_figures, can_draw
from skdpsurv.report.output_check import output_check
from skdpsurv.report.results import results
from skdpsurv.report.text import PAGES, sha256


def html_report(release: Any, *, title: str | None = None, evaluation: Any = None) -> str:
    """Return an HTML page about a release, to read, print and sign.

    Parameters
    ----------
    release : Release
    title : str or None
        Title of the page. By default it names the estimator.
    evaluation : SurvivalEvaluation or None
        Result of :func:`~skdpsurv.evaluation.private_survival_metrics`, to show with the release.

    Returns
    -------
    str
        HTML, the same bytes for the same arguments.

    Raises
    ------
    ValueError
        If the estimator that the release names refuses it.
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> from skdpsurv import PrivacyGuarantee, Release
    >>> from skdpsurv.report import html_report
    >>> release = Release("Example", PrivacyGuarantee(1.0), {}, {"mean": 0.5}, 0)
    >>> page = html_report(release, title="Mean age")
    >>> "Epsilon = 1 for each record" in page
    True
    """
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be text, got {type(title).__name__}.")
    if evaluation is not None and not isinstance(evaluation, SurvivalEvaluation):
        kind = type(evaluation).__name__
        raise TypeError(f"evaluation must be of private_survival_metrics, got {kind}.")
    guarantee = release.guarantee
    proved = guarantee.status == "proved"
    page: dict[str, Any] = {"title": title or f"Privacy report: {release.estimator}"}
    page |= {"release": release, "g": guarantee, "inner": release.fit_guarantee, "proved": proved}
    page |= {"Advantage": Advantage, "columns": described(release), "can_draw": can_draw()}
    page["advantage"] = advantage_figures(guarantee) if proved else []
    page |= {"sha": sha256(release.to_json()), "version": __version__}
    page["sha_of_file"] = sha256(release.to_json(indent=2) + "\n")
    parts = results(release, evaluation)
    page["check"] = output_check(release, parts)
    return PAGES.get_template("report.html.jinja").render(page, **parts)


def save_report(
    release: Any, path: str | os.PathLike[str], *, title: str | None = None, evaluation: Any = None
) -> None:
    """Write the page of :func:`html_report` to a new file, completely or not at all.

    Parameters
    ----------
    release : Release
    path : str or Path
    title, evaluation
        As for :func:`html_report`.

    Raises
    ------
    FileExistsError
        If the file exists: a signed page is never overwritten.
    ValueError
        As for :func:`html_report`.
    """
    save(html_report(release, title=title, evaluation=evaluation), path)
