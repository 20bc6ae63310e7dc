"""Commands that make up records, and spend nothing: plan a study, and audit what is claimed."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from skdpsurv.audit import audit_epsilon, density_ratio_audit, measurement_audit, worst_neighbours
from skdpsurv.cli.columns_file import public_columns
from skdpsurv.cli.failures import CommandError, guarded
from skdpsurv.cli.fitting import ESTIMATORS, TABLES, Kind, make
from skdpsurv.cli.options import NONE, AsJson, Option, Settings
from skdpsurv.cli.output import reserve, rich_table, show, working
from skdpsurv.forecast import forecast_accuracy

__all__ = ["audit", "plan"]

#: What a terminal has room for, of a forecast's table, and what it means.
SHOWN = {
    "c_index": ("C-index", "C-index: on fresh records"),
    "auc": ("AUC", "AUC: on fresh records"),
    "largest_error": ("error", "error: the largest of the survival curve"),
    "loss": ("loss", "loss: against no privacy"),
    "loss_high": ("90 %", "90 %: the loss that nine studies in ten stay below"),
    "calibration": ("E/O", "E/O: mean predicted risk over the true one"),
    "risk_error": ("risk error", "risk error: mean absolute error of predicted risk"),
    "interval_width": ("width", "width: of an interval of a coefficient, against no privacy"),
    "finite_intervals": ("finite", "finite: share of intervals that end"),
    "width_horizon": ("width", "width: of the interval of survival at the horizon"),
}
#: Probability, at most, with which a true claim is called refuted.
FALSE_ALARM = 1e-4

KindOfModel = Annotated[
    Kind, typer.Argument(metavar="KIND", help="survival, weibull, km or logistic.")
]


@guarded
def plan(
    kind: KindOfModel,
    records: Annotated[int, Option(help="How many records there will be.")],
    set_: Settings = NONE,
    columns: Annotated[
        int | None, Option(help="How many columns there will be; 8 by default.")
    ] = None,
    schema: Annotated[
        Path | None,
        Option(help="In place of --columns: the TOML file that says what they hold."),
    ] = None,
    event_rate: Annotated[
        float,
        typer.Option(
            help="Share of records whose event will be seen before the horizon; of the second "
            "class, for a classifier."
        ),
    ] = 0.3,
    concordance: Annotated[
        float | None,
        Option(help="C-index (or AUC) of the best model, as earlier studies have it; else 0.7."),
    ] = None,
    censoring: Annotated[
        float, typer.Option(help="Share of the others who are lost before the horizon.")
    ] = 0.5,
    baseline: Annotated[
        str, typer.Option(help="Course of the hazard: front-loaded, flat or rising.")
    ] = "flat",
    epsilon: Annotated[
        list[float], typer.Option(help="Privacy loss to ask about. May be given several times.")
    ] = [0.1, 0.3, 1.0, 3.0],  # noqa: B006, typer copies it
    intervals: Annotated[
        float, Option(min=0.0, max=0.9, help="Share of epsilon for standard errors, as in fit.")
    ] = 0.0,
    delta: Annotated[
        float, Option(min=0.0, max=1.0, help="Delta of Gaussian noise, as in fit.")
    ] = 0.0,
    repeats: Annotated[int, typer.Option(help="Studies to simulate.")] = 20,
    figure: Annotated[
        Path | None, Option(help="Draw the table: a .png, .pdf or .svg file.")
    ] = None,
    seed: Annotated[
        int | None, Option(min=0, help="Seed of the simulation: its records are nobody's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Forecast accuracy at several epsilons, by simulation: no record is read, nothing is spent."""
    if figure is not None:
        if figure.suffix not in (".png", ".pdf", ".svg"):
            raise CommandError("parameter", "--figure must end in .png, .pdf or .svg.")
        reserve(figure)
    stated = {}
    for option, name, value in (
        ("--intervals", "inference_share", intervals),
        ("--delta", "delta", delta),
    ):
        if value and kind not in TABLES:
            raise CommandError("parameter", f"{option} is not for {kind}.")
        if value:
            stated[name] = value
    forecast = forecast_accuracy(
        _made_up(kind, stated, set_),
        records,
        n_columns=columns,
        columns=None if schema is None else public_columns(schema),
        event_rate=event_rate,
        concordance=concordance,
        censoring=censoring,
        baseline=baseline,
        epsilons=epsilon,
        n_repeats=repeats,
        random_state=seed,
        verbose=0 if as_json else 1,
    )
    names = [name for name in SHOWN if name in forecast.table]
    shown = forecast.table[names].rename(columns={name: SHOWN[name][0] for name in names})
    legend = ". ".join(SHOWN[name][1] for name in names) + "."
    lines: list[Any] = [rich_table(shown.round(3) + 0.0), legend, forecast.advice]
    if figure is not None:
        np.ravel(forecast.plot())[0].figure.savefig(figure, dpi=150)
        lines.append(f"Figure: {figure}")
    show(forecast.to_dict(), lines, as_json)


@guarded
def audit(
    kind: KindOfModel,
    set_: Settings = NONE,
    epsilon: Annotated[float, typer.Option(help="The claim to attack.")] = 1.0,
    trials: Annotated[
        int, typer.Option(min=100, help="Fits of each data set. More can show more.")
    ] = 1000,
    pairs: Annotated[
        int, typer.Option(min=1, help="How many pairs of neighbouring data sets to try.")
    ] = 3,
    as_json: AsJson = False,
) -> None:
    """Try to tell neighbouring data sets apart by their releases. Uses made-up records, no budget.

    Passing proves nothing; a refuted claim ends with exit code 9.
    """
    estimator = _made_up(kind, {"epsilon": epsilon}, set_)
    estimator._check_parameters()
    tried = list(islice(worst_neighbours(estimator), pairs))
    confidence = 1.0 - FALSE_ALARM / len(tried)
    found: list[dict[str, Any]] = []
    for name, data, neighbour in tried:
        of_pair = estimator, data, neighbour
        with working(f"Attacking: {name}", as_json):
            result = audit_epsilon(*of_pair, n_trials=trials, confidence=confidence)
            asked = measurement_audit(*of_pair)
            try:
                law = density_ratio_audit(*of_pair)
            except TypeError:  # it is not known
                law = None
        found.append(
            {
                "pair": name,
                "passed": all(each is None or each.passed for each in (result, law, asked)),
                "lower_bound": result.lower_bound,
                "resolution": result.resolution,
                "largest_log_ratio": None if law is None else law.largest,
                "measured": asked.table.to_dict("records"),
            }
        )
    passed = all(row["passed"] for row in found)
    name = type(estimator).__name__
    content = {
        "estimator": name,
        "claimed": float(epsilon),
        "trials": trials,
        "passed": passed,
        "pairs": found,
    }
    proofs = "Not refuted. That proves nothing: the proofs are in the documentation."
    lines = [
        f"{name} claims epsilon = {epsilon:g}; {trials:,} fits of each data set",
        *map(_line, found),
        proofs if passed else "The claim is refuted.",
    ]
    show(content, lines, as_json)
    if not passed:
        raise CommandError("refuted", f"epsilon = {epsilon:g} does not hold.")


def _made_up(kind: Kind, stated: dict[str, Any], settings: list[str]) -> Any:
    """Return an estimator for records that are made up."""
    if kind is Kind.competing:
        raise CommandError("parameter", "KIND must be survival, weibull, km or logistic here.")
    needed = {"classes": [0, 1]} if kind is Kind.logistic else {"max_time": 1.0}
    return make(ESTIMATORS[kind], {**stated, **needed}, settings, {})


def _line(row: dict[str, Any]) -> str:
    verdict = "not refuted" if row["passed"] else "REFUTED"
    exact = row["largest_log_ratio"]
    law = "" if exact is None else f"; exact law: largest log ratio {exact:.3g}"
    far = max(each["found"] / each["allowed"] for each in row["measured"] if each["allowed"])
    return (
        f"  {row['pair']}: {verdict}; epsilon >= {row['lower_bound']:.2g} by experiment, which can "
        f"show up to {row['resolution']:.2g}{law}; {len(row['measured'])} distances of what is "
        f"asked, up to {far:.3g} of the bound"
    )
