"""The queries of a benchmark, read from a file: in Spark's words, and in DuckDB's where they are others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import sqlglot
from sqlglot.errors import ErrorLevel

HEAD = re.compile(r"-- (q\d+): ")
JUDGE = "-- in DuckDB\n"


@dataclass(frozen=True)
class WorkloadQuery:
    """One query; `judge` is its text for DuckDB, None if sqlglot's translation says the same."""

    name: str
    text: str
    judge: str | None

    def in_duckdb(self) -> str:
        """The text for DuckDB."""
        if self.judge is not None:
            return self.judge
        (text,) = sqlglot.transpile(
            self.text, read="spark", write="duckdb", unsupported_level=ErrorLevel.RAISE
        )
        return text


def read_queries(name: str, folder: Path = Path(__file__).parent) -> list[WorkloadQuery]:
    """The queries of a file, of this folder unless another is named."""
    _, *parts = HEAD.split((folder / f"{name}.sql").read_text())
    found = []
    for query, body in zip(parts[::2], parts[1::2], strict=True):
        text, _, judge = body.partition("\n")[2].partition(JUDGE)
        found.append(WorkloadQuery(query, text.strip(), judge.strip() or None))
    return found
