"""Operators over changes: rows that come (+) and rows that are taken back (−), in and out (DESIGN §7)."""
