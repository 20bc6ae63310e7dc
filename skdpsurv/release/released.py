"""The base of estimators that are built from a release and from nothing else."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from skdpsurv.data import public_steps
from skdpsurv.data.feature import known_names
from skdpsurv.dp.checks import Check, check_each, with_suggestions
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.input_errors import suppressed_float_errors
from skdpsurv.release.card import Card
from skdpsurv.release.release import Release


def parameters_of(kind: type) -> tuple[str, ...]:
    """Return the names of the parameters of a class's constructor, and of those it inherits."""
    kinds = [one for one in kind.__mro__ if issubclass(one, Released) and "__init__" in vars(one)]
    found = [one for own in kinds for one in inspect.signature(own).parameters.values()]
    named = [one.name for one in found if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    return tuple(dict.fromkeys(named))


class Released(BaseEstimator):
    """Base of estimators whose fitted attributes follow from a release and from nothing else."""

    guarantee_: PrivacyGuarantee
    release_: Release

    #: Facts about the class for commands, studies, audits and reports.
    _card: ClassVar[Card] = Card()
    #: Rules of the constructor's parameters, in addition to those of the base classes.
    _rules: ClassVar[dict[str, Check]]

    def __init_subclass__(cls, *, released: bool = True, **options: Any) -> None:
        """Make a class of estimators.

        Parameters
        ----------
        released : bool, default=True
            Whether releases name it: not a base, nor a search, whose model they name.
        **options : object
            Fields of its :class:`~skdpsurv.release.card.Card`, and options of other bases.
        """
        cls._card = cls._card.of_subclass(options)
        super().__init_subclass__(**options)
        for name in vars(cls).keys() & {"__init__", "fit"}:
            setattr(cls, name, with_suggestions(vars(cls)[name]))
        if released and cls.__init__ is not object.__init__:
            Release.kinds.setdefault(cls.__name__, cls)

    @classmethod
    def _ruled(cls) -> dict[str, Check]:
        """Return the rules of parameters; those that a subclass adds may have none."""
        rules = ChainMap(*(vars(base).get("_rules", {}) for base in cls.__mro__))
        return {name: rules[name] for name in parameters_of(cls) if name in rules}

    def _check_parameters(self) -> None:
        """Refuse constructor parameters that break a rule."""
        check_each(self._ruled(), self)
        self._check_together()

    def _check_together(self) -> None:
        """Refuse combinations of parameters."""

    def _described(self) -> tuple[Sequence[str] | None, dict[str, Any] | None]:
        """Return the names of the columns of X and their description, as far as known."""
        names, columns = getattr(self, "feature_names_in_", None), getattr(self, "columns", None)
        if columns is None:
            return names, None
        listed = None if names is None else list(names)
        known = public_steps.input_names(columns, self.n_features_in_, listed)
        return known, public_steps.describe(columns, known_names(known, self.n_features_in_))

    def _set_release(self, release: Release) -> None:
        """Set the fitted attributes from a release."""
        before = dict(self.__dict__)
        try:
            if hasattr(self, "columns"):
                self.columns_ = release.transformer()
            self.release_ = release
            self.guarantee_ = release.guarantee
            with suppressed_float_errors():
                self._set_fitted(release)
        except BaseException:  # an earlier fit stays whole
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _set_fitted(self, release: Release) -> None:
        """Set the fitted attributes that prediction needs from a release."""
        raise NotImplementedError

    @classmethod
    def from_release(cls, release: Release) -> Self:
        """Build a fitted estimator from a release, without data.

        Parameters
        ----------
        release : Release
            ``release_`` of a fitted estimator of this class.

        Returns
        -------
        estimator
            Predicts as the one that made the release.

        Raises
        ------
        ValueError, TypeError
            If the release is of another class, or its parameters break a rule.
        """
        return cls._rebuilt(release)

    @classmethod
    def _rebuilt(cls, release: Release, **parameters: Any) -> Self:
        """Build from a release and from constructor parameters that no release holds."""
        if not isinstance(release, Release):
            raise TypeError(
                f"release must be a Release, got {type(release).__name__}: Release.load(path) "
                "reads one from a file."
            )
        if release.estimator != cls.__name__:
            raise ValueError(
                f"release must come from a {cls.__name__}, got one from {release.estimator}."
            )
        names, beyond = cls._ruled(), cls._card.beyond_constructor
        if "columns" in names:
            parameters["columns"] = release.transformer()
        elif release.columns is not None:
            raise ValueError(f"columns of the release must be null: {cls.__name__} has none.")
        unstated = {"epsilon", "delta", "random_state", "accountant", *parameters}
        allowed = {*names} - unstated | {*beyond}
        if not allowed.issuperset(release.parameters):
            raise ValueError(f"parameters of the release must be among {sorted(allowed)}.")
        stated = {name: one for name, one in release.parameters.items() if name not in beyond}
        # The parameters are those of the fit; what the whole has cost is in ``guarantee_``.
        spent = [name for name in ("epsilon", "delta") if name in names]
        found = {name: getattr(release.made_by, name) for name in spent} | stated | parameters
        taken = found.keys() & inspect.signature(cls).parameters
        estimator = cls(**{name: found[name] for name in taken})
        for name, value in found.items():  # which the constructor of a subclass may lack
            setattr(estimator, name, value)
        estimator._check_parameters()
        estimator.n_features_in_ = release.n_features_in
        if release.feature_names_in is not None:
            estimator.feature_names_in_ = np.asarray(release.feature_names_in, dtype=object)
        estimator._set_release(release)
        return estimator
