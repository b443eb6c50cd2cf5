"""The rules for continuous views (split maintenance §3.2, §3.3; CV3); `Unfit` says which is broken."""

from __future__ import annotations

R1 = "R1: a stream must be grouped before anything else needs all of its rows"
R2 = "R2: a subquery depends on the rows outside it, and is no grouped join with them"
R3 = "R3: a join of two streams needs both of them grouped"
R4 = "R4: ORDER BY with LIMIT may not stand below a grouping"
R5 = "R5: an outer, semi or anti join keeps the rows of its stream, not those of its table"
TIME = "functions of time have no fixed meaning in the part of a view that runs at each insert"
