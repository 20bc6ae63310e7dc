"""The verifier on what a release contradicts: plans that do not have what its values came from."""

import json

import pytest

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    PrivateSearchCV,
    PrivateStackingClassifier,
    published,
)
from skdpsurv import verify as verifier
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.evaluation import private_survival_metrics
from skdpsurv.verify import verify
from tests.support.registry import PRIVATE
from tests.test_verify import at, released, search

STRATA = "DPDiscreteTimeSurvival: raw columns with strata"
CURVES = "DPDiscreteTimeSurvival: curves with standard errors"
CLASSES = "DPLogisticRegression: three classes of words"


def release_of(name):
    return json.loads(released(next(s for s in PRIVATE if str(s) == name)))


def measurements(node):
    """Yield the measurements of a stated plan."""
    if node["node"] == "measurement":
        yield node
    for one in node.get("nodes", ()):
        yield from measurements(one)


def settled(release, which=""):
    """Return a forgery whose guarantee, and noise on values, are those of its plan."""
    plan, promised = release[f"{which}plan"], release[f"{which}guarantee"]
    stack = [plan]
    for node in stack:  # which grows
        node.pop("total", None)
        node["node"] = node["node"].replace("choice", "sequence")
        stack += node.get("nodes", ())
    cost = verifier.Tree(verifier.read(json.dumps(plan))).cost
    promised["epsilon"] = float(verifier.epsilon_of(cost, verifier.Fraction(promised["delta"])))
    if cost.rho_of_mu:
        promised["epsilon"] *= 1.0 + 1e-12
        promised["rho"] = float(cost.rho)
    sizes = ("n_records", "n_private", "n_scored", "n_low_level", "n_high_level")
    sizes += ("candidate_sizes",)
    inputs = promised["public_inputs"]
    promised["public_inputs"] = {name: inputs[name] for name in sizes if name in inputs}
    drawn = measurements(release["fit_plan"] or release["plan"])
    given = {one["gives"]: one for one in drawn if "gives" in one}
    release["noise"] = {k: {n: one[n] for n in ("law", "variance")} for k, one in given.items()}
    return json.dumps(release)


def calibrated(release, change):
    """Return a forgery whose fit is changed, and then has the constants and price that follow."""
    for node in measurements(release["plan"]):
        for fit in node.get("fits", ()):
            change(fit["loss"])
            loss = verifier.read(json.dumps(fit["loss"]))
            S, tau, fit["hessian_rank"], rows = verifier._constants(loss)
            fit["sensitivity"], fit["hessian_trace"] = (float(x) * (1 + 1e-13) for x in (S, tau))
            fit["rounding"], fit["predictor_rounding"] = map(float, verifier._units(loss))
            for noise in ("objective_noise", "output_noise"):
                fit.get(noise, {})["dimension"] = sum(length for _, length in rows)
            with pytest.raises(verifier.EndError) as error:
                verifier._Fit(verifier.read(json.dumps(fit | {"tolerance": 0.0})), False).solver()
            fit["tolerance"] = float(error.value.args[1].split()[-1]) * (1 + 4e-12)
            found = verifier._Fit(verifier.read(json.dumps(fit)), False).cost(node["law"])
            node["price"] = {"epsilon": float(found.epsilon)}
    return settled(release)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("DPAalenJohansenFitter: late entry", (0,)),  # the counts
        ("DPAalenJohansenFitter: late entry", (1,)),  # the entries
        ("DPDiscreteTimeSurvival: objective with a first look", (0,)),  # the first look
        ("DPDiscreteTimeSurvival: objective with a first look", (0, 1)),  # the mean of the rows
        ("DPDiscreteTimeSurvival: objective with a first look", (1,)),  # the fit
        ("DPDiscreteTimeSurvival: objective with a first look", (2, 1)),  # a recalibration
        ("DPDiscreteTimeSurvival: descent with standard errors", (3, 1)),  # second moments
        ("DPCompetingRisks: recalibrated", (0,)),
        ("DPCompetingRisks: recalibrated", (2, 3)),  # of the second cause
        ("DPLogisticRegression: objective with standard errors", (0,)),
        ("DPWeibullFitter: ladder", (2, 0, 1)),
        ("DPWeibullFitter: ladder", (1,)),
        ("PublishedWeibullFitter: exact levels", (1,)),
        ("HybridMEstimator: curve", (0,)),
        ("HybridMEstimator: curve", (1,)),
        ("HybridMEstimator: subset", (0,)),
        ("HybridMEstimator: subset", (1,)),
        ("HybridMEstimator: subset", (2,)),
        ("DPCompetingRisks: raw columns with standard errors", (0, 0)),  # caps follow from it
    ],
)
def test_what_was_asked_for_a_value_is_in_the_plan(name, way):
    """A measurement left out, and a guarantee of what is left, once were verified."""
    release = release_of(name)
    *above, last = [part for step in way for part in ("nodes", step)]
    del at(release["plan"], above)[last]
    assert verify(settled(release)).word == "refuted"


def test_what_was_asked_for_an_evaluation_is_in_its_plan(evaluation):
    for number in range(2, 6):
        other = json.loads(evaluation)
        del other["plan"]["nodes"][number]
        cost = verifier.Tree(verifier.read(json.dumps(other["plan"]))).cost
        other["guarantee"]["epsilon"] = float(cost.epsilon)
        assert "the plan has not all" in verify(json.dumps(other)).reason


@pytest.fixture(scope="module")
def evaluation():
    data = make_discrete_time_survival(200, 1, random_state=0)
    model = DPDiscreteTimeSurvival(1.0, max_time=1.0, n_intervals=5).fit(data.X, data.y)
    found = private_survival_metrics(model, data.X, data.y, epsilon=1.0, max_time=1.0)
    return json.dumps(found.to_dict())


def no_terms(loss):
    for name in ("n_terms", "reach", "width", "n_functions"):
        del loss[name]


def short_basis(loss):
    """State columns of a baseline as columns of records: then the rank is smaller."""
    loss["n_features"] += loss.get("n_strata", 1) * (loss["n_basis"] - 1)
    loss["n_basis"] = 1


def many_strata(loss):
    loss["n_strata"] = loss.get("n_strata", 1) * loss["n_basis"]
    loss["n_basis"] = 1


def of_constant_effects(loss):
    loss["n_features"] += loss["n_terms"]
    no_terms(loss)


def logistic(loss):
    n = loss["n_features"] + loss["n_basis"]
    loss.clear()
    loss |= {"kind": "LogisticLoss", "n_features": n, "slope": 0.5, "curvature": 0.25}
    loss["data_norm"] = 1.0


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        (STRATA, {"n_strata": 1}, "there are more or fewer coefficients"),
        (STRATA, {"caps": [0.1]}, "max_cumulative_hazard"),
        (STRATA, {"n_intervals": 2}, "n_intervals"),
        (STRATA, {"link": "cloglog"}, "link"),
        (STRATA, {"data_norm": 0.2}, "rows beyond their bound"),
        (f"{STRATA}, standard errors", {"weighted": False}, "rows are weighted"),
        ("DPDiscreteTimeSurvival: objective", logistic, "there are more or fewer"),
        ("DPDiscreteTimeSurvival: objective", short_basis, "there are more or fewer"),
        (STRATA, short_basis, "there are more or fewer"),
        (CURVES, many_strata, "there are more or fewer"),
        (f"{STRATA}, late entries, effects over time", of_constant_effects, "there are more or"),
        ("DPLogisticRegression: output", {"data_norm": 1.0}, "rows beyond their bound"),
        (f"{STRATA}, late entries, effects over time", no_terms, "there are more or fewer"),
        ("DPCompetingRisks: objective", {"caps": [0.4]}, "there are more or fewer"),
        ("DPLogisticRegression: objective", {"n_features": 2}, "there are more or fewer"),
        ("DPLogisticRegression: output", {"slope": 0.1}, "max_residual"),
    ],
)
def test_a_fit_is_of_what_is_released(name, change, reason):
    """A smaller sensitivity is that of another model: then the same noise would cost less."""
    release = release_of(name)
    text = calibrated(release, change if callable(change) else lambda loss: loss.update(change))
    assert verify(text).reason.startswith(reason)
    other = json.loads(text)  # numbers that no prediction is made by
    for name, value in (change if isinstance(change, dict) else {}).items():
        names = {"caps": "max_cumulative_hazard", "slope": "max_residual"}
        side = other["parameters"] if name in names else other["values"]
        side[names.get(name, name)] = value
    assert verify(json.dumps(other)).reason.startswith((reason, "no rule for"))


def test_each_model_has_its_price():
    release = release_of(CLASSES)
    node = next(measurements(release["plan"]))
    node["fits"][0]["models"], node["price"] = 1, node["price"]["sequence"][0]
    assert verify(settled(release)).reason.startswith("there are more or fewer")
    text = calibrated(release, lambda loss: loss.update(n_features=3 * loss["n_features"]))
    assert verify(text).reason.startswith("there are more or fewer")


def test_an_intercept_is_of_its_fit():
    for name, value in (("intercept", [0.5, 0.5]), ("my_intercept", [0.5])):
        release = release_of("DPLogisticRegression: objective")
        release["values"][name] = value
        assert verify(json.dumps(release)).word == "refuted"
    release["parameters"]["fit_intercept"] = False
    assert verify(json.dumps(release)).word == "refuted"


def test_models_that_are_no_stack_are_of_the_same_people():
    release = release_of(CLASSES)
    node = next(measurements(release["plan"]))
    (fit,) = node["fits"]
    node["fits"] = [fit | {"part": part, "models": 1} for part in range(3)]
    node |= {"parts": "disjoint", "price": node["price"]["sequence"][0]}
    release["guarantee"]["public_inputs"]["n_records"] = 3 * fit["n_records"]
    assert verify(settled(release)).reason.startswith("people are split for other models")


def test_each_column_of_a_table_is_counted_once():
    release = release_of("DPTableOne: raw columns by ward")
    (node,) = measurements(release["plan"])
    for name in ("scale", "sensitivity", "lattice"):
        node[name] = node[name][1:2]
    node["query"]["units"] = node["query"]["units"][1:2]
    node["price"] = {"epsilon": node["sensitivity"][0] / node["scale"][0]}
    assert verify(settled(release)).reason.endswith("no Histogram")
    release["n_features_in"] = 1
    assert verify(settled(release)).reason.endswith("no Histogram")
    del release["parameters"]["grid"]
    assert verify(settled(release)).reason.endswith("no Histogram")


@pytest.mark.parametrize("several_in_one", [True, False])
def test_a_split_is_of_a_stack_and_each_part_has_its_number(several_in_one):
    release = release_of("DPDiscreteTimeSurvival: objective with a first look")
    (table, mean), fit, last = release["plan"]["nodes"][0]["nodes"], *release["plan"]["nodes"][1:]
    parts = ([mean, fit], [table, last]) if several_in_one else ([table, mean], [fit, last])
    nodes = [{"node": "sequence", "nodes": part} for part in parts]
    release["plan"] = {"node": "disjoint", "nodes": nodes}
    inputs = release["guarantee"]["public_inputs"]
    n = inputs["n_records"]
    inputs |= {"n_records": 2 * n, "n_low_level": n, "n_high_level": n}
    if several_in_one:
        with pytest.raises(verifier.EndError, match="does not state its n_records"):
            settled(release)
    else:
        assert verify(settled(release)).reason.startswith("people are split for other models")


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "Sum", "low": 0, "high": 0},
        {"kind": "CellSums", "size": 1e-9, "exponent": 0, "distance": None},
    ],
)
def test_a_record_moves_each_answer(query):
    release = release_of("DPKaplanMeierFitter: late entry")
    entries = [*measurements(release["plan"])][1]
    entries |= {"query": query, "sensitivity": 0, "price": {"epsilon": 0.0}}
    with pytest.raises(verifier.EndError, match="a record moves no answer"):
        settled(release)


def test_a_last_fit_to_all_records_is_paid_for():
    """The best candidate was fitted to a part of those who were not scored."""
    release = search("repeat")
    text = json.dumps(release["fit_plan"]).replace('"n_records": 38', '"n_records": 47')
    release["fit_plan"] = json.loads(text)
    release["fit_guarantee"]["public_inputs"]["n_records"] = 47
    assert "has not paid for" in verify(json.dumps(release)).reason
    release = search("Gaussian split")
    release["plan"]["nodes"].pop()
    assert "has not paid for" in verify(settled(release)).reason


def test_the_best_of_several_runs_costs_more_than_one_of_them():
    """A sum of losses is measured of one candidate alone, a choice is one of all."""
    release = search("repeat")
    (runs,) = release["plan"]["nodes"]
    release["plan"]["nodes"] = runs["nodes"]
    with pytest.raises(verifier.EndError, match="one choice of the best"):
        settled(release)


def test_a_last_fit_promises_what_the_search_does():
    weaker = search("repeat")
    weaker["fit_guarantee"]["status"] = "asserted"
    group = search("repeat")
    group["fit_guarantee"]["neighbours"] += "-same-group"
    group["fit_guarantee"]["assumptions"].append("the group of each record is public")
    for release in (weaker, group):
        assert verify(json.dumps(release)).reason.startswith("a last fit has other neighbours")


def test_a_search_among_people_and_a_stack_of_one_part_are_verified():
    """A search reads one record of each person, so that its fits are of records."""
    data = make_discrete_time_survival(60, 1, random_state=0)
    y, person = data.y["event"].astype(int), [*range(30), *range(30)]
    model = DPLogisticRegression(1.0, data_norm=1.0, classes=[0, 1])
    found = PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, refit=0.5).fit(data.X, y, person=person)
    stack = PrivateStackingClassifier(
        1.0, data_norm=1.0, classes=[0, 1], partition="samples", n_partitions=1
    ).fit(data.X, y)
    for release in (found.release_, stack.release_):
        assert verify(release.to_json()).word == "verified", release.guarantee


def test_a_last_fit_has_no_exact_answer():
    release = search("repeat")
    exact = {"law": "none", "name": "a fit", "node": "measurement", "price": {"epsilon": 0.0}}
    release["fit_plan"]["nodes"].append(exact)
    assert "no groups are public" in verify(json.dumps(release)).reason


def test_coefficients_by_names_that_nobody_knows_are_not_covered():
    release = release_of("DPLogisticRegression: objective")
    for name in ("coef", "intercept"):
        release["values"][f"my_{name[:3]}"] = release["values"].pop(name)
    assert verify(json.dumps(release)).word == "not covered"


def test_what_a_last_fit_takes_for_granted_is_said():
    assert any("rounding.md" in one for one in verify(json.dumps(search("repeat"))).granted)


def asked(release, change):
    """Return a forgery whose queries are changed, and then have the numbers that follow."""
    for node in measurements(release["plan"]):
        if "query" not in node or change(node) is False:
            continue
        stated, law = verifier.read(json.dumps(node)), node["law"]
        scales, (unit, norm, _) = stated.each("scale"), verifier._LAWS[law]
        if law in ("laplace", "gaussian"):
            moves, steps = verifier._integers(stated.part("query"), law)
            sizes, variance = steps, 2 if law == "laplace" else 1
        else:
            move, variance = verifier._vectors(stated.part("query"), law)
            moves, steps, sizes = [move], [verifier._lattice(scales[0])], [1]
        several = len(scales) // len(moves)
        largest = max(a * b for a, b in zip(scales, sizes * several, strict=True))
        node["variance"], node["lattice"] = float(variance * largest**2), [*map(float, steps)]
        square = 2 if norm == "squared L2" else 1
        node["sensitivity"] = [float(move**square) * (1 + 1e-13) for move in moves]
        prices = zip(moves * several, scales, strict=True)
        node["price"] = {"sequence": [{unit: float(a / b) * (1 + 1e-13)} for a, b in prices]}
    return settled(release)


def of_kind(kind, **changes):
    def change(node):
        return node["query"]["kind"] == kind and node["query"].update(changes)

    return change


def one_answer_less(node):
    if isinstance(node["scale"], list):
        node["scale"].pop()
        node["query"] |= {"units": node["query"].get("units", [])[:-1]}


GAUSSIAN = "DPDiscreteTimeSurvival: descent with standard errors"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("DPWeibullFitter: ladder", of_kind("Sum", low=0, high=1, exponent=-30)),
        ("DPWeibullFitter: ladder", of_kind("Sum", low=0, high=1e-9)),
        ("HybridMEstimator: curve", of_kind("Sums", number=1)),
        ("HybridMEstimator: curve", of_kind("Sums", number=0.001)),
        ("HybridMEstimator: curve", of_kind("Sums", each=2**29)),
        ("HybridMEstimator: curve", one_answer_less),
        ("HybridMEstimator: subset", one_answer_less),
        (CURVES, of_kind("ColumnMoments", squared_move=1)),
        (CURVES, of_kind("SecondMoments", norm=0.1)),
        (GAUSSIAN, of_kind("CellSums", distance=0.1)),
        ("LaplaceWeibullFitter: Laplace", one_answer_less),
        ("SampleAggregateWeibullFitter: blocks", one_answer_less),
    ],
)
def test_a_query_is_of_what_is_released(name, change):
    """A record would move less, or the same noise be less, than the values can mean."""
    release = release_of(name)
    assert verify(asked(json.loads(json.dumps(release)), lambda node: None)).word == "verified"
    found = verifier.judged(lambda: verify(asked(release, change)))
    assert found.word == "refuted"
    assert "no file" not in found.reason


def test_counts_are_no_parts_of_counts():
    """Noise of a count's millionth would show each record."""
    release = release_of("DPKaplanMeierFitter: everybody")
    for node in measurements(release["plan"]):
        node["query"]["exponent"] = -20
        node["lattice"] *= 2.0**-20
        node["variance"] *= 2.0**-40
    release["noise"]["counts"]["variance"] *= 2.0**-40
    assert verify(json.dumps(release)).reason.startswith("a lattice is")


@pytest.mark.parametrize("name", ["my_counts", "coun\u0442s", "evidence_counts", "fit_values"])
def test_what_no_rule_is_about_is_not_covered(name, evaluation):
    release = release_of("DPKaplanMeierFitter: everybody")
    for text, part in ((json.dumps(release), "values"), (evaluation, "released")):
        for where in (None, part):
            other = json.loads(text)
            (other[where] if where else other)[name] = [12, 35]
            assert verify(json.dumps(other)).word == "not covered"


def test_sizes_of_groups_are_public():
    release = release_of("DPTableOne: raw columns by ward")
    release["values"]["group_sizes"] = [10, 20, 17]
    assert verify(json.dumps(release)).word == "refuted"


def test_measures_follow_from_sums_in_the_plan(evaluation):
    other = json.loads(evaluation)
    other["released"], other["plan"]["nodes"] = {}, other["plan"]["nodes"][:2]
    cost = verifier.Tree(verifier.read(json.dumps(other["plan"]))).cost
    other["guarantee"]["epsilon"] = float(cost.epsilon)
    assert "the plan has not all" in verify(json.dumps(other)).reason
    del other["released"]
    assert verify(json.dumps(other)).word == "not covered"


@pytest.mark.parametrize("name", ["HybridMEstimator: subset", "PrivateSearchCV: split"])
def test_a_loss_is_one_at_most(name):
    release = release_of(name)
    for node in measurements(release["plan"]):
        if node["law"] == "permute-and-flip":
            node["sensitivity"] = [2]  # of a rank, in the units of an evaluation
    assert verify(json.dumps(release)).reason == "a record moves a loss by another number"


def test_a_sum_of_losses_tells_the_best():
    release = search("repeat")
    (sums,) = (node for node in measurements(release["plan"]) if "query" in node)
    sums["query"]["high"] = 1
    sums |= {"sensitivity": 1, "scale": sums["scale"] * 2.0**-30}
    sums["variance"] *= 2.0**-60
    assert verify(json.dumps(release)).reason.startswith("a record moves no answer")


def test_a_published_price_of_curvature_is_not_covered():
    """It follows from the length of each row of a basis, which no release states."""
    data = make_discrete_time_survival(50, 1, random_state=0)
    model = published.PublishedDiscreteTimeSurvival(0.01, max_time=1.0, n_intervals=8)
    text = model.fit(data.X, data.y).release_.to_json()
    assert verify(text).word == "not covered"


@pytest.mark.parametrize("name", ["edges", "table", "evidence_coef", "weights", "curve"])
def test_a_number_is_known_by_what_it_is_beside(name):
    """Entries by the name of what only follows, or is public, would cost nothing."""
    release = release_of("DPKaplanMeierFitter: late entry")
    release["values"][name] = release["values"].pop("entries")
    del release["plan"]["nodes"][1]
    assert verify(settled(release)).reason.startswith("no rule for")


@pytest.mark.parametrize("values", [{"counts": ["12 35"]}, {"counts": {"12": 35}}, {"rho": "12"}])
def test_what_is_released_is_numbers(values):
    """Words may hold any number of numbers."""
    release = release_of("DPKaplanMeierFitter: everybody")
    release["values"] |= values
    assert verify(json.dumps(release)).reason == "what is released is more than numbers"


@pytest.mark.parametrize("name", ["cells and residuals", "cells", "residuals", "subset"])
def test_weights_are_of_a_method(name):
    release = release_of(f"HybridMEstimator: {name}")
    parameters = dict(release["parameters"])
    del release["parameters"]["method"]
    assert verify(settled(release)).reason.startswith("'method' is not stated")
    if name == "cells and residuals":
        release["parameters"] = parameters
        del release["plan"]["nodes"][0]
        assert verify(settled(release)).reason.endswith("no Histogram")


def test_rows_of_standard_errors_are_weighted():
    release = release_of(f"{STRATA}, standard errors")
    del release["values"]["mean_weight"]
    text = calibrated(release, lambda loss: loss.update(weighted=False))
    assert verify(text).reason == "rows are weighted"


def test_caps_of_causes_follow_from_a_life_table():
    release = release_of("DPCompetingRisks: late entries with standard errors")
    del release["parameters"]["causes"]
    del release["plan"]["nodes"][0]["nodes"][0]
    assert verify(settled(release)).word == "refuted"


def test_a_stack_on_groups_of_columns_is_no_split():
    release = release_of("PrivateStackingClassifier: rows")
    release["parameters"]["partition"] = "features"
    reason = "people are split for other models than are released"
    assert verify(json.dumps(release)).reason == reason


def test_a_part_of_a_stack_has_the_slope_of_parts():
    release = release_of("PrivateStackingClassifier: rows, stacked")
    release["values"]["max_residual"] = [1.0, 0.5]
    assert verify(settled(release)).reason == "max_residual is not that of the fits"


def test_a_release_has_an_estimator():
    """Losses in units of a rank are those of an evaluation."""
    release = release_of("HybridMEstimator: subset")
    for node in measurements(release["plan"]):
        if node["law"] == "permute-and-flip":
            node["sensitivity"] = [2]
    release["estimator"] = ""
    assert verify(json.dumps(release)).word == "not covered"


@pytest.mark.parametrize("relation", ["replace-person-one", "replace-one-person-person", None])
def test_neighbours_are_those_of_the_assumptions(relation):
    release = release_of("DPKaplanMeierFitter: people")
    release["guarantee"]["neighbours"] = relation
    assert verify(json.dumps(release)).reason == f"{relation}, and assumptions say otherwise"


def test_edges_without_a_choice_are_granted(evaluation):
    """Those that are stated are released as those that are chosen."""
    other = json.loads(evaluation)
    del other["plan"]["nodes"][:2]
    other["guarantee"]["epsilon"] = 0.84
    assert any("edges without a choice" in one for one in verify(json.dumps(other)).granted)


def test_functions_of_time_are_enough_for_their_products():
    release = release_of(f"{STRATA}, changing, standard errors")
    for node in measurements(release["plan"]):
        for fit in node.get("fits", ()):
            fit["loss"] |= {"n_functions": 1, "n_features": 3}
    assert verify(json.dumps(release)).reason == "functions of time do not fit"
