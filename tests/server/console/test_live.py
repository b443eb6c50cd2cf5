"""The console's channel: what a page is sent, how often, and how much of it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import psycopg
import pyarrow as pa

import headwater
from headwater.engine.subscription import Out, Subscription
from headwater.errors import StorageError
from headwater.server.console.live import HELD, POINT_ROWS, SHOWN_ROWS, Channel, Results
from headwater.server.console.snapshot import PAGES, ConsoleSnapshot, Rates, tables_of
from headwater.server.http.server import HttpOptions, HttpServer
from tests.harness.patience import PATIENCE_S
from tests.server.http.client import Client
from tests.server.live import Live, LiveServer


@contextmanager
def channel(live: Live, path: str) -> Iterator[Iterator[dict[str, Any]]]:
    """The messages of a channel."""
    connection = http.client.HTTPConnection(live.host, live.port, timeout=PATIENCE_S)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()

    def messages() -> Iterator[dict[str, Any]]:
        while line := answer.readline().decode():
            if line.startswith("data: "):
                yield json.loads(line[6:])

    try:
        yield messages()
    finally:
        answer.close()
        connection.close()


def test_every_page_has_its_parts(live: Live, plain: headwater.Database) -> None:
    """The first message of a page has every part of it, without starting Spark."""
    plain.sql("CREATE STREAMING TABLE e (a BIGINT) TIMESTAMP BY a")
    for page, parts in PAGES.items():
        if not parts or page in ("query", "view"):
            continue
        with channel(live, f"/console/live?show={page}") as messages:
            assert set(next(messages)) == {"at", *parts}
    assert not plain.spark_ready


def test_pages_of_views_and_of_damaged_tables(live: Live, plain: headwater.Database) -> None:
    """Views of every kind have a page; a table that could not be opened is among the errors."""
    plain.sql("CREATE STREAMING TABLE e (a BIGINT, k INT) TIMESTAMP BY a")
    plain.sql("CREATE TABLE d (a INT)")
    for name, options in (("whole", ""), ("parted", " WITH (parts = 2)")):
        plain.sql(f"CREATE VIEW {name}{options} AS SELECT k, count(*) AS n FROM e GROUP BY k")
    plain.insert("e", [(1, 1), (2, 2)])
    plain.flush()
    for name in ("whole", "parted"):
        with channel(live, f"/console/live?show=view&name={name}") as messages:
            found = next(messages)["object"]
        assert (found["name"], found["state"], found["groups"]) == (name, "running", 2)
        assert found["reads"] == ["e"]
    with channel(live, "/console/live?show=network") as messages:
        assert [view["name"] for view in next(messages)["views"]] == ["parted", "whole"]
    item = plain._context.find("d")
    assert item is not None
    plain._context.damaged[item.id] = StorageError("the file x is damaged", sqlstate="XX001")
    with channel(live, "/console/live?show=errors") as messages:
        (error,) = next(messages)["errors"]
    assert (error["kind"], error["name"], error["state"]) == ("table", "d", "damaged")
    with channel(live, "/console/live?show=overview") as messages:
        assert next(messages)["totals"]["failed"] == 1


def test_the_overview_counts_rows(live: Live, plain: headwater.Database) -> None:
    """Rows that come become a rate in a later message; what did not change is not sent again."""
    plain.sql("CREATE STREAMING TABLE e (a BIGINT) TIMESTAMP BY a")
    with channel(live, "/console/live?show=overview") as messages:
        first = next(messages)
        assert first["totals"]["tables"] == 1
        plain.insert("e", [{"a": n} for n in range(1000)])
        later = next(
            m["totals"] for m in islice(messages, 20) if m.get("totals", {}).get("rows_per_s")
        )
        assert 0 < later["rows_per_s"] <= 1000 / 0.9
    with channel(live, "/console/live?show=tables") as messages:
        assert next(messages)["tables"][0]["row_count"] == 1000


def test_wrong_pages_are_refused(client: Client) -> None:
    """A page or query that is not there is an error before the channel opens."""
    assert client.ask("GET", "/console/live?show=zzz").status == 400
    assert client.ask("GET", "/console/live?show=query&name=zzz").status == 404
    assert client.ask("GET", "/console/live?show=view&name=headwater.tables").status == 404


def test_names(client: Client, plain: headwater.Database) -> None:
    """Completion knows tables with their columns, and SQL's words."""
    plain.sql("CREATE TABLE t (a INT, b STRING)")
    found = client.ask("GET", "/console/names").json
    assert found["tables"] == {"t": ["a", "b"]}
    assert {"SELECT", "CONTINUOUS"} <= set(found["keywords"])
    assert found["role"] == "admin"


def test_a_query_of_any_name_is_followed(live: Live, plain: headwater.Database) -> None:
    """A name that must be quoted is one too."""
    plain.sql("CREATE STREAMING TABLE e (a BIGINT) TIMESTAMP BY a")
    plain.sql(
        "CREATE CONTINUOUS QUERY `two ``words` AS SELECT count(*) AS n"
        " FROM e [INTERVAL '1' SECOND BEFORE] SAMPLE INTERVAL '1' SECOND"
    )
    plain.insert("e", [{"a": n} for n in range(4)])
    plain.flush()
    with channel(live, "/console/live?show=query&name=two%20%60words") as messages:
        found = next(m["results"] for m in islice(messages, 20) if "results" in m)
    assert found["columns"][0] == {"name": "n", "type": "BIGINT"}
    assert [point["rows"][0][0] for point in found["points"]] == [0, 1, 1, 1][
        : len(found["points"])
    ]


def test_all_readers_are_counted(live: Live, plain: headwater.Database, tmp_path: Path) -> None:
    """Over HTTP, over PostgreSQL's protocol, in this process, and sinks; until they go."""
    plain.sql("CREATE STREAMING TABLE e (a BIGINT) TIMESTAMP BY a")
    plain.sql(
        "CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n"
        " FROM e [INTERVAL '1' SECOND BEFORE] SAMPLE INTERVAL '1' SECOND"
    )

    def readers() -> int:
        snapshot = ConsoleSnapshot(live.server, Rates())
        return int(snapshot.queries()[0]["readers"])

    own = cast(Subscription, plain.subscribe("q"))
    assert readers() == 1
    with LiveServer(plain) as wire, closing(psycopg.connect(wire.dsn, autocommit=True)) as client:
        client.pgconn.send_query(b"SUBSCRIBE q")
        client.pgconn.flush()
        live.wait_until(lambda: readers() == 2)
        with channel(live, "/subscribe/q"):
            live.wait_until(lambda: readers() == 3)
    live.wait_until(lambda: readers() == 1)
    own.close()
    assert readers() == 0
    plain.sql(f"CREATE SINK k FROM q INTO 'json:{tmp_path / 'out'}'")
    live.wait_until(lambda: readers() == 1)
    plain.insert("e", [{"a": n} for n in range(4)])
    plain.flush()
    with channel(live, "/console/live?show=network") as messages:
        found = next(m["sinks"] for m in islice(messages, 20) if m["sinks"][0]["row_count"])
    assert (found[0]["name"], found[0]["query"]) == ("k", "q")
    plain.sql("DROP SINK k")
    assert readers() == 0


def test_what_the_program_shows(plain: headwater.Database) -> None:
    """A further page has what the program around the server gives; without, there is no such page."""
    shown = {"road": lambda: {"clock": "1:00:00"}}
    with Live(HttpServer(plain, HttpOptions(port=0), shows=shown)) as live:
        with channel(live, "/console/live?show=road") as messages:
            assert next(messages)["road"] == {"clock": "1:00:00"}
            assert live.server.watchers == 1
        live.wait_until(lambda: live.server.watchers == 0)
        with Client(live) as client:
            assert client.ask("GET", "/console/names").json["shows"] == ["road"]
    with Live(HttpServer(plain, HttpOptions(port=0))) as live, Client(live) as client:
        assert client.ask("GET", "/console/names").json["shows"] == []


def test_a_readers_own_select_has_a_page(live: Live, plain: headwater.Database) -> None:
    """Its numbers are there; its results are its reader's alone."""
    plain.sql("CREATE STREAMING TABLE e (a BIGINT) TIMESTAMP BY a")
    with cast(Subscription, plain.subscribe("SELECT a FROM e [ROWS 1] SAMPLE 1 ROWS")):
        name = plain.sql("SELECT name FROM headwater.queries").rows()[0][0]
        with channel(live, f"/console/live?show=query&name={quote(name)}") as messages:
            assert next(messages)["object"]["readers"] == 1


def out(number: int, rows: int = 1) -> Out:
    """A result."""
    return Out(number, str(number), pa.table({"n": pa.array([number] * rows, pa.int64())}))


def test_a_fast_query_is_seen_in_steps() -> None:
    """Of many results the newest are held, of many rows the first; what is left out is counted."""
    results = Results()
    assert results.take() is None
    for number in range(HELD + 5):
        results.add(out(number, rows=1000))
    found = results.take()
    assert found is not None
    assert found["skipped"] == 5
    assert found["row_count"] == 1000
    assert [point["time"] for point in found["points"]] == list(range(5, HELD + 5))
    assert [len(point["rows"]) for point in found["points"]] == [POINT_ROWS] * (HELD - 1) + [
        SHOWN_ROWS
    ]
    assert results.take() is None


def test_a_channel_says_nothing_twice(live: Live, plain: headwater.Database) -> None:
    """Parts that stay as they are are sent once."""
    plain.sql("CREATE TABLE t (a INT)")
    own = Channel(live.server, "tables", "")
    first = own.changes()
    assert first is not None
    assert [row["name"] for row in first["tables"]] == ["t"]
    own._looked -= 10  # a second look is due
    assert own.changes() is None
    plain.sql("CREATE TABLE u (a INT)")
    own._looked -= 10
    second = own.changes()
    assert second is not None
    assert len(second["tables"]) == 2


def test_rates() -> None:
    """A counter's growth over the time between two looks; a counter that starts anew is no rate."""
    now = 0.0
    rates = Rates(lambda: now)
    assert rates.of("a", 10) is None
    now = 2.0
    assert rates.of("a", 30) == 10
    now = 3.0
    assert rates.of("a", 0) == 0
    assert rates.of("b", None) is None


def test_tables_of_a_statement() -> None:
    """What a statement reads, for the picture's edges; a text that cannot be read has none."""
    query = "CREATE CONTINUOUS QUERY q AS SELECT count(*) FROM e [ROWS 5], t SAMPLE REALTIME"
    assert set(tables_of(query)) == {"e", "t"}
    assert tables_of("WITH x AS (SELECT 1 FROM a) SELECT * FROM x JOIN b") == ("a", "b")
    assert tables_of("?!") == ()
    assert tables_of(None) == ()
