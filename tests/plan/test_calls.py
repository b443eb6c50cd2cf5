"""Which functions a text may call, however they are written."""

from __future__ import annotations

import pytest

from headwater.plan.calls import VARYING, called, calls_of
from headwater.sql.statements.query import make_query


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


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("SELECT CASE WHEN sum(v) > 3 THEN 1 ELSE max(w) END FROM s", ["SUM(v)", "MAX(w)"]),
        ("SELECT f(a)::INT, h(g(b), 2) FROM s", ["F(a)", "H(g(b), 2)", "G(b)"]),
        ("SELECT count(*) FILTER (WHERE a > 0), first(b) IGNORE NULLS, count(DISTINCT c, d) FROM s",
         ["COUNT(*)", "FIRST(b)", "COUNT(c, d)"]),
        ("SELECT sum(a) OVER (ORDER BY b), x IN (1), NOT (y), current_date FROM s",
         ["SUM(a)", "CURRENT_DATE()"]),
    ],
)  # fmt: skip
def test_calls_of_a_query(text: str, calls: list[str]) -> None:
    found = []
    for call in calls_of(make_query(text)):
        arguments = "*" if call.star else ", ".join(span.of(text) for span in call.arguments)
        found.append(f"{call.name}({arguments})")
    assert found == calls
