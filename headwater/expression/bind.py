"""sqlglot's trees → bound expressions, or a refusal with its reason; and at once → closures.

The way in for whoever has a tree. Only this module, `binder`, `rules` and `function_rules` know sqlglot. Must
never: bind what is not in the table of functions.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater.expression import function_rules
from headwater.expression.binder import Binder, NotBound, Refusal, Resolve
from headwater.expression.compile import Compiled, compiled, compiled_filter
from headwater.expression.nodes import Bound
from headwater.expression.terms import PLAIN, Terms

__all__ = ["Refusal", "Resolve", "bind", "compile_expression", "compile_predicate"]
assert function_rules.ANONYMOUS  # entered by being imported


def bind(node: exp.Expr, resolve: Resolve, terms: Terms = PLAIN) -> Bound | Refusal:
    """The bound expression, or why there is none."""
    try:
        return Binder(resolve, terms).bound(node)
    except NotBound as refused:
        return refused.refusal
    except RecursionError:
        return Refusal("it is nested too deeply")


def compile_expression(node: exp.Expr, resolve: Resolve, terms: Terms = PLAIN) -> Compiled | None:
    """The expression in line; None if anything in it is not on the whitelist."""
    return _compiled(compiled, bind(node, resolve, terms))


def compile_predicate(node: exp.Expr, resolve: Resolve, terms: Terms = PLAIN) -> Compiled | None:
    """The condition of a filter in line: as Spark's, a conjunct is not asked where one before failed."""
    return _compiled(compiled_filter, bind(node, resolve, terms))


def _compiled(make: Callable[[Bound], Compiled | None], found: Bound | Refusal) -> Compiled | None:
    try:
        return None if isinstance(found, Refusal) else make(found)
    except RecursionError:
        return None
