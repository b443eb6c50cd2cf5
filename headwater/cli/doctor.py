"""`headwater doctor`: runs all checks, prints what they found and what to do.

Checks are small functions that return a `Finding`; a check that fails to run is a finding too.
The exit code is 0 when there is no problem; warnings are no problem.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headwater.cli import check_environment, check_folder, check_machine, check_software
from headwater.cli.finding import Finding, problem
from headwater.errors import Error
from headwater.storage.folder import LOCAL_HINT
from headwater.storage.local_path import local_path

Check = Callable[[], Finding]
SIGNS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "bold red")}
PLAIN_WIDTH = 200
"""Lines that go to a file or a pipe are not broken at the width of some terminal."""


def checks(path: str | None, read_all: bool = False) -> list[tuple[str, Check]]:
    """All checks with their names, in the order in which they are shown."""
    software: list[tuple[str, Check]] = [("Python", check_software.python)]
    for name, wanted in check_software.PACKAGES.items():
        software.append((name, partial(check_software.package, name, wanted)))
    software += [
        ("sqlglot build", check_software.compiled_sqlglot),
        ("Java", check_software.java),
        ("class cache", check_software.class_cache),
        ("SPARK_HOME", check_environment.other_spark),
        ("PYSPARK_PYTHON", check_environment.spark_python),
    ]
    machine: list[tuple[str, Check]] = [
        ("memory", check_machine.memory),
        ("shared memory", check_machine.shared_memory),
        ("temporary folder", check_machine.temporary_folder),
        ("open files", check_machine.descriptors),
        ("threads", check_machine.threads),
        ("loopback", check_machine.loopback),
        ("host name", check_machine.hostname),
        ("clock", check_machine.clock),
        ("text", check_environment.encoding),
        ("proxy", check_environment.proxies),
        ("ports", check_environment.ports),
    ]
    return [*software, *machine, *folder_checks(path, read_all)]


def folder_checks(path: str | None, read_all: bool = False) -> list[tuple[str, Check]]:
    """Checks of the data folder; of the working folder's disk if none was named."""
    try:
        folder = local_path(path or ".", "a data folder", LOCAL_HINT).expanduser()
    except Error as error:
        elsewhere = problem("data folder", error.message, error.hint or "")
        return [("data folder", lambda: elsewhere)]
    own: list[tuple[str, Check]] = [
        ("data folder", partial(check_folder.ownership, folder)),
        ("files", partial(check_folder.files, folder, read_all)),
        ("put aside", partial(check_folder.put_aside, folder)),
        ("in use", partial(check_folder.opened_by, folder)),
        ("times", partial(check_folder.times, folder)),
    ]
    disk: list[tuple[str, Check]] = [
        ("disk space", partial(check_folder.disk_space, folder)),
        ("disk speed", partial(check_folder.disk_speed, folder)),
        ("file locks", partial(check_folder.file_locks, folder)),
    ]
    return disk if path is None else own + disk


def examine(listed: Sequence[tuple[str, Check]]) -> Iterator[Finding]:
    """Runs the checks; one that breaks is reported and the others go on."""
    for name, check in listed:
        try:
            yield check()
        except Exception as error:
            text = f"could not be checked: {type(error).__name__}: {error}"
            yield problem(name, text, "please report this")


def main(path: str | None = None, as_json: bool = False, read_all: bool = False) -> int:
    """Runs `headwater doctor`; the exit code."""
    findings = list(examine(checks(path, read_all)))
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        console = Console(highlight=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
        unicode = (sys.stdout.encoding or "").lower().startswith("utf")
        console.print(drawn(findings, unicode))
        console.print(summary(findings))
    return 1 if any(finding.status == "problem" for finding in findings) else 0


def drawn(findings: Sequence[Finding], unicode: bool = True) -> Table:
    """The findings as a table; advice stands under what it is about."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        sign, style = SIGNS[finding.status]
        if not unicode:
            sign = {"✓": "ok", "✗": "x"}.get(sign, sign)
        text = Text(finding.text)
        if finding.advice:
            text.append(f"\n{'→' if unicode else '->'} {finding.advice}", "cyan")
        table.add_row(Text(sign, style), Text(finding.name, "bold"), text)
    return table


def summary(findings: Sequence[Finding]) -> Text:
    """One line at the end."""
    problems = sum(finding.status == "problem" for finding in findings)
    warnings = sum(finding.status == "warning" for finding in findings)
    counted = [
        f"{count} {word}{'' if count == 1 else 's'}"
        for count, word in ((problems, "problem"), (warnings, "warning"))
        if count
    ]
    if problems:
        return Text(f"\n{' and '.join(counted)}", "bold red")
    if warnings:
        return Text(f"\nHeadwater can run here; {counted[0]}", "yellow")
    return Text("\nall is well", "green")
