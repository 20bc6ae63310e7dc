"""skdpsurv audit: a quick attack on what an estimator claims, with made-up records."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

from skdpsurv.audit import (
    audit_epsilon,
    density_ratio_audit,
    measurement_audit,
    worst_neighbours,
)
from skdpsurv.cli.failures import CommandError, guarded
from skdpsurv.cli.fitting import make, working
from skdpsurv.cli.groups import grouped
from skdpsurv.cli.kinds import KINDS, MADE_UP, Kind
from skdpsurv.cli.options import AsJson, Settings
from skdpsurv.cli.printing import Printed, show

__all__ = ["audit"]

#: Probability, at most, with which a true claim is called refuted.
FALSE_ALARM = 1e-4


@guarded
@grouped
def audit(
    kind: Annotated[
        Kind, typer.Argument(metavar="KIND", help="survival, weibull, km or logistic.")
    ],
    settings: Settings,
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
    stated = {"epsilon": epsilon, **MADE_UP[kind]}
    estimator = make(KINDS[kind], stated, settings, {})
    estimator._check_parameters()
    found: list[dict[str, Any]] = []
    tried = list(islice(worst_neighbours(estimator), pairs))
    for name, data, neighbour in tried:
        with working(f"Attacking: {name}", as_json):
            result = audit_epsilon(
                estimator,
                data,
                neighbour,
                n_trials=trials,
                confidence=1.0 - FALSE_ALARM / len(tried),
            )
            law = _known(density_ratio_audit, estimator, data, neighbour)
            asked = measurement_audit(estimator, data, neighbour)
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
    content = {
        "estimator": type(estimator).__name__,
        "claimed": float(epsilon),
        "trials": trials,
        "passed": all(row["passed"] for row in found),
        "pairs": found,
    }
    lines = [
        f"{type(estimator).__name__} claims epsilon = {epsilon:g}; {trials:,} fits of each data set"
    ]
    lines += [_line(row) for row in found]
    lines.append("Not refuted. That proves nothing: the proofs are in the documentation.")
    if not content["passed"]:
        lines[-1] = "The claim is refuted."
    show(Printed(content, lines), as_json)
    if not content["passed"]:
        raise CommandError("refuted", f"epsilon = {epsilon:g} does not hold.")


def _known(compare: Any, estimator: Any, data: Any, neighbour: Any) -> Any:
    """Return an exact comparison of laws, where these are known."""
    try:
        return compare(estimator, data, neighbour)
    except TypeError:
        return None


def _line(row: dict[str, Any]) -> str:
    verdict = "not refuted" if row["passed"] else "REFUTED"
    exact = row["largest_log_ratio"]
    law = "" if exact is None else f"; exact law: largest log ratio {exact:.3g}"
    far = max(each["found"] / each["allowed"] for each in row["measured"] if each["allowed"])
    law += f"; {len(row['measured'])} distances of what is asked, up to {far:.3g} of the bound"
    return (
        f"  {row['pair']}: {verdict}; epsilon >= {row['lower_bound']:.2g} by experiment, which can "
        f"show up to {row['resolution']:.2g}{law}"
    )
