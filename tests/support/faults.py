"""Inputs with a fault, that hold a private number, name or place: nothing of it may be told."""

from decimal import Decimal

import numpy as np
import pandas as pd
from scipy import sparse

from tests.support.registry import N_FAULTY, N_RECORDS, NAME, NUMBER, ROW, SURVIVAL


class Tongue:
    """A value that speaks of itself whatever it is asked."""

    def _speak(self, *args):
        raise RuntimeError(f"I am {NAME} in row {ROW}, and {NUMBER}")

    __float__ = __int__ = __index__ = __bool__ = __array__ = __len__ = __hash__ = __eq__ = _speak
    __lt__ = __gt__ = __iter__ = _speak

    def __repr__(self):
        return f"<{NAME} {NUMBER}>"


class Whisper(float):
    """A number that can be used, and fails to be compared or copied."""

    def __eq__(self, other):
        raise ValueError(f"{NAME} is {NUMBER}")

    __lt__ = __gt__ = __le__ = __ge__ = __eq__
    __hash__ = float.__hash__


#: What may stand in the place of one value.
CELLS = {
    "NaN": np.nan,
    "infinity": np.inf,
    "less than nothing": -NUMBER,
    "text of a number": f"{NUMBER}",
    "text of a number and a unit": f"{NUMBER} mg",
    "a name": NAME,
    "bytes": NAME.encode(),
    "None": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "a list": [NUMBER, NAME],
    "an array": np.array([NUMBER, 1.0]),
    "a dict": {NAME: NUMBER},
    "a set": {NAME},
    "a tuple": (NAME, NUMBER),
    "a complex number": NUMBER + 1j,
    "a date": np.datetime64("7654-03-21"),
    "a day": pd.Timestamp("1765-04-03"),
    "a huge integer": 7654 * 10**400,
    "a decimal": Decimal("7654.321"),
    "no decimal": Decimal("sNaN7654321"),
    "a tongue": Tongue(),
    "a whisper": Whisper(NUMBER),
    "a class": Tongue,
    "a boolean": np.True_,
    "a nested array": np.array([[NUMBER]]),
}


#: Cells that fail in their own words when they are used.
SPEAKING = ("a tongue", "a whisper", "a class", "no decimal")


def with_cell(X, value):
    """Return an array of objects with one more value, beside a private number."""
    X = X.astype(object)
    row = X[ROW] if X.ndim == 2 else X[ROW : ROW + 1]
    row[0] = value
    if X.ndim == 2:
        row[1] = NUMBER
    return X


def faulty_matrices(X):
    """Yield X with a fault; X of shape (n, d), or (n,) where a fit takes durations."""
    if isinstance(X, pd.DataFrame) and any(X[name].dtype == object for name in X):
        yield from _faulty_frames(X)
        return
    X = np.asarray(X.iloc[:, :2] if isinstance(X, pd.DataFrame) else X, dtype=float).copy()
    X[ROW] = NUMBER
    yield from _faulty_numbers(X)
    yield from ((f"{name} in X", with_cell(X, value)) for name, value in CELLS.items())
    yield from _other_containers(X)


def _faulty_frames(X):
    """Yield raw rows with a fault in each of their columns in turn."""
    for j, column in enumerate(X):
        cells = {**CELLS, "infinity": np.inf, "another word": NAME, "a number": NUMBER}
        for name, value in cells.items():
            faulty = X.copy()
            values = [value if row == ROW else one for row, one in enumerate(X[column])]
            faulty[column] = np.fromiter(values, dtype=object, count=len(values))
            yield f"{name} in column {j}", faulty
    yield "no column", X.iloc[:, 1:]
    yield "another column", X.assign(other=NUMBER)
    yield "a column twice", pd.concat([X, X.iloc[:, :1]], axis=1)
    yield "columns in another order", X.iloc[:, ::-1]
    yield "an array", np.where(np.arange(len(X))[:, None] == ROW, NUMBER, X.to_numpy())


def _faulty_numbers(X):
    for value in (np.nan, np.inf, -np.inf):
        faulty = X.copy()
        faulty.reshape(len(X), -1)[ROW, 0] = value
        yield f"{value} among floats", faulty
    faulty = X.copy()
    faulty[-N_FAULTY:] = np.nan
    yield "many NaN", faulty
    yield "complex numbers", X + NUMBER * 1j
    yield "words", np.full(X.shape, NAME)
    for kind in (str, "datetime64[s]", "timedelta64[s]"):
        yield f"numbers as {kind}", X.astype(kind)
    yield "numbers as bytes", X.astype(str).astype("S")
    yield "long doubles beyond doubles", X.astype(np.longdouble) * np.longdouble("1e4000")
    yield "masked", np.ma.MaskedArray(X, mask=X == NUMBER)
    yield "voids", np.zeros(X.shape, dtype="V8")


def _other_containers(X):
    rows = X.reshape(len(X), -1)
    yield "a row too few", X[:-1]
    yield "no row", X[:0]
    yield "three dimensions", rows[:, :, None]
    yield "one dimension", rows[:, 0]
    yield "no column", rows[:, :0]
    yield "one row", X[ROW : ROW + 1]
    ragged = rows.tolist()
    ragged[ROW] = [NUMBER]
    yield "ragged", ragged
    yield "ragged objects", np.array([np.array(row) for row in ragged], dtype=object)
    yield "sparse", sparse.csr_matrix(rows)
    yield "a number", NUMBER
    yield "a word", NAME
    yield "nothing", None
    yield "a dict of columns", {NAME: rows[:, 0]}
    yield "a set of numbers", {NUMBER}
    yield "an iterator", iter(rows)
    yield "records", np.array([(NUMBER, NAME)] * len(X), dtype=[("dose", "f8"), ("name", "U20")])
    frame = pd.DataFrame(rows, columns=[f"c{j}" for j in range(rows.shape[1])])
    named = frame.set_axis([f"{NAME} {i}" for i in range(len(frame))])
    named.iloc[ROW, 0] = np.nan
    yield "a frame by name with NaN", named
    yield "a frame of words", frame.astype(object).where(frame != NUMBER, NAME)
    yield "a frame with NA", frame.where(frame != NUMBER, np.nan).astype("Float64")
    yield "a frame of categories", frame.round(1).astype("category")
    yield "a frame of dates", frame.assign(c0=pd.Timestamp("1765-04-03"))
    yield "a frame of text", frame.astype("string")
    yield "a frame with columns of one name", frame.set_axis(["c"] * rows.shape[1], axis=1) * np.nan
    names = [str(j) for j in range(rows.shape[1])]
    yield "a frame with mixed names", frame.set_axis([0, *names[1:]], axis=1)
    levels = pd.MultiIndex.from_tuples([("a", name) for name in names])
    yield "a frame with two levels", frame.set_axis(levels, axis=1)


def faulty_targets(y):
    """Yield y with a fault, be it of times, events, labels or numbers."""
    for name, value in CELLS.items():
        faulty = np.empty(N_RECORDS, dtype=object)
        faulty[:] = list(_plain(y))
        faulty[ROW] = value
        yield f"{name} in y", faulty
    column = np.array([float(v) if isinstance(v, float | int) else 1.0 for v in _plain(y)])
    column[ROW] = NUMBER
    yield "y: numbers", column
    yield from ((f"y: {name}", faulty) for name, faulty in _faulty_numbers(column))
    yield from ((f"y: {name}", faulty) for name, faulty in _other_containers(column))
    yield "y: a series by name", pd.Series(column, index=[f"{NAME} {i}" for i in range(N_RECORDS)])
    yield "y: categories", pd.Categorical([NAME if v == NUMBER else "a" for v in column])
    yield "y: two columns", np.column_stack([column, column])
    yield from ((f"y: {name}", faulty) for name, faulty in _faulty_structures())


def _plain(y):
    values = np.asarray(y)
    return (values["time"] if values.dtype.names else values).tolist()


def _faulty_structures():
    good = np.zeros(N_RECORDS, dtype=SURVIVAL)
    good["time"] = 1.0
    for value in (np.nan, np.inf, -NUMBER):
        faulty = good.copy()
        faulty["time"][ROW] = value
        yield f"a time of {value}", faulty
    for kinds in ("f8,f8", "U20,f8", "?,U20", "O,O", "?,c16", "?,M8[s]", "?,?"):
        event, time = kinds.split(",")
        faulty = np.zeros(N_RECORDS, dtype=[("event", event), ("time", time)])
        row = [{"U": NAME, "?": True}.get(kind[0], 7654) for kind in (event, time)]
        faulty[ROW] = (Tongue(), Whisper(-NUMBER)) if kinds == "O,O" else tuple(row)
        yield f"fields of {kinds}", faulty
    yield "three fields", np.zeros(N_RECORDS, dtype=[*SURVIVAL.descr, ("name", "U20")])
    yield "one field", np.zeros(N_RECORDS, dtype=SURVIVAL.descr[:1])
    yield "fields of arrays", np.zeros(N_RECORDS, dtype=[("event", "?"), ("time", "f8", (2,))])
    yield "masked structures", np.ma.array(good, mask=[i == ROW for i in range(N_RECORDS)])
    yield "tuples", [(True, NUMBER)] * N_RECORDS
    yield "a frame of events and times", pd.DataFrame(good)
    yield "records too few", good[:-1]
