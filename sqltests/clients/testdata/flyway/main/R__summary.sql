DROP VIEW IF EXISTS summary;
CREATE VIEW summary AS SELECT status::text, count(*) AS n FROM orders GROUP BY status;
