"""What studies of many sizes get at each epsilon: the grid behind the planner's page.

Each case is one simulated study, fitted at every epsilon; the page interpolates between cases
(``skdpsurv.report.planner``), and a second experiment looks at it between them.
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
from sklearn.isotonic import isotonic_regression

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import DOCS, Pages
from skdpsurv import DPDiscreteTimeSurvival, DPKaplanMeierFitter
from skdpsurv.data import PublicColumns
from skdpsurv.data.shape import Shape
from skdpsurv.evaluation.forecast import small_delta
from skdpsurv.evaluation.forecast_studies import ERROR_OF, Guess, Run, simulated
from skdpsurv.report import planner

PEOPLE, COLUMNS, EVENTS = (300, 1000, 3000, 10_000, 30_000), (2, 5, 10, 20), (0.1, 0.3, 0.8)
EPSILONS = (0.1, 0.18, 0.3, 0.55, 1, 1.8, 3, 5.5, 10)
CURVE_EPSILONS, GROUPS = (0.03, 0.1, 0.3, 1, 3, 10), (1, 2, 4, 8)
#: Studies of a case, and points off the grid with the studies of each.
STUDIES, POINTS, FRESH = 4, 20, 4
#: Concordance of the best model, share of epsilon for intervals, and of studies within ranges.
BEST, INTERVALS, WITHIN = 0.7, 0.3, 0.8
#: With fewer columns a fit has no use for a delta.
DELTA_COLUMNS = 10
MODEL, CURVES = "model", "curves"
#: What falls with people and with epsilon, and what rises.
MONOTONE = {"risk_error": -1, "half_width": -1, "finite": 1, "concordance": 1}
MONOTONE |= {"concordance_low": 1, "concordance_high": 1}
#: Figures that are compared off the grid, with their names.
COMPARED = {
    "concordance": "concordance",
    "calibration": "predicted over true risk",
    "risk_error": "error of a risk",
    "finite": "share of finite intervals",
    "width": "their width",
}
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
    # Where the next study is expected, given these few. Absolute risks spread alike, however many
    # have an event, and so do ranks.
    alike = [key for key in keys if key != "events"]
    events = found.index.get_level_values("events").to_numpy()
    for name, unit in (("concordance", 1.0), ("calibration", events)):
        n = by[name].count()
        spare = (n - 1).groupby(alike).transform("sum").clip(lower=1)
        variance = (by[name].var().fillna(0.0) * (n - 1) * unit**2).groupby(alike)
        spread = np.sqrt(variance.transform("sum") / spare) / unit
        reach = stats.t.ppf(0.5 + WITHIN / 2.0, spare) * np.sqrt(1.0 + 1.0 / n) * spread
        found[f"{name}_low"] = (found[name] - reach).clip(lower=0.0)
        found[f"{name}_high"] = found[name] + reach
    found["concordance_high"] = found.concordance_high.clip(upper=BEST)
    # Weights vanish where no interval ends, and so has no width.
    found["weight"] = found.finite
    found["weighted_log_width"] = found.finite * np.log(by.width.median()).fillna(0.0)
    return found


def table(found: pd.DataFrame, names: Mapping[str, str]) -> dict[str, Any]:
    """Return axes and values as the page has them; ``names`` are those of the axes."""
    axes = {names[level]: sorted(found.index.unique(level)) for level in names}
    found = found.reindex(pd.MultiIndex.from_product([axes[names[level]] for level in names]))
    values, shape = {}, [len(ends) for ends in axes.values()]
    for name in found.columns[found.notna().any()]:
        if found[name].isna().any():
            raise ValueError(f"{name} is not measured everywhere yet.")
        cube = found[name].to_numpy().reshape(shape)
        if sign := MONOTONE.get(name):
            cube = monotone(cube, sign, [k for k, axis in enumerate(axes) if axis in RISING])
        values[name] = [float(f"{value:.4g}") for value in cube.ravel()]
    return {"axes": axes, "values": values}


#: Axes along which more is never worse: what seems so is chance.
RISING = ("people", "epsilon")


def monotone(cube: Any, sign: int, axes: Sequence[int]) -> Any:
    """Return means that do not fall along some axes; ``sign`` -1: that do not rise."""
    rising = sign * cube
    for axis in axes * 3:
        rising = np.apply_along_axis(isotonic_regression, axis, rising)
    # By turns they come near to it; between these two it is so.
    below, above = np.flip(rising, axes), rising
    for axis in axes:
        below, above = np.minimum.accumulate(below, axis), np.maximum.accumulate(above, axis)
    return sign * (np.flip(below, axes) + above) / 2.0


def grid(rows: pd.DataFrame) -> dict[str, Any]:
    """Return what the page interpolates."""
    found = summary(rows)
    finite = np.isfinite(found.index.get_level_values("epsilon"))
    private, without = found[finite], found[~finite].droplevel("epsilon")
    model = {"people": "people", "size": "columns", "events": "events"}
    curves = {"people": "people", "size": "groups", "events": "events"}
    pure = private.loc[MODEL, "no"]
    gaussian = private.loc[MODEL, "yes"].combine_first(pure) if "yes" in _deltas(private) else pure
    studies = int(rows[rows.what == MODEL].repetition.max()) + 1
    return {
        "about": {"studies": studies, "concordance": BEST, "intervals": INTERVALS},
        "model": table(pure, model | {"epsilon": "epsilon"}),
        "model_with_delta": table(gaussian, model | {"epsilon": "epsilon"}),
        "model_without": table(without.loc[MODEL, "no"], model),
        "curves": table(private.loc[CURVES, "no"], curves | {"epsilon": "epsilon"}),
        "curves_without": table(without.loc[CURVES, "no"], curves),
    }


def _deltas(found: pd.DataFrame) -> Any:
    return found.loc[MODEL].index.unique("delta")


def written(content: Mapping[str, Any]) -> str:
    """Return the text of the grid's file."""
    return json.dumps(content, separators=(",", ":")) + "\n"


def report(rows: pd.DataFrame, pages: Pages) -> None:
    content = grid(rows)
    if pages.folder == DOCS:
        Path(planner.GRID_FILE).write_text(written(content))
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
        f"Means of {content['about']['studies']} simulated studies, without a delta, where "
        f"{shares[len(shares) // 2]:.0%} have an event. The best possible concordance is {BEST:g}, "
        f"there are two numbers to each boolean, and {INTERVALS:g} of epsilon is for intervals. In "
        "the page, means do not fall with people or epsilon: where they would, which is chance, "
        "neighbours are averaged.",
    )


GRID = Experiment(
    cases,
    measure,
    report,
    # Widths of curves hardly vary.
    repetitions=lambda case: 1 if case["what"] == CURVES else STUDIES,
)


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
    n_points = len(rows.drop_duplicates(["people", "size", "events", "epsilon"]))
    pages.table(
        "planner_accuracy",
        ("figure", "close", "median difference", "median standard error"),
        cells,
        f"At {n_points} points off the grid, {found.close.sum()} of {len(found)} figures of the "
        f"page are close to a fresh simulation: within {CLOSE:.0%} (of a share: that many points), "
        f"or within {ERRORS:g} of its standard errors. The page's range of concordance, for "
        f"{WITHIN:.0%} of studies, holds {within:.0%} of the fresh ones.",
        "Points at random between 300 and 10,000 people, 2 and 20 columns, 10 and 80 % of events, "
        f"and epsilons of 0.1 and 10, every fourth with a delta; {rows.repetition.max() + 1} fresh "
        "studies of each. Widths are compared where the page shows them.",
    )


ACCURACY = Experiment(fresh_cases, measure_fresh, report_fresh, repetitions=FRESH, quick=2)
