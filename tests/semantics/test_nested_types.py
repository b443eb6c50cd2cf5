"""Columns of every type, nested three deep, on every way in and out: right, or refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import headwater
from headwater.errors import Error
from headwater.server.http.server import HttpOptions, HttpServer
from headwater.sinks.delta import DeltaTarget
from headwater.sinks.files import FilesTarget
from headwater.sinks.target import SinkBatch, SinkName, SinkProgress
from headwater.sql.types import name_of
from headwater.values import json_of, python_values
from tests.harness.nested import NESTED, PRIMITIVES, create, rows_of, same, schema_of
from tests.server.http.client import Client
from tests.server.live import Live, LiveServer
from tests.sinks.flowing import QUICK, wait_for_rows
from tests.sources import feeding

ALL = {**PRIMITIVES, **NESTED}
KINDS = ["TABLE", "STREAMING TABLE"]
Connect = Callable[..., headwater.Database]


@pytest.fixture
def plain() -> Iterator[headwater.Database]:
    """A database that starts no Spark by itself."""
    with headwater.connect(settings={"eager_spark": False}) as database:
        yield database


def filled(db: headwater.Database, name: str, kind: str = "STREAMING TABLE") -> list[Any]:
    """Makes a table `s` with a column `v` of the type; its values, all stored in files."""
    type_, given = ALL[name]
    values = [*given, None]
    db.sql(create(kind, "s", type_))
    db.insert("s", rows_of(values))
    db.seal()
    return values


def read(db: headwater.Database, table: str = "s") -> list[Any]:
    """The column `v` in the order of `id`."""
    rows = db.sql(f"SELECT id, v FROM {table}").arrow().to_pylist()
    return [row["v"] for row in sorted(rows, key=lambda row: row["id"])]


def refusal(call: Callable[[], object]) -> Error:
    """What a call is refused with."""
    with pytest.raises(Error) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALL)
def test_parquet_takes_all_types_both_ways(
    plain: headwater.Database, tmp_path: Path, name: str, kind: str
) -> None:
    values = filled(plain, name, kind)
    path = tmp_path / "out.parquet"
    assert plain.sql(f"COPY s TO '{path}' PARQUET").row_count == len(values)
    assert pq.read_schema(path).field("v").type == schema_of(ALL[name][0]).field("v").type
    plain.sql(create(kind, "again", ALL[name][0]))
    assert plain.sql(f"COPY again FROM '{path}' PARQUET").row_count == len(values)
    assert same(read(plain, "again"), values)


@pytest.mark.parametrize("name", NESTED)
def test_csv_and_indexes_refuse_nested_columns(
    plain: headwater.Database, tmp_path: Path, name: str
) -> None:
    values = filled(plain, name)
    out = refusal(lambda: plain.sql(f"COPY s TO '{tmp_path / 'out.csv'}' CSV"))
    assert (out.sqlstate, out.message) == ("0A000", "column v cannot be written as CSV")
    assert not (tmp_path / "out.csv").exists()
    (tmp_path / "in.csv").write_text('1,1,"{}"\n')
    assert (
        refusal(lambda: plain.sql(f"COPY s FROM '{tmp_path / 'in.csv'}' CSV")).sqlstate == "0A000"
    )
    index = refusal(lambda: plain.sql("CREATE INDEX i ON s (v)"))
    assert index.sqlstate == "42804"
    assert "cannot be indexed" in index.message
    assert same(read(plain), values)


@pytest.mark.parametrize("name", ALL)
def test_http_gives_json_and_takes_it_back(plain: headwater.Database, name: str) -> None:
    values = filled(plain, name)
    type_ = ALL[name][0]
    with Live(HttpServer(plain, HttpOptions(port=0))) as live, Client(live) as client:
        answer = client.sql("SELECT id, v FROM s")
        assert answer.status == 200
        expected = [json_of(type_)(v) for v in python_values(pa.array(values, type_))]
        assert [
            value for _, value in sorted(answer.json["rows"], key=lambda row: row[0])
        ] == expected
        plain.sql(create("STREAMING TABLE", "again", type_))
        rows = [{"t": n, "id": n, "v": value} for n, value in enumerate(expected)]
        body = json.dumps(rows)
        answer = client.ask("POST", "/tables/again", body, Content_Type="application/json")
    if "MAP" in name_of(type_):
        assert (answer.sqlstate, answer.json["error"]["hint"]) == ("0A000", "send Arrow")
        return
    assert answer.status == 200, answer.body
    assert same(read(plain, "again"), values)


@pytest.mark.parametrize("name", NESTED)
def test_the_wire_gives_json(plain: headwater.Database, name: str) -> None:
    values = filled(plain, name)
    type_ = NESTED[name][0]
    expected = [json_of(type_)(v) for v in python_values(pa.array(values, type_))]
    with LiveServer(plain) as live, psycopg.connect(live.dsn, autocommit=True) as client:
        for binary in (False, True):
            found = client.execute("SELECT id, v FROM s ORDER BY id", binary=binary).fetchall()
            assert [value for _, value in sorted(found, key=lambda row: row[0])] == expected
        with client.cursor().copy("COPY (SELECT v FROM s WHERE id = 0) TO STDOUT") as copy:
            ((text,),) = list(copy.rows())
            assert json.loads(str(text)) == expected[0]
        with (
            pytest.raises(psycopg.errors.FeatureNotSupported, match="arrays, maps and structs"),
            client.cursor().copy("COPY s FROM STDIN CSV") as copy,
        ):
            copy.write(b'99,99,"{}"\n')


def batch_of(name: str) -> tuple[list[Any], SinkBatch]:
    """The values of a type as a batch of a sink."""
    type_, given = ALL[name]
    values = [*given, None]
    rows = pa.Table.from_pylist(rows_of(values), schema_of(type_))
    return values, SinkBatch(rows, 1, SinkProgress("token", len(values)))


SINK = SinkName("k", "0123456789abcdef")


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
@pytest.mark.parametrize("name", ALL)
def test_sinks_of_files_write_all_types(tmp_path: Path, name: str, suffix: str) -> None:
    values, batch = batch_of(name)
    type_ = ALL[name][0]
    target = FilesTarget(tmp_path / "out", SINK, suffix)
    target.open(batch.rows.schema)
    target.write(batch)
    (path,) = (tmp_path / "out").glob(f"k-*.{suffix}")
    expected = [json_of(type_)(v) for v in python_values(pa.array(values, type_))]
    if suffix == "parquet":
        assert same(pq.read_table(path).column("v").to_pylist(), values)
    elif suffix == "json":
        lines = path.read_text().splitlines()
        assert [json.loads(line)["v"] for line in lines] == expected
    elif name in NESTED:  # nested values are JSON in the cells of CSV
        options = csv.ConvertOptions(column_types={"v": pa.string()}, strings_can_be_null=True)
        parse = csv.ParseOptions(newlines_in_values=True)
        cells = csv.read_csv(path, parse_options=parse, convert_options=options).column("v")
        assert [None if c is None else json.loads(c) for c in cells.to_pylist()] == expected


@pytest.mark.parametrize("name", ALL)
def test_a_sink_of_a_delta_table_writes_all_types_or_says_which_not(
    tmp_path: Path, name: str
) -> None:
    values, batch = batch_of(name)
    target = DeltaTarget(tmp_path / "out", SINK)
    target.open(batch.rows.schema)
    type_ = ALL[name][0]
    if "MAP" in name_of(type_) and "TIMESTAMP_NTZ" in name_of(type_):  # delta-rs overlooks it
        error = refusal(lambda: target.write(batch))
        assert "cannot be written" in error.message
        assert "TIMESTAMP_NTZ" in (error.detail or "")
        return
    target.write(batch)
    rows = DeltaTable(str(tmp_path / "out")).to_pyarrow_table().sort_by("id")
    assert same(rows.column("v").to_pylist(), values)


WIDE = ", ".join(f"{name} {name_of(type_)}" for name, (type_, _) in NESTED.items())


def wide_rows(first: int, count: int) -> list[dict[str, Any]]:
    """Rows with a column of each nested type, every value in some of them."""
    return [
        {"t": n, "id": n} | {name: values[n % len(values)] for name, (_, values) in NESTED.items()}
        for n in range(first, first + count)
    ]


def wide(db: headwater.Database, text: str) -> list[dict[str, Any]]:
    """The rows of a query over such columns, by id."""
    rows = db.sql(text).arrow().select(["id", *NESTED]).to_pylist()
    return sorted(rows, key=lambda row: int(row["id"]))


def without_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "t"} for row in rows]


def test_spark_views_queries_sinks_and_sources_keep_nested_values(
    connect: Connect, folder: Path, tmp_path: Path
) -> None:
    rows = wide_rows(0, 5)
    names = ", ".join(NESTED)
    with connect(folder) as db:
        db.sql(f"CREATE STREAMING TABLE s (t BIGINT NOT NULL, id BIGINT, {WIDE}) TIMESTAMP BY t")
        db.sql(f"CREATE VIEW v AS SELECT id, {names} FROM s")
        db.sql("CREATE VIEW n AS SELECT count(struct) AS c, max(id) AS m, count(*) AS n FROM s")
        db.sql(
            f"CREATE CONTINUOUS QUERY q AS SELECT id, {names} FROM s [INTERVAL 1 SECONDS BEFORE]"
            " SAMPLE INTERVAL 1 SECONDS"
        )
        db.sql(f"CREATE SINK k FROM q INTO 'parquet:{tmp_path / 'out'}' WITH ({QUICK})")
        db.insert("s", rows)
        db.advance("s", 5)
        db.flush()
        db.seal()
        expected = without_time(rows)
        assert same(wide(db, "SELECT *, count(*) OVER () AS n FROM s"), expected)
        assert same(wide(db, "SELECT * FROM v"), expected)
        assert same(wide(db, "SELECT * FROM q"), expected[-1:])  # the newest result
        present = sum(row["struct"] is not None for row in rows)
        assert db.sql("SELECT * FROM n").rows() == [(present, 4, 5)]
        wait_for_rows(db, "k", 5)
        db.sql("DROP SINK k")
        db.sql("CREATE TABLE copied AS SELECT * FROM s")
        assert same(wide(db, "SELECT * FROM copied"), expected)
        db.sql(f"INSERT INTO s SELECT t + 10, id + 10, {names} FROM copied WHERE id = 0")
        db.sql("DELETE FROM s WHERE id >= 10")
    with connect(folder) as db:
        assert same(wide(db, "SELECT * FROM s"), expected)
        assert same(wide(db, "SELECT * FROM v"), expected)
        db.sql(
            f"CREATE STREAMING TABLE again (t BIGINT NOT NULL, id BIGINT, {WIDE}) TIMESTAMP BY t"
        )
        (tmp_path / "in").mkdir()
        db.sql(f"COPY s TO '{tmp_path / 'in' / '.part'}' PARQUET")
        (tmp_path / "in" / ".part").rename(tmp_path / "in" / "part.parquet")
        where = tmp_path / "in"
        db.sql(f"CREATE SOURCE f INTO again FROM 'parquet:{where}' WITH ({feeding.QUICK})")
        feeding.wait_for_rows(db, "f", 5)
        assert same(wide(db, "SELECT * FROM again"), expected)
    written = [pq.read_table(path) for path in sorted((tmp_path / "out").glob("k-*.parquet"))]
    found = pa.concat_tables(written).select(["id", *NESTED]).sort_by("id").to_pylist()
    assert same(found, expected)
