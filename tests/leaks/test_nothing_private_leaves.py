"""Whatever leaves a fit, by whatever door, is its release."""

import importlib
import inspect
import pickle
import pkgutil
import re
import warnings
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import skdpsurv
from skdpsurv import DPLogisticRegression, PosteriorSampling
from skdpsurv.base import PrivateEstimator
from skdpsurv.classification import Perturbation
from skdpsurv.dp.checks import unchecked
from skdpsurv.hybrid import SubsetSelection
from tests.support import checks
from tests.support.registry import N_PUBLIC, N_RECORDS, PROTECTED, SETTINGS, Setting, labelled

every = checks.each(SETTINGS, checks.PLANS)


def public_estimators():
    """Return the classes with a ``fit`` that a package shows; bases stay in their modules."""
    walked = pkgutil.walk_packages(skdpsurv.__path__, "skdpsurv.")
    packages = [importlib.import_module(module.name) for module in walked if module.ispkg]
    shown = [(name, kind) for package in packages for name, kind in vars(package).items()]
    return {
        kind
        for name, kind in shown
        if inspect.isclass(kind)
        and issubclass(kind, BaseEstimator)
        and kind.__module__.startswith("skdpsurv.")
        and not name.startswith("_")
        and not inspect.isabstract(kind)
        and callable(getattr(kind, "fit", None))
    }


METHODS = {
    Perturbation: lambda method: method.kind,
    PosteriorSampling: lambda method: "psgld",
    SubsetSelection: lambda method: "subset",
}


def word(value):
    return METHODS[type(value)](value) if type(value) in METHODS else value


def listed(kind):
    """Yield what a docstring lists of words: ``method : {"one", "other"}``."""
    for name, words in re.findall(r"^ {0,4}(\w+) : \{(.*?)\}", inspect.getdoc(kind) or "", re.M):
        yield name, set(re.findall(r'"(\w+)"', words))


class TestTheRegistry:
    def test_holds_every_public_estimator(self):
        found = public_estimators()
        assert DPLogisticRegression in found  # the search finds what is there
        assert found == {s.kind for s in SETTINGS if s.kind.__module__.startswith("skdpsurv")}
        names = [setting.name for setting in SETTINGS]
        assert len(set(names)) == len(names)
        for setting in SETTINGS:  # all but the scaler and the columns, which spend nothing
            assert issubclass(setting.kind, PrivateEstimator) == setting.is_private

    @pytest.mark.parametrize("kind", sorted(public_estimators(), key=lambda kind: kind.__name__))
    def test_holds_every_word_of_every_parameter(self, kind):
        settings = [setting for setting in SETTINGS if setting.kind is kind]
        defaults = inspect.signature(kind).parameters
        for name, words in listed(kind):
            seen = {word(s.parameters.get(name, defaults[name].default)) for s in settings}
            assert words <= seen, name

    @pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.__name__)
    def test_holds_every_word_of_every_method(self, kind):
        used = [m for s in SETTINGS if isinstance(m := s.parameters.get("method"), kind)]
        for name, words in listed(kind):
            seen = {getattr(method, name) for method in [*used, kind()]}
            if kind is Perturbation and name == "kind":  # as words of the estimator
                seen |= {word(s.parameters.get("method", "auto")) for s in SETTINGS}
            assert words <= seen, name


@every
def test_neighbours_differ_in_released_values_only(setting, capfd):
    """With the same noise: attributes, pickles, repr, warnings, logs and streams."""
    fits = [checks.fit_data(setting, data, random_state=3) for data in setting.data().neighbours()]
    for one, other in pairwise(fits):
        checks.check_neighbours(setting, one, other)
    assert capfd.readouterr() == ("", "")  # nothing has gone round Python's streams


@every
def test_what_a_model_holds_and_shows_follows_from_its_release(setting):
    first = setting.data()
    for data in (first, first.replaced(*first.extremes[0])):
        checks.check_rebuilt(setting, checks.fit_data(setting, data, random_state=3), data)


@checks.each(PROTECTED, checks.PLANS)
def test_what_depends_on_records_has_noise(setting):
    """What may differ between neighbours depends on the noise, too: on six seeds, or on fewer."""
    data = setting.data()
    intercept = setting.parameters.get("fit_intercept", True)
    seen = {}
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
        if self.how == "warning":
            warnings.warn(f"{clipped} rows were clipped.", UserWarning, stacklevel=2)
        elif self.how == "print":
            print(f"{clipped} rows were clipped.")
        leaks = {
            "count": {"n_clipped_": clipped},
            "deep": {"notes_": {"fit": [(None, np.float64(rows.sum()))]}},
            "repr": {"seen": clipped},
            "records": {"X_": rows},
            "one": {"x_": float(rows[5, 1])},
        }
        vars(self).update(leaks.get(self.how, {}))
        return self

    @classmethod
    def from_release(cls, release):
        plain = replace(release, estimator="DPLogisticRegression")
        fitted = vars(DPLogisticRegression.from_release(plain))
        built = cls()
        vars(built).update({name: v for name, v in fitted.items() if name.endswith("_")})
        built.release_ = release
        return built

    def __repr__(self, **options):
        return f"{super().__repr__()}{vars(self).get('seen', '')}"

    def _repr_html_(self):
        return repr(self)


def leaky(how):
    values, parameters = ("coef", "intercept", "evidence_coef"), {"how": how, "classes": [0, 1]}
    return Setting(
        "leaky", Leaky, labelled, parameters, values, ("coef_", "intercept_")
    ), labelled()


class TestTheChecksFindLeaks:
    def pairs(self, how):
        setting, data = leaky(how)
        changed = data.replaced(*data.extremes[0])
        return setting, [checks.fit_data(setting, one, 3) for one in (data, changed)]

    def test_none_where_there_is_none(self):
        setting, outcomes = self.pairs("")
        checks.check_neighbours(setting, *outcomes)
        checks.check_rebuilt(setting, outcomes[0], labelled())

    @pytest.mark.parametrize("how", ["count", "deep", "warning", "print", "repr"])
    def test_of_neighbours(self, how):
        """By a walk or by texts; of a count, also by pickles alone and by what is rebuilt."""
        setting, outcomes = self.pairs(how)
        with pytest.raises(AssertionError):
            checks.check_neighbours(setting, *outcomes)
        if how in ("count", "repr"):
            with pytest.raises(AssertionError):
                checks.check_rebuilt(setting, outcomes[0], labelled())
        if how == "count":
            contents = [pickle.dumps(vars(outcome.fitted)) for outcome in outcomes]
            found = [checks.leaves(outcome.fitted) for outcome in outcomes]
            differ = {p for p in checks.differences(*found) if p != "n_clipped_"}
            released = checks.numbers_at(found[0], differ) | checks.numbers_at(found[1], differ)
            with pytest.raises(AssertionError):
                checks.check_pickles(*contents, released)

    @pytest.mark.parametrize("how", ["records", "one"])
    def test_of_records_in_a_pickle(self, how):
        setting, data = leaky(how)
        fitted = setting.make().fit(data.X, data.y)
        with pytest.raises(AssertionError):
            checks.check_pickle(pickle.dumps(vars(fitted)), data.X.ravel(), [])
        if how == "records":
            with pytest.raises(AssertionError):
                checks.check_shapes(fitted, {N_RECORDS})

    @pytest.mark.parametrize(
        "held", [[repr(0.123456789)], ["Zebedee"], 2**200 + 1, {"bit_generator": "ChaCha"}]
    )
    def test_of_texts_and_keys_in_a_pickle(self, held):
        with pytest.raises(AssertionError):
            checks.check_pickle(pickle.dumps(held), np.array([0.123456789]), ["Zebedee"])

    def test_a_pickle_is_searched_for_what_is_there(self):
        model = DPLogisticRegression(classes=[0, 1]).fit(np.eye(6), [0, 1] * 3)
        with pytest.raises(AssertionError):
            checks.check_pickle(pickle.dumps(model), model.coef_.ravel(), [])
