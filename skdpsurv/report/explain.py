"""A release in plain words, and as a formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skdpsurv.preprocessing import PublicColumns
from skdpsurv.preprocessing.column_kinds import ColumnKind, Number
from skdpsurv.preprocessing.public_steps import known_names
from skdpsurv.preprocessing.step_description import DROP, made_names, rebuild
from skdpsurv.release.script import formula_of
from skdpsurv.report.text import TEMPLATES, how_many, listed

MISSING = {
    "error": "a missing one is refused",
    "midpoint": "a missing one counts as the middle",
    "category": "a missing one is a category of its own",
}


def explain(release: Any) -> str:
    """Say in plain words what was released, of what columns, and what is promised.

    Parameters
    ----------
    release : Release

    Returns
    -------
    str
    """
    return TEMPLATES.get_template("explain.txt.jinja").render(
        release=release, described=described(release), many=how_many(release.made_by, "")
    )


def formula(release: Any) -> str:
    """Return the model as a formula of raw columns, for whoever has not got this package.

    Parameters
    ----------
    release : Release

    Returns
    -------
    str
        Numbers have all their digits.

    Raises
    ------
    ValueError
        If the model has no formula.

    Examples
    --------
    >>> from skdpsurv import DPKaplanMeierFitter
    >>> from skdpsurv.report import formula
    >>> fitter = DPKaplanMeierFitter(epsilon=1.0, max_time=10.0, n_intervals=2)
    >>> print(formula(fitter.fit([2.0, 5.0, 9.5], [1, 0, 1]).release_).splitlines()[0])
    survival(time) = exp(-hazard(time)), hazard linear between
    """
    return formula_of(release._model, release.features)


def described(release: Any) -> list[tuple[str, str]]:
    """Return the columns of a release, and what they hold, as far as it says."""
    names = known_names(release.feature_names_in, release.n_features_in)
    return [] if release.columns is None else list(_column_words(release.columns, names))


def _column_words(
    description: Mapping[str, Any] | None, names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield columns, and what they hold or what is done to them, in words."""
    if description is None:
        yield listed(names), "taken as given"
        return
    match description["step"]:
        case "Pipeline":
            for _, one in description["steps"]:
                yield from _column_words(one, names)
                names = made_names(one, names)
        case "ColumnTransformer":
            kept = [part for part in description["parts"] if part[1] != DROP]
            used = {j for _, _, places in kept for j in places}
            if unused := [name for j, name in enumerate(names) if j not in used]:
                yield listed(unused), "not used"
            for _, one, places in kept:
                inside = [names[j] if j < len(names) else f"{j}" for j in places]
                yield from _column_words(one, inside)
        case "PublicColumns" | "PublicBoundsScaler":
            for kind in kinds_of(rebuild(description), names):
                yield kind.column, _held(kind)
        case step:
            said = ", ".join(f"{k}={v!r}" for k, v in description["parameters"].items())
            yield listed(names), f"{step} of scikit-learn ({said})"


def kinds_of(step: Any, names: Sequence[str]) -> list[ColumnKind]:
    """Return the kinds of columns that a step with public bounds reads."""
    if isinstance(step, PublicColumns):
        return step._kinds()
    ends = (end.tolist() for end in step._ends(names, len(names)))
    return [Number(name, step.missing, *both) for name, *both in zip(names, *ends, strict=True)]


def _held(kind: ColumnKind) -> str:
    """Return what a column holds, what is typical of it, and what a missing value means."""
    typical = kind.typical
    if isinstance(typical, bool):
        typical = str(typical).lower()
    shown = f"{typical:.12g}" if isinstance(typical, float) else typical
    said = "" if typical is None else f"typical is {shown}; "
    return f"{kind.words()}; {said}{MISSING[kind.missing]}"
