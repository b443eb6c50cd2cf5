"""Staging: shared memory up to its bound, then the folder; nothing is left."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.errors import NotSupportedError, StorageError
from headwater.kernel import relation as relation_module
from headwater.kernel.relation import Relation, Staging

ROWS = pa.table({"a": list(range(10_000))})


@pytest.fixture
def fallback(tmp_path: Path) -> Path:
    return tmp_path / "staging"


def test_rows_are_staged_in_shared_memory_and_released(fallback: Path) -> None:
    staging = Staging(fallback, 10_000_000, shared_memory=True)
    relation = staging.stage(ROWS)
    (path,) = map(Path, relation.files)
    assert path.is_relative_to("/dev/shm")
    assert pq.read_table(path).equals(ROWS)
    staging.release(relation)
    assert not path.exists()
    staging.close()
    assert not path.parent.exists()
    assert not fallback.exists()


def test_beyond_the_bound_rows_go_to_the_folder(fallback: Path) -> None:
    staging = Staging(fallback, int(1.5 * ROWS.nbytes), shared_memory=True)
    first, second = staging.stage(ROWS), staging.stage(ROWS)
    assert Path(first.files[0]).is_relative_to("/dev/shm")
    assert Path(second.files[0]).parent == fallback
    staging.release(first)
    third = staging.stage(ROWS)  # there is room again
    assert Path(third.files[0]).is_relative_to("/dev/shm")
    assert pq.read_table(second.files[0]).equals(ROWS)
    staging.close()
    assert not fallback.exists()


def test_without_shared_memory(fallback: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for shared, where in ((False, "/dev/shm"), (True, "/nonexistent")):
        monkeypatch.setattr(relation_module, "SHARED_MEMORY", Path(where))
        staging = Staging(fallback, 10_000_000, shared_memory=shared)
        assert Path(staging.stage(ROWS).files[0]).parent == fallback
        staging.close()


def test_rows_set_aside_leave_nothing_in_the_folder(fallback: Path) -> None:
    """They are read out of a mapped file without a name, which no memory of Arrow's holds."""
    staging = Staging(fallback, 10_000_000, shared_memory=True)
    rows = pa.table({"a": list(range(100_000)), "b": ["x" * (i % 9) for i in range(100_000)]})
    before = pa.total_allocated_bytes()
    aside = staging.set_aside(pa.concat_tables([rows.slice(0, 7), rows.slice(7)]))
    assert aside.equals(rows)
    assert pa.total_allocated_bytes() - before < rows.nbytes / 10
    assert list(fallback.iterdir()) == []
    assert [batch.num_rows for batch in aside.to_batches()] == [32768, 32768, 32768, 1696]
    staging.close()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """Rows that cannot be set aside are an error of storage, not of the query."""
    (tmp_path / "staging").write_text("a file")
    staging = Staging(tmp_path / "staging", 10_000_000, shared_memory=False)
    with pytest.raises(StorageError, match="staging"):
        staging.set_aside(ROWS)


def test_types_take_the_flavour_that_spark_reads(fallback: Path) -> None:
    staging = Staging(fallback, 10_000_000, shared_memory=False)
    odd = pa.table(
        {
            "s": pa.array(["x"], pa.large_string()),
            "t": pa.array([1], pa.timestamp("ms", "Europe/Berlin")),
            "d": pa.array(["a"]).dictionary_encode(),
        }
    )
    relation = staging.stage(odd)
    assert relation.spark_schema() == "`s` STRING, `t` TIMESTAMP, `d` STRING"
    with pytest.raises(NotSupportedError):
        staging.stage(pa.table({"x": pa.array([1], pa.duration("us"))}))
    staging.close()


def test_names_are_quoted_for_spark() -> None:
    schema = pa.schema([("a`b c", pa.list_(pa.struct([("x y", pa.int32())])))])
    assert Relation(schema, ()).spark_schema() == "`a``b c` ARRAY<STRUCT<`x y`: INT>>"
