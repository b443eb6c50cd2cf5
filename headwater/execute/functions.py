"""User functions and procedures: CREATE FUNCTION, CREATE PROCEDURE, CALL, DROP of both.

SQL functions and procedures are kept in the catalog. Python functions live as long as the process:
a program registers them again after it connects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from headwater.engine.stateful import check_state
from headwater.errors import BindError, Error
from headwater.execute.context import Context, Running
from headwater.execute.function_bodies import bodies_called, body_of, is_read
from headwater.execute.query import work_to_check, work_with_functions
from headwater.kernel.functions import PythonFunction, SqlFunction, check_function, table_columns
from headwater.plan.folds import Life
from headwater.result import Result
from headwater.sql.assemble import Assembly
from headwater.sql.identifiers import identifiers_in
from headwater.sql.lexer import tokenize
from headwater.sql.literals import sql_text
from headwater.sql.names import nearest
from headwater.sql.parameters import substitute
from headwater.sql.statements.call import Call
from headwater.sql.statements.create_function import CreateFunction
from headwater.sql.statements.create_procedure import CreateProcedure
from headwater.sql.statements.drop import Drop
from headwater.sql.text import Name
from headwater.sql.type_parser import parse_fields, parse_type
from headwater.sql.types import name_of, quoted
from headwater.storage.catalog import CatalogObject

DEEPEST_CALL = 32
NESTED = ("ARRAY", "MAP", "STRUCT")


def open_functions(context: Context) -> None:
    """Makes the functions of the catalog known to the kernel."""
    for item in context.catalog.all("function"):
        _know(context, _from_catalog(item))


def _from_catalog(item: CatalogObject) -> SqlFunction:
    d = item.definition
    return SqlFunction(item.key, d["text"], d["returns"], frozenset(d["identifiers"]), d["kind"])


def _know(context: Context, function: SqlFunction | PythonFunction) -> None:
    context.functions[function.name.lower()] = function
    context.function_changes += 1
    context.tell_functions()
    context.kernel.add_function(function)


def create_python_function(
    context: Context, name: str, function: Any, returns: str, kind: str, state: str | None = None
) -> None:
    """`db.create_function`: checked here, registered with Spark when a statement first needs it."""
    check_function(name, function, kind)
    life = None if state is None else _life(name, function, kind, state)
    if kind == "table":
        parse_fields(table_columns(returns))
    else:
        parse_type(returns)
    if context.catalog.find(name, "function") is not None:
        raise BindError(
            f"function {name} exists already", sqlstate="42723", hint="DROP FUNCTION first"
        )
    _know(context, PythonFunction(name.lower(), function, returns, kind, life))


def _life(name: str, function: Any, kind: str, state: str) -> Life:
    """How long a function's state lives, if the function can have any."""
    lives = {life: life for life in get_args(Life)}
    if state not in lives:
        raise BindError(
            f"state of function {name} cannot live for {state!r}",
            hint="state: " + ", ".join(lives),
        )
    if kind != "scalar":
        raise BindError(
            f"{name} is of kind {kind}: only scalar functions can have state",
            hint="an aggregate has a state of its own for each group"
            if kind == "aggregate"
            else "a table function keeps what it needs between its rows itself",
        )
    check_state(name, function, state)
    return lives[state]


def create_function(running: Running, statement: CreateFunction) -> Result:
    """CREATE [OR REPLACE] FUNCTION f(x T, …) RETURNS T RETURN expression."""
    context = running.context
    with context.ddl:
        existing = context.functions.get(statement.name.key)
        if existing is not None and statement.if_not_exists:
            return Result("CREATE FUNCTION")
        if existing is not None and not statement.or_replace:
            place = statement.name.span.place(statement.text)
            raise BindError(
                f"function {statement.name} exists already", sqlstate="42723", place=place
            )
        made = _definition(statement)
        function = SqlFunction(
            statement.name.key,
            made["text"],
            made["returns"],
            frozenset(made["identifiers"]),
            made["kind"],
        )
        if existing is not None:
            _check_callers(context, statement, function)
        _check_with_spark(running, statement, function)
        old = context.catalog.find(statement.name, "function")
        if old is not None:
            context.catalog.change(old, made)
        else:
            context.catalog.add("function", statement.name, made)
        _know(context, function)
    return Result("CREATE FUNCTION")


def _definition(statement: CreateFunction) -> dict[str, Any]:
    parameters = ", ".join(f"{quoted(p.name)} {name_of(p.type)}" for p in statement.parameters)
    if statement.columns is not None:
        returns = (
            f"TABLE ({', '.join(f'{quoted(c.name)} {name_of(c.type)}' for c in statement.columns)})"
        )
        kind, body = "table", statement.query.text if statement.query else ""
    else:
        assert statement.returns is not None
        assert statement.body is not None
        returns, kind, body = (
            name_of(statement.returns),
            "scalar",
            statement.body.of(statement.text),
        )
    names = identifiers_in(tokenize(body)) - {p.name.key for p in statement.parameters}
    text = f"({parameters}) RETURNS {returns} RETURN {body}"
    return {"text": text, "returns": returns, "kind": kind, "identifiers": sorted(names)}


def _check_callers(context: Context, statement: CreateFunction, function: SqlFunction) -> None:
    """BindError 2BP01 if a continuous query or view calls a function that is to read what changes."""
    body = body_of(function)
    inside = bodies_called(context, body.query.text)
    if not inside and not is_read(context, body.query):
        return
    for item in context.catalog.all("continuous query", "view"):
        kept = item.kind == "continuous query" or item.definition["continuous"]
        if kept and function.name in context.functions_called(item.definition["text"]):
            name = item.name.removeprefix("_")
            way = "DROP VIEW" if item.kind == "view" else "KILL QUERY"
            raise BindError(
                f"{item.kind} {name} calls function {function.name}",
                sqlstate="2BP01",
                detail="it cannot keep the answers of a function that reads what changes",
                hint=f"{way} {name} first",
                place=statement.name.span.place(statement.text),
            )


def _check_with_spark(running: Running, statement: CreateFunction, function: SqlFunction) -> None:
    """Lets Spark read the function, so that a mistake shows at creation and not at first use."""
    context = running.context
    try:
        with work_to_check(context, function) as (read, work):
            context.kernel.check_function(read, work)
    except Error as error:
        error.place = statement.name.span.place(statement.text)
        raise


def create_procedure(running: Running, statement: CreateProcedure) -> Result:
    """CREATE [OR REPLACE] PROCEDURE p(x T, …) AS BEGIN statements END."""
    context = running.context
    with context.ddl:
        old = context.catalog.find(statement.name, "procedure")
        if old is not None and statement.if_not_exists:
            return Result("CREATE PROCEDURE")
        made = {
            "parameters": [
                {"name": str(p.name), "type": name_of(p.type)} for p in statement.parameters
            ],
            "body": [span.of(statement.text) for span in statement.body],
        }
        if old is not None and statement.or_replace:
            context.catalog.change(old, made)
        else:
            context.catalog.add("procedure", statement.name, made)
    return Result("CREATE PROCEDURE")


def call(running: Running, statement: Call, run: Callable[[str], Result], depth: int) -> Result:
    """CALL p(…): runs the procedure's statements; the result is that of the last one with rows."""
    context = running.context
    found = context.catalog.find(statement.name, "procedure")
    if found is None:
        near = nearest(str(statement.name), [o.name for o in context.catalog.all("procedure")])
        raise BindError(
            f"procedure {statement.name} does not exist",
            sqlstate="42883",
            hint=f"did you mean {near}?" if near else "SHOW PROCEDURES lists what there is",
            place=statement.name.span.place(statement.text),
        )
    if depth >= DEEPEST_CALL:
        raise BindError(
            f"procedures call each other more than {DEEPEST_CALL} deep", sqlstate="54001"
        )
    parameters = found.definition["parameters"]
    if len(parameters) != len(statement.arguments):
        raise BindError(
            f"procedure {found.name} takes {len(parameters)} arguments, {len(statement.arguments)} are given",
            sqlstate="42883",
            place=statement.name.span.place(statement.text),
        )
    values = _argument_texts(running, statement, parameters)
    result = Result("CALL")
    for text in found.definition["body"]:
        last = run(substitute(text, values).text)
        result = last if last.has_rows else result
    return result


def _argument_texts(
    running: Running, statement: Call, parameters: list[dict[str, str]]
) -> dict[str, str]:
    """Each parameter as a literal of its type; expressions are evaluated by Spark first."""
    if not parameters:
        return {}
    if statement.values is None or not _all_exact(statement, parameters):
        text = Assembly(statement.text).say("SELECT ")
        for index, (p, argument) in enumerate(zip(parameters, statement.arguments, strict=True)):
            text.say(", CAST(" if index else "CAST(").copy(argument).say(f" AS {p['type']})")
        with work_with_functions(running.context, text) as work:
            table = running.context.kernel.run(work, running.cancellation)
        row = [column[0].as_py() for column in table.columns]
    else:
        row = [literal.value for literal in statement.values]
    texts = {}
    for p, argument, value in zip(parameters, statement.arguments, row, strict=True):
        expression = argument.of(statement.text)
        texts[p["name"].lower()] = _typed_text(value, p["type"], expression)
    return texts


INTEGER_SUFFIXES = {"TINYINT": "Y", "SMALLINT": "S", "BIGINT": "L"}


def _typed_text(value: Any, type_: str, expression: str) -> str:
    """A value as SQL text of exactly this type; nested values have no literals."""
    if isinstance(value, (list, dict)):
        return f"CAST(({expression}\n) AS {type_})"
    if value is None:
        return f"CAST(NULL AS {type_})" if type_.startswith(NESTED) else "NULL"
    if type_ in INTEGER_SUFFIXES:
        return (
            f"({value}{INTEGER_SUFFIXES[type_]})"
            if value < 0
            else f"{value}{INTEGER_SUFFIXES[type_]}"
        )
    if type_ == "FLOAT" or type_.startswith("DECIMAL"):
        return f"CAST({sql_text(value)} AS {type_})"
    return sql_text(value)


def _all_exact(statement: Call, parameters: list[dict[str, str]]) -> bool:
    """Whether each literal has the parameter's type already, or one that widens into it."""
    assert statement.values is not None
    integers = ("TINYINT", "SMALLINT", "INT", "BIGINT")
    for parameter, literal in zip(parameters, statement.values, strict=True):
        given, wanted = literal.type_name, parameter["type"]
        widens = (
            given in integers
            and wanted in integers
            and integers.index(given) <= integers.index(wanted)
        )
        if literal.value is not None and given != wanted and not widens:
            return False
    return True


def drop_function(running: Running, statement: Drop) -> Result:
    """DROP FUNCTION."""
    context = running.context
    with context.ddl:
        found = context.functions.pop(statement.name.key, None)
        context.function_changes += 1
        context.tell_functions()
        if found is None and not statement.if_exists:
            raise _unknown(statement.name, list(context.functions), "function", statement.text)
        stored = context.catalog.find(statement.name, "function")
        if stored is not None:
            context.catalog.remove(stored)
        context.kernel.remove_function(statement.name)
    return Result("DROP FUNCTION")


def drop_procedure(running: Running, statement: Drop) -> Result:
    """DROP PROCEDURE."""
    context = running.context
    with context.ddl:
        found = context.catalog.find(statement.name, "procedure")
        if found is not None:
            context.catalog.remove(found)
        elif not statement.if_exists:
            names = [o.name for o in context.catalog.all("procedure")]
            raise _unknown(statement.name, names, "procedure", statement.text)
    return Result("DROP PROCEDURE")


def _unknown(name: Name, names: list[str], kind: str, text: str) -> BindError:
    near = nearest(str(name), names)
    return BindError(
        f"{kind} {name} does not exist",
        sqlstate="42883",
        hint=f"did you mean {near}?" if near else f"SHOW {kind.upper()}S lists what there is",
        place=name.span.place(text),
    )
