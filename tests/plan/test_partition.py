"""Which circuits can be split, and by what: pairs in `parts/*.sql`.

A pair is a query and the tree of its first part of two, with what is done once above it, or the reason why it
stays whole; `python -m tests.plan.test_partition FILE…` puts that in the place of a line `?`, to be read and
judged before it is kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headwater.compile.circuit import CircuitSpec, make_circuit
from headwater.compile.split_circuit import split_circuit
from headwater.expression.terms import PLAIN
from headwater.fold.share import Share
from headwater.plan.relational import partition
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.partition import NotSplit
from headwater.sql.statements.query import make_query
from tests.plan.catalog import STREAMS, FixedTables
from tests.plan.pairs import Pair, read_pairs

FOLDER = Path(__file__).parent / "parts"
PAIRS = [pair for path in sorted(FOLDER.glob("*.sql")) for pair in read_pairs(path)]


def spec_of(query: str) -> CircuitSpec:
    """The circuit of a query."""
    found = make_circuit(make_query(query).tree, FixedTables(), PLAIN)
    assert not isinstance(found, NotKept), found.reason
    return found


def part_lines(query: str) -> list[str]:
    """The tree of a part, or why there is none."""
    found = split_circuit(spec_of(query), STREAMS)
    if isinstance(found, NotSplit):
        return [f"whole: {found}"]
    key = found.hashed_in([column.name for column in found.whole.shown])
    shown = [found.whole.shown[place].shown for place in key or ()]
    return [*found.lines(Share(0, 2)), f"found by: {', '.join(shown) or 'nothing'}"]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.place)
def test_pair(pair: Pair) -> None:
    assert part_lines(pair.query) == [line.rstrip() for line in pair.plan]


def test_there_are_enough_pairs() -> None:
    assert len(PAIRS) >= 30


def test_it_does_not_look_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound says when a tree counts as one that cannot be split."""
    query = "SELECT s.k, count(*) AS n FROM s JOIN r ON s.k = r.k GROUP BY s.k"
    assert not isinstance(split_circuit(spec_of(query), STREAMS), NotSplit)
    monkeypatch.setattr(partition, "MOST_TRIES", 2)
    assert str(split_circuit(spec_of(query), STREAMS)) == "it has too many keys to choose from"


def fill(path: Path) -> None:
    """Puts trees in the place of lines `?`."""
    text = path.read_text()
    for pair in read_pairs(path):
        if pair.plan == ["?"]:
            made = "\n".join(part_lines(pair.query))
            text = text.replace(f"{pair.query};\n?", f"{pair.query};\n{made}", 1)
    path.write_text(text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        fill(Path(name))
