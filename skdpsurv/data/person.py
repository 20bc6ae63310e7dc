r"""People with several records: one of each is kept, so that what is private is a person.

Of the records of each person the first is kept, in the order of the records: which one that is
depends on that person's records alone, and not on what any other's hold. Data sets that differ in
all records of one person, with as many people, thus become data sets that differ in one record,
but for the order; and what a fit releases has the same law in every order: its sums do not know
it, and where records are dealt to parts they are dealt at random. So a guarantee for one replaced
record is one for one replaced person (docs/proofs/person).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpsurv.data.blocks import Blocks, EmptyBlock, FirstPlaces, new_places
from skdpsurv.data.shape import has_one_each, length, take, take_parameters
from skdpsurv.dp import PrivacyGuarantee, refuse_masked
from skdpsurv.dp.guarantee import PERSON
from skdpsurv.dp.input_errors import INTEGERS, TEXT, InputValueError, all_of, call_or_none

ASSUMPTION = (
    "person names whose each record is, nobody has two names, and how many people there are is "
    "public; of each, the first record is used"
)
WRONG = (
    "person must hold whole numbers or text, one entry for each record and none missing: the name "
    "of the person whose record it is."
)


def about_people(guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
    """Return a guarantee about records as one about people who have one record each."""
    return replace(guarantee, neighbours=PERSON, assumptions=(*guarantee.assumptions, ASSUMPTION))


def one_record_each(
    person: Any, X: Any, y: Any, options: dict[str, Any], each: Collection[str] = ()
) -> tuple[Any, Any, dict[str, Any]]:
    """Return the arguments of a fit for the first record of each person."""
    # A sparse matrix that cannot be cut is for the estimator to refuse.
    X = X.tocsr() if hasattr(X, "tocsr") else X
    names = _names(person, (X, y, *map(options.get, each)))
    (places,) = new_places([names])
    return take(X, places), take(y, places), take_parameters(options, places, each)


def one_record_each_of(source: Blocks[Any]) -> Blocks[Any]:
    """Return a source of the first record of each person; the last of its arguments says whose."""
    kept: Blocks[Any] = source.map(_kept, source.first_of_each(_names_of_block))
    shape = sum(kept.sizes(_size)), source.shape[1]
    return kept.describe(shape, getattr(source.meta, "columns", None), source.target, source.dtype)


def read_names(person: Any) -> NDArray[Any]:
    """Return names of people as integers of 64 bits, or as text."""
    refuse_masked(person, "person")
    # Of a list NumPy would ask the entries what they are, and make text of numbers beside text.
    listed = person if isinstance(person, list | tuple) else None
    if listed is None:
        names = call_or_none(np.asarray, person)
        if names is None or names.ndim != 1:
            raise InputValueError(WRONG)
        if names.dtype.kind in "iu" and np.can_cast(names.dtype, np.int64):
            return names.astype(np.int64)
        listed = names.tolist() if names.dtype.kind in "OUTu" else [None]
    if all_of(TEXT, listed):
        found = np.empty(len(listed), dtype=object)
        found[:] = [str(name) for name in listed]
        return found
    if all_of(INTEGERS, listed):
        listed = [int(name) for name in listed]
        if all(abs(name) < 2**63 for name in listed):
            return np.array(listed, dtype=np.int64)
    raise InputValueError(WRONG)


def _names(person: Any, values: Sequence[Any]) -> NDArray[Any]:
    names = read_names(person)
    if not all(has_one_each(one, names.size) for one in values):
        raise ValueError(
            "person must have one entry for each record: X, y and person must have the same length."
        )
    return names


def _names_of_block(block: tuple[Any, ...]) -> NDArray[Any]:
    *values, person = block
    return _names(person, values)


def _kept(block: tuple[Any, ...], first: FirstPlaces) -> Any:
    places = first.of(_names_of_block(block))
    if not places.size:
        return EmptyBlock()
    return tuple(take(values, places) for values in block[:-1])


def _size(block: tuple[Any, ...]) -> int:
    return next(length(values) for values in block if values is not None)
