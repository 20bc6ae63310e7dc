"""Output is dropped until the last thread has left, and comes back then."""

import sys
import threading

from skdpsurv.dp.silent_output import silent_output


def test_threads_that_leave_in_another_order_than_they_came(capsys):
    before, entered, left = sys.stdout, threading.Event(), threading.Event()

    def other():
        with silent_output():
            entered.set()
            left.wait(10.0)
            print("a value of a record")

    thread = threading.Thread(target=other)
    with silent_output():
        thread.start()
        assert entered.wait(10.0)
        print("another value")
    print("while the other thread is inside")
    left.set()
    thread.join()
    assert sys.stdout is before
    print("after")
    assert capsys.readouterr().out == "after\n"


def test_an_error_gives_the_output_back():
    before = sys.stdout, sys.stderr
    try:
        with silent_output():
            raise ValueError
    except ValueError:
        pass
    assert (sys.stdout, sys.stderr) == before
