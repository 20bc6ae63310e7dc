"""What runs in the environment of dp-recorder: its record and replay of fits of this package.

That program decorates functions that add noise, and compares what they are given. The adapter makes
such functions of the four places of :mod:`skdpsurv.mechanisms` where noise meets exact numbers.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from dp_recorder.auditing.audit_primitives import Auditor, audit_spec, ensure_equality
from worker import serve

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPTableOne,
    HybridMEstimator,
    PublicColumns,
)
from skdpsurv.audit import worst_neighbours
from skdpsurv.audit.epsilon import released_numbers
from skdpsurv.hybrid import SubsetSelection
from skdpsurv.mechanisms import moments, perturbation, sums
from skdpsurv.mechanisms.vector_noise import MARGIN

TABLE = PublicColumns.of(age=(18, 100), smoker=bool)
HAZARD = {"max_time": 1.0, "n_intervals": 4, "n_knots": 1, "alpha": 10.0, "data_norm": 1.0}
ESTIMATORS = {
    "DPKaplanMeierFitter": DPKaplanMeierFitter(max_time=1.0),
    "DPTableOne": DPTableOne(columns=TABLE, grid=3),
    "HybridMEstimator, subset": HybridMEstimator(
        method=SubsetSelection(candidate_sizes=[1, 12]), epsilon=3.0
    ),
    "DPLogisticRegression, output": DPLogisticRegression(
        classes=[0, 1], data_norm=1.0, method="out_pert", alpha=10.0
    ),
    "DPDiscreteTimeSurvival, output": DPDiscreteTimeSurvival(60.0, method="out_pert", **HAZARD),
}
#: Norms of differences, by which a mechanism declares its sensitivity.
NORMS = {"L1": 1, "L2": 2, "largest": np.inf}


def asked(kind: str, norm: str, honest: Callable[..., Any], **arguments: Any) -> Any:
    """Call a mechanism as dp-recorder knows it: exact numbers, and a sensitivity."""

    def far(one: Any, other: Any) -> float:
        difference = np.ravel(np.asarray(one, float)) - np.ravel(np.asarray(other, float))
        return float(np.linalg.norm(difference, ord=NORMS[norm]))

    @audit_spec(kind, "exact", "sensitivity", far)
    def mechanism(exact: Any, sensitivity: float, public: str) -> Any:
        return honest(exact)

    return mechanism(**arguments)


@contextlib.contextmanager
def instrumented(share: float) -> Any:
    """Have all noise that these estimators draw go through dp-recorder.

    ``share`` is 1, or that of each sensitivity which is declared instead of the true one.
    """
    released, least = sums._released, sums.Sums.least
    mean, task = moments.VectorMean.release, perturbation.Problem.task
    minimum, declared = perturbation._released, {}

    def integers(query: Any, exact: Any, price: Any, source: Any) -> Any:
        honest = lambda exact: released(query, exact, price, source)  # noqa: E731
        size = share * query.sensitivity
        public = f"{query} {price}"
        return asked("integers", "L1", honest, exact=exact, sensitivity=size, public=public)

    def choice(query: Any, exact: Any, epsilon: float, source: Any) -> Any:
        honest = lambda exact: least(query, exact, epsilon, source)  # noqa: E731
        size, public = share * query.each, f"{query} {epsilon}"
        return asked("choice", "largest", honest, exact=exact, sensitivity=size, public=public)

    def vector(query: Any, exact: Any, price: Any, source: Any) -> Any:
        honest = lambda exact: mean(query, exact, price, source)  # noqa: E731
        size, public = share * query.sensitivity, f"{query} {price}"
        return asked("mean of rows", "L2", honest, exact=exact, sensitivity=size, public=public)

    def solved(problem: Any, source: Any) -> Any:
        how = problem.calibration
        moved = problem.likelihood.constants.gradient_sensitivity + 2.0 * how.certificate.tolerance
        declared[id(how)] = MARGIN * moved / how.kappa
        return task(problem, source)

    def minimiser(found: Any, how: Any, source: Any) -> Any:
        honest = lambda exact: minimum(found._replace(coef=exact), how, source).coef  # noqa: E731
        size, public = share * declared[id(how)], str(how)
        given = {"exact": found.coef, "sensitivity": size, "public": public}
        return found._replace(coef=asked("minimiser", "L2", honest, **given))

    with (
        mock.patch.object(sums, "_released", integers),
        mock.patch.object(sums.Sums, "least", choice),
        mock.patch.object(moments.VectorMean, "release", vector),
        mock.patch.object(perturbation.Problem, "task", solved),
        mock.patch.object(perturbation, "_released", minimiser),
    ):
        yield


def fit(estimator: Any, data: tuple[Any, ...]) -> None:
    """Fit, and have the release compared."""
    fitted = estimator.fit(*data)
    for name, value in released_numbers(fitted).items():
        ensure_equality(**{name: value})


def replay(arrays: dict[str, np.ndarray], options: dict[str, Any]) -> dict[str, Any]:
    """Return what dp-recorder says of an estimator, over its hard pairs of neighbours."""
    estimator = ESTIMATORS[options["estimator"]].set_params(random_state=0)
    diverged, too_far, calls, shares = [], [], [], [0.0]
    for name, data, neighbour in list(worst_neighbours(estimator, n=4))[: options["pairs"]]:
        auditor = Auditor()
        with instrumented(options["share"]), contextlib.redirect_stdout(io.StringIO()):
            with auditor:
                fit(estimator, data)
            auditor.set_replay()
            try:
                with auditor:
                    fit(estimator, neighbour)
                auditor.validate_records()
            except (AssertionError, RuntimeError) as error:
                said = too_far if " > Sens " in str(error) else diverged
                said.append(f"{name}: {error}")
        drawn = [entry for entry in auditor.log if entry.kind != "EQ" and entry.inputs_dp]
        calls.append(len(drawn))
        for entry in drawn:
            given = (np.ravel(each["exact"]) for each in (entry.inputs_d, entry.inputs_dp))
            shares.append(entry.metric_fn(*given) / entry.sensitivity_val)
    said = [*diverged, *too_far]
    return {
        "calls": max(calls),
        "pairs": len(calls),
        "diverged": len(diverged),
        "too_far": len(too_far),
        "largest": max(shares),
        "said": said[0] if said else "",
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(replay=replay)
