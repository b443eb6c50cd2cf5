"""`headwater demo` as a whole: a few seconds of a short road, without a terminal."""

from __future__ import annotations

import io
import json
import re
import socket
import threading
import urllib.request
from pathlib import Path
from typing import Any, ClassVar

import pytest
from headwater.examples.linearroad.demo import run as demo
from headwater.examples.linearroad.demo.application import Application, Drive, scripts
from rich.console import Console

from tests.harness.patience import PATIENCE_S

SHORT = Drive(speed=20, segments=10, accidents_per_hour=60)


def test_the_scripts_are_found() -> None:
    """The application's before the questions', each in its order."""
    names = [f"{path.parent.name}/{path.name}" for path in scripts()]
    assert names[0] == "linearroad/1_reports.sql"
    assert names[-3:] == [
        "questions/1_accident.sql",
        "questions/2_witnesses.sql",
        "questions/3_critical.sql",
    ]
    assert 'force-include]\n"examples/linearroad"' in Path("pyproject.toml").read_text()


@pytest.mark.timeout(900)
def test_a_run_of_a_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tolls are charged, questions answered, and it ends by itself with a summary (ST13)."""
    monkeypatch.setattr(demo, "FIRST_QUESTION_S", 2.0)
    monkeypatch.setattr(demo, "NEXT_QUESTION_S", 0.1)
    done = enough(monkeypatch)
    out = io.StringIO()
    code = demo.main(seconds=800, drive=SHORT, console=Console(file=out, width=200))
    text = out.getvalue()
    assert code == 0, text
    assert done.tolls > 0
    assert re.search(r"in the browser: http://127\.0\.0\.1:\d+/#/road", text)
    assert done.road["lanes"], done.road
    assert any(toll[3] > 0 for toll in done.road["tolls"])
    assert done.road["accidents"][0]["place"]
    assert any(slowest is not None for _, _, slowest, *_ in done.road["moments"])
    assert "traffic flows" in text
    assert "reports/s" not in text  # lines, not a screen
    assert "accident dynamics" in text
    assert "every one stored and synced to disk" in text


class Enough:
    """What had been charged when the showing was ended, and what a browser's page was sent then."""

    tolls = 0
    road: ClassVar[dict[str, Any]] = {}


def enough(monkeypatch: pytest.MonkeyPatch) -> Enough:
    """Ends the showing as if by Ctrl-C, once all that a test wants to see is there."""
    found = Enough()
    over = demo.Demo.over

    def over_soon(self: demo.Demo) -> bool:
        state = self.last_state
        found.tolls = state.tolls_charged
        if state.tolls_charged and any(q.title == "accident dynamics" for q in state.questions):
            found.road = road_of(state.address)
            self.stop()
        return over(self)

    monkeypatch.setattr(demo.Demo, "over", over_soon)
    return found


def road_of(address: str) -> dict[str, Any]:
    """What the page of the road is sent first."""
    where = address.replace("#/road", "console/live?show=road")
    with urllib.request.urlopen(where, timeout=PATIENCE_S) as answer:
        first = next(line for line in answer if line.startswith(b"data: "))
    return dict(json.loads(first[6:])["road"])


def test_a_port_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, and the rest goes on; without the browser nothing listens."""
    monkeypatch.setattr(demo.Demo, "_wait_for_spark", lambda self, _: self.stop())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        out = io.StringIO()
        port = taken.getsockname()[1]
        assert demo.main(console=Console(file=out, width=200), port=port) == 0
    assert "not in the browser: " in out.getvalue()
    out = io.StringIO()
    assert demo.main(console=Console(file=out, width=200), browser=False) == 0
    assert "browser" not in out.getvalue()


def test_ctrl_c_while_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is under way is cancelled; it ends without an error and without figures."""
    begun = threading.Event()
    monkeypatch.setattr(Application, "create", lambda *_: begun.set())
    monkeypatch.setattr(
        Application, "start", lambda self: self._db.sql("SELECT count(*) FROM range(10)")
    )
    monkeypatch.setattr(demo.Demo, "over", lambda self: begun.is_set() and (self.stop() or True))
    out = io.StringIO()
    assert demo.main(seconds=60, console=Console(file=out, width=200)) == 0
    assert "ended before the first report" in out.getvalue()


def test_a_terminal_that_cannot_redraw_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen would stay empty there until the end."""
    shown = []
    monkeypatch.setattr(demo.Demo, "start", lambda self: self.stop())
    monkeypatch.setattr(demo.Demo, "leave", lambda *_: None)
    monkeypatch.setattr(demo, "_watch_screen", lambda *_: shown.append("screen"))
    monkeypatch.setattr(demo, "_watch_lines", lambda *_: shown.append("lines"))
    for term in ("dumb", "xterm-256color"):
        out = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": term})
        assert demo.main(console=out) == 0
    assert shown == ["lines", "screen"]


def test_too_slow_a_start_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was shown when its time was over: scripts are told by the exit code."""
    monkeypatch.setattr(demo.Demo, "start", lambda *_: None)
    monkeypatch.setattr(demo.Demo, "leave", lambda *_: None)
    monkeypatch.setattr(demo, "GRACE_S", 0.0)
    out = io.StringIO()
    assert demo.main(seconds=0.01, console=Console(file=out, width=200)) == 1
    assert "ended before the first report" in out.getvalue()


def test_an_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong in the background reaches the caller."""

    def fail(self: Application, tell: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(Application, "create", fail)
    with pytest.raises(ValueError, match="broken"):
        demo.main(seconds=60, console=Console(file=io.StringIO(), width=200))


def test_it_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its seconds; where the start took long, after ten of traffic, or two minutes without."""
    now = [1000.0]
    monkeypatch.setattr(demo.time, "time", lambda: now[0])

    def over(at: float, flowing: float | None) -> bool:
        now[0] = 1000.0
        one = demo.Demo(60.0, None, None)
        one._flowing_s = flowing
        now[0] = at
        return one.over()

    assert not over(1059.0, 1010.0)
    assert over(1060.0, 1010.0)
    assert not over(1064.0, 1055.0)
    assert over(1065.0, 1055.0)
    assert not over(1178.0, 1169.0)
    assert over(1179.0, 1169.0)
    assert not over(1179.0, None)
    assert over(1180.0, None)
    assert not demo.Demo(None, None, None).over()


def test_it_goes_on_while_a_browser_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is open is not taken away; once it is closed, it ends."""
    now = [1000.0]
    monkeypatch.setattr(demo.time, "time", lambda: now[0])
    one = demo.Demo(60.0, None, None)
    one._flowing_s = 1010.0
    one._watchers = lambda: 1
    now[0] = 1100.0
    assert not one.over()
    assert one.last_state.watched
    one._watchers = lambda: 0
    assert one.over()
    assert not one.last_state.watched
