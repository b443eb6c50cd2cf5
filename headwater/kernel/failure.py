"""Turns what Spark raises into errors that a person can read.

Spark's errors have a condition, an SQLSTATE, a message and often the place in the text. Java stack
traces never reach the user. An error whose words are Java's own is marked as `foreign`: those words reach
admins only (`execute/discretion.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from headwater.errors import (
    BindError,
    CancelledError,
    DataError,
    Error,
    KernelError,
    NotSupportedError,
    Place,
    SqlSyntaxError,
    StorageError,
)
from headwater.plan.times import APART, ORDERED_DISTINCT
from headwater.sql.names import did_you_mean
from headwater.sql.spark_functions import ALLOWED
from headwater.storage.disk import BUSY, storage_error

NO_SPACE = "No space left on device"  # as Java and Python say it
WORKER_LATE = "Python worker failed to connect back"
FULL_HINT = "free some space; what waits for it goes on by itself"
Mapper = Callable[[int], int]

# Columns that UPDATE, DELETE and MERGE add to address rows; no user wrote them.
INTERNAL_COLUMNS = frozenset({"_file", "_row", "_action", "_in_table", "_in_source"})

HINTS = {
    "DIVIDE_BY_ZERO": "use try_divide to get NULL instead, or filter out zero divisors",
    "CAST_INVALID_INPUT": "use try_cast to get NULL for values that do not fit",
    "CAST_OVERFLOW": "use a wider type, or try_cast to get NULL",
    "INVALID_ARRAY_INDEX": "use get(array, index) to get NULL instead",
    "ARITHMETIC_OVERFLOW": "use a wider type, or try_add, try_subtract, try_multiply",
    "TABLE_OR_VIEW_NOT_FOUND": "SHOW TABLES lists what there is",
}
OWN_FUNCTIONS = "SHOW FUNCTIONS lists your own functions; check the spelling"
WINDOWS = (
    "a window stands behind its table: FROM t [INTERVAL '1' MINUTE BEFORE] … SAMPLE INTERVAL '1' MINUTE "
    "in a continuous query; to group stored rows, GROUP BY window(time, '1 minute'), or FROM TUMBLE(t, "
    "time, '1 minute')"
)
OF_OTHERS = {"tumble": WINDOWS, "hop": WINDOWS, "cumulate": WINDOWS, "session": WINDOWS}
"""Functions that other systems have, and what there is in their place."""


def translate(error: BaseException, text: str, original_position: Mapper | None = None) -> Error:
    """The error as one of ours; `text` is the user's statement, positions are mapped back to it."""
    if isinstance(error, Error):
        return error
    if isinstance(error, OSError) and error.errno and not isinstance(error, ConnectionError):
        told = storage_error("use", str(error.filename or "a file"), error)
        told.__cause__ = error  # it is the system's: what it refuses now it may do later
        return told
    if NO_SPACE in str(error):
        return StorageError("the disk is full", sqlstate="53100", hint=FULL_HINT)
    if WORKER_LATE in str(error):
        return KernelError(
            "a Python process of Spark's did not start in time",
            sqlstate=BUSY,
            hint="the machine is busy, or may start no more processes; try again",
        )
    condition = _call(error, "getCondition")
    state = _call(error, "getSqlState")
    message = str(error)
    if condition is None:
        found = re.search(r"\[([A-Z][A-Z0-9_.]+)\] .+? SQLSTATE: (\w{5})", message, re.DOTALL)
        if found is None or "Traceback (most recent call last)" in message:
            return _untyped(error, message)
        condition, state = found.groups()  # some errors of a run come as plain Java exceptions
        message = message[found.start() : found.end()]
    python = _python_error(message)
    if python is not None:
        return DataError(f"a Python function failed: {python}", sqlstate="38000")
    if condition.startswith("FAILED_READ_FILE"):
        return _unreadable(message)
    if condition == "PATH_NOT_FOUND" and (_path(message) or "") not in text:
        return _unreadable(message)  # the user named no such path: it is a file of a table
    place = _place(error, text, original_position)
    known, hint = _hint(condition, message)
    kind = _kind(condition, state or "")
    made = kind(known, sqlstate=state, hint=hint, place=place)
    return _foreign(made) if kind is KernelError else made


def _foreign(error: Error) -> Error:
    """An error in the words of Java: they may tell of files, addresses and the machine."""
    error.foreign = True
    return error


def _call(error: BaseException, name: str) -> str | None:
    method = getattr(error, name, None)
    if method is None:
        return None
    value = method()
    return str(value) if value else None


def _path(message: str) -> str | None:
    found = re.search(r"file:(?://)?(/\S+?)\.?(?:\s|$)", message)
    return found.group(1) if found else None


def _unreadable(message: str) -> StorageError:
    return StorageError(
        "a file of the table cannot be read",
        sqlstate="XX001",
        detail=_path(message),
        hint="restore the file from a copy",
    )


def _untyped(error: BaseException, message: str) -> Error:
    """Errors without a condition: Python functions that failed, a lost Java process, a crash."""
    if "cancelled" in message.lower() and "job" in message.lower():
        return CancelledError("the statement was cancelled")
    if "OutOfMemoryError" in message:
        return KernelError(
            "Spark ran out of memory",
            sqlstate="53200",
            hint="raise driver_memory_mb, or ask for fewer rows at once",
        )
    python = _python_error(message)
    if python is not None:
        return DataError(f"a Python function failed: {python}", sqlstate="38000")
    if type(error).__name__ in ("Py4JNetworkError", "ConnectionRefusedError", "Py4JError"):
        return _foreign(
            KernelError(
                "the Java process under Spark does not answer",
                detail=message.strip().splitlines()[0] if message.strip() else None,
                hint="start the program again; nothing acknowledged is lost",
            )
        )
    if re.search(r"expressions\.\w+ cannot be cast to class \S+\.SortOrder ", message):
        return NotSupportedError(ORDERED_DISTINCT, hint=APART)
    cause = re.findall(r"^Caused by: (.+)$", message, re.MULTILINE)
    first = next((line for line in message.splitlines() if line.strip()), type(error).__name__)
    return _foreign(KernelError(_plain(cause[-1] if cause else first)))


def _python_error(message: str) -> str | None:
    """The last line of a Python traceback inside a Java message."""
    if "Traceback (most recent call last)" not in message:
        return None
    tail = message.rsplit("Traceback (most recent call last)", 1)[1]
    for line in tail.splitlines()[1:]:
        if line and not line[0].isspace():
            return line.strip()
    return None


def _plain(message: str) -> str:
    """The message without Spark's decoration: condition, SQLSTATE, plan and text excerpts."""
    message = re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", message.strip())
    message = re.split(r"\s*SQLSTATE: \w{5}|\n== SQL|\n== DataFrame", message)[0]
    message = re.sub(r"^(?:[a-z]+\.)+[A-Z]\w*(?:Exception|Error): ", "", message)
    message = " ".join(message.split())
    if not message:
        return "Spark failed"
    first = message[:1] if message[1:2].isupper() else message[:1].lower()
    return first + message[1:].rstrip(".")


def _hint(condition: str, message: str) -> tuple[str, str | None]:
    """The message without its advice, and the advice as a hint."""
    plain = _plain(message)
    if condition == "UNRESOLVED_ROUTINE":
        return _no_function(plain)
    plain = re.sub(
        r"^a column, variable, or function parameter with name (\S+) cannot be resolved",
        lambda found: f"column {_unquoted(found[1])} does not exist",
        plain,
    )
    near = re.search(r"Did you mean one of the following\? \[([^\]]+)\]", message)
    if near:
        plain = re.sub(r"\s*did you mean one of the following\?.*$", "", plain, flags=re.I).rstrip(
            ". "
        )
        names = near.group(1).replace("`", "").split(", ")
        names = [name for name in names if name.rpartition(".")[2] not in INTERNAL_COLUMNS]
        found = [] if names == ["_t"] else names[:3]  # a time that the user did not name
        return plain, f"did you mean {' or '.join(found)}?" if found else None
    plain = re.sub(r" on search path \[.*?\]", "", plain)
    plain = re.sub(
        r"\. (If necessary set|Use (?:[`']|the SQL function)|To tolerate|Verify the spelling"
        r"|If you did not|Correct the value|Please adjust).*$",
        "",
        plain,
    )
    return plain, HINTS.get(condition.partition(".")[0])


def _no_function(plain: str) -> tuple[str, str]:
    """The message and the hint for a function that is not there."""
    found = re.search(r"routine (\S+)", plain)
    name = _unquoted(found[1]) if found else "of that name"
    other = OF_OTHERS.get(name.lower())
    return f"function {name} does not exist", other or did_you_mean(name, ALLOWED) or OWN_FUNCTIONS


def _unquoted(name: str) -> str:
    """A name as it is written: without backticks, where it can do without."""
    return re.sub(r"`(\w+)`", r"\1", name)


def _kind(condition: str, state: str) -> type[Error]:
    if condition.startswith("PARSE_SYNTAX_ERROR") or state == "42601":
        return SqlSyntaxError
    if condition == "OPERATION_CANCELED" or state == "HY008":
        return CancelledError
    if condition.startswith("UDF_") or "Python" in condition:
        return DataError
    by_class: dict[str, type[Error]] = {
        "22": DataError,
        "23": DataError,
        "21": DataError,
        "38": DataError,
        "42": BindError,
        "0A": NotSupportedError,
    }
    return by_class.get(state[:2], KernelError)


def _place(error: BaseException, text: str, original_position: Mapper | None) -> Place | None:
    method = getattr(error, "getQueryContext", None)
    contexts = method() if method is not None else None
    if contexts:
        context = contexts[0]
        try:
            if str(context.contextType()).upper().endswith("DATAFRAME") or context.objectName():
                return None
            start, end = int(context.startIndex()), int(context.stopIndex()) + 1
        except Exception:  # a context without positions is no place
            return None
        return _mapped(text, start, end, original_position)
    found = re.search(r"\(line (\d+), pos(?:ition)? (\d+)\)", str(error))
    if found is None:
        return None
    return _from_line(text, int(found.group(1)), int(found.group(2)), original_position)


def _mapped(text: str, start: int, end: int, original_position: Mapper | None) -> Place | None:
    if original_position is not None:
        start, end = original_position(start), original_position(end)
    if not 0 <= start <= len(text):
        return None
    return Place(text, start, max(min(end, len(text)), start + 1))


def _from_line(text: str, line: int, column: int, original_position: Mapper | None) -> Place | None:
    # The line and column are of the text that Spark saw; edits never add or remove lines.
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    word = re.match(r"\w+|.", text[start + column :])
    width = len(word.group(0)) if word else 1
    return _mapped(text, start + column, start + column + width, original_position)
