"""A subclass whose base takes long to import: commands import it as they run."""

from __future__ import annotations

from typing import Any

from skdpsurv.cli.failures import refusals
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.budget import dataset_name


class CommandLedger(PrivacyAccountant):
    """A ledger whose errors end a command as failures of a ledger; ``hint`` says what helps."""

    def __init__(
        self,
        place: str | None,
        dataset: str = "default",
        hint: str = " --budget makes a ledger, and is fixed for ever.",
        **settings: Any,
    ) -> None:
        settings["url" if "://" in (place or "") else "path"] = place
        with refusals("ledger", after=hint):
            super().__init__(**settings)
            self._dataset = dataset_name(dataset)

    check = refusals("ledger")(PrivacyAccountant.check)
    charge = refusals("ledger")(PrivacyAccountant.charge)
