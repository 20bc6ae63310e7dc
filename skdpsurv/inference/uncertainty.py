"""Estimates with standard errors in a release, and the mixin of fitted models with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import special
from sklearn.utils.validation import check_is_fitted

from skdpsurv.data.feature import Feature
from skdpsurv.data.shape import Shape, few_intervals
from skdpsurv.dp.checks import fraction, refuse_unknown
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.references import WORDS
from skdpsurv.dp.types import BoolArray, FloatArray
from skdpsurv.inference.effects import effect_of
from skdpsurv.inference.wald import JointTests
from skdpsurv.release import Release, released_array
from skdpsurv.release.raw_rows import headline

#: Prefix of the names of the values in a release.
PREFIX = "inference_"
NAMES = tuple(f"{PREFIX}{name}" for name in ("estimate", "covariance", "known"))
#: Its name of directions that noise hides; releases of earlier versions have none.
HIDDEN = f"{PREFIX}hidden"
#: Name of the mean weight of rows, with its standard error, in a release; and a weight that is low.
MEAN_WEIGHT, LOW_WEIGHT = "mean_weight", 0.9
#: Names of centre, scales and radius of the rows of a fit, in a release.
ROW_VALUES = ("row_center", "row_scale", "row_radius")


@dataclass(frozen=True, eq=False)
class Inference:
    """Unshrunk, debiased estimates of a model's parameters and their covariance; released.

    Parameters
    ----------
    estimate : ndarray of shape (n_params,)
        The common part first (a baseline, an intercept), then one for each feature.
    covariance : ndarray of shape (n_params, n_params)
        Covariance by sampling and by privacy noise.
    known : ndarray of bool of shape (n_params,)
        False where the standard error is infinite.
    hidden : ndarray of shape (n_features, n_features), optional
        Projection on the directions that noise hides, of coefficients in units of the fit's rows.
    """

    estimate: FloatArray
    covariance: FloatArray
    known: BoolArray
    hidden: FloatArray | None = None

    @classmethod
    def unknown(cls, size: int) -> Self:
        return cls(np.zeros(size), np.zeros((size, size)), np.zeros(size, dtype=bool))

    def in_coordinates(self, change: FloatArray) -> Self:
        """Return the inference for ``change @ parameters``."""
        known = ~((change != 0.0) & ~self.known).any(axis=1)
        estimate, covariance = change @ self.estimate, change @ self.covariance @ change.T
        if not (np.isfinite(estimate).all() and np.isfinite(covariance).all()):
            return self.unknown(known.size)
        return replace(
            self, estimate=estimate, covariance=_without_rounding(covariance), known=known
        )

    def values(self) -> dict[str, FloatArray]:
        """Return the numbers that a release keeps, by name."""
        found = self.estimate, self.covariance, self.known.astype(np.float64)
        hidden = {} if self.hidden is None else {HIDDEN: self.hidden}
        return dict(zip(NAMES, found, strict=True)) | hidden

    @classmethod
    def of(cls, release: Release, n_params: int) -> Self | None:
        """Return the inference in a release, None without one; ValueError if it is broken."""
        if release.values.keys().isdisjoint(NAMES):
            return None
        (found,) = cls.each_of(release, n_params)
        return found

    @classmethod
    def each_of(cls, release: Release, n_params: int, *number: int) -> list[Self]:
        """Return the inferences in a release: of one output, or of a ``number`` of them."""
        d, shapes = release.n_features, [(n_params,), (n_params, n_params), (n_params,)]
        asked = dict(zip(NAMES, shapes, strict=True))
        if HIDDEN in release.values:
            asked[HIDDEN] = (d, d)
        stacked = [
            released_array(release, name, (*number, *shape)).reshape(-1, *shape)
            for name, shape in asked.items()
        ]
        return [cls._checked(*values) for values in zip(*stacked, strict=True)]

    @classmethod
    def _checked(
        cls,
        estimate: FloatArray,
        covariance: FloatArray,
        known: FloatArray,
        hidden: FloatArray | None = None,
    ) -> Self:
        """Return the inference of these numbers of a release; ValueError if it is none."""
        matrices = [covariance] if hidden is None else [covariance, hidden]
        if not all(map(_is_covariance, matrices)) or not np.isin(known, (0.0, 1.0)).all():
            raise ValueError(
                f"values of the release must hold {NAMES[1]!r} and {HIDDEN!r} that are symmetric "
                f"and positive semidefinite, and {NAMES[2]!r} of zeros and ones."
            )
        return cls(estimate, covariance, known == 1.0, hidden)

    def standard_errors(self) -> FloatArray:
        """Return standard errors, infinite for unknown parameters."""
        return np.where(self.known, np.sqrt(np.diag(self.covariance)), np.inf)


def _without_rounding(covariance: FloatArray) -> FloatArray:
    """Return a symmetric matrix without eigenvalues that rounding has made negative."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    square = root @ root.T
    return np.asarray(0.5 * (square + square.T))


def _is_covariance(matrix: FloatArray) -> bool:
    """Return True if a matrix is symmetric and, up to rounding, positive semidefinite."""
    if not (matrix == matrix.T).all() or not (np.diag(matrix) >= 0.0).all():
        return False
    values = np.linalg.eigvalsh(matrix / max(float(np.abs(matrix).max(initial=0.0)), 1e-300))
    return bool(values.min(initial=0.0) >= -1e-9)


def half_width(level: float) -> float:
    """Return how many standard errors an interval of a level reaches to either side."""
    return float(special.ndtri(0.5 + 0.5 * level))


def interval(
    estimate: FloatArray, error: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of normal intervals."""
    margin = half_width(level) * error
    return estimate - margin, estimate + margin


def table(
    estimate: FloatArray, error: FloatArray, features: Sequence[Feature], level: float = 0.95
) -> pd.DataFrame:
    """Return a table of coefficients with the columns of lifelines."""
    steps = np.array([1.0 if f.per_unit is None else f.per_unit for f in features])
    names = pd.Index([feature.name for feature in features], name="covariate")
    return interval_table(estimate * steps, error * np.abs(steps), names, level)


def interval_table(
    estimate: FloatArray, error: FloatArray, names: pd.Index, level: float
) -> pd.DataFrame:
    known = ~np.isinf(error)
    with np.errstate(all="ignore"):
        coef = np.where(known, estimate, np.nan)
        lower, upper = interval(np.where(known, coef, 0.0), error, level)
        z = np.where(known, coef / error, np.nan)
        p = 2.0 * special.ndtr(-np.abs(z))
        percent = f"{100.0 * level:g}%"
        columns = {
            "coef": coef,
            "exp(coef)": np.exp(coef),
            "se(coef)": error,
            f"coef lower {percent}": lower,
            f"coef upper {percent}": upper,
            f"exp(coef) lower {percent}": np.exp(lower),
            f"exp(coef) upper {percent}": np.exp(upper),
            "z": z,
            "p": p,
            "-log2(p)": -np.log2(p),
        }
    return pd.DataFrame(columns, index=names)


def print_tests(tests: pd.DataFrame, decimals: int) -> None:
    """Print Wald tests in rows."""
    formats = {"df": str, "chi2": f"{{:.{decimals}f}}".format, "p": "{:.2g}".format}
    print(tests.to_string(formatters=formats, na_rep=""))


def _weight_words(release: Release) -> list[str]:
    """Say that extreme rows count less, how much, and if it is a lot."""
    words = WORDS["intervals"]
    if MEAN_WEIGHT not in release.values:
        return [words["long_rows"].format(how="")]
    weight, error = released_array(release, MEAN_WEIGHT, (2,)).tolist()
    mean = f": mean weight {min(max(weight, 0.0), 1.0):.2f}"
    low = [words["low_weight"].format(low=LOW_WEIGHT)] if weight + 2.0 * error < LOW_WEIGHT else []
    return [words["long_rows"].format(how=mean), *low]


class CoefficientFigure:
    """Mixin of models with coefficients of columns: a figure of them."""

    #: How effects change over time, in hazard regressions alone.
    _changes: Any = None

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the coefficients, of all causes side by side, with 95 % intervals if there are any.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        **options
            Options of :func:`skdpsurv.plotting.plot_coefficients`.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from skdpsurv.plotting import plot_coefficients  # needs the extra "plot"

        refuse_unknown(type(self), "plot", plot_coefficients, options)
        return plot_coefficients(self, ax=ax, **options)


class Summarised(CoefficientFigure, JointTests):
    """Mixin of regressions whose releases may hold standard errors: ``inference_``."""

    epsilon: float
    delta: float
    inference_share: float
    coef_: FloatArray
    inference_: Inference | None
    release_: Release
    guarantee_: PrivacyGuarantee

    def _few_intervals(self, shape: Shape, least: float) -> list[str]:
        """Return warnings if n * epsilon is too small for standard errors."""
        share, epsilon = float(self.inference_share), float(self.epsilon)
        if math.isinf(epsilon):
            return []
        n_features = 0 if self.delta else shape.n_features
        return few_intervals(shape.n_records, n_features, epsilon, share, least)

    @property
    def summary(self) -> pd.DataFrame:
        """Coefficients with standard errors and 95 % intervals, in the columns of lifelines.

        Indexed by ``covariate``; per unit of the raw column if the release knows the columns, else
        on the scale of X. Beside products of columns, a column's coefficient holds in the middle of
        the others' bounds, and a product's is per unit of each factor. Unlike ``coef_``, estimates
        are corrected for shrinkage (docs/user_guide/inference). They are about a fit in which
        people with extreme rows count less: ``mean_weight`` of ``release_`` has the mean weight and
        its standard error. So they are not those of a regression in which all records count alike.
        A hazard model's minimise the expected loss at the cap that was used,
        ``max_cumulative_hazard_``; its ``estimand`` computes them from records. An unknown
        coefficient has an infinite standard error and no estimate. Without standard errors,
        ``coef`` is ``coef_``. No budget is spent.
        """
        return self._summary(0.95)

    def confidence_interval(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals of the coefficients that allow for sampling and for privacy noise.

        Parameters
        ----------
        level : float, default=0.95
            Nominal coverage.

        Returns
        -------
        pandas.DataFrame
            Indexed as ``summary``; columns ``lower`` and ``upper``, infinite for unknown
            coefficients.

        Raises
        ------
        ValueError
            If there are no standard errors.
        """
        level = fraction("level", level)
        self._require_inference()
        ends = self._summary(level).filter(regex="^coef (lower|upper)")
        return ends.set_axis(["lower", "upper"], axis=1)

    def effect(
        self,
        column: str,
        *,
        reference: Any = None,
        at: Mapping[str, Any] | None = None,
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Return the effect of a column over its range, against a reference value.

        Parameters
        ----------
        column : str
            A raw column of ``columns``, of any kind.
        reference : object, optional
            The value that others are compared with. None: the typical one, else the middle of the
            bounds, or the first label.
        at : dict, optional
            Values of other columns, which matter beside interactions; else typical ones.
        level : float, default=0.95
            Nominal pointwise coverage.

        Returns
        -------
        pandas.DataFrame
            Indexed by values between the bounds, or all labels; columns as in ``summary``. Errors
            are missing without standard errors, and infinite where noise hides the effect. No
            budget is spent.

        Raises
        ------
        ValueError
            If columns are not described by ``PublicColumns``, or a value is none of theirs.
        """
        level = fraction("level", level)
        self._check_fitted()
        values, coef, error = effect_of(self, column, reference, at)
        return interval_table(coef, error, values, level).drop(columns=["z", "p", "-log2(p)"])

    def print_summary(self, decimals: int = 2) -> None:
        """Print the coefficients, their intervals, tests of terms, and the privacy guarantee.

        Parameters
        ----------
        decimals : int, default=2
        """
        summary = self.summary
        print(headline(self.release_))
        print(summary.to_string(float_format=lambda x: f"{x:.{decimals}f}", na_rep=""))
        if self.inference_ is None:
            print(WORDS["intervals"]["not_estimated"])
        elif np.isinf(summary["se(coef)"]).any():
            print(WORDS["intervals"]["nothing_known"])
        if self.inference_ is not None and len(terms := self.test_terms()) < len(summary):
            print_tests(terms, decimals)
            print(WORDS["tests"]["terms"])
        if self.inference_ is not None and self._changes is not None:
            model: Any = self
            print_tests(model.proportional_hazards_test(), decimals)
            print(WORDS["tests"]["hazards"])
        cap = getattr(self, "max_cumulative_hazard_", None)
        if self.inference_ is not None and cap is not None:
            print(WORDS["intervals"]["at_cap"].format(cap=cap))
        for line in self._reading():
            print(line)

    def _reading(self) -> list[str]:
        """Say which estimand this is, and what a released table says of the horizon."""
        fit, features = self.release_.made_by, self.release_.features
        public: Any = fit.public_inputs
        values: Any = self.release_.values
        center, scale, norm = map(values.get, ROW_VALUES, (0.0, 1.0, public.get("data_norm")))
        ends = np.array([[one.low, one.high] for one in features]).T
        longest = float(np.linalg.norm(np.abs((ends - center) / scale).max(axis=0))) * (1.0 - 1e-9)
        clips = public.get("epsilon_center") or public.get("mu_center")
        clips = clips or (norm is not None and longest > norm)
        words = _weight_words(self.release_) if clips and not math.isinf(fit.epsilon) else []
        return words + getattr(self, "_horizon_words", list)()

    def _check_fitted(self) -> None:
        check_is_fitted(self, "release_")

    def _summary(self, level: float) -> pd.DataFrame:
        self._check_fitted()
        if np.ndim(self.coef_) == 2 and len(self.coef_) > 1:
            raise AttributeError("summary is of a model of two classes.")
        estimate, error = np.ravel(self.coef_), np.full(self.coef_.size, np.nan)
        if (found := self.inference_) is not None:
            estimate, error = found.estimate[-error.size :], found.standard_errors()[-error.size :]
        return table(estimate, error, self.release_.features, level)

    def _require_inference(self) -> Inference:
        self._check_fitted()
        if self.inference_ is None:
            raise ValueError(
                "inference_share must be positive for a fit to have standard errors; this one has "
                "none."
            )
        return self.inference_
