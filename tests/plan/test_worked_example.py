"""The worked example of docs/internals/planner.md is what the planner makes of its query."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headwater.plan.folds import StreamColumns
from tests.plan import compact
from tests.plan.catalog import HIDDEN, FixedTables, schema

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "planner.md"
COLUMNS = "ts TIMESTAMP, id INT, k STRING, v INT"


class ExampleTables(FixedTables):
    """The streaming table s and the table t of the page."""

    def stream(self, name: str) -> StreamColumns | None:
        if name != "s":
            return None
        visible, stored = schema(COLUMNS), schema(f"{COLUMNS}, {HIDDEN}")
        return StreamColumns(name, stored, tuple(visible.names), "ts", stored.field("ts").type)

    def standard(self, name: str) -> pa.Schema | None:
        return schema("id INT, n INT") if name == "t" else None


def test_the_worked_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "TABLES", ExampleTables())
    parts = PAGE.read_text().split("## A worked example", 1)[1].split("```")
    query, told = parts[1].removeprefix("sql").strip(), parts[3]
    lines = compact.plan_lines(query, "types")
    plan = " ".join(lines[0].split())
    assert [" ".join(part.split()) for part in told.strip().splitlines()] == [
        *plan.split(" | "),
        *lines[1:],
    ]
