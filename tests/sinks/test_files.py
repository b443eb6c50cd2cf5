"""Files out: formats, names, and each row in exactly one file whatever happens. No Spark needed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import headwater
from headwater.sinks.delta import DeltaTarget
from headwater.sinks.files import FilesTarget
from headwater.sinks.manifest import Manifest
from headwater.sinks.target import SinkBatch, SinkName, SinkProgress, Target
from tests.sinks.flowing import QUICK, Connect, expected, feed, make_query, wait_for_rows

SINK = SinkName("k", "0123456789abcdef")
SCHEMA = pa.schema([("v", pa.int64())])


def read(folder: Path, kind: str) -> list[tuple[Any, ...]]:
    """All rows that readers of the folder see, in order."""
    if kind == "delta":
        table = DeltaTable(str(folder)).to_pyarrow_table()
        return sorted(tuple(row.values()) for row in table.to_pylist())
    rows: list[dict[str, Any]] = []
    for path in sorted(p for p in folder.iterdir() if not p.name.startswith(".")):
        if kind == "csv":
            rows += csv.read_csv(path).to_pylist()
        elif kind == "json":
            rows += [json.loads(line) for line in path.read_text().splitlines()]
        else:
            rows += pq.read_table(path).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "delta"])
def test_results_are_written_once_over_restarts(
    connect: Connect, folder: Path, tmp_path: Path, kind: str
) -> None:
    """What was there before, what comes, and what came while the database was closed and open."""
    out = tmp_path / "out"
    with connect(folder) as db:
        make_query(db)
        feed(db, 0, 3)
        db.sql(f"CREATE SINK k FROM q INTO '{kind}:{out}' WITH ({QUICK})")
        wait_for_rows(db, "k", 6)
        feed(db, 3, 2)
        wait_for_rows(db, "k", 10)
    with connect(folder) as db:
        feed(db, 5, 1)
        wait_for_rows(db, "k", 12)
        db.sql("DROP SINK k")
        feed(db, 6, 1)
        assert db.sql("SHOW SINKS").rows() == []
    rows = [(k, s, t) for k, s, t in read(out, kind)]
    assert rows == sorted(expected(0, 6))


def test_a_sink_may_begin_with_the_next_result(db: headwater.Database, tmp_path: Path) -> None:
    """`start = 'next'` leaves out what was there."""
    make_query(db)
    feed(db, 0, 3)
    db.sql(f"CREATE SINK k FROM q INTO 'json:{tmp_path}/o' WITH (start = 'next', {QUICK})")
    feed(db, 3, 1)
    wait_for_rows(db, "k", 2)
    assert read(tmp_path / "o", "json") == sorted(expected(3, 1))


def test_the_instant_may_have_another_name(db: headwater.Database, tmp_path: Path) -> None:
    """So that a streaming table can take the rows in again, by a name that is not the system's."""
    make_query(db)
    feed(db, 0, 2)
    db.sql(f"CREATE SINK k FROM q INTO 'json:{tmp_path}/o' WITH (time_column = 'at', {QUICK})")
    wait_for_rows(db, "k", 4)
    texts = [path.read_text() for path in (tmp_path / "o").glob("*.json")]
    names = [tuple(json.loads(line)) for text in texts for line in text.splitlines()]
    assert names == [("k", "s", "at")] * 4
    assert read(tmp_path / "o", "json") == sorted(expected(0, 2))


def test_files_that_a_reader_took_away_are_not_written_again(
    connect: Connect, folder: Path, tmp_path: Path
) -> None:
    """How far the sink is does not stand in the files that readers may move."""
    out = tmp_path / "out"
    with connect(folder) as db:
        make_query(db)
        db.sql(f"CREATE SINK k FROM q INTO 'csv:{out}' WITH ({QUICK})")
        feed(db, 0, 2)
        wait_for_rows(db, "k", 4)
    for path in out.glob("*.csv"):
        path.unlink()
    with connect(folder) as db:
        feed(db, 2, 1)
        wait_for_rows(db, "k", 6)
    assert read(out, "csv") == sorted(expected(2, 1))


def test_values_of_every_kind_as_json_and_csv(tmp_path: Path) -> None:
    """Digits are kept, nested values are JSON, bytes base64, NULL is empty."""
    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    rows = pa.table(
        {
            "n": pa.array([2**62, None]),
            "x": pa.array([0.1, float("nan")]),
            "a": pa.array([["ä"], None], pa.list_(pa.string())),
            "b": pa.array([b"\x00\x01", None]),
            "at": pa.array([time, None], pa.timestamp("us", "UTC")),
        }
    )
    batch = SinkBatch(rows, 0, SinkProgress("t", 2))
    for kind in ("json", "csv"):
        target = FilesTarget(tmp_path / kind, SINK, kind)
        target.open(rows.schema)
        target.write(batch)
    (path,) = (tmp_path / "json").glob("*.json")
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert first == {"n": 2**62, "x": 0.1, "a": ["ä"], "b": "AAE=", "at": "2026-01-02T03:04:05Z"}
    assert second == {"n": None, "x": "NaN", "a": None, "b": None, "at": None}
    (path,) = (tmp_path / "csv").glob("*.csv")
    assert path.read_text().splitlines()[1:] == [
        f'{2**62},"0.1","[""ä""]","AAE=",2026-01-02 03:04:05.000000Z',
        ',"NaN",,,',
    ]


class Ended(Exception):
    """The process ended here."""


def batch(number: int, rows: int = 2) -> SinkBatch:
    table = pa.table({"v": pa.array([10 * number + n for n in range(rows)], pa.int64())})
    return SinkBatch(table, number, SinkProgress(f"token {number}", 2 * number + rows))


@pytest.mark.parametrize("kind", ["json", "delta"])
@pytest.mark.parametrize("point", ["note", "after note", "after"])
def test_a_process_may_end_at_any_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, point: str
) -> None:
    """Before the note nothing was written, after it all; a new process sees which, and goes on."""

    def made() -> Target:
        if kind == "delta":
            return DeltaTarget(tmp_path, SINK)
        return FilesTarget(tmp_path, SINK, kind)

    def ends(*_: object, **__: object) -> None:
        raise Ended

    target = made()
    assert target.open(SCHEMA) is None
    target.write(batch(0))
    target.write(batch(1, rows=0))
    with monkeypatch.context() as patch:
        if point == "note":
            patch.setattr(Manifest, "replace", ends)
        elif point == "after note":
            patch.setattr(
                DeltaTarget if kind == "delta" else FilesTarget,
                "_commit" if kind == "delta" else "_name",
                ends,
            )
        if point == "after":
            target.write(batch(2))
        else:
            with pytest.raises(Ended):
                target.write(batch(2))
    again = made()
    progress = again.open(SCHEMA)
    assert progress is not None
    assert progress.token in ("token 1", "token 2")
    rest = [batch(number).rows for number in range(int(progress.token[-1]) + 1, 4)]
    again.write(
        SinkBatch(pa.concat_tables(rest), 3, SinkProgress("token 3", 6))
    )  # cut another way now
    assert [row[0] for row in read(tmp_path, kind)] == [0, 1, 20, 21, 30, 31]
    last = made().open(SCHEMA)
    assert last is not None
    assert last.token == "token 3"
