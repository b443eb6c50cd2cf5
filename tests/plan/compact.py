"""Plans in a compact form, a line for each fold: what the pairs of `rules/*.sql` say of a query.

A fold's line has its kind, its windows and what it does, in the order in which it is done. Where the finish
of the one fold is not the result, the upper text follows. A query that is evaluated again has its reason, and
of a view the rule behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from headwater.compile.fold import FOLDABLE, FoldSpec, make_spec, refuse_types
from headwater.compile.upper import make_upper
from headwater.errors import Error, NotSupportedError
from headwater.expression.terms import PLAIN
from headwater.plan.blocks import Sampling
from headwater.plan.folds import ContinuousPlan, FoldPlan, Leaf, StaticSource
from headwater.plan.leaves import cut_by
from headwater.plan.planner import ViewTimes, plan_query
from headwater.sql.lexer import tokenize
from headwater.sql.statements.query import Query, make_query
from headwater.sql.types import name_of
from tests.plan.catalog import FixedTables

TABLES = FixedTables()


def plan_lines(text: str, show: str = "") -> list[str]:
    """What the planner makes of a query; `show` may ask for `whole`, `types`, `at insert`, `rows at hand`."""
    try:
        query, plan = plan_of(text, show)
    except Error as error:
        return [f"refused: {error.message}"]
    return lines_of(query, plan, show)


def lines_of(query: Query, plan: ContinuousPlan, show: str = "") -> list[str]:
    """A plan in its compact form."""
    view = _view(query, show)
    lines = [_fold(fold) for fold in plan.folds]
    if plan.reason is not None:
        rule = None if view is None else plan.rule
        lines.append(f"again: {plan.reason}" + ("" if rule is None else f" ({rule.split(':')[0]})"))
    elif not plan.single:
        lines.append(f"upper: {_plain(plan.upper)}")
    if plan.below:
        lines.append(f"tables below: {', '.join(plan.stream_tables)}")
    if "whole" in show:
        lines.append(f"whole: {_plain(plan.whole)}")
    if "types" in show:
        lines += _types(query, plan)
    return lines


def plan_of(text: str, show: str = "") -> tuple[Query, ContinuousPlan]:
    """A query and its plan; an Error if it is refused."""
    query = make_query(text)
    view = _view(query, show)
    return query, plan_query(query, TABLES, _sampling(query), FOLDABLE, text, view)


def _view(query: Query, show: str) -> ViewTimes | None:
    """A query without windows is a view."""
    if "rows at hand" in show:
        return "rows at hand"
    if "at insert" in show:
        return "at insert"
    return None if query.windows or query.cuts else "refused"


def _sampling(query: Query) -> Sampling:
    if query.cuts:
        return cut_by(query.cuts[0], "ts")
    return "interval" if query.sample is None else query.sample.kind


def _plain(text: object) -> str:
    """A text in one line without comments, the names of ours shortened."""
    tokens = tokenize(str(text))
    gaps = (" " if after.start > one.end else "" for one, after in pairwise(tokens))
    words = (token.text for token in tokens)
    line = "".join(part for pair in zip(words, gaps, strict=False) for part in pair)
    return line.replace("headwater_", "").strip()


def _fold(fold: FoldPlan) -> str:
    return f"fold {fold.number}: " + " | ".join(_parts(fold))


def _parts(fold: FoldPlan) -> Iterator[str]:
    yield f"{fold.kind} of {' and '.join(map(_leaf, fold.leaves))}"
    yield from (_static(static) for _, static in fold.statics)
    if fold.join_on:
        yield "on " + _list(fold.join_on)
    if fold.where:
        yield "where " + _list(fold.where)
    if fold.outside:
        yield "for " + _list(fold.outside)
    if fold.keys:
        yield "by " + _list(fold.keys)
    if fold.aggregates:
        calls = [
            f"{a.function}({'*' if a.argument is None else a.argument})" for a in fold.aggregates
        ]
        yield _list(calls)
    if fold.columns:
        yield "keeps " + ", ".join(f"{c.source}.{c.name}" for c in fold.columns)
    yield from _finish(fold)
    if fold.fresh:
        yield "fresh"


def _finish(fold: FoldPlan) -> Iterator[str]:
    finish = fold.finish
    if finish is None:
        return
    outputs = [f"{o.piece}" + ("" if o.name is None else f" AS {o.name}") for o in finish.outputs]
    yield ("distinct " if finish.distinct else "gives ") + _list(outputs)
    if finish.condition is not None:
        yield f"having {_plain(finish.condition)}"
    if finish.order:
        items = [
            f"{piece}{' desc' if item.descending else ''}{' nulls first' if item.nulls_first else ''}"
            for piece, item in finish.order
        ]
        yield "order " + _list(items)
    if finish.limit is not None:
        yield _plain(finish.limit.text)


def _leaf(leaf: Leaf) -> str:
    window = leaf.window
    words = [*window.keys]
    words += [f"{window.duration.seconds:g} s"] if window.duration is not None else []
    words += [f"{window.kind} {window.rows}"] if window.rows is not None else []
    words += ["before"] if window.before else []
    words += ["newest"] if leaf.newest else []
    words += [f"prev {column}/{steps}" for column, steps in leaf.previous]
    name = str(leaf.name) if leaf.alias == leaf.name else f"{leaf.name} {leaf.alias}"
    return f"{name} [{' '.join(words) or window.kind}]"


def _static(static: StaticSource) -> str:
    name = _plain(static.text)
    name += "" if name.strip("`") == static.alias else f" {static.alias}"
    using = [f"using {name}" for name in static.using]
    return f"{static.join or 'from'} {name}" + "".join(
        f" {_plain(c)};" for c in [*static.condition, *using]
    )


def _list(pieces: object) -> str:
    return ", ".join(map(_plain, pieces))  # type: ignore[call-overload]


def _types(query: Query, plan: ContinuousPlan) -> Iterator[str]:
    """Where each fold runs, and the types of its finish; where the upper part does."""
    specs = []
    for fold in plan.folds:
        try:
            specs.append(make_spec(fold, PLAIN, refuse_types))
        except NotSupportedError:
            yield f"fold {fold.number} on Spark"
            continue
        yield f"fold {fold.number} {_tier(specs[-1])}"
    if len(specs) == len(plan.folds) and not plan.single and specs:
        upper = make_upper(query, plan, specs, TABLES, PLAIN)
        types = (
            "on Spark"
            if upper is None
            else f"by operators gives {', '.join(map(name_of, upper.types))}"
        )
        yield f"upper {types}"


def _tier(spec: FoldSpec) -> str:
    if spec.finish is None:
        return f"by {spec.tier}, finished on Spark"
    return f"by {spec.tier} gives {', '.join(map(name_of, spec.finish.types))}"
