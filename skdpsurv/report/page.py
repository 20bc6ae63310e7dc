"""The page: one file of HTML, which asks for nothing from elsewhere."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from skdpsurv.dp.references import __version__
from skdpsurv.evaluation.result import SurvivalEvaluation
from skdpsurv.plotting.calibration_plot import plot_calibration
from skdpsurv.release.layout import save
from skdpsurv.report.coefficients import coefficients
from skdpsurv.report.curves import curves
from skdpsurv.report.explain import described
from skdpsurv.report.figures import Advantage, advantage_figures, can_draw, figures
from skdpsurv.report.people import people
from skdpsurv.report.text import PAGES


def html_report(release: Any, *, title: str | None = None, evaluation: Any = None) -> str:
    """Return a page about a release, which somebody can read, print and sign.

    Parameters
    ----------
    release : Release
    title : str or None
        None: one that names the estimator.
    evaluation : SurvivalEvaluation or None
        Of :func:`~skdpsurv.evaluation.private_survival_metrics`.

    Returns
    -------
    str
        The same for the same release.

    Raises
    ------
    ValueError
        If the release names an estimator that refuses it.
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
        raise TypeError(
            f"evaluation must be of private_survival_metrics, got {type(evaluation).__name__}."
        )
    return PAGES.get_template("report.html.jinja").render(
        title=title or f"Privacy report: {release.estimator}",
        evaluation=evaluation,
        calibration=[] if evaluation is None else _calibration(evaluation),
        **_context(release),
    )


def save_report(
    release: Any, path: str | os.PathLike[str], *, title: str | None = None, evaluation: Any = None
) -> None:
    """Write the page of :func:`html_report` to a new file: the whole of it, or nothing.

    Parameters
    ----------
    release : Release
    path : str or Path
    title, evaluation
        As for :func:`html_report`.

    Raises
    ------
    FileExistsError
        If there is such a file: what was signed is not overwritten.
    ValueError
        As :func:`html_report` does.
    """
    save(html_report(release, title=title, evaluation=evaluation), path)


def _context(release: Any) -> dict[str, Any]:
    """Return what the template needs of a release, beside its own attributes."""
    guarantee = release.guarantee
    proved = guarantee.status == "proved"
    kind = release.kinds[release.estimator]
    model = None if kind is None or kind._beyond_release else _model(release)
    curved = hasattr(model, "survival_function_at_times")
    return {
        "release": release,
        "g": guarantee,
        "inner": release.fit_guarantee,
        "proved": proved,
        "Advantage": Advantage,
        "advantage": advantage_figures(guarantee) if proved else [],
        "columns": described(release),
        "kind": kind,
        "curves": curves(model) if curved else None,
        "coefficients": None if curved or model is None else coefficients(release, model),
        "people": None if curved or model is None else people(release, model),
        "can_draw": can_draw(),
        "version": __version__,
        "sha": _sha(release.to_json()),
        "sha_of_file": _sha(release.to_json(indent=2) + "\n"),
    }


def _model(release: Any) -> Any:
    try:
        return release.to_estimator()
    except TypeError as error:
        raise ValueError(f"release cannot be used: {error}") from error


def _calibration(evaluation: SurvivalEvaluation) -> Any:
    caption = "Observed against predicted survival, by groups of predicted risk."
    return figures(lambda ax: plot_calibration(evaluation, ax=ax), "calibration", 4.4, caption)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
