"""Options that belong together, declared once: a command takes a dataclass for all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

__all__ = ["grouped"]


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take dataclasses: each of their fields becomes an option of its own.

    Parameters
    ----------
    command : callable
        Its parameters are options as Typer has them, or dataclasses of such.

    Returns
    -------
    callable
        With a signature that Typer understands.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind))
            continue
        assert isinstance(kind, type)
        of_field = get_type_hints(kind, include_extras=True)
        groups[name] = kind, [field.name for field in fields(kind)]
        for field in fields(kind):
            default: Any = inspect.Parameter.empty
            if field.default is not MISSING:
                default = field.default
            elif field.default_factory is not MISSING:
                default = field.default_factory()
            parameters.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=of_field[field.name],
                )
            )

    @wraps(command)
    def run(**given: Any) -> Any:
        for name, (kind, names) in groups.items():
            given[name] = kind(**{field: given.pop(field) for field in names})
        return command(**given)

    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    run.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
