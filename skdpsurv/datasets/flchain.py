"""The flchain study, with public bounds that do not come from its records.

Serum free light chain and mortality in Olmsted County, Minnesota: 7,874 residents aged 50 or
more, a random half of the study of Dispenzieri et al. (2012), followed from a blood sample
until death or last contact.

Source: sksurv.datasets.load_flchain, which holds the data set flchain of R's package survival.

X (all numeric)
    age         years at the sample
    sex_male    1 male, 0 female
    kappa       serum free light chain, kappa portion, mg/dL
    lambda      serum free light chain, lambda portion, mg/dL
    creatinine  serum creatinine, mg/dL; often not measured: NaN is kept
    mgus        1 if monoclonal gammopathy of undetermined significance had been diagnosed
    sample_yr   calendar year of the sample
y
    death       True if the death was observed
    futime      days from the sample to death or last contact

Two columns are left out. The cause of death, chapter, is known only for those who died, so it leaks
the outcome. The tenth of the free light chain sum, flc.grp, was cut at quantiles of the whole
sample: it is not a function of one record alone, so no guarantee about single records covers it.

Assumptions in place of a protocol
    bounds      from eligibility, definitions and clinical chemistry; values beyond are clipped
    max_time    5,200 days, about 14.2 years: a round follow-up window for samples taken from 1995
                on. No protocol states it, and people who had seen the data chose it. In a study of
                your own take the horizon from the protocol.

Reference: A. Dispenzieri, J. Katzmann, R. Kyle, et al. Use of nonclonal serum immunoglobulin free
light chains to predict overall survival in the general population. Mayo Clinic Proceedings
87(6):517-523, 2012.
"""

from __future__ import annotations

import os
from typing import Any

import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skdpsurv.data.histories import read_columns
from skdpsurv.data.target import survival_target
from skdpsurv.dp.references import extra


def load_survival_csv(
    path: str | os.PathLike[str], *, time: str = "time", event: str = "event"
) -> tuple[pd.DataFrame, NDArray[Any]]:
    r"""Read covariates and outcome from a CSV file, plain or compressed.

    Parameters
    ----------
    path : str or path-like
        File with a header line; ``.gz`` and the other endings known to :func:`pandas.read_csv`
        are decompressed.
    time : str, default="time"
        Name of the column with the time of the event or of censoring.
    event : str, default="event"
        Name of the column with the event indicator: 1 or true for an observed event, 0 or false
        for a censored time.

    Returns
    -------
    X : DataFrame of shape (n_samples, n_features)
        All other columns, in the order of the file, missing values kept.
    y : structured array of shape (n_samples,)
        Fields ``event`` (bool) and ``time`` (float).

    Raises
    ------
    ValueError
        If a column is missing from the file, an event is not 0 or 1, or a time is missing,
        infinite or negative. No record is ever dropped: otherwise the number of records would no
        longer be public.

    Examples
    --------
    >>> import io
    >>> X, y = load_survival_csv(io.StringIO("time,event,age\n12,1,70\n30,0,55\n"))
    >>> y["time"]
    array([12., 30.])
    >>> list(X)
    ['age']
    """
    frame = pd.read_csv(path)
    for name, column in (("time", time), ("event", event)):
        if column not in frame.columns:
            raise ValueError(f"{name} must name a column of the file, got {column!r}.")
    times = pd.to_numeric(frame[time], errors="coerce")
    found = read_columns(times, frame[event], (f"column {time!r}", f"column {event!r}"))
    return frame.drop(columns=[time, event]), survival_target(found.cause, found.exit)


# From the study's design and from clinical chemistry, not from the minimum and maximum of the
# columns: several columns reach beyond them, and are clipped.
_BOUNDS: dict[str, tuple[float, float]] = {
    "age": (50.0, 100.0),  # residents aged 50 or more were eligible
    "sex_male": (0.0, 1.0),
    "kappa": (0.0, 6.0),  # mg/dL, three times the usual upper reference limit (1.94)
    "lambda": (0.0, 6.0),  # mg/dL, about twice the usual upper reference limit (2.63)
    "creatinine": (0.0, 4.0),  # mg/dL, beyond it kidneys have all but failed
    "mgus": (0.0, 1.0),
    "sample_yr": (1995.0, 2003.0),  # the years in which samples were taken
}

_MAX_TIME = 5200.0  # days


def load_flchain() -> Bunch:
    """Load flchain: serum free light chain and mortality, 7,874 records, 2,169 deaths.

    Bundled with scikit-survival (``pip install "skdpsurv[reference]"``): no network is needed.

    Returns
    -------
    sklearn.utils.Bunch
        With the fields

        X : DataFrame of shape (7874, 7)
            Numbers, named as in ``bounds``; ``creatinine`` has NaN.
        y : structured array of shape (7874,)
            Fields ``death`` (bool) and ``futime`` (days).
        max_time : float
            Public horizon in days, an assumption (see ``description``).
        bounds : dict of str to (float, float)
            Public lower and upper bound of each column, assumptions too.
        description : str
            Source, columns, units and reasons for the public numbers.

    Raises
    ------
    ImportError
        If scikit-survival is not installed.

    References
    ----------
    A. Dispenzieri et al., "Use of nonclonal serum immunoglobulin free light chains to predict
    overall survival in the general population", Mayo Clinic Proceedings 87(6):517-523, 2012.

    Examples
    --------
    >>> from skdpsurv.datasets import load_flchain
    >>> from skdpsurv.data import PublicBoundsScaler
    >>> data = load_flchain()
    >>> scaler = PublicBoundsScaler.from_bounds(data.bounds, missing="midpoint")
    >>> scaler.fit_transform(data.X).shape
    (7874, 7)
    """
    with extra("reference", "scikit-survival", "load_flchain"):
        import sksurv.datasets
    raw, y = sksurv.datasets.load_flchain()
    raw = raw.rename(columns={"sample.yr": "sample_yr"})
    raw["sex_male"], raw["mgus"] = raw["sex"] == "M", raw["mgus"] == "yes"
    return Bunch(
        X=raw[list(_BOUNDS)].astype(float),
        y=y,
        max_time=_MAX_TIME,
        bounds=dict(_BOUNDS),
        description=__doc__,
    )
