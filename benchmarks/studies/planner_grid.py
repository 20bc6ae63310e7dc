"""What studies of many sizes get at each epsilon: the grid behind the planner's page.

Each case is one simulated study, fitted at every epsilon; the page interpolates between cases
(``skdpsurv.report.planner``) once figures are smooth, and a second experiment looks there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import DOCS, Pages
from benchmarks.studies.planner_smoothing import AS_IT_IS, LOG_ODDS, LOGARITHM, smoothed
from skdpsurv import DPDiscreteTimeSurvival, DPKaplanMeierFitter
from skdpsurv.data import PublicColumns
from skdpsurv.data.shape import Shape
from skdpsurv.evaluation.forecast import small_delta
from skdpsurv.evaluation.forecast_studies import ERROR_OF, Guess, Run, simulated
from skdpsurv.report import planner
from skdpsurv.survival.hazards.fit import PILOT_RECORDS

PEOPLE, COLUMNS = (300, 1000, 3000, 10_000, 30_000), (2, 5, 10, 20)
EVENTS = (0.1, 0.2, 0.35, 0.55, 0.8)
#: Beyond 10, so that what is smoothed does not end where the page's slider does.
EPSILONS = (0.1, 0.18, 0.3, 0.55, 1, 1.8, 3, 5.5, 10, 20)
CURVE_EPSILONS, GROUPS = (0.03, 0.1, 0.3, 1, 3, 10), (1, 2, 4, 8)
#: Points off the grid, and the studies of each.
POINTS, FRESH = 40, 40
#: Concordance of the best model, share of epsilon for intervals, and of studies within ranges.
BEST, INTERVALS, WITHIN = 0.7, 0.3, 0.8
#: With fewer columns a fit has no use for a delta.
DELTA_COLUMNS = 10
MODEL, CURVES = "model", "curves"
#: The page's grid; a budget is people times epsilon, and figures of models jump at one.
PAGE_PEOPLE, SIZES = (300, 3000, 30_000), {MODEL: (2, 3, 5, 7, 10, 14, 20), CURVES: GROUPS}
_JUMP = (30, 50, 80, 125, 0.999_999 * PILOT_RECORDS, PILOT_RECORDS, 320, 500, 800)
BUDGETS = {MODEL: (*_JUMP, 1250, 2000, 3200, 5000, 8000, 12_500, 20_000, 50_000, 300_000)}
BUDGETS[CURVES] = (9, 30, 100, 300, 1000, 3000, 10_000, 30_000, 300_000)
#: Figures that are compared off the grid, with their names.
COMPARED = {
    "concordance": "concordance",
    "calibration": "predicted over true risk",
    "risk_error": "error of a risk",
    "finite": "share of finite intervals",
    "width": "their width",
}
#: What tells a point.
POINT = ["people", "size", "events", "epsilon"]
#: Largest relative error that is good enough, or else so many standard errors.
CLOSE, ERRORS = 0.1, 2.0


def columns_of(number: int) -> PublicColumns:
    """Return two numbers for each boolean; simulated ones are slightly correlated."""
    kinds: Any = {f"x{k}": bool if k % 3 == 2 else (-1, 1) for k in range(number)}
    return PublicColumns(kinds)


def study(case: Mapping[str, Any], epsilons: Sequence[float], *key: object) -> Run:
    """Simulate one study, with a delta at those epsilons alone where the fit uses it."""
    n, size = int(case["people"]), int(case["size"])
    about: Any = {"event_rate": case["events"], "concordance": BEST, "n_repeats": 1}
    # The same people with a delta and without.
    guess = Guess(**about, random_state=seed("planner", *key, n, size, case["events"]))
    if case["what"] == CURVES:
        groups = list(range(size)) if size > 1 else None
        (run,) = simulated(DPKaplanMeierFitter(max_time=1.0, groups=groups), n, epsilons, guess, {})
        return run
    own: Any = {"columns": columns_of(size), "inference_share": INTERVALS, "max_time": 1.0}
    model = DPDiscreteTimeSurvival(**own, delta=small_delta(n) if case["delta"] == "yes" else 0.0)
    if model.delta:
        epsilons = [one for one in epsilons if _is_gaussian(model, n, one)]
    (run,) = simulated(model, n, epsilons, guess, {})
    return run


def _is_gaussian(model: DPDiscreteTimeSurvival, n: int, epsilon: float) -> bool:
    fit = model.as_fitted()
    fit.epsilon = epsilon
    plan, _ = fit._plan_and_guarantee(Shape(n, len(fit.columns.get_feature_names_out())))
    return bool(plan.delta) and not plan.cost.is_pure


def rows_of(run: Run) -> list[Row]:
    """Return the figures of a study, for each epsilon."""
    rows: list[Row] = []
    for epsilon, found in run.items():
        if "width_horizon" in found:
            rows.append({"epsilon": epsilon, "half_width": found["width_horizon"] / 2.0})
            continue
        terms = [name for name in found if name.startswith(ERROR_OF)]
        errors = np.array([[one[name] for name in terms] for one in (found, run[math.inf])])
        width = errors[0] / errors[1]
        width = width[np.isfinite(width)]
        rows.append(
            {
                "epsilon": epsilon,
                "concordance": found["c_index"],
                "calibration": found["calibration"],
                "risk_error": found["risk_error"],
                "finite": width.size / len(terms),
                "width": float(np.median(width)) if width.size else math.nan,
            }
        )
    return rows


def cases(setting: Setting) -> Iterator[Case]:
    few = setting.of(slice(None), slice(0, 2))
    for n in PEOPLE[few]:
        for events in EVENTS[few]:
            for size in COLUMNS[few]:
                for delta in ("no", "yes")[: 1 + (size >= DELTA_COLUMNS)]:
                    about = {"what": MODEL, "delta": delta}
                    yield {**about, "people": n, "size": size, "events": events}
            for size in GROUPS[few]:
                yield {"what": CURVES, "delta": "no", "people": n, "size": size, "events": events}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return the figures of one study."""
    epsilons = CURVE_EPSILONS if case["what"] == CURVES else EPSILONS
    return rows_of(study(case, setting.of(epsilons, epsilons[2:4]), "grid", repetition))


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of each point, over its studies."""
    keys = ["what", "delta", "people", "size", "events", "epsilon"]
    by = rows.groupby(keys)
    found = by[["concordance", "calibration", "risk_error", "finite", "half_width"]].mean()
    found["width"] = by.width.median()
    # Where the next study is expected, given these few. Absolute risks spread alike, however many
    # have an event, and so do ranks.
    alike = [key for key in keys if key != "events"]
    events = found.index.get_level_values("events").to_numpy()
    for name, unit in (("concordance", 1.0), ("calibration", events)):
        n = by[name].count()
        spare = (n - 1).groupby(alike).transform("sum").clip(lower=1)
        variance = (by[name].var().fillna(0.0) * (n - 1) * unit**2).groupby(alike)
        spread = np.sqrt(variance.transform("sum") / spare) / unit
        found[f"{name}_reach"] = stats.t.ppf(0.5 + WITHIN / 2.0, spare) * spread
    return found


def page_table(known: pd.DataFrame, what: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return axes and values as the page has them: smooth, at the points of its grid.

    Parameters
    ----------
    known : DataFrame
        With people, size and events of simulated studies, and with epsilon if they had one.
    what : str
        "model" or "curves".
    figures : mapping of str to (array of shape (n_known,), scale)
    """
    axes = {"people": PAGE_PEOPLE, "size": SIZES[what], "events": EVENTS}
    if "epsilon" in known:
        axes["budget"] = BUDGETS[what]
    at = pd.MultiIndex.from_product(axes.values(), names=axes).to_frame(index=False)
    at["epsilon"] = at.get("budget", at.people) / at.people
    known = known.assign(epsilon=known.get("epsilon", 1.0))
    values = {name: smoothed(known, found, at, scale) for name, (found, scale) in figures.items()}
    for name in ("concordance", "calibration") if what == MODEL else ():
        reach = values.pop(f"{name}_reach")
        values[f"{name}_low"] = np.maximum(values[name] - reach, 0.0)
        values[f"{name}_high"] = values[name] + reach
    for name in values.keys() & {"concordance", "concordance_low", "concordance_high"}:
        values[name] = np.minimum(values[name], BEST)
    names = {"size": "columns" if what == MODEL else "groups"}
    axes = {names.get(name, name): list(ends) for name, ends in axes.items()}
    shown = {name: [float(f"{one:.3g}") for one in found] for name, found in values.items()}
    return {"axes": axes, "values": shown}


def model_table(found: pd.DataFrame) -> dict[str, Any]:
    """Return the page's table of regressions."""
    known = found.index.to_frame(index=False)
    # Beside shares of events log odds vary less than risks, and may be interpolated.
    odds_error = found.risk_error / (known.events * (1.0 - known.events)).to_numpy()
    figures: dict[str, Any] = {
        "concordance": (found.concordance, AS_IT_IS),
        "calibration": (found.calibration, LOGARITHM),
        "log_odds_error": (odds_error, LOGARITHM),
        "finite": (found.finite, LOG_ODDS),
        "width": (found.width, LOGARITHM),
    }
    for name in ("concordance_reach", "calibration_reach"):
        figures[name] = (found[name].where(found[name] > 0.0), LOGARITHM)
    return page_table(known, MODEL, figures)


def curve_table(found: pd.DataFrame) -> dict[str, Any]:
    """Return the page's table of curves."""
    known = found.index.to_frame(index=False)
    return page_table(known, CURVES, {"half_width": (found.half_width, LOGARITHM)})


def grid(rows: pd.DataFrame) -> dict[str, Any]:
    """Return what the page interpolates."""
    found = summary(rows)
    finite = np.isfinite(found.index.get_level_values("epsilon"))
    private, without = found[finite], found[~finite].droplevel("epsilon")
    pure = private.loc[MODEL, "no"]
    gaussian = private.loc[MODEL, "yes"].combine_first(pure) if "yes" in _deltas(private) else pure
    return {
        "about": {"studies": numbers_of_studies(rows), "concordance": BEST, "intervals": INTERVALS},
        "model": model_table(pure),
        "model_with_delta": model_table(gaussian),
        "model_without": model_table(without.loc[MODEL, "no"]),
        "curves": curve_table(private.loc[CURVES, "no"]),
        "curves_without": curve_table(without.loc[CURVES, "no"]),
    }


def numbers_of_studies(rows: pd.DataFrame) -> list[int]:
    """Return the least and the largest number of simulated studies of a regression."""
    found = rows[rows.what == MODEL].groupby(["delta", "people"]).repetition.max() + 1
    return [int(found.min()), int(found.max())]


def _deltas(found: pd.DataFrame) -> Any:
    return found.loc[MODEL].index.unique("delta")


def written(content: Mapping[str, Any]) -> str:
    """Return the text of the grid's file."""
    return json.dumps(content, separators=(",", ":")) + "\n"


def report(rows: pd.DataFrame, pages: Pages) -> None:
    if pages.folder == DOCS:
        Path(planner.GRID_FILE).write_text(written(grid(rows)))
    few, many = numbers_of_studies(rows)
    # The middle share of events.
    found = summary(rows).loc[MODEL, "no"]
    shares = sorted(found.index.unique("events"))
    found = found.xs(shares[len(shares) // 2], level="events")
    epsilons, cells = sorted(found.index.unique("epsilon")), []
    for n, size in found.index.droplevel("epsilon").unique():
        each = (found.loc[(n, size, epsilon)] for epsilon in epsilons)
        shown = [f"{at.concordance:.2f}, {at.risk_error:.3f}, {at.finite:.0%}" for at in each]
        cells.append((f"{n:,}", size, *shown))
    pages.table(
        "planner_grid",
        ("people", "columns", *(f"ε = {e:g}" if e < math.inf else "no privacy" for e in epsilons)),
        cells,
        "A part of the grid: concordance, mean absolute error of risk at the horizon, and share of "
        "intervals that are finite.",
        f"Means of {few} to {many} simulated studies, more of few people, without a delta, where "
        f"{shares[len(shares) // 2]:.0%} have an event. The best possible concordance is {BEST:g}, "
        f"there are two numbers to each boolean, and {INTERVALS:g} of epsilon is for intervals. In "
        "the page they are smoothed by a Gaussian process.",
    )


def studies(case: Case) -> int:
    """Return how many studies a case needs: of curves widths hardly vary."""
    if case["what"] == CURVES:
        return 1
    return 6 if case["people"] > 3000 else 12 if case["delta"] == "yes" else 24


GRID = Experiment(cases, measure, report, repetitions=studies)


def points() -> list[Case]:
    """Return points anywhere within the grid."""
    rng, found = np.random.default_rng(seed("planner", "points")), []
    for number in range(POINTS):
        n, size = np.exp(rng.uniform(np.log([300, 2]), np.log([10_000, 20]))).round().astype(int)
        events, epsilon = rng.uniform(0.1, 0.8), np.exp(rng.uniform(*np.log([0.1, 10])))
        about = {"what": MODEL, "delta": "yes" if number % 4 == 3 else "no"}
        about |= {"people": int(n), "size": int(size)}
        found.append({**about, "events": round(events, 2), "epsilon": round(float(epsilon), 2)})
    return found


def fresh_cases(setting: Setting) -> Iterator[Case]:
    yield from points()[: setting.of(POINTS, 2)]


def measure_fresh(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the figures of one more study, at a point off the grid."""
    run = study(case, [case["epsilon"]], "fresh", repetition)
    if case["epsilon"] not in run:  # the delta is not used there
        run = study({**case, "delta": "no"}, [case["epsilon"]], "fresh", repetition)
    return rows_of(run)[0]


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each figure by simulation, its standard error, and the page's."""
    keys, found = ["delta", "people", "size", "events", "epsilon"], []
    for key, lines in rows.groupby(keys):
        shown = shown_at(lines.iloc[0])
        for name in COMPARED:
            values = lines[name].dropna()
            if len(values) < 2 or (name == "width" and math.isnan(shown["width"])):
                continue
            middle = values.median() if name == "width" else values.mean()
            error = values.std() / math.sqrt(len(values))
            found.append((*key, name, middle, error, shown[name]))
    frame = pd.DataFrame(found, columns=[*keys, "figure", "fresh", "error", "page"])
    off = (frame.page - frame.fresh).abs()
    # Of a share these are points: ten per cent of none is none.
    unit = frame.fresh.where(frame.figure != "finite", 1.0)
    return frame.assign(close=(off <= CLOSE * unit) | (off <= ERRORS * frame.error))


def shown_at(row: Any) -> dict[str, float]:
    """Return what the page shows at a point."""
    point = {"people": row.people, "columns": row["size"]}
    point |= {"events": row.events, "epsilon": row.epsilon}
    return planner.model_figures(point, row.delta == "yes")


def report_fresh(rows: pd.DataFrame, pages: Pages) -> None:
    found, cells = compared(rows), []
    for name, words in COMPARED.items():
        lines = found[found.figure == name]
        off, error = (lines.page - lines.fresh).abs().median(), lines.error.median()
        cells.append((words, f"{lines.close.sum()} of {len(lines)}", f"{off:.3f}", f"{error:.3f}"))
    shown = [shown_at(row) for _, row in rows.iterrows()]
    ends = pd.DataFrame(shown)[["concordance_low", "concordance_high"]].to_numpy()
    within = rows.concordance.between(*ends.T).mean()
    n_points = len(rows.drop_duplicates(POINT))
    last = found.merge(pd.DataFrame(points()[POINTS // 2 :])[POINT])
    pages.table(
        "planner_accuracy",
        ("figure", "close", "median difference", "median standard error"),
        cells,
        f"At {n_points} points off the grid, {found.close.sum()} of {len(found)} figures of the "
        f"page are close to a fresh simulation: within {CLOSE:.0%} (of a share: that many points), "
        f"or within {ERRORS:g} of its standard errors; at half of them, not looked at before, "
        f"{last.close.sum()} of {len(last)}. The page's range of concordance, for "
        f"{WITHIN:.0%} of studies, holds {within:.0%} of the fresh ones.",
        "Points at random between 300 and 10,000 people, 2 and 20 columns, 10 and 80 % of events, "
        f"and epsilons of 0.1 and 10, every fourth with a delta; {rows.repetition.max() + 1} fresh "
        "studies of each. Widths are compared where the page shows them.",
    )


ACCURACY = Experiment(fresh_cases, measure_fresh, report_fresh, repetitions=FRESH, quick=2)
