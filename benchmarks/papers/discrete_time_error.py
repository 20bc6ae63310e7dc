"""Table 2 and figure 5 of Nguyen and Hui (2017): error of private coefficients over epsilon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, panel, sheet
from benchmarks.papers.discrete_time import PAPER, PUBLIC, SETS, errors, present, records
from benchmarks.posterior_chains import nonprivate_posterior_chains
from skdpsurv import DPDiscreteTimeSurvival, PosteriorSampling
from skdpsurv.published import PublishedDiscreteTimeSurvival

EPSILONS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
#: The paper picks the Lambda with the smallest error, without privacy; so do we, for its algorithms
#: only. It does not say which it tried.
LAMBDAS = (1e-3, 1e-2, 1e-1, 1.0)
OUT, OBJ = "Ext-Out-Pert", "Ext-Obj-Pert"
OURS: dict[str, Callable[..., Any]] = {
    "obj_pert": DPDiscreteTimeSurvival,
    "out_pert": partial(DPDiscreteTimeSurvival, method="out_pert"),
}
PUBLISHED: dict[str, Callable[..., Any]] = {
    OBJ: PublishedDiscreteTimeSurvival,
    OUT: partial(PublishedDiscreteTimeSurvival, method="out_pert"),
}
#: One posterior draw: pSGLD's target distribution, drawn from by MALA.
DRAW = "psgld"
STYLES = {
    "obj_pert": {"color": "#0072B2", "marker": "o", "linewidth": 2.4},
    "out_pert": {"color": "#009E73", "marker": "s"},
    DRAW: {"color": "#CC79A7", "marker": "^"},
    OBJ: {"color": "#D55E00", "marker": "D", "linestyle": "--"},
    OUT: {"color": "0.35", "marker": "v", "linestyle": ":"},
}
#: A mean relative error of the coefficients; f has those of the baseline, too.
BETA, ALL = "coefficients", "all of f"


def variants() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield columns of rows with what they are the errors of."""
    yield from OURS.items()
    for name, make in PUBLISHED.items():
        for value in LAMBDAS:
            yield f"{name} {value:g}", partial(make, alpha=value)


def cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(tuple(SETS), ("flchain", "unemployment")):
        for columns in (PUBLIC, PAPER):
            for epsilon in setting.of(EPSILONS, (0.4, 6.4)):
                for kind in ("perturbation", DRAW):
                    yield {"data": name, "columns": columns, "epsilon": epsilon, "kind": kind}


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return relative errors of the coefficients, and of all parameters."""
    data = records(setting, case["data"], case["columns"])
    exact = data.exact
    f = np.concatenate([exact.baseline_coef_, exact.coef_])
    n_knots = exact.baseline_coef_.size
    draws: dict[str, np.ndarray] = {}
    if case["kind"] == DRAW:
        method = PosteriorSampling(n_epochs=setting.of("auto", 100))
        model = DPDiscreteTimeSurvival(case["epsilon"], method=method, **data.options)
        # After its burn-in a chain's states are draws, which saves the burn-in of the others.
        n_draws = setting.of(400, 20)
        chains = nonprivate_posterior_chains(model, data.X, data.y, n_chains=1, n_draws=n_draws)
        draws[DRAW] = chains.draws[0]
    else:
        for name, make in variants():
            state = seed(*case.values(), name, repetition)
            model = make(case["epsilon"], random_state=state, **data.options).fit(data.X, data.y)
            draws[name] = np.concatenate([model.baseline_coef_, model.coef_])
    return [
        {"of": BETA} | {k: errors(d[..., n_knots:], f[n_knots:]).mean() for k, d in draws.items()},
        {"of": ALL} | {k: errors(d, f).mean() for k, d in draws.items()},
    ]


def repetitions(case: Case) -> int:
    return 2 if case["kind"] == DRAW else 16


def report(rows: pd.DataFrame, pages: Pages) -> None:
    mean = rows.groupby(["data", "columns", "of", "epsilon"]).mean(numeric_only=True)
    found = {
        (name, columns, of): best(mean.loc[name, columns, of])
        for name in present(rows)
        for columns in (PUBLIC, PAPER)
        for of in (BETA, ALL)
        if (name, columns, of) in mean.droplevel("epsilon").index
    }
    _lambdas(mean, pages)
    _table(found, PUBLIC, BETA, "discrete_time_error", "With public bounds", pages)
    _table(found, PAPER, ALL, "discrete_time_paper", "Figure 5, all parameters", pages)
    _figure(found, pages)
    _verdicts(found, pages)
    _comparisons(rows, pages)


def best(mean: pd.DataFrame) -> pd.DataFrame:
    """Return errors by epsilon and method, of the best Lambda for the published algorithms."""
    found = {name: mean[name] for name in (*OURS, DRAW) if name in mean}
    for name in PUBLISHED:
        found[name] = mean[[f"{name} {value:g}" for value in LAMBDAS]].min(axis=1)
    return pd.DataFrame(found)[[name for name in STYLES if name in found]]


def _lambdas(mean: pd.DataFrame, pages: Pages) -> None:
    """Write table 2."""
    top = mean.index.get_level_values("epsilon").max()
    names = [f"{OUT} {value:g}" for value in LAMBDAS]
    table = mean.xs((PAPER, ALL, top), level=("columns", "of", "epsilon"))[names]
    sets = [name for name in SETS if name in table.index]
    least = {name: LAMBDAS[int(table.loc[name].to_numpy().argmin())] for name in sets}
    pages.table(
        "discrete_time_lambda",
        ("data", *(f"Λ = {value:g}" for value in LAMBDAS)),
        [(name, *(_short(error) for error in table.loc[name])) for name in sets],
        f"Table 2. The best Λ of {OUT} at ε = {top:g} is "
        + ", ".join(f"{value:g} ({name})" for name, value in least.items())
        + f". Errors there are {table.min(axis=1).min():.2f} to {table.min(axis=1).max():.2f}; "
        "parameters that are all 0 have 1.",
        "Mean relative error of all parameters; columns scaled as in the paper.",
    )
    spread = [float(table.loc[name].max() / table.loc[name].min()) for name in sets]
    pages.verdict(
        f"Discrete time, table 2: error of {OUT} at ε = {top:g}, largest over least of all Λ",
        ", ".join(sets) + _standin(sets),
        "; ".join(f"{ratio:.1f}" for ratio in spread),
        '"very much" depends on Λ (numbers not readable)',
        "reproduced" if min(spread) > 2.0 else "in part",
    )
    pages.verdict("Discrete time, table 2", "SB", "no data", "not readable", "cannot be had")


def _standin(sets: list[str]) -> str:
    return " (for SB)" if "child mortality" in sets else ""


def _table(
    found: dict[tuple[str, str, str], pd.DataFrame],
    columns: str,
    of: str,
    name: str,
    words: str,
    pages: Pages,
) -> None:
    shown = {key[0]: table for key, table in found.items() if key[1:] == (columns, of)}
    epsilons = sorted({epsilon for table in shown.values() for epsilon in table.index})
    cells = [
        (data, method, *(_short(error) for error in table[method].reindex(epsilons)))
        for data, table in shown.items()
        for method in table
    ]
    together = pd.concat(shown, names=["data", "epsilon"])
    winners = together.idxmin(axis=1)
    won = "; ".join(
        f"{method} {count}" for method, count in winners.value_counts().items() if count
    )
    ratio = together["obj_pert"] / together[[OBJ, OUT]].min(axis=1)
    more = ""
    if DRAW in together:
        ahead = together[DRAW] < together[[OBJ, OUT]].min(axis=1)
        level = together["obj_pert"] <= together[DRAW]
        more = (
            f" A posterior draw beats both published perturbations in {ahead.sum()} of "
            f"{ahead.size}, obj_pert is at least as good as the draw in {level.sum()}."
        )
    pages.table(
        name,
        ("data", "method", *(f"ε = {epsilon:g}" for epsilon in epsilons)),
        cells,
        f"{words}. Of {winners.size} cells, these have the least error: {won}. The default, "
        f"obj_pert, has {ratio.min():.2f} to {ratio.max():.2f} times the error of the better "
        f"published perturbation.{more}",
        f"Mean relative error, {'of the coefficients' if of == BETA else 'baseline included'}; "
        f"columns: {columns}. obj_pert, out_pert and psgld are this package's; Ext-* the paper's, "
        f"at the best Λ of {', '.join(f'{x:g}' for x in LAMBDAS)}, chosen without privacy. psgld "
        "is its target distribution, drawn from by MALA.",
    )


def _verdicts(found: dict[tuple[str, str, str], pd.DataFrame], pages: Pages) -> None:
    """Compare with what the paper says of figure 5: who wins, and who stops improving."""
    for name in dict.fromkeys(key[0] for key in found):
        table = found.get((name, PAPER, ALL))
        if table is None or DRAW not in table:
            continue
        rivals = table[[OBJ, OUT]].min(axis=1)
        wins = int((table[DRAW] < rivals).sum())
        ours = int((table["obj_pert"] <= table[DRAW]).sum())
        pages.verdict(
            "Discrete time, figure 5: pSGLD's target beats Ext-Obj-Pert and Ext-Out-Pert",
            name + _standin([name]),
            f"at {wins} of {len(table)} ε; the default beats the draw at {ours}",
            '"overall"',
            "reproduced" if wins > 0.8 * len(table) else "in part" if wins else "not reproduced",
        )
        if {1.6, 6.4} <= set(table.index):
            kept = [float(table[rival][6.4] / table[rival][1.6]) for rival in PUBLISHED]
            pages.verdict(
                "Discrete time, figure 5: error at ε = 6.4 over that at 1.6, "
                + " and ".join(PUBLISHED),
                name + _standin([name]),
                " and ".join(f"{ratio:.2f}" for ratio in kept),
                '"does not improve much"',
                "reproduced" if min(kept) > 0.7 else "in part",
            )
    pages.verdict("Discrete time, figure 5", "SB", "no data", "not readable", "cannot be had")


def _comparisons(rows: pd.DataFrame, pages: Pages) -> None:
    """Compare the default with the published algorithms at their best Lambdas, by public bounds."""
    some = rows[(rows["columns"] == PUBLIC) & (rows["of"] == BETA) & (rows["kind"] != DRAW)]
    for name in present(some):
        for epsilon, group in some[some.data == name].groupby("epsilon"):
            names = [f"{rival} {value:g}" for rival in PUBLISHED for value in LAMBDAS]
            rival = group[names].mean().idxmin()
            pages.comparison(
                "hazard model, relative error of coefficients",
                name,
                float(epsilon),
                f"Nguyen and Hui, {str(rival).split()[0]}",
                group["obj_pert"].to_numpy(),
                group[rival].to_numpy(),
                larger_is_better=False,
            )


def _short(error: float) -> str:
    return "" if np.isnan(error) else f"{error:.2f}" if error < 10 else f"{error:.0f}"


def _figure(found: dict[tuple[str, str, str], pd.DataFrame], pages: Pages) -> None:
    """Draw error over epsilon: a row of panels for the paper's columns, and one for ours."""
    sets = list(dict.fromkeys(key[0] for key in found))
    drawn = sheet(3.2 * len(sets) + 0.8, 7.0)
    panels = drawn.subplots(2, len(sets), sharey=True, sharex=True, squeeze=False)
    kinds = ((PAPER, ALL), (PUBLIC, BETA))
    epsilons = sorted({epsilon for table in found.values() for epsilon in table.index})
    for line, (columns, of) in zip(panels, kinds, strict=True):
        for ax, name in zip(line, sets, strict=True):
            table = found.get((name, columns, of), pd.DataFrame())
            for method in table:
                style = {"linewidth": 1.5, "markersize": 5} | STYLES[method]
                ax.loglog(table.index, table[method], label=method, **style)
            ax.axhline(1.0, color="0.6", linewidth=1.0)
            ax.set_title(name, loc="left", fontweight="bold", fontsize=11)
            ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
            ticks = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
            ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.minorticks_off()
            panel(ax)
        line[0].set_ylabel(f"Mean relative error, {of}\n{columns}")
    for ax in panels[-1]:
        ax.set_xlabel("ε")
    handles, labels = panels[0][0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    pages.figure("discrete_time_error", drawn)


ERROR = Experiment(cases, measure, report, repetitions=repetitions)
