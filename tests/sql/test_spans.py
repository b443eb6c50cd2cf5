"""Every node of a tree knows where it stands: its text, read again, gives the same node."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlglot import exp

from headwater.errors import Error, SqlSyntaxError
from headwater.sql import dialect, scripts
from headwater.sql.spans import has_span, span_of
from headwater.sql.statements.query import Query

CASES = sorted((Path(__file__).parent.parent / "cases").glob("*.sql"))
PLAIN = [
    "SELECT a + b * (c - 1) AS x, -y, NOT z, count(*) FILTER (WHERE a > 0) n FROM t AS q",
    "SELECT CASE WHEN a IS NULL THEN 'q' ELSE CAST(b AS STRING) END, first(c) IGNORE NULLS FROM t",
    "SELECT a BETWEEN 1 AND 2, b NOT IN (1, 2), c LIKE '%x' ESCAPE '!', d::INT, m['k'], s.f[1] FROM t",
    "SELECT sum(v) OVER (PARTITION BY k ORDER BY o DESC NULLS LAST) r FROM t WINDOW w AS (ORDER BY b)",
    "WITH c AS (SELECT 1 AS x), d AS (SELECT 2) SELECT * FROM c JOIN d ON c.x = d.y LEFT SEMI JOIN e "
    "USING (k) WHERE EXISTS (SELECT 1 FROM z WHERE z.k = c.k) AND a > (SELECT max(b) FROM y)",
    "SELECT a FROM t UNION ALL SELECT b FROM u WHERE x IN (1) ORDER BY 1 LIMIT 3 OFFSET 2",
    "SELECT DATE '2020-01-01', INTERVAL 3 DAYS, TIMESTAMP '2020-01-01 00:00:00' - INTERVAL '1' DAY",
    "SELECT k, date_trunc('day', t) d, grouping(k) FROM t GROUP BY ROLLUP (k, date_trunc('day', t)) "
    "HAVING sum(v) > 3 AND NOT bool_or(w) ORDER BY d DESC",
    "SELECT transform(xs, x -> x + 1), aggregate(xs, 0, (a, b) -> a + b) FROM t LATERAL VIEW explode(xs) e "
    "AS x",
    "SELECT struct(a, b), named_struct('x', a) FROM t",
    "SELECT a /* why */ + b -- because\n FROM t TABLESAMPLE (10 PERCENT) x",
]


def texts_of_cases() -> list[str]:
    found = []
    for path in CASES:
        for piece in path.read_text().split(";"):
            lines = [
                ln for ln in piece.splitlines() if not ln.lstrip().startswith(("--", "|", "#"))
            ]
            text = "\n".join(lines).strip()
            try:
                statements = [asked.statement() for asked in scripts.read(text)]
            except Error:
                continue
            found += [s.text for s in statements if isinstance(s, Query) and s.tree is not None]
    return found


@pytest.mark.parametrize("text", PLAIN)
def test_a_piece_of_text_read_again_is_the_same_node(text: str) -> None:
    check(text)


def test_pieces_of_all_cases() -> None:
    texts = texts_of_cases()
    assert len(texts) > 200
    for text in texts:
        check(text)


def check(text: str) -> None:
    read = dialect.parse_tree(text)
    assert not isinstance(read, SqlSyntaxError), read
    blanked = without_clauses(text)
    for node in read.walk():
        if is_expression(node) and has_span(node):
            piece = span_of(node).of(blanked)
            again = again_read(piece, node)
            assert again == node, (type(node).__name__, piece)


# What sqlglot makes up around a piece of text: map(1, 2) becomes two arrays, 1L a cast of a literal.
MADE_UP = exp.TsOrDsToDate | exp.PropertyEQ | exp.Array


def is_expression(node: exp.Expr) -> bool:
    """Whether a node can stand alone; a part of CASE, WINDOW, INTERVAL, PIVOT or a lambda cannot."""
    parts = exp.Identifier | exp.DataType | exp.Star | exp.Var | exp.If | exp.IntervalSpan
    if not isinstance(node, exp.Condition) or isinstance(node, parts | MADE_UP):
        return False
    if isinstance(node, exp.Literal) and isinstance(node.parent, exp.Cast):
        return False
    if isinstance(node, exp.Anonymous) and isinstance(node.parent, exp.Table):
        return False  # TUMBLE(t, …): a table is read there, as nowhere else
    if isinstance(node, exp.Window) and isinstance(node.parent, exp.Select):
        return False
    apart = isinstance(node.parent, exp.Dot | exp.Interval)
    return not apart and node.find_ancestor(exp.Lambda, exp.Pivot) is None


def again_read(piece: str, node: exp.Expr) -> exp.Expr | None:
    read = dialect.parse_tree(f"SELECT {piece}")
    assert not isinstance(read, SqlSyntaxError), (type(node).__name__, piece)
    return read.expressions[0]


def without_clauses(text: str) -> str:
    from headwater.sql.statements.query import make_query
    from headwater.sql.text import EditedText

    blanked = EditedText(text)
    for span in make_query(text).spans:
        blanked.replace(span.start, span.end, re.sub(r"[^\n]", " ", span.of(text)))
    return blanked.text


@pytest.mark.parametrize(
    ("text", "selects"),
    [
        (
            "SELECT a FROM t UNION ALL SELECT b FROM u ORDER BY 1",
            ["SELECT a FROM t", "SELECT b FROM u"],
        ),
        (
            "WITH c AS (SELECT 1) SELECT a FROM c EXCEPT (SELECT b FROM u LIMIT 2) UNION SELECT 3 LIMIT 1",
            ["SELECT 1", "SELECT a FROM c", "SELECT b FROM u LIMIT 2", "SELECT 3"],
        ),
    ],
)
def test_selects_of_a_union_stand_apart(text: str, selects: list[str]) -> None:
    read = dialect.parse_tree(text)
    assert not isinstance(read, SqlSyntaxError)
    assert sorted(span_of(s).of(text) for s in read.find_all(exp.Select)) == sorted(selects)


@pytest.mark.parametrize("text", PLAIN)
def test_a_node_holds_its_parts(text: str) -> None:
    read = dialect.parse_tree(text)
    assert not isinstance(read, SqlSyntaxError)
    for node in read.walk():
        for part in node.iter_expressions():
            if has_span(part) and has_span(node):
                assert span_of(node).start <= span_of(part).start
                assert span_of(part).end <= span_of(node).end
