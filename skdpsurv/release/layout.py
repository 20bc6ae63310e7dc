"""Releases as JSON: the versions of the layout, and files that are whole or absent."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from skdpsurv.dp.durable import sync_folder
from skdpsurv.dp.guarantee import PrivacyGuarantee, as_json, immutable
from skdpsurv.dp.ledger import Receipt
from skdpsurv.release.older_layouts import upgraded

#: Version of the layout that is written, docs/schemas/release-3.json. All of 1.x write this one, so
#: that any of them reads what another wrote: what is new has its place in parameters, values,
#: public inputs and queries, whose names are open.
SCHEMA_VERSION = 3

#: Required fields of each version, and optional ones.
_FIRST = {"estimator", "guarantee", "parameters", "values", "n_features_in"}
_ADDED = {"feature_names_in", "fit_guarantee"}
_SECOND = _FIRST | _ADDED | {"columns", "target_names", "made_with"}
FIELDS = {1: _FIRST, 2: _SECOND, 3: _SECOND | {"plan", "fit_plan", "noise"}}
OPTIONAL = {1: _ADDED, 2: {"receipt", "study"}, 3: {"receipt", "study"}}
WRONG_TYPE = "the JSON of a Release holds a field of the wrong type."


def written(release: Any, indent: int | None) -> str:
    """Return a release as JSON text."""
    content = {name: getattr(release, name) for name in FIELDS[SCHEMA_VERSION]}
    content["schema_version"] = SCHEMA_VERSION
    for name in ("guarantee", "fit_guarantee"):
        content[name] = None if content[name] is None else content[name].to_dict()
    content["parameters"] = dict(release.parameters)
    content["values"] = {name: np.asarray(v).tolist() for name, v in release.values.items()}
    for name in ("columns", "plan", "fit_plan", "noise"):
        content[name] = as_json(content[name])
    if release.study is not None:
        content["study"] = as_json(release.study)
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
        raise ValueError(f"schema_version must be {known} for this package, got {shown!r:.40}.")
    if missing := sorted(FIELDS[version] - set(data)):
        raise ValueError(f"the JSON of a Release must hold {', '.join(missing)}.")
    if unknown := sorted(set(data) - FIELDS[version] - OPTIONAL[version]):
        raise ValueError(f"the JSON of a Release must not hold {', '.join(unknown)[:200]}.")
    earlier = {"not_covered": ()} if version == 1 else {}
    try:
        data["guarantee"] = PrivacyGuarantee.from_dict({**earlier, **data["guarantee"]})
        if (content := data.get("fit_guarantee")) is not None:
            data["fit_guarantee"] = PrivacyGuarantee.from_dict({**earlier, **content})
        if data.get("receipt") is not None:
            data["receipt"] = Receipt.checked(**data["receipt"])
        return upgraded(data, version)
    except (TypeError, AttributeError):
        pass
    raise ValueError(WRONG_TYPE)


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, or raise ValueError if a key is there twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key is there twice.")
    return content


def _refuse(name: str) -> None:
    raise ValueError


def checked_study(study: Any) -> Any:
    """Return a frozen statement about a study, or refuse one that is no texts and labels."""
    values = study.values() if isinstance(study, Mapping) else [[()]]
    lists = [value if isinstance(value, list | tuple) else [value] for value in values]
    if not all(isinstance(one, str | int | None) for each in lists for one in each):
        raise TypeError("study of a release must be a mapping to texts, or to lists of labels.")
    return immutable("study", study)


def save(
    text: str, path: str | os.PathLike[str], *, mode: int = 0o666, when: float | None = None
) -> None:
    """Write text to a new file: the whole of it, or nothing.

    Once this returns, the file and its name are durable.

    Parameters
    ----------
    text : str
    path : str or os.PathLike
    mode : int, default=0o666
        Permissions, less those that the user's mask takes away.
    when : float or None, default=None
        Time of the file, in seconds since 1970; None: now.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with open(draft, "x", encoding="utf-8", opener=partial(os.open, mode=mode)) as file:
            file.write(text)
            file.flush()
            if when is not None:
                os.utime(draft, (when, when))
            os.fsync(file.fileno())
        _put_in_place(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(target.parent)


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
