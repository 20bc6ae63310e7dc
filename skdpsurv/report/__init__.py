"""A release for people: in words, as a page to sign, and as an entry of a public registry."""

from __future__ import annotations

from skdpsurv.report.annex_iv import annex_iv
from skdpsurv.report.explain import explain, formula, units
from skdpsurv.report.page import html_report, save_report
from skdpsurv.report.registry_entry import registry_entry

__all__ = [
    "annex_iv",
    "explain",
    "formula",
    "html_report",
    "registry_entry",
    "save_report",
    "units",
]
