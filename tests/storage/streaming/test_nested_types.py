"""Columns of every type, nested, in blocks: what was inserted is what is read, whatever happened between."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import NotSupportedError
from headwater.storage.delta import CHECKPOINT_INTERVAL
from headwater.storage.sidecar import Sidecar
from headwater.storage.streaming.table import StreamingTable
from headwater.storage.value_index import indexable
from headwater.storage.value_index.keys import build
from tests.crash.stream_store import Opened, scanned
from tests.harness.nested import NESTED, PRIMITIVES, rows_of, same, schema_of, types, values

ALL = {**PRIMITIVES, **NESTED}


def stored(table: StreamingTable) -> list[Any]:
    """The values of all rows, in order."""
    return [value for _, value in scanned(table, ("id", "v"))]


@contextlib.contextmanager
def killed(folder: Path) -> Iterator[Opened]:
    """An open folder that is not closed in the end: what is in memory is gone."""
    found = Opened(folder, compact_files=2)
    try:
        yield found
    finally:
        found.drop()


@pytest.mark.parametrize("name", ALL)
def test_values_come_back_through_seals_reopening_and_compaction(tmp_path: Path, name: str) -> None:
    type_, given_ = ALL[name]
    expected: list[Any] = []
    with killed(tmp_path / "data") as found:
        table = found.create("a", schema_of(type_))
        for _ in range(CHECKPOINT_INTERVAL + 2):
            table.insert(rows_of([*given_, None], len(expected)))
            expected += [*given_, None]
            found.store.seal(table)
        assert same(stored(table), expected)
    with killed(tmp_path / "data") as found:
        table = found.table("a")
        assert same(stored(table), expected)
        assert table.compact() == CHECKPOINT_INTERVAL + 2
        assert same(stored(table), expected)
        table.insert(rows_of(given_, len(expected)))  # in the write-ahead log alone
    with Opened(tmp_path / "data") as found:
        assert same(stored(found.table("a")), expected + given_)


@pytest.mark.parametrize("name", ALL)
def test_statistics_reach_other_readers_of_the_log(tmp_path: Path, name: str) -> None:
    """delta-rs passes silently over statistics of a wrong shape: then the row count is gone, too."""
    type_, given_ = ALL[name]
    with Opened(tmp_path / "data") as found:
        table = found.create("a", schema_of(type_))
        table.insert(rows_of([*given_, None]))
        found.store.seal(table)
    actions = pa.table(DeltaTable(table.folder).get_add_actions()).to_pylist()
    assert [action["num_records"] for action in actions] == [len(given_) + 1]
    text = (table.folder / "_delta_log" / f"{1:020d}.json").read_text()
    (add,) = [json.loads(line)["add"] for line in text.splitlines() if '"add"' in line]
    counted = json.loads(add["stats"])["nullCount"]["v"]
    nulls = pa.array([*given_, None], type_).null_count
    assert (
        counted == nulls
        if not pa.types.is_struct(type_)
        else set(counted) == {field.name for field in type_}
    )


@pytest.mark.parametrize("name", ALL)
def test_the_sidecar_keeps_values_as_they_are(tmp_path: Path, name: str) -> None:
    type_, given_ = ALL[name]
    rows = pa.table({"v": pa.array([*given_, None], type_)})
    sidecar = Sidecar(tmp_path, 1 << 20, 4)
    assert sidecar.write("block", rows)
    again = Sidecar(tmp_path, 1 << 20, 4)
    found = again.read("block")
    assert found is not None
    assert found.schema == rows.schema
    assert same(found.column("v").to_pylist(), [*given_, None])
    again.close()
    sidecar.close()


@pytest.mark.parametrize("name", ALL)
def test_an_index_finds_values_of_primitive_types_and_refuses_the_others(name: str) -> None:
    type_, given_ = ALL[name]
    column = pa.chunked_array([pa.array([*given_, None], type_)])
    assert indexable(type_) == (name in PRIMITIVES)
    if name in NESTED:
        with pytest.raises(NotSupportedError, match="cannot have an index"):
            build(column)
        return
    keys = build(column)
    assert [keys.frequency(value) for value in given_] == [1] * len(given_)


@settings(max_examples=25)
@given(data=st.data())
def test_random_nested_types_come_back_as_they_were_inserted(data: st.DataObject) -> None:
    type_ = data.draw(types())
    batches = data.draw(st.lists(st.lists(values(type_), max_size=4), min_size=1, max_size=4))
    ends = data.draw(st.lists(st.booleans(), min_size=4, max_size=4))
    as_arrow = data.draw(st.booleans())
    expected: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        with killed(Path(folder) / "data") as found:
            found.create("a", schema_of(type_))
        for batch, seals in zip(batches, ends, strict=False):
            rows = rows_of(batch, len(expected))
            with killed(Path(folder) / "data") as found:
                table = found.table("a")
                assert same(stored(table), expected)
                table.insert(pa.Table.from_pylist(rows, schema_of(type_)) if as_arrow else rows)
                expected += batch
                if seals:
                    found.store.seal(table)
                assert same(stored(table), expected)
        with Opened(Path(folder) / "data") as found:
            assert same(stored(found.table("a")), expected)
        with Opened(Path(folder) / "data") as found:
            assert same(stored(found.table("a")), expected)
