"""The console in a real Chromium: tables, queries, live charts, logins, light and dark, keys.

Skipped where there is no Chromium or no Playwright; `apt-get install chromium` and
`pip install playwright` bring them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

import headwater
from headwater.server.http.server import HttpOptions, HttpServer
from tests.server.live import Live

driver = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
QUERY = (
    "CREATE CONTINUOUS QUERY per_second AS SELECT count(*) AS n, sum(v) AS total"
    " FROM readings [INTERVAL '1' SECOND BEFORE] SAMPLE INTERVAL '1' SECOND"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests."""
    with driver.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM)
        yield found
        found.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page whose log must be empty at the end."""
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    found, log = context.new_page(), []
    found.set_default_timeout(15_000)
    found.on("console", lambda m: log.append(m.text) if m.type in ("error", "warning") else None)
    found.on("pageerror", lambda error: log.append(str(error)))
    yield found
    context.close()
    refused = re.compile(r"Failed to load resource: .* status of 40[01] ")  # the tests' own doing
    assert [text for text in log if not refused.match(text)] == []


def address(live: Live, page: str = "overview") -> str:
    """Where a page is."""
    return f"http://{live.host}:{live.port}/#/{page}"


def feed(db: headwater.Database, first: int, last: int) -> None:
    """Rows at some seconds, and everything up to then is complete."""
    db.insert("readings", [{"t": n, "v": n * 10} for n in range(first, last + 1)])
    db.advance("readings", last)
    db.flush()


def newest(db: headwater.Database) -> list[str]:
    """The newest result as the page writes it."""
    return [str(value) for value in db.sql("SELECT * FROM per_second").rows()[0]]


def run(page: Any, text: str) -> None:
    """Runs a statement in the editor by keyboard."""
    area = page.get_by_label("SQL", exact=True)
    area.fill(text)
    area.press("Escape")
    with page.expect_response("**/sql") as answer:
        area.press("Control+Enter")
    assert answer.value.ok, answer.value.text()


def test_a_table_and_a_query_are_made_and_their_chart_moves(
    page: Any, live: Live, plain: headwater.Database
) -> None:
    """CREATE in the editor, rows from outside; the query's page shows new rows and a longer line."""
    page.goto(address(live, "sql"))
    run(page, "CREATE STREAMING TABLE readings (t BIGINT, v BIGINT) TIMESTAMP BY t")
    run(page, QUERY)
    feed(plain, 0, 5)
    page.goto(address(live, "query/per_second"))
    plot, cells = page.locator(".plot"), page.locator(".rows tbody tr").first.locator("td")
    driver.expect(cells).to_have_text(newest(plain))
    before, line = int(plot.get_attribute("data-points")), page.locator("path.line").first
    path = line.get_attribute("d")
    feed(plain, 6, 12)
    driver.expect(cells).to_have_text(newest(plain))
    assert int(plot.get_attribute("data-points")) > before >= 8
    assert line.get_attribute("d") != path
    assert "upper" in page.locator(".plan").inner_text()
    page.goto(address(live, "network"))
    page.get_by_role("link", name="per_second: ").first.wait_for()
    assert page.locator(".node").count() == 4  # clients, the table, the query, its results


def test_completion_by_keyboard(page: Any, live: Live, plain: headwater.Database) -> None:
    """A table's name after FROM, taken with Tab; an error says where it is."""
    plain.sql("CREATE STREAMING TABLE readings (t BIGINT, v BIGINT) TIMESTAMP BY t")
    page.goto(address(live, "sql"))
    area = page.get_by_label("SQL", exact=True)
    with page.expect_response("**/console/names"):
        page.reload()
    area.fill("")
    area.press_sequentially("SELECT count(*) FROM re")
    page.get_by_role("option", name="readings").wait_for()
    area.press("Tab")
    assert area.input_value() == "SELECT count(*) FROM readings"
    area.fill("SELEC 1")
    area.press("Escape")
    area.press("Control+Enter")
    page.locator(".summary.bad").wait_for()
    assert "line 1" in page.locator(".summary").inner_text()


def test_keys_and_themes(page: Any, live: Live) -> None:
    """Every page by keyboard alone; the switch changes the colours, and so does the system."""
    page.goto(address(live))
    page.get_by_role("heading", name="Overview").wait_for()
    for letter, title in (("n", "Network"), ("q", "Queries"), ("t", "Tables"), ("r", "Sources"),
                          ("a", "Staleness"), ("l", "Late rows"), ("e", "Errors")):  # fmt: skip
        page.keyboard.press("g")
        page.keyboard.press(letter)
        page.get_by_role("heading", name=title, level=1).wait_for()
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(paper)
    assert dark != light
    page.keyboard.press("t")  # light, whatever the system says
    assert page.evaluate(paper) == light
    page.keyboard.press("t")
    page.emulate_media(color_scheme="light")
    assert page.evaluate(paper) == dark
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_login_and_logout(page: Any, plain: headwater.Database) -> None:
    """With users there is a login; a wrong password is refused; nothing is kept after logging out."""
    plain.sql("CREATE USER ada PASSWORD 'right' ROLE READER")
    with Live(HttpServer(plain, HttpOptions(port=0))) as live:
        page.goto(address(live))
        page.get_by_label("User").fill("ada")
        page.get_by_label("Password or token").fill("wrong")
        page.keyboard.press("Enter")
        page.get_by_role("alert").filter(has_text="the login failed").wait_for()
        page.get_by_label("Password or token").fill("right")
        page.keyboard.press("Enter")
        page.get_by_text("ada, reader").wait_for()
        page.get_by_role("heading", name="Overview").wait_for()
        assert page.evaluate("document.cookie + JSON.stringify({...sessionStorage})") == "{}"
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("User").wait_for()
        assert page.get_by_text("ada, reader").count() == 0
        page.reload()
        page.get_by_label("User").wait_for()


@pytest.mark.large
def test_many_queries_and_results(page: Any, live: Live, plain: headwater.Database) -> None:
    """With 200 queries, and 10 000 result rows at a time, the pages answer and little is sent."""
    plain.sql("CREATE STREAMING TABLE readings (t BIGINT, v BIGINT) TIMESTAMP BY t")
    for number in range(200):
        name = "" if number == 0 else number
        plain.sql(
            f"CREATE CONTINUOUS QUERY wide{name} AS SELECT v, count(*) AS n FROM readings"
            " [INTERVAL '1' SECOND BEFORE] GROUP BY v SAMPLE INTERVAL '1' SECOND"
        )
        if number > 0:
            plain.sql(f"PAUSE QUERY wide{name}")
    sent: list[int] = []
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.dataReceived", lambda event: sent.append(event["dataLength"]))
    page.goto(address(live, "queries"))
    driver.expect(page.locator("tbody tr")).to_have_count(200)
    page.goto(address(live, "query/wide"))
    page.locator(".state[data-kind=live]").wait_for()
    sent.clear()
    for second in range(1, 11):
        plain.insert("readings", [{"t": second, "v": v} for v in range(10_000)])
        plain.flush()
        page.get_by_role("heading", name="wide").click(timeout=30_000)  # the page answers
    driver.expect(page.get_by_text("200 of 10,000 rows")).to_be_visible()
    assert sum(sent) < 1_000_000
