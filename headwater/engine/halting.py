"""One instant for several parts: each folds what is there and halts, so that all can be brought to one place.

Owns: who has a part fold no further, and until when. What a part folds (groups, a circuit) differs; how it is
halted does not. Must never: halt longer than `HALT_S` for a reader that does not come back, or fold on for
any other reader meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from headwater.kernel.relation import HeldTables
from headwater.storage.streaming.fresh import ends_of
from headwater.storage.streaming.table import StreamingTable

HALT_S = 5.0  # after so long it folds on, whether or not its reader has come back

Ends = tuple[int, ...]  # the sequence number after the last row of each table, all at one moment


class CannotKeep(Exception):
    """What is kept cannot be brought to a place: the query is to be evaluated over stored rows."""


class Halting(ABC):
    """What can be halted; the class that mixes it in has a lock and says where it stands."""

    lock: threading.RLock
    is_lent: bool  # another host has it

    def may_halt(self) -> None:
        """It is halted by nobody."""
        # of those who read a view in parts, in the driver; before `lock`
        self.turn = threading.Lock()
        self._halt: tuple[int, float] | None = None  # who has it fold no further, and until when

    @property
    @abstractmethod
    def read_tables(self) -> Sequence[StreamingTable]:
        """The streaming tables that it reads."""

    @property
    @abstractmethod
    def places(self) -> list[tuple[int, int | None]]:
        """How far each table was read, and of which generation."""

    @abstractmethod
    def fold_to(self, held: HeldTables, ends: Mapping[int, int]) -> None:
        """Takes in every row before some places, by table; CannotKeep if that is not possible."""

    def halt(self, reader: int, held: HeldTables) -> Ends | None:
        """Folds what is there, and no further until that reader comes back; how far. None: another host does.

        It stands where inserts end: all parts of a view can be brought to where one of them stands.
        """
        with self.lock:
            if self.is_lent:
                return None
            ends = ends_of(self.read_tables)
            with contextlib.suppress(CannotKeep):
                self.fold_to(held, ends)
            self._halt = (reader, time.monotonic() + HALT_S)
            return tuple(ends[table.definition.id] for table in self.read_tables)

    def go_to(self, reader: int, ends: Ends, held: HeldTables) -> bool:
        """Folds to exactly there, while it is halted for a reader; whether it could. Holds the lock."""
        mine = self.halted_until is not None and self._halt is not None and self._halt[0] == reader
        if not mine or self.is_lent or not self._reaches(ends):
            return False
        self.fold_to(
            held, {t.definition.id: e for t, e in zip(self.read_tables, ends, strict=True)}
        )
        return tuple(sequence for sequence, _ in self.places) == ends

    def _reaches(self, ends: Ends) -> bool:
        """Whether it can go to a place: it is not beyond, and the rows are there."""
        every = zip(self.read_tables, self.places, ends, strict=True)
        return all(table.state.next_sequence >= end >= place[0] for table, place, end in every)

    def go_on(self, reader: int) -> bool:
        """It folds again as rows come; whether it had been halted for that reader."""
        with self.lock:
            mine = self._halt is not None and self._halt[0] == reader
            if mine:
                self._halt = None
            return mine

    @property
    def halted_until(self) -> float | None:
        """Until when it folds no further by itself, by the monotonic clock; None: it does."""
        halt = self._halt
        return halt[1] if halt is not None and halt[1] > time.monotonic() else None
