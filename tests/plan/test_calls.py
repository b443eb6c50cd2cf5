"""Which functions a text may call, however they are written."""

from __future__ import annotations

import pytest

from headwater.plan.calls import VARYING, called


@pytest.mark.parametrize(
    "text",
    [
        "SELECT now() FROM v",
        "SELECT `now`() FROM v",
        "SELECT system.builtin.now () FROM v",
        "SELECT Current_Date FROM v",
        "SELECT localtime FROM v",
        "SELECT TIMESTAMP 'now' FROM v",
        "SELECT CAST(' Today UTC' AS DATE) FROM v",
        "SELECT to_timestamp(r'now') FROM v",
        'SELECT DATE "yesterday" FROM v',
        "SELECT `rand`(), k FROM v",
        "SELECT reflect('java.lang.System', 'nanoTime') FROM v",
        "SELECT IDENTIFIER('ra' || 'nd')() FROM v",
    ],
)
def test_what_varies_is_seen_in_every_spelling(text: str) -> None:
    """Time, chance and Java: an answer with them is never that of the next time."""
    assert called(text) & VARYING


def test_columns_are_no_calls() -> None:
    """A column may have the name of a function; a text may hold such a word further on."""
    text = "SELECT uuid, `random`, count(*), concat('is now', x) FROM v WHERE now > 3"
    assert called(text) == {"COUNT", "CONCAT"}
