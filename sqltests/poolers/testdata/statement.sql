\set VERBOSITY verbose
SELECT count(*) FROM notes;
INSERT INTO notes VALUES (3, 'three', NULL);
UPDATE notes SET body = 'drei' WHERE id = 3 RETURNING *;
DELETE FROM notes WHERE id = 3;
SELECT 1 / 0;
\copy notes FROM STDIN
4	four	\N
\.
COPY (SELECT * FROM notes ORDER BY id) TO STDOUT;
DELETE FROM notes WHERE id > 2;
SELECT 1 \; SELECT 2;
BEGIN;
