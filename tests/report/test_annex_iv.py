"""The draft by Annex IV: its nine points, what the release states, and what it leaves open."""

import re
from dataclasses import replace

import numpy as np
import pytest

from skdpsurv import PrivacyGuarantee
from skdpsurv.dp import RiskAppetite
from skdpsurv.report import annex_iv
from tests.report.releases import with_status
from tests.report.test_report import PROMISE, VOID, of, one_release, with_names
from tests.study.studies import protocol

POINTS = (
    "General description",
    "Elements of the system, and its development",
    "Monitoring, functioning and control",
    "Appropriateness of the performance metrics",
    "Risk management system (Article 9)",
    "Changes through the lifecycle",
    "Standards",
    "EU declaration of conformity (Article 47)",
    "Monitoring after it is on the market (Article 72)",
)
KINDS = (
    "DPDiscreteTimeSurvival: raw columns",
    "DPCompetingRisks: objective",
    "DPKaplanMeierFitter: everybody",
    "DPTableOne: raw columns by ward",
    "HybridMEstimator: auto",
)


def sections(text):
    """Return the text below each heading of the nine."""
    _, *found = re.split(r"^## (\d)\. (.*)$", text, flags=re.M)
    assert found[::3] == [str(number) for number in range(1, 10)]
    return dict(zip(found[1::3], found[2::3], strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_nine_points_each_with_a_place_for_a_person(name):
    release = of(name)
    found = sections(annex_iv(release))
    assert tuple(found) == POINTS
    assert all(text.count("To be written by a person:") == 1 for text in found.values())
    text, guarantee = found[POINTS[1]], release.guarantee
    assert "Epsilon = 1, delta = 0, neighbours `replace-one`, status proved" in text
    assert "at most 73.2" in text
    assert all(f"`{key}`: " in text for key in guarantee.public_inputs)
    assert all(limit.split("(")[0] in found[POINTS[2]] for limit in guarantee.limits)
    assert f"verified: {release.estimator}, epsilon 1" in found[POINTS[4]]
    assert "None" not in annex_iv(release)


@pytest.mark.parametrize("status", VOID)
def test_nothing_is_promised_without_a_proof(status):
    text = annex_iv(with_status(of("DPLogisticRegression: objective"), status))
    assert not PROMISE.search(text)
    assert "promises no limit" in text
    assert "The verifier says: not covered" in text


def test_a_protocol_is_of_the_study_that_made_the_release():
    stated = protocol(appetite=RiskAppetite(max_epsilon=7.0, name="appetite.toml"))
    release = replace(
        of("DPKaplanMeierFitter: everybody"), study=stated.stated(stated.analysis("curves"))
    )
    found = sections(annex_iv(release, stated))
    assert "Purpose, by the protocol: protocol 7" in found[POINTS[0]]
    assert stated.sha256 in found[POINTS[0]]
    assert "max_epsilon 7.0" in found[POINTS[4]]
    evaluated = replace(release, study=stated.stated(stated.analysis("regression")))
    assert "Evaluated by: evaluation." in sections(annex_iv(evaluated, stated))[POINTS[3]]
    for other in (protocol(title="Another"), protocol()):
        with pytest.raises(ValueError, match="protocol must be that of the study"):
            annex_iv(release, other)
    with pytest.raises(ValueError, match="protocol must be that of the study"):
        annex_iv(of("DPKaplanMeierFitter: everybody"), stated)


def test_names_begin_no_markup():
    text = annex_iv(with_names(["<b>", "## 10. x\n## 11. y"]))
    assert "<b>" not in text.replace("`<b>`", "").replace("`<b>", "")
    assert len(re.findall("^## ", text, re.M)) == 9


def test_a_release_that_says_little():
    guarantee = PrivacyGuarantee(np.inf, status="none")
    found = sections(annex_iv(one_release(guarantee=guarantee)))
    assert "The release does not state it." in found[POINTS[1]]
    assert "- nothing that the release states" in found[POINTS[4]]
