"""How a block is split, one rule per file; each says why where it does not fit."""
