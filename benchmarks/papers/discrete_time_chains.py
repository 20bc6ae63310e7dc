"""Figures 3 and 4 of Nguyen and Hui (2017): do chains of pSGLD reach their distribution?"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from benchmarks.data import simulated
from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages, panel, sheet
from benchmarks.papers.discrete_time import PAPER, SETS, errors, present, records
from benchmarks.posterior_chains import PosteriorChains
from benchmarks.random_walk import random_walk
from skdpsurv import DPDiscreteTimeSurvival, PosteriorSampling
from skdpsurv.dp import random_source
from skdpsurv.published import PublishedDiscreteTimeSurvival
from skdpsurv.survival.hazards.model import to_published
from skdpsurv.survival.hazards.posterior import PosteriorDraw

#: The target by a random walk; the package's two chains; the second with twice the drift and
#: nothing else changed; and the paper's to the letter.
WALK, MALA, PSGLD = "random walk (target)", "MALA", "pSGLD, corrected"
DOUBLED, LETTER = "pSGLD, twice the drift", "pSGLD, to the letter"
STYLES: dict[str, dict[str, Any]] = {
    WALK: {"color": "0.6", "linewidth": 4.0},
    MALA: {"color": "#0072B2", "linestyle": "--"},
    PSGLD: {"color": "#009E73"},
    DOUBLED: {"color": "#D55E00"},
    LETTER: {"color": "#CC79A7", "linestyle": ":"},
}
#: Of figure 3; and of a small simulated set, where the published step is not too large.
EPSILON, SMALL_EPSILON = 1.6, 100.0
SMALL = "simulated"
#: States after a burn-in that are read; of pSGLD the steps of the whole chain, of which the first
#: fifth is left out, as G is frozen after a tenth.
STATES = {WALK: 40_000, MALA: 3000}
STEPS, SMALL_STEPS = 500_000, 125_000
BURN_IN = 5000
#: Of a chain of many states that are near each other, every so many is read.
MOST = 10_000
#: Points of a density.
POINTS = 60


def _records(setting: Setting, name: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return covariates, target and options of the fit."""
    if name == SMALL:
        data = simulated(200, 3)
        return data.X, data.y, {"max_time": 1.0, "n_intervals": 10, "n_knots": 1}
    found = records(setting, name, PAPER)
    return found.X, found.y, found.options


def _draw(
    X: np.ndarray,
    y: np.ndarray,
    epsilon: float,
    chain: str,
    n_epochs: int | str = "auto",
    **options: Any,
) -> tuple[PosteriorDraw, Any]:
    """Return what the estimator would run, and the records it would run on."""
    sampler = "mala" if chain in (MALA, WALK) else "psgld"
    step = {"step_size": 0.01} if len(X) < 1000 and sampler == "psgld" else {}
    make = PublishedDiscreteTimeSurvival if chain == LETTER else DPDiscreteTimeSurvival
    method = PosteriorSampling(sampler, n_epochs=n_epochs, **step)
    model = make(epsilon, method=method, **options)
    fit = model.prepare(X, y)
    draw = fit.plan.only_measurement
    assert isinstance(draw, PosteriorDraw)
    if chain == DOUBLED:
        # Twice the energy, twice its gradient; the noise is the same.
        law = draw.sanitizer
        twice = replace(law, rate=2.0 * law.rate, prior_precision=2.0 * law.prior_precision)
        object.__setattr__(draw, "sanitizer", twice)
    return draw, fit.records


def _parameters(draw: PosteriorDraw, states: np.ndarray) -> np.ndarray:
    """Return states as f: the baseline's coefficients in the published basis, then the others."""
    n_knots = draw.model.n_knots
    found = []
    for state in states:
        baseline, coef = draw.unscaled(state)
        found.append([*to_published(baseline, n_knots), *coef])
    return np.array(found)


def density_cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(tuple(SETS), ("flchain",)):
        for chain in (WALK, MALA, PSGLD):
            yield {"data": name, "link": "logit", "chain": chain}
    for chain in STYLES:
        yield {"data": SMALL, "link": "logit", "chain": chain}
    for link in ("cloglog", "probit"):
        for chain in (WALK, MALA):
            yield {"data": SMALL, "link": link, "chain": chain}


def density_measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return means and spreads of all parameters, and densities of two coefficients."""
    X, y, options = _records(setting, case["data"])
    epsilon = SMALL_EPSILON if case["data"] == SMALL else EPSILON
    chain = case["chain"]
    steps = SMALL_STEPS if case["data"] == SMALL else STEPS
    quick = 100 if chain in (MALA, WALK) else max(1, math.ceil(1000 / len(X)))
    n_epochs = setting.of("auto" if chain in (MALA, WALK) else math.ceil(steps / len(X)), quick)
    draw, read = _draw(X, y, epsilon, chain, n_epochs, link=case["link"], **options)
    start = time.process_time()
    if chain == WALK:
        n_states, burn_in = setting.of(STATES[WALK], 300), setting.of(BURN_IN, 100)
        states = np.array(list(random_walk(draw.target(read), n_states, burn_in)))
    else:
        # MALA's own burn-in.
        burn_in = draw.schedule.burn_in(len(X)) if chain == MALA else setting.of(steps // 5, 100)
        n_states = setting.of(STATES.get(chain, steps - steps // 5), 300)
        found = draw.states(read, random_source(None))
        states = np.array(list(islice(found, burn_in, burn_in + n_states)))
    seconds = time.process_time() - start
    kept = states[:: max(1, len(states) // MOST)]
    f = _parameters(draw, kept)
    sizes = PosteriorChains(kept[None], ()).effective_sample_size()
    n_knots = draw.model.n_knots
    rows: list[Row] = [
        {
            "parameter": f"{'α' if j < n_knots else 'β'}{j + 1 - (j >= n_knots) * n_knots}",
            "mean": f[:, j].mean(),
            "sd": f[:, j].std(),
            "size": sizes[j],
            "seconds": seconds,
        }
        for j in range(f.shape[1])
    ]
    for j in (n_knots, n_knots + 1):
        middle, spread = f[:, j].mean(), f[:, j].std()
        x = np.linspace(middle - 4.0 * spread, middle + 4.0 * spread, POINTS)
        name = rows[j]["parameter"]
        density = gaussian_kde(f[:: max(1, len(f) // 4000), j])(x)
        rows += [{"parameter": name, "x": a, "density": b} for a, b in zip(x, density, strict=True)]
    return rows


def density_report(rows: pd.DataFrame, pages: Pages) -> None:
    summary = rows[rows.x.isna()]
    shift = _law(summary, pages)
    _drift(summary[(summary.data == SMALL) & (summary.link == "logit")], pages)
    _densities(rows[rows.x.notna() & (rows.link == "logit")], pages)
    for name in present(rows):
        if (name, "logit", PSGLD) in shift.index:
            away, noise = shift.loc[(name, "logit", PSGLD), ["shift", "noise"]]
            pages.verdict(
                "Discrete time, figure 3: coefficients of pSGLD against the target",
                name + (" (for SB)" if name == "child mortality" else ""),
                f"corrected: means {away:.2f} sd from the target's (noise {noise:.2f})",
                '"very similar to the normal"',
                "reproduced" if max(away, noise) < 0.3 else "in part",
            )
    pages.verdict("Discrete time, figure 3", "SB", "no data", "not readable", "cannot be had")


def _law(summary: pd.DataFrame, pages: Pages) -> pd.DataFrame:
    """Compare chains with the random walk: means, standard deviations, and independent draws."""
    found, cells = {}, []
    for (name, link), group in summary.groupby(["data", "link"], sort=False):
        by = {chain: part.set_index("parameter") for chain, part in group.groupby("chain")}
        if WALK not in by:
            continue
        walk = by[WALK]
        for chain in (MALA, PSGLD):
            if chain not in by:
                continue
            other = by[chain]
            # Of the parameter that mixes worst.
            noise = np.sqrt((1.0 / other["size"] + 1.0 / walk["size"]).max())
            away = ((other["mean"] - walk["mean"]).abs() / walk["sd"]).max()
            ratio = other["sd"] / walk["sd"]
            speed = other["size"].min() / other["seconds"].iloc[0]
            found[name, link, chain] = {
                "shift": away,
                "noise": noise,
                "ratio": (ratio - 1.0).abs().max(),
                "speed": speed,
                "size": other["size"].min(),
            }
            cells.append(
                (
                    name,
                    link,
                    chain,
                    f"{other['size'].min():,.0f}",
                    f"{away:.2f}",
                    f"{ratio.min():.2f} to {ratio.max():.2f}",
                    f"{noise:.2f}",
                    f"{speed:.2g}",
                )
            )
    table = pd.DataFrame(found).T
    mala = table.xs(MALA, level=2)
    real = table.drop(index=SMALL, level=0)
    slow = real[real.index.get_level_values(2) == PSGLD]
    more = ""
    if len(slow):
        fast = real.loc[[(*key[:2], MALA) for key in slow.index], "speed"]
        times = fast.to_numpy() / slow.speed.to_numpy()
        more = (
            f" On real sets {STEPS:,} steps of corrected pSGLD are worth {slow['size'].min():.0f} "
            f"to {slow['size'].max():.0f} independent draws, so that it differs from the target by "
            f"up to {slow['shift'].max():.1f} standard deviations; MALA makes {times.min():.0f} to "
            f"{times.max():.0f} times as many a second."
        )
    pages.table(
        "discrete_time_law",
        (
            "data",
            "link",
            "chain",
            "independent draws",
            "largest shift of a mean, in sd",
            "ratios of sd",
            "noise",
            "independent draws a second",
        ),
        cells,
        "Against a random walk with code of its own, means of MALA differ by at most "
        f"{mala['shift'].max():.2f} standard deviations, and standard deviations by at most "
        f"{mala['ratio'].max():.0%}.{more}",
        f"ε = {EPSILON:g}, columns as in the paper; simulated: n = 200, q = 10, constant "
        f"baseline, ε = {SMALL_EPSILON:g}. Largest over all parameters; noise: a standard error of "
        "a shift. Draws and seconds of one thread, of the parameter that mixes worst.",
    )
    return table


def _drift(summary: pd.DataFrame, pages: Pages) -> None:
    by = {chain: part.set_index("parameter") for chain, part in summary.groupby("chain")}
    walk = by.pop(WALK)
    coefs = [name for name in walk.index if name.startswith("β")]
    ratios = {chain: (by[chain]["sd"] / walk["sd"])[coefs] for chain in STYLES if chain in by}
    cells = [(chain, *(f"{ratio:.2f}" for ratio in each)) for chain, each in ratios.items()]
    pages.table(
        "discrete_time_drift",
        ("chain", *(f"sd of {name} over the target's" for name in coefs)),
        cells,
        f"With the published drift and all else the same, standard deviations are "
        f"{ratios[DOUBLED].mean():.2f} of the target's, with the corrected drift "
        f"{ratios[PSGLD].mean():.2f}; $1/\\sqrt 2$ is {np.sqrt(0.5):.3f}.",
        f"Simulated, n = 200, ε = {SMALL_EPSILON:g}; pSGLD with all records at a step and "
        f"a_1 = 0.01 in all chains, {SMALL_STEPS:,} steps.",
    )


def _densities(rows: pd.DataFrame, pages: Pages) -> None:
    sets = [*present(rows), *([SMALL] if SMALL in set(rows.data) else [])]
    drawn = sheet(3.1 * len(sets) + 0.4, 6.0)
    panels = drawn.subplots(2, len(sets), squeeze=False)
    for j, line in enumerate(panels, start=1):
        for ax, name in zip(line, sets, strict=True):
            part = rows[(rows.data == name) & (rows.parameter == f"β{j}")]
            for chain, style in STYLES.items():
                curve = part[part.chain == chain]
                if len(curve):
                    ax.plot(curve.x, curve.density, label=chain, **({"linewidth": 1.8} | style))
            if len(walk := part[part.chain == WALK]):
                ax.set_xlim(walk.x.min(), walk.x.max())
            ax.set_title(f"{name}, β{j}", loc="left", fontweight="bold", fontsize=11)
            ax.set_ylim(bottom=0.0)
            ax.set_yticks([])
            panel(ax)
        line[0].set_ylabel("Density")
    handles, labels = panels[0][-1].get_legend_handles_labels()
    columns = min(5, 1 + len(sets))
    drawn.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    pages.figure("discrete_time_densities", drawn)


DENSITIES = Experiment(density_cases, density_measure, density_report)

#: Of figure 4, on flchain, with the paper's number of epochs; to the letter only at one epsilon.
EPSILONS, EPOCHS = (0.1, EPSILON, 6.4), 250
#: States that are read in each epoch.
READ = 100


def epoch_cases(setting: Setting) -> Iterator[Case]:
    for epsilon in setting.of(EPSILONS, (EPSILON,)):
        for chain in (PSGLD, LETTER, MALA) if epsilon == EPSILON else (PSGLD, MALA):
            yield {"data": "flchain", "epsilon": epsilon, "chain": chain}


def epoch_measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return the mean relative error in each epoch of a chain; of MALA in all that follow it."""
    data, chain = records(setting, case["data"], PAPER), case["chain"]
    exact = np.concatenate([data.exact.baseline_coef_, data.exact.coef_])
    n_knots, n = data.exact.baseline_coef_.size, len(data.X)
    n_epochs = setting.of("auto", 100 if chain == MALA else 1)
    draw, read = _draw(data.X, data.y, case["epsilon"], chain, n_epochs, **data.options)
    states = draw.states(read, random_source(None))
    if chain == MALA:
        burn_in = draw.schedule.burn_in(n)
        epochs = iter([list(islice(states, burn_in, burn_in + setting.of(1500, 50)))])
    else:
        n = setting.of(n, 100)
        every, length = max(1, n // READ), setting.of(EPOCHS, 3)
        # A chain of two million states is read as it goes.
        epochs = (list(islice(states, n))[every - 1 :: every] for _ in range(length))
    rows: list[Row] = []
    for epoch, found in enumerate(epochs, start=1):
        f = _parameters(draw, np.array(found))
        beta = errors(f[:, n_knots:], exact[n_knots:]).mean()
        rows.append({"epoch": epoch, "error": errors(f, exact).mean(), "coefficients": beta})
    return rows


def epoch_report(rows: pd.DataFrame, pages: Pages) -> None:
    drawn = sheet(10.0, 4.4)
    panels = drawn.subplots(1, 2, sharey=True, squeeze=False)[0]
    by = {key: part.sort_values("epoch") for key, part in rows.groupby(["chain", "epsilon"])}
    epsilons = sorted(rows.epsilon.unique())
    colours = dict(zip(EPSILONS, ("#0072B2", "#D55E00", "#009E73"), strict=True))
    last = {}
    for ax, chain in zip(panels, (PSGLD, LETTER), strict=True):
        for epsilon in epsilons:
            if (chain, epsilon) not in by:
                continue
            curve = by[chain, epsilon]
            ax.plot(curve.epoch, curve.error, color=colours[epsilon], label=f"ε = {epsilon:g}")
            last[chain, epsilon] = curve.error[curve.epoch > 0.8 * curve.epoch.max()].mean()
            if (MALA, epsilon) in by:
                last[MALA, epsilon] = by[MALA, epsilon].error.mean()
                ax.axhline(last[MALA, epsilon], color=colours[epsilon], linestyle=":")
        ax.set_title(chain, loc="left", fontweight="bold", fontsize=11)
        ax.set_yscale("log")
        ticks = (0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_yticks([], minor=True)
        ax.set_xlabel("Epochs of n steps")
        panel(ax)
    panels[0].set_ylabel("Mean relative error of f within the epoch")
    panels[0].legend(frameon=False)
    pages.figure("discrete_time_epochs", drawn)
    _epoch_table(last, rows.groupby("chain").epoch.max(), epsilons, pages)


def _epoch_table(
    last: dict[tuple[str, float], float], lengths: Any, epsilons: list[float], pages: Pages
) -> None:
    ratio = {
        chain: [
            last[chain, e] / last[MALA, e]
            for e in epsilons
            if (chain, e) in last and (MALA, e) in last
        ]
        for chain in (PSGLD, LETTER)
    }
    if not all(ratio.values()):
        return
    span = {chain: _span(each) for chain, each in ratio.items()}
    cells = [
        (
            f"{chain}, {lengths[chain]} epochs" if chain != MALA else f"{MALA} (target)",
            *(f"{last[chain, e]:.2f}" if (chain, e) in last else "" for e in epsilons),
        )
        for chain in (MALA, PSGLD, LETTER)
    ]
    pages.table(
        "discrete_time_epochs",
        ("chain", *(f"ε = {epsilon:g}" for epsilon in epsilons)),
        cells,
        f"Figure 4. Over its last fifth the corrected chain has {span[PSGLD]} times the target's "
        f"error, and the chain to the letter of the paper {span[LETTER]} times, after "
        f"{lengths[PSGLD]} and {lengths[LETTER]} epochs.",
        "Mean relative error of all parameters, flchain, columns as in the paper, q = 200, k = "
        "200; one chain each, its last fifth.",
    )
    stable = max(ratio[PSGLD]) < 2.0
    pages.verdict(
        "Discrete time, figure 4: error over epochs becomes stable, over the target's",
        "flchain",
        f"corrected {span[PSGLD]}; to the letter {span[LETTER]}",
        '"stable after 250 epochs"',
        "reproduced"
        if stable and max(ratio[LETTER]) < 2.0
        else "in part"
        if stable
        else "not reproduced",
    )


def _span(values: list[float]) -> str:
    ends = [f"{end:.2f}" if end < 10.0 else f"{end:.0f}" for end in (min(values), max(values))]
    return " to ".join(dict.fromkeys(ends))


EPOCH = Experiment(epoch_cases, epoch_measure, epoch_report)
