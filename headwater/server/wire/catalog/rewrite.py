"""Questions about the catalog, in PostgreSQL's SQL → SQLite's.

Owns which statements are such questions, how they are rewritten, and what their columns are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from headwater.errors import Error
from headwater.server.wire.catalog import functions, tables
from headwater.server.wire.catalog.columns import columns_of, function_name, name_of, table_name
from headwater.sql.lexer import Kind, Token, tokenize
from headwater.sql.scripts import Asked
from headwater.sql.statements.query import Query
from headwater.sql.text import EditedText

LONGEST = 20_000  # characters; longer texts are no questions about the catalog
# Names of which a question has one, at least; or it is of one constant, as drivers ask to see who is there.
HINTS = frozenset(
    {"information_schema", "version", "session_user", "set_config", "format_type"}
)  # fmt: skip
HINT_PREFIXES = (
    "pg_", "current_schema", "current_database", "current_user", "current_setting", "current_role",
    "current_catalog", "has_", "reg", "to_reg",
)  # fmt: skip
_NAMES = frozenset(functions.functions(functions.Asking())) | frozenset(functions.AGGREGATES)
PLAIN = frozenset(
    {"count", "sum", "min", "max", "coalesce", "nullif", "upper", "lower", "length", "substring",
     "substr", "string_agg", "greatest", "least", "abs", "round", "replace", "trim", "row_number",
     "exists", "array", "array_size", "concat", "logical_or", "bool_or", "group_concat", "all"}
)  # fmt: skip
# Words that SQLite takes for a name in quotes only, and PostgreSQL after AS without.
RESERVED = frozenset(
    {"add", "all", "alter", "and", "as", "between", "case", "check", "collate", "commit",
     "constraint", "create", "default", "deferrable", "delete", "distinct", "drop", "else",
     "escape", "except", "exists", "foreign", "from", "group", "having", "in", "index", "insert",
     "intersect", "into", "is", "isnull", "join", "limit", "not", "nothing", "notnull", "null",
     "on", "or", "order", "primary", "references", "returning", "select", "set", "table", "then",
     "to", "transaction", "union", "unique", "update", "using", "values", "when", "where"}
)  # fmt: skip
SERIES = (exp.GenerateSeries, exp.ExplodingGenerateSeries)
# Functions in FROM that give no rows here, and their columns.
EMPTY = {"pg_options_to_table": ("option_name", "option_value")}
KEYWORDS = ("advance", "continuous", "cut", "emit", "landmark", "sample", "sink", "subscribe")
WITHOUT_BRACKETS = ("current_catalog", "session_user", "current_role", "user")
CONSTANT = (exp.Select, exp.Alias, exp.Literal, exp.Identifier, exp.Null, exp.Boolean, exp.Neg)


@dataclass(frozen=True)
class CatalogQuestion:
    """A question as SQLite reads it, and the names and types of its columns."""

    sql: str
    columns: tuple[tuple[str, str], ...]
    unknown: frozenset[str] = frozenset()  # tables that only look like the catalog's


def question_of(asked: Asked) -> CatalogQuestion | None:
    """The question that a statement is, by its tables and functions; None if it is none."""
    try:
        statement = asked.statement()
    except Error:  # whoever runs it says what is wrong
        return None
    if not isinstance(statement, Query) or not _may_ask(statement):
        return None
    tree = _parsed(asked.original())
    if tree is None or not _is_question(tree):
        return None
    columns = columns_of(tree)
    plain = {t.name.lower() for t in tree.find_all(exp.Table) if not t.db}
    unknown = {name for name in plain - tables.COLUMNS.keys() if name.startswith("pg_")}
    sql = _shown(_rewritten(tree)).sql("sqlite", unsupported_level=ErrorLevel.IGNORE)
    return CatalogQuestion(sql, columns, frozenset(unknown))


def _may_ask(query: Query) -> bool:
    """Whether a look at a query as PostgreSQL reads it is worth while."""
    if len(query.text) > LONGEST:
        return False
    names = query.identifiers
    if not names.isdisjoint(HINTS) or any(name.startswith(HINT_PREFIXES) for name in names):
        return True
    tree = None if query.relations else query.tree
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return False
    bare = not any(value for name, value in tree.args.items() if name != "expressions")
    return bare and isinstance(tree.expressions[0].unalias(), exp.Literal | exp.Null | exp.Boolean)


def _parsed(text: str) -> exp.Expr | None:
    try:
        found = sqlglot.parse(_readable(text), read="postgres")
    except (SqlglotError, RecursionError):
        return None
    tree = found[0] if len(found) == 1 else None
    return tree if isinstance(tree, exp.Query) else None


def _readable(text: str) -> str:
    """A text without what only PostgreSQL reads: its schema, OPERATOR(…), COLLATE, casts to arrays."""
    edited = EditedText(text)
    for token, after in pairwise(tokenize(text)):
        if _word(token) == "pg_catalog" and after.text == ".":
            edited.replace(token.start, after.end, "")
    edited, tokens = EditedText(edited.text), tokenize(edited.text)
    for index, token in enumerate(tokens):
        match [_word(each) for each in tokens[index : index + 4]]:
            case ["::", "information_schema", ".", _] | ["::", _, "[", "]"]:
                edited.replace(token.start, tokens[index + 3].end, "")
            case ["collate", "default" | "c" | "posix", *_]:
                edited.replace(token.start, tokens[index + 1].end, "")
            case ["operator", "(", *_]:
                edited.replace(token.start, tokens[index + 1].end, " ")
                close = next((t for t in tokens[index:] if t.text == ")"), token)
                edited.replace(close.start, close.end, " ")
    return edited.text


def _word(token: Token) -> str:
    """A name or symbol in lower case; strings in double quotes are names to PostgreSQL."""
    quoted = token.kind is Kind.STRING and token.text[0] == '"'
    return token.text[1:-1] if quoted else token.name.lower()


def _is_question(tree: exp.Expr) -> bool:
    """Whether all tables are of the catalog; without tables, whether all functions are."""
    named = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    found = [t for t in tree.find_all(exp.Table) if t.name]
    foreign = [t for t in found if not _is_ours(t) and t.name.lower() not in named]
    if foreign:
        return False
    if any(_is_ours(t) for t in found):
        return True
    calls = set(_calls(tree))
    if not calls:
        return all(_is_constant(node) for node in tree.walk()) and not found
    return not found and calls <= _NAMES | PLAIN and bool(calls & _NAMES)


def _is_constant(node: exp.Expr) -> bool:
    """Whether a node is of a constant that is the same in PostgreSQL, SQLite and our SQL."""
    if isinstance(node, exp.Literal):
        text = str(node.this)
        return "\\" not in text if node.is_string else text.isdigit() and int(text) < 1 << 31
    return isinstance(node, CONSTANT)


def _is_ours(table: exp.Table) -> bool:
    """Whether a table is of the catalog; PostgreSQL's own that we lack are, so that the error says so."""
    name = table_name(table)
    return name in tables.COLUMNS or name.startswith(("pg_", "information_schema_"))


def _calls(tree: exp.Expr) -> Iterator[str]:
    for node in tree.find_all(exp.Func):
        if isinstance(node, exp.Cast | exp.Case | exp.If | exp.And | exp.Or):
            continue
        yield function_name(node)
    for cast in tree.find_all(exp.Cast):
        if cast.to.sql("postgres").lower() in ("regclass", "regtype"):
            yield "to_regclass"
    for column in tree.find_all(exp.Column):
        if column.name.lower() in WITHOUT_BRACKETS:
            yield column.name.lower()


# Rewriting


def _rewritten(tree: exp.Expr) -> exp.Expr:
    """The tree with every node rewritten, inner ones first."""
    tree = tree.copy()
    _named(tree)
    for node in reversed(list(tree.walk(bfs=False))):
        found = _node(node)
        if found is not node and node is tree:
            tree = found
        elif found is not node:
            node.replace(found)
    return tree


def _named(tree: exp.Expr) -> None:
    """Gives unnamed columns of inner queries PostgreSQL's names, and reserved words their quotes."""
    for select in tree.find_all(exp.Select):
        if select.find_ancestor(exp.CTE, exp.Subquery) is None:
            continue
        for item in select.selects:
            if not isinstance(item, exp.Alias | exp.Column | exp.Star):
                item.replace(exp.alias_(item.copy(), name_of(item), quoted=True))
    for name in tree.find_all(exp.Identifier):
        if name.name.lower() in RESERVED:
            name.set("quoted", True)


def _shown(tree: exp.Expr) -> exp.Expr:
    """The tree with numbers of tables and types shown by name where they are the result."""
    for select in tree.selects if isinstance(tree, exp.Query) else ():
        inner = select.unalias()
        name = str(inner.this) if isinstance(inner, exp.Anonymous) else ""
        if name in ("to_regclass", "to_regtype"):
            inner.replace(_call(f"{name.removeprefix('to_')}_text", inner.copy()))
    return tree


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _node(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Table) and node.name:
        return _table(node)
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.ByteString | exp.National | exp.RawString):
        return exp.Literal.string(node.name)
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
        return _table_function(node)
    if isinstance(node, exp.EQ | exp.NEQ) and _is_any(node.expression):
        return _any(node)
    if isinstance(node, exp.Array):
        return _array(node)
    if isinstance(node, exp.Bracket):
        return _call("element_at", node.this, _from_zero(node.expressions[0]))
    if isinstance(node, exp.RegexpILike):
        return _call("regexp_i", node.expression, node.this)
    if isinstance(node, exp.RegexpLike):
        return _call("regexp", node.expression, node.this)
    if isinstance(node, exp.ArrayAgg):
        inner = node.this.this if isinstance(node.this, exp.Order) else node.this
        return _call("array_agg", inner)
    if isinstance(node, exp.GroupConcat):
        inner = node.this.this if isinstance(node.this, exp.Order) else node.this
        separator = node.args.get("separator") or exp.Literal.string(",")
        return _call("group_concat", inner, separator)
    if isinstance(node, exp.LogicalOr):
        return _call("max", node.this)
    if isinstance(node, exp.Unnest):
        return _unnested(node)
    if isinstance(node, exp.Lateral):
        return node.this if isinstance(node.this, exp.Subquery) else node
    if isinstance(node, exp.Dot):
        return _call(
            "no_value"
        )  # a field of a row: only indexes and keys have such, and there are none
    if isinstance(node, exp.Collate):
        return node.this
    return _function(node)


def _table(node: exp.Table) -> exp.Expr:
    renamed = exp.Table(this=exp.to_identifier(table_name(node)))
    for name, value in node.args.items():
        if name not in ("this", "db", "catalog"):
            renamed.set(name, value)
    if not renamed.alias and node.db:
        renamed = exp.alias_(renamed, node.name, table=True)  # type: ignore[assignment]
    return renamed


def _from_zero(index: exp.Expr) -> exp.Expr:
    """An index counted from 0; sqlglot has taken one off where it sees that it is a number."""
    if isinstance(index, exp.Literal | exp.Neg) or index.is_type(*exp.DataType.INTEGER_TYPES):
        return exp.Paren(this=index)
    return exp.Paren(this=exp.Sub(this=exp.Paren(this=index), expression=exp.Literal.number(1)))


def _table_function(node: exp.Table) -> exp.Expr:
    """A function in FROM: numbers, no rows, or one row with its value."""
    function = node.this
    name = function_name(function)
    alias = node.args.get("alias")
    named = alias.name if alias is not None else name
    column = next((c.name for c in alias.columns), named) if alias is not None else name
    if isinstance(function, SERIES):
        first, last = (function.args[part].sql("sqlite") for part in ("start", "end"))
        text = f'SELECT value AS "{column}" FROM json_each(series_json({first}, {last}))'
    elif name in EMPTY:
        text = f"SELECT {', '.join(f'NULL AS {n}' for n in EMPTY[name])} WHERE 1 = 0"
    elif name == "pg_get_keywords":
        text = f"SELECT value AS word FROM json_each(array_json('{{{','.join(KEYWORDS)}}}'))"
    else:
        text = f'SELECT {function.sql("sqlite")} AS "{column}"'
    inner = sqlglot.parse_one(text, read="sqlite")
    return exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(named)))


def _unnested(node: exp.Unnest) -> exp.Expr:
    """`unnest(array) AS a(column)` in FROM."""
    alias = node.args.get("alias")
    names = [column.name for column in alias.columns] if alias is not None else []
    name = alias.name if alias is not None else "unnest"
    first, second = (*names, name)[0], (*names[1:], "ordinality")[0]
    listed = f'value AS "{first}"'
    if names[1:] or node.args.get("offset"):
        listed += f', key + 1 AS "{second}"'
    array = node.expressions[0].sql("sqlite")
    inner = sqlglot.parse_one(f"SELECT {listed} FROM json_each(array_json({array}))", read="sqlite")
    return exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(name)))


def _cast(node: exp.Cast) -> exp.Expr:
    to = node.to.sql("postgres").lower()
    inner = node.this
    if to == "regclass":
        return _call("to_regclass", inner)
    if to == "regtype":
        return _call("to_regtype", inner)
    if to == "regproc":
        return _call("to_regproc", inner)
    if to in ("text", "varchar", "name") and isinstance(inner, exp.Anonymous):
        kind = str(inner.this).removeprefix("to_")
        if kind in ("regclass", "regtype"):
            return _call(f"{kind}_text", *inner.expressions)
    if to in ("int", "bigint", "smallint", "integer", "int2", "int4", "int8", "oid"):
        return exp.Cast(this=inner, to=exp.DataType.build("int"))
    return inner


def _is_any(node: exp.Expr | None) -> bool:
    """`ANY (…)` or `ALL (…)`; sqlglot takes `ALL ('{a}')` for a function."""
    called = isinstance(node, exp.Anonymous) and str(node.this).upper() == "ALL"
    return called or isinstance(node, exp.Any | exp.All)


def _any(node: exp.Binary) -> exp.Expr:
    right = node.expression
    array = right.expressions[0] if isinstance(right, exp.Anonymous) else right.this
    array = array.this if isinstance(array, exp.Paren) else array
    if isinstance(array, exp.Query):
        found: exp.Expr = exp.In(this=node.this, query=exp.Subquery(this=array))
    else:
        found = _call("has_element", array, node.this)
    return exp.Not(this=found) if isinstance(node, exp.NEQ) else found


def _array(node: exp.Array) -> exp.Expr:
    inner = node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(inner, exp.Query):
        name = name_of(inner.selects[0])
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


def _function(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Column) and not node.table:
        name = node.name.lower()
        if not node.this.quoted and name in WITHOUT_BRACKETS:
            return _call(name)
    if isinstance(node, exp.Column) and node.name.lower() == "tableoid":
        return exp.Literal.number(0)
    if isinstance(node, exp.Anonymous):
        unknown = str(node.this).lower().startswith("pg_") and function_name(node) not in _NAMES
        return _call("no_value", *node.expressions) if unknown else node
    if isinstance(node, exp.Func):
        name = function_name(node)
        if name in _NAMES:
            return _call(name, *node.iter_expressions())
    return node
