"""skdpsurv explain: a release in plain words, as a page to sign, as an entry of a registry."""

from __future__ import annotations

import inspect
import json
import tomllib
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from skdpsurv.cli.failures import CommandError, guarded
from skdpsurv.cli.options import AsJson, ReleaseFile
from skdpsurv.cli.printing import Printed, show
from skdpsurv.cli.releases import load_evaluation, load_release
from skdpsurv.cli.results import result_lines
from skdpsurv.cli.saving import reserve, save
from skdpsurv.report.registry_entry import registry_entry

__all__ = ["explain"]


@guarded
def explain(
    release: ReleaseFile,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write a page that a privacy officer can read and sign.", show_default=False
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Title of the page.", show_default=False)
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option(
            help="What skdpsurv evaluate wrote: its calibration goes into the page.",
            show_default=False,
        ),
    ] = None,
    registry: Annotated[
        Path | None,
        typer.Option(
            help="Write an entry for OpenDP's registry of deployments (YAML).", show_default=False
        ),
    ] = None,
    publisher: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with what only the publisher knows, for --registry: name, "
            "data_curators, intended_use, data_product_region, publication_date, and more.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say in plain words what was released, of what columns, and what is promised to whom."""
    if (registry is None) != (publisher is None):
        raise CommandError("parameter", "--registry and --publisher must be given together.")
    if html is None and (title is not None or evaluation is not None):
        raise CommandError("parameter", "--title and --evaluation are for --html.")
    for path in (html, registry):
        if path is not None:
            reserve(path)
    published = load_release(release)
    measured = None if evaluation is None else load_evaluation(evaluation)
    content: dict[str, Any] = json.loads(published.to_json())
    lines = []
    if html is not None:
        save(published.to_html(title=title, evaluation=measured), html)
        content["html"] = str(html.resolve())
        lines.append(f"Report: {html}")
    if registry is not None and publisher is not None:
        save(published.to_registry_yaml(**_facts(publisher)), registry)
        content["registry"] = str(registry.resolve())
        lines.append(f"Entry of the registry: {registry}")
    show(Printed(content, lines or chain([published.explain()], result_lines(published))), as_json)


def _facts(path: Path) -> dict[str, Any]:
    """Read what only the publisher knows.

    Raises
    ------
    CommandError
        If the file cannot be read, or says too little or too much.
    """
    facts = None
    try:
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}."
    except (ValueError, RecursionError) as error:
        message = f"{path}: {error}"
    if facts is None:
        raise CommandError("description", message)
    known = dict(inspect.signature(registry_entry).parameters)
    del known["release"]
    required = [name for name, one in known.items() if one.default is inspect.Parameter.empty]
    if missing := [name for name in required if name not in facts]:
        raise CommandError("description", f"{path} must hold {', '.join(missing)}.")
    if unknown := [name for name in facts if name not in known]:
        raise CommandError(
            "description",
            f"{path} must not hold {', '.join(unknown)}; it may hold {', '.join(known)}.",
        )
    return facts
