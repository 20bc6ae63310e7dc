"""Nothing is "proved" by existing: what a theorem rests on must be registered, class by class."""

import inspect
import math
import pkgutil
import re
import warnings
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pytest

import skdpsurv
from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, PrivacyAccountant
from skdpsurv.dp import BudgetExceededError, PrivacyLeakWarning
from skdpsurv.dp.plan import Measurement, NoisySum, Plan
from skdpsurv.dp.proofs import PROOFS, is_proved, name_of, status_of
from skdpsurv.likelihoods.links import LINKS, CLogLog, Link
from skdpsurv.mechanisms.sums import HISTOGRAM, Histogram, Integers
from skdpsurv.mechanisms.vector_noise import SphericalLaplace
from tests.docs.test_claims import ROWS, anchors, imported, path_of
from tests.support.extensions import PROVED, extension

RNG = np.random.default_rng(2)
N = 200
X = RNG.uniform(-0.5, 0.5, (N, 2))
Y = np.array(
    [*zip(RNG.random(N) < 0.5, RNG.uniform(0.0, 5.0, N), strict=True)],
    dtype=[("event", bool), ("time", float)],
)
#: Without those of classes in tests.
OURS = {name: theorem for name, theorem in PROOFS.items() if name.startswith("skdpsurv.")}


def everything():
    """Yield all classes of the package that a measurement may rest on."""
    for module in pkgutil.walk_packages(skdpsurv.__path__, "skdpsurv."):
        if not module.name.startswith("skdpsurv.cli"):
            import_module(module.name)
    pending = [Measurement, Integers, Link]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind.__module__.startswith("skdpsurv.") and not inspect.isabstract(kind):
            yield kind


def test_each_registered_class_exists_and_its_theorem_has_a_claim():
    claimed = {link for row in ROWS for link in row.theorems}
    for name, theorem in OURS.items():
        page, _, anchor = theorem.partition("#")
        assert anchor in anchors(path_of(page)), theorem
        assert theorem in claimed, theorem
        assert name_of(imported(name)) == name
        assert is_proved(imported(name)), name


def test_a_claim_of_its_theorem_names_each_registered_class_or_its_module():
    for name, theorem in OURS.items():
        code = [found for row in ROWS for found in row.code if theorem in row.theorems]
        assert {name, name.rpartition(".")[0]} & set(code), name


#: Not private, without claims of their own, or made of what is registered.
WITHOUT = {
    "skdpsurv.descriptive.column_tables.ExactTableCounts",
    "skdpsurv.evaluation.evaluation.Exactly",
    "skdpsurv.published.hazards.PublishedDraw",
    "skdpsurv.survival.curves.event_counts.ExactEntryCounts",
    "skdpsurv.survival.curves.event_counts.ExactEventCounts",
    "skdpsurv.survival.hazards.causes.CausesMaximum",
    "skdpsurv.survival.hazards.maximum.HazardMaximum",
    "skdpsurv.survival.weibull.weibull_plan.WeibullMaximum",
}


def test_each_class_of_the_package_is_registered_or_named_here():
    bases = {Link, HISTOGRAM.__class__.__base__}
    found = {name_of(kind) for kind in everything() if kind not in bases}
    assert found - set(OURS) == WITHOUT
    assert not WITHOUT & set(OURS)


class Doubtful(CLogLog):
    """A link whose constants are 10,000 times too small."""

    name = "doubtful"
    event_curvature = CLogLog.event_curvature / 1e4

    def curvature_of_slope(self, slope):
        return super().curvature_of_slope(slope) / 1e4


class Vouched(Doubtful):
    asserted = True


class Heir(Vouched):
    """Nobody says anything of this one."""


@pytest.mark.parametrize(
    ("link", "status"), [(CLogLog(), "proved"), (Doubtful(), "none"), (Vouched(), "asserted"),
                         (Heir(), "none")],
)  # fmt: skip
@pytest.mark.parametrize("method", ["obj_pert", "out_pert", "noisy_gd"])
def test_a_link_is_what_is_registered_of_it(monkeypatch, link, status, method):
    monkeypatch.setitem(LINKS, "cloglog", link)
    delta = 1e-6 if method == "noisy_gd" else 0.0
    ledger = PrivacyAccountant(5.0, 1e-5)
    model = DPDiscreteTimeSurvival(
        method=method, delta=delta, max_time=5.0, data_norm=1.0, link="cloglog", accountant=ledger
    )
    fit = model.prepare(X, Y)
    assert fit.guarantee.status == status
    asserted = [text for text in fit.guarantee.assumptions if "asserted by its author" in text]
    assert [name_of(type(link)) in text for text in asserted] == [True] * (status == "asserted")
    if status == "proved":
        fit.charge()
        assert ledger.spent() == 1.0
        return
    with pytest.raises(BudgetExceededError):
        fit.read()
    model.set_params(accountant=PrivacyAccountant(5.0, 1e-5, rehearsal=True))
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        found = model.fit(X, Y)
    said = [str(one.message) for one in given if one.category is PrivacyLeakWarning]
    assert [f"registered about {name_of(type(link))}" in text for text in said] == (
        [True] if status == "none" else []
    )
    assert found.release_.guarantee.status == status
    again = type(found.release_).from_json(found.release_.to_json())
    assert again.guarantee.status == status
    assert model.accountant.rehearsed() == 1.0


def test_without_privacy_nothing_is_asserted(monkeypatch):
    monkeypatch.setitem(LINKS, "cloglog", Vouched())
    model = DPDiscreteTimeSurvival(math.inf, max_time=5.0, data_norm=1.0, link="cloglog")
    fit = model.prepare(X, Y)
    assert fit.guarantee.status == "none"
    assert fit.plan.unproved == []


class TestParts:
    """A query, a law and a loss of one's own, in measurements that are registered."""

    def test_a_query(self):
        class Wider(Histogram):
            pass

        @dataclass(frozen=True, kw_only=True)
        class Own(NoisySum):
            name, query = "own", HISTOGRAM

            def exact_answer(self, known, records):
                return records

            def postprocess(self, known, noisy):
                return {}

        assert status_of([Histogram]) == "proved"
        assert status_of([Wider]) == "none"
        plan = Plan(Own(price=1.0), 1.0)
        assert plan.guarantee("proved").status == "none"
        assert plan.unproved == [Own]
        Own.asserted = True
        assert plan.guarantee("proved").status == "asserted"
        assert plan.guarantee("seeded").status == "seeded"
        Own.query = Wider()
        assert plan.unproved == [Own, Wider]
        assert plan.guarantee("proved").status == "none"

    def test_no_class_can_speak_for_itself(self):
        class Own(NoisySum):
            name, query, price = "own", HISTOGRAM, 1.0
            status = "proved"

            def rests_on(self):
                return [Histogram]

            exact_answer = postprocess = None

        plan = Plan(Own(price=1.0), 1.0)
        assert plan.guarantee("proved").status == "none"
        assert plan.unproved == [Own]

    def test_what_calibrates_noise(self):
        class Less:
            @classmethod
            def calibrated_to(cls, dimension, sensitivity, epsilon):
                return SphericalLaplace.calibrated_to(dimension, sensitivity, 1e4 * epsilon)

        own = type("LessNoise", (DPLogisticRegression,), {"_noise_law": Less})
        fit = own(classes=[0, 1], data_norm=1.0).prepare(X, np.arange(N) % 2)
        assert fit.guarantee.status == "none"

    def test_a_law_of_noise(self):
        law = extension("product_laplace").ProductLaplace

        class Other(law):
            pass

        for kind, status in ((law, "proved"), (Other, "none")):
            own = type("OwnNoise", (DPLogisticRegression,), {"_noise_law": kind})
            fit = own(classes=[0, 1], data_norm=1.0).prepare(X, np.arange(N) % 2)
            assert fit.guarantee.status == status, kind

    def test_a_loss(self, monkeypatch):
        poisson = extension("poisson").DPPoissonRegressor(data_norm=1.0)
        fit = poisson.prepare(X, np.arange(N) % 3)
        assert fit.guarantee.status == "proved"
        monkeypatch.delitem(PROOFS, "poisson.CappedPoisson")
        fit = poisson.prepare(X, np.arange(N) % 3)
        assert fit.guarantee.status == "asserted"
        assert any("poisson.CappedPoisson" in text for text in fit.guarantee.assumptions)


def test_a_name_is_not_enough():
    """The class that the registry names, and not one that is called so."""
    false = type("CLogLog", (CLogLog,), {"__module__": CLogLog.__module__})
    assert name_of(false) == name_of(CLogLog)
    assert not is_proved(false)


def test_examples_outside_of_these_tests_are_asserted():
    """Their classes say so themselves."""
    for name in PROVED:
        file, _, kind = name.partition(".")
        assert getattr(extension(file), kind).asserted is True
    assert re.fullmatch(r"[\w.]+", name)
