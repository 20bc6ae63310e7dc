"""Protocols: every wrong entry is refused by its name and its rule; the hash is of what decides."""

import copy
import json
import re

import pandas as pd
import pytest

from skdpsurv.data import PublicColumns
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.report.text import outcome_words
from skdpsurv.study import Analysis, Protocol
from skdpsurv.study.analysis_kinds import KINDS, described
from tests.study.studies import ANALYSES, NAMES, protocol, records

TOML = """
title = "Stage and survival"
dataset = "registry"
owner = "A. Curie"
purpose = "protocol 7"
schema = "columns.toml"
evaluation_share = 0.3

[outcome]
time = "days"
event = "died"
person = "id"
max_time = 1000
unit = "days"

[budget]
epsilon = 6

[[analyses]]
kind = "curves"
by = "stage"

[[analyses]]
kind = "weibull"

[[analyses]]
kind = "regression"
share = 2

[[analyses]]
kind = "evaluation"
of = "regression"
"""
SCHEMA = """
[columns]
age = { bounds = [30, 95], missing = "midpoint" }
stage = ["I", "II", "III"]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "columns.toml").write_text(SCHEMA)
    (tmp_path / "protocol.toml").write_text(TOML)
    return tmp_path


def read(folder, old="", new=""):
    assert not old or old in TOML
    (folder / "protocol.toml").write_text(TOML.replace(old, new, 1) if old else TOML + new)
    return Protocol.from_toml(folder / "protocol.toml")


def test_a_file_and_the_constructor_make_the_same_protocol(folder):
    of_file, made = read(folder), protocol()
    assert of_file.sha256 == made.sha256
    assert of_file.analyses == ANALYSES
    assert [one.name for one in of_file.analyses] == NAMES


def test_the_text_makes_the_same_protocol():
    first = protocol(event_is=("yes",), censored_is=("no", "lost"), delta=1e-9, ledger="a.sqlite")
    again = Protocol.from_text(first.text)
    assert (again.text, again.sha256) == (first.text, first.sha256)
    assert again.event_is == ("yes",)
    stated = json.loads(first.text)
    with pytest.raises(ValueError, match="layout 1"):
        Protocol.from_text(json.dumps(stated | {"layout": 2}))


def test_the_hash_is_of_all_that_decides(folder):
    """One change after another, and none of them gives a hash that was there before."""
    seen = {read(folder).sha256}
    for old, new in (
        ("survival", "death"),
        ('"registry"', '"register"'),
        ("A. Curie", "B. Curie"),
        ("protocol 7", "protocol 8"),
        ("0.3", "0.25"),
        ("days", "months"),
        ("died", "dead"),
        ('person = "id"\n', ""),
        ("1000", "999.5"),
        ("epsilon = 6", "epsilon = 5"),
        ("epsilon = 6", "epsilon = 6\ndelta = 1e-9"),
        ("epsilon = 6", "epsilon = 6\nreserve = 1"),
        ("epsilon = 6", 'epsilon = 6\nledger = "a.sqlite"'),
        ('by = "stage"', ""),
        ('"weibull"', '"weibull"\nname = "shape"'),
        ("share = 2", "share = 3"),
        ("share = 2", "share = 2\nintervals = 0.2"),
    ):
        changed = read(folder, old, new).sha256
        assert changed not in seen, (old, new)
        seen.add(changed)
    for old, new in (("95", "96"), ('"III"', '"IV"'), ("midpoint", "category")):
        (folder / "columns.toml").write_text(SCHEMA.replace(old, new))
        changed = read(folder).sha256
        assert changed not in seen, (old, new)
        seen.add(changed)


def test_the_hash_is_of_numbers_however_they_are_written(folder):
    (folder / "columns.toml").write_text(SCHEMA.replace("[30, 95]", "[30.0, 95.0]"))
    assert read(folder, "epsilon = 6", "epsilon = 6.0").sha256 == protocol().sha256


WRONG = [
    ("title =", "titel =", "a protocol has no key 'titel'. Did you mean title?"),
    ('"A. Curie"', '" "', "owner must be text, and not empty"),
    ('purpose = "protocol 7"\n', "", "purpose must be given, at the top"),
    ('"registry"', '"a\\u200bb"', "dataset must be a name"),
    ('"columns.toml"', "1", "schema must be the name of a file"),
    ("[outcome]", "columns = 1\n[outcome]", "columns belong into the file that schema names"),
    ("[outcome]", "[others]", "a protocol has no key 'others'"),
    ("time =", "tine =", "outcome has no key 'tine'. Did you mean time?"),
    ("max_time = 1000\n", "", "max_time must be given, in [outcome]"),
    ("1000", "0", "max_time must be a positive finite number, got 0"),
    ("1000", '"1000"', "max_time must be a positive finite number, got str"),
    ('event = "died"', 'event = "days"', "time and event and person must be different columns"),
    ('person = "id"', 'person = "age"', "columns must not describe age, which is no covariate"),
    ('"died"', '"died"\nevent_is = ["yes"]', "event_is and censored_is must be given together"),
    ('"died"', '"died"\nevent_is = [1]\ncensored_is = [1]', "be different labels"),
    ('"died"', '"died"\nevent_is = [1, "a"]', "event_is must be a list of labels, all text or"),
    ('time = "days"\nevent = "died"', 'time = "died"\nevent = "days"', "named as each other"),
    ("epsilon = 6", "epsilon = inf", "epsilon must be a positive finite number"),
    ("epsilon = 6", "epsilom = 6", "budget has no key 'epsilom'. Did you mean epsilon?"),
    ("epsilon = 6", "epsilon = 6\ndelta = 1", "delta must be a number in [0, 1), got 1"),
    ("epsilon = 6", "epsilon = 6\nreserve = 6", "reserve must be less than epsilon"),
    ("epsilon = 6", "epsilon = 6\nreserve = 1\ndelta = 1e-9", "reserve must be 0 with a delta"),
    ("epsilon = 6", "epsilon = 6\nledger = 1", "ledger must be"),
    ("epsilon = 6", "epsilon = 6\nledger = ''", "ledger must be a file or an address"),
    ("epsilon = 6", 'epsilon = 6\nledger = "postgresql://a:b@c/d"', "url must hold no password"),
    ("0.3", "0", "evaluation_share must be a share of people in (0, 1) with an evaluation"),
    ('kind = "evaluation"\nof = "regression"', 'kind = "curves"\nname="c"', "and 0 without one"),
    ('"weibull"', '"weibul"', "kind of analyses must be one of"),
    ('kind = "weibull"', "", "kind of analyses must be one of"),
    ('"weibull"', '"weibull"\nname = "../x"', "name of analyses must be a small letter"),
    ('"weibull"', '"weibull"\nname = "con"', "no device of Windows"),
    ('"weibull"', '"weibull"\nname = "curves"', "have names of their own, got two curves"),
    ('"weibull"', '"weibull"\nshare = 0', "analysis 'weibull': share must be a positive"),
    ('"weibull"', '"weibull"\nbye = 1', "analysis 'weibull': no option 'bye'"),
    ('"weibull"', '"weibull"\nepsilon = 1', "analysis 'weibull': no option 'epsilon'"),
    ('"weibull"', '"weibull"\nrandom_state = 1', "no option 'random_state'"),
    ('"weibull"', '"weibull"\nomega = -1', "analysis 'weibull': omega must be"),
    ("share = 2", "interval = 0.2", "no option 'interval'. Did you mean intervals?"),
    ("share = 2", "intervals = 2", "analysis 'regression': intervals must be"),
    ("share = 2", 'columns = ["agee"]', "columns must be described, 'agee' is not"),
    ("share = 2", "columns = []", "columns must be a list of described columns"),
    ("share = 2", 'columns = "age"', "columns must be a list of described columns"),
    ('by = "stage"', 'by = "agee"', "analysis 'curves': by must be a described column"),
    ('by = "stage"', 'by = "age"', "analysis 'curves': age must be categories, or a boolean"),
    ('of = "regression"', 'of = "weibull"', "of must be the name of a regression"),
    ('of = "regression"', "", "of must be the name of a regression"),
    ('kind = "weibull"', 'kind = "competing"', "event_is must hold all causes"),
    ('kind = "weibull"', 'kind = "competing_regression"', "event_is must hold all causes"),
    ('kind = "weibull"', 'kind = "classifier"', "target must be given"),
    ('kind = "weibull"', 'kind = "classifier"\ntarget = "sex"', "target must be a described"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), WRONG)
def test_a_wrong_entry_is_refused_by_its_name_and_rule(old, new, says, folder):
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        read(folder, old, new)
    assert str(caught.value).startswith(str(folder / "protocol.toml"))
    assert caught.value.__cause__ is None


def test_a_wrong_or_missing_description_is_refused(folder):
    (folder / "columns.toml").write_text(SCHEMA.replace("95", "30"))
    with pytest.raises(ValueError, match=r"protocol\.toml: .*columns\.toml.*two finite bounds"):
        read(folder)
    (folder / "columns.toml").unlink()
    with pytest.raises(FileNotFoundError):
        read(folder)
    for text, says in (("title = ", "Invalid value"), ("outcome = 1", "outcome must be a table")):
        (folder / "columns.toml").write_text(SCHEMA)
        (folder / "protocol.toml").write_text(f'schema = "columns.toml"\n{text}')
        with pytest.raises(ValueError, match=rf"protocol\.toml: {says}"):
            Protocol.from_toml(folder / "protocol.toml")


def test_there_must_be_an_analysis():
    with pytest.raises(ValueError, match="analyses must hold at least one"):
        protocol(analyses=(), evaluation_share=0.0)


def test_options_are_frozen():
    options = {"columns": ["age"]}
    one = Analysis("regression", "one", options=options)
    before = hash(one)
    options["columns"].append("stage")
    assert (one.options["columns"], hash(one)) == (("age",), before)


class TestEstimators:
    def test_none_has_a_seed_or_a_ledger_and_each_has_its_budget(self):
        study = protocol()
        for one in study.analyses:
            estimator = one.estimator(study, Spend(0.5))
            assert (estimator.random_state, estimator.accountant) == (None, None)
            assert estimator.epsilon == 0.5
            assert type(estimator) is KINDS[one.kind].estimator

    def test_options_are_parameters(self):
        one = Analysis(
            "regression", "r", options={"columns": ["age"], "intervals": 0.2, "link": "cloglog"}
        )
        made = one.estimator(protocol(), Spend(0.5, 1e-9))
        assert (made.inference_share, made.link, made.delta) == (0.2, "cloglog", 1e-9)
        assert made.columns._names() == ["age"]
        assert made.max_time == 1000.0

    def test_no_regression_uses_the_target_of_a_classifier_unless_it_is_named(self):
        classifier = Analysis("classifier", "c", options={"target": "treated"})
        table = Analysis("table", "table", options={"by": "stage"})
        own = Analysis("regression", "own", options={"columns": ["age", "treated"]})
        columns = PublicColumns({"age": (0, 100), "treated": bool, "stage": ["I", "II"]})
        analyses = (classifier, Analysis("regression", "all"), own, table)
        study = protocol(columns=columns, analyses=analyses, evaluation_share=0.0)
        used = [one.estimator(study, Spend(1.0)).columns._names() for one in analyses]
        assert used == [["age", "stage"], ["age", "stage"], ["age", "treated"], columns._names()]
        assert classifier.estimator(study, Spend(1.0)).classes == [False, True]


class TestArguments:
    def test_of_a_study(self):
        study, frame = protocol(), records(20)
        for one in study.analyses:
            found = one.arguments(study, frame)
            assert found["person"].equals(frame["id"])
            assert found["y"].columns.tolist() == ["died", "days"]
            assert ("X" in found) == (one.kind in ("regression", "evaluation"))
        assert study.analyses[0].arguments(study, frame)["group"].tolist() == frame.stage.tolist()

    def test_a_group_without_a_label_is_refused_or_a_group_of_its_own(self):
        frame = records(20).assign(stage=[None, *["I"] * 24])
        study = protocol()
        with pytest.raises(ValueError, match=r"must not contain NaN or None.*'stage'"):
            study.analyses[0].arguments(study, frame)
        with pytest.raises(ValueError, match=r"must hold its public categories.*'stage'"):
            study.analyses[0].arguments(study, frame.assign(stage="secret"))
        columns = {"age": (30, 95), "stage": {"categories": ["I"], "missing": "category"}}
        study = protocol(columns=PublicColumns(columns))
        assert study.analyses[0].estimator(study, Spend(1.0)).groups == ["I", "missing"]
        found = study.analyses[0].arguments(study, frame)["group"]
        assert found.tolist() == ["missing", *["I"] * 24]
        columns["stage"]["categories"] = ["missing", "I"]
        with pytest.raises(ValueError, match="stage must not have a category 'missing'"):
            protocol(columns=PublicColumns(columns))

    def test_truth_values_make_groups_and_classes(self):
        columns = PublicColumns({"age": (0, 100), "treated": bool})
        by = Analysis("curves", "curves", options={"by": "treated"})
        classes = Analysis("classifier", "classes", options={"target": "treated"})
        study = protocol(columns=columns, analyses=(by, classes), evaluation_share=0.0)
        frame = records(3).iloc[:3].assign(age=[50.0, 60.0, 70.0], treated=[1, 0, 1])
        assert by.arguments(study, frame)["group"].tolist() == [True, False, True]
        assert classes.arguments(study, frame)["y"].tolist() == [True, False, True]

    def test_labels_of_events(self):
        frame = pd.DataFrame({"days": [1.0, 2.0, 3.0], "died": ["yes", "no", "perhaps"]})
        study = protocol(event_is=("yes",), censored_is=("no",))
        with pytest.raises(
            ValueError, match="died, the column of events, must hold labels of"
        ) as e:
            study.target(frame)
        assert "perhaps" not in str(e.value)
        assert study.target(frame[:2])["died"].tolist() == [True, False]
        with pytest.raises(ValueError, match="died, the column of events, must be boolean, or 0"):
            protocol().target(frame.assign(died=[0, 1, 2]))
        assert protocol(event=None).target(frame)["event"].all()
        labels = {"event_is": (1, 2), "censored_is": (0,), "evaluation_share": 0.0}
        study = protocol(analyses=ANALYSES[:2], **labels)
        assert study.target(frame.assign(died=[2, 0, 1]))["died"].tolist() == [1.0, 0.0, 1.0]

    def test_competing_causes_are_the_labels_of_events(self):
        one = Analysis("competing", "causes", options={"by": "stage"})
        labels = {"event_is": ("relapse", "death"), "censored_is": ("none",)}
        study = protocol(analyses=(one,), evaluation_share=0.0, **labels)
        made = one.estimator(study, Spend(1.0))
        assert (made.causes, made.censored) == (["relapse", "death"], "none")
        frame = records(4).iloc[:4].assign(died=["none", "death", "relapse", "none"])
        found = one.arguments(study, frame)
        made.fit(**found)
        assert found["y"]["died"].tolist() == ["none", "death", "relapse", "none"]


CAUSES = {"event_is": ("relapse", "death"), "censored_is": ("none",)}


class TestCauses:
    def study(self, *analyses, **labels):
        return protocol(analyses=analyses, evaluation_share=0.0, **{**CAUSES, **labels})

    def test_a_regression_must_state_its_event_where_there_are_several(self):
        says = "analysis 'r': cause must be one of event_is, 'relapse', 'death', or a list"
        for wrong in ({}, {"cause": "dead"}, {"cause": []}, {"cause": ["relapse", "none"]}):
            with pytest.raises(ValueError, match=re.escape(says)):
                self.study(Analysis("regression", "r", options=wrong))
        for wrong in (["death", 1], None, True):
            with pytest.raises(ValueError, match="analysis 'r': cause must"):
                self.study(Analysis("regression", "r", options={"cause": wrong}))
        one = Analysis("regression", "r", options={"cause": True})
        with pytest.raises(ValueError, match="one of event_is, 1, 2, or"):
            self.study(one, event_is=(1, 2), censored_is=(0,))
        with pytest.raises(ValueError, match="one of event_is, none, or"):
            protocol(analyses=(Analysis("regression", "r", options={"cause": 1}),))
        with pytest.raises(ValueError, match="no option 'cause'"):
            Analysis("curves", "c", options={"cause": "death"})

    def test_other_causes_are_censored_and_so_they_are_in_the_evaluation(self):
        cause = Analysis("regression", "r", options={"cause": "death"})
        both = Analysis("regression", "both", options={"cause": ["death", "relapse"]})
        any_event = Analysis("curves", "c")
        evaluation = Analysis("evaluation", "e", options={"of": "r"})
        analyses = (cause, both, any_event, evaluation)
        study = protocol(analyses=analyses, **CAUSES)
        frame = records(4).iloc[:4].assign(died=["none", "death", "relapse", "none"])
        found = [one.arguments(study, frame)["y"]["died"].tolist() for one in analyses]
        of_death, of_any = [False, True, False, False], [False, True, True, False]
        assert found == [of_death, of_any, of_any, of_death]
        again = Protocol.from_text(study.text)
        assert (again.sha256, again.analyses) == (study.sha256, study.analyses)
        says = [outcome_words(study.stated(one)) for one in analyses]
        assert says[0] == says[3]
        assert says[0].startswith("The event is died = death; times are days. Whoever had")
        assert "(relapse) counts as followed until then, as if censored" in says[0]
        assert says[1].startswith("The event is the first of any of these: death or relapse")
        assert says[2].startswith("The event is the first of any of these: relapse or death")
        assert "censored" not in says[1] + says[2]

    def test_what_a_release_says_of_its_study(self):
        evaluation = Analysis("evaluation", "e", options={"of": "r"})
        cause = Analysis("regression", "r", options={"cause": "death"})
        study = protocol(analyses=(cause, evaluation), **CAUSES)
        assert study.stated(cause) == {
            "title": "Stage and survival",
            "dataset": "registry",
            "protocol_sha256": study.sha256,
            "analysis": "r",
            "kind": "regression",
            "by": None,
            "target": None,
            "evaluates": None,
            "evaluated_by": ["e"],
            "time": "days",
            "unit": "days",
            "event": "died",
            "event_is": ["death"],
            "censored_is": ["none"],
            "other_events": ["relapse"],
        }
        assert study.stated(evaluation)["evaluates"] == "r"
        plain = protocol().stated(ANALYSES[0])
        assert (plain["event_is"], plain["censored_is"], plain["by"]) == ([1], [0], "stage")
        observed = protocol(event=None).stated(ANALYSES[0])
        assert observed["event"] is None


def test_a_protocol_is_frozen():
    columns = PublicColumns({"age": (0, 100), "stage": ["I", "II"]})
    study = protocol(columns=columns)
    columns.columns["age"] = (0, 90)
    assert study.kinds[0].ends == (0.0, 100.0)
    with pytest.raises(AttributeError):
        study.epsilon = 1.0
    assert copy.copy(study).sha256 == study.sha256


def test_an_analysis_has_the_interactions_of_its_columns():
    columns = {
        "age": {"spline": [30, 95], "df": 2},
        "stage": ["I", "II"],
        "smokes": bool,
        "age:stage": {"interaction": ["age", "stage"]},
    }
    some = Analysis("regression", "some", options={"columns": ["age", "smokes"]})
    study = protocol(
        columns=PublicColumns(columns), analyses=(ANALYSES[2], some), evaluation_share=0.0
    )
    lone = ["age_spline1", "age_spline2"]
    for one, names in (
        (ANALYSES[2], [*lone, "stage_II", "smokes", *(f"{name}:stage_II" for name in lone)]),
        (some, [*lone, "smokes"]),
    ):
        found = described(one.options, study)
        assert found.get_feature_names_out().tolist() == names
    assert Protocol.from_text(study.text).sha256 == study.sha256
