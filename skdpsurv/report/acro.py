"""Outputs in the layout of ACRO, which output checkers of research environments read.

ACRO (https://github.com/AI-SDC/ACRO) checks tables and regressions for disclosure and writes what
it found to a folder, of which SACRO's viewer shows each output with a status. Its checks read the
records. In their place the folder states what a release promises, and who computed it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skdpsurv.dp.appetite import RiskAppetite
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.references import __version__
from skdpsurv.evaluation.result import SurvivalEvaluation
from skdpsurv.report.numbers import ShownNumber, csv_text
from skdpsurv.report.output_check import OutputCheck, output_check
from skdpsurv.report.results import all_of
from skdpsurv.report.text import WORDS
from skdpsurv.verify import Verdict

#: The version whose layout this is: ACRO reads no other.
ACRO_VERSION = "1.0.2"


class Output(NamedTuple):
    """A result to check.

    Parameters
    ----------
    name : str
        For the names of its figures.
    found : Release or SurvivalEvaluation
    text : str
        Its file, as it is published.
    parts : mapping
        Of a page about it, as :func:`~skdpsurv.report.results.results` returns them.
    comment : str
        What it is, in words.
    study : (PrivacyGuarantee, Verdict) or None, default=None
        What its study spent in all, and what the verifier says of the study's folder.
    """

    name: str
    found: Any
    text: str
    parts: Mapping[str, Any]
    comment: str
    study: tuple[PrivacyGuarantee, Verdict] | None = None


def acro_files(
    outputs: Sequence[Output], when: str, appetite: RiskAppetite | None = None
) -> dict[str, bytes]:
    """Return the files of a folder that ACRO and viewers of it read.

    Parameters
    ----------
    outputs : sequence of Output
    when : str
        Time of the records, ISO 8601.
    appetite : RiskAppetite or None, default=None
        What the environment allows. Without it no output passes: a person must say.

    Returns
    -------
    dict of str to bytes
        By path: ``results.json``, ``config.json``, tables as CSV, figures as PNG, the release, and
        ``checksums``.
    """
    files: dict[str, bytes] = {}
    results: dict[str, Any] = {}
    for output in outputs:
        how: Any = {"text": output.text, "study": output.study}
        check = output_check(output.found, output.parts, appetite, **how)
        tables = dict(_tables(output, f"output_{len(results)}"))
        drawn = {
            f"{output.name}{one.name}.png": one.drawn("png")
            for one in all_of(output.parts, "figures")
        }
        files |= tables | drawn
        both = [([*tables], check.words["type"]), *(([name], "survival plot") for name in drawn)]
        for names, kind in both:
            uid = f"output_{len(results)}"
            results[uid] = _record(output, check, uid, kind, names, when)
    tool = {"@type": "SoftwareApplication", "name": "skdpsurv", "version": __version__}
    stated = {"version": ACRO_VERSION, "tool": tool, "results": results}
    files["results.json"] = _json(stated)
    thresholds = appetite or RiskAppetite
    config = {name: getattr(thresholds, name) for name in ("safe_threshold", "safe_dof_threshold")}
    config |= {**WORDS["acro"], "risk_appetite": None if appetite is None else asdict(appetite)}
    files["config.json"] = _json(config)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return files | {f"checksums/{name}.txt": sha256.encode() for name, sha256 in sums.items()}


def save_acro(files: Mapping[str, bytes], folder: str | PathLike[str]) -> None:
    """Write the files of :func:`acro_files` to a new folder.

    Raises
    ------
    FileExistsError
        If the folder exists.
    """
    place = Path(folder)
    place.mkdir()
    (place / "checksums").mkdir()
    for name, content in files.items():
        (place / name).write_bytes(content)


def _tables(output: Output, uid: str) -> Iterator[tuple[str, bytes]]:
    """Yield files: the numbers of a page, all released numbers, and the release itself."""
    shown = pd.DataFrame(all_of(output.parts, "numbers"), columns=list(ShownNumber._fields))
    if len(shown):
        yield f"{uid}_0.csv", csv_text(shown).encode()
    if not isinstance(output.found, SurvivalEvaluation):
        released = [
            (name, place, value)
            for name, array in sorted(output.found.values.items())
            for place, value in enumerate(np.ravel(array).tolist())
        ]
        frame = pd.DataFrame(released, columns=["name", "position", "value"])
        yield f"{uid}_1.csv", csv_text(frame).encode()
    yield f"{uid}.json", output.text.encode()


def _record(
    output: Output, check: OutputCheck, uid: str, kind: str, names: Sequence[str], when: str
) -> dict[str, Any]:
    """Return the record of one output."""
    g, found, words = check.guarantee.to_dict(), output.found, check.words
    estimator = getattr(found, "estimator", type(found).__name__)
    study = getattr(found, "study", None) or {}
    properties = {
        "method": words["method"],
        "mitigation": check.mitigation.lower(),
        "verifier": check.verifier,
    }
    properties |= {name: g[name] for name in ("epsilon", "delta", "neighbours", "status")}
    measured = {"dof": check.dof, "smallest_noisy_count": check.smallest_count}
    properties |= {name: value for name, value in measured.items() if value is not None}
    fair = {
        "context": "https://w3id.org/statbarnsdc#",
        "statbarn": words["statbarn"],
        "risks": words["risks"],
        "checks_needed": [one.name for one in check.checks],
        "common_mitigations": [check.mitigation],
        "check_status": {one.name: one.status for one in check.checks},
        "dependent": study.get("event") or "unknown",
        "independent": list(getattr(found, "feature_names_in", None) or ()),
    }
    sdc: dict[str, Any] = {} if kind == "regression" else {"summary": {}, "cells": {}}
    granted = (f"Taken for granted: {one}" for one in check.verdict.granted)
    return {
        "uid": uid,
        "status": check.status,
        "type": kind,
        "properties": properties,
        "files": [{"name": name, "sdc": sdc} for name in names],
        "outcome": {},
        "command": f"{estimator}(epsilon={g['epsilon']}, delta={g['delta']})",
        "summary": check.summary,
        "timestamp": when,
        "comments": [output.comment, *granted],
        "exception": "",
        "fair": fair,
    }


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=4, allow_nan=False) + "\n").encode()
