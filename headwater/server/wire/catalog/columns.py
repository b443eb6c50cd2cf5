"""The names and PostgreSQL types of the columns of a question about the catalog.

SQLite's values have types, its columns have none, and clients must know them before the first row.
Owns the names that PostgreSQL gives to unnamed expressions, and their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from headwater.server.wire import types
from headwater.server.wire.catalog import functions, tables

BOOLEAN = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Not, exp.And, exp.Or, exp.In, exp.Is,
    exp.Exists, exp.Like, exp.ILike, exp.Between, exp.RegexpLike, exp.RegexpILike, exp.Boolean,
    exp.LogicalOr,
)  # fmt: skip
Columns = tuple[tuple[str, str], ...]


def table_name(table: exp.Table) -> str:
    """The name under which SQLite holds a table."""
    name, schema = table.name.lower(), table.db.lower()
    return f"information_schema_{name}" if schema == "information_schema" else name


_RENAMED = {
    "current_version": "version", "explode": "unnest", "array_size": "array_length", "logical_or": "bool_or",
    "logical_and": "bool_and", "array_to_string": "array_to_string", "str_position": "strpos",
    "regexp_i_like": "regexp_i", "regexp_like": "regexp",
}  # fmt: skip


def function_name(node: exp.Expr) -> str:
    """The name of a call as PostgreSQL has it."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    name = node.sql_name().lower() if isinstance(node, exp.Func) else node.key
    return _RENAMED.get(name, name)


def _folded(name: exp.Expr) -> str:
    """A name as PostgreSQL shows it: in lower case unless it was quoted."""
    return name.name if name.args.get("quoted") else name.name.lower()


def name_of(node: exp.Expr) -> str:
    """The name of a column of the result."""
    if isinstance(node, exp.Alias):
        return _folded(node.args["alias"])
    if isinstance(node, exp.Column):
        return _folded(node.this)
    if isinstance(node, exp.Cast):
        inner = node.this
        while isinstance(inner, exp.Cast):
            inner = inner.this
        name = name_of(inner)
        return name if name != "?column?" else node.to.sql("postgres").lower()
    if isinstance(node, exp.Paren | exp.Window):
        return name_of(node.this)
    if isinstance(node, exp.Case | exp.Coalesce | exp.Array):
        return node.key
    if isinstance(node, exp.Subquery):
        return name_of(node.this.selects[0])
    return function_name(node) if isinstance(node, exp.Func) else "?column?"


def columns_of(tree: exp.Expr, known: Mapping[str, Columns] | None = None) -> Columns:
    """The columns of a query; `known` are those of the named queries around it."""
    while isinstance(tree, exp.Subquery | exp.SetOperation):
        known = _with_named(tree, known or {})
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return ()
    scope = CatalogScope(_with_named(tree, known or {}))
    from_ = tree.args.get("from_")
    for source in [from_, *(tree.args.get("joins") or [])]:
        if source is not None:
            scope.add(source.this)
    found: list[tuple[str, str]] = []
    for select in tree.selects:
        found += (
            scope.starred(select) if select.is_star else [(name_of(select), scope.type_of(select))]
        )
    return tuple(found)


def _with_named(tree: exp.Expr, known: Mapping[str, Columns]) -> dict[str, Columns]:
    """The named queries that a query sees: those around it and its own."""
    found = dict(known)
    with_ = tree.args.get("with_")
    for cte in with_.expressions if with_ is not None else ():
        columns = columns_of(cte.this, found)
        names = [column.name for column in cte.args["alias"].columns]
        if names:
            columns = tuple((n, t) for n, (_, t) in zip(names, columns, strict=False))
        found[cte.alias.lower()] = columns
    return found


@dataclass
class CatalogScope:
    """The tables of one SELECT, with their columns."""

    named: Mapping[str, Columns]
    sources: dict[str, Columns] = field(default_factory=dict)

    def add(self, source: exp.Expr) -> None:
        """A table, named query or subquery of FROM."""
        if isinstance(source, exp.Table):
            name = table_name(source)
            listed = tuple(tables.COLUMNS.get(name, {}).items())
            self.sources[(source.alias or source.name).lower()] = self.named.get(name, listed)
            if isinstance(source.this, exp.Func):
                self._add_function(source)
        elif isinstance(source, exp.Unnest):
            alias = source.args.get("alias")
            names = [c.name for c in alias.columns] if alias is not None else []
            name = alias.name if alias is not None else "unnest"
            self.sources[name.lower()] = (((*names, name)[0], "text"),)
        elif isinstance(source, exp.Subquery | exp.Lateral):
            self.sources[source.alias.lower()] = columns_of(source.this, self.named)

    def _add_function(self, source: exp.Table) -> None:
        """A function in FROM: one column, with the name of its alias unless that names columns."""
        alias, function = source.args.get("alias"), source.this
        name = alias.name if alias is not None else function_name(function)
        column = next((c.name for c in alias.columns), name) if alias is not None else name
        series = isinstance(function, exp.GenerateSeries | exp.ExplodingGenerateSeries)
        type_ = "int4" if series else functions.TYPE_OF.get(function_name(function), "text")
        self.sources[name.lower()] = ((column, type_),)

    def starred(self, select: exp.Expr) -> Columns:
        """The columns of `*` or `t.*`."""
        table = select.table.lower() if isinstance(select, exp.Column) else ""
        if table:
            return self.sources.get(table, ())
        return tuple(column for columns in self.sources.values() for column in columns)

    def _column(self, node: exp.Column) -> str:
        name, table = node.name.lower(), node.table.lower()
        chosen = [self.sources.get(table, ())] if table else list(self.sources.values())
        for columns in chosen:
            for known, type_ in columns:
                if known.lower() == name:
                    return type_
        return functions.TYPE_OF.get(name, tables.TYPES.get(name, "text"))

    def type_of(self, node: exp.Expr) -> str:
        """The PostgreSQL type of an expression, by name."""
        if isinstance(
            node,
            exp.Alias | exp.Paren | exp.Neg | exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Max
            | exp.Min | exp.Window,
        ):  # fmt: skip
            return self.type_of(node.this)
        if isinstance(node, exp.Subquery):
            inner = columns_of(node.this, self.named)
            return inner[0][1] if inner else "text"
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Cast):
            return _cast_type(node)
        if isinstance(node, BOOLEAN):
            return "bool"
        if isinstance(node, exp.Literal):
            return "text" if node.is_string else "int4" if "." not in node.name else "numeric"
        if isinstance(node, exp.Case):
            values = [branch.args["true"] for branch in node.args["ifs"]]
            return self._first_type([*values, node.args.get("default")])
        if isinstance(node, exp.Coalesce):
            return self._first_type([node.this, *node.expressions])
        if isinstance(node, exp.Array):
            return "_text"
        return functions.TYPE_OF.get(function_name(node), "text")

    def _first_type(self, nodes: list[exp.Expr | None]) -> str:
        known = [self.type_of(n) for n in nodes if n is not None and not isinstance(n, exp.Null)]
        return known[0] if known else "text"


def _cast_type(node: exp.Cast) -> str:
    found = types.spelled(node.to.sql("postgres").lower())
    return "text" if found is None or found.name in ("regclass", "regtype") else found.name
