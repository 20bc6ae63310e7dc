"""Competing risks: ranking, calibration and Brier score of each cause, with and without noise.

Fits to 70 % of the records are judged by the others, at each quarter of the horizon. Calibration is
the mean distance of predicted incidences from Aalen-Johansen, by fifths of predicted incidence. The
Brier score has weights by the inverse probability of not being censored; it is stated as the share
by which it is below that of Aalen-Johansen's curves, which are the same for everybody.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from benchmarks.data import split
from benchmarks.data.causes import Competing, competing
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, cell
from skdpsurv import DPCompetingRisks, PublicColumns
from skdpsurv.data.target import survival_target
from skdpsurv.evaluation import concordance_index
from skdpsurv.survival.hazards import competing_risks
from skdpsurv.survival.hazards.causes import CAP_TIMES
from skdpsurv.survival.hazards.model import published_basis

EPSILONS = (3.0, 1.0)
FOUND, APART = "found on", "kept apart"
SETS = {
    FOUND: ("flchain", "two alike, 5,000", "one rare, 5,000"),
    APART: ("hospital stays", "three, 10,000", "many events, 3,000", "follic"),
}
#: How many times the automatic cap of one cause is tried.
FACTORS = (1.0, CAP_TIMES, 2.25)
#: The share of the recalibration, beside none.
SHARE = 0.35
#: Sets where most people have an event; and n ε for each cause from which it is said to help.
MANY_EVENTS, ENOUGH = ("hospital stays", "many events, 3,000"), 2_500
LOGITS, EXACT = "Logits, no noise", "ε = ∞"
QUARTERS = 4
#: Intervals and knots of the Logits of person-period rows.
LOGIT_INTERVALS, N_KNOTS = 20, 3


def cases(setting: Setting) -> Iterator[Case]:
    for which, names in SETS.items():
        for name in setting.of(names, names[:1]):
            which_data = {"sets": which, "data": name}
            yield {**which_data, "epsilon": math.inf, "cap": 0.0, "share": 0.0}
            for epsilon in setting.of(EPSILONS, (1.0,)):
                for factor in setting.of(FACTORS, (CAP_TIMES,)):
                    yield {**which_data, "epsilon": epsilon, "cap": factor, "share": 0.0}
                yield {**which_data, "epsilon": epsilon, "cap": CAP_TIMES, "share": SHARE}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return what a fit, and without noise the Logits, say of those left out, by cause."""
    data = competing(case["data"])
    train, test = split(data.time.size, repetition)
    constant = [aalen_johansen(data, train, cause) for cause in data.causes]
    found = []
    if math.isinf(case["epsilon"]):
        found.append((LOGITS, *_logits(data, train, test)))
    with patch.object(competing_risks, "CAP_TIMES", case["cap"] or CAP_TIMES):
        key = seed(*case.values(), repetition)
        model = fitted(data, train, case["epsilon"], key, recalibration_share=case["share"])
    found.append(("DPCompetingRisks", *predicted(model, data, test)))
    return [
        {
            "fit": name,
            "cause": data.labels[j],
            "n": train.size,
            "events": int((data.cause == j + 1).sum()),
            **quality(data, test, j, risk[j], incidence[j], constant[j]),
        }
        for name, risk, incidence in found
        for j in range(len(data.labels))
    ]


def fitted(
    data: Competing, rows: np.ndarray, epsilon: float, key: int, **options: Any
) -> DPCompetingRisks:
    """Return a fit to some records."""
    model = DPCompetingRisks(
        epsilon,
        causes=data.causes,
        max_time=data.max_time,
        n_intervals=data.n_intervals,
        columns=PublicColumns(data.stated),
        random_state=key,
        **options,
    )
    return model.fit(data.X.iloc[rows], (data.cause[rows], data.time[rows]))


def predicted(
    model: DPCompetingRisks, data: Competing, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return risks of each cause, and its incidences at the quarters of the horizon."""
    at = model.n_intervals * np.arange(1, QUARTERS + 1) // QUARTERS - 1
    X = data.X.iloc[rows]
    scores = [model.predict(X, cause) for cause in data.causes]
    curves = [
        model.predict_cumulative_incidence_function(X, cause, return_array=True)[:, at]
        for cause in data.causes
    ]
    return np.array(scores), np.array(curves)


def aalen_johansen(data: Competing, rows: np.ndarray, cause: int) -> np.ndarray:
    """Return Aalen-Johansen's incidence of a cause at the quarters of the horizon."""
    time, what = data.time[rows], data.cause[rows]
    times = np.unique(time)
    at_risk = rows.size - np.searchsorted(np.sort(time), times, side="left")
    place = np.searchsorted(times, time)
    any_event = np.bincount(place[what > 0], minlength=times.size) / at_risk
    own = np.bincount(place[what == cause], minlength=times.size) / at_risk
    before = np.append(1.0, np.cumprod(1.0 - any_event)[:-1])
    curve = np.append(0.0, np.cumsum(before * own))
    return np.asarray(curve[np.searchsorted(times, _quarters(data), side="right")])


def _quarters(data: Competing) -> np.ndarray:
    return data.max_time * np.arange(1, QUARTERS + 1) / QUARTERS


def quality(
    data: Competing,
    rows: np.ndarray,
    j: int,
    risk: np.ndarray,
    incidence: np.ndarray,
    constant: np.ndarray,
) -> Row:
    """Return C, distance from Aalen-Johansen and Brier gain at each quarter, of a cause."""
    time, cause = data.time[rows], data.cause[rows]
    row: Row = {"c": concordance_index(survival_target(cause == j + 1, time), risk)}
    not_censored = _censoring(time, cause)
    before = np.maximum(not_censored(time, "left"), 0.05)
    for number, at in enumerate(_quarters(data)):
        own = incidence[:, number]
        fifth = np.argsort(np.argsort(own, kind="stable"), kind="stable") * 5 // own.size
        off = [
            abs(own[fifth == k].mean() - aalen_johansen(data, rows[fifth == k], j + 1)[number])
            for k in range(5)
        ]
        happened = (cause == j + 1) & (time <= at)
        later = max(float(not_censored(np.array([at]), "right")[0]), 0.05)
        weight = np.where(time > at, 1.0 / later, np.where(cause > 0, 1.0 / before, 0.0))
        if number == QUARTERS - 1:  # whoever is censored at the horizon was seen up to it
            weight = np.where((cause == 0) & (time >= at), 1.0 / later, weight)
        brier = [np.mean(weight * (happened - p) ** 2) for p in (own, constant[number])]
        row |= {f"off{number + 1}": float(np.mean(off)), f"brier{number + 1}": float(brier[0])}
        row[f"gain{number + 1}"] = float(1.0 - brier[0] / brier[1]) if brier[1] > 0.0 else 0.0
    return row


def _censoring(time: np.ndarray, cause: np.ndarray) -> Any:
    """Return Kaplan-Meier's share of people who are not censored, before the horizon."""
    censored = (cause == 0) & (time < time.max())
    times = np.unique(time)
    at_risk = time.size - np.searchsorted(np.sort(time), times, side="left")
    lost = np.bincount(np.searchsorted(times, time)[censored], minlength=times.size)
    curve = np.append(1.0, np.cumprod(1.0 - lost / at_risk))
    return lambda at, side: curve[np.searchsorted(times, at, side=side)]


def _logits(data: Competing, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and incidences by a Logit of each cause on person-period rows."""
    import statsmodels.api as sm

    q = data.n_intervals if data.n_intervals < LOGIT_INTERVALS * 2 else LOGIT_INTERVALS
    columns = PublicColumns(data.stated).fit(data.X)
    Z = np.asarray(columns.transform(data.X))
    last = np.clip(np.ceil(q * data.time / data.max_time), 1, q).astype(int)
    basis, odds, scores = published_basis(q, N_KNOTS), [], []
    for cause in data.causes:
        mine = data.cause[train] == cause
        seen = last[train] - ((data.cause[train] > 0) & ~mine)
        person = np.repeat(np.arange(train.size), seen)
        interval = np.concatenate([np.arange(k) for k in seen])
        happened = mine[person] & (interval == seen[person] - 1)
        rows = np.column_stack([basis[interval], Z[train][person]])
        fit = sm.Logit(happened.astype(float), rows).fit(disp=0, method="newton", maxiter=100)
        score = Z[test] @ fit.params[N_KNOTS:]
        scores.append(score)
        odds.append(np.exp(score[:, None] + basis @ fit.params[:N_KNOTS]))
    none = 1.0 / (1.0 + sum(odds))
    alive = np.cumprod(none, axis=1)
    before = np.column_stack([np.ones(test.size), alive[:, :-1]])
    at = q * np.arange(1, QUARTERS + 1) // QUARTERS - 1
    curves = [np.cumsum(before * none * own, axis=1)[:, at] for own in odds]
    return np.array(scores), np.array(curves)


def report(rows: pd.DataFrame, pages: Pages) -> None:
    private = rows[np.isfinite(rows.epsilon)].copy()
    for measure in ("off", "gain"):
        private[measure] = private[[f"{measure}{k + 1}" for k in range(QUARTERS)]].mean(axis=1)
    _table(rows[rows.share == 0.0], pages)
    _caps(private[private.share == 0.0], pages)
    _recalibration(private[private.cap == CAP_TIMES], pages)


def _table(rows: pd.DataFrame, pages: Pages) -> None:
    """Write C, calibration and Brier gain, without noise and at each epsilon."""
    rows = rows[np.isinf(rows.epsilon) | (rows.cap == CAP_TIMES)].copy()
    rows["how"] = rows.fit.where(rows.fit == LOGITS, [f"ε = {one:g}" for one in rows.epsilon])
    rows["how"] = rows.how.str.replace("inf", "∞")
    table: list[tuple[object, ...]] = []
    hows = [LOGITS, EXACT, *sorted({*rows.how} - {LOGITS, EXACT}, reverse=True)]
    groups = rows.groupby(["data", "cause"], sort=False)
    each = [(*key, how, own[own.how == how]) for key, own in groups for how in hows]
    for name, cause, how, own in each:
        first = own.iloc[0]
        table.append(
            (
                *(f"{name}, {first.n:,.0f}", f"{cause}, {first.events:,.0f}", how, cell(own.c)),
                " ".join(f"{own[f'off{k + 1}'].mean():.3f}" for k in range(QUARTERS)),
                " ".join(f"{own[f'gain{k + 1}'].mean():.2f}" for k in range(QUARTERS)),
            )
        )
    c = rows.pivot_table("c", ["data", "cause"], "how")
    same = (c[EXACT] - c[LOGITS]).abs().max()
    lost = {how: c[EXACT] - c[how] for how in hows[2:]}
    costs = [f"{loss['flchain'].max():.3f} of C at {how}" for how, loss in lost.items()]
    most = [f"{loss.max():.3f} at {how}" for how, loss in lost.items()]
    for how, loss in lost.items():
        pages.fact(f"competing_flchain_{how[-1]}", f"{loss['flchain'].max():.3f}")
    pages.table(
        "competing_risks",
        ("data, records of a fit", "cause, events", "fit", "C", "calibration", "Brier"),
        table,
        f"Without noise, it ranks as the Logits do, within {same:.4f}. For chapters of death of "
        f"flchain, privacy costs at most {' and '.join(costs)}; in the worst case of all sets, "
        f"{' and '.join(most)}.",
        "Calibration: mean distance of predicted incidences from Aalen-Johansen's, by fifths, at "
        "each quarter of the horizon. Brier: by how much the score is below that of "
        "Aalen-Johansen's curves without covariates or noise, as a share of it, at the same times; "
        f"negative is worse. Means over {_fits(rows)} splits, with new noise in each. Logits: "
        f"statsmodels, on person-period rows of {LOGIT_INTERVALS} intervals (stays: of days).",
    )


def _fits(rows: pd.DataFrame) -> int:
    return int(rows.groupby(["data", "epsilon", "cap", "fit", "cause"]).size().min())


def _recalibration(private: pd.DataFrame, pages: Pages) -> None:
    """Write C, calibration and Brier gain with a recalibration and without."""
    table: list[tuple[object, ...]] = []
    nearer: dict[str, list[float]] = {}
    for (name, epsilon), own in private.groupby(["data", "epsilon"], sort=False):
        mean = own.groupby("share")[["c", "off", "gain"]].mean()
        sets, per_cause = own.sets.iloc[0], own.n.iloc[0] * epsilon / own.cause.nunique()
        if per_cause >= ENOUGH:
            nearer.setdefault(name, []).append(100.0 * (1.0 - mean.off[SHARE] / mean.off[0.0]))
        for share in (0.0, SHARE):
            c, off, gain = mean.loc[share]
            told = f"{c:.3f}", f"{off:.4f}", f"{gain:.3f}"
            known = f"{name} ({sets})", f"{epsilon:g}", f"{per_cause:,.0f}"
            table.append((*known, "yes" if share else "no", *told))
    if many := [one for name in MANY_EVENTS for one in nearer.get(name, ())]:
        pages.fact("competing_recalibrated_least", f"{min(many):.0f}")
        pages.fact("competing_recalibrated_most", f"{max(many):.0f}")
    others = [one for name in nearer if name not in MANY_EVENTS for one in nearer[name]]
    pages.table(
        "competing_recalibration",
        ("data", "ε", "n ε for each cause", "recalibrated", "C", "calibration", "Brier"),
        table,
        f"With n ε of {ENOUGH:,} or more for each cause, recalibration by {100 * SHARE:g} % of ε "
        f"changes the distance from Aalen-Johansen by {_range(many)} where most people have an "
        f"event ({'; '.join(MANY_EVENTS)}), and by {_range(others)} elsewhere."
        if many and others
        else "",
        "Means over causes and quarters of the horizon, of what the first table has.",
    )


def _range(nearer: list[float]) -> str:
    return f"{-max(nearer):+.0f} to {-min(nearer):+.0f} %"


def _caps(private: pd.DataFrame, pages: Pages) -> None:
    """Write calibration and Brier gain by how many times the cap of one cause is."""
    table = []
    best: dict[tuple[str, float], tuple[float, float]] = {}
    for which in SETS:
        for epsilon in EPSILONS:
            own = private[(private.sets == which) & (private.epsilon == epsilon)]
            if own.empty:
                continue
            mean = own.groupby(["data", "cause", "cap"])[["c", "off", "gain"]].mean()
            each = mean.groupby("cap").mean()
            best[which, epsilon] = each.off.idxmin(), each.off[CAP_TIMES] - each.off.min()
            for factor, row in each.iterrows():
                table.append(
                    (
                        *(which, f"{epsilon:g}", f"{factor:g}"),
                        *(f"{row.c:.3f}", f"{row.off:.4f}", f"{row.gain:.3f}"),
                    )
                )
    apart = [
        f"{best[APART, e][0]:g} times at ε = {e:g} (by {best[APART, e][1]:.4f})"
        for e in EPSILONS
        if (APART, e) in best
    ]
    pages.table(
        "competing_caps",
        ("sets", "ε", "times the cap of one cause", "C", "calibration", "Brier"),
        table,
        f"The default is {CAP_TIMES:g} times the cap of one cause. On the sets kept apart, "
        f"calibration is best with {' and '.join(apart)}.",
        "Means over sets, causes and quarters of the horizon, of what the table above has. The "
        f"cap is automatic in all. Found on: {'; '.join(SETS[FOUND])}. Kept apart: "
        f"{'; '.join(SETS[APART])}.",
    )


EXPERIMENT = Experiment(cases, measure, report, 20)
