r"""Joint Wald tests of released coefficients: post-processing of one release, at no cost.

With estimates :math:`\hat\theta` of the tested coefficients and their covariance :math:`\Sigma`, by
sampling and by noise, the statistic is

.. math:: \hat\theta' P \hat\theta, \qquad P = C' (C \Sigma C')^{-1} C,

where the rows of C span what is not in directions that noise hides. Without such directions P is
:math:`\Sigma^{-1}`, the Schur complement of the precision of all coefficients: the others may have
any value. In hidden directions P is 0: there, too, coefficients may have any value. The statistic
is compared with a chi-squared distribution with the rank of P as degrees of freedom. Directions
depend on moments and covariances, never on estimates.

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
from scipy import linalg, special

from skdpsurv.data.feature import Expression, Feature
from skdpsurv.dp.references import WORDS
from skdpsurv.dp.types import BoolArray, FloatArray
from skdpsurv.inference.comparison import ComparisonResult
from skdpsurv.release import Release, released_array

#: A coefficient, or a direction, with a larger part in what noise hides is unknown.
LARGEST_PART = 0.2
#: Eigenvalues of a correlation matrix below this are 0 but for rounding.
RANK_TOLERANCE = 1e-9
#: Estimates count as so many standard errors at most, so that statistics are finite.
LARGEST_Z = 1e150
#: Largest ratio of scales of rows.
LARGEST_RATIO = 1e100


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
        Rank of the covariance of what is ``tested``.
    tested : tuple of str
        Names of the coefficients that are tested. Where noise hides some, differences of these may
        still be known, such as "arm_b - arm_c".
    hidden : tuple of str
        Names of coefficients that noise hides: but for what is tested, they may have any value.
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
    estimate: FloatArray,
    covariance: FloatArray,
    known: BoolArray,
    names: Sequence[str],
    hidden: FloatArray | None = None,
    scale: FloatArray | float = 1.0,
) -> WaldTest:
    """Test that coefficients are 0, as far as noise does not hide them.

    Parameters
    ----------
    estimate : ndarray of shape (k,)
    covariance : ndarray of shape (k, k)
    known : ndarray of bool of shape (k,)
        False for coefficients that noise hides.
    names : sequence of str
    hidden : ndarray of shape (k, k), optional
        The block of the projection on directions that noise hides, of coefficients times ``scale``.
        None: the directions are the coefficients that are not known.
    scale : float or ndarray of shape (k,), default=1.0

    Returns
    -------
    WaldTest

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv.inference.wald import wald_test
    >>> found = wald_test(np.array([2.0, 0.0]), np.eye(2), np.array([True, False]), ["a", "b"])
    >>> found.test_statistic, round(found.p_value, 3), found.degrees_of_freedom, found.hidden
    (4.0, 0.046, 1, ('b',))
    """
    # In units that are powers of 2: whatever a file holds, sums are finite, and no bit changes.
    size = _power_of_two(np.abs(estimate))
    root = _power_of_two(np.sqrt(np.abs(np.diag(covariance))))
    estimate, covariance = estimate / size, covariance / root**2
    directions = known_directions(known, hidden, np.broadcast_to(scale, known.shape))
    variance = directions @ covariance @ directions.T
    directions = directions[np.diag(variance) > 0.0]
    lost = tuple(name for name, is_known in zip(names, known, strict=True) if not is_known)
    if not len(directions):
        return WaldTest("wald_test", math.nan, math.nan, 0, (), lost)
    variance = directions @ covariance @ directions.T
    unit = np.sqrt(np.diag(variance))
    values, vectors = np.linalg.eigh(variance / np.outer(unit, unit))
    full = values > RANK_TOLERANCE
    z = (vectors[:, full].T @ (directions @ estimate / unit)) / np.sqrt(values[full])
    with np.errstate(over="ignore"):
        z = np.clip(z * size / root, -LARGEST_Z, LARGEST_Z)
    statistic, freedom = float(z @ z), int(full.sum())
    p = float(special.chdtrc(freedom, statistic))
    tested = tuple(_named(row, names) for row in directions)
    return WaldTest("wald_test", statistic, p, freedom, tested, lost)


def _power_of_two(values: FloatArray) -> float:
    """Return the largest power of 2 that is at most the largest value; 1 if that is 0."""
    largest = float(values.max(initial=0.0))
    return math.ldexp(0.5, math.frexp(largest)[1]) if largest else 1.0


def known_directions(known: BoolArray, hidden: FloatArray | None, scale: FloatArray) -> FloatArray:
    """Return combinations of coefficients, in rows, that noise does not hide.

    These are the known coefficients, and combinations of others without a part in what is hidden,
    each with one coefficient that no other has, and the factor 1 there.
    """
    unit, lost = np.eye(known.size), np.flatnonzero(~known)
    if hidden is None or not lost.size:
        return unit[known]
    block = hidden[np.ix_(lost, lost)]
    values, vectors = np.linalg.eigh(block)
    # Too large an error hides a coefficient that is in no hidden direction.
    alone = np.eye(lost.size)[np.diag(block) <= LARGEST_PART**2]
    seen = linalg.null_space(np.concatenate([vectors[:, values > LARGEST_PART**2].T, alone])).T
    if not len(seen):
        return unit[known]
    _, _, order = linalg.qr(seen, mode="economic", pivoting=True)
    own = np.sort(order[: len(seen)])
    rows = np.linalg.solve(seen[:, own], seen)
    rows[np.abs(rows) < RANK_TOLERANCE], rows[:, own] = 0.0, np.eye(len(own))
    rows *= scale[lost] / scale[lost[own], None]
    return np.concatenate([unit[known], rows @ unit[lost]])


def _named(row: FloatArray, names: Sequence[str]) -> str:
    """Return a combination in words, the coefficient with the factor 1 first."""
    first = int(np.argmax(row == 1.0))
    words = names[first]
    for factor, name in zip(np.delete(row, first), np.delete(names, first), strict=True):
        if size := f"{abs(factor):.2g}" if factor else "":
            sign, size = "-" if factor < 0 else "+", "" if size == "1" else f"{size} "
            words += f" {sign} {size}{name}"
    return words


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
        parts = str(feature.column).split(":")
        return parts[0] if len(parts) == 1 else f"`{feature.column}`"  # no product
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
    known = {tuple(sorted(term.split(":"))): places for term, places in terms.items()}
    own = {feature.name: [j] for j, feature in enumerate(features)}
    asked, found = [names] if isinstance(names, str) else list(names), set[int]()
    for name in asked:
        places = terms.get(name) or own.get(name) or known.get(tuple(sorted(str(name).split(":"))))
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
            With ``test_statistic``, ``p_value``, ``degrees_of_freedom``, the names of the
            coefficients that are ``tested``, and of those ``hidden`` by noise. These may have any
            value, but differences of them may be known and tested. If nothing is known there is no
            test: statistic and p-value are NaN.

        Raises
        ------
        ValueError
            If there are no standard errors, or no such columns.

        Notes
        -----
        The statistic is compared with a chi-squared distribution. That is approximate, as are the
        intervals (docs/user_guide/inference). What is tested follows from moments and covariances,
        not from the estimates.
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
        return tests_table(tests, pd.Index(terms, name="term"))

    def _tested(self, places: Sequence[int]) -> WaldTest:
        """Return the test that the coefficients at these places are 0."""
        inference, names = self._require_inference(), [f.name for f in self.release_.features]
        at = np.array(places) + inference.known.size - len(names)
        covariance = inference.covariance[np.ix_(at, at)]
        known = inference.estimate[at], covariance, inference.known[at]
        hidden, scale = inference.hidden, self._row_scale()[places]
        block = None if hidden is None else hidden[np.ix_(places, places)]
        return wald_test(*known, [names[j] for j in places], block, scale)

    def _row_scale(self) -> FloatArray:
        """Return the scales of the columns of the fit's rows; 1 where the release has none."""
        scale = np.ones(len(self.release_.features))
        if "row_scale" in self.release_.values:
            scale = released_array(self.release_, "row_scale", scale.shape)
            least = scale.max(initial=0.0) / LARGEST_RATIO
            if not ((scale > 0.0) & (scale >= least)).all():
                raise ValueError("values of the release must hold positive row_scale.")
        return scale


def tests_table(tests: Iterable[WaldTest], names: pd.Index) -> pd.DataFrame:
    """Return Wald tests in rows."""
    rows = [
        (one.degrees_of_freedom, one.test_statistic, one.p_value, ", ".join(one.hidden))
        for one in tests
    ]
    return pd.DataFrame(rows, index=names, columns=["df", "chi2", "p", "hidden"])
