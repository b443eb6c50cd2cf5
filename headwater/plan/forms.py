"""What makes two pieces of a query the same: their bound form, not their text.

Letter case of names, backticks, blanks, comments, parentheses, and by which name a table is called say
nothing. Must never: call two pieces the same that may give different values; that two are not found to be the
same only costs time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from sqlglot import exp

Resolve = Callable[[exp.Column], Hashable | None]


def form(node: object, resolve: Resolve) -> Hashable:
    """The form of a tree; `resolve` says which column a name means, None if only its words tell."""
    if isinstance(node, exp.Paren):
        return form(node.this, resolve)
    if isinstance(node, exp.Column):
        known = resolve(node)
        words = tuple(form(part, resolve) for part in node.parts)
        return (exp.Column, words) if known is None else known
    if isinstance(node, exp.Identifier):
        return node.name.casefold()
    if isinstance(node, exp.Query):
        resolve = _around(node, resolve)
    if isinstance(node, exp.Expr):
        said = ((k, v) for k, v in node.args.items() if v is not None and v is not False)
        return (type(node), tuple((k, form(v, resolve)) for k, v in said))
    if isinstance(node, list):
        return tuple(form(one, resolve) for one in node)
    return node if isinstance(node, Hashable) else repr(node)


def _around(query: exp.Query, resolve: Resolve) -> Resolve:
    """Inside a subquery only names with the name of a table outside it mean columns outside it."""
    inner = {table.alias_or_name.casefold() for table in query.find_all(exp.Table, exp.Subquery)}

    def outside(column: exp.Column) -> Hashable | None:
        table = column.table.casefold()
        return resolve(column) if table and table not in inner else None

    return outside
