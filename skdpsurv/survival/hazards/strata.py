"""Hazard models with a baseline for each stratum: groups that a public column tells apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

from skdpsurv.data.histories import Histories
from skdpsurv.data.public_steps import raw_values
from skdpsurv.data.shape import Shape
from skdpsurv.data.stratified_columns import StratifiedColumns, stratified
from skdpsurv.dp.checks import Check, instance, optional
from skdpsurv.dp.references import phrase
from skdpsurv.dp.types import FloatArray, IndexArray
from skdpsurv.release import Release
from skdpsurv.survival.hazards.late_entry import LateEntryModel


class StratifiedModel(LateEntryModel):
    """Base of hazard models with the parameter ``strata``, the name of a category of ``columns``.

    While a fit runs, and in its release, ``columns`` make no features of that category: they are
    :class:`~skdpsurv.data.stratified_columns.StratifiedColumns`.
    """

    strata: str | None = None

    _rules: ClassVar[dict[str, Check]] = {"strata": optional(instance(str, "text"))}

    def _check_together(self) -> None:
        super()._check_together()
        if self.strata is not None:
            stratified(self.columns, self.strata)

    def _copied(self) -> Self:
        own = super()._copied()
        if isinstance(own.strata, str):  # else the checks of parameters, which come next, refuse
            own.columns = stratified(own.columns, own.strata)
        return own

    @property
    def _n_strata(self) -> int:
        """Number of strata; 1 without any."""
        return 1 if self.strata is None else len(stratified(self.columns, self.strata).labels)

    def _read_strata(self, X: Any, columns: Any) -> IndexArray:
        ((_, values),) = raw_values(
            columns, X, self.n_features_in_, self._raw_names(), (columns.strata,)
        )
        return values.astype(int)

    def _rows_and_target(self, block: tuple[Any, ...]) -> tuple[FloatArray, Histories]:
        rows, histories = super()._rows_and_target(block)
        if self.strata is None:
            return rows, histories
        return rows, replace(histories, stratum=self._read_strata(block[0], self.columns))

    def _refuse_with_strata(self) -> None:
        """Refuse settings that are not provided for with strata."""
        for name in ("recalibration_share", "inference_share"):
            if share := getattr(self, name):
                raise ValueError(
                    f"{name} must be 0 with strata, since its table supposes that people have one "
                    f"baseline; got {share}."
                )
        if self._sampling is not None:
            raise ValueError("strata must be None with method='psgld'.")

    def _stratum_of(self, X: Any) -> IndexArray | None:
        return None if self.strata is None else self._read_strata(X, self.columns_)

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        stated = {} if self.strata is None else {"strata": str.__str__(self.strata)}
        return super()._release_parameters(shape) | stated

    def _strata_in(self, release: Release) -> tuple[int, ...]:
        if "strata" not in release.parameters:
            return ()
        return (len(stratified(release.transformer(), release.parameters["strata"]).labels),)

    def _reading(self) -> list[str]:
        if self.strata is None:
            return super()._reading()
        labels = ", ".join(str(label) for _, label in self._strata_told())
        return [phrase("by_stratum", column=self.strata, labels=labels), *super()._reading()]

    def _strata_told(self) -> Iterator[tuple[str, Any]]:
        """Yield the column of the strata with each of their labels."""
        columns: StratifiedColumns = self.columns_
        for label in columns.labels:
            yield columns.strata, label
