"""The plan of a search: who is fitted to which records, and what it costs together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skdpsurv.hybrid.meta_estimator import PrivateMetaEstimator
from skdpsurv.hybrid.predictions import prediction_assumptions
from skdpsurv.model_selection.candidates import Candidate, Fit
from skdpsurv.model_selection.losses import Loss
from skdpsurv.model_selection.run_price import Spend
from skdpsurv.model_selection.strategies import Parts, Repeat, Split
from skdpsurv.model_selection.trials import SearchRecords, Trials, fitted, never_asked, new_seed
from skdpsurv.privacy import PrivacyGuarantee, RandomSource
from skdpsurv.privacy.concentrated import MARGIN

__all__ = ["SearchPlan", "SearchShape"]

ASSUMPTIONS = (
    "the candidates, and everything that the guarantee of a single fit takes for public",
    "a record's loss depends on that record and on the model alone",
    "run time is not observed",
)


@dataclass(frozen=True, eq=False)
class SearchShape:
    """What is public of a search: who is fitted to which records, and what each fit promises.

    Parameters
    ----------
    sizes : tuple of int
        Numbers of private and of public records.
    candidates : sequence of Candidate
    loss : callable
    strategy : Split or Repeat
    parts : Parts
    first : Fit
        The first candidate's, to all records: what it refuses is refused in its words.
    fits : sequence of Fit
        Each candidate's, to its part.
    refits : sequence of Fit
        Each candidate's, to all records, if there is to be such a fit.
    """

    sizes: tuple[int, int]
    candidates: Sequence[Candidate]
    loss: Loss
    strategy: Split | Repeat
    parts: Parts
    first: Fit
    fits: Sequence[Fit]
    refits: Sequence[Fit]

    @property
    def n_records(self) -> int:
        """Number of private records."""
        return self.sizes[0]

    @property
    def promises(self) -> list[PrivacyGuarantee]:
        """What each fit would promise."""
        return [fit.guarantee for fit in (*self.fits, *self.refits)]


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """How a search spends epsilon.

    Parameters
    ----------
    shape : SearchShape
    epsilon : float
        Of the whole search.
    refit : Spend or None
        Of a last fit to all records; None for none.
    strategy : str
    refit_rho : float
        Of the last fit, where all noise is Gaussian.
    n_jobs : int or None
    verbose : int
    """

    shape: SearchShape
    epsilon: float
    refit: Spend | None
    strategy: str
    refit_rho: float = 0.0
    n_jobs: int | None = None
    verbose: int = 0

    def __post_init__(self) -> None:
        shape, again = self.shape, self.refit
        if shape.strategy.rho:
            allowed = [(fit, shape.strategy.rho) for fit in shape.fits]
            allowed += [(fit, self.refit_rho) for fit in shape.refits]
            if any(f.guarantee.rho is None or f.guarantee.rho > most for f, most in allowed):
                raise ValueError("estimator must be private at the price that it is given.")
            return
        allowed = [(fit, shape.strategy.run_epsilon) for fit in shape.fits]
        allowed += [(fit, 0.0 if again is None else again.epsilon) for fit in shape.refits]
        if any(f.guarantee.delta > 0 or f.guarantee.epsilon > most for f, most in allowed):
            raise ValueError(
                "estimator must be purely differentially private, with its epsilon: a delta is "
                "given to the search."
            )

    @property
    def delta(self) -> float:
        """Of the whole; 0 where noise is not Gaussian."""
        return self.shape.strategy.delta if self.shape.strategy.rho else 0.0

    @property
    def rho(self) -> float | None:
        """Price of the whole in zCDP, if it has one: the best of several runs has a curve."""
        rho = self.shape.strategy.rho
        if not rho or self.renyi:
            return None
        return (rho + self.refit_rho) * MARGIN

    @property
    def renyi(self) -> tuple[tuple[float, float], ...]:
        """Orders, and what the Renyi divergence of each is at most."""
        return self.shape.strategy.renyi(self.refit_rho)

    @property
    def mechanism(self) -> str:
        """What is released, in words."""
        again = "" if self.refit is None else ", then a fit to all records"
        fits = "; ".join(dict.fromkeys(promise.mechanism for promise in self.shape.promises))
        return f"{self.shape.strategy.mechanism}{again}: {fits}"

    @property
    def proof(self) -> str:
        """Where it is proved."""
        return self.shape.strategy.source

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What else must be true."""
        all_ = [*ASSUMPTIONS, *(a for promise in self.shape.promises for a in promise.assumptions)]
        for candidate in self.shape.candidates:
            if isinstance(candidate.private, PrivateMetaEstimator):  # scores are predictions, too
                all_ += prediction_assumptions(candidate.private._estimator)
        return tuple(dict.fromkeys(all_))

    def spans(self) -> list[float]:
        """Return the noise of a choice; each fit has its own, which its plan looks at."""
        strategy = self.shape.strategy
        return [1.0 / (strategy.rho or strategy.run_epsilon)]

    def public_inputs(self) -> dict[str, Any]:
        """Return what the guarantee takes to be public."""
        shape = self.shape
        inputs: dict[str, Any] = {
            "n_records": shape.sizes[0],
            "n_scored": shape.parts.scoring.size,
            "n_candidates": len(shape.candidates),
            "strategy": self.strategy,
            **shape.strategy.public_inputs(),
        }
        if self.refit_rho:
            inputs["rho_refit"] = self.refit_rho
        elif self.refit is not None:
            inputs["epsilon_refit"] = self.refit.epsilon
        if shape.sizes[1]:
            inputs["n_public"] = shape.sizes[1]
        behind: list[Any] = [p.public_inputs.get("prior", ()) for p in shape.promises]
        if any(behind):
            inputs["prior"] = list(dict.fromkeys(each for one in behind for each in one))
        return inputs

    def run(self, records: SearchRecords, source: RandomSource) -> dict[str, Any]:
        """Release the candidates, the place of the chosen one, and its model."""
        shape, strategy = self.shape, self.shape.strategy
        seeds = source.other("runs") if source.seeded else None
        trials = Trials(
            candidates=shape.candidates,
            records=records,
            parts=shape.parts,
            loss=shape.loss,
            spend=strategy.run_spend,
            seeds=seeds,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            counted=strategy.counted,
        )
        best, model = strategy.choose(trials, source)
        if self.refit is not None:
            again = shape.candidates[best].ready(self.refit, new_seed(seeds))
            model = fitted(again, (records.X, records.y, dict(records.parameters)))
        else:
            model = never_asked(model, records)
        return {"candidates": shape.candidates, "best": best, "model": model}
