"""Names in a text, and parameters filled into it."""

from __future__ import annotations

import pytest

from headwater.errors import BindError
from headwater.sql.identifiers import cte_names, identifiers
from headwater.sql.parameters import bind, parameter_count, substitute
from headwater.sql.text import Span


def test_identifiers_are_lower_case_and_dotted() -> None:
    found = identifiers("SELECT A.b FROM headwater.`Tables` JOIN `x y`.z.w ON 'str' = a -- c")
    assert {"a", "b", "a.b", "headwater.tables", "tables", "x y", "x y.z", "x y.z.w"} <= found
    assert "str" not in found
    assert "c" not in found
    assert identifiers("a b c", Span(2, 3)) == {"b"}


def test_cte_names() -> None:
    assert cte_names("WITH a AS (SELECT 1), b(x, y) AS (SELECT 2) SELECT 1 AS c") == {"a", "b"}


def test_substitute_replaces_bare_names_only() -> None:
    text = "INSERT INTO t SELECT x, t.x, x(1), x.y, 'x', `X` AS x FROM u"
    edited = substitute(text, {"x": "(5)"})
    assert edited.text == "INSERT INTO t SELECT (5), t.x, x(1), x.y, 'x', (5) AS x FROM u"


def test_bind_fills_in_numbered_and_unnumbered_parameters() -> None:
    assert bind("SELECT $2, '$1', $1", ["1", "'a'"]).text == "SELECT 'a', '$1', 1"
    assert bind("VALUES (?, ?)", ["1", "NULL"]).text == "VALUES (1, NULL)"
    assert (parameter_count("$3 $1"), parameter_count("? ?"), parameter_count("a")) == (3, 2, 0)
    with pytest.raises(BindError, match="no value"):
        bind("SELECT $2", ["1"])
