"""Statements → results: one file per family of statements, each a few functions over the database."""
