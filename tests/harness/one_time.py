"""Who answers one-time queries in a test: Spark, which is the judge, or operators, as for users.

What is kept by operators must not be compared with an answer of the same operators, so Spark answers all
one-time queries of the suite (`select_rows` = 0), but for the tests that are about what users see.
HEADWATER_SELECT_ROWS in the environment decides for all tests.
"""

from __future__ import annotations

import os

import pytest

VARIABLE = "HEADWATER_SELECT_ROWS"
AS_USERS = ("tests/test_cases.py", "tests/execute/test_by_operators.py")

_asked = os.environ.get(VARIABLE)  # for the whole run


def choose(item: pytest.Item) -> None:
    """Decides for the databases that a test opens, and those of its fixtures."""
    if _asked is not None:
        return
    if item.nodeid.startswith(AS_USERS):
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = "0"
