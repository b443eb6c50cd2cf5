"""NEXMark's 23 queries as kept views (B13)."""
