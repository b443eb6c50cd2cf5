"""What factories are told of the catalog, while statements change it. No Spark needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import headwater
from headwater.factories import coordinator


def test_tables_are_made_while_factories_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tells is a thread of its own: a table that comes just then must not end it."""
    told: dict[str, Any] = {}
    line = SimpleNamespace(tell=lambda kind, **what: told.update({kind: what}))
    seat: Any = SimpleNamespace(line=line, told={})
    with headwater.connect(":memory:", settings={"eager_spark": False, "factories": 0}) as db:
        db.sql("CREATE TABLE t (a INT); CREATE TABLE u (a INT)")
        real = coordinator.schema_to_json

        def meanwhile(schema: Any) -> Any:
            db.sql("CREATE TABLE IF NOT EXISTS v (a INT)")
            return real(schema)

        monkeypatch.setattr(coordinator, "schema_to_json", meanwhile)
        db._factories._tell_rest(seat)
        assert len(told["standard"]["columns"]) == 2
        db._factories._tell_rest(seat)
        assert len(told["standard"]["columns"]) == 3
