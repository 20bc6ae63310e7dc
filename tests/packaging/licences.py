"""What ``make licences`` prints: licences of all that a user installs, as the packages state them.

A package without a known licence is refused, and one under a copyleft where it is not expected. Of
packages that other systems need, such as Windows, it knows those alone that are installed here.
"""

import functools
import re
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "skdpsurv"
PERMISSIVE, COPYLEFT, UNKNOWN = "permissive", "copyleft", "unknown"

requirements = functools.cache(metadata.requires)

#: Packages that are known to be under a copyleft, by the extra that brings them.
EXPECTED = {"reference": {"scikit-survival", "ecos"}, "server": {"psycopg", "psycopg-binary"}}

#: Names of licences, of SPDX, of classifiers and of free text: the first that is found counts.
KINDS = (
    (COPYLEFT, r"\b[AL]?GPL|GNU |\bMPL\b|Mozilla|\bEPL\b|Eclipse|CeCILL|EUPL|OSL|CC-BY-SA"),
    (UNKNOWN, r"Proprietary|Commercial"),
    (PERMISSIVE, r"\b(MIT|0?BSD|ISC|Zlib|NCSA|PSF|Python|CC0|HPND|Unlicense|BSL)\b|Apache"),
)


def stated(about: Any) -> str:
    """Return the licence that a package's metadata state: an expression of SPDX, or other words."""
    if expression := about.get("License-Expression"):
        return str(expression)
    classifiers = about.get_all("Classifier") or []
    named = [text.split(" :: ")[-1] for text in classifiers if text.startswith("License ::")]
    named = [name for name in named if name != "OSI Approved"]  # which says of no one which
    return " AND ".join(named) or (about.get("License") or "").strip().partition("\n")[0]


def kind(licence: str) -> str:
    """Return the kind of a licence; of a choice the best, of several that hold together the worst.

    Examples
    --------
    >>> kind("NCSA OR BSD-3-Clause"), kind("MIT AND MPL-2.0"), kind("")
    ('permissive', 'copyleft', 'unknown')
    """
    order = (PERMISSIVE, COPYLEFT, UNKNOWN)
    if "(" in licence:  # a choice within others counts as all of it
        licence = licence.replace(" OR ", " AND ")
    choices = [
        max((_kind_of_one(part) for part in choice.split(" AND ")), key=order.index)
        for choice in licence.split(" OR ")
    ]
    return min(choices, key=order.index)


def _kind_of_one(licence: str) -> str:
    found = (one for one, pattern in KINDS if re.search(pattern, licence, re.IGNORECASE))
    return next(found, UNKNOWN)


def needed(extra: str = "") -> set[str]:
    """Return the names of all packages that this one needs, of an extra if one is named."""
    seen: set[tuple[str, str]] = set()
    ahead = [(PROJECT, extra)]
    while ahead:
        at = ahead.pop()
        if at in seen:
            continue
        seen.add(at)
        for text in requirements(at[0]) or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": at[1]}):
                name = canonicalize_name(wanted.name)
                ahead += [(name, one) for one in ("", *wanted.extras)]
    return {name for name, _ in seen} - {PROJECT}


def refused(licences: Mapping[str, str], groups: Mapping[str, Iterable[str]]) -> list[str]:
    """Return what is wrong with the licences of packages, which the core or extras need."""
    wrong = []
    for group, names in groups.items():
        for name in sorted(names):
            found = kind(licences[name])
            if found == UNKNOWN:
                wrong.append(f"{name} states no known licence: {licences[name]!r:.60}")
            elif found == COPYLEFT and name not in EXPECTED.get(group, ()):
                whose = f"the extra {group}" if group else "the package itself"
                wrong.append(f"{name}, which {whose} needs, is under {licences[name]:.60}")
    return list(dict.fromkeys(wrong))


def installed() -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return licences by package, and packages by extra; those of the core are under ''."""
    core = needed()
    extras = metadata.metadata(PROJECT).get_all("Provides-Extra") or []
    groups = {"": core} | {name: needed(name) - core for name in extras if name != "all"}
    licences = {name: stated(metadata.metadata(name)) for name in set().union(*groups.values())}
    return licences, groups


def main() -> None:
    licences, groups = installed()
    for group, names in groups.items():
        print(f"\n{PROJECT}[{group}]" if group else PROJECT)
        for name in sorted(names):
            print(f"  {name:28}{metadata.version(name):18}{licences[name]:.60}")
    if wrong := refused(licences, groups):
        sys.exit("\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
