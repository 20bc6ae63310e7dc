"""Replays by somebody else's program, dp-recorder, in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.environments import Environment
from benchmarks.harness import ROOT, Case, Experiment, Row, Setting
from benchmarks.pages import Pages

SCRIPT = Path(__file__).parent.parent / "rivals" / "recorder_fits.py"
NAMES = (
    *("DPKaplanMeierFitter", "DPTableOne", "HybridMEstimator, subset"),
    *("DPLogisticRegression, output", "DPDiscreteTimeSurvival, output"),
)
#: Parts of each sensitivity that are declared: all, and half.
SHARES = (1.0, 0.5)


def cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(NAMES, NAMES[:1]):
        for share in SHARES:
            yield {"estimator": name, "share": share}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return what dp-recorder says of all hard pairs."""
    # A checkout of github.com/ObliviousAI/dp-recorder: no index has it.
    source = setting.file("dp-recorder")
    wanted = f"dp-recorder @ {source.resolve().as_uri()}", f"skdpsurv @ {ROOT.as_uri()}"
    environment = Environment("dp-recorder", wanted, SCRIPT)
    found = environment.run(setting, "replay", {}, pairs=setting.of(100, 1), **case)
    return {name: found[name] for name in ("calls", "pairs", "diverged", "too_far", "largest")}


def report(rows: pd.DataFrame, pages: Pages) -> None:
    whole, half = (rows[rows.share == share].set_index("estimator") for share in SHARES)
    pages.table(
        "audit_recorder",
        ("estimator", "mechanisms", "pairs", "diverged", "too far", "largest", "too far at half"),
        [
            (
                name,
                whole.calls[name],
                whole.pairs[name],
                whole.diverged[name],
                whole.too_far[name],
                f"{whole.largest[name]:.3f}",
                half.too_far[name],
            )
            for name in NAMES
            if name in whole.index and name in half.index
        ],
        f"Of {whole.pairs.sum()} pairs {whole.diverged.sum() or 'none'} diverges, and "
        f"{whole.too_far.sum() or 'none'} moves a mechanism farther than declared.",
        "Pairs for which dp-recorder reports another course, or a distance beyond the declared "
        "sensitivity; the largest distance over it; and pairs that it reports where half of each "
        "sensitivity is declared.",
    )


RECORDER = Experiment(cases, measure, report)
