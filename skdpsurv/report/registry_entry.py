"""An entry of OpenDP's registry of deployments of differential privacy.

A release answers most of its questions; the publisher adds who publishes it, where, and what for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import yaml

from skdpsurv.dp.checks import choice, instance, list_of
from skdpsurv.dp.references import __version__
from skdpsurv.report.explain import described
from skdpsurv.report.figures import Advantage
from skdpsurv.report.text import TEMPLATES, WORDS, sha256

#: The registry's own words, by field.
CHOICES = WORDS["registry"]
TEXT = instance(str, "text")
LISTS = ("data_curators", "registry_authors")
REQUIRED = ("name", "data_curators", "intended_use", "data_product_region", "publication_date")
#: Fields that only the publisher can fill, and that a tier of the registry requires.
SECOND_TIER = {"release_type", "data_source_type"}
THIRD_TIER = {"release_type_details", "actors", "justification", "preprocessing"}
MOST_COLUMNS = 500


def registry_entry(
    release: Any,
    *,
    name: str,
    data_curators: Sequence[str],
    intended_use: str,
    data_product_region: str,
    publication_date: str | date,
    description: str | None = None,
    data_product_type: str | None = None,
    data_product_sector: str | None = None,
    actors: str | None = None,
    release_type: str | None = None,
    release_type_details: str | None = None,
    data_source_type: str | None = None,
    preprocessing: str | None = None,
    justification: str | None = None,
    security: str | None = None,
    sources: str | None = None,
    notes: str | None = None,
    registry_authors: Sequence[str] | None = None,
) -> str:
    """Return a draft of an entry about a release, for the registry's reviewers.

    The registry shows text as Markdown with LaTeX. Your texts are inserted unchanged.

    Parameters
    ----------
    release : Release
        Its guarantee must be proved.
    name : str
        Name of the published model.
    data_curators : sequence of str
        The publishers.
    intended_use : str
    data_product_region : str
        Region that the data describe, or of the laws that apply.
    publication_date : str or datetime.date
        Such as "2026-03-01".
    description : str or None, default=None
        By default, what the release says about itself.
    data_product_type : str or None, default=None
        A word of the registry. By default "Summary statistics" for estimators of a distribution,
        and "Machine learning model" for those that predict from columns.
    data_product_sector : str or None, default=None
        A word of the registry, such as "Healthcare".
    actors : str or None, default=None
        Parties, what each sees, and which are trusted.
    release_type : {"One release", "Many releases"} or None, default=None
    release_type_details : str or None, default=None
        Other uses of the same data, now and later.
    data_source_type : {"Static", "Dynamic"} or None, default=None
        Dynamic if data come in over time.
    preprocessing : str or None, default=None
        Preparation of the records before the fit, and choice of settings.
    justification : str or None, default=None
        Reasons for the choice of epsilon and of other settings.
    security : str or None, default=None
        Protection of the records, and of the computer that fits.
    sources, notes : str or None, default=None
        References, and anything else. They need ``registry_authors``.
    registry_authors : sequence of str or None, default=None
        Authors of the entry.

    Returns
    -------
    str
        YAML, without the fields that are not known. The tier, 1 to 3, follows from the others.

    Raises
    ------
    ValueError
        If the guarantee is not proved, its neighbours are not known, or an argument breaks a rule.
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> from skdpsurv import PrivacyGuarantee, Release
    >>> from skdpsurv.report import registry_entry
    >>> release = Release("DPWeibullFitter", PrivacyGuarantee(0.5), {}, {"rho": 1.0}, 0)
    >>> entry = registry_entry(
    ...     release,
    ...     name="Survival on ward 7",
    ...     data_curators=["General Hospital"],
    ...     intended_use="Planning of staff.",
    ...     data_product_region="Norway",
    ...     publication_date="2026-03-01",
    ... )
    >>> print(entry.splitlines()[0])
    url_slug: survival-on-ward-7-general-hospital-2026
    """
    given = locals()
    del given["release"]
    guarantee = release.guarantee
    known_neighbours = WORDS["neighbours"].keys() - {"other"}
    if guarantee.status != "proved" or guarantee.neighbours not in known_neighbours:
        raise ValueError(
            "guarantee of the release must be proved, and its neighbours known, for an entry in a "
            f"registry of differential privacy; its status is {guarantee.status!r}, and its "
            f"neighbours are {guarantee.neighbours!r:.60}."
        )
    if data_product_type is None:
        if release.estimator not in WORDS["estimators"]:
            raise ValueError(
                f"data_product_type must be given for an estimator {release.estimator!r:.60}."
            )
        describes = release.estimator.endswith(("Fitter", "TableOne"))
        given["data_product_type"] = CHOICES["data_product_type"][not describes]
    if registry_authors is None and (sources is not None or notes is not None):
        raise ValueError("registry_authors must be given with sources or notes.")
    fields: dict[str, Any] = {
        name: None if value is None and name not in REQUIRED else _checked(name, value)
        for name, value in given.items()
    }
    filled = {name for name, value in fields.items() if value is not None}
    # The registry's own check makes the same of name, curators and year.
    parts = fields["name"], "-".join(fields["data_curators"]), fields["publication_date"][:4]
    words: dict[str, Any] = {"release": release, "fields": fields, "columns": described(release)}
    words["bound"] = Advantage.at(guarantee.epsilon, guarantee.delta)
    words["slug"] = "-".join(re.sub(r"\W+|_", "-", part.lower()) for part in parts)
    words["tier"] = 1 + (filled >= SECOND_TIER) + (filled >= SECOND_TIER | THIRD_TIER)
    words |= {"most": MOST_COLUMNS, "sha": sha256(release.to_json()), "version": __version__}
    entry = TEMPLATES.get_template("registry.yaml.jinja").render(words)
    known = _without_gaps(yaml.safe_load(entry))
    # A folded line would be no Markdown.
    return yaml.dump(known, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9)


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines in literal style: the registry refuses folded lines."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)


def _checked(name: str, value: Any) -> Any:
    """Check a field, and return it as a registry entry has it."""
    if name in CHOICES:
        choice(*CHOICES[name])(name, value)
    if name == "publication_date":
        return _day(name, value)
    if name not in LISTS:
        return _text(name, value)
    list_of(TEXT)(name, value)
    if not value:
        raise ValueError(f"{name} must hold at least one name.")
    return [_text(name, one) for one in value]


def _text(name: str, text: Any) -> str:
    """Return text without blanks at line ends, which a YAML block would lose."""
    TEXT(name, text)
    kept = "\n".join(line.rstrip() for line in text.strip().splitlines())
    if not kept:
        raise ValueError(f"{name} must not be empty.")
    return kept


def _day(name: str, day: Any) -> str:
    """Check a day, and return it as YYYY-MM-DD."""
    if isinstance(day, date):
        return f"{day:%Y-%m-%d}"
    says = "a date, or text such as '2026-03-01'"
    instance(str, says)(name, day)
    try:
        return f"{datetime.strptime(day, '%Y-%m-%d'):%Y-%m-%d}"
    except ValueError:
        raise ValueError(f"{name} must be {says}, got {day!r:.40}.") from None


def _without_gaps(part: Any) -> Any:
    """Return a mapping without the fields that are not known."""
    if not isinstance(part, dict):
        return part
    return {name: _without_gaps(value) for name, value in part.items() if value is not None}
