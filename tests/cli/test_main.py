"""The `headwater` command: what it offers, and that it answers at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from headwater._version import __version__
from headwater.cli import bench as bench_command
from headwater.cli import doctor, sql
from headwater.cli.main import Format, app, run
from headwater.cli.output import FORMATS
from headwater.errors import Error, KernelError
from tests.harness.patience import PATIENCE_S


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def test_version() -> None:
    assert invoke("version").output == f"headwater {__version__}\n"
    assert invoke("--version").output == f"headwater {__version__}\n"


def test_version_loads_nothing_heavy() -> None:
    code = (
        "import sys; from headwater.cli.main import run\n"
        "try: run()\n"
        "finally: print(sorted({'pyspark', 'pyarrow', 'sqlglot', 'prompt_toolkit', 'deltalake',"
        " 'numpy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "version"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"headwater {__version__}\n[]\n"


def test_python_m_is_the_command() -> None:
    """`python -m headwater` does as `headwater`, where the scripts of an environment are not on the path."""
    done = subprocess.run(
        [sys.executable, "-m", "headwater", "version"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (0, f"headwater {__version__}\n"), done.stderr


def test_help_names_every_command() -> None:
    output = invoke("--help").output
    for name in ("sql", "serve", "demo", "doctor", "bench", "version"):
        assert name in output


def test_formats_are_those_of_the_output() -> None:
    assert [format_.value for format_ in Format] == list(FORMATS)


def test_sql_options(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[sql.SqlOptions] = []
    monkeypatch.setattr(sql, "main", lambda options: seen.append(options) or 3)
    arguments = ["d", "-c", "a", "-c", "b", "-f", "f", "--format", "csv", "--master", "local[1]"]
    assert invoke("sql", *arguments, "--set", "x=1", "--quiet").exit_code == 3
    expected = sql.SqlOptions("d", ["a", "b"], ["f"], "csv", "local[1]", {"x": "1"}, True)
    assert seen == [expected]
    invoke("sql")
    assert seen[1] == sql.SqlOptions()


def test_wrong_options() -> None:
    assert invoke("sql", "--format", "xml").exit_code == 2
    assert invoke("nothing").exit_code == 2


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "main", lambda *given: 1 if given == ("p", True, False) else 2 if given[2] else 0
    )
    assert invoke("doctor", "p", "--json").exit_code == 1
    assert invoke("doctor").exit_code == 0
    assert invoke("doctor", "p", "--read-all").exit_code == 2


@pytest.mark.parametrize(
    ("name", "part", "hint"),
    [("linearroad", "peek", "parts: whole, peak, questions"), ("queue", "peak", "without --part"),
     (None, "peak", "without --part")],
)  # fmt: skip
def test_parts_of_a_benchmark(name: str | None, part: str, hint: str) -> None:
    """A part that is not there is an error that names those there are, before anything runs."""
    with pytest.raises(Error, match=f"no part {part}") as caught:
        bench_command.main(name, True, [part])
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_a_benchmark_that_is_stopped_names_those_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is still to run is said, with the one that was running; what was done before is kept."""
    ran: list[str] = []

    def one(name: str, *_: object) -> int:
        ran.append(name)
        if name == "reads":
            os.kill(os.getpid(), signal.SIGTERM)
        return 0

    monkeypatch.setattr(bench_command, "names", lambda: ["queue", "reads", "write"])
    monkeypatch.setattr(bench_command, "_one", one)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        bench_command.main(None, True)
    assert ran == ["queue", "reads"]
    assert "stopped in reads; still to run: reads, write" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is before


def test_demo_and_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []
    demo, tour, bench = ModuleType("demo"), ModuleType("tour"), ModuleType("bench")
    demo.main = lambda **options: calls.append(tuple(options.values()))  # type: ignore[attr-defined]
    tour.main = lambda **options: calls.append(tuple(options.items()))  # type: ignore[attr-defined]
    bench.main = lambda *given: calls.append(given) or 4  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "headwater.examples.linearroad.demo.run", demo)
    monkeypatch.setitem(sys.modules, "headwater.cli.tour", tour)
    monkeypatch.setitem(sys.modules, "headwater.cli.bench", bench)
    assert invoke("demo").exit_code == 0
    more = ["--keep-running", "--master", "local[1]", "--no-browser", "--port", "8081"]
    assert invoke("demo", *more).exit_code == 0
    assert invoke("demo", "--seconds", "0").exit_code == 2
    assert invoke("demo", "--tour").exit_code == 0
    assert invoke("bench", "start", "--quick").exit_code == 4
    assert invoke("bench", "linearroad", "--part", "peak", "--part", "whole").exit_code == 4
    assert invoke("bench").exit_code == 4  # `make bench`: all of them
    assert calls == [
        (60.0, None, True, None),
        (None, "local[1]", False, 8081),
        (("master", None),),
        ("start", True, ()),
        ("linearroad", False, ["peak", "whole"]),
        (None, False, ()),
    ]


def test_errors_are_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(path: str | None, as_json: bool, read_all: bool) -> int:
        raise KernelError("no Java", hint="get one")

    monkeypatch.setattr(doctor, "main", fail)
    monkeypatch.setattr(sys, "argv", ["headwater", "doctor"])
    with pytest.raises(SystemExit) as leaving:
        run()
    assert leaving.value.code == 1
    assert capsys.readouterr().err == "error: no Java (58000)\nhint: get one\n"
    monkeypatch.setattr(sys, "argv", ["headwater", "sql", "--set", "x"])
    with pytest.raises(SystemExit):
        run()
    assert "--set takes name=value" in capsys.readouterr().err
