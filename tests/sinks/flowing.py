"""What tests of sinks share: a query with known results, and waiting for a sink."""

from __future__ import annotations

from collections.abc import Callable

import headwater
from headwater.sinks.manager import SinkStatus
from tests.harness.patience import PATIENCE_S

Connect = Callable[..., headwater.Database]
QUICK = "interval = INTERVAL '0' SECONDS"


def make_query(db: headwater.Database, emit: str = "") -> None:
    """A table, and a query that gives at each even instant the sums of the last two seconds."""
    db.sql("CREATE STREAMING TABLE m (t BIGINT NOT NULL, k INT, v INT) TIMESTAMP BY t")
    db.sql(
        "CREATE CONTINUOUS QUERY q AS SELECT k, sum(v) AS s FROM m [INTERVAL 2 SECONDS BEFORE]"
        f" GROUP BY k SAMPLE INTERVAL 2 SECONDS {emit}"
    )


def feed(db: headwater.Database, first: int, count: int) -> None:
    """Rows for so many instants after `first`, two keys each, and the clock beyond them."""
    rows = [(2 * n + 1, k, 10 * n + k) for n in range(first, first + count) for k in (1, 2)]
    db.insert("m", [dict(zip(("t", "k", "v"), row, strict=True)) for row in rows])
    db.advance("m", 2 * (first + count))
    db.flush()


def expected(first: int, count: int) -> list[tuple[int, int, int]]:
    """What the query gives for them: k, s, _t."""
    return [(k, 10 * n + k, 2 * n + 2) for n in range(first, first + count) for k in (1, 2)]


def status(db: headwater.Database, name: str) -> SinkStatus:
    """A sink as SHOW SINKS tells it."""
    (found,) = [s for s in db._context.sinks.statuses() if s.name == name]
    return found


def wait_for(
    db: headwater.Database,
    name: str,
    done: Callable[[SinkStatus], bool],
    timeout_s: float = PATIENCE_S,
) -> SinkStatus:
    """Until the sink is as it should be."""
    sinks = db._context.sinks
    assert sinks.wait_until(lambda: done(status(db, name)), timeout_s), status(db, name)
    return status(db, name)


def wait_for_rows(db: headwater.Database, name: str, count: int) -> None:
    """Until the sink has written so many rows, and no more than them."""
    assert wait_for(db, name, lambda s: s.row_count >= count).row_count == count
