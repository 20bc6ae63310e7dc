"""Intervals of private hazard coefficients: how often they hold the truth, and how wide they are.

python -m benchmarks.hazard_intervals --data-dir FOLDER --jobs 2

Sets in which effects change over time are those of the package SurvSet, which no extra of this
package brings: ``pip install SurvSet``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from benchmarks._common import SurvivalData, survival_sets, table
from benchmarks._run import arguments, data_file, number, part, run
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.data import PublicBoundsScaler
from skdpsurv.data.target import event_and_time
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.survival.hazards.model import HazardRecords, orthogonal_basis, published_basis

SHARE = 0.2
#: Of fewer finite intervals of a column the share that holds the truth is not told.
FEWEST = 20
#: Of so many records fits with a delta are not measured.
LARGE = 10_000
MAX_TIME, SHAPE, LOSS = 10.0, 1.3, 0.06
#: Log hazard ratios, one after another; the fourth is null.
EFFECTS = (0.8, -0.5, 0.3, 0.0, -0.2)
N_INTERVALS = 200
#: Effects on the scale of probit, relative to these.
PROBIT = 0.35
#: Round bounds, and the horizon, of sets of SurvSet whose effects change over time: tests
#: of proportional hazards have chi squares of 565, 59 and 192 for one column.
CHANGING = {
    "support2": (
        {
            "num_age": (18, 100),
            "fac_sex": "male",
            "num_scoma": (0, 100),
            "num_sps": (0, 100),
            "num_meanbp": (0, 200),
            "num_temp": (32, 42),
        },
        2000.0,
    ),
    "rhc": (
        {
            "num_age": (18, 100),
            "fac_sex": "male",
            "num_scoma1": (0, 100),
            "num_aps1": (0, 150),
            "num_surv2md1": (0, 1),
            "num_paco21": (0, 160),
        },
        365.0,
    ),
    "UnempDur": (
        {
            "num_age": (20, 60),
            "num_tenure": (0, 40),
            "num_logwage": (3, 8),
            "num_disrate": (0, 1),
            "fac_ui": "yes",
        },
        28.0,
    ),
}
#: Caps at which the capped fit without privacy is known; between them it is interpolated.
CAPS = np.geomspace(0.4, 13.0, 24)
#: Rate of events: about 5, 25, 40 and 65 per cent have one.
RARE, SOME, COMMON, MOST = 0.05, 0.3, 0.7, 2.0


@dataclass(frozen=True)
class People:
    """A population with known coefficients."""

    columns: str
    n_columns: int
    rate: float
    link: str = "cloglog"

    max_time = MAX_TIME

    @property
    def coef(self) -> np.ndarray:
        size = PROBIT if self.link == "probit" else 1.0
        return np.resize(EFFECTS, self.n_columns) * size * math.sqrt(5.0 / self.n_columns)

    def truth(self, cap: float) -> np.ndarray:
        return self.coef

    def rows(self, n: int, rng: np.random.Generator) -> np.ndarray:
        d = self.n_columns
        rows = rng.uniform(-1.0, 1.0, (n, d))
        if self.columns == "correlated":
            root = np.linalg.cholesky(np.full((d, d), 0.6) + 0.4 * np.eye(d))
            rows = np.clip(0.4 * rng.normal(size=(n, d)) @ root.T, -1.0, 1.0)
        elif self.columns == "half binary":
            rows[:, ::2] = np.sign(rows[:, ::2])
        elif self.columns == "skewed":
            rows = 2.0 * rng.beta(0.7, 4.0, (n, d)) - 1.0
        elif self.columns == "rare binary":
            rows[:, ::2] = 2.0 * (rng.random(rows[:, ::2].shape) < 0.05) - 1.0
        return rows

    @property
    def mean(self) -> np.ndarray:
        mean = np.full(self.n_columns, 1.4 / 4.7 - 1.0 if self.columns == "skewed" else 0.0)
        if self.columns == "rare binary":
            mean[::2] = -0.9
        return mean

    def sample(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = self.rows(n, rng)
        score = (X - self.mean) @ self.coef
        if self.link == "cloglog":
            risk = self.rate * np.exp(score)
            time = MAX_TIME * (rng.exponential(size=n) / risk) ** (1.0 / SHAPE)
        else:  # a constant hazard in each interval, by the link
            link = LINKS[self.link]
            level = link.predictor(-math.expm1(-self.rate / N_INTERVALS))
            intervals = np.ceil(rng.exponential(size=n) / link.survival(level + score).value)
            time = MAX_TIME * (intervals - 0.5) / N_INTERVALS
        last = np.minimum(rng.exponential(1.0 / LOSS, n), MAX_TIME)
        y = np.empty(n, dtype=[("event", "?"), ("time", "f8")])
        y["event"], y["time"] = time <= last, np.minimum(time, last)
        return X, y

    def __str__(self) -> str:
        return f"{self.columns}, {self.n_columns} columns"


@dataclass(frozen=True, eq=False)
class Resampled:
    """A real data set as a population: the truth is what a fit without privacy says of all of it.

    With the cap that a release used.
    """

    data: SurvivalData
    link: str = "cloglog"

    @property
    def max_time(self) -> float:
        return self.data.max_time

    @property
    def coef(self) -> np.ndarray:
        return np.full(self.data.X.shape[1], np.nan)

    @cached_property
    def at_caps(self) -> np.ndarray:
        return np.array([self.exact(cap) for cap in CAPS])

    def exact(self, cap: float) -> np.ndarray:
        model = DPDiscreteTimeSurvival(
            math.inf, max_time=self.max_time, link=self.link, max_cumulative_hazard=cap
        )
        return model.fit(self.data.X, self.data.y).coef_

    def truth(self, cap: float) -> np.ndarray:
        return np.array([np.interp(math.log(cap), np.log(CAPS), c) for c in self.at_caps.T])

    def sample(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        places = np.random.default_rng(seed).integers(0, len(self.data.X), n)
        return self.data.X[places], self.data.y[places]

    def __str__(self) -> str:
        return f"{self.data.name}, {self.data.X.shape[1]} columns"


def real_sets(folder: Path | None) -> Iterator[SurvivalData]:
    """Yield data sets with round bounds: two that defaults were found on, then changing effects."""
    yield from survival_sets(folder, ("unemployment",))
    for name, (columns, horizon) in CHANGING.items():
        with part(f"{name} of SurvSet"):
            from SurvSet.data import SurvLoader

            frame = SurvLoader().load_dataset(name)["df"]
            yield _scaled(name, frame, columns, horizon)
    with part("hdfail"):
        frame = pd.read_csv(data_file(folder, "hd_hdfail.csv.gz"))
        two_valued = frame.columns.difference(["time", "event", "temp"], sort=False)
        yield _scaled(
            "hdfail", frame, {"temp": (10, 50)} | dict.fromkeys(two_valued, (0, 1)), 2500.0
        )


def _scaled(name: str, frame: pd.DataFrame, columns: dict, horizon: float) -> SurvivalData:
    X = pd.DataFrame(
        {
            column: (frame[column].astype(str).str.lower() == stated).astype(float)
            if isinstance(stated, str)
            else frame[column]
            for column, stated in columns.items()
        }
    )
    bounds = {c: (0, 1) if isinstance(stated, str) else stated for c, stated in columns.items()}
    scaler = PublicBoundsScaler.from_bounds(bounds, missing="midpoint")
    y = np.empty(len(frame), dtype=[("event", "?"), ("time", "f8")])
    y["event"], y["time"] = frame.event, np.maximum(frame.time, 1e-9 * horizon)
    return SurvivalData(name, np.asarray(scaler.fit_transform(X)), y, horizon)


def without_privacy(
    people: People | Resampled, X: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return maximum likelihood coefficients, and their standard errors."""
    fit = DPDiscreteTimeSurvival(math.inf, max_time=people.max_time, link=people.link).fit(X, y)
    event, time = event_and_time(y)
    records = HazardRecords.on_grid(X, event, time, people.max_time, fit.n_intervals)
    basis = orthogonal_basis(fit.n_intervals, fit.n_knots)
    likelihood = DiscreteHazard(basis, X.shape[1], link=LINKS[people.link])
    values = published_basis(fit.n_intervals, fit.n_knots) @ fit.baseline_coef_
    baseline = np.linalg.lstsq(basis, values, rcond=None)[0]
    at = np.concatenate([baseline, fit.coef_])
    hessian = likelihood.derivatives(at, records.within(0.0, math.inf)).hessian
    return fit.coef_, np.sqrt(np.diag(np.linalg.inv(hessian)))[fit.n_knots :]


@dataclass(frozen=True)
class Case:
    """A population, and what is asked of how many of them."""

    people: People | Resampled
    n: int
    epsilon: float
    method: str = "obj_pert"
    delta: float = 0.0

    def one(self, seed: int) -> np.ndarray:
        """Return estimates less the truth, and standard errors."""
        warnings.simplefilter("ignore")
        X, y = self.people.sample(self.n, seed)
        model = DPDiscreteTimeSurvival(
            self.epsilon,
            delta=self.delta,
            method=self.method,
            link=self.people.link,
            max_time=self.people.max_time,
            inference_share=SHARE,
        )
        summary = model.fit(X, y).summary
        truth = self.people.truth(model.max_cumulative_hazard_)
        return np.stack([summary["coef"] - truth, summary["se(coef)"]])


def simulated() -> Iterator[Case]:
    """Yield the cases with known coefficients."""
    for columns, d, rate, n, epsilon in (
        ("uniform", 3, COMMON, 1_000, 3.0),
        ("uniform", 3, COMMON, 5_000, 0.3),
        ("uniform", 5, COMMON, 5_000, 1.0),
        ("uniform", 5, RARE, 20_000, 1.0),
        ("uniform", 5, MOST, 50_000, 10.0),
        ("uniform", 10, COMMON, 20_000, 3.0),
        ("uniform", 20, COMMON, 50_000, 1.0),
        ("correlated", 5, SOME, 6_000, 1.0),
        ("correlated", 5, SOME, 30_000, 1.0),
        ("half binary", 5, SOME, 20_000, 3.0),
        ("skewed", 5, MOST, 5_000, 1.0),
        ("skewed", 5, MOST, 50_000, 10.0),
        ("rare binary", 5, COMMON, 5_000, 1.0),
        ("rare binary", 5, COMMON, 50_000, 10.0),
    ):
        yield Case(People(columns, d, rate), n, epsilon)
    yield Case(People("uniform", 5, COMMON, "logit"), 20_000, 3.0)
    yield Case(People("uniform", 5, COMMON, "probit"), 20_000, 3.0)
    yield Case(People("uniform", 5, COMMON), 20_000, 3.0, "out_pert")


def row(case: Case, parallel: Parallel, repetitions: int) -> tuple[str, ...]:
    """Return a row of the table."""
    people = case.people
    found = np.array(parallel(delayed(case.one)(seed) for seed in range(repetitions)))
    errors, se = found[:, 0], found[:, 1]
    finite = np.isfinite(se)
    inside = np.where(finite, np.abs(errors) <= 1.959964 * se, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_column = np.nanmean(inside, axis=0)
        by_column[finite.sum(axis=0) < FEWEST] = np.nan
        null = np.nanmean(inside[:, people.coef == 0.0])
        wide = (
            np.median(se, axis=0) / without_privacy(people, *people.sample(case.n, -1 % 2**32))[1]
        )
    values = 100.0 * np.array([finite.mean(), np.nanmean(inside), np.nanmin(by_column), 1.0 - null])
    share, mean, worst, type_1 = (f"{v:.1f}" if np.isfinite(v) else "" for v in values)
    ends = (f"{v:.1f}" if np.isfinite(v) else "∞" for v in (wide.min(), wide.max()))
    method = [case.method] if case.method != "obj_pert" else []
    kind = ", ".join([str(people), people.link, *method, *(["δ = 1/n²"] if case.delta else [])])
    events = 100.0 * event_and_time(people.sample(20_000, 1)[1])[0].mean()
    head = (kind, f"{events:.0f} %", f"{case.n:,}", f"{case.epsilon:g}")
    return (*head, share, mean, worst, type_1, " to ".join(ends))


def main() -> None:
    """Tables: coverage of 95 % intervals, and their width."""
    args = arguments(__doc__ or "", repetitions=number(50, quick=4), jobs=number(1))
    parallel = Parallel(n_jobs=args.jobs, batch_size=8)
    repetitions = args.repetitions
    header = ("people", "events", "n", "ε", "finite", "hold", "least", "false", "width")
    note = (
        f"Per cent of {repetitions} fits with inference_share={SHARE:g}: of intervals that are "
        "finite; of finite 95 % intervals that hold the truth; the same for the column where it is "
        "least; of z tests at level 0.05 that reject a null coefficient. Width: median standard "
        "error over that of the fit without privacy, least and largest over the columns."
    )
    with part("real"):
        rows = []
        for data in real_sets(args.data_dir):
            people, n = Resampled(data), len(data.X)
            cases = [Case(people, n, epsilon) for epsilon in (1.0, 3.0)]
            if n < LARGE:  # noisy descent takes long
                cases += [Case(people, n, epsilon, "noisy_gd", n**-2.0) for epsilon in (1.0, 3.0)]
            if data.name in ("flchain", "unemployment"):
                cases.append(Case(people, 50_000, 10.0))
            for case in cases:
                rows.append(row(case, parallel, repetitions))
                print(*rows[-1], sep=" | ", flush=True)
        table("hazard_intervals_real", header, rows, note)
    rows = []
    for case in simulated():
        rows.append(row(case, parallel, repetitions))
        print(*rows[-1], sep=" | ", flush=True)
    table("hazard_intervals", header, rows, note)


if __name__ == "__main__":
    run(main)
