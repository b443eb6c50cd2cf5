"""Every clause of docs/GUARANTEES.md names a test, and every test it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "GUARANTEES.md").read_text()
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def clauses() -> list[str]:
    """The text of each clause, from its number to the next heading or clause."""
    return re.split(r"^(?=\*\*G\d+\.|## )", TEXT, flags=re.MULTILINE)


def test_clauses_are_numbered_without_gaps() -> None:
    numbers = [int(n) for n in re.findall(r"^\*\*G(\d+)\.", TEXT, flags=re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 10


def test_every_clause_names_a_test_that_exists() -> None:
    for clause in clauses():
        if not clause.startswith("**G"):
            continue
        found = TEST.findall(clause)
        assert found, f"no test: {clause[:60]}"
        for path, name in found:
            tree = ast.parse((ROOT / path).read_text())
            names = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
            assert name in names, f"{path} has no {name}"
