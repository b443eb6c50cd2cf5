"""Epochs: a long-lived query over chunks beside one-time queries over temporary tables (B9)."""
