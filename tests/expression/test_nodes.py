"""Bound expressions are data: equal by meaning, compiled without sqlglot, also in another process."""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.expression.bind import bind
from headwater.expression.compile import compiled
from headwater.expression.nodes import (
    INTERVAL,
    NULL,
    Bound,
    BoundCall,
    BoundColumn,
    BoundConstant,
)
from headwater.sql.spans import has_span, span_of
from headwater.sql.types import TIMESTAMP, TIMESTAMP_NTZ
from tests.expression.evaluation import bound, parsed, resolver
from tests.expression.test_expression import CASES, ROWS, filled, short, with_constants

CONSTANTS: list[tuple[Any, pa.DataType]] = [
    (None, NULL),
    (None, pa.int32()),
    (True, pa.bool_()),
    (-7, pa.int64()),
    (float("nan"), pa.float64()),
    (float("-inf"), pa.float64()),
    (-0.0, pa.float32()),
    (Decimal("-1.50"), pa.decimal128(10, 2)),
    ("it's\n😀", pa.string()),
    (date(1, 1, 1), pa.date32()),
    (datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), TIMESTAMP),
    (datetime(1582, 10, 4, 6), TIMESTAMP_NTZ),
    (timedelta(days=40_000, microseconds=1), INTERVAL),
]


@pytest.mark.parametrize(("value", "type_"), CONSTANTS)
def test_a_constant_goes_there_and_back(value: Any, type_: pa.DataType) -> None:
    """To another process, with its type; NaN is equal to itself."""
    constant = BoundConstant(value, type_)
    again = pickle.loads(pickle.dumps(constant))
    assert again == constant
    assert hash(again) == hash(constant)
    assert repr(again) == repr(constant)


def test_what_means_the_same_is_equal() -> None:
    """Digits and brackets do not count; the sign of zero and the type do."""
    assert BoundConstant(2, pa.int32(), 1) == BoundConstant(2, pa.int32())
    assert BoundConstant(0.0, pa.float64()) != BoundConstant(-0.0, pa.float64())
    assert BoundConstant(1, pa.int32()) != BoundConstant(1, pa.int64())
    assert bound("a_int > 1 + 1", ROWS.schema) == bound("(a_int)>(2)", ROWS.schema)
    assert bound("a_int > 2", ROWS.schema) != bound("a_int >= 2", ROWS.schema)


def whole_list() -> list[Bound]:
    texts = [filled(entry.template, types) for entry, types in CASES]
    texts += [short(text) for text in with_constants()]
    found = [bound(text, ROWS.schema) for text in texts]
    return [expression for expression in found if expression is not None]


def test_every_expression_goes_there_and_back() -> None:
    """The whole whitelist: equal, and made into closures alike."""
    for number, expression in enumerate(whole_list()):
        again = pickle.loads(pickle.dumps(expression))
        assert again == expression
        if number % 17 == 0:
            first, second = compiled(expression), compiled(again)
            assert first is not None
            assert second is not None
            assert first.type == second.type
            assert first.columns == second.columns


def test_a_process_without_sqlglot_compiles_it() -> None:
    """A worker is sent the data and needs no parser."""
    sent = pickle.dumps(
        BoundCall(">", (BoundColumn("a", pa.int32()), BoundConstant(1, pa.int32())), pa.bool_())
    )
    program = f"""
import pickle, sys
import pyarrow as pa
from headwater.expression.compile import compiled
found = compiled(pickle.loads({sent!r}))
print(found.evaluate(pa.table({{"a": pa.array([1, 2], pa.int32())}})).to_pylist())
assert not any(name.split(".")[0] in ("sqlglot", "pyspark") for name in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[False, True]"


def test_the_text_of_a_part_means_that_part() -> None:
    """What Spark is given of an expression is the user's own text, by its place."""
    checked = 0
    for text in [short(text) for text in with_constants()]:
        whole = parsed(text)
        for node in whole.walk() if whole is not None else ():
            part = bind(node, resolver(ROWS.schema))
            if not has_span(node) or not isinstance(part, BoundCall):
                continue
            if any(has_span(p) and span_of(p) == span_of(node) for p in node.iter_expressions()):
                continue  # sqlglot put it around its only part
            own = span_of(node).shifted(-len("SELECT ")).of(text)
            assert bound(own, ROWS.schema) == part, (text, own)
            checked += 1
    assert checked > 250


SPACES = st.sampled_from([" ", "  ", "\n", "\t", " -- x\n", " /* (' */ ", "/**/ "])
WORDS = frozenset(
    [
        "and",
        "or",
        "not",
        "is",
        "null",
        "true",
        "false",
        "in",
        "between",
        "like",
        "case",
        "when",
        "then",
        "else",
        "end",
        "cast",
        "as",
        "distinct",
        "from",
        "date",
        "timestamp",
        "timestamp_ntz",
        "interval",
        "second",
        "minute",
        "hour",
        "day",
        "div",
    ]
)


def pieces(text: str) -> list[str]:
    """The tokens of an expression."""
    from headwater.sql.lexer import tokenize

    return [token.text for token in tokenize(text) if token.text]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_spaces_comments_and_case_change_nothing(data: st.DataObject) -> None:
    """An expression is bound to the same, however it is written."""
    texts = [short(text) for text in with_constants()]
    text = data.draw(st.sampled_from(texts))
    tokens = pieces(text)
    written = ""
    for token in tokens:
        plain = token.lower() in WORDS or token.isidentifier()
        if plain:
            upper = data.draw(st.lists(st.booleans(), min_size=len(token), max_size=len(token)))
            token = "".join(
                c.upper() if up else c.lower() for c, up in zip(token, upper, strict=True)
            )
        written += token + data.draw(SPACES)
    # The columns of the table are in lower case; a name in another case means the same.
    assert bound(written, ROWS.schema) == bound(text, ROWS.schema), written
