"""Plain scans over files and rows in memory; equality with Spark is tested in tests/plan."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.errors import DataError, StorageError
from headwater.expression.terms import PLAIN
from headwater.plan.scan import ScanPlan, Total, scan_plan
from headwater.sql import dialect
from headwater.storage.scan import scan_files, scan_table, total_of

SCHEMA = pa.schema([("i", pa.int32()), ("d", pa.float64()), ("s", pa.string())])


def planned(sql: str) -> ScanPlan:
    """The plain scan that a query is."""
    tree = dialect.parse_tree(sql)
    assert not isinstance(tree, Exception)
    plan = scan_plan(tree, PLAIN, SCHEMA)
    assert plan is not None
    return plan


def scanned(sql: str, *tables: pa.Table, folder: Path) -> list[tuple[object, ...]]:
    """The rows of a scan over files; those over the same rows in memory must be equal."""
    plan = planned(sql)
    files = []
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
        files.append(str(folder / f"{number}.parquet"))
    found = [tuple(row.values()) for row in scan_files(plan, files, SCHEMA).to_pylist()]
    whole = pa.concat_tables(tables) if tables else SCHEMA.empty_table()
    assert repr(found) == repr([tuple(r.values()) for r in scan_table(plan, whole).to_pylist()])
    return found


def rows(*values: tuple[object, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, v, strict=True)) for v in values], SCHEMA)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("d > 7.0", [2]),
        ("d != 5.0", [2]),
        ("NOT (d <= 5.0)", [2]),
        ("NOT (d = 5.0)", [2]),
        ("d NOT BETWEEN 0.0 AND 9.0", [2]),
        ("d NOT IN (5.0, 6.0)", [2]),
        ("d >= 5.0 AND i >= 2", [2]),
        ("i = 1 AND NOT d > 5.0", [1]),
        ("d < 9.0 OR i = 2", [1, 2]),
        ("d IS NOT NULL", [1, 2]),
    ],
)
def test_bounds_of_files_never_hide_nan(tmp_path: Path, where: str, wanted: list[int]) -> None:
    table = rows((1, 5.0, "x"), (2, math.nan, "y"), (3, None, "z"))
    found = scanned(f"SELECT i FROM t WHERE {where}", table, folder=tmp_path)
    assert [i for (i,) in found] == wanted


def test_limit_with_a_float_predicate(tmp_path: Path) -> None:
    table = rows((1, 1.0, "x"), (2, math.nan, "y"), (3, 9.0, "z"))
    assert scanned("SELECT i FROM t WHERE d > 2.0 LIMIT 1", table, folder=tmp_path) == [(2,)]


def test_order_is_stable_and_puts_null_first(tmp_path: Path) -> None:
    first = rows((2, None, "b"), (1, None, "b"), (3, None, None))
    second = rows((5, None, "a"), (4, None, None))
    found = scanned("SELECT s, i FROM t ORDER BY s", first, second, folder=tmp_path)
    assert found == [(None, 3), (None, 4), ("a", 5), ("b", 2), ("b", 1)]
    down = scanned(
        "SELECT i FROM t ORDER BY s DESC, i DESC LIMIT 2", first, second, folder=tmp_path
    )
    assert down == [(2,), (1,)]


def test_no_files_no_rows(tmp_path: Path) -> None:
    assert scanned("SELECT i FROM t WHERE i > 1 ORDER BY s LIMIT 3", folder=tmp_path) == []


def test_a_sum_takes_the_place_of_the_rows(tmp_path: Path) -> None:
    """Over files and in memory; NULL adds nothing, and no row gives NULL or the default."""
    table = rows((2**31 - 1, 1.0, "x"), (2**31 - 1, 1.0, "x"), (None, 1.0, "x"), (5, 1.0, "y"))
    sql = "SELECT sum(i) AS total FROM t WHERE s = "
    assert scanned(sql + "'x'", table, folder=tmp_path) == [(2**32 - 2,)]
    assert scanned(sql + "'z'", table, folder=tmp_path) == [(None,)]
    assert scanned("SELECT coalesce(sum(i), 0L) AS i FROM t WHERE i = 7", folder=tmp_path) == [(0,)]


@pytest.mark.parametrize("last", [0, 1])
def test_a_sum_beyond_bigint_is_an_error(last: int) -> None:
    """Exact up to the last number that fits, whatever the order."""
    numbers = pa.chunked_array([[2**63 - 1, -(2**63), None, 2**62], [2**62, last]], pa.int64())
    if not last:
        assert total_of(Total(None), numbers) == 2**63 - 1
        return
    with pytest.raises(DataError, match="too large") as caught:
        total_of(Total(None), numbers)
    assert caught.value.sqlstate == "22003"


def test_columns_that_a_file_lacks_are_null(tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": pa.array([1], pa.int32())}), tmp_path / "old.parquet")
    plan = planned("SELECT * FROM t WHERE s IS NULL")
    assert plan is not None
    found = scan_files(plan, [str(tmp_path / "old.parquet")], SCHEMA)
    assert found.to_pylist() == [{"i": 1, "d": None, "s": None}]


@pytest.mark.parametrize("damage", ["cut", "missing", "overwritten", "empty"])
def test_a_damaged_file_is_an_error_never_wrong_rows(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "part-1.parquet"
    pq.write_table(pa.table({"i": pa.array(range(5000), pa.int32())}), path)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "missing":
        path.unlink()
    elif damage == "overwritten":
        content[100:4000] = b"\xff" * 3900
        path.write_bytes(content)
    else:
        path.write_bytes(b"")
    plan = planned("SELECT i FROM t WHERE i >= 0")
    assert plan is not None
    with pytest.raises(StorageError, match="cannot be read") as caught:
        scan_files(plan, [str(path)], SCHEMA)
    assert caught.value.sqlstate == "XX001"
    assert caught.value.detail
