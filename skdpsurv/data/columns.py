"""Tables of raw columns, encoded by a public description."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from skdpsurv.data.cells import raw_columns
from skdpsurv.data.column_formula import columns_of_formula
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.column_specifications import column_terms, parameters_in_toml
from skdpsurv.data.dask import one_row, supports_lazy_input
from skdpsurv.data.feature import Feature, warn_of_wide_bounds
from skdpsurv.data.interaction import Interaction
from skdpsurv.dp.checks import instance, list_of
from skdpsurv.dp.containers import is_lazy, labels_of
from skdpsurv.dp.input_errors import InputValueError, call_or_none, suppressed_float_errors
from skdpsurv.dp.types import FloatArray

#: Number of entries of encoded rows that are made at a time: 8 MiB.
BLOCK_ELEMENTS = 2**20


class PublicColumns(TransformerMixin, BaseEstimator):
    """Encode numbers, categories, booleans and dates as features within [-1, 1].

    Bounds and categories are stated, and nothing is learnt from the data. So this spends no budget
    before a private estimator, and the features of a record depend on no other record. Categories
    and ranges found in the records would not be public.

    Parameters
    ----------
    columns : dict of str to specification
        The public knowledge of each column of the table. A specification is one of these, or its
        shorthand:

        ======== ========================================================== ====================
        kind     specification                                              shorthand
        ======== ========================================================== ====================
        number   ``{"bounds": [0, 100], "unit": "years"}``                  ``(0, 100)``
        category ``{"categories": ["never", "past", "now"]}``               a list of labels
        boolean  ``{"boolean": True}``                                      the type ``bool``
        date     ``{"dates": ["2001-01-01", "2010-12-31"]}``
        log      ``{"log": [0, 35], "offset": 1, "unit": "nodes"}``
        power    ``{"power": [0, 9], "exponent": 2}``
        spline   ``{"spline": [15, 60], "df": 3, "unit": "kg/m²"}``
        product  ``{"interaction": ["age", "treated"]}``
        ======== ========================================================== ====================

        Each may state a treatment of ``"missing"`` values. Dates may state the ``"format"`` of
        text, such as ``"%d.%m.%Y"``, beside ``"2001-12-31"``. Labels are all text or all integers.
        The unit of a number is for its reader. A ``"typical"`` value, such as ``37`` within bounds
        of a temperature, is used for the example person in reports (:meth:`example`), and near an
        end of the bounds shows skew. A step ``"per"`` of a number or date, such as ten years, is
        what figures show its effect for; by default it is a tenth of the bounds. A list of two
        numbers is refused, as these may be bounds or categories. A list of specifications that also
        hold their ``"name"`` keeps the order of columns where a file would not.

        A skewed number, such as a count, acts by its logarithm: ``log`` has its bounds, and
        ``"offset"`` is added first, which must make both positive. Effects are per doubling of the
        sum, and ``"per"`` is a number of doublings, by default one. ``power`` has bounds and an
        ``"exponent"``, by default 2. A negative one, as of an inverse, needs positive bounds.

        A ``spline`` is a natural cubic spline between its bounds, beyond which it is constant. It
        has ``"df"`` features, 2 to 5, and df - 1 ``"knots"`` between the bounds, evenly spaced if
        none are stated. The first feature is the line; the others are departures from it, which
        have no correlation with it and each other over evenly spread values.

        An ``interaction`` is under a name that is no column, and has the products of the features
        of two described columns. Numbers count from the middle of their bounds there. So its
        coefficient per unit is that of the product of raw columns, and the coefficient of a column
        beside it holds in the middle of the other's bounds.

        The effect of a column may change over time in
        :class:`~skdpsurv.DPDiscreteTimeSurvival`: with ``"over_time"`` as ``"log"`` along the
        logarithm of time, as ``{"steps": [2, 5]}`` at stated times, as ``{"spline": 3}`` along a
        natural cubic spline with 2 to 4 degrees of freedom. Models without time leave that out.

        A number or date may state a ``"spread"``, its standard deviation (of a date in days, of a
        log or power that of the logarithm or power). Categories may state ``"prevalence"``, the
        share of each label in order, which add up to 1; a boolean that of True. Take them from a
        paper, a register or a published pilot, never from these records. A spread that is wrong by
        30 % helps, one that is wrong by 50 % does not.
    missing : {"error", "midpoint", "category"}, default="error"
        Treatment of None, NaN, NaT and NA in columns that do not state it. ``"error"`` refuses
        them. ``"midpoint"`` is the middle of the bounds: 0 for numbers and dates, 0.5 for booleans;
        categories have no middle, and refuse. ``"category"`` adds an indicator of missing values
        behind the column's other features. These are at their midpoint there, or all 0 for
        categories.
    drop : {"first", "if_binary"} or None, default="first"
        Categories without an indicator: the first of each column, which is then the reference; the
        first where there are two; or none.
    missing_values : sequence of str, default=()
        Texts that mean missing in files that commands read, beside empty cells, NA and the like,
        such as ``["-99"]``. Arrays and data frames have None or NaN there.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns (public).
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns as ``X`` in ``fit`` had them, when it had names (public).

    See Also
    --------
    PublicBoundsScaler : The same map of numbers alone, by arrays of bounds.
    sklearn.compose.ColumnTransformer : Learns from the data: not private with most transformers.

    Notes
    -----
    ``X`` is a table of pandas, polars or pyarrow that holds exactly these columns, in any order, or
    an array or a list of rows in the order of ``columns``, or of the table in ``fit``. An estimator
    with these ``columns`` takes labels 0, 1, 2 ... in order as positions, and refuses other labels
    that are no text. Specifications
    say how columns are read, and types do not: numbers in a column of objects are numbers, and
    numbers as text are refused.

    Numbers are scaled as by :class:`PublicBoundsScaler`. Dates are days since the first one, with
    the time of day as a fraction, and scaled like numbers. Dates with a time zone are refused,
    since their day depends on the place. A category is equal to its label: 1.0 is 1, True is not,
    and neither is ``"1"``. Clipping is silent, since the number of clipped values is private.

    Refusals name the column, which reveals that such a value exists there, and no more.

    ``transform`` needs no ``fit``: that call only checks the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpsurv.data import PublicColumns
    >>> columns = PublicColumns(
    ...     {
    ...         "age": {"bounds": [0, 100], "unit": "years", "missing": "midpoint"},
    ...         "smoking": ["never", "past", "now"],
    ...         "treated": bool,
    ...     }
    ... )
    >>> X = pd.DataFrame(
    ...     {"age": [50, None, 103], "smoking": ["now", "never", "past"], "treated": [1, 0, 1]}
    ... )
    >>> columns.set_output(transform="pandas").fit_transform(X)
       age  smoking_past  smoking_now  treated
    0  0.0           0.0          1.0      1.0
    1  0.0           0.0          0.0      0.0
    2  1.0           1.0          0.0      1.0
    >>> nodes = PublicColumns({"nodes": {"log": [0, 35], "offset": 1, "typical": 1}})
    >>> nodes.transform([[0], [1], [35], [99]]).ravel().round(2)
    array([-1.  , -0.61,  1.  ,  1.  ])
    """

    def __init__(
        self,
        columns: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        missing: str = "error",
        drop: str | None = "first",
        missing_values: Sequence[str] = (),
    ) -> None:
        self.columns = columns
        self.missing = missing
        self.drop = drop
        self.missing_values = missing_values

    @classmethod
    def of(cls, **columns: Any) -> Self:
        """Describe columns by keywords; other parameters have their defaults.

        Parameters
        ----------
        **columns
            A specification for each column, as in the class. Names of parameters are columns, too.

        Returns
        -------
        PublicColumns

        Examples
        --------
        >>> PublicColumns.of(age=(0, 100), sex=["f", "m"]).get_feature_names_out().tolist()
        ['age', 'sex_m']
        """
        return cls(columns)

    @classmethod
    def from_formula(cls, formula: str, bounds: Mapping[str, Any], **parameters: Any) -> Self:
        """Describe columns by a formula, with the public bounds and categories of each.

        Parameters
        ----------
        formula : str
            Columns, and ``log(x + 1)``, ``power(x, 2)`` and ``spline(x, 3)`` of one each, joined
            by ``+``, ``:`` and ``*``. Products are of two columns, which also stand by themselves.
        bounds : dict of str to specification
            A specification of each column, as in the class; functions need one with bounds.
        **parameters
            Other parameters of the class.

        Returns
        -------
        PublicColumns

        Raises
        ------
        ImportError
            Without formulaic: ``pip install "skdpsurv[formula]"``.
        ValueError, TypeError
            If the formula has other terms, such as ``bs`` or ``scale``, which learn from records.

        Examples
        --------
        >>> from skdpsurv import PublicColumns
        >>> bounds = {"nodes": (0, 35), "age": (20, 80), "treat": bool, "bmi": (15, 60)}
        >>> formula = "log(nodes + 1) + age * treat + spline(bmi, 2)"
        >>> columns = PublicColumns.from_formula(formula, bounds)
        >>> columns.get_feature_names_out().tolist()
        ['nodes', 'age', 'treat', 'bmi_spline1', 'bmi_spline2', 'age:treat']
        """
        found = cls(columns_of_formula(formula, bounds), **parameters)
        found._check()
        return found

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Self:
        """Read a description from a TOML file, which may be kept and published beside the data.

        Parameters
        ----------
        path : str or path
            A file with a table for each column, in the order of the columns::

                missing = "midpoint"  # these three are optional
                drop = "first"  # "none" keeps all categories
                missing_values = ["-99"]

                [columns.age]
                bounds = [0, 100]
                unit = "years"

                [columns]
                weight = [30, 200]  # a number: two numbers in a list are bounds here
                sex = ["f", "m"]

        Returns
        -------
        PublicColumns

        Raises
        ------
        ValueError
            If the file breaks a rule; the message names both.
        OSError
            If it cannot be read.
        """
        content = Path(path).read_bytes()
        try:
            columns = cls(**parameters_in_toml(content.decode()))
            columns._check()
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path}: {error}") from None
        return columns

    def fit(self, X: Any, y: object = None) -> Self:
        """Check the table against its description; nothing is learnt from values.

        Parameters
        ----------
        X : DataFrame, array-like of shape (n_samples, n_columns)
            Records (private).
        y : None
            Ignored.

        Returns
        -------
        PublicColumns
            This transformer.

        Raises
        ------
        ValueError, TypeError
            If the description breaks a rule, if the table has other columns, or if a column holds
            other values than described.
        """
        if is_lazy(X):  # values are checked where they are used
            raw_columns(one_row(X), self._names(), type(self).__name__)
        elif not len(self._read(X, None)[0][1]):
            message = "Found array with 0 sample(s) while a minimum of 1 is required by"
            raise ValueError(f"{message} {type(self).__name__}.")
        self.n_features_in_ = len(self._names())
        warn_of_wide_bounds(self._features())
        if (labels := labels_of(X)) is not None:
            self.feature_names_in_ = np.array(list(map(str.__str__, labels)), object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    @supports_lazy_input(lambda self: len(self._features()))
    def transform(self, X: ArrayLike) -> FloatArray:
        """Encode the columns as features.

        Parameters
        ----------
        X : DataFrame, array-like of shape (n_samples, n_columns)
            Records (private).

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Values in [-1, 1]: encoded, not anonymised.

        Raises
        ------
        ValueError, TypeError
            As in ``fit``.
        """
        return self._encoded(X)

    def _encoded(self, X: ArrayLike) -> FloatArray:
        read = self._read(X, getattr(self, "feature_names_in_", None))
        n_features = len(PublicColumns._features(self))
        rows, (_, interactions) = np.empty((len(read[0][1]), n_features)), self._terms()
        step = max(1, BLOCK_ELEMENTS // max(1, rows.shape[1]))
        with suppressed_float_errors():
            for start in range(0, rows.shape[0], step):
                piece = slice(start, start + step)
                made = {k.column: np.column_stack(k.encode(values[piece])) for k, values in read}
                products = [one.encode(made) for one in interactions]
                rows[piece] = np.column_stack([*made.values(), *products])
        return rows

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the features; they need no ``fit``.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            If given, these must be the names of the columns.

        Returns
        -------
        ndarray of str objects

        Raises
        ------
        ValueError
            If ``input_features`` are others.
        """
        if input_features is not None:
            given = np.asarray(input_features, dtype=object).ravel()
            if sorted(map(str, given)) != sorted(self._names()):
                raise ValueError("input_features must be the names in columns.")
        return np.array([feature.name for feature in self._features()], dtype=object)

    def example(self) -> pd.DataFrame:
        """Return an example person, for predictions and figures.

        Returns
        -------
        DataFrame of shape (1, n_columns)
            The ``"typical"`` value of each column; else the middle of its bounds, its first
            category, or False. Public, as the description is.

        Examples
        --------
        >>> from skdpsurv import PublicColumns
        >>> columns = PublicColumns(
        ...     {"temperature": {"bounds": [30, 43], "typical": 37}, "stage": ["I", "II"]}
        ... )
        >>> columns.example()
           temperature stage
        0         37.0     I
        """
        return pd.DataFrame({kind.column: [kind.example] for kind in self._kinds()})

    def _kinds(self) -> list[ColumnKind]:
        return self._terms()[0]

    def _terms(self) -> tuple[list[ColumnKind], list[Interaction]]:
        list_of(instance(str, "text"))("missing_values", self.missing_values)
        return column_terms(self.columns, self.missing, self.drop)

    def _names(self) -> list[str]:
        return [kind.column for kind in self._kinds()]

    def _check(self) -> None:
        """Raise TypeError or ValueError if a parameter breaks a rule."""
        self._kinds()

    def _features(self, inputs: Sequence[Feature] | None = None) -> list[Feature]:
        """Return the features of raw columns, whatever the inputs."""
        kinds, interactions = self._terms()
        found = [feature for kind in kinds for feature in kind.features()]
        return found + [feature for one in interactions for feature in one.features()]

    def _described(self) -> dict[str, Any]:
        """Return parameters in JSON's types that make the same transformer, to the bit."""
        kinds, interactions = self._terms()
        tables = [{"name": kind.column, **kind.described()} for kind in kinds]
        tables += [one.described() for one in interactions]
        texts = {"missing_values": list(map(str, self.missing_values))}
        stated = {"columns": tables, "missing": self.missing, "drop": self.drop}
        return stated | (texts if texts["missing_values"] else {})

    def _out_of_bounds(self, X: ArrayLike) -> list[str]:
        """Return the columns with a value beyond the bounds: private."""
        return [kind.column for kind, values in self._read(X, None) if kind.out_of_bounds(values)]

    def _read(
        self, X: ArrayLike, seen: Sequence[str] | None, only: Sequence[str] | None = None
    ) -> list[tuple[ColumnKind, Any]]:
        """Read columns, by default all; ``seen`` are their names in the order of an array."""
        kinds = self._kinds()
        names = [kind.column for kind in kinds]
        # After a fit on a frame, arrays hold their columns in its order.
        order = names if seen is None or sorted(seen) != sorted(names) else list(seen)
        columns = dict(zip(order, raw_columns(X, order, type(self).__name__), strict=True))
        read: list[tuple[ColumnKind, Any]] = []
        refused: list[str] = []
        for kind in kinds if only is None else [kind for kind in kinds if kind.column in only]:
            try:
                read.append((kind, kind.read(columns[kind.column])))
            except InputValueError as error:
                refused.append(str(error))
        if refused:  # all of them, for whoever mends a file
            raise InputValueError(" ".join(refused))
        return read

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        kinds = call_or_none(self._kinds) or ()  # fit refuses wrong descriptions
        tags.input_tags.allow_nan = any(kind.missing != "error" for kind in kinds)
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.requires_fit = False
        return tags

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"  # scikit-learn escapes no names of columns

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
