"""Expressions: bound once, then Spark's text, a closure over Arrow, or a predicate of the storage.

`nodes` is the expression as plain data; `bind` makes it of a syntax tree; `functions` says for every
function which types it takes and how Arrow computes it; `compile` makes closures; `predicate` makes what
scans, block pruning and value indexes understand. A closed list of (function, types) pairs
(`tests/harness/whitelist.py`), each equal to Spark value by value and error by error. What is not on the list
is not an error: it is refused with a reason, and Spark evaluates it.
"""
