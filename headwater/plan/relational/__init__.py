"""A query as a tree of relational nodes over whole tables: what circuits of operators are made from."""
