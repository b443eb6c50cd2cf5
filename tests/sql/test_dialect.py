"""sqlglot's view of a query."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headwater.errors import Error, SqlSyntaxError
from headwater.sql import dialect
from headwater.sql.literals import string_value


def tree(text: str) -> exp.Expr:
    found = dialect.parse_tree(text)
    assert not isinstance(found, SqlSyntaxError)
    return found


def test_window_function_in_group_by() -> None:
    group = tree("SELECT count(*) FROM t GROUP BY window(ts, '10 minutes')").find(exp.Group)
    assert group is not None
    assert group.expressions[0].name == "window"
    assert tree("SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY b)").args["windows"]


@pytest.mark.parametrize(
    "text", ["'it''s'", "'a\"b'", '"it\'s"', '"a""b"', "''", "'a''''b'", r"'a\'b'"]
)
def test_strings_read_as_spark_reads_them(text: str) -> None:
    found = tree(f"SELECT {text} AS x, 'y' AS z")
    assert [node.name for node in found.find_all(exp.Literal)] == [string_value(text), "y"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "DROP TABLE t",
        "SHOW x",
        "SELECT 1; SELECT 2",
        "SELECT * FROM",
        "SELECT 'a",
        "x",
    ],
)
def test_what_is_no_query_is_a_complaint(text: str) -> None:
    assert isinstance(dialect.parse_tree(text), SqlSyntaxError)


def test_complaints_have_a_place() -> None:
    text = "SELECT a\nFROM t WHERE )"
    error = dialect.parse_tree(text)
    assert isinstance(error, SqlSyntaxError)
    assert error.place is not None
    assert (error.place.line, text[error.place.start : error.place.end]) == (2, ")")


def test_compiled_sqlglot_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr(dialect.Headwater, "Parser", refuse)
    with pytest.raises(Error, match="compiled") as caught:
        dialect.probe()
    assert "uninstall sqlglotc" in (caught.value.hint or "")
