"""What clients connect to: PostgreSQL's wire protocol, and the loop that listeners share."""
