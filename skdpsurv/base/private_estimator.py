"""What every private estimator does around its mechanism, in the order that privacy needs."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

from sklearn import config_context

from skdpsurv.data import PublicInputWarning
from skdpsurv.data.blocks import Blocks
from skdpsurv.data.person import about_people, one_record_each, one_record_each_of
from skdpsurv.data.shape import in_memory, public_shape, target_names
from skdpsurv.data.sources import as_source
from skdpsurv.dp import guarantee as guarantees
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import Check, Parameters, instance, optional, positive, seed
from skdpsurv.dp.containers import unlabelled
from skdpsurv.dp.exact_vectors import require_delta
from skdpsurv.dp.guarantee import PrivacyGuarantee, PrivacyLeakWarning
from skdpsurv.dp.input_errors import suppressed_float_errors
from skdpsurv.dp.ledger import REFUSED, Receipt
from skdpsurv.dp.looking import looking, require_free
from skdpsurv.dp.noise import random_source
from skdpsurv.dp.plan import Plan, checked_plan
from skdpsurv.dp.privacy_cost import rho_for
from skdpsurv.dp.references import phrase
from skdpsurv.mechanisms.vector_noise import NoiseDistribution, SphericalLaplace
from skdpsurv.release.release import Release, Released, parameters_of

__all__ = ["PrivateEstimator"]


#: Parameters that decide whether double precision can work with a plan.
DECIDING = (
    "epsilon", "delta", "alpha", "data_norm", "partition", "max_cumulative_hazard", "pilot_share",
    "recalibration_share", "inference_share", "n_groups", "n_bands",
)  # fmt: skip


class Published(NamedTuple):
    """The released values of a fit by name, with its guarantee, columns of y and receipt."""

    guarantee: PrivacyGuarantee
    values: Mapping[str, Any]
    target: tuple[str, ...]
    receipt: Receipt | None


class Weakness(NamedTuple):
    """The best status that a fit can have, and a warning that says why; "" for none."""

    status: str
    text: str


def _target(X: Any, y: Any) -> Any:
    """Return y, or one without records where a source of records holds it."""
    return X.target if isinstance(X, Blocks) else y


class PrivateEstimator(Released, released=False):
    """Base of the private estimators: the ledger, the release, and the one order of ``fit``.

    A subclass has the parameters ``epsilon``, ``random_state`` and ``accountant``. Its ``fit``
    hands its arguments to :meth:`_fit`, which

    1. checks the parameters (:meth:`_check_parameters`);
    2. looks at the shape of the records, which is public (:meth:`_shape`);
    3. plans from these two alone (:meth:`_plan`); the plan says what will be promised;
    4. asks the ledger whether the budget suffices;
    5. reads the records, refusing what is outside the public domain (:meth:`_read`);
    6. charges the ledger in one atomic step, and runs the plan;
    7. keeps nothing but its release (:meth:`_publish`).

    A refused input costs nothing, unless the ledger charges refusals: then 6. charges before 5.
    reads. Where 2. must look at records (:meth:`_looks`), the ledger is asked before, and may
    charge whatever fails up to 6. Whatever fails after the charge stays charged.
    """

    accountant: PrivacyAccountant | None
    epsilon: float
    random_state: int | None

    def _weaknesses(self, shape: Any) -> list[Weakness]:
        """Return why a fit with a finite epsilon is not proved; shape is None before counting."""
        return [] if self.random_state is None else [Weakness("seeded", phrase("seeded"))]

    def _status(self, shape: Any) -> str:
        """Return the status of a fit whose mechanism is proved."""
        if math.isinf(self.epsilon):
            return "none"
        found = [one.status for one in self._weaknesses(shape)]
        return guarantees.weakest_status(["proved", *found])

    def _input_warnings(self, shape: Any, X: Any, y: Any = None, **options: Any) -> list[str]:
        """Return warnings about public numbers, without looking at a value of a record."""
        return []

    def _fit(self, X: Any, y: Any = None, **options: Any) -> Self:
        """Fit, in the order that privacy needs; ``fit`` of a subclass passes its arguments on."""
        # A copy: other threads may change parameters, and an earlier fit stays whole meanwhile.
        copied = copy.copy(self)
        for name, value in [*vars(copied).items()]:
            if isinstance(value, Parameters):
                setattr(copied, name, copy.copy(value))
        found = copied._fit_in_order(X, y, **options)
        if found is not copied:
            return found
        names = parameters_of(type(self))
        own = {name: value for name, value in vars(self).items() if name in names}
        fitted = {name: value for name, value in vars(copied).items() if name not in names}
        self.__dict__ = {**own, **fitted}
        return self

    def _fit_in_order(self, X: Any, y: Any, person: Any = None, **options: Any) -> Self:
        self._check_parameters()
        charged_first = self.accountant is not None and self.accountant.charge_refusals
        with self._looking() if self._looks(X, y, person, options) else nullcontext():
            prepared = self._prepare(X, y, person, options)
            X, y, options, shape, plan, guarantee, messages = prepared
            if self.accountant is not None:
                self.accountant.check(guarantee)
            if charged_first:
                receipt = self._charge(shape, guarantee, messages)
        # What is refused must not depend on settings of NumPy and scikit-learn.
        with suppressed_float_errors(), config_context(assume_finite=False):
            records = self._read(shape, X, y, **options)
        if not charged_first:
            receipt = self._charge(shape, guarantee, messages)
        # Past the charge nothing may fail by the records.
        with suppressed_float_errors():
            known = plan.run(records, random_source(self.random_state))
            names = target_names(_target(X, y))
            return self._publish(shape, Published(guarantee, known, names, receipt))

    def _prepare(self, X: Any, y: Any, person: Any, options: dict[str, Any]) -> tuple[Any, ...]:
        """Return arguments, shape, plan, guarantee and warnings."""
        X, y, person = map(unlabelled, (X, y, person), ("X", "y", "person"))
        options = {name: unlabelled(values, name) for name, values in options.items()}
        if person is not None or not in_memory(X, y, *options.values()):
            with suppressed_float_errors():
                X, y, options = self._sources(X, y, person=person, **options)
        shape, plan, guarantee = self._planned(X, y, **options)
        if person is not None:
            guarantee = about_people(guarantee)
        if isinstance(X, Blocks):
            self._refuse_unsendable(X, plan)
        messages = list(self._input_warnings(shape, X, _target(X, y), **options))
        if math.isfinite(self.epsilon):
            delta = guarantee.delta or float(getattr(self, "delta", 0.0))
            messages += guarantees.epsilon_warnings(float(self.epsilon))
            messages += guarantees.delta_warnings(delta, guarantee.delta > 0, shape.n_records)
        return X, y, options, shape, plan, guarantee, messages

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

    def _guarantee_of_fit(self, X: Any, y: Any = None, person: Any = None, **options: Any) -> Any:
        """Return the guarantee that ``fit`` with these arguments would charge; nothing is spent.

        Where refusals are charged nobody is counted: each row is taken for a person.
        """
        copied, ledger = copy.copy(self), self.accountant
        copied._check_parameters()
        counted = None if ledger is not None and ledger.charge_refusals else person
        require_free(ledger, copied._looks(X, y, counted, options))
        *_, guarantee, messages = copied._prepare(X, y, counted, options)
        if counted is not person:
            guarantee = about_people(guarantee)
        for message in messages:
            warnings.warn(message, PublicInputWarning, stacklevel=2)
        return guarantee

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
        return source, None, dict.fromkeys(options)

    def _looks(self, X: Any, y: Any, person: Any, options: Mapping[str, Any]) -> bool:
        """Say whether records must be looked at before the plan: persons and blocks are counted."""
        return person is not None or not in_memory(X, y, *options.values())

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

    def _planned(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any, PrivacyGuarantee]:
        """Return the shape of the records, the plan and its guarantee: all of it public."""
        with suppressed_float_errors():
            shape = self._shape(X, y, **options)
            return shape, *self._plan_and_guarantee(shape)

    def _plan_and_guarantee(self, shape: Any) -> tuple[Any, PrivacyGuarantee]:
        if math.isinf(self.epsilon):  # bounds that nobody needs may be infinite
            plan = self._plan(shape)
        else:
            deciding = [name for name in DECIDING if hasattr(self, name)]
            plan = checked_plan(lambda: self._plan(shape), deciding)
        guarantee = plan.guarantee(self._status(shape))
        if guarantee.delta and math.isfinite(guarantee.epsilon):
            require_delta(guarantee.epsilon, guarantee.delta)
        return plan, guarantee

    def _charge(
        self, shape: Any, guarantee: PrivacyGuarantee, messages: Sequence[str]
    ) -> Receipt | None:
        """Charge the ledger, after warnings: of public numbers, of the guarantee."""
        for message in messages:
            warnings.warn(message, PublicInputWarning, stacklevel=6)
        weak = [] if math.isinf(self.epsilon) else self._weaknesses(shape)
        for reason in dict.fromkeys(one.text for one in weak if one.text):
            warnings.warn(reason, PrivacyLeakWarning, stacklevel=6)
        if self.accountant is None:
            return None
        return self.accountant.charge(guarantee, estimator=type(self).__name__)

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
        )
        self._set_release(release)
        if published.receipt is not None:
            self.release_ = replace(release, receipt=published.receipt)
        return self

    #: Words of ``method`` with parameters, and what makes the object that holds these.
    _methods: ClassVar[Mapping[str, Callable[..., Any]]] = {}

    #: Noise of perturbed minimisers.
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
