"""Scenarios by their seeds, to see a disagreement again: `python -m tests.harness.epochs 7` or `… 0 500`."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.harness.epochs.runner import run_seed

QUERIES = 6


def main(first: int, last: int) -> None:
    """Prints what disagrees and how often each construct was tried."""
    tried: Counter[str] = Counter()
    for seed in range(first, last):
        with tempfile.TemporaryDirectory() as folder:
            for problem in run_seed(seed, QUERIES, Path(folder) / "db", tried):
                print(f"seed {seed}: {problem}\n", flush=True)
        print(f"{seed} of {first} to {last - 1}", end="\r", file=sys.stderr, flush=True)
    print(tried.most_common())


if __name__ == "__main__":
    start = int(sys.argv[1])
    main(start, int(sys.argv[2]) if len(sys.argv) > 2 else start + 1)
