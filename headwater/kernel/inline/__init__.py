"""Small chunks without a Spark job: expressions, filters, orders and probes on Arrow tables.

A closed list of (operator, types) pairs (`whitelist`), each equal to Spark value by value and error
by error. What is not on the list is not an error: `compile_expression` gives None, and the chunk
goes to Spark.
"""
