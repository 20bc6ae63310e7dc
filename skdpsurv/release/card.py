"""A card: what an estimator is called, takes of records, and how others use its releases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from skdpsurv.data.feature import Feature
from skdpsurv.data.known_columns import Moments
from skdpsurv.dp.guarantee import FrozenMapping


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is to be known of a class of estimators elsewhere: names, data, measures, pooling.

    Each field is a keyword of the ``class`` statement. A subclass inherits all but the first three.

    Parameters
    ----------
    word : str
        Its name in commands and forecasts.
    analysis : str
        Its name among the analyses of a study; ``word`` by default.
    adds_up : str, mapping or None
        How releases of several sites are pooled: "tables" or "columns" of counts, "distributions",
        or the fields of :class:`skdpsurv.pooling.poolable.Regression`. None: they are not.
    takes : tuple of str
        Kinds of data that ``fit`` takes: "rows", and "times", "causes", "group", "classes" or
        "outcomes" of records; "cells" of a grid; or the data of a "model" to evaluate.
    late_entry : bool
        Whether ``fit`` takes the time from which each record was seen, as ``entry``.
    such_as : mapping
        Parameters that it needs to be tried on simulated records.
    moments : callable or None
        What yields features and their :data:`~skdpsurv.data.known_columns.Moments`, of a fitted
        estimator, for ``scales`` of a regression. None: it knows of none.
    measure : str
        Measure of a forecast that advice is about.
    ratio : str
        Key of the words about exp(coefficient). A parameter of the release may stand in braces.
    methods : mapping of str to callable
        Words of ``method`` with parameters, and what makes the object that holds these.
    beyond_constructor : tuple of str
        Parameters of releases that the constructor does not take.
    beyond_release : str
        In words: the input of predictions beside a release.
    """

    word: str = ""
    analysis: str = ""
    adds_up: Any = None
    takes: tuple[str, ...] = ()
    late_entry: bool = False
    such_as: Mapping[str, Any] = FrozenMapping({})
    moments: Callable[[Any], Iterable[tuple[Feature, Moments]]] | None = None
    measure: str = ""
    ratio: str = "other"
    methods: Mapping[str, Any] = FrozenMapping({})
    beyond_constructor: tuple[str, ...] = ()
    beyond_release: str = ""

    @property
    def histories(self) -> tuple[str, ...]:
        """Columns of :class:`skdpsurv.data.histories.Histories` that ``fit`` takes, if any."""
        of_times = ("exit", "cause") if {"times", "causes", "model"} & {*self.takes} else ()
        return of_times + ("entry",) * self.late_entry + ("stratum",) * ("group" in self.takes)

    def of_subclass(self, options: dict[str, Any]) -> Self:
        """Return the card of a subclass, and remove its fields from options of the class."""
        stated = {one.name: options.pop(one.name) for one in fields(self) if one.name in options}
        return replace(
            self, **{"word": "", "analysis": stated.get("word", ""), "adds_up": None, **stated}
        )
