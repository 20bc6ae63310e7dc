"""Mutants of the modules on which privacy rests: small defects, one a place, drawn with a seed."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

_COMPARISONS = ("Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt")
_ARITHMETIC = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_Mul", "Pow_Mul")
#: Operators whose mutants run: those that only raise a TypeError say nothing of tests.
OPERATORS = tuple(
    f"core/{name}"
    for name in (
        *(f"ReplaceBinaryOperator_{pair}" for pair in _ARITHMETIC),
        *(f"ReplaceComparisonOperator_{pair}" for pair in _COMPARISONS),
        *(
            f"ReplaceComparisonOperator_{p}"
            for p in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")
        ),
        "ReplaceUnaryOperator_USub_UAdd",
        "ReplaceUnaryOperator_Delete_USub",
        "ReplaceUnaryOperator_Delete_Not",
        "AddNot",
        "ReplaceTrueWithFalse",
        "ReplaceFalseWithTrue",
        "ReplaceAndWithOr",
        "ReplaceOrWithAnd",
        "NumberReplacer",
        "ZeroIterationForLoop",
    )
)


@dataclass(frozen=True)
class Mutant:
    """One small defect of a module."""

    module: str
    definition: str
    operator: str
    occurrence: int
    line: int
    text: str
    #: The same for the same defect of the same line in another version of the code.
    key: str

    def applied_to(self, source: str) -> str:
        return mutate_code(source, get_operator(self.operator)(), self.occurrence)


def _unmutated(source: str) -> set[tuple[int, int]]:
    """Places that never run, or only to word an error: annotations, imports for types, raises."""
    spans = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            spans.append(node.annotation)
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            spans.append(node.returns)
        elif isinstance(node, ast.Raise) and node.exc is not None:
            spans.append(node.exc)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            spans.append(node)
    return {(span.lineno, span.col_offset, span.end_lineno, span.end_col_offset) for span in spans}


def _rank(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def mutants_of(module: str, source: str, seed: int) -> list[Mutant]:
    """Return one mutant for every place of a module that has any, drawn by the seed."""
    nodes, lines, skipped = (
        list(ast_nodes(get_ast(source))),
        source.splitlines(),
        _unmutated(source),
    )
    at: dict[tuple[int, int], list[Mutant]] = {}
    seen: Counter[str] = Counter()
    for name in OPERATORS:
        operator = get_operator(name)()
        places = ((node, start) for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (node, start) in enumerate(places):
            if any((a, b) <= start < (c, d) for a, b, c, d in skipped):
                continue
            definition, before = ASTQuery(node).get_definition_name() or "", lines[start[0] - 1]
            column = start[1] - len(before) + len(before.lstrip())
            text = f"{definition}|{name}|{before.strip()}|{column}"
            seen[text] += 1  # a number has two mutants, one more and one less
            key = _rank(f"{text}|{seen[text]}")[:12]
            mutant = Mutant(module, definition, name, occurrence, start[0], before.strip(), key)
            at.setdefault(start, []).append(mutant)
    return [min(same, key=lambda m: _rank(f"{seed}|{m.key}")) for same in at.values()]


def drawn(modules: dict[str, list[str]], root: Path, seed: int, n_mutants: int) -> list[Mutant]:
    """Return a sample of the modules' mutants, the same ones wherever the code is the same."""
    every = [m for name in modules for m in mutants_of(name, (root / name).read_text(), seed)]
    return sorted(every, key=lambda m: _rank(f"{seed}|{m.key}"))[:n_mutants]
