-- Statements of later versions are read, and refused by name; cases move out of here as they come.

-- case: read and named
CREATE SOURCE src INTO t FROM 'http://host/x';
--! 0A000 sources of kind http are not supported yet

BEGIN;
--! 0A000 BEGIN

COMMIT;
--! 0A000 COMMIT


COPY t FROM STDIN;
--! 0A000 COPY with ~ COPY t FROM 'file' CSV reads a file


FLUSH;
--# FLUSH
