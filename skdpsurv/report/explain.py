"""A release in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skdpsurv.preprocessing.column_kinds import Number
from skdpsurv.preprocessing.public_steps import known_names
from skdpsurv.preprocessing.step_description import DROP, made_names, rebuild
from skdpsurv.report.text import TEMPLATES, how_many

__all__ = ["described", "explanation"]

MISSING = {
    "error": "a missing one is refused",
    "midpoint": "a missing one counts as the middle",
    "category": "a missing one is a category of its own",
}


def explanation(release: Any) -> str:
    """Return what was released, of what columns, and what is promised."""
    return TEMPLATES.get_template("explain.txt.jinja").render(
        release=release,
        described=described(release),
        many=how_many(release.made_by, ""),
        in_words=in_words,
        some=some,
    )


def described(release: Any) -> list[tuple[str, str]]:
    """Return the columns of a release, and what they hold, as far as it says."""
    names = known_names(release.feature_names_in, release.n_features_in)
    return [] if release.columns is None else list(_column_words(release.columns, names))


def _column_words(
    description: Mapping[str, Any] | None, names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield columns, and what they hold or what is done to them, in words."""
    if description is None:
        yield in_words(names), "taken as given"
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
                yield in_words(unused), "not used"
            for _, one, places in kept:
                inside = [names[j] if j < len(names) else f"{j}" for j in places]
                yield from _column_words(one, inside)
        case "PublicColumns":
            for kind in rebuild(description)._kinds():
                yield kind.column, _held(kind)
        case "PublicBoundsScaler":
            scaler = rebuild(description)
            lower, upper = scaler._ends(names, len(names))
            for name, low, high in zip(names, lower.tolist(), upper.tolist(), strict=True):
                yield name, _held(Number(name, scaler.missing, low, high))
        case step:
            said = ", ".join(f"{k}={v!r}" for k, v in description["parameters"].items())
            yield in_words(names), f"{step} of scikit-learn ({said})"


def _held(kind: Any) -> str:
    """Return what a column holds, what is typical of it, and what a missing value means."""
    typical = kind.typical
    if isinstance(typical, bool):
        typical = str(typical).lower()
    shown = f"{typical:.12g}" if isinstance(typical, float) else typical
    said = "" if typical is None else f"typical is {shown}; "
    return f"{kind.words()}; {said}{MISSING[kind.missing]}"


def some(words: Sequence[str]) -> list[str]:
    """Return words: the first ones and the last, if there are many."""
    return list(words) if len(words) <= 12 else [*words[:10], "...", words[-1]]


def in_words(names: Sequence[str]) -> str:
    """Return names as a sentence has them."""
    *first, last = some(names) or ["nothing"]
    return f"{', '.join(first)} and {last}" if first else last
