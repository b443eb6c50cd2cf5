"""What stands in FROM, with its columns: what the shell's `\\d` and `pg_catalog` list."""

from __future__ import annotations

import headwater


def test_columns_of_every_kind() -> None:
    """Tables, streams, views and queries of both kinds are listed with their columns."""
    with headwater.connect(":memory:") as db:
        db.sql("CREATE TABLE sensors (id INT, place STRING)")
        db.sql(
            "CREATE STREAM ups (id INT NOT NULL, v DOUBLE, t INT NOT NULL) TIMESTAMP BY t UPDATE KEY (id)"
        )
        db.sql("CREATE VIEW totals AS SELECT id, sum(v) AS total FROM ups GROUP BY id")
        db.sql("CREATE CONTINUOUS QUERY newest AS SELECT id, v FROM ups WITH UPDATES")
        found = {relation.name: relation for relation in db.relations()}
        kinds = {name: relation.kind for name, relation in found.items()}
        names = {name: relation.schema.names[:2] for name, relation in found.items()}
    assert kinds == {
        "sensors": "table", "ups": "stream", "totals": "view", "newest": "continuous query",
    }  # fmt: skip
    assert names == {
        "sensors": ["id", "place"], "ups": ["id", "v"], "totals": ["id", "total"], "newest": ["id", "v"],
    }  # fmt: skip
    assert found["newest"].text is not None
