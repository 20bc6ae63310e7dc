"""Entries of OpenDP's registry: valid by its schema, and of nothing that was not proved."""

import datetime
import re
from pathlib import Path

import pytest
import yaml

from skdpsurv import DPKaplanMeierFitter, PrivacyGuarantee, Release
from skdpsurv.dp.guarantee import PERSON
from skdpsurv.report import registry_entry
from skdpsurv.report.registry_entry import CHOICES
from skdpsurv.report.text import value, word
from tests.report.releases import proved, with_status
from tests.support import checks
from tests.support.registry import PRIVATE, PROTECTED

jsonschema = pytest.importorskip("jsonschema")

SCHEMA = yaml.safe_load((Path(__file__).parent / "deployments-schema.yaml").read_text("utf-8"))
VALIDATOR = jsonschema.Draft7Validator(
    SCHEMA, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER
)
KNOWN = {
    "name": "Survival on ward 7",
    "data_curators": ["General Hospital", "Registry of Cancer"],
    "intended_use": "Planning of staff.",
    "data_product_region": "Norway",
    "publication_date": "2026-03-01",
}
KIND = {"data_product_type": "Machine learning model"}
STATIC = {"release_type": "One release", "data_source_type": "Static"}
DESCRIBED = STATIC | {
    "release_type_details": "No other use is planned.",
    "actors": "The hospital is trusted, readers are not.",
    "justification": "The board chose epsilon.",
    "preprocessing": "None.",
}


def one_release(**changes) -> Release:
    fields = {
        "estimator": "DPKaplanMeierFitter",
        "guarantee": PrivacyGuarantee(1.0, public_inputs={"n_records": 10}),
        "parameters": {},
        "values": {"counts": [[1.0]]},
        "n_features_in": 0,
    }
    return Release(**{**fields, **changes})


def refused(error, said, release=None, **known) -> None:
    with pytest.raises(error, match=said):
        registry_entry(one_release() if release is None else release, **known)


def deployment_of(release=None, **more) -> dict:
    """Return what an entry says of a release."""
    release = one_release() if release is None else release
    return read(registry_entry(release, **{**KNOWN, **more}))["deployment"]


def read(text: str) -> dict:
    """Return an entry that the registry's own checks would take."""
    entry = yaml.safe_load(text)
    errors = [f"{list(error.path)}: {error.message}" for error in VALIDATOR.iter_errors(entry)]
    assert errors == []
    # Folded lines are no Markdown, and a double backslash breaks a formula.
    styles = {token.style for token in yaml.scan(text) if isinstance(token, yaml.ScalarToken)}
    assert styles <= {None, "|", '"', "'"}
    for words in leaves(entry):
        assert not re.search(r"\\\\[^()]", words)
    return entry


def leaves(part):
    if isinstance(part, dict | list):
        for one in part.values() if isinstance(part, dict) else part:
            yield from leaves(one)
    elif isinstance(part, str):
        yield part


@checks.each(PROTECTED)
def test_entries_are_valid_and_full(setting):
    release = proved(setting)
    ours = type(release).kinds[release.estimator].__module__.startswith("skdpsurv.")
    deployment = deployment_of(release, **KIND if not ours else {})
    guarantee = release.guarantee
    loss, variant = deployment["privacy_loss"], deployment["dp_variant"]
    slips = {"delta": guarantee.delta} if guarantee.delta else {}
    assert loss["privacy_parameters"] == {"epsilon": guarantee.epsilon, **slips}
    person = guarantee.neighbours == PERSON
    assert loss["privacy_unit"] == ("person" if person else "record")
    assert guarantee.neighbours in loss["privacy_unit_details"]
    assert variant["variant_name"] == ("Approximate DP" if slips else "Pure DP")
    for name, given in guarantee.public_inputs.items():
        assert f"`{name}`: {word(value(given))}" in variant["unprotected_quantities"]
    assert guarantee.mechanism in deployment["implementation"]["mechanisms"]
    assert release.made_with in deployment["implementation"]["mechanisms"]
    assert deployment["deployment_model"]["model_name"] == "Central"
    for name in (*(release.feature_names_in or ()), *release.target_names):
        assert f"`{name}`" in variant["data_domain"] + variant["unprotected_quantities"]


def test_nothing_unproved_is_entered():
    for status in ("asymptotic", "seeded", "none"):
        refused(
            ValueError, f"must be proved.*{status}", with_status(one_release(), status), **KNOWN
        )
    without = next(one for one in PRIVATE if str(one) == "DPKaplanMeierFitter: no privacy")
    refused(ValueError, "must be proved", proved(without), **KNOWN)
    unknown = one_release(guarantee=PrivacyGuarantee(1.0, neighbours="add one"))
    refused(ValueError, r"its neighbours known.*'add one'", unknown, **KNOWN)


class TestWhatOnlyThePublisherKnows:
    def test_is_required_and_is_all_that_the_schema_requires(self):
        for name in KNOWN:
            refused(TypeError, name, **{key: one for key, one in KNOWN.items() if key != name})
        refused(TypeError, "epsilon", **KNOWN, epsilon=0.1)
        required = set(SCHEMA["properties"]["deployment"]["properties"]["basic"]["required"])
        assert required - KNOWN.keys() == {"description", "data_product_type"}
        example = one_release(estimator="Example")
        refused(ValueError, "data_product_type must be given", example, **KNOWN)
        deployment_of(example, data_product_type="Dataset")

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"name": 7}, TypeError),
            *(({name: " \n "}, ValueError) for name in ("name", "description", "actors")),
            ({"data_curators": "General Hospital"}, TypeError),
            ({"data_curators": []}, ValueError),
            ({"data_curators": [7]}, TypeError),
            ({"publication_date": "1/3/2026"}, ValueError),
            ({"publication_date": "2026-02-30"}, ValueError),
            ({"publication_date": "20260301"}, ValueError),
            ({"publication_date": 2026}, TypeError),
            ({"data_product_type": "Curve"}, ValueError),
            ({"data_product_sector": "Hospitals"}, ValueError),
            ({"release_type": "once"}, ValueError),
            ({"data_source_type": "static"}, ValueError),
            ({"registry_authors": []}, ValueError),
        ],
    )
    def test_breaks_a_rule(self, change, error):
        refused(error, next(iter(change)), **{**KNOWN, **change})

    @pytest.mark.parametrize("name", ["sources", "notes"])
    def test_needs_authors(self, name):
        refused(ValueError, "registry_authors must be given", **KNOWN, **{name: "A paper."})
        given = {name: "A.", "registry_authors": ["B"]}
        assert deployment_of(**given)["administrative"] == given

    def test_comes_back_as_it_was(self):
        text = "First line: with a colon.\n\n- one   \n- two # no comment\n"
        deployment = deployment_of(justification=text)
        kept = "First line: with a colon.\n\n- one\n- two # no comment"
        assert deployment["implementation"]["justification"] == kept
        assert {name: deployment["basic"][name] for name in KNOWN} == KNOWN
        day = {"publication_date": datetime.date(2026, 3, 1)}
        same = registry_entry(one_release(), **KNOWN)
        assert registry_entry(one_release(), **{**KNOWN, **day}) == same


def test_words_and_fields_are_those_of_the_schema():
    fields = SCHEMA["properties"]["deployment"]["properties"]
    basic, model = fields["basic"]["properties"], fields["deployment_model"]["properties"]
    for name, words in CHOICES.items():
        assert list(words) == {**basic, **model}[name]["enum"]
    tiers = [({}, 1), ({"release_type": "One release"}, 1), (STATIC, 2), (DESCRIBED, 3)]
    for more, tier in tiers:
        assert read(registry_entry(one_release(), **KNOWN, **more))["tier"] == tier
    named = read(registry_entry(one_release(), **{**KNOWN, "name": "A & B_c (2nd)."}))
    assert named["url_slug"] == "a-b-c-2nd--general-hospital-registry-of-cancer-2026"
    # The third has every field of it.
    entry = deployment_of(**DESCRIBED)
    for part in fields.keys() - {"basic", "administrative"}:
        asked = {name for name, one in fields[part]["properties"].items() if one.get("tier")}
        # More about what the source of data is, "if more description is useful".
        assert asked - entry[part].keys() <= {"data_source_type_details"}


def test_delta():
    release = one_release(guarantee=PrivacyGuarantee(1e-5, delta=1e-9))
    deployment, without = deployment_of(release), deployment_of()
    loss = deployment["privacy_loss"]
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    assert loss["privacy_parameters"] == {"epsilon": 1e-5, "delta": 1e-9}
    assert "more than k times delta" in loss["privacy_unit_details"]
    assert "delta" not in without["privacy_loss"]["privacy_unit_details"]


def test_search_says_that_its_choice_is_paid_for():
    setting = next(one for one in PRIVATE if str(one) == "PrivateSearchCV: repeat")
    deployment = deployment_of(proved(setting))
    assert "private search" in deployment["accounting"]["composition"]
    tuning = deployment["implementation"]["preprocessing_and_hyperparameter_tuning"]
    assert "chosen by a private search" in tuning


HOSTILE = [
    "<script>alert(1)</script>",
    "$\\frac{1}{0}$",
    "\\\\[ x \\\\]",
    "a`b` | c",
    "a\u202eb\u0000c\nd: e",
    "![x](http://example.org)",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_words(name):
    guarantee = PrivacyGuarantee(1.0, 0.0, "replace-one", name, "proved", {name: name}, (name,))
    release = one_release(
        guarantee=guarantee,
        made_with=name,
        target_names=(name,),
        n_features_in=1,
        feature_names_in=(name,),
    )
    for words in leaves(deployment_of(release)):
        outside = re.sub(r"`[^`\n]*`", "", words)
        assert not re.search(r"[<$\u202e\x00]|\]\(|\\[^u]", outside)


def test_fitted_without_a_seed():
    """Not by way of another status."""
    fitter = DPKaplanMeierFitter(epsilon=1.0, max_time=5.0).fit([1.0, 2.0, 3.0], [1, 1, 0])
    entry = read(registry_entry(fitter.release_, **KNOWN))
    assert entry["status"] == "Draft"
    assert "3 records" in entry["deployment"]["basic"]["description"]
