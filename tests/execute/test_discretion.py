"""Errors and paths as those see them who are no admins."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import BindError, Error, KernelError, StorageError
from headwater.execute.discretion import COLUMNS, HIDDEN, told, without_paths
from headwater.execute.system_tables import NAMES
from headwater.sql.caller import Caller, acting_for, current

FOLDER = Path("/srv/data/hw")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("cannot write /srv/data/hw/wal/1.log: full", "cannot write wal/1.log: full"),
        (
            "[file:/srv/data/hw/tables/t-1/a.parquet, file:///dev/shm/x/y]",
            "[tables/t-1/a.parquet, …]",
        ),
        ("csv:/srv/in/x", "csv:…"),
        ("/etc/passwd", HIDDEN),
        ("/own/path is no number", "/own/path is no number"),
        ("km/h, a / b, 1/2/3, 10:00/11:00, x//y", "km/h, a / b, 1/2/3, 10:00/11:00, x//y"),
    ],
)
def test_paths(words: str, shown: str) -> None:
    """Those of the folder become relative, others go; what the statement says itself stays."""
    assert without_paths(words, FOLDER, "SELECT '/own/path'") == shown


def test_an_admin_sees_the_error_itself() -> None:
    """And so does a program that opened the folder."""
    error = StorageError("cannot read /srv/data/hw/x/y")
    assert told(error, FOLDER, "") is error


def test_others_get_a_copy_without_paths() -> None:
    """The error may be kept by a query, where an admin looks for it later."""
    error = StorageError("cannot read /srv/data/hw/x/y", detail="/etc/a/b", hint="look at /etc/a/b")
    with acting_for(Caller("reader")):
        shown = told(error, FOLDER, "")
    assert (shown.message, shown.detail, shown.hint) == ("cannot read x/y", "…", "look at …")
    assert (type(shown), shown.sqlstate, str(shown.args[0])) == (
        StorageError,
        "58030",
        "cannot read x/y",
    )
    assert error.message == "cannot read /srv/data/hw/x/y"
    assert current() == Caller()


def test_errors_without_paths_are_not_touched() -> None:
    """Most errors are about the statement."""
    error = BindError("column x does not exist", hint="did you mean y?")
    with acting_for(Caller("writer")):
        assert told(error, FOLDER, "") is error


@pytest.mark.parametrize("is_foreign", [True, False])
def test_words_of_java_go_to_the_log(is_foreign: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The message of one that is foreign, and the details of any error of Spark's process."""
    error = KernelError(
        "it broke", detail="org.xml.sax.SAXParseException: secret", sqlstate="58000"
    )
    error.foreign = is_foreign
    with acting_for(Caller("reader")):
        shown: Error = told(error, FOLDER, "")
    assert "secret" not in str(shown)
    assert shown.sqlstate == "58000"
    (record,) = caplog.records
    assert "secret" in record.getMessage()
    assert record.getMessage().split()[1] in (shown.hint or "")


def test_hidden_columns_are_columns_of_system_tables() -> None:
    """A column that is renamed must not be shown for that."""
    from headwater.execute import system_tables

    for table, columns in COLUMNS.items():
        assert table in NAMES
        assert set(columns) <= set(getattr(system_tables, table.upper()).names)
