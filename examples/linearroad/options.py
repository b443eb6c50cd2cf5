"""What WITH (…) says of `demo:linearroad`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.errors import SettingError
from headwater.sql.duration import Duration
from headwater.sql.names import nearest

from .traffic.scenario import HOURS_3, Scenario

FAST, ENDLESS = "fast", "endless"
COUNTS = ("expressways", "seed", "segments")
TIMES = ("duration", "start", "growth", "accident", "batch")
NUMBERS = ("speed", "accidents_per_hour")
LONGEST_BATCH_S = 3600


@dataclass(frozen=True)
class Ride:
    """A scenario and how it is played."""

    scenario: Scenario
    speed: float | None = 1.0  # simulated seconds per second; None: as fast as the table takes them
    batch_s: int = 1  # simulated seconds of one insert


def parse_ride(given: Mapping[str, object]) -> Ride:
    """The options, checked."""
    found = {name: _value(name, value) for name, value in given.items()}
    speed, batch = found.pop("speed", 1.0), found.pop("batch", 1)
    if speed is not None and speed <= 0:
        raise SettingError("speed is a number above zero, or 'fast'")
    if not 1 <= batch <= LONGEST_BATCH_S:
        raise SettingError(f"batch is 1 to {LONGEST_BATCH_S} seconds")
    fields = {f"{n}_s" if n in TIMES else n: value for n, value in found.items()}
    return Ride(Scenario(**{"duration_s": HOURS_3, **fields}), speed, batch)


def _value(name: str, value: object) -> Any:
    if name == "speed" and value == FAST:
        return None
    if name == "duration" and value == ENDLESS:
        return None
    if name in TIMES:
        return _seconds(name, value)
    if name not in COUNTS + NUMBERS:
        near = nearest(name, COUNTS + TIMES + NUMBERS)
        options = ", ".join(sorted(COUNTS + TIMES + NUMBERS))
        raise SettingError(
            f"there is no option {name} of demo:linearroad",
            hint=f"did you mean {near}?" if near else f"options: {options}",
        )
    wanted = int if name in COUNTS else (int, float)
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise SettingError(f"{name} is a{' whole' if name in COUNTS else ''} number, not {value!r}")
    return value


def _seconds(name: str, value: object) -> int:
    """Whole seconds, given as an interval or a number."""
    if isinstance(value, Duration) and value.microseconds % 1_000_000 == 0:
        return value.microseconds // 1_000_000
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise SettingError(f"{name} is whole seconds", hint=f"{name} = INTERVAL '10' MINUTES")
