"""What a release states of its noise is enough to compute the guarantee, without the package."""

import itertools
import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from skdpsurv import (
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    PrivacyAccountant,
    PrivateStackingClassifier,
    Release,
)
from skdpsurv.dp.guarantee import immutable
from skdpsurv.dp.plan import AdaptiveChoice, Plan, Sequential, all_drawn
from skdpsurv.mechanisms.sums import Integers
from tests.support import checks
from tests.support.extensions import extension
from tests.support.registry import PRIVATE


def one_after_another(costs):
    return [list(itertools.chain(*each)) for each in itertools.product(*costs)]


def paid(price):
    """Return the lists of prices of a price, one for each set of records that share nobody."""
    if "sequence" in price:
        return one_after_another(map(paid, price["sequence"]))
    if "disjoint" in price:
        return [one for each in price["disjoint"] for one in paid(each)]
    return [[price]]


def cost(node):
    """Return the same of a node of a stated plan."""
    if node["node"] == "measurement":
        return paid(node["price"])
    if "total" in node:
        return paid(node["total"])
    inside = list(map(cost, node["nodes"]))
    if node["node"] == "sequence":
        return one_after_another(inside)
    apart = [one for each in inside for one in each]
    if node["node"] == "disjoint":
        return apart
    if all("epsilon" in price for one in apart for price in one):
        dearest = max(sum(Fraction(p["epsilon"]) for p in one) for one in apart)
        return [[{"epsilon": (2 + Fraction(node["eta"])) * dearest}]]
    return [[{**max((p for one in apart for p in one), key=lambda p: p["mu"]), "runs": True}]]


def measurements(node):
    """Yield stated measurements."""
    if node["node"] == "measurement":
        yield node
    for one in node.get("nodes", ()):
        yield from measurements(one)


def listed(value):
    return value if isinstance(value, list) else [value]


def check_noise(one):
    """Check that the noise of a measurement hides its sensitivity for its price."""
    (prices,) = paid(one["price"])
    scales, moves = (list(map(Fraction, listed(one[name]))) for name in ("scale", "sensitivity"))
    moves = moves * len(scales) if len(moves) < len(scales) else moves
    parts = [move / scale for move, scale in zip(moves, scales, strict=True)]
    near = 1 + Fraction(1, 10**15)  # vectors: a proof in real numbers has room for more
    match one["law"], one["norm"]:
        case "laplace", "L1":
            assert sum(parts) <= sum(Fraction(price["epsilon"]) for price in prices)
        case "gaussian", "squared L2":
            squares = [move / scale**2 for move, scale in zip(moves, scales, strict=True)]
            assert sum(squares) <= sum(Fraction(price["mu"]) ** 2 for price in prices)
        case ("spherical laplace", "L2") | ("semidefinite laplace", "traces"):
            assert parts[0] <= Fraction(prices[0]["epsilon"]) * near
        case "spherical gaussian", "L2":
            assert parts[0] <= Fraction(prices[0]["mu"]) * near
        case law:
            pytest.fail(f"unknown law {law}")


@checks.each(PRIVATE, checks.PLANS)
def test_the_guarantee_follows_from_what_is_stated(setting):
    content = json.loads(checks.seeded(setting).release_.to_json())
    guarantee, every = content["guarantee"], cost(content["plan"])
    if guarantee["epsilon"] == "inf":
        laws = {one["law"] for one in measurements(content["plan"])}
        assert all(price == {"epsilon": "inf"} for one in every for price in one) or laws == {
            "none"
        }
        return
    for one in every:
        if all("epsilon" in price for price in one):
            assert sum(Fraction(p["epsilon"]) for p in one) <= Fraction(guarantee["epsilon"])
        elif not any("runs" in price for price in one):
            rho = sum(Fraction(next(iter(price.values()))) ** 2 / 2 for price in one)
            assert rho <= Fraction(guarantee["rho"])
    noisy = [one for one in measurements(content["plan"]) if "variance" in one]
    for one in noisy:
        check_noise(one)
    given = {
        one["gives"]: {k: one[k] for k in ("law", "variance")} for one in noisy if "gives" in one
    }
    assert content["noise"] == given or "fit_plan" in content
    assert content["noise"].keys() <= content["values"].keys()


def test_a_choice_is_stated_as_it_was_made():
    """The plan before the fit holds the first possible choice, that of the fit the one taken."""
    fitter = DPWeibullFitter(1.0, max_time=1.0)
    with checks.quiet():
        fit = fitter.prepare([0.9] * 3000, [1, *[0] * 9] * 300)
        before = all_drawn(fit.plan.tree)
        stated = json.loads(fit.run().release_.to_json())["plan"]
    assert isinstance(fit.plan.tree, Sequential)
    assert isinstance(fit.plan.tree.nodes[-1], AdaptiveChoice)
    taken, first = (len(list(measurements(plan))) for plan in (stated, before))
    assert (taken, first) == (5, 7)  # no correction with so few events
    assert cost(stated) == cost(before)


def test_a_secret_number_of_runs_is_not_stated():
    setting = next(setting for setting in PRIVATE if str(setting) == "PrivateSearchCV: repeat")
    data, stated = setting.data(), set()
    for seed in range(4):
        with checks.quiet():
            model = checks.quietly(setting.make(seed).fit, data.X, data.y, **data.options)
        stated.add(json.dumps(json.loads(model.release_.to_json())["plan"], sort_keys=True))
    assert len(stated) == 1


def crafted(content, **changes):
    """Refuse the file of a release with other plan or noise."""
    with pytest.raises(ValueError, match=r"plan|noise|JSON of a Release|deep|fit_guarantee"):
        Release.from_json(json.dumps(content | changes))


def test_crafted_plans_and_noise_are_refused():
    with checks.quiet():
        release = DPWeibullFitter(1.0, max_time=1.0, random_state=0).fit([0.5] * 9).release_
    content = json.loads(release.to_json())
    own = content["noise"]["n_events"]
    deep = {"node": "sequence"}
    for _ in range(150):
        deep = {"node": "sequence", "nodes": [deep]}
    deeper = {"node": "sequence"}
    for _ in range(3000):
        deeper = {"node": "sequence", "nodes": [deeper]}
    for plan in (deep, deeper):
        with pytest.raises(ValueError, match="deep"):
            replace(release, plan=plan)
    for nodes in ("xx", [3], [{"nodes": []}], [{"node": "measurement", "gives": "counts"}], None):
        crafted(content, plan={"node": "sequence", "nodes": nodes})
    for plan in (3, "x", [1], {}):
        crafted(content, plan=plan)
    for noise in ({"counts": {}}, {"counts": 3}, [], None, {}, {"n_events": own, "counts": own}):
        crafted(content, noise=noise)
    for variance in (-1.0, True, "1", 10**400, None, 0.9 * own["variance"]):
        crafted(content, noise={"n_events": own | {"variance": variance}})
    for law in ("gaussian", "none", "sum", 1, None):
        crafted(content, noise={"n_events": own | {"law": law}})
    infinite = json.dumps(content).replace('"node"', '"more": 1e999, "node"')
    with pytest.raises(ValueError, match="plan of a release must hold numbers"):
        Release.from_json(infinite)
    assert math.isfinite(own["variance"])


def test_noise_without_a_plan_is_that_of_an_older_layout():
    """A curve of a file that states no plan: its table's noise follows from epsilon."""
    with checks.quiet():
        fitter = DPKaplanMeierFitter(0.1, max_time=1.0, random_state=0).fit([0.5] * 99)
    content = json.loads(fitter.release_.to_json()) | {"plan": None}
    assert Release.from_json(json.dumps(content)).noise == fitter.release_.noise
    for noise in ({"law": "laplace", "variance": 8.0}, {"law": "sum", "variance": 800.0}):
        crafted(content, noise={"counts": noise})
    crafted(content, fit_guarantee=content["guarantee"] | {"epsilon": 50.0})
    older = {name: v for name, v in content.items() if name not in ("plan", "fit_plan", "noise")}
    values = content["values"] | {"count_variance": 1e-6}
    read = Release.from_json(json.dumps(older | {"schema_version": 2, "values": values}))
    assert read.noise["counts"]["variance"] == pytest.approx(800.0)


def test_long_names_in_plans_are_no_work():
    """The place of a value is put together for a message alone, and shortened there."""
    content = {"x" * 10**6: [0.0] * 10_000, "y": [math.nan]}
    with pytest.raises(ValueError, match=r"^plan\['y'\] must not hold NaN"):
        immutable("plan", content)
    with pytest.raises(ValueError, match=r"^plan\['x{40}'\] must not") as refused:
        immutable("plan", {"x" * 10**6: [math.nan]})
    assert len(str(refused.value)) < 100


def test_models_of_several_classes_are_stated_with_their_parts():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (90, 3)), np.arange(90) % 3
    stack = {"classes": [0, 1, 2], "partition": "samples", "random_state": 0}
    with checks.quiet():
        one = DPLogisticRegression(3.0, classes=[0, 1, 2], random_state=0).fit(X, y).release_
        below = PrivateStackingClassifier(3.0, **stack).fit(X, y).release_
    (fit,) = one.plan["nodes"][0]["fits"] if "nodes" in one.plan else one.plan["fits"]
    assert (fit["part"], fit["models"]) == (0, 3)
    found = [leaf for leaf in measurements(below.plan) if "fits" in leaf]
    parts = [fit["part"] for fit in found[0]["fits"]]
    assert parts == list(range(len(parts)))
    assert {fit["models"] for fit in found[0]["fits"]} == {3}


def test_what_a_release_could_not_state_is_refused_before_the_charge():
    ledger, module = PrivacyAccountant(np.inf), extension("histogram")

    @dataclass(frozen=True)
    class Own(Integers):
        what: Any
        sensitivity = 2

    class Counts(module.Counts):
        asserted = True
        query = Own(len)

    class Histogram(module.DPHistogram, released=False):
        def _plan(self, shape):
            made = Counts(price=1.0, edges=np.linspace(0.0, 1.0, 11))
            return Plan(made, 1.0, inputs={"n_records": shape.n_records})

    with pytest.raises(TypeError, match="must be made of numbers"):
        Histogram(1.0, accountant=ledger).fit(np.zeros((30, 1)))
    assert ledger.entries().empty
