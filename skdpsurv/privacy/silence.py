"""No warning may tell of private records, or of how often something was done with them.

Filters of warnings belong to the process: ``warnings.catch_warnings`` in one thread undoes what
another has set. The filters here are added and taken away by themselves, by the first who needs
them and the last, and hold for some threads alone: those inside of :func:`silence`, and those that
were started meanwhile, which inner estimators and joblib do. All other threads warn as ever.

What remains is out of reach, as filters are nobody's own: another thread that, at the same time,
records warnings, or leaves a ``catch_warnings`` that it entered before (docs/user_guide/limits).
"""

from __future__ import annotations

import copyreg
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

#: joblib's own threads outlive a search, and warn of how many jobs there were.
_JOBLIB = r"joblib(\.|$)"
_LOCK = threading.RLock()
#: What each thread asks for, innermost last: an action, and categories that are spared.
_HERE = threading.local()
#: How many are silent in this process, who was there before, and how warnings were shown.
_process = SimpleNamespace(depth=0, bystanders=frozenset(), shown=warnings.showwarning)


def _action(category: type[Warning]) -> str | None:
    """Return what becomes of a warning of this thread: "ignore", "error", or None for as ever."""
    asked = getattr(_HERE, "asked", None)
    if asked:
        action, spared = asked[-1]
        return None if issubclass(category, spared) else action
    helper = _process.depth > 0 and threading.current_thread() not in _process.bystanders
    return "ignore" if helper else None


class _InThread(type):
    """Of categories that take in, for a filter, every warning that a thread may not give."""

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
    """Show a warning, if its thread may give it: for filters that others have put before ours."""
    action = _action(category)
    if action == "error" and isinstance(message, Warning):  # as it always is
        raise message
    if action is None:
        _process.shown(message, category, *args, **kwargs)


def _put_in_place() -> None:
    """Put our filters in front, and our function in place, wherever they are not."""
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
def _asking(action: str, spared: tuple[type[Warning], ...]) -> Iterator[None]:
    if not hasattr(_HERE, "asked"):
        _HERE.asked = []
    with _LOCK:
        if _process.depth == 0:
            _process.bystanders = frozenset(threading.enumerate())
        _process.depth += 1
        _put_in_place()
    _HERE.asked.append((action, spared))
    try:
        yield
    finally:
        _HERE.asked.pop()
        with _LOCK:
            _process.depth -= 1
            if _process.depth == 0:
                _take_away()
                _process.bystanders = frozenset()


@contextmanager
def silence(*spared: type[Warning]) -> Iterator[None]:
    """Drop the warnings of this thread and of those that it starts, whatever filters there are.

    Parameters
    ----------
    *spared : type of Warning
        Categories that are treated as ever.
    """
    with _asking("ignore", spared):
        yield


@contextmanager
def warnings_as_errors() -> Iterator[None]:
    """Raise the warnings of this thread, and of no other."""
    with _asking("error", ()):
        yield


def attempted(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what foreign code makes of private records; None if it raises anything at all.

    What it raises may speak of a record, and so may that it ends the program. Whoever sits in front
    of the program may still interrupt it.
    """
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None
