r"""People with several records: only the first record of each is used, so persons are private.

The first record of a person in the data depends on that person's records alone. Data sets that
differ in all records of one person, and have as many people, thus become data sets that differ in
one record, up to their order. The distribution of a release does not depend on the order: sums
ignore it, and random splits are uniform. So a guarantee for one replaced record is one for one
replaced person (docs/proofs/person).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpsurv.data.blocks import Blocks, EmptyBlock, FirstRecords, new_records
from skdpsurv.data.shape import has_one_each, length, take, take_parameters
from skdpsurv.dp.containers import sparse_rows
from skdpsurv.dp.input_errors import (
    INTEGERS,
    TEXT,
    InputValueError,
    all_of,
    call_or_none,
    refuse_masked,
)

WRONG = (
    "person must hold whole numbers or text, one entry for each record and none missing: the name "
    "of the person whose record it is."
)


def one_record_each(
    person: Any, X: Any, y: Any, options: dict[str, Any], each: Collection[str] = ()
) -> tuple[Any, Any, dict[str, Any]]:
    """Return the arguments of a fit for the first record of each person."""
    # Estimators refuse sparse matrices themselves, once they can be cut.
    X = sparse_rows(X)
    names = _names(person, (X, y, *map(options.get, each)))
    (first,) = new_records([names])
    return take(X, first), take(y, first), take_parameters(options, first, each)


def one_record_each_of(source: Blocks[Any]) -> Blocks[Any]:
    """Return a source of the first record of each person; the last of its arguments names them."""
    kept: Blocks[Any] = source.map(_kept, source.first_of_each(_names_of_block))
    shape = sum(kept.sizes(_size)), source.shape[1]
    return kept.describe(shape, getattr(source.meta, "columns", None), source.target, source.dtype)


def read_names(person: Any) -> NDArray[Any]:
    """Return names of people as integers of 64 bits, or as text."""
    refuse_masked(person, "person")
    # NumPy would ask the entries of a list what they are, and make text of numbers beside text.
    listed = person if isinstance(person, list | tuple) else None
    if listed is None:
        names = call_or_none(np.asarray, person)
        if names is None or names.ndim != 1:
            raise InputValueError(WRONG)
        if names.dtype.kind in "iu" and np.can_cast(names.dtype, np.int64):
            return names.astype(np.int64)
        listed = names.tolist() if names.dtype.kind in "OUTu" else [None]
    if all_of(TEXT, listed):
        return np.fromiter(map(str, listed), dtype=object, count=len(listed))
    if all_of(INTEGERS, listed):
        listed = [int(name) for name in listed]
        if all(abs(name) < 2**63 for name in listed):
            return np.array(listed, dtype=np.int64)
    raise InputValueError(WRONG)


def _names(person: Any, values: Sequence[Any], error: Any = ValueError) -> NDArray[Any]:
    names = read_names(person)
    if not all(has_one_each(one, names.size) for one in values):
        raise error(
            "person must have one entry for each record: X, y and person must have the same length."
        )
    return names


def _names_of_block(block: tuple[Any, ...]) -> NDArray[Any]:
    *values, person = block
    # How records are cut into blocks may depend on them: so it is refused as records are.
    return _names(person, values, InputValueError)


def _kept(block: tuple[Any, ...], first: FirstRecords) -> Any:
    indices = first.of(_names_of_block(block))
    return tuple(take(v, indices) for v in block[:-1]) if indices.size else EmptyBlock()


def _size(block: tuple[Any, ...]) -> int:
    return next(length(values) for values in block if values is not None)
