"""Tables of a fitted curve and its intervals, under lifelines' names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdpsurv.checks import fraction
from skdpsurv.privacy import refuse_masked
from skdpsurv.survival.released_curve import ReleasedCurve
from skdpsurv.target import checked_times
from skdpsurv.types import FloatArray

__all__ = ["CurveFrames", "Shown", "times_argument"]


@dataclass(frozen=True)
class Shown:
    """What ``fit`` was asked to show, and how: public, and no part of a release."""

    timeline: FloatArray | None = None
    label: str | None = None
    alpha: float | None = None
    ci_labels: tuple[str, str] | None = None

    @classmethod
    def checked(
        cls,
        timeline: ArrayLike | None,
        label: str | None,
        alpha: float | None,
        ci_labels: Sequence[str] | None,
    ) -> Shown:
        """Return it, or refuse what makes no sense.

        Raises
        ------
        TypeError, ValueError
        """
        times = None if timeline is None else np.sort(times_argument(timeline))
        if label is not None and not isinstance(label, str):
            raise TypeError(f"label must be text, got {type(label).__name__}.")
        if ci_labels is not None and not (
            isinstance(ci_labels, list | tuple)
            and len(ci_labels) == 2
            and all(isinstance(name, str) for name in ci_labels)
        ):
            raise ValueError("ci_labels must be two names, of the lower end and of the upper one.")
        return cls(
            times,
            label,
            None if alpha is None else fraction("alpha", alpha),
            None if ci_labels is None else (ci_labels[0], ci_labels[1]),
        )


def times_argument(times: ArrayLike) -> FloatArray:
    """Return times to evaluate a curve at, one-dimensional."""
    refuse_masked(times, "times")
    return checked_times(np.atleast_1d(np.asarray(times)), "times")


class CurveFrames(ABC):
    """Base of fitted curves that are looked at as tables.

    A subclass has ``survival_function_at_times`` and its like, ``survival_band``, and a parameter
    ``alpha``.
    """

    alpha: float
    _shown: Shown = Shown()
    _released: ReleasedCurve

    survival_function_at_times: Callable[..., pd.Series]
    cumulative_density_at_times: Callable[..., pd.Series]
    cumulative_hazard_at_times: Callable[..., pd.Series]
    survival_band: Callable[..., pd.DataFrame]
    percentile_after: Callable[..., FloatArray]

    @property
    @abstractmethod
    def _curve_type(self) -> type[ReleasedCurve]:
        """What its releases say: an attribute of the class."""

    @property
    def _curve(self) -> ReleasedCurve:
        check_is_fitted(self, "release_")
        return self._released

    @property
    def timeline(self) -> FloatArray:
        """Times that the tables are of: public ones, never those of the records."""
        default, shown = self._curve.timeline, self._shown.timeline
        return default if shown is None else shown

    @property
    def label(self) -> str:
        """Name of the estimate in tables."""
        own = type(self).__name__.removeprefix("DP").removesuffix("Fitter")
        return self._shown.label or f"{self._curve_type.short_name or own}_estimate"

    @property
    def survival_function_(self) -> pd.DataFrame:
        """Probabilities to survive the times of ``timeline``."""
        return self._frame(self.survival_function_at_times)

    @property
    def cumulative_density_(self) -> pd.DataFrame:
        """Probabilities of the event up to the times of ``timeline``."""
        return self._frame(self.cumulative_density_at_times)

    @property
    def cumulative_hazard_(self) -> pd.DataFrame:
        """Cumulative hazards at the times of ``timeline``."""
        return self._frame(self.cumulative_hazard_at_times)

    @property
    def confidence_interval_survival_function_(self) -> pd.DataFrame:
        """Pointwise intervals of ``survival_function_``: for sampling and for privacy noise."""
        return self._ends(lambda band: band[["lower", "upper"]].to_numpy())

    @property
    def confidence_interval_cumulative_density_(self) -> pd.DataFrame:
        """Pointwise intervals of ``cumulative_density_``."""
        return self._ends(lambda band: 1.0 - band[["upper", "lower"]].to_numpy())

    @property
    def confidence_interval_cumulative_hazard_(self) -> pd.DataFrame:
        """Pointwise intervals of ``cumulative_hazard_``."""
        with np.errstate(divide="ignore"):
            return self._ends(lambda band: np.abs(np.log(band[["upper", "lower"]].to_numpy())))

    @property
    def confidence_interval_(self) -> pd.DataFrame:
        """Pointwise intervals of the curve that the estimator is named after."""
        found: pd.DataFrame = getattr(self, f"confidence_interval_{self._curve_type.main}_")
        return found

    @property
    def conditional_time_to_event_(self) -> pd.DataFrame:
        """Median time that is left to those who have survived the times of ``timeline``."""
        times = self.timeline
        left = self.percentile_after(0.5, times) - times
        name = f"{self.label} - Conditional median duration remaining to event"
        return self._table(left, [name])

    def subtract(self, other: Any) -> pd.DataFrame:
        """Return the difference of two curves, at the times of either's ``timeline``.

        Parameters
        ----------
        other : estimator
            Fitted, of this kind.

        Returns
        -------
        pandas.DataFrame
            Column ``diff``.
        """
        times, one, two = self._both(other)
        return self._table(one - two, ["diff"], times)

    def divide(self, other: Any) -> pd.DataFrame:
        """Return the ratio of two curves, at the times of either's ``timeline``.

        Parameters
        ----------
        other : estimator
            Fitted, of this kind.

        Returns
        -------
        pandas.DataFrame
            Column ``ratio``.
        """
        times, one, two = self._both(other)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._table(one / two, ["ratio"], times)

    def _show(self, shown: Shown) -> None:
        """Note what was asked for, if anything was."""
        self.__dict__.pop("_shown", None)
        if any(one is not None for one in (shown.timeline, shown.label, shown.alpha)) or (
            shown.ci_labels is not None
        ):
            self._shown = shown

    def _both(self, other: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        main = self._curve_type.main
        if not isinstance(other, CurveFrames) or other._curve_type.main != main:
            raise TypeError(f"other must be a fitted {type(self).__name__}.")
        times = np.union1d(self.timeline, other.timeline)
        one, two = (getattr(model, f"{main}_at_times")(times) for model in (self, other))
        return times, one.to_numpy(), two.to_numpy()

    @property
    def _level(self) -> float:
        alpha = self._shown.alpha
        return 1.0 - float(self.alpha if alpha is None else alpha)

    def _frame(self, curve: Callable[[FloatArray], pd.Series]) -> pd.DataFrame:
        times = self.timeline
        return self._table(curve(times).to_numpy(), [self.label], times)

    def _ends(self, ends: Callable[[pd.DataFrame], FloatArray]) -> pd.DataFrame:
        return self._named_ends(ends(self.survival_band(self.timeline, self._level)))

    def _named_ends(self, found: FloatArray) -> pd.DataFrame:
        level = f"{self._level:.12g}"  # 0.95, as 1 - 0.05 is
        names = (f"{self.label}_lower_{level}", f"{self.label}_upper_{level}")
        return self._table(found, list(self._shown.ci_labels or names))

    def _table(
        self, values: FloatArray, names: list[str], times: FloatArray | None = None
    ) -> pd.DataFrame:
        index = pd.Index(self.timeline if times is None else times, name="timeline")
        return pd.DataFrame(values, index=index, columns=names)
