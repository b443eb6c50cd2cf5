"""Linear Road, the benchmark of tolls on expressways, as an application of Headwater.

The SQL stands beside this file; `traffic/` simulates the cars, `source.py` makes them the source
`demo:linearroad`, `demo/` is what `headwater demo` shows.
"""
