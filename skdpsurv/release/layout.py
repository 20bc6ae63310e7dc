"""Releases as JSON: the versions of the layout, and files that are whole or not there."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from skdpsurv.dp import PrivacyGuarantee
from skdpsurv.dp.guarantee import thawed
from skdpsurv.dp.ledger import Receipt
from skdpsurv.release.upgrade import upgraded

#: Version of the layout that is written. Docs: docs/schemas/release-2.json.
SCHEMA_VERSION = 2

#: Fields of each version, all of them required, but for those that version 1 came to later.
FIELDS = {
    1: {"estimator", "guarantee", "parameters", "values", "n_features_in"},
    2: {
        "estimator",
        "guarantee",
        "fit_guarantee",
        "parameters",
        "values",
        "n_features_in",
        "feature_names_in",
        "columns",
        "target_names",
        "made_with",
    },
}
LATER = {1: {"feature_names_in", "fit_guarantee"}, 2: {"receipt"}}


def written(release: Any, indent: int | None) -> str:
    """Return a release as JSON text."""
    content = {name: getattr(release, name) for name in FIELDS[SCHEMA_VERSION]}
    content["schema_version"] = SCHEMA_VERSION
    for name in ("guarantee", "fit_guarantee"):
        content[name] = None if content[name] is None else content[name].to_dict()
    content["parameters"] = dict(release.parameters)
    content["values"] = {name: np.asarray(v).tolist() for name, v in release.values.items()}
    content["columns"] = thawed(release.columns)
    if release.receipt is not None:
        content["receipt"] = release.receipt._asdict()
    return json.dumps(content, indent=indent, allow_nan=False, sort_keys=True)


def read(text: str) -> dict[str, Any]:
    """Return the fields of a release, brought to the present layout."""
    try:
        data = json.loads(text, parse_constant=_refuse, object_pairs_hook=unrepeated)
    except (RecursionError, ValueError, TypeError):
        data = None
    if not isinstance(data, dict) or "schema_version" not in data:
        raise ValueError("text must be the JSON of a Release, as made by Release.to_json.")
    version = data.pop("schema_version")
    if type(version) is not int or version not in FIELDS:
        known = " or ".join(map(str, FIELDS))
        shown = version if isinstance(version, int | str) else type(version).__name__
        raise ValueError(
            f"schema_version must be {known} for this version of skdpsurv, got {shown!r:.40}."
        )
    if missing := sorted(FIELDS[version] - set(data)):
        raise ValueError(f"the JSON of a Release must hold {', '.join(missing)}.")
    if unknown := sorted(set(data) - FIELDS[version] - LATER[version]):
        raise ValueError(f"the JSON of a Release must not hold {', '.join(unknown)[:200]}.")
    try:
        data["guarantee"] = _guarantee(data["guarantee"], version)
        if data.get("fit_guarantee") is not None:
            data["fit_guarantee"] = _guarantee(data["fit_guarantee"], version)
        if data.get("receipt") is not None:
            data["receipt"] = Receipt.checked(**data["receipt"])
    except (TypeError, AttributeError):
        data = None
    if data is None:
        raise ValueError("the JSON of a Release holds a field of the wrong type.")
    if version == 1:  # which said nothing of columns, nor of what made it
        data |= {"columns": None, "target_names": (), "made_with": "skdpsurv 0.1"}
    return upgraded(data)


def _guarantee(content: dict[str, Any], version: int) -> PrivacyGuarantee:
    earlier = {"not_covered": ()} if version == 1 else {}
    return PrivacyGuarantee.from_dict({**earlier, **content})


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return what an object of JSON holds, if no key is there twice: readers take either."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key is there twice.")
    return content


def _refuse(name: str) -> None:
    raise ValueError


def save(text: str, path: str | os.PathLike[str]) -> None:
    """Write text to a new file: the whole of it, or nothing."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _put_in_place(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def _put_in_place(draft: Path, target: Path) -> None:
    """Give a file its name in one step, and never that of a file that is there."""
    taken = FileExistsError(f"path must be a new file, and {target} exists.")
    try:
        os.link(draft, target)
        return
    except FileExistsError:
        raise taken from None
    except OSError:  # a file system without links: the name is taken first
        pass
    try:
        target.open("x").close()
    except FileExistsError:
        raise taken from None
    try:
        draft.replace(target)
    except OSError:
        target.unlink()
        raise
