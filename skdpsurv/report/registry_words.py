"""What a release says in an entry of a registry, field by field, as Markdown."""

from __future__ import annotations

import hashlib
from typing import Any

from skdpsurv.preprocessing.public_steps import known_names
from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.privacy.guarantee import PERSON
from skdpsurv.release.explanation import column_words
from skdpsurv.report.advantage import Advantage
from skdpsurv.report.markdown import bullets, code, plain, word
from skdpsurv.report.plain_words import ESTIMATORS, PUBLIC
from skdpsurv.report.promise import unit_of
from skdpsurv.report.public_part import in_order
from skdpsurv.report.text import exact, percent_up, value
from skdpsurv.version import __version__

__all__ = [
    "POST_PROCESSING",
    "composition",
    "data_domain",
    "description",
    "mechanisms",
    "parameter_details",
    "preparation",
    "unit_details",
    "unprotected",
]

MOST_COLUMNS = 500
POST_PROCESSING = (
    "Whatever is computed from the released numbers and from public values alone: predictions, "
    "tables, figures, intervals and tests, where the estimator has them. It costs no privacy."
)


def _how_many(guarantee: PrivacyGuarantee) -> str:
    """Return how many are protected, in words, as far as that is known."""
    many = "people" if unit_of(guarantee) == "person" else "records"
    public = guarantee.public_inputs
    number = public.get("n_records", public.get("n_private"))
    return f"{number:,} {many}" if type(number) is int else f"a number of {many}"


def description(release: Any) -> str:
    """Return what was released, in a sentence."""
    said = ESTIMATORS.get(release.estimator)
    what = f"{said[0].upper()}{said[1:]}" if said else f"A {plain(release.estimator)}"
    return (
        f"{what}. Fitted to {_how_many(release.guarantee)} with differential privacy, epsilon = "
        f"{exact(release.guarantee.epsilon)}."
    )


def data_domain(release: Any) -> str:
    """Return which data sets are protected."""
    number = release.n_features_in
    columns = f"{number:,} column{'' if number == 1 else 's'} of covariates"
    target = " and ".join(map(code, release.target_names))
    lines = [
        f"All data sets of {_how_many(release.guarantee)} with {columns}"
        f"{f', and with the target {target}' if target else ''}."
    ]
    if release.columns is not None:
        names = known_names(release.feature_names_in, number)
        said = list(column_words(release.columns, names))
        lines.append(
            bullets(f"{code(column)}: {plain(held)}" for column, held in said[:MOST_COLUMNS])
        )
        if len(said) > MOST_COLUMNS:
            lines.append(f"{len(said) - MOST_COLUMNS:,} more columns are in the release.")
    return "\n\n".join(lines)


def unprotected(release: Any) -> str:
    """Return what was taken as public."""
    guarantee = release.guarantee
    inputs = [
        f"{code(name)}: {word(value(given))}{f' ({PUBLIC[name]})' if name in PUBLIC else ''}"
        for name, given in in_order(guarantee)
    ]
    names = release.feature_names_in
    lines = ["Taken as public, and not protected:"]
    if names:
        inputs.append(f"names of columns: {', '.join(map(code, names[:MOST_COLUMNS]))}")
    if "n_public" in guarantee.public_inputs:
        inputs.append("all records that are said to be public")
    lines.append(bullets(inputs) if inputs else "the release lists nothing")
    if guarantee.assumptions:
        lines += ["It rests on:", bullets(map(plain, guarantee.assumptions))]
    return "\n\n".join(lines)


def unit_details(guarantee: PrivacyGuarantee) -> str:
    """Return which data sets are neighbours, and what bounds a contribution."""
    if guarantee.neighbours == PERSON:
        return (
            "Neighbouring data sets have as many people, and differ in all records of one person, "
            "also in how many these are (replace-one-person). Bound on contribution: of each "
            "person one record is used, the first one."
        )
    more = " and more than k times delta" if guarantee.delta else ""
    return (
        "Neighbouring data sets have the same number of records, and differ in the values of one "
        "record (replace-one). Bound on contribution: none is enforced; somebody with k records "
        f"is protected with k times epsilon{more}."
    )


def parameter_details(release: Any) -> str:
    """Return what the parameters mean, and what they do not cover."""
    guarantee = release.guarantee
    bound = Advantage.of(guarantee)
    return "\n\n".join(
        [
            f"{guarantee.meaning.capitalize()}. An attacker who knows all else, and guesses which "
            "of two equally likely neighbouring data sets was fitted, is right with a probability "
            f"of at most {percent_up(bound.right)}.",
            "Not covered:",
            bullets(map(plain, guarantee.limits)),
        ]
    )


def composition(release: Any) -> str:
    """Return how epsilon adds up."""
    guarantee = release.guarantee
    parts = [
        f"{code(name)} = {word(value(given))}"
        for name, given in in_order(guarantee)
        if name.startswith("epsilon_")
    ]
    lines = [
        "The stated epsilon is that of the whole release, with all of its parts. Other releases "
        "about the same people add theirs (sequential composition)."
    ]
    if parts:
        lines.append(f"Parts, as the release states them: {', '.join(parts)}.")
    if release.fit_guarantee is not None:
        lines.append(
            "The release comes from a private search. Its epsilon is that of the search as a "
            f"whole; the fit within it had epsilon = {exact(release.fit_guarantee.epsilon)}, "
            "which is no further cost."
        )
    return "\n\n".join(lines)


def preparation(release: Any, own: str | None) -> str:
    """Return what is known of what came before the fit."""
    lines = [] if own is None else [own]
    if release.columns is not None:
        lines.append(
            "Columns were read by public bounds and categories, each row by itself (see the data "
            "domain). That learns nothing from the records, and costs nothing."
        )
    if release.fit_guarantee is not None:
        lines.append("Settings were chosen by a private search. Its cost is in epsilon.")
    lines.append(
        "What else was looked at or tried before the fit, the release does not know; its epsilon "
        "does not pay for it."
    )
    return "\n\n".join(lines)


def mechanisms(release: Any, security: str | None) -> str:
    """Return how noise was added, with which software, and where the proof is."""
    guarantee = release.guarantee
    lines = [
        f"Mechanism: {plain(guarantee.mechanism) or 'not stated'}.",
        f"Implementation: {plain(release.made_with)}, estimator {code(release.estimator)}.",
        f"Proof: {plain(guarantee.source) or 'the release names none'}.",
        "Floating point: see what is not covered, under the privacy parameters.",
        *([] if security is None else [security]),
        "SHA-256 of the release, as its to_json() writes it: "
        f"{hashlib.sha256(release.to_json().encode()).hexdigest()}. "
        f"Entry written by skdpsurv {__version__}.",
    ]
    return "\n\n".join(lines)
