"""PosteriorSampling: the method of a fit that draws from a sanitised posterior."""

from __future__ import annotations

from typing import ClassVar

from skdpsurv.checks import (
    Check,
    Parameters,
    auto_or,
    choice,
    integer,
    number_in,
    positive,
    verbosity,
)
from skdpsurv.mechanisms.noisy_langevin import STEPS_RANGE
from skdpsurv.survival.posterior_plan import LEAST_STEPS, MOST_EPOCHS, SAMPLERS, Schedule

__all__ = ["PosteriorSampling"]


class PosteriorSampling(Parameters):
    """How ``DPDiscreteTimeSurvival(method=...)`` draws from a sanitised posterior.

    ``method="psgld"`` is this with its defaults.

    Parameters
    ----------
    sampler : {"mala", "psgld"}, default="mala"
        Markov chain: the Metropolis-adjusted Langevin algorithm on all records, or the paper's
        stochastic gradients, whose step is corrected. One law, but the first gets there a hundred
        times faster. With a delta only "psgld", on all records.
    n_epochs : int or "auto", default="auto"
        Passes over the data: one step of "mala", n steps of "psgld" as in the paper, after 100
        passes from a draw of the prior. "auto" is 400 (to 4000 below 10,000 records), and 250. At
        least 100 with "mala", and so many that "psgld" has 1000 steps. With a delta a pass is one
        step, at least 30, and "auto" follows from public numbers: what is not used is
        ``batch_size``, ``step_size`` and ``step_exponent``.
    batch_size : int, default=200
        Records in a step of "psgld"; all of them if there are fewer.
    step_size : float or "auto", default="auto"
        First step a_1 of "psgld"; "auto" is the largest that is stable at a mode. Refused if so
        small, by public numbers, that the chain would stay where it begins.
    step_exponent : float, default=0.51
        Steps of "psgld" shrink as ``t ** -step_exponent``, above 0.5 and at most 1.
    verbose : int, default=0
        1 shows a progress bar while a chain runs.

    Examples
    --------
    >>> from skdpsurv import DPDiscreteTimeSurvival, PosteriorSampling
    >>> model = DPDiscreteTimeSurvival(max_time=5.0, method=PosteriorSampling(n_epochs=400))
    >>> model.set_params(method__n_epochs=1000).method
    PosteriorSampling(n_epochs=1000)
    """

    _rules: ClassVar[dict[str, Check]] = {
        "sampler": choice(*SAMPLERS),
        "n_epochs": auto_or(integer(at_most=MOST_EPOCHS)),
        "batch_size": integer(),
        "step_size": auto_or(positive()),
        "step_exponent": number_in(0.5, 1.0, closed="right", why="Else the chain has no limit."),
        "verbose": verbosity,
    }

    def __init__(
        self,
        sampler: str = "mala",
        *,
        n_epochs: int | str = "auto",
        batch_size: int = 200,
        step_size: float | str = "auto",
        step_exponent: float = 0.51,
        verbose: int = 0,
    ) -> None:
        self.sampler = sampler
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.step_size = step_size
        self.step_exponent = step_exponent
        self.verbose = verbose

    def check(self) -> None:
        """Refuse parameters that break a rule.

        Raises
        ------
        ValueError, TypeError
            Naming the parameter.
        """
        super().check()
        least = LEAST_STEPS["mala"]
        if self.sampler == "mala" and not isinstance(self.n_epochs, str) and self.n_epochs < least:
            raise ValueError(
                f"n_epochs must be at least {least} with sampler='mala', got {self.n_epochs}."
            )

    def check_noisy(self) -> None:
        """Refuse what a chain of noisy steps, which a delta pays for, cannot be.

        Raises
        ------
        ValueError
            Naming the parameter.
        """
        if self.sampler != "psgld":
            raise ValueError(
                "delta must be 0 with method='psgld' and sampler='mala', whose Metropolis test "
                "looks at records outside any Gaussian mechanism: PosteriorSampling('psgld') takes "
                "a delta."
            )
        if not isinstance(self.n_epochs, str) and self.n_epochs < STEPS_RANGE[0]:
            raise ValueError(
                f"n_epochs must be at least {STEPS_RANGE[0]} with method='psgld' and a delta, "
                f"got {self.n_epochs}."
            )

    def schedule(self) -> Schedule:
        """Return how long a chain is and how it moves, in Python's own numbers."""
        epochs, step = self.n_epochs, self.step_size
        return Schedule(
            self.sampler,
            epochs if isinstance(epochs, str) else int(epochs),
            int(self.batch_size),
            step if isinstance(step, str) else float(step),
            float(self.step_exponent),
        )
