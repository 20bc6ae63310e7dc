"""Coefficients of competing causes: summaries, standard errors and tests of each of them.

Each cause has standard errors of its own (docs/proofs/competing_risks); covariances between causes
are not estimated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import Inference, Summarised
from skdpsurv.inference.uncertainty import CoefficientFigure, table
from skdpsurv.priors import Evidence, Prior, Terms
from skdpsurv.release import Release
from skdpsurv.survival.curves.event_counts import Causes, is_one_of
from skdpsurv.survival.hazards.causes import log_slopes, maximum_by_cause
from skdpsurv.survival.hazards.estimand import PRIVATE, without_noise
from skdpsurv.survival.hazards.late_entry import WithEntries
from skdpsurv.survival.hazards.model import published_basis


class CauseCoefficients(Summarised):
    """Coefficients of one cause of a fitted model, which ``of_cause`` returns.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    inference_ : Inference or None
        Unshrunk estimates and their covariance; None without ``inference_share``.
    max_cumulative_hazard_ : float or None
        The cap of this cause.
    """

    def __init__(self, model: Any, number: int) -> None:
        self.release_, self.guarantee_ = model.release_, model.guarantee_
        caps, found = model.max_cumulative_hazard_, model.inference_
        self.coef_ = model.coef_[number]
        self.inference_ = None if found is None else found[model.causes_[number]]
        self.max_cumulative_hazard_ = None if caps is None else float(caps[number])

    def _check_fitted(self) -> None:
        """Do nothing: there are no coefficients of a model that is not fitted."""


class CauseModel(CoefficientFigure, WithEntries):
    """Base of hazard models of several causes: their coefficients, a cause at a time."""

    causes_: list[Any]
    inference_: dict[Any, Inference] | None
    release_: Release
    max_cumulative_hazard_: FloatArray | None

    def _cause(self, cause: Any) -> int:
        """Return the index of a cause; None: the first one."""
        check_is_fitted(self, "release_")
        return Causes.of(self.release_.parameters).index(cause)

    _is_evidence_of = ("causes",)

    def _read_prior(self, model: str, n_features: int, outputs: Any = None) -> Prior | None:
        return super()._read_prior(model, n_features, self._stated_causes().labels)

    @classmethod
    def _evidence(cls, release: Release, model: str, outputs: Any) -> tuple[Evidence | None, Terms]:
        """Return a release's evidence about causes, in the order of ``outputs``, and its features.

        It is on the scale of log hazards, by their derivatives along the baselines.
        """
        built: Any = cls.from_release(release)
        known, theirs = Causes.of(release.parameters), built.causes_
        if len(theirs) != len(outputs) or not all(is_one_of(one, theirs) for one in outputs):
            raise ValueError(
                f"prior must be of the same causes, {outputs!r:.200}, got {theirs!r:.200}."
            )
        terms = Terms.of(release.features, release.transformer())
        own = Evidence.of(release, built.coef_.shape)
        if own is None:
            return None, terms
        basis = published_basis(built.unique_times_.size, built.baseline_coef_.shape[1])
        own = own.scaled(log_slopes(built.baseline_coef_ @ basis.T))
        order = [known.index(one) for one in outputs]
        return Evidence(own.coef[order], own.error[order]), terms

    def of_cause(self, cause: Any = None) -> CauseCoefficients:
        """Return the coefficients of a cause, with its intervals and tests.

        Parameters
        ----------
        cause : label or None
            One of ``causes``. None: the first one.

        Returns
        -------
        CauseCoefficients
            With ``summary``, ``confidence_interval``, ``effect``, ``test``, ``test_terms``,
            ``print_summary`` and ``plot``, as a model of one kind of event has them.
        """
        return CauseCoefficients(self, self._cause(cause))

    @property
    def summary(self) -> pd.DataFrame:
        """Coefficients of each cause, indexed by ``cause`` and ``covariate``.

        Columns, units and what is estimated are as for :class:`DPDiscreteTimeSurvival`, with the
        cap of each cause. Standard errors are those of one cause at a time: estimates of several
        causes are not independent, and their covariances are not in a release. Without
        ``inference_share``, ``coef`` is ``coef_``, and there are none.
        """
        check_is_fitted(self, "release_")
        return self._by_cause({cause: self.of_cause(cause).summary for cause in self.causes_})

    def _by_cause(self, tables: dict[Any, Any]) -> Any:
        return pd.concat(tables, names=["cause"])

    def estimand(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        person: ArrayLike | None = None,
        entry: ArrayLike | None = None,
    ) -> pd.Series[float]:
        """Return the coefficients that ``summary`` is about, without noise: private.

        **Do not publish the result**, as for :class:`DPDiscreteTimeSurvival`: it depends on each
        record. No ledger is charged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y, person, entry
            As for ``fit``.

        Returns
        -------
        pandas.Series
            Named "private: not to be published"; indexed and per unit as ``summary``.

        Raises
        ------
        ValueError
            If entries were given to the fit and are not here, or to here alone; or if the release
            does not say how rows were read, such as that of a fit with ``epsilon=inf``.
        """

        def minimum(model: Any, *records: Any) -> tuple[FloatArray, FloatArray]:
            return maximum_by_cause(model, model.max_cumulative_hazard, *records)

        coef, _ = without_noise(self, minimum, X, y, person, entry)
        unknown, features = np.full(coef.shape[1], np.nan), self.release_.features
        each = zip(self.causes_, coef, strict=True)
        tables = {cause: table(own, unknown, features)["coef"] for cause, own in each}
        return self._by_cause(tables).rename(PRIVATE)

    def print_summary(self, decimals: int = 2) -> None:
        """Print coefficients, intervals and tests of each cause, and the privacy guarantee.

        Parameters
        ----------
        decimals : int, default=2
        """
        check_is_fitted(self, "release_")
        for cause in self.causes_:
            print(f"Cause: {cause}")
            self.of_cause(cause).print_summary(decimals)

    def _reading(self) -> list[str]:
        return self.of_cause()._reading()
