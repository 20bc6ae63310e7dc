"""Warnings that are dropped, or raised as errors, in one thread alone.

Filters of warnings belong to the process; ``warnings.catch_warnings`` in one thread undoes those of
another. The filters here hold for threads inside of :func:`suppressed_warnings`, and for threads
started meanwhile. They fail where another thread records warnings at the same time, or leaves a
``catch_warnings`` that it entered before (docs/user_guide/limits).
"""

from __future__ import annotations

import copyreg
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

#: Modules of joblib, whose threads outlive a search and warn of the number of its jobs.
_JOBLIB = r"joblib(\.|$)"
_LOCK = threading.RLock()
#: Requests of each thread, innermost last: an action, and categories exempt from it.
_thread = threading.local()
#: Open requests of the process, threads that were there before, and how warnings were shown.
_process = SimpleNamespace(depth=0, bystanders=frozenset(), shown=warnings.showwarning)


def _action(category: type[Warning]) -> str | None:
    """Return "ignore" or "error" for a warning of this thread, or None for no change."""
    requests = getattr(_thread, "requests", None)
    if requests:
        action, spared = requests[-1]
        return None if issubclass(category, spared) else action
    helper = _process.depth > 0 and threading.current_thread() not in _process.bystanders
    return "ignore" if helper else None


class _InThread(type):
    """Metaclass of categories to which a warning belongs if its thread has this action."""

    action: str

    def __subclasscheck__(cls, subclass: type) -> bool:
        return _action(subclass) == cls.action


class _Silenced(Warning, metaclass=_InThread):
    action = "ignore"


class _Raised(Warning, metaclass=_InThread):
    action = "error"


def _every_warning() -> Any:
    return Warning


# scikit-learn hands filters on to worker processes: there they hold for the whole of a call.
copyreg.pickle(_InThread, lambda _: (_every_warning, ()))

_FILTERS = [
    ("ignore", None, _Silenced, None, 0),
    ("error", None, _Raised, None, 0),
    ("ignore", None, Warning, re.compile(_JOBLIB), 0),
]


def _show(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
    """Show a warning if its thread may give it, for filters that others put before ours."""
    action = _action(category)
    if action == "error" and isinstance(message, Warning):  # as it always is
        raise message
    if action is None:
        _process.shown(message, category, *args, **kwargs)


def _put_in_place() -> None:
    if list(warnings.filters[: len(_FILTERS)]) != _FILTERS:
        warnings.filterwarnings("ignore", module=_JOBLIB)
        warnings.simplefilter("error", _Raised)
        warnings.simplefilter("ignore", _Silenced)
    if warnings.showwarning is not _show:
        _process.shown, warnings.showwarning = warnings.showwarning, _show


def _take_away() -> None:
    filters = cast("list[Any]", warnings.filters)
    for ours in _FILTERS:
        if ours in filters:
            filters.remove(ours)
    if warnings.showwarning is _show:
        warnings.showwarning = _process.shown


@contextmanager
def _requesting(action: str, spared: tuple[type[Warning], ...]) -> Iterator[None]:
    if not hasattr(_thread, "requests"):
        _thread.requests = []
    with _LOCK:
        if _process.depth == 0:
            _process.bystanders = frozenset(threading.enumerate())
        _process.depth += 1
        _put_in_place()
    _thread.requests.append((action, spared))
    try:
        yield
    finally:
        _thread.requests.pop()
        with _LOCK:
            _process.depth -= 1
            if _process.depth == 0:
                _take_away()
                _process.bystanders = frozenset()


@contextmanager
def suppressed_warnings(*spared: type[Warning]) -> Iterator[None]:
    """Drop warnings of this thread and of threads that it starts, but for spared categories."""
    with _requesting("ignore", spared):
        yield


@contextmanager
def warnings_as_errors() -> Iterator[None]:
    """Raise the warnings of this thread, and of no other."""
    with _requesting("error", ()):
        yield
