"""Reads `rules/*.sql`: pairs of a query and its plan in the form of `compact`.

    -- show types                          what the plan shows besides (optional)
    SELECT sum(v) FROM s [LANDMARK] SAMPLE INTERVAL 1 SECOND;
    fold 0: aggregate of s [landmark] | sum(v) | gives _a0 AS sum(v)
    fold 0 by operators gives BIGINT

A pair ends at an empty line. `python -m tests.plan.pairs FILE…` puts the plan in the place of a line `?`, to
be read and judged before it is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.plan.compact import plan_lines

FOLDER = Path(__file__).parent / "rules"


@dataclass(frozen=True)
class Pair:
    """A query, what its plan is to show, and the plan."""

    place: str
    show: str
    query: str
    plan: list[str]


def read_pairs(path: Path) -> Iterator[Pair]:
    """The pairs of a file."""
    line = 1
    for part in path.read_text().split("\n\n"):
        comments = [one for one in part.splitlines() if one.startswith("--")]
        rest = "\n".join(one for one in part.splitlines() if not one.startswith("--"))
        query, end, plan = rest.partition(";\n")
        if end:
            show = " ".join(c for c in comments if c.startswith("-- show "))
            yield Pair(f"{path.stem}:{line}", show, query.strip(), plan.strip().splitlines())
        line += part.count("\n") + 2


def all_pairs() -> list[Pair]:
    """The pairs of all files."""
    return [pair for path in sorted(FOLDER.glob("*.sql")) for pair in read_pairs(path)]


def fill(path: Path) -> None:
    """Puts plans in the place of lines `?`."""
    text = path.read_text()
    for pair in read_pairs(path):
        if pair.plan == ["?"]:
            made = "\n".join(plan_lines(pair.query, pair.show))
            text = text.replace(f"{pair.query};\n?", f"{pair.query};\n{made}", 1)
    path.write_text(text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        fill(Path(name))
