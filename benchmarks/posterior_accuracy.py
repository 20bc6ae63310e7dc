"""Accuracy of a posterior draw over epsilon, beside perturbation: the paper's figure 5 again.

python -m benchmarks.posterior_accuracy --data-dir FOLDER

Full chains of pSGLD on flchain are taken from ``--chains``, as posterior_convergence.py left them
there; those that are missing are left out.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks._common import SurvivalData, save, sheet, survival_sets, table
from benchmarks._posterior import CORRECTED, Problem, errors, psgld_chain
from benchmarks._run import arguments, number, part, run, setting
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.plotting.style import COLOURS, LINE_WIDTH
from skdpsurv.published import PublishedDiscreteTimeSurvival

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPSILONS = setting((0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4), quick=(1.6,))
DRAW, CHAIN = "posterior draw (MALA)", "posterior draw (pSGLD, 250 epochs)"
VARIANTS: dict[str, Callable[..., Any]] = {
    "obj_pert": DPDiscreteTimeSurvival,
    "out_pert": partial(DPDiscreteTimeSurvival, method="out_pert"),
    "published Ext-Obj-Pert": PublishedDiscreteTimeSurvival,
    "published Ext-Out-Pert": partial(PublishedDiscreteTimeSurvival, method="out_pert"),
}
#: States of MALA, after its burn-in, that stand for draws: each fit would run a chain of its own.
STATES, BURN_IN = setting((400, 200), quick=(30, 30))
#: As in accuracy.py: the smallest error over Lambda, for the published algorithms only.
LAMBDAS = setting((1e-3, 1e-2, 1e-1, 1.0), quick=(1e-1,))
PUBLIC, PAPER = "public bounds", "centred, largest norm 1 (not private)"


def as_in_the_paper(data: SurvivalData) -> SurvivalData:
    """Centre columns by their means and divide by the largest row norm: from the records."""
    X = data.X - data.X.mean(axis=0)
    return replace(data, X=X / np.linalg.norm(X, axis=1).max())


def measure(data: SurvivalData, scaling: str, repetitions: int) -> dict[str, list[float]]:
    """Return the mean relative error of each method at each epsilon."""
    if scaling == PAPER:
        data = as_in_the_paper(data)
    norm = 1.0 if scaling == PAPER else "auto"
    exact = Problem(data, 1.0).mle()
    found: dict[str, list[float]] = {name: [] for name in (*VARIANTS, DRAW)}
    for epsilon in EPSILONS:
        for name, make in VARIANTS.items():
            means = []
            for alpha in LAMBDAS if name.startswith("published") else (0.0,):
                model = make(epsilon, max_time=data.max_time, data_norm=norm, alpha=alpha)
                coefs = [model.fit(data.X, data.y).coef_ for _ in range(repetitions)]
                means.append(errors(np.array(coefs), exact).mean())
            found[name].append(min(means))
        states = Problem(data, epsilon, data_norm=norm).draws(STATES, BURN_IN)
        found[DRAW].append(errors(states, exact).mean())
    for name, values in found.items():
        print(data.name, scaling, name, np.round(values, 3), flush=True)
    return found


def full_chains(data: SurvivalData, draws: int, folder: Path) -> tuple[list[float], list[int]]:
    """Return errors of last states of whole chains, and how many chains there are."""
    exact = Problem(data, 1.0).mle()
    means, counts = [], []
    for epsilon in EPSILONS:
        problem = Problem(data, epsilon)
        last = [
            psgld_chain(problem, CORRECTED, draw, folder)[0][-1]
            for draw in range(draws)
            if problem.chain_path(CORRECTED, draw, folder).exists()
        ]
        counts.append(len(last))
        means.append(errors(np.array(last), exact).mean() if last else np.nan)
    return means, counts


def draw(ax: Axes, found: dict[str, list[float]]) -> None:
    """Draw errors over epsilon."""
    for i, (name, values) in enumerate(found.items()):
        if name == CHAIN:
            style = {"color": "black", "marker": "D", "linestyle": "none", "zorder": 5}
            ax.plot(EPSILONS, values, label=name, **style)
            continue
        published = name.startswith("published")
        style = {"linestyle": "--" if published else "-", "marker": "o", "markersize": 4}
        width = LINE_WIDTH if name in ("obj_pert", DRAW) else 1.3
        ax.plot(EPSILONS, values, color=COLOURS[i], linewidth=width, label=name, **style)
    ax.axhline(1.0, color="0.6", linewidth=1.0, linestyle=":")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    ax.set_xticks([], minor=True)
    ticks = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks([], minor=True)
    ax.grid(color="0.92", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)


@part("figure")
def figure(results: dict[tuple[str, str], dict[str, list[float]]], n_sets: int) -> None:
    """Draw a row of panels for each scaling."""
    drawn = sheet(4.2 * n_sets, 7.6)
    axes = drawn.subplots(2, n_sets, sharex=True, sharey=True, squeeze=False)
    for ((scaling, name), found), ax in zip(results.items(), axes.flat, strict=True):
        draw(ax, found)
        ax.set_title(f"{name}, {scaling}", loc="left", fontsize=10)
    for ax in axes[:, 0]:
        ax.set_ylabel("Mean relative error")
    for ax in axes[-1]:
        ax.set_xlabel("ε")
    handles, names = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    save(drawn, "posterior_accuracy")


def main() -> None:
    """Measure all sets."""
    chains = {"type": Path, "default": Path(tempfile.gettempdir()) / "skdpsurv_chains"}
    args = arguments(
        __doc__ or "", repetitions=number(20, quick=2), chains=chains, draws=number(10, quick=1)
    )
    compare(survival_sets(args.data_dir, ["third births", "unemployment"]), args)


def compare(sets: list[SurvivalData], args: argparse.Namespace) -> None:
    """One table and one figure."""
    results, rows, counts = {}, [], []
    for scaling in (PUBLIC, PAPER):
        for data in sets:
            found = measure(data, scaling, args.repetitions)
            if data.name == "flchain" and scaling == PUBLIC:
                found[CHAIN], counts = full_chains(data, args.draws, args.chains)
            results[scaling, data.name] = found
            for name, values in found.items():
                cells = ("" if np.isnan(value) else f"{value:.2f}" for value in values)
                rows.append((data.name, scaling, name, *cells))
    figure(results, len(sets))
    present = ", ".join(str(count) for count in counts if count)
    table(
        "posterior_accuracy",
        ("data", "columns", "method", *(f"ε = {e:g}" for e in EPSILONS)),
        rows,
        f"Mean relative error of the coefficients, all records; {args.repetitions} repetitions, "
        f"{STATES} states of one chain of MALA; last states of whole pSGLD chains, {present} of "
        "them at the epsilons shown; for the published algorithms the best of "
        f"Lambda = {', '.join(f'{x:g}' for x in LAMBDAS)}, chosen without privacy.",
    )


if __name__ == "__main__":
    run(main)
