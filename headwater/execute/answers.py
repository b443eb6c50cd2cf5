"""The one cache of answers: rows that are known are not computed again.

Two kinds of rows are known.

*Answers of views* (`Answers`). Key: the text of a query that reads one continuous view and nothing that
varies; a text that came another way (with a semicolon, in PostgreSQL's spelling) may name the same answer.
Bound: `MOST_ANSWERS` texts of `LONGEST_TEXT` characters, `LARGEST_ANSWER` bytes of one answer, `MOST_BYTES`
of all; the oldest go first. Validity: an answer is given only while the view's present version is the one
that it was computed from, and no setting has changed (`Answer._valid`). What an answer was sent as
(`Answer.form`) lives and dies with its rows.

*Rows that somebody still holds* (`SharedRows`): a client that reads slowly holds its result until it has
taken all of it; twenty of them share one. Key: all that the rows depend on, the version of their table among
it. Bound: none is needed, as only weak references are kept. Validity: by the key.

Must never give rows that the database would not give if it were asked now.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

import pyarrow as pa

from headwater.engine.view_versions import Version

MOST_ANSWERS = 512
LONGEST_TEXT = 4096  # characters
LARGEST_ANSWER = 16 << 20  # bytes of rows
MOST_BYTES = 256 << 20
LARGE_TABLE = 50_000  # rows; what is read of smaller tables is not worth sharing
T = TypeVar("T")
Present = tuple[Version, int]  # the version of a view, and how often settings were changed


@dataclass(eq=False)
class _Rows:
    """Rows, what they were computed from, and what they were sent as."""

    rows: pa.Table
    nbytes: int
    version: weakref.ref[Version]
    settings: int
    forms: dict[Hashable, Any] = field(default_factory=dict)


class Answer:
    """The answer to one query over one view."""

    def __init__(self, present: Callable[[], Present | None]) -> None:
        """`present`: what the answer depends on as it is now; None if it takes work to know. Never waits."""
        self._present = present
        self._known: _Rows | None = None
        self.for_everybody = False  # whether its query is one that every role may ask

    def keep(self, rows: pa.Table, version: Version, settings: int) -> None:
        """These are the rows."""
        self._known = _Rows(rows, rows.nbytes, weakref.ref(version), settings)

    def of(self, version: Version, settings: int) -> pa.Table | None:
        """The rows, if they were computed from this."""
        known = self._valid((version, settings))
        return None if known is None else known.rows

    def rows(self) -> pa.Table | None:
        """The rows; None if they would have to be computed. Never waits."""
        known = self._valid(self._present())
        return None if known is None else known.rows

    def form(self, key: Hashable, make: Callable[[pa.Table], T | None]) -> T | None:
        """What `make` makes of the rows, once; the same object for the same answer. Never waits."""
        known = self._valid(self._present())
        if known is None:
            return None
        found = known.forms.get(key)
        if found is None:
            found = make(known.rows)
            if found is not None:
                known.forms[key] = found
        return cast("T | None", found)

    def _valid(self, present: Present | None) -> _Rows | None:
        known = self._known
        if known is None or present is None:
            return None
        version, settings = present
        return known if known.version() is version and known.settings == settings else None

    def kept_bytes(self) -> int:
        """The size of what is kept; rows of a version that is gone are let go."""
        known = self._known
        if known is not None and known.version() is None:
            self._known = known = None
        return 0 if known is None else known.nbytes


class Answers:
    """The answers of one database's views, by the texts that asked for them; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Answer] = OrderedDict()

    def find(self, text: str) -> Answer | None:
        """The answer that a text asks for, if it was given before."""
        return self._known.get(text)

    def keep(self, text: str, answer: Answer) -> None:
        """An answer was given to a text, or came to be known by another text too."""
        if len(text) > LONGEST_TEXT:
            return
        with self._lock:
            self._known[text] = answer
            held = sum(known.kept_bytes() for known in self._known.values())
            while len(self._known) > MOST_ANSWERS or (held > MOST_BYTES and len(self._known) > 1):
                held -= self._known.popitem(last=False)[1].kept_bytes()


class SharedRows:
    """The large results of one database that are being read now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: WeakValueDictionary[Hashable, pa.Table] = WeakValueDictionary()
        self._turns: dict[Hashable, threading.Lock] = {}  # one reader makes rows, others wait

    def of(self, key: Hashable, make: Callable[[], pa.Table]) -> pa.Table:
        """The rows of a key, made only if nobody holds them; it must say all that they depend on."""
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        try:
            with turn:
                found = self._held.get(key)
                if found is None:
                    found = self._held[key] = make()
                return found
        finally:
            with self._lock:
                self._turns.pop(key, None)
