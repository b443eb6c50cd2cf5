"""The live screen of the Linear Road demo: a state in, something for rich to print out.

Owns: how the road, its figures and the answers look. Must never: ask the database, or look at a clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

SEGMENTS = 100
DEADLINE_S = 5.0
BARS = "▁▂▃▄▅▆▇█"
TOP_SPEED = 80.0
COLOURS = ((20.0, "#d73027"), (30.0, "#fc8d59"), (40.0, "#fee08b"), (float("inf"), "#66bd63"))
SHADES = {"#d73027": "#6b1813", "#fc8d59": "#5e3521", "#fee08b": "#4d442a", "#66bd63": "#1f3a1e"}
EMPTY, CRASH = Style(color="#606060"), Style(color="#ffffff", bgcolor="#b30000", bold=True)
STRIPS = 3  # expressways that are drawn
QUESTIONS = 3  # that stay on the screen
MARKS = 20  # miles between two numbers below the road
LABEL = 9  # columns before and after a strip
OUTPUTS = ("tolls", "alerts", "balances", "expenditures")
TITLES = {
    "tolls": "tolls",
    "alerts": "accident alerts",
    "balances": "balances",
    "expenditures": "expenditures",
}


@dataclass(frozen=True)
class Lane:
    """One direction of an expressway: the speed of each segment, None without cars."""

    xway: int
    dir: int
    speeds: Sequence[float | None]
    accidents: frozenset[int] = frozenset()  # segments


@dataclass(frozen=True)
class Responses:
    """How fast one output has been answered so far."""

    count: int = 0
    average_s: float = 0.0
    worst_s: float = 0.0


@dataclass(frozen=True)
class ScreenQuestion:
    """A one-time question about the past, and its answer."""

    title: str
    answer: str
    took_ms: float
    sql: str = ""


@dataclass(frozen=True)
class Toll:
    """What a car that enters a segment was told."""

    second: int
    vid: int
    speed: int | None  # of the segment's traffic
    toll: int


@dataclass(frozen=True)
class Moment:
    """How fast answers came at one moment: the slowest of each output since the moment before."""

    elapsed_s: float
    freshness_s: float | None
    slowest_s: Mapping[str, float]


@dataclass(frozen=True)
class RoadState:
    """All that the screen shows."""

    second: int = 0  # simulated
    elapsed_s: float = 0.0  # real
    duration_s: float | None = 60.0  # real; None: until stopped
    speed: float | None = 1.0
    expressways: int = 1
    reports: int = 0
    reports_per_second: float = 0.0
    recent_rates: Sequence[float] = ()
    tolls_charged: int = 0
    freshness_s: float | None = None  # how old the newest second is that can be queried
    lanes: Sequence[Lane] = ()
    responses: Mapping[str, Responses] = field(default_factory=dict)
    questions: Sequence[ScreenQuestion] = ()
    tolls: Sequence[Toll] = ()  # the highest of some seconds, the newest last
    moments: Sequence[Moment] = ()  # the newest last
    address: str = ""  # of the browser's page
    watched: bool = False  # in a browser: it goes on until nobody looks


@dataclass(frozen=True)
class ScreenStep:
    """What is done before traffic flows, and when it began."""

    name: str
    began_s: float


def starting(elapsed_s: float, steps: Sequence[ScreenStep], address: str = "") -> RenderableType:
    """The screen until the first report is there."""
    text = Text()
    text.append("Linear Road", style="bold cyan")
    text.append("  the toll system of an expressway, in SQL")
    text.append(f"   starting, {elapsed_s:.0f} s\n", style="dim")
    ends = [step.began_s for step in steps[1:]]
    for number, step in enumerate(steps):
        done = number < len(ends)
        took = (ends[number] if done else elapsed_s) - step.began_s
        text.append("  ✓ " if done else "  … ", style="green" if done else "yellow")
        text.append(f"{step.name:<24}{took:6.1f} s\n", style="dim" if done else "")
    return Group(text, browser_line(address)) if address else text


def browser_line(address: str) -> Text:
    """Where the same is seen in a browser."""
    text = Text("in the browser: ", style="dim", no_wrap=True, overflow="fold")
    return text.append(address, style=f"bold not dim cyan link {address}")


def line(state: RoadState) -> str:
    """The figures in one line, for where there is no terminal."""
    answers = sum(found.count for found in state.responses.values())
    accidents = sum(len(lane.accidents) for lane in state.lanes)
    return (
        f"{state.elapsed_s:5.1f} s  road time {clock(state.second)}: {state.reports:,} reports"
        f" ({state.reports_per_second:,.0f}/s), {state.tolls_charged:,} tolls charged,"
        f" {accidents} accidents, {answers:,} answers (average {_seconds(average_s(state))},"
        f" worst {_seconds(worst_s(state))}), freshness {_seconds(state.freshness_s or 0.0)}"
    )


def question_line(question: ScreenQuestion) -> str:
    """A question in one line."""
    took = _seconds(question.took_ms / 1000)
    return f"         {question.title}, {took}: {question.sql}\n         {question.answer}"


def average_s(state: RoadState) -> float:
    """The average response time of all outputs."""
    found = state.responses.values()
    return sum(f.average_s * f.count for f in found) / max(sum(f.count for f in found), 1)


def worst_s(state: RoadState) -> float:
    """The worst response time of all outputs."""
    return max((found.worst_s for found in state.responses.values()), default=0.0)


def screen(state: RoadState) -> RenderableType:
    """The whole screen."""
    parts: list[RenderableType] = [_heading(state), _road(state), _figures(state)]
    if state.address:
        parts.insert(1, browser_line(state.address))
    if state.questions:
        parts.append(_questions(state))
    return Group(*parts)


def summary(state: RoadState) -> RenderableType:
    """What is printed when the demo is over."""
    worst = worst_s(state)
    answers = sum(found.count for found in state.responses.values())
    kept = "all" if worst <= DEADLINE_S else "not all"
    text = Text()
    text.append(f"{state.reports:,} reports", style="bold")
    text.append(f" in {state.elapsed_s:.0f} s, every one stored and synced to disk; ")
    text.append(f"{answers:,} answers", style="bold")
    text.append(f", {kept} within {DEADLINE_S:.0f} s: the slowest took {_seconds(worst)}.")
    return Group(text, _response_table(state))


def _heading(state: RoadState) -> Text:
    text = Text()
    text.append("Linear Road", style="bold cyan")
    roads = "1 expressway" if state.expressways == 1 else f"{state.expressways} expressways"
    pace = "as fast as possible" if state.speed is None else f"{state.speed:g} × real time"
    text.append(f"  {roads}, {pace}   road time {clock(state.second)}")
    if state.watched:
        text.append(f"   {state.elapsed_s:.0f} s, until the page is closed", style="dim")
    elif state.duration_s is None:
        text.append(f"   {state.elapsed_s:.0f} s, Ctrl-C ends it", style="dim")
    else:
        text.append(f"   {state.elapsed_s:.0f} of {state.duration_s:.0f} s", style="dim")
    return text


# The road


def _road(state: RoadState) -> RenderableType:
    shown = [lane for lane in state.lanes if lane.xway < STRIPS]
    parts: list[RenderableType] = [_Strip(lane) for lane in shown] or [Text("no cars yet")]
    if shown:
        parts.insert(1, _Axis())
    parts.append(_legend())
    title = "average speed by mile, last 30 s on the road"
    if state.expressways > STRIPS:
        title += f" (first {STRIPS} expressways)"
    return Panel(Group(*parts), title=title, title_align="left", border_style="dim")


def _legend() -> Text:
    text = Text(" " * LABEL)
    least = 0.0
    for limit, colour in COLOURS:
        words = f"{least:.0f} mph and more" if limit == float("inf") else f"{least:.0f}–{limit:.0f}"
        text.append("■ ", style=colour)
        text.append(f"{words}  ", style="dim")
        least = limit
    text.append(" ✖ ", style=CRASH)
    text.append(" accident", style="dim")
    return text


class _Strip:
    """A direction of the road as one line, as wide as there is room for."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lane = self._lane
        cells = _cells(options)
        arrow = "→" if lane.dir == 0 else "←"
        yield Segment(f"{f'x{lane.xway} {arrow}':<{LABEL}}")
        yield from map(_cell, strip_cells(lane, cells))
        yield Segment(f" {_mean(lane.speeds)}\n")


class _Axis:
    """The miles below a strip."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = _cells(options)
        marks = " " * cells
        for mile in range(0, SEGMENTS, MARKS):
            place, mark = mile * cells // SEGMENTS, f"{mile}" if mile else "0 miles"
            marks = (marks[:place] + mark + marks[place + len(mark) :])[:cells]
        yield Segment(" " * LABEL + marks + "\n", EMPTY)


def _cells(options: ConsoleOptions) -> int:
    return max(min(SEGMENTS, options.max_width - 2 * LABEL), 1)


@dataclass(frozen=True)
class Cell:
    """One character of a strip."""

    speed: float | None
    accident: bool


def strip_cells(lane: Lane, count: int) -> Iterator[Cell]:
    """The segments in so many cells; a cell of several shows the slowest of them."""
    for number in range(count):
        first, end = number * SEGMENTS // count, (number + 1) * SEGMENTS // count
        known = [speed for speed in lane.speeds[first:end] if speed is not None]
        crashed = any(segment in lane.accidents for segment in range(first, end))
        yield Cell(min(known, default=None), crashed)


def _cell(cell: Cell) -> Segment:
    if cell.accident:
        return Segment("✖", CRASH)
    if cell.speed is None:
        return Segment("·", EMPTY)
    height = min(int(cell.speed / TOP_SPEED * len(BARS)), len(BARS) - 1)
    colour = colour_of(cell.speed)
    return Segment(BARS[height], Style(color=colour, bgcolor=SHADES[colour]))


def colour_of(speed: float) -> str:
    """Red where traffic stands, green where it flows; below 40 there may be tolls."""
    return next(colour for limit, colour in COLOURS if speed < limit)


def _mean(speeds: Sequence[float | None]) -> str:
    known = [speed for speed in speeds if speed is not None]
    return f"{sum(known) / len(known):.0f} mph" if known else ""


# Figures


def _figures(state: RoadState) -> RenderableType:
    table = Table.grid(padding=(0, 3), expand=False)
    table.add_row(_totals(state), _response_table(state))
    return table


def _totals(state: RoadState) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 1))
    table.add_column(style="dim")
    table.add_column(justify="right", style="bold")
    fresh = "" if state.freshness_s is None else _seconds(state.freshness_s)
    table.add_row("reports", f"{state.reports:,}")
    rate = Text(sparkline(state.recent_rates, 8), style="cyan")
    rate.append(f" {state.reports_per_second:,.0f}", style="bold white")
    table.add_row("reports/s", rate)
    table.add_row("tolls charged", f"{state.tolls_charged:,}")
    table.add_row("accidents now", str(sum(len(lane.accidents) for lane in state.lanes)))
    table.add_row("freshness", fresh)
    return table


def _response_table(state: RoadState) -> Table:
    table = Table(box=None, padding=(0, 1))
    table.add_column("answers", header_style="dim")
    for title in ("count", "average", "worst"):
        table.add_column(title, justify="right", header_style="dim")
    for output in OUTPUTS:
        found = state.responses.get(output, Responses())
        late = found.worst_s > DEADLINE_S
        worst = Text(_seconds(found.worst_s), style="bold red" if late else "")
        figures = [_seconds(found.average_s), worst] if found.count else ["", ""]
        table.add_row(TITLES[output], f"{found.count:,}", *figures)
    return table


def sparkline(values: Sequence[float], width: int = 14) -> str:
    """The last values as bars, the largest of them the highest."""
    shown = list(values)[-width:]
    top = max(shown, default=0.0)
    if top <= 0:
        return ""
    return "".join(BARS[min(int(v / top * len(BARS)), len(BARS) - 1)] for v in shown)


def _questions(state: RoadState) -> RenderableType:
    parts: list[RenderableType] = []
    for question in state.questions[-QUESTIONS:]:
        asked = Text(no_wrap=True, overflow="ellipsis")
        asked.append(question.title, style="green")
        asked.append(f"  {question.sql}", style="dim")
        head = Table.grid(padding=(0, 1), expand=True)
        head.add_column(ratio=1)
        head.add_column(justify="right", no_wrap=True)
        head.add_row(asked, Text(_seconds(question.took_ms / 1000), style="bold"))
        parts += [head, Text(question.answer)]
    return Panel(
        Group(*parts),
        title="asked meanwhile, about the past",
        title_align="left",
        border_style="dim",
    )


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"


def clock(second: int) -> str:
    """A second of the road as hours, minutes and seconds."""
    return f"{second // 3600}:{second // 60 % 60:02}:{second % 60:02}"
