"""Calibration slope and log loss of private logistic regression, with a table and without.

python -m benchmarks.logistic_calibration --data-dir FOLDER
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from sksurv.datasets import load_gbsg2, load_whas500

from benchmarks._classification import benchmark_sets
from benchmarks._common import split, table
from benchmarks._run import arguments, data_file, number, part, run, setting
from benchmarks.logistic_accuracy import Labelled, digits, main_sets, min_max, more_sets
from skdpsurv import DPLogisticRegression
from skdpsurv.classification import Perturbation
from skdpsurv.likelihoods.linear import log_odds

EPSILONS = setting((0.1, 0.3, 1.0, 3.0), quick=(1.0,))
DEFAULT_SHARE = Perturbation().recalibration_share
#: Data sets that the constants of the slope were found on, beside GUSTO and eight simulated ones.
IN_VIEW = ("digits 0 v 8", "breast cancer", "digits 3 v 8", "heart disease")
IN_VIEW += ("myocardial infarction", "MNIST 0 or 8")
#: Files with outcome and bounds that were stated without looking at the records.
OUTCOMES: dict[str, tuple[str, str, dict[str, tuple[float, float]]]] = {
    "flchain, death": (
        "fl_flchain.csv.gz",
        "event",
        {
            "age": (50, 100),
            "sex_male": (0, 1),
            "kappa": (0, 5),
            "lambda": (0, 5),
            "mgus": (0, 1),
            "flc_grp": (1, 10),
        },
    ),
    "third births": ("tb_third_births.csv.gz", "event", {"age": (15, 45), "spacing": (0, 4000)}),
}
#: Columns, informative ones and separation of simulated sets.
SIMULATED = ((10, 3, 0.7), (30, 10, 0.7), (100, 20, 1.0), (20, 2, 0.3), (50, 40, 1.5))
NEW_SIMULATED = ((8, 4, 0.8), (40, 10, 0.5), (70, 30, 1.0), (16, 3, 0.4), (120, 15, 1.2))


def kept_apart(folder: Path | None) -> Iterator[Labelled]:
    """Yield sets that no constant was found on, and that a first, steeper rule was dropped on."""
    yield digits(2, 5)
    yield digits(4, 6)
    yield digits(5, 9)
    for name, (file, outcome, bounds) in OUTCOMES.items():
        with part(name):
            frame = pd.read_csv(data_file(folder, file))
            low, high = np.array(list(bounds.values()), dtype=float).T
            X = np.clip((frame[list(bounds)] - low) / (high - low) * 2 - 1, -1, 1)
            X = np.column_stack([X.to_numpy(), np.ones(len(X))])
            yield Labelled(name, normalize(X), frame[outcome].to_numpy())
    yield from simulated(SIMULATED, 100)


def never_seen() -> Iterator[Labelled]:
    """Yield data sets that were first looked at with the final constants."""
    yield digits(0, 6)
    yield digits(7, 9)
    for name, load in (("GBSG2, event", load_gbsg2), ("WHAS500, death", load_whas500)):
        X, y = load()
        X = pd.get_dummies(X, drop_first=True).to_numpy(dtype=float)
        yield min_max(name, np.column_stack([X, np.ones(len(X))]), y[y.dtype.names[0]])
    yield from simulated(NEW_SIMULATED, 200)


def simulated(shapes: Sequence[tuple[int, int, float]], first_seed: int) -> Iterator[Labelled]:
    """Yield simulated sets of 4,000 rows, the later ones with more unequal classes."""
    for seed, (d, informative, separation) in enumerate(shapes):
        X, y = make_classification(
            4000,
            d,
            n_informative=informative,
            n_redundant=0,
            class_sep=separation,
            weights=[0.5 + 0.1 * seed],
            random_state=first_seed + seed,
        )
        yield Labelled(f"simulated, {informative} of {d}", normalize(np.tanh(X / 3)), y)


def log_loss(odds: np.ndarray, y: np.ndarray) -> float:
    """Return the log loss of log odds."""
    return float(np.mean(np.logaddexp(0.0, np.where(y == 1, -odds, odds))))


def fitted_slope(odds: np.ndarray, y: np.ndarray) -> float:
    """Return the calibration slope: what log odds should be multiplied with on held-out rows."""
    # In units of their spread, so that a weak penalty is weak for all.
    spread = max(float(odds.std()), 1e-12)
    model = LogisticRegression(C=100.0).fit(odds[:, None] / spread, y)
    return float(model.coef_[0, 0]) / spread


def measure(data: Labelled, epsilon: float, repetitions: int) -> list[float]:
    """Return means of log losses and accuracies, and medians of calibration slopes.

    Log losses of slope 1, of the public slope, of the defaults, of the fit without privacy;
    accuracies and calibration slopes of the public slope and of the defaults.
    """
    found = []
    for repetition in range(repetitions):
        train, test = split(data.y.size, repetition)
        X, y = data.X[train], data.y[train]
        exact = LogisticRegression(C=100.0, max_iter=2000).fit(X, y)
        truth = data.y[test]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models = [
                DPLogisticRegression(
                    epsilon,
                    classes=[0, 1],
                    random_state=repetition,
                    method=Perturbation(recalibration_share=share),
                ).fit(X, y)
                for share in (0.0, DEFAULT_SHARE)
            ]
        public, table = (
            model.recalibration_slope_
            * log_odds(model.decision_function(data.X[test]), model.max_residual_)
            for model in models
        )
        found.append(
            (
                log_loss(public / models[0].recalibration_slope_, truth),
                log_loss(public, truth),
                log_loss(table, truth),
                log_loss(exact.decision_function(data.X[test]), truth),
                np.mean((public > 0) == truth),
                np.mean((table > 0) == truth),
                fitted_slope(public, truth),
                fitted_slope(table, truth),
            )
        )
    values = np.array(found)
    return [*values[:, :6].mean(axis=0), *np.median(values[:, 6:], axis=0)]


def main() -> None:
    """One table."""
    args = arguments(__doc__ or "", repetitions=number(20, quick=2))
    sets = [*main_sets(), *more_sets(args.data_dir)]
    sets += [Labelled(s.name, s.X, s.y) for s in benchmark_sets(args.data_dir)]
    seen = [data for data in sets if data.name in IN_VIEW]
    other = [data for data in sets if data.name not in IN_VIEW]
    roles = {
        "found on": seen,
        "set aside": [*other, *kept_apart(args.data_dir)],
        "not seen before": list(never_seen()),
    }
    rows, means = [], []
    for role, members in roles.items():
        for epsilon in EPSILONS:
            found = [measure(data, epsilon, args.repetitions) for data in members]
            for data, (*shares, one, other) in zip(members, found, strict=True):
                rows.append(
                    (
                        *(role, data.head(), f"{epsilon:g}"),
                        *(f"{value:.3f}" for value in shares),
                        *(f"{value:.2f}" for value in (one, other)),
                    )
                )
            values = np.array(found)
            change = values[:, 2] - values[:, 1]
            means.append(
                (
                    *(role, len(members), f"{epsilon:g}"),
                    *(f"{value:.3f}" for value in values[:, :6].mean(axis=0)),
                    f"{change.min():+.3f} to {change.max():+.3f}",
                )
            )
    losses = ("slope 1", "public slope", "defaults", "no privacy")
    measures = (*(f"log loss, {name}" for name in losses), "accuracy, public slope")
    said = (
        f"On held-out rows of {args.repetitions} splits 70/30: means, and medians of calibration "
        "slopes, which are what log odds should have been multiplied with. Public slope: "
        "recalibration_share=0. No privacy: scikit-learn at C = 100."
    )
    table(
        "logistic_calibration_means",
        ("constants", "sets", "ε", *measures, "accuracy, defaults", "change by the table, one set"),
        means,
        said,
    )
    table(
        "logistic_calibration",
        (
            *("constants", "data", "ε", *measures, "accuracy, defaults"),
            *("calibration slope, public slope", "calibration slope, defaults"),
        ),
        rows,
        said,
    )


if __name__ == "__main__":
    run(main)
