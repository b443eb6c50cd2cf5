"""Spark's errors as ours: short, without Java, at the right place. Real ones are in tests/cases."""

from __future__ import annotations

import errno

import pytest

import headwater
from headwater.errors import (
    BindError,
    CancelledError,
    DataError,
    Error,
    KernelError,
    NotSupportedError,
    SqlSyntaxError,
)
from headwater.kernel.failure import translate
from headwater.storage.disk import may_pass


class SparkError(Exception):
    """An error as PySpark raises it."""

    def __init__(self, condition: str | None, state: str | None, message: str) -> None:
        super().__init__(message)
        self.condition, self.state = condition, state

    def getCondition(self) -> str | None:
        return self.condition

    def getSqlState(self) -> str | None:
        return self.state


@pytest.mark.parametrize("condition", [None, "STREAM_FAILED"])
def test_a_worker_that_starts_too_late_is_tried_again(condition: str | None) -> None:
    """A busy machine, not the user's rows: whatever waits for it goes on."""
    text = "Job aborted\nCaused by: SparkException: Python worker failed to connect back.\n\tat"
    found = translate(SparkError(condition, None if condition is None else "XXKST", text), "")
    assert isinstance(found, KernelError)
    assert (found.sqlstate, may_pass(found)) == ("53000", True)
    assert not may_pass(KernelError("Spark failed"))


@pytest.mark.parametrize(
    ("number", "passes"), [(errno.EIO, True), (errno.EMFILE, True), (errno.EACCES, False)]
)
def test_what_the_system_refuses_is_still_known_as_its_refusal(number: int, passes: bool) -> None:
    error = OSError(number, "refused", "/a/file")
    assert may_pass(translate(error, "")) is may_pass(error) is passes


@pytest.mark.parametrize(
    ("condition", "state", "kind"),
    [
        ("PARSE_SYNTAX_ERROR", "42601", SqlSyntaxError),
        ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", BindError),
        ("DIVIDE_BY_ZERO", "22012", DataError),
        ("UNSUPPORTED_FEATURE.X", "0A000", NotSupportedError),
        ("OPERATION_CANCELED", "HY008", CancelledError),
        ("INTERNAL_ERROR", "XX000", KernelError),
        ("WHO_KNOWS", None, KernelError),
    ],
)
def test_kinds(condition: str, state: str | None, kind: type[Error]) -> None:
    found = translate(
        SparkError(condition, state, f"[{condition}] It failed. SQLSTATE: {state or 'XXKST'}"), "x"
    )
    assert type(found) is kind
    assert found.message == "it failed"
    assert state is None or found.sqlstate == state


def test_java_exceptions_without_a_condition_keep_their_state() -> None:
    message = (
        "An error occurred while calling o1.x.\n: org.apache.spark.SparkRuntimeException: "
        "[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned. SQLSTATE: 21000\n"
        "\tat org.apache.spark.Foo.bar(Foo.scala:1)"
    )
    found = translate(Exception(message), "SELECT 1")
    assert (found.sqlstate, found.message) == ("21000", "more than one row returned")


def test_the_last_cause_of_a_plain_java_exception() -> None:
    message = (
        "boom\n\tat x.y\nCaused by: java.io.IOException: first\n"
        "Caused by: a.b.FooException: the disk is gone"
    )
    assert translate(Exception(message), "").message == "the disk is gone"


def test_out_of_memory() -> None:
    found = translate(Exception("java.lang.OutOfMemoryError: Java heap space\n\tat x"), "")
    assert found.sqlstate == "53200"
    assert "driver_memory_mb" in (found.hint or "")


def test_ours_stay_as_they_are() -> None:
    error = BindError("mine")
    assert translate(error, "x") is error


def test_a_python_traceback_becomes_its_last_line() -> None:
    message = (
        "Job aborted\nTraceback (most recent call last):\n  File 'x', line 1\nValueError: first\n\n"
        "Traceback (most recent call last):\n  File 'y'\nZeroDivisionError: division by zero\n\tat java"
    )
    found = translate(Exception(message), "")
    assert found.sqlstate == "38000"
    assert found.message == "a Python function failed: ZeroDivisionError: division by zero"


STATEMENTS = [
    "SELECT 1 / 0",
    "SELECT CAST('x' AS INT)",
    "SELECT nothing FROM range(1)",
    "SELECT nofunction(1)",
    "SELECT 1 +",
    "SELECT explode(1)",
    "SELECT (SELECT id FROM range(5))",
    "SELECT raise_error('my own words')",
    "SELECT from_json('x', 'not a type !')",
    "SELECT assert_true(false)",
    "SELECT element_at(array(1), 0)",
    "SELECT to_date('2024-99-99')",
    "SELECT id FROM range(3) WHERE id / 0 = 1",
    "SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 'x' PRECEDING AND CURRENT ROW) FROM range(2)",
]


def test_real_errors_are_short_and_without_java(db: headwater.Database) -> None:
    for statement in STATEMENTS:
        with pytest.raises(headwater.Error) as caught:
            db.sql(statement)
        shown = str(caught.value)
        assert caught.value.sqlstate not in ("XX000", "58000"), statement
        assert len(caught.value.message) < 240, statement
        assert caught.value.message[:1] == caught.value.message[:1].lower(), statement
        for word in ("\tat ", "org.apache", "java.", "py4j", "SQLSTATE", "== SQL", "spark.sql."):
            assert word not in shown, f"{word!r} in the error of {statement}: {shown}"
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
