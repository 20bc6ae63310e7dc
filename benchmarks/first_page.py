"""The first page: all tables and figures of the papers, and all rivals, in one screen each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.pages import INTERVAL, VERDICTS, Comparison, Pages, markdown, panel, sheet

#: Up to this epsilon a user may expect to be told where another method is better.
SMALL_EPSILON = 1.0
COLOURS = {"ahead": "#0072B2", "level": "0.55", "behind": "#D55E00"}


def write_first_page(pages: Pages) -> None:
    """Write the tables ``papers`` and ``rivals``, the figure ``rivals``, and named numbers."""
    facts = "".join(f'{name} = "{text}"\n' for name, text in sorted(pages.facts.items()))
    pages.write("facts.toml", facts)
    if pages.verdicts:
        _papers(pages)
    if pages.incomplete:
        print(f"pages say that these are not complete: {', '.join(pages.incomplete)}")
    small = [row for row in pages.comparisons if row.epsilon <= SMALL_EPSILON]
    if small:
        _rivals(small, pages)
        _figure(small, pages)
    pages.fill_gaps()


def _papers(pages: Pages) -> None:
    count = Counter(row.verdict for row in pages.verdicts)
    said = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict])
    rows = [(r.item, r.data, r.ours, r.theirs, r.verdict) for r in pages.verdicts]
    text = markdown(("table or figure", "data", "ours", "paper", "verdict"), rows)
    pages.write("papers.md", f"Of {len(rows)} statements in tables and figures: {said}.\n\n{text}")


def _rivals(small: Sequence[Comparison], pages: Pages) -> None:
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for row in small:
        groups.setdefault((row.task, row.rival), []).append(row)
    rows = []
    for (task, rival), found in groups.items():
        count = Counter(row.outcome for row in found)
        behind = sorted({f"{r.data} (ε = {r.epsilon:g})" for r in found if r.outcome == "behind"})
        rows.append(
            (task, rival, count["ahead"], count["level"], count["behind"], ", ".join(behind))
        )
    behind_all = sum(row[4] for row in rows)
    text = markdown(("task", "rival", "ahead", "level", "behind", "behind on"), rows)
    pages.write(
        "rivals.md",
        f"At ε up to {SMALL_EPSILON:g} the defaults are ahead in {sum(row[2] for row in rows)} of "
        f"{len(small)} comparisons, and behind in {behind_all}: beyond a 95 % interval of the mean "
        f"of paired differences. In the rest it holds 0. {INTERVAL}\n\n{text}",
    )


def _figure(small: Sequence[Comparison], pages: Pages) -> None:
    """Draw how much better the defaults are at the largest of the small epsilons of each task."""
    at = {row.task: max(r.epsilon for r in small if r.task == row.task) for row in small}
    small = [row for row in small if row.epsilon == at[row.task]]
    tasks = list(dict.fromkeys(row.task for row in small))
    drawn = sheet(9.5, 0.9 + 0.28 * len({(r.task, r.rival) for r in small}) + 0.5 * len(tasks))
    heights = [len({r.rival for r in small if r.task == task}) + 1 for task in tasks]
    panels = drawn.subplots(len(tasks), 1, squeeze=False, height_ratios=heights)[:, 0]
    for ax, task in zip(panels, tasks, strict=True):
        rows = [row for row in small if row.task == task]
        rivals = list(dict.fromkeys(row.rival for row in rows))
        for place, rival in enumerate(rivals):
            mine = [row for row in rows if row.rival == rival]
            offsets = np.linspace(-0.25, 0.25, len(mine)) if len(mine) > 1 else [0.0]
            for row, offset in zip(mine, offsets, strict=True):
                ax.errorbar(
                    row.better,
                    place + offset,
                    xerr=row.half_width,
                    fmt="o",
                    markersize=4,
                    color=COLOURS[row.outcome],
                    linewidth=1.0,
                )
        ax.axvline(0.0, color="0.3", linewidth=0.8)
        ax.set_yticks(range(len(rivals)), rivals)
        ax.set_ylim(len(rivals) - 0.5, -0.5)
        ax.set_title(f"{task}, ε = {at[task]:g}", loc="left", fontsize=10, fontweight="bold")
        panel(ax, "x")
    panels[-1].set_xlabel("How much better the default is (blue: ahead, grey: level, red: behind)")
    pages.figure("rivals", drawn)
