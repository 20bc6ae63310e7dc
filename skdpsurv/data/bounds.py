"""Scaling by public bounds, which costs no privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from skdpsurv.data.dask import one_row, supports_lazy_input
from skdpsurv.data.feature import (
    Expression,
    Feature,
    known_names,
    raw_features,
    warn_of_wide_bounds,
)
from skdpsurv.data.shape import refuse_moments
from skdpsurv.dp.checks import one_of
from skdpsurv.dp.containers import is_lazy
from skdpsurv.dp.input_errors import (
    InputValueError,
    as_float_array,
    call_or_none,
    call_without_data,
    refuse_foreign_cells,
    refuse_masked,
)
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.dp.types import FloatArray

Bound = float | ArrayLike | Mapping[str, float]


class PublicBoundsScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Map every column from its public bounds to [-1, 1], and clip values beyond them.

    Nothing is learnt from the data: the map depends on ``lower`` and ``upper`` alone. So it spends
    no budget before a private estimator, and a scaled record depends on no other record.
    A ``StandardScaler``, a ``MinMaxScaler`` or a mean imputer in the same place would publish
    functions of the private records outside of every guarantee.

    Parameters
    ----------
    lower, upper : float, array-like of shape (n_features,) or dict, default=-1.0 and 1.0
        The public bounds, in the units of the column. A scalar holds for every column. An array
        holds one bound per column, in the order of ``X``. A dict (or a pandas Series with text
        labels) is looked up by column name: ``X`` must then be a DataFrame that holds exactly
        these columns, in any order. The defaults mean "columns already in [-1, 1]". Bounds must
        come from knowledge that does not depend on the records (units, protocol, physiology,
        literature): the minimum and maximum of the data are not public.
    missing : {"error", "midpoint"}, default="error"
        Treatment of NaN. ``"error"`` refuses them. ``"midpoint"`` replaces them by 0, the middle of
        the public bounds. The mean or median of the observed values would be a statistic of the
        private records and would leak.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in ``fit`` (public).
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns seen in ``fit``, when ``X`` has text column names (public).

    See Also
    --------
    sklearn.preprocessing.MinMaxScaler : The same map with bounds read off the data: not private.

    Notes
    -----
    A column with bounds :math:`[l, u]` becomes

    .. math:: z = \operatorname{clip}\left(\frac{x - (l + u) / 2}{(u - l) / 2}, -1, 1\right).

    Clipping is silent, since the number of clipped values is private. Every row of the result
    has Euclidean norm at most :math:`\sqrt{d}` for :math:`d` columns.

    Infinite values are always refused, as they mark a fault in the data rather than a large
    measurement. Refusing NaN or infinity reveals that such a value exists in the named column.

    ``transform`` needs no ``fit``: that call only records and checks the columns' number and
    names.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpsurv.data import PublicBoundsScaler
    >>> X = pd.DataFrame({"age": [50.0, 75.0, 103.0], "sex": [0, 1, 1]})
    >>> scaler = PublicBoundsScaler(lower={"sex": 0, "age": 50}, upper={"sex": 1, "age": 100})
    >>> scaler.set_output(transform="pandas").fit_transform(X)
       age  sex
    0 -1.0 -1.0
    1  0.0  1.0
    2  1.0  1.0
    """

    def __init__(self, lower: Bound = -1.0, upper: Bound = 1.0, *, missing: str = "error") -> None:
        self.lower = lower
        self.upper = upper
        self.missing = missing

    @classmethod
    def from_bounds(
        cls, bounds: Mapping[str, tuple[float, float]], *, missing: str = "error"
    ) -> Self:
        """Build a scaler from one dict of ``{column name: (lower, upper)}``.

        Parameters
        ----------
        bounds : dict of str to (float, float)
            Public bounds of each column.
        missing : {"error", "midpoint"}, default="error"
            See the class.

        Returns
        -------
        PublicBoundsScaler
            An unfitted scaler.

        Examples
        --------
        >>> PublicBoundsScaler.from_bounds({"age": (50, 100)})
        PublicBoundsScaler(lower={'age': 50}, upper={'age': 100})
        """
        if not isinstance(bounds, Mapping):
            raise TypeError(
                "bounds must be a mapping of names of columns to (lower, upper), such as "
                "{'age': (0, 100)}; PublicBoundsScaler(lower=..., upper=...) takes arrays of ends."
            )
        return cls(
            lower={name: low for name, (low, _) in bounds.items()},
            upper={name: high for name, (_, high) in bounds.items()},
            missing=missing,
        )

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the columns against the public bounds; nothing is learnt from the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records (private).
        y : None
            Ignored.

        Returns
        -------
        PublicBoundsScaler
            This scaler.

        Raises
        ------
        ValueError
            If the bounds do not fit the columns, if a lower bound is not below its upper bound,
            or if a column holds infinity, or NaN with ``missing="error"``.
        """
        if is_lazy(X):  # values are checked where they are used
            X = one_row(X)
        values, names, _ = self._read(self, X, reset=True)
        warn_of_wide_bounds(self._features(raw_features(known_names(names, values.shape[1]))))
        return self

    @supports_lazy_input(lambda self: self.n_features_in_)
    def transform(self, X: ArrayLike) -> FloatArray:
        """Scale by the public bounds and clip to [-1, 1].

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records (private).

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Values in [-1, 1]: scaled, not anonymised.

        Raises
        ------
        ValueError
            As in ``fit``.
        """
        if not hasattr(self, "n_features_in_"):
            # A fitted copy returns a container with names, if set_output asks for one.
            with suppressed_warnings():
                scaled: FloatArray = clone(self).fit(X).transform(X)
            return scaled
        values, _, (centre, half_width) = self._read(self, X)
        # First clip, then scale: differences of finite floats may overflow.
        values = np.clip(values, centre - half_width, centre + half_width)
        values = np.clip((values - centre) / half_width, -1.0, 1.0)
        values[np.isnan(values)] = 0.0
        return values

    @supports_lazy_input(lambda self: self.n_features_in_)
    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Map [-1, 1] back to the public bounds.

        Clipped values come back as the bound, and filled gaps as the midpoint.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled values.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Values in the units of ``lower`` and ``upper``.
        """
        fitted = hasattr(self, "n_features_in_")
        with suppressed_warnings():  # scaled rows may have lost their names
            noting = self if fitted else clone(self)
            values, _, (centre, half_width) = self._read(noting, X, reset=not fitted)
        return np.asarray(centre + half_width * values)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "midpoint"
        tags.requires_fit = False
        return tags

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the columns, as ``fit`` has seen them.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            If given, these must be the names of the columns.

        Returns
        -------
        ndarray of str objects

        Raises
        ------
        NotFittedError
            Before ``fit``.
        """
        if not hasattr(self, "n_features_in_"):
            # By these words scikit-learn understands that results of transform have names already.
            raise NotFittedError(
                "PublicBoundsScaler does not provide get_feature_names_out before fit."
            )
        names: NDArray[Any] = super().get_feature_names_out(input_features)
        return names

    def _features(self, inputs: Sequence[Feature]) -> list[Feature]:
        """Return the features that the scaler makes of others, without data."""
        names = [one.name for one in inputs]
        centre, half_width = self._centre_and_half_width(names, len(names))
        found = []
        for one, middle, half in zip(inputs, centre.tolist(), half_width.tolist(), strict=True):
            low, high = middle - half, middle + half
            clipped = Expression("clip", (one.expression,), (low, high))
            made = Expression("scale", (clipped,), (middle, half))
            if self.missing == "midpoint":
                made = Expression("fill", (made,), (0.0,))
            # Slopes hold within the bounds of raw columns; other features must never be clipped.
            kept = one.expression.kind == "column" or (low <= one.low and one.high <= high)
            center = None if one.center is None else one.center - middle
            moved = {"per_unit": one.per_unit, "center": center, "spread": one.spread}
            own: dict[str, Any] = {
                name: value / half if value is not None and kept else None
                for name, value in moved.items()
            }
            own["per"] = half / 5.0 if one.expression.kind == "column" else one.per
            own["expression"] = made
            found.append(replace(one, low=-1.0, high=1.0, **own))
        return found

    def _described(self) -> dict[str, Any]:
        """Return the parameters as JSON has them."""
        ends = {}
        for name in ("lower", "upper"):
            bound = _by_label(getattr(self, name))
            if isinstance(bound, Mapping):
                ends[name] = {str(column): float(value) for column, value in bound.items()}
            else:
                ends[name] = np.asarray(bound, dtype=np.float64).tolist()
        return ends | {"missing": self.missing}

    def _out_of_bounds(self, X: ArrayLike) -> list[str]:
        """Return the columns with a value beyond the bounds: private."""
        values, names, (centre, half_width) = self._read(clone(self), X, reset=True)
        outside = (values < centre - half_width) | (values > centre + half_width)
        return [_label(names, j) for j in np.flatnonzero(outside.any(axis=0))]

    def _read(
        self, noting: Any, X: Any, *, reset: bool = False
    ) -> tuple[FloatArray, list[str] | None, tuple[FloatArray, FloatArray]]:
        """Return numbers, names of columns, and centres and half widths of the bounds."""
        refuse_masked(X, "X")
        refuse_moments(X)
        refuse_foreign_cells(X)
        options = {"dtype": float, "ensure_all_finite": False, "ensure_min_samples": int(reset)}
        values = np.asarray(call_without_data(validate_data, noting, X, reset=reset, **options))
        found = getattr(noting, "feature_names_in_", None)
        names = None if found is None else list(found)
        scale = self._centre_and_half_width(names, values.shape[1])
        remedy = " missing='midpoint' replaces it by the middle of the public bounds."
        for wrong, what, more in (
            (np.isinf(values), "infinity (inf)", ""),
            (np.isnan(values) & (self.missing == "error"), "NaN", remedy),
        ):
            if (columns := wrong.any(axis=0)).any():
                where = _label(names, columns.argmax())
                raise InputValueError(f"X must not contain {what}, found in {where}.{more}")
        return values, names, scale

    def _ends(self, names: Sequence[str] | None, n_features: int) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of each column."""
        lower = _per_column("lower", self.lower, names, n_features)
        return lower, _per_column("upper", self.upper, names, n_features)

    def _centre_and_half_width(
        self, names: Sequence[str] | None, n_features: int
    ) -> tuple[FloatArray, FloatArray]:
        one_of("missing", self.missing, ("error", "midpoint"))
        lower, upper = self._ends(names, n_features)
        # Halve first: upper - lower may overflow.
        centre, half_width = lower / 2 + upper / 2, upper / 2 - lower / 2
        if (wrong := ~(half_width > 0)).any():
            j = wrong.argmax()
            raise ValueError(
                "lower must be smaller than upper in every column, got "
                f"lower={lower[j]:g} and upper={upper[j]:g} for {_label(names, j)}."
            )
        return centre, half_width


def _by_label(bound: Any) -> Any:
    # By position a labelled series would silently swap the columns' bounds.
    labelled = isinstance(bound, pd.Series) and all(isinstance(name, str) for name in bound.index)
    return bound.to_dict() if labelled else bound


def _per_column(name: str, bound: Any, names: Sequence[str] | None, n_features: int) -> FloatArray:
    """Return a finite bound for each column."""
    if is_lazy(bound):
        raise TypeError(f"{name} must be public, and in memory; got a collection of rows.")
    bound = _by_label(bound)
    if isinstance(bound, Mapping):
        if names is None:
            raise ValueError(
                f"{name} is given by column name, so X must be a DataFrame with text column names."
            )
        if wrong := set(bound).symmetric_difference(names):
            wrong_names = ", ".join(sorted(map(repr, wrong)))
            raise ValueError(f"{name} must hold exactly the columns of X, unlike {wrong_names}.")
        bound = [bound[column] for column in names]
    values = call_or_none(as_float_array, bound, name)
    if values is None or values.shape not in ((), (n_features,)) or not np.isfinite(values).all():
        raise ValueError(
            f"{name} must be a finite number, a list of one for each of the {n_features} columns "
            "of X, or a dict of one for each by its name."
        )
    return np.asarray(np.broadcast_to(values, (n_features,)))


def _label(names: Sequence[str] | None, j: Any) -> str:
    return f"column {j}" if names is None else f"column {names[j]!r}"
