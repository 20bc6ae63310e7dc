"""Traces and densities of Markov chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import gaussian_kde

from skdpsurv.plotting.style import colour, pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_trace(chains: Any, parameters: Sequence[str] | None = None) -> Figure:
    """Draw the paths of chains: one panel a parameter, one colour a chain."""
    figure, panels = _panels(chains, parameters, "plot_trace")
    for j, ax in panels.items():
        for i, chain in enumerate(chains.draws):
            ax.plot(chain[:, j], color=colour(i), linewidth=0.6, alpha=0.8)
        ax.set_ylabel(chains.names[j])
    ax.set_xlabel("Draw")
    return figure


def plot_density(chains: Any, parameters: Sequence[str] | None = None) -> Figure:
    """Draw kernel estimates of the densities: one panel a parameter, one colour a chain."""
    figure, panels = _panels(chains, parameters, "plot_density")
    for j, ax in panels.items():
        values = chains.draws[:, :, j]
        grid = np.linspace(values.min(), values.max(), 200)
        for i, chain in enumerate(values):
            if np.ptp(chain) > 0.0:
                ax.plot(grid, gaussian_kde(chain)(grid), color=colour(i))
        ax.set_xlabel(chains.names[j])
        ax.set_yticks([])
        ax.set_ylim(bottom=0.0)
    return figure


def _panels(
    chains: Any, parameters: Sequence[str] | None, function: str
) -> tuple[Figure, dict[int, Any]]:
    """Return a figure and its axes, by the places of the parameters."""
    names = list(chains.names)
    asked = names if parameters is None else list(parameters)
    if not asked or not set(asked) <= set(names):
        raise ValueError(f"parameters must be among {names}, got {asked}.")
    figure, axes = pyplot(function).subplots(
        len(asked), figsize=(8.0, 1.6 * len(asked) + 0.6), layout="constrained", squeeze=False
    )
    for ax in axes[:, 0]:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, dict(zip(map(names.index, asked), axes[:, 0], strict=True))
