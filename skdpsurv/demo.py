"""What ``skdpsurv demo`` computes: private fits of flchain beside Cox regression.

The scores compare models on test records, so they are not private; flchain is public data.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.datasets import load_flchain
from skdpsurv.metrics import concordance_index, relative_error
from skdpsurv.preprocessing import PublicBoundsScaler
from skdpsurv.privacy import PrivacyAccountant, PrivacyLeakWarning
from skdpsurv.reference import fit_cox
from skdpsurv.survival import DPDiscreteTimeSurvival
from skdpsurv.survival.step_function import StepFunction
from skdpsurv.target import event_and_time
from skdpsurv.types import FloatArray
from skdpsurv.version import extra

__all__ = ["Comparison", "Score", "compare_on_flchain", "save_figure"]


DEFAULT_EPSILONS = (3.0, 1.0, 0.3, 0.1)

PEOPLE = pd.DataFrame.from_dict(
    {
        "Woman aged 60": (60.0, 0.0, 1.2, 1.4, 0.9, 0.0, 1996.0),
        "Man aged 75": (75.0, 1.0, 1.6, 1.9, 1.2, 0.0, 1996.0),
        "Woman aged 90": (90.0, 0.0, 2.2, 2.4, 1.3, 0.0, 1996.0),
    },
    orient="index",
    columns=["age", "sex_male", "kappa", "lambda", "creatinine", "mgus", "sample_yr"],
)


@dataclass(frozen=True)
class Score:
    """One row of the table.

    Parameters
    ----------
    model : str
        What was fitted.
    epsilon : float
        Privacy loss of the fit; inf for one that promises nothing.
    status : str
        Status of its guarantee.
    c_index : float
        Harrell's concordance index on the test records.
    brier : float
        Integrated Brier score on the test records.
    coef_error : float
        Distance of the coefficients from Cox's, relative to the length of these; NaN for a model
        without coefficients.
    """

    model: str
    epsilon: float
    status: str
    c_index: float
    brier: float
    coef_error: float


@dataclass(frozen=True)
class Comparison:
    """What the demo shows.

    Parameters
    ----------
    scores : list of Score
        Cox regression, the fit without privacy, the private fits by falling epsilon, Kaplan-Meier.
    models : dict of str to DPDiscreteTimeSurvival
        The fits to draw, by name.
    people : ndarray of shape (3, n_features)
        Three invented people, scaled as the records.
    spent : float
        Sum of epsilon over the private fits; with a seed they are rehearsals, and it is nominal.
    n_train, n_test : int
        Numbers of records.
    """

    scores: list[Score]
    models: dict[str, DPDiscreteTimeSurvival]
    people: FloatArray
    spent: float
    n_train: int
    n_test: int


def compare_on_flchain(
    epsilons: Sequence[float] = DEFAULT_EPSILONS, *, seed: int | None = None
) -> Comparison:
    """Fit flchain with and without privacy, and score on records that no fit has seen.

    Parameters
    ----------
    epsilons : sequence of float
        Privacy losses of the private fits, positive and finite.
    seed : int, optional
        Seed of the noise, which voids the privacy. The operating system's entropy if omitted.

    Returns
    -------
    Comparison

    Raises
    ------
    ImportError
        If scikit-survival is not installed.
    """
    with extra("reference", "scikit-survival", "The demo"):
        from sksurv.metrics import integrated_brier_score
        from sksurv.nonparametric import kaplan_meier_estimator
    data = load_flchain()
    scaler = PublicBoundsScaler.from_bounds(data.bounds, missing="midpoint")
    Z = scaler.fit_transform(data.X)
    # By position alone, so which part a record falls in says nothing about it.
    order = np.random.default_rng(0).permutation(len(Z))
    train, test = np.split(order, [round(0.7 * len(Z))])
    y_train, y_test = data.y[train], data.y[test]
    grid = np.linspace(0.0, data.max_time, 41)[1:]
    grid = grid[grid < y_test["futime"].max()]

    def brier(functions: Sequence[Any]) -> float:
        curves = np.broadcast_to(_at(functions, grid), (len(test), grid.size))
        return float(integrated_brier_score(y_train, y_test, curves, grid))

    def score(name: str, model: Any, epsilon: float, status: str) -> Score:
        return Score(
            name,
            epsilon,
            status,
            concordance_index(y_test, model.predict(Z[test])),
            brier(model.predict_survival_function(Z[test])),
            relative_error(model.coef_, cox.coef_),
        )

    cox = fit_cox(Z[train], y_train)
    scores = [score("Cox regression", cox, math.inf, "none")]
    models = {}
    ledger = PrivacyAccountant(rehearsal=seed is not None)
    for epsilon in (math.inf, *sorted(set(epsilons), reverse=True)):
        private = math.isfinite(epsilon)
        model = DPDiscreteTimeSurvival(
            epsilon,
            max_time=data.max_time,
            data_norm=math.sqrt(Z.shape[1]) / 2.0,  # columns are in [-1, 1]
            random_state=seed if private else None,
            accountant=ledger if private else None,
        )
        with warnings.catch_warnings():
            # The column "status" says it.
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            model.fit(Z[train], y_train)
        name = "Private hazard model" if private else "Hazard model"
        scores.append(score(name, model, epsilon, model.guarantee_.status))
        models[f"ε = {epsilon:g}" if private else "No privacy"] = model
    # The same curve for everybody is what covariates have to beat.
    everybody = StepFunction(*kaplan_meier_estimator(*event_and_time(y_train)))
    scores.append(Score("Kaplan-Meier", math.inf, "none", 0.5, brier([everybody]), math.nan))
    people = scaler.transform(PEOPLE[list(data.X)])
    # One of the two sums is zero.
    total = ledger.spent() + ledger.rehearsed()
    return Comparison(scores, models, people, total, len(train), len(test))


def save_figure(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Draw the survival curves of three invented people, and save the figure.

    Parameters
    ----------
    comparison : Comparison
    path : str or os.PathLike
        The ending chooses the format: .png, .pdf, .svg.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    with extra("plot", "matplotlib", "The figure"):
        # Not pyplot, which would look for a screen.
        from matplotlib.figure import Figure
    from skdpsurv.plotting import plot_survival_curves

    figure = Figure(figsize=(9.0, 5.2), layout="constrained")
    ax = figure.subplots()
    plot_survival_curves(
        comparison.models,
        comparison.people,
        labels=list(PEOPLE.index),
        ax=ax,
        time_unit="years since the blood sample",
        time_scale=365.25,
    )
    ax.set_title(
        "Predicted survival of three people, with and without differential privacy\n",
        loc="left",
        fontweight="bold",
    )
    ax.text(
        0.0,
        1.02,
        f"Discrete-time hazard model fitted to {comparison.n_train:,} people of the flchain study. "
        "Smaller ε: more privacy, more noise.",
        transform=ax.transAxes,
        color="0.35",
    )
    figure.savefig(path, dpi=150)


def _at(functions: Sequence[Any], times: FloatArray) -> FloatArray:
    """Survival of each person at each time; 1 before a function's first step."""
    return np.vstack(
        [np.where(times < f.x[0], 1.0, f(np.maximum(times, f.x[0]))) for f in functions]
    )
