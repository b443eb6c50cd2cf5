"""The questions of pgcli, JDBC, Grafana and psql, answered."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.server.wire.catalog.engine import CatalogEngine
from tests.server.wire.catalog.clients import ALL
from tests.server.wire.catalog.test_engine import asked, database, engine, read

__all__ = ["database", "engine"]  # fixtures


@pytest.mark.parametrize(("text", "expected"), list(ALL.values()), ids=list(ALL))
def test_clients(engine: CatalogEngine, text: str, expected: list[tuple[Any, ...]]) -> None:
    """Every question is one about the catalog, and its rows and types are those that the client expects."""
    assert engine.wants(read(text))
    assert asked(engine, text) == expected
