"""One file per statement: a frozen record, and the function that parses it from a cursor."""
