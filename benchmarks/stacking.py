"""Private stacking over epsilon, partitions, importances and combiners: figures 1-4 of Guo et al.

python -m benchmarks.stacking --data-dir FOLDER

FOLDER holds mnist_0v8.npz, mnist_4v9.npz and news20_sci_v_talk_svd100.npz; without it,
scikit-learn fetches MNIST and 20 newsgroups, which needs the network.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from benchmarks._classification import (
    LabelledData,
    auc,
    benchmark_sets,
    cell,
    difference,
    interval,
    repeated,
    seed,
)
from benchmarks._common import table
from benchmarks._run import arguments, number, run, setting
from benchmarks._stacking_figures import combiner_figure, epsilon_figure, panels_figure
from skdpsurv import (
    DPLogisticRegression,
    FeaturePartition,
    LogisticCombiner,
    PrivateStackingClassifier,
)
from skdpsurv.classification.logistic_measurements import Coefficients
from skdpsurv.classification.stack_plan import votes, weighted_scores
from skdpsurv.published import PublishedLogisticRegression, PublishedStackingClassifier

EPSILONS = setting((0.1, 0.25, 0.5, 1.0, 2.0, 4.0), quick=(0.5, 1.0))
#: Of the published methods, which state no rule: the best on the test rows is shown.
ALPHAS = setting((1e-4, 1e-3, 1e-2, 1e-1, 1.0), quick=(1e-2,))
N_PARTITIONS = 5
PARTITIONS = setting((1, 2, 3, 5, 8, 10, 20), quick=(1, 5))
POWERS = setting((-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0), quick=(0.0, 1.0))
HOLDOUTS = (0.1, 0.3, 0.5)
SIZES = setting((1000, 4000, 16_000), quick=(1000,))
PAPER_METHODS = ("PLR", "PST-S", "PST-F(U)", "PST-F(W)")
PAIRS = (("PST-F(W)", "PST-F(U)"), ("PST-F(U)", "PLR"), ("PLR", "PST-S"))

Key = tuple[Hashable, ...]


def stack(**options: object) -> PrivateStackingClassifier:
    """Return a stack at epsilon 1, on five groups of columns, unless said otherwise."""
    return PrivateStackingClassifier(**({"classes": [0, 1]} | options))


def plain(**options: object) -> DPLogisticRegression:
    """Return private logistic regression at epsilon 1."""
    return DPLogisticRegression(classes=[0, 1], **options)


def random_groups(n_features: int, n_groups: int, repetition: int) -> list[list[int]]:
    """Return columns dealt out at random, as PST-F(U) has them."""
    order = np.random.default_rng([repetition, n_groups]).permutation(n_features)
    return [part.tolist() for part in np.array_split(order, n_groups)]


def similar_groups(importances: np.ndarray, n_groups: int) -> list[list[int]]:
    """Return columns grouped by importance, as PST-F(W) has them."""
    order = np.argsort(-importances, kind="stable")
    return [part.tolist() for part in np.array_split(order, n_groups)]


def fitted(model: BaseEstimator, data: LabelledData, repetition: int) -> float:
    """Return the AUC of a model of this repetition's training rows on its test rows."""
    train, test = data.split(repetition)
    noise = seed(data.name, repetition, sorted(model.get_params().items()))
    model.set_params(random_state=noise).fit(data.X[train], data.y[train])
    return auc(model, data.X[test], data.y[test])


def methods(data: LabelledData, repetition: int) -> dict[str, BaseEstimator]:
    """Return the methods of figure 1, and the votes that are this package's default."""
    groups = random_groups(data.X.shape[1], N_PARTITIONS, repetition)
    uniform = {"partition": FeaturePartition(groups)}
    weighted = {"partition": FeaturePartition(importances=data.importances)}
    return {
        "PLR": plain(),
        "PST-S": stack(partition="samples", combiner="logistic"),
        "PST-F(U)": stack(combiner="logistic", **uniform),
        "PST-F(W)": stack(combiner="logistic", **weighted),
        "weighted vote (U)": stack(**uniform),
        "weighted vote (W)": stack(**weighted),
    }


def as_published(model: BaseEstimator, alpha: float) -> BaseEstimator:
    """Return the same method with the constants of its paper."""
    letter = {DPLogisticRegression: PublishedLogisticRegression}
    kind = letter.get(type(model), PublishedStackingClassifier)
    own = kind().get_params(deep=False)
    given = {name: getattr(model, name) for name in own}
    return kind(**(given | {"alpha": alpha}))


def by_epsilon(data: LabelledData, repetition: int) -> dict[Key, float]:
    """Figure 1, in the default calibration and, with every alpha, in the published one."""
    found = {}
    for epsilon in EPSILONS:
        for name, model in methods(data, repetition).items():
            model.set_params(epsilon=epsilon)
            found[data.name, "tight", name, epsilon, 0.0] = fitted(model, data, repetition)
            for alpha in ALPHAS if name in PAPER_METHODS else ():
                found[data.name, "published", name, epsilon, alpha] = fitted(
                    as_published(model, alpha), data, repetition
                )
    return found


def by_partitions(data: LabelledData, repetition: int) -> dict[Key, float]:
    """Figure 2: the number of groups."""
    found = {}
    for n_groups in PARTITIONS:
        mixed = random_groups(data.X.shape[1], n_groups, repetition)
        similar = similar_groups(data.importances, n_groups)
        groups = FeaturePartition(list(map(sorted, similar)), importances=data.importances)
        for label, partition in (("U", FeaturePartition(list(map(sorted, mixed)))), ("W", groups)):
            found[data.name, f"PST-F({label})", n_groups] = fitted(
                stack(combiner="logistic", partition=partition), data, repetition
            )
            found[data.name, f"weighted vote ({label})", n_groups] = fitted(
                stack(partition=partition), data, repetition
            )
    return found


def by_power(data: LabelledData, repetition: int) -> dict[Key, float]:
    """Figure 3: powers of the variances as importances, of the same groups."""
    groups = similar_groups(data.importances, N_PARTITIONS)
    mixed = random_groups(data.X.shape[1], N_PARTITIONS, repetition)
    found = {}
    for name, combiner in (("PST-F({})", "logistic"), ("weighted vote ({})", "weighted_vote")):
        model = stack(combiner=combiner, partition=FeaturePartition(mixed))
        found[data.name, name.format("U"), math.nan] = fitted(model, data, repetition)
        for power in POWERS:
            model = stack(
                combiner=combiner,
                partition=FeaturePartition(groups, importances=data.importances**power),
            )
            found[data.name, name.format("W"), power] = fitted(model, data, repetition)
    return found


def cast_votes(model: PrivateStackingClassifier, X: np.ndarray) -> np.ndarray:
    """Return the votes of a stack's models, of shape (n_models, n_samples, 1)."""
    models = map(Coefficients, model.low_level_coef_, model.low_level_intercept_)
    return votes(list(models), X, model.feature_groups_, model.max_residual_)


def by_combiner(data: LabelledData, repetition: int) -> dict[Key, float]:
    """Figure 4: models of one group alone, votes, and a model on top."""
    _, test = data.split(repetition)
    found: dict[Key, float] = {}
    partition = FeaturePartition(importances=data.importances)
    model = stack(partition=partition)
    found[data.name, "weighted vote"] = fitted(model, data, repetition)
    for k, cast in enumerate(cast_votes(model, data.X[test])):
        found[data.name, f"group {k + 1} alone"] = auc_of(cast, data, test)
    found[data.name, "vote"] = fitted(stack(partition=partition, combiner="vote"), data, repetition)
    for holdout in HOLDOUTS:
        model = stack(partition=partition, combiner=LogisticCombiner(holdout=holdout))
        name = f"model on top, holdout {holdout:g}"
        found[data.name, name] = fitted(model, data, repetition)
        cast = cast_votes(model, data.X[test])
        voted = weighted_scores(cast, model.weights_)
        found[data.name, f"weighted vote, without the {holdout:g} held out"] = auc_of(
            voted, data, test
        )
    found[data.name, "PLR"] = fitted(plain(), data, repetition)
    return found


def auc_of(scores: np.ndarray, data: LabelledData, test: np.ndarray) -> float:
    """Return the AUC of scores of the test rows."""
    return float(roc_auc_score(data.y[test], scores[:, 0]))


def by_reason(data: LabelledData, repetition: int) -> dict[Key, float]:
    """Why uniform groups lose to a single model: rows, noise or lost correlations."""
    groups = random_groups(data.X.shape[1], N_PARTITIONS, repetition)
    half = LabelledData(data.name, data.X, data.y, data.importances, data.n_train // 2, data.n_test)
    norms = [1.0 / math.sqrt(N_PARTITIONS)] * N_PARTITIONS
    options = {"partition": FeaturePartition(groups)}
    bounded = {"partition": FeaturePartition(groups, norms=norms)}
    cases = {
        "PLR": fitted(plain(), data, repetition),
        "PLR, half the rows": fitted(plain(), half, repetition),
        "PST-F(U)": fitted(stack(combiner="logistic", **options), data, repetition),
        "vote (U), half the rows": fitted(stack(**options), half, repetition),
        "vote (U)": fitted(stack(**options), data, repetition),
        "vote (U), norms 1/√K": fitted(stack(**bounded), data, repetition),
        "PLR, no noise": fitted(plain(epsilon=math.inf), data, repetition),
        "PST-F(U), no noise": fitted(
            stack(epsilon=math.inf, combiner="logistic", **options), data, repetition
        ),
        "vote (U), no noise": fitted(stack(epsilon=math.inf, **options), data, repetition),
    }
    return {(data.name, name): score for name, score in cases.items()}


def simulated(n_records: int, repetition: int) -> LabelledData:
    """Return 40 columns of falling variance, rows of norm 1, true coefficients of equal size."""
    rng = np.random.default_rng([repetition, n_records])
    spread = 1.0 / np.arange(1, 41)
    X = normalize(rng.standard_normal((n_records + 4000, 40)) * np.sqrt(spread))
    signal = X @ (6.0 * rng.choice([-1.0, 1.0], 40))
    y = (rng.random(signal.size) < 1.0 / (1.0 + np.exp(-signal))).astype(int)
    return LabelledData("simulated", X, y, spread, n_records, 4000)


def by_size(n_records: int, repetition: int) -> dict[Key, float]:
    """Votes against a model on top as records get many."""
    data = simulated(n_records, repetition)
    models = methods(data, repetition)
    del models["PST-S"]
    models["no noise"] = plain(epsilon=math.inf)
    return {(n_records, name): fitted(model, data, repetition) for name, model in models.items()}


def tuned(found: pd.DataFrame) -> pd.DataFrame:
    """Keep, of each data set, calibration, method and epsilon, the alpha of the best mean."""
    keys = ["data", "calibration", "method", "epsilon"]
    means = found.groupby([*keys, "alpha"])["auc"].mean()
    best = means.groupby(keys).idxmax()
    return found.set_index([*keys, "alpha"]).loc[best.tolist()].reset_index()


def paired(found: pd.DataFrame) -> Iterator[tuple[Key, pd.DataFrame]]:
    """Yield data, calibration and epsilon, and the AUCs, a column for each method."""
    names = list(dict.fromkeys(found["data"]))
    for name in names:
        for calibration in ("published", "tight"):
            for epsilon in EPSILONS:
                same = found[
                    (found["data"] == name)
                    & (found["calibration"] == calibration)
                    & (found["epsilon"] == epsilon)
                ]
                yield (
                    (name, calibration, epsilon),
                    same.pivot(index="repetition", columns="method", values="auc"),
                )


def verdict(wide: pd.DataFrame) -> str:
    """Say whether the paper's order holds, by intervals of the paired differences."""
    signs = []
    for better, worse in PAIRS:
        mean, width = interval((wide[better] - wide[worse]).to_numpy())
        signs.append(0 if abs(mean) <= width else int(math.copysign(1, mean)))
    reversed_ = [
        f"{short(better)} < {short(worse)}"
        for (better, worse), sign in zip(PAIRS, signs, strict=True)
        if sign < 0
    ]
    if reversed_:
        return "no: " + ", ".join(reversed_)
    return "yes" if min(signs) > 0 else "open"


def short(name: str) -> str:
    """Return W, U, S or PLR."""
    return name.removeprefix("PST-").removeprefix("F(").rstrip(")")


def epsilon_tables(found: pd.DataFrame, repetitions: int) -> None:
    """Tables of figure 1: AUCs, the order, and votes against a model on top."""
    rows, orders, against = [], [], []
    for (name, calibration, epsilon), wide in paired(found):
        orders.append(
            (
                name,
                calibration,
                f"{epsilon:g}",
                *(difference((wide[a] - wide[b]).to_numpy()) for a, b in PAIRS),
                difference((wide["PST-F(W)"] - wide["PLR"]).to_numpy()),
                verdict(wide),
            )
        )
        if calibration == "tight":
            voted, top = "weighted vote (W)", "PST-F(W)"
            even, even_top = "weighted vote (U)", "PST-F(U)"
            pairs = ((voted, top), (even, even_top), (voted, "PLR"), (even, "PLR"))
            against.append(
                (
                    name,
                    f"{epsilon:g}",
                    *(difference((wide[a] - wide[b]).to_numpy()) for a, b in pairs),
                )
            )
    for (name, calibration, method), part in found.groupby(
        ["data", "calibration", "method"], sort=False
    ):
        cells = (cell(part[part["epsilon"] == epsilon]["auc"]) for epsilon in EPSILONS)
        rows.append((name, calibration, method, *cells))
    heads = [f"ε = {epsilon:g}" for epsilon in EPSILONS]
    note = (
        f"{repetitions} random splits; ± is half a 95 % interval of the mean over splits of the "
        "same records. Published: alpha is the best of 0.0001 to 1 on the test rows, for each "
        "method and ε. Tight: nothing is tuned. Components and importances are not private."
    )
    table("stacking_auc", ("data", "calibration", "method", *heads), rows, f"Test AUC. {note}")
    table(
        "stacking_order",
        ("data", "calibration", "ε", "W − U", "U − PLR", "PLR − S", "W − PLR", "W > U > PLR > S"),
        orders,
        "Paired differences of test AUC, bold where the interval excludes 0. yes: all three are "
        "positive and bold; no: one is negative and bold, which one is said; open: neither. "
        + note,
    )
    table(
        "stacking_votes",
        ("data", "ε", "vote W − top W", "vote U − top U", "vote W − PLR", "vote U − PLR"),
        against,
        "Weighted vote on all rows, less the model on top with half the rows held out, and less "
        f"PLR: paired differences of test AUC, default calibration. {note}",
    )


def wide_table(
    found: pd.DataFrame, index: list[str], column: str, name: str, note: str, head: str = "{}"
) -> None:
    """Write means with intervals, a line for each ``index`` and a column for each ``column``."""
    places = list(dict.fromkeys(found[column]))
    rows = []
    for key, part in found.groupby(index, sort=False):
        rows.append((*key, *(cell(part[part[column] == place]["auc"]) for place in places)))
    heads = [head.format(f"{p:g}" if isinstance(p, float) else p) for p in places]
    table(name, (*index, *(text.replace("-", "−") for text in heads)), rows, note)


def main() -> None:
    """All figures and tables."""
    args = arguments(__doc__ or "", repetitions=number(20, quick=2), jobs=number(2))
    times = args.repetitions
    found = repeated(by_size, SIZES, times, ("n", "method"), args.jobs)
    text = f"Test AUC on simulated records, {times} repetitions; ε = 1, default calibration."
    wide_table(found, ["method"], "n", "stacking_size", text, "n = {}")

    data = benchmark_sets(args.data_dir)
    if not data:
        return
    note = (
        f"{times} random splits; ± is half a 95 % interval of the mean. ε = 1, default "
        "calibration, nothing tuned. Components and importances are not private."
    )
    keys = ("data", "calibration", "method", "epsilon", "alpha")
    found = tuned(repeated(by_epsilon, data, times, keys, args.jobs))
    epsilon_tables(found, times)
    epsilon_figure(found, EPSILONS)

    found = repeated(by_partitions, data, times, ("data", "method", "K"), args.jobs)
    both, name = ["data", "method"], "stacking_partitions"
    wide_table(found, both, "K", name, f"Test AUC. {note}", "K = {}")
    panels_figure(found, "K", PARTITIONS, "number of groups K", name)

    found = repeated(by_power, data, times, ("data", "method", "power"), args.jobs)
    text = f"Test AUC; importances are this power of the columns' variances. {note}"
    name = "stacking_importance"
    wide_table(found[found["power"].notna()], both, "power", name, text)
    panels_figure(found, "power", POWERS, "power of the variance used as importance", name)

    found = repeated(by_combiner, data, times, ("data", "combiner"), args.jobs)
    wide_table(found, ["combiner"], "data", "stacking_combiners", f"Test AUC. {note}")
    combiner_figure(found)

    found = repeated(by_reason, data, times, ("data", "method"), args.jobs)
    wide_table(found, ["method"], "data", "stacking_reasons", f"Test AUC. {note}")


if __name__ == "__main__":
    run(main)
