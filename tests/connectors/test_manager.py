"""What sources and sinks do alike: DROP that was interrupted ends at the next open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import headwater
from headwater.connectors.manager import Connectors

Connect = Callable[..., headwater.Database]


@pytest.mark.parametrize("kind", ["source", "sink"])
def test_a_drop_that_was_interrupted_is_ended_at_open(
    connect: Connect, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As if the process had ended between the two: it runs no more, and its name is free."""
    create = {
        "source": f"CREATE SOURCE c INTO t FROM 'delta:{tmp_path / 'in'}'",
        "sink": f"CREATE SINK c FROM q INTO 'csv:{tmp_path / 'out'}'",
    }[kind]
    log = tmp_path / "in" / "_delta_log" / f"{0:020}.json"
    log.parent.mkdir(parents=True)
    log.write_text("{}")
    with connect(folder) as db:
        db.sql("CREATE STREAMING TABLE t (a INT) TIMESTAMP BY a")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT a FROM t [ROWS 1] SAMPLE 1 ROWS")
        db.sql(create)
        monkeypatch.setattr(Connectors, "_forget", lambda *_: None)
        db.sql(f"DROP {kind} c")
        assert db.sql(f"SELECT name, state FROM headwater.{kind}s").rows() == [("c", "dropping")]
        monkeypatch.undo()
    with connect(folder) as db:
        assert db.sql(f"SHOW {kind}S").rows() == []
        db.sql(create)
