r"""Joint Wald tests of released coefficients: post-processing of one release, at no cost.

With estimates :math:`\hat\theta` of the tested coefficients and their covariance :math:`\Sigma`, by
sampling and by noise, the statistic is

.. math:: \hat\theta' P \hat\theta, \qquad P = \Sigma^{-1}
   = \Lambda_{TT} - \Lambda_{TO} \Lambda_{OO}^{-1} \Lambda_{OT},

the Schur complement of the precision :math:`\Lambda` of all coefficients: the others, O, may have
any value. Coefficients that noise hides have no precision, so that P is 0 in their directions, and
they may have any value, too. The statistic is compared with a chi-squared distribution with the
rank of P as degrees of freedom. Directions depend on the covariance alone, never on estimates.

The law is approximate, and its level is shown by simulation (docs/proofs/inference,
docs/benchmarks/joint_tests).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from skdpsurv.data.feature import Expression, Feature
from skdpsurv.dp.references import WORDS
from skdpsurv.dp.types import BoolArray, FloatArray
from skdpsurv.inference.comparison import ComparisonResult
from skdpsurv.release import Release

#: Eigenvalues of a correlation matrix below this are 0 but for rounding.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class WaldTest(ComparisonResult):
    """Result of a joint test that coefficients are 0; NaN and no degrees of freedom without one.

    Parameters
    ----------
    test_name : str
    test_statistic : float
        Approximately chi-squared if all ``tested`` coefficients are 0.
    p_value : float
    degrees_of_freedom : int
        Rank of the covariance of the ``tested`` coefficients.
    tested : tuple of str
        Names of the coefficients that were tested.
    hidden : tuple of str
        Names of those that noise hides: not tested, and left free.
    """

    tested: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def print_summary(self, decimals: int = 2) -> None:
        """Print the test, which coefficients it is of, and which noise hides.

        Parameters
        ----------
        decimals : int, default=2
        """
        words = WORDS["tests"]
        if self.tested:
            super().print_summary(decimals)
            freedom, names = self.degrees_of_freedom, ", ".join(self.tested)
            print(words["tested"].format(freedom=freedom, names=names))
        else:
            print(f"{self.test_name}: {words['no_test']}")
        if self.hidden:
            print(words["hidden"].format(names=", ".join(self.hidden)))


def wald_test(
    estimate: FloatArray, covariance: FloatArray, known: BoolArray, names: Sequence[str]
) -> WaldTest:
    """Test that all coefficients are 0, given their covariance; unknown ones may have any value.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv.inference.wald import wald_test
    >>> found = wald_test(np.array([2.0, 0.0]), np.eye(2), np.array([True, False]), ["a", "b"])
    >>> found.test_statistic, round(found.p_value, 3), found.degrees_of_freedom, found.hidden
    (4.0, 0.046, 1, ('b',))
    """
    errors = np.sqrt(np.diag(covariance))
    seen = known & (errors > 0.0)
    hidden = tuple(name for name, is_seen in zip(names, seen, strict=True) if not is_seen)
    if not seen.any():
        return WaldTest("wald_test", math.nan, math.nan, 0, (), hidden)
    unit = errors[seen]
    values, vectors = np.linalg.eigh(covariance[np.ix_(seen, seen)] / np.outer(unit, unit))
    full = values > RANK_TOLERANCE
    z = (vectors[:, full].T @ (estimate[seen] / unit)) / np.sqrt(values[full])
    statistic, freedom = float(z @ z), int(full.sum())
    tested = tuple(name for name, is_seen in zip(names, seen, strict=True) if is_seen)
    p = float(special.chdtrc(freedom, statistic))
    return WaldTest("wald_test", statistic, p, freedom, tested, hidden)


def terms_of(features: Sequence[Feature]) -> dict[str, list[int]]:
    """Return the places of the features of each term.

    A term is a column, with its labels or its curve, or a product of columns, such as "arm:age".

    Examples
    --------
    >>> from skdpsurv.data.feature import product_of, raw_features
    >>> from skdpsurv.inference.wald import terms_of
    >>> arm, age = raw_features(["arm", "age"])
    >>> terms_of([arm, age, product_of("arm age", [arm, age])])
    {'arm': [0], 'age': [1], 'arm:age': [2]}
    """
    found: dict[str, list[int]] = {}
    for j, feature in enumerate(features):
        found.setdefault(_term_of(feature), []).append(j)
    return found


def _term_of(feature: Feature) -> str:
    """Return the column of a feature, or the columns of a product; its name if it is neither."""
    if feature.column is not None:
        return str(feature.column)
    kinds, columns = zip(*_leaves(feature.expression), strict=True)
    is_product = not {"norm", "share"} & set(kinds)
    columns = tuple(column for column in columns if column is not None)
    is_product &= len(set(columns)) == len(columns) > 0
    return ":".join(columns) if is_product else feature.name


def _leaves(expression: Expression) -> Iterator[tuple[str, str | None]]:
    """Yield the kinds of steps of a formula, and the columns of those that name one."""
    column = str(expression.numbers[0]) if expression.kind == "column" else None
    yield expression.kind, column
    for one in expression.of:
        yield from _leaves(one)


def places_of(names: str | Iterable[str] | None, features: Sequence[Feature]) -> list[int]:
    """Return the places of the features of terms, columns or features of these names; None: all."""
    if names is None:
        return list(range(len(features)))
    terms = terms_of(features)
    known = {frozenset(term.split(":")): places for term, places in terms.items()}
    own = {feature.name: [j] for j, feature in enumerate(features)}
    asked, found = [names] if isinstance(names, str) else list(names), set[int]()
    for name in asked:
        places = terms.get(name) or own.get(name) or known.get(frozenset(str(name).split(":")))
        if places is None:
            have = ", ".join(map(repr, [*terms, *(x for x in own if x not in terms)]))
            raise ValueError(f"columns must be names of terms or features, {have}; got {name!r}.")
        found.update(places)
    if not asked:
        raise ValueError("columns must name a column at least.")
    return sorted(found)


class JointTests:
    """Mixin of regressions whose releases may hold standard errors: Wald tests of their terms."""

    release_: Release

    @abstractmethod
    def _require_inference(self) -> Any:
        """Return estimates and their covariance, or refuse a model without standard errors."""

    def test(self, columns: str | Iterable[str] | None = None) -> WaldTest:
        """Test jointly that coefficients are 0, by a Wald test; all others may have any value.

        It is post-processing of this release, and spends no budget.

        Parameters
        ----------
        columns : str, iterable of str, or None
            Terms, columns or features. A column of labels has a coefficient for each label but the
            reference; a product of columns is a term such as ``"arm:age"``. None: all.

        Returns
        -------
        WaldTest
            With ``test_statistic``, ``p_value``, ``degrees_of_freedom``, and the names of the
            coefficients that were ``tested``, and of those ``hidden`` by noise. These are not
            tested, and may have any value. If all are hidden there is no test: statistic and
            p-value are NaN.

        Raises
        ------
        ValueError
            If there are no standard errors, or no such columns.

        Notes
        -----
        The statistic is compared with a chi-squared distribution. That is approximate, as are the
        intervals (docs/user_guide/inference). Which coefficients are tested follows from their
        covariance, not from the estimates.
        """
        self._require_inference()
        return self._tested(places_of(columns, self.release_.features))

    def test_terms(self) -> pd.DataFrame:
        """Return a joint Wald test of each term, as ``anova`` of R does; no budget is spent.

        Returns
        -------
        pandas.DataFrame
            Indexed by ``term``: a column with all its labels, or a product of columns. ``df`` is
            the number of coefficients that are tested, ``chi2`` the statistic, ``p`` its p-value,
            and ``hidden`` names coefficients that noise hides. p is NaN where it hides all.
        """
        self._require_inference()
        terms = terms_of(self.release_.features)
        tests = map(self._tested, terms.values())
        rows = [
            (one.degrees_of_freedom, one.test_statistic, one.p_value, ", ".join(one.hidden))
            for one in tests
        ]
        names = pd.Index(terms, name="term")
        return pd.DataFrame(rows, index=names, columns=["df", "chi2", "p", "hidden"])

    def _tested(self, places: Sequence[int]) -> WaldTest:
        """Return the test that the coefficients at these places are 0."""
        inference, names = self._require_inference(), [f.name for f in self.release_.features]
        at = np.array(places) + inference.known.size - len(names)
        covariance = inference.covariance[np.ix_(at, at)]
        known = inference.estimate[at], covariance, inference.known[at]
        return wald_test(*known, [names[j] for j in places])
