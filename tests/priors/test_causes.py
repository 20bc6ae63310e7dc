"""Fits of competing risks that start from a prior: by cause, whatever the order of causes."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from skdpsurv import (
    DPCompetingRisks,
    DPDiscreteTimeSurvival,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PublicColumns,
    Release,
)
from skdpsurv.cli import app
from skdpsurv.priors.prior import sha256
from skdpsurv.report import explain
from skdpsurv.verify import verify

CAUSES = ["relapse", "death"]
#: Effects on both causes; the second one is rarer.
COEF = np.array([[1.0, -0.8], [-0.5, 1.2]])
EVIDENCE = ("evidence_coef", "evidence_error")


def records(n, seed, labels=("alive", *CAUSES)):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    times = rng.exponential([[2.0], [4.0]] * np.exp(-COEF @ X.T))
    y = np.empty(n, dtype=[("what", object), ("time", float)])
    y["time"] = np.minimum(times.min(axis=0), 1.0)
    first = np.where(times.min(axis=0) < 1.0, 1 + times.argmin(axis=0), 0)
    y["what"] = np.array(labels, dtype=object)[first]
    return X, y


def made(epsilon=1.0, **parameters):
    given = {"causes": CAUSES, "censored": "alive", "max_time": 1.0, "n_intervals": 20}
    return DPCompetingRisks(epsilon, **{**given, "random_state": 0, **parameters})


def fit(model, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return model.fit(X, y, **options)


def changed(release, rows=slice(None), factor=1.0, **values):
    """Return a release whose evidence about some causes is multiplied by a factor."""
    coef = np.array(release.values["evidence_coef"])
    coef[rows] *= factor
    return replace(release, values={**release.values, "evidence_coef": coef, **values})


@pytest.fixture(scope="module")
def elsewhere():
    return fit(made(3.0), *records(6000, 1)).release_


@pytest.fixture(scope="module")
def here():
    return records(500, 2)


@pytest.fixture(scope="module")
def helped(elsewhere, here):
    return fit(made(prior=elsewhere), *here)


@pytest.fixture(scope="module")
def alone(here):
    return fit(made(), *here)


class TestByCause:
    def test_the_mean_of_both_by_hand(self, elsewhere, here, helped):
        """Steepness is that of each baseline: hazards are small, so it is nearly 1."""
        theirs, their_error = (elsewhere.values[name] for name in EVIDENCE)
        own, error = (helped.release_.values[name] for name in EVIDENCE)
        assert own.shape == error.shape == (2, 2)
        assert error[1, 0] > error[0, 0]  # fewer events
        mean = (own / error**2 + theirs / their_error**2) / (error**-2 + their_error**-2)
        alone = fit(made(), *here).coef_  # which says the size along the mean of both
        size = np.minimum((alone * mean).sum(axis=1) / (mean**2).sum(axis=1), 1.0)
        assert size.max() == 1.0
        assert 0.1 < size.min() < 0.9
        rest = np.abs(helped.coef_ / size[:, None] - mean)
        assert (rest < 0.02 + 0.03 * np.abs(mean)).all()  # its variance may grow, if they differ

    def test_a_cause_that_disagrees_is_as_without_a_prior(self, elsewhere, here, helped, alone):
        for cause in (0, 1):
            own = fit(made(prior=changed(elsewhere, cause, -1.0)), *here)
            np.testing.assert_allclose(own.coef_[cause], alone.coef_[cause], rtol=1e-12)
            np.testing.assert_array_equal(own.coef_[1 - cause], helped.coef_[1 - cause])
        assert (np.abs(helped.coef_ - alone.coef_) > 1e-3).all()
        np.testing.assert_array_equal(
            *(one.release_.values["evidence_coef"] for one in (helped, alone))
        )

    def test_causes_are_found_by_their_labels(self, here, helped):
        """Of a prior whose causes are in another order, rows are exchanged with their labels."""
        other = fit(made(3.0), *records(6000, 1)).release_
        values = {name: np.asarray(value) for name, value in other.values.items()}
        by_cause = {name: v[::-1] for name, v in values.items() if v.shape[:1] == (2,)}
        by_cause |= {name: values[name] for name in ("row_center", "row_scale")}
        parameters = {**other.parameters, "causes": CAUSES[::-1]}
        turned = replace(other, values={**values, **by_cause}, parameters=parameters)
        again = fit(made(prior=turned), *here)
        np.testing.assert_array_equal(again.coef_, helped.coef_)

    @pytest.mark.parametrize("late", [False, True])
    def test_one_cause_is_the_hazard_model(self, late):
        """With the same noise, cap and prior: to 1e-8, but for the size that is kept."""
        X, y = records(3000, 3)
        event, entry = y["what"] != "alive", np.random.default_rng(4).uniform(0.0, 0.4, 3000)
        given = {"max_time": 1.0, "n_intervals": 20, "max_cumulative_hazard": 2.0}
        given |= {"recalibration_share": 0.0, "random_state": 0}
        both = event.astype(int), y["time"]
        options = {"entry": entry} if late else {}
        found = []
        for epsilon, seed in ((3.0, 1), (1.0, 0), (np.inf, 0)):
            priors = {"prior": found[0].release_} if found else {}
            hazards = {"prior": found[1].release_} if found else {}
            own = {**given, "random_state": seed}
            one = fit(DPCompetingRisks(epsilon, causes=[1], **own, **priors), X, both, **options)
            other = fit(
                DPDiscreteTimeSurvival(epsilon, method="obj_pert", **own, **hazards),
                X,
                (event, y["time"]),
                **options,
            )
            ours, theirs = one.coef_[0], other.coef_
            size = ours @ theirs / (theirs @ theirs)
            assert 0.1 < size < 0.95 if found and np.isfinite(epsilon) else abs(size - 1) < 1e-8
            np.testing.assert_allclose(ours / size, theirs, rtol=0, atol=1e-8)
            for name in EVIDENCE if np.isfinite(epsilon) else ():
                ours, theirs = (np.ravel(x.release_.values[name]) for x in (one, other))
                np.testing.assert_allclose(ours, theirs, rtol=1e-8)
            found = found or [one, other]

    def test_without_privacy_it_is_not_used(self, elsewhere, here):
        exact, prior = made(np.inf), made(np.inf, prior=elsewhere)
        np.testing.assert_array_equal(fit(exact, *here).coef_, fit(prior, *here).coef_)
        assert "prior" not in prior.guarantee_.public_inputs

    def test_standard_errors_are_of_these_records_alone(self, elsewhere, here):
        one = fit(made(5.0, inference_share=0.3), *here)
        other = fit(made(5.0, inference_share=0.3, prior=elsewhere), *here)
        pd.testing.assert_frame_equal(other.summary, one.summary)
        assert not np.array_equal(other.coef_, one.coef_)

    def test_other_columns_bounds_and_grids(self, here):
        """A column that the prior lacks is as without it; a number is per raw unit."""
        X, y = records(6000, 5)
        frame = pd.DataFrame(X, columns=["age", "dose"])
        wide = {"age": {"bounds": (-2.0, 2.0)}, "dose": {"bounds": (-1.0, 1.0)}}
        prior = fit(made(3.0, columns=PublicColumns({"age": wide["age"]})), frame[["age"]], y)
        narrow = PublicColumns({"dose": wide["dose"], "age": {"bounds": (-1.0, 1.0)}})
        X, y = here
        frame = pd.DataFrame(X, columns=["age", "dose"])
        options = {"columns": narrow, "n_intervals": 40, "n_knots": 2}
        other = fit(made(**options, prior=prior.release_), frame, y)
        own = other.release_.values["evidence_coef"]
        size = other.coef_[:, 0] / own[:, 0]  # unshrunk, but for the size that is kept
        assert ((size > 0.1) & (size < 1.0)).all()
        error = other.release_.values["evidence_error"][:, 1]
        theirs = prior.release_.values["evidence_coef"][:, 0] / 2.0
        their_error = prior.release_.values["evidence_error"][:, 0] / 2.0
        mean = (own[:, 1] / error**2 + theirs / their_error**2) / (error**-2 + their_error**-2)
        np.testing.assert_allclose(other.coef_[:, 1] / size, mean, rtol=0.03, atol=0.03)


def test_incidences_are_better(elsewhere, here):
    """Also without a recalibration; the true incidence is known. Seeded: the same every time."""
    X, _ = records(2000, 9)
    rates = np.array([[0.5], [0.25]]) * np.exp(COEF @ X.T)
    true = rates / rates.sum(axis=0) * -np.expm1(-rates.sum(axis=0))
    errors = {}
    for name, prior in (("alone", None), ("helped", elsewhere)):
        models = [fit(made(prior=prior, random_state=seed), *here) for seed in range(8)]
        errors[name] = [
            np.sqrt(np.mean((incidence(model, X, cause) - own) ** 2))
            for model in models
            for cause, own in zip(CAUSES, true, strict=True)
        ]
    assert np.mean(errors["helped"]) < 0.9 * np.mean(errors["alone"])


def incidence(model, X, cause):
    return model.predict_cumulative_incidence_function(X, cause, return_array=True)[:, -1]


class TestRefused:
    """Before anything is charged."""

    def refuse(self, says, prior, here, **parameters):
        accountant = PrivacyAccountant(5.0)
        model = made(prior=prior, accountant=accountant, random_state=None, **parameters)
        with pytest.raises((ValueError, TypeError), match=says):
            fit(model, *here)
        assert accountant.spent() == 0.0

    def test_what_is_no_evidence_of_these_causes(self, elsewhere, here):
        X, y = here
        one = DPDiscreteTimeSurvival(1.0, max_time=1.0).fit(X, (y["what"] != "alive", y["time"]))
        table = Release.from_coefficients(ratios={"x0": (2.0, 1.0, 4.0)}, source="a paper")
        for other in (one.release_, table):
            self.refuse("must be a model of the same causes", other, here)
        self.refuse("prior must be None or a Release", "release.json", here)
        exact = fit(made(np.inf), *here).release_
        self.refuse("must say how sure it is of its coefficients", exact, here)
        hazard = DPDiscreteTimeSurvival(max_time=1.0, prior=elsewhere)
        with pytest.raises(ValueError, match="prior must be a model of hazards"):
            hazard.fit(X, (y["what"] != "alive", y["time"]))

    @pytest.mark.parametrize("causes", [["relapse"], [*CAUSES, "other"], ["relapse", "Death"]])
    def test_other_causes(self, elsewhere, here, causes):
        X, y = here
        one = y["what"].copy()
        one[~np.isin(one, causes)] = "alive"
        self.refuse("must be of the same causes", elsewhere, (X, (one, y["time"])), causes=causes)

    def test_a_number_is_not_its_text_nor_true(self, here):
        prior = fit(made(causes=[1, 2], censored=0), *records(500, 2, (0, 1, 2))).release_
        X, y = records(500, 2, ("alive", "1", "2"))
        self.refuse("must be of the same causes", prior, (X, y), causes=["1", "2"])

    def test_crafted_releases(self, elsewhere, here):
        for says, values in (
            ("prior must have coefficients of at most", {"evidence_coef": np.full((2, 2), 1e300)}),
            ("prior must have coefficients of at most", {"evidence_error": np.full((2, 2), 1e-99)}),
            ("must hold 'evidence_error' that are positive", {"evidence_error": -np.ones((2, 2))}),
            ("evidence_coef", {"evidence_coef": np.ones((3, 2))}),
            ("evidence_coef", {"evidence_coef": np.ones(2)}),
        ):
            self.refuse(says, changed(elsewhere, **values), here)
        promised = replace(elsewhere.guarantee, public_inputs={"prior": [{"a": 1}]})
        self.refuse("status of its own prior", replace(elsewhere, guarantee=promised), here)

    def test_columns_of_another_number(self, elsewhere, here):
        X, y = here
        self.refuse("as many columns as X, 1, got 2", elsewhere, (X[:, :1], y))


def test_promises_and_release(elsewhere, helped, here):
    public = helped.guarantee_.public_inputs
    assert [one["sha256"] for one in public["prior"]] == [sha256(elsewhere)]
    assert "prior" not in helped.release_.parameters  # only the digest leaves
    assert "together, with a prior" in helped.guarantee_.mechanism
    assert helped.guarantee_.epsilon == 1.0
    assert any("learned" in one for one in helped.guarantee_.assumptions)
    built = DPCompetingRisks.from_release(Release.from_json(helped.release_.to_json()))
    assert built.prior is None
    X, _ = here
    np.testing.assert_array_equal(built.predict(X, "death"), helped.predict(X, "death"))
    assert "prior" in explain(helped.release_)
    with pytest.warns(PrivacyLeakWarning, match="the prior promises nothing that is proved"):
        real = made(prior=elsewhere, random_state=None).fit(*here)
    assert real.guarantee_.status == "proved"
    assert verify(real.release_.to_json()).word == "verified"
    again = fit(made(prior=helped.release_), *here).guarantee_.public_inputs["prior"]
    assert [one["sha256"] for one in again] == [sha256(helped.release_), sha256(elsewhere)]


def test_the_command_takes_one(tmp_path, here):
    X, y = here
    columns = {"age": {"bounds": (-1.0, 1.0)}, "dose": {"bounds": (-1.0, 1.0)}}
    prior = fit(made(3.0, columns=PublicColumns(columns)), pd.DataFrame(X, columns=[*columns]), y)
    prior.release_.save(tmp_path / "prior.json")
    frame = pd.DataFrame(X, columns=[*columns]).assign(what=y["what"], time=y["time"])
    frame.to_csv(tmp_path / "new.csv", index=False)
    lines = [f"{name} = {{ bounds = [-1, 1] }}" for name in columns]
    (tmp_path / "schema.toml").write_text("\n".join(["[columns]", *lines]))
    options = {"schema": tmp_path / "schema.toml", "time": "time", "event": "what", "max-time": 1}
    options |= {"causes": "relapse,death", "censored-is": "alive", "epsilon": 1, "seed": 0}
    options |= {"prior": tmp_path / "prior.json", "out": tmp_path / "out.json"}
    given = [str(one) for name, value in options.items() for one in (f"--{name}", value)]
    done = CliRunner().invoke(app, ["fit", "competing-regression", f"{tmp_path}/new.csv", *given])
    assert done.exit_code == 0, done.output
    (entry,) = Release.load(tmp_path / "out.json").guarantee.public_inputs["prior"]
    assert entry["sha256"] == sha256(prior.release_)
