"""Effects that change over time: intervals at stated times, tests of proportional hazards, curves.

The model is true, so that the effects of the simulation are the truth: of an arm whose effect
changes sign at a step, or with the logarithm of time; or of arms whose hazards are proportional.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from skdpsurv import DPDiscreteTimeSurvival, PublicColumns

SHARE, END, Q = 0.3, 5.0, 50
#: Fits of one measurement where hazards are proportional, as levels ask for more, and where they
#: cross; how many of them are tested by Cox regression, too; and people on whom curves are tried.
FITS, COX, TRIED_ON = (40, 20), 2, 20_000
#: People, functions of time, records, epsilon.
TRIED = (
    ("moderate", "step", 5_000, 3.0),
    ("moderate", "log", 5_000, 3.0),
    ("moderate", "log", 5_000, 1.0),
    ("many events", "log", 5_000, 3.0),
)
KEYS = ["people", "functions", "n", "epsilon", "effect"]
#: Hazards, correlation of x and z, and whether people are lost.
PEOPLE = {"moderate": (0.12, 0.0, True), "many events": (0.6, 0.7, False)}
FUNCTIONS: dict[str, Any] = {"step": {"steps": [2.0]}, "log": "log"}
#: Effects of x and z; of the arm without a change, before and after the step, and at 2 with its
#: change with the logarithm.
COEF, CONSTANT, STEP, LOG = (0.5, 0.4), 0.3, (-0.8, 0.3), (-0.3, 0.7)
TIMES, QUARTERS = (0.5, 1.5, 3.0, 4.5), (1.25, 2.5, 3.75, 5.0)


def cases(setting: Setting) -> Iterator[Case]:
    for effect in (0, 1):
        for case in setting.of(TRIED, TRIED[:1]):
            yield dict(zip(KEYS, (*case, effect), strict=True))


def effects(case: Case, times: np.ndarray) -> np.ndarray:
    """Return the effect of the arm at times."""
    if not case["effect"]:
        return np.full(times.size, CONSTANT)
    if case["functions"] == "step":
        return np.where(times <= 2.0, *STEP)
    return LOG[0] + LOG[1] * np.log(times / 2.0)


def sample(case: Case, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, Any]:
    """Return columns, times of events, and what is seen of them."""
    level, correlation, lost = PEOPLE[case["people"]]
    both = rng.multivariate_normal([0.0, 0.0], [[1.0, correlation], [correlation, 1.0]], n)
    x, z = both.clip(-2, 2).T
    arm = rng.random(n) < 0.5
    base, e = level * np.exp(COEF[0] * x + COEF[1] * z), rng.exponential(size=n)
    if not case["effect"]:
        time = e / (base * np.exp(CONSTANT * arm))
    elif case["functions"] == "step":
        early, late = (base * np.exp(effect * arm) for effect in STEP)
        time = np.where(e < 2.0 * early, e / early, 2.0 + (e - 2.0 * early) / late)
    else:  # the hazard of the arm is base exp(a) (t / 2)^b
        a, power = LOG[0] * arm, 1.0 + LOG[1] * arm
        time = 2.0 * (e * power / (2.0 * base * np.exp(a))) ** (1.0 / power)
    last = np.minimum(rng.uniform(1.0, 8.0, n), END) if lost else np.full(n, END)
    y = np.empty(n, [("event", "?"), ("time", "f8")])
    y["event"], y["time"] = time <= last, np.minimum(time, last)
    return pd.DataFrame({"x": x, "z": z, "arm": arm}), time, y


def fit(case: Case, X: pd.DataFrame, y: Any, key: int, over_time: Any, **options: Any) -> Any:
    changes = {} if over_time is None else {"over_time": over_time}
    columns = {
        "x": {"bounds": (-2, 2), **changes},
        "z": (-2, 2),
        "arm": {"boolean": True, **changes},
    }
    model = DPDiscreteTimeSurvival(
        case["epsilon"],
        link="cloglog",
        max_time=END,
        n_intervals=Q,
        columns=PublicColumns(columns),
        random_state=key,
        **options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def lifelines_p(X: pd.DataFrame, y: Any) -> np.ndarray:
    """Return p-values of the test of lifelines, without privacy: of x, z and the arm."""
    from lifelines import CoxPHFitter
    from lifelines.statistics import proportional_hazard_test

    frame = X.astype(float).assign(time=y["time"], event=y["event"])
    cox = CoxPHFitter().fit(frame, "time", "event")
    return np.asarray(proportional_hazard_test(cox, frame, time_transform="log").p_value)


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return how many intervals hold, and how many tests reject."""
    times, stated = np.array(TIMES), FUNCTIONS[case["functions"]]
    truth = {"x": np.full(times.size, COEF[0]), "arm": effects(case, times)}
    found: dict[str, list[Any]] = {"x": [], "arm": [], "p": [], "theirs": []}
    for number in range(setting.of(FITS[case["effect"]], 1)):
        key = seed(*case.values(), repetition, number)
        X, _, y = sample(case, case["n"], np.random.default_rng(key))
        model = fit(case, X, y, key + 1, stated, inference_share=SHARE)
        for name in ("x", "arm"):
            ends = model.effect_over_time(name, times)
            held = (ends.iloc[:, 3] <= truth[name]) & (truth[name] <= ends.iloc[:, 4])
            found[name].append(np.column_stack([held, np.isfinite(ends.iloc[:, 2])]))
        found["p"].append(model.proportional_hazards_test()["p"].to_numpy() < 0.05)
        if number < COX:
            found["theirs"].append(lifelines_p(X, y) < 0.05)
    rows: list[Row] = []
    for name in ("x", "arm"):
        held, finite = np.sum(found[name], axis=0).T
        n = len(found[name])
        for at, one, many in zip(TIMES, held - (n - finite), finite, strict=True):
            rows.append({"what": f"{name} at {at:g}", "fits": n, "of": many, "count": one})
    rejected, theirs = (np.sum(found[name], axis=0) for name in ("p", "theirs"))
    for name, one in zip(("x", "arm", "all"), rejected, strict=True):
        rows.append({"what": f"test of {name}", "fits": len(found["p"]), "count": one})
    for name, one in zip(("x", "arm"), theirs[[0, 2]], strict=True):
        rows.append({"what": f"Cox test of {name}", "fits": len(found["theirs"]), "count": one})
    return rows


def curve_cases(setting: Setting) -> Iterator[Case]:
    return (case for case in cases(setting) if case["effect"] or setting.quick)


def measure_curves(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return mean distances of predicted from observed survival by arm, at quarters."""
    stated, key = FUNCTIONS[case["functions"]], seed("curves", *case.values(), repetition)
    X, _, y = sample(case, case["n"], np.random.default_rng(key))
    fresh, time, _ = sample(case, setting.of(TRIED_ON, 1000), np.random.default_rng(key + 2))
    rows: list[Row] = []
    for kind, over_time in (("changing", stated), ("constant", None)):
        model = fit(case, X, y, key + 3, over_time)
        curves = model.predict_survival_function(fresh, return_array=True)
        at = np.searchsorted(model.unique_times_, np.array(QUARTERS) - 1e-9)
        alive = time[:, None] > np.array(QUARTERS)
        gaps = [
            np.abs((curves[:, at] - alive)[fresh["arm"] == arm].mean(axis=0))
            for arm in (False, True)
        ]
        for quarter, gap in enumerate(np.mean(gaps, axis=0), 1):
            rows.append({"effects": kind, "quarter": quarter, "gap": gap})
    return rows


def report(rows: pd.DataFrame, pages: Pages) -> None:
    found = rows.groupby([*KEYS, "what"], sort=False)[["fits", "of", "count"]].sum().reset_index()
    held, tests = [], []
    of_null: list[float] = []
    shares: list[float] = []
    for key, own in found.groupby(KEYS, sort=False):
        people, functions, n, epsilon, effect = key
        own = own.set_index("what")
        head = f"{people}, {functions}", f"{epsilon:g}", "crossing" if effect else "proportional"
        n_fits = own.loc["test of all", "fits"]
        for name in ("x", "arm"):
            cells = own.loc[[f"{name} at {at:g}" for at in TIMES]]
            shares += (share := cells["count"] / cells["of"]).tolist()
            finite = 100.0 * cells["of"].sum() / cells["fits"].sum()
            each = (f"{100.0 * one:.1f}" for one in share)
            held.append((*head, name, f"{n_fits:,.0f}", f"{finite:.0f}", *each))
        part = own["count"] / own["fits"]
        names = ["test of x", "test of arm", "test of all", "Cox test of x", "Cox test of arm"]
        of_null += part[["test of x"] if effect else names[:3]].tolist()
        tests.append((*head, f"{n_fits:,.0f}", *(f"{100.0 * part[one]:.1f}" for one in names)))
    tested = found.loc[found["what"] == "Cox test of x", "fits"].min()
    least, most, level = (f"{100.0 * one:.1f}" for one in (min(shares), max(shares), max(of_null)))
    pages.fact("changing_effects_least", least)
    pages.fact("changing_effects_most", most)
    pages.fact("changing_effects_level", level)
    pages.table(
        "changing_effects",
        ("people", "ε", "hazards", "effect of", "fits", "finite", *(f"at {at:g}" for at in TIMES)),
        held,
        f"Intervals of effects at stated times hold the truth in {least} to {most} % of fits.",
        "Per cent of intervals that are finite, and of finite 95 % intervals that hold the truth, "
        f"of fits to {n:,.0f} new people with inference_share={SHARE:g}.",
    )
    pages.table(
        "changing_tests",
        ("people", "ε", "hazards", "fits", "x", "arm", "all", "x, Cox", "arm, Cox"),
        tests,
        f"Tests of proportional hazards at 5 % reject a true one in at most {level} % of fits.",
        "Per cent of fits in which the test rejects. The effect of x never changes, that of the "
        "arm where hazards cross. Beside it, without privacy: proportional_hazard_test of "
        f"lifelines, with the logarithm of time, on at least {tested:,.0f} of these samples.",
    )


def report_curves(rows: pd.DataFrame, pages: Pages) -> None:
    gaps = []
    for key, own in rows.groupby([*KEYS, "effects"], sort=False):
        people, functions, _, epsilon, effect, kind = key
        if effect:
            each = own.groupby("quarter").gap.mean()
            means = (f"{gap:.3f}" for gap in each)
            gaps.append((f"{people}, {functions}", f"{epsilon:g}", kind, *means))
    means = rows[rows.effect == 1].groupby([*KEYS, "quarter", "effects"]).gap.mean().unstack()
    nearer = int((means.changing < means.constant).sum())
    pages.table(
        "changing_curves",
        ("people", "ε", "effects", *(f"quarter {quarter}" for quarter in range(1, 5))),
        gaps,
        "Where hazards cross, curves of fits with changing effects are nearer to what is observed "
        f"in {nearer} of {len(gaps) * 2} quarters.",
        "Mean distance of predicted from observed survival of an arm at each quarter of the "
        f"horizon, on {TRIED_ON:,} other people.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=50)
CURVES = Experiment(curve_cases, measure_curves, report_curves, repetitions=20)
