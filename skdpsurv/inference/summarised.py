"""Fitted models that say how sure they are of their coefficients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skdpsurv.checks import fraction
from skdpsurv.inference.inference import Inference, table
from skdpsurv.preprocessing.public_doubts import few_intervals
from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.release import Release
from skdpsurv.release.explanation import headline
from skdpsurv.types import FloatArray

__all__ = ["Summarised"]

NOT_ESTIMATED = (
    "Standard errors: not estimated, and coefficients are shrunk. They need inference_share (0.2, "
    "say){only}, and n * epsilon of at least {least:g}."
)
NOTHING_KNOWN = (
    "inf: noise hides how the column varies, or where the estimate is; more records or a larger "
    "epsilon would tell."
)

AT_CAP = (
    "Estimated: the coefficients that minimise the expected loss at the cap that was used, "
    "max_cumulative_hazard={cap:.4g}. Where effects change over time they depend on it."
)


class Summarised:
    """Mixin of regressions whose releases may hold standard errors.

    A subclass has ``coef_``, sets ``inference_`` from a release, and says when there are some.
    """

    epsilon: float
    delta: float
    inference_share: float
    coef_: FloatArray
    inference_: Inference | None
    release_: Release
    guarantee_: PrivacyGuarantee

    #: What else standard errors need, in words, and the least n * epsilon.
    _inference_needs: tuple[str, float] = ("", 0.0)

    def _doubts(self, shape: Any, X: Any, y: Any = None, **options: Any) -> list[str]:
        doubts: list[str] = super()._doubts(shape, X, y, **options)  # type: ignore[misc]
        share, epsilon = float(self.inference_share), float(self.epsilon)
        if not share or math.isinf(epsilon):
            return doubts
        least, n_features = self._inference_needs[1], 0 if self.delta else shape.n_features
        return doubts + few_intervals(shape.n_records, n_features, epsilon, share, least)

    @property
    def summary(self) -> pd.DataFrame:
        """Coefficients with standard errors and 95 % intervals, in the columns of lifelines.

        Indexed by ``covariate``; per unit of the raw column where the release knows the columns,
        else on the scale of X. These are unshrunk estimates, which ``coef_`` are not: what the
        mechanism did to them is undone (docs/user_guide/inference); a hazard model's minimise the
        expected loss at the cap that was used, ``max_cumulative_hazard_``. Where the release says
        nothing, the standard error is infinite, and there is no estimate. Without standard errors,
        those are missing, and ``coef`` are ``coef_``. No budget is spent.
        """
        return self._summary(0.95)

    def confidence_interval(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals of the coefficients, which allow for sampling and for privacy noise.

        Parameters
        ----------
        level : float, default=0.95
            Coverage asked for.

        Returns
        -------
        pandas.DataFrame
            Indexed as ``summary``; columns ``lower`` and ``upper``, infinite where nothing is
            known.

        Raises
        ------
        ValueError
            If there are no standard errors.
        """
        level = fraction("level", level)
        self._require_inference()
        ends = self._summary(level).filter(regex="^coef (lower|upper)")
        return ends.set_axis(["lower", "upper"], axis=1)

    def print_summary(self, decimals: int = 2) -> None:
        """Print the coefficients, their intervals and what was promised.

        Parameters
        ----------
        decimals : int, default=2
        """
        summary = self.summary
        print(headline(self.release_))
        print(summary.to_string(float_format=lambda x: f"{x:.{decimals}f}", na_rep=""))
        if self.inference_ is None:
            only, least = self._inference_needs
            print(NOT_ESTIMATED.format(only=only, least=least))
        elif np.isinf(summary["se(coef)"]).any():
            print(NOTHING_KNOWN)
        if (cap := getattr(self, "max_cumulative_hazard_", None)) is not None:
            print(AT_CAP.format(cap=cap))

    def _summary(self, level: float) -> pd.DataFrame:
        check_is_fitted(self, "release_")
        if np.ndim(self.coef_) == 2 and len(self.coef_) > 1:
            raise AttributeError("summary is of a model of two classes.")
        estimate, error = np.ravel(self.coef_), np.full(self.coef_.size, np.nan)
        found = self.inference_
        if found is not None:
            estimate, error = found.estimate[-error.size :], found.standard_errors()[-error.size :]
        return table(estimate, error, self.release_.features, level)

    def _require_inference(self) -> Inference:
        check_is_fitted(self, "release_")
        if self.inference_ is None:
            raise ValueError(
                "inference_share must be positive for a fit to have standard errors; this one has "
                "none."
            )
        return self.inference_

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the coefficients with 95 % intervals; see ``plot_coefficients`` for the options.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        **options
            Of :func:`skdpsurv.plotting.plot_coefficients`.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from skdpsurv.plotting import plot_coefficients  # needs the extra "plot"

        return plot_coefficients(self, ax=ax, **options)
