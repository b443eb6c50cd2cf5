"""UPPER, LOWER and INITCAP.

Owns: letters by Unicode's own rules, as Spark's ICU has them: one text may become longer, and a sigma at the
end of a word has its own form. Must never: depend on the Unicode version of the Python at hand; letters
that came after version 14 stand in a table here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from headwater.expression.coercion import STRING
from headwater.expression.nodes import BoundCall
from headwater.expression.operand import Kernel
from headwater.expression.signature import by_row, fixed


def _pairs(upper: int, lower: int, count: int = 1) -> list[tuple[int, int]]:
    return [(upper + n, lower + n) for n in range(count)]


# Letters of Unicode 15 to 17: upper and lower.
_NEWER = [
    *_pairs(0xA7DC, 0x19B),
    *_pairs(0xA7CB, 0x264),
    *(
        pair
        for upper in (0x1C89, 0xA7CC, 0xA7CE, 0xA7D2, 0xA7D4, 0xA7DA)
        for pair in _pairs(upper, upper + 1)
    ),
    *_pairs(0x10D50, 0x10D70, 22),
    *_pairs(0x16EA0, 0x16EBB, 25),
]
_TO_UPPER = {lower: upper for upper, lower in _NEWER}
_TO_LOWER = dict(_NEWER)


def _upper(text: str) -> str:
    return text.translate(_TO_UPPER).upper()


def _lower(text: str) -> str:
    return text.translate(_TO_LOWER).lower()


def _title(text: str) -> str:
    """Words, which blanks part, with a large letter first."""
    return " ".join(map(_titled, text.split(" ")))


def _titled(word: str) -> str:
    first = word[:1]
    return first.translate(_TO_UPPER).title() + _lower(word)[len(_lower(first)) :]


def _kernel(
    quick: Callable[[pa.Array], pa.Array], change: Callable[[str], str], _: BoundCall
) -> Kernel:
    def compute(value: pa.Array) -> pa.Array:
        if pc.all(pc.string_is_ascii(value)).as_py() is not False:
            return quick(value)
        return pa.array(
            [None if text is None else change(text) for text in value.to_pylist()], STRING
        )

    return compute


fixed("upper", [[STRING]], STRING, partial(_kernel, pc.ascii_upper, _upper))
fixed("lower", [[STRING]], STRING, partial(_kernel, pc.ascii_lower, _lower))
fixed("initcap", [[STRING]], STRING, by_row(_title))
