package postgres

// relationsQuery lists relations that a selection may mean, with what their leaves
// add up to. $1 says all tables, $2 are schemas, $3 and $4 name tables. One that is dropped
// meanwhile is neither readable nor not. It waits for nobody's lock: the size of a table that somebody
// has for himself, as VACUUM FULL does, is the one of before.
const relationsQuery = `
WITH locked AS MATERIALIZED (
  SELECT k.relation FROM pg_catalog.pg_locks k WHERE k.relation IS NOT NULL AND k.mode = 'AccessExclusiveLock')
SELECT c.oid, {{n.nspname}}, {{c.relname}}, c.relkind::text, c.relpersistence::text, c.relreplident::text,
       ARRAY(SELECT a.relid::oid FROM pg_catalog.pg_partition_ancestors(c.oid) a(relid) WHERE a.relid <> c.oid)::oid[],
       coalesce(l.rows, -1)::int8, coalesce(l.bytes, 0)::int8, coalesce(l.silent, 0)::int8, coalesce(l.alien, 0)::int8,
       coalesce(l.partial, 0)::int8, coalesce(l.mixed, 0)::int8, coalesce(l.whole, 0)::int8,
       (CASE WHEN c.relkind IN ('r', 'p') THEN pg_catalog.has_table_privilege(c.oid, 'SELECT')
              AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND coalesce(l.readable, true) ELSE true END),
       coalesce(l.hidden, false),
       c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid)
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN LATERAL (
       SELECT CASE WHEN min(lc.reltuples) < 0 AND max(lc.reltuples) <= 0 THEN -1
                   ELSE sum(greatest(lc.reltuples, 0)) END AS rows,
              sum(CASE WHEN lc.oid IN (SELECT k.relation FROM locked k) THEN greatest(lc.relpages, 0)::int8 * current_setting('block_size')::int8
                       ELSE pg_catalog.pg_relation_size(lc.oid) END) AS bytes,
              count(*) FILTER (WHERE lc.relreplident = 'n') AS silent,
              bool_and(pg_catalog.has_table_privilege(lc.oid, 'SELECT')) AS readable,
              bool_or(pg_catalog.row_security_active(lc.oid)) AS hidden,
              count(*) FILTER (WHERE lc.relreplident <> 'f') AS partial,
              count(*) FILTER (WHERE lc.relreplident = 'f') AS whole,
              count(*) FILTER (WHERE lc.relreplident <> 'f' AND (lc.relreplident = 'i') <> (c.relreplident = 'i')) AS mixed,
              count(*) FILTER (WHERE lc.relkind <> 'r' OR lc.relpersistence <> 'p') AS alien
         FROM pg_catalog.pg_class lc
        WHERE (c.relkind = 'r' AND lc.oid = c.oid)
           OR (c.relkind = 'p' AND lc.relkind <> 'p' AND lc.oid IN (
                 WITH RECURSIVE part(oid) AS (
                   SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid
                   UNION ALL
                   SELECT i.inhrelid FROM part t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid)
                 SELECT t.oid FROM part t))
  ) l ON true
 WHERE (   ($1 AND c.relkind IN ('r', 'p', 'f'))
        OR (n.nspname = ANY($2::text[]) AND c.relkind IN ('r', 'p', 'f'))
        OR (n.nspname::text, c.relname::text) IN (SELECT * FROM unnest($3::text[], $4::text[])))
   AND (n.nspname !~ '^pg_' OR c.relpersistence = 't' OR n.nspname = ANY($3::text[]))
   AND (n.nspname <> 'information_schema' OR n.nspname = ANY($3::text[]))
   AND (c.relpersistence <> 't' OR (n.nspname::text, c.relname::text) IN (SELECT * FROM unnest($3::text[], $4::text[])))
   AND c.relkind IN ('r', 'p', 'f', 'v', 'm')
 ORDER BY n.nspname, c.relname`

// columnsQuery lists the columns of tables $1.
const columnsQuery = `
SELECT a.attrelid, a.attnum, {{a.attname}}, a.atttypid, a.atttypmod, a.attnotnull, a.attgenerated <> '', a.attgenerated = 'v',
       a.attndims::int4, {{pg_catalog.format_type(a.atttypid, a.atttypmod)}}
  FROM pg_catalog.pg_attribute a
 WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attrelid, a.attnum`

// keysQuery lists the keys of tables $1 with their columns in key order. A deferrable
// primary key is none: it identifies no rows in the source's log, where two rows may
// have one key for a while.
const keysQuery = `
SELECT i.indrelid, i.indisprimary, i.indisreplident,
       ARRAY(SELECT {{a.attname}}
               FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, place)
               JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
              WHERE k.place <= i.indnkeyatts
              ORDER BY k.place)
  FROM pg_catalog.pg_index i
 WHERE i.indrelid = ANY($1::oid[]) AND i.indisvalid AND i.indimmediate AND (i.indisprimary OR i.indisreplident)`

// domainsQuery lists the domains with what they are made of.
const domainsQuery = `
SELECT t.oid, t.typbasetype, t.typtypmod, t.typndims::int4, {{pg_catalog.format_type(t.oid, NULL)}},
       {{pg_catalog.format_type(t.typbasetype, t.typtypmod)}}
  FROM pg_catalog.pg_type t WHERE t.typtype = 'd'`
