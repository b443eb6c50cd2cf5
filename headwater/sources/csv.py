"""`csv:folder`: CSV files. With `header = true` columns go by name, else by their place.

Spark itself takes a given schema by place whatever the header says; so the header of the first file
is read here, and Spark refuses a file whose header differs.
"""

from __future__ import annotations

import csv

import pyarrow as pa

from headwater.errors import DataError
from headwater.sources.files import FileKind, first_file
from headwater.sources.runner import SourceFeed


class Csv(FileKind):
    """CSV files; a line that does not parse stops the source unless `mode` says otherwise."""

    format = "csv"
    defaults = {"mode": "FAILFAST", "enforceSchema": "false"}  # noqa: RUF012

    def ready(self, feed: SourceFeed) -> bool:
        """With a header, the first file tells the columns."""
        return not _has_header(feed) or "://" in feed.address.rest or _header(feed) is not None

    def columns(self, feed: SourceFeed) -> pa.Schema:
        """The header's columns; those that the table does not have are read as text."""
        schema = feed.table.definition.schema
        header = _header(feed) if _has_header(feed) and "://" not in feed.address.rest else None
        if header is None:
            return schema
        known = {field.name.casefold(): field for field in schema}
        fields = [known.get(name.casefold(), pa.field(name, pa.string())) for name in header]
        return pa.schema([f.with_name(name) for f, name in zip(fields, header, strict=True)])


def _has_header(feed: SourceFeed) -> bool:
    return any(n.lower() == "header" and v == "true" for n, v in feed.options.spark.items())


def _header(feed: SourceFeed) -> list[str] | None:
    """The names in the first line of the first file; None while there is none."""
    path = first_file(feed.address.rest)
    if path is None:
        return None
    options = {name.lower(): value for name, value in feed.options.spark.items()}
    separator = options.get("sep", options.get("delimiter", ","))
    quote = options.get("quote", '"') or None
    try:
        with open(path, encoding=options.get("encoding", "utf-8-sig"), newline="") as file:
            row = next(csv.reader(file, delimiter=separator, quotechar=quote), None)
    except (OSError, UnicodeDecodeError, csv.Error, TypeError, LookupError) as error:
        raise DataError(f"the header of {path} cannot be read", detail=str(error)) from error
    return None if row is None else [name.strip() for name in row]
