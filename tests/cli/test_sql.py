"""`headwater sql` without a terminal: -c, -f, standard input, exit codes."""

from __future__ import annotations

import io
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.sql import SqlOptions, greeting, main, parsed_settings
from headwater.errors import SettingError, StorageError
from tests.harness.patience import PATIENCE_S


@pytest.fixture
def run(database: Any, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs with options; the exit code, stdout and stderr."""

    def go(**options: Any) -> tuple[int, str, str]:
        def connect(path: str, **more: Any) -> Any:
            database.connected = (path, more)
            return database

        code = main(SqlOptions(**options), connect)
        captured = capsys.readouterr()
        assert database.closed
        return code, captured.out, captured.err

    return go


def test_commands(run: Any, database: Any) -> None:
    code, out, err = run(commands=["select 1; insert", "create"], path="p", master="local[1]")
    assert (code, err) == (0, "")
    assert out == " n\n---\n 1\n(1 row)\nINSERT 3\nCREATE TABLE\n"
    assert database.connected == ("p", {"master": "local[1]", "settings": {}})


def test_quiet_and_data_formats_write_data_only(run: Any) -> None:
    assert run(commands=["insert; select 1"], quiet=True)[1] == " n\n---\n 1\n"
    assert run(commands=["insert; select 1 null; select 2"], format="csv")[1] == "n\n1\n\n\nn\n2\n"
    assert run(commands=["select 1", "select 2"], format="json")[1] == '{"n": 1}\n{"n": 2}\n'


def test_plans_are_trees_for_people_and_lines_for_programs(run: Any) -> None:
    """The result of EXPLAIN stays what it is; only the table format draws it."""
    assert run(commands=["explain x"])[1] == "plain scan\n`- columns: id\n"
    assert run(commands=["explain x"], format="csv")[1] == "plan\nplain scan\ncolumns: id\n"
    assert run(commands=["\\d orders"], format="csv")[1] == "seen\nDESCRIBE orders\n"


def test_stops_at_the_first_error(run: Any, database: Any) -> None:
    code, out, err = run(commands=["select 1; bad; select 2", "select 3"], format="json")
    assert code == 1
    assert out == '{"n": 1}\n'
    assert err.startswith("error: no such thing (42704)\nline 1: ")
    assert "\x1b" not in err
    assert "select 3" not in database.statements


def test_files_come_first_and_are_named_in_errors(run: Any, tmp_path: Path, database: Any) -> None:
    script = tmp_path / "a.sql"
    script.write_text("\ufeffselect 1;\n\\format json\nselect 2;\nbad;\n", encoding="utf-8")
    code, out, err = run(files=[str(script)], commands=["select 3"], quiet=True)
    assert code == 1
    assert out.endswith('{"n": 2}\n')
    assert f"in {script}" in err
    assert "line 4: bad;" in err


def test_includes(run: Any, tmp_path: Path) -> None:
    (tmp_path / "inner.sql").write_text("select 7;")
    (tmp_path / "loop.sql").write_text(f"\\i {tmp_path}/loop.sql\n")
    assert '{"n": 7}' in run(commands=[f"\\i {tmp_path}/inner.sql"], format="json")[1]
    code, _, err = run(commands=[f"\\i {tmp_path}/loop.sql"])
    assert code == 1
    assert "more than 16 deep" in err


def test_files_that_cannot_be_read(run: Any, tmp_path: Path) -> None:
    code, _, err = run(files=[str(tmp_path / "none.sql")])
    assert code == 1
    assert "(58P01)" in err
    (tmp_path / "latin.sql").write_bytes(b"select '\xff';")
    assert "not UTF-8" in run(files=[str(tmp_path / "latin.sql")])[2]


def test_standard_input(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("select 1;\n\\q\nselect 2;\n"))
    assert run(format="json") == (0, '{"n": 1}\n', "")
    monkeypatch.setattr("sys.stdin", io.StringIO("select 5"))
    assert run(files=["-"], format="json") == (0, '{"n": 5}\n', "")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run() == (0, "", "")


def test_bugs_are_errors_too(run: Any) -> None:
    code, _, err = run(commands=["bug"])
    assert code == 1
    assert err.startswith("internal error: ZeroDivisionError: oops")


def test_ctrl_c_in_a_script(run: Any, database: Any) -> None:
    def press() -> None:
        database.started.wait(PATIENCE_S)
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    code, _, err = run(commands=["wait; select 1"])
    pressing.join()
    assert (code, err) == (130, "cancelled\n")
    assert "select 1" not in database.statements


def test_a_database_that_does_not_open(capsys: pytest.CaptureFixture[str]) -> None:
    def connect(*_args: Any, **_more: Any) -> Any:
        raise StorageError("the folder is open in process 7", hint="close it there")

    assert main(SqlOptions(commands=["select 1"]), connect) == 1
    assert "process 7" in capsys.readouterr().err


def test_settings() -> None:
    assert parsed_settings(["a=1", "spark.x = y=z"]) == {"a": "1", "spark.x": "y=z"}
    with pytest.raises(SettingError, match="name=value"):
        parsed_settings(["a"])


def test_greeting_says_what_is_kept() -> None:
    assert "nothing is kept" in greeting(":memory:").plain
    assert "./data" in greeting("./data").plain
    assert "nothing is kept" not in greeting("./data").plain
