"""What the benchmarks of classifiers share: labelled data, repeated splits, intervals of means."""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from benchmarks._run import QUICK, Missing, data_file, part
from skdpsurv.dp import PrivacyLeakWarning

if TYPE_CHECKING:
    from matplotlib.axis import Axis

N_COMPONENTS = 100
TICKS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.993)
TICKS += (0.995, 0.997, 0.998, 0.999)


@dataclass(frozen=True)
class LabelledData:
    """Rows within a public norm, labels 0 and 1, and how many rows a repetition takes."""

    name: str
    X: np.ndarray
    y: np.ndarray
    importances: np.ndarray
    n_train: int
    n_test: int

    def split(self, repetition: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a random split that depends on the sizes and the repetition only."""
        order = np.random.default_rng(repetition).permutation(self.y.size)
        return order[: self.n_train], order[self.n_train : self.n_train + self.n_test]


def seed(*key: object) -> int:
    """Return a seed of this key's own: no two fits share their noise."""
    return zlib.crc32(repr(key).encode())


def auc(model: BaseEstimator, X: np.ndarray, y: np.ndarray) -> float:
    """Return the area under the ROC curve of a model's scores."""
    return float(roc_auc_score(y, model.decision_function(X)))


def repeated(
    measure: Callable[[Any, int], dict[tuple[Hashable, ...], float]],
    tasks: Sequence[Any],
    repetitions: int,
    columns: Sequence[str],
    jobs: int,
) -> pd.DataFrame:
    """Call ``measure(task, repetition)`` for all of them; return its keys as columns, and AUCs."""

    def quietly(task: Any, repetition: int) -> list[tuple[Hashable, ...]]:
        with warnings.catch_warnings():
            # Seeds make these tables reproducible; the data are public, and nothing is released.
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            found = measure(task, repetition)
        return [(*key, repetition, score) for key, score in found.items()]

    calls = (delayed(quietly)(task, r) for task in tasks for r in range(repetitions))
    parts = Parallel(n_jobs=jobs)(calls)
    rows = [row for part in parts for row in part]
    return pd.DataFrame(rows, columns=[*columns, "repetition", "auc"])


def interval(values: np.ndarray) -> tuple[float, float]:
    """Return a mean and the half-width of its 95 % interval, by Student's t."""
    values = np.asarray(values, dtype=float)
    if values.size < 2:
        return float(values.mean()), float("nan")
    width = stats.t.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean()), float(width)


def cell(values: np.ndarray) -> str:
    """Return a mean AUC and its interval as text."""
    mean, width = interval(values)
    return f"{mean:.3f} ± {width:.3f}"


def difference(values: np.ndarray) -> str:
    """Return a mean difference and its interval as text; in bold where 0 is outside."""
    mean, width = interval(values)
    digits = 4 if width < 0.001 else 3
    text = f"{mean:+.{digits}f} ± {width:.{digits}f}".replace("-", "−")
    return f"**{text}**" if abs(mean) > width else text


def spread(axis: Axis, values: Sequence[float]) -> None:
    """Put AUCs on the scale of log odds, where 0.98 and 0.99 are as far apart as 0.7 and 0.83."""

    def odds(scores: np.ndarray) -> np.ndarray:
        inside = np.clip(scores, 0.2, 0.9995)
        return np.log(inside / (1.0 - inside))

    # The figure's own function, since an axis has none: x and y are alike.
    set_scale = axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale
    set_limits = axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim
    set_scale("function", functions=(odds, lambda place: 1.0 / (1.0 + np.exp(-place))))
    least, most = odds(np.array([min(values), max(values)]))
    margin = 0.05 * (most - least)
    low, high = 1.0 / (1.0 + np.exp([margin - least, -most - margin]))
    set_limits(low, min(high, 0.9995))
    apart = (0.17 if axis.axis_name == "x" else 0.07) * (most - least)
    ticks: list[float] = []
    for tick in TICKS:
        if low <= tick <= high and (
            not ticks or np.diff(odds(np.array([ticks[-1], tick]))) > apart
        ):
            ticks.append(tick)
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def benchmark_sets(folder: Path | None) -> list[LabelledData]:
    """Return MNIST 0 or 8, MNIST 4 or 9 and NEWS20, rows of norm 1.

    As in the paper, principal components and the variances that serve as importances are computed
    on all rows. Neither is private: they are here to compare methods.
    """
    loaders = {
        "MNIST 0 or 8": lambda: _digits(folder, 0, 8),
        "MNIST 4 or 9": lambda: _digits(folder, 4, 9),
        "NEWS20": lambda: _news(folder),
    }
    found = []
    for name, load in loaders.items():
        with part(name):
            found.append(load())
    return found


@contextmanager
def _network() -> Iterator[None]:
    """Without a folder the data are fetched, except in a quick run."""
    if QUICK:
        raise Missing("needs --data-dir, or without --quick the network")
    try:
        yield
    except OSError as error:
        raise Missing(f"needs --data-dir or the network ({type(error).__name__})") from error


def _digits(folder: Path | None, low: int, high: int) -> LabelledData:
    if folder is not None:
        with np.load(data_file(folder, f"mnist_{low}v{high}.npz")) as file:
            images, labels = file["X"], file["y"]
    else:
        # Needs the network; scikit-learn keeps a copy in its data folder.
        from sklearn.datasets import fetch_openml

        with _network():
            images, labels = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True)
        labels = labels.astype(int)
        rng = np.random.default_rng(20)
        chosen = [
            rng.choice(np.flatnonzero(labels == digit), 3000, replace=False)
            for digit in (low, high)
        ]
        images, labels = images[np.concatenate(chosen)], labels[np.concatenate(chosen)]
    pixels = images / 255.0
    pixels = pixels - pixels.mean(axis=0)
    _, axes = np.linalg.eigh(pixels.T @ pixels)
    components = pixels @ axes[:, : -N_COMPONENTS - 1 : -1]
    return LabelledData(
        f"MNIST {low} or {high}",
        normalize(components),
        (labels == high).astype(int),
        components.var(axis=0),
        3000,
        2000,
    )


def _news(folder: Path | None) -> LabelledData:
    if folder is not None:
        with np.load(data_file(folder, "news20_sci_v_talk_svd100.npz")) as file:
            columns, labels = file["X"].astype(float), (file["y"] > 0).astype(int)
            n_train = int((file["is_test"] == 0).sum())
    else:
        columns, labels, n_train = _fetched_news()
    return LabelledData(
        "NEWS20", normalize(columns), labels, columns.var(axis=0), n_train, labels.size - n_train
    )


def _fetched_news() -> tuple[np.ndarray, np.ndarray, int]:
    """Make the NEWS20 columns; needs the network, scikit-learn keeps a copy of the texts."""
    from sklearn.datasets import fetch_20newsgroups
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    names = [f"sci.{name}" for name in ("crypt", "electronics", "med", "space")]
    names += [f"talk.{name}" for name in ("politics.guns", "politics.mideast", "politics.misc")]
    names += ["talk.religion.misc"]
    texts, labels = [], []
    for subset in ("train", "test"):
        with _network():
            bunch = fetch_20newsgroups(
                subset=subset, categories=names, remove=("headers", "footers", "quotes")
            )
        kept = [
            (re.sub(r"\S+@\S+", " ", text), int(bunch.target_names[topic].startswith("sci.")))
            for text, topic in zip(bunch.data, bunch.target, strict=True)
            if len(text.strip()) >= 20
        ]
        texts.append([text for text, _ in kept])
        labels += [label for _, label in kept]
    counts = TfidfVectorizer(
        min_df=3, max_df=0.5, stop_words="english", sublinear_tf=True, max_features=20_000
    )
    reduced = TruncatedSVD(N_COMPONENTS, random_state=0)
    train = reduced.fit_transform(counts.fit_transform(texts[0]))
    test = reduced.transform(counts.transform(texts[1]))
    return np.vstack([train, test]), np.array(labels), len(texts[0])
