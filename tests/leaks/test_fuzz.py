"""Whatever is passed to a fit, it fits and is charged once, or refuses in our words for nothing."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import Normalizer, StandardScaler

from skdpsurv import (
    DPLogisticRegression,
    FeaturePartition,
    LogisticCombiner,
    PrivacyAccountant,
    PublicBoundsScaler,
    PublicColumns,
)
from tests.support import checks, faults
from tests.support.combinations import thinned
from tests.support.registry import INNER, NAME, NUMBER, RAW, REPRESENTATIVE, SETTINGS, SURVIVAL

#: Examples for each setting; the same ones every time.
EXAMPLES, MANY = 24, 60

quick = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)

# ---- Records.

SPECIAL = [0.0, -0.0, 5e-324, 1e-300, 1.0, -1.0, NUMBER, 1e300, -1.7e308]
#: Cells of an object that fails to be used have tests of their own.
CELLS = ["a", "b", True, 1, 2.5, *(v for n, v in faults.CELLS.items() if n not in faults.SPEAKING)]
POOLS = {"good": SPECIAL, "floats": [*SPECIAL, np.nan, np.inf, -np.inf], "objects": CELLS}
SEEDS = st.integers(0, 2**16)


def some(kind, shape, seed):
    """Return values of a kind; from a seed, which is faster than to draw each of them."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1.0, 1.0, shape)
    if kind == "objects":
        values = values.astype(object)
    for place in np.flatnonzero(rng.random(values.size) < rng.choice([0.0, 0.1, 0.9])):
        holder = np.empty(1, dtype=values.dtype)
        holder[0] = POOLS[kind][rng.integers(len(POOLS[kind]))]
        values.reshape(-1)[place : place + 1] = holder
    return values


TYPES = ["f8", "f8", "f4", "f2", "i8", "u1", "i2", "?", "c16", "U4", "S3", "M8[s]", "m8[D]", "g"]


def typed(draw, values):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return values.astype(draw(st.sampled_from([*TYPES, "O"])))


@st.composite
def matrices(draw, n_rows):
    """Draw X of about n rows: mostly two-dimensional, mostly of numbers that can be used."""
    rows = st.just(n_rows)
    shapes = (st.tuples(rows, st.integers(1, 4)), st.tuples(rows, st.integers(0, 4)))
    shape = draw(st.one_of(*shapes, st.lists(st.integers(0, 5), max_size=3).map(tuple)))
    kind = draw(st.sampled_from(["good", "good", "floats", "any", "objects"]))
    values = some("good" if kind == "any" else kind, shape, draw(SEEDS))
    return draw(container(typed(draw, values) if kind == "any" else values))


@st.composite
def container(draw, values):
    kinds = ["array", "array", "list", "frame", "odd frame", "sparse", "order"]
    kind = draw(st.sampled_from(kinds))
    if kind == "list":
        return values.tolist()
    if kind == "order":
        return np.asfortranarray(values)[::-1] if values.ndim else values
    if kind == "sparse" and values.ndim == 2 and values.dtype.kind == "f":
        return draw(st.sampled_from([sparse.csr_matrix, sparse.coo_array]))(values)
    if kind.endswith("frame") and values.ndim == 2 and values.dtype.kind not in "S":
        frame = pd.DataFrame(values, dtype=values.dtype)
        if kind == "odd frame":
            frame.index = draw(st.sampled_from([range(len(frame)), [NAME] * len(frame)]))
            names = st.sampled_from(["a", "b", 0, 1.5, "", ("a", 1), None, " "])
            width = frame.shape[1]
            frame.columns = pd.Index(draw(st.lists(names, min_size=width, max_size=width)))
        return frame
    return pd.Series(values) if kind.endswith("frame") and values.ndim == 1 else values


LABELS = [[0, 1], [0, 1, 2], ["ill", "well"], [True, False], [0.5, NAME]]
TARGETS = ["labels", "labels", "survival", "survival", "numbers", "any", "objects"]
HELD = [list, np.array, pd.Series, tuple, lambda y: np.array(y, dtype=object).reshape(-1, 1)]


@st.composite
def targets(draw, n_rows):
    """Draw times, events, labels or numbers of n records, most of which can be used."""
    n = draw(st.sampled_from([n_rows] * 6 + [0, 1, n_rows + 1]))
    kind = draw(st.sampled_from(TARGETS))
    if kind == "labels":
        pool = draw(st.sampled_from(LABELS))
        rng = np.random.default_rng(draw(SEEDS))
        return draw(st.sampled_from(HELD))([pool[i] for i in rng.integers(len(pool), size=n)])
    if kind == "survival":
        time = np.abs(some("good", n, draw(SEEDS)))
        event_ = np.random.default_rng(draw(SEEDS)).random(n) < 0.5
        fields = [SURVIVAL, SURVIVAL.descr[::-1], "?,f4", "O,O"]
        y = np.empty(n, dtype=draw(st.sampled_from(fields)))
        first, second = y.dtype.names
        both = (event_, time) if y.dtype[0].kind in "bO" else (time, event_)
        with np.errstate(over="ignore"):
            y[first], y[second] = both
        return y
    if kind == "numbers":
        return draw(container(some("floats", n, draw(SEEDS))))
    if kind == "any":
        return typed(draw, np.abs(some("good", n, draw(SEEDS))))
    return some("objects", n, draw(SEEDS))


# ---- Parameters.

ANYTHING = [
    *(0, 1, 2, -1, 0.5, 3.0, 1e-300, 1e300, np.inf, np.nan, 1j, 10**30, np.int64(2)),
    *([], {}, (1, 2), np.array([1.0, 2.0]), ["a", 0], [[0], [1]], [0, 1], {"a": 1.0}),
    *(None, "auto", "", True, np.float64(0.3), np.array(1.0), object(), ..., b"auto", "obj_pert"),
]
#: What would take memory or time if it were too large, which is public: sizes stay small.
SIZES = {"n_intervals", "n_partitions", "n_epochs", "expected_runs", "n_candidates", "n_bins"}
SAFE_SIZES = [1, 2, 5, 0, -1, None, "auto", 2.0, np.int64(3), True, [2, 2], np.nan]
WORDS = {
    "method": ["obj_pert", "out_pert", "psgld", "ladder", "laplace", "cells", "residuals", "all"],
    "ladder": ["published", "exact"],
    "link": ["logit", "cloglog", "probit"],
    "sampler": ["mala", "psgld"],
    "partition": ["features", "samples"],
    "combiner": ["vote", "weighted_vote", "logistic"],
    "selection": ["permute_and_flip", "noisy_curve"],
    "strategy": ["split", "repeat"],
    "missing": ["error", "midpoint"],
    "weights": ["auto", "signed", "nonnegative"],
    "classes": [None, [0, 1], ["ill", "well"], [0, 1, 2], [True, False]],
    "outcome": [[0, 1], (0.0, 1.0), ["ill", "well"], [0, 1, 2], np.array([0, 1])],
    "epsilon": [0.1, 1, 10.0, 1e-9, 1e4, np.inf],
    "random_state": [0, 7, np.int64(3), 2**40],
    "bounds": [[(-1.0, 1.0)], [(-1.0, 1.0)] * 2, [(-1.7e308, 1.7e308)] * 3, [(1.0, 0.0)]],
    "scoring": ["error", "brier", "likelihood"],
    "columns": [
        *(PublicBoundsScaler(), PublicColumns(RAW), PublicColumns({"age": "old"}), Normalizer()),
        *(StandardScaler(), RAW, {"age": (0, 1)}, [{"name": "age", "bounds": [0, 1]}]),
    ],
    "refit": [0.5, None],
    "param_grid": [{"alpha": [0.1, 1.0]}, {"epsilon": [1.0]}, {}, {"alpha": ["x"]}],
    "estimator": [DPLogisticRegression(classes=[0, 1]), *INNER],
    "accountant": [PrivacyAccountant, "ledger", 5.0],
    "groups": [None, ["a", "b"], [1, 2]],
    "breakpoints": ["early", "equal", [1.0, 2.0], np.array([0.5])],
    "causes": [[1], [1, 2], ["a", "b"]],
    "censored": [0, 5, "a"],
    "verbose": [0, 1, True],
}
#: Objects whose parameters may be anything.
OBJECTS = {
    "partition": [
        FeaturePartition(**{name: fault})
        for name in ("groups", "importances", "norms")
        for fault in ANYTHING
    ],
    "combiner": [LogisticCombiner(holdout=fault) for fault in ANYTHING],
}


@st.composite
def parameters(draw, setting):
    """Draw some parameters anew: their own words, or anything."""
    names = sorted(setting.make().get_params(deep=False))
    drawn = {}
    for name in draw(st.lists(st.sampled_from(names), max_size=2, unique=True)):
        pools = [pool[name] for pool in (OBJECTS, WORDS) if name in pool]
        pools.append(SAFE_SIZES if name in SIZES else ANYTHING)
        if name == "n_jobs":
            pools = [[None, 1, 0, "x", 1.5, True, 10**30]]
        drawn[name] = draw(st.one_of(*map(st.sampled_from, pools)))
    return drawn


MASKS = ["half", "half", "half", "first", "all", "none", "short", "ints", "absent"]


def options(setting, n_rows, kind="half"):
    """Return a mask of public records, which need not be one, where a fit takes one."""
    if "public" not in setting.data().options:
        return {}
    half = np.arange(n_rows) < max(n_rows // 2, 1)
    others = {
        "first": half.tolist(),
        "all": np.ones(n_rows, bool),
        "none": np.zeros(n_rows, bool),
        "short": half[:-1],
        "ints": half.astype(int),
        "absent": None,
    }
    return {"public": others.get(kind, half)}


# ---- Tests.


def call(setting, X, y, drawn, options):
    """Fit, and check that nothing but a fit or a refusal has come of it."""
    outcome = checks.fit(setting.make(**{"random_state": 0, **drawn}), X, y, options)
    event("fits" if outcome.error is None else "refused")
    # What inner estimators say of public records may hold public values.
    inner = setting.has_inner
    checks.check_outcome(outcome, diverges=True, inner=inner, tells="public" in options)
    return outcome.error is None


def shorter(data, n_rows):
    """Return records that can be fitted: the last ones, some of which are private."""
    return data.X[-n_rows:], None if data.y is None else data.y[-n_rows:]


def fuzz_records(setting, data):
    n_rows = data.draw(st.integers(2, 9))
    X, y = data.draw(matrices(n_rows)), data.draw(targets(n_rows))
    return call(setting, X, y, {}, options(setting, n_rows, data.draw(st.sampled_from(MASKS))))


def fuzz_one_part(setting, data):
    """The other part can be used, so that more fits get far."""
    X, y = shorter(setting.data(), 9)
    if data.draw(st.booleans()):
        X = data.draw(matrices(9))
    else:
        y = data.draw(targets(9))
    return call(setting, X, y, {}, options(setting, 9))


def fuzz_parameters(setting, data):
    X, y = shorter(setting.data(), 12)
    return call(setting, X, y, data.draw(parameters(setting)), options(setting, 12))


FUZZ = [fuzz_records, fuzz_one_part, fuzz_parameters]


def fuzzed(setting, fuzz, n_examples):
    seen = set()

    @settings(quick, max_examples=n_examples)
    @given(data=st.data())
    def run(data):
        seen.add(fuzz(setting, data))

    run()
    return seen


@pytest.mark.parametrize(
    ("setting", "fuzz"),
    thinned(REPRESENTATIVE, FUZZ),
    ids=lambda one: getattr(one, "__name__", None) or str(one),
)
def test_a_fit_or_a_refusal(setting, fuzz):
    seen = fuzzed(setting, fuzz, EXAMPLES)
    # Else it would say nothing; of what is all drawn anew, little fits.
    assert seen == {True, False} or (fuzz is fuzz_records and seen)


@pytest.mark.slow
@pytest.mark.parametrize("fuzz", FUZZ, ids=lambda f: f.__name__)
@checks.each(SETTINGS)
def test_a_fit_or_a_refusal_many_times(setting, fuzz):
    """Most examples where a plan is of its own."""
    fuzzed(setting, fuzz, MANY if setting.one_of_its_plan else EXAMPLES)
