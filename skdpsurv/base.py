"""What every private estimator does around its mechanism, in the order that privacy needs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from skdpsurv.privacy import (
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    silent_arithmetic,
)
from skdpsurv.release import Release

__all__ = ["PrivateEstimator"]


class PrivateEstimator(BaseEstimator):
    """Base of the private estimators: the ledger, the release, and their order in ``fit``.

    A subclass has the parameters ``epsilon``, ``random_state`` and ``accountant``. Its ``fit``

    1. checks its parameters, which are public;
    2. asks the ledger whether the budget would do (:meth:`_check_budget`);
    3. validates the data, refusing what has no place in the public domain;
    4. charges the ledger in one atomic step, and runs the mechanism (:meth:`_charged`);
    5. keeps nothing but its release (:meth:`_publish`).

    A refused input costs nothing, an exhausted budget stops the fit before any record is read,
    and whatever fails after the charge stays charged.
    """

    accountant: PrivacyAccountant | None
    epsilon: float
    random_state: int | None

    guarantee_: PrivacyGuarantee
    release_: Release

    def _status(self) -> str:
        """Return the status of a fit whose mechanism is proved."""
        if math.isinf(self.epsilon):
            return "none"
        return "proved" if self.random_state is None else "seeded"

    def _leaks(self) -> list[str]:
        """Return why this fit is not private although its epsilon is finite, if it is not."""
        if math.isinf(self.epsilon) or self.random_state is None:
            return []
        return [
            "random_state is an integer: the noise can be drawn again and subtracted, so this fit "
            "is reproducible but not private. Use random_state=None for a release."
        ]

    def _check_accountant(self) -> None:
        if self.accountant is not None and not isinstance(self.accountant, PrivacyAccountant):
            raise TypeError(
                "accountant must be None or a PrivacyAccountant, got "
                f"{type(self.accountant).__name__}."
            )

    def _check_budget(self) -> None:
        """Raise BudgetExceededError before any record is touched."""
        if self.accountant is not None:
            self.accountant.check(PrivacyGuarantee(self.epsilon, status=self._status()))

    @contextmanager
    def _charged(self, guarantee: PrivacyGuarantee) -> Iterator[None]:
        """Enter the fit in the ledger, and keep what runs inside from failing by the data.

        Warns first if the guarantee is void.
        """
        for reason in self._leaks():
            warnings.warn(reason, PrivacyLeakWarning, stacklevel=4)
        if self.accountant is not None:
            self.accountant.charge(guarantee, estimator=type(self).__name__)
        with silent_arithmetic():
            yield

    def _publish(
        self,
        guarantee: PrivacyGuarantee,
        parameters: dict[str, Any],
        values: dict[str, Any],
    ) -> Self:
        """Keep the release, and set the fitted attributes from it and from nothing else."""
        names = getattr(self, "feature_names_in_", None)
        release = Release(
            estimator=type(self).__name__,
            guarantee=guarantee,
            parameters=parameters,
            values=values,
            n_features_in=self.n_features_in_,
            feature_names_in=None if names is None else tuple(names),
        )
        self.release_ = release
        self.guarantee_ = guarantee
        self._set_fitted(release)
        return self

    def _check_parameters(self) -> Any:
        """Refuse constructor parameters that break a rule; they are public."""
        raise NotImplementedError

    def _set_fitted(self, release: Release) -> None:
        """Set the fitted attributes that prediction needs from a release."""
        raise NotImplementedError

    @classmethod
    def from_release(cls, release: Release) -> Self:
        """Build a fitted estimator from a release, without data.

        Parameters
        ----------
        release : Release
            As published by a fitted estimator of this class, in ``release_``.

        Returns
        -------
        estimator
            Predicts as the one that made the release.

        Raises
        ------
        ValueError, TypeError
            If the release was made by an estimator of another class, or its parameters break a
            rule.
        """
        return cls._rebuilt(release)

    @classmethod
    def _rebuilt(cls, release: Release, **parameters: Any) -> Self:
        """Build from a release and from constructor parameters that no release holds."""
        if release.estimator != cls.__name__:
            raise ValueError(
                f"release must come from a {cls.__name__}, got one from {release.estimator}."
            )
        allowed = set(cls._get_param_names()) - {"epsilon", "random_state", "accountant"}
        if not allowed.issuperset(release.parameters):
            raise ValueError(f"parameters of the release must be among {sorted(allowed)}.")
        # The parameters are those of the fit; what the whole has cost is in ``guarantee_``.
        estimator = cls(epsilon=release.made_by.epsilon, **release.parameters, **parameters)
        estimator._check_parameters()
        estimator.n_features_in_ = release.n_features_in
        if release.feature_names_in is not None:
            estimator.feature_names_in_ = np.asarray(release.feature_names_in, dtype=object)
        estimator.release_ = release
        estimator.guarantee_ = release.guarantee
        estimator._set_fitted(release)
        return estimator
