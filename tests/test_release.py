"""Release: what is published comes back to the last bit, and nothing else gets in."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest

from skdpsurv import PrivacyGuarantee, Release


def make(**changes):
    fields = {
        "estimator": "Example",
        "guarantee": PrivacyGuarantee(1.0, mechanism="noise", public_inputs={"n": 10}),
        "parameters": {"max_time": 2.5, "link": "logit"},
        "values": {"coef": [0.1, -1 / 3, 5e-324], "level": 1e308, "table": [[1.0, 2.0]]},
        "n_features_in": 3,
        "feature_names_in": ("age", "größe", "x"),
    }
    return Release(**{**fields, **changes})


@pytest.mark.parametrize(
    "release",
    [
        make(),
        make(feature_names_in=None),
        make(values={}),
        make(guarantee=PrivacyGuarantee(np.inf, status="none")),
        make(fit_guarantee=PrivacyGuarantee(0.3, public_inputs={"n": 8})),
        make(fit_guarantee=PrivacyGuarantee(np.inf, status="none")),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_json_round_trip_to_the_last_bit(release, indent):
    back = Release.from_json(release.to_json(indent=indent))
    assert back == release
    assert hash(back) == hash(release)
    assert back.guarantee == release.guarantee
    assert back.fit_guarantee == release.fit_guarantee
    assert back.made_by == release.made_by
    assert back.parameters == release.parameters
    assert back.feature_names_in == release.feature_names_in
    assert set(back.values) == set(release.values)
    for name, value in release.values.items():
        assert back.values[name].tobytes() == value.tobytes()
        assert back.values[name].shape == value.shape


def test_random_floats_survive():
    bits = np.random.default_rng(0).integers(0, 2**63, size=1000).view(np.float64)
    bits = bits[np.isfinite(bits)]
    release = make(values={"coef": bits})
    assert Release.from_json(release.to_json()).values["coef"].tobytes() == bits.tobytes()


def test_json_is_strict_and_plain():
    text = make(guarantee=PrivacyGuarantee(np.inf, status="none")).to_json()

    def refuse(name):
        raise AssertionError(name)

    data = json.loads(text, parse_constant=refuse)  # no NaN or Infinity, which are not JSON
    assert data["schema_version"] == 2
    assert data["guarantee"]["epsilon"] == "inf"


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
)
def test_copies_are_equal(clone):
    assert clone(make()) == make()


class TestFrozen:
    def test_fields(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            make().estimator = "Other"

    def test_arrays(self):
        with pytest.raises(ValueError, match="read-only"):
            make().values["coef"][0] = 9.0

    @pytest.mark.parametrize("field", ["values", "parameters"])
    def test_mappings(self, field):
        mapping = getattr(make(), field)
        name = next(iter(mapping))
        with pytest.raises(TypeError):
            mapping[name] = 1.0
        with pytest.raises(TypeError):
            mapping["new"] = 1.0
        with pytest.raises(TypeError):
            del mapping[name]
        for method in ("clear", "pop", "popitem", "setdefault", "update"):
            assert not hasattr(mapping, method)

    def test_mappings_of_copies(self):
        """Also after a pickle and JSON: a frozen release stays one."""
        release = make()
        for back in (pickle.loads(pickle.dumps(release)), Release.from_json(release.to_json())):
            with pytest.raises(TypeError):
                back.values["coef"] = 1.0
            with pytest.raises(TypeError):
                back.parameters["max_time"] = 1.0

    def test_arrays_read_from_json(self):
        with pytest.raises(ValueError, match="read-only"):
            Release.from_json(make().to_json()).values["coef"][0] = 9.0

    @pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
    def test_arrays_of_copies(self, duplicate):
        with pytest.raises(ValueError, match="read-only"):
            duplicate(make()).values["coef"][0] = 9.0

    def test_what_it_was_made_of_can_change(self):
        coef, parameters = np.ones(3), {"max_time": 1.0}
        release = make(values={"coef": coef}, parameters=parameters)
        coef[0], parameters["max_time"] = 7.0, 7.0
        assert release.values["coef"][0] == 1.0
        assert release.parameters["max_time"] == 1.0


@pytest.mark.parametrize(
    "change",
    [
        {"estimator": "Other"},
        {"guarantee": PrivacyGuarantee(2.0)},
        {"parameters": {"max_time": 2.5, "link": "probit"}},
        {"values": {"coef": [0.1, -1 / 3, 0.0], "level": 1e308, "table": [[1.0, 2.0]]}},
        {"n_features_in": 4, "feature_names_in": ("a", "b", "c", "d")},
        {"feature_names_in": None},
    ],
)
def test_any_difference_is_seen(change):
    assert make(**change) != make()
    assert make() != "a release"


@pytest.mark.parametrize("value", [np.nan, np.inf, [1.0, -np.inf]])
def test_values_must_be_finite(value):
    with pytest.raises(ValueError, match="must be finite numbers, 'coef' is not"):
        make(values={"coef": value})


class TestRefusedText:
    @pytest.mark.parametrize("text", ["[]", "{}", "3", '"release"', "null", "not json", ""])
    def test_not_a_release(self, text):
        with pytest.raises(ValueError):  # noqa: PT011 - json's own message is fine
            Release.from_json(text)

    @pytest.mark.parametrize("version", [0, 3, "1", None, True, 1.0])
    def test_unknown_version(self, version):
        data = json.loads(make().to_json())
        data["schema_version"] = version
        with pytest.raises(ValueError, match="schema_version must be 1 or 2"):
            Release.from_json(json.dumps(data))

    @pytest.mark.parametrize(
        "name", ["estimator", "guarantee", "parameters", "values", "n_features_in"]
    )
    def test_missing_field(self, name):
        data = json.loads(make().to_json())
        del data[name]
        with pytest.raises(ValueError, match=name):
            Release.from_json(json.dumps(data))

    @pytest.mark.parametrize("name", ["coef", "training_rows", "Values"])
    def test_unknown_field(self, name):
        data = json.loads(make().to_json())
        data[name] = [0.5]
        with pytest.raises(ValueError, match=f"must not hold {name}"):
            Release.from_json(json.dumps(data))

    @pytest.mark.parametrize("where", ["", "guarantee"])
    def test_a_key_that_is_there_twice(self, where):
        text = make().to_json()
        data = json.loads(text)
        part = json.dumps(data[where] if where else data, sort_keys=True)
        twice = f'{part[:-1]}, "{"epsilon" if where else "schema_version"}": 2}}'
        with pytest.raises(ValueError, match="text must be the JSON of a Release"):
            Release.from_json(text.replace(part, twice))

    def test_unknown_field_of_the_guarantee(self):
        data = json.loads(make().to_json())
        data["guarantee"]["budget"] = 2.0
        with pytest.raises(ValueError, match="budget"):
            Release.from_json(json.dumps(data))


def test_repr_shows_shapes_and_no_released_number():
    text = repr(make())
    assert "coef(3,)" in text
    assert "table(1, 2)" in text
    assert "epsilon=1.0" in text
    assert "0.333" not in text
