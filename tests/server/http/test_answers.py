"""Statements and rows over HTTP: formats, parameters, errors, idempotence, health, metrics, OpenAPI."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.server.http.routes import ROUTES
from headwater.server.http.rows_out import ARROW, LINES
from tests.server.http.client import Client
from tests.server.live import Live

COLUMNS = "a INT, b STRING, c DOUBLE, d DECIMAL(10, 2), e TIMESTAMP, f DATE, g BINARY, h ARRAY<INT>"
ROW: dict[str, Any] = {
    "a": 1, "b": "é \"x\"\n", "c": 1.5, "d": "1.10", "e": "2026-01-02T03:04:05.500Z", "f": "2026-01-02",
    "g": "YWI=", "h": [1, None],
}  # fmt: skip
SAMPLE = re.compile(
    r'[a-zA-Z_:][a-zA-Z0-9_:]*(\{[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"(,[a-z_]+="(?:[^"\\\n]|\\[\\"n])*")*\})?'
    r" -?\d+(\.\d+)?(e[+-]\d+)?"
)


@pytest.fixture
def table(plain: headwater.Database) -> str:
    """A table of many types."""
    plain.sql(f"CREATE TABLE t ({COLUMNS})")
    return "t"


def test_rows_go_in_and_come_out_as_they_were(client: Client, table: str) -> None:
    """JSON lines in; JSON, JSON lines and Arrow out hold the same values."""
    lines = json.dumps(ROW) + "\n\n" + json.dumps({"A": 2, "c": "NaN"}) + "\n"
    answer = client.ask("POST", "/tables/t", lines, Content_Type=f"{LINES}; charset=utf-8")
    assert (answer.status, answer.json) == (200, {"inserted": 2, "duplicate": False})
    whole = client.sql("SELECT * FROM t").json
    names = [column["name"] for column in whole["columns"]]
    assert [column["type"] for column in whole["columns"]][:3] == ["INT", "STRING", "DOUBLE"]
    assert dict(zip(names, whole["rows"][0], strict=True)) == ROW
    assert whole["rows"][1][:3] == [2, None, "NaN"]
    assert whole["row_count"] == 2
    found = client.sql("SELECT * FROM t", Accept=LINES).body.decode().splitlines()
    assert json.loads(found[0]) == ROW
    arrow = client.sql("SELECT * FROM t", Accept=ARROW)
    assert arrow.headers["content-type"] == ARROW
    assert pa.ipc.open_stream(arrow.body).read_all().to_pylist()[0]["g"] == b"ab"


def test_csv_names_its_columns(client: Client, table: str) -> None:
    """The header decides which columns come; without one they come in the table's order."""
    body = 'b,a\n"x, ""y""",7\n,8\n'
    assert client.ask("POST", "/tables/t", body, Content_Type="text/csv").json["inserted"] == 2
    assert sorted(client.sql("SELECT a, b FROM t").json["rows"], key=str) == [
        [7, 'x, "y"'],
        [8, None],
    ]
    wrong = client.ask("POST", "/tables/t", "a,zzz\n1,2\n", Content_Type="text/csv")
    assert (wrong.status, wrong.sqlstate) == (400, "42703")


def test_csv_without_a_header(client: Client, plain: headwater.Database) -> None:
    """`?header=false`: the first line is a row."""
    plain.sql("CREATE TABLE s (a INT, b STRING)")
    answer = client.ask("POST", "/tables/s?header=false", "1,x\n2,y\n", Content_Type="text/csv")
    assert answer.json["inserted"] == 2


def test_arrow_goes_in(client: Client, table: str) -> None:
    """An Arrow stream is read whole and checked."""
    sink = pa.BufferOutputStream()
    rows = pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"]})
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    data = sink.getvalue().to_pybytes()
    assert client.ask("POST", "/tables/t", data, Content_Type=ARROW).json["inserted"] == 2
    cut = client.ask("POST", "/tables/t", data[: len(data) // 2], Content_Type=ARROW)
    assert (cut.status, cut.sqlstate) == (400, "22P04")


def test_a_batch_id_makes_a_retry_safe(client: Client, plain: headwater.Database) -> None:
    """The same batch twice adds its rows once, into either kind of table."""
    plain.sql("CREATE TABLE s (a INT); CREATE STREAMING TABLE e (a INT)")
    for name in ("s", "e"):
        for expected in ({"inserted": 2, "duplicate": False}, {"inserted": 0, "duplicate": True}):
            answer = client.ask(
                "POST", f"/tables/{name}", b'[{"a":1},{"a":2}]', Content_Type="application/json",
                Batch_Id="b-1",
            )  # fmt: skip
            assert answer.json == expected
        assert len(plain.sql(f"SELECT a FROM {name}")) == 2


UNFIT: tuple[tuple[bytes, str, str], ...] = (
    (b'{"a": "x"}', "application/json", "22018"),
    (b'{"e": "yesterday"}', "application/json", "22018"),
    (b'{"d": true}', "application/json", "22018"),
    (b'{"g": "?"}', "application/json", "22018"),
    (b'{"h": 5}', "application/json", "22018"),
    (b'{"zzz": 5}', "application/json", "42703"),
    (b"[1]", "application/json", "22P04"),
    (b"{", "application/json", "22P02"),
    (b'{"a": NaN}', "application/json", "22P02"),
    (b'{"a": 1}\n{"a": \n', LINES, "22P04"),
    (b"[" * 100_000, "application/json", "22P02"),
    (b"a\nx\n", "text/csv", "22P04"),
    (b"\xff\xfe", "text/csv", "22021"),
    (b"", ARROW, "22P04"),
    (b"a: 1", "application/yaml", "22023"),
)


def test_rows_that_do_not_fit_are_refused(
    client: Client, table: str, plain: headwater.Database
) -> None:
    """An error names what is wrong, and nothing was inserted."""
    for body, kind, sqlstate in UNFIT:
        answer = client.ask("POST", "/tables/t", body, Content_Type=kind)
        assert (answer.status in (400, 415), answer.sqlstate) == (True, sqlstate), (body[:40], kind)
    assert len(plain.sql("SELECT a FROM t")) == 0


def test_parameters_are_values_never_code(client: Client, table: str) -> None:
    """Quotes, backslashes, signs and nothing at all come back as they went in."""
    text = 'it\'s \\ -- "x"; DROP TABLE t'
    assert client.sql("INSERT INTO t (a, b, c) VALUES ($1, $2, $3)", -5, text, -2.5).status == 200
    assert client.sql("INSERT INTO t (a, b, c) VALUES (?, ?, ?)", 6, None, 1e300).status == 200
    assert sorted(client.sql("SELECT a, b, c FROM t").json["rows"], key=str) == [
        [-5, text, -2.5],
        [6, None, 1e300],
    ]
    for wrong in (client.sql("SELECT a FROM t WHERE a = $1"), client.sql("SELECT a FROM t", 1)):
        assert (wrong.status, wrong.sqlstate) == (400, "08P01")


def test_errors_say_where(client: Client, table: str) -> None:
    """The place of an error is a position in the text that came, parameters or not."""
    error = client.sql("SHOW TABLES;\nSELEC 1").json["error"]
    assert (error["sqlstate"], error["position"], error["line"], error["column"]) == (
        "42601",
        14,
        2,
        1,
    )
    error = client.sql("INSERT INTO t (a, zzz) VALUES ($1, 1)", "x" * 50).json["error"]
    assert (error["sqlstate"], error["position"]) == ("42703", 19)
    missing = client.ask("POST", "/tables/nope", "{}", Content_Type="application/json")
    assert (missing.status, missing.sqlstate) == (404, "42P01")


BODIES: tuple[tuple[Any, str, int], ...] = (
    ("SHOW TABLES", "text/plain", 200),
    ("", "text/plain", 200),
    ("SHOW TABLES; SHOW VIEWS", "application/sql", 200),
    (b"\xff", "text/plain", 400),
    ("{}", "application/json", 400),
    ("[]", "application/json", 400),
    ('{"sql": 5}', "application/json", 400),
    ('{"sql": "SHOW TABLES", "parameter": []}', "application/json", 400),
    ('{"sql": "SHOW TABLES", "parameters": 1}', "application/json", 400),
    ('{"sql": "SELECT $a", "parameters": {"b": 1}}', "application/json", 400),
    ('{"sql": "SELECT $a AS a", "parameters": {"a": 1}}', "application/json", 200),
    ('{"sql": "SHOW TABLES", "timeout_s": -1}', "application/json", 400),
    ('{"sql": "SHOW TABLES", "timeout_s": 5}', "application/json", 200),
    ("SHOW TABLES", "image/png", 415),
)


def test_bodies_of_sql(client: Client) -> None:
    """A statement comes as JSON or as itself; everything else is refused with JSON."""
    for body, kind, status in BODIES:
        answer = client.ask("POST", "/sql", body, Content_Type=kind)
        assert answer.status == status, (body, kind)
        assert ("error" in answer.json) == (status != 200)
    assert client.sql("SHOW TABLES", Accept="image/png").status == 406


def test_health_and_readiness(client: Client, live: Live) -> None:
    """Both answer without a login; a server that stops is not ready."""
    assert client.ask("GET", "/health").json == {"status": "ok"}
    assert client.ask("HEAD", "/health").body == b""
    assert client.ask("HEAD", "/subscribe/q").status == 405
    assert client.ask("GET", "/ready").json["status"] == "ready"
    live.server.stopping = True
    with Client(live) as other:
        stopping = other.ask("GET", "/ready")
    assert (stopping.status, stopping.json["status"]) == (503, "stopping")
    assert stopping.headers["connection"] == "close"


def test_metrics_can_be_read(client: Client, plain: headwater.Database) -> None:
    """Every line is a comment or a sample; a metric has one TYPE; the numbers are the database's."""
    plain.sql('CREATE STREAMING TABLE `we"ird` (a INT); INSERT INTO `we"ird` VALUES (1)')
    text = client.ask("GET", "/metrics").body.decode()
    assert text.endswith("\n")
    types = re.findall(r"^# TYPE (\S+) (counter|gauge)$", text, re.M)
    assert len({name for name, _ in types}) == len(types)
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in samples if not SAMPLE.fullmatch(line)] == []
    assert {re.split(r"[ {]", line)[0] for line in samples} == {name for name, _ in types}
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in types)
    assert 'headwater_table_sequence{table="we\\"ird"} 1.0' in samples


def test_openapi_names_every_route(client: Client) -> None:
    """The document is JSON, names every route, and refers only to what is in it."""
    document = client.ask("GET", "/openapi.json").json
    assert document["openapi"].startswith("3.1")
    found = {(m.upper(), path) for path, item in document["paths"].items() for m in item}
    assert found == {(route.method, route.path) for route in ROUTES}
    for reference in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)):
        assert reference in document["components"]["schemas"]
    for path, item in document["paths"].items():
        for operation in item.values():
            named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert named == set(re.findall(r"\{(\w+)\}", path))
