-- The server may still be ending the session of before: what it holds is waited for.
SELECT pg_advisory_lock(7);
SELECT pg_advisory_unlock(7);
SHOW application_name;
SHOW TimeZone;
SHOW search_path;
SELECT count(*) FROM notes;
SELECT * FROM mine;
EXECUTE p;
FETCH c;
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
SELECT count(*) FROM pg_listening_channels();
SELECT name FROM pg_prepared_statements;
SELECT name FROM pg_cursors;
