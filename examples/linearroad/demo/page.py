"""The Linear Road demo as a page of the console: its figures as JSON, and the console beside it.

Owns what the page is sent, and where its server listens: a port of this machine alone. A port that
cannot be had is no reason not to show the rest. The page itself is `server/console/road.js`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headwater.database import Database
from headwater.server.background import Background
from headwater.server.http.server import HttpOptions, HttpServer

from .figures import Accident
from .questions import QUESTIONS, places
from .screen import OUTPUTS, TITLES, Lane, RoadState, ScreenStep, clock

HOST = "127.0.0.1"
PORT = 8080  # if it is free, else any other
ACCIDENTS = 12  # that are listed


def page_of(
    state: RoadState, accidents: Sequence[Accident], steps: Sequence[ScreenStep], *, flowing: bool
) -> dict[str, Any]:
    """All that the page shows, the newest first."""
    present = {(lane.xway, lane.dir, seg) for lane in state.lanes for seg in lane.accidents}
    return {
        "steps": [] if flowing else [step.name for step in steps],
        "clock": clock(state.second),
        "speed": state.speed,
        "reports": state.reports,
        "reports_per_s": round(state.reports_per_second),
        "tolls_charged": state.tolls_charged,
        "freshness_s": _rounded(state.freshness_s),
        "lanes": [_lane(lane) for lane in state.lanes],
        "outputs": [TITLES[output] for output in OUTPUTS],
        "responses": [_responses(state, output) for output in OUTPUTS],
        "moments": [
            [
                round(moment.elapsed_s, 1),
                _rounded(moment.freshness_s),
                *(_rounded(moment.slowest_s.get(output)) for output in OUTPUTS),
            ]
            for moment in state.moments
        ],
        "tolls": [
            [clock(toll.second), toll.vid, toll.speed, toll.toll] for toll in reversed(state.tolls)
        ],
        "accidents": [
            _accident(one, (one.xway, one.dir, one.seg) in present) for one in accidents[:ACCIDENTS]
        ],
        "questions": [{"title": q.title, "what": q.what, "sql": q.sql} for q in QUESTIONS],
    }


def _lane(lane: Lane) -> dict[str, Any]:
    speeds = [None if speed is None else round(speed) for speed in lane.speeds]
    return {
        "xway": lane.xway,
        "dir": lane.dir,
        "speeds": speeds,
        "accidents": sorted(lane.accidents),
    }


def _responses(state: RoadState, output: str) -> list[float]:
    found = state.responses.get(output)
    if found is None:
        return [0, 0, 0]
    return [found.count, round(found.average_s, 4), round(found.worst_s, 4)]


def _accident(one: Accident, now: bool) -> dict[str, Any]:
    return {
        "xway": one.xway,
        "dir": one.dir,
        "seg": one.seg,
        "clock": clock(one.second),
        "now": now,
        "place": places(one),
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


@contextlib.contextmanager
def console(
    database: Database, port: int | None, road: Callable[[], Any]
) -> Iterator[Background[HttpServer]]:
    """The console with the road's page; OSError if the port cannot be had. None: 8080, or any."""
    with contextlib.ExitStack() as running:
        yield _started(running, database, port, road)


def _started(
    running: contextlib.ExitStack, database: Database, port: int | None, road: Callable[[], Any]
) -> Background[HttpServer]:
    try:
        options = HttpOptions(HOST, PORT if port is None else port)
        server = HttpServer(database, options, shows={"road": road})
        return running.enter_context(Background(server))
    except OSError:
        if port is not None:
            raise
        return _started(running, database, 0, road)
