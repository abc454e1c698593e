\set VERBOSITY verbose
SELECT current_user, session_user, current_database(), current_setting('application_name');
SHOW server_version_num \g /dev/null
SET TimeZone = 'Asia/Tokyo';
SET DateStyle = 'SQL, DMY';
SET IntervalStyle = 'iso_8601';
SELECT at, interval '1 day 2 hours' FROM notes ORDER BY id;
RESET ALL;
SHOW DateStyle;
PREPARE p (int) AS SELECT body FROM notes WHERE id = $1;
EXECUTE p(1);
DEALLOCATE p;
CREATE TEMP TABLE mine (a int);
INSERT INTO mine VALUES (1), (2);
SELECT sum(a) FROM mine;
SELECT pg_advisory_lock(42);
SELECT pg_try_advisory_lock(42);
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
SELECT pg_advisory_unlock_all();
LISTEN news;
NOTIFY news, 'one';
SELECT pg_notify('news', 'two');
UNLISTEN *;
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT id FROM notes ORDER BY id;
FETCH 1 FROM c;
COMMIT;
FETCH ALL FROM c;
CLOSE c;
BEGIN;
SAVEPOINT s;
SELECT 1 / 0;
SELECT 1;
ROLLBACK TO s;
SELECT 'goes on';
COMMIT;
SELECT nosuch;
\copy (SELECT id, body FROM notes ORDER BY id) TO STDOUT
BEGIN;
COPY notes FROM STDIN;
8	copied	\N
\.
SELECT count(*) FROM notes;
ROLLBACK;
SELECT count(*) FROM notes;
DO_NOT_KNOW;
\d notes
