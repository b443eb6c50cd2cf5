"""What every benchmark prints and keeps: one table on the screen, one JSON file in `reports/`."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path("reports")
_printed: list[dict[str, Any]] = []  # the tables since the last keep_tables()


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Median, best and worst."""
    return {"median": statistics.median(seconds), "best": min(seconds), "worst": max(seconds)}


def commit() -> str | None:
    """The commit that is measured."""
    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() or None


def kept(name: str) -> Mapping[str, Any]:
    """The figures that were kept last, if they are of this commit; else none."""
    path = FOLDER / f"{name}.json"
    found: Mapping[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found if found.get("commit") == commit() else {}


def keep(name: str, figures: Mapping[str, Any]) -> Path:
    """Writes the figures with the commit and the machine they belong to."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    whole = {
        "benchmark": name,
        "commit": commit(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        **figures,
    }
    path.write_text(json.dumps(whole, indent=2) + "\n")
    return path


def keep_tables(name: str, seconds: float) -> None:
    """Adds the tables printed since the last call, and the time it took, to a benchmark's figures."""
    path = FOLDER / f"{name}.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps({**whole, "tables": _printed, "took_s": seconds}, indent=2) + "\n")
    _printed.clear()


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints one table."""
    cells = [[str(cell) for cell in row] for row in rows]
    _printed.append({"title": title, "columns": list(columns), "rows": cells})
    texts = [[str(c) for c in columns], *[[str(v) for v in row] for row in rows]]
    widths = [max(len(row[i]) for row in texts) for i in range(len(columns))]
    print(f"\n{title}")
    for number, row in enumerate(texts):
        print("  " + "  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            print("  " + "  ".join("-" * w for w in widths))


def voids(figures: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every row whose answers differ from ours: where it stands, and how they differ."""
    if isinstance(figures, Mapping):
        if figures.get("void") is not None:
            yield name, figures["void"]
        for key, value in figures.items():
            yield from voids(value, f"{name} {key}".strip())
    elif isinstance(figures, list):
        for place, value in enumerate(figures):
            yield from voids(value, f"{name} {place}")
