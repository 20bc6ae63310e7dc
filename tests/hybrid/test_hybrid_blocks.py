"""Hybrid fits over blocks, in memory and of Dask: the same release, whatever the cut."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.tree import DecisionTreeClassifier

from skdpsurv import HybridMEstimator, PrivacyAccountant, PrivacyLeakWarning, PublicColumns
from skdpsurv.data import blocks
from skdpsurv.data.dask import DaskBlocks
from skdpsurv.hybrid import SubsetSelection

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")

N, N_PUBLIC = 280, 110
NUMBERS = ["age", "dose"]
ALL = [*NUMBERS, "site", "arm"]
RAW = {"age": (-3, 3), "dose": (-3, 3), "arm": ["a", "b"]}
ENDS = [0, 33, 33, 170, N]


@pytest.fixture(autouse=True)
def threads():
    """No cluster, whatever other tests have begun."""
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        yield


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2)).round(1)  # so that records are equally near to several
    public = rng.permutation(N) < N_PUBLIC
    score = np.where(public, 0.3, 2.0) * X[:, 0]
    site = rng.choice(["north", "south", None], N).astype(object)
    site[~public & (X[:, 0] > 1.0)] = "elsewhere"
    return pd.DataFrame(X, columns=NUMBERS).assign(
        site=site,
        arm=np.where(X[:, 1] > 0.0, "a", "b"),
        ill=(rng.random(N) < 1.0 / (1.0 + np.exp(-score))).astype(int),
        words=np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.6, 0.6])],
        cost=np.exp(0.3 * X[:, 0] + 0.2 * rng.normal(size=N)),
        consented=public,
    )


class Unknown(LinearRegression):
    """Of which nothing is known: it is shown private records one by one."""


def model(estimator=None, epsilon=2.0, **parameters):
    return HybridMEstimator(estimator, epsilon, random_state=0, **parameters)


SUBSET, CURVE = (
    SubsetSelection(kind, candidate_sizes=[20, 60]) for kind in ("permute_and_flip", "noisy_curve")
)
#: Of an estimator: its outcome, and the columns that it is shown.
SETTINGS = {
    "auto": (model(), "ill", ALL),
    "cells": (model(method="cells"), "ill", ALL),
    "residuals": (model(method="residuals"), "ill", ALL),
    "all": (model(method="all"), "ill", ALL),
    "subset": (model(method=SUBSET), "ill", ALL),
    "curve": (model(LinearRegression(), method=CURVE), "cost", NUMBERS),
    "tree": (model(DecisionTreeClassifier(max_depth=3), method=SUBSET), "ill", NUMBERS),
    "counts": (model(PoissonRegressor(), epsilon=50.0), "cost", NUMBERS),
    "three classes": (model(), "words", NUMBERS),
    "no noise": (model(epsilon=np.inf, method="residuals"), "ill", NUMBERS),
    "unknown": (model(Unknown(), method="residuals"), "cost", NUMBERS),
    "columns": (model(columns=PublicColumns(RAW)), "ill", list(RAW)),
}


def some(*quick):
    return pytest.mark.parametrize(
        "setting", [s if s in quick else pytest.param(s, marks=pytest.mark.slow) for s in SETTINGS]
    )


def fit(setting, rows, public=None):
    one, outcome, columns = SETTINGS[setting]
    public = rows["consented"] if public is None else public
    return clone(one).fit(rows[columns], rows[outcome], public=public)


@pytest.fixture(scope="module")
def whole(frame):
    """What others are compared with, fitted once."""
    fits = {}

    def fitted(setting):
        if setting not in fits:
            fits[setting] = fit(setting, frame)
        return fits[setting]

    return fitted


def same(found, wanted, near=1e-9):
    one, other = found.release_, wanted.release_
    assert one.values.keys() == other.values.keys()
    for name, value in other.values.items():
        np.testing.assert_allclose(one.values[name], value, rtol=near, atol=near, err_msg=name)
    counted = {"n_cells", "public_index"}
    if wanted.method == "all" or isinstance(wanted.method, SubsetSelection):
        counted.add("weights")
    for name in counted & one.values.keys():
        np.testing.assert_array_equal(one.values[name], other.values[name])
    assert one.guarantee == other.guarantee
    assert one.feature_names_in == other.feature_names_in


def cut(frame, ends):
    """Return a frame of Dask with partitions that end at some rows, be they empty or not."""
    starts = [0, *ends[:-1]]
    parts = [dask.delayed(frame.iloc[a:b]) for a, b in zip(starts, ends, strict=True)]
    return dd.from_delayed(parts, meta=frame.iloc[:0])


class TestInMemory:
    @some("auto", "subset")
    def test_blocks_do_not_matter(self, monkeypatch, frame, whole, setting):
        wanted = whole(setting)
        for n_blocks in (3, 7):
            monkeypatch.setattr(blocks, "BLOCK_ROWS", -(-N // n_blocks))
            assert blocks.in_blocks(frame).n_blocks == n_blocks
            same(fit(setting, frame), wanted)

    @some("all")
    def test_blocks_of_public_or_of_private_records_alone(self, monkeypatch, frame, setting):
        rows = frame.sort_values("consented")
        wanted = fit(setting, rows)
        monkeypatch.setattr(blocks, "BLOCK_ROWS", 70)
        # Without noise weights are where a search ends, which carries a last bit further.
        same(fit(setting, rows), wanted, 1e-6 if setting == "no noise" else 1e-9)

    def test_one_public_value_makes_categories_in_any_block(self, monkeypatch, frame):
        rows = frame.assign(dose=frame["dose"].astype(object))
        rows.loc[np.flatnonzero(rows["consented"])[-1], "dose"] = "none"
        wanted = fit("all", rows)
        assert wanted.release_.parameters["categorical_features"] == [1, 2, 3]
        monkeypatch.setattr(blocks, "BLOCK_ROWS", 50)
        same(fit("all", rows), wanted)


class TestDask:
    @some("auto")
    def test_frames(self, frame, whole, setting):
        same(fit(setting, cut(frame, ENDS)), whole(setting))

    @some("subset")
    @pytest.mark.parametrize("chunks", [(N, 2), (60, 1)])
    def test_arrays(self, frame, setting, chunks):
        one, outcome, columns = SETTINGS[setting]
        X, y = frame[columns].to_numpy(), frame[outcome].to_numpy()
        mask = frame["consented"].to_numpy()
        wanted = clone(one).fit(X, y, public=mask)
        # Objects, and of them Dask cannot tell how large they are.
        X, y = da.from_array(X, chunks=chunks, asarray=False), da.from_array(y, chunks=77)
        same(clone(one).fit(X, y, public=da.from_array(mask, chunks=111)), wanted)

    def test_a_mask_in_memory_or_of_other_divisions(self, frame, whole):
        rows, mask = cut(frame, ENDS), frame["consented"]
        other = dd.from_pandas(frame, npartitions=3), dd.from_pandas(mask, npartitions=5)
        for cases in ((rows, mask.to_numpy()), (rows, mask.tolist()), other):
            same(fit("auto", *cases), whole("auto"))
        X = da.from_array(frame[NUMBERS].to_numpy(), chunks=(100, 2))
        y = da.from_array(frame["ill"].to_numpy(), chunks=100)
        wanted = model().fit(frame[NUMBERS].to_numpy(), frame["ill"], public=mask)
        same(model().fit(X, y, public=mask.to_numpy()), wanted)

    def test_all_public_records_in_one_partition(self, frame):
        rows = frame.sort_values("consented", ascending=False).reset_index(drop=True)
        same(fit("subset", cut(rows, [N_PUBLIC, N_PUBLIC + 9, N])), fit("subset", rows))

    def test_categories_that_partitions_know_of_differently(self, frame, whole):
        rows = cut(frame, [100, 200, N]).map_partitions(
            lambda part: part.astype({"arm": "category"}),
            meta=frame.iloc[:0].astype({"arm": pd.CategoricalDtype(["a", "b"])}),
        )
        same(fit("auto", rows), whole("auto"))

    @some("auto", "three classes")
    def test_predictions_are_lazy_and_the_same(self, frame, whole, setting):
        fitted, columns = whole(setting), SETTINGS[setting][2]
        rows = cut(frame, ENDS)[columns]
        for name in ("predict", "predict_proba", "decision_function"):
            if hasattr(fitted, name):
                asked, wanted = getattr(fitted, name)(rows), getattr(fitted, name)(frame[columns])
                assert isinstance(asked, da.Array)
                assert (asked.dtype, asked.shape[1:]) == (wanted.dtype, wanted.shape[1:])
                found = pd.DataFrame(asked.compute())
                pd.testing.assert_frame_equal(found, pd.DataFrame(wanted), rtol=1e-12)
        with pytest.raises(TypeError, match="must be in memory"):
            fitted._matrix(rows)


class TestRefusals:
    def refuse(self, kind, match, X, y, public):
        accountant = PrivacyAccountant(5.0)
        with pytest.raises(kind, match=match):
            HybridMEstimator(accountant=accountant).fit(X, y, public=public)
        assert len(accountant.entries()) == 0

    def test_of_a_private_value_in_one_partition(self, monkeypatch, frame):
        place = np.flatnonzero(~frame["consented"])[-2]
        monkeypatch.setattr(blocks, "BLOCK_ROWS", 100)
        for column in ("dose", "ill"):
            broken = frame.astype({"ill": float})
            broken.loc[place, column] = np.nan
            for rows in (broken, cut(broken, [0, 90, 200, N])):
                self.refuse(ValueError, r"NaN|missing", rows[ALL], rows["ill"], rows["consented"])

    def test_of_masks(self, frame):
        rows = cut(frame, [90, 200, N])
        X, y, mask = rows[ALL], rows["ill"], frame["consented"].to_numpy()
        other = dd.from_pandas(frame["consented"], npartitions=2)
        for kind, match, public in (
            (ValueError, "public must be given", None),
            (ValueError, "public must have one entry for each record", mask[:-1]),
            (ValueError, "public must have one entry for each", True),
            (ValueError, "True for some", np.zeros(N, dtype=bool)),
            (ValueError, "False for others", rows["consented"] | True),
            (TypeError, "booleans", rows["ill"]),
            (TypeError, "booleans", np.where(np.arange(N) < 200, mask.astype(object), 1)),
            (ValueError, "X and public must have the same partitions", other),
            (ValueError, "public must have .* booleans", cut(frame, [90, 201, N])["consented"]),
        ):
            self.refuse(kind, match, X, y, public)
        match = "X must be a collection of Dask, as public is"
        self.refuse(TypeError, match, frame[ALL], frame["ill"], other)

    def test_no_private_record_comes_to_the_client(self, monkeypatch, frame):
        """What results of blocks are brought here are public records, and nothing else."""
        brought, honest = [], DaskBlocks.results

        def results(self, function, *rest):
            found = list(honest(self, function, *rest))
            brought.extend(found)
            return iter(found)

        monkeypatch.setattr(DaskBlocks, "results", results)
        fit("subset", cut(frame, [90, 200, N]))
        rows = pd.concat([part for part, _ in brought])
        wanted = frame.loc[frame["consented"], rows.columns]
        pd.testing.assert_frame_equal(
            rows.reset_index(drop=True), wanted.reset_index(drop=True), check_dtype=False
        )
