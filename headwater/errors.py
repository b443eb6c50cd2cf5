"""The errors that users see.

    Error
    ├── SqlSyntaxError       the text is not SQL that we read                       42601
    ├── BindError            a name, type or rule does not fit                      42xxx
    ├── NotSupportedError    a feature that is not there                            0A000
    ├── AccessError          not logged in, or not allowed                          28xxx, 42501
    ├── DataError            a value that does not fit its place                    22xxx, 23xxx
    ├── SettingError         a setting or option with a wrong name or value         22023
    ├── StorageError         files, folders, locks, damage                          58xxx, 53100, XX001
    ├── OverloadError        a named bound was reached                              53xxx
    ├── KernelError          Spark or Java: could not start, or a run failed        Spark's own, 58000
    │   └── SparkEndedError  Spark has ended and is being started again             57P03
    ├── CancelledError       a statement was cancelled                              57014
    └── ClosedError          the database is closed                                 08003

Every error carries an SQLSTATE, a message (short, lower case), a detail and a hint that says
what to do; those that come from a text also carry its place.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Where in a statement's text an error lies: offsets are half-open character positions."""

    text: str
    start: int
    end: int

    @property
    def line(self) -> int:
        """The line, counted from 1."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The column, counted from 1."""
        return self.start - (self.text.rfind("\n", 0, self.start) + 1) + 1

    def marked(self) -> str:
        """The line with a marker under the place."""
        first = self.text.rfind("\n", 0, self.start) + 1
        last = self.text.find("\n", first)
        line = self.text[first : last if last >= 0 else len(self.text)]
        head = f"line {self.line}: "
        room = max(len(line) - (self.start - first), 1)
        width = min(max(self.end - self.start, 1), room)
        lead = "".join("\t" if c == "\t" else " " for c in line[: self.start - first])
        return f"{head}{line}\n{' ' * len(head)}{lead}{'^' * width}"


class Error(Exception):
    """The root of all errors of Headwater."""

    default_sqlstate = "XX000"
    foreign = False  # the words are Java's or the system's: not everybody may read them

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str | None = None,
        detail: str | None = None,
        hint: str | None = None,
        place: Place | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate or self.default_sqlstate
        self.detail = detail
        self.hint = hint
        self.place = place

    def at(self, place: Place | None) -> Error:
        """The same error with a place, unless it has one."""
        if self.place is None:
            self.place = place
        return self

    def __str__(self) -> str:
        lines = [f"{self.message} ({self.sqlstate})"]
        if self.place is not None:
            lines.append(self.place.marked())
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class SqlSyntaxError(Error):
    """The text is not SQL that we read."""

    default_sqlstate = "42601"


class BindError(Error):
    """A name is unknown or taken, a type does not fit, a rule is broken."""

    default_sqlstate = "42000"


class NotSupportedError(Error):
    """A feature that is not there."""

    default_sqlstate = "0A000"


class AccessError(Error):
    """Not logged in, or not allowed to."""

    default_sqlstate = "42501"


class DataError(Error):
    """A value that does not fit its place: overflow, NULL where forbidden, text that is no number."""

    default_sqlstate = "22000"


class SettingError(Error):
    """A setting or option with a wrong name or value."""

    default_sqlstate = "22023"


class StorageError(Error):
    """Files, folders and locks: not ours, in use, full, damaged."""

    default_sqlstate = "58030"


class OverloadError(Error):
    """A named bound was reached; the writer should slow down and try again."""

    default_sqlstate = "53000"


class KernelError(Error):
    """Spark or Java could not start, or a run failed there."""

    default_sqlstate = "58000"


class SparkEndedError(KernelError):
    """Spark has ended, or has not started yet: what needs it may be tried again when it runs."""

    default_sqlstate = "57P03"


class CancelledError(Error):
    """A statement was cancelled."""

    default_sqlstate = "57014"


class ClosedError(Error):
    """The database, or the process behind it, is closed."""

    default_sqlstate = "08003"
