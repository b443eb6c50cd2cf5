"""The console in a real Chromium: tables, queries, live charts, logins, light and dark, keys.

Skipped where there is no Chromium or no Playwright; `apt-get install chromium` and
`pip install playwright` bring them.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from headwater.examples.linearroad.demo.figures import Accident
from headwater.examples.linearroad.demo.page import page_of
from headwater.examples.linearroad.demo.screen import Lane, Moment, RoadState, Toll

import headwater
from headwater.server.console.live import SHOWN_ROWS, TICK_S
from headwater.server.http.server import HttpOptions, HttpServer
from tests.server.live import Live

driver = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
HURT = "CREATE TABLE hurt (a INT)"
PATIENCE_MS = 60_000  # for anything: a machine may be busy
driver.expect.set_options(timeout=PATIENCE_MS)
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
def page(browser: Any, live: Live) -> Iterator[Any]:
    """A page whose log must be empty at the end; it is closed before the server."""
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    found, log = context.new_page(), []
    found.set_default_timeout(PATIENCE_MS)
    found.on("console", lambda m: log.append(m.text) if m.type in ("error", "warning") else None)
    found.on("pageerror", lambda error: log.append(str(error)))
    yield found
    context.close()
    refused = re.compile(
        r"Failed to load resource: .* status of 40[013] "  # the tests' own doing
        r"|Access to fetch at .* has been blocked by CORS policy|Failed to load .*ERR_FAILED"
    )
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
        page.goto("about:blank")


def test_the_road(page: Any, plain: headwater.Database) -> None:
    """The strip, accidents and tolls as they come; a question with its statement and its answer."""
    plain.sql("CREATE STREAMING TABLE statistics (t BIGINT, seg INT, speed DOUBLE) TIMESTAMP BY t")
    plain.sql(
        "CREATE CONTINUOUS QUERY critical_segments AS SELECT seg, speed"
        " FROM statistics [ROWS 1] SAMPLE 1 ROWS"
    )
    plain.insert("statistics", [{"t": 1, "seg": 42, "speed": 12.5}])
    plain.flush()
    lanes = [Lane(0, 0, [30.0] * 100), Lane(0, 1, [55.0, None] * 50)]
    states = [
        RoadState(second=9665, lanes=lanes, moments=[Moment(9.0, 0.1, {"tolls": 0.2})]),
        RoadState(
            second=9670,
            lanes=[replace(lanes[0], accidents=frozenset({17})), lanes[1]],
            tolls=[Toll(9669, 4711, 23, 98)],
            moments=[Moment(9.0 + n, 0.1, {"tolls": 0.2 * n}) for n in range(9)],
        ),
    ]
    accidents = [Accident(0, 0, 17, 9660)]
    now = [page_of(states[0], [], [], flowing=True)]
    with Live(HttpServer(plain, HttpOptions(port=0), shows={"road": lambda: now[0]})) as live:
        page.goto(address(live, "road"))
        page.get_by_role("heading", name="Road", level=1).wait_for()
        driver.expect(page.locator(".mile")).to_have_count(200)
        assert page.locator(".strip .crash").count() == 0
        assert page.get_by_role("button", name="possible witnesses").is_disabled()
        now[0] = page_of(states[1], accidents, [], flowing=True)
        driver.expect(page.locator(".strip .crash")).to_have_count(1)
        driver.expect(page.get_by_label("Tolls")).to_contain_text("car 4711")
        assert page.get_by_role("button", name="possible witnesses").is_enabled()
        assert page.locator("path.line").count() >= 2
        page.get_by_role("button", name="critical segments").focus()
        page.keyboard.press("Enter")
        driver.expect(page.locator(".rows tbody td").first).to_have_text("42")
        assert page.locator("pre.sql").inner_text() == "SELECT * FROM critical_segments"
        page.get_by_role("button", name="possible witnesses").click()
        driver.expect(page.locator("pre.sql")).to_have_text("CALL near(0, 0, 17, 9360, 9660)")
        page.locator(".summary.bad").wait_for()  # there is no such procedure here
        page.goto("about:blank")  # nothing asks for a server that is gone


def test_names_and_values_are_never_markup(
    page: Any, live: Live, plain: headwater.Database
) -> None:
    """A name or a value that looks like HTML is shown as it is, on every page that shows it."""
    bad = '<img src=x onerror="window.hurt=1"><script>window.hurt=1'
    plain.sql(f"CREATE STREAMING TABLE `{bad}` (t BIGINT, v STRING) TIMESTAMP BY t")
    plain.sql(
        f"CREATE CONTINUOUS QUERY `q{bad}` AS SELECT v, count(*) AS `{bad}`"
        f" FROM `{bad}` [INTERVAL '1' SECOND BEFORE] GROUP BY v SAMPLE INTERVAL '1' SECOND"
    )
    plain.insert(bad, [{"t": n, "v": v} for n in range(4) for v in (bad, f"{bad}2")])
    plain.flush()
    for name in (
        "overview",
        "network",
        "queries",
        "tables",
        "late",
        f"query/q{quote(bad, safe='')}",
    ):
        page.goto(address(live, name))
        page.locator("main :text('<img src=x'):visible").first.wait_for()
    driver.expect(page.locator(".rows tbody td").first).to_have_text(bad)
    page.goto(address(live, "sql"))
    run(page, f"SELECT * FROM `q{bad}`")
    driver.expect(page.locator(".rows tbody td").first).to_have_text(bad)
    assert page.evaluate("[window.hurt, document.querySelectorAll('main img, main script').length]") \
        == [None, 0]  # fmt: skip


def test_pages_of_another_site_change_nothing(
    page: Any, live: Live, plain: headwater.Database
) -> None:
    """Neither a form nor a script of another origin runs a statement."""
    target = f"http://{live.host}:{live.port}"
    form = (
        f'<form action="{target}/sql" method="post" enctype="text/plain">'
        f'<input name="{HURT} --" value="1"></form>'
    )
    page.route("**/evil", lambda route: route.fulfill(body=form, content_type="text/html"))
    page.goto(f"http://{live.host}:1/evil")  # another port is another origin
    said = page.evaluate(
        """([target, body]) => Promise.all(["no-cors", "cors"].map((mode) =>
          fetch(target + "/sql", {method: "POST", mode, body}).then((x) => x.type, () => "refused")))""",
        [target, HURT],
    )
    assert set(said) <= {"opaque", "refused"}  # no answer can be read
    with page.expect_navigation():
        page.evaluate("document.forms[0].submit()")
    assert "pages of other sites" in page.content()
    assert plain.sql("SHOW TABLES").rows() == []


class Traffic:
    """What comes over the live channels of a page: bytes, and messages with results."""

    def __init__(self, page: Any) -> None:
        self.bytes = 0
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.dataReceived", self._received)
        self.started = time.monotonic()

    def _received(self, event: Any) -> None:
        self.bytes += event["dataLength"]

    def begin(self) -> None:
        """Counts from now on."""
        self.bytes, self.started = 0, time.monotonic()

    @property
    def bytes_a_tick(self) -> float:
        """Bytes for each time that the server may have spoken."""
        return self.bytes / ((time.monotonic() - self.started) / TICK_S + 2)


GAPS = """() => { let last = performance.now(); window.gap = 0;
  const see = (now) => {
    window.gap = Math.max(window.gap, now - last);
    last = now;
    requestAnimationFrame(see);
  };
  requestAnimationFrame(see); }"""
HIDE = """Object.defineProperty(document, "hidden", {get: () => true});
  document.dispatchEvent(new Event("visibilitychange"))"""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("queries", "groups", "seconds"),
    [(200, 50, 2), pytest.param(200, 500, 60, marks=pytest.mark.large)],
)
def test_many_queries_and_results(
    page: Any, live: Live, plain: headwater.Database, queries: int, groups: int, seconds: int
) -> None:
    """With 200 queries and 10 000 result rows at a time the pages answer; unseen rows are not sent."""
    many_queries(plain, queries)
    traffic = Traffic(page)
    page.goto(address(live, "queries"))
    driver.expect(page.locator("tbody tr")).to_have_count(queries)
    page.evaluate(GAPS)
    for name, largest in (("queries", 40_000), ("network", 40_000), ("query/wide0", 20_000)):
        page.evaluate("name => { location.hash = `#/${name}`; }", name)
        page.locator(".state[data-kind=live]").wait_for()
        traffic.begin()
        for _ in range(seconds):
            at = int(plain.sql("SELECT clock FROM headwater.tables").rows()[0][0] or 0) + 1
            plain.insert("readings", [{"t": at, "v": v} for v in range(groups)])
            plain.flush()
            page.get_by_role("button", name="Keys").click()  # the page answers while rows come
            page.keyboard.press("Escape")
        assert traffic.bytes_a_tick < largest, name
    driver.expect(page.locator(".rows tbody tr").first).to_be_visible()
    assert page.locator(".rows tbody tr").count() <= SHOWN_ROWS
    assert page.evaluate("window.gap") < PATIENCE_MS / 4
    page.evaluate(HIDE)
    live.wait_until(lambda: live.server.watchers == 0)


def many_queries(db: headwater.Database, count: int) -> None:
    """Queries that all give as many rows as a second has different values."""
    db.sql("CREATE STREAMING TABLE readings (t BIGINT, v BIGINT) TIMESTAMP BY t")
    for number in range(count):
        db.sql(
            f"CREATE CONTINUOUS QUERY wide{number} AS SELECT v, count(*) AS n FROM readings"
            " [INTERVAL '1' SECOND BEFORE] GROUP BY v SAMPLE INTERVAL '1' SECOND"
        )
