"""What the fence compares: fits of 2,000 records, at which a fit takes all of its steps."""

from functools import cache, partial

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from tests.fence.places import find, make

N = 2000
NAMES = ["age", "dose", "size"]
HAZARD, LOGISTIC, STACK = (
    "DPDiscreteTimeSurvival",
    "DPLogisticRegression",
    "PrivateStackingClassifier",
)
HYBRID, SEARCH, CURVE = "HybridMEstimator", "PrivateSearchCV", "DPKaplanMeierFitter"
WEIBULL, CAUSES, HISTOGRAM = (
    "DPWeibullFitter",
    "DPAalenJohansenFitter",
    "PerturbedHistogramMEstimator",
)


@cache
def records():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.uniform(-0.5, 0.5, (N, 3)), columns=NAMES)
    risk = frame["age"] - frame["dose"]
    dies, leaves = rng.weibull(1.4, N) * 6.0 * np.exp(-risk), rng.uniform(1.0, 12.0, N)
    frame["event"], frame["time"] = dies <= leaves, np.minimum(dies, leaves)
    frame["ill"] = (risk + 0.3 * rng.normal(size=N) > 0).astype(int)
    frame["three"] = frame["ill"] + (frame["size"] > 0.2)
    frame["score"] = np.clip(risk + 0.1 * rng.normal(size=N), -1.0, 1.0)
    frame["ward"] = rng.choice(["east", "west"], N).astype(object)
    frame["cause"] = np.where(frame["event"], rng.choice(["relapse", "death"], N), "alive")
    frame["person"] = np.arange(N) % 1700
    frame["public"] = np.arange(N) % 4 == 0
    return frame


def rows():
    return records()[NAMES].to_numpy()


def survival():
    y = np.empty(N, dtype=[("event", "?"), ("time", "f8")])
    y["event"], y["time"] = records()["event"], records()["time"]
    return y


def column(name):
    return records()[name].to_numpy()


def table(kind):
    """Return covariates and target out of memory."""
    frame = records()[[*NAMES, "event", "time"]]
    if kind == "chunks":
        whole = find("FrameChunks")([frame[:700], frame[700:1501], frame[1501:]])
    else:
        import dask.dataframe as dd

        whole = dd.from_pandas(frame, npartitions=3)
    return find("split_target")(whole, time="time", event="event")


def settings():

    def of(name, data, defaults):
        def one(what, source=data, fit=dict, **parameters):
            def run(random_state):
                model = make(name, **{**defaults, **parameters}, random_state=random_state)
                return model.fit(*source(), **fit())

            return f"{name}: {what}", run

        return one

    person = lambda: {"person": column("person")}  # noqa: E731
    one = of(HAZARD, lambda: (rows(), survival()), {"max_time": 10.0, "n_intervals": 50})
    errors = {"inference_share": 0.3, "epsilon": 4.0, "link": "cloglog"}
    yield one("defaults")
    yield one("delta", delta=1e-5)
    yield one("person", fit=person)
    yield one("chunks", partial(table, "chunks"))
    yield one("Dask", partial(table, "dask"))
    yield one("standard errors", **errors)
    yield one("output", **errors, method="out_pert")
    yield one("Gaussian output", method="out_pert", delta=1e-5)
    yield one("noisy descent", **errors, method="noisy_gd", delta=1e-5)
    yield one("probit", link="probit", alpha=0.1)
    letter = {"calibration": "published", "max_cumulative_hazard": None}
    yield one("published", **letter, epsilon=5.0)
    yield one("output as published", **letter, method="out_pert")
    chain = {"method": "psgld", "epsilon": 5.0}
    yield one("mala", **{**chain, "n_epochs": 100})
    yield one("psgld", **{**chain, "n_epochs": 3}, sampler="psgld", alpha=1.0)
    yield one("psgld as published", **{**chain, "n_epochs": 3}, **letter, sampler="psgld")
    yield one("noisy Langevin", **{**chain, "n_epochs": 30}, sampler="psgld", delta=1e-5)

    def with_prior(random_state):
        elsewhere = make(HAZARD, max_time=10.0, n_intervals=50, epsilon=5.0, random_state=1)
        prior = elsewhere.fit(rows()[:1000], survival()[:1000]).release_
        model = make(HAZARD, max_time=10.0, n_intervals=50, prior=prior, random_state=random_state)
        return model.fit(rows(), survival())

    yield f"{HAZARD}: prior", with_prior

    one = of(LOGISTIC, lambda: (rows(), column("ill")), {"classes": [0, 1]})
    yield one("defaults")
    yield one("person", fit=person)
    yield one("standard errors", inference_share=0.2, epsilon=4.0)
    yield one("output", method="out_pert", max_residual=1.0)
    yield one("Gaussian output", method="out_pert", delta=1e-5)
    yield one("noisy descent", method="noisy_gd", delta=1e-5)
    yield one("published", calibration="published", fit_intercept=False)
    yield one("three classes", lambda: (rows(), column("three")), classes=[0, 1, 2])

    one = of(STACK, lambda: (rows(), column("ill")), {"classes": [0, 1], "n_partitions": 3})
    yield one("columns", n_jobs=2)
    yield one("rows, stacked", partition="samples", combiner="logistic", n_jobs=2, delta=1e-5)
    top = {"combiner": "logistic", "holdout": 0.3}
    yield one("columns, stacked", importances=[1.0, 2.0, 0.5], group_norms=[0.6, 0.5, 0.5], **top)
    groups = [["age", "size"], ["dose"]]
    frame = lambda: (records()[NAMES], column("ill"))  # noqa: E731
    letter = {"calibration": "published", "combiner": "logistic"}
    yield one("published", frame, feature_groups=groups, **letter)

    def durations():
        return column("time"), column("event")

    one = of(WEIBULL, durations, {"max_time": 10.0})
    yield one("ladder")
    yield one("without correction", calibration="exact")
    yield one("Laplace", lambda: (rows(), survival()), method="laplace")
    yield one("sample and aggregate", method="sample_aggregate")

    one = of(CURVE, durations, {"max_time": 10.0})
    yield one("everybody")
    yield one("groups", fit=lambda: {"group": column("ward")}, groups=["east", "west"])
    yield one("people", fit=person)
    causes = {"max_time": 10.0, "causes": ["relapse", "death"], "censored": "alive"}
    yield of(CAUSES, lambda: (column("time"), column("cause")), causes)("two causes")

    one = of(
        HYBRID,
        lambda: (rows(), column("ill").astype(object)),
        {"estimator": DecisionTreeClassifier(max_depth=3, random_state=0)},
    )
    public = lambda: {"public": column("public")}  # noqa: E731
    for method in ("auto", "cells", "residuals", "all"):
        yield one(method, fit=public, method=method)
    yield one("cells, then residuals", fit=public, epsilon=500.0)
    yield one("Gaussian residuals", fit=public, method="residuals", epsilon=4.0, delta=1e-5)
    subset = {"method": "subset", "candidate_sizes": [50, 200]}
    yield one("subset", fit=public, **subset)
    linear = {**subset, "selection": "noisy_curve", "estimator": LinearRegression()}
    yield one("noisy curve", lambda: (rows(), column("score")), fit=public, **linear)
    bins = {"bounds": [(-0.5, 0.5)] * 3, "n_bins": 3, "outcome": [0, 1]}
    yield of(HISTOGRAM, lambda: (rows(), column("ill")), bins)("labels")

    def search(target, inner, **parameters):
        y = survival if target == "survival" else partial(column, target)

        def run(random_state):
            model = make(SEARCH, estimator=inner(), random_state=random_state, **parameters)
            return model.fit(rows(), y())

        return run

    logistic = partial(make, LOGISTIC, classes=[0, 1])
    alphas = {"param_grid": {"alpha": [0.01, 1.0]}, "expected_runs": 2.0, "epsilon": 4.0}
    ways = {**alphas, "param_grid": {"method": ["obj_pert", "out_pert"]}}
    split = {"param_grid": alphas["param_grid"], "epsilon": 4.0, "strategy": "split", "refit": 0.4}
    yield f"{SEARCH}: repeat", search("ill", logistic, **alphas)
    yield f"{SEARCH}: split", search("ill", logistic, **split)
    hazard = partial(make, HAZARD, max_time=10.0, n_intervals=20)
    yield f"{SEARCH}: hazards", search("survival", hazard, **ways)

    def evaluation(random_state):
        model = make(HAZARD, max_time=10.0, n_intervals=50, random_state=1)
        model.fit(rows()[:1000], survival()[:1000])
        evaluate = find("private_survival_metrics")
        return evaluate(
            model, rows()[1000:], survival()[1000:], max_time=9.0, random_state=random_state
        )

    yield "evaluation", evaluation
