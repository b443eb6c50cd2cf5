"""`STREAM(f(x), 'CUT …')`: a generator with arguments feeds a continuous query (EQ9)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.storage.catalog import ADDED, CHANGED, REMOVED
from tests.sources.feeding import status, wait_for_rows, wait_for_state

RETURNS = "TABLE(ts INT, src STRING, dst STRING, bytes INT)"
Connect = Callable[..., headwater.Database]
# Q_B of the paper: the traffic between hosts, minute by minute.
Q_B = (
    "SELECT CAST(floor(s.ts / 60) AS INT) AS minute, h1.host AS from_host, h2.host AS to_host,"
    " sum(s.bytes) AS bytes"
    " FROM STREAM(get_packets('eth0', 30 * 2, 10), 'CUT ON ts BY 60 SECS') s, hosts h1, hosts h2"
    " WHERE h1.ip = s.src AND h2.ip = s.dst GROUP BY CAST(floor(s.ts / 60) AS INT), h1.host, h2.host"
)


class Packets:
    """A generator of packets with arguments; it ends after three minutes and a bit."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int, int]] = []

    def __call__(
        self, device: str, step: int, bytes: int = 1, start: int = 0
    ) -> Iterator[tuple[int, str, str, int]]:
        self.calls.append((device, step, bytes, start))
        for number in range(start, 7):
            yield number * step // 2, "1", "2", bytes


def registered(db: headwater.Database) -> Packets:
    packets = Packets()
    db.create_function("get_packets", packets, returns=RETURNS, kind="table")
    return packets


def results(db: headwater.Database, query: str) -> list[tuple[object, ...]]:
    wait_for_state(db, f"_{query}_get_packets", "finished")
    db.flush()
    return db.sql(f"SUBSCRIBE {query} EARLIEST").rows()


def test_the_papers_query_over_a_generator(db: headwater.Database) -> None:
    packets = registered(db)
    db.sql("CREATE TABLE hosts (ip STRING, host STRING)")
    db.sql("INSERT INTO hosts VALUES ('1', 'ann'), ('2', 'bob')")
    db.sql(f"CREATE CONTINUOUS QUERY traffic AS {Q_B}")
    assert results(db, "traffic") == [
        (minute, "ann", "bob", 20, 60 * (minute + 1)) for minute in range(3)
    ]
    assert packets.calls == [("eth0", 60, 10, 0)]
    assert status(db, "_traffic_get_packets").url == "python:get_packets"
    db.sql("DROP QUERY traffic")
    assert db.sql("SHOW SOURCES").rows() == []
    assert db.sql("SHOW STREAMS").rows() == []


def test_one_call_written_twice_is_one_stream(db: headwater.Database) -> None:
    """The stream is split and fed to two instances, which keep it differently (ECQ, Fig. 4)."""
    packets = registered(db)
    call = "STREAM(get_packets('eth0', 60), 'CUT ON ts BY 60 SECS'"
    db.sql(
        "CREATE CONTINUOUS QUERY pairs AS SELECT count(*) AS n"
        f" FROM {call}) a, {call}, 'BLOCK', 2) b WHERE a.src = b.src"
    )
    assert results(db, "pairs") == [(4, 60), (8, 120), (8, 180)]
    assert len(packets.calls) == 1


def test_other_arguments_are_another_stream(db: headwater.Database) -> None:
    registered(db)
    db.sql(
        "CREATE CONTINUOUS QUERY pairs AS SELECT sum(a.bytes + b.bytes) AS n"
        " FROM STREAM(get_packets('x', 60), 'CUT ON ts BY 60 SECS') a,"
        " STREAM(get_packets('y', 60, 5), 'CUT ON ts BY 60 SECS') b WHERE a.ts = b.ts"
    )
    wait_for_state(db, "_pairs_get_packets_2", "finished")
    assert results(db, "pairs") == [(12, 60), (12, 120), (12, 180)]


def test_chunks_of_rows(db: headwater.Database) -> None:
    registered(db)
    db.sql(
        "CREATE MATERIALIZED VIEW sums AS SELECT sum(bytes) AS n"
        " FROM STREAM(get_packets('x', 60, 5), 'CUT BY 3 ROWS') p"
    )
    wait_for_state(db, "_sums_get_packets", "finished")
    db.flush()
    assert db.sql("SELECT n FROM sums").rows() == [(15,), (15,)]
    db.sql("DROP MATERIALIZED VIEW sums")
    assert db.sql("SHOW SOURCES").rows() == []


def test_it_goes_on_after_a_restart(folder: Path, connect: Connect) -> None:
    allowed, starts = threading.Semaphore(3), []

    def ticks(step: int, start: int = 0) -> Iterator[tuple[int] | None]:
        starts.append((step, start))
        number = start
        while True:
            if allowed.acquire(timeout=0.01):
                yield (number * step,)
                number += 1
            else:
                yield None

    def register(db: headwater.Database) -> None:
        db.create_function("ticks", ticks, returns="TABLE(ts INT)", kind="table")

    with connect(folder) as db:
        register(db)
        db.sql(
            "CREATE CONTINUOUS QUERY q AS"
            " SELECT count(*) AS n FROM STREAM(ticks(10), 'CUT ON ts BY 20 SECS') t"
        )
        wait_for_rows(db, "_q_ticks", 3)
    with connect(folder) as db:
        register(db)
        allowed.release(2)
        wait_for_rows(db, "_q_ticks", 5)
        db.flush()
        assert db.sql("SUBSCRIBE q EARLIEST").rows() == [(2, 20), (2, 40)]
        assert starts == [(10, 0), (10, 3)]


def test_a_query_comes_and_goes_with_its_stream_and_source_in_one_record(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(db)
    catalog, written = db._context.catalog, []
    write = catalog._write

    def noted(kind: int, *said: Any) -> None:
        written.append((kind, len(said)))
        write(kind, *said)

    monkeypatch.setattr(catalog, "_write", noted)
    call = "SELECT count(*) AS n FROM STREAM(get_packets('x', 60), 'CUT ON ts BY 60 SECS') p"
    for kind, count in (("CONTINUOUS QUERY", 3), ("MATERIALIZED VIEW", 4)):
        db.sql(f"CREATE {kind} q AS {call}")
        wait_for_state(db, "_q_get_packets", "finished")
        db.sql(f"DROP {kind.removeprefix('CONTINUOUS ')} q")
        assert [each for each in written if each[0] != CHANGED] == [
            (ADDED, count),
            (REMOVED, count),
        ]
        assert catalog.all("stream", "source", "continuous query", "materialized view") == []
        assert list(db._context.folder.tables.iterdir()) == []
        written.clear()


def test_a_source_takes_arguments_as_options(db: headwater.Database) -> None:
    packets = registered(db)
    db.sql("CREATE STREAMING TABLE t (ts INT, src STRING, dst STRING, bytes INT) TIMESTAMP BY ts")
    db.sql(
        "CREATE SOURCE s INTO t FROM 'python:get_packets'"
        " WITH (device = 'eth1', step = 2, batch_rows = 3)"
    )
    wait_for_state(db, "s", "finished")
    assert packets.calls == [("eth1", 2, 1, 0)]
    assert len(db.sql("SELECT * FROM t")) == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("(device = 'x', stepp = 2)", "function get_packets has no parameter stepp"),
        ("(device = 'x', step = 2, start = 3)", "function get_packets has no parameter start"),
        ("(device = 'x')", "function get_packets needs step"),
    ],
)
def test_options_that_do_not_fit(db: headwater.Database, options: str, message: str) -> None:
    registered(db)
    db.sql("CREATE STREAMING TABLE t (ts INT, src STRING, dst STRING, bytes INT) TIMESTAMP BY ts")
    with pytest.raises(headwater.Error, match=message):
        db.sql(f"CREATE SOURCE s INTO t FROM 'python:get_packets' WITH {options}")
    assert db.sql("SHOW SOURCES").rows() == []


@pytest.mark.parametrize(
    ("call", "sqlstate", "message"),
    [
        ("get_packet('x', 1)", "42883", "there is no table function get_packet in Python"),
        ("get_packets('x')", "42883", "function get_packets needs step"),
        ("get_packets('x', 1, 2, 3)", "22023", "no parameter start that can be given"),
        ("get_packets('x', 1, 2, 3, 4)", "42883", "too many positional arguments"),
        ("get_packets('x', NULL)", "42804", "a number, a text or a truth value"),
    ],
)
def test_calls_that_do_not_fit(
    db: headwater.Database, call: str, sqlstate: str, message: str
) -> None:
    registered(db)
    text = f"CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n FROM STREAM({call}, 'CUT ON ts BY 60 SECS') p"
    with pytest.raises(headwater.Error, match=message) as failed:
        db.sql(text)
    assert failed.value.sqlstate == sqlstate
    place = failed.value.place
    assert place is not None
    assert text[place.start : place.end] == call
    assert db.sql("SHOW STREAMS").rows() == []


def test_a_query_that_is_refused_leaves_nothing(db: headwater.Database) -> None:
    packets = registered(db)
    text = "SELECT nothing FROM STREAM(get_packets('x', 60), 'CUT ON ts BY 60 SECS') p"
    with pytest.raises(headwater.Error, match="nothing"):
        db.sql(f"CREATE CONTINUOUS QUERY q AS {text}")
    assert db.sql("SHOW STREAMS").rows() == []
    assert packets.calls == []
    with pytest.raises(headwater.Error, match="a generator gives its rows to a query"):
        db.sql(f"EXPLAIN {text}")
    with pytest.raises(headwater.Error, match="is a continuous query"):
        db.sql(text)
