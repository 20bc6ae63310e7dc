"""skdpsurv pool: releases of several sites become one; no record is needed."""

from __future__ import annotations

import json
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from skdpsurv.cli.failures import CommandError, guarded
from skdpsurv.cli.options import AsJson, NewFile
from skdpsurv.cli.printing import Printed, show
from skdpsurv.cli.releases import load_release
from skdpsurv.cli.results import result_lines
from skdpsurv.cli.saving import reserve, save
from skdpsurv.cli.spending import promise_line
from skdpsurv.pooling import heterogeneity, pool_releases

__all__ = ["pool"]


class Effects(StrEnum):
    """What sites are taken to have in common."""

    fixed = "fixed"
    random = "random"


@guarded
def pool(
    releases: Annotated[
        list[Path],
        typer.Argument(metavar="RELEASE...", help="Releases of one kind, as fit wrote them."),
    ],
    out: NewFile,
    effects: Annotated[
        Effects,
        typer.Option(help="fixed: one truth for all sites; random: truths that scatter."),
    ] = Effects.fixed,
    overlap: Annotated[
        bool,
        typer.Option("--overlap", help="Somebody may be in two of the data sets: epsilons add up."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make one release of several, of different people: coefficients, curves or tables add up."""
    reserve(out)
    members = [load_release(path) for path in releases]
    message = None
    try:
        pooled = pool_releases(members, effects=effects.value, disjoint=not overlap)
        found = None
        if "inference_estimate" in pooled.values:
            found = json.loads(heterogeneity(members).reset_index().to_json(orient="records"))
    except (ValueError, TypeError) as error:
        message = str(error)
    if message is not None:
        raise CommandError("description", message)
    save(pooled.to_json(indent=2) + "\n", out)
    guarantee = pooled.guarantee
    content: dict[str, Any] = {
        "release": str(out.resolve()),
        "estimator": pooled.estimator,
        "guarantee": guarantee.to_dict(),
    }
    if found is not None:
        content["heterogeneity"] = found
    lines = [
        f"{pooled.estimator}: {len(members)} releases, "
        f"{guarantee.public_inputs['n_records']:,} records, {promise_line(guarantee)}"
    ]
    ending = [f"Release: {out}", f"Next: skdpsurv explain {out} --html report.html"]
    show(Printed(content, chain(lines, result_lines(pooled), ending)), as_json)
