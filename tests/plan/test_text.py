"""Texts with slots: names of ours are put where they belong, and nowhere else."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headwater.plan.pieces import Rendering, Stand, column, value
from headwater.plan.text import INSTANT, RowsSlot, Slot, joined, spark_text
from headwater.sql.statements.query import make_query
from headwater.sql.text import Span


def test_a_name_is_not_replaced_within_a_longer_one() -> None:
    """Nor in a string, a quoted name or a comment."""
    folds = [RowsSlot("fold", number) for number in range(12)]
    selects = [spark_text(f"SELECT '{fold.name}' FROM ", fold, " ") for fold in folds]
    text = spark_text(joined(" UNION ALL ", selects), f" -- {folds[1].name}")
    names: dict[Slot, str] = {fold: f"{fold.name}_0" for fold in folds}
    found = text.fill(names=names)
    for fold in folds:
        assert found.count(f"FROM {fold.name}_0 ") == 1
        assert f"'{fold.name}'" in found
    assert found.endswith(f"-- {folds[1].name}")


def test_the_instant_is_not_replaced_in_a_string() -> None:
    """Only where it is called."""
    text = spark_text("SELECT ", INSTANT, f", '{INSTANT.name}', x_{INSTANT.name}")
    assert text.fill("5L") == f"SELECT 5L, '{INSTANT.name}', x_{INSTANT.name}"
    assert text.reads_instant
    assert not spark_text(f"'{INSTANT.name}'").reads_instant


def test_texts_are_equal_however_they_are_put_together() -> None:
    assert spark_text("a", "b", INSTANT, "") == spark_text(spark_text("ab"), INSTANT)
    assert spark_text("a") != spark_text("a", INSTANT)


@pytest.mark.parametrize(
    "text", ["ORDER BY x", "order\n by x", "ORDER /* rows */ BY x", "Sort\tBy x"]
)
def test_order_by_is_seen_as_words(text: str) -> None:
    """Across a line, a comment and cases."""
    tree = make_query(f"SELECT x FROM t {text}").tree
    assert tree is not None
    assert tree.find(exp.Order, exp.Sort) is not None


def test_a_piece_has_the_same_replacements_in_text_and_tree() -> None:
    query = make_query("SELECT a /* it */ + sum( b ) * 2, 'a' FROM t")
    first, other = Span(7, 8), Span(20, 28)
    stands = [Stand.of(first, column("_k0")), Stand.of(other, value(3))]
    rendering = Rendering(query.text, query.tree, stands)
    piece = rendering.piece(Span(7, 32))
    assert str(piece) == "_k0 /* it */ + _a3 * 2"
    assert piece.node is not None
    assert piece.node.sql(comments=False) == "_k0 + _a3 * 2"


def test_of_nested_replacements_the_outermost_counts() -> None:
    query = make_query("SELECT f(a) + a FROM t")
    stands = [Stand.of(Span(9, 10), column("x")), Stand.of(Span(7, 11), column("y"))]
    assert str(Rendering(query.text, query.tree, stands).piece(Span(7, 15))) == "y + a"


def test_what_stands_for_no_whole_node_is_left_to_spark() -> None:
    query = make_query("SELECT p.x.y FROM t")
    piece = Rendering(query.text, query.tree, [Stand.of(Span(7, 10), column("_c0"))]).piece(
        Span(7, 12)
    )
    assert str(piece) == "_c0.y"
    assert piece.node is None
