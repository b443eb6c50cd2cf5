"""`headwater bench NAME`: runs a benchmark of `benchmarks/NAME/`, which lies beside the package."""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from headwater.errors import Error

FOLDER = Path(__file__).parents[2] / "benchmarks"


def names() -> list[str]:
    """The benchmarks there are."""
    return sorted(path.parent.name for path in FOLDER.glob("*/run.py"))


def main(name: str | None, quick: bool, parts: Sequence[str] = ()) -> int:
    """Runs one benchmark, or all of them and writes their page; 0 when all answers were right."""
    found = names()
    if not found:
        raise Error("the benchmarks are not installed", hint="clone the repository to run them")
    if name is not None and name not in found:
        raise Error(f"there is no benchmark {name}", hint="benchmarks: " + ", ".join(found))
    sys.path.insert(0, str(FOLDER.parent))
    _check_parts(name, parts)
    asked = [name] if name is not None else found
    worst = 0
    for place, one in enumerate(asked):
        with _naming(asked[place:]):
            worst = max(worst, _one(one, quick, parts))
    if name is None:
        results = importlib.import_module("benchmarks.results")
        print(f"\nall results: {results.write(found)}")
    return worst


def _one(name: str, quick: bool, parts: Sequence[str]) -> int:
    """Runs one benchmark and keeps what it printed."""
    module = importlib.import_module(f"benchmarks.{name}.run")
    began = time.monotonic()
    worst = int(module.main(quick, parts) if parts else module.main(quick))
    importlib.import_module("benchmarks.report").keep_tables(name, time.monotonic() - began)
    return worst


@contextlib.contextmanager
def _naming(left: Sequence[str]) -> Iterator[None]:
    """Says what is still to run where it is stopped: by Ctrl-C, by `kill`, or by an error."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except BaseException:
        print(f"\nstopped in {left[0]}; still to run: {', '.join(left)}", file=sys.stderr)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_parts(name: str | None, parts: Sequence[str]) -> None:
    """Some parts can be run alone, of one benchmark that has parts."""
    module = importlib.import_module(f"benchmarks.{name}.run") if name and parts else None
    known: Sequence[str] = getattr(module, "PARTS", ())
    unknown = [part for part in parts if part not in known]
    if unknown:
        which = f"benchmark {name}" if name else "all benchmarks together"
        hint = "parts: " + ", ".join(known) if known else "run it without --part"
        raise Error(f"there is no part {', '.join(unknown)} of {which}", hint=hint)
