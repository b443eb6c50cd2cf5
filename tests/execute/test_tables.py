"""Statements that change one table at the same time."""

from __future__ import annotations

import threading
from types import TracebackType

import headwater
from tests.harness.patience import PATIENCE_S


class ToldLock:
    """A lock that tells when a second thread wants it."""

    def __init__(self) -> None:
        self._lock, self._first = threading.RLock(), threading.get_ident()
        self.wanted = threading.Event()

    def __enter__(self) -> None:
        if threading.get_ident() != self._first:
            self.wanted.set()
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()


def test_a_column_that_is_added_while_others_are_altered_stays(db: headwater.Database) -> None:
    db.sql("CREATE TABLE t (a INT, b INT, c INT)")
    ddl = ToldLock()
    db._context.ddl = ddl  # type: ignore[assignment]
    for number, text in enumerate(("RENAME COLUMN a TO z", "DROP COLUMNS (b)")):
        ddl.wanted.clear()
        with ddl:
            other = threading.Thread(target=db.sql, args=(f"ALTER TABLE t {text}",))
            other.start()
            assert ddl.wanted.wait(PATIENCE_S)
            db.sql(f"ALTER TABLE t ADD COLUMNS (d{number} INT)")
        other.join()
    assert db.sql("SELECT * FROM t").schema.names == ["z", "c", "d0", "d1"]
