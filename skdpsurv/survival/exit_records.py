"""How records come into a table of exits: their cause, their time, and their group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpsurv.blocks import Blocks, in_blocks
from skdpsurv.labels import class_indices, label_places, stated_labels
from skdpsurv.privacy import RefusedValueError
from skdpsurv.privacy.silence import attempted
from skdpsurv.shape import Shape
from skdpsurv.target import event_and_time_of, target_reader
from skdpsurv.types import FloatArray, IndexArray

#: More groups than anybody draws.
MOST_GROUPS = 1000
NO_GROUP = "group must be given to fit where groups are stated: the group of each record."


@dataclass(frozen=True)
class GroupedShape(Shape):
    """The shape of records, and the labels of groups; None if there are none."""

    groups: NDArray[Any] | None = None


@dataclass(frozen=True)
class Causes:
    """What ends a follow-up: an event, or one of several.

    Parameters
    ----------
    labels : list or None
        Of several kinds of events; None: there is one.
    censored : label
        What a record holds where no event was seen.
    """

    labels: list[Any] | None = None
    censored: Any = 0

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Causes:
        """Return those of an estimator, or of a release."""
        if "causes" not in parameters:
            return cls()
        labels = stated_labels("causes", parameters["causes"]).tolist()
        return cls(labels, plain(parameters["censored"]))

    @property
    def number(self) -> int:
        """Kinds of events."""
        return 1 if self.labels is None else len(self.labels)

    @property
    def reader(self) -> Any:
        """What reads the cause of each record from a column and its name; None: indicators."""
        if self.labels is None:
            return None
        return partial(_read_causes, [self.censored, *self.labels])

    def place(self, label: Any) -> int:
        """Return the number of one of the events; of None: of the first.

        Raises
        ------
        ValueError
            If it is none of them.
        """
        if label is None:
            return 0
        if self.labels is None or not is_one_of(label, self.labels):
            raise ValueError(f"cause must be one of {self.labels}, got {label!r}.")
        return self.labels.index(label)

    def stated(self) -> dict[str, Any]:
        """Return what a release states of them."""
        return {} if self.labels is None else {"causes": self.labels, "censored": self.censored}


def plain(label: Any) -> Any:
    """Return a label as Python's own number or text."""
    return label.item() if isinstance(label, np.generic) else label


def is_one_of(label: Any, labels: list[Any]) -> bool:
    """Say whether a label is one of some; True is not 1."""
    return any(type(label) is not bool and label == one for one in labels)


def _read_causes(labels: list[Any], values: Any, name: str) -> IndexArray:
    """Return the number of the cause of each record, 0 where it is censored."""
    if values is None:
        if len(labels) == 2:
            return np.empty(0, dtype=np.intp)
        raise ValueError("event_observed must be given, or y must have two fields: which event.")
    stated: NDArray[Any] = np.empty(len(labels), dtype=object)
    stated[:] = labels
    return label_places(values, name, stated, "causes, or censored")


def check_groups(name: str, groups: Any) -> None:
    """Refuse what are no labels of groups.

    Raises
    ------
    ValueError
    """
    if groups is not None and stated_labels(name, groups).size > MOST_GROUPS:
        raise ValueError(f"{name} must be at most {MOST_GROUPS:,}.")


def found_groups(group: Any, n_records: int) -> NDArray[Any]:
    """Return the labels that records have, which is not private.

    Raises
    ------
    ValueError
        If they are no labels, or not one for each record.
    """
    try:
        if attempted(np.ndim, group) != 1:
            raise ValueError
        found, _ = class_indices(group, None, n_records)
        check_groups("groups", found)
        return found
    except (TypeError, ValueError):
        pass
    raise RefusedValueError(
        f"group must hold a label for each record, of at most {MOST_GROUPS:,} different ones."
    )


def read_exits(
    shape: GroupedShape,
    X: Any,
    y: Any,
    durations: Any,
    event_observed: Any,
    group: Any,
    events: Any,
) -> Blocks[tuple[IndexArray, FloatArray, IndexArray]]:
    """Return blocks of causes (0 where censored), times, and places of groups.

    Parameters
    ----------
    shape : GroupedShape
    X, y, durations, event_observed, group
        Arguments of ``fit``, or a source of blocks and nothing.
    events : callable or None
        What reads causes from a column and its name; None: indicators of one event.

    Raises
    ------
    ValueError
        If the records are not what they must be.
    """
    read: Callable[..., Any]
    if isinstance(X, Blocks):
        read = partial(_target_of, events=events)
        blocks = in_blocks(X, y).map(_behind_rows)
    else:
        read, arguments = target_reader(X, y, durations, event_observed, events)
        blocks = in_blocks(*arguments, group)
    return blocks.map(partial(_exits, read, shape.groups)).held()


def _behind_rows(block: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return y, events and group of a block of a source, which may hold y alone."""
    return (*block[1:], None, None)[:3]


def _target_of(y: Any, event_observed: Any, events: Any) -> Any:
    return event_and_time_of(y, event_observed, events)


def _exits(
    read: Any, groups: NDArray[Any] | None, block: tuple[Any, ...]
) -> tuple[IndexArray, FloatArray, IndexArray]:
    *target, group = block
    event, time = read(*target)
    cause = np.asarray(event, dtype=np.intp)
    if groups is None:
        return cause, time, np.zeros(time.size, dtype=np.intp)
    if group is None:
        raise ValueError(NO_GROUP)
    place = label_places(group, "group", groups, "groups")
    if place.size != time.size:
        raise ValueError("group must have one entry for each record.")
    return cause, time, place
