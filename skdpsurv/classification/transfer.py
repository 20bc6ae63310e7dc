"""Read the models that a stack has released, here or at another organisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from skdpsurv.classification.group_fit import Coefficients
from skdpsurv.preprocessing.feature import Feature
from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.release import Release, released_array

__all__ = ["Sources", "hypothesis_centers", "released_models"]


@dataclass(frozen=True)
class Sources:
    """What was promised to the people behind a hypothesis.

    They are others than those whose records are fitted now. What is fitted lies near the hypothesis
    and passes on whatever that reveals about them: no noise that is added here protects them.

    Parameters
    ----------
    promises : tuple of PrivacyGuarantee
        Of the hypothesis, of the one that it was shrunk towards in turn, and so on.
    """

    promises: tuple[PrivacyGuarantee, ...]

    @classmethod
    def of(cls, hypothesis: Release | None) -> Sources:
        """Read what a hypothesis says about itself.

        Raises
        ------
        ValueError
            If it does not say what its own hypothesis promised.
        """
        if hypothesis is None:
            return cls(())
        theirs = hypothesis.guarantee
        # Behind a search, only the fit itself knows what it was shrunk towards.
        earlier: Any = hypothesis.made_by.public_inputs.get("hypothesis", ())
        try:
            return cls(
                (
                    theirs,
                    *(
                        PrivacyGuarantee(each["epsilon"], each["delta"], status=each["status"])
                        for each in earlier
                    ),
                )
            )
        except (KeyError, TypeError, ValueError):
            pass
        raise ValueError(
            "hypothesis must say what its own hypothesis promised: epsilon, delta and status."
        )

    def public_inputs(self) -> dict[str, Any]:
        """Return the promises, the nearest first; nothing without a hypothesis."""
        if not self.promises:
            return {}
        said = [{name: getattr(p, name) for name in _PROMISED} for p in self.promises]
        return {"hypothesis": said}

    def assumptions(self) -> tuple[str, ...]:
        """Return who is protected by what."""
        return tuple(
            f"this guarantee is about the records fitted here, not about those that {which} was "
            f"learned from: these have its own promise, {_promise(promise)}, and whoever is among "
            "both has the sum of both epsilons"
            for which, promise in self._named()
        )

    def leaks(self) -> list[str]:
        """Return which of the promises protect nobody."""
        return [
            f"{which} promises nothing that is proved to the people whose records it was learned "
            f"from ({_promise(promise)}): what it reveals about them passes into this fit, whose "
            "guarantee is about its own records only. Use one that was released with a proved "
            "guarantee."
            for which, promise in self._named()
            if promise.status != "proved"
        ]

    def _named(self) -> list[tuple[str, PrivacyGuarantee]]:
        names = ["the hypothesis" + " of the hypothesis" * k for k in range(len(self.promises))]
        return list(zip(names, self.promises, strict=True))


_PROMISED = ("epsilon", "delta", "status")


def _promise(guarantee: PrivacyGuarantee) -> str:
    delta = f", delta = {guarantee.delta:g}" if guarantee.delta else ""
    return f"epsilon = {guarantee.epsilon:g}{delta}, status {guarantee.status}"


def released_models(
    release: Release, groups: Sequence[Sequence[int]], n_outputs: int
) -> tuple[Coefficients, ...]:
    """Return the models below: one for each group of columns.

    Raises
    ------
    ValueError
        If the release does not hold just these.
    """
    intercepts = released_array(release, "low_level_intercept", (len(groups), n_outputs))
    return tuple(
        Coefficients(
            released_array(release, f"low_level_coef_{k}", (n_outputs, len(group))), intercepts[k]
        )
        for k, group in enumerate(groups)
    )


def hypothesis_centers(
    hypothesis: Release,
    *,
    groups: Sequence[Sequence[int]],
    n_features: int,
    names: Sequence[str] | None,
    features: Sequence[Feature] | None,
    classes: NDArray[Any],
    fit_intercept: bool,
) -> tuple[Coefficients, ...]:
    """Return the centres, after checking that the release speaks of the same groups and classes.

    Raises
    ------
    ValueError
        Naming what differs.
    """
    parameters = hypothesis.parameters
    if not hypothesis.has_columns(features):
        raise ValueError(
            "hypothesis must have read its columns as these are read, by the same bounds and "
            "categories: pass columns=hypothesis.transformer(), which is None if it does not say."
        )
    if hypothesis.n_features != n_features:
        raise ValueError(
            f"hypothesis must have as many columns as X, {n_features}, got {hypothesis.n_features}."
        )
    theirs = hypothesis.feature_names
    if names is not None and theirs is not None and list(map(str, names)) != theirs:
        raise ValueError("hypothesis must have columns of the same names and order as X.")
    if parameters.get("partition") != "features":
        raise ValueError("hypothesis must come from a stack with partition='features'.")
    if not _equal(parameters.get("feature_groups"), [list(group) for group in groups]):
        raise ValueError(
            "hypothesis must have the same groups of columns, in the same order: pass its "
            "feature_groups, release.parameters['feature_groups']."
        )
    if not _equal(parameters.get("classes"), classes.tolist()):
        raise ValueError("hypothesis must have the same classes.")
    if parameters.get("fit_intercept") is not fit_intercept:
        raise ValueError("hypothesis must have been fitted with the same fit_intercept.")
    return released_models(hypothesis, groups, classes.size if classes.size > 2 else 1)


def _equal(given: Any, wanted: list[Any]) -> bool:
    """Compare lists and tuples of whatever depth, and types of what is in them."""
    if isinstance(given, list | tuple) and isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(_equal, given, wanted))
    return type(given) is type(wanted) and bool(given == wanted)
