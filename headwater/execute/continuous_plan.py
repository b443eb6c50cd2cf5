"""A continuous select, planned and typed: what the engine needs to run it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headwater.compile.block import instant_type
from headwater.compile.circuit import CircuitSpec, make_circuit
from headwater.compile.fold import FOLDABLE, FoldSpec, make_spec, refuse_types
from headwater.compile.upper import UpperBlock, make_upper
from headwater.compile.upper_circuit import UpperCircuit, make_upper_circuit
from headwater.engine.evaluation import Evaluation, OutputSchema, output_schema, view_output
from headwater.engine.fold_run import StaticProbes
from headwater.engine.query_functions import QueryFunctions, query_functions
from headwater.engine.sampling import Sampling
from headwater.engine.snapshots import SnapshotFile, SnapshotInMemory
from headwater.engine.world import World
from headwater.errors import BindError, Error, NotSupportedError, Place
from headwater.execute.by_operators import named, refuse_as_of
from headwater.execute.catalog_tables import CatalogTables
from headwater.execute.context import Context
from headwater.execute.expansion import refuse_reading
from headwater.execute.registered import registered
from headwater.execute.zones import WorldInZone
from headwater.expression.terms import Terms
from headwater.kernel.kernel import Work
from headwater.kernel.relation import Relation
from headwater.plan.blocks import Sampling as Sampled
from headwater.plan.checks import Checker
from headwater.plan.folds import (
    NEWEST,
    ContinuousPlan,
    stream_view,
    window_view,
)
from headwater.plan.leaves import cut_by
from headwater.plan.planner import ViewTimes, plan_query
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.opaque import Opaque
from headwater.plan.text import SparkText
from headwater.sql.lexer import tokenize
from headwater.sql.statements.query import Query
from headwater.sql.type_parser import parse_type
from headwater.storage.streaming.table import StreamingTable

TIMESTAMP_ZERO = "timestamp_micros(0L)"


class Analyser:
    """Spark's types of texts over empty relations; remembered, so that a restart need not ask again."""

    def __init__(
        self, world: World, instant: str, known: dict[str, list[list[str]]] | None = None
    ) -> None:
        """`instant`: a text of the instant's type."""
        self._world, self._instant = world, instant
        self.known = dict(known or {})

    def of_opaque(
        self, text: str, inputs: Mapping[str, pa.Schema]
    ) -> list[tuple[str, pa.DataType]] | None:
        """Names and types of a text over the inputs of an opaque node; None if Spark does not take it."""
        key = f"{text} over {[(name, str(schema)) for name, schema in inputs.items()]}"
        if key not in self.known:
            relations = {name: Relation(schema, ()) for name, schema in inputs.items()}
            work = Work(text, relations, time_zone=self._world.time_zone)
            try:
                self.known[key] = [list(pair) for pair in self._world.kernel.analyse(work)]
            except BindError:
                self.known[key] = []
        return [(name, parse_type(type_)) for name, type_ in self.known[key]] or None

    def columns(self, text: SparkText, plan: ContinuousPlan) -> list[tuple[str, pa.DataType]]:
        """Names and types of a query's columns."""
        if str(text) not in self.known:
            relations = {
                **{stream_view(n): Relation(s, ()) for n, s in enumerate(_read_columns(plan))},
                **{window_view(n): Relation(s, ()) for n, s in enumerate(_exposed_columns(plan))},
            }
            with self._world.held(plan.identifiers) as held:
                every = {**held.relations, **relations}
                zone = self._world.time_zone
                work = Work(text.fill(self._instant), every, time_zone=zone)
                found = self._world.kernel.analyse(work)
            self.known[str(text)] = [list(pair) for pair in found]
        return [(name, parse_type(type_)) for name, type_ in self.known[str(text)]]


def _read_columns(plan: ContinuousPlan) -> list[pa.Schema]:
    """What the stream pipelines see of each leaf."""
    return [
        pa.schema([*(leaf.columns.schema.field(name) for name in leaf.needed), *leaf.added])
        for leaf in plan.leaves
    ]


def _exposed_columns(plan: ContinuousPlan) -> list[pa.Schema]:
    """What texts over all rows see of each leaf."""
    found = []
    for leaf in plan.leaves:
        known = [*leaf.columns.schema, *leaf.added, pa.field(NEWEST, pa.bool_())]
        fields = {field.name: field for field in known}
        found.append(pa.schema([fields[name] for name in leaf.exposed]))
    return found


def _streams_of(context: Context, query: Query) -> list[StreamingTable]:
    """The streams and streaming tables that a query reads, once for each time it names them."""
    found = [context.stream(str(reference.name)) for reference in query.table_references]
    return [table for table in found if table is not None]


def _some_instant(table: StreamingTable) -> str:
    """An instant as the table counts time, for questions about types."""
    return "0L" if pa.types.is_integer(table.definition.time_type) else TIMESTAMP_ZERO


class Made:
    """A query's plan with everything typed."""

    def __init__(
        self,
        context: Context,
        query: Query,
        text: str,
        known: dict[str, list[list[str]]] | None = None,
        zone: str | None = None,
    ) -> None:
        """`zone`: the time zone of a query that was made before; None: the one that is set."""
        self.query = query
        self.world = WorldInZone(context, zone or context.time_zone)
        _refuse_system_names(query, text)
        self.tables = [
            context.streaming_table(str(r.name))
            for r in query.table_references
            if r.window is not None or r.cut is not None
        ]
        self.step = Checker(CatalogTables(context), query, text).slide(
            self.tables[0].definition.time_type
        )
        self.kind = sampling_kind(query, self.tables[0].definition.time)
        self.plan = plan_query(query, CatalogTables(context), self.kind, FOLDABLE, text)
        self.analyser = Analyser(self.world, _some_instant(self.tables[0]), known)
        self._context = context
        self.functions(self.sampling())  # a call that cannot be made is refused now
        self._type_all(context, text)

    def _type_all(self, context: Context, text: str) -> None:
        """The folds, the result's columns, and how results are made."""
        query = self.query
        self._check_as_of()
        refuse_reading(context, query, text)
        functions = self.world.terms()
        self.whole = self._spec(self.plan.whole_fold, functions)
        self.specs: list[FoldSpec] = []
        reason = self.plan.reason
        try:
            self.specs = [make_spec(f, functions, self._types) for f in self.plan.folds]
        except NotSupportedError as error:
            reason = error.message
        except Error as error:
            error.place = _place_of_name(query, text, error.message)
            raise
        if reason is not None:
            whole = self.plan.whole
            self.plan = replace(
                self.plan,
                folds=(),
                split=(),
                single=False,
                reason=reason,
                stream_tables=(),
                pinned=whole,
                below=(),
            )
            self.specs = []
        self.output = self._output(text)
        self.evaluation = Evaluation(
            self.plan,
            self.specs,
            self.whole,
            self.output,
            self.world,
            StaticProbes(self.world),
            text,
            self._upper(context, functions),
        )

    def _check_as_of(self) -> None:
        """NotSupportedError for an as-of join, which only views keep."""
        if self.query.has_as_of:
            raise refuse_as_of("only views keep one")

    def _upper(self, context: Context, functions: Terms) -> UpperBlock | UpperCircuit | None:
        """The upper part by operators, if its types are those that Spark gives it."""
        if self.plan.single and self.specs and self.specs[0].finish is not None:
            return None  # it is the end of its only fold
        tables, types = CatalogTables(context), list(self.output.select_types)
        block = make_upper(self.query, self.plan, self.specs, tables, functions)
        if block is not None and block.types == types:
            return block
        instant = instant_type(self.output.time_type)
        circuit = make_upper_circuit(self.plan, self.specs, instant, tables, functions)
        return circuit if circuit is not None and circuit.types == types else None

    def sampling(self) -> Sampling:
        """The instants of a query that begins."""
        return Sampling(self.kind, self.step, cut=bool(self.query.cuts))

    def functions(self, sampling: Sampling, file: SnapshotFile | None = None) -> QueryFunctions:
        """The calls with state of a query that begins; an error if one cannot be made."""
        context = self._context
        return query_functions(
            self.plan.leaves,
            self.world.terms(),
            lambda call: registered(context, call),
            sampling,
            file or SnapshotInMemory(),
        )

    def _types(self, text: SparkText) -> list[pa.DataType]:
        return [type_ for _, type_ in self.analyser.columns(text, self.plan)]

    def _spec(self, fold: Any, functions: Terms) -> FoldSpec | None:
        if fold is None:
            return None
        try:
            return make_spec(fold, functions, refuse_types)
        except NotSupportedError:
            return None

    def _output(self, text: str) -> OutputSchema:
        """The result's columns: from the whitelist where the whole block is on it, else from Spark."""
        block = self.specs[0] if self.plan.single and self.specs else self.whole
        finish = None if block is None else block.finish
        by_operators = block is not None and (
            block.pipeline is not None or block.plan.kind == "join"
        )
        if finish is not None and by_operators and all(name is not None for name in finish.names):
            names = [str(name) for name in finish.names]
            return self._schema(list(zip(names, finish.types, strict=True)))
        try:
            columns = self.analyser.columns(self.plan.whole, self.plan)
        except Error as error:
            error.place = _place_of_name(self.query, text, error.message)
            raise
        if finish is not None and by_operators and [t for _, t in columns] != finish.types:
            raise NotSupportedError(
                "a type is not what Spark makes of it",
                detail=f"{[str(t) for t in finish.types]} against {[str(t) for _, t in columns]}",
            )
        return self._schema(columns)

    def _schema(self, columns: Sequence[tuple[str, pa.DataType]]) -> OutputSchema:
        return output_schema(columns, self.tables[0].definition.time_type)


class MadeView(Made):
    """A continuous view's plan with everything typed."""

    def __init__(
        self,
        context: Context,
        query: Query,
        text: str,
        times: ViewTimes = "refused",
        names: Sequence[str] | None = None,
        known: dict[str, list[list[str]]] | None = None,
        zone: str | None = None,
    ) -> None:
        self.query, self._names, self._context = query, names, context
        self.world = WorldInZone(context, zone or context.time_zone)
        self.tables = _streams_of(context, query)
        self.plan = plan_query(query, CatalogTables(context), "interval", FOLDABLE, text, times)
        self.analyser = Analyser(self.world, TIMESTAMP_ZERO, known)
        self.circuit: CircuitSpec | None = None  # what keeps a view without a fold
        self._type_all(context, text)

    def _check_as_of(self) -> None:
        """An as-of join has no fold: it is the circuit's."""
        if self.query.has_as_of:
            self.plan = replace(self.plan, whole_fold=None, reason="an as-of join has no fold")

    def _output(self, text: str) -> OutputSchema:
        """The view's columns: those of its circuit, where it has one that knows all of their names."""
        stored = all(leaf.columns.keeps_all for leaf in self.plan.leaves)
        if self.query.has_as_of and not stored:
            raise refuse_as_of("a stream or a table with RANGE does not keep the rows to join")
        if self.specs or not stored:
            return super()._output(text)
        circuit = self._made_circuit()
        if self.query.has_as_of:
            if circuit is None:
                raise refuse_as_of(str(self.plan.reason))
            circuit = replace(circuit, shown=named(self.query, circuit))
        complete = circuit is not None and all(column.shown for column in circuit.shown)
        if circuit is not None and complete and not circuit.opaque:
            self.circuit = circuit
            return self._schema([(column.shown, column.type) for column in circuit.shown])
        output = super()._output(text)
        if circuit is not None and circuit.types != list(output.select_types):
            self.plan = replace(self.plan, reason="a type is not what Spark makes of it")
            return output
        self.circuit = circuit
        return output

    def _made_circuit(self) -> CircuitSpec | None:
        """The whole query as a circuit; None with the reason in the plan."""
        terms = self.world.terms()
        # Spark reads no text with an as-of join.
        opaque = None if self.query.has_as_of else Opaque(self.query.text, self.analyser, terms)
        found = make_circuit(self.query.tree, CatalogTables(self._context), terms, opaque)
        if not isinstance(found, NotKept):
            return found
        own = self.world.functions_in(self.plan.identifiers)  # folds know them better
        if not own or self.plan.reason is None:
            self.plan = replace(self.plan, reason=found.reason)
        return None

    def _schema(self, columns: Sequence[tuple[str, pa.DataType]]) -> OutputSchema:
        if self._names is None:
            return view_output(columns)
        if len(self._names) != len(columns):
            raise BindError(
                f"the view names {len(self._names)} columns, its query has {len(columns)}",
                sqlstate="42601",
            )
        types = [type_ for _, type_ in columns]
        return view_output(list(zip(self._names, types, strict=True)))


class MadeBranch(Made):
    """One SELECT of an update query, over rows or windows that are all there."""

    def __init__(
        self,
        context: Context,
        query: Query,
        text: str,
        known: dict[str, list[list[str]]] | None = None,
        zone: str | None = None,
    ) -> None:
        self.query = query
        self.world = WorldInZone(context, zone or context.time_zone)
        _refuse_system_names(query, text)
        self.tables = _streams_of(context, query)
        tables = CatalogTables(context)
        at_hand: ViewTimes | None = None if query.windows else "rows at hand"
        self.plan = plan_query(query, tables, "interval", FOLDABLE, text, at_hand)
        self.analyser = Analyser(self.world, _some_instant(self.tables[0]), known)
        self._type_all(context, text)


def _refuse_system_names(query: Query, text: str) -> None:
    """BindError for an alias that belongs to the system: `_t` is the instant, `_op` the change."""
    tree = query.tree
    for item in tree.expressions if isinstance(tree, exp.Select) else ():
        if isinstance(item, exp.Alias) and item.alias.startswith("_"):
            raise BindError(
                f"the name {item.alias} starts with _",
                sqlstate="42602",
                hint="names that start with _ belong to the system",
                place=_place_of_name(query, text, f"`{item.alias}`"),
            )


def sampling_kind(query: Query, time: str) -> Sampled:
    """What decides when a query is evaluated; the end of a chunk is an instant like any other."""
    if query.cuts:
        return cut_by(query.cuts[0], time)
    assert query.sample is not None
    return query.sample.kind


def _place_of_name(query: Query, text: str, message: str) -> Place | None:
    """Where the name that an error of Spark's is about stands in the user's text."""
    found = re.search(r"`([^`]+)`|^(?:column|function) ([^`.\s]+)", message)
    name = (found[1] or found[2]).casefold() if found is not None else None
    for token in tokenize(query.text) if name is not None else ():
        if token.is_name and token.name.casefold() == name:
            return token.span.shifted(query.offset).place(text)
    return None
