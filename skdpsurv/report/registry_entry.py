"""An entry of OpenDP's registry of deployments of differential privacy.

The registry asks what was published, what was promised about whom, and how. A release answers the
most of it; who publishes it, where and what for, only the publisher knows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import yaml

from skdpsurv.dp.checks import choice, instance, list_of
from skdpsurv.dp.references import __version__
from skdpsurv.report.explain import described
from skdpsurv.report.figures import Advantage
from skdpsurv.report.text import TEMPLATES, WORDS

#: Words of the registry.
CHOICES = WORDS["registry"]
TEXT = instance(str, "text")
LISTS = ("data_curators", "registry_authors")
REQUIRED = ("name", "data_curators", "intended_use", "data_product_region", "publication_date")
#: What each tier of the registry asks for, among what only the publisher knows. The release
#: knows all else.
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
    """Return an entry for a release, a draft for the registry's reviewers.

    The registry shows text as Markdown with LaTeX; yours goes in as it is.

    Parameters
    ----------
    release : Release
        With a proved guarantee.
    name : str
        Of what is published.
    data_curators : sequence of str
        Who publishes it.
    intended_use : str
    data_product_region : str
        Which region the data describe, or whose laws apply.
    publication_date : str or datetime.date
        As "2026-03-01".
    description : str or None, default=None
        None: what the release says of itself.
    data_product_type : str or None, default=None
        A word of the registry. None: "Summary statistics" for estimators of a distribution,
        "Machine learning model" for those that predict from columns.
    data_product_sector : str or None, default=None
        A word of the registry, such as "Healthcare".
    actors : str or None, default=None
        Who sees what, and who is trusted.
    release_type : {"One release", "Many releases"} or None, default=None
    release_type_details : str or None, default=None
        Other uses of the same data, now and later.
    data_source_type : {"Static", "Dynamic"} or None, default=None
        Whether data come in over time.
    preprocessing : str or None, default=None
        What was done with the records before the fit, and how settings were chosen.
    justification : str or None, default=None
        Why epsilon and the rest were chosen so.
    security : str or None, default=None
        How the records, and the computer of the fit, are protected.
    sources, notes : str or None, default=None
        Where more is said; anything else. They need ``registry_authors``.
    registry_authors : sequence of str or None, default=None
        Who fills in the entry.

    Returns
    -------
    str
        YAML. What is not known is left out. The tier is 3, 2 or 1, by what is there.

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
    known = locals()
    del known["release"]
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
                "data_product_type must be given: it is not known what an estimator "
                f"{release.estimator!r:.60} makes."
            )
        fits_curves = release.estimator.endswith("Fitter")
        known["data_product_type"] = CHOICES["data_product_type"][not fits_curves]
    if registry_authors is None and (sources is not None or notes is not None):
        raise ValueError("registry_authors must be given with sources or notes.")
    said: dict[str, Any] = {
        key: None if given is None and key not in REQUIRED else _checked(key, given)
        for key, given in known.items()
    }
    filled = {key for key, given in said.items() if given is not None}
    # What the registry's own check makes of name, curators and year.
    parts = said["name"], "-".join(said["data_curators"]), said["publication_date"][:4]
    entry = TEMPLATES.get_template("registry.yaml.jinja").render(
        release=release,
        said=said,
        bound=Advantage.at(guarantee.epsilon, guarantee.delta),
        slug="-".join(re.sub(r"\W+|_", "-", part.lower()) for part in parts),
        tier=1 + (filled >= SECOND_TIER) + (filled >= SECOND_TIER | THIRD_TIER),
        columns=described(release),
        most=MOST_COLUMNS,
        sha=hashlib.sha256(release.to_json().encode()).hexdigest(),
        version=__version__,
    )
    return yaml.dump(
        _without_gaps(yaml.safe_load(entry)),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=10**9,  # a folded line is no Markdown
    )


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as it is: the registry refuses lines that are folded."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _write_text)


def _checked(name: str, given: Any) -> Any:
    """Return what a publisher says as the entry has it."""
    if name in CHOICES:
        choice(*CHOICES[name])(name, given)
    if name == "publication_date":
        return _day(name, given)
    if name not in LISTS:
        return _text(name, given)
    list_of(TEXT)(name, given)
    if not given:
        raise ValueError(f"{name} must hold at least one name.")
    return [_text(name, one) for one in given]


def _text(name: str, text: Any) -> str:
    """Return text without blanks at the ends of lines, which YAML would not keep in a block."""
    TEXT(name, text)
    kept = "\n".join(line.rstrip() for line in text.strip().splitlines())
    if not kept:
        raise ValueError(f"{name} must not be empty.")
    return kept


def _day(name: str, given: Any) -> str:
    """Return a day as the registry has it."""
    says = "a date, or text such as '2026-03-01'"
    if isinstance(given, date):
        return f"{given:%Y-%m-%d}"
    instance(str, says)(name, given)
    try:
        return f"{datetime.strptime(given, '%Y-%m-%d'):%Y-%m-%d}"
    except ValueError:
        raise ValueError(f"{name} must be {says}, got {given!r:.40}.") from None


def _without_gaps(part: Any) -> Any:
    """Return a mapping without what is not known."""
    if not isinstance(part, Mapping):
        return part
    return {key: _without_gaps(one) for key, one in part.items() if one is not None}
