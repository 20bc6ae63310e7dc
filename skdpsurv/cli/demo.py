"""skdpsurv demo: private fits of flchain beside Cox regression.

The scores compare models on test records, so they are not private; flchain is public data.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from skdpsurv.cli.failures import WORDS, require
from skdpsurv.cli.options import command
from skdpsurv.cli.printing import rich_table, show, working
from skdpsurv.dp.references import extra

#: Columns of flchain, and invented people for whom survival is drawn.
COLUMNS = ("age", "sex_male", "kappa", "lambda", "creatinine", "mgus", "sample_yr")
PROFILES = {
    "Woman aged 60": (60.0, 0.0, 1.2, 1.4, 0.9, 0.0, 1996.0),
    "Man aged 75": (75.0, 1.0, 1.6, 1.9, 1.2, 0.0, 1996.0),
    "Woman aged 90": (90.0, 0.0, 2.2, 2.4, 1.3, 0.0, 1996.0),
}
#: Columns of the table of scores.
SCORES = ("model", "epsilon", "status", "C-index", "Brier", "coef. error")


class Comparison(NamedTuple):
    """Results of the demo.

    Parameters
    ----------
    scores : DataFrame
        Cox regression, the fit without privacy, the private fits by falling epsilon, Kaplan-Meier.
    models : dict of str to DPDiscreteTimeSurvival
        The fits to draw, by name.
    profiles : ndarray of shape (3, n_features)
        Example profiles, scaled as the records.
    spent : float
        Sum of epsilon over the private fits; nominal with a seed, as they are rehearsals then.
    n_train, n_test : int
        Numbers of records.
    """

    scores: Any
    models: dict[str, Any]
    profiles: Any
    spent: float
    n_train: int
    n_test: int


@partial(command, for_machines=False)
def demo(
    *,
    epsilon: list[float] = [3.0, 1.0, 0.3, 0.1],  # noqa: B006, typer copies it
    out: Path = Path("demo.png"),
    no_figure: bool = False,
    seed: int | None = None,
) -> None:
    """Fit flchain with and without privacy, compare with Cox regression, and draw curves.

    Parameters
    ----------
    epsilon : list of float
        Privacy loss of a private fit. Give it several times to compare.
    out : Path
        Where to save the figure (.png, .pdf, .svg).
    no_figure : bool, default=False
        Draw no figure.
    seed : int or None
        Seed of the noise, for the same numbers in every run; voids the privacy.
    """
    positive = all(0.0 < one < math.inf for one in epsilon)
    require(positive, "--epsilon must be a positive finite number.")
    writable = out.parent.is_dir() and out.suffix in (".png", ".pdf", ".svg")
    require(writable, "--out must end in .png, .pdf or .svg, in a folder that exists.")
    with working("Fitting Cox regression and the private models"):
        found = compare_on_flchain(epsilon, seed=seed)
    title = f"flchain: fitted to {found.n_train:,} people, scored on {found.n_test:,}"
    lines = [rich_table(found.scores, title), WORDS["demo"].format(spent=found.spent)]
    if not no_figure:
        try:
            _save_figure(found, out)
            lines.append(f"Figure: {out.resolve()}")
        except ImportError as error:
            lines.append(f"No figure. {error}")
    show({}, lines)


def compare_on_flchain(epsilons: Sequence[float], *, seed: int | None = None) -> Comparison:
    """Fit flchain with and without privacy, and score the fits on other records.

    Parameters
    ----------
    epsilons : sequence of float
        Privacy losses of the private fits, positive and finite.
    seed : int, optional
        Seed of the noise, which voids the privacy. The operating system's entropy if omitted.
    """
    import numpy as np
    import pandas as pd

    from skdpsurv.data import PublicBoundsScaler
    from skdpsurv.data.target import event_and_time
    from skdpsurv.datasets import load_flchain
    from skdpsurv.dp.guarantee import PrivacyLeakWarning
    from skdpsurv.evaluation import concordance_index
    from skdpsurv.reference import fit_cox, relative_error
    from skdpsurv.survival import DPDiscreteTimeSurvival
    from skdpsurv.survival.step_function import StepFunction

    with extra("reference", "scikit-survival", "The demo"):
        from sksurv.metrics import integrated_brier_score
        from sksurv.nonparametric import kaplan_meier_estimator
    data = load_flchain()
    scaler = PublicBoundsScaler.from_bounds(data.bounds, missing="midpoint")
    Z = scaler.fit_transform(data.X)
    # The split depends on positions alone, and so on nothing private.
    order = np.random.default_rng(0).permutation(len(Z))
    train, test = np.split(order, [round(0.7 * len(Z))])
    y_train, y_test = data.y[train], data.y[test]
    grid = np.linspace(0.0, data.max_time, 41)[1:]
    grid = grid[grid < y_test["futime"].max()]

    def brier(functions: Sequence[Any]) -> float:
        # A function is 1 before its first step.
        curves = [np.where(grid < f.x[0], 1.0, f(np.maximum(grid, f.x[0]))) for f in functions]
        return float(integrated_brier_score(y_train, y_test, np.vstack(curves), grid))

    def score(name: str, model: Any, epsilon: float, status: str) -> tuple[Any, ...]:
        ranked = concordance_index(y_test, model.predict(Z[test]))
        error = brier(model.predict_survival_function(Z[test]))
        return name, epsilon, status, ranked, error, relative_error(model.coef_, cox.coef_)

    cox = fit_cox(Z[train], y_train)
    scores = [score("Cox regression", cox, math.inf, "none")]
    models = {}
    for epsilon in (math.inf, *sorted(set(epsilons), reverse=True)):
        private = math.isfinite(epsilon)
        model = DPDiscreteTimeSurvival(
            epsilon,
            max_time=data.max_time,
            data_norm=math.sqrt(Z.shape[1]) / 2.0,  # columns are in [-1, 1]
            random_state=seed if private else None,
        )
        with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
            # The column "status" says it.
            model.fit(Z[train], y_train)
        name = "Private hazard model" if private else "Hazard model"
        scores.append(score(name, model, epsilon, model.guarantee_.status))
        models[f"ε = {epsilon:g}" if private else "No privacy"] = model
    curve = StepFunction(*kaplan_meier_estimator(*event_and_time(y_train)))
    without_covariates = brier([curve] * len(test))
    scores.append(("Kaplan-Meier", math.inf, "none", 0.5, without_covariates, math.nan))
    profiles = pd.DataFrame.from_dict(PROFILES, orient="index", columns=COLUMNS)
    Z_profiles = scaler.transform(profiles[list(data.X)])
    table = pd.DataFrame(scores, columns=SCORES)
    return Comparison(table, models, Z_profiles, math.fsum(set(epsilons)), len(train), len(test))


def _save_figure(comparison: Comparison, path: Path) -> None:
    """Draw the survival curves of the example profiles, and save the figure."""
    from skdpsurv.plotting import plot_survival_curves

    unit: dict[str, Any] = {"time_unit": "years since the blood sample", "time_scale": 365.25}
    models, profiles = comparison.models, comparison.profiles
    ax = plot_survival_curves(models, profiles, labels=list(PROFILES), **unit)
    title = "Predicted survival of three people, with and without differential privacy\n"
    ax.set_title(title, loc="left", fontweight="bold")
    about = WORDS["figure"].format(n_train=comparison.n_train)
    ax.text(0.0, 1.02, about, transform=ax.transAxes, color="0.35")
    figure: Any = ax.figure
    figure.set_size_inches(9.0, 5.2)
    figure.savefig(path, dpi=150)
