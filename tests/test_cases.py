"""Runs the SQL cases of tests/cases/; the format is described in tests/harness/cases.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.cases import Case, read_cases, run_case

FILES = sorted(Path(__file__).with_name("cases").glob("*.sql"))
CASES = [
    pytest.param(case, id=f"{file.stem}: {case.name}")
    for file in FILES
    for case in read_cases(file)
]


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case) -> None:
    for block, found in run_case(case):
        assert found == block.expected, f"line {block.line}:\n{block.sql}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_case_names_are_distinct_and_nothing_is_left_open(file: Path) -> None:
    names = [case.name for case in read_cases(file)]
    assert len(set(names)) == len(names)
    assert "\n--?" not in file.read_text()
