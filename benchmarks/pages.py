"""What pages are made of: tables in Markdown with a judgement, figures, and rows of the first page.

A sentence of judgement is made together with its table, from the same rows, so it cannot quote a
number that the table does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchmarks.harness import Entry

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
#: Verdicts on what a paper reports.
VERDICTS = ("reproduced", "better", "worse", "in part", "not reproduced", "cannot be had")

#: What intervals of repetitions are of. Splits overlap, but given the records they are independent.
INTERVAL = (
    "Intervals are of the chance of noise and splits of these records, not of other records drawn "
    "from the same population, for which they would be wider; they are not corrected for their "
    "number."
)


@dataclass(frozen=True)
class Verdict:
    """A row of the first page: a table or figure of a paper, or a comparison with a rival."""

    experiment: str
    item: str
    data: str
    ours: str
    theirs: str
    verdict: str


@dataclass(frozen=True)
class Comparison:
    """How much better this package's default is than a rival, with a 95 % interval.

    ``better`` is positive if it is. The interval is of the mean over noise and splits, for these
    records.
    """

    task: str
    data: str
    epsilon: float
    rival: str
    ours: float
    theirs: float
    better: float
    half_width: float

    @property
    def outcome(self) -> str:
        """Say who is ahead beyond the interval."""
        if abs(self.better) <= self.half_width or np.isnan(self.half_width):
            return "level"
        return "ahead" if self.better > 0.0 else "behind"


class Pages:
    """Where reports write.

    Parameters
    ----------
    folder : Path
        With tables and figures.
    quick : bool
        Whether these are of a quick run.
    """

    def __init__(self, folder: Path = DOCS, quick: bool = False) -> None:
        self.folder = folder
        self.quick = quick
        self.verdicts: list[Verdict] = []
        self.comparisons: list[Comparison] = []
        self.facts: dict[str, str] = {}
        self.incomplete: list[str] = []
        self._made = ""
        self._experiment = ""

    def clear(self) -> None:
        """Remove what earlier reports made: all of it is made anew from the rows."""
        for path in [*self.folder.glob("tables/*"), *self.folder.glob("figures/*")]:
            path.unlink()

    def begin(self, entry: Entry, head: dict[str, Any]) -> None:
        """Start the report of an experiment, whose file has this head."""
        self._experiment = entry.name
        made = f"Made by `make bench BENCHMARKS={entry.name}` in {head['minutes']:g} minutes"
        self._made = f"{made} on {head['date']}; {head['machine']}."
        if head.get("left"):
            self.incomplete.append(entry.name)
            self._made += f" **Not complete, with {head['left']:,} of the measurements left.**"
        self._before = len(self.verdicts), len(self.comparisons), dict(self.facts)

    def abandon(self) -> None:
        """Take back what the report that was begun last gave to the first page."""
        verdicts, comparisons, self.facts = self._before
        del self.verdicts[verdicts:], self.comparisons[comparisons:]

    def table(
        self,
        name: str,
        header: Sequence[str],
        rows: Sequence[Sequence[object]],
        judgement: str,
        note: str,
    ) -> None:
        """Write a table with one or two sentences of judgement above, and below what was done."""
        quick = "QUICK RUN, with fewer repetitions and sizes.\n\n" if self.quick else ""
        text = f"{quick}{judgement}\n\n{markdown(header, rows)}\n{note} {self._made}\n"
        self.write(f"{name}.md", text)

    def write(self, name: str, text: str) -> None:
        """Write a table's file."""
        (self.folder / "tables").mkdir(parents=True, exist_ok=True)
        (self.folder / "tables" / name).write_text(text)

    def figure(self, name: str, drawn: Figure) -> None:
        """Write a figure."""
        (self.folder / "figures").mkdir(parents=True, exist_ok=True)
        drawn.savefig(self.folder / "figures" / f"{name}.png", dpi=100, metadata={"Software": None})

    def verdict(self, item: str, data: str, ours: str, theirs: str, verdict: str) -> None:
        """Add a row of the first page; ``theirs`` is a paper's number, or "not readable"."""
        if verdict not in VERDICTS:
            raise ValueError(f"verdict {verdict!r} is not one of {VERDICTS}")
        self.verdicts.append(Verdict(self._experiment, item, data, ours, theirs, verdict))

    def fill_gaps(self) -> None:
        """Say of what a page includes and no experiment has made that it is not measured yet."""
        for page in DOCS.glob("*.md"):
            for kind, name in re.findall(r"\{(include|image)\} (\S+)", page.read_text()):
                if (self.folder / name).exists():
                    continue
                if kind == "include":
                    self.write(Path(name).name, "*Not measured yet.*\n")
                else:
                    drawn = sheet(4.0, 0.6)
                    drawn.text(0.5, 0.5, "not measured yet", ha="center", va="center")
                    self.figure(Path(name).stem, drawn)

    def fact(self, name: str, text: str) -> None:
        """Name a number, so that the README and other pages may quote it and a test can look."""
        self.facts[name] = text

    def comparison(
        self,
        task: str,
        data: str,
        epsilon: float,
        rival: str,
        ours: np.ndarray,
        theirs: np.ndarray,
        larger_is_better: bool = True,
    ) -> Comparison:
        """Add a row to the first page's table of rivals, from scores of the same repetitions."""
        ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
        sign = 1.0 if larger_is_better else -1.0
        better, width = interval(sign * (ours - theirs))
        row = Comparison(
            task, data, epsilon, rival, float(ours.mean()), float(theirs.mean()), better, width
        )
        self.comparisons.append(row)
        return row


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def interval(values: np.ndarray) -> tuple[float, float]:
    """Return a mean and the half-width of its 95 % interval, by Student's t."""
    values = np.asarray(values, dtype=float)
    if values.size < 2:
        return float(values.mean()), float("nan")
    width = stats.t.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean()), float(width)


def cell(values: np.ndarray, digits: int = 3) -> str:
    """Return a mean and its interval as text."""
    mean, width = interval(values)
    return f"{mean:.{digits}f} ± {width:.{digits}f}"


def panel(ax: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Give a panel a light grid, and no frame above and to the right."""
    ax.grid(axis=axis, color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def sheet(width: float, height: float) -> Figure:
    """Return an empty figure."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
