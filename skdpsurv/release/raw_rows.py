"""Raw rows, as somebody has them who holds a release, and a release in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from skdpsurv.data.public_steps import columns_beyond
from skdpsurv.data.shape import is_frame


def headline(release: Any) -> str:
    """Return what was fitted to how many records, and what is promised, in a line."""
    guarantee = release.guarantee
    return (
        f"{release.estimator}: {guarantee.public_inputs['n_records']:,} records, "
        f"epsilon = {guarantee.epsilon:g}, status {guarantee.status}"
    )


def raw_rows(release: Any, table: Any, strict: bool) -> Any:
    """Return raw rows with their columns in order, after refusing what is no such row."""
    if release.guarantee.not_covered:
        raise ValueError(
            "a release of a pipeline with steps that learned from records does not hold these, so "
            "it cannot take raw rows: use to_estimator, for rows as they leave those steps."
        )
    if release.columns is None:
        if is_frame(table) or strict:
            raise ValueError(
                "this release does not say what its columns hold: it takes arrays, of rows as they "
                "went into the fit. Releases of fits with columns=, and those that make_release "
                "makes of a pipeline, take data frames."
            )
        return table
    names = release.feature_names_in
    if is_frame(table):
        if names is None:
            raise ValueError(
                "the columns of this release have no names: it takes arrays, in order."
            )
        table = in_order(table, names, release.target_names)
    asked = release.transformer(), table, release.n_features_in, names
    if strict and (beyond := columns_beyond(*asked)):
        raise ValueError(
            f"table must be within the public bounds with strict=True, and {', '.join(beyond)} is "
            "not."
        )
    return table


def in_order(table: Any, names: Sequence[str], ignored: Sequence[str]) -> Any:
    """Return some columns of a table, in order."""
    given = list(map(str, table.columns))
    if len(set(given)) < len(given):
        raise ValueError("table must not have two columns of one name.")
    if missing := [name for name in names if name not in given]:
        raise ValueError(f"table must have the column(s) {', '.join(missing)}.")
    if extra := [name for name in given if name not in (*names, *ignored)]:
        raise ValueError(
            f"table must not have columns that the release does not know: {', '.join(extra)}."
        )
    if isinstance(table, pd.DataFrame):
        table = table.set_axis(given, axis=1)
    return table[list(names)]
