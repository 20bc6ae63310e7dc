"""What reports on private classifiers share: the best settings in hindsight, tables, a figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.pages import INTERVAL, Pages, cell, interval, panel, sheet
from benchmarks.rivals.worker import SCORES

TASK = "classification, AUC"
NATIVE = "native"
COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "0.35")
MARKERS = ("o", "v", "D", "s", "^", "P", "x")
TITLES = {"auc": "AUC", "accuracy": "accuracy", "log_loss": "log loss"}


@dataclass(frozen=True)
class Method:
    """A line of tables: settings of a family, the best of them in hindsight if there are several.

    ``None`` stands for all of them but what is not of the same guarantee.
    """

    name: str
    family: str
    settings: tuple[str, ...] | None = None


class Report:
    """Scores of methods, of which the first is this package's default."""

    def __init__(
        self, rows: pd.DataFrame, sets: Iterable[str], methods: Sequence[Method], pages: Pages
    ) -> None:
        self.pages = pages
        keys = ["data", "family", "epsilon", "setting"]
        tables = {s: rows.pivot(index="repetition", columns=keys, values=s) for s in SCORES}
        self.scores = {
            score: {key: column.dropna() for key, column in table.items()}
            for score, table in tables.items()
        }
        #: What ``values`` has found: tables, counts and figures ask for the same.
        self._found: dict[tuple, pd.Series] = {}
        self.sets = [name for name in sets if name in set(rows["data"])]
        self.epsilons = sorted({float(e) for e in rows["epsilon"] if np.isfinite(e)})
        families = set(rows["family"])
        self.methods = [method for method in methods if method.family in families]

    def values(self, method: Method, data: str, epsilon: float, score: str = "auc") -> pd.Series:
        """Return scores by repetition; of the setting with the best mean, if there are several."""
        asked = (method, data, epsilon, score)
        if asked not in self._found:
            self._found[asked] = self._values(*asked)
        return self._found[asked]

    def _values(self, method: Method, data: str, epsilon: float, score: str) -> pd.Series:
        at, settings = (data, method.family, epsilon), method.settings
        found = [
            column
            for key, column in self.scores[score].items()
            if key[:3] == at and (key[3] != NATIVE if settings is None else key[3] in settings)
        ]
        if not found:
            return pd.Series(dtype=float)
        best = min if score == "log_loss" else max
        return best(found, key=lambda each: each.mean())

    def paired(
        self, method: Method, data: str, epsilon: float, score: str = "auc"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return scores of ours and theirs, in the repetitions that both have."""
        ours = self.values(self.methods[0], data, epsilon, score)
        theirs = self.values(method, data, epsilon, score)
        both = ours.index.intersection(theirs.index)
        return ours[both].to_numpy(), theirs[both].to_numpy()

    def better(self, method: Method, data: str, epsilon: float, score: str = "auc") -> np.ndarray:
        """Return by how much ours is better, for each repetition."""
        ours, theirs = self.paired(method, data, epsilon, score)
        return (theirs - ours) if score == "log_loss" else (ours - theirs)

    def outcomes(self, method: Method, epsilon: float | None = None) -> dict[str, list]:
        """Return (data, epsilon, mean difference) where ours is ahead, level or behind."""
        found: dict[str, list] = {"ahead": [], "level": [], "behind": []}
        for data in self.sets:
            for e in self.epsilons if epsilon is None else [epsilon]:
                difference = self.better(method, data, e)
                if difference.size:
                    mean, width = interval(difference)
                    doubt = np.isnan(width) or abs(mean) <= width
                    place = "level" if doubt else "ahead" if mean > 0 else "behind"
                    found[place].append((data, e, mean))
        return found

    def said(self, method: Method) -> str:
        """Say how often ours is ahead, and where it is farthest behind."""
        found = self.outcomes(method)
        total = sum(map(len, found.values()))
        if not total:
            return ""
        text = f"against {method.name} ahead in {len(found['ahead'])} of {total}"
        if found["behind"]:
            data, epsilon, mean = min(found["behind"], key=lambda each: each[2])
            text += f" and behind in {len(found['behind'])}"
            text += f" (most on {data} at ε = {epsilon:g}, by {-mean:.3f})"
        else:
            text += " and nowhere behind"
        return text

    def without_privacy(self, data: str, setting: str = "linear") -> float:
        """Return the mean AUC of a fit without privacy."""
        table = self.scores["auc"]
        at = (data, np.inf, setting)
        found = [column.mean() for key, column in table.items() if (key[0], *key[2:]) == at]
        return float(found[0]) if found else float("nan")

    def table(self, name: str, judgement: str, note: str) -> None:
        """Write AUCs, after what is said of each rival."""
        cells = []
        for data in self.sets:
            exact = self.without_privacy(data)
            label = data if np.isnan(exact) else f"{data} ({exact:.3f})"
            for method in self.methods:
                each = [self.values(method, data, epsilon) for epsilon in self.epsilons]
                if any(one.size for one in each):
                    texts = [cell(one.to_numpy()) if one.size else "" for one in each]
                    cells.append((label, method.name, *texts))
        said = "; ".join(filter(None, map(self.said, self.methods[1:])))
        self.pages.table(
            name,
            ("data (without privacy)", "method", *(f"ε = {e:g}" for e in self.epsilons)),
            cells,
            f"{judgement} {said}. Counted are pairs of data set and ε; ahead and behind are beyond "
            f"a 95 % interval of the mean of paired differences in AUC. {INTERVAL}",
            f"Mean AUC on test rows, and half of its 95 % interval. {note}",
        )

    def differences(self, name: str, note: str) -> None:
        """Write by how much ours is better, as a mean over data sets."""
        cells = []
        for method in self.methods[1:]:
            for epsilon in self.epsilons:
                found = self.outcomes(method, epsilon)
                sets = [data for part in found.values() for data, _, _ in part]
                if sets:
                    means = [
                        np.mean([self.better(method, data, epsilon, s).mean() for data in sets])
                        for s in SCORES
                    ]
                    counts = " / ".join(str(len(part)) for part in found.values())
                    cells.append(
                        (method.name, f"{epsilon:g}", counts, *(f"{m:+.3f}" for m in means))
                    )
        self.pages.table(
            f"{name}_differences",
            ("rival", "ε", "ahead / level / behind", *(f"better by, {TITLES[s]}" for s in SCORES)),
            cells,
            self._scores_said(),
            "Mean over data sets of how much better this package's default is; sets are counted by "
            f"AUC. {note}",
        )

    def _scores_said(self) -> str:
        """Say which rivals are better by a mean score."""
        behind = []
        for score in SCORES:
            for method in self.methods[1:]:
                each = [
                    self.better(method, data, epsilon, score)
                    for data in self.sets
                    for epsilon in self.epsilons
                ]
                means = [one.mean() for one in each if one.size]
                if means and np.mean(means) < 0.0:
                    behind.append(f"{method.name} by {TITLES[score]} ({-np.mean(means):.3f})")
        if not behind:
            return "As a mean over data sets and ε, the default is better by every score."
        return f"As a mean over data sets and ε, better than the default are {', '.join(behind)}."

    def figure(self, name: str) -> None:
        """Draw AUC over epsilon, a panel for each data set."""
        n_columns = min(len(self.sets), 5)
        n_rows = -(-len(self.sets) // n_columns)
        drawn = sheet(2.9 * n_columns + 0.4, 2.9 * n_rows + 0.8)
        panels = drawn.subplots(n_rows, n_columns, squeeze=False).ravel()
        lines = {}
        for ax, data in zip(panels, self.sets, strict=False):
            for i, method in enumerate(self.methods):
                curve = {e: self.values(method, data, e).mean() for e in self.epsilons}
                known = {e: mean for e, mean in curve.items() if not np.isnan(mean)}
                if known:
                    style = {"color": COLOURS[i], "marker": MARKERS[i], "markersize": 5}
                    style |= {"linewidth": 2.4 if i == 0 else 1.4, "zorder": 3 if i == 0 else 2}
                    lines[method.name] = ax.semilogx(list(known), list(known.values()), **style)[0]
            exact = self.without_privacy(data)
            if not np.isnan(exact):
                lines["without privacy"] = ax.axhline(exact, color="0.6", linestyle=":")
            ax.set_title(data, loc="left", fontweight="bold", fontsize=10)
            ax.set_xticks(self.epsilons, [f"{epsilon:g}" for epsilon in self.epsilons])
            ax.minorticks_off()
            panel(ax)
        for ax in panels[len(self.sets) :]:
            ax.set_visible(False)
        for ax in panels[::n_columns]:
            ax.set_ylabel("AUC on test rows")
        for ax in panels[max(len(self.sets) - n_columns, 0) : len(self.sets)]:
            ax.set_xlabel("ε")
        drawn.legend(
            list(lines.values()),
            list(lines),
            loc="outside lower center",
            ncols=max(1, n_columns - 1),
            frameon=False,
        )
        self.pages.figure(name, drawn)

    def compare(self, skip: Sequence[str]) -> None:
        """Add rows to the first page, of rivals with the same guarantee."""
        for method in self.methods[1:]:
            if method.name not in skip:
                for data in self.sets:
                    for epsilon in self.epsilons:
                        ours, theirs = self.paired(method, data, epsilon)
                        if ours.size:
                            self.pages.comparison(TASK, data, epsilon, method.name, ours, theirs)
