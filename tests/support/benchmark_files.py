"""Small made-up files with the names and columns of the data sets that benchmarks read."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.data import adult
from benchmarks.data.labelled import TABLE_BOUNDS
from benchmarks.data.organisations import GUSTO

N = 500
FLAG = (0.0, 1.0)


def write_files(folder: Path) -> None:
    """Write them all."""
    rng = np.random.default_rng(0)
    people = {
        "tb_third_births.csv.gz": ({"age": (18, 45), "spacing": (200, 3000), "sibs": (1, 4)}, 3600),
        "wt_unemployment_de.csv.gz": ({"age": (26, 49), "female": FLAG, "wage": (0, 200)}, 2190),
        "sb_standin_child_skelleftea.csv.gz": (
            {"sex_male": FLAG, "mother_age": (16, 49), "illeg": FLAG, "birth_year": (1850, 1885)}
            | _flags("soc_farming", "soc_worker", "soc_business"),
            5479,
        ),
        "hd_hdfail.csv.gz": (
            {"temp": (15, 45)}
            | _flags("brand_HGST", "brand_Hitachi", "brand_WDC", "rsc_1", "rer_0", "psc_1"),
            2000,
        ),
    }
    for name, (bounds, horizon) in people.items():
        frame = _columns(bounds, rng)
        first = next(iter(bounds))
        risk = (frame[first] - frame[first].mean()) / (frame[first].std() or 1.0)
        time = np.ceil(0.6 * horizon * rng.exponential(size=N) * np.exp(-0.5 * risk))
        end = np.minimum(horizon, np.ceil(1.5 * horizon * rng.random(N)) + 1.0)
        frame.insert(0, "event", (time <= end).astype(int))
        frame.insert(0, "time", np.minimum(time, end))
        frame.to_csv(folder / name, index=False)
    _labelled(folder, rng)
    _adult(folder, rng)
    _components(folder, rng)


def _flags(*names: str) -> dict[str, tuple[float, float]]:
    return dict.fromkeys(names, FLAG)


def _columns(bounds: dict[str, tuple[float, float]], rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: rng.integers(low, high, N, endpoint=True)
            if high - low < 10
            else np.round(rng.uniform(low, high, N), 1)
            for name, (low, high) in bounds.items()
        }
    )


def _labels(frame: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    first = frame.iloc[:, 0]
    score = (first - first.mean()) / (first.std() or 1.0)
    return (rng.random(N) < 1.0 / (1.0 + np.exp(-score))).astype(int)


def _labelled(folder: Path, rng: np.random.Generator) -> None:
    def write(name: str, bounds: dict[str, tuple[float, float]], **others: Iterable) -> None:
        frame = _columns(bounds, rng)
        frame.insert(0, "y", _labels(frame, rng))
        frame.assign(**others).to_csv(folder / name, index=False)

    heart = TABLE_BOUNDS["heart disease"]
    sites = rng.choice(["cleveland", "hungary", "switzerland", "va"], N)
    write("heart_disease_4sites.csv.gz", heart, num=0, site=sites)
    write(
        "mi_edinburgh_webglore.csv.gz",
        _flags(*(f"F{j}" for j in range(1, 10))),
        part=1 + np.arange(N) % 4,
    )
    write("nhanes_diabetes.csv.gz", TABLE_BOUNDS["diabetes"], site="a", survey_2011_12=0)
    flags = _flags("male", "race_asian", "a1c_high")
    readmission = TABLE_BOUNDS["readmission"] | flags
    write(
        "diabetes130_readmission.csv.gz", readmission, site_admission_source="a", site_insurer="b"
    )
    gusto = _flags(*GUSTO) | TABLE_BOUNDS["GUSTO-I"]
    region = rng.integers(1, 17, N)
    write("gusto1_16regions.csv.gz", gusto, region=region, group=region, small_group=region)


def _adult(folder: Path, rng: np.random.Generator) -> None:
    numbers = {"age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99)}
    frame = _columns(numbers | {"capital_gain": (0, 9999), "capital_loss": (0, 4000)}, rng)
    labels = {
        "workclass": [*adult.WORK],
        "marital_status": [*adult.MARITAL],
        "occupation": [*adult.OCCUPATIONS],
        "relationship": [*adult.RELATIONS],
        "race": ["White", "Black"],
        "sex": ["Male", "Female"],
        "native_country": ["United-States", "Mexico"],
    }
    for name, known in labels.items():
        frame[name] = rng.choice(known, N)
    frame["income_over_50k"] = _labels(frame, rng)
    frame.to_csv(folder / adult.FILE, index=False)


def _components(folder: Path, rng: np.random.Generator) -> None:
    y = rng.integers(0, 2, N)
    for low, high in ((0, 8), (4, 9)):
        X = rng.integers(0, 256, (N, 784)) // (1 + y[:, None] * (np.arange(784) < 300))
        digits = np.where(y, high, low)
        np.savez(folder / f"mnist_{low}v{high}.npz", X=X.astype("u1"), y=digits)
    columns = rng.normal(size=(N, 100)) / 20.0 + y[:, None] * (np.arange(100) < 5) / 10.0
    test = np.arange(N) % 3 == 0
    np.savez(
        folder / "news20_sci_v_talk_svd100.npz", X=columns.astype("f4"), y=2 * y - 1, is_test=test
    )
