"""skdpsurv plan: what a study will get at each epsilon, asked before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from skdpsurv import forecast_accuracy
from skdpsurv.cli.columns_file import public_columns
from skdpsurv.cli.failures import CommandError, guarded
from skdpsurv.cli.fitting import make
from skdpsurv.cli.groups import grouped
from skdpsurv.cli.kinds import KINDS, MADE_UP, Kind
from skdpsurv.cli.options import AsJson, Settings
from skdpsurv.cli.printing import Printed, rich_table, show
from skdpsurv.cli.saving import reserve

__all__ = ["plan"]

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


@guarded
@grouped
def plan(
    kind: Annotated[Kind, typer.Argument(help="What will be fitted.")],
    records: Annotated[int, typer.Option(help="How many records there will be.")],
    settings: Settings,
    columns: Annotated[
        int | None,
        typer.Option(help="How many columns there will be; 8 by default.", show_default=False),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="In place of --columns: the TOML file that says what they hold.",
            show_default=False,
        ),
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
        typer.Option(
            help="C-index (or AUC) of the best model, as earlier studies have it; 0.7 by default.",
            show_default=False,
        ),
    ] = None,
    censoring: Annotated[
        float,
        typer.Option(help="Share of the others who are lost before the horizon."),
    ] = 0.5,
    baseline: Annotated[
        str, typer.Option(help="Course of the hazard: front-loaded, flat or rising.")
    ] = "flat",
    epsilon: Annotated[
        list[float],
        typer.Option(help="Privacy loss to ask about. May be given several times."),
    ] = [0.1, 0.3, 1.0, 3.0],  # noqa: B006, typer copies it
    intervals: Annotated[
        float,
        typer.Option(min=0.0, max=0.9, help="Share of epsilon for standard errors, as fit has it."),
    ] = 0.0,
    delta: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Delta of Gaussian noise, as fit has it.")
    ] = 0.0,
    repeats: Annotated[int, typer.Option(help="Studies to simulate.")] = 20,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw the table: a .png, .pdf or .svg file.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of the simulation: its records are nobody's."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Forecast accuracy at several epsilons, by simulation: no record is read, nothing is spent."""
    if figure is not None:
        if figure.suffix not in (".png", ".pdf", ".svg"):
            raise CommandError("parameter", "--figure must end in .png, .pdf or .svg.")
        reserve(figure)
    forecast = forecast_accuracy(
        _estimator(kind, settings, intervals, delta),
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
    if figure is not None:
        np.ravel(forecast.plot())[0].figure.savefig(figure, dpi=150)
    names = [name for name in SHOWN if name in forecast.table]
    shown = forecast.table[names].rename(columns={name: SHOWN[name][0] for name in names})
    legend = ". ".join(SHOWN[name][1] for name in names) + "."
    lines: list[Any] = [rich_table(shown.round(3) + 0.0), legend, forecast.advice]
    if figure is not None:
        lines.append(f"Figure: {figure}")
    show(Printed(forecast.to_dict(), lines), as_json)


def _estimator(kind: Kind, settings: Settings, intervals: float, delta: float) -> Any:
    """Return the estimator with its settings; its name, if it has none of its own."""
    if not settings.set_ and not intervals and not delta:
        return str(kind)
    stated: dict[str, Any] = dict(MADE_UP[kind])
    if kind in (Kind.survival, Kind.logistic):
        stated |= {"inference_share": intervals, "delta": delta}
    elif intervals:
        raise CommandError("parameter", f"--intervals is not for {kind}: curves always have them.")
    elif delta:
        raise CommandError("parameter", f"--delta is not for {kind}: no curve has Gaussian noise.")
    return make(KINDS[kind], stated, settings, {})
