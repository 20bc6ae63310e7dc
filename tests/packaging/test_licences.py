"""Licences are read from metadata, and what may not be passed on freely does not come unseen."""

from email.message import Message

import pytest

from tests.packaging.licences import COPYLEFT, PERMISSIVE, UNKNOWN, installed, kind, refused, stated


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0", PERMISSIVE),
        ("3-clause BSD", PERMISSIVE),
        ("Apache Software License", PERMISSIVE),
        ("ISC License (ISCL)", PERMISSIVE),
        ("GPL-2.0-only OR MIT", PERMISSIVE),
        ("MIT AND MPL-2.0", COPYLEFT),
        ("(MIT OR GPL-3.0-only) AND MPL-2.0", COPYLEFT),
        ("GPLv3", COPYLEFT),
        ("LGPL-3.0-only", COPYLEFT),
        ("GNU Affero General Public License v3", COPYLEFT),
        ("Mozilla Public License 2.0 (MPL 2.0)", COPYLEFT),
        ("Other/Proprietary License", UNKNOWN),
        ("MIT AND see the file", UNKNOWN),
        ("Permitted to everybody", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_kinds(licence, expected):
    assert kind(licence) == expected


def test_what_metadata_state():
    about = Message()
    assert stated(about) == ""
    about["License"] = "BSD 3-Clause License\n\nCopyright (c) 2020"
    about["Classifier"] = "Programming Language :: Python"
    about["Classifier"] = "License :: OSI Approved"
    assert stated(about) == "BSD 3-Clause License"
    about["Classifier"] = "License :: OSI Approved :: MIT License"
    assert stated(about) == "MIT License"
    about["License-Expression"] = "GPL-3.0-only"
    assert stated(about) == "GPL-3.0-only"


def test_copyleft_in_the_core_and_unknown_licences_are_refused():
    licences = {"a": "MIT", "ecos": "GPLv3", "psycopg": "LGPL-3.0-only", "b": "see LICENSE"}
    expected = {"": {"a"}, "reference": {"ecos"}, "server": {"psycopg"}}
    assert refused(licences, expected) == []
    assert refused(licences, {"": {"a", "ecos"}}) == [
        "ecos, which the package itself needs, is under GPLv3"
    ]
    assert refused(licences, {"reference": {"psycopg"}}) == [
        "psycopg, which the extra reference needs, is under LGPL-3.0-only"
    ]
    assert refused(licences, {"plot": {"b"}, "server": {"b"}}) == [
        "b states no known licence: 'see LICENSE'"
    ]


def test_what_is_installed():
    licences, groups = installed()
    assert refused(licences, groups) == []
    assert {"numpy", "opendp", "markupsafe"} <= groups[""]  # the last is needed by Jinja
    assert {"scikit-survival", "ecos"} <= groups["reference"]
    assert {name for name in groups[""] if kind(licences[name]) != PERMISSIVE} == set()
