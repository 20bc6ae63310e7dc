"""Base of all private estimators: plan, ledger, records, draws and release, in this order."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from skdpsurv.base.prepared import PreparedFit, target_of
from skdpsurv.data.blocks import Blocks
from skdpsurv.data.histories import ONE_ENTRY, refuse_starts
from skdpsurv.data.person import one_record_each, one_record_each_of
from skdpsurv.data.shape import (
    decided_by_one,
    in_memory,
    length,
    public_shape,
    refuse_no_target,
    require_one_each,
    target_names,
)
from skdpsurv.data.sources import as_source
from skdpsurv.data.target import paired
from skdpsurv.dp import guarantee as guarantees
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import (
    Check,
    Parameters,
    instance,
    optional,
    positive,
    seed,
    unknown_parameter,
)
from skdpsurv.dp.containers import unlabelled
from skdpsurv.dp.exact_vectors import require_delta
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.input_errors import call_or_none, suppressed_float_errors
from skdpsurv.dp.ledger import REFUSED, Receipt
from skdpsurv.dp.looking import looking
from skdpsurv.dp.plan import Plan, all_drawn
from skdpsurv.dp.privacy_cost import rho_for
from skdpsurv.dp.proofs import status_of
from skdpsurv.dp.references import WORDS, phrase
from skdpsurv.dp.stated_noise import noise_of
from skdpsurv.mechanisms.vector_noise import NoiseDistribution, SphericalLaplace
from skdpsurv.release.release import Release
from skdpsurv.release.released import Released, parameters_of

__all__ = ["PrivateEstimator"]


#: Range of ridges and noise scales that double precision can work with.
REPRESENTABLE_RANGE = (1e-12, 1e12)
#: Names of parameters on which it depends whether doubles can represent a plan.
DECIDING = (
    "epsilon", "delta", "alpha", "data_norm", "partition", "max_cumulative_hazard", "pilot_share",
    "recalibration_share", "inference_share", "n_groups", "n_bands",
)  # fmt: skip


class Published(NamedTuple):
    """The released values of a fit by name, with its guarantee, columns of y, receipt and noise."""

    guarantee: PrivacyGuarantee
    values: Mapping[str, Any]
    target: tuple[str, ...]
    receipt: Receipt | None
    #: The draws of the plan, as releases state them.
    plan: Mapping[str, Any] | None = None


class Caveat(NamedTuple):
    """The best status that a fit can have, and a warning that says why; "" for none."""

    status: str
    text: str


class PrivateEstimator(Released, released=False):
    """Base of the private estimators: the ledger, the release, and the one order of ``fit``.

    A subclass has the parameters ``epsilon``, ``random_state`` and ``accountant``. Its ``fit``
    hands its arguments to :meth:`prepare`, which

    1. checks the parameters (:meth:`_check_parameters`);
    2. looks at the shape of the records, which is public (:meth:`_shape`);
    3. plans from these two alone (:meth:`_plan`); the plan says what will be promised;

    and runs the :class:`~skdpsurv.base.prepared.PreparedFit` that it returns, which

    4. asks the ledger whether the budget suffices;
    5. reads the records, refusing what is outside the public domain (:meth:`_read`);
    6. charges the ledger in one atomic step;
    7. runs the plan, and keeps nothing but its release (:meth:`_publish`).

    A refused input costs nothing, unless the ledger charges refusals: then 6. charges before 5.
    reads. Where 2. must look at records (:meth:`_looks`), the ledger is asked before, and may
    charge whatever fails up to 6. Whatever fails after the charge stays charged.
    """

    accountant: PrivacyAccountant | None
    epsilon: float
    random_state: int | None
    #: Whether the file of the records says, by a column of its header, that nobody is in it.
    _made_up: bool = False

    def _caveats(self, shape: Any) -> list[Caveat]:
        """Return why a fit with a finite epsilon is not proved; shape is None before counting."""
        found = [] if self.random_state is None else [Caveat("seeded", phrase("seeded"))]
        return [*found, Caveat(status_of([self._noise_law]), "")]

    def _status(self, shape: Any) -> str:
        """Return the status of a fit whose mechanism is proved."""
        if math.isinf(self.epsilon):
            return "none"
        found = [one.status for one in self._caveats(shape)]
        return guarantees.weakest_status(["proved", *found])

    def _input_warnings(self, shape: Any, X: Any, y: Any = None, **options: Any) -> list[str]:
        """Return warnings about public numbers, without looking at a value of a record."""
        return []

    def prepare(
        self, X: Any = None, y: Any = None, *, person: Any = None, **options: Any
    ) -> PreparedFit:
        """Plan a fit without running it: what it would promise, and cost.

        Parameters
        ----------
        X, y, person, **options
            As for ``fit``, but for options of display. Private. Only their public shape is looked
            at, unless people or out-of-core records must be counted, classes be read from y, or
            steps of a search learn. The ledger is asked before that; one that charges refusals
            charges whatever fails, and is charged for the fit before this returns.

        Returns
        -------
        PreparedFit
            With ``guarantee``, ``plan`` and ``warnings``, all public. Its ``run()`` fits a copy of
            this estimator: ``fit`` is ``prepare(...).run()``. It holds the records until then.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the shape of the records breaks its rule.
        BudgetExceededError
            If the ledger has no room where records must be looked at.
        """
        own = self.as_fitted()
        own._check_parameters()
        own._check_options(options)
        names = target_names(target_of(X, y))
        refuse_starts(names, names)  # a late entry is stated apart from y
        ledger, looks = own.accountant, own._looks(X, y, person, options)
        with own._looking() if looks else nullcontext():
            fit = own._prepared(*own._given(X, y, options), person, options)
            if looks and ledger is not None and ledger.charge_refusals:
                fit.charge()
        return fit

    def _fit(self, X: Any = None, y: Any = None, **options: Any) -> Any:
        """Fit; ``fit`` of a subclass passes its arguments on."""
        found = self.prepare(X, y, **options).run()
        if type(found) is not type(self):
            return found
        names = parameters_of(type(self))
        own = {name: value for name, value in vars(self).items() if name in names}
        fitted = {name: value for name, value in vars(found).items() if name not in names}
        self.__dict__ = {**own, **fitted}
        return self

    def as_fitted(self) -> Self:
        """Return a copy as a fit works on it, whose ``columns`` make the features of its release.

        Threads may change parameters meanwhile, and earlier fits stay whole.

        Returns
        -------
        estimator
        """
        own = copy.copy(self)
        for name, value in [*vars(own).items()]:
            if isinstance(value, Parameters | list | dict | np.ndarray):
                setattr(own, name, copy.copy(value))
        return own

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse arguments that ``fit`` does not have."""
        taken = ", ".join(self._card.histories)
        said = f" Of histories it takes no columns but {taken}." if taken else ""
        for name in set(options) - set(self._one_of_each):
            unknown = unknown_parameter(type(self), "prepare", name, self._one_of_each)
            raise TypeError(unknown + said)

    def _given(self, X: Any, y: Any, options: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return X and y as readers of records take them."""
        return X, paired(y)

    def _prepared(
        self, X: Any, y: Any, person: Any, options: dict[str, Any], *, inner: bool = False
    ) -> PreparedFit:
        """Return a fit of this estimator; one that is ``inner`` has no budget of its own."""
        X, y, person = map(unlabelled, (X, y, person), ("X", "y", "person"))
        options = {name: unlabelled(values, name) for name, values in options.items()}
        if person is not None or not in_memory(X, y, *options.values()):
            with suppressed_float_errors():
                X, y, options = self._sources(X, y, person=person, **options)
        with suppressed_float_errors():
            shape = self._shape(X, y, **options)
            plan, guarantee = self._plan_and_guarantee(shape, people=person is not None)
        if isinstance(X, Blocks):
            self._refuse_unsendable(X, plan)
        messages = list(self._input_warnings(shape, X, target_of(X, y), **options))
        if math.isfinite(self.epsilon) and not inner:
            delta = guarantee.delta or float(getattr(self, "delta", 0.0))
            messages += guarantees.epsilon_warnings(float(self.epsilon))
            messages += guarantees.delta_warnings(delta, guarantee.delta > 0, shape.n_records)
        return PreparedFit(self, (X, y, options), shape, plan, guarantee, messages)

    def _leaks(self, shape: Any) -> list[str]:
        """Return why a fit is not proved, and other reasons for a PrivacyLeakWarning."""
        weak = [] if math.isinf(self.epsilon) else self._caveats(shape)
        return list(dict.fromkeys(one.text for one in weak if one.text))

    def _refuse_unsendable(self, blocks: Blocks[Any], plan: Any) -> None:
        """Refuse a fit that cannot be sent to where its blocks are."""
        reader = self._without_ledger()
        if blocks.can_send((reader, plan)):
            return
        parameters = reader.get_params(deep=False).items()
        names = [name for name, value in parameters if not blocks.can_send(value)]
        raise TypeError(
            f"{' and '.join(names) or type(self).__name__} must be such that it can be sent to "
            "where the records are: it cannot be pickled."
        )

    def _check_target(self, shape: Any, y: Any, entry: Any = None) -> None:
        """Refuse a target that is missing, or of another length, as entries: both are public."""
        takes = self._card.takes
        if takes == ("model",) or ("rows" in takes and len(takes) > 1):
            refuse_no_target(y)
            if (number := call_or_none(length, y)) is not None:
                require_one_each(number, shape.n_records)
        if entry is not None and call_or_none(length, entry) not in (None, shape.n_records):
            raise ValueError(ONE_ENTRY)

    #: Names of further arguments of ``fit`` that have an entry for each record.
    _one_of_each: ClassVar[tuple[str, ...]] = ()

    def _sources(
        self, X: Any, y: Any, *, person: Any = None, **options: Any
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Return the arguments of ``fit`` with one record of each person, as a source if needed."""
        if in_memory(X, y, person, *options.values()):
            if isinstance(X, Blocks):
                raise TypeError("person must be None where X is a source of blocks.")
            return one_record_each(person, X, y, options, self._one_of_each)
        source = as_source(X, y, person=person, **options)
        if person is not None:
            source = one_record_each_of(source)
        # Whether there are entries is public, and needed for the plan; they are in the blocks.
        has_entry = options.get("entry") is not None
        return source, None, dict.fromkeys(options) | ({"entry": True} if has_entry else {})

    def _looks(self, X: Any, y: Any, person: Any, options: Mapping[str, Any]) -> bool:
        """Say whether records must be looked at before the plan.

        Persons and blocks are counted. One record may decide the shape of a list, and whether an
        array is complex.
        """
        given = (X, y, *options.values())
        return person is not None or not in_memory(*given) or any(map(decided_by_one, given))

    def _looking(self) -> AbstractContextManager[None]:
        """Ask the ledger before records are looked at; it may charge what fails.

        The shape decides whether noise is Gaussian and has a delta: two prices are possible.
        """
        status = self._status(None)
        prices = [
            PrivacyGuarantee(float(self.epsilon), mechanism=REFUSED, status=status, **price)
            for price in filter(None, ({"delta": 0.0}, self._gaussian_price()))
        ]
        return looking(self.accountant, prices, type(self).__name__)

    def _gaussian_price(self) -> dict[str, Any]:
        """Return the delta and rho of a fit with Gaussian noise; nothing if it cannot have any."""
        delta = float(getattr(self, "delta", 0.0))
        if not delta or math.isinf(self.epsilon):
            return {}
        return {"delta": delta, "rho": rho_for(float(self.epsilon), delta)}

    def _without_ledger(self) -> Self:
        """Return a copy without a ledger, to read blocks on workers."""
        reader = copy.copy(self)
        reader.accountant = None
        return reader

    def _plan_and_guarantee(
        self, shape: Any, *, people: bool = False
    ) -> tuple[Plan, PrivacyGuarantee]:
        """Return plan and guarantee, which is about people who may have had several records."""
        # Without privacy, bounds that nobody needs may be infinite.
        make = self._plan if math.isinf(self.epsilon) else self._representable_plan
        plan = make(shape)
        if plan.unproved:  # classes of others may hold what no release can state
            all_drawn(plan.tree)
        guarantee = plan.guarantee(self._status(shape), people=people)
        if self._made_up:
            told = WORDS["assumptions"]["made_up"], *guarantee.assumptions
            guarantee = replace(guarantee, assumptions=told)
        if guarantee.delta and math.isfinite(guarantee.epsilon):
            require_delta(guarantee.epsilon, guarantee.delta)
        return plan, guarantee

    def _representable_plan(self, shape: Any) -> Plan:
        """Return the plan, or refuse numbers that double precision cannot work with."""
        low, high = REPRESENTABLE_RANGE
        with suppress(ArithmeticError):
            plan = self._plan(shape)
            if all(low <= scale <= high for scale in plan.scales()):
                return plan
        deciding = [name for name in DECIDING if hasattr(self, name)]
        raise ValueError(
            f"{', '.join(deciding)} must be such that ridge and noise lie between {low:g} and "
            f"{high:g}; they are too extreme for double precision."
        )

    def _publish_values(self, shape: Any, *published: Any) -> Any:
        """Publish guarantee, values, columns of y, receipt and what was drawn."""
        return self._publish(shape, Published(*published))

    def _publish(self, shape: Any, published: Published) -> Any:
        """Keep the release, and set the fitted attributes from it and from nothing else."""
        names, columns = self._described()
        release = Release(
            estimator=type(self).__name__,
            guarantee=published.guarantee,
            parameters=self._release_parameters(shape),
            values=published.values,
            n_features_in=self.n_features_in_,
            feature_names_in=None if names is None else tuple(names),
            columns=columns,
            target_names=published.target,
            plan=published.plan,
            noise=noise_of(published.plan),
            receipt=published.receipt,
        )
        self._set_release(release)
        return self

    #: Distribution of the noise on perturbed minimisers.
    _noise_law: ClassVar[type[NoiseDistribution]] = SphericalLaplace

    _rules: ClassVar[dict[str, Check]] = {
        "epsilon": positive(allow_inf=True),
        "random_state": seed,
        "accountant": optional(instance(PrivacyAccountant)),
    }

    def _shape(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the public shape of the records: their number and that of columns."""
        return public_shape(self, X)

    def _plan(self, shape: Any) -> Plan:
        """Decide from public numbers alone how epsilon is spent."""
        raise NotImplementedError

    def _read(self, shape: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the records, after refusing what is outside the public domain."""
        raise NotImplementedError

    def _release_parameters(self, shape: Any) -> dict[str, Any]:
        """Return the public parameters that a release needs for its predictions."""
        return {}
