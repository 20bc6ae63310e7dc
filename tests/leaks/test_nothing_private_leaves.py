"""Whatever leaves a fit, by whatever door, is its release."""

import importlib
import inspect
import pickle
import pkgutil
import re
import struct
import warnings
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import skdpsurv
from skdpsurv import DPLogisticRegression, PosteriorSampling, PrivacyAccountant
from skdpsurv.base import PrivateEstimator
from skdpsurv.classification import Perturbation
from skdpsurv.dp import random_source
from skdpsurv.dp.checks import unchecked
from skdpsurv.hybrid import SubsetSelection
from tests.support import checks
from tests.support.registry import N_PUBLIC, N_RECORDS, PROTECTED, SETTINGS, Data, Setting, labelled

every = checks.each(SETTINGS)


def public_estimators():
    """Return the classes with a ``fit`` that a package shows; bases stay in their modules."""
    found = set()
    for module in pkgutil.walk_packages(skdpsurv.__path__, "skdpsurv."):
        if not module.ispkg:
            continue
        for name, kind in vars(importlib.import_module(module.name)).items():
            if (
                inspect.isclass(kind)
                and issubclass(kind, BaseEstimator)
                and kind.__module__.startswith("skdpsurv.")
                and not name.startswith("_")
                and not inspect.isabstract(kind)
                and callable(getattr(kind, "fit", None))
            ):
                found.add(kind)
    return found


METHODS = {
    Perturbation: lambda method: method.kind,
    PosteriorSampling: lambda method: "psgld",
    SubsetSelection: lambda method: "subset",
}


def word(value):
    """Return the word that a parameter is, or that a method stands for."""
    return METHODS[type(value)](value) if type(value) in METHODS else value


class TestTheRegistry:
    def test_holds_every_public_estimator(self):
        found = public_estimators()
        assert DPLogisticRegression in found  # the search finds what is there
        own = {s.kind for s in SETTINGS if s.kind.__module__.startswith("skdpsurv")}
        assert found == own

    @pytest.mark.parametrize("kind", sorted(public_estimators(), key=lambda kind: kind.__name__))
    def test_holds_every_word_of_every_parameter(self, kind):
        """As the docstrings list them: ``method : {"one", "other"}``."""
        settings = [setting for setting in SETTINGS if setting.kind is kind]
        listed = re.findall(r"^ {4}(\w+) : \{(.*?)\}", inspect.getdoc(kind) or "", re.M)
        listed += re.findall(r"^(\w+) : \{(.*?)\}", inspect.getdoc(kind) or "", re.M)
        defaults = inspect.signature(kind).parameters
        for name, words in listed:
            seen = {word(s.parameters.get(name, defaults[name].default)) for s in settings}
            assert set(re.findall(r'"(\w+)"', words)) <= seen, name

    @pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.__name__)
    def test_holds_every_word_of_every_method(self, kind):
        used = [m for s in SETTINGS if isinstance(m := s.parameters.get("method"), kind)]
        used.append(kind())
        for name, words in re.findall(r"^(\w+) : \{(.*?)\}", inspect.getdoc(kind) or "", re.M):
            seen = {getattr(method, name) for method in used}
            if kind is Perturbation and name == "kind":  # as words of the estimator
                seen |= {word(s.parameters.get("method", "auto")) for s in SETTINGS}
            assert set(re.findall(r'"(\w+)"', words)) <= seen, name

    def test_has_no_name_twice(self):
        names = [setting.name for setting in SETTINGS]
        assert len(set(names)) == len(names)


@every
def test_neighbours_differ_in_released_values_only(setting, capfd):
    """With the same noise: attributes, pickles, repr, warnings, logs and streams."""
    fits = [checks.fit_data(setting, data, random_state=3) for data in setting.data().neighbours()]
    for one, other in pairwise(fits):
        checks.check_neighbours(setting, one, other)
    assert capfd.readouterr() == ("", "")  # nothing has gone round Python's streams


@checks.each(SETTINGS)
def test_what_a_model_holds_and_shows_follows_from_its_release(setting):
    first = setting.data()
    for data in (first, first.replaced(*first.extremes[0])):
        checks.check_rebuilt(setting, checks.fit_data(setting, data, random_state=3), data)


@checks.each(PROTECTED)
def test_what_depends_on_records_has_noise(setting):
    """What may differ between neighbours depends on the noise, too: on six seeds, or on fewer."""
    data = setting.data()
    intercept = setting.parameters.get("fit_intercept", True)
    seen: dict[str, set[bytes]] = {}
    for seed in range(6):
        release = checks.fit_data(setting, data, seed).fitted.release_
        for name, value in release.values.items():
            if name.startswith(setting.values) and (intercept or name != "intercept"):
                seen.setdefault(name, set()).add(np.asarray(value).tobytes())
        alike = [name for name, values in seen.items() if len(values) == 1]
        if seed > 0 and not alike:
            break
    assert not alike, alike


@every
def test_a_pickle_holds_no_record_and_no_key(setting):
    data = setting.data()
    private = data.private
    fitted = checks.fit(setting.make(), data.X, data.y, data.options).fitted  # with its ledger
    frames = [pd.DataFrame(v)[private].infer_objects() for v in (data.X, data.y) if v is not None]
    numbers = [frame.select_dtypes("number").to_numpy(dtype=float).ravel() for frame in frames]
    content = pickle.dumps(fitted)
    checks.check_pickle(content, np.concatenate(numbers), [])
    assert repr(pickle.loads(content)) == repr(fitted)
    checks.forget_accountant(fitted)
    checks.check_shapes(fitted, {N_RECORDS, N_RECORDS - N_PUBLIC})


# ---- The checks find what leaks.


class Leaky(DPLogisticRegression):
    """Leaks as ``how`` says."""

    _rules: ClassVar = {"how": unchecked}

    def __init__(self, epsilon=1.0, *, how="", classes=None, random_state=None, accountant=None):
        super().__init__(epsilon, classes=classes, random_state=random_state, accountant=accountant)
        self.how = how

    def fit(self, X, y):
        super().fit(X, y)
        rows = np.asarray(X)
        clipped = int((np.linalg.norm(rows, axis=1) > 1.0).sum())
        match self.how:
            case "count":
                self.n_clipped_ = clipped
            case "deep":
                self.notes_ = {"fit": [(None, np.float64(rows.sum()))]}
            case "warning":
                warnings.warn(f"{clipped} rows were clipped.", UserWarning, stacklevel=2)
            case "print":
                print(f"{clipped} rows were clipped.")
            case "repr":
                self.seen = clipped
            case "records":
                self.X_ = rows
            case "one":
                self.x_ = float(rows[5, 1])
            case "key":
                self.key_ = random_source(None).generator
        return self

    @classmethod
    def from_release(cls, release):
        plain = DPLogisticRegression.from_release(
            replace(release, estimator="DPLogisticRegression")
        )
        built = cls()
        vars(built).update({name: v for name, v in vars(plain).items() if name.endswith("_")})
        built.release_ = release
        return built

    def __repr__(self, **options):
        return f"{super().__repr__()}{vars(self).get('seen', '')}"

    def _repr_html_(self):
        return repr(self)


def leaky(how: str) -> tuple[Setting, Data]:
    values, attributes = ("coef", "intercept", "evidence_coef"), ("coef_", "intercept_")
    parameters = {"how": how, "classes": [0, 1]}
    return Setting("leaky", Leaky, labelled, parameters, values, attributes), labelled()


class TestTheChecksFindLeaks:
    def pairs(self, how):
        setting, data = leaky(how)
        changed = data.replaced(*data.extremes[0])
        return setting, [checks.fit_data(setting, one, 3) for one in (data, changed)]

    def test_none_where_there_is_none(self):
        checks.check_neighbours(self.pairs("")[0], *self.pairs("")[1])

    @pytest.mark.parametrize("how", ["count", "deep", "warning", "print", "repr"])
    def test_of_neighbours(self, how):
        setting, outcomes = self.pairs(how)
        with pytest.raises(AssertionError):
            checks.check_neighbours(setting, *outcomes)

    def test_of_pickles_alone(self):
        """Without the walk through attributes, too."""
        _, outcomes = self.pairs("count")
        contents = [pickle.dumps(vars(outcome.fitted)) for outcome in outcomes]
        found = [checks.leaves(outcome.fitted) for outcome in outcomes]
        differ = {p for p in checks.differences(*found) if p != "n_clipped_"}
        released = checks.numbers_at(found[0], differ) | checks.numbers_at(found[1], differ)
        with pytest.raises(AssertionError):
            checks.check_pickles(*contents, released)

    def test_none_of_what_follows_from_the_release(self):
        setting, data = leaky("")
        checks.check_rebuilt(setting, checks.fit_data(setting, data, 3), data)

    @pytest.mark.parametrize("how", ["count", "repr"])
    def test_of_what_does_not_follow_from_the_release(self, how):
        setting, data = leaky(how)
        outcome = checks.fit_data(setting, data, 3)
        with pytest.raises(AssertionError):
            checks.check_rebuilt(setting, outcome, data)

    @pytest.mark.parametrize("how", ["records", "one"])
    def test_of_records_in_a_pickle(self, how):
        setting, data = leaky(how)
        content = pickle.dumps(vars(setting.make().fit(data.X, data.y)))
        with pytest.raises(AssertionError):
            checks.check_pickle(content, data.X.ravel(), [])

    def test_of_text_in_a_pickle(self):
        for text in (repr(0.123456789), "Zebedee"):
            with pytest.raises(AssertionError):
                checks.check_pickle(pickle.dumps([text]), np.array([0.123456789]), ["Zebedee"])

    def test_of_shapes(self):
        setting, data = leaky("records")
        with pytest.raises(AssertionError):
            checks.check_shapes(setting.make().fit(data.X, data.y), {N_RECORDS})

    def test_of_a_key(self):
        for secret in (2**200 + 1, {"bit_generator": "ChaCha"}):
            with pytest.raises(AssertionError):
                checks.check_pickle(pickle.dumps(secret), np.array([]), [])


def test_a_pickle_is_searched_for_what_is_there():
    model = DPLogisticRegression(classes=[0, 1]).fit(np.eye(6), [0, 1] * 3)
    content = pickle.dumps(model)
    packed = [struct.pack(code, model.coef_[0, 0]) for code in ("<d", ">d")]
    assert any(form in content for form in packed)
    with pytest.raises(AssertionError):
        checks.check_pickle(content, model.coef_.ravel(), [])


def test_the_base_class_is_what_private_estimators_share():
    """All but the scaler, which spends nothing, keep its order in fit."""
    for setting in SETTINGS:
        assert issubclass(setting.kind, PrivateEstimator) == setting.is_private
        if setting.is_private:
            assert isinstance(setting.make(accountant=PrivacyAccountant()).accountant, object)
