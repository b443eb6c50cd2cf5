"""SQL behaviour as data: reads and checks `tests/cases/*.sql`.

A file holds cases, each with a fresh database. A case is blocks of statements; a block ends at an
empty line or at its expectation, which is about the block's last statement:

    -- case: rows come back                 begins a case
    -- tier: operators                      this block must not use Spark (`spark`: must use it)
    CREATE TABLE t (a INT, s STRING);
    INSERT INTO t VALUES (2, 'x'), (1, NULL);
    SELECT * FROM t;
    --: INT, STRING                         the types of the columns (optional)
    --| 2 | 'x'                             the rows in order; `-- sorted` before the block: as a bag
    --| 1 | NULL

    DELETE FROM t WHERE a = 1;
    --# DELETE 1                            the tag and the row count

    SELECT b FROM t;
    --! 42703 1:8 cannot be resolved ~ did you mean
                                            SQLSTATE, line:column (optional), words of the
                                            message, after `~` words of the hint (optional)
    SELECT a FROM t WHERE FALSE;
    --| (no rows)

Values are written as SQL literals: 'text', 1.50BD for decimals, X'00ff', [1, NULL], {a: 1} for a
struct, {'k' -> 1} for a map; timestamps with +00:00 are instants. `python -m tests.harness.cases FILE…` puts
the answer in place of a line `--?`, to be read and judged before it is kept.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater
from headwater.sql.types import name_of


@dataclass
class Block:
    """Statements that run one after the other, and what the last one must answer."""

    line: int
    sql: str = ""
    sorted: bool = False
    tier: str | None = None
    expected: list[str] = field(default_factory=list)


@dataclass
class Case:
    """Blocks that share a database."""

    name: str
    blocks: list[Block] = field(default_factory=list)


def read_cases(path: Path) -> list[Case]:
    """The cases of a file."""
    cases: list[Case] = []
    block: Block | None = None
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if line.startswith("-- case: "):
            cases.append(Case(line.removeprefix("-- case: ").strip()))
            block = None
        elif not cases:
            continue
        elif re.match(r"--[|:#!?]", line):
            assert block is not None, f"{path}:{number}: an expectation without a statement"
            block.expected.append(line.rstrip())
        elif not line.strip():
            block = None
        else:
            if block is None or block.expected:
                block = Block(number)
                cases[-1].blocks.append(block)
            _add(block, line)
    return cases


def _add(block: Block, line: str) -> None:
    if line == "-- sorted":
        block.sorted = True
    elif line.startswith("-- tier: "):
        block.tier = line.removeprefix("-- tier: ").strip()
    elif block.sql or not line.startswith("-- "):
        block.sql += line + "\n"


HOST = re.compile(", in factory [0-9]+")  # of EXPLAIN: cases are the same wherever a query lives


def run_case(case: Case) -> list[tuple[Block, list[str]]]:
    """Runs a case; each block with what was answered, written as expectations are."""
    answers = []
    with headwater.connect(":memory:") as db:
        runs = CountedRuns(db)
        for block in case.blocks:
            runs.count = 0
            answers.append((block, answer(db, block)))
            used = "spark" if runs.count else "operators"
            if block.tier is not None and block.tier != used:
                answers[-1][1].append(f"-- ran {used}, not {block.tier}")
    return answers


class CountedRuns:
    """Counts how often a database asks Spark for something."""

    def __init__(self, db: headwater.Database) -> None:
        self.count = 0
        kernel = db._context.kernel
        started = kernel._started

        def counted(cancellation: Any) -> Any:
            self.count += 1
            return started(cancellation)

        kernel._started = counted  # type: ignore[method-assign]


def answer(db: headwater.Database, block: Block) -> list[str]:
    """What the database answers to a block, in the form of the block's expectation."""
    try:
        result = db.sql(block.sql)
    except headwater.Error as error:
        return [_error_line(error, block.expected)]
    if not block.expected:
        return []
    if block.expected[0].startswith("--#") or not result.has_rows:
        count = "" if result.row_count is None else f" {result.row_count}"
        return [f"--# {result.kind}{count}"]
    rows = [_row_line(row, result.schema) for row in result.rows()]
    lines = [HOST.sub("", row) for row in rows] or ["--| (no rows)"]
    if block.sorted:
        lines.sort()
        block.expected[:] = sorted(block.expected)  # "--:" sorts before "--|"
    if block.expected[0].startswith("--:"):
        lines.insert(0, "--: " + ", ".join(name_of(f.type) for f in result.schema))
    return lines


def _error_line(error: headwater.Error, expected: list[str]) -> str:
    """The error as an expectation line: the expected one itself where that is a match."""
    place = f" {error.place.line}:{error.place.column}" if error.place else ""
    found = f"--! {error.sqlstate}{place} {error.message} ~ {error.hint or ''}".rstrip(" ~")
    wanted = re.fullmatch(
        r"--! (\w{5})(?: (\d+:\d+))?(?: ([^~]*?))?(?: ~ (.*))?", expected[0] if expected else ""
    )
    if wanted is None:
        return found
    state, at, words, hint = wanted.groups()
    matches = (
        state == error.sqlstate
        and (at is None or at == place.strip())
        and (words or "") in error.message
        and (hint or "") in (error.hint or "")
    )
    return expected[0] if matches else found


def _row_line(row: tuple[Any, ...], schema: pa.Schema) -> str:
    cells = [written(value, f.type) for value, f in zip(row, schema, strict=True)]
    return "--| " + " | ".join(cells)


def written(value: Any, type_: pa.DataType | None = None) -> str:
    """A value as case files write it."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("\n", "\\n").replace("'", "''") + "'"
    if isinstance(value, Decimal):
        return f"{value:f}BD"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list) and type_ is not None and pa.types.is_map(type_):
        return "{" + ", ".join(f"{written(k)} -> {written(v)}" for k, v in value) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(written(v) for v in value) + "]"
    return str(value)


def fill(path: Path) -> None:
    """Puts the answers in place of the lines `--?` of a file."""
    lines = path.read_text().splitlines()
    for case in reversed(read_cases(path)):
        if not any("--?" in block.expected for block in case.blocks):
            continue
        for block, found in reversed(run_case(case)):
            if "--?" in block.expected:
                at = lines.index("--?", block.line - 1)
                lines[at : at + 1] = [line for line in found if not line.startswith("-- ran")]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        fill(Path(name))
