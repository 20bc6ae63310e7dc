"""Every public estimator, in every setting, with a tiny data set: what the tests here walk over.

A new public estimator, or a new word for one of its parameters, belongs in ``SETTINGS``; a test
fails until it is there. A new setting is slow in most tests (``checks.each``): that of a new
estimator is ``representative``, and that of a new mechanism or sort of plan ``quick``.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier

from skdpsurv import (
    DPAalenJohansenFitter,
    DPCompetingRisks,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPTableOne,
    DPWeibullFitter,
    FeaturePartition,
    HybridMEstimator,
    PosteriorSampling,
    PrivacyLeakWarning,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
    published,
)
from skdpsurv.base import PrivateEstimator
from skdpsurv.base.pipelines import private_step
from skdpsurv.classification import Perturbation
from skdpsurv.data.public_steps import valid_row
from skdpsurv.hybrid import SubsetSelection
from skdpsurv.model_selection import PrivateSearchCV
from tests.support.estimators import with_strategy
from tests.support.extensions import extension

#: Numbers that no public quantity has: of records, of those that need protection, a place, and a
#: count of faulty records.
N_RECORDS, N_PUBLIC, ROW, N_FAULTY = 47, 20, 37, 29
#: What a private record holds, and no message may.
NUMBER, NAME = 7654.321, "Zebedee Quux"
MAX_TIME = 10.0
LARGEST = float(np.finfo(float).max)
SURVIVAL = np.dtype([("event", "?"), ("time", "f8")])
WARDS = ("east", "west", "north")


@dataclass(frozen=True)
class Data:
    """Arguments of a fit, and records that may stand in place of one of them."""

    X: Any
    y: Any
    options: dict[str, Any] = field(default_factory=dict)
    extremes: tuple[tuple[Any, ...], ...] = ()

    def replaced(self, x, y, other=None, entry=None, row=ROW):
        """Return neighbours; ``other`` is the group of the new record, or its entry if alone."""
        X, target, options = self.X, self.y, self.options
        alone = "group" if "group" in options else "entry"
        for name, value in ((alone, other), ("entry", entry)):
            if value is not None:
                options = {**options, name: options[name].copy()}
                options[name][row] = value
        if isinstance(X, pd.DataFrame):
            X = X.astype({name: object for name in X if X[name].dtype.kind not in "fiu"})
            for j, value in enumerate(x):
                X.at[row, X.columns[j]] = value
        elif X is not None:
            X = X.copy()
            X[row] = x
        if target is not None:
            target = target.copy()
            target[row] = y
        return replace(self, X=X, y=target, options=options)

    def neighbours(self):
        return [self, *(self.replaced(*record) for record in self.extremes)]

    def with_targets(self, targets, y=None):
        """Return data whose extreme records have other targets."""
        extremes = tuple((x, t) for (x, *_), t in zip(self.extremes, targets, strict=True))
        return replace(self, y=self.y if y is None else y, extremes=extremes)

    @property
    def private(self):
        """Which records are to be protected."""
        return ~np.asarray(self.options.get("public", np.zeros(N_RECORDS, dtype=bool)))


ROWS = (
    *((9.0, 9.0, 9.0), (-LARGEST, LARGEST, -LARGEST), (5e-324, -0.0, 2.3e-308)),
    *((0.0, 0.0, 0.0), (LARGEST, LARGEST, LARGEST)),
)


def _columns():
    return np.random.default_rng(20).uniform(-0.5, 0.5, (N_RECORDS, 3))


def columns():
    return Data(_columns(), None, {}, tuple((x, None) for x in ROWS))


def _survival_target():
    rng = np.random.default_rng(21)
    y = np.empty(N_RECORDS, dtype=SURVIVAL)
    y["event"], y["time"] = rng.random(N_RECORDS) < 0.6, rng.uniform(0.1, 9.9, N_RECORDS)
    return y


def survival():
    targets = ((True, 0.0), (False, LARGEST), (True, 5e-324), (True, MAX_TIME), (False, 0.0))
    return columns().with_targets(targets, _survival_target())


def frame():
    data = survival()
    return replace(data, X=pd.DataFrame(data.X, columns=["age", "dose", "size"]))


def _late(data):
    """People who entered late, some after their exit or the horizon."""
    entry = np.random.default_rng(29).uniform(0.0, 6.0, N_RECORDS)
    records = zip(data.extremes, (0.0, LARGEST, 5e-324, MAX_TIME, 3.0), strict=False)
    extremes = tuple((*record, entered) for record, entered in records)
    return replace(data, options={"entry": entry}, extremes=extremes)


def late():
    return _late(survival())


def late_moderate():
    return _late(moderate())


#: What the columns of raw rows hold.
RAW = {
    "age": {"bounds": [-0.5, 0.5], "unit": "years", "missing": "midpoint"},
    "ward": {"categories": list(WARDS), "missing": "category"},
    "ill": {"boolean": True, "missing": "category"},
    "seen": {"dates": ["2001-01-01", "2010-12-31"], "missing": "midpoint"},
}
SPREADS = ({"spread": 0.3}, {"prevalence": [1 / len(WARDS)] * len(WARDS)}, {"prevalence": 0.5})
RAW_SPREADS = {name: RAW[name] | one for name, one in zip(RAW, SPREADS, strict=False)} | {
    "seen": RAW["seen"]
}
#: A curve, and products of two columns: a number and a condition, and two categories.
RAW_CURVES = RAW | {
    "age": {"spline": [-0.5, 0.5], "df": 2, "missing": "midpoint"},
    "age:ill": {"interaction": ["age", "ill"]},
    "ward:ill": {"interaction": ["ward", "ill"]},
}
#: Strata, which have no missing values, and a product of theirs.
RAW_WARDS = RAW | {"ward": list(WARDS), "ward:ill": {"interaction": ["ward", "ill"]}}
#: Effects that change over time: with its logarithm, at a step, along a spline.
OVER_TIME = {
    "age": RAW["age"] | {"over_time": "log"},
    "ill": {"boolean": True, "missing": "category", "over_time": {"steps": [MAX_TIME / 2]}},
    "seen": RAW["seen"] | {"over_time": {"spline": 2}},
}
RAW_ROWS = (
    (LARGEST, "east", True, "9999-12-31"),
    (-LARGEST, "north", False, "0001-01-01"),
    (float("nan"), None, None, None),
    (5e-324, "west", 0, "2001-01-01"),
    (np.float32(-0.0), np.nan, 1.0, "2010-12-31T23:59:59"),
)


def raw_rows():
    rng = np.random.default_rng(26)
    days = np.datetime64("2001-01-01") + rng.integers(0, 3650, N_RECORDS)
    return pd.DataFrame(
        {
            "age": _columns()[:, 0].astype(object),
            "ward": rng.choice(WARDS, N_RECORDS).astype(object),
            "ill": (rng.random(N_RECORDS) < 0.5).astype(object),
            "seen": np.datetime_as_string(days).astype(object),
        }
    )


def _raw(made):
    data = made()
    targets = [y for _, y in data.extremes]
    return replace(data, X=raw_rows(), extremes=tuple(zip(RAW_ROWS, targets, strict=True)))


def raw_survival():
    return _raw(survival)


def in_wards():
    """Raw rows whose ward is known, as strata need it."""
    data = raw_survival()
    rows = [
        (age, ward if isinstance(ward, str) else "west", *others)
        for (age, ward, *others), _ in data.extremes
    ]
    return replace(data, extremes=tuple(zip(rows, (y for _, y in data.extremes), strict=True)))


def late_competing():
    return _late(competing())


def late_in_wards():
    return _late(in_wards())


def raw_labelled():
    return _raw(labelled)


#: For fits without privacy, which take columns as they are.
MODERATE = ((0.5, 0.5, 0.5), (-0.5, 0.5, -0.5), (5e-324, -0.0, 2.3e-308), (0.0, 0.0, 0.0))


def moderate():
    targets = ((True, 0.0), (False, 99.0), (True, 5e-324), (False, 0.0))
    return replace(survival(), extremes=tuple(zip(MODERATE, targets, strict=True)))


def gentle():
    return replace(labelled(), extremes=tuple((x, x[0] > 0) for x in MODERATE))


def durations():
    y = _survival_target()
    records = ((0.0, True), (LARGEST, False), (5e-324, True), (MAX_TIME, True), (0.0, False))
    return Data(y["time"], y["event"], {}, records)


def grouped():
    data = durations()
    wards = np.random.default_rng(27).choice(WARDS[:2], N_RECORDS).astype(object)
    records = zip(data.extremes, ("east", "west", "east", "west", "north"), strict=True)
    extremes = tuple((*record, ward) for record, ward in records)
    return replace(data, options={"group": wards}, extremes=extremes)


def grouped_people():
    data = grouped()
    return replace(data, options={**data.options, "person": _whose()})


def _late_durations(data, groups=(None,) * 5):
    """Entries before, at and after exits and the horizon."""
    entry = data.X * np.random.default_rng(29).uniform(-0.5, 0.8, N_RECORDS).clip(0.0)
    each = zip(data.extremes, groups, (0.0, MAX_TIME, 5e-324, 1.0, LARGEST), strict=True)
    extremes = tuple((*record[:2], group, at) for record, group, at in each)
    return replace(data, options={**data.options, "entry": entry}, extremes=extremes)


def late_durations():
    return _late_durations(durations())


def late_grouped():
    return _late_durations(grouped(), ("east", "west", "east", "west", "north"))


def late_causes():
    return _late_durations(causes())


def _whose():
    """Some people have two records."""
    return np.r_[np.arange(40), np.arange(N_RECORDS - 40)]


def causes():
    """What happened, as text."""
    data = durations()
    happened = np.random.default_rng(28).choice(["relapse", "death"], N_RECORDS)
    words = ("death", "alive", "relapse", "death", "alive")
    return data.with_targets(words, np.where(data.y, happened, "alive").astype(object))


def _competing(data):
    """Times and what happened."""
    y = data.y.astype([("event", object), ("time", "f8")])
    happened = np.random.default_rng(28).choice(["relapse", "death"], N_RECORDS)
    y["event"] = np.where(data.y["event"], happened, "alive")
    words = ("death", "alive", "relapse", "death", "alive")
    targets = [(word, t[1]) for word, (_, t, *_) in zip(words, data.extremes, strict=False)]
    return data.with_targets(targets, y)


def competing():
    return _competing(survival())


def raw_competing():
    return _raw(competing)


def competing_moderate():
    return _competing(moderate())


def labelled():
    X = _columns()
    y = (X[:, 0] + 0.3 * np.random.default_rng(22).normal(size=N_RECORDS) > 0).astype(int)
    return columns().with_targets((0, 1, 0, 1, 0), y)


def outcomes():
    y = np.random.default_rng(24).poisson(np.exp(_columns()[:, 0])).astype(float)
    return columns().with_targets((0.0, 99.0, 5e-324, LARGEST, 3.0), y)


def people():
    whose = np.array([f"{NAME} {number}" for number in _whose()])
    return replace(labelled(), options={"person": whose})


def words():
    data = labelled()
    targets = ("well", "ill", "well", "ill", "well")
    return data.with_targets(targets, np.where(data.y == 1, "ill", "well"))


def three():
    data = labelled()
    return replace(data, y=data.y + (data.X[:, 1] > 0.2))


def hybrid():
    """A label that no public record has is allowed."""
    data = labelled().with_targets((0, 1, "unheard of", 1, LARGEST))
    public = np.arange(N_RECORDS) < N_PUBLIC
    return replace(data, y=data.y.astype(object), options={"public": public})


def hybrid_numbers():
    X = _columns()
    return hybrid().with_targets((LARGEST, -LARGEST, 5e-324, 0.0, 1.0), np.abs(X[:, 0] + X[:, 1]))


def hybrid_frame():
    data = hybrid()
    ward = np.random.default_rng(23).choice(WARDS, N_RECORDS).astype(object)
    X = pd.DataFrame({"age": data.X[:, 0], "dose": data.X[:, 1], "ward": ward})
    wards = ("unheard of", None, "east", 7, {"no": "hash"})
    extremes = tuple(((*x[:2], w), y) for (x, y), w in zip(data.extremes, wards, strict=True))
    return replace(data, X=X, extremes=extremes)


def numbers():
    return replace(hybrid_numbers(), options={})


def of_one_ward():
    """Neighbours whose ward, which is public, stays."""
    data = _raw(columns)
    extremes = (((age, data.X["ward"][ROW], *rest), y) for (age, _, *rest), y in data.extremes)
    return replace(data, extremes=tuple(extremes))


raw_outcomes = partial(_raw, outcomes)
raw_hybrid = partial(_raw, hybrid)
raw_columns = partial(_raw, columns)


@dataclass(frozen=True)
class Setting:
    name: str
    kind: type
    data: Callable[[], Data]
    parameters: dict[str, Any]  # beside epsilon, random_state and accountant
    #: Prefixes of what in ``release_.values`` may depend on private records, and fitted attributes
    #: that may, as they follow from the release.
    values: tuple[str, ...]
    attributes: tuple[str, ...]
    epsilon: float = 1.0
    representative: bool = False  # it stands for its kind where all would take too long
    quick: bool = False  # it stands for a plan that no representative one has, in tests of leaks
    diverges: bool = False  # a failure after the charge is documented
    slow: bool = False  # its fits take a tenth of a second
    #: Whether scikit-learn's checks are run on it; None: if it is representative.
    checked: bool | None = None

    def __str__(self):
        return self.name

    @property
    def one_of_its_plan(self):
        """Whether quick tests of what leaks look at it; slow ones look at all."""
        return self.representative or self.quick

    @property
    def is_private(self):
        """Whether it spends epsilon at all."""
        return issubclass(self.kind, PrivateEstimator)

    @property
    def has_inner(self):
        """Whether an estimator inside may speak of public records."""
        return any(word in self.name for word in ("Hybrid", "Histogram", "hybrid"))

    @property
    def by_position(self):
        """Whether columns may have any names."""
        return ": raw" not in self.name

    def make(self, random_state=None, **changes):
        own = {"epsilon": self.epsilon, "random_state": random_state} if self.is_private else {}
        if not self.is_private:
            changes.pop("accountant", None)
        return self.kind(**{**own, **self.parameters, **changes})

    def checkable(self):
        model = self.make(**UNDECLARED.get(self.kind, {}))
        if isinstance(model, HybridMEstimator):
            return TwoOfThreeArePublic(**model.get_params(deep=False))
        return model

    def rebuild(self, fitted, data):
        """Return what follows from the release and public values, and what it is to equal."""
        if not self.is_private:
            rows = np.zeros((1, 3))
            if isinstance(fitted, PublicColumns):
                rows = pd.DataFrame([valid_row(fitted, list(RAW))], columns=list(RAW))
            return self.kind(**fitted.get_params()).fit(rows), fitted
        if self.kind is PrivateSearchCV:
            fitted = private_step(fitted.best_estimator_)[1]
        built = type(fitted).from_release(fitted.release_, **beyond_release(fitted, data))
        return built.set_params(**fitted.get_params(deep=False)), fitted


def beyond_release(fitted, data):
    """Return what ``from_release`` needs that no release holds."""
    arguments = {}
    if isinstance(fitted, HybridMEstimator | published.PerturbedHistogramMEstimator):
        arguments["estimator"] = fitted.estimator
    if isinstance(fitted, HybridMEstimator):
        public = data.options["public"]
        arguments |= {"X": data.X[public], "y": data.y[public]}
    return arguments


class TwoOfThreeArePublic(HybridMEstimator):
    """The mask is required, and scikit-learn's checks know of none: the row's number says it."""

    def fit(self, X, y, public=None):
        if public is None:
            rows = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
            public = np.arange(rows.shape[0]) % 3 > 0
        return super().fit(X, y, public=public)


def prior_release(model, records):
    """Return a release from elsewhere: the same one in every process, so seeded."""
    data = records()
    model.random_state = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return model.fit(data.X[:30], None if data.y is None else data.y[:30]).release_


#: Parameters for scikit-learn's checks: one column and one row are one group and one part.
UNDECLARED = {
    DPAalenJohansenFitter: {"causes": [1]},
    DPCompetingRisks: {"causes": [1], "censored": 0},
    DPLogisticRegression: {"classes": None},
    published.PublishedLogisticRegression: {"classes": None},
    PrivateStackingClassifier: {"classes": None, "n_partitions": 1},
    published.PublishedStackingClassifier: {"classes": None, "n_partitions": 1},
    PrivateSearchCV: {"estimator": DPLogisticRegression()},
}
FLAGS = ("representative", "quick", "diverges", "slow", "checked")


def _settings():
    def several(kind, values, attributes, **common):
        def one(name, data, *, epsilon=1.0, also=(), **given):
            """Return a setting; ``also`` may depend on records in its releases alone."""
            flags = {flag: given.pop(flag) for flag in FLAGS if flag in given}
            all_values, parameters = (*values, *also), {**common, **given}
            full = f"{kind.__name__}: {name}"
            return Setting(full, kind, data, parameters, all_values, attributes, epsilon, **flags)

        return one

    estimated = ("inference_estimate", "inference_covariance", "mean_weight")
    #: Where noise hides directions; elsewhere there are none, whatever the records are.
    hidden = ("inference_hidden",)
    #: What follows from a pilot; the cap, too, where the life table is not beyond its ends.
    rows = ("row_center", "row_radius")
    look = {"also": ("evidence_error", *rows)}
    capped = {"also": (*look["also"], "max_cumulative_hazard")}
    one = several(
        DPDiscreteTimeSurvival,
        ("coef", "baseline_coef", "recalibration_", "evidence_coef", "follow_up"),
        (
            *("coef_", "baseline_coef_", "recalibration_", "inference_"),
            *("max_cumulative_hazard_", "over_time_coef_", "_changes"),
        ),
        max_time=MAX_TIME,
        n_intervals=8,
    )
    yield one("objective", survival, representative=True)
    yield one("objective with a first look", frame, epsilon=10.0, **look)
    prior = prior_release(DPDiscreteTimeSurvival(max_time=MAX_TIME, epsilon=50.0), survival)
    yield one("prior", survival, prior=prior, epsilon=10.0, **look)
    gaussian = {"delta": 1e-4, "method": "noisy_gd", "epsilon": 20.0, **capped}
    yield one("noisy descent", survival, quick=True, **gaussian)
    yield one("Gaussian output", survival, **{**gaussian, "method": "out_pert"})
    out = {"method": "out_pert", "link": "cloglog", "epsilon": 10.0, **look}
    yield one("output", survival, quick=True, checked=True, **out)
    uncapped = {"max_cumulative_hazard": None, "link": "logit", "data_norm": 1.0}
    yield one("uncapped", survival, method="obj_pert", **uncapped)
    yield one("probit", survival, link="probit", alpha=0.1, pilot_share=0.0)
    yield one("no privacy", moderate, epsilon=np.inf)
    late_entry = {"recalibration_share": 0.0, "epsilon": 10.0}
    yield one("late entries", late, quick=True, **late_entry, **look)
    yield one("late entries, recalibrated", late, epsilon=10.0, **look)
    out = {"method": "out_pert", "link": "cloglog", **late_entry, **look}
    yield one("output with late entries", late, **out)
    descent = {**gaussian, "recalibration_share": 0.0}
    yield one("noisy descent with late entries", late, **descent)
    yield one("late entries without privacy", late_moderate, epsilon=np.inf)
    stands = {"representative": True, "checked": False}
    raw = PublicColumns(RAW)
    yield one("raw columns", raw_survival, columns=raw, **stands)
    wards = {"columns": PublicColumns(RAW_WARDS), "strata": "ward", **late_entry, **look}
    yield one("raw columns with strata", in_wards, quick=True, **wards)
    yield one("raw columns with strata, output, late entries", late_in_wards, **{**wards, **out})
    own = {**wards, "recalibration_share": 0.1, "epsilon": 165.0}
    yield one("raw columns with strata, recalibrated", in_wards, **own)
    own["max_cumulative_hazard"] = 2.0  # "auto" follows the life table
    yield one("raw columns with strata, late entries, recalibrated", late_in_wards, **own)
    descent = {**wards, **gaussian, "recalibration_share": 0.0, **look}
    yield one("raw columns with strata, noisy descent", in_wards, **descent)
    yield one("raw columns with strata, no privacy", in_wards, **{**wards, "epsilon": np.inf})
    changing = {"columns": PublicColumns(RAW | OVER_TIME), "epsilon": 10.0}
    in_time = {"columns": PublicColumns(RAW_WARDS | OVER_TIME), "strata": "ward", "epsilon": 10.0}
    also = {"also": ("over_time_coef", *rows)}
    yield one("raw columns, effects over time", raw_survival, quick=True, **changing, **also)
    in_time |= {"link": "probit", "method": "out_pert", **also}
    yield one("raw columns with strata, late entries, effects over time", late_in_wards, **in_time)
    exact = {**changing, "epsilon": np.inf, "also": ("over_time_coef",)}
    yield one("raw columns, effects over time, no privacy", raw_survival, **exact)
    mala = PosteriorSampling(n_epochs=100, verbose=1)
    yield one("mala", survival, method=mala, epsilon=5.0, **stands)
    short = PosteriorSampling("psgld", n_epochs=25, batch_size=8, verbose=1)
    chain = {"method": short, "epsilon": 5.0, "diverges": True}
    yield one("psgld", survival, quick=True, link="cloglog", **chain)
    noisy = PosteriorSampling("psgld")
    errors = {"inference_share": 0.3, "link": "cloglog", "also": (*estimated, *rows, "evidence_")}
    own = {**errors, "also": (*errors["also"], "max_cumulative_hazard")}
    yield one("standard errors", survival, quick=True, epsilon=200.0, **own)
    by_class = {**own, "epsilon": 100.0, "recalibration_share": 0.0}
    yield one("late entries with standard errors", late, **by_class)
    seen = (*estimated, "row_center", "row_scale", "evidence_")
    in_classes = {**wards, **by_class, "also": (*seen, *hidden, "inference_known")}
    yield one("raw columns with strata, standard errors", in_wards, **in_classes)
    in_classes["also"] = seen
    yield one("raw columns with strata, late entries, standard errors", late_in_wards, **in_classes)
    seen = (*estimated, "over_time_coef", "row_center", "row_scale")
    changing |= {**by_class, "also": (*seen, *hidden, "inference_known")}
    yield one("raw columns, effects over time, standard errors", raw_survival, **changing)
    in_time |= {**by_class, "method": "auto", "also": (*seen, *hidden, "inference_known")}
    yield one("raw columns with strata, changing, standard errors", late_in_wards, **in_time)
    out = {"epsilon": 200.0, "method": "out_pert"}
    of_columns = {**errors, "also": (*estimated, *hidden, "inference_known", "row_center")}
    of_columns["also"] += ("row_scale", "evidence_")
    asked = {"columns": raw, "epsilon": 100.0, **of_columns}
    yield one("raw columns with standard errors", raw_survival, **asked)
    spreads = PublicColumns(RAW_SPREADS)
    yield one("raw columns, stated spreads", raw_survival, quick=True, columns=spreads)
    curves = PublicColumns(RAW_CURVES)
    yield one("curves and products", raw_survival, columns=curves)
    yield one("curves with standard errors", raw_survival, **{**asked, "columns": curves})
    table = prior_release(DPTableOne(epsilon=50.0, columns=raw), raw_columns)
    yield one("raw columns, spreads of a table", raw_survival, columns=raw, scales=table)
    yield one("output with standard errors", survival, **own, **out)
    descent = {"epsilon": 30.0, "method": "noisy_gd", "delta": 1e-4}
    yield one("descent with standard errors", survival, **errors, **descent)
    langevin = {"method": noisy, "delta": 1e-4, "epsilon": 20.0}
    also = *rows, "max_cumulative_hazard"
    yield one("noisy Langevin", survival, quick=True, also=also, **langevin)

    one = several(
        DPCompetingRisks,
        ("coef", "baseline_coef", "evidence_coef"),
        (*("coef_", "baseline_coef_", "recalibration_", "max_cumulative_hazard_"), "inference_"),
        max_time=MAX_TIME,
        n_intervals=8,
        **(stated := {"causes": ["relapse", "death"], "censored": "alive"}),
    )
    yield one("objective", competing, representative=True, checked=False)
    first = {"epsilon": 10.0, "also": (*rows, "max_cumulative_hazard", "evidence_error")}
    yield one("objective with a first look", competing, **first)
    elsewhere = DPCompetingRisks(max_time=MAX_TIME, epsilon=50.0, **stated)
    yield one("prior", competing, prior=prior_release(elsewhere, competing), **first)
    yield one("late entries", late_competing, **first)
    tables = {"epsilon": 200.0, "also": (*first["also"], "recalibration_")}
    tables |= {"recalibration_share": 0.35}
    yield one("recalibrated", competing, quick=True, **tables)
    yield one("late entries, recalibrated", late_competing, **tables)
    yield one("one cause", survival, causes=[1], censored=0, checked=True)
    yield one("no privacy", competing_moderate, epsilon=np.inf)
    yield one("raw columns", raw_competing, columns=raw)
    own = {"epsilon": 200.0, "inference_share": 0.3, "also": (*estimated, *rows)}
    own["also"] += ("max_cumulative_hazard", "evidence_error")
    yield one("late entries with standard errors", late_competing, **own)
    seen = (*own["also"], *hidden, "row_scale")
    seen = tuple(one for one in seen if one != "row_radius")  # public where columns are scaled
    asked = {**own, "columns": raw, "epsilon": 50.0, "also": (*seen, "inference_known")}
    yield one("raw columns with standard errors", raw_competing, quick=True, **asked)

    values = ("coef", "baseline_coef")
    common = {"max_time": MAX_TIME, "n_intervals": 8}
    one = several(
        published.PublishedDiscreteTimeSurvival, values, tuple(f"{v}_" for v in values), **common
    )
    yield one("objective", survival, epsilon=5.0, representative=True)
    yield one("output", survival, method="out_pert")
    yield one("psgld", survival, slow=True, **chain)
    yield one("psgld, cloglog", survival, slow=True, link="cloglog", **chain)
    yield one("psgld, probit", survival, slow=True, link="probit", **chain)
    yield one("no privacy", moderate, epsilon=np.inf)
    yield one("raw columns", raw_survival, columns=raw, epsilon=5.0, checked=False)

    held = ("estimates", "estimate", "rho", "scale")
    shown = ("rho_", "lambda_", "median_survival_time_", *(f"_released.{name}" for name in held))
    one = several(DPWeibullFitter, ("rho", "lambda", "n_events"), shown, max_time=MAX_TIME)
    yield one("ladder", durations, representative=True)
    yield one("ladder, X and y", survival, representative=True, checked=False)
    yield one("no privacy", durations, epsilon=np.inf)

    def older(kind, *also, **common):
        return several(kind, ("rho", "lambda", *also), shown, max_time=MAX_TIME, **common)

    one = older(published.PublishedWeibullFitter, "n_events")
    yield one("exact levels", durations, ladder="exact", epsilon=2.0)
    yield one("published levels", durations, n_levels=5, slow=True)
    yield older(published.LaplaceWeibullFitter)("Laplace", frame)
    yield older(published.SampleAggregateWeibullFitter)("blocks", durations, checked=True)

    held = ("estimates", "table", "fit", "law", "_groups")
    curve = ("median_survival_time_", *(f"_released.{name}" for name in held))
    one = several(DPKaplanMeierFitter, ("counts",), curve, max_time=MAX_TIME)
    yield one("everybody", durations, representative=True)
    yield one("equal bands, X and y", survival, n_intervals=6, breakpoints="equal", checked=True)
    wards = {"groups": list(WARDS), "checked": False}
    yield one("groups", grouped, quick=True, breakpoints=(2.0, 5.0), **wards)
    yield one("people", grouped_people, **wards)
    yield one("no privacy", durations, epsilon=np.inf)
    yield one("no privacy, groups", grouped, epsilon=np.inf, **wards)
    one = several(DPKaplanMeierFitter, ("counts", "entries"), curve, max_time=MAX_TIME)
    yield one("late entry", late_durations, checked=False)
    yield one("late entry, groups", late_grouped, breakpoints=(2.0, 5.0), **wards)
    yield one("late entry, no privacy", late_durations, epsilon=np.inf, checked=False)
    happens = {"causes": ["relapse", "death"], "censored": "alive", "max_time": MAX_TIME}
    one = several(DPAalenJohansenFitter, ("counts",), curve, **happens)
    yield one("two causes", causes)
    yield one("one cause", survival, causes=[1], censored=0, representative=True)
    yield one("equal bands", causes, breakpoints="equal", checked=False)
    yield one("no privacy", causes, epsilon=np.inf, checked=False)
    one = several(DPAalenJohansenFitter, ("counts", "entries"), curve, **happens)
    yield one("late entry", late_causes, checked=False)

    linear = ("coef", "intercept", "evidence_coef")
    shown = ("coef_", "intercept_", "recalibration_slope_", "inference_")
    one = several(DPLogisticRegression, linear, shown, classes=[0, 1])
    yield one("objective", labelled, representative=True)
    capped = Perturbation("out_pert", max_residual=1.0)
    yield one("output", labelled, method=capped, data_norm=2.0)
    yield one("objective without Gaussian noise", labelled, method="obj_pert", delta=1e-4)
    yield one("noisy descent", labelled, method="noisy_gd", delta=1e-4)
    of_words = {"classes": ["ill", "well", "dead"]}
    yield one("noisy descents", words, method="noisy_gd", delta=1e-4, **of_words)
    yield one("Gaussian output", labelled, method="out_pert", delta=1e-4)
    yield one("three classes of words", words, **of_words, alpha=0.01)
    yield one("people", people, quick=True)
    yield one("classes from y", three, classes=None)
    yield one("no privacy", gentle, epsilon=np.inf, alpha=0.01, checked=True)
    yield one("raw columns", raw_labelled, columns=PublicColumns(RAW, drop=None))
    spreads = PublicColumns(RAW_SPREADS, drop=None)
    yield one("raw columns, stated spreads", raw_labelled, columns=spreads)
    yield one("curves and products", raw_labelled, columns=PublicColumns(RAW_CURVES))
    piped = make_pipeline(PublicBoundsScaler(-0.5, 0.5), PolynomialFeatures(2), Normalizer())
    yield one("columns of steps", labelled, columns=piped)
    prior = prior_release(DPLogisticRegression(classes=[0, 1], epsilon=50.0), labelled)
    yield one("prior", labelled, prior=prior)

    slope = ("recalibration_slope",)
    yield one("objective with a table of margins", labelled, epsilon=20.0, also=slope)
    errors = {"inference_share": 0.2, "also": (*slope, *estimated)}
    yield one("objective with standard errors", labelled, quick=True, epsilon=200.0, **errors)
    scaled = {"columns": spreads, "epsilon": 200.0, "checked": False}
    scaled |= {"inference_share": 0.2, "also": (*errors["also"], *hidden)}
    yield one("stated spreads with standard errors", raw_labelled, **scaled)
    yield one("output with standard errors", labelled, **errors, **out)
    yield one("descent with standard errors", labelled, **errors, **descent)

    shown = ("coef_", "intercept_")
    one = several(published.PublishedLogisticRegression, linear, shown, classes=[0, 1])
    yield one("objective", labelled, fit_intercept=False, representative=True)
    yield one("three classes of words", words, **of_words, alpha=0.1)
    yield one("no privacy", gentle, epsilon=np.inf, alpha=0.01)

    poisson = extension("poisson").DPPoissonRegressor
    one = several(poisson, ("coef",), ("coef_", "intercept_"), max_residual=2.0)
    yield one("objective", outcomes, representative=True)
    yield one("raw columns", raw_outcomes, columns=raw)

    one = several(extension("histogram").DPHistogram, ("counts",), ("counts_",))
    yield one("counts", outcomes, representative=True)

    levels = ("low_level_coef", "low_level_intercept", "high_level_coef", "high_level_intercept")
    two = {"classes": [0, 1], "n_partitions": 2}
    held = tuple(f"{name}_" for name in levels)
    one = several(PrivateStackingClassifier, levels, held, **two)
    top, worth = {"combiner": "logistic"}, FeaturePartition(importances=[1.0, 2.0, 0.5])
    yield one("columns", labelled, representative=True)
    yield one("columns, stacked", labelled, partition=worth, **top)
    yield one("columns, plain votes", words, combiner="vote", classes=["ill", "well"], n_jobs=1)
    yield one("rows", labelled, partition="samples")
    rows = {"partition": "samples", "classes": [0, 1, 2], **top}
    yield one("rows, stacked", three, quick=True, checked=True, **rows)
    yield one("columns, Gaussian noise", labelled, quick=True, delta=0.05)
    yield one("rows, stacked, Gaussian noise", labelled, delta=0.05, partition="samples", **top)
    stack = PrivateStackingClassifier(n_partitions=2, classes=[0, 1])
    yield one("prior", labelled, prior=prior_release(stack, labelled))
    of_numbers = PublicColumns({"age": RAW["age"], "ill": RAW["ill"]})
    of_wards = PublicColumns({"ward": RAW["ward"]}, drop=None)
    named = [("numbers", of_numbers, ["age", "ill"]), ("wards", of_wards, ["ward"])]
    groups = [["numbers__age", "wards__ward_east"], ["numbers__ill", "numbers__ill_missing"]]
    groups[1] += ["wards__ward_west", "wards__ward_north", "wards__ward_missing"]
    grouped_columns = FeaturePartition(groups)
    steps = ColumnTransformer(named)
    yield one("raw columns", raw_labelled, columns=steps, partition=grouped_columns)
    scaled = {"columns": PublicColumns(RAW_SPREADS), "partition": FeaturePartition()}
    yield one("stated spreads", raw_labelled, **scaled, **top)
    yield one("stated spreads, rows", raw_labelled, **{**scaled, "partition": "samples"})
    yield one("classes from y", labelled, classes=None)
    yield one("no privacy", gentle, epsilon=np.inf)

    one = several(published.PublishedStackingClassifier, levels, held, **two)
    bounded = FeaturePartition(norms=[0.5, 0.7])
    yield one("columns", labelled, partition=bounded)
    yield one("columns, stacked", labelled, representative=True, **top)
    yield one("rows", three, **rows)
    yield one("no privacy", gentle, epsilon=np.inf)

    one = several(HybridMEstimator, ("weights", "curve"), ("weights_", "curve_", "estimator_"))
    yield one("auto", hybrid, representative=True)
    yield one("cells and residuals", hybrid, epsilon=500.0)
    yield one("cells", hybrid_frame, method="cells", weights="signed")
    residuals = {"method": "residuals", "weights": "nonnegative", "epsilon": 20.0}
    yield one("residuals", hybrid_frame, quick=True, **residuals)
    yield one("all", hybrid, method="all", estimator=DecisionTreeClassifier(random_state=0))
    yield one("numbers", hybrid_numbers, estimator=LinearRegression(), representative=True)
    yield one("counts", hybrid_numbers, method="cells", estimator=PoissonRegressor(), n_cells=4)
    yield one("no privacy", hybrid, epsilon=np.inf, method="all")
    yield one("raw columns", raw_hybrid, columns=raw, slow=True)
    described = {"columns": raw, "delta": 0.05, "slow": True}
    yield one("raw columns, Gaussian noise", raw_hybrid, **described)
    values = ("weights", "curve", "public_index")
    one = several(HybridMEstimator, values, (*(f"{v}_" for v in values), "estimator_"))
    yield one("subset", hybrid, quick=True, method=SubsetSelection(candidate_sizes=[5, 20]))
    curve = SubsetSelection("noisy_curve", candidate_sizes=[5, 20])
    yield one("curve", hybrid_numbers, method=curve, estimator=LinearRegression())

    shown = ("weights_", "estimator_")
    bins = {"n_bins": 2, "bounds": [(-0.5, 0.5)] * 3}  # of as many columns as there are
    one = several(published.PerturbedHistogramMEstimator, ("weights",), shown, **bins)
    yield one("labels", labelled, outcome=[0, 1], representative=True, checked=False)
    yield one("numbers", numbers, outcome=[0.0, 1.0], estimator=LinearRegression())
    yield one("no privacy", labelled, outcome=[0, 1], epsilon=np.inf)
    scaler = PublicBoundsScaler(-0.5, 0.5, missing="midpoint")
    age = {"columns": ColumnTransformer([("age", scaler, ["age"])]), "bounds": [(-1.0, 1.0)]}
    yield one("raw columns", raw_labelled, outcome=[0, 1], **age)

    one = several(DPTableOne, ("counts",), ("_summary",), columns=raw)
    by_ward = {"by": "ward", "representative": True, "checked": False}
    yield one("raw columns by ward", raw_columns, **by_ward)
    yield one("raw columns by public ward", of_one_ward, by="ward", by_is_public=True, quick=True)
    yield one("raw columns, Gaussian noise", raw_columns, delta=0.05, grid={"age": 3}, quick=True)
    yield one("raw columns, no privacy", raw_columns, epsilon=np.inf)

    one = several(PublicBoundsScaler, (), ())
    yield one("errors", columns, representative=True)
    yield one("midpoints", columns, missing="midpoint", lower=-2.0, upper=3.0)

    one = several(PublicColumns, (), (), columns=RAW)
    yield one("raw columns", raw_columns, representative=True, checked=False)
    yield one("raw columns, all categories", raw_columns, drop=None, missing="midpoint")
    yield one("raw columns, a gap as a category", raw_columns, drop="if_binary", missing="category")

    def search(name, estimator, grid, data, values, **parameters):
        if parameters.get("strategy") != "repeat":
            parameters = with_strategy({"expected_runs": 2.0, **parameters})
        shown = ("best_estimator_", "best_index_", "best_params_")
        parameters |= {"param_grid": grid, "estimator": estimator, "epsilon": 4.0}
        return several(PrivateSearchCV, values, shown)(name, data, **parameters)

    logistic = DPLogisticRegression(classes=[0, 1])
    alphas = {"alpha": [0.01, 1.0]}
    yield search("repeat", logistic, alphas, labelled, linear, representative=True)
    yield search("split", logistic, alphas, labelled, linear, strategy="split", verbose=1)
    descent = clone(logistic).set_params(method="noisy_gd")
    gaussian = {"delta": 1e-4, "eta": 0.0}
    yield search("Gaussian runs", descent, alphas, labelled, linear, **gaussian)
    again = {**gaussian, "strategy": "split", "refit": 0.4}
    yield search("Gaussian split", descent, alphas, labelled, linear, quick=True, **again)
    refit = {"refit": 0.5, "scoring": "brier", "checked": True}
    yield search("refit", logistic, alphas, labelled, linear, **refit)
    yield search("classes from y", DPLogisticRegression(), alphas, labelled, linear)
    piped = make_pipeline(PublicBoundsScaler(), logistic)
    grid = {"dplogisticregression__alpha": [0.01, 1.0]}
    yield search("pipeline", piped, grid, labelled, linear)
    hazard = DPDiscreteTimeSurvival(max_time=MAX_TIME, n_intervals=8)
    steps = make_pipeline(raw, logistic)
    yield search("raw pipeline", steps, grid, raw_labelled, linear, slow=True)
    described = clone(logistic).set_params(columns=raw)
    ways = {"columns__missing": ["error", "midpoint"]}
    yield search("raw columns", described, ways, raw_labelled, linear, slow=True)
    ways = {"method": ["obj_pert", "out_pert"]}
    values = ("coef", "baseline_coef", "evidence_")
    yield search("survival", hazard, ways, frame, values, quick=True)
    weibull = DPWeibullFitter(max_time=MAX_TIME)
    values = ("rho", "lambda", "n_events")
    yield search("Weibull", weibull, {"omega": [4.0, 6.0]}, survival, values, scoring="brier")
    yield search("hybrid", HybridMEstimator(), {"method": ["cells", "all"]}, hybrid, ("weights",))
    yield search("drawn", logistic, alphas, labelled, linear, n_candidates=2, strategy="repeat")


SETTINGS = list(_settings())
PRIVATE = [setting for setting in SETTINGS if setting.is_private]
PROTECTED = [setting for setting in PRIVATE if np.isfinite(setting.epsilon)]
REPRESENTATIVE = [setting for setting in SETTINGS if setting.representative]
CHECKED = [s for s in SETTINGS if (s.representative if s.checked is None else s.checked)]

#: Inner estimators for the fuzz, some of which cannot be used.
INNER = (
    *(None, LogisticRegression(C=0.1), DecisionTreeClassifier(max_depth=2, random_state=0)),
    *(LinearRegression(), KNeighborsClassifier(), LogisticRegression(C=-1.0), LogisticRegression),
    "LogisticRegression",
)
