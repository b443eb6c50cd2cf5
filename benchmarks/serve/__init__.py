"""Serving: queries of an unchanged view and rows by COPY over PostgreSQL's wire protocol."""
