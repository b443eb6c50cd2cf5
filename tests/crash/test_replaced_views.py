"""CREATE OR REPLACE VIEW with views above it, killed at every call that writes: the old views or the new.

A copy of the folder before each such call is what a kill at that moment leaves.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headwater

SETTINGS = {"factories": 0, "block_age_s": 1e6, "snapshot_s": 1e6}
CALLS = ("pwritev", "fsync", "fdatasync", "rename", "replace", "unlink", "mkdir")
MADE = (
    "CREATE STREAMING TABLE s (ts INT NOT NULL, k INT, x INT) TIMESTAMP BY ts",
    "CREATE TABLE t (k INT, c STRING)",
    "CREATE VIEW a AS SELECT k, sum(x) AS n FROM s GROUP BY k",
    "CREATE VIEW above AS SELECT k, n + 1 AS m FROM a WHERE n > 0",
    "CREATE VIEW joined AS SELECT a.k, a.n, t.c FROM a JOIN t ON a.k = t.k",
    "CREATE VIEW plain AS SELECT max(m) AS top FROM above",
)
REPLACED = "CREATE OR REPLACE VIEW a AS SELECT k, sum(x) * 10 AS n FROM s GROUP BY k"


@contextmanager
def copied_before_calls(folder: Path, copies: Path) -> Iterator[None]:
    """While inside, the folder is copied before each call that writes."""
    numbers, inside = itertools.count(), False

    def wrapped(call: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **named: Any) -> Any:
            nonlocal inside
            if not inside:
                inside = True
                try:
                    shutil.copytree(folder, copies / str(next(numbers)))
                finally:
                    inside = False
            return call(*arguments, **named)

        return made

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, wrapped(getattr(os, name)))
        yield


def answers(db: headwater.Database) -> list[list[tuple[Any, ...]]]:
    names = ("a", "above", "joined", "plain")
    return [sorted(db.sql(f"SELECT * FROM {name}").rows()) for name in names]


def expected(factor: int, extra: int = 0) -> list[list[tuple[Any, ...]]]:
    """What the views show; `extra`: of a row that came afterwards, for key 1."""
    sums = [(1, (40 + extra) * factor), (2, 20 * factor)]
    above = [(k, n + 1) for k, n in sums]
    return [sums, above, [(1, sums[0][1], "one")], [(max(m for _, m in above),)]]


@pytest.mark.here
def test_either_the_old_views_or_the_new_ones_are_whole(folder: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    with headwater.connect(folder, settings=SETTINGS) as db:
        for text in MADE:
            db.sql(text)
        db.insert("t", [(1, "one")])
        db.insert("s", [(1, 1, 10), (2, 2, 20), (3, 1, 30)])
        db.flush()
    with headwater.connect(folder, settings=SETTINGS) as db:  # with snapshots of the old views
        assert answers(db) == expected(1)
        with copied_before_calls(folder, copies):
            db.sql(REPLACED)
        assert answers(db) == expected(10)
        shutil.copytree(folder, copies / "after")
    found = {path.name: _reopened(path) for path in sorted(copies.iterdir())}
    assert len(found) >= 3, found
    assert (found["0"], found["after"]) == (1, 10), found


def _reopened(path: Path) -> int:
    """By what the view is multiplied in a folder that a kill has left; all views go on with that."""
    with headwater.connect(path, settings=SETTINGS) as db:
        shown = answers(db)
        factor = 10 if shown == expected(10) else 1
        assert shown == expected(factor), path.name
        db.insert("s", [(4, 1, 2)])
        assert answers(db) == expected(factor, 2), path.name
        for name in ("a", "above", "joined"):
            assert db.sql(f"VERIFY VIEW {name}").rows() == [], (path.name, name)
    return factor
