"""Commands that need a release and no budget: explain, verify, predict and pool."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdpsurv.cli import printing
from skdpsurv.cli.failures import refusals, require
from skdpsurv.cli.options import NONE, FileFormat, SurvivalColumns, command
from skdpsurv.cli.record_files import MISSING, RecordFile, read_table
from skdpsurv.cli.survival_columns import Others, table_of

if TYPE_CHECKING:
    from skdpsurv.dp.appetite import RiskAppetite
    from skdpsurv.evaluation import SurvivalEvaluation
    from skdpsurv.release import Release
    from skdpsurv.report.acro import Output
    from skdpsurv.study.protocol import Protocol


def load_release(path: Path) -> Release:
    """Read a release."""
    from skdpsurv.release import Release

    with refusals("description", f"{path} is no release; the release must come first: "):
        return Release.load(path)


def table_of_release(
    release: Release,
    path: Path,
    form: FileFormat,
    others: Others,
    drop: Sequence[str],
    outcome: SurvivalColumns | None = None,
) -> RecordFile:
    """Return the part of a file that a release reads, and others, with labels if they are text."""
    names = release.feature_names_in or ()
    described = release.columns is not None and names
    require(described, "the release does not describe its columns.", "description")
    known, ignored = release.transformer(), release.target_names
    return table_of(path, form, names, known, others, drop, ignored, outcome)


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
    annex_iv: Path | None = None,
    protocol: Path | None = None,
    acro: Path | None = None,
    appetite: Path | None = None,
) -> None:
    """Say in plain words what was released, about which columns, and what is promised to whom.

    Parameters
    ----------
    release : Path
        A release, as fit wrote it.
    html : Path or None
        Write a page that a privacy officer can read and sign.
    title : str or None
        Title of the page.
    evaluation : Path or None
        File of skdpsurv evaluate: its calibration goes into the page.
    registry : Path or None
        Write an entry for OpenDP's registry of deployments (YAML).
    publisher : Path or None
        TOML file about the publication, for --registry: name, data_curators, intended_use,
        data_product_region, publication_date, and more.
    annex_iv : Path or None
        Write a draft of the technical documentation that Annex IV of the European AI Act asks for
        (Markdown), which a person must complete.
    protocol : Path or None
        TOML file of the study's protocol, for --annex-iv.
    acro : Path or None
        Write what output checkers of ACRO read, to a new folder.
    appetite : Path or None
        TOML file of the risk appetite of the environment, for --acro. Without it no output passes.
    """
    from skdpsurv.dp.ledger import now
    from skdpsurv.report import annex_iv as draft_of
    from skdpsurv.report import explain as in_words
    from skdpsurv.report import html_report, registry_entry
    from skdpsurv.report.acro import Output
    from skdpsurv.report.results import results

    require((registry is None) == (publisher is None), "--registry and --publisher go together.")
    of_html = title is not None or evaluation is not None
    require(html is not None or not of_html, "--title and --evaluation are for --html.")
    require(acro is not None or appetite is None, "--appetite is for --acro.")
    require(annex_iv is not None or protocol is None, "--protocol is for --annex-iv.")
    for path in filter(None, (html, registry, annex_iv, acro)):
        printing.reserve(path)
    published = load_release(release)
    content: dict[str, Any] = json.loads(published.to_json())
    lines = []
    if html is not None:
        measured = None if evaluation is None else _load_evaluation(evaluation)
        printing.save(html_report(published, title=title, evaluation=measured), html)
        content["html"] = str(html.resolve())
        lines.append(f"Report: {html}")
    if registry is not None and publisher is not None:
        with refusals("description", f"{publisher}: "):
            facts = tomllib.loads(publisher.read_text(encoding="utf-8"))
            entry = registry_entry(published, **facts)
        printing.save(entry, registry)
        content["registry"] = str(registry.resolve())
        lines.append(f"Entry of the registry: {registry}")
    if annex_iv is not None:
        stated = None if protocol is None else read_protocol(protocol)
        with refusals("description"):
            draft = draft_of(published, stated)
        printing.save(draft, annex_iv)
        content["annex_iv"] = str(annex_iv.resolve())
        lines.append(f"To be completed: {annex_iv}")
    if acro is not None:
        text = release.read_text(encoding="utf-8")
        output = Output("", published, text, results(published), f"the release {release.name}")
        content["acro"] = write_acro([output], now(), read_appetite(appetite), acro)
        lines.append(f"For output checkers: {acro}")
    shown = lines or chain([in_words(published)], printing.result_lines(published))
    printing.show(content, shown)


def read_protocol(path: Path) -> Protocol:
    """Return the protocol in a file."""
    from skdpsurv.study.protocol import Protocol

    require(path.is_file(), f"there is no protocol {path}.", "description")
    with refusals("description"):
        return Protocol.from_toml(path)


def read_appetite(path: Path | None) -> RiskAppetite | None:
    """Return the risk appetite in a file; None without one."""
    from skdpsurv.dp.appetite import RiskAppetite

    with refusals("description"):
        return None if path is None else RiskAppetite.from_toml(path)


def write_acro(
    outputs: Sequence[Output], when: str, appetite: RiskAppetite | None, folder: Path
) -> str:
    """Write what output checkers read to a new folder, and return its full path."""
    from skdpsurv.report.acro import acro_files, save_acro

    files = acro_files(outputs, when, appetite)
    with refusals("output", f"{folder} cannot be written: ", "."):
        save_acro(files, folder)
    return str(folder.resolve())


@command
def verify(paths: list[Path], /) -> None:
    """Compute guarantees again from what releases state; 9 ends a refuted one, 10 another.

    The files verify.py and verify_study.py of the package do the same alone, without the package.

    Parameters
    ----------
    paths : list of Path
        Releases, as fit wrote them; folders of studies, with the files of their ledgers.
    """
    from skdpsurv.verify import CODES, worst
    from skdpsurv.verify_study import checked

    with refusals("description", "a file is missing, or is no release: "):
        found = list(checked(paths))
    require(bool(found), "releases, or the folder of a study, must be given.", "description")
    content = [{"release": path, **asdict(verdict)} for path, verdict in found]
    lines = (line for path, verdict in found for line in (path, *verdict.lines()))
    printing.show({"releases": content}, lines)
    most = worst(verdict for _, verdict in found)
    names = {code: word for word, code in CODES.items()}
    require(not most, f"{names[most]}: not every release is verified.", names[most])


def _load_evaluation(path: Path) -> SurvivalEvaluation:
    from skdpsurv.evaluation import SurvivalEvaluation
    from skdpsurv.release.layout import unrepeated

    with refusals("description", f"{path} is no evaluation, as skdpsurv evaluate writes it: "):
        text = path.read_text(encoding="utf-8")
        return SurvivalEvaluation.from_dict(json.loads(text, object_pairs_hook=unrepeated))


@command
def predict(
    release: Path,
    new: Path | None = None,
    /,
    *,
    form: FileFormat,
    out: Path,
    times: list[str] = NONE,
    keep: list[str] = NONE,
    drop: list[str] = NONE,
    strict: bool = False,
) -> None:
    """Write predictions to a CSV file: risk and survival, or the probability of each class.

    Parameters
    ----------
    release : Path
        A release, as fit wrote it.
    new : Path or None
        CSV or Parquet file of people to predict for. None for a release of curves.
    times : list of str
        Times to give survival at, in the unit of the fit, such as 1,2,5. By default the horizon,
        and for curves all of their times.
    keep : list of str
        Column of NEW to copy beside the predictions, such as a name. May be given several times.
    drop : list of str
        Column of NEW to leave out. May be given several times.
    strict : bool, default=False
        Refuse values beyond a public bound, in place of clipping.
    """
    import numpy as np
    import pandas as pd

    from skdpsurv.report.numbers import csv_text

    printing.reserve(out)
    published = load_release(release)
    with refusals("description"):
        model = published._model
    nothing = f"a {published.estimator} predicts nothing."
    require(not hasattr(model, "table_"), nothing)
    at = _times(times, published) if times else None
    has_curve = hasattr(model, "survival_function_at_times")
    what = "curves: NEW must be omitted" if has_curve else "for people: NEW must be given"
    require(has_curve == (new is None), f"a {published.estimator} predicts {what}.")
    if new is None:
        found = printing.curves(model, model.timeline if at is None else at)
    else:
        # Columns to keep are read as text: a name may begin with 0.
        table = table_of_release(published, new, form, dict.fromkeys(keep, MISSING), drop)
        with printing.working("Reading"):
            rows = read_table(table, form)
        with printing.working("Predicting"), refusals("data", private=True):
            if form.dask:  # predictions are as long as the file
                rows = rows.compute()
            predicted = _predictions(published, model, rows, at, strict)
        both = sorted(set(table.target) & set(predicted))
        require(not both, f"--keep must not be called {', '.join(both)}.")
        kept = {name: np.asarray(rows[name]) for name in table.target}
        found = pd.DataFrame({**kept, **predicted})
    printing.save(csv_text(found), out)
    text = f"{len(found):,} rows of {', '.join(found.columns)}: {out}"
    content = {"predictions": str(out.resolve()), "columns": list(found.columns)}
    printing.show(content, [text], out)


def _times(texts: Sequence[str], release: Release) -> Any:
    from skdpsurv.report.text import exact
    from skdpsurv.survival.released_curve import times_argument

    end = float(release.parameters.get("max_time", math.inf))
    times = None
    with suppress(ValueError):
        times = times_argument([float(time) for text in texts for time in text.split(",")])
    message = f"--times must be numbers from 0 to the horizon, {exact(end)}, such as 1,2,5."
    require(times is not None and (times <= end).all(), message)
    return times


def _predictions(release: Release, model: Any, table: Any, at: Any, strict: bool) -> dict[str, Any]:
    import numpy as np

    from skdpsurv.report.text import exact

    rows = table[list(release.feature_names_in or ())]
    found = release.predict(rows, strict=strict)
    if hasattr(model, "predict_survival_function"):
        if at is None:
            at = np.array([float(release.parameters["max_time"])])
        survival = release.predict_survival_function(rows, return_array=True, strict=strict)
        # A curve is 1 before its first step, and a step at 0.7 may be at 0.7000000000000001.
        survival = np.column_stack([np.ones(len(rows)), survival])
        steps = np.searchsorted(model.unique_times_, at * (1.0 + 1e-12), side="right")
        names = [f"survival_{exact(time)}" for time in at.tolist()]
        curves = dict(zip(names, survival[:, steps].T, strict=True))
        for cause in getattr(model, "causes_", ()):
            options: Any = {"cause": cause, "return_array": True, "strict": strict}
            incidence = release.predict_cumulative_incidence_function(rows, **options)
            incidence = np.column_stack([np.zeros(len(rows)), incidence])[:, steps]
            names = [f"incidence_{cause}_{exact(time)}" for time in at.tolist()]
            curves |= dict(zip(names, incidence.T, strict=True))
        return {"risk": found, **curves}
    if hasattr(model, "predict_proba"):
        names = [f"probability_{label}" for label in model.classes_.tolist()]
        shares = release.predict_proba(rows, strict=strict)
        return {"class": found, **dict(zip(names, shares.T, strict=True))}
    return {"prediction": found}


@command
def pool(
    releases: list[Path], /, *, out: Path, effects: str = "fixed", overlap: bool = False
) -> None:
    """Make one release of several, of different people: coefficients, curves or tables add up.

    Parameters
    ----------
    releases : list of Path
        Releases of one kind, as fit wrote them.
    effects : str, default="fixed"
        fixed: one true value for all sites; random: true values that vary among sites.
    overlap : bool, default=False
        Somebody may be in two of the data sets: epsilons add up.
    """
    from skdpsurv.pooling import heterogeneity, pool_releases

    printing.reserve(out)
    studies = [load_release(path) for path in releases]
    with refusals("description"):
        pooled = pool_releases(studies, effects=effects, disjoint=not overlap)
        content: dict[str, Any] = {"release": str(out.resolve()), "estimator": pooled.estimator}
        content["guarantee"] = pooled.guarantee.to_dict()
        if "inference_estimate" in pooled.values:
            found = heterogeneity(studies).reset_index()
            content["heterogeneity"] = json.loads(found.to_json(orient="records"))
    printing.save(pooled.to_json(indent=2) + "\n", out)
    promised = printing.guarantee_line(pooled.guarantee)
    first = f"{pooled.estimator}: {len(studies)} releases, {promised}"
    ending = [f"Release: {out}", f"Next: skdpsurv explain {out} --html report.html"]
    printing.show(content, chain([first], printing.result_lines(pooled), ending))
