"""Hybrid fits where records of some organisations are public, and those of others private.

The data of figures 7 and 8 of Wang et al. (2018) cannot be had; these are others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from benchmarks.data import organisations
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages, interval
from benchmarks.papers.hybrid_records import TwoTables, likely, logistic, private_rows
from skdpsurv import HybridMEstimator

EPSILONS = (1.0, 3.0, 9.0)
_SITES = {
    "infarction": ("part 1", "part 2", "part 3", "part 4"),
    "heart disease": ("cleveland", "hungarian", "switzerland", "va"),
}
OTHERS = "others"
#: Which organisations are public, and which private; regions are numbered from the largest.
ROLES: dict[str, tuple[str, ...]] = {
    name: (*(f"{one} → {OTHERS}" for one in sites), *(f"{OTHERS} → {one}" for one in sites))
    for name, sites in _SITES.items()
}
_LARGEST, _NEXT, _SMALLEST = "largest region", "next three", "four smallest"
ROLES["GUSTO-I"] = (
    f"{_LARGEST} → {_NEXT}",
    f"{_NEXT} → {_LARGEST}",
    f"{_SMALLEST} → {_LARGEST}",
    f"{_LARGEST} → {_SMALLEST}",
)
_REGIONS = {_LARGEST: slice(0, 1), _NEXT: slice(1, 4), _SMALLEST: slice(-4, None)}
#: Columns of results, and how tables call them.
METHODS = {
    "public": "public only",
    "default": "**default**",
    "subset": "subset",
    "rival": "DPLogisticRegression",
    "without": "without privacy",
}


@cache
def pair(setting: Setting, name: str, roles: str) -> TwoTables:
    """Return public and private records; columns that are constant in public are left out."""
    data = organisations(setting, name)
    sides = roles.split(" → ")
    if name == "GUSTO-I":
        regions = [data.source, *data.targets]
        members = [regions[_REGIONS[side]] for side in sides]
    else:
        members = [
            [one for one in _SITES[name] if (one in sides) != (side == OTHERS)] for side in sides
        ]
    public, private = (np.isin(data.site, which) for which in members)
    varied = np.ptp(data.X[public], axis=0) > 0
    return TwoTables(
        data.X[public][:, varied], data.y[public], data.X[private][:, varied], data.y[private]
    )


def pairs(setting: Setting) -> Iterator[tuple[str, str]]:
    """Yield data sets and roles; in a quick run, both roles of one organisation."""
    for name, roles in ROLES.items():
        some = (roles[0], roles[len(roles) // 2])
        yield from ((name, role) for role in setting.of(roles, some if name != "GUSTO-I" else ()))


def cases(setting: Setting) -> Iterator[Case]:
    for name, roles in pairs(setting):
        for epsilon in setting.of(EPSILONS, (1.0,)):
            yield {"data": name, "roles": roles, "epsilon": epsilon}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the mean log loss of each method on the private records."""
    data, epsilon = pair(setting, case["data"], case["roles"]), case["epsilon"]
    models = {
        "public": logistic().fit(data.X_public, data.y_public),
        "rival": private_rows(data, epsilon, seed(case["roles"], epsilon, repetition)),
        "without": logistic().fit(data.X_private, data.y_private),
    }
    for name, method in (("default", "auto"), ("subset", "subset")):
        model = HybridMEstimator(
            logistic(),
            epsilon,
            method=method,
            random_state=seed(case["roles"], name, epsilon, repetition),
        )
        models[name] = model.fit(data.rows, data.outcomes, public=data.public)

    def loss(model: object) -> float:
        p = np.clip(likely(model, data.X_private), 1e-6, 1.0 - 1e-6)
        return float(log_loss(data.y_private, p))

    losses = {name: loss(models[name]) for name in METHODS}
    return {"n_public": data.y_public.size, "n_private": data.y_private.size, **losses}


def report(rows: pd.DataFrame, pages: Pages) -> None:
    for name in ROLES:
        if name in set(rows.data):
            _table(rows[rows.data == name], name, pages)


def worse(here: pd.DataFrame, method: str) -> bool:
    """Return whether a method's mean loss is above public only's beyond doubt; of one, never."""
    mean, width = interval((here[method] - here["public"]).to_numpy())
    return mean > width


def _table(rows: pd.DataFrame, name: str, pages: Pages) -> None:
    """Write the losses of a data set's pairs."""
    epsilons = sorted(rows.epsilon.unique())
    groups = dict(iter(rows.groupby(["roles", "epsilon"])))
    roles = [role for role in ROLES[name] if all((role, e) in groups for e in epsilons)]

    def cell(role: str, method: str) -> str:
        texts = []
        for epsilon in epsilons:
            here = groups[role, epsilon]
            said = f"{here[method].mean():.3f}"
            texts.append(f"**{said}**" if worse(here, method) and method != "without" else said)
        return texts[0] if method in ("public", "without") else " / ".join(texts)

    cells = []
    for role in roles:
        first = groups[role, epsilons[0]].iloc[0]
        sizes = (f"{int(first.n_public):,}", f"{int(first.n_private):,}")
        cells.append((role, *sizes, *(cell(role, method) for method in METHODS)))

    def number(method: str) -> str:
        counts = [sum(worse(groups[role, e], method) for role in roles) for e in epsilons]
        return " / ".join(map(str, counts))

    won = [
        sum(groups[role, e]["default"].mean() < groups[role, e]["rival"].mean() for role in roles)
        for e in epsilons
    ]
    budgets = " / ".join(f"{epsilon:g}" for epsilon in epsilons)
    pages.table(
        f"hybrid_{name.partition(' ')[0].partition('-')[0].lower()}",
        ("public → private", "public rows", "private rows", *METHODS.values()),
        cells,
        f"At ε = {budgets}, the default is worse than public only beyond doubt in "
        f"{number('default')} of {len(roles)} pairs, the subset in {number('subset')}, and "
        f"`DPLogisticRegression` in {number('rival')}; the default has a smaller mean loss than "
        f"`DPLogisticRegression` in {' / '.join(map(str, won))}.",
        f"Mean log loss of the private records at ε = {budgets}; {rows.repetition.max() + 1} "
        "repetitions of the noise; bold where it is worse than public only by more than half a "
        "95 % interval. The fit without privacy is of the records that it is measured on.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=20)
