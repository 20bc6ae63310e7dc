"""Chains of posterior sampling: do they reach their law, which law is it, and how fast.

python -m benchmarks.posterior_convergence --data-dir FOLDER

Figures 3 and 4 of Nguyen and Hui (2017) made again. A chain of pSGLD over 250 epochs of flchain has
two million steps; chains are kept in ``--chains`` and made if they are not there (``--draws`` of
each). ``--only`` runs one part: law, figures or speed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
from scipy.stats import gaussian_kde

from benchmarks._common import SurvivalData, flchain, save, sheet, survival_sets, table
from benchmarks._posterior import (
    CORRECTED,
    DOUBLED,
    EPOCHS,
    LETTER,
    Problem,
    effective_size,
    enough,
    errors,
    mala,
    psgld_chain,
    psgld_states,
    random_walk,
)
from benchmarks._run import arguments, number, part, run, setting
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.plotting.style import COLOURS, LINE_WIDTH

EPSILONS = setting((0.1, 1.6, 6.4), quick=(1.6,))
#: Of the densities and the tables.
EPSILON, SMALL_EPSILON = 1.6, 6.4
LINKS = setting(("logit", "cloglog", "probit"), quick=("logit",))
#: Chains are read after this share of them.
SETTLED = 0.2
#: Timed fits, before and after the long chain.
FITS = setting(5, quick=1)


def small() -> SurvivalData:
    """Return 200 simulated records."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-1.0, 1.0, (200, 3))
    t = rng.exponential(np.exp(-X @ [1.0, -0.5, 0.0]))
    censored = rng.uniform(0.0, 2.0, 200)
    y = np.array(
        [(a <= b, min(a, b)) for a, b in zip(t, censored, strict=True)],
        dtype=[("event", bool), ("time", float)],
    )
    return SurvivalData("simulated", X, y, 2.0)


def settled(chain: tuple[np.ndarray, np.ndarray, float]) -> np.ndarray:
    """Return the states of a chain after its first fifth."""
    return chain[0][int(SETTLED * len(chain[0])) :]


def law(problems: list[Problem]) -> None:
    """Table: means and standard deviations of MALA against a random walk."""
    rows = []
    for problem in problems:
        target, start = problem.target()
        x, y = enough(mala(target)), enough(random_walk(target, start))
        sizes = effective_size(x), effective_size(y)
        noise = 1.0 / sizes[0] + 1.0 / sizes[1]
        means = np.abs(x.mean(axis=0) - y.mean(axis=0)) / y.std(axis=0)
        ratios = np.abs(x.std(axis=0) / y.std(axis=0) - 1.0)
        rows.append(
            (
                f"{problem.data.name}, n = {len(problem.data.y):,}",
                f"{problem.epsilon:g}",
                problem.link,
                *(
                    f"{size.min():,.0f} of {len(z):,}"
                    for size, z in zip(sizes, (x, y), strict=True)
                ),
                f"{means.max():.3f} ({np.sqrt(noise.max()):.3f})",
                f"{ratios.max():.3f} ({np.sqrt(noise.max() / 2.0):.3f})",
            )
        )
        print(*rows[-1], flush=True)
        table(
            "posterior_law",
            (
                "data",
                "ε",
                "link",
                "least ESS, MALA",
                "least ESS, random walk",
                "difference of means in sd (noise)",
                "ratio of sd, less 1 (noise)",
            ),
            rows,
            "Largest over all parameters, baseline included. The random walk has its own code, for "
            "the energy too. Noise: one standard error, of the parameter that mixes worst, by the "
            "formula for a normal law; the simulated sets have heavier tails (kurtosis up to 6), "
            "which doubles the noise of the ratio.",
        )


@cache
def long_walk(problem: Problem) -> np.ndarray:
    """Return coefficients from a random walk that stand for the law."""
    model = problem.plan().model
    walk = enough(random_walk(*problem.target()), size=1000.0)
    return walk[:, model.n_knots :] / model.data_norm


#: Where pSGLD mixes well: few parameters, and all records at a step.
SMALL = {"n_intervals": 10, "n_knots": 1}
SMALL_CHAIN = {"step_size": 0.01, "batch_size": 200, "n_epochs": setting(500, quick=5)}


def small_chains() -> tuple[Problem, dict[str, np.ndarray]]:
    """Return the chains of a small problem, whose published step is not too large."""
    problem = Problem(small(), 100.0, **SMALL)
    found = {
        "random walk (target)": long_walk(problem),
        "MALA": problem.draws(setting(20_000, quick=1000)),
    }
    n_steps = SMALL_CHAIN["n_epochs"] * len(problem.data.y)
    for kind, name in (
        (CORRECTED, "pSGLD, corrected"),
        (DOUBLED, "pSGLD, twice the drift, G frozen"),
        (LETTER, "pSGLD, published step"),
    ):
        states = psgld_states(problem, kind, n_steps, **SMALL_CHAIN)
        found[name] = np.array(list(islice(states, n_steps // 10, None)))
    return problem, found


def drift(found: dict[str, np.ndarray]) -> None:
    """Table: spread of chains, relative to that of the target."""
    exact = found["random walk (target)"]
    rows = []
    for name, chain in list(found.items())[1:]:
        ratio = chain.std(axis=0) / exact.std(axis=0)
        away = np.abs(chain.mean(axis=0) - exact.mean(axis=0)) / exact.std(axis=0)
        size = effective_size(chain).min()
        rows.append(
            (
                name,
                *(f"{r:.3f}" for r in ratio),
                f"{away.max():.2f}",
                f"{min(size, len(chain)):,.0f}",
            )
        )
    names = (f"sd of coefficient {j} / target's" for j in range(1, exact.shape[1] + 1))
    table(
        "posterior_drift",
        ("chain", *names, "largest shift of mean, in sd", "least ESS"),
        rows,
        "Simulated, n = 200, q = 10, a constant baseline, ε = 100; all records at a step, "
        f"a_1 = 0.01, {SMALL_CHAIN['n_epochs'] * 200:,} steps; target by a random walk. "
        "1/√2 = 0.707.",
    )


def by_epoch(chain: tuple[np.ndarray, np.ndarray, float], mle: np.ndarray) -> np.ndarray:
    """Return the mean relative error within each epoch."""
    epoch = np.ceil(chain[1] - 1e-9).astype(int) - 1
    found = errors(chain[0], mle)
    return np.bincount(epoch, found) / np.bincount(epoch)


def available(problem: Problem, kind: str, draws: int, folder: Path) -> Iterator[tuple]:
    """Yield chains: of the corrected kind all that are asked for, of the others one.

    With 0 draws, nothing is made: one of each that is there.
    """
    for draw in range(max(1, draws) if kind == CORRECTED else 1):
        if draws > 0 or problem.chain_path(kind, draw, folder).exists():
            yield psgld_chain(problem, kind, draw, folder)


@part("figure of convergence")
def convergence(data: SurvivalData, draws: int, folder: Path) -> None:
    """Figure: relative error over epochs, as in the paper's figure 4."""
    mle = Problem(data, EPSILON).mle()
    found = {
        (kind, epsilon): [by_epoch(c, mle) for c in chains]
        for kind, epsilons in ((CORRECTED, EPSILONS), (LETTER, (EPSILON,)))
        for epsilon in epsilons
        if (chains := list(available(Problem(data, epsilon), kind, draws, folder)))
    }
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    drawn = sheet(1.0 + 5.0 * len(kinds), 4.6)
    axes = dict(
        zip(kinds, drawn.subplots(1, len(kinds), sharey=True, squeeze=False)[0], strict=True)
    )
    for kind, ax in axes.items():
        several = (
            "one chain each" if max(1, draws) == 1 or kind == LETTER else f"{draws} chains each"
        )
        start = "corrected, annealed" if kind == CORRECTED else "to the letter, from f = 0"
        ax.set_title(f"pSGLD, {start} ({several})", loc="left", fontsize=11)
        for (_, epsilon), curves in ((k, v) for k, v in found.items() if k[0] == kind):
            colour = COLOURS[EPSILONS.index(epsilon)]
            for curve in curves:
                ax.plot(np.arange(1, EPOCHS + 1), curve, color=colour, alpha=0.35, linewidth=0.8)
            mean = np.mean(curves, axis=0)
            print(kind, epsilon, "MRE of the last 50 epochs", mean[-50:].mean().round(3))
            style = {"color": colour, "linewidth": LINE_WIDTH}
            ax.plot(np.arange(1, EPOCHS + 1), mean, label=f"ε = {epsilon:g}", **style)
            level = errors(Problem(data, epsilon).draws(setting(1500, quick=100)), mle).mean()
            print("  of the target", level.round(3))
            ax.axhline(level, color=colour, linestyle=":", linewidth=1.5)
        ax.set_xlabel("Epochs of n steps")
        ax.set_yscale("log")
        ax.set_yticks((0.1, 0.3, 1, 3, 10, 30, 100), ("0.1", "0.3", "1", "3", "10", "30", "100"))
        ax.set_yticks([], minor=True)
        ax.grid(color="0.92", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
    drawn.axes[0].set_ylabel("Mean relative error within the epoch")
    save(drawn, "posterior_convergence")


@part("figure of densities")
def densities(problem: Problem, folder: Path, others: dict[str, np.ndarray]) -> None:
    """Figure: densities of two coefficients, as in the paper's figure 3."""
    found = {
        "random walk (target)": long_walk(problem),
        "MALA": problem.draws(setting(3000, quick=100)),
        "pSGLD, corrected": settled(psgld_chain(problem, CORRECTED, 0, folder)),
    }
    styles = {
        "random walk (target)": {"color": COLOURS[6], "linewidth": 3.0, "alpha": 0.5},
        "MALA": {"color": COLOURS[0], "linestyle": "--"},
        "pSGLD, corrected": {"color": COLOURS[2]},
        "pSGLD, twice the drift, G frozen": {"color": COLOURS[3]},
        "pSGLD, published step": {"color": COLOURS[1]},
    }
    drawn = sheet(11.0, 7.4)
    rows = ((problem.data.name, found), ("simulated, n = 200", others))
    for axes, (title, chains) in zip(drawn.subplots(2, 2), rows, strict=True):
        walk = chains["random walk (target)"]
        for i, ax in enumerate(axes):
            middle, spread = walk[:, i].mean(), walk[:, i].std()
            x = np.linspace(middle - 4.0 * spread, middle + 4.0 * spread, 200)
            for name, coefs in chains.items():
                density = gaussian_kde(coefs[:: max(1, len(coefs) // 10_000), i])(x)
                ax.plot(x, density, label=name, **{"linewidth": 1.8, **styles[name]})
            ax.set_title(f"{title}, coefficient {i + 1}", loc="left", fontsize=11)
            ax.set_ylim(bottom=0.0)
            ax.grid(color="0.92", linewidth=0.8)
            ax.spines[["top", "right"]].set_visible(False)
        axes[0].set_ylabel("Density")
    handles, names = drawn.axes[-1].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    save(drawn, "posterior_densities")


def speed(data: SurvivalData, folder: Path) -> None:
    """Table: one draw by MALA, and 250 epochs to the letter, in one run."""

    def fit() -> float:
        t0 = time.process_time()
        model = DPDiscreteTimeSurvival(EPSILON, method="psgld", max_time=data.max_time)
        model.fit(data.X, data.y)
        return time.process_time() - t0

    problem, n = Problem(data, EPSILON), len(data.y)
    steps = problem.plan().schedule.n_steps(n)
    before = [fit() for _ in range(FITS)]
    # A chain of its own, timed here and now.
    letter = psgld_chain(problem, LETTER, 0, folder, fresh=True)[2]
    draw = float(np.median([*before, *(fit() for _ in range(FITS))]))
    t0 = time.process_time()
    mala_ess = effective_size(problem.draws(setting(4000, quick=100)))[0] / (
        time.process_time() - t0
    )
    chain = psgld_chain(problem, CORRECTED, 0, folder)
    ess = effective_size(settled(chain))[0] / (1.0 - SETTLED) / chain[2]
    letter_row = f"{EPOCHS * n / letter:,.0f}"
    rows = [
        (f"MALA, {steps} steps (`fit`)", f"{draw:.2f}", f"{steps / draw:,.0f}", f"{mala_ess:.1f}"),
        (
            f"pSGLD, corrected, {EPOCHS} epochs",
            f"{chain[2]:.0f}",
            f"{EPOCHS * n / chain[2]:,.0f}",
            f"{ess:.1f}",
        ),
        (f"pSGLD to the letter, {EPOCHS} epochs", f"{letter:.0f}", letter_row, "does not mix"),
    ]
    table(
        "posterior_speed",
        ("one draw", "CPU seconds", "steps a second", "ESS of a coefficient a second"),
        rows,
        f"flchain, n = {n:,}, q = 200, k = 200, ε = {EPSILON:g}; one thread, with other work on "
        "the machine. To the letter against MALA, whose fits were timed before and after it in "
        f"the same process: {letter / draw:,.0f} times as long.",
    )


def main() -> None:
    """Run all parts, or one."""
    chains = {"type": Path, "default": Path(tempfile.gettempdir()) / "skdpsurv_chains"}
    only = {"choices": ("law", "figures", "speed")}
    args = arguments(__doc__ or "", chains=chains, draws=number(10, quick=1), only=only)
    data = flchain()
    if args.only in (None, "law"):
        real = survival_sets(args.data_dir, ["third births"])
        problems = [Problem(small(), SMALL_EPSILON, link) for link in LINKS]
        problems += [Problem(data, EPSILON, link) for data in real for link in LINKS]
        law(problems)
    if args.only in (None, "figures"):
        convergence(data, args.draws, args.chains)
        _, chains = small_chains()
        drift(chains)
        densities(Problem(data, EPSILON), args.chains, chains)
    if args.only in (None, "speed"):
        speed(data, args.chains)


if __name__ == "__main__":
    run(main)
