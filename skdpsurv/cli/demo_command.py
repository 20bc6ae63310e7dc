"""skdpsurv demo: private fits of flchain beside Cox regression."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from skdpsurv.cli.failures import guarded
from skdpsurv.demo import DEFAULT_EPSILONS, Comparison, compare_on_flchain, save_figure

__all__ = ["demo"]


def _checked_epsilons(epsilons: list[float]) -> list[float]:
    for epsilon in epsilons:
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise typer.BadParameter(f"epsilon must be a positive finite number, got {epsilon:g}.")
    return epsilons


def _checked_output(output: Path) -> Path:
    if not output.parent.is_dir():
        raise typer.BadParameter(f"the folder {output.parent} does not exist.")
    if output.suffix not in (".png", ".pdf", ".svg"):
        raise typer.BadParameter(f"the name must end in .png, .pdf or .svg, got {output.name}.")
    return output


@guarded
def demo(
    epsilon: Annotated[
        list[float],
        typer.Option(
            help="Privacy loss of a private fit. Give it several times to compare.",
            callback=_checked_epsilons,
        ),
    ] = list(DEFAULT_EPSILONS),  # noqa: B006, typer copies it
    output: Annotated[
        Path,
        typer.Option(
            "--out",
            "--output",
            help="Where to save the figure (.png, .pdf, .svg).",
            callback=_checked_output,
        ),
    ] = Path("demo.png"),
    figure: Annotated[bool, typer.Option(help="Draw the figure.")] = True,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seed of the noise, for the same numbers in every run; voids the privacy.",
            show_default="the operating system's entropy",
        ),
    ] = None,
) -> None:
    """Fit flchain with and without privacy, compare with Cox regression, and draw curves."""
    console = Console()
    with console.status("Fitting Cox regression and the private models"):
        comparison = compare_on_flchain(epsilon, seed=seed)
    console.print(_table(comparison))
    console.print(_explanation(comparison, seeded=seed is not None), highlight=False)
    if not figure:
        return
    try:
        save_figure(comparison, output)
    except ImportError as error:
        # markup=False: "[plot]" is the name of an extra, not a style.
        console.print(f"No figure. {error}", style="yellow", markup=False, highlight=False)
    else:
        console.print(f"Figure: {output.resolve()}", highlight=False, soft_wrap=True)


def _table(comparison: Comparison) -> Table:
    table = Table(
        title=f"flchain: fitted to {comparison.n_train:,} people, scored on {comparison.n_test:,}",
        title_justify="left",
    )
    table.add_column("model")
    table.add_column("epsilon", justify="right")
    table.add_column("status")
    for heading in ("C-index", "Brier", "coef. error"):
        table.add_column(heading, justify="right")
    for score in comparison.scores:
        table.add_row(
            score.model,
            f"{score.epsilon:g}",
            score.status,
            f"{score.c_index:.3f}",
            f"{score.brier:.4f}",
            "-" if math.isnan(score.coef_error) else f"{score.coef_error:.0%}",
            style="bold" if math.isfinite(score.epsilon) else "",
        )
    return table


def _explanation(comparison: Comparison, *, seeded: bool) -> str:
    noise = (
        "The noise came from your seed: these fits can be repeated, so they are not private."
        if seeded
        else "The noise is fresh in every run, so these numbers vary, most at small epsilon."
    )
    return (
        "\nC-index: how well people are ranked by risk (0.5 is guessing, 1 perfect). Brier: mean "
        "squared error of predicted survival, integrated over the follow-up (lower is better; "
        "Kaplan-Meier, without covariates, is what to beat). Coef. error: distance of the "
        "coefficients from Cox's, relative to their length.\n\n"
        "Each private fit protects its records by its own epsilon; together they spent "
        f"{comparison.spent:g}. The scores are computed on test records without noise, so they are "
        f"not private themselves: no harm here, as flchain is public data. {noise}\n"
    )
