"""The verifier alone: what a release states, forgeries of it, and where it has no rule."""

import copy
import importlib
import json
import math
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from skdpsurv import DPDiscreteTimeSurvival, DPKaplanMeierFitter
from skdpsurv import verify as verifier
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.evaluation import SurvivalEvaluation, private_survival_metrics
from skdpsurv.verify import verify
from tests.support import checks
from tests.support.registry import PRIVATE

#: Words, descriptions of the data, ends of ranges, and prices that are stated once more.
WORDS = """name mechanism source assumptions not_covered alpha calibration classes data_norm by grid
    fit_intercept intercept_scaling public_slope max_time n_knots prior_event_rate sampler step_size
    temperature strategy n_candidates n_scored omega left_censored max_shape shape_fraction causes
    censored breakpoints groups weights combiner partition feature_groups estimator method n_private
    n_public n_cells candidate_sizes by_is_public n_columns prior scales max_cumulative_hazard
    n_bins bounds outcome n_blocks n_records late_entry n_intervals from to epsilon_counts
    epsilon_residuals mu_residuals epsilon_recalibration mu_recalibration epsilon_inference status
    n_levels n_partitions over_time"""
HARMLESS = set(WORDS.split())
#: Where a tolerance is the least there is, nothing depends on some; of a table, one bound is used.
HARMLESS |= {"center_loss", "center_norm", "loss_at_zero", "weighted", "diameter", "height"}
HARMLESS |= {"distance", "size", "width"}


def released(setting):
    data = setting.data()
    with checks.quiet():
        fitted = checks.quietly(setting.make().fit, data.X, data.y, **data.options)
    return fitted.release_.to_json()


def expected(setting):
    """Return why a setting is not covered, or None."""
    name = str(setting)
    for words, reason in (
        ("no privacy", "epsilon is infinite"),
        ("without privacy", "epsilon is infinite"),
        ("classes from y", "the status is 'none'"),
        ("spreads of a table", "the status is 'seeded'"),
        ("DPPoissonRegressor", "a loss of the kind CappedPoisson"),
        ("PublishedDiscreteTimeSurvival: psgld", "the status is 'none'"),
        ("psgld", "the status is 'asymptotic'"),
        ("mala", "the status is 'asymptotic'"),
        ("StackingClassifier: rows", None),
        ("spreads, rows", None),
        ("StackingClassifier", "models of one part"),
        ("Gaussian runs", "the best of a random number of runs with a delta"),
    ):
        if words in name:
            return reason
    return None


@checks.each(PRIVATE, checks.PLANS)
def test_every_setting_is_verified_or_has_a_reason(setting):
    verdict, reason = verify(released(setting)), expected(setting)
    assert verdict.word == ("verified" if reason is None else "not covered"), verdict.reason
    assert verdict.granted if reason is None else verdict.reason.startswith(reason)


def leaves(value, path=()):
    """Yield the places of numbers and words, and of the last entries of lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in items:
        if isinstance(one, dict | list) and one:
            yield from leaves(one, (*path, key))
            if isinstance(one, list):
                yield (*path, key)
        else:
            yield (*path, key)


def forged(release, path, rng):
    """Return a release with another value at a place, or an entry less."""
    found = copy.deepcopy(release)
    *way, last = path
    node = found
    for key in way:
        node = node[key]
    value = node[last]
    if isinstance(value, list) and value:
        value.pop() if rng.random() < 0.5 or len(value) > 1 else value.append(value[0])
    elif isinstance(value, bool):
        node[last] = not value
    elif isinstance(value, int):
        node[last] = rng.choice([value // 2, 2 * value + 1, value + 1 + abs(value) // 10**6])
    elif isinstance(value, float):
        node[last] = rng.choice([0.5 * value, 0.999 * value, 2.0 * value + 1e-3, value + 1.0])
    else:
        node[last] = rng.choice(["forged", 1.0])
    return found


def harmless(path, old, new):
    """Say whether a forgery leaves every promise true: more noise, or what nothing depends on."""
    if {*path} & HARMLESS or old == new:
        return True
    if path[-2:] == ("output_noise", "scale"):  # the solver's share is not stated
        return new > old
    if path[-1] == "square_weight":  # squares that count less move less
        return new < old
    if path[-1] == "n_functions":  # the rank is no more than the number of intervals
        return new > old
    # Ridges of descents, orders of a curve, and how many runs there are on average.
    return path[-1] in ("kappa", "gamma") or "renyi" in path


def at(value, path):
    for key in path:
        value = value[key]
    return value


def forgeries(text, number, seed):
    """Yield forgeries of a release, drawn by a seed from all fields that matter."""
    rng, release = random.Random(seed), json.loads(text)
    parts = ("guarantee", "plan", "fit_guarantee", "fit_plan", "noise")
    places = [*leaves({name: release[name] for name in parts if release[name]})]
    for path in rng.sample(places, min(number, len(places))):
        other = forged(release, path, rng)
        old = copy.deepcopy(at(release, path))
        if not harmless(path, old, at(other, path)):
            yield path, other


@checks.each([s for s in PRIVATE if "Published" not in str(s)])
def test_forgeries_are_refuted(setting):
    text = released(setting)
    if verify(text).word != "verified":
        return
    for path, other in forgeries(text, 40, seed=63):
        assert verify(json.dumps(other)).word != "verified", (path, at(json.loads(text), path))


def half(real):
    return lambda *arguments, **options: 0.5 * real(*arguments, **options)


#: Defects of calibrations: a setting, a function, and what takes its place.
DEFECTS = [
    ("DPKaplanMeierFitter: everybody", "sums.least_scale", half),
    ("DPTableOne: raw columns, Gaussian noise", "sums.least_deviation", half),
    ("DPWeibullFitter: ladder", "sums.Sum.sensitivity", lambda real: property(lambda one: 1)),
    ("HybridMEstimator: residuals", "moments.MeanOfRows.sensitivity", lambda real: 0.01),
    ("DPDiscreteTimeSurvival: objective", "objective.curvature_cost", half),
    ("DPDiscreteTimeSurvival: objective", "objective.MARGIN", lambda real: 0.99),
    ("DPDiscreteTimeSurvival: output", "output_perturbation.MARGIN", lambda real: 0.99),
    ("DPLogisticRegression: noisy descent", "descent.apart", half),
    ("DPDiscreteTimeSurvival: objective", "hazard.gradient_sensitivity", half),
    ("DPCompetingRisks: objective", "competing_hazard.stacked_sensitivity", half),
    (
        "DPDiscreteTimeSurvival: raw columns with standard errors",
        "moments.ColumnMoments.__init__.__defaults__",  # the weight of squares
        lambda real: (1.7,),
    ),
    (
        "DPDiscreteTimeSurvival: descent with standard errors",
        "links.CLogLog.event_curvature",
        lambda real: 0.2,
    ),
]


@pytest.mark.parametrize(("name", "place", "planted"), DEFECTS)
def test_planted_defects_are_found(monkeypatch, name, place, planted):
    module, *way, last = place.split(".")
    room = "likelihoods" if module in ("hazard", "competing_hazard", "links") else "mechanisms"
    owner = importlib.import_module(f"skdpsurv.{room}.{module}")
    for step in way:
        owner = getattr(owner, step)
    monkeypatch.setattr(owner, last, planted(getattr(owner, last)))
    assert verify(released(next(s for s in PRIVATE if str(s) == name))).word == "refuted"


def test_an_evaluation_is_verified():
    data = make_discrete_time_survival(200, 1, random_state=0)
    model = DPDiscreteTimeSurvival(1.0, max_time=1.0, n_intervals=5).fit(data.X, data.y)
    found = private_survival_metrics(model, data.X, data.y, epsilon=1.0, max_time=1.0)
    text = json.dumps(found.to_dict())
    assert SurvivalEvaluation.from_dict(json.loads(text)) == found
    assert verify(text).reason == "an evaluation, epsilon 1, replace-one, proved"
    other = json.loads(text)
    other["plan"]["nodes"].pop()
    assert verify(json.dumps(other)).word == "refuted"
    del other["plan"]
    assert verify(json.dumps(other)).word == "not covered"
    assert SurvivalEvaluation.from_dict(other).plan is None


def noisy(mu):
    """State a histogram with Gaussian noise."""
    query = {"kind": "Histogram", "sensitivity": 2}
    how = {"node": "measurement", "law": "gaussian", "name": "counts", "norm": "squared L2"}
    how |= {"lattice": 1.0, "sensitivity": 2.0, "scale": math.sqrt(2.0) / mu}
    return how | {"price": {"mu": mu}, "query": query, "variance": 2.0 / mu**2}


def test_a_price_is_of_the_noise_that_it_pays_for():
    """A mu is no epsilon and a smaller mu, and no epsilon is many small ones, of less rho."""
    tree = verifier.Tree
    parts = {"sequence": [{"epsilon": 0.8}, {"mu": 0.6}]}
    assert tree(verifier.read(json.dumps(noisy(1.0)))).cost.rho == 0.5
    with pytest.raises(verifier.EndError, match="other noise"):
        tree(verifier.read(json.dumps(noisy(1.0) | {"price": parts})))
    small = noisy(1.0) | {"law": "laplace", "norm": "L1", "scale": 2.0, "variance": 8.0}
    assert tree(verifier.read(json.dumps(small | {"price": {"epsilon": 1.0}}))).cost
    small["price"] = {"sequence": [{"epsilon": 0.125}] * 8}
    with pytest.raises(verifier.EndError, match="other noise"):
        tree(verifier.read(json.dumps(small)))


def test_people_who_spend_most_spend_most_in_each_unit():
    """The larger of two costs of different people is one of them, or there is no verdict."""
    costs = [verifier.Tree(verifier.read(json.dumps(noisy(mu)))).cost for mu in (1.0, 2.0)]
    assert verifier.disjoint(costs).rho == 2.0
    with pytest.raises(verifier.EndError, match="no set of people"):
        verifier.disjoint([*costs, verifier.Spent.of("epsilon", Fraction(10))])


def settled(release):
    """Return a forged release whose epsilon is what its plan costs, with no other price stated."""
    cost = verifier.Tree(verifier.read(json.dumps(release["plan"]))).cost
    promised = release["guarantee"]
    promised["epsilon"] = float(cost.epsilon)
    inputs = promised["public_inputs"]
    promised["public_inputs"] = {k: v for k, v in inputs.items() if "epsilon" not in k}
    return json.dumps(release)


@pytest.mark.parametrize(
    "name",
    [
        "DPDiscreteTimeSurvival: objective with a first look",
        "DPKaplanMeierFitter: late entry",
        "DPLogisticRegression: objective with a table of margins",
        "HybridMEstimator: subset",
        "PublishedWeibullFitter: exact levels",
    ],
)
def test_measurements_of_the_same_people_are_no_split(name):
    """Only searches and stacks split people: elsewhere the largest cost is not that of all."""
    release = json.loads(released(next(s for s in PRIVATE if str(s) == name)))
    release["plan"]["node"] = "disjoint"
    release["plan"].pop("total", None)
    with pytest.raises(verifier.EndError, match="does not state its n_records"):
        settled(release)
    release["guarantee"]["public_inputs"] |= {"n_low_level": 47, "n_high_level": 0}
    assert verify(json.dumps(release)).word == "refuted"


def test_two_fits_of_the_same_people_are_no_split():
    name = "DPLogisticRegression: objective"
    release = json.loads(released(next(s for s in PRIVATE if str(s) == name)))
    release["plan"] = {"node": "disjoint", "nodes": [release["plan"], release["plan"]]}
    release["noise"] = {}
    assert "n_records is not" in verify(settled(release)).reason


def search(name):
    return json.loads(released(next(s for s in PRIVATE if str(s) == f"PrivateSearchCV: {name}")))


def test_a_last_fit_has_noise():
    release = search("repeat")
    price = {"epsilon": release["fit_guarantee"]["epsilon"]}
    fit = {"node": "measurement", "law": "that of each fit", "name": "a fit", "price": price}
    release["fit_plan"] = fit
    release["noise"] = {}
    assert verify(json.dumps(release)).reason == "a last fit has no noise"


def test_a_last_fit_to_all_records_is_not_paid_for_by_candidates():
    release, dearer = search("refit"), search("repeat")
    candidates, last = release["plan"]["nodes"]
    candidates["nodes"] = dearer["plan"]["nodes"][0]["nodes"]
    last["total"] = last["nodes"][0]["price"] = {"epsilon": 0.01}
    release |= {name: dearer[name] for name in ("fit_plan", "fit_guarantee", "noise")}
    assert verify(settled(release)).reason == "a last fit costs more than a search has for it"


@pytest.mark.parametrize("n", ["NaN", "Infinity", "true", "[47]", "-1", "0", "47.5"])
def test_a_number_of_records_is_a_positive_integer(n):
    text = released(next(s for s in PRIVATE if str(s) == "DPKaplanMeierFitter: everybody"))
    assert verify(text.replace('"n_records": 47', f'"n_records": {n}')).word == "refuted"


def test_a_number_of_records_that_noise_rests_on_is_stated():
    name = "HybridMEstimator: residuals"
    release = json.loads(released(next(s for s in PRIVATE if str(s) == name)))
    assert release["guarantee"]["public_inputs"].pop("n_private")
    release["guarantee"]["public_inputs"].pop("n_records", None)
    assert "'n_private' is not stated" in verify(json.dumps(release)).reason


def test_a_verdict_is_of_one_line():
    data = make_discrete_time_survival(50, 1, random_state=0)
    model = DPKaplanMeierFitter(1.0, max_time=1.0, n_intervals=4)
    release = json.loads(model.fit(data.y["time"], data.y["event"]).release_.to_json())
    release["estimator"] = "A\nverified: \x1b[2K\ud800"
    assert next(verify(json.dumps(release)).lines()).startswith(
        r"verified: A\nverified: \x1b[2K\ud800, epsilon"
    )


def test_it_runs_alone(tmp_path):
    good = released(next(s for s in PRIVATE if str(s) == "DPKaplanMeierFitter: everybody"))
    files = {"good": (good, 0), "bad": (good.replace('"epsilon": 1.0', '"epsilon": 0.9'), 9)}
    files["none"] = ("{}", 10)
    for name, (text, code) in files.items():
        (tmp_path / name).write_text(text)
        done = subprocess.run(
            [sys.executable, "-I", verifier.__file__, tmp_path / name],
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done
        assert done.stdout.splitlines()[1].startswith(
            next(k for k, c in verifier.CODES.items() if c == code)
        )


def test_an_exact_answer_is_no_public_number():
    text = released(next(s for s in PRIVATE if str(s) == "DPTableOne: raw columns by public ward"))
    assert any(one.startswith("public, and no answer") for one in verify(text).granted)
    release = json.loads(text)
    release["plan"]["nodes"][0]["query"] = {"kind": "Histogram", "sensitivity": 2}
    assert verify(json.dumps(release)).word == "refuted"


@pytest.mark.parametrize("assumptions", ["person names whose each record is", {}, None])
def test_assumptions_are_a_list(assumptions):
    release = search("repeat")
    release["guarantee"]["assumptions"] = assumptions
    assert verify(json.dumps(release)).reason == "assumptions are no list"


def test_what_a_guarantee_does_not_cover_is_not_verified():
    release = search("repeat")
    for name in ("guarantee", "fit_guarantee"):
        other = copy.deepcopy(release)
        other[name]["not_covered"] = ["a scaler that learned from records"]
        assert verify(json.dumps(other)).reason.startswith("the guarantee says")


def test_what_has_no_noise_is_about_public_groups():
    name = "DPDiscreteTimeSurvival: objective with a first look"
    release = json.loads(released(next(s for s in PRIVATE if str(s) == name)))
    fit = {"node": "measurement", "law": "none", "name": "a fit", "price": {"epsilon": 0.0}}
    release["plan"]["nodes"].append(fit)
    assert "no groups are public" in verify(settled(release)).reason


def test_a_worst_verdict_is_that_of_all():
    words = [verifier.Verdict(word) for word in verifier.CODES]
    assert [verifier.worst(words[:n]) for n in range(4)] == [0, 0, 9, 9]
    assert verifier.worst([words[2], words[0]]) == 10


def test_it_imports_nothing_of_the_package():
    source = Path(verifier.__file__).read_text()
    assert "import skdpsurv" not in source
    assert "from skdpsurv" not in source.replace(">>> from skdpsurv", "")


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a": 1, "a": 1}', '{"schema_version": 2}', "1e999"]
)
def test_what_is_no_release(text):
    assert verify(text).word in ("refuted", "not covered")
