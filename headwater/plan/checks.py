"""What a continuous query must keep to, checked before anything is made (DESIGN §5)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.errors import BindError, Error
from headwater.plan.blocks import Sampling as Sampled
from headwater.plan.blocks import Tables, unknown_table
from headwater.plan.folds import StreamColumns
from headwater.plan.leaves import cut_by, cut_length
from headwater.sql.duration import duration_ticks
from headwater.sql.extensions import Cut, NamedRelation, SampleRealtime, SampleRows
from headwater.sql.names import nearest
from headwater.sql.statements.query import Query
from headwater.sql.text import Name, Span


class Checker:
    """Refuses what a continuous query cannot be; errors stand at their place in the statement."""

    needs_window = True  # on each streaming table

    def __init__(self, tables: Tables, query: Query, text: str) -> None:
        self._tables, self._query, self._text = tables, query, text

    def check(self) -> None:
        """All rules."""
        query = self._query
        definitions = [d for d in map(self._reference, query.table_references) if d is not None]
        if not definitions:
            raise self._error(
                "a continuous query reads at least one streaming table through a window",
                Span(0, len(query.text)),
                hint="FROM t [INTERVAL '1' MINUTE]",
            )
        check_times(definitions)
        if query.cuts:
            self._check_cuts(definitions)
            return
        if query.pair_newest is not None:
            raise self._error(
                "PAIR NEWEST pairs chunks", query.pair_newest.span, hint="CUT … makes chunks"
            )
        if query.sample is None:
            raise self._error(
                "a continuous query needs SAMPLE",
                Span(0, len(query.text)),
                hint="SAMPLE INTERVAL '1' SECOND, SAMPLE 1000 ROWS or SAMPLE REALTIME at the end",
            )
        self.slide(definitions[0].time_type)

    def slide(self, time_type: pa.DataType) -> int:
        """The slide in ticks, or in rows; that of a cut is the chunk."""
        if self._query.cuts:
            cut, by = self._query.cuts[0], self._cut_by()
            if by == "rows":
                assert cut.rows is not None
                return cut.rows
            if by == "chunks":
                return 1
            return self.ticks(time_type, cut_length(cut), cut.span)
        sample = self._query.sample
        assert sample is not None
        if isinstance(sample, SampleRows):
            return sample.rows
        if isinstance(sample, SampleRealtime):
            return 1
        return self.ticks(time_type, sample.duration.microseconds, sample.span)

    def ticks(self, time_type: pa.DataType, microseconds: int, span: Span) -> int:
        """A length of time in ticks; an error at its place if it has none."""
        try:
            ticks = duration_ticks(time_type, microseconds)
        except Error as error:
            raise error.at(span.shifted(self._query.offset).place(self._text)) from None
        if ticks <= 0:
            raise self._error("the interval must be longer than nothing", span)
        return ticks

    def refusal(self, message: str, span: Span, hint: str | None = None) -> BindError:
        """The error of a rule that is broken, at its place."""
        return self._error(message, span, hint)

    def _error(self, message: str, span: Span, hint: str | None = None) -> BindError:
        place = span.shifted(self._query.offset).place(self._text)
        return BindError(message, sqlstate="42P20", hint=hint, place=place)

    def _reference(self, reference: NamedRelation) -> StreamColumns | None:
        name, kind = reference.name, self._tables.kind(str(reference.name))
        if reference.generator is not None:
            raise self._error(
                "a generator gives its rows to a query that has a name",
                reference.generator.span,
                hint="CREATE CONTINUOUS QUERY q AS …, or CREATE MATERIALIZED VIEW",
            )
        if kind == "system table":
            raise self._error(
                f"a continuous query cannot read {name}",
                name.span,
                hint="system tables have no history to be evaluated over",
            )
        if kind is None:
            shifted = Name(str(name), name.span.shifted(self._query.offset))
            raise unknown_table(shifted, self._tables.names(), self._text)
        if kind == "continuous query":
            raise self._error(
                f"{kind} {name} cannot be read by a continuous query",
                name.span,
                hint="CREATE MATERIALIZED VIEW keeps results in a streaming table",
            )
        stream = self._tables.stream(str(name))
        if stream is None:
            if reference.window is not None:
                raise self._error(
                    f"{kind} {name} has no time, so it takes no window",
                    reference.window.span,
                    hint="windows stand on streaming tables",
                )
            if reference.cut is not None:
                raise self._error(
                    f"{kind} {name} is no stream, so it is not cut",
                    reference.cut.span,
                    hint="cuts stand on streams and streaming tables",
                )
            return None
        if reference.cut is not None:
            self._check_cut_column(reference, stream)
            return stream
        if reference.window is None and not self.needs_window:
            return stream
        if reference.window is None:
            raise self._error(
                f"streaming table {name} needs a window in a continuous query",
                name.span,
                hint=f"for instance {name} [INTERVAL '1' MINUTE] or {name} [ROWS 100]",
            )
        self.check_window(reference, stream)
        return stream

    def _check_cut_column(self, reference: NamedRelation, definition: StreamColumns) -> None:
        cut = reference.cut
        assert cut is not None
        by = cut_by(cut, definition.time)
        if by == "interval":
            length = self.ticks(definition.time_type, cut_length(cut), cut.span)
            self._check_reach(cut.keep * length, definition, cut.span, "the kept chunks are")
        if by != "chunks":
            return
        assert cut.column is not None
        self._check_columns([cut.column], definition)
        named = {f.name.casefold(): f.type for f in definition.schema}
        self._check_steps(cut, named[cut.column.casefold()])

    def _check_steps(self, cut: Cut, type_: pa.DataType) -> None:
        """A step must mean something for the column that it divides."""
        if pa.types.is_nested(type_) or pa.types.is_null(type_):
            raise self._error(f"values of column {cut.column} cannot be compared", cut.span)
        if cut.duration is None and cut.step is None:
            return
        number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
        number = number or pa.types.is_decimal(type_)
        if not number and not pa.types.is_temporal(type_):
            raise self._error(
                f"column {cut.column} has no steps",
                cut.span,
                hint=f"CUT ON {cut.column}, without BY, ends a chunk at each new value",
            )
        length = cut_length(cut)
        if length <= 0 or (number and length % 1_000_000):
            raise self._error("the step must be a whole number above 0", cut.span)

    def _cut_by(self) -> Sampled:
        reference = next(r for r in self._query.table_references if r.cut is not None)
        assert reference.cut is not None
        stream = self._tables.stream(str(reference.name))
        assert stream is not None
        return cut_by(reference.cut, stream.time)

    def _check_cuts(self, definitions: Sequence[StreamColumns]) -> None:
        """All cuts of a query are alike, and no window or SAMPLE stands beside them."""
        query = self._query
        if query.windows:
            raise self._error("windows and cuts do not mix", query.windows[0].span)
        first = query.cuts[0]
        times = [definition.time for definition in definitions]
        ways = {cut_by(cut, time) for cut, time in zip(query.cuts, times, strict=True)}
        for cut in query.cuts[1:]:
            same = cut.kind == first.kind and cut.rows == first.rows and len(ways) == 1
            if not same or cut_length(cut) != cut_length(first):
                raise self._error(
                    "all cuts of one query must be alike", cut.span, hint="KEEP may differ"
                )
        if query.sample is not None:
            raise self._error(
                "a query with CUT is evaluated at the end of each chunk",
                query.sample.span,
                hint="leave SAMPLE out",
            )
        self.slide(definitions[0].time_type)

    def check_window(self, reference: NamedRelation, definition: StreamColumns) -> None:
        """The keys of a window are columns, and it reaches no further than what the table keeps."""
        window = reference.window
        assert window is not None
        self._check_columns(window.keys, definition)
        limit = definition.range_ticks
        if window.kind == "landmark" and limit is not None:
            raise self._error(
                f"a landmark window reaches beyond the RANGE of table {definition.name}",
                window.span,
                hint="ALTER TABLE … SET RANGE FOREVER keeps every row",
            )
        if window.duration is None:
            return
        ticks = self.ticks(definition.time_type, window.duration.microseconds, window.span)
        self._check_reach(ticks, definition, window.span, "the window is")

    def _check_reach(self, ticks: int, definition: StreamColumns, span: Span, what: str) -> None:
        """No window of time reaches beyond what a table keeps."""
        limit = definition.range_ticks
        if limit is not None and ticks > limit:
            raise BindError(
                f"{what} longer than the RANGE of table {definition.name}",
                sqlstate="42P16",
                hint="ALTER TABLE … SET RANGE keeps more",
                place=span.shifted(self._query.offset).place(self._text),
            )

    def _check_columns(self, keys: Sequence[Name], definition: StreamColumns) -> None:
        names = [f.name for f in definition.schema]
        for key in keys:
            if key.casefold() not in (n.casefold() for n in names):
                near = nearest(str(key), names)
                raise BindError(
                    f"column {key} does not exist",
                    sqlstate="42703",
                    hint=f"did you mean {near}?" if near else None,
                    place=key.span.shifted(self._query.offset).place(self._text),
                )


def check_times(definitions: Sequence[StreamColumns]) -> None:
    """Windows of one query are over times of one kind."""
    kinds = {pa.types.is_integer(definition.time_type) for definition in definitions}
    if len(kinds) > 1:
        raise BindError(
            "windows over integer times and over timestamps cannot stand in one query",
            sqlstate="42804",
        )
