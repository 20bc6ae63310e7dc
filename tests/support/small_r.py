"""As much of R as formulas are written in, and not a word more: all else is an error."""

from __future__ import annotations

import re
from datetime import datetime

import numpy as np
from scipy import special

TOKENS = re.compile(
    r"""(?P<space>[ \t]+|\#[^\n]*)|(?P<newline>\n)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)
    |(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<word>\.\.\.|[A-Za-z][A-Za-z0-9._]*)
    |(?P<sign><-|<=|>=|==|%\*%|%in%|[-+*/^:!&<>=()\[\]{},])""",
    re.VERBOSE,
)
#: Binary operators, loosest first; all of them from the left, but ^.
LEVELS = [("&",), ("!",), ("==", "<", "<=", ">", ">="), ("+", "-"), ("*", "/"), ("%*%", "%in%")]
LEVELS += [(":",), ("negative",), ("^",)]
CONSTANTS = {"TRUE": True, "FALSE": False, "Inf": np.inf}


def tokens_of(code):
    """Cut code into tokens; line ends count where no round or square bracket is open."""
    place, found, open_ = 0, [], []
    while place < len(code):
        match = TOKENS.match(code, place)
        assert match, f"no R: {code[place : place + 40]!r}"
        kind, text, place = match.lastgroup, match.group(), match.end()
        if text in ("(", "[", "{") and kind == "sign":
            open_.append(text)
        elif text in (")", "]", "}") and kind == "sign":
            assert open_.pop() + text in ("()", "[]", "{}")
        if kind == "newline" and not (open_ and open_[-1] != "{"):
            found.append(("newline", ";"))
        elif kind not in ("space", "newline"):
            found.append((kind, text))
    assert not open_
    return [*found, ("newline", ";"), ("end", "")]


def string_of(text):
    """Return what stands in quotes."""
    escapes = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}

    def plain(match):
        spelled = match.group(1)
        return escapes[spelled] if len(spelled) == 1 else chr(int(spelled[1:], 16))

    return re.sub(r"\\(u[0-9a-f]{4}|U[0-9a-f]{8}|.)", plain, text[1:-1])


class Parser:
    """Recursive descent."""

    def __init__(self, code):
        self.tokens, self.place = tokens_of(code), 0

    @property
    def next(self):
        return self.tokens[self.place][1] if self.tokens[self.place][0] != "string" else ""

    def take(self, expected=None):
        kind, text = self.tokens[self.place]
        assert expected is None or text == expected, (expected, self.tokens[self.place :][:5])
        self.place += 1
        return kind, text

    def skip(self, text):
        while self.next == text:
            self.take()

    def block(self, end):
        statements = []
        self.skip(";")
        while self.next != end:
            statements.append(self.statement())
            assert self.next in (";", end), self.tokens[self.place :][:5]
            self.skip(";")
        self.take(end)
        return ("block", statements)

    def statement(self):
        left = self.binary(0)
        if self.next != "<-":
            return left
        self.take()
        return ("assign", left, self.statement())

    def binary(self, level):
        signs = LEVELS[level]
        if signs == ("!",):
            return self.unary("!", level)
        if signs == ("negative",):
            return self.unary("-", level)
        if signs == ("^",):
            left = self.postfix()
            if self.next == "^":
                self.take()
                left = ("^", left, self.binary(level - 1))
            return left
        left = self.binary(level + 1)
        while self.next in signs:
            _, sign = self.take()
            self.skip(";")
            left = (sign, left, self.binary(level + 1))
        return left

    def unary(self, sign, level):
        if self.next == sign:
            self.take()
            return (f"unary {sign}", self.unary(sign, level))
        return self.binary(level + 1)

    def postfix(self):
        value = self.atom()
        while self.next in ("(", "["):
            _, bracket = self.take()
            if bracket == "(":
                value = ("call", value, self.arguments(")"))
            elif self.next == "[":
                self.take()
                (key,) = self.arguments("]")
                self.take("]")
                value = ("item", value, key)
            else:
                rows, columns, keep = self.arguments("]")
                assert keep == ("named", "drop", ("constant", False))
                value = ("index", value, rows, columns)
        return value

    def arguments(self, end):
        found = []
        while self.next != end:
            if self.next == ",":
                found.append(None)
            elif self.tokens[self.place + 1][1] == "=":
                name = self.take()[1]
                self.take("=")
                found.append(("named", name, self.statement()))
            else:
                found.append(self.statement())
            if self.next != end:
                self.take(",")
                assert self.next != end  # no comma at the end
        self.take(end)
        return found

    def atom(self):
        kind, text = self.take()
        if kind == "number":
            return ("constant", float(text))
        if kind == "string":
            return ("constant", string_of(text))
        if text == "(":
            value = self.statement()
            self.take(")")
            return value
        if text == "{":
            return self.block("}")
        assert kind == "word", (kind, text)
        if text in CONSTANTS:
            return ("constant", CONSTANTS[text])
        if text == "function":
            self.take("(")
            names = [argument[1] for argument in self.arguments(")")]
            return ("function", names, self.statement())
        return ("word", text)


def vector(*values):
    """Return what c() makes: all numbers, all text or all truth values."""
    parts = [np.atleast_1d(value) for value in values]
    assert len({part.dtype.kind for part in parts}) == 1
    return np.concatenate(parts)


def columns(*values):
    """Return what cbind() makes; a single number fills its column."""
    parts = [value if np.ndim(value) == 2 else np.atleast_1d(value)[:, None] for value in values]
    rows = max(part.shape[0] for part in parts)
    assert all(part.shape[0] in (1, rows) and part.dtype.kind in "fib" for part in parts)
    return np.hstack([np.broadcast_to(part, (rows, part.shape[1])) for part in parts]).astype(float)


def alike(*values):
    """Let vectors be as R does: of one length, or of length 1; a vector goes down a matrix."""
    parts = [np.atleast_1d(value) for value in values]
    if any(part.ndim == 2 for part in parts):
        parts = [p[:, None] if p.ndim == 1 and p.size > 1 else p for p in parts]
    assert len({len(part) for part in parts} - {1}) < 2
    return parts


def missing(value):
    value = np.atleast_1d(value)
    if value.dtype.kind == "O":
        return np.array([entry is None or entry != entry for entry in value])
    return np.isnat(value) if value.dtype.kind == "M" else np.isnan(value)


def dates(value, form=("%Y-%m-%d",)):
    def read(day):
        try:
            return datetime.strptime(str(day)[:10], form[0])
        except ValueError:
            return "NaT"

    return np.array([read(day) for day in np.atleast_1d(value)], dtype="M8[D]")


def written(value):
    value = np.atleast_1d(value)
    return np.where(missing(value), None, value.astype(str).astype(object))


def matches(pattern, value):
    (found,) = map(re.compile, pattern)
    return np.array([entry is not None and bool(found.search(entry)) for entry in value])


def numeric(value):
    value = np.asarray(value)
    if value.dtype.kind == "m":
        return np.where(np.isnat(value), np.nan, value / np.timedelta64(1, "D"))
    assert value.dtype.kind in "fib"
    return value.astype(float)


def stop_if_not(*values):
    assert all(np.all(value) for value in values), "stopifnot"


def folded(fold):
    def parallel(first, *others):
        for other in others:
            first = fold(*alike(first, other))
        return first

    return parallel


def among(value, table):
    table = np.atleast_1d(table).tolist()
    return np.array([entry in table for entry in np.atleast_1d(value).tolist()])


def per_row(values, function, like):
    rows = [function(np.atleast_1d(value)) for value in np.atleast_1d(values)]
    assert all(row.shape == like.shape for row in rows)
    return np.array(rows).reshape(len(rows), like.size).T


def logistic(q, location=0.0, scale=1.0, lower=True, log=False):
    assert (location, scale, lower) == (0.0, 1.0, True)
    return special.log_expit(q) if log else special.expit(q)


FUNCTIONS = {
    "c": vector,
    "cbind": columns,
    "list": lambda *values: list(values),
    "lapply": lambda values, function: [function(value) for value in values],
    "do.call": lambda function, values: function(*values),
    "vapply": per_row,
    "numeric": lambda n: np.zeros(int(np.squeeze(n))),
    "rep": lambda value, n: np.repeat(value, int(np.squeeze(n))),
    "nrow": lambda x: np.array([float(len(next(iter(x.values()))))]),
    "names": lambda x: np.array(list(x), dtype=object),
    "stopifnot": stop_if_not,
    "ifelse": lambda test, yes, no: np.where(*alike(test, yes, no)),
    "is.na": missing,
    "as.numeric": numeric,
    "as.Date": dates,
    "as.character": written,
    "format": written,
    "grepl": matches,
    "as.vector": lambda value: np.ravel(value, order="F"),
    "t": np.transpose,
    "pmin": folded(np.minimum),
    "pmax": folded(np.maximum),
    "rowSums": lambda matrix: matrix.sum(axis=1),
    "cumprod": np.cumprod,
    "findInterval": lambda x, grid: np.searchsorted(grid, x, side="right").astype(float),
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "plogis": logistic,
    "pnorm": special.ndtr,
}
OPERATORS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "^": np.power,
    "&": np.logical_and,
    "==": np.equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class Scope:
    """Names, and those around them."""

    def __init__(self, around=None, **names):
        self.around, self.names = around, names

    def find(self, name, callable_only=False):
        if name in self.names and (callable(self.names[name]) or not callable_only):
            return self.names[name]
        assert self.around is not None, f"{name} is not known"
        return self.around.find(name, callable_only)

    def run(self, node):
        kind, *rest = node
        method = getattr(self, kind, None) if kind.isidentifier() else None
        if method is not None:
            return method(*rest)
        values = [self.run(part) for part in rest]
        if kind == "unary -":
            return np.negative(*values)
        if kind == "unary !":
            return np.logical_not(*values)
        if kind == "%*%":
            return values[0] @ values[1][:, None]
        if kind == "%in%":
            return among(*values)
        if kind == ":":
            first, last = (float(np.squeeze(value)) for value in values)
            return np.arange(first, last + 1)
        return OPERATORS[kind](*alike(*values))

    def constant(self, value):
        return np.array([value], dtype=object if isinstance(value, str) else None)

    def word(self, name):
        return self.find(name)

    def block(self, statements):
        value = None
        for statement in statements:
            value = self.run(statement)
        return value

    def assign(self, target, value):
        value = self.run(value)
        if target[0] == "call":  # names of columns, which are kept nowhere
            assert target[1] == ("word", "colnames")
            (matrix,) = target[2]
            assert self.run(matrix).shape[1] == len(value)
        else:
            assert target[0] == "word"
            self.names[target[1]] = value
        return value

    def function(self, names, body):
        def called(*values):
            if names == ["..."]:
                return Scope(self, **{"...": values}).run(body)
            return Scope(self, **dict(zip(names, values, strict=True))).run(body)

        return called

    def call(self, function, arguments):
        known = function[0] == "word"
        value = self.find(function[1], callable_only=True) if known else self.run(function)
        values = []
        for argument in arguments:
            if argument == ("word", "..."):
                values += self.find("...")
            else:
                values.append(self.run(argument))
        return value(*values)

    def item(self, frame, name):
        return self.run(frame)[self.run(name)[0]]

    def index(self, matrix, rows, places):
        value = self.run(matrix)
        for axis, chosen in enumerate((rows, places)):
            if chosen is not None:
                value = np.take(value, self.run(chosen).astype(int) - 1, axis=axis)
        return value


def functions_of(code):
    """Run R code, and return the functions that it defines."""
    scope = Scope(Scope(**FUNCTIONS))
    scope.run(Parser(code).block(""))
    return scope.names
