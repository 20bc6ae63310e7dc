"""A page on which people plan a study: what an epsilon will cost, before anybody spends one.

Figures of a regression and of curves are interpolated in a grid of simulated studies, which is made
by ``benchmarks/studies/planner_grid.py`` and stored beside this module. The page does the same in
JavaScript, so that it works from a file and without a network. Half-widths of Table 1 follow from
the noise, there alone.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from skdpsurv.dp.references import __version__
from skdpsurv.report.text import FOLDER, PAGES

#: Simulated studies: axes, and values in the order of their points, the last axis first to move.
GRID_FILE: Path = FOLDER / "planner_grid.json"
#: Figures that are interpolated by their logarithm, as they fall like powers.
LOGARITHMIC = ("log_odds_error", "half_width", "width")
#: Share of finite intervals from which a width is shown.
LEAST_FINITE = 0.1


@cache
def grid() -> dict[str, Any]:
    """Return the simulated studies."""
    found: dict[str, Any] = json.loads(GRID_FILE.read_text("utf-8"))
    return found


def interpolated(table: Mapping[str, Any], point: Mapping[str, float]) -> dict[str, float]:
    """Return all figures of a table at a point, linear in logs of axes, and in logits of shares.

    In place of epsilon a table has the *budget*, people times epsilon, beside which figures change
    little with the number of people. Beyond an end of an axis figures are those at the end.

    Parameters
    ----------
    table : mapping
        With ``axes`` and ``values``.
    point : mapping of str to float
        A value for each axis; others are not used.
    """
    at = {**point, "budget": point["people"] * point.get("epsilon", 1.0)}
    places, weights = np.zeros(1, dtype=np.intp), np.ones(1)
    for name, ends in table["axes"].items():
        x = min(max(at[name], ends[0]), ends[-1])
        k = max(bisect_left(ends, x, 1, len(ends) - 1) - 1, 0)
        low, here, high = (_scaled(name, one) for one in (ends[k], x, ends[k + 1]))
        part = (here - low) / (high - low)
        places = np.add.outer((k, k + 1), places * len(ends)).ravel()
        weights = np.multiply.outer((1.0 - part, part), weights).ravel()
    figures = {}
    for name, values in table["values"].items():
        corners = np.array(values)[places]
        is_log = name in LOGARITHMIC
        value = float(weights @ (np.log(corners) if is_log else corners))
        figures[name] = math.exp(value) if is_log else value
    return figures


def _scaled(name: str, value: float) -> float:
    return math.log(value / (1.0 - value) if name == "events" else value)


def model_figures(point: Mapping[str, float], has_delta: bool = False) -> dict[str, float]:
    """Return what a regression gets at a point, as the page shows it.

    Parameters
    ----------
    point : mapping of str to float
        With people, columns, events (their share, within the grid) and epsilon, that of the
        regression.
    has_delta : bool, default=False
        Whether the fit has a delta, of 1/n².

    Returns
    -------
    dict of str to float
        ``width`` is the median of finite intervals, relative to no privacy; NaN where hardly any
        ends.

    Examples
    --------
    >>> from skdpsurv.report.planner import model_figures
    >>> point = {"people": 3000, "columns": 5, "events": 0.3, "epsilon": 1.0}
    >>> found = model_figures(point)
    >>> 0.5 < found["concordance_low"] <= found["concordance"] < 0.71
    True
    """
    found = interpolated(grid()["model_with_delta" if has_delta else "model"], point)
    # An error of log odds moves a risk most in the middle.
    found["risk_error"] = found.pop("log_odds_error") * point["events"] * (1.0 - point["events"])
    if found["finite"] < LEAST_FINITE:
        found["width"] = math.nan
    return found


def planner_page() -> str:
    """Return the page: HTML that loads nothing, the same bytes for the same version."""
    inlined = {
        name: Markup((FOLDER / f"planner.{name}").read_text("utf-8")) for name in ("js", "css")
    }
    about = {"logarithmic": LOGARITHMIC, "least_finite": LEAST_FINITE}
    data = Markup(json.dumps({**grid(), **about}, separators=(",", ":")))
    page = PAGES.get_template("planner.html.jinja")
    return page.render(version=__version__, data=data, about=grid()["about"], **inlined)
