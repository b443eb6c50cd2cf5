"""Drawing cells of text as a grid or one below the other.

Knows widths of characters, borders and cutting; knows nothing of values and types. Without
`Look.unicode` everything drawn is ASCII, without `Look.colour` no escape sequence is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

NULL = "NULL"
LEAST_WIDTH = 8
"""A column is cut to no less than this many characters; if that is not enough, rows are drawn
one below the other."""

BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True)
class Look:
    """What the place of output can show; no width means that nothing is cut."""

    width: int | None = None
    colour: bool = False
    unicode: bool = False

    @property
    def bar(self) -> str:
        """The line between columns."""
        return "│" if self.unicode else "|"

    @property
    def rule(self) -> str:
        """The line under the header."""
        return "─" if self.unicode else "-"

    @property
    def cross(self) -> str:
        """Where both lines meet."""
        return "┼" if self.unicode else "+"

    @property
    def more(self) -> str:
        """What stands for the rest of a value."""
        return "…" if self.unicode else "..."

    def styled(self, text: str, style: str) -> str:
        """The text in a style, if there are colours."""
        return f"{style}{text}{PLAIN}" if self.colour else text


@dataclass(frozen=True)
class GridColumn:
    """A column of cells; None is NULL."""

    name: str
    cells: Sequence[str | None]
    right: bool = False
    cut: bool = True

    def natural_width(self) -> int:
        """The width of its widest line."""
        lines = (line for cell in self.cells for line in _lines(cell))
        return max(width(self.name), max(map(width, lines), default=0))


def width(text: str) -> int:
    """How many places a text takes on the screen."""
    return len(text) if text.isascii() else cell_len(text)


def _lines(cell: str | None) -> list[str]:
    return [NULL] if cell is None else cell.split("\n")


def grid(columns: Sequence[GridColumn], look: Look) -> Iterator[str]:
    """Header, rule and rows; one below the other if the screen is too narrow for that."""
    natural = [column.natural_width() for column in columns]
    least = [_least(c, wide) for c, wide in zip(columns, natural, strict=True)]
    widths = natural
    if look.width is not None and len(columns) > 1:
        room = look.width - 3 * (len(columns) - 1) - 2
        if sum(least) > room:
            return vertical(columns, look)
        widths = fitted(natural, least, room)
    return _grid_lines(columns, widths, look)


def _least(column: GridColumn, natural: int) -> int:
    """How far a column may be cut: enough for most of its name, and not at all for numbers."""
    if not column.cut:
        return natural
    return min(natural, max(LEAST_WIDTH, min(width(column.name), 2 * LEAST_WIDTH)))


def fitted(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths that fit the room: all columns above one common width are cut to it."""
    if sum(natural) <= room:
        return list(natural)
    low, high = 0, max(natural)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(_level(natural, least, middle)) <= room:
            low = middle
        else:
            high = middle - 1
    widths = _level(natural, least, low)
    spare = room - sum(widths)
    for index, wide in enumerate(natural):
        if spare > 0 and widths[index] < wide:
            widths[index] += 1
            spare -= 1
    return widths


def _level(natural: Sequence[int], least: Sequence[int], level: int) -> list[int]:
    return [max(low, min(wide, level)) for wide, low in zip(natural, least, strict=True)]


def _grid_lines(columns: Sequence[GridColumn], widths: Sequence[int], look: Look) -> Iterator[str]:
    names = [
        look.styled(_placed(column.name, wide, column.right, look), BOLD)
        for column, wide in zip(columns, widths, strict=True)
    ]
    bar = look.styled(look.bar, DIM)
    yield f" {f' {bar} '.join(names)}".rstrip()
    rules = (look.rule * (wide + 2) for wide in widths)
    yield look.styled(look.cross.join(rules), DIM)
    for row in zip(*(column.cells for column in columns), strict=True):
        yield from _row_lines(row, columns, widths, look, f" {bar} ")


def _row_lines(
    row: tuple[str | None, ...],
    columns: Sequence[GridColumn],
    widths: Sequence[int],
    look: Look,
    between: str,
) -> Iterator[str]:
    """The lines of one row: more than one if a cell has line breaks."""
    stacks = [_lines(cell) for cell in row]
    for level in range(max(map(len, stacks))):
        parts = []
        for cell, stack, column, wide in zip(row, stacks, columns, widths, strict=True):
            line = stack[level] if level < len(stack) else ""
            text = _placed(line, wide, column.right, look)
            parts.append(look.styled(text, DIM) if cell is None else text)
        yield f" {between.join(parts)}".rstrip()


def _placed(text: str, wide: int, right: bool, look: Look) -> str:
    """The text cut or padded to a width."""
    room = wide - width(text)
    if room < 0:
        return shortened(text, wide, look)
    return " " * room + text if right else text + " " * room


def shortened(text: str, wide: int, look: Look) -> str:
    """The text cut to a width, with a sign that there is more."""
    if width(text) <= wide:
        return text
    return set_cell_size(text, max(wide - len(look.more), 0)) + look.more


def vertical(columns: Sequence[GridColumn], look: Look) -> Iterator[str]:
    """One line per value, a heading per row; values are shown in full."""
    head = max((width(column.name) for column in columns), default=0)
    bar = look.styled(look.bar, DIM)
    for number, row in enumerate(zip(*(column.cells for column in columns), strict=True), 1):
        heading = f"{look.rule * 2} row {number} "
        yield look.styled(heading + look.rule * max(head + 10 - len(heading), 2), DIM)
        for column, cell in zip(columns, row, strict=True):
            name = look.styled(_placed(column.name, head, False, look), BOLD)
            for level, line in enumerate(_lines(cell)):
                text = look.styled(line, DIM) if cell is None else line
                yield f"{name if level == 0 else ' ' * head} {bar} {text}".rstrip()
