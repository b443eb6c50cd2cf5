"""`GET /metrics`: numbers about the process and the database, in the text format of Prometheus.

Owns the names of metrics. They come from the system tables, so that SQL and Prometheus say the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater._version import __version__

if TYPE_CHECKING:
    from headwater.server.http.server import HttpServer

COUNTED = ("refused_connections", "dropped_logins", "statements", "rows_in", "rows_out")
# Of headwater.metrics; the others are gauges.
COUNTERS = {"wal.next_lsn", "wal.groups", "wire.accepted_connections"} | {
    f"{listener}.{name}" for listener in ("wire", "http") for name in COUNTED
}
BY_ROUTE = "http.requests"  # told apart by route and status here
QUERY_NUMBERS = {
    "results": ("counter", "results of a continuous query"),
    "waiting_rows": ("gauge", "rows that a continuous query has still to look at"),
    "response_ms": ("gauge", "mean time from a complete instant to its result"),
    "worst_response_ms": ("gauge", "longest time from a complete instant to its result"),
}
SOURCE_NUMBERS = {
    "row_count": ("counter", "rows that a source has brought"),
    "rows_per_second": ("gauge", "rows a second of a source"),
    "lag_s": ("gauge", "how far a source is behind"),
}


@dataclass(frozen=True)
class MetricSample:
    """One number: its metric, labels and value; `kind` and `meaning` are the metric's."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()
    kind: str = "gauge"
    meaning: str = ""


def collected(server: HttpServer) -> list[MetricSample]:
    """All numbers, as they are now."""
    found = [*_process(server), *_requests(server)]
    for row in _rows(server, "SELECT name, value FROM headwater.metrics"):
        if row["name"] != BY_ROUTE:
            found.append(_of_system_table(row["name"], row["value"]))
    found += _of_rows(server, "queries", QUERY_NUMBERS, "query")
    found += _of_rows(server, "sources", SOURCE_NUMBERS, "source")
    for row in _rows(server, "SELECT table_name, late_count FROM headwater.late_rows"):
        labels = (("table", row["table_name"]),)
        found.append(
            MetricSample(
                "headwater_late_rows_total", row["late_count"], labels, "counter", "late rows"
            )
        )
    return found


def _rows(server: HttpServer, text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = server.database.statement(text).arrow().to_pylist()
    return rows


def _of_system_table(name: str, value: int) -> MetricSample:
    """`table.t.unsealed_bytes` → headwater_table_unsealed_bytes{table="t"}."""
    kind, _, rest = name.partition(".")
    middle, _, last = rest.rpartition(".")
    metric = f"headwater_{kind}_{last or rest}"
    labels = ((kind, middle),) if middle else ()
    if name in COUNTERS:
        return MetricSample(f"{metric}_total", value, labels, "counter", f"{kind}.{last or rest}")
    return MetricSample(
        metric, value, labels, "gauge", f"{kind}.{last or rest} of headwater.metrics"
    )


def _of_rows(
    server: HttpServer, table: str, numbers: Mapping[str, tuple[str, str]], label: str
) -> Iterable[MetricSample]:
    for row in _rows(server, f"SELECT * FROM headwater.{table}"):
        labels = ((label, str(row["name"])),)
        yield MetricSample(
            f"headwater_{label}_up",
            int(row["state"] == "running"),
            labels,
            meaning=f"whether a {label} runs",
        )
        for column, (kind, meaning) in numbers.items():
            if row[column] is not None:
                ending = "_total" if kind == "counter" else ""
                name = f"headwater_{label}_{column}{ending}"
                yield MetricSample(name, row[column], labels, kind, meaning)


def _process(server: HttpServer) -> Iterable[MetricSample]:
    version = (("version", __version__),)
    yield MetricSample("headwater_info", 1, version, meaning="the version that runs")
    yield MetricSample(
        "headwater_uptime_seconds", round(time.time() - server.started_at, 3), meaning="since start"
    )
    yield MetricSample(
        "headwater_spark_ready", int(server.database.spark_ready), meaning="whether Spark runs"
    )
    restarts = server.database.spark_status.restarts
    yield MetricSample(
        "headwater_spark_restarts_total", restarts, kind="counter", meaning="Spark's starts anew"
    )
    resident = resident_bytes()
    if resident is not None:
        yield MetricSample(
            "process_resident_memory_bytes", resident, meaning="memory of the Python process"
        )


def resident_bytes() -> int | None:
    """The memory of this process; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _requests(server: HttpServer) -> Iterable[MetricSample]:
    for (route, status), count in sorted(server.requests.copy().items()):
        labels = (("route", route), ("status", str(status)))
        yield MetricSample("headwater_http_requests_total", count, labels, "counter", "answers")


def text_of(samples: Iterable[MetricSample]) -> str:
    """The text format, version 0.0.4: the samples of a metric stand together."""
    by_name: dict[str, list[MetricSample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    lines = []
    for name, found in by_name.items():
        meaning = found[0].meaning.replace("\\", "\\\\").replace("\n", "\\n")
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {found[0].kind}"]
        lines += [f"{name}{_labels(sample)} {float(sample.value)!r}" for sample in found]
    return "\n".join(lines) + "\n"


def _labels(sample: MetricSample) -> str:
    if not sample.labels:
        return ""
    pairs = []
    for name, value in sample.labels:
        text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        pairs.append(f'{name}="{text}"')
    return "{" + ",".join(pairs) + "}"
