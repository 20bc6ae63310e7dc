"""The one thing that leaves a private fit, and all that is needed to use it."""

from __future__ import annotations

from skdpsurv.release.release import Release, check_parameters, released_array

__all__ = ["Release", "check_parameters", "released_array"]
