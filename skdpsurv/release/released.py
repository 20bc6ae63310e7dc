"""What an estimator keeps of a fit, which is its release, and how it is rebuilt from one."""

from __future__ import annotations

import functools
import inspect
from collections import ChainMap
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from skdpsurv.data.public_steps import describe, input_names, known_names
from skdpsurv.dp import PrivacyGuarantee, suppressed_float_errors
from skdpsurv.dp.checks import Check, check_each
from skdpsurv.dp.input_errors import with_suggestions
from skdpsurv.dp.types import FloatArray
from skdpsurv.release.release import Release


def parameters_of(kind: Any) -> tuple[str, ...]:
    """Return the names of the parameters of a class's constructor."""
    return _parameters(kind)


@functools.cache
def _parameters(kind: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(kind).parameters)


class Released(BaseEstimator):
    """Base of estimators whose fitted attributes follow from a release and from nothing else."""

    guarantee_: PrivacyGuarantee
    release_: Release

    #: What releases may state that the constructor does not take.
    _beyond_constructor: ClassVar[tuple[str, ...]] = ()
    #: What predictions need beside a release, in words.
    _beyond_release: ClassVar[str] = ""
    #: Names of the estimators whose releases this one reads.
    _reads: ClassVar[tuple[str, ...]]
    #: A rule for each parameter of the constructor; those of the base classes hold, too.
    _rules: ClassVar[dict[str, Check]]

    def __init_subclass__(
        cls, *, released: bool = True, reads: tuple[str, ...] = (), **options: Any
    ) -> None:
        """Make a class of estimators.

        Parameters
        ----------
        released : bool, default=True
            Whether releases name it: not a base, nor a search, whose model they name.
        reads : tuple of str
            Names of other estimators whose releases it reads, as they hold the same.
        **options : object
        """
        super().__init_subclass__(**options)
        cls._reads = (cls.__name__, *reads)
        for name in vars(cls).keys() & {"__init__", "fit"}:
            setattr(cls, name, with_suggestions(vars(cls)[name]))
        if released and cls.__init__ is not object.__init__:
            Release.kinds.setdefault(cls.__name__, cls)

    def _check_parameters(self) -> None:
        """Refuse constructor parameters that break a rule; they are public."""
        kind = type(self)
        rules = ChainMap(*(vars(base).get("_rules", {}) for base in kind.__mro__))
        names = parameters_of(kind)
        for name in names:
            if name not in rules:
                raise KeyError(f"{kind.__name__} must have a rule for {name}, in its _rules.")
        check_each({name: rules[name] for name in names}, self)
        self._check_together()

    def _check_together(self) -> None:
        """Refuse parameters that keep their own rules, but not one between them."""

    def _described(self) -> tuple[Sequence[str] | None, dict[str, Any] | None]:
        """Return the names of the columns of X, and what they hold, as far as that is known."""
        names, columns = getattr(self, "feature_names_in_", None), getattr(self, "columns", None)
        if columns is None:
            return names, None
        known = input_names(columns, self.n_features_in_, None if names is None else list(names))
        return known, describe(columns, known_names(known, self.n_features_in_))

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
        if not isinstance(release, Release):
            raise TypeError(
                f"release must be a Release, got {type(release).__name__}: Release.load(path) "
                "reads one from a file."
            )
        if release.estimator not in cls._reads:
            raise ValueError(
                f"release must come from a {cls.__name__}, got one from {release.estimator}."
            )
        names, beyond = parameters_of(cls), cls._beyond_constructor
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
        spent = {name: getattr(release.made_by, name) for name in ("epsilon", "delta")}
        spent = {name: value for name, value in spent.items() if name in names}
        estimator = cls(**spent, **stated, **parameters)
        estimator._check_parameters()
        estimator.n_features_in_ = release.n_features_in
        if release.feature_names_in is not None:
            estimator.feature_names_in_ = np.asarray(release.feature_names_in, dtype=object)
        estimator._set_release(release)
        return estimator


def released_array(release: Release, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Return a copy of released numbers.

    Raises
    ------
    ValueError
        If they are missing or of another shape.
    """
    array = np.array(release.values.get(name, np.nan))
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"values of the release must hold {name!r} of shape {shape}.")
    return array


def check_parameters(release: Release, *names: str) -> None:
    """Refuse a release without the parameters that its estimator needs.

    Raises
    ------
    ValueError
        Naming what is missing.
    """
    if missing := [name for name in names if name not in release.parameters]:
        raise ValueError(f"parameters of the release must hold {', '.join(missing)}.")
