"""PostgreSQL's wire protocol 3: a pure machine, codecs, and an asyncio server around them."""
