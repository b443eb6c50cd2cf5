"""What the sources of files have in common: a folder that files are put into."""

from __future__ import annotations

import glob
import re
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import SettingError
from headwater.sources.frames import fitted, spark_schema
from headwater.sources.runner import SourceFeed
from headwater.sources.stream import StreamKind
from headwater.storage.local_path import local_path, scheme_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PATTERN = re.compile(r"[*?\[{]")


def absolute(path: str) -> str:
    """The path of a folder, or a pattern of folders, that does not depend on where we run.

    Addresses of other file systems are Spark's to understand.
    """
    if scheme_of(path) not in (None, "file"):
        return path
    return str(local_path(path, "a folder", "").expanduser().absolute())


def check_folder(path: str) -> None:
    """SettingError if a local path is no folder."""
    if scheme_of(path) is not None or _PATTERN.search(path):
        return
    if Path(path).is_file():
        raise SettingError(
            f"{path} is a file, a source reads a folder",
            hint="give the folder; COPY t FROM '…' CSV takes in one file",
        )
    if not Path(path).is_dir():
        raise SettingError(
            f"the folder {path} does not exist", sqlstate="58P01", hint="make it first"
        )


def first_file(path: str) -> Path | None:
    """A file that is in a local folder now, the first by name; Spark skips `.` and `_` names."""
    places = glob.glob(path) if _PATTERN.search(path) else [path]
    files = []
    for place in map(Path, places):
        inside = place.iterdir() if place.is_dir() else [place]
        files += [f for f in inside if f.is_file() and not f.name.startswith((".", "_"))]
    return min(files, default=None)


class FileKind(StreamKind):
    """How Spark reads one format of files."""

    format: str
    defaults: dict[str, str]

    @abstractmethod
    def columns(self, feed: SourceFeed) -> pa.Schema:
        """The columns to read, with the table's types."""

    def frame(self, session: SparkSession, feed: SourceFeed) -> DataFrame:
        """The streaming frame, with the table's columns."""
        options = feed.options
        reader = session.readStream.format(self.format).schema(spark_schema(self.columns(feed)))
        reader = reader.option("maxFilesPerTrigger", options.max_files_per_trigger)
        lower = {name.lower() for name in options.spark}
        for name, value in self.defaults.items():
            if name.lower() not in lower:
                reader = reader.option(name, value)
        for name, value in options.spark.items():
            reader = reader.option(name, value)
        return fitted(reader.load(feed.address.rest), feed.table.definition)
