"""Pictures of every page of the console, with traffic flowing: `python -m tests.harness.screenshots`.

Runs the Linear Road demo with its console, adds what the other pages show (an update query, late rows, a
sink, something that fails), and takes a picture of each page in Chromium. Without arguments the
pictures of the docs are made anew; `--dark` and a folder are for looking.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwater.examples.linearroad.demo.application import Drive
from headwater.examples.linearroad.demo.run import Demo
from PIL import Image  # comes with matplotlib
from playwright.sync_api import Page, sync_playwright

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SIZE = {"width": 1366, "height": 768}
PATIENCE_S = 300.0
DRIVE = Drive(speed=4, accidents_per_hour=60)
ASKED = (
    "-- how fast is each mile now?\n"
    "SELECT seg AS mile, avg(speed) AS speed\n"
    "FROM reports [INTERVAL '30' SECOND]\n"
    "WHERE type = 0 AND dir = 0\nGROUP BY seg ORDER BY seg"
)
SETUP = (
    "CREATE STREAMING TABLE prices (id STRING, t BIGINT, price DOUBLE)"
    " TIMESTAMP BY t UPDATE KEY (id)",
    "CREATE CONTINUOUS QUERY newest_prices AS SELECT id, price FROM prices WITH UPDATES",
    "CREATE STREAMING TABLE readings (t BIGINT, station STRING, level DOUBLE) TIMESTAMP BY t"
    " LATE DROP",
    "CREATE STREAMING TABLE weather (t BIGINT, rain DOUBLE) TIMESTAMP BY t",
    "CREATE CONTINUOUS QUERY levels AS SELECT station, avg(level) AS level"
    " FROM readings [INTERVAL '5' SECOND BEFORE] GROUP BY station SAMPLE INTERVAL '1' SECOND",
)
STATIONS = ("Aare", "Inn", "Reuss", "Rhine", "Ticino")


def main() -> None:
    """Makes the pictures."""
    reads = argparse.ArgumentParser(description=__doc__)
    reads.add_argument("folder", nargs="?", type=Path, default=PICTURES)
    reads.add_argument("--dark", action="store_true")
    asked = reads.parse_args()
    folder = asked.folder.resolve()
    demo = Demo(None, DRIVE, None, browser=True, port=0)
    with tempfile.TemporaryDirectory() as files, contextlib.chdir(files):
        demo.start()
        try:
            wait(lambda: any(lane.accidents for lane in demo.last_state.lanes))
            database = Database(demo.address)
            database.fill()
            take_all(database, folder, dark=asked.dark)
        finally:
            demo.stop()
            demo.leave()


class Database:
    """The demo's database, over HTTP."""

    def __init__(self, address: str) -> None:
        self.base = address.partition("#")[0]
        self._second = 0

    def sql(self, text: str) -> Any:
        """Runs a statement."""
        body = json.dumps({"sql": text}).encode()
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.base}sql", body, kind)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def fill(self) -> None:
        """What the traffic alone does not show."""
        for text in SETUP:
            self.sql(text)
        self.sql("CREATE SINK level_files FROM levels INTO 'json:levels'")
        self.sql(
            "CREATE SOURCE gauges INTO weather FROM 'tcp://127.0.0.1:9' WITH (format = 'json')"
        )
        for _ in range(40):
            self.feed()

    def feed(self) -> None:
        """A second of levels and prices; now and then a row comes late."""
        t = self._second = self._second + 1
        levels = [4 * n + 3 * math.sin(t / (n + 4)) for n in range(1, len(STATIONS) + 1)]
        rows = [f"({t}, '{s}', {v:.3f})" for s, v in zip(STATIONS, levels, strict=True)]
        if t > 20 and t % 5 == 0:
            rows.append(f"({t - 15}, 'Rhine', 1.5)")
        self.sql(f"INSERT INTO readings VALUES {', '.join(rows)}")
        prices = ", ".join(f"('part {n}', {t}, {(t * n) % 90 + 10}.5)" for n in range(20))
        self.sql(f"INSERT INTO prices VALUES {prices}")


def take_all(database: Database, folder: Path, *, dark: bool) -> None:
    """One picture of each page."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        colours = "dark" if dark else "light"
        page = browser.new_context(viewport=SIZE, color_scheme=colours).new_page()
        page.set_default_timeout(120_000)
        for name, act in PAGES.items():
            page.goto(f"{database.base}#/{name}")
            page.reload()
            act(page, database)
            picture = folder / f"console-{name.partition('/')[0]}.png"
            page.screenshot(path=picture, full_page=name == "road")
            with Image.open(picture) as whole:  # a page has few colours: a third of the bytes
                few = whole.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
                few.save(picture, optimize=True)
            print(f"{picture}: {picture.stat().st_size // 1024} KB")
        browser.close()


def a_while(page: Page, database: Database, seconds: int = 6) -> None:
    """Lets the page see some seconds."""
    for _ in range(seconds):
        database.feed()
        page.wait_for_timeout(1000)


def ask_about_the_past(page: Page, database: Database) -> None:
    """The road, with a question."""
    a_while(page, database, 25)
    page.get_by_role("button", name="possible witnesses").click()
    page.locator(".summary", has_text=" rows in ").wait_for()
    a_while(page, database, 2)


def ask_in_the_editor(page: Page, database: Database) -> None:
    """A statement and its chart."""
    area = page.get_by_label("SQL", exact=True)
    area.fill(ASKED)
    area.press("Escape")
    area.press("Control+Enter")
    page.locator(".summary", has_text=" rows in ").wait_for()
    page.get_by_role("button", name="Chart").click()
    a_while(page, database, 1)


def log_in(page: Page, _: Database) -> None:
    """The page that asks who is there: a login that is needed from now on."""
    page.route("**/console/names", lambda route: route.fulfill(status=401, body="{}"))
    page.reload()
    page.get_by_label("User").fill("ada")


PAGES: dict[str, Callable[[Page, Database], None]] = {
    "overview": lambda page, database: a_while(page, database, 40),
    "road": ask_about_the_past,
    "network": a_while,
    "sql": ask_in_the_editor,
    "queries": a_while,
    "query/levels": lambda page, database: a_while(page, database, 12),
    "view/charged": lambda page, database: a_while(page, database, 20),
    "tables": a_while,
    "sources": a_while,
    "staleness": a_while,
    "late": a_while,
    "errors": a_while,
    "login": log_in,
}


def wait(until: Callable[[], bool]) -> None:
    """Waits for the demo to be under way."""
    end = time.monotonic() + PATIENCE_S
    while not until():
        if time.monotonic() > end:
            raise TimeoutError("the demo did not start")
        time.sleep(0.2)  # not a wait for progress of a test: nothing announces it


if __name__ == "__main__":
    main()
