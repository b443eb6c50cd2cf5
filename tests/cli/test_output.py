"""Result formats, with the values that are easy to get wrong."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from headwater.cli.grid import GridColumn, Look, fitted, grid, width
from headwater.cli.output import Footer, distinct, duration, render
from headwater.values import json_of, python_values, safe, text_of

UTC_TIME = pa.timestamp("us", tz="UTC")


def lines(table: pa.Table, format_: str = "table", look: Look | None = None) -> list[str]:
    return list(render(table, format_, look or Look()))


def one(value: object, type_: pa.DataType) -> tuple[str, object, str]:
    """The value as table text, JSON and CSV."""
    [read] = python_values(pa.chunked_array([pa.array([value], type_)]))
    return text_of(type_)(read), json_of(type_)(read), text_of(type_, machine=True)(read)


@pytest.mark.parametrize(
    ("value", "type_", "shown", "as_json", "as_csv"),
    [
        (True, pa.bool_(), "true", True, "true"),
        (2**63 - 1, pa.int64(), "9223372036854775807", 2**63 - 1, "9223372036854775807"),
        (0.1, pa.float32(), "0.1", 0.1, "0.1"),
        (1e300, pa.float64(), "1e+300", 1e300, "1e+300"),
        (float("nan"), pa.float64(), "NaN", "NaN", "NaN"),
        (float("-inf"), pa.float32(), "-Infinity", "-Infinity", "-Infinity"),
        (-0.0, pa.float64(), "-0.0", -0.0, "-0.0"),
        (Decimal("1E+3"), pa.decimal128(10, 2), "1000.00", "1000.00", "1000.00"),
        (b"\x00\xff", pa.binary(), "0x00ff", "AP8=", "AP8="),
        (date(2026, 1, 2), pa.date32(), "2026-01-02", "2026-01-02", "2026-01-02"),
        (
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            UTC_TIME,
            "2026-01-02 03:04:05Z",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05Z",
        ),
        (
            datetime(2026, 1, 2, 3, 4, 5, 1),
            pa.timestamp("us"),
            "2026-01-02 03:04:05.000001",
            "2026-01-02T03:04:05.000001",
            "2026-01-02T03:04:05.000001",
        ),
        (timedelta(days=-1), pa.duration("us"), "-1 day 00:00:00", *["-1 day 00:00:00"] * 2),
        (timedelta(0, 3.5), pa.duration("us"), "00:00:03.5", *["00:00:03.5"] * 2),
        ([1.5, None], pa.list_(pa.float64()), "[1.5, null]", [1.5, None], "[1.5, null]"),
        ([(1, "é")], pa.map_(pa.int32(), pa.string()), '{"1": "é"}', {"1": "é"}, '{"1": "é"}'),
        (
            {"a": None, "b": Decimal("1.0")},
            pa.struct([("a", pa.int8()), ("b", pa.decimal128(3, 1))]),
            '{"a": null, "b": "1.0"}',
            {"a": None, "b": "1.0"},
            '{"a": null, "b": "1.0"}',
        ),
    ],
)
def test_value(value: object, type_: pa.DataType, shown: str, as_json: object, as_csv: str) -> None:
    assert one(value, type_) == (shown, as_json, as_csv)


def test_milliseconds_where_they_suffice() -> None:
    shown, _, _ = one(datetime(2026, 1, 1, 0, 0, 0, 500_000), pa.timestamp("us"))
    assert shown.endswith("00:00:00.500")


def test_times_beyond_pythons_years() -> None:
    table = pa.table({"t": pa.array([2**62 // 10, None], UTC_TIME)})
    assert "16583-11-07" in lines(table)[2]
    assert json.loads(lines(table, "json")[0])["t"].startswith("16583-11-07")
    far = {"l": [2**62 // 10], "m": [("k", 2**62 // 10)]}
    type_ = pa.struct([("l", pa.list_(UTC_TIME)), ("m", pa.map_(pa.string(), UTC_TIME))])
    record = json.loads(lines(pa.table({"t": pa.array([far], type_)}), "json")[0])["t"]
    assert record["l"][0].startswith("16583-11-07")
    assert record["m"]["k"] == record["l"][0]


def test_years_beyond_those_of_arrow_keep_their_digits() -> None:
    """Arrow keeps a year in 16 bits: 67562 came out as 2026."""
    far = 65_592 * 31_556_952_000_000
    assert python_values(pa.array([far, None], UTC_TIME)) == ["67562-01-01 01:26:24.000000Z", None]
    days = pa.array([40_000_000, -719_163, -800_000], pa.date32())
    assert python_values(days) == ["111486-04-13", "0000-12-31", "-221-09-04"]


def test_table_plain() -> None:
    table = pa.table({"id": [1, 20, None], "name": ["Ada", "", None]})
    assert lines(table) == [
        "   id | name",
        "------+------",
        "    1 | Ada",
        "   20 |",
        " NULL | NULL",
    ]


def test_table_on_a_terminal() -> None:
    table = pa.table({"id": [1], "name": pa.array([None], pa.string())})
    head, rule, row = lines(table, look=Look(80, colour=True, unicode=True))
    assert "\x1b[1mid" in head
    assert "─┼─" in rule
    assert "\x1b[2mNULL\x1b[0m" in row


def test_plain_output_is_ascii() -> None:
    text = "\n".join(lines(pa.table({"a": [1], "b": ["x" * 500]})))
    assert text.isascii()
    assert "\x1b" not in text
    assert "x" * 500 in text


def test_wide_characters_line_up() -> None:
    table = pa.table({"s": ["日本語", "abc", "e\u0301"], "n": [1, 2, 3]})
    widths = {width(line) for line in lines(table, look=Look(80, unicode=True))[2:]}
    assert len(widths) == 1


def test_long_values_are_cut_but_numbers_are_not() -> None:
    table = pa.table({"n": [10**17], "s": ["日" * 100]})
    shown = lines(table, look=Look(40, unicode=True))
    assert str(10**17) in shown[2]
    assert shown[2].endswith("…")
    assert max(width(line) for line in shown) <= 40


def test_too_many_columns_stand_below_each_other() -> None:
    table = pa.table({f"column_{i}": [i] for i in range(20)})
    shown = lines(table, look=Look(60, unicode=True))
    assert shown[0].startswith("── row 1")
    assert shown[20] == "column_19 │ 19"


def test_a_single_column_is_never_cut() -> None:
    shown = lines(pa.table({"plan": ["scan\n" + "x" * 200]}), look=Look(40, unicode=True))
    assert shown[2:] == [" scan", " " + "x" * 200]


def test_terminal_codes_in_values_do_nothing() -> None:
    shown = "\n".join(lines(pa.table({"s": ["\x1b[31mred\x07\t\u202e"]})))
    assert "\\x1b[31mred\\x07\\t\\u202e" in shown
    assert safe("plain é 日") == "plain é 日"


@pytest.mark.parametrize("format_", ["table", "csv", "json", "vertical"])
def test_empty_result_and_no_columns(format_: str) -> None:
    empty = pa.table({"a": pa.array([], pa.int32()), "b": pa.array([], pa.string())})
    expected = {"table": [" a | b", "---+---"], "csv": ["a,b"], "json": [], "vertical": []}
    assert lines(empty, format_) == expected[format_]
    no_columns = pa.table({"a": [1, 2]}).select([])
    assert lines(no_columns, format_) in ([], ["", "", ""], ["{}", "{}"])


def test_csv_reads_back() -> None:
    texts = ['a"b', "c,d", "e\r\nf", " lead", "", "plain"]
    table = pa.table({"x,y": texts, "n": list(range(6))})
    text = "\n".join(lines(table, "csv"))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0] == ["x,y", "n"]
    assert [row[0] for row in rows[1:]] == texts


def test_csv_tells_null_from_empty() -> None:
    table = pa.table({"a": ["", None], "b": [1, None]})
    assert lines(table, "csv")[1:] == ['"",1', ","]


def test_json_is_one_object_per_line() -> None:
    table = pa.table([[1, None], ["x\ny", "é"]], names=["a", "a"])
    shown = lines(table, "json")
    assert [json.loads(line) for line in shown] == [
        {"a": 1, "a_2": "x\ny"},
        {"a": None, "a_2": "é"},
    ]


def test_json_is_strict() -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    table = pa.table({"f": [float("nan")], "l": [[float("inf")]]})
    assert json.loads(lines(table, "json")[0], parse_constant=refuse) == {
        "f": "NaN",
        "l": ["Infinity"],
    }


def test_names_are_made_distinct() -> None:
    assert distinct(["a", "a", "a_2", "b"]) == ["a", "a_3", "a_2", "b"]


def test_widths_fit_exactly() -> None:
    assert fitted([5, 100, 60], [5, 8, 8], 65) == [5, 30, 30]
    assert fitted([5, 6], [5, 6], 80) == [5, 6]
    assert list(grid([GridColumn("a", [])], Look())) == [" a", "---"]


def test_footers() -> None:
    assert Footer("SELECT", True, 1).text() == "(1 row)"
    assert Footer("SELECT", True, 3, 3, 0.012).text() == "(3 rows, 12 ms)"
    assert Footer("SELECT", True, 900, 200).text().startswith("(the first 200 of 900 rows")
    assert Footer("INSERT", False, 3, None, 1.5).text() == "INSERT 3 (1.50 s)"
    assert Footer("CREATE TABLE", False, None).text() == "CREATE TABLE"


def test_durations() -> None:
    spans = [0.0012, 0.0995, 9.994, 59.9, 61, 3700]
    assert [duration(s) for s in spans] == [
        "1.2 ms",
        "0.10 s",
        "9.99 s",
        "59.9 s",
        "1 min 1 s",
        "1 h 1 min",
    ]
