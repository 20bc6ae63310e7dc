"""How well private hazard models rank records that they have not seen, beside the published ones.

The algorithms are those of Nguyen and Hui (2017), which measures no ranking.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.data import split, survival
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Comparison, Pages
from benchmarks.papers.discrete_time import SETS, present
from benchmarks.papers.discrete_time_error import LAMBDAS, PUBLISHED, variants
from skdpsurv import DPDiscreteTimeSurvival

EPSILONS = (0.1, 0.4, 1.0, 1.6, 6.4)
EXACT = "no privacy"


def cases(setting: Setting) -> Iterator[Case]:
    for name in SETS:
        for epsilon in setting.of(EPSILONS, (1.0,)):
            yield {"data": name, "epsilon": epsilon}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the C-index of all methods on the part left out of one random split."""
    data = survival(setting, case["data"])
    train, test = split(len(data.X), repetition)
    found = {}
    for name, make in variants():
        model = make(
            case["epsilon"],
            max_time=data.max_time,
            random_state=seed(*case.values(), name, repetition),
        )
        model.fit(data.X[train], data.y[train])
        found[name] = model.score(data.X[test], data.y[test])
    exact = DPDiscreteTimeSurvival(np.inf, max_time=data.max_time)
    found[EXACT] = exact.fit(data.X[train], data.y[train]).score(data.X[test], data.y[test])
    return found


def report(rows: pd.DataFrame, pages: Pages) -> None:
    """Write a table, of the published algorithms at the Lambda that is best in hindsight."""
    epsilons, cells = sorted(rows.epsilon.unique()), []
    found: list[Comparison] = []
    lost = {}
    for name in present(rows):
        part = {e: rows[(rows.data == name) & (rows.epsilon == e)] for e in epsilons}
        exact = rows[rows.data == name][EXACT].median()
        methods = {kind: dict.fromkeys(epsilons, kind) for kind in ("obj_pert", "out_pert")}
        for kind in PUBLISHED:
            names = [f"{kind} {value:g}" for value in LAMBDAS]
            methods[kind] = {e: str(part[e][names].median().idxmax()) for e in epsilons}
        for method, column in methods.items():
            scores = {e: part[e][column[e]] for e in epsilons if len(part[e])}
            shown = (f"{s.median():.3f} ({s.quantile(0.1):.3f})" for s in scores.values())
            cells.append((name, f"{exact:.3f}", method, *shown))
        for e in epsilons:
            ours = part[e]["obj_pert"]
            lost[name, e] = exact - ours.median()
            rival = max(PUBLISHED, key=lambda kind: part[e][methods[kind][e]].median())
            theirs = part[e][methods[rival][e]]
            found.append(
                pages.comparison(
                    "hazard model, C-index",
                    name,
                    float(e),
                    f"Nguyen and Hui, {rival}",
                    ours.to_numpy(),
                    theirs.to_numpy(),
                )
            )
    counts = {word: sum(row.outcome == word for row in found) for word in ("ahead", "level")}
    behind = [row for row in found if row.outcome == "behind"]
    worse = ", ".join(f"{row.data} at ε = {row.epsilon:g}" for row in behind)
    largest = {e: max(lost[name, e] for name in present(rows)) for e in epsilons}
    pages.table(
        "discrete_time_ranking",
        ("data", "no privacy", "method", *(f"ε = {epsilon:g}" for epsilon in epsilons)),
        cells,
        f"The default, obj_pert, ranks better than the better of the published algorithms in "
        f"{counts['ahead']} of {len(found)} cells beyond doubt, is level in {counts['level']} and "
        f"worse in {len(behind)}{f' ({worse})' if worse else ''}. Against no privacy it loses at "
        "most "
        + ", ".join(f"{loss:.3f} (ε = {e:g})" for e, loss in largest.items())
        + " of the C-index.",
        f"Harrell's C on the 30 % left out; median (lowest tenth) of {rows.repetition.max() + 1} "
        "random splits, default settings; of the published algorithms the best of "
        f"Λ = {', '.join(f'{x:g}' for x in LAMBDAS)}, chosen in hindsight.",
    )


RANKING = Experiment(cases, measure, report, repetitions=40)
