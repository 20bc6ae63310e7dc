r"""A made-up cohort that resembles a release: rows by public columns, and outcomes by the model.

All is post-processing of releases, so that it costs no privacy. A column has the first margin that
is known: of a released Table 1; of the centre and scale that the fit measured; of the typical value
and spread, or the prevalence, that the columns state; or an even one. With a mean :math:`\mu` and a
variance :math:`\sigma^2`, a number between 0 and 1 has the beta distribution with

.. math:: a = \mu k,\quad b = (1 - \mu) k,\qquad k = \mu (1 - \mu) / \sigma^2 - 1 .

Columns are independent, but for a Table 1 by group: each group has its own margins. No release has
other associations of columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy import special

from skdpsurv.data import public_steps
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.feature import Feature, known_names, same_features
from skdpsurv.data.histories import event_first
from skdpsurv.dp import checks
from skdpsurv.dp.types import FloatArray

#: Largest number of made-up people.
MOST_RECORDS = 10_000_000
#: Probabilities at which quantiles of a beta distribution are computed.
PROBABILITIES = np.linspace(0.0, 1.0, 2001)
#: Least distance of a mean from its bounds, and of a variance from the largest and from 0.
LEAST = 1e-3
#: Sources of margins, in words.
TABLE, MEASURED, STATED, EVEN = "Table 1", "the fit", "the columns", "none: spread evenly"

#: Mean and variance of a feature of which nothing is known.
UNKNOWN = (np.nan, np.nan)
#: Features with mean and variance, NaN where unknown, by name.
Moments = Mapping[str, tuple[Feature, float, float]]


class Margin(NamedTuple):
    """How a column is drawn: ``values`` are reached at ``cumulative`` probabilities.

    Labels have no values: each ends at a probability.
    """

    source: str
    cumulative: FloatArray
    values: FloatArray | None = None
    missing: float = 0.0

    @classmethod
    def of_shares(cls, source: str, shares: Any, missing: float = 0.0) -> Self:
        """Return the margin of labels with these shares, or what noise left of them."""
        shares = np.maximum(np.asarray(shares, dtype=np.float64), 0.0)
        shares = shares if shares.sum() > 0.0 else np.ones_like(shares)
        return cls(source, np.cumsum(shares / shares.sum()), missing=missing)

    @classmethod
    def of_moments(cls, kind: ColumnKind, measured: Moments) -> Self:
        """Return the margin by measured moments of features, or by what the kind states."""
        if not kind.labels and not kind.ends[0] < kind.ends[1]:  # the model leaves it out
            return cls(EVEN, np.array([0.0, 1.0]), np.array(kind.ends))
        first, *others = kind.features()
        known = [(one, *_moments(one, measured)) for one in (first, *others)]
        source = MEASURED if any(np.isfinite([*one[1:]]).any() for one in known) else STATED
        gaps = known.pop()[1] if kind.missing == "category" else 0.0
        missing = float(np.clip(np.nan_to_num(gaps), 0.0, 1.0))
        if kind.labels:
            by_label = {one.level: mean for one, mean, _ in known}
            shares = np.array([by_label.get(label, np.nan) for label in kind.labels])
            if np.isnan(shares).all():
                stated = kind.prevalence or np.ones(shares.size)
                return cls.of_shares(EVEN if kind.prevalence is None else STATED, stated)
            rest = 1.0 - missing - np.nansum(shares)  # that of the reference
            return cls.of_shares(source, np.where(np.isnan(shares), rest, shares), missing)
        mean, variance = known[0][1:]
        if source is STATED:
            source = EVEN if first.center is None and first.spread is None else STATED
            mean = np.nan if first.center is None else first.center
            variance = np.nan if first.spread is None else first.spread**2
        return cls(source, PROBABILITIES, _beta_quantiles(kind, mean, variance), missing)

    def draw(self, kind: ColumnKind, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Return values as the kind reads them, NaN where missing."""
        uniform, missing = rng.random((2, n_rows))
        if self.values is None:
            found = np.searchsorted(self.cumulative[:-1], uniform, side="right").astype(np.float64)
        else:
            found = np.clip(np.interp(uniform, self.cumulative, self.values), *kind.ends)
        return np.where((missing < self.missing) & (kind.missing != "error"), np.nan, found)


def _moments(feature: Feature, measured: Moments) -> tuple[float, float]:
    found, mean, variance = measured.get(feature.name, (feature, *UNKNOWN))
    return (mean, variance) if same_features([found], [feature]) else UNKNOWN


def _beta_quantiles(kind: ColumnKind, mean: float, variance: float) -> FloatArray:
    """Return quantiles of a number, by moments of its feature, which is between -1 and 1."""
    mean = float(np.clip((1.0 + np.nan_to_num(mean)) / 2.0, LEAST, 1.0 - LEAST))
    # A third of the largest variance is that of an even spread.
    part = np.nan_to_num(variance / (4.0 * mean * (1.0 - mean)), nan=1.0 / 3.0)
    size = 1.0 / float(np.clip(part, LEAST, 1.0 - LEAST)) - 1.0
    places = special.betaincinv(mean * size, (1.0 - mean) * size, PROBABILITIES)
    low, high = kind.encode(np.array(kind.ends))[0]  # an inverse falls
    return np.asarray(kind.value_at(np.sign(high - low) * (2.0 * places - 1.0)))


def simulated(
    release: Any, n_records: int, seed: int, table: Any, censoring: Any
) -> tuple[pd.DataFrame, Any]:
    """Return rows and outcomes; :meth:`skdpsurv.Release.simulate` says which."""
    n = int(checks.integer(1, MOST_RECORDS)("n_records", n_records))
    checks.integer(0)("seed", seed)
    kind = release._kind  # the curve of a fitter is an object of its own
    draws = hasattr(getattr(kind, "_curve_type", kind), "_draw_outcomes")
    if not draws or release.guarantee.not_covered:
        raise ValueError(
            f"a release of this {release.estimator} does not say how raw rows and their outcomes "
            "are distributed, so that nobody can be made up from it."
        )
    model = release._model
    model = getattr(model, "_released", model)
    if censoring is not None and not kind._card.histories:
        raise ValueError(f"censoring must be None for a {release.estimator}: it has no times.")
    # Noise needs a cryptographic source, as it hides people. Nobody hides here, so that the seed
    # may be known. Three streams: other censoring is of the same people.
    of_rows, of_outcomes, of_censoring = np.random.default_rng(int(seed)).spawn(3)
    if is_curve := hasattr(model, "_draw_rows"):
        if table is not None:
            raise ValueError(f"table must be None for a {release.estimator}: it has no columns.")
        X = model._draw_rows(n, of_rows)
    else:
        # A Table 1 is drawn by its own margins.
        own = release if table is None and hasattr(model, "_margins") else table
        X = _rows(release, model, _margins(own), n, of_rows)
    # Columns that a regression calls group and entry may be anything.
    censored = _censored(censoring, X, X if is_curve else X[[]], of_censoring)
    named = is_curve or release.feature_names_in is not None
    y = model._draw_outcomes(X if named else X.to_numpy(dtype=object), censored, of_outcomes)
    if len(names := release.target_names) == 2 and not {*names} & {*X.columns}:
        y.dtype.names = event_first(*names)
    X.attrs["made_up"] = f"nobody's records, from a release of a {release.estimator}, seed {seed}"
    return X, y


def _margins(table: Any) -> tuple[Any, dict[str, tuple[ColumnKind, list[Margin]]]]:
    """Return the column of the groups of a released Table 1, and margins by group."""
    if table is None:
        return None, {}
    model: Any = table.to_estimator() if hasattr(table, "to_estimator") else None
    if not hasattr(model, "_margins"):
        raise TypeError("table must be a Release of a DPTableOne, or None.")
    return model.by, model._margins()


def _rows(release: Any, model: Any, known: Any, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows of raw columns, with the sources of their margins."""
    step, (by, margins), number = release.transformer(), known, release.n_features_in
    stated = public_steps.input_names(step, number, release.feature_names_in)
    names = known_names(stated, number)
    kinds: list[Any] = public_steps.raw_kinds(step, names)
    if not all(kinds):
        raise ValueError(
            "columns of the release must state bounds or labels of every raw column, between which "
            "rows can be made up: fit with columns=PublicColumns(...)."
        )
    measured: Moments = getattr(model, "_measured_moments", dict)()
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    group = np.zeros(n, dtype=np.intp)
    # The groups of a table come first: other columns depend on them.
    for kind in sorted(kinds, key=lambda kind: kind.column != by):
        theirs, parts = margins.get(kind.column, (kind, [Margin.of_moments(kind, measured)]))
        if theirs.labels != kind.labels or theirs.bounded != kind.bounded:
            raise ValueError(f"table must describe {kind.column!r} as the release does.")
        drawn = np.empty(n)
        for place in np.unique(group if len(parts) > 1 else 0):
            rows = (group == place) | (len(parts) == 1)
            drawn[rows] = parts[place].draw(kind, int(rows.sum()), rng)
        if kind.column == by:
            group = 1 + np.nan_to_num(drawn, nan=len(kind.labels)).astype(np.intp)
        values[kind.column], sources[kind.column] = _cells(kind, drawn), parts[0].source
    X = pd.DataFrame({name: values[name] for name in names})
    X.attrs["margins"] = {name: sources[name] for name in names}
    return X


def _cells(kind: ColumnKind, values: FloatArray) -> Any:
    missing = np.isnan(values)
    cells = pd.Series(kind.cells(np.where(missing, kind.ends[0], values)))
    return cells.mask(missing) if missing.any() else cells


def _censored(
    censoring: Any, X: pd.DataFrame, groups: pd.DataFrame, rng: np.random.Generator
) -> FloatArray:
    """Return the time by which each person is lost, perhaps by group; inf without censoring."""
    if censoring is None:
        return np.full(len(X), np.inf)
    if hasattr(censoring, "to_estimator"):
        curve: Any = getattr(censoring.to_estimator(), "_released", None)
        if not hasattr(curve, "_draw_censoring"):
            raise TypeError("censoring must be a Release of Kaplan-Meier or Aalen-Johansen curves.")
        return np.asarray(curve._draw_censoring(groups, rng))
    if checks.is_real(censoring):
        return rng.exponential(1.0 / checks.positive_number("censoring", censoring), len(X))
    try:
        found = np.asarray(censoring(X, rng) if callable(censoring) else censoring, dtype=float)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (len(X),) or not (found >= 0.0).all():
        raise ValueError(
            "censoring must be None, a positive rate, a Release of curves, or n_records times that "
            "are not negative, or a function of X and a generator that returns such times."
        )
    return found
