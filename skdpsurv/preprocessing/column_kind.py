"""What kinds of public columns share: how they refuse, scale, and speak of their features.

A kind is known without data. It reads cells, which are private, into an array, and turns the array
into features, each row by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from skdpsurv.preprocessing.column_cells import quietly
from skdpsurv.preprocessing.feature import Expression, Feature
from skdpsurv.privacy import RefusedValueError
from skdpsurv.types import FloatArray

__all__ = ["Bounded", "ColumnKind", "Measured"]

_LARGEST = sys.float_info.max


@dataclass(frozen=True)
class ColumnKind:
    """What all kinds share.

    Parameters
    ----------
    column : str
    missing : {"error", "midpoint", "category"}
    typical : float, str, int, bool or None, default=None
        What its description calls typical, of a cell: a date as ISO 8601 has it.
    """

    column: str
    missing: str
    typical: Any = field(default=None, kw_only=True)

    #: What cells must be, for messages, and what is often mistaken for it.
    must_hold: ClassVar[str]
    hint: ClassVar[str] = ""
    #: What may be done with missing cells, for messages.
    remedies: ClassVar[str] = (
        "missing='midpoint' of that column is the middle of the public values, missing='category' "
        "also makes a feature of it"
    )

    @property
    def raw(self) -> Expression:
        """The column as it is."""
        return Expression("column", numbers=(self.column,))

    def read(self, cells: Any) -> Any:
        """Read cells into an array.

        Raises
        ------
        ValueError
            Naming the column and the rule, and nothing of the cells.
        """
        raise NotImplementedError

    def encode(self, values: Any) -> list[Any]:
        """Return what was read as features, an array for each."""
        raise NotImplementedError

    def features(self) -> list[Feature]:
        """Return what is made of the column."""
        raise NotImplementedError

    def described(self) -> dict[str, Any]:
        """Return the specification, as JSON has it."""
        raise NotImplementedError

    @property
    def specimen(self) -> Any:
        """A cell that the column may hold: made up, and so of nobody."""
        raise NotImplementedError

    @property
    def example(self) -> Any:
        """What is typical; else the middle of bounds, the first label, or False."""
        return self.middle if self.typical is None else self.typical

    @property
    def middle(self) -> Any:
        """The middle of bounds, the first label, or False."""
        return self.specimen

    def _said(self) -> dict[str, Any]:
        """Return what is typical, as a specification has it."""
        return {} if self.typical is None else {"typical": self.typical}

    def words(self) -> str:
        """Return what the column is, in plain words."""
        raise NotImplementedError

    def shown(self) -> tuple[str, str]:
        """Return what the column is and its unit, for whoever looks at a notebook."""
        raise NotImplementedError

    def beyond(self, values: Any) -> bool:
        """Return whether anything that was read lies beyond the bounds."""
        return False

    def _read(self, reader: Callable[..., Any], *args: Any) -> Any:
        values = quietly(reader, *args)
        if values is None:
            raise self._refusal(f"must hold {self.must_hold} alone in", self._hint())
        return values

    def _hint(self) -> str:
        return self.hint

    def _refuse_missing(self, missing: Any) -> None:
        if self.missing == "error" and missing.any():
            raise self._refusal("must not contain NaN or None, found in", self.remedies)

    def _refusal(self, rule: str, remedy: str = "") -> ValueError:
        return RefusedValueError(f"X {rule} column {self.column!r}{remedy and ': '}{remedy}.")

    def _filled(self, expression: Expression, midpoint: float) -> Expression:
        if self.missing == "error":
            return expression
        return Expression("fill", (expression,), (midpoint,))

    def _missing_feature(self) -> list[Feature]:
        if self.missing != "category":
            return []
        return [self._indicator(Expression("missing", (self.raw,)), "missing")]

    def _indicator(self, expression: Expression, level: Any) -> Feature:
        name = f"{self.column}_{level}"
        return Feature(name, expression, 0.0, 1.0, self.column, level, per_unit=1.0)


@dataclass(frozen=True)
class Measured(ColumnKind):
    """What has a number in each row."""

    midpoint: ClassVar[float] = 0.0

    def encode(self, values: FloatArray) -> list[Any]:
        """Return the number, and whether it is missing if that is a feature."""
        missing = np.isnan(values)
        measured = self._scaled(values)
        measured[missing] = self.midpoint
        return [measured, missing] if self.missing == "category" else [measured]

    def _scaled(self, values: FloatArray) -> FloatArray:
        raise NotImplementedError


@dataclass(frozen=True)
class Bounded(Measured):
    """What has public bounds, and is scaled by them."""

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds."""
        raise NotImplementedError

    def _centre_and_half_width(self) -> tuple[float, float]:
        low, high = self.ends
        # As PublicBoundsScaler has it: halve first, since high - low may overflow.
        return low / 2 + high / 2, high / 2 - low / 2

    def _clip(self) -> tuple[float, float]:
        centre, half_width = self._centre_and_half_width()
        # One rounding beyond the largest float is infinity, which JSON has not.
        return max(centre - half_width, -_LARGEST), min(centre + half_width, _LARGEST)

    def _scaled(self, values: FloatArray) -> FloatArray:
        centre, half_width = self._centre_and_half_width()
        # First clip, then scale: differences of finite floats may overflow.
        values = np.clip(values, *self._clip())
        return np.clip((values - centre) / half_width, -1.0, 1.0)

    def _feature(self, measured: Expression, unit: str) -> Feature:
        centre, half_width = self._centre_and_half_width()
        clipped = Expression("clip", (measured,), self._clip())
        scaled = Expression("scale", (clipped,), (centre, half_width))
        return Feature(
            self.column,
            self._filled(scaled, self.midpoint),
            -1.0,
            1.0,
            self.column,
            per_unit=1.0 / half_width,
            unit=unit,
        )

    def beyond(self, values: FloatArray) -> bool:
        """Return whether a number lies beyond the bounds."""
        low, high = self.ends
        return bool(np.any((values < low) | (values > high)))
