\set aid random(1, 100000)
SELECT abalance, filler FROM pgbench_accounts WHERE aid = :aid;
SELECT count(*) FROM notes WHERE id < :aid;
