"""PrivateSearchCV: choose hyper-parameters at a privacy cost stated in advance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable

from skdpsurv.base.pipelines import (
    one_of_each,
    prepare_in,
    private_step,
    read_in,
    unprotected_steps,
)
from skdpsurv.base.prepared import PreparedFit
from skdpsurv.base.private_estimator import Caveat, Published
from skdpsurv.data.shape import decided_by_one, in_memory, unstated_norm
from skdpsurv.dp import checks
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.input_errors import call_without_data
from skdpsurv.dp.noise import random_source, uniform_below
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.dp.references import phrase
from skdpsurv.dp.types import IndexArray
from skdpsurv.hybrid import HybridMEstimator
from skdpsurv.model_selection import search_plan, strategies
from skdpsurv.model_selection.best_model import BestModel
from skdpsurv.model_selection.candidates import Candidate, list_candidates
from skdpsurv.model_selection.losses import Loss, chosen_loss
from skdpsurv.model_selection.search_plan import SearchRecords, SearchShape
from skdpsurv.model_selection.strategies import DisjointParts, Repeat, RepeatedRuns, Split


def _check_estimator(estimator: Any) -> None:
    if isinstance(private_step(estimator)[1], BestModel):
        raise TypeError("estimator must not be a search itself: one search takes any grid.")


class PrivateSearchCV(BestModel, released=False):
    r"""Search over hyper-parameters that protects every record, its choice included.

    The chosen parameters and the fitted model are epsilon-differentially private under replacement
    of one record. ``epsilon`` is the cost of the whole search: it is stated, and charged once,
    before any record is used. A grid search over private fits pays for every fit.

    Parameters
    ----------
    estimator : estimator
        A private estimator of this package, or a Pipeline that ends in one. Its own ``epsilon`` is
        replaced, and its ``accountant`` must be None. Steps before it must learn nothing from
        records: :class:`~skdpsurv.data.PublicBoundsScaler`, ``Normalizer``, ``Binarizer``,
        ``PolynomialFeatures``. With any other step the search has no guarantee (status "none"),
        with a PrivacyLeakWarning.
    param_grid : dict or list of dict
        As for :class:`sklearn.model_selection.GridSearchCV` or, with ``n_candidates``, as
        ``param_distributions`` of :class:`sklearn.model_selection.RandomizedSearchCV`. Public:
        chosen without looking at the records. May not hold epsilon, random_state or accountant.
    n_candidates : int or None, default=None
        Number of candidates drawn at random from ``param_grid``; None: all of it.
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` searches without privacy.
    delta : float, default=0.0
        With a delta, the noise of all candidates and of their scores is Gaussian, provided that
        each candidate would choose that for its share of the budget. Otherwise the search is pure.
        Above ``1 / n**2`` there is a PublicInputWarning. With ``RepeatedRuns(eta=0,
        expected_runs=10)`` a search at delta 1e-6 costs 1.7 times the epsilon of one run. Without a
        delta it costs 2 + eta times, whatever the number of runs.
    strategy : {"repeat", "split"}, RepeatedRuns or DisjointParts, default="repeat"
        "repeat" is :class:`~skdpsurv.model_selection.RepeatedRuns` with its defaults: random
        candidates, a random number of times, each trained on one part of the records with
        ``epsilon / (2 + eta)`` and scored on the other. "split" is
        :class:`~skdpsurv.model_selection.DisjointParts`: each candidate once, on its own part,
        with all of epsilon; for many records and few candidates.
    refit : float in (0, 1) or None, default=None
        None releases the chosen model. A number is the share of epsilon for a new fit to all
        records with the chosen parameters; the choice has the rest.
    scoring : str, callable or None, default=None
        Loss of one record, in [0, 1]. Classifiers: "error" (the default) or "brier". Survival:
        "likelihood" (the default) or "brier", on a public grid up to ``max_time``. Or a callable
        ``loss(estimator, X, y)`` that returns an array with the loss of each record, computed
        from that record and the model alone. Losses are clipped to [0, 1]; NaN and failures count
        1. A callable sees one record at a time, with a copy of the model: about a millisecond for
        each record of each run.
    n_jobs : int or None, default=None
        Parallel runs, as for joblib. Under its Dask backend those of "split" are tasks of Dask;
        those of "repeat" stay on this machine, as a scheduler would show their number.
    verbose : int, default=0
        Above 0, a progress bar, with ``strategy="split"`` only: the number of runs of "repeat" is
        private.
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the search reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every search is charged to, once.

    Attributes
    ----------
    best_estimator_ : estimator
        Chosen and fitted. Its ``guarantee_``, ``release_`` and ``accountant`` are those of the
        search. Its ``epsilon`` is that of its own fit, as in ``release_.fit_guarantee``.
    best_params_ : dict
        Chosen parameters. Private release.
    best_index_ : int
        Their index in ``candidates_``. Private release.
    candidates_ : list of dict
        All candidates. Public. Their scores and the number of runs are not kept.
    guarantee_ : PrivacyGuarantee
        Epsilon, delta, neighbours and assumptions.
    release_ : Release
        That of the chosen estimator: ``from_release`` of its class rebuilds the model.
    classes_ : ndarray
        Only for a classifier.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had text column names.

    Raises
    ------
    ValueError, TypeError
        If a parameter of the search or of any candidate breaks its rule, a candidate refuses its
        part of the records, or there are too few records. No budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded. No record is read then.
    RuntimeError
        If the chosen candidate could not be fitted, for private reasons. The budget is spent.

    See Also
    --------
    sklearn.model_selection.GridSearchCV : Pays for (or leaks) each of its fits.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. The order that makes the parts
    depends on their number alone: they are never stratified.

    **Split** [1]_. m candidates, m + 1 disjoint parts. *If the training of each candidate is
    epsilon-DP, so is the search.* Proof: the record that differs is in one part. In part j, the
    distribution of model j changes by a factor of at most :math:`e^\epsilon`, the others not at
    all, and the choice is a function of the models, other records and fresh noise. In the scored
    part the models have the same distribution. Given these, each sum of losses moves by at most 1,
    and permute-and-flip with sensitivity 1 is epsilon-DP. Average over the order.

    **Repeat** [2]_, [3]_. K has the truncated negative binomial distribution with parameters
    :math:`\eta \in (-1, 1]` and :math:`\gamma`. Each of the K runs draws a candidate, trains it on
    one part, and adds Laplace noise of scale :math:`1/\epsilon_1` to the sum of its losses on
    the other; the run with the smallest noisy sum is released. *If training is* :math:`\epsilon_1`
    *-DP, the search is* :math:`(2 + \eta)\epsilon_1` *-DP.* Proof: one run is
    :math:`\epsilon_1`-DP, since training and scoring use different records. Let Q be the
    distribution of its outcome, (score, number, model), with a uniform number in [0, 1] that
    decides between equal scores: outcomes are totally ordered. The best is y with probability

    .. math:: E[Q(\le y)^K - Q(<y)^K] = Q(y) \int_0^1 f'(Q(<y) + u Q(y))\,du ,

    where :math:`f(q) = E[q^K]`, so that :math:`f'(q) \propto (1 - (1 - \gamma) q)^{-1 - \eta}`. At
    :math:`q = Q(<y) + u Q(y)` the base of this power is :math:`\gamma q + (1 - q)`, a sum of
    Q(<y), Q(y) and Q(>y) with nonnegative weights. For a neighbour each of these, and so
    the base, changes by a factor of at most :math:`e^{\epsilon_1}`, hence the integrand by
    :math:`e^{(1 + \eta)\epsilon_1}`, and the Q(y) before it by :math:`e^{\epsilon_1}`. The code
    keeps the first among equals: as the runs are exchangeable, that has the distribution of the
    number's choice. K, drawn exactly, is unbounded; it and losing runs stay hidden, but for the
    run time.

    **With a delta** one run is :math:`\rho`-zCDP, and the best of K has Renyi divergences
    that [3]_, theorem 2, bounds; ``guarantee_.renyi`` states them
    (docs/proofs/private_search).

    **Refit.** The model of the search is dropped, its parameters are kept; basic composition.

    Records that need no protection (``public`` of HybridMEstimator) are in every training part.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk
       minimization", JMLR 12, 2011. Section 6.
    .. [2] J. Liu and K. Talwar, "Private selection from private candidates", STOC 2019.
    .. [3] N. Papernot and T. Steinke, "Hyperparameter tuning with Renyi differential privacy",
       ICLR 2022, arXiv 2110.03620.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from skdpsurv import DPLogisticRegression, PrivacyAccountant
    >>> from skdpsurv.model_selection import PrivateSearchCV
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> X = normalize(X)  # each row by itself: nothing is learned from the others
    >>> accountant = PrivacyAccountant(epsilon=5.0)
    >>> search = PrivateSearchCV(
    ...     DPLogisticRegression(classes=[0, 1]),
    ...     {"alpha": [1e-3, 1e-1, 1e4]},
    ...     epsilon=4.0,
    ...     accountant=accountant,
    ... ).fit(X, y)
    >>> accountant.spent(), search.guarantee_.epsilon, search.best_estimator_.guarantee_.epsilon
    (4.0, 4.0, 4.0)
    >>> search.predict(X[:2]).shape
    (2,)
    """

    _rules: ClassVar[dict[str, checks.Check]] = {
        "estimator": checks.custom(_check_estimator),
        "param_grid": checks.unchecked,
        "n_candidates": checks.optional(checks.integer()),
        "delta": checks.number_in(0.0, 1.0, closed="left"),
        "strategy": checks.word_or((RepeatedRuns, DisjointParts), *strategies.STRATEGIES),
        "refit": checks.optional(checks.number_in(0.0, 1.0, closed="neither")),
        "scoring": checks.unchecked,
        "n_jobs": checks.workers,
        "verbose": checks.verbosity,
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        n_candidates: int | None = None,
        epsilon: float = 1.0,
        delta: float = 0.0,
        strategy: str | RepeatedRuns | DisjointParts = "repeat",
        refit: float | None = None,
        scoring: str | Loss | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.n_candidates = n_candidates
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.refit = refit
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.accountant = accountant

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Search, spending ``epsilon``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As the estimator takes it. Private.
        y : array-like of shape (n_samples,)
            As the estimator takes it. Private.
        **fit_params : array-like or object
            Passed to ``fit`` of the estimator. Those with an entry for each record are split like
            the records. With ``entry``, the losses of survival count from late entries, too, and
            ``scoring`` must be None or a name. ``public``, for a
            :class:`~skdpsurv.hybrid.HybridMEstimator`, marks the records that need no protection:
            all candidates are trained on them, and none is scored on them. ``person`` holds a
            person identifier for each record: the first record of each person is used, and the
            guarantee protects people.

        Returns
        -------
        self
        """
        return self._fit(X, y, **fit_params)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        if any(name.endswith("__person") for name in options):
            raise ValueError("person must be given to the search itself, by this name.")
        entries = [values for name, values in options.items() if name.split("__")[-1] == "entry"]
        if callable(self.scoring) and any(values is not None for values in entries):
            raise ValueError(
                "entry must be None with a scoring of your own, which takes none: name a loss."
            )

    @property
    def _one_of_each(self) -> tuple[str, ...]:  # type: ignore[override]
        return one_of_each(self.estimator)

    def _looks(self, X: Any, y: Any, person: Any, options: Mapping[str, Any]) -> bool:
        """Say whether persons are counted, classes read from y, or steps learn from X."""
        # With public records, ``person`` would show whose come first.
        if person is not None and isinstance(private_step(self.estimator)[1], HybridMEstimator):
            raise ValueError("person must be None with a HybridMEstimator.")
        if not in_memory(X, y, person, *options.values()):
            raise TypeError(
                "X and y must be in memory: PrivateSearchCV takes no Dask collections or chunks."
            )
        self._settled = self._setting()
        one = person is not None or any(map(decided_by_one, (X, y, *options.values())))
        return one or any(candidate.void for candidate in self._settled[0])

    def _shape(self, X: Any, y: Any, **fit_params: Any) -> SearchShape:
        """Return candidates, parts, and planned fits, which are public."""
        candidates, loss, strategy = self._setting()
        self.__dict__.pop("_settled", None)
        gaussian = self._budget.gaussian(strategy)
        if gaussian.rho:
            shape = self._shaped(candidates, loss, gaussian, X, y, **fit_params)
            if all(fit.guarantee.rho is not None for fit in shape.all_fits):
                return shape
        # A candidate with other noise would have hardly anything to spend.
        return self._shaped(candidates, loss, strategy, X, y, **fit_params)

    def _shaped(
        self,
        candidates: list[Candidate],
        loss: Loss,
        strategy: Split | Repeat,
        X: Any,
        y: Any,
        **fit_params: Any,
    ) -> SearchShape:
        X, y = call_without_data(indexable, X, y)
        records = SearchRecords.split(X, y, fit_params, self.estimator)
        n, mask, last = records.private.size, records.mask, self._budget.last_fit(strategy)

        def planned(
            candidate: Candidate, spend: Spend, part: IndexArray | None = None
        ) -> PreparedFit:
            ready = candidate.ready(spend)
            if part is None:
                return prepare_in(ready, X, y, fit_params, mask)._of_others(None)
            own = records.training(part)
            return prepare_in(ready, *own, mask[records.rows(part)])._of_others(None)

        first = planned(candidates[0], strategy.run_spend)
        candidates = [candidate.knowing_classes(y) for candidate in candidates]
        parts = strategy.parts(n, random_source(self.random_state, purpose="split"))
        pairs = zip(candidates, strategy.training(parts), strict=True)
        fits = [planned(candidate, strategy.run_spend, part) for candidate, part in pairs]
        refits = [] if last is None else [planned(each, last.spend) for each in candidates]
        public = records.training(np.arange(0))[:2]
        return SearchShape(n, candidates, loss, strategy, parts, first, fits, refits, public, last)

    def _plan(self, shape: SearchShape) -> Plan:
        counted = isinstance(shape.strategy, Split)
        workers = search_plan.Workers(self.n_jobs, self.verbose, counted)
        return search_plan.search_plan(shape, float(self.epsilon), workers)

    def _read(self, shape: SearchShape, X: Any, y: Any, **fit_params: Any) -> SearchRecords:
        """Return the records, after each planned fit has checked its part of them."""
        X, y = indexable(X, y)
        models = [candidate.ready(shape.strategy.run_spend) for candidate in shape.candidates]
        # A warning about the shape of y is given once.
        read_in(shape.first, models[0], X, y, fit_params, DataConversionWarning)
        records = SearchRecords.split(X, y, fit_params, self.estimator)
        parts = shape.strategy.training(shape.parts)
        for fit, model, part in zip(shape.fits, models, parts, strict=True):
            read_in(fit, model, *records.training(part))
        for fit, model in zip(shape.refits, models, strict=False):  # without a last fit, none
            read_in(fit, model, X, y, fit_params)
        return records

    def _publish(self, shape: SearchShape, published: Published) -> Self:
        """Set the fitted attributes from the released values alone."""
        guarantee, values = published.guarantee, published.values
        best, model = values["best"], values["model"]
        if self.refit is None:
            model = search_plan.unused_copy(model, shape.public)
        if model is None:
            raise RuntimeError(
                "the chosen candidate could not be fitted. The budget is spent, and the reason is "
                "private: fit the candidates to simulated records to find it."
            )
        _, step = private_step(model)
        # The model states the cost of its choice, too.
        step.guarantee_ = guarantee
        own: dict[str, Any] = {"guarantee": guarantee, "fit_guarantee": step.release_.guarantee}
        own |= {"plan": published.plan, "fit_plan": step.release_.plan}
        step.release_ = replace(step.release_, **own, receipt=published.receipt)
        step.accountant = self.accountant
        if shape.candidates[best].reads_classes:
            step.classes = None
        self.best_estimator_, self.best_index_ = model, best
        self.candidates_ = [dict(candidate.params) for candidate in shape.candidates]
        self.best_params_ = dict(self.candidates_[best])
        self.guarantee_, self.release_ = guarantee, step.release_
        return self

    @property
    def _budget(self) -> strategies.SearchBudget:
        refit = None if self.refit is None else float(self.refit)
        return strategies.SearchBudget(float(self.epsilon), float(self.delta), refit)

    def _gaussian_price(self) -> dict[str, Any]:
        """Return delta, and Renyi divergences or rho of the search, if its noise is Gaussian."""
        budget = self._budget
        strategy = budget.gaussian(self._setting()[2])
        if not strategy.rho:
            return {}
        return {"delta": strategy.delta, **strategy.total(budget.refit_rho)}

    def _setting(self) -> tuple[list[Candidate], Loss, Split | Repeat]:
        """Return checked candidates, loss and strategy; those that were drawn for this fit."""
        if "_settled" in vars(self):
            return self._settled
        draws = random_source(self.random_state, purpose="candidates")
        candidates = list_candidates(
            self.estimator,
            self.param_grid,
            None if self.n_candidates is None else int(self.n_candidates),
            uniform_below(2**32, draws),
            float(self.delta),
        )
        horizons = {getattr(candidate.private, "max_time", None) for candidate in candidates}
        if len(horizons) > 1 and not callable(self.scoring):
            raise ValueError("max_time must be the same for all candidates, or scoring a callable.")
        loss = chosen_loss(self.scoring, self.estimator, horizons.pop())
        return candidates, loss, self._budget.strategy(self.strategy, len(candidates))

    def _input_warnings(self, shape: SearchShape, X: Any, y: Any = None, **given: Any) -> list[str]:
        has_bounds = isinstance(self.estimator, Pipeline) and not unprotected_steps(self.estimator)
        known = unstated_norm() if has_bounds else []  # public steps state them
        return [text for text in shape.first.warnings if text not in known]

    def _caveats(self, shape: SearchShape | None) -> list[Caveat]:
        """Return the caveats of the search; the plan knows the status of each fit."""
        found = super()._caveats(shape)
        candidates = self._setting()[0] if shape is None else shape.candidates
        steps = {name for c in candidates for name in unprotected_steps(c.estimator)}
        if steps:
            learns = phrase("learned_steps", steps=", ".join(sorted(steps)))
            found.append(Caveat("none", learns))
        if any(candidate.reads_classes for candidate in candidates):
            found.append(Caveat("none", phrase("classes_from_y")))
        for candidate in candidates:
            step = private_step(candidate.ready(Spend(self.epsilon, float(self.delta))))[1]
            step.accountant = self.accountant  # a prior may have been charged to it
            found += [Caveat("proved", weak.text) for weak in step._caveats(None)]
        return found
