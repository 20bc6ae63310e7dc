"""A thread is silent whatever other threads do, and they speak as ever."""

import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from skdpsurv.dp.thread_warnings import suppressed_warnings, warnings_as_errors
from skdpsurv.hybrid.meta_estimator import predicted_numbers


@pytest.fixture
def shown(monkeypatch):
    """What this process shows, of all that it is warned of."""
    texts: list[str] = []
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda *told, **_: texts.append(str(told[0])))
        yield texts


class Other:
    """A thread that does one thing after another, when told to."""

    def __init__(self):
        self.pool = ThreadPoolExecutor(1)
        self.does(lambda: None)

    def does(self, something):
        self.pool.submit(something).result(timeout=10)

    def warns(self):
        self.does(lambda: warnings.warn("other", UserWarning, stacklevel=1))


@pytest.fixture
def other():
    thread = Other()
    yield thread
    thread.pool.shutdown()


def warn(text="here"):
    warnings.warn(text, UserWarning, stacklevel=2)


def test_one_thread_is_silent_and_others_are_not(shown, other):
    with suppressed_warnings():
        warn()
        other.warns()
    warn()
    with suppressed_warnings(DeprecationWarning):  # some may be spared
        warn()
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert shown == ["other", "here", "old"]


def test_of_two_threads_neither_ends_the_silence_of_the_other(shown, other):
    """Whoever leaves first; the filters are gone with the last."""
    filters = list(warnings.filters)
    theirs = suppressed_warnings()
    with suppressed_warnings():
        other.does(theirs.__enter__)
    warn()
    other.warns()
    assert shown == ["here"]
    other.does(lambda: theirs.__exit__(None, None, None))
    other.warns()
    assert shown == ["here", "other"]
    assert warnings.filters == filters


@pytest.mark.parametrize("action", ["always", "default", "error"])
def test_filters_that_other_threads_set_do_not_undo_it(shown, other, action):
    theirs = warnings.catch_warnings()
    with suppressed_warnings():
        other.does(theirs.__enter__)
        if action != "error":
            other.does(lambda: warnings.simplefilter(action))
        warn()
        other.does(lambda: theirs.__exit__(None, None, None))
        warn()
    # What another thread restores is put right at the next entrance.
    theirs = warnings.catch_warnings()
    other.does(theirs.__enter__)
    with suppressed_warnings():
        other.does(lambda: theirs.__exit__(None, None, None))
        with suppressed_warnings():
            warn()
        warn()
    assert shown == []


def test_worker_processes_get_a_filter_that_holds_there(shown):
    """scikit-learn sends filters to the processes of inner estimators."""
    with suppressed_warnings():
        sent = pickle.dumps(warnings.filters)
    assert pickle.loads(sent)[0] == ("ignore", None, Warning, None, 0)


def test_what_was_hidden_is_shown_the_next_time(shown):
    """A filter "default" remembers what it has shown, and must not remember what it has not."""
    warnings.simplefilter("default")

    def once():
        warnings.warn("once", UserWarning, stacklevel=1)

    for _ in range(3):
        with suppressed_warnings():
            once()
    for _ in range(2):
        once()
    assert shown == ["once"]


def test_errors_are_those_of_one_thread(shown, other):
    with warnings_as_errors():
        other.warns()
        with pytest.raises(UserWarning, match="here"):
            warn()
        with suppressed_warnings():
            warn()
        warnings.simplefilter("always")  # put before it
        with pytest.raises(UserWarning, match="here"):
            warn()
    assert shown == ["other"]


def test_predictions_of_private_records_are_silent_in_threads(shown, other):
    """One thread begins within the other's predictions, and warns beyond their end."""
    entered, end = threading.Event(), threading.Event()

    class Model:
        def __init__(self, *wait):
            self.wait = wait

        def __deepcopy__(self, memo):
            return self

        def predict(self, X):
            for event in self.wait:
                entered.set()
                assert event.wait(10)
            warn()
            return np.zeros(len(X))

    first = threading.Thread(target=lambda: predicted_numbers(Model(end), np.zeros((1, 1))))

    class Second(Model):
        def predict(self, X):
            end.set()
            first.join()
            return super().predict(X)

    first.start()
    assert entered.wait(10)
    other.does(lambda: predicted_numbers(Second(), np.zeros((1, 1))))
    assert shown == []
