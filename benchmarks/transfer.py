"""Organisations, for scripts that have a folder and no setting."""

from __future__ import annotations

from pathlib import Path

from benchmarks._run import data_file
from benchmarks.data import Organisations, organisations
from benchmarks.harness import Setting


def gusto(folder: Path | None) -> Organisations:
    """Regions of the GUSTO-I trial."""
    data_file(folder, "gusto1_16regions.csv.gz")
    return organisations(Setting(folder=folder), "GUSTO-I")


def heart(folder: Path | None) -> Organisations:
    """Four hospitals."""
    data_file(folder, "heart_disease_4sites.csv.gz")
    return organisations(Setting(folder=folder), "heart disease")
