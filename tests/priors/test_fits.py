"""Fits that start from a prior: what they gain, what they refuse, what they promise."""

import warnings
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    FeaturePartition,
    PosteriorSampling,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PrivateSearchCV,
    PrivateStackingClassifier,
    PublicColumns,
    PublicInputWarning,
    Release,
)
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.priors.prior import sha256
from skdpsurv.report import html_report, units
from tests.support.estimators import search_of

COEF = [1.2, -0.8, 0.5]
COLUMNS = {"age": {"bounds": [20, 80], "unit": "years"}, "ward": ["north", "east", "west"]}


def records(n, seed):
    return make_discrete_time_survival(n, 3, coef=COEF, random_state=seed)


def hazard(epsilon=1.0, **parameters):
    return DPDiscreteTimeSurvival(epsilon, max_time=1.0, random_state=0, **parameters)


def fit(model, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return model.fit(X, y, **options)


def unwarned(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PublicInputWarning)
        return model.fit(X, y)


def proved(release, **changes):
    return replace(release, guarantee=replace(release.guarantee, status="proved", **changes))


def turned(release, factor):
    coef = factor * release.values["evidence_coef"]
    return replace(release, values={**release.values, "evidence_coef": coef})


@pytest.fixture(scope="module")
def elsewhere():
    data = records(4000, 1)
    return fit(hazard(3.0), data.X, data.y).release_


@pytest.fixture(scope="module")
def here():
    return records(400, 2)


class TestHazards:
    def test_one_that_is_reversed_or_not_needed_changes_nothing(self, elsewhere, here):
        for epsilon, factor in ((1.0, -1.0), (np.inf, 1.0)):
            alone = fit(hazard(epsilon), here.X, here.y).release_
            other = fit(hazard(epsilon, prior=turned(elsewhere, factor)), here.X, here.y).release_
            assert other.values.keys() == alone.values.keys()
            for name, value in alone.values.items():
                np.testing.assert_array_equal(other.values[name], value)
            assert ("prior" in other.guarantee.public_inputs) == (epsilon == 1.0)

    def test_the_mean_of_both_by_hand(self, elsewhere, here):
        """Without a recalibration, on one link and grid: steepness is that of each baseline."""
        theirs, their_error = (elsewhere.values[f"evidence_{k}"] for k in ("coef", "error"))
        for method, epsilon in (("obj_pert", 1.0), ("out_pert", 3.0)):
            options = {"method": method, "recalibration_share": 0.0}
            model = fit(hazard(epsilon, prior=elsewhere, **options), here.X, here.y)
            own, error = (model.release_.values[f"evidence_{k}"] for k in ("coef", "error"))
            # Hazards per interval are small: log hazards rise with logits one to one.
            mean = (own / error**2 + theirs / their_error**2) / (error**-2 + their_error**-2)
            np.testing.assert_allclose(model.coef_, mean, rtol=0.02)

    def test_standard_errors_are_of_these_records_alone(self, elsewhere, here):
        alone = fit(hazard(5.0, inference_share=0.3), here.X, here.y)
        helped = fit(hazard(5.0, inference_share=0.3, prior=elsewhere), here.X, here.y)
        pd.testing.assert_frame_equal(helped.summary, alone.summary)
        for name in ("evidence_coef", "evidence_error"):  # what these records say by themselves
            np.testing.assert_array_equal(helped.release_.values[name], alone.release_.values[name])
        assert not np.array_equal(helped.coef_, alone.coef_)

    @pytest.mark.parametrize("link", ["cloglog", "probit"])
    def test_other_links_grids_and_horizons(self, elsewhere, here, link):
        """The prior's ratios are those of hazards: on the predictor's scale of each link."""
        grid = {"link": link, "n_intervals": 50, "n_knots": 2, "recalibration_share": 0.0}
        model = fit(hazard(prior=elsewhere, **grid), here.X, here.y)
        test = records(3000, 3)
        assert model.score(test.X, test.y) > 0.68
        scale = np.linalg.norm(model.coef_) / np.linalg.norm(COEF)
        # A standard normal score is 1/3 of a log odds at hazards of one in a hundred.
        assert (0.6 < scale < 1.6) if link == "cloglog" else (0.2 < scale < 0.7)


class TestPromises:
    def test_of_its_people_and_of_their_own_prior(self, elsewhere, here):
        first = fit(hazard(prior=elsewhere), here.X, here.y)
        assert "prior" not in first.release_.parameters  # only the digest leaves
        assert DPDiscreteTimeSurvival.from_release(first.release_).prior is None
        second = fit(hazard(prior=first.release_), here.X, here.y)
        said = second.guarantee_.public_inputs["prior"]
        assert [one["sha256"] for one in said] == [sha256(first.release_), sha256(elsewhere)]
        assert [one["epsilon"] for one in said] == [1.0, 3.0]
        assert any("the prior of the prior was learned" in a for a in second.guarantee_.assumptions)

    def test_one_that_promises_nothing_is_warned_of(self, elsewhere, here):
        private = DPDiscreteTimeSurvival(max_time=1.0, prior=elsewhere)  # seeded elsewhere
        with pytest.warns(PrivacyLeakWarning, match="the prior promises nothing that is proved"):
            assert private.fit(here.X, here.y).guarantee_.status == "proved"
        unwarned(private.set_params(prior=proved(elsewhere)), here.X, here.y)

    def test_one_of_the_same_ledger_and_data_set_is_warned_of(self, elsewhere, here):
        """Its people may be those whose records are fitted: a ledger says so of a data set."""
        ledger = PrivacyAccountant()
        receipt = ledger.charge(elsewhere.guarantee)
        prior = replace(proved(elsewhere), receipt=receipt)
        ours = DPDiscreteTimeSurvival(max_time=1.0, prior=prior)
        search = PrivateSearchCV(clone(ours), {"alpha": [1.0, 2.0]}, epsilon=1.0)
        said = "the prior was charged to the ledger and data set that this fit is charged to"
        for model in (ours, search):
            with pytest.warns(PrivacyLeakWarning, match=said):
                model.set_params(accountant=ledger).fit(here.X, here.y)
        for other in (ledger.for_dataset("another"), PrivacyAccountant(), None):
            unwarned(ours.set_params(accountant=other), here.X, here.y)
        # A pool with such a release.
        entry = {"sha256": "0" * 64, "ledger": receipt.ledger}
        ours.set_params(prior=proved(elsewhere, public_inputs={"pooled": [entry]}))
        unwarned(ours, here.X, here.y)
        with pytest.warns(PrivacyLeakWarning, match="a release in the prior was charged to"):
            ours.set_params(accountant=ledger).fit(here.X, here.y)

    @pytest.mark.parametrize("by_person", [False, True])
    def test_it_is_said_whom_the_prior_s_own_promise_is_about(self, elsewhere, here, by_person):
        """Of a release about records, whoever has k of them has k times its epsilon."""
        prior = proved(elsewhere, neighbours="replace-one-person") if by_person else elsewhere
        model, person = hazard(prior=prior), np.arange(400) // 2
        fit(model, here.X, here.y, person=person)
        (said,) = model.guarantee_.public_inputs["prior"]
        # Those of guarantees by default are not written down.
        assert said.get("neighbours", "replace-one") == prior.guarantee.neighbours
        (assumption,) = (a for a in model.guarantee_.assumptions if "whoever is among both" in a)
        assert ("about whole persons," if by_person else "about single records,") in assumption
        assert prior.guarantee.neighbours in html_report(model.release_)
        # And of whom that of the prior's own prior is.
        again = fit(hazard(prior=fit(hazard(prior=prior), here.X, here.y).release_), here.X, here.y)
        _, first = again.guarantee_.public_inputs["prior"]
        assert first.get("neighbours") == said.get("neighbours")

    def test_only_the_fit_is_charged(self, elsewhere, here):
        accountant = PrivacyAccountant(rehearsal=True)
        fit(hazard(0.7, prior=elsewhere, accountant=accountant), here.X, here.y)
        assert accountant.rehearsed() == 0.7


def frame(n, seed):
    rng = np.random.default_rng(seed)
    age, ward = rng.uniform(20, 80, n), rng.choice(["north", "east", "west"], n)
    rate = np.exp(0.05 * (age - 50) + 1.0 * (ward == "east"))
    time = rng.exponential(1.0 / rate)
    y = pd.DataFrame({"event": time < 1.0, "time": np.minimum(time, 1.0)})
    return pd.DataFrame({"age": age, "ward": ward}), y


class TestColumns:
    TABLE: ClassVar = {"age": (1.05, 1.04, 1.06), ("ward", "east"): (2.7, 2.2, 3.3)}

    def published(self, **changes):
        given = {"ratios": self.TABLE, "references": {"ward": "north"}, "source": "table 2"}
        return Release.from_coefficients(**{**given, **changes})

    def test_a_published_table_is_mapped_to_these_columns(self):
        X, y = frame(300, 0)
        columns = PublicColumns({**COLUMNS, "ward": ["east", "north", "west"]})
        model = hazard(columns=columns, prior=self.published(), recalibration_share=0.0)
        unwarned(clone(model).set_params(random_state=None), X, y)  # it is public
        model = fit(model, X, y)
        coef = units(model.release_)["coef"]
        # Nearer to the table than noise and ridge would leave them; west is in no table.
        assert 0.03 < coef["age", ""] < 0.15
        assert -2.0 < coef["ward", "north"] < -0.5
        said = model.guarantee_.public_inputs["prior"][0]
        assert said["status"] == "published"
        (assumption,) = (a for a in model.guarantee_.assumptions if "public before" in a)
        assert "among both" not in assumption

    def test_log_ratios_and_odds(self):
        X, y = frame(400, 0)
        pairs = {"age": (0.05, 0.01), ("ward", "east"): (1.0, 0.2)}
        coef, errors = ({term: pair[k] for term, pair in pairs.items()} for k in (0, 1))
        prior = self.published(ratios=None, coef=coef, standard_errors=errors, model="odds")
        options = {"columns": PublicColumns(COLUMNS), "classes": [False, True]}
        fit(DPLogisticRegression(1.0, prior=prior, random_state=0, **options), X, y["event"])
        with pytest.raises(ValueError, match=r"log hazard ratios, got model='odds'"):
            hazard(columns=PublicColumns(COLUMNS), prior=prior).fit(X, y)
        assert Release.from_json(prior.to_json()) == prior
        with pytest.raises(ValueError, match="pass it as prior="):
            prior.to_estimator()
        with pytest.raises(ValueError, match="needs records of your own"):
            prior.predict(X)

    def test_a_table_that_is_none(self):
        bad = {
            "coef and standard_errors": [{"ratios": None}, {"coef": {"age": 1.0}}],
            "ward": [{"references": None}],
            "source": [{"source": " "}],
            "model": [{"model": "risk"}],
            "ratios": [{"ratios": r} for r in ([1.0], {"age": (1, 1.1, 1.2)}, {"age": (1, 0.9)})],
            "references": [{"references": ["ward"]}],
            "terms": [{"references": {"ward": "east"}}],
            "coef": [{"ratios": {3: (1.0, 0.9, 1.1)}}],
        }
        for coef, errors in (({"age": "x"}, {"age": 1.0}), ({"age": 1.0}, {"age": 0.0})):
            bad["coef"].append({"ratios": None, "coef": coef, "standard_errors": errors})
        bad["coef"].append({**bad["coef"][-1], "standard_errors": {"sex": 1.0}})
        for says, cases in bad.items():
            for changes in cases:
                with pytest.raises((ValueError, TypeError), match=says):
                    self.published(**changes)


class TestRefused:
    """Before anything is charged."""

    data = records(300, 0)

    def refuse(self, says, prior, X=None, y=None, model=None, **parameters):
        accountant = PrivacyAccountant(5.0)
        X, y = (self.data.X, self.data.y) if X is None else (X, y)
        model = model or hazard(**parameters)
        with pytest.raises((ValueError, TypeError), match=says):
            model.set_params(prior=prior, accountant=accountant, random_state=None).fit(X, y)
        assert accountant.spent() == 0.0

    def test_what_is_no_evidence(self, elsewhere):
        self.refuse("prior must be None or a Release", {"age": 1.0})
        curve = DPKaplanMeierFitter(1.0, max_time=1.0).fit(y=self.data.y).release_
        self.refuse("prior must be a model of hazards", curve)
        values = {k: v for k, v in elsewhere.values.items() if "evidence" not in k}
        self.refuse("must say how sure it is", replace(elsewhere, values=values))
        self.refuse("prior must be None with", elsewhere, method="psgld")
        self.refuse("prior must be None with", elsewhere, method=PosteriorSampling())

    def test_another_model_or_other_classes(self, elsewhere):
        X, labels, model = self.data.X, np.arange(300) % 3, DPLogisticRegression(classes=[0, 1])
        self.refuse("prior must be a model of log odds", elsewhere, X, labels % 2, model)
        prior = DPLogisticRegression(classes=[0, 1, 2]).fit(X, labels).release_
        self.refuse("same classes", prior, X, labels % 2, model)

    def test_other_columns_or_columns_that_one_side_describes(self, elsewhere):
        X, y = self.data.X, self.data.y
        self.refuse("as many columns as X, 2, got 3", elsewhere, X[:, :2], y)
        names = replace(elsewhere, feature_names_in=("a", "b", "c"))
        self.refuse("same names and order", names, pd.DataFrame(X, columns=["a", "c", "b"]), y)
        raw, model = frame(300, 0), hazard(columns=PublicColumns(COLUMNS))
        self.refuse("prior must say what its columns hold", elsewhere, *raw, clone(model))
        table = Release.from_coefficients(ratios={"x0": (2.0, 1.0, 4.0)}, source="a paper")
        for described in (fit(model, *raw).release_, table):
            self.refuse("columns must be given with this prior", described, X, y)

    def test_crafted_releases(self, elsewhere):
        for values in [
            {"evidence_error": [1e-170, 1.0, 1.0]},
            {"evidence_error": [1e160, 1.0, 1.0]},
            {"evidence_coef": [1e300, 0.0, 0.0]},
        ]:
            crafted = replace(elsewhere, values={**elsewhere.values, **values})
            self.refuse("prior must have coefficients of at most", crafted)
        hidden = proved(elsewhere, public_inputs={"prior": [{"a": 1}]})
        self.refuse("status of its own prior", hidden)
        raw, columns = frame(300, 0), PublicColumns(COLUMNS)
        prior = Release.from_coefficients(ratios={"age": (1.05, 1.04, 1.06)}, source="a paper")
        bad = [{"terms": terms} for terms in (2.5, [False], [["age", [["x"], 1]]])]
        for changes in (*bad, {"references": [[1]]}, {"references": {"ward": {"x": 1}}}):
            crafted = replace(prior, parameters={**prior.parameters, **changes})
            self.refuse("must hold terms", crafted, *raw, hazard(columns=columns))


def test_columns_that_only_the_prior_has_are_asked_about():
    X, y = frame(300, 0)
    table = {"age": (1.05, 1.04, 1.06), "weigth": (1.1, 1.0, 1.2)}
    prior = Release.from_coefficients(ratios=table, source="a paper")
    model = DPDiscreteTimeSurvival(max_time=1.0, columns=PublicColumns(COLUMNS), prior=prior)
    with pytest.warns(PublicInputWarning, match="do not have: weigth"):
        model.fit(X, y)


def test_a_search_passes_on_what_any_candidate_started_from(elsewhere):
    """The choice depends on all of them, whichever was chosen."""
    data, model = records(400, 0), hazard().set_params(random_state=None)
    search = search_of(model, {"prior": [None, elsewhere]}, expected_runs=2.0)
    found = fit(search, data.X, data.y).release_
    again = fit(hazard(prior=found), data.X, data.y)
    said = [one["sha256"] for one in again.guarantee_.public_inputs["prior"]]
    assert said == [sha256(found), sha256(elsewhere)]


class TestLogistic:
    def labels(self, n, seed):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-0.5, 0.5, (n, 4))
        return X, (rng.random(n) < 1 / (1 + np.exp(-X @ [4, -3, 2, 0]))).astype(int)

    def test_agreement_helps_and_its_opposite_changes_nothing(self):
        model = DPLogisticRegression(3.0, classes=[0, 1], random_state=9)
        prior = fit(model, *self.labels(4000, 1)).release_
        X, y = self.labels(300, 2)
        alone, helped, other = (
            fit(DPLogisticRegression(1.0, classes=[0, 1], random_state=5, prior=p), X, y)
            for p in (None, prior, turned(prior, -1.0))
        )
        np.testing.assert_array_equal(other.coef_, alone.coef_)
        np.testing.assert_array_equal(helped.intercept_, alone.intercept_)
        # What a prior has unshrunk is not made steeper: n * epsilon is below 600.
        assert helped.recalibration_slope_ == 1.0
        assert other.recalibration_slope_ == alone.recalibration_slope_ > 1.0
        truth = np.array([4, -3, 2, 0]) / np.sqrt(29)
        near, far = (one.coef_[0] @ truth / np.linalg.norm(one.coef_) for one in (helped, alone))
        assert 1.0 - near < 0.5 * (1.0 - far)

    def test_three_classes_are_three_models(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-0.5, 0.5, (900, 3))
        y = (6 * X + rng.gumbel(size=X.shape)).argmax(axis=1)
        model = DPLogisticRegression(50.0, classes=[0, 1, 2], random_state=0)
        prior = fit(model, X[:600], y[:600]).release_
        assert prior.values["evidence_coef"].shape == (3, 3)
        helped = fit(model.set_params(prior=prior, random_state=1), X[600:], y[600:])
        assert (np.diag(helped.coef_) > 2.0).all()


def test_units_are_compared_although_formulas_are_the_same():
    """Bounds are the same numbers: nothing but the unit tells years from months."""
    X, y = frame(300, 0)
    X = X[["age"]].assign(dose=0.5)
    labels = {"classes": [False, True], "random_state": 0}
    stack = {**labels, "partition": FeaturePartition([[0], [1]])}
    for kind, options, target in (
        (hazard, {}, y),
        (DPLogisticRegression, labels, y["event"]),
        (PrivateStackingClassifier, stack, y["event"]),
    ):

        def made(unit, kind=kind, options=options, **parameters):
            described = {"bounds": [20, 80], **({"unit": unit} if unit else {})}
            columns = PublicColumns({"age": described, "dose": (0, 1)})
            return kind(1.0, columns=columns, **options, **parameters)

        prior = fit(made("years"), X, target).release_
        with pytest.raises(ValueError, match="prior must measure column 'age' in the same unit"):
            fit(made("months", prior=prior), X, target)
        for unit in ("years", None):
            assert fit(made(unit, prior=prior), X, target).guarantee_.public_inputs["prior"]
