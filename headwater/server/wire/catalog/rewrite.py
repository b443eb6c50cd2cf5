"""Questions about the catalog, in PostgreSQL's SQL → SQLite's.

Owns which statements are such questions, how they are rewritten, and what their columns are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from headwater.server.wire import types
from headwater.server.wire.catalog import functions, tables

HINTS = re.compile(
    r"pg_|information_schema|\bversion\s*\(|\bcurrent_(schema|database|user|setting|role|catalog)|"
    r"\bsession_user\b|\bset_config\b|\bformat_type\b|\bhas_\w+_privilege\b|::\s*reg|"
    r"^\s*select\s+('[^']*'|\d+|null|true|false)(\s+(as\s+)?\w+)?\s*;?\s*$",
    re.IGNORECASE,
)
_CATALOG = re.compile(r"""('(?:[^']|'')*')|"?\bpg_catalog\b"?\s*\.\s*""", re.IGNORECASE)
_OPERATOR = re.compile(r"\bOPERATOR\s*\(\s*([^)\s]+)\s*\)", re.IGNORECASE)
_COLLATE = re.compile(r"\bCOLLATE\s+\"?(default|C|POSIX)\"?", re.IGNORECASE)
_INFORMATION_TYPES = re.compile(r"::\s*information_schema\.\w+", re.IGNORECASE)
_NAMES = frozenset(functions.functions(functions.Asking())) | frozenset(functions.AGGREGATES)
PLAIN = frozenset(
    {"count", "sum", "min", "max", "coalesce", "nullif", "upper", "lower", "length", "substring",
     "substr", "string_agg", "greatest", "least", "abs", "round", "replace", "trim", "row_number",
     "exists", "array", "array_size", "concat", "logical_or", "bool_or", "group_concat"}
)  # fmt: skip
CONSTANT = (exp.Select, exp.Alias, exp.Literal, exp.Identifier, exp.Null, exp.Boolean, exp.Neg)
BOOLEAN = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Not, exp.And, exp.Or, exp.In, exp.Is, exp.Exists,
    exp.Like, exp.ILike, exp.Between, exp.RegexpLike, exp.RegexpILike, exp.Boolean, exp.LogicalOr,
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """A question as SQLite reads it; names and types are None where the columns are `*`."""

    sql: str
    columns: tuple[tuple[str, str], ...] | None


def question(text: str) -> Question | None:
    """The question that a text is; None if it is none."""
    if HINTS.search(text) is None:
        return None
    tree = _parsed(text)
    if tree is None or not _is_question(tree):
        return None
    columns = _columns(tree)
    return Question(_rewritten(tree).sql(dialect="sqlite"), columns)


def _parsed(text: str) -> exp.Expression | None:
    plain = _CATALOG.sub(lambda m: m.group(1) or "", text)
    plain = _COLLATE.sub("", _OPERATOR.sub(r" \1 ", _INFORMATION_TYPES.sub("", plain)))
    try:
        found = sqlglot.parse(plain.strip().rstrip(";"), read="postgres")
    except (SqlglotError, RecursionError):
        return None
    tree = found[0] if len(found) == 1 else None
    return tree if isinstance(tree, exp.Query) else None


def table_name(table: exp.Table) -> str:
    """The name under which SQLite holds a table."""
    name, schema = table.name.lower(), table.db.lower()
    return f"information_schema_{name}" if schema == "information_schema" else name


def _is_question(tree: exp.Expression) -> bool:
    """Whether all tables are of the catalog; without tables, whether all functions are."""
    named = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    found = [t for t in tree.find_all(exp.Table) if t.name]
    foreign = [
        t for t in found if table_name(t) not in tables.COLUMNS and t.name.lower() not in named
    ]
    if foreign:
        return False
    if any(table_name(t) in tables.COLUMNS for t in found):
        return True
    calls = set(_calls(tree))
    if not calls:
        return all(isinstance(node, CONSTANT) for node in tree.walk()) and not found
    return not found and calls <= _NAMES | PLAIN and bool(calls & _NAMES)


def _calls(tree: exp.Expression) -> Iterator[str]:
    for node in tree.find_all(exp.Func):
        if isinstance(node, exp.Cast | exp.Case | exp.If | exp.And | exp.Or):
            continue
        yield function_name(node)
    for column in tree.find_all(exp.Column):
        if column.name.lower() in ("current_catalog", "session_user", "current_role", "user"):
            yield column.name.lower()


_RENAMED = {
    "current_version": "version", "explode": "unnest", "array_size": "array_length", "logical_or": "bool_or",
    "logical_and": "bool_and", "array_to_string": "array_to_string", "str_position": "strpos",
    "regexp_i_like": "regexp_i", "regexp_like": "regexp",
}  # fmt: skip


def function_name(node: exp.Expression) -> str:
    """The name of a call as PostgreSQL has it."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    name = node.sql_name().lower() if isinstance(node, exp.Func) else node.key
    return _RENAMED.get(name, name)


# Names and types of columns


def _columns(tree: exp.Expression) -> tuple[tuple[str, str], ...] | None:
    selects = tree.selects if isinstance(tree, exp.Query) else []
    if not selects or any(s.is_star for s in selects):
        return None
    return tuple((_name(s), type_of(s)) for s in selects)


def _name(node: exp.Expression) -> str:
    if isinstance(node, exp.Alias):
        return node.alias
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Cast):
        inner = _name(node.this)
        return inner if inner != "?column?" else node.to.sql("postgres").lower()
    if isinstance(node, exp.Paren):
        return _name(node.this)
    if isinstance(node, exp.Case | exp.Coalesce | exp.Array):
        return node.key
    if isinstance(node, exp.Subquery):
        return _name(node.this.selects[0])
    return function_name(node) if isinstance(node, exp.Func) else "?column?"


def type_of(node: exp.Expression) -> str:
    """The PostgreSQL type of an expression, by name."""
    if isinstance(node, exp.Alias | exp.Paren):
        return type_of(node.this)
    if isinstance(node, exp.Subquery):
        return type_of(node.this.selects[0]) if node.this.selects else "text"
    if isinstance(node, exp.Column):
        return tables.TYPES.get(node.name.lower(), functions.TYPE_OF.get(node.name.lower(), "text"))
    if isinstance(node, exp.Cast):
        return _cast_type(node)
    if isinstance(node, BOOLEAN):
        return "bool"
    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "int4" if "." not in node.name else "numeric"
    if isinstance(node, exp.Neg | exp.Add | exp.Sub | exp.Mul):
        return type_of(node.this)
    if isinstance(node, exp.Case):
        values = [branch.args["true"] for branch in node.args["ifs"]]
        return _first_type([*values, node.args.get("default")])
    if isinstance(node, exp.Coalesce):
        return _first_type([node.this, *node.expressions])
    if isinstance(node, exp.Max | exp.Min):
        return type_of(node.this)
    if isinstance(node, exp.Array):
        return "_text"
    return functions.TYPE_OF.get(function_name(node), "text")


def _first_type(nodes: list[exp.Expression | None]) -> str:
    known = [type_of(n) for n in nodes if n is not None and not isinstance(n, exp.Null)]
    return known[0] if known else "text"


def _cast_type(node: exp.Cast) -> str:
    words = node.to.sql("postgres").lower()
    if words.endswith("[]"):
        element = types.spelled(words[:-2])
        return f"_{element.name}" if element is not None and element.array else "_text"
    found = types.spelled(words)
    if found is None or found.name in ("regclass", "regtype"):
        return "text"
    return found.name


# Rewriting


def _rewritten(tree: exp.Expression) -> exp.Expression:
    return tree.copy().transform(_node)


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _node(node: exp.Expression) -> exp.Expression:
    if isinstance(node, exp.Table) and node.name:
        return _table(node)
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.ByteString | exp.National | exp.RawString):
        return exp.Literal.string(node.name)
    if isinstance(node, exp.Any):
        return node
    if isinstance(node, exp.EQ | exp.NEQ) and isinstance(node.expression, exp.Any | exp.All):
        return _any(node)
    if isinstance(node, exp.Array):
        return _array(node)
    if isinstance(node, exp.Bracket):
        index = node.expressions[0]
        shifted = exp.Add(
            this=index.copy(), expression=exp.Literal.number(1)
        )  # sqlglot counts from 0
        return _call("element_at", node.this, shifted)
    if isinstance(node, exp.RegexpILike):
        return _call("regexp_i", node.expression, node.this)
    if isinstance(node, exp.RegexpLike):
        return _call("regexp", node.expression, node.this)
    if (
        isinstance(node, exp.Ordered)
        and isinstance(node.parent, exp.Order)
        and isinstance(node.parent.parent, exp.Func | exp.AggFunc)
    ):
        return node
    if isinstance(node, exp.ArrayAgg):
        inner = node.this.this if isinstance(node.this, exp.Order) else node.this
        return _call("array_agg", inner)
    if isinstance(node, exp.GroupConcat):
        inner = node.this.this if isinstance(node.this, exp.Order) else node.this
        separator = node.args.get("separator") or exp.Literal.string(",")
        return _call("group_concat", inner, separator)
    if isinstance(node, exp.LogicalOr):
        return _call("max", node.this)
    if isinstance(node, exp.Lateral):
        return node.this if isinstance(node.this, exp.Subquery) else node
    if isinstance(node, exp.Collate):
        return node.this
    return _function(node)


def _table(node: exp.Table) -> exp.Expression:
    renamed = exp.Table(this=exp.to_identifier(table_name(node)))
    for name, value in node.args.items():
        if name not in ("this", "db", "catalog"):
            renamed.set(name, value)
    if not renamed.alias and node.db:
        renamed = exp.alias_(renamed, node.name, table=True)  # type: ignore[assignment]
    return renamed


def _cast(node: exp.Cast) -> exp.Expression:
    to = node.to.sql("postgres").lower()
    inner = node.this
    if to == "regclass":
        return _call("to_regclass", inner)
    if to == "regtype":
        return _call("to_regtype", inner)
    if to in ("text", "varchar", "name") and isinstance(inner, exp.Cast):
        kind = inner.to.sql("postgres").lower()
        if kind in ("regclass", "regtype"):
            return _call(f"{kind}_text", inner.this)
    if to in ("int", "bigint", "smallint", "integer", "int2", "int4", "int8", "oid"):
        return exp.Cast(this=inner, to=exp.DataType.build("int"))
    return inner


def _any(node: exp.Binary) -> exp.Expression:
    array = node.expression.this
    array = array.this if isinstance(array, exp.Paren) else array
    if isinstance(array, exp.Query):
        found: exp.Expression = exp.In(this=node.this, query=exp.Subquery(this=array))
    elif isinstance(array, exp.Array) and not any(
        isinstance(e, exp.Query) for e in array.expressions
    ):
        found = exp.In(this=node.this, expressions=list(array.expressions))
    else:
        found = _call("has_element", array, node.this)
    return exp.Not(this=found) if isinstance(node, exp.NEQ) else found


def _array(node: exp.Array) -> exp.Expression:
    inner = node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(inner, exp.Query):
        name = _name(inner.selects[0])
        first = inner.selects[0]
        if not isinstance(first, exp.Column | exp.Alias):
            inner = inner.copy()
            inner.selects[0].replace(exp.alias_(inner.selects[0].copy(), "element"))
            name = "element"
        rows = exp.Subquery(
            this=inner, alias=exp.TableAlias(this=exp.to_identifier("rows_of_array"))
        )
        chosen = exp.select(_call("array_agg", exp.column(name, quoted=True))).from_(rows)
        return exp.Subquery(this=chosen)
    return _call("make_array", *node.expressions)


_PLACES = (
    exp.CurrentUser,
    exp.CurrentSchema,
    exp.CurrentVersion,
    exp.SessionUser,
    exp.CurrentCatalog,
)


def _function(node: exp.Expression) -> exp.Expression:
    if isinstance(node, exp.Column) and not node.table:
        name = node.name.lower()
        if not node.this.quoted and name in (
            "current_catalog",
            "session_user",
            "current_role",
            "user",
        ):
            return _call(name)
    if isinstance(node, _PLACES):
        return _call(function_name(node))
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        name = function_name(node)
        if name in _NAMES:
            return _call(name, *node.iter_expressions())
    return node
