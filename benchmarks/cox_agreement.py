"""Discrete time against Cox regression, as in table 3 of Nguyen and Hui.

python -m benchmarks.cox_agreement --data-dir FOLDER
"""

from __future__ import annotations

import numpy as np

from benchmarks._common import flchain, table
from benchmarks._run import arguments, data_file, part, run
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.datasets import load_survival_csv
from skdpsurv.reference import cox_coefficients, relative_error

FILES = {"third births": "tb_third_births.csv.gz", "unemployment": "wt_unemployment_de.csv.gz"}


def scaled_and_centred(X: np.ndarray) -> np.ndarray:
    """Min-max scale and centre, as the paper does; from the data, hence not private."""
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    return X - X.mean(axis=0)


def main() -> None:
    """Table: coefficients of either model, their ratios and their relative distance."""
    args = arguments(__doc__ or "")
    data = flchain()
    sets = [("flchain", data.X, data.y)]
    for name, file in FILES.items():
        with part(name):
            frame, y = load_survival_csv(data_file(args.data_dir, file))
            sets.append((name, frame.to_numpy(float), y))
    rows = []
    for name, raw, y in sets:
        X = scaled_and_centred(raw)
        cox = cox_coefficients(X, y)
        time = y[y.dtype.names[1]]
        for link in ("logit", "cloglog"):
            model = DPDiscreteTimeSurvival(np.inf, max_time=float(time.max()), link=link)
            coef = model.fit(X, y).coef_
            ratios = ", ".join(f"{r:.2f}" for r in coef / cox)
            rows.append((name, link, ratios, f"{relative_error(coef, cox):.3f}"))
    table(
        "cox_agreement",
        ("data", "link", "coefficients / Cox's", "relative error"),
        rows,
        "Maximum likelihood, q = 200, no ridge; the horizon is the largest time.",
    )


if __name__ == "__main__":
    run(main)
