"""Time of a private logistic fit, against diffprivlib's and scikit-learn's without privacy.

python -m benchmarks.logistic_speed

diffprivlib needs an older scikit-learn and gets an environment of its own, which takes a network.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._common import table
from benchmarks._diffprivlib_env import OPTION, VERSION, diffprivlib
from benchmarks._diffprivlib_worker import seconds
from benchmarks._run import arguments, run, setting
from skdpsurv import DPLogisticRegression, PrivateStackingClassifier

#: (rows, columns, fits in a round).
SIZES = setting(((6, 2, 60), (3000, 100, 9), (100_000, 20, 3)), quick=((6, 2, 2), (300, 20, 1)))
ROUNDS = setting(5, quick=1)


def records(n: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of norm 1, and labels that depend on them; both classes occur."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X @ rng.normal(size=n_features) + 0.3 * rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    return X, y


def main() -> None:
    """Table: fits of the same records, in turn, so that a machine that slows down slows all."""
    args = arguments(__doc__ or "", rival_env=OPTION)
    models = {
        "skdpsurv": DPLogisticRegression(1.0, classes=[0, 1]),
        "skdpsurv, out_pert": DPLogisticRegression(1.0, classes=[0, 1], method="out_pert"),
        "skdpsurv, stack of 5 groups": PrivateStackingClassifier(
            1.0, n_partitions=5, classes=[0, 1]
        ),
        "scikit-learn, no privacy": LogisticRegression(),
    }
    rows = []
    rival = diffprivlib(args.rival_env)
    with threadpool_limits(limits=1):
        for n, n_features, repetitions in SIZES:
            X, y = records(n, n_features)
            times: dict[str, list[float]] = {}
            for _ in range(ROUNDS):
                their = rival.run("speed", X=X, y=y, repetitions=repetitions)
                times.setdefault("diffprivlib", []).append(their)
                for name, model in models.items():
                    if isinstance(model, PrivateStackingClassifier) and n_features < 5:
                        continue
                    call = lambda model=model: model.fit(X, y)  # noqa: B023, E731
                    times.setdefault(name, []).append(seconds(call, repetitions))
            median = {name: float(np.median(each)) for name, each in times.items()}
            rows += [
                (
                    f"{n:,} x {n_features}",
                    name,
                    f"{1e3 * elapsed:.1f} ms",
                    f"{elapsed / median['diffprivlib']:.2f}",
                )
                for name, elapsed in median.items()
            ]
    fits = ", ".join(str(repetitions) for _, _, repetitions in SIZES)
    table(
        "logistic_speed",
        ("records", "fit", "time", "time / diffprivlib's"),
        rows,
        f"Simulated; epsilon = 1, otherwise defaults, with an intercept; median over {ROUNDS} "
        f"rounds of the median of {fits} fits (from the first size to the last), in turn; one "
        f"thread. diffprivlib {VERSION}.",
    )


if __name__ == "__main__":
    run(main)
