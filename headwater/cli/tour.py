"""`headwater demo --tour`: a short guided tour of SQL on generated data."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import headwater

CARS, REPORTS = 2_000, 200_000


@dataclass(frozen=True)
class TourStep:
    """One stop of the tour: what it shows, and the SQL that shows it."""

    title: str
    sql: str


STEPS = (
    TourStep(
        "A plain scan. No Spark is needed, and none is waited for.",
        "SELECT minute, vid, speed, segment FROM reports\n"
        "WHERE vid = 17 AND minute < 5\nORDER BY minute LIMIT 5",
    ),
    TourStep(
        "A window: the newest report of each car, as of the table's clock.",
        "SELECT vid, minute, speed, segment FROM reports [vid ROWS 1]\nWHERE vid < 3 ORDER BY vid",
    ),
    TourStep(
        "A join and a grouping, on Spark: where is traffic slow?",
        "SELECT s.district, count(*) AS reports, round(avg(r.speed), 1) AS speed\n"
        "FROM reports r JOIN segments s ON r.segment = s.segment\n"
        "GROUP BY s.district ORDER BY speed",
    ),
    TourStep(
        "Any SQL that Spark takes: the slowest segment of each district.",
        "SELECT district, segment, speed FROM (\n"
        "  SELECT s.district, r.segment, round(avg(r.speed), 1) AS speed,\n"
        "         rank() OVER (PARTITION BY s.district ORDER BY avg(r.speed)) AS place\n"
        "  FROM reports r JOIN segments s ON r.segment = s.segment\n"
        "  GROUP BY s.district, r.segment)\n"
        "WHERE place = 1 ORDER BY district",
    ),
    TourStep(
        "Tables change by SQL; each change is one durable commit.",
        "UPDATE segments SET district = upper(district) WHERE segment < 10",
    ),
    TourStep(
        "The database describes itself in tables, too.",
        "SELECT name, row_count, file_count, version FROM headwater.tables",
    ),
)


def main(*, master: str | None = None) -> int:
    """Runs the tour; 0 when all went well."""
    from rich.console import Console

    console = Console(highlight=False)
    started = time.monotonic()
    console.print("[bold]Headwater[/bold]: a streaming database on Spark. A tour of its SQL.\n")
    with headwater.connect(":memory:", master=master) as db:
        _make_data(db, console, REPORTS)
        for number, step in enumerate(STEPS, 1):
            _show(db, console, number, step)
        _show_error(db, console)
    console.print(
        f"[dim]That took {time.monotonic() - started:.0f} s, Spark's start included.[/dim] "
        "Next: [bold]headwater sql ./data[/bold], and docs/guide/."
    )
    return 0


def _make_data(db: headwater.Database, console, count: int) -> None:  # type: ignore[no-untyped-def]
    db.sql(
        "CREATE STREAMING TABLE reports (minute INT NOT NULL, vid INT NOT NULL, speed INT, segment INT)"
        " TIMESTAMP BY minute"
    )
    db.sql("CREATE TABLE segments (segment INT NOT NULL, district STRING)")
    random = np.random.default_rng(1)
    segment = random.integers(0, 100, count, dtype=np.int32)
    speed = np.clip(random.normal(45 + segment % 30, 12), 0, 100).astype(np.int32)
    rows = pa.table(
        {
            "minute": pa.array(np.sort(random.integers(0, 60, count, dtype=np.int32))),
            "vid": pa.array(random.integers(0, CARS, count, dtype=np.int32)),
            "speed": pa.array(speed),
            "segment": pa.array(segment),
        }
    )
    start = time.monotonic()
    db.insert("reports", rows)
    took = time.monotonic() - start
    names = ("harbour", "centre", "hills", "airport")
    db.insert("segments", [(i, names[i // 25]) for i in range(100)])
    console.print(
        f"A streaming table and a standard one, {count:,} rows inserted and synced to disk "
        f"in {took * 1000:.0f} ms; Spark is still starting in the background.\n"
    )


def _show(db: headwater.Database, console, number: int, step: TourStep) -> None:  # type: ignore[no-untyped-def]
    from headwater.cli.grid import Look
    from headwater.cli.output import render

    console.print(f"[bold cyan]{number}.[/bold cyan] {step.title}")
    for line in step.sql.splitlines():
        console.print(f"   {line}", style="green", markup=False)
    start = time.monotonic()
    result = db.sql(step.sql)
    took = (time.monotonic() - start) * 1000
    if result.has_rows:
        for line in render(result.arrow(), "table", Look(width=console.width - 4, unicode=True)):
            console.print("   " + line, markup=False)
    console.print(f"   [dim]{result.kind}, {result.row_count} rows, {took:.0f} ms[/dim]\n")


def _show_error(db: headwater.Database, console) -> None:  # type: ignore[no-untyped-def]
    console.print("[bold cyan]7.[/bold cyan] A mistake is answered with its place and a hint.")
    try:
        db.sql("SELECT avg(sped) FROM reports")
    except headwater.Error as error:
        for line in str(error).splitlines():
            console.print(f"   {line}", style="yellow", markup=False)
    console.print()
