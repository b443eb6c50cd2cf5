"""The queries of the paper, chunk by chunk against DuckDB (EQ1, EQ4): Q_A to Q_D and the self-join."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import headwater
from tests.harness.oracle import duckdb_rows, plain_rows
from tests.harness.rows import check_same

MINUTES = 6
CHUNKS = 15  # of five seconds
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = [("1", "ann"), ("2", "bob"), ("3", "bob"), ("4", None)]
PACKETS = pa.schema(
    [("ts", pa.int32()), ("src", pa.string()), ("dst", pa.string()), ("bytes", pa.int32())]
)
REPORTS = pa.schema([("ts", pa.int32()), ("pid", pa.int32()), ("rt", pa.int32())])
CALLS = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), ("caller", pa.int32()), ("callee", pa.int32())]
)
Q_A = (
    "SELECT CAST(floor(s.ts / 60) AS INT) AS minute, h1.host AS from_host, h2.host AS to_host,"
    " sum(s.bytes) AS bytes FROM {s}, hosts h1, hosts h2 WHERE h1.ip = s.src AND h2.ip = s.dst"
    " GROUP BY CAST(floor(s.ts / 60) AS INT), h1.host, h2.host"
)
Q_C = (
    "SELECT CAST(floor(s1.ts / 60) AS INT) AS minute, avg(s2.rt - s1.rt) AS delay FROM {s1}, {s2}"
    " WHERE s1.pid = s2.pid GROUP BY CAST(floor(s1.ts / 60) AS INT)"
)
Q_D = (
    "SELECT CAST(floor(s.ts / 60) AS INT) AS minute, avg(s.bytes) AS bytes FROM {s}"
    " GROUP BY CAST(floor(s.ts / 60) AS INT)"
)
DOUBLED = (
    "SELECT DISTINCT a.ts AS t1, a.caller, a.callee, b.ts AS t2 FROM {b}, {a}"
    " WHERE a.caller = b.caller AND a.callee = b.callee"
    " AND ((a.ts > b.ts AND a.ts - b.ts < INTERVAL '0.2' SECOND)"
    " OR (b.ts > a.ts AND b.ts - a.ts < INTERVAL '0.2' SECOND))"
)


@dataclass(frozen=True)
class Paper:
    """A query of the paper: its sources, by alias the table and how many chunks are kept."""

    text: str
    sources: dict[str, tuple[str, int]]
    length: int  # of a chunk, in seconds

    def of_streams(self, as_call: bool) -> str:
        """Over cut streams, in the paper's spelling or in SQL's."""
        cut = f"CUT ON ts BY {self.length} SECS"
        shown = {}
        for alias, (table, keep) in self.sources.items():
            call = f"STREAM({table}, '{cut}', 'BLOCK', {keep}) {alias}"
            plain = (
                f"{table} CUT ON ts BY INTERVAL '{self.length}' SECOND KEEP {keep} CHUNKS {alias}"
            )
            shown[alias] = call if as_call else plain
        return self.text.format(**shown)

    def of_tables(self) -> str:
        """Over tables that hold the kept chunks, each named as its source."""
        return self.text.format(**{alias: f"kept_{alias} {alias}" for alias in self.sources})


QUERIES = {
    "q_b": Paper(Q_A, {"s": ("packets", 1)}, 60),
    "q_c": Paper(Q_C, {"s1": ("rt1", 1), "s2": ("rt2", 1)}, 60),
    "q_d": Paper(Q_D, {"s": ("packets", 1)}, 60),
    "doubled": Paper(DOUBLED, {"b": ("calls", 1), "a": ("calls", 12)}, 5),
}


def _inputs() -> dict[str, pa.Table]:
    """Rows in the order of time: some minutes are empty, some packets are seen in another minute."""
    choose = Random(11)
    seconds = sorted(
        choose.choice([0, 60, 65, 200, 250]) + choose.randint(0, 59) for _ in range(90)
    )
    ips = ["1", "2", "3", "4", "5", None]
    packets = [(t, choose.choice(ips), choose.choice(ips), choose.randint(1, 99)) for t in seconds]
    first = [(t, n, t + choose.randint(0, 3)) for n, t in enumerate(seconds)]
    second = sorted(
        (t + choose.choice([0, 1, 20]), n, t + choose.randint(3, 9)) for t, n, _ in first
    )
    calls = []
    for _ in range(60):
        call = (choose.randint(1, 3), choose.randint(1, 3))
        begin = MIDNIGHT + timedelta(milliseconds=choose.randint(0, CHUNKS * 5000 - 1000))
        again = begin + timedelta(milliseconds=choose.choice([0, 50, 150, 199, 200, 900]))
        calls += [(begin, *call), (again, *call)]
    return {
        "packets": _table(packets, PACKETS),
        "rt1": _table(first, REPORTS),
        "rt2": _table(second, REPORTS),
        "calls": _table(sorted(calls), CALLS),
        "hosts": pa.table({"ip": [ip for ip, _ in HOSTS], "host": [host for _, host in HOSTS]}),
    }


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


@pytest.mark.parametrize(
    ("mode", "settings"),
    [("fold", {}), ("fold", {"spark_sql_only": True}), ("reevaluate", {"spark_sql_only": True})],
    ids=["operators", "fold on Spark", "Spark"],
)
def test_every_chunk_is_what_duckdb_says(
    mode: str, settings: dict[str, Any], connect: Callable[..., headwater.Database]
) -> None:
    """Q_B, Q_C, Q_D and the self-join, in either spelling: each epoch is the query over its chunks."""
    db, inputs = connect(":memory:", settings=settings), _inputs()
    _create(db)
    for name, paper in QUERIES.items():
        text = paper.of_streams(as_call=mode == "fold")
        db.sql(f"CREATE CONTINUOUS QUERY {name} WITH (mode = '{mode}') AS {text}")
    _feed(db, inputs)
    for name, paper in QUERIES.items():
        outs = list(db.subscribe(name, after="earliest", timeout=0.001))
        assert [out.time for out in outs] == _ends(paper)
        assert [out.epoch for out in outs] == list(range(len(outs)))
        for out in outs:
            wanted = duckdb_rows(paper.of_tables(), _kept(paper, inputs, out.time))
            check_same(plain_rows(out.rows()), [(*row, out.time) for row in plain_rows(wanted)])


def test_the_query_over_a_table_is_the_union_of_its_minutes(db: headwater.Database) -> None:
    """Q_A, once over a table, says what Q_B says minute by minute; DuckDB says the same."""
    inputs = _inputs()
    _create(db)
    db.sql("CREATE TABLE packet_table (ts INT, src STRING, dst STRING, bytes INT)")
    db.insert("packet_table", inputs["packets"])
    found = db.sql(Q_A.format(s="packet_table s")).rows()
    tables = {"packet_table": inputs["packets"], "hosts": inputs["hosts"]}
    check_same(plain_rows(found), plain_rows(duckdb_rows(Q_A.format(s="packet_table s"), tables)))
    db.sql(f"CREATE CONTINUOUS QUERY q_b AS {QUERIES['q_b'].of_streams(True)}")
    _feed(db, inputs)
    outs = db.subscribe("q_b", after="earliest", timeout=0.001)
    check_same([row[:-1] for out in outs for row in out.rows()], found)


def _create(db: headwater.Database) -> None:
    for name, schema in (
        ("packets", PACKETS),
        ("rt1", REPORTS),
        ("rt2", REPORTS),
        ("calls", CALLS),
    ):
        words = {pa.int32(): "INT", pa.string(): "STRING"}
        columns = ", ".join(f"{f.name} {words.get(f.type, 'TIMESTAMP')}" for f in schema)
        db.sql(f"CREATE STREAM {name} ({columns}) TIMESTAMP BY ts")
    db.sql("CREATE TABLE hosts (ip STRING, host STRING)")
    db.sql("INSERT INTO hosts VALUES ('1', 'ann'), ('2', 'bob'), ('3', 'bob'), ('4', NULL)")


def _feed(db: headwater.Database, inputs: dict[str, pa.Table]) -> None:
    """In parts, the streams in turn, so that chunks end at different moments."""
    names = ("packets", "rt1", "rt2", "calls")
    for start in range(0, inputs["calls"].num_rows, 17):
        for name in names:
            part = inputs[name].slice(start, 17)
            if part.num_rows:
                db.insert(name, part)
    for name in names:
        end = MIDNIGHT + timedelta(seconds=5 * CHUNKS) if name == "calls" else 60 * MINUTES
        db.advance(name, end)
    db.flush()


def _ends(paper: Paper) -> list[Any]:
    """The ends of all chunks; each input has a row in the first one."""
    if "calls" in {table for table, _ in paper.sources.values()}:
        return [MIDNIGHT + timedelta(seconds=5 * n) for n in range(1, CHUNKS + 1)]
    return [60 * n for n in range(1, MINUTES + 1)]


def _kept(paper: Paper, inputs: dict[str, pa.Table], end: Any) -> dict[str, pa.Table]:
    """The tables of one epoch: what DuckDB may see."""
    found = {"hosts": inputs["hosts"]}
    for alias, (name, keep) in paper.sources.items():
        length = keep * paper.length
        start = end - (length if isinstance(end, int) else timedelta(seconds=length))
        times = inputs[name].column("ts").to_pylist()
        found[f"kept_{alias}"] = inputs[name].filter(pa.array([start <= t < end for t in times]))
    return found
