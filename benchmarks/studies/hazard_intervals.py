"""Intervals of private hazard coefficients where the model is true: how many hold it, how wide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.studies.populations import People
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.data.histories import read_target
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.survival.hazards.model import HazardRecords, orthogonal_basis, published_basis

SHARE = 0.2
#: Fits of one measurement.
FITS = 10
#: Of fewer finite intervals of a column the share that holds the truth is not told.
FEWEST = 20
#: Rate of events: about 5, 25, 40 and 65 per cent have one.
RARE, SOME, COMMON, MOST = 0.05, 0.3, 0.7, 2.0
#: Columns, their number, rate, records, epsilon.
SIMULATED = (
    ("uniform", 3, COMMON, 1_000, 3.0),
    ("uniform", 3, COMMON, 5_000, 0.3),
    ("uniform", 5, COMMON, 5_000, 1.0),
    ("uniform", 5, RARE, 20_000, 1.0),
    ("uniform", 5, MOST, 50_000, 10.0),
    ("uniform", 10, COMMON, 20_000, 3.0),
    ("uniform", 20, COMMON, 50_000, 1.0),
    ("correlated", 5, SOME, 6_000, 1.0),
    ("correlated", 5, SOME, 30_000, 1.0),
    ("half binary", 5, SOME, 20_000, 3.0),
    ("skewed", 5, MOST, 5_000, 1.0),
    ("skewed", 5, MOST, 50_000, 10.0),
    ("rare binary", 5, COMMON, 5_000, 1.0),
    ("rare binary", 5, COMMON, 50_000, 10.0),
)
KEYS = ["people", "columns", "rate", "link", "n", "epsilon", "method"]


def cases(setting: Setting) -> Iterator[Case]:
    """Yield the cases."""
    tried = [(*case, "cloglog", "auto") for case in setting.of(SIMULATED, SIMULATED[:2])]
    if not setting.quick:
        tried += [("uniform", 5, COMMON, 20_000, 3.0, link, "auto") for link in ("logit", "probit")]
        tried += [("uniform", 5, COMMON, 20_000, 3.0, "cloglog", "out_pert")]
    names = ("people", "columns", "rate", "n", "epsilon", "link", "method")
    for case in tried:
        yield dict(zip(names, case, strict=True))


def population(case: Case) -> People:
    """Return who is drawn from."""
    return People(case["people"], case["columns"], case["rate"], case["link"])


@cache
def without_privacy(people: People, n: int) -> tuple[np.ndarray, float]:
    """Return standard errors of maximum likelihood in a sample, and the share of events."""
    X, y = people.sample(n, 2**32 - 1)
    fit = DPDiscreteTimeSurvival(math.inf, max_time=people.max_time, link=people.link).fit(X, y)
    histories = read_target(y)
    records = HazardRecords(X, histories.on_grid(people.max_time, fit.n_intervals))
    basis = orthogonal_basis(fit.n_intervals, fit.n_knots)
    likelihood = DiscreteHazard(basis, X.shape[1], link=LINKS[people.link])
    values = published_basis(fit.n_intervals, fit.n_knots) @ fit.baseline_coef_
    baseline = np.linalg.lstsq(basis, values, rcond=None)[0]
    at = np.concatenate([baseline, fit.coef_])
    hessian = likelihood.derivatives(at, records.clipped(0.0, math.inf)).hessian
    return np.sqrt(np.diag(np.linalg.inv(hessian)))[fit.n_knots :], float(histories.event.mean())


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return for each column how many intervals are finite, and how many of these hold the truth.

    And the median standard error over that of the fit without privacy.
    """
    people, n = population(case), case["n"]
    errors, widths = [], []
    for number in range(setting.of(FITS, 2)):
        key = seed(*case.values(), repetition, number)
        X, y = people.sample(n, key)
        model = DPDiscreteTimeSurvival(
            case["epsilon"],
            method=case["method"],
            link=case["link"],
            max_time=people.max_time,
            inference_share=SHARE,
            random_state=key + 1,
        ).fit(X, y)
        summary = model.summary
        errors.append(summary["coef"].to_numpy() - people.coef)
        widths.append(summary["se(coef)"].to_numpy())
    error, se = np.array(errors), np.array(widths)
    finite = np.isfinite(se)
    held = finite & (np.abs(error) <= 1.959964 * se)
    exact, events = without_privacy(people, n)
    relative = np.median(se, axis=0) / exact
    return [
        {
            "column": f"x{j}",
            "null": int(people.coef[j] == 0.0),
            "size": n,
            "events": events,
            "fits": len(se),
            "finite": finite[:, j].sum(),
            "held": held[:, j].sum(),
            "width": relative[j],
        }
        for j in range(se.shape[1])
    ]


def report(rows: pd.DataFrame, pages: Pages) -> None:
    counts = rows.groupby([*KEYS, "column"], sort=False)
    sums = counts[["fits", "finite", "held"]].sum()
    middle = counts[["null", "size", "events", "width"]].median()
    found = sums.join(middle).reset_index()
    table, summary = [], []
    order = [tuple(case[key] for key in KEYS) for case in cases(Setting())]
    groups = dict(list(found.groupby(KEYS)))
    for case, group in ((case, groups[case]) for case in order if case in groups):
        known = dict(zip(KEYS, case, strict=True))
        finite, held = group.finite.sum(), group.held.sum()
        enough = group[group.finite >= FEWEST]
        null = group[group.null == 1]
        least = (enough.held / enough.finite).min()
        false = 1.0 - null.held.sum() / null.finite.sum() if null.finite.sum() else np.nan
        share = held / finite if finite else np.nan
        method = {"auto": "", "out_pert": ", output"}[known["method"]]
        link = "" if known["link"] == "cloglog" else f", {known['link']}"
        people = f"{known['people']}, {len(group)} columns{link}{method}"
        first = group.iloc[0]
        ends = (
            f"{width:.1f}" if np.isfinite(width) else "∞"
            for width in (group.width.min(), group.width.max())
        )
        table.append(
            (
                *(people, f"{100 * first.events:.0f} %", f"{first['size']:,.0f}"),
                f"{known['epsilon']:g}",
                *(_percent(x) for x in (finite / group.fits.sum(), share, least, false)),
                " to ".join(ends),
            )
        )
        summary.append({"people": people, "hold": share, "least": least, "false": false} | known)
    told = pd.DataFrame(summary)
    worst = told.loc[told.least.idxmin()] if told.least.notna().any() else None
    text = (
        f"Finite intervals hold the truth in {_percent(told.hold.min())} to "
        f"{_percent(told.hold.max())} % of fits"
    )
    pages.fact("intervals_hold_least", _percent(told.hold.min()))
    pages.fact("intervals_hold_most", _percent(told.hold.max()))
    if worst is not None:
        pages.fact("intervals_worst_column", _percent(worst.least))
        text += (
            f"; in the worst column in {_percent(worst.least)} % ({worst.people}, "
            f"ε = {worst.epsilon:g})"
        )
    if told.false.notna().any():
        text += f". At most {_percent(told.false.max())} % of tests reject a null coefficient"
    fewest, most = found.fits.min(), found.fits.max()
    pages.table(
        "hazard_intervals",
        ("people", "events", "n", "ε", "finite", "hold", "least", "false", "width"),
        table,
        f"{text}.",
        f"Per cent of {fewest}{'' if fewest == most else f' to {most}'} fits with "
        f"inference_share={SHARE:g}: of intervals that are finite; of finite 95 % intervals that "
        f"hold the truth; the same for the column where it is least, of those with {FEWEST} finite "
        "ones; of z tests at level 0.05 that reject a null coefficient. Width: median standard "
        "error over that without privacy, least and largest over the columns.",
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f}" if np.isfinite(share) else ""


INTERVALS = Experiment(cases, measure, report, repetitions=15)
