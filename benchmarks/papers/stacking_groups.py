"""Figures 2 and 3 of Guo et al.: AUC over the number of groups, and over powers of importances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from benchmarks.data import labelled
from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages, cell
from benchmarks.papers.stacking import (
    N_PARTITIONS,
    NOTE,
    SETS,
    UNIFORM,
    VOTE_U,
    VOTE_W,
    WEIGHTED,
    ahead,
    between,
    fitted,
    listed,
    random_groups,
    sets_of,
    signed,
    similar_groups,
    stack,
)
from benchmarks.papers.stacking_figures import STYLES, axes_of, curve, ends, legend, spread

PARTITIONS = (1, 2, 3, 5, 8, 10, 20)
POWERS = (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0)
METHODS = (UNIFORM, VOTE_U, WEIGHTED, VOTE_W)
BY_IMPORTANCE = {WEIGHTED: UNIFORM, VOTE_W: VOTE_U}
AT = "ε = 1, default calibration, nothing tuned."


def partition_cases(setting: Setting) -> Iterator[Case]:
    for name in SETS:
        for n_groups in setting.of(PARTITIONS, (1, 5)):
            yield {"data": name, "groups": n_groups}


def measure_partition(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the AUC with this number of groups, with a model on top and with votes."""
    data, n_groups = labelled(setting, case["data"]), case["groups"]
    found = {}
    for names, partition in (
        ((UNIFORM, VOTE_U), random_groups(data.X.shape[1], n_groups, repetition)),
        ((WEIGHTED, VOTE_W), similar_groups(data.importances, n_groups)),
    ):
        for name, combiner in zip(names, ("logistic", "weighted_vote"), strict=True):
            model = stack(partition=partition, combiner=combiner)
            found[name] = fitted(model, data, repetition, "groups", n_groups, name)
    return found


def power_cases(setting: Setting) -> Iterator[Case]:
    for name in SETS:
        for power in setting.of(POWERS, (-1.0, 1.0)):
            yield {"data": name, "power": power}


def measure_power(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the AUC with this power of the variances as importances, of the same groups.

    Random groups with equal weights do not depend on it, and are measured at a power of 1 only.
    """
    data, power = labelled(setting, case["data"]), case["power"]
    partitions = {(WEIGHTED, VOTE_W): similar_groups(data.importances, N_PARTITIONS, power)}
    if power == 1.0:
        partitions[UNIFORM, VOTE_U] = random_groups(data.X.shape[1], N_PARTITIONS, repetition)
    found = {}
    for names, partition in partitions.items():
        for name, combiner in zip(names, ("logistic", "weighted_vote"), strict=True):
            model = stack(partition=partition, combiner=combiner)
            found[name] = fitted(model, data, repetition, "power", power, name)
    return found


def aucs_at(rows: pd.DataFrame, data: str, column: str, method: str) -> dict[float, pd.Series]:
    """Return AUCs by the place on the axis, and there by repetition."""
    same = rows[rows["data"] == data].dropna(subset=[method]).set_index("repetition")
    return dict(iter(same.groupby(column)[method]))


def report_partitions(rows: pd.DataFrame, pages: Pages) -> None:
    names, places = sets_of(rows), sorted(rows["groups"].unique())
    found = {(name, m): aucs_at(rows, name, "groups", m) for name in names for m in METHODS}
    said, inside = [], {}
    for method in (WEIGHTED, VOTE_W, UNIFORM):
        curves = [found[name, method] for name in names]
        best = [max(curve_, key=lambda k, c=curve_: c[k].mean()) for curve_ in curves]
        lost = [
            [c[k].mean() - c[end].mean() for k, c in zip(best, curves, strict=True)]
            for end in (places[0], places[-1])
        ]
        said.append(
            f"{method} is best with {listed(best)} groups, and with {places[0]} and {places[-1]} "
            f"it is {between(lost[0])} and {between(lost[1])} below that"
        )
        inside[method] = sum(
            min(ahead(c[k], c[places[0]]), ahead(c[k], c[places[-1]])) > 0
            for k, c in zip(best, curves, strict=True)
        )
    pages.table(
        "stacking_partitions",
        ("data", "method", *(f"K = {place}" for place in places)),
        [(*key, *map(cell, curve_.values())) for key, curve_ in found.items()],
        f"Figure 2. On {listed(names)}, {'; '.join(said)}.",
        "Test AUC; the best K is that of these splits. "
        f"{rows['repetition'].max() + 1} repetitions; {NOTE}. {AT}",
    )
    for method in (UNIFORM, WEIGHTED):
        pages.verdict(
            f"Stacking, figure 2: few and many groups are worse, {method}",
            ", ".join(names),
            f"beyond doubt on {inside[method]} of {len(names)}",
            "both are; AUCs not readable",
            ("not reproduced", "in part", "reproduced")[
                (inside[method] > 0) + (inside[method] == len(names))
            ],
        )
    _figure(found, names, places, "number of groups K", "stacking_partitions", pages)


def report_powers(rows: pd.DataFrame, pages: Pages) -> None:
    names, places = sets_of(rows), sorted(rows["power"].unique())
    right = [place for place in places if place >= 1.0]
    found = {(name, m): aucs_at(rows, name, "power", m) for name in names for m in METHODS}
    held, harmed, said = 0, 0, []
    for method, even in BY_IMPORTANCE.items():
        wrong, gained, spans = [], [], []
        for name in names:
            curve_, equal = found[name, method], found[name, even][1.0]
            means = [curve_[place].mean() for place in right]
            spans.append(max(means) - min(means))
            wrong.append(curve_[places[0]].mean() - equal.mean())
            gained.append(curve_[1.0].mean() - equal.mean())
            harmed += ahead(equal, curve_[places[0]]) > 0
            if method == WEIGHTED:
                held += min(ahead(curve_[1.0], equal), ahead(curve_[1.0], curve_[places[0]])) > 0
        said.append(
            f"Against {even}, {method} has {between(gained, signed)} with the variances "
            f"themselves, and {between(wrong, signed)} with their power {_text(places[0])}; powers "
            f"from {right[0]:g} to {right[-1]:g} differ by {between(spans)}"
        )
    total = 2 * len(names)
    verdict = (
        "**Wrong importances do harm.**"
        if harmed == total
        else f"Wrong importances do harm beyond doubt in {harmed} of {total} cases."
    )
    pages.table(
        "stacking_importance",
        ("data", "method", "equal, random groups", *map(_text, places)),
        [
            (name, method, cell(found[name, even][1.0]), *map(cell, found[name, method].values()))
            for name in names
            for method, even in BY_IMPORTANCE.items()
        ],
        f"Figure 3. {'. '.join(said)}. {verdict}",
        "Test AUC; importances are this power of the columns' variances. "
        f"{rows['repetition'].max() + 1} repetitions; {NOTE}. {AT}",
    )
    pages.verdict(
        "Stacking, figure 3: right importances above equal ones and wrong ones",
        ", ".join(names),
        f"beyond doubt on {held} of {len(names)}",
        "they are; AUCs not readable",
        "reproduced" if held == len(names) else "in part" if held else "not reproduced",
    )
    label = "power of the variance used as importance"
    _figure(found, names, places, label, "stacking_importance", pages)


def _text(power: float) -> str:
    return f"{power:g}".replace("-", "−")


def _figure(
    found: dict[tuple[str, str], dict[float, pd.Series]],
    names: list[str],
    places: Sequence[float],
    label: str,
    file: str,
    pages: Pages,
) -> None:
    """Draw figure 2 or 3; methods with one place alone become lines across."""
    drawn, (panels,) = axes_of(names)
    for ax, name in zip(panels, names, strict=True):
        for method in STYLES:
            scores = found.get((name, method), {})
            if len(scores) > 1:
                curve(ax, np.arange(len(places)), [scores[place] for place in places], method)
            elif scores:
                style = {"color": STYLES[method]["color"], "linestyle": "--", "linewidth": 1.3}
                ax.axhline(next(iter(scores.values())).mean(), label=method, **style)
        spread(ax.yaxis, ends(s for m in METHODS for s in found[name, m].values()))
        ax.set_xticks(range(len(places)), [_text(place) for place in places])
        ax.set_xlabel(label)
        ax.set_title(name, loc="left", fontsize=11, fontweight="bold")
    panels[0].set_ylabel("Test AUC at ε = 1")
    legend(drawn, panels[0], 4)
    pages.figure(file, drawn)


PARTITION = Experiment(partition_cases, measure_partition, report_partitions, repetitions=50)
POWER = Experiment(power_cases, measure_power, report_powers, repetitions=50)
