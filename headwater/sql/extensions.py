"""What we add to a query: windows, cuts, versions, trailing clauses, functions.

Only frozen records, each with the span of the query's text that it came from. They say what the
user wrote; whether it is allowed on a table is the planner's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from typing import Literal as OneOf

from headwater.sql.duration import Duration
from headwater.sql.text import Name, Span

Emit = OneOf["all", "inserts", "deletes", "changes"]


@dataclass(frozen=True)
class WindowClause:
    """`[INTERVAL i [BEFORE]]`, `[ROWS k]`, `[a, b ROWS k]` or `[LANDMARK]` after a table.

    The chunks that a cut keeps are a window too, one of `rows` chunks.
    """

    kind: OneOf["interval", "rows", "landmark", "chunks"]
    span: Span  # the brackets with what is in them
    duration: Duration | None = None
    before: bool = False
    rows: int | None = None
    keys: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Cut:
    """`CUT ON c BY d`, `CUT BY n ROWS` or `CUT ON c`, with the chunks kept."""

    kind: OneOf["interval", "rows", "key"]
    span: Span  # of the clause, or of the whole STREAM(…)
    removals: tuple[Span, ...]  # what must go so that the bare table name is left
    column: Name | None = None
    duration: Duration | None = None
    rows: int | None = None
    step: int | None = (
        None  # `CUT ON c BY 60`: a step without a unit, for a column that is a number
    )
    keep: int = 1
    block: bool = False  # 'BLOCK' or KEEP was written


@dataclass(frozen=True)
class VersionClause:
    """`VERSION AS OF n` or `VERSION AS OF 'latest'` after a table."""

    number: int | None  # None: the latest
    span: Span


@dataclass(frozen=True)
class SampleInterval:
    """`SAMPLE INTERVAL i`."""

    duration: Duration
    span: Span
    kind: ClassVar[OneOf["interval"]] = "interval"


@dataclass(frozen=True)
class SampleRows:
    """`SAMPLE n ROWS`."""

    rows: int
    span: Span
    kind: ClassVar[OneOf["rows"]] = "rows"


@dataclass(frozen=True)
class SampleRealtime:
    """`SAMPLE REALTIME`."""

    span: Span
    kind: ClassVar[OneOf["realtime"]] = "realtime"


Sample = SampleInterval | SampleRows | SampleRealtime


@dataclass(frozen=True)
class EmitClause:
    """`EMIT ALL | INSERTS | DELETES | CHANGES`."""

    what: Emit
    span: Span


@dataclass(frozen=True)
class Refresh:
    """`REFRESH EVERY interval FOR key IN (…)`: the values stay text for Spark."""

    every: Duration
    key: Name
    values: tuple[Span, ...]
    span: Span


@dataclass(frozen=True)
class UpdateMode:
    """`WITH APPEND`, `WITH UPDATES …` or `WITH SHEDDING fraction`."""

    kind: OneOf["append", "updates", "shedding"]
    span: Span
    schedule: OneOf["fifo", "inplace", "linecutting"] | None = None
    windows: OneOf["lazy", "eager"] | None = None
    when_behind: Duration | None = None
    refresh: Refresh | None = None
    fraction: float | None = None


@dataclass(frozen=True)
class PairNewest:
    """`PAIR NEWEST`."""

    span: Span


@dataclass(frozen=True)
class Previous:
    """`PREV(x[, n])`: x stays text; n is 1 if left out."""

    span: Span
    argument: Span
    steps: int


@dataclass(frozen=True)
class Valid:
    """`VALID(a)`, and with `OVERLAPS PERIOD(x, y)` the two bounds, which stay text."""

    span: Span
    alias: Name
    period: tuple[Span, Span] | None = None


@dataclass(frozen=True)
class CurrentInstant:
    """`CURRENT_INSTANT()`."""

    span: Span


@dataclass(frozen=True)
class Near:
    """`NEAR(x, y, distance)`: whether x lies within a distance of y; all three stay text."""

    span: Span
    value: Span
    other: Span
    distance: Span


@dataclass(frozen=True)
class Generator:
    """`f(x, …)` in `STREAM(f(x, …), 'CUT …')`: the arguments stay text."""

    span: Span  # the name with its arguments
    arguments: tuple[Span, ...]


@dataclass(frozen=True)
class NamedRelation:
    """A name that stands where a table may stand, and what was written after it."""

    name: Name
    alias: Name | None
    window: WindowClause | None = None
    cut: Cut | None = None
    version: VersionClause | None = None
    generator: Generator | None = None  # the name is that of a function that gives the rows

    @property
    def span(self) -> Span:
        """Where the name stands."""
        return self.name.span
