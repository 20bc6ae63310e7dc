"""Absolute risk: how far predicted survival is from what happens, with and without recalibration.

Data sets and simulations on which defaults were found are told from those kept apart. Calibration
is the mean distance of predicted survival from Kaplan-Meier, by fifths of predicted risk, at the
quartiles of event times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from sksurv.nonparametric import kaplan_meier_estimator

from benchmarks.data import SURVIVAL, Survival, split, survival, survset
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, cell, panel, sheet
from benchmarks.studies.absolute_risk_data import SIMULATED, simulated
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.evaluation import concordance_index

EPSILONS = (3.0, 1.0, 0.3)
FOUND, APART = "found on", "kept apart"
DEFAULT, WITHOUT = FITS = ("default", "not recalibrated")
OPTIONS = {DEFAULT: {}, WITHOUT: {"recalibration_share": 0.0}}
#: Further data sets are those of SurvSet: all with 600 records or more and at most 100 columns, and
#: four small ones.
SETS = {
    FOUND: (
        *("flchain", "third births", "unemployment", "child mortality", "GBSG2", "WHAS500"),
        *("support2", "dataDIVAT1", "nwtco", "UnempDur", "rott2", "acath", "TRACE", "colon"),
        *SIMULATED[FOUND],
    ),
    APART: (
        *("prostateSurvival", "Dialysis", "rhc", "Framingham", "dataDIVAT3", "smarto", "divorce"),
        *("Aids2", "scania", "dataDIVAT2", "actg", "LeukSurv", "rdata", "grace"),
        *("follic", "uis", "vlbw", "cost"),
        *SIMULATED[APART],
    ),
}
#: Larger ones are cut to this, for time.
MOST_RECORDS = 12_000
HORIZONS = (0.25, 0.5, 0.75)
#: Random splits of one measurement.
SPLITS = 5
COLOURS = {FOUND: "0.6", APART: "#0072B2"}


def cases(setting: Setting) -> Iterator[Case]:
    for which, names in SETS.items():
        for name in setting.of(names, (names[0], names[-1])):
            for epsilon in (math.inf, *setting.of(EPSILONS, (1.0,))):
                yield {"sets": which, "data": name, "epsilon": epsilon}


def records(setting: Setting, name: str) -> Survival:
    """Return a data set, or the first records of a large one in a random order."""
    if name in SIMULATED[FOUND] or name in SIMULATED[APART]:
        data = simulated(name)
    else:
        data = survival(setting, name) if name in SURVIVAL else survset(name)
    rows = np.random.default_rng(0).permutation(data.time.size)[:MOST_RECORDS]
    return Survival(
        name, data.X[rows], data.event[rows], data.time[rows], data.max_time, data.columns, ()
    )


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return what fits to 70 % of the records say of the others, in the mean over splits."""
    data, epsilon = records(setting, case["data"]), case["epsilon"]
    rows: list[Row] = []
    for fit in FITS if math.isfinite(epsilon) else FITS[:1]:
        found = []
        for number in range(SPLITS * repetition, setting.of(SPLITS, 1) + SPLITS * repetition):
            train, test = split(data.time.size, number)
            model = DPDiscreteTimeSurvival(
                epsilon,
                max_time=data.max_time,
                random_state=seed(*case.values(), fit, number),
                **OPTIONS[fit],
            ).fit(data.X[train], data.y[train])
            found.append(quality(model, data, test))
        mean = pd.DataFrame(found).mean().to_dict()
        rows.append({"fit": fit, "n": data.time.size, "columns": data.X.shape[1], **mean})
    return rows


def quality(model: DPDiscreteTimeSurvival, data: Survival, rows: np.ndarray) -> Row:
    """Return C, mean distance from Kaplan-Meier by fifths, and Brier scores.

    Brier scores, of the model and of Kaplan-Meier, are means up to the ninth tenth of follow-up.
    """
    event, time, X = data.event[rows], data.time[rows], data.X[rows]
    risk = model.predict(X)
    curves = model.predict_survival_function(X, return_array=True)
    curves = np.concatenate([np.ones((len(X), 1)), curves], axis=1)
    grid = np.concatenate([[0.0], model.unique_times_])

    def predicted(at: float) -> np.ndarray:
        # A constant hazard between the ends of intervals.
        place = int(np.clip(np.searchsorted(grid, at), 1, grid.size - 1))
        part = (at - grid[place - 1]) / (grid[place] - grid[place - 1])
        return curves[:, place - 1] ** (1.0 - part) * curves[:, place] ** part

    fifth = np.argsort(np.argsort(risk, kind="stable"), kind="stable") * 5 // risk.size
    distances = []
    for at in np.quantile(time[event], HORIZONS):
        for k in range(5):
            seen = _step(*kaplan_meier_estimator(event[fifth == k], time[fifth == k]), at)
            distances.append(abs(predicted(at)[fifth == k].mean() - float(seen)))
    whole, censoring = kaplan_meier_estimator(event, time), kaplan_meier_estimator(~event, time)
    # Weights by the inverse probability of not being censored, at most 20.
    before = np.maximum(_step(*censoring, time, side="left"), 0.05)
    scores = []
    for at in np.linspace(0.0, 0.999 * np.quantile(time, 0.9), 41)[1:]:
        later = np.maximum(_step(*censoring, at), 0.05)
        weight = np.where(time > at, 1.0 / later, np.where(event, 1.0 / before, 0.0))
        alive = (time > at).astype(float)
        reference = _step(*whole, at)
        scores.append([np.mean(weight * (alive - s) ** 2) for s in (predicted(at), reference)])
    own, of_kaplan_meier = np.mean(scores, axis=0)
    return {
        "c": concordance_index(data.y[rows], risk),
        "off": float(np.mean(distances)),
        "brier": own,
        "kaplan_meier": of_kaplan_meier,
    }


def _step(times: np.ndarray, values: np.ndarray, at: object, side: str = "right") -> np.ndarray:
    """Return a step function, which is 1 before its first time."""
    return np.append(1.0, values)[np.searchsorted(times, at, side=side)]  # type: ignore[call-overload, no-any-return]


def report(rows: pd.DataFrame, pages: Pages) -> None:
    mean = rows.groupby(["sets", "data", "epsilon", "fit"]).mean().reset_index()
    exact = mean[np.isinf(mean.epsilon)].set_index(["sets", "data"])
    private = mean[np.isfinite(mean.epsilon)].set_index(["epsilon", "fit", "sets", "data"])
    private["loss"] = exact.c.reindex(private.index.droplevel([0, 1])).to_numpy() - private.c
    _summary(exact, private.sort_index(), rows, pages)
    _by_set(exact, private.sort_index(), pages)
    _figure(private.sort_index(), pages)


def _summary(exact: pd.DataFrame, private: pd.DataFrame, rows: pd.DataFrame, pages: Pages) -> None:
    table: list[tuple[object, ...]] = []
    kept = [which for which in SETS if which in set(rows.sets)]
    epsilons = sorted(set(private.index.get_level_values("epsilon")), reverse=True)
    for which in kept:
        known = exact.loc[which]
        table.append((which, "without privacy", "", "", *_scores(known), ""))
        for epsilon in epsilons:
            for fit in FITS:
                found = private.loc[epsilon, fit, which]
                worst = (found.brier - private.loc[epsilon, WITHOUT, which].brier).max()
                table.append(
                    (which, f"{epsilon:g}", fit, cell(found.loss), *_scores(found), f"{worst:.3f}")
                )
    best, one = exact.loc[APART], 1.0
    ours, raw = private.loc[one, DEFAULT, APART], private.loc[one, WITHOUT, APART]
    small = private.loc[epsilons[-1]]
    worse = small.loc[DEFAULT].brier - small.loc[WITHOUT].brier
    pages.table(
        "absolute_risk",
        (
            *("data sets", "ε", "fit", "loss in C", "off by", "Brier score", "of Kaplan-Meier"),
            "worst set",
        ),
        table,
        f"Over {len(best)} sets kept apart, predicted survival is off by {ours.off.mean():.3f} on "
        f"average at ε = 1, by {raw.off.mean():.3f} if not recalibrated, and by "
        f"{best.off.mean():.3f} without privacy. The C-index is lower by {ours.loss.mean():.3f}, "
        f"and by {raw.loss.mean():.3f} if not recalibrated. At ε = {epsilons[-1]:g} recalibration "
        f"makes the Brier score worse by {worse.max():.3f} at most, on {worse.idxmax()[1]}.",
        f"Means over sets of {_splits(rows)} random splits, 70/30, ± 95 % for another "
        "choice of sets. Loss: C-index of the fit without privacy less that of this. Worst: the "
        "largest Brier score above that of the fit that is not recalibrated.",
    )
    if len(best) == len(SETS[APART]):
        pages.fact("recalibration_apart_sets", f"{len(best)}")
        pages.fact("recalibration_apart", f"{ours.off.mean():.3f}")
        pages.fact("recalibration_apart_public", f"{best.off.mean():.3f}")
        pages.fact("ranking_apart_loss", f"{ours.loss.mean():.3f}")


def _scores(found: pd.DataFrame) -> list[str]:
    return [f"{found[column].mean():.3f}" for column in ("off", "brier", "kaplan_meier")]


def _splits(rows: pd.DataFrame) -> int:
    return SPLITS * (int(rows.repetition.max()) + 1)


def _by_set(exact: pd.DataFrame, private: pd.DataFrame, pages: Pages) -> None:
    ours = private.loc[1.0, DEFAULT]
    table = []
    for which, name in ((which, name) for which, names in SETS.items() for name in names):
        if (which, name) in ours.index:
            fits = exact.loc[which, name], ours.loc[which, name]
            cells = [f"{fit[column]:.3f}" for column in ("c", "off", "brier") for fit in fits]
            size = f"{fits[0].n:,.0f}", f"{fits[0]['columns']:.0f}"
            table.append((name, which, *size, *cells, f"{fits[0].kaplan_meier:.3f}"))
    beaten = int((ours.brier > ours.kaplan_meier).sum())
    pages.table(
        "absolute_risk_sets",
        (
            *("data", "sets", "records", "columns"),
            *(f"{what}, ε = {e}" for what in ("C", "off by", "Brier") for e in ("∞", "1")),
            "Brier of Kaplan-Meier",
        ),
        table,
        "At ε = 1 the Brier score is worse than that of Kaplan-Meier, which knows no columns and "
        f"no privacy, on {beaten} of {len(ours)} sets.",
        "The default; otherwise as above.",
    )


def _figure(private: pd.DataFrame, pages: Pages) -> None:
    """Draw each set's distance with recalibration over that without, a panel for each epsilon."""
    epsilons = sorted(set(private.index.get_level_values("epsilon")), reverse=True)
    drawn = sheet(3.4 * len(epsilons) + 0.4, 4.1)
    panels = drawn.subplots(1, len(epsilons), sharex=True, sharey=True, squeeze=False)[0]
    for ax, epsilon in zip(panels, epsilons, strict=True):
        ends = (0.006, 0.8)
        ax.loglog(ends, ends, color="black", linewidth=0.8)
        for which, colour in COLOURS.items():
            x, y = (private.loc[epsilon, fit, which].off for fit in (WITHOUT, DEFAULT))
            ax.plot(x, y.reindex(x.index), "o", color=colour, markersize=6, alpha=0.8)
        ax.set_title(f"ε = {epsilon:g}", loc="left", fontweight="bold", fontsize=11)
        ticks = (0.01, 0.03, 0.1, 0.3)
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_xlabel("Off by, not recalibrated")
        panel(ax)
    panels[0].set_ylabel("Off by, default")
    labels = ["no change", *(f"sets {which}" for which in COLOURS)]
    drawn.legend(panels[0].get_lines(), labels, loc="outside lower center", ncols=3, frameon=False)
    pages.figure("absolute_risk", drawn)


RISK = Experiment(cases, measure, report, repetitions=6)
