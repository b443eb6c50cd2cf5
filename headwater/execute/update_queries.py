"""Update queries made from their statements: planned, typed, and attached to their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.engine.eager_windows import why_gathered
from headwater.engine.machine import State
from headwater.engine.query_parts import Beginning
from headwater.engine.query_sinks import LogSink
from headwater.engine.results import ResultLog
from headwater.engine.snapshots import SnapshotFile
from headwater.engine.update_query import UpdateQuery
from headwater.engine.update_spec import (
    OTHER_ROW_NUMBER,
    ROW_NUMBER,
    ROW_NUMBERS,
    Branch,
    UpdateJoinSide,
    UpdateSpec,
    WindowShape,
)
from headwater.errors import NotSupportedError
from headwater.execute.catalog_tables import CatalogTables
from headwater.execute.context import Context
from headwater.execute.continuous_plan import MadeBranch
from headwater.execute.zones import WorldInZone
from headwater.fold.lookup import Lookup
from headwater.kernel.functions import PythonFunction
from headwater.kernel.kernel import Work
from headwater.plan.calls import calls_of
from headwater.plan.update_checks import CheckedBranch, UpdateChecker
from headwater.settings import MEBIBYTE
from headwater.sql.extensions import Refresh, UpdateMode
from headwater.sql.literals import literal
from headwater.sql.statements.query import Query, make_query
from headwater.sql.text import EditedText, Span
from headwater.sql.type_parser import parse_type
from headwater.sql.types import name_of, quoted
from headwater.storage.streaming.definition import SEQUENCE
from headwater.storage.streaming.table import StreamingTable

Known = Sequence[dict[str, list[list[str]]]]


class MadeUpdate:
    """An update query's plan with everything typed."""

    def __init__(
        self,
        context: Context,
        query: Query,
        text: str,
        known: Known | None = None,
        zone: str | None = None,
    ) -> None:
        """`known`: the types of each branch, where Spark was asked before; `zone`: the time zone then."""
        self.query, self._context, self._text = query, context, text
        self.world = WorldInZone(context, zone or context.time_zone)
        assert query.update_mode is not None
        self._checker = UpdateChecker(CatalogTables(context), query, text)
        checked = self._checker.branches()
        self._joined = checked[0].joined
        selects = checked[:1] if self._joined else checked
        types = known or [{} for _ in selects]
        self._made = [self._branch(c, t) for c, t in zip(selects, types, strict=True)]
        self._check_types()
        self._check_places([branch.key for branch in selects])
        self.spec = self._spec(checked, query.update_mode)

    @property
    def tables(self) -> list[StreamingTable]:
        """The tables that are read, one per branch."""
        return [table for made in self._made for table in made.tables]

    @property
    def types(self) -> list[dict[str, list[list[str]]]]:
        """The types of each branch, for the catalog."""
        return [made.analyser.known for made in self._made]

    @property
    def identifiers(self) -> frozenset[str]:
        """Names that may mean standard tables."""
        return frozenset().union(*(made.plan.identifiers for made in self._made))

    @property
    def functions(self) -> list[tuple[str, str | None, str]]:
        """Python functions that are called, for the catalog: the query waits for them at a start."""
        names = {call.name.lower() for call in calls_of(self.query)}
        found = [(name, self._context.functions.get(name)) for name in sorted(names)]
        return [
            (name, function.state, name_of(parse_type(function.returns)))
            for name, function in found
            if isinstance(function, PythonFunction) and function.kind == "scalar"
        ]

    def _branch(self, checked: CheckedBranch, known: dict[str, list[list[str]]]) -> MadeBranch:
        """A SELECT with the number of its row beside the user's columns; windows go by their key."""
        query = checked.query
        added: list[str] = []
        if checked.joined or checked.reference.window is None:
            aliases = [
                quoted(r.alias or r.name.rpartition(".")[2])
                for r in query.table_references
                if self._context.stream(str(r.name)) is not None
            ]
            names = zip(aliases, (ROW_NUMBER, OTHER_ROW_NUMBER), strict=False)
            added = [f", {alias}.{SEQUENCE} AS {name}" for alias, name in names]
            edited = EditedText(query.text)
            end = checked.block.items[-1].span.end
            edited.replace(end, end, "".join(added))
            query = make_query(edited.text)
        made = MadeBranch(self._context, query, query.text, known, self.world.time_zone)
        self._check_made(made)
        if sum(name.casefold() in ROW_NUMBERS for name in made.output.schema.names) > len(added):
            raise self._checker.refusal(
                f"the names {' and '.join(ROW_NUMBERS)} belong to the system",
                Span(0, len(self.query.text)),
                "give the column an alias: AS …",
            )
        return made

    def _check_made(self, made: MadeBranch) -> None:
        """Nothing in it looks at other rows, or at an instant that all keys would share."""
        leaf = made.plan.leaves[0]
        others = [other for one in made.plan.leaves for other in (*one.previous, *one.calls)]
        whole = Span(0, len(self.query.text))
        if others:
            raise self._checker.refusal(
                "PREV and functions with state look at rows that an update query may skip",
                whole,
                "leave WITH UPDATES out: every row is then processed",
            )
        if made.plan.reads_instant:
            raise self._checker.refusal(
                "each key of an update query has a time of its own, so there is no current instant",
                whole,
                f"the time of a row is {leaf.columns.time}; _t in the result is it, or the window's end",
            )

    def _check_types(self) -> None:
        first = self._shown(self._made[0])
        for made in self._made[1:]:
            other = self._shown(made)
            if other.types != first.types:
                raise self._checker.refusal(
                    "the branches of a union have the same columns",
                    Span(0, len(self.query.text)),
                    f"CAST … AS: {_types(first)} and {_types(other)} differ",
                )

    def _check_places(self, keys: Sequence[Sequence[str]]) -> None:
        """The columns of a union go by their places: the key's are at the same ones."""
        places = []
        for made, key in zip(self._made, keys, strict=True):
            names = [name.casefold() for name in self._shown(made).names]
            places.append([names.index(name.casefold()) for name in key])
        if any(own != places[0] for own in places):
            raise self._checker.refusal(
                "the branches of a union have the update key at the same places",
                Span(0, len(self.query.text)),
                f"SELECT {', '.join([*keys[0], '…'])} in each branch",
            )

    def _shown(self, made: MadeBranch) -> pa.Schema:
        schema = made.output.schema
        return pa.schema([field for field in schema if field.name not in ROW_NUMBERS])

    def _spec(self, checked: Sequence[CheckedBranch], mode: UpdateMode) -> UpdateSpec:
        shown = self._shown(self._made[0])
        names = {name.casefold(): name for name in shown.names}
        key = tuple(names[name.casefold()] for name in checked[0].key)
        branches = [
            Branch(
                table, c.columns, () if c.joined else made.plan.leaves[0].needed, made.evaluation
            )
            for c, (table, made) in zip(checked, self._by_branch(), strict=True)
        ]
        self._checker.check_refresh(branches[0].key, key, mode)
        types = [branches[0].table.definition.stored_schema.field(n).type for n in branches[0].key]
        self._check_key(branches[0].key, types)
        return UpdateSpec(
            branches=branches,
            shown=shown,
            key=key,
            mode=mode.kind,
            schedule=mode.schedule or "inplace",
            window=self._window(checked[0], mode),
            behind_us=None if mode.when_behind is None else mode.when_behind.microseconds,
            refresh=None if mode.refresh is None else self._refresh(mode.refresh, types[0]),
            fraction=mode.fraction or 0.0,
            join=tuple(map(self._side, checked, range(2))) if self._joined else (),
        )

    def _check_key(self, names: Sequence[str], types: Sequence[pa.DataType]) -> None:
        """Keys must be comparable."""
        for name, type_ in zip(names, types, strict=True):
            try:
                Lookup([type_])
            except NotSupportedError:
                raise self._checker.refusal(
                    f"column {name} of type {name_of(type_)} cannot be an update key",
                    Span(0, len(self.query.text)),
                    "a key is a number, text, a time or a boolean",
                ) from None

    def _by_branch(self) -> list[tuple[StreamingTable, MadeBranch]]:
        return [(table, made) for made in self._made for table in made.tables]

    def _side(self, checked: CheckedBranch, number: int) -> UpdateJoinSide:
        window, made = checked.reference.window, self._made[0]
        assert window is not None
        reach = self._reach(checked)
        columns = made.plan.leaves[number].needed
        return UpdateJoinSide(made.tables[number], checked.columns, columns, reach, window.before)

    def _reach(self, checked: CheckedBranch) -> int:
        window = checked.reference.window
        assert window is not None
        assert window.duration is not None
        microseconds = window.duration.microseconds
        return self._checker.ticks(checked.definition.time_type, microseconds, window.span)

    def _window(self, checked: CheckedBranch, mode: UpdateMode) -> WindowShape | None:
        window = checked.reference.window
        if window is None or checked.joined:
            return None
        slide = self._checker.slide(checked.definition.time_type)
        kind = mode.windows or "lazy"
        gathered = why_gathered(self._made[0].evaluation) if kind == "eager" else None
        return WindowShape(self._reach(checked), slide, window.before, kind, gathered)

    def _refresh(self, refresh: Refresh, type_: pa.DataType) -> tuple[pa.Array, int]:
        """The named keys; what is no plain literal is evaluated by Spark."""
        texts = [span.of(self.query.text) for span in refresh.values]
        zone = self.world.time_zone
        plain = [literal(text, zone) for text in texts]
        values = [one.value for one in plain if one is not None and one.type == type_]
        if len(values) == len(texts):
            return pa.array(values, type_), refresh.every.microseconds
        casts = ", ".join(f"CAST({text} AS {name_of(type_)})" for text in texts)
        found = self._context.kernel.run(Work(f"SELECT {casts}", {}, time_zone=zone))
        values = [column[0].as_py() for column in found.columns]
        return pa.array(values, type_), refresh.every.microseconds


def _types(schema: pa.Schema) -> str:
    return ", ".join(name_of(field.type) for field in list(schema)[:-1])


@dataclass(frozen=True)
class UpdatePlace:
    """Where an update query belongs: its number and name, its results, and how it is scheduled."""

    number: int
    name: str
    sink: LogSink
    beginning: Beginning
    options: dict[str, Any]
    state: State = "running"
    snapshot: SnapshotFile | None = None
    for_view: bool = False


def update_query(made: MadeUpdate, place: UpdatePlace) -> UpdateQuery:
    """The factory of an update query, attached to its tables."""
    query = UpdateQuery(
        number=place.number,
        name=place.name,
        statement=made.query.text,
        spec=made.spec,
        identifiers=made.identifiers,
        beginning=place.beginning,
        sink=place.sink,
        world=made.world,
        priority=place.options["priority"],
        max_wait_s=place.options["max_wait"],
        state=place.state,
        snapshot=place.snapshot,
        for_view=place.for_view,
    )
    query.attach()
    return query


def result_log(context: Context, made: MadeUpdate, table: StreamingTable | None) -> ResultLog:
    """The results of an update query; without a table in memory."""
    return ResultLog(
        table,
        made.spec.stored,
        keep=lambda: context.settings.integer("results_kept"),
        keep_bytes=lambda: context.settings.integer("results_mb") * MEBIBYTE,
    )
