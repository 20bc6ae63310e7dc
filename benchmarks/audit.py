"""Attacks on every estimator of the package, and on mechanisms that are known to be bad.

OMP_NUM_THREADS=1 python -m benchmarks.audit

All worst pairs of an estimator are tried with a few fits; the pair that looks worst is then audited
with fresh ones. Three tables: what was found, what was found of planted defects, and the exact
ratios of densities where these are known.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from benchmarks._common import table
from benchmarks._run import QUICK, arguments, number, run, setting
from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    HybridMEstimator,
    PosteriorSampling,
    PrivateStackingClassifier,
)
from skdpsurv.audit.density_ratio import density_ratio_audit
from skdpsurv.audit.epsilon import audit_epsilon
from skdpsurv.audit.neighbours import worst_neighbours
from skdpsurv.classification import Perturbation
from skdpsurv.hybrid import SubsetSelection
from skdpsurv.model_selection import PrivateSearchCV, RepeatedRuns
from skdpsurv.published import (
    LaplaceWeibullFitter,
    PerturbedHistogramMEstimator,
    PublishedDiscreteTimeSurvival,
    PublishedLogisticRegression,
    PublishedStackingClassifier,
    PublishedWeibullFitter,
    SampleAggregateWeibullFitter,
)
from skdpsurv.survival.weibull.fitter import WeibullCurve
from tests.support import planted_defects
from tests.support.transcript import transcript_audit

#: Chance that a private mechanism has a bound above its epsilon, for each line of the tables.
ERROR = 1e-3
#: Screening compares pairs; it needs no confidence.
SCREENING_CONFIDENCE = 0.5
#: Of the grid on which densities are compared.
N_CELLS = setting(128, quick=16)


class Case(NamedTuple):
    """What is audited: sizes of the pairs, and fewer fits and pairs if fits are slow."""

    settings: str
    estimator: Any
    n: int = 2
    n_features: int = 1
    share: float = 1.0
    pairs: int = 100


FIXED = {"max_time": 1.0, "n_intervals": 4, "n_knots": 1, "data_norm": 1.0}


def hazard(**parameters: Any) -> DPDiscreteTimeSurvival:
    return DPDiscreteTimeSurvival(**{**FIXED, **parameters})


def published(**parameters: Any) -> PublishedDiscreteTimeSurvival:
    return PublishedDiscreteTimeSurvival(**{**FIXED, **parameters})


def logistic(**parameters: Any) -> DPLogisticRegression:
    return DPLogisticRegression(**{"classes": [0, 1], **parameters})


def stack(**parameters: Any) -> PrivateStackingClassifier:
    return PrivateStackingClassifier(**{"classes": [0, 1], "n_partitions": 2, **parameters})


def published_stack() -> PublishedStackingClassifier:
    return PublishedStackingClassifier(classes=[0, 1], n_partitions=2)


def weibull(**parameters: Any) -> DPWeibullFitter:
    return DPWeibullFitter(max_time=1.0, **parameters)


def hybrid(**parameters: Any) -> HybridMEstimator:
    return HybridMEstimator(**parameters)


#: A strong ridge keeps minimisers where one record moves them farthest.
STRONG = 20.0
SHORT = {"method": PosteriorSampling(n_epochs=100), "n_intervals": 1}
STEPS = PosteriorSampling("psgld", n_epochs=500, step_size=0.2)
PSGLD = {"method": STEPS, "n_intervals": 1, "epsilon": 2.0}


def cases() -> Iterator[Case]:
    """Yield all methods, published calibrations included."""
    yield Case("obj_pert", hazard())
    yield Case("obj_pert, alpha=20", hazard(alpha=STRONG))
    yield Case(
        "obj_pert, first look", hazard(epsilon=2.0, pilot_share=0.5, alpha=1.0), 100, share=0.5
    )
    yield Case("obj_pert, cloglog, 2 knots", hazard(alpha=STRONG, link="cloglog", n_knots=2))
    yield Case("out_pert, alpha=20", hazard(alpha=STRONG, method="out_pert"))
    yield Case("out_pert, probit, alpha=20", hazard(alpha=STRONG, method="out_pert", link="probit"))
    yield Case("obj_pert, published", published(alpha=STRONG))
    yield Case("out_pert, published", published(alpha=STRONG, method="out_pert"))
    yield Case("psgld, sampler='mala', 100 steps", hazard(**SHORT), share=0.2, pairs=6)
    yield Case("psgld, sampler='psgld', 500 epochs", hazard(**PSGLD), share=0.2, pairs=6)
    yield Case("psgld, published (status none)", published(**PSGLD), share=0.2, pairs=6)
    yield Case("obj_pert", logistic())
    yield Case("obj_pert, alpha=20", logistic(alpha=STRONG))
    yield Case(
        "obj_pert, max_residual=1, 2 columns",
        logistic(method=Perturbation(max_residual=1.0)),
        n_features=2,
    )
    yield Case(
        "obj_pert, intercept_scaling=10", logistic(method=Perturbation(intercept_scaling=10.0))
    )
    yield Case("obj_pert, 3 classes", logistic(classes=[0, 1, 2]))
    yield Case("obj_pert, data_norm=100", logistic(data_norm=100.0, fit_intercept=False))
    yield Case("out_pert, alpha=20", logistic(method="out_pert", alpha=STRONG))
    yield Case("obj_pert, published", PublishedLogisticRegression(classes=[0, 1]))
    yield Case("features, weighted vote", stack(alpha=STRONG), n_features=2)
    yield Case("features, logistic", stack(combiner="logistic"), n=6, n_features=2)
    yield Case("samples, logistic", stack(partition="samples", combiner="logistic"), n=6)
    yield Case("features, published", published_stack(), n_features=2)
    yield Case("ladder", weibull(), n=5)
    yield Case("ladder, shape_fraction=0.9", weibull(shape_fraction=0.9), n=5)
    exact = PublishedWeibullFitter(max_time=1.0, ladder="exact")
    yield Case("exact levels", exact, n=3, share=0.5)
    yield Case("published levels", PublishedWeibullFitter(max_time=1.0), 3, share=0.1, pairs=4)
    yield Case("Laplace", LaplaceWeibullFitter(max_time=1.0))
    yield Case("sample and aggregate", SampleAggregateWeibullFitter(max_time=1.0))
    for method in ("auto", "cells", "residuals", "all", "subset"):
        yield Case(method, hybrid(method=method), share=0.4)
    curve = SubsetSelection("noisy_curve", candidate_sizes=[3, 6, 9])
    yield Case("subset, noisy curve", hybrid(method=curve), share=0.4)
    yield Case("cells, regression", hybrid(estimator=LinearRegression()), share=0.4)
    histogram = PerturbedHistogramMEstimator(bounds=[(-1, 1)], outcome=[0, 1], n_bins=3)
    yield Case("3 bins", histogram, share=0.5)
    for strategy, how in {"split": "split", "repeat": RepeatedRuns(expected_runs=1.0)}.items():
        grid = {"alpha": [0.1, 10.0]}
        search = PrivateSearchCV(logistic(), grid, strategy=how)
        yield Case(strategy, search, n=8, share=0.2, pairs=6)


def pairs_of(estimator: Any, most: int, **sizes: int) -> list[Any]:
    return list(islice(worst_neighbours(estimator, **sizes), most))


def audits(trials: int, screening: int, most_pairs: int, jobs: int, only: str) -> None:
    """Table: the largest bound found for each method."""
    rows = []
    for case in cases():
        name = type(case.estimator).__name__
        if only not in f"{name} {case.settings}" or (QUICK and name in (row[0] for row in rows)):
            continue
        start = time.perf_counter()
        # So many that a bound above the claim can be found.
        least = 30 if case.estimator.epsilon <= 1.0 else 80
        few, many = (int(case.share * number) for number in (screening, trials))
        few = max(least, few)
        most = min(most_pairs, case.pairs)
        pairs = pairs_of(case.estimator, most, n=case.n, n_features=case.n_features)
        worst = max(pairs, key=lambda pair: screened(case.estimator, pair, few, jobs))
        result = audit_epsilon(
            case.estimator,
            worst.data,
            worst.neighbour,
            n_trials=max(many, 5 * least),
            confidence=1.0 - ERROR,
            n_jobs=jobs,
        )
        fits = 2 * (few * len(pairs) + result.n_trials)
        rows.append(
            (
                name,
                case.settings,
                f"{result.claimed:g}",
                f"{result.lower_bound:.2f}",
                f"{result.resolution:.1f}",
                worst.name,
                len(pairs),
                f"{fits:,}",
            )
        )
        print(*rows[-1], f"{time.perf_counter() - start:.0f} s", sep=" | ", flush=True)
    if only:
        return
    table(
        "audit",
        (
            "estimator",
            "settings",
            "claimed ε",
            "largest bound found",
            "could be found",
            "pair",
            "pairs tried",
            "fits",
        ),
        rows,
        "Lower bounds on epsilon by skdpsurv.audit.audit_epsilon, for the pair that looked worst "
        "when all were screened. A mechanism with the claimed epsilon has a larger bound with "
        f"probability at most {ERROR:g} in each line.",
    )


def screened(estimator: Any, pair: Any, trials: int, jobs: int) -> tuple[float, float]:
    """Return how bad a pair looks."""
    result = audit_epsilon(
        estimator,
        pair.data,
        pair.neighbour,
        n_trials=trials,
        confidence=SCREENING_CONFIDENCE,
        n_jobs=jobs,
    )
    first, second = np.nan_to_num(np.array(result.rates)) + 1e-2
    return result.lower_bound, abs(float(np.log(first / second)))


def planted() -> None:
    """Table: bounds found with and without a defect."""
    rows = []
    for name, case in list(planted_defects.PLANTED.items())[: setting(None, quick=1)]:
        bounds, seconds = [], []
        for broken in (False, True):
            start = time.perf_counter()
            # In this process, since a defect is planted in no other.
            with planted_defects.short_chains(), case.defect() if broken else nullcontext():
                result = audit_epsilon(
                    clone(case.estimator),
                    case.data,
                    case.neighbour,
                    n_trials=case.n_trials,
                    statistic=case.statistic,
                    confidence=1.0 - ERROR,
                )
            bounds.append(result.lower_bound)
            seconds.append(time.perf_counter() - start)
        rows.append(
            (
                name,
                type(case.estimator).__name__,
                f"{result.claimed:g}",
                f"{bounds[0]:.2f}",
                f"{bounds[1]:.2f}",
                f"{case.n_trials:,}",
                f"{seconds[1]:.0f}",
            )
        )
        print(*rows[-1], sep=" | ", flush=True)
    table(
        "audit_planted",
        (
            "defect",
            "estimator",
            "claimed ε",
            "found, without it",
            "found, with it",
            "fits of either data set",
            "seconds, with it",
        ),
        rows,
        "Lower bounds on epsilon by skdpsurv.audit.audit_epsilon, each wrong with probability at "
        f"most {ERROR:g}.",
    )


def exact_ratios(
    estimator: Any, data: tuple[Any, ...], neighbour: tuple[Any, ...]
) -> Iterator[tuple[float, float]]:
    """Yield the largest log ratio and its claim; of a Weibull fit that of all draws, too."""
    ratio = density_ratio_audit(estimator, data, neighbour, n_cells=N_CELLS)
    yield ratio.largest, ratio.claimed
    if isinstance(estimator, WeibullCurve):
        drawn = transcript_audit(estimator, data, neighbour, n_cells=N_CELLS)
        yield drawn.total, drawn.claimed


def ratios(most_pairs: int) -> None:
    """Table: the largest ratios of densities over all worst pairs."""
    cases = (
        ("obj_pert, alpha=20", hazard(pilot_share=0.0, alpha=STRONG), 2, 1),
        ("obj_pert", hazard(pilot_share=0.0), 2, 1),
        ("obj_pert, cloglog", hazard(pilot_share=0.0, alpha=STRONG, link="cloglog"), 2, 1),
        ("obj_pert, probit", hazard(pilot_share=0.0, alpha=STRONG, link="probit"), 2, 1),
        ("out_pert, alpha=20", hazard(pilot_share=0.0, alpha=STRONG, method="out_pert"), 2, 1),
        ("obj_pert, published", published(alpha=STRONG), 2, 1),
        ("obj_pert", logistic(), 2, 1),
        (
            "obj_pert, max_residual=1, 2 columns",
            logistic(method=Perturbation(max_residual=1.0)),
            2,
            2,
        ),
        ("obj_pert, 3 classes", logistic(classes=[0, 1, 2]), 2, 1),
        ("out_pert, alpha=20", logistic(method="out_pert", alpha=STRONG), 2, 1),
        ("obj_pert, published", PublishedLogisticRegression(classes=[0, 1]), 2, 1),
        ("features, weighted vote", stack(alpha=STRONG), 2, 2),
        ("features, published", published_stack(), 2, 2),
        ("ladder", weibull(), 5, 1),
        ("exact levels", PublishedWeibullFitter(max_time=1.0, ladder="exact"), 3, 1),
        ("published levels", PublishedWeibullFitter(max_time=1.0), 3, 1),
    )
    rows = []
    for settings, estimator, n, n_features in cases[: setting(None, quick=1)]:
        start = time.perf_counter()
        found = [
            (*ratio, p.name)
            for p in pairs_of(estimator, most_pairs, n=n, n_features=n_features)
            for ratio in exact_ratios(estimator, p.data, p.neighbour)
        ]
        largest, claimed, name = max(found, key=lambda each: each[0] / each[1])
        rows.append(
            (
                type(estimator).__name__,
                settings,
                f"{claimed:.4g}",
                f"{largest:.4g}",
                f"{largest / claimed:.3f}",
                name,
                len({each[2] for each in found}),
            )
        )
        print(*rows[-1], f"{time.perf_counter() - start:.0f} s", sep=" | ", flush=True)
    table(
        "audit_density_ratios",
        (
            "estimator",
            "settings",
            "claimed",
            "largest log ratio",
            "of the claim",
            "pair",
            "pairs tried",
        ),
        rows,
        "Exact log ratios by skdpsurv.audit.density_ratio_audit. Of a ladder, what is nearer to "
        "its claim: all draws together, by tests.support.transcript, or the draw of the shape and "
        "its part of epsilon = 1. A "
        "thousandth of epsilon, for the solver, is not in the ratio of a minimiser.",
    )


def main() -> None:
    """Three tables."""
    args = arguments(
        __doc__ or "",
        trials=number(3000, quick=150) | {"help": "fits of either data set of a worst pair"},
        screening=number(200, quick=30) | {"help": "fits of either data set of every pair"},
        pairs=number(100, quick=1) | {"help": "at most so many of each estimator"},
        jobs=number(1),
        only={"default": "", "help": "part of an estimator and its settings; writes no table"},
    )
    audits(args.trials, args.screening, args.pairs, args.jobs, args.only)
    if not args.only:
        ratios(args.pairs)
        planted()


if __name__ == "__main__":
    run(main)
