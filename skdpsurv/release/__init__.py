"""The one thing that leaves a private fit, and all that is needed to use it."""

from __future__ import annotations

from skdpsurv.release.release import Release
from skdpsurv.release.values import check_parameters, released_array, stated_records

__all__ = ["Release", "check_parameters", "released_array", "stated_records"]
