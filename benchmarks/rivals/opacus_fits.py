"""What runs in Opacus' environment: logistic regression by private stochastic gradient descent.

Each record is in a batch by chance (Poisson sampling), gradients are clipped to norm 1. Neighbours
differ by a record that is added or removed; budgets are counted by privacy loss distributions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from torch.utils.data import DataLoader, TensorDataset
from worker import Prediction, logistic, mean_scores, serve


@cache
def noise(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Return the standard deviation of the noise, in units of the largest gradient."""
    return float(
        get_noise_multiplier(
            target_epsilon=epsilon,
            target_delta=delta,
            sample_rate=rate,
            steps=steps,
            accountant="prv",
            epsilon_tolerance=0.01 * epsilon,
        )
    )


def descended(
    X: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    epsilon: float,
    delta: float,
    rate: float,
    steps: int,
    batch: int,
) -> Prediction:
    """Fit with this many steps and learning rate."""
    n, d = X.shape
    records = TensorDataset(
        torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    )
    batch = min(batch, n // 2)
    loader = DataLoader(records, batch_size=batch)
    model = torch.nn.Linear(d, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    # Batches that chance makes are of a rate of 1 / len(loader).
    multiplier = noise(epsilon, delta, 1.0 / len(loader), steps)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate),
        data_loader=loader,
        noise_multiplier=multiplier,
        max_grad_norm=1.0,
    )
    loss = torch.nn.BCEWithLogitsLoss()
    done = 0
    while done < steps:
        for inputs, labels in loader:
            optimizer.zero_grad()
            if len(inputs):
                loss(model(inputs)[:, 0], labels).backward()
                optimizer.step()
            done += 1
            if done == steps:
                break
    with torch.no_grad():
        odds = model(torch.tensor(rows, dtype=torch.float32))[:, 0].numpy()
    return logistic(odds.astype(float))


def accuracy(arrays: dict[str, np.ndarray], options: dict[str, Any]) -> list[list[float]]:
    """Return scores of each of ``settings``: epsilon, delta, learning rate, steps."""
    torch.set_num_threads(1)
    return [
        mean_scores(
            arrays,
            lambda X, y, rows, setting=setting: descended(X, y, rows, *setting, options["batch"]),
        )
        for setting in options["settings"]
    ]


if __name__ == "__main__":
    serve(accuracy=accuracy)
