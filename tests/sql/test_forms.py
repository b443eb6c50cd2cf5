"""Texts that differ in their values only have one form; a query known by it is the one that is read."""

from __future__ import annotations

import pytest

from headwater.sql.forms import MOST_VALUES, form_of
from headwater.sql.lexer import tokenize
from headwater.sql.statements.query import Query, Shared, make_query, share


@pytest.mark.parametrize(
    ("text", "form", "values"),
    [
        ("SELECT a FROM t WHERE a = 5", "SELECT a FROM t WHERE a = $1 ", ("5",)),
        (
            "SELECT a FROM t WHERE a IN (5,'x') AND b BETWEEN 1 AND 2 LIMIT 3",
            "SELECT a FROM t WHERE a IN ( $1 , $2 ) AND b BETWEEN $3 AND $4 LIMIT 3 ",
            ("5", "'x'", "1", "2"),
        ),
        ("SELECT a FROM t WHERE a < 'it''s'", "SELECT a FROM t WHERE a < $1 ", ("'it''s'",)),
    ],
)
def test_forms(text: str, form: str, values: tuple[str, ...]) -> None:
    found = form_of(tokenize(text))
    assert found is not None
    assert (found[0].text, found[1]) == (form, values)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t",
        "SELECT a FROM t WHERE d = DATE '2024-01-01' LIMIT 5",
        "SELECT a FROM t WHERE a = -5 ORDER BY 1",
        "SELECT a FROM t WHERE a = 5L OR a = 1.5 OR a = 1e3",
        "SELECT a FROM t WHERE a = r'x' OR a = \"x\" OR a = 'a\\nb'",
        "VALUES (1), (2)",
        f"SELECT a FROM t WHERE a IN ({', '.join(map(str, range(MOST_VALUES + 1)))})",
    ],
)
def test_what_is_a_part_of_the_form(text: str) -> None:
    assert form_of(tokenize(text)) is None


def known(text: str) -> Query:
    """The query of a text after others of its form were plain scans."""
    for value in ("101", "102"):
        share(make_query(text.replace("7", value)))
    return make_query(text)


def test_a_query_known_by_its_form_is_the_one_that_is_read() -> None:
    """Its names have the places of its own text."""
    text = "SELECT  x.a\nFROM `some t` /* why */ AS x WHERE x.a = 7 AND 'b' = x.b"
    read = make_query(text)
    found = known(text)
    assert read.shared is None
    assert found.shared is not None
    assert found.shared.values == ("7", "'b'")
    assert found == read
    assert found.table_references == read.table_references
    assert found.is_plain
    assert [r.name.span for r in found.relations] == [r.name.span for r in read.relations]
    assert [r.alias and r.alias.span for r in found.relations] == [
        r.alias and r.alias.span for r in read.relations
    ]
    assert found.tree == read.tree
    assert found.tree_error is None


def test_what_reads_otherwise_is_no_form() -> None:
    """Hints are no tokens; and two strings beside each other are one."""
    assert known("SELECT /*+ BROADCAST(t) */ a FROM t WHERE a = 7").shared is None
    assert known("SELECT a FROM t WHERE a = 7").shared is not None
    assert known("SELECT /*+ BROADCAST(t) */ a FROM t WHERE a = 7").shared is None
    assert not isinstance(known("SELECT a FROM t WHERE a = 'x' '7'").known, Shared)
