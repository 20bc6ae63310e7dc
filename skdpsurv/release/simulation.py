r"""A made-up cohort that resembles a release: rows by public columns, and outcomes by the model.

All is post-processing of releases, so that it costs no privacy. A column has the first margin that
is known: that of a released Table 1; by the typical value and spread, or the prevalence, that the
columns state; by the centre and scale that the fit measured; or an even one. With a mean
:math:`\mu` and a variance :math:`\sigma^2`, a number between 0 and 1 has the beta distribution with

.. math:: a = \mu k,\quad b = (1 - \mu) k,\qquad k = \mu (1 - \mu) / \sigma^2 - 1 .

Columns are independent, but for a Table 1 by group: each group has its own margins. No release has
other associations of columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy import special

from skdpsurv.data import public_steps
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.feature import known_names
from skdpsurv.data.histories import event_first
from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.dp import checks
from skdpsurv.dp.input_errors import call_or_none
from skdpsurv.dp.types import FloatArray

#: Largest number of made-up people.
MOST_RECORDS = 10_000_000
#: Probabilities at which quantiles of a beta distribution are computed.
PROBABILITIES = np.linspace(0.0, 1.0, 2001)
#: Least distance of a mean from its bounds, and of a variance from the largest and from 0.
LEAST = 1e-3
#: Sources of margins, in words.
TABLE, STATED, MEASURED, EVEN = "Table 1", "the columns", "the fit", "none: spread evenly"
CENSORING = (
    "censoring must be None, a positive rate, a Release of Kaplan-Meier or Aalen-Johansen curves, "
    "n_records times of at least 0 and not before an entry, or a function of X and a generator "
    "that returns such times."
)


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
    def of_moments(cls, kind: ColumnKind, measured: Any) -> Self:
        """Return the margin by what the kind states, or else by measured moments of features."""
        if not kind.labels and not kind.ends[0] < kind.ends[1]:  # the model leaves it out
            return cls(EVEN, np.array([0.0, 1.0]), np.array(kind.ends))
        stated: Any = KnownColumns.of(features := kind.features())
        known = stated.released(features, measured)
        known_by = {STATED: stated, MEASURED: known}.items()
        found = (name for name, one in known_by if np.isfinite([one.center, one.variance]).any())
        source, center, variance, missing = next(found, EVEN), known.center, known.variance, 0.0
        if kind.missing == "category":
            missing = float(np.nan_to_num((1.0 + center[-1]) / 2.0))
            center, variance = center[:-1], variance[:-1]
            if kind.fillable:  # a fit measures the middle, 0, in place of what is missing
                here = max(1.0 - missing, LEAST)
                own = np.isnan(stated.center[:-1])
                center = np.where(own, np.clip(center / here, -1.0, 1.0), center)
                own = np.isnan(stated.variance[:-1])
                variance = np.where(own, variance / here - (1.0 - here) * center**2, variance)
        means = (1.0 + center) / 2.0
        if kind.labels:
            by_label = dict(zip((one.level for one in features), means.tolist(), strict=False))
            shares = np.array([by_label.get(label, np.nan) for label in kind.labels])
            absent = 0.0 if kind.fillable else missing
            rest = 1.0 - absent - np.nansum(shares)  # that of the reference
            return cls.of_shares(source, np.where(np.isnan(shares), rest, shares), missing)
        mean = float(np.clip(np.nan_to_num(means[0], nan=0.5), LEAST, 1.0 - LEAST))
        # A third of the largest variance is that of an even spread.
        part = np.nan_to_num(variance[0] / (4.0 * mean * (1.0 - mean)), nan=1.0 / 3.0)
        size = 1.0 / float(np.clip(part, LEAST, 1.0 - LEAST)) - 1.0
        places = special.betaincinv(mean * size, (1.0 - mean) * size, PROBABILITIES)
        low, high = kind.encode(np.array(kind.ends))[0]  # the feature of an inverse falls
        values = kind.value_at(np.sign(high - low) * (2.0 * places - 1.0))
        return cls(source, PROBABILITIES, values, missing)

    def draw(self, kind: ColumnKind, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Return values as the kind reads them, NaN where missing."""
        uniform, missing = rng.random((2, n_rows))
        if self.values is None:
            found = np.searchsorted(self.cumulative[:-1], uniform, side="right").astype(np.float64)
        else:
            found = np.clip(np.interp(uniform, self.cumulative, self.values), *kind.ends)
        return np.where((missing < self.missing) & (kind.missing != "error"), np.nan, found)


def simulated(
    release: Any, n_records: int, seed: int, table: Any, censoring: Any
) -> tuple[pd.DataFrame, Any]:
    """Return rows and outcomes; :meth:`skdpsurv.Release.simulate` says which."""
    n = int(checks.integer(1, MOST_RECORDS)("n_records", n_records))
    checks.integer(0)("seed", seed)
    kind, name = release._kind, release.estimator
    drawn_by = getattr(kind, "_curve_type", kind)  # the curve of a fitter is an object of its own
    if not hasattr(drawn_by, "_draw_outcomes") or release.guarantee.not_covered:
        raise ValueError(
            f"a release of this {name} does not say how raw rows and their outcomes are "
            "distributed, so that nobody can be made up from it."
        )
    if censoring is not None and not kind._card.histories:
        raise ValueError(f"censoring must be None for a {name}: it has no times.")
    model = release._model
    model = getattr(model, "_released", model)
    # Noise needs a cryptographic source, as it hides people. Nobody hides here, so that the seed
    # may be known. Three streams: other censoring is of the same people.
    of_rows, of_outcomes, of_censoring = np.random.default_rng(int(seed)).spawn(3)
    is_curve = drawn_by is not kind
    if is_curve and table is not None:
        raise ValueError(f"table must be None for a {name}: it has no columns.")
    X = model._draw_rows(n, of_rows) if is_curve else _rows(release, model, table, n, of_rows)
    # Columns that a regression calls group and entry may be anything.
    censored = _censored(censoring, X, X if is_curve else X[[]], of_censoring)
    has_names = is_curve or release.feature_names_in is not None
    y = model._draw_outcomes(X if has_names else X.to_numpy(object), censored, of_outcomes)
    if len(names := release.target_names) == 2 and not {*names} & {*X.columns}:
        y.dtype.names = event_first(*names)
    source = f"a release of a {name}, status {release.guarantee.status}"
    X.attrs["made_up"] = f"nobody's records, from {source}, seed {seed}"
    return X, y


def _rows(release: Any, model: Any, table: Any, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows of raw columns, with the sources of their margins."""
    step, number = release.transformer(), release.n_features_in
    stated = public_steps.input_names(step, number, release.feature_names_in)
    kinds: list[Any] = public_steps.raw_kinds(step, names := known_names(stated, number))
    if not all(kinds):
        raise ValueError(
            "columns of the release must state bounds or labels of every raw column, between which "
            "rows can be made up: fit with columns=PublicColumns(...)."
        )
    described = model if table is None else call_or_none(lambda: table.to_estimator())
    if table is not None and not hasattr(described, "_margins"):
        raise TypeError("table must be a Release of a DPTableOne, or None.")
    # A Table 1 has its own margins.
    by, margins = described._margins() if hasattr(described, "_margins") else (None, {})
    measured = list(getattr(model, "_measured_moments", list)())
    X, sources, group = pd.DataFrame(index=range(n), columns=names), {}, np.full(n, -1.0)
    # The groups of a table come first: other columns depend on them.
    for kind in sorted(kinds, key=lambda kind: kind.column != by):
        theirs, parts = margins.get(kind.column, (kind, [Margin.of_moments(kind, measured)]))
        if theirs.labels != kind.labels or theirs.bounded != kind.bounded:
            raise ValueError(f"table must describe {kind.column!r} as the release does.")
        drawn = parts[0].draw(kind, n, rng)
        for place, own in enumerate(parts[1:]):
            drawn = np.where(group == place, own.draw(kind, n, rng), drawn)
        if kind.column == by:
            group = np.nan_to_num(drawn, nan=len(kind.labels))
        missing, sources[kind.column] = np.isnan(drawn), parts[0].source
        cells = pd.Series(kind.cells(np.where(missing, kind.ends[0], drawn)))
        X[kind.column] = cells.mask(missing) if missing.any() else cells
    X.attrs["margins"] = {name: sources[name] for name in X}
    return X


def _censored(
    censoring: Any, X: pd.DataFrame, groups: pd.DataFrame, rng: np.random.Generator
) -> FloatArray:
    """Return the time by which each person is lost, perhaps by group; inf without censoring."""
    if censoring is None:
        return np.full(len(X), np.inf)
    entry = groups["entry"].to_numpy() if "entry" in groups else np.zeros(len(X))
    if checks.is_real(censoring):  # nobody is lost before anybody sees them
        rate = checks.positive_number("censoring", censoring)
        return np.asarray(entry + rng.exponential(1.0 / rate, len(X)))
    if hasattr(censoring, "to_estimator"):
        curve = getattr(censoring.to_estimator(), "_released", None)
        found = getattr(curve, "_draw_censoring", lambda *how: None)(groups, rng)
    else:
        found = censoring(X, rng) if callable(censoring) else censoring
    times = call_or_none(lambda: np.asarray(found, dtype=np.float64))
    if times is None or times.shape != (len(X),) or not (times >= entry).all():
        raise ValueError(CENSORING)
    return np.asarray(times)
