"""Value indexes: which rows of a block have a key (ST9; the paper's §V-C and §VI).

`keys` sorts a column, `lookup` finds rows in it, for whole predicates too, `file` keeps it on disk,
`index` is all files of one index.
Never the truth: whatever is missing or damaged here is scanned instead, and rebuilt.
"""

from headwater.storage.value_index.file import DamagedIndex, load, write
from headwater.storage.value_index.index import ValueIndex
from headwater.storage.value_index.keys import BTREE, HASH, SortedKeys, build, indexable
from headwater.storage.value_index.lookup import answers, count, estimate, lookup, rows_for

__all__ = [
    "BTREE",
    "HASH",
    "DamagedIndex",
    "SortedKeys",
    "ValueIndex",
    "answers",
    "build",
    "count",
    "estimate",
    "indexable",
    "load",
    "lookup",
    "rows_for",
    "write",
]
