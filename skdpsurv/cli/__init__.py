"""The command line: from a file of records to a release, without a line of Python."""

from __future__ import annotations

from skdpsurv.cli.app import app

__all__ = ["app"]
