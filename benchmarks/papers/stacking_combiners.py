"""Figure 4 of Guo et al., combiners, and why groups of columns lose to a single model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from operator import sub

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from benchmarks.data import Labelled, labelled
from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages, cell, interval, panel, sheet
from benchmarks.papers.stacking import (
    N_PARTITIONS,
    NOTE,
    PLR,
    SAMPLES,
    SETS,
    UNIFORM,
    VOTE_U,
    VOTE_W,
    WEIGHTED,
    ahead,
    between,
    fitted,
    gaps,
    listed,
    methods,
    plain,
    random_groups,
    sets_of,
    signed,
    similar_groups,
    stack,
)
from benchmarks.papers.stacking_figures import ends, spread
from skdpsurv import FeaturePartition, LogisticCombiner, PrivateStackingClassifier
from skdpsurv.classification.logistic_measurements import Coefficients
from skdpsurv.classification.stack_plan import votes, weighted_scores

HOLDOUTS = (0.1, 0.3, 0.5)
FIRST, VOTED, WEIGHTED_VOTE = "group 1 alone", "vote", "weighted vote"
ALONE = [f"group {k + 1} alone" for k in range(N_PARTITIONS)]
TOPS = {holdout: f"model on top, {holdout:g} held out" for holdout in HOLDOUTS}
FEWER = {holdout: f"weighted vote, {holdout:g} left out" for holdout in HOLDOUTS}
COLOURS = dict.fromkeys(ALONE, "0.6") | {PLR: "0.25"} | dict.fromkeys(TOPS.values(), "#D55E00")
COLOURS |= {VOTED: "#56B4E9", WEIGHTED_VOTE: "#0072B2"}
HALF, VOTE_HALF, NORMED = "PLR, half the rows", "vote (U), half the rows", "vote (U), norms 1/√K"
NO_NOISE = {name: f"{name}, no noise" for name in (PLR, UNIFORM, VOTE_U)}
SIZES = (1000, 4000, 16_000)
ALL_DATA = "without privacy"
AT = "ε = 1, default calibration, nothing tuned."


def of_sets(_: Setting) -> Iterator[Case]:
    for name in SETS:
        yield {"data": name}


def cast_votes(model: PrivateStackingClassifier, X: np.ndarray) -> np.ndarray:
    """Return the votes of a stack's models, of shape (n_models, n_samples, 1)."""
    models = map(Coefficients, model.low_level_coef_, model.low_level_intercept_)
    return votes(list(models), X, model.feature_groups_, model.max_residual_)


def measure_combiners(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the AUC of models of one group alone, of votes, and of a model on top."""
    data = labelled(setting, case["data"])
    _, test = data.split(repetition)

    def scored(scores: np.ndarray) -> float:
        return float(roc_auc_score(data.y[test], scores[:, 0]))

    options = {"partition": similar_groups(data.importances, N_PARTITIONS)}
    model = stack(**options)
    found = {WEIGHTED_VOTE: fitted(model, data, repetition, "combiner", WEIGHTED_VOTE)}
    for name, cast in zip(ALONE, cast_votes(model, data.X[test]), strict=True):
        found[name] = scored(cast)
    model = stack(combiner="vote", **options)
    found[VOTED] = fitted(model, data, repetition, "combiner", VOTED)
    for holdout, name in TOPS.items():
        model = stack(combiner=LogisticCombiner(holdout=holdout), **options)
        found[name] = fitted(model, data, repetition, "combiner", name)
        found[FEWER[holdout]] = scored(
            weighted_scores(cast_votes(model, data.X[test]), model.weights_)
        )
    found[PLR] = fitted(plain(), data, repetition, "combiner", PLR)
    return found


def report_combiners(rows: pd.DataFrame, pages: Pages) -> None:
    sets = _by_set(rows)
    order = [*COLOURS, *FEWER.values()]
    top = [max(aucs[name].mean() for name in TOPS.values()) for aucs in sets.values()]
    first = [aucs[FIRST].mean() for aucs in sets.values()]
    gains = [aucs[WEIGHTED_VOTE].mean() - aucs[FIRST].mean() for aucs in sets.values()]
    over = [aucs[FIRST].mean() - aucs[PLR].mean() for aucs in sets.values()]
    others = [aucs[name].mean() for aucs in sets.values() for name in ALONE[1:]]
    # The first group has what there is to gain over PLR without the others.
    dropping = max(gains) < 0.2 * min(over)
    why = ": these data gain by **dropping what does not matter**" if dropping else ""
    pages.table(
        "stacking_combiners",
        ("combiner", *sets),
        [(name, *(cell(aucs[name]) for aucs in sets.values())) for name in order],
        f"Figure 4. The first group alone has {between(over, signed)} against PLR. Against that "
        f"group, the weighted vote has {between(gains, signed)}, and a model on top, at its best "
        f"holdout, {between(map(sub, top, first), signed)}. The other "
        f"groups alone have {between(others)}"
        f"{why}.",
        f"Test AUC, groups by importance. {rows['repetition'].max() + 1} repetitions; {NOTE}. "
        f"Held out: this share of the rows is for the model on top. Left out: the same models "
        f"below, without it. {AT}",
    )
    _combiner_figure(sets, pages)
    if "NEWS20" in sets:
        _combiner_verdicts(sets["NEWS20"], pages)


def _by_set(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {name: rows[rows["data"] == name] for name in sets_of(rows)}


def _combiner_verdicts(aucs: pd.DataFrame, pages: Pages) -> None:
    best = max(ALONE, key=lambda name: aucs[name].mean())
    pages.verdict(
        "Stacking, figure 4: the group of the most important columns is the best alone",
        "NEWS20",
        f"{best}, {aucs[best].mean():.3f}",
        "it is; AUCs not readable",
        "reproduced" if best == FIRST else "not reproduced",
    )
    top = max(TOPS.values(), key=lambda name: aucs[name].mean())
    rivals = (WEIGHTED_VOTE, VOTED, FIRST)
    signs = [ahead(aucs[top], aucs[name]) for name in rivals]
    means = ", ".join(f"{aucs[name].mean():.3f} {name}" for name in rivals)
    pages.verdict(
        "Stacking, figure 4: a model on top is the best way to combine, and above any group",
        "NEWS20",
        f"{aucs[top].mean():.3f} {top}; {means}",
        "it is; AUCs not readable",
        "reproduced" if min(signs) > 0 else "not reproduced" if min(signs) < 0 else "in part",
    )


def _combiner_figure(sets: dict[str, pd.DataFrame], pages: Pages) -> None:
    """Draw figure 4: a line for each combiner, a panel for each data set."""
    drawn = sheet(3.1 * len(sets) + 2.2, 4.3)
    panels = drawn.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for ax, (name, aucs) in zip(panels, sets.items(), strict=True):
        for place, (kind, colour) in enumerate(COLOURS.items()):
            mean, width = interval(aucs[kind])
            ax.errorbar(mean, place, xerr=width, color=colour, marker="o", markersize=6, capsize=3)
        spread(ax.xaxis, ends(aucs[kind] for kind in COLOURS))
        ax.set_title(name, loc="left", fontsize=11, fontweight="bold")
        ax.set_xlabel("Test AUC at ε = 1")
        panel(ax)
    panels[0].set_yticks(range(len(COLOURS)), COLOURS)
    panels[0].invert_yaxis()
    pages.figure("stacking_combiners", drawn)


def measure_reasons(setting: Setting, case: Case, repetition: int) -> Row:
    """Return AUCs that tell rows, noise and lost correlations apart."""
    data = labelled(setting, case["data"])
    half = replace(data, n_train=data.n_train // 2)
    groups = random_groups(data.X.shape[1], N_PARTITIONS, repetition)
    norms = [1.0 / math.sqrt(N_PARTITIONS)] * N_PARTITIONS
    options, exact = {"partition": groups}, {"epsilon": math.inf}
    models = {
        PLR: (plain(), data),
        HALF: (plain(), half),
        UNIFORM: (stack(combiner="logistic", **options), data),
        VOTE_HALF: (stack(**options), half),
        VOTE_U: (stack(**options), data),
        NORMED: (stack(partition=FeaturePartition(groups.groups, norms=norms)), data),
        NO_NOISE[PLR]: (plain(**exact), data),
        NO_NOISE[UNIFORM]: (stack(combiner="logistic", **options, **exact), data),
        NO_NOISE[VOTE_U]: (stack(**options, **exact), data),
    }
    return {
        name: fitted(model, rows, repetition, "reason", name)
        for name, (model, rows) in models.items()
    }


def report_reasons(rows: pd.DataFrame, pages: Pages) -> None:
    sets = _by_set(rows)

    def against(worse: str, better: str) -> str:
        return gaps(sets.values(), worse, better)

    order = (PLR, HALF, UNIFORM, VOTE_HALF, VOTE_U, NORMED, *NO_NOISE.values())
    pages.table(
        "stacking_reasons",
        ("method", *sets),
        [(name, *(cell(aucs[name]) for aucs in sets.values())) for name in order],
        f"Against PLR, random groups with a model on top have {against(UNIFORM, PLR)}. Half the "
        f"rows are held out for that model: votes of the same groups have {against(VOTE_U, PLR)} "
        f"with all rows, and {against(VOTE_HALF, PLR)} with half. Without any noise, groups have "
        f"{against(NO_NOISE[UNIFORM], NO_NOISE[PLR])} and their votes "
        f"{against(NO_NOISE[VOTE_U], NO_NOISE[PLR])}: correlations between groups are lost.",
        f"Test AUC. {rows['repetition'].max() + 1} repetitions; {NOTE}. {AT}",
    )


def simulated(n_records: int, repetition: int) -> Labelled:
    """Return 40 columns of falling variance, rows of norm 1, true coefficients of equal size."""
    rng = np.random.default_rng([repetition, n_records])
    variance = 1.0 / np.arange(1, 41)
    X = normalize(rng.standard_normal((n_records + 4000, 40)) * np.sqrt(variance))
    signal = X @ (6.0 * rng.choice([-1.0, 1.0], 40))
    y = (rng.random(signal.size) < 1.0 / (1.0 + np.exp(-signal))).astype(int)
    return Labelled("simulated", X, y, 1.0, n_records, 4000, (False,) * 40, variance)


def of_sizes(setting: Setting) -> Iterator[Case]:
    for n_records in setting.of(SIZES, (1000, 4000)):
        yield {"n": n_records}


def measure_size(_: Setting, case: Case, repetition: int) -> Row:
    """Return AUCs with this many records."""
    data = simulated(case["n"], repetition)
    models = methods(data, repetition) | {ALL_DATA: plain(epsilon=math.inf)}
    del models[SAMPLES]
    return {
        name: fitted(model, data, repetition, "size", case["n"], name)
        for name, model in models.items()
    }


def report_sizes(rows: pd.DataFrame, pages: Pages) -> None:
    sizes = dict(iter(rows.groupby("n")))
    order = (PLR, UNIFORM, WEIGHTED, VOTE_U, VOTE_W, ALL_DATA)
    least, most = (sizes[end(sizes)] for end in (min, max))
    gained = {name: most[name].mean() - least[name].mean() for name in order}
    slow = min(order[:-1], key=lambda name: gained[name])
    rest = [f"{name} {signed(gained[name])}" for name in order[:-1]]
    pages.table(
        "stacking_size",
        ("method", *(f"n = {n:,}" for n in sizes)),
        [(name, *(cell(part[name]) for part in sizes.values())) for name in order],
        f"From {min(sizes):,} to {max(sizes):,} records, {listed(rest)}. {slow[0].upper()}"
        f"{slow[1:]} gains least"
        + (
            ": its weights are not right for these records, and more records do not change them."
            if slow == VOTE_W
            else "."
        ),
        "Test AUC. Records are simulated: 40 columns of falling variance, which is their "
        "importance, and coefficients of one size. "
        f"{rows['repetition'].max() + 1} repetitions, each with records of its own. {AT}",
    )


COMBINERS = Experiment(of_sets, measure_combiners, report_combiners, repetitions=50)
REASONS = Experiment(of_sets, measure_reasons, report_reasons, repetitions=50)
SIZE = Experiment(of_sizes, measure_size, report_sizes, repetitions=40)
