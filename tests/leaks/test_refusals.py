"""What is wrong with records is said without saying anything of them, and costs nothing."""

from functools import partial

import numpy as np
import pytest

from skdpsurv import DPLogisticRegression
from tests.support import checks, faults
from tests.support.combinations import thinned
from tests.support.registry import NAME, NUMBER, REPRESENTATIVE, ROW, SETTINGS, labelled

OTHERS = [setting for setting in SETTINGS if not setting.representative]
#: Methods of fitted models that look at private records, and whose results are private.
OF_RECORDS = ("score", "estimand")


def faulty(setting, part):
    """Yield a name, and data with a fault in X or in y; of private records, if some are public."""
    data = setting.data()
    if part == "X":
        for name, X in faults.faulty_matrices(data.X):
            yield name, spared(X, data.X, data), data.y
    elif data.y is not None:
        for name, y in faults.faulty_targets(data.y):
            yield name, data.X, spared(y, data.y, data)


def spared(faulty, good, data):
    """Return an array with a fault and with public records as they were."""
    public = data.options.get("public")
    if public is None or type(faulty) is not np.ndarray or faulty.shape != np.shape(good):
        return faulty
    if faulty.dtype.names:
        return faulty
    mixed = faulty.astype(object) if faulty.dtype.kind != "f" else faulty.copy()
    mixed[public] = np.asarray(good)[public]
    return mixed


def check_all(cases):
    failed = {}
    for op, name, outcome, check in cases:
        try:
            check(outcome)
        except AssertionError as error:
            failed[op, name] = str(error)
    assert not failed, failed


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        *thinned(REPRESENTATIVE, ["y", "X"]),
        *(pytest.param(s, part, marks=pytest.mark.slow) for s in OTHERS for part in ("X", "y")),
    ],
    ids=str,
)
def test_a_refused_fit_tells_nothing_and_costs_nothing(setting, part):
    check = partial(checks.check_outcome, diverges=setting.diverges, inner=setting.has_inner)

    def cases():
        for name, X, y in faulty(setting, part):
            outcome = checks.fit(setting.make(3), X, y, setting.data().options)
            yield "fit", name, outcome, check
            if outcome.error is not None:
                yield "kept", name, outcome, checks.check_nothing_kept

    check_all(cases())


@checks.each(SETTINGS)
@pytest.mark.parametrize("part", [pytest.param("X", marks=pytest.mark.slow), "y"])
def test_refused_predictions_and_scores_tell_nothing(setting, part):
    """Rows are predicted, and passed on to scores, whose targets may be at fault as well."""
    fitted = checks.seeded(setting)

    def cases():
        for name, X, y in faulty(setting, part):
            for method in filter(partial(hasattr, fitted), OF_RECORDS):
                outcome = checks.called(getattr(fitted, method), X, y)
                yield method, name, outcome, checks.check_refusal
        for method in ("predict", "predict_proba", "transform", "inverse_transform"):
            for name, X, _ in (
                faulty(setting, "X") if part == "y" and hasattr(fitted, method) else ()
            ):
                outcome = checks.called(getattr(fitted, method), X)
                yield method, name, outcome, checks.check_refusal

    check_all(cases())


class TestTheChecksFindWhatIsTold:
    """An estimator that tells, to be sure that somebody listens."""

    def test_of_a_text(self):
        told = [f"{NUMBER} is too large", f"no {NAME}", f"row {ROW}", "29 rows", "7.654321e+03"]
        for text in [*told, "[37, 1]"]:
            with pytest.raises(AssertionError):
                checks.check_texts([text])
        # Numbers that are public.
        checks.check_texts(["n=47", "at least 1", "[0, 1]", "0.37", "13.7", "370"])

    def test_of_an_error_behind_an_error(self):
        try:
            try:
                raise ValueError(NAME)
            except ValueError:
                raise ValueError("X must be better.") from None
        except ValueError as error:
            outcome = checks.Outcome(error=error)
        with pytest.raises(AssertionError):
            checks.check_outcome(outcome)

    @pytest.mark.parametrize(
        "outcome",
        [
            checks.Outcome(error=KeyError("x")),
            checks.Outcome(error=ValueError("X must be better."), charges=[1.0]),
            checks.Outcome(error=ValueError("")),
            checks.Outcome(error=ValueError("x"), warned=[("RuntimeWarning", "overflow")]),
        ],
    )
    def test_of_outcomes(self, outcome):
        with pytest.raises(AssertionError):
            checks.check_outcome(outcome)

    def test_of_charges(self):
        data = labelled()
        outcome = checks.fit(DPLogisticRegression(classes=[0, 1]), data.X, data.y)
        checks.check_outcome(outcome)
        for charges in ([], [1.0, 1.0]):
            outcome.charges = charges
            with pytest.raises(AssertionError):
                checks.check_outcome(outcome)

    def test_of_values_that_speak(self):
        for speak in (float, hash, bool, np.asarray, list):
            with pytest.raises(RuntimeError, match=NAME):
                speak(faults.Tongue())
