"""Table 2 of Guo et al.: transfer between organisations, on others than the paper's hospitals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.data import Organisations, organisations
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, cell, interval, panel, sheet
from benchmarks.papers.stacking import ahead, auc, difference, signed
from skdpsurv import DPLogisticRegression, FeaturePartition, PrivateStackingClassifier
from skdpsurv.published import PublishedLogisticRegression, PublishedStackingClassifier

SETS = {"GUSTO-I": "region ", "heart disease": ""}
EPSILON = 1.0
#: Of the published methods: the best mean over all targets, on the test rows, is shown.
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
DEFAULT, PUBLISHED = "default", "published"
WEIGHTED, UNIFORM, ONE_GROUP, PLR = "PST-H(W)", "PST-H(U)", "PPHTL", "PLR (target)"
INTERCEPT, SOURCE, WITHOUT = "PST-H(W), intercept 0.3", "source (W) alone", "target, no privacy"
STYLES: dict[str, dict[str, Any]] = {
    PLR: {"color": "0.25", "marker": "v"},
    ONE_GROUP: {"color": "#CC79A7", "marker": "^"},
    UNIFORM: {"color": "#009E73", "marker": "s"},
    WEIGHTED: {"color": "#D55E00", "marker": "D"},
    INTERCEPT: {"color": "#0072B2", "marker": "o"},
    SOURCE: {"color": "#E69F00", "marker": "x"},
    WITHOUT: {"color": "black", "marker": "|"},
}
#: In the paper's order, the best first.
ORDER = (WEIGHTED, UNIFORM, ONE_GROUP, PLR)
PAIRS = (
    *pairwise(ORDER),
    (WEIGHTED, PLR),
    (INTERCEPT, WEIGHTED),
    (WEIGHTED, SOURCE),
    (WEIGHTED, WITHOUT),
)
#: Means of branches 1 to 16 that table 2 of the paper states, on RUIJIN, in thousandths.
BRANCHES = {
    WEIGHTED: "747 736 740 714 766 707 721 753 701 698 736 738 746 661 697 604",
    UNIFORM: "678 724 652 708 653 663 682 692 635 644 635 645 718 644 647 567",
    ONE_GROUP: "602 608 528 563 577 601 580 583 547 517 565 547 592 615 558 524",
    PLR: "548 620 636 579 533 613 561 584 515 555 553 520 619 563 558 517",
}
PAPER = {name: np.mean([int(auc) for auc in row.split()]) / 1e3 for name, row in BRANCHES.items()}


def cases(_: Setting) -> Iterator[Case]:
    for name in SETS:
        yield {"data": name}


def variants(data: Organisations, repetition: int) -> dict[str, dict[str, Any]]:
    """Return the options of the methods that learn from a source."""
    order = np.random.default_rng(repetition).permutation(data.X.shape[1])
    groups = [part.tolist() for part in np.array_split(order, data.n_groups)]
    worth = FeaturePartition(importances=data.importances)
    weighted = {"partition": worth, "n_partitions": data.n_groups}
    return {
        WEIGHTED: weighted,
        INTERCEPT: weighted | {"intercept_scaling": 0.3},
        UNIFORM: {"partition": FeaturePartition(groups)},
        ONE_GROUP: {"n_partitions": 1},
    }


def column(method: str, alpha: float | None) -> str:
    """Return where the AUCs of a method are; without alpha, in the default calibration."""
    return method if alpha is None else f"{method}, alpha {alpha:g}"


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return a row for each target: the AUC of each method, and of published ones by alpha."""
    data = organisations(setting, case["data"])
    common = {"epsilon": EPSILON, "classes": [0, 1], "data_norm": data.data_norm}
    here = data.site == data.source
    parts, found = {}, {}
    for target in data.targets:
        rows = np.flatnonzero(data.site == target)
        parts[target] = train_test_split(
            rows, test_size=0.3, random_state=repetition, stratify=data.y[rows]
        )
        found[target] = {"target": SETS[data.name] + target, "n": rows.size}

    def noise(name: str, *key: object) -> int:
        return seed("transfer", data.name, repetition, name, *key)

    def score(model: Any, target: str) -> float:
        return auc(model, data.X[parts[target][1]], data.y[parts[target][1]])

    for alpha in (None, *setting.of(ALPHAS, ALPHAS[2:3])):
        if alpha is None:
            stack, plain, every = PrivateStackingClassifier, DPLogisticRegression, common
        else:
            stack, plain = PublishedStackingClassifier, PublishedLogisticRegression
            every = common | {"alpha": alpha}
        for name, options in variants(data, repetition).items():
            both = every | options | ({} if alpha is None else {"combiner": "logistic"})
            source = stack(**both, random_state=noise(column(name, alpha)))
            source.fit(data.X[here], data.y[here])
            for target, (train, _) in parts.items():
                key = noise(column(name, alpha), target)
                model = stack(**both, prior=source.release_, random_state=key)
                model.fit(data.X[train], data.y[train])
                found[target][column(name, alpha)] = score(model, target)
                if name == WEIGHTED:
                    found[target][column(SOURCE, alpha)] = score(source, target)
        for target, (train, _) in parts.items():
            model = plain(**every, random_state=noise(column(PLR, alpha), target))
            model.fit(data.X[train], data.y[train])
            found[target][column(PLR, alpha)] = score(model, target)
    for target, (train, _) in parts.items():
        model = DPLogisticRegression(**(common | {"epsilon": math.inf}))
        found[target][WITHOUT] = score(model.fit(data.X[train], data.y[train]), target)
    return list(found.values())


def calibrated(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the AUCs of a data set by calibration, a column for each method.

    Of a published method, the alpha of the best mean over all targets is kept.
    """
    given = rows.set_index(["repetition", "target"])
    alphas = [alpha for alpha in ALPHAS if column(PLR, alpha) in given]
    best = {WITHOUT: given[WITHOUT]}
    for method in set(STYLES) - {WITHOUT}:
        tried = given[[column(method, alpha) for alpha in alphas]]
        best[method] = tried[tried.mean().idxmax()]
    return {DEFAULT: given[list(STYLES)], PUBLISHED: pd.DataFrame(best)[list(STYLES)]}


def report(rows: pd.DataFrame, pages: Pages) -> None:
    found = {n: calibrated(rows[rows["data"] == n]) for n in SETS if n in set(rows["data"])}
    # Over targets, a mean for each repetition.
    means = {
        (name, calibration): aucs.groupby("repetition").mean()
        for name, both in found.items()
        for calibration, aucs in both.items()
    }
    _table(means, rows["repetition"].max() + 1, pages)
    for name in found:
        default, published = means[name, DEFAULT], means[name, PUBLISHED]
        _verdict(name, DEFAULT, default, pages)
        _verdict(name, PUBLISHED, published, pages)
        for rival in (WEIGHTED, PLR):
            pages.comparison(
                "transfer, importances known (AUC)",
                name,
                EPSILON,
                f"{rival} as published, best alpha on the test rows",
                default[WEIGHTED],
                published[rival],
            )
    pages.verdict(
        "Stacking, table 2", "RUIJIN", "no data", f"{_means(PAPER)} ({_names()})", "cannot be had"
    )
    if "GUSTO-I" in found:
        _figure(rows[rows["data"] == "GUSTO-I"], found["GUSTO-I"], pages)


def _names() -> str:
    return ", ".join(ORDER)


def _means(means: Mapping[str, float] | pd.Series) -> str:
    return " / ".join(f"{means[method]:.3f}" for method in ORDER)


def _gaps(means: Mapping[str, float] | pd.Series) -> str:
    return ", ".join(signed(means[a] - means[b]) for a, b in pairwise(ORDER))


def _signs(aucs: pd.DataFrame) -> list[int]:
    """Return of each step of the paper's order whether it holds beyond doubt (1), or not (−1)."""
    return [ahead(aucs[a], aucs[b]) for a, b in pairwise(ORDER)]


def _table(means: Mapping[tuple[str, str], pd.DataFrame], repetitions: int, pages: Pages) -> None:
    """Means over targets, and their paired differences, beside those of the paper."""
    lines = [
        (
            method,
            f"{PAPER[method]:.3f}" if method in PAPER else "",
            *(cell(aucs[method]) for aucs in means.values()),
        )
        for method in (*ORDER, INTERCEPT, SOURCE, WITHOUT)
    ]
    for a, b in PAIRS:
        known = a in PAPER and b in PAPER
        theirs = signed(PAPER[a] - PAPER[b]) if known else ""
        cells = (difference(aucs[a] - aucs[b]) for aucs in means.values())
        lines.append((f"{a} − {b}", theirs, *cells))
    said, more = [], []
    for (name, calibration), aucs in means.items():
        signs, mean = _signs(aucs), aucs.mean()
        kind = "holds" if min(signs) > 0 else "is reversed in part" if min(signs) < 0 else "is open"
        said.append(f"it {kind} on {name} ({calibration}: {_gaps(mean)})")
        if calibration == DEFAULT:
            more.append(
                f"On {name} in the default calibration, the source's model alone has "
                f"{signed(mean[SOURCE] - mean[WEIGHTED])} against {WEIGHTED}, and an intercept of "
                f"0.3 instead of 0.1 is worth {signed(mean[INTERCEPT] - mean[WEIGHTED])}"
            )
    pages.table(
        "stacking_transfer",
        ("method", "paper, RUIJIN", *(f"{name}, {kind}" for name, kind in means)),
        lines,
        f"Table 2. The paper's order is {' > '.join(ORDER)}, with gaps of {_gaps(PAPER)} in the "
        f"mean over 16 branches: {'; '.join(said)}. {'. '.join(more)}.",
        f"Test AUC, mean over targets, and paired differences, bold where the interval excludes 0. "
        f"{repetitions} random splits, 70 % of a target's rows for training; ± is half a 95 % "
        f"interval of the mean over splits. ε = {EPSILON:g} for the source and for each target. "
        "Published: a model on top, and the alpha of 0.0001 to 1 that is best on the test rows for "
        "each method. Default: weighted vote, nothing tuned.",
    )


def _verdict(name: str, calibration: str, aucs: pd.DataFrame, pages: Pages) -> None:
    held = sum(sign > 0 for sign in _signs(aucs))
    pages.verdict(
        f"Stacking, table 2: mean AUC of {_names()}, {calibration}",
        f"{name} for RUIJIN",
        f"{_means(aucs.mean())} (gaps {_gaps(aucs.mean())})",
        f"{_means(PAPER)} (gaps {_gaps(PAPER)})",
        "reproduced" if held == 3 else "in part" if held else "not reproduced",
    )


def _figure(rows: pd.DataFrame, found: dict[str, pd.DataFrame], pages: Pages) -> None:
    """Draw the AUC on each target: published left, default right."""
    sizes = rows.groupby("target")["n"].first().sort_values(ascending=False, kind="stable")
    drawn = sheet(10.0, 6.4)
    panels = drawn.subplots(1, 2, sharex=True, sharey=True)
    for ax, calibration in zip(panels, (PUBLISHED, DEFAULT), strict=True):
        for i, (method, style) in enumerate(STYLES.items()):
            by_target = found[calibration][method].groupby("target")
            drawings = [interval(by_target.get_group(target)) for target in sizes.index]
            ax.errorbar(
                [mean for mean, _ in drawings],
                np.arange(len(sizes)) + (i - 3) * 0.11,
                xerr=[width for _, width in drawings],
                label=method,
                linestyle="none",
                markersize=6,
                elinewidth=1.0,
                **style,
            )
        for place in range(1, len(sizes), 2):
            ax.axhspan(place - 0.5, place + 0.5, color="0.96", zorder=0)
        ax.set_title(calibration, loc="left", fontsize=11, fontweight="bold")
        ax.set_xlabel("Test AUC, ε = 1 at the source and at the target")
        panel(ax, "x")
    panels[0].set_yticks(range(len(sizes)), [f"{name}, n = {n:,}" for name, n in sizes.items()])
    panels[0].set_ylim(len(sizes) - 0.5, -0.5)
    handles, names = panels[0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    pages.figure("stacking_transfer", drawn)


EXPERIMENT = Experiment(cases, measure, report, repetitions=40)
