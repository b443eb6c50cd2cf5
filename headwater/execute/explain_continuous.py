"""EXPLAIN of continuous queries: how the query is split, where each part runs, and what it has cost."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.compile.circuit import CircuitSpec
from headwater.compile.fold import FoldSpec
from headwater.compile.split_circuit import SplitCircuit
from headwater.compile.upper_circuit import UpperCircuit
from headwater.engine.elsewhere import HERE, HostGone
from headwater.engine.fold_run import FoldRun
from headwater.engine.pane_merge import PaneMerge
from headwater.engine.query import ContinuousQuery
from headwater.engine.split_query import QueryPart
from headwater.engine.split_view import SplitView, ViewPart
from headwater.engine.update_query import UpdateQuery
from headwater.engine.view import ContinuousView
from headwater.engine.view_circuit import ViewCircuit
from headwater.engine.world import World
from headwater.errors import BindError
from headwater.execute.catalog_tables import CatalogTables
from headwater.execute.context import Context, Running, unknown_view
from headwater.execute.continuous import find_query
from headwater.execute.continuous_plan import Made, MadeView
from headwater.execute.expansion import expanding_continuous
from headwater.execute.explain_updates import measured_update, update_lines
from headwater.execute.kept_views import made_split, stays_whole
from headwater.execute.update_queries import MadeUpdate
from headwater.execute.views import check_kept, check_parts, planned_view, view_options
from headwater.fold.share import Share
from headwater.plan.checks import Checker
from headwater.plan.folds import ContinuousPlan
from headwater.plan.relational.partition import NotSplit
from headwater.plan.text import RowsSlot, Slot, SparkText
from headwater.plan.update_checks import is_update_query
from headwater.result import Result
from headwater.sql.extensions import SampleInterval, SampleRows, WindowClause
from headwater.sql.statements.create_view import CreateView
from headwater.sql.statements.explain import Explain, ExplainObject
from headwater.sql.statements.query import Query
from headwater.storage.catalog import CatalogObject


def explain_select(running: Running, statement: Explain, query: Query) -> Result:
    """EXPLAIN of a continuous select that is not registered: its plan."""
    if statement.analyze:
        raise BindError(
            "EXPLAIN ANALYZE measures a query that runs",
            sqlstate="42P20",
            hint="CREATE CONTINUOUS QUERY q AS …, then EXPLAIN ANALYZE QUERY q",
        )
    context = running.context
    with expanding_continuous(context, query, statement.text) as (whole, text):
        if is_update_query(whole):
            spec = MadeUpdate(context, whole, text).spec
            return Result("EXPLAIN", pa.table({"plan": update_lines(context, spec)}))
        Checker(CatalogTables(context), whole, text).check()
        made = Made(context, whole, text)
    lines = [_when(whole), *_plan_lines(context, made.plan, made.specs, None)]
    lines.append(_upper_line(made.plan, made.evaluation.upper_tier))
    return Result("EXPLAIN", pa.table({"plan": lines}))


def explain_object(running: Running, statement: ExplainObject) -> Result:
    """EXPLAIN [ANALYZE] QUERY q: its plan as it runs now; with ANALYZE what it has done."""
    context = running.context
    if statement.kind != "query":
        return _explain_view(running, statement)
    item = find_query(context, statement.name, statement.text)
    if context.engine.find_named(item.name) is None:
        raise context.dormant[item.key]
    lines = object_lines(context, item.name, statement.analyze)
    return Result("EXPLAIN", pa.table({"plan": [*lines, *_table_line(context, item)]}))


def _table_line(context: Context, item: CatalogObject) -> list[str]:
    """How others may read the rows of a materialized view."""
    view = item.definition["view"]
    table = None if view is None else context.streams.find(view)
    if table is None or table.definition.update_key is None:
        return []
    names = ", ".join(table.definition.update_key) or "none: each row replaces the one before"
    return [f"rows: materialized view {table.definition.name}, update key {names}"]


def object_lines(context: Context, name: str, analyze: bool) -> list[str]:
    """The plan of a query or continuous view as it runs; the host that has it tells it."""
    made = context.engine.hosted(name)
    while made is not None and (elsewhere := made.elsewhere) is not None:
        try:
            lines = elsewhere.explain(analyze)
            return [f"{lines[0]}, in {elsewhere.name}", *lines[1:]]
        except HostGone:
            elsewhere.wait_gone()
    if isinstance(made, ViewPart):
        return [str(made.mine), *(f"  {line}" for line in _measured_view(made))]
    if isinstance(made, QueryPart):
        return [str(made.mine), *(f"  {line}" for line in _measured(made))]
    if isinstance(made, ContinuousView):
        return _lines_of_view(context, made, analyze)
    if isinstance(made, UpdateQuery):
        lines = [
            f"update query {made.name.removeprefix('_')}, {made.state}",
            *_zone(context, made.world),
        ]
        lines += update_lines(context, made.spec, made)
        return [*lines, *(measured_update(made) if analyze else [])]
    assert isinstance(made, ContinuousQuery)
    lines = [f"continuous query {made.name.removeprefix('_')}, {made.standing[0]}"]
    lines += _zone(context, made.world)
    lines += _plan_lines(context, made.plan, made.specs, None if made.parts else made)
    lines.append(_upper_line(made.plan, made.evaluation.upper_tier))
    if made.parts:
        lines[0] += _in_parts(made)
        return [*lines, *(_part_lines(context, made) if analyze else [])]
    lines.append(made.chooser.explain())
    return [*lines, *(_measured(made) if analyze else [])]


def _in_parts(made: ContinuousQuery | ContinuousView) -> str:
    """By what its groups are shared out, and where the parts are."""
    split = made.split if isinstance(made, SplitView) else None
    found = f", {_shared_out(len(made.parts), made.specs, split)}"
    return found if made.host == HERE else f"{found}, in {made.host}"


def _part_lines(context: Context, made: ContinuousQuery | ContinuousView) -> list[str]:
    """What each part says."""
    return [line for part in made.parts for line in object_lines(context, part.name, analyze=True)]


def _lines_of_view(context: Context, view: ContinuousView, analyze: bool) -> list[str]:
    split = isinstance(view, SplitView)
    held = bool(view.specs) or split or (view.kept is not None and view.kept.stopped is None)
    how = f"maintenance {view.maintenance}" if held else "re-evaluated"
    lines = [f"continuous view {view.name}, {how}", *_zone(context, view.world)]
    if view.parts:
        lines[0] += _in_parts(view)
    lines += _view_lines(context, view, view.maintenance)
    reason = stays_whole(view) if held else None
    lines += [] if reason is None else [f"in one part: {reason}"]
    if not analyze:
        return lines
    return [*lines, *(_part_lines(context, view) if view.parts else _measured_view(view))]


def _shared_out(parts: int, specs: Sequence[FoldSpec], split: SplitCircuit | None) -> str:
    """By what groups are shared out, or the rows of a circuit."""
    if split is not None:
        return f"{parts} parts {split.words}"
    keys = ", ".join(str(key) for key in specs[0].plan.keys)
    return f"{parts} parts by hash of {keys}"


def explain_view(running: Running, statement: CreateView) -> Result:
    """EXPLAIN CREATE VIEW: what would run at each insert and at each read."""
    context = running.context
    options = view_options(statement)
    made = planned_view(context, statement)
    if made is None:
        lines = ["plain view: its text stands in each query"]
    else:
        check_kept(made, options)
        check_parts(context, options, made)
        lines = _view_lines(context, made, options["maintenance"])
        if (options["parts"] or 1) > 1:
            split = None if made.circuit is None else made_split(made)
            assert not isinstance(split, NotSplit)
            lines.insert(0, _shared_out(options["parts"], made.specs, split))
    return Result("EXPLAIN", pa.table({"plan": lines}))


def _view_lines(context: Context, made: MadeView | ContinuousView, maintenance: str) -> list[str]:
    plan, specs, upper = made.plan, made.specs, made.evaluation.upper_tier
    if isinstance(made, SplitView) and made.split is not None:
        lines = made.split.lines(Share(0, len(made.parts)))
        return [_when_kept(maintenance), *(f"  {line}" for line in lines)]
    if made.circuit is not None and maintenance != "deferred":
        return _circuit_lines(made.circuit, maintenance)
    if not specs or maintenance == "deferred":
        tables = ", ".join(dict.fromkeys(str(leaf.name) for leaf in plan.leaves))
        reason = plan.reason or "maintenance = 'deferred'"
        return [f"evaluated again over {tables} when read and changed: {reason}"]
    lines = [_when_kept(maintenance), *_view_folds(context, specs)]
    if plan.stream_tables:
        lines.append(f"tables as of creation or REFRESH STATIC: {', '.join(plan.stream_tables)}")
    lines.append(f"at each read: {_upper_line(plan, upper).removeprefix('upper: ')}")
    block = made.evaluation.block
    if isinstance(block, UpperCircuit):
        return [*lines, *(f"  {line}" for line in block.spec.lines)]
    return [*lines, *_over_folds(plan.upper, len(specs))]


def _circuit_lines(circuit: CircuitSpec | ViewCircuit, maintenance: str) -> list[str]:
    """The operators that keep a view, the last one first."""
    if isinstance(circuit, CircuitSpec):
        lines, stopped = circuit.lines, None
    else:
        lines, stopped = circuit.spec.lines, circuit.stopped
    told = [] if stopped is None else [f"evaluated again when read and changed: {stopped}"]
    return [*told, _when_kept(maintenance), *(f"  {line}" for line in lines)]


def _when_kept(maintenance: str) -> str:
    return "at each read, for what came:" if maintenance == "incremental" else "at each insert:"


def _view_folds(context: Context, specs: Sequence[FoldSpec]) -> list[str]:
    """What runs at each insert, with the names that the part above has for it."""
    lines = []
    operators = context.settings.operators
    for number, spec in enumerate(specs):
        fold = spec.plan
        lines.append(
            f"fold_{number}: stream pipeline over {fold.leaves[0].name}, {_tier(spec, operators)}"
        )
        lines += [f"  {s.join or 'from'} {s.text}" for _, s in fold.statics]
        lines += [f"  where: {condition}" for condition in fold.where]
        lines += _grouping(spec, named=True)
    return lines


def _over_folds(upper: SparkText | None, folds: int) -> list[str]:
    """The text of the part above the folds."""
    names: dict[Slot, str] = {RowsSlot("fold", number): f"fold_{number}" for number in range(folds)}
    lines = [] if upper is None else upper.fill("current_timestamp()", names).splitlines()
    return [f"  {line.rstrip()}" for line in lines if line.strip()]


def _explain_view(running: Running, statement: ExplainObject) -> Result:
    """EXPLAIN [ANALYZE] VIEW v."""
    context = running.context
    item = context.find(statement.name)
    view = None if item is None else context.engine.find_view(item.name)
    if item is None or item.kind != "view":
        raise unknown_view(context, statement.name, statement.text)
    if view is None:
        return Result("EXPLAIN", pa.table({"plan": ["plain view: its text stands in each query"]}))
    lines = object_lines(context, item.name, statement.analyze)
    return Result("EXPLAIN", pa.table({"plan": lines}))


def _zone(context: Context, world: World) -> list[str]:
    """The time zone of a view or query, where another one is set now."""
    return [] if world.time_zone == context.time_zone else [f"time zone: {world.time_zone}"]


def _measured_view(view: ContinuousView) -> list[str]:
    counters = [pipeline.counters for pipeline in view.pipelines]
    by_operators, runs = (
        sum(c.rows_by_operators for c in counters),
        sum(c.operator_runs for c in counters),
    )
    on_spark, jobs = sum(c.rows_on_spark for c in counters), sum(c.spark_runs for c in counters)
    spilled = sum(len(pipeline.runs) for pipeline in view.pipelines)
    if view.circuit is not None:
        kept = view.circuit
        return [
            f"rows taken in: {kept.counters.rows_by_operators} in {kept.counters.operator_runs} runs",
            f"rows held: {kept.row_count}",
            f"in memory: {kept.state_bytes} bytes",
            f"spilled: {kept.runs.byte_count} bytes in {kept.runs.count} runs",
            *_figures(kept),
        ]
    return [
        f"rows folded by operators: {by_operators} in {runs} runs",
        f"rows read by Spark: {on_spark} in {jobs} runs",
        f"groups held: {sum(pipeline.groups for pipeline in view.pipelines)}",
        f"in memory: {sum(p.state_bytes for p in view.pipelines)} bytes",
        f"spilled: {sum(p.runs.byte_count for p in view.pipelines)} bytes in {spilled} runs",
        f"upper part on Spark: {view.evaluation.upper_runs} runs",
    ]


def _figures(circuit: ViewCircuit) -> list[str]:
    """What each operator has done, the last one first."""
    figures = [(node.operator, circuit.circuit.figures[node]) for node in circuit.circuit.nodes]
    return [
        f"  {one.name}: {did.rows_in} changes in, {did.rows_out} out, {1000 * did.seconds:.1f} ms, "
        f"{one.nbytes} bytes"
        for one, did in reversed(figures)
    ]


def _when(query: Query) -> str:
    sample = query.sample
    if query.cuts:
        return "evaluated at the end of each chunk"
    if isinstance(sample, SampleRows):
        return f"evaluated after every {sample.rows} rows"
    if isinstance(sample, SampleInterval):
        return f"evaluated every {seconds(sample.duration.microseconds)}"
    return "evaluated at every time that a row has"


def seconds(microseconds: int) -> str:
    """A length of time in words."""
    return f"{microseconds / 1e6:g} s"


def _window(window: WindowClause) -> str:
    if window.kind == "landmark":
        return "[LANDMARK]"
    if window.kind == "chunks":
        return f"[{window.rows} chunks]"
    if window.kind == "rows":
        keys = ", ".join(window.keys)
        return f"[{keys + ' ' if keys else ''}ROWS {window.rows}]"
    assert window.duration is not None
    before = " BEFORE" if window.before else ""
    return f"[{seconds(window.duration.microseconds)}{before}]"


def _plan_lines(
    context: Context,
    plan: ContinuousPlan,
    specs: Sequence[FoldSpec],
    query: ContinuousQuery | None,
) -> list[str]:
    if not specs:
        leaves = ", ".join(f"{leaf.name} {_window(leaf.window)}" for leaf in plan.leaves)
        return [f"re-evaluated over {leaves}: {plan.reason}"]
    lines = []
    operators = context.settings.operators
    for number, spec in enumerate(specs):
        fold = spec.plan
        leaves = " and ".join(f"{leaf.name} {_window(leaf.window)}" for leaf in fold.leaves)
        run = None if query is None else query.folds.running(number)
        tier = run.tier if run is not None else _tier(spec, operators)
        lines.append(f"fold {number}: {fold.transformation}")
        lines.append(f"  stream pipeline: {leaves}, {tier}")
        if fold.statics:
            tables = ", ".join(f"{s.join or 'from'} {s.text}" for _, s in fold.statics)
            lines.append(f"  static: {tables}, read again when it changes")
        lines += [f"  where: {condition}" for condition in fold.where]
        lines += _grouping(spec)
        if query is not None and run is not None:
            lines += _merge_lines(query, number, run)
    return lines


def _merge_lines(query: ContinuousQuery, number: int, run: FoldRun) -> list[str]:
    """What a fold keeps, and with whom."""
    window = query.folds.window_of(number)
    if window is None:
        lines = [f"  merge: {run.merge.structure}, {run.merge.size} held"]
    else:
        lines = [f"  merge: {window.sliding.structure}, {window.size} held"]
        if isinstance(run.merge, PaneMerge) and len(run.merge.windows) > 1:
            lines.append(f"  panes: of {len(run.merge.windows)} windows, {run.merge.size} held")
    others = [name.removeprefix("_") for name in query.folds.with_whom(number)]
    return lines + ([f"  shared with: {', '.join(others)}"] if others else [])


def _tier(spec: FoldSpec, operators: bool) -> str:
    """Where a chunk of a fold would run."""
    if spec.plan.kind == "ring":
        return "operators"
    return spec.tier if operators else "Spark"


def _grouping(spec: FoldSpec, named: bool = False) -> list[str]:
    fold = spec.plan
    keys, aggregates = (
        [str(key) for key in fold.keys],
        [f"{a.function}({a.argument or '*'})" for a in fold.aggregates],
    )
    if named:
        columns = iter(spec.schema.names)
        keys = [f"{text} AS {next(columns)}" for text in keys]
        aggregates = [f"{text} AS {next(columns)}" for text in aggregates]
    lines = [f"  group by: {', '.join(keys)}"] if keys else []
    return [*lines, f"  partials: {', '.join(aggregates)}"] if aggregates else lines


def _upper_line(plan: ContinuousPlan, tier: str) -> str:
    if not plan.folds:
        return "upper: none, Spark runs the whole query" if tier == "Spark" else "upper: operators"
    return f"upper: {tier}"


def _measured(query: ContinuousQuery) -> list[str]:
    counters, timings = query.counters, query.timings
    mean = 1000 * timings.total_s / timings.count if timings.count else 0.0
    return [
        f"results: {query.results}, response mean {mean:.2f} ms, worst {1000 * timings.worst_s:.2f} ms",
        f"rows folded by operators: {counters.rows_by_operators} in {counters.operator_runs} runs",
        f"rows read by Spark: {counters.rows_on_spark} in {counters.spark_runs} runs, "
        f"{counters.last_spark_rows} by the last",
        f"upper part on Spark: {query.evaluation.upper_runs} runs",
        f"rows re-evaluated: {query.evaluation.rows_evaluated}",
        f"early chunks: m = {query.early.m}",
        f"over budget: {query.progress.overruns} times; {query.progress.report() or 'never'}",
    ]
