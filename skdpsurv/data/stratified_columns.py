"""Public columns of which one category has no features: it tells groups apart, as strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from skdpsurv.data.column_kinds import Category
from skdpsurv.data.columns import PublicColumns
from skdpsurv.data.dask import supports_lazy_input
from skdpsurv.data.feature import Feature
from skdpsurv.dp.checks import instance
from skdpsurv.dp.types import FloatArray


class StratifiedColumns(PublicColumns):
    """Public columns but for the indicators of one category, whose products stay.

    Parameters
    ----------
    columns, missing, drop, missing_values
        As for :class:`PublicColumns`.
    strata : str
        Name of a category with two labels or more that has no missing values.
    """

    def __init__(
        self,
        columns: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        missing: str = "error",
        drop: str | None = "first",
        missing_values: Sequence[str] = (),
        strata: str,
    ) -> None:
        super().__init__(columns, missing=missing, drop=drop, missing_values=missing_values)
        self.strata = strata

    @property
    def labels(self) -> tuple[Any, ...]:
        """Labels of the strata, in order."""
        return self._stratum().labels

    @supports_lazy_input(lambda self: len(self._features()))
    def transform(self, X: ArrayLike) -> FloatArray:
        """Encode the columns as features, as :class:`PublicColumns`, but for the strata."""
        kept = [not self._tells(one) for one in super()._features()]
        return np.ascontiguousarray(self._encoded(X)[:, kept])

    def _stratum(self) -> Category:
        instance(str, "text")("strata", self.strata)
        found = {kind.column: kind for kind in self._kinds()}.get(self.strata)
        rule = "strata must name a category of columns with two labels or more"
        if not isinstance(found, Category) or len(found.labels) < 2:
            raise ValueError(f"{rule}, got {self.strata!r:.60}.")
        if found.missing != "error":
            raise ValueError(f"{rule} that has missing='error', got {found.missing!r}.")
        return found

    def _tells(self, feature: Feature) -> bool:
        return feature.column == self.strata

    def _check(self) -> None:
        super()._check()
        self._stratum()

    def _features(self, inputs: Sequence[Feature] | None = None) -> list[Feature]:
        return [one for one in super()._features(inputs) if not self._tells(one)]

    def _described(self) -> dict[str, Any]:
        return super()._described() | {"strata": str.__str__(self.strata)}


def stratified(columns: Any, strata: str) -> StratifiedColumns:
    """Return columns with strata; refuse others than :class:`PublicColumns`."""
    if isinstance(columns, StratifiedColumns) and columns.strata == strata:
        return columns
    if isinstance(columns, StratifiedColumns):
        raise ValueError(f"strata must be {columns.strata!r:.60}, as columns have it.")
    if type(columns) is not PublicColumns:
        raise ValueError(
            "strata must be None without columns that are a PublicColumns, which state its labels."
        )
    # A copy, so that nobody changes the labels while a fit runs.
    found = StratifiedColumns(**clone(columns).get_params(deep=False), strata=strata)
    found._check()
    return found
