"""An entry of OpenDP's registry of deployments of differential privacy.

The registry asks what was published, what was promised about whom, and how. A release answers the
most of it; who publishes it, where and what for, only the publisher knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import yaml

from skdpsurv.checks import one_of
from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.report import registry_words as words_of
from skdpsurv.report.plain_words import ESTIMATORS
from skdpsurv.report.promise import WORLDS, unit_of
from skdpsurv.report.registry_arguments import checked_date, checked_text, checked_texts

__all__ = ["registry_entry"]

#: Words of the registry.
PRODUCTS = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
RELEASES = ("One release", "Many releases")
SOURCES = ("Static", "Dynamic")

#: Estimators of a distribution; all others of ``ESTIMATORS`` predict from columns.
DISTRIBUTIONS = {
    "DPAalenJohansenFitter",
    "DPKaplanMeierFitter",
    "DPNelsonAalenFitter",
    "DPWeibullFitter",
    "LaplaceWeibullFitter",
    "PublishedWeibullFitter",
    "SampleAggregateWeibullFitter",
}
#: What each tier of the registry asks for, among what only the publisher knows.
SECOND_TIER = ("release_type", "data_source_type")
THIRD_TIER = ("release_type_details", "actors", "justification", "preprocessing")


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
    guarantee = release.guarantee
    _refuse_unproved(guarantee)
    said = {
        "name": name,
        "intended_use": intended_use,
        "data_product_region": data_product_region,
        "description": words_of.description(release) if description is None else description,
        "actors": actors,
        "release_type_details": release_type_details,
        "preprocessing": preprocessing,
        "justification": justification,
        "security": security,
        "sources": sources,
        "notes": notes,
    }
    texts = {key: checked_text(key, text) for key, text in said.items() if text is not None}
    if registry_authors is None and (sources is not None or notes is not None):
        raise ValueError("registry_authors must be given with sources or notes.")
    words = {
        "data_product_type": (_product(release, data_product_type), PRODUCTS),
        "data_product_sector": (data_product_sector, SECTORS),
        "release_type": (release_type, RELEASES),
        "data_source_type": (data_source_type, SOURCES),
    }
    for key, (word, allowed) in words.items():
        if word is not None:
            one_of(key, word, allowed)
    chosen = {key: word for key, (word, _) in words.items() if word is not None}
    curators = checked_texts("data_curators", data_curators)
    day = checked_date(publication_date)
    own = {**texts, **chosen}
    deployment = {
        "basic": {
            "name": texts["name"],
            "data_curators": curators,
            "intended_use": texts["intended_use"],
            "data_product_type": chosen["data_product_type"],
            "data_product_region": texts["data_product_region"],
            "description": texts["description"],
            "publication_date": day,
            "data_product_sector": chosen.get("data_product_sector"),
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if guarantee.delta else "Pure DP",
            "data_domain": words_of.data_domain(release),
            "unprotected_quantities": words_of.unprotected(release),
        },
        "privacy_loss": {
            "privacy_unit": unit_of(guarantee),
            "privacy_unit_details": words_of.unit_details(guarantee),
            "privacy_parameters": {
                "epsilon": guarantee.epsilon,
                "delta": guarantee.delta or None,
            },
            "privacy_parameters_details": words_of.parameter_details(release),
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "Whoever fitted the model had the records, and added the noise.",
            "actors": texts.get("actors"),
            "release_type": chosen.get("release_type"),
            "release_type_details": texts.get("release_type_details"),
            "data_source_type": chosen.get("data_source_type"),
            "access_type": "Non-interactive",
            "access_type_details": "The release is a file, which asks the records nothing.",
        },
        "accounting": {
            "post_processing": words_of.POST_PROCESSING,
            "composition": words_of.composition(release),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": words_of.preparation(
                release, texts.get("preprocessing")
            ),
            "mechanisms": words_of.mechanisms(release, texts.get("security")),
            "justification": texts.get("justification"),
        },
        "administrative": None
        if registry_authors is None
        else {
            "sources": texts.get("sources"),
            "notes": texts.get("notes"),
            "registry_authors": checked_texts("registry_authors", registry_authors),
        },
    }
    entry = {
        "url_slug": _slug(texts["name"], curators, day),
        "status": "Draft",
        "tier": _tier(own),
        "deployment": deployment,
    }
    return yaml.dump(
        _without_gaps(entry),
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


def _refuse_unproved(guarantee: PrivacyGuarantee) -> None:
    if guarantee.status != "proved":
        raise ValueError(
            "guarantee of the release must be proved for an entry in a registry of differential "
            f"privacy; its status is {guarantee.status!r}, which promises nothing."
        )
    if guarantee.neighbours not in WORLDS:
        raise ValueError(
            f"neighbours of the guarantee must be one of {', '.join(WORLDS)} for an entry, got "
            f"{guarantee.neighbours!r:.60}."
        )


def _product(release: Any, given: str | None) -> str:
    if given is not None:
        return given
    if release.estimator not in ESTIMATORS:
        raise ValueError(
            "data_product_type must be given: it is not known what an estimator "
            f"{release.estimator!r:.60} makes."
        )
    of_one = release.estimator in DISTRIBUTIONS
    return "Summary statistics" if of_one else "Machine learning model"


def _slug(name: str, curators: Sequence[str], day: str) -> str:
    """Return what the registry's own check makes of name, curators and year."""
    parts = (name, "-".join(curators), day[:4])
    return "-".join(re.sub(r"\W+|_", "-", part.lower()) for part in parts)


def _tier(own: Mapping[str, str]) -> int:
    """Return how complete an entry is: all else of each tier the release knows."""
    if not all(key in own for key in SECOND_TIER):
        return 1
    return 3 if all(key in own for key in THIRD_TIER) else 2


def _without_gaps(part: Any) -> Any:
    """Return a mapping without what is not known."""
    if not isinstance(part, Mapping):
        return part
    return {key: _without_gaps(one) for key, one in part.items() if one is not None}
