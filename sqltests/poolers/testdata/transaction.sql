\set VERBOSITY verbose
SELECT count(*) FROM notes;
BEGIN;
INSERT INTO notes VALUES (3, 'three', NULL);
SELECT count(*) FROM notes;
SAVEPOINT s;
INSERT INTO notes VALUES (3, 'again', NULL);
ROLLBACK TO s;
UPDATE notes SET body = 'drei' WHERE id = 3 RETURNING *;
COMMIT;
SELECT body FROM notes WHERE id = 3;
BEGIN;
SET LOCAL TimeZone = 'Asia/Tokyo';
SELECT at FROM notes WHERE id = 1;
DECLARE c CURSOR FOR SELECT id FROM notes ORDER BY id;
FETCH 2 FROM c;
FETCH c;
END;
SELECT at FROM notes WHERE id = 1;
BEGIN;
SELECT nosuch;
SELECT 1;
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT count(*) FROM notes;
DELETE FROM notes;
ROLLBACK;
SELECT pg_try_advisory_xact_lock(1);
\copy notes FROM STDIN WITH (FORMAT csv)
4,four,
5,"fi,ve",2024-01-01 00:00:00+00
\.
COPY (SELECT * FROM notes ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER);
DELETE FROM notes WHERE id > 2;
SELECT 1 \; SELECT 2 \; SELECT 1 / 0;
SELECT 'a' || :'a';
