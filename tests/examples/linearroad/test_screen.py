"""The live screen of the Linear Road demo, from states made by hand."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from headwater.examples.linearroad.demo.screen import (
    Lane,
    Responses,
    RoadState,
    ScreenQuestion,
    ScreenStep,
    colour_of,
    screen,
    sparkline,
    starting,
    strip_cells,
    summary,
)
from rich.console import Console, RenderableType

SPEEDS: list[float | None] = [None, 10.0, 30.0, 50.0, 79.0] * 20
STATE = RoadState(
    second=9665,
    elapsed_s=31.4,
    speed=10.0,
    expressways=2,
    reports=1_234_567,
    reports_per_second=16_789.0,
    recent_rates=[0.0, 5.0, 10.0],
    tolls_charged=4_321_000,
    freshness_s=0.042,
    lanes=[Lane(0, 0, SPEEDS, frozenset({7})), Lane(0, 1, SPEEDS), Lane(1, 0, [None] * 100)],
    responses={"tolls": Responses(1000, 0.034, 0.4), "alerts": Responses(20, 0.1, 6.5)},
    questions=[ScreenQuestion(f"question {n}", f"answer {n}", 12.0) for n in range(5)],
)


def printed(what: RenderableType, width: int = 124) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None, legacy_windows=False)
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def test_all_figures_are_there() -> None:
    """Rates, counts, response times, freshness and the time on the road."""
    text = printed(screen(STATE))
    for part in ("2 expressways, 10 × real time", "road time 2:41:05", "31 of 60 s", "1,234,567",
                 "16,789", "4,321,000", "42 ms", "34 ms", "400 ms", "6.50 s", "▁▅█"):  # fmt: skip
        assert part in text, part
    accidents = next(line for line in text.splitlines() if "accidents now" in line)
    assert "1" in accidents.split()[2]


def test_the_address_of_the_browser_is_shown() -> None:
    """While it starts and while it runs; and that it goes on while somebody looks."""
    address = "http://127.0.0.1:8080/#/road"
    assert address in printed(starting(3.0, [ScreenStep("Spark starts", 0.0)], address))
    assert address in printed(screen(replace(STATE, address=address)))
    assert "browser" not in printed(screen(STATE))
    assert "until the page is closed" in printed(screen(replace(STATE, watched=True)))


def test_the_road_is_a_strip_of_bars() -> None:
    """One character a mile where there is room, the mean behind it, accidents marked."""
    lines = printed(screen(STATE)).splitlines()
    strip = next(line for line in lines if "x0 →" in line)
    assert "·▂▄▆█·▂✖▆█·▂▄▆█" in strip
    assert "42 mph" in strip
    assert "·" * 100 in next(line for line in lines if "x1 →" in line)


@pytest.mark.parametrize("width", [40, 80, 124, 200])
def test_it_fits_the_terminal(width: int) -> None:
    """No line is wider than the terminal; each direction stays one line."""
    lines = printed(screen(STATE), width).splitlines()
    assert max(map(len, lines)) <= width
    assert sum("→" in line or "←" in line for line in lines) == 3


def test_a_cell_of_several_miles_shows_the_slowest() -> None:
    """And an accident in any of them; no mile is left out."""
    lane = Lane(0, 0, [None, 60.0, 20.0, None, None, *[50.0] * 95], frozenset({99}))
    cells = list(strip_cells(lane, 30))
    assert len(cells) == 30
    assert cells[0].speed == 20.0
    assert [cell.accident for cell in cells] == [False] * 29 + [True]


def test_colours() -> None:
    """Below 40 miles per hour, where tolls begin, is another colour than above."""
    assert len({colour_of(speed) for speed in (0, 19.9, 20, 39.9, 40, 54, 55, 100)}) == 4
    assert colour_of(39.9) != colour_of(40)


def test_the_newest_questions_stay() -> None:
    """The last three, each with its answer and time."""
    text = printed(screen(STATE))
    assert "question 1" not in text
    assert all(f"question {n}" in text and f"answer {n}" in text for n in (2, 3, 4))


def test_before_anything_has_come() -> None:
    """An empty state has a screen, too."""
    assert "no cars yet" in printed(screen(RoadState()))
    assert "Ctrl-C" in printed(screen(RoadState(duration_s=None)))
    assert sparkline([]) == sparkline([0.0]) == ""


def test_the_summary() -> None:
    """How much, and whether every answer was in time."""
    text = " ".join(printed(summary(STATE)).split())
    assert "1,234,567 reports in 31 s" in text
    assert "1,020 answers, not all within 5 s: the slowest took 6.50 s" in text
    quick = replace(STATE, responses={"tolls": Responses(3, 0.1, 0.2)})
    assert "3 answers, all within 5 s: the slowest took 200 ms" in " ".join(
        printed(summary(quick)).split()
    )
