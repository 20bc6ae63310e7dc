"""Coefficients that somebody has published, as a release that a fit can start from."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from skdpsurv.preprocessing.feature import Expression, Feature
from skdpsurv.priors.evidence import Evidence
from skdpsurv.priors.terms import Terms
from skdpsurv.release import Release, check_parameters
from skdpsurv.release.published_table import MODELS


class PublishedCoefficients:
    """What ``Release.from_coefficients`` returns a release of: a table, which predicts nothing."""

    _beyond_release: ClassVar[str] = "records of your own, for which it is the prior,"
    _is_evidence_of: ClassVar[tuple[str, ...]] = MODELS

    @classmethod
    def from_release(cls, release: Release, **parameters: Any) -> NoReturn:
        """Refuse: a table of coefficients has no baseline."""
        raise ValueError(
            "a release of published coefficients is no model: pass it as prior= of an estimator."
        )

    @classmethod
    def _evidence(cls, release: Release, model: str, outputs: Any) -> tuple[Evidence, Terms]:
        check_parameters(release, "model", "terms", "references")
        if release.parameters["model"] != model:
            raise ValueError(
                f"prior must hold log {'hazard' if model == 'hazard' else 'odds'} ratios, got "
                f"model={release.parameters['model']!r:.20}."
            )
        if outputs is not None and len(outputs) != 2:
            raise ValueError("prior must be of the same classes: published odds are of two.")
        features, references = _read(release)
        evidence = Evidence.of(release, (len(features),))
        if evidence is None:
            raise ValueError("values of the release must hold coefficients and their errors.")
        if outputs is not None:
            evidence = Evidence(evidence.coef[None], evidence.error[None])
        return evidence, Terms(features, references)


def _read(release: Release) -> tuple[list[Feature], dict[str, Any]]:
    """Return terms and references of a release, as far as they are such."""
    labels = str | int | bool | None
    try:
        terms = [(column, level) for column, level in release.parameters["terms"]]
        references = dict(release.parameters["references"])
        named = all(isinstance(column, str) for column, _ in [*terms, *references.items()])
        if named and all(isinstance(one, labels) for _, one in [*terms, *references.items()]):
            return [_feature(column, level) for column, level in terms], references
    except (TypeError, ValueError, AttributeError):
        pass
    raise ValueError("parameters of the release must hold terms, and references of categories.")


def _feature(column: str, level: Any) -> Feature:
    raw = Expression("column", numbers=(column,))
    if level is None:
        return Feature(column, raw, column=column, per_unit=1.0)
    indicated = Expression("is", (raw,), (level,))
    return Feature(f"{column}_{level}", indicated, 0.0, 1.0, column, level, per_unit=1.0)


Release.kinds.setdefault("PublishedCoefficients", PublishedCoefficients)
