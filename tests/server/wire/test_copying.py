"""COPY over the wire: what goes out comes in again, and lines that do not fit are named."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import DataError, Error, OverloadError
from headwater.server.wire import copying
from headwater.server.wire.copying import IncomingRows
from headwater.sql import parser
from headwater.sql.statements.copy import Copy
from tests.server.frontend import replies_of

SCHEMA = pa.schema(
    [
        ("a", pa.int32()),
        ("b", pa.string()),
        ("c", pa.float64()),
        ("d", pa.timestamp("us", "UTC")),
        ("e", pa.bool_()),
        ("f", pa.binary()),
        ("g", pa.decimal128(10, 2)),
        ("h", pa.date32()),
    ]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
SPECIAL = st.sampled_from(
    ["", "\\N", "\\.", 'a"b', "x,y", "a|b|", "tab\there", "line\nend", "NULL", "\\"]
)
ROW = st.tuples(
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | TEXT | SPECIAL,
    st.none() | st.floats(allow_nan=False),
    st.none() | st.datetimes(dt.datetime(1, 1, 2)).map(lambda t: t.replace(tzinfo=dt.UTC)),
    st.none() | st.booleans(),
    st.none() | st.binary(max_size=4),
    st.none() | st.decimals(-(10**6), 10**6, places=2),
    st.none() | st.dates(),
)


def statement(text: str) -> Copy:
    found = parser.parse(text)
    assert isinstance(found, Copy)
    return found


def taken_in(text: str, data: bytes, schema: pa.Schema = SCHEMA, pieces: int = 7) -> pa.Table:
    """Data that comes in pieces, as rows."""
    incoming = IncomingRows(statement(text), schema, 1 << 20)
    for place in range(0, len(data), pieces):
        incoming.take(data[place : place + pieces])
        incoming.read()
    return incoming.rows()


@settings(deadline=None, max_examples=40)
@given(
    st.lists(ROW, min_size=1, max_size=5),
    st.sampled_from(["", " CSV", " CSV HEADER", " DELIMITER '|'", " CSV ESCAPE '!'"]),
)
def test_rows_come_back(rows: list[tuple[Any, ...]], options: str) -> None:
    """What COPY … TO STDOUT writes, one message a row, COPY … FROM STDIN reads to the same rows."""
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    table = pa.Table.from_arrays(columns, schema=SCHEMA)
    out = statement(f"COPY t TO STDOUT{options}")
    data = copying.out_header(out, SCHEMA.names) + copying.out_rows(out, table)
    messages = replies_of(data)
    assert len(messages) == len(rows) + ("HEADER" in options)
    assert {kind for kind, _ in messages} == {"d"}
    found = taken_in(f"COPY t FROM STDIN{options}", b"".join(body for _, body in messages))
    assert found.to_pylist() == table.to_pylist()


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.none() | TEXT | SPECIAL, min_size=1, max_size=6),
    st.sampled_from(["", " CSV", " CSV HEADER"]),
)
def test_a_single_column_comes_back(texts: list[str | None], options: str) -> None:
    r"""Empty lines, NULL, a value that is `\.` and a name with a comma: nothing is lost."""
    table = pa.table({'a,"b': pa.array(texts, pa.string())})
    out = statement(f"COPY t TO STDOUT{options}")
    data = copying.out_header(out, table.schema.names) + copying.out_rows(out, table)
    body = b"".join(body for _, body in replies_of(data))
    assert taken_in(f"COPY t FROM STDIN{options}", body, table.schema).to_pylist() == (
        table.to_pylist()
    )


def test_texts_of_other_tools() -> None:
    """Zones that are missing or short, other words for true, hexadecimal bytes, carriage returns."""
    data = b"1,x,1e3,2024-01-01,on,\\x61,1,2024-02-29\r\n2,,,2024-01-01 10:00:00+02,f,,,\r\n"
    found = taken_in("COPY t FROM STDIN CSV", data).to_pylist()
    assert found[0]["d"] == dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert found[1]["d"] == dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC)
    assert [row["e"] for row in found] == [True, False]
    assert [row["f"] for row in found] == [b"a", None]


TWO = pa.schema([("a", pa.int32()), ("b", pa.string())])


def test_the_end_marker_ends_the_rows() -> None:
    r"""What stands behind a line of `\.` is not read."""
    assert taken_in("COPY t FROM STDIN", b"1\tx\n\\.\nrubbish", TWO).num_rows == 1


@pytest.mark.parametrize(
    ("options", "data", "text"),
    [
        (" CSV", b'1,"x\n\\.\ny"\n', "x\n\\.\ny"),  # no end marker: it stands in quotes
        (" CSV HEADER", b'a,"b\nb"\n1,x\n', "x"),
        (" CSV ESCAPE '!'", b'1,"a!"\nb!!"\n', 'a"\nb!'),
        (" DELIMITER '|'", b"1|x\\|y\n", "x|y"),
        ("", b"1\t\\303\\244\\x21\n", "ä!"),  # bytes, not characters
        ("", b"1\ta\\Nb\n", "aNb"),
        ("", b"1\tx\\\ny\r\n", "x\ny"),
        ("", b"1\t" + b"x" * 2_000_000 + b"\n", "x" * 2_000_000),
        (" CSV", b'1,"' + b"x\n" * 700_000 + b'"\n', "x\n" * 700_000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_rows_as_postgresql_reads_them(options: str, data: bytes, text: str) -> None:
    """Values that hold line ends, end markers, delimiters and escapes, or are large."""
    schema, size = pa.schema([("a", pa.int32()), ("b", pa.string())]), max(7, len(data) // 50)
    incoming = IncomingRows(statement(f"COPY t FROM STDIN{options}"), schema, 1 << 30)
    for place in range(0, len(data), size):
        incoming.take(data[place : place + size])
        incoming.read()
    assert incoming.rows().to_pylist() == [{"a": 1, "b": text}]


def test_a_row_that_never_ends() -> None:
    """What waits for the end of its row is bounded as well."""
    incoming = IncomingRows(statement("COPY t FROM STDIN CSV"), TWO, 1000)
    incoming.take(b'1,"' + b"x" * 2000)
    with pytest.raises(OverloadError, match="memory"):
        incoming.read()


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ("", b"1\tx\n2\ty\rz\n"),
        (" CSV", b'1,x\n2,"y\n3,z\n'),
        ("", b"1\tx\nzwei\ty\n"),
        ("", b"1\tx\n2\n"),
        (" CSV", b"1,x\n2,y,z\n"),
        ("", b"1\tx\n9\\x\ty\n"),
    ],
)
def test_lines_that_do_not_fit(options: str, data: bytes) -> None:
    """A line with a wrong value or number of values is an error that says where, and what to do."""
    with pytest.raises(DataError, match="line 2") as caught:
        taken_in(f"COPY t FROM STDIN{options}", data, TWO, 1000)
    assert caught.value.sqlstate == "22P04"


def test_more_rows_than_are_kept() -> None:
    """A COPY beyond its bound is refused, with the name of the bound."""
    incoming = IncomingRows(statement("COPY t FROM STDIN"), TWO, 1000)
    incoming.take(b"1\tsome text\n" * 1000)
    with pytest.raises(OverloadError, match="memory"):
        incoming.read()


def test_parquet_does_not_come_over_the_wire() -> None:
    """COPY … FROM STDIN reads text and CSV only."""
    with pytest.raises(Error, match="text and CSV"):
        IncomingRows(statement("COPY t FROM STDIN PARQUET"), TWO, 1000)
