"""Plans: the parts never cost more than the study, and the guarantee is of all of them."""

import math
from fractions import Fraction

import pytest

from skdpsurv import PrivacyAccountant, PrivacyLeakWarning
from skdpsurv.data import PublicColumns
from skdpsurv.dp import AppetiteError, RiskAppetite
from skdpsurv.dp.guarantee import PERSON
from skdpsurv.dp.plan import leaves
from skdpsurv.dp.privacy_cost import Concentrated, epsilon_at
from skdpsurv.study import Analysis, StudyPlan
from skdpsurv.study.parts import EVALUATION, EVERYBODY, TRAINING, sizes, tree_of
from tests.study.studies import ANALYSES, COLUMNS, protocol

#: Enough columns for Gaussian noise to be smaller.
WIDE = PublicColumns({"stage": ["I", "II"], **{f"x{place}": (0, 1) for place in range(30)}})


def wide(*more, **changes):
    return protocol(columns=WIDE, analyses=(*ANALYSES, *more), **changes)


def sums(plan):
    """Return exact sums of epsilons of pure parts, and sums of squares of mu, by people."""
    found = {people: (Fraction(), 0.0) for people in (EVERYBODY, TRAINING, EVALUATION)}
    for part in plan.parts.values():
        epsilon, square = found[part.people]
        if isinstance(part.price, Concentrated):
            found[part.people] = epsilon, square + part.price.mu**2
        else:
            found[part.people] = epsilon + Fraction(part.price), square
    return found


def worth(plan):
    """Return what the study costs, computed anew from the parts."""
    each = sums(plan)
    (epsilon, square), delta = each[EVERYBODY], plan.protocol.delta
    costs = []
    for people in (TRAINING, EVALUATION):
        own, more = each[people]
        gaussian = epsilon_at((square + more) / 2.0, delta) if square + more else 0.0
        costs.append(float(epsilon + own) + gaussian)
    return costs


def test_the_people_of_each_part_are_enough_for_the_appetite():
    """Of 120 people 36 are held out."""
    assert StudyPlan.of(protocol(appetite=RiskAppetite(max_epsilon=6.0, min_records=36)), 120)
    stricter = protocol(appetite=RiskAppetite(max_epsilon=6.0, min_records=37))
    with pytest.raises(AppetiteError, match="a result about 36"):
        StudyPlan.of(stricter, 120)


class TestCost:
    @pytest.mark.parametrize("shares", [(1, 1, 1, 1), (0.1, 0.7, 3, 1), (1 / 3, 1e-3, 7.7, 2)])
    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 6.0])
    def test_epsilons_of_all_are_at_most_that_of_the_study_exactly(self, epsilon, shares):
        analyses = [
            Analysis(a.kind, a.name, share, a.options)
            for a, share in zip(ANALYSES, shares, strict=True)
        ]
        plan = StudyPlan.of(protocol(epsilon=epsilon, analyses=tuple(analyses)), 4000)
        each = sums(plan)
        for people in (TRAINING, EVALUATION):
            spent = each[EVERYBODY][0] + each[people][0]
            assert spent <= Fraction(epsilon)
            assert spent == pytest.approx(epsilon, rel=2e-3)  # of each, four digits are kept
        assert plan.cost.epsilon == max(
            each[EVERYBODY][0] + each[people][0] for people in (TRAINING, EVALUATION)
        )
        assert plan.guarantee().epsilon == epsilon
        epsilons = [part.spend.epsilon for part in plan.parts.values()]
        assert epsilons == [float(f"{own:.4g}") for own in epsilons]
        fits = [part for part in plan.parts.values() if part.people != EVALUATION]
        units = [part.spend.epsilon / part.analysis.share for part in fits]
        assert units == pytest.approx([units[0]] * len(units), rel=2e-3)

    @pytest.mark.parametrize("n_regressions", [1, 2, 3])
    def test_with_a_delta_rhos_add_up_beside_epsilons(self, n_regressions):
        more = [Analysis("regression", f"r{k}") for k in range(1, n_regressions)]
        plan = StudyPlan.of(wide(*more, delta=1e-9), 4000)
        gaussian = [p for p in plan.parts.values() if isinstance(p.price, Concentrated)]
        assert len(gaussian) == n_regressions
        for cost in worth(plan):
            assert cost <= 6.0
            assert cost == pytest.approx(6.0, rel=2e-3)
        guarantee = plan.guarantee()
        assert (guarantee.epsilon, guarantee.delta) == (6.0, 1e-9)
        for part in gaussian:
            assert part.guarantee.delta == 1e-9
            assert part.guarantee.rho <= part.price.rho
            assert part.guarantee.rho == pytest.approx(part.price.rho, rel=2e-3)
        if n_regressions > 1:  # each gets more than its part of a sum of epsilons
            pure = StudyPlan.of(wide(*more), 4000)
            for name in ("regression", "r1"):
                assert plan.parts[name].spend.epsilon > 1.1 * pure.parts[name].spend.epsilon

    def test_the_cost_is_that_of_the_trees(self):
        for study in (protocol(), wide(delta=1e-9)):
            plan = StudyPlan.of(study, 4000)
            tree = tree_of(plan.parts)
            measured = [leaf for part in plan.parts.values() for leaf in leaves(part.plan.tree)]
            assert sorted(map(id, leaves(tree))) == sorted(map(id, measured))
            assert plan.cost.within(6.0, study.delta)
            assert not plan.cost.within(6.0 * (1.0 - 2e-3), study.delta)

    def test_a_delta_that_helps_nothing_is_not_spent(self):
        plan = StudyPlan.of(protocol(delta=1e-9), 4000)
        assert plan.guarantee().delta == 0.0
        assert not any(part.spend.delta for part in plan.parts.values())

    def test_rho_is_stated_where_it_says_no_less(self):
        only = (Analysis("regression", "regression"),)
        settings = {"evaluation_share": 0.0, "delta": 1e-9, "epsilon": 1.0}
        study = protocol(columns=WIDE, analyses=only, **settings)
        guarantee = StudyPlan.of(study, 4000).guarantee()
        assert epsilon_at(guarantee.rho, 1e-9) == pytest.approx(1.0, rel=2e-3)
        assert StudyPlan.of(wide(delta=1e-9), 4000).guarantee().rho is None

    def test_the_reserve_is_left_out_of_the_first_charge(self):
        plan = StudyPlan.of(protocol(reserve=2.0), 4000)
        assert plan.guarantee().epsilon == 4.0
        assert max(worth(plan)) <= 4.0

    def test_without_evaluations_everybody_is_in_all(self):
        study = protocol(analyses=ANALYSES[:3], evaluation_share=0.0)
        plan = StudyPlan.of(study, 100)
        assert {(part.people, part.n_people) for part in plan.parts.values()} == {(EVERYBODY, 100)}
        assert (plan.n_training, plan.n_evaluation) == (100, 0)
        assert not any("dealt" in text for text in plan.guarantee().assumptions)


class TestPeople:
    def test_what_is_evaluated_and_its_evaluation_share_nobody(self):
        plan = StudyPlan.of(protocol(), 101)
        people = {name: (part.people, part.n_people) for name, part in plan.parts.items()}
        assert people == {
            "curves": (EVERYBODY, 101),
            "weibull": (EVERYBODY, 101),
            "regression": (TRAINING, 71),
            "evaluation": (EVALUATION, 30),
        }
        assert (plan.n_training, plan.n_evaluation) == (71, 30)

    def test_there_must_be_somebody_in_each_part(self):
        assert sizes(protocol(), 3) == {EVERYBODY: 3, TRAINING: 2, EVALUATION: 1}
        with pytest.raises(ValueError, match="evaluation_share must leave somebody in both parts"):
            StudyPlan.of(protocol(evaluation_share=0.01), 20)
        with pytest.raises(ValueError, match="n_people must be"):
            StudyPlan.of(protocol(), 1)


class TestGuarantee:
    def test_it_states_the_protocol_the_people_and_each_part(self):
        study = protocol()
        guarantee = StudyPlan.of(study, 4000).guarantee()
        stated = guarantee.public_inputs
        assert stated["protocol_sha256"] == study.sha256
        assert (stated["n_records"], stated["n_held_out"]) == (4000, 1200)
        assert stated["epsilon_curves"] == pytest.approx(1.5)
        assert guarantee.neighbours == PERSON
        assert guarantee.status == "proved"
        assert "docs/proofs/study" in guarantee.source
        assert any("uniform permutation" in text for text in guarantee.assumptions)

    def test_of_records_where_nobody_has_two(self):
        guarantee = StudyPlan.of(protocol(person=None), 4000).guarantee()
        assert guarantee.neighbours == "replace-one"

    @pytest.mark.parametrize(("person", "unit"), [(None, "replace-one"), ("id", PERSON)])
    def test_public_groups_of_one_analysis_are_public_in_all(self, person, unit):
        table = Analysis("table", "table", options={"by": "stage", "by_is_public": True})
        plan = StudyPlan.of(protocol(analyses=(*ANALYSES, table), person=person), 120)
        assert plan.parts["curves"].guarantee.neighbours == unit
        assert plan.parts["table"].guarantee.neighbours == f"{unit}-same-group"
        assert plan.guarantee().neighbours == f"{unit}-same-group"
        stated = plan.guarantee().public_inputs
        assert (stated["by"], stated["by_is_public"]) == ("stage", True)
        assert "but not in" in plan.page()
        columns = PublicColumns({**COLUMNS, "ill": bool})
        other = Analysis("table", "other", options={"by": "ill", "by_is_public": True})
        with pytest.raises(ValueError, match="by_is_public must be said of one column alone"):
            protocol(columns=columns, analyses=(*ANALYSES, table, other))

    def test_the_page_to_sign_says_which_labels_are_events(self):
        labels = {"event_is": ("dead", "<lost>"), "censored_is": ("alive",)}
        regression = Analysis("regression", "regression", options={"cause": "dead"})
        analyses = (ANALYSES[0], regression, ANALYSES[3])
        page = StudyPlan.of(protocol(analyses=analyses, **labels), 4000).page()
        assert "dead, &lt;lost&gt;" in page
        assert "alive" in page
        assert "first of any of these: dead or &lt;lost&gt; (by died)" in page
        said = "The event is died = dead; times are days. Whoever had another event first (&lt;lost"
        assert page.count(said) == 2  # of the regression and of its evaluation

    def test_a_ledger_takes_it(self):
        for composition in ("basic", "renyi"):
            accountant = PrivacyAccountant(6.0, 1e-6, composition=composition)
            accountant.charge(StudyPlan.of(protocol(), 4000).guarantee())
            assert accountant.spent() == 6.0

    def test_what_is_not_proved_is_refused(self):
        chain = Analysis("regression", "chain", options={"method": "psgld"})
        study = protocol(analyses=(chain,), evaluation_share=0.0)
        with pytest.raises(ValueError, match="analysis 'chain': its guarantee must be proved"):
            StudyPlan.of(study, 4000)


def test_nothing_is_looked_at_and_nobody_is_warned(recwarn):
    """A plan has no argument that could hold a record."""
    StudyPlan.of(protocol(), 4000).guarantee()
    assert not [one for one in recwarn if issubclass(one.category, PrivacyLeakWarning)]
    assert math.isfinite(StudyPlan.of(protocol(epsilon=0.01), 4000).guarantee().epsilon)
