"""A release for people: in words, as a page to sign, and as an entry of a public registry."""

from __future__ import annotations

from skdpsurv.report.explain import explain, formula, units
from skdpsurv.report.page import html_report, save_report
from skdpsurv.report.registry_entry import registry_entry
from skdpsurv.report.technical_documentation import annex_iv

__all__ = [
    "annex_iv",
    "explain",
    "formula",
    "html_report",
    "registry_entry",
    "save_report",
    "units",
]
