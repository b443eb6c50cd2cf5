"""Try policies on one's own trace: `python -m benchmarks.upstream.own_trace FILE --cost-ms 5`.

The file is CSV with the columns time (seconds) and key, in order of time.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import report
from benchmarks.upstream.simulator import run_rows
from benchmarks.upstream.traces import Trace, from_file

POLICIES = ("append", "shedding", "fifo", "inplace", "linecutting")


def main(arguments: list[str] | None = None) -> int:
    """Simulates each policy and prints what it would have meant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--cost-ms", type=float, required=True, help="what processing a row takes")
    given = parser.parse_args(arguments)
    trace, names = from_file(given.file)
    cost = max(1, round(given.cost_ms * 1000))
    title = f"{len(trace):,} rows of {len(names):,} keys, {given.cost_ms:g} ms a row"
    columns = ("policy", "application staleness", "queue staleness", "results", "skipped rows")
    report.table(title, columns, rows(trace, cost))
    return 0


def rows(trace: Trace, cost: int) -> list[tuple[str, str, str, int, int]]:
    """One row for each policy, staleness in milliseconds."""
    found = []
    for policy in POLICIES:
        outcome = run_rows(trace, policy, cost, len(trace))
        application, queue = outcome.application_staleness / 1000, outcome.queue_staleness / 1000
        figures = (f"{application:.1f} ms", f"{queue:.1f} ms", outcome.results, outcome.skipped)
        found.append((policy, *figures))
    return found


if __name__ == "__main__":
    raise SystemExit(main())
