"""A page on which people plan a study: what an epsilon will cost, before anybody spends one.

Figures of a regression and of curves are interpolated in a grid of simulated studies, which is made
by ``benchmarks/studies/planner_grid.py`` and stored beside this module. The page does the same in
JavaScript, so that it works from a file and without a network. Half-widths of Table 1 follow from
the noise, there alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from scipy import special
from scipy.interpolate import RegularGridInterpolator

from skdpsurv.dp.references import __version__
from skdpsurv.report.text import FOLDER, PAGES

#: Simulated studies: axes, and values in the order of their points, the last axis first to move.
GRID_FILE: Path = FOLDER / "planner_grid.json"
#: Figures that are interpolated by their logarithm, as they fall like powers.
LOGARITHMIC = ("risk_error", "half_width")
#: Share of finite intervals from which a width is shown.
LEAST_FINITE = 0.1


@cache
def grid() -> dict[str, Any]:
    """Return the simulated studies."""
    found: dict[str, Any] = json.loads(GRID_FILE.read_text("utf-8"))
    return found


def interpolated(table: Mapping[str, Any], point: Mapping[str, float]) -> dict[str, float]:
    """Return all figures of a table at a point, linear in logs of axes, and in logits of shares.

    Beyond an end of an axis they are those at the end.

    Parameters
    ----------
    table : mapping
        With ``axes`` and ``values``.
    point : mapping of str to float
        A value for each axis; others are not used.
    """
    axes: dict[str, Sequence[float]] = table["axes"]
    ends = [_scaled(name, np.array(values, float)) for name, values in axes.items()]
    own = (_scaled(name, np.clip(point[name], min(axes[name]), max(axes[name]))) for name in axes)
    where, found = np.array([*own]), {}
    for name, values in table["values"].items():
        cube = np.reshape(values, [len(end) for end in ends])
        is_log = name in LOGARITHMIC
        value = RegularGridInterpolator(ends, np.log(cube) if is_log else cube)(where)[0]
        found[name] = float(np.exp(value) if is_log else value)
    return found


def _scaled(name: str, values: Any) -> Any:
    return special.logit(values) if name == "events" else np.log(values)


def model_figures(point: Mapping[str, float], has_delta: bool = False) -> dict[str, float]:
    """Return what a regression gets at a point, as the page shows it.

    Parameters
    ----------
    point : mapping of str to float
        With people, columns, events (their share) and epsilon, that of the regression.
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
    weight, total = found.pop("weight"), found.pop("weighted_log_width")
    shown = found["finite"] >= LEAST_FINITE and weight > 0.0
    return {**found, "width": math.exp(total / weight) if shown else math.nan}


def planner_page() -> str:
    """Return the page: HTML that loads nothing, the same bytes for the same version."""
    inlined = {
        name: Markup((FOLDER / f"planner.{name}").read_text("utf-8")) for name in ("js", "css")
    }
    about = {"logarithmic": LOGARITHMIC, "least_finite": LEAST_FINITE}
    data = Markup(json.dumps({**grid(), **about}, separators=(",", ":")))
    page = PAGES.get_template("planner.html.jinja")
    return page.render(version=__version__, data=data, about=grid()["about"], **inlined)
