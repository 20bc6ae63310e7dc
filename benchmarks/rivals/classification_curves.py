"""Are curved effects why boosted sums of functions of one column are better where they are?"""

from __future__ import annotations

import numpy as np

from benchmarks.pages import Pages, cell, interval
from benchmarks.rivals.classification_tables import Method, Report


def curves(found: Report, pages: Pages) -> None:
    """Write AUCs of straight and curved fits, with privacy and without."""
    plain = found.methods[0]
    known = {method.name: method for method in found.methods}
    squares = known.get("skdpsurv, with squares")
    if squares is None:
        return
    sets = [data for data in found.sets if _any(found, squares, data)]
    cells = []
    for data in sets:
        names = {plain.name: "linear", squares.name: "squares", "DP-EBM": "EBM"}
        for method in found.methods:
            each = [found.values(method, data, epsilon) for epsilon in found.epsilons]
            exact = found.without_privacy(data, names.get(method.name, ""))
            texts = [cell(one.to_numpy()) if one.size else "" for one in each]
            texts.append("" if np.isnan(exact) else f"{exact:.3f}")
            if any(one.size for one in each):
                cells.append((data, method.name, *texts))
    pages.table(
        "classification_curves",
        ("data", "method", *(f"ε = {e:g}" for e in found.epsilons), "without privacy"),
        cells,
        " ".join(_said(found, data, squares, known.get("DP-EBM")) for data in sets),
        "Mean AUC on test rows. Squares of the columns that are no flags, scaled to [-1, 1], are "
        "columns too; without privacy, an EBM without interactions. delta = 1/n².",
    )


def _any(found: Report, method: Method, data: str) -> bool:
    return any(found.values(method, data, epsilon).size for epsilon in found.epsilons)


def _said(found: Report, data: str, squares: Method, boosting: Method | None) -> str:
    """Say what curves are worth on a data set, and whether squares make up for them."""
    gains = [found.better(squares, data, epsilon) for epsilon in found.epsilons]
    gain = found.without_privacy(data, "squares") - found.without_privacy(data)
    helped = [
        f"{epsilon:g}"
        for epsilon, each in zip(found.epsilons, gains, strict=True)
        if each.size > 1 and -each.mean() > interval(each)[1]
    ]
    text = f"On {data}, squares add {gain:+.3f} without privacy"
    boosted = found.without_privacy(data, "EBM") - found.without_privacy(data)
    text += "" if np.isnan(boosted) else f" (an EBM {boosted:+.3f})"
    text += f", and help beyond the interval at ε = {', '.join(helped)}" if helped else ""
    text += "" if helped else ", and with privacy they nowhere help beyond the interval"
    if boosting is None or not _any(found, boosting, data):
        return text + "."
    ahead = [
        f"{epsilon:g}"
        for epsilon in found.epsilons
        if found.better(boosting, data, epsilon).mean() < 0.0
    ]
    left = [
        f"{epsilon:g}"
        for epsilon in found.epsilons
        if found.values(boosting, data, epsilon).mean()
        > max(found.values(m, data, epsilon).mean() for m in (found.methods[0], squares))
    ]
    text += f"; DP-EBM has the larger mean at ε = {', '.join(ahead)}" if ahead else ""
    text += f", and at ε = {', '.join(left)} also than with squares" if left else ""
    text += ", nowhere than with squares" if ahead and not left else ""
    return text + "."
