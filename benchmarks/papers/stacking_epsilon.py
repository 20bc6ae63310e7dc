"""Figure 1 of Guo et al.: AUC over epsilon of a single model and of stacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pandas as pd
from sklearn.base import BaseEstimator

from benchmarks.data import labelled
from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages, cell
from benchmarks.papers.stacking import (
    NOTE,
    PLR,
    SAMPLES,
    SETS,
    UNIFORM,
    VOTE_U,
    VOTE_W,
    WEIGHTED,
    ahead,
    difference,
    fitted,
    methods,
    sets_of,
)
from benchmarks.papers.stacking_figures import axes_of, curve, ends, legend, spread
from skdpsurv import DPLogisticRegression
from skdpsurv.published import PublishedLogisticRegression, PublishedStackingClassifier

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
#: Of the published methods, which state no rule: the best on the test rows is shown.
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
DEFAULT, PUBLISHED = "default", "published"
PAPER_METHODS = (PLR, SAMPLES, UNIFORM, WEIGHTED)
METHODS = {DEFAULT: (*PAPER_METHODS, VOTE_U, VOTE_W), PUBLISHED: PAPER_METHODS}
#: What the paper says is better, and than what.
CLAIMS = ((WEIGHTED, UNIFORM), (UNIFORM, PLR), (PLR, SAMPLES), (WEIGHTED, PLR))
VOTES = ((VOTE_W, WEIGHTED), (VOTE_U, UNIFORM), (VOTE_W, PLR), (VOTE_U, PLR))
#: Where the first page compares with the published stack.
COMPARED = (0.1, 1.0, 4.0)

#: By data, calibration and epsilon.
Found = dict[tuple[str, str, float], pd.DataFrame]


def as_published(model: BaseEstimator, alpha: float) -> BaseEstimator:
    """Return the same method with the constants of its paper."""
    plain = isinstance(model, DPLogisticRegression)
    kind = PublishedLogisticRegression if plain else PublishedStackingClassifier
    same = set(kind().get_params(deep=False)) & set(model.get_params(deep=False))
    return kind(**({name: getattr(model, name) for name in same} | {"alpha": alpha}))


def with_alpha(method: str, alpha: float) -> str:
    """Return the column of a published method."""
    return f"{method}, alpha {alpha:g}"


def cases(setting: Setting) -> Iterator[Case]:
    for name in SETS:
        for epsilon in setting.of(EPSILONS, (0.25, 1.0)):
            yield {"data": name, "epsilon": epsilon}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the AUC of each method, and of each published one with every alpha."""
    data, epsilon = labelled(setting, case["data"]), case["epsilon"]
    found = {}
    for name, model in methods(data, repetition).items():
        model.set_params(epsilon=epsilon)
        found[name] = fitted(model, data, repetition, "epsilon", epsilon, name)
        for alpha in ALPHAS if name in PAPER_METHODS else ():
            column = with_alpha(name, alpha)
            model_of_paper = as_published(model, alpha)
            found[column] = fitted(model_of_paper, data, repetition, "epsilon", epsilon, column)
    return found


def calibrated(rows: pd.DataFrame) -> Found:
    """Return AUCs with a column for each method; of a published one, at the alpha of best mean."""
    found = {}
    for name in sets_of(rows):
        for epsilon, part in rows[rows["data"] == name].groupby("epsilon"):
            found[name, DEFAULT, epsilon] = part[list(METHODS[DEFAULT])]
            tried = {m: part[[with_alpha(m, alpha) for alpha in ALPHAS]] for m in PAPER_METHODS}
            best = {method: aucs[aucs.mean().idxmax()] for method, aucs in tried.items()}
            found[name, PUBLISHED, epsilon] = pd.DataFrame(best)
    return found


def report(rows: pd.DataFrame, pages: Pages) -> None:
    found = calibrated(rows)
    names, epsilons = sets_of(rows), sorted(rows["epsilon"].unique())
    note = (
        f"{rows['repetition'].max() + 1} repetitions; {NOTE}. Published: the alpha of 0.0001 to 1 "
        "that is best on the test rows, for each method and ε. Default: nothing is tuned."
    )
    _aucs(found, names, epsilons, note, pages)
    _order(found, names, epsilons, note, pages)
    _votes(found, names, epsilons, note, pages)
    _figure(found, names, epsilons, pages)
    for name, epsilon in product(names, [e for e in COMPARED if e in epsilons]):
        pages.comparison(
            "classes, importances known (AUC)",
            name,
            epsilon,
            "PST-F(W) as published, best alpha on the test rows",
            found[name, DEFAULT, epsilon][VOTE_W],
            found[name, PUBLISHED, epsilon][WEIGHTED],
        )


def _heads(epsilons: list[float]) -> list[str]:
    return [f"ε = {epsilon:g}" for epsilon in epsilons]


def _aucs(found: Found, names: list[str], epsilons: list[float], note: str, pages: Pages) -> None:
    curves = {
        (name, calibration, method): [found[name, calibration, e][method] for e in epsilons]
        for name in names
        for calibration in (PUBLISHED, DEFAULT)
        for method in METHODS[calibration]
    }
    middle = min(epsilons, key=lambda epsilon: abs(epsilon - 1.0))
    best = sum(
        found[name, DEFAULT, e][VOTE_W].mean()
        >= max(found[name, calibration, e].mean().max() for calibration in METHODS)
        for name, e in product(names, epsilons)
    )
    means = [
        f"{found[name, DEFAULT, middle][VOTE_W].mean():.3f} against "
        f"{found[name, DEFAULT, middle][PLR].mean():.3f} and "
        f"{found[name, PUBLISHED, middle][WEIGHTED].mean():.3f} on {name}"
        for name in names
    ]
    pages.table(
        "stacking_auc",
        ("data", "calibration", "method", *_heads(epsilons)),
        [(*key, *map(cell, aucs)) for key, aucs in curves.items()],
        f"The default with importances, {VOTE_W}, has the best mean of all, published methods too, "
        f"in {best} of {len(names) * len(epsilons)} columns. At ε = {middle:g} it has, against the "
        f"default PLR and the published {WEIGHTED}, {'; '.join(means)}.",
        f"Test AUC. {note}",
    )
    rising = sum(aucs[-1].mean() > aucs[0].mean() for aucs in curves.values())
    pages.verdict(
        "Stacking, figure 1: AUC rises with ε",
        ", ".join(names),
        f"{rising} of {len(curves)} curves",
        "all; AUCs not readable",
        "reproduced" if rising == len(curves) else "in part",
    )


def _compared(
    found: Found, pairs: Sequence[tuple[str, str]], calibrations: Sequence[str], names: list[str]
) -> tuple[list[tuple[str, ...]], dict[tuple[str, str], tuple[int, int]]]:
    """Return rows of paired differences, and of each pair, how often it is ahead and behind."""
    lines, signs = [], {pair: [] for pair in pairs}  # type: ignore[var-annotated]
    for name, calibration, (better, worse) in product(names, calibrations, pairs):
        wide = [aucs for key, aucs in found.items() if key[:2] == (name, calibration)]
        cells = (difference(aucs[better] - aucs[worse]) for aucs in wide)
        lines.append((name, calibration, f"{better} − {worse}", *cells))
        signs[better, worse] += [ahead(aucs[better], aucs[worse]) for aucs in wide]
    return lines, {pair: (found.count(1), found.count(-1)) for pair, found in signs.items()}


def _order(found: Found, names: list[str], epsilons: list[float], note: str, pages: Pages) -> None:
    """Paired differences in the order of the paper, and what becomes of each of its claims."""
    lines, counts = _compared(found, CLAIMS, (PUBLISHED, DEFAULT), names)
    orders = [[ahead(aucs[a], aucs[b]) for a, b in CLAIMS[:3]] for aucs in found.values()]
    held = sum(min(order) > 0 for order in orders)
    turned = sum(min(order) < 0 for order in orders)
    said = [f"{a} is above {b} in {yes} and below in {no}" for (a, b), (yes, no) in counts.items()]
    pages.table(
        "stacking_order",
        ("data", "calibration", "difference", *_heads(epsilons)),
        lines,
        f"Figure 1. **The paper's order, W > U > PLR > S, "
        f"{'does not hold' if turned > held else 'is not refuted'}**: beyond doubt it holds in "
        f"{held} of {len(orders)} cases, and in {turned} some of it is reversed: "
        f"{'; '.join(said)}.",
        f"Paired differences of test AUC, bold where the interval excludes 0. {note}",
    )
    for (better, worse), (yes, no) in counts.items():
        held_mostly = yes > 0.8 * len(orders) and no == 0
        pages.verdict(
            f"Stacking, figure 1: {better} above {worse}",
            ", ".join(names),
            f"beyond doubt in {yes} of {len(orders)} cases, below in {no}",
            "above; AUCs not readable",
            "reproduced" if held_mostly else "in part" if yes > no else "not reproduced",
        )


def _votes(found: Found, names: list[str], epsilons: list[float], note: str, pages: Pages) -> None:
    """The default against a model on top, and against a single model."""
    lines, counts = _compared(found, VOTES, (DEFAULT,), names)
    (right, right_no), _, (single, single_no), (even, even_no) = (counts[pair] for pair in VOTES)
    total = len(names) * len(epsilons)
    advice = (
        "is better than PLR"
        if even > 0.5 * total
        else "is seldom better than PLR: **without importances, do not stack**"
    )
    pages.table(
        "stacking_votes",
        ("data", "difference", *_heads(epsilons)),
        [(name, *rest) for name, _, *rest in lines],
        f"With importances, the weighted vote is above the model on top beyond doubt in {right} "
        f"of {total} cases and below in {right_no}, and above PLR in {single} and below in "
        f"{single_no}. With equal weights, above PLR in {even} and below in {even_no}, it "
        f"{advice}.",
        "Default calibration: votes of models of all rows; half the rows are held out for a model "
        f"on top. Paired differences of test AUC, bold where the interval excludes 0. {note}",
    )


def _figure(found: Found, names: list[str], epsilons: list[float], pages: Pages) -> None:
    """Draw figure 1: published above, the default calibration below."""
    drawn, panels = axes_of(names, rows=2)
    for i, calibration in enumerate((PUBLISHED, DEFAULT)):
        for ax, name in zip(panels[i], names, strict=True):
            for method in METHODS[calibration]:
                scores = (found[name, calibration, e][method].to_numpy() for e in epsilons)
                curve(ax, epsilons, scores, method)
            spread(ax.yaxis, _ends(found, name))
            ax.set_xscale("log")
            ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
            ax.minorticks_off()
            kind = "published, tuned on the test rows" if i == 0 else "default, not tuned"
            ax.set_title(f"{name}\n{kind}", loc="left", fontsize=10, fontweight="bold")
        panels[i][0].set_ylabel("Test AUC")
    for ax in panels[-1]:
        ax.set_xlabel("ε")
    legend(drawn, panels[-1][0], 6)
    pages.figure("stacking_epsilon", drawn)


def _ends(found: Found, name: str) -> list[float]:
    """Return the ends of a data set's intervals, to fit both its panels to."""
    both = [aucs for (data, _, _), aucs in found.items() if data == name]
    return ends(aucs[method] for aucs in both for method in aucs)


EXPERIMENT = Experiment(cases, measure, report, repetitions=50, quick=1)
