"""The transaction of one session: its status and the rows held back until COMMIT.

Owns the rules (docs/guide/serving.md): INSERT and COPY wait for COMMIT; reads see the tables as of their
own statement; what cannot be taken back is refused, or done at once with a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headwater.errors import BindError, Error, NotSupportedError
from headwater.sql.kinds import InTransaction, command_of, in_transaction
from headwater.sql.statements.base import Statement

MOST_HELD_BYTES = 1 << 30


class TransactionError(Error):
    """A statement that does not fit the state of the transaction."""

    default_sqlstate = "25P02"


class Transaction:
    """One session's transaction, or none."""

    def __init__(self) -> None:
        self.status = "I"
        self._held: list[tuple[str, pa.Table]] = []
        self._savepoints: list[tuple[str, int]] = []

    @property
    def is_open(self) -> bool:
        """Whether rows are held back."""
        return self.status != "I"

    def begin(self) -> str | None:
        """BEGIN; a warning if one is open."""
        if self.is_open:
            return "there is already a transaction in progress"
        self.status = "T"
        return None

    def end(self) -> None:
        """The transaction is over; what it held is forgotten."""
        self.status = "I"
        self._held.clear()
        self._savepoints.clear()

    def fail(self) -> None:
        """A statement in it failed."""
        if self.status == "T":
            self.status = "E"

    def hold(self, table: str, rows: pa.Table) -> None:
        """Keeps rows until COMMIT."""
        if sum(held.nbytes for _, held in self._held) + rows.nbytes > MOST_HELD_BYTES:
            raise TransactionError(
                "a transaction holds too many rows",
                sqlstate="53400",
                hint="COMMIT in between",
            )
        self._held.append((table, rows))

    @property
    def tables(self) -> list[str]:
        """The tables that rows are held for, in the order of the first."""
        return list(dict.fromkeys(table for table, _ in self._held))

    def held(self) -> dict[str, pa.Table]:
        """All rows, one table's together in the order of the statements."""
        return {
            table: pa.concat_tables([rows for name, rows in self._held if name == table])
            for table in self.tables
        }

    def save(self, name: str) -> None:
        """SAVEPOINT."""
        if not self.is_open:
            raise TransactionError("SAVEPOINT stands in a transaction", sqlstate="25P01")
        self._savepoints.append((name, len(self._held)))

    def release(self, name: str) -> None:
        """RELEASE SAVEPOINT."""
        del self._savepoints[self._find(name) :]

    def return_to(self, name: str) -> None:
        """ROLLBACK TO SAVEPOINT."""
        place = self._find(name)
        del self._held[self._savepoints[place][1] :]
        del self._savepoints[place + 1 :]
        self.status = "T"

    def _find(self, name: str) -> int:
        for place in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[place][0] == name:
                return place
        raise BindError(f"savepoint {name} does not exist", sqlstate="3B001")

    def check(self, statement: Statement) -> Iterator[str]:
        """Refuses a statement that does not fit; warnings for one that does."""
        if self.status == "E":
            raise TransactionError(
                "the transaction has failed; statements are refused until it ends",
                hint="ROLLBACK",
            )
        if self.status != "T":
            return
        rule, command = in_transaction(statement), command_of(statement)
        late = rule is InTransaction.BEFORE_ROWS and bool(self._held)
        if late or rule is InTransaction.REFUSED:
            raise NotSupportedError(
                f"{command} cannot wait for COMMIT, so it is refused in a transaction",
                hint="COMMIT or ROLLBACK first; drivers call the mode without BEGIN autocommit",
            )
        if rule is InTransaction.AT_ONCE:
            yield f"{command} takes effect at once; ROLLBACK does not undo it"
