"""What Tab offers."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from headwater.cli.completion import ShellCompleter

NAMES = {"orders": ["id", "price", "placed at"], "Customers": ["id", "name"]}


def offered(text: str, behind: str = "") -> list[str]:
    document = Document(text + behind, len(text))
    found = ShellCompleter(lambda: NAMES).get_completions(document, CompleteEvent())
    return [completion.text for completion in found]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("CREATE STREAMING TA", "TABLE"),
        ("create con", "continuous query"),
        ("CREATE M", "MATERIALIZED VIEW"),
        ("select * from ", "Customers"),
        ("select * from or", "orders"),
        ("select 1 from orders emit ch", "changes"),
        ("… SAMPLE ", "INTERVAL"),
        ("x WATER", "WATERMARK"),
        ("select orders.pl", "`placed at`"),
        ("select pri", "price"),
        ("\\fo", "\\format"),
        ("\\format v", "vertical"),
        ("\\d ord", "orders"),
        ("\\help create m", "create materialized view"),
    ],
)
def test_first_offer(text: str, first: str) -> None:
    assert offered(text)[0] == first


def test_columns_of_an_alias_behind_the_cursor() -> None:
    assert offered("select c.", " from customers as c") == ["id", "name"]
    assert offered("select o.pr", " from orders [rows 3] o") == ["price"]


def test_columns_only_of_mentioned_objects() -> None:
    assert "name" in offered("select na")
    assert "name" not in offered("select na", " from orders")


@pytest.mark.parametrize("text", ["select 'fro", "-- fro", "\\timing ", "select x.nothing."])
def test_no_offer(text: str) -> None:
    assert offered(text) == []


def test_files(tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text("")
    assert offered(f"\\i {tmp_path}/sch") == ["ema.sql"]
