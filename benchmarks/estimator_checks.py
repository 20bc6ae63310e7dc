"""How the estimators fare in scikit-learn's own checks.

python -m benchmarks.estimator_checks
"""

from __future__ import annotations

from collections import Counter

from sklearn.utils.estimator_checks import check_estimator

import skdpsurv
from benchmarks._common import table
from benchmarks._run import arguments, run, setting

ESTIMATORS = (
    skdpsurv.DPDiscreteTimeSurvival(max_time=2.0),
    skdpsurv.DPWeibullFitter(max_time=2.0),
    skdpsurv.DPLogisticRegression(),
    skdpsurv.DPLogisticRegression(method="out_pert"),
    # The checks have data of one and two columns, which are fewer than five groups need.
    skdpsurv.PrivateStackingClassifier(n_partitions=1),
    skdpsurv.PrivateStackingClassifier(n_partitions=1, combiner="logistic"),
    skdpsurv.PrivateStackingClassifier(n_partitions=2, partition="samples"),
    skdpsurv.PublicBoundsScaler(lower=-1.0, upper=1.0),
)


def main() -> None:
    """One table."""
    arguments(__doc__ or "")
    rows = []
    for estimator in setting(ESTIMATORS, quick=ESTIMATORS[-1:]):
        results = check_estimator(estimator, on_skip=None, on_fail=None)
        count = Counter(result["status"] for result in results)
        failed = [result["check_name"] for result in results if result["status"] == "failed"]
        rows.append(
            (f"`{estimator}`", count["passed"], count["skipped"], ", ".join(failed) or "none")
        )
    table(
        "estimator_checks",
        ("estimator", "passed", "skipped", "failed"),
        rows,
        "Skipped: checks of array libraries other than NumPy. `check_fit2d_predict1d`: "
        "`predict(times)` is lifelines' and takes a list of times, also after a fit on columns.",
    )


if __name__ == "__main__":
    run(main)
