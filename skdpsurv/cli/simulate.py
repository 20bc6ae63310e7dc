"""Commands that read no record and spend nothing: plans, audits, and made-up people."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from skdpsurv.cli.failures import AS_JSON, WORDS, refusals, require
from skdpsurv.cli.fitting import Kind, estimator_class, make
from skdpsurv.cli.options import NONE, command, parse
from skdpsurv.cli.printing import reserve, rich_table, save, show, working
from skdpsurv.cli.record_files import MADE_UP
from skdpsurv.cli.releases import load_release
from skdpsurv.cli.survival_columns import public_columns

#: Models that can be attacked.
Attacked = StrEnum(
    "Attacked", ["survival", "competing-regression", "weibull", "km", "logistic", "table"]
)
#: Upper limit on the probability that a true claim is refuted.
FALSE_ALARM = 1e-4


@command
def plan(
    kind: Kind,
    /,
    *,
    records: int,
    set_: list[str] = NONE,
    columns: int | None = None,
    schema: Path | None = None,
    event_rate: float = 0.3,
    concordance: float | None = None,
    censoring: float = 0.5,
    baseline: str = "flat",
    entry: str | None = None,
    epsilon: list[float] = [0.1, 0.3, 1.0, 3.0],  # noqa: B006, typer copies it
    intervals: float = 0.0,
    delta: float = 0.0,
    repeats: int = 20,
    figure: Path | None = None,
    seed: int | None = None,
) -> None:
    """Forecast accuracy at several epsilons, by simulation: no record is read, nothing is spent.

    Parameters
    ----------
    kind : Kind
        Model that will be fitted: survival, weibull, km or logistic.
    records : int
        Number of records.
    set_ : list of str
        Another parameter of the estimator, as NAME=VALUE. May be given several times.
    columns : int or None
        Number of columns; 8 by default.
    schema : Path or None
        In place of --columns: TOML file, or a release, that describes them.
    event_rate : float, default=0.3
        Share of records with an event before the horizon; for a classifier, of the second class.
    concordance : float or None
        C-index or AUC of the best model, from earlier studies; 0.7 by default.
    censoring : float, default=0.5
        Share of the other records that are censored before the horizon.
    baseline : str, default="flat"
        Course of the hazard: front-loaded, flat or rising.
    entry : str or None
        When people are first seen, if late: uniform, or shares of equal parts of the horizon, such
        as 3,2,1.
    epsilon : list of float
        Privacy loss to simulate. May be given several times.
    intervals : float, default=0.0
        Share of epsilon for standard errors, as in fit.
    delta : float, default=0.0
        Delta of Gaussian noise, as in fit.
    repeats : int, default=20
        Number of studies to simulate.
    figure : Path or None
        Draw the table: a .png, .pdf or .svg file.
    seed : int or None
        Seed of the simulation.
    """
    from skdpsurv.evaluation.forecast import forecast_accuracy

    if figure is not None:
        drawn = figure.suffix in (".png", ".pdf", ".svg")
        require(drawn, "--figure must end in .png, .pdf or .svg.")
        reserve(figure)
    stated = {"inference_share": intervals, "delta": delta}
    one_event = "causes" not in estimator_class(kind)._card.takes
    require(one_event, "KIND must be survival, weibull, km or logistic here.")
    forecast = forecast_accuracy(
        _estimator(kind, {name: value for name, value in stated.items() if value}, set_),
        records,
        n_columns=columns,
        columns=None if schema is None else public_columns(schema),
        event_rate=event_rate,
        concordance=concordance,
        censoring=censoring,
        baseline=baseline,
        entry=_entries(entry),
        epsilons=epsilon,
        n_repeats=repeats,
        random_state=seed,
        verbose=0 if AS_JSON.get() else 1,
    )
    meanings = {name: text for name, text in WORDS["legend"].items() if name in forecast.table}
    table = forecast.table[list(meanings)].round(3) + 0.0
    heads = [text.partition(":")[0] for text in meanings.values()]
    lines: list[Any] = [rich_table(table.set_axis(heads, axis=1))]
    lines += [". ".join(meanings.values()) + ".", forecast.advice]
    if len(forecast.terms):
        factors = forecast.terms.set_index("range", append=True)["factor"].unstack("epsilon")
        factors = factors.loc[list(forecast.ranges)].rename(columns="{:g}".format)
        lines.insert(2, rich_table(factors, "Factor by which the ratio of a term is uncertain"))
    if figure is not None:
        import numpy as np

        np.ravel(forecast.plot())[0].figure.savefig(figure, dpi=150)
        lines.append(f"Figure: {figure}")
    show(forecast.to_dict(), lines)


@command
def planner(out: Path, /) -> None:
    """Write a page with sliders, to see what an epsilon will cost a study. It needs no network.

    Parameters
    ----------
    out : Path
        New HTML file, for any browser.
    """
    from skdpsurv.report.planner import planner_page

    reserve(out)
    save(planner_page(), out)
    show({"page": str(out.resolve())}, [f"Open in a browser: {out}"], out)


@command
def audit(
    kind: Attacked,
    /,
    *,
    set_: list[str] = NONE,
    epsilon: float = 1.0,
    trials: int = 1000,
    pairs: int = 3,
) -> None:
    """Try to tell simulated neighbouring data sets apart by their releases. Spends no budget.

    Passing proves nothing; a refuted claim ends with exit code 9.

    Parameters
    ----------
    kind : Attacked
        Model to attack: survival, competing-regression, weibull, km, logistic or table.
    set_ : list of str
        Another parameter of the estimator, as NAME=VALUE. May be given several times.
    epsilon : float, default=1.0
        The claim to attack.
    trials : int, default=1000
        Number of fits to each data set. More of them detect smaller violations.
    pairs : int, default=3
        Number of pairs of neighbouring data sets.
    """
    import pandas as pd

    from skdpsurv.audit import (
        audit_epsilon,
        density_ratio_audit,
        measurement_audit,
        replay_audit,
        worst_neighbours,
    )

    estimator = _estimator(kind, {"epsilon": epsilon}, set_)
    estimator._check_parameters()
    tried = list(islice(worst_neighbours(estimator), pairs))
    require(tried, "--pairs must be at least 1.")
    confidence = 1.0 - FALSE_ALARM / len(tried)
    found: list[dict[str, Any]] = []
    for name, *pair in tried:
        with working(f"Attacking: {name}"):
            result = audit_epsilon(estimator, *pair, n_trials=trials, confidence=confidence)
            measured = measurement_audit(estimator, *pair)
            replayed = replay_audit(estimator, *pair)
            density = None
            with suppress(TypeError):  # not every distribution is known
                density = density_ratio_audit(estimator, *pair)
        row = {
            "pair": name,
            "passed": all(
                one is None or one.passed for one in (result, measured, replayed, density)
            ),
            "lower_bound": result.lower_bound,
            "resolution": result.resolution,
            "largest_log_ratio": None if density is None else density.largest,
            "measured": measured.table.to_dict("records"),
            "replayed": replayed.table.to_dict("records"),
            "diverged": list(replayed.diverged),
        }
        found.append(row)
    passed = all(row["passed"] for row in found)
    name = type(estimator).__name__
    content = {"estimator": name, "claimed": epsilon, "trials": trials, "passed": passed}
    verdict = "Not refuted. That proves nothing: the proofs are in the documentation."
    lines = [
        f"{name} claims epsilon = {epsilon:g}; {trials:,} fits of each data set",
        rich_table(pd.DataFrame(found).drop(columns=["measured", "replayed", "diverged"])),
        WORDS["audit"],
        verdict if passed else "The claim is REFUTED.",
    ]
    show({**content, "pairs": found}, lines)
    require(passed, f"epsilon = {epsilon:g} does not hold.", "refuted")


@command
def simulate(
    release: Path,
    /,
    *,
    people: int,
    seed: int,
    out: Path,
    table: Path | None = None,
    censoring: str | None = None,
) -> None:
    """Make up people who resemble a release, for teaching and power calculations. Spends nothing.

    They are nobody's records: each row says so in a column made_up, which fit leaves out by --drop.

    Parameters
    ----------
    release : Path
        A release, as fit wrote it.
    people : int
        Number of made-up people.
    seed : int
        The same seed gives the same people.
    table : Path or None
        A release of the command table, for the margins of columns.
    censoring : str or None
        How people are lost before the horizon: a rate per unit of time, or a release of curves.
    """
    import pandas as pd

    from skdpsurv.report.numbers import csv_text

    reserve(out)
    published = load_release(release)
    known = None if table is None else load_release(table)
    lost = None if censoring is None else parse(censoring)
    if isinstance(lost, str):
        says = "--censoring must be a rate, such as 0.0001, or the file of a release of curves."
        require(Path(lost).is_file(), says)
        lost = load_release(Path(lost))
    with refusals("parameter"):
        X, y = published.simulate(people, seed, table=known, censoring=lost)
    label = next(iter(published.target_names), "class")
    outcome = pd.DataFrame({label: y} if y is not None and not y.dtype.names else y)
    taken = sorted({*X} & {*outcome, MADE_UP})
    message = f"the file would have two columns {', '.join(taken)}: use Release.simulate in Python."
    require(not taken, message, "description")
    rows = X.join(outcome)
    save(csv_text(rows.assign(**{MADE_UP: True})), out)
    about: dict[str, Any] = {"out": str(out.resolve()), **X.attrs, "columns": [*rows, MADE_UP]}
    lines = [f"{people:,} made-up people: {X.attrs['made_up']}."]
    lines += [f"Margin of {name}: {source}" for name, source in X.attrs.get("margins", {}).items()]
    show(about, [*lines, f"File: {out}"])


def _entries(text: str | None) -> Any:
    """Return shares of late entries, or the word for them."""
    if text is None or text == "uniform":
        return text
    with refusals("parameter", "--entry must be uniform, or numbers such as 3,2,1: "):
        return [float(part) for part in text.split(",")]


def _estimator(kind: str, stated: dict[str, Any], settings: list[str]) -> Any:
    """Return an estimator for simulated records."""
    made = estimator_class(kind)
    return make(made, {**stated, **made._card.such_as}, settings, {})
