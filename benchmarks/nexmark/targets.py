"""The targets of B13 against what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.targets import Target

Figures = Mapping[str, Any]
AHEAD = 18.0  # of 23
DUCK = "DuckDB re-evaluation"
PEERS = ("Flink SQL", "Pathway")
OURS_ALONE = "Headwater, read at the end"


def targets(figures: Figures) -> Iterator[Target]:
    """All of them, from the figures of one run."""
    for place, queries in [*figures["alone"].items(), *figures["together"].items()]:
        if not place.endswith("chunks of 1,000") or place.startswith("10,000,000"):
            continue
        ratios = [ratio(systems) for systems in queries.values()]
        known = [found for found in ratios if found is not None]
        whole = len(known) == len(ratios)
        what = "all 23 together" if len(queries) == 1 else "the least of 23"
        yield Target(f"B13 {what}, {place}: times DuckDB", min(known) if whole else None, 10.0)
    peers = figures["peers"]
    if not peers:
        return
    for name in PEERS:
        if "missing" in peers[name]:
            yield Target(f"B13 queries ahead of {name}, of 23", None, AHEAD)
            continue
        ahead = [times(peers, name, query) for query in peers[name] if query != "together"]
        known = [found for found in ahead if found is not None]
        of = f"{len(known)} that both answered"
        most = min(AHEAD, float(round(AHEAD / 23 * len(known))))
        reached = float(sum(found > 1 for found in known))
        yield Target(f"B13 queries ahead of {name}, of {of}", reached if known else None, most)
        yield Target(f"B13 together: times {name}", times(peers, name, "together"), 1.0)


def ratio(systems: Figures) -> float | None:
    """Ours over DuckDB."""
    theirs = systems.get(DUCK)
    if theirs is None or theirs.get("void") is not None:
        return None
    return float(theirs["ratio"])


def times(peers: Figures, name: str, query: str) -> float | None:
    """Ours over a peer that pushes changes; None where one of them is missing or void."""
    theirs = peers[name].get(query, {"missing": ""})
    mine = peers[OURS_ALONE].get(f"all of {name}" if query == "together" else query)
    if mine is None or "missing" in theirs or theirs.get("void") is not None:
        return None
    return float(mine["per_s"] / theirs["per_s"])
