"""What we write ourselves lies on a local disk: other addresses are refused, and make no folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import headwater
from headwater.cli.main import app
from headwater.errors import Error
from headwater.sources.stream import missing_file_system
from headwater.storage.local_path import local_path, scheme_of

OTHERS = (
    "s3a://bucket/x",
    "s3://bucket/x",
    "S3A://bucket/x",
    "hdfs://host:9000/x",
    "gs://bucket/x",
    "abfss://c@account.dfs.core.windows.net/x",
    "wasbs://c@account/x",
    "https://host/x",
    "dbfs:/x",
)
QUERY = (
    "CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n FROM t [INTERVAL 5 SECONDS]"
    " SAMPLE INTERVAL 1 SECOND"
)
STATEMENTS = (
    *(f"CREATE SINK s FROM q INTO '{kind}:{{}}'" for kind in ("csv", "json", "parquet", "delta")),
    "CREATE SOURCE s INTO t FROM 'delta:{}'",
    "INSERT INTO t FROM STREAM 'delta:{}'",
    "COPY t FROM '{}' CSV",
    "COPY t FROM '{}' PARQUET",
    "COPY t TO '{}' CSV",
    "COPY (SELECT * FROM t) TO '{}' PARQUET",
)


@pytest.fixture
def stream(connect: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> headwater.Database:
    """A database with a table and a query; the working folder is empty."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    db: headwater.Database = connect(tmp_path / "data", settings={"eager_spark": False})  # type: ignore[operator]
    db.sql("CREATE STREAMING TABLE t (v INT, ts BIGINT) TIMESTAMP BY ts")
    db.sql(QUERY)
    return db


@pytest.mark.parametrize("address", OTHERS)
def test_a_data_folder_elsewhere_is_refused_and_none_is_made_here(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (address, Path(address)):
        with pytest.raises(Error, match="data folder cannot lie on") as caught:
            headwater.connect(given)
        assert caught.value.sqlstate == "0A000"
        assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("statement", STATEMENTS)
def test_sinks_delta_sources_and_files_elsewhere_are_refused(
    statement: str, stream: headwater.Database
) -> None:
    for address in OTHERS:
        with pytest.raises(Error, match="only on a local disk") as caught:
            stream.sql(statement.format(address))
        assert caught.value.sqlstate == "0A000"
        assert caught.value.hint
    assert list(Path.cwd().iterdir()) == []


def test_a_file_address_is_a_local_path(stream: headwater.Database) -> None:
    here = Path.cwd()
    stream.sql("INSERT INTO t VALUES (1, 1)")
    stream.sql(f"COPY t TO 'file://{here}/a%20b.csv' CSV")
    stream.sql(f"CREATE SINK s FROM q INTO 'csv:file://{here}/out'")
    assert (here / "a b.csv").exists()
    assert [name.name for name in here.iterdir()] == ["a b.csv"] or (here / "out").is_dir()
    with headwater.connect(f"file://{here}/other", settings={"eager_spark": False}):
        assert (here / "other" / "HEADWATER").exists()


@pytest.mark.parametrize("command", [["sql", "-c", "SELECT 1"], ["serve"], ["doctor"]])
def test_commands_refuse_a_folder_elsewhere(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, [command[0], "s3://bucket/x", *command[1:]])
    assert found.exit_code != 0
    assert "a data folder cannot lie on s3://" in found.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "scheme"),
    [
        ("s3a://b", "s3a"),
        ("file:///x", "file"),
        ("file:/x", "file"),
        ("/data/a:b", None),
        ("a:b", None),
        ("C:/data", None),
        (":memory:", None),
        ("./s3a:/b", None),
    ],
)
def test_what_is_an_address(given: str, scheme: str | None) -> None:
    assert scheme_of(given) == scheme


@pytest.mark.parametrize(
    ("given", "path"),
    [("file:///a/b", "/a/b"), ("file:/a", "/a"), ("file://localhost/a%20b", "/a b"), ("x", "x")],
)
def test_the_path_of_an_address(given: str, path: str) -> None:
    assert local_path(given, "it", "") == Path(path)
    with pytest.raises(Error, match="another machine, host"):
        local_path("file://host/a", "it", "")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('UnsupportedFileSystemException: No FileSystem for scheme "gs"', "gs"),
        ("ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", "s3a"),
    ],
)
def test_a_file_system_that_spark_does_not_know_is_named(text: str, name: str) -> None:
    found = missing_file_system(RuntimeError(text))
    assert found is not None
    assert f"file system {name}://" in found.message
    assert missing_file_system(RuntimeError("else")) is None
