"""A release in plain words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skdpsurv.preprocessing import PublicBoundsScaler
from skdpsurv.preprocessing.column_kinds import Number
from skdpsurv.preprocessing.public_steps import known_names
from skdpsurv.preprocessing.step_description import DROP, made_names, rebuild
from skdpsurv.privacy.guarantee import PERSON

__all__ = ["column_words", "explanation", "headline"]


def headline(release: Any) -> str:
    """Return what was fitted to how many records, and what is promised, in a line."""
    guarantee = release.guarantee
    return (
        f"{release.estimator}: {guarantee.public_inputs['n_records']:,} records, "
        f"epsilon = {guarantee.epsilon:g}, status {guarantee.status}"
    )


def explanation(release: Any) -> str:
    """Return what was released, of what columns, and what is promised."""
    n_records = release.made_by.public_inputs.get("n_records")
    whom = "people" if release.made_by.neighbours == PERSON else "records"
    people = f", fitted to {n_records:,} {whom}" if isinstance(n_records, int) else ""
    target = f" It was fitted to {_and(release.target_names)}." if release.target_names else ""
    parts = [
        _filled(f"A {release.estimator}{people}, released by {release.made_with}.{target}"),
        _columns(release),
        "What was released:\n"
        + _bullets(
            f"{name}: {'one number' if value.size == 1 else f'{value.size:,} numbers'}"
            for name, value in sorted(release.values.items())
        ),
        release.guarantee.describe(),
    ]
    return "\n\n".join(parts)


def _columns(release: Any) -> str:
    if not release.n_features_in:
        return "It reads no columns: times are all that it knows of anybody."
    number = f"{release.n_features_in:,} column{'' if release.n_features_in == 1 else 's'}"
    if release.columns is None:
        names = release.feature_names_in
        named = f": {', '.join(names)}" if names else ", without names"
        return _filled(
            f"It reads {number}{named}. What they hold, their units and their bounds, is not "
            "part of this release: rows must come as they went into the fit."
        )
    names = known_names(release.feature_names_in, release.n_features_in)
    says = [f"{column}: {held}" for column, held in column_words(release.columns, names)]
    made = f"That makes {release.n_features:,} numbers: {', '.join(_some(release.feature_names))}."
    return f"It reads {number}:\n{_bullets(says)}\n{_filled(made)}"


def column_words(
    description: Mapping[str, Any] | None, names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield columns, and what they hold or what is done to them, in words.

    Parameters
    ----------
    description : mapping or None
        Of a public step, as a release has it.
    names : sequence of str
        Of what goes in.
    """
    if description is None:
        yield _and(_some(names)), "taken as given"
        return
    match description["step"]:
        case "Pipeline":
            for _, one in description["steps"]:
                yield from column_words(one, names)
                names = made_names(one, names)
        case "ColumnTransformer":
            kept = [part for part in description["parts"] if part[1] != DROP]
            used = {j for _, _, places in kept for j in places}
            if unused := [name for j, name in enumerate(names) if j not in used]:
                yield _and(_some(unused)), "not used"
            for _, one, places in kept:
                inside = [names[j] if j < len(names) else f"{j}" for j in places]
                yield from column_words(one, inside)
        case "PublicColumns":
            for kind in rebuild(description)._kinds():
                yield kind.column, f"{kind.words()}; {_typical(kind)}{MISSING[kind.missing]}"
        case "PublicBoundsScaler":
            yield from _bounds(rebuild(description), names)
        case step:
            said = ", ".join(f"{k}={v!r}" for k, v in description["parameters"].items())
            yield _and(_some(names)), f"{step} of scikit-learn ({said})"


MISSING = {
    "error": "a missing one is refused",
    "midpoint": "a missing one counts as the middle",
    "category": "a missing one is a category of its own",
}


def _typical(kind: Any) -> str:
    """Return what an example of a person has in a column, if its description says so."""
    value = kind.typical
    if value is None:
        return ""
    if isinstance(value, bool):
        value = "true" if value else "false"
    return f"typical is {f'{value:.12g}' if isinstance(value, float) else value}; "


def _bounds(scaler: PublicBoundsScaler, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    lower, upper = scaler._ends(names, len(names))
    for name, low, high in zip(names, lower.tolist(), upper.tolist(), strict=True):
        number = Number(name, scaler.missing, low, high)
        yield name, f"{number.words()}; {MISSING[scaler.missing]}"


def _some(names: Sequence[str], most: int = 12) -> list[str]:
    return list(names) if len(names) <= most else [*names[: most - 2], "...", names[-1]]


def _and(words: Sequence[str]) -> str:
    if not words:
        return "nothing"
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _filled(text: str) -> str:
    return textwrap.fill(text, width=88)


def _bullets(items: Any) -> str:
    return "\n".join(
        textwrap.fill(item, width=88, initial_indent="  - ", subsequent_indent="    ")
        for item in items
    )
