"""`demo:linearroad` as a source: exactly once, punctuated, paced. No Spark needed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from headwater.examples.linearroad.source import LinearRoadRunner
from headwater.examples.linearroad.traffic import Scenario, reports

import headwater
from headwater.errors import DataError, Error
from tests.harness.patience import PATIENCE_S
from tests.sources.feeding import status, wait_for_state

NAMES = "type, time, vid, speed, xway, lane, dir, seg, pos, qid, day"
TABLE = (
    f"CREATE STREAMING TABLE reports ({NAMES.replace(',', ' INT NOT NULL,')} INT NOT NULL)"
    " TIMESTAMP BY time"
)
SOURCE = (
    "CREATE SOURCE traffic INTO reports FROM 'demo:linearroad' WITH (expressways = 2,"
    " segments = 2, seed = 5, start = INTERVAL '10' MINUTES, {})"
)
Connect = Callable[..., headwater.Database]
Row = tuple[int, ...]


def expected(seconds: int) -> list[Row]:
    scenario = Scenario(expressways=2, segments=2, seed=5, start_s=600, duration_s=seconds)
    return sorted(tuple(row.values()) for row in reports(scenario).to_pylist())


def stored(db: headwater.Database) -> list[Row]:
    return sorted(db.sql(f"SELECT {NAMES} FROM reports").rows())


@pytest.mark.parametrize("batch", [1, 7])
def test_all_reports_are_stored(db: headwater.Database, batch: int) -> None:
    """The table has what the scenario says, however many seconds make an insert."""
    db.sql(TABLE)
    db.sql(SOURCE.format(f"duration = 20, speed = fast, batch = {batch}"))
    wait_for_state(db, "traffic", "finished")
    assert stored(db) == expected(20)
    assert status(db, "traffic").row_count == len(expected(20))


def test_each_second_is_punctuated(db: headwater.Database) -> None:
    """When the last second has come it is over: a row of that second is late, the next is not."""
    db.sql(TABLE.replace("BY time", "BY time LATE REJECT"))
    db.sql(SOURCE.format("duration = 3, speed = 'fast'"))
    wait_for_state(db, "traffic", "finished")
    with pytest.raises(Error, match="are late"):
        db.sql("INSERT INTO reports VALUES (0, 602, 1, 1, 1, 1, 1, 1, 1, 1, 1)")
    db.sql("INSERT INTO reports VALUES (0, 603, 1, 1, 1, 1, 1, 1, 1, 1, 1)")


def test_the_last_second_is_over_after_an_end_within_it(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reports were stored, but nobody heard that it was over: the next run says so."""
    db.sql(TABLE.replace("BY time", "BY time LATE REJECT"))
    punctuate = LinearRoadRunner._punctuate

    def lost(self: LinearRoadRunner, last: int) -> None:
        if last == 602:
            raise DataError("lost")
        punctuate(self, last)

    monkeypatch.setattr(LinearRoadRunner, "_punctuate", lost)
    db.sql(SOURCE.format("duration = 3, speed = 'fast'"))
    wait_for_state(db, "traffic", "failed")
    monkeypatch.undo()
    db.sql("RESUME SOURCE traffic")
    wait_for_state(db, "traffic", "finished")
    assert stored(db) == expected(3)
    with pytest.raises(Error, match="are late"):
        db.sql("INSERT INTO reports VALUES (0, 602, 1, 1, 1, 1, 1, 1, 1, 1, 1)")


def test_it_goes_on_where_it_was(folder: Path, connect: Connect) -> None:
    """Stopped somewhere in the middle, by PAUSE and by a restart, it stores every report once."""
    options = "duration = INTERVAL '40' SECONDS, speed = 20"
    with connect(folder) as db:
        db.sql(TABLE)
        db.sql(SOURCE.format(options))
        assert db._context.sources.wait_until(
            lambda: status(db, "traffic").row_count > 20, PATIENCE_S
        )
        db.sql("PAUSE SOURCE traffic")
        first = status(db, "traffic").row_count
        assert first == len(stored(db)) < len(expected(40))
        db.sql("RESUME SOURCE traffic")
        assert db._context.sources.wait_until(
            lambda: status(db, "traffic").row_count > first, PATIENCE_S
        )
    with connect(folder) as db:
        wait_for_state(db, "traffic", "finished")
        assert stored(db) == expected(40)


def test_speed_is_simulated_seconds_per_second(db: headwater.Database) -> None:
    """Ten seconds at ten times real time take about a second: not less than nine tenths."""
    db.sql(TABLE)
    begun = time.monotonic()
    db.sql(SOURCE.format("duration = 10, speed = 10"))
    wait_for_state(db, "traffic", "finished")
    assert time.monotonic() - begun >= 0.9


def test_time_may_be_a_timestamp_and_columns_may_be_left_out(db: headwater.Database) -> None:
    """Second 600 is ten minutes after midnight; columns are matched by name."""
    db.sql(
        "CREATE STREAMING TABLE reports (vid BIGINT, Time TIMESTAMP, more INT) TIMESTAMP BY Time"
    )
    db.sql(SOURCE.format("duration = 2, speed = fast"))
    wait_for_state(db, "traffic", "finished")
    rows = db.sql("SELECT vid, Time, more FROM reports").rows()
    assert sorted((vid, int(t.timestamp())) for vid, t, _ in rows) == sorted(
        (row[2], row[1]) for row in expected(2)
    )


@pytest.mark.parametrize(
    ("address", "options", "message"),
    [
        ("demo:linear", "seed = 1", "there is no demo named"),
        ("demo:linearroad", "expresways = 1", "there is no option expresways"),
        ("demo:linearroad", "expressways = 'many'", "expressways is a whole number"),
        ("demo:linearroad", "speed = 0", "speed is a number above zero"),
        ("demo:linearroad", "duration = INTERVAL '1500' MILLISECONDS", "duration is whole seconds"),
        ("demo:linearroad", "batch = 0", "batch is 1 to"),
        ("demo:linearroad", "segments = 1000", "segments is 1000, not between"),
    ],
)
def test_refused(db: headwater.Database, address: str, options: str, message: str) -> None:
    """Options are checked before anything starts."""
    db.sql(TABLE)
    with pytest.raises(Error, match=message):
        db.sql(f"CREATE SOURCE s INTO reports FROM '{address}' WITH ({options})")
    assert db.sql("SHOW SOURCES").rows() == []


def test_a_table_of_other_columns_is_refused(db: headwater.Database) -> None:
    """A column that must not be NULL and is not in the stream cannot be filled."""
    db.sql("CREATE STREAMING TABLE t (place INT NOT NULL, time INT) TIMESTAMP BY time")
    with pytest.raises(Error, match="has no column place"):
        db.sql("CREATE SOURCE s INTO t FROM 'demo:linearroad'")
