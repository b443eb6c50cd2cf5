"""Statements → plans: which pipelines a statement needs, and where each can run."""
