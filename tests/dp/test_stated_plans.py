"""What a release states of its noise is enough to compute the guarantee, without the package."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest

from skdpsurv import DPWeibullFitter, Release
from skdpsurv.dp.plan import AdaptiveChoice, Sequential, all_drawn
from tests.support import checks
from tests.support.registry import PRIVATE

SETTINGS = [setting for setting in PRIVATE if not setting.slow]


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
        case "spherical laplace", "L2":
            assert parts[0] <= Fraction(prices[0]["epsilon"]) * near
        case "spherical gaussian", "L2":
            assert parts[0] <= Fraction(prices[0]["mu"]) * near
        case law:
            pytest.fail(f"unknown law {law}")


@checks.each(SETTINGS, quick=True)
def test_the_guarantee_follows_from_what_is_stated(setting):
    data = setting.data()
    with checks.quiet():
        fitted = checks.quietly(setting.make(3).fit, data.X, data.y, **data.options)
    content = json.loads(fitted.release_.to_json())
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


def test_crafted_plans_and_noise_are_refused():
    good = {"counts": {"law": "laplace", "variance": 1.0}}
    with checks.quiet():
        release = DPWeibullFitter(1.0, max_time=1.0, random_state=0).fit([0.5] * 9).release_
    content = json.loads(release.to_json())
    Release.from_json(json.dumps(content | {"noise": good}))
    deep = {}
    for _ in range(2000):
        deep = {"nodes": [deep]}
    with pytest.raises(ValueError, match="deep"):
        replace(release, plan=deep)
    for plan in (3, "x", [1]):
        with pytest.raises(ValueError, match="JSON of a Release"):
            Release.from_json(json.dumps(content | {"plan": plan}))
    for noise in ({"counts": {}}, {"counts": {"law": 1, "variance": 1.0}}, {"counts": 3}, [], None):
        with pytest.raises(ValueError, match=r"Release|noise"):
            Release.from_json(json.dumps(content | {"noise": noise}))
    for variance in (-1.0, True, "1", 10**400, None):
        wrong = json.dumps(
            content | {"noise": {"counts": {"law": "laplace", "variance": variance}}}
        )
        with pytest.raises(ValueError, match="noise"):
            Release.from_json(wrong)
    assert math.isfinite(content["noise"]["n_events"]["variance"])
