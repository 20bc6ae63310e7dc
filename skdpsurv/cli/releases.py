"""Releases as commands read them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from skdpsurv.cli.columns_file import missing_texts, text_labels
from skdpsurv.cli.failures import CommandError
from skdpsurv.cli.files import Table, column_names, require_columns
from skdpsurv.cli.options import FileFormat
from skdpsurv.cli.targets import split_names
from skdpsurv.metrics import SurvivalEvaluation
from skdpsurv.release import Release
from skdpsurv.release.layout import unrepeated

__all__ = ["load_evaluation", "load_release", "rows_table", "usable_model"]


def load_release(path: Path) -> Release:
    """Read a release.

    Raises
    ------
    CommandError
        If there is none, or the file is something else.
    """
    try:
        return Release.load(path)
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}."
    except (ValueError, TypeError) as error:
        message = f"{path} is no release, which comes before any other file: {error}"
    raise CommandError("description", message)


def load_evaluation(path: Path) -> SurvivalEvaluation:
    """Read what ``skdpsurv evaluate`` wrote.

    Raises
    ------
    CommandError
        If there is none, or the file is something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return SurvivalEvaluation.from_dict(json.loads(text, object_pairs_hook=unrepeated))
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}."
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        message = f"{path} is no evaluation, as skdpsurv evaluate writes it."
    raise CommandError("description", message)


def usable_model(release: Release) -> Any:
    """Return the fitted estimator of a release.

    Raises
    ------
    CommandError
        If it needs more than its release, or is of no known class.
    """
    try:
        return release._model
    except (ValueError, TypeError) as error:
        message = str(error)
    raise CommandError("description", message)


def rows_table(
    release: Release,
    path: Path,
    form: FileFormat,
    others: Sequence[str] = (),
    drop: Sequence[str] = (),
    labels: Mapping[str, Collection[str]] | None = None,
) -> Table:
    """Say which columns of a file a release reads, beside others that are asked for.

    Raises
    ------
    CommandError
        If a column is missing, or there are some that nobody knows.
    """
    if release.columns is None or release.feature_names_in is None:
        raise CommandError(
            "description",
            "this release does not say what its columns hold, so it takes no file of raw rows: "
            "releases of skdpsurv fit, and of fits with columns=, do.",
        )
    names = column_names(path, form)
    drop = split_names(drop, names)
    others = split_names(others, names)
    wanted = (*release.feature_names_in, *others)
    require_columns(path, (*wanted, *drop), names)
    known = {*wanted, *release.target_names, *drop}
    if extra := [name for name in names if name not in known]:
        raise CommandError(
            "data",
            f"{path} has columns that the release does not know: {', '.join(extra)}. Leave them "
            "out with --drop.",
        )
    columns = tuple(name for name in names if name in wanted)
    described = release.transformer()
    texts = {**text_labels(described), **(labels or {})}
    return Table(path, columns, texts, others, missing_texts(described))
