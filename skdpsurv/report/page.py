"""The page: one file of HTML, which asks for nothing from elsewhere."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.report.advantage_figure import advantage_over_epsilon
from skdpsurv.report.blocks import Block, Note, Table
from skdpsurv.report.figures import can_draw
from skdpsurv.report.origins import origins
from skdpsurv.report.plain_words import ESTIMATORS
from skdpsurv.report.promise import Promise, status_words, unit_of
from skdpsurv.report.public_part import public_columns, public_inputs
from skdpsurv.report.quality import quality
from skdpsurv.report.results import results
from skdpsurv.report.text import exact, shown
from skdpsurv.version import __version__

__all__ = ["html_report"]


def html_report(release: Any, *, title: str | None = None, evaluation: Any = None) -> str:
    """Return a page about a release, which somebody can read, print and sign.

    Parameters
    ----------
    release : Release
    title : str or None
        None: one that names the estimator.
    evaluation : SurvivalEvaluation or None
        Of :func:`~skdpsurv.metrics.private_survival_metrics`.

    Returns
    -------
    str
        The same for the same release.

    Raises
    ------
    ValueError
        If the release names an estimator that refuses it.
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> from skdpsurv import PrivacyGuarantee, Release
    >>> from skdpsurv.report import html_report
    >>> release = Release("Example", PrivacyGuarantee(1.0), {}, {"mean": 0.5}, 0)
    >>> page = html_report(release, title="Mean age")
    >>> "Epsilon = 1 for each record" in page
    True
    """
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be text, got {type(title).__name__}.")
    guarantee = release.guarantee
    promise = Promise.of(guarantee)
    headline, meaning = status_words(guarantee)
    return _template().render(
        title=title or f"Privacy report: {release.estimator}",
        guarantee=guarantee,
        epsilon=exact(guarantee.epsilon),
        delta=exact(guarantee.delta),
        unit=unit_of(guarantee),
        promise=promise,
        headline=headline,
        meaning=meaning,
        fitted=_fitted(release),
        advantage=[] if promise.bound is None else advantage_over_epsilon(guarantee, promise.bound),
        search=_search(release),
        origins=origins(release),
        inputs=public_inputs(guarantee),
        columns=public_columns(release),
        results=results(release),
        quality=None if evaluation is None else quality(release, evaluation),
        sources=_sources(release),
        versions=_versions(release),
    )


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Whatever is printed: a name may turn its line around.
        finalize=shown,
    )
    text = resources.files("skdpsurv.report").joinpath("report.html.jinja")
    return environment.from_string(text.read_text(encoding="utf-8"))


def _fitted(release: Any) -> list[tuple[str, str]]:
    """Return what was fitted to what, a line for each."""
    guarantee = release.guarantee
    said = ESTIMATORS.get(release.estimator)
    lines = [("Estimator", release.estimator)]
    if said is not None:
        lines.append(("That is", said))
    lines.append(("Fitted to", _how_many(guarantee)))
    if release.target_names:
        lines.append(("Target", " and ".join(map(shown, release.target_names))))
    lines.append(("Mechanism", guarantee.mechanism or "not stated"))
    return [*lines, ("Made with", release.made_with)]


def _how_many(guarantee: PrivacyGuarantee) -> str:
    """Return the number of records, which a guarantee calls by one of two names."""
    public = guarantee.public_inputs
    many = "people" if unit_of(guarantee) == "person" else "records"
    protected = public.get("n_records", public.get("n_private"))
    if type(protected) is not int:
        return f"a number of {many} that the release does not state"
    free = public.get("n_public")
    if type(free) is not int:
        return f"{protected:,} {many}"
    return f"{protected:,} {many} that need protection, and {free:,} public ones, which have none"


def _search(release: Any) -> list[Block]:
    """Return what two guarantees of one release mean."""
    inner = release.fit_guarantee
    if inner is None:
        return []
    whole = release.guarantee
    # Beside a guarantee that is void, a status of a part would read as a promise.
    status = f", status {inner.status}" if whole.status == "proved" else ""
    text = (
        "The settings of this model were chosen by a search on the same records. The epsilon on "
        f"this page, {exact(whole.epsilon)}, is that of all of it: the choice and the model. The "
        "fit that made the released numbers was a part of the search. It had epsilon = "
        f"{exact(inner.epsilon)} of its own{status}, and {_how_many(inner)}. That number says how "
        "the values were made, and intervals, if there are any, are computed from it. It is not "
        "what the release costs, and does not add to it."
    )
    caption = "Public inputs of that fit"
    tables = public_inputs(inner)
    renamed = [Table(caption, t.head, t.rows, t.numbers) for t in tables if isinstance(t, Table)]
    how = f"How that fit was done: {inner.mechanism}." if inner.mechanism else ""
    return [Note(text), *([Note(how)] if how else []), *renamed]


def _sources(release: Any) -> list[Block]:
    """Return where proofs are."""
    found = [
        guarantee.source
        for guarantee in (release.guarantee, release.fit_guarantee)
        if guarantee is not None and guarantee.source
    ]
    if not found:
        return [Note("The release names no source of a proof.")]
    status = release.guarantee.status
    if status == "asymptotic":
        return [
            Note(
                "The proof is about the law that the sampler tends to, and not about this release."
            ),
            *(Note(source) for source in dict.fromkeys(found)),
        ]
    if status != "proved":
        return [
            Note(
                "The sources below describe the mechanism. They prove nothing about this release."
            ),
            *(Note(source) for source in dict.fromkeys(found)),
        ]
    return [Note(source) for source in dict.fromkeys(found)]


def _versions(release: Any) -> list[tuple[str, str]]:
    """Return what made the release and the page, and the sums that bind them to a file."""

    def sha(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    return [
        ("Release made with", release.made_with),
        ("Layout of the release", f"version {release.schema_version}"),
        ("Page made with", f"skdpsurv {__version__}"),
        ("Figures", "drawn with matplotlib" if can_draw() else "none: matplotlib is not installed"),
        ("SHA-256 of the file that Release.save writes", sha(release.to_json(indent=2) + "\n")),
        ("SHA-256 of release.to_json()", sha(release.to_json())),
    ]
