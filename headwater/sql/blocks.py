"""Where a block starts: `CASE` and `BEGIN` need an `END`, so semicolons inside do not split."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.lexer import Kind, Token


def is_block_start(tokens: Sequence[Token], index: int) -> bool:
    """Whether the token starts something that ends with END (not a BEGIN of a transaction)."""
    token = tokens[index]
    if token.kind is not Kind.WORD or (index and tokens[index - 1].text == "."):
        return False
    if token.upper == "CASE":
        return True
    after = tokens[index + 1]
    ends = after.kind is Kind.END or after.text == ";"
    return token.upper == "BEGIN" and not ends and after.upper not in ("TRANSACTION", "WORK")


def is_procedure(tokens: Sequence[Token], first: int) -> bool:
    """Whether a statement starts with CREATE [OR REPLACE] PROCEDURE."""
    words = [token.upper for token in tokens[first : first + 4]]
    return words[:2] == ["CREATE", "PROCEDURE"] or words == ["CREATE", "OR", "REPLACE", "PROCEDURE"]
