"""Each estimator is known by its card: lists of names elsewhere hold what the cards say."""

import sys

import pandas as pd
import pytest

import skdpsurv
from skdpsurv import DPKaplanMeierFitter, PublicColumns, Release, forecast_accuracy, pool_releases
from skdpsurv.audit import worst_neighbours
from skdpsurv.audit.neighbours import PAIRS
from skdpsurv.base import PrivateEstimator
from skdpsurv.cli.fitting import Kind as Fitted
from skdpsurv.cli.simulate import Attacked
from skdpsurv.evaluation.evaluation import Evaluation
from skdpsurv.pooling.poolable import counted, estimated
from skdpsurv.report.text import WORDS
from skdpsurv.study.analysis_kinds import KINDS
from tests.test_imports import told

OURS = {
    name: kind
    for name, kind in Release.kinds._all().items()
    if issubclass(kind, PrivateEstimator) and kind.__module__.startswith("skdpsurv.")
}
FIT = [1.0, 3.0, 7.0, 9.0] * 25, [1, 0, 1, 1] * 25


@pytest.fixture
def own(monkeypatch):
    """Define estimators of somebody's own, which nobody knows afterwards."""
    monkeypatch.setattr(Release, "kinds", type(Release.kinds)(Release.kinds))
    return lambda name="Mine", **card: type(name, (DPKaplanMeierFitter,), {}, **card)


def test_lists_that_must_be_literals_hold_each_estimator():
    """The front door is light, and a command prints its help, without an import of estimators."""
    words = Release.kinds.named("word")
    assert {*Fitted, "table"} == words.keys()
    assert {*Attacked} == words.keys() - {Fitted.competing}
    later = {name: module for module, names in skdpsurv._LATER.items() for name in names}
    rooms = {name: kind.__module__.split(".")[1] for name, kind in OURS.items()}
    assert {n: room for n, room in rooms.items() if room != "published"} == {
        name: later[name] for name in later.keys() & OURS.keys()
    }
    assert WORDS["estimators"].keys() == OURS.keys()


@pytest.mark.parametrize("name", OURS)
def test_a_card_is_understood_by_all_who_read_it(name):
    kind = OURS[name]
    card = kind._card
    assert card.takes in PAIRS
    model = kind(**card.such_as)
    ratios = WORDS["ratios"]
    assert card.ratio.format(**vars(model)) in ratios or card.ratio == "{link}"
    assert all(kind._ruled()["method"]("method", word) is None for word in card.methods)
    assert bool(card.adds_up) == (name in counted()) + (name in estimated())
    assert {"word", "analysis"} <= vars(card).keys()
    assert not card.word or KINDS[card.analysis].estimator is kind


def test_every_analysis_is_that_of_a_card():
    stated = {one._card.analysis for one in OURS.values()} - {""}
    assert KINDS.keys() == {*stated, "evaluation"}
    assert KINDS["evaluation"].estimator is Evaluation


def test_a_subclass_has_the_card_of_its_base_but_for_its_names(own):
    base, card = DPKaplanMeierFitter._card, own()._card
    assert (card.word, card.analysis, card.adds_up) == ("", "", None)
    assert (card.takes, card.measure, card.such_as) == (base.takes, base.measure, base.such_as)


def test_an_estimator_of_somebodys_own_is_its_class_and_its_card(own):
    mine = own(word="mine", adds_up="tables")
    forecast = forecast_accuracy("mine", 20, epsilons=[1.0], n_repeats=1, random_state=0)
    assert (forecast.about["estimator"], forecast.headline) == ("Mine", "largest_error")
    model = mine(epsilon=5.0, max_time=10.0, n_intervals=4)
    both = pool_releases([model.fit(*FIT).release_ for _ in range(2)])
    assert (both.estimator, both.guarantee.public_inputs["n_records"]) == ("Mine", 200)
    assert next(iter(worst_neighbours(model, n=1))).name.startswith("event at zero")
    with pytest.raises(ValueError, match="must come from one of"):
        pool_releases(
            [own("Other")(epsilon=5.0, max_time=10.0).fit(*FIT).release_ for _ in range(2)]
        )


@pytest.mark.slow
def test_a_release_of_table_1_finds_an_estimator_that_nobody_has_imported(tmp_path):
    columns = PublicColumns({"age": (0, 100)})
    fitted = skdpsurv.DPTableOne(epsilon=5.0, columns=columns).fit(
        pd.DataFrame({"age": [50.0, 60.0] * 50})
    )
    fitted.release_.save(tmp_path / "table.json")
    assert "skdpsurv.descriptive" in sys.modules
    found = told(
        f"""
        import sys, skdpsurv
        release = skdpsurv.Release.load({str(tmp_path / "table.json")!r})
        print("skdpsurv.descriptive" in sys.modules, type(release.to_estimator()).__name__)
        """
    )
    assert found == "False DPTableOne"
