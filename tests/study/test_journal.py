"""Tests of the journal: durable lines that fit each other, and at most one that is torn."""

import json
import os

import pytest

from skdpsurv.study.journal import Journal


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal"


def write(path, *names):
    with Journal.writing(path) as journal:
        for name in names:
            journal.add("started", analysis=name, nonce="1")


def analyses(path):
    return [line["analysis"] for line in Journal(path).lines]


def test_lines_are_read_again(path):
    assert Journal(path).lines == []
    write(path, "a", "b")
    write(path, "c")
    assert analyses(path) == ["a", "b", "c"]
    journal = Journal(path)
    assert journal.last_of("b") == journal.lines[1]
    assert journal.last_of("d") is None
    assert len(journal.of("started")) == 3
    with pytest.raises(RuntimeError, match="not open"):
        journal.add("lost", analysis="a", nonce="1")


def test_a_torn_line_is_left_out_and_written_over(path):
    write(path, "a", "b")
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    for end in range(second, len(whole)):
        for tail in (b"", b"\0" * 9, b"\0" * 9 + b"\n"):
            path.write_bytes(whole[:end] + tail)
            assert analyses(path) == ["a"], (end, tail)
    for tail in (b"", b"\n"):
        path.write_bytes(whole[:-2] + tail)
        write(path, "c")
        assert analyses(path) == ["a", "c"]
    path.write_bytes(whole[: second - 1])
    assert analyses(path) == []


def test_any_other_line_that_does_not_fit_is_refused(path):
    write(path, "a", "b", "c")
    first, second, third = path.read_bytes().splitlines(keepends=True)
    other = json.dumps({**json.loads(first), "analysis": "d"}).encode() + b"\n"
    orders = (first + third + second, second + third, first + third + second[:-9])
    for text in (*orders, other + second + third, b"\n" + first):
        path.write_bytes(text)
        with pytest.raises(ValueError, match="does not fit those before it"):
            Journal(path)
    for text in (first + third, first + b"{}\n", first + b"[]\n", first + b"[" * 99_999 + b"\n"):
        path.write_bytes(text)
        assert analyses(path) == ["a"]


def test_two_do_not_write_at_once(path):
    with (
        Journal.writing(path),
        pytest.raises(BlockingIOError, match="in use by another"),
        Journal.writing(path),
    ):
        pass


def failing_sync(descriptor):
    raise OSError(28, "No space left on device")


def half_a_write(descriptor, data):
    return os.pwrite(descriptor, data[:9], 0)  # of a file to append to: at its end


@pytest.mark.parametrize(
    ("name", "fault", "says", "there"),
    [
        ("fsync", failing_sync, "No space", ["a", "b"]),  # it may be there: then it counts
        ("write", half_a_write, "is the disk full", ["a"]),
    ],
)
def test_nothing_is_added_after_a_failure(path, monkeypatch, name, fault, says, there):
    with Journal.writing(path) as journal:
        journal.add("started", analysis="a", nonce="1")
        with monkeypatch.context() as patched:
            patched.setattr(os, name, fault)
            with pytest.raises(OSError, match=says):
                journal.add("started", analysis="b", nonce="1")
        with pytest.raises(RuntimeError, match="not open"):
            journal.add("started", analysis="c", nonce="1")
        assert journal.lines[-1]["analysis"] == "a"
    assert analyses(path) == there


def test_a_folder_without_locks_is_not_said_to_be_in_use(tmp_path):
    path = tmp_path / "journal"
    path.with_name("journal.lock").mkdir()
    with pytest.raises(RuntimeError, match="could not be locked"), Journal.writing(path):
        pass
