"""How much of each guarantee is used up exactly: ratios of densities that are known."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages
from benchmarks.studies.audited import KNOWN, Audited, find
from skdpsurv.audit.density_ratio import density_ratio_audit
from skdpsurv.audit.neighbours import NeighbourPair
from skdpsurv.survival.weibull.fitter import WeibullCurve
from tests.support import hazard_density
from tests.support.part_ratio import AuditedPart
from tests.support.transcript import transcript_audit
from tests.support.transcript_cases import CASES

EPSILONS = (0.1, 1.0, 8.0)


# ---- Whole releases of many estimators.


def ratio_cases(setting: Setting) -> Iterator[Case]:
    for each in setting.of(KNOWN, [a for a in KNOWN if a.settings in ("exact levels", "ladder")]):
        yield {"estimator": each.name, "settings": each.settings}


def ratio(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the largest log ratio of all pairs, and the claim that it is nearest to."""
    audited = find(KNOWN, case["estimator"], case["settings"])
    pairs = audited.neighbours(setting.of(1000, 1))
    n_cells = setting.of(128, 16)
    found = [each for pair in pairs for each in _ratios(audited, pair, n_cells)]
    largest, claimed = max(found, key=lambda each: each[0] / each[1])
    return {"claimed": claimed, "largest": largest, "pairs": len(pairs)}


def _ratios(audited: Audited, pair: NeighbourPair, n_cells: int) -> Iterator[tuple[float, float]]:
    """Yield a log ratio and its claim; of a Weibull fit that of all draws, too."""
    given = (audited.estimator, pair.data, pair.neighbour)
    found = density_ratio_audit(*given, n_cells=n_cells)
    yield found.largest, found.claimed
    if isinstance(audited.estimator, WeibullCurve):
        drawn = transcript_audit(*given, n_cells=n_cells)
        yield drawn.total, drawn.claimed


def ratio_report(rows: pd.DataFrame, pages: Pages) -> None:
    share = (rows.largest / rows.claimed).set_axis([rows.estimator, rows.settings])
    at = {key: rows.iloc[place] for place, key in enumerate(share.index)}
    order = [(a.name, a.settings) for a in KNOWN if (a.name, a.settings) in at]
    over = (share > 1.0).sum()
    pages.table(
        "audit_ratios",
        ("estimator", "settings", "claimed", "largest log ratio", "of the claim", "pairs"),
        [
            (
                *key,
                f"{at[key].claimed:.4g}",
                f"{at[key].largest:.4g}",
                f"{share[key]:.3f}",
                at[key].pairs,
            )
            for key in order
        ],
        f"Of {len(rows)} settings {over or 'none'} exceeds its claim; the worst pairs use "
        f"{share.min():.0%} to {share.max():.0%} of it.",
        "By density_ratio_audit. Of a ladder, what is nearer to its claim: all draws together, or "
        "the draw of the shape and its part of epsilon = 1. A thousandth of epsilon, for the "
        "solver, is not in the ratio of a minimiser.",
    )


# ---- Objective perturbation of the hazard model, for links, caps and epsilons.


def density_cases(setting: Setting) -> Iterator[Case]:
    for link, cap in hazard_density.CASES[: setting.of(None, 1)]:
        for epsilon in setting.of(EPSILONS, (1.0,)):
            yield {"link": link, "cap": "none" if cap is None else str(cap), "epsilon": epsilon}


def density(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the largest log ratio, and what calibration allows."""
    cap = None if case["cap"] == "none" else float(case["cap"])
    largest, allowed = hazard_density.largest_log_ratio(case["link"], cap, case["epsilon"])
    return {"largest": largest, "allowed": allowed}


def density_report(rows: pd.DataFrame, pages: Pages) -> None:
    share = (rows.largest / rows.epsilon).set_axis([rows.link, rows.cap, rows.epsilon]).unstack()
    used = rows.largest / rows.allowed
    pages.table(
        "audit_hazard_ratio",
        ("link", "cap", *(f"ε = {epsilon:g}" for epsilon in share)),
        [
            (link, cap, *(f"{value:.3f}" for value in values))
            for link, cap, *values in share.reset_index().itertuples(index=False)
        ],
        f"The largest log ratio is {share.min().min():.2f} to {share.max().max():.2f} times ε, and "
        f"at most {used.max():.2f} times what the calibration allows.",
        "Objective perturbation of the hazard model, one covariate and a constant baseline: the "
        "largest log ratio over ε, of extreme records and a grid of releases.",
    )


# ---- Part by part.


def part_cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(list(CASES), ["Weibull, Laplace", "Kaplan-Meier", "logistic"]):
        yield {"fit": name}


def parts(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return how much of its price is found of each part, by the pair that moves it most."""
    tried, best = CASES[case["fit"]], list[AuditedPart]()
    for data, neighbour in tried.made():
        given = (tried.estimator, data, neighbour)
        result = transcript_audit(*given, n_cells=setting.of(512, 16))
        if not result.passed:
            raise AssertionError(result)
        both = zip(best or result.parts, result.parts, strict=True)
        best = [max(pair, key=lambda part: part.share) for pair in both]
    return [
        {
            "number": number,
            "part": part.name,
            "share": part.share,
            "unmoved": number in tried.unmoved,
        }
        for number, part in enumerate(best)
    ]


def parts_report(rows: pd.DataFrame, pages: Pages) -> None:
    moved = rows[rows.unmoved == 0]
    table = []
    for name in CASES:
        mine = moved[moved.fit == name]
        if len(mine):
            least = mine.loc[mine.share.idxmin()]
            table.append(
                (name, len(mine), f"{least.share:.3f}", least.part, f"{mine.share.max():.3f}")
            )
    seen = (moved.share > 0.5).sum()
    pages.table(
        "audit_parts",
        ("fit", "parts", "least share", "of", "largest share"),
        table,
        f"No part of a fit exceeds its price. Of {seen} of {len(moved)} parts more than half of it "
        f"is found (least: {moved.share.min():.2f}), so that half of their noise would be refuted.",
        "The largest log ratio, of Gaussian noise the largest mu, over the price that the plan has "
        f"given the part. Left out, as no record moves them: {len(rows) - len(moved)}.",
    )


RATIOS = Experiment(ratio_cases, ratio, ratio_report)
DENSITY = Experiment(density_cases, density, density_report)
PARTS = Experiment(part_cases, parts, parts_report)
