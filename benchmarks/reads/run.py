"""B14: a row comes, something is read: views, one key of a large view, a large result that hardly changes.

`views`: a table of a million rows; ten kinds of views are kept, and after each row one is read as a whole,
beside the same SELECT evaluated by Spark again and by DuckDB again. `point`: one row of a view of many
groups. `instants`: a query whose result has up to a million rows, of which one changes at each instant; what
an instant costs must not grow with the result. Answers are compared after the last row.

`--quick` takes about a minute, the full size an hour or less, most of it filling the large view.
`HEADWATER_READS_ROWS=n` has n rows stored, and 20 n groups; `--part` runs some of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from benchmarks import report
from benchmarks.reads import measure, plots, sizes, tell
from benchmarks.reads.sizes import Sizes
from benchmarks.reads.targets import targets

PARTS = {"views": measure.views, "point": measure.point, "instants": measure.instants}
Figures = dict[str, Any]


def main(quick: bool, parts: Sequence[str] = tuple(PARTS)) -> int:
    """Measures, prints and keeps the figures; 1 if two systems disagree."""
    return measured(sizes.of(quick), quick, parts)


def measured(given: Sizes, quick: bool, parts: Sequence[str] = tuple(PARTS)) -> int:
    """The same at any sizes."""
    found: Figures = {"quick": quick, "rows": given.rows, "parts_s": {}}
    found |= {part: {} for part in PARTS}
    before = report.kept("reads")
    if (before.get("quick"), before.get("rows")) == (quick, given.rows):
        found |= {name: before[name] for name in ("parts_s", *PARTS)}
    for part in parts:
        print(f"{part} …", flush=True)
        started = time.perf_counter()
        found[part] = PARTS[part](given)
        found["parts_s"][part] = round(time.perf_counter() - started, 1)
    found["targets"] = [target.row() for target in targets(found)]
    tell.everything(found)
    path = report.keep("reads", found)
    picture = plots.draw(found, path.with_suffix(".png"))
    print(f"\nkept in {path}, drawn in {picture or '(matplotlib is not installed)'}")
    return 1 if list(report.voids(found)) else 0
