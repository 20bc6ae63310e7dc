"""Look behind a guarantee. Nothing in here is private: run it on data that you may see."""

from __future__ import annotations

from skdpsurv.audit.posterior import PosteriorChains, nonprivate_posterior_chains

__all__ = ["PosteriorChains", "nonprivate_posterior_chains"]
