"""What may not leave a fit, as checks of any estimator: each is tried on one that leaks."""

import contextlib
import io
import logging
import pickle
import pickletools
import re
import struct
import types
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from skdpsurv import BudgetExceededError, PrivacyAccountant, PrivacyLeakWarning, PublicInputWarning
from tests.support.registry import N_FAULTY, NAME, ROW

#: Which settings are quick: those that stand for their kind, or those that stand for a plan.
KINDS, PLANS = attrgetter("representative"), attrgetter("one_of_its_plan")


def each(settings, quick=KINDS):
    """Parametrize over settings, of which few are quick; tests of what leaks ask for ``PLANS``."""

    def marks(setting):
        return () if quick(setting) and not setting.slow else pytest.mark.slow

    values = [pytest.param(setting, marks=marks(setting)) for setting in settings]
    return pytest.mark.parametrize("setting", values, ids=str)


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


# ---- What an object holds.


def leaves(value, path="", open_=()):
    """Return everything that an object holds, bit for bit, by the path that leads there."""
    if value is None or isinstance(value, bool | int | str | bytes):
        return {path: (type(value).__name__, value)}
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return {path: (type(value).__name__, value.dtype.str, value.shape, value.tobytes())}
    if isinstance(value, float):
        return {path: (type(value).__name__, float.hex(value))}
    if isinstance(value, type | types.ModuleType | types.FunctionType | types.BuiltinFunctionType):
        return {path: ("name", getattr(value, "__qualname__", repr(value)))}
    if id(value) in open_:
        return {path: ("itself",)}
    open_ = (*open_, id(value))
    found = {f"{path}!": (type(value).__qualname__,)}
    for name, part in _parts(value):
        found |= leaves(part, f"{path}.{name}" if path else name, open_)
    return found


def _parts(value):
    if isinstance(value, Mapping):
        yield from ((str(name), part) for name, part in value.items())
    elif isinstance(value, list | tuple):
        yield from ((str(place), part) for place, part in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from enumerate(sorted(value, key=repr))
    elif isinstance(value, np.ndarray):
        yield from enumerate(value.ravel().tolist())
    elif isinstance(value, pd.DataFrame | pd.Series):
        yield "frame", value.to_json()
    elif hasattr(value, "__dict__"):
        yield from vars(value).items()
        for kind in type(value).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if hasattr(value, name):
                    yield name, getattr(value, name)
    else:
        yield from enumerate(value.__reduce_ex__(4)[1:3])


def differences(one, other):
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def numbers_at(found, paths):
    """Return the numbers of some leaves, as a pickle writes them."""
    leaf_at = [found[path] for path in paths & found.keys() if len(found[path]) in (2, 4)]
    return {float.fromhex(leaf[1]) if leaf[0] == "float" else leaf[-1] for leaf in leaf_at}


# ---- What a fit says.


@dataclass
class Outcome:
    """What a fit has returned, raised, said and spent."""

    estimator: Any = None
    fitted: Any = None
    error: Exception | None = None
    warned: list[tuple[str, str]] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    printed: str = ""
    charges: list[float] = field(default_factory=list)

    @property
    def said(self):
        """Everything but the error, without how long anything took."""
        return (
            self.warned,
            self.logged,
            re.sub(r"elapsed:[ \d.a-z]*|\d:\d\d:\d\d", "", self.printed),
        )

    def texts(self):
        """Return every text that somebody might read, the errors behind an error included."""
        found = [text for _, text in self.warned] + self.logged + [self.printed]
        errors = [self.error]
        for error in errors:
            if error is not None:
                found += [_safely(str, error), _safely(repr, error)]
                found += getattr(error, "__notes__", ())
                behind = (error.__cause__, error.__context__)
                errors += [one for one in behind if not any(one is seen for seen in errors)]
        return found


def _safely(show, error):
    try:
        return show(error)
    except Exception:  # an error that holds an object which fails to be shown
        return f"{NAME}: an error that cannot be shown holds an object"


class _Listener(logging.Handler):
    def __init__(self, into):
        super().__init__(logging.NOTSET)
        self.into = into

    def emit(self, record):
        self.into.append(f"{record.name}: {record.getMessage()} {record.exc_info or ''}")


@contextlib.contextmanager
def quiet():
    """Take in what is printed, and progress bars."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        yield stream


@contextlib.contextmanager
def listening(outcome):
    """Hear warnings, logs and both streams, and what is raised."""
    listener, root = _Listener(outcome.logged), logging.getLogger()
    level = root.level
    root.addHandler(listener)
    root.setLevel(logging.NOTSET)
    try:
        with quiet() as stream, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    except Exception as error:
        outcome.error = error
    finally:
        root.setLevel(level)
        root.removeHandler(listener)
    outcome.warned += [(w.category.__name__, _safely(str, w.message)) for w in caught]
    outcome.printed += stream.getvalue()


_SEEDED: dict[str, Any] = {}


def seeded(setting):
    """Return the model of a setting with the seed 3, fitted once; nobody may change it."""
    if str(setting) not in _SEEDED:
        data = setting.data()
        with quiet():
            fitted = quietly(setting.make(3).fit, data.X, data.y, **data.options)
        _SEEDED[str(setting)] = fitted
    return _SEEDED[str(setting)]


def fit(estimator, X, y, options=None):
    """Fit, and return what happened; an accountant is put in if there is none."""
    outcome = Outcome(estimator)
    accountant = getattr(estimator, "accountant", None)
    if accountant is None:
        accountant = PrivacyAccountant(rehearsal=True)
        if "accountant" in estimator.get_params(deep=False):
            estimator.set_params(accountant=accountant)
    with listening(outcome):
        outcome.fitted = estimator.fit(X, y, **(options or {}))
    if isinstance(accountant, PrivacyAccountant):
        outcome.charges = charged(accountant)
    return outcome


def charged(accountant):
    """Return the epsilons of a ledger; its frame takes as long as a small fit."""
    return [entry.epsilon for entry in accountant._ledger.entries()]


def fit_data(setting, data, random_state=None):
    outcome = fit(setting.make(random_state), data.X, data.y, data.options)
    if outcome.fitted is not None:
        forget_accountant(outcome.fitted)
    return outcome


def forget_accountant(fitted):
    """Leave out the ledger, which says when it was charged, and the receipt, which is random."""
    for name in [n for n in fitted.get_params() if n.split("__")[-1] == "accountant"]:
        fitted.set_params(**{name: None})
    if hasattr(fitted, "release_"):
        fitted.release_ = replace(fitted.release_, receipt=None)
    steps = [step for _, step in getattr(fitted, "steps", ())]
    for inner in (getattr(fitted, "best_estimator_", None), *steps):
        if isinstance(inner, BaseEstimator):
            forget_accountant(inner)


# ---- Checks.


def check_neighbours(setting, one, other):
    """Two fits to neighbours with the same noise differ in released values, and in nothing else."""
    assert (one.error, other.error) == (None, None)
    assert one.said == other.said
    first, second = leaves(one.fitted), leaves(other.fitted)
    differ = differences(first, second)
    strange = {path for path in differ if not may_differ(setting, path)}
    chosen = {getattr(outcome.fitted, "best_index_", 0) for outcome in (one, other)}
    if len(chosen) == 2:  # the choice among public candidates is a release too
        strange = {path for path in strange if not path.startswith("release_.")}
    assert not strange, strange
    if len(chosen) == 2:
        return
    assert repr(one.fitted) == repr(other.fitted)
    check_pickles(
        *(pickle.dumps(outcome.fitted) for outcome in (one, other)),
        numbers_at(first, differ) | numbers_at(second, differ),
    )


#: Estimators that divide their budget, cap their loss or bound rows, in view of noisy counts.
CHOOSE = (
    *("DPCompetingRisks", "DPDiscreteTimeSurvival", "DPWeibullFitter"),
    "HybridMEstimator: cells and residuals",
)


def may_differ(setting, path):
    """Whether a value is released, or an attribute that follows from what is."""
    parts = path.rstrip("!").split(".")
    if parts[:2] == ["release_", "plan"]:  # numbers that noisy counts decide
        return str(setting).startswith(CHOOSE)
    if parts[0] == "release_":
        return parts[1:2] == ["values"] and parts[2].startswith(setting.values)
    return any(parts[: name.count(".") + 1] == name.split(".") for name in setting.attributes)


def check_pickles(one, other, released):
    """Two pickles are the same, instruction by instruction, but for released numbers."""
    may = {_bytes(value) for value in released}
    pairs = zip(pickletools.genops(one), pickletools.genops(other), strict=True)
    for (code, *both), (other_code, *others) in pairs:
        written = {_bytes(both[0]), _bytes(others[0])}
        if code.name != other_code.name:  # numbers of other sizes
            assert isinstance(both[0], int), code.name
            assert isinstance(others[0], int), other_code.name
        if code.name != "FRAME" and len(written) == 2:
            assert written <= may


def _bytes(value):
    if isinstance(value, float):
        return struct.pack("<d", value)
    return bytes(value) if isinstance(value, bytes | bytearray) else repr(value).encode()


def shown(estimator):
    """Return what a notebook shows, without the numbers that it counts its tables by."""
    counted = r"(sk-container-id|sk-estimator-id|sk-global)-[\w-]+"
    return re.sub(counted, "", estimator._repr_html_())


def check_rebuilt(setting, outcome, data):
    """All that a fitted estimator holds and shows follows from its release and public values."""
    built, fitted = setting.rebuild(outcome.fitted, data)
    differ = differences(leaves(built), leaves(fitted))
    assert not differ, differ
    assert repr(built) == repr(fitted)
    assert shown(built) == shown(fitted)


#: Words that a pickle of a source of noise has.
SOURCES = re.compile(r"random|chacha|generator|randomsource|bitgen|secrets|seedsequence", re.I)


def check_pickle(content, numbers, labels):
    """A pickle holds no number or word of a private record, and no source of noise."""
    for value in map(float, numbers):
        # Some numbers are public by themselves: not those with many digits.
        if value != round(value, 3):
            forms = [text.encode() for text in (repr(value), f"{value:.6g}", value.hex())]
            for form in [*forms, struct.pack("<d", value), struct.pack(">d", value)]:
                assert form not in content
    for label in labels:
        assert label.encode() not in content
    for _, written, _ in pickletools.genops(content):
        if isinstance(written, str) and " " not in written:  # a name, not a sentence
            assert not SOURCES.search(written.replace("random_state", "")), written
        if isinstance(written, int):
            assert abs(written) < 2**64, "a key"


def check_shapes(fitted, n_records):
    """Nothing has as many entries as there are private records."""
    for path, leaf in leaves(fitted).items():
        if len(leaf) == 4:
            assert not n_records & set(leaf[2]), path


#: Digits of NUMBER, rounded or not; the name; a row; the count of faulty records.
PRIVATE = re.compile(
    rf"7654|7\.65\d*e|{NAME.split()[0]}|{NAME.split()[1]}"
    rf"|(?<![\d.])({ROW}|{N_FAULTY})(?![\d]|\.\d)"
)


def check_texts(texts):
    """No text has a private number, name or row, or how many records are faulty."""
    for text in texts:
        match = PRIVATE.search(text)
        assert match is None, f"{match and match.group()!r} in {text!r}"


REFUSALS = (ValueError, TypeError, BudgetExceededError)
#: What may be warned of: a guarantee that is void, public numbers, a column for a vector (of public
#: types), and inner estimators that have not converged on public records with released weights.
EXPECTED = {w.__name__ for w in (PrivacyLeakWarning, PublicInputWarning, DataConversionWarning)}
EXPECTED_INSIDE = {ConvergenceWarning.__name__}


def check_outcome(outcome, *, diverges=False, inner=False, tells=False):
    """A fit succeeds and is charged once, or is refused in our words and costs nothing.

    ``tells``: leave texts out, where all records are public that they might tell of.
    """
    if not tells:
        check_texts(outcome.texts())
    expected = EXPECTED | (EXPECTED_INSIDE if inner else set())
    strange = [w for w in outcome.warned if w[0] not in expected]
    assert not strange, strange
    if outcome.error is None:
        assert len(outcome.charges) == ("accountant" in outcome.fitted.get_params(deep=False))
        return
    error = outcome.error
    if diverges and "has diverged" in str(error):
        assert len(outcome.charges) == 1
        return
    assert isinstance(error, REFUSALS), repr(error)
    assert outcome.charges == [], f"{error!r} after the charge"
    assert not isinstance(error, UnicodeError | np.exceptions.AxisError), repr(error)
    assert str(error).strip(), "a refusal without a reason"


def check_nothing_kept(outcome):
    """A refused fit has left nothing of the records on the estimator."""
    held = vars(outcome.estimator)
    assert not {"release_", "guarantee_", "best_estimator_"} & set(held)
    # Number and names of columns are public, and may have been seen.
    kept = set(held) - set(outcome.estimator.get_params(deep=False))
    assert kept <= {"n_features_in_", "feature_names_in_"}, kept


def called(method, *args):
    outcome = Outcome()
    with listening(outcome):
        method(*args)
    return outcome


def check_refusal(outcome):
    """A call has returned something, or refused without a word of the records."""
    check_texts(outcome.texts())
    assert isinstance(outcome.error, ValueError | TypeError | None), repr(outcome.error)
