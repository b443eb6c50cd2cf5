"""`demo:name`: the source that an example brings along.

An example that feeds a table has a module `source` with a `SOURCE`; which examples there are, and what
theirs reads, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headwater import examples
from headwater.errors import SettingError
from headwater.sources.runner import SourceFeed, SourceRunner, SourceSurroundings


@dataclass(frozen=True)
class DemoSource:
    """What an example's source checks before it is made, and its run."""

    check_options: Callable[[Mapping[str, object]], object]
    check_columns: Callable[[pa.Schema], None]
    runner: Callable[[SourceFeed, SourceSurroundings], SourceRunner]


def demo_source(name: str) -> DemoSource:
    """The source of an example."""
    known = examples.names()
    if name.lower() not in known:
        raise SettingError(
            f"there is no demo named {name!r}",
            hint="write " + " or ".join(f"'demo:{one}'" for one in known),
        )
    found: DemoSource = examples.load(name.lower(), "source").SOURCE
    return found


def demo_runner(feed: SourceFeed, around: SourceSurroundings) -> SourceRunner:
    """The run of an example's source."""
    return demo_source(feed.address.rest).runner(feed, around)
