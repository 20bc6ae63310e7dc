"""Tables of every kind: columns are found by name, whatever library a table is of."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPTableOne,
    FrameChunks,
    HybridMEstimator,
    PrivacyAccountant,
    PrivateSearchCV,
    PrivateStackingClassifier,
    PublicColumns,
    split_target,
)
from skdpsurv.data.shape import take
from skdpsurv.data.single_rows import SingleRows, single_target
from skdpsurv.evaluation import private_survival_metrics

N = 120
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"b": RNG.uniform(0, 1, N), "a": RNG.uniform(0, 1, N)})
Y = pd.DataFrame({"event": RNG.random(N) < 0.5, "time": RNG.exponential(2.0, N)})
CLASSES = Y.event.astype(int)
COLUMNS = PublicColumns({"a": (0, 1), "b": (0, 1)})
LABELLED = {"columns": COLUMNS, "classes": [0, 1]}
HAZARDS = {"max_time": 4.0, "columns": COLUMNS, "inference_share": 0.0}
LABELS = {
    "tuple": pd.MultiIndex.from_tuples([("v", "b"), ("v", "a")]),
    "bytes": [b"b", b"a"],
    "int": [1, 0],
    "float": [0.0, 1.0],
    "bool": [False, True],
    "str_": pd.Index([np.str_("b"), np.str_("a")], dtype=object),
    "Timestamp": pd.to_datetime(["2001-01-01", "2002-01-01"]),
}
FITS = {
    "hazards": lambda X, own: DPDiscreteTimeSurvival(**HAZARDS, **own).fit(X, Y),
    "logistic": lambda X, own: DPLogisticRegression(**LABELLED, **own).fit(X, CLASSES),
    "stack": lambda X, own: PrivateStackingClassifier(**LABELLED, **own).fit(X, CLASSES),
    "table": lambda X, own: DPTableOne(columns=COLUMNS, **own).fit(X),
    "hybrid": lambda X, own: HybridMEstimator(columns=COLUMNS, **own).fit(
        X, CLASSES, public=np.arange(N) < 40
    ),
    "search": lambda X, own: PrivateSearchCV(
        DPDiscreteTimeSurvival(**HAZARDS), {"n_knots": [3, 4]}, **own
    ).fit(X, Y),
    "pipeline": lambda X, own: make_pipeline(
        COLUMNS, DPDiscreteTimeSurvival(max_time=4.0, data_norm=1.0, **own)
    ).fit(X, Y),
    "evaluation": lambda X, own: private_survival_metrics(MODEL, X, Y, max_time=4.0, **own),
    "dask": lambda X, own: DPDiscreteTimeSurvival(**HAZARDS, **own).fit(
        dd.from_pandas(X, npartitions=2), dd.from_pandas(Y, npartitions=2)
    ),
    "chunks": lambda X, own: DPDiscreteTimeSurvival(**HAZARDS, **own).fit(
        *split_target(FrameChunks([pd.concat([X, Y], axis=1)]), time="time", event="event")
    ),
}
MODEL = DPDiscreteTimeSurvival(epsilon=np.inf, **HAZARDS).fit(TABLE, Y)
PIPELINE = make_pipeline(
    COLUMNS, DPDiscreteTimeSurvival(epsilon=np.inf, max_time=4.0, data_norm=1.0)
).fit(TABLE, Y)


@pytest.mark.parametrize("name", FITS)
def test_columns_without_names_are_refused_before_any_charge(name):
    for kind, labels in LABELS.items():
        if kind in ("tuple", "Timestamp") and name == "chunks":
            continue  # these make one index of labels and names
        if name == "pipeline" and kind == "str_":
            continue  # PublicColumns finds them by name itself
        ledger = PrivacyAccountant(epsilon=3.0, charge_refusals=True)
        with pytest.raises(ValueError, match=f"^X must have text column names.*{kind}.*set_axis"):
            FITS[name](TABLE.set_axis(labels, axis=1), {"epsilon": 1.0, "accountant": ledger})
        # Records that are not in memory are counted first, by a look that is paid for.
        assert ledger.spent() == (1.0 if name in ("dask", "chunks") else 0.0)


@pytest.mark.parametrize("model", [MODEL, PIPELINE], ids=["model", "pipeline"])
def test_predictions_need_names(model):
    for kind, labels in LABELS.items():
        if model is PIPELINE and kind == "str_":
            continue  # as above
        with pytest.raises(ValueError, match=f"^X must have text column names.*{kind}"):
            model.predict(TABLE.set_axis(labels, axis=1))


def test_positions_in_order_are_an_array():
    X = TABLE[["a", "b"]]
    framed = pd.DataFrame(X.to_numpy())
    model = DPDiscreteTimeSurvival(epsilon=np.inf, **HAZARDS).fit(framed, Y)
    np.testing.assert_allclose(model.coef_, MODEL.coef_, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(framed), model.predict(X.to_numpy()))
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.predict(framed), model.predict(X))
    with (
        pytest.raises(ValueError, match="columns a, b, in this order"),
        pytest.warns(UserWarning, match="feature names"),
    ):
        model.predict(TABLE)


# ---- Tables of polars and pyarrow.

RAW = pd.DataFrame(
    {"age": RNG.uniform(0, 1, N), "stage": RNG.choice(["I", "II"], N), "n": RNG.integers(0, 9, N)}
)
STATED = PublicColumns({"stage": ["I", "II"], "n": (0, 9), "age": (0, 1)}, missing="category")
GAPS = {"age": [0.5, None], "stage": [None, "II"], "n": [3, None]}
# Integers that no double holds stay what they are.
LARGE = {"k": [2**53 + 1, None]}


def arrow(frame):
    return pytest.importorskip("pyarrow").table(dict(frame))


KINDS = pytest.mark.parametrize("of", [arrow, pl.DataFrame], ids=["pyarrow", "polars"])


@pytest.mark.slow
@KINDS
def test_tables_of_other_libraries_go_everywhere(of):
    pandas, own = {"X": RAW, "y": Y}, {"X": of(RAW.to_dict("list")), "y": of(Y.to_dict("list"))}
    found = []
    for given in (pandas, own):
        X, y, event = given["X"], given["y"], given["y"]["event"]
        hazards = DPDiscreteTimeSurvival(epsilon=np.inf, max_time=4.0, columns=STATED).fit(X, y)
        named = ["age", "n"]
        numbers = X.select(named) if given is own else X[named]
        plain = DPDiscreteTimeSurvival(epsilon=np.inf, max_time=4.0, data_norm=9.0)
        plain.fit(numbers, y, person=X["n"])
        logistic = DPLogisticRegression(epsilon=np.inf, columns=STATED, classes=[False, True])
        hybrid = HybridMEstimator(epsilon=1.0, random_state=0).fit(
            X, event, public=np.arange(N) < 40
        )
        table = DPTableOne(epsilon=np.inf, columns=STATED).fit(X).table_["estimate"]
        metrics = private_survival_metrics(hazards, X, y, epsilon=np.inf, max_time=4.0)
        found.append(
            [
                *(hazards.coef_, hazards.predict(X), hazards.score(X, y)),
                *(hazards.release_.predict(X), hazards.release_.target_names),
                *(plain.coef_, plain.predict(numbers), plain.feature_names_in_),
                *(logistic.fit(X, event).coef_, logistic.score(X, event), hybrid.predict(X)),
                *(table.to_numpy(), metrics.c_index.value, STATED.fit_transform(X)),
                *(SingleRows.of(X, raw=True)[3].to_numpy(), single_target(y, 3).to_numpy()),
                np.asarray(take(X, np.array([4, 2]))["n"]),
            ]
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@KINDS
def test_gaps_do_not_change_the_types_of_others(of):
    expected = STATED.fit_transform(pd.DataFrame(GAPS).convert_dtypes())
    np.testing.assert_array_equal(STATED.fit_transform(of(GAPS)), expected)
    large = PublicColumns({"k": {"categories": [2**53, 2**53 + 1]}}, missing="category", drop=None)
    assert large.fit_transform(of(LARGE)).tolist() == [[0, 1, 0], [0, 0, 1]]


@KINDS
def test_names_of_columns_are_no_records(of):
    X = of(RAW.rename(columns={"n": "m"}).to_dict("list"))
    with pytest.raises(ValueError, match=r"^X lacks 'n'\.$"):
        STATED.fit(X)
    with pytest.raises(ValueError, match="X has no n; columns does not describe m"):
        DPDiscreteTimeSurvival(max_time=4.0, columns=STATED).fit(X, Y)
    days = of({"day": [pd.Timestamp("2001-01-01").to_pydatetime()] * 2})
    with pytest.raises(TypeError, match="found in day:"):
        DPDiscreteTimeSurvival(max_time=4.0, data_norm=1.0).fit(days, Y[:2])


def test_queries_are_refused_by_name():
    X, y = pl.LazyFrame(RAW.to_dict("list")), pl.LazyFrame(Y.to_dict("list"))
    model = DPDiscreteTimeSurvival(max_time=4.0, columns=STATED)
    for ask, name in (
        (lambda: model.fit(X, Y), "X"),
        (lambda: model.fit(RAW, y), "y"),
        (lambda: model.fit(RAW, Y, person=y), "person"),
        (lambda: STATED.fit_transform(X), "X"),
        (lambda: MODEL.predict(X), "X"),
        (lambda: MODEL.score(TABLE, y), "y"),
    ):
        with pytest.raises(TypeError, match=rf"^{name} must .* LazyFrame, as in {name}.collect"):
            ask()


# ---- No rows.


def test_predictions_of_no_rows_are_empty():
    none, plain = TABLE[:0], TABLE.to_numpy()
    logistic = DPLogisticRegression(epsilon=np.inf, columns=COLUMNS).fit(TABLE, CLASSES)
    rows = DPLogisticRegression(epsilon=np.inf, data_norm=1.0, classes=[0, 1]).fit(plain, CLASSES)
    hybrid = HybridMEstimator(epsilon=1.0).fit(plain, CLASSES, public=np.arange(N) < 40)
    stack = PrivateStackingClassifier(epsilon=1e3, columns=COLUMNS, classes=[0, 1])
    stack.fit(TABLE, CLASSES)
    for ask, X, shape in (
        (MODEL.predict, none, (0,)),
        (MODEL.release_.predict, none, (0,)),
        (MODEL.predict_survival_function, none, (0,)),
        (MODEL.predict_median, none, (0,)),
        (MODEL.predict_expectation, none, (0,)),
        (PIPELINE.predict, none, (0,)),
        (logistic.predict, none, (0,)),
        (logistic.predict_proba, none, (0, 2)),
        (rows.predict_proba, plain[:0], (0, 2)),
        (stack.predict_proba, none, (0, 2)),
        (hybrid.predict, plain[:0], (0,)),
        (hybrid.predict_proba, plain[:0], (0, 2)),
        (COLUMNS.transform, none, (0, 2)),
    ):
        assert ask(X).shape == shape
    with pytest.raises(ValueError, match="feature names should match"):
        MODEL.predict(none[["a"]])
    for X in (none, plain[:0]):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            DPDiscreteTimeSurvival(max_time=4.0, data_norm=1.0).fit(X, Y[:0])
