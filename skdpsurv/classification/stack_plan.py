r"""The plan of a stack: which rows and columns train which model, and what each may spend.

Rows are dealt out by a random order that knows their number and nothing else. Rows of the models
below and rows of the model on top are disjoint, and so are the rows of models on parts of the rows:
each record is in one of these sets whatever its values are, so each set may be used at the full
epsilon (docs/proofs/stacking).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.classification.budgets import GroupSetting
from skdpsurv.classification.combiners import meta_rows, votes
from skdpsurv.classification.group_fit import Coefficients, GroupFit, SignedRows
from skdpsurv.mechanisms.perturbation import Problem, perturb_all
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.concentrated import together
from skdpsurv.references import reference
from skdpsurv.types import IntArray


@dataclass(frozen=True)
class Stack:
    """What is trained on what; made from public numbers.

    Parameters
    ----------
    n_records : int
    n_high : int
        Rows kept for the model on top; 0 for none.
    low : tuple of GroupFit
        One plan for all groups of columns, or one for each part of the rows.
    high : GroupFit or None
        Plan of one output of the model on top.
    """

    n_records: int
    n_high: int
    low: tuple[GroupFit, ...]
    high: GroupFit | None

    def deal(self, source: RandomSource) -> tuple[list[IntArray], IntArray]:
        """Return the rows of each plan below, and those of the model on top."""
        if self.high is None and len(self.low) == 1:
            return [np.arange(self.n_records)], np.arange(0)
        order = source.generator.permutation(self.n_records)
        ends = np.cumsum([plan.n_records for plan in self.low])
        parts = np.split(order[: ends[-1]], ends[:-1])
        return parts, order[ends[-1] :]

    def run(
        self,
        records: Blocks[SignedRows],
        sources: tuple[RandomSource, RandomSource],
        n_jobs: int | None,
        verbose: int,
    ) -> tuple[list[Coefficients], Coefficients | None]:
        """Release the models below, and the one on top if there is one.

        Parameters
        ----------
        records : Blocks
            Of SignedRows: private.
        sources : tuple of RandomSource
            For the order of the rows, and for the noise.
        n_jobs, verbose : int
            As for :class:`joblib.Parallel`.
        """
        order, noise = sources
        parts, top = self.deal(order)

        def chosen(part: IntArray) -> Blocks[SignedRows]:
            if part.size == self.n_records:
                return records
            return records.chosen(part, lambda block: block.n_records, SignedRows.rows)

        problems, counts = [], []
        for plan, part in zip(self.low, parts, strict=True):
            found = plan.problems(chosen(part))
            problems += found
            counts.append(len(found))
        released = perturb_all(problems, noise, n_jobs=n_jobs, verbose=verbose)
        ends = np.cumsum([0, *counts])
        models = [
            model
            for i, plan in enumerate(self.low)
            for model in plan.coefficients([each.coef for each in released[ends[i] : ends[i + 1]]])
        ]
        if self.high is None:
            return models, None
        groups = [group.indices for plan in self.low for group in plan.groups]
        data_norm, cap = self.low[0].data_norm, self.max_residual

        def ballots(block: SignedRows) -> list[SignedRows]:
            """Return, for each output, the votes of the models below."""
            rows = block.within(data_norm).X
            cast = votes(models, [rows[:, group] for group in groups], cap)
            return [
                SignedRows(meta, sign[None, :])
                for meta, sign in zip(meta_rows(cast), block.signs, strict=True)
            ]

        cast = chosen(top).map(ballots)
        problems = [
            problem
            for output in range(self.low[0].n_outputs)
            for problem in self.high.problems(cast.map(itemgetter(output)))
        ]
        released = perturb_all(problems, noise, n_jobs=n_jobs, verbose=verbose)
        tops = [self.high.coefficients([one.coef])[0] for one in released]
        return models, Coefficients(
            np.concatenate([t.coef for t in tops]), np.concatenate([t.intercept for t in tops])
        )

    @property
    def max_residual(self) -> float:
        """The cap of the models below, the same for all."""
        return self.low[0].max_residual

    def spans(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        return [span for plan in self.levels for span in plan.spans()]

    @property
    def levels(self) -> tuple[GroupFit, ...]:
        """The plans of all models below, and of that on top."""
        return (*self.low, *([self.high] if self.high else []))

    def public_inputs(self) -> dict[str, Any]:
        """Return how epsilon was spent."""
        top = self.high.public_inputs() if self.high else {}
        return {
            "n_low_level": sum(plan.n_records for plan in self.low),
            "n_high_level": self.n_high,
            **self.low[0].public_inputs(),
            **{f"high_level_{name}": value for name, value in top.items()},
        }


@dataclass(frozen=True)
class StackPlan:
    """The plan of a fit.

    Parameters
    ----------
    stack : Stack
    epsilon : float
    mechanism : str
    stated : mapping
        What the guarantee takes to be public, beside how epsilon is spent.
    assumptions : tuple of str
    n_jobs, verbose : int
        As for :class:`joblib.Parallel`.
    allowed_delta : float, default=0.0
        What Gaussian noise may use.
    """

    stack: Stack
    epsilon: float
    mechanism: str
    stated: Mapping[str, Any]
    assumptions: tuple[str, ...]
    n_jobs: int | None = None
    verbose: int = 0
    allowed_delta: float = 0.0

    @property
    def proof(self) -> str:
        """Where it is proved."""
        if self.delta:
            return reference("docs/proofs/gaussian", "bun-steinke", "canonne")
        return reference("docs/proofs/stacking", "guo", "chaudhuri")

    @property
    def delta(self) -> float:
        """What is used of the delta allowed: all of it, or nothing."""
        return self.allowed_delta if any(plan.prices for plan in self.stack.levels) else 0.0

    @property
    def rho(self) -> float | None:
        """What Gaussian noise costs, in zCDP, if there is no other; levels see other rows."""
        if not all(plan.prices for plan in self.stack.levels):
            return None
        return together(*self.stack.low[0].prices).rho

    def spans(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        return self.stack.spans()

    def public_inputs(self) -> dict[str, Any]:
        """Return what the guarantee takes to be public."""
        return {**self.stated, **self.stack.public_inputs()}

    def problems(self, records: Blocks[SignedRows]) -> list[Problem]:
        """Return the minimisations, which an audit attacks as they are.

        Raises
        ------
        ValueError
            If these are not all that is released of all records.
        """
        if (
            self.stack.high is not None
            or len(self.stack.low) > 1
            or self.stated["partition"] != ("features")
        ):
            raise ValueError(
                "estimator must have partition='features' and a combiner that votes: else what is "
                "released is no set of minimisers of the same records."
            )
        return self.stack.low[0].problems(records)

    def run(self, records: Blocks[SignedRows], source: RandomSource) -> dict[str, Any]:
        """Release all models."""
        stack = self.stack
        models, top = stack.run(records, (source.other("split"), source), self.n_jobs, self.verbose)
        values: dict[str, Any] = {
            f"low_level_coef_{k}": model.coef for k, model in enumerate(models)
        }
        values["low_level_intercept"] = [model.intercept for model in models]
        values["max_residual"] = [stack.max_residual]
        if stack.high is not None and top is not None:
            values["high_level_coef"], values["high_level_intercept"] = top
            values["max_residual"].append(stack.high.max_residual)
        return values


def plan_stack(
    setting: GroupSetting,
    n_parts: int,
    holdout: float,
    calibrate: Callable[[GroupSetting], GroupFit],
) -> Stack:
    """Deal out the number of rows, and calibrate each level with the whole of epsilon.

    Parameters
    ----------
    setting : GroupSetting
        Of the models below, with the number of all rows.
    n_parts : int
        Parts of the rows; 1 if each model below sees all of them.
    holdout : float
        Share of the rows for the model on top; 0 for none.
    calibrate : callable
        Makes a plan of a setting.

    Raises
    ------
    ValueError
        If there are fewer rows than models need.
    """
    n = setting.n_records
    n_high = round(holdout * n)
    n_low = n - n_high
    if n_low < n_parts or (holdout > 0.0 and n_high < 1):
        raise ValueError(
            "n_partitions and holdout must leave at least one row for each model, got "
            f"n_samples={n}."
        )
    sizes = [n_low // n_parts + (part < n_low % n_parts) for part in range(n_parts)]
    # Votes of parts that differ by one row have one meaning.
    cap = replace(setting, n_records=min(sizes)).capped()
    low = {
        size: calibrate(replace(setting, n_records=size, max_residual=cap)) for size in set(sizes)
    }
    top = replace(
        setting,
        n_records=n_high,
        n_outputs=1,
        epsilon=replace(setting, price=None).epsilon_output,
        price=None if setting.price is None else setting.price_output,
        groups=(tuple(range(n_parts * len(setting.groups))),),
        weights=(1.0,),
        data_norm=1.0,
        group_norms=(1.0,),
        ridge_multiple=1.0,
        centers=None,
    )
    plans = tuple(low[size] for size in sizes)
    return Stack(n, n_high, plans, calibrate(top) if n_high else None)
