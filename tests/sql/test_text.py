"""EditedText: edits in place, positions both ways."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sql.text import EditedText, Name, Span


def test_replace_and_map_back() -> None:
    edited = EditedText("SELECT a FROM t [ROWS 3] x WHERE y")
    edited.replace(14, 24, "view_1").replace(7, 8, "alpha")
    assert edited.text == "SELECT alpha FROM view_1 x WHERE y"
    where = edited.text.index("WHERE")
    assert edited.original.index("WHERE") == edited.original_position(where)
    assert edited.original_position(edited.text.index("view_1") + 3) == 14


def test_span_of_replaced_text_is_the_whole_piece() -> None:
    edited = EditedText("abc def ghi").replace(4, 7, "longer text")
    start = edited.text.index("longer")
    assert edited.original_span(Span(start + 2, start + 5)) == Span(4, 7)
    assert edited.original_span(Span(0, 3)) == Span(0, 3)


def test_edits_may_not_overlap() -> None:
    edited = EditedText("abcdef").replace(1, 3, "x")
    with pytest.raises(ValueError, match="overlaps"):
        edited.replace(2, 4, "y")
    with pytest.raises(ValueError, match="no span"):
        edited.replace(4, 9, "y")
    assert edited.replace(3, 4, "z").text == "axzef"


def test_insertion_and_removal() -> None:
    assert EditedText("ab").replace(1, 1, "-").text == "a-b"
    assert EditedText("a[x]b").remove(Span(1, 4)).text == "a b"


@given(st.text(max_size=30), st.data())
def test_untouched_characters_map_to_themselves(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    edited = EditedText(text)
    touched: set[int] = set()
    for start, end in zip(cuts[::2], cuts[1::2], strict=False):
        if any(e.span.start == start for e in edited.edits):
            continue
        edited.replace(start, end, data.draw(st.text(max_size=4)))
        touched.update(range(start, end))
    result = edited.text
    for position in set(range(len(text))) - touched:
        before = [e for e in edited.edits if e.span.end <= position]
        there = position + sum(len(e.new) - len(e.span) for e in before)
        if any(e.span.start == position for e in edited.edits):
            continue  # an insertion before this character: it maps to the insertion
        assert result[there] == text[position]
        assert edited.original_position(there) == position


def test_name_is_a_string_with_a_place() -> None:
    name = Name("Ab", Span(3, 5))
    assert name == "Ab"
    assert name.key == "ab"
    again = pickle.loads(pickle.dumps(name))
    assert (again, again.span) == (name, name.span)
