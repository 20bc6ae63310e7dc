"""Release: what is published comes back to the last bit, and nothing else gets in."""

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


BITS = np.random.default_rng(0).integers(0, 2**63, size=1000).view(np.float64)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"feature_names_in": None},
        {"values": {}},
        {"values": {"coef": BITS[np.isfinite(BITS)]}},
        {"guarantee": PrivacyGuarantee(np.inf, status="none")},
        {"fit_guarantee": PrivacyGuarantee(0.3, public_inputs={"n": 8})},
        dict.fromkeys(("guarantee", "fit_guarantee"), PrivacyGuarantee(np.inf, status="none")),
    ],
)
def test_json_round_trip_to_the_last_bit(changes):
    release = make(**changes)
    for indent in (None, 2):
        back = Release.from_json(release.to_json(indent=indent))
        assert (back, hash(back)) == (release, hash(release))
        for name in ("guarantee", "fit_guarantee", "made_by", "parameters", "feature_names_in"):
            assert getattr(back, name) == getattr(release, name)
        assert set(back.values) == set(release.values)
        for name, value in release.values.items():
            assert back.values[name].tobytes() == value.tobytes()
            assert back.values[name].shape == value.shape


def test_json_is_strict_and_plain():
    text = make(guarantee=PrivacyGuarantee(np.inf, status="none")).to_json()
    data = json.loads(text, parse_constant=pytest.fail)  # no NaN or Infinity, which are not JSON
    assert data["schema_version"] == 3
    assert data["guarantee"]["epsilon"] == "inf"


@pytest.mark.parametrize(
    "duplicate",
    [
        lambda r: r,
        copy.copy,
        copy.deepcopy,
        lambda r: pickle.loads(pickle.dumps(r)),
        lambda r: Release.from_json(r.to_json()),
    ],
)
def test_a_release_and_its_copies_are_frozen(duplicate):
    release = duplicate(make())
    assert release == make()
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.estimator = "Other"
    with pytest.raises(ValueError, match="read-only"):
        release.values["coef"][0] = 9.0
    for mapping in (release.values, release.parameters):
        changes = ("__setitem__", "__delitem__", "clear", "pop", "popitem", "setdefault", "update")
        assert not [name for name in changes if hasattr(mapping, name)]


def test_what_it_was_made_of_can_change():
    coef, parameters = np.ones(3), {"max_time": 1.0}
    release = make(values={"coef": coef}, parameters=parameters)
    coef[0], parameters["max_time"] = 7.0, 7.0
    assert release.values["coef"][0] == 1.0
    assert release.parameters["max_time"] == 1.0


def test_any_difference_is_seen():
    for change in (
        {"estimator": "Other"},
        {"guarantee": PrivacyGuarantee(2.0)},
        {"parameters": {"max_time": 2.5, "link": "probit"}},
        {"values": {"coef": [0.1, -1 / 3, 0.0], "level": 1e308, "table": [[1.0, 2.0]]}},
        {"n_features_in": 4, "feature_names_in": ("a", "b", "c", "d")},
        {"feature_names_in": None},
    ):
        assert make(**change) != make()
    assert make() != "a release"


@pytest.mark.parametrize("value", [np.nan, np.inf, [1.0, -np.inf]])
def test_values_must_be_finite(value):
    with pytest.raises(ValueError, match="must be finite numbers, 'coef' is not"):
        make(values={"coef": value})


class TestRefusedText:
    def refuse(self, match, **changes):
        """Fields that are ... are left out."""
        data = json.loads(make().to_json()) | changes
        data = {name: value for name, value in data.items() if value is not ...}
        with pytest.raises(ValueError, match=match):
            Release.from_json(json.dumps(data))

    @pytest.mark.parametrize("text", ["[]", "{}", "3", '"release"', "null", "not json", ""])
    def test_not_a_release(self, text):
        with pytest.raises(ValueError):  # noqa: PT011 - json's own message is fine
            Release.from_json(text)

    def test_versions_and_fields(self):
        for version in (0, 4, "1", None, True, 1.0):
            self.refuse("schema_version must be 1 or 2 or 3", schema_version=version)
        for name in ("estimator", "guarantee", "parameters", "values", "n_features_in"):
            self.refuse(name, **{name: ...})
        for name in ("coef", "training_rows", "Values"):
            self.refuse(f"must not hold {name}", **{name: [0.5]})
        guarantee = json.loads(make().to_json())["guarantee"]
        self.refuse("budget", guarantee=guarantee | {"budget": 2.0})

    @pytest.mark.parametrize("where", ["", "guarantee"])
    def test_a_key_that_is_there_twice(self, where):
        text = make().to_json()
        data = json.loads(text)
        part = json.dumps(data[where] if where else data, sort_keys=True)
        twice = f'{part[:-1]}, "{"epsilon" if where else "schema_version"}": 2}}'
        with pytest.raises(ValueError, match="text must be the JSON of a Release"):
            Release.from_json(text.replace(part, twice))


def test_repr_shows_shapes_and_no_released_number():
    text = repr(make())
    assert "coef(3,)" in text
    assert "table(1, 2)" in text
    assert "epsilon=1.0" in text
    assert "0.333" not in text
