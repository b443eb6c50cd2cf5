"""Compares the answers of a run with those of the oracle, and tells how long they took.

Answers are compared as multisets, exactly. Times are seconds from the arrival of a report to the
moment when its answer could be read; each answer has one, or the run did not measure what it claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.harness.linearroad.oracle import Answers, Row

OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "tolls": ("vid", "time", "lav", "toll"),
    "alerts": ("vid", "time", "seg"),
    "balances": ("vid", "time", "qid", "balance"),
    "expenditures": ("vid", "time", "qid", "day", "xway", "toll"),
}
KEYS = {"tolls": 2, "alerts": 2, "balances": 3, "expenditures": 3}  # columns that name an answer
DEADLINE_S = 5.0
SHOWN = 10  # differences of each output that are printed


@dataclass(frozen=True)
class Difference:
    """One answer that is not as it should be; None stands for no answer."""

    output: str
    expected: Row | None
    found: Row | None

    def __str__(self) -> str:
        names = OUTPUTS[self.output]
        if self.expected is None:
            return f"{self.output}: not expected: {_named(names, self.found)}"
        if self.found is None:
            return f"{self.output}: missing: {_named(names, self.expected)}"
        key = KEYS[self.output]
        pairs = zip(names[key:], self.expected[key:], self.found[key:], strict=True)
        wrong = ", ".join(f"{n} is {f}, not {e}" for n, e, f in pairs if e != f)
        return f"{self.output}: {_named(names[:key], self.expected)}: {wrong}"


@dataclass(frozen=True)
class Times:
    """Response times of one output."""

    count: int
    average_s: float
    worst_s: float
    late_share: float  # of the answers came after the deadline
    untimed: int = 0  # answers without a time, or times without an answer
    deadline_s: float = DEADLINE_S

    def __str__(self) -> str:
        lost = f", {self.untimed} without a time" if self.untimed else ""
        return (
            f"{self.count} answers, {self.average_s:.3f} s on average, {self.worst_s:.3f} s at worst, "
            f"{self.late_share:.3%} over {self.deadline_s:.0f} s{lost}"
        )


@dataclass(frozen=True)
class Verdict:
    """What came of a comparison."""

    counts: Mapping[str, int]
    differences: Mapping[str, Sequence[Difference]]
    times: Mapping[str, Times] = field(default_factory=dict)

    @property
    def difference_count(self) -> int:
        """Over all outputs; 0 is a pass."""
        return sum(map(len, self.differences.values()))

    @property
    def in_time(self) -> bool:
        """Whether every answer was timed, and came before the deadline."""
        return bool(self.times) and not any(t.late_share or t.untimed for t in self.times.values())

    def __str__(self) -> str:
        lines = []
        for output, count in self.counts.items():
            wrong = self.differences[output]
            lines.append(f"{output}: {count} expected, {len(wrong)} differences")
            if output in self.times:
                lines.append(f"  {self.times[output]}")
            lines += [f"  {difference}" for difference in wrong[:SHOWN]]
            if len(wrong) > SHOWN:
                lines.append(f"  … and {len(wrong) - SHOWN} more")
        return "\n".join(lines)


def compare(
    expected: Answers,
    found: Answers,
    times: Mapping[str, Sequence[float]] | None = None,
    deadline_s: float = DEADLINE_S,
) -> Verdict:
    """The verdict on a run; times are those of the answers found, by output."""
    counts = {output: len(getattr(expected, output)) for output in OUTPUTS}
    wrong = {o: differences(o, getattr(expected, o), getattr(found, o)) for o in OUTPUTS}
    measured = {}
    for output in OUTPUTS if times is not None else ():
        seconds = (times or {}).get(output, ())
        untimed = abs(len(getattr(found, output)) - len(seconds))
        measured[output] = replace(summary(seconds, deadline_s), untimed=untimed)
    return Verdict(counts, wrong, measured)


def differences(output: str, expected: Iterable[Row], found: Iterable[Row]) -> list[Difference]:
    """Answers that are missing, too many or wrong; wrong ones are paired by their key."""
    due, came = Counter(map(tuple, expected)), Counter(map(tuple, found))
    missing, extra = (
        sorted((due - came).elements(), key=_order),
        sorted((came - due).elements(), key=_order),
    )
    key = KEYS[output]
    waiting: dict[Row, list[Row]] = {}
    for row in extra:
        waiting.setdefault(row[:key], []).append(row)
    result = []
    for row in missing:
        rivals = waiting.get(row[:key])
        result.append(Difference(output, row, rivals.pop(0) if rivals else None))
    left = [row for rows in waiting.values() for row in rows]
    return result + [Difference(output, None, row) for row in left]


def summary(seconds: Sequence[float], deadline_s: float = DEADLINE_S) -> Times:
    """Response times in short."""
    assert all(value >= 0 for value in seconds), "an answer before its report"
    count = len(seconds)
    if not count:
        return Times(0, 0.0, 0.0, 0.0, deadline_s=deadline_s)
    late = sum(1 for value in seconds if value > deadline_s) / count
    return Times(count, sum(seconds) / count, max(seconds), late, deadline_s=deadline_s)


def _order(row: Row) -> tuple[tuple[bool, int], ...]:
    return tuple((value is None, value or 0) for value in row)


def _named(names: Sequence[str], row: Row | None) -> str:
    return ", ".join(f"{n} {v}" for n, v in zip(names, row or (), strict=False))
