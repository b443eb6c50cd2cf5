"""Queries and views in long-running Spark tasks: the tasks, the line to each, and who lives where."""
