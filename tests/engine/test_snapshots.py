"""Snapshots in files: written in the caller's thread, or beside it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.engine.query import ContinuousQuery
from headwater.engine.query_functions import QueryFunctions
from headwater.engine.query_sharing import Shares
from headwater.engine.snapshots import SnapshotFile


class Numbers:
    """A structure of one vector."""

    def __init__(self, values: list[int] | None = None) -> None:
        self.values = np.array(values or [])

    def state(self) -> dict[str, Any]:
        """What must be kept."""
        return {"values": self.values}

    def restore(self, state: dict[str, Any]) -> None:
        """Take it up again."""
        self.values = state["values"]


def test_a_snapshot_written_beside_is_that_of_the_call(tmp_path: Path) -> None:
    """Whatever the structure does meanwhile; a reader waits until it is in place."""
    file, numbers = SnapshotFile(tmp_path / "a" / "1.snapshot"), Numbers([1, 2, 3])
    file.write_beside(numbers, {"place": 7})
    numbers.values[:] = 0
    found = Numbers()
    assert file.read(found) == {"place": 7}
    assert found.values.tolist() == [1, 2, 3]
    assert not file.is_writing


def test_an_error_beside_comes_out_at_the_next_call(tmp_path: Path) -> None:
    """A snapshot that cannot be written is told once, and the next one may succeed."""
    (tmp_path / "taken").write_text("a file where the folder should be")
    file = SnapshotFile(tmp_path / "taken" / "1.snapshot")
    file.write_beside(Numbers([1]), {})
    with pytest.raises(OSError, match="taken"):
        file.settle()
    file.settle()
    (tmp_path / "taken").unlink()
    file.write(Numbers([2]), {"place": 1})
    assert file.exists


def test_a_removed_snapshot_does_not_come_back(tmp_path: Path) -> None:
    """Removing waits for what is being written."""
    file = SnapshotFile(tmp_path / "1.snapshot")
    for number in range(20):
        file.write_beside(Numbers([number] * 10_000), {})
        file.remove()
        assert not list(tmp_path.iterdir())


def test_a_snapshot_that_failed_beside_frees_no_rows(tmp_path: Path) -> None:
    """The rows since the last good snapshot are still needed, also when the query goes on."""
    (tmp_path / "taken").write_text("a file where the folder should be")
    query = object.__new__(ContinuousQuery)
    query.snapshot = file = SnapshotFile(tmp_path / "taken" / "1.snapshot")
    query._kept_from, query._promised, query._kept_at = [3], [7], time.monotonic()
    file.write_beside(Numbers([1]), {})
    assert file._writer is not None
    file._writer.join()
    with pytest.raises(OSError, match="taken"):
        query.put_away_if_due(60.0)
    query.put_away_if_due(60.0)
    assert query._kept_from == [3]


def test_a_snapshot_that_cannot_be_made_can_be_removed(tmp_path: Path) -> None:
    """Whatever its error was: nobody wants it any more, and no half of it is left."""
    file = SnapshotFile(tmp_path / "1.snapshot")
    file.write_beside(Numbers([1]), {"place": object()})
    file.remove()
    file.settle()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("beside", [False, True])
def test_rows_that_change_while_a_snapshot_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    """It holds what was made of the old rows, so it is gone when the query goes on."""
    query = object.__new__(ContinuousQuery)
    query.snapshot, query.restorable, query._promised = SnapshotFile(tmp_path / "1"), True, None
    query.functions, query.shares, query._folded = QueryFunctions(), Shares(), True

    def changed_meanwhile(one: ContinuousQuery, file: SnapshotFile, beside: bool) -> list[int]:
        one.rows_will_change()
        (file.write_beside if beside else file.write)(Numbers([1]), {})
        return [7]

    monkeypatch.setattr("headwater.engine.query.put_away", changed_meanwhile)
    query._put_away(beside=beside)
    assert not list(tmp_path.iterdir())
    assert query._promised is None
