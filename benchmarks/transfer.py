"""Transfer between organisations, as in table 2 of Guo et al., on GUSTO-I and on heart disease.

python -m benchmarks.transfer --data-dir FOLDER

FOLDER holds gusto1_16regions.csv.gz (``gusto`` of the R package predtools, with the binary columns
coded 0 and 1) and heart_disease_4sites.csv.gz (UCI, the four hospitals in one table).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks._classification import auc, cell, difference, interval, repeated, seed
from benchmarks._common import save, sheet, table
from benchmarks._run import arguments, data_file, number, part, run, setting
from skdpsurv import DPLogisticRegression, FeaturePartition, PrivateStackingClassifier
from skdpsurv.data import PublicBoundsScaler
from skdpsurv.published import PublishedLogisticRegression, PublishedStackingClassifier

#: Of the published methods: the best mean over all targets, on the test rows, is shown.
ALPHAS = setting((1e-4, 1e-3, 1e-2, 1e-1, 1.0), quick=(1e-2,))
EPSILON = 1.0


def about(share: float) -> tuple[float, float]:
    """Return bounds that map a 0/1 column to itself less the share that is thought to have a 1.

    What almost everybody has in common says nothing of anybody, and takes up the norm of rows.
    """
    return share - 1.0, share + 1.0


#: Bounds and typical shares from medicine, and importances of 30-day death after myocardial
#: infarction. Bounds have what is typical in their middle, which becomes 0; shares are rounded to
#: quarters. Importances are the points of the TIMI risk score (Morrow et al., Circulation 2000),
#: which was made from another trial, InTIME II; previous infarction has a point as in the index of
#: Norris et al. (Lancet 1969); a column that neither names has half a point. Nothing is computed
#: from the records.
GUSTO: dict[str, tuple[tuple[float, float], float]] = {
    "age": ((20, 100), 3.0),
    "sysbp": ((60, 200), 3.0),
    "hyp": (about(0.0), 3.0),  # systolic pressure below 100 mmHg
    "pulse": ((25, 125), 2.0),
    "hrt": (about(0.25), 2.0),  # fast heart rate
    "killip": ((-2, 4), 2.0),  # most are in class 1
    "sho": (about(0.0), 2.0),  # shock, the highest Killip class
    "weight": ((40, 120), 1.0),
    "ant": (about(0.5), 1.0),
    "miloc_anterior": (about(0.5), 1.0),
    "hig": (about(0.5), 1.0),  # high risk by other columns
    "dia": (about(0.25), 1.0),
    "htn": (about(0.5), 1.0),
    "pan": (about(0.25), 1.0),
    "pmi": (about(0.25), 1.0),
    "ttr": (about(0.5), 1.0),
    "ste": ((0, 8), 0.5),  # leads with ST elevation
    "height": ((140, 200), 0.5),
    "female": (about(0.25), 0.5),
    "prevcvd": (about(0.0), 0.5),
    "prevcabg": (about(0.0), 0.5),
    "fam": (about(0.5), 0.5),
    "miloc_inferior": (about(0.5), 0.5),
    "smk_label_current": (about(0.25), 0.5),
    "smk_label_quit": (about(0.25), 0.5),
    "tx_sk_tpa": (about(0.25), 0.5),  # one of four arms
    "tx_tpa": (about(0.25), 0.5),
}

#: Chest pain, age and sex are what Diamond and Forrester (NEJM 1979) predict coronary disease from;
#: angina and ST depression under exercise are in the Duke treadmill score (Mark et al. 1987).
HEART: dict[str, tuple[tuple[float, float], float]] = {
    "asymptomatic": (about(0.5), 3.0),
    "oldpeak": ((-4, 6), 3.0),
    "exang": (about(0.5), 3.0),
    "age": ((20, 90), 2.0),
    "sex": (about(0.75), 2.0),  # 1 for men, most patients at the time
    "thalach": ((80, 200), 1.0),
    "trestbps": ((60, 200), 0.5),
    "chol": ((100, 400), 0.5),
    "fbs": (about(0.25), 0.5),
    "restecg": ((-2, 2), 0.5),
}

STYLES = {
    "PLR (target)": {"color": "0.25", "marker": "v"},
    "PPHTL": {"color": "#CC79A7", "marker": "^"},
    "PST-H(U)": {"color": "#009E73", "marker": "s"},
    "PST-H(W)": {"color": "#D55E00", "marker": "D"},
    "PST-H(W), intercept 0.3": {"color": "#0072B2", "marker": "o"},
    "source (W) alone": {"color": "#E69F00", "marker": "x"},
    "target, no privacy": {"color": "black", "marker": "|"},
}
PAIRS = (
    ("PST-H(W)", "PST-H(U)"),
    ("PST-H(U)", "PPHTL"),
    ("PPHTL", "PLR (target)"),
    ("PST-H(W)", "PLR (target)"),
    ("PST-H(W), intercept 0.3", "PST-H(W)"),
    ("PST-H(W)", "source (W) alone"),
    ("PST-H(W)", "target, no privacy"),
)


@dataclass(frozen=True)
class Organisations:
    """Columns in [-1, 1] by stated bounds, public importances, and who has which rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    site: np.ndarray
    source: str
    importances: np.ndarray
    n_groups: int

    @property
    def data_norm(self) -> float:
        """Half of the largest norm that columns in [-1, 1] could have; longer rows are scaled."""
        return math.sqrt(self.X.shape[1]) / 2.0

    @property
    def targets(self) -> list[str]:
        """The other organisations, the largest first."""
        names, sizes = np.unique(self.site[self.site != self.source], return_counts=True)
        return names[np.argsort(-sizes, kind="stable")].tolist()


def scaled(
    frame: pd.DataFrame, public: dict[str, tuple[tuple[float, float], float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns scaled by their public bounds, and their public importances."""
    bounds = {name: bound for name, (bound, _) in public.items()}
    scaler = PublicBoundsScaler.from_bounds(bounds, missing="midpoint")
    X = np.asarray(scaler.fit_transform(frame[list(bounds)].astype(float)))
    return X, np.array([importance for _, importance in public.values()])


def gusto(folder: Path | None) -> Organisations:
    """Regions of the GUSTO-I trial; the largest is the source."""
    frame = pd.read_csv(data_file(folder, "gusto1_16regions.csv.gz"))
    X, importances = scaled(frame, GUSTO)
    site = frame["region"].astype(int).astype(str).to_numpy(dtype=str)
    names, sizes = np.unique(site, return_counts=True)
    source = str(names[sizes.argmax()])
    return Organisations("GUSTO-I", X, frame["y"].to_numpy(), site, source, importances, 5)


def heart(folder: Path | None) -> Organisations:
    """Four hospitals; columns that only Cleveland measured are left out, 0 mmHg and mg/dL are not
    values.
    """
    frame = pd.read_csv(data_file(folder, "heart_disease_4sites.csv.gz"))
    frame["asymptomatic"] = (frame["cp"] == 4).astype(float)
    frame[["chol", "trestbps"]] = frame[["chol", "trestbps"]].replace(0, np.nan)
    X, importances = scaled(frame, HEART)
    site = frame["site"].to_numpy(dtype=str)
    return Organisations(
        "heart disease", X, frame["y"].to_numpy(), site, "cleveland", importances, 3
    )


def variants(data: Organisations, repetition: int) -> dict[str, dict[str, object]]:
    """Return the options of the methods that learn from a source."""
    order = np.random.default_rng(repetition).permutation(data.X.shape[1])
    groups = [part.tolist() for part in np.array_split(order, data.n_groups)]
    worth = FeaturePartition(importances=data.importances)
    weighted = {"partition": worth, "n_partitions": data.n_groups}
    return {
        "PST-H(W)": weighted,
        "PST-H(W), intercept 0.3": weighted | {"intercept_scaling": 0.3},
        "PST-H(U)": {"partition": FeaturePartition(groups)},
        "PPHTL": {"n_partitions": 1},
    }


def measure(data: Organisations, repetition: int) -> dict[tuple[Hashable, ...], float]:
    """Return the AUC of each method, calibration and alpha on each target."""
    common = {"epsilon": EPSILON, "classes": [0, 1], "data_norm": data.data_norm}
    settings: list[tuple[str, float, dict[str, object]]] = [("default", 0.0, {})]
    settings += [("published", alpha, {"alpha": alpha}) for alpha in ALPHAS]
    here = data.site == data.source
    parts = {}
    for target in data.targets:
        rows = np.flatnonzero(data.site == target)
        parts[target] = train_test_split(
            rows, test_size=0.3, random_state=repetition, stratify=data.y[rows]
        )
    found: dict[tuple[Hashable, ...], float] = {}
    for calibration, alpha, more in settings:
        published = calibration == "published"
        stack = PublishedStackingClassifier if published else PrivateStackingClassifier
        plain = PublishedLogisticRegression if published else DPLogisticRegression
        combiner = {"combiner": "logistic"} if published else {}
        for name, options in variants(data, repetition).items():
            every = common | more | combiner | options
            source = stack(**every, random_state=seed(repetition, name, calibration, alpha))
            source.fit(data.X[here], data.y[here])
            for target, (train, test) in parts.items():
                model = stack(
                    **every,
                    prior=source.release_,
                    random_state=seed(repetition, name, calibration, alpha, target),
                )
                model.fit(data.X[train], data.y[train])
                key = (data.name, calibration, target, name, alpha)
                found[key] = auc(model, data.X[test], data.y[test])
                if name == "PST-H(W)":
                    key = (data.name, calibration, target, "source (W) alone", alpha)
                    found[key] = auc(source, data.X[test], data.y[test])
        for target, (train, test) in parts.items():
            model = plain(
                **common, **more, random_state=seed(repetition, "PLR", calibration, alpha, target)
            )
            model.fit(data.X[train], data.y[train])
            key = (data.name, calibration, target, "PLR (target)", alpha)
            found[key] = auc(model, data.X[test], data.y[test])
    for target, (train, test) in parts.items():
        model = DPLogisticRegression(**(common | {"epsilon": math.inf}))
        score = auc(model.fit(data.X[train], data.y[train]), data.X[test], data.y[test])
        for calibration, alpha, _ in settings:
            found[data.name, calibration, target, "target, no privacy", alpha] = score
    return found


def tuned(found: pd.DataFrame) -> pd.DataFrame:
    """Keep, for each calibration and method, the alpha of the best mean over all targets."""
    keys = ["data", "calibration", "method"]
    best = found.groupby([*keys, "alpha"])["auc"].mean().groupby(keys).idxmax()
    return found.set_index([*keys, "alpha"]).loc[best.tolist()].reset_index()


def tables(data: Organisations, found: pd.DataFrame, name: str, repetitions: int) -> None:
    """Write AUCs by target, and paired differences of the means over targets."""
    rows, pairs = [], []
    for calibration in ("default", "published"):
        part = found[found["calibration"] == calibration]
        for target in data.targets:
            mine = part[part["target"] == target].groupby("method")["auc"]
            size = int((data.site == target).sum())
            cells = (cell(mine.get_group(method)) for method in STYLES)
            rows.append((calibration, target, f"{size:,}", *cells))
        wide = part.groupby(["repetition", "method"])["auc"].mean().unstack()
        means = (f"**{cell(wide[method])}**" for method in STYLES)
        rows.append((calibration, "mean", "", *means))
        pairs.append((calibration, *(difference(wide[a] - wide[b]) for a, b in PAIRS)))
    n_source = int((data.site == data.source).sum())
    note = (
        f"{repetitions} random splits, 70 % of the target's rows for training; ± is half a 95 % "
        f"interval of the mean over splits. The source is {data.source}, {n_source:,} rows. "
        f"ε = {EPSILON:g} for the source and for the target each. Published: a model on top, and "
        "the alpha that is best on the test rows for each method. Default: weighted vote, nothing "
        "tuned."
    )
    table(name, ("calibration", "target", "rows", *STYLES), rows, f"Test AUC. {note}")
    heads = [f"{a} − {b}" for a, b in PAIRS]
    text = (
        f"Paired differences of the mean AUC over targets, bold where the interval excludes 0. "
        f"{note}"
    )
    table(f"{name}_order", ("calibration", *heads), pairs, text)


@part("figure")
def figure(data: Organisations, found: pd.DataFrame) -> None:
    """Draw the AUC on each target: published left, default right."""
    drawn = sheet(10.0, 6.0)
    panels = drawn.subplots(1, 2, sharex=True, sharey=True)
    for ax, calibration in zip(panels, ("published", "default"), strict=True):
        part = found[found["calibration"] == calibration]
        for i, (method, style) in enumerate(STYLES.items()):
            for place, target in enumerate(data.targets):
                same = part[(part["method"] == method) & (part["target"] == target)]["auc"]
                mean, width = interval(same.to_numpy())
                ax.errorbar(
                    mean,
                    place + (i - 3) * 0.11,
                    xerr=width,
                    label=method if place == 0 else None,
                    linestyle="none",
                    markersize=6,
                    elinewidth=1.0,
                    **style,
                )
        for place in range(1, len(data.targets), 2):
            ax.axhspan(place - 0.5, place + 0.5, color="0.96", zorder=0)
        ax.set_title(calibration, loc="left", fontsize=11, fontweight="bold")
        ax.set_xlabel("Test AUC, ε = 1 at the source and at the target")
        ax.grid(axis="x", color="0.9", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    sizes = [int((data.site == target).sum()) for target in data.targets]
    labels = [f"region {t}, n = {n:,}" for t, n in zip(data.targets, sizes, strict=True)]
    panels[0].set_yticks(range(len(labels)), labels)
    panels[0].set_ylim(len(labels) - 0.5, -0.5)
    handles, names = panels[0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    save(drawn, "stacking_transfer")


def main() -> None:
    """Tables for both data sets, and a figure for the larger one."""
    args = arguments(__doc__ or "", repetitions=number(20, quick=2), jobs=number(2))
    columns = ("data", "calibration", "target", "method", "alpha")
    for load, name in ((gusto, "transfer_gusto"), (heart, "transfer_heart")):
        with part(name):
            data = load(args.data_dir)
            found = tuned(repeated(measure, [data], args.repetitions, columns, args.jobs))
            tables(data, found, f"stacking_{name}", args.repetitions)
            if load is gusto:
                figure(data, found)


if __name__ == "__main__":
    run(main)
