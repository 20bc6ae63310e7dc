"""DPLogisticRegression: private logistic regression."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from skdpsurv.classification import budgets
from skdpsurv.classification.label_inference import LabelMoments
from skdpsurv.classification.logistic_measurements import LogisticMinimisers, Margins
from skdpsurv.classification.private_classifier import LabelledShape, LogisticModel
from skdpsurv.data.labels import stated_classes
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import Check, Parameters, auto_or, choice, number_in, positive, word_or
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.privacy_cost import Price, as_laplace, remaining_budget, split_gaussian
from skdpsurv.inference import DOWNWEIGHTING_BOUND
from skdpsurv.likelihoods.linear import log_odds_slope
from skdpsurv.mechanisms.perturbation import NAMES, candidates, check_delta
from skdpsurv.priors import Evidence, Prior, Terms, is_prior
from skdpsurv.release import Release

#: Least n times epsilon for a table of margins and second moments: below, they are mostly noise.
ENOUGH = 600.0


@dataclass(eq=False, repr=False)
class Perturbation(Parameters):
    """How ``DPLogisticRegression(method=...)`` is perturbed; a word is this with its defaults.

    Parameters
    ----------
    kind : {"auto", "obj_pert", "noisy_gd", "out_pert"}, default="auto"
        Objective perturbation; noisy gradient descent, which needs a delta; output perturbation
        (simpler, and less accurate). "auto" takes that of the first two which needs less noise, by
        public numbers alone.
    max_residual : float in [0.5, 1] or "auto", default="auto"
        Cap on the residual, label less probability, of each record in the fit. 1 is
        logistic regression, 0.5 halves the noise. "auto" is 0.5 unless there is very little
        noise. Probabilities allow for the cap; coefficients are log odds ratios at 1 only.
    intercept_scaling : float, default=0.1
        Size, in units of ``data_norm``, of the public constant column whose coefficient makes the
        intercept. It counts in the norm of a row: a large one costs accuracy, a small one means a
        strong penalty on the intercept. Three times as large where columns are centred by stated
        spreads.
    recalibration_share : float in [0, 1), default=0.1
        Share of epsilon spent, after the coefficients, on a private table of how often they are
        right, which gives ``recalibration_slope_``; 0 leaves it out. Skipped, with nothing spent,
        if n times epsilon is below 600.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression
    >>> from skdpsurv.classification import Perturbation
    >>> model = DPLogisticRegression(classes=[0, 1], method=Perturbation(max_residual=1.0))
    >>> model.set_params(method__recalibration_share=0.0).method
    Perturbation(max_residual=1.0, recalibration_share=0.0)
    """

    kind: str = "auto"
    _: KW_ONLY
    max_residual: float | str = "auto"
    intercept_scaling: float = 0.1
    recalibration_share: float = 0.1

    _rules: ClassVar[dict[str, Check]] = {
        "kind": choice("auto", *NAMES),
        "max_residual": auto_or(number_in(0.5, 1.0)),
        "intercept_scaling": positive(),
        "recalibration_share": number_in(0.0, 1.0, closed="left"),
    }


class DPLogisticRegression(
    LogisticModel,
    word="logistic",
    analysis="classifier",
    methods={word: partial(Perturbation, word) for word in ("auto", *NAMES)},
    # Released intercepts are multiples of the constant column.
    beyond_constructor=("intercept_scaling",),
    adds_up={
        "same": ("classes", "fit_intercept"),
        "common": ("the intercept", "intercept"),
        "n_common": lambda release: int(bool(release.parameters["fit_intercept"])),
        "rows": (1,),
        "unshrunk": {"max_residual": 1.0, "recalibration_slope": 1.0},
        "hint": f", and n_records times epsilon of {ENOUGH:g} or more",
    },
):
    r"""Logistic regression that protects every record of the training data.

    The release (coefficients, intercept, slope of log odds) is epsilon-differentially private under
    replacement of one record: whatever one person's row and label are, the probability of any
    release changes by a factor of at most :math:`e^\epsilon`.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole; with more than two classes, in equal parts on one
        model for each class against the rest. ``numpy.inf`` gives the penalised fit without any
        privacy, for reference: bound and cap are then ignored, and ``alpha="auto"`` is so small
        that the fit is about as good as one whose penalty was chosen by cross-validation.
    delta : float in [0, 1), default=0.0
        Probability with which the bound by epsilon may fail. 0 is pure differential privacy. A
        small one, at most :math:`1/n^2`, allows Gaussian noise, of which many columns need less: it
        is used where it is less, and else ``guarantee_`` has ``delta=0``.
    method : {"auto", "obj_pert", "noisy_gd", "out_pert"} or Perturbation, default="auto"
        Objective perturbation; noisy gradient descent, which needs a delta; output perturbation
        (simpler, and less accurate). "auto" takes that of the first two which needs less noise, by
        public numbers alone. A :class:`~skdpsurv.classification.Perturbation` holds a word and
        parameters: the cap on residuals, the size of the constant column, and the share of epsilon
        for recalibration, which 0 switches off.
    columns : transformer or None, default=None
        Public transformer of raw rows, such as :class:`~skdpsurv.data.PublicColumns`, which states
        public bounds and categories of the columns of X. It is cloned, learns nothing, and
        ``release_`` then stands alone. None: X holds numbers, taken as they are.
    alpha : float or "auto", default="auto"
        Strength of the penalty :math:`\frac\alpha2\|w\|^2` beside the mean loss. "auto" is chosen
        from n, the number of columns and epsilon, and is larger for output perturbation with
        standard errors. Objective perturbation may need more than you ask for.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X. Longer rows are scaled down to it, or
        count less if there are standard errors. None: where ``columns`` states a spread, each
        column is centred and divided by it, and rows are bounded by the root of the number of
        columns in these units, in which ``alpha`` is meant; otherwise 1, with a PublicInputWarning
        if ``columns`` is None, too.
    fit_intercept : bool, default=True
        Fit an intercept, which is penalised and protected like the coefficients.
    classes : array-like of labels or None, default=None
        The classes, known without looking at the records. None reads them from y: the fit then
        has no guarantee (status "none"), with a PrivacyLeakWarning.
    inference_share : float in [0, 1), default=0.0
        Share of epsilon spent on second moments of the rows, which ``summary`` needs for standard
        errors: 0.2 is a good choice. 0 leaves them out. Skipped, with nothing spent, if n times
        epsilon is below 600. For two classes.
    prior : Release or None, default=None
        Release of another fit, or of a paper (:meth:`Release.from_coefficients`): log odds ratios
        to start from, mapped between columns and bounds. They are used if the released
        estimate agrees with their direction, weighted by both errors; that costs nothing. With one
        that describes its columns, ``columns`` must be given. Its own guarantee covers its people.
        Not used with an infinite epsilon.
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the fit reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted. Public.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, on the scale of X. Private release.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private release; 0 without an intercept.
    max_residual_ : float
        The cap that was used. Public.
    recalibration_slope_ : float
        Factor of log odds in :meth:`predict_proba`, to undo the penalty. Private release; without a
        table it follows from public numbers. 1 with ``epsilon=numpy.inf``.
    inference_ : Inference or None
        Unshrunk estimates, the intercept's first, and their covariance, which ``summary`` shows;
        None without ``inference_share``. Private release.
    guarantee_ : PrivacyGuarantee
        Privacy guarantee of the fit, with its assumptions.
    release_ : Release
        The release to publish; ``DPLogisticRegression.from_release`` rebuilds the model.
    columns_ : transformer or None
        Fitted copy of ``columns``, applied to rows passed to ``predict``. Public.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had text column names.

    Raises
    ------
    ValueError, TypeError
        If a parameter breaks its rule, the data are not finite or not of the right shape, or y
        holds a label that is not among ``classes``. No budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded; no record has been read then.

    See Also
    --------
    PrivateStackingClassifier : Groups of columns that get unequal shares of the noise.
    skdpsurv.published.PublishedLogisticRegression : The algorithm of the papers [1]_, [2]_.
    skdpsurv.data.PublicBoundsScaler : Columns to [-1, 1] by public bounds.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem and constants:
    docs/proofs/logistic and docs/proofs/objective_perturbation. The guarantee covers one fit;
    choosing among fits by their scores on private records is not covered.

    The score of a record is its residual, at most 1, times its row, and the noise must hide it.
    Residuals capped at 0.5, as in Huber's loss, need half the noise, and the sign of the predictor
    still is the more likely class. :meth:`predict_proba` inverts the effect of the cap.

    The penalty that balances the noise leaves probabilities near one half. :meth:`predict_proba`
    multiplies log odds with ``recalibration_slope_``, found by a noisy table of margins of L1
    sensitivity 2 (2C for C classes, more than two), whose epsilon adds to that of the coefficients;
    ``coef_``, :meth:`decision_function` and :meth:`predict` are without it.

    With ``inference_share``, :attr:`summary` undoes penalty and cap: its coefficients are log odds
    ratios at any ``max_residual``. Rows longer than ``data_norm``, up to four times, are not scaled
    down then, which would bias coefficients: the loss of such a record is multiplied by the
    square of :math:`R / \|x\|`, R the bound and x the row, constant column included.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk
       minimization", JMLR 12, 2011.
    .. [2] X. Guo, Q. Yao, J. T. Kwok, W.-W. Tu, Y. Chen, W. Dai and Q. Yang, "Privacy-preserving
       stacking with application to cross-organizational diabetes prediction", arXiv 1811.09491.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from skdpsurv import DPLogisticRegression
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> X = normalize(X)  # each row by itself: nothing is learned from the others
    >>> model = DPLogisticRegression(epsilon=2.0, classes=[0, 1]).fit(X, y)
    >>> model.guarantee_.status
    'proved'
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _rules: ClassVar[dict[str, Check]] = {
        "delta": number_in(0.0, 1.0, closed="left"),
        "method": word_or(Perturbation, "auto", *NAMES),
        "inference_share": number_in(0.0, 1.0, closed="left"),
        "prior": is_prior,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        columns: Any = None,
        method: str | Perturbation = "auto",
        alpha: float | str = "auto",
        data_norm: float | None = None,
        fit_intercept: bool = True,
        classes: ArrayLike | None = None,
        inference_share: float = 0.0,
        prior: Release | None = None,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.method = method
        self.alpha = alpha
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.inference_share = inference_share
        self.prior = prior
        self.random_state = random_state
        self.accountant = accountant

    @property
    def _perturbation(self) -> Perturbation:
        """The parameter ``method``, as an object if it is a word."""
        return Perturbation(self.method) if isinstance(self.method, str) else self.method

    def _release_parameters(self, shape: LabelledShape) -> dict[str, Any]:
        kind = self._perturbation.kind
        method = kind if self.delta else candidates(kind, 0.0)[0][0]
        return {"method": method, **super()._release_parameters(shape)}

    def _check_together(self) -> None:
        super()._check_together()
        perturbation = self._perturbation
        if perturbation.kind == "out_pert" and self.alpha == 0:
            raise ValueError("alpha must be positive, or 'auto', with method='out_pert'.")
        check_delta(perturbation.kind, self.delta)
        shares = perturbation.recalibration_share, self.inference_share
        if self.epsilon < math.inf and not sum(shares) < 1.0:
            raise ValueError("recalibration_share and inference_share must add up to less than 1.")
        if self.classes is not None:
            self._check_two(stated_classes(self.classes))

    def _check_two(self, classes: Any) -> None:
        """Refuse standard errors for other than two classes."""
        if self.inference_share and classes.size != 2:
            raise ValueError("inference_share must be 0 for other than two classes.")

    def _input_warnings(self, shape: Any, X: Any, y: Any = None, **options: Any) -> list[str]:
        found = super()._input_warnings(shape, X, y, **options)
        return found + (self._few_intervals(shape, ENOUGH) if self.inference_share else [])

    def _plan(self, shape: LabelledShape) -> Plan:
        self._check_two(shape.classes)
        if math.isinf(self.epsilon):
            return self._without_privacy(shape)
        prior = self._read_prior("odds", shape.n_features, shape.classes.tolist())
        fits = [
            self._measurements(shape, prior, method, delta)
            for method, delta in candidates(self._perturbation.kind, float(self.delta))
        ]
        measurements, delta = min(fits, key=lambda fit: fit[0][0].noise)
        return self._as_plan(shape, measurements, delta)

    def _measurements(
        self, shape: LabelledShape, prior: Prior | None, method: str, delta: float
    ) -> tuple[list[Any], float]:
        """Return the measurements of one method, by Gaussian noise if there is a delta."""
        epsilon, n_classes = float(self.epsilon), shape.classes.size
        shares = [float(self._perturbation.recalibration_share), float(self.inference_share)]
        if shape.n_records * epsilon < ENOUGH or n_classes < 2:
            shares = [0.0, 0.0]
        whole: Price
        table: Price
        moments: Price
        if delta:
            # Squares of mus add up, so that small parts cost little: they get twice their share.
            doubled = [2 * share for share in shares]
            whole, table, moments = split_gaussian(epsilon, delta, [1.0 - sum(shares), *doubled])
        else:
            table, moments = (share * epsilon for share in shares)
            whole = remaining_budget(epsilon, table, moments)
        price = budgets.of_each(whole, shape.n_outputs)
        setting = replace(self._one_group(shape), price=price)
        corrected = {"shrinkage_corrected": True} if method == "out_pert" and shares[1] else {}
        fit = budgets.PLANS[method](setting, **corrected)
        slope = budgets.public_slope(fit, as_laplace(price, shape.n_features), n_classes)
        if shares[1]:
            fit = replace(fit, downweighting_bound=DOWNWEIGHTING_BOUND)
        name = f"{NAMES[method]} of a logistic likelihood"
        name += ", together with a prior" if prior is not None else ""
        measurements: list[Any] = [LogisticMinimisers(fit, name, slope, prior)]
        if shares[0]:
            measurements.append(Margins(price=table, fit=fit))
        if shares[1]:
            measurements.append(LabelMoments.planned(fit, moments))
        return measurements, delta

    _is_evidence_of = ("odds",)

    @classmethod
    def _evidence(cls, release: Release, model: str, outputs: Any) -> tuple[Evidence | None, Terms]:
        """Return the log odds ratios of a release with their errors, and its features."""
        built = cls.from_release(release)
        if built.classes_.tolist() != outputs:
            raise ValueError("prior must have the same classes.")
        own = Evidence.of(release, built.coef_.shape)
        terms = Terms.of(release.features, release.transformer())
        return None if own is None else own.scaled(log_odds_slope(built.max_residual_)), terms
