"""What a publisher says for an entry of a registry, checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

__all__ = ["checked_date", "checked_text", "checked_texts"]


def checked_text(name: str, text: Any) -> str:
    """Return text without blanks at the ends of lines, which YAML would not keep in a block."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be text, got {type(text).__name__}.")
    kept = "\n".join(line.rstrip() for line in text.strip().splitlines())
    if not kept:
        raise ValueError(f"{name} must not be empty.")
    return kept


def checked_texts(name: str, texts: Any) -> list[str]:
    """Return several texts, at least one."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise TypeError(f"{name} must be a list of texts, got {type(texts).__name__}.")
    if not texts:
        raise ValueError(f"{name} must hold at least one name.")
    return [checked_text(name, text) for text in texts]


def checked_date(given: Any) -> str:
    """Return a day as the registry has it."""
    if isinstance(given, date):
        return f"{given:%Y-%m-%d}"
    if not isinstance(given, str):
        raise TypeError(
            f"publication_date must be a date, or text such as '2026-03-01', got "
            f"{type(given).__name__}."
        )
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", given):
        try:
            return date.fromisoformat(given).isoformat()
        except ValueError:
            pass
    raise ValueError(f"publication_date must be of the form '2026-03-01', got {given!r:.40}.")
