"""What goes to people with a release: a page to sign, and an entry of a public registry."""

from __future__ import annotations

from skdpsurv.report.page import html_report
from skdpsurv.report.registry_entry import registry_entry

__all__ = ["html_report", "registry_entry"]
