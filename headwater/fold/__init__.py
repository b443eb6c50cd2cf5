"""Partials → results: the structures of sliding windows and views (NumPy and Arrow only).

`lookup` gives keys slots, `aggregates` and `aggregation` fold chunks into partials, `pane` cuts time,
`sliding`, `state`, `last_k` and `join` keep what a query needs, `snapshot` puts them away.
"""
