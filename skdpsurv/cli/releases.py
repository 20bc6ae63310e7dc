"""Releases as commands read them, and the commands that need nothing else: explain and pool."""

from __future__ import annotations

import json
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

from skdpsurv.cli.failures import refusals, require
from skdpsurv.cli.options import command
from skdpsurv.cli.output import promise_line, reserve, result_lines, save, show
from skdpsurv.evaluation import SurvivalEvaluation
from skdpsurv.pooling import heterogeneity, pool_releases
from skdpsurv.release import Release
from skdpsurv.release.layout import unrepeated
from skdpsurv.report import explain as in_words
from skdpsurv.report import html_report, registry_entry


def load_release(path: Path) -> Release:
    """Read a release."""
    with refusals("description", f"{path} is no release, which comes before any other file: "):
        return Release.load(path)


def _load_evaluation(path: Path) -> SurvivalEvaluation:
    with refusals("description", f"{path} is no evaluation, as skdpsurv evaluate writes it: "):
        text = path.read_text(encoding="utf-8")
        return SurvivalEvaluation.from_dict(json.loads(text, object_pairs_hook=unrepeated))


@command
def explain(
    release: Path,
    /,
    *,
    html: Path | None = None,
    title: str | None = None,
    evaluation: Path | None = None,
    registry: Path | None = None,
    publisher: Path | None = None,
    as_json: bool = False,
) -> None:
    """Say in plain words what was released, of what columns, and what is promised to whom.

    Parameters
    ----------
    release : Path
        A release, as fit wrote it.
    html : Path or None
        Write a page that a privacy officer can read and sign.
    title : str or None
        Title of the page.
    evaluation : Path or None
        What skdpsurv evaluate wrote: its calibration goes into the page.
    registry : Path or None
        Write an entry for OpenDP's registry of deployments (YAML).
    publisher : Path or None
        TOML file with what only the publisher knows, for --registry: name, data_curators,
        intended_use, data_product_region, publication_date, and more.
    """
    both = (registry is None) == (publisher is None)
    require(both, "--registry and --publisher must be given together.")
    of_html = title is not None or evaluation is not None
    require(html is not None or not of_html, "--title and --evaluation are for --html.")
    for path in filter(None, (html, registry)):
        reserve(path)
    published = load_release(release)
    content: dict[str, Any] = json.loads(published.to_json())
    lines = []
    if html is not None:
        measured = None if evaluation is None else _load_evaluation(evaluation)
        save(html_report(published, title=title, evaluation=measured), html)
        content["html"] = str(html.resolve())
        lines.append(f"Report: {html}")
    if registry is not None and publisher is not None:
        with refusals("description", f"{publisher}: "):
            facts = tomllib.loads(publisher.read_text(encoding="utf-8"))
            entry = registry_entry(published, **facts)
        save(entry, registry)
        content["registry"] = str(registry.resolve())
        lines.append(f"Entry of the registry: {registry}")
    show(content, lines or chain([in_words(published)], result_lines(published)), as_json)


@command
def pool(
    releases: list[Path],
    /,
    *,
    out: Path,
    effects: str = "fixed",
    overlap: bool = False,
    as_json: bool = False,
) -> None:
    """Make one release of several, of different people: coefficients, curves or tables add up.

    Parameters
    ----------
    releases : list of Path
        Releases of one kind, as fit wrote them.
    effects : str, default="fixed"
        fixed: one truth for all sites; random: truths that scatter.
    overlap : bool, default=False
        Somebody may be in two of the data sets: epsilons add up.
    """
    reserve(out)
    members = [load_release(path) for path in releases]
    with refusals("description"):
        pooled = pool_releases(members, effects=effects, disjoint=not overlap)
        guarantee = pooled.guarantee
        content = {
            "release": str(out.resolve()),
            "estimator": pooled.estimator,
            "guarantee": guarantee.to_dict(),
        }
        if "inference_estimate" in pooled.values:
            found = heterogeneity(members).reset_index()
            content["heterogeneity"] = json.loads(found.to_json(orient="records"))
    save(pooled.to_json(indent=2) + "\n", out)
    said = f"{pooled.estimator}: {len(members)} releases, {promise_line(guarantee)}"
    ending = [f"Release: {out}", f"Next: skdpsurv explain {out} --html report.html"]
    lines = chain([said], result_lines(pooled), ending)
    show(content, lines, as_json)
